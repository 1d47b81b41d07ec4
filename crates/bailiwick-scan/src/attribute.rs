//! From each tool's handler along local calls: what the tool uses, and what about it is not known.
//!
//! A function is followed once for each way it is called that says something about its parameters, so that a helper
//! does for each tool what that tool asks of it. Past a fixed number of ways, parameters count as unknown.

mod follow;
mod listed;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

use crate::model::{Language, Reason, ScopeKind, ToolSite, Value};
use crate::report::{CodeSpan, Deeds, Tool, Unknown, Use};
use crate::resolve::{Evaluator, Frame, Package, Resolved, ScopeId};

/// The most ways that are followed for one tool.
const WAYS: usize = 3_000;

/// A tool before it is followed.
struct Plan {
    name: String,
    language: Language,
    unit: usize,
    extent: (usize, usize),
    handlers: Vec<Resolved>,
    declared: Option<Vec<String>>,
    /// The branches of other tools, which are not its own.
    others: BTreeSet<ScopeId>,
    unresolved: bool,
    /// Whether it is an object, which may be registered elsewhere too.
    is_record: bool,
    /// Whether its name stands in the source.
    is_named: bool,
}

/// Everything that tools and the server do; the caller that has the text fills in the lines.
pub(crate) struct Attributed {
    pub(crate) tools: Vec<Tool>,
    pub(crate) server: Deeds,
    /// Tools that the server lists and that were not found.
    pub(crate) unfound: Vec<String>,
    /// Tools that were found and that the server does not list.
    pub(crate) unlisted: Vec<String>,
    /// Whether a handler picks tools by names that are not in the source.
    pub(crate) picks: bool,
}

/// Follows every tool of a package, then whatever is left. `listed` are the tools that the server lists while it runs, if that is
/// known; `progress` is told how many tools of how many are done.
pub(crate) fn attribute(
    package: &Package<'_>,
    listed: Option<&[String]>,
    progress: &dyn Fn(usize, usize),
) -> Attributed {
    let evaluator = Evaluator::new(package);
    let mut planned = plans(&evaluator);
    planned.without_doubles();
    let (unfound, unlisted) = listed.map(|listed| planned.add_listed(listed)).unwrap_or_default();
    let picks = planned.tools.is_empty() && !planned.dispatchers.is_empty();
    let Planned { tools: plans, lost, .. } = planned;
    let count = plans.len();
    let handlers: HashSet<ScopeId> =
        plans.iter().flat_map(|plan| &plan.handlers).filter_map(scope_of).collect();
    let mut seen_by_tools = HashSet::new();
    let mut tools = Vec::new();
    for (done, plan) in plans.into_iter().enumerate() {
        progress(done, count);
        let mut walk = Walk::new(&evaluator, &handlers, plan.others);
        for handler in &plan.handlers {
            walk.start(handler);
        }
        if plan.unresolved {
            let what = format!("the handler of `{}`", plan.name);
            walk.unknown(Reason::Alias, what, plan.unit, plan.extent);
        }
        seen_by_tools.extend(walk.visited.iter().copied());
        tools.push(Tool {
            name: plan.name,
            language: plan.language,
            place: place(plan.unit, plan.extent),
            declared: plan.declared,
            deeds: walk.finish(),
        });
    }
    let server = server(&evaluator, &handlers, &seen_by_tools, &tools, &lost);
    tools.sort_by(|a, b| a.place.cmp(&b.place).then_with(|| a.name.cmp(&b.name)));
    Attributed { tools, server, unfound, unlisted, picks }
}

/// What no tool does: files as they are loaded, and functions that no tool was seen to reach.
fn server(
    evaluator: &Evaluator<'_>,
    handlers: &HashSet<ScopeId>,
    seen: &HashSet<ScopeId>,
    tools: &[Tool],
    lost: &[Plan],
) -> Deeds {
    let mut walk = Walk::new(evaluator, handlers, BTreeSet::new());
    for plan in lost {
        walk.unknown(Reason::Alias, "the handler of `tools/call`".to_owned(), plan.unit, plan.extent);
    }
    for (index, unit) in evaluator.package.units().iter().enumerate() {
        walk.visit(&Frame { at: (index, 0), env: Rc::default() });
        for oddity in unit.oddities.iter().filter(|oddity| oddity.scope == 0) {
            walk.unknown(oddity.reason, oddity.what.clone(), index, oddity.extent);
        }
    }
    for (index, unit) in evaluator.package.units().iter().enumerate() {
        for scope in 1..unit.scopes.len() {
            let at = (index, scope);
            if !seen.contains(&at) && !walk.visited.contains(&at) && !handlers.contains(&at) {
                walk.visit(&Frame { at, env: Rc::default() });
            }
        }
    }
    let of_tools = tools.iter().flat_map(|tool| &tool.deeds.uses);
    let called =
        of_tools.filter_map(|one| one.call.rsplit_once('.')).map(|(class, _)| class.to_owned()).collect();
    let mut deeds = walk.finish_beside(called);
    let by_tools: BTreeSet<&CodeSpan> =
        tools.iter().flat_map(|tool| tool.deeds.uses.iter().map(Use::place)).collect();
    let unknown_to_tools: BTreeSet<&CodeSpan> =
        tools.iter().flat_map(|tool| tool.deeds.unknowns.iter().map(Unknown::place)).collect();
    deeds.uses.retain(|one| !by_tools.contains(&one.place));
    deeds.unknowns.retain(|one| !unknown_to_tools.contains(&one.place));
    deeds
}

/// The tools of a package.
#[derive(Default)]
struct Planned {
    tools: Vec<Plan>,
    /// Handlers of `tools/call` that can be followed.
    dispatchers: Vec<Plan>,
    /// Those that cannot.
    lost: Vec<Plan>,
}

fn plans(evaluator: &Evaluator<'_>) -> Planned {
    let mut planned = Planned::default();
    for (index, unit) in evaluator.package.units().iter().enumerate() {
        for site in &unit.tools {
            let frame = Frame { at: (index, site.scope), env: Rc::default() };
            let values = site.handlers.iter().map(|value| evaluator.value(&frame, value));
            let scopes = site.scopes.iter().map(|scope| Resolved::Function((index, *scope), None));
            let handlers: Vec<Resolved> = scopes.chain(values).collect();
            let named = name(evaluator, &frame, site);
            let plan = Plan {
                is_record: site.is_record,
                is_named: named.is_some(),
                name: named.unwrap_or_else(|| site.fallback.clone()),
                language: unit.language,
                unit: index,
                extent: site.extent,
                unresolved: !handlers.iter().any(|handler| scope_of(handler).is_some()),
                handlers,
                declared: site.declared.clone(),
                others: BTreeSet::new(),
            };
            if !site.dispatches {
                planned.tools.push(plan);
            } else if plan.unresolved {
                planned.lost.push(plan);
            } else {
                planned.tools.extend(dispatched(evaluator, &plan));
                planned.dispatchers.push(plan);
            }
        }
    }
    planned
}

fn name(evaluator: &Evaluator<'_>, frame: &Frame, site: &ToolSite) -> Option<String> {
    // `Tools.ADD.value` is the text that `ADD` is given.
    let bare = match &site.name {
        Value::Member(object, last) if last == "value" => object,
        other => other,
    };
    match evaluator.value(frame, bare) {
        Resolved::Text { text, whole: true } if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// One tool for each branch of a handler of `tools/call`. The handler itself is no tool: what one without branches does
/// is the server's.
fn dispatched(evaluator: &Evaluator<'_>, plan: &Plan) -> Vec<Plan> {
    let mut branches: BTreeMap<String, Vec<ScopeId>> = BTreeMap::new();
    let mut open: Vec<ScopeId> = plan.handlers.iter().filter_map(scope_of).collect();
    while let Some(at) = open.pop() {
        for inner in evaluator.package.inside(at) {
            let inner = (at.0, *inner);
            match evaluator.package.scope(inner).map(|scope| &scope.kind) {
                Some(ScopeKind::Branch(label)) => branches.entry(label.clone()).or_default().push(inner),
                Some(ScopeKind::Lambda) => open.push(inner),
                _ => {}
            }
        }
    }
    let all: BTreeSet<ScopeId> = branches.values().flatten().copied().collect();
    let one = |(label, own): (&String, &Vec<ScopeId>)| Plan {
        name: label.clone(),
        language: plan.language,
        unit: plan.unit,
        extent: own
            .first()
            .and_then(|at| evaluator.package.scope(*at))
            .map_or(plan.extent, |scope| scope.extent),
        handlers: plan.handlers.clone(),
        declared: plan.declared.clone(),
        others: all.iter().filter(|at| !own.contains(at)).copied().collect(),
        unresolved: false,
        is_record: false,
        is_named: true,
    };
    branches.iter().map(one).collect()
}

fn scope_of(resolved: &Resolved) -> Option<ScopeId> {
    if let Resolved::Function(at, _) = resolved { Some(*at) } else { None }
}

fn place(unit: usize, (start, end): (usize, usize)) -> CodeSpan {
    CodeSpan { file: unit, start, end, line: 0 }
}

/// One walk along calls.
struct Walk<'a> {
    evaluator: &'a Evaluator<'a>,
    handlers: &'a HashSet<ScopeId>,
    others: BTreeSet<ScopeId>,
    /// Ways that were followed or wait to be.
    ways: HashSet<Frame>,
    waiting: Vec<Frame>,
    visited: HashSet<ScopeId>,
    uses: BTreeMap<(CodeSpan, crate::report::UseKind, String), (Use, Option<String>)>,
    unknowns: BTreeMap<(CodeSpan, Reason), Unknown>,
    /// Packages that are already known to be called.
    dependencies: BTreeSet<String>,
}

impl<'a> Walk<'a> {
    fn new(evaluator: &'a Evaluator<'a>, handlers: &'a HashSet<ScopeId>, others: BTreeSet<ScopeId>) -> Self {
        Self {
            evaluator,
            handlers,
            others,
            ways: HashSet::new(),
            waiting: Vec::new(),
            visited: HashSet::new(),
            uses: BTreeMap::new(),
            unknowns: BTreeMap::new(),
            dependencies: BTreeSet::new(),
        }
    }

    /// Follows a handler.
    fn start(&mut self, handler: &Resolved) {
        if let Resolved::Function(at, this) = handler {
            let env = this.iter().map(|this| ((at.1, "this".to_owned()), (**this).clone())).collect();
            self.visit(&Frame { at: *at, env: Rc::new(env) });
        }
    }

    /// Follows a frame and everything it leads to.
    fn visit(&mut self, frame: &Frame) {
        self.enqueue(frame.clone());
        while let Some(frame) = self.waiting.pop() {
            self.scope(&frame);
        }
    }

    /// Notes a way to follow, unless it is known; past the limit, a way without what it says.
    fn enqueue(&mut self, frame: Frame) {
        let frame = if self.ways.len() < WAYS { frame } else { Frame { at: frame.at, env: Rc::default() } };
        self.visited.insert(frame.at);
        if self.ways.insert(frame.clone()) {
            self.waiting.push(frame);
        }
    }

    fn unknown(&mut self, reason: Reason, what: String, unit: usize, extent: (usize, usize)) {
        let place = place(unit, extent);
        self.unknowns.entry((place.clone(), reason)).or_insert(Unknown { reason, what, place });
    }

    /// What was found.
    fn finish(self) -> Deeds {
        self.finish_beside(BTreeSet::new())
    }

    /// The same; a client that was made counts only where none of its methods was called, here or elsewhere.
    fn finish_beside(self, mut called: BTreeSet<String>) -> Deeds {
        let own = self.uses.values().filter(|(_, latent)| latent.is_none());
        let classes = own.filter_map(|(one, _)| one.call.rsplit_once('.')).map(|(class, _)| class.to_owned());
        called.extend(classes);
        let counts = |latent: &Option<String>| latent.as_ref().is_none_or(|class| !called.contains(class));
        let uses = self.uses.values().filter(|(_, latent)| counts(latent)).map(|(one, _)| one.clone());
        Deeds { uses: uses.collect(), unknowns: self.unknowns.into_values().collect() }
    }
}
