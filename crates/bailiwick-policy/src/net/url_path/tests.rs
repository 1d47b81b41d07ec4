//! Paths against models of servers: what a rule lets through, every server reads inside that rule.

use proptest::prelude::*;

use super::*;
use crate::path::parse_pattern;

fn why(target: &str) -> &'static str {
    match UrlPath::of_target(target) {
        UrlPath::Clear(path) => panic!("{target} is {path}"),
        UrlPath::Ambiguous { why, .. } => why,
    }
}

#[test]
fn clear_paths_are_read() {
    for (target, read) in [
        ("/", "/"),
        ("", "/"),
        ("?q=/../x;y", "/"),
        ("/a/b?q=1#2;../", "/a/b"),
        ("/a%20b/", "/a b"),
        ("/caf%C3%A9", "/café"),
        ("/%E6%97%A5%E6%9C%AC", "/日本"),
        ("/v1/x:run", "/v1/x:run"),
        ("/@scope/a.b.c/.git/~me/a+b=(c)!$&'*,-_", "/@scope/a.b.c/.git/~me/a+b=(c)!$&'*,-_"),
        ("/%7B%5B%22%5D%7D", "/{[\"]}"),
    ] {
        assert_eq!(UrlPath::of_target(target), UrlPath::Clear(AbsPath::new(read).unwrap()), "{target}");
    }
}

#[test]
fn ambiguous_paths_are_named() {
    for (reason, targets) in [
        ("component of dots", &["/a/../b", "/.", "/a/...", "/a/..x", "/%2e%2e/b", "/a/%2E", "/.%2e/"][..]),
        ("ends in a dot", &["/a./b", "/a%2E", "/a/b.", "/.a.."]),
        ("space at an end", &["/a%20", "/a%20/b", "/%20a", "/a/%20"]),
        ("parameter", &["/a;b", "/a;", "/;/a", "/a%3bx=y", "/a%3B", "/api/;/admin", "/a;x=y/b"]),
        ("slash", &["/a%2fb", "/a%2F", "/a%5cb", "/a\\b", "/%5C"]),
        ("percent sign", &["/a%252fb", "/%252e%252e", "/%25"]),
        ("`?`", &["/a%3Fb", "/a#b", "/a%23"]),
        ("control", &["/%00", "/a%09", "/a%0d%0a", "/a\tb", "/%7f", "/%C2%85"]),
        ("malformed", &["/a%", "/a%zz", "/%u002e", "/a%2"]),
        ("not UTF-8", &["/%c0%ae", "/%E0%80%AF", "/%ff", "/%C3"]),
        ("empty component", &["//b", "/a//b", "/a//", "//"]),
        ("beyond ASCII", &["/%EF%BC%8F", "/%EF%BC%8E", "/%E2%80%A4", "/%CD%BE", "/%C2%A5", "/%E2%88%95"]),
        ("without need", &["/%61", "/%7Ea", "/%40x", "/%c3%a9", "/é", "/a{b", "/a b", "/a|b", "/%2D"]),
        ("does not start", &["*", "a/b", "http://a.test/"]),
        ("too long", &[&format!("/{}", "a".repeat(5_000))]),
    ] {
        for target in targets {
            assert!(why(target).contains(reason), "{target}: {}", why(target));
        }
    }
    // `..;` has its dots named first.
    assert_eq!(why("/api/..;/admin"), "it has a component of dots");
    let shown = UrlPath::of_target("/a\u{1b}[2J;b").to_string();
    assert!(shown.starts_with("/a\\u{1b}[2J;b (a rule for some paths cannot judge it: it has"), "{shown}");
}

#[test]
fn rules_for_every_path_allow_ambiguous_ones() {
    let pattern = |text: &str| parse_pattern(text, false).unwrap();
    let odd = UrlPath::of_target("/api/..;/admin");
    assert!(odd.is_covered_by(&pattern("/")) && odd.is_covered_by(&pattern("/**")));
    for some in ["/api", "/api/**", "/*", "/**/*", "/api/..;/admin", "/api/*/admin"] {
        assert!(!odd.is_covered_by(&pattern(some)), "{some}");
    }
}

/// Reads a path as a kind of server does: its components, or nothing if the server refuses it.
type Server = fn(&str) -> Option<Vec<String>>;

/// Kinds of servers, each by the steps that its sources or documents name.
const SERVERS: &[(&str, Server)] = &[
    // Decodes once and cleans.
    ("Go", |path| Some(cleaned(&decoded(path, lossy)?))),
    // Merges slashes too, and refuses NUL.
    ("nginx", |path| decoded(path, lossy).filter(|path| !path.contains('\0')).map(|path| cleaned(&path))),
    // Refuses encoded slashes.
    ("Apache", |path| {
        let slash = path.to_ascii_lowercase().contains("%2f");
        decoded(path, lossy).filter(|_| !slash).map(|path| cleaned(&path))
    }),
    // Rewriting after decoding starts a query at `?`.
    ("Apache, rewriting", |path| Some(cleaned(cut(&decoded(path, lossy)?, &['?', '#'])))),
    // Parameters go before decoding; backslashes count as slashes.
    ("Tomcat", |path| Some(cleaned(&decoded(&without_parameters(path), lossy)?.replace('\\', "/")))),
    // Parameters go after decoding.
    ("Java, decoding first", |path| Some(cleaned(&without_parameters(&decoded(path, lossy)?)))),
    // Decodes twice, takes backslashes for slashes and drops dots and spaces at the end of names.
    ("IIS", |path| {
        let twice = decoded(&decoded(&without_u(path), lossy)?, lossy).unwrap_or_else(|| path.to_owned());
        Some(cleaned(&twice.replace('\\', "/")).iter().map(|name| windows_name(name)).collect::<Vec<_>>())
            .map(|names| cleaned(&names.join("/")))
    }),
    // Reads a URL as browsers do: control characters vanish, `\` is `/`, `%2e` is `.`.
    ("Node, WHATWG", |path| {
        let plain: String = path.chars().filter(|letter| !matches!(letter, '\t' | '\r' | '\n')).collect();
        let plain = plain.trim().replace('\\', "/").replace("%2e", ".").replace("%2E", ".");
        Some(cleaned(&decoded(&cleaned(cut(&plain, &['#'])).join("/"), lossy)?))
    }),
    // The same after decoding, as middlewares do.
    ("Node, decoding first", |path| {
        let plain = decoded(path, lossy)?;
        Some(cleaned(&plain.chars().filter(|letter| !letter.is_control()).collect::<String>()))
    }),
    // Latin-1, then the bytes as UTF-8.
    ("Python WSGI", |path| Some(cleaned(&decoded(path, lossy)?))),
    ("PHP, decoding twice", |path| {
        let once = decoded(path, lossy)?;
        Some(cleaned(&decoded(&once, lossy).unwrap_or(once)))
    }),
    // C strings end at NUL.
    ("CGI in C", |path| Some(cleaned(cut(&decoded(path, lossy)?, &['\0', '\n', '\r'])))),
    // Old decoders take overlong forms.
    ("overlong UTF-8", |path| Some(cleaned(&decoded(path, overlong)?))),
    // Windows code pages and compatibility forms.
    ("best fit", |path| {
        let fitted = decoded(path, lossy)?.chars().map(best_fit).collect::<String>();
        Some(cleaned(&without_parameters(&fitted.replace('\\', "/"))))
    }),
    ("trimming", |path| {
        let decoded = decoded(path, lossy)?;
        Some(cleaned(&decoded.split('/').map(str::trim).collect::<Vec<_>>().join("/")))
    }),
];

fn decoded(text: &str, read: fn(&[u8]) -> String) -> Option<String> {
    percent_decoded(text).map(|bytes| read(&bytes))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Two bytes that begin with 0xc0 or 0xc1 are the ASCII character of their low bits.
fn overlong(bytes: &[u8]) -> String {
    let mut read = Vec::new();
    let mut bytes = bytes.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match bytes.next_if(|_| matches!(byte, 0xc0 | 0xc1)) {
            Some(next) => read.push((byte & 1) << 6 | (next & 0x3f)),
            None => read.push(byte),
        }
    }
    lossy(&read)
}

/// Without empty components, and with dots resolved.
fn cleaned(path: &str) -> Vec<String> {
    let mut names = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            _ => names.push(name.to_owned()),
        }
    }
    names
}

fn without_parameters(path: &str) -> String {
    path.split('/').map(|name| cut(name, &[';'])).collect::<Vec<_>>().join("/")
}

fn cut<'a>(text: &'a str, at: &[char]) -> &'a str {
    text.split(at).next().unwrap_or_default()
}

fn windows_name(name: &str) -> String {
    name.trim_end_matches(['.', ' ']).to_owned()
}

/// `%u002e` is `.`.
fn without_u(path: &str) -> String {
    path.replace("%u002e", ".").replace("%u002f", "/")
}

fn best_fit(letter: char) -> char {
    match letter {
        '\u{ff0f}' | '\u{2215}' | '\u{2044}' => '/',
        '\u{ff0e}' | '\u{2024}' | '\u{3002}' => '.',
        '\u{ff1b}' | '\u{37e}' => ';',
        '\u{ff3c}' | '\u{a5}' | '\u{20a9}' => '\\',
        _ => letter,
    }
}

/// Pieces of paths; most of a path is plain, so that many are let through.
const PLAIN_PIECES: &[&str] =
    &["/", "/", "/", "api", "api", "public", "admin", "a", "x.json", ".json", "%20", "%C3%A9", "b", "/api/"];
const ODD_PIECES: &[&str] = &[
    "..",
    ".",
    "%2e",
    "%2E",
    ";",
    ";x=y",
    "..;",
    "%3b",
    "%2f",
    "%2F",
    "%5c",
    "\\",
    "//",
    "%252e",
    "%252f",
    "%c0%ae",
    "%c0%af",
    "%00",
    "%09",
    "%0a",
    "%0d",
    "%20",
    "\t",
    "+",
    "#",
    "%3f",
    "%23",
    "%",
    "%u002e",
    "%EF%BC%8F",
    "%ef%bc%8e",
    "%CD%BE",
    "%C2%A5",
    "é",
    "%61",
    "@",
    "%40",
    ":",
    "~",
    " ",
    "%2525",
    "%3B",
    "%5C",
    "/./",
    "/../",
    "%7f",
];

fn any_path() -> impl Strategy<Value = String> {
    let plain = prop::sample::select(PLAIN_PIECES.to_vec());
    let odd = prop::sample::select(ODD_PIECES.to_vec());
    let piece = prop_oneof![5 => plain, 1 => odd];
    prop::collection::vec(piece, 0..9).prop_map(|pieces| format!("/api/{}", pieces.concat()))
}

const PATTERNS: &[&str] =
    &["/api", "/api/**", "/api/*", "/api/*/public", "/api/**/*.json", "/api/[a-m]*", "/*/admin"];

/// What is wrong with letting `path` through under `pattern`: a server that reads it elsewhere.
fn astray(path: &str, pattern: &PathPattern) -> Option<String> {
    for (server, read) in SERVERS {
        let Some(names) = read(path) else { continue };
        let inside = AbsPath::new(&format!("/{}", names.join("/"))).is_ok_and(|read| pattern.covers(&read));
        if !inside {
            return Some(format!("{server} reads {path} as {names:?}, outside {pattern}"));
        }
    }
    // A server that does not decode sees the very spelling: there must be one for each path only.
    let names: Vec<String> =
        cleaned(path).iter().map(|name| decoded(name, lossy).unwrap_or_default()).collect();
    let spelt: Vec<String> = names.iter().map(|name| written(name)).collect();
    (spelt != cleaned(path)).then(|| format!("{path} has another spelling: {spelt:?}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_rule_lets_through_every_server_reads_inside_it(path in any_path()) {
        let asked = UrlPath::of_target(&path);
        for text in PATTERNS {
            let pattern = parse_pattern(text, false).unwrap();
            if asked.is_covered_by(&pattern) {
                prop_assert_eq!(astray(&path, &pattern), None);
            }
        }
    }

    #[test]
    fn names_are_written_in_one_way(name in "[ -~é日]{1,12}") {
        if judge_name(&name).is_ok() {
            prop_assert_eq!(clear_component(&written(&name)), Ok(name));
        }
    }
}

/// The models are not blind: each attack is read elsewhere by a server, and plain paths by none.
#[test]
fn the_models_see_the_attacks() {
    let api = parse_pattern("/api/**", false).unwrap();
    for attack in [
        "/api/../admin",
        "/api/..;/admin",
        "/api/..;x=y/admin",
        "/api/%2e%2e/admin",
        "/api/.%2e/admin",
        "/api/..%2fadmin",
        "/api\\..\\admin",
        "/api/..%5cadmin",
        "/api/..%3b/admin",
        "/api/%252e%252e/admin",
        "/api/..%00/admin",
        "/api/.%09./admin",
        "/api/.\t./admin",
        "/api/%c0%ae%c0%ae/admin",
        "/api/%EF%BC%8E%EF%BC%8E/admin",
        "/api/..%CD%BEx/admin",
        "/api/..%20/admin",
        "/api/%u002e%u002e/admin",
        "/%61pi/x",
    ] {
        assert!(astray(attack, &api).is_some(), "{attack}");
        assert!(!UrlPath::of_target(attack).is_covered_by(&api), "{attack}");
    }
    for plain in ["/api/x", "/api/a%20b/x.json", "/api/caf%C3%A9/", "/api/v1/x:run/@me"] {
        assert_eq!(astray(plain, &api), None);
        assert!(UrlPath::of_target(plain).is_covered_by(&api), "{plain}");
    }
}
