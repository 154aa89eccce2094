//! Index expressions as `arith` operations on `index` values.
//!
//! `floordiv`, `ceildiv` and `mod` round as in [`tc_ir`]. Where the intervals of the
//! variables show that both operands are non-negative, the plain unsigned operation is
//! used: it needs no correction, and LLVM turns it into shifts and masks. A divisor that
//! may be zero is replaced by one, so that an expression on a path not taken cannot trap.
//! One that cannot is clamped, so that `hoist-divisions` and LLVM see it too.

use melior::ir::{Attribute, ValueLike};
use tc_dialects::mlir::{self, Builder, Val};
use tc_ir::{Context, Expr, Interval, Node, Var};

/// Emits expressions over variables of known values.
#[derive(Copy, Clone)]
pub struct IndexEmitter<'a, 'c> {
    /// Where the operations are created.
    pub builder: Builder<'c>,
    /// The context of the expressions.
    pub ir: &'a Context,
    /// Intervals that cover the values of the variables.
    pub intervals: &'a dyn Fn(Var) -> Interval,
    /// Whether sums and products are known not to overflow, as in the subscripts of an
    /// access that is inside its operand.
    pub no_overflow: bool,
}

impl<'c> IndexEmitter<'_, 'c> {
    /// The values of expressions; a common subexpression is emitted once.
    ///
    /// # Panics
    /// When a variable has no value: an internal error.
    pub fn emit(&self, exprs: &[Expr], value_of: &dyn Fn(Var) -> Option<Val<'c>>) -> Vec<Val<'c>> {
        let exprs = self.narrowed(exprs);
        self.ir.fold_values(&exprs, |_, node, operands| match (node, operands) {
            (Node::Const(value), _) => self.builder.index(value),
            (Node::Var(var), _) => value_of(var).expect("a variable with a value"),
            (_, Some((lhs, rhs))) => self.operation(node, *lhs, *rhs),
            (_, None) => unreachable!("every other node has operands"),
        })
    }

    /// Takes multiples of the divisor out of a numerator that may leave 64 bits because of its constant, as
    /// that of merged divisions may.
    fn narrowed(&self, exprs: &[Expr]) -> Vec<Expr> {
        let ir = self.ir;
        ir.fold_values(exprs, |expr, node, operands: Option<(&Expr, &Expr)>| {
            let Some((&lhs, &rhs)) = operands else { return expr };
            let is_division =
                matches!(node, Node::FloorDiv(..) | Node::CeilDiv(..) | Node::Mod(..));
            if is_division
                && let Some(divisor @ 1..) = ir.as_constant(rhs)
                && let Node::Add(rest, constant) = ir.node(lhs)
                && let Some(constant) = ir.as_constant(constant)
                && self.interval(rest).is_bounded()
                && !self.interval(lhs).is_bounded()
            {
                let numerator = ir.add(rest, ir.constant(constant.rem_euclid(divisor)));
                let rounded = ir.rebuild(node, numerator, rhs);
                return match node {
                    Node::Mod(..) => rounded,
                    _ => ir.add(rounded, ir.constant(constant.div_euclid(divisor))),
                };
            }
            ir.rebuild(node, lhs, rhs)
        })
    }

    fn operation(&self, node: Node, lhs: Val<'c>, rhs: Val<'c>) -> Val<'c> {
        let index = self.builder.index_type();
        let plain = |name: &str, lhs, rhs| self.builder.value(name, &[lhs, rhs], index);
        match node {
            Node::Add(..) => self.wrapping("arith.addi", lhs, rhs),
            Node::Mul(..) => self.wrapping("arith.muli", lhs, rhs),
            Node::Min(..) => plain("arith.minsi", lhs, rhs),
            Node::Max(..) => plain("arith.maxsi", lhs, rhs),
            Node::FloorDiv(a, b) => {
                let rhs = self.divisor(b, rhs);
                let name = if self.non_negative(a, b) { "arith.divui" } else { "arith.floordivsi" };
                plain(name, lhs, rhs)
            }
            Node::CeilDiv(a, b) => {
                let rhs = self.divisor(b, rhs);
                let name =
                    if self.non_negative(a, b) { "arith.ceildivui" } else { "arith.ceildivsi" };
                plain(name, lhs, rhs)
            }
            Node::Mod(a, b) => {
                let rhs = self.divisor(b, rhs);
                if self.non_negative(a, b) {
                    return plain("arith.remui", lhs, rhs);
                }
                let zero = self.builder.index(0);
                // x mod -c == x mod c
                let rhs = if 0 <= self.interval(b).lo {
                    rhs
                } else {
                    plain("arith.maxsi", rhs, plain("arith.subi", zero, rhs))
                };
                let remainder = plain("arith.remsi", lhs, rhs);
                let negative = self.builder.compare_int("slt", remainder, zero);
                let corrected = plain("arith.addi", remainder, rhs);
                self.builder.select(negative, corrected, remainder)
            }
            Node::Const(_) | Node::Var(_) => unreachable!("leaves have no operands"),
        }
    }

    fn wrapping(&self, name: &str, lhs: Val<'c>, rhs: Val<'c>) -> Val<'c> {
        let index = self.builder.index_type();
        if !self.no_overflow {
            return self.builder.value(name, &[lhs, rhs], index);
        }
        let flags = no_signed_wrap(&self.builder);
        self.builder.value_with(name, &[lhs, rhs], index, &[("overflowFlags", flags)])
    }

    fn interval(&self, expr: Expr) -> Interval {
        self.ir.interval_of(expr, self.intervals)
    }

    fn non_negative(&self, lhs: Expr, rhs: Expr) -> bool {
        0 <= self.interval(lhs).lo && 0 <= self.interval(rhs).lo
    }

    fn divisor(&self, expr: Expr, value: Val<'c>) -> Val<'c> {
        let interval = self.interval(expr);
        if !interval.contains(0) {
            if self.ir.as_constant(expr).is_some() {
                return value;
            }
            let (name, nearest) =
                if 0 < interval.lo { ("arith.maxsi", 1) } else { ("arith.minsi", -1) };
            let operands = [value, self.builder.index(nearest)];
            return self.builder.value(name, &operands, self.builder.index_type());
        }
        let zero = self.builder.index(0);
        let one = self.builder.index(1);
        let is_zero = self.builder.compare_int("eq", value, zero);
        self.builder.select(is_zero, one, value)
    }
}

/// The attribute that lets LLVM assume that a signed sum or product does not overflow.
pub fn no_signed_wrap<'c>(builder: &Builder<'c>) -> Attribute<'c> {
    mlir::parse_attribute(builder.context, "#arith.overflow<nsw>")
}

/// Sums, products and comparisons of indices.
pub(in crate::convert) trait IndexMath<'c> {
    fn add_index(&self, x: Val<'c>, y: Val<'c>) -> Val<'c>;
    fn sub_index(&self, x: Val<'c>, y: Val<'c>) -> Val<'c>;
    fn scale_index(&self, x: Val<'c>, factor: i64) -> Val<'c>;
    /// The number of iterations of a loop with these bounds, the upper one excluded.
    fn trip_count(&self, lower: Val<'c>, upper: Val<'c>, step: Val<'c>) -> Val<'c>;
    fn and(&self, x: Val<'c>, y: Val<'c>) -> Val<'c>;
    /// Whether `0 <= x < extent`.
    fn is_inside(&self, x: Val<'c>, extent: i64) -> Val<'c>;
    /// The nearest index from 0 to `last`.
    fn clamp_index(&self, x: Val<'c>, last: i64) -> Val<'c>;
}

impl<'c> IndexMath<'c> for Builder<'c> {
    fn add_index(&self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        self.value("arith.addi", &[x, y], x.r#type())
    }

    fn sub_index(&self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        self.value("arith.subi", &[x, y], x.r#type())
    }

    fn scale_index(&self, x: Val<'c>, factor: i64) -> Val<'c> {
        if factor == 1 {
            return x;
        }
        self.value("arith.muli", &[x, self.index(factor)], x.r#type())
    }

    fn trip_count(&self, lower: Val<'c>, upper: Val<'c>, step: Val<'c>) -> Val<'c> {
        let range = self.sub_index(upper, lower);
        let count = self.value("arith.ceildivsi", &[range, step], step.r#type());
        self.value("arith.maxsi", &[count, self.index(0)], step.r#type())
    }

    fn and(&self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        self.value("arith.andi", &[x, y], self.int_type(1))
    }

    fn is_inside(&self, x: Val<'c>, extent: i64) -> Val<'c> {
        // As unsigned numbers, negative ones are too large.
        self.compare_int("ult", x, self.index(extent))
    }

    fn clamp_index(&self, x: Val<'c>, last: i64) -> Val<'c> {
        let low = self.value("arith.maxsi", &[x, self.index(0)], x.r#type());
        self.value("arith.minsi", &[low, self.index(last)], x.r#type())
    }
}
