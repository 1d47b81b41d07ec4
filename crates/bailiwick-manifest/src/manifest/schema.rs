//! The JSON Schema of a manifest, for editors.

/// JSON Schema, draft 2020-12. It helps while typing; `bailiwick check` decides.
pub const SCHEMA: &str = include_str!("manifest.schema.json");
