//! The entries of a settings text that start a server as a program.

use std::path::Path;

use crate::SettingsError;
use crate::clients::{ServerTable, ServersForm};
use crate::tree::{Field, Node};

/// A server that a client starts as a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Where it stands in the settings.
    pub path: Vec<String>,
    /// Its program and arguments.
    pub command: Vec<String>,
}

impl Server {
    /// What the client calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// Whether `bailiwick wrap` stands before its command.
    #[must_use]
    pub fn is_wrapped(&self) -> bool {
        self.wrapped_command().is_some()
    }

    /// The server's own command behind `bailiwick wrap … --`.
    pub(crate) fn wrapped_command(&self) -> Option<&[String]> {
        let [program, wrap, rest @ ..] = self.command.as_slice() else { return None };
        let is_ours = Path::new(program).file_stem().is_some_and(|name| name == "bailiwick");
        let end = rest.iter().position(|word| word == "--")?;
        let own = rest.get(end + 1..)?;
        (is_ours && wrap == "wrap" && !own.is_empty()).then_some(own)
    }

    /// Whether the prefix looks as we write it: people begin theirs otherwise.
    pub(crate) fn is_as_we_write(&self) -> bool {
        self.is_wrapped() && self.command.get(2).is_some_and(|word| word == "--name")
    }
}

/// The places of a server's entry.
pub(crate) struct ServerEntry<'a> {
    pub(crate) path: Vec<String>,
    /// The table that has the fields below.
    pub(crate) table: &'a Node,
    pub(crate) command: CommandPlace<'a>,
    pub(crate) variables: Option<&'a Field>,
}

/// Where a command stands.
pub(crate) enum CommandPlace<'a> {
    /// A program, and its arguments in a list of their own.
    Program { program: &'a Field, arguments: Option<&'a Field> },
    /// One list.
    List(&'a Node),
}

impl ServerEntry<'_> {
    pub(crate) fn server(&self) -> Server {
        let words = |list: &Node| -> Vec<String> {
            list.items().unwrap_or_default().iter().filter_map(Node::text).map(str::to_owned).collect()
        };
        let command = match &self.command {
            CommandPlace::List(list) => words(list),
            CommandPlace::Program { program, arguments } => {
                let program = program.value.text().unwrap_or_default().to_owned();
                let arguments = arguments.map(|field| words(&field.value)).unwrap_or_default();
                std::iter::once(program).chain(arguments).collect()
            }
        };
        Server { path: self.path.clone(), command }
    }

    /// Where the program stands.
    pub(crate) fn program(&self) -> Option<&Node> {
        match &self.command {
            CommandPlace::List(list) => list.items()?.first(),
            CommandPlace::Program { program, .. } => Some(&program.value),
        }
    }
}

/// Every entry that starts a program, in the order of the text.
pub(crate) fn entries<'a>(form: &ServersForm, tree: &'a Node) -> Result<Vec<ServerEntry<'a>>, SettingsError> {
    let mut found = Vec::new();
    for table in form.tables {
        below(form, tree, table, &[], &mut found)?;
    }
    Ok(found)
}

fn below<'a>(
    form: &ServersForm,
    node: &'a Node,
    way: ServerTable,
    path: &[String],
    found: &mut Vec<ServerEntry<'a>>,
) -> Result<(), SettingsError> {
    let Some(fields) = node.fields() else { return Ok(()) };
    let step = way.first().copied();
    for field in fields.iter().filter(|field| step.is_none_or(|step| step == "*" || step == field.name)) {
        once(fields, &field.name)?;
        let path: Vec<String> = path.iter().cloned().chain([field.name.clone()]).collect();
        match way {
            [_, rest @ ..] => below(form, &field.value, rest, &path, found)?,
            [] => found.extend(entry(form, &field.value, path)?),
        }
    }
    Ok(())
}

/// The one field of a name. Clients disagree about which of two counts.
fn once<'a>(fields: &'a [Field], name: &str) -> Result<Option<&'a Field>, SettingsError> {
    let mut named = fields.iter().filter(|field| field.name == name);
    match (named.next(), named.next()) {
        (found, None) => Ok(found),
        (_, Some(_)) => Err(SettingsError::Repeated(name.to_owned())),
    }
}

fn entry<'a>(
    form: &ServersForm,
    table: &'a Node,
    path: Vec<String>,
) -> Result<Option<ServerEntry<'a>>, SettingsError> {
    let Some(fields) = table.fields() else { return Ok(None) };
    let Some(command) = once(fields, "command")? else { return Ok(None) };
    // Zed once had the program, its arguments and variables inside `command`.
    if let Some(inner) = command.value.fields() {
        let Some(program) = once(inner, "path")? else { return Ok(None) };
        return with_program(form, &command.value, inner, program, path);
    }
    if let Some(items) = command.value.items() {
        let are_words = !items.is_empty() && items.iter().all(|item| item.text().is_some());
        let command = CommandPlace::List(&command.value);
        let variables = once(fields, form.variables)?;
        return Ok(are_words.then_some(ServerEntry { path, table, command, variables }));
    }
    with_program(form, table, fields, command, path)
}

fn with_program<'a>(
    form: &ServersForm,
    table: &'a Node,
    fields: &'a [Field],
    program: &'a Field,
    path: Vec<String>,
) -> Result<Option<ServerEntry<'a>>, SettingsError> {
    let arguments = once(fields, "args")?;
    let are_words = |field: &Field| {
        field.value.items().is_some_and(|items| items.iter().all(|item| item.text().is_some()))
    };
    if program.value.text().is_none_or(str::is_empty) || !arguments.is_none_or(are_words) {
        return Ok(None);
    }
    let command = CommandPlace::Program { program, arguments };
    Ok(Some(ServerEntry { path, table, command, variables: once(fields, form.variables)? }))
}
