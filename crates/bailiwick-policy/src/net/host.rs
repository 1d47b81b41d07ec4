//! Hosts as they are asked for, and patterns of hosts as they are granted.
//!
//! Names are kept in lower case, as A-labels and without a trailing dot. Spellings that some resolvers take for
//! an address and others for a name are refused.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;

use super::special::{canonical_ip, is_special};
use crate::finding::{Code, Finding, Span};

/// One host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A DNS name.
    Name(Box<str>),
    /// An address; never v4-mapped.
    Ip(IpAddr),
}

/// A set of hosts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPattern {
    /// `*`: every name and every address.
    Any,
    /// One name.
    Name(Box<str>),
    /// `*.name`: one or more labels in front of the name.
    Below(Box<str>),
    /// An address or a block of addresses.
    Net(IpNet),
}

impl Host {
    /// Reads one host: a name or an address, v6 with or without brackets.
    ///
    /// # Errors
    /// A finding if it is neither, or a wildcard or a block.
    pub fn new(text: &str) -> Result<Self, Finding> {
        let bare = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(text);
        if let Ok(v6) = bare.parse::<Ipv6Addr>() {
            return Ok(Self::Ip(canonical_ip(IpAddr::V6(v6))));
        }
        match parse_host_pattern(text)? {
            HostPattern::Name(name) => Ok(Self::Name(name)),
            HostPattern::Net(net) if net.prefix_len() == net.max_prefix_len() => Ok(Self::Ip(net.addr())),
            HostPattern::Any | HostPattern::Below(_) | HostPattern::Net(_) => {
                Err(invalid(text, "it stands for more than one host"))
            }
        }
    }

    /// Whether the host itself is private, whatever it resolves to.
    #[must_use]
    pub fn is_private(&self) -> bool {
        match self {
            Self::Name(name) => is_localhost(name),
            Self::Ip(ip) => is_special(*ip),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Ip(IpAddr::V4(ip)) => write!(f, "{ip}"),
            Self::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
        }
    }
}

impl HostPattern {
    /// Whether the pattern matches `host`.
    #[must_use]
    pub fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Name(own), Host::Name(name)) => own == name,
            (Self::Below(parent), Host::Name(name)) => is_below(name, parent),
            (Self::Net(net), Host::Ip(ip)) => net.contains(ip),
            (Self::Name(_) | Self::Below(_), Host::Ip(_)) | (Self::Net(_), Host::Name(_)) => false,
        }
    }

    /// Whether every host of `other` is matched here too.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Name(own), Self::Name(name)) => own == name,
            (Self::Below(parent), Self::Name(name)) => is_below(name, parent),
            (Self::Below(parent), Self::Below(name)) => name == parent || is_below(name, parent),
            (Self::Net(net), Self::Net(other)) => net.contains(other),
            (Self::Name(_) | Self::Below(_) | Self::Net(_), _) => false,
        }
    }

    /// The hosts that both match; patterns either nest or are apart.
    pub(super) fn meet(&self, other: &Self) -> Option<Self> {
        if self.covers(other) {
            return Some(other.clone());
        }
        other.covers(self).then(|| self.clone())
    }

    /// Whether naming these hosts is by itself the consent to reach private addresses.
    pub(super) fn names_private(&self) -> bool {
        match self {
            Self::Any => false,
            Self::Name(name) | Self::Below(name) => is_localhost(name),
            Self::Net(net) => is_wholly_special(*net),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Name(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Net(net) if net.prefix_len() == net.max_prefix_len() => {
                write!(f, "{}", Host::Ip(net.addr()))
            }
            Self::Net(IpNet::V4(net)) => write!(f, "{net}"),
            Self::Net(IpNet::V6(net)) => write!(f, "[{net}]"),
        }
    }
}

/// Whether every address of the block is special.
fn is_wholly_special(net: IpNet) -> bool {
    let (low, high) = interval(net);
    let mut stretches = edges(net).filter(|edge| low < *edge && *edge <= high).chain([low]);
    stretches.all(|start| is_special(address(net, start)))
}

/// The numbers of the first and the last address.
pub(super) fn interval(net: IpNet) -> (u128, u128) {
    match net {
        IpNet::V4(v4) => (v4.network().to_bits().into(), v4.broadcast().to_bits().into()),
        IpNet::V6(v6) => (v6.network().to_bits(), v6.broadcast().to_bits()),
    }
}

/// Where special and public space meet, in the family of `net`.
pub(super) fn edges(net: IpNet) -> Box<dyn Iterator<Item = u128>> {
    match net {
        IpNet::V4(_) => Box::new(super::special::v4_edges()),
        IpNet::V6(_) => Box::new(super::special::v6_edges()),
    }
}

/// The address with this number, in the family of `net`.
pub(super) fn address(net: IpNet, number: u128) -> IpAddr {
    match net {
        IpNet::V4(_) => IpAddr::V4(u32::try_from(number).unwrap_or(u32::MAX).into()),
        IpNet::V6(_) => IpAddr::V6(number.into()),
    }
}

pub(super) fn is_below(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent).is_some_and(|front| front.len() > 1 && front.ends_with('.'))
}

pub(super) fn is_localhost(name: &str) -> bool {
    name == "localhost" || is_below(name, "localhost")
}

/// Reads `*`, `*.name`, `name`, `1.2.3.4`, `10.0.0.0/8`, `[::1]` or `[fd00::/8]`.
///
/// # Errors
/// A finding if it is none of these.
pub fn parse_host_pattern(text: &str) -> Result<HostPattern, Finding> {
    if text == "*" {
        return Ok(HostPattern::Any);
    }
    if let Some(inner) = text.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or_else(|| invalid(text, "the bracket is not closed"))?;
        return parse_v6(inner, text);
    }
    if let Some((address, length)) = text.split_once('/') {
        if parse_name(address, text).is_ok() {
            return Err(invalid(text, "a path follows the name")
                .help(format!("write `{address}`; for some paths only, write `net:https:https://{text}`")));
        }
        return parse_v4_block(address, length, text);
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return match ip {
            IpAddr::V4(_) => Ok(HostPattern::Net(ip.into())),
            IpAddr::V6(_) => {
                Err(invalid(text, "an IPv6 address stands in brackets").help(format!("write `[{text}]`")))
            }
        };
    }
    match text.strip_prefix("*.") {
        Some(parent) => Ok(HostPattern::Below(parse_name(parent, text)?)),
        None => Ok(HostPattern::Name(parse_name(text, text)?)),
    }
}

fn parse_v6(inner: &str, text: &str) -> Result<HostPattern, Finding> {
    if let Some((address, length)) = inner.split_once('/') {
        if address.parse::<std::net::Ipv4Addr>().is_ok() {
            return parse_v4_block(address, length, text);
        }
        let ip: Ipv6Addr = address.parse().map_err(|_| bad_block(text, None))?;
        let length = prefix_length(length).ok_or_else(|| bad_block(text, None))?;
        let net = ipnet::Ipv6Net::new(ip, length).map_err(|_| bad_block(text, None))?;
        if net.trunc() != net {
            return Err(bad_block(text, Some(format!("[{}]", net.trunc()))));
        }
        if let (Some(v4), Some(length)) = (ip.to_ipv4_mapped(), length.checked_sub(96)) {
            return Err(bad_block(text, Some(format!("{v4}/{length}"))));
        }
        return Ok(HostPattern::Net(IpNet::V6(net)));
    }
    let ip: Ipv6Addr = inner.parse().map_err(|_| invalid(text, "it is not an IPv6 address"))?;
    Ok(HostPattern::Net(canonical_ip(IpAddr::V6(ip)).into()))
}

fn parse_v4_block(address: &str, length: &str, text: &str) -> Result<HostPattern, Finding> {
    let ip: std::net::Ipv4Addr = address.parse().map_err(|_| bad_block(text, None))?;
    let length = prefix_length(length).ok_or_else(|| bad_block(text, None))?;
    let net = ipnet::Ipv4Net::new(ip, length).map_err(|_| bad_block(text, None))?;
    if net.trunc() != net {
        return Err(bad_block(text, Some(net.trunc().to_string())));
    }
    Ok(HostPattern::Net(IpNet::V4(net)))
}

/// Digits without sign or leading zero.
fn prefix_length(text: &str) -> Option<u8> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}

fn parse_name(name: &str, whole: &str) -> Result<Box<str>, Finding> {
    if name.contains('*') {
        return Err(Finding::new(Code::HostWildcard, format!("`{whole}` has `*` in the middle"))
            .at(Span::new(0, whole.len()))
            .help("`*` stands alone, or in front of a whole name as in `*.example.com`"));
    }
    let lower = name.to_ascii_lowercase();
    let rooted = lower.strip_suffix('.').unwrap_or(&lower);
    let name = if rooted.is_ascii() && !rooted.contains("xn--") {
        rooted.to_owned()
    } else {
        to_a_labels(rooted, whole)?
    };
    let clean = !name.is_empty() && name.len() <= 251 && name.split('.').all(is_label);
    if !clean {
        return Err(invalid(whole, "a name has labels of letters, digits, `-` and `_`, joined by dots"));
    }
    if name.rsplit('.').next().is_some_and(looks_numeric) {
        return Err(Finding::new(Code::HostNumeric, format!("`{whole}` may be read as an IPv4 address"))
            .at(Span::new(0, whole.len()))
            .help("write an address as four plain decimal numbers, such as `127.0.0.1`"));
    }
    Ok(name.into_boxed_str())
}

fn to_a_labels(name: &str, whole: &str) -> Result<String, Finding> {
    idna::domain_to_ascii_strict(name).map_err(|_| {
        Finding::new(Code::HostIdna, format!("`{whole}` is not a valid internationalised name"))
            .at(Span::new(0, whole.len()))
            .help("write its ASCII form, which starts with `xn--`")
    })
}

fn is_label(label: &str) -> bool {
    let inner = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    inner && (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
}

/// Whether some resolver would take a name with this last label for an address.
fn looks_numeric(label: &str) -> bool {
    let hex =
        label.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    hex || label.bytes().all(|byte| byte.is_ascii_digit())
}

fn invalid(text: &str, why: &str) -> Finding {
    Finding::new(Code::HostInvalid, format!("`{text}` is not a host: {why}"))
        .at(Span::new(0, text.len()))
        .help("write a DNS name, `*.name`, `*`, an IPv4 address, `[IPv6]` or a CIDR block")
}

fn bad_block(text: &str, instead: Option<String>) -> Finding {
    let help = instead.map_or_else(
        || "write a block such as `10.0.0.0/8` or `[fd00::/8]`".to_owned(),
        |instead| format!("write `{instead}`"),
    );
    Finding::new(Code::CidrInvalid, format!("`{text}` is not a block of addresses"))
        .at(Span::new(0, text.len()))
        .help(help)
}
