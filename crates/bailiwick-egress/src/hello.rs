//! What a client says first: a TLS client hello, the head of an HTTP request, or something else.
//!
//! Bytes are fed as they come, in pieces of any size. TLS is read by rustls, which takes nothing malformed; that a
//! hello hides its name is seen by a second parser, because rustls does not tell. A parser that cannot go on ends in
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
    pub fn hear(&mut self, piece: &[u8]) -> Option<Hello> {
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
                    let name = accepted.client_hello().server_name().map(Box::from);
                    let Some(hidden) = hides_name(&self.bytes) else { return unreadable };
                    return Some(Hello::Tls { name, hidden });
                }
            }
        }
        None
    }
}

/// Whether a complete client hello has an extension for hiding names; `None` if it cannot be told.
fn hides_name(mut records: &[u8]) -> Option<bool> {
    let mut message = Vec::new();
    loop {
        let (rest, record) = tls_parser::parse_tls_raw_record(records).ok()?;
        if record.hdr.record_type != TlsRecordType::Handshake {
            return None;
        }
        message.extend_from_slice(record.data);
        records = rest;
        let hello = match tls_parser::parse_tls_message_handshake(&message) {
            Ok((_, TlsMessage::Handshake(TlsMessageHandshake::ClientHello(hello)))) => hello,
            Ok(_) => return None,
            Err(incomplete) if incomplete.is_incomplete() => continue,
            Err(_) => return None,
        };
        return extension_types(hello.ext.unwrap_or_default())
            .map(|types| types.iter().any(|kind| HIDING.contains(kind)));
    }
}

fn extension_types(mut bytes: &[u8]) -> Option<Vec<u16>> {
    let mut types = Vec::new();
    while !bytes.is_empty() {
        let (rest, extension) = tls_parser::parse_tls_extension_unknown(bytes).ok()?;
        let TlsExtension::Unknown(kind, _) = extension else { return None };
        types.push(kind.0);
        bytes = rest;
    }
    Some(types)
}

#[cfg(test)]
mod tests;
