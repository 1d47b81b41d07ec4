//! Rules that do not do what their author thinks: targets nothing can be, examples that say otherwise.

use crate::rules_file::{AGENT_SERVER, Guardrails, Pattern, Subject, Target};
use bailiwick_policy::finding::{Code, Finding, Span};
use serde_json::{Map, Value, json};

use super::call::{SHELL, ToolCall};
use super::history::History;
use super::rails::{Guard, Rails, Sight};
use super::tools::{AgentTool, listed, tools};

/// What is doubtful in guardrails that can be used.
#[must_use]
pub fn lint(written: &Guardrails, rails: &Rails) -> Vec<Finding> {
    let mut found: Vec<Finding> =
        written.targets().filter_map(|one| doubt(one.value, one.span, rails)).collect();
    found.extend(unseen_by_shell(written));
    for guard in &written.guards {
        for name in &guard.has {
            if !rails.names().is_known(&name.value) && !rails.names().is_server(&name.value) {
                let message = format!("`{}` is no capability or server that is known here", name.value);
                found.push(Finding::new(Code::GuardrailDeadTarget, message).at(name.span).help(known(rails)));
            }
        }
    }
    for text in rails.too_large() {
        found.push(
            Finding::new(Code::GuardrailRegex, format!("`{text}` is too large a pattern"))
                .help("write a shorter one"),
        );
    }
    found.sort_by_key(|finding| finding.span().map_or(0, |span| span.start));
    found
}

fn doubt(target: &Target, span: Span, rails: &Rails) -> Option<Finding> {
    let names = rails.names();
    if let Subject::Capability(name) = &target.subject
        && !names.is_known(name)
    {
        let message =
            format!("nothing is known to be of the capability `{name}`, so `{target}` matches no call");
        return Some(Finding::new(Code::GuardrailDeadTarget, message).at(span).help(known(rails)));
    }
    let Pattern::Argument { name: argument, .. } = &target.pattern else { return None };
    let of_target: Vec<&AgentTool> = tools().iter().filter(|tool| is_named(target, tool, rails)).collect();
    let without: Vec<&AgentTool> =
        of_target.iter().copied().filter(|tool| !tool.has_argument(argument)).collect();
    let dead = match &target.subject {
        Subject::Capability(name) => names.has_argument(name, argument) == Some(false),
        Subject::Tool { .. } => !of_target.is_empty() && without.len() == of_target.len(),
        Subject::Any | Subject::Classes(_) => return None,
    };
    let help =
        "a missing argument counts as an empty text; name another, or leave the name out to search all";
    if dead {
        let message = format!("no known tool of `{}` has an argument `{argument}`", target.subject);
        return Some(Finding::new(Code::GuardrailDeadArgument, message).at(span).help(help));
    }
    (!without.is_empty()).then(|| {
        let message = format!("`{target}` is not matched on {}", listed(without));
        let help = format!("they have no argument like `{argument}`: {help}");
        Finding::new(Code::GuardrailPartialArgument, message).at(span).help(help)
    })
}

/// Whether a target is about a tool of an agent.
fn is_named(target: &Target, tool: &AgentTool, rails: &Rails) -> bool {
    match &target.subject {
        Subject::Capability(name) => rails.names().capability(AGENT_SERVER, tool.name) == Some(name),
        Subject::Tool { server, tool: named } => {
            server == AGENT_SERVER && named.as_deref() == Some(tool.name)
        }
        Subject::Any | Subject::Classes(_) => false,
    }
}

/// A file whose rules look at the tools that read files, and nowhere at what the shell reads: every agent can read with its
/// shell, and Codex does nothing else.
fn unseen_by_shell(written: &Guardrails) -> Option<Finding> {
    let is_of = |target: &Target, name: &str| target.subject == Subject::Capability(name.to_owned());
    let reading = written.guards.iter().find(|guard| is_of(&guard.target.value, "filesystem-read"))?;
    let shell = |target: &Target| {
        matches!(target.subject, Subject::Any | Subject::Classes(_)) || is_of(target, SHELL)
    };
    if written.guards.iter().any(|guard| shell(&guard.target.value)) {
        return None;
    }
    let message = format!("`{}` does not see files that are read with the shell", reading.target.value);
    let help = "add a rule on the shell, or a class such as `reads(secret)`, which holds for both";
    Some(Finding::new(Code::GuardrailShellUnseen, message).at(reading.target.span).help(help))
}

fn known(rails: &Rails) -> String {
    let mut names: Vec<&str> = rails.names().capabilities().collect();
    names.sort_unstable();
    names.dedup();
    format!("known are {}; map tools to others in `[capabilities]`", names.join(", "))
}

/// Every example that its rule does not do, and how many were tried.
#[must_use]
pub fn test_examples(rails: &Rails) -> (usize, Vec<Finding>) {
    let (mut tried, mut found) = (0, Vec::new());
    for guard in &rails.guards {
        let cases = guard.examples.block.iter().map(|one| (one, true));
        for (example, fires) in cases.chain(guard.examples.allow.iter().map(|one| (one, false))) {
            tried += 1;
            if fires_on(guard, &example.value, rails) != fires {
                let (did, should) = if fires { ("lets pass", "block") } else { ("stops", "allow") };
                let message = format!(
                    "the rule `{}` {did} `{}`, an example of `{should}`",
                    guard.matcher.target, example.value
                );
                found.push(
                    Finding::new(Code::GuardrailExample, message)
                        .at(example.span)
                        .help("change the rule or the example"),
                );
            }
        }
    }
    (tried, found)
}

/// Whether a rule's target is in an example: its conditions on the session aside.
fn fires_on(guard: &Guard, example: &str, rails: &Rails) -> bool {
    let params = example_params(guard, example);
    let (server, tool) = example_tool(guard, &params, rails);
    let call = ToolCall::on_server(&server, &tool, &params, rails.names());
    let hidden =
        guard.matcher.reads_shell(&call) && call.reading().is_some_and(|reading| reading.opaque.is_some());
    hidden || guard.matcher.matches(&call, Sight::Rule).unwrap_or(true)
}

/// A tool that the rule is about.
fn example_tool(guard: &Guard, params: &Value, rails: &Rails) -> (String, String) {
    match &guard.matcher.target.subject {
        Subject::Tool { server, tool } => {
            (server.clone(), tool.clone().unwrap_or_else(|| "example".to_owned()))
        }
        Subject::Classes(_) if params.get("command").is_none() => {
            let writes = params.get("content").is_some();
            ("agent".to_owned(), if writes { "Write" } else { "Read" }.to_owned())
        }
        Subject::Any | Subject::Classes(_) => ("agent".to_owned(), "Bash".to_owned()),
        Subject::Capability(name) => {
            rails.names().example(name).unwrap_or_else(|| ("agent".to_owned(), name.clone()))
        }
    }
}

/// An example is the arguments as JSON, or the text of the argument that the rule looks at.
fn example_params(guard: &Guard, example: &str) -> Value {
    if let Ok(value @ Value::Object(_)) = serde_json::from_str(example) {
        return value;
    }
    let name = match (&guard.matcher.target.pattern, &guard.matcher.target.subject) {
        (Pattern::Argument { name, .. }, _) => name.as_str(),
        (Pattern::None | Pattern::Whole(_), Subject::Capability(name)) if name == SHELL => "command",
        (Pattern::None, Subject::Classes(_)) => "command",
        (Pattern::None | Pattern::Whole(_), _) => return json!({ "text": example }),
    };
    Value::Object(Map::from_iter([(name.to_owned(), Value::from(example))]))
}

/// A history in which everything that agents have is there.
#[must_use]
pub fn fresh(rails: &Rails) -> History {
    let mut history = History::new(rails.counted.len());
    super::names::Names::of_agents().for_each(|name| history.load(name));
    history
}
