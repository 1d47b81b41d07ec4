//! One file a target, each with the same two functions.

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
use bailiwick_policy::enforcement::Coverage;
use bailiwick_policy::plan::Plan;

use crate::{Refusal, Target, TargetOptions};

/// What the target says.
pub(crate) fn emit(target: Target, options: TargetOptions, plan: &Plan) -> Result<Emitted, Refusal> {
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

/// How well the target holds it.
pub(crate) fn coverage(target: Target, plan: &Plan) -> Coverage {
    match target {
        Target::Bwrap => bwrap::coverage(plan),
        Target::Docker => docker::coverage(plan, TargetOptions::default()),
        Target::Oci => oci::coverage(plan),
        Target::Kubernetes => kubernetes::coverage(plan),
        Target::Systemd => systemd::coverage(plan),
        Target::Firejail => firejail::coverage(plan),
        Target::Seatbelt => seatbelt::coverage(plan),
        Target::Landlock => landlock::coverage(plan),
        Target::Worker => worker::coverage(plan),
    }
}
