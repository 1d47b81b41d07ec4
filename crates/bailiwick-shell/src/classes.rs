//! What a shell text does, in named classes: `reads(secret)`, `deletes(outside)`, `runs(downloaded)`, …
//!
//! Rules name these classes in `match` instead of repeating patterns of programs and paths. What is known of programs,
//! places and languages stands in the text files beside this one. Everything is judged by its text; nothing is opened here: shell
//! scripts that earlier calls of the session wrote are given as texts.
//!
//! Residual: places that are in no table, programs that are in none and are spoken to in ways of their own, and what scripts do
//! that the text does not hold.

pub mod code;
mod effects;
mod fetched;
mod files;
mod general;
mod places;
mod sql;
mod table;
mod variables;

pub use effects::{Consequences, EarlierFiles, Effect, consequences, consequences_of_files, effects};
pub use places::Setting;
pub(crate) use table::{has_classes, is_known_program};
