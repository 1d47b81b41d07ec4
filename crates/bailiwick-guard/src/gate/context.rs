//! What a running tool may see of the world.

mod closed;
mod files;
mod net;

pub(crate) use closed::Use;
pub(crate) use files::{Look, Only, Place, Stamp, child};

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bailiwick_policy::authority::{Authority, Request, Spawn};
use bailiwick_policy::capability::Capability;
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::journal::{Decision, Event, Kind};
use bailiwick_policy::net::{Host, NetRequest, Speak};
use bailiwick_policy::path::AbsPath;

use super::Shared;
use crate::offload::CancelFlag;
use crate::open::{How, NotOpened, WriteMode, open_exactly};
use crate::session::Session;
use crate::tool::{Listener, News, Stream, ToolError};
use bailiwick_guardrails::resolve::{absolute, real};
use bailiwick_journal::Journal;

/// How often a path that changes while it is opened is looked at again.
const MAX_LOOKS: usize = 16;

/// How many granted lines a denial names.
const MAX_SHOWN: usize = 8;

/// The authority of one running call: the meet of what was granted and what the tool needs, and no more.
///
/// It cannot be made, copied or kept by a tool; every question to it is recorded.
pub struct ToolContext {
    shared: Arc<Shared>,
    tool: Arc<str>,
    authority: Arc<Authority>,
    minted_in: u64,
    seq: u64,
    acted: AtomicBool,
    pub(super) listener: Option<Listener>,
    pub(super) cancelled: CancelFlag,
}

impl ToolContext {
    pub(super) fn mint(
        shared: Arc<Shared>,
        tool: Arc<str>,
        authority: Arc<Authority>,
        minted_in: u64,
        seq: u64,
    ) -> Self {
        let (acted, cancelled) = (AtomicBool::new(false), CancelFlag::default());
        Self { shared, tool, authority, minted_in, seq, acted, listener: None, cancelled }
    }

    /// What the call may touch.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The session's surroundings.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.shared.session
    }

    /// Tells whoever listens to this call; nobody may.
    pub fn tell(&self, stream: Stream, text: impl Into<String>) {
        if let Some(listener) = &self.listener {
            listener(News { stream, text: text.into() });
        }
    }

    /// Whether the call is still waited for. Tools that work long without a check ask this now and then.
    ///
    /// # Errors
    /// [`ToolError::Cancelled`], to be handed on.
    pub fn still_wanted(&self) -> Result<(), ToolError> {
        if self.cancelled.is_set() { Err(ToolError::Cancelled) } else { Ok(()) }
    }

    /// May this program be started? A bare name, or an absolute path.
    ///
    /// # Errors
    /// The denial, recorded.
    pub fn check_exec(&self, program: &str) -> Result<(), ToolError> {
        let capability: Result<Capability, _> = format!("exec:spawn:{program}").parse();
        let request = match capability {
            Ok(Capability::Exec { program: Some(program), .. }) => Request::Spawn(Spawn::plain(program)),
            _ => return Err(self.deny(unreadable("program", program))),
        };
        self.check(&request, || format!("exec of \"{program}\" is not within the granted authority"))
    }

    /// May this host be reached on this port, speaking TLS or HTTP?
    ///
    /// # Errors
    /// The denial, recorded.
    pub fn check_net(&self, host: &str, port: u16) -> Result<(), ToolError> {
        let Ok(host) = Host::new(host) else { return Err(self.deny(unreadable("host", host))) };
        let request = Request::Net(NetRequest::new(host, port, Speak::Tls));
        self.check(&request, || format!("{request} is not within the granted authority"))
    }

    /// May this path be read? Answers with where it really leads.
    ///
    /// # Errors
    /// The denial, recorded.
    pub fn check_path_read(&self, path: &str) -> Result<AbsPath, ToolError> {
        let real = self.real(path)?;
        self.stay_out(&real, Use::Read)?;
        let request = Request::Read(real.clone());
        self.check(&request, || {
            format!("read of \"{}\" is not within the granted authority", path.escape_debug())
        })?;
        Ok(real)
    }

    /// May this path be changed? Answers with where it really leads.
    ///
    /// # Errors
    /// The denial, recorded.
    pub fn check_path_write(&self, path: &str) -> Result<AbsPath, ToolError> {
        let real = self.real(path)?;
        self.stay_out(&real, Use::Change)?;
        let request = Request::Write(real.clone());
        self.check(&request, || {
            format!("write of \"{}\" is not within the granted authority", path.escape_debug())
        })?;
        Ok(real)
    }

    /// Opens a file or folder for reading: exactly what was checked, even if links change meanwhile.
    ///
    /// # Errors
    /// The denial, recorded; or the system's own reason.
    pub fn open_read(&self, path: &str) -> Result<File, ToolError> {
        self.open(path, How::Read)
    }

    /// Opens a file for writing: exactly what was checked, even if links change meanwhile.
    ///
    /// # Errors
    /// The denial, recorded; or the system's own reason.
    pub fn open_write(&self, path: &str, mode: WriteMode) -> Result<File, ToolError> {
        self.open(path, How::Write(mode))
    }

    /// The value of a variable that may be read; `None` if the session has none.
    ///
    /// # Errors
    /// The denial, recorded.
    pub fn env(&self, name: &str) -> Result<Option<&str>, ToolError> {
        let request = Request::ReadEnv(name.into());
        self.check(&request, || {
            format!("the variable {} is not within the granted authority", name.escape_debug())
        })?;
        Ok(self.shared.session.variable(name))
    }

    /// Whether anything was let through so far.
    pub(super) fn has_acted(&self) -> bool {
        self.acted.load(Ordering::Acquire)
    }

    pub(crate) const fn tool(&self) -> &Arc<str> {
        &self.tool
    }

    pub(super) const fn seq(&self) -> u64 {
        self.seq
    }

    /// Bailiwick's own folders.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Path> {
        self.shared.own.iter().map(PathBuf::as_path)
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.shared.journal
    }

    fn open(&self, path: &str, how: How) -> Result<File, ToolError> {
        for _ in 0..MAX_LOOKS {
            let real = self.real(path)?;
            self.stay_out(&real, if how == How::Read { Use::Read } else { Use::Change })?;
            let (request, verb) = match how {
                How::Read => (Request::Read(real.clone()), "read"),
                How::Write(WriteMode::CreateNew) => (Request::Create(real.clone()), "create"),
                How::Write(_) => (Request::Write(real.clone()), "write"),
            };
            self.check(&request, || {
                format!("{verb} of \"{}\" is not within the granted authority", path.escape_debug())
            })?;
            match open_exactly(&real, how) {
                Ok(file) => return Ok(file),
                Err(not_opened) => self.look_again(path, not_opened)?,
            }
        }
        Err(self.restless(path))
    }

    /// Why a checked path was not opened; nothing if it changed and has to be looked at again.
    fn look_again(&self, path: &str, not_opened: NotOpened) -> Result<(), ToolError> {
        match not_opened {
            NotOpened::Changed => Ok(()),
            NotOpened::NotAFile => {
                let message = format!("\"{}\" is neither a plain file nor a folder", path.escape_debug());
                Err(self.deny(Denial::new(DenialCode::PathNotAFile, message)))
            }
            NotOpened::Io(error) => {
                Err(ToolError::Other(format!("cannot open `{}`: {error}", path.escape_debug())))
            }
        }
    }

    /// The denial of a path that kept changing.
    fn restless(&self, path: &str) -> ToolError {
        let message = format!("\"{}\" led elsewhere each time it was opened", path.escape_debug());
        self.deny(Denial::new(DenialCode::PathChanged, message))
    }

    fn real(&self, path: &str) -> Result<AbsPath, ToolError> {
        let found = absolute(path, self.shared.session.surroundings()).and_then(|path| real(&path));
        found.map_err(|why| {
            let message = format!("path \"{}\" cannot be judged: {why}", path.escape_debug());
            self.deny(Denial::new(DenialCode::PathUnreadable, message))
        })
    }

    /// Asks the authority, records the answer, and lets nothing through that could not be recorded.
    fn check(&self, request: &Request, message: impl Fn() -> String) -> Result<(), ToolError> {
        self.still_granted()?;
        if !self.authority.allows(request) {
            let denial = Denial::of(&self.authority.explain(request), message());
            return Err(self.deny(match granted(&self.authority, request) {
                Some(granted) => denial.granted(granted),
                None => denial,
            }));
        }
        self.record(request.to_string())
    }

    /// Whether the grant was revoked or the call cancelled meanwhile.
    pub(crate) fn still_granted(&self) -> Result<(), ToolError> {
        self.still_wanted()?;
        if self.shared.generation.load(Ordering::Acquire) == self.minted_in {
            return Ok(());
        }
        Err(self.deny(Denial::new(DenialCode::Revoked, "the grant was revoked while the tool ran")))
    }

    /// Records what was let through.
    fn record(&self, what: String) -> Result<(), ToolError> {
        let event = self.event(Kind::CapabilityGranted, Decision::Allow).with_capability(what);
        match self.shared.journal.append(event) {
            Ok(_) => {
                self.acted.store(true, Ordering::Release);
                Ok(())
            }
            Err(fault) => {
                let message = format!("the check cannot be recorded: {fault}");
                Err(Denial::new(DenialCode::RecordRefused, message).into())
            }
        }
    }

    /// Records a refusal.
    pub(crate) fn deny(&self, denial: Denial) -> ToolError {
        let event = self
            .event(Kind::CapabilityDenied, Decision::Deny)
            .with_code(denial.code().as_str())
            .with_reason(denial.for_record());
        let event = match denial.smallest_grant() {
            Some(grant) => event.with_capability(grant.to_owned()),
            None => event,
        };
        drop(self.shared.journal.append(event));
        ToolError::of(denial)
    }

    fn event(&self, kind: Kind, decision: Decision) -> Event {
        Event::new(kind).with_tool(&self.tool).with_decision(decision).with_parent(self.seq)
    }
}

/// What is granted on the axis of a request: a handful of lines, none where no list of them says it.
fn granted(authority: &Authority, request: &Request) -> Option<String> {
    let lines = authority.capabilities_on(request.axis())?;
    if lines.is_empty() {
        return Some("nothing".to_owned());
    }
    let mut shown: Vec<String> = lines.iter().take(MAX_SHOWN).map(ToString::to_string).collect();
    if lines.len() > MAX_SHOWN {
        shown.push(format!("and {} more", lines.len() - MAX_SHOWN));
    }
    Some(shown.join(", "))
}

fn unreadable(what: &str, text: &str) -> Denial {
    let code = if what == "host" { DenialCode::NetNotGranted } else { DenialCode::ExecNotGranted };
    Denial::new(code, format!("{what} \"{}\" is not within the granted authority", text.escape_debug()))
}
