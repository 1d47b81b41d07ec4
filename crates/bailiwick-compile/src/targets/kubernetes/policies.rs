//! Network policies: everything is denied, addresses are allowed by a NetworkPolicy, names by Cilium's.
//!
//! A cluster without Cilium ignores the second, and the names stay closed. An answer with a private address is
//! refused by a denial, which in Cilium wins over every allowance; it spares the private blocks that rules name.

use std::fmt::Write as _;

use bailiwick_policy::net::{HostPattern, NetRule, PortRange, special_blocks};
use bailiwick_policy::plan::{Network, Plan};
use ipnet::IpNet;

pub(super) fn network_policy(plan: &Plan, name: &str) -> String {
    let egress = match plan.network() {
        Network::None => String::new(),
        Network::Any => allowed(&everywhere(false), PortRange::ANY),
        Network::Allow(rules) => rules.iter().filter_map(|rule| by_address(&rule.value)).collect(),
    };
    format!(
        "---
apiVersion: 'networking.k8s.io/v1'
kind: 'NetworkPolicy'
metadata:
  name: '{name}'
spec:
  podSelector:
    matchLabels:
      bailiwick/server: '{name}'
  policyTypes:
  - 'Ingress'
  - 'Egress'
  ingress: []
  egress:{}{egress}",
        if egress.is_empty() { " []\n" } else { "\n" },
    )
}

fn by_address(rule: &NetRule) -> Option<String> {
    let to = match rule.host() {
        HostPattern::Any => everywhere(rule.opens_private()),
        HostPattern::Net(net) => {
            let inner = |block: &IpNet| !rule.opens_private() && net.contains(block) && block != net;
            ip_block(&net.to_string(), special_blocks().into_iter().filter(inner))
        }
        HostPattern::Name(_) | HostPattern::Below(_) => return None,
    };
    Some(allowed(&to, rule.ports()))
}

fn allowed(to: &str, ports: PortRange) -> String {
    let port = match ports {
        PortRange::ANY => String::new(),
        ports if ports.low() == ports.high() => format!("      port: {}\n", ports.low()),
        ports => format!("      port: {}\n      endPort: {}\n", ports.low(), ports.high()),
    };
    format!("  - to:\n{to}    ports:\n    - protocol: 'TCP'\n{port}")
}

/// Every address, or every one that is not private.
fn everywhere(private: bool) -> String {
    let except =
        |v4: bool| special_blocks().into_iter().filter(move |block| !private && block.addr().is_ipv4() == v4);
    ip_block("0.0.0.0/0", except(true)) + &ip_block("::/0", except(false))
}

fn ip_block(cidr: &str, except: impl Iterator<Item = IpNet>) -> String {
    let mut text = format!("    - ipBlock:\n        cidr: '{cidr}'\n");
    for (index, block) in except.enumerate() {
        text.push_str(if index == 0 { "        except:\n" } else { "" });
        let _ = writeln!(text, "        - '{block}'");
    }
    text
}

/// The policy for names; `None` where no rule has one.
pub(super) fn cilium(plan: &Plan, name: &str) -> Option<String> {
    let (mut questions, mut egress) = (String::new(), String::new());
    for rule in plan.network().rules().iter().map(|rule| &rule.value) {
        let Some(selector) = selector(rule.host()) else { continue };
        let _ = writeln!(questions, "        - {selector}");
        let port = cilium_port(rule.ports());
        let _ = write!(egress, "  - toFQDNs:\n    - {selector}\n    toPorts:\n    - ports:\n{port}");
    }
    if questions.is_empty() {
        return None;
    }
    Some(format!(
        "apiVersion: 'cilium.io/v2'
kind: 'CiliumNetworkPolicy'
metadata:
  name: '{name}'
spec:
  endpointSelector:
    matchLabels:
      bailiwick/server: '{name}'
  egress:
  - toEndpoints:
    - matchLabels:
        \"k8s:io.kubernetes.pod.namespace\": 'kube-system'
        \"k8s:k8s-app\": 'kube-dns'
    toPorts:
    - ports:
      - port: '53'
        protocol: 'ANY'
      rules:
        dns:
{questions}{egress}{}",
        if plan.network().opens_private_names() { String::new() } else { no_private(plan) },
    ))
}

/// Whether a rule has a name with a wildcard.
pub(super) fn has_wildcards(plan: &Plan) -> bool {
    plan.network().rules().iter().any(|rule| matches!(rule.value.host(), HostPattern::Below(_)))
}

fn selector(host: &HostPattern) -> Option<String> {
    match host {
        HostPattern::Name(name) => Some(format!("matchName: '{name}'")),
        HostPattern::Below(name) => Some(format!("matchPattern: '*.{name}'")),
        HostPattern::Any | HostPattern::Net(_) => None,
    }
}

fn cilium_port(ports: PortRange) -> String {
    let (port, end) = match ports {
        PortRange::ANY => (0, String::new()),
        ports if ports.low() == ports.high() => (ports.low(), String::new()),
        ports => (ports.low(), format!("        endPort: {}\n", ports.high())),
    };
    format!("      - port: '{port}'\n{end}        protocol: 'TCP'\n")
}

/// The denial of the private blocks, but for those that a rule names.
fn no_private(plan: &Plan) -> String {
    let opened: Vec<IpNet> = plan
        .network()
        .rules()
        .iter()
        .filter(|rule| rule.value.opens_private())
        .filter_map(|rule| match rule.value.host() {
            HostPattern::Net(net) => Some(*net),
            HostPattern::Any | HostPattern::Name(_) | HostPattern::Below(_) => None,
        })
        .collect();
    let mut text = String::new();
    for block in special_blocks().iter().filter(|block| !opened.iter().any(|net| net.contains(*block))) {
        text.push_str(if text.is_empty() { "  egressDeny:\n  - toCIDRSet:\n" } else { "" });
        let _ = writeln!(text, "    - cidr: '{block}'");
        for (index, net) in opened.iter().filter(|net| block.contains(*net)).enumerate() {
            text.push_str(if index == 0 { "      except:\n" } else { "" });
            let _ = writeln!(text, "      - '{net}'");
        }
    }
    text
}
