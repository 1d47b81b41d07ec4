//! Reading the files that a command was given, each at most up to a limit.
//!
//! Fails closed when a file is unreadable, larger than the limit or not UTF-8: there is no partial text.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use bailiwick_manifest::Manifest;
use bailiwick_manifest::diff::Accepted;
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_policy::authority::Authority;
use bailiwick_policy::capability::Capability;
use bailiwick_policy::finding::{Code, Finding, Findings, Source, Span};

use crate::answer::{Answer, Exit};
use crate::facts;
use crate::grant_file::GrantFile;
use crate::render::{escape, snippet, style};

/// The largest file that is read, in bytes.
const LIMIT: u64 = 16 * 1024 * 1024;

/// Why a file is of no use.
#[derive(Debug)]
pub enum InputError {
    /// The system would not give it to us.
    Unreadable(String),
    /// Its text is wrong.
    Wrong(Source, Vec<Finding>),
}

impl InputError {
    /// A text with findings.
    pub fn wrong(source: Source, findings: Findings) -> Self {
        Self::Wrong(source, findings.into_vec())
    }

    /// In one line.
    pub fn in_words(&self) -> String {
        match self {
            Self::Unreadable(why) => why.clone(),
            Self::Wrong(source, findings) => {
                let first = findings.first().map(|finding| finding.message().to_owned()).unwrap_or_default();
                format!("`{}` cannot be used: {first}", source.name())
            }
        }
    }

    /// As an answer of a command that needed the file.
    pub fn refusal(&self) -> Answer {
        let text = match self {
            Self::Unreadable(why) => unreadable(why),
            Self::Wrong(source, findings) => {
                let count = style::count(findings.len(), "finding", "findings");
                let name = escape::line(source.name());
                let hint = format!("{}: {name} cannot be used: {count}\n", style::error("error"));
                snippet::findings(source, findings) + &hint
            }
        };
        Answer::refusal(Exit::Invalid, text)
    }
}

/// One line about a file that could not be read.
pub fn unreadable(why: &str) -> String {
    format!("{}: {}\n", style::error("error"), escape::line(why))
}

/// Reads one text; `-` is stdin.
pub fn read(path: &Path) -> Result<Source, InputError> {
    let (name, bytes) = if path == Path::new("-") {
        ("<stdin>".to_owned(), bounded(std::io::stdin().lock()))
    } else {
        (path.to_string_lossy().into_owned(), File::open(path).and_then(bounded))
    };
    let bytes = bytes.map_err(|fault| InputError::Unreadable(format!("cannot read `{name}`: {fault}")))?;
    decode(name, bytes)
}

/// Reads one text of at most so many bytes.
pub fn read_at_most(path: &Path, most: u64) -> Result<Source, InputError> {
    let source = read(path)?;
    if u64::try_from(source.text().len()).is_ok_and(|length| length <= most) {
        return Ok(source);
    }
    Err(InputError::Unreadable(format!("`{}` is larger than {most} bytes", source.name())))
}

/// The directories in which the user's settings have programs looked for by name; none without settings.
pub fn program_directories() -> Result<Vec<PathBuf>, InputError> {
    let settings = facts::settings_file().filter(|path| path.symlink_metadata().is_ok());
    let Some(path) = settings else { return Ok(Vec::new()) };
    let source = read(&path)?;
    let directories = bailiwick_manifest::settings::program_directories(source.text());
    let directories = directories.map_err(|findings| InputError::wrong(source, findings))?;
    Ok(directories.iter().map(|directory| PathBuf::from(directory.to_string())).collect())
}

fn bounded(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LIMIT + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn decode(name: String, bytes: Vec<u8>) -> Result<Source, InputError> {
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > LIMIT {
        let finding = Finding::new(Code::SourceTooLarge, format!("the file is larger than {LIMIT} bytes"))
            .help("split it, or write patterns instead of single paths");
        return Err(InputError::Wrong(Source::new(name, ""), vec![finding]));
    }
    let decoded = String::from_utf8(bytes);
    // Some editors put a byte order mark in front; it is no part of the text.
    let clean = |text: String| text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    decoded.map(|text| Source::new(&*name, clean(text))).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(at).copied().unwrap_or_default();
        let finding = Finding::new(Code::SourceEncoding, format!("the byte 0x{byte:02x} is not UTF-8"))
            .at(Span::new(at, at + char::REPLACEMENT_CHARACTER.len_utf8()))
            .help("save the file as UTF-8");
        InputError::Wrong(Source::new(name, String::from_utf8_lossy(error.as_bytes())), vec![finding])
    })
}

/// Reads a file that grants, in any of the forms: a manifest or snapshot, caveats, or a list of capabilities.
pub fn grant(path: &Path) -> Result<(Source, GrantFile), InputError> {
    let source = read(path)?;
    match GrantFile::parse(source.text()) {
        Ok(grant) => Ok((source, grant)),
        Err(findings) => Err(InputError::wrong(source, findings)),
    }
}

/// Reads a manifest; a snapshot counts as the manifest it was taken of.
pub fn manifest(path: &Path) -> Result<(Source, Manifest), InputError> {
    match grant(path)? {
        (source, GrantFile::Manifest(manifest)) => Ok((source, *manifest)),
        (source, other @ (GrantFile::Caveats(_) | GrantFile::List(_))) => {
            let message = format!("this has the form of {}, and a manifest is needed", other.form());
            let finding = Finding::new(Code::ManifestShape, message)
                .help("write a manifest (`bailiwick init`), or give it to `bailiwick serve --grant`");
            Err(InputError::Wrong(source, vec![finding]))
        }
    }
}

/// Reads capabilities of the command line. What is wrong with one is wrong with the command line.
pub fn capabilities(option: &str, texts: &[String]) -> Result<Vec<Capability>, Answer> {
    texts.iter().map(|text| capability(option, text)).collect()
}

/// Reads one capability of the command line.
pub fn capability(option: &str, text: &str) -> Result<Capability, Answer> {
    text.parse().map_err(|finding| wrong_capability(option, text, &finding))
}

/// What capabilities of the command line grant together.
pub fn authority(option: &str, caps: &[Capability]) -> Result<Authority, Answer> {
    for cap in caps {
        if let Err(finding) = Authority::from_capabilities(std::slice::from_ref(cap)) {
            return Err(wrong_capability(option, &cap.to_string(), &finding));
        }
    }
    Authority::from_capabilities(caps).map_err(|finding| wrong_capability(option, "", &finding))
}

/// The refusal of a capability of the command line.
pub fn wrong_capability(option: &str, text: &str, finding: &Finding) -> Answer {
    let source = Source::new(option, text);
    Answer::refusal(Exit::Usage, snippet::finding(&source, finding) + "\n")
}

/// Reads a snapshot, or takes that of a manifest.
pub fn snapshot(path: &Path) -> Result<(Source, Snapshot), InputError> {
    let source = read(path)?;
    match Snapshot::parse(source.text()) {
        Ok(snapshot) => Ok((source, snapshot)),
        Err(findings) => Err(InputError::wrong(source, findings)),
    }
}

/// Reads a file of accepted risks.
pub fn accepted(path: &Path) -> Result<Vec<Accepted>, InputError> {
    let source = read(path)?;
    Accepted::parse(source.text()).map_err(|findings| InputError::wrong(source, findings))
}

/// Whether a text is a stored snapshot rather than a manifest. Says nothing about whether it is a good one.
pub fn is_snapshot(text: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Marked {
        #[serde(rename = "format")]
        _format: serde::de::IgnoredAny,
    }
    text.trim_start().starts_with('{') && serde_json::from_str::<Marked>(text).is_ok()
}
