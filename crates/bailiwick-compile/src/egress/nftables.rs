//! An nftables ruleset for the network namespace of the sandboxed process.
//!
//! Addresses, blocks and ports are held exactly. A name is a set that starts empty, so it allows nothing until
//! the host's resolver fills it (dnsmasq does, with `nftset`); addresses that several names share are then open
//! for all of them. Private addresses are dropped first, whatever a resolver puts into a set.

use std::fmt::Write as _;

use bailiwick_policy::net::{HostPattern, NetRule, PortRange, special_blocks};
use bailiwick_policy::plan::Plan;

use super::{identifier, private_first};

pub(super) fn emit(plan: &Plan, rules: &[NetRule]) -> String {
    let table = format!("bailiwick_{}", identifier(plan));
    let (mut sets, mut lines, mut named) = (String::new(), String::new(), false);
    for (index, rule) in private_first(rules).enumerate() {
        let index = index + 1;
        let _ = writeln!(lines, "\t\t# {rule}");
        let hosts = match rule.host() {
            HostPattern::Any => vec![String::new()],
            HostPattern::Net(net) => vec![format!("{} daddr {net} ", family(net.addr().is_ipv4()))],
            HostPattern::Name(name) | HostPattern::Below(name) => {
                named = true;
                sets.push_str(&named_sets(&table, index, rule.host(), name));
                [true, false].map(|v4| format!("{} daddr @host{index}_{} ", family(v4), short(v4))).to_vec()
            }
        };
        for host in hosts {
            if !rule.opens_private() {
                for v4 in [true, false] {
                    if host.is_empty() || host.starts_with(&format!("{} ", family(v4))) {
                        let _ = writeln!(lines, "\t\t{host}{} daddr @private_{} drop", family(v4), short(v4));
                    }
                }
            }
            let _ = writeln!(lines, "\t\t{host}{}accept", ports(rule.ports()));
        }
    }
    ruleset(&table, &sets, &lines, named)
}

const fn family(v4: bool) -> &'static str {
    if v4 { "ip" } else { "ip6" }
}

const fn short(v4: bool) -> &'static str {
    if v4 { "v4" } else { "v6" }
}

fn ports(ports: PortRange) -> String {
    match ports {
        PortRange::ANY => "meta l4proto tcp ".to_owned(),
        ports => format!("tcp dport {ports} "),
    }
}

/// Two empty sets for a name, and how a resolver is told to fill them.
fn named_sets(table: &str, index: usize, host: &HostPattern, name: &str) -> String {
    let mut text = format!(
        "\t# {host}; dnsmasq: nftset=/{name}/4#inet#{table}#host{index}_v4,6#inet#{table}#host{index}_v6\n"
    );
    for (v4, kind) in [(true, "ipv4_addr"), (false, "ipv6_addr")] {
        let _ =
            writeln!(text, "\tset host{index}_{} {{\n\t\ttype {kind}\n\t\tflags timeout\n\t}}", short(v4));
    }
    text
}

fn ruleset(table: &str, sets: &str, lines: &str, named: bool) -> String {
    let mut text = String::from(
        "# Load it inside the network namespace of the process. What is not named here is dropped.\n",
    );
    if named {
        text.push_str(
            "# Names are sets that start empty and allow nothing: let the host's resolver fill them. An address\n\
             # that several names share is open for all of them.\n",
        );
    }
    let _ = writeln!(text, "add table inet {table}\ndelete table inet {table}\ntable inet {table} {{");
    for (v4, kind) in [(true, "ipv4_addr"), (false, "ipv6_addr")] {
        let blocks = special_blocks().into_iter().filter(|block| block.addr().is_ipv4() == v4);
        let blocks: Vec<String> = blocks.map(|block| block.to_string()).collect();
        let _ = writeln!(
            text,
            "\tset private_{} {{\n\t\ttype {kind}\n\t\tflags interval\n\t\tauto-merge\n\t\telements = {{ {} }}\n\t}}",
            short(v4),
            blocks.join(", ")
        );
    }
    if named {
        text.push_str("\t# The resolvers that the process may ask; empty until the host names them.\n");
        text.push_str(
            "\tset resolvers_v4 {\n\t\ttype ipv4_addr\n\t}\n\tset resolvers_v6 {\n\t\ttype ipv6_addr\n\t}\n",
        );
    }
    text.push_str(sets);
    text.push_str("\tchain output {\n\t\ttype filter hook output priority filter; policy drop;\n");
    text.push_str("\t\tct state established,related accept\n");
    if named {
        text.push_str("\t\tip daddr @resolvers_v4 meta l4proto { tcp, udp } th dport 53 accept\n");
        text.push_str("\t\tip6 daddr @resolvers_v6 meta l4proto { tcp, udp } th dport 53 accept\n");
    }
    text.push_str(lines);
    text.push_str(
        "\t}\n\tchain forward {\n\t\ttype filter hook forward priority filter; policy drop;\n\t}\n}\n",
    );
    text
}
