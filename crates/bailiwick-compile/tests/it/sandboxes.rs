//! Hostile texts in the targets that mount: what the target's own reader sees is what the plan says, no more.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use bailiwick_compile::{Refusal, Target, compile};
use bailiwick_manifest::Manifest;
use bailiwick_policy::artifact::{Artifact, Provenance};
use bailiwick_policy::enforcement::Floor;
use bailiwick_policy::plan::Plan;
use serde_json::Value;

use crate::golden;

/// Paths that mean something to some reader. Control characters are in no path: the manifest's reader refuses them.
const PATHS: [&str; 14] = [
    "/w/a b",
    "/w/a  b ",
    "/w/it's",
    "/w/say \"x\"",
    "/w/a,readonly=false,b",
    "/w/a\",\"type=tmpfs",
    "/w/$(id)",
    "/w/${HOME}",
    "/w/`id`",
    "/w/a;b&c|d",
    "/w/-- --bind",
    "/w/back\\slash",
    "/w/#x",
    "/w/ü\u{2028}x",
];

const VALUES: [&str; 7] =
    ["plain", "two\nlines", "it's $(id) `id` ${X} $X", "a\"b", "x\u{85}y", "--", "\u{7f}\u{feff}#: - !!x"];

fn manifest(paths: &[&str], hosts: bool) -> String {
    let mut lines: Vec<String> = paths.iter().map(|path| format!("fs:read:{}", written(path))).collect();
    lines.push("fs:read,write:/rw".to_owned());
    lines.push("env:inject:TOKEN".to_owned());
    if hosts {
        lines.push("net:connect:api.example.com:443".to_owned());
    }
    let env: BTreeMap<String, &str> =
        VALUES.iter().enumerate().map(|(at, value)| (format!("V{at}"), *value)).collect();
    let text = serde_json::json!({
        "name": "hostile", "version": "1", "command": "server", "args": ["--", "it's", "$X", "a b"], "env": env,
        "serverCapabilities": lines,
    });
    text.to_string()
}

/// A path as a capability writes it: a dollar sign or a space at the end stands in brackets.
fn written(path: &str) -> String {
    let path = path.replace('$', "[$]");
    path.strip_suffix(' ').map_or_else(|| path.clone(), |start| format!("{start}[ ]"))
}

fn plan(paths: &[&str], hosts: bool) -> Plan {
    golden::plan(&manifest(paths, hosts)).unwrap_or_else(|findings| panic!("{findings:?}"))
}

fn made(target: Target, plan: &Plan) -> Result<Artifact, Refusal> {
    compile(target, plan, &Floor::none(), Provenance { manifest: None, compiler: "test".to_owned() })
}

fn file<'a>(artifact: &'a Artifact, name: &str) -> &'a str {
    &artifact.files().iter().find(|file| file.name == name).unwrap().text
}

/// The paths of the plan as they come, sorted: those of `PATHS` and `/rw`.
fn granted() -> Vec<String> {
    let mut paths: Vec<String> =
        PATHS.iter().map(|path| (*path).to_owned()).chain(["/rw".to_owned()]).collect();
    paths.sort();
    paths
}

#[test]
fn bubblewrap_reads_every_path_and_value_whole() {
    let artifact = made(Target::Bwrap, &plan(&PATHS, false)).unwrap();
    let argv = artifact.argv();
    let mut bound: Vec<String> = argv
        .windows(3)
        .filter(|words| words[0].ends_with("bind-try") && words[1] == words[2])
        .filter(|words| words[1] == "/rw" || words[1].starts_with("/w/"))
        .map(|words| words[1].clone())
        .collect();
    bound.sort();
    assert_eq!(bound, granted());
    for (at, value) in VALUES.iter().enumerate() {
        let set = ["--setenv".to_owned(), format!("V{at}"), (*value).to_owned()];
        assert_eq!(argv.windows(3).filter(|words| *words == set).count(), 1, "{value:?}");
    }
    assert_eq!(argv[argv.len() - 6..], ["--", "server", "--", "it's", "$X", "a b"]);
}

#[test]
fn a_shell_reads_the_script_as_the_command_line() {
    let artifact = made(Target::Bwrap, &plan(&PATHS, false)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let stand_in = directory.path().join("bwrap");
    std::fs::write(&stand_in, "#!/bin/sh\nprintf '%s\\0' \"$@\"\n").unwrap();
    std::fs::set_permissions(&stand_in, std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = directory.path().join("bwrap.sh");
    std::fs::write(&script, file(&artifact, "bwrap.sh")).unwrap();
    let path = format!("{}:/usr/bin:/bin", directory.path().display());
    let output = Command::new("sh").arg(&script).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = text.trim_end_matches('\0').split('\0').collect();
    let stubs = 3 * 6;
    let (end, expected) = (artifact.argv().len() - 7, artifact.argv());
    assert_eq!(words[stubs..stubs + end], expected[1..=end], "all options");
    assert_eq!(words[stubs + end..], ["--args", "5", "--", "server", "--", "it's", "$X", "a b"]);
}

#[test]
fn a_runtime_reads_every_path_and_value_whole() {
    let artifact = made(Target::Oci, &plan(&PATHS, false)).unwrap();
    for name in ["config.json", "config.rootless.json"] {
        let config: Value = serde_json::from_str(file(&artifact, name)).unwrap();
        let mounts = config["mounts"].as_array().unwrap().iter();
        let own = mounts.filter(|mount| mount["type"] == "bind" && mount["source"] == mount["destination"]);
        let mut bound: Vec<String> = own.map(|mount| mount["source"].as_str().unwrap().to_owned()).collect();
        bound.retain(|path| path == "/rw" || path.starts_with("/w/"));
        bound.sort();
        assert_eq!(bound, granted(), "{name}");
        let env: Vec<&str> =
            config["process"]["env"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
        for (at, value) in VALUES.iter().enumerate() {
            assert!(env.contains(&&*format!("V{at}={value}")), "{name} {value:?}");
        }
        assert_eq!(config["process"]["args"], serde_json::json!(["server", "--", "it's", "$X", "a b"]));
    }
}

#[test]
fn docker_reads_every_path_and_value_whole() {
    let artifact = made(Target::Docker, &plan(&PATHS, true)).unwrap();
    let argv = artifact.argv();
    let mut bound = Vec::new();
    for words in argv.windows(2).filter(|words| words[0] == "--mount") {
        let fields = fields(&words[1]);
        let value = |key: &str| fields.iter().find_map(|field| field.strip_prefix(key)).unwrap().to_owned();
        assert_eq!(fields[0], "type=bind");
        assert_eq!(value("source="), value("target="));
        let read_only = fields.iter().any(|field| field == "readonly");
        assert_eq!(read_only, value("source=") != "/rw", "{fields:?}");
        assert_eq!(fields.len(), if read_only { 4 } else { 3 });
        bound.push(value("source="));
    }
    bound.sort();
    assert_eq!(bound, granted());
    for (at, value) in VALUES.iter().enumerate() {
        assert!(argv.contains(&format!("V{at}={value}")), "{value:?}");
    }
    assert!(argv.contains(&"TOKEN".to_owned()) && !argv.iter().any(|word| word.starts_with("TOKEN=")));
    assert_eq!(argv[argv.len() - 6..], ["IMAGE", "server", "--", "it's", "$X", "a b"]);
}

#[test]
fn compose_reads_every_path_and_value_whole() {
    let artifact = made(Target::Docker, &plan(&PATHS, true)).unwrap();
    let text = file(&artifact, "compose.yaml");
    let compose: Value = serde_saphyr::from_str(text).unwrap();
    let json: Value = serde_json::from_str(text).unwrap();
    assert_eq!(compose, json, "a reader of YAML and one of JSON read the same");
    let server = &compose["services"]["server"];
    let volumes = server["volumes"].as_array().unwrap();
    let mut bound: Vec<String> = volumes.iter().map(|volume| interpolated(&volume["source"])).collect();
    bound.sort();
    assert_eq!(bound, granted());
    let env: Vec<String> = server["environment"].as_array().unwrap().iter().map(interpolated).collect();
    for (at, value) in VALUES.iter().enumerate() {
        assert!(env.contains(&format!("V{at}={value}")), "{value:?}");
    }
    let command: Vec<String> = server["command"].as_array().unwrap().iter().map(interpolated).collect();
    assert_eq!(command, ["server", "--", "it's", "$X", "a b"]);
}

#[test]
fn firejail_refuses_what_its_profile_cannot_say() {
    let plain = ["/w/a b", "/w/it's", "/w/$(id)", "/w/`id`", "/w/-- --bind", "/w/#x", "/w/a|d"];
    let artifact = made(Target::Firejail, &plan(&plain, false)).unwrap();
    let profile = file(&artifact, "firejail.profile");
    for path in plain {
        for word in ["whitelist", "read-only"] {
            assert_eq!(
                profile.lines().filter(|line| *line == format!("{word} {path}")).count(),
                1,
                "{word} {path}"
            );
        }
    }
    let read_write: Vec<&str> = profile.lines().filter(|line| line.starts_with("read-write")).collect();
    assert_eq!(read_write, ["read-write /rw"]);
    for path in [
        "/w/a  b",
        "/w/a ",
        "/w/a,b",
        "/w/a\"b",
        "/w/${HOME}",
        "/w/a;b",
        "/w/a&b",
        "/w/a\\b",
        "/w/[[]x]",
        "/w/[*]",
    ] {
        let refusal = made(Target::Firejail, &plan(&[path], false)).unwrap_err();
        assert!(refusal.to_string().starts_with("firejail cannot hold"), "{path}: {refusal}");
    }
}

#[test]
fn names_and_control_characters_are_refused_before_any_target() {
    for capability in
        ["fs:read:/w/a\nb", "env:inject:A B", "env:inject:A=B", "env:inject:a$(id)", "ipc:connect:unix:/a\nb"]
    {
        let text = serde_json::json!({ "name": "x", "version": "1", "serverCapabilities": [capability] });
        assert!(Manifest::parse(&text.to_string()).is_err(), "{capability:?}");
    }
    let text = serde_json::json!({ "name": "x", "version": "1", "env": { "A B": "x" } });
    assert!(Manifest::parse(&text.to_string()).is_err());
}

/// The fields of one line of comma-separated values.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if quoted || field.is_empty() => quoted = !quoted,
            '"' => panic!("a bare quote in {line:?}"),
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    assert!(!quoted, "{line:?}");
    fields.push(field);
    fields
}

/// A text as compose has it after replacing variables, of which there must be none.
fn interpolated(value: &Value) -> String {
    let text = value.as_str().unwrap();
    assert!(!text.replace("$$", "").contains('$'), "{text}");
    text.replace("$$", "$")
}
