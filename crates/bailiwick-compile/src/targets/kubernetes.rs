//! A Kubernetes Pod with its network policies: a NetworkPolicy for addresses, a CiliumNetworkPolicy for names.
//!
//! The Pod shows the image's own files and the plan's trees, nothing else of the node. No egress is open but
//! what a policy names; where no plugin enforces policies nothing is held, so the network is at most `mediated`.
//!
//! Residual: the image, whose files, programs and variables no manifest describes.

mod policies;

use std::fmt::Write as _;

use bailiwick_policy::artifact::{ArtifactFile, Emitted};
use bailiwick_policy::enforcement::mechanism::{
    EnvironmentMechanism, FileMechanism, LimitMechanism, Mechanism, NetworkMechanism, ProcessMechanism,
    ProgramMechanism, ServiceMechanism, Words,
};
use bailiwick_policy::enforcement::{Aspect, judge};
use bailiwick_policy::facts::PathKind;
use bailiwick_policy::limits::Limit;
use bailiwick_policy::plan::{Mount, Plan};

use super::aspects;
use crate::yaml::quoted;
use crate::{Refusal, Target, script};

/// The user and group of the process, without rights of their own.
const UNPRIVILEGED: u32 = 65_534;

pub(super) fn emit(plan: &Plan) -> Result<Emitted, Refusal> {
    let name = name(plan);
    let shown = aspects::shown(plan);
    let volumes = Volumes::for_mounts(plan, &shown.mounts)?;
    let mut files = vec![ArtifactFile {
        name: "pod.yaml".to_owned(),
        text: pod(plan, &name, &volumes) + &policies::network_policy(plan, &name),
    }];
    if let Some(text) = policies::cilium(plan, &name) {
        files.push(ArtifactFile { name: "cilium.yaml".to_owned(), text });
    }
    let mut notes = notes(plan, &name);
    notes.extend(shown.notes);
    notes.extend(aspects::common_notes(plan));
    Ok(Emitted { argv: Vec::new(), files, notes, coverage: judge::coverage(plan, &MECHANISM) })
}

/// What a pod holds a plan with.
pub(super) const MECHANISM: Mechanism = Mechanism {
    files: FileMechanism::Mounts(Words::superset(
        "a container's own root, read-only, with the plan's trees",
        &["all of the image can be read"],
    )),
    network: NetworkMechanism::Policies {
        words: Words::exact("the cluster's network plugin decides, if it enforces policies"),
        unchecked: "what is spoken to an allowed address is not checked",
        private_names: "a name may resolve to a private address, since one rule opens them",
    },
    programs: ProgramMechanism::Visible,
    environment: EnvironmentMechanism::Fresh {
        words: Words::superset(
            "the runtime starts it with these variables",
            &["those of the image and the cluster's own are there too"],
        ),
        passes_all: false,
    },
    services: ServiceMechanism::Visible(Words::exact("")),
    processes: ProcessMechanism::Kernel {
        words: Words::exact("its own pid namespace"),
        nested: Words::exact("its own pid namespace"),
    },
    limits: LimitMechanism::Kernel(&[Limit::Memory, Limit::Cpu], "the container's cgroup"),
};

/// A name that Kubernetes takes: at most 40 of lower-case letters, digits and `-`.
fn name(plan: &Plan) -> String {
    let subject = plan.subject();
    let named = subject.tool.iter().fold(subject.name.clone(), |name, tool| format!("{name}-{tool}"));
    let kept = named.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    let kept: String = kept.take(40).collect();
    format!("bw-{}", kept.trim_matches('-'))
}

fn pod(plan: &Plan, name: &str, volumes: &Volumes) -> String {
    format!(
        "---
apiVersion: 'v1'
kind: 'Pod'
metadata:
  name: '{name}'
  labels:
    bailiwick/server: '{name}'
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  hostIPC: false
  hostNetwork: false
  hostPID: false
  restartPolicy: 'Never'
  securityContext:
    runAsGroup: {UNPRIVILEGED}
    runAsNonRoot: true
    runAsUser: {UNPRIVILEGED}
    seccompProfile:
      type: 'RuntimeDefault'
  shareProcessNamespace: false
  containers:
  - name: 'server'
    image: 'image.invalid/{name}'
    stdin: true
    env:
{environment}    resources:
      limits:{limits}
    securityContext:
      allowPrivilegeEscalation: false
      capabilities:
        drop:
        - 'ALL'
      privileged: false
      readOnlyRootFilesystem: true
    volumeMounts:
    - name: 'tmp'
      mountPath: '/tmp'
{mounts}{command}  volumes:
  - name: 'tmp'
    emptyDir:
      medium: 'Memory'
{volumes}",
        environment = environment(plan, name),
        limits = limits(plan),
        mounts = volumes.mounts,
        command = command(plan),
        volumes = volumes.volumes,
    )
}

fn command(plan: &Plan) -> String {
    let Some((command, args)) = plan.command() else { return String::new() };
    let mut text = format!("    command:\n    - {}\n    args:", quoted(&verbatim(command)));
    text.push_str(if args.is_empty() { " []\n" } else { "\n" });
    for arg in args {
        let _ = writeln!(text, "    - {}", quoted(&verbatim(arg)));
    }
    text
}

/// A text in which `$(NAME)` is not replaced.
fn verbatim(text: &str) -> String {
    text.replace('$', "$$")
}

fn environment(plan: &Plan, name: &str) -> String {
    let environment = plan.environment();
    let mut text = String::new();
    let path = [("PATH", script::PATH)].into_iter().filter(|_| !environment.fixed.contains_key("PATH"));
    let fixed = environment.fixed.iter().map(|(key, value)| (&**key, &**value));
    for (key, value) in path.chain(fixed) {
        let _ = writeln!(text, "    - name: {}\n      value: {}", quoted(key), quoted(&verbatim(value)));
    }
    let injected = environment.injected.iter().map(|own| (&own.value, "secretKeyRef", ""));
    let optional = "          optional: true\n";
    let read = environment.read.iter().map(|own| (&own.value, "configMapKeyRef", optional));
    for (key, kind, end) in injected.chain(read) {
        let _ = write!(
            text,
            "    - name: {key}
      valueFrom:
        {kind}:
          name: '{name}-env'
          key: {key}
{end}",
            key = quoted(key),
        );
    }
    text
}

fn limits(plan: &Plan) -> String {
    let memory = plan.limits().memory.map(|bytes| format!("\n        memory: '{bytes}'"));
    let cpu = plan.limits().cpu_milli.map(|milli| format!("\n        cpu: '{milli}m'"));
    let limits: String = memory.into_iter().chain(cpu).collect();
    if limits.is_empty() { " {}".to_owned() } else { limits }
}

/// Volumes, and where they are mounted.
#[derive(Default)]
struct Volumes {
    volumes: String,
    mounts: String,
}

impl Volumes {
    fn for_mounts(plan: &Plan, trees: &[Mount]) -> Result<Self, Refusal> {
        let mut all = Self::default();
        for (index, tree) in trees.iter().enumerate() {
            refuse_tree(plan, tree)?;
            let kind = match tree.place {
                Some(PathKind::Directory) => "Directory",
                Some(PathKind::File) => "File",
                Some(PathKind::Missing) | None => "",
            };
            let (source, path) = (tree.source.to_string(), tree.path.to_string());
            all.add(&format!("tree-{index}"), &source, Some(kind), &path, !tree.writable)?;
        }
        for (index, socket) in aspects::sockets(Target::Kubernetes, plan)?.iter().enumerate() {
            all.add(&format!("socket-{index}"), socket, None, socket, true)?;
        }
        Ok(all)
    }

    fn add(
        &mut self,
        name: &str,
        source: &str,
        kind: Option<&str>,
        path: &str,
        read_only: bool,
    ) -> Result<(), Refusal> {
        let _ = writeln!(
            self.volumes,
            "  - name: '{name}'\n    hostPath:\n      path: {}{}",
            quoted(source),
            kind.map(|kind| format!("\n      type: '{kind}'")).unwrap_or_default(),
        );
        let path = quoted(mount_path(path)?);
        let _ = writeln!(
            self.mounts,
            "    - name: '{name}'\n      mountPath: {path}\n      readOnly: {read_only}"
        );
        Ok(())
    }
}

/// What a volume cannot be.
fn refuse_tree(plan: &Plan, tree: &Mount) -> Result<(), Refusal> {
    let why = if tree.path.components().next().is_none() {
        "a volume cannot be the root; grant the directories that are needed"
    } else if plan.protected().iter().any(|own| own.is_within(&tree.source)) {
        "it holds the files of Bailiwick itself; grant the directories that are needed"
    } else {
        return Ok(());
    };
    Err(Refusal::Inexpressible {
        target: Target::Kubernetes,
        aspect: Aspect::Files,
        rule: format!("{} {}", if tree.writable { "read,write" } else { "read" }, tree.path),
        why: why.to_owned(),
    })
}

/// Kubernetes takes a colon in a mount's path for a separator.
fn mount_path(path: &str) -> Result<&str, Refusal> {
    if !path.contains(':') {
        return Ok(path);
    }
    Err(Refusal::Inexpressible {
        target: Target::Kubernetes,
        aspect: Aspect::Files,
        rule: path.to_owned(),
        why: "a volume's path cannot have a colon; grant the directory above it".to_owned(),
    })
}

fn notes(plan: &Plan, name: &str) -> Vec<String> {
    let mut notes = vec![
        format!("put the server's image in place of `image.invalid/{name}`"),
        "without a network plugin that enforces policies the network is open: test it".to_owned(),
    ];
    if !plan.files().is_empty() {
        notes.push(format!(
            "the granted paths are the node's; user {UNPRIVILEGED} has to be able to reach them"
        ));
    }
    if plan.files().iter().any(bailiwick_policy::plan::FileGrant::writable) {
        notes.push(
            "files that run code later, such as git hooks, stay writable in writable directories".to_owned(),
        );
    }
    if !plan.environment().injected.is_empty() {
        notes.push(format!("the secret `{name}-env` has the values of the injected variables"));
    }
    if plan.nested_sandbox() {
        notes.push(
            "the runtime's seccomp profile stays: a nested sandbox may have to be switched off".to_owned(),
        );
    }
    if policies::has_wildcards(plan) {
        notes.push("`*.name` is narrowed to one label in front of the name, as Cilium has it".to_owned());
    }
    notes
}
