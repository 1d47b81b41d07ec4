//! Reading `net` capabilities: `connect` to hosts, `listen` on ports, `http` and `https` requests.

use super::refine::{Refinement, Refinements};
use super::{Capability, locate, read_actions, require_scope, span_in, split_actions};
use crate::finding::{Code, Finding};
use crate::net::{
    HostPattern, Method, Methods, NetRule, PortRange, Scheme, Schemes, Speech, judge_name,
    parse_host_pattern, parse_listen, parse_ports,
};
use crate::path::{Part, PathPattern, parse_pattern};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Connect,
    Listen,
    Request(Scheme),
}

const ACTIONS: [(&str, Action); 4] = [
    ("connect", Action::Connect),
    ("listen", Action::Listen),
    ("http", Action::Request(Scheme::Http)),
    ("https", Action::Request(Scheme::Https)),
];

/// Reads what follows `net:`.
pub(super) fn parse_net(text: &str, rest: &str) -> Result<Capability, Finding> {
    let (words, scope) = split_actions(text, rest)?;
    let actions = read_actions(text, "net", words, &ACTIONS)?;
    let schemes = actions.iter().filter_map(|action| match action {
        Action::Request(scheme) => Some(*scheme),
        Action::Connect | Action::Listen => None,
    });
    let schemes: Vec<Scheme> = schemes.collect();
    match actions.as_slice() {
        [Action::Connect] => {
            let scope = require_scope(text, scope, "a host such as `api.example.com:443`")?;
            return parse_connect(text, scope);
        }
        [Action::Listen] => {
            let scope = require_scope(text, scope, "a port such as `8080`")?;
            return read_listen(text, scope);
        }
        [..] if actions.contains(&Action::Listen) => {
            return Err(Finding::new(Code::CapActionMixed, "`listen` takes a port, the others do not")
                .at(span_in(text, words))
                .help("write two capabilities"));
        }
        [..] => {}
    }
    if schemes.len() < actions.len() {
        return Err(Finding::new(
            Code::CapActionMixed,
            "`connect` takes hosts, `http` and `https` take requests",
        )
        .at(span_in(text, words))
        .help("write two capabilities; `connect` covers HTTP to the host anyway"));
    }
    let scope = require_scope(text, scope, "methods, `*`, or a URL")?;
    parse_http(text, scope, &schemes)
}

fn read_listen(text: &str, scope: &str) -> Result<Capability, Finding> {
    let (scope, refinements) = Refinements::split(text, scope)?;
    refinements.finish("net:listen")?;
    Ok(Capability::Listen(locate(text, scope, parse_listen(scope))?))
}

fn parse_connect(text: &str, scope: &str) -> Result<Capability, Finding> {
    let (scope, mut refinements) = Refinements::split(text, scope)?;
    let private = refinements.take(Refinement::OpenPrivate);
    let raw = refinements.take(Refinement::RawProtocol);
    // Raw bytes cover hidden TLS; saying both says no more.
    let ech = refinements.take(Refinement::AllowEch) && !raw;
    refinements.finish("net:connect")?;
    if let Some((scheme, rest)) = scope.split_once("://") {
        let host = rest.split('/').next().unwrap_or_default();
        return Err(Finding::new(Code::HostInvalid, format!("`{scope}` is a URL, not a host"))
            .at(span_in(text, scope))
            .help(format!("write `net:connect:{host}`, or `net:{scheme}:{scope}` for HTTP alone")));
    }
    let (host, ports) = parse_host_and_ports(text, scope, PortRange::ANY)?;
    Ok(Capability::Net(NetRule::new(host, ports, private, Speech::Connect { raw, ech })))
}

/// Reads `HOST`, `HOST:PORT`, `HOST:LOW-HIGH` or `HOST:*`.
fn parse_host_and_ports(
    text: &str,
    scope: &str,
    default: PortRange,
) -> Result<(HostPattern, PortRange), Finding> {
    let end_of_host = match scope.rfind(']') {
        Some(bracket) => bracket + 1,
        None if scope.matches(':').count() > 1 => scope.len(),
        None => scope.find(':').unwrap_or(scope.len()),
    };
    let (host, tail) = scope.split_at_checked(end_of_host).unwrap_or((scope, ""));
    let host_read = locate(text, host, parse_host_pattern(host))?;
    let ports = match tail.strip_prefix(':') {
        Some(ports) => locate(text, ports, parse_ports(ports))?,
        None if tail.is_empty() => default,
        None => {
            return Err(Finding::new(Code::HostInvalid, format!("`{tail}` follows the host"))
                .at(span_in(text, tail))
                .help("write `:PORT` or nothing behind the bracket, and a block as `[fd00::/8]`"));
        }
    };
    Ok((host_read, ports))
}

fn parse_http(text: &str, scope: &str, schemes: &[Scheme]) -> Result<Capability, Finding> {
    let (scope, mut refinements) = Refinements::split(text, scope)?;
    let private = refinements.take(Refinement::OpenPrivate);
    refinements.finish("net:http")?;
    let (methods, url) = split_methods(text, scope)?;
    let Some(url) = url else {
        let speech =
            Speech::Http { schemes: Schemes::from_list(schemes), methods, path: PathPattern::everything() };
        return Ok(Capability::Net(NetRule::new(HostPattern::Any, PortRange::ANY, private, speech)));
    };
    let scheme = check_scheme(text, url, schemes)?;
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    check_url(text, rest)?;
    let authority_end =
        if rest.starts_with('[') { rest.find(']').map_or(0, |bracket| bracket + 1) } else { 0 };
    let path_at = rest.get(authority_end..).and_then(|tail| tail.find('/')).map(|at| at + authority_end);
    let (authority, path) = rest.split_at_checked(path_at.unwrap_or(rest.len())).unwrap_or((rest, ""));
    let default = PortRange::only(scheme.default_port());
    let (host, ports) = parse_host_and_ports(text, authority, default)?;
    let path = match path {
        "" | "/" => PathPattern::everything(),
        _ => {
            let pattern = locate(text, path, parse_pattern(path, false))?;
            check_names(text, path, &pattern)?;
            pattern
        }
    };
    let speech = Speech::Http { schemes: Schemes::from_list(&[scheme]), methods, path };
    Ok(Capability::Net(NetRule::new(host, ports, private, speech)))
}

/// Whether requests for the literal components can be judged: a rule that never allows anything is a mistake.
fn check_names(text: &str, path: &str, pattern: &PathPattern) -> Result<(), Finding> {
    for part in pattern.parts() {
        if let Part::Literal(name) = part
            && let Err(why) = judge_name(name)
        {
            let message = format!("`{path}` is a path that no rule for some paths can judge: {why}");
            return Err(Finding::new(Code::UrlInvalid, message)
                .at(span_in(text, path))
                .help("grant the directory above it, or the host without a path"));
        }
    }
    Ok(())
}

/// `GET,POST`, `*`, `URL` or `METHODS@URL`.
fn split_methods<'a>(text: &str, scope: &'a str) -> Result<(Methods, Option<&'a str>), Finding> {
    let (words, url) = match scope.split_once('@') {
        Some((words, url)) if !words.contains("://") => (words, Some(url)),
        _ if scope.contains("://") => return Ok((Methods::ALL, Some(scope))),
        _ => (scope, None),
    };
    if words == "*" {
        return Ok((Methods::ALL, url));
    }
    let mut methods = Vec::new();
    for word in words.split(',') {
        let method = locate(text, word, Method::new(word)).map_err(|finding| {
            let host = url.is_none() && word.contains('.');
            if host { finding.help(format!("for a host, write a URL: `https://{word}`")) } else { finding }
        })?;
        if methods.contains(&method) {
            return Err(Finding::new(Code::CapActionDuplicate, format!("`{word}` is named twice"))
                .at(span_in(text, word))
                .help("name each method once"));
        }
        methods.push(method);
    }
    Ok((Methods::from_methods(methods), url))
}

fn check_scheme(text: &str, url: &str, schemes: &[Scheme]) -> Result<Scheme, Finding> {
    let written = url.split_once("://").map_or("", |(scheme, _)| scheme);
    let scheme = Scheme::ALL.into_iter().find(|scheme| scheme.as_str() == written);
    match (scheme, schemes) {
        (Some(scheme), [only]) if scheme == *only => Ok(scheme),
        _ => Err(Finding::new(
            Code::UrlScheme,
            format!("`{url}` does not start with the scheme that is granted"),
        )
        .at(span_in(text, url))
        .help("write `net:http:http://…` or `net:https:https://…`, one capability for each scheme")),
    }
}

fn check_url(text: &str, rest: &str) -> Result<(), Finding> {
    let bad = |why: &str, help: &str| {
        Err(Finding::new(Code::UrlInvalid, format!("a URL in a capability has no {why}"))
            .at(span_in(text, rest))
            .help(help))
    };
    if rest.split('/').next().is_some_and(|authority| authority.contains('@')) {
        return bad("user or password", "inject credentials as environment variables");
    }
    if rest.contains(['#', '\\', ' ', '%']) {
        return bad(
            "fragment, backslash, space or percent escape",
            "write the decoded path, with `*` where needed",
        );
    }
    Ok(())
}
