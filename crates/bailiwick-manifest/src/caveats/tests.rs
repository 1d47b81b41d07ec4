//! Caveats as others write them.

use bailiwick_policy::authority::{Request, Spawn};
use bailiwick_policy::capability::Program;
use bailiwick_policy::net::{Host, NetRequest, Speak};
use bailiwick_policy::path::AbsPath;

use super::*;

const WIRE: &str = r#"{"fs_read":"all","fs_write":{"only":["/repo"]},"exec":{"only":["cargo","git"]},"net":{"only":[]},
 "max_calls":{"at_most":3},"valid_for_generation":{"only":[42]}}"#;

fn reach(host: &str) -> Request {
    Request::Net(NetRequest::new(Host::new(host).unwrap(), 443, Speak::Tls))
}

#[test]
fn the_wire_form_means_what_it_says() {
    let authority = Caveats::parse(WIRE).unwrap().authority().unwrap();
    let path = |text| AbsPath::new(text).unwrap();
    let spawn = |name: &str| Request::Spawn(Spawn::plain(Program::Name(name.into())));
    assert!(authority.allows(&Request::Read(path("/etc/passwd"))));
    assert!(
        authority.allows(&Request::Delete(path("/repo/src/x")))
            && !authority.allows(&Request::Write(path("/repos")))
    );
    assert!(authority.allows(&spawn("git")) && !authority.allows(&spawn("rm")));
    assert!(!authority.allows(&reach("example.com")));
    assert!(!authority.allows(&Request::ReadEnv("HOME".into())), "an absent axis is none");
    assert_eq!(authority.calls(), CountBound::AtMost(3));
    assert!(authority.allows_generation(42) && !authority.allows_generation(43));
}

#[test]
fn all_is_not_more_than_it_says() {
    let all = Caveats::top().authority().unwrap();
    assert!(all.allows(&reach("example.com")) && !all.allows(&reach("127.0.0.1")));
    assert!(
        all.allows(&Request::InjectEnv("TOKEN".into()))
            && !all.allows(&Request::InjectEnv("LD_PRELOAD".into()))
    );
    let program = Program::Name("sh".into());
    assert!(all.allows(&Request::Spawn(Spawn::plain(program.clone()))));
    assert!(!all.allows(&Request::Spawn(Spawn { program, nested_sandbox: false, from_writable: true })));
}

#[test]
fn toml_and_configuration_files_work() {
    let toml = "fs_read = 'all'\nfs_write = 'all'\nexec = { only = ['echo'] }\nnet = { only = ['a.test?blockPrivate=false'] }\n\
                max_calls = { at_most = 20 }\nvalid_for_generation = 'all'\n";
    let caveats = Caveats::parse(toml).unwrap();
    assert_eq!(caveats.max_calls, CountBound::AtMost(20));
    let config = format!("[caveats]\n{toml}\n[other]\nx = 1\n");
    assert_eq!(Caveats::parse_config(&config).unwrap(), Some(caveats));
    assert_eq!(Caveats::parse_config("x = 1\n").unwrap(), None);
}

#[test]
fn typos_and_gaps_are_findings() {
    for (text, code) in [
        (WIRE.replace("fs_read", "fs_raed"), Code::CaveatsUnknownAxis),
        (WIRE.replace(r#""exec":{"only":["cargo","git"]},"#, ""), Code::CaveatsShape),
        (WIRE.replace(r#""all""#, r#""any""#), Code::CaveatsShape),
        (WIRE.replace(r#"{"only":[]}"#, r#"{"only":[],"also":[]}"#), Code::CaveatsShape),
        (WIRE.replace(r#"["/repo"]"#, r#"["repo"]"#), Code::PathRelative),
        (WIRE.replace(r#"["cargo","git"]"#, r#"["*"]"#), Code::CaveatsShape),
        (WIRE.replace("}}", r#"},"env":{"only":["LD_PRELOAD"]}}"#), Code::EnvLoader),
        (WIRE.replace('3', "-3"), Code::CaveatsShape),
    ] {
        let findings = Caveats::parse(&text).unwrap_err();
        assert!(findings.as_slice().iter().any(|finding| finding.code() == code), "{text}: {findings}");
    }
}
