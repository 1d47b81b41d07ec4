//! Text in an event: a literal, a shared or an owned string, so that a hot path need not copy.
use std::fmt;
use std::sync::Arc;

/// A string that is cheap to put into an event.
#[derive(Clone)]
pub struct Text(Held);

/// Texts up to here are copied into the event: sharing one would pass its count between the threads.
const SHORT: usize = 22;

#[derive(Clone)]
enum Held {
    Short([u8; SHORT], u8),
    Literal(&'static str),
    Shared(Arc<str>),
    Owned(Box<str>),
}

impl Text {
    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Held::Short(bytes, length) => {
                let held = bytes.get(..usize::from(*length)).unwrap_or_default();
                std::str::from_utf8(held).unwrap_or_default()
            }
            Held::Literal(text) => text,
            Held::Shared(text) => text,
            Held::Owned(text) => text,
        }
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Self(Held::Literal(text))
    }
}

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Self {
        Self(Held::Shared(text))
    }
}

impl From<&Arc<str>> for Text {
    fn from(text: &Arc<str>) -> Self {
        let mut bytes = [0; SHORT];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(room), Ok(length)) => {
                room.copy_from_slice(text.as_bytes());
                Self(Held::Short(bytes, length))
            }
            _ => Self(Held::Shared(Arc::clone(text))),
        }
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Held::Owned(text.into_boxed_str()))
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_names_are_the_same_text() {
        for name in ["", "shell", "é".repeat(11).as_str(), "x".repeat(22).as_str(), "x".repeat(23).as_str()]
        {
            let shared: Arc<str> = name.into();
            assert_eq!(Text::from(&shared).as_str(), name);
        }
    }
}
