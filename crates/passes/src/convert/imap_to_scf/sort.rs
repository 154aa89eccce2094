//! `imap.sort` on buffers becomes loops that sort one row after the other.
//!
//! All of them keep the order of items that the comparator leaves undecided, and stay inside their
//! memory whatever it answers. With n items in a row, of which k are kept:
//!
//! * *Insertion*, if k is at most log2 n, or n at most [`MAX_RUN`]: each item that must stand before
//!   the last one kept is inserted into the destination. For items in random order this is one
//!   comparison for most of them, and at worst as many as for sorting, k n. Items next to each other
//!   are compared a vector at a time, which LLVM makes of the loop, and one by one only if one of them
//!   must stand before.
//! * *Merging* otherwise: runs of a few items are sorted by insertion, and merged pairwise from one
//!   row of memory to another and back. If 2 k is less than n, 2 k items at a time: the k best so far
//!   and those after them that must stand before the last of these. That takes O(n log k) steps.
//!
//! The rows of a last dimension that is kept whole are sorted in the destination, others in scratch
//! memory. One row of it serves all rows of a thread.

use crate::{
    analysis::cost::{LOAD, WORD_BYTES, block_work, element_bytes},
    convert::{
        index_emitter::IndexMath,
        loop_nest::{
            Choices,
            sort::{MAX_RUN, Row, Sorter},
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
use tc_ir::expr::ceil_div;

/// Replaces an `imap.sort` on buffers by loops.
pub(super) fn convert<'c>(sort: Sort<'c>, choices: Choices) -> Result<(), Report<'c>> {
    let op = sort.op();
    let b = Builder::before(op);
    let sorter = Sorter::new(sort, choices)?;
    if sorter.kept.is_none() {
        // Without items there is no last one to compare with.
        let has_items = b.compare_int("sgt", sorter.kept(&b), b.index(0));
        loops::build_branches(&b, has_items, &mut |b, has_items| {
            if has_items {
                sorter.rows(b);
            }
            Vec::new()
        });
    } else if sorter.kept != Some(0) {
        sorter.rows(&b);
    }
    mlir::erase(op);
    Ok(())
}

impl<'c> Sorter<'c> {
    /// Whether the destination has room for a whole row, next to each other.
    fn sorts_in_place(&self) -> bool {
        self.kept.is_some()
            && self.extent == self.kept
            && self.sort.dim() + 1 == mlir::shape(self.inits[0].r#type()).len()
    }

    /// The loops over rows.
    fn rows(&self, b: &Builder<'c>) {
        let shape = mlir::shape(self.inits[0].r#type());
        let dims: Vec<_> = (0..shape.len()).filter(|dim| *dim != self.sort.dim()).collect();
        let num_parallel = dims.len().min(2);
        let emit = |b: &Builder<'c>, in_parallel: bool| {
            let (parallel, serial) = dims.split_at(if in_parallel { num_parallel } else { 0 });
            // Parallel iterations must not share memory, and cannot allocate it.
            let scratch: Vec<_> = (0..2).map(|number| self.scratch(b, number, parallel)).collect();
            let mut indices = vec![b.index(0); shape.len()];
            if parallel.is_empty() {
                return self.serial_rows(b, serial, &mut indices, &scratch, &[]);
            }
            let bounds: Vec<_> = parallel.iter().map(|dim| self.bounds(b, *dim)).collect();
            loops::build_parallel(b, &bounds, &mut |b, values| {
                let mut indices = indices.clone();
                for (dim, value) in parallel.iter().zip(values) {
                    indices[*dim] = *value;
                }
                self.serial_rows(b, serial, &mut indices, &scratch, values);
            });
        };
        if !self.choices.parallel || num_parallel == 0 {
            return emit(b, false);
        }
        // Vectors hold no more than one item.
        let lanes = (self.choices.vector_bits / 32).max(1).unsigned_abs();
        let threshold = (self.choices.parallel_threshold / lanes).saturating_mul(WORD_BYTES);
        let threshold = threshold.div_ceil(self.work_per_item());
        let threshold = i64::try_from(threshold).unwrap_or(i64::MAX);
        let shape = mlir::shape(self.sort.inputs()[0].r#type());
        let size =
            shape.iter().try_fold(1_i64, |size, extent| Some(size.saturating_mul((*extent)?)));
        if let Some(size) = size {
            return emit(b, threshold <= size);
        }
        let extents = (0..shape.len()).map(|dim| b.dim(self.sort.inputs()[0], dim));
        let size =
            extents.reduce(|size, extent| b.value("arith.muli", &[size, extent], b.index_type()));
        let size = size.unwrap_or_else(|| b.index(1));
        let is_enough = b.compare_int("sge", size, b.index(threshold));
        loops::build_branches(b, is_enough, &mut |b, is_enough| {
            emit(b, is_enough);
            Vec::new()
        });
    }

    /// The work per item: as many comparisons and moves as it takes to find its place.
    fn work_per_item(&self) -> u64 {
        let moves = LOAD * self.inits.iter().map(|init| element_bytes(*init)).sum::<u64>();
        let comparison = block_work(self.sort.comparator()) + moves;
        let num_comparisons = match self.extent {
            _ if self.inserts() => 1,
            Some(extent) => u64::from(extent.max(2).ilog2()),
            None => 1,
        };
        (comparison * num_comparisons).max(1)
    }

    fn bounds(&self, b: &Builder<'c>, dim: usize) -> (Val<'c>, Val<'c>, Val<'c>) {
        (b.index(0), b.dim(self.inits[0], dim), b.index(1))
    }

    fn serial_rows(
        &self,
        b: &Builder<'c>,
        dims: &[usize],
        indices: &mut Vec<Val<'c>>,
        scratch: &[Vec<Val<'c>>],
        thread: &[Val<'c>],
    ) {
        let Some((dim, rest)) = dims.split_first() else {
            return self.row(b, indices, scratch, thread);
        };
        loops::build_for(b, self.bounds(b, *dim), &[], &mut |b, value, _| {
            indices[*dim] = value;
            self.serial_rows(b, rest, indices, scratch, thread);
            Vec::new()
        });
    }

    /// Memory for the items that are merged, one row for each point of some dimensions; none where the
    /// destination serves.
    fn scratch(&self, b: &Builder<'c>, number: usize, parallel: &[usize]) -> Vec<Val<'c>> {
        if self.inserts() || (number == 0 && self.sorts_in_place()) {
            return Vec::new();
        }
        let capacity = self.capacity(b);
        let outer = mlir::shape(self.inits[0].r#type());
        let mut shape: Vec<_> = parallel.iter().map(|dim| outer[*dim]).collect();
        let mut extents: Vec<_> = parallel
            .iter()
            .filter(|dim| outer[**dim].is_none())
            .map(|dim| b.dim(self.inits[0], *dim))
            .collect();
        let constant = self.constant_capacity();
        shape.push(constant);
        extents.extend(constant.is_none().then_some(capacity));
        let allocate = |init: &Val<'c>| {
            let ty = loops::memref(&shape, mlir::element_type(init.r#type()));
            loops::build_scratch(b, ty, &extents)
        };
        self.inits.iter().map(allocate).collect()
    }

    fn constant_capacity(&self) -> Option<i64> {
        let (extent, kept) = (self.extent?, self.kept?);
        Some(kept.saturating_mul(2).min(extent))
    }

    /// The number of items that are sorted at a time.
    fn capacity(&self, b: &Builder<'c>) -> Val<'c> {
        if let Some(capacity) = self.constant_capacity() {
            return b.index(capacity);
        }
        let double = b.value("arith.muli", &[self.kept(b), b.index(2)], b.index_type());
        b.value("arith.minsi", &[double, self.extent(b)], b.index_type())
    }

    /// Sorts one row.
    pub fn row(
        &self,
        b: &Builder<'c>,
        indices: &[Val<'c>],
        scratch: &[Vec<Val<'c>>],
        thread: &[Val<'c>],
    ) {
        let dim = self.sort.dim();
        let row = |buffers: Vec<Val<'c>>| Row { buffers, indices: indices.to_vec(), dim };
        let (source, target) = (row(self.sort.inputs()), row(self.inits.clone()));
        if self.inserts() {
            return self.insert_all(b, &source, &target);
        }
        let in_scratch = |buffers: &[Val<'c>]| Row {
            buffers: buffers.to_vec(),
            indices: [thread, &[b.index(0)]].concat(),
            dim: thread.len(),
        };
        let other = in_scratch(&scratch[1]);
        if self.sorts_in_place() {
            return self.merge_sort(b, &source, [&target, &other], self.extent(b));
        }
        let work = in_scratch(&scratch[0]);
        if self.constant_capacity() == self.extent && self.extent.is_some() {
            self.merge_sort(b, &source, [&work, &other], self.extent(b));
        } else {
            self.sort_in_batches(b, &source, [&work, &other]);
        }
        self.copy(b, &work, &target, (b.index(0), self.kept(b)), b.index(0));
    }

    /// Leaves the first items of the source in order in the first of two rows of memory.
    fn sort_in_batches(&self, b: &Builder<'c>, source: &Row<'c>, rows: [&Row<'c>; 2]) {
        let (extent, kept, capacity) = (self.extent(b), self.kept(b), self.capacity(b));
        let last = b.sub_index(kept, b.index(1));
        let is_below = |b: &Builder<'c>, number: Val<'c>| b.compare_int("slt", number, extent);
        loops::build_while(
            b,
            &[b.index(0)],
            &mut |b, carried| is_below(b, carried[0]),
            &mut |b, carried| {
                let is_first = b.compare_int("eq", carried[0], b.index(0));
                let count = b.select(is_first, b.index(0), kept);
                let worst = self.load(b, rows[0], last);
                let filled = loops::build_while(
                    b,
                    &[carried[0], count],
                    &mut |b, carried| {
                        let has_room = b.compare_int("slt", carried[1], capacity);
                        b.and(is_below(b, carried[0]), has_room)
                    },
                    &mut |b, carried| {
                        let item = self.load(b, source, carried[0]);
                        let is_better =
                            loops::build_if(b, is_first, &mut |_| vec![is_first], &mut |b| {
                                vec![self.less(b, &item, &worst)]
                            })[0];
                        self.store(b, rows[0], carried[1], &item);
                        let next = b.add_index(carried[1], b.index(1));
                        vec![
                            b.add_index(carried[0], b.index(1)),
                            b.select(is_better, next, carried[1]),
                        ]
                    },
                );
                self.merge_sort(b, rows[0], rows, filled[1]);
                vec![filled[0]]
            },
        );
    }

    /// Sorts items of the source, which may be the first of the two rows, into that.
    fn merge_sort(&self, b: &Builder<'c>, source: &Row<'c>, rows: [&Row<'c>; 2], count: Val<'c>) {
        let (zero, one, run) = (b.index(0), b.index(1), b.index(self.run()));
        let bounded =
            |b: &Builder<'c>, end: Val<'c>| b.value("arith.minsi", &[end, count], b.index_type());
        loops::build_for(b, (zero, count, run), &[], &mut |b, start, _| {
            let end = bounded(b, b.add_index(start, run));
            loops::build_for(b, (start, end, one), &[], &mut |b, number, _| {
                let item = self.load(b, source, number);
                self.insert(b, rows[0], start, number, &item);
                Vec::new()
            });
            Vec::new()
        });
        loops::build_while(
            b,
            &[run],
            &mut |b, carried| b.compare_int("slt", carried[0], count),
            &mut |b, carried| {
                let mut width = carried[0];
                for (from, to) in [(rows[0], rows[1]), (rows[1], rows[0])] {
                    let double = b.add_index(width, width);
                    loops::build_for(b, (zero, count, double), &[], &mut |b, start, _| {
                        let middle = bounded(b, b.add_index(start, width));
                        let end = bounded(b, b.add_index(start, double));
                        self.merge(b, from, to, [start, middle, end]);
                        Vec::new()
                    });
                    width = double;
                }
                vec![width]
            },
        );
    }

    /// The length of the runs that are sorted by insertion. Merging goes in pairs of passes, so that it ends
    /// where it began: of a known number of items, a power of four runs wastes none.
    fn run(&self) -> i64 {
        let Some(count) = self.constant_capacity() else { return MAX_RUN / 2 };
        let mut num_runs = 1;
        while MAX_RUN < ceil_div(count, num_runs) {
            num_runs *= 4;
        }
        ceil_div(count, num_runs)
    }

    /// Merges two sorted runs, `start` to `middle` to `end`.
    fn merge(
        &self,
        b: &Builder<'c>,
        from: &Row<'c>,
        to: &Row<'c>,
        [start, middle, end]: [Val<'c>; 3],
    ) {
        let one = b.index(1);
        let ends = loops::build_while(
            b,
            &[start, middle, start],
            &mut |b, carried| {
                let has_left = b.compare_int("slt", carried[0], middle);
                let has_right = b.compare_int("slt", carried[1], end);
                b.and(has_left, has_right)
            },
            &mut |b, carried| {
                let (left, right) = (carried[0], carried[1]);
                let (x, y) = (self.load(b, from, left), self.load(b, from, right));
                let takes_right = self.less(b, &y, &x);
                let pairs = x.iter().zip(&y);
                let item: Vec<_> = pairs.map(|(x, y)| b.select(takes_right, *y, *x)).collect();
                self.store(b, to, carried[2], &item);
                let next_left = b.select(takes_right, left, b.add_index(left, one));
                let next_right = b.select(takes_right, b.add_index(right, one), right);
                vec![next_left, next_right, b.add_index(carried[2], one)]
            },
        );
        // One of the runs is used up. What is left of the other one stands behind.
        self.copy(b, from, to, (ends[0], middle), ends[2]);
        let left = b.sub_index(middle, ends[0]);
        self.copy(b, from, to, (ends[1], end), b.add_index(ends[2], left));
    }

    /// Copies the items from `first` to before `end` to a place of another row.
    fn copy(
        &self,
        b: &Builder<'c>,
        from: &Row<'c>,
        to: &Row<'c>,
        (first, end): (Val<'c>, Val<'c>),
        place: Val<'c>,
    ) {
        let shift = b.sub_index(place, first);
        loops::build_for(b, (first, end, b.index(1)), &[], &mut |b, number, _| {
            let item = self.load(b, from, number);
            self.store(b, to, b.add_index(number, shift), &item);
            Vec::new()
        });
    }
}
