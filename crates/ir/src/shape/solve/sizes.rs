//! Whether residuals have sizes that fit all of them.
//!
//! The rules of section 5 compare terms of equations one by one. `(+ (* n 2) (* m 3)) = 6` has no term that tells,
//! and of `(- m 7) > 0` and `(+ m n) = 7` each is possible. Equations and inequalities between sums are rows of an
//! [integer program](crate::integer_program) whose unknowns are products of sizes and quotients: of these it knows
//! that a product is not less than what its factors add up to, and what a quotient leaves. Points of the program
//! may be no sizes; where it has none, there are none.

use std::collections::{BTreeMap, HashSet};

use super::roots::positive_roots;
use super::{Failure, Mark, Reason, Relation, Solver};
use crate::expr::{Expr, Node};
use crate::integer_program::{Answer, Program, Row, Terms};
use crate::polynomial::{Monomial, Normalizer, Polynomial, remove_factor};
use crate::shape::{Arithmetic, DimError};

/// How much work the question about the sizes of connected residuals may be, in terms touched.
const MAX_SIZE_WORK: usize = 1 << 16;
/// The most unknowns.
const MAX_COLUMNS: usize = 1 << 10;

impl Arithmetic {
    /// Where a sum is zero, if it has one variable and no quotients. `None` also if it is too large.
    pub(super) fn roots(&self, sum: &Polynomial) -> Option<Vec<i64>> {
        let mut monomials = sum.terms().map(|(monomial, _)| monomial);
        let atom = *monomials.next()?.first()?;
        self.as_var(atom)?;
        let mut coefficients = vec![sum.constant_part()];
        for (monomial, coefficient) in sum.terms() {
            if monomial.iter().any(|it| *it != atom) {
                return None;
            }
            let degree = monomial.len();
            coefficients.resize(coefficients.len().max(degree + 1), 0);
            coefficients[degree] = coefficient;
        }
        positive_roots(&coefficients)
    }
}

impl Solver {
    /// Checks the residuals since a mark, with those that share variables with them.
    pub(super) fn check_sizes(&mut self, since: Mark) -> Result<(), Failure> {
        let mut seen = HashSet::new();
        let is_asked =
            |relation: &Relation| matches!(relation, Relation::Dims(..) | Relation::Positive(_));
        for id in self.stuck_since(since) {
            let connected = self.connected([id], &mut seen, usize::MAX, true, is_asked);
            let reason = match connected.values().next() {
                Some(Relation::Dims(left, right)) if connected.len() == 1 => {
                    Reason::Dims(left.clone(), right.clone())
                }
                _ => Reason::Sizes,
            };
            if !have_sizes(&self.arithmetic, connected.values()) {
                return self.contradiction(&connected, reason);
            }
        }
        Ok(())
    }
}

/// Whether some sizes satisfy all conditions, or that is not decided.
fn have_sizes<'r>(arithmetic: &Arithmetic, residuals: impl Iterator<Item = &'r Relation>) -> bool {
    let mut sizes = Sizes { arithmetic, columns: BTreeMap::new(), program: Program::default() };
    for residual in residuals {
        match residual {
            Relation::Dims(left, right) => {
                let polynomials = [left, right].map(|dim| arithmetic.polynomial(dim));
                // Other sizes may be ragged then.
                let [Some(left), Some(right)] = polynomials else { return true };
                let Ok(difference) = left.sub(&right) else { continue };
                sizes.add(&difference, Some(0), Some(0));
                if let Some(roots) = arithmetic.roots(&difference) {
                    sizes.one_of(&difference, &roots);
                }
            }
            Relation::Positive(dim) => {
                let Some(sum) = arithmetic.polynomial(dim) else { return true };
                sizes.add(&sum, Some(1), None);
            }
            Relation::Shapes(..) | Relation::Elements(..) => {}
        }
    }
    sizes.relate();
    !matches!(sizes.program.solve(&mut { MAX_SIZE_WORK }), Answer::Empty)
}

/// What is known about sizes.
struct Sizes<'a> {
    arithmetic: &'a Arithmetic,
    /// The unknowns, and their columns.
    columns: BTreeMap<Monomial, u32>,
    program: Program,
}

impl Sizes<'_> {
    fn column(&mut self, monomial: &Monomial) -> u32 {
        let next = self.columns.len() as u32;
        *self.columns.entry(monomial.clone()).or_insert(next)
    }

    /// Says that a sum is between two ends.
    fn add(&mut self, sum: &Polynomial, lower: Option<i128>, upper: Option<i128>) {
        let terms = sum
            .terms()
            .map(|(monomial, coefficient)| (self.column(monomial), i128::from(coefficient)));
        let mut terms: Terms = terms.collect();
        terms.sort_unstable();
        let constant = i128::from(sum.constant_part());
        let [lower, upper] = [lower, upper].map(|end| end.map(|end| end - constant));
        self.program.rows.push(Row { terms, lower, upper });
    }

    /// Says that the variable of a sum has one of these values.
    fn one_of(&mut self, sum: &Polynomial, values: &[i64]) {
        let Some(&atom) = sum.terms().next().and_then(|(monomial, _)| monomial.first()) else {
            return;
        };
        let terms = vec![(self.column(&Monomial::from_slice(&[atom])), 1)];
        let row = |value: &i64| {
            let value = Some(i128::from(*value));
            Row { terms: terms.clone(), lower: value, upper: value }
        };
        self.program.choices.push(values.iter().map(row).collect());
    }

    /// Says how products and quotients follow from what they are made of.
    fn relate(&mut self) {
        let mut related: HashSet<Monomial> = HashSet::new();
        loop {
            let columns = self.columns.keys();
            let open: Vec<Monomial> =
                columns.filter(|it| !related.contains(*it)).cloned().collect();
            if open.is_empty() || MAX_COLUMNS < self.columns.len() {
                return;
            }
            for monomial in open {
                // What overflows is not known.
                let _ = match monomial[..] {
                    [atom] => self.relate_atom(atom),
                    _ => self.relate_product(&monomial),
                };
                related.insert(monomial);
            }
        }
    }

    /// A variable, or a quotient.
    fn relate_atom(&mut self, atom: Expr) -> Result<(), DimError> {
        let sum = Polynomial::atom(atom);
        if let Some(least) = self.arithmetic.least(atom) {
            self.add(&sum, Some(i128::from(least)), None);
        }
        if let Node::FloorDiv(lhs, rhs) = self.arithmetic.context.node(atom) {
            let mut normalizer = Normalizer::new(&self.arithmetic.context);
            let (lhs, rhs) = (normalizer.polynomial(lhs)?, normalizer.polynomial(rhs)?);
            if self.arithmetic.bounds(&rhs).0.is_some_and(|least| 0 < least) {
                // What is left is natural, and less than the divisor.
                let rest = lhs.sub(&sum.mul(&rhs)?)?;
                self.add(&rest, Some(0), None);
                self.add(&rest.sub(&rhs)?, None, Some(-1));
            }
        }
        Ok(())
    }

    /// `(x - 1) * (y - 1)` is not negative for any two factors that are positive.
    fn relate_product(&mut self, monomial: &Monomial) -> Result<(), DimError> {
        let Some(least) = monomial.iter().map(|&atom| self.arithmetic.least(atom)).min().flatten()
        else {
            return Ok(());
        };
        let whole = Polynomial::term(monomial.clone(), 1);
        if least < 1 {
            if least == 0 {
                self.add(&whole, Some(0), None);
            }
            return Ok(());
        }
        for (place, &atom) in monomial.iter().enumerate() {
            let factor = Monomial::from_slice(&[atom]);
            if monomial[..place].contains(&atom) {
                continue;
            }
            if let Some(rest) = remove_factor(monomial, &factor) {
                let sum = Polynomial::atom(atom).add(&Polynomial::term(rest, 1))?;
                self.add(&whole.sub(&sum)?, Some(-1), None);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Origin;
    use super::*;
    use crate::shape::text::Names;
    use crate::shape::{Dim, DimOp, DimVar};

    const NUM_VARS: u32 = 3;
    /// The size that each variable has at most.
    const MOST: i64 = 4;

    /// Terms, each a factor and an operation on two variables, and a constant.
    type Sum = (Vec<(i64, usize, [u32; 2])>, i64);

    fn any_sum() -> impl Strategy<Value = Sum> {
        let term = (-3..=3_i64, 0..6_usize, [0..NUM_VARS, 0..NUM_VARS]);
        (prop::collection::vec(term, 1..4), -9..=9_i64)
    }

    /// The sum without the operations from one on.
    fn dim(arithmetic: &Arithmetic, (terms, constant): &Sum, num_operations: usize) -> Dim {
        let apply = |op, a: &Dim, b: &Dim| arithmetic.apply(op, a, b).expect("small");
        terms.iter().fold(Dim::Constant(*constant), |sum, (factor, operation, vars)| {
            let [a, b] = vars.map(|var| Dim::Var(DimVar(var)));
            let term = match operation % num_operations {
                0 => a,
                1 => apply(DimOp::Div, &a, &Dim::Constant(2)),
                2 => apply(DimOp::Div, &apply(DimOp::Add, &a, &b), &Dim::Constant(3)),
                3 => apply(DimOp::Div, &a, &b),
                _ => apply(DimOp::Mul, &a, &b),
            };
            apply(DimOp::Add, &sum, &apply(DimOp::Mul, &Dim::Constant(*factor), &term))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// What has sizes is never refused; what has none is, if there are no products. Each variable has
        /// another one beside it that makes it at most [`MOST`].
        #[test]
        fn answers_are_those_of_enumeration(
            equations in prop::collection::vec(any_sum(), 1..4),
            inequalities in prop::collection::vec(any_sum(), 0..3),
            num_operations in prop_oneof![Just(3_usize), Just(6)],
        ) {
            let arithmetic = Arithmetic::default();
            let sum = |sum| dim(&arithmetic, sum, num_operations);
            let mut residuals: Vec<Relation> =
                equations.iter().map(|it| Relation::Dims(sum(it), Dim::Constant(0))).collect();
            residuals.extend(inequalities.iter().map(|it| Relation::Positive(sum(it))));
            let sizes = || 1..=MOST;
            let all =
                sizes().flat_map(|a| sizes().flat_map(move |b| sizes().map(move |c| [a, b, c])));
            let holds = |it: [i64; 3]| {
                let value = |dim| arithmetic.evaluate(dim, &|var| it.get(var.0 as usize).copied());
                residuals.iter().all(|residual| match residual {
                    Relation::Dims(left, right) => value(left) == value(right),
                    Relation::Positive(dim) => value(dim).is_some_and(|size| 0 < size),
                    _ => false,
                })
            };
            let is_satisfied = all.into_iter().any(holds);
            let bounds = (0..NUM_VARS).map(|var| {
                let [a, b] = [var, var + NUM_VARS].map(|var| Dim::Var(DimVar(var)));
                let whole = arithmetic.apply(DimOp::Add, &a, &b).expect("small");
                Relation::Dims(whole, Dim::Constant(MOST + 1))
            });
            residuals.extend(bounds);
            let found = have_sizes(&arithmetic, residuals.iter());
            prop_assert!(found || !is_satisfied);
            prop_assert!(!found || is_satisfied || num_operations == 6);
        }
    }

    /// In both orders, and with a condition that has nothing to do with it.
    #[test]
    fn sizes_that_fit_together_nowhere_are_refused() {
        for (first, second) in [
            (("m + n", "8"), ("(m - 8) / 2", "o")),
            (("2*n + 3*m", "6"), ("n", "n")),
            (("m * n", "6"), ("m + n", "9")),
            (("n * n + 6", "5 * n"), ("n / 4", "o")),
            (("n / 2 + n", "4"), ("m + 2 * n", "6")),
        ] {
            let other = ("x + y", "2 * z");
            for equations in [[first, second, other], [other, second, first]] {
                let (mut solver, mut names) = (Solver::new(), Names::default());
                for (number, (left, right)) in equations.iter().enumerate() {
                    let [left, right] =
                        [left, right].map(|text| names.dim(&mut solver, text).unwrap());
                    solver.equate_dims(left, right, number as Origin);
                }
                solver.solve().unwrap();
                let conflict = solver.settle(Mark::default(), 0).unwrap_err();
                let is_needed = |it: &(&str, &str)| *it != other && it.0 != it.1;
                let core = equations.iter().enumerate().filter(|(_, it)| is_needed(it));
                let core: Vec<Origin> = core.map(|(number, _)| number as Origin).collect();
                assert_eq!((conflict.core, conflict.minimal), (core, true), "{first:?}");
            }
        }
    }
}
