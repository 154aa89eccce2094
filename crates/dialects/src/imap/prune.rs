//! Canonicalization of `imap.generic`: drop what nothing uses.
//!
//! * Results that nothing uses go, with their destinations. In a fold whose accumulators have no names
//!   of their own for combiners, or that has an epilogue, the epilogue maps what is folded to the others.
//! * Accumulators with a named combiner go if neither a result nor the epilogue uses them.
//! * Inputs that no region uses go, and equal reads of one tensor become one.
//! * An unguarded read of a splat constant becomes a scalar constant.
//! * A copy of all elements of a tensor, each to its own place in a new tensor of the same static shape, is the tensor.
//!
//! Before:
//!
//! ```mlir
//! %r:2 = imap.generic (i)[j] .. ins(%x[i, j], %y[i, j] ..) outs(%e[i], %f[i] ..) fold [add f32, add f32] {
//! ^bb0(%a: f32, %b: f32):
//!   imap.yield %a, %b : f32, f32
//! } -> tensor<4xf32>, tensor<4xf32>
//! return %r#1 : tensor<4xf32>
//! ```
//!
//! After:
//!
//! ```mlir
//! %r = imap.generic (i)[j] .. ins(%y[i, j] ..) outs(%f[i] ..) fold [add f32] {
//! ^bb0(%b: f32):
//!   imap.yield %b : f32
//! } -> tensor<4xf32>
//! return %r : tensor<4xf32>
//! ```

use super::{
    CombinerKind, Generic, Indexed, Start, View, build_yield, extents::reaches_all,
    schedule::SCHEDULE, tiling::copy_attributes,
};
use crate::mlir::{self, Blk, Builder, Val, ValueMap};
use melior::ir::{Attribute, ValueLike, operation::OperationLike};
use std::collections::BTreeSet;
use tc_ir::Context;

/// The numbers of what an operation keeps.
struct Kept<'c> {
    /// Results that are a tensor that the operation reads.
    copies: Vec<(usize, Val<'c>)>,
    results: Vec<usize>,
    accumulators: Vec<usize>,
    inputs: Vec<usize>,
    /// Per input, the one that reads the same.
    representatives: Vec<usize>,
    /// Per input, the number that is read everywhere.
    constants: Vec<Option<Attribute<'c>>>,
}

impl<'c> Kept<'c> {
    fn of(generic: Generic<'c>) -> Self {
        let op = generic.op();
        let (accumulators, inits) = (generic.accumulators(), generic.inits());
        let copies = copies(generic);
        let is_used = |number: &usize| {
            let is_needed = |it: &Val| !mlir::uses(*it).is_empty();
            mlir::results(op).get(*number).is_none_or(is_needed)
                && !copies.iter().any(|(copy, _)| copy == number)
        };
        let mut results: BTreeSet<usize> = (0..inits.len()).filter(is_used).collect();
        let mut kept: Vec<usize>;
        loop {
            kept = (0..accumulators.len())
                .filter(|number| match generic.epilogue() {
                    _ if accumulators[*number].kind == CombinerKind::Custom => true,
                    Some(block) => is_needed(mlir::arguments(block)[*number], block, &results),
                    None => results.contains(number),
                })
                .collect();
            if kept.is_empty() && !accumulators.is_empty() {
                // A fold has something to fold.
                kept.push(0);
            }
            let starts: Vec<_> =
                kept.iter().filter_map(|number| accumulators[*number].destination()).collect();
            if starts.iter().all(|start| results.contains(start)) {
                break;
            }
            results.extend(starts);
        }
        let yielded: BTreeSet<usize> = match accumulators.is_empty() {
            true => results.clone(),
            false => kept.iter().copied().collect(),
        };
        let inputs = generic.inputs();
        let representatives = representatives(generic);
        let is_read = |number: &usize| {
            let body = generic.body();
            is_needed(mlir::arguments(body)[*number], body, &yielded)
                || generic.epilogue().is_some_and(|block| {
                    let argument = mlir::arguments(block)[accumulators.len() + number];
                    is_needed(argument, block, &results)
                })
        };
        let constants = constants(generic);
        let loaded = (0..inputs.len()).filter(|number| constants[*number].is_none());
        let read: BTreeSet<usize> =
            loaded.filter(is_read).map(|number| representatives[number]).collect();
        Self {
            copies,
            results: results.into_iter().collect(),
            accumulators: kept,
            inputs: read.into_iter().collect(),
            representatives,
            constants,
        }
    }
}

/// Whether an argument of a block is used otherwise than by what is yielded as a dropped value.
fn is_needed<'c>(argument: Val<'c>, block: Blk<'c>, yielded: &BTreeSet<usize>) -> bool {
    let terminator = mlir::terminator(block);
    mlir::uses(argument).iter().any(|(op, operand)| *op != terminator || yielded.contains(operand))
}

/// Per input, the first one that reads the same element of the same tensor.
fn representatives(generic: Generic) -> Vec<usize> {
    let (inputs, maps) = (generic.inputs(), mlir::array_attr(generic.op(), "maps"));
    let fills = mlir::array_attr(generic.op(), "fills");
    let is_same = |first: usize, second: usize| {
        inputs[first] == inputs[second]
            && maps[first] == maps[second]
            && fills.get(first) == fills.get(second)
    };
    let first = |number: usize| (0..number).find(|it| is_same(*it, number)).unwrap_or(number);
    (0..inputs.len()).map(first).collect()
}

/// The constant that an operation stores in each element that it defines.
fn stored<'c>(value: Val<'c>) -> Option<Attribute<'c>> {
    let writer = mlir::defining_op(value).and_then(Generic::cast)?;
    let number = mlir::number(value);
    if !writer.accumulators().is_empty() || !mlir::is_empty_tensor(writer.inits()[number]) {
        return None;
    }
    let yielded = mlir::operands(mlir::terminator(writer.body()))[number];
    let constant = mlir::defining_op(yielded).filter(|op| mlir::is(*op, "arith.constant"))?;
    constant.attribute("value").ok()
}

/// Per input, the number that all elements of its tensor are; `None` if they differ or a guard stands before them.
fn constants<'c>(generic: Generic<'c>) -> Vec<Option<Attribute<'c>>> {
    let inputs = generic.inputs();
    let constant = |value: Val<'c>| {
        let element = mlir::element_type(value.r#type());
        if let Some(stored) = stored(value) {
            return Some(stored);
        }
        let op = mlir::defining_op(value).filter(|op| mlir::is(*op, "arith.constant"))?;
        let is_number = mlir::is_float(element) || mlir::is_signless(element);
        mlir::splat_of(op.attribute("value").ok().filter(|_| is_number)?)
    };
    let constants: Vec<_> = inputs.iter().map(|value| constant(*value)).collect();
    if constants.iter().all(Option::is_none) {
        return constants;
    }
    let ir = Context::new();
    let view = View::of(&ir, generic);
    let pairs = constants.into_iter().zip(&view.inputs);
    pairs.map(|(constant, access)| constant.filter(|_| access.guard.is_empty())).collect()
}

/// The results that are a tensor which the operation reads.
fn copies<'c>(generic: Generic<'c>) -> Vec<(usize, Val<'c>)> {
    let op = generic.op();
    let (body, results) = (generic.body(), mlir::results(op));
    let yielded = mlir::operands(mlir::terminator(body));
    let (arguments, inputs) = (mlir::arguments(body), generic.inputs());
    let inits = generic.inits();
    let copied = |number: usize| {
        let result = *results.get(number)?;
        let input = arguments.iter().position(|it| *it == yielded[number])?;
        let is_new = mlir::is_empty_tensor(inits[number]);
        let is_static = mlir::shape(result.r#type()).iter().all(Option::is_some);
        let is_same = is_new && is_static && inputs[input].r#type() == result.r#type();
        is_same.then_some((number, input))
    };
    if !generic.accumulators().is_empty() || op.has_attribute(SCHEDULE) {
        return Vec::new();
    }
    let pairs: Vec<_> = (0..yielded.len()).filter_map(copied).collect();
    if pairs.is_empty() {
        return Vec::new();
    }
    let ir = Context::new();
    let view = View::of(&ir, generic);
    let is_whole = |(result, input): &(usize, usize)| {
        let (read, written) = (&view.inputs[*input], &view.outputs[*result]);
        view.domain.constraints.is_empty()
            && read.guard.is_empty()
            && read.subscripts == written.subscripts
            && reaches_all(&ir, &view.domain, &[], &written.subscripts, written.value)
    };
    let whole = pairs.into_iter().filter(is_whole);
    whole.map(|(result, input)| (result, inputs[input])).collect()
}

/// Builds the operation without what nothing uses before it. Returns the results that are left, by their
/// old numbers, and `None` if all is used.
pub(crate) fn prune<'c>(generic: Generic<'c>) -> Option<Vec<(usize, Val<'c>)>> {
    let op = generic.op();
    let has_results = op.result_count() != 0;
    if has_results && mlir::results(op).iter().all(|it| mlir::uses(*it).is_empty()) {
        // All of it is dead.
        return None;
    }
    let kept = Kept::of(generic);
    if has_results && kept.results.is_empty() {
        return Some(kept.copies);
    }
    let accumulators = generic.accumulators();
    if kept.results.len() == generic.inits().len()
        && kept.accumulators.len() == accumulators.len()
        && kept.inputs.len() == generic.inputs().len()
    {
        return None;
    }
    let ir = Context::new();
    let mut view = View::of(&ir, generic);
    view.inputs = kept.inputs.iter().map(|number| view.inputs[*number].clone()).collect();
    view.outputs = kept.results.iter().map(|number| view.outputs[*number].clone()).collect();
    view.accumulators = kept.accumulators.iter().map(|number| accumulators[*number]).collect();
    for accumulator in &mut view.accumulators {
        if let Some(start) = accumulator.destination() {
            let place = kept.results.iter().position(|number| *number == start);
            accumulator.start = Start::Destination(place.expect("starts are kept"));
        }
    }
    let old_epilogue = generic.epilogue();
    // Without one, accumulators and results are the same.
    let is_paired = old_epilogue.is_none() && kept.accumulators == kept.results;
    let has_epilogue = !accumulators.is_empty() && !is_paired;
    let builder = Builder::before(op);
    let new = view.build(&ir, &builder, has_epilogue);
    copy_attributes(op, new.op());

    let yielded = if accumulators.is_empty() { &kept.results } else { &kept.accumulators };
    let arguments = mlir::arguments(new.body());
    let input = |inside: &Builder<'c>, number: usize, old: Val<'c>, arguments: &[Val<'c>]| {
        if let Some(constant) = kept.constants[number] {
            let is_used = !mlir::uses(old).is_empty();
            return is_used.then(|| inside.constant(old.r#type(), constant));
        }
        let place = kept.inputs.iter().position(|it| *it == kept.representatives[number]);
        place.map(|place| arguments[place])
    };
    let inside = Builder::at_end(builder.context, new.body(), builder.location);
    let old = mlir::arguments(generic.body()).into_iter().enumerate();
    let map = old.filter_map(|(number, old)| Some((old, input(&inside, number, old, &arguments)?)));
    let map = map.collect();
    copy(generic.body(), &inside, map, yielded);
    if let Some(block) = new.epilogue() {
        let inside = Builder::at_end(builder.context, block, builder.location);
        let arguments = mlir::arguments(block);
        let (folded, read) = arguments.split_at(kept.accumulators.len());
        let fold = |number: usize| {
            let place = kept.accumulators.iter().position(|it| *it == number);
            place.map(|place| folded[place])
        };
        match old_epilogue {
            None => {
                let values: Vec<_> =
                    kept.results.iter().filter_map(|number| fold(*number)).collect();
                build_yield(&inside, &values);
            }
            Some(old) => {
                let old_arguments = mlir::arguments(old).into_iter().enumerate();
                let new_of = |number: usize, old| match number.checked_sub(accumulators.len()) {
                    None => fold(number),
                    Some(number) => input(&inside, number, old, read),
                };
                let map = old_arguments
                    .filter_map(|(number, old)| Some((old, new_of(number, old)?)))
                    .collect();
                copy(old, &inside, map, &kept.results);
            }
        }
    }
    let results = kept.results.into_iter().zip(mlir::results(new.op()));
    Some(results.chain(kept.copies).collect())
}

/// Copies a block and yields some of its values.
fn copy<'c>(from: Blk<'c>, to: &Builder<'c>, mut map: ValueMap<'c>, yielded: &[usize]) {
    let ops = mlir::ops(from);
    let (terminator, ops) = ops.split_last().expect("a verified block has a terminator");
    for op in ops {
        to.copy(*op, &mut map);
    }
    let values = mlir::operands(*terminator);
    let values: Vec<_> =
        yielded.iter().map(|number| map.get(values[*number]).unwrap_or(values[*number])).collect();
    build_yield(to, &values);
}
