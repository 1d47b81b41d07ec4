//! What is gathered from a text, and the manifest that it becomes.

use std::fmt::Write as _;

use bailiwick_manifest::Manifest;
use bailiwick_policy::path::AbsPath;

use super::{ImportFrom, ImportOptions, Imported};
use crate::render::{harmless, quoted};

/// The most lines, questions, remarks and tools of each kind; a text with more is not about one server.
const MOST: usize = 500;

/// A line, and where it is said.
struct Said {
    line: String,
    place: String,
}

/// Something that a person has to decide.
struct Asked {
    line: Option<String>,
    why: String,
    place: String,
}

/// A manifest in the making.
pub(super) struct Sheet<'o> {
    options: &'o ImportOptions,
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) identity: Option<String>,
    lines: Vec<Said>,
    questions: Vec<Asked>,
    remarks: Vec<String>,
    tools: Vec<(String, Vec<Said>)>,
}

impl<'o> Sheet<'o> {
    pub(super) const fn new(options: &'o ImportOptions) -> Self {
        Self {
            options,
            name: None,
            version: None,
            identity: None,
            lines: Vec::new(),
            questions: Vec::new(),
            remarks: Vec::new(),
            tools: Vec::new(),
        }
    }

    /// Grants a line, if it is one and leads to nothing that is sensitive or everything.
    pub(super) fn grant(&mut self, line: &str, place: &str) {
        if let Some(said) = self.judged(line, place)
            && !self.lines.iter().any(|known| known.line == said.line)
        {
            self.lines.push(said);
        }
    }

    /// The same for a tool.
    pub(super) fn grant_tool(&mut self, tool: &str, lines: &[(String, String)]) {
        let lines = lines.iter().filter_map(|(line, place)| self.judged(line, place)).collect();
        self.tools.push((tool.to_owned(), lines));
    }

    /// Asks; the line, if there is one, would grant it.
    pub(super) fn ask(&mut self, line: Option<&str>, why: &str, place: &str) {
        let line = line.filter(|line| is_line(line)).map(str::to_owned);
        self.questions.push(Asked { line, why: why.to_owned(), place: place.to_owned() });
    }

    /// Says what no line can.
    pub(super) fn remark(&mut self, text: String) {
        self.remarks.push(text);
    }

    fn judged(&mut self, line: &str, place: &str) -> Option<Said> {
        let why = if !is_line(line) {
            Some(format!("`{line}` is no line of a manifest"))
        } else if is_everything(line) {
            Some("it is as wide as everything".to_owned())
        } else {
            self.sensitive(line)
        };
        match why {
            Some(why) => {
                self.ask(Some(line), &why, place);
                None
            }
            None => Some(Said { line: line.to_owned(), place: place.to_owned() }),
        }
    }

    /// Why a line about files is not granted unasked.
    fn sensitive(&self, line: &str) -> Option<String> {
        let path = line.strip_prefix("fs:")?.split_once(':')?.1;
        let home = self.options.home.as_ref().map_or("/home/user".to_owned(), ToString::to_string);
        let full = path.strip_prefix('~').map_or_else(|| path.to_owned(), |rest| format!("{home}{rest}"));
        if full.starts_with('$') {
            return None;
        }
        // What stands before the first wildcard is granted with everything below.
        let fixed = full.find(['*', '?', '[', '{']).map_or(full.as_str(), |at| full.get(..at).unwrap_or("/"));
        let fixed = if fixed.len() > 1 { fixed.trim_end_matches('/') } else { "/" };
        let Ok(path) = AbsPath::new(fixed) else { return Some("its path cannot be judged".to_owned()) };
        let is_home = self.options.home.is_none() && fixed == home;
        is_home.then(|| "it is a home".to_owned()).or_else(|| {
            (path.components().count() < 2 && fixed != "/srv" && fixed != "/opt" || fixed == "/")
                .then(|| "many things lie in it".to_owned())
                .or_else(|| self.options.places.judge(&path).map(|why| why.to_string()))
        })
    }

    /// The manifest.
    pub(super) fn finish(mut self, from: ImportFrom) -> Imported {
        self.lines.truncate(MOST);
        self.questions.truncate(MOST);
        self.tools.truncate(MOST);
        let count = self.lines.len() + self.tools.iter().map(|(_, lines)| lines.len()).sum::<usize>();
        let mut text = format!(
            "# Drafted by `bailiwick import --from {}`: what others say of it, not what it does. Review every line.\n",
            from.as_str()
        );
        for remark in self.remarks.iter().take(MOST) {
            let _ = writeln!(text, "# {}", harmless(remark));
        }
        let name = self.name.as_ref().map(|name| plain_name(name)).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| plain_name(&self.options.name));
        let name = if name.is_empty() { "server".to_owned() } else { name };
        let version = self.version.as_deref().unwrap_or("0.1.0");
        let _ = writeln!(text, "\nname = {}\nversion = {}", quoted(&name), quoted(version));
        list(&mut text, "\nserver_capabilities", &self.lines);
        if !self.questions.is_empty() {
            text.push_str(
                "\n# Questions: none of this is granted. Move a line into a list above if you want it.\n",
            );
        }
        for question in &self.questions {
            let _ = writeln!(text, "# ? {} ({})", harmless(&question.why), harmless(&question.place));
            if let Some(line) = &question.line {
                let _ = writeln!(text, "#   {},", quoted(line));
            }
        }
        if let Some(identity) = self.identity.as_ref().filter(|identity| is_identity(identity)) {
            let _ = writeln!(text, "\n[package]\nidentity = {}", quoted(identity));
        }
        for (tool, lines) in &self.tools {
            if !crate::render::is_tool_name(tool) {
                let _ = writeln!(
                    text,
                    "\n# A tool is left out, because a manifest cannot name it: {}",
                    harmless(tool)
                );
                continue;
            }
            let _ = writeln!(text, "\n[[tools]]\nname = {}", quoted(tool));
            list(&mut text, "capabilities", lines);
        }
        Imported { text, lines: count, questions: self.questions.len() }
    }
}

fn list(text: &mut String, key: &str, lines: &[Said]) {
    if lines.is_empty() {
        let _ = writeln!(text, "{key} = []");
        return;
    }
    let _ = writeln!(text, "{key} = [");
    for said in lines {
        let _ = writeln!(text, "  # {}\n  {},", harmless(&said.place), quoted(&said.line));
    }
    text.push_str("]\n");
}

/// A name that a manifest takes.
fn plain_name(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).take(100).collect();
    name.trim_matches(['-', '.', '_']).to_owned()
}

fn is_line(line: &str) -> bool {
    parses(&format!("server_capabilities = [{}]", quoted(line)))
}

fn is_identity(identity: &str) -> bool {
    parses(&format!("[package]\nidentity = {}", quoted(identity)))
}

fn parses(rest: &str) -> bool {
    Manifest::parse(&format!("name = \"n\"\nversion = \"0\"\n{rest}\n")).is_ok()
}

/// Lines that no draft grants: every host, every program, every variable, the whole of the file system or of a home.
fn is_everything(line: &str) -> bool {
    let Some((_, target)) = line.split_once(':').and_then(|(_, rest)| rest.split_once(':')) else {
        return false;
    };
    match line.split(':').next() {
        Some("fs") => ["/", "/*", "/**", "~", "~/*", "~/**", "/etc", "/etc/*", "/etc/**"].contains(&target),
        Some("net") => target.starts_with('*') && !target.starts_with("*."),
        _ => target == "*",
    }
}
