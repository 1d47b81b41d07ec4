//! A macOS sandbox profile: everything is denied, and what the plan names is allowed after it.
//!
//! The last rule that matches wins, so what runs code later is denied behind what is writable. Texts are string
//! literals with `"` and `\` escaped; globs are exact, as regular expressions.
//!
//! Residual: no macOS has run this. Paths that lead through a link (`/tmp`, `/var`) have to be named by where
//! they really lie, as `--here` does.

use std::fmt::Write as _;

use bailiwick_policy::artifact::{ArtifactFile, Emitted};
use bailiwick_policy::capability::FsActions;
use bailiwick_policy::enforcement::mechanism::{
    EnvironmentMechanism, FileMechanism, LimitMechanism, Mechanism, NetworkMechanism, ProcessMechanism,
    ProgramMechanism, ServiceMechanism, Words,
};
use bailiwick_policy::enforcement::{Aspect, judge};
use bailiwick_policy::plan::{FileGrant, Network, Plan};
use bailiwick_policy::run_later::fixed_names;

use super::aspects::{self, UNREAD};
use crate::egress::GATEWAY_PORT;
use crate::{Refusal, Target, pattern};

/// What every program of macOS needs to start.
const BASE: &str = r#"(version 1)
(deny default)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* (literal "/") (subpath "/usr/lib") (subpath "/usr/share") (subpath "/System/Library")
  (subpath "/Library/Apple") (subpath "/private/etc/ssl") (subpath "/private/var/db/dyld")
  (subpath "/private/var/db/timezone"))
(allow file-read* file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))
(allow file-read* (literal "/dev/random") (literal "/dev/urandom"))
(allow file-map-executable (subpath "/usr/lib") (subpath "/System/Library") (subpath "/Library/Apple"))
"#;

pub(super) fn emit(plan: &Plan) -> Result<Emitted, Refusal> {
    let mut text = format!("; untested: no macOS has run this profile\n{BASE}");
    let mut notes = vec![
        "untested: no macOS has run this profile".to_owned(),
        "sandbox-exec keeps the caller's environment: start it with `env -i` and the variables that are named".to_owned(),
    ];
    for grant in plan.files() {
        text.push_str(&files(grant)?);
    }
    for grant in plan.files().iter().filter(|grant| grant.writable() && grant.is_tree()) {
        let (path, source) = (grant.path().to_string(), grant.source.to_string());
        let later = fixed_names([&path, &source]).map(|name| {
            format!(" (subpath {})", string(&format!("{}/{name}", source.trim_end_matches('/'))))
        });
        let _ = writeln!(text, "(deny file-write*{})", later.collect::<String>());
    }
    programs(plan, &mut text);
    network(plan, &mut text, &mut notes);
    for socket in aspects::sockets(Target::Seatbelt, plan)? {
        let _ = writeln!(text, "(allow network-outbound (subpath {}))", string(&socket));
    }
    for own in plan.protected() {
        let _ = writeln!(text, "(deny file* (subpath {}))", string(&own.to_string()));
    }
    notes.extend(aspects::common_notes(plan));
    let mut argv: Vec<String> = ["/usr/bin/sandbox-exec", "-f", "profile.sb"].map(str::to_owned).to_vec();
    if let Some((command, args)) = plan.command() {
        argv.push(command.to_owned());
        argv.extend(args.iter().cloned());
    }
    let files = vec![ArtifactFile { name: "profile.sb".to_owned(), text }];
    Ok(Emitted { argv, files, notes, coverage: judge::coverage(plan, &MECHANISM) })
}

/// What a profile holds a plan with.
pub(super) const MECHANISM: Mechanism = Mechanism {
    files: FileMechanism::PathRules(Words::superset(
        "the kernel's sandbox, by path and action (untested)",
        &["names and attributes of all files can be seen"],
    )),
    network: NetworkMechanism::Supervised {
        none: Words::exact("the kernel's sandbox refuses every connection (untested)"),
        some: Words::exact("only the egress gateway on localhost can be reached (untested)"),
        unread: Some(UNREAD),
    },
    programs: ProgramMechanism::Listed(Words::exact(
        "the kernel's sandbox, by the program's path (untested)",
    )),
    environment: EnvironmentMechanism::Nothing("whoever starts it sets the environment"),
    services: ServiceMechanism::ByName(Words::exact(
        "no service can be looked up, and sockets only by path (untested)",
    )),
    processes: ProcessMechanism::Kernel {
        words: Words::superset(
            "only processes in the sandbox can be signalled (untested)",
            &["others can be seen through sysctl"],
        ),
        nested: Words::superset(
            "only processes in the sandbox can be signalled (untested)",
            &["others can be seen through sysctl"],
        ),
    },
    limits: LimitMechanism::Kernel(&[], ""),
};

/// A string literal.
fn string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn files(grant: &FileGrant) -> Result<String, Refusal> {
    let refused = || Refusal::Inexpressible {
        target: Target::Seatbelt,
        aspect: Aspect::Files,
        rule: format!("fs:{}:{}", grant.actions, grant.pattern.value),
        why: "a class of letters beyond ASCII cannot be said; grant the directory above it".to_owned(),
    };
    let source = grant.source.to_string();
    let place = if grant.is_tree() {
        format!("(subpath {})", string(&source))
    } else {
        let base = if source == "/" { "" } else { &*source };
        let expression = pattern::regex(&grant.pattern.value, base, "").ok_or_else(refused)?;
        format!("(regex {})", string(&expression))
    };
    let operations = [
        (FsActions::READ, "file-read*"),
        (FsActions::WRITE, "file-write*"),
        (FsActions::CREATE, "file-write-create"),
        (FsActions::DELETE, "file-write-unlink"),
    ];
    let writes = grant.actions.contains(FsActions::WRITE);
    let said = operations.into_iter().filter(|(action, operation)| {
        let covered = writes && operation.starts_with("file-write-");
        grant.actions.contains(*action) && !covered
    });
    let names: Vec<&str> = said.map(|(_, operation)| operation).collect();
    Ok(format!("(allow {} {place})\n", names.join(" ")))
}

fn programs(plan: &Plan, text: &mut String) {
    if plan.exec().any.is_some() {
        text.push_str("(allow process-exec* file-map-executable)\n");
        return;
    }
    let places = ["/opt/homebrew/bin", "/usr/local/bin", "/usr/bin", "/bin"];
    for program in aspects::programs(plan) {
        let files: Vec<String> = match &program {
            bailiwick_policy::capability::Program::Path(path) => vec![path.to_string()],
            bailiwick_policy::capability::Program::Name(name) => {
                places.iter().map(|directory| format!("{directory}/{name}")).collect()
            }
        };
        let literals: Vec<String> = files.iter().map(|file| format!("(literal {})", string(file))).collect();
        let _ = writeln!(text, "(allow process-exec* file-read* file-map-executable {})", literals.join(" "));
    }
}

fn network(plan: &Plan, text: &mut String, notes: &mut Vec<String>) {
    if *plan.network() == Network::None {
        return;
    }
    let _ = writeln!(text, "(allow network-outbound (remote tcp \"localhost:{GATEWAY_PORT}\"))");
    notes.push(format!(
        "profiles know neither names nor addresses: run the egress gateway on localhost:{GATEWAY_PORT} and set HTTPS_PROXY"
    ));
}
