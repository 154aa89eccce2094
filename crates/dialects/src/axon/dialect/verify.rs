//! Verifiers of the `axon` dialect: the constraints that `axon.td` numbers. What the types of values
//! have to do with each other is for inference to say, but for those of functions.

use super::{PROGRAM, builtin, export::options};
use crate::{
    axon::syntax::{
        builtins::{is_builtin, is_in_prelude, num_params},
        parser::parse_signature,
    },
    mlir::{self, Blk, Op},
    report::Report,
    text::SourceFile,
};
use melior::ir::{Type, TypeLike, ValueLike, operation::OperationLike, r#type::FunctionType};
use tc_ir::shape::text;

/// Verifies an operation of the dialect.
///
/// # Errors
/// The first constraint that does not hold.
pub fn verify<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    match mlir::name(op) {
        PROGRAM => verify_program(op),
        "axon.fn" => verify_function(op),
        "axon.def" => verify_name(mlir::string_attr(op, "name").unwrap_or_default()),
        "axon.use" => verify_use(op),
        "axon.builtin" => verify_builtin(op),
        "axon.number" => verify_number(op),
        "axon.unpack" => match mlir::results(op).len() {
            0 | 1 => error("expects at least two parts"),
            _ => Ok(()),
        },
        "axon.call" => verify_call(op),
        _ => match builtin(op) {
            Some(name) => verify_builtin_call(op, name),
            None => Ok(()),
        },
    }
}

fn error<'c, T>(message: impl Into<String>) -> Result<T, Report<'c>> {
    Err(Report::error(message))
}

/// axon.program C2.
fn verify_name<'c>(name: &str) -> Result<(), Report<'c>> {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_name = name.starts_with(is_letter)
        && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
        && !matches!(name, "fn" | "inf" | "_");
    if is_name {
        return Ok(());
    }
    error(format!("expects an identifier of Axon as name, found '{}'", name.escape_debug()))
}

/// The values of the `axon.return` that a block ends in.
fn returned<'c>(block: Blk<'c>) -> Result<Vec<Type<'c>>, Report<'c>> {
    let last = mlir::ops(block).pop().filter(|op| mlir::is(*op, "axon.return"));
    let Some(last) = last else { return error("expects its body to end in 'axon.return'") };
    Ok(mlir::operands(last).iter().map(|value| value.r#type()).collect())
}

/// axon.program C1.
fn verify_program<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let Some(block) = mlir::body(op, 0) else { return error("expects a body") };
    returned(block).map(drop)
}

fn is_any(ty: Type) -> bool {
    ty.to_string() == "!axon.any"
}

/// C1 to C4.
fn verify_function<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let Some(block) = mlir::body(op, 0) else { return error("expects a body") };
    let arguments: Vec<_> = mlir::arguments(block).iter().map(|it| it.r#type()).collect();
    let names = mlir::strings_attr(op, "params");
    if names.len() != arguments.len() {
        return error(format!(
            "expects a name for each of {} arguments, found {}",
            arguments.len(),
            names.len()
        ));
    }
    names.into_iter().try_for_each(verify_name)?;
    let annotations = mlir::strings_attr(op, "annotations");
    if !annotations.is_empty() && annotations.len() != arguments.len() {
        return error(format!(
            "expects an annotation for each of {} arguments, found {}",
            arguments.len(),
            annotations.len()
        ));
    }
    let of_result = mlir::string_attr(op, "result_annotation");
    for annotation in annotations.into_iter().filter(|it| !it.is_empty()).chain(of_result) {
        let is_type = parse_signature(&SourceFile::new("annotation", annotation)).is_ok();
        if !is_type || annotation.contains('#') {
            let found = annotation.escape_debug();
            return error(format!("expects types of Axon as annotations, found '{found}'"));
        }
    }
    let result = returned(block)?;
    if result.len() != 1 {
        return error("expects 'axon.return' with one value");
    }
    let found = mlir::result(op, 0).r#type();
    let expected: Type = FunctionType::new(mlir::context_of(op), &arguments, &result).into();
    if found == expected || is_any(found) {
        return Ok(());
    }
    error(format!("expects the type {expected} or '!axon.any', found {found}"))
}

/// C1.
fn verify_use<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let definition = mlir::defining_op(mlir::operand(op, 0));
    match definition.is_some_and(|it| mlir::is(it, "axon.def")) {
        true => Ok(()),
        false => error("expects the result of an 'axon.def'"),
    }
}

/// C1.
fn verify_builtin<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let name = mlir::string_attr(op, "name").unwrap_or_default();
    match is_builtin(name) || is_in_prelude(name) {
        true => Ok(()),
        false => error(format!("expects the name of a function, found '{}'", name.escape_debug())),
    }
}

/// C1, C2.
fn verify_builtin_call<'c>(op: Op<'c>, name: &str) -> Result<(), Report<'c>> {
    let (expected, found) = (num_params(name), mlir::operands(op).len());
    if let Some(expected) = expected.filter(|expected| *expected != found) {
        return error(format!("expects {expected} operands, found {found}"));
    }
    for (name, value) in options(op) {
        verify_name(&name)?;
        let dim = text::dim_at(value, 0).is_ok_and(|(_, end)| end == value.len());
        let shape = || text::shape_at(value, 0).is_ok_and(|it| it.place.end == value.len());
        if !dim && !shape() {
            let found = value.escape_debug();
            return error(format!("expects a dimension or a shape as '{name}', found '{found}'"));
        }
    }
    Ok(())
}

/// C1.
fn verify_number<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let Ok(value) = op.attribute("value") else { return error("expects a number") };
    let is_number = mlir::float_of(value).is_some_and(|number| !number.is_nan())
        || mlir::integer_of(value).is_some();
    let text = value.to_string();
    let has_type = [" : i64", " : ui64", " : f64"].iter().any(|ty| text.ends_with(ty));
    match is_number && has_type {
        true => Ok(()),
        false => error(format!("expects a number of type i64, ui64 or f64, found {text}")),
    }
}

/// C1.
fn verify_call<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let operands = mlir::operands(op);
    let function = operands[0].r#type();
    if !function.is_function() {
        return Ok(());
    }
    let args: Vec<_> = operands[1..].iter().map(|value| value.r#type()).collect();
    let result = [mlir::result(op, 0).r#type()];
    let found: Type = FunctionType::new(mlir::context_of(op), &args, &result).into();
    match found == function {
        true => Ok(()),
        false => error(format!("expects arguments and result of {function}, found {found}")),
    }
}
