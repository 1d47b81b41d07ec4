//! What wrapped servers said of themselves when they were first used, one file for each server.
//!
//! A server is known by its manifest's real path and its program's. Its file is changed under a lock and replaced as a
//! whole. Fails closed when: the file is there and cannot be read. Then the server is not started.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bailiwick_journal::Body;
use bailiwick_journal::format::Digest;
use bailiwick_manifest::Manifest;
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_pins::{ServerSurface, SurfaceChange, judge_drift};
use bailiwick_policy::capability::Capability;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::facts;

const VERSION: u32 = 1;

/// What was pinned of one server, and what waits for a person.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PinnedServer {
    version: u32,
    /// What people call it.
    pub name: String,
    /// What it is known by.
    pub identity: String,
    #[serde(default)]
    pinned: Surface,
    /// Whether a whole list of tools has been seen.
    #[serde(default)]
    pub is_complete: bool,
    /// The other lists of which all has been seen.
    #[serde(default)]
    complete: BTreeSet<String>,
    /// What is noticed of its tools at first use, by tool.
    #[serde(default)]
    findings: BTreeMap<String, Vec<String>>,
    /// What it says now, where that is something else.
    #[serde(default)]
    waiting: BTreeMap<String, Option<Value>>,
    /// What it was granted, by the directory that it was started in: snapshots of its manifest with all values.
    #[serde(default)]
    granted: BTreeMap<String, String>,
    /// What it would be granted now, where that is more.
    #[serde(default)]
    waiting_grants: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Surface {
    instructions: Option<Value>,
    tools: BTreeMap<String, Value>,
    #[serde(default)]
    prompts: BTreeMap<String, Value>,
    #[serde(default)]
    resources: BTreeMap<String, Value>,
}

/// How instructions are called among what waits; no tool is called so.
const INSTRUCTIONS: &str = " instructions";

/// How prompts and resources are called among what waits, before their names.
const PROMPT: &str = " prompt ";
const RESOURCE: &str = " resource ";

/// The file of one server.
#[derive(Debug, Clone)]
pub struct PinFile(PathBuf);

impl PinnedServer {
    /// A server of which nothing is pinned yet.
    pub fn new(name: &str, identity: &str) -> Self {
        Self { version: VERSION, name: name.to_owned(), identity: identity.to_owned(), ..Self::default() }
    }

    /// What was pinned.
    pub fn surface(&self) -> ServerSurface {
        let instructions = self.pinned.instructions.as_ref().and_then(Value::as_str).map(str::to_owned);
        let Surface { tools, prompts, resources, .. } = self.pinned.clone();
        ServerSurface { instructions, tools, prompts, resources }
    }

    /// The digest by which a fleet knows what was pinned: its instructions and tools as canonical JSON. Lists of prompts and resources grow while a
    /// server runs, so they are no part of it.
    pub fn surface_digest(&self) -> Digest {
        let ServerSurface { instructions, tools, .. } = self.surface();
        Body::digest_of(&json!({ "instructions": instructions, "tools": tools }))
    }

    /// What the server says now, as far as it is known.
    pub fn surface_now(&self) -> ServerSurface {
        let mut now = self.surface();
        for (name, value) in &self.waiting {
            match (name.as_str(), value) {
                (INSTRUCTIONS, value) => {
                    now.instructions = value.as_ref().and_then(Value::as_str).map(str::to_owned)
                }
                (name, value) => {
                    let (all, name) = match (name.strip_prefix(PROMPT), name.strip_prefix(RESOURCE)) {
                        (Some(prompt), _) => (&mut now.prompts, prompt),
                        (None, Some(resource)) => (&mut now.resources, resource),
                        (None, None) => (&mut now.tools, name),
                    };
                    put(all, name, value.clone());
                }
            }
        }
        now
    }

    /// Everything that waits, judged.
    pub fn changes(&self) -> Vec<SurfaceChange> {
        judge_drift(&self.surface(), &self.surface_now(), &[])
    }

    /// A tool as it is pinned.
    pub fn tool(&self, name: &str) -> Option<&Value> {
        self.pinned.tools.get(name)
    }

    /// How many tools are pinned.
    pub fn tool_count(&self) -> usize {
        self.pinned.tools.len()
    }

    /// A tool as it would be pinned.
    pub fn waiting_tool(&self, name: &str) -> Option<&Value> {
        self.waiting.get(name).and_then(Option::as_ref)
    }

    /// Pins a tool at first use, with what is noticed of it; not if it is pinned, or if a whole list did not have it.
    pub fn pin_tool(&mut self, name: &str, tool: &Value, findings: &[String]) {
        if self.is_complete || self.pinned.tools.contains_key(name) {
            return;
        }
        self.pinned.tools.insert(name.to_owned(), tool.clone());
        if !findings.is_empty() {
            self.findings.insert(name.to_owned(), findings.to_vec());
        }
    }

    /// Notes what a tool is now; nothing waits if that is what was pinned.
    pub fn note_tool(&mut self, name: &str, tool: &Value) {
        if self.pinned.tools.get(name) == Some(tool) {
            self.waiting.remove(name);
        } else {
            self.waiting.insert(name.to_owned(), Some(tool.clone()));
        }
    }

    /// A prompt or a resource that was pinned, by the name that it would wait under.
    pub fn other(&self, key: &str) -> Option<&Value> {
        match (key.strip_prefix(PROMPT), key.strip_prefix(RESOURCE)) {
            (Some(prompt), _) => self.pinned.prompts.get(prompt),
            (None, Some(resource)) => self.pinned.resources.get(resource),
            (None, None) => None,
        }
    }

    /// Pins a prompt or a resource.
    pub fn pin_other(&mut self, key: &str, entry: &Value) {
        let (all, name) = self.pinned.part(key);
        put(all, name, Some(entry.clone()));
        self.waiting.remove(key);
    }

    /// Pins a prompt or a resource at first use; not if it is pinned, or if a whole list did not have it.
    pub fn pin_first_other(&mut self, list: &str, key: &str, entry: &Value) {
        if self.other(key).is_none() && !self.has_seen(list) {
            self.pin_other(key, entry);
        }
    }

    /// Notes what a prompt or a resource is now.
    pub fn note_other(&mut self, key: &str, entry: &Value) {
        if self.other(key) == Some(entry) {
            self.waiting.remove(key);
        } else {
            self.waiting.insert(key.to_owned(), Some(entry.clone()));
        }
    }

    /// Whether all of a list other than that of tools has been seen.
    pub fn has_seen(&self, list: &str) -> bool {
        self.complete.contains(list)
    }

    /// Notes that a list was seen as a whole.
    pub fn see_all(&mut self, list: &str) {
        self.complete.insert(list.to_owned());
    }

    /// What was noticed at first use, by tool.
    pub const fn findings(&self) -> &BTreeMap<String, Vec<String>> {
        &self.findings
    }

    /// The names of its tools.
    pub fn tool_names(&self) -> impl Iterator<Item = &String> {
        self.pinned.tools.keys()
    }

    /// Pins the server's instructions.
    pub fn pin_instructions(&mut self, text: Option<&str>) {
        self.pinned.instructions = text.map(Value::from);
    }

    /// Notes instructions that wait for a person.
    pub fn note_instructions(&mut self, text: Option<&str>) {
        if self.pinned.instructions == text.map(Value::from) {
            self.waiting.remove(INSTRUCTIONS);
        } else {
            self.waiting.insert(INSTRUCTIONS.to_owned(), text.map(Value::from));
        }
    }

    /// What it was granted in a project.
    pub fn granted(&self, project: &str) -> Option<&str> {
        self.granted.get(project).map(String::as_str)
    }

    /// What it was granted in a project, which is this if it is new there.
    pub fn grant_first(&mut self, project: &str, snapshot: &str) -> String {
        self.granted.entry(project.to_owned()).or_insert_with(|| snapshot.to_owned()).clone()
    }

    /// Notes what it would be granted now.
    pub fn note_grant(&mut self, project: &str, snapshot: &str) {
        self.waiting_grants.insert(project.to_owned(), snapshot.to_owned());
    }

    /// What it would be granted beyond what it was, by project: what was, and what would be.
    pub fn waiting_grants(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let waiting = self.waiting_grants.iter();
        waiting
            .map(|(project, new)| (project.as_str(), self.granted(project).unwrap_or_default(), new.as_str()))
    }

    /// Everything that waits, as text: two readings that say the same wait for the same.
    pub fn waiting_text(&self) -> String {
        serde_json::json!([self.pinned, self.waiting, self.granted, self.waiting_grants]).to_string()
    }

    /// Adds lines to what a tool was granted in a project, if that is known.
    pub fn grant_more(&mut self, project: &str, tool: &str, lines: &[Capability]) -> anyhow::Result<()> {
        self.regrant(project, tool, |all| all.extend(lines.iter().map(|line| Value::from(line.to_string()))))
    }

    /// Takes lines out of it.
    pub fn grant_less(&mut self, project: &str, tool: &str, lines: &[Capability]) -> anyhow::Result<()> {
        let lines: Vec<Value> = lines.iter().map(|line| Value::from(line.to_string())).collect();
        self.regrant(project, tool, |all| all.retain(|line| !lines.contains(line)))
    }

    fn regrant(
        &mut self,
        project: &str,
        tool: &str,
        change: impl FnOnce(&mut Vec<Value>),
    ) -> anyhow::Result<()> {
        let Some(known) = self.granted.get_mut(project) else { return Ok(()) };
        let snapshot = Snapshot::parse(known).map_err(|findings| anyhow::anyhow!("{findings}"))?;
        let mut manifest = snapshot.manifest().canonical();
        let tools = manifest.get_mut("tools").and_then(Value::as_array_mut);
        let named = |one: &&mut Value| one.get("name").and_then(Value::as_str) == Some(tool);
        let one = tools.and_then(|tools| tools.iter_mut().find(named)).and_then(Value::as_object_mut);
        let one = one.with_context(|| format!("`{tool}` was not there when the server was accepted"))?;
        let all = one.entry("capabilities").or_insert_with(|| Value::Array(Vec::new()));
        change(all.as_array_mut().context("its capabilities are no list")?);
        let wider =
            Manifest::parse(&manifest.to_string()).map_err(|findings| anyhow::anyhow!("{findings}"))?;
        let wider = Snapshot::from_manifest(wider).map_err(|finding| anyhow::anyhow!("{finding}"))?;
        *known = wider.to_text().map_err(|finding| anyhow::anyhow!("{finding}"))?;
        Ok(())
    }

    /// Whether the same waits as in another reading of the file.
    pub fn waits_like(&self, other: &Self) -> bool {
        self.changes() == other.changes() && self.waiting_grants == other.waiting_grants
    }

    /// Pins what waits: one tool, or everything. `false` if nothing does.
    pub fn accept(&mut self, tool: Option<&str>) -> bool {
        let grants = if tool.is_none() { std::mem::take(&mut self.waiting_grants) } else { BTreeMap::new() };
        let has_grants = !grants.is_empty();
        self.granted.extend(grants);
        let names: Vec<String> =
            self.waiting.keys().filter(|name| tool.is_none_or(|tool| *name == tool)).cloned().collect();
        for name in &names {
            match (name.as_str(), self.waiting.remove(name).flatten()) {
                (INSTRUCTIONS, value) => self.pinned.instructions = value,
                (name, value) => {
                    let (all, name) = self.pinned.part(name);
                    put(all, name, value);
                }
            }
        }
        has_grants || !names.is_empty()
    }
}

impl Surface {
    /// Where something that waits belongs, and its name there.
    fn part<'a>(&mut self, key: &'a str) -> (&mut BTreeMap<String, Value>, &'a str) {
        match (key.strip_prefix(PROMPT), key.strip_prefix(RESOURCE)) {
            (Some(prompt), _) => (&mut self.prompts, prompt),
            (None, Some(resource)) => (&mut self.resources, resource),
            (None, None) => (&mut self.tools, key),
        }
    }
}

/// How a prompt is called among what waits.
pub fn prompt_key(name: &str) -> String {
    format!("{PROMPT}{name}")
}

/// How a resource is called among what waits.
pub fn resource_key(uri: &str) -> String {
    format!("{RESOURCE}{uri}")
}

fn put(all: &mut BTreeMap<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(all.insert(name.to_owned(), value)),
        None => drop(all.remove(name)),
    }
}

impl PinFile {
    /// The file of the server with this identity.
    pub fn for_identity(identity: &str) -> anyhow::Result<Self> {
        let digest = bailiwick_policy::digest::Digest::sha256(identity.as_bytes()).to_string();
        let name: String = digest.chars().filter(char::is_ascii_alphanumeric).collect();
        Ok(Self(directory()?.join(format!("{name}.json"))))
    }

    /// Every server that was pinned.
    pub fn all() -> anyhow::Result<Vec<(Self, PinnedServer)>> {
        let dir = directory()?;
        let Ok(entries) = std::fs::read_dir(&dir) else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let file = Self(path);
                let server = file.read()?;
                all.extend(server.map(|server| (file, server)));
            }
        }
        all.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
        Ok(all)
    }

    /// What is in it; nothing if it is not there.
    pub fn read(&self) -> anyhow::Result<Option<PinnedServer>> {
        let shown = self.0.display();
        let text = match std::fs::read(&self.0) {
            Ok(text) => text,
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(fault).with_context(|| format!("cannot read the pins in `{shown}`")),
        };
        let server: PinnedServer = serde_json::from_slice(&text).with_context(|| {
            format!("the pins in `{shown}` are damaged; remove the file to pin the server anew")
        })?;
        anyhow::ensure!(server.version == VERSION, "the pins in `{shown}` are of another version");
        Ok(Some(server))
    }

    /// Changes what is in it, under its lock.
    pub fn change<T>(
        &self,
        new: impl FnOnce() -> PinnedServer,
        change: impl FnOnce(&mut PinnedServer) -> T,
    ) -> anyhow::Result<T> {
        let dir = self.0.parent().context("the pins have no directory")?;
        bailiwick_journal::private::make_directory(dir)?;
        let lock = File::create(self.0.with_extension("lock"))?;
        lock.lock()?;
        let mut server = self.read()?.unwrap_or_else(new);
        let done = change(&mut server);
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(serde_json::to_string_pretty(&server)?.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.0)?;
        Ok(done)
    }

    /// Forgets the server.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn remove(&self) -> anyhow::Result<()> {
        Ok(std::fs::remove_file(&self.0)?)
    }
}

/// What a server is known by: where its manifest and its program really lie.
pub fn identity(manifest: &Path, command: &[std::ffi::OsString]) -> String {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string();
    let program = command.first().map(|program| real(&found(Path::new(program)))).unwrap_or_default();
    format!("{} {program}", real(manifest))
}

/// A program where the caller's PATH has it.
fn found(program: &Path) -> PathBuf {
    let path = facts::variable_of_caller("PATH").unwrap_or_default();
    let named = std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file());
    named.filter(|_| program.components().count() == 1).unwrap_or_else(|| program.to_owned())
}

fn directory() -> anyhow::Result<PathBuf> {
    let state = facts::state_dir().context("neither XDG_STATE_HOME nor HOME says where the pins are")?;
    Ok(state.join("pins"))
}
