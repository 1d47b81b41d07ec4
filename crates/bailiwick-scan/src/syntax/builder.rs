//! Puts a unit together while a tree is walked: which scope and class one is in, and what belongs to it.

use std::collections::BTreeMap;

use tree_sitter::Node;

use crate::model::{
    Arg, Call, Class, Extent, Import, Language, Oddity, Param, Reason, Scope, ScopeKind, ToolSite, Unit,
    Value,
};

/// The deepest value that is kept; what lies deeper is opaque.
pub(super) const DEPTH: usize = 24;
/// How deep functions may nest.
const MAX_NESTING: usize = 100;
/// The most facts of one file; more is an oddity.
const MAX_FACTS: usize = 400_000;

/// A unit in the making.
pub(super) struct Builder<'t> {
    pub(super) text: &'t str,
    pub(super) unit: Unit,
    stack: Vec<usize>,
    classes: Vec<usize>,
    named: BTreeMap<(Option<usize>, String), usize>,
    facts: usize,
    /// Bytes to add to every place: not 0 while the inside of a macro is read.
    pub(super) shift: isize,
}

impl<'t> Builder<'t> {
    pub(super) fn new(language: Language, text: &'t str) -> Self {
        let mut unit = empty(language);
        unit.scopes.push(scope(ScopeKind::File, "", 0, None, (0, text.len())));
        let (stack, classes, named) = (vec![0], Vec::new(), BTreeMap::new());
        Self { text, unit, stack, classes, named, facts: 0, shift: 0 }
    }

    /// The same unit, continued in another text; give it back with [`Builder::resume`].
    pub(super) fn continued<'s>(&mut self, text: &'s str, shift: isize) -> Builder<'s> {
        Builder {
            text,
            unit: std::mem::replace(&mut self.unit, empty(Language::Rust)),
            stack: std::mem::take(&mut self.stack),
            classes: std::mem::take(&mut self.classes),
            named: std::mem::take(&mut self.named),
            facts: self.facts,
            shift,
        }
    }

    /// Takes the unit back.
    pub(super) fn resume(&mut self, from: Builder<'_>) {
        (self.unit, self.stack, self.classes) = (from.unit, from.stack, from.classes);
        (self.named, self.facts) = (from.named, from.facts);
    }

    /// A field of the class one is in has this type.
    pub(super) fn field_type(&mut self, name: &str, kind: Value) {
        if let Some(class) = self.class().and_then(|index| self.unit.classes.get_mut(index)) {
            class.types.push((name.to_owned(), kind));
        }
    }

    /// The source of a node.
    pub(super) fn text_of(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    pub(super) fn extent(&self, node: Node<'_>) -> Extent {
        let shifted = |byte: usize| byte.saturating_add_signed(self.shift);
        (shifted(node.start_byte()), shifted(node.end_byte()))
    }

    /// The scope one is in.
    pub(super) fn here(&self) -> usize {
        self.stack.last().copied().unwrap_or(0)
    }

    pub(super) fn scope(&mut self, index: usize) -> Option<&mut Scope> {
        self.unit.scopes.get_mut(index)
    }

    /// The class one is in.
    pub(super) fn class(&self) -> Option<usize> {
        self.classes.last().copied()
    }

    /// Whether one is in a class, and not in a function of it.
    pub(super) fn in_class_body(&self) -> bool {
        let class = self.class();
        class.is_some() && self.unit.scopes.get(self.here()).is_some_and(|scope| scope.class != class)
    }

    /// Enters a scope.
    pub(super) fn open(&mut self, kind: ScopeKind, name: &str, params: Vec<Param>, node: Node<'_>) -> usize {
        let (parent, class, extent) = (self.here(), self.class(), self.extent(node));
        if self.stack.len() > MAX_NESTING {
            // What is deeper counts as part of the scope around it.
            self.too_deep(extent);
            self.stack.push(parent);
            return parent;
        }
        let mut opened = scope(kind, name, parent, class, extent);
        opened.params = params;
        self.unit.scopes.push(opened);
        let index = self.unit.scopes.len() - 1;
        self.stack.push(index);
        index
    }

    fn too_deep(&mut self, extent: Extent) {
        if !self.unit.oddities.iter().any(|oddity| oddity.reason == Reason::TooLarge) {
            let what = format!("functions nest deeper than {MAX_NESTING}");
            self.unit.oddities.push(Oddity { reason: Reason::TooLarge, what, scope: 0, extent });
        }
    }

    pub(super) fn close(&mut self) {
        if self.stack.len() > 1 {
            self.stack.pop();
        }
    }

    /// Enters a class; one of the same name is continued.
    pub(super) fn open_class(&mut self, name: &str) -> usize {
        let (scope, outer) = (self.here(), self.class());
        let classes = &mut self.unit.classes;
        let index = *self.named.entry((outer, name.to_owned())).or_insert_with(|| {
            classes.push(Class { name: name.to_owned(), scope, outer, ..Class::default() });
            classes.len() - 1
        });
        self.classes.push(index);
        index
    }

    pub(super) fn close_class(&mut self) {
        self.classes.pop();
    }

    pub(super) fn class_mut(&mut self, index: usize) -> Option<&mut Class> {
        self.unit.classes.get_mut(index)
    }

    /// The nearest scope that has names of its own.
    fn owner(&self) -> usize {
        let is_branch = |index: &&usize| {
            self.unit.scopes.get(**index).is_some_and(|scope| matches!(scope.kind, ScopeKind::Branch(_)))
        };
        self.stack.iter().rev().find(|index| !is_branch(index)).copied().unwrap_or(0)
    }

    /// A name that is made here.
    pub(super) fn bind(&mut self, name: &str, value: Value) {
        let owner = self.owner();
        self.bind_in(owner, name, value);
    }

    fn bind_in(&mut self, owner: usize, name: &str, value: Value) {
        if self.count()
            && let Some(scope) = self.scope(owner)
        {
            scope.bindings.push((name.to_owned(), value));
        }
    }

    /// A name that was made here or further out, and is given another value.
    pub(super) fn rebind(&mut self, name: &str, value: Value) {
        let knows = |index: &&usize| {
            self.unit.scopes.get(**index).is_some_and(|scope| {
                scope.bindings.iter().any(|(own, _)| own == name)
                    || scope.params.iter().any(|param| param.name == name)
            })
        };
        let owner = self.stack.iter().rev().find(knows).copied().unwrap_or(0);
        self.bind_in(owner, name, value);
    }

    /// A name with a written type.
    pub(super) fn declare(&mut self, name: &str, kind: Value) {
        let owner = self.owner();
        if let Some(scope) = self.scope(owner) {
            scope.types.push((name.to_owned(), kind));
        }
    }

    /// A field of the class one is in.
    pub(super) fn field(&mut self, name: &str, value: Value) {
        let (owner, in_body) = (self.owner(), self.in_class_body());
        if let Some(class) = self.class().and_then(|index| self.unit.classes.get_mut(index)) {
            let owner = class.maker.filter(|_| in_body).unwrap_or(owner);
            class.fields.push((name.to_owned(), value, owner));
        }
    }

    pub(super) fn call(&mut self, callee: Value, args: Vec<Arg>, node: Node<'_>) {
        let (here, extent) = (self.here(), self.extent(node));
        if self.count()
            && let Some(scope) = self.scope(here)
        {
            scope.calls.push(Call { callee, args, extent });
        }
    }

    pub(super) fn returned(&mut self, value: Value) {
        let owner = self.owner();
        if let Some(scope) = self.scope(owner) {
            scope.returns.push(value);
        }
    }

    pub(super) fn import(&mut self, local: Option<&str>, module: &str, name: Option<&str>) {
        let (scope, local, name) = (self.owner(), local.map(str::to_owned), name.map(str::to_owned));
        self.unit.imports.push(Import { scope, local, module: module.to_owned(), name });
    }

    pub(super) fn tool(&mut self, tool: ToolSite) {
        self.unit.tools.push(tool);
    }

    /// Counts a fact; false once there are too many, which is itself an oddity.
    fn count(&mut self) -> bool {
        self.facts += 1;
        if self.facts == MAX_FACTS {
            let what = format!("more than {MAX_FACTS} facts in one file");
            self.unit.oddities.push(Oddity { reason: Reason::TooLarge, what, scope: 0, extent: (0, 0) });
        }
        self.facts < MAX_FACTS
    }
}

const fn empty(language: Language) -> Unit {
    Unit {
        language,
        package: String::new(),
        scopes: Vec::new(),
        classes: Vec::new(),
        imports: Vec::new(),
        tools: Vec::new(),
        oddities: Vec::new(),
    }
}

fn scope(kind: ScopeKind, name: &str, parent: usize, class: Option<usize>, extent: Extent) -> Scope {
    Scope {
        kind,
        name: name.to_owned(),
        parent,
        class,
        params: Vec::new(),
        bindings: Vec::new(),
        types: Vec::new(),
        calls: Vec::new(),
        returns: Vec::new(),
        return_type: None,
        decorators: Vec::new(),
        extent,
        foreign: false,
    }
}

/// A tool whose handler is a scope or a value.
pub(super) fn tool(name: Value, fallback: &str, scope: usize, extent: Extent) -> ToolSite {
    ToolSite {
        name,
        fallback: fallback.to_owned(),
        handlers: Vec::new(),
        scopes: Vec::new(),
        dispatches: false,
        is_record: false,
        scope,
        declared: None,
        extent,
    }
}

/// The named children of a node.
pub(super) fn children<'t>(node: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    let mut cursor = node.walk();
    let mut more = cursor.goto_first_child();
    std::iter::from_fn(move || {
        while more {
            let child = cursor.node();
            more = cursor.goto_next_sibling();
            if child.is_named() && !child.is_extra() {
                return Some(child);
            }
        }
        None
    })
}

/// The first named child of a kind.
pub(super) fn child<'t>(node: Node<'t>, kind: &str) -> Option<Node<'t>> {
    children(node).find(|child| child.kind() == kind)
}

/// A literal without its escapes; one that is more than plain escapes is opaque.
pub(super) fn unescaped(raw: &str) -> Value {
    if !raw.contains('\\') {
        return Value::Text(raw.to_owned());
    }
    let mut text = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => text.push('\n'),
            ('\\', Some('t')) => text.push('\t'),
            ('\\', Some('r')) => text.push('\r'),
            ('\\', Some(plain @ ('\\' | '"' | '\'' | '`' | '$' | '/'))) => text.push(plain),
            ('\\', _) => return Value::Opaque,
            _ => text.push(c),
        }
    }
    Value::Text(text)
}

/// Parts in a row as one value; neighbouring texts become one.
pub(super) fn joined(parts: Vec<Value>) -> Value {
    let mut merged: Vec<Value> = Vec::new();
    for part in parts {
        match (merged.last_mut(), part) {
            (Some(Value::Text(before)), Value::Text(text)) => before.push_str(&text),
            (_, part) => merged.push(part),
        }
    }
    match merged.len() {
        0 => Value::Text(String::new()),
        1 => merged.pop().unwrap_or(Value::Opaque),
        _ => Value::Join(merged),
    }
}
