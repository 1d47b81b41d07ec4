//! `verified = { … }` of a manifest: signed by a replay with the key of the journal, and what it is worth to others.

use anyhow::Context as _;
use bailiwick_journal::format::Signature;
use bailiwick_journal::{fingerprint, holds, local_fingerprint, local_key, sign_locally};
use bailiwick_manifest::{Manifest, Verified};
use bailiwick_policy::digest::Digest;

use crate::facts;
use crate::render::escape;

/// A verification of today by the local key.
///
/// # Errors
/// If there is no key.
pub fn signed(manifest: &Manifest, version: &str, calls: usize) -> anyhow::Result<Verified> {
    let dir = facts::journal_dir().context("neither XDG_STATE_HOME nor HOME says where the key is")?;
    let key = local_key(&dir)?;
    let mut verified = Verified {
        version: version.to_owned(),
        calls: u64::try_from(calls)?,
        date: facts::today().to_string(),
        key: key.to_string(),
        signature: String::new(),
    };
    let (_, signature) = sign_locally(&dir, manifest.signed_text(&verified).as_bytes())?;
    verified.signature = signature.to_string();
    Ok(verified)
}

/// The value behind `verified =`.
pub fn inline(verified: &Verified) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    format!(
        "{{ version = {}, calls = {}, date = {}, key = {}, signature = {} }}",
        quoted(&verified.version),
        verified.calls,
        quoted(&verified.date),
        quoted(&verified.key),
        quoted(&verified.signature)
    )
}

/// What to say of a manifest's verification; nothing where it has none.
pub fn in_words(manifest: &Manifest) -> Option<String> {
    let verified = manifest.verified()?;
    let calls =
        crate::render::style::count(usize::try_from(verified.calls).unwrap_or(usize::MAX), "call", "calls");
    let version = Some(&verified.version).filter(|version| !version.is_empty());
    let version = version.map_or(String::new(), |version| format!(" of version {}", escape::line(version)));
    let what =
        format!("{calls}{version} answered the same under this manifest on {}", escape::line(&verified.date));
    let Some(key) = Digest::from_hex(verified.key.as_bytes()) else {
        return Some(
            "the manifest says that it is verified, by something that is no key: it counts for nothing"
                .to_owned(),
        );
    };
    let signature = Signature::from_hex(verified.signature.as_bytes());
    let text = manifest.signed_text(verified);
    if !signature.is_some_and(|signature| holds(&key, &signature, text.as_bytes())) {
        return Some(
            "the manifest says that it is verified, and the signature does not hold: it was changed afterwards; run `bailiwick replay` again"
                .to_owned(),
        );
    }
    let own = facts::journal_dir().and_then(|dir| local_fingerprint(&dir).ok().flatten());
    Some(if own == Some(fingerprint(&key)) {
        format!("verified: {what}")
    } else {
        let fingerprint: String = fingerprint(&key).to_string().chars().take(16).collect();
        format!("claimed: {what}, says key {fingerprint}, which is not yours")
    })
}
