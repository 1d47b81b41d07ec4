//! firejail: the artifact's profile, and variables as firejail's own environment, which it passes on.

use bailiwick_confine::host::system_program as find;
use bailiwick_confine::{HostCommand, Refusal};
use bailiwick_policy::artifact::Artifact;
use bailiwick_policy::plan::Plan;

use super::{Directory, Program, options_of, plain_command, unusable, values};

pub(super) fn command_line(
    plan: &Plan,
    artifact: &Artifact,
    command: &Program,
    directory: Directory,
) -> Result<HostCommand, Refusal> {
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
            Some(profile) => plain.arg(format!("--profile={}", directory.path().join(profile).display())),
            None => plain.arg(word),
        };
    }
    plain.arg(&command.program).args(&command.args);
    Ok(HostCommand { command: plain, inherited: Vec::new(), kept: Some(Box::new(directory)), teardown: None })
}
