//! Reading a capability. Every refusal has its own code, place and advice.
//!
//! Fails closed when a kind, action, scope or refinement is not known, repeated, misplaced or ambiguous.

mod net;
mod refine;

use super::{
    BrokerHost, Capability, ClockActions, Endpoint, EnvActions, FsActions, Program, is_loader_variable,
    nearest,
};
use crate::finding::{Code, Finding, Span};
use crate::path::{AbsPath, PathPattern, parse_pattern};
use refine::{Refinement, Refinements};

/// The longest capability, in bytes.
pub const MAX_CAPABILITY: usize = 8192;

/// Who writes: a manifest may use path variables, a grant may read every environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scribe {
    /// The author of a manifest.
    Manifest,
    /// A person who grants.
    Grant,
}

const KINDS: [&str; 7] = ["fs", "net", "exec", "env", "ipc", "clock", "assert"];

/// Reads one capability.
///
/// # Errors
/// A finding if anything about it is not known, repeated, misplaced or ambiguous.
pub fn parse(text: &str, scribe: Scribe) -> Result<Capability, Finding> {
    check_text(text)?;
    let Some((kind, rest)) = text.split_once(':') else { return Err(no_colon(text)) };
    match kind {
        "fs" => parse_fs(text, rest, scribe),
        "net" | "network" => net::parse_net(text, rest),
        "exec" => parse_exec(text, rest, kind, "spawn"),
        "process" => parse_exec(text, rest, kind, "exec"),
        "env" => parse_env(text, rest, scribe),
        "ipc" => parse_ipc(text, rest),
        "clock" => parse_clock(text, rest),
        "assert" => parse_assert(text, rest),
        "" => Err(no_colon(text)),
        _ => Err(unknown_kind(text, kind)),
    }
}

/// Reads the scope of a grant whose kind and actions are understood: `prefix` is put in front.
///
/// # Errors
/// As [`parse`], in the words of what was written.
pub fn read_behind(prefix: &str, scope: &str) -> Result<Capability, Finding> {
    if scope.trim().is_empty() {
        return Err(Finding::new(Code::CapScopeMissing, "an entry is empty")
            .at(Span::new(0, scope.len()))
            .help("remove it, or say what is meant"));
    }
    parse(&format!("{prefix}{scope}"), Scribe::Grant).map_err(|finding| {
        let back = |at: usize| at.saturating_sub(prefix.len());
        finding
            .map_span(|span| span.map(|span| Span::new(back(span.start), back(span.end))))
            .map_text(|text| text.replace(prefix, ""))
    })
}

/// Reads an entry of a list of hosts: a host, or `net:listen:…` written out, which no host looks like.
///
/// # Errors
/// As [`parse`].
pub fn read_network_entry(entry: &str) -> Result<Capability, Finding> {
    if entry.starts_with("net:listen:") {
        return parse(entry, Scribe::Grant);
    }
    read_behind("net:connect:", entry)
}

fn check_text(text: &str) -> Result<(), Finding> {
    let whole = Span::new(0, text.len());
    if text.len() > MAX_CAPABILITY {
        let message =
            format!("a capability of {} bytes is longer than the limit of {MAX_CAPABILITY}", text.len());
        return Err(Finding::new(Code::CapTooLong, message).at(whole).help("split it, or shorten its scope"));
    }
    if let Some((at, c)) = text.char_indices().find(|(_, c)| c.is_control()) {
        let message = format!("a capability contains the control character U+{:04X}", u32::from(c));
        return Err(Finding::new(Code::CapControl, message)
            .at(Span::new(at, at + c.len_utf8()))
            .help("remove it"));
    }
    if text.trim() != text {
        let help = match text.trim() {
            "" => "write a capability, such as `fs:read:/workspace/**`".to_owned(),
            trimmed => format!("write `{trimmed}`"),
        };
        return Err(Finding::new(Code::CapWhitespace, "a capability starts or ends with white space")
            .at(whole)
            .help(help));
    }
    Ok(())
}

fn no_colon(text: &str) -> Finding {
    let help = match text {
        "clock" => "write `clock:system` or `clock:tzdata`".to_owned(),
        "assert" => "write `assert:` and an id, such as `assert:postgres.read_only_txn`".to_owned(),
        _ if KINDS.contains(&text) => format!("write `{text}:actions:scope`, see `docs/capabilities.md`"),
        _ if text.starts_with(['/', '~', '$']) => format!("to read it, write `fs:read:{text}`"),
        _ => "write `kind:actions:scope`, such as `fs:read:/workspace/**`".to_owned(),
    };
    Finding::new(Code::CapMalformed, format!("`{text}` is not of the form `kind:actions:scope`"))
        .at(Span::new(0, text.len()))
        .help(help)
}

fn unknown_kind(text: &str, kind: &str) -> Finding {
    let help = match (kind, nearest(kind, KINDS)) {
        ("file" | "files" | "filesystem", _) => "write `fs`".to_owned(),
        ("http" | "https", _) => format!("write `net:{kind}:…`"),
        (_, Some(meant)) => format!("did you mean `{meant}`?"),
        (_, None) => format!("the kinds are {}", list(KINDS)),
    };
    Finding::new(Code::CapUnknownKind, format!("there is no kind `{kind}`"))
        .at(span_in(text, kind))
        .help(help)
}

fn parse_fs(text: &str, rest: &str, scribe: Scribe) -> Result<Capability, Finding> {
    let (actions, scope) = split_actions(text, rest)?;
    let actions = read_actions(text, "fs", actions, FsActions::NAMES)?;
    let actions = actions.into_iter().reduce(FsActions::union).ok_or_else(|| no_action(text, rest))?;
    let scope = require_scope(text, scope, "a path such as `/workspace/**`")?;
    let (scope, mut refinements) = refine::split_code(text, scope)?;
    let only_reads = actions == FsActions::READ;
    let code = only_reads && refinements.take(Refinement::Code);
    refinements.finish(if only_reads { "fs:read" } else { "fs:write" })?;
    let path = match scope {
        "*" => PathPattern::everything(),
        _ => locate(text, scope, parse_pattern(scope, scribe == Scribe::Manifest))?,
    };
    Ok(Capability::Fs { actions: if code { FsActions::CODE } else { actions }, path })
}

fn parse_exec(text: &str, rest: &str, kind: &str, action: &'static str) -> Result<Capability, Finding> {
    let (actions, scope) = split_actions(text, rest)?;
    read_actions(text, kind, actions, &[(action, ())])?;
    let scope = require_scope(text, scope, "a program name, an absolute path or `*`")?;
    let (scope, mut refinements) = Refinements::split(text, scope)?;
    let nested_sandbox = refinements.take(Refinement::NestedSandbox);
    let from_writable = refinements.take(Refinement::FromWritable);
    refinements.finish("exec:spawn")?;
    let program = match scope {
        "*" => None,
        _ => Some(locate(text, scope, parse_program(scope))?),
    };
    Ok(Capability::Exec { program, nested_sandbox, from_writable })
}

/// Reads a bare program name or an absolute path.
///
/// # Errors
/// A finding if it is neither.
pub fn parse_program(text: &str) -> Result<Program, Finding> {
    let bad = |code, message: String| Finding::new(code, message).at(Span::new(0, text.len()));
    if text.starts_with('/') {
        let path = AbsPath::new(text)?;
        if text.ends_with('/') || text.contains(['*', '?', '[', ']']) {
            return Err(bad(Code::ExecName, format!("`{text}` is not the path of one program"))
                .help("name one program each; programs are not granted by pattern"));
        }
        return Ok(Program::Path(path));
    }
    if text.contains('/') {
        return Err(bad(Code::ExecRelative, format!("`{text}` is a relative path"))
            .help("write a bare name such as `git`, or an absolute path"));
    }
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._+-@".contains(&byte));
    if !plain || text.starts_with('-') || text == "." || text == ".." || text.is_empty() || text.len() > 255 {
        return Err(bad(Code::ExecName, format!("`{text}` is not a program name"))
            .help("write letters, digits and `._+-@`; arguments are not part of a program's name"));
    }
    Ok(Program::Name(text.into()))
}

fn parse_env(text: &str, rest: &str, scribe: Scribe) -> Result<Capability, Finding> {
    let (actions, scope) = split_actions(text, rest)?;
    let actions = read_actions(text, "env", actions, EnvActions::NAMES)?;
    let actions = actions.into_iter().reduce(EnvActions::union).ok_or_else(|| no_action(text, rest))?;
    let scope = require_scope(text, scope, "a variable such as `GITHUB_TOKEN`")?;
    let (name, mut refinements) = Refinements::split(text, scope)?;
    let injects = actions.contains(EnvActions::INJECT);
    let hosts = refinements.take_hosts();
    let loader = refinements.find(Refinement::Loader);
    let acknowledged = injects && refinements.take(Refinement::Loader);
    if let (Some((_, span)), true) = (hosts.first(), !injects || name == "*") {
        return Err(Finding::new(Code::RefinementWrongKind, "`broker` is for one variable that is injected")
            .at(*span)
            .help("write `env:inject:NAME?broker=HOST`"));
    }
    refinements.finish(if injects { "env:inject" } else { "env:read" })?;
    if name == "*" {
        return parse_env_wildcard(text, name, actions, scribe);
    }
    locate(text, name, check_env_name(name))?;
    if let (false, Some(span)) = (hosts.is_empty(), loader) {
        return Err(Finding::new(
            Code::RefinementWrongKind,
            "`loader` means nothing where a secret is brokered",
        )
        .at(span)
        .help("a variable that loads code is no secret; remove one of the two"));
    }
    if !hosts.is_empty() {
        return parse_broker(text, (name, actions), &hosts);
    }
    match (injects && is_loader_variable(name), acknowledged) {
        (true, false) => {
            Err(Finding::new(Code::EnvLoader, format!("`{name}` makes programs load or choose code"))
                .at(span_in(text, name))
                .help(format!("leave it out, or write `{text}?loader=true` if that is meant")))
        }
        (false, true) => Err(Finding::new(Code::RefinementNeedless, format!("`{name}` loads no code"))
            .at(loader.unwrap_or(span_in(text, name)))
            .help("leave `?loader=true` out")),
        _ => Ok(Capability::Env { actions, name: Some(name.into()) }),
    }
}

/// Reads the hosts at which a secret is used. What the program is given besides would be the value itself.
fn parse_broker(
    text: &str,
    (name, actions): (&str, EnvActions),
    hosts: &[(&str, Span)],
) -> Result<Capability, Finding> {
    let bad = |message: String| Finding::new(Code::BrokerHost, message).at(Span::new(0, text.len()));
    if actions != EnvActions::INJECT {
        return Err(bad("a brokered variable is injected, never read".to_owned())
            .help(format!("write `env:inject:{name}?broker=HOST`")));
    }
    if is_loader_variable(name) {
        return Err(bad(format!("`{name}` makes programs load or choose code and is no secret"))
            .help("leave `broker` out, or name the variable of the secret"));
    }
    let read = hosts.iter().map(|(host, _)| locate(text, host, BrokerHost::new(host)));
    let named: Vec<BrokerHost> = read.collect::<Result<_, _>>()?;
    let set: std::collections::BTreeSet<BrokerHost> = named.iter().cloned().collect();
    if set.len() < named.len() {
        return Err(Finding::new(Code::RefinementDuplicate, "a host is named twice")
            .at(Span::new(0, text.len()))
            .help("name each host once"));
    }
    Ok(Capability::Broker { name: name.into(), hosts: set })
}

fn parse_env_wildcard(
    text: &str,
    name: &str,
    actions: EnvActions,
    scribe: Scribe,
) -> Result<Capability, Finding> {
    let why = match scribe {
        Scribe::Manifest => "a manifest names every variable it needs",
        Scribe::Grant if actions.contains(EnvActions::INJECT) => "variables are injected by name",
        Scribe::Grant => return Ok(Capability::Env { actions, name: None }),
    };
    Err(Finding::new(Code::EnvWildcard, format!("`{name}` cannot stand for a variable here: {why}"))
        .at(span_in(text, name))
        .help("write one capability for each variable"))
}

/// Whether `name` is UPPER_SNAKE.
///
/// # Errors
/// A finding if it is not.
pub fn check_env_name(name: &str) -> Result<(), Finding> {
    let mut bytes = name.bytes();
    let head = bytes.next().is_some_and(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let tail = bytes.all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    if head && tail && name.len() <= 255 {
        return Ok(());
    }
    Err(Finding::new(Code::EnvName, format!("`{name}` is not the name of a variable"))
        .at(Span::new(0, name.len()))
        .help("write capital letters, digits and `_`, a letter or `_` first"))
}

fn parse_ipc(text: &str, rest: &str) -> Result<Capability, Finding> {
    let (actions, scope) = split_actions(text, rest)?;
    read_actions(text, "ipc", actions, &[("connect", ())])?;
    let scope = require_scope(text, scope, "an endpoint such as `dbus:session`")?;
    refine::refuse_in_path(text, scope)?;
    Ok(Capability::Ipc(locate(text, scope, parse_endpoint(scope))?))
}

/// Reads a local endpoint.
///
/// # Errors
/// A finding if there is no such endpoint.
pub fn parse_endpoint(text: &str) -> Result<Endpoint, Finding> {
    const WORDS: [&str; 6] =
        ["x11", "wayland", "dbus:system", "dbus:session", "private", "unix:/path/to/socket"];
    match text {
        "x11" => return Ok(Endpoint::X11),
        "wayland" => return Ok(Endpoint::Wayland),
        "dbus:system" => return Ok(Endpoint::DbusSystem),
        "dbus:session" => return Ok(Endpoint::DbusSession),
        "private" => return Ok(Endpoint::Private),
        _ => {}
    }
    let Some(path) = text.strip_prefix("unix:") else {
        let help = nearest(text, WORDS)
            .map_or_else(|| format!("write one of {}", list(WORDS)), |w| format!("did you mean `{w}`?"));
        return Err(Finding::new(Code::IpcUnknown, format!("there is no endpoint `{text}`"))
            .at(Span::new(0, text.len()))
            .help(help));
    };
    let bad = |why: &str| {
        Finding::new(Code::IpcPath, format!("`{path}` is not a socket's path: {why}"))
            .at(Span::new(0, text.len()))
            .help("write the absolute path of one socket, such as `unix:/run/app.sock`")
    };
    let read = AbsPath::new(path).map_err(|finding| bad(finding.message()))?;
    if read.components().next().is_none() || path.ends_with('/') {
        return Err(bad("it is a directory"));
    }
    if path.contains(['*', '?', '[']) {
        return Err(bad("sockets are not granted by pattern"));
    }
    Ok(Endpoint::Unix(read))
}

fn parse_clock(text: &str, rest: &str) -> Result<Capability, Finding> {
    if let Some((_, scope)) = rest.split_once([':', '?']) {
        return Err(Finding::new(Code::CapScopeUnexpected, "a clock has no scope and no refinement")
            .at(Span::new(text.len() - scope.len() - 1, text.len()))
            .help("write `clock:system`, `clock:tzdata` or `clock:system,tzdata`"));
    }
    let actions = read_actions(text, "clock", rest, ClockActions::NAMES)?;
    let actions = actions.into_iter().reduce(ClockActions::union).ok_or_else(|| no_action(text, rest))?;
    Ok(Capability::Clock(actions))
}

fn parse_assert(text: &str, rest: &str) -> Result<Capability, Finding> {
    let (id, description) = rest.split_once(':').map_or((rest, None), |(id, text)| (id, Some(text)));
    refine::refuse_in_path(text, id)?;
    let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if !plain || !id.starts_with(|c: char| c.is_ascii_alphanumeric()) || id.len() > 128 {
        return Err(Finding::new(Code::AssertId, format!("`{id}` is not an assertion's id"))
            .at(span_in(text, id))
            .help("write letters, digits and `._-`, such as `postgres.read_only_txn`"));
    }
    let description = description.map(|quoted| parse_description(text, quoted)).transpose()?;
    Ok(Capability::Assert { id: id.into(), description })
}

fn parse_description(text: &str, quoted: &str) -> Result<Box<str>, Finding> {
    let read: Option<String> = quoted.starts_with('"').then(|| serde_json::from_str(quoted).ok()).flatten();
    match read {
        Some(description) if !description.is_empty() && !description.chars().any(char::is_control) => {
            Ok(description.into_boxed_str())
        }
        _ => Err(Finding::new(Code::AssertQuote, format!("`{quoted}` is not a quoted description"))
            .at(span_in(text, quoted))
            .help("write it in double quotes, with `\\\"` for a quote inside, or leave it out")),
    }
}

/// The text before the next colon, and after it.
fn split_actions<'a>(text: &str, rest: &'a str) -> Result<(&'a str, Option<&'a str>), Finding> {
    match rest.split_once(':') {
        Some((actions, scope)) => Ok((actions, Some(scope))),
        None if rest.is_empty() => Err(no_action(text, rest)),
        None => Ok((rest, None)),
    }
}

fn read_actions<A: Copy>(
    text: &str,
    kind: &str,
    actions: &str,
    known: &[(&'static str, A)],
) -> Result<Vec<A>, Finding> {
    let mut read = Vec::with_capacity(known.len());
    let mut seen: Vec<&str> = Vec::with_capacity(known.len());
    for action in actions.split(',') {
        if action.is_empty() {
            return Err(no_action(text, actions));
        }
        let Some((_, value)) = known.iter().find(|(name, _)| *name == action) else {
            return Err(unknown_action(text, kind, action, known.iter().map(|(name, _)| *name)));
        };
        if seen.contains(&action) {
            return Err(Finding::new(Code::CapActionDuplicate, format!("`{action}` is named twice"))
                .at(span_in(text, action))
                .help("name each action once"));
        }
        seen.push(action);
        read.push(*value);
    }
    Ok(read)
}

fn unknown_action<'a>(
    text: &str,
    kind: &str,
    action: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Finding {
    // `exec:git`: what stands where the action should is the scope.
    let bare = text.strip_prefix(kind).is_some_and(|rest| rest.strip_prefix(':') == Some(action));
    let help = match (nearest(action, known.clone()), known.clone().next()) {
        (Some(meant), _) => format!("did you mean `{meant}`?"),
        (None, Some(first)) if bare && kind != "clock" => {
            format!("an action stands before the scope: `{kind}:{first}:{action}`")
        }
        (None, _) => format!("`{kind}` has {}", list(known)),
    };
    Finding::new(Code::CapActionUnknown, format!("`{kind}` has no action `{action}`"))
        .at(span_in(text, action))
        .help(help)
}

fn no_action(text: &str, actions: &str) -> Finding {
    Finding::new(Code::CapActionsEmpty, "an action is missing")
        .at(span_in(text, actions))
        .help("write `kind:action:scope`, with commas between actions and none at the end")
}

fn require_scope<'a>(text: &str, scope: Option<&'a str>, what: &str) -> Result<&'a str, Finding> {
    let bare = scope.map(|scope| scope.split('?').next().unwrap_or_default());
    match (scope, bare) {
        (Some(scope), Some(bare)) if !bare.is_empty() => Ok(scope),
        _ => Err(Finding::new(Code::CapScopeMissing, format!("`{text}` has no scope"))
            .at(Span::new(0, text.len()))
            .help(format!("add {what}"))),
    }
}

/// Moves the place of a finding about `part` to where `part` stands in `whole`.
fn locate<T>(whole: &str, part: &str, result: Result<T, Finding>) -> Result<T, Finding> {
    result.map_err(|finding| {
        let offset = span_in(whole, part).start;
        finding.map_span(|span| Some(span.map_or(span_in(whole, part), |span| span.shifted(offset))))
    })
}

/// Where `part`, a slice of `whole`, stands in it.
fn span_in(whole: &str, part: &str) -> Span {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    if start > whole.len() {
        Span::new(0, whole.len())
    } else {
        Span::new(start, (start + part.len()).min(whole.len()))
    }
}

fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
