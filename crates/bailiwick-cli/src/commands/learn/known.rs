//! A manifest that is there already, compared with what was seen.

use std::path::{Path, PathBuf};

use bailiwick_command::answer::plain;
use bailiwick_command::input;
use bailiwick_learn::{Draft, Evidence};
use bailiwick_manifest::Manifest;
use bailiwick_policy::authority::Authority;
use bailiwick_policy::capability::Capability;
use bailiwick_policy::path::AbsPath;
use bailiwick_store::with_host_values;

use super::subject::Subject;

/// A manifest, and its text.
pub(super) struct Known {
    pub(super) text: String,
    pub(super) manifest: Manifest,
}

/// A line as it is written, and what it means on this host.
struct Meant {
    text: String,
    tool: Option<String>,
    lines: Vec<Capability>,
}

impl Known {
    /// # Errors
    /// What is wrong with the file.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let (source, manifest) = input::manifest(path).map_err(|useless| plain(useless.refusal()))?;
        Ok(Self { text: source.text().to_owned(), manifest })
    }

    /// Takes out of a draft what the manifest allows, and the questions that it has already.
    ///
    /// # Errors
    /// If its variables have no values here.
    pub(super) fn take_out_of(
        &self,
        draft: &mut Draft,
        evidence: &Evidence,
        subject: &Subject,
    ) -> anyhow::Result<()> {
        let meant = self.meant(evidence, subject)?;
        let name = |tool: Option<usize>| tool.and_then(|tool| Some(evidence.tools.get(tool)?.name.clone()));
        draft.lines.retain(|line| {
            let tool = name(line.tool);
            let own = meant.iter().filter(|known| known.tool.is_none() || known.tool == tool);
            let lines: Vec<Capability> = own.flat_map(|known| known.lines.clone()).collect();
            !is_within(&seen(evidence, &line.capability), &lines)
        });
        draft.questions.retain(|question| {
            question.capability.as_ref().is_none_or(|line| !self.text.contains(line.as_str()))
        });
        Ok(())
    }

    /// The lines of the manifest that nothing which was seen needs.
    ///
    /// # Errors
    /// If its variables have no values here.
    pub(super) fn unused(
        &self,
        draft: &Draft,
        evidence: &Evidence,
        subject: &Subject,
    ) -> anyhow::Result<Vec<String>> {
        let used: Vec<Vec<Capability>> =
            draft.lines.iter().map(|line| seen(evidence, &line.capability)).collect();
        let meant = self.meant(evidence, subject)?.into_iter();
        let unused = meant.filter(|known| {
            let enforced = known
                .lines
                .iter()
                .all(|line| !matches!(line, Capability::Clock(_) | Capability::Assert { .. }));
            enforced && !used.iter().any(|line| is_within(line, &known.lines))
        });
        let texts: std::collections::BTreeSet<String> = unused.map(|known| known.text).collect();
        Ok(texts.into_iter().collect())
    }

    /// Every line with what it means here.
    fn meant(&self, evidence: &Evidence, subject: &Subject) -> anyhow::Result<Vec<Meant>> {
        let mut all = Vec::new();
        let own = self.manifest.server_capabilities().iter().map(|line| (None, line));
        let tools = self.manifest.tools().iter().flat_map(|tool| {
            tool.capabilities()
                .unwrap_or_default()
                .iter()
                .map(move |line| (Some(tool.name().to_owned()), line))
        });
        for (tool, line) in own.chain(tools) {
            let text = line.value.to_string();
            let one = self.manifest.clone().with_only(line.value.clone());
            let one = with_host_values(one, &subject.arguments, &[], &subject.host)?;
            let resolved =
                one.lines().filter_map(|line| line.value.resolve(|name| value(evidence, subject, name)).ok());
            let lines = resolved.map(real).collect();
            all.push(Meant { text, tool, lines });
        }
        Ok(all)
    }
}

/// What a line of a draft means: its variables are those of the command.
fn seen(evidence: &Evidence, line: &str) -> Vec<Capability> {
    let Some((head, rest)) =
        line.split_once(":$").or_else(|| line.split_once(":~").filter(|_| line.starts_with("fs:")))
    else {
        return Capability::new(line).into_iter().collect();
    };
    let (name, below) = rest.split_at_checked(rest.find('/').unwrap_or(rest.len())).unwrap_or((rest, ""));
    let of_command = evidence.variables.iter().find(|variable| variable.name == name);
    let values: Vec<AbsPath> = match (name, of_command) {
        ("", _) => evidence.home.iter().cloned().collect(),
        ("WORKSPACE", _) => evidence.here.iter().cloned().collect(),
        (_, Some(variable)) => variable.values.clone(),
        (_, None) => Vec::new(),
    };
    values.iter().filter_map(|value| Capability::new(format!("{head}:{value}{below}")).ok()).collect()
}

/// The value of a variable that every host has.
fn value(evidence: &Evidence, subject: &Subject, name: &str) -> Option<AbsPath> {
    match name {
        "HOME" => evidence.home.clone(),
        "WORKSPACE" => AbsPath::new(subject.host.cwd.to_str()?).ok(),
        _ => None,
    }
}

/// A line with the links of its path followed, as what was seen is named.
fn real(line: Capability) -> Capability {
    let text = line.to_string();
    let Some((head, path)) = text.rsplit_once(':').filter(|_| text.starts_with("fs:")) else { return line };
    let led = PathBuf::from(path).canonicalize().ok();
    let real = led.and_then(|led| Capability::new(format!("{head}:{}", led.to_str()?)).ok());
    real.unwrap_or(line)
}

/// Whether lines allow nothing that the others do not. No line is within nothing.
fn is_within(lines: &[Capability], others: &[Capability]) -> bool {
    match (Authority::from_capabilities(others), Authority::from_capabilities(lines)) {
        (Ok(all), Ok(own)) => !lines.is_empty() && own.within(&all).holds(),
        _ => false,
    }
}
