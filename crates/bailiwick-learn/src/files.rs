//! Lines and questions about files.

use std::collections::{BTreeMap, BTreeSet};

use bailiwick_manifest::sensitive::Sensitive;
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::{BASE, BaseKind, MASKED, STUBS};

use crate::evidence::{BoundVariable, Evidence, PathSeen, Touch};
use crate::{Draft, Line, MOST_LINES, MOST_SIBLINGS, Provenance, Question, Reason, clean, is_plain};

/// Places that are called sensitive as a whole, and have files that programs read one by one.
const READ_ONE_BY_ONE: [&str; 14] = [
    "/opt",
    "/etc",
    "/bin",
    "/usr/bin",
    "/sbin",
    "/usr/sbin",
    "/lib",
    "/usr/lib",
    "/lib64",
    "/usr/libexec",
    "/usr",
    "/usr/local/bin",
    "/var/lib",
    "/usr/local/lib",
];
/// Secrets of the system: never read without a question, and not shown while a program is watched.
pub const SECRETS_OF_SYSTEM: [&str; 9] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/ssh",
    "/etc/krb5.keytab",
];
/// Names of files that hold secrets wherever they lie, beginnings and ends.
const SECRET_DIRECTORIES: [&str; 8] =
    [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".env"];
const SECRET_BEGINNINGS: [&str; 6] = ["id_rsa", "id_ed25519", "id_ecdsa", "id_dsa", "credentials", ".env."];
const SECRET_ENDS: [&str; 6] = [".pem", ".key", ".p12", ".pfx", ".keytab", ".kdbx"];

pub(crate) fn draft(evidence: &Evidence, draft: &mut Draft) {
    let mut sorted = Sorted::default();
    for (text, seen) in &evidence.paths {
        if let Ok(path) = AbsPath::new(text) {
            sorted.take(evidence, &path, seen, draft);
        } else if !seen.touches.is_empty() {
            let why = "its path cannot be written in a manifest".to_owned();
            draft.questions.push(Question { capability: None, why, by: seen.by.clone() });
        }
    }
    sorted.name_variables(evidence, draft);
    sorted.write(evidence, draft);
    sorted.read(evidence, draft);
    for (path, by) in &evidence.protected {
        let why = "the name runs code later, so it stays closed unless it is granted by name".to_owned();
        let capability = line_of(evidence, "read,write", path);
        draft.questions.push(Question { capability, why, by: by.clone() });
    }
}

/// Everything that was touched, by what could grant it.
#[derive(Default)]
struct Sorted {
    /// Directories that the command names, by variable, and whether something is changed there.
    named: BTreeMap<(usize, bool), Provenance>,
    /// Directories in which something is made or removed.
    made: BTreeMap<String, Provenance>,
    /// Files that are changed and were there.
    changed: BTreeMap<String, Provenance>,
    /// Files that are read, by their directory.
    read: BTreeMap<String, BTreeMap<String, Provenance>>,
    /// Directories that are listed.
    listed: BTreeMap<String, Provenance>,
}

impl Sorted {
    fn take(&mut self, evidence: &Evidence, path: &AbsPath, seen: &PathSeen, draft: &mut Draft) {
        let changes = seen.touches.iter().any(|touch| touch.changes());
        if let Some(variable) = variable_of(evidence, path) {
            if let Some(why) =
                secret_name(path).filter(|_| !seen.refused.is_empty() || !seen.touches.is_empty())
            {
                let name = evidence.variables.get(variable).map_or("", |variable| &variable.name);
                let why = format!(
                    "{why}, and `${name}` covers it: keep it elsewhere if the program need not see it"
                );
                draft.questions.push(Question { capability: None, why, by: seen.by.clone() });
            }
            if !seen.touches.is_empty() {
                self.named.entry((variable, changes)).or_default().add(&seen.by);
            }
            return;
        }
        let is_change_refused = seen.refused.iter().any(|touch| touch.changes());
        let wants_own_code = is_change_refused && is_brought_along(evidence, path);
        if is_sandboxs_own(evidence, path, changes) && !wants_own_code {
            return;
        }
        let opened = seen.refused.iter().any(|touch| *touch != Touch::Look);
        let wants_changes = changes || is_change_refused;
        let text = path.to_string();
        let question = |why: String| Question {
            capability: line_of(evidence, actions(wants_changes), &text),
            why,
            by: seen.by.clone(),
        };
        if is_brought_along(evidence, path) {
            // Compiled Python is written beside the source where that is possible, and done without elsewhere.
            if opened
                && !path.components().any(|part| part == "__pycache__")
                && !seen.refused.contains(&Touch::Read)
            {
                let why = "it wants to change what it was started from, which stays as it is".to_owned();
                draft.questions.push(Question { capability: None, why, by: seen.by.clone() });
            }
            return;
        }
        if is_private(evidence, path) {
            if opened {
                let hidden = "the sandbox refused it".to_owned();
                draft.questions.push(question(sensitive(evidence, path).unwrap_or(hidden)));
            }
            return;
        }
        if let Some(why) = sensitive(evidence, path) {
            if opened || seen.touches.iter().any(|touch| *touch != Touch::Look) {
                draft.questions.push(question(why));
            }
            return;
        }
        if seen.touches.is_empty() {
            if opened {
                draft.questions.push(question("the sandbox refused it".to_owned()));
            }
            return;
        }
        self.take_granted(&text, seen);
    }

    fn take_granted(&mut self, text: &str, seen: &PathSeen) {
        let (parent, name) = split(text);
        let is_made = seen.touches.contains(&Touch::Make) || seen.touches.contains(&Touch::Remove);
        if is_made {
            self.made.entry(parent.to_owned()).or_default().add(&seen.by);
        } else if seen.touches.contains(&Touch::Write) {
            self.changed.entry(text.to_owned()).or_default().add(&seen.by);
        } else if seen.touches.contains(&Touch::List) {
            self.listed.entry(text.to_owned()).or_default().add(&seen.by);
        } else if seen.touches.contains(&Touch::Read) {
            self.read.entry(parent.to_owned()).or_default().entry(name.to_owned()).or_default().add(&seen.by);
        }
    }

    fn name_variables(&self, evidence: &Evidence, draft: &mut Draft) {
        for ((at, writes), by) in &self.named {
            let Some(variable) = evidence.variables.get(*at) else { continue };
            let capability = format!("fs:{}:${}", actions(*writes), variable.name);
            draft.lines.push(Line { tool: None, capability, reason: Reason::Named, by: by.clone() });
        }
    }

    /// Directories in which files are made, and files that are changed.
    fn write(&self, evidence: &Evidence, draft: &mut Draft) {
        let outermost: BTreeMap<&String, &Provenance> = self
            .made
            .iter()
            .filter(|(dir, _)| !self.made.keys().any(|other| lies_below(dir, other)))
            .collect();
        let mut wanted = Vec::new();
        for (dir, by) in outermost {
            let mut by = by.clone();
            let below = self.made.iter().filter(|(other, _)| lies_below(other, dir));
            below.for_each(|(_, more)| by.add(more));
            wanted.push((dir.clone(), Reason::MadeThere, by));
        }
        let is_made = |path: &String| self.made.keys().any(|dir| lies_below(path, dir));
        for (path, by) in self.changed.iter().filter(|(path, _)| !is_made(path)) {
            wanted.push((path.clone(), Reason::Exact, by.clone()));
        }
        grant(evidence, draft, wanted, "read,write");
    }

    /// Files that are read, and directories that are listed, where nothing is written.
    fn read(&self, evidence: &Evidence, draft: &mut Draft) {
        let is_made = |path: &str| self.made.keys().any(|dir| path == dir || lies_below(path, dir));
        let mut wanted = Vec::new();
        for (dir, by) in self.listed.iter().filter(|(dir, _)| !is_made(dir)) {
            wanted.push((format!("{dir}/*"), Reason::Siblings, by.clone()));
        }
        for (dir, files) in self.read.iter().filter(|(dir, _)| !is_made(dir)) {
            if self.listed.contains_key(dir) {
                continue;
            }
            if files.len() > MOST_SIBLINGS && !is_wide(evidence, dir) {
                let mut by = Provenance::default();
                files.values().for_each(|file| by.add(file));
                wanted.push((format!("{dir}/*"), Reason::Siblings, by));
                continue;
            }
            for (name, by) in files {
                wanted.push((format!("{}/{name}", dir.trim_end_matches('/')), Reason::Exact, by.clone()));
            }
        }
        grant(evidence, draft, wanted, "read");
    }
}

/// Turns places into lines: too many below one directory become one question about it.
fn grant(evidence: &Evidence, draft: &mut Draft, wanted: Vec<(String, Reason, Provenance)>, actions: &str) {
    let mut groups: BTreeMap<String, Vec<(String, Reason, Provenance)>> = BTreeMap::new();
    for one in wanted {
        groups.entry(ground(evidence, &one.0)).or_default().push(one);
    }
    let mut left = MOST_LINES;
    for (ground, group) in groups {
        if group.len() > MOST_LINES / 2 || group.len() > left {
            draft.questions.push(question_about(evidence, &ground, group, actions));
            continue;
        }
        for (place, reason, by) in group {
            let dir = place.strip_suffix("/*").unwrap_or(&place);
            let refusal = if is_wide(evidence, dir) {
                Some("it is a whole directory that many things lie in".to_owned())
            } else if actions != "read" {
                system_place(evidence, dir)
            } else {
                None
            };
            let capability = line_of(evidence, actions, &place);
            match (refusal, capability) {
                (None, Some(capability)) => {
                    left = left.saturating_sub(1);
                    draft.lines.push(Line { tool: None, capability, reason, by });
                }
                (Some(why), capability) => draft.questions.push(Question { capability, why, by }),
                (None, None) => {
                    let why = "its path cannot be written in a manifest".to_owned();
                    draft.questions.push(Question { capability: None, why, by });
                }
            }
        }
    }
}

fn question_about(
    evidence: &Evidence,
    ground: &str,
    group: Vec<(String, Reason, Provenance)>,
    actions: &str,
) -> Question {
    let dirs: BTreeSet<&str> = group.iter().map(|(place, ..)| split(place).0).collect();
    let around =
        if dirs.len() == 1 { "one directory".to_owned() } else { format!("{} directories", dirs.len()) };
    let why = format!("{} places in {around} below it were touched", group.len());
    let mut by = Provenance::default();
    group.iter().for_each(|(_, _, more)| by.add(more));
    let wide = is_wide(evidence, ground);
    let capability = line_of(evidence, actions, ground).filter(|_| !wide);
    Question { capability, why, by }
}

/// The directory that a question is about if there is too much below it.
fn ground(evidence: &Evidence, place: &str) -> String {
    let here = evidence.here.as_ref().map(ToString::to_string);
    if let Some(here) = here.filter(|here| lies_below(place, here)) {
        return here;
    }
    let home = evidence.home.as_ref().map(ToString::to_string);
    let (base, rest) = match home.filter(|home| lies_below(place, home)) {
        Some(home) => (home.clone(), place.get(home.len()..).unwrap_or_default().to_owned()),
        None => (String::new(), place.to_owned()),
    };
    let depth = if base.is_empty() { 2 } else { 1 };
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let kept = parts.iter().take(depth.min(parts.len().saturating_sub(1)));
    kept.fold(base, |all, part| all + "/" + part)
}

/// What the C library looks at before it resolves a name: it does without, and the sandbox resolves names itself.
const RESOLVER: [&str; 2] = ["/etc/host.conf", "/etc/gai.conf"];

/// Whether the sandbox has a place of its own there, or shows it to every program of this command.
fn is_sandboxs_own(evidence: &Evidence, path: &AbsPath, changes: bool) -> bool {
    let within = |place: &str| AbsPath::new(place).is_ok_and(|place| path.is_within(&place));
    let text = path.to_string();
    let is_of_resolver = !changes && RESOLVER.contains(&text.as_str());
    if text == "/" || is_of_resolver || MASKED.iter().any(|masked| within(masked)) {
        return true;
    }
    let is_based = BASE.iter().any(|entry| entry.kind != BaseKind::Programs && within(entry.path));
    let is_program = BASE.iter().any(|entry| entry.kind == BaseKind::Programs && within(entry.path));
    let is_stub = STUBS.iter().any(|(stub, _)| *stub == text);
    let is_brought = evidence.shown.iter().any(|shown| path.is_within(shown));
    !changes && (is_based || is_program || is_stub || is_brought)
}

/// Whether a path lies in the code of the command itself.
fn is_brought_along(evidence: &Evidence, path: &AbsPath) -> bool {
    evidence.shown.iter().any(|shown| path.is_within(shown))
}

/// Whether a path lies in a directory that the sandbox has of its own.
fn is_private(evidence: &Evidence, path: &AbsPath) -> bool {
    let depth = |all: &[AbsPath]| {
        all.iter().filter(|own| path.is_within(own)).map(|own| own.components().count()).max()
    };
    depth(&evidence.private) > depth(&evidence.opened)
}

/// The variable whose directory a path lies in; the innermost.
fn variable_of(evidence: &Evidence, path: &AbsPath) -> Option<usize> {
    let depth = |variable: &BoundVariable| {
        let around = variable.values.iter().filter(|value| path.is_within(value));
        around.map(|value| value.components().count()).max()
    };
    let all = evidence.variables.iter().enumerate();
    all.filter_map(|(at, variable)| Some((depth(variable)?, at))).max().map(|(_, at)| at)
}

/// Why a path is never granted without a question.
fn sensitive(evidence: &Evidence, path: &AbsPath) -> Option<String> {
    let within = |place: &str| AbsPath::new(place).is_ok_and(|place| path.is_within(&place));
    if let Some(why) = secret_name(path) {
        return Some(why);
    }
    if SECRETS_OF_SYSTEM.iter().any(|secret| within(secret)) {
        return Some("it is a secret of the system".to_owned());
    }
    if ["/root", "/home", "/Users"].iter().any(|homes| within(homes)) && !is_own(evidence, path) {
        return Some("it lies in a home".to_owned());
    }
    match evidence.places.judge(path)? {
        Sensitive::Above(_) => None,
        Sensitive::Within(place) if READ_ONE_BY_ONE.contains(&place.to_string().as_str()) => None,
        why @ (Sensitive::Within(_) | Sensitive::Root | Sensitive::Home | Sensitive::SecretFile) => {
            Some(why.to_string())
        }
    }
}

/// Whether a path lies where the program was started, or in the caller's home.
fn is_own(evidence: &Evidence, path: &AbsPath) -> bool {
    evidence.here.iter().chain(&evidence.home).any(|own| path.is_within(own))
}

fn secret_name(path: &AbsPath) -> Option<String> {
    let is_kept = |part: &str| SECRET_DIRECTORIES.contains(&part);
    (path.components().any(is_kept) || is_secret_name(path.components().last()?))
        .then(|| "files of this name hold secrets".to_owned())
}

/// Whether files of this name hold secrets, wherever they lie.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    name == ".env"
        || (SECRET_BEGINNINGS.iter().any(|start| name.starts_with(start))
            && !name.ends_with(".pub")
            && !name.ends_with(".example"))
        || SECRET_ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether a directory holds so much that no line grants it.
fn is_wide(evidence: &Evidence, dir: &str) -> bool {
    let Ok(path) = AbsPath::new(if dir.is_empty() { "/" } else { dir }) else { return true };
    path.components().count() < 2
        || evidence.places.judge(&path).is_some_and(|why| match why {
            Sensitive::Within(place) => place == path,
            Sensitive::Root | Sensitive::Home | Sensitive::Above(_) | Sensitive::SecretFile => true,
        })
        || evidence.home.as_ref().is_some_and(|home| home.is_within(&path))
}

/// Why nothing is written there without a question.
fn system_place(evidence: &Evidence, dir: &str) -> Option<String> {
    let path = AbsPath::new(if dir.is_empty() { "/" } else { dir }).ok()?;
    evidence.places.judge(&path).map(|why| why.to_string())
}

const fn actions(writes: bool) -> &'static str {
    if writes { "read,write" } else { "read" }
}

/// The line that grants a place that was seen: a path, or all entries of a directory. Nothing if a character of it would
/// mean something else in a line.
fn line_of(evidence: &Evidence, actions: &str, place: &str) -> Option<String> {
    let (path, entries) = place.strip_suffix("/*").map_or((place, ""), |dir| (dir, "/*"));
    // The grammar reads variables in manifests alone: the path itself is tried.
    let is_line = is_plain(path) && clean(&format!("fs:{actions}:{path}{entries}")).is_some();
    is_line.then(|| format!("fs:{actions}:{}{entries}", shortened(evidence, path)))
}

/// A path as a person writes it: below where the program was started, or below the home.
fn shortened(evidence: &Evidence, path: &str) -> String {
    let below = |own: &Option<AbsPath>, short: &str| {
        let own = own.as_ref()?.to_string();
        (own != "/" && (path == own || lies_below(path, &own)))
            .then(|| format!("{short}{}", path.get(own.len()..).unwrap_or_default()))
    };
    below(&evidence.here, "$WORKSPACE")
        .or_else(|| below(&evidence.home, "~"))
        .unwrap_or_else(|| path.to_owned())
}

/// Whether a path lies below a directory.
fn lies_below(path: &str, dir: &str) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

/// The directory of a path, and its name in it.
fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some(both) => both,
        None => ("/", path),
    }
}
