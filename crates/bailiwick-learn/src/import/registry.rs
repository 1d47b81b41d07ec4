//! What the MCP registry says of a server.

use serde_json::Value;

use super::sheet::Sheet;
use super::{ImportError, ImportOptions, at};

/// `server.json`: its package, the variables that it reads, and arguments that are paths.
pub(super) fn server_json(
    file: &Value,
    options: &ImportOptions,
    sheet: &mut Sheet<'_>,
) -> Result<(), ImportError> {
    let text = |value: &Value, key: &str| at(value, &[key]).as_str().map(str::to_owned);
    // The registry's own answers put it one level deeper.
    let file = if file.get("server").is_some() { at(file, &["server"]) } else { file };
    (sheet.name, sheet.version) = (text(file, "name"), text(file, "version"));
    let packages: Vec<&Value> = at(file, &["packages"]).as_array().into_iter().flatten().collect();
    let is_remote = at(file, &["remotes"]).as_array().is_some_and(|all| !all.is_empty());
    let known: Vec<String> = packages.iter().filter_map(|package| text(package, "identifier")).collect();
    let package = match (&options.server, packages.as_slice()) {
        (Some(wanted), all) => {
            let found = all.iter().find(|package| text(package, "identifier").as_ref() == Some(wanted));
            Some(found.ok_or_else(|| ImportError::NoSuchServer { wanted: wanted.clone(), known })?)
        }
        (None, [one]) => Some(one),
        (None, []) => None,
        (None, _) => return Err(ImportError::Several(known)),
    };
    let Some(package) = package else {
        if !is_remote {
            let why = "it has neither `packages` nor `remotes`".to_owned();
            return Err(ImportError::OtherForm { what: "`server.json`", why });
        }
        sheet.remark("It runs elsewhere: `bailiwick wrap --url` holds its calls, and lines about files are not for it.".to_owned());
        return Ok(());
    };
    identity(package, sheet);
    for (index, variable) in
        at(package, &["environmentVariables"]).as_array().into_iter().flatten().enumerate()
    {
        let Some(name) = text(variable, "name") else { continue };
        let (line, place) = (format!("env:read:{name}"), format!("environmentVariables[{index}]"));
        if at(variable, &["isSecret"]).as_bool() == Some(true) {
            let why = "it is a secret: a brokered one stays outside of the sandbox";
            sheet.ask(Some(&line), why, &place);
        } else {
            sheet.grant(&line, &place);
        }
    }
    for key in ["packageArguments", "runtimeArguments"] {
        for (index, argument) in at(package, &[key]).as_array().into_iter().flatten().enumerate() {
            let is_path = text(argument, "format").as_deref() == Some("filepath");
            if is_path {
                let why = "an argument is a path: a variable bound to it grants it";
                sheet.ask(Some("fs:read:$WORKSPACE"), why, &format!("{key}[{index}]"));
            }
        }
    }
    sheet.ask(
        None,
        "the registry does not say which files, hosts and programs it needs: learn it",
        "packages",
    );
    Ok(())
}

/// Which package it is, where this is a registry that is known.
fn identity(package: &Value, sheet: &mut Sheet<'_>) {
    let registry = ["registryType", "registry_type", "registry_name"]
        .into_iter()
        .find_map(|key| at(package, &[key]).as_str());
    let name = ["identifier", "name"].into_iter().find_map(|key| at(package, &[key]).as_str());
    match (registry, name) {
        (Some(kind @ ("npm" | "pypi")), Some(name)) => sheet.identity = Some(format!("{kind}:{name}")),
        (Some(other), Some(name)) => {
            sheet.remark(format!("Its package is `{name}` of `{other}`, which is started by other means."))
        }
        _ => {}
    }
}
