//! Fleets are for Linux, as everything that confines is.

use std::convert::Infallible;

use bailiwick_journal::format::{Digest, Point, SessionId};
use serde_json::Value;

use crate::args::log::Verify;

/// There are none.
pub(super) struct AnchoredHeads {
    pub(super) key: Option<Digest>,
    pub(super) heads: Vec<(SessionId, Point)>,
    never: Infallible,
}

pub(super) fn heads(_: &Verify) -> anyhow::Result<AnchoredHeads> {
    anyhow::bail!("`--fleet` works on Linux alone")
}

impl AnchoredHeads {
    pub(super) fn line(&self) -> String {
        match self.never {}
    }

    pub(super) fn document(&self) -> Value {
        match self.never {}
    }
}
