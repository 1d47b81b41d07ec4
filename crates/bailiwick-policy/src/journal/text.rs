//! Text in an event: a literal, a shared or an owned string, so that a hot path need not copy.
use std::fmt;
use std::sync::Arc;

/// A string that is cheap to put into an event.
#[derive(Clone)]
pub struct Text(Held);

#[derive(Clone)]
enum Held {
    Literal(&'static str),
    Shared(Arc<str>),
    Owned(Box<str>),
}

impl Text {
    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
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
