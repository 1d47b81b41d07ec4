//! Variables that load code, switch checks off, hide traces, or hold secrets.

use super::effects::Seen;
use crate::reader::Simple;

/// Variables that load what they name.
const LOADS: &[&str] = &[
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "BASH_ENV",
    "ENV",
    "PYTHONSTARTUP",
    "PERL5OPT",
    "PERL5DB",
    "PERL5LIB",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "npm_config_script_shell",
    "NPM_CONFIG_SCRIPT_SHELL",
    "GCONV_PATH",
    "PYTHONHOME",
    "GIT_TEMPLATE_DIR",
    "LUA_INIT",
    "OPENSSL_CONF",
    "PYTHONBREAKPOINT",
    "R_PROFILE",
    "R_PROFILE_USER",
    "RUBYLIB",
    "ZDOTDIR",
];
/// Variables that load what they name where that lies in a scratch directory or is named by a path.
const PATHS: &[&str] = &[
    "PATH",
    "PYTHONPATH",
    "NODE_PATH",
    "GOFLAGS",
    "MANPATH",
    "CLASSPATH",
    "RUSTC_WRAPPER",
    "NODE_OPTIONS",
    "GIT_EXEC_PATH",
    "GIT_ASKPASS",
    "GIT_CONFIG_GLOBAL",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "EDITOR",
    "PAGER",
];
/// Variables that switch the check of certificates off, or send elsewhere for code.
const WEAKENS: &[&str] = &[
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "GIT_SSL_NO_VERIFY",
    "PYTHONHTTPSVERIFY",
    "GOINSECURE",
    "GONOSUMDB",
    "GONOSUMCHECK",
    "GOPROXY",
    "SSLKEYLOGFILE",
    "DOCKER_CONTENT_TRUST",
    "PIP_EXTRA_INDEX_URL",
    "PIP_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "npm_config_registry",
    "NPM_CONFIG_REGISTRY",
];
const HISTORY: &[&str] = &["HISTFILE", "HISTSIZE", "HISTFILESIZE", "HISTCONTROL", "HISTIGNORE"];
/// Words in the names of variables that hold secrets.
const SECRET: &[&str] = &[
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "API_KEY",
    "APIKEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "CREDENTIAL",
    "_PASS",
];

/// Notes what a command's variables do.
pub(super) fn note(seen: &mut Seen<'_>, simple: &Simple) {
    for (name, value) in &simple.set {
        set(seen, name, value);
    }
    let Some((program, arguments)) = simple.words.split_first() else { return };
    match program.as_str() {
        "export" | "declare" | "typeset" | "env" | "set" => {
            for (name, value) in arguments.iter().filter_map(|word| word.split_once('=')) {
                set(seen, name, value);
            }
        }
        "echo" | "printf" => {
            for word in arguments.iter().filter(|word| word.contains('$') && is_secret_name(word)) {
                seen.note("reads(secret)", word);
            }
        }
        "printenv" => {
            for word in arguments.iter().filter(|word| is_secret_name(word)) {
                seen.note("reads(secret)", word);
            }
        }
        "grep" | "egrep" | "rg" | "awk" | "sed" => {
            let dumped =
                simple.fed_by.clone().filter_map(|number| seen.reading.commands.get(number)).any(dumps);
            let searched = arguments.iter().any(|word| {
                let upper = word.to_uppercase();
                ["TOKEN", "SECRET", "PASS", "KEY", "CRED", "AUTH"].iter().any(|part| upper.contains(part))
            });
            if dumped && searched {
                seen.note("reads(secret)", &simple.plain);
            }
        }
        _ => {}
    }
}

/// Whether a command prints all variables.
pub(super) fn dumps(simple: &Simple) -> bool {
    match simple.words.first().map(String::as_str) {
        Some("env" | "printenv" | "set" | "export") => simple.words.len() == 1,
        Some("declare" | "typeset" | "compgen") => true,
        Some("echo") => simple.plain.contains("${!"),
        Some(_) | None => false,
    }
}

fn set(seen: &mut Seen<'_>, name: &str, value: &str) {
    let what = format!("{name}={value}");
    if LOADS.contains(&name) && !value.is_empty() {
        seen.note("runs(injected)", &what);
    }
    let scratch = |part: &str| ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|place| part.starts_with(place));
    // `CARGO_BUILD_RUSTC`, `CARGO_TARGET_<TRIPLE>_RUNNER` and their like.
    let of_cargo = name.starts_with("CARGO_") && (name.ends_with("_RUNNER") || name.contains("RUSTC"));
    if (of_cargo || PATHS.contains(&name)) && value.split([':', ' ', '=']).any(scratch) {
        seen.note("runs(injected)", &what);
    }
    if WEAKENS.contains(&name) {
        seen.note("weakens(protection)", &what);
    }
    if name == "SSH_AUTH_SOCK" && !value.is_empty() {
        seen.note("reads(secret)", &what);
    }
    let off = matches!(value, "0" | "/dev/null" | "" | "*");
    if HISTORY.contains(&name) && off {
        seen.note("hides(traces)", &what);
    }
}

pub(super) fn is_secret_name(word: &str) -> bool {
    SECRET.iter().any(|part| word.contains(part))
}
