//! Where an agent keeps its hooks, and what an entry looks like there.

/// A settings file that takes our hooks.
#[derive(Debug)]
pub struct HookFile {
    /// The user's, below the home.
    pub user: &'static str,
    /// A project's, below its directory.
    pub project: &'static str,
    /// The folders by which it is seen that a person uses the agent: in the home, in a project.
    pub folders: [&'static str; 2],
    /// What is written into it.
    pub form: HookForm,
}

/// What is written into a settings file.
#[derive(Debug)]
pub enum HookForm {
    /// Entries beside those of others, in JSON.
    Entries(HookEntries),
    /// The whole file is ours: this text, with the program for `{program}`.
    Whole(&'static str),
}

/// Entries under `hooks`.
#[derive(Debug)]
pub struct HookEntries {
    /// The file as it starts.
    pub(super) empty: &'static str,
    /// Which tools an entry about tools is for; nothing for an agent whose entries are flat.
    pub(super) matcher: Option<&'static str>,
    /// How many of its units of time a second has.
    pub(super) second: u32,
    /// Fields that make a hook before a call that cannot run a no: the event, the field, its JSON.
    pub(super) closed: &'static [(&'static str, &'static str, &'static str)],
}

impl HookFile {
    /// A file that has the same name in a home and in a project.
    pub(super) const fn same(path: &'static str, folder: &'static str, entries: HookEntries) -> Self {
        Self { user: path, project: path, folders: [folder, folder], form: HookForm::Entries(entries) }
    }
}

impl HookEntries {
    pub(super) const fn with_matcher(matcher: &'static str) -> Self {
        Self { empty: "{}\n", matcher: Some(matcher), second: 1, closed: &[] }
    }
}
