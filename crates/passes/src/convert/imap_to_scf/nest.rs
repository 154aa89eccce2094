//! Builds the loops of a [`Plan`].

use super::{
    collapse, epilogue, vectors,
    work::{self, Work},
};
use crate::{
    analysis::buffers::origin,
    convert::loop_nest::{
        Choices,
        emit::{Nest, Output, Scope},
        guards::{has_tests, split_loop},
        loops::{at_point, reduction_loops, row_loop},
        order::{self, Plan},
        partial_sums::{self, PartialSums, Step},
    },
    loops,
};
use melior::ir::{Type, ValueLike};
use std::collections::BTreeMap;
use tc_dialects::{
    imap::{Generic, Indexed, Start},
    mlir::{self, Builder, Op, Val},
    report::Report,
};
use tc_ir::Var;

/// Elements of a row that are accumulated before the next stretch of it: 2 KiB of
/// floats, so that what is accumulated and a panel of an input stay in cache.
pub(super) const STRETCH: i64 = 512;
/// At most this many pairs of buffers are declared distinct per operation.
const MAX_DISTINCT: usize = 16;

/// One loop: its variable, and the length of the stretches that it steps over, which
/// leave the points of a stretch to a loop inside.
#[derive(Copy, Clone, Debug)]
pub(super) struct Loop {
    pub var: Var,
    pub stretch: Option<i64>,
}

impl Loop {
    pub fn over(var: Var) -> Self {
        Self { var, stretch: None }
    }

    pub fn stretches(var: Var, length: i64) -> Self {
        Self { var, stretch: Some(length) }
    }
}

/// Replaces an `imap.generic` on buffers by loops.
pub(super) fn convert<'c>(generic: Generic<'c>, choices: Choices) -> Result<(), Report<'c>> {
    let op = generic.op();
    let mut nest = Nest::new(generic.into(), choices)?;
    let builder = Builder::before(op);
    collapse::collapse(&mut nest, &builder);
    let circular = || Report::error("has variables whose bounds depend on each other");
    let plan = order::plan(&nest).ok_or_else(circular)?;
    let tiling = vectors::tiling(&nest, &plan);
    let finishes_points = match (&plan, &tiling) {
        (_, Some(tiling)) => tiling.lane_is_range(),
        (Plan::Registers { ranges, .. }, None) => !ranges.is_empty(),
        (Plan::Rows { .. }, None) => false,
    };
    if finishes_points && let Some(parts) = epilogue::detach(generic) {
        return parts.into_iter().try_for_each(|part| convert(part, choices));
    }
    let scope = nest.outer_scope(&builder);
    if let Some(tiling) = tiling {
        vectors::build(&nest, &builder, &scope, &tiling);
        mlir::erase(op);
        return Ok(());
    }
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
    let loops: Vec<_> = dims.iter().copied().map(Loop::over).collect();
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
    // Stretches go outside the variables that their bounds do not depend on.
    let needs = nest.bound_needs(row);
    let place = dims.iter().rposition(|var| needs.contains(var)).map_or(0, |last| last + 1);
    loops.insert(place, Loop::stretches(row, STRETCH));
    let sums = PartialSums::of(nest, ranges, 1);
    let parts = PartBuffers::allocate(nest, builder, row, sums.as_ref());
    let rows = Rows { nest, row, tightening: &tightening, tested: &tested, parts };
    outer_loops(nest, builder, scope, &loops, &[], &mut |builder, scope| {
        rows.start(builder, scope);
        match &sums {
            None => rows.fold(builder, scope, ranges),
            Some(sums) => rows.fold_in_parts(builder, scope, ranges, sums),
        }
        rows.finish(builder, scope);
    });
}

/// The accumulators of a row in memory: per accumulator a buffer for each part of its sum, or one
/// for the value. `None` is the destination, where it can hold the result.
struct PartBuffers<'c> {
    buffers: Vec<Vec<Option<Val<'c>>>>,
    /// The part that is the result, per accumulator.
    results: Vec<usize>,
    /// Whether a buffer has the elements of one stretch. Otherwise it is like the destination: the
    /// stretches that run in parallel must not share one.
    hold_stretch: bool,
}

impl<'c> PartBuffers<'c> {
    fn allocate(
        nest: &Nest<'c>,
        builder: &Builder<'c>,
        row: Var,
        sums: Option<&PartialSums>,
    ) -> Self {
        let hold_stretch = !nest.choices.parallel;
        let length = nest.extent(row).unwrap_or(STRETCH).min(STRETCH);
        let allocate = |number: usize| {
            let buffer = output_of(nest, number).buffer;
            let shape = match hold_stretch {
                true => vec![Some(length)],
                false => mlir::shape(buffer.r#type()),
            };
            let dynamic: Vec<_> = (0..shape.len())
                .filter(|dim| shape[*dim].is_none())
                .map(|dim| builder.dim(buffer, dim))
                .collect();
            let ty = loops::memref(&shape, nest.accumulators[number].ty);
            loops::build_scratch(builder, ty, &dynamic)
        };
        let (mut buffers, mut results) = (Vec::new(), Vec::new());
        for number in 0..nest.accumulators.len() {
            let sums = sums.filter(|_| partial_sums::is_float_sum(nest, number));
            let (num_parts, result) = sums.map_or((1, 0), |it| (it.num_parts(), it.result()));
            let buffer = |part| (part != result || !nest.is_paired()).then(|| allocate(number));
            buffers.push((0..num_parts).map(buffer).collect());
            results.push(result);
        }
        Self { buffers, results, hold_stretch }
    }
}

/// A destination that has an element per value of an accumulator: its own if there is one.
fn output_of<'a, 'c>(nest: &'a Nest<'c>, accumulator: usize) -> &'a Output<'c> {
    &nest.outputs[accumulator.min(nest.outputs.len() - 1)]
}

/// A stretch of a row that is accumulated in memory.
struct Rows<'a, 'c> {
    nest: &'a Nest<'c>,
    row: Var,
    tightening: &'a BTreeMap<Var, Vec<usize>>,
    tested: &'a [usize],
    parts: PartBuffers<'c>,
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
        let own = self.parts.buffers[number][part];
        if let (Some(buffer), true) = (own, self.parts.hold_stretch) {
            let ((start, _), value) = (scope.stretches[&self.row], scope.values[&self.row]);
            let index = builder.value("arith.subi", &[value, start], builder.index_type());
            return (buffer, vec![index]);
        }
        let indices = self.nest.exprs(builder, scope, &output.map.results, true);
        (own.unwrap_or(output.buffer), indices)
    }

    fn load(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        number: usize,
        part: usize,
    ) -> Val<'c> {
        let (buffer, indices) = self.place(builder, scope, number, part);
        self.nest.load(builder, scope, buffer, &indices)
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
        self.nest.store(builder, scope, value, buffer, &indices);
    }

    /// Stores the values that the folds start from.
    fn start(&self, builder: &Builder<'c>, scope: &Scope<'c>) {
        let nest = self.nest;
        let is_there = |number: usize, part: usize| {
            part == self.parts.results[number]
                && self.parts.buffers[number][part].is_none()
                && nest.accumulators[number].start == Start::Destination(number)
        };
        let missing: Vec<_> = (0..nest.accumulators.len())
            .flat_map(|number| {
                (0..self.parts.buffers[number].len()).map(move |part| (number, part))
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
                .map(|(number, part)| match *part == self.parts.results[*number] {
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
            let results = self.parts.results.iter().enumerate();
            let folded: Vec<_> =
                results.map(|(number, part)| self.load(builder, scope, number, *part)).collect();
            nest.finish_and_store(builder, scope, folded);
        });
    }
}

/// The loops over the dimension variables, the first of them parallel if that was asked for
/// and there is enough work, which the program tests if it depends on sizes. Each thread has
/// scratch memory of these types.
pub(super) fn outer_loops<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    loops: &[Loop],
    scratch: &[Type<'c>],
    body: &mut dyn FnMut(&Builder<'c>, &Scope<'c>),
) {
    let independent = |it: &&Loop| nest.bound_needs(it.var).is_empty();
    // A loop that guards split is serial.
    let is_split = nest.is_map_form() && 1 < loops.len() && has_tests(nest);
    let most = 2.min(loops.len() - usize::from(is_split));
    let num_parallel = loops.iter().take_while(independent).take(most).count();
    let can = num_parallel != 0;
    if_enough_work(nest, builder, scope, can, &mut |builder, scope, in_parallel| {
        if in_parallel {
            parallel_loops(nest, builder, scope, loops, num_parallel, scratch, body);
        } else {
            let mut scope = scope.clone();
            scope.scratch =
                scratch.iter().map(|ty| loops::build_scratch(builder, *ty, &[])).collect();
            declare_distinct(nest, builder, &mut scope);
            serial_loops(nest, builder, &scope, loops, body);
        }
    });
}

/// Emits loops that run in parallel if that was asked for, they `can`, and there is enough work, which
/// the program tests if it depends on sizes.
pub(super) fn if_enough_work<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    can: bool,
    emit: &mut dyn FnMut(&Builder<'c>, &Scope<'c>, bool),
) {
    let mut scope = scope.clone();
    let work = match nest.choices.parallel && can {
        true => work::estimate(nest, builder, &mut scope),
        false => Work::Known(false),
    };
    match work {
        Work::Known(is_enough) => emit(builder, &scope, is_enough),
        Work::Computed(is_enough) => {
            loops::build_branches(builder, is_enough, &mut |builder, is_enough| {
                emit(builder, &scope, is_enough);
                Vec::new()
            });
        }
    }
}

pub(super) fn parallel_loops<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    loops: &[Loop],
    num_parallel: usize,
    scratch: &[Type<'c>],
    body: &mut dyn FnMut(&Builder<'c>, &Scope<'c>),
) {
    let mut scope = scope.clone();
    let (parallel, serial) = loops.split_at(num_parallel);
    let bounds: Vec<_> =
        parallel.iter().map(|it| loop_of(nest, builder, &mut scope, *it)).collect();
    loops::build_parallel(builder, &bounds, &mut |builder, values| {
        let mut scope = scope.clone();
        scope.scratch = scratch.iter().map(|ty| loops::build_stack(builder, *ty)).collect();
        declare_distinct(nest, builder, &mut scope);
        for ((it, value), (_, upper, _)) in parallel.iter().zip(values).zip(&bounds) {
            enter(builder, &mut scope, *it, *value, *upper);
        }
        serial_loops(nest, builder, &scope, serial, body);
    });
}

fn serial_loops<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    loops: &[Loop],
    body: &mut dyn FnMut(&Builder<'c>, &Scope<'c>),
) {
    let Some((first, rest)) = loops.split_first() else {
        return body(builder, scope);
    };
    let mut scope = scope.clone();
    let (lower, upper, step) = loop_of(nest, builder, &mut scope, *first);
    let mut emit = |builder: &Builder<'c>, scope: &Scope<'c>, (lower, upper), _: &[Val<'c>]| {
        loops::build_for(builder, (lower, upper, step), &[], &mut |builder, value, _| {
            let mut scope = scope.clone();
            enter(builder, &mut scope, *first, value, upper);
            serial_loops(nest, builder, &scope, rest, body);
            Vec::new()
        })
    };
    match rest.is_empty() && nest.is_map_form() {
        true => split_loop(nest, builder, &scope, (first.var, (lower, upper)), &[], &mut emit),
        false => emit(builder, &scope, (lower, upper), &[]),
    };
}

/// Lower bound, excluded upper bound and step of a loop.
fn loop_of<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &mut Scope<'c>,
    it: Loop,
) -> (Val<'c>, Val<'c>, Val<'c>) {
    let (lower, upper) = nest.loop_bounds(builder, scope, it.var, &[]);
    (lower, upper, builder.index(it.stretch.unwrap_or(1)))
}

/// Notes the value of a loop's variable, or the bounds of the stretch that begins there.
fn enter<'c>(
    builder: &Builder<'c>,
    scope: &mut Scope<'c>,
    it: Loop,
    value: Val<'c>,
    upper: Val<'c>,
) {
    let Some(length) = it.stretch else {
        scope.values.insert(it.var, value);
        return;
    };
    let index = builder.index_type();
    let length = builder.index(length);
    let end = builder.value("arith.addi", &[value, length], index);
    let end = builder.value("arith.minsi", &[end, upper], index);
    scope.stretches.insert(it.var, (value, end));
}

/// Declares every destination distinct from the other buffers, where they stem from
/// different arguments or allocations.
pub(super) fn declare_distinct<'c>(nest: &Nest<'c>, builder: &Builder<'c>, scope: &mut Scope<'c>) {
    let outputs: Vec<_> = nest.outputs.iter().map(|output| output.buffer).collect();
    let runtimes = nest.runtimes.iter().filter(|(_, map)| map.is_some()).map(|(value, _)| *value);
    let mut others: Vec<Val> =
        nest.inputs.iter().map(|input| input.buffer).chain(runtimes).collect();
    for block in [Some(nest.generic.body()), nest.generic.epilogue()].into_iter().flatten() {
        for op in mlir::ops(block) {
            mlir::walk(op, &mut |inner| {
                if mlir::is(inner, "memref.load") {
                    others.push(mlir::operand(inner, 0));
                }
            });
        }
    }
    let mut done = Vec::new();
    for (number, output) in outputs.iter().enumerate() {
        for other in outputs[number + 1..].iter().chain(&others) {
            let pair = (mlir::value_key(*output), mlir::value_key(*other));
            let (Some(first), Some(second)) = (origin(*output), origin(*other)) else { continue };
            if first == second || done.contains(&pair) || MAX_DISTINCT <= done.len() {
                continue;
            }
            done.push(pair);
            let current = |value: Val<'c>| scope.buffers.get(value).unwrap_or(value);
            let operands = [current(*output), current(*other)];
            let types = operands.map(|value| value.r#type());
            let op: Op = builder.op("memref.distinct_objects", &operands, &types);
            scope.buffers.insert(*output, mlir::result(op, 0));
            scope.buffers.insert(*other, mlir::result(op, 1));
        }
    }
}
