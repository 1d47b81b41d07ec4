//! Tools that come with the library.

mod shell;

pub use shell::Shell;
