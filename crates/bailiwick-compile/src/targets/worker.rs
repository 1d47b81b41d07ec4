//! Options of a Node.js Worker: a thread of the caller's own process, and so no sandbox.
//!
//! A worker has its own copy of the environment and a limit for its heap; everything else it shares. The coverage
//! says so, and with the usual floor it is refused.

use bailiwick_policy::artifact::{ArtifactFile, Emitted};
use bailiwick_policy::enforcement::judge;
use bailiwick_policy::enforcement::mechanism::{
    EnvironmentMechanism, FileMechanism, LimitMechanism, Mechanism, NetworkMechanism, ProcessMechanism,
    ProgramMechanism, ServiceMechanism,
};
use bailiwick_policy::limits::Limit;
use bailiwick_policy::plan::{Plan, Sourced};
use serde_json::{Value, json};

use super::aspects;
use crate::Refusal;

const MEBIBYTE: u64 = 1 << 20;

pub(super) fn emit(plan: &Plan) -> Result<Emitted, Refusal> {
    let environment = plan.environment();
    let names = |all: &[Sourced<Box<str>>]| -> Vec<Value> {
        all.iter().map(|name| Value::from(&*name.value)).collect()
    };
    let heap = plan.limits().memory.map(|bytes| (bytes / MEBIBYTE).max(1));
    let text = json!({
        "format": "bailiwick.worker/1",
        "options": {
            "env": environment.fixed,
            "resourceLimits": heap.map_or_else(|| json!({}), |heap| json!({ "maxOldGenerationSizeMb": heap })),
            "stdin": true,
            "stdout": true,
            "stderr": true,
            "trackUnmanagedFds": true,
        },
        "injectEnv": names(&environment.injected),
        "readEnv": names(&environment.read),
    });
    let mut notes =
        vec!["a worker is no sandbox: its code has all that the process around it has".to_owned()];
    notes.extend(aspects::common_notes(plan));
    let files = vec![ArtifactFile { name: "worker.json".to_owned(), text: format!("{text:#}\n") }];
    Ok(Emitted { argv: Vec::new(), files, notes, coverage: judge::coverage(plan, &MECHANISM) })
}

/// What a worker shares with the process around it.
const SHARED: &str = "a worker shares it with the process around it";

/// What a worker holds a plan with.
pub(super) const MECHANISM: Mechanism = Mechanism {
    files: FileMechanism::Nothing(SHARED),
    network: NetworkMechanism::Nothing(SHARED),
    programs: ProgramMechanism::Nothing(SHARED),
    environment: EnvironmentMechanism::Advisory("a worker has its own copy, and native code the whole"),
    services: ServiceMechanism::Nothing(SHARED),
    processes: ProcessMechanism::Nothing(SHARED),
    limits: LimitMechanism::Advisory(&[Limit::Memory], "the heap is limited, and nothing else of the memory"),
};
