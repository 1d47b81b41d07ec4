//! bubblewrap: the artifact's command line, stub files bound, values through a descriptor.

use std::ffi::OsString;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use bailiwick_confine::host::system_program as find;
use bailiwick_confine::{Fault, HostCommand, Refusal, Step};
use bailiwick_policy::artifact::Artifact;
use bailiwick_policy::plan::Plan;
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, Mode, OFlags, SeekFrom, memfd_create, open, seek};
use rustix::io::{Errno, write};

use super::{Directory, Program, options_of, plain_command, unusable, values};

/// The artifact's own files that are not shown inside.
const OWN: [&str; 2] = ["bwrap.sh", "bwrap.args"];

pub(super) fn command_line(
    plan: &Plan,
    artifact: &Artifact,
    command: &Program,
    directory: Directory,
) -> Result<HostCommand, Refusal> {
    let program = find("bwrap").ok_or_else(|| unusable("bwrap", "it is gone", "install bubblewrap"))?;
    let mut plain = plain_command(&program, command);
    let mut inherited = Vec::new();
    for file in artifact.files().iter().filter(|file| !OWN.contains(&&*file.name)) {
        plain.arg("--ro-bind").arg(directory.path().join(&file.name)).arg(format!("/{}", file.name));
    }
    let options = options_of(plan, artifact);
    let (end, options) =
        options.split_last().filter(|(end, _)| *end == "--").ok_or_else(|| odd("no `--`"))?;
    if artifact.files().iter().any(|file| file.name == "bwrap.args") {
        let file = open(directory.path().join("bwrap.args"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let file = file.map_err(fault)?;
        plain.arg("--args").arg(file.as_raw_fd().to_string());
        inherited.push(file);
    } else {
        plain.args(options.iter().skip(1));
    }
    let passed = passed(plan, command)?;
    plain.arg("--args").arg(passed.as_raw_fd().to_string());
    inherited.push(passed);
    plain.arg(end).arg(&command.program).args(&command.args);
    Ok(HostCommand { command: plain, inherited, kept: Some(Box::new(directory)), teardown: None })
}

/// The values of variables as bubblewrap's own arguments, in memory that only it reads.
fn passed(plan: &Plan, command: &Program) -> Result<OwnedFd, Refusal> {
    let mut text: Vec<u8> = Vec::new();
    for (name, value) in values(plan, command) {
        let words = [b"--setenv", name.as_bytes(), value.as_bytes()];
        if words.iter().any(|word| word.contains(&0)) {
            let what = OsString::from_vec(name.as_bytes().to_vec()).to_string_lossy().into_owned();
            return Err(Refusal::Nul { what });
        }
        words.iter().for_each(|word| text.extend(word.iter().chain(b"\0")));
    }
    let memory = memfd_create(c"arguments", MemfdFlags::CLOEXEC).map_err(fault)?;
    let mut rest = &*text;
    while !rest.is_empty() {
        let written = write(&memory, rest).map_err(fault)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    seek(&memory, SeekFrom::Start(0)).map_err(fault)?;
    Ok(memory)
}

fn fault(errno: Errno) -> Refusal {
    Fault::new(Step::Open, errno).into()
}

fn odd(why: &str) -> Refusal {
    unusable("bwrap", &format!("its command line is not understood: {why}"), "compile it again")
}
