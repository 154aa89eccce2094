//! Tensors as nested lists of JSON, and back.

use crate::conformance::row::{Mismatch, array, describe};
use serde_json::{Value, json};
use tc_backends::runtime::{ElementType, Number, Tensor};

/// A tensor of a type and shape from nested lists; a number for a scalar.
pub(super) fn tensor(
    value: &Value,
    name: &str,
    element: ElementType,
    shape: &[usize],
) -> Result<Tensor, Mismatch> {
    let values = flatten(value, name, shape)?;
    let mut tensor = Tensor::zeros(element, shape)
        .map_err(|error| Mismatch::new(format!("a tensor '{name}'"), error.to_string()))?;
    for (bytes, value) in tensor.bytes_mut().chunks_exact_mut(element.size()).zip(values) {
        let number = number(value).filter(|number| {
            element.write(*number, bytes);
            element.is_float() || same(*number, element.read(bytes))
        });
        if number.is_none() {
            return Err(Mismatch::new(
                format!("numbers of type {element} in '{name}'"),
                value.to_string(),
            ));
        }
    }
    Ok(tensor)
}

/// The numbers of nested lists in row-major order.
fn flatten<'r>(value: &'r Value, name: &str, shape: &[usize]) -> Result<Vec<&'r Value>, Mismatch> {
    let mut values = vec![value];
    for (dim, extent) in shape.iter().enumerate() {
        let mut inner = Vec::new();
        for value in values {
            let elements = array(value)?;
            if elements.len() != *extent {
                return Err(Mismatch::new(
                    format!("{extent} elements in dimension {dim} of '{name}'"),
                    elements.len().to_string(),
                ));
            }
            inner.extend(elements);
        }
        values = inner;
    }
    match values.iter().find(|value| value.is_array()) {
        Some(value) => {
            Err(Mismatch::new(format!("{} dimensions in '{name}'", shape.len()), describe(value)))
        }
        None => Ok(values),
    }
}

/// The number that a JSON value is; of a truth value 0 or 1.
fn number(value: &Value) -> Option<Number> {
    if let Some(value) = value.as_bool() {
        return Some(Number::Unsigned(value.into()));
    }
    let signed = value.as_i64().map(Number::Signed);
    let unsigned = || value.as_u64().map(Number::Unsigned);
    signed.or_else(unsigned).or_else(|| value.as_f64().map(Number::Float))
}

/// Whether two numbers are equal, whatever their types.
fn same(a: Number, b: Number) -> bool {
    let wide = |number| match number {
        Number::Signed(value) => Some(i128::from(value)),
        Number::Unsigned(value) => Some(i128::from(value)),
        Number::Float(_) => None,
    };
    match (wide(a), wide(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a.to_f64() == b.to_f64(),
    }
}

/// Checks that an output has exactly the values of nested lists. `how` says how it was
/// computed.
pub(super) fn check_exact(
    expected: &Value,
    name: &str,
    how: &str,
    shape: &[usize],
    found: impl Iterator<Item = Number>,
) -> Result<(), Mismatch> {
    let values = flatten(expected, name, shape).map_err(|_| {
        Mismatch::new(
            format!("as many values of '{name}' as the case has ({how})"),
            format!("extents {shape:?}"),
        )
    })?;
    for (position, (value, found)) in values.into_iter().zip(found).enumerate() {
        if !number(value).is_some_and(|value| same(value, found)) {
            let index = index_text(position, shape);
            return Err(Mismatch::new(
                format!("{name}{index} = {value} ({how})"),
                found.to_string(),
            ));
        }
    }
    Ok(())
}

/// `[1, 0]`; nothing for a scalar.
fn index_text(position: usize, shape: &[usize]) -> String {
    let mut rest = position;
    let mut index = Vec::new();
    for extent in shape.iter().rev() {
        index.push((rest % (*extent).max(1)).to_string());
        rest /= (*extent).max(1);
    }
    index.reverse();
    if index.is_empty() { String::new() } else { format!("[{}]", index.join(", ")) }
}

/// A tensor as nested lists.
pub(super) fn nested(shape: &[usize], numbers: impl Iterator<Item = Number>) -> Value {
    let leaf = |number| match number {
        Number::Signed(value) => json!(value),
        Number::Unsigned(value) => json!(value),
        // JSON has no infinities and no nan; and a whole number needs no fraction.
        Number::Float(value) if !value.is_finite() => json!(value.to_string()),
        Number::Float(value) if value as i64 as f64 == value => json!(value as i64),
        Number::Float(value) => json!(value),
    };
    let mut values: Vec<Value> = numbers.map(leaf).collect();
    for extent in shape.iter().rev() {
        let mut rest = values.into_iter().peekable();
        values = Vec::new();
        while rest.peek().is_some() {
            values.push(rest.by_ref().take((*extent).max(1)).collect());
        }
    }
    values.pop().unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_back() {
        let value = json!([[1, 2.5, -3], [4, 5, 6]]);
        let found = tensor(&value, "A", ElementType::F32, &[2, 3]).unwrap();
        assert_eq!(found.to_values::<f32>().unwrap(), [1.0, 2.5, -3.0, 4.0, 5.0, 6.0]);
        assert_eq!(nested(&[2, 3], found.numbers()), value);
        let scalar = tensor(&json!(7), "c", ElementType::I8, &[]).unwrap();
        assert_eq!(nested(&[], scalar.numbers()), json!(7));
        let bools = tensor(&json!([true, 0]), "b", ElementType::Bool, &[2]).unwrap();
        assert_eq!(nested(&[2], bools.numbers()), json!([1, 0]));
    }

    #[test]
    fn wrong_lists_are_explained() {
        let error = |value: Value, element, shape: &[usize]| {
            let error = tensor(&value, "A", element, shape).unwrap_err();
            format!("{} / {}", error.expected, error.got)
        };
        use ElementType::{F32, I8, U8};
        assert_eq!(error(json!([1]), F32, &[2]), "2 elements in dimension 0 of 'A' / 1");
        assert_eq!(
            error(json!([[1], [1, 2]]), F32, &[2, 1]),
            "1 elements in dimension 1 of 'A' / 2"
        );
        assert_eq!(error(json!(1), F32, &[2]), "an array / a number");
        assert_eq!(error(json!([[1]]), F32, &[1]), "1 dimensions in 'A' / an array");
        assert_eq!(error(json!(["x"]), F32, &[1]), "numbers of type float32 in 'A' / \"x\"");
        assert_eq!(error(json!(128), I8, &[]), "numbers of type int8 in 'A' / 128");
        assert_eq!(error(json!(-1), U8, &[]), "numbers of type uint8 in 'A' / -1");
        assert_eq!(error(json!(1.5), U8, &[]), "numbers of type uint8 in 'A' / 1.5");
    }

    #[test]
    fn comparison_is_exact() {
        let check = |value: Value, found: Number| {
            check_exact(
                &json!([[0, value]]),
                "O",
                "here",
                &[1, 2],
                [Number::Signed(0), found].into_iter(),
            )
            .map_err(|error| format!("{} / {}", error.expected, error.got))
        };
        assert_eq!(check(json!(3), Number::Float(3.0)), Ok(()));
        assert_eq!(check(json!(3.0), Number::Signed(3)), Ok(()));
        assert_eq!(check(json!(true), Number::Unsigned(1)), Ok(()));
        assert_eq!(check(json!(u64::MAX), Number::Unsigned(u64::MAX)), Ok(()));
        assert_eq!(
            check(json!(9007199254740993u64), Number::Signed(9007199254740992)),
            Err("O[0, 1] = 9007199254740993 (here) / 9007199254740992".to_string())
        );
        assert_eq!(
            check(json!(3), Number::Float(f64::NAN)),
            Err("O[0, 1] = 3 (here) / NaN".to_string())
        );
    }
}
