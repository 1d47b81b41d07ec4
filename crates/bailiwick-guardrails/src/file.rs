//! A project's guardrails file: absent, good, broken, or changed since it was trusted.
//!
//! Fails closed: a file that is there and cannot be used is not "no policy".

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::rules_file::Guardrails;
use bailiwick_manifest::Declared;
use bailiwick_policy::digest::Digest;
use bailiwick_policy::finding::{Code, Finding, Findings, Source, Span};

use super::rails::Rails;
use super::script;
use super::trust::{self, Trust};

/// Where a project's guardrails are, below its directory.
pub const GUARDRAILS: &str = ".agents/guardrails.toml";

/// The largest file that is read.
const MAX_FILE: u64 = 1024 * 1024;

/// A file's text, and its name for messages.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) source: Source,
}

/// What a project's file is.
#[derive(Debug)]
pub enum Policy {
    /// There is none, and none was ever trusted.
    Absent,
    /// It can be used.
    Good(Box<Good>),
    /// It is there and cannot be used.
    Broken(Box<Broken>),
    /// It was trusted, and is now missing or different.
    Changed(String),
}

/// A file that can be used.
#[derive(Debug)]
pub struct Good {
    /// The rules.
    pub rails: Rails,
    /// What was written.
    pub written: Guardrails,
    /// The text they were read from.
    pub source: Source,
    /// What tells that text from others.
    pub(crate) digest: Digest,
    /// Whether a person trusts the directory, so that scripts may run.
    pub trusted: bool,
}

/// A file that cannot be used, and why.
#[derive(Debug)]
pub struct Broken {
    /// Its text.
    pub source: Source,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

impl Policy {
    /// Reads the file of a directory and compares it with what was trusted.
    #[must_use]
    pub fn load(workdir: &Path, trust: &Trust) -> Self {
        Self::load_known(workdir, trust, None)
    }

    /// The same; patterns of rules with the digest `known`, which were found good before, are not checked again.
    pub(crate) fn load_known(workdir: &Path, trust: &Trust, known: Option<&str>) -> Self {
        let trusted = trust.hash(workdir);
        match read(workdir) {
            Ok(None) => match trusted {
                Some(_) => Self::Changed(format!("`{GUARDRAILS}` was trusted and is gone")),
                None => Self::Absent,
            },
            Ok(Some(text)) => {
                let digest = Digest::sha256(text.source.text().as_bytes());
                match compile(workdir, &text, known == Some(&digest.to_string())) {
                    Ok((written, rails)) => Self::compared(workdir, text, digest, (written, rails), trusted),
                    Err(findings) => Self::Broken(Box::new(Broken { source: text.source, findings })),
                }
            }
            Err(broken) => Self::Broken(broken),
        }
    }

    /// The rules of a text that is no project's file; its scripts never run. `name` is what messages call it.
    #[must_use]
    pub fn of_text(name: &str, text: &str) -> Self {
        let source = Source::new(name, text);
        let digest = Digest::sha256(text.as_bytes());
        match compile_text(text) {
            Ok((written, rails)) => {
                Self::Good(Box::new(Good { rails, written, digest, source, trusted: false }))
            }
            Err(findings) => Self::Broken(Box::new(Broken { source, findings })),
        }
    }

    fn compared(
        workdir: &Path,
        text: Text,
        digest: Digest,
        (written, rails): (Guardrails, Rails),
        trusted: Option<&str>,
    ) -> Self {
        if let Some(known) = trusted {
            match trust::hash(workdir, &text, rails.scripts()) {
                Ok(hash) if hash.to_string() == known => {}
                Ok(_) => {
                    return Self::Changed(format!(
                        "`{GUARDRAILS}` or a script it names is not what was trusted"
                    ));
                }
                Err(why) => return Self::Changed(why.to_string()),
            }
        }
        Self::Good(Box::new(Good { rails, written, digest, source: text.source, trusted: trusted.is_some() }))
    }

    /// The rules, if they can be used.
    #[must_use]
    pub fn rails(&self) -> Option<&Rails> {
        match self {
            Self::Good(good) => Some(&good.rails),
            Self::Absent | Self::Broken(_) | Self::Changed(_) => None,
        }
    }
}

impl Broken {
    /// The first finding with its place, and how many more there are; what an agent is told.
    #[must_use]
    pub fn summary(&self) -> String {
        let Some(first) = self.findings.first() else { return "it cannot be read".to_owned() };
        let place = first.span().map(|span| self.source.place(span.start));
        let place = place.map(|place| format!(":{}:{}", place.line, place.column)).unwrap_or_default();
        let more = match self.findings.len() {
            1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        format!("{}{place}: {first}{more}; run `bailiwick guard lint` to see it", self.source.name())
    }
}

/// The hash of a directory's guardrails, for a person to trust.
///
/// # Errors
/// Why there is nothing that could be trusted.
pub fn trustable(workdir: &Path) -> Result<Option<(Digest, Vec<String>)>, Box<Broken>> {
    let Some(text) = read(workdir)? else { return Ok(None) };
    match compile(workdir, &text, false) {
        Ok((_, rails)) => match trust::hash(workdir, &text, rails.scripts()) {
            Ok(hash) => Ok(Some((hash, rails.scripts().to_vec()))),
            Err(why) => Err(Box::new(Broken {
                source: text.source,
                findings: vec![Finding::new(Code::GuardrailScript, why.to_string())],
            })),
        },
        Err(findings) => Err(Box::new(Broken { source: text.source, findings })),
    }
}

/// The rules of a text that is no project's file: scripts are not looked for.
///
/// # Errors
/// Every finding.
pub fn compile_text(text: &str) -> Result<(Guardrails, Rails), Vec<Finding>> {
    compile_rules(text, false)
}

fn compile_rules(text: &str, checked_before: bool) -> Result<(Guardrails, Rails), Vec<Finding>> {
    let written = Guardrails::parse(text).map_err(Findings::into_vec)?;
    let rails = Rails::compiled(&written, checked_before)?;
    Ok((written, rails))
}

fn compile(workdir: &Path, text: &Text, checked_before: bool) -> Result<(Guardrails, Rails), Vec<Finding>> {
    let (written, rails) = compile_rules(text.source.text(), checked_before)?;
    let missing: Vec<Finding> = written.scripts().filter_map(|script| unusable(workdir, script)).collect();
    if missing.is_empty() { Ok((written, rails)) } else { Err(missing) }
}

/// What is wrong with a script, if anything.
fn unusable(workdir: &Path, script: &Declared<String>) -> Option<Finding> {
    let finding = |what: &str, help: &str| {
        let message = format!("the script `{}` {what}", script.value);
        Some(Finding::new(Code::GuardrailScript, message).at(script.span).help(help))
    };
    let (Ok(real), Ok(root)) = (workdir.join(&script.value).canonicalize(), workdir.canonicalize()) else {
        return finding("is not there", "write it, or remove the rule");
    };
    let Ok(found) = std::fs::metadata(&real) else {
        return finding("is not there", "write it, or remove the rule");
    };
    if !real.starts_with(&root) {
        return finding("leads out of the project", "put the script itself into the project");
    }
    if !found.is_file() || !script::is_executable(&found) {
        return finding("cannot be executed", "make it executable with `chmod +x`");
    }
    None
}

fn read(workdir: &Path) -> Result<Option<Text>, Box<Broken>> {
    let path: PathBuf = workdir.join(GUARDRAILS);
    let broken =
        |finding: Finding| Box::new(Broken { source: Source::new(GUARDRAILS, ""), findings: vec![finding] });
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(broken(Finding::new(Code::SourceSyntax, format!("it cannot be opened: {error}"))));
        }
    };
    let length = file.metadata().map_or(0, |found| found.len().min(MAX_FILE));
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default() + 1);
    if let Err(error) = file.take(MAX_FILE + 1).read_to_end(&mut bytes) {
        return Err(broken(Finding::new(Code::SourceSyntax, format!("it cannot be read: {error}"))));
    }
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_FILE {
        return Err(broken(Finding::new(
            Code::SourceTooLarge,
            format!("the file is larger than {MAX_FILE} bytes"),
        )));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(Text {
            source: Source::new(GUARDRAILS, text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)),
        })),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            Err(broken(Finding::new(Code::SourceEncoding, "the file is not UTF-8").at(Span::new(at, at))))
        }
    }
}
