//! Rows of items, and the sort of a few of them by insertion.

use super::Choices;
use crate::{convert::index_emitter::IndexMath, loops};
use melior::ir::{Type, TypeLike, ValueLike, operation::OperationLike};
use tc_dialects::{
    imap::Sort,
    mlir::{self, Builder, Val, ValueMap},
    report::Report,
};

/// The most items that insertion sorts as a run. It compares an item with a quarter of the run on average:
/// for up to 16 items that is at most the log2 of their number, what merging them would take.
pub(in crate::convert) const MAX_RUN: i64 = 16;

/// The values of an item: an element per input, and its place if that is asked for.
pub(in crate::convert) type Item<'c> = Vec<Val<'c>>;

/// A row of items in memory.
#[derive(Clone)]
pub(in crate::convert) struct Row<'c> {
    /// A buffer per value of an item; an input has none for the place.
    pub buffers: Vec<Val<'c>>,
    /// The indices of an item, where that of the dimension of the row does not matter.
    pub indices: Vec<Val<'c>>,
    pub dim: usize,
}

/// An `imap.sort` taken apart.
pub(in crate::convert) struct Sorter<'c> {
    pub sort: Sort<'c>,
    pub choices: Choices,
    pub inits: Vec<Val<'c>>,
    /// The number of items in a row, and of those that are kept, if they are constants.
    pub extent: Option<i64>,
    pub kept: Option<i64>,
}

impl<'c> Sorter<'c> {
    /// Takes a sort on buffers apart.
    pub fn new(sort: Sort<'c>, choices: Choices) -> Result<Self, Report<'c>> {
        if sort.op().result_count() != 0 {
            return Err(Report::error("expected buffers as operands, found tensors"));
        }
        let (inputs, inits) = (sort.inputs(), sort.inits());
        let extent = |buffer: Val<'c>| mlir::shape(buffer.r#type())[sort.dim()];
        let (extent, kept) = (extent(inputs[0]), extent(inits[0]));
        Ok(Self { sort, choices, inits, extent, kept })
    }

    pub fn extent(&self, b: &Builder<'c>) -> Val<'c> {
        b.dim(self.sort.inputs()[0], self.sort.dim())
    }

    pub fn kept(&self, b: &Builder<'c>) -> Val<'c> {
        b.dim(self.inits[0], self.sort.dim())
    }

    /// Whether insertion alone sorts a row.
    pub fn inserts(&self) -> bool {
        let (Some(extent), Some(kept)) = (self.extent, self.kept) else { return false };
        extent <= MAX_RUN || kept <= i64::from(extent.ilog2())
    }

    /// Inserts every item into the target.
    pub fn insert_all(&self, b: &Builder<'c>, source: &Row<'c>, target: &Row<'c>) {
        let (zero, kept, one) = (b.index(0), self.kept(b), b.index(1));
        loops::build_for(b, (zero, kept, one), &[], &mut |b, number, _| {
            let item = self.load(b, source, number);
            self.insert(b, target, b.index(0), number, &item);
            Vec::new()
        });
        if self.kept == self.extent {
            return;
        }
        let worst = self.load(b, target, b.sub_index(kept, one));
        let Some(lanes) = self.lanes() else {
            self.insert_better(b, [source, target], (kept, self.extent(b)), &worst);
            return;
        };
        let num_others = b.sub_index(self.extent(b), kept);
        let rest = b.value("arith.remsi", &[num_others, b.index(lanes)], b.index_type());
        let end = b.sub_index(self.extent(b), rest);
        let worst =
            loops::build_for(b, (kept, end, b.index(lanes)), &worst, &mut |b, start, worst| {
                let bounds = (start, b.add_index(start, b.index(lanes)));
                let none = b.integer(b.int_type(1), 0);
                let is_any_better = loops::build_for(
                    b,
                    (bounds.0, bounds.1, one),
                    &[none],
                    &mut |b, number, any| {
                        let item = self.load(b, source, number);
                        let is_better = self.less(b, &item, worst);
                        vec![b.value("arith.ori", &[any[0], is_better], b.int_type(1))]
                    },
                )[0];
                loops::build_branches(b, is_any_better, &mut |b, is_any_better| {
                    if !is_any_better {
                        return worst.to_vec();
                    }
                    self.insert_better(b, [source, target], bounds, worst)
                })
            });
        self.insert_better(b, [source, target], (end, self.extent(b)), &worst);
    }

    /// Inserts those items of the source from `first` to before `end` that must stand before the last one
    /// of the target. Returns the last one then.
    fn insert_better(
        &self,
        b: &Builder<'c>,
        [source, target]: [&Row<'c>; 2],
        (first, end): (Val<'c>, Val<'c>),
        worst: &[Val<'c>],
    ) -> Item<'c> {
        let last = b.sub_index(self.kept(b), b.index(1));
        loops::build_for(b, (first, end, b.index(1)), worst, &mut |b, number, worst| {
            let item = self.load(b, source, number);
            let is_better = self.less(b, &item, worst);
            loops::build_branches(b, is_better, &mut |b, is_better| {
                if !is_better {
                    return worst.to_vec();
                }
                self.insert(b, target, b.index(0), last, &item);
                self.load(b, target, last)
            })
        })
    }

    /// The elements of the first input in a vector, if a row lies next to each other.
    fn lanes(&self) -> Option<i64> {
        let ty = self.sort.inputs()[0].r#type();
        let is_last = self.sort.dim() + 1 == mlir::shape(ty).len();
        let bits = 8 * i64::from(mlir::byte_width(mlir::element_type(ty)));
        let lanes = self.choices.vector_bits / bits;
        (is_last && mlir::has_unit_inner_stride(ty) && 1 < lanes).then_some(lanes)
    }

    /// Inserts an item into the sorted ones from `first` to before `end`, and moves those behind it by
    /// one.
    pub fn insert(
        &self,
        b: &Builder<'c>,
        row: &Row<'c>,
        first: Val<'c>,
        end: Val<'c>,
        item: &[Val<'c>],
    ) {
        let one = b.index(1);
        let place = loops::build_while(
            b,
            &[end],
            &mut |b, carried| {
                let has_before = b.compare_int("slt", first, carried[0]);
                loops::build_if(
                    b,
                    has_before,
                    &mut |b| {
                        let before = self.load(b, row, b.sub_index(carried[0], one));
                        vec![self.less(b, item, &before)]
                    },
                    &mut |_| vec![has_before],
                )[0]
            },
            &mut |b, carried| {
                let before = b.sub_index(carried[0], one);
                let moved = self.load(b, row, before);
                self.store(b, row, carried[0], &moved);
                vec![before]
            },
        )[0];
        self.store(b, row, place, item);
    }

    /// Whether the first of two items must stand before the second.
    pub fn less(&self, b: &Builder<'c>, x: &[Val<'c>], y: &[Val<'c>]) -> Val<'c> {
        let block = self.sort.comparator();
        let elements = x.iter().zip(y).flat_map(|(x, y)| [*x, *y]);
        let mut map: ValueMap = mlir::arguments(block).into_iter().zip(elements).collect();
        let ops = mlir::ops(block);
        let (terminator, ops) = ops.split_last().expect("a verified comparator has a terminator");
        for op in ops {
            b.copy(*op, &mut map);
        }
        let less = mlir::operand(*terminator, 0);
        map.get(less).unwrap_or(less)
    }

    pub fn load(&self, b: &Builder<'c>, row: &Row<'c>, number: Val<'c>) -> Item<'c> {
        let indices = row.at(number);
        let values = self.inits.iter().enumerate().map(|(value, init)| {
            let ty = mlir::element_type(init.r#type());
            match row.buffers.get(value) {
                Some(buffer) => loops::build_load(b, *buffer, &indices),
                None => place(b, number, ty),
            }
        });
        values.collect()
    }

    pub fn store(&self, b: &Builder<'c>, row: &Row<'c>, number: Val<'c>, item: &[Val<'c>]) {
        let indices = row.at(number);
        for (buffer, value) in row.buffers.iter().zip(item) {
            loops::build_store(b, *value, *buffer, &indices);
        }
    }
}

impl<'c> Row<'c> {
    fn at(&self, number: Val<'c>) -> Vec<Val<'c>> {
        let mut indices = self.indices.clone();
        indices[self.dim] = number;
        indices
    }
}

/// The place of an item as an element of a destination.
pub(in crate::convert) fn place<'c>(b: &Builder<'c>, number: Val<'c>, ty: Type<'c>) -> Val<'c> {
    if ty.is_index() { number } else { b.value("arith.index_cast", &[number], ty) }
}
