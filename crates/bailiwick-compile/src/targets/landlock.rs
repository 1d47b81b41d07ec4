//! Landlock rules as JSON, for programs that confine themselves: rights by path, and scopes.
//!
//! Residual, and so said in the coverage: Landlock holds no host allowlist (with every TCP port denied, UDP,
//! MPTCP, fast open and Unix sockets still get out), no environment, and neither `stat` nor `chmod`.

use std::borrow::Cow;

use bailiwick_policy::artifact::{ArtifactFile, Emitted};
use bailiwick_policy::capability::FsActions;
use bailiwick_policy::enforcement::judge;
use bailiwick_policy::enforcement::mechanism::{
    EnvironmentMechanism, FileMechanism, LimitMechanism, Mechanism, NetworkMechanism, ProcessMechanism,
    ProgramMechanism, ServiceMechanism, Words,
};
use bailiwick_policy::plan::{BASE, BaseKind, FileGrant, Network, Plan};
use serde::Serialize;

use super::aspects;
use crate::Refusal;

/// The kernel's version of Landlock that has all of what is used here.
const ABI: u32 = 6;
const HANDLED: [&str; 16] = [
    "execute",
    "write_file",
    "read_file",
    "read_dir",
    "remove_dir",
    "remove_file",
    "make_char",
    "make_dir",
    "make_reg",
    "make_sock",
    "make_fifo",
    "make_block",
    "make_sym",
    "refer",
    "truncate",
    "ioctl_dev",
];
const RUN: [&str; 3] = ["execute", "read_file", "read_dir"];
const READ: [&str; 2] = ["read_file", "read_dir"];
const WRITE: [&str; 3] = ["write_file", "truncate", "refer"];
const CREATE: [&str; 7] =
    ["write_file", "make_reg", "make_dir", "make_sym", "make_fifo", "make_sock", "refer"];
const DELETE: [&str; 2] = ["remove_file", "remove_dir"];
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// `landlock.json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rules<'a> {
    format: &'static str,
    minimum_abi: u32,
    handled_access_fs: [&'static str; 16],
    handled_access_net: [&'static str; 2],
    scoped: [&'static str; 2],
    rules: Vec<Rule<'a>>,
    /// Null for every port.
    connect_tcp: Option<Vec<u16>>,
    no_new_privileges: bool,
}

#[derive(Serialize)]
struct Rule<'a> {
    path: Cow<'a, str>,
    access: Cow<'static, [&'static str]>,
    optional: bool,
}

impl<'a> Rule<'a> {
    /// A rule for what the host may lack.
    fn optional(path: impl Into<Cow<'a, str>>, access: &'static [&'static str]) -> Self {
        Self { path: path.into(), access: access.into(), optional: true }
    }
}

pub(super) fn emit(plan: &Plan) -> Result<Emitted, Refusal> {
    let text = Rules {
        format: "bailiwick.landlock/1",
        minimum_abi: ABI,
        handled_access_fs: HANDLED,
        handled_access_net: ["bind_tcp", "connect_tcp"],
        scoped: ["abstract_unix_socket", "signal"],
        rules: rules(plan),
        connect_tcp: ports(plan),
        no_new_privileges: true,
    };
    let mut text = serde_json::to_string_pretty(&text).unwrap_or_default();
    text.push('\n');
    let mut notes = vec![
        "Landlock is no network confinement: what connects by UDP, MPTCP or fast open is not held".to_owned(),
        "apply it after everything is open, with no_new_privs, on a kernel of at least that ABI".to_owned(),
    ];
    notes.extend(aspects::shown(plan).notes);
    notes.extend(aspects::common_notes(plan));
    let files = vec![ArtifactFile { name: "landlock.json".to_owned(), text }];
    Ok(Emitted { argv: Vec::new(), files, notes, coverage: judge::coverage(plan, &MECHANISM) })
}

fn rules(plan: &Plan) -> Vec<Rule<'_>> {
    let mut rules: Vec<Rule<'_>> = Vec::with_capacity(64 + plan.files().len());
    for entry in BASE.iter() {
        match entry.kind {
            BaseKind::Libraries => rules.push(Rule::optional(entry.path, &RUN)),
            BaseKind::Data => rules.push(Rule::optional(entry.path, &READ)),
            BaseKind::Programs if plan.exec().any.is_some() => rules.push(Rule::optional(entry.path, &RUN)),
            BaseKind::Programs => {}
        }
    }
    rules.extend(DEVICES.map(|device| Rule::optional(device, &["read_file", "write_file"])));
    let programs = aspects::programs(plan).into_iter().flat_map(|program| aspects::files_of(&program));
    rules.extend(programs.map(|file| Rule::optional(file, &["execute", "read_file"])));
    let masked = aspects::masked();
    let shown = plan.files().iter().filter(|grant| !masked.iter().any(|tree| grant.source.is_within(tree)));
    rules.extend(shown.map(|grant| Rule {
        path: grant.source.to_string().into(),
        access: access(grant, plan),
        optional: false,
    }));
    rules
}

/// What a ruleset holds a plan with.
pub(super) const MECHANISM: Mechanism = Mechanism {
    files: FileMechanism::TreeRules(Words::superset(
        "Landlock, by tree and right",
        &["stat, chmod and utimes are not held"],
    )),
    network: NetworkMechanism::Nothing("Landlock knows TCP ports and nothing else of a network"),
    programs: ProgramMechanism::Listed(Words::superset(
        "only the granted programs can be read and started",
        &["library directories hold programs too"],
    )),
    environment: EnvironmentMechanism::Nothing("the process has the environment that it was started with"),
    services: ServiceMechanism::Nothing("sockets in the file system can be connected to"),
    processes: ProcessMechanism::Kernel {
        words: Words::superset(
            "signals and tracing stay within the domain",
            &["other processes can be seen"],
        ),
        nested: Words::superset(
            "signals and tracing stay within the domain",
            &["other processes can be seen"],
        ),
    },
    limits: LimitMechanism::Kernel(&[], ""),
};

fn access(grant: &FileGrant, plan: &Plan) -> Cow<'static, [&'static str]> {
    if grant.actions == FsActions::READ {
        return Cow::Borrowed(&READ);
    }
    let rights: [(FsActions, &[&str]); 4] = [
        (FsActions::READ, &READ),
        (FsActions::WRITE, &WRITE),
        (FsActions::CREATE, &CREATE),
        (FsActions::DELETE, &DELETE),
    ];
    let mut access: Vec<&str> = Vec::new();
    for (action, names) in rights {
        if grant.actions.contains(action) {
            access.extend(names.iter().filter(|name| !access.contains(name)).copied().collect::<Vec<_>>());
        }
    }
    if plan.from_writable() && grant.writable() {
        access.push("execute");
    }
    access.into()
}

/// The ports that any rule names; null for every port.
fn ports(plan: &Plan) -> Option<Vec<u16>> {
    let rules = plan.network().rules();
    let any = *plan.network() == Network::Any;
    let wide = any || rules.iter().any(|rule| rule.value.ports().high() - rule.value.ports().low() > 1024);
    if wide {
        return None;
    }
    let mut ports: Vec<u16> =
        rules.iter().flat_map(|rule| rule.value.ports().low()..=rule.value.ports().high()).collect();
    ports.sort_unstable();
    ports.dedup();
    Some(ports)
}
