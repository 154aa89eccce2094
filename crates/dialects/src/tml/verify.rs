//! Verifiers of the `tml` dialect: the constraints that `tml.td` numbers.

use super::{Parameter, Program, dims, syntax::checked::round_up};
use crate::{
    mlir::{self, Op},
    report::Report,
};
use melior::ir::{BlockLike, Type, ValueLike};
use std::collections::{HashMap, HashSet};

/// Verifies an operation of the dialect.
///
/// # Errors
/// The first constraint that does not hold.
pub fn verify<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    match mlir::name(op) {
        Program::NAME => verify_program(op),
        "tml.return" => verify_return(op),
        "tml.smul" => verify_scalar(op, 0, 1),
        "tml.sdiv" => verify_scalar(op, 1, 0),
        "tml.product" => verify_product(op),
        "tml.contract" => verify_contract(op),
        "tml.transpose" => verify_transpose(op),
        _ => Ok(()),
    }
}

fn error<'c, T>(message: impl Into<String>) -> Result<T, Report<'c>> {
    Err(Report::error(message))
}

/// C1 to C4.
fn verify_program<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let program = Program::cast(op).expect("dispatched on the name");
    let [block] = mlir::blocks(op, 0)[..] else { return error("expects one block") };
    if !block.terminator().is_some_and(|it| mlir::is(mlir::op_ref(it), "tml.return")) {
        return error("expects its body to end in 'tml.return'");
    }
    let (arguments, results) = (program.arguments(), program.results());
    let (parameters, outputs) = (program.parameters(), program.outputs());
    for (what, parameters) in [("argument", &parameters), ("result", &outputs)] {
        let mut names = HashSet::new();
        for (number, parameter) in parameters.iter().enumerate() {
            if parameter.name.is_empty() {
                return error(format!("expects the attribute 'tml.name' on {what} {number}"));
            }
            if !names.insert(parameter.name) {
                return error(format!("has two {what}s named '{}'", parameter.name));
            }
        }
    }
    let places: HashMap<_, _> = outputs.iter().map(|it| it.name).zip(0..).collect();
    for (parameter, value) in parameters.iter().zip(&arguments) {
        let output: Option<usize> = places.get(parameter.name).copied();
        if parameter.inout != output.is_some() {
            return error(format!(
                "expects an argument to be marked 'tml.inout' exactly if a result has its name, '{}'",
                parameter.name
            ));
        }
        if let Some(output) = output
            && results[output].r#type() != value.r#type()
        {
            return error(format!(
                "expects the argument and the result '{}' to have one type, found '{}' and '{}'",
                parameter.name,
                value.r#type(),
                results[output].r#type()
            ));
        }
    }
    let values = arguments.iter().chain(&results).map(|value| value.r#type());
    for (parameter, ty) in parameters.iter().chain(&outputs).zip(values) {
        verify_type(parameter, ty)?;
        verify_padding(parameter, ty, program.vector_length())?;
    }
    Ok(())
}

fn verify_type<'c>(parameter: &Parameter, ty: Type<'c>) -> Result<(), Report<'c>> {
    let is_number = ["f32", "f64"].contains(&mlir::element_type(ty).to_string().as_str());
    let is_static = mlir::shape(ty).iter().all(|extent| extent.is_some_and(|it| 1 <= it));
    if mlir::is_tensor(ty) && is_number && is_static {
        return Ok(());
    }
    error(format!(
        "expects '{}' to be a tensor of f32 or f64 with positive static extents, found '{ty}'",
        parameter.name
    ))
}

fn verify_padding<'c>(
    parameter: &Parameter,
    ty: Type<'c>,
    vector_length: Option<i64>,
) -> Result<(), Report<'c>> {
    let Some(vector_length) = vector_length else { return Ok(()) };
    let rounded = parameter.extents.as_ref().map(|extents| {
        extents.iter().map(|extent| Some(round_up(*extent, vector_length))).collect::<Vec<_>>()
    });
    if rounded == Some(mlir::shape(ty)) {
        return Ok(());
    }
    error(format!(
        "expects the extents of '{}' to be its 'tml.extents' rounded up to multiples of \
         {vector_length}, found {:?} and '{ty}'",
        parameter.name,
        parameter.extents.as_deref().unwrap_or_default()
    ))
}

fn verify_return<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let Some((_, results)) = mlir::parent(op).and_then(mlir::function_type) else { return Ok(()) };
    let found: Vec<_> = mlir::operands(op).iter().map(|value| value.r#type()).collect();
    if found == results {
        return Ok(());
    }
    error("expects operands of the types that the program returns")
}

/// C1 of `tml.smul` and `tml.sdiv`.
fn verify_scalar<'c>(op: Op<'c>, scalar: usize, tensor: usize) -> Result<(), Report<'c>> {
    let [scalar, tensor] = [scalar, tensor].map(|number| mlir::operand(op, number).r#type());
    let is_scalar = mlir::shape(scalar).is_empty();
    if is_scalar && mlir::element_type(scalar) == mlir::element_type(tensor) {
        return Ok(());
    }
    error(format!("expects a scalar of the element type of '{tensor}', found '{scalar}'"))
}

/// C1 of `tml.product`.
fn verify_product<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let [lhs, rhs] = [0, 1].map(|number| mlir::operand(op, number).r#type());
    if mlir::element_type(lhs) != mlir::element_type(rhs) {
        return error(format!("expects operands of one element type, found '{lhs}' and '{rhs}'"));
    }
    let shape = [mlir::shape(lhs), mlir::shape(rhs)].concat();
    expect_result(op, &shape)
}

/// C1 and C2 of `tml.contract`.
fn verify_contract<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let mut shape = mlir::shape(mlir::operand(op, 0).r#type());
    match dims(op) {
        Some([first, second])
            if first < second && second < shape.len() && shape[first] == shape[second] =>
        {
            shape.remove(second);
            shape.remove(first);
            expect_result(op, &shape)
        }
        _ => error(format!(
            "expects 'dims' to be two dimensions of one extent of '{}', in ascending order",
            mlir::operand(op, 0).r#type()
        )),
    }
}

/// C1 and C2 of `tml.transpose`.
fn verify_transpose<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let mut shape = mlir::shape(mlir::operand(op, 0).r#type());
    match dims(op) {
        Some([first, second]) if first.max(second) < shape.len() => {
            shape.swap(first, second);
            expect_result(op, &shape)
        }
        _ => error(format!(
            "expects 'dims' to be two dimensions of '{}'",
            mlir::operand(op, 0).r#type()
        )),
    }
}

fn expect_result<'c>(op: Op<'c>, shape: &[Option<i64>]) -> Result<(), Report<'c>> {
    let element = mlir::element_type(mlir::operand(op, 0).r#type());
    let (expected, found) = (mlir::tensor_type(shape, element), mlir::result(op, 0).r#type());
    if expected == found {
        return Ok(());
    }
    error(format!("expects a result of type '{expected}', found '{found}'"))
}
