//! What values resolve to: names, members and calls, within a budget of steps.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::text::{CARRIED, agreed, carried, joined_path, text_method, text_of};
use super::{Args, Package, Resolved, ScopeId};
use crate::knowledge::{self, Knowledge, Shape};
use crate::model::{Arg, Class, Import, Language, ScopeKind, Unit, Value};

/// The deepest that one question is followed.
const DEPTH: usize = 32;
/// The most steps for one question.
const STEPS: usize = 4_000;
/// The most values of one name that are tried.
const VALUES: usize = 6;

/// What the parameters of the scopes around a place are, as far as the way there says it.
pub(crate) type Env = BTreeMap<(usize, String), Resolved>;

/// A place in a scope, reached in one way.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Frame {
    pub(crate) at: ScopeId,
    pub(crate) env: Rc<Env>,
}

/// What a name was found to be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    /// Nothing of that name.
    Nowhere,
    /// A parameter of a lambda, given by its caller.
    Given,
    /// A name of the package or an import.
    Here(Resolved),
}

/// Answers what values stand for.
pub(crate) struct Evaluator<'a> {
    pub(crate) package: &'a Package<'a>,
    steps: Cell<usize>,
}

impl<'a> Evaluator<'a> {
    pub(crate) const fn new(package: &'a Package<'a>) -> Self {
        Self { package, steps: Cell::new(0) }
    }

    /// What a value stands for.
    pub(crate) fn value(&self, frame: &Frame, value: &Value) -> Resolved {
        self.steps.set(STEPS);
        self.eval(frame, value, 0)
    }

    /// What a name stands for.
    pub(crate) fn name(&self, frame: &Frame, name: &str) -> Found {
        self.steps.set(STEPS);
        self.lookup(frame, name, 0)
    }

    /// The arguments of a call.
    pub(crate) fn args(&self, frame: &Frame, args: &[Arg]) -> Args {
        self.steps.set(STEPS);
        self.eval_args(frame, args, 0)
    }

    pub(crate) fn knowledge(&self, frame: &Frame) -> &'static Knowledge {
        knowledge::for_language(self.language(frame))
    }

    pub(crate) fn language(&self, frame: &Frame) -> Language {
        self.package.unit(frame.at.0).map_or(Language::Python, |unit| unit.language)
    }

    fn spent(&self, depth: usize) -> bool {
        let left = self.steps.get();
        self.steps.set(left.saturating_sub(1));
        left == 0 || depth > DEPTH
    }

    fn eval_args(&self, frame: &Frame, args: &[Arg], depth: usize) -> Args {
        Rc::new(
            args.iter()
                .map(|arg| (arg.name.clone(), carried(self.eval(frame, &arg.value, depth + 1))))
                .collect(),
        )
    }

    fn eval(&self, frame: &Frame, value: &Value, depth: usize) -> Resolved {
        if self.spent(depth) {
            return Resolved::Unknown;
        }
        let eval = |value: &Value| self.eval(frame, value, depth + 1);
        match value {
            Value::Text(text) => Resolved::text(text),
            Value::Name(name) => match self.lookup(frame, name, depth + 1) {
                Found::Here(resolved) => resolved,
                Found::Nowhere | Found::Given => Resolved::Unknown,
            },
            Value::Member(object, name) => self.member(frame, &eval(object), name, depth + 1),
            Value::Index(object, key) => match (eval(object), eval(key)) {
                (Resolved::Map(pairs), Resolved::Text { text, whole: true }) => pairs
                    .iter()
                    .find(|(own, _)| *own == text)
                    .map_or(Resolved::Unknown, |(_, resolved)| resolved.clone()),
                _ => Resolved::Unknown,
            },
            Value::Call(callee, args) => self.called(frame, callee, args, depth),
            Value::List(values) => Resolved::List(Rc::new(values.iter().take(64).map(eval).collect())),
            Value::Map(pairs) => {
                let pairs = pairs.iter().take(256).map(|(key, value)| (key.clone(), eval(value)));
                Resolved::Map(Rc::new(pairs.collect()))
            }
            Value::Join(parts) => self.joined(frame, parts, depth),
            Value::Choice(values) => agreed(values.iter().map(eval)),
            Value::Lambda(start) => match self.package.starting(frame.at.0, *start) {
                Some(scope) => Resolved::Function((frame.at.0, scope), None),
                None => Resolved::Unknown,
            },
            Value::Opaque => Resolved::Unknown,
        }
    }

    /// Something of a written type.
    fn of_type(&self, frame: &Frame, kind: &Value, depth: usize) -> Resolved {
        match self.eval(frame, kind, depth + 1) {
            Resolved::Outside(path) => Resolved::object(path, Rc::default()),
            Resolved::Class(unit, class) => Resolved::Instance { unit, class, args: Rc::default() },
            _ => Resolved::Unknown,
        }
    }

    fn joined(&self, frame: &Frame, parts: &[Value], depth: usize) -> Resolved {
        let mut text = String::new();
        for part in parts {
            let known = self.knowledge(frame);
            match text_of(known, &self.eval(frame, part, depth + 1)) {
                Some((part, true)) => text.push_str(&part),
                Some((part, false)) => return Resolved::Text { text: text + &part, whole: false },
                None => return Resolved::Text { text, whole: false },
            }
        }
        Resolved::text(text)
    }

    /// Looks for a name from the inside out.
    fn lookup(&self, frame: &Frame, name: &str, depth: usize) -> Found {
        let Some(unit) = self.package.unit(frame.at.0) else { return Found::Nowhere };
        if self.spent(depth) {
            return Found::Here(Resolved::Unknown);
        }
        // Rust's paths are marked, because only they may begin with a crate.
        let (name, is_path) = name.strip_prefix("::").map_or((name, false), |name| (name, true));
        let mut at = frame.at.1;
        loop {
            if let Some(found) = self.in_scope(frame, unit, at, name, depth) {
                return found;
            }
            match unit.scopes.get(at) {
                Some(scope) if at != 0 => at = scope.parent,
                _ => break,
            }
        }
        if let Some(found) = self.elsewhere(frame, unit, name, depth) {
            return Found::Here(found);
        }
        let known = knowledge::for_language(unit.language);
        let with_prelude = known.prelude.iter().map(|module| known.usual(format!("{module}.{name}")));
        if let Some(path) = with_prelude.into_iter().find(|path| known.knows(path)) {
            return Found::Here(Resolved::Outside(path));
        }
        let is_crate = is_path && name.starts_with(|c: char| c.is_lowercase());
        let is_root = unit.language == Language::Kotlin
            && matches!(name, "java" | "javax" | "kotlin" | "kotlinx" | "okhttp3" | "io" | "com" | "org");
        match (is_crate, is_root) {
            (true, _) => Found::Here(self.outside(unit, self.package.module(frame.at.0, name))),
            (_, true) => Found::Here(Resolved::Outside(name.to_owned())),
            _ => Found::Nowhere,
        }
    }

    fn outside(&self, unit: &Unit, resolved: Resolved) -> Resolved {
        match resolved {
            Resolved::Outside(path) => Resolved::Outside(knowledge::for_language(unit.language).usual(path)),
            other => other,
        }
    }

    /// Looks for a name that one scope makes.
    fn in_scope(&self, frame: &Frame, unit: &Unit, at: usize, name: &str, depth: usize) -> Option<Found> {
        let scope = unit.scopes.get(at)?;
        if let Some(resolved) = frame.env.get(&(at, name.to_owned())) {
            return Some(Found::Here(resolved.clone()));
        }
        if name == "this" && scope.class.is_some() && scope.kind == ScopeKind::Function {
            let class = scope.class?;
            return Some(Found::Here(Resolved::Instance { unit: frame.at.0, class, args: Rc::default() }));
        }
        if name == "Self" {
            return Some(Found::Here(Resolved::Class(frame.at.0, scope.class?)));
        }
        let inner = Frame { at: (frame.at.0, at), env: Rc::clone(&frame.env) };
        let function = self.package.function(frame.at.0, at, name);
        if let Some(function) = function {
            return Some(Found::Here(Resolved::Function((frame.at.0, function), None)));
        }
        let visible = |index: &&usize| {
            let outer = unit.classes.get(**index).and_then(|class| class.outer);
            outer.is_none_or(|outer| scope.class == Some(outer))
        };
        if let Some(class) = self.package.classes(inner.at, name).iter().find(visible) {
            return Some(Found::Here(Resolved::Class(frame.at.0, *class)));
        }
        let values = self.package.bindings(inner.at, name);
        if !values.is_empty() {
            let tried = values.iter().take(VALUES);
            let found = agreed(tried.map(|value| self.eval(&inner, value, depth + 1)));
            let typed = || self.typed(&inner, &scope.types, name, depth);
            return Some(Found::Here(if found.is_unknown() { typed().unwrap_or(found) } else { found }));
        }
        if let Some(resolved) = self.typed(&inner, &scope.types, name, depth) {
            return Some(Found::Here(resolved));
        }
        if let Some(param) = scope.params.iter().find(|param| param.name == name) {
            let typed = param.kind.as_ref().map(|kind| self.of_type(&inner, kind, depth + 1));
            let resolved = typed.unwrap_or(Resolved::Unknown);
            let is_given = resolved.is_unknown() && scope.kind != ScopeKind::Function;
            return Some(if is_given { Found::Given } else { Found::Here(resolved) });
        }
        if unit.language == Language::Kotlin
            && scope.kind == ScopeKind::Function
            && let Some(class) = scope.class
            && self.has_member(frame.at.0, class, name)
        {
            let this = self.lookup(frame, "this", depth + 1);
            if let Found::Here(this) = this {
                return Some(Found::Here(self.member(frame, &this, name, depth + 1)));
            }
        }
        let imports = self.package.imports(inner.at, name).iter();
        let mut found = imports.map(|import| self.imported(frame, unit, import, depth));
        found.find(|resolved| !resolved.is_unknown()).map(Found::Here)
    }

    fn has_member(&self, unit: usize, class: usize, name: &str) -> bool {
        let found = self.package.unit(unit).and_then(|unit| unit.classes.get(class));
        self.package.method(unit, class, name).is_some()
            || found.is_some_and(|class| {
                class.fields.iter().any(|(own, ..)| own == name)
                    || class.types.iter().any(|(own, _)| own == name)
            })
    }

    fn typed(&self, frame: &Frame, types: &[(String, Value)], name: &str, depth: usize) -> Option<Resolved> {
        let (_, kind) = types.iter().find(|(own, _)| own == name)?;
        let resolved = self.of_type(frame, kind, depth + 1);
        (!resolved.is_unknown()).then_some(resolved)
    }

    /// What an import stands for.
    fn imported(&self, frame: &Frame, unit: &Unit, import: &Import, depth: usize) -> Resolved {
        let known = knowledge::for_language(unit.language);
        if unit.language == Language::Kotlin {
            let Some(name) = &import.name else { return Resolved::Unknown };
            let mut units = self.package.kotlin(&import.module).iter();
            let found = units.find_map(|found| self.exported(*found, name, depth));
            return found
                .unwrap_or_else(|| Resolved::Outside(known.usual(format!("{}.{name}", import.module))));
        }
        let module = self.outside(unit, self.package.module(frame.at.0, &import.module));
        match &import.name {
            None => module,
            Some(name) if name == "default" && unit.language.is_ecma() => match &module {
                Resolved::Outside(path) => Resolved::Outside(path.clone()),
                other => self.member(frame, other, name, depth + 1),
            },
            Some(name) => {
                let member = self.member(frame, &module, name, depth + 1);
                if !member.is_unknown() {
                    return member;
                }
                // `from . import module`, `use crate::module`
                let sign = if import.module.ends_with('.') { "" } else { "." };
                match self.package.module(frame.at.0, &format!("{}{sign}{name}", import.module)) {
                    Resolved::Outside(_) => Resolved::Unknown,
                    found => found,
                }
            }
        }
    }

    /// A name of another file of the package, or one that a wildcard import brings in.
    fn elsewhere(&self, frame: &Frame, unit: &Unit, name: &str, depth: usize) -> Option<Resolved> {
        if unit.language == Language::Kotlin {
            let mut units = self.package.kotlin(&unit.package).iter().filter(|found| **found != frame.at.0);
            if let Some(resolved) = units.find_map(|found| self.exported(*found, name, depth)) {
                return Some(resolved);
            }
        }
        let known = knowledge::for_language(unit.language);
        unit.imports.iter().filter(|import| import.local.is_none()).find_map(|import| {
            if unit.language == Language::Kotlin {
                let mut units = self.package.kotlin(&import.module).iter();
                let found = units.find_map(|found| self.exported(*found, name, depth));
                let path = known.usual(format!("{}.{name}", import.module));
                return found.or_else(|| known.knows(&path).then_some(Resolved::Outside(path)));
            }
            match self.outside(unit, self.package.module(frame.at.0, &import.module)) {
                Resolved::Outside(module) => {
                    let path = known.usual(format!("{module}.{name}"));
                    known.knows(&path).then_some(Resolved::Outside(path))
                }
                module => Some(self.member(frame, &module, name, depth + 1))
                    .filter(|resolved| !resolved.is_unknown()),
            }
        })
    }

    /// A name that a file shows to others.
    fn exported(&self, unit: usize, name: &str, depth: usize) -> Option<Resolved> {
        let frame = Frame { at: (unit, 0), env: Rc::default() };
        let own = self.package.unit(unit)?;
        if self.spent(depth) {
            return None;
        }
        let found = match self.in_scope(&frame, own, 0, name, depth + 1) {
            Some(Found::Here(resolved)) => Some(resolved),
            Some(Found::Nowhere | Found::Given) | None => None,
        };
        found.or_else(|| {
            let wild = own.imports.iter().filter(|import| import.local.is_none());
            let mut modules = wild.map(|import| self.package.module(unit, &import.module));
            modules.find_map(|module| match module {
                Resolved::Module(found) if found != unit => self.exported(found, name, depth + 1),
                _ => None,
            })
        })
    }

    fn member(&self, frame: &Frame, object: &Resolved, name: &str, depth: usize) -> Resolved {
        if self.spent(depth) {
            return Resolved::Unknown;
        }
        let known = self.knowledge(frame);
        match object {
            Resolved::Outside(path) => Resolved::Outside(known.usual(format!("{path}.{name}"))),
            Resolved::Object { path, .. } if known.shape(path) == Some(Shape::Text) && known.keeps(name) => {
                object.clone()
            }
            Resolved::Object { path, args } => {
                Resolved::Method { path: format!("{path}.{name}"), args: Rc::clone(args) }
            }
            Resolved::Method { path, .. } => {
                // A field of an object: taken for one of the same class, with unknown fields.
                let class = path.rsplit_once('.').map_or(path.as_str(), |(class, _)| class);
                Resolved::Method { path: format!("{class}.{name}"), args: Rc::default() }
            }
            Resolved::Module(unit) => self.exported(*unit, name, depth + 1).unwrap_or(Resolved::Unknown),
            Resolved::Class(unit, class) => {
                self.class_member((*unit, *class), None, name, depth).unwrap_or(Resolved::Unknown)
            }
            Resolved::Instance { unit, class, .. } => {
                let this = Rc::new(object.clone());
                self.class_member((*unit, *class), Some(this), name, depth).unwrap_or(Resolved::Unknown)
            }
            Resolved::Function(..) if matches!(name, "bind" | "call" | "apply") => object.clone(),
            Resolved::Map(pairs) => pairs
                .iter()
                .find(|(own, _)| own == name)
                .map_or(Resolved::Unknown, |(_, resolved)| resolved.clone()),
            Resolved::Text { .. } | Resolved::Function(..) | Resolved::List(_) | Resolved::Unknown => {
                Resolved::Unknown
            }
        }
    }

    /// A method, a field or an inner class; else what a base has.
    fn class_member(
        &self,
        (unit, index): (usize, usize),
        this: Option<Rc<Resolved>>,
        name: &str,
        depth: usize,
    ) -> Option<Resolved> {
        let found = self.package.unit(unit)?;
        let class = found.classes.get(index)?;
        if self.spent(depth) {
            return None;
        }
        if let Some(method) = self.package.method(unit, index, name) {
            return Some(Resolved::Function((unit, method), this));
        }
        if let Some(inner) = found.classes.iter().position(|c| c.name == name && c.outer == Some(index)) {
            return Some(Resolved::Class(unit, inner));
        }
        let fields = class.fields.iter().filter(|(own, ..)| own == name).take(VALUES);
        let values: Vec<Resolved> = fields
            .map(|(_, value, scope)| {
                let inner = self.maker_frame((unit, *scope), class, this.as_deref());
                self.eval(&inner, value, depth + 1)
            })
            .collect();
        let value = agreed(values.into_iter());
        if !value.is_unknown() {
            return Some(value);
        }
        let home = Frame { at: (unit, class.scope), env: Rc::default() };
        if let Some(resolved) = self.typed(&home, &class.types, name, depth) {
            return Some(resolved);
        }
        class.bases.iter().take(VALUES).find_map(|base| match self.eval(&home, base, depth + 1) {
            Resolved::Class(unit, base) => self.class_member((unit, base), this.clone(), name, depth + 1),
            Resolved::Outside(path) if this.is_some() => {
                Some(Resolved::Method { path: format!("{path}.{name}"), args: Rc::default() })
            }
            _ => None,
        })
    }

    /// The frame of the scope that gives a field its value: what the instance was made with is known there.
    fn maker_frame(&self, at: ScopeId, class: &Class, this: Option<&Resolved>) -> Frame {
        let made = match this {
            Some(Resolved::Instance { args, .. }) if class.maker == Some(at.1) && !args.is_empty() => args,
            _ => return Frame { at, env: Rc::default() },
        };
        self.bound(None, at, made, None)
    }

    /// The frame of a function that is called with arguments.
    pub(crate) fn bound(
        &self,
        from: Option<&Frame>,
        at: ScopeId,
        args: &[(Option<String>, Resolved)],
        this: Option<Rc<Resolved>>,
    ) -> Frame {
        let mut env = Env::new();
        // What the scopes around it were given stays known inside.
        for ((scope, name), resolved) in
            from.into_iter().filter(|from| from.at.0 == at.0).flat_map(|from| from.env.iter())
        {
            if *scope != at.1 && self.package.is_within(at.0, at.1, *scope) {
                env.insert((*scope, name.clone()), resolved.clone());
            }
        }
        let Some(scope) = self.package.scope(at) else { return Frame { at, env: Rc::new(env) } };
        let positional: Vec<&Resolved> =
            args.iter().filter(|(name, _)| name.is_none()).map(|(_, resolved)| resolved).collect();
        let own = Frame { at, env: Rc::default() };
        for (index, param) in scope.params.iter().enumerate() {
            let named = args
                .iter()
                .find(|(name, _)| name.as_ref() == Some(&param.name))
                .map(|(_, resolved)| resolved);
            let given = named.or_else(|| positional.get(index).copied()).cloned();
            let default = || param.default.as_ref().map(|value| self.eval(&own, value, 1));
            let resolved = given.or_else(default).map_or(Resolved::Unknown, carried);
            if !resolved.is_unknown() {
                env.insert((at.1, param.name.clone()), resolved);
            }
        }
        if let Some(this) = this.filter(|this| this.depth() <= CARRIED) {
            env.insert((at.1, "this".to_owned()), (*this).clone());
        }
        Frame { at, env: Rc::new(env) }
    }

    /// What a call gives.
    fn called(&self, frame: &Frame, callee: &Value, args: &[Arg], depth: usize) -> Resolved {
        let known = self.knowledge(frame);
        let resolved = match callee {
            Value::Member(object, method) => match self.eval(frame, object, depth + 1) {
                Resolved::Text { text, whole } => return text_method(known, text, whole, method),
                object => self.member(frame, &object, method, depth + 1),
            },
            callee => self.eval(frame, callee, depth + 1),
        };
        let given = self.eval_args(frame, args, depth + 1);
        self.result(frame, &resolved, given, depth + 1)
    }

    fn result(&self, frame: &Frame, callee: &Resolved, args: Args, depth: usize) -> Resolved {
        let known = self.knowledge(frame);
        if self.spent(depth) {
            return Resolved::Unknown;
        }
        match callee {
            Resolved::Outside(path) => self.outside_result(frame, known, path, args),
            Resolved::Method { path, args: made } => {
                let class = path.rsplit_once('.').map_or("", |(class, _)| class);
                let method = path.rsplit('.').next().unwrap_or_default();
                if let Some(result) = known.result(path) {
                    return Resolved::object(result, args);
                }
                if known.shape(path) == Some(Shape::Step) {
                    let both = made.iter().chain(args.iter()).cloned().collect();
                    return Resolved::object(class, Rc::new(both));
                }
                let is_text = known.shape(class) == Some(Shape::Text);
                let made_of = if is_text && !known.keeps(method) {
                    // `newBuilder().uri(x)`: an empty text takes the first value it is given.
                    if made.is_empty() { args } else { Rc::new(vec![(None, Resolved::Unknown)]) }
                } else {
                    Rc::clone(made)
                };
                Resolved::object(class, made_of)
            }
            Resolved::Object { path, args: made } if known.shape(path) == Some(Shape::Wrap) => {
                let inner = made.first().map_or(Resolved::Unknown, |(_, resolved)| resolved.clone());
                self.result(frame, &inner, args, depth + 1)
            }
            // A method that keeps the value, such as `toString()`.
            Resolved::Object { path, .. } if known.shape(path) == Some(Shape::Text) => callee.clone(),
            Resolved::Class(unit, class) => Resolved::Instance { unit: *unit, class: *class, args },
            Resolved::Function(at, this) => self.returned(frame, *at, &args, this.clone(), depth),
            Resolved::Text { .. }
            | Resolved::Object { .. }
            | Resolved::Instance { .. }
            | Resolved::Module(_)
            | Resolved::List(_)
            | Resolved::Map(_)
            | Resolved::Unknown => Resolved::Unknown,
        }
    }

    fn outside_result(&self, frame: &Frame, known: &Knowledge, path: &str, args: Args) -> Resolved {
        if matches!(path, "globalThis.require" | "globalThis.import" | "importlib.import_module")
            && let Some((_, Resolved::Text { text, whole: true })) = args.first()
            && let Some(unit) = self.package.unit(frame.at.0)
        {
            return self.outside(unit, self.package.module(frame.at.0, text));
        }
        if let Some(result) = known.result(path) {
            return Resolved::object(result, args);
        }
        match known.shape(path) {
            Some(Shape::List) => {
                return Resolved::List(Rc::new(args.iter().map(|(_, resolved)| resolved.clone()).collect()));
            }
            Some(Shape::Same) => {
                return args.first().map_or(Resolved::Unknown, |(_, resolved)| resolved.clone());
            }
            Some(Shape::Join) => {
                return match joined_path(known, &args) {
                    Some((text, whole)) => Resolved::Text { text, whole },
                    None => Resolved::Unknown,
                };
            }
            Some(Shape::Text | Shape::Step | Shape::Wrap) | None => {}
        }
        // `Type::new(…)`, `Type.of(…)`: one of the type.
        let capital = |name: &str| name.starts_with(char::is_uppercase);
        match path.rsplit_once('.') {
            Some((class, method)) if !capital(method) && class.rsplit('.').next().is_some_and(capital) => {
                Resolved::object(class, args)
            }
            _ => Resolved::object(path, args),
        }
    }

    /// What a function of the package returns.
    fn returned(
        &self,
        frame: &Frame,
        at: ScopeId,
        args: &Args,
        this: Option<Rc<Resolved>>,
        depth: usize,
    ) -> Resolved {
        let Some(scope) = self.package.scope(at) else { return Resolved::Unknown };
        let inner = self.bound(Some(frame), at, args, this);
        let values = scope.returns.iter().take(VALUES);
        let found = agreed(values.map(|value| self.eval(&inner, value, depth + 1)));
        if !found.is_unknown() {
            return found;
        }
        scope.return_type.as_ref().map_or(Resolved::Unknown, |kind| self.of_type(&inner, kind, depth + 1))
    }
}
