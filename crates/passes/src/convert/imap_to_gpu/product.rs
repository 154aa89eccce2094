//! Products: folds of two inputs, each of which is read again along dimensions of the other one, as in matrix
//! products and convolutions.
//!
//! A block computes a tile of rows and columns. Step by step along the ranges, its threads copy the elements of
//! both inputs that the tile needs to shared memory, and each thread folds a few rows and columns of them in
//! registers. So an element comes from global memory once per tile.
//!
//! ```text
//! for the tiles of the block
//!   folded = identities
//!   for k0 = 0 to ranges step DEPTH
//!     barrier
//!     left[k, row], right[k, column] = elements of the inputs      a thread copies every n-th one
//!     barrier
//!     partial = identities
//!     for k = 0 to min(DEPTH, ranges - k0)
//!       partial[row, column] = partial[row, column] + body(left[k, row], right[k, column])
//!     folded = folded + partial
//!   destination[row, column] = start + folded
//! ```
//!
//! Rows are the dimension variables that only one input needs, columns those that only the other one needs: those
//! along which neighbouring elements of the result lie. Other dimensions have a tile per value. Several variables
//! together are one index. A constraint, such as the padding of a convolution, depends on the variables of one input. A
//! mask in shared memory stores the result of its test for each element. Source of the scheme: Volkov and Demmel, "Benchmarking
//! GPUs to Tune Dense Linear Algebra" (2008).

use super::{Grid, Space, divide, divide_up, remainder};
use crate::{
    convert::{
        index_emitter::IndexMath,
        loop_nest::{
            emit::{Nest, Scope, accessed},
            order,
        },
    },
    loops,
};
use melior::ir::ValueLike;
use std::{collections::BTreeSet, mem};
use tc_dialects::{
    imap::{self, Indexed},
    mlir::{self, Builder, Val},
};
use tc_ir::{Var, expr::ceil_div};

/// Points of the ranges that are in shared memory at a time.
const DEPTH: i64 = 16;
/// Threads of a block along the columns.
const ACROSS: i64 = 16;
/// The most rows, and columns, of a thread.
const MOST: [i64; 2] = [8, 4];
/// The fewest results of a thread for which shared memory pays.
const FEWEST: i64 = 4;

/// One of the two inputs.
struct Side {
    /// The number of the input.
    input: usize,
    /// The dimension variables that only this input needs, the innermost one last.
    dims: Vec<Var>,
    /// The numbers of the constraints that say where its elements are folded.
    constraints: Vec<usize>,
    /// Whether neighbouring elements lie along the ranges.
    is_along_ranges: bool,
    /// Threads along the dimensions of this side.
    threads: i64,
    /// Indices of its dimensions for a thread.
    per_thread: i64,
}

impl Side {
    /// Indices of its dimensions in a tile.
    fn tile(&self) -> i64 {
        self.threads * self.per_thread
    }

    /// The distance in shared memory of elements of neighbouring points of the ranges. It is odd if neighbouring
    /// threads store these, so that they use other banks.
    fn stride(&self) -> i64 {
        self.tile() + i64::from(self.is_along_ranges)
    }
}

/// How a product is divided.
pub(super) struct Product {
    sides: [Side; 2],
    /// The dimension variables that have a tile per value.
    batch: Vec<Var>,
    ranges: Vec<Var>,
}

impl Product {
    /// The division of a fold with these dimension and range variables for blocks of so many threads; `None` if it
    /// is no product, or too small. `blocks` blocks keep the GPU busy.
    pub fn of(
        nest: &Nest,
        dims: &[Var],
        ranges: &[Var],
        (block_size, blocks): (i64, i64),
    ) -> Option<Self> {
        let are_fixed = dims.iter().chain(ranges).all(|var| nest.bound_needs(*var).is_empty());
        let starts_alone =
            nest.accumulators.iter().all(|it| matches!(it.start, imap::Start::Identity));
        if nest.is_map_form()
            || !are_fixed
            || nest.keeps_order() && !starts_alone
            || depends_on_point(nest)
        {
            return None;
        }
        let arguments = mlir::arguments(nest.generic.body());
        let is_read = |number: &usize| !mlir::uses(arguments[*number]).is_empty();
        let [mut left, mut right] = (0..nest.inputs.len()).filter(is_read).collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let needs = |number: usize| nest.needs(&accessed(&nest.inputs[number].map));
        let is_along_result = |var: &Var| {
            let mut outputs = nest.outputs.iter();
            outputs.any(|it| order::step_along(nest, &it.map, *var) == Some(1))
        };
        if dims.iter().any(|var| is_along_result(var) && !needs(right).contains(var)) {
            (left, right) = (right, left);
        }
        let needs = [left, right].map(needs);
        let only = |own: &BTreeSet<Var>, other: &BTreeSet<Var>| -> Vec<Var> {
            let is_own = |var: &&Var| own.contains(var) && !other.contains(var);
            dims.iter().filter(is_own).copied().collect()
        };
        let (rows, columns) = (only(&needs[0], &needs[1]), only(&needs[1], &needs[0]));
        let is_batch = |var: &&Var| !rows.contains(var) && !columns.contains(var);
        let batch: Vec<_> = dims.iter().filter(is_batch).copied().collect();
        let is_shared = |var: &Var| needs.iter().any(|needs| needs.contains(var));
        if rows.is_empty() || columns.is_empty() || !ranges.iter().all(is_shared) {
            return None;
        }
        let mut constraints = [Vec::new(), Vec::new()];
        for (number, constraint) in nest.domain.constraints.iter().enumerate() {
            let needs = nest.needs(&[constraint.expr]);
            let is_free_of = |vars: &[Var]| !vars.iter().any(|var| needs.contains(var));
            let side = [&columns, &rows].iter().position(|other| is_free_of(other))?;
            constraints[side].push(number);
        }
        let count = |vars: &[Var]| nest.num_points(vars);
        if count(ranges).is_some_and(|count| count < DEPTH) {
            return None;
        }
        let counts = [count(&rows), count(&columns)];
        let threads = [block_size / ACROSS, ACROSS];
        let mut per_thread = MOST;
        for ((per_thread, count), threads) in per_thread.iter_mut().zip(counts).zip(threads) {
            // At most half of a tile lies outside.
            while 1 < *per_thread && count.is_some_and(|count| count <= threads * *per_thread / 2) {
                *per_thread /= 2;
            }
        }
        let tiles = |per_thread: [i64; 2]| {
            let along = |side: usize| {
                let tile = threads[side] * per_thread[side];
                counts[side].map(|count| ceil_div(count, tile))
            };
            along(0)?.checked_mul(along(1)?)?.checked_mul(count(&batch)?)
        };
        while tiles(per_thread).is_some_and(|tiles| tiles < blocks)
            && FEWEST < per_thread[0] * per_thread[1]
        {
            let larger = usize::from(per_thread[0] < per_thread[1]);
            per_thread[larger] /= 2;
        }
        if threads[0] == 0 || per_thread[0] * per_thread[1] < FEWEST {
            return None;
        }
        let mut ranges = ranges.to_vec();
        if !nest.keeps_order() {
            // Neighbouring points of the ranges are to be neighbouring elements.
            let depth = |var: &Var| -> usize {
                let depth = |number: usize| {
                    let mut subscripts = nest.inputs[number].map.results.iter();
                    subscripts.rposition(|it| nest.needs(&[*it]).contains(var)).unwrap_or(0)
                };
                depth(left) + depth(right)
            };
            ranges.sort_by_key(depth);
        }
        let mut side = |number: usize, input: usize, dims: Vec<Var>| {
            let map = &nest.inputs[input].map;
            let is_along = |var: Option<&Var>| {
                var.is_some_and(|var| order::step_along(nest, map, *var) == Some(1))
            };
            let is_along_ranges = is_along(ranges.last()) && !is_along(dims.last());
            let (threads, per_thread) = (threads[number], per_thread[number]);
            let constraints = mem::take(&mut constraints[number]);
            Side { input, dims, constraints, is_along_ranges, threads, per_thread }
        };
        let sides = [side(0, left, rows), side(1, right, columns)];
        Some(Self { sides, batch, ranges })
    }

    /// Emits the code.
    pub fn build<'c>(
        &self,
        nest: &Nest<'c>,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        grid: &Grid<'c>,
    ) {
        let mut scope = scope.clone();
        let batch = Space::new(nest, builder, &mut scope, &self.batch);
        let ranges = Space::new(nest, builder, &mut scope, &self.ranges);
        let mut spaces = Vec::new();
        let mut tiles = batch.total;
        let mut counts = Vec::new();
        for side in &self.sides {
            let space = Space::new(nest, builder, &mut scope, &side.dims);
            let count = divide_up(builder, space.total, side.tile());
            tiles = builder.value("arith.muli", &[tiles, count], builder.index_type());
            counts.push(count);
            spaces.push(space);
        }
        let shared = |side: &Side| {
            grid.shared_like(builder, nest.inputs[side.input].buffer, DEPTH * side.stride())
        };
        let code = Code {
            product: self,
            nest,
            grid,
            ranges,
            spaces,
            shared: self.sides.iter().map(shared).collect(),
            masks: self.sides.iter().map(|side| mask(builder, grid, side)).collect(),
            threads: [
                divide(builder, grid.thread, ACROSS),
                remainder(builder, grid.thread, ACROSS),
            ],
        };
        let bounds = (grid.block, tiles, grid.num_blocks);
        loops::build_for(builder, bounds, &[], &mut |builder, tile, _| {
            let index = builder.index_type();
            let mut left = tile;
            let mut firsts = Vec::new();
            for (side, count) in self.sides.iter().zip(&counts).rev() {
                let number = builder.value("arith.remui", &[left, *count], index);
                left = builder.value("arith.divui", &[left, *count], index);
                firsts.push(builder.scale_index(number, side.tile()));
            }
            firsts.reverse();
            let mut scope = scope.clone();
            batch.enter(builder, &mut scope, left, 1);
            code.tile(builder, &scope, &firsts);
            Vec::new()
        });
    }
}

/// Whether the body asks for the point at which it is evaluated.
fn depends_on_point(nest: &Nest) -> bool {
    let mut depends = false;
    for op in mlir::ops(nest.generic.body()) {
        mlir::walk(op, &mut |inner| {
            depends |= mlir::is(inner, "imap.index") || mlir::is(inner, imap::Inside::NAME);
        });
    }
    depends
}

/// Shared memory for whether the constraints of an input hold, a byte per element; `None` if there are none.
fn mask<'c>(builder: &Builder<'c>, grid: &Grid<'c>, side: &Side) -> Option<Val<'c>> {
    let byte = || grid.shared(builder, builder.int_type(8), DEPTH * side.stride());
    (!side.constraints.is_empty()).then(byte)
}

/// The values that the code of a product uses everywhere.
struct Code<'a, 'c> {
    product: &'a Product,
    nest: &'a Nest<'c>,
    grid: &'a Grid<'c>,
    ranges: Space<'c>,
    /// The dimensions of each side.
    spaces: Vec<Space<'c>>,
    shared: Vec<Val<'c>>,
    masks: Vec<Option<Val<'c>>>,
    /// The number of the thread among those along each side.
    threads: [Val<'c>; 2],
}

impl<'c> Code<'_, 'c> {
    /// A tile from these indices of both sides on.
    fn tile(&self, builder: &Builder<'c>, scope: &Scope<'c>, firsts: &[Val<'c>]) {
        let Self { product, nest, .. } = self;
        let [rows, columns] = &product.sides;
        let num_results = (rows.per_thread * columns.per_thread) as usize;
        let identities: Vec<_> =
            nest.accumulators.iter().map(|it| it.build_identity(builder)).collect();
        let all = identities.repeat(num_results);
        let width = identities.len();
        let bounds = (builder.index(0), self.ranges.total, builder.index(DEPTH));
        let folded = loops::build_for(builder, bounds, &all, &mut |builder, first, carried| {
            builder.op("gpu.barrier", &[], &[]);
            for (number, side) in product.sides.iter().enumerate() {
                self.copy(builder, scope, number, side, (firsts[number], first));
            }
            builder.op("gpu.barrier", &[], &[]);
            let left = builder.sub_index(self.ranges.total, first);
            let count =
                builder.value("arith.minsi", &[left, builder.index(DEPTH)], builder.index_type());
            let bounds = (builder.index(0), count, builder.index(1));
            let is_carried = nest.keeps_order();
            let before = if is_carried { carried } else { &all };
            let partial = loops::build_for(builder, bounds, before, &mut |builder, k, carried| {
                self.step(builder, scope, k, carried)
            });
            if is_carried {
                return partial;
            }
            let pairs = carried.chunks(width).zip(partial.chunks(width));
            pairs.flat_map(|(a, b)| nest.combine(builder, &mut scope.clone(), a, b)).collect()
        });
        for (place, folded) in folded.chunks(width).enumerate() {
            let own = [place as i64 / columns.per_thread, place as i64 % columns.per_thread];
            let mut scope = scope.clone();
            let mut are_inside = builder.integer(builder.int_type(1), 1);
            let mut points = Vec::new();
            for (number, side) in product.sides.iter().enumerate() {
                let offset = builder.index(own[number] * side.threads);
                let in_tile = builder.add_index(self.threads[number], offset);
                let point = builder.add_index(firsts[number], in_tile);
                let is_inside = builder.compare_int("slt", point, self.spaces[number].total);
                are_inside = builder.and(are_inside, is_inside);
                points.push(point);
            }
            loops::build_if(
                builder,
                are_inside,
                &mut |builder| {
                    for (space, point) in self.spaces.iter().zip(&points) {
                        space.enter(builder, &mut scope, *point, 1);
                    }
                    nest.start_and_store(builder, &mut scope, folded);
                    Vec::new()
                },
                &mut |_| Vec::new(),
            );
        }
    }

    /// Folds the elements of one point of the ranges, `k` of those in shared memory.
    fn step(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        k: Val<'c>,
        carried: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let sides = self.product.sides.iter().zip(self.threads);
        let starts: Vec<_> = sides
            .map(|(side, thread)| {
                let row = builder.scale_index(k, side.stride());
                builder.add_index(row, thread)
            })
            .collect();
        let load = |number: usize, buffer: Val<'c>| -> Vec<Val<'c>> {
            let side = &self.product.sides[number];
            let load = |own: i64| {
                let offset = builder.index(own * side.threads);
                let place = builder.add_index(starts[number], offset);
                let ty = mlir::element_type(buffer.r#type());
                builder.value("memref.load", &[buffer, place], ty)
            };
            (0..side.per_thread).map(load).collect()
        };
        let elements = [0, 1].map(|number| load(number, self.shared[number]));
        let zero = builder.integer(builder.int_type(8), 0);
        let holds = [0, 1].map(|number| {
            let bytes = load(number, self.masks[number]?).into_iter();
            Some(bytes.map(|byte| builder.compare_int("ne", byte, zero)).collect::<Vec<_>>())
        });
        let [left, right] = &self.product.sides;
        let width = self.nest.accumulators.len();
        let num_columns = elements[1].len();
        let fold = |(place, folded): (usize, &[Val<'c>])| {
            let own = [place / num_columns, place % num_columns];
            let [a, b] = [0, 1].map(|number| elements[number][own[number]]);
            let mut scope = scope.clone();
            scope.loaded = [(left.input, a), (right.input, b)].into();
            let mut values = self.nest.fold(builder, &mut scope, folded);
            for (holds, own) in holds.iter().zip(own) {
                if let Some(holds) = holds {
                    let pairs = values.iter().zip(folded);
                    values =
                        pairs.map(|(new, old)| builder.select(holds[own], *new, *old)).collect();
                }
            }
            values
        };
        carried.chunks(width).enumerate().flat_map(fold).collect()
    }

    /// Copies the elements of an input that a tile needs to shared memory, from these points of its dimensions and
    /// of the ranges on. What lies outside, or where constraints fail, is zero.
    fn copy(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        number: usize,
        side: &Side,
        (first, first_range): (Val<'c>, Val<'c>),
    ) {
        let Self { nest, grid, .. } = self;
        let (buffer, space) = (self.shared[number], &self.spaces[number]);
        let input = &nest.inputs[side.input];
        let bounds =
            (grid.thread, builder.index(side.tile() * DEPTH), builder.index(grid.block_size));
        loops::build_for(builder, bounds, &[], &mut |builder, place, _| {
            let inner = if side.is_along_ranges { DEPTH } else { side.tile() };
            let [slow, fast] = [divide(builder, place, inner), remainder(builder, place, inner)];
            let [own, k] = if side.is_along_ranges { [slow, fast] } else { [fast, slow] };
            let point = builder.add_index(first, own);
            let range = builder.add_index(first_range, k);
            let is_own = builder.compare_int("slt", point, space.total);
            let is_range = builder.compare_int("slt", range, self.ranges.total);
            let is_inside = builder.and(is_own, is_range);
            let byte = |value| builder.integer(builder.int_type(8), value);
            let nothing = [imap::build_fill(builder, None, mlir::element_type(buffer.r#type()))];
            let [yes, no] = [byte(1), byte(0)];
            let mask = self.masks[number];
            let nothing = [&nothing[..], mask.map(|_| no).as_slice()].concat();
            let copied = loops::build_if(
                builder,
                is_inside,
                &mut |builder| {
                    let mut scope = scope.clone();
                    space.enter(builder, &mut scope, point, 1);
                    self.ranges.enter(builder, &mut scope, range, 1);
                    let (map, fill) = (&input.map, input.fill);
                    nest.guarded(
                        builder,
                        &scope,
                        &side.constraints,
                        &nothing,
                        &mut |builder, scope| {
                            let element = nest.load_at(builder, scope, input.buffer, map, fill);
                            [&[element], mask.map(|_| yes).as_slice()].concat()
                        },
                    )
                },
                &mut |_| nothing.clone(),
            );
            let row = builder.scale_index(k, side.stride());
            let place = builder.add_index(row, own);
            for (value, buffer) in
                copied.into_iter().zip([Some(buffer), mask].into_iter().flatten())
            {
                builder.op("memref.store", &[value, buffer, place], &[]);
            }
            Vec::new()
        });
    }
}
