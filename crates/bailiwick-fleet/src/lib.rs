//! The fleet's log and protocol, without files, sockets or clocks.
//!
//! A hub appends [`entry::Entry`] values to a log. The log is a Merkle tree ([`merkle`], RFC 9162) that is served as static files
//! ([`tile`], C2SP tlog-tiles). A [`checkpoint::Checkpoint`] is the signed head of the tree. A machine replays verified
//! entries into a [`state::FleetState`], which says what they mean now. [`protocol`] holds what machines and hubs send each other.
//!
//! | module | what |
//! |---|---|
//! | [`entry`] | log entries and their canonical bytes |
//! | [`merkle`] | tree hashes, inclusion and consistency proofs, the frontier of a growing tree |
//! | [`tile`] | paths and contents of the log's files |
//! | [`view`] | a tree that is seen through its tiles alone |
//! | [`note`] | signed notes: keys, signatures, key ids |
//! | [`checkpoint`] | heads of the tree: text, signatures, witnesses, and which head may follow which |
//! | [`state`] | what verified entries mean |
//! | [`protocol`] | requests and answers between machine and hub |
//! | [`admin`] | requests of people and hubs beside those |
//! | [`inventory`] | where machines differ |
//! | [`enrolment`] | `fleet.toml`: which fleet a machine belongs to |
//!
//! Fails closed when: an entry has an unknown version or is not in its canonical form, a signature or a proof does not verify, or
//! a file is longer or shorter than its place in the tree says.
//!
//! Residual: without witnesses a hub can show different trees to different machines. Each machine sees a consistent one.
//!
//! # Examples
//! ```
//! use bailiwick_fleet::checkpoint::{Checkpoint, Trust};
//! use bailiwick_fleet::merkle::{Frontier, leaf_hash};
//! use bailiwick_fleet::note::NoteSigner;
//!
//! let hub = NoteSigner::new("fleet.example/log", &[7; 32])?;
//! let mut tree = Frontier::default();
//! tree.push(leaf_hash(b"first entry"));
//! let head = Checkpoint { origin: "fleet.example/log".to_owned(), size: tree.size(), root: tree.root(), time_ms: 1_000 };
//! let signed = head.sign(&hub)?;
//! let trust = Trust::hub("fleet.example/log", vec![hub.verifier()]);
//! assert_eq!(trust.open(&signed)?.checkpoint, head);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod admin;
pub mod checkpoint;
pub mod enrolment;
pub mod entry;
mod hash;
pub mod inventory;
pub mod merkle;
pub mod note;
pub mod protocol;
pub mod state;
pub mod tile;
pub mod view;

pub use hash::Hash;
