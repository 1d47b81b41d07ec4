//! What a client's settings and a bundle say of a server.

use serde_json::Value;

use super::sheet::Sheet;
use super::{ImportError, ImportOptions, at, entries, texts};

/// `mcp.json` of VS Code: the environment that a server is given, and the sandbox around it.
pub(super) fn vscode(
    file: &Value,
    options: &ImportOptions,
    sheet: &mut Sheet<'_>,
) -> Result<(), ImportError> {
    let all = ["servers", "mcpServers"].into_iter().map(|key| at(file, &[key])).find(|all| all.is_object());
    let Some(all) = all else {
        let why = "it has neither `servers` nor `mcpServers`".to_owned();
        return Err(ImportError::OtherForm { what: "`mcp.json`", why });
    };
    let (name, server) = chosen(all, options)?;
    sheet.name = Some(name.to_owned());
    environment(at(server, &["env"]), "env", sheet);
    if server.get("envFile").is_some() {
        sheet.ask(None, "a file says which variables it is given: name them", "envFile");
    }
    if server.get("url").is_some() {
        sheet.remark("It runs elsewhere: `bailiwick wrap --url` holds its calls, and lines about files are not for it.".to_owned());
    }
    arguments(at(server, &["args"]), "args", sheet);
    // The sandbox of a server, and the one that all share.
    for (place, sandbox) in
        [("sandbox", at(server, &["sandbox"])), ("the file's sandbox", at(file, &["sandbox"]))]
    {
        let files = at(sandbox, &["filesystem"]);
        for (key, actions) in [("allowRead", "read"), ("allowWrite", "read,write")] {
            for (_, path) in texts(at(files, &[key])) {
                granted_path(path, actions, &format!("{place}: filesystem.{key}"), sheet);
            }
        }
        for key in ["denyRead", "denyWrite"] {
            for (_, path) in texts(at(files, &[key])) {
                sheet.remark(format!(
                    "{place} refuses `{path}` ({key}): no line grants it unless one above covers it."
                ));
            }
        }
        for (_, host) in texts(at(sandbox, &["network", "allowedDomains"])) {
            let place = format!("{place}: network.allowedDomains");
            let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            if has_port {
                sheet.grant(&format!("net:connect:{host}"), &place);
            } else {
                sheet.grant(&format!("net:connect:{host}:443"), &place);
            }
        }
        for (_, host) in texts(at(sandbox, &["network", "deniedDomains"])) {
            sheet.remark(format!(
                "{place} refuses the host `{host}`: no line grants it unless one above covers it."
            ));
        }
    }
    let says_files = ["sandbox"].iter().any(|key| server.get(key).or(file.get(key)).is_some());
    if !says_files {
        sheet.ask(
            None,
            "it has no sandbox, so nothing says which files and hosts it needs: learn it",
            "sandbox",
        );
    }
    Ok(())
}

/// The server that is meant.
fn chosen<'v>(all: &'v Value, options: &ImportOptions) -> Result<(&'v str, &'v Value), ImportError> {
    let known: Vec<String> = entries(all).map(|(name, _)| name.clone()).collect();
    let mut servers = entries(all);
    match (&options.server, known.len()) {
        (Some(wanted), _) => servers
            .find(|(name, _)| *name == wanted)
            .map(|(name, server)| (name.as_str(), server))
            .ok_or_else(|| ImportError::NoSuchServer { wanted: wanted.clone(), known }),
        (None, 1) => {
            servers.next().map(|(name, server)| (name.as_str(), server)).ok_or(ImportError::Several(known))
        }
        (None, 0) => Err(ImportError::OtherForm { what: "`mcp.json`", why: "it has no server".to_owned() }),
        (None, _) => Err(ImportError::Several(known)),
    }
}

/// `manifest.json` of a bundle: its environment, its tools, and what its user is asked for.
pub(super) fn mcpb(file: &Value, sheet: &mut Sheet<'_>) -> Result<(), ImportError> {
    if !at(file, &["server"]).is_object() {
        let why = "it has no `server`; `unzip -p BUNDLE manifest.json` prints it".to_owned();
        return Err(ImportError::OtherForm { what: "`manifest.json` of a bundle", why });
    }
    let text = |key: &str| at(file, &[key]).as_str().map(str::to_owned);
    (sheet.name, sheet.version) = (text("name"), text("version"));
    environment(at(file, &["server", "mcp_config", "env"]), "server.mcp_config.env", sheet);
    arguments(at(file, &["server", "mcp_config", "args"]), "server.mcp_config.args", sheet);
    for (key, setting) in entries(at(file, &["user_config"])) {
        let place = format!("user_config.{key}");
        if let Some("directory" | "file") = at(setting, &["type"]).as_str() {
            let why = "its user names a path there: a variable bound to that argument grants it";
            sheet.ask(Some("fs:read:$WORKSPACE"), why, &place);
        }
    }
    for tool in at(file, &["tools"]).as_array().into_iter().flatten() {
        if let Some(name) = at(tool, &["name"]).as_str() {
            sheet.grant_tool(name, &[]);
        }
    }
    if at(file, &["tools_generated"]).as_bool() == Some(true) {
        sheet.remark("It has tools that are not listed there: learn it to see them.".to_owned());
    }
    sheet.ask(None, "a bundle does not say which files, hosts and programs it needs: learn it", "server");
    Ok(())
}

/// Each variable that it is given.
pub(super) fn environment(all: &Value, place: &str, sheet: &mut Sheet<'_>) {
    for (name, _) in entries(all) {
        sheet.grant(&format!("env:read:{name}"), &format!("{place}.{name}"));
    }
}

/// Arguments that are paths: what may be done there is not said.
fn arguments(all: &Value, place: &str, sheet: &mut Sheet<'_>) {
    for (index, word) in texts(all) {
        let is_path = word.starts_with(['/', '~', '.'])
            || word.starts_with("${workspaceFolder")
            || word.starts_with("${userHome");
        if let Some(path) = path_of(word).filter(|_| is_path) {
            let line = format!("fs:read:{path}");
            sheet.ask(
                Some(&line),
                "an argument is a path; whether it is read or written is not said",
                &format!("{place}[{index}]"),
            );
        }
    }
}

fn granted_path(path: &str, actions: &str, place: &str, sheet: &mut Sheet<'_>) {
    match path_of(path) {
        Some(path) => sheet.grant(&format!("fs:{actions}:{path}"), place),
        None => sheet.ask(None, &format!("what `{path}` stands for is not known here"), place),
    }
}

/// A path as a manifest says it; nothing where it has a variable that only the client knows.
pub(super) fn path_of(text: &str) -> Option<String> {
    let mut path = text.to_owned();
    for (variable, own) in
        [("${workspaceFolder}", "$WORKSPACE"), ("${userHome}", "~"), ("${HOME}", "~"), ("${env:HOME}", "~")]
    {
        if let Some(rest) = path.strip_prefix(variable) {
            path = format!("{own}{rest}");
        }
    }
    if path.get(1..).is_some_and(|rest| rest.contains('$'))
        || path.contains("${")
        || path.split('/').any(|part| part == "..")
    {
        return None;
    }
    let path = path.strip_prefix("./").map_or(path.clone(), |rest| format!("$WORKSPACE/{rest}"));
    let path = match path.as_str() {
        "." | "" => "$WORKSPACE".to_owned(),
        _ if path.starts_with(['/', '~', '$']) => path.trim_end_matches('/').to_owned(),
        _ => format!("$WORKSPACE/{}", path.trim_end_matches('/')),
    };
    Some(if path.is_empty() { "/".to_owned() } else { path })
}
