//! What the tests of several crates share. Only ever a dev-dependency.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking and say why"
)]

pub mod child;
#[cfg(feature = "fleet")]
pub mod fleet;
#[cfg(feature = "journal")]
pub mod journal;
#[cfg(feature = "servers")]
pub mod names;
mod plain_user;
mod poorer;
pub mod postgres;
#[cfg(feature = "servers")]
pub mod servers;
mod skip;
#[cfg(feature = "servers")]
pub mod tls;
mod world;

pub use plain_user::{copy_program, reachable_program, run_again_as_plain_user};
pub use poorer::{on_a_poorer_host, sleepers};
pub use skip::skip;
pub use world::{World, is_in_world, world_mark};
