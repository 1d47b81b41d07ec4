//! Access tokens of OAuth: fetched with a credential that never leaves this process, kept as long as they are good, and put
//! into requests in the place of a placeholder.
//!
//! Refresh tokens and client credentials (RFC 6749). A refresh token that a service replaces is replaced in memory; where it
//! came from is not written to.
//!
//! Fails closed when the service does not answer, cannot be verified, or gives no token: then nothing is sent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bailiwick_egress::Lookup;
use bailiwick_policy::secret_use::{OAuthGrant, OAuthSetting};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use crate::request::percent_encode;
use crate::source::{Source, SourceText};
use crate::trust::UpstreamTls;
use crate::value::{MAX_SECRET, SecretValue};

/// How long a service may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest answer of a service.
const MAX_ANSWER: usize = 256 * 1024;
/// How many credentials that were replaced are still taken out of responses.
const REMEMBERED: usize = 32;
/// How long before its end a token is not used any more.
const MARGIN: Duration = Duration::from_secs(30);

/// A service that gives tokens, and what is said to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuth {
    setting: OAuthSetting,
    pub(crate) client_secret: Option<Source>,
}

/// Why there is no token. It tells nothing of what the service said.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OAuthFault {
    #[error("the token service `{0}` has no address")]
    NoAddress(String),
    #[error("the token service `{0}` cannot be reached, or verified")]
    Unreachable(String),
    #[error("the token service `{0}` refused with status {1}")]
    Refused(String, u16),
    #[error("the token service `{0}` gave no token that a request can carry")]
    NoToken(String),
    #[error("the URL of the token service cannot be read")]
    Url,
}

impl TryFrom<OAuthSetting> for OAuth {
    type Error = SourceText;

    /// The service of the user's settings.
    fn try_from(setting: OAuthSetting) -> Result<Self, SourceText> {
        let client_secret = setting.client_secret.as_deref().map(str::parse).transpose()?;
        Ok(Self { setting, client_secret })
    }
}

impl OAuth {
    pub(crate) fn to_json(&self) -> Value {
        let OAuthSetting { token_url, grant, client_id, client_secret, scope } = &self.setting;
        let is_refresh = *grant == OAuthGrant::RefreshToken;
        json!({ "url": token_url, "refresh": is_refresh, "id": client_id, "secret": client_secret, "scope": scope })
    }

    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let is_refresh = value.get("refresh")?.as_bool()?;
        let grant = if is_refresh { OAuthGrant::RefreshToken } else { OAuthGrant::ClientCredentials };
        let setting = OAuthSetting {
            token_url: text("url")?,
            grant,
            client_id: text("id")?,
            client_secret: text("secret"),
            scope: text("scope"),
        };
        Self::try_from(setting).ok()
    }
}

/// A token that is fetched when it is needed.
pub(crate) struct TokenSource {
    oauth: OAuth,
    /// The refresh token, or the secret of the client.
    basis: Mutex<Arc<SecretValue>>,
    client_secret: Option<Arc<SecretValue>>,
    /// Credentials and tokens that were replaced and may still be good.
    replaced: Mutex<VecDeque<Arc<SecretValue>>>,
    lookup: Arc<Lookup>,
    tls: Arc<ClientConfig>,
    token: tokio::sync::Mutex<Option<Token>>,
}

struct Token {
    value: Arc<SecretValue>,
    until: Option<Instant>,
}

impl TokenSource {
    pub(crate) fn new(
        oauth: OAuth,
        basis: SecretValue,
        client_secret: Option<SecretValue>,
        lookup: Arc<Lookup>,
        tls: &UpstreamTls,
    ) -> Self {
        Self {
            oauth,
            basis: Mutex::new(Arc::new(basis)),
            client_secret: client_secret.map(Arc::new),
            replaced: Mutex::default(),
            lookup,
            tls: Arc::clone(&tls.http1),
            token: tokio::sync::Mutex::default(),
        }
    }

    /// What tokens are fetched with: it is taken out of responses too.
    pub(crate) fn held(&self) -> Vec<Arc<SecretValue>> {
        let replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::once(self.basis())
            .chain(self.client_secret.clone())
            .chain(replaced.iter().cloned())
            .collect()
    }

    fn remember(&self, value: Arc<SecretValue>) {
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        if replaced.len() == REMEMBERED {
            replaced.pop_front();
        }
        replaced.push_back(value);
    }

    fn basis(&self) -> Arc<SecretValue> {
        Arc::clone(&self.basis.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A token that is good now.
    pub(crate) async fn current(self: &Arc<Self>) -> Result<Arc<SecretValue>, OAuthFault> {
        let own = Arc::clone(self);
        // In a task: a refresh token that was replaced must not be lost because a client went away.
        let fetched = tokio::spawn(async move { own.fetched().await }).await;
        fetched.unwrap_or_else(|_| Err(OAuthFault::Unreachable(self.oauth.setting.token_url.clone())))
    }

    async fn fetched(&self) -> Result<Arc<SecretValue>, OAuthFault> {
        let mut token = self.token.lock().await;
        if let Some(token) = &*token
            && token.until.is_none_or(|until| Instant::now() < until)
        {
            return Ok(Arc::clone(&token.value));
        }
        if let Some(old) = token.take() {
            self.remember(old.value);
        }
        let url = self.oauth.setting.token_url.clone();
        let fresh = timeout(PATIENCE, self.fetch()).await;
        let fresh = fresh.map_err(|_| OAuthFault::Unreachable(url))??;
        let value = Arc::clone(&fresh.value);
        *token = Some(fresh);
        Ok(value)
    }

    async fn fetch(&self) -> Result<Token, OAuthFault> {
        let url = &self.oauth.setting.token_url;
        let uri: Uri = url.parse().map_err(|_| OAuthFault::Url)?;
        let unreachable = || OAuthFault::Unreachable(url.clone());
        let stream = self.connect(&uri).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|_| unreachable())?;
        tokio::spawn(connection);
        let response = sender.send_request(self.request(&uri)?).await.map_err(|_| unreachable())?;
        if !response.status().is_success() {
            return Err(OAuthFault::Refused(url.clone(), response.status().as_u16()));
        }
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(|_| unreachable())?.to_bytes();
        self.read(&body).ok_or_else(|| OAuthFault::NoToken(url.clone()))
    }

    async fn connect(&self, uri: &Uri) -> Result<tokio_rustls::client::TlsStream<TcpStream>, OAuthFault> {
        let url = &self.oauth.setting.token_url;
        let unreachable = || OAuthFault::Unreachable(url.clone());
        let (host, port) = (uri.host().ok_or(OAuthFault::Url)?, uri.port_u16().unwrap_or(443));
        let addresses = self.lookup.addresses(host).await;
        let mut stream = None;
        for address in &addresses {
            if let Ok(connected) = TcpStream::connect((*address, port)).await {
                stream = Some(connected);
                break;
            }
        }
        let no_address = addresses.is_empty().then(|| OAuthFault::NoAddress(url.clone()));
        let stream = stream.ok_or_else(|| no_address.unwrap_or_else(unreachable))?;
        let name = ServerName::try_from(host.to_owned()).map_err(|_| OAuthFault::Url)?;
        let tls = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await;
        tls.map_err(|_| unreachable())
    }

    fn request(&self, uri: &Uri) -> Result<Request<Full<Bytes>>, OAuthFault> {
        let OAuthSetting { grant, client_id, scope, .. } = &self.oauth.setting;
        let basis = self.basis();
        let mut form = Zeroizing::new(String::with_capacity(4 * MAX_SECRET));
        let mut put = |name: &str, value: &[u8]| {
            if !form.is_empty() {
                form.push('&');
            }
            form.push_str(name);
            form.push('=');
            percent_encode(value, &mut form);
        };
        let own = match grant {
            OAuthGrant::RefreshToken => {
                put("grant_type", b"refresh_token");
                put("refresh_token", basis.expose());
                self.client_secret.clone()
            }
            OAuthGrant::ClientCredentials => {
                put("grant_type", b"client_credentials");
                Some(basis)
            }
        };
        if let Some(scope) = scope {
            put("scope", scope.as_bytes());
        }
        if own.is_none() {
            put("client_id", client_id.as_bytes());
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, authority)
            .header(ACCEPT, "application/json")
            .header(ACCEPT_ENCODING, "identity")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = match own {
            Some(own) => request.header(AUTHORIZATION, basic(client_id, &own)?),
            None => request,
        };
        request.body(Full::new(Bytes::copy_from_slice(form.as_bytes()))).map_err(|_| OAuthFault::Url)
    }

    /// The token of an answer. A new refresh token takes the place of the old one.
    fn read(&self, body: &[u8]) -> Option<Token> {
        let answer: Value = serde_json::from_slice(body).ok()?;
        let value = |key: &str| {
            let text = answer.get(key)?.as_str()?;
            let is_usable =
                (1..=MAX_SECRET).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
            is_usable.then(|| Arc::new(SecretValue::new(Zeroizing::new(text.as_bytes().to_vec()))))
        };
        let token = value("access_token")?;
        if self.oauth.setting.grant == OAuthGrant::RefreshToken
            && let Some(next) = value("refresh_token")
        {
            let old =
                std::mem::replace(&mut *self.basis.lock().unwrap_or_else(PoisonError::into_inner), next);
            self.remember(old);
        }
        let lasts = answer.get("expires_in").and_then(Value::as_u64).map(Duration::from_secs);
        let until = lasts.and_then(|lasts| {
            let margin = MARGIN.min(lasts / 2);
            Instant::now().checked_add(lasts.saturating_sub(margin))
        });
        Some(Token { value: token, until })
    }
}

/// Name and secret of the client, each encoded as a form first.
fn basic(id: &str, own: &SecretValue) -> Result<HeaderValue, OAuthFault> {
    let mut plain = Zeroizing::new(String::with_capacity(4 * MAX_SECRET));
    percent_encode(id.as_bytes(), &mut plain);
    plain.push(':');
    percent_encode(own.expose(), &mut plain);
    let encoded = Zeroizing::new(format!("Basic {}", STANDARD.encode(plain.as_bytes())));
    let mut value = HeaderValue::from_str(&encoded).map_err(|_| OAuthFault::Url)?;
    value.set_sensitive(true);
    Ok(value)
}
