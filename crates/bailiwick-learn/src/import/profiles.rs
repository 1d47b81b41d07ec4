//! What other sandboxes' profiles say of a server.

use bailiwick_manifest::Manifest;
use serde_json::Value;

use super::clients::path_of;
use super::sheet::Sheet;
use super::{ImportError, at, texts};

/// A manifest of capgate, which reads as one of ours.
pub(super) fn capgate(text: &str, sheet: &mut Sheet<'_>) -> Result<(), ImportError> {
    let manifest = Manifest::parse(text)
        .map_err(|findings| ImportError::OtherForm { what: "manifest", why: findings.to_string() })?;
    sheet.name = Some(manifest.name().to_owned());
    sheet.version = Some(manifest.version().to_owned());
    for line in manifest.server_capabilities() {
        sheet.grant(&line.value.to_string(), "serverCapabilities");
    }
    for tool in manifest.tools() {
        let place = format!("tools: {}", tool.name());
        let lines = tool.capabilities().unwrap_or_default().iter();
        let lines: Vec<_> = lines.map(|line| (line.value.to_string(), place.clone())).collect();
        sheet.grant_tool(tool.name(), &lines);
    }
    Ok(())
}

/// A permission profile of ToolHive: mounts, and hosts with ports.
pub(super) fn toolhive(file: &Value, sheet: &mut Sheet<'_>) {
    sheet.name = at(file, &["name"]).as_str().map(str::to_owned);
    for (key, actions) in [("read", "read"), ("write", "read,write")] {
        for (index, mount) in texts(at(file, &[key])) {
            let place = format!("{key}[{index}]");
            // `host-path:container-path`
            let path = mount.split_once(':').map_or(mount, |(host, _)| host);
            if mount.contains("://") {
                sheet.ask(None, &format!("what `{mount}` mounts is not known here"), &place);
            } else if let Some(path) = path_of(path) {
                sheet.grant(&format!("fs:{actions}:{path}"), &place);
            } else {
                sheet.ask(None, &format!("what `{path}` stands for is not known here"), &place);
            }
        }
    }
    if at(file, &["privileged"]).as_bool() == Some(true) {
        sheet.ask(None, "it asks for a container without confinement, which nothing grants", "privileged");
    }
    let outbound = at(file, &["network", "outbound"]);
    if at(outbound, &["insecure_allow_all"]).as_bool() == Some(true) {
        sheet.ask(
            Some("net:connect:*:*"),
            "it asks for every host: name those that it needs",
            "network.outbound.insecure_allow_all",
        );
    }
    let ports: Vec<u64> =
        at(outbound, &["allow_port"]).as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    for (index, host) in texts(at(outbound, &["allow_host"])) {
        let place = format!("network.outbound.allow_host[{index}]");
        // A leading dot stands for every name below.
        let host = host.strip_prefix('.').map_or(host.to_owned(), |rest| format!("*.{rest}"));
        for port in &ports {
            sheet.grant(&format!("net:connect:{host}:{port}"), &place);
        }
        if ports.is_empty() {
            sheet.ask(Some(&format!("net:connect:{host}:443")), "no port is named for this host", &place);
        }
    }
    if at(file, &["network", "inbound"]).is_object() {
        sheet.ask(
            None,
            "others may reach it, which a server on its standard input does not need",
            "network.inbound",
        );
    }
}

/// A policy of Wassette: storage, network and environment, each with what is allowed and what is denied.
pub(super) fn wassette(text: &str, sheet: &mut Sheet<'_>) -> Result<(), ImportError> {
    let other = |why: String| ImportError::OtherForm { what: "policy of Wassette", why };
    let file: Value = serde_saphyr::from_str(text).map_err(|fault| other(fault.to_string()))?;
    let all = at(&file, &["permissions"]);
    if !all.is_object() {
        return Err(other("it has no `permissions`".to_owned()));
    }
    let list = |kind: &str, what: &str| at(all, &[kind, what]).as_array().cloned().unwrap_or_default();
    for (index, entry) in list("storage", "allow").iter().enumerate() {
        let place = format!("storage.allow[{index}]");
        let uri = at(entry, &["uri"]).as_str().unwrap_or_default();
        let path = uri.strip_prefix("fs://").or(uri.strip_prefix("file://")).and_then(path_of);
        let access: Vec<&str> = texts(at(entry, &["access"])).map(|(_, word)| word).collect();
        let actions = if access.contains(&"write") { "read,write" } else { "read" };
        match path {
            Some(path) if !access.is_empty() => sheet.grant(&format!("fs:{actions}:{path}"), &place),
            _ => sheet.ask(None, &format!("what `{uri}` allows is not known here"), &place),
        }
    }
    for (index, entry) in list("network", "allow").iter().enumerate() {
        let place = format!("network.allow[{index}]");
        if let Some(host) = at(entry, &["host"]).as_str() {
            let host = host.split_once("://").map_or(host, |(_, rest)| rest).trim_end_matches('/');
            let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            sheet.grant(&format!("net:connect:{host}{}", if has_port { "" } else { ":443" }), &place);
        } else if let Some(block) = at(entry, &["cidr"]).as_str() {
            sheet.ask(None, &format!("addresses of `{block}`: name the hosts that it needs"), &place);
        } else {
            sheet.ask(None, "it names no host", &place);
        }
    }
    for (index, entry) in list("environment", "allow").iter().enumerate() {
        match at(entry, &["key"]).as_str() {
            Some(name) => sheet.grant(&format!("env:read:{name}"), &format!("environment.allow[{index}]")),
            None => sheet.ask(None, "it names no variable", &format!("environment.allow[{index}]")),
        }
    }
    for kind in ["storage", "network", "environment"] {
        for entry in list(kind, "deny") {
            sheet
                .remark(format!("It denies {entry} ({kind}): no line grants it unless one below covers it."));
        }
    }
    Ok(())
}

/// What AgentBound names is a kind without a target, so each is a question.
const KINDS: [(&str, &str, &str); 9] = [
    ("mcp.ac.filesystem.read", "fs:read:$WORKSPACE", "it reads files: name them"),
    ("mcp.ac.filesystem.write", "fs:read,write:$WORKSPACE", "it writes files: name them"),
    ("mcp.ac.filesystem.delete", "fs:read,write:$WORKSPACE", "it removes files: name them"),
    ("mcp.ac.system.env.read", "env:read:NAME", "it reads variables: name them"),
    ("mcp.ac.system.exec", "exec:spawn:PROGRAM", "it starts programs: name them"),
    ("mcp.ac.system.process", "exec:spawn:PROGRAM", "it handles processes: name the programs"),
    ("mcp.ac.network.client", "net:connect:HOST:443", "it reaches hosts: name them"),
    ("mcp.ac.network.server", "net:listen:8080", "it listens: name the port"),
    ("mcp.ac.ipc.socket", "", "it reaches local sockets: name them"),
];

/// A manifest of AgentBound.
pub(super) fn agentbound(file: &Value, sheet: &mut Sheet<'_>) -> Result<(), ImportError> {
    if !at(file, &["permissions"]).is_array() {
        let why = "it has no list `permissions`".to_owned();
        return Err(ImportError::OtherForm { what: "manifest of AgentBound", why });
    }
    sheet.name = at(file, &["name"]).as_str().map(str::to_owned);
    for (index, permission) in texts(at(file, &["permissions"])) {
        let place = format!("permissions[{index}]: {permission}");
        match KINDS.iter().find(|(kind, ..)| *kind == permission) {
            Some((_, line, why)) => {
                sheet.ask(Some(line).filter(|line| !line.is_empty()).copied(), why, &place)
            }
            None => sheet.ask(None, "no line of a manifest is about this", &place),
        }
    }
    Ok(())
}
