//! Folds that have the same value along a dimension: computed once, and read along it.
//!
//! A product with a broadcast tensor becomes one when the broadcast is composed into it.

use super::{apply::copy_rest, candidate::Candidate};
use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::BTreeSet;
use tc_dialects::{
    imap::{Access, Generic, Indexed, Runtime, build_yield, verify::index_variable},
    mlir::{self, Blk, Builder, Op, Val, ValueMap},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
};

/// The fold without the dimensions that its value does not depend on, and the operation in map form that reads
/// the value along them and applies the epilogue. `None` if the value depends on all dimensions.
pub(super) fn narrow<'c>(ir: &Context, generic: Generic<'c>) -> Option<(Generic<'c>, Generic<'c>)> {
    let [accumulator] = generic.accumulators()[..] else { return None };
    let view = Candidate::new(ir, generic).view;
    if view.domain.ranges.is_empty()
        || view.combiner.is_some()
        || !view.domain.constraints.is_empty()
        || accumulator.destination().is_some()
        || mlir::results(generic.op()).len() != 1
    {
        return None;
    }
    // The numbers of variables change.
    let mut blocks = [Some(generic.body()), generic.epilogue()].into_iter().flatten();
    let is_dim = |op: Op| matches!(index_variable(op), Some(Var::Dim(_)));
    if blocks.any(|block| has(block, &|op| mlir::is(op, "imap.inside")))
        || has(generic.body(), &|op| mlir::is(op, "imap.index") && is_dim(op))
    {
        return None;
    }
    let is_folded = used_arguments(generic.body());
    let folded: Vec<Access> =
        view.inputs.iter().zip(&is_folded).filter(|it| *it.1).map(|it| it.0.clone()).collect();
    let elements = view.runtimes.iter().filter_map(Runtime::access);
    let mut exprs: Vec<Expr> = folded.iter().chain(elements).flat_map(Access::exprs).collect();
    exprs.extend(view.domain.vars().flat_map(|(_, it)| [it.lower, it.upper]).flatten());
    let used: BTreeSet<Var> = ir.vars_of_all(&exprs);
    let subscripts = &view.outputs[0].subscripts;
    let removed: Vec<(u32, usize)> = view
        .looping_dims(ir)
        .into_iter()
        .filter(|var| !used.contains(var))
        .filter_map(|var| match var {
            Var::Dim(dim) => Some((dim, place_of(ir, subscripts, var)?)),
            _ => None,
        })
        .collect();
    if removed.is_empty() {
        return None;
    }

    let builder = Builder::before(generic.op()).located(generic.op().location());
    let is_kept = |place: &usize| !removed.iter().any(|(_, other)| other == place);
    let kept: Vec<usize> = (0..subscripts.len()).filter(is_kept).collect();
    let init = view.outputs[0].value;
    let shape = mlir::shape(init.r#type());
    let shape: Vec<_> = kept.iter().map(|place| shape[*place]).collect();
    let dynamic = kept.iter().zip(&shape).filter(|(_, extent)| extent.is_none());
    let dynamic: Vec<_> = dynamic.map(|(place, _)| builder.dim(init, *place)).collect();
    let empty = builder.value("tensor.empty", &dynamic, mlir::tensor_type(&shape, accumulator.ty));
    let kept: Vec<Expr> = kept.into_iter().map(|place| subscripts[place]).collect();

    let mut narrow = view.clone();
    let is_removed = |dim: u32| removed.iter().any(|(other, _)| *other == dim);
    let mut numbers = 0..;
    let renumbered: Vec<Option<u32>> = (0..view.domain.dims.len() as u32)
        .map(|dim| if is_removed(dim) { None } else { numbers.next() })
        .collect();
    let dims = narrow.domain.dims.into_iter().zip(&renumbered);
    narrow.domain.dims = dims.filter(|(_, number)| number.is_some()).map(|(dim, _)| dim).collect();
    narrow.inputs = folded;
    narrow.outputs = vec![Access::new(empty, kept.clone())];
    narrow.substitute(ir, &|var| match var {
        Var::Dim(dim) => Some(ir.dim(renumbered[dim as usize]?)),
        _ => None,
    });
    let narrow = narrow.build(ir, &builder, false);
    let arguments = mlir::arguments(generic.body());
    let arguments = arguments.into_iter().zip(is_folded).filter(|it| it.1).map(|it| it.0);
    copy_block(&builder, generic.body(), arguments.collect(), narrow.body());

    let mut reads = view.clone();
    reads.domain.ranges.clear();
    reads.inputs = vec![Access::new(mlir::result(narrow.op(), 0), kept)];
    reads.accumulators.clear();
    reads.ordered = false;
    let mut arguments = Vec::new();
    if let Some(epilogue) = generic.epilogue() {
        let is_used = used_arguments(epilogue);
        let inputs = view.inputs.iter().zip(&is_used[1..]).filter(|it| *it.1);
        reads.inputs.extend(inputs.map(|it| it.0.clone()));
        arguments = mlir::arguments(epilogue);
        let mut is_used = is_used.into_iter().enumerate();
        arguments
            .retain(|_| is_used.next().is_some_and(|(number, is_used)| number == 0 || is_used));
    }
    reads.drop_unused_runtimes(ir, &[]);
    let reads = reads.build(ir, &builder, false);
    match generic.epilogue() {
        Some(epilogue) => copy_block(&builder, epilogue, arguments, reads.body()),
        None => {
            let inside = Builder::at_end(builder.context, reads.body(), builder.location);
            build_yield(&inside, &mlir::arguments(reads.body()));
        }
    }
    Some((narrow, reads))
}

/// The place of the only subscript that a variable occurs in, if it is the variable.
fn place_of(ir: &Context, subscripts: &[Expr], var: Var) -> Option<usize> {
    let mut places =
        (0..subscripts.len()).filter(|place| ir.vars(subscripts[*place]).contains(&var));
    let (place, None) = (places.next()?, places.next()) else { return None };
    (ir.as_var(subscripts[place]) == Some(var)).then_some(place)
}

/// Whether an operation of a block, or one nested in it, is like this.
pub(super) fn has<'c>(block: Blk<'c>, is_wanted: &dyn Fn(Op<'c>) -> bool) -> bool {
    let mut found = false;
    for top in mlir::ops(block) {
        mlir::walk(top, &mut |op| found |= is_wanted(op));
    }
    found
}

/// Which arguments of a block have uses.
fn used_arguments(block: Blk) -> Vec<bool> {
    mlir::arguments(block).into_iter().map(|it| !mlir::uses(it).is_empty()).collect()
}

/// Copies the operations of a block but the last one, with values in the place of its arguments. Returns what it yields.
pub(super) fn copy_body<'c>(
    inside: &Builder<'c>,
    block: Blk<'c>,
    values: &mut ValueMap<'c>,
) -> Vec<Val<'c>> {
    let terminator = mlir::terminator(block);
    for op in mlir::ops(block).into_iter().filter(|op| *op != terminator) {
        inside.located(op.location()).copy(op, values);
    }
    let copy = |value| values.get(value).unwrap_or(value);
    mlir::operands(terminator).into_iter().map(copy).collect()
}

/// Copies a block into an empty one with these of its arguments.
fn copy_block<'c>(builder: &Builder<'c>, from: Blk<'c>, arguments: Vec<Val<'c>>, to: Blk<'c>) {
    let mut values: ValueMap = arguments.into_iter().zip(mlir::arguments(to)).collect();
    let inside = Builder::at_end(builder.context, to, builder.location);
    copy_rest(&inside, from, &mut values);
}
