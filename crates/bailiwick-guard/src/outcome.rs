//! What came of a call: it ran, and this is its output; or policy refused it. A fault is neither: it is an error.
//!
//! Parts keep what came with them (annotations, `_meta`, fields of other vendors), so that a relay can hand them on.

use std::fmt;
use std::ops::Index;

use bailiwick_policy::denial::Denial;
use serde_json::{Map, Value};

use crate::tool::{ToolError, ToolFault};

/// What came of a call.
///
/// # Examples
/// ```
/// use bailiwick_guard::{Outcome, Output};
/// use serde_json::json;
///
/// let outcome = Outcome::Ran(Output::from(json!({ "words": 3 })));
/// match outcome {
///     Outcome::Ran(output) => assert_eq!(output["words"], 3),
///     Outcome::Refused(denial) => println!("{}: {denial}", denial.code().as_str()),
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The tool ran and answered; the answer can say that it failed.
    Ran(Output),
    /// Policy said no, before the tool ran or while it did.
    Refused(Denial),
}

impl Outcome {
    /// The output, or the denial as an error, for programs that stop at either.
    ///
    /// # Errors
    /// [`ToolError::Denied`] if it was refused.
    pub fn into_result(self) -> Result<Output, ToolError> {
        match self {
            Self::Ran(output) => Ok(output),
            Self::Refused(denial) => Err(denial.into()),
        }
    }

    /// The denial, if it was refused.
    #[must_use]
    pub const fn denial(&self) -> Option<&Denial> {
        match self {
            Self::Ran(_) => None,
            Self::Refused(denial) => Some(denial),
        }
    }

    /// Whether the tool ran and did not say that it failed.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Ran(Output { is_error: false, .. }))
    }

    /// Sorts what a tool answers: a denial is an outcome, a fault is an error.
    pub(crate) fn sorted(result: Result<Output, ToolError>) -> Result<Self, ToolFault> {
        match result {
            Ok(output) => Ok(Self::Ran(output)),
            Err(ToolError::Denied { denial, .. }) => Ok(Self::Refused(*denial)),
            Err(ToolError::Fault(fault)) => Err(fault),
        }
    }
}

/// What a tool answers.
///
/// # Examples
/// ```
/// use bailiwick_guard::{Content, Output, Part};
///
/// let mut output = Output::from(serde_json::json!({ "width": 2 }));
/// output.content.push(Part::text("two pixels"));
/// output.content.push(Content::Image { data: "iVBORw0KGgo=".into(), mime_type: "image/png".into() }.into());
/// assert_eq!(output["width"], 2);
/// assert_eq!(output.text(), "two pixels");
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Output {
    /// The answer for programs.
    pub structured: Option<Value>,
    /// The answer for people and models. Where it is empty, surfaces word the structured answer.
    pub content: Vec<Part>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// What else belongs to the answer as a whole: `_meta` of the protocol.
    pub meta: Map<String, Value>,
}

/// One part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it holds.
    pub content: Content,
    /// Everything that came with it: `annotations`, `_meta` and fields that only its author knows.
    pub extra: Map<String, Value>,
}

/// What one part of an answer holds. Bytes are in base64, as they travel.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// The bytes, in base64.
        data: String,
        /// Their media type.
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// The bytes, in base64.
        data: String,
        /// Their media type.
        mime_type: String,
    },
    /// Where something can be read; nothing of it is here.
    ResourceLink {
        /// Its address.
        uri: String,
        /// Its name.
        name: String,
    },
    /// Something that was read, with its address.
    Resource {
        /// Its address.
        uri: String,
        /// Its media type, if it is known.
        mime_type: Option<String>,
        /// What was read.
        body: ResourceBody,
    },
    /// A part of a type that is not known here: all of its fields are in [`Part::extra`].
    Unknown {
        /// The type that it says.
        kind: String,
    },
}

/// What was read of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes, in base64.
    Bytes(String),
}

impl Part {
    /// A part that is text and nothing else.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Content::Text(text.into()).into()
    }
}

impl From<Content> for Part {
    fn from(content: Content) -> Self {
        Self { content, extra: Map::new() }
    }
}

impl Output {
    /// The text of all parts; where there are none, the structured answer as JSON, and a string as it is.
    #[must_use]
    pub fn text(&self) -> String {
        if self.content.is_empty() {
            return match &self.structured {
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => String::new(),
            };
        }
        let texts = self.content.iter().filter_map(|part| {
            if let Content::Text(text) = &part.content { Some(text.as_str()) } else { None }
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The structured answer; where there is none, the text as a string.
    #[must_use]
    pub fn into_value(self) -> Value {
        let text = if self.structured.is_none() { self.text() } else { String::new() };
        self.structured.unwrap_or(Value::String(text))
    }
}

impl From<Value> for Output {
    fn from(structured: Value) -> Self {
        Self { structured: Some(structured), ..Self::default() }
    }
}

/// A field of the structured answer; `null` where there is none.
impl Index<&str> for Output {
    type Output = Value;

    fn index(&self, field: &str) -> &Value {
        self.structured.as_ref().and_then(|value| value.get(field)).unwrap_or(&Value::Null)
    }
}

impl PartialEq<Value> for Output {
    fn eq(&self, other: &Value) -> bool {
        self.structured.as_ref() == Some(other)
    }
}

/// The structured answer as JSON, or the text.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.structured {
            Some(value) => write!(f, "{value}"),
            None => f.write_str(&self.text()),
        }
    }
}
