//! Texts and what several values agree on.

use super::{Args, Resolved};
use crate::knowledge::{Knowledge, Shape};

/// The deepest value that is carried into a function.
pub(super) const CARRIED: usize = 6;

/// What a method makes of a text.
pub(super) fn text_method(known: &Knowledge, text: String, whole: bool, method: &str) -> Resolved {
    match method {
        "format" => {
            let head = text.split('{').next().unwrap_or_default();
            Resolved::Text { whole: whole && head.len() == text.len(), text: head.to_owned() }
        }
        method if known.keeps(method) => Resolved::Text { text, whole },
        _ => Resolved::Unknown,
    }
}

/// A value that is small enough to be carried along.
pub(super) fn carried(resolved: Resolved) -> Resolved {
    if resolved.depth() > CARRIED { Resolved::Unknown } else { resolved }
}

/// The value that several values agree on: texts must be the same, else the first value that is none.
pub(super) fn agreed(resolved_values: impl Iterator<Item = Resolved>) -> Resolved {
    let mut first: Option<Resolved> = None;
    let mut texts_differ = false;
    for resolved in resolved_values {
        match (&first, resolved) {
            (_, Resolved::Unknown) => texts_differ = true,
            (None, resolved) => first = Some(resolved),
            (Some(Resolved::Text { .. }), resolved @ Resolved::Text { .. }) => {
                texts_differ |= first.as_ref() != Some(&resolved);
            }
            (Some(Resolved::Text { .. }), resolved) => first = Some(resolved),
            (Some(_), _) => {}
        }
    }
    match first {
        Some(Resolved::Text { .. }) if texts_differ => Resolved::Unknown,
        found => found.unwrap_or(Resolved::Unknown),
    }
}

/// The text that a value is, and whether that is all of it.
pub(crate) fn text_of(known: &Knowledge, resolved: &Resolved) -> Option<(String, bool)> {
    match resolved {
        Resolved::Text { text, whole } => Some((text.clone(), *whole)),
        Resolved::Object { path, args } if known.shape(path) == Some(Shape::Text) => joined_path(known, args),
        _ => None,
    }
}

pub(super) fn joined_path(known: &Knowledge, args: &Args) -> Option<(String, bool)> {
    let mut text = String::new();
    for (index, (_, resolved)) in args.iter().enumerate() {
        let Some((part, whole)) = text_of(known, resolved) else {
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
