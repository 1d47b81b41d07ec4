//! Values to values: names, members and calls, within a budget of steps.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::text::{CARRIED, agreed, carried, joined_path, text_method, text_of};
use super::{AbstractValue, Args, Package, ScopeId};
use crate::knowledge::{self, Knowledge, Shape};
use crate::model::{Arg, Class, Import, Language, ScopeKind, Unit, Value};

/// The deepest that one question is followed.
const DEPTH: usize = 32;
/// The most steps for one question.
const STEPS: usize = 4_000;
/// The most values of one name that are tried.
const VALUES: usize = 6;

/// What the parameters of the scopes around a place are, as far as the way there says it.
pub(crate) type Env = BTreeMap<(usize, String), AbstractValue>;

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
    /// A parameter of a lambda, given by whoever calls it.
    Given,
    /// A name of the package or an import.
    Here(AbstractValue),
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
    pub(crate) fn value(&self, frame: &Frame, value: &Value) -> AbstractValue {
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

    fn eval(&self, frame: &Frame, value: &Value, depth: usize) -> AbstractValue {
        if self.spent(depth) {
            return AbstractValue::Unknown;
        }
        let eval = |value: &Value| self.eval(frame, value, depth + 1);
        match value {
            Value::Text(text) => AbstractValue::text(text),
            Value::Name(name) => match self.lookup(frame, name, depth + 1) {
                Found::Here(abstract_value) => abstract_value,
                Found::Nowhere | Found::Given => AbstractValue::Unknown,
            },
            Value::Member(object, name) => self.member(frame, &eval(object), name, depth + 1),
            Value::Index(object, key) => match (eval(object), eval(key)) {
                (AbstractValue::Map(pairs), AbstractValue::Text { text, whole: true }) => pairs
                    .iter()
                    .find(|(own, _)| *own == text)
                    .map_or(AbstractValue::Unknown, |(_, abstract_value)| abstract_value.clone()),
                _ => AbstractValue::Unknown,
            },
            Value::Call(callee, args) => self.called(frame, callee, args, depth),
            Value::List(values) => AbstractValue::List(Rc::new(values.iter().take(64).map(eval).collect())),
            Value::Map(pairs) => {
                let pairs = pairs.iter().take(256).map(|(key, value)| (key.clone(), eval(value)));
                AbstractValue::Map(Rc::new(pairs.collect()))
            }
            Value::Join(parts) => self.joined(frame, parts, depth),
            Value::Choice(values) => agreed(values.iter().map(eval)),
            Value::Lambda(start) => match self.package.starting(frame.at.0, *start) {
                Some(scope) => AbstractValue::Function((frame.at.0, scope), None),
                None => AbstractValue::Unknown,
            },
            Value::Opaque => AbstractValue::Unknown,
        }
    }

    /// Something of a written type.
    fn of_type(&self, frame: &Frame, kind: &Value, depth: usize) -> AbstractValue {
        match self.eval(frame, kind, depth + 1) {
            AbstractValue::Outside(path) => AbstractValue::object(path, Rc::default()),
            AbstractValue::Class(unit, class) => AbstractValue::Instance { unit, class, args: Rc::default() },
            _ => AbstractValue::Unknown,
        }
    }

    fn joined(&self, frame: &Frame, parts: &[Value], depth: usize) -> AbstractValue {
        let mut text = String::new();
        for part in parts {
            let known = self.knowledge(frame);
            match text_of(known, &self.eval(frame, part, depth + 1)) {
                Some((part, true)) => text.push_str(&part),
                Some((part, false)) => return AbstractValue::Text { text: text + &part, whole: false },
                None => return AbstractValue::Text { text, whole: false },
            }
        }
        AbstractValue::text(text)
    }

    /// Looks for a name from the inside out.
    fn lookup(&self, frame: &Frame, name: &str, depth: usize) -> Found {
        let Some(unit) = self.package.unit(frame.at.0) else { return Found::Nowhere };
        if self.spent(depth) {
            return Found::Here(AbstractValue::Unknown);
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
            return Found::Here(AbstractValue::Outside(path));
        }
        let is_crate = is_path && name.starts_with(|c: char| c.is_lowercase());
        let is_root = unit.language == Language::Kotlin
            && matches!(name, "java" | "javax" | "kotlin" | "kotlinx" | "okhttp3" | "io" | "com" | "org");
        match (is_crate, is_root) {
            (true, _) => Found::Here(self.outside(unit, self.package.module(frame.at.0, name))),
            (_, true) => Found::Here(AbstractValue::Outside(name.to_owned())),
            _ => Found::Nowhere,
        }
    }

    fn outside(&self, unit: &Unit, abstract_value: AbstractValue) -> AbstractValue {
        match abstract_value {
            AbstractValue::Outside(path) => {
                AbstractValue::Outside(knowledge::for_language(unit.language).usual(path))
            }
            other => other,
        }
    }

    /// Looks for a name that one scope makes.
    fn in_scope(&self, frame: &Frame, unit: &Unit, at: usize, name: &str, depth: usize) -> Option<Found> {
        let scope = unit.scopes.get(at)?;
        if let Some(abstract_value) = frame.env.get(&(at, name.to_owned())) {
            return Some(Found::Here(abstract_value.clone()));
        }
        if name == "this" && scope.class.is_some() && scope.kind == ScopeKind::Function {
            let class = scope.class?;
            return Some(Found::Here(AbstractValue::Instance {
                unit: frame.at.0,
                class,
                args: Rc::default(),
            }));
        }
        if name == "Self" {
            return Some(Found::Here(AbstractValue::Class(frame.at.0, scope.class?)));
        }
        let inner = Frame { at: (frame.at.0, at), env: Rc::clone(&frame.env) };
        let function = self.package.function(frame.at.0, at, name);
        if let Some(function) = function {
            return Some(Found::Here(AbstractValue::Function((frame.at.0, function), None)));
        }
        let visible = |index: &&usize| {
            let outer = unit.classes.get(**index).and_then(|class| class.outer);
            outer.is_none_or(|outer| scope.class == Some(outer))
        };
        if let Some(class) = self.package.classes(inner.at, name).iter().find(visible) {
            return Some(Found::Here(AbstractValue::Class(frame.at.0, *class)));
        }
        let values = self.package.bindings(inner.at, name);
        if !values.is_empty() {
            let tried = values.iter().take(VALUES);
            let found = agreed(tried.map(|value| self.eval(&inner, value, depth + 1)));
            let typed = || self.typed(&inner, &scope.types, name, depth);
            return Some(Found::Here(if found.is_unknown() { typed().unwrap_or(found) } else { found }));
        }
        if let Some(abstract_value) = self.typed(&inner, &scope.types, name, depth) {
            return Some(Found::Here(abstract_value));
        }
        if let Some(param) = scope.params.iter().find(|param| param.name == name) {
            let typed = param.kind.as_ref().map(|kind| self.of_type(&inner, kind, depth + 1));
            let abstract_value = typed.unwrap_or(AbstractValue::Unknown);
            let is_given = abstract_value.is_unknown() && scope.kind != ScopeKind::Function;
            return Some(if is_given { Found::Given } else { Found::Here(abstract_value) });
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
        found.find(|abstract_value| !abstract_value.is_unknown()).map(Found::Here)
    }

    fn has_member(&self, unit: usize, class: usize, name: &str) -> bool {
        let found = self.package.unit(unit).and_then(|unit| unit.classes.get(class));
        self.package.method(unit, class, name).is_some()
            || found.is_some_and(|class| {
                class.fields.iter().any(|(own, ..)| own == name)
                    || class.types.iter().any(|(own, _)| own == name)
            })
    }

    fn typed(
        &self,
        frame: &Frame,
        types: &[(String, Value)],
        name: &str,
        depth: usize,
    ) -> Option<AbstractValue> {
        let (_, kind) = types.iter().find(|(own, _)| own == name)?;
        let abstract_value = self.of_type(frame, kind, depth + 1);
        (!abstract_value.is_unknown()).then_some(abstract_value)
    }

    /// What an import stands for.
    fn imported(&self, frame: &Frame, unit: &Unit, import: &Import, depth: usize) -> AbstractValue {
        let known = knowledge::for_language(unit.language);
        if unit.language == Language::Kotlin {
            let Some(name) = &import.name else { return AbstractValue::Unknown };
            let mut units = self.package.kotlin(&import.module).iter();
            let found = units.find_map(|found| self.exported(*found, name, depth));
            return found
                .unwrap_or_else(|| AbstractValue::Outside(known.usual(format!("{}.{name}", import.module))));
        }
        let module = self.outside(unit, self.package.module(frame.at.0, &import.module));
        match &import.name {
            None => module,
            Some(name) if name == "default" && unit.language.is_ecma() => match &module {
                AbstractValue::Outside(path) => AbstractValue::Outside(path.clone()),
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
                    AbstractValue::Outside(_) => AbstractValue::Unknown,
                    found => found,
                }
            }
        }
    }

    /// A name of another file of the package, or one that a wildcard import brings in.
    fn elsewhere(&self, frame: &Frame, unit: &Unit, name: &str, depth: usize) -> Option<AbstractValue> {
        if unit.language == Language::Kotlin {
            let mut units = self.package.kotlin(&unit.package).iter().filter(|found| **found != frame.at.0);
            if let Some(abstract_value) = units.find_map(|found| self.exported(*found, name, depth)) {
                return Some(abstract_value);
            }
        }
        let known = knowledge::for_language(unit.language);
        unit.imports.iter().filter(|import| import.local.is_none()).find_map(|import| {
            if unit.language == Language::Kotlin {
                let mut units = self.package.kotlin(&import.module).iter();
                let found = units.find_map(|found| self.exported(*found, name, depth));
                let path = known.usual(format!("{}.{name}", import.module));
                return found.or_else(|| known.knows(&path).then_some(AbstractValue::Outside(path)));
            }
            match self.outside(unit, self.package.module(frame.at.0, &import.module)) {
                AbstractValue::Outside(module) => {
                    let path = known.usual(format!("{module}.{name}"));
                    known.knows(&path).then_some(AbstractValue::Outside(path))
                }
                module => Some(self.member(frame, &module, name, depth + 1))
                    .filter(|abstract_value| !abstract_value.is_unknown()),
            }
        })
    }

    /// A name that a file shows to others.
    fn exported(&self, unit: usize, name: &str, depth: usize) -> Option<AbstractValue> {
        let frame = Frame { at: (unit, 0), env: Rc::default() };
        let own = self.package.unit(unit)?;
        if self.spent(depth) {
            return None;
        }
        let found = match self.in_scope(&frame, own, 0, name, depth + 1) {
            Some(Found::Here(abstract_value)) => Some(abstract_value),
            Some(Found::Nowhere | Found::Given) | None => None,
        };
        found.or_else(|| {
            let wild = own.imports.iter().filter(|import| import.local.is_none());
            let mut modules = wild.map(|import| self.package.module(unit, &import.module));
            modules.find_map(|module| match module {
                AbstractValue::Module(found) if found != unit => self.exported(found, name, depth + 1),
                _ => None,
            })
        })
    }

    fn member(&self, frame: &Frame, object: &AbstractValue, name: &str, depth: usize) -> AbstractValue {
        if self.spent(depth) {
            return AbstractValue::Unknown;
        }
        let known = self.knowledge(frame);
        match object {
            AbstractValue::Outside(path) => AbstractValue::Outside(known.usual(format!("{path}.{name}"))),
            AbstractValue::Object { path, .. }
                if known.shape(path) == Some(Shape::Text) && known.keeps(name) =>
            {
                object.clone()
            }
            AbstractValue::Object { path, args } => {
                AbstractValue::Method { path: format!("{path}.{name}"), args: Rc::clone(args) }
            }
            AbstractValue::Method { path, .. } => {
                // A field of an object: taken for one of the same class, made of nobody knows what.
                let class = path.rsplit_once('.').map_or(path.as_str(), |(class, _)| class);
                AbstractValue::Method { path: format!("{class}.{name}"), args: Rc::default() }
            }
            AbstractValue::Module(unit) => {
                self.exported(*unit, name, depth + 1).unwrap_or(AbstractValue::Unknown)
            }
            AbstractValue::Class(unit, class) => {
                self.class_member((*unit, *class), None, name, depth).unwrap_or(AbstractValue::Unknown)
            }
            AbstractValue::Instance { unit, class, .. } => {
                let this = Rc::new(object.clone());
                self.class_member((*unit, *class), Some(this), name, depth).unwrap_or(AbstractValue::Unknown)
            }
            AbstractValue::Function(..) if matches!(name, "bind" | "call" | "apply") => object.clone(),
            AbstractValue::Map(pairs) => pairs
                .iter()
                .find(|(own, _)| own == name)
                .map_or(AbstractValue::Unknown, |(_, abstract_value)| abstract_value.clone()),
            AbstractValue::Text { .. }
            | AbstractValue::Function(..)
            | AbstractValue::List(_)
            | AbstractValue::Unknown => AbstractValue::Unknown,
        }
    }

    /// A method, a field or an inner class; else what a base has.
    fn class_member(
        &self,
        (unit, index): (usize, usize),
        this: Option<Rc<AbstractValue>>,
        name: &str,
        depth: usize,
    ) -> Option<AbstractValue> {
        let found = self.package.unit(unit)?;
        let class = found.classes.get(index)?;
        if self.spent(depth) {
            return None;
        }
        if let Some(method) = self.package.method(unit, index, name) {
            return Some(AbstractValue::Function((unit, method), this));
        }
        if let Some(inner) = found.classes.iter().position(|c| c.name == name && c.outer == Some(index)) {
            return Some(AbstractValue::Class(unit, inner));
        }
        let fields = class.fields.iter().filter(|(own, ..)| own == name).take(VALUES);
        let values: Vec<AbstractValue> = fields
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
        if let Some(abstract_value) = self.typed(&home, &class.types, name, depth) {
            return Some(abstract_value);
        }
        class.bases.iter().take(VALUES).find_map(|base| match self.eval(&home, base, depth + 1) {
            AbstractValue::Class(unit, base) => {
                self.class_member((unit, base), this.clone(), name, depth + 1)
            }
            AbstractValue::Outside(path) if this.is_some() => {
                Some(AbstractValue::Method { path: format!("{path}.{name}"), args: Rc::default() })
            }
            _ => None,
        })
    }

    /// The frame of the scope that gives a field its value: what the instance was made with is known there.
    fn maker_frame(&self, at: ScopeId, class: &Class, this: Option<&AbstractValue>) -> Frame {
        let made = match this {
            Some(AbstractValue::Instance { args, .. }) if class.maker == Some(at.1) && !args.is_empty() => {
                args
            }
            _ => return Frame { at, env: Rc::default() },
        };
        self.bound(None, at, made, None)
    }

    /// The frame of a function that is called with arguments.
    pub(crate) fn bound(
        &self,
        from: Option<&Frame>,
        at: ScopeId,
        args: &[(Option<String>, AbstractValue)],
        this: Option<Rc<AbstractValue>>,
    ) -> Frame {
        let mut env = Env::new();
        // What the scopes around it were given stays known inside.
        for ((scope, name), abstract_value) in
            from.into_iter().filter(|from| from.at.0 == at.0).flat_map(|from| from.env.iter())
        {
            if *scope != at.1 && self.package.is_within(at.0, at.1, *scope) {
                env.insert((*scope, name.clone()), abstract_value.clone());
            }
        }
        let Some(scope) = self.package.scope(at) else { return Frame { at, env: Rc::new(env) } };
        let positional: Vec<&AbstractValue> = args
            .iter()
            .filter(|(name, _)| name.is_none())
            .map(|(_, abstract_value)| abstract_value)
            .collect();
        let own = Frame { at, env: Rc::default() };
        for (index, param) in scope.params.iter().enumerate() {
            let named = args
                .iter()
                .find(|(name, _)| name.as_ref() == Some(&param.name))
                .map(|(_, abstract_value)| abstract_value);
            let given = named.or_else(|| positional.get(index).copied()).cloned();
            let default = || param.default.as_ref().map(|value| self.eval(&own, value, 1));
            let abstract_value = given.or_else(default).map_or(AbstractValue::Unknown, carried);
            if !abstract_value.is_unknown() {
                env.insert((at.1, param.name.clone()), abstract_value);
            }
        }
        if let Some(this) = this.filter(|this| this.depth() <= CARRIED) {
            env.insert((at.1, "this".to_owned()), (*this).clone());
        }
        Frame { at, env: Rc::new(env) }
    }

    /// What a call gives.
    fn called(&self, frame: &Frame, callee: &Value, args: &[Arg], depth: usize) -> AbstractValue {
        let known = self.knowledge(frame);
        let abstract_value = match callee {
            Value::Member(object, method) => match self.eval(frame, object, depth + 1) {
                AbstractValue::Text { text, whole } => return text_method(known, text, whole, method),
                object => self.member(frame, &object, method, depth + 1),
            },
            callee => self.eval(frame, callee, depth + 1),
        };
        let given = self.eval_args(frame, args, depth + 1);
        self.result(frame, &abstract_value, given, depth + 1)
    }

    fn result(&self, frame: &Frame, callee: &AbstractValue, args: Args, depth: usize) -> AbstractValue {
        let known = self.knowledge(frame);
        if self.spent(depth) {
            return AbstractValue::Unknown;
        }
        match callee {
            AbstractValue::Outside(path) => self.outside_result(frame, known, path, args),
            AbstractValue::Method { path, args: made } => {
                let class = path.rsplit_once('.').map_or("", |(class, _)| class);
                let method = path.rsplit('.').next().unwrap_or_default();
                if let Some(result) = known.result(path) {
                    return AbstractValue::object(result, args);
                }
                if known.shape(path) == Some(Shape::Step) {
                    let both = made.iter().chain(args.iter()).cloned().collect();
                    return AbstractValue::object(class, Rc::new(both));
                }
                let is_text = known.shape(class) == Some(Shape::Text);
                let made_of = if is_text && !known.keeps(method) {
                    // `newBuilder().uri(x)`: an empty text takes the first value it is given.
                    if made.is_empty() { args } else { Rc::new(vec![(None, AbstractValue::Unknown)]) }
                } else {
                    Rc::clone(made)
                };
                AbstractValue::object(class, made_of)
            }
            AbstractValue::Object { path, args: made } if known.shape(path) == Some(Shape::Wrap) => {
                let inner =
                    made.first().map_or(AbstractValue::Unknown, |(_, abstract_value)| abstract_value.clone());
                self.result(frame, &inner, args, depth + 1)
            }
            // A method that keeps the value, such as `toString()`.
            AbstractValue::Object { path, .. } if known.shape(path) == Some(Shape::Text) => callee.clone(),
            AbstractValue::Class(unit, class) => AbstractValue::Instance { unit: *unit, class: *class, args },
            AbstractValue::Function(at, this) => self.returned(frame, *at, &args, this.clone(), depth),
            AbstractValue::Text { .. }
            | AbstractValue::Object { .. }
            | AbstractValue::Instance { .. }
            | AbstractValue::Module(_)
            | AbstractValue::List(_)
            | AbstractValue::Map(_)
            | AbstractValue::Unknown => AbstractValue::Unknown,
        }
    }

    fn outside_result(&self, frame: &Frame, known: &Knowledge, path: &str, args: Args) -> AbstractValue {
        if matches!(path, "globalThis.require" | "globalThis.import" | "importlib.import_module")
            && let Some((_, AbstractValue::Text { text, whole: true })) = args.first()
            && let Some(unit) = self.package.unit(frame.at.0)
        {
            return self.outside(unit, self.package.module(frame.at.0, text));
        }
        if let Some(result) = known.result(path) {
            return AbstractValue::object(result, args);
        }
        match known.shape(path) {
            Some(Shape::List) => {
                return AbstractValue::List(Rc::new(
                    args.iter().map(|(_, abstract_value)| abstract_value.clone()).collect(),
                ));
            }
            Some(Shape::Same) => {
                return args
                    .first()
                    .map_or(AbstractValue::Unknown, |(_, abstract_value)| abstract_value.clone());
            }
            Some(Shape::Join) => {
                return match joined_path(known, &args) {
                    Some((text, whole)) => AbstractValue::Text { text, whole },
                    None => AbstractValue::Unknown,
                };
            }
            Some(Shape::Text | Shape::Step | Shape::Wrap) | None => {}
        }
        // `Type::new(…)`, `Type.of(…)`: one of the type.
        let capital = |name: &str| name.starts_with(char::is_uppercase);
        match path.rsplit_once('.') {
            Some((class, method)) if !capital(method) && class.rsplit('.').next().is_some_and(capital) => {
                AbstractValue::object(class, args)
            }
            _ => AbstractValue::object(path, args),
        }
    }

    /// What a function of the package returns.
    fn returned(
        &self,
        frame: &Frame,
        at: ScopeId,
        args: &Args,
        this: Option<Rc<AbstractValue>>,
        depth: usize,
    ) -> AbstractValue {
        let Some(scope) = self.package.scope(at) else { return AbstractValue::Unknown };
        let inner = self.bound(Some(frame), at, args, this);
        let values = scope.returns.iter().take(VALUES);
        let found = agreed(values.map(|value| self.eval(&inner, value, depth + 1)));
        if !found.is_unknown() {
            return found;
        }
        scope
            .return_type
            .as_ref()
            .map_or(AbstractValue::Unknown, |kind| self.of_type(&inner, kind, depth + 1))
    }
}
