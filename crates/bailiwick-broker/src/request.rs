//! What becomes of a request: values take the places of placeholders, or it is refused.
//!
//! A placeholder is taken only where its secret is used: in fields for credentials, as user or password of Basic, and in
//! parameters, form fields and JSON members that the manifest names. Found anywhere else, in whatever form, it refuses the
//! request. So does a credential of the client's own, and a request that the secret's rules do not cover.
//!
//! Residual: a credential of the client's own in a body or in the path, under a name that is not used for credentials, or beside a placeholder
//! and as short as a user's name.

use bailiwick_egress::{Code, Refusal, Target};
use bailiwick_policy::net::percent_decoded;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, COOKIE, HeaderValue};
use zeroize::Zeroizing;

use crate::session::{OpenSecret, OpenSession};

/// Fields that hold credentials, whatever the manifest says.
const CREDENTIALS: [&str; 20] = [
    "authorization",
    "x-api-key",
    "x-api-token",
    "api-key",
    "apikey",
    "x-auth-token",
    "x-access-token",
    "private-token",
    "deploy-token",
    "job-token",
    "x-subscription-token",
    "ocp-apim-subscription-key",
    "x-functions-key",
    "x-figma-token",
    "x-shopify-access-token",
    "x-vault-token",
    "dd-api-key",
    "dd-application-key",
    "x-goog-api-key",
    "x-amz-security-token",
];
/// Parameters of a query that hold credentials, whatever the manifest says.
const PARAMETERS: [&str; 17] = [
    "access_token",
    "awsaccesskeyid",
    "googleaccessid",
    "sig",
    "api_key",
    "apikey",
    "api-key",
    "auth_token",
    "private_token",
    "client_secret",
    "oauth_token",
    "password",
    "x-amz-signature",
    "x-amz-credential",
    "x-amz-security-token",
    "x-goog-signature",
    "x-goog-credential",
];

/// Beside a placeholder, this many letters and digits in a row are a credential of the client's own. Names of users that
/// services ask for there (`x-access-token`, `oauth2accesstoken`) are shorter.
const CREDENTIAL_LENGTH: usize = 20;
/// The secrets that a request is given.
#[derive(Default)]
pub(crate) struct Used<'a>(Vec<&'a OpenSecret>);

impl<'a> Used<'a> {
    pub(crate) fn note(&mut self, secret: &'a OpenSecret) {
        if !self.0.iter().any(|own| own.name == secret.name) {
            self.0.push(secret);
        }
    }

    /// Their names.
    pub(crate) fn names(&self) -> Vec<Box<str>> {
        self.0.iter().map(|secret| secret.name.clone()).collect()
    }
}

/// Puts values into a request to one host.
pub(crate) struct Filling<'a> {
    pub(crate) session: &'a OpenSession,
    pub(crate) target: &'a Target,
    pub(crate) used: Used<'a>,
}

impl<'a> Filling<'a> {
    /// Those that are put into requests; one that signs them is not.
    fn secrets(&self) -> impl Iterator<Item = &'a OpenSecret> + use<'a> {
        self.session.secrets_for(self.target).filter(|secret| secret.usage.sign.is_none())
    }

    /// The one that signs requests.
    pub(crate) fn signing(&self) -> Option<&'a OpenSecret> {
        self.session.secrets_for(self.target).find(|secret| secret.usage.sign.is_some())
    }

    /// Whether the client may send credentials of its own.
    fn lets_foreign(&self) -> bool {
        self.session.secrets_for(self.target).any(|secret| secret.usage.foreign)
    }

    fn misdirected() -> Refusal {
        Refusal::new(Code::SecretMisdirected)
    }

    /// Refuses what has a placeholder in any form.
    pub(crate) fn has_none(&self, bytes: &[u8]) -> Result<(), Refusal> {
        if self.session.placeholders.is_in(bytes) { Err(Self::misdirected()) } else { Ok(()) }
    }

    /// The fields of the head. A signature that is made anew is not one of them.
    pub(crate) fn headers(&mut self, headers: &mut HeaderMap, is_signed: bool) -> Result<(), Refusal> {
        for (name, value) in headers.iter_mut() {
            if is_signed && *name == AUTHORIZATION {
                continue;
            }
            self.has_none(name.as_str().as_bytes())?;
            let usual = CREDENTIALS.contains(&name.as_str());
            let own = self.secrets().any(|secret| secret.usage.headers.contains(name.as_str()));
            if !usual && !own {
                self.has_none(value.as_bytes())?;
                if *name == COOKIE && !self.lets_foreign() {
                    return Err(Refusal::new(Code::SecretForeign));
                }
                continue;
            }
            let is_basic = *name == AUTHORIZATION && is_basic(value.as_bytes());
            let filled = if is_basic {
                self.basic(value.as_bytes())?
            } else {
                self.plain(value.as_bytes(), name.as_str())?
            };
            match filled {
                Some(filled) => {
                    *value =
                        HeaderValue::from_bytes(&filled).map_err(|_| Refusal::new(Code::SecretRequest))?;
                    value.set_sensitive(true);
                }
                None if value.is_empty() || self.lets_foreign() => {}
                None => return Err(Refusal::new(Code::SecretForeign)),
            }
        }
        Ok(())
    }

    /// A text in which placeholders stand as they are; `None` if there is none.
    pub(crate) fn plain(&mut self, text: &[u8], field: &str) -> Result<Option<Zeroizing<Vec<u8>>>, Refusal> {
        let usual = CREDENTIALS.contains(&field) || field.is_empty();
        let mut filled: Option<Zeroizing<Vec<u8>>> = None;
        for secret in self.secrets().filter(|secret| usual || secret.usage.headers.contains(field)) {
            let now = filled.as_deref().map_or(text, Vec::as_slice);
            if let Some(more) = replaced(now, secret.placeholder.as_bytes(), secret.value().expose()) {
                filled = Some(more);
                self.used.note(secret);
            }
        }
        // Of another host, or in another form than this one.
        match &filled {
            None => self.has_none(text)?,
            Some(filled) => {
                self.has_none(filled)?;
                self.stands_alone(text)?;
            }
        }
        Ok(filled)
    }

    /// Refuses a text in which a placeholder is glued to other letters or digits: the client would choose where the value begins
    /// in what a server shows of it.
    fn has_none_glued(&self, text: &[u8]) -> Result<(), Refusal> {
        let is_glued = |secret: &OpenSecret| {
            let (own, length) = (secret.placeholder.as_bytes(), secret.placeholder.len());
            let is_word =
                |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(u8::is_ascii_alphanumeric);
            let mut places = text.windows(length).enumerate().filter(|(_, window)| *window == own);
            places.any(|(at, _)| is_word(at.checked_sub(1)) || is_word(Some(at + length)))
        };
        if self.secrets().any(is_glued) { Err(Self::misdirected()) } else { Ok(()) }
    }

    /// Refuses a text with a credential of the client's own beside placeholders.
    fn stands_alone(&self, text: &[u8]) -> Result<(), Refusal> {
        self.has_none_glued(text)?;
        let mut rest = Zeroizing::new(text.to_vec());
        for secret in self.secrets() {
            if let Some(shorter) = replaced(&rest, secret.placeholder.as_bytes(), b" ") {
                rest = shorter;
            }
        }
        let is_credential = |run: &[u8]| run.len() >= CREDENTIAL_LENGTH;
        if !self.lets_foreign() && rest.split(|byte| !byte.is_ascii_alphanumeric()).any(is_credential) {
            return Err(Refusal::new(Code::SecretForeign));
        }
        Ok(())
    }

    fn basic(&mut self, value: &[u8]) -> Result<Option<Zeroizing<Vec<u8>>>, Refusal> {
        let encoded = value.get(BASIC.len()..).unwrap_or_default().trim_ascii();
        let decoded = STANDARD.decode(encoded).map(Zeroizing::new);
        let decoded = decoded.map_err(|_| Refusal::new(Code::SecretRequest))?;
        let Some(filled) = self.plain(&decoded, "")? else { return Ok(None) };
        let encoded = Zeroizing::new(STANDARD.encode(&*filled));
        Ok(Some(Zeroizing::new([BASIC, encoded.as_bytes()].concat())))
    }

    /// The target of the request: path and query.
    pub(crate) fn target(&mut self, target: &str) -> Result<Zeroizing<String>, Refusal> {
        let (path, query) = match target.split_once('?') {
            None => (target, None),
            Some((path, query)) => (path, Some(query)),
        };
        self.has_none(path.as_bytes())?;
        let Some(query) = query else { return Ok(Zeroizing::new(path.to_owned())) };
        let query = self.pairs(query, |usage| &usage.query, true)?;
        Ok(Zeroizing::new(format!("{path}?{}", *query)))
    }

    /// The body of a form.
    pub(crate) fn form(&mut self, body: &[u8]) -> Result<Bytes, Refusal> {
        let text = std::str::from_utf8(body).map_err(|_| Refusal::new(Code::SecretRequest))?;
        let filled = self.pairs(text, |usage| &usage.form, false)?;
        Ok(Bytes::copy_from_slice(filled.as_bytes()))
    }

    /// Names and values with percent signs, separated by `&`.
    fn pairs(
        &mut self,
        text: &str,
        names: fn(&bailiwick_policy::secret_use::SecretUse) -> &std::collections::BTreeSet<String>,
        is_query: bool,
    ) -> Result<Zeroizing<String>, Refusal> {
        let mut filled = Zeroizing::new(String::with_capacity(text.len() * 3));
        for (index, pair) in text.split('&').enumerate() {
            if index > 0 {
                filled.push('&');
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plain = |text: &str| percent_decoded(&text.replace('+', " "));
            let known = plain(name).and_then(|name| String::from_utf8(name).ok()).unwrap_or_default();
            let value = plain(value).unwrap_or_default();
            let mut secrets = self.secrets().filter(|secret| names(&secret.usage).contains(&known));
            if let Some(secret) = secrets.find(|secret| secret.placeholder.as_bytes() == value.as_slice()) {
                self.used.note(secret);
                filled.push_str(name);
                filled.push('=');
                percent_encode(secret.value().expose(), &mut filled);
                continue;
            }
            self.has_none(pair.as_bytes())?;
            let is_credential = is_query && PARAMETERS.contains(&known.to_ascii_lowercase().as_str());
            if is_credential && !value.is_empty() && !self.lets_foreign() {
                return Err(Refusal::new(Code::SecretForeign));
            }
            filled.push_str(pair);
        }
        Ok(filled)
    }

    /// A body that is a JSON object: members of its own that are placeholders.
    pub(crate) fn json(&mut self, body: &[u8]) -> Result<Bytes, Refusal> {
        let unreadable = || Refusal::new(Code::SecretRequest);
        let mut value: serde_json::Value = serde_json::from_slice(body).map_err(|_| unreadable())?;
        let Some(members) = value.as_object_mut() else {
            self.has_none(body)?;
            return Ok(Bytes::copy_from_slice(body));
        };
        let mut changed = false;
        for (name, member) in members.iter_mut() {
            let mut secrets = self.secrets().filter(|secret| secret.usage.json.contains(name));
            if let Some(secret) = secrets.find(|secret| member.as_str() == Some(&secret.placeholder)) {
                self.used.note(secret);
                let value = secret.value();
                *member = std::str::from_utf8(value.expose()).map_err(|_| unreadable())?.into();
                changed = true;
            }
        }
        let filled = if changed { Bytes::from(value.to_string()) } else { Bytes::copy_from_slice(body) };
        self.has_none(&filled)?;
        Ok(filled)
    }

    /// The first message of a WebSocket: a placeholder of a secret that is used there becomes its value.
    pub(crate) fn first_message(&mut self, text: &[u8]) -> Result<Option<Zeroizing<Vec<u8>>>, Refusal> {
        let mut filled: Option<Zeroizing<Vec<u8>>> = None;
        let is_json = serde_json::from_slice::<serde_json::Value>(text).is_ok();
        for secret in self.secrets().filter(|secret| secret.usage.websocket) {
            let now = filled.as_deref().map_or(text, Vec::as_slice);
            let value = secret.value();
            let escaped = Zeroizing::new(json_escaped(value.expose()));
            let value = if is_json { escaped.as_bytes() } else { value.expose() };
            if let Some(more) = replaced(now, secret.placeholder.as_bytes(), value) {
                filled = Some(more);
                self.used.note(secret);
            }
        }
        self.has_none(filled.as_deref().map_or(text, Vec::as_slice))?;
        self.has_none_glued(text)?;
        Ok(filled)
    }

    /// Whether bodies of a kind are read as a whole, because a value may have to be put in.
    pub(crate) fn fills(&self, kind: BodyKind) -> bool {
        self.secrets().any(|secret| match kind {
            BodyKind::Form => !secret.usage.form.is_empty(),
            BodyKind::Json => !secret.usage.json.is_empty(),
        })
    }
}

/// A body that values can be put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Form,
    Json,
}

impl BodyKind {
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let kind = headers.get(hyper::header::CONTENT_TYPE)?.to_str().ok()?;
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "application/x-www-form-urlencoded" => Some(Self::Form),
            "application/json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// A text as JSON has it between quotation marks: values are printable ASCII.
pub(crate) fn json_escaped(value: &[u8]) -> String {
    let mut escaped = String::with_capacity(value.len() * 2);
    for byte in value {
        if matches!(byte, b'"' | b'\\') {
            escaped.push('\\');
        }
        escaped.push(char::from(*byte));
    }
    escaped
}

const BASIC: &[u8] = b"Basic ";

fn is_basic(value: &[u8]) -> bool {
    value.get(..BASIC.len()).is_some_and(|start| start.eq_ignore_ascii_case(BASIC))
}

/// A text with each `from` replaced; `None` if there is none.
fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let mut done = Zeroizing::new(Vec::with_capacity(text.len() + to.len()));
    let (mut rest, mut any) = (text, false);
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix(from) {
            done.extend_from_slice(to);
            (rest, any) = (behind, true);
        } else if let Some((byte, behind)) = rest.split_first() {
            done.push(*byte);
            rest = behind;
        }
    }
    any.then_some(done)
}

pub(crate) fn percent_encode(value: &[u8], into: &mut String) {
    for byte in value {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            into.push(char::from(*byte));
        } else {
            into.push('%');
            for nibble in [byte >> 4, byte & 15] {
                into.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0').to_ascii_uppercase());
            }
        }
    }
}
