//! Secrets stay outside of the sandbox.
//!
//! The only crate that holds the value of a secret, and the only one that ends TLS for others. [`Source`] says where a
//! value comes from; [`HeldSecret`] keeps it where no process that is cloned from this one has a copy.
//!
//! # Examples
//!
//! ```
//! use bailiwick_broker::{NamedSource, SecretSource as _};
//!
//! let file = tempfile::NamedTempFile::new()?;
//! std::fs::write(file.path(), "correct horse battery\n")?;
//! let named: NamedSource = format!("TOKEN=file:{}", file.path().display()).parse()?;
//! let held = named.source.fetch()?;
//! assert_eq!(held.len(), 21, "the end of the line is not part of it");
//! assert_eq!(held.read()?.expose(), b"correct horse battery");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod authority;
mod find;
mod placeholder;
mod redact;
mod source;
mod trust;
mod value;

pub use source::{NamedSource, SecretSource, Source, SourceError, SourceText};
pub use value::{HeldSecret, MAX_SECRET, SecretValue};
