//! HTTP as far as a capability speaks of it: schemes and methods. Paths are in `url_path`.

use std::fmt;

use crate::finding::{Code, Finding, Span};

/// `http` or `https`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP inside TLS.
    Https,
}

impl Scheme {
    /// Both, in order.
    pub const ALL: [Self; 2] = [Self::Http, Self::Https];

    /// The text before `://`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port a URL without one means.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Http => 1,
            Self::Https => 2,
        }
    }
}

/// A set of schemes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Schemes(u8);

impl Schemes {
    /// The set of these.
    #[must_use]
    pub fn from_list(schemes: &[Scheme]) -> Self {
        Self(schemes.iter().fold(0, |bits, scheme| bits | scheme.bit()))
    }

    /// Whether `scheme` is in the set.
    #[must_use]
    pub const fn contains(self, scheme: Scheme) -> bool {
        self.0 & scheme.bit() != 0
    }

    pub(super) const fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) const fn meet(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members, in order.
    pub fn iter(self) -> impl Iterator<Item = Scheme> {
        Scheme::ALL.into_iter().filter(move |scheme| self.contains(*scheme))
    }
}

/// The methods a capability may name. `CONNECT` is not among them: it opens a tunnel.
const METHODS: [&str; 18] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "QUERY",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
    "SEARCH",
];

/// One HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Method(u8);

impl Method {
    /// Every method that a capability may name.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..18).map(Self)
    }

    /// Reads a method, in any case.
    ///
    /// # Errors
    /// A finding if it is not one that a capability may name.
    pub fn new(text: &str) -> Result<Self, Finding> {
        let known = Self::all().find(|method| method.as_str().eq_ignore_ascii_case(text));
        known.ok_or_else(|| {
            Finding::new(Code::MethodUnknown, format!("`{text}` is not an HTTP method that can be granted"))
                .at(Span::new(0, text.len()))
                .help("write methods such as `GET` or `GET,POST`, or `*` for all")
        })
    }

    /// Its name, in capitals.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        METHODS.get(usize::from(self.0)).copied().unwrap_or_default()
    }
}

/// A set of methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Methods(u32);

impl Methods {
    /// All of them.
    pub const ALL: Self = Self((1 << 18) - 1);

    /// The set of these.
    pub fn from_methods(methods: impl IntoIterator<Item = Method>) -> Self {
        Self(methods.into_iter().fold(0, |bits, method| bits | (1 << method.0)))
    }

    /// Whether `method` is in the set.
    #[must_use]
    pub const fn contains(self, method: Method) -> bool {
        self.0 & (1 << method.0) != 0
    }

    pub(super) const fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) const fn meet(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members, in order.
    pub fn iter(self) -> impl Iterator<Item = Method> {
        Method::all().filter(move |method| self.contains(*method))
    }
}

impl fmt::Display for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return f.write_str("*");
        }
        for (index, method) in self.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{}", method.as_str())?;
        }
        Ok(())
    }
}

/// The bytes that a text with percent escapes stands for; `None` if an escape is malformed.
#[must_use]
pub fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut nibble = || bytes.next().and_then(|digit| char::from(digit).to_digit(16));
        let escaped = nibble().zip(nibble()).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        decoded.push(escaped?);
    }
    Some(decoded)
}
