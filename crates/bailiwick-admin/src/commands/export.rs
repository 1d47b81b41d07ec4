//! `bailiwick export`: the journal as JSON lines, or as logs, metrics and traces for a collector.
//!
//! What is read, counted and sent is `bailiwick-export`; here are the settings, the values of headers, and the loop. Fails closed
//! when: a header's source has no value. Nothing is sent without it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use bailiwick_broker::{SecretSource as _, Source};
use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::listening::{CancellationToken, until_signalled};
use bailiwick_command::{facts, terminal};
use bailiwick_export::{
    Collector, Counts, CursorFile, ExportOptions, Exporter, Lines, LinesTarget, OtlpSetting, Sink, Step,
    otlp_setting,
};
use bailiwick_remote::Client;

use crate::args::export::{Export, ExportFormat};

/// How often a journal is looked at for more.
const LOOK_EVERY: Duration = Duration::from_secs(1);

const MIB: u64 = 1 << 20;

pub(crate) fn run(args: &Export) -> anyhow::Result<Answer> {
    if let Some(why) = contradiction(args) {
        return Ok(refused(Exit::Usage, why));
    }
    let own = facts::journal_dir();
    let journal =
        args.dir.clone().or(own).context("neither XDG_STATE_HOME nor HOME says where the journal is")?;
    let sink = match args.format {
        ExportFormat::JsonLines => Sink::Lines(Lines::new(target(args))),
        ExportFormat::Otlp => match collector(args, &journal)? {
            Ok(collector) => Sink::Otlp(Box::new(collector)),
            Err(refusal) => return Ok(refusal),
        },
    };
    let cursor = cursor_path(args)?.map(|path| CursorFile::lock(&path)).transpose()?;
    let options = ExportOptions { journal, bound_bytes: args.bound.saturating_mul(MIB) };
    let mut exporter = Exporter::open(&options, cursor, sink)?;
    until_signalled(|stop| async move { export(&mut exporter, args.follow, &stop).await })?;
    Ok(Answer::result(Exit::Fine, String::new()))
}

/// Options that cannot be followed together.
fn contradiction(args: &Export) -> Option<&'static str> {
    match args.format {
        ExportFormat::JsonLines if args.endpoint.is_some() || !args.headers.is_empty() => {
            Some("`--endpoint` and `--header` are for `--format otlp`")
        }
        ExportFormat::Otlp if args.out.is_some() => Some("`--out` is for `--format json-lines`"),
        ExportFormat::JsonLines | ExportFormat::Otlp => None,
    }
}

fn target(args: &Export) -> LinesTarget {
    let most_bytes = args.rotate.saturating_mul(MIB);
    args.out.clone().map_or_else(
        || LinesTarget::Writer(Box::new(std::io::stdout())),
        |path| LinesTarget::File { path, most_bytes },
    )
}

/// Where is kept how far was exported; nowhere for stdout, unless it was named.
fn cursor_path(args: &Export) -> anyhow::Result<Option<PathBuf>> {
    let name = match (&args.cursor, args.format) {
        (Some(path), _) => return Ok(Some(std::path::absolute(path)?)),
        (None, ExportFormat::Otlp) => "otlp.json",
        (None, ExportFormat::JsonLines) if args.out.is_some() => "json-lines.json",
        (None, ExportFormat::JsonLines) => return Ok(None),
    };
    let state =
        facts::state_dir().context("neither XDG_STATE_HOME nor HOME says where the cursor can be kept")?;
    Ok(Some(state.join("export").join(name)))
}

/// The collector of the command line, else of the settings; or why there is none.
fn collector(args: &Export, journal: &Path) -> anyhow::Result<Result<Collector, Answer>> {
    let mut setting = match settings() {
        Ok(setting) => setting,
        Err(why) => return Ok(Err(refused(Exit::Invalid, &why))),
    };
    if let Some(endpoint) = &args.endpoint {
        // Headers go to the collector they were written for.
        setting = Some(OtlpSetting { endpoint: endpoint.clone(), headers: Vec::new() });
    }
    let Some(mut setting) = setting else {
        let why =
            "no collector is known: give `--endpoint URL`, or `endpoint` in `[export.otlp]` of config.toml";
        return Ok(Err(refused(Exit::Usage, why)));
    };
    setting.headers.extend(args.headers.iter().map(|header| (header.name.clone(), header.source.clone())));
    let mut headers = Vec::new();
    for (name, source) in setting.headers {
        match header_value(&source) {
            Ok(value) => headers.push((name, value)),
            Err(why) => return Ok(Err(refused(Exit::Invalid, &format!("the header `{name}`: {why:#}")))),
        }
    }
    let client = Client::new(args.names.resolver(), args.names.hosts())?.for_own_network();
    let made = Collector::new(client, &setting.endpoint, headers, resource(journal));
    Ok(made.map_err(|why| refused(Exit::Usage, &why.to_string())))
}

fn settings() -> Result<Option<OtlpSetting>, String> {
    let Some(file) = facts::settings_file() else { return Ok(None) };
    let text = match std::fs::read_to_string(&file) {
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|fault| format!("`{}`: {fault}", file.display()))?,
    };
    otlp_setting(&text).map_err(|findings| format!("`{}`: {findings}", file.display()))
}

fn header_value(source: &str) -> anyhow::Result<Vec<u8>> {
    let source: Source = source.parse()?;
    Ok(source.fetch()?.read()?.expose().to_vec())
}

/// Who sends: this program on this host, known by the key of its journal.
fn resource(journal: &Path) -> Vec<(String, String)> {
    let mut known = vec![
        ("service.name".to_owned(), "bailiwick".to_owned()),
        ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let key = bailiwick_journal::local_fingerprint(journal).ok().flatten();
    known.extend(key.map(|key| ("service.instance.id".to_owned(), key.to_string())));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    known.extend(host.map(|host| ("host.name".to_owned(), host.trim().to_owned())));
    known
}

async fn export(exporter: &mut Exporter, follows: bool, stop: &CancellationToken) -> anyhow::Result<()> {
    let mut told = None;
    loop {
        if stop.is_cancelled() {
            return Ok(());
        }
        let wait = match exporter.step().await? {
            Step::Sent(_) => {
                told = None;
                continue;
            }
            Step::Idle if !follows => return complain(exporter.counts()),
            Step::Idle => LOOK_EVERY,
            Step::Failed(why, _) if !follows => {
                return Err(anyhow::Error::from(why)
                    .context("not everything was exported; the cursor stands behind what was"));
            }
            Step::Failed(why, wait) => {
                // Once for each reason: a collector can be down for long.
                let why = why.to_string();
                if told.as_ref() != Some(&why) {
                    terminal::remark(&format!("export: {why}; it is tried again\n"));
                    told = Some(why);
                }
                wait
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = stop.cancelled() => return Ok(()),
        }
    }
}

/// Says what was not exported.
fn complain(counts: &Counts) -> anyhow::Result<()> {
    let missing = [
        (counts.skipped, "events lay too far behind"),
        (counts.rejected, "records were refused by the collector"),
        (counts.unreadable, "lines are no records"),
        (counts.removed, "lines were removed before they were read"),
    ];
    for (count, what) in missing.into_iter().filter(|(count, _)| *count > 0) {
        terminal::remark(&format!("export: {count} {what} since the cursor was made\n"));
    }
    Ok(())
}
