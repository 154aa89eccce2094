//! Verifiers of the `tc` dialect: the constraints that `tc.td` numbers.
//!
//! Not checked here: that accesses stay inside their tensors, which is what range
//! inference proves or leaves as preconditions.

use super::{Comprehension, Def, Parameter, Size};
use crate::imap::MAX_EXTENT;
use crate::{
    imap::{CombinerKind, verify::check_combiner_type},
    mlir::{self, Op},
    report::Report,
};
use melior::ir::{BlockLike, ValueLike, operation::OperationLike, r#type::TypeLike};
use std::collections::HashSet;

/// Verifies an operation of the dialect.
///
/// # Errors
/// The first constraint that does not hold.
pub fn verify<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    match mlir::name(op) {
        Def::NAME => verify_def(op),
        Comprehension::NAME => verify_comprehension(op),
        "tc.return" => verify_return(op),
        "tc.size" => verify_size(op),
        "tc.extent" => verify_extent(op),
        "tc.read" => verify_read(op),
        _ => Ok(()),
    }
}

fn error<'c, T>(message: impl Into<String>) -> Result<T, Report<'c>> {
    Err(Report::error(message))
}

fn verify_def<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let def = Def::cast(op).expect("dispatched on the name");
    let [block] = mlir::blocks(op, 0)[..] else { return error("expects one block") };
    if !block.terminator().is_some_and(|it| mlir::is(mlir::op_ref(it), "tc.return")) {
        return error("expects its body to end in 'tc.return'");
    }
    let outputs = def.outputs();
    if outputs.len() != def.terminator().operand_count() || outputs.contains(&"") {
        return error("expects the attribute 'tc.name' on every result");
    }
    let distinct: HashSet<_> = outputs.iter().copied().collect();
    let mut inputs = HashSet::new();
    for (number, parameter) in def.parameters().iter().enumerate() {
        verify_parameter(number, parameter)?;
        if !inputs.insert(parameter.name) {
            return error(format!("has two arguments named '{}'", parameter.name));
        }
        if parameter.inout != distinct.contains(parameter.name) {
            return error(format!(
                "expects an argument to be marked 'tc.inout' exactly if an output has its name, '{}'",
                parameter.name
            ));
        }
    }
    if distinct.len() != outputs.len() {
        return error("has two outputs of the same name");
    }
    verify_sizes(def, op)
}

/// The names of all `tc.size`, at once: the sizes of a function are collected only once.
fn verify_sizes<'c>(def: Def<'c>, op: Op<'c>) -> Result<(), Report<'c>> {
    let known: HashSet<_> = def.sizes().into_iter().map(|(name, ..)| name).collect();
    let mut result = Ok(());
    mlir::walk(op, &mut |size| {
        if result.is_ok() && mlir::is(size, "tc.size") {
            let name = mlir::string_attr(size, "name").unwrap_or_default();
            if !known.contains(name) {
                let message = format!("'{name}' is not a size variable of '{}'", def.name());
                result = Err(Report::op_error(size, message));
            }
        }
    });
    result
}

/// C1 and C2 of `tc.def` for one argument.
fn verify_parameter<'c>(number: usize, parameter: &Parameter<'c>) -> Result<(), Report<'c>> {
    let ty = parameter.value.r#type();
    if !mlir::is_tensor(ty) {
        return error(format!("expects argument {number} to be a ranked tensor, but found '{ty}'"));
    }
    if parameter.name.is_empty() {
        return error(format!("expects the attribute 'tc.name' on argument {number}"));
    }
    let shape = mlir::shape(ty);
    if parameter.inout {
        return if parameter.sizes.is_empty() {
            Ok(())
        } else {
            error(format!("expects no 'tc.sizes' on argument {number}, which is 'tc.inout'"))
        };
    }
    let agrees = |(size, extent): (&Size, &Option<i64>)| match (size, extent) {
        (Size::Variable(name), None) => !name.is_empty(),
        (Size::Constant(size), Some(extent)) => size == extent && (1..=MAX_EXTENT).contains(size),
        _ => false,
    };
    if parameter.sizes.len() != shape.len() || !parameter.sizes.iter().zip(&shape).all(agrees) {
        return error(format!(
            "expects 'tc.sizes' of argument {number} to have one entry per dimension of '{ty}': \
             the extent (1 to {MAX_EXTENT}) of a static one, a name for a dynamic one"
        ));
    }
    Ok(())
}

fn verify_comprehension<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let it = Comprehension::cast(op).expect("dispatched on the name");
    let (index_vars, reduction_vars) = (it.index_vars(), it.reduction_vars());
    let num_vars = index_vars.len() + reduction_vars.len();
    let names: HashSet<_> = index_vars.iter().chain(&reduction_vars).collect();
    if names.len() != num_vars {
        return error("expects distinct names of its variables");
    }
    // C1
    for (what, block) in [("body", Some(it.body())), ("'exists' region", it.exists())] {
        let Some(block) = block else { continue };
        let arguments = mlir::arguments(block);
        if arguments.len() != num_vars || arguments.iter().any(|it| !it.r#type().is_index()) {
            return error(format!(
                "expects the {what} to have one 'index' argument per variable, {num_vars} in all"
            ));
        }
        if !block.terminator().is_some_and(|it| mlir::is(mlir::op_ref(it), "tc.yield")) {
            return error(format!("expects the {what} to end in 'tc.yield'"));
        }
    }
    let scalar = it.scalar_type();
    let yielded = mlir::operands(mlir::terminator(it.body()));
    let types: Vec<_> = yielded.iter().map(|value| value.r#type()).collect();
    let addressed = mlir::integers_attr(op, "addressed");
    let is_expected = types.len() == 1 + addressed.len()
        && types[0] == scalar
        && types[1..].iter().all(|ty| ty.is_index());
    if !is_expected {
        let indices = match addressed.len() {
            0 => String::new(),
            count => format!(" and {count} 'index'"),
        };
        return error(format!("expects the body to yield one '{scalar}'{indices}"));
    }
    // C6
    let combiner = it.combiner();
    let in_order = addressed.is_sorted_by(|first, second| first < second);
    if !in_order || addressed.iter().any(|number| !(0..index_vars.len() as i64).contains(number)) {
        return error("expects 'addressed' to have ascending numbers of left-hand indices");
    }
    let arguments = mlir::arguments(it.body());
    if addressed.iter().any(|number| !mlir::uses(arguments[*number as usize]).is_empty()) {
        return error("uses an 'addressed' index in its body");
    }
    if !addressed.is_empty() && combiner.kind == CombinerKind::Assign {
        return error("has 'addressed' indices, but its combiner is 'assign'");
    }
    // C2
    check_combiner_type(combiner.kind, scalar)?;
    match it.outs() {
        Some(_) if !combiner.reads_destination() => {
            return error("has 'outs', but its combiner does not start from it");
        }
        Some(outs) if outs.r#type() != it.result().r#type() => {
            return error("expects 'outs' to have the type of the result");
        }
        None if combiner.reads_destination() => {
            return error("expects 'outs', from which its combiner starts");
        }
        _ => {}
    }
    // C3
    if combiner.kind == CombinerKind::Assign && !reduction_vars.is_empty() {
        return error("has reduction variables, but its combiner is 'assign'");
    }
    // C4
    let bounded = mlir::integers_attr(op, "bounded");
    let distinct: HashSet<_> = bounded.iter().collect();
    if distinct.len() != bounded.len()
        || bounded.iter().any(|variable| !(0..num_vars as i64).contains(variable))
        || mlir::operand_group(op, 1).len() != 2 * bounded.len()
    {
        return error("expects 'where' to have two operands per variable, and each variable once");
    }
    // C5
    let rank = mlir::shape(it.result().r#type()).len();
    if rank != index_vars.len() {
        return error(format!(
            "has {} left-hand indices, but its result has {rank} dimensions",
            index_vars.len()
        ));
    }
    let ir = tc_ir::Context::new();
    if let Some(domain) = it.domain(&ir)
        && (domain.dims.len(), domain.ranges.len(), domain.results.len())
            != (index_vars.len(), reduction_vars.len(), rank)
    {
        return error(
            "expects 'domain' to have the variables of the statement and one result per left-hand index",
        );
    }
    Ok(())
}

fn verify_return<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let Some(def) = mlir::parent(op) else { return Ok(()) };
    let Some(function) = op_function_type(def) else { return Ok(()) };
    let found: Vec<_> = mlir::operands(op).iter().map(|value| value.r#type()).collect();
    let expected: Vec<_> =
        (0..function.result_count()).filter_map(|index| function.result(index).ok()).collect();
    if found != expected {
        return error("expects operands of the types of the results of its 'tc.def'");
    }
    Ok(())
}

fn op_function_type<'c>(op: Op<'c>) -> Option<melior::ir::r#type::FunctionType<'c>> {
    use melior::ir::attribute::TypeAttribute;
    let ty = TypeAttribute::try_from(op.attribute("function_type").ok()?).ok()?.value();
    ty.try_into().ok()
}

fn verify_size<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    // Whether the function has such a size, `verify_sizes` checks for all of them at once.
    match mlir::ancestor(op, Def::NAME) {
        Some(_) => Ok(()),
        None => error("expects to stand in a 'tc.def'"),
    }
}

fn verify_extent<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let rank = mlir::shape(mlir::operand(op, 0).r#type()).len();
    let dim = mlir::integer_attr(op, "dim").unwrap_or(0);
    if dim < rank as i64 {
        return Ok(());
    }
    error(format!("asks for dimension {dim} of a tensor with {rank} dimensions"))
}

fn verify_read<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let tensor = mlir::operand(op, 0).r#type();
    let rank = mlir::shape(tensor).len();
    if op.operand_count() != rank + 1 {
        return error(format!(
            "has {} indices, but the tensor has {rank} dimensions",
            op.operand_count() - 1
        ));
    }
    let expected = mlir::signless(mlir::context_of(op), mlir::element_type(tensor));
    let found = mlir::result(op, 0).r#type();
    if found != expected {
        return error(format!("expects a result of '{expected}', but found '{found}'"));
    }
    Ok(())
}
