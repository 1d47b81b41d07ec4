//! Everything the child needs, made before the clone: after it nothing may be allocated.

use std::cell::RefCell;
use std::ffi::CString;
use std::os::fd::OwnedFd;

use bailiwick_layout::entries::LayoutEntry;
use rustix::process::Resource;

use super::guarded::Guarded;
use crate::command::Watch;
use crate::landlock::{Access, Ruleset};
use crate::stdio::Handed;
use crate::sys::clone::{Program, Stack};
use crate::sys::netns;

/// What the child is told.
pub(crate) struct Image {
    /// The lines of the user and group maps.
    pub(crate) maps: Maps,
    /// Whether some of it is seen through a layer.
    pub(crate) layered: bool,
    /// What the new root holds, outer before inner.
    pub(crate) entries: Vec<LayoutEntry>,
    /// How large everything written to the root's own memory may become, in bytes.
    pub(crate) scratch: CString,
    /// Whether processes may change things in their `/proc`.
    pub(crate) proc_writable: bool,
    /// What the network's sockets listen on, if there is a network.
    pub(crate) network: netns::Request,
    /// Limits of each process.
    pub(crate) limits: Vec<(Resource, u64)>,
    /// Rules of files, where the kernel has them.
    pub(crate) rules: Option<Ruleset>,
    /// Rules for what exists only inside.
    pub(crate) inner_rules: Vec<(CString, Access)>,
    /// The private directories that the supervisor looks at when everything has ended; at most two.
    pub(crate) private: Vec<CString>,
    /// The filter of system calls.
    pub(crate) filter: &'static [libc::sock_filter],
    /// What the first process decides call by call.
    pub(crate) desk: Option<DeskSetup>,
    /// Whether the supervisor has to know that everything is set up before it lets the program start.
    pub(crate) says_ready: bool,
    /// The program.
    pub(crate) program: Program,
    /// Where it starts.
    pub(crate) directory: CString,
    /// Its descriptors 0 to 2.
    pub(crate) stdio: Handed,
    /// What the program's starter runs on.
    pub(crate) stack: Stack,
    /// The sandbox's end of the line to the supervisor.
    pub(crate) control: OwnedFd,
    /// The number of the supervisor's end, which the child must not keep open: it learns of the supervisor's death by that.
    pub(crate) supervisors: u32,
}

/// What the first process decides.
pub(crate) struct DeskSetup {
    /// The program's second filter.
    pub(crate) filter: &'static [libc::sock_filter],
    /// The first process' own filter.
    pub(crate) own_filter: &'static [libc::sock_filter],
    /// The trees whose names are judged, with the net.
    pub(crate) guarded: Guarded,
    /// The line on which connects are passed on, if any are.
    pub(crate) supervisor: Option<OwnedFd>,
    /// The line on which the supervisor is told what was seen, if it wants to be.
    pub(crate) tells: Option<OwnedFd>,
    /// Of what it wants to be told.
    pub(crate) watch: Watch,
    /// What it was told, with room for all of it.
    pub(crate) told: RefCell<Vec<u64>>,
    /// Whether nothing is decided, so that the program may run without being asked about.
    pub(crate) only_tells: bool,
    /// The filter that refuses by itself what would have been told.
    pub(crate) strict: &'static [libc::sock_filter],
    /// Whether programs may have roots of their own.
    pub(crate) nested: bool,
    /// Whether sockets of the host are granted.
    pub(crate) host_sockets: bool,
    /// The private directories, if the program may have sockets there.
    pub(crate) private_sockets: Vec<CString>,
}

/// The one user and the one group that exist inside.
pub(crate) struct Maps {
    pub(crate) user: Vec<u8>,
    pub(crate) group: Vec<u8>,
}
