//! A call of something known to what it uses: the rule says where the target is, the arguments say what it is.

use crate::knowledge::{Knowledge, Rule};
use crate::model::Value;
use crate::report::UseKind;
use crate::resolve::{Args, Resolved, text_of};
use crate::target::Target;

/// The shell that runs command lines.
const SHELL: &str = "sh";
/// Builder methods that make a file one that is written.
const WRITING: [&str; 5] = ["append", "create", "create_new", "truncate", "write"];

/// A call as a rule sees it.
pub(crate) struct Site<'a> {
    pub(crate) known: &'a Knowledge,
    pub(crate) callee: &'a Value,
    pub(crate) args: &'a Args,
    /// What the object was made with that the method is called on.
    pub(crate) made: Option<&'a Args>,
}

/// What a rule finds at a call: kinds, each with a target where there is one.
pub(crate) fn found(rule: &Rule, site: &Site<'_>) -> Vec<(UseKind, Option<Target>)> {
    let mut found = Vec::new();
    for (kind, place) in rule.effects() {
        match kind {
            UseKind::Exec => found.extend(programs(rule, place, site)),
            UseKind::Net => found.push((kind, host(rule, place, site))),
            UseKind::Read if rule.mode.is_some() || rule.chain => {
                if let Some(target) = path(kind, place, site) {
                    found.extend(modes(rule, site).into_iter().map(|kind| (kind, target.clone())));
                }
            }
            UseKind::Read | UseKind::Write | UseKind::Create | UseKind::Delete => {
                found.extend(path(kind, place, site).map(|target| (kind, target)));
            }
            UseKind::Env if place == "**" => found.push((kind, Some(Target::AllVariables))),
            UseKind::Env => found.push((kind, texts(place, site).next().and_then(|text| whole(kind, text)))),
            UseKind::Tzdata => found.push((kind, None)),
        }
    }
    found
}

/// Whether what makes a call unknown is a literal after all.
pub(crate) fn is_literal(place: &str, site: &Site<'_>) -> bool {
    texts(place, site).next().is_some_and(|(_, whole)| whole)
}

/// The path, or that it is not known; `None` where there is no file at all.
fn path(kind: UseKind, place: &str, site: &Site<'_>) -> Option<Option<Target>> {
    let text = texts(place, site).next();
    if text.as_ref().is_some_and(|(text, whole)| *whole && (text == ":memory:" || text.is_empty())) {
        return None;
    }
    Some(text.and_then(|text| whole(kind, text)))
}

fn whole(kind: UseKind, (text, whole): (String, bool)) -> Option<Target> {
    if whole { Target::from_text(kind, &text) } else { None }
}

/// Whether a file is read or written: by the mode, or by the builder.
fn modes(rule: &Rule, site: &Site<'_>) -> Vec<UseKind> {
    if rule.chain {
        let chain = chain(site.callee);
        let writes = chain.iter().any(|method| WRITING.contains(method));
        let reads = chain.contains(&"read");
        return match (reads, writes) {
            (true, false) => vec![UseKind::Read],
            (false, true) => vec![UseKind::Write],
            _ => vec![UseKind::Read, UseKind::Write],
        };
    }
    let place = rule.mode.as_deref().unwrap_or_default();
    match things(place, site).next() {
        None => vec![UseKind::Read],
        Some(Resolved::Text { text, whole: true }) => {
            let writes = text.contains(['w', 'a', 'x', '+']);
            match (text.contains(['r', '+']), writes) {
                (true, true) => vec![UseKind::Read, UseKind::Write],
                (_, true) => vec![UseKind::Write],
                _ => vec![UseKind::Read],
            }
        }
        Some(_) => vec![UseKind::Read, UseKind::Write],
    }
}

/// The methods of a builder, from the last to the first.
fn chain(callee: &Value) -> Vec<&str> {
    let mut names = Vec::new();
    let mut value = callee;
    while let Value::Member(object, _) = value {
        let Value::Call(inner, _) = &**object else { break };
        names.extend(inner.last_name());
        value = inner;
    }
    names
}

fn host(rule: &Rule, place: &str, site: &Site<'_>) -> Option<Target> {
    let port = rule.port.as_deref().and_then(|place| texts(place, site).next());
    let port = port.and_then(|(text, _)| text.parse().ok());
    let scheme = rule.scheme.as_deref();
    things(place, site).find_map(|thing| match &thing {
        // `(host, port)`
        Resolved::List(parts) => {
            let (name, whole) = text_of(site.known, parts.first()?)?;
            let port = parts.get(1).and_then(|port| text_of(site.known, port))?.0.parse().ok();
            Target::host(&name, whole, port, scheme)
        }
        thing => {
            let (text, whole) = text_of(site.known, thing)?;
            // Only a URL says a host without further ado; a relative one needs the client's base.
            if text.starts_with('/') || text.parse::<u16>().is_ok() {
                return None;
            }
            let is_url = text.contains("://");
            let plain =
                rule.port.is_some() || rule.scheme.is_some() || !place.contains("url") && is_host(&text);
            if is_url || plain { Target::host(&text, whole, port, scheme) } else { None }
        }
    })
}

/// Whether a text without a scheme is a host at all, rather than part of a URL.
fn is_host(text: &str) -> bool {
    !text.contains('/')
}

fn programs(rule: &Rule, place: &str, site: &Site<'_>) -> Vec<(UseKind, Option<Target>)> {
    let program = |name: &str| (UseKind::Exec, Target::from_text(UseKind::Exec, name));
    if let Some(fixed) = place.strip_prefix('=') {
        return vec![program(fixed)];
    }
    let asked = rule.shell.as_deref();
    let in_shell = match asked {
        None => false,
        Some("always") => true,
        Some(place) => things(place, site)
            .next()
            .is_some_and(|thing| thing != Resolved::text("False") && thing != Resolved::text("false")),
    };
    let first = things(place, site).next();
    let text = match &first {
        Some(Resolved::List(words)) => words.first().and_then(|word| text_of(site.known, word)),
        Some(thing) => text_of(site.known, thing),
        None => None,
    };
    if in_shell {
        let words = text.filter(|(_, whole)| *whole).and_then(|(text, _)| first_word(&text));
        return std::iter::once(program(SHELL)).chain(words.map(|word| program(&word))).collect();
    }
    vec![(UseKind::Exec, text.and_then(|text| whole(UseKind::Exec, text)))]
}

/// The program of a command line that has nothing but words.
fn first_word(line: &str) -> Option<String> {
    let plain = !line.contains(['|', '&', ';', '<', '>', '(', ')', '$', '`', '\n', '=', '\'', '"']);
    line.split_whitespace().next().filter(|_| plain).map(str::to_owned)
}

/// The texts at a place, in the order in which they are tried.
fn texts<'a>(place: &'a str, site: &'a Site<'_>) -> impl Iterator<Item = (String, bool)> + 'a {
    things(place, site).filter_map(|thing| text_of(site.known, &thing))
}

/// The things at a place, in the order in which they are tried.
fn things<'a>(place: &'a str, site: &'a Site<'_>) -> impl Iterator<Item = Resolved> + 'a {
    place.split_whitespace().filter_map(|one| thing(one, site))
}

fn thing(place: &str, site: &Site<'_>) -> Option<Resolved> {
    if let Some(rest) = place.strip_prefix("receiver") {
        let made = site.made?;
        return match rest.strip_prefix('.') {
            Some(inner) => argument(inner, made),
            // The object is the text it was made of.
            None => text_of_made(site.known, made),
        };
    }
    argument(place, site.args)
}

fn text_of_made(known: &Knowledge, made: &Args) -> Option<Resolved> {
    let parts: Option<Vec<(String, bool)>> = made.iter().map(|(_, thing)| text_of(known, thing)).collect();
    let parts = parts.filter(|parts| !parts.is_empty() && parts.iter().all(|(_, whole)| *whole))?;
    let mut text = String::new();
    for (part, _) in parts {
        if part.starts_with('/') {
            text.clear();
        } else if !text.is_empty() && !text.ends_with('/') {
            text.push('/');
        }
        text.push_str(&part);
    }
    Some(Resolved::text(text))
}

/// `0`, `name` or `0.key`.
fn argument(place: &str, args: &Args) -> Option<Resolved> {
    let (place, key) = place.split_once('.').map_or((place, None), |(place, key)| (place, Some(key)));
    let found = match place.parse::<usize>() {
        Ok(index) => args.iter().filter(|(name, _)| name.is_none()).nth(index),
        Err(_) => args.iter().find(|(name, _)| name.as_deref() == Some(place)),
    };
    let thing = found.map(|(_, thing)| thing.clone())?;
    match (key, thing) {
        (None, thing) => Some(thing),
        (Some(key), Resolved::Map(pairs)) => {
            pairs.iter().find(|(own, _)| own == key).map(|(_, thing)| thing.clone())
        }
        (Some(_), _) => None,
    }
}
