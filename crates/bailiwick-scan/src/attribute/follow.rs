//! One scope of a walk: its calls, the functions it hands on, and what stands inside of it.

use std::rc::Rc;

use super::{Walk, place};
use crate::knowledge::{Knowledge, Shape, Standing};
use crate::model::{Call, Language, Reason, Scope, ScopeKind, Value};
use crate::report::Use;
use crate::resolve::{AbstractValue, Args, Found, Frame};
use crate::uses::{self, Site};

impl Walk<'_> {
    /// Follows what a scope does.
    pub(super) fn scope(&mut self, frame: &Frame) {
        let package = self.evaluator.package;
        let (Some(scope), Some(unit)) = (package.scope(frame.at), package.unit(frame.at.0)) else { return };
        for call in &scope.calls {
            self.call(frame, call);
        }
        for oddity in unit.oddities.iter().filter(|oddity| oddity.scope == frame.at.1 && frame.at.1 != 0) {
            self.unknown(oddity.reason, oddity.what.clone(), frame.at.0, oddity.extent);
        }
        self.handed_on(frame, scope);
        for inner in package.inside(frame.at) {
            self.inner(frame, *inner);
        }
    }

    /// Lambdas and branches run with the scope around them, unless they are another tool's.
    fn inner(&mut self, frame: &Frame, inner: usize) {
        let at = (frame.at.0, inner);
        let runs = match self.evaluator.package.scope(at).map(|scope| &scope.kind) {
            Some(ScopeKind::Lambda | ScopeKind::Branch(_)) => true,
            Some(ScopeKind::Function | ScopeKind::File) | None => false,
        };
        if runs && !self.handlers.contains(&at) && !self.others.contains(&at) {
            self.enqueue(Frame { at, env: Rc::clone(&frame.env) });
        }
    }

    /// Functions that are returned, given a name or wrapped around this one.
    fn handed_on(&mut self, frame: &Frame, scope: &Scope) {
        let named = scope.bindings.iter().map(|(_, value)| value);
        for value in scope.returns.iter().chain(named) {
            if matches!(value, Value::Name(_) | Value::Member(..))
                && let AbstractValue::Function(at, this) = self.evaluator.value(frame, value)
                && scope.kind != ScopeKind::File
            {
                let inner = self.evaluator.bound(Some(frame), at, &[], this);
                self.enqueue(inner);
            }
        }
        for decorator in &scope.decorators {
            let outer = Frame { at: (frame.at.0, scope.parent), env: Rc::default() };
            let callee = if let Value::Call(callee, _) = decorator { callee } else { decorator };
            if let AbstractValue::Function(at, this) = self.evaluator.value(&outer, callee) {
                let this_function = [(None, AbstractValue::Function(frame.at, None))];
                let inner = self.evaluator.bound(Some(&outer), at, &this_function, this);
                self.enqueue(inner);
            }
        }
    }

    fn call(&mut self, frame: &Frame, call: &Call) {
        let callee = self.evaluator.value(frame, &call.callee);
        let args = self.evaluator.args(frame, &call.args);
        self.called(frame, call, &callee, &args);
        let known = self.evaluator.knowledge(frame);
        if matches!(&callee, AbstractValue::Outside(path) if known.shape(path) == Some(Shape::Wrap)) {
            // It hands the function back; whoever calls that is seen.
            return;
        }
        for (_, abstract_value) in args.iter() {
            self.passed(frame, call, abstract_value);
        }
    }

    fn called(&mut self, frame: &Frame, call: &Call, callee: &AbstractValue, args: &Args) {
        let known = self.evaluator.knowledge(frame);
        match callee {
            AbstractValue::Outside(path) => self.outside(frame, call, path, args, None),
            AbstractValue::Method { path, args: made } => self.outside(frame, call, path, args, Some(made)),
            AbstractValue::Object { path, args: made } if known.shape(path) == Some(Shape::Wrap) => {
                if let Some((_, inner)) = made.first() {
                    self.called(frame, call, inner, args);
                }
            }
            AbstractValue::Function(at, this) => {
                let scope = self.evaluator.package.scope(*at);
                if let Some(scope) = scope.filter(|scope| scope.foreign) {
                    return self.unknown(Reason::Native, scope.name.clone(), frame.at.0, call.extent);
                }
                let inner = self.evaluator.bound(Some(frame), *at, args, this.clone());
                self.enqueue(inner);
            }
            AbstractValue::Class(unit, class) => {
                let maker =
                    self.evaluator.package.unit(*unit).and_then(|unit| unit.classes.get(*class)?.maker);
                if let Some(maker) = maker {
                    let inner = self.evaluator.bound(Some(frame), (*unit, maker), args, None);
                    self.enqueue(inner);
                }
            }
            AbstractValue::Unknown => self.unresolved(frame, call, args),
            AbstractValue::Text { .. }
            | AbstractValue::Object { .. }
            | AbstractValue::Instance { .. }
            | AbstractValue::Module(_)
            | AbstractValue::List(_)
            | AbstractValue::Map(_) => {}
        }
    }

    /// A call of something that is defined elsewhere.
    fn outside(&mut self, frame: &Frame, call: &Call, path: &str, args: &Args, made: Option<&Args>) {
        let known = self.evaluator.knowledge(frame);
        let site = Site { known, callee: &call.callee, args, made };
        let rules = known.rules(path);
        for rule in rules {
            if let Some(reason) = rule.unknown {
                let literal = rule.unless.as_deref().is_some_and(|place| uses::is_literal(place, &site));
                if !literal {
                    self.unknown(reason, path.to_owned(), frame.at.0, call.extent);
                }
                continue;
            }
            let latent = rule.latent.then(|| path.to_owned());
            for (kind, target) in uses::found(rule, &site) {
                self.used(frame, call, kind, target, path, latent.clone());
            }
        }
        if rules.is_empty() {
            self.without_rule(frame, call, known, path, made.is_some());
        }
    }

    /// A name without a rule: harmless, a dependency, or a function that the data forgot.
    fn without_rule(&mut self, frame: &Frame, call: &Call, known: &Knowledge, path: &str, of_object: bool) {
        match known.standing(path) {
            Standing::Pure => {}
            Standing::Known => {
                let last = path.rsplit('.').next().unwrap_or_default();
                let is_function = last.starts_with(char::is_lowercase);
                let is_shape = known.shape(path).is_some() || known.result(path).is_some();
                // `Type::new`: what counts is what is then called on it.
                let class = path.rsplit_once('.').map_or("", |(class, _)| class);
                let makes = class.rsplit('.').next().is_some_and(|name| name.starts_with(char::is_uppercase));
                let is_explained = of_object || is_shape || makes && known.knows(class);
                if is_function && !is_explained {
                    self.unknown(Reason::Unlisted, path.to_owned(), frame.at.0, call.extent);
                }
            }
            Standing::Foreign => {
                let package = package_name(path, self.evaluator.language(frame)).to_owned();
                if self.dependencies.insert(package.clone()) {
                    self.unknown(Reason::Dependency, package, frame.at.0, call.extent);
                }
            }
        }
    }

    /// A call of nobody knows what.
    fn unresolved(&mut self, frame: &Frame, call: &Call, args: &Args) {
        let known = self.evaluator.knowledge(frame);
        match &call.callee {
            Value::Member(_, method) => {
                let language = self.evaluator.language(frame);
                let methods: Vec<_> =
                    self.evaluator.package.methods_named(method, language).take(16).collect();
                for at in &methods {
                    let inner = self.evaluator.bound(None, *at, args, None);
                    self.enqueue(inner);
                }
                let rules: Vec<_> = known.by_method(method).filter(|_| methods.is_empty()).collect();
                for rule in rules {
                    let site = Site { known, callee: &call.callee, args, made: None };
                    for (kind, target) in uses::found(rule, &site) {
                        self.used(frame, call, kind, target, &rule.path, None);
                    }
                }
            }
            Value::Index(..) => {
                self.unknown(Reason::Alias, "a function out of a table".to_owned(), frame.at.0, call.extent);
            }
            Value::Name(name) => {
                if let Found::Here(AbstractValue::Unknown) = self.evaluator.name(frame, name) {
                    self.unknown(Reason::Alias, name.clone(), frame.at.0, call.extent);
                }
            }
            Value::Text(_)
            | Value::Call(..)
            | Value::List(_)
            | Value::Map(_)
            | Value::Join(_)
            | Value::Choice(_)
            | Value::Lambda(_)
            | Value::Opaque => {}
        }
    }

    /// Something that is given to a call, which may call it in turn.
    fn passed(&mut self, frame: &Frame, call: &Call, abstract_value: &AbstractValue) {
        match abstract_value {
            AbstractValue::Function(at, this) if !self.handlers.contains(at) => {
                let inner = self.evaluator.bound(Some(frame), *at, &[], this.clone());
                self.enqueue(inner);
            }
            AbstractValue::Outside(path) => {
                let known = self.evaluator.knowledge(frame);
                let is_plain = |path: &str| path.contains('.') && known.standing(path) != Standing::Foreign;
                let rules = if is_plain(path) { known.rules(path) } else { &[] };
                for rule in rules.iter().filter(|rule| !rule.latent) {
                    for (kind, _) in rule.effects() {
                        self.used(frame, call, kind, None, path, None);
                    }
                    if let Some(reason) = rule.unknown {
                        self.unknown(reason, path.clone(), frame.at.0, call.extent);
                    }
                }
            }
            AbstractValue::Map(pairs) => {
                for (_, inner) in
                    pairs.iter().filter(|(_, inner)| matches!(inner, AbstractValue::Function(..)))
                {
                    self.passed(frame, call, inner);
                }
            }
            AbstractValue::Text { .. }
            | AbstractValue::Object { .. }
            | AbstractValue::Method { .. }
            | AbstractValue::Function(..)
            | AbstractValue::Class(..)
            | AbstractValue::Instance { .. }
            | AbstractValue::Module(_)
            | AbstractValue::List(_)
            | AbstractValue::Unknown => {}
        }
    }

    fn used(
        &mut self,
        frame: &Frame,
        call: &Call,
        kind: crate::report::UseKind,
        target: Option<crate::target::Target>,
        path: &str,
        latent: Option<String>,
    ) {
        let place = place(frame.at.0, call.extent);
        let key = target.as_ref().map(ToString::to_string).unwrap_or_default();
        let one = Use { kind, target, call: path.to_owned(), place: place.clone() };
        self.uses.entry((place, kind, key)).or_insert((one, latent));
    }
}

/// The package that a path comes from: its first name, with its scope; on the JVM everything before the class.
fn package_name(path: &str, language: Language) -> &str {
    if language == Language::Kotlin {
        let ends = path.match_indices('.').map(|(at, _)| at);
        let capital =
            |at: &usize| path.get(at + 1..).is_some_and(|rest| rest.starts_with(char::is_uppercase));
        let end = ends.into_iter().find(capital).unwrap_or(path.len());
        return path.get(..end).unwrap_or(path);
    }
    if path.starts_with('@') {
        let end = path.match_indices('/').nth(1).map_or(path.len(), |(at, _)| at);
        let name = path.get(..end).unwrap_or(path);
        let dot = name.find('/').and_then(|at| name.get(at..)?.find('.').map(|dot| at + dot));
        return name.get(..dot.unwrap_or(name.len())).unwrap_or(name);
    }
    let end = path.find(['.', '/']).unwrap_or(path.len());
    path.get(..end).unwrap_or(path)
}
