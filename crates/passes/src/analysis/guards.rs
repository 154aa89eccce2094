//! Comparisons of index expressions that hold where an operation is performed: those of the `scf.if`
//! around it.

use super::index_exprs::IndexExprs;
use melior::ir::{ValueLike, operation::OperationLike};
use tc_dialects::{
    mlir::{self, Blk, Op, Val},
    tc::ranges::Guard,
};
use tc_ir::{expr::Expr, interval::Interval};

/// The operators of a condition or of a side of a comparison that are followed.
const MAX_OPERATORS: usize = 64;

/// The comparisons that hold where `op`, which stands somewhere in `block`, is performed.
pub fn guards<'c>(op: Op<'c>, block: Blk<'c>, exprs: &IndexExprs<'c, '_>) -> Vec<Guard> {
    let mut guards = Vec::new();
    let mut inner = op;
    while inner.block().map(mlir::block_ref) != Some(block)
        && let Some(outer) = mlir::parent(inner)
    {
        if mlir::is(outer, "scf.if") {
            let is_then = inner.block().map(mlir::block_ref) == mlir::body(outer, 0);
            follow(mlir::operand(outer, 0), is_then, exprs, &mut guards);
        }
        inner = outer;
    }
    guards
}

/// Adds the comparisons that hold if a condition has a value.
fn follow<'c>(
    condition: Val<'c>,
    holds: bool,
    exprs: &IndexExprs<'c, '_>,
    guards: &mut Vec<Guard>,
) {
    let mut left = vec![(condition, holds)];
    for _ in 0..MAX_OPERATORS {
        let Some((condition, holds)) = left.pop() else { return };
        let Some(op) = mlir::defining_op(condition) else { continue };
        match mlir::name(op) {
            "arith.cmpi" => guards.extend(compared(op, holds, exprs)),
            "arith.andi" if holds => left.extend(mlir::operands(op).iter().map(|it| (*it, true))),
            "arith.ori" if !holds => left.extend(mlir::operands(op).iter().map(|it| (*it, false))),
            "arith.xori" if truth(mlir::operand(op, 1)) == Some(true) => {
                left.push((mlir::operand(op, 0), !holds));
            }
            // '&&' and '||' whose right sides read tensors.
            "scf.if" => {
                let yielded = |region| {
                    let block = mlir::body(op, region)?;
                    mlir::operands(mlir::terminator(block)).get(mlir::number(condition)).copied()
                };
                let (Some(yes), Some(no)) = (yielded(0), yielded(1)) else { continue };
                if truth(no) == Some(!holds) {
                    left.extend([(mlir::operand(op, 0), true), (yes, holds)]);
                } else if truth(yes) == Some(!holds) {
                    left.extend([(mlir::operand(op, 0), false), (no, holds)]);
                }
            }
            _ => {}
        }
    }
}

/// The value of a constant of type `i1`.
fn truth(value: Val) -> Option<bool> {
    let op = mlir::defining_op(value).filter(|op| mlir::is(*op, "arith.constant"))?;
    mlir::bool_of(op.attribute("value").ok()?)
}

/// What holds if a comparison of integers has a value.
fn compared<'c>(op: Op<'c>, holds: bool, exprs: &IndexExprs<'c, '_>) -> Vec<Guard> {
    let sides = [mlir::operand(op, 0), mlir::operand(op, 1)];
    let Some(width) = mlir::integer_width(sides[0].r#type()) else { return Vec::new() };
    let (Some(lhs), Some(rhs)) = (side(sides[0], exprs), side(sides[1], exprs)) else {
        return Vec::new();
    };
    let integers = match 64_u32.checked_sub(width) {
        Some(shift) if 0 < width => Interval::new(i64::MIN >> shift, i64::MAX >> shift),
        _ => return Vec::new(),
    };
    let guard = |low, high, is_strict| Guard { low, high, is_strict, integers };
    // The numbers of predicates of `arith.cmpi`.
    match (mlir::integer_attr(op, "predicate"), holds) {
        (Some(0), true) | (Some(1), false) => vec![guard(lhs, rhs, false), guard(rhs, lhs, false)],
        (Some(2), true) | (Some(5), false) => vec![guard(lhs, rhs, true)],
        (Some(3), true) | (Some(4), false) => vec![guard(lhs, rhs, false)],
        (Some(4), true) | (Some(3), false) => vec![guard(rhs, lhs, true)],
        (Some(5), true) | (Some(2), false) => vec![guard(rhs, lhs, false)],
        _ => Vec::new(),
    }
}

/// An integer as an expression: its exact value, if that fits into its type.
fn side<'c>(value: Val<'c>, exprs: &IndexExprs<'c, '_>) -> Option<Expr> {
    let ir = exprs.ir;
    let mut sum = ir.constant(0);
    let mut left = vec![(value, true)];
    for _ in 0..MAX_OPERATORS {
        let Some((value, is_added)) = left.pop() else { return Some(sum) };
        let op = mlir::defining_op(value)?;
        let operands = mlir::operands(op);
        let term = match mlir::name(op) {
            "arith.addi" => {
                left.extend(operands.iter().map(|it| (*it, is_added)));
                continue;
            }
            "arith.subi" => {
                left.extend([(operands[0], is_added), (operands[1], !is_added)]);
                continue;
            }
            "arith.index_cast" => exprs.get(operands[0])?,
            "arith.constant" => ir.constant(mlir::integer_attr(op, "value")?),
            _ => return None,
        };
        sum = if is_added { ir.add(sum, term) } else { ir.sub(sum, term) };
    }
    None
}
