//! What a shell text would run, and what that does: by its text alone.
//!
//! Total and bounded: any text gives an answer in bounded time, space and stack. Nothing is opened, started or asked
//! here. What cannot be read is said to be [opaque](Reading::opaque), and what is known of programs, places and
//! languages stands in text files beside the code.
//!
//! # First steps
//!
//! ```
//! use bailiwick_shell::classes::{Setting, effects};
//!
//! let reading = bailiwick_shell::read("cd /tmp && sudo rm -rf \"$HOME\"");
//! assert_eq!(reading.commands[1].words[0], "rm", "what `sudo` starts");
//! let does: Vec<String> = effects(&reading, &Setting::default()).iter().map(|one| one.class.to_string()).collect();
//! assert!(does.contains(&"deletes(vital)".to_owned()), "{does:?}");
//! ```
//!
//! # The way through
//!
//! | from | to | where |
//! |---|---|---|
//! | a text | a [`Reading`]: every simple command, normalised | [`read`] |
//! | words | a text that a shell takes for just them | [`quoted`] |
//! | a reading and where it runs | what it does, in named [classes](class::CLASSES) | [`classes`] |
//! | the arguments of a call | those that mean the same under other names; the files of a patch | [`aliases`], [`patch`] |
//! | a path | whether agents keep hooks there | [`hook_settings`] |
#![forbid(unsafe_code)]

pub mod aliases;
pub mod class;
pub mod classes;
pub mod glob;
pub mod hook_settings;
pub mod patch;
mod reader;

pub use reader::{Reading, Simple, is_runner, is_shell, joined, parse, quoted, read};
