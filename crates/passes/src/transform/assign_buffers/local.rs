//! A workspace that the function allocates itself.

use super::places::{Order, Piece, fixed_places};
use crate::{
    analysis::buffers::{results_in_arguments, static_bytes},
    loops::{ALIGNMENT, build_alloc, build_scratch, has_identity_layout, is_in_parallel, memref},
};
use melior::ir::{Type, ValueLike, attribute::DenseI64ArrayAttribute, operation::OperationLike};
use std::cmp::Reverse;
use tc_dialects::{
    imap::SCRATCH,
    mlir::{self, Blk, Builder, Op, Val},
};

/// A result of the function: memory that is free until the first use of the result.
struct Output<'c> {
    value: Val<'c>,
    bytes: i64,
    first_use: usize,
    /// The buffers that have its memory until then.
    pieces: Vec<Piece>,
}

/// A buffer that lives from its allocation to its deallocation in the same block.
struct Buffer<'c> {
    allocation: Op<'c>,
    deallocation: Op<'c>,
    piece: Piece,
}

/// Gives the buffers of a function places: in results that are not written yet, or in memory that the function allocates
/// once, tensors apart from scratch. Returns how many have one.
pub fn assign(function: Op) -> usize {
    let [block] = mlir::blocks(function, 0)[..] else { return 0 };
    let order = Order::of(function);
    let (mut buffers, mut are_apart) = (Vec::new(), false);
    mlir::walk(function, &mut |op| {
        buffers.extend(Buffer::of(op, &order));
        are_apart |= mlir::is(op, "memref.distinct_objects");
    });
    // LLVM takes that literally: parts of one object are none.
    if are_apart {
        return 0;
    }
    let num_buffers = buffers.len();
    buffers.sort_by_key(|it| Reverse(it.piece.bytes));
    let mut outputs = outputs(function, block, &order);
    buffers.retain(|buffer| !outputs.iter_mut().any(|output| output.hold(buffer)));
    let in_outputs = num_buffers - buffers.len();
    let is_scratch = |it: &Buffer| it.allocation.has_attribute(SCRATCH);
    let (scratch, tensors): (Vec<_>, Vec<_>) = buffers.into_iter().partition(is_scratch);
    let (Some(first), last) = (mlir::first(block), mlir::terminator(block)) else { return 0 };
    let mut count = in_outputs;
    // The memory of a single buffer is a workspace already.
    for (buffers, is_scratch) in
        [(tensors, false), (scratch, true)].into_iter().filter(|(it, _)| 1 < it.len())
    {
        count += buffers.len();
        let pieces: Vec<_> = buffers.iter().map(|it| it.piece).collect();
        let (places, end) = fixed_places(&pieces, ALIGNMENT);
        let start = Builder::before(first).located(function.location());
        let ty = memref(&[Some(end)], start.int_type(8));
        let workspace = match is_scratch {
            true => build_scratch(&start, ty, &[]),
            false => build_alloc(&start, ty),
        };
        Builder::before(last).op("memref.dealloc", &[workspace], &[]);
        for (buffer, place) in buffers.into_iter().zip(places) {
            let at = Builder::before(buffer.allocation);
            let place = at.index(place.unwrap_or(0));
            let ty = mlir::result(buffer.allocation, 0).r#type();
            let view = at.value("memref.view", &[workspace, place], ty);
            buffer.replace(view);
        }
    }
    count
}

/// The results of static shapes of a function, which have no value when it is called.
fn outputs<'c>(function: Op<'c>, block: Blk<'c>, order: &Order) -> Vec<Output<'c>> {
    let results = results_in_arguments(function);
    let arguments = mlir::arguments(block).into_iter();
    let arguments = arguments.filter(|it| results.contains(&mlir::value_key(*it)));
    let output = |value: Val<'c>| {
        let uses = mlir::uses(value).into_iter();
        // In a loop, a use in one iteration comes before all of the next one.
        let places =
            uses.filter_map(|(user, _)| Some(order.place(mlir::ancestor_in(user, block)?)));
        let first_use = places.min().unwrap_or(usize::MAX);
        let bytes = static_bytes(value.r#type()).filter(|_| has_identity_layout(value.r#type()))?;
        Some(Output { value, bytes, first_use, pieces: Vec::new() })
    };
    arguments.filter_map(output).collect()
}

impl<'c> Output<'c> {
    /// Gives a buffer the memory of the result, if it is free and has the type.
    fn hold(&mut self, buffer: &Buffer<'c>) -> bool {
        let ty = mlir::result(buffer.allocation, 0).r#type();
        let fits = mlir::element_type(ty) == mlir::element_type(self.value.r#type())
            && buffer.piece.bytes.is_some_and(|bytes| bytes <= self.bytes)
            && buffer.piece.life.1 < self.first_use
            && !self.pieces.iter().any(|it| it.overlaps(&buffer.piece));
        if fits {
            self.pieces.push(buffer.piece);
            let at = Builder::before(buffer.allocation);
            buffer.replace(cast(&at, self.value, ty));
        }
        fits
    }
}

impl<'c> Buffer<'c> {
    fn replace(&self, by: Val<'c>) {
        mlir::erase(self.deallocation);
        mlir::replace(self.allocation, &[by]);
    }

    fn of(allocation: Op<'c>, order: &Order) -> Option<Self> {
        if !mlir::is(allocation, "memref.alloc") {
            return None;
        }
        let bytes = static_bytes(mlir::result(allocation, 0).r#type())?;
        let uses = mlir::uses(mlir::result(allocation, 0)).into_iter();
        let frees: Vec<_> = uses.filter(|(user, _)| mlir::is(*user, "memref.dealloc")).collect();
        let [(deallocation, _)] = frees[..] else { return None };
        let piece = Piece {
            life: (order.place(allocation), order.place(deallocation)),
            bytes: Some(bytes),
        };
        (!is_in_parallel(allocation) && allocation.block() == deallocation.block())
            .then_some(Self { allocation, deallocation, piece })
    }
}

/// The first elements of a buffer as one of another shape.
fn cast<'c>(builder: &Builder<'c>, buffer: Val<'c>, ty: Type<'c>) -> Val<'c> {
    if buffer.r#type() == ty {
        return buffer;
    }
    let sizes: Vec<_> = mlir::shape(ty).into_iter().flatten().collect();
    let mut strides = vec![1; sizes.len()];
    for dim in (1..sizes.len()).rev() {
        strides[dim - 1] = strides[dim] * sizes[dim];
    }
    let list = |values: &[i64]| DenseI64ArrayAttribute::new(builder.context, values).into();
    let attributes = [
        ("static_offsets", list(&[0])),
        ("static_sizes", list(&sizes)),
        ("static_strides", list(&strides)),
        ("operandSegmentSizes", mlir::segments(builder.context, &[1, 0, 0, 0])),
    ];
    builder.value_with("memref.reinterpret_cast", &[buffer], ty, &attributes)
}
