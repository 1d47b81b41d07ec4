//! Listeners that no sandbox reaches, and what is served until a signal.

use std::pin::pin;
use std::time::Duration;

use anyhow::Context as _;
use bailiwick_door::Listening;
use tokio::signal::unix::{SignalKind, signal};

use crate::facts;
pub use tokio_util::sync::CancellationToken;

/// How long programs that were cut off may take to be gone before this process is.
pub const PARTING: Duration = Duration::from_millis(500);

/// A listener that no sandbox of this user reaches, whatever is granted to it.
///
/// # Errors
/// If the environment names no place to note its port, or that cannot be written.
pub fn kept_from_sandboxes(listening: Listening) -> anyhow::Result<Listening> {
    let ports = facts::ports_dir().context("neither XDG_STATE_HOME nor HOME says where ports are held")?;
    Ok(listening.kept_from_sandboxes(&ports)?)
}

/// Runs something that ends when it is told to, and tells it to at SIGTERM and SIGINT.
///
/// # Errors
/// What it ends with, or that no signal can be received.
pub fn until_signalled<F>(serve: impl FnOnce(CancellationToken) -> F) -> anyhow::Result<&'static str>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(async {
        let stop = CancellationToken::new();
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let mut served = pin!(serve(stop.clone()));
        let how = tokio::select! {
            ended = &mut served => return ended.map(|()| "ended"),
            _ = term.recv() => "terminated",
            _ = int.recv() => "interrupted",
        };
        stop.cancel();
        served.await.map(|()| how)
    });
    runtime.shutdown_timeout(PARTING);
    ended
}
