//! `reuse-carried-buffers`: compute the next value of a loop-carried tensor in its own buffer.
//!
//! A loop that yields a new tensor in each iteration needs a new buffer in each iteration. If the old
//! value is not read any more when the new one is written, both can have one buffer.
//!
//! Before:
//!
//! ```mlir
//! %r = scf.for .. iter_args(%x = %init) -> (tensor<8xf32>) {
//!   %e = tensor.empty() : tensor<8xf32>
//!   %y = imap.generic .. ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) ..
//!   scf.yield %y : tensor<8xf32>
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! %r = scf.for .. iter_args(%x = %init) -> (tensor<8xf32>) {
//!   %y = imap.generic .. ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) ..
//!   scf.yield %y : tensor<8xf32>
//! }
//! ```
//!
//! The pass follows a yielded tensor backwards through destinations, and through what loops carry, to a
//! `tensor.empty` of the same static type. The carried tensor takes its place if its other uses are reads
//! before the operation that writes, or reads by that operation, each of the element that it writes at the
//! same point. A `tensor.empty` has to have one use: `unshare-empty-tensors` runs before. One-shot
//! bufferization then finds that both values have one buffer.
//!
//! Later reads of the old value get a copy of it, if bufferization would copy as well: where the operation writes to
//! the carried tensor already, and in `scf.while`, whose carried tensors have one buffer for all iterations. The copy
//! is a temporary, and its memory does not change from iteration to iteration.
//!
//! Remark: the number of reused buffers.

use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::HashMap;
use tc_dialects::{
    imap::{AnyIndexed, Indexed},
    mlir::{self, Blk, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "reuse-carried-buffers",
    summary: "Compute the next value of a loop-carried tensor in its own buffer",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["bufferization"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        pass.enter(function);
        let mut loops = Vec::new();
        mlir::walk(function, &mut |op| loops.extend(Loop::of(op)));
        let num_reused: usize = loops.into_iter().map(Loop::reuse).sum();
        remark(
            function.location(),
            RemarkKind::Analysis,
            PASS.argument,
            "buffers",
            mlir::string_attr(function, "sym_name").unwrap_or_default(),
            &[("Reused", &num_reused.to_string())],
        );
    }
    Ok(())
}

/// A loop that carries tensors.
struct Loop<'c> {
    body: Blk<'c>,
    is_while: bool,
    /// The values at the start of an iteration, and those of the next one.
    carried: Vec<(Val<'c>, Val<'c>)>,
}

impl<'c> Loop<'c> {
    fn of(op: Op<'c>) -> Option<Self> {
        let is_while = mlir::is(op, "scf.while");
        if !is_while && !mlir::is(op, "scf.for") {
            return None;
        }
        let body = mlir::body(op, usize::from(is_while))?;
        let mut arguments = mlir::arguments(body);
        if is_while {
            let before = mlir::body(op, 0)?;
            // What is passed on has to be what comes in.
            if mlir::operands(mlir::terminator(before))[1..] != mlir::arguments(before) {
                return None;
            }
        } else {
            arguments.remove(0);
        }
        let yielded = mlir::operands(mlir::terminator(body));
        let carried = arguments.into_iter().zip(yielded);
        let is_static = |value: &Val| {
            mlir::is_tensor(value.r#type())
                && mlir::shape(value.r#type()).iter().all(Option::is_some)
        };
        Some(Self { body, is_while, carried: carried.filter(|(now, _)| is_static(now)).collect() })
    }

    /// Reuses the buffers of carried tensors. Returns of how many.
    fn reuse(self) -> usize {
        let places = mlir::ops(self.body).into_iter().enumerate();
        let places: HashMap<usize, usize> =
            places.map(|(place, op)| (mlir::op_key(op), place)).collect();
        let reused = self.carried.iter().filter(|(now, next)| {
            let Some((writer, number)) = self.writer(*now, *next) else { return false };
            let last = places[&mlir::op_key(writer.op())];
            let destination = mlir::operand(writer.op(), number);
            let is_in_place = destination == *now;
            let others = mlir::uses(*now).into_iter();
            let others = others.filter(|it| *it != (writer.op(), number)).collect::<Vec<_>>();
            if destination.r#type() != now.r#type()
                || !others.iter().all(|(user, used)| is_read(*user, *used))
            {
                return false;
            }
            let is_late = |(user, used): &(Op<'c>, usize)| {
                let place = mlir::ancestor_in(*user, self.body)
                    .and_then(|op| places.get(&mlir::op_key(op)));
                place.is_none_or(|place| last < *place)
                    || *user == writer.op() && !writer.touches_same_element(*used, number)
            };
            let late: Vec<_> = others.into_iter().filter(is_late).collect();
            if !late.is_empty() {
                if !self.is_while && !is_in_place {
                    return false;
                }
                let old = Builder::before(writer.op()).copy_tensor(*now);
                late.iter().for_each(|(user, used)| mlir::set_operand(*user, *used, old));
            }
            mlir::set_operand(writer.op(), number, *now);
            !is_in_place || !late.is_empty()
        });
        reused.count()
    }

    /// The operation whose destination, the operand of a number, becomes `next`: an empty tensor, or the carried one.
    fn writer(&self, now: Val<'c>, next: Val<'c>) -> Option<(AnyIndexed<'c>, usize)> {
        let mut value = next;
        loop {
            let op = mlir::defining_op(value)?;
            if mlir::uses(value).iter().filter(|(user, _)| mlir::is(*user, "scf.yield")).count() > 1
                || op.block().map(mlir::block_ref) != Some(self.body)
            {
                return None;
            }
            let number = mlir::number(value);
            let generic = AnyIndexed::cast(op);
            let operand = match generic {
                Some(generic) => mlir::operands(op).len() - generic.inits().len() + number,
                None if mlir::is(op, "scf.for") => 3 + number,
                None if mlir::is(op, "scf.while") => {
                    let before = mlir::body(op, 0)?;
                    let passed_on = mlir::operands(mlir::terminator(before));
                    let argument = mlir::arguments(before).into_iter().nth(number)?;
                    (passed_on.get(1 + number) == Some(&argument)).then_some(number)?
                }
                None => return None,
            };
            value = mlir::operand(op, operand);
            let empty = mlir::defining_op(value).filter(|op| mlir::is(*op, "tensor.empty"));
            if let Some(generic) = generic
                && (empty.is_some() || value == now)
            {
                let is_own = empty.is_none() || mlir::uses(value).len() == 1;
                return is_own.then_some((generic, operand));
            }
        }
    }
}

/// Whether an operation reads an operand, and gives no other name to its buffer.
fn is_read(op: Op, operand: usize) -> bool {
    match AnyIndexed::cast(op) {
        Some(generic) => operand < mlir::operands(op).len() - generic.inits().len(),
        None => mlir::is(op, "tensor.extract") || mlir::is(op, "tensor.dim"),
    }
}
