//! `hoist-divisions`: move loop-invariant divisions that cannot trap before the loop.
//!
//! LLVM does not move an integer division out of a branch, because division by zero traps. Most of our
//! divisions cannot trap: the divisor is a size, clamped to 1, or is replaced if it is zero. So they may
//! run even if the branch is not taken, and once instead of in every iteration. The pass also hides them
//! from the loop vectorizer of LLVM 22: it performs a division that is equal for all lanes of a vector
//! only if the first lane takes the branch, and the other lanes read garbage.
//!
//! Before:
//!
//! ```mlir
//! scf.for %i = %c0 to %n step %c1 {
//!   %p = memref.load %P[%i] : memref<?xi1>
//!   %v = scf.if %p -> (index) {
//!     %divisor = arith.maxsi %n, %c1 : index
//!     %r = arith.remsi %k, %divisor : index
//!     scf.yield %r : index
//!   } ..
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! %divisor = arith.maxsi %n, %c1 : index
//! %r = arith.remsi %k, %divisor : index
//! scf.for %i = %c0 to %n step %c1 {
//!   %p = memref.load %P[%i] : memref<?xi1>
//!   %v = scf.if %p -> (index) {
//!     scf.yield %r : index
//!   } ..
//! }
//! ```
//!
//! The pass handles loops of `scf`. LLVM handles divisions by constants, so they move only if
//! another moved division uses them. Remark: the number of divisions that left a loop.

use melior::ir::{TypeLike, ValueLike, operation::OperationLike};
use std::collections::{HashMap, HashSet};
use tc_dialects::{
    mlir::{self, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "hoist-divisions",
    summary: "Move loop-invariant divisions that cannot trap before the loop",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith"],
    run,
};

/// What a division may leave, and whether that is a loop.
const AROUND: [(&str, bool); 3] = [("scf.for", true), ("scf.parallel", true), ("scf.if", false)];

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        pass.enter(function);
        let mut scopes = HashMap::new();
        let mut moves = Vec::new();
        mlir::walk(function, &mut |op| {
            let scope = scope(op, &scopes);
            scopes.extend(mlir::results(op).into_iter().map(|it| (mlir::value_key(it), scope)));
            let is_candidate = is_division(op) && !is_constant(mlir::operand(op, 1));
            if let Some(around) = is_candidate.then(|| outermost_loop(op, scope)).flatten() {
                moves.push((op, around));
            }
        });
        for (division, around) in &moves {
            move_before(*division, *around);
        }
        remark(
            function.location(),
            RemarkKind::Analysis,
            PASS.argument,
            "divisions",
            mlir::string_attr(function, "sym_name").unwrap_or_default(),
            &[("Hoisted", &moves.len().to_string())],
        );
    }
    Ok(())
}

/// The scope of every value so far, by its key.
type Scopes<'c> = HashMap<usize, Option<Op<'c>>>;

/// The innermost operation in whose region an operation has to stay, because of what it does
/// or of what it is computed from. `None`: it may stand anywhere in the function.
fn scope<'c>(op: Op<'c>, scopes: &Scopes<'c>) -> Option<Op<'c>> {
    if !is_movable(op) {
        return mlir::parent(op);
    }
    // All of them are around `op`, so the innermost one is the deepest one.
    let scopes = mlir::operands(op).into_iter().filter_map(|operand| {
        match scopes.get(&mlir::value_key(operand)) {
            Some(scope) => *scope,
            None => mlir::argument_parent(operand),
        }
    });
    scopes.max_by_key(|scope| depth(*scope))
}

fn depth(op: Op) -> usize {
    std::iter::successors(mlir::parent(op), |op| mlir::parent(*op)).count()
}

/// The outermost loop around an operation that it can leave.
fn outermost_loop<'c>(op: Op<'c>, scope: Option<Op<'c>>) -> Option<Op<'c>> {
    let mut found = None;
    let mut next = mlir::parent(op).filter(|around| Some(*around) != scope);
    while let Some(around) = next {
        let Some((_, is_loop)) = AROUND.iter().find(|(name, _)| mlir::is(around, name)) else {
            break;
        };
        if *is_loop {
            found = Some(around);
        }
        next = mlir::parent(around).filter(|around| Some(*around) != scope);
    }
    found
}

/// Moves a division, with what it is computed from inside of a loop, before that loop.
fn move_before(division: Op, around: Op) {
    let mut work = vec![(division, false)];
    while let Some((op, operands_moved)) = work.pop() {
        if !is_inside(op, around) {
            continue;
        }
        if operands_moved {
            mlir::move_before(op, around);
            continue;
        }
        work.push((op, true));
        let operands = mlir::operands(op).into_iter().filter_map(mlir::defining_op);
        work.extend(operands.map(|operand| (operand, false)));
    }
}

/// Whether an operation is another, or nested in it.
fn is_inside(op: Op, around: Op) -> bool {
    let mut next = Some(op);
    while let Some(op) = next {
        if op == around {
            return true;
        }
        next = mlir::parent(op);
    }
    false
}

/// Whether an operation may be performed although nothing asks for it.
fn is_movable(op: Op) -> bool {
    mlir::name(op).starts_with("arith.")
        && op.result_count() == 1
        && (!is_division(op) || is_safe_divisor(op))
}

/// Whether an operation divides integers.
pub(super) fn is_division(op: Op) -> bool {
    let names = [
        "arith.ceildivsi",
        "arith.ceildivui",
        "arith.divsi",
        "arith.divui",
        "arith.floordivsi",
        "arith.remsi",
        "arith.remui",
    ];
    names.contains(&mlir::name(op))
}

/// Whether the divisor of a division is not zero. Where the operation is signed, and not on
/// subscripts, which are far from the least number, it must not be -1 either.
pub(super) fn is_safe_divisor(op: Op) -> bool {
    let divisor = mlir::operand(op, 1);
    let is_signed = mlir::name(op).ends_with("si") && !divisor.r#type().is_index();
    let is_safe = |number: i64| number != 0 && !(is_signed && number == -1);
    if let Some(number) = mlir::constant_of(divisor) {
        return is_safe(number);
    }
    let Some(op) = mlir::defining_op(divisor) else { return false };
    match mlir::name(op) {
        "arith.maxsi" => {
            mlir::operands(op).into_iter().filter_map(mlir::constant_of).any(|it| 1 <= it)
        }
        "arith.select" => {
            let chosen = mlir::constant_of(mlir::operand(op, 1)).is_some_and(is_safe);
            let excluded = excluded(mlir::operand(op, 0), mlir::operand(op, 2));
            chosen && excluded.contains(&0) && (!is_signed || excluded.contains(&-1))
        }
        _ => false,
    }
}

/// Numbers that `value` is not where `condition` does not hold.
fn excluded(condition: Val, value: Val) -> HashSet<i64> {
    let mut found = HashSet::new();
    let mut work = vec![condition];
    while let Some(next) = work.pop() {
        let Some(op) = mlir::defining_op(next) else { continue };
        let (lhs, rhs) = match mlir::name(op) {
            "arith.ori" | "arith.cmpi" => (mlir::operand(op, 0), mlir::operand(op, 1)),
            _ => continue,
        };
        if mlir::is(op, "arith.ori") {
            work.extend([lhs, rhs]);
        } else if mlir::integer_attr(op, "predicate") == Some(0)
            && mlir::value_key(lhs) == mlir::value_key(value)
        {
            // Predicate 0 is equality.
            found.extend(mlir::constant_of(rhs));
        }
    }
    found
}

fn is_constant(value: Val) -> bool {
    mlir::constant_of(value).is_some()
}
