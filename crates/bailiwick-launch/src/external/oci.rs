//! An OCI runtime: the artifact's bundle with the command and its variables filled in.

use std::ffi::OsStr;
use std::path::Path;
use std::process;

use bailiwick_confine::host::system_program as find;
use bailiwick_confine::{HostCommand, Refusal};
use bailiwick_policy::plan::Plan;
use serde_json::{Value, json};

use super::{Backend, Directory, Program, plain_command, unusable, values};

pub(super) fn command_line(
    backend: Backend,
    plan: &Plan,
    command: &Program,
    directory: Directory,
) -> Result<HostCommand, Refusal> {
    let name = backend.as_str();
    let program = find(name).ok_or_else(|| unusable(name, "it is gone", "install it"))?;
    let root = rustix::process::geteuid().is_root();
    let source = directory.path().join(if root { "config.json" } else { "config.rootless.json" });
    let text = std::fs::read_to_string(&source).ok();
    let config = text.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let odd = || unusable(name, "its bundle is not understood", "compile it again");
    let config = filled(config.ok_or_else(odd)?, plan, command, root).ok_or_else(odd)?;
    directory.put("config.json", &config.to_string())?;
    let state = directory.path().join("state");
    let mut plain = plain_command(&program, command);
    plain.arg("--root").arg(&state).args(["run", "--bundle"]).arg(directory.path()).arg(directory.name());
    plain.current_dir(directory.path());
    let mut teardown = process::Command::new(&program);
    teardown.env_clear().arg("--root").arg(&state).args(["delete", "--force"]).arg(directory.name());
    Ok(HostCommand {
        command: plain,
        inherited: Vec::new(),
        kept: Some(Box::new(directory)),
        teardown: Some(teardown),
    })
}

/// The configuration with what only the caller knows.
fn filled(mut config: Value, plan: &Plan, command: &Program, root: bool) -> Option<Value> {
    let words = std::iter::once(&command.program).chain(&command.args).map(|word| word.to_str());
    let words: Vec<&str> = words.collect::<Option<_>>()?;
    let seen = command.cwd.as_deref().filter(|cwd| is_shown(&config, cwd));
    let process = config.get_mut("process")?;
    *process.get_mut("args")? = json!(words);
    *process.get_mut("terminal")? = json!(false);
    if let Some(cwd) = seen {
        *process.get_mut("cwd")? = json!(cwd.to_str()?);
    }
    let variables = process.get_mut("env")?.as_array_mut()?;
    for (name, value) in values(plan, command) {
        let (name, value) = (name.to_str()?, value.to_str()?);
        variables.retain(|own| !own.as_str().is_some_and(|own| own.starts_with(&format!("{name}="))));
        variables.push(json!(format!("{name}={value}")));
    }
    if !root {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        *config.pointer_mut("/linux/uidMappings/0/hostID")? = json!(user);
        *config.pointer_mut("/linux/gidMappings/0/hostID")? = json!(group);
    }
    Some(config)
}

/// Whether a directory lies in something that the container shows.
fn is_shown(config: &Value, directory: &Path) -> bool {
    let mounts = config.get("mounts").and_then(Value::as_array);
    let shown = |mount: &Value| {
        let kind = mount.get("type").and_then(Value::as_str).map(OsStr::new);
        let place = mount.get("destination").and_then(Value::as_str);
        kind == Some(OsStr::new("bind")) && place.is_some_and(|place| directory.starts_with(place))
    };
    mounts.is_some_and(|mounts| mounts.iter().any(shown))
}
