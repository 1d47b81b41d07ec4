//! Members: one-time tokens, enrolment, and who a certificate's claim is now.
//!
//! A token is drawn here, its secret is shown once and only its SHA-256 is stored. It makes one member, of the role it was made for. The
//! same token with the same key again is the same enrolment, so that a lost answer can be asked for again; with another key it is
//! refused. A machine's key never leaves it: it sends a request for a certificate.
//!
//! Fails closed when: a certificate's SPIFFE id is not a member's, the member is revoked, or the key is not the one it enrolled with.

use std::collections::BTreeSet;

use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::{EntryBody, MemberKey, Role};
use bailiwick_fleet::protocol::{EnrolAnswer, EnrolRequest};
use tokio_postgres::Row;

use crate::audit::{self, Audited};
use crate::certificates::{Claim, RequestedKey};
use crate::database::StoreError;
use crate::hub::Hub;
use crate::id;
use crate::refusal::HubError;
use crate::sequence::{self, Append};

/// A member that may do what its role says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: String,
    /// What it may do.
    pub role: Role,
    /// The SPIFFE id of its certificates.
    pub subject: String,
}

/// What an enrolment token is made for.
#[derive(Debug, Clone)]
pub struct TokenWish {
    /// What the member may do.
    pub role: Role,
    /// Labels of a machine.
    pub labels: BTreeSet<String>,
    /// How long it is good for.
    pub ttl_s: u64,
}

/// The longest that a token is good for: a week.
const MAX_TOKEN_S: u64 = 7 * 24 * 3600;

/// Stores a new token and returns its secret.
///
/// # Errors
/// If the wish is refused, or the database does not answer.
pub async fn make_token(hub: &Hub, by: &str, wish: &TokenWish) -> Result<Hash, HubError> {
    if wish.ttl_s == 0 || wish.ttl_s > MAX_TOKEN_S {
        return Err(HubError::wrong(
            "token-lifetime",
            format!("a token is good for 1 to {MAX_TOKEN_S} seconds"),
        ));
    }
    if wish.role == Role::Hub || !id::are_labels(&wish.labels) {
        return Err(HubError::wrong(
            "token-role",
            "a token is for a machine, an approver or an admin, with at most 32 plain labels",
        ));
    }
    let mut secret = [0_u8; 32];
    getrandom::fill(&mut secret).map_err(|fault| StoreError::Down(fault.to_string()))?;
    let secret = Hash::from_bytes(secret);
    let stored = Hash::sha256(secret.as_bytes());
    let (role, labels) = (role_word(wish.role), labels_text(&wish.labels)?);
    hub.database
        .with(async |client| {
            let transaction = client.transaction().await?;
            let sql = "INSERT INTO enrol_token (hash, role, labels, expires_at, created_by) \
                       VALUES ($1, $2, $3, now() + $4::INT8::FLOAT8 * INTERVAL '1 second', $5)";
            let ttl = sequence::signed(wish.ttl_s)?;
            transaction.execute(sql, &[&stored.as_bytes().as_slice(), &role, &labels, &ttl, &by]).await?;
            let subject = stored.to_string();
            let row = Audited { actor: by, action: "make-token", subject: &subject, detail: role };
            audit::write(&transaction, &row).await?;
            transaction.commit().await?;
            Ok(())
        })
        .await?;
    Ok(secret)
}

/// A token becomes a member.
///
/// # Errors
/// If the token is unknown, used or expired, or the request is wrong.
pub async fn enrol(hub: &Hub, asked: &EnrolRequest) -> Result<EnrolAnswer, HubError> {
    if !id::is_name(&asked.name) {
        return Err(HubError::wrong("name", "a name has 1 to 128 letters, digits and `._:/@+-`"));
    }
    let key = RequestedKey::read(&asked.csr).map_err(|why| HubError::wrong("csr", why.to_string()))?;
    let stored = Hash::sha256(asked.secret.as_bytes());
    let fresh = id::draw()?;
    let (member, role, labels) = hub
        .database
        .with(async |client| claim_token(client, &stored, key.hash(), &fresh).await)
        .await?
        .ok_or_else(|| {
            HubError::forbidden("token", "the token is unknown, expired or used: ask an admin for another")
        })?;
    let journal_key = match (role, asked.journal_key) {
        (Role::Machine, None) => {
            return Err(HubError::wrong(
                "journal-key-missing",
                "a machine enrols with the key of its journal",
            ));
        }
        (Role::Machine, Some(key)) => key,
        (Role::Approver | Role::Admin | Role::Hub, _) => Hash::from_bytes(*key.hash()),
    };
    let subject = hub.keys.authority.subject(role_word(role), &member);
    insert_member(hub, &member, role, &asked.name, &subject, Some(key.hash()), &labels).await?;
    let body = EntryBody::MemberKey(MemberKey {
        member: member.clone(),
        role,
        key: journal_key,
        labels,
        removed: false,
    });
    let append = Append { request: format!("enrol-{member}"), by: member.clone(), body, effects: Vec::new() };
    sequence::append(&hub.database, &append).await?;
    hub.poke();
    answer(hub, member, role, &subject, &key)
}

/// A certificate for a member that has one.
///
/// # Errors
/// If the request is wrong.
pub async fn renew(hub: &Hub, member: &Member, csr: &str) -> Result<EnrolAnswer, HubError> {
    let key = RequestedKey::read(csr).map_err(|why| HubError::wrong("csr", why.to_string()))?;
    let answer = answer(hub, member.id.clone(), member.role, &member.subject, &key)?;
    hub.database
        .with(async |client| {
            let sql = "UPDATE member SET key_hash = $2 WHERE id = $1 AND key_hash IS NOT NULL AND revoked_at IS NULL";
            Ok(client.execute(sql, &[&member.id, &key.hash().as_slice()]).await?)
        })
        .await
        .map_err(HubError::from)
        .and_then(|rows| match rows {
            1 => Ok(answer),
            _ => Err(HubError::forbidden("not-issued-here", "another authority issues this member's certificates")),
        })
}

/// Admits certificates of another authority with this SPIFFE id.
///
/// # Errors
/// If the id is not one, or belongs to this fleet's own authority.
pub async fn admit_subject(
    hub: &Hub,
    by: &str,
    subject: &str,
    role: Role,
    labels: &BTreeSet<String>,
) -> Result<String, HubError> {
    let own = format!("spiffe://{}/", hub.keys.settings.name);
    if !id::is_spiffe_id(subject) || subject.starts_with(&own) || role == Role::Hub || !id::are_labels(labels)
    {
        return Err(HubError::wrong(
            "subject",
            "a SPIFFE id of another trust domain is wanted, a role, and at most 32 plain labels",
        ));
    }
    let member = id::draw()?;
    let member = match insert_member(hub, &member, role, "spiffe", subject, None, labels).await {
        Err(HubError::Store(StoreError::Conflict)) => admitted(hub, subject, role, labels).await?,
        done => done.map(|()| member)?,
    };
    let key = Hash::sha256(subject.as_bytes());
    let body = EntryBody::MemberKey(MemberKey {
        member: member.clone(),
        role,
        key,
        labels: labels.clone(),
        removed: false,
    });
    let append = Append { request: format!("enrol-{member}"), by: by.to_owned(), body, effects: Vec::new() };
    sequence::append(&hub.database, &append).await?;
    Ok(member)
}

/// The member that was admitted with this SPIFFE id, role and labels: the same request again.
async fn admitted(
    hub: &Hub,
    subject: &str,
    role: Role,
    labels: &BTreeSet<String>,
) -> Result<String, HubError> {
    let labels = labels_text(labels)?;
    let row = hub
        .database
        .with(async |client| {
            let sql = "SELECT id FROM member WHERE subject = $1 AND role = $2 AND labels = $3 AND key_hash IS NULL AND revoked_at IS NULL";
            Ok(client.query_opt(sql, &[&subject, &role_word(role), &labels]).await?)
        })
        .await?;
    let taken = || {
        let why = "this SPIFFE id is or was a member's, with another role or other labels: admit another id";
        HubError::conflict("subject-taken", why)
    };
    Ok(column(&row.ok_or_else(taken)?, 0)?)
}

/// Who makes a request with this certificate.
///
/// # Errors
/// If it is no member, or no longer.
pub async fn identify(hub: &Hub, claim: &Claim) -> Result<Member, HubError> {
    let row = hub
        .database
        .with(async |client| {
            let sql = "SELECT id, role, key_hash, revoked_at IS NOT NULL FROM member WHERE subject = $1";
            Ok(client.query_opt(sql, &[&claim.subject]).await?)
        })
        .await?;
    let unknown = || HubError::forbidden("member", "the certificate is of no member of this fleet");
    let row = row.ok_or_else(unknown)?;
    let key: Option<Vec<u8>> = column(&row, 2)?;
    if key.is_some_and(|key| key != claim.key_hash) {
        return Err(HubError::forbidden(
            "member-key",
            "the certificate has another key than the member enrolled with",
        ));
    }
    if column(&row, 3)? {
        return Err(HubError::forbidden("revoked", "this member was revoked"));
    }
    let role: String = column(&row, 1)?;
    let role = role_of(&role).ok_or_else(unknown)?;
    Ok(Member { id: column(&row, 0)?, role, subject: claim.subject.clone() })
}

/// Marks the token as this key's, or finds that it was already.
async fn claim_token(
    client: &mut tokio_postgres::Client,
    stored: &Hash,
    key: &[u8; 32],
    fresh: &str,
) -> Result<Option<(String, Role, BTreeSet<String>)>, StoreError> {
    let sql = "UPDATE enrol_token SET used_key = $2, used_by = COALESCE(used_by, $3) \
               WHERE hash = $1 AND expires_at > now() AND (used_key IS NULL OR used_key = $2) RETURNING used_by, role, labels";
    let row = client.query_opt(sql, &[&stored.as_bytes().as_slice(), &key.as_slice(), &fresh]).await?;
    let Some(row) = row else { return Ok(None) };
    let role: String = row.try_get(1)?;
    let role = role_of(&role).ok_or_else(|| StoreError::Broken(format!("a token has the role `{role}`")))?;
    Ok(Some((row.try_get(0)?, role, labels_of(row.try_get(2)?)?)))
}

async fn insert_member(
    hub: &Hub,
    member: &str,
    role: Role,
    name: &str,
    subject: &str,
    key: Option<&[u8; 32]>,
    labels: &BTreeSet<String>,
) -> Result<(), HubError> {
    let labels = labels_text(labels)?;
    let key = key.map(|key| key.as_slice());
    hub.database
        .with(async |client| {
            let sql = "INSERT INTO member (id, role, name, subject, key_hash, labels) VALUES ($1, $2, $3, $4, $5, $6) \
                       ON CONFLICT (id) DO NOTHING";
            client.execute(sql, &[&member, &role_word(role), &name, &subject, &key, &labels]).await?;
            Ok(())
        })
        .await?;
    Ok(())
}

fn answer(
    hub: &Hub,
    member: String,
    role: Role,
    subject: &str,
    key: &RequestedKey,
) -> Result<EnrolAnswer, HubError> {
    let made = hub.keys.authority.member(subject, key);
    let (certificate, expires_ms) = made.map_err(|why| HubError::wrong("csr", why.to_string()))?;
    let settings = &hub.keys.settings;
    Ok(EnrolAnswer {
        member,
        role,
        certificate,
        expires_ms,
        witnesses: settings.witnesses.clone(),
        quorum: settings.quorum,
    })
}

/// The word for a role in the database and in SPIFFE ids.
#[must_use]
pub const fn role_word(role: Role) -> &'static str {
    match role {
        Role::Machine => "machine",
        Role::Approver => "approver",
        Role::Admin => "admin",
        Role::Hub => "hub",
    }
}

/// The role of a word; a hub is no member.
#[must_use]
pub fn role_of(word: &str) -> Option<Role> {
    [Role::Machine, Role::Approver, Role::Admin].into_iter().find(|role| role_word(*role) == word)
}

fn labels_text(labels: &BTreeSet<String>) -> Result<String, StoreError> {
    serde_json::to_string(labels).map_err(|why| StoreError::Refused(why.to_string()))
}

/// Labels as they are stored.
///
/// # Errors
/// If they are not.
pub fn labels_of(text: &str) -> Result<BTreeSet<String>, StoreError> {
    serde_json::from_str(text).map_err(|why| StoreError::Broken(format!("stored labels: {why}")))
}

fn column<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, StoreError> {
    Ok(row.try_get(at)?)
}
