//! An Envoy proxy, asked by CONNECT or with absolute URLs, that lets through what the rules name.
//!
//! A request is matched by its authority; one that no route matches is answered without asking DNS. The address
//! that a name resolved to is checked before it is dialled, and a private one refused unless the rule opens those.
//!
//! Residual: inside CONNECT only host and port are seen, and method and path rules hold for plain HTTP alone.

use std::sync::LazyLock;

use bailiwick_policy::net::{
    HostPattern, Method, Methods, NetRule, PortRange, Scheme, Speech, special_blocks,
};
use bailiwick_policy::path::PathPattern;
use serde_json::{Value, json};

use super::{Egress, GATEWAY_PORT, private_first, refused};
use crate::{Refusal, pattern, yaml};

/// The widest range of ports that is written out one by one.
const MAX_PORTS: u16 = 256;
const FILTERS: &str = "type.googleapis.com/envoy.extensions.filters";

/// Where the routes go, and what stands before and after them: that is the same for every plan.
const ROUTES: &str = "              routes: 'ROUTES'\n";
static AROUND: LazyLock<(String, String)> = LazyLock::new(|| {
    let text = yaml::document(&around());
    text.split_once(ROUTES).map(|(before, after)| (before.to_owned(), after.to_owned())).unwrap_or_default()
});

pub(super) fn emit(rules: &[NetRule]) -> Result<String, Refusal> {
    let mut routes = Vec::new();
    for rule in private_first(rules) {
        routes.extend(routes_of(rule)?);
    }
    let (before, after) = &*AROUND;
    let mut text = before.clone();
    for line in yaml::document(&json!({ "routes": routes })).lines() {
        text.extend(["              ", line, "\n"]);
    }
    text.push_str(after);
    Ok(text)
}

fn around() -> Value {
    let listener = json!({
        "name": "egress",
        "address": { "socket_address": { "address": "127.0.0.1", "port_value": GATEWAY_PORT } },
        "filter_chains": [{ "filters": [{
            "name": "envoy.filters.network.http_connection_manager",
            "typed_config": manager(),
        }] }],
    });
    let cluster = json!({
        "name": "named",
        "lb_policy": "CLUSTER_PROVIDED",
        "cluster_type": {
            "name": "envoy.clusters.dynamic_forward_proxy",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig",
                "dns_cache_config": dns_cache(),
            },
        },
    });
    json!({ "static_resources": { "listeners": [listener], "clusters": [cluster] } })
}

fn manager() -> Value {
    json!({
        "@type": format!("{FILTERS}.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": "egress",
        "normalize_path": true,
        "path_with_escaped_slashes_action": "REJECT_REQUEST",
        "upgrade_configs": [{ "upgrade_type": "CONNECT" }],
        "route_config": { "virtual_hosts": [{ "name": "allowed", "domains": ["*"], "routes": "ROUTES" }] },
        "http_filters": [
            {
                "name": "envoy.filters.http.dynamic_forward_proxy",
                "typed_config": {
                    "@type": format!("{FILTERS}.http.dynamic_forward_proxy.v3.FilterConfig"),
                    "dns_cache_config": dns_cache(),
                    "save_upstream_address": true,
                },
            },
            { "name": "envoy.filters.http.rbac", "typed_config": no_private() },
            {
                "name": "envoy.filters.http.router",
                "typed_config": { "@type": format!("{FILTERS}.http.router.v3.Router") },
            },
        ],
    })
}

fn dns_cache() -> Value {
    json!({ "name": "names", "dns_lookup_family": "ALL" })
}

/// Refuses a request whose host was resolved to a private address.
fn no_private() -> Value {
    let matcher = |(address, length): (String, u8)| {
        json!({ "matcher": {
            "name": "private",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.rbac.matchers.upstream_ip_port.v3.UpstreamIpPortMatcher",
                "upstream_ip": { "address_prefix": address, "prefix_len": length },
            },
        } })
    };
    let blocks = special_blocks().into_iter().map(|net| (net.addr().to_string(), net.prefix_len()));
    let private: Vec<Value> = blocks.map(matcher).collect();
    json!({
        "@type": format!("{FILTERS}.http.rbac.v3.RBAC"),
        "rules": {
            "action": "DENY",
            "policies": { "private": { "permissions": [{ "or_rules": { "rules": private } }], "principals": [{ "any": true }] } },
        },
    })
}

/// The routes of one rule: by CONNECT, plainly, or both.
fn routes_of(rule: &NetRule) -> Result<Vec<Value>, Refusal> {
    let (connect, plain, methods, path) = match rule.speech() {
        Speech::Connect { .. } => (true, true, Methods::ALL, None),
        Speech::Http { schemes, methods, path } => {
            let path = (*path != PathPattern::everything()).then_some(path);
            (schemes.contains(Scheme::Https), schemes.contains(Scheme::Http), *methods, path)
        }
    };
    let mut routes = Vec::new();
    if connect {
        let matched = json!({ "connect_matcher": {}, "headers": [authority(rule, false)?] });
        let action = json!({
            "cluster": "named",
            "upgrade_configs": [{ "upgrade_type": "CONNECT", "connect_config": {} }],
        });
        routes.push(route(rule, matched, action));
    }
    if plain {
        let mut headers = vec![authority(rule, true)?];
        if methods != Methods::ALL {
            let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
            headers.push(header(":method", &names.join("|")));
        }
        let matched = match path {
            None => json!({ "prefix": "/", "headers": headers }),
            Some(path) => {
                headers.push(odd_path());
                json!({ "safe_regex": { "regex": url_path(rule, path)? }, "headers": headers })
            }
        };
        routes.push(route(rule, matched, json!({ "cluster": "named" })));
    }
    Ok(routes)
}

fn route(rule: &NetRule, matched: Value, action: Value) -> Value {
    let mut route = json!({ "name": rule.to_string(), "match": matched, "route": action });
    if rule.opens_private()
        && let Value::Object(fields) = &mut route
    {
        let off = json!({ "@type": format!("{FILTERS}.http.rbac.v3.RBACPerRoute") });
        fields.insert("typed_per_filter_config".to_owned(), json!({ "envoy.filters.http.rbac": off }));
    }
    route
}

fn header(name: &str, regex: &str) -> Value {
    json!({ "name": name, "string_match": { "safe_regex": { "regex": regex } } })
}

/// A path that servers read in more than one way (parameters, escapes, backslashes, empty segments) matches no rule for
/// some paths. Dots are resolved before.
fn odd_path() -> Value {
    let regex = r"[^?]*([;%\\]|//).*";
    json!({ "name": ":path", "string_match": { "safe_regex": { "regex": regex } }, "invert_match": true })
}

/// The authority of a request; a plain one leaves port 80 out.
fn authority(rule: &NetRule, plain: bool) -> Result<Value, Refusal> {
    let host = match rule.host() {
        HostPattern::Any => r"(\[[0-9a-fA-F:.]+\]|[^:@/\[\]]+)".to_owned(),
        HostPattern::Name(name) => format!("(?i:{})", pattern::escape(name)),
        HostPattern::Below(name) => format!(r"(?i:[^:@/\[\]]+\.{})", pattern::escape(name)),
        HostPattern::Net(net) if net.prefix_len() == net.max_prefix_len() => {
            pattern::escape(&rule.host().to_string())
        }
        HostPattern::Net(_) => {
            let why =
                "it matches text and not blocks of addresses; name the addresses, or use nftables or squid";
            return Err(refused(Egress::Envoy, rule, why));
        }
    };
    let ports = rule.ports();
    let port = match ports {
        PortRange::ANY => "[0-9]{1,5}".to_owned(),
        _ if ports.high() - ports.low() >= MAX_PORTS => {
            let why = format!(
                "a range of more than {MAX_PORTS} ports is not written out; narrow it, or allow every port"
            );
            return Err(refused(Egress::Envoy, rule, &why));
        }
        _ => {
            let each: Vec<String> = (ports.low()..=ports.high()).map(|port| port.to_string()).collect();
            format!("({})", each.join("|"))
        }
    };
    let optional = if plain && ports.contains(Scheme::Http.default_port()) { "?" } else { "" };
    Ok(header(":authority", &format!("{host}(:{port}){optional}")))
}

fn url_path(rule: &NetRule, path: &PathPattern) -> Result<String, Refusal> {
    let base = path.base().to_string();
    let base = if base == "/" { "" } else { &*base };
    pattern::regex(path, base, "").ok_or_else(|| {
        refused(
            Egress::Envoy,
            rule,
            "its path has a class of letters beyond ASCII; grant the directory above it",
        )
    })
}
