//! The argument gate against the ways a path can be written.

use std::os::unix::fs::symlink;

use bailiwick_policy::capability::CapabilitySet;
use serde_json::json;

use super::*;

fn rules(lines: &[&str]) -> ArgumentRules {
    let set = CapabilitySet::new(lines.iter().copied()).unwrap();
    ArgumentRules::within(set.authority().read().clone(), set.authority().write().clone())
}

fn session() -> Surroundings {
    let top = ["etc", "usr", "srv", "home", "tmp"].map(str::to_owned);
    Surroundings::new("/srv/job").with_home("/home/u").with_top_level(top)
}

fn code(rules: &ArgumentRules, args: Value) -> Option<DenialCode> {
    rules.judge("t", &args, &session()).err().map(|denial| denial.code())
}

const OUTSIDE: Option<DenialCode> = Some(DenialCode::ArgumentOutsidePolicy);
const UNREADABLE: Option<DenialCode> = Some(DenialCode::ArgumentUnreadable);

#[test]
fn paths_are_found_wherever_they_are() {
    let rules = rules(&["fs:read:/srv/data", "fs:write:/srv/job"]);
    for (args, expected) in [
        (json!({"path": "/srv/data/x"}), None),
        (json!({"path": "/srv/job/x"}), None),
        (json!({"path": "/etc/passwd"}), OUTSIDE),
        (json!({"path": "/srv/data/../../etc/passwd"}), OUTSIDE),
        (json!({"path": "relative.txt"}), None),
        (json!({"path": "../../etc/passwd"}), OUTSIDE),
        (json!({"path": "~/x"}), OUTSIDE),
        (json!({"path": "~root/x"}), UNREADABLE),
        (json!({"path": "/srv/data/x\u{0}"}), UNREADABLE),
        (json!({"options": {"deep": [{"outputDir": "/etc"}]}}), OUTSIDE),
        (json!({"paths": ["/srv/data/a", "/etc/b"]}), OUTSIDE),
        (json!({"paths": {"first": "/srv/data/a", "second": "../../etc"}}), OUTSIDE),
        (json!({"anything": "/etc/passwd"}), OUTSIDE),
        (json!({"anything": "//etc/passwd"}), OUTSIDE),
        (json!(["/etc/passwd"]), OUTSIDE),
        (json!({"/etc/passwd": 1}), OUTSIDE),
        (json!({"uri": "file:///etc/passwd"}), OUTSIDE),
        (json!({"link": "FILE:/etc/passwd"}), OUTSIDE),
        (json!({"uri": "file://localhost/srv/data/x"}), None),
        (json!({"uri": "file:///srv/data/%2e%2e/%2e%2e/etc/passwd"}), OUTSIDE),
        (json!({"uri": "file://evil.test/srv/data/x"}), UNREADABLE),
        (json!({"link": ["fi\tle:///etc/passwd"]}), OUTSIDE),
        (json!({"link": "\u{1}file:///etc/passwd"}), OUTSIDE),
        (json!({"link": "file:///srv/data/.\t./.\n./etc/passwd"}), UNREADABLE),
        (json!({"link": "file:///srv/data/..\\..\\etc/passwd"}), UNREADABLE),
        (json!({"link": "file:\\\\\\etc\\passwd"}), UNREADABLE),
        (json!({"uri": "file:///srv/data/%zz"}), UNREADABLE),
        (json!({"uri": "https://example.com/etc/passwd"}), None),
        (json!({"text": "/help me"}), None),
        (json!({"text": "/usr is where programs live"}), None),
        (json!({"text": "see /etc/passwd"}), None),
        (json!({"text": "and/or"}), None),
        (json!({"count": 3, "flag": true, "nothing": null}), None),
    ] {
        assert_eq!(code(&rules, args.clone()), expected, "{args}");
    }
}

#[test]
fn reading_and_writing_are_kept_apart() {
    let marks = BTreeMap::from([
        ("target".to_owned(), Treatment::Write),
        ("source".to_owned(), Treatment::Read),
        ("path".to_owned(), Treatment::Text),
    ]);
    let rules = rules(&["fs:read:/srv/data", "fs:write:/srv/job"]).with_marks(marks);
    assert_eq!(code(&rules, json!({"target": "/srv/job/x", "source": "/srv/data/x"})), None);
    assert_eq!(code(&rules, json!({"target": "/srv/data/x"})), OUTSIDE, "may be read, not written");
    assert_eq!(code(&rules, json!({"source": "/srv/job/x"})), OUTSIDE, "may be written, not read");
    assert_eq!(code(&rules, json!({"path": "src/main.rs"})), None, "a path elsewhere");
    let none = self::rules(&[]);
    assert_eq!(code(&none, json!({"path": "x"})), OUTSIDE, "none means none");
}

#[test]
fn links_do_not_lead_out() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    symlink("/etc", base.join("out")).unwrap();
    let rules = rules(&[&format!("fs:read:{}", base.display())]);
    let args = |name: &str| json!({"path": base.join(name).to_str().unwrap()});
    assert_eq!(code(&rules, args("new")), None);
    assert_eq!(code(&rules, args("out/passwd")), OUTSIDE);
}

#[test]
fn the_denial_is_worded_for_the_model() {
    let denial =
        rules(&["fs:read:/srv/data"]).judge("x", &json!({"path": "/etc/passwd"}), &session()).unwrap_err();
    assert_eq!(
        denial.message(),
        "Tool 'x' denied by policy: path '/etc/passwd' outside declared filesystem policy [/srv/data/**]"
    );
    assert_eq!(denial.smallest_lines().as_deref(), Some("fs:read:/etc/passwd"));
    let deep = (0..200).fold(json!("x"), |value, _| json!([value]));
    assert_eq!(code(&rules(&[]), deep), Some(DenialCode::ArgumentTooDeep));
}
