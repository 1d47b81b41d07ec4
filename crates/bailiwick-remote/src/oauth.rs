//! A login by OAuth 2.1: who lets in is discovered from the server, a client is registered, and a code is exchanged with PKCE.
//!
//! Every address that is discovered is an `https:` one, and no private one unless the user typed that host. Fails closed when: the
//! metadata are for another server or another issuer, S256 is not offered, or the answer of the browser has another state or
//! another issuer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{Method, Request, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use url::form_urlencoded::Serializer;

use crate::client::{Client, SendError};
use crate::endpoint::{Endpoint, EndpointError};
use crate::token_file::Login;

/// The most bytes of metadata and of tokens.
const MAX_ANSWER: usize = 256 * 1024;
const MAX_TOKEN: usize = 16 * 1024;

/// How long each step may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why there is no login.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// A server could not be asked.
    #[error(transparent)]
    Send(#[from] SendError),
    /// An address that is not asked.
    #[error("the {0} that was discovered is not used: {1}")]
    Address(&'static str, String),
    /// What was discovered is for another server, or not enough.
    #[error("{0}")]
    Metadata(String),
    /// The authorization server refuses.
    #[error("the authorization server refuses: {0}")]
    Refused(String),
    /// What came back from the browser is not what was asked for.
    #[error("what the browser brought back is not used: {0}")]
    Returned(String),
    /// There are no random numbers.
    #[error("there are no random numbers")]
    Random,
}

/// Whom a login is for, and how.
pub struct LoginRequest<'a> {
    /// The server.
    pub server: &'a Endpoint,
    /// Where the browser comes back to, on the loopback interface.
    pub redirect: &'a str,
    /// The client, if it is registered already.
    pub client_id: Option<&'a str>,
    /// What is asked for; what the server says if absent.
    pub scope: Option<&'a str>,
}

/// A login that waits for the person at the browser.
pub struct PendingLogin {
    address: Endpoint,
    server: String,
    redirect: String,
    client_id: String,
    state: String,
    verifier: String,
    issuer: String,
    must_name_issuer: bool,
    token_endpoint: Endpoint,
}

#[derive(Deserialize)]
struct Resource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

#[derive(Deserialize)]
struct Issuer {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    #[serde(default)]
    registration_endpoint: Option<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
}

#[derive(Deserialize)]
struct Tokens {
    access_token: String,
    token_type: String,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default)]
    expires_in: Option<u64>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
    #[serde(default)]
    error_description: Option<String>,
}

impl PendingLogin {
    /// Finds out who lets in, and registers a client there.
    ///
    /// # Errors
    /// Why no login can be asked for.
    pub async fn begin(client: &Client, asked: LoginRequest<'_>) -> Result<Self, LoginError> {
        let (issuer, scopes) = issuer_of(client, asked.server).await?;
        let metadata = metadata_of(client, asked.server, &issuer).await?;
        if !metadata.code_challenge_methods_supported.iter().any(|method| method == "S256") {
            return Err(LoginError::Metadata(format!("`{}` does not offer PKCE with S256", shown(&issuer))));
        }
        let authorize = discovered(asked.server, "authorization address", &metadata.authorization_endpoint)?;
        let token_endpoint = discovered(asked.server, "token address", &metadata.token_endpoint)?;
        let client_id = match asked.client_id {
            Some(id) => id.to_owned(),
            None => registered(client, &asked, &metadata).await?,
        };
        let (state, verifier) = (random()?, random()?);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let scope = asked.scope.map_or_else(|| scopes.join(" "), str::to_owned);
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", &client_id),
            ("redirect_uri", asked.redirect),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", asked.server.as_str()),
        ];
        pairs.extend((!scope.is_empty()).then_some(("scope", scope.as_str())));
        let address = authorize.with_query(pairs);
        Ok(Self {
            address,
            server: asked.server.as_str().to_owned(),
            redirect: asked.redirect.to_owned(),
            client_id,
            state,
            verifier,
            issuer,
            must_name_issuer: metadata.authorization_response_iss_parameter_supported,
            token_endpoint,
        })
    }

    /// What the person opens.
    #[must_use]
    pub fn address(&self) -> &str {
        self.address.as_str()
    }

    /// Whether a query that came back is for this login at all.
    #[must_use]
    pub fn is_for(&self, query: &str) -> bool {
        let state = parameter(query, "state").unwrap_or_default();
        state.as_bytes().ct_eq(self.state.as_bytes()).into()
    }

    /// Exchanges what the browser brought back.
    ///
    /// # Errors
    /// Why it is not used, or why the authorization server refuses it.
    pub async fn finish(&self, client: &Client, query: &str) -> Result<Login, LoginError> {
        let unused = |why: &str| LoginError::Returned(why.to_owned());
        if !self.is_for(query) {
            return Err(unused("it has another state"));
        }
        match parameter(query, "iss") {
            Some(issuer) if issuer != self.issuer => return Err(unused("it is from another issuer")),
            None if self.must_name_issuer => return Err(unused("it does not name its issuer")),
            Some(_) | None => {}
        }
        if let Some(error) = parameter(query, "error") {
            let said = parameter(query, "error_description").unwrap_or_default();
            return Err(LoginError::Refused(shown(&format!("{error} {said}"))));
        }
        let code = parameter(query, "code").ok_or_else(|| unused("it has no code"))?;
        let pairs = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", &self.redirect),
            ("client_id", &self.client_id),
            ("code_verifier", &self.verifier),
            ("resource", &self.server),
        ];
        let tokens = ask_for_tokens(client, &self.token_endpoint, &pairs).await?;
        let login = Login {
            resource: self.server.clone(),
            issuer: self.issuer.clone(),
            token_endpoint: self.token_endpoint.as_str().to_owned(),
            client_id: self.client_id.clone(),
            access_token: String::new(),
            refresh_token: None,
            expires_at: None,
        };
        Ok(with_tokens(login, tokens))
    }
}

/// The login with new tokens, where it has a token for that.
pub(crate) async fn renewed(client: &Client, login: Login) -> Result<Login, LoginError> {
    let token = login.refresh_token.clone();
    let token = token.ok_or_else(|| LoginError::Refused("the login has expired".to_owned()))?;
    let server = Endpoint::new(&login.resource).map_err(|why| address("server", &why))?;
    let endpoint = discovered(&server, "token address", &login.token_endpoint)?;
    let pairs = [
        ("grant_type", "refresh_token"),
        ("refresh_token", &*token),
        ("client_id", &*login.client_id),
        ("resource", &*login.resource),
    ];
    let tokens = ask_for_tokens(client, &endpoint, &pairs).await?;
    Ok(with_tokens(login, tokens))
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn with_tokens(login: Login, tokens: Tokens) -> Login {
    Login {
        access_token: tokens.access_token,
        refresh_token: tokens.refresh_token.or(login.refresh_token),
        expires_at: tokens.expires_in.map(|seconds| now().saturating_add(seconds)),
        ..login
    }
}

/// Who lets in to a server, and what may be asked for. A server that does not say it lets in itself.
async fn issuer_of(client: &Client, server: &Endpoint) -> Result<(String, Vec<String>), LoginError> {
    let named = named_metadata(client, server).await?;
    let own = server.origin();
    let path = server.path().trim_end_matches('/');
    let usual = [
        format!("{own}/.well-known/oauth-protected-resource{path}"),
        format!("{own}/.well-known/oauth-protected-resource"),
    ];
    let places = named.map_or_else(|| usual.to_vec(), |named| vec![named]);
    for place in places {
        let place = discovered(server, "metadata address", &place)?;
        let Some(found) = fetched::<Resource>(client, &place).await? else { continue };
        let is_this = Endpoint::new(&found.resource).is_ok_and(|other| {
            let other_path = other.path().trim_end_matches('/');
            let is_above =
                path.strip_prefix(other_path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            other.is_same_origin(server) && is_above
        });
        if !is_this {
            let other = shown(&found.resource);
            return Err(LoginError::Metadata(format!("the metadata of `{server}` are for `{other}`")));
        }
        let issuer = found.authorization_servers.into_iter().next();
        let issuer = issuer
            .ok_or_else(|| LoginError::Metadata(format!("`{server}` names no authorization server")))?;
        return Ok((issuer, found.scopes_supported));
    }
    Ok((own, Vec::new()))
}

/// Where the server says that its metadata are, when it is asked without a credential.
async fn named_metadata(client: &Client, server: &Endpoint) -> Result<Option<String>, LoginError> {
    let request =
        Request::builder().method(Method::GET).header(ACCEPT, "application/json, text/event-stream");
    let Ok(request) = request.body(Bytes::new()) else { return Ok(None) };
    let answered = client.send(server, &request, PATIENCE).await?;
    let challenge = answered.headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    let challenge = challenge.filter(|_| answered.status == StatusCode::UNAUTHORIZED);
    let named = challenge.and_then(|text| text.split("resource_metadata=\"").nth(1)?.split('"').next());
    Ok(named.map(str::to_owned))
}

/// What an issuer says of itself.
async fn metadata_of(client: &Client, server: &Endpoint, issuer: &str) -> Result<Issuer, LoginError> {
    let base = discovered(server, "authorization server", issuer)?;
    let (origin, path) = (base.origin(), base.path().trim_end_matches('/'));
    for place in [
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
        format!("{origin}{path}/.well-known/openid-configuration"),
    ] {
        let place = discovered(server, "metadata address", &place)?;
        let Some(found) = fetched::<Issuer>(client, &place).await? else { continue };
        if found.issuer.trim_end_matches('/') != issuer.trim_end_matches('/') {
            let why = format!("the metadata of `{}` are of `{}`", shown(issuer), shown(&found.issuer));
            return Err(LoginError::Metadata(why));
        }
        return Ok(found);
    }
    Err(LoginError::Metadata(format!("`{}` has no metadata", shown(issuer))))
}

async fn registered(
    client: &Client,
    asked: &LoginRequest<'_>,
    issuer: &Issuer,
) -> Result<String, LoginError> {
    let Some(place) = &issuer.registration_endpoint else {
        let why = "the authorization server registers no clients: register one there, and say it with `--client-id ID`";
        return Err(LoginError::Metadata(why.to_owned()));
    };
    let place = discovered(asked.server, "registration address", place)?;
    let body = json!({
        "client_name": "Bailiwick",
        "redirect_uris": [asked.redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    });
    let registered: Registered = posted(client, &place, "application/json", body.to_string()).await?;
    Ok(registered.client_id)
}

async fn ask_for_tokens(
    client: &Client,
    place: &Endpoint,
    pairs: &[(&str, &str)],
) -> Result<Tokens, LoginError> {
    let form = Serializer::new(String::new()).extend_pairs(pairs).finish();
    let tokens: Tokens = posted(client, place, "application/x-www-form-urlencoded", form).await?;
    let is_plain = |text: &String| {
        (1..=MAX_TOKEN).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, 0x21..=0x7e))
    };
    let is_fine = is_plain(&tokens.access_token) && tokens.refresh_token.iter().all(is_plain);
    if !is_fine || !tokens.token_type.eq_ignore_ascii_case("bearer") {
        return Err(LoginError::Metadata("the authorization server gave no bearer token".to_owned()));
    }
    Ok(tokens)
}

/// A document, if it is there.
async fn fetched<T: DeserializeOwned>(client: &Client, place: &Endpoint) -> Result<Option<T>, LoginError> {
    let request =
        Request::builder().method(Method::GET).header(ACCEPT, "application/json").body(Bytes::new());
    let Ok(request) = request else { return Ok(None) };
    let answered = client.send(place, &request, PATIENCE).await?;
    if !answered.status.is_success() {
        return Ok(None);
    }
    let text = answered.body.read(MAX_ANSWER).await?;
    let useless = |_| LoginError::Metadata(format!("what is at `{place}` cannot be read"));
    document(&text).map(Some).map_err(useless)
}

/// What an object says; a list would be read as its fields too.
fn document<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    if !text.trim_ascii_start().starts_with(b"{") {
        return Err(serde::de::Error::custom("it is no object"));
    }
    serde_json::from_slice(text)
}

async fn posted<T: DeserializeOwned>(
    client: &Client,
    place: &Endpoint,
    kind: &str,
    body: String,
) -> Result<T, LoginError> {
    let useless = || LoginError::Metadata(format!("what `{place}` answers cannot be read"));
    let request = Request::builder().method(Method::POST).header(CONTENT_TYPE, kind);
    let request =
        request.header(ACCEPT, "application/json").body(Bytes::from(body)).map_err(|_| useless())?;
    let answered = client.send(place, &request, PATIENCE).await?;
    let status = answered.status;
    let text = answered.body.read(MAX_ANSWER).await?;
    if status.is_success() {
        return document(&text).map_err(|_| useless());
    }
    let said = document::<Refusal>(&text).map_or_else(
        |_| format!("HTTP {}", status.as_u16()),
        |refusal| format!("{} {}", refusal.error, refusal.error_description.unwrap_or_default()),
    );
    Err(LoginError::Refused(shown(said.trim())))
}

/// An address that the user did not type: of this host only if the server itself is there by the user's own word.
fn discovered(server: &Endpoint, what: &'static str, text: &str) -> Result<Endpoint, LoginError> {
    let found = Endpoint::new(text).map_err(|why| address(what, &why))?;
    if found.is_of_this_network() && found.host() != server.host() {
        return Err(LoginError::Address(what, format!("`{}` is a private address", shown(text))));
    }
    Ok(found)
}

fn address(what: &'static str, why: &EndpointError) -> LoginError {
    LoginError::Address(what, why.to_string())
}

/// A parameter of a query, if it is there once.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut all = url::form_urlencoded::parse(query.as_bytes()).filter(|(own, _)| own == name);
    let first = all.next().map(|(_, value)| value.into_owned());
    first.filter(|_| all.next().is_none())
}

fn random() -> Result<String, LoginError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| LoginError::Random)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Words of others, bounded and without anything that acts on a terminal.
fn shown(text: &str) -> String {
    text.chars().take(200).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_were_not_typed_are_public() {
        let far = Endpoint::new("https://mcp.example.com/mcp").unwrap();
        assert!(discovered(&far, "x", "https://auth.example.com/authorize").is_ok());
        for wrong in [
            "http://auth.example.com/",
            "https://10.0.0.1/",
            "https://127.0.0.1/",
            "http://127.0.0.1/",
            "https://localhost/",
            "https://[fd00::1]/",
            "https://u:p@auth.example.com/",
            "file:///etc/passwd",
        ] {
            assert!(discovered(&far, "x", wrong).is_err(), "{wrong}");
        }
        let here = Endpoint::new("http://127.0.0.1:8080/mcp").unwrap();
        assert!(discovered(&here, "x", "http://127.0.0.1:9/authorize").is_ok());
        assert!(discovered(&here, "x", "http://127.0.0.2:9/authorize").is_err());
    }

    #[test]
    fn a_parameter_that_is_there_twice_is_none() {
        assert_eq!(parameter("state=a%20b&code=1", "state").as_deref(), Some("a b"));
        assert_eq!(parameter("state=a&state=b", "state"), None);
    }
}
