//! Secrets stay outside of the sandbox.
//!
//! The only crate that holds the value of a secret, and the only one that ends TLS for others. [`Source`] says where a
//! value comes from; [`HeldSecret`] keeps it where no process that is cloned from this one has a copy; [`Brokering`] makes
//! placeholders and, once the sandbox was made, ends TLS for the hosts of the secrets and puts the values in.
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

mod answer;
mod authority;
mod body;
mod connection;
mod find;
mod placeholder;
mod redact;
mod request;
mod session;
mod source;
mod trust;
mod value;

pub use authority::CertificateError;
pub use redact::Redactor;
pub use session::{BrokerError, Brokering};
pub use source::{NamedSource, SecretSource, Source, SourceError, SourceText};
pub use value::{HeldSecret, MAX_SECRET, SecretValue};
