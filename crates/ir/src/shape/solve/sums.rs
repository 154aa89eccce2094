//! Sums on the two sides of an equation.

use std::collections::HashSet;
use std::rc::Rc;

use crate::expr::{Expr, gcd};
use crate::polynomial::{Monomial, Normalizer, Polynomial, remove_factor};
use crate::shape::{Arithmetic, Dim, DimError, DimVar};

impl Arithmetic {
    /// Whether a dimension has neither products nor quotients of variables.
    pub(super) fn is_linear(&self, dim: &Dim) -> bool {
        let Dim::Sum(sum) = dim else { return true };
        let is_var = |atoms: &[Expr]| matches!(atoms, [atom] if self.as_var(*atom).is_some());
        sum.terms().all(|(monomial, _)| is_var(monomial))
    }

    /// How many terms a dimension subtracts.
    pub(super) fn num_subtracted(&self, dim: &Dim) -> usize {
        let Dim::Sum(sum) = dim else { return 0 };
        sum.terms().filter(|(_, coefficient)| *coefficient < 0).count()
    }

    /// The variables that stand in quotients of a dimension.
    pub(super) fn divided_vars(&self, dim: &Dim) -> Vec<DimVar> {
        let Dim::Sum(sum) = dim else { return Vec::new() };
        let atoms = sum.terms().flat_map(|(monomial, _)| monomial.iter().copied());
        let quotients = atoms.filter(|atom| self.as_var(*atom).is_none());
        quotients.flat_map(|atom| self.polynomial_vars(&Polynomial::atom(atom))).collect()
    }

    /// What a dimension, or a part of it, is divided by.
    pub(in crate::shape) fn divisors(&self, dim: &Dim) -> Vec<Dim> {
        let Dim::Sum(sum) = dim else { return Vec::new() };
        let atoms = |sum: &Polynomial| -> Vec<Expr> {
            sum.terms().flat_map(|(monomial, _)| monomial.iter().copied()).collect()
        };
        let mut pending = atoms(sum);
        let mut seen = HashSet::new();
        let mut divisors = Vec::new();
        while let Some(atom) = pending.pop() {
            // What is too large to be put together was refused when it was made.
            if let Ok(Some([lhs, rhs])) = self.division(atom)
                && seen.insert(atom)
            {
                pending.extend(atoms(&lhs));
                pending.extend(atoms(&rhs));
                divisors.extend(self.dim((*rhs).clone()));
            }
        }
        divisors
    }

    /// The least and the greatest value for positive variables, where the signs of the coefficients
    /// tell. Recursion is as deep as divisions are nested, which the size of an expression limits.
    pub(super) fn bounds(&self, sum: &Polynomial) -> (Option<i64>, Option<i64>) {
        let atoms = sum.terms().flat_map(|(monomial, _)| monomial.iter());
        let mut shifted = Vec::new();
        for &atom in atoms {
            let Some(least) = self.least(atom) else { return (None, None) };
            match Polynomial::atom(atom).plus(least) {
                Ok(value) => shifted.push((atom, Rc::new(value))),
                Err(_) => return (None, None),
            }
        }
        // With every atom as much more than a natural number as it is at least, the constant is at one end.
        let Ok(sum) = Normalizer::replacing_all(&self.context, shifted).renormalize(sum) else {
            return (None, None);
        };
        let end = Some(sum.constant_part());
        let same = |sign: i64| sum.terms().all(|(_, coefficient)| coefficient.signum() == sign);
        (end.filter(|_| same(1)), end.filter(|_| same(-1)))
    }

    /// The sizes that all terms of a sum are multiplied with, which are positive; `None` if there are none.
    pub(super) fn common_factor(&self, sum: &Polynomial) -> Option<Monomial> {
        let mut monomials = sum.terms().map(|(monomial, _)| monomial);
        let mut common = monomials.next()?.clone();
        common.retain(|atom| self.least(*atom).is_some_and(|least| 0 < least));
        for monomial in monomials {
            let mut other = monomial.clone();
            common.retain(|atom| {
                let place = other.iter().position(|it| it == atom);
                place.map(|place| other.remove(place)).is_some()
            });
        }
        Some(common).filter(|common| !common.is_empty())
    }

    /// The least value of a variable, or of a quotient of what is not negative.
    pub(super) fn least(&self, atom: Expr) -> Option<i64> {
        if self.as_var(atom).is_some() {
            return Some(1);
        }
        let [lhs, rhs] = self.division(atom).ok()??;
        let lhs = self.bounds(&lhs).0.filter(|least| 0 <= *least)?;
        match rhs.as_constant() {
            Some(divisor @ 1..) => Some(lhs / divisor),
            Some(_) => None,
            None => self.bounds(&rhs).0.filter(|least| 1 <= *least).map(|_| 0),
        }
    }
}

pub(super) fn difference(a: i64, b: i64) -> Result<i64, DimError> {
    a.checked_sub(b).ok_or(DimError::Overflow)
}

/// The greatest common divisor of the coefficients; 0 if there are none.
pub(super) fn content(sum: &Polynomial) -> u64 {
    sum.terms().fold(0, |divisor, (_, coefficient)| gcd(divisor, coefficient.unsigned_abs()))
}

/// Whether all terms are added, or all are subtracted.
pub(super) fn has_one_sign(sum: &Polynomial) -> bool {
    let mut signs = sum.terms().map(|(_, coefficient)| coefficient.signum());
    let first = signs.next();
    signs.all(|sign| Some(sign) == first)
}

/// A sum without constant, divided by a divisor of its coefficients.
pub(super) fn divided(sum: &Polynomial, divisor: i64) -> Polynomial {
    let mut result = Polynomial::default();
    for (monomial, coefficient) in sum.terms() {
        result.set(monomial, coefficient / divisor);
    }
    result
}

/// What two sums have in common: terms that both add, or both subtract.
pub(super) fn common_terms(a: &Polynomial, b: &Polynomial) -> Polynomial {
    let mut common = Polynomial::default();
    for (monomial, coefficient) in a.terms() {
        let other = b.coefficient(monomial);
        if coefficient.signum() == other.signum() {
            let least =
                if coefficient.unsigned_abs() < other.unsigned_abs() { coefficient } else { other };
            common.set(monomial, least);
        }
    }
    common
}

/// `sum` with `pattern`, as often as it occurs and times whatever it is multiplied with, replaced by
/// `value`. `None` if it does not occur. No coefficient grows, but for terms of lower degree.
pub(super) fn rewrite_sum(
    sum: &Polynomial,
    pattern: &Polynomial,
    value: i64,
    text: &dyn Fn(&Monomial) -> String,
) -> Result<Option<Polynomial>, DimError> {
    let Some((lead, _)) = pattern.terms().next() else { return Ok(None) };
    let mut factors = Vec::new();
    for (monomial, _) in sum.terms() {
        let Some(rest) = remove_factor(monomial, lead) else { continue };
        let occurrence = pattern.mul(&Polynomial::term(rest.clone(), 1))?;
        let times = occurrence.terms().map(|(monomial, part)| {
            let times = sum.coefficient(monomial).checked_div(part).unwrap_or(0);
            (times.signum(), times.unsigned_abs())
        });
        let least = times.reduce(|a, b| if a.0 == b.0 { (a.0, a.1.min(b.1)) } else { (0, 0) });
        let Some((sign, times @ 1..)) = least else { continue };
        let times = i64::try_from(times).map_err(|_| DimError::Overflow)? * sign;
        factors.push((rest, times));
    }
    // Terms are in the order of the numbers of expressions, which is not to be seen.
    if 1 < factors.len() {
        factors.sort_by_cached_key(|(rest, _)| text(rest));
    }
    let Some((rest, times)) = factors.into_iter().next() else { return Ok(None) };
    let factor = Polynomial::term(rest, times);
    Ok(Some(sum.sub(&pattern.mul(&factor)?)?.add(&factor.scale(value)?)?))
}
