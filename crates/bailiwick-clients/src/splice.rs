//! The places of a text that change, and nothing else of it.

use std::ops::Range;

use crate::clients::{ServersForm, Syntax};
use crate::entry::{CommandPlace, ServerEntry};
use crate::tree::{Field, Node};
use crate::{CommandPrefix, EntryChange, SettingsError};

/// One place of a text and what takes it.
pub(crate) struct Splice {
    at: Range<usize>,
    new: String,
}

/// The text with all splices, which do not overlap.
pub(crate) fn apply(text: &str, mut splices: Vec<Splice>) -> String {
    // Stable: of two at one place, the first comes first.
    splices.sort_by_key(|splice| splice.at.start);
    let mut done = String::new();
    let mut at = 0;
    for splice in splices {
        done += part(text, at..splice.at.start);
        done += &splice.new;
        at = splice.at.end;
    }
    done + part(text, at..text.len())
}

/// What undoes these splices: the whole part that they change, before and after.
pub(crate) fn as_change(
    text: &str,
    splices: &[Splice],
    entry: &ServerEntry<'_>,
    prefix: &CommandPrefix,
) -> EntryChange {
    let start = splices.iter().map(|splice| splice.at.start).min().unwrap_or_default();
    let end = splices.iter().map(|splice| splice.at.end).max().unwrap_or_default();
    let shifted = splices
        .iter()
        .map(|splice| Splice { at: splice.at.start - start..splice.at.end - start, new: splice.new.clone() });
    let before = part(text, start..end);
    EntryChange {
        path: entry.path.clone(),
        before: before.to_owned(),
        made: apply(before, shifted.collect()),
        variables: missing(entry, prefix).cloned().collect(),
        is_new_table: entry.variables.is_none(),
    }
}

/// The variables that an entry does not have yet.
fn missing<'a>(
    entry: &'a ServerEntry<'_>,
    prefix: &'a CommandPrefix,
) -> impl Iterator<Item = &'a (String, String)> {
    let known = entry.variables.and_then(|field| field.value.fields()).unwrap_or_default();
    prefix.variables.iter().filter(|(name, _)| !known.iter().any(|field| field.name == *name))
}

/// Puts back what was there, if what we made of it is still as it was.
pub(crate) fn restoring(text: &str, entry: &ServerEntry<'_>, before: &str, made: &str) -> Option<Splice> {
    let program = &entry.program()?.span;
    let mut places = text.match_indices(made).map(|(start, made)| start..start + made.len());
    let at = places.find(|at| at.start <= program.start && program.end <= at.end)?;
    Some(Splice { at, new: before.to_owned() })
}

/// Puts a prefix before the command of an entry.
pub(crate) fn wrapping(
    form: &ServersForm,
    text: &str,
    entry: &ServerEntry<'_>,
    prefix: &CommandPrefix,
) -> Result<Vec<Splice>, SettingsError> {
    let writing = Writing { text, syntax: form.syntax, entry };
    let arguments = prefix.arguments.iter().map(|word| writing.quoted(word));
    let (mut splices, near) = match &entry.command {
        CommandPlace::List(list) => {
            let words = std::iter::once(writing.quoted(&prefix.program)).chain(arguments).collect();
            (vec![writing.before_items(list, words)], None)
        }
        CommandPlace::Program { program, arguments: own } => {
            // The program as it is written, quotes and all.
            let raw = part(text, program.value.span.clone()).to_owned();
            let words: Vec<String> = arguments.chain([raw]).collect();
            let replaced = Splice { at: program.value.span.clone(), new: writing.quoted(&prefix.program) };
            let list = match own {
                Some(own) => writing.before_items(&own.value, words),
                None => writing.insert_after(program, "args", &format!("[{}]", words.join(", "))),
            };
            (vec![replaced, list], Some(*program))
        }
    };
    splices.extend(writing.variables(form.variables, near, prefix)?);
    Ok(splices)
}

/// Takes the prefix and our variables away from an entry that was written anew since.
pub(crate) fn unwrapping(
    text: &str,
    entry: &ServerEntry<'_>,
    change: Option<&EntryChange>,
) -> Option<Vec<Splice>> {
    let variables = change.map(|change| without_variables(text, entry, change));
    let command = without_prefix(text, entry)?;
    Some(command.into_iter().chain(variables.into_iter().flatten()).collect())
}

/// Takes away the variables that we added and that are what we wrote; the table too, if it was ours and would be empty.
fn without_variables(text: &str, entry: &ServerEntry<'_>, change: &EntryChange) -> Vec<Splice> {
    let Some((field, fields)) = entry.variables.and_then(|field| Some((field, field.value.fields()?))) else {
        return Vec::new();
    };
    let is_ours = |field: &Field| {
        change.variables.iter().any(|(name, value)| *name == field.name && field.value.text() == Some(value))
    };
    if !part(text, field.value.span.clone()).starts_with('{') || !fields.iter().any(is_ours) {
        return Vec::new();
    }
    if fields.iter().all(is_ours) {
        return match entry.table.fields().filter(|_| change.is_new_table) {
            Some(all) => removing(all, |one| one.name == field.name),
            None => vec![Splice { at: field.value.span.clone(), new: "{}".to_owned() }],
        };
    }
    removing(fields, is_ours)
}

/// Removes some fields of a table, each with what parts it from the next one, or from the one before. One at least stays.
fn removing(fields: &[Field], is_gone: impl Fn(&Field) -> bool) -> Vec<Splice> {
    let last_kept = fields.iter().rposition(|field| !is_gone(field));
    let inner = fields.iter().zip(fields.iter().skip(1)).enumerate();
    let inner = inner.filter(|(at, (field, _))| Some(*at) < last_kept && is_gone(field));
    let mut splices: Vec<Splice> = inner
        .map(|(_, (field, next))| Splice { at: field.key.start..next.key.start, new: String::new() })
        .collect();
    let kept = last_kept.and_then(|at| fields.get(at));
    if let (Some(kept), Some(last)) = (kept, fields.last()) {
        splices.push(Splice { at: kept.value.span.end..last.value.span.end, new: String::new() });
    }
    splices
}

fn without_prefix(text: &str, entry: &ServerEntry<'_>) -> Option<Vec<Splice>> {
    let (items, program) = match &entry.command {
        CommandPlace::List(list) => (list.items()?, None),
        CommandPlace::Program { program, arguments } => (arguments.as_ref()?.value.items()?, Some(program)),
    };
    let end = items.iter().position(|item| item.text() == Some("--"))?;
    let own = items.get(end + 1)?;
    let first = items.first()?.span.start;
    let Some(program) = program else {
        return Some(vec![Splice { at: first..own.span.start, new: String::new() }]);
    };
    let replaced = Splice { at: program.value.span.clone(), new: part(text, own.span.clone()).to_owned() };
    let until = match items.get(end + 2) {
        Some(next) => next.span.start,
        None => {
            let rest = part(text, own.span.end..text.len());
            let blank = rest.len() - rest.trim_start().len();
            // A comma behind the last item would stand alone.
            own.span.end + if rest.trim_start().starts_with(',') { blank + 1 } else { 0 }
        }
    };
    Some(vec![replaced, Splice { at: first..until, new: String::new() }])
}

/// How one entry is written.
struct Writing<'a> {
    text: &'a str,
    syntax: Syntax,
    entry: &'a ServerEntry<'a>,
}

impl Writing<'_> {
    fn quoted(&self, word: &str) -> String {
        let quoted = serde_json::Value::from(word).to_string();
        match self.syntax {
            Syntax::Json => quoted,
            // Basic strings of TOML are strings of JSON but for this one character.
            Syntax::Toml => quoted.replace('\u{7f}', "\\u007f"),
        }
    }

    /// Whether a table is written between braces.
    fn is_inline(&self, table: &Node) -> bool {
        part(self.text, table.span.clone()).starts_with('{')
    }

    /// New items before those of a list or of a table in braces, spaced as they are.
    fn before_items(&self, container: &Node, items: Vec<String>) -> Splice {
        let inside = container.span.start + 1;
        let first = match (container.items(), container.fields()) {
            (Some(items), _) => items.first().map(|item| item.span.start),
            (None, Some(fields)) => fields.first().map(|field| field.key.start),
            (None, None) => None,
        };
        let lead = first.map(|first| part(self.text, inside..first)).unwrap_or_default();
        let lead = if lead.trim().is_empty() { lead } else { "" };
        let between = if lead.contains('\n') { lead } else { " " };
        let end = match (first, lead) {
            (None, _) => "",
            (Some(_), "") => ", ",
            (Some(_), _) => ",",
        };
        Splice { at: inside..inside, new: lead.to_owned() + &items.join(&format!(",{between}")) + end }
    }

    /// A new field behind another one of the same table, written like it.
    fn insert_after(&self, near: &Field, name: &str, value: &str) -> Splice {
        let key = part(self.text, near.key.clone());
        let key = if key.contains(&near.name) { key.replace(&near.name, name) } else { self.quoted(name) };
        let between = part(self.text, near.key.end..near.value.span.start);
        let plain = |c: char| c.is_whitespace() || c == ':' || c == '=';
        let between = match (between.chars().all(plain), self.syntax) {
            (true, _) => between,
            (false, Syntax::Json) => ": ",
            (false, Syntax::Toml) => " = ",
        };
        let at = near.value.span.end..near.value.span.end;
        let before = part(self.text, 0..near.key.start);
        if self.is_line(self.entry.table) {
            let line = before.rfind('\n').map_or(0, |end| end + 1);
            let indent = part(before, line..before.len());
            return Splice { at, new: format!("\n{indent}{key}{between}{value}") };
        }
        let blank = part(before, before.trim_end().len()..before.len());
        let gap = blank.rfind('\n').map_or(" ", |line| part(blank, line..blank.len()));
        Splice { at, new: format!(",{gap}{key}{between}{value}") }
    }

    /// Whether the fields of a table stand on lines of their own, as under a TOML heading.
    fn is_line(&self, table: &Node) -> bool {
        self.syntax == Syntax::Toml && !self.is_inline(table)
    }

    /// The variables that an entry does not have yet.
    fn variables(
        &self,
        name: &str,
        near: Option<&Field>,
        prefix: &CommandPrefix,
    ) -> Result<Option<Splice>, SettingsError> {
        let field = self.entry.variables;
        let known = field.and_then(|field| field.value.fields()).unwrap_or_default();
        let items: Vec<String> = missing(self.entry, prefix)
            .map(|(name, value)| match self.syntax {
                Syntax::Json => format!("{}: {}", self.quoted(name), self.quoted(value)),
                Syntax::Toml => format!("{name} = {}", self.quoted(value)),
            })
            .collect();
        if items.is_empty() {
            return Ok(None);
        }
        let unwritable = || SettingsError::Unwritable(self.entry.path.last().cloned().unwrap_or_default());
        let Some(field) = field else {
            let value = format!("{{ {} }}", items.join(", "));
            let near = near.or_else(|| self.list_field()).ok_or_else(unwritable)?;
            return Ok(Some(self.insert_after(near, name, &value)));
        };
        if part(self.text, field.value.span.clone()) == "null" {
            return Ok(Some(Splice {
                at: field.value.span.clone(),
                new: format!("{{ {} }}", items.join(", ")),
            }));
        }
        field.value.fields().ok_or_else(unwritable)?;
        if self.is_inline(&field.value) {
            return Ok(Some(self.before_items(&field.value, items)));
        }
        if self.is_inline(self.entry.table) {
            return Err(unwritable());
        }
        Ok(Some(self.lines_of_table(&field.value, known, &items)))
    }

    /// New lines of a TOML table that has a heading or dotted keys.
    fn lines_of_table(&self, table: &Node, known: &[Field], items: &[String]) -> Splice {
        if let Some(first) = known.first() {
            let before = part(self.text, 0..first.key.start);
            let line = before.rfind('\n').map_or(0, |end| end + 1);
            let start = part(before, line..before.len());
            let new = items.iter().map(|item| format!("{start}{item}\n")).collect();
            return Splice { at: line..line, new };
        }
        let rest = part(self.text, table.span.start..self.text.len());
        let end = table.span.start + rest.find('\n').unwrap_or(rest.len());
        Splice { at: end..end, new: items.iter().map(|item| format!("\n{item}")).collect() }
    }

    /// The field whose value is the command as a list.
    fn list_field(&self) -> Option<&Field> {
        self.entry.table.fields()?.iter().find(|field| field.name == "command")
    }
}

/// A part of a text. Places come from a parser, so they lie on characters.
fn part(text: &str, at: Range<usize>) -> &str {
    text.get(at).unwrap_or_default()
}
