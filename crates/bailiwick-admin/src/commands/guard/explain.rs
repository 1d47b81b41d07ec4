//! `bailiwick guard explain`: what every rule makes of one call.

use std::path::Path;
use std::time::Instant;

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::facts;
use bailiwick_command::render::{escape, json, style};
use bailiwick_guardrails::Verdict;
use bailiwick_guardrails::rules_file::Action;
use bailiwick_guardrails::{Found, GUARDRAILS, Look, Protected, ToolCall, fresh};
use bailiwick_policy::finding::Source;
use bailiwick_shell::classes::Setting;
use serde_json::{Value, json};

use crate::args::guard::Explain;

/// How much of a rule's target is shown.
const MAX_TARGET: usize = 48;

pub(super) fn run(args: &Explain) -> Answer {
    let good = match super::load(&args.dir) {
        Ok(good) => good,
        Err(useless) => return useless.refusal(),
    };
    let params = match serde_json::from_str(&args.arguments) {
        Ok(value @ Value::Object(_)) => value,
        Ok(_) | Err(_) => json!({"command": args.arguments}),
    };
    let rails = &good.rails;
    let history = fresh(rails);
    let workdir = args.dir.canonicalize().unwrap_or_else(|_| args.dir.clone());
    let state = facts::state_dir().unwrap_or_default();
    let home = facts::home();
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    let at_home = home.as_deref().map_or_else(|| "/root".to_owned(), shown);
    let protected = Protected::new(&workdir, rails.scripts(), &state, home.as_deref());
    let since = Instant::now();
    let call = ToolCall::new(&args.tool, &params, rails.names());
    call.stands(Setting::new(&shown(&workdir), &shown(&workdir), &at_home));
    let built_in = protected.refuse(&call).map(Verdict::Deny);
    let judged = rails.judge(&call, &history);
    let took = since.elapsed();
    let (verdict, rule) = match built_in {
        Some(verdict) => (verdict, None),
        None => (judged.verdict, judged.rule),
    };
    let looks: Vec<Look> =
        rails.explain(&call, &history).into_iter().filter(|look| look.found != Found::OtherTool).collect();
    let exit = if verdict == Verdict::Allow { Exit::Fine } else { Exit::Found };
    let source = &good.source;
    let text = match args.format {
        AnswerFormat::Json => {
            let mut document = document(&call, &verdict, rule, &looks, source);
            if let Some(fields) = document.as_object_mut() {
                fields.insert("judged_us".to_owned(), json!(took.as_secs_f64() * 1e6));
            }
            json::document(&document)
        }
        AnswerFormat::Text => text(&call, &verdict, rule, &looks, source),
    };
    Answer::result(exit, text)
}

fn text(
    call: &ToolCall<'_>,
    verdict: &Verdict,
    rule: Option<usize>,
    looks: &[Look],
    source: &Source,
) -> String {
    let (word, why) = spelt(verdict);
    let word = if *verdict == Verdict::Allow { style::good(word) } else { style::error(word) };
    let mut text = match why {
        Some(why) => format!("{word}: {}\n", escape::line(&why)),
        None => format!("{word}\n"),
    };
    text += &format!(
        "  call     {}, {}\n",
        escape::line(&call.id()),
        escape::line(call.capability().unwrap_or("of no capability"))
    );
    for command in call.reading().iter().flat_map(|reading| &reading.commands) {
        text += &format!("  runs     {}\n", escape::line(&command.plain));
    }
    for effect in call.effects() {
        text += &format!("  does     {}: {}\n", effect.class, escape::line(&effect.what));
    }
    if let Some(why) = call.reading().and_then(|reading| reading.opaque.as_ref()) {
        text += &format!("  hidden   {}\n", escape::line(why));
    }
    match rule.and_then(|rule| looks.iter().find(|look| look.rule == rule)) {
        Some(look) => text += &format!("  decided  {}\n", named(look, source)),
        None if *verdict == Verdict::Allow => text += "  decided  no rule is against it\n",
        None => text += "  decided  the built-in guard\n",
    }
    for look in looks {
        text += &format!("  rule     {}: {}\n", named(look, source), escape::line(&reason(look)));
    }
    text
}

/// A rule by what it is about, and where it stands.
fn named(look: &Look, source: &Source) -> String {
    let short: String = look.target.chars().take(MAX_TARGET).collect();
    let cut = if short.len() < look.target.len() { "…" } else { "" };
    format!("`{}{cut}` ({GUARDRAILS}:{})", escape::line(&short), source.place(look.span.start).line)
}

fn document(
    call: &ToolCall<'_>,
    verdict: &Verdict,
    rule: Option<usize>,
    looks: &[Look],
    source: &Source,
) -> Value {
    let (word, why) = spelt(verdict);
    let look = |look: &Look| {
        json!({
            "rule": look.rule + 1,
            "line": source.place(look.span.start).line,
            "target": look.target,
            "action": action(look.action),
            "found": reason(look),
            "fires": matches!(look.found, Found::Fires | Found::Hidden(_) | Found::TooLarge),
        })
    };
    let commands: Vec<&str> =
        call.reading().iter().flat_map(|reading| &reading.commands).map(|one| one.plain.as_str()).collect();
    json!({
        "format": "bailiwick.guard-explain/1",
        "verdict": word,
        "message": why,
        "rule": rule.map(|rule| rule + 1),
        "tool": call.id(),
        "capability": call.capability(),
        "commands": commands,
        "classes": call.effects().iter().map(|effect| effect.class.to_string()).collect::<Vec<_>>(),
        "hidden": call.reading().and_then(|reading| reading.opaque.clone()),
        "rules": looks.iter().map(look).collect::<Vec<_>>(),
    })
}

fn spelt(verdict: &Verdict) -> (&'static str, Option<String>) {
    match verdict {
        Verdict::Allow | Verdict::Rewrite(_) => ("allow", None),
        Verdict::Ask(question) => ("ask", Some(question.clone())),
        Verdict::Deny(denial) => ("block", Some(denial.message().to_owned())),
    }
}

fn reason(look: &Look) -> String {
    let action = action(look.action);
    match &look.found {
        Found::OtherTool => "is about other tools".to_owned(),
        Found::NoMatch => "does not match".to_owned(),
        Found::NotLoaded(name) => format!("matches, but `{name}` is not loaded"),
        Found::PastDiffers(condition) => format!("matches, but `{condition}` does not hold"),
        Found::Fires => format!("fires: {action}"),
        Found::Hidden(why) => format!("asks: {why}"),
        Found::TooLarge => "its pattern is too large: blocks".to_owned(),
    }
}

const fn action(action: Action) -> &'static str {
    match action {
        Action::Ask => "ask",
        Action::Block => "block",
    }
}
