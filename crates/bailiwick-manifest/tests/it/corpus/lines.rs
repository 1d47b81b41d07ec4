//! Capabilities, one case a line: `TEXT ⇒ code @start..end | message | help` and `TEXT ⇒ CANONICAL`.
//!
//! One space stands on either side of `⇒`. In TEXT a backslash escapes: `\n`, `\t`, `\\`, `\u{0}`. Lines that
//! start with `#` are for people.

use bailiwick_policy::capability::{Capability, MAX_CAPABILITY};
use bailiwick_policy::finding::{Code, Finding};
use bailiwick_policy::path::{MAX_GLOB_PARTS, MAX_PATH};

use super::{Seen, directory, files, updating};

const ARROW: &str = " ⇒";

/// Every text must be refused, with this code, place, message and help.
pub(super) fn invalid() -> Seen {
    run("capability.invalid", |text, seen| {
        let Err(finding) = text.parse::<Capability>() else {
            return Err("this is read without a finding".to_owned());
        };
        seen.invalid += 1;
        seen.codes.insert(finding.code());
        let span = finding.span().ok_or("the finding has no place")?;
        if span.start > span.end || text.get(span.start..span.end).is_none() {
            return Err(format!("the place {span:?} is not in the text"));
        }
        describe(&finding).map(|what| format!("{} @{}..{} | {what}", finding.code(), span.start, span.end))
    })
}

/// Every text must be read, and mean what its canonical text means.
pub(super) fn valid() -> Seen {
    run("capability.valid", |text, seen| {
        let read: Capability = text.parse().map_err(|finding: Finding| finding.to_string())?;
        seen.valid += 1;
        let printed = read.to_string();
        let again: Capability = printed.parse().map_err(|finding| format!("`{printed}`: {finding}"))?;
        if again != read || again.to_string() != printed {
            return Err(format!("`{printed}` reads back as `{again}`"));
        }
        Ok(escape(&printed))
    })
}

/// Message and help as `message | help`; both one line, lower case first, no full stop.
pub(super) fn describe(finding: &Finding) -> Result<String, String> {
    let message = finding.message();
    let help = finding.help_text().ok_or_else(|| format!("`{finding}` does not help"))?;
    for text in [message, help] {
        if text.is_empty() || text.ends_with('.') || text.chars().any(char::is_control) {
            return Err(format!("`{}` is not one plain line without a full stop", text.escape_debug()));
        }
        if text.chars().count() > 700 {
            return Err(format!("a line of {} characters is unreadable", text.chars().count()));
        }
        if text.starts_with(|c: char| c.is_ascii_uppercase())
            && !["IPv6", "JSON", "TOML"].iter().any(|word| text.starts_with(word))
        {
            return Err(format!("`{text}` starts with a capital letter"));
        }
    }
    Ok(format!("{message} | {help}"))
}

/// Compares every line of a file with what `say` answers for its text, or rewrites the file.
fn run(name: &str, say: impl Fn(&str, &mut Seen) -> Result<String, String>) -> Seen {
    let _held = files();
    let path = directory().join(name);
    let file = std::fs::read_to_string(&path).unwrap();
    let mut seen = Seen::default();
    let mut texts = std::collections::BTreeSet::new();
    let mut rewritten = String::new();
    for (index, line) in file.lines().enumerate() {
        let Some((left, _)) = line.split_once(ARROW).filter(|_| !line.starts_with('#')) else {
            rewritten.push_str(line);
            rewritten.push('\n');
            if !(line.is_empty() || line.starts_with('#')) {
                seen.wrong.push(format!("{name}:{}: no `⇒` in `{line}`", index + 1));
            }
            continue;
        };
        let text = unescape(left);
        if !texts.insert(text.clone()) {
            seen.wrong.push(format!("{name}:{}: `{left}` is there twice", index + 1));
        }
        let said = say(&text, &mut seen);
        let expected = said.as_ref().map_or_else(|_| line.to_owned(), |said| format!("{left}{ARROW} {said}"));
        match said {
            Err(why) => seen.wrong.push(format!("{name}:{}: {left}: {why}", index + 1)),
            Ok(_) if line != expected && !updating() => {
                seen.wrong.push(format!("{name}:{}:\n-{line}\n+{expected}", index + 1));
            }
            Ok(_) => {}
        }
        rewritten.push_str(&expected);
        rewritten.push('\n');
    }
    if updating() && rewritten != file {
        std::fs::write(&path, rewritten).unwrap();
    }
    seen
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        out.push_str(before);
        let mut chars = escape.chars();
        let c = match chars.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('\\') => '\\',
            Some('u') => {
                let (hex, tail) = chars.as_str().trim_start_matches('{').split_once('}').unwrap();
                chars = tail.chars();
                char::from_u32(u32::from_str_radix(hex, 16).unwrap()).unwrap()
            }
            other => panic!("`\\{other:?}` is no escape in `{text}`"),
        };
        out.push(c);
        rest = chars.as_str();
    }
    out + rest
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
}

/// Texts too long to store: each limit, just beyond.
pub(super) fn long() -> Seen {
    let labels = |count: usize| vec!["a".repeat(60); count].join(".");
    let cases = [
        ("x".repeat(MAX_CAPABILITY + 1), Code::CapTooLong),
        (format!("fs:read:/{}", "a".repeat(MAX_CAPABILITY)), Code::CapTooLong),
        (format!("fs:read:/{}", "a".repeat(MAX_PATH)), Code::PathTooLong),
        (format!("fs:read:{}", "/a".repeat(MAX_PATH / 2 + 1)), Code::PathTooLong),
        (format!("fs:read:{}", "/*".repeat(MAX_GLOB_PARTS + 1)), Code::PathTooManyGlobs),
        (format!("fs:read:/a{}", "/**/b".repeat(MAX_GLOB_PARTS / 2 + 1)), Code::PathTooManyGlobs),
        (format!("net:connect:{}.test", "a".repeat(64)), Code::HostInvalid),
        (format!("net:connect:{}.test", labels(5)), Code::HostInvalid),
        (format!("net:connect:{}.test", "ü".repeat(64)), Code::HostIdna),
        (format!("net:connect:a.test:{}", "1".repeat(1000)), Code::PortInvalid),
        (format!("exec:spawn:{}", "a".repeat(256)), Code::ExecName),
        (format!("exec:spawn:/{}", "a".repeat(MAX_PATH)), Code::PathTooLong),
        (format!("env:inject:{}", "A".repeat(256)), Code::EnvName),
        (format!("assert:{}", "a".repeat(129)), Code::AssertId),
        (format!("assert:a:{}", "a".repeat(5000)), Code::AssertQuote),
        (format!("fs:{}:/a", "read,".repeat(1000)), Code::CapActionDuplicate),
        (format!("{}:read:/a", "f".repeat(5000)), Code::CapUnknownKind),
        (format!("net:https:GET@https://a.test/{}", "a".repeat(MAX_PATH)), Code::PathTooLong),
        (format!("ipc:connect:unix:/{}", "a".repeat(MAX_PATH)), Code::IpcPath),
        (format!("net:connect:a.test?{}", "x=y&".repeat(1000)), Code::RefinementUnknown),
    ];
    let mut seen = Seen::default();
    for (text, code) in cases {
        let start: String = text.chars().take(40).collect();
        match text.parse::<Capability>() {
            Ok(_) => seen.wrong.push(format!("`{start}…` is read without a finding")),
            Err(finding) => {
                seen.invalid += 1;
                seen.codes.insert(finding.code());
                let place = finding.span().is_some_and(|span| text.get(span.start..span.end).is_some());
                let described = describe(&finding);
                if finding.code() != code || !place || described.is_err() {
                    seen.wrong.push(format!(
                        "`{start}…`: {code} expected, {} found, {described:?}",
                        finding.code()
                    ));
                }
            }
        }
    }
    seen
}
