//! `raise-while-to-for`: turn a `scf.while` that counts into a `scf.for`.
//!
//! HLO has one loop, `while`. Most loops count: their trip count is known before they start. Bufferization
//! copies each tensor that a `scf.while` carries, unless the loop updates it in place. Analyses of loops
//! know `scf.for` only.
//!
//! Before:
//!
//! ```mlir
//! %r:2 = scf.while (%i = %start, %x = %init) : (i32, tensor<8xf32>) -> (i32, tensor<8xf32>) {
//!   %less = arith.cmpi slt, %i, %n : i32
//!   scf.condition(%less) %i, %x : i32, tensor<8xf32>
//! } do {
//! ^bb0(%i: i32, %x: tensor<8xf32>):
//!   %next = arith.addi %i, %c1 : i32
//!   .. // %y of %i and %x
//!   scf.yield %next, %y : i32, tensor<8xf32>
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! %lower = arith.index_cast %start : i32 to index
//! %upper = arith.index_cast %n : i32 to index
//! %y = scf.for %k = %lower to %upper step %c1 iter_args(%x = %init) -> (tensor<8xf32>) {
//!   %i = arith.index_cast %k : index to i32
//!   .. // %y of %i and %x
//!   scf.yield %y : tensor<8xf32>
//! }
//! %last = arith.maxsi %lower, %upper : index
//! %r = arith.index_cast %last : index to i32
//! ```
//!
//! The first region has to hold nothing but the comparison `slt` (or `sgt`, swapped) with a bound from
//! outside of the loop, and to pass all its arguments on. The counter grows by 1, or by another positive
//! constant if its start and its bound are constants and it does not wrap. Upstream's
//! `upliftWhileToForLoop` does the same for steps whose sign it does not check (LLVM 22).
//!
//! Remark: the number of raised loops.

use melior::ir::{TypeLike, ValueLike, operation::OperationLike};
use tc_dialects::{
    mlir::{self, Blk, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "raise-while-to-for",
    summary: "Turn a scf.while that counts into a scf.for",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith", "scf"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        pass.enter(function);
        let mut loops = Vec::new();
        mlir::walk(function, &mut |op| loops.extend(mlir::is(op, "scf.while").then_some(op)));
        let num_raised = loops
            .iter()
            .filter_map(|op| Counter::of(*op).map(|counter| counter.raise(*op)))
            .count();
        remark(
            function.location(),
            RemarkKind::Analysis,
            PASS.argument,
            "loops",
            mlir::string_attr(function, "sym_name").unwrap_or_default(),
            &[("Raised", &num_raised.to_string()), ("While", &loops.len().to_string())],
        );
    }
    Ok(())
}

/// The counter of a loop.
struct Counter<'c> {
    /// Its place among the values that the loop carries.
    place: usize,
    /// The first value that ends the loop.
    bound: Val<'c>,
    step: i64,
    /// The value after the loop, if it is a constant.
    last: Option<i64>,
}

impl<'c> Counter<'c> {
    /// The counter of a `scf.while`, if it counts.
    fn of(op: Op<'c>) -> Option<Self> {
        let (before, after) = (mlir::body(op, 0)?, mlir::body(op, 1)?);
        let (condition, yielded) = (mlir::terminator(before), mlir::terminator(after));
        let arguments = mlir::arguments(before);
        let [compare, _] = mlir::ops(before)[..] else { return None };
        let passed_on = mlir::operands(condition);
        let goes_on = passed_on.first().and_then(|value| mlir::defining_op(*value))?;
        if goes_on != compare || !mlir::is(compare, "arith.cmpi") || passed_on[1..] != arguments {
            return None;
        }
        let (counter, bound) = match mlir::integer_attr(compare, "predicate")? {
            SIGNED_LESS => (mlir::operand(compare, 0), mlir::operand(compare, 1)),
            SIGNED_GREATER => (mlir::operand(compare, 1), mlir::operand(compare, 0)),
            _ => return None,
        };
        let place = arguments.iter().position(|argument| *argument == counter)?;
        if arguments.contains(&bound) {
            return None;
        }
        let add = mlir::defining_op(mlir::operands(yielded)[place])?;
        if !mlir::is(add, "arith.addi") {
            return None;
        }
        let own = mlir::arguments(after)[place];
        // A wider counter does not fit an index.
        let width = mlir::integer_width(own.r#type()).unwrap_or(64);
        let max = i64::MAX >> 64_u32.checked_sub(width)?;
        let step = match [mlir::operand(add, 0), mlir::operand(add, 1)] {
            [counter, step] if counter == own => mlir::constant_of(step)?,
            [step, counter] if counter == own => mlir::constant_of(step)?,
            _ => return None,
        };
        let start = mlir::operands(op)[place];
        let known = mlir::constant_of(start).zip(mlir::constant_of(bound));
        let last = match known {
            Some((start, bound)) if start < bound => {
                let num_steps = bound.checked_sub(start)?.checked_add(step.checked_sub(1)?)?;
                let last = num_steps.checked_div(step)?.checked_mul(step)?.checked_add(start)?;
                // The counter does not wrap.
                (last <= max).then_some(last)
            }
            Some((start, _)) => Some(start),
            None => None,
        };
        (step == 1 || 1 < step && last.is_some()).then_some(Self { place, bound, step, last })
    }

    /// Replaces the loop.
    fn raise(self, op: Op<'c>) {
        let builder = Builder::before(op);
        let (inits, index) = (mlir::operands(op), builder.index_type());
        let ty = inits[self.place].r#type();
        let to_index = |value: Val<'c>| match mlir::constant_of(value) {
            _ if ty.is_index() => value,
            Some(value) => builder.index(value),
            None => builder.value("arith.index_cast", &[value], index),
        };
        let (lower, upper) = (to_index(inits[self.place]), to_index(self.bound));
        let mut carried = inits.clone();
        carried.remove(self.place);
        let types: Vec<_> = carried.iter().map(|value| value.r#type()).collect();
        let (region, block) =
            mlir::region_with_block(&[&[index], types.as_slice()].concat(), op.location());
        let old = mlir::body(op, 1).expect("a verified scf.while has a second region");
        self.move_body(old, block, ty.is_index());
        let bounds = [lower, upper, builder.index(self.step)];
        let operands = [&bounds, carried.as_slice()].concat();
        let new = builder.op_with("scf.for", &operands, &types, &[], vec![region]);
        let last = match self.last {
            _ if mlir::uses(mlir::result(op, self.place)).is_empty() => inits[self.place],
            Some(last) => builder.integer(ty, last),
            None if ty.is_index() => builder.value("arith.maxsi", &[lower, upper], index),
            None => {
                let last = builder.value("arith.maxsi", &[lower, upper], index);
                builder.value("arith.index_cast", &[last], ty)
            }
        };
        let mut results = mlir::results(new);
        results.insert(self.place, last);
        mlir::replace(op, &results);
    }

    /// Moves the operations of the second region of the loop to the body of the new one.
    fn move_body(&self, old: Blk<'c>, new: Blk<'c>, is_index: bool) {
        let old_end = mlir::terminator(old);
        let builder = Builder::at_end(mlir::context_of(old_end), new, old_end.location());
        let mut yielded = mlir::operands(old_end);
        let next = yielded.remove(self.place);
        mlir::erase(old_end);
        if mlir::uses(next).is_empty()
            && !yielded.contains(&next)
            && let Some(add) = mlir::defining_op(next)
        {
            mlir::erase(add);
        }
        let mut arguments = mlir::arguments(new);
        let counter = arguments.remove(0);
        let old_arguments = mlir::arguments(old);
        let own = old_arguments[self.place];
        let counter = match is_index || mlir::uses(own).is_empty() {
            true => counter,
            false => builder.value("arith.index_cast", &[counter], own.r#type()),
        };
        arguments.insert(self.place, counter);
        let end = builder.op("scf.yield", &yielded, &[]);
        for op in mlir::ops(old) {
            mlir::move_before(op, end);
        }
        for (old, new) in old_arguments.into_iter().zip(arguments) {
            mlir::replace_uses(old, new);
        }
    }
}

/// The numbers of predicates of `arith.cmpi`.
const SIGNED_LESS: i64 = 2;
const SIGNED_GREATER: i64 = 4;
