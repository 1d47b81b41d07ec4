//! How answers are shown: colours, escaping, JSON, and places in files.
//!
//! Text from files is escaped on its way in, so that no format can be steered by what a manifest says.

pub mod escape;
pub mod json;
pub mod snippet;
pub mod style;
