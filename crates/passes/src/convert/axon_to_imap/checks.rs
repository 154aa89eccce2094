//! Checks at entry: conditions on the sizes that a function reads.
//!
//! Conditions are calculated exactly. A size has 31 bits, so that most expressions fit the 64 bits of an
//! index; products of three sizes and more are calculated with more bits instead of being checked for
//! overflow.

use tc_dialects::{
    imap::{self, MAX_EXTENT},
    mlir::{Builder, Val},
};
use tc_ir::{
    Context,
    expr::{Expr, Node},
    interval::Interval,
};

/// Most bits of a number in a condition.
const MAX_BITS: u32 = 1024;

/// The bits of an index; one of them is the sign.
const INDEX_BITS: u32 = 64;

/// Conditions on sizes, whose values have names.
pub(super) struct Conditions<'a, 'c> {
    pub(super) ir: &'a Context,
    pub(super) sizes: &'a [(String, Val<'c>)],
}

/// The bits of the magnitude of a constant.
fn bits_of(value: i64) -> u32 {
    u64::BITS - value.unsigned_abs().leading_zeros()
}

impl<'c> Conditions<'_, 'c> {
    /// An interval that holds the value of an expression for all sizes.
    pub(super) fn interval(&self, expr: Expr) -> Interval {
        self.ir.interval_of(expr, &|_| Interval::new(1, MAX_EXTENT))
    }

    /// How many bits the magnitude of an operation has at most, from those of its operands.
    fn bits(&self, node: Node, lhs: u32, rhs: u32) -> u32 {
        match node {
            Node::Const(value) => bits_of(value),
            Node::Var(_) => bits_of(MAX_EXTENT),
            Node::Add(..) | Node::FloorDiv(..) | Node::CeilDiv(..) | Node::Mod(..) => {
                lhs.max(rhs) + 1
            }
            Node::Mul(..) => lhs.saturating_add(rhs),
            Node::Min(..) | Node::Max(..) => lhs.max(rhs),
        }
    }

    /// How many bits the magnitude of any subexpression has at most.
    fn max_bits(&self, exprs: &[Expr]) -> u32 {
        let mut most = 0;
        self.ir.fold_values(exprs, |_, node, operands: Option<(&u32, &u32)>| {
            let (lhs, rhs) = operands.map_or((0, 0), |(lhs, rhs)| (*lhs, *rhs));
            let bits = self.bits(node, lhs, rhs);
            most = most.max(bits);
            bits
        });
        most
    }

    /// Whether no division is by what may be zero.
    pub(super) fn is_defined(&self, exprs: &[Expr]) -> bool {
        let exprs = self.ir.topological(exprs);
        exprs.into_iter().all(|expr| match self.ir.node(expr) {
            Node::FloorDiv(_, by) | Node::CeilDiv(_, by) | Node::Mod(_, by) => {
                self.ir.as_constant(by).is_some_and(|by| by != 0) || 1 <= self.interval(by).lo
            }
            _ => true,
        })
    }

    /// The values of expressions, as integers of one type.
    ///
    /// # Errors
    /// Their calculation is not supported.
    pub(super) fn values(&self, b: &Builder<'c>, exprs: &[Expr]) -> Result<Vec<Val<'c>>, String> {
        if !self.is_defined(exprs) {
            return Err("divides by what may be zero".to_string());
        }
        let bits = self.max_bits(exprs);
        if bits < INDEX_BITS {
            return Ok(self.indices(b, exprs));
        }
        let bits = (bits + 1).next_power_of_two();
        if MAX_BITS < bits {
            return Err("may not fit 1024 bits".to_string());
        }
        let ty = b.int_type(bits);
        let widen = |expr: Expr| b.value("arith.index_cast", &[self.indices(b, &[expr])[0]], ty);
        // What fits an index is calculated as one.
        type Piece<'c> = (u32, Option<Val<'c>>);
        let pieces =
            self.ir.fold(exprs, |_, node, operands: Option<(&Piece<'c>, &Piece<'c>)>| {
                let (lhs, rhs) = operands.map_or((0, 0), |(lhs, rhs)| (lhs.0, rhs.0));
                let bits = self.bits(node, lhs, rhs);
                let (Some((x, y)), Some((lhs, rhs))) = (node.operands(), operands) else {
                    return Ok((bits, None));
                };
                if bits < INDEX_BITS {
                    return Ok((bits, None));
                }
                let name = match node {
                    Node::Add(..) => "arith.addi",
                    Node::Mul(..) => "arith.muli",
                    Node::Min(..) => "arith.minsi",
                    Node::Max(..) => "arith.maxsi",
                    _ => return Err("may not fit 64 bits".to_string()),
                };
                let operands = [(x, lhs), (y, rhs)];
                let operands = operands.map(|(expr, piece)| piece.1.unwrap_or_else(|| widen(expr)));
                Ok((bits, Some(b.value(name, &operands, ty))))
            })?;
        let pieces = pieces.into_iter().zip(exprs);
        Ok(pieces.map(|((_, value), expr)| value.unwrap_or_else(|| widen(*expr))).collect())
    }

    /// The values of expressions that fit an index.
    fn indices(&self, b: &Builder<'c>, exprs: &[Expr]) -> Vec<Val<'c>> {
        let divides_by_size = |expr| match self.ir.node(expr) {
            Node::FloorDiv(_, by) | Node::CeilDiv(_, by) | Node::Mod(_, by) => {
                self.ir.as_constant(by).is_none()
            }
            _ => false,
        };
        if !self.ir.topological(exprs).into_iter().any(divides_by_size) {
            return imap::build_sizes(b, self.ir, self.sizes, exprs);
        }
        // Whether sizes are positive is not known yet, and nothing is divided by zero.
        let one = b.index(1);
        let positive = |(name, size): &(String, Val<'c>)| {
            (name.clone(), b.value("arith.maxsi", &[*size, one], b.index_type()))
        };
        let sizes: Vec<_> = self.sizes.iter().map(positive).collect();
        imap::build_sizes(b, self.ir, &sizes, exprs)
    }

    /// Whether two expressions are the same, or the first one is at most the second.
    ///
    /// # Errors
    /// Their calculation is not supported.
    pub(super) fn compare(
        &self,
        b: &Builder<'c>,
        predicate: &str,
        lhs: Expr,
        rhs: Expr,
    ) -> Result<Val<'c>, String> {
        let values = self.values(b, &[lhs, rhs])?;
        Ok(b.compare_int(predicate, values[0], values[1]))
    }
}
