//! What a function checks at entry, once: conditions on the sizes that it reads.
//!
//! Conditions are calculated exactly. A size has 31 bits, so that most expressions fit the 64 bits of an
//! index; products of three sizes and more are calculated with more bits instead of being checked for
//! overflow.

use tc_dialects::{
    imap,
    mlir::{Builder, Val},
    tc::MAX_EXTENT,
};
use tc_ir::{
    Context,
    expr::{Expr, Node, Var},
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

/// How an expression is calculated.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// How many bits the magnitude of any subexpression has at most.
    bits: u32,
    divides: bool,
    divides_by_size: bool,
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

    fn cost(&self, exprs: &[Expr]) -> Cost {
        let mut total = Cost::default();
        // The bits of each subexpression, from those of its operands.
        let folded = self.ir.fold(exprs, |_, node, operands: Option<(&u32, &u32)>| {
            let (lhs, rhs) = operands.map_or((0, 0), |(lhs, rhs)| (*lhs, *rhs));
            let bits = match node {
                Node::Const(value) => bits_of(value),
                Node::Var(_) => bits_of(MAX_EXTENT),
                Node::Add(..) => lhs.max(rhs) + 1,
                Node::Mul(..) => lhs.saturating_add(rhs),
                Node::FloorDiv(_, by) | Node::CeilDiv(_, by) | Node::Mod(_, by) => {
                    total.divides = true;
                    total.divides_by_size |= self.ir.as_constant(by).is_none();
                    lhs.max(rhs) + 1
                }
                Node::Min(..) | Node::Max(..) => lhs.max(rhs),
            };
            total.bits = total.bits.max(bits);
            Ok::<_, std::convert::Infallible>(bits)
        });
        match folded {
            Ok(_) => total,
            Err(never) => match never {},
        }
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
        let cost = self.cost(exprs);
        if cost.bits < INDEX_BITS {
            if !cost.divides_by_size {
                return Ok(imap::build_sizes(b, self.ir, self.sizes, exprs));
            }
            // Whether sizes are positive is not known yet, and there is no division by zero.
            if !self.is_defined(exprs) {
                return Err("divides by what may be zero".to_string());
            }
            let one = b.index(1);
            let positive = |(name, size): &(String, Val<'c>)| {
                (name.clone(), b.value("arith.maxsi", &[*size, one], b.index_type()))
            };
            let sizes: Vec<_> = self.sizes.iter().map(positive).collect();
            return Ok(imap::build_sizes(b, self.ir, &sizes, exprs));
        }
        let bits = (cost.bits + 1).next_power_of_two();
        if cost.divides || MAX_BITS < bits {
            return Err("may not fit 64 bits".to_string());
        }
        let ty = b.int_type(bits);
        self.ir.fold(exprs, |_, node, operands: Option<(&Val<'c>, &Val<'c>)>| {
            let binary = |name: &str| match operands {
                Some((lhs, rhs)) => Ok(b.value(name, &[*lhs, *rhs], ty)),
                None => Err("an operation without operands".to_string()),
            };
            match node {
                Node::Const(value) => {
                    let value = b.integer(b.int_type(INDEX_BITS), value);
                    Ok(b.value("arith.extsi", &[value], ty))
                }
                Node::Var(Var::Runtime(number)) => {
                    let (_, size) = &self.sizes[number as usize];
                    Ok(b.value("arith.index_cast", &[*size], ty))
                }
                Node::Var(_) => Err("an index among sizes".to_string()),
                Node::Add(..) => binary("arith.addi"),
                Node::Mul(..) => binary("arith.muli"),
                Node::Min(..) => binary("arith.minsi"),
                Node::Max(..) => binary("arith.maxsi"),
                Node::FloorDiv(..) | Node::CeilDiv(..) | Node::Mod(..) => {
                    Err("a division of large numbers".to_string())
                }
            }
        })
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
