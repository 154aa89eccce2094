//! Builds the loops of a [`Plan`].

use crate::{
    convert::loop_nest::{
        Choices,
        emit::{Nest, Output, Scope},
        loops::{at_point, reduction_loops, row_loop},
        order::Plan,
        outer::{Loop, MIN_SHARED, outer_loops},
        partial_sums::{self, PartialSums, Step},
        schedule,
        work::limit_threads,
    },
    loops,
};
use melior::ir::Type;
use std::collections::BTreeMap;
use tc_dialects::{
    imap::{Generic, Indexed, Start},
    mlir::{self, Builder, Val},
    report::Report,
};
use tc_ir::Var;

/// Elements of a row that are accumulated before the next strip of it: 2 KiB of
/// floats, so that what is accumulated and a panel of an input stay in cache.
pub(super) const STRIP: i64 = 512;

/// Range points that LLVM unrolls, so that vectors hold neighbouring results.
const MAX_UNROLLED: u64 = 16;

/// Replaces an `imap.generic` on buffers by loops.
pub(super) fn convert<'c>(generic: Generic<'c>, choices: Choices) -> Result<(), Report<'c>> {
    let op = generic.op();
    let mut nest = Nest::new(generic.into(), choices)?;
    limit_threads(&mut nest);
    let builder = Builder::before(op);
    let plan = schedule::plan(&nest, None).map_err(Report::error)?;
    let scope = nest.outer_scope(&builder);
    match plan {
        Plan::Registers { dims, ranges } => in_registers(&nest, &builder, &scope, &dims, &ranges),
        Plan::Rows { row, dims, ranges } => in_rows(&nest, &builder, &scope, row, &dims, &ranges),
    }
    mlir::erase(op);
    Ok(())
}

fn in_registers<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    dims: &[Var],
    ranges: &[Var],
) {
    let order = [dims, ranges].concat();
    let (tightening, tested) =
        nest.distribute_constraints(&order, &|var| matches!(var, Var::Range(_)));
    let mut loops: Vec<_> = dims.iter().copied().map(Loop::over).collect();
    // The innermost loop is for vectors, and threads share its strips if there are few others.
    let points = ranges.iter().map(|var| nest.intervals.of(*var).num_members().unwrap_or(u64::MAX));
    let is_for_vectors = points.fold(1, u64::saturating_mul) <= MAX_UNROLLED && 1 < loops.len();
    if let (true, Some(last)) = (is_for_vectors, loops.last_mut()) {
        *last = Loop::for_vectors(last.var);
    }
    let has_few = |var: Var| nest.extent(var).is_some_and(|extent| extent < MIN_SHARED);
    if nest.choices.parallel
        && is_for_vectors
        && let [outer, inner] = dims[..]
        && has_few(outer)
        && nest.bound_needs(inner).is_empty()
    {
        loops.insert(1, Loop::strips(inner, STRIP));
    }
    outer_loops(nest, builder, scope, &loops, &[], &mut |builder, scope| {
        at_point(nest, builder, scope, ranges, &tightening, &tested);
    });
}

fn in_rows<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    row: Var,
    dims: &[Var],
    ranges: &[Var],
) {
    let order = [ranges, &[row]].concat();
    let (tightening, tested) = nest.distribute_constraints(&order, &|_| true);
    let mut loops: Vec<_> = dims.iter().copied().map(Loop::over).collect();
    // Strips go outside the variables that their bounds do not depend on.
    let needs = nest.bound_needs(row);
    let place = dims.iter().rposition(|var| needs.contains(var)).map_or(0, |last| last + 1);
    loops.insert(place, Loop::strips(row, STRIP));
    let sums = PartialSums::of(nest, ranges, 1);
    let places = Places::of(nest, row, sums.as_ref());
    let rows = Rows { nest, row, tightening: &tightening, tested: &tested, places: &places };
    outer_loops(nest, builder, scope, &loops, &places.types, &mut |builder, scope| {
        rows.start(builder, scope);
        match &sums {
            None => rows.fold(builder, scope, ranges),
            Some(sums) => rows.fold_in_parts(builder, scope, ranges, sums),
        }
        rows.finish(builder, scope);
    });
}

/// The accumulators of a strip in memory: per accumulator, the number of a scratch buffer for each part of its sum, or
/// for the value. `None` is the destination, where it can hold the result.
struct Places<'c> {
    buffers: Vec<Vec<Option<usize>>>,
    /// The part that is the result, per accumulator.
    results: Vec<usize>,
    /// The types of the scratch buffers.
    types: Vec<Type<'c>>,
}

impl<'c> Places<'c> {
    fn of(nest: &Nest<'c>, row: Var, sums: Option<&PartialSums>) -> Self {
        let length = nest.extent(row).unwrap_or(STRIP).min(STRIP);
        let (mut buffers, mut results, mut types) = (Vec::new(), Vec::new(), Vec::new());
        for (number, accumulator) in nest.accumulators.iter().enumerate() {
            let sums = sums.filter(|_| partial_sums::is_float_sum(nest, number));
            let (num_parts, result) = sums.map_or((1, 0), |it| (it.num_parts(), it.result()));
            let mut buffer = |part| {
                (part != result || !nest.is_paired()).then(|| {
                    types.push(loops::memref(&[Some(length)], accumulator.ty));
                    types.len() - 1
                })
            };
            buffers.push((0..num_parts).map(&mut buffer).collect());
            results.push(result);
        }
        Self { buffers, results, types }
    }
}

/// A destination that has an element per value of an accumulator: its own if there is one.
fn output_of<'a, 'c>(nest: &'a Nest<'c>, accumulator: usize) -> &'a Output<'c> {
    &nest.outputs[accumulator.min(nest.outputs.len() - 1)]
}

/// A strip of a row that is accumulated in memory.
struct Rows<'a, 'c> {
    nest: &'a Nest<'c>,
    row: Var,
    tightening: &'a BTreeMap<Var, Vec<usize>>,
    tested: &'a [usize],
    places: &'a Places<'c>,
}

impl<'c> Rows<'_, 'c> {
    /// The buffer of a part of an accumulator, and the indices of the element at hand.
    fn place(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        number: usize,
        part: usize,
    ) -> (Val<'c>, Vec<Val<'c>>) {
        let output = output_of(self.nest, number);
        if let Some(own) = self.places.buffers[number][part] {
            let ((start, _), value) = (scope.strips[&self.row], scope.values[&self.row]);
            let index = builder.value("arith.subi", &[value, start], builder.index_type());
            return (scope.scratch[own], vec![index]);
        }
        let indices = self.nest.exprs(builder, scope, &output.map.results, true);
        (output.buffer, indices)
    }

    fn load(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        number: usize,
        part: usize,
    ) -> Val<'c> {
        let (buffer, indices) = self.place(builder, scope, number, part);
        loops::build_load(builder, buffer, &indices)
    }

    fn store(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        number: usize,
        part: usize,
        value: Val<'c>,
    ) {
        let (buffer, indices) = self.place(builder, scope, number, part);
        loops::build_store(builder, value, buffer, &indices);
    }

    /// Stores the values that the folds start from.
    fn start(&self, builder: &Builder<'c>, scope: &Scope<'c>) {
        let nest = self.nest;
        let is_there = |number: usize, part: usize| {
            part == self.places.results[number]
                && self.places.buffers[number][part].is_none()
                && nest.accumulators[number].start == Start::Destination(number)
        };
        let missing: Vec<_> = (0..nest.accumulators.len())
            .flat_map(|number| {
                (0..self.places.buffers[number].len()).map(move |part| (number, part))
            })
            .filter(|(number, part)| !is_there(*number, *part))
            .collect();
        if missing.is_empty() {
            return;
        }
        row_loop(nest, builder, scope, self.row, &[], false, &mut |builder, scope| {
            // One accumulator may start from the destination that another one overwrites.
            let values: Vec<_> = missing
                .iter()
                .map(|(number, part)| match *part == self.places.results[*number] {
                    true => nest.start(builder, scope, *number),
                    false => nest.accumulators[*number].build_identity(builder),
                })
                .collect();
            for ((number, part), value) in missing.iter().zip(values) {
                self.store(builder, scope, *number, *part, value);
            }
        });
    }

    /// Accumulates over the range variables.
    fn fold(&self, builder: &Builder<'c>, scope: &Scope<'c>, ranges: &[Var]) {
        let Self { nest, row, tightening, tested, .. } = *self;
        let tightened = tightening.get(&row).cloned().unwrap_or_default();
        let ranges = (ranges, false);
        reduction_loops(nest, builder, scope, ranges, tightening, &[], &mut |builder, scope, _| {
            row_loop(nest, builder, scope, row, &tightened, true, &mut |builder, scope| {
                nest.guarded(builder, scope, tested, &[], &mut |builder, scope| {
                    let held: Vec<_> = (0..nest.accumulators.len())
                        .map(|number| self.load(builder, scope, number, 0))
                        .collect();
                    for (number, value) in nest.fold(builder, scope, &held).into_iter().enumerate()
                    {
                        self.store(builder, scope, number, 0, value);
                    }
                    Vec::new()
                });
            });
            Vec::new()
        });
    }

    /// Accumulates over the range variables in partial sums.
    fn fold_in_parts(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        ranges: &[Var],
        sums: &PartialSums,
    ) {
        let nest = self.nest;
        let in_memory = vec![Vec::new(); sums.num_parts()];
        let mut fold = |builder: &Builder<'c>, scope: &Scope<'c>, ranges: &[Var], _: &[Val<'c>]| {
            self.fold(builder, scope, ranges);
            Vec::new()
        };
        let do_step = |builder: &Builder<'c>, step: Step, _: &mut Vec<Vec<Val<'c>>>| {
            row_loop(nest, builder, scope, self.row, &[], false, &mut |builder, scope| {
                for number in 0..nest.accumulators.len() {
                    if !partial_sums::is_float_sum(nest, number) {
                        continue;
                    }
                    let zero = nest.accumulators[number].build_identity(builder);
                    let parts = step.parts();
                    let before: Vec<_> =
                        parts.map(|part| self.load(builder, scope, number, part)).collect();
                    let after = step.apply(builder, zero, &before);
                    for (part, value) in step.parts().zip(after) {
                        self.store(builder, scope, number, part, value);
                    }
                }
            });
        };
        let tightening = self.tightening;
        sums.build(nest, builder, scope, ranges, tightening, in_memory, &mut fold, &do_step);
    }

    /// Runs the epilogue.
    fn finish(&self, builder: &Builder<'c>, scope: &Scope<'c>) {
        let nest = self.nest;
        if nest.generic.epilogue().is_none() {
            return;
        }
        row_loop(nest, builder, scope, self.row, &[], false, &mut |builder, scope| {
            let results = self.places.results.iter().enumerate();
            let folded: Vec<_> =
                results.map(|(number, part)| self.load(builder, scope, number, *part)).collect();
            nest.finish_and_store(builder, scope, folded);
        });
    }
}
