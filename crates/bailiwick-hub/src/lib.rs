//! The write path of a fleet: the program `bailiwick-hub`.
//!
//! State is in PostgreSQL, or any cluster that speaks its protocol; a hub has none of its own, so any number run beside each other.
//!
//! | module | what |
//! |---|---|
//! | [`sequence`] | the log's head moves by a conditional update, in the transaction that writes the entries |
//! | [`publish`] | the log's files; signs a checkpoint only for what it has hashed itself |
//! | [`recover`] | puts the published log back after a restore |
//! | [`members`] | one-time tokens, certificates, roles |
//! | [`approvals`] | a call is answered once and taken once |
//! | [`budgets`] | leases: the sum of what may be spent never exceeds the budget |
//! | [`reports`] | inventory, and journal heads that are anchored in the log |
//! | [`listen`], [`service`] | TLS with client certificates, limits, routes |
//! | [`database`], [`schema`] | connections and migrations |
//!
//! Times that decide something are the database's. What is sent to another program is in `bailiwick-fleet`.
//!
//! Residual: who holds the directory of keys is the hub. Without witnesses, a hub can show different trees to different machines.
#![forbid(unsafe_code)]

pub mod approvals;
mod args;
mod audit;
pub mod budgets;
pub mod certificates;
mod console;
pub mod database;
pub mod effect;
pub mod hub;
pub mod id;
pub mod keys;
pub mod listen;
pub mod members;
pub mod metrics;
pub mod publish;
pub mod recover;
mod refusal;
pub mod reports;
mod run;
pub mod schema;
pub mod sequence;
pub mod service;
mod share;

pub use refusal::HubError;
pub use run::run_command;
