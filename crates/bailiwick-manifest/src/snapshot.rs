//! Snapshots: a manifest in canonical JSON (RFC 8785) with its hash, for review and for later comparison.

use bailiwick_policy::finding::{Code, Collector, Finding, Findings};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::document::{self, Fields, Node};
use crate::manifest::{Manifest, read_node};

const FORMAT: &str = "bailiwick.snapshot/1";

/// A manifest as it was reviewed.
///
/// # Examples
/// ```
/// use bailiwick_manifest::Manifest;
/// use bailiwick_manifest::snapshot::Snapshot;
///
/// let manifest = Manifest::parse("name = 'n'\nversion = '1'\nserver_capabilities = ['fs:read:/a']\n")?;
/// let snapshot = Snapshot::from_manifest(manifest)?;
/// let text = snapshot.to_text()?;
/// assert_eq!(Snapshot::parse(&text)?.hash(), snapshot.hash());
/// assert!(Snapshot::parse(&text.replace("/a", "/b")).is_err(), "its hash is verified");
/// # Ok::<(), bailiwick_policy::finding::Findings>(())
/// ```
#[derive(Debug, Clone)]
pub struct Snapshot {
    manifest: Manifest,
    hash: String,
}

impl Snapshot {
    /// The snapshot of a manifest.
    ///
    /// # Errors
    /// A finding if the manifest cannot be written as canonical JSON.
    pub fn from_manifest(manifest: Manifest) -> Result<Self, Finding> {
        let hash = hash(&manifest.canonical())?;
        Ok(Self { manifest, hash })
    }

    /// Reads a snapshot and verifies its hash, or takes the snapshot of an author's manifest.
    ///
    /// # Errors
    /// Everything that is wrong with the text; a snapshot whose hash does not fit.
    pub fn parse(text: &str) -> Result<Self, Findings> {
        let node = document::parse(text)?;
        let is_snapshot = node.table(Code::ManifestShape)?.iter().any(|entry| entry.key == "format");
        if is_snapshot { read(&node) } else { Ok(Self::from_manifest(read_node(&node)?)?) }
    }

    /// The manifest.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// `sha256:` and the hash of the canonical manifest.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The snapshot as canonical JSON, one line.
    ///
    /// # Errors
    /// A finding if it cannot be written as canonical JSON.
    pub fn to_text(&self) -> Result<String, Finding> {
        canonical(&json!({ "format": FORMAT, "hash": self.hash, "manifest": self.manifest.canonical() }))
    }
}

fn read(node: &Node<'_>) -> Result<Snapshot, Findings> {
    let mut found = Collector::default();
    let mut fields = Fields::from_node(node, "a snapshot", Code::ManifestShape)?;
    let format = fields.required("format", Code::SnapshotVersion)?;
    if format.text(Code::SnapshotVersion)? != FORMAT {
        return Err(Finding::new(Code::SnapshotVersion, "this snapshot is of another format")
            .at(format.span)
            .help(format!("take a new one with `bailiwick snapshot`; this version reads `{FORMAT}`"))
            .into());
    }
    let stated = fields.required("hash", Code::SnapshotHash)?;
    let manifest = read_node(fields.required("manifest", Code::ManifestShape)?)?;
    fields.finish(Code::ManifestUnknownField, &mut found);
    let snapshot = Snapshot::from_manifest(manifest)?;
    if stated.text(Code::SnapshotHash)? != snapshot.hash {
        found.push(
            Finding::new(Code::SnapshotHash, format!("the content's hash is `{}`", snapshot.hash))
                .at(stated.span)
                .help("the snapshot was edited; take it again from the manifest and review it"),
        );
    }
    found.finish(snapshot)
}

fn hash(value: &Value) -> Result<String, Finding> {
    let digest = Sha256::digest(canonical(value)?.as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sha256:{hex}"))
}

fn canonical(value: &Value) -> Result<String, Finding> {
    serde_json_canonicalizer::to_string(value).map_err(|error| {
        Finding::new(Code::ManifestShape, format!("cannot be written as canonical JSON: {error}"))
    })
}
