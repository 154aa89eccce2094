//! Costs of a function, before it runs: floating-point operations, memory traffic, and memory.
//!
//! Every cost is a [`Formula`] over the sizes of the function, or `None` if it depends on data or on an
//! operation that the analysis does not support. Zero always means that there is none.
//!
//! * `flops` ([`work()`]): floating-point additions, subtractions, multiplications, divisions, remainders,
//!   negations, minima, maxima and calls of elementary functions of the fused program. Each counts as one, a
//!   fused multiply-add as two. A fold counts one operation per value. Comparisons, selections,
//!   conversions and integer arithmetic do not count. The more expensive side of a branch counts.
//! * `bytes` ([`work()`]): the sum over the operations of the fused program of the operands that an operation
//!   reads and the results that it writes. Each operand counts once per operation. An operand counts with
//!   at most its elements, and at most one element per point of the variables that its maps use. An
//!   operation is an `imap.generic`, a copy, or an outermost loop nest over memory.
//! * `temporary_bytes` ([`memory()`]): the most memory that a call holds at one time for tensors between
//!   operations. It excludes arguments, results and constants.
//! * `scratch_bytes` ([`memory()`]): the most memory that a call holds at one time inside of operations, such
//!   as packed panels and partial sums, and all arrays on the stack. Memory that each thread allocates
//!   counts once per thread.
//!
//! On a GPU, `temporary_bytes` is the workspace of a call, and `scratch_bytes` the shared memory of a block.
//!
//! The body of a loop counts as often as the loop runs. The analysis evaluates the counter of an
//! `scf.while` if the counter does not depend on data. It adds the iterations of an `scf.for` one by one if
//! the bounds of an inner loop depend on its index.

mod extents;
mod memory;
mod threads;
mod trips;
mod work;

pub use extents::Extents;
pub use memory::{Memory, memory};
pub use threads::{LOAD, ThreadWork, WORD_BYTES, block_work, element_bytes};
pub use work::{Work, work, work_of_operation};

use std::collections::BTreeMap;
use tc_ir::{
    Context, Expr, IndexingMap, Var,
    map::Variable,
    polynomial::{self, Normalizer, Polynomial},
};

/// A number that depends on sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formula {
    /// The text of a map from the sizes to the number.
    map: String,
    names: Vec<String>,
    text: String,
}

impl Formula {
    /// An expression over runtime variables, which are the sizes of these names. `None` if it has other
    /// variables or is too large.
    pub fn new(ir: &Context, expr: Expr, names: &[String]) -> Option<Self> {
        let expr = canonical(ir, expr)?;
        let is_size =
            |var: &Var| matches!(var, Var::Runtime(number) if (*number as usize) < names.len());
        if !ir.vars(expr).iter().all(is_size) {
            return None;
        }
        let map = IndexingMap {
            runtimes: vec![Variable::default(); names.len()],
            results: vec![expr],
            ..IndexingMap::default()
        };
        let name = |var| match var {
            Var::Runtime(number) => names[number as usize].clone(),
            other => tc_ir::text::default_name(other),
        };
        let text = polynomial::text(ir, expr, &name);
        let map = format!("{:#}", map.display(ir));
        (!text.contains("...")).then(|| Self { map, names: names.to_vec(), text })
    }

    /// The number, if it does not depend on sizes.
    pub fn constant(&self) -> Option<i64> {
        self.evaluate(&BTreeMap::new())
    }

    /// The number at these sizes. `None` if a size is missing or the number does not fit 64 bits.
    pub fn evaluate(&self, sizes: &BTreeMap<String, i64>) -> Option<i64> {
        let ir = Context::new();
        let map = IndexingMap::parse(&ir, &self.map).ok()?;
        let value = |var| match var {
            Var::Runtime(number) => sizes.get(self.names.get(number as usize)?).copied(),
            _ => None,
        };
        ir.eval(*map.results.first()?, &value).ok()
    }
}

impl std::fmt::Display for Formula {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(formatter, "{}", self.text)
    }
}

/// The canonical form of an expression. `None` if it is too large.
fn canonical(ir: &Context, expr: Expr) -> Option<Expr> {
    if ir.as_constant(expr).is_some() {
        return Some(expr);
    }
    let mut normalizer = Normalizer::new(ir);
    let polynomial = normalizer.polynomial(expr).ok()?;
    normalizer.expr(&polynomial).ok()
}

/// Whether `a` is at most `b` for all sizes, as far as the signs of the coefficients of the difference
/// tell. Sizes are not negative.
fn is_at_most(ir: &Context, a: Expr, b: Expr) -> bool {
    let is_size = |atom: &Expr| matches!(ir.as_var(*atom), Some(Var::Runtime(_)));
    let is_positive = |difference: &Polynomial| {
        0 <= difference.constant_part()
            && difference
                .terms()
                .all(|(monomial, factor)| 0 <= factor && monomial.iter().all(is_size))
    };
    let mut normalizer = Normalizer::new(ir);
    normalizer.polynomial(ir.sub(b, a)).is_ok_and(|difference| is_positive(&difference))
}

/// The larger of two amounts, which are not negative.
fn max(ir: &Context, a: Expr, b: Expr) -> Expr {
    let zero = ir.constant(0);
    if a == zero {
        return b;
    }
    if b == zero {
        return a;
    }
    match (is_at_most(ir, a, b), is_at_most(ir, b, a)) {
        (true, _) => b,
        (_, true) => a,
        _ => ir.max(a, b),
    }
}
