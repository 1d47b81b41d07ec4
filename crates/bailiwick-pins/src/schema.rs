//! Whether a JSON Schema takes no more than another. What cannot be decided is said to take more.
//!
//! Words that only describe (`title`, `description`, `default`, `examples`) are left out here: they are text, and judged
//! as such.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Keywords that take nothing away and add nothing.
const WORDS: [&str; 9] = [
    "title",
    "description",
    "default",
    "examples",
    "$comment",
    "$schema",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// How often references are followed.
const MAX_DEPTH: usize = 24;

/// Why a schema may take more than it did.
type Looser = String;

/// The fields of a schema.
type Fields = Map<String, Value>;

/// Where a comparison has come to, and both documents, for references.
#[derive(Clone, Copy)]
struct Place<'a> {
    old: &'a Value,
    new: &'a Value,
    at: &'a str,
    depth: usize,
}

impl<'a> Place<'a> {
    const fn below(self, at: &'a str) -> Self {
        Self { at, depth: self.depth + 1, ..self }
    }
}

/// Whether everything that `new` takes was taken by `old`.
///
/// # Errors
/// What it takes that was not taken, or what cannot be decided.
pub(super) fn within(new: &Value, old: &Value) -> Result<(), Looser> {
    compare(new, old, Place { old, new, at: "", depth: 0 })
}

fn compare(new: &Value, old: &Value, place: Place<'_>) -> Result<(), Looser> {
    let Place { at, depth, .. } = place;
    if depth > MAX_DEPTH {
        return Err(undecided(at, "it nests too deeply"));
    }
    if plain(new) == plain(old) && !has_reference(new) {
        return Ok(());
    }
    let (new, old) = (resolved(new, place.new, at)?, resolved(old, place.old, at)?);
    let (new, old) = match (new, old) {
        (_, Value::Bool(true)) | (Value::Bool(false), _) => return Ok(()),
        (Value::Bool(true), old) if is_open(old) => return Ok(()),
        (Value::Object(new), Value::Object(old)) => (new, old),
        _ => return Err(undecided(at, "the schema has another form")),
    };
    if old.keys().all(|key| WORDS.contains(&key.as_str())) {
        return Ok(());
    }
    types(new, old, at)?;
    choices(new, old, at)?;
    bounds(new, old, at)?;
    properties(new, old, place)?;
    items(new, old, place)?;
    branches(new, old, place)?;
    others(new, old, at)
}

/// The schema without words that only describe.
fn plain(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| !WORDS.contains(&key.as_str()));
            // Names of properties are no keywords.
            let plain_field = |(key, value): (&String, &Value)| match (key.as_str(), value) {
                ("properties" | "$defs" | "definitions" | "patternProperties", Value::Object(named)) => {
                    (key.clone(), named.iter().map(|(name, schema)| (name.clone(), plain(schema))).collect())
                }
                ("enum" | "const" | "required", value) => (key.clone(), value.clone()),
                (_, value) => (key.clone(), plain(value)),
            };
            Value::Object(kept.map(plain_field).collect())
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.contains_key("$ref") || fields.values().any(has_reference),
        Value::Array(items) => items.iter().any(has_reference),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The schema behind references into the same document.
fn resolved<'a>(schema: &'a Value, root: &'a Value, at: &str) -> Result<&'a Value, Looser> {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return Ok(schema) };
        let pointer =
            reference.strip_prefix('#').ok_or_else(|| undecided(at, "it refers to another document"))?;
        schema = root.pointer(pointer).ok_or_else(|| undecided(at, "it refers to nothing"))?;
    }
    Err(undecided(at, "its references do not end"))
}

fn is_open(schema: &Value) -> bool {
    schema.as_object().is_some_and(|fields| fields.keys().all(|key| WORDS.contains(&key.as_str())))
}

fn type_names(schema: &Fields) -> Option<BTreeSet<&str>> {
    match schema.get("type")? {
        Value::String(name) => Some([name.as_str()].into()),
        Value::Array(names) => Some(names.iter().filter_map(Value::as_str).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn types(new: &Fields, old: &Fields, at: &str) -> Result<(), Looser> {
    let Some(old_types) = type_names(old) else {
        return if old.contains_key("type") { Err(undecided(at, "its type cannot be read")) } else { Ok(()) };
    };
    let Some(new_types) = type_names(new) else {
        let listed = new.get("enum").and_then(Value::as_array).is_some_and(|all| {
            all.iter().all(|value| {
                old_types.contains(type_of(value)) || (value.is_i64() && old_types.contains("integer"))
            })
        });
        let told_by_branches = new.contains_key("anyOf") && old.contains_key("anyOf");
        return if listed || told_by_branches { Ok(()) } else { Err(looser(at, "takes values of any type")) };
    };
    let taken =
        |name: &&str| old_types.contains(*name) || (*name == "integer" && old_types.contains("number"));
    match new_types.iter().find(|name| !taken(name)) {
        None => Ok(()),
        Some(name) => Err(looser(at, &format!("now takes `{name}`"))),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn listed(schema: &Fields) -> Option<Vec<&Value>> {
    let one = schema.get("const").map(|value| vec![value]);
    one.or_else(|| schema.get("enum").and_then(Value::as_array).map(|all| all.iter().collect()))
}

fn choices(new: &Fields, old: &Fields, at: &str) -> Result<(), Looser> {
    match (listed(old), listed(new)) {
        (None, _) => Ok(()),
        (Some(_), None) => Err(looser(at, "takes more than the listed values")),
        (Some(old), Some(new)) => match new.iter().find(|value| !old.contains(value)) {
            None => Ok(()),
            Some(value) => Err(looser(at, &format!("now takes the value {value}"))),
        },
    }
}

fn bounds(new: &Fields, old: &Fields, at: &str) -> Result<(), Looser> {
    const AT_LEAST: [&str; 5] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];
    const AT_MOST: [&str; 5] = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];
    let number = |schema: &Fields, key: &str| schema.get(key).and_then(Value::as_f64);
    for (keys, is_least) in [(AT_LEAST, true), (AT_MOST, false)] {
        for key in keys.into_iter().filter(|key| old.contains_key(*key)) {
            let holds = match (number(new, key), number(old, key)) {
                (Some(new), Some(old)) if is_least => new >= old,
                (Some(new), Some(old)) => new <= old,
                _ => false,
            };
            if !holds {
                return Err(looser(at, &format!("`{key}` is looser")));
            }
        }
    }
    let held = |key: &str| old.get(key).is_none_or(|value| new.get(key) == Some(value));
    match ["pattern", "format", "multipleOf", "uniqueItems", "contentEncoding", "contentMediaType"]
        .into_iter()
        .find(|key| !held(key))
    {
        None => Ok(()),
        Some(key) => Err(looser(at, &format!("`{key}` is another one"))),
    }
}

fn properties(new: &Fields, old: &Fields, place: Place<'_>) -> Result<(), Looser> {
    let Place { at, .. } = place;
    let empty = Map::new();
    let named = |schema: &'_ Fields| schema.get("properties").and_then(Value::as_object).cloned();
    let (before, after) = (named(old).unwrap_or_default(), named(new).unwrap_or(empty));
    for (name, schema) in &after {
        let named = format!("{at}/{name}");
        match before.get(name) {
            Some(known) => compare(schema, known, place.below(&named))?,
            None => return Err(looser(&named, "is a new parameter")),
        }
    }
    let required = |schema: &Fields| -> BTreeSet<String> {
        let all = schema.get("required").and_then(Value::as_array);
        all.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let now = required(new);
    // What is gone is not required either.
    if let Some(name) = required(old).iter().find(|name| !now.contains(*name) && after.contains_key(*name)) {
        return Err(looser(&format!("{at}/{name}"), "is not required any more"));
    }
    let rest = |schema: &'_ Fields| schema.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
    match (rest(new), rest(old)) {
        (new, old) if plain(&new) == plain(&old) => Ok(()),
        (_, Value::Bool(true)) | (Value::Bool(false), _) => Ok(()),
        (new, old) if old.is_object() && new.is_object() => {
            compare(&new, &old, place.below(&format!("{at}/*")))
        }
        _ => Err(looser(at, "takes parameters that are not named")),
    }
}

fn items(new: &Fields, old: &Fields, place: Place<'_>) -> Result<(), Looser> {
    let Place { at, .. } = place;
    match (new.get("items"), old.get("items")) {
        (_, None) => Ok(()),
        (None, Some(_)) => Err(looser(at, "takes items of any kind")),
        (Some(new), Some(old)) => compare(new, old, place.below(&format!("{at}/[]"))),
    }
}

/// Each alternative must be within one that was there.
fn branches(new: &Fields, old: &Fields, place: Place<'_>) -> Result<(), Looser> {
    let Place { at, .. } = place;
    let all = |schema: &'_ Fields| schema.get("anyOf").and_then(Value::as_array).cloned();
    let Some(before) = all(old) else { return Ok(()) };
    let Some(after) = all(new) else {
        let whole = Value::Object(new.clone());
        let fits = before.iter().any(|branch| compare(&whole, branch, place.below(at)).is_ok());
        return if fits { Ok(()) } else { Err(undecided(at, "its alternatives are gone")) };
    };
    let fits = |branch: &Value| before.iter().any(|known| compare(branch, known, place.below(at)).is_ok());
    if after.iter().all(fits) { Ok(()) } else { Err(looser(at, "has a new alternative")) }
}

/// Keywords that are not understood: the same as before, or undecided.
fn others(new: &Fields, old: &Fields, at: &str) -> Result<(), Looser> {
    const KNOWN: &str = "type enum const minimum exclusiveMinimum minLength minItems minProperties maximum \
                         exclusiveMaximum maxLength maxItems maxProperties pattern format multipleOf uniqueItems \
                         contentEncoding contentMediaType properties required additionalProperties items anyOf \
                         $defs definitions $ref";
    let is_other =
        |key: &&String| !KNOWN.split(' ').any(|known| known == *key) && !WORDS.contains(&key.as_str());
    let changed = |key: &&String| new.get(*key).map(plain) != old.get(*key).map(plain);
    match new.keys().chain(old.keys()).filter(is_other).find(changed) {
        None => Ok(()),
        Some(key) => Err(undecided(at, &format!("`{key}` has changed"))),
    }
}

fn looser(at: &str, what: &str) -> Looser {
    format!("the parameter `{}` {what}", if at.is_empty() { "/" } else { at })
}

fn undecided(at: &str, why: &str) -> Looser {
    format!("whether `{}` takes more cannot be decided: {why}", if at.is_empty() { "/" } else { at })
}
