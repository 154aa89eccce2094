//! `double-buffer-loops`: let the iterations of a loop write to two buffers in turn.
//!
//! After bufferization, an iteration that cannot update a carried buffer in place allocates a new one. After this pass, the
//! loop has two buffers. An iteration reads one of them and writes to the other one.
//!
//! Before:
//!
//! ```mlir
//! %r = scf.for .. iter_args(%x = %a) -> (memref<8xf32>) {
//!   %y = memref.alloc() : memref<8xf32>
//!   imap.generic .. ins(%x[i + 1] : memref<8xf32>) outs(%y[i] : memref<8xf32>) ..
//!   scf.yield %y : memref<8xf32>
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! %b = memref.alloc() : memref<8xf32>
//! %s = scf.for .. iter_args(%second = %false) -> (i1) {
//!   %x = arith.select %second, %b, %a : memref<8xf32>
//!   %y = arith.select %second, %a, %b : memref<8xf32>
//!   imap.generic .. ins(%x[i + 1] : memref<8xf32>) outs(%y[i] : memref<8xf32>) ..
//!   %next = arith.xori %second, %true : i1
//!   scf.yield %next : i1
//! }
//! %r = arith.select %s, %b, %a : memref<8xf32>
//! ```
//!
//! A loop whose first buffer is used otherwise starts from a copy. If the number of iterations is known, so is the buffer of
//! the last value. It may then be a result of the function.
//!
//! Limit: buffers of static shape in `scf.for` that nothing else in the loop may refer to.
//!
//! Remark: the number of loop-carried buffers of a function that have a second one.

use crate::{
    analysis::buffers::{VIEWS, results_in_arguments, static_bytes},
    loops::{build_alloc, trip_count},
};
use melior::ir::{ValueLike, operation::OperationLike};
use tc_dialects::{
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "double-buffer-loops",
    summary: "Let the iterations of a loop write to two buffers in turn",
    anchor: "func.func",
    options: &[],
    dependent_dialects: &["memref", "scf"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let mut loops = Vec::new();
    mlir::walk(pass.op, &mut |op| loops.extend(mlir::is(op, "scf.for").then_some(op)));
    let mut count = 0;
    for mut op in loops {
        for number in 0..op.result_count() {
            if let Some(allocation) = new_buffer(op, number) {
                op = double(pass.op, (op, number), allocation);
                count += 1;
            }
        }
    }
    let name = mlir::string_attr(pass.op, "sym_name").unwrap_or_default();
    let arguments = [("Doubled", &*count.to_string())];
    remark(pass.op.location(), RemarkKind::Passed, PASS.argument, "buffers", name, &arguments);
    Ok(())
}

/// The number of bounds of `scf.for`, which are its first operands.
const BOUNDS: usize = 3;

/// The allocation in the body of a loop that replaces a carried buffer, if nothing else refers to either of them.
fn new_buffer(op: Op, number: usize) -> Option<Op> {
    let block = mlir::body(op, 0)?;
    let end = mlir::terminator(block);
    let yields = mlir::operands(end);
    let (old, new) = (mlir::arguments(block)[1 + number], yields[number]);
    let allocation = mlir::defining_op(new).filter(|it| mlir::is(*it, "memref.alloc"))?;
    let is_own = allocation.block().is_some_and(|it| mlir::block_ref(it) == block);
    let count = |value: Val| yields.iter().filter(|it| **it == value).count();
    let is_exclusive = count(new) == 1 && count(old) == 0;
    (is_own
        && is_exclusive
        && old.r#type() == new.r#type()
        && static_bytes(new.r#type()).is_some()
        && is_private(old, None)
        && is_private(new, Some(end)))
    .then_some(allocation)
}

/// Whether no operation keeps a reference to a buffer, but for one that yields it.
fn is_private(buffer: Val, end: Option<Op>) -> bool {
    mlir::uses(buffer).into_iter().all(|(user, _)| {
        match VIEWS.iter().any(|name| mlir::is(user, name)) {
            true => is_private(mlir::result(user, 0), None),
            false => end == Some(user) || !keeps_buffers(user),
        }
    })
}

/// Whether an operation may give a buffer among its operands to others.
fn keeps_buffers(op: Op) -> bool {
    let has_buffers = mlir::results(op).iter().any(|it| mlir::is_memref(it.r#type()));
    has_buffers || mlir::is(op, "scf.yield") || mlir::is(op, "func.return")
}

/// Gives a loop a second buffer in the place of an allocation of each iteration. Returns the new loop.
fn double<'c>(function: Op<'c>, (op, number): (Op<'c>, usize), allocation: Op<'c>) -> Op<'c> {
    let (builder, old) = (Builder::before(op), mlir::result(op, number));
    let ty = old.r#type();
    let select = |builder: &Builder<'c>, is_second, [first, second]: [Val<'c>; 2]| {
        builder.value("arith.select", &[is_second, second, first], ty)
    };
    let mut operands = mlir::operands(op);
    let init = operands[BOUNDS + number];
    let mut first = init;
    if !is_only_for(init, op) {
        first = build_alloc(&builder, ty);
        builder.op("memref.copy", &[init, first], &[]);
    }
    let buffers = [first, build_alloc(&builder, ty)];
    let bool_type = builder.int_type(1);
    operands[BOUNDS + number] = builder.integer(bool_type, 0);

    let block = mlir::body(op, 0).expect("a verified loop has a body");
    let is_second = mlir::insert_argument(block, 1 + number, bool_type, op.location());
    let inside = Builder::before(mlir::ops(block)[0]).located(op.location());
    let argument = mlir::arguments(block)[2 + number];
    mlir::replace_uses(argument, select(&inside, is_second, buffers));
    mlir::erase_argument(block, 2 + number);
    let [first, second] = buffers;
    mlir::replace(allocation, &[select(&inside, is_second, [second, first])]);
    let end = mlir::terminator(block);
    let inside = Builder::before(end);
    let next = inside.value("arith.xori", &[is_second, inside.integer(bool_type, 1)], bool_type);
    mlir::set_operand(end, number, next);

    let mut types: Vec<_> = mlir::results(op).iter().map(|it| it.r#type()).collect();
    types[number] = bool_type;
    let new = mlir::rebuild(op, &operands, &types);
    let mut results = mlir::results(new);
    results[number] = match trip_count(new) {
        Some(count) => buffers[usize::from(count % 2 != 0)],
        None => {
            let next = mlir::next(new).expect("a loop is not the last operation of a block");
            select(&Builder::before(next).located(new.location()), results[number], buffers)
        }
    };
    mlir::replace(op, &results);
    if trip_count(new).is_some() {
        place_in_result(function, new, results[number]);
    }
    new
}

/// Whether a buffer is allocated beside a loop, and only written before it.
fn is_only_for(init: Val, op: Op) -> bool {
    let Some(allocation) = mlir::defining_op(init).filter(|it| mlir::is(*it, "memref.alloc"))
    else {
        return false;
    };
    let uses = mlir::uses(init);
    let is_before = |user: &Op| {
        user.block() == op.block() && mlir::is_before(*user, op) && !keeps_buffers(*user)
    };
    allocation.block() == op.block()
        && uses.iter().filter(|(user, _)| *user == op).count() == 1
        && uses.iter().all(|(user, _)| *user == op || is_before(user))
}

/// Lets a result of the function be the buffer of the last value of a loop, if the value is only copied to it.
fn place_in_result<'c>(function: Op<'c>, op: Op<'c>, buffer: Val<'c>) {
    let Some(block) = op.block().map(mlir::block_ref) else { return };
    // The copy may be the only use after the loop, in an operation with regions as well.
    let is_after = |user: Op<'c>| {
        mlir::ancestor_in(user, block).is_none_or(|it| it != op && mlir::is_before(op, it))
    };
    let after: Vec<_> =
        mlir::uses(buffer).into_iter().filter(|(user, _)| is_after(*user)).collect();
    let [(copy, 0)] = after[..] else { return };
    if !mlir::is(copy, "memref.copy") || copy.block() != op.block() {
        return;
    }
    let result = mlir::operand(copy, 1);
    let is_free = results_in_arguments(function).contains(&mlir::value_key(result))
        && mlir::uses(result).len() == 1
        && result.r#type() == buffer.r#type()
        && Some(block) == mlir::body(function, 0);
    if let Some(allocation) = mlir::defining_op(buffer).filter(|_| is_free) {
        mlir::erase(copy);
        mlir::replace(allocation, &[result]);
    }
}
