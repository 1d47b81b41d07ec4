//! JSON as one reading only: a key that is given twice is refused, and so is more than a message ever needs.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The most values in one message: small ones weigh much more in memory than on the wire.
const MAX_VALUES: usize = 1 << 18;

/// Reads one message. How deep it nests is bounded by the parser.
pub(super) fn read(text: &[u8]) -> serde_json::Result<Value> {
    let left = Cell::new(MAX_VALUES);
    let mut parser = serde_json::Deserializer::from_slice(text);
    let value = Once { left: &left }.deserialize(&mut parser)?;
    parser.end()?;
    Ok(value)
}

/// Reads a value, every key once.
#[derive(Clone, Copy)]
struct Once<'a> {
    left: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Once<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => return Err(D::Error::custom("the message has too many values")),
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Once<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if all.contains_key(&key) {
                return Err(A::Error::custom("a key is given twice"));
            }
            let value = entries.next_value_seed(self)?;
            all.insert(key, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_given_once_at_every_depth() {
        assert!(read(br#"{"a":[{"b":1,"c":2}],"d":{"b":1.5,"c":null,"e":"x\u0000"}}"#).is_ok());
        assert!(read(br#"{"a":1,"a":1}"#).is_err());
        assert!(read(br#"{"a":[{"b":{"c":1,"\u0063":2}}]}"#).is_err());
        assert!(read(b"{} {}").is_err());
    }

    #[test]
    fn more_values_than_the_limit_are_refused() {
        let list = |count: usize| format!("[{}0]", "0,".repeat(count - 2));
        assert!(read(list(MAX_VALUES).as_bytes()).is_ok());
        assert!(read(list(MAX_VALUES + 1).as_bytes()).is_err());
    }
}
