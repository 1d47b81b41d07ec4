//! Which programs can be started, and from where.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bailiwick_confine::{Command, Exit, Options, Prepared, Refusal, System};

use crate::support::{directory, plan, prepare, run_with, script, sh};

#[test]
fn a_program_that_is_not_granted_is_absent() {
    let (_own, w) = directory();
    assert!(sh(&[], "id", &w).refused().contains("not found"));
    assert!(sh(&[], "/usr/bin/id", &w).refused().contains("not found"));
    assert!(sh(&["exec:spawn:id"], "id", &w).ok().contains("uid="));
    assert!(sh(&["exec:spawn:*"], "id", &w).ok().contains("uid="));
}

#[test]
fn a_system_looked_at_once_serves_many_and_gives_no_plan_the_programs_of_another() {
    let absent = |system: &System, capabilities: &[&str]| {
        let command = script("[ ! -e /usr/bin/id ]", Path::new("/"));
        let prepared = Prepared::on(system, &plan(capabilities), command, Options::default());
        prepared.unwrap_or_else(|refusal| panic!("{refusal}")).spawn().unwrap().wait().unwrap()
    };
    for looked_for in [&["exec:spawn:*"][..], &[]] {
        let system = System::look(&plan(looked_for));
        for _ in 0..2 {
            assert_eq!(absent(&system, &[]), Exit::Code(0), "looked at for {looked_for:?}");
            assert_eq!(absent(&system, &["exec:spawn:*"]), Exit::Code(1), "looked at for {looked_for:?}");
        }
    }
}

#[test]
fn the_loader_starts_nothing_that_is_not_granted() {
    let (_own, w) = directory();
    std::fs::copy("/usr/bin/id", w.join("id")).unwrap();
    let loader = "/lib64/ld-linux-x86-64.so.2";
    if !Path::new(loader).exists() {
        eprintln!("skipped: no {loader} here");
        return;
    }
    let cap = format!("fs:read,write:{}", w.display());
    sh(&[&cap], "./id", &w).refused();
    assert!(sh(&[&cap], &format!("{loader} ./id"), &w).refused().contains("failed to map"));
    sh(&[&cap], &format!("cp /usr/lib/os-release /tmp/x; {loader} /tmp/x"), &w).refused();
    let whole = "fs:read:/usr";
    assert!(sh(&[whole], &format!("{loader} /usr/bin/id"), &w).refused().contains("failed to map"));
    sh(&[whole], "/usr/bin/id", &w).refused();
    let open = "exec:spawn:make?fromWritable=true";
    assert!(
        sh(&[&cap, open], "./id", &w).ok().contains("uid="),
        "build tools can start what they have built"
    );
}

#[test]
fn programs_among_libraries_are_without_code() {
    let (_own, w) = directory();
    let helpers = [
        "/usr/lib/x86_64-linux-gnu/glib-2.0/gio-querymodules",
        "/usr/lib/git-core/git",
        "/usr/lib/openssh/ssh-keysign",
    ];
    for helper in helpers.iter().filter(|helper| Path::new(helper).exists()) {
        sh(&[], helper, &w).refused();
        let loaded = sh(&[], &format!("/lib64/ld-linux-x86-64.so.2 {helper}"), &w).refused();
        assert!(
            loaded.contains("failed to map") || loaded.contains("ermission denied"),
            "{helper}: {loaded}"
        );
    }
}

#[test]
fn a_script_brings_its_interpreter_and_a_link_its_file() {
    let (_own, w) = directory();
    let path = w.join("tool");
    std::fs::write(&path, "#!/usr/bin/env -S sh\necho from a script\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("tool", w.join("link")).unwrap();
    let mut command = Command::new("./link");
    command.cwd = Some(w.clone());
    let said = run_with(&[], command, Options::default());
    assert_eq!(said.ok(), "from a script\n");
}

#[test]
fn what_cannot_be_started_is_refused_with_its_code() {
    let (_own, w) = directory();
    std::fs::write(w.join("data"), "x").unwrap();
    let refusal = |program: &str| {
        let mut command = script("", &w);
        command.program = program.into();
        prepare(&[], command, Options::default()).err().unwrap()
    };
    assert_eq!(refusal("no-such-program").exit_code(), 127);
    assert_eq!(refusal("./no-such-program").exit_code(), 127);
    assert_eq!(refusal("./data").exit_code(), 126);
    assert!(matches!(refusal("no-such-program"), Refusal::NotFound { .. }));
}

#[test]
fn ordinary_programs_work_with_one_flag() {
    let (_own, w) = directory();
    let cap = format!("fs:read,write:{}", w.display());
    let lines: [(&str, &[&str], &str); 4] = [
        ("bash", &["-c", "echo $((40+2))"], "42"),
        ("python3", &["-c", "import ssl, ctypes, json; print(6*7)"], "42"),
        ("node", &["-e", "console.log(6*7)"], "42"),
        ("git", &["init", "-q", "sub"], ""),
    ];
    for (program, args, expected) in lines {
        let mut command = Command::new(program);
        command.args = args.iter().map(Into::into).collect();
        command.cwd = Some(w.clone());
        if matches!(prepare(&[&cap], script("", &w), Options::default()), Err(Refusal::NotFound { .. })) {
            eprintln!("skipped: no {program} here");
            continue;
        }
        assert_eq!(run_with(&[&cap], command, Options::default()).ok().trim(), expected, "{program}");
    }
    assert!(w.join("sub/.git/HEAD").exists());
}
