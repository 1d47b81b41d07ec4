//! `install --hooks` and `--undo` on files that a person edits: before, between two installs, and after.
//!
//! For every agent, in the user's settings and in a project's by a relative path: what a person wrote stays, of what is
//! ours nothing is left.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::guard::Place;

/// Every agent: its file below the home, below a project, and a piece of our text that a person may change.
const FILES: [(&str, &str, &str, &str); 7] = [
    ("claude-code", ".claude/settings.json", ".claude/settings.json", "310"),
    ("codex", ".codex/hooks.json", ".codex/hooks.json", "310"),
    ("cursor", ".cursor/hooks.json", ".cursor/hooks.json", "310"),
    ("gemini", ".gemini/settings.json", ".gemini/settings.json", "310000"),
    ("qwen", ".qwen/settings.json", ".qwen/settings.json", "310000"),
    ("copilot", ".copilot/hooks/bailiwick.json", ".github/hooks/bailiwick.json", "310"),
    ("opencode", ".config/opencode/plugin/bailiwick.js", ".opencode/plugin/bailiwick.js", "let said"),
];

/// What the file was before: not there, as a person writes it, as an editor of another system does.
const BEFORE: [Option<&str>; 3] =
    [None, Some("{\n  // mine\n  \"model\": \"x\"\n}\n"), Some("\u{feff}{\r\n  \"model\": \"x\"\r\n}\r\n")];

/// A person's edits: when, and whether of our own text too.
#[derive(Debug, Clone, Copy)]
struct Edits {
    between: bool,
    after: bool,
    of_ours: bool,
}

fn all_edits() -> impl Iterator<Item = Edits> {
    (0..8_u8).map(|bits| Edits { between: bits & 1 != 0, after: bits & 2 != 0, of_ours: bits & 4 != 0 })
}

/// The text with something of a person's in it.
fn edited(text: &str, name: &str, is_code: bool) -> String {
    if is_code {
        return format!("{text}// {name}\n");
    }
    text.replacen('{', &format!("{{\n  \"{name}\": true,"), 1)
}

struct Session<'a> {
    place: &'a Place,
    path: PathBuf,
    install: Vec<&'a str>,
}

impl Session<'_> {
    fn run(&self, more: &[&str]) {
        let ran = self.place.run(&[&self.install[..], more].concat());
        assert_eq!(ran.exit, 0, "{:?}: {}{}", self.install, ran.out, ran.err);
    }

    fn read(&self) -> Option<String> {
        std::fs::read_to_string(&self.path).ok()
    }

    fn edit(&self, edit: impl Fn(&str) -> String) {
        std::fs::write(&self.path, edit(&self.read().unwrap())).unwrap();
    }
}

/// What a file says, without its spelling; a file of code is its text.
fn meaning(text: &str, is_code: bool) -> Value {
    let text = text.trim_start_matches('\u{feff}').replace("// mine", "");
    if is_code { Value::String(text) } else { serde_json::from_str(&text).unwrap_or(Value::String(text)) }
}

#[test]
fn what_a_person_edits_stays_and_nothing_of_ours_does() {
    let place = Place::new();
    let home = place.0.path().canonicalize().unwrap();
    for (agent, user, project, ours) in FILES {
        let is_code = agent == "opencode";
        for before in BEFORE.into_iter().filter(|before| before.is_none() || !is_code) {
            for (number, edits) in all_edits().enumerate() {
                let relative = number % 2 == 0;
                let path = if relative { place.project().join(project) } else { home.join(user) };
                let scope: &[&str] = if relative { &["--project", "."] } else { &[] };
                let install = [&["install", "--hooks", agent][..], scope].concat();
                let session = Session { place: &place, path, install };
                one(&session, before, edits, (is_code, ours, agent));
            }
        }
    }
}

fn one(
    session: &Session<'_>,
    before: Option<&str>,
    edits: Edits,
    (is_code, ours, agent): (bool, &str, &str),
) {
    let about = format!("{agent}, {before:?}, {edits:?}, {}", session.path.display());
    if let Some(before) = before {
        std::fs::create_dir_all(session.path.parent().unwrap()).unwrap();
        std::fs::write(&session.path, before).unwrap();
    }
    session.run(&[]);
    assert!(session.read().unwrap().contains(ours), "{about}");
    if edits.of_ours {
        session.edit(|text| text.replacen(ours, &ours.replace("310", "20").replace("said", "mine"), 1));
    }
    if edits.between {
        session.edit(|text| edited(text, "between", is_code));
    }
    session.run(&[]);
    if edits.after {
        session.edit(|text| edited(text, "after", is_code));
    }
    session.run(&["--undo"]);
    let mut expected = before.map(str::to_owned);
    for (name, _) in [("between", edits.between), ("after", edits.after)].iter().filter(|(_, done)| *done) {
        let bare = if is_code {
            ""
        } else if agent == "cursor" || agent == "copilot" {
            "{\"version\": 1}"
        } else {
            "{}"
        };
        expected = Some(edited(expected.as_deref().unwrap_or(bare), name, is_code));
    }
    let left = session.read();
    match (&left, &expected) {
        (Some(left), Some(expected)) => {
            assert_eq!(
                meaning(left, is_code),
                meaning(&expected.replace(",}", "}"), is_code),
                "{about}: {left}"
            );
            assert!(!left.contains("hook "), "{about}: {left}");
            // Without an edit of the person's beside ours, byte for byte.
            if before.is_some() && !edits.between && !edits.after && !edits.of_ours {
                assert_eq!(left, expected, "{about}");
            }
        }
        (left, expected) => assert_eq!(left.is_some(), expected.is_some(), "{about}: {left:?}"),
    }
    drop(std::fs::remove_file(&session.path));
}

#[test]
fn a_missing_file_behind_a_link_is_found_again() {
    let place = Place::new();
    let home = place.0.path().canonicalize().unwrap();
    let real = home.join("dotfiles/claude");
    std::fs::create_dir_all(&real).unwrap();
    std::os::unix::fs::symlink(&real, home.join(".claude")).unwrap();
    assert_eq!(place.run(&["install", "--hooks", "claude-code"]).exit, 0);
    assert!(real.join("settings.json").exists());
    assert_eq!(place.run(&["install", "--hooks", "claude-code", "--undo"]).exit, 0);
    assert!(!real.join("settings.json").exists(), "it was not there before");
}

#[test]
fn directories_that_were_made_for_a_file_go_with_it() {
    let place = Place::new();
    let home = place.0.path().canonicalize().unwrap();
    let gone = |path: &Path| assert!(!path.exists(), "{}", path.display());
    let run =
        |more: &[&str]| assert_eq!(place.run(&[&["install", "--hooks", "copilot"], more].concat()).exit, 0);
    run(&[]);
    run(&[]);
    run(&["--undo"]);
    gone(&home.join(".copilot"));
    std::fs::create_dir(home.join(".copilot")).unwrap();
    run(&[]);
    std::fs::write(home.join(".copilot/hooks/other.json"), "{}").unwrap();
    run(&["--undo"]);
    gone(&home.join(".copilot/hooks/bailiwick.json"));
    assert!(home.join(".copilot/hooks/other.json").exists(), "what others put there stays");
}
