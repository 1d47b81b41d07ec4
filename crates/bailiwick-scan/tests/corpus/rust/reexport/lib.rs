//! A case of the corpus: lib.
mod client;
mod server;

pub use client::download as fetch_list;
