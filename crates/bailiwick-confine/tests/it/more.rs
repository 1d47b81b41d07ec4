//! The law of grants: more capabilities never make less work. What a program could start and read, it can with any
//! further grant, with one exception: a directory that becomes writable is one from which nothing is started.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bailiwick_confine::Options;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::support::{directory, run_with, script};

/// Lines of grants; `{}` is a directory of the test's own.
const LINES: [&str; 16] = [
    "exec:spawn:*",
    "exec:spawn:*?fromWritable=true",
    "exec:spawn:{}/out/tool",
    "exec:spawn:{}/w/tool",
    "exec:spawn:id",
    "exec:spawn:/usr/bin/id",
    "fs:read:{}/r",
    "fs:read:{}/r?code=true",
    "fs:read:{}/r/*",
    "fs:read,write:{}/w",
    "fs:read:{}/w/sub?code=true",
    "fs:read:/**",
    "fs:read:/usr",
    "fs:read:{}",
    "net:connect:example.com:443",
    "env:read:HOME",
];

/// What is tried: programs to start, and files to read.
const TRIED: [&str; 6] = ["{}/out/tool", "{}/w/tool", "{}/r/tool", "id", "/usr/bin/id", "true"];
const READ: [&str; 5] = ["{}/r/file", "{}/w/file", "{}/w/sub/file", "/usr/lib/os-release", "/etc/passwd"];

/// What works with these grants.
fn works(w: &Path, lines: &BTreeSet<usize>) -> BTreeSet<String> {
    let fill = |text: &str| text.replace("{}", &w.display().to_string());
    let mut text = String::new();
    for program in TRIED.iter().map(|program| fill(program)) {
        text += &format!("{program} > /dev/null 2>&1 && echo start {program}\n");
    }
    for file in READ.iter().map(|file| fill(file)) {
        text += &format!("{{ read x < {file}; }} 2> /dev/null && echo read {file}\n");
    }
    let lines: Vec<String> = lines.iter().map(|at| fill(LINES[*at])).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let said = run_with(&lines, script(&(text + "true"), Path::new("/")), Options::default());
    said.ok().lines().map(str::to_owned).collect()
}

/// What a plan may lose by more lines: starting a program in a directory that these lines make writable. Writing
/// somewhere and running what lies there are never granted together, except by `?fromWritable=true`.
fn may_be_lost(w: &Path, few: &BTreeSet<usize>, both: &BTreeSet<usize>) -> BTreeSet<String> {
    const WRITES: usize = 9;
    const FROM_WRITABLE: usize = 1;
    let became_writable = both.contains(&WRITES) && !few.contains(&WRITES) && !both.contains(&FROM_WRITABLE);
    let lost = became_writable.then(|| format!("start {}/w/tool", w.display()));
    lost.into_iter().collect()
}

/// What works with these grants, each set tried once.
struct Tried<'w> {
    w: &'w Path,
    known: BTreeMap<BTreeSet<usize>, BTreeSet<String>>,
}

impl Tried<'_> {
    fn works(&mut self, lines: &BTreeSet<usize>) -> BTreeSet<String> {
        let w = self.w;
        self.known.entry(lines.clone()).or_insert_with(|| works(w, lines)).clone()
    }

    /// What the second set, which holds the first, takes away without a right to.
    fn lost(&mut self, few: &BTreeSet<usize>, both: &BTreeSet<usize>) -> Option<String> {
        let (before, after) = (self.works(few), self.works(both));
        let allowed = may_be_lost(self.w, few, both);
        let lost: Vec<_> = before.difference(&after).filter(|what| !allowed.contains(*what)).collect();
        let named = |lines: &BTreeSet<usize>| lines.iter().map(|at| LINES[*at]).collect::<Vec<_>>();
        (!lost.is_empty()).then(|| format!("{:?} lost {lost:?} by {:?}", named(few), named(both)))
    }
}

#[test]
fn more_capabilities_never_make_less_work() {
    let (_own, w) = directory();
    for directory in ["out", "r", "w/sub"] {
        std::fs::create_dir_all(w.join(directory)).unwrap();
        std::fs::write(w.join(directory).join("file"), "text\n").unwrap();
    }
    std::fs::write(w.join("w/file"), "text\n").unwrap();
    for tool in ["out/tool", "w/tool", "r/tool"] {
        std::fs::copy("/bin/true", w.join(tool)).unwrap();
        std::fs::set_permissions(w.join(tool), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut tried = Tried { w: &w, known: BTreeMap::new() };
    // The case that was wrong once, every pair of lines, and larger sets that are the same in every run.
    let named = BTreeSet::from([2]);
    assert!(tried.works(&named).contains(&format!("start {}/out/tool", w.display())));
    for (first, second) in
        (0..LINES.len()).flat_map(|first| (0..LINES.len()).map(move |second| (first, second)))
    {
        let fault = tried.lost(&BTreeSet::from([first]), &BTreeSet::from([first, second]));
        assert_eq!(fault, None);
    }
    let lines = || prop::collection::btree_set(0..LINES.len(), 0..4);
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let config = Config { cases: cases(), failure_persistence: None, ..Config::default() };
    let tried = std::cell::RefCell::new(tried);
    let checked = TestRunner::new_with_rng(config, rng).run(&(lines(), lines()), |(few, more)| {
        let fault = tried.borrow_mut().lost(&few, &few.union(&more).copied().collect());
        prop_assert!(fault.is_none(), "{}", fault.unwrap_or_default());
        Ok(())
    });
    checked.unwrap_or_else(|fault| panic!("{fault}"));
}

/// How many larger sets are tried: more in the long run, which asks for many.
fn cases() -> u32 {
    if std::env::var_os("PROPTEST_CASES").is_some() { 1000 } else { 60 }
}

#[test]
fn what_becomes_writable_is_not_started_unless_that_is_granted() {
    let (_own, w) = directory();
    std::fs::create_dir_all(w.join("w")).unwrap();
    std::fs::copy("/bin/true", w.join("w/tool")).unwrap();
    let starts = |lines: &[usize]| {
        works(&w, &lines.iter().copied().collect()).iter().any(|what| what.ends_with("w/tool"))
    };
    assert!(starts(&[0, 13]), "a program in a readable directory starts with `exec:spawn:*`");
    assert!(!starts(&[0, 9, 13]), "it does not where the directory is writable");
    assert!(starts(&[1, 9, 13]), "it does with `?fromWritable=true`");
    assert!(starts(&[0, 3, 9, 13]), "it does where it is granted by its path");
}
