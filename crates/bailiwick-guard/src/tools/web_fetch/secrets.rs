//! Secrets in requests: `${NAME}` in a field of the head or in the query stands for the brokered secret `NAME`.
//!
//! No value is in this process. A request to a host of secrets goes, inside TLS, to the process that holds them: with a
//! placeholder that only this call has, which that process replaces where the secret is used, by the rules of its manifest.
//! Fields of a caller's own go to such hosts alone, because only there is it judged whether they are credentials.
//!
//! Fails closed when: nothing holds the secrets of a host, a name stands for none, a redirect leads away from the host.

use std::sync::Arc;
use std::time::Duration;

use bailiwick_launch::{BrokeredClient, NetworkCode, NetworkRefusal, NetworkTarget, brokered_client};
use bailiwick_policy::capability::Capability;
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::net::{Method, Scheme};
use bailiwick_policy::plan::Plan;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::{self, HeaderName, HeaderValue};
use serde_json::Value;

use super::target::Target;
use super::{FetchRequest, failed};
use crate::gate::ToolContext;
use crate::tool::ToolError;
use crate::tools::args::Args;
use crate::tools::shell_plan;

/// How many fields of its own a call has at most, and how long each is.
pub(super) const MAX_FIELDS: usize = 16;
pub(super) const MAX_FIELD: usize = 4 * 1024;

/// Fields that frame a request or are between two parties, which the tool says itself.
const OWN_FIELDS: [HeaderName; 12] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::EXPECT,
    header::RANGE,
    header::IF_RANGE,
    header::ACCEPT_ENCODING,
    header::PROXY_AUTHORIZATION,
];

/// The fields of the head that a call asks for.
pub(super) fn read_fields(args: &Args<'_>) -> Result<Vec<(HeaderName, String)>, ToolError> {
    let fields = match args.fields().get("headers") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err(args.wrong("`headers` is an object")),
    };
    if fields.len() > MAX_FIELDS {
        return Err(args.wrong(&format!("`headers` has more than {MAX_FIELDS} fields")));
    }
    let read = |(name, value): (&String, &Value)| {
        let shown = name.chars().take(80).collect::<String>();
        let wrong = |what: &str| args.wrong(&format!("the header `{}` {what}", shown.escape_debug()));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("has no name of a header"))?;
        let value = value.as_str().ok_or_else(|| wrong("is not a string"))?;
        if OWN_FIELDS.contains(&name) {
            return Err(wrong("is for the tool itself to say"));
        }
        let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if value.len() > MAX_FIELD || !is_plain {
            return Err(wrong(&format!("is not printable ASCII of at most {MAX_FIELD} bytes")));
        }
        Ok((name, value.to_owned()))
    };
    fields.iter().map(read).collect()
}

/// The secrets of one call, asked for once one of them is needed.
#[derive(Default)]
pub(super) struct CallSecrets(Option<BrokeredClient>);

/// A request as it goes to the process that holds the secrets.
pub(super) struct Filled<'a> {
    pub(super) client: &'a BrokeredClient,
    pub(super) at: NetworkTarget,
    /// Path and query.
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    /// How long nothing may come.
    pub(super) idle: Duration,
}

impl CallSecrets {
    /// The request, if it goes to a host of secrets; nothing if no secret has to do with it.
    pub(super) async fn fill(
        &mut self,
        asked: &FetchRequest,
        (target, is_redirected): (&Target, bool),
        context: &ToolContext,
    ) -> Result<Option<Filled<'_>>, ToolError> {
        let at = NetworkTarget::new(target.host.clone(), target.port);
        let query = target.query().filter(|_| !is_redirected).unwrap_or_default();
        let names_any =
            asked.headers.iter().map(|(_, value)| value.as_str()).chain([query]).any(has_reference);
        let mut brokered = context.authority().brokered().pairs();
        let is_of_secrets = brokered.any(|(_, host)| host.is_at(&at.host, at.port));
        if !is_of_secrets && !names_any {
            return if asked.headers.is_empty() { Ok(None) } else { Err(only_to_hosts_of_secrets(target)) };
        }
        if self.0.is_none() {
            self.0 = Some(opened(context).await?);
        }
        let Some(client) = &self.0 else { return Ok(None) };
        let refuse = |code| {
            let path = target.path();
            Err(refused(asked.method, target, &client.refuse(&at, (asked.method.as_str(), path), code)))
        };
        let values = asked.headers.iter().map(|(_, value)| value.as_str()).chain([query]);
        values.flat_map(references).try_for_each(|name| placeholder(client, name).map(drop))?;
        if !client.ends(&at) {
            return match (names_any, asked.headers.is_empty()) {
                (true, _) => refuse(NetworkCode::SecretMisdirected),
                (false, true) => Ok(None),
                (false, false) => Err(only_to_hosts_of_secrets(target)),
            };
        }
        if target.scheme == Scheme::Http {
            return refuse(NetworkCode::SecretInTheClear);
        }
        let mut path = target.path().to_owned();
        if let Some(own) = target.query() {
            // A server chose what it redirects to.
            let own = if is_redirected { own.to_owned() } else { filled(client, own, percent_encoded)? };
            path = format!("{path}?{own}");
        }
        let headers =
            asked.headers.iter().map(|(name, value)| Ok((name.clone(), field(client, name, value)?)));
        let headers = headers.collect::<Result<HeaderMap, ToolError>>()?;
        Ok(Some(Filled { client, at, path, headers, idle: asked.timeout }))
    }

    /// What was refused of the call's requests, in place of what came of them.
    pub(super) fn refusal(&self, method: Method, target: &Target) -> Option<ToolError> {
        Some(refused(method, target, &self.0.as_ref()?.refused()?))
    }
}

/// Whether a redirect may be followed by a request with the call's own fields.
pub(super) fn check_redirect(asked: &FetchRequest, from: &Target, to: &Target) -> Result<(), ToolError> {
    if asked.headers.is_empty() || from.has_origin_of(to) {
        return Ok(());
    }
    Err(failed(format!(
        "redirected to `{}`, to which the headers of this call are not sent; ask for it by itself",
        to.shown()
    )))
}

/// Secrets that this call alone has.
async fn opened(context: &ToolContext) -> Result<BrokeredClient, ToolError> {
    let session = context.session();
    let Some(process) = session.secrets().map(Arc::clone) else {
        return Err(failed("nothing holds the secrets of this session, so their hosts are not asked"));
    };
    let plan: Plan = shell_plan(context.authority(), context.own(), session).map_err(failed)?;
    let recorder = context.recorder();
    let opened = tokio::task::spawn_blocking(move || brokered_client(&process, &plan, recorder));
    let client = opened.await.map_err(failed)?.map_err(failed)?;
    client.ok_or_else(|| failed("no secret is granted to this call, so `${…}` stands for none"))
}

fn only_to_hosts_of_secrets(target: &Target) -> ToolError {
    failed(format!("headers are sent only to hosts of brokered secrets, and `{}` is none", target.host))
}

/// The names between `${` and `}`.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}

fn has_reference(text: &str) -> bool {
    references(text).next().is_some()
}

fn placeholder<'c>(client: &'c BrokeredClient, name: &str) -> Result<&'c str, ToolError> {
    client.placeholder(name).ok_or_else(|| {
        let (name, known) = (name.chars().take(80).collect::<String>(), client.names().collect::<Vec<_>>());
        failed(format!("`${{{}}}` stands for no secret, only {}", name.escape_debug(), known.join(", ")))
    })
}

/// A text with placeholders in the places of names.
fn filled(client: &BrokeredClient, text: &str, written: fn(&str) -> String) -> Result<String, ToolError> {
    let (mut done, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, (name, behind))) =
        rest.split_once("${").and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        done += before;
        done += &written(placeholder(client, name)?);
        rest = behind;
    }
    Ok(done + rest)
}

/// A field; of Basic the part behind the word is user and password, which stand in base64 on the wire.
fn field(client: &BrokeredClient, name: &HeaderName, value: &str) -> Result<HeaderValue, ToolError> {
    let text = filled(client, value, str::to_owned)?;
    let pair = value.strip_prefix("Basic ").filter(|pair| pair.contains(':') && has_reference(pair));
    let text = match text.split_once(' ') {
        Some((word, both)) if *name == header::AUTHORIZATION && pair.is_some() => {
            format!("{word} {}", STANDARD.encode(both))
        }
        _ => text,
    };
    let mut field = HeaderValue::from_str(&text).map_err(failed)?;
    field.set_sensitive(true);
    Ok(field)
}

fn percent_encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// What a refusal on the way is for the caller. It is on record already.
fn refused(method: Method, target: &Target, refusal: &NetworkRefusal) -> ToolError {
    let code = refusal.code();
    let what = format!("{} {}: {}", method.as_str(), target.without_query(), code.meaning());
    let is_fault = matches!(
        code,
        NetworkCode::Unreachable
            | NetworkCode::SecretUpstream
            | NetworkCode::SecretBroker
            | NetworkCode::SecretResponse
    );
    if is_fault {
        return failed(format!("{what} ({})", code.as_str()));
    }
    let grant = refusal.grant().and_then(|grant| Capability::new(grant).ok());
    let kind = if grant.is_some() { DenialCode::NetNotGranted } else { DenialCode::SecretRefused };
    Denial::new(kind, format!("{what} ({})", code.as_str())).with_smallest(grant).into()
}
