//! Compile a plan into what a sandbox understands, and say how well that sandbox holds it.
//!
//! Pure: nothing is executed, resolved or contacted. Every target is one file of the same shape: `emit`, which
//! writes the target's own words, and `coverage`, which says what they hold. What a target cannot say is named
//! in its coverage and notes, or refused; it is never dropped silently.
#![forbid(unsafe_code)]

mod egress;
mod options;
mod pattern;
mod refusal;
mod script;
mod target;
mod targets;
mod view;
mod why;
mod yaml;

pub use egress::Egress;
pub use options::TargetOptions;
pub use refusal::Refusal;
pub use target::Target;

use bailiwick_policy::artifact::{Artifact, ArtifactFile, Provenance};
use bailiwick_policy::enforcement::mechanism::Mechanism;
use bailiwick_policy::enforcement::{Aspect, Coverage, Floor, judge};
use bailiwick_policy::plan::{FileGrant, Plan};

/// Compiles a plan for a target.
///
/// # Errors
/// A refusal if the target cannot say it without widening it, or holds less than the floor demands.
pub fn compile(
    target: Target,
    plan: &Plan,
    floor: &Floor,
    provenance: Provenance,
) -> Result<Artifact, Refusal> {
    compile_with(target, TargetOptions::default(), plan, floor, provenance)
}

/// The same with what the caller chooses about the target.
///
/// # Errors
/// As [`compile`].
pub fn compile_with(
    target: Target,
    options: TargetOptions,
    plan: &Plan,
    floor: &Floor,
    provenance: Provenance,
) -> Result<Artifact, Refusal> {
    refuse_control(target, plan)?;
    let emitted = targets::emit(target, options, plan)?;
    let shortfalls = emitted.coverage.below(floor);
    if !shortfalls.is_empty() {
        return Err(Refusal::BelowFloor { target, shortfalls });
    }
    Ok(Artifact::new(target.as_str(), plan, emitted, provenance))
}

/// Where a path really lies, the host says and no parser has read it: a line break there would end a line of a
/// target's own text.
fn refuse_control(target: Target, plan: &Plan) -> Result<(), Refusal> {
    let acts = |grant: &&FileGrant| grant.source.components().any(|name| name.contains(char::is_control));
    match plan.files().iter().find(acts) {
        None => Ok(()),
        Some(grant) => Err(Refusal::Inexpressible {
            target,
            aspect: Aspect::Files,
            rule: grant.pattern.value.to_string(),
            why: "it really lies at a path with control characters".to_owned(),
        }),
    }
}

/// The options of an artifact's command line alone, for a caller that puts the program before them and the command
/// (for Docker: the image and the command) behind them, as `execFile` takes it. `None` for a target whose command
/// line is more than a program with options.
#[must_use]
pub fn flags<'a>(artifact: &'a Artifact, plan: &Plan) -> Option<&'a [String]> {
    let program = match artifact.target() {
        "bwrap" => 1,  // bwrap … --
        "docker" => 2, // docker run … IMAGE
        _ => return None,
    };
    let end = artifact.argv().len().checked_sub(script::command(plan).len() + 1)?;
    artifact.argv().get(program..end)
}

/// How well a target would hold a plan, whether or not it can be compiled.
#[must_use]
pub fn coverage(target: Target, plan: &Plan) -> Coverage {
    judge::coverage(plan, &mechanism(target))
}

/// What a target holds plans with, as it is without options.
#[must_use]
pub fn mechanism(target: Target) -> Mechanism {
    targets::mechanism(target, TargetOptions::default())
}

/// The network allowlist of a plan, as the configuration of a gateway.
///
/// # Errors
/// A refusal if the format cannot say a rule without widening it beyond what the file itself states.
pub fn egress(format: Egress, plan: &Plan) -> Result<ArtifactFile, Refusal> {
    egress::emit(format, plan)
}
