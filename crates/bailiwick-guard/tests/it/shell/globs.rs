//! Patterns of file names, held against those of the bash of this machine.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::desk::Desk;

/// Stands between the names of two patterns.
const BETWEEN: &str = "@@";

/// How many patterns one command has.
const AT_ONCE: usize = 40;

/// Parts of patterns: every kind of wildcard, plain and quoted ones, names that are there and names that are not.
const PARTS: [&str; 48] = [
    "*",
    "?",
    "??",
    "**",
    "*.txt",
    "a*",
    "*b",
    "?*",
    "*?",
    "[!a]*",
    "[^a]*",
    "[ab]*",
    "[a-c]?",
    "[a-]*",
    "[]]*",
    "[!]]*",
    "[z-a]*",
    "[[:alpha:]]*",
    "[[:upper:]]*",
    "[![:alnum:]]*",
    "[[:nope:]]*",
    "[[=a=]]*",
    "[[.-.]]*",
    ".*",
    ".[!.]*",
    "..*",
    "[.]*",
    r"\.*",
    "[!.]*",
    "sub",
    "no-such",
    "no-such*",
    "..",
    ".",
    r"\*",
    "'*'",
    "\"*\"",
    "\"a\"*",
    "[a",
    "x[",
    "a]",
    "é*",
    "?é",
    "lin?",
    "f*k",
    "dang*",
    "${V}",
    r"b\ *",
];

/// A directory far enough inside what is granted that `..` stays inside too.
const HERE: &str = "1/2/3/4/here";

fn desk() -> Desk {
    let desk = Desk::new(&["printf", "rm", "ls"]);
    fill(&desk.work());
    desk
}

fn fill(work: &std::path::Path) {
    for directory in ["ab/ab", "ab/cd.txt", ".dot/in", "b c/a", "é", "..x", "A", "sub/ab"] {
        std::fs::create_dir_all(work.join(directory)).unwrap();
    }
    for file in ["*", "]x", "[a", "-f", "aé", "ab/ab/deep.txt", "b c/a.txt", ".dot/in/a", "Z.txt", "a-b"] {
        std::fs::write(work.join(file), file).unwrap();
    }
    std::fs::write(work.join(std::ffi::OsStr::from_bytes(b"n\xff")), "").unwrap();
    for (target, link) in
        [("sub", "link"), ("a.txt", "filelink"), ("nothing", "dangling"), ("ab/ab", "sub/link")]
    {
        symlink(target, work.join(link)).unwrap();
    }
}

/// Every part alone and a seeded choice of what can be put together from two and three, with slashes all about.
fn patterns(count: usize) -> BTreeSet<String> {
    let mut all: BTreeSet<String> =
        PARTS.iter().flat_map(|part| [(*part).to_owned(), format!("{part}/")]).collect();
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    let mut pick = |most: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % u64::try_from(most).unwrap()).unwrap()
    };
    let (starts, ends) =
        (["", "", "", "./", "$PWD/", "~/", "../here/", "ab//"], ["", "", "", "/", "//", "/."]);
    while all.len() < count {
        let mut text = starts[pick(starts.len())].to_owned();
        for number in 0..=pick(3) {
            if number > 0 {
                text += ["/", "/", "/", "//", ""][pick(5)];
            }
            text += PARTS[pick(PARTS.len())];
        }
        all.insert(text + ends[pick(ends.len())]);
    }
    all
}

fn script(patterns: &[&String]) -> String {
    let words: Vec<String> = patterns.iter().map(|pattern| format!("{pattern} {BETWEEN}")).collect();
    format!("cd {HERE}; V='*'; printf '%s\\0' {}", words.join(" "))
}

/// What each pattern became.
fn expanded(said: &str) -> Vec<Vec<String>> {
    let words: Vec<String> = said.split_terminator('\0').map(str::to_owned).collect();
    let mut all: Vec<_> = words.split(|word| word == BETWEEN).map(<[String]>::to_vec).collect();
    all.pop();
    all
}

fn by_bash(desk: &Desk, script: &str) -> String {
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc", "-c", script]).env_clear().env("LC_ALL", "C.UTF-8");
    let output = bash.env("HOME", desk.work().join("sub")).current_dir(desk.work()).output();
    let output = output.expect("this test needs bash");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn patterns_become_what_they_become_in_bash() {
    let desk = Desk::new(&["printf"]);
    let here = desk.work().join(HERE);
    std::fs::create_dir_all(here.join("sub")).unwrap();
    for file in ["a.txt", "b.txt", ".hidden", "sub/c.txt"] {
        std::fs::write(here.join(file), "").unwrap();
    }
    fill(&here);
    let all = patterns(2000);
    let all: Vec<&String> = all.iter().collect();
    let mut different = Vec::new();
    for some in all.chunks(AT_ONCE) {
        let script = script(some);
        let (ours, theirs) = (expanded(&desk.says(&script)), expanded(&by_bash(&desk, &script)));
        assert_eq!((ours.len(), theirs.len()), (some.len(), some.len()), "{script}");
        let rows = some.iter().zip(ours).zip(theirs).filter(|((_, ours), theirs)| ours != theirs);
        different
            .extend(rows.map(|((pattern, ours), theirs)| format!("{pattern}: {ours:?}, bash: {theirs:?}")));
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}

#[test]
fn what_stands_before_a_slash_is_a_directory() {
    let desk = desk();
    desk.says("rm -rf */");
    for gone in ["ab", "é", "A", "b c"] {
        assert!(!desk.has(gone), "{gone}");
    }
    for kept in ["a.txt", "b.txt", "*", "-f", "filelink", "dangling", ".dot", ".hidden"] {
        assert!(desk.has(kept), "{kept}");
    }
}

/// A link out of what is granted is no directory here, as it is none inside the sandbox.
#[test]
fn links_that_lead_outside_are_no_directories() {
    let desk = desk();
    symlink(desk.outside(), desk.work().join("out")).unwrap();
    let said = desk.says(r"printf '%s\n' o*/ o*/* o*/secret o*");
    assert_eq!(said, "o*/\no*/*\no*/secret\nout\n");
}

#[test]
fn a_pattern_that_matches_too_much_runs_nothing() {
    let desk = desk();
    let many = desk.work().join("many");
    std::fs::create_dir(&many).unwrap();
    for number in 0..9000 {
        std::fs::write(many.join(format!("{number:0>240}")), "").unwrap();
    }
    let out = desk.script("rm many/*").unwrap();
    assert_eq!(out["exit_code"], 126, "{out}");
    assert!(out["stderr"].as_str().unwrap().contains("more than a command can take"), "{out}");
    assert_eq!(many.read_dir().unwrap().count(), 9000, "all or nothing");
    assert_eq!(desk.says("printf '%s' many/*1?'' > list; rm many/*5; ls"), desk.says("ls"));
    assert!(many.read_dir().unwrap().count() < 9000);
}

/// Values that double with each line are more than any memory after a few.
#[test]
fn values_that_grow_without_end_are_refused_before_anything_runs() {
    let desk = desk();
    for script in [
        format!("A=xxxxxxxx; {} printf '%s' x > made", "A=$A$A$A; ".repeat(200)),
        format!("A={}; printf '%s' x > made; printf {}", "x".repeat(9000), "$A$A$A$A ".repeat(100)),
        format!(
            "A={}; {} printf '%s' x > made",
            "x".repeat(9000),
            (0..40).map(|n| format!("B{n}=$A; ")).collect::<String>()
        ),
    ] {
        let why = desk.refuses(&script);
        assert!(why.contains("bytes of va"), "{why}");
        assert!(!desk.has("made"));
    }
    assert!(desk.refuses(&["printf x > a"; 40].join(" | ")).contains("a pipeline of more than"));
}
