//! Programs really start, by the command line and by the script; what the caller passes on arrives and nothing else.

use std::process::Command;

use bailiwick_compile::{Target, compile};
use bailiwick_manifest::Manifest;
use bailiwick_policy::artifact::Provenance;
use bailiwick_policy::enforcement::Floor;
use bailiwick_policy::facts::HostFacts;

use super::sandbox::{Starter, artifact, has, program, run, started, starters, written};
use super::world::World;

#[test]
fn peer_13_git_node_and_python_start() {
    let programs: [&[&str]; 3] =
        [&["git", "--version"], &["node", "-e", "0"], &["/usr/bin/python3", "-c", "import ssl"]];
    for target in
        [Target::Bwrap, Target::Oci, Target::Firejail].into_iter().filter(|target| has(program(*target)))
    {
        for starter in starters() {
            let world = World::new();
            let plan = world.plan(&[]);
            for words in programs.into_iter().filter(|words| has(words[0].trim_start_matches("/usr/bin/"))) {
                let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
                let output = run(target, &plan, starter, &world, &words);
                assert!(output.status.success(), "{target} {starter:?} {words:?}: {output:?}");
            }
        }
    }
}

#[test]
fn the_script_passes_values_that_no_argument_shows() {
    if !has("bwrap") {
        return;
    }
    for starter in starters() {
        let world = World::new();
        let plan = world.plan(&["env:inject:TOKEN", "env:read:ABSENT"]);
        let bundle = written(&artifact(Target::Bwrap, &plan), &world);
        let script = bundle.join("bwrap.sh").to_str().unwrap().to_owned();
        let inside = "cat; echo \"$TOKEN|${ABSENT-unset}|${HOST_SECRET-unset}\"; cat /etc/passwd; \
                      tr '\\0' '\\n' </proc/1/cmdline | grep -c 'valu[e]'; exit 7";
        let argv = ["sh", &script, "sh", "-c", inside].map(str::to_owned);
        let mut command = started(Target::Bwrap, starter, &argv, &bundle);
        let input = std::process::Stdio::from(std::fs::File::open(world.path("ro/file")).unwrap());
        let output =
            command.env("TOKEN", "it's $x \"value\"").env("HOST_SECRET", "1").stdin(input).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.starts_with("textit's $x \"value\"|unset|unset\nroot:x:0:0:"), "{starter:?} {output:?}");
        assert!(text.ends_with("\n0\n"), "the value is in no command line: {output:?}");
        assert_eq!(output.status.code(), Some(7), "{starter:?} {output:?}");
    }
}

#[test]
fn peer_15_more_than_a_command_line_takes_goes_through_a_file() {
    if !has("bwrap") {
        return;
    }
    let world = World::new();
    let roots: Vec<String> = (0..2000).map(|at| format!("fs:read:@/many/{at}/{}", "x".repeat(40))).collect();
    let lines: Vec<&str> = roots.iter().map(String::as_str).chain(["fs:read:@/bin"]).collect();
    let made = artifact(Target::Bwrap, &world.plan(&lines));
    assert_eq!(made.argv(), ["bwrap", "--args", "3", "--"]);
    let bundle = written(&made, &world);
    let script = bundle.join("bwrap.sh");
    let words = [world.path("bin/probe"), "read".to_owned(), world.path("secret/file")];
    let output = Command::new("sh").arg(script).args(&words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("secret/file no"), "{output:?}");
    let few: Vec<&str> = lines.iter().copied().take(100).collect();
    assert!(
        artifact(Target::Bwrap, &world.plan(&few)).argv().len() > 300,
        "as long as it fits it is one line"
    );
}

#[test]
fn more_roots_than_bubblewrap_takes_are_refused() {
    let world = World::new();
    let roots: Vec<String> = (0..3200).map(|at| format!("fs:read:@/many/{at}")).collect();
    let lines: Vec<&str> = roots.iter().map(String::as_str).collect();
    let provenance = Provenance { manifest: None, compiler: "test".to_owned() };
    let refusal = compile(Target::Bwrap, &world.plan(&lines), &Floor::none(), provenance).unwrap_err();
    assert!(refusal.to_string().contains("takes 9000 arguments"), "{refusal}");
}

#[test]
fn the_command_of_a_manifest_is_run() {
    let text = "name = 's'\nversion = '1'\ncommand = 'sh'\nargs = ['-c', 'echo \"$MODE\" \"$1\"', 'x', \"a 'b' $c\"]\n\
                env = { MODE = \"it's; $(id)\" }\n";
    let facts = HostFacts::unknown();
    let checked = match Manifest::parse(text) {
        Ok(manifest) => manifest.check(&facts).unwrap(),
        Err(findings) => panic!("{findings:?}"),
    };
    let plan = checked.server_plan(&facts).unwrap();
    for target in [Target::Bwrap, Target::Firejail].into_iter().filter(|target| has(program(*target))) {
        let world = World::new();
        let output = run(target, &plan, Starter::Root, &world, &[]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "it's; $(id) a 'b' $c\n", "{target} {output:?}");
    }
}
