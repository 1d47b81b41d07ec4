//! `bailiwick log show`: one event whole, what caused it and what it caused.

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::render::json;
use serde_json::json;

use super::Scope;
use super::find::{self, Family};
use crate::args::log::EventName;
use crate::render::event;

pub(super) fn run(scope: &Scope, name: &EventName) -> Answer {
    let family = match find::family(scope, name) {
        Ok(family) => family,
        Err(refusal) => return refusal,
    };
    Answer::result(
        Exit::Fine,
        match scope.format {
            AnswerFormat::Text => text(scope, &family),
            AnswerFormat::Json => json::document(&json!({
                "format": "bailiwick.event/1",
                "event": event::json(&family.event),
                "parent": family.parent.as_ref().map(event::json),
                "children": family.children.iter().map(event::json).collect::<Vec<_>>(),
            })),
        },
    )
}

fn text(scope: &Scope, family: &Family) -> String {
    let mut text = event::text_whole(&family.event, scope.clock);
    let groups = [("caused by", family.parent.as_slice()), ("caused", &family.children)];
    for (title, records) in groups.into_iter().filter(|(_, records)| !records.is_empty()) {
        text += &format!("{title}\n");
        for record in records {
            text += &format!("  {}\n", event::text_line(record, scope.clock));
        }
    }
    text
}
