//! Tries the values of bounded sizes.
//!
//! The rows of [`super::sizes`] bound what a quotient or a product can be, and do not say what it is: whatever `b` is,
//! `b` and `(/ 12 (+ b 1))` can be numbers in some ranges. Where the conditions leave a size finitely many values, they
//! are all tried, one size after the other, and each condition is asked as soon as it can be calculated. Conditions on
//! sizes without an upper bound are left out, so that what is tried may be no solution; but where nothing is left,
//! there is none, and a size that is the same in all that is left is known.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::sizes::{is_about_sizes, reason};
use super::{Failure, Mark, Relation, Solver};
use crate::expr::Expr;
use crate::polynomial::Polynomial;
use crate::shape::{Arithmetic, Dim, DimVar};

/// How many values are tried for connected residuals.
const MAX_TRIED: usize = 1 << 12;
/// How often all conditions are asked for ranges.
const MAX_ROUNDS: usize = 8;
/// How deep quotients are looked into.
const MAX_DEPTH: usize = 4;
/// The most conditions that are looked at together.
const MAX_CONDITIONS: usize = 64;

/// The least value of a number, and the greatest one.
type Range = (Option<i128>, Option<i128>);

/// What sizes can be.
struct Ranges<'a> {
    arithmetic: &'a Arithmetic,
    /// The greatest value of each variable that has one.
    most: BTreeMap<DimVar, i128>,
}

impl Solver {
    /// Tries the sizes of the residuals since a mark, with those that share variables with them, and equates the
    /// variables that have only one possible size with it. Whether there are any.
    pub(super) fn try_sizes(&mut self, since: Mark) -> Result<bool, Failure> {
        let mut seen = HashSet::new();
        let mut is_new = false;
        for id in self.stuck_since(since) {
            let connected = self.connected([id], &mut seen, MAX_CONDITIONS, true, is_about_sizes);
            let is_linear = |dim| self.arithmetic.is_linear(dim);
            // The integer program knows all about these.
            let are_linear = connected.values().all(|it| match it {
                Relation::Dims(a, b) => is_linear(a) && is_linear(b),
                Relation::Positive(dim) => is_linear(dim),
                _ => true,
            });
            if are_linear {
                continue;
            }
            let Some(sizes) = only_tried(&self.arithmetic, connected.values()) else {
                return self.contradiction(&connected, reason(&connected)).map(|()| false);
            };
            for (var, size) in sizes {
                is_new = true;
                self.follows(&connected, Relation::Dims(Dim::Var(var), Dim::Constant(size)));
            }
        }
        Ok(is_new)
    }
}

/// The variables that have the same size wherever all conditions hold, as far as that is decided, and these sizes. `None`
/// if the conditions do not hold anywhere.
pub(super) fn only_tried<'r>(
    arithmetic: &Arithmetic,
    conditions: impl Iterator<Item = &'r Relation> + Clone,
) -> Option<BTreeMap<DimVar, i64>> {
    // What only has to be positive may be ragged.
    let equated: BTreeSet<DimVar> = conditions
        .clone()
        .flat_map(|it| match it {
            Relation::Dims(a, b) => [arithmetic.vars(a), arithmetic.vars(b)].concat(),
            _ => Vec::new(),
        })
        .collect();
    // Sums that are not negative, and whether they are zero.
    let mut sums: Vec<(Polynomial, bool)> = Vec::new();
    for condition in conditions {
        let sum = match condition {
            Relation::Dims(a, b) => match arithmetic.polynomial(a).zip(arithmetic.polynomial(b)) {
                Some((a, b)) => a.sub(&b),
                None => return Some(BTreeMap::new()),
            },
            Relation::Positive(dim) => match arithmetic.polynomial(dim) {
                Some(sum) => sum.plus(-1),
                None => continue,
            },
            _ => continue,
        };
        // What overflows is not known.
        let Ok(sum) = sum else { continue };
        if arithmetic.polynomial_vars(&sum).iter().all(|var| equated.contains(var)) {
            sums.push((sum, matches!(condition, Relation::Dims(..))));
        }
    }
    let mut ranges = Ranges { arithmetic, most: BTreeMap::new() };
    for _ in 0..MAX_ROUNDS {
        let before = ranges.most.clone();
        for (sum, is_zero) in &sums {
            ranges.not_negative(sum, MAX_DEPTH);
            if let Some(negative) = sum.scale(-1).ok().filter(|_| *is_zero) {
                ranges.not_negative(&negative, MAX_DEPTH);
            }
        }
        if ranges.most == before {
            break;
        }
    }
    ranges.only(&sums)
}

impl Ranges<'_> {
    /// What an atom can be.
    fn atom(&self, atom: Expr, depth: usize) -> Range {
        if let Some(var) = self.arithmetic.as_var(atom) {
            return (Some(1), self.most.get(&var).copied());
        }
        let least = self.arithmetic.least(atom).map(i128::from);
        let Ok(Some([lhs, rhs])) = self.arithmetic.division(atom) else { return (None, None) };
        let ((_, upper), (lower, _)) = match depth.checked_sub(1) {
            Some(depth) => (self.sum(&lhs, depth), self.sum(&rhs, depth)),
            None => return (least, None),
        };
        let most = upper.zip(lower.filter(|lower| 0 < *lower));
        // A negative numerator is largest over the largest divisor.
        let most = most.map(|(upper, lower)| if upper < 0 { -1 } else { upper / lower });
        (least, most)
    }

    /// What a product of atoms can be.
    fn product(&self, atoms: &[Expr], depth: usize) -> Range {
        let mut range = (Some(1_i128), Some(1_i128));
        for atom in atoms {
            let (least, most) = self.atom(*atom, depth);
            let Some(least) = least.filter(|least| 0 <= *least) else { return (None, None) };
            range.0 = range.0.and_then(|it| it.checked_mul(least));
            range.1 = range.1.zip(most).and_then(|(it, most)| it.checked_mul(most.max(0)));
        }
        range
    }

    /// What a sum can be.
    fn sum(&self, sum: &Polynomial, depth: usize) -> Range {
        let constant = Some(i128::from(sum.constant_part()));
        sum.terms().fold((constant, constant), |(lower, upper), (atoms, factor)| {
            let (least, most) = self.product(atoms, depth);
            let (least, most) = if factor < 0 { (most, least) } else { (least, most) };
            let add = |end: Option<i128>, other: Option<i128>| {
                end?.checked_add(other?.checked_mul(i128::from(factor))?)
            };
            (add(lower, least), add(upper, most))
        })
    }

    /// Bounds the sizes of a sum that is not negative.
    fn not_negative(&mut self, sum: &Polynomial, depth: usize) {
        for (atoms, factor) in sum.terms() {
            if 0 <= factor {
                continue;
            }
            let mut others = sum.clone();
            others.set(atoms, 0);
            let (_, Some(upper)) = self.sum(&others, depth) else { continue };
            let most = upper.max(0) / -i128::from(factor);
            for (place, atom) in atoms.iter().enumerate() {
                let mut rest = atoms.clone();
                rest.remove(place);
                if let (Some(least @ 1..), _) = self.product(&rest, depth) {
                    self.at_most(*atom, most / least, depth);
                }
            }
        }
        // The numerator of a quotient that is at least some number is at least as many times the divisor.
        for (atoms, factor) in sum.terms() {
            let [atom] = atoms[..] else { continue };
            let Ok(Some([lhs, rhs])) = self.arithmetic.division(atom) else { continue };
            let mut others = sum.clone();
            others.set(atoms, 0);
            let (_, Some(upper)) = self.sum(&others, depth) else { continue };
            if 0 < factor
                && let Some(depth) = depth.checked_sub(1)
                && let (Some(1..), _) = self.sum(&rhs, depth)
                && let Ok(least) = i64::try_from(-upper.div_euclid(i128::from(factor)))
                && let Ok(rest) = rhs.scale(least).and_then(|least| lhs.sub(&least))
            {
                self.not_negative(&rest, depth);
            }
        }
    }

    /// Bounds the sizes of an atom that is at most some number.
    fn at_most(&mut self, atom: Expr, most: i128, depth: usize) {
        if let Some(var) = self.arithmetic.as_var(atom) {
            let old = self.most.entry(var).or_insert(most);
            *old = most.min(*old);
            return;
        }
        // What is left by the division is less than the divisor.
        let Ok(Some([lhs, rhs])) = self.arithmetic.division(atom) else { return };
        if let Some(depth) = depth.checked_sub(1)
            && let (Some(1..), Some(divisor)) = self.sum(&rhs, depth)
            && let Some(most) = (most + 1).checked_mul(divisor)
            && let Ok(most) = i64::try_from(most - 1)
            && let Ok(rest) = Polynomial::constant(most).sub(&lhs)
        {
            self.not_negative(&rest, depth);
        }
    }

    /// The variables that have the same size at all values in their ranges where the conditions that can be calculated
    /// hold. `None` if there are no such values.
    fn only(&self, sums: &[(Polynomial, bool)]) -> Option<BTreeMap<DimVar, i64>> {
        let mut vars: Vec<(i128, DimVar)> =
            self.most.iter().map(|(var, most)| (*most, *var)).collect();
        vars.sort_unstable();
        let place = |var: &DimVar| vars.iter().position(|it| it.1 == *var);
        // The conditions that can be calculated when so many variables have a value.
        let mut ready: Vec<Vec<(Dim, bool)>> = vec![Vec::new(); vars.len()];
        for (sum, is_zero) in sums {
            let places: Option<Vec<usize>> =
                self.arithmetic.polynomial_vars(sum).iter().map(place).collect();
            if let Some(places) = places
                && let Some(ready) = ready.get_mut(places.into_iter().max().unwrap_or(0))
                && let Ok(dim) = self.arithmetic.dim(sum.clone())
            {
                ready.push((dim, *is_zero));
            }
        }
        let mut tried = 0;
        let mut same: Option<Vec<Option<i64>>> = None;
        let mut values: Vec<i64> = Vec::new();
        let mut next = 1;
        loop {
            if values.len() == vars.len() {
                let same = same.get_or_insert_with(|| values.iter().map(|it| Some(*it)).collect());
                for (old, value) in same.iter_mut().zip(&values) {
                    *old = old.filter(|old| old == value);
                }
                if same.iter().all(Option::is_none) {
                    break;
                }
            } else if i128::from(next) <= vars[values.len()].0 {
                tried += 1;
                if MAX_TRIED < tried {
                    return Some(BTreeMap::new());
                }
                values.push(next);
                let value = |var: DimVar| values.get(place(&var)?).copied();
                // What cannot be calculated is not decided.
                let holds = |(dim, is_zero): &(Dim, bool)| {
                    let sum = self.arithmetic.evaluate(dim, &value);
                    sum.is_none_or(|sum| if *is_zero { sum == 0 } else { 0 <= sum })
                };
                if ready[values.len() - 1].iter().all(holds) {
                    next = 1;
                    continue;
                }
            }
            let Some(last) = values.pop() else { break };
            next = last + 1;
        }
        let found = vars.iter().zip(same?).filter_map(|((_, var), value)| Some((*var, value?)));
        Some(found.collect())
    }
}
