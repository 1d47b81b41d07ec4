//! `bailiwick console`: the page that shows what tools do, and where a person decides.
//!
//! The page and what stands behind it are `bailiwick-console`; here are the address, the code, and the lock that tells
//! wrapped servers that a person can be asked here.

mod host;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::console_presence::held_lock;
use bailiwick_command::listening::{kept_from_sandboxes, until_signalled};
use bailiwick_command::render::style;
use bailiwick_command::user_state::state;
use bailiwick_command::{facts, terminal};
use bailiwick_console::{Console, ConsoleOptions, OneTimeCode};
use bailiwick_door::{Listening, ServerTls, Token};
use bailiwick_journal::private;

use self::host::ThisHost;
use crate::args::console::Console as Args;

pub(super) fn run(args: &Args) -> anyhow::Result<Answer> {
    let state = state()?;
    let directory = state.dir().to_path_buf();
    let journal =
        facts::journal_dir().context("neither XDG_STATE_HOME nor HOME says where the journal is")?;
    let options = ConsoleOptions { journal, state, watches_only: args.watch };
    let _presence = if args.watch { None } else { Some(held_lock(&directory)?) };
    let (tls, token) = match entry(args) {
        Ok(entry) => entry,
        Err(why) => return Ok(refused(Exit::Usage, &format!("{why:#}"))),
    };
    until_signalled(|stop| async move {
        let listening = match tls {
            None => Listening::bind(args.listen).await?,
            Some(tls) => Listening::bind_tls(args.listen, tls).await?,
        };
        let listening = kept_from_sandboxes(listening)?;
        let page = listening.url("/");
        let (console, token, code) = Console::new(options, ThisHost::new(page.clone()), token)?;
        let link = format!("{page}#code={}", code.reveal());
        terminal::remark(&format!("{}: {link}\nthe code is good once\n", style::strong("console")));
        let _link_file = if args.open { opened(&directory, &listening, &code)? } else { None };
        console.serve(listening, token, stop.cancelled_owned()).await;
        Ok(())
    })?;
    Ok(Answer::result(Exit::Fine, String::new()))
}

/// What a console needs that is reached from elsewhere, and may have besides.
fn entry(args: &Args) -> anyhow::Result<(Option<ServerTls>, Option<Token>)> {
    let tls = match (&args.name, &args.tls_certificate, &args.tls_key) {
        (Some(name), Some(certificate), Some(key)) => Some(ServerTls::from_files(name, certificate, key)?),
        _ => None,
    };
    anyhow::ensure!(
        args.listen.ip().is_loopback() || (tls.is_some() && args.token_file.is_some()),
        "`{}` is reached from other machines: it needs `--name HOST --tls-certificate FILE --tls-key FILE --token-file FILE`",
        args.listen
    );
    let token = args.token_file.as_deref().map(Token::from_file).transpose()?;
    Ok((tls, token))
}

/// A page that leads to the console, gone when this is dropped.
struct LinkFile(PathBuf);

impl Drop for LinkFile {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// Has the browser open a file that only the user can read: arguments of programs are there for every user.
fn opened(directory: &Path, listening: &Listening, code: &OneTimeCode) -> anyhow::Result<Option<LinkFile>> {
    let path = directory.join(format!("console-{}.html", listening.port()));
    // The port is ours: a file that is there was left by a console that has ended.
    drop(std::fs::remove_file(&path));
    let mut file = private::options().write(true).create_new(true).open(&path)?;
    let link = LinkFile(path);
    let to = format!("{}#code={}", listening.url("/"), code.reveal());
    writeln!(
        file,
        "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={to}\"><title>Bailiwick console</title>"
    )?;
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = Command::new(opener)
        .arg(&link.0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if started.is_err() {
        terminal::remark(&format!("`{opener}` is not there: open the address above in your browser\n"));
        return Ok(None);
    }
    Ok(Some(link))
}
