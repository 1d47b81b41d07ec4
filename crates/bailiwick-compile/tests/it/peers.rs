//! The mistakes of other compilers, one test each; 13, 14 and 15 run programs, see `run`.

use bailiwick_compile::{Egress, Refusal, Target, compile, coverage, egress};
use bailiwick_policy::artifact::{Artifact, Provenance};
use bailiwick_policy::capability::CapabilitySet;
use bailiwick_policy::enforcement::{Aspect, Floor, Level, Precision};
use bailiwick_policy::facts::{HostFacts, PathKind};
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::Plan;
use serde_json::Value;

const MOUNTING: [Target; 4] = [Target::Bwrap, Target::Oci, Target::Firejail, Target::Docker];

fn plan(lines: &[&str]) -> Plan {
    on(lines, &HostFacts::unknown())
}

fn on(lines: &[&str], facts: &HostFacts) -> Plan {
    Plan::for_authority("test", CapabilitySet::new(lines.iter().copied()).unwrap().authority(), facts)
        .unwrap()
}

fn made(target: Target, plan: &Plan) -> Result<Artifact, Refusal> {
    compile(target, plan, &Floor::none(), Provenance { manifest: None, compiler: "test".to_owned() })
}

/// What a target mounts: `ro PATH` or `rw PATH`, in its order, of what lies at or below `below`.
fn mounts(target: Target, plan: &Plan, below: &str) -> Vec<String> {
    let artifact = made(target, plan).unwrap();
    let entry = |writable: bool, path: &str| format!("{} {path}", if writable { "rw" } else { "ro" });
    let all: Vec<String> = if target == Target::Bwrap {
        let binds = artifact.argv().windows(3).filter(|words| words[0].ends_with("bind-try"));
        binds.map(|words| entry(words[0] == "--bind-try", &words[2])).collect()
    } else if target == Target::Docker {
        let mounts = artifact.argv().windows(2).filter(|words| words[0] == "--mount");
        let path =
            |text: &str| text.split("target=").nth(1).unwrap().trim_end_matches(",readonly").to_owned();
        mounts.map(|words| entry(!words[1].ends_with(",readonly"), &path(&words[1]))).collect()
    } else if target == Target::Oci {
        let config: Value = serde_json::from_str(&artifact.files()[0].text).unwrap();
        let binds = config["mounts"].as_array().unwrap().iter().filter(|mount| mount["type"] == "bind");
        let writable = |mount: &Value| !mount["options"].as_array().unwrap().contains(&"rro".into());
        binds.map(|mount| entry(writable(mount), mount["destination"].as_str().unwrap())).collect()
    } else {
        let lines = artifact.files()[0].text.lines();
        let modes = lines.filter_map(|line| line.strip_prefix("read-")?.split_once(' '));
        modes.map(|(mode, path)| entry(mode == "write", path)).collect()
    };
    let names: Vec<&str> = bailiwick_policy::run_later::fixed_names(["/w", "/w"]).collect();
    let late =
        |path: &str| path.contains("/.") || names.iter().any(|name| path.ends_with(&format!("/{name}")));
    let within = |line: &&String| {
        line[3..] == *below || line[3..].starts_with(&format!("{}/", below.trim_end_matches('/')))
    };
    all.iter().filter(within).filter(|line| !late(line)).cloned().collect()
}

#[test]
fn peer_01_a_write_below_everything_leaves_the_root_read_only() {
    let plan = plan(&["fs:read:/**", "fs:read,write:/tmp/x"]);
    for target in [Target::Bwrap, Target::Firejail] {
        let writable: Vec<String> =
            mounts(target, &plan, "/").into_iter().filter(|line| line.starts_with("rw")).collect();
        assert_eq!(writable, ["rw /tmp/x"], "{target}");
    }
    for target in [Target::Oci, Target::Docker] {
        assert!(made(target, &plan).unwrap_err().to_string().contains("`fs:read:/**`"), "{target}");
    }
}

#[test]
fn peer_02_a_dot_does_not_make_a_file_of_a_directory() {
    for target in MOUNTING {
        assert_eq!(
            mounts(target, &plan(&["fs:read:/home/alice.smith"]), "/home"),
            ["ro /home/alice.smith"],
            "{target}"
        );
        assert_eq!(
            mounts(target, &plan(&["fs:read:/srv/app.conf"]), "/srv"),
            ["ro /srv/app.conf"],
            "{target}"
        );
    }
}

#[test]
fn peer_03_what_is_read_only_is_not_mounted_writable_by_its_neighbour() {
    for target in MOUNTING {
        let plan = plan(&["fs:read:/w/a", "fs:read,write:/w/z.txt"]);
        assert_eq!(mounts(target, &plan, "/w"), ["ro /w/a", "rw /w/z.txt"], "{target}");
    }
}

#[test]
fn peer_04_a_socket_is_never_the_root() {
    assert!(CapabilitySet::new(["ipc:connect:unix:/"]).is_err());
}

#[test]
fn peer_05_a_refinement_on_the_wrong_kind_is_a_finding() {
    let misplaced =
        ["fs:read:/w?blockPrivate=false", "exec:spawn:git?protocol=raw", "env:read:A?protocol=raw"];
    for line in misplaced {
        let plain = line.split('?').next().unwrap();
        assert!(CapabilitySet::new([plain]).is_ok(), "{plain} alone is right");
        assert!(CapabilitySet::new([line]).is_err(), "{line}");
    }
    let refined = ["net:connect:a.example:443?blockPrivate=false", "net:connect:a.example:443?protocol=raw"];
    assert!(CapabilitySet::new(refined).is_ok(), "on the right kind it means something");
}

#[test]
fn peer_06_no_text_of_a_host_reaches_a_gateway() {
    for host in ["a.example\nb", "a.example b", "a.example;b", "a.example\"b", "a.example'b", "a.example}b"] {
        for line in [format!("net:connect:{host}:443"), format!("net:connect:*.{host}:443")] {
            assert!(CapabilitySet::new([&*line]).is_err(), "{line:?}");
        }
    }
}

#[test]
fn peer_07_reverse_dns_is_never_asked() {
    let plan = plan(&[
        "net:connect:api.example.com:443",
        "net:connect:*.example.org:443",
        "net:connect:192.0.2.1:443",
    ]);
    let squid = egress(Egress::Squid, &plan).unwrap().text;
    let by_name: Vec<&str> = squid
        .lines()
        .filter(|line| line.contains(" dstdom"))
        .map(|line| line.split_once(" dstdom").unwrap().1)
        .collect();
    assert!(by_name.len() >= 3, "{squid}");
    for rest in by_name {
        assert_eq!(rest.split(' ').nth(1), Some("-n"), "squid would ask for the name of an address: {rest}");
    }
    assert!(!squid.contains("srcdomain"), "{squid}");
}

#[test]
fn peer_08_a_name_that_looks_private_opens_nothing_private() {
    let plan = plan(&["net:connect:10.evil.com:443", "net:connect:127.evil.com:443"]);
    assert!(plan.network().rules().iter().all(|rule| !rule.value.opens_private()));
    let squid = egress(Egress::Squid, &plan).unwrap().text;
    let nft = egress(Egress::Nftables, &plan).unwrap().text;
    let before = |text: &str, refusal: &str, allowance: &str| {
        let (refused, allowed) = (text.find(refusal), text.find(allowance));
        assert!(refused.is_some() && refused < allowed, "`{refusal}` comes before `{allowance}`:\n{text}");
    };
    for at in [1, 2] {
        // a name that resolves to loopback or to a private address is refused before it is allowed
        before(&squid, &format!("deny host{at} port{at} to_localhost"), &format!("allow host{at} "));
        before(&squid, &format!("deny host{at} port{at} private"), &format!("allow host{at} "));
        let set = format!("ip daddr @host{at}_v4");
        before(&nft, &format!("{set} ip daddr @private_v4 drop"), &format!("{set} tcp dport 443 accept"));
    }
    assert!(squid.contains("acl private dst 10.0.0.0/8") && squid.contains("acl private dst 127.0.0.0/8"));
}

#[test]
fn peer_09_hosts_never_open_a_bridge() {
    let plan = plan(&["net:connect:api.example.com:443"]);
    let artifact = made(Target::Docker, &plan).unwrap();
    let network = artifact.argv().windows(2).find(|words| words[0] == "--network").unwrap();
    assert_eq!(network[1], "bailiwick-internal");
    let text = |name: &str| &artifact.files().iter().find(|file| file.name == name).unwrap().text;
    let compose: Value = serde_json::from_str(text("compose.yaml")).unwrap();
    assert_eq!(compose["services"]["server"]["networks"], serde_json::json!(["internal"]));
    assert_eq!(compose["networks"]["internal"]["internal"], true);
    assert_eq!(compose["networks"]["internal"]["name"], "bailiwick-internal");
    assert!(
        text("squid/squid.conf").contains("\nhttp_port 3128\n"),
        "the proxy listens in its own container"
    );
    let held = coverage(Target::Docker, &plan);
    assert_eq!(held.held(Aspect::Network).level, Level::Mediated);
    for target in [Target::Bwrap, Target::Oci, Target::Firejail] {
        let artifact = made(target, &plan).unwrap();
        let said = artifact.notes().iter().any(|note| note.contains("no host can be reached"));
        assert!(said, "{target} says that it is narrower");
    }
}

#[test]
fn peer_10_a_link_is_mounted_as_what_the_host_says_it_is() {
    let path = |text: &str| AbsPath::new(text).unwrap();
    let facts = HostFacts::unknown().with_place(path("/w"), path("/data/w"), PathKind::Directory).with_place(
        path("/in"),
        path("/proc/1/root"),
        PathKind::Directory,
    );
    let plan = on(&["fs:read:/w", "fs:read:/in"], &facts);
    let bwrap = made(Target::Bwrap, &plan).unwrap();
    assert!(bwrap.argv().windows(3).any(|words| words == ["--ro-bind-try", "/data/w", "/w"]));
    for target in [Target::Bwrap, Target::Oci, Target::Docker] {
        let artifact = made(target, &plan).unwrap();
        let text: String =
            artifact.argv().join(" ") + &artifact.files().iter().map(|f| &*f.text).collect::<String>();
        assert!(!text.contains("/proc/1/root"), "{target} follows a link into the host's /proc");
    }
    assert!(made(Target::Firejail, &plan).unwrap_err().to_string().contains("it is a link"));
    assert!(CapabilitySet::new(["fs:read:/w/../etc"]).is_err());
}

#[test]
fn the_file_that_names_a_git_directory_is_read_only() {
    let path = |text: &str| AbsPath::new(text).unwrap();
    let facts = HostFacts::unknown()
        .with_place(path("/w"), path("/w"), PathKind::Directory)
        .with_place(path("/w/.git"), path("/w/.git"), PathKind::File)
        .with_place(path("/w/.vscode"), path("/w/.vscode"), PathKind::Directory);
    let artifact = made(Target::Bwrap, &on(&["fs:read,write:/w"], &facts)).unwrap();
    let bound = |how: &str, at: &str| artifact.argv().windows(2).any(|words| words == [how, at]);
    assert!(bound("--ro-bind-try", "/w/.git") && !bound("--bind-try", "/w/.git"));
    assert!(bound("--bind-try", "/w/.vscode"), "a directory on the way stays writable");
    assert!(!bound("--ro-bind-try", "/w/.git/hooks"), "nothing is below a file");
}

#[test]
fn peer_11_a_glob_is_its_directory_and_says_so() {
    for target in MOUNTING {
        for (line, directory) in [("fs:read:/w/*.txt", "ro /w"), ("fs:read:/a/*/b", "ro /a")] {
            let plan = plan(&[line]);
            assert_eq!(mounts(target, &plan, &directory[3..]), [directory], "{target}");
            let artifact = made(target, &plan).unwrap();
            let files: String =
                artifact.files().iter().filter(|file| file.name != "squid.conf").map(|f| &*f.text).collect();
            let literal = |text: &str| text.contains("*.txt") || text.contains("/a/*");
            assert!(!literal(&artifact.argv().join(" ")) && !literal(&files), "{target}");
            assert_eq!(
                coverage(target, &plan).held(Aspect::Files).precision,
                Precision::Superset,
                "{target}"
            );
            let exact = Floor::none().with("fs=kernel:exact".parse().unwrap());
            let provenance = Provenance { manifest: None, compiler: "test".to_owned() };
            assert!(
                matches!(compile(target, &plan, &exact, provenance), Err(Refusal::BelowFloor { .. })),
                "{target}"
            );
        }
        assert!(
            matches!(made(target, &plan(&["fs:read:/*/b"])), Err(Refusal::Inexpressible { .. })),
            "{target}"
        );
    }
}

#[test]
fn peer_12_odd_hosts_are_never_dropped() {
    let hosts = [
        "net:connect:[2606:4700::1111]:443",
        "net:connect:*.example.com:9000-9999",
        "net:connect:10.1.0.0/16:80",
    ];
    let plan = plan(&hosts);
    let docker = made(Target::Docker, &plan).unwrap();
    let squid = &docker.files().iter().find(|file| file.name == "squid/squid.conf").unwrap().text;
    for wanted in ["2606:4700::1111", "example.com", "9000-9999", "10.1.0.0/16"] {
        assert!(squid.contains(wanted), "{wanted}");
    }
    for target in MOUNTING {
        assert_eq!(made(target, &plan).unwrap().egress().len(), hosts.len(), "{target}");
    }
}

#[test]
fn peer_16_a_nested_sandbox_is_told_of() {
    let plan = plan(&["exec:spawn:chromium?nestedSandbox=true"]);
    for target in MOUNTING {
        let artifact = made(target, &plan).unwrap();
        assert!(artifact.notes().iter().any(|note| note.contains("nestedSandbox")), "{target}");
    }
    let bwrap = made(Target::Bwrap, &plan).unwrap();
    assert!(!bwrap.argv().contains(&"--disable-userns".to_owned()));
    assert!(coverage(Target::Bwrap, &plan).held(Aspect::Processes).why.contains("nested sandbox"));
}

#[test]
fn emitting_is_the_same_every_time() {
    let plan = plan(&[
        "fs:read:/a",
        "fs:read,write:/b",
        "net:connect:a.example:443",
        "env:inject:A",
        "env:inject:B",
    ]);
    for target in MOUNTING {
        assert_eq!(made(target, &plan).unwrap(), made(target, &plan).unwrap(), "{target}");
    }
}
