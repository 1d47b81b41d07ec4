//! The system calls that a container is refused, from a data file, as OCI runtimes take them.
//!
//! It is the same for every plan but for two questions, so the four texts are written once.

use std::sync::LazyLock;

use bailiwick_policy::plan::Plan;
use serde::Serialize;

/// The `seccomp` section. No architecture is named: runtimes then refuse all but the host's own.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Seccomp {
    default_action: &'static str,
    syscalls: Vec<&'static Syscall>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Syscall {
    #[serde(skip)]
    when: When,
    names: [&'static str; 1],
    action: &'static str,
    errno_ret: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    args: Vec<Argument>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Argument {
    index: u32,
    value: u64,
    value_two: u64,
    op: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    UnlessNested,
    UnlessIpc,
}

static REFUSED: LazyLock<Vec<Syscall>> = LazyLock::new(|| lines().filter_map(syscall).collect());

/// The sections, by whether there is a nested sandbox and whether there are sockets.
static SECTIONS: LazyLock<[String; 4]> = LazyLock::new(|| {
    [(false, false), (false, true), (true, false), (true, true)].map(|(nested, ipc)| written(nested, ipc))
});

/// What is refused for a plan, indented for its place in `config.json`.
pub(super) fn section(plan: &Plan) -> &'static str {
    let [neither, ipc, nested, both] = &*SECTIONS;
    match (plan.nested_sandbox(), !plan.ipc().endpoints.is_empty()) {
        (false, false) => neither,
        (false, true) => ipc,
        (true, false) => nested,
        (true, true) => both,
    }
}

fn written(nested: bool, ipc: bool) -> String {
    let counts = |call: &&Syscall| match call.when {
        When::Always => true,
        When::UnlessNested => !nested,
        When::UnlessIpc => !ipc,
    };
    let section =
        Seccomp { default_action: "SCMP_ACT_ALLOW", syscalls: REFUSED.iter().filter(counts).collect() };
    serde_json::to_string_pretty(&section).unwrap_or_default().replace('\n', "\n    ")
}

fn lines() -> impl Iterator<Item = &'static str> {
    include_str!("seccomp.txt")
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn syscall(line: &'static str) -> Option<Syscall> {
    let mut words = line.split(' ');
    let when = match words.next()? {
        "always" => When::Always,
        "unless-nested" => When::UnlessNested,
        "unless-ipc" => When::UnlessIpc,
        _ => return None,
    };
    let errno_ret = match words.next()? {
        "EPERM" => 1,
        "ENOSYS" => 38,
        _ => return None,
    };
    let names = [words.next()?];
    let args: Option<Vec<Argument>> = words.map(argument).collect();
    Some(Syscall { when, names, action: "SCMP_ACT_ERRNO", errno_ret, args: args? })
}

/// Reads `ARG=VALUE`, `ARG&MASK=VALUE` or `ARG!=VALUE`.
fn argument(text: &str) -> Option<Argument> {
    if let Some((index, value)) = text.split_once("!=") {
        let (index, value) = (index.parse().ok()?, number(value)?);
        return Some(Argument { index, value, value_two: 0, op: "SCMP_CMP_NE" });
    }
    let (left, datum) = text.split_once('=')?;
    let (index, mask) = left.split_once('&').unwrap_or((left, "0xffffffff"));
    let (index, value) = (index.parse().ok()?, number(mask)?);
    Some(Argument { index, value, value_two: number(datum)?, op: "SCMP_CMP_MASKED_EQ" })
}

fn number(text: &str) -> Option<u64> {
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_data_has_a_meaning() {
        assert_eq!(REFUSED.len(), lines().count());
        let refused = |name: &str| REFUSED.iter().any(|call| call.names == [name]);
        for name in ["io_uring_setup", "mount", "ptrace", "bpf", "setns", "clone3", "keyctl"] {
            assert!(refused(name), "{name}");
        }
    }

    #[test]
    fn a_section_refuses_less_only_where_it_is_asked_to() {
        let expected = [(true, true), (true, false), (false, true), (false, false)];
        for (section, (unshare, socketpair)) in SECTIONS.iter().zip(expected) {
            let read: serde_json::Value = serde_json::from_str(section).unwrap();
            let calls = read.get("syscalls").and_then(serde_json::Value::as_array).unwrap();
            let refuses =
                |name: &str| calls.iter().any(|call| call.get("names") == Some(&serde_json::json!([name])));
            assert_eq!((refuses("unshare"), refuses("socketpair")), (unshare, socketpair));
            assert!(refuses("mount") && refuses("clone3"));
        }
    }

    #[test]
    fn integers_are_compared_on_their_low_half() {
        for argument in REFUSED.iter().flat_map(|call| &call.args).filter(|one| one.op != "SCMP_CMP_NE") {
            assert!(argument.value <= 0xffff_ffff && argument.value_two <= argument.value, "{argument:?}");
        }
    }
}
