//! Messages of a server by their envelope: the one place in which one is read.
//!
//! A message is an object, each of whose keys is given once and is what it seems. It says one thing: a request or a notification
//! has no result, and an answer has a result or an error. What a client could take for something else than the relay judged is
//! no message. No type here is derived: a derived one reads a list as the fields of an object.

use std::borrow::Cow;
use std::fmt;

use bailiwick_pins::fold::folded;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::message::RequestKey;

/// A message; its parts stay the bytes that they were.
#[derive(Debug, Default)]
pub(super) struct ServerMessage<'a> {
    pub(super) id: Option<&'a RawValue>,
    pub(super) method: Option<Cow<'a, str>>,
    pub(super) params: Option<&'a RawValue>,
    pub(super) result: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
}

/// The fields of an object in their order, each value as it was written.
pub(super) struct RawFields<'a>(pub(super) Vec<(String, &'a RawValue)>);

/// A text that is borrowed where it has no escapes.
struct BorrowedText<'a>(Cow<'a, str>);

impl<'a> ServerMessage<'a> {
    /// The message that a line is.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        serde_json::from_str(std::str::from_utf8(line).ok()?).ok()
    }

    /// The id of an answer; `None` if it is none.
    pub(super) fn answered_id(&self) -> Option<RequestKey> {
        self.id.filter(|_| self.method.is_none()).and_then(RequestKey::from_raw)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ServerMessage<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Envelope)
    }
}

struct Envelope;

impl<'de> Visitor<'de> for Envelope {
    type Value = ServerMessage<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<ServerMessage<'de>, A::Error> {
        let mut message = ServerMessage::default();
        let mut seen = 0_u8;
        while let Some(BorrowedText(key)) = entries.next_key()? {
            let bit = match &*key {
                "jsonrpc" => 1,
                "id" => 2,
                "method" => 4,
                "params" => 8,
                "result" => 16,
                "error" => 32,
                other if ENVELOPE.contains(&&*folded(other)) => {
                    return Err(A::Error::custom("a key passes for another one"));
                }
                _ => 0,
            };
            if seen & bit != 0 {
                return Err(A::Error::custom("a key is given twice"));
            }
            seen |= bit;
            match bit {
                2 => message.id = entries.next_value()?,
                4 => message.method = entries.next_value::<Option<BorrowedText<'_>>>()?.map(|text| text.0),
                8 => message.params = entries.next_value()?,
                16 => message.result = entries.next_value()?,
                32 => message.error = entries.next_value()?,
                _ => drop(entries.next_value::<IgnoredAny>()?),
            }
        }
        let answers = usize::from(message.result.is_some()) + usize::from(message.error.is_some());
        if answers > usize::from(message.method.is_none()) {
            return Err(A::Error::custom("a message says one thing"));
        }
        Ok(message)
    }
}

/// Keys of an envelope.
const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

impl<'de: 'a, 'a> Deserialize<'de> for BorrowedText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = BorrowedText<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<BorrowedText<'de>, E> {
                Ok(BorrowedText(text.into()))
            }

            fn visit_str<E>(self, text: &str) -> Result<BorrowedText<'de>, E> {
                Ok(BorrowedText(text.to_owned().into()))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = RawFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<RawFields<'de>, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = entries.next_entry::<String, &RawValue>()? {
                    all.push(entry);
                }
                Ok(RawFields(all))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl RawFields<'_> {
    /// A field as it was written, if it is there.
    pub(super) fn find(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.get())
    }

    /// A field as it was written, if it is there once.
    pub(super) fn only(&self, name: &str) -> Option<&str> {
        let mut named = self.0.iter().filter(|(own, _)| own == name);
        let first = named.next().map(|(_, value)| value.get());
        first.filter(|_| named.next().is_none())
    }

    /// Whether a key only looks like this one: programs that do not tell the case of keys take it for it.
    pub(super) fn has_imitation(&self, name: &str) -> bool {
        let plain = folded(name);
        self.0.iter().any(|(own, _)| own != name && folded(own) == plain)
    }

    /// Leaves out keys that only look like this one.
    pub(super) fn without_imitations(mut self, name: &str) -> Self {
        let plain = folded(name);
        self.0.retain(|(own, _)| own == name || folded(own) != plain);
        self
    }

    /// The object again, each value rewritten in its order.
    pub(super) fn rewrite(&self, mut value: impl FnMut(&str) -> Option<String>) -> String {
        let each = self.0.iter().map(|(name, own)| {
            let text = value(name).unwrap_or_else(|| own.get().to_owned());
            format!("{}:{text}", serde_json::Value::from(name.as_str()))
        });
        format!("{{{}}}", each.collect::<Vec<_>>().join(","))
    }

    /// The object again; `replaced` gives some fields another text.
    pub(super) fn write(&self, replaced: impl Fn(&str, &RawValue) -> Option<String>) -> String {
        let mut text = String::from("{");
        for (at, (name, value)) in self.0.iter().enumerate() {
            text += if at == 0 { "" } else { "," };
            text += &serde_json::Value::from(name.as_str()).to_string();
            text.push(':');
            text += &replaced(name, value).unwrap_or_else(|| value.get().to_owned());
        }
        text + "}"
    }
}
