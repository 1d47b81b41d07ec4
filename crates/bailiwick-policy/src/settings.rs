//! Settings of a configuration file besides `[caveats]`: what is recorded, where programs are looked for by name, and
//! whether `wrap` may only audit.
//!
//! Fails closed when: the table `[journal]` is there and cannot be read. Who reads it must then refuse.

use crate::document::{self, Fields};
use crate::finding::{Code, Collector, Findings};
use crate::path::AbsPath;

/// Which calls a hook records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HookRecords {
    /// Those that it refuses or asks about.
    #[default]
    Refused,
    /// Those that it allows too.
    All,
}

impl HookRecords {
    /// Reads `[journal] hooks = "refused"` or `"all"` of a configuration file; the first unless it says otherwise.
    ///
    /// # Errors
    /// What is wrong with the file or its table `[journal]`.
    pub fn parse_config(text: &str) -> Result<Self, Findings> {
        let node = document::parse(text)?;
        let entries = node.table(Code::CaveatsShape)?;
        let Some(journal) = entries.iter().find(|entry| entry.key == "journal") else {
            return Ok(Self::default());
        };
        let mut found = Collector::default();
        let mut fields = Fields::from_node(&journal.node, "the table `journal`", Code::CaveatsShape)?;
        let hooks =
            fields.optional("hooks").and_then(|node| match found.keep(node.text(Code::CaveatsShape))? {
                "refused" => Some(Self::Refused),
                "all" => Some(Self::All),
                _ => {
                    found.push(node.expected(Code::CaveatsShape, "`\"refused\"` or `\"all\"`"));
                    None
                }
            });
        fields.finish(Code::CaveatsShape, &mut found);
        found.finish(hooks.unwrap_or_default())
    }
}

/// The directories of `[programs] path`, in their order; none if the table is not there.
///
/// # Errors
/// A finding for every entry that is no absolute path.
///
/// # Examples
/// ```
/// use bailiwick_policy::settings::program_directories;
///
/// let directories = program_directories("[programs]\npath = ['/opt/tools/bin']\n")?;
/// assert_eq!(directories.len(), 1);
/// assert!(program_directories("[programs]\npath = ['bin']\n").is_err());
/// # Ok::<(), bailiwick_policy::finding::Findings>(())
/// ```
pub fn program_directories(text: &str) -> Result<Vec<AbsPath>, Findings> {
    let node = document::parse(text)?;
    let entries = node.table(Code::CaveatsShape)?;
    let Some(programs) = entries.iter().find(|entry| entry.key == "programs") else { return Ok(Vec::new()) };
    let fields = programs.node.table(Code::CaveatsShape)?;
    let Some(path) = fields.iter().find(|field| field.key == "path") else { return Ok(Vec::new()) };
    let mut found = Collector::default();
    let read = |item: &document::Node<'_>| item.place(AbsPath::new(item.text(Code::CaveatsShape)?));
    let items = path.node.list(Code::CaveatsShape)?;
    let directories = items.iter().filter_map(|item| found.keep(read(item))).collect();
    found.finish(directories)
}

/// Whether `[wrap] audit = true` lets `bailiwick wrap --mode audit` be used; not if the table is not there.
///
/// # Errors
/// What is wrong with the file or its table `[wrap]`.
pub fn allows_audit(text: &str) -> Result<bool, Findings> {
    let node = document::parse(text)?;
    let entries = node.table(Code::CaveatsShape)?;
    let Some(wrap) = entries.iter().find(|entry| entry.key == "wrap") else { return Ok(false) };
    let mut found = Collector::default();
    let mut fields = Fields::from_node(&wrap.node, "the table `wrap`", Code::CaveatsShape)?;
    let audit = fields.optional("audit").and_then(|node| found.keep(node.flag(Code::CaveatsShape)));
    fields.finish(Code::CaveatsShape, &mut found);
    found.finish(audit.unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_is_allowed_by_one_word_alone() {
        assert!(allows_audit("[wrap]\naudit = true\n").is_ok_and(|allowed| allowed));
        for text in ["", "[wrap]\n", "[wrap]\naudit = false\n", "[journal]\nhooks = 'all'\n"] {
            assert!(allows_audit(text).is_ok_and(|allowed| !allowed), "{text}");
        }
        for text in ["[wrap]\naudit = 'true'\n", "[wrap]\nmode = 'audit'\n", "wrap = true\n"] {
            assert!(allows_audit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn hooks_record_what_they_refuse_unless_the_file_says_all() {
        let read = |text: &str| HookRecords::parse_config(text).map_err(|findings| findings.to_string());
        assert_eq!(read(""), Ok(HookRecords::Refused));
        assert_eq!(read("[journal]\n"), Ok(HookRecords::Refused));
        assert_eq!(read("[caveats]\nexec = 'all'\n"), Ok(HookRecords::Refused));
        assert_eq!(read("[journal]\nhooks = 'refused'\n"), Ok(HookRecords::Refused));
        assert_eq!(read("[journal]\nhooks = 'all'\n"), Ok(HookRecords::All));
        for bad in ["[journal]\nhooks = 'none'\n", "[journal]\nhook = 'all'\n", "journal = 1\n", "[journal"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
