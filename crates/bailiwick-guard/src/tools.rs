//! Tools that come with the library.
//!
//! Every one of them touches the world through its context only: what was checked is what is opened or dialled.

mod args;
mod fs_edit;
mod fs_list;
mod fs_read;
mod fs_search;
mod fs_write;
mod process;
mod shell;
mod walk;
#[cfg(feature = "fetch")]
mod web_fetch;

pub use fs_edit::FsEdit;
pub use fs_list::FsList;
pub use fs_read::FsRead;
pub use fs_search::FsSearch;
pub use fs_write::FsWrite;
pub use process::{ProcessTool, Sandbox, SandboxRun, process_tool};
pub use shell::{Shell, shell_plan};
#[cfg(feature = "fetch")]
pub use web_fetch::{ConfinedReader, WebFetch};

use crate::registry::RegistryBuilder;

/// Adds the tools for files: `fs_read`, `fs_write`, `fs_edit`, `fs_list`, `fs_search`.
#[must_use]
pub fn files(builder: RegistryBuilder) -> RegistryBuilder {
    builder.tool(FsRead).tool(FsWrite).tool(FsEdit).tool(FsList).tool(FsSearch)
}

/// Adds all tools but `web_fetch`: `shell` and those for files.
#[must_use]
pub fn local(builder: RegistryBuilder) -> RegistryBuilder {
    files(builder.tool(Shell))
}

/// Adds every tool of this module: `shell`, those for files and, with the feature `fetch`, `web_fetch`.
#[must_use]
pub fn all(builder: RegistryBuilder) -> RegistryBuilder {
    let builder = local(builder);
    #[cfg(feature = "fetch")]
    let builder = builder.tool(WebFetch::new());
    builder
}
