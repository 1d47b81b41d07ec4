//! Real programs in real sandboxes, as the user that runs the tests and, for root, as a plain user too.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod code;
mod ends;
mod files;
mod filesystems;
mod git;
mod home;
mod inside;
mod more;
mod plain_user;
mod programs;
mod protected;
mod sockets;
mod stdio;
mod submounts;
mod support;
mod walked;
