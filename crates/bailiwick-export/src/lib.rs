//! The journal for others: JSON lines, or logs, metrics and traces by OTLP over HTTP.
//!
//! An [`Exporter`] reads the sealed lines of a journal from where its [`CursorFile`] says, gives each batch to its [`Sink`], and
//! moves the cursor only when the sink has all of it. What is sent has ids made from the journal alone, so a batch that is
//! sent again after a crash is recognised: at least once, with stable ids.
//!
//! Invariants: the journal is the only buffer, and it is only read; nothing here is in the way of a call. The disk that is used is
//! the cursor, whose size is bounded by the number of sessions. Events beyond the bound of what may lie behind are counted, and
//! the count is exported. Nothing leaves that the journal does not hold: its redaction is the only one, and text stays text.
//!
//! Fails closed when: the cursor cannot be read or belongs to another process: nothing is sent then.
//!
//! Residual: whether lines are genuine is the question of `bailiwick log verify`. A session that retention removed whole before it
//! was read is not counted. An end that no seal follows, of a writer that was killed, is sent after its session was opened again.
#![forbid(unsafe_code)]

mod batch;
mod counts;
mod cursor;
mod deliver;
mod ids;
mod json_lines;
mod logs;
mod metrics;
mod reader;
mod settings;
mod spans;
mod value;

pub use batch::Batch;
pub use counts::Counts;
pub use cursor::{CursorError, CursorFile, CursorTextError};
pub use deliver::{Collector, CollectorUrlError, DeliverError};
pub use json_lines::{Lines, LinesTarget};
pub use reader::{ExportError, ExportOptions, Exporter, Sink, Step};
pub use settings::{OtlpSetting, otlp_setting};
