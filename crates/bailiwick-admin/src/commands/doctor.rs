//! `bailiwick doctor`: what this host can hold, or whether the hooks of agents answer.

pub(super) mod agents;
#[cfg(target_os = "linux")]
mod host;

use bailiwick_command::answer::Answer;
use bailiwick_command::args::run::Doctor;

pub(super) fn run(args: &Doctor) -> anyhow::Result<Answer> {
    if args.agents {
        return Ok(agents::run(args.format));
    }
    #[cfg(target_os = "linux")]
    return host::run(args.format);
    #[cfg(not(target_os = "linux"))]
    return Ok(bailiwick_command::answer::needs_linux());
}
