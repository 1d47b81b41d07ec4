//! What a running tool may see of the world.

mod closed;
mod files;
mod net;

pub(crate) use closed::Use;
pub(crate) use files::{Look, Only, OpenedPath, Stamp, child};

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bailiwick_journal::format::{Decision, Event, RecordKind};
use bailiwick_manifest::Risk;
use bailiwick_policy::authority::{Authority, Request, Spawn};
use bailiwick_policy::capability::Program;
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::net::{Host, NetRequest, Speak};
use bailiwick_policy::path::AbsPath;

use super::Shared;
use crate::offload::CancelFlag;
use crate::open::{How, NotOpened, WriteMode, open_exactly};
use crate::session::Session;
use crate::tool::{Listener, News, Stream, ToolError, ToolFault};
use bailiwick_guardrails::resolve::{absolute, real};
use bailiwick_journal::Journal;
use bailiwick_launch::Recorder;

/// How often a path that changes while it is opened is looked at again.
const MAX_LOOKS: usize = 16;

/// The authority of one running call: the meet of what was granted and what the tool needs, and no more.
///
/// It cannot be made, copied or kept by a tool; every question to it is recorded.
///
/// # Examples
/// ```
/// use bailiwick_guard::{ToolContext, ToolError};
///
/// /// What a tool does with its context: it asks, and each answer is recorded.
/// fn look(context: &ToolContext) -> Result<(), ToolError> {
///     context.check_exec("git")?;
///     context.check_net("api.example.com", 443)?;
///     let _notes = context.open_read("/notes/today.md")?;
///     let _language = context.env("LANG")?;
///     Ok(())
/// }
/// ```
pub struct ToolContext {
    shared: Arc<Shared>,
    caller: Caller,
    authority: Arc<Authority>,
    minted_in: u64,
    seq: u64,
    acted: AtomicBool,
    pub(super) listener: Option<Listener>,
    pub(super) cancelled: CancelFlag,
}

/// The tool that a context is for.
pub(crate) struct Caller {
    pub(crate) name: Arc<str>,
    pub(crate) risk: Option<Risk>,
    /// What it declares that it may touch, if it does.
    pub(crate) declares: Option<Arc<Authority>>,
}

impl ToolContext {
    pub(super) fn mint(
        shared: Arc<Shared>,
        caller: Caller,
        authority: Arc<Authority>,
        minted_in: u64,
        seq: u64,
    ) -> Self {
        let (acted, cancelled) = (AtomicBool::new(false), CancelFlag::default());
        Self { shared, caller, authority, minted_in, seq, acted, listener: None, cancelled }
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

    /// Tells the listener of this call, if there is one.
    pub fn tell(&self, stream: Stream, text: impl Into<String>) {
        if let Some(listener) = &self.listener {
            listener(News { stream, text: text.into() });
        }
    }

    /// Whether the call is still waited for. Tools that work long without a check ask this now and then.
    ///
    /// # Errors
    /// [`ToolFault::Cancelled`], to be handed on.
    pub fn still_wanted(&self) -> Result<(), ToolError> {
        if self.cancelled.is_set() { Err(ToolFault::Cancelled.into()) } else { Ok(()) }
    }

    /// May this program be started? A bare name, or an absolute path.
    ///
    /// # Errors
    /// The denial, recorded.
    pub fn check_exec(&self, program: &str) -> Result<(), ToolError> {
        let Ok(named) = Program::new(program) else { return Err(self.deny(unreadable("program", program))) };
        self.check(&Request::Spawn(Spawn::plain(named)), || {
            format!("exec of \"{program}\" is not within the granted authority")
        })
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
        self.check(&Request::Read(real.clone()), || {
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
        self.check(&Request::Write(real.clone()), || {
            format!("write of \"{}\" is not within the granted authority", path.escape_debug())
        })?;
        Ok(real)
    }

    /// Opens a file or directory for reading: exactly what was checked, even if links change meanwhile.
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
        if self.authority.brokered().iter().any(|(own, _)| own == name) {
            // Granting it would hand out the secret.
            let message = format!(
                "{} stands for a secret that only programs of the sandbox have a placeholder of; let such a program expand \
                 it, as `bash -c` does",
                name.escape_debug()
            );
            return Err(self.deny(Denial::new(DenialCode::EnvNotGranted, message)));
        }
        self.check(&Request::ReadEnv(name.into()), || {
            format!("the variable {} is not within the granted authority", name.escape_debug())
        })?;
        Ok(self.shared.session.variable(name))
    }

    /// Whether anything was let through so far.
    /// Notes that the call has begun to act where no check sees it, in a server for instance: from now on it costs what
    /// a call costs, whatever comes of it.
    pub fn mark_acted(&self) {
        self.acted.store(true, Ordering::Release);
    }

    pub(super) fn has_acted(&self) -> bool {
        self.acted.load(Ordering::Acquire)
    }

    pub(super) fn on_denied(&self) -> Option<super::OnDenied> {
        self.shared.on_denied.clone()
    }

    pub(crate) const fn tool(&self) -> &Arc<str> {
        &self.caller.name
    }

    /// Bailiwick's own directories.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Path> {
        self.shared.own.iter().map(PathBuf::as_path)
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.shared.journal
    }

    /// Records what is started for this call.
    pub(crate) fn recorder(&self) -> Recorder {
        Recorder::session(self.tool().to_string(), self.shared.journal.clone()).caused_by(self.seq)
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
                let message = format!("\"{}\" is neither a plain file nor a directory", path.escape_debug());
                Err(self.deny(Denial::new(DenialCode::PathNotAFile, message)))
            }
            NotOpened::Io(error) => {
                Err(ToolError::failed(format!("cannot open `{}`: {error}", path.escape_debug())))
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
    fn check(&self, request: &Request, message: impl FnOnce() -> String) -> Result<(), ToolError> {
        self.still_granted()?;
        if !self.authority.allows(request) {
            return Err(self.deny(Denial::not_granted(&self.authority, request.clone(), message())));
        }
        self.record(request.to_string(), self.declared(request))
    }

    /// Whether a request is within what the tool declares; `None` if it declares nothing.
    fn declared(&self, request: &Request) -> Option<bool> {
        self.caller.declares.as_ref().map(|declared| declared.allows(request))
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
    fn record(&self, what: String, declared: Option<bool>) -> Result<(), ToolError> {
        let event = self.event(RecordKind::CapabilityGranted, Decision::Allow).with_capability(what);
        let event = declared.into_iter().fold(event, Event::with_used_declared_capability);
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
            .event(RecordKind::CapabilityDenied, Decision::Deny)
            .with_code(denial.code().as_str())
            .with_reason(denial.for_record());
        let event = denial.smallest_lines().into_iter().fold(event, Event::with_capability);
        let declared = denial.request().and_then(|request| self.declared(request));
        let event = declared.into_iter().fold(event, Event::with_used_declared_capability);
        drop(self.shared.journal.append(event));
        denial.into()
    }

    /// The event of the call's end.
    pub(super) fn finished(&self) -> Event {
        let event = Event::new(RecordKind::ToolFinished).with_tool(&self.caller.name).with_parent(self.seq);
        self.caller.risk.into_iter().fold(event, |event, risk| event.with_risk(risk.as_str()))
    }

    fn event(&self, kind: RecordKind, decision: Decision) -> Event {
        let event =
            Event::new(kind).with_tool(&self.caller.name).with_decision(decision).with_parent(self.seq);
        self.caller.risk.into_iter().fold(event, |event, risk| event.with_risk(risk.as_str()))
    }
}

fn unreadable(what: &str, text: &str) -> Denial {
    let code = if what == "host" { DenialCode::NetNotGranted } else { DenialCode::ExecNotGranted };
    Denial::new(code, format!("{what} \"{}\" is not within the granted authority", text.escape_debug()))
}
