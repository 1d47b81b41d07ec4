//! Compiles `seccomp.toml` into BPF programs, one per variant and architecture, as Rust tables in `OUT_DIR`.
//!
//! A program finds the number by bisection and never needs more than a dozen comparisons. It reads arguments only
//! where a rule has conditions, so the kernel answers all other allowed calls from its bitmap without running it.
//! Anything in the data file that is not understood fails the build.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use toml::{Table, Value};

/// What a variant may differ in, by bit, lowest first; `src/seccomp.rs` has the same order.
const FLAGS: [&str; 5] = ["any-exec", "nested-sandbox", "desk", "unix-mediated", "offline"];

/// The same of the second filter, which asks.
const ASK_FLAGS: [&str; 6] =
    ["unix-mediated", "guarded", "told", "watched", "sockets-told", "namespaces-told"];

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER: u16 = 0x25;
const JUMP_AT_LEAST: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;
const ERRNO: u32 = 0x0005_0000;
const KILL_PROCESS: u32 = 0x8000_0000;
const EPERM: u32 = ERRNO | 1;
const ENOSYS: u32 = ERRNO | 38;

/// Where `struct seccomp_data` has the number and the architecture.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const X32_BIT: u32 = 0x4000_0000;

type Fault = String;
type Code = Vec<Op>;

/// One BPF instruction.
#[derive(Clone, Copy)]
struct Op {
    code: u16,
    yes: u8,
    no: u8,
    k: u32,
}

struct Arch {
    name: &'static str,
    audit: u32,
    x32: bool,
    number: fn(&str) -> Option<u32>,
    known: fn(u32) -> bool,
}

const ARCHES: [Arch; 2] = [
    Arch { name: "x86_64", audit: 0xc000_003e, x32: true, number: number_x86_64, known: known_x86_64 },
    Arch { name: "aarch64", audit: 0xc000_00b7, x32: false, number: number_aarch64, known: known_aarch64 },
];

struct Rule {
    calls: Vec<String>,
    conditions: Vec<(usize, bool)>,
    leaf: Leaf,
}

/// What happens at one number.
#[derive(Clone, PartialEq)]
enum Leaf {
    Answer(u32),
    /// The first answer if one of the lines holds, else the second.
    Judged(Vec<Vec<Test>>, u32, u32),
}

/// One part of a line.
#[derive(Clone, PartialEq)]
struct Test {
    argument: u32,
    mask: Option<u32>,
    jump: u16,
    values: Vec<u32>,
}

fn main() -> Result<(), Fault> {
    println!("cargo::rerun-if-changed=seccomp.toml");
    println!("cargo::rerun-if-changed=build.rs");
    let text = std::fs::read_to_string("seccomp.toml").map_err(|e| format!("seccomp.toml: {e}"))?;
    let table: Table = text.parse().map_err(|e| format!("seccomp.toml: {e}"))?;
    let (rules, asks) = (rules(&table)?, asks(&table)?);
    let last = table.get("last").and_then(Value::as_str).ok_or("`last` is not there")?;
    let mut rust = String::new();
    for arch in ARCHES {
        let programs = (0..1 << FLAGS.len()).map(|flags| program(&arch, &rules, last, flags));
        emit(&mut rust, arch.name, &programs.collect::<Result<Vec<_>, _>>()?);
        let programs = (0..1 << ASK_FLAGS.len()).map(|flags| ask_program(&arch, &asks, last, flags));
        emit(&mut rust, &format!("{}_ask", arch.name), &programs.collect::<Result<Vec<_>, _>>()?);
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    std::fs::write(out.join("seccomp.rs"), rust).map_err(|e| e.to_string())?;
    getenv_hook(&out.join("getenv_hook.so"))
}

// ── the library that tells of getenv ──

/// Compiles it for programs of the machine that this is built on, whatever C library the crate itself is linked with; an empty
/// file where that machine has another processor or no linker.
#[expect(clippy::disallowed_methods, reason = "what cargo tells build scripts is no fact of the host")]
fn getenv_hook(to: &Path) -> Result<(), Fault> {
    const SOURCE: &str = "src/sys/getenv_hook.rs";
    println!("cargo::rerun-if-changed={SOURCE}");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (host, target) = (variable("HOST"), variable("TARGET"));
    let arch = |triple: &str| triple.split('-').next().unwrap_or_default().to_owned();
    let fits = arch(&host) == arch(&target) && host.contains("linux") && target.contains("linux");
    let known = ["x86_64", "aarch64"].contains(&arch(&host).as_str());
    std::fs::write(to, "").map_err(|e| e.to_string())?;
    if !(fits && known) {
        return Ok(());
    }
    let mut command = std::process::Command::new(variable("RUSTC"));
    command.args(["--edition=2024", "--crate-type=cdylib", "--crate-name=getenv_hook", "--target", &host]);
    for option in ["panic=abort", "opt-level=s", "codegen-units=1", "strip=symbols", "link-arg=-nostdlib"] {
        command.args(["-C", option]);
    }
    let done = command.arg("-o").arg(to).arg(SOURCE).output().map_err(|e| e.to_string())?;
    if !done.status.success() {
        std::fs::write(to, "").map_err(|e| e.to_string())?;
        let why = String::from_utf8_lossy(&done.stderr).replace('\n', " ");
        println!("cargo::warning=`learn` will not see which variables native programs read: {why}");
    }
    Ok(())
}

// ── the data file ──

fn rules(table: &Table) -> Result<Vec<Rule>, Fault> {
    if let Some(odd) = table.keys().find(|key| !["last", "rule", "ask"].contains(&key.as_str())) {
        return Err(format!("`{odd}` is not known"));
    }
    let rules = table.get("rule").and_then(Value::as_array).ok_or("no rules")?;
    known_calls(rules.iter().map(rule).collect::<Result<_, _>>()?)
}

fn asks(table: &Table) -> Result<Vec<Rule>, Fault> {
    let asks = table.get("ask").and_then(Value::as_array).ok_or("no asks")?;
    known_calls(asks.iter().map(ask).collect::<Result<_, _>>()?)
}

fn known_calls(rules: Vec<Rule>) -> Result<Vec<Rule>, Fault> {
    let calls = rules.iter().flat_map(|rule| &rule.calls);
    match calls.into_iter().find(|call| ARCHES.iter().all(|arch| (arch.number)(call).is_none())) {
        Some(unknown) => Err(format!("`{unknown}` is no system call")),
        None => Ok(rules),
    }
}

fn ask(value: &Value) -> Result<Rule, Fault> {
    let table = value.as_table().ok_or("an ask is a table")?;
    let keys = ["calls", "if", "ask-when", "pass-when", "why"];
    if let Some(odd) = table.keys().find(|key| !keys.contains(&key.as_str())) {
        return Err(format!("`{odd}` in an ask is not known"));
    }
    let calls = texts(table, "calls")?;
    let conditions = conditions(table, &ASK_FLAGS)?;
    if conditions.is_empty() || calls.is_empty() || !table.contains_key("why") {
        return Err(format!("an ask without calls, variant or reason: {calls:?}"));
    }
    let (when, pass) = (lines(table, "ask-when")?, lines(table, "pass-when")?);
    let leaf = match (when.is_empty(), pass.is_empty()) {
        (true, true) => Leaf::Answer(NOTIFY),
        (false, true) => Leaf::Judged(when, NOTIFY, ALLOW),
        (true, false) => Leaf::Judged(pass, ALLOW, NOTIFY),
        (false, false) => return Err(format!("{calls:?}: either ask-when or pass-when")),
    };
    Ok(Rule { calls, conditions, leaf })
}

fn rule(value: &Value) -> Result<Rule, Fault> {
    let table = value.as_table().ok_or("a rule is a table")?;
    let keys = ["calls", "if", "answer", "refuse-when", "pass-when", "why"];
    if let Some(odd) = table.keys().find(|key| !keys.contains(&key.as_str())) {
        return Err(format!("`{odd}` in a rule is not known"));
    }
    let calls = texts(table, "calls")?;
    if calls.is_empty() || !table.contains_key("why") {
        return Err(format!("a rule without calls or reason: {calls:?}"));
    }
    let answer = answer(table.get("answer").and_then(Value::as_str).unwrap_or_default())?;
    let (refuse, pass) = (lines(table, "refuse-when")?, lines(table, "pass-when")?);
    let leaf = match (refuse.is_empty(), pass.is_empty()) {
        (true, true) => Leaf::Answer(answer),
        (false, true) => Leaf::Judged(refuse, answer, ALLOW),
        (true, false) => Leaf::Judged(pass, ALLOW, answer),
        (false, false) => return Err(format!("{calls:?}: either refuse-when or pass-when")),
    };
    Ok(Rule { calls, conditions: conditions(table, &FLAGS)?, leaf })
}

fn conditions(table: &Table, flags: &[&str]) -> Result<Vec<(usize, bool)>, Fault> {
    texts(table, "if")?.iter().map(|text| condition(text, flags)).collect()
}

fn texts(table: &Table, key: &str) -> Result<Vec<String>, Fault> {
    let Some(value) = table.get(key) else { return Ok(Vec::new()) };
    let values = value.as_array().ok_or_else(|| format!("`{key}` is a list"))?;
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned).ok_or_else(|| format!("`{key}`: texts"));
    values.iter().map(text).collect()
}

fn answer(text: &str) -> Result<u32, Fault> {
    match text {
        "EPERM" => Ok(EPERM),
        "ENOSYS" => Ok(ENOSYS),
        _ => Err(format!("answer `{text}` is not known")),
    }
}

fn condition(text: &str, flags: &[&str]) -> Result<(usize, bool), Fault> {
    let (name, wanted) = text.strip_prefix('!').map_or((text, true), |name| (name, false));
    let flag = flags.iter().position(|flag| *flag == name);
    flag.map(|flag| (flag, wanted)).ok_or_else(|| format!("variant `{name}` is not known"))
}

fn lines(table: &Table, key: &str) -> Result<Vec<Vec<Test>>, Fault> {
    let line = |line: &String| line.split(", ").map(test).collect::<Result<Vec<_>, _>>();
    texts(table, key)?.iter().map(line).collect()
}

/// `arg1 & 0xf = 1|5`, `arg0 = 0`, `arg2 has 0xc00`.
fn test(text: &str) -> Result<Test, Fault> {
    let fault = || format!("`{text}` is not understood");
    let words: Vec<&str> = text.split(' ').collect();
    let (argument, mask, jump, values) = match *words {
        [argument, "=", values] => (argument, None, JUMP_EQUAL, values),
        [argument, "&", mask, "=", values] => (argument, Some(whole(mask)?), JUMP_EQUAL, values),
        [argument, "has", bits] => (argument, None, JUMP_ANY_BIT, bits),
        _ => return Err(fault()),
    };
    let argument = argument.strip_prefix("arg").ok_or_else(fault)?;
    let argument: u32 = argument.parse().map_err(|_| fault())?;
    if argument > 5 {
        return Err(fault());
    }
    let values = values.split('|').map(whole).collect::<Result<Vec<_>, _>>()?;
    Ok(Test { argument, mask, jump, values })
}

fn whole(text: &str) -> Result<u32, Fault> {
    let hex = text.strip_prefix("0x").map(|digits| u32::from_str_radix(digits, 16));
    hex.unwrap_or_else(|| text.parse()).map_err(|e| format!("`{text}`: {e}"))
}

// ── numbers ──

fn number_x86_64(name: &str) -> Option<u32> {
    syscalls::x86_64::Sysno::from_str(name).ok().and_then(|call| u32::try_from(call.id()).ok())
}

fn number_aarch64(name: &str) -> Option<u32> {
    syscalls::aarch64::Sysno::from_str(name).ok().and_then(|call| u32::try_from(call.id()).ok())
}

fn known_x86_64(number: u32) -> bool {
    usize::try_from(number).is_ok_and(|number| syscalls::x86_64::Sysno::new(number).is_some())
}

fn known_aarch64(number: u32) -> bool {
    usize::try_from(number).is_ok_and(|number| syscalls::aarch64::Sysno::new(number).is_some())
}

// ── programs ──

fn program(arch: &Arch, rules: &[Rule], last: &str, flags: usize) -> Result<Code, Fault> {
    let last = (arch.number)(last).ok_or_else(|| format!("`{last}` is no system call"))?;
    let leaves = leaves(arch, rules, flags)?;
    let mut code = vec![op(LOAD, ARCH), branch(JUMP_EQUAL, 1, 0, arch.audit), op(RETURN, KILL_PROCESS)];
    code.push(op(LOAD, NUMBER));
    if arch.x32 {
        code.extend([branch(JUMP_ANY_BIT, 0, 1, X32_BIT), op(RETURN, EPERM)]);
    }
    code.extend([branch(JUMP_GREATER, 0, 1, last), op(RETURN, ENOSYS)]);
    code.extend(bisect(&segments(&leaves, last, arch.known))?);
    if code.len() > 4096 { Err("a program is too long for the kernel".to_owned()) } else { Ok(code) }
}

/// The second filter: asks where a rule says so and passes everything else, the first one decides the rest.
fn ask_program(arch: &Arch, asks: &[Rule], last: &str, flags: usize) -> Result<Code, Fault> {
    let last = (arch.number)(last).ok_or_else(|| format!("`{last}` is no system call"))?;
    let leaves = leaves(arch, asks, flags)?;
    let mut code = vec![op(LOAD, NUMBER), branch(JUMP_GREATER, 0, 1, last), op(RETURN, ALLOW)];
    code.extend(bisect(&segments(&leaves, last, |_| true))?);
    Ok(code)
}

/// The rules of one variant by number.
fn leaves(arch: &Arch, rules: &[Rule], flags: usize) -> Result<BTreeMap<u32, Leaf>, Fault> {
    let mut leaves = BTreeMap::new();
    let holds =
        |rule: &&Rule| rule.conditions.iter().all(|(flag, wanted)| (flags >> flag & 1 == 1) == *wanted);
    for rule in rules.iter().filter(holds) {
        for call in &rule.calls {
            let Some(number) = (arch.number)(call) else { continue };
            if leaves.insert(number, rule.leaf.clone()).is_some() {
                return Err(format!("`{call}` has two rules in one variant"));
            }
        }
    }
    Ok(leaves)
}

/// Runs of numbers that are treated alike: where each starts, and how.
fn segments(leaves: &BTreeMap<u32, Leaf>, last: u32, known: fn(u32) -> bool) -> Vec<(u32, Leaf)> {
    let plain = |number| Leaf::Answer(if known(number) { ALLOW } else { ENOSYS });
    let mut segments: Vec<(u32, Leaf)> = Vec::new();
    for number in 0..=last {
        let leaf = leaves.get(&number).cloned().unwrap_or_else(|| plain(number));
        if segments.last().is_none_or(|(_, before)| *before != leaf) {
            segments.push((number, leaf));
        }
    }
    segments
}

fn bisect(segments: &[(u32, Leaf)]) -> Result<Code, Fault> {
    let (left, right) = segments.split_at(segments.len() / 2);
    let (start, leaf) = right.first().ok_or("no number is known")?;
    if left.is_empty() {
        return judge(leaf);
    }
    let (left, right) = (bisect(left)?, bisect(right)?);
    let mut code = match u8::try_from(left.len()) {
        Ok(over) => vec![branch(JUMP_AT_LEAST, over, 0, *start)],
        // A conditional jump reaches 255 instructions, an unconditional one all.
        Err(_) => {
            let over = u32::try_from(left.len()).map_err(|e| e.to_string())?;
            vec![branch(JUMP_AT_LEAST, 0, 1, *start), op(JUMP, over)]
        }
    };
    code.extend(left);
    code.extend(right);
    Ok(code)
}

fn judge(leaf: &Leaf) -> Result<Code, Fault> {
    match leaf {
        Leaf::Answer(answer) => Ok(vec![op(RETURN, *answer)]),
        Leaf::Judged(lines, then, otherwise) => {
            let mut code = Vec::new();
            for line in lines {
                code.extend(judge_line(line, *then)?);
            }
            code.push(op(RETURN, *otherwise));
            Ok(code)
        }
    }
}

/// Answers if all tests hold, else goes on behind its own end. Built from its end, where the distances are known.
fn judge_line(line: &[Test], then: u32) -> Result<Code, Fault> {
    let mut code = vec![op(RETURN, then)];
    for test in line.iter().rev() {
        let mut part = vec![op(LOAD, 16 + 8 * test.argument)];
        part.extend(test.mask.map(|mask| op(AND, mask)));
        let miss = u8::try_from(code.len()).map_err(|e| e.to_string())?;
        for (at, value) in test.values.iter().enumerate() {
            let behind = u8::try_from(test.values.len() - at - 1).map_err(|e| e.to_string())?;
            part.push(branch(test.jump, behind, if behind == 0 { miss } else { 0 }, *value));
        }
        part.extend(code);
        code = part;
    }
    Ok(code)
}

const fn op(code: u16, k: u32) -> Op {
    branch(code, 0, 0, k)
}

const fn branch(code: u16, yes: u8, no: u8, k: u32) -> Op {
    Op { code, yes, no, k }
}

// ── Rust ──

fn emit(rust: &mut String, name: &str, programs: &[Code]) {
    let (arch, name) = (name.trim_end_matches("_ask"), name.to_uppercase());
    let tested = if name.ends_with("_ASK") { "" } else { "test, " };
    let _ = writeln!(rust, "#[cfg(any({tested}target_arch = \"{arch}\"))]");
    let _ = writeln!(rust, "pub(super) static {name}: [&[libc::sock_filter]; {}] = [", programs.len());
    for program in programs {
        let _ = write!(rust, "&[");
        for Op { code, yes, no, k } in program {
            let _ = write!(rust, "libc::sock_filter{{code:{code},jt:{yes},jf:{no},k:{k}}},");
        }
        let _ = writeln!(rust, "],");
    }
    let _ = writeln!(rust, "];");
}
