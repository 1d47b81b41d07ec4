//! A squid proxy that lets through what the rules name.
//!
//! Names are compared as they are asked for (`-n`): reverse DNS decides nothing. A name is resolved only after a
//! rule has matched it, and one private address in the answer refuses it unless the rule opens those.
//!
//! Residual: inside CONNECT squid sees bytes only. It compares neither the name in a TLS hello nor what is
//! spoken, and method and path rules hold for plain HTTP alone; the file says so at its top.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::sync::LazyLock;

use bailiwick_policy::net::{
    HostPattern, Method, Methods, NetRule, PortRange, Scheme, Speech, special_blocks,
};
use bailiwick_policy::path::PathPattern;
use bailiwick_policy::plan::Plan;
use ipnet::{IpNet, Ipv6Net};

use super::{Egress, GATEWAY_PORT, identifier, private_first, refused};
use crate::{Refusal, pattern};

const HEAD: &str = "\
# What is not named here is denied. Inside CONNECT only host and port are seen: not the name in the TLS hello,
# not the method, not the path. Let nothing but this proxy out of the sandbox's network.
";

const SETTINGS: &str = "\
cache deny all
forwarded_for delete
pinger_enable off
shutdown_lifetime 1 seconds
";

/// The private addresses, which are the same for every plan.
static PRIVATE: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    for block in special_blocks() {
        let _ = writeln!(text, "acl private dst {}", without_mapped(block));
    }
    text
});

pub(super) fn emit(plan: &Plan, rules: &[NetRule]) -> Result<String, Refusal> {
    let mut text = HEAD.to_owned();
    let _ =
        writeln!(text, "http_port 127.0.0.1:{GATEWAY_PORT}\nvisible_hostname bailiwick-{}", identifier(plan));
    text.push_str(SETTINGS);
    text.push_str("acl literal dstdom_regex -n ^[0-9.]+$ ^\\[?[0-9a-f:.]*:[0-9a-f:.]*\\]?$\n");
    text.push_str("acl odd_path urlpath_regex [;%\\\\] // (^|/)[.][.]?([/?]|$)\n");
    text.push_str(&PRIVATE);
    for (index, rule) in private_first(rules).enumerate() {
        text.push_str(&one(index + 1, rule)?);
    }
    text.push_str("http_access deny all\n");
    Ok(text)
}

/// The block without the v4-mapped addresses, as which squid keeps every v4 address.
fn without_mapped(block: IpNet) -> String {
    parts(block).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn parts(block: IpNet) -> Vec<IpNet> {
    let mapped = Ipv6Net::new(Ipv4Addr::UNSPECIFIED.to_ipv6_mapped(), 96).map(IpNet::V6);
    let (mut rest, mut kept) = (vec![block], Vec::new());
    while let Some(block) = rest.pop() {
        match mapped {
            Ok(mapped) if block == mapped => {}
            Ok(mapped) if block.contains(&mapped) => {
                rest.extend(block.subnets(block.prefix_len() + 1).into_iter().flatten());
            }
            _ => kept.push(block),
        }
    }
    kept
}

fn one(index: usize, rule: &NetRule) -> Result<String, Refusal> {
    let mut text = format!("# {rule}\n");
    let mut terms = Vec::new();
    if let Some(host) = host(rule.host()) {
        let _ = writeln!(text, "acl host{index} {host}");
        if matches!(rule.host(), HostPattern::Net(_)) {
            terms.push("literal".to_owned());
        }
        terms.push(format!("host{index}"));
    }
    if rule.ports() != PortRange::ANY {
        let _ = writeln!(text, "acl port{index} port {}", rule.ports());
        terms.push(format!("port{index}"));
    }
    let ways = ways(&mut text, index, rule)?;
    let matched = terms.join(" ");
    if !rule.opens_private() {
        for closed in ["to_localhost", "private"] {
            let _ = writeln!(text, "http_access deny {matched}{}{closed}", gap(&matched));
        }
    }
    for way in ways {
        let _ = writeln!(text, "http_access allow {matched}{}{way}", gap(&matched));
    }
    Ok(text)
}

const fn gap(terms: &str) -> &'static str {
    if terms.is_empty() { "" } else { " " }
}

/// What may be asked of the host, as terms of `http_access`.
fn ways(text: &mut String, index: usize, rule: &NetRule) -> Result<Vec<String>, Refusal> {
    let Speech::Http { schemes, methods, path } = rule.speech() else { return Ok(vec!["all".to_owned()]) };
    let mut ways = Vec::new();
    if schemes.contains(Scheme::Https) {
        ways.push("CONNECT".to_owned());
    }
    if schemes.contains(Scheme::Http) {
        let mut plain = "!CONNECT".to_owned();
        if *methods != Methods::ALL {
            let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
            let _ = writeln!(text, "acl method{index} method {}", names.join(" "));
            let _ = write!(plain, " method{index}");
        }
        if *path != PathPattern::everything() {
            let _ = writeln!(text, "acl path{index} urlpath_regex {}", url_path(rule, path)?);
            let _ = write!(plain, " path{index} !odd_path");
        }
        ways.push(plain);
    }
    Ok(ways)
}

/// The host as squid's acl; `None` for every host.
fn host(host: &HostPattern) -> Option<String> {
    match host {
        HostPattern::Any => None,
        HostPattern::Name(name) => Some(format!("dstdomain -n {name}")),
        // `dstdomain .name` would match the name itself too
        HostPattern::Below(name) => Some(format!("dstdom_regex -n ^.+\\.{}$", pattern::escape(name))),
        // squid takes `0.0.0.0/0` for an error
        HostPattern::Net(net) if net.to_string() == "0.0.0.0/0" => {
            Some("dst 0.0.0.0/1 128.0.0.0/1".to_owned())
        }
        HostPattern::Net(net) => Some(format!("dst {}", without_mapped(*net))),
    }
}

/// A path as the expression of an acl, in which spaces separate and `#` starts a comment.
fn url_path(rule: &NetRule, path: &PathPattern) -> Result<String, Refusal> {
    let base = path.base().to_string();
    let base = if base == "/" { "" } else { &*base };
    let expression = pattern::regex(path, base, "(\\?.*)?");
    let plain = |text: &String| {
        text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'#%\\\\".contains(&byte) || byte == b'\\')
    };
    expression.filter(plain).ok_or_else(|| {
        refused(
            Egress::Squid,
            rule,
            "its path has a letter that the configuration cannot hold; grant the directory above it",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_one_family_holds_none_of_the_other() {
        let dst = |net: &str| host(&HostPattern::Net(net.parse().unwrap())).unwrap();
        assert_eq!(dst("0.0.0.0/0"), "dst 0.0.0.0/1 128.0.0.0/1");
        assert_eq!(dst("2001:db8::/32"), "dst 2001:db8::/32");
        assert_eq!(dst("::/0").split(' ').count(), 97);
        assert!(!dst("::/0").contains("::/0") && !dst("::/0").contains("::ffff:0:0"));
    }

    #[test]
    fn private_blocks_of_v6_take_no_v4_address_with_them() {
        let mapped: IpNet = "::ffff:0:0/96".parse().unwrap();
        let parts = parts("::/3".parse().unwrap());
        assert_eq!(parts.len(), 93);
        assert!(parts.iter().all(|part| !part.contains(&mapped) && !mapped.contains(part)));
        for inside in ["::1", "64:ff9b::1", "::fffe:0:0", "::1:0:0:0", "1fff::"] {
            let ip: std::net::IpAddr = inside.parse().unwrap();
            assert_eq!(parts.iter().filter(|part| part.contains(&ip)).count(), 1, "{inside}");
        }
    }
}
