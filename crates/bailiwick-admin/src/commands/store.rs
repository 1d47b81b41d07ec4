//! `bailiwick store`: the packages that `wrap` starts servers from.

use std::fmt::Write as _;
use std::path::Path;

use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::args::run::NameOptions;
use bailiwick_command::packages::host;
use bailiwick_command::render::{escape, style};
use bailiwick_command::terminal;
use bailiwick_store::{ResolveOptions, ServerCommand, Store, StoreHost, foreign_source, split_command};

use crate::args::store::{Store as Args, StoreCommand};

pub(super) fn run(args: &Args) -> anyhow::Result<Answer> {
    match &args.command {
        StoreCommand::List => list(&host(NameOptions::default(), true)?),
        StoreCommand::Fetch { refresh, install_scripts, no_journal, names, server } => {
            let host = host(names.clone(), *no_journal)?;
            let options = ResolveOptions { refresh: *refresh, install_scripts: *install_scripts };
            let call = match split_command(server) {
                Ok(ServerCommand::Package(call)) => call,
                Ok(ServerCommand::Program) => {
                    return Ok(refused(Exit::Usage, "the command names no launcher such as `npx` or `uvx`"));
                }
                Err(why) => return Ok(refused(Exit::Found, &why.to_string())),
            };
            if let Some(why) = foreign_source(&call, &host) {
                return Ok(refused(Exit::Found, &why));
            }
            match Store::new(&host).package(&call, options) {
                Ok(package) => {
                    let (name, version) = (escape::line(&package.identity), escape::line(&package.version));
                    Ok(Answer::result(Exit::Fine, format!("{}: {name} {version}\n", style::good("ok"))))
                }
                Err(why) => Ok(refused(Exit::Found, &why.to_string())),
            }
        }
        StoreCommand::Prune { all } => {
            let removed = Store::new(&host(NameOptions::default(), true)?).prune(*all)?;
            let removed = style::count(removed, "directory", "directories");
            Ok(Answer::result(Exit::Fine, format!("{}: removed {removed}\n", style::good("ok"))))
        }
        StoreCommand::Confirm { path, yes } => confirm(path, *yes),
    }
}

fn list(host: &StoreHost) -> anyhow::Result<Answer> {
    let mut text = String::new();
    for (package, directory) in Store::new(host).list()? {
        let (identity, asked) = (escape::line(&package.identity), escape::line(&package.asked));
        let asked = if asked.is_empty() { String::new() } else { format!("@{asked}") };
        let (version, directory) =
            (escape::line(&package.version), escape::line(&directory.to_string_lossy()));
        let _ = writeln!(text, "{identity}{asked}  {version}  {directory}");
    }
    let text = if text.is_empty() { "no package was fetched\n".to_owned() } else { text };
    Ok(Answer::result(Exit::Fine, text))
}

fn confirm(path: &Path, yes: bool) -> anyhow::Result<Answer> {
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(fault) => {
            return Ok(refused(Exit::Invalid, &format!("cannot use `{}`: {fault}", path.display())));
        }
    };
    let shown = escape::line(&real.to_string_lossy());
    let question = format!("Hand variables of yours to {shown}, as the manifest of its package says?");
    if !yes && terminal::confirm(&question)? != Some(true) {
        return Ok(refused(Exit::Found, "not confirmed: confirm at a terminal, or say --yes"));
    }
    bailiwick_store::confirm(&host(NameOptions::default(), true)?.records, &real)?;
    Ok(Answer::result(Exit::Fine, format!("{}: confirmed {shown}\n", style::good("ok"))))
}
