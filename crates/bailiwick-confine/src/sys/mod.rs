//! Everything that needs `unsafe`: system calls that no safe wrapper covers, each a short function with its argument.
//!
//! What the child calls between clone and exec must neither allocate nor take a lock: the caller may have had other
//! threads, and their locks were copied as they stood.

pub(crate) mod before_exec;
pub(crate) mod clone;
pub(crate) mod descriptors;
mod errno;
pub(crate) mod here;
pub(crate) mod landlock;
pub(crate) mod memory;
pub(crate) mod mount;
pub(crate) mod netns;
pub(crate) mod notify;
pub(crate) mod privileges;
pub(crate) mod probe;
pub(crate) mod seccomp;
pub(crate) mod signals;
