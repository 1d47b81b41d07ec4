//! Everything that a program touches, told to a supervisor that learns what it needs. Nothing is decided by it.
//!
//! Each call is told before the kernel goes on with it, by the real path that it leads to now. What another thread changes
//! meanwhile is told wrongly: a manifest that was learned from it is then too small or names another path, and a person
//! reviews it.

use std::os::fd::AsFd as _;

use rustix::fs::{Access, FileType, OFlags, fstat};
use rustix::io::Errno;

use super::Desk;
use super::call::{Call, Named};
use super::spot::descriptor_of;
use super::tell::{Teller, address_of, port_of, writes};
use super::text::split;
use crate::accesses::AccessKind;
use crate::sys::notify::TrappedCall;

impl Desk<'_> {
    /// Tells what a call is about; what cannot be told is said to be lost, where the kernel may still go on with it.
    pub(super) fn observe(&self, teller: &Teller<'_>, asked: &TrappedCall, call: &Call) {
        match self.told(teller, asked, call) {
            // The caller has ended, or gave nothing that leads anywhere: the kernel finds that too.
            Ok(()) | Err(Errno::SRCH | Errno::FAULT | Errno::BADF | Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => teller.send(AccessKind::Lost, errno.raw_os_error(), b""),
        }
    }

    fn told(&self, teller: &Teller<'_>, asked: &TrappedCall, call: &Call) -> Result<(), Errno> {
        let found = |kind, what| self.tell_found(teller, asked, kind, what, false);
        let itself = |kind, what| self.tell_found(teller, asked, kind, what, true);
        match call {
            Call::Execute { what, .. } => {
                let file = self.target(asked, what, false);
                let may = file.and_then(|file| self.may(&file, Access::EXEC_OK));
                // By the name that was given: a link to a program is granted as a program of its own.
                let path = self.absolute(asked, what)?;
                teller.send(AccessKind::Execute, number(may), path.as_bytes());
                Ok(())
            }
            Call::Look { what } => found(AccessKind::Look, what),
            Call::Open { what, flags, .. } => self.tell_open(teller, asked, what, *flags),
            Call::Truncate { what, .. } | Call::ChangeMode { what, .. } => found(AccessKind::Write, what),
            Call::ChangeModeOf { descriptor, .. } => {
                let file = descriptor_of(asked.thread, *descriptor)?;
                teller.send(AccessKind::Write, 0, self.path_of(file.as_fd())?.as_bytes());
                Ok(())
            }
            Call::MakeDirectory { what, .. } | Call::MakeNode { what, .. } | Call::MakeLink { what, .. } => {
                self.tell_new(teller, asked, what)
            }
            Call::Link { from, to, .. } => {
                itself(AccessKind::Read, from)?;
                self.tell_new(teller, asked, to)
            }
            Call::Rename { from, to, .. } => {
                self.tell_entry(teller, asked, AccessKind::Remove, from)?;
                self.tell_entry(teller, asked, AccessKind::Make, to)
            }
            Call::Remove { what, .. } => self.tell_entry(teller, asked, AccessKind::Remove, what),
            Call::Listen { descriptor } => port_of(asked, *descriptor).map(|port| {
                if let Some(port) = port {
                    teller.send(AccessKind::Listen, 0, &port.to_ne_bytes());
                }
            }),
            Call::Connect(to) => {
                let (bytes, length) = address_of(asked, to.address, to.length)?;
                teller.send(AccessKind::Connect, 0, bytes.get(..length).unwrap_or_default());
                Ok(())
            }
            Call::Socket => {
                teller.send(AccessKind::Socket, Errno::PERM.raw_os_error(), b"");
                Ok(())
            }
            Call::Namespace | Call::Bind(_) | Call::Umask => Ok(()),
        }
    }

    fn tell_open(
        &self,
        teller: &Teller<'_>,
        asked: &TrappedCall,
        what: &Named,
        flags: OFlags,
    ) -> Result<(), Errno> {
        let no_follow = flags.contains(OFlags::NOFOLLOW);
        let writes = writes(flags);
        let file = match self.target(asked, what, no_follow) {
            Ok(file) => file,
            Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {
                return self.tell_entry(teller, asked, AccessKind::Make, what);
            }
            Err(errno) => {
                let kind = if writes { AccessKind::Write } else { AccessKind::Read };
                return self.tell_absent(teller, asked, kind, what, errno);
            }
        };
        let real = self.path_of(file.as_fd())?;
        if flags.contains(OFlags::CREATE | OFlags::EXCL) {
            teller.send(AccessKind::Look, 0, real.as_bytes());
            return Ok(());
        }
        let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
        let is_unnamed = flags.contains(OFlags::TMPFILE);
        if is_unnamed {
            teller.send(AccessKind::Make, 0, real.as_bytes());
            return Ok(());
        }
        if writes {
            teller.send(AccessKind::Write, number(self.may(&file, Access::WRITE_OK)), real.as_bytes());
        }
        let reads = match (flags.contains(OFlags::PATH), kind) {
            (true, _) => AccessKind::Look,
            (false, FileType::Directory) => AccessKind::List,
            (false, _) => AccessKind::Read,
        };
        if !flags.contains(OFlags::WRONLY) {
            teller.send(reads, 0, real.as_bytes());
        }
        Ok(())
    }

    /// Tells of something by where its path leads.
    fn tell_found(
        &self,
        teller: &Teller<'_>,
        asked: &TrappedCall,
        kind: AccessKind,
        what: &Named,
        no_follow: bool,
    ) -> Result<(), Errno> {
        match self.target(asked, what, no_follow) {
            Ok(file) => {
                let may = if kind == AccessKind::Write { self.may(&file, Access::WRITE_OK) } else { Ok(()) };
                teller.send(kind, number(may), self.path_of(file.as_fd())?.as_bytes());
                Ok(())
            }
            Err(errno) => self.tell_absent(teller, asked, kind, what, errno),
        }
    }

    /// Tells of an entry that is to be made; of one that is there already, the kernel only says so.
    fn tell_new(&self, teller: &Teller<'_>, asked: &TrappedCall, what: &Named) -> Result<(), Errno> {
        if self.target(asked, what, true).is_ok() {
            return self.tell_found(teller, asked, AccessKind::Look, what, true);
        }
        self.tell_entry(teller, asked, AccessKind::Make, what)
    }

    /// Tells of an entry of a directory, which may not be there.
    fn tell_entry(
        &self,
        teller: &Teller<'_>,
        asked: &TrappedCall,
        kind: AccessKind,
        what: &Named,
    ) -> Result<(), Errno> {
        let path = what.path.as_bytes();
        let name = split(path).map_or(&b""[..], |split| split.name);
        match self.directory_of(asked, what) {
            Ok(directory) => {
                let mut real = self.path_of(directory.as_fd())?;
                real.push(b"/")?;
                real.push(name)?;
                teller.send(kind, number(self.may(&directory, Access::WRITE_OK)), real.as_bytes());
                Ok(())
            }
            Err(errno) => self.tell_absent(teller, asked, kind, what, errno),
        }
    }

    /// Tells of what is not there, by the path that was given.
    fn tell_absent(
        &self,
        teller: &Teller<'_>,
        asked: &TrappedCall,
        kind: AccessKind,
        what: &Named,
        errno: Errno,
    ) -> Result<(), Errno> {
        teller.send(kind, errno.raw_os_error(), self.absolute(asked, what)?.as_bytes());
        Ok(())
    }
}

/// The error of something that will fail, or none.
fn number(outcome: Result<(), Errno>) -> i32 {
    outcome.map_or_else(Errno::raw_os_error, |()| 0)
}
