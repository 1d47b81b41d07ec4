//! The effects of every command of a text, in order.

use std::collections::{BTreeMap, BTreeSet};

use crate::class::Class;
use serde_json::Value;

use super::places::{self, Setting, Spot};
use super::{code, files, general, sql, table, variables};
use crate::aliases;
use crate::reader::{self, Reading, Simple};

/// How deep texts that were written before they run are read.
const MAX_WRITTEN: usize = 2;
/// The most effects that are kept.
const MAX_EFFECTS: usize = 64;

/// One thing that a text does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// Its class.
    pub class: Class,
    /// What it does that to, or with.
    pub what: String,
}

/// Files that earlier calls of the session made, by their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EarlierFiles {
    /// Those that were downloaded.
    pub downloaded: BTreeSet<String>,
    /// Shell scripts that were written, as they are now.
    pub scripts: BTreeMap<String, String>,
}

/// What a call does and leaves behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consequences {
    /// What it does.
    pub effects: Vec<Effect>,
    /// Files that it downloads, by their paths.
    pub downloaded: BTreeSet<String>,
    /// Files that it writes, by their paths.
    pub written: BTreeSet<String>,
}

/// What a text does, of which nothing earlier is known.
#[must_use]
pub fn effects(reading: &Reading, setting: &Setting) -> Vec<Effect> {
    consequences(reading, setting, &EarlierFiles::default()).effects
}

/// What a text does and leaves behind, after earlier calls.
#[must_use]
pub fn consequences(reading: &Reading, setting: &Setting, earlier: &EarlierFiles) -> Consequences {
    consequences_within(reading, setting, earlier, 0)
}

/// What a tool does that reads or writes files by name: as a program would that reads or writes them.
#[must_use]
pub fn consequences_of_files(capability: Option<&str>, params: &Value, setting: &Setting) -> Consequences {
    let program = match capability {
        Some("filesystem-read") => "cat",
        Some("filesystem-write") => "tee",
        Some(_) | None => return Consequences::default(),
    };
    let mut words = vec![program.to_owned()];
    paths(params, 0, &mut words);
    words.extend(aliases::patched(params).map(str::to_owned));
    let simple = Simple { words, path: program.to_owned(), ..Simple::default() };
    let reading = Reading { commands: vec![simple], ..Reading::default() };
    consequences(&reading, setting, &EarlierFiles::default())
}

/// Arguments whose names say that they are paths.
fn paths(value: &Value, depth: usize, found: &mut Vec<String>) {
    let Value::Object(fields) = value else { return };
    for (name, value) in fields {
        let name = name.to_lowercase();
        let named =
            ["path", "file", "target", "source", "destination", "uri"].iter().any(|part| name.contains(part));
        match value {
            Value::String(text) if named => found.push(text.clone()),
            Value::Array(items) if named || name == "edits" => {
                for item in items.iter().take(256) {
                    match item {
                        Value::String(text) => found.push(text.clone()),
                        Value::Object(_) if depth < 4 => paths(item, depth + 1, found),
                        Value::Null
                        | Value::Bool(_)
                        | Value::Number(_)
                        | Value::Array(_)
                        | Value::Object(_) => {}
                    }
                }
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => {}
        }
    }
}

fn consequences_within(
    reading: &Reading,
    setting: &Setting,
    earlier: &EarlierFiles,
    depth: usize,
) -> Consequences {
    let mut seen = Seen {
        reading,
        setting,
        earlier,
        depth,
        found: Vec::new(),
        downloaded: BTreeSet::new(),
        unpacked: false,
        written: BTreeMap::new(),
        written_files: BTreeSet::new(),
    };
    for number in 0..reading.commands.len() {
        seen.command(number);
    }
    Consequences { effects: seen.found, downloaded: seen.downloaded, written: seen.written_files }
}

/// What was seen of a text up to a command.
pub(super) struct Seen<'a> {
    pub(super) reading: &'a Reading,
    pub(super) setting: &'a Setting,
    pub(super) earlier: &'a EarlierFiles,
    depth: usize,
    found: Vec<Effect>,
    /// Files that were downloaded.
    pub(super) downloaded: BTreeSet<String>,
    /// Whether something downloaded was unpacked.
    pub(super) unpacked: bool,
    /// Files that the text itself has written, with what is in them.
    written: BTreeMap<String, String>,
    /// Files that it has written, whatever is in them.
    written_files: BTreeSet<String>,
}

impl Seen<'_> {
    pub(super) fn note(&mut self, class: &str, what: &str) {
        if let Some(class) = Class::parse(class) {
            self.note_class(class, what);
        }
    }

    fn note_class(&mut self, class: Class, what: &str) {
        if self.found.len() < MAX_EFFECTS && !self.found.iter().any(|effect| effect.class == class) {
            let what: String = what.chars().take(200).collect();
            self.found.push(Effect { class, what });
        }
    }

    /// Where a word of a command leads.
    pub(super) fn spot(&self, simple: &Simple, word: &str) -> Option<Spot> {
        places::spot(self.setting, &simple.here, word)
    }

    fn command(&mut self, number: usize) {
        let reading = self.reading;
        let Some(simple) = reading.commands.get(number) else { return };
        for file in &simple.writes {
            self.written_to(simple, file);
        }
        for file in &simple.reads {
            self.read_from(simple, file, false);
        }
        // A redirection of nothing empties the file.
        if matches!(simple.words.first().map(String::as_str), Some(":" | "true")) {
            simple.writes.iter().for_each(|file| self.deleted(simple, file, false));
        }
        variables::note(self, simple);
        let Some((program, arguments)) = simple.words.split_first() else { return };
        for class in table::classes_of(program, arguments) {
            self.note_class(class, &simple.plain);
        }
        general::note(self, simple, program, arguments);
        files::note(self, simple, program, arguments);
        self.code(simple, program, arguments);
        sql::note(self, simple, program, arguments);
        self.fetched(number, simple, program, arguments);
        self.exhausts(simple, program, arguments);
        self.remember(simple, program, arguments);
        self.run_earlier(simple, program, arguments);
    }

    /// A file that is written.
    pub(super) fn written_to(&mut self, simple: &Simple, file: &str) {
        let Some(spot) = self.spot(simple, file) else { return };
        if spot.is("network") {
            self.note("opens(shell)", file);
        }
        if file.contains("$…") {
            self.note("writes(unknown)", file);
        }
        if spot.is("nothing") || spot.unknown {
            return;
        }
        self.written_files.insert(spot.text());
        if spot.is_scratch() {
            return;
        }
        for (place, class) in
            [("disk", "writes(disk)"), ("startup", "writes(startup)"), ("traces", "hides(traces)")]
        {
            if spot.is(place) {
                self.note(class, file);
            }
        }
        if spot.is("system") || spot.is_root() {
            self.note("writes(system)", file);
        } else if !spot.is_inside() {
            self.note("writes(outside)", file);
        }
        if crate::hook_settings::holds_hooks(std::path::Path::new(file))
            || file.ends_with(".agents/guardrails.toml")
        {
            self.note("writes(protected)", file);
        }
    }

    /// A file that is read; with all that is in it if it is a directory.
    pub(super) fn read_from(&mut self, simple: &Simple, file: &str, recursive: bool) {
        let Some(spot) = self.spot(simple, file) else { return };
        if spot.is("network") {
            self.note("opens(shell)", file);
        }
        let holds = recursive && spot.is("holder") && !spot.unknown;
        if spot.is_secret() || (holds && !spot.is("public")) {
            self.note("reads(secret)", file);
        }
        if spot.is("disk") {
            self.note("reads(secret)", file);
        }
    }

    /// A file that is deleted, or moved away.
    pub(super) fn deleted(&mut self, simple: &Simple, file: &str, recursive: bool) {
        let Some(spot) = self.spot(simple, file) else { return };
        if spot.is("traces") {
            self.note("hides(traces)", file);
        }
        if file.contains("$ARGS") || spot.unknown {
            if recursive || file.contains("$ARGS") {
                self.note("deletes(unknown)", file);
            }
            return;
        }
        // A home or a project may lie in a scratch directory.
        if spot.is_vital() {
            self.note("deletes(vital)", file);
        } else if !spot.is("nothing") && !spot.is_scratch() && !spot.is_inside() {
            self.note("deletes(outside)", file);
        }
    }

    /// Code among the words or in the input of an interpreter, and commands of other clients.
    fn code(&mut self, simple: &Simple, program: &str, arguments: &[String]) {
        let executes = |word: &String| {
            word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '$').starts_with("e ")
        };
        if matches!(program, "sed" | "gsed") && arguments.iter().any(executes) {
            self.note("runs(hidden)", &simple.plain);
        }
        if matches!(program, "sftp" | "ftp" | "lftp") && simple.input.is_some() {
            self.note("changes(shared)", &simple.plain);
        }
        if !code::is_interpreter(program) {
            return;
        }
        let text = arguments.join("\n");
        let (setting, here) = (self.setting, simple.here.clone());
        let mut found = Vec::new();
        for text in std::iter::once(text.as_str()).chain(simple.input.as_deref()) {
            code::classes_of(text, setting, &here, &mut |class, what| found.push((class, what.to_owned())));
        }
        for (class, what) in found {
            self.note_class(class, &what);
        }
        let reads_input =
            arguments.iter().all(|word| word.starts_with('-')) && !arguments.iter().any(|word| word == "-m");
        if simple.piped && simple.input.is_none() && reads_input && !simple.fed_by.is_empty() {
            self.note("runs(hidden)", &simple.plain);
        }
    }

    fn exhausts(&mut self, simple: &Simple, program: &str, arguments: &[String]) {
        let endless = |word: &String| word == "if=/dev/zero" || word == "if=/dev/urandom";
        let bounded = |word: &String| word.starts_with("count=");
        let large = |word: &String| word.starts_with("bs=") && word.ends_with(['G', 'T']);
        let fills = program == "dd"
            && arguments.iter().any(endless)
            && (!arguments.iter().any(bounded) || arguments.iter().any(large));
        let copied = program == "cat"
            && !simple.writes.is_empty()
            && arguments.iter().any(|word| matches!(word.as_str(), "/dev/urandom" | "/dev/random"));
        if fills || copied || (program == "yes" && !simple.writes.iter().all(|file| file == "/dev/null")) {
            self.note("exhausts(machine)", &simple.plain);
        }
    }

    /// Keeps what the text writes to files, and reads it when it runs.
    fn remember(&mut self, simple: &Simple, program: &str, arguments: &[String]) {
        let ran = std::iter::once(&simple.path).chain(arguments).filter_map(|word| self.path(simple, word));
        let ran: Vec<String> = ran.filter(|path| self.written.contains_key(path)).collect();
        let runs = code::is_interpreter(program) || matches!(program, "cmake" | "make");
        for path in ran {
            let by_name = self.path(simple, &simple.path).as_ref() == Some(&path);
            if let Some(text) =
                self.written.get(&path).filter(|_| (runs || by_name) && self.depth < MAX_WRITTEN)
            {
                let text = text.clone();
                self.ran_text(&text, program, simple);
            }
        }
        if let Some(text) = &simple.prints {
            let files = simple.writes.iter().chain(arguments.iter().filter(|_| program == "tee"));
            let paths: Vec<String> = files.filter_map(|file| self.path(simple, file)).collect();
            for path in paths {
                self.written.insert(path, text.clone());
            }
        }
    }

    fn ran_text(&mut self, text: &str, program: &str, simple: &Simple) {
        if code::is_interpreter(program) || program == "cmake" {
            let (setting, here) = (self.setting, simple.here.clone());
            let mut found = Vec::new();
            code::classes_of(text, setting, &here, &mut |class, what| found.push((class, what.to_owned())));
            found.into_iter().for_each(|(class, what)| self.note_class(class, &what));
            return;
        }
        self.ran_script(text, simple);
    }

    /// A shell script that an earlier call wrote: given to a shell, read into this one, or run by its path.
    fn run_earlier(&mut self, simple: &Simple, program: &str, arguments: &[String]) {
        let earlier = self.earlier;
        if earlier.scripts.is_empty() || self.depth >= MAX_WRITTEN {
            return;
        }
        let by_shell = reader::is_shell(program) || matches!(program, "source" | ".");
        let own = std::iter::once(&simple.path).filter(|path| path.contains('/'));
        let run = own.chain(arguments.iter().filter(|_| by_shell)).filter_map(|word| self.path(simple, word));
        let texts: Vec<&String> = run.filter_map(|path| earlier.scripts.get(&path)).collect();
        texts.into_iter().for_each(|text| self.ran_script(text, simple));
    }

    /// A text that may be a command which a program runs.
    pub(super) fn may_run(&mut self, text: &str, simple: &Simple) {
        if self.depth < MAX_WRITTEN {
            self.ran_script(text, simple);
        }
    }

    fn ran_script(&mut self, text: &str, simple: &Simple) {
        let setting = self.setting.starting(&simple.here);
        let reading = reader::read(text);
        for effect in consequences_within(&reading, &setting, self.earlier, self.depth + 1).effects {
            self.note_class(effect.class, &effect.what);
        }
    }

    /// A word of a command as one absolute path, for comparing.
    pub(super) fn path(&self, simple: &Simple, word: &str) -> Option<String> {
        self.spot(simple, word).map(|spot| spot.text())
    }
}
