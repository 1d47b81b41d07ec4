//! JSON as one reading only: a key that is given twice is refused, and so is more than a message ever needs.
//!
//! `serve` reads its clients' messages so; the relay adds keys of its own that it refuses.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The most values in one message: small ones weigh much more in memory than on the wire.
const MAX_VALUES: usize = 1 << 18;

/// The largest integer that every parser holds exactly.
const MAX_EXACT: u64 = 1 << 53;

/// A message, read.
#[derive(Debug)]
pub(crate) struct StrictValue {
    pub(crate) value: Value,
    /// Whether it has a number that parsers read differently: negative zero, or one beyond 2^53.
    pub(crate) has_odd_number: bool,
}

/// Says why a key at a depth is refused.
pub(crate) type KeyRule = fn(&str, usize) -> Option<&'static str>;

/// Reads one message. How deep it nests is bounded by the parser.
pub(crate) fn read(text: &[u8]) -> serde_json::Result<Value> {
    Ok(read_with(text, |_, _| None)?.value)
}

/// Reads one message whose keys follow a rule.
pub(crate) fn read_with(text: &[u8], rule: KeyRule) -> serde_json::Result<StrictValue> {
    let (left, odd) = (Cell::new(MAX_VALUES), Cell::new(false));
    let mut parser = serde_json::Deserializer::from_slice(text);
    let value = Strict { left: &left, odd: &odd, depth: 0, rule }.deserialize(&mut parser)?;
    parser.end()?;
    Ok(StrictValue { value, has_odd_number: odd.get() })
}

/// Reads a value, every key once.
#[derive(Clone, Copy)]
struct Strict<'a> {
    left: &'a Cell<usize>,
    odd: &'a Cell<bool>,
    depth: usize,
    rule: KeyRule,
}

impl Strict<'_> {
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    fn note(self, is_odd: bool) {
        self.odd.set(self.odd.get() || is_odd);
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => return Err(D::Error::custom("the message has too many values")),
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
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
        self.note(value.unsigned_abs() > MAX_EXACT);
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        self.note(value > MAX_EXACT);
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let negative_zero = value == 0.0 && value.is_sign_negative();
        self.note(negative_zero || value.abs() > 9_007_199_254_740_992.0);
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
        while let Some(item) = items.next_element_seed(self.deeper())? {
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
            if let Some(why) = (self.rule)(&key, self.depth) {
                return Err(A::Error::custom(why));
            }
            let value = entries.next_value_seed(self.deeper())?;
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
    fn numbers_that_parsers_read_differently_are_noted_or_refused() {
        let odd = |text: &str| read_with(text.as_bytes(), |_, _| None).map(|read| read.has_odd_number);
        for text in ["1", "-1", "9007199254740992", "1.5", "1e3", "0.0"] {
            assert!(!odd(text).unwrap(), "{text}");
        }
        for text in ["-0", "-0.0", "9007199254740993", "-9007199254740993", "1e20", "100000000000000000000"] {
            assert!(odd(text).unwrap(), "{text}");
        }
        assert!(odd("1e400").is_err());
    }

    #[test]
    fn more_values_than_the_limit_are_refused() {
        let list = |count: usize| format!("[{}0]", "0,".repeat(count - 2));
        assert!(read(list(MAX_VALUES).as_bytes()).is_ok());
        assert!(read(list(MAX_VALUES + 1).as_bytes()).is_err());
    }
}
