//! Runs a command in a sandbox: `run [--cap CAPABILITY]… -- COMMAND ARGUMENT…`.
#![expect(clippy::disallowed_methods, clippy::print_stderr, clippy::unwrap_used, reason = "an example")]

use bailiwick_confine::{Command, Exit, Options, Prepared};
use bailiwick_policy::capability::CapabilitySet;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::Plan;

/// What the `bailiwick` command takes besides capabilities and the escape tests give.
const OTHERS: [&str; 5] = ["run", "--no-journal", "--cap", "--backend", "native"];

fn main() {
    let mut args = std::env::args_os().skip(1);
    let words = args.by_ref().take_while(|arg| arg != "--").map(|arg| arg.into_string().unwrap());
    let capabilities: Vec<String> = words.filter(|word| !OTHERS.contains(&word.as_str())).collect();
    let set = CapabilitySet::new(capabilities.iter().map(String::as_str)).unwrap();
    let plan = Plan::for_authority("example", set.authority(), &facts()).unwrap();
    let mut command = Command::new(args.next().unwrap());
    command.args = args.collect();
    command.cwd = std::fs::canonicalize(".").ok();
    command.env = std::env::vars_os().collect();
    let options = Options { home: std::env::var_os("HOME").map(Into::into), ..Options::default() };
    let prepared = Prepared::new(&plan, command, options).unwrap_or_else(|refusal| {
        eprintln!("{refusal}");
        std::process::exit(i32::from(refusal.exit_code()));
    });
    let mut confined = prepared.spawn().unwrap_or_else(|fault| {
        eprintln!("{fault}");
        std::process::exit(125);
    });
    match confined.wait().unwrap() {
        Exit::Code(code) => std::process::exit(code),
        Exit::Signal(signal) => std::process::exit(128 + signal),
    }
}

/// What is Bailiwick's own on this host.
fn facts() -> HostFacts {
    let state = std::env::var("HOME").ok().map(|home| format!("{home}/.local/state/bailiwick"));
    let own = state.and_then(|state| AbsPath::new(&state).ok());
    own.into_iter().fold(HostFacts::unknown(), HostFacts::with_protected)
}
