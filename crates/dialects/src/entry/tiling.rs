//! Trampolines of the interfaces for tiling operations of `imap`.

use crate::{
    ffi::guarded,
    imap::{
        AnyIndexed, Generic, Sort,
        partial::{self, Split},
        tiling::{self, Index, Operand, Reason, Span, Tiled},
    },
    mlir::{self, Builder, Op, Val},
    report::{RemarkKind, Report, remark},
};
use melior::ir::{BlockRef, OperationRef, ValueLike, operation::OperationLike};
use mlir_sys::{MlirBlock, MlirOperation, MlirValue};
use std::{ffi::c_void, ptr};

/// `TcIndex` of the bridge.
#[repr(C)]
#[derive(Copy, Clone)]
struct TcIndex {
    value: MlirValue,
    constant: i64,
}

/// `TcSpan` of the bridge.
#[repr(C)]
#[derive(Copy, Clone)]
struct TcSpan {
    offset: TcIndex,
    size: TcIndex,
}

/// `TcTile` of the bridge.
#[repr(C)]
struct TcTile {
    count: usize,
    spans: *const TcSpan,
}

/// `TcPlace` of the bridge.
#[repr(C)]
struct TcPlace {
    block: MlirBlock,
    before: MlirOperation,
}

/// `TcSplit` of the bridge.
#[repr(C)]
struct TcSplit {
    num_loops: usize,
    loops: *const usize,
    places: *const TcIndex,
    num_partials: usize,
    partials: *const MlirValue,
}

/// `TcTiled` of the bridge: receives the parts of a result.
#[repr(C)]
struct TcTiled {
    state: *mut c_void,
    span: extern "C" fn(*mut c_void, *const TcSpan),
    slice: extern "C" fn(*mut c_void, MlirOperation),
    op: extern "C" fn(*mut c_void, MlirOperation),
    value: extern "C" fn(*mut c_void, MlirValue),
}

impl TcIndex {
    fn of(index: Index) -> Self {
        match index {
            Index::Constant(constant) => {
                Self { value: MlirValue { ptr: ptr::null_mut() }, constant }
            }
            Index::Value(value) => Self { value: value.to_raw(), constant: 0 },
        }
    }

    /// # Safety
    /// The value is null or lives as long as `'c`.
    unsafe fn get<'c>(self) -> Index<'c> {
        if self.value.ptr.is_null() {
            return Index::Constant(self.constant);
        }
        // SAFETY: as for this function.
        Index::Value(unsafe { Val::from_raw(self.value) })
    }
}

/// # Safety
/// `data` points at `count` elements, unless that is 0.
unsafe fn elements<'a, T>(count: usize, data: *const T) -> &'a [T] {
    // SAFETY: as for this function.
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, count) } }
}

/// # Safety
/// The tile and its values are alive.
unsafe fn spans<'c>(tile: *const TcTile) -> Vec<Span<'c>> {
    // SAFETY: as for this function.
    let all = unsafe { elements((*tile).count, (*tile).spans) };
    // SAFETY: as for this function.
    let span = |it: &TcSpan| unsafe { Span { offset: it.offset.get(), size: it.size.get() } };
    all.iter().map(span).collect()
}

/// # Safety
/// The split and its values are alive.
unsafe fn split<'c>(split: *const TcSplit) -> (Split<'c>, Vec<Val<'c>>) {
    // SAFETY: as for this function.
    unsafe {
        let raw = &*split;
        let loops = elements(raw.num_loops, raw.loops).to_vec();
        let places = (!raw.places.is_null()).then(|| elements(raw.num_loops, raw.places));
        let places = places.map(|places| places.iter().map(|it| it.get()).collect());
        let partials = elements(raw.num_partials, raw.partials);
        let partials = partials.iter().map(|it| Val::from_raw(*it)).collect();
        (Split { loops, places }, partials)
    }
}

impl TcTiled {
    fn accept_spans(&self, spans: Vec<Span>) {
        for Span { offset, size } in spans {
            let span = TcSpan { offset: TcIndex::of(offset), size: TcIndex::of(size) };
            (self.span)(self.state, &raw const span);
        }
    }

    fn accept_tiled(&self, tiled: Tiled) {
        for slice in tiled.slices {
            (self.slice)(self.state, mlir::raw(slice));
        }
        (self.op)(self.state, mlir::raw(tiled.op));
    }
}

/// Reports why an operation is not tiled: an error if it was to be, a remark if it was tried.
fn report(op: Op, reason: &Reason, is_error: bool) {
    if is_error {
        return Report::op_error(op, reason).emit();
    }
    let function = mlir::ancestor(op, "func.func");
    let function = function.and_then(|it| mlir::string_attr(it, "sym_name")).unwrap_or_default();
    let arguments = [("Reason", reason.as_str())];
    remark(op.location(), RemarkKind::Missed, "imap-tile", "not-fused", function, &arguments);
}

/// An operation that can be tiled.
enum Tileable<'c> {
    Indexed(AnyIndexed<'c>),
    Sort(Sort<'c>),
}

impl<'c> Tileable<'c> {
    fn cast(op: Op<'c>) -> Option<Self> {
        let indexed = AnyIndexed::cast(op).map(Self::Indexed);
        indexed.or_else(|| Some(Self::Sort(Sort::cast(op)?)))
    }
}

/// Runs `work` on an operation with a builder at a place.
fn build(
    op: MlirOperation,
    place: *const TcPlace,
    is_error: bool,
    work: impl FnOnce(Tileable<'static>, Builder<'static>) -> Result<(), Reason>,
) -> bool {
    guarded(op, || {
        // SAFETY: operation and place are alive during the call.
        let (op, place): (Op<'static>, &TcPlace) = unsafe { (OperationRef::from_raw(op), &*place) };
        let Some(tileable) = Tileable::cast(op) else { return false };
        let builder = if place.before.ptr.is_null() {
            // SAFETY: as above.
            let block = unsafe { BlockRef::from_raw(place.block) };
            Builder::at_end(mlir::context_of(op), block, op.location())
        } else {
            // SAFETY: as above.
            Builder::before(unsafe { OperationRef::from_raw(place.before) }).located(op.location())
        };
        let result = work(tileable, builder);
        result.map_err(|reason| report(op, &reason, is_error)).is_ok()
    })
}

/// Runs `work` on an `imap.generic` with a builder at a place. A failure is an error.
fn build_partial(
    op: MlirOperation,
    place: *const TcPlace,
    work: impl FnOnce(Generic<'static>, Builder<'static>) -> Result<(), Reason>,
) -> bool {
    build(op, place, true, |tileable, builder| {
        let generic = match tileable {
            Tileable::Indexed(op) => Generic::cast(op.op()),
            Tileable::Sort(_) => None,
        };
        work(generic.ok_or("only an 'imap.generic' is reduced in parts")?, builder)
    })
}

/// Runs `work` on an operation.
fn query(op: MlirOperation, work: impl FnOnce(Tileable<'static>) -> bool) -> bool {
    // SAFETY: the operation is alive during the call.
    guarded(op, || Tileable::cast(unsafe { OperationRef::from_raw(op) }).is_some_and(work))
}

#[unsafe(no_mangle)]
extern "C" fn tcRustParallelLoops(
    op: MlirOperation,
    state: *mut c_void,
    accept: extern "C" fn(*mut c_void, bool),
) -> bool {
    query(op, |tileable| {
        let loops = match tileable {
            Tileable::Indexed(op) => tiling::parallel_loops(op),
            Tileable::Sort(sort) => sort.parallel_loops(),
        };
        loops.into_iter().for_each(|it| accept(state, it));
        true
    })
}

#[unsafe(no_mangle)]
extern "C" fn tcRustIterationDomain(
    op: MlirOperation,
    place: *const TcPlace,
    to: *const TcTiled,
) -> bool {
    build(op, place, true, |tileable, builder| {
        let spans = match tileable {
            Tileable::Indexed(op) => tiling::iteration_domain(op, builder),
            Tileable::Sort(sort) => sort.iteration_domain(builder),
        };
        // SAFETY: the receiver is alive during the call.
        unsafe { &*to }.accept_spans(spans);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn tcRustTile(
    op: MlirOperation,
    place: *const TcPlace,
    tile: *const TcTile,
    is_fused: bool,
    keep_operands: bool,
    to: *const TcTiled,
) -> bool {
    build(op, place, !is_fused, |tileable, builder| {
        // SAFETY: tile and receiver are alive during the call.
        let (tile, to) = unsafe { (spans(tile), &*to) };
        to.accept_tiled(match tileable {
            Tileable::Indexed(op) => tiling::tile(op, builder, &tile, keep_operands)?,
            Tileable::Sort(sort) => sort.tile(builder, &tile)?,
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn tcRustResultPosition(
    op: MlirOperation,
    place: *const TcPlace,
    result: usize,
    tile: *const TcTile,
    to: *const TcTiled,
) -> bool {
    build(op, place, true, |tileable, builder| {
        // SAFETY: tile and receiver are alive during the call.
        let (tile, to) = unsafe { (spans(tile), &*to) };
        to.accept_spans(match tileable {
            Tileable::Indexed(op) => tiling::result_position(op, builder, result, &tile)?,
            Tileable::Sort(sort) => sort.result_position(builder, result, &tile),
        });
        Ok(())
    })
}

fn operand(number: usize, is_result: bool) -> Operand {
    if is_result { Operand::Destination(number) } else { Operand::Number(number) }
}

#[unsafe(no_mangle)]
extern "C" fn tcRustHasTiles(
    op: MlirOperation,
    number: usize,
    is_result: bool,
    tile: *const TcTile,
) -> bool {
    query(op, |tileable| match tileable {
        Tileable::Indexed(op) => {
            // SAFETY: the tile is alive during the call.
            let tile = unsafe { spans(tile) };
            tiling::has_tile(op, operand(number, is_result), &tile)
        }
        Tileable::Sort(_) => true,
    })
}

#[unsafe(no_mangle)]
extern "C" fn tcRustDomainTile(
    op: MlirOperation,
    place: *const TcPlace,
    count: usize,
    numbers: *const u32,
    is_result: bool,
    tiles: *const TcTile,
    to: *const TcTiled,
) -> bool {
    build(op, place, false, |tileable, builder| {
        // SAFETY: tiles and receiver are alive during the call; there are `count` of each.
        let (numbers, tiles, to) =
            unsafe { (elements(count, numbers), elements(count, tiles), &*to) };
        let tiles: Vec<_> = numbers
            .iter()
            .zip(tiles)
            // SAFETY: as above.
            .map(|(number, tile)| (operand(*number as usize, is_result), unsafe { spans(tile) }))
            .collect();
        to.accept_spans(match tileable {
            Tileable::Indexed(op) => tiling::domain_tile(op, builder, &tiles)?,
            Tileable::Sort(sort) => sort.domain_tile(builder, &tiles)?,
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn tcRustInitialTensors(
    op: MlirOperation,
    place: *const TcPlace,
    count: usize,
    sizes: *const TcIndex,
    parts: *const TcSplit,
    to: *const TcTiled,
) -> bool {
    build_partial(op, place, |generic, builder| {
        // SAFETY: sizes, split and receiver are alive during the call.
        let (sizes, (split, _), to): (Vec<_>, _, _) = unsafe {
            (elements(count, sizes).iter().map(|it| it.get()).collect(), split(parts), &*to)
        };
        for tensor in partial::initial_tensors(generic, builder, &sizes, &split)? {
            (to.value)(to.state, tensor.to_raw());
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn tcRustPartialTile(
    op: MlirOperation,
    place: *const TcPlace,
    tile: *const TcTile,
    parts: *const TcSplit,
    to: *const TcTiled,
) -> bool {
    build_partial(op, place, |generic, builder| {
        // SAFETY: tile, split and receiver are alive during the call.
        let (tile, (split, partials), to) = unsafe { (spans(tile), split(parts), &*to) };
        to.accept_tiled(partial::tile(generic, builder, &partials, &tile, &split)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn tcRustPartialPosition(
    op: MlirOperation,
    place: *const TcPlace,
    result: usize,
    tile: *const TcTile,
    parts: *const TcSplit,
    to: *const TcTiled,
) -> bool {
    build_partial(op, place, |generic, builder| {
        // SAFETY: tile, split and receiver are alive during the call.
        let (tile, (split, _), to) = unsafe { (spans(tile), split(parts), &*to) };
        to.accept_spans(partial::result_position(generic, builder, result, &tile, &split)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn tcRustMerge(
    op: MlirOperation,
    place: *const TcPlace,
    parts: *const TcSplit,
    to: *const TcTiled,
) -> bool {
    build_partial(op, place, |generic, builder| {
        // SAFETY: split and receiver are alive during the call.
        let ((split, partials), to) = unsafe { (split(parts), &*to) };
        let op = partial::merge(generic, builder, &partials, &split)?;
        (to.op)(to.state, mlir::raw(op));
        Ok(())
    })
}
