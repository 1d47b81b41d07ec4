//! `bailiwick guard explain`: what every rule makes of one call.

use bailiwick_guard::Verdict;
use bailiwick_guardrails::{Found, GUARDRAILS, Look, Protected, ToolCall, fresh};
use bailiwick_policy::finding::Source;
use bailiwick_policy::guardrails::Action;
use serde_json::{Value, json};

use crate::answer::{Answer, Exit};
use crate::args::AnswerFormat;
use crate::args::guard::Explain;
use crate::facts;
use crate::render::{escape, json, style};

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
    let call = ToolCall::new(&args.tool, &params, rails.names());
    let history = fresh(rails);
    let workdir = args.dir.canonicalize().unwrap_or_else(|_| args.dir.clone());
    let state = facts::state_dir().unwrap_or_default();
    let protected = Protected::new(&workdir, rails.scripts(), &state, facts::home().as_deref());
    let built_in = protected.refuse(&call).map(Verdict::Deny);
    let judged = rails.judge(&call, &history);
    let (verdict, rule) = match built_in {
        Some(verdict) => (verdict, None),
        None => (judged.verdict, judged.rule),
    };
    let looks: Vec<Look> =
        rails.explain(&call, &history).into_iter().filter(|look| look.found != Found::OtherTool).collect();
    let exit = if verdict == Verdict::Allow { Exit::Fine } else { Exit::Found };
    let source = &good.source;
    let text = match args.format {
        AnswerFormat::Json => json::document(&document(&call, &verdict, rule, &looks, source)),
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
    if let Some(why) = call.reading().and_then(|reading| reading.opaque.as_ref()) {
        text += &format!("  hidden   {}\n", escape::line(why));
    }
    match rule.and_then(|rule| looks.iter().find(|look| look.rule == rule)) {
        Some(look) => text += &format!("  decided  {GUARDRAILS}:{}\n", source.place(look.span.start).line),
        None if *verdict == Verdict::Allow => text += "  decided  no rule is against it\n",
        None => text += "  decided  the built-in guard\n",
    }
    for look in looks {
        let line = source.place(look.span.start).line;
        text += &format!("  line {line:<4}{}\n", escape::line(&reason(look)));
    }
    text
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
