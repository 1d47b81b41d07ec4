//! The targets that can be run here, run for real: a probe inside reports what it can do, and that must be what
//! the plan says, as far as the target claims to hold it; as root and as a plain user.

mod behaviour;
mod docker;
mod later;
mod lifetime;
mod programs;
mod sandbox;
mod single_file;
mod world;
