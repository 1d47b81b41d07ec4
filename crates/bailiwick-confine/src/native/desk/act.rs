//! Doing what a caller asked for, in its place, where its name allows it.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, StatVfsMountFlags, chmodat, fchmod, fstat,
    fstatvfs, ftruncate, linkat, mkdirat, mknodat, openat, openat2, readlinkat_raw, renameat_with, statat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::path::DecInt;

use super::call::{Call, Named};
use super::spot::{Judged, Spot, descriptor_of, is_empty, kind_at, path_now};
use super::text::{Text, lies_in};
use super::{Desk, Identity, Pending, Turn, Waiting};
use crate::native::guarded::PRIVATE;
use crate::sys::notify::{self, TrappedCall};

/// As many links as the kernel follows in one path.
const LINKS: usize = 40;

/// What a caller's open flags may be; others are ignored by `openat` and refused by `openat2`.
const OPEN_FLAGS: OFlags = OFlags::ACCMODE
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::TRUNC)
    .union(OFlags::APPEND)
    .union(OFlags::NONBLOCK)
    .union(OFlags::DSYNC)
    .union(OFlags::SYNC)
    .union(OFlags::DIRECT)
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NOATIME)
    .union(OFlags::TMPFILE);

/// The flags of an open here: it must not wait, nor take a terminal.
pub(super) fn passed_on(flags: OFlags) -> OFlags {
    (flags & OPEN_FLAGS) | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}

/// An opened file for its caller, with the flags that it wanted.
pub(super) fn given(file: OwnedFd, flags: OFlags) -> Turn {
    if !flags.contains(OFlags::NONBLOCK) {
        let plain = rustix::fs::fcntl_getfl(&file).map(|now| now - OFlags::NONBLOCK);
        if let Err(errno) = plain.and_then(|plain| rustix::fs::fcntl_setfl(&file, plain)) {
            return Turn::Answer(Err(errno));
        }
    }
    Turn::Descriptor { file, close_on_exec: flags.contains(OFlags::CLOEXEC) }
}

const REFUSED: Turn = Turn::Answer(Err(Errno::ACCESS));

impl Desk<'_> {
    pub(super) fn act(&mut self, asked: &TrappedCall, call: Call) -> Result<Turn, Turn> {
        match call {
            Call::Open { flags, .. } if flags.contains(OFlags::PATH) => Ok(Turn::Proceed),
            Call::Open { what, flags, mode } if flags.contains(OFlags::TMPFILE) => {
                self.open_unnamed(asked, &what, flags, mode)
            }
            Call::Open { what, flags, mode } => self.open_file(asked, what, flags, mode),
            Call::MakeDirectory { what, mode } => self.make_directory(asked, &what, mode),
            Call::MakeNode { what, mode, device } => self.make(asked, &what, |desk, spot| {
                let kind = FileType::from_raw_mode(mode);
                let kind = if kind == FileType::Unknown { FileType::RegularFile } else { kind };
                if kind == FileType::Socket && !lies_in(spot.real.as_bytes(), PRIVATE) {
                    return Err(Errno::ACCESS); // Landlock adds up what is allowed in directories around it
                }
                desk.with_mask(asked, || {
                    mknodat(&spot.parent, spot.name.as_c()?, kind, Mode::from_raw_mode(mode), device)
                })
            }),
            Call::MakeLink { what, text } => self.make(asked, &what, |desk, spot| {
                if desk.judge(spot) == Judged::OnTheWay {
                    return Err(Errno::ACCESS);
                }
                symlinkat(text.as_c()?, &spot.parent, spot.name.as_c()?)
            }),
            Call::Link { from, to, flags } => self.link(asked, &from, &to, flags),
            Call::Rename { from, to, flags } => self.rename(asked, &from, &to, flags),
            Call::Remove { what, flags } => self.remove(asked, &what, flags),
            Call::Truncate { what, length } => self.truncate(asked, what, length),
            Call::ChangeMode { what, mode, flags } => self.change_mode(asked, what, mode, flags),
            Call::ChangeModeOf { descriptor, mode } => self.change_mode_of(asked, descriptor, mode),
            Call::Umask
            | Call::Socket
            | Call::Namespace
            | Call::Connect(_)
            | Call::Bind(_)
            | Call::Execute { .. }
            | Call::Listen { .. }
            | Call::Look { .. } => Ok(REFUSED),
        }
    }

    /// What was read belongs to the caller only if it still waits.
    pub(super) fn ensure_waiting(&self, asked: &TrappedCall) -> Result<(), Errno> {
        if notify::still_waits(self.listener.as_fd(), asked.id) { Ok(()) } else { Err(Errno::ACCESS) }
    }

    /// Runs a call that makes something, with the mask of the caller.
    pub(super) fn with_mask<T>(
        &self,
        asked: &TrappedCall,
        make: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        if !self.masked {
            return make(); // no program has set one: the caller's is this process' own
        }
        let before = rustix::process::umask(self.mask_of(asked.thread)?);
        let made = make();
        rustix::process::umask(before);
        made
    }

    fn mask_of(&self, thread: u32) -> Result<Mode, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let own = openat(&self.proc, DecInt::new(thread), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let status = openat(&own, c"status", flags, Mode::empty())?;
        let mut bytes = [0; 256];
        let count = rustix::io::read(&status, &mut bytes)?;
        let text = bytes.get(..count).unwrap_or_default();
        // A newline in the name of the program, the line before, is escaped by the kernel.
        let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Umask:\t"));
        let octal = line.and_then(|line| str::from_utf8(line).ok());
        let mask = octal.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok()).ok_or(Errno::ACCESS)?;
        Ok(Mode::from_raw_mode(mask))
    }

    /// Makes an entry that is no file to be opened.
    fn make(
        &mut self,
        asked: &TrappedCall,
        what: &Named,
        make: impl FnOnce(&Self, &Spot<'_>) -> Result<(), Errno>,
    ) -> Result<Turn, Turn> {
        let spot = self.spot_or_turn(asked, what)?;
        if spot.slash {
            return Ok(Turn::Proceed); // an error, which the kernel knows
        }
        if self.judge(&spot) == Judged::Refused || self.completes_repository(&spot) {
            return Ok(REFUSED);
        }
        self.ensure_waiting(asked)?;
        let made = make(self, &spot);
        Ok(Turn::Answer(made.and_then(|()| self.keep_made(&spot, AtFlags::empty()))))
    }

    /// Another sandbox may have given the directory a protected name since it was judged: then what was made goes again.
    /// The other one looks whether a directory that it moved there is still empty, so one of the two notices.
    fn keep_made(&self, spot: &Spot<'_>, flags: AtFlags) -> Result<(), Errno> {
        if self.is_still_free(spot) {
            return Ok(());
        }
        unlinkat(&spot.parent, spot.name.as_c()?, flags)?;
        Err(Errno::ACCESS)
    }

    /// Whether an entry is free in the directory that it was judged in, whatever that is called now.
    fn is_still_free(&self, spot: &Spot<'_>) -> bool {
        if path_now(spot).is_ok_and(|now| now.as_bytes() == spot.inside.as_bytes()) {
            return true;
        }
        let again = self.spot_from(spot.parent.as_fd(), spot.name.as_bytes());
        again.is_some_and(|again| self.judge(&again) != Judged::Refused)
    }

    fn make_directory(&mut self, asked: &TrappedCall, what: &Named, mode: u32) -> Result<Turn, Turn> {
        let spot = self.spot_or_turn(asked, what)?;
        let fresh = self.is_fresh_repository(&spot);
        let refused = self.weigh(spot.real.as_bytes()) == Judged::Refused && !fresh;
        if refused || self.completes_repository(&spot) {
            if kind_at(&spot).is_some() {
                return Ok(Errno::EXIST.into()); // nothing is made, so there is nothing to tell
            }
            self.judge(&spot);
            return Ok(REFUSED);
        }
        self.ensure_waiting(asked)?;
        let name = spot.name.as_c()?;
        self.with_mask(asked, || mkdirat(&spot.parent, name, Mode::from_raw_mode(mode)))?;
        self.keep_made(&spot, AtFlags::REMOVEDIR)?;
        if fresh {
            self.remember(Identity::from_stat(&statat(&spot.parent, name, AtFlags::SYMLINK_NOFOLLOW)?));
        }
        Ok(Turn::Answer(Ok(())))
    }

    /// Whether a new directory is a repository of the program's own: not at the top of a writable tree and in no other
    /// work tree, whose `git status` would enter it.
    fn is_fresh_repository(&self, spot: &Spot<'_>) -> bool {
        if spot.name.as_bytes() != b".git" {
            return false;
        }
        let Ok(directory) = spot.tree.real(spot.inside.as_bytes()) else { return false };
        !self.guarded.is_home(directory.as_bytes())
            && !self.guarded.is_closed(spot.real.as_bytes())
            && !self.is_in_work_tree(spot.tree, directory.as_bytes())
            && self.fresh.iter().any(Option::is_none)
    }

    fn remember(&mut self, made: Identity) {
        if let Some(room) = self.fresh.iter_mut().find(|room| room.is_none()) {
            *room = Some(made);
        }
    }

    fn remove(&mut self, asked: &TrappedCall, what: &Named, flags: AtFlags) -> Result<Turn, Turn> {
        let spot = self.spot_or_turn(asked, what)?;
        if self.judge(&spot) == Judged::Refused {
            return Ok(REFUSED);
        }
        if spot.slash && !flags.contains(AtFlags::REMOVEDIR) {
            return Ok(Turn::Answer(Err(Errno::NOTDIR)));
        }
        self.ensure_waiting(asked)?;
        let name = spot.name.as_c()?;
        let directory = flags.contains(AtFlags::REMOVEDIR);
        let gone =
            directory.then(|| statat(&spot.parent, name, AtFlags::SYMLINK_NOFOLLOW)).and_then(Result::ok);
        let removed = unlinkat(&spot.parent, name, flags);
        if let (Ok(()), Some(gone)) = (removed, gone) {
            self.forget(Identity::from_stat(&gone));
        }
        Ok(Turn::Answer(removed))
    }

    /// A repository that is removed is no longer the program's own: its number may become another's.
    fn forget(&mut self, gone: Identity) {
        for room in self.fresh.iter_mut().filter(|room| **room == Some(gone)) {
            *room = None;
        }
    }

    fn rename(&self, asked: &TrappedCall, from: &Named, to: &Named, flags: u32) -> Result<Turn, Turn> {
        let [old, new] = self.two_spots(asked, [from, to])?;
        let flags = RenameFlags::from_bits_retain(flags);
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        let kind = kind_at(&old);
        let other = exchange.then(|| kind_at(&new)); // what is moved the other way
        if self.refuses_move(&old, kind, &new) || other.is_some_and(|it| self.refuses_move(&new, it, &old)) {
            return Ok(REFUSED);
        }
        if self.enters_work_tree(&old, kind, &new)
            || other.is_some_and(|it| self.enters_work_tree(&new, it, &old))
        {
            return Ok(Turn::Answer(Err(Errno::XDEV))); // copied instead, every name is judged
        }
        if (old.slash || new.slash) && kind != Some(FileType::Directory) {
            return Ok(Turn::Answer(Err(Errno::NOTDIR)));
        }
        self.ensure_waiting(asked)?;
        let (old_name, new_name) = (old.name.as_c()?, new.name.as_c()?);
        if let Err(errno) = renameat_with(&old.parent, old_name, &new.parent, new_name, flags) {
            return Ok(Turn::Answer(Err(errno)));
        }
        if self.may_stay(&new) && (!exchange || self.may_stay(&old)) {
            return Ok(Turn::Answer(Ok(())));
        }
        // Another sandbox was in between: back, or aside where the old place is taken.
        let back = if exchange { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        if renameat_with(&new.parent, new_name, &old.parent, old_name, back).is_err() {
            let aside = DecInt::new(asked.id); // known to this process alone, so the name is free
            renameat_with(&new.parent, new_name, &old.parent, aside, RenameFlags::NOREPLACE)?;
        }
        Ok(REFUSED)
    }

    /// Whether what was moved to a place is allowed there still: its directory may have got another name meanwhile, and
    /// a directory that was empty may have been filled.
    fn may_stay(&self, spot: &Spot<'_>) -> bool {
        if !self.is_still_free(spot) {
            return false;
        }
        let on_the_way = self.judge(spot) == Judged::OnTheWay;
        !(on_the_way && kind_at(spot) == Some(FileType::Directory) && !is_empty(spot))
    }

    /// Whether what is at one place, and of this kind, must not come to another.
    fn refuses_move(&self, old: &Spot<'_>, kind: Option<FileType>, new: &Spot<'_>) -> bool {
        if self.judge(old) == Judged::Refused || self.guarded.leads_to_closed(old.real.as_bytes()) {
            return true;
        }
        let brings_names =
            || kind == Some(FileType::Symlink) || kind == Some(FileType::Directory) && !is_empty(old);
        match self.judge(new) {
            Judged::Refused => true,
            Judged::OnTheWay => brings_names(),
            Judged::Free => self.completes_repository(new),
        }
    }

    /// Whether a directory with something in it would come into a work tree that it is not in.
    fn enters_work_tree(&self, old: &Spot<'_>, kind: Option<FileType>, new: &Spot<'_>) -> bool {
        if kind != Some(FileType::Directory) || is_empty(old) {
            return false;
        }
        let around = |spot: &Spot<'_>| {
            let directory =
                spot.tree.real(spot.inside.as_bytes()).ok().filter(|it| !lies_in(it.as_bytes(), PRIVATE))?;
            let length = self.work_tree(spot.tree, directory.as_bytes())?;
            Text::from_bytes(directory.as_bytes().get(..length)?).ok()
        };
        let Some(new_tree) = around(new) else { return false };
        around(old).is_none_or(|old_tree| old_tree.as_bytes() != new_tree.as_bytes())
    }

    fn link(&self, asked: &TrappedCall, from: &Named, to: &Named, flags: AtFlags) -> Result<Turn, Turn> {
        let new = self.spot_or_turn(asked, to)?;
        if self.judge(&new) == Judged::Refused || new.slash || self.completes_repository(&new) {
            return Ok(REFUSED);
        }
        let path = from.path.as_bytes();
        let own = match own_descriptor(path) {
            _ if path.is_empty() && flags.contains(AtFlags::EMPTY_PATH) => Some(from.at),
            own if flags.contains(AtFlags::SYMLINK_FOLLOW) => own,
            _ => None,
        };
        if let Some(own) = own {
            return self.link_open_file(asked, own, &new);
        }
        let old = self.spot_or_turn(asked, from)?;
        let follows = flags.contains(AtFlags::SYMLINK_FOLLOW) && kind_at(&old) == Some(FileType::Symlink);
        if self.judge(&old) == Judged::Refused || old.slash || follows {
            return Ok(REFUSED);
        }
        self.ensure_waiting(asked)?;
        let (old_name, new_name) = (old.name.as_c()?, new.name.as_c()?);
        let linked = linkat(&old.parent, old_name, &new.parent, new_name, AtFlags::empty());
        Ok(Turn::Answer(linked.and_then(|()| self.keep_made(&new, AtFlags::empty()))))
    }

    /// Gives a file that a caller has open a name.
    fn link_open_file(&self, asked: &TrappedCall, number: i32, new: &Spot<'_>) -> Result<Turn, Turn> {
        let file = descriptor_of(asked.thread, number)?;
        let path = self.path_of(file.as_fd())?;
        let is_closed = self.guarded.tree_around(path.as_bytes()).is_none_or(|tree| {
            let real = tree.real(path.as_bytes());
            real.is_ok_and(|real| self.judge_path(real.as_bytes()) == Judged::Refused)
        });
        if is_closed {
            return Ok(REFUSED);
        }
        self.ensure_waiting(asked)?;
        let name = new.name.as_c()?;
        let linked = linkat(&self.own, DecInt::from_fd(&file), &new.parent, name, AtFlags::SYMLINK_FOLLOW);
        Ok(Turn::Answer(linked.and_then(|()| self.keep_made(new, AtFlags::empty()))))
    }

    /// A file without a name, in a directory.
    fn open_unnamed(
        &self,
        asked: &TrappedCall,
        what: &Named,
        flags: OFlags,
        mode: u32,
    ) -> Result<Turn, Turn> {
        let mut below = Named { at: what.at, path: Text::from_bytes(what.path.as_bytes())? };
        below.path.push(b"/x")?; // an entry of that directory
        let spot = self.spot_or_turn(asked, &below)?;
        self.ensure_waiting(asked)?;
        let opened = self.with_mask(asked, || {
            openat(&spot.parent, c".", passed_on(flags), Mode::from_raw_mode(mode & 0o777))
        });
        Ok(opened.map_or_else(|errno| Turn::Answer(Err(errno)), |file| given(file, flags)))
    }

    fn open_file(
        &self,
        asked: &TrappedCall,
        mut what: Named,
        flags: OFlags,
        mode: u32,
    ) -> Result<Turn, Turn> {
        let mut spot = match own_descriptor(what.path.as_bytes()) {
            Some(number) => return self.reopen(asked, number, flags),
            None => Some(self.spot_or_turn(asked, &what)?),
        };
        for _ in 0..LINKS {
            let Some(at) = spot else { return Ok(Turn::Proceed) };
            match self.open_at(asked, &at, flags, mode)? {
                Opened::Turn(turn) => return Ok(turn),
                Opened::Link(text) => what.path = text,
            }
            spot = match own_descriptor(what.path.as_bytes()) {
                Some(number) => return self.reopen(asked, number, flags),
                None => self.spot_from(at.parent.as_fd(), what.path.as_bytes()),
            };
        }
        Ok(Turn::Answer(Err(Errno::LOOP)))
    }

    fn open_at(&self, asked: &TrappedCall, at: &Spot<'_>, flags: OFlags, mode: u32) -> Result<Opened, Errno> {
        let name = at.name.as_c()?;
        if let Some(turn) = self.open_new(asked, at, flags, mode)? {
            return Ok(Opened::Turn(turn));
        }
        let reads_only = flags & OFlags::ACCMODE == OFlags::RDONLY && !flags.contains(OFlags::TRUNC);
        let exclusive = flags.contains(OFlags::CREATE | OFlags::EXCL);
        let found = kind_at(at);
        if found == Some(FileType::Symlink) && !exclusive && !flags.contains(OFlags::NOFOLLOW) && !at.slash {
            let mut text = Text::new();
            text.fill(|room| readlinkat_raw(&at.parent, name, room))?;
            return Ok(Opened::Link(text));
        }
        if at.slash || (reads_only && found.is_some()) {
            return Ok(Opened::Turn(Turn::Proceed)); // nothing is made or changed, or it is an error
        }
        if self.judge(at) == Judged::Refused || (found.is_none() && self.completes_repository(at)) {
            return Ok(Opened::Turn(REFUSED));
        }
        let fifo = if found == Some(FileType::Fifo) {
            let fifo =
                openat(&at.parent, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
            if is_read_only(&fifo) {
                return Ok(Opened::Turn(REFUSED)); // the mount does not hold it
            }
            Some(fifo)
        } else {
            None
        };
        self.ensure_waiting(asked)?;
        let (flags_here, wanted) = (passed_on(flags), Mode::from_raw_mode(mode & 0o7777));
        let wanted = if flags.contains(OFlags::CREATE) { wanted } else { Mode::empty() };
        let opened = self
            .with_mask(asked, || openat2(&at.parent, name, flags_here, wanted, ResolveFlags::NO_SYMLINKS));
        Ok(Opened::Turn(match (opened, fifo) {
            (Ok(file), _) => match found {
                None => self.keep_made(at, AtFlags::empty()).map_or(REFUSED, |()| given(file, flags)),
                Some(_) => given(file, flags),
            },
            (Err(Errno::NXIO), Some(fifo)) if !flags.contains(OFlags::NONBLOCK) => {
                let what = Pending::Fifo { fifo, flags: flags - OFlags::CREATE };
                Turn::Wait(Waiting { id: asked.id, what })
            }
            (Err(errno), _) => Turn::Answer(Err(errno)),
        }))
    }

    /// Makes a file that is written to, without looking first whether there is one: most are new. `None` where that has
    /// to be looked at.
    ///
    /// What this very call has made is a plain file, so that its opening waits for nothing.
    fn open_new(
        &self,
        asked: &TrappedCall,
        at: &Spot<'_>,
        flags: OFlags,
        mode: u32,
    ) -> Result<Option<Turn>, Errno> {
        let reads_only = flags & OFlags::ACCMODE == OFlags::RDONLY;
        let is_odd = !flags.contains(OFlags::CREATE) || flags.contains(OFlags::DIRECTORY) || at.slash;
        if is_odd
            || reads_only
            || self.weigh(at.real.as_bytes()) == Judged::Refused
            || self.completes_repository(at)
        {
            return Ok(None);
        }
        self.ensure_waiting(asked)?;
        let here = ((passed_on(flags) - OFlags::NONBLOCK) | OFlags::EXCL) | (flags & OFlags::NONBLOCK);
        let (name, wanted) = (at.name.as_c()?, Mode::from_raw_mode(mode & 0o7777));
        let made =
            self.with_mask(asked, || openat2(&at.parent, name, here, wanted, ResolveFlags::NO_SYMLINKS));
        Ok(match made {
            Ok(file) => {
                let close_on_exec = flags.contains(OFlags::CLOEXEC);
                let given = Turn::Descriptor { file, close_on_exec };
                Some(self.keep_made(at, AtFlags::empty()).map_or(REFUSED, |()| given))
            }
            Err(Errno::EXIST) if !flags.contains(OFlags::EXCL) => None,
            Err(errno) => Some(Turn::Answer(Err(errno))),
        })
    }

    /// Opens a file anew that a caller names by its own descriptor.
    fn reopen(&self, asked: &TrappedCall, number: i32, flags: OFlags) -> Result<Turn, Turn> {
        let Ok(file) = descriptor_of(asked.thread, number) else { return Ok(Turn::Proceed) };
        let is_file = FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile;
        let path = self.path_of(file.as_fd())?;
        let tree = self.guarded.tree_around(path.as_bytes()).filter(|_| is_file);
        let Some(tree) = tree else { return Ok(Turn::Proceed) };
        if self.judge_path(tree.real(path.as_bytes())?.as_bytes()) == Judged::Refused {
            return Ok(REFUSED);
        }
        self.ensure_waiting(asked)?;
        let flags_here = passed_on(flags - OFlags::CREATE - OFlags::EXCL - OFlags::NOFOLLOW);
        let opened = openat(&self.own, DecInt::from_fd(&file), flags_here, Mode::empty());
        Ok(opened.map_or_else(|errno| Turn::Answer(Err(errno)), |file| given(file, flags)))
    }

    fn truncate(&self, asked: &TrappedCall, what: Named, length: u64) -> Result<Turn, Turn> {
        let opened = self.open_file(asked, what, OFlags::WRONLY, 0)?;
        Ok(match opened {
            Turn::Descriptor { file, .. } => Turn::Answer(ftruncate(&file, length)),
            Turn::Wait(_) => Turn::Answer(Err(Errno::INVAL)),
            Turn::Answer(_) | Turn::Proceed | Turn::Passed => opened,
        })
    }

    /// Landlock does not hold modes, so the kernel never goes on with these calls.
    fn change_mode(&self, asked: &TrappedCall, what: Named, mode: u32, flags: AtFlags) -> Result<Turn, Turn> {
        if let Some(number) = own_descriptor(what.path.as_bytes()) {
            return self.change_mode_of(asked, number, mode);
        }
        if what.path.as_bytes().is_empty() && flags.contains(AtFlags::EMPTY_PATH) {
            return self.change_mode_of(asked, what.at, mode);
        }
        let target = self.target(asked, &what, flags.contains(AtFlags::SYMLINK_NOFOLLOW))?;
        let stat = fstat(&target)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            return Ok(Turn::Answer(Err(Errno::OPNOTSUPP)));
        }
        self.change_mode_at(asked, &target, mode)
    }

    fn change_mode_of(&self, asked: &TrappedCall, descriptor: i32, mode: u32) -> Result<Turn, Turn> {
        let file = descriptor_of(asked.thread, descriptor)?;
        if rustix::fs::fcntl_getfl(&file)?.contains(OFlags::PATH) {
            return Ok(Turn::Answer(Err(Errno::BADF)));
        }
        if self.refuses_mode(&file)? {
            return Ok(REFUSED);
        }
        self.ensure_waiting(asked)?;
        Ok(Turn::Answer(fchmod(&file, Mode::from_raw_mode(mode & 0o7777))))
    }

    fn change_mode_at(&self, asked: &TrappedCall, target: &OwnedFd, mode: u32) -> Result<Turn, Turn> {
        if self.refuses_mode(target)? {
            return Ok(REFUSED);
        }
        self.ensure_waiting(asked)?;
        let number = DecInt::from_fd(target);
        Ok(Turn::Answer(chmodat(&self.own, number, Mode::from_raw_mode(mode & 0o7777), AtFlags::empty())))
    }

    /// Whether the mode of an open file stays as it is: its name is closed, or only making files is granted there.
    fn refuses_mode(&self, file: &OwnedFd) -> Result<bool, Errno> {
        let path = self.path_of(file.as_fd())?;
        let Some(tree) = self.guarded.tree_around(path.as_bytes()) else { return Ok(false) };
        let judged = self.judge_path(tree.real(path.as_bytes())?.as_bytes());
        Ok(judged == Judged::Refused || !tree.changeable)
    }

    /// What a path of a caller names, opened without being read.
    pub(super) fn target(
        &self,
        asked: &TrappedCall,
        what: &Named,
        no_follow: bool,
    ) -> Result<OwnedFd, Errno> {
        let follow = if no_follow { OFlags::NOFOLLOW } else { OFlags::empty() };
        let flags = OFlags::PATH | OFlags::CLOEXEC | follow;
        let base = self.base(asked, what.at, what.path.as_bytes()).ok_or(Errno::NOENT)?;
        let absolute = what.path.as_bytes().first() == Some(&b'/');
        let in_root = if absolute { ResolveFlags::IN_ROOT } else { ResolveFlags::empty() };
        let resolve = in_root | ResolveFlags::NO_MAGICLINKS;
        let base = base.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
        match openat2(base, what.path.as_c()?, flags, Mode::empty(), resolve) {
            Err(Errno::LOOP) => Err(Errno::ACCESS),
            opened => opened,
        }
    }
}

/// What came of an open in one directory.
#[expect(clippy::large_enum_variant, reason = "nothing may be allocated here")]
enum Opened {
    Turn(Turn),
    /// A link, and where it leads.
    Link(Text),
}

fn is_read_only(file: &OwnedFd) -> bool {
    fstatvfs(file).is_ok_and(|about| about.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// The number where a caller names a file by a descriptor of its own, such as `/proc/self/fd/1` or `/dev/stdout`.
fn own_descriptor(path: &[u8]) -> Option<i32> {
    match path {
        b"/dev/stdin" => return Some(0),
        b"/dev/stdout" => return Some(1),
        b"/dev/stderr" => return Some(2),
        _ => {}
    }
    let starts: [&[u8]; 3] = [b"/proc/self/fd/", b"/proc/thread-self/fd/", b"/dev/fd/"];
    let digits = starts.iter().find_map(|start| path.strip_prefix(*start))?;
    str::from_utf8(digits).ok()?.parse().ok()
}
