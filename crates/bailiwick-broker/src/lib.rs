//! Secrets stay outside of the sandbox.
//!
//! The only crate that holds the value of a secret, and the only one that ends TLS for others. [`Source`] says where a value
//! comes from. [`BrokerProcess`] is the process that reads the sources and ends TLS, in [`serve_secrets`]; [`Brokering`] is what
//! the supervisor of one sandbox has of it: placeholders, and a way to hand connections over. [`BrokeredClient`] is the same for
//! requests of the supervisor's own.
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
mod attend;
mod authority;
mod body;
mod client;
mod connection;
mod find;
mod oauth;
mod placeholder;
mod plans;
mod process;
mod redact;
mod referee;
mod request;
mod session;
mod sigv4;
mod source;
mod trust;
mod upstream;
mod value;
mod websocket;
mod wire;

pub use attend::serve_secrets;
pub use client::{BrokeredClient, Dialled};
pub use oauth::OAuth;
pub use process::{BrokerError, BrokerProcess, Brokering, LoadSecret, ServiceNames, no_source};
pub use source::own_environment::environment_without;
pub use source::{NamedSource, SecretSource, Source, SourceError, SourceText};
pub use value::{HeldSecret, MAX_SECRET, SecretValue};
