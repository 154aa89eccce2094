//! `imap-vectorize`: operations on buffers with a step `vector` in their schedule become loops over blocks of results,
//! each of which is held in registers over the whole of the range variables.
//!
//! One variable provides the *lanes* of the vectors. If it is a dimension variable
//! (`n` of `C(m, n) +=! A(m, k) * B(k, n)`), a vector holds neighbouring results, an
//! operand that does not depend on it is broadcast, and several vectors are neighbours.
//! If it is a range variable (`k` of `C(m, n) +=! A(m, k) * B(n, k)`), a vector holds
//! partial results of one element, which are folded across the lanes at the end; this
//! changes the order of floating-point operations. One or two further dimension
//! variables are *unrolled*: what an operand that does not depend on them holds is
//! loaded once for all the unrolled points, which is what makes the block worth its
//! registers.
//!
//! Ends that do not fill a vector are masked, those of known length in a vector no wider
//! than they need; ends that do not fill a block are done in blocks of four and of one,
//! and those of transpositions one element at a time.
//!
//! Operations on elements that read an input across its rows, transpositions above all,
//! load square blocks of it, and transpose them in registers.
//!
//! Only bodies and combiners of operations that work element by element on vectors are taken, with
//! operands that are contiguous in the lanes or independent of them. Along results, an input may have a
//! stride in its innermost dimension, and an input of the epilogue any stride: elements are loaded one by one.
//! Guards, and conditions in bodies, are masks: they hold for all lanes alike, from one lane on, or up to one. A
//! constraint of a fold on lanes that are a dimension variable is a mask where it does not hold for the whole block:
//!
//! ```text
//! i + s - 1 in [0, 55]                    lanes along i, the range variable s
//!
//! for s = 0 to 3                          carry: the block
//!   first, end = the part of the lanes where the constraint holds
//!   if it is all lanes                    fold
//!   else if it has a lane                 fold under masks
//! ```
//!
//! A combiner that is a region folds the upper half of the lanes into the lower half until one is left.
//!
//! Panels of large inputs are prefetched (`prefetch.rs`).
//!
//! A step that the operation cannot have is an error.

mod block;
mod prefetch;

use super::loop_nest::{
    Choices, PARALLEL, PARALLEL_THRESHOLD, STRICT_FP, VECTOR_BITS, converted,
    emit::{Nest, Scope},
    for_each,
    loops::{at_point, row_loop},
    outer::{Loop, outer_loops},
    schedule,
    tiling::Tiling,
    work::limit_threads,
};
use crate::loops::{self, memref};
use block::{Block, Left};
use std::collections::BTreeMap;
use tc_dialects::{
    imap::{
        Generic,
        schedule::{Schedule, Step},
    },
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::Report,
};
use tc_ir::Var;

const CACHE_BYTES: PassOption = PassOption {
    name: "cache-bytes",
    description: "Inputs of more bytes are prefetched, if blocks read them in panels; 0 for none",
    default: "0",
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-vectorize",
    summary: "Turn operations of imap on buffers that have register blocks into loops over vectors",
    anchor: "func.func",
    options: &[PARALLEL, PARALLEL_THRESHOLD, STRICT_FP, VECTOR_BITS, CACHE_BYTES],
    dependent_dialects: &["arith", "llvm", "memref", "scf", "vector"],
    run,
};

fn run(run: &PassRun) -> Result<(), Failure> {
    let choices = Choices::of(run)?;
    for_each(run, converted(run.op), |op| {
        let steps = Schedule::of(op).unwrap_or_default().steps;
        let step = steps.into_iter().find(|step| matches!(step, Step::Vector { .. }));
        step.map_or(Ok(()), |step| convert(op, &step, choices))
    })
}

/// Replaces an operation by the loops of its step.
fn convert<'c>(op: Op<'c>, step: &Step, choices: Choices) -> Result<(), Report<'c>> {
    let refuse = |reason| Report::error(format!("cannot be computed by '{step}': {reason}"));
    let not_generic = || refuse("only an imap.generic has register blocks".to_string());
    let generic = Generic::cast(op).ok_or_else(not_generic)?;
    let mut nest = Nest::new(generic.into(), choices.inside(op))?;
    let Some(step) = schedule::vector(&nest).map_err(refuse)? else { return Ok(()) };
    let plan = schedule::plan(&nest, Some(step.lanes)).map_err(refuse)?;
    let tiling = Tiling::of(&nest, &plan, &step).map_err(refuse)?;
    nest.reuses_inputs = tiling.reuses_inputs(&nest);
    limit_threads(&mut nest);
    let builder = Builder::before(op);
    build(&nest, &builder, &nest.outer_scope(&builder), &tiling);
    mlir::erase(op);
    Ok(())
}

/// How many blocks of an unrolled variable one strip of the outer loops covers.
const BLOCKS_PER_STRIP: i64 = 8;
/// The blocks that ends are done in.
const SMALL_BLOCKS: [i64; 2] = [4, 1];

/// Builds the loops of a tiling.
fn build<'c>(nest: &Nest<'c>, builder: &Builder<'c>, scope: &Scope<'c>, tiling: &Tiling) {
    let mut loops: Vec<_> = tiling.rest.iter().copied().map(Loop::over).collect();
    if !tiling.lane_is_range() {
        loops.push(Loop::strips(tiling.lane, tiling.width()));
    }
    // Strips of the unrolled variables are there to be divided among threads, and to
    // be kept in cache if there are two of them.
    if nest.choices.parallel || tiling.lane_is_range() {
        for (var, factor) in &tiling.unrolled {
            loops.push(Loop::strips(*var, factor * BLOCKS_PER_STRIP));
        }
    }
    let held = tiling.held(nest).map(|shape| {
        let accumulators = nest.accumulators.iter();
        accumulators.map(|it| memref(&shape, it.ty)).collect::<Vec<_>>()
    });
    let scratch = held.unwrap_or_default();
    outer_loops(nest, builder, scope, &loops, &scratch, &mut |builder, scope| {
        if tiling.lane_is_range() {
            return unrolled_loops(nest, builder, scope, tiling, (&[], false), None);
        }
        let known = nest.extent(tiling.lane).map(|extent| extent % tiling.width());
        if known == Some(0) {
            return unrolled_loops(nest, builder, scope, tiling, (&[], false), None);
        }
        let (lower, upper) = scope.strips[&tiling.lane];
        let left = builder.value("arith.subi", &[upper, lower], builder.index_type());
        let width = builder.index(tiling.width());
        let is_full = builder.compare_int("eq", left, width);
        loops::build_if(
            builder,
            is_full,
            &mut |inside| {
                unrolled_loops(nest, inside, scope, tiling, (&[], false), None);
                Vec::new()
            },
            &mut |inside| {
                match tiling.transposed.is_empty() {
                    true => {
                        let left = known.map_or(Left::Computed(left), Left::Known);
                        unrolled_loops(nest, inside, scope, tiling, (&[], false), Some(left));
                    }
                    false => point_loops(nest, inside, scope, &[tiling.unrolled[0].0, tiling.lane]),
                }
                Vec::new()
            },
        );
    });
}

/// The loops over blocks of the unrolled variables; `factors` are those already entered. Points outside of the
/// interior are blocks of one.
fn unrolled_loops<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    tiling: &Tiling,
    (factors, is_inside): (&[i64], bool),
    left: Option<Left<'c>>,
) {
    let Some((var, factor)) = tiling.unrolled.get(factors.len()).copied() else {
        return Block::new(nest, builder, scope, tiling, (factors, is_inside), left).build(builder);
    };
    let mut scope = scope.clone();
    let (mut lower, upper) = nest.loop_bounds(builder, &mut scope, var, &[]);
    let index = builder.index_type();
    let interior = tiling.interior.as_ref().filter(|it| it.var == var);
    let is_inside = is_inside || interior.is_some();
    let blocks = |(lower, upper): (Val<'c>, Val<'c>), size: i64, is_inside: bool| {
        let step = builder.index(size);
        loops::build_for(builder, (lower, upper, step), &[], &mut |builder, value, _| {
            let mut scope = scope.clone();
            scope.values.insert(var, value);
            let factors = [factors, &[size]].concat();
            unrolled_loops(nest, builder, &scope, tiling, (&factors, is_inside), left);
            Vec::new()
        });
    };
    let mut inner = upper;
    if let Some(interior) = interior {
        let clamp = |value: i64| {
            let value = builder.value("arith.maxsi", &[builder.index(value), lower], index);
            builder.value("arith.minsi", &[value, upper], index)
        };
        let first = clamp(interior.first);
        inner = clamp(interior.last + 1);
        blocks((lower, first), 1, false);
        lower = first;
    }
    let divides = match interior {
        None => nest.extent(var).is_some_and(|extent| extent % factor == 0),
        // The interior may be longer than a strip.
        Some(interior) => interior.extent() % factor == 0 && !scope.strips.contains_key(&var),
    };
    let extent = match interior {
        None => nest.extent(var),
        Some(interior) => Some(interior.extent()),
    };
    let is_divided = divides || !tiling.transposed.is_empty();
    let known = extent.filter(|_| !is_divided && !scope.strips.contains_key(&var));
    let tail = known.and_then(|extent| tail(extent, factor));
    let mut sizes = vec![factor];
    match tail {
        Some((size, _)) => sizes.push(size),
        None if is_divided => {}
        None => sizes.extend(SMALL_BLOCKS.into_iter().filter(|small| *small < factor)),
    }
    for (number, size) in sizes.iter().enumerate() {
        let step = builder.index(*size);
        // Where full blocks end: the last loop takes every point that is left.
        let is_last = number + 1 == sizes.len();
        let end = if is_last && (divides || tiling.transposed.is_empty()) {
            inner
        } else if let Some((_, length)) = tail {
            builder.value("arith.subi", &[inner, builder.index(length)], index)
        } else {
            let length = builder.value("arith.subi", &[inner, lower], index);
            let rest = builder.value("arith.remsi", &[length, step], index);
            builder.value("arith.subi", &[inner, rest], index)
        };
        if interior.is_some() && *size == 1 {
            // The same code as for the points behind the interior.
            break;
        }
        blocks((lower, end), *size, is_inside);
        lower = end;
    }
    if interior.is_some() {
        blocks((lower, upper), 1, false);
    }
    if !divides && !tiling.transposed.is_empty() {
        scope.strips.insert(var, (lower, upper));
        point_loops(nest, builder, &scope, &[var, tiling.lane]);
    }
}

/// The size of smaller blocks that end a variable of a known extent, and how many values they take together: 32 are four
/// blocks of 6 and two of 4, because a block of 2 uses few registers. `None` if no such blocks fit.
fn tail(extent: i64, factor: i64) -> Option<(i64, i64)> {
    let least = factor.div_euclid(2) + factor.rem_euclid(2);
    let lengths = (0..=extent.div_euclid(factor)).rev().map(|full| extent - full * factor);
    let sizes = |length: i64| (least..factor).rev().map(move |size| (size, length));
    let fits = |(size, length): &(i64, i64)| 1 < *size && 0 < *length && length % size == 0;
    lengths.take(factor as usize).flat_map(sizes).find(fits)
}

/// The points of an operation on elements that do not fill a block, one by one.
fn point_loops<'c>(nest: &Nest<'c>, builder: &Builder<'c>, scope: &Scope<'c>, vars: &[Var]) {
    let Some((var, rest)) = vars.split_first() else {
        let all: Vec<_> = (0..nest.domain.constraints.len()).collect();
        return at_point(nest, builder, scope, &[], &BTreeMap::new(), &all);
    };
    row_loop(nest, builder, scope, *var, &[], false, &mut |builder, scope| {
        point_loops(nest, builder, scope, rest);
    });
}
