//! Judging one call: every rule is looked at, the strictest verdict wins, the first rule with it gives the message.
//!
//! Pure: rules, call and history in, judgement out. Fails closed when a pattern turns out too large, or a shell text
//! that a rule looks at hides what it runs: the first denies, the second asks.

use crate::rules_file::Action;
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::finding::Span;

use super::call::ToolCall;
use super::history::History;
use super::pattern::TooLarge;
use super::rails::{Guard, Rails, Sight};
use crate::verdict::Verdict;

/// What the model is told in front of a rule's message.
const MARK: &str = "[guardrail]";

/// What becomes of a call, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// What becomes of it.
    pub verdict: Verdict,
    /// The rule that decided, by its number from 0.
    pub rule: Option<usize>,
}

/// Why one rule did or did not fire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Its number from 0.
    pub rule: usize,
    /// Where it stands.
    pub span: Span,
    /// Its target.
    pub target: String,
    /// What it would do.
    pub action: Action,
    /// How far it got.
    pub found: Found,
}

/// How far a rule got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It is about other tools.
    OtherTool,
    /// Its pattern is not in the call.
    NoMatch,
    /// Something it needs is not loaded.
    NotLoaded(String),
    /// A condition on the past does not hold.
    PastDiffers(String),
    /// It fires.
    Fires,
    /// It looks at shell text that hides what it runs, and so asks.
    Hidden(String),
    /// Its pattern is too large to use.
    TooLarge,
}

impl Rails {
    /// Judges a call. Changes nothing.
    #[must_use]
    pub fn judge(&self, call: &ToolCall<'_>, history: &History) -> Judgement {
        let mut decided = Judgement { verdict: Verdict::Allow, rule: None };
        for (rule, guard) in self.guards.iter().enumerate() {
            let verdict = match self.look(guard, call, history) {
                Found::Fires => fired(guard),
                Found::Hidden(why) => Verdict::Ask(format!("{MARK} the shell text cannot be judged: {why}")),
                Found::TooLarge => {
                    let message = format!("{MARK} the pattern of rule {} is too large to be used", rule + 1);
                    Verdict::Deny(Denial::new(DenialCode::GuardrailBroken, message))
                }
                Found::OtherTool | Found::NoMatch | Found::NotLoaded(_) | Found::PastDiffers(_) => continue,
            };
            if stricter(&verdict, &decided.verdict) {
                decided = Judgement { verdict, rule: Some(rule) };
            }
        }
        decided
    }

    /// What every rule makes of a call.
    #[must_use]
    pub fn explain(&self, call: &ToolCall<'_>, history: &History) -> Vec<Look> {
        let look = |(rule, guard): (usize, &Guard)| Look {
            rule,
            span: guard.span,
            target: guard.matcher.target.to_string(),
            action: guard.action,
            found: self.look(guard, call, history),
        };
        self.guards.iter().enumerate().map(look).collect()
    }

    fn look(&self, guard: &Guard, call: &ToolCall<'_>, history: &History) -> Found {
        if !guard.matcher.is_about(call) {
            return Found::OtherTool;
        }
        let matched = match guard.matcher.matches(call, Sight::Rule) {
            Ok(matched) => matched,
            Err(TooLarge(_)) => return Found::TooLarge,
        };
        let hidden = || call.reading().and_then(|reading| reading.opaque.clone());
        let hidden = if matched || !guard.matcher.reads_shell(call) { None } else { hidden() };
        if !matched && hidden.is_none() {
            return Found::NoMatch;
        }
        if let Some(missing) = guard.has.iter().find(|name| !history.is_loaded(name)) {
            return Found::NotLoaded(missing.clone());
        }
        if let Some(failed) = guard.when.iter().find(|expected| !history.holds(**expected, 0)) {
            return Found::PastDiffers(self.described(*failed));
        }
        hidden.map_or(Found::Fires, Found::Hidden)
    }

    fn described(&self, expected: super::rails::Expected) -> String {
        let target =
            self.counted.get(expected.counted).map(|matcher| matcher.target.to_string()).unwrap_or_default();
        let sign = if expected.present { '+' } else { '-' };
        let mark = if expected.succeeded { "ok:" } else { "" };
        format!("{sign}{mark}{target}")
    }
}

fn fired(guard: &Guard) -> Verdict {
    let message = format!("{MARK} {}", guard.message);
    match guard.action {
        Action::Ask => Verdict::Ask(message),
        Action::Block => Verdict::Deny(Denial::new(DenialCode::GuardrailBlocked, message)),
    }
}

fn stricter(new: &Verdict, old: &Verdict) -> bool {
    let rank = |verdict: &Verdict| match verdict {
        Verdict::Allow | Verdict::Rewrite(_) => 0,
        Verdict::Ask(_) => 1,
        Verdict::Deny(_) => 2,
    };
    rank(new) > rank(old)
}
