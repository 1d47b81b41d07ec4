//! What a client says first: a TLS client hello, the head of an HTTP request, or something else.
//!
//! Bytes are fed as they come, in pieces of any size. TLS is read by rustls, which takes nothing malformed, and again by
//! a second parser: rustls does not tell that a hello hides its name, nor that it names an address. A parser that cannot go on ends in
//! `Unreadable` or `Other`, never in a guess.

use std::io::Read as _;

use bailiwick_policy::net::Host;
use rustls::server::Acceptor;
use tls_parser::{TlsExtension, TlsMessage, TlsMessageHandshake, TlsRecordType};

use crate::code::Code;
use crate::http::{self, Parsed};

/// The most that is read before it must be clear what is spoken.
pub(crate) const MAX_HELLO: usize = 64 * 1024;

/// The first byte of a TLS record that carries a handshake.
const TLS_HANDSHAKE: u8 = 22;

/// The extension for names, and the kind of name that is a host's.
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// Encrypted client hello, and the draft that came before it. Clients that have nothing to hide send the same
/// extension with random content, on purpose indistinguishable.
const HIDING: [u16; 2] = [0xfe0d, 0xffce];

/// What a client says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello {
    /// TLS.
    Tls {
        /// The server it names.
        name: Option<Box<str>>,
        /// Whether it hides, or pretends to hide, the name it really means.
        hidden: bool,
    },
    /// Plain HTTP/1.
    Http(Request),
    /// TLS or HTTP that is refused whatever is granted short of raw bytes.
    Unreadable(Code),
    /// Neither TLS nor HTTP.
    Other,
}

/// An HTTP request, as far as it is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method, as it was sent.
    pub method: Box<str>,
    /// Whom the request names, in its `Host` and, if that is an absolute URL, its target.
    pub host: Host,
    /// The port it names.
    pub port: Option<u16>,
    /// The target without scheme and authority.
    pub path: Box<str>,
    /// Whether a field names another method or path, which some servers take for the request's own.
    pub overridden: bool,
}

/// Reads first words, piece by piece.
#[derive(Default)]
pub struct Listening {
    bytes: Vec<u8>,
    acceptor: Option<Acceptor>,
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Listening({} bytes)", self.bytes.len())
    }
}

impl Listening {
    /// Takes the next piece; an answer as soon as there is one.
    pub fn read_piece(&mut self, piece: &[u8]) -> Option<Hello> {
        self.bytes.extend_from_slice(piece);
        let heard = match self.bytes.first() {
            None => None,
            Some(&TLS_HANDSHAKE) => self.hear_tls(piece),
            Some(_) => match http::parse(&self.bytes) {
                Parsed::More => None,
                Parsed::Head(head) => Some(Hello::Http(head.request)),
                Parsed::Bad(Code::ProtocolNotGranted) => Some(Hello::Other),
                Parsed::Bad(code) => Some(Hello::Unreadable(code)),
            },
        };
        let full = (self.bytes.len() >= MAX_HELLO).then_some(Hello::Unreadable(Code::HelloLate));
        heard.or(full)
    }

    /// Everything that was said.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn hear_tls(&mut self, mut piece: &[u8]) -> Option<Hello> {
        let unreadable = Some(Hello::Unreadable(Code::TlsUnreadable));
        let acceptor = self.acceptor.get_or_insert_with(Acceptor::default);
        while !piece.is_empty() {
            if acceptor.read_tls(&mut piece.by_ref()).is_err() {
                return unreadable;
            }
            match acceptor.accept() {
                Ok(None) => {}
                Err(_) => return unreadable,
                Ok(Some(accepted)) => {
                    let named = accepted.client_hello().server_name().map(str::to_owned);
                    return read_again(&self.bytes, named.as_deref()).or(unreadable);
                }
            }
        }
        None
    }
}

/// Reads a complete client hello a second time: the name as it was sent, and whether there is an extension for hiding
/// names. `None` if the two readings differ, or if something follows in the hello's last record: a server might take
/// that for a second hello.
fn read_again(records: &[u8], named: Option<&str>) -> Option<Hello> {
    let (_, message) = first_message(records)?;
    let (rest, parsed) = tls_parser::parse_tls_message_handshake(&message).ok()?;
    let TlsMessage::Handshake(TlsMessageHandshake::ClientHello(hello)) = parsed else { return None };
    if !rest.is_empty() {
        return None;
    }
    let extensions = extensions(hello.ext.unwrap_or_default())?;
    let hidden = extensions.iter().any(|(kind, _)| HIDING.contains(kind));
    let name = match extensions.iter().find(|(kind, _)| *kind == SERVER_NAME) {
        Some((_, list)) => Some(only_name(list)?),
        None => None,
    };
    // rustls gives no name where an address was sent; the address is a name all the same.
    let same = named.is_none_or(|named| name.as_deref().is_some_and(|sent| sent.eq_ignore_ascii_case(named)));
    same.then_some(Hello::Tls { name, hidden })
}

/// The first handshake message, which may be in several records, and how many bytes its records take.
pub(crate) fn first_message(mut records: &[u8]) -> Option<(usize, Vec<u8>)> {
    let (whole, mut message) = (records.len(), Vec::new());
    loop {
        let (rest, record) = tls_parser::parse_tls_raw_record(records).ok()?;
        if record.hdr.record_type != TlsRecordType::Handshake {
            return None;
        }
        message.extend_from_slice(record.data);
        records = rest;
        match tls_parser::parse_tls_message_handshake(&message) {
            Ok(_) => return Some((whole - rest.len(), message)),
            Err(incomplete) if incomplete.is_incomplete() => {}
            Err(_) => return None,
        }
    }
}

/// The one host name in the extension for names.
fn only_name(list: &[u8]) -> Option<Box<str>> {
    let [high, low, HOST_NAME, long, short, name @ ..] = list else { return None };
    let lengths = [u16::from_be_bytes([*high, *low]), u16::from_be_bytes([*long, *short])].map(usize::from);
    let exact = lengths == [list.len() - 2, name.len()];
    std::str::from_utf8(name).ok().filter(|_| exact).map(Box::from)
}

fn extensions(mut bytes: &[u8]) -> Option<Vec<(u16, &[u8])>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (rest, extension) = tls_parser::parse_tls_extension_unknown(bytes).ok()?;
        let TlsExtension::Unknown(kind, data) = extension else { return None };
        all.push((kind.0, data));
        bytes = rest;
    }
    Some(all)
}

#[cfg(test)]
mod tests;
