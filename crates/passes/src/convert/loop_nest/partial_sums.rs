//! Partial sums of long floating-point reductions.
//!
//! The error of a running sum grows with the number of its terms. So a long sum is divided:
//! each [`STRIP`] terms are summed from zero, each [`BLOCK`] of these sums are added from
//! zero, and the sums of blocks are added with their rounding errors, which are exact
//! (Knuth's `TwoSum`) and are added at the end. This is a variant of the blocked and
//! compensated sums of Higham, "Accuracy and Stability of Numerical Algorithms" (2002),
//! chapter 4. Only floating-point sums are divided, and none with `strict-fp`, which keeps
//! the order of the terms.
//!
//! The loops over the range variables become
//!
//! ```text
//! for .. outer range variables                  carry: strip, block, sum, error, pending, flushed
//!   for k0 = lower to upper step length         carry: the same
//!     strip += loops over k in [k0, k0 + length) and the inner range variables
//!     pending += terms
//!     if pending >= STRIP / 2                   unless the loops always have so many terms
//!       block += strip; strip = 0; pending = 0; flushed += 1
//!       if flushed % BLOCK == 0
//!         sum, error += block; block = 0
//! ```
//!
//! A sum of at most [`BLOCK`] strips is `block`; it has no `sum` and no `error`.

use super::{
    emit::{Nest, Scope},
    loops::reduction_loops,
    order::step_along,
};
use crate::loops;
use melior::ir::{ValueLike, operation::OperationLike};
use std::{
    collections::BTreeMap,
    ops::{Range, RangeInclusive},
};
use tc_dialects::{
    imap::{CombinerKind, Indexed},
    mlir::{self, Builder, Op, Val},
};
use tc_ir::{Var, expr::ceil_div};

/// The terms of a strip.
const STRIP: i64 = 128;
/// The strips of a block.
const BLOCK: i64 = 16;

/// Folds the terms of a strip: from the scope, the range variables that are left, and the
/// values of the strip.
pub(in crate::convert) type FoldStrip<'a, 'c> =
    dyn FnMut(&Builder<'c>, &Scope<'c>, &[Var], &[Val<'c>]) -> Vec<Val<'c>> + 'a;

/// Does a step with the parts given.
pub(in crate::convert) type DoStep<'a, 'c> = dyn Fn(&Builder<'c>, Step, &mut Parts<'c>) + 'a;

/// The values of the parts of sums: strips, and with these all that is not divided; blocks,
/// sums and errors.
pub(in crate::convert) type Parts<'c> = Vec<Vec<Val<'c>>>;

/// A step from some parts of a sum to others.
#[derive(Copy, Clone, Debug)]
pub(in crate::convert) enum Step {
    /// Adds a strip to its block.
    Strip,
    /// Adds a block to the sum and its error.
    Block,
    /// Adds the only block to the sum.
    OnlyBlock,
    /// Adds the error to the sum.
    End,
}

impl Step {
    /// The parts that the step takes and changes.
    pub fn parts(self) -> Range<usize> {
        match self {
            Self::Strip => 0..2,
            Self::Block => 1..4,
            Self::OnlyBlock => 1..3,
            Self::End => 2..4,
        }
    }

    /// The parts after the step. The operations have no flags, so that LLVM keeps their order.
    pub fn apply<'c>(
        self,
        builder: &Builder<'c>,
        zero: Val<'c>,
        parts: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let ty = zero.r#type();
        let add = |lhs, rhs| builder.value("arith.addf", &[lhs, rhs], ty);
        let sub = |lhs, rhs| builder.value("arith.subf", &[lhs, rhs], ty);
        match (self, parts) {
            (Self::Strip | Self::OnlyBlock, [from, to]) => vec![zero, add(*to, *from)],
            (Self::Block, [block, sum, error]) => {
                let total = add(*sum, *block);
                let from_block = sub(total, *sum);
                let from_sum = sub(total, from_block);
                let lost = add(sub(*sum, from_sum), sub(*block, from_block));
                vec![zero, total, add(*error, lost)]
            }
            (Self::End, [sum, error]) => {
                // An infinite sum has no error that is a number.
                let corrected = add(*sum, *error);
                let is_number = builder.compare_float("ord", *error, *error);
                vec![builder.select(is_number, corrected, *sum), zero]
            }
            _ => unreachable!("a step takes the parts that it names"),
        }
    }
}

/// How a sum is divided.
#[derive(Clone, Debug)]
pub(in crate::convert) struct PartialSums {
    /// The number of range variables outside the strips.
    outer: usize,
    /// The points of the next range variable in a strip.
    strip: i64,
    /// The values of that variable that go to partial sums of their own, as in the lanes of
    /// a vector.
    chains: i64,
    /// The terms of a partial sum per point of that variable.
    terms: i64,
    /// Whether a strip may have few terms, depending on extents that are not constant.
    may_be_short: bool,
    /// Whether there may be several blocks, which are added with their errors.
    has_blocks: bool,
}

/// Whether the sum of an accumulator is divided if it is long.
pub(in crate::convert) fn is_float_sum(nest: &Nest, accumulator: usize) -> bool {
    let accumulator = &nest.accumulators[accumulator];
    accumulator.kind == CombinerKind::Add
        && mlir::is_float(accumulator.ty)
        && !nest.choices.strict_fp
        && !nest.generic.is_ordered()
}

/// The partial sums that LLVM makes of a strip of a scalar loop over the last of `ranges`:
/// the lanes of a vector, if it vectorizes the loop.
pub(in crate::convert) fn vectorized_chains(nest: &Nest, ranges: &[Var]) -> i64 {
    let Some(last) = ranges.last() else { return 1 };
    let inputs = nest.inputs.iter().filter(|input| input.is_used);
    let mut steps = inputs.map(|input| step_along(nest, &input.map, *last));
    let is_contiguous = steps.all(|step| matches!(step, Some(0 | 1)));
    let is_vectorized = |op: Op| {
        let name = mlir::name(op);
        let prefixes = ["arith.", "math.", "imap."];
        op.region_count() == 0 && prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    let is_straight = mlir::ops(nest.generic.body()).into_iter().all(is_vectorized);
    if !is_contiguous || !is_straight || !nest.domain.constraints.is_empty() {
        return 1;
    }
    let stored = nest.outputs.iter().map(|output| output.element);
    let widths = stored.chain(nest.accumulators.iter().map(|it| it.ty)).map(mlir::byte_width);
    let widest = i64::from(widths.max().unwrap_or(1).max(1));
    (nest.choices.vector_bits / 8 / widest).max(1)
}

impl PartialSums {
    /// How to divide the reduction over `ranges`, outermost first, if it is a long
    /// floating-point sum. The values of the last range variable go to `chains` partial sums
    /// in turn.
    pub fn of(nest: &Nest, ranges: &[Var], chains: i64) -> Option<Self> {
        if !(0..nest.accumulators.len()).any(|number| is_float_sum(nest, number)) {
            return None;
        }
        let chains_of = |position: usize| if position + 1 == ranges.len() { chains } else { 1 };
        // Inner loops of few terms together are one strip.
        let mut terms = 1;
        let mut outer = ranges.len();
        let mut extent = None;
        while 0 < outer {
            extent = nest.extent(ranges[outer - 1]);
            let here = extent.map(|extent| ceil_div(extent.max(1), chains_of(outer - 1)));
            match here.and_then(|here| here.checked_mul(terms)) {
                Some(all) if all <= STRIP => terms = all,
                _ => break,
            }
            outer -= 1;
        }
        let outer = outer.checked_sub(1)?;
        let chains = chains_of(outer);
        let most = STRIP / terms;
        let steps = extent.map_or(most, |extent| equal_steps(ceil_div(extent, chains), most));
        let strip = steps * chains;
        let total = ranges[..=outer].iter().fold(terms as u64, |total, var| {
            let points = nest.intervals.of(*var).num_members().unwrap_or(u64::MAX);
            total.saturating_mul(points)
        });
        Some(Self {
            outer,
            strip,
            chains,
            terms,
            may_be_short: extent.is_none(),
            has_blocks: ((STRIP * BLOCK * chains) as u64) < total,
        })
    }

    /// The points of the range variable of a strip.
    pub fn strip(&self) -> i64 {
        self.strip
    }

    /// The number of parts of a sum.
    pub fn num_parts(&self) -> usize {
        if self.has_blocks { 4 } else { 2 }
    }

    /// The part that starts from the value of the destination, and is the result.
    pub fn result(&self) -> usize {
        if self.has_blocks { 2 } else { 1 }
    }

    /// Builds the loops, which start from the parts given, and returns the parts at the end.
    #[allow(clippy::too_many_arguments)]
    pub fn build<'c>(
        &self,
        nest: &Nest<'c>,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        ranges: &[Var],
        tightening: &BTreeMap<Var, Vec<usize>>,
        start: Parts<'c>,
        fold: &mut FoldStrip<'_, 'c>,
        step: &DoStep<'_, 'c>,
    ) -> Parts<'c> {
        let (outer, inner) = ranges.split_at(self.outer);
        let var = inner[0];
        let tightened = tightening.get(&var).map_or(&[][..], Vec::as_slice);
        let index = builder.index_type();
        let zero = builder.index(0);
        let carried = [start.concat(), vec![zero, zero]].concat();
        let carried = reduction_loops(
            nest,
            builder,
            scope,
            (outer, false),
            tightening,
            &carried,
            &mut |builder, scope, carried| {
                let mut scope = scope.clone();
                let (lower, upper) = nest.loop_bounds(builder, &mut scope, var, tightened);
                let length = builder.index(self.strip);
                let bounds = (lower, upper, length);
                loops::build_for(builder, bounds, carried, &mut |builder, value, carried| {
                    let mut scope = scope.clone();
                    let (mut parts, counters) = split(&start, carried);
                    let points = if self.strip == 1 {
                        scope.values.insert(var, value);
                        length
                    } else {
                        let end = builder.value("arith.addi", &[value, length], index);
                        let end = builder.value("arith.minsi", &[end, upper], index);
                        scope.strips.insert(var, (value, end));
                        builder.value("arith.subi", &[end, value], index)
                    };
                    let left = &inner[usize::from(self.strip == 1)..];
                    parts[0] = fold(builder, &scope, left, &parts[0]);
                    self.after_strip(builder, parts, counters[0], counters[1], points, step)
                })
            },
        );
        let (mut parts, counters) = split(&start, &carried);
        step(builder, Step::Strip, &mut parts);
        if !self.has_blocks {
            return parts;
        }
        let after = |builder: &Builder<'c>, steps: &[Step]| {
            let mut parts = parts.clone();
            steps.iter().for_each(|it| step(builder, *it, &mut parts));
            parts.concat()
        };
        let of_many = [Step::Block, Step::End];
        let result = if self.may_be_short {
            let is_long = builder.compare_int("sge", counters[1], builder.index(BLOCK));
            loops::build_if(
                builder,
                is_long,
                &mut |builder| after(builder, &of_many),
                &mut |builder| after(builder, &[Step::OnlyBlock]),
            )
        } else {
            after(builder, &of_many)
        };
        split(&start, &result).0
    }

    /// The steps that are due after so many points of a strip, and the values that the loops
    /// carry on.
    fn after_strip<'c>(
        &self,
        builder: &Builder<'c>,
        parts: Parts<'c>,
        pending: Val<'c>,
        flushed: Val<'c>,
        points: Val<'c>,
        step: &DoStep<'_, 'c>,
    ) -> Vec<Val<'c>> {
        let index = builder.index_type();
        let mut flush = |builder: &Builder<'c>| {
            let mut parts = parts.clone();
            step(builder, Step::Strip, &mut parts);
            let (zero, one) = (builder.index(0), builder.index(1));
            if !self.has_blocks {
                return [parts.concat(), vec![zero, zero]].concat();
            }
            let flushed = builder.value("arith.addi", &[flushed, one], index);
            let block = builder.index(BLOCK);
            let rest = builder.value("arith.remui", &[flushed, block], index);
            let is_full = builder.compare_int("eq", rest, zero);
            let added = loops::build_if(
                builder,
                is_full,
                &mut |builder| {
                    let mut parts = parts.clone();
                    step(builder, Step::Block, &mut parts);
                    parts.concat()
                },
                &mut |_| parts.concat(),
            );
            [added, vec![zero, flushed]].concat()
        };
        if !self.may_be_short {
            return flush(builder);
        }
        let pending = self.pending(builder, pending, points);
        let enough = builder.index(STRIP / 2);
        let is_long = builder.compare_int("sge", pending, enough);
        loops::build_if(builder, is_long, &mut flush, &mut |_| {
            [parts.concat(), vec![pending, flushed]].concat()
        })
    }

    /// Builds the loops with all parts in values, from those that the folds start from. The
    /// values of the accumulators alternate. `zeros` are their identities.
    #[allow(clippy::too_many_arguments)]
    pub fn build_in_values<'c>(
        &self,
        nest: &Nest<'c>,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        ranges: &[Var],
        tightening: &BTreeMap<Var, Vec<usize>>,
        (start, zeros): (&[Val<'c>], &[Val<'c>]),
        fold: &mut FoldStrip<'_, 'c>,
    ) -> Vec<Val<'c>> {
        let is_divided = |value: &usize| is_float_sum(nest, value % nest.accumulators.len());
        let divided: Vec<usize> = (0..start.len()).filter(is_divided).collect();
        let of_divided = |values: &[Val<'c>]| -> Vec<Val<'c>> {
            divided.iter().map(|number| values[*number]).collect()
        };
        let mut strip = start.to_vec();
        for number in &divided {
            strip[*number] = zeros[*number];
        }
        let mut parts = vec![of_divided(zeros); self.num_parts()];
        parts[0] = strip;
        parts[self.result()] = of_divided(start);
        // Strips have the values that are not divided too.
        let place_in = |part: usize, place: usize| if part == 0 { divided[place] } else { place };
        let parts = self.build(
            nest,
            builder,
            scope,
            ranges,
            tightening,
            parts,
            fold,
            &|builder, step, parts| {
                for (place, number) in divided.iter().enumerate() {
                    let before: Vec<_> =
                        step.parts().map(|part| parts[part][place_in(part, place)]).collect();
                    let after = step.apply(builder, zeros[*number], &before);
                    for (part, value) in step.parts().zip(after) {
                        parts[part][place_in(part, place)] = value;
                    }
                }
            },
        );
        let mut folded = parts[0].clone();
        for (number, value) in divided.iter().zip(&parts[self.result()]) {
            folded[*number] = *value;
        }
        folded
    }

    /// The number of terms in a strip after so many more points.
    fn pending<'c>(&self, builder: &Builder<'c>, before: Val<'c>, points: Val<'c>) -> Val<'c> {
        let index = builder.index_type();
        let mut terms = points;
        if self.chains != 1 {
            let round = builder.index(self.chains - 1);
            let rounded = builder.value("arith.addi", &[points, round], index);
            let chains = builder.index(self.chains);
            terms = builder.value("arith.divui", &[rounded, chains], index);
        }
        let per_point = builder.index(self.terms);
        let terms = builder.value("arith.muli", &[terms, per_point], index);
        builder.value("arith.addi", &[before, terms], index)
    }
}

/// The steps of a strip of a loop of `all` steps, about `most`: a divisor of them if there is
/// one near, the more even the better for unrolling.
fn equal_steps(all: i64, most: i64) -> i64 {
    let divisor = |range: RangeInclusive<i64>| {
        let divisors = range.filter(|steps| all % steps == 0);
        divisors.max_by_key(|steps| (steps.trailing_zeros(), *steps))
    };
    divisor(most / 2 + 1..=most).or_else(|| divisor(most + 1..=most + most / 2)).unwrap_or(most)
}

/// Divides values into parts as long as those given, and the values after them.
fn split<'c>(like: &[Vec<Val<'c>>], values: &[Val<'c>]) -> (Parts<'c>, Vec<Val<'c>>) {
    let mut rest = values;
    let mut parts = Vec::new();
    for part in like {
        let (first, others) = rest.split_at(part.len());
        parts.push(first.to_vec());
        rest = others;
    }
    (parts, rest.to_vec())
}
