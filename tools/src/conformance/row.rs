//! The fields of a row, with an explanation if one is missing or has a wrong type.

use serde_json::{Map, Value};

/// What a case says, and what was found instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub(super) expected: String,
    pub(super) got: String,
}

impl Mismatch {
    pub(super) fn new(expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self { expected: expected.into(), got: got.into() }
    }
}

/// The JSON type of a value, with an article.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
    .to_string()
}

fn wrong(what: &str, value: &Value) -> Mismatch {
    Mismatch::new(what, describe(value))
}

pub(super) fn object(value: &Value) -> Result<&Map<String, Value>, Mismatch> {
    value.as_object().ok_or_else(|| wrong("an object", value))
}

pub(super) fn array(value: &Value) -> Result<&[Value], Mismatch> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| wrong("an array", value))
}

pub(super) fn string(value: &Value) -> Result<&str, Mismatch> {
    value.as_str().ok_or_else(|| wrong("a string", value))
}

pub(super) fn integer(value: &Value) -> Result<i64, Mismatch> {
    value.as_i64().ok_or_else(|| wrong("an integer of 64 bits", value))
}

/// The strings of an array.
pub(super) fn strings(value: &Value) -> Result<Vec<&str>, Mismatch> {
    array(value)?.iter().map(string).collect()
}

/// The two elements of an array.
pub(super) fn pair(value: &Value) -> Result<[&Value; 2], Mismatch> {
    match array(value)? {
        [first, second] => Ok([first, second]),
        other => Err(Mismatch::new("two elements", format!("{}", other.len()))),
    }
}

/// A field, read by one of the functions above.
pub(super) fn field<'r, T>(
    row: &'r Value,
    name: &str,
    read: impl FnOnce(&'r Value) -> Result<T, Mismatch>,
) -> Result<T, Mismatch> {
    match optional(row, name, read)? {
        Some(value) => Ok(value),
        None => Err(Mismatch::new(format!("field '{name}'"), "no such field")),
    }
}

/// A field that a row may lack.
pub(super) fn optional<'r, T>(
    row: &'r Value,
    name: &str,
    read: impl FnOnce(&'r Value) -> Result<T, Mismatch>,
) -> Result<Option<T>, Mismatch> {
    let Some(value) = row.get(name) else { return Ok(None) };
    let value = read(value).map_err(|error| {
        Mismatch::new(format!("{} in field '{name}'", error.expected), error.got)
    })?;
    Ok(Some(value))
}

/// Whether a field is there and true.
pub(super) fn flag(row: &Value, name: &str) -> Result<bool, Mismatch> {
    let read = |value: &Value| value.as_bool().ok_or_else(|| wrong("a truth value", value));
    Ok(optional(row, name, read)?.unwrap_or(false))
}

/// Refuses fields that carry an expectation which is not known here.
pub(super) fn known_fields(row: &Value, names: &[&str]) -> Result<(), Mismatch> {
    match object(row)?.keys().find(|key| !names.contains(&key.as_str())) {
        Some(key) => Err(Mismatch::new(
            format!("one of the fields {}", names.join(", ")),
            format!("'{key}'"),
        )),
        None => Ok(()),
    }
}
