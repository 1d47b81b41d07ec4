//! Requests that are signed for AWS (Signature Version 4): signed inside with a placeholder, signed anew here with the value.
//!
//! The signature of the client is checked with the placeholder first: it shows that this request, with these fields, was to be
//! signed with this secret. Then the same fields are signed with the value, as they are after other placeholders were
//! replaced. Region, service and date are the client's own.
//!
//! Fails closed when the signature is not one by the placeholder, is not over the host, or signs a body piece by piece.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use bailiwick_egress::{Code, Refusal};
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use time::{Date, Month, PrimitiveDateTime, Time};
use zeroize::Zeroizing;

use crate::connection::field;
use crate::request::Filling;
use crate::session::OpenSecret;

const SCHEME: &str = "AWS4-HMAC-SHA256 ";
/// Bodies that are signed piece by piece, each piece with a signature of its own.
const PIECEWISE: &str = "STREAMING-AWS4-";
/// The field that says what of the body is signed.
const BODY_HASH: &str = "x-amz-content-sha256";

/// A request with a signature.
pub(crate) struct SignedRequest<'a> {
    secret: &'a OpenSecret,
    method: String,
    url: String,
    /// As the client signed them.
    headers: HeaderMap,
    /// Nothing where the signature cannot be read.
    signature: Option<Signature>,
}

struct Signature {
    key_id: String,
    region: String,
    service: String,
    time: SystemTime,
    /// The fields that are signed.
    fields: Vec<String>,
    hex: String,
    /// What stands for the body; nothing if the body itself counts.
    body_hash: Option<String>,
}

impl<'a> SignedRequest<'a> {
    /// The request, if it has such a signature and one of the secrets signs.
    pub(crate) fn read(parts: &Parts, authority: &str, secret: Option<&'a OpenSecret>) -> Option<Self> {
        let secret = secret?;
        let text = field(&parts.headers, "authorization")?.strip_prefix(SCHEME)?;
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        Some(Self {
            secret,
            method: parts.method.as_str().to_owned(),
            url: format!("https://{authority}{path}"),
            headers: parts.headers.clone(),
            signature: Signature::read(text, &parts.headers),
        })
    }

    /// Whether the body has to be there to sign.
    pub(crate) fn covers_body(&self) -> bool {
        self.signature.as_ref().is_some_and(|signature| signature.body_hash.is_none())
    }

    /// Puts the signature by the value into the place of that by the placeholder.
    pub(crate) fn sign_anew(
        self,
        parts: &mut Parts,
        filling: &mut Filling<'a>,
        body: Option<&Bytes>,
    ) -> Result<(), Refusal> {
        let unsignable = || Refusal::new(Code::SecretSigning);
        let signature = self.signature.as_ref().ok_or_else(unsignable)?;
        let body = body.map(AsRef::as_ref).unwrap_or_default();
        let placeholder = (signature.key_id.as_str(), self.secret.placeholder.as_str());
        let own = signature.made((&self.method, &self.url), &self.headers, body, placeholder);
        let own = own.ok_or_else(unsignable)?;
        if own.signature != signature.hex {
            return Err(unsignable());
        }
        let key_id = filling.plain(signature.key_id.as_bytes(), "")?;
        let key_id = key_id.unwrap_or_else(|| Zeroizing::new(signature.key_id.clone().into_bytes()));
        let value = self.secret.value();
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| unsignable());
        let credential = (text(&key_id)?, text(value.expose())?);
        let anew = signature.made((&self.method, &self.url), &parts.headers, body, credential);
        for (name, text) in anew.ok_or_else(unsignable)?.fields {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsignable())?;
            let mut value = HeaderValue::from_str(&text).map_err(|_| unsignable())?;
            value.set_sensitive(name == AUTHORIZATION);
            parts.headers.insert(name, value);
        }
        filling.used.note(self.secret);
        Ok(())
    }
}

/// A signature that was made: fields for the head.
struct Made {
    fields: Vec<(String, String)>,
    signature: String,
}

impl Signature {
    /// `Credential=…, SignedHeaders=…, Signature=…`
    fn read(text: &str, headers: &HeaderMap) -> Option<Self> {
        let part = |name: &str| {
            let mut parts =
                text.split(',').filter_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
            parts.next().filter(|_| parts.next().is_none())
        };
        let mut scope = part("Credential")?.rsplitn(5, '/');
        let (end, service, region, date, key_id) =
            (scope.next()?, scope.next()?, scope.next()?, scope.next()?, scope.next()?);
        let fields: Vec<String> = part("SignedHeaders")?.split(';').map(str::to_owned).collect();
        let stamp = field(headers, "x-amz-date")?;
        let body_hash = field(headers, BODY_HASH).map(str::to_owned);
        let has = |name: &str| fields.iter().any(|own| own == name);
        let is_whole = has("host")
            && has("x-amz-date")
            && (body_hash.is_none() || has(BODY_HASH))
            && !body_hash.as_ref().is_some_and(|hash| hash.starts_with(PIECEWISE))
            && !has("authorization");
        let is_ours = end == "aws4_request" && stamp.get(..8) == Some(date) && is_whole;
        is_ours.then_some(Self {
            key_id: key_id.to_owned(),
            region: region.to_owned(),
            service: service.to_owned(),
            time: moment(stamp)?,
            fields,
            hex: part("Signature")?.to_owned(),
            body_hash,
        })
    }

    /// The same signature with another credential, over these fields.
    fn made(
        &self,
        (method, url): (&str, &str),
        headers: &HeaderMap,
        body: &[u8],
        (key_id, secret): (&str, &str),
    ) -> Option<Made> {
        let mut settings = SigningSettings::default();
        settings.excluded_headers = None;
        if self.body_hash.is_some() {
            settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        }
        if self.service == "s3" {
            settings.percent_encoding_mode = PercentEncodingMode::Single;
            settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        }
        let identity = Credentials::new(key_id, secret, None, None, "bailiwick").into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(&self.service)
            .time(self.time)
            .settings(settings)
            .build()
            .ok()?
            .into();
        let made_here = ["host", "x-amz-date", BODY_HASH];
        let signed = self.fields.iter().filter(|name| !made_here.contains(&name.as_str()));
        let signed: Vec<(&str, &str)> =
            signed.map(|name| Some((name.as_str(), field(headers, name)?))).collect::<Option<_>>()?;
        let payload = match &self.body_hash {
            Some(hash) => SignableBody::Precomputed(hash.clone()),
            None => SignableBody::Bytes(body),
        };
        let request = SignableRequest::new(method, url, signed.into_iter(), payload).ok()?;
        let (instructions, signature) = sign(request, &params).ok()?.into_parts();
        let fields = instructions.headers().map(|(name, text)| (name.to_owned(), text.to_owned()));
        Some(Made { fields: fields.collect(), signature })
    }
}

/// `20260102T030405Z`
fn moment(stamp: &str) -> Option<SystemTime> {
    let (date, time) = stamp.strip_suffix('Z')?.split_once('T')?;
    if date.len() != 8
        || time.len() != 6
        || !date.bytes().chain(time.bytes()).all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let two = |text: &str, at: usize| text.get(at..at + 2)?.parse::<u8>().ok();
    let year = date.get(..4)?.parse::<i32>().ok()?;
    let date = Date::from_calendar_date(year, Month::try_from(two(date, 4)?).ok()?, two(date, 6)?).ok()?;
    let time = Time::from_hms(two(time, 0)?, two(time, 2)?, two(time, 4)?).ok()?;
    Some(SystemTime::from(PrimitiveDateTime::new(date, time).assume_utc()))
}
