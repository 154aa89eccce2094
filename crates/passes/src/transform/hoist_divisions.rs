//! `hoist-divisions`: divisions whose operands a loop does not change are performed before
//! the loop.
//!
//! LLVM leaves an integer division in a branch where it is, because it traps on zero. Most
//! of ours cannot: the divisor is a size, clamped to 1, or is replaced where it is zero. So
//! they may be performed although the branch is not taken, and once instead of every time.
//! It also keeps them from the loop vectorizer of LLVM 22, which performs a division that
//! is the same for all lanes of a vector only if the first lane takes the branch, and lets
//! the others read garbage.
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
//! Works on loops of `scf` and of `omp`. Divisions by constants are left to LLVM, except
//! where another division needs them. Remark: how many divisions left a loop.

use melior::ir::{TypeLike, ValueLike, operation::OperationLike};
use std::collections::HashSet;
use tc_dialects::{
    diagnostic::{RemarkKind, remark},
    mlir::{self, Op, Val},
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "hoist-divisions",
    summary: "Perform divisions that cannot trap before the loops that do not change them",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith"],
    run,
};

/// What a division may leave, and whether that is a loop.
const AROUND: [(&str, bool); 5] = [
    ("scf.for", true),
    ("scf.parallel", true),
    ("scf.if", false),
    ("omp.loop_nest", false),
    ("omp.wsloop", true),
];

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        pass.enter(function);
        let mut divisions = Vec::new();
        mlir::walk(function, &mut |op| {
            if is_division(op) && !is_constant(mlir::operand(op, 1)) {
                divisions.push(op);
            }
        });
        let moved = divisions.into_iter().filter(|division| hoist(*division)).count();
        remark(
            function.location(),
            RemarkKind::Analysis,
            PASS.argument,
            "divisions",
            mlir::string_attr(function, "sym_name").unwrap_or_default(),
            &[("Hoisted", &moved.to_string())],
        );
    }
    Ok(())
}

/// Moves a division, with what it is computed from, out of as many loops as possible.
fn hoist(division: Op) -> bool {
    let mut best = None;
    let mut next = mlir::parent(division);
    while let Some(around) = next {
        let Some((_, is_loop)) = AROUND.iter().find(|(name, _)| mlir::is(around, name)) else {
            break;
        };
        let Some(slice) = computed_inside(division, around) else { break };
        if *is_loop {
            best = Some((around, slice));
        }
        next = mlir::parent(around);
    }
    let Some((around, slice)) = best else { return false };
    let mut ordered = Vec::new();
    mlir::walk(around, &mut |op| {
        if op.result_count() == 1 && slice.contains(&mlir::value_key(mlir::result(op, 0))) {
            ordered.push(op);
        }
    });
    ordered.into_iter().for_each(|op| mlir::move_before(op, around));
    true
}

/// The results of the operations inside `around` from which a division is computed, its
/// own among them; `None` if one of them has to stay.
fn computed_inside(division: Op, around: Op) -> Option<HashSet<usize>> {
    let mut found = HashSet::new();
    let mut work = vec![mlir::result(division, 0)];
    while let Some(value) = work.pop() {
        let Some(op) = mlir::defining_op(value) else {
            let block = mlir::argument_block(value)?;
            let owner = mlir::ops(block).first().copied().and_then(mlir::parent)?;
            if is_inside(owner, around) {
                return None;
            }
            continue;
        };
        if op == around || !is_inside(op, around) || !found.insert(mlir::value_key(value)) {
            continue;
        }
        if !is_movable(op) {
            return None;
        }
        work.extend(mlir::operands(op));
    }
    Some(found)
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

fn is_division(op: Op) -> bool {
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
fn is_safe_divisor(op: Op) -> bool {
    let divisor = mlir::operand(op, 1);
    let is_signed = mlir::name(op).ends_with("si") && !divisor.r#type().is_index();
    let is_safe = |number: i64| number != 0 && !(is_signed && number == -1);
    if let Some(number) = constant(divisor) {
        return is_safe(number);
    }
    let Some(op) = mlir::defining_op(divisor) else { return false };
    match mlir::name(op) {
        "arith.maxsi" => mlir::operands(op).into_iter().filter_map(constant).any(|it| 1 <= it),
        "arith.select" => {
            let chosen = constant(mlir::operand(op, 1)).is_some_and(is_safe);
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
            found.extend(constant(rhs));
        }
    }
    found
}

fn is_constant(value: Val) -> bool {
    constant(value).is_some()
}

fn constant(value: Val) -> Option<i64> {
    let op = mlir::defining_op(value).filter(|op| mlir::is(*op, "arith.constant"))?;
    mlir::integer_attr(op, "value")
}
