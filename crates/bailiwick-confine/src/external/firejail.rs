//! firejail: the artifact's profile, and variables as firejail's own environment, which it passes on.

use bailiwick_policy::artifact::Artifact;
use bailiwick_policy::plan::Plan;

use super::{Folder, Invocation, options_of, plain_command, unusable, values};
use crate::command::Command;
use crate::host::find;
use crate::refusal::Refusal;

pub(super) fn invocation(
    plan: &Plan,
    artifact: &Artifact,
    command: &Command,
    folder: Folder,
) -> Result<Invocation, Refusal> {
    let odd = || unusable("firejail", "its command line is not understood", "compile it again");
    let program = find("firejail").ok_or_else(|| unusable("firejail", "it is gone", "install firejail"))?;
    let options = options_of(plan, artifact);
    let at = options.iter().position(|word| word == "firejail").ok_or_else(odd)?;
    let (before, after) = options.split_at(at);
    let mut plain = plain_command(&program, command);
    for variable in before.iter().skip(2) {
        let (name, value) = variable.split_once('=').ok_or_else(odd)?;
        plain.env(name, value);
    }
    plain.envs(values(plan, command));
    for word in after.iter().skip(1) {
        match word.strip_prefix("--profile=") {
            Some(profile) => plain.arg(format!("--profile={}", folder.path().join(profile).display())),
            None => plain.arg(word),
        };
    }
    plain.arg(&command.program).args(&command.args);
    Ok(Invocation { command: plain, inherited: Vec::new(), folder: Some(folder), teardown: None })
}
