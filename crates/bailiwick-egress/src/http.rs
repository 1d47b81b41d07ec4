//! HTTP/1 requests, read so strictly that no server can read them in another way.
//!
//! `httparse` finds the parts of a head; here they are judged: one `Host`, one way to tell where the body ends, lines
//! that end in CRLF and are not folded, chunks without extensions or trailers. Responses are not read.

use bailiwick_policy::net::Host;

use crate::code::Code;
use crate::hello::Request;

/// The longest head.
pub(crate) const MAX_HEAD: usize = 32 * 1024;
const MAX_FIELDS: usize = 100;
/// Sixteen hex digits and CRLF.
const MAX_CHUNK_LINE: usize = 18;
/// What a client that speaks HTTP/2 without TLS says first.
const HTTP2: &[u8] = b"PRI * HTTP/2";

/// The fields that decide where a request goes and where it ends.
const DECISIVE: [&str; 3] = ["host", "content-length", "transfer-encoding"];
/// Fields by which frameworks and proxies let a client name another method or path than the request line does.
const OVERRIDING: [&str; 10] = [
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-method",
    "x-original-url",
    "x-original-uri",
    "x-rewrite-url",
    "x-forwarded-uri",
    "x-forwarded-path",
    "x-forwarded-method",
];

/// What was read of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// It is not complete.
    More,
    /// All of it.
    Head(Head),
    /// It is refused; `ProtocolNotGranted` if it is not HTTP at all.
    Bad(Code),
}

/// A head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The request.
    pub request: Request,
    /// How many bytes it takes.
    pub length: usize,
    /// How its body is framed.
    pub body: Body,
}

/// How a body is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// So many bytes; often none.
    Length(u64),
    /// In chunks.
    Chunked,
}

/// Reads a head from the front of `bytes`.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed {
    match read(bytes, origin) {
        Ok(Some((length, (request, body)))) => Parsed::Head(Head { request, length, body }),
        Ok(None) => Parsed::More,
        Err(code) => Parsed::Bad(code),
    }
}

/// Reads a complete head and gives its parts to `judge`; `None` if it is not complete.
pub(crate) fn read<T>(
    bytes: &[u8],
    judge: impl FnOnce(&httparse::Request<'_, '_>) -> Result<T, Code>,
) -> Result<Option<(usize, T)>, Code> {
    if bytes.starts_with(HTTP2) {
        return Err(Code::HttpTunnel);
    }
    if bytes.first().is_some_and(|byte| !byte.is_ascii_alphabetic()) {
        return Err(Code::ProtocolNotGranted);
    }
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD => Ok(None),
        Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD => {
            if !plain_lines(bytes.get(..length).unwrap_or_default()) {
                return Err(Code::HttpUnreadable);
            }
            judge(&request).map(|judged| Some((length, judged)))
        }
        Ok(_) => Err(Code::HttpUnreadable),
        Err(_) if says_http(bytes) => Err(Code::HttpUnreadable),
        Err(_) => Err(Code::ProtocolNotGranted),
    }
}

/// Whether CR and LF stand together only: some servers end a line at either.
fn plain_lines(head: &[u8]) -> bool {
    let ends = head.windows(2).filter(|pair| *pair == b"\r\n").count();
    let count = |wanted: u8| head.iter().filter(|byte| **byte == wanted).count();
    ends == count(b'\r') && ends == count(b'\n')
}

fn says_http(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.windows(6).any(|word| word == b" HTTP/")
}

/// A request to the server itself.
fn origin(request: &httparse::Request<'_, '_>) -> Result<(Request, Body), Code> {
    let (method, target) = line(request)?;
    let fields = Fields::from_request(request)?;
    let (host, port) = authority(fields.host)?;
    let path = match absolute(target) {
        None if target.starts_with('/') || (target == "*" && method == "OPTIONS") => target,
        None => return Err(Code::HttpUnreadable),
        Some((named, path)) => {
            let (other, other_port) = authority(named)?;
            if other != host || other_port.unwrap_or(80) != port.unwrap_or(80) {
                return Err(Code::HttpHostOther);
            }
            path
        }
    };
    let request =
        Request { method: method.into(), host, port, path: path.into(), overridden: fields.overridden };
    Ok((request, fields.body))
}

/// Method and target; tunnels and what is no plain ASCII are refused.
pub(crate) fn line<'a>(request: &httparse::Request<'_, 'a>) -> Result<(&'a str, &'a str), Code> {
    let (Some(method), Some(target)) = (request.method, request.path) else {
        return Err(Code::HttpUnreadable);
    };
    if method.eq_ignore_ascii_case("CONNECT") {
        return Err(Code::HttpTunnel);
    }
    let plain = target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if plain { Ok((method, target)) } else { Err(Code::HttpUnreadable) }
}

/// The authority and the path of an absolute target with the scheme `http`.
pub(crate) fn absolute(target: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = target.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") {
        return None;
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    Some((authority, if path.starts_with('/') { path } else { "/" })).filter(|_| !path.starts_with('?'))
}

/// The host and the port of `host[:port]`.
pub(crate) fn authority(text: &str) -> Result<(Host, Option<u16>), Code> {
    let bracket = text.rfind(']').unwrap_or(0);
    let colon = text.rfind(':').filter(|colon| *colon > bracket);
    let (host, port) = match colon.and_then(|colon| text.split_at_checked(colon)) {
        Some((host, port)) => (host, Some(port.trim_start_matches(':'))),
        None => (text, None),
    };
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
    let port = match port {
        None => None,
        Some(port) => Some(port.parse().ok().filter(|_| digits(port)).ok_or(Code::HttpUnreadable)?),
    };
    let v6_bare = host.contains(':') && !host.starts_with('[');
    let host = Host::new(host).ok().filter(|_| !v6_bare).ok_or(Code::HttpUnreadable)?;
    Ok((host, port))
}

/// The fields that decide where a request goes and where it ends.
pub(crate) struct Fields<'a> {
    pub(crate) host: &'a str,
    pub(crate) body: Body,
    pub(crate) overridden: bool,
}

impl<'a> Fields<'a> {
    pub(crate) fn from_request(request: &httparse::Request<'_, 'a>) -> Result<Self, Code> {
        let host = only(request, "host")?.ok_or(Code::HttpUnreadable)?;
        let length = only(request, "content-length")?;
        let coding = only(request, "transfer-encoding")?;
        let version_1_1 = request.version == Some(1);
        let body = match (length, coding) {
            (None, None) => Body::Length(0),
            (Some(length), None) => Body::Length(content_length(length)?),
            (None, Some(coding)) if coding.eq_ignore_ascii_case("chunked") && version_1_1 => Body::Chunked,
            (_, Some(_)) => return Err(Code::HttpUnreadable),
        };
        let connection: Vec<&str> = only(request, "connection")?.unwrap_or_default().split(',').collect();
        let named = |name: &str| connection.iter().any(|token| token.trim().eq_ignore_ascii_case(name));
        // A proxy in between would drop the fields that are named here.
        if DECISIVE.iter().any(|name| named(name)) {
            return Err(Code::HttpUnreadable);
        }
        if named("upgrade")
            || only(request, "upgrade")?.is_some()
            || only(request, "http2-settings")?.is_some()
        {
            return Err(Code::HttpTunnel);
        }
        let overridden = request.headers.iter().any(|field| is_one_of(field.name, &OVERRIDING));
        Ok(Self { host, body, overridden })
    }
}

/// Whether a field is one of these, in capitals or not, with `_` for `-` or not: gateways take them for the same.
fn is_one_of(field: &str, names: &[&str]) -> bool {
    let field = field.replace('_', "-");
    names.iter().any(|name| field.eq_ignore_ascii_case(name))
}

/// The value of a field that may be there once, and in its own spelling only.
fn only<'a>(request: &httparse::Request<'_, 'a>, name: &str) -> Result<Option<&'a str>, Code> {
    let mut values = request.headers.iter().filter(|field| is_one_of(field.name, &[name]));
    let first = values.next();
    if values.next().is_some() || first.is_some_and(|field| field.name.contains('_')) {
        return Err(Code::HttpUnreadable);
    }
    first.map(|field| std::str::from_utf8(field.value).map_err(|_| Code::HttpUnreadable)).transpose()
}

fn content_length(text: &str) -> Result<u64, Code> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or(Code::HttpUnreadable)
}

/// Follows a body to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing(Part);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Plain(u64),
    Size,
    Chunk(u64),
    ChunkEnd,
    LastEnd,
    Done,
}

impl Framing {
    /// At the start of a body.
    #[must_use]
    pub const fn new(body: Body) -> Self {
        match body {
            Body::Length(0) => Self(Part::Done),
            Body::Length(length) => Self(Part::Plain(length)),
            Body::Chunked => Self(Part::Size),
        }
    }

    /// Whether the body is at its end.
    #[must_use]
    pub fn is_done(self) -> bool {
        self.0 == Part::Done
    }

    /// How many of the bytes are of the body for certain; the rest needs more bytes, or is behind its end.
    ///
    /// # Errors
    /// If the body is malformed.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<usize, Code> {
        let mut taken = 0;
        while !self.is_done() {
            let rest = bytes.get(taken..).unwrap_or_default();
            let Some(step) = self.step(rest)? else { break };
            taken += step;
        }
        Ok(taken)
    }

    fn step(&mut self, rest: &[u8]) -> Result<Option<usize>, Code> {
        let have = u64::try_from(rest.len()).unwrap_or(u64::MAX);
        let (next, taken) = match self.0 {
            Part::Done => return Ok(None),
            Part::Plain(left) | Part::Chunk(left) if have < left => {
                if rest.is_empty() {
                    return Ok(None);
                }
                let less = left - have;
                (
                    if matches!(self.0, Part::Plain(_)) { Part::Plain(less) } else { Part::Chunk(less) },
                    rest.len(),
                )
            }
            Part::Plain(left) => (Part::Done, usize::try_from(left).map_err(|_| Code::HttpUnreadable)?),
            Part::Chunk(left) => (Part::ChunkEnd, usize::try_from(left).map_err(|_| Code::HttpUnreadable)?),
            Part::ChunkEnd | Part::LastEnd => match rest {
                [b'\r', b'\n', ..] => (if self.0 == Part::LastEnd { Part::Done } else { Part::Size }, 2),
                [] | [b'\r'] => return Ok(None),
                _ => return Err(Code::HttpUnreadable),
            },
            Part::Size => match chunk_size(rest)? {
                None => return Ok(None),
                Some((0, taken)) => (Part::LastEnd, taken),
                Some((size, taken)) => (Part::Chunk(size), taken),
            },
        };
        self.0 = next;
        Ok(Some(taken))
    }
}

/// The size of a chunk and how many bytes its line takes.
fn chunk_size(rest: &[u8]) -> Result<Option<(u64, usize)>, Code> {
    match httparse::parse_chunk_size(rest) {
        Err(_) => Err(Code::HttpUnreadable),
        Ok(httparse::Status::Partial) if rest.len() < MAX_CHUNK_LINE => Ok(None),
        Ok(httparse::Status::Partial) => Err(Code::HttpUnreadable),
        Ok(httparse::Status::Complete((taken, size))) => {
            let digits = rest.get(..taken.saturating_sub(2)).unwrap_or_default();
            let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
            if plain { Ok(Some((size, taken))) } else { Err(Code::HttpUnreadable) }
        }
    }
}

#[cfg(test)]
mod tests;
