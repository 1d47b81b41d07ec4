//! The laws of the lattice, against a brute-force model on a small universe.

use proptest::prelude::*;

use super::*;
use crate::capability::{Capability, CapabilitySet};
use crate::lattice::Containment;
use crate::net::{Host, NetRequest, Speak};
use crate::path::AbsPath;

const LINES: &[&str] = &[
    "fs:read:/a",
    "fs:read,write:/a/b",
    "fs:write:/a/*",
    "fs:create:/a",
    "fs:delete:/c/**/x",
    "fs:read:/**",
    "fs:read:/a/[a-m]*",
    "net:connect:*",
    "net:connect:a.test:443",
    "net:connect:*.test:1-500",
    "net:https:GET@https://a.test/p",
    "net:connect:10.0.0.0/8?protocol=raw",
    "net:listen:8080",
    "net:listen:127.0.0.1:8080",
    "net:listen:0.0.0.0:8080",
    "net:listen:10.0.0.1:8080",
    "fs:read:/a?code=true",
    "fs:read:/c/**?code=true",
    "exec:spawn:git",
    "exec:spawn:/usr/bin/git",
    "exec:spawn:*",
    "exec:spawn:git?fromWritable=true",
    "exec:spawn:chromium?nestedSandbox=true",
    "env:read:HOME",
    "env:inject:TOKEN",
    "env:read,inject:TOKEN",
    "env:read:*",
    "env:inject:LD_PRELOAD?loader=true",
    "ipc:connect:x11",
    "ipc:connect:unix:/run/a.sock",
    "clock:system",
    "clock:system,tzdata",
    "assert:x",
];

/// One request for every way the lines above can be told apart, and some they all refuse.
fn universe() -> Vec<Request> {
    let path = |text| AbsPath::new(text).unwrap();
    let mut all = Vec::new();
    for text in ["/", "/a", "/a/b", "/a/b/c", "/a/zz", "/c/x", "/c/d/x", "/c/d", "/ab"] {
        all.extend([
            Request::Read(path(text)),
            Request::MapCode(path(text)),
            Request::Write(path(text)),
            Request::Create(path(text)),
            Request::Delete(path(text)),
        ]);
    }
    for host in ["a.test", "b.test", "test", "10.1.1.1", "1.1.1.1"] {
        for port in [80, 443, 8080] {
            for speak in [Speak::Tls, Speak::Raw, Speak::HiddenTls] {
                all.push(Request::Net(NetRequest::new(Host::new(host).unwrap(), port, speak)));
            }
        }
    }
    for place in ["8080", "127.0.0.1:8080", "[::1]:8080", "10.0.0.1:8080", "0.0.0.0:8080", "[::]:8080", "80"]
    {
        all.push(Request::Listen(crate::net::parse_listen(place).unwrap()));
    }
    for program in [
        Program::Name("git".into()),
        Program::Name("rm".into()),
        Program::Name("chromium".into()),
        Program::Path(path("/usr/bin/git")),
    ] {
        for (nested_sandbox, from_writable) in [(false, false), (true, false), (false, true), (true, true)] {
            all.push(Request::Spawn(Spawn { program: program.clone(), nested_sandbox, from_writable }));
        }
    }
    for name in ["HOME", "TOKEN", "LD_PRELOAD", "OTHER"] {
        all.extend([Request::ReadEnv(name.into()), Request::InjectEnv(name.into())]);
    }
    all.extend([Request::Ipc(Endpoint::X11), Request::Ipc(Endpoint::Unix(path("/run/a.sock")))]);
    all.extend([Request::Ipc(Endpoint::Wayland)]);
    all.extend([ClockActions::SYSTEM, ClockActions::TZDATA].map(Request::Clock));
    all
}

fn authority_of(lines: &[&str]) -> Authority {
    let capabilities: Vec<Capability> = lines.iter().map(|line| line.parse().unwrap()).collect();
    Authority::from_capabilities(&capabilities).unwrap()
}

/// Lines, a call bound and a generation.
type Recipe = (Vec<&'static str>, Option<u64>, Option<u64>);

fn build((lines, calls, generation): &Recipe) -> Authority {
    let bound = calls.map_or(CountBound::Unlimited, CountBound::AtMost);
    let generations = match generation {
        None => FlagMap::uniform(ALLOWED),
        Some(number) => FlagMap::union_of([(Some(*number), ALLOWED)]),
    };
    authority_of(lines).with_bounds(bound, generations)
}

fn any_authority() -> impl Strategy<Value = Recipe> {
    let lines = prop::collection::vec(prop::sample::select(LINES), 0..7);
    (lines, prop::option::of(0_u64..3), prop::option::of(0_u64..3))
}

fn same(a: &Authority, b: &Authority) -> bool {
    a.calls() == b.calls()
        && (0..5).all(|number| a.allows_generation(number) == b.allows_generation(number))
        && universe().iter().all(|request| a.allows(request) == b.allows(request))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn meet_is_exact_and_never_widens(a in any_authority(), b in any_authority()) {
        let (x, y) = (build(&a), build(&b));
        let met = x.meet(&y);
        for request in universe() {
            prop_assert_eq!(met.allows(&request), x.allows(&request) && y.allows(&request), "{}", request);
        }
        for number in 0..5 {
            let both = x.allows_generation(number) && y.allows_generation(number);
            prop_assert_eq!(met.allows_generation(number), both);
        }
        prop_assert!(met.within(&x).holds() && met.within(&y).holds());
    }

    #[test]
    fn meet_commutes_associates_and_is_idempotent(a in any_authority(), b in any_authority(), c in any_authority()) {
        let (x, y, z) = (build(&a), build(&b), build(&c));
        prop_assert!(x.meet(&y) == y.meet(&x) && same(&x.meet(&y), &y.meet(&x)));
        prop_assert!(x.meet(&y).meet(&z) == x.meet(&y.meet(&z)));
        prop_assert!(x.meet(&x) == x);
        prop_assert!(x.meet(&Authority::top()) == x && x.meet(&Authority::bottom()) == Authority::bottom());
        prop_assert!(x.within(&Authority::top()).holds() && Authority::bottom().within(&x).holds());
    }

    #[test]
    fn containment_is_the_order_of_the_meet(a in any_authority(), b in any_authority()) {
        let (x, y) = (build(&a), build(&b));
        let answer = x.within(&y);
        prop_assert_eq!(answer.holds(), x.meet(&y) == x);
        match answer {
            Containment::Contained => {
                prop_assert!(universe().iter().all(|request| !x.allows(request) || y.allows(request)));
                prop_assert!(x.calls().leq(y.calls()));
            }
            Containment::Exceeds(excess) => {
                if let Some(request) = excess.request() {
                    prop_assert!(x.allows(request) && !y.allows(request), "{}", request);
                }
            }
            Containment::Undecided => prop_assert!(false, "undecided"),
        }
    }

    #[test]
    fn explanations_agree_with_decisions(a in any_authority(), at in 0_usize..116) {
        let authority = build(&a);
        let all = universe();
        let request = &all[at % all.len()];
        let explanation = authority.explain(request);
        prop_assert_eq!(explanation.is_allowed(), authority.allows(request));
        prop_assert_eq!(explanation.deciding().is_empty(), !explanation.is_allowed());
        if let Some(grant) = explanation.smallest_grant() {
            prop_assert!(Authority::from_capabilities(std::slice::from_ref(grant)).unwrap().allows(request), "{} does not allow {}", grant, request);
        }
    }

    #[test]
    fn lines_read_back_as_the_same_authority(a in prop::collection::vec(prop::sample::select(LINES), 0..9)) {
        let authority = authority_of(&a);
        let lines = authority.capabilities().unwrap();
        prop_assert!(Authority::from_capabilities(&lines).unwrap() == authority);
        let texts: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let again: Vec<Capability> = texts.iter().map(|text| text.parse().unwrap()).collect();
        prop_assert_eq!(again, lines);
    }
}

#[test]
fn sets_answer_as_their_documentation_says() {
    let set = CapabilitySet::new(["fs:read:*", "network:http:get"]).unwrap();
    assert!(set.has("fs:read:/tmp/file"));
    assert!(set.has("net:http:GET") && set.has("net:http:GET@http://example.com/x"));
    assert!(
        !set.has("fs:write:/tmp/file") && !set.has("net:http:POST") && !set.has("net:connect:example.com:80")
    );
    assert!(!set.has("nonsense"));
    let explained = set.explain("fs:write:/tmp/file").unwrap();
    assert!(!explained.is_allowed());
    assert_eq!(explained.smallest_grant(), Some(&Capability::new("fs:write:/tmp/file").unwrap()));
    assert_eq!(CapabilitySet::new(["fs:read:/a", "bad", "fs:read:b"]).unwrap_err().as_slice().len(), 2);
}

#[test]
fn names_and_paths_of_programs_are_not_comparable() {
    let (name, path) = (authority_of(&["exec:spawn:git"]), authority_of(&["exec:spawn:/usr/bin/git"]));
    assert!(!name.within(&path).holds() && !path.within(&name).holds());
    assert!(name.within(&authority_of(&["exec:spawn:*"])).holds());
    assert!(!authority_of(&["exec:spawn:*"]).within(&name).holds());
    assert!(
        !authority_of(&["exec:spawn:git?fromWritable=true"]).within(&authority_of(&["exec:spawn:*"])).holds()
    );
}
