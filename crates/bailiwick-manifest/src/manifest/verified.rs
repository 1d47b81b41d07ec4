//! `[verified]`: that the calls of a person were made under this manifest and answered as without it, and who says so.
//!
//! The signature is over everything that the manifest allows: a line that is changed afterwards is not verified. Whose key it is,
//! is for the caller to know; here only the form is read.

use bailiwick_policy::finding::{Code, Collector, Finding};
use serde_json::json;

use super::Manifest;
use super::read::plain_text;
use crate::document::{Fields, Node};

/// What is signed begins so, so that the signature is good for nothing else.
const PURPOSE: &str = "bailiwick-verified/1";

/// What a replay says of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The version of the server that it was tried with; empty where that is not known.
    pub version: String,
    /// How many calls answered the same.
    pub calls: u64,
    /// The day, `YYYY-MM-DD`.
    pub date: String,
    /// The public key of who says so, in hexadecimal digits.
    pub key: String,
    /// The signature over [`signed_text`](Manifest::signed_text).
    pub signature: String,
}

impl Manifest {
    /// What a signature of this is made over: everything that the manifest allows, and what is said of it.
    #[must_use]
    pub fn signed_text(&self, verified: &Verified) -> String {
        let Verified { version, calls, date, key, .. } = verified;
        let said = json!({ "version": version, "calls": calls, "date": date, "key": key });
        format!("{PURPOSE}\n{said}\n{}\n", self.canonical())
    }
}

pub(super) fn read_verified(node: &Node<'_>, found: &mut Collector) -> Option<Verified> {
    let mut fields = found.keep(Fields::from_node(node, "a verification", Code::ManifestShape))?;
    let mut text = |key: &'static str| {
        let node = found.keep(fields.required(key, Code::ManifestShape))?;
        found.keep(plain_text(node, &format!("`{key}`"))).map(|text| (text.to_owned(), node.span))
    };
    let (version, date, key, signature) = (text("version"), text("date"), text("key"), text("signature"));
    let calls = found.keep(fields.required("calls", Code::ManifestShape));
    let calls = calls.and_then(|node| found.keep(node.whole(Code::ManifestShape)));
    fields.finish(Code::ManifestUnknownField, found);
    let ((version, _), (date, at), (key, _), (signature, _), calls) =
        (version?, date?, key?, signature?, calls?);
    if !is_date(&date) {
        let finding = Finding::new(Code::ManifestShape, format!("`{}` is not a date", date.escape_debug()));
        found.push(finding.at(at).help("have `bailiwick replay` write it"));
    }
    Some(Verified { version, calls, date, key, signature })
}

fn is_date(text: &str) -> bool {
    let is_right =
        |(at, byte): (usize, u8)| if [4, 7].contains(&at) { byte == b'-' } else { byte.is_ascii_digit() };
    text.len() == 10 && text.bytes().enumerate().all(is_right)
}
