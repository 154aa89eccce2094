//! Sorts. A thread sorts a row of a few items by insertion. A block sorts a longer row by a bitonic network,
//! whose steps a barrier ends (Batcher, "Sorting networks and their applications", 1968):
//!
//! * in shared memory, if it holds the row;
//! * otherwise in the destination, if that keeps whole rows;
//! * otherwise in shared memory, batch by batch: the items kept so far and the next ones.
//!
//! Every exchange moves the item that must stand before to the lower place, so that a row of any length is
//! sorted as if items that stand behind all others filled it up. A network is not stable: items that the
//! comparator leaves undecided are ordered by where they stood, which is carried along.

use super::{Grid, Share};
use crate::{
    convert::{
        index_emitter::IndexMath,
        loop_nest::{
            Choices,
            sort::{MAX_RUN, Sorter, place},
        },
    },
    loops,
};
use melior::ir::ValueLike;
use tc_dialects::{
    imap::Sort,
    mlir::{self, Builder, Val},
    report::Report,
};

/// Bytes of shared memory that a block has on every GPU.
const SHARED_BYTES: i64 = 48 * 1024;
/// Bits of the place of an item in shared memory.
const PLACE_BITS: u32 = 32;

/// A value that each item carries: an element per input, and where it stood if that is needed.
struct Value<'c> {
    /// The elements; the place has none.
    input: Option<Val<'c>>,
    destination: Option<Val<'c>>,
    /// Shared memory; without it, the destination holds the value.
    shared: Option<Val<'c>>,
}

/// The rows that blocks sort.
struct Blocks<'a, 'c> {
    sorter: Sorter<'c>,
    grid: &'a Grid<'c>,
    num_items: i64,
    num_kept: i64,
    /// The items that are sorted at a time.
    capacity: i64,
    values: Vec<Value<'c>>,
}

/// Emits the code of an `imap.sort` on buffers.
pub(super) fn convert<'c>(
    sort: Sort<'c>,
    b: &Builder<'c>,
    grid: &Grid<'c>,
    choices: Choices,
) -> Result<(), Report<'c>> {
    let sorter = Sorter::new(sort, choices)?;
    let (Some(num_items), Some(num_kept)) = (sorter.extent, sorter.kept) else {
        return Err(Report::error("sorts rows of a dynamic size, which is not supported on GPUs"));
    };
    let shape = mlir::shape(sorter.inits[0].r#type());
    let dims: Vec<_> = (0..shape.len()).filter(|dim| *dim != sort.dim()).collect();
    let extents: Vec<_> = dims.iter().map(|dim| b.dim(sorter.inits[0], *dim)).collect();
    let mut total = b.index(1);
    for extent in &extents {
        total = b.value("arith.muli", &[total, *extent], b.index_type());
    }
    let each_row = |share: Share<'c>, body: &dyn Fn(&Builder<'c>, &[Val<'c>])| {
        let bounds = (share.first, total, share.step);
        loops::build_for(b, bounds, &[], &mut |b, row, _| {
            let mut indices = vec![b.index(0); shape.len()];
            let mut left = row;
            for (dim, extent) in dims.iter().zip(&extents).rev() {
                indices[*dim] = b.value("arith.remui", &[left, *extent], b.index_type());
                left = b.value("arith.divui", &[left, *extent], b.index_type());
            }
            body(b, &indices);
            Vec::new()
        });
    };
    if num_kept == 0 {
        return Ok(());
    }
    if num_items <= MAX_RUN {
        each_row(grid.groups(b, 1), &|b, indices| sorter.row(b, indices, &[], &[]));
        return Ok(());
    }
    let blocks = Blocks::new(sorter, b, grid, (num_items, num_kept))?;
    each_row(grid.groups(b, grid.block_size), &|b, indices| blocks.row(b, indices));
    Ok(())
}

impl<'a, 'c> Blocks<'a, 'c> {
    fn new(
        sorter: Sorter<'c>,
        b: &Builder<'c>,
        grid: &'a Grid<'c>,
        (num_items, num_kept): (i64, i64),
    ) -> Result<Self, Report<'c>> {
        let sort = sorter.sort;
        let inputs = sort.inputs();
        let mut values: Vec<_> = inputs
            .iter()
            .zip(&sorter.inits)
            .map(|(input, init)| Value {
                input: Some(*input),
                destination: Some(*init),
                shared: None,
            })
            .collect();
        if sort.is_stable() || sort.has_places() {
            let destination = sorter.inits.get(inputs.len()).copied();
            values.push(Value { input: None, destination, shared: None });
        }
        let place_type = b.int_type(PLACE_BITS);
        let ty = |value: &Value<'c>| {
            value.input.map_or(place_type, |input| mlir::element_type(input.r#type()))
        };
        let bytes = |value: &Value<'c>| i64::from(mlir::byte_width(ty(value)));
        let capacity = SHARED_BYTES / values.iter().map(bytes).sum::<i64>();
        let in_shared = |value: &mut Value<'c>, count: i64| {
            value.shared = Some(grid.shared(b, ty(value), count));
        };
        let fits = num_items <= capacity;
        if fits || num_kept < num_items {
            if !fits && capacity / 2 < num_kept {
                return Err(Report::error(format!(
                    "keeps {num_kept} of {num_items} items per row, for which shared memory is too \
                     small; keep whole rows, and take a slice of them"
                )));
            }
            let capacity = capacity.min(num_items);
            values.iter_mut().for_each(|value| in_shared(value, capacity));
            return Ok(Self { sorter, grid, num_items, num_kept, capacity, values });
        }
        // A destination of narrow integers, or none, cannot hold the places.
        let places = values.iter_mut().find(|value| {
            let narrow = |it: Val<'c>| {
                let bits = mlir::integer_width(mlir::element_type(it.r#type()));
                bits.is_some_and(|bits| bits < PLACE_BITS)
            };
            value.input.is_none() && value.destination.is_none_or(narrow)
        });
        if let Some(places) = places {
            if SHARED_BYTES / bytes(places) < num_items {
                return Err(Report::error(format!(
                    "sorts {num_items} items per row, for whose places shared memory is too small; \
                     add a destination of 'i{PLACE_BITS}' for them"
                )));
            }
            in_shared(places, num_items);
        }
        Ok(Self { sorter, grid, num_items, num_kept, capacity: num_items, values })
    }

    /// Sorts a row.
    fn row(&self, b: &Builder<'c>, row: &[Val<'c>]) {
        let (capacity, kept) = (b.index(self.capacity), b.index(self.num_kept));
        // The items of the row before have been read.
        barrier(b);
        self.fill(b, row, (b.index(0), capacity), b.index(0));
        self.network(b, row, capacity);
        if self.capacity < self.num_items {
            let (end, step) = (b.index(self.num_items), b.index(self.capacity - self.num_kept));
            loops::build_for(b, (capacity, end, step), &[], &mut |b, first, _| {
                let next = b.add_index(first, step);
                let next = b.value("arith.minsi", &[next, end], b.index_type());
                self.fill(b, row, (first, next), kept);
                self.network(b, row, b.add_index(kept, b.sub_index(next, first)));
                Vec::new()
            });
        }
        self.share(b, (b.index(0), kept), &mut |b, number| {
            for value in &self.values {
                let (Some(shared), Some(destination)) = (value.shared, value.destination) else {
                    continue;
                };
                let ty = mlir::element_type(destination.r#type());
                let mut element = loops::build_load(b, shared, &[number]);
                if value.input.is_none() {
                    element = b.value("arith.index_castui", &[element], b.index_type());
                    element = place(b, element, ty);
                }
                loops::build_store(b, element, destination, &self.at(row, number));
            }
        });
    }

    /// Loads the items of a row from the first to before the second number to a place in memory.
    fn fill(
        &self,
        b: &Builder<'c>,
        row: &[Val<'c>],
        (first, end): (Val<'c>, Val<'c>),
        target: Val<'c>,
    ) {
        self.share(b, (first, end), &mut |b, number| {
            let target = b.add_index(b.sub_index(number, first), target);
            for value in &self.values {
                let (memory, indices) = self.memory(value, row, target);
                let element = match value.input {
                    Some(input) => loops::build_load(b, input, &self.at(row, number)),
                    None => place(b, number, mlir::element_type(memory.r#type())),
                };
                loops::build_store(b, element, memory, &indices);
            }
        });
        barrier(b);
    }

    /// Sorts so many items in memory: sorted runs of each length are merged pairwise. The first step of a
    /// merge compares the ends of the two runs, the others halves.
    fn network(&self, b: &Builder<'c>, row: &[Val<'c>], count: Val<'c>) {
        let one = b.index(1);
        let double = |b: &Builder<'c>, value: Val<'c>| b.add_index(value, value);
        loops::build_while(
            b,
            &[one],
            &mut |b, carried| b.compare_int("slt", carried[0], count),
            &mut |b, carried| {
                let length = carried[0];
                self.step(b, row, (length, count), &|b, first, place| {
                    let last = b.sub_index(b.add_index(first, double(b, length)), one);
                    b.sub_index(last, double(b, place))
                });
                let half = |b: &Builder<'c>, value: Val<'c>| {
                    b.value("arith.shrui", &[value, one], b.index_type())
                };
                loops::build_while(
                    b,
                    &[half(b, length)],
                    &mut |b, carried| b.compare_int("ne", carried[0], b.index(0)),
                    &mut |b, carried| {
                        let distance = carried[0];
                        self.step(b, row, (distance, count), &|b, first, _| {
                            b.add_index(first, distance)
                        });
                        vec![half(b, distance)]
                    },
                );
                vec![double(b, length)]
            },
        );
    }

    /// Compares pairs of items and exchanges them. The first items of pairs are the first halves of
    /// stretches; `partner` gives the second from the first and from the place of the first in its half.
    fn step(
        &self,
        b: &Builder<'c>,
        row: &[Val<'c>],
        (half, count): (Val<'c>, Val<'c>),
        partner: &dyn Fn(&Builder<'c>, Val<'c>, Val<'c>) -> Val<'c>,
    ) {
        let mask = b.sub_index(half, b.index(1));
        self.share(b, (b.index(0), self.num_pairs(b, half, count)), &mut |b, pair| {
            let place = b.value("arith.andi", &[pair, mask], b.index_type());
            let first = b.sub_index(b.add_index(pair, pair), place);
            let second = partner(b, first, place);
            let is_there = b.compare_int("slt", second, count);
            loops::build_if(
                b,
                is_there,
                &mut |b| {
                    self.exchange(b, row, [first, second]);
                    Vec::new()
                },
                &mut |_| Vec::new(),
            );
        });
        barrier(b);
    }

    /// The number of pairs of a step, with those whose second item is behind the last: a power of two,
    /// `half`, for each stretch that begins.
    fn num_pairs(&self, b: &Builder<'c>, half: Val<'c>, count: Val<'c>) -> Val<'c> {
        let index = b.index_type();
        let both = b.add_index(half, half);
        let last = b.sub_index(b.add_index(count, both), b.index(1));
        let mask = b.sub_index(b.index(0), both);
        let rounded = b.value("arith.andi", &[last, mask], index);
        b.value("arith.shrui", &[rounded, b.index(1)], index)
    }

    /// Puts the one of two items first that must stand before.
    fn exchange(&self, b: &Builder<'c>, row: &[Val<'c>], numbers: [Val<'c>; 2]) {
        let item = |number: Val<'c>| -> Vec<_> {
            let values = self.values.iter().map(|value| self.memory(value, row, number));
            values.map(|(memory, indices)| loops::build_load(b, memory, &indices)).collect()
        };
        let [x, y] = numbers.map(item);
        let mut is_wrong = self.sorter.less(b, &y, &x);
        if self.values.last().is_some_and(|value| value.input.is_none()) {
            let is_right = self.sorter.less(b, &x, &y);
            let stood_behind = b.compare_int("ugt", x[x.len() - 1], y[y.len() - 1]);
            let decided = b.select(is_right, is_wrong, stood_behind);
            is_wrong = b.value("arith.ori", &[is_wrong, decided], b.int_type(1));
        }
        loops::build_if(
            b,
            is_wrong,
            &mut |b| {
                for (number, item) in numbers.into_iter().zip([&y, &x]) {
                    for (value, element) in self.values.iter().zip(item) {
                        let (memory, indices) = self.memory(value, row, number);
                        loops::build_store(b, *element, memory, &indices);
                    }
                }
                Vec::new()
            },
            &mut |_| Vec::new(),
        );
    }

    /// Where a value of an item is held.
    fn memory(
        &self,
        value: &Value<'c>,
        row: &[Val<'c>],
        number: Val<'c>,
    ) -> (Val<'c>, Vec<Val<'c>>) {
        match (value.shared, value.destination) {
            (Some(shared), _) => (shared, vec![number]),
            (None, destination) => {
                (destination.expect("a destination without shared memory"), self.at(row, number))
            }
        }
    }

    /// The indices of an item of a row in an operand.
    fn at(&self, row: &[Val<'c>], number: Val<'c>) -> Vec<Val<'c>> {
        let mut indices = row.to_vec();
        indices[self.sorter.sort.dim()] = number;
        indices
    }

    /// The loop over numbers that the threads of a block share.
    fn share(
        &self,
        b: &Builder<'c>,
        (first, end): (Val<'c>, Val<'c>),
        body: &mut dyn FnMut(&Builder<'c>, Val<'c>),
    ) {
        let lanes = self.grid.lanes(b, self.grid.block_size);
        let bounds = (b.add_index(first, lanes.first), end, lanes.step);
        loops::build_for(b, bounds, &[], &mut |b, number, _| {
            body(b, number);
            Vec::new()
        });
    }
}

fn barrier(b: &Builder) {
    b.op("gpu.barrier", &[], &[]);
}
