//! What is known of integers and indices at one place: their expressions, and what the
//! conditions around the place say of them.
//!
//! `0 <= A(i) && A(i) < N ? T(A(i)) : 0` needs no check, and neither does
//! `B(i) != 0 ? A(i) / B(i) : 0`. Equal values have one expression: the slicer numbers them.
//! Comparisons of floats, unsigned comparisons (other than with 0) and conditions deeper
//! than a fixed number of operations say nothing, which costs a scan and no safety.

use super::{Checker, Data, Inspection, Signedness, scan::Guard};
use melior::ir::{TypeLike, ValueLike};
use std::collections::HashSet;
use tc_dialects::{
    imap,
    mlir::{self, Op, Val},
};
use tc_ir::{
    expr::Expr,
    interval::Interval,
    prove::{Prover, Verdict},
};

/// How many operations deep an integer is taken for index arithmetic.
const MAX_DEPTH: usize = 8;
/// How many operations of the conditions around a place are looked at.
const MAX_CONDITIONS: usize = 64;

/// What is known at one place.
pub(super) struct Facts<'i> {
    pub(super) prover: Prover<'i>,
    /// The numbers of values that are not 0, without extensions.
    nonzero: HashSet<usize>,
}

/// A comparison that holds.
enum Relation {
    AtMost(Expr, Expr),
    Less(Expr, Expr),
    Equal(Expr, Expr),
}

impl<'c, 'i> Checker<'c, 'i> {
    /// What is known where all these conditions hold.
    pub(super) fn facts(
        &mut self,
        at: &mut Inspection<'_, 'c, 'i>,
        guards: &[Guard<'c>],
    ) -> Facts<'i> {
        let mut relations = Vec::new();
        let mut nonzero = HashSet::new();
        let mut pending: Vec<_> = guards.iter().map(|guard| guard.condition()).collect();
        let mut budget = MAX_CONDITIONS;
        while let Some((condition, holds)) = pending.pop()
            && budget > 0
        {
            budget -= 1;
            let Some(op) = mlir::defining_op(condition) else { continue };
            let operand = |number| mlir::operand(op, number);
            match mlir::name(op) {
                "arith.cmpi" => self.compare(at, op, holds, &mut relations, &mut nonzero),
                "arith.andi" if holds => pending.extend([(operand(0), true), (operand(1), true)]),
                "arith.ori" if !holds => pending.extend([(operand(0), false), (operand(1), false)]),
                "arith.xori" if mlir::constant_of(operand(1)).is_some_and(|it| it != 0) => {
                    pending.push((operand(0), !holds));
                }
                "arith.select" => {
                    pending.extend(chosen(operand(0), operand(1), operand(2), holds));
                }
                "scf.if" => {
                    let yielded = |branch| {
                        let block = mlir::body(op, branch)?;
                        mlir::operands(mlir::terminator(block))
                            .get(mlir::number(condition))
                            .copied()
                    };
                    if let (Some(yes), Some(no)) = (yielded(0), yielded(1)) {
                        pending.extend(chosen(operand(0), yes, no, holds));
                    }
                }
                _ => {}
            }
        }
        // Forked last: the values that were met have bounds now.
        let mut prover = at.prover.fork();
        for relation in relations {
            match relation {
                Relation::AtMost(a, b) => prover.assume_at_most(a, b),
                Relation::Less(a, b) => {
                    prover.assume_at_most(self.ir.add(a, self.ir.constant(1)), b);
                }
                Relation::Equal(a, b) => {
                    prover.assume_at_most(a, b);
                    prover.assume_at_most(b, a);
                }
            }
        }
        Facts { prover, nonzero }
    }

    /// Notes what a comparison says that holds, or does not.
    fn compare(
        &mut self,
        at: &mut Inspection<'_, 'c, 'i>,
        op: Op<'c>,
        holds: bool,
        relations: &mut Vec<Relation>,
        nonzero: &mut HashSet<usize>,
    ) {
        let (lhs, rhs) = (mlir::operand(op, 0), mlir::operand(op, 1));
        let predicate = mlir::integer_attr(op, "predicate").unwrap_or(0);
        // eq, ne, slt, sle, sgt, sge; then the last four for unsigned numbers.
        let (signed, predicate) =
            if predicate < 6 { (true, predicate) } else { (false, predicate - 4) };
        let negated = [1, 0, 5, 4, 3, 2];
        let predicate = if holds { predicate } else { negated[predicate as usize] };
        let (lhs, rhs) = if predicate < 4 { (lhs, rhs) } else { (rhs, lhs) };
        let (low, high) = (self.int_expr(at, lhs, 0), self.int_expr(at, rhs, 0));
        let is_zero = |expr| self.ir.as_constant(expr) == Some(0);
        match predicate {
            1 if is_zero(high) => {
                nonzero.insert(at.slicer.number(unextended(lhs)));
            }
            1 if is_zero(low) => {
                nonzero.insert(at.slicer.number(unextended(rhs)));
            }
            2 | 4 if !signed && is_zero(low) => {
                nonzero.insert(at.slicer.number(unextended(rhs)));
            }
            0 => relations.push(Relation::Equal(low, high)),
            2 | 4 if signed => relations.push(Relation::Less(low, high)),
            3 | 5 if signed => relations.push(Relation::AtMost(low, high)),
            _ => {}
        }
    }

    /// The expression of an index, or of an integer as a signed number.
    pub(super) fn int_expr(
        &mut self,
        at: &mut Inspection<'_, 'c, 'i>,
        value: Val<'c>,
        depth: usize,
    ) -> Expr {
        if let Some(expr) = at.exprs.get(value).filter(|_| value.r#type().is_index()) {
            return expr;
        }
        let number = (at.slicer.number(value), Signedness::Signed);
        if let Some(expr) = at.vars.get(&number) {
            return *expr;
        }
        let expr = self
            .computed_expr(at, value, depth)
            .unwrap_or_else(|| self.data_expr(at, value, Signedness::Signed));
        at.vars.insert(number, expr);
        expr
    }

    /// The variable for an integer that is not computed from others.
    fn data_expr(
        &mut self,
        at: &mut Inspection<'_, 'c, 'i>,
        value: Val<'c>,
        signedness: Signedness,
    ) -> Expr {
        let number = (at.slicer.number(value), signedness);
        if let Some(expr) = at.vars.get(&number) {
            return *expr;
        }
        let read = mlir::defining_op(value).filter(|op| mlir::is(*op, "tc.read"));
        let text = read.and_then(|read| mlir::string_attr(read, "text")).map(str::to_string);
        let unsigned = signedness == Signedness::Unsigned;
        let data = Data { text, interval: imap::element_interval(value.r#type(), unsigned) };
        let expr = self.add_data(data, Some(&mut at.prover));
        at.vars.insert(number, expr);
        expr
    }

    /// The expression of an integer computed by index arithmetic that does not wrap.
    fn computed_expr(
        &mut self,
        at: &mut Inspection<'_, 'c, 'i>,
        value: Val<'c>,
        depth: usize,
    ) -> Option<Expr> {
        let op = mlir::defining_op(value).filter(|_| depth < MAX_DEPTH)?;
        if mlir::is(op, "arith.extui") {
            return Some(self.data_expr(at, mlir::operand(op, 0), Signedness::Unsigned));
        }
        let ir = self.ir;
        let mut operand = |number| self.int_expr(at, mlir::operand(op, number), depth + 1);
        let expr = match mlir::name(op) {
            "arith.constant" => ir.constant(mlir::integer_attr(op, "value")?),
            "arith.index_cast" | "arith.extsi" => operand(0),
            "arith.addi" => ir.add(operand(0), operand(1)),
            "arith.subi" => ir.sub(operand(0), operand(1)),
            "arith.muli" => ir.mul(operand(0), operand(1)),
            "arith.minsi" => ir.min(operand(0), operand(1)),
            "arith.maxsi" => ir.max(operand(0), operand(1)),
            _ => return None,
        };
        // The prover computes in 64 bits itself, so that their ends are out of its reach.
        let reach = Interval::new(-(1 << 62), 1 << 62);
        let Interval { lo, hi } = imap::element_interval(value.r#type(), false).intersect(reach);
        let fits = at.prover.at_most(ir.constant(lo), expr) == Verdict::Proved
            && at.prover.at_most(expr, ir.constant(hi)) == Verdict::Proved;
        fits.then_some(expr)
    }

    /// Whether an integer is known not to be 0 where these conditions hold.
    pub(super) fn is_nonzero(
        &mut self,
        at: &mut Inspection<'_, 'c, 'i>,
        value: Val<'c>,
        guards: &[Guard<'c>],
    ) -> bool {
        let expr = self.int_expr(at, value, 0);
        let facts = self.facts(at, guards);
        let one = self.ir.constant(1);
        facts.nonzero.contains(&at.slicer.number(unextended(value)))
            || facts.prover.at_most(one, expr) == Verdict::Proved
            || facts.prover.at_most(one, self.ir.neg(expr)) == Verdict::Proved
            || is_raised(unextended(value))
    }
}

/// Whether a value is the maximum, as unsigned numbers, with a constant that is not 0.
fn is_raised(value: Val) -> bool {
    let op = mlir::defining_op(value).filter(|op| mlir::is(*op, "arith.maxui"));
    op.is_some_and(|op| {
        mlir::operands(op).into_iter().filter_map(mlir::constant_of).any(|it| it != 0)
    })
}

/// A value without the extensions to wider integers, which keep what is 0 and what is not.
fn unextended(mut value: Val) -> Val {
    while let Some(op) = mlir::defining_op(value)
        && matches!(mlir::name(op), "arith.extsi" | "arith.extui")
    {
        value = mlir::operand(op, 0);
    }
    value
}

/// What holds, or does not, if `condition ? yes : no` is known to: something only where one
/// of the two is a constant that it is not.
fn chosen<'c>(condition: Val<'c>, yes: Val<'c>, no: Val<'c>, holds: bool) -> Vec<(Val<'c>, bool)> {
    let is_other = |value| mlir::constant_of(value).is_some_and(|value| (value != 0) != holds);
    if is_other(no) {
        vec![(condition, true), (yes, holds)]
    } else if is_other(yes) {
        vec![(condition, false), (no, holds)]
    } else {
        Vec::new()
    }
}
