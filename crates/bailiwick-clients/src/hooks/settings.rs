//! Where an agent keeps its hooks, and what an entry looks like there.

/// A settings file that takes our hooks.
#[derive(Debug)]
pub struct HookFile {
    /// The user's, below the home.
    pub user: &'static str,
    /// A project's, below its directory.
    pub project: &'static str,
    /// The directories by which it is seen that a person uses the agent: in the home, in a project.
    pub directories: [&'static str; 2],
    /// What is written into it.
    pub form: HookForm,
}

/// What is written into a settings file.
#[derive(Debug)]
pub enum HookForm {
    /// Entries beside those of others, in JSON.
    Entries(HookEntries),
    /// Lines of a file of our own, between two marks: this text, with the command as a JSON list for `{command}`.
    Block(&'static str),
}

/// Entries under `hooks`.
#[derive(Debug)]
pub struct HookEntries {
    /// The file as it starts.
    pub(super) empty: &'static str,
    /// Which tools an entry about tools is for; nothing for an agent whose entries are flat.
    pub(super) matcher: Option<&'static str>,
    /// The fields of a hook that have its command and its time.
    pub(super) command: &'static str,
    pub(super) timeout: &'static str,
    /// Whether a hook says that it is a command.
    pub(super) typed: bool,
    /// How many of its units of time a second has.
    pub(super) second: u32,
    /// Fields that make a hook before a call that cannot run a no: the event, the field, its JSON.
    pub(super) closed: &'static [(&'static str, &'static str, &'static str)],
}

impl HookFile {
    /// A file that has the same name in a home and in a project.
    pub(super) const fn same(path: &'static str, directory: &'static str, entries: HookEntries) -> Self {
        Self {
            user: path,
            project: path,
            directories: [directory, directory],
            form: HookForm::Entries(entries),
        }
    }

    /// Whether the file has our name: nothing but our hooks is expected in it.
    #[must_use]
    pub fn is_named_after_us(&self) -> bool {
        self.user.rsplit('/').next().is_some_and(|name| name.starts_with("bailiwick."))
    }
}

impl HookEntries {
    /// Entries with hooks in them, for tools that match.
    pub(super) const fn with_matcher(matcher: &'static str) -> Self {
        Self {
            empty: "{}\n",
            matcher: Some(matcher),
            command: "command",
            timeout: "timeout",
            typed: true,
            second: 1,
            closed: &[],
        }
    }

    /// Entries that are hooks themselves, in a file with a version.
    pub(super) const fn flat() -> Self {
        Self { empty: "{\n  \"version\": 1\n}\n", matcher: None, typed: false, ..Self::with_matcher("") }
    }
}
