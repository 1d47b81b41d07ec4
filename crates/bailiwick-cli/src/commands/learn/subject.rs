//! What is learned: the command that is really run, its own arguments, and which package it is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bailiwick_command::args::learn::Watched;
use bailiwick_command::packages::{fetch, host};
use bailiwick_store::{
    InstalledServer, ProjectCode, ResolveOptions, ServerCommand, Store, StoreHost, code_of_command,
    foreign_source, split_command,
};

/// A program that is to be watched.
pub(super) struct Subject {
    /// What its manifest is called.
    pub(super) name: String,
    /// The package that it is.
    pub(super) identity: Option<String>,
    pub(super) version: Option<String>,
    /// What is run.
    pub(super) command: Vec<OsString>,
    /// The words that are its own.
    pub(super) arguments: Vec<OsString>,
    /// Whether it speaks the Model Context Protocol.
    pub(super) is_server: bool,
    /// Its code beside the current directory, where `wrap` shows it too.
    pub(super) code: ProjectCode,
    pub(super) host: StoreHost,
}

/// What a command says of its subject beside what is watched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Naming<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) is_server: bool,
    pub(super) is_unrecorded: bool,
}

impl Subject {
    /// The program itself, where it is really.
    pub(super) fn program(&self) -> Option<PathBuf> {
        found_program(Path::new(self.command.first()?), &self.host).canonicalize().ok()
    }

    /// # Errors
    /// Why nothing can be started, in words for people.
    pub(super) fn from_args(args: &Watched, how: &Naming<'_>) -> anyhow::Result<Self> {
        let host = host(args.names.clone(), how.is_unrecorded)?;
        let program = args.command.first().map(Path::new).unwrap_or(Path::new("program"));
        let short = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut subject = Self {
            name: how.name.map_or(short, str::to_owned),
            identity: None,
            version: None,
            command: args.command.clone(),
            arguments: args.command.get(1..).unwrap_or_default().to_vec(),
            is_server: how.is_server || args.calls.is_some() || args.from_journal.is_some(),
            code: ProjectCode::default(),
            host,
        };
        match split_command(&args.command) {
            Ok(ServerCommand::Package(call)) => {
                if let Some(why) = foreign_source(&call, &subject.host) {
                    anyhow::bail!(why);
                }
                let options = ResolveOptions { refresh: false, install_scripts: false };
                fetch(&call, options, &subject.host, how.is_unrecorded)?;
                let server = Store::new(&subject.host).resolve(&call, options)?;
                subject.identity = Some(call.identity());
                subject.version = Some(server.package.version);
                subject.command = server.command;
                subject.arguments = call.arguments;
                subject.is_server = true;
                if how.name.is_none() {
                    subject.name = call.name.rsplit('/').next().unwrap_or(&call.name).to_owned();
                }
            }
            Ok(ServerCommand::Program) => {
                let found = found_program(program, &subject.host);
                if let Some(server) = InstalledServer::find(&found, &args.command) {
                    subject.arguments = server.arguments;
                    subject.version = server.claim.as_ref().map(|claim| claim.version.clone());
                    subject.identity = server.claim.map(|claim| claim.identity);
                }
                if subject.is_server {
                    subject.code =
                        elsewhere(code_of_command(&found, &args.command, &subject.host), &subject.host);
                }
            }
            Err(_) => {}
        }
        Ok(subject)
    }
}

/// The code that does not lie in the current directory, which is opened anyway.
fn elsewhere(mut code: ProjectCode, host: &StoreHost) -> ProjectCode {
    for paths in [&mut code.code, &mut code.data] {
        paths.retain(|path| !path.starts_with(&host.cwd));
    }
    code
}

/// A program where the caller's shell finds it.
fn found_program(program: &Path, host: &StoreHost) -> PathBuf {
    if program.components().count() > 1 {
        return host.cwd.join(program);
    }
    let mut directories = host.search.callers.iter().map(|dir| dir.join(program));
    directories.find(|file| file.is_file()).unwrap_or_else(|| program.to_owned())
}
