//! `bailiwick login` and `logout`: a login at a server that runs elsewhere, by OAuth in the person's own browser.
//!
//! The browser is started without a shell, with an address that is `https:` (or of this machine, where the server is) and
//! nothing else. Tokens are written to a file of the user's alone and never shown.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::listening::{CancellationToken, kept_from_sandboxes};
use bailiwick_command::logins::token_file;
use bailiwick_command::render::{escape, style};
use bailiwick_command::{facts, input, terminal};
use bailiwick_door::{
    Answer as HttpAnswer, DoorRules, Limits, Listening, Service, filled, plain, with_header,
};
use bailiwick_manifest::Manifest;
use bailiwick_remote::{Client, Endpoint, LoginRequest, PendingLogin};
use tokio::sync::mpsc;

use crate::args::login::{Login, Logout};

/// Where the browser comes back to.
const PATH: &str = "/callback";

/// How long the person has.
const PATIENCE: Duration = Duration::from_secs(300);

pub(super) fn run(args: &Login) -> anyhow::Result<Answer> {
    let Some(server) = server(&args.server)? else { return Ok(no_server(&args.server)) };
    let client = Client::new(args.names.resolver(), args.names.hosts())?;
    let file = token_file(&server)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done: anyhow::Result<_> = runtime.block_on(async {
        let listening = kept_from_sandboxes(Listening::bind(([127, 0, 0, 1], 0).into()).await?)?;
        let redirect = listening.url(PATH);
        let (client_id, scope) = (args.client_id.as_deref(), args.scope.as_deref());
        let asked = LoginRequest { server: &server, redirect: &redirect, client_id, scope };
        let pending = Arc::new(PendingLogin::begin(&client, asked).await?);
        say(pending.address(), args.no_browser);
        let query = came_back(listening, &pending).await?;
        Ok(pending.finish(&client, &query).await?)
    });
    match done {
        Ok(login) => {
            file.write(&login)?;
            let text = format!(
                "{}: logged in at {}, by {}\n",
                style::good("ok"),
                escape::line(server.as_str()),
                escape::line(login.issuer())
            );
            Ok(Answer::result(Exit::Fine, text))
        }
        Err(why) => Ok(refused(Exit::Found, &format!("{why:#}"))),
    }
}

pub(super) fn forget(args: &Logout) -> anyhow::Result<Answer> {
    let Some(server) = server(&args.server)? else { return Ok(no_server(&args.server)) };
    let text = if token_file(&server)?.remove()? { "logged out of" } else { "there was no login at" };
    Ok(Answer::result(
        Exit::Fine,
        format!("{}: {text} {}\n", style::good("ok"), escape::line(server.as_str())),
    ))
}

/// The server of a URL, or of the user's manifest of this name.
fn server(named: &str) -> anyhow::Result<Option<Endpoint>> {
    if named.contains("://") {
        return Ok(Some(Endpoint::new(named)?));
    }
    let files = facts::server_manifests().and_then(|dir| std::fs::read_dir(dir).ok());
    for file in files.into_iter().flatten().flatten() {
        let Ok((_, manifest)) = input::manifest(&file.path()) else { continue };
        if manifest.name() == named
            && let Some(url) = url_of(&manifest)
        {
            return Ok(Some(Endpoint::new(url)?));
        }
    }
    Ok(None)
}

fn url_of(manifest: &Manifest) -> Option<&str> {
    let identity = manifest.package()?.identity.as_deref()?;
    identity.starts_with("https://").then_some(identity)
}

fn say(address: &str, is_alone: bool) {
    terminal::remark(&format!("open this address in a browser:\n{}\n", escape::line(address)));
    if is_alone || !terminal::is_terminal() {
        return;
    }
    let mut browser = Command::new("xdg-open");
    browser.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Without one, the person opens the address.
    drop(browser.spawn());
}

/// Waits for the browser.
async fn came_back(listening: Listening, pending: &Arc<PendingLogin>) -> anyhow::Result<String> {
    let (tell, mut queries) = mpsc::channel(1);
    let service = Arc::new(Callback { pending: Arc::clone(pending), tell });
    let (stop, limits) = (CancellationToken::new(), Limits::default());
    let served =
        listening.serve(DoorRules::for_everyone(PATH), limits, service, stop.clone().cancelled_owned());
    tokio::pin!(served);
    let query = tokio::select! {
        query = queries.recv() => query,
        () = &mut served => None,
        () = tokio::time::sleep(PATIENCE) => None,
    };
    stop.cancel();
    // The browser is answered.
    served.await;
    query.context("the browser did not come back")
}

/// Takes one query that is for this login; no other program can guess its state.
struct Callback {
    pending: Arc<PendingLogin>,
    tell: mpsc::Sender<String>,
}

impl Service for Callback {
    async fn answer(&self, head: http::request::Parts, _: hyper::body::Incoming) -> HttpAnswer {
        let query = head.uri.query().unwrap_or_default();
        if head.method != http::Method::GET || !self.pending.is_for(query) {
            return plain(http::StatusCode::BAD_REQUEST, "this is not the login that is waited for");
        }
        drop(self.tell.try_send(query.to_owned()));
        let text = b"You can close this window and go back to the terminal.\n".to_vec();
        let answer =
            with_header(filled(http::StatusCode::OK, text), http::header::CONTENT_TYPE, "text/plain");
        with_header(answer, http::header::REFERRER_POLICY, "no-referrer")
    }

    async fn end(&self) {}
}

fn no_server(named: &str) -> Answer {
    let dir = facts::server_manifests().unwrap_or_default();
    let named = escape::line(named);
    refused(
        Exit::Invalid,
        &format!(
            "no manifest in `{}` is called `{named}` and has an `https:` identity; give the server's URL: `bailiwick login https://…`",
            dir.display()
        ),
    )
}

fn refused(exit: Exit, why: &str) -> Answer {
    Answer::refusal(exit, format!("{}: {}\n", style::error("error"), escape::line(why)))
}
