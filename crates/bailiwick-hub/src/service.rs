//! Routes: who may ask what, and what is answered.
//!
//! A path is split and matched against the table here; no part of it becomes a file name or SQL. Files of the log go through
//! `LogFile::parse`, which takes only the paths that it writes. Values go to the database as parameters.
//!
//! Fails closed when: a route needs a role, and the connection has no certificate of a member with that role.

use bailiwick_door::{Answer, Limits, closing, filled, plain, read_body, with_header};
use bailiwick_fleet::admin::{
    BudgetWish, IDEMPOTENCY_KEY, RenewRequest, SubjectAnswer, SubjectRequest, TakeRequest, TokenAnswer,
    TokenRequest,
};
use bailiwick_fleet::entry::{EntryBody, Role};
use bailiwick_fleet::protocol::{
    Appended, ApprovalAnswer, ApprovalRequest, ApprovalStatus, EnrolRequest, EnrolToken, HeadReport,
    InventoryReport, LeaseRequest, MAX_WAIT_S, SpendReport, is_id,
};
use bailiwick_fleet::tile::LogFile;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use std::sync::PoisonError;
use std::time::{Duration, Instant};
use tokio::time::timeout;

use crate::certificates::Claim;
use crate::effect::Effect;
use crate::hub::Hub;
use crate::members::{self, Member, TokenWish};
use crate::refusal::{HubError, json};
use crate::sequence::{self, Append};
use crate::{approvals, audit, budgets, console, publish, reports};

/// What a route answers: a value as JSON, or nothing.
type Outcome = Result<Answer, HubError>;

/// Answers one request of a member or a stranger.
pub async fn answer(
    hub: &Hub,
    claim: Option<&Claim>,
    limits: &Limits,
    head: Parts,
    body: Incoming,
) -> Answer {
    let path = head.uri.path().to_owned();
    if let Some(file) = LogFile::parse(path.strip_prefix('/').unwrap_or(&path)) {
        return if head.method == Method::GET { log_file(hub, &file, &head) } else { method_not_allowed() };
    }
    let route = route_of(&path);
    if console::is_foreign(&head) {
        hub.metrics.count(route, "foreign-origin");
        let why = "a page of another origin may not use a member's certificate";
        return closing(HubError::forbidden("foreign-origin", why).answer());
    }
    let body = match read_body(&head.headers, body, limits).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let asked = Asked { hub, claim, head: &head, body: &body };
    match asked.dispatch(&path).await {
        Ok(answer) => {
            hub.metrics.count(route, "ok");
            answer
        }
        Err(error) => {
            hub.metrics.count(route, error.code());
            if let HubError::Store(why) = &error {
                crate::run::report(&format!("{route}: {why}"));
            }
            error.answer()
        }
    }
}

/// Answers a probe in clear text: health, readiness, counters.
pub async fn probe(hub: &Hub, request: &Request<Incoming>) -> Answer {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/healthz") => plain(StatusCode::OK, "ok\n"),
        (&Method::GET, "/readyz") if is_database_up(hub).await => plain(StatusCode::OK, "ok\n"),
        (&Method::GET, "/readyz") => plain(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n"),
        (&Method::GET, "/metrics") => {
            let time_ms = served(hub).map(|checkpoint| checkpoint.time_ms);
            let text = hub.metrics.text(time_ms, is_database_up(hub).await);
            with_header(filled(StatusCode::OK, text.into_bytes()), CONTENT_TYPE, "text/plain; version=0.0.4")
        }
        _ => plain(StatusCode::NOT_FOUND, "there is no such thing here\n"),
    }
}

async fn is_database_up(hub: &Hub) -> bool {
    hub.database.with(async |client| Ok(client.execute("SELECT 1", &[]).await?)).await.is_ok()
}

/// A file of the log: without a certificate, from the directory, also when the database is down.
fn log_file(hub: &Hub, file: &LogFile, head: &Parts) -> Answer {
    if *file == LogFile::Checkpoint {
        let Some(checkpoint) = served(hub) else {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "nothing was published yet");
        };
        let tag = format!("\"{}-{}\"", checkpoint.size, checkpoint.time_ms);
        let known = head.headers.get(IF_NONE_MATCH).is_some_and(|given| given.as_bytes() == tag.as_bytes());
        let answer = if known {
            filled(StatusCode::NOT_MODIFIED, Vec::new())
        } else {
            filled(StatusCode::OK, checkpoint.note.to_vec())
        };
        let mut answer = with_header(
            with_header(answer, CONTENT_TYPE, "text/plain; charset=utf-8"),
            CACHE_CONTROL,
            "no-cache",
        );
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            answer.headers_mut().insert(ETAG, tag);
        }
        return answer;
    }
    match publish::serve(&hub.log_files, file) {
        Ok(Some(bytes)) => {
            let answer = with_header(filled(StatusCode::OK, bytes), CONTENT_TYPE, "application/octet-stream");
            with_header(answer, CACHE_CONTROL, "public, max-age=31536000, immutable")
        }
        Ok(None) => HubError::missing().answer(),
        Err(error) => {
            crate::run::report(&error.to_string());
            plain(StatusCode::INTERNAL_SERVER_ERROR, "the file cannot be read")
        }
    }
}

fn served(hub: &Hub) -> Option<publish::SignedCheckpoint> {
    hub.checkpoint.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn method_not_allowed() -> Answer {
    plain(StatusCode::METHOD_NOT_ALLOWED, "this cannot be done here")
}

/// The word for a path in counters: one of a few, whatever is asked.
fn route_of(path: &str) -> &'static str {
    let known = [
        "enrol",
        "renew",
        "approvals",
        "leases",
        "heads",
        "inventory",
        "entries",
        "tokens",
        "members",
        "budgets",
        "audit",
    ];
    let word = path.strip_prefix("/v1/").and_then(|rest| rest.split('/').next()).unwrap_or_default();
    known.into_iter().find(|route| *route == word).unwrap_or("other")
}

/// One request, its body read.
struct Asked<'a> {
    hub: &'a Hub,
    claim: Option<&'a Claim>,
    head: &'a Parts,
    body: &'a [u8],
}

impl Asked<'_> {
    async fn dispatch(&self, path: &str) -> Outcome {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let method = &self.head.method;
        if *method == Method::POST && parts == ["v1", "enrol"] {
            let asked: EnrolRequest = self.json()?;
            return Ok(json(StatusCode::OK, &members::enrol(self.hub, &asked).await?));
        }
        if *method == Method::GET
            && let Some(file) = console::file(path)
        {
            return match self.member().await?.role {
                Role::Approver | Role::Admin => Ok(console::answer(file)),
                Role::Machine | Role::Hub => Err(role_needed()),
            };
        }
        let rest = match parts.as_slice() {
            ["v1", rest @ ..] => rest,
            _ => return Err(HubError::missing()),
        };
        let member = self.member().await?;
        if *method == Method::POST && rest == ["renew"] {
            let asked: RenewRequest = self.json()?;
            return Ok(json(StatusCode::OK, &members::renew(self.hub, &member, &asked.csr).await?));
        }
        match member.role {
            Role::Machine => self.machine(&member, rest).await,
            Role::Approver | Role::Admin => self.person(&member, rest).await,
            Role::Hub => Err(role_needed()),
        }
    }

    async fn machine(&self, machine: &Member, rest: &[&str]) -> Outcome {
        let hub = self.hub;
        if !hub.paces.allow(&machine.id, Instant::now()) {
            let why = "this machine asks too often: try again in a second";
            return Err(HubError::refused(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", why));
        }
        match (&self.head.method, rest) {
            (&Method::POST, ["approvals"]) => {
                let asked: ApprovalRequest = self.json()?;
                Ok(json(StatusCode::OK, &approvals::post(hub, machine, &asked).await?))
            }
            (&Method::GET, ["approvals", id]) if is_id(id) => {
                Ok(json(StatusCode::OK, &self.long_poll(machine, id).await?))
            }
            (&Method::POST, ["approvals", id, "take"]) if is_id(id) => {
                let taken: TakeRequest = self.json()?;
                Ok(json(StatusCode::OK, &approvals::take(hub, machine, id, &taken).await?))
            }
            (&Method::POST, ["leases"]) => {
                let asked: LeaseRequest = self.json()?;
                Ok(json(StatusCode::OK, &budgets::grant(hub, machine, &asked).await?))
            }
            (&Method::POST, ["leases", id, "spend"]) if is_id(id) => {
                let report: SpendReport = self.json()?;
                Ok(json(StatusCode::OK, &budgets::spend(hub, machine, id, report.spent).await?))
            }
            (&Method::POST, ["leases", id, "return"]) if is_id(id) => {
                let report: SpendReport = self.json()?;
                Ok(json(StatusCode::OK, &budgets::give_back(hub, machine, id, report.spent).await?))
            }
            (&Method::POST, ["heads"]) => {
                let report: HeadReport = self.json()?;
                reports::heads(hub, machine, &report).await?;
                Ok(nothing())
            }
            (&Method::POST, ["inventory"]) => {
                let report: InventoryReport = self.json()?;
                reports::inventory(hub, machine, &report).await?;
                Ok(nothing())
            }
            (_, ["approvals" | "leases" | "heads" | "inventory", ..]) => Err(HubError::missing()),
            _ => Err(role_needed()),
        }
    }

    async fn person(&self, member: &Member, rest: &[&str]) -> Outcome {
        let hub = self.hub;
        match (&self.head.method, rest) {
            (&Method::GET, ["approvals"]) => Ok(json(StatusCode::OK, &approvals::waiting(hub).await?)),
            (&Method::POST, ["approvals", id, "answer"]) if is_id(id) => {
                let given: ApprovalAnswer = self.json()?;
                Ok(json(StatusCode::OK, &approvals::answer(hub, member, id, &given).await?))
            }
            (&Method::GET, ["members"]) => {
                let after = self.query("after").unwrap_or_default();
                Ok(json(StatusCode::OK, &reports::members(hub, &after, self.limit(200)).await?))
            }
            (&Method::GET, ["me"]) => {
                let role = members::role_word(member.role);
                Ok(json(StatusCode::OK, &serde_json::json!({ "member": member.id, "role": role })))
            }
            (&Method::GET, ["heads"]) => {
                Ok(json(StatusCode::OK, &reports::last_heads(hub, self.limit(1000)).await?))
            }
            (&Method::GET, ["entries"]) => {
                let before = self.query("before").and_then(|text| text.parse().ok()).unwrap_or(i64::MAX);
                Ok(json(StatusCode::OK, &reports::last_entries(hub, before, self.limit(200)).await?))
            }
            (&Method::GET, ["budgets"]) => Ok(json(StatusCode::OK, &budgets::list(hub).await?)),
            (&Method::GET, ["audit"]) => {
                let limit = self.limit(1000);
                let rows = hub.database.with(async |client| audit::last(client, limit).await).await?;
                Ok(json(StatusCode::OK, &rows))
            }
            _ if member.role == Role::Admin => self.admin(member, rest).await,
            _ => Err(role_needed()),
        }
    }

    async fn admin(&self, member: &Member, rest: &[&str]) -> Outcome {
        let hub = self.hub;
        match (&self.head.method, rest) {
            (&Method::POST, ["entries"]) => {
                let body: EntryBody = self.json()?;
                Ok(json(StatusCode::OK, &Appended { index: self.append(member, body).await? }))
            }
            (&Method::POST, ["tokens"]) => {
                let asked: TokenRequest = self.json()?;
                let wish = TokenWish { role: asked.role, labels: asked.labels, ttl_s: asked.ttl_s };
                let token = token_text(hub, &member.id, &wish).await?;
                Ok(json(StatusCode::OK, &TokenAnswer { token }))
            }
            (&Method::POST, ["members"]) => {
                let asked: SubjectRequest = self.json()?;
                let member =
                    members::admit_subject(hub, &member.id, &asked.subject, asked.role, &asked.labels)
                        .await?;
                hub.poke();
                Ok(json(StatusCode::OK, &SubjectAnswer { member }))
            }
            (&Method::POST, ["budgets"]) => {
                let wish: BudgetWish = self.json()?;
                budgets::set(hub, &member.id, &wish).await?;
                Ok(nothing())
            }
            _ => Err(HubError::missing()),
        }
    }

    async fn append(&self, member: &Member, body: EntryBody) -> Result<u64, HubError> {
        let key = self
            .head
            .headers
            .get(IDEMPOTENCY_KEY)
            .and_then(|value| value.to_str().ok())
            .filter(|key| is_id(key));
        let key = key.ok_or_else(|| {
            HubError::wrong("idempotency-key", "the header `idempotency-key` needs 32 hexadecimal digits")
        })?;
        if matches!(body, EntryBody::Heads(_)) {
            return Err(HubError::wrong("entry", "journal heads are gathered by the hub"));
        }
        let effects = Effect::implied_by(&body);
        // The member is part of the id: the key of another member's request does not answer for this one.
        let request = format!("{}-{key}", member.id);
        let asked = Append { request, by: member.id.clone(), body, effects };
        let index = sequence::append(&self.hub.database, &asked).await?;
        self.hub.poke();
        Ok(index)
    }

    /// Answers when the call was answered, or after the seconds that were asked for.
    async fn long_poll(&self, machine: &Member, id: &str) -> Result<ApprovalStatus, HubError> {
        let wait = self.query("wait").and_then(|text| text.parse().ok()).unwrap_or(0_u64).min(MAX_WAIT_S);
        let status = approvals::standing(self.hub, machine, id).await?;
        if wait == 0 || !matches!(status, ApprovalStatus::Waiting { .. }) {
            return Ok(status);
        }
        let _late = timeout(Duration::from_secs(wait), self.hub.until_settled(id)).await;
        approvals::standing(self.hub, machine, id).await
    }

    async fn member(&self) -> Result<Member, HubError> {
        let none = || {
            HubError::refused(
                StatusCode::UNAUTHORIZED,
                "certificate",
                "a client certificate of a member is needed: run `bailiwick enroll`",
            )
        };
        members::identify(self.hub, self.claim.ok_or_else(none)?).await
    }

    fn json<T: DeserializeOwned>(&self) -> Result<T, HubError> {
        serde_json::from_slice(self.body).map_err(|why| HubError::wrong("json", why.to_string()))
    }

    /// A plain value of the query: no escapes are needed for any.
    fn query(&self, name: &str) -> Option<String> {
        let pairs = self.head.uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).next()
    }

    fn limit(&self, most: i64) -> i64 {
        self.query("limit").and_then(|text| text.parse().ok()).unwrap_or(most).clamp(1, most)
    }
}

/// Makes a token, as text for the one who enrols.
///
/// # Errors
/// If the wish is refused, or the database does not answer.
pub async fn token_text(hub: &Hub, by: &str, wish: &TokenWish) -> Result<String, HubError> {
    let secret = members::make_token(hub, by, wish).await?;
    let settings = &hub.keys.settings;
    let token = EnrolToken {
        hub: settings.hub.clone(),
        log: settings.log.clone(),
        key: hub.keys.log_public().to_string(),
        role: wish.role,
        secret,
        authority: Some(STANDARD.encode(hub.keys.authority.der())),
    };
    Ok(token.to_text())
}

fn nothing() -> Answer {
    filled(StatusCode::NO_CONTENT, Vec::new())
}

fn role_needed() -> HubError {
    HubError::forbidden("role", "this needs another role")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_take_only_known_routes() {
        for (path, route) in [
            ("/v1/enrol", "enrol"),
            ("/v1/approvals/x/take", "approvals"),
            ("/v1/\"} 1", "other"),
            ("/", "other"),
        ] {
            assert_eq!(route_of(path), route);
        }
    }
}
