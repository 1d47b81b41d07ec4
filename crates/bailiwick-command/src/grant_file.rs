//! A file that grants: a manifest or its snapshot, caveats, or capabilities one a line.
//!
//! The structure decides which it is: how the first line begins, and the fields at the top. No word elsewhere in the
//! text does, so a tool may be called `fs_read`.
//!
//! Fails closed when: a text has fields of two kinds. It is read as a manifest, which has no such fields.

use bailiwick_manifest::Manifest;
use bailiwick_manifest::caveats::Caveats;
use bailiwick_manifest::document::{self, Value};
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_policy::capability::Capability;
use bailiwick_policy::finding::{Collector, Findings, Span};

/// Fields that only a manifest has.
const OF_MANIFEST: [&str; 5] = ["name", "version", "tools", "server_capabilities", "serverCapabilities"];

/// Fields that only caveats have.
const OF_CAVEATS: [&str; 6] = ["fs_read", "fs_write", "exec", "net", "max_calls", "valid_for_generation"];

/// What a file grants, by the form it is written in.
#[derive(Debug, Clone)]
pub enum GrantFile {
    /// A manifest, or what a snapshot was taken of.
    Manifest(Box<Manifest>),
    /// Caveats, alone or as the table `caveats` of a configuration.
    Caveats(Box<Caveats>),
    /// Capabilities, one a line.
    List(Vec<Capability>),
}

impl GrantFile {
    /// Reads a file in any of the forms.
    ///
    /// # Errors
    /// Everything that is wrong with the text in the form that its structure says.
    pub fn parse(text: &str) -> Result<Self, Findings> {
        match Form::detect(text) {
            Form::List => read_list(text).map(Self::List),
            Form::Caveats => Caveats::parse(text).map(|caveats| Self::Caveats(Box::new(caveats))),
            Form::Configuration => match Caveats::parse_config(text)? {
                Some(caveats) => Ok(Self::Caveats(Box::new(caveats))),
                None => Manifest::parse(text).map(|manifest| Self::Manifest(Box::new(manifest))),
            },
            Form::Snapshot => {
                Snapshot::parse(text).map(|taken| Self::Manifest(Box::new(taken.manifest().clone())))
            }
            Form::Manifest => Manifest::parse(text).map(|manifest| Self::Manifest(Box::new(manifest))),
        }
    }

    /// The form in words, with its article.
    pub const fn form(&self) -> &'static str {
        match self {
            Self::Manifest(_) => "a manifest",
            Self::Caveats(_) => "caveats",
            Self::List(_) => "a list of capabilities",
        }
    }
}

/// How a text is written.
enum Form {
    List,
    Caveats,
    Configuration,
    Snapshot,
    Manifest,
}

impl Form {
    fn detect(text: &str) -> Self {
        if lines(text).next().is_none_or(|(_, line)| begins_like_capability(line)) {
            return Self::List;
        }
        // What cannot be read at all is said by the reader of manifests.
        let Ok(node) = document::parse(text) else { return Self::Manifest };
        let Value::Table(entries) = &node.value else { return Self::Manifest };
        let has = |name: &str| entries.iter().any(|entry| entry.key == name);
        match () {
            () if has("format") && text.trim_start().starts_with('{') => Self::Snapshot,
            () if OF_MANIFEST.iter().any(|name| has(name)) => Self::Manifest,
            () if has("caveats") => Self::Configuration,
            () if OF_CAVEATS.iter().any(|name| has(name)) => Self::Caveats,
            () => Self::Manifest,
        }
    }
}

/// The lines that say something, and where each begins. Blank ones and those behind `#` say nothing.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = text.split_inclusive('\n').scan(0, |start, line| {
        let own = *start;
        *start += line.len();
        Some((own + line.len() - line.trim_start().len(), line.trim()))
    });
    starts.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Neither TOML nor JSON begins so: a word of small letters and a colon.
fn begins_like_capability(line: &str) -> bool {
    let kind = line.split_once(':').map(|(kind, _)| kind);
    kind.is_some_and(|kind| !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase()))
}

fn read_list(text: &str) -> Result<Vec<Capability>, Findings> {
    let mut found = Collector::default();
    let mut read = Vec::new();
    for (start, line) in lines(text) {
        let whole = Span::new(0, line.len());
        let capability = line
            .parse::<Capability>()
            .map_err(|finding| finding.map_span(|span| Some(span.unwrap_or(whole).shifted(start))));
        read.extend(found.keep(capability));
    }
    found.finish(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> &'static str {
        GrantFile::parse(text).unwrap_or_else(|findings| panic!("{findings}\n{text}")).form()
    }

    const CAVEATS: &str = "fs_read = 'all'\nfs_write = 'all'\nexec = 'all'\nnet = 'all'\nmax_calls = 'unlimited'\n\
                           valid_for_generation = 'all'\n";

    #[test]
    fn words_of_one_form_are_names_in_another() {
        for word in OF_CAVEATS.into_iter().chain(["caveats", "format"]) {
            let manifest =
                format!("# {word} = 1\nname = '{word}'\nversion = '1'\n[[tools]]\nname = '{word}'\n");
            assert_eq!(form(&manifest), "a manifest", "{word}");
            assert_eq!(form(&format!("# {word}\nfs:read:/{word}\n")), "a list of capabilities", "{word}");
            let program = CAVEATS.replace("exec = 'all'", &format!("exec = {{ only = ['{word}'] }}"));
            assert_eq!(form(&program), "caveats", "{word}");
        }
        for word in OF_MANIFEST {
            let configuration = format!("[{word}x]\nname = 1\n[caveats]\n{CAVEATS}");
            assert_eq!(form(&configuration), "caveats", "{word}");
        }
    }

    #[test]
    fn a_text_of_two_forms_is_refused() {
        for text in [
            format!("name = 'm'\nversion = '1'\n{CAVEATS}"),
            format!("name = 'm'\nversion = '1'\n[caveats]\n{CAVEATS}"),
            "fs:read:/a\nname = 'm'\n".to_owned(),
            "name = 'm'\nversion = '1'\nfs:read:/a\n".to_owned(),
        ] {
            assert!(GrantFile::parse(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_wrong_line_of_a_list_is_found_where_it_stands() {
        let text = "fs:read:/a\n\n  exec:swan:x\n";
        let findings = GrantFile::parse(text).unwrap_err().into_vec();
        let [finding] = &*findings else { panic!("{findings:?}") };
        let span = finding.span().unwrap();
        assert_eq!(text.get(span.start..span.end), Some("swan"));
        assert!(GrantFile::parse("fs:read:/a\nnonsense\n").is_err());
    }

    #[test]
    fn what_says_nothing_grants_nothing() {
        for text in ["", "\n\n", "# fs:read:/\n"] {
            assert!(
                matches!(GrantFile::parse(text), Ok(GrantFile::List(lines)) if lines.is_empty()),
                "{text:?}"
            );
        }
    }
}
