//! The code of a program is part of the program: virtual environments, modules beside an entry point, compilers, and
//! directories that are granted as code.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bailiwick_confine::{Command, Options, Search};

use crate::support::{directory, run_with, script, sh};

/// A module of the system's Python that is compiled.
fn compiled_module() -> Option<PathBuf> {
    let libraries =
        std::fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path().join("lib-dynload"));
    let modules = libraries.filter_map(|directory| std::fs::read_dir(directory).ok()).flatten().flatten();
    modules.map(|entry| entry.path()).find(|path| path.to_string_lossy().contains("/_bz2."))
}

/// A virtual environment with a compiled module in it.
fn environment(at: &Path) -> Option<()> {
    let module = compiled_module()?;
    let made =
        std::process::Command::new("/usr/bin/python3").args(["-m", "venv", "--without-pip"]).arg(at).status();
    made.ok().filter(std::process::ExitStatus::success)?;
    let packages =
        std::fs::read_dir(at.join("lib")).ok()?.flatten().next()?.path().join("site-packages/compiled");
    std::fs::create_dir(&packages).ok()?;
    std::fs::write(packages.join("__init__.py"), "").ok()?;
    std::fs::copy(&module, packages.join(module.file_name()?)).map(|_| ()).ok()
}

fn command(program: &Path, arguments: &[&str]) -> Command {
    Command { args: arguments.iter().map(Into::into).collect(), ..Command::new(program) }
}

fn program(at: &Path, text: &str) {
    std::fs::write(at, text).unwrap();
    std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o755)).unwrap();
}

const IMPORT: &str = "from compiled import _bz2; import sys; print(sys.prefix)";

#[test]
fn a_virtual_environment_comes_with_its_interpreter_read_only() {
    let (_own, w) = directory();
    let venv = w.join("venv");
    if environment(&venv).is_none() {
        return eprintln!("skipped: no Python with compiled modules here");
    }
    let python = venv.join("bin/python");
    let ran = run_with(&[], command(&python, &["-c", IMPORT]), Options::default());
    assert_eq!(ran.ok().trim(), venv.to_str().unwrap());
    let tool = venv.join("bin/tool");
    program(&tool, &format!("#!{}\n{IMPORT}\n", python.display()));
    run_with(&[], command(&tool, &[]), Options::default()).ok();
    let write = format!("open('{}/new', 'w')", venv.display());
    run_with(&[], command(&python, &["-c", &write]), Options::default()).refused();
    // Also where the tree around it may be written.
    let around = format!("fs:read,write:{}", w.display());
    run_with(&[&around], command(&python, &["-c", IMPORT]), Options::default()).ok();
    run_with(&[&around], command(&python, &["-c", &write]), Options::default()).refused();
    // What is granted for writing by itself is written, and is no code.
    let itself = format!("fs:read,write:{}", venv.display());
    let said = run_with(&[&itself], command(&python, &["-c", IMPORT]), Options::default()).refused();
    assert!(said.contains("failed to map"), "{said}");
    run_with(&[&itself], command(&python, &["-c", &write]), Options::default()).ok();
}

#[test]
fn a_command_is_found_as_the_callers_shell_would_find_it() {
    let (_own, w) = directory();
    std::fs::create_dir_all(w.join("first")).unwrap();
    program(&w.join("first/id"), "#!/bin/sh\necho own $0\n");
    let search = Search { callers: vec![w.join("none"), w.join("first")], ..Search::default() };
    let options = Options { search, ..Options::default() };
    let said = run_with(&[], Command::new("id"), options.clone()).ok();
    assert_eq!(said.trim(), format!("own {}/first/id", w.display()));
    // A name in a plan is not looked for there.
    let said = run_with(&["exec:spawn:id"], script("id", Path::new("/")), options).ok();
    assert!(said.contains("uid="), "{said}");
    let search = Search { named: vec![w.join("first")], ..Search::default() };
    let options = Options { search, ..Options::default() };
    let said = run_with(&["exec:spawn:id"], script("id", Path::new("/")), options).ok();
    assert!(said.contains("own"), "{said}");
}

#[test]
fn modules_come_with_an_entry_point() {
    let (_own, w) = directory();
    if !Path::new("/usr/bin/node").exists() {
        return eprintln!("skipped: no node here");
    }
    let package = w.join("node_modules/@scope/server");
    for directory in [package.join("dist"), w.join("node_modules/dep"), w.join("node_modules/.bin")] {
        std::fs::create_dir_all(directory).unwrap();
    }
    std::fs::write(w.join("node_modules/dep/index.js"), "module.exports = 42;\n").unwrap();
    std::fs::write(w.join("secret"), "hush").unwrap();
    program(&package.join("dist/index.js"), "#!/usr/bin/env node\nconsole.log(require('dep'));\n");
    std::os::unix::fs::symlink("../@scope/server/dist/index.js", w.join("node_modules/.bin/server")).unwrap();
    let ran = run_with(&[], command(&w.join("node_modules/.bin/server"), &[]), Options::default());
    assert_eq!(ran.ok().trim(), "42");
    program(
        &package.join("dist/index.js"),
        "#!/usr/bin/env node\nrequire('fs').readFileSync(__dirname + '/../../../../secret');\n",
    );
    run_with(&[], command(&w.join("node_modules/.bin/server"), &[]), Options::default()).refused();
}

#[test]
fn a_compiler_has_its_headers_and_helpers() {
    let (_own, w) = directory();
    if !Path::new("/usr/bin/cc").exists() {
        return eprintln!("skipped: no C compiler here");
    }
    std::fs::write(w.join("a.c"), "#include <stdio.h>\nint main(void) { puts(\"built\"); }\n").unwrap();
    let cap = format!("fs:read,write:{}", w.display());
    let mut cc = Command::new("cc");
    cc.args = ["-o", "a", "a.c"].map(Into::into).to_vec();
    cc.cwd = Some(w.clone());
    run_with(&[&cap], cc, Options::default()).ok();
    let built = std::process::Command::new(w.join("a")).output().unwrap();
    assert_eq!(built.stdout, b"built\n");
}

#[test]
fn a_jvm_has_its_settings() {
    if !Path::new("/usr/bin/java").exists() {
        return eprintln!("skipped: no Java here");
    }
    run_with(&[], command(Path::new("java"), &["-Xmx64m", "-version"]), Options::default()).ok();
}

#[test]
fn a_directory_that_is_granted_as_code_is_mapped_and_not_started_from() {
    let (_own, w) = directory();
    let Some(module) = compiled_module() else { return eprintln!("skipped: no compiled module here") };
    std::fs::copy(&module, w.join(module.file_name().unwrap())).unwrap();
    std::fs::copy("/usr/bin/id", w.join("id")).unwrap();
    let import =
        format!("import sys; sys.path.insert(0, '{}'); import _bz2; print(_bz2.__file__)", w.display());
    let python = Path::new("/usr/bin/python3");
    let (read, code) = (format!("fs:read:{}", w.display()), format!("fs:read:{}?code=true", w.display()));
    let said = run_with(&[&read], command(python, &["-I", "-c", &import]), Options::default()).refused();
    assert!(said.contains("failed to map"), "{said}");
    let said = run_with(&[&code], command(python, &["-I", "-c", &import]), Options::default()).ok();
    assert!(said.contains(w.to_str().unwrap()), "{said}");
    sh(&[&code], "./id", &w).refused();
    sh(&[&code], "echo x > new", &w).refused();
    // Where everything around may be written, what is granted as code is not.
    let (outer, inner) = (format!("fs:read,write:{}", w.display()), w.join("code"));
    std::fs::create_dir(&inner).unwrap();
    let code = format!("fs:read:{}?code=true", inner.display());
    sh(&[&outer, &code], "echo x > new && ! echo x > code/new", &w).ok();
    // A directory that may itself be written is not mapped.
    let both = format!("fs:read:{}?code=true", w.display());
    let said = run_with(&[&outer, &both], command(python, &["-I", "-c", &import]), Options::default());
    assert!(said.refused().contains("failed to map"));
}
