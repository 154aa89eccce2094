//! `imap-assign-buffers`: all buffers of a function become parts of one workspace.
//!
//! The function takes the workspace as its last argument. A second function, `<name>.workspace`, takes the other
//! arguments and stores the number of bytes of the workspace through a pointer. Buffers whose lifetimes do not
//! overlap may have the same place. A buffer that is allocated in a loop has one place for all iterations.
//!
//! Before:
//!
//! ```mlir
//! func.func @f(%x: memref<?xf32>) -> i32 attributes {llvm.emit_c_interface} {
//!   %n = memref.dim %x, %c0 : memref<?xf32>
//!   %a = memref.alloc(%n) : memref<?xf32>
//!   .. // uses of %a
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! func.func @f(%x: memref<?xf32>, %workspace: memref<?xi8>) -> i32 attributes {llvm.emit_c_interface} {
//!   %n = memref.dim %x, %c0 : memref<?xf32>
//!   %a = memref.view %workspace[%c0][%n] : memref<?xi8> to memref<?xf32>
//!   .. // uses of %a
//! }
//! func.func @f.workspace(%x: memref<?xf32>, %bytes: !llvm.ptr) -> i32 attributes {llvm.emit_c_interface}
//! ```
//!
//! The lifetime of a buffer reaches from its allocation to the end of the last operation in the same block that
//! uses it, or something in which it may be. A buffer that leaves its block, through a yield, lives as long as the
//! buffers that the operation around gives. Buffers of static sizes get the lowest place that is free during their
//! lifetimes, the largest buffers first. Behind them are slots of dynamic size, each for buffers whose
//! lifetimes do not overlap.
//!
//! Limit: sizes must be computed from the sizes of the arguments.
//!
//! Remark: the buffers of a function, and the bytes of those with static sizes.

use crate::analysis::buffers::{IS_WORKSPACE, VIEWS};
use melior::ir::{
    BlockLike, Type, ValueLike,
    operation::OperationLike,
    r#type::{FunctionType, MemRefType},
};
use std::collections::{HashMap, HashSet};
use tc_dialects::{
    mlir::{self, Builder, Op, Val, ValueMap},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, Report, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-assign-buffers",
    summary: "Assign parts of one workspace to all buffers of a function",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith", "func", "llvm", "memref"],
    run,
};

/// What the name of the function ends with that computes the bytes of a workspace.
pub const WORKSPACE: &str = ".workspace";
/// The bytes that places are multiples of: the widest access of a device, and a line of its caches.
const ALIGNMENT: i64 = 256;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let functions = mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func"));
    for function in functions.filter(|it| mlir::body(*it, 0).is_some()) {
        pass.enter(function);
        assign(function).map_err(|report| {
            report.emit();
            Failure
        })?;
    }
    Ok(())
}

/// A buffer of a function.
struct Buffer<'c> {
    allocation: Op<'c>,
    piece: Piece,
}

/// The part of a workspace that a buffer needs.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The first and the last of the places in the program at which it lives.
    life: (usize, usize),
    /// The bytes, if the sizes are static.
    bytes: Option<i64>,
}

impl Piece {
    fn overlaps(&self, other: &Self) -> bool {
        self.life.0 <= other.life.1 && other.life.0 <= self.life.1
    }
}

fn assign<'c>(function: Op<'c>) -> Result<(), Report<'c>> {
    let entry = mlir::body(function, 0).expect("functions with a body");
    let order = Order::of(function);
    let mut buffers = Vec::new();
    let mut failed = None;
    mlir::walk(function, &mut |op| {
        if mlir::is(op, "memref.alloc") || mlir::is(op, "memref.alloca") {
            match bytes(op) {
                Ok(bytes) => {
                    let piece = Piece { life: order.life(op), bytes };
                    buffers.push(Buffer { allocation: op, piece });
                }
                Err(report) => failed = Some(report),
            }
        }
    });
    if let Some(report) = failed {
        return Err(report);
    }
    let inputs = mlir::arguments(entry);
    let pieces: Vec<_> = buffers.iter().map(|it| it.piece).collect();
    let (fixed, end) = fixed_places(&pieces);
    let slots = slots(&buffers);

    let context = mlir::context_of(function);
    let workspace: Type = MemRefType::contiguous(
        Type::from(melior::ir::r#type::IntegerType::new(context, 8)),
        &[i64::MIN],
        None,
    )
    .into();
    let first = mlir::first(entry).expect("a block has a terminator");
    let builder = Builder::before(first).located(function.location());
    let size_function = size_function(function, &buffers, &slots, end, &inputs)?;
    let argument = mlir::val(entry.add_argument(workspace, function.location()));
    let mut types: Vec<_> = inputs.iter().map(|it| it.r#type()).collect();
    types.push(workspace);
    set_type(function, &types);
    let starts = starts(&builder, &mut ValueMap::default(), &buffers, &slots, end)?;
    mlir::move_before(size_function, function);
    for (number, buffer) in buffers.iter().enumerate() {
        let op = buffer.allocation;
        let at = Builder::before(op);
        let start = match fixed[number] {
            Some(place) => at.index(place),
            None => {
                let slot = slots.iter().position(|slot| slot.contains(&number));
                starts[slot.expect("a slot for each buffer of dynamic size")]
            }
        };
        let sizes = mlir::operands(op);
        let operands = [&[argument, start], &sizes[..]].concat();
        let view = at.value("memref.view", &operands, mlir::result(op, 0).r#type());
        mlir::replace(op, &[view]);
    }
    let name = mlir::string_attr(function, "sym_name").unwrap_or_default();
    remark(
        function.location(),
        RemarkKind::Analysis,
        PASS.argument,
        "buffers",
        name,
        &[("Buffers", &buffers.len().to_string()), ("StaticBytes", &end.to_string())],
    );
    Ok(())
}

/// Sets the inputs of a function to values of these types. An argument without attributes may be new.
fn set_type<'c>(function: Op<'c>, types: &[Type<'c>]) {
    let context = mlir::context_of(function);
    let results = mlir::function_type(function).map(|(_, results)| results).unwrap_or_default();
    let ty: Type = FunctionType::new(context, types, &results).into();
    mlir::set_attribute(function, "function_type", mlir::type_attr(ty));
    let mut attributes = mlir::array_attr(function, "arg_attrs");
    if !attributes.is_empty() {
        attributes.resize(types.len(), mlir::dictionary(context, &[]));
        mlir::set_attribute(function, "arg_attrs", mlir::array(context, &attributes));
    }
}

/// The bytes of an allocation, if its sizes are static.
fn bytes(allocation: Op<'_>) -> Result<Option<i64>, Report<'_>> {
    let ty = mlir::result(allocation, 0).r#type();
    let width = i64::from(mlir::byte_width(mlir::element_type(ty)));
    let extents = mlir::shape(ty);
    if extents.iter().any(Option::is_none) {
        return Ok(None);
    }
    let bytes =
        extents.into_iter().flatten().try_fold(width, |all, extent| all.checked_mul(extent));
    let bytes = bytes.filter(|bytes| *bytes <= i64::MAX / 2);
    bytes.map(Some).ok_or_else(|| Report::op_error(allocation, "is larger than memory can be"))
}

/// A number of bytes, rounded up.
fn aligned(bytes: i64) -> i64 {
    bytes.saturating_add(ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT
}

/// The places of the buffers of static sizes, and the bytes that they take together.
fn fixed_places(pieces: &[Piece]) -> (Vec<Option<i64>>, i64) {
    let mut order: Vec<_> = (0..pieces.len()).filter(|it| pieces[*it].bytes.is_some()).collect();
    order.sort_by_key(|number| std::cmp::Reverse(pieces[*number].bytes));
    let mut places: Vec<Option<i64>> = vec![None; pieces.len()];
    let mut end = 0;
    for number in order {
        let bytes = aligned(pieces[number].bytes.unwrap_or(0));
        let mut taken: Vec<_> = (0..pieces.len())
            .filter(|other| pieces[number].overlaps(&pieces[*other]))
            .filter_map(|other| Some((places[other]?, aligned(pieces[other].bytes?))))
            .collect();
        taken.sort_unstable();
        let mut place = 0;
        for (start, length) in taken {
            if place + bytes <= start {
                break;
            }
            place = place.max(start + length);
        }
        places[number] = Some(place);
        end = end.max(place + bytes);
    }
    (places, end)
}

/// Groups of buffers of dynamic sizes, whose lifetimes do not overlap. A buffer joins a group with its size rather
/// than another one.
fn slots(buffers: &[Buffer]) -> Vec<Vec<usize>> {
    let mut slots: Vec<Vec<usize>> = Vec::new();
    for (number, buffer) in buffers.iter().enumerate().filter(|(_, it)| it.piece.bytes.is_none()) {
        let is_free =
            |slot: &Vec<usize>| slot.iter().all(|it| !buffers[*it].piece.overlaps(&buffer.piece));
        let sizes = |number: usize| {
            let op: Op = buffers[number].allocation;
            (mlir::result(op, 0).r#type(), mlir::operands(op))
        };
        let has_size = |slot: &Vec<usize>| slot.iter().any(|it| sizes(*it) == sizes(number));
        let same = slots.iter().position(|slot| is_free(slot) && has_size(slot));
        match same.or_else(|| slots.iter().position(is_free)) {
            Some(slot) => slots[slot].push(number),
            None => slots.push(vec![number]),
        }
    }
    slots
}

/// Emits where slots start, and where the last one ends. Values of the function may have others in their places.
fn starts<'c>(
    builder: &Builder<'c>,
    map: &mut ValueMap<'c>,
    buffers: &[Buffer<'c>],
    slots: &[Vec<usize>],
    start: i64,
) -> Result<Vec<Val<'c>>, Report<'c>> {
    let index = builder.index_type();
    let mut starts = vec![builder.index(start)];
    for slot in slots {
        let mut largest = builder.index(0);
        for number in slot {
            let op = buffers[*number].allocation;
            let ty = mlir::result(op, 0).r#type();
            let mut bytes = builder.index(i64::from(mlir::byte_width(mlir::element_type(ty))));
            let mut sizes = mlir::operands(op).into_iter();
            for extent in mlir::shape(ty) {
                let extent = match extent {
                    Some(extent) => builder.index(extent),
                    None => hoist(builder, map, op, sizes.next().expect("a size per open extent"))?,
                };
                bytes = builder.value("arith.muli", &[bytes, extent], index);
            }
            largest = builder.value("arith.maxsi", &[largest, bytes], index);
        }
        let blocks = builder.value("arith.ceildivsi", &[largest, builder.index(ALIGNMENT)], index);
        let length = builder.value("arith.muli", &[blocks, builder.index(ALIGNMENT)], index);
        let start = *starts.last().expect("the first slot has a start");
        starts.push(builder.value("arith.addi", &[start, length], index));
    }
    Ok(starts)
}

/// Emits copies of the operations that compute a size from the arguments of the function.
fn hoist<'c>(
    builder: &Builder<'c>,
    map: &mut ValueMap<'c>,
    allocation: Op<'c>,
    size: Val<'c>,
) -> Result<Val<'c>, Report<'c>> {
    let mut work = vec![size];
    while let Some(value) = work.last().copied() {
        if map.get(value).is_some() {
            work.pop();
            continue;
        }
        let op = match mlir::defining_op(value) {
            Some(op) => op,
            None if mlir::argument_parent(value).is_some_and(|op| mlir::is(op, "func.func")) => {
                map.insert(value, value);
                continue;
            }
            None => return Err(unknown_size(allocation, None)),
        };
        let is_pure = ["arith", "affine", "index", "imap"]
            .contains(&mlir::name(op).split('.').next().unwrap_or(""))
            || VIEWS.contains(&mlir::name(op))
            || mlir::is(op, "memref.dim");
        if !is_pure || op.region_count() != 0 {
            return Err(unknown_size(allocation, Some(op)));
        }
        let open = mlir::operands(op).into_iter().filter(|it| map.get(*it).is_none());
        let open: Vec<_> = open.collect();
        if open.is_empty() {
            builder.copy(op, map);
        }
        work.extend(open);
    }
    Ok(map.get(size).expect("the value that was asked for"))
}

fn unknown_size<'c>(allocation: Op<'c>, by: Option<Op<'c>>) -> Report<'c> {
    let message = "has a size that is not known when the function is entered; a device needs sizes that are \
                   computed from the sizes of the arguments";
    let report = Report::op_error(allocation, message);
    match by {
        Some(op) => {
            report.note(Some(op.location()), format!("'{}' op computes it", mlir::name(op)))
        }
        None => report,
    }
}

/// Makes the function that stores the bytes of the workspace.
fn size_function<'c>(
    function: Op<'c>,
    buffers: &[Buffer<'c>],
    slots: &[Vec<usize>],
    start: i64,
    inputs: &[Val<'c>],
) -> Result<Op<'c>, Report<'c>> {
    let (context, location) = (mlir::context_of(function), function.location());
    let pointer = mlir::parse_type(context, "!llvm.ptr");
    let mut types: Vec<_> = inputs.iter().map(|it| it.r#type()).collect();
    types.push(pointer);
    let (region, block) = mlir::region_with_block(&types, location);
    let inside = Builder::at_end(context, block, location);
    let arguments = mlir::arguments(block);
    let mut map: ValueMap = inputs.iter().copied().zip(arguments.iter().copied()).collect();
    let starts = starts(&inside, &mut map, buffers, slots, start)?;
    let end = *starts.last().expect("the end of the last slot");
    let end = inside.value("arith.index_cast", &[end], inside.int_type(64));
    inside.op("llvm.store", &[end, arguments[inputs.len()]], &[]);
    let done = inside.integer(inside.int_type(32), 0);
    inside.op("func.return", &[done], &[]);
    let name = mlir::string_attr(function, "sym_name").unwrap_or_default();
    let ty: Type = FunctionType::new(context, &types, &[inside.int_type(32)]).into();
    let attributes = [
        ("sym_name", mlir::string(context, &format!("{name}{WORKSPACE}"))),
        ("function_type", mlir::type_attr(ty)),
        ("llvm.emit_c_interface", melior::ir::Attribute::unit(context)),
        (IS_WORKSPACE, melior::ir::Attribute::unit(context)),
    ];
    let builder = Builder::before(function);
    Ok(builder.op_with("func.func", &[], &[], &attributes, vec![region]))
}

/// The places of operations in a program: the number of the first and of the last operation in each.
struct Order(HashMap<usize, (usize, usize)>);

impl Order {
    fn of(function: Op) -> Self {
        let mut ops = Vec::new();
        mlir::walk(function, &mut |op| ops.push(op));
        let mut places: HashMap<_, _> =
            ops.iter().enumerate().map(|(place, op)| (mlir::op_key(*op), (place, place))).collect();
        // What is inside comes after the operation around it.
        for op in ops.iter().rev() {
            let last = places[&mlir::op_key(*op)].1;
            if let Some(around) = mlir::parent(*op).and_then(|it| places.get_mut(&mlir::op_key(it)))
            {
                around.1 = around.1.max(last);
            }
        }
        Self(places)
    }

    /// The lifetime of an allocation.
    fn life<'c>(&self, allocation: Op<'c>) -> (usize, usize) {
        let (mut first, mut last) = self.0[&mlir::op_key(allocation)];
        let mut block = allocation.block().map(mlir::block_ref).expect("an operation in a block");
        let mut seen = HashSet::new();
        let mut values = vec![mlir::result(allocation, 0)];
        let mut users = Vec::new();
        while let Some(value) = values.pop() {
            if !seen.insert(mlir::value_key(value)) {
                continue;
            }
            for (user, _) in mlir::uses(value) {
                users.push(user);
                values.extend(
                    mlir::results(user).into_iter().filter(|it| mlir::is_memref(it.r#type())),
                );
                // What an operation with regions takes may be any buffer in them.
                for region in 0..user.region_count() {
                    let arguments =
                        mlir::blocks(user, region).into_iter().flat_map(mlir::arguments);
                    values.extend(arguments.filter(|it| mlir::is_memref(it.r#type())));
                }
                let is_end = mlir::successors(user).is_empty()
                    && user.block().is_some_and(|it| mlir::terminator(mlir::block_ref(it)) == user);
                if let Some(around) =
                    mlir::parent(user).filter(|it| is_end && !mlir::is(*it, "func.func"))
                {
                    users.push(around);
                    values.extend(
                        mlir::results(around).into_iter().filter(|it| mlir::is_memref(it.r#type())),
                    );
                    for region in 0..around.region_count() {
                        let arguments =
                            mlir::blocks(around, region).into_iter().flat_map(mlir::arguments);
                        values.extend(arguments.filter(|it| mlir::is_memref(it.r#type())));
                    }
                }
            }
        }
        for user in users {
            // An operation outside of the block lets the buffer live as long as all of what is around.
            let mut inner = mlir::ancestor_in(user, block);
            while inner.is_none() {
                let Some(around) = mlir::parent(mlir::terminator(block)) else { break };
                first = first.min(self.0[&mlir::op_key(around)].0);
                last = last.max(self.0[&mlir::op_key(around)].1);
                let Some(next) = around.block() else { break };
                block = mlir::block_ref(next);
                inner = mlir::ancestor_in(user, block);
            }
            if let Some(inner) = inner {
                last = last.max(self.0[&mlir::op_key(inner)].1);
            }
        }
        (first, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_buffers_that_live_together_are_disjoint() {
        let mut state = 1u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for _ in 0..300 {
            let count = 1 + below(12);
            let pieces: Vec<_> = (0..count)
                .map(|_| {
                    let first = below(20) as usize;
                    let life = (first, first + below(8) as usize);
                    let bytes = (below(5) != 0).then(|| below(2000) as i64);
                    Piece { life, bytes }
                })
                .collect();
            let (places, end) = fixed_places(&pieces);
            for (number, (piece, place)) in pieces.iter().zip(&places).enumerate() {
                assert_eq!(piece.bytes.is_some(), place.is_some());
                let (Some(bytes), Some(place)) = (piece.bytes, place) else { continue };
                assert!(place % ALIGNMENT == 0 && place + bytes <= end, "{pieces:?} {places:?}");
                for (other, other_place) in pieces.iter().zip(&places).skip(number + 1) {
                    let (Some(other_bytes), Some(other_place)) = (other.bytes, other_place) else {
                        continue;
                    };
                    let is_apart =
                        place + bytes <= *other_place || other_place + other_bytes <= *place;
                    assert!(is_apart || !piece.overlaps(other), "{pieces:?} {places:?}");
                }
            }
            // The most that lives at one time is needed, and all of it apart is enough.
            let sum = |lives: &dyn Fn(&Piece) -> bool| {
                let live = pieces.iter().filter(|piece| lives(piece));
                live.filter_map(|piece| piece.bytes.map(aligned)).sum::<i64>()
            };
            let least = (0..30).map(|time| sum(&|it| it.life.0 <= time && time <= it.life.1)).max();
            assert!((least.unwrap_or(0)..=sum(&|_| true)).contains(&end), "{pieces:?} {end}");
        }
    }
}
