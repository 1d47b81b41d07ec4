//! Ports and ranges of them.

use std::fmt;

use crate::finding::{Code, Finding, Span};

/// Ports from `low` to `high`, both included; never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortRange {
    low: u16,
    high: u16,
}

impl PortRange {
    /// Every port.
    pub const ANY: Self = Self { low: 1, high: u16::MAX };

    /// Just this one.
    #[must_use]
    pub const fn only(port: u16) -> Self {
        Self { low: port, high: port }
    }

    /// The lowest port.
    #[must_use]
    pub const fn low(self) -> u16 {
        self.low
    }

    /// The highest port.
    #[must_use]
    pub const fn high(self) -> u16 {
        self.high
    }

    /// Whether `port` is in the range.
    #[must_use]
    pub const fn contains(self, port: u16) -> bool {
        self.low <= port && port <= self.high
    }

    pub(super) const fn covers(self, other: Self) -> bool {
        self.low <= other.low && other.high <= self.high
    }

    /// From the lowest port to `high`.
    pub(super) const fn until(self, high: u16) -> Self {
        Self { low: self.low, high }
    }

    pub(super) fn meet(self, other: Self) -> Option<Self> {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        (low <= high).then_some(Self { low, high })
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.low, self.high) {
            (1, u16::MAX) => f.write_str("*"),
            (low, high) if low == high => write!(f, "{low}"),
            (low, high) => write!(f, "{low}-{high}"),
        }
    }
}

/// Reads `443`, `8000-8999` or `*`.
pub(crate) fn parse_ports(text: &str) -> Result<PortRange, Finding> {
    if text == "*" {
        return Ok(PortRange::ANY);
    }
    let bad = |why: &str| {
        Finding::new(Code::PortInvalid, format!("`{text}` is not a port: {why}"))
            .at(Span::new(0, text.len()))
            .help("write a number from 1 to 65535, a range such as `8000-8999`, or `*`")
    };
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let one = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse::<u16>().ok()).flatten().filter(|port| *port != 0)
    };
    match (one(low), one(high)) {
        (Some(low), Some(high)) if low <= high => Ok(PortRange { low, high }),
        (Some(_), Some(_)) => Err(bad("the range runs backwards")),
        _ => Err(bad("it is not a number from 1 to 65535")),
    }
}
