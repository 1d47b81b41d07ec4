//! The laws of a draft, and what comes of ordinary programs.

use bailiwick_manifest::Manifest;
use bailiwick_manifest::sensitive::SensitivePlaces;
use bailiwick_policy::capability::Capability;
use bailiwick_policy::path::AbsPath;
use proptest::prelude::*;

use super::*;

const HOME: &str = "/srv/homes/one";
const HERE: &str = "/srv/homes/one/project";

fn evidence() -> Evidence {
    let path = |text: &str| AbsPath::new(text).unwrap();
    let mut evidence = Evidence::new("probe");
    evidence.home = Some(path(HOME));
    evidence.here = Some(path(HERE));
    evidence.places = SensitivePlaces::new(Some(path(HOME)), []);
    evidence.private = vec![path("/tmp"), path(HOME)];
    evidence.opened = vec![path(HERE)];
    evidence.tools = ["one", "two"].map(|name| ToolSeen { name: name.to_owned(), calls: 0 }).to_vec();
    evidence
}

fn lines(evidence: &Evidence) -> Vec<String> {
    draft(evidence).lines.into_iter().map(|line| line.capability).collect()
}

#[test]
fn few_files_are_named_and_many_become_their_directory() {
    let mut seen = evidence();
    for name in ["a", "b"] {
        seen.touch(None, &format!("/opt/two/{name}"), Touch::Read, true);
    }
    for name in ["a", "b", "c", "d"] {
        seen.touch(None, &format!("/opt/four/{name}"), Touch::Read, true);
    }
    seen.touch(None, &format!("{HERE}/out/x.tmp"), Touch::Make, true);
    seen.touch(None, &format!("{HERE}/list"), Touch::Write, true);
    let wanted = [
        "fs:read,write:$WORKSPACE/list",
        "fs:read,write:$WORKSPACE/out",
        "fs:read:/opt/four/*",
        "fs:read:/opt/two/a",
        "fs:read:/opt/two/b",
    ];
    assert_eq!(lines(&seen), wanted);
}

#[test]
fn what_the_command_names_is_its_variable() {
    let mut seen = evidence();
    let values = vec![AbsPath::new("/srv/data").unwrap()];
    seen.variables.push(BoundVariable {
        name: "ROOTS".into(),
        binding: "{ argument = \"0..\" }".into(),
        values,
    });
    seen.begin_call(0, Vec::new());
    seen.touch(Some(0), "/srv/data/a/b", Touch::Read, true);
    seen.begin_call(1, Vec::new());
    seen.touch(Some(1), "/srv/data/new", Touch::Make, true);
    let draft = draft(&seen);
    let lines: Vec<_> = draft.lines.iter().map(|line| (line.tool, line.capability.as_str())).collect();
    assert_eq!(
        lines,
        [(Some(0), "fs:read:$ROOTS"), (Some(1), "fs:read,write:$ROOTS")],
        "each tool has its own"
    );
    let text = render(&seen, &draft);
    assert!(text.contains("ROOTS = { argument = \"0..\" }"), "{text}");
    Manifest::parse(&text).unwrap();
}

#[test]
fn sensitive_places_are_asked_about() {
    let secrets = [
        "/etc/shadow",
        "/etc/ssh/ssh_host_rsa_key",
        "/home/bob/notes",
        "/opt/app/.env",
        "/opt/app/server.pem",
        "/root/x",
        "/var/log/auth.log",
    ];
    for secret in secrets {
        let mut seen = evidence();
        seen.touch(None, secret, Touch::Read, true);
        let draft = draft(&seen);
        assert_eq!((draft.lines.len(), draft.questions.len()), (0, 1), "{secret} {draft:?}");
    }
    let mut seen = evidence();
    seen.touch(None, &format!("{HOME}/.ssh/id_rsa"), Touch::Read, false);
    seen.touch(None, &format!("{HERE}/.env"), Touch::Read, false);
    seen.touch(None, "/etc/app.conf", Touch::Read, true);
    let draft = draft(&seen);
    assert_eq!(draft.lines.len(), 1, "an ordinary file of the system is a line: {draft:?}");
    let asked: Vec<_> = draft.questions.iter().filter_map(|one| one.capability.as_deref()).collect();
    assert_eq!(asked, ["fs:read:~/.ssh/id_rsa", "fs:read:$WORKSPACE/.env"]);
}

#[test]
fn a_hostile_program_widens_nothing_by_touching_much() {
    let mut seen = evidence();
    for at in 0..10_000 {
        seen.touch(None, &format!("{HERE}/d{}/f{at}", at / 2), Touch::Read, true);
        seen.touch(None, &format!("/opt/d{}/f{at}", at / 2), Touch::Make, true);
        seen.started(None, &format!("/usr/bin/p{}", at % 3_000));
        seen.reached(None, &format!("h{at}.example"), Some(443), at % 2 == 0);
    }
    let draft = draft(&seen);
    let of = |axis: &str| draft.lines.iter().filter(|line| line.capability.starts_with(axis)).count();
    assert_eq!(of("fs:"), 0, "{:?}", draft.lines);
    assert!(of("exec:") <= MOST_LINES && of("net:") <= MOST_LINES);
    assert!(draft.questions.len() <= MOST_QUESTIONS);
    assert!(draft.questions.iter().any(|one| one.why.contains("5000 directories")), "{:?}", draft.questions);
    assert!(seen.incomplete.is_some(), "more programs than are remembered");
}

#[test]
fn each_call_counts_once() {
    let mut seen = evidence();
    for _ in 0..3 {
        seen.begin_call(0, Vec::new());
        seen.touch(Some(0), "/opt/x/a", Touch::Look, true);
        seen.touch(Some(0), "/opt/x/a", Touch::Read, true);
    }
    seen.begin_call(0, Vec::new());
    let draft = draft(&seen);
    assert_eq!(draft.lines[0].by.tools[&0], 3);
    let text = render(&seen, &draft);
    assert!(text.contains("# this very file: one, 3 of 4 calls; first /opt/x/a"), "{text}");
}

#[test]
fn programs_are_named_and_helpers_come_with_them() {
    let mut seen = evidence();
    for path in ["/usr/bin/git", "/usr/lib/git-core/git", "/bin/sh", "/srv/homes/one/project/tool"] {
        seen.started(None, path);
    }
    let draft = draft(&seen);
    let lines: Vec<_> = draft.lines.iter().map(|line| line.capability.as_str()).collect();
    assert_eq!(lines, ["exec:spawn:git", "exec:spawn:sh"]);
    assert_eq!(draft.questions.len(), 1);
}

#[test]
fn requests_have_lines_of_their_own_and_other_traffic_has_the_host() {
    let mut seen = evidence();
    seen.begin_call(0, vec!["anna".into()]);
    seen.requested(Some(0), "api.test", 80, "GET /v1/users/anna?x=1");
    seen.requested(Some(0), "api.test", 80, "POST /v1/log");
    for name in ["a", "b", "c", "d"] {
        seen.requested(Some(0), "api.test", 8080, &format!("GET /static/{name}"));
    }
    seen.requested(None, "mixed.test", 80, "GET /x");
    seen.reached(None, "mixed.test", Some(80), true);
    seen.begin_call(1, vec!["http://any.test/page".into()]);
    seen.requested(Some(1), "any.test", 80, "GET /robots.txt");
    seen.requested(Some(1), "any.test", 80, "GET /page");
    let wanted = [
        "net:connect:mixed.test:80",
        "net:http:GET@http://api.test/v1/users/*",
        "net:http:GET@http://api.test:8080/static/*",
        "net:http:POST@http://api.test/v1/log",
        "net:http:GET@http://any.test/**",
    ];
    assert_eq!(lines(&seen), wanted);
    for at in 0..1_000 {
        seen.requested(None, "flood.test", 80, &format!("GET /{at}/{at}"));
    }
    assert!(lines(&seen).contains(&"net:http:GET@http://flood.test/**".to_owned()), "{:?}", lines(&seen));
    assert!(lines(&seen).len() <= MOST_LINES, "{:?}", lines(&seen));
}

#[test]
fn what_resolving_a_name_looks_at_is_no_need() {
    let mut seen = evidence();
    for path in ["/etc/host.conf", "/etc/gai.conf", "/etc/resolv.conf", "/etc/hosts"] {
        seen.touch(None, path, Touch::Read, true);
    }
    assert_eq!(draft(&seen), Draft::default());
    seen.touch(None, "/etc/host.conf", Touch::Write, true);
    assert_eq!((lines(&seen), draft(&seen).questions.len()), (vec![], 1), "changing it is another thing");
}

#[test]
fn own_code_that_it_may_not_change_is_a_question() {
    let mut seen = evidence();
    seen.shown = vec![AbsPath::new(&format!("{HERE}/server.py")).unwrap()];
    seen.touch(None, &format!("{HERE}/server.py"), Touch::Read, true);
    assert_eq!(draft(&seen), Draft::default());
    seen.touch(None, &format!("{HERE}/server.py"), Touch::Write, false);
    let draft = draft(&seen);
    assert_eq!((draft.lines.len(), draft.questions.len()), (0, 1), "{draft:?}");
}

#[test]
fn an_incomplete_manifest_says_so_and_comments_hold() {
    let mut seen = evidence();
    seen.lost("x\ny\u{202e}");
    seen.tools.push(ToolSeen { name: "a\"]\n[evil]".into(), calls: 1 });
    seen.touch(None, "/opt/a\nserver_capabilities = ['fs:read:/']/x", Touch::Read, true);
    let text = render(&seen, &draft(&seen));
    assert!(text.starts_with(INCOMPLETE), "{text}");
    assert_eq!(Manifest::parse(&text).unwrap().server_capabilities().len(), 0, "{text}");
}

/// A path with a good part of trouble in it.
fn any_path() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "etc", "home", "root", "one", "srv", "homes", "project", ".ssh", ".env", "a", "b", "*", "..",
        "$HOME", "~", "usr", "bin", "x y", "\n", "proc", "opt", "var", "lib",
    ]);
    prop::collection::vec(part, 0..6).prop_map(|parts| format!("/{}", parts.join("/")))
}

fn any_touch() -> impl Strategy<Value = Touch> {
    let all = vec![Touch::Look, Touch::Read, Touch::List, Touch::Write, Touch::Make, Touch::Remove];
    prop::sample::select(all)
}

proptest! {
    #[test]
    fn no_draft_is_wide(
        touched in prop::collection::vec((any_path(), any_touch(), any::<bool>()), 0..80),
        started in prop::collection::vec(any_path(), 0..20),
        hosts in prop::collection::vec(prop::sample::select(vec!["*", "a.example", "*.example", "10.0.0.1", ""]), 0..6),
    ) {
        let mut seen = evidence();
        for (path, touch, is_shown) in &touched {
            seen.touch(None, path, *touch, *is_shown);
        }
        started.iter().for_each(|path| seen.started(None, path));
        hosts.iter().for_each(|host| seen.reached(None, host, Some(443), true));
        let draft = draft(&seen);
        for line in &draft.lines {
            let whole = line.capability.replace("$WORKSPACE", HERE).replace('~', HOME);
            prop_assert!(Capability::new(&whole).is_ok(), "{}", whole);
            let wide = ["/", "/*", "/etc", "/etc/*", "/home", "/home/*", "/root", "~", "~/*", "/usr", "/var", "/srv", "/opt"];
            let place = line.capability.rsplit(':').next().unwrap();
            prop_assert!(!line.capability.starts_with("fs:") || !wide.contains(&place), "{}", line.capability);
            let is_secret = line.capability.contains(".ssh") || line.capability.contains(".env");
            prop_assert!(!line.capability.starts_with("fs:") || !is_secret, "{}", line.capability);
            prop_assert!(line.capability != "exec:spawn:*" && !line.capability.contains("connect:*"));
        }
        prop_assert!(draft.questions.len() <= MOST_QUESTIONS);
        let text = render(&seen, &draft);
        let read = Manifest::parse(&text);
        prop_assert!(read.is_ok(), "{:?}\n{}", read, text);
        prop_assert_eq!(read.unwrap().server_capabilities().len(), draft.lines.iter().filter(|line| line.tool.is_none()).count());
    }

    #[test]
    fn order_does_not_matter(touched in prop::collection::vec((any_path(), any_touch()), 0..40)) {
        let of = |all: &[(String, Touch)]| {
            let mut seen = evidence();
            all.iter().for_each(|(path, touch)| seen.touch(None, path, *touch, true));
            draft(&seen)
        };
        let mut turned = touched.clone();
        turned.reverse();
        prop_assert_eq!(of(&touched), of(&turned));
    }
}
