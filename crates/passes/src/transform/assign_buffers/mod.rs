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
//! With `allocate`, the function has no new argument, and allocates the workspace where it begins. Buffers of static
//! sizes have places there, if they are freed in the block that allocates them. Other buffers stay as they are. So do
//! the buffers of parallel loops: each thread has its own.
//!
//! Remark: the buffers of a function, and the bytes of those with static sizes.

mod local;
mod places;

use crate::analysis::buffers::{IS_WORKSPACE, VIEWS, static_bytes};
use melior::ir::{
    BlockLike, Type, ValueLike,
    operation::OperationLike,
    r#type::{FunctionType, MemRefType},
};
use places::{Order, Piece, fixed_places};
use tc_dialects::{
    mlir::{self, Builder, Op, Val, ValueMap},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, Report, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-assign-buffers",
    summary: "Assign parts of one workspace to all buffers of a function",
    anchor: "builtin.module",
    options: &[PassOption {
        name: "allocate",
        description: "Allocate the workspace in the function, for buffers of static sizes",
        default: "false",
    }],
    dependent_dialects: &["arith", "func", "llvm", "memref"],
    run,
};

/// What the name of the function ends with that computes the bytes of a workspace.
pub const WORKSPACE: &str = ".workspace";
/// The bytes that places are multiples of: the widest access of a device, and a line of its caches.
const ALIGNMENT: i64 = 256;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let allocate = pass.options.truth("allocate").map_err(|message| {
        Report::op_error(pass.op, message).emit();
        Failure
    })?;
    let functions = mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func"));
    for function in functions.filter(|it| mlir::body(*it, 0).is_some()) {
        pass.enter(function);
        if allocate {
            let buffers = local::assign(function).to_string();
            let name = mlir::string_attr(function, "sym_name").unwrap_or_default();
            let (at, arguments) = (function.location(), [("Buffers", &*buffers)]);
            remark(at, RemarkKind::Analysis, PASS.argument, "buffers", name, &arguments);
            continue;
        }
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

fn assign<'c>(function: Op<'c>) -> Result<(), Report<'c>> {
    let entry = mlir::body(function, 0).expect("functions with a body");
    let order = Order::of(function);
    let mut buffers = Vec::new();
    let mut failed = None;
    mlir::walk(function, &mut |op| {
        if mlir::is(op, "memref.alloc") || mlir::is(op, "memref.alloca") {
            let ty = mlir::result(op, 0).r#type();
            let bytes = static_bytes(ty);
            if bytes.is_none() && mlir::shape(ty).iter().all(Option::is_some) {
                failed = Some(Report::op_error(op, "is larger than memory can be"));
            }
            buffers.push(Buffer { allocation: op, piece: Piece { life: order.life(op), bytes } });
        }
    });
    if let Some(report) = failed {
        return Err(report);
    }
    let inputs = mlir::arguments(entry);
    let pieces: Vec<_> = buffers.iter().map(|it| it.piece).collect();
    let (fixed, end) = fixed_places(&pieces, ALIGNMENT);
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
