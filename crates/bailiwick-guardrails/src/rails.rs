//! Guardrails ready to judge: targets with their patterns, conditions numbered so that a session can count them.

use crate::rules_file::{
    Action, Condition, Examples, Guardrails, On, Pattern as Written, Subject, Target,
    Validator as WrittenValidator,
};
use bailiwick_policy::finding::{Code, Finding, Span};

use super::call::{SHELL, ToolCall};
use super::history::History;
use super::names::Names;
use super::pattern::{Pattern, TooLarge};

/// Compiled guardrails.
#[derive(Debug)]
pub struct Rails {
    names: Names,
    pub(crate) guards: Vec<Guard>,
    pub(crate) hooks: Vec<Hook>,
    pub(crate) validators: Vec<Validator>,
    /// Every target that a condition names, once.
    pub(crate) counted: Vec<Matcher>,
    scripts: Vec<String>,
}

/// A target that can be matched.
#[derive(Debug)]
pub(crate) struct Matcher {
    pub(crate) target: Target,
    pattern: Option<Pattern>,
}

/// A condition on what happened before: a counted target, and what must be true of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) counted: usize,
    pub(crate) present: bool,
    pub(crate) succeeded: bool,
}

#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) matcher: Matcher,
    pub(crate) has: Vec<String>,
    pub(crate) when: Vec<Expected>,
    pub(crate) message: String,
    pub(crate) action: Action,
    pub(crate) examples: Examples,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) matcher: Option<Matcher>,
    pub(crate) result: Option<Pattern>,
    pub(crate) on: On,
    pub(crate) script: String,
}

#[derive(Debug)]
pub(crate) struct Validator {
    pub(crate) written: WrittenValidator,
    pub(crate) text: Option<Pattern>,
    pub(crate) when: Vec<Expected>,
}

/// How a target is looked for in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// As a rule: the raw texts and every command.
    Rule,
    /// As history: the commands only, where there are any.
    History,
}

impl Rails {
    /// Compiles what a file says.
    ///
    /// # Errors
    /// A finding for every pattern that is none.
    pub fn compile(written: &Guardrails) -> Result<Self, Vec<Finding>> {
        Self::compiled(written, false)
    }

    /// The same; `checked_before` says that these very rules were compiled before, so that no pattern is checked again.
    pub(crate) fn compiled(written: &Guardrails, checked_before: bool) -> Result<Self, Vec<Finding>> {
        let mut compiler = Compiler { checked_before, ..Compiler::default() };
        let guards = written.guards.iter().filter_map(|guard| {
            Some(Guard {
                matcher: compiler.matcher(&guard.target.value, guard.target.span)?,
                has: guard.has.iter().map(|name| name.value.clone()).collect(),
                when: compiler.conditions(&guard.when),
                message: guard.message.clone(),
                action: guard.action,
                examples: guard.examples.clone(),
                span: guard.span,
            })
        });
        let guards = guards.collect();
        let hooks = written.hooks.iter().filter_map(|hook| {
            let matcher = match &hook.target {
                Some(target) => Some(compiler.matcher(&target.value, target.span)?),
                None => None,
            };
            let result = hook.result.as_ref().and_then(|text| compiler.pattern(&text.value, text.span));
            Some(Hook { matcher, result, on: hook.on, script: hook.script.value.clone() })
        });
        let hooks = hooks.collect();
        let validators = written.validators.iter().map(|validator| Validator {
            text: validator.text.as_ref().and_then(|text| compiler.pattern(&text.value, text.span)),
            when: compiler.conditions(&validator.when),
            written: validator.clone(),
        });
        let validators = validators.collect();
        if !compiler.found.is_empty() {
            return Err(compiler.found);
        }
        let names = Names::new(&written.capabilities);
        let scripts = written.scripts().map(|script| script.value.clone()).collect();
        Ok(Self { names, guards, hooks, validators, counted: compiler.counted, scripts })
    }

    /// No rules at all.
    #[must_use]
    pub fn none() -> Self {
        let (guards, hooks, validators) = (Vec::new(), Vec::new(), Vec::new());
        Self { names: Names::default(), guards, hooks, validators, counted: Vec::new(), scripts: Vec::new() }
    }

    /// What its tools count as.
    #[must_use]
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// The scripts it names, relative to the working directory.
    #[must_use]
    pub fn scripts(&self) -> &[String] {
        &self.scripts
    }

    /// Compiles every pattern now, and says which cannot be.
    #[must_use]
    pub fn too_large(&self) -> Vec<String> {
        let matchers = self.guards.iter().map(|guard| &guard.matcher).chain(&self.counted);
        let of_hooks = self.hooks.iter().flat_map(|hook| {
            hook.matcher.as_ref().and_then(|one| one.pattern.as_ref()).into_iter().chain(&hook.result)
        });
        let of_validators = self.validators.iter().filter_map(|validator| validator.text.as_ref());
        let all =
            matchers.filter_map(|matcher| matcher.pattern.as_ref()).chain(of_hooks).chain(of_validators);
        all.filter_map(|pattern| pattern.compiled().err()).map(|TooLarge(text)| text).collect()
    }

    /// Admits a call to a session's past, for those who run calls themselves; its number, for [`History::end`].
    /// `None` if a pattern is too large to tell what it counts as.
    #[must_use]
    pub fn admit(&self, call: &ToolCall<'_>, history: &mut History) -> Option<u64> {
        let matched = self.matched(call).ok()?;
        Some(history.admit(&call.id(), call.id(), matched))
    }

    /// Whether a rule names a class of what calls do.
    pub(crate) fn names_classes(&self) -> bool {
        let guards = self.guards.iter().map(|guard| &guard.matcher);
        let mut all = guards.chain(&self.counted);
        all.any(|matcher| matches!(matcher.target.subject, Subject::Classes(_)))
    }

    /// Which counted targets a call is one of.
    pub(crate) fn matched(&self, call: &ToolCall<'_>) -> Result<Vec<usize>, TooLarge> {
        let mut matched = Vec::new();
        for (index, matcher) in self.counted.iter().enumerate() {
            if matcher.matches(call, Sight::History)? {
                matched.push(index);
            }
        }
        Ok(matched)
    }
}

impl Matcher {
    /// Whether the call is one of the target's.
    pub(crate) fn matches(&self, call: &ToolCall<'_>, sight: Sight) -> Result<bool, TooLarge> {
        if !self.is_about(call) {
            return Ok(false);
        }
        if let Subject::Classes(classes) = &self.target.subject {
            return Ok(call.effects().iter().any(|effect| classes.contains(&effect.class)));
        }
        let Some(pattern) = &self.pattern else { return Ok(true) };
        let commands =
            call.commands().filter(|one| !one.reading.commands.is_empty() || one.reading.opaque.is_none());
        let raw = sight == Sight::Rule || commands.is_none();
        let (in_raw, in_commands) = match &self.target.pattern {
            Written::None => return Ok(true),
            Written::Whole(_) => (raw && pattern.is_match_any(call.searched_json())?, true),
            Written::Argument { name, .. } => {
                let of_shell = ToolCall::is_shell_argument(name);
                let raw = raw || !of_shell;
                (raw && pattern.is_match_any(&call.argument_texts(name))?, of_shell)
            }
        };
        if in_raw || !in_commands {
            return Ok(in_raw);
        }
        let Some(commands) = commands.filter(|commands| pattern.may_match(&commands.all)) else {
            return Ok(false);
        };
        for command in &commands.reading.commands {
            let orders = if sight == Sight::Rule { command.variants.len() } else { 1 };
            for text in std::iter::once(&command.plain).chain(command.variants.iter().take(orders)) {
                if pattern.is_match(text)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether the call is of the tools that the target names.
    pub(crate) fn is_about(&self, call: &ToolCall<'_>) -> bool {
        match &self.target.subject {
            Subject::Any => true,
            Subject::Classes(_) => {
                matches!(call.capability(), Some(SHELL | "filesystem-read" | "filesystem-write"))
            }
            Subject::Capability(name) => call.capability() == Some(name),
            Subject::Tool { server, tool } => call.is_of(server, tool.as_deref()),
        }
    }

    /// Whether the target names the shell and looks at what it runs.
    pub(crate) fn reads_shell(&self, call: &ToolCall<'_>) -> bool {
        let looks = match &self.target.pattern {
            Written::None => matches!(self.target.subject, Subject::Classes(_)),
            Written::Whole(_) => true,
            Written::Argument { name, .. } => ToolCall::is_shell_argument(name),
        };
        looks && self.target.subject != Subject::Any && self.is_about(call)
    }
}

#[derive(Default)]
struct Compiler {
    checked_before: bool,
    counted: Vec<Matcher>,
    found: Vec<Finding>,
}

impl Compiler {
    fn pattern(&mut self, text: &str, span: Span) -> Option<Pattern> {
        if self.checked_before {
            return Some(Pattern::checked_before(text));
        }
        match Pattern::new(text) {
            Ok(pattern) => Some(pattern),
            Err(why) => {
                let finding = Finding::new(
                    Code::GuardrailRegex,
                    format!("`{text}` is not a regular expression: {why}"),
                );
                self.found.push(finding.at(span).help("see https://docs.rs/regex for the syntax; `\\` is `\\\\` in a TOML string with double quotes"));
                None
            }
        }
    }

    fn matcher(&mut self, target: &Target, span: Span) -> Option<Matcher> {
        let pattern = match target.regex() {
            Some(regex) => Some(self.pattern(regex, span)?),
            None => None,
        };
        Some(Matcher { target: target.clone(), pattern })
    }

    fn conditions(&mut self, conditions: &[Condition]) -> Vec<Expected> {
        let mut expected = Vec::new();
        for condition in conditions {
            let known = self.counted.iter().position(|matcher| matcher.target == condition.target);
            let counted = match known {
                Some(counted) => Some(counted),
                None => self.matcher(&condition.target, condition.span).map(|matcher| {
                    self.counted.push(matcher);
                    self.counted.len() - 1
                }),
            };
            let Some(counted) = counted else { continue };
            expected.push(Expected { counted, present: condition.present, succeeded: condition.succeeded });
        }
        expected
    }
}
