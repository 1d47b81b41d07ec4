//! One file a target, each with what it emits and the mechanism it holds a plan with.

mod aspects;
mod bwrap;
mod docker;
mod firejail;
mod kubernetes;
mod landlock;
mod oci;
mod seatbelt;
mod systemd;
mod worker;

use bailiwick_policy::artifact::Emitted;
use bailiwick_policy::enforcement::mechanism::Mechanism;
use bailiwick_policy::plan::Plan;

use crate::{Refusal, Target, TargetOptions};

/// What the target says.
pub(crate) fn emit(target: Target, options: TargetOptions, plan: &Plan) -> Result<Emitted, Refusal> {
    let mut emitted = emit_alone(target, options, plan)?;
    emitted.notes.extend(aspects::unopened(plan));
    Ok(emitted)
}

fn emit_alone(target: Target, options: TargetOptions, plan: &Plan) -> Result<Emitted, Refusal> {
    match target {
        Target::Bwrap => bwrap::emit(plan),
        Target::Docker => docker::emit(plan, options),
        Target::Oci => oci::emit(plan),
        Target::Kubernetes => kubernetes::emit(plan),
        Target::Systemd => systemd::emit(plan),
        Target::Firejail => firejail::emit(plan),
        Target::Seatbelt => seatbelt::emit(plan),
        Target::Landlock => landlock::emit(plan),
        Target::Worker => worker::emit(plan),
    }
}

/// What the target holds a plan with.
pub(crate) const fn mechanism(target: Target, options: TargetOptions) -> Mechanism {
    match target {
        Target::Bwrap => bwrap::MECHANISM,
        Target::Docker => docker::mechanism(options),
        Target::Oci => oci::MECHANISM,
        Target::Kubernetes => kubernetes::MECHANISM,
        Target::Systemd => systemd::MECHANISM,
        Target::Firejail => firejail::MECHANISM,
        Target::Seatbelt => seatbelt::MECHANISM,
        Target::Landlock => landlock::MECHANISM,
        Target::Worker => worker::MECHANISM,
    }
}
