//! Linear systems: the reduced echelon form of equations that share unknowns.
//!
//! The rows are over the integers, each divided by what its entries have in common (Gauss and Jordan;
//! fractions are not needed, Bareiss, "Sylvester's identity and multistep integer-preserving Gaussian
//! elimination", 1968). Beside its coefficients, a row has the multiples of the equations that it is made
//! of, so that what the values are is written down once, at the end. Remainders of sums are such equations with
//! one unknown more, the quotient.

use super::Solver;
use super::monotone::Sum;
use crate::expr::{Expr, Node};
use crate::linear_program::gcd_wide;

/// The most equations and unknowns of a linear system.
const MAX_SYSTEM: usize = 32;

/// A combination of the equations.
struct Row {
    /// By unknown term.
    factors: Vec<i128>,
    /// How often each equation is in it.
    multiples: Vec<i128>,
}

impl Row {
    fn entries(&mut self) -> impl Iterator<Item = &mut i128> {
        self.factors.iter_mut().chain(&mut self.multiples)
    }

    /// Divides by what all entries have in common.
    fn reduce(&mut self) -> Option<()> {
        let common = self.entries().fold(0, |common, entry| gcd_wide(common, entry.unsigned_abs()));
        let common = i128::try_from(common).ok()?;
        if 1 < common {
            self.entries().for_each(|entry| *entry /= common);
        }
        Some(())
    }

    /// A multiple of this less one of `pivot`, without the given column. `None` on overflow.
    fn without(&mut self, pivot: &mut Row, column: usize) -> Option<()> {
        let (mine, theirs) = (self.factors[column], pivot.factors[column]);
        let common = i128::try_from(gcd_wide(mine.unsigned_abs(), theirs.unsigned_abs())).ok()?;
        let (times, less) = (theirs / common, mine / common);
        for (mine, theirs) in self.entries().zip(pivot.entries()) {
            *mine = mine.checked_mul(times)?.checked_sub(theirs.checked_mul(less)?)?;
        }
        self.reduce()
    }
}

impl Solver<'_> {
    /// Adds the equations of the reduced echelon form of those that are sums of unknowns.
    pub(super) fn eliminate(&mut self) -> Option<()> {
        let ctx = self.ctx;
        let mut terms: Vec<Expr> = Vec::new();
        let mut rows: Vec<Row> = Vec::new();
        let mut values: Vec<Expr> = Vec::new();
        // x mod m == y is x - m*(x floordiv m) == y for positive m.
        let mut remainders: Vec<(Expr, Expr)> = Vec::new();
        for (term, value) in self.all_known() {
            if let Node::Mod(number, modulus) = ctx.node(term)
                && ctx.linear_terms(number).is_some_and(|linear| 1 < linear.terms.len())
                && self.is_at_most(ctx.constant(1), modulus)
            {
                let multiple = ctx.mul(ctx.floor_div(number, modulus), modulus);
                remainders.push((ctx.sub(number, multiple), value));
            }
        }
        for &(lhs, rhs) in self.equations.iter().chain(&remainders) {
            let Some(Sum { unknown, known }) = self.sum(lhs) else { continue };
            if unknown.len() < 2 || MAX_SYSTEM <= rows.len() {
                continue;
            }
            let mut row = Row { factors: vec![0; MAX_SYSTEM], multiples: vec![0; MAX_SYSTEM] };
            for (term, factor) in unknown {
                let place = terms.iter().position(|&other| other == term).unwrap_or(terms.len());
                if place == terms.len() {
                    terms.push(term);
                }
                *row.factors.get_mut(place)? = factor.into();
            }
            row.multiples[rows.len()] = 1;
            rows.push(row);
            values.push(ctx.sub(rhs, known));
        }
        if rows.len() < 2 {
            return None;
        }
        let mut num_pivots = 0;
        for column in 0..terms.len() {
            let smallest = (num_pivots..rows.len())
                .filter(|&row| rows[row].factors[column] != 0)
                .min_by_key(|&row| rows[row].factors[column].unsigned_abs());
            let Some(smallest) = smallest else { continue };
            rows.swap(num_pivots, smallest);
            let (before, rest) = rows.split_at_mut(num_pivots);
            let Some((pivot, after)) = rest.split_first_mut() else { continue };
            for row in before.iter_mut().chain(after) {
                if row.factors[column] != 0 {
                    row.without(pivot, column)?;
                }
            }
            num_pivots += 1;
        }
        let combination = |entries: &[i128], exprs: &[Expr]| -> Option<Expr> {
            let factors = entries.iter().map(|&entry| i64::try_from(entry).ok());
            let factors = factors.collect::<Option<Vec<_>>>()?;
            let pairs = exprs.iter().copied().zip(factors).filter(|pair| pair.1 != 0);
            Some(self.total(&pairs.collect::<Vec<_>>()))
        };
        let mut found = Vec::new();
        for row in &rows {
            if let Some(lhs) = combination(&row.factors, &terms)
                && ctx.as_constant(lhs).is_none()
                && let Some(value) = combination(&row.multiples, &values)
            {
                found.push((lhs, value));
            }
        }
        for (lhs, value) in found {
            self.add(lhs, value);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::inverse_of;

    #[test]
    fn linear_systems() {
        for text in [
            "(d0, d1) -> (d0 + d1 * 2, d0 * 2 + d1), domain: d0 in [0, 20], d1 in [0, 20]",
            "(d0, d1, d2) -> (d0 + d1, d1 + d2, d0 + d2), domain: d0 in [0, 5], d1 in [-5, 5], d2 in [0, 5]",
            "(d0, d1, d2) -> (d0 * 3 - d1 * 2 + 1, d1 * 5 + d2, d0 - d2, d0 + d1 + d2), \
             domain: d0 in [0, 999], d1 in [-500, 500], d2 in [0, 999]",
        ] {
            inverse_of(text);
        }
        assert_eq!(
            inverse_of(
                "(d0, d1) -> (d0 + d1, d0 - d1 * 6), domain: d0 in [0, 999], d1 in [0, 999]"
            ),
            "(d0, d1) -> ((d0 * 6 + d1) / 7, (d0 - d1) / 7), domain: d0 in [0, 1998], \
             d1 in [-5994, 999], (d0 - d1) mod 7 in [0, 0], \
             d0 * 6 + d1 in [0, 6999], d0 - d1 in [0, 6999]"
        );
    }

    #[test]
    fn remainders_in_systems() {
        for text in [
            "(d0, d1, d2) -> (d0 + d2 ceildiv 5, d1, (d2 - (d0 + d2 ceildiv 5) * 2) mod 5), \
             domain: d0 in [0, 91], d1 in [0, 14], d2 in [0, 4]",
            "(d0, d1) -> ((d0 + d1 + d0 mod 3) mod 1322, d1 + d0 mod 3), \
             domain: d0 in [0, 1321], d1 in [0, 3]",
        ] {
            inverse_of(text);
        }
    }

    /// Systems of many unknowns without structure: `d_i * (i * j * 7 + i + j * j) mod 11 - 5`, with a larger
    /// diagonal.
    #[test]
    fn dense_systems() {
        for rank in [7_i64, 9, 12] {
            let factor =
                |i: i64, j: i64| (i * j * 7 + i + j * j) % 11 - 5 + if i == j { 8 } else { 0 };
            let row = |i| {
                let terms = (0..rank).map(|j| format!("d{j} * {}", factor(i, j)));
                terms.collect::<Vec<_>>().join(" + ")
            };
            let list =
                |item: &dyn Fn(i64) -> String| (0..rank).map(item).collect::<Vec<_>>().join(", ");
            inverse_of(&format!(
                "({}) -> ({}), domain: {}",
                list(&|i| format!("d{i}")),
                list(&row),
                list(&|i| format!("d{i} in [0, 99]")),
            ));
        }
    }

    #[test]
    fn large_coefficients() {
        for text in [
            "(d0, d1, d2) -> (d0 * 10007 + d1 * 20011 + d2 * 90001, d0 * 70001 + d1 * -10009 + d2 * 31013, \
             d0 * 41011 - d1 * 83003 + d2 * 15013), domain: d0 in [0, 99], d1 in [0, 99], d2 in [0, 99]",
            "(d0, d1, d2, d3) -> (d0 * 997 - d1 * 523 + d2 * 811 + d3 * 13, \
             d0 * 113 + d1 * 877 - d2 * 229 + d3 * 641, d2 * 967 - d0 * 719 + d1 * 353 + d3 * 421, \
             d0 * 569 + d1 * 191 + d2 * 47 - d3 * 883), \
             domain: d0 in [0, 99], d1 in [0, 99], d2 in [0, 99], d3 in [0, 99]",
        ] {
            inverse_of(text);
        }
    }
}
