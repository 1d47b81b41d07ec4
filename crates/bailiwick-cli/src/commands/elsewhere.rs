//! The commands that confine, on a system that cannot.

use crate::answer::{Answer, Exit};
use crate::render::style;

/// Says that nothing was started, and what works here.
pub(super) fn refuse() -> Answer {
    let text = format!(
        "{}: this command needs Linux 5.13 or newer: only there can a program be confined\n  \
         check, diff, allows, compile, coverage, scan, guard and log work here\n",
        style::error("error")
    );
    Answer::refusal(Exit::Fault, text)
}
