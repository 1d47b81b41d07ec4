//! What a person could do about a denial.

use bailiwick_journal::format::{Event, RecordKind};
use bailiwick_manifest::Manifest;
use bailiwick_policy::capability::Capability;
use bailiwick_policy::denial::DenialCode;
use bailiwick_policy::facts::HostFacts;

/// What would allow it, as far as the record says.
pub(super) struct Remedy {
    lines: Vec<Capability>,
    /// The lines in a manifest, if that is sound.
    manifest: Option<String>,
    advice: &'static str,
}

/// Denials that no capability would have prevented, and what would.
const ADVICE: [(DenialCode, &str); 18] = [
    (DenialCode::BudgetSpent, "start a session with a larger `max_calls`"),
    (DenialCode::FleetBudgetSpent, "ask an admin of the fleet for more, or wait until a hub can be reached"),
    (DenialCode::GenerationOver, "mint a grant that is good in the present generation"),
    (DenialCode::Revoked, "a person ended the grant; a new session needs a new one"),
    (DenialCode::GrantElsewhere, "use the grant with the registry that minted it"),
    (DenialCode::ToolForbidden, "declare the tool in the manifest, and without `constraints.forbidden`"),
    (DenialCode::ToolTooOften, "raise `constraints.max_invocations` of the tool, or start a new session"),
    (DenialCode::ToolTooEarly, "let the tools in `constraints.only_after` succeed first"),
    (DenialCode::ConsentMissing, "a person must consent to exactly this call"),
    (DenialCode::ArgumentUnreadable, "write the path so that it can be judged: clean and absolute"),
    (DenialCode::ArgumentTooDeep, "nest the arguments less deeply"),
    (DenialCode::InterceptorDenied, "the interceptor's own rules say what it accepts"),
    (DenialCode::InterceptorFailed, "mend the interceptor: while it fails, it refuses"),
    (DenialCode::RewriteLoop, "mend the interceptors: they rewrite what they rewrote"),
    (DenialCode::PathUnreadable, "write the path so that it can be judged: clean and absolute"),
    (DenialCode::PathChanged, "find out who changes the path while it is used"),
    (DenialCode::PathNotAFile, "name a plain file or a directory"),
    (DenialCode::RecordRefused, "make room for the journal: nothing runs unrecorded"),
];

const NO_GRANT: &str = "no grant that would allow it was recorded";
const UNKNOWN: &str = "a code that this version does not know";
const A_PERSON: &str = "a person decided";
const PASTE: &str = "the manifest must declare it and the session's grant cover it";
const FILES: &str = "the tool's `capabilities` must declare it, and its `policy.filesystem` if it has one";

impl Remedy {
    pub(super) fn for_event(event: &Event, code: Option<DenialCode>) -> Self {
        let recorded = event.capability().unwrap_or_default();
        // all or nothing: part of a grant would not allow it
        let lines: Vec<Capability> =
            recorded.lines().map(str::parse).collect::<Result<_, _>>().unwrap_or_default();
        let known = ADVICE.iter().find(|(known, _)| Some(*known) == code).map(|(_, advice)| *advice);
        let advice = match known {
            Some(advice) => advice,
            None if code == Some(DenialCode::ArgumentOutsidePolicy) && !lines.is_empty() => FILES,
            None if !lines.is_empty() => PASTE,
            None if event.kind() == RecordKind::ApprovalDecided => A_PERSON,
            None => NO_GRANT,
        };
        let manifest = event.tool().and_then(|tool| manifest(tool, &lines));
        Self { lines, manifest, advice }
    }

    /// The smallest grant, line by line.
    pub(super) fn lines(&self) -> &[Capability] {
        &self.lines
    }

    pub(super) fn manifest(&self) -> Option<&str> {
        self.manifest.as_deref()
    }

    pub(super) const fn advice(&self) -> &'static str {
        self.advice
    }

    pub(super) fn text(&self) -> String {
        let Some(manifest) = &self.manifest else { return format!("\n{}\n", self.advice) };
        format!("\nthe smallest grant that would allow it; {}:\n\n{manifest}", self.advice)
    }
}

/// What a denial without a code of its own means.
pub(super) fn meaning(event: &Event) -> &'static str {
    match (event.code(), event.kind()) {
        (Some("tool-not-found"), _) => "there is no tool of that name",
        (None, RecordKind::ApprovalDecided) => "a person was asked and did not consent",
        (Some(code), RecordKind::EgressDenied) => of_network(code).unwrap_or(UNKNOWN),
        _ => UNKNOWN,
    }
}

#[cfg(target_os = "linux")]
fn of_network(code: &str) -> Option<&'static str> {
    bailiwick_egress::Code::ALL.iter().find(|known| known.as_str() == code).map(|known| known.meaning())
}

/// The network is governed on Linux only.
#[cfg(not(target_os = "linux"))]
fn of_network(_: &str) -> Option<&'static str> {
    None
}

/// The lines as part of a manifest, if a manifest may hold them.
fn manifest(tool: &str, lines: &[Capability]) -> Option<String> {
    let lines: Vec<String> = lines.iter().map(|line| format!("  {},\n", quoted(&line.to_string()))).collect();
    let text = format!("[[tools]]\nname = {}\ncapabilities = [\n{}]\n", quoted(tool), lines.concat());
    let whole = format!("name = \"x\"\nversion = \"1\"\n\n{text}");
    let sound = Manifest::parse(&whole).is_ok_and(|manifest| manifest.check(&HostFacts::unknown()).is_ok());
    (sound && !lines.is_empty()).then_some(text)
}

/// A TOML string that shows nothing but what it says.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() || c == ' ' || c.is_alphanumeric();
    let one = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        _ if plain(c) => c.to_string(),
        _ => format!("\\U{:08X}", u32::from(c)),
    };
    format!("\"{}\"", text.chars().map(one).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_for_codes_that_exist_and_once() {
        let mut codes: Vec<_> = ADVICE.iter().map(|(code, _)| *code).collect();
        codes.sort();
        codes.dedup();
        assert_eq!(codes.len(), ADVICE.len());
    }

    #[test]
    fn a_grant_that_cannot_be_read_is_not_offered() {
        for text in ["", "exec:spawn:git\nnonsense", "fs:read:relative", "exec:spawn:a\"]\nx=["] {
            let event =
                Event::new(RecordKind::CapabilityDenied).with_tool("t").with_capability(text.to_owned());
            let remedy = Remedy::for_event(&event, Some(DenialCode::ExecNotGranted));
            assert!(remedy.lines().is_empty() && remedy.manifest().is_none(), "{text}");
        }
    }

    #[test]
    fn a_manifest_is_offered_only_if_it_is_sound() {
        let line: Capability = "exec:spawn:git".parse().unwrap();
        let lines = std::slice::from_ref(&line);
        assert!(manifest("shell", lines).is_some_and(|text| text.contains("\"exec:spawn:git\",\n")));
        assert_eq!(manifest("", lines), None);
        assert_eq!(manifest("shell", &[]), None);
        assert_eq!(quoted("a\u{1b}\"\\\u{e0041}"), "\"a\\U0000001B\\\"\\\\\\U000E0041\"");
    }
}
