//! `bailiwick scan`: what the source does, against what was declared.

mod show;

use std::path::Path;

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::input::InputError;
use bailiwick_command::render::json;
use bailiwick_command::terminal::Progress;
use bailiwick_command::{facts, input};
use bailiwick_manifest::Checked;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::{Finding, Findings, Source};
use bailiwick_scan::{Fault, Judgement, Options, Report, Stage, Subject};

use crate::args::Format;
use crate::args::scan::Scan;

/// A scan and what it was compared with.
struct Case {
    report: Report,
    manifest: Option<(Source, Checked)>,
    judgement: Judgement,
    strict: bool,
}

pub(crate) fn run(args: &Scan) -> Answer {
    let listed = match args.tools.as_deref().map(listed).transpose() {
        Ok(listed) => listed,
        Err(refusal) => return refusal,
    };
    let report = match read(args, listed) {
        Ok(report) => report,
        Err(fault) => return Answer::refusal(Exit::Invalid, input::unreadable(&fault.to_string())),
    };
    if args.draft {
        let name = args.paths.first().map_or("server", |path| name_of(path));
        return Answer::result(Exit::Fine, bailiwick_scan::draft(name, &report));
    }
    let (manifest, facts) = match declared(args) {
        Ok(declared) => declared,
        Err(useless) => return useless.refusal(),
    };
    let judgement = bailiwick_scan::compare(&report, manifest.as_ref().map(|(_, checked)| checked), &facts);
    let case = Case { report, manifest, judgement, strict: args.strict };
    let exit = if case.judgement.fails(args.strict) { Exit::Found } else { Exit::Fine };
    match args.format {
        Format::Text => Answer::result(exit, show::text(&case)),
        Format::Json => Answer::result(exit, json::document(&show::document(&case))),
        Format::Sarif => Answer::result(exit, json::document(&show::log(&case))),
    }
}

/// The names of the tools in a file.
fn listed(path: &Path) -> Result<Vec<String>, Answer> {
    let source = input::read(path).map_err(|useless| useless.refusal())?;
    bailiwick_scan::listed_tools(source.text()).map_err(|why| {
        Answer::refusal(Exit::Invalid, input::unreadable(&format!("`{}`: {why}", path.display())))
    })
}

fn read(args: &Scan, listed: Option<Vec<String>>) -> Result<Report, Fault> {
    let options = Options {
        include_dependencies: args.include_dependencies,
        cache: facts::cache_dir().filter(|_| !args.no_cache).map(|cache| cache.join("scan")),
        threads: facts::threads(),
        listed,
    };
    let progress = Progress::begin();
    let report = bailiwick_scan::scan(&args.paths, &options, &|stage| {
        if let Some(progress) = &progress {
            progress.set(match stage {
                Stage::Reading(done, all) => format!("read {done} of {all} files"),
                Stage::Following(done, all) => format!("followed {done} of {all} tools"),
            });
        }
    });
    progress.into_iter().for_each(Progress::end);
    report
}

/// The manifest, and what the host says about paths in it and in the source.
fn declared(args: &Scan) -> Result<(Option<(Source, Checked)>, HostFacts), InputError> {
    let Some(path) = &args.manifest else { return Ok((None, facts::for_source(&args.settings))) };
    let (source, manifest) = input::manifest(path)?;
    let known = facts::for_manifest(&manifest, &args.settings);
    let checked = known
        .and_then(|known| manifest.check(&known).map(|found| (found, known)).map_err(Findings::into_vec));
    match checked {
        Ok((checked, known)) => Ok((Some((source, checked)), facts::with_usual(known, &args.settings))),
        Err(findings) => Err(InputError::Wrong(source, findings)),
    }
}

/// A name for the draft: that of the directory or file, without its ending.
fn name_of(path: &Path) -> &str {
    path.file_stem().and_then(|name| name.to_str()).filter(|name| *name != ".").unwrap_or("server")
}

impl Case {
    /// The findings of each text, those of the manifest first; texts that cannot be read again are empty.
    fn by_text(&self) -> Vec<(Source, Vec<Finding>)> {
        let mut texts = Vec::new();
        let of = |subject: Subject| {
            let items = self.judgement.items().iter().filter(move |item| item.subject == subject);
            items.map(|item| item.finding.clone()).collect::<Vec<Finding>>()
        };
        let declared = of(Subject::Manifest);
        if let Some((source, _)) = self.manifest.as_ref().filter(|_| !declared.is_empty()) {
            texts.push((source.clone(), declared));
        }
        for (index, path) in self.report.files().iter().enumerate() {
            let findings = of(Subject::File(index));
            if !findings.is_empty() {
                let text = bailiwick_scan::read_text(path).unwrap_or_default();
                texts.push((Source::new(path.to_string_lossy(), text), findings));
            }
        }
        texts
    }
}
