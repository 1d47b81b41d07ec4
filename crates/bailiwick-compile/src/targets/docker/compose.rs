//! `compose.yaml`: the container on an internal network, and the egress proxy as the only way out of it.
//!
//! It is written as JSON, which every reader of YAML takes, with no character that a reader could take for the
//! end of a line. A dollar sign is doubled: compose would replace what follows it.

use std::fmt::Write as _;
use std::sync::LazyLock;

use bailiwick_policy::artifact::ArtifactFile;
use bailiwick_policy::plan::Plan;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Container, IMAGE, INTERNAL, USER};
use crate::{Egress, Refusal, script};

/// A placeholder for the image of the proxy, to be filled in.
const PROXY_IMAGE: &str = "EGRESS_IMAGE";

/// The configuration of the proxy.
const PROXY_FILE: &str = "squid/squid.conf";

/// How programs find the proxy.
pub(super) const PROXY_VARIABLES: [(&str, &str); 4] = [
    ("HTTP_PROXY", "http://egress:3128"),
    ("HTTPS_PROXY", "http://egress:3128"),
    ("http_proxy", "http://egress:3128"),
    ("https_proxy", "http://egress:3128"),
];

#[derive(Serialize)]
struct Compose {
    services: Services,
    networks: &'static Value,
}

#[derive(Serialize)]
struct Services {
    server: Server,
    egress: &'static Value,
}

#[derive(Serialize)]
struct Server {
    image: &'static str,
    pull_policy: &'static str,
    stdin_open: bool,
    read_only: bool,
    cap_drop: [&'static str; 1],
    security_opt: [&'static str; 1],
    ipc: &'static str,
    user: &'static str,
    networks: [&'static str; 1],
    dns: [&'static str; 1],
    depends_on: [&'static str; 1],
    volumes: Vec<Volume>,
    environment: Vec<String>,
    tmpfs: Vec<String>,
    pids_limit: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mem_limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memswap_limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ulimits: Option<FileSize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    command: Vec<String>,
}

#[derive(Serialize)]
struct FileSize {
    fsize: u64,
}

#[derive(Serialize)]
struct Volume {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    target: String,
    read_only: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    bind: Option<Bind>,
}

#[derive(Serialize)]
struct Bind {
    create_host_path: bool,
}

impl Volume {
    fn bind(source: String, target: String, read_only: bool) -> Self {
        let bind = Some(Bind { create_host_path: false });
        Self { r#type: "bind", source: Some(source), target, read_only, bind }
    }

    const fn empty(target: String) -> Self {
        Self { r#type: "tmpfs", source: None, target, read_only: true, bind: None }
    }
}

static PROXY: LazyLock<Value> = LazyLock::new(|| {
    let configuration = Volume::bind(format!("./{PROXY_FILE}"), "/etc/squid/squid.conf".to_owned(), true);
    json!({
        "image": PROXY_IMAGE,
        "volumes": [configuration],
        "networks": ["internal", "outside"],
        "security_opt": ["no-new-privileges"],
        "restart": "unless-stopped",
    })
});

static NETWORKS: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "internal": {
            "name": INTERNAL,
            "internal": true,
            // From Docker 28 on, the host has no address there either.
            "driver_opts": { "com.docker.network.bridge.gateway_mode_ipv4": "isolated" },
        },
        "outside": { "driver": "bridge" },
    })
});

/// The text of `compose.yaml`.
pub(super) fn text(plan: &Plan, container: &Container) -> String {
    let services = Services { server: server(plan, container), egress: &PROXY };
    let compose = Compose { services, networks: &NETWORKS };
    let text = serde_json::to_string_pretty(&compose).unwrap_or_default();
    let mut safe = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => {
                let _ = write!(safe, "\\u{:04x}", u32::from(c));
            }
            c => safe.push(c),
        }
    }
    safe.push('\n');
    safe
}

/// The configuration of the proxy: that of the squid gateway, listening in a container of its own.
pub(super) fn proxy(plan: &Plan) -> Result<ArtifactFile, Refusal> {
    let own = crate::egress(Egress::Squid, plan)?;
    let text = own.text.replacen("http_port 127.0.0.1:3128", "http_port 3128", 1);
    Ok(ArtifactFile { name: PROXY_FILE.to_owned(), text })
}

fn server(plan: &Plan, container: &Container) -> Server {
    let limits = plan.limits();
    Server {
        image: IMAGE,
        pull_policy: "never",
        stdin_open: true,
        read_only: container.read_only,
        cap_drop: ["ALL"],
        security_opt: ["no-new-privileges"],
        ipc: "private",
        user: USER,
        networks: ["internal"],
        dns: ["127.0.0.1"],
        depends_on: ["egress"],
        volumes: volumes(container),
        environment: environment(container),
        tmpfs: container.tmp.iter().map(|options| format!("/tmp:{options}")).collect(),
        pids_limit: limits.pids.unwrap_or(super::DEFAULT_PIDS),
        mem_limit: limits.memory,
        memswap_limit: limits.memory,
        cpus: limits.cpu_milli.map(super::cpus),
        ulimits: limits.file_size.map(|fsize| FileSize { fsize }),
        command: script::command(plan).iter().map(|word| literal(word)).collect(),
    }
}

fn volumes(container: &Container) -> Vec<Volume> {
    let binds = container
        .mounts
        .iter()
        .map(|mount| Volume::bind(literal(&mount.source), literal(&mount.target), mount.read_only));
    binds.chain(container.covered.iter().map(|path| Volume::empty(literal(path)))).collect()
}

/// `NAME=VALUE`, and `NAME` alone for what compose passes on.
fn environment(container: &Container) -> Vec<String> {
    let fixed = container.variables.iter().map(|(name, value)| format!("{name}={}", literal(value)));
    fixed.chain(container.passed.iter().cloned()).collect()
}

/// A text that compose takes as it is.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}
