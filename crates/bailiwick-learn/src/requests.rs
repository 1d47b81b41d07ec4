//! Unencrypted requests: which of their paths are the program's own, and which the caller of a tool chose.
//!
//! A path that a tool asks for in each call is a line of its own. Where a component repeats what the call was given, any
//! component may stand there; where the call was given the whole URL, every path of the host is one line.

use std::collections::{BTreeMap, BTreeSet};

use bailiwick_policy::net::UrlPath;

use crate::evidence::HostSeen;
use crate::{MOST_SIBLINGS, Provenance, Reason, clean, is_plain};

/// Every path of a host.
pub(crate) const EVERY_PATH: &str = "/**";
/// How many different paths of one host are remembered; more are every path.
pub(crate) const MOST_PATHS: usize = 64;
/// The most lines for one host; more become every path of it.
const MOST_LINES_OF_HOST: usize = 6;
/// From how many characters on a part of a component counts as what the call was given.
const LEAST_PART: usize = 3;

/// The methods with which paths of one form were asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestsSeen {
    pub(crate) methods: BTreeSet<String>,
    pub(crate) by: Provenance,
}

/// The form of a request's path: `*` where a component repeats one of the words, everything where a word is a URL of the host.
pub(crate) fn form_of(host: &str, target: &str, words: &[String]) -> String {
    let target = without_authority(target);
    let UrlPath::Clear(path) = UrlPath::of_target(target) else { return EVERY_PATH.to_owned() };
    let sent = target.split('?').next().unwrap_or_default();
    let names_host = |word: &String| word.split_once("//").is_some_and(|(_, rest)| rest.starts_with(host));
    if words.iter().any(|word| names_host(word) && word.contains(sent)) {
        return EVERY_PATH.to_owned();
    }
    let pieces: Vec<String> = words
        .iter()
        .flat_map(|word| word.split('/').map(letters).chain([letters(word)]))
        .filter(|piece| !piece.is_empty())
        .collect();
    let is_given = |part: &str| {
        let own = letters(part);
        pieces.iter().any(|piece| own == *piece || (piece.len() >= LEAST_PART && own.contains(piece)))
    };
    let parts: Vec<&str> = path.components().collect();
    let form: Vec<&str> =
        parts.iter().map(|part| if is_given(part) || !is_plain(part) { "*" } else { part }).collect();
    let given_at_end = form.iter().rev().take_while(|part| **part == "*").count();
    let kept = if given_at_end > 1 { form.len() - given_at_end } else { form.len() };
    let mut text: String = form.iter().take(kept).map(|part| format!("/{part}")).collect();
    if kept < form.len() || text.is_empty() {
        text += EVERY_PATH;
    }
    text
}

/// A target as a server reads it: without `http://host`.
fn without_authority(target: &str) -> &str {
    let Some((_, rest)) = target.split_once("://").filter(|_| !target.starts_with('/')) else {
        return target;
    };
    rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/")
}

/// The letters and digits of a word: `Milk bread` and `milk_bread` are the same.
fn letters(word: &str) -> String {
    word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The lines for the requests of one host; nothing if one of them is none, or the host was reached otherwise too.
pub(crate) fn lines_for(
    host: &str,
    port: Option<u16>,
    seen: &HostSeen,
) -> Option<Vec<(String, Reason, Provenance)>> {
    if seen.is_reached_otherwise || seen.requests.is_empty() {
        return None;
    }
    let place = match port {
        Some(80) | None => host.to_owned(),
        Some(port) => format!("{host}:{port}"),
    };
    let mut forms = without_covered(&seen.requests);
    gather_siblings(&mut forms);
    if forms.len() > MOST_LINES_OF_HOST {
        let mut whole = RequestsSeen::default();
        forms.values().for_each(|form| whole.add(form));
        forms = BTreeMap::from([(EVERY_PATH.to_owned(), whole)]);
    }
    let line = |(path, form): (String, RequestsSeen)| {
        let methods = form.methods.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        Some((clean(&format!("net:http:{methods}@http://{place}{path}"))?, Reason::Requested, form.by))
    };
    forms.into_iter().map(line).collect()
}

impl RequestsSeen {
    fn add(&mut self, other: &Self) {
        self.methods.extend(other.methods.iter().cloned());
        self.by.add(&other.by);
    }
}

/// The forms without those that every path covers for all of their methods.
fn without_covered(forms: &BTreeMap<String, RequestsSeen>) -> BTreeMap<String, RequestsSeen> {
    let all = forms.get(EVERY_PATH);
    let is_covered = |path: &String, form: &RequestsSeen| {
        path != EVERY_PATH && all.is_some_and(|all| form.methods.is_subset(&all.methods))
    };
    let kept = forms.iter().filter(|(path, form)| !is_covered(path, form));
    kept.map(|(path, form)| (path.clone(), form.clone())).collect()
}

/// Makes more than a few paths of one directory that are asked for alike one line.
fn gather_siblings(forms: &mut BTreeMap<String, RequestsSeen>) {
    let mut groups: BTreeMap<(String, BTreeSet<String>), Vec<String>> = BTreeMap::new();
    for (path, form) in forms.iter().filter(|(path, _)| !path.contains('*')) {
        let Some((directory, _)) = path.rsplit_once('/') else { continue };
        groups.entry((directory.to_owned(), form.methods.clone())).or_default().push(path.clone());
    }
    for ((directory, _), paths) in groups.into_iter().filter(|(_, paths)| paths.len() > MOST_SIBLINGS) {
        let gathered: Vec<RequestsSeen> = paths.iter().filter_map(|path| forms.remove(path)).collect();
        let whole = forms.entry(format!("{directory}/*")).or_default();
        gathered.iter().for_each(|one| whole.add(one));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(target: &str, words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        form_of("api.test", target, &words)
    }

    #[test]
    fn what_a_call_was_given_may_be_another_next_time() {
        assert_eq!(form("/v1/list?all=1", &["x"]), "/v1/list");
        assert_eq!(form("/v1/users/anna", &["Anna"]), "/v1/users/*");
        assert_eq!(form("/wiki/Milk_bread.json", &["milk bread"]), "/wiki/*");
        assert_eq!(form("/files/a/b.txt", &["a/b.txt"]), "/files/**");
        assert_eq!(form("/page/two", &["see http://api.test/page/two"]), EVERY_PATH);
        assert_eq!(form("/page/two", &["http://other.test/page/two"]), "/**", "both components were given");
        assert_eq!(form("/v1/users", &["http://other.test/x"]), "/v1/users");
        assert_eq!(form("http://api.test/v1/list", &[]), "/v1/list");
        for whole in ["/", "", "/a//b", "/a/../b", "/a;b", "/%2e/x"] {
            assert_eq!(form(whole, &[]), EVERY_PATH, "{whole}");
        }
        assert_eq!(form("/a/x*y/b", &[]), "/a/*/b", "what means more in a pattern stands for itself nowhere");
    }
}
