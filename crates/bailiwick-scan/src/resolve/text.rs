//! Texts and what several values agree on.

use super::{Args, Thing};
use crate::knowledge::{Knowledge, Shape};

/// The deepest thing that is carried into a function.
pub(super) const CARRIED: usize = 6;

/// What a method makes of a text.
pub(super) fn text_method(known: &Knowledge, text: String, whole: bool, method: &str) -> Thing {
    match method {
        "format" => {
            let head = text.split('{').next().unwrap_or_default();
            Thing::Text { whole: whole && head.len() == text.len(), text: head.to_owned() }
        }
        method if known.keeps(method) => Thing::Text { text, whole },
        _ => Thing::Unknown,
    }
}

/// A thing that is small enough to be carried along.
pub(super) fn carried(thing: Thing) -> Thing {
    if thing.depth() > CARRIED { Thing::Unknown } else { thing }
}

/// The thing that several values agree on: texts must be the same, else the first thing that is none.
pub(super) fn agreed(things: impl Iterator<Item = Thing>) -> Thing {
    let mut first: Option<Thing> = None;
    let mut texts_differ = false;
    for thing in things {
        match (&first, thing) {
            (_, Thing::Unknown) => texts_differ = true,
            (None, thing) => first = Some(thing),
            (Some(Thing::Text { .. }), thing @ Thing::Text { .. }) => {
                texts_differ |= first.as_ref() != Some(&thing);
            }
            (Some(Thing::Text { .. }), thing) => first = Some(thing),
            (Some(_), _) => {}
        }
    }
    match first {
        Some(Thing::Text { .. }) if texts_differ => Thing::Unknown,
        found => found.unwrap_or(Thing::Unknown),
    }
}

/// The text that a thing is, and whether that is all of it.
pub(crate) fn text_of(known: &Knowledge, thing: &Thing) -> Option<(String, bool)> {
    match thing {
        Thing::Text { text, whole } => Some((text.clone(), *whole)),
        Thing::Object { path, args } if known.shape(path) == Some(Shape::Text) => joined_path(known, args),
        _ => None,
    }
}

pub(super) fn joined_path(known: &Knowledge, args: &Args) -> Option<(String, bool)> {
    let mut text = String::new();
    for (index, (_, thing)) in args.iter().enumerate() {
        let Some((part, whole)) = text_of(known, thing) else {
            return (index > 0 && !text.contains("://"))
                .then(|| (text.clone() + "/", false))
                .or_else(|| text.contains("://").then(|| (text.clone(), true)));
        };
        if part.starts_with('/') && index > 0 {
            text.clear();
        } else if index > 0 && !text.ends_with('/') {
            text.push('/');
        }
        text.push_str(&part);
        if !whole || text.contains("://") {
            return Some((text, whole));
        }
    }
    (!args.is_empty()).then_some((text, true))
}
