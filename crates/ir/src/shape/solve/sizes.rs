//! Decides whether some sizes satisfy all residuals.
//!
//! The rules of section 5 compare terms of equations one by one. `(+ (* n 2) (* m 3)) = 6` has no term that tells,
//! and of `(- m 7) > 0` and `(+ m n) = 7` each is possible. Equations and inequalities between sums are rows of an
//! [integer program](crate::integer_program) whose unknowns are products of sizes and quotients: of these it knows
//! that a product is not less than what its factors add up to, and what a quotient leaves; of a product that is a
//! constant, all factors are tried. Points of the program may be no sizes; but where it has none, there are none,
//! and where one unknown is the same at all of them, it is known.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::roots::positive_roots;
use super::together::{Connected, only_values};
use super::{Failure, Mark, Reason, Relation, Solver};
use crate::expr::Expr;
use crate::integer_program::{Answer, Program, Row, Terms};
use crate::polynomial::{Monomial, Polynomial, remove_factor};
use crate::shape::{Arithmetic, Dim, DimError, DimVar};

/// How much work the question about the sizes of connected residuals may be, in terms touched.
pub(super) const MAX_SIZE_WORK: usize = 1 << 16;
/// The largest product whose factors are tried.
const MAX_PRODUCT: i64 = 1 << 20;
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
        for id in self.stuck_since(since) {
            let connected = self.connected([id], &mut seen, usize::MAX, true, is_about_sizes);
            if !have_sizes(&self.arithmetic, connected.values(), MAX_SIZE_WORK) {
                return self.contradiction(&connected, reason(&connected));
            }
        }
        Ok(())
    }

    /// Equates the variables that have only one possible size with it. Whether there are any.
    pub(super) fn find_sizes(&mut self, since: Mark) -> bool {
        let mut seen = HashSet::new();
        let mut is_new = false;
        for id in self.stuck_since(since) {
            let connected = self.connected([id], &mut seen, usize::MAX, true, is_about_sizes);
            for (var, size) in only_sizes(&self.arithmetic, connected.values(), MAX_SIZE_WORK) {
                is_new = true;
                self.follows(&connected, Relation::Dims(Dim::Var(var), Dim::Constant(size)));
            }
        }
        is_new
    }
}

/// Why connected conditions on sizes contradict each other.
pub(super) fn reason(connected: &Connected) -> Reason {
    match connected.values().next() {
        Some(Relation::Dims(left, right)) if connected.len() == 1 => {
            Reason::Dims(left.clone(), right.clone())
        }
        _ => Reason::Sizes,
    }
}

pub(super) fn is_about_sizes(relation: &Relation) -> bool {
    matches!(relation, Relation::Dims(..) | Relation::Positive(_))
}

/// Whether some sizes satisfy all conditions, or that is not decided with so much work.
pub(super) fn have_sizes<'r>(
    arithmetic: &Arithmetic,
    residuals: impl Iterator<Item = &'r Relation>,
    mut work: usize,
) -> bool {
    Sizes::new(arithmetic, residuals).is_none_or(|sizes| {
        sizes.program.solve(&mut work) != Answer::Empty
            && sizes.with_factors().is_none_or(|it| it.solve(&mut work) != Answer::Empty)
    })
}

/// The variables that have the same size wherever all conditions hold, as far as that is decided with so much
/// work, and these sizes.
fn only_sizes<'r>(
    arithmetic: &Arithmetic,
    residuals: impl Iterator<Item = &'r Relation> + Clone,
    mut work: usize,
) -> Vec<(DimVar, i64)> {
    // What only has to be positive may be ragged.
    let equated = residuals.clone().flat_map(|residual| match residual {
        Relation::Dims(left, right) => [arithmetic.vars(left), arithmetic.vars(right)].concat(),
        _ => Vec::new(),
    });
    let equated: HashSet<DimVar> = equated.collect();
    if equated.is_empty() {
        return Vec::new();
    }
    let Some(sizes) = Sizes::new(arithmetic, residuals) else { return Vec::new() };
    let var = |(monomial, column): (&Monomial, &u32)| match monomial[..] {
        [atom] => Some((*column, arithmetic.as_var(atom).filter(|it| equated.contains(it))?)),
        _ => None,
    };
    let vars: BTreeMap<u32, DimVar> = sizes.columns.iter().filter_map(var).collect();
    let program = sizes.with_factors().unwrap_or(sizes.program);
    let values = only_values(program, vars.keys().copied(), &mut work);
    let sizes =
        values.into_iter().map(|(column, value)| Some((vars[&column], i64::try_from(value).ok()?)));
    sizes.flatten().collect()
}

/// Sizes at a point of the program of all conditions, if it has one: where there are products and quotients, they
/// may not fit.
pub(super) fn possible_sizes<'r>(
    arithmetic: &Arithmetic,
    residuals: impl Iterator<Item = &'r Relation>,
) -> BTreeMap<DimVar, i64> {
    let Some(sizes) = Sizes::new(arithmetic, residuals) else { return BTreeMap::new() };
    let program = sizes.with_factors();
    let answer = program.as_ref().unwrap_or(&sizes.program).solve(&mut { MAX_SIZE_WORK });
    let Answer::Point(point) = answer else { return BTreeMap::new() };
    let size = |(monomial, column): (&Monomial, &u32)| match monomial[..] {
        [atom] => {
            let size = point.get(*column as usize)?;
            Some((arithmetic.as_var(atom)?, i64::try_from(*size).ok()?))
        }
        _ => None,
    };
    sizes.columns.iter().filter_map(size).collect()
}

/// What is known about sizes.
struct Sizes<'a> {
    arithmetic: &'a Arithmetic,
    /// The unknowns, and their columns.
    columns: BTreeMap<Monomial, u32>,
    program: Program,
    /// Quotients that are known.
    quotients: HashMap<Expr, i64>,
    /// Products that are known.
    products: Vec<(Monomial, i64)>,
    /// Sums that are positive.
    positive: Vec<Rc<Polynomial>>,
}

impl<'a> Sizes<'a> {
    /// What conditions say; `None` if some sizes may be ragged.
    fn new<'r>(
        arithmetic: &'a Arithmetic,
        residuals: impl Iterator<Item = &'r Relation>,
    ) -> Option<Self> {
        let mut sizes = Self {
            arithmetic,
            columns: BTreeMap::new(),
            program: Program::default(),
            quotients: HashMap::new(),
            products: Vec::new(),
            positive: Vec::new(),
        };
        for residual in residuals {
            match residual {
                Relation::Dims(left, right) => {
                    let (left, right) =
                        (arithmetic.polynomial(left)?, arithmetic.polynomial(right)?);
                    let Ok(difference) = left.sub(&right) else { continue };
                    sizes.add(&difference, Some(0), Some(0));
                    sizes.add_known(&difference);
                    if let Some(roots) = arithmetic.roots(&difference) {
                        sizes.one_of(&difference, &roots);
                    }
                }
                Relation::Positive(dim) => {
                    let sum = arithmetic.polynomial(dim)?;
                    sizes.add(&sum, Some(1), None);
                    sizes.positive.push(sum);
                }
                Relation::Shapes(..) | Relation::Elements(..) => {}
            }
        }
        sizes.relate_sums();
        sizes.relate();
        Some(sizes)
    }

    /// Keeps the value of what is alone in an equation with a constant.
    fn add_known(&mut self, difference: &Polynomial) {
        let mut terms = difference.terms();
        let (Some((monomial, coefficient)), None) = (terms.next(), terms.next()) else { return };
        let value =
            difference.constant_part().checked_neg().and_then(|it| it.checked_div(coefficient));
        // What is no multiple of the coefficient has been refused.
        let Some(value) = value else { return };
        match monomial[..] {
            [atom] => _ = self.quotients.insert(atom, value),
            _ => self.products.push((monomial.clone(), value)),
        }
    }

    /// The program with choices of divisors for the factors of known products; `None` if there are none.
    fn with_factors(&self) -> Option<Program> {
        let mut program = self.program.clone();
        for (monomial, value) in &self.products {
            let is_positive = |atom: &Expr| self.arithmetic.least(*atom).is_some_and(|it| 0 < it);
            if !(1..=MAX_PRODUCT).contains(value) || !monomial.iter().all(is_positive) {
                continue;
            }
            for (place, atom) in monomial.iter().enumerate() {
                let factor = Monomial::from_slice(&[*atom]);
                let Some(rest) = remove_factor(monomial, &factor) else { continue };
                let columns = [self.columns.get(&factor), self.columns.get(&rest)];
                if let [Some(&factor), Some(&rest)] = columns
                    && !monomial[..place].contains(atom)
                {
                    program.choices.push(factorizations(factor, rest, *value));
                }
            }
        }
        (self.program.choices.len() < program.choices.len()).then_some(program)
    }

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

    /// `(p - 1) * (x - 1)` is not negative for a positive sum `p` and a variable, where products of both are asked for
    /// (the reformulation-linearization technique of Sherali and Adams).
    fn relate_sums(&mut self) {
        let products: Vec<Monomial> =
            self.columns.keys().filter(|it| it.len() == 2).cloned().collect();
        for sum in std::mem::take(&mut self.positive) {
            let vars: BTreeSet<DimVar> =
                self.arithmetic.polynomial_vars(&sum).into_iter().collect();
            let is_linear =
                |atom: &Expr| self.arithmetic.as_var(*atom).is_some_and(|var| vars.contains(&var));
            let pairs = products.iter().flat_map(|it| [[it[0], it[1]], [it[1], it[0]]]);
            let others = pairs.filter(|[one, _]| is_linear(one)).map(|[_, other]| other);
            let others: Vec<Expr> =
                others.filter(|it| self.arithmetic.least(*it).is_some_and(|it| 0 < it)).collect();
            for (place, &other) in others.iter().enumerate() {
                if others[..place].contains(&other) || MAX_COLUMNS < self.columns.len() {
                    continue;
                }
                let factor = Polynomial::atom(other);
                // What overflows is not known.
                if let Ok(product) = sum.mul(&factor)
                    && let Ok(rest) = product.sub(&sum).and_then(|it| it.sub(&factor))
                {
                    self.add(&rest, Some(-1), None);
                }
            }
        }
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
        if let Some([lhs, rhs]) = self.arithmetic.division(atom)?
            && self.arithmetic.bounds(&rhs).0.is_some_and(|least| 0 < least)
        {
            // What is left is natural, and less than the divisor.
            let quotient = self.quotients.get(&atom).map(|value| Polynomial::constant(*value));
            let rest = lhs.sub(&quotient.unwrap_or(sum).mul(&rhs)?)?;
            self.add(&rest, Some(0), None);
            self.add(&rest.sub(&rhs)?, None, Some(-1));
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

/// Rows each of which says that one unknown is a divisor of a value, and another one the quotient. Both are at least 1,
/// and at most the value, so that one equation tells both.
fn factorizations(factor: u32, rest: u32, value: i64) -> Vec<Row> {
    let base = i128::from(value) + 1;
    let divisors = (1..=value).take_while(|it| it * it <= value).filter(|it| value % it == 0);
    let divisors: BTreeSet<i64> = divisors.flat_map(|it| [it, value / it]).collect();
    let mut rows = Vec::new();
    for divisor in divisors {
        let quotient = i128::from(value / divisor);
        let divisor = i128::from(divisor);
        let (mut terms, total) = match factor == rest {
            true if divisor == quotient => (vec![(factor, 1)], divisor),
            true => continue,
            false => (vec![(factor, base), (rest, 1)], base * divisor + quotient),
        };
        terms.sort_unstable();
        rows.push(Row { terms, lower: Some(total), upper: Some(total) });
    }
    rows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Origin;
    use super::super::ranges::only_tried;
    use super::*;
    use crate::shape::DimOp;
    use crate::shape::text::Names;

    const NUM_VARS: u32 = 3;
    /// The size that each variable has at most.
    const MOST: i64 = 4;

    /// So much that it is not used up.
    const ENOUGH_WORK: usize = 1 << 26;

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

        /// What has sizes is never refused; what has none is, by the program if there are no products, and where sizes
        /// are tried. Each variable has another one beside it that makes it at most [`MOST`].
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
            let solutions: Vec<[i64; 3]> = all.into_iter().filter(|it| holds(*it)).collect();
            let is_satisfied = !solutions.is_empty();
            let bounds = (0..NUM_VARS).map(|var| {
                let [a, b] = [var, var + NUM_VARS].map(|var| Dim::Var(DimVar(var)));
                let whole = arithmetic.apply(DimOp::Add, &a, &b).expect("small");
                Relation::Dims(whole, Dim::Constant(MOST + 1))
            });
            residuals.extend(bounds);
            let found = have_sizes(&arithmetic, residuals.iter(), ENOUGH_WORK);
            prop_assert!(found || !is_satisfied);
            prop_assert!(!found || is_satisfied || num_operations == 6);
            let tried = only_tried(&arithmetic, residuals.iter());
            prop_assert_eq!(tried.is_some(), is_satisfied);
            let only = only_sizes(&arithmetic, residuals.iter(), ENOUGH_WORK);
            for (place, var) in (0..NUM_VARS).map(DimVar).enumerate() {
                let sizes: BTreeSet<i64> = solutions.iter().map(|it| it[place]).collect();
                let found = only.iter().find(|it| it.0 == var).map(|it| it.1);
                let is_right = found.is_some_and(|size| sizes.iter().all(|it| *it == size));
                prop_assert!(found.is_none() || is_right);
                prop_assert!(found.is_some() || 1 != sizes.len() || num_operations == 6);
                let only = sizes.first().filter(|_| sizes.len() == 1);
                prop_assert_eq!(tried.as_ref().and_then(|it| it.get(&var)), only);
            }
        }
    }

    /// In both orders, and with a condition that has nothing to do with it.
    #[test]
    fn sizes_that_fit_together_nowhere_are_refused() {
        for (first, second) in [
            (("m + n", "8"), ("(m - 8) / 2", "o")),
            (("2*n + 3*m", "6"), ("n", "n")),
            (("m * n", "6"), ("m + n", "9")),
            (("m * n", "15"), ("m + n", "9")),
            (("100 / n", "26"), ("n", "n")),
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

    /// In both orders, and with a condition that has nothing to do with it.
    #[test]
    fn only_possible_sizes_are_found() {
        for (first, second, found) in [
            (("2*n + 3*m", "5"), ("n", "n"), "1 1"),
            (("2*n + 3*m", "12"), ("n", "n"), "3 2"),
            (("2*n + 3*m", "16"), ("3*n + 5*m", "25"), "5 2"),
            (("2*n + 3*m", "11"), ("n", "n"), "n m"),
            (("100 / n", "33"), ("m", "m"), "3 m"),
            (("m * n", "15"), ("m + 2*n", "11"), "3 5"),
            (("m * n", "15"), ("m + n", "8"), "n m"),
            (("m * n", "49"), ("m + n", "14"), "7 7"),
            (("n", "12 / (n + 1)"), ("m", "m"), "3 m"),
            (("n", "12 / m"), ("m", "20 / n - 1"), "6 2"),
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
                solver.settle(Mark::default(), 0).unwrap();
                let [n, m] = ["n", "m"].map(|name| {
                    let dim = names.dim(&mut solver, name).unwrap();
                    let dim = solver.resolved_dim(&dim);
                    names.display_dim(&solver, &dim)
                });
                assert_eq!(format!("{n} {m}"), found, "{first:?}");
            }
        }
    }
}
