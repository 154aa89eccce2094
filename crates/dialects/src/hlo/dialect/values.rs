//! Values of attributes and of constants as attributes of MLIR, and back.

use crate::{
    hlo::{
        self, ArrayLiteral, ArrayShape, Computation, Literal, Module, Shape, Value, ValueKind,
        syntax::{parse_value, print_value},
    },
    mlir,
};
use melior::{Context, ir::Attribute};

/// The value of an attribute of an instruction, as an attribute of MLIR.
pub(super) fn attribute<'c>(
    context: &'c Context,
    module: &Module,
    computation: &Computation,
    value: &Value,
) -> Attribute<'c> {
    match value {
        Value::Integer(value) => mlir::i64_attr(context, *value),
        Value::Boolean(value) => mlir::bool_attr(context, *value),
        Value::Number(value) => mlir::f64_attr(context, *value),
        Value::Integers(list) => mlir::i64_array(context, list),
        Value::Computation(id) => mlir::symbol(context, &module[*id].name),
        Value::Computations(ids) => {
            let symbols = ids.iter().map(|&id| mlir::symbol(context, &module[id].name));
            mlir::array(context, &symbols.collect::<Vec<_>>())
        }
        Value::Instructions(ids) => {
            let names: Vec<_> = ids.iter().map(|&id| &computation[id].name).collect();
            mlir::strings(context, &names)
        }
        Value::Text(text) => mlir::string(context, text),
        value => mlir::string(context, &print_value(value)),
    }
}

/// The value of an attribute that refers to no computation or instruction.
///
/// # Errors
/// The reason, if it is not of the kind that the instruction has there.
pub(super) fn value(attribute: hlo::Attribute, given: Attribute) -> Result<Value, String> {
    let expected = |what: &str| format!("expected '{attribute}' to be {what}, but found {given}");
    match attribute.kind() {
        ValueKind::Integer => {
            mlir::integer_of(given).map(Value::Integer).ok_or_else(|| expected("an integer"))
        }
        ValueKind::Boolean => {
            mlir::bool_of(given).map(Value::Boolean).ok_or_else(|| expected("a truth value"))
        }
        ValueKind::Number => {
            let number = mlir::float_of(given).filter(|number| number.is_finite());
            number.map(Value::Number).ok_or_else(|| expected("a finite number"))
        }
        ValueKind::Integers => {
            mlir::integers_of(given).map(Value::Integers).ok_or_else(|| expected("integers"))
        }
        _ => match mlir::string_of(given) {
            Some(text) => parse_value(attribute, text)
                .map_err(|message| format!("'{attribute}' is \"{text}\": {message}")),
            None => Err(expected("a string")),
        },
    }
}

/// The beginning of the text of the attribute for an elided constant. MLIR makes the name of each
/// such resource unique, so that no two of them are equal.
const ELIDED: &str = "dense_resource<__elided__";

/// The value of a constant, of the types that `ty` gives its arrays.
///
/// # Errors
/// The reason, if MLIR cannot hold it.
pub(super) fn constant<'c>(
    context: &'c Context,
    literal: &Literal,
    shape: &Shape,
    ty: &mut impl FnMut(&Shape) -> melior::ir::Type<'c>,
) -> Result<Attribute<'c>, String> {
    match (literal, shape) {
        (Literal::Array(array), Shape::Array(dims)) => {
            if dims.num_bytes().is_none() {
                return Err(format!("{dims} has more elements than 64 bits count"));
            }
            mlir::dense_from_bytes(ty(shape), &array.bytes)
                .ok_or_else(|| format!("expected a constant of {dims} to have all its elements"))
        }
        (Literal::Elided, Shape::Array(_)) => {
            Ok(mlir::parse_attribute(context, &format!("{ELIDED}> : {}", ty(shape))))
        }
        (Literal::Tuple(values), Shape::Tuple(shapes)) if values.len() == shapes.len() => {
            let values = values.iter().zip(shapes);
            let values: Result<Vec<_>, _> =
                values.map(|(value, shape)| constant(context, value, shape, ty)).collect();
            Ok(mlir::array(context, &values?))
        }
        _ => Err("expected a constant to have the shape that it is given".to_owned()),
    }
}

/// The value of a constant of this shape. One value for all elements stays one.
///
/// # Errors
/// The reason, if it is none.
pub(super) fn literal(value: Attribute, shape: &Shape) -> Result<Literal, String> {
    match shape {
        Shape::Array(_) if is_elided(value) => Ok(Literal::Elided),
        Shape::Array(array) => Ok(Literal::Array(array_literal(value, array)?)),
        Shape::Tuple(shapes) => {
            let values = mlir::array_of(value);
            if values.len() != shapes.len() {
                return Err(format!("expected {} values, but found {value}", shapes.len()));
            }
            let values = values.into_iter().zip(shapes);
            values
                .map(|(value, shape)| literal(value, shape))
                .collect::<Result<_, _>>()
                .map(Literal::Tuple)
        }
        Shape::Token => Err("a token has no value".to_owned()),
    }
}

fn is_elided(value: Attribute) -> bool {
    mlir::is_dense_resource(value) && value.to_string().starts_with(ELIDED)
}

fn array_literal(value: Attribute, shape: &ArrayShape) -> Result<ArrayLiteral, String> {
    let element_type = shape.element_type;
    let count = shape.num_elements().and_then(|count| usize::try_from(count).ok());
    let Some((bytes, is_splat)) =
        count.and_then(|count| mlir::dense_bytes(value, count, element_type.bytes()))
    else {
        return Err(format!("expected dense elements of {shape}"));
    };
    // The only element of a scalar, or of an array of one, is no repetition.
    let is_splat = is_splat && count != Some(1);
    Ok(ArrayLiteral { element_type, bytes, is_splat })
}
