//! A small exact linear program: is an affine inequality a consequence of others?
//!
//! By Farkas' lemma `goal >= 0` follows over the rationals from `facts[j] >= 0` exactly when `goal`
//! is a sum of non-negative multiples of the facts and a non-negative constant. The goals here take
//! integer values only, so a constant above -1 is enough. The multiples are found by the two-phase
//! simplex method on a dense tableau of exact fractions, with Bland's rule against cycles (R. G.
//! Bland, "New finite pivoting rules for the simplex method", 1977). Fractions are checked 128-bit
//! integers; an overflow or too much work answer "not shown".

/// `constant + sum of coefficients[i] * x[i]`, over columns that all rows of one question share.
pub(crate) struct Affine {
    pub(crate) coefficients: Vec<i64>,
    pub(crate) constant: i64,
}

/// Whether `goal >= 0` is shown to follow from `facts >= 0`, for integer `x` at which `goal` is an
/// integer.
///
/// Contradictory facts imply everything, although this function does not notice every
/// contradiction.
///
/// `work` is the number of tableau entries that may still be touched; the question uses some of it
/// up, and is not shown when it runs out.
pub(crate) fn follows(goal: &Affine, facts: &[Affine], work: &mut usize) -> bool {
    Tableau::new(goal, facts).and_then(|mut tableau| tableau.run(work)).unwrap_or(false)
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Fraction {
    numerator: i128,
    /// Positive, and prime to the numerator.
    denominator: i128,
}

impl Fraction {
    const ZERO: Self = Self { numerator: 0, denominator: 1 };

    fn integer(value: i64) -> Self {
        Self { numerator: value.into(), denominator: 1 }
    }

    fn reduced(numerator: i128, denominator: i128) -> Option<Self> {
        if denominator == 1 {
            return Some(Self { numerator, denominator });
        }
        let common = gcd_wide(numerator.unsigned_abs(), denominator.unsigned_abs());
        let divisor = i128::try_from(common).ok()?;
        let divisor = if denominator < 0 { divisor.checked_neg()? } else { divisor };
        Some(Self { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    fn sub_product(self, a: Self, b: Self) -> Option<Self> {
        let product = a.mul(b)?;
        if self.denominator == product.denominator {
            return Self::reduced(self.numerator.checked_sub(product.numerator)?, self.denominator);
        }
        let left = self.numerator.checked_mul(product.denominator)?;
        let right = product.numerator.checked_mul(self.denominator)?;
        Self::reduced(left.checked_sub(right)?, self.denominator.checked_mul(product.denominator)?)
    }

    fn mul(self, other: Self) -> Option<Self> {
        let numerator = self.numerator.checked_mul(other.numerator)?;
        Self::reduced(numerator, self.denominator.checked_mul(other.denominator)?)
    }

    fn div(self, other: Self) -> Option<Self> {
        let numerator = self.numerator.checked_mul(other.denominator)?;
        Self::reduced(numerator, self.denominator.checked_mul(other.numerator)?)
    }

    fn less(self, other: Self) -> Option<bool> {
        let left = self.numerator.checked_mul(other.denominator)?;
        Some(left < other.numerator.checked_mul(self.denominator)?)
    }
}

/// The greatest common divisor; `gcd_wide(0, x)` is `x`.
pub(crate) fn gcd_wide(lhs: u128, rhs: u128) -> u128 {
    let (mut a, mut b) = (lhs, rhs);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The program: multiples `l[j] >= 0` with `sum l[j] * facts[j].coefficients == goal.coefficients`
/// that minimize `sum l[j] * facts[j].constant`. Every row starts with an artificial variable of
/// its own as basis.
struct Tableau {
    /// Per row the entries of the facts' columns, then the right-hand side.
    rows: Vec<Vec<Fraction>>,
    /// The column in the basis of each row; `num_facts` and above are artificial.
    basis: Vec<usize>,
    /// Reduced costs of the artificial objective, and of the real one. The last entry is minus the
    /// value.
    artificial: Vec<Fraction>,
    cost: Vec<Fraction>,
    num_facts: usize,
    /// The goal is shown when the cost falls below this: `goal.constant + 1`.
    limit: Fraction,
}

impl Tableau {
    fn new(goal: &Affine, facts: &[Affine]) -> Option<Self> {
        let num_facts = facts.len();
        let mut rows = Vec::new();
        let mut artificial = vec![Fraction::ZERO; num_facts + 1];
        for (column, &target) in goal.coefficients.iter().enumerate() {
            let negate = target < 0;
            let entry = |value: i64| -> Option<Fraction> {
                Some(Fraction::integer(if negate { value.checked_neg()? } else { value }))
            };
            let mut row = Vec::with_capacity(num_facts + 1);
            for fact in facts {
                row.push(entry(fact.coefficients[column])?);
            }
            row.push(entry(target)?);
            if row.iter().all(|entry| entry.numerator == 0) {
                continue;
            }
            for (sum, entry) in artificial.iter_mut().zip(&row) {
                sum.numerator = sum.numerator.checked_sub(entry.numerator)?;
            }
            rows.push(row);
        }
        let mut cost: Vec<_> = facts.iter().map(|fact| Fraction::integer(fact.constant)).collect();
        cost.push(Fraction::ZERO);
        let basis = (num_facts..num_facts + rows.len()).collect();
        let limit = Fraction { numerator: i128::from(goal.constant) + 1, denominator: 1 };
        Some(Self { rows, basis, artificial, cost, num_facts, limit })
    }

    fn run(&mut self, work: &mut usize) -> Option<bool> {
        // Phase 1: drive the artificial variables to zero.
        while self.artificial[self.num_facts].numerator != 0 {
            let Some(column) =
                (0..self.num_facts).find(|&column| self.artificial[column].numerator < 0)
            else {
                return Some(false);
            };
            let Some(row) = self.leaving_row(column)? else {
                return Some(false);
            };
            self.pivot(row, column, work)?;
        }
        // An artificial variable that stays in the basis at zero leaves through any non-zero entry;
        // a row without one is redundant.
        for row in 0..self.rows.len() {
            if self.num_facts <= self.basis[row]
                && let Some(column) =
                    (0..self.num_facts).find(|&column| self.rows[row][column].numerator != 0)
            {
                self.pivot(row, column, work)?;
            }
        }
        // Phase 2: lower the cost until it is small enough.
        loop {
            let last = self.cost[self.num_facts];
            let value = Fraction { numerator: last.numerator.checked_neg()?, ..last };
            if value.less(self.limit)? {
                return Some(true);
            }
            let Some(column) = (0..self.num_facts).find(|&column| self.cost[column].numerator < 0)
            else {
                return Some(false);
            };
            match self.leaving_row(column)? {
                Some(row) => self.pivot(row, column, work)?,
                // The cost falls without end: the facts contradict each other.
                None => return Some(true),
            }
        }
    }

    /// The row with the least ratio, ties by the smaller basis column. `None` inside when no row
    /// limits the column, outside on overflow.
    fn leaving_row(&self, column: usize) -> Option<Option<usize>> {
        let mut best: Option<(usize, Fraction)> = None;
        for (row, entries) in self.rows.iter().enumerate() {
            if entries[column].numerator <= 0 {
                continue;
            }
            let ratio = entries[self.num_facts].div(entries[column])?;
            let better = match best {
                None => true,
                Some((other, least)) => {
                    ratio.less(least)? || (ratio == least && self.basis[row] < self.basis[other])
                }
            };
            if better {
                best = Some((row, ratio));
            }
        }
        Some(best.map(|(row, _)| row))
    }

    fn pivot(&mut self, row: usize, column: usize, work: &mut usize) -> Option<()> {
        let touched = (self.rows.len() + 2) * (self.num_facts + 1);
        *work = work.checked_sub(touched)?;
        let mut pivot_row = std::mem::take(&mut self.rows[row]);
        let pivot = pivot_row[column];
        for entry in &mut pivot_row {
            *entry = entry.div(pivot)?;
        }
        let eliminate = |entries: &mut Vec<Fraction>| -> Option<()> {
            let factor = entries[column];
            if factor.numerator == 0 {
                return Some(());
            }
            for (entry, &by) in entries.iter_mut().zip(&pivot_row) {
                if by.numerator != 0 {
                    *entry = entry.sub_product(factor, by)?;
                }
            }
            Some(())
        };
        for entries in self.rows.iter_mut().filter(|entries| !entries.is_empty()) {
            eliminate(entries)?;
        }
        eliminate(&mut self.artificial)?;
        eliminate(&mut self.cost)?;
        self.rows[row] = pivot_row;
        self.basis[row] = column;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::Affine;

    fn follows(goal: &Affine, facts: &[Affine]) -> bool {
        super::follows(goal, facts, &mut 10_000)
    }

    fn affine(coefficients: &[i64], constant: i64) -> Affine {
        Affine { coefficients: coefficients.to_vec(), constant }
    }

    #[test]
    fn follows_from_a_combination() {
        // x >= 1, y >= x gives 2y - 2 >= 0 but not 2y - 4 >= 0.
        let facts = [affine(&[1, 0], -1), affine(&[-1, 1], 0)];
        assert!(follows(&affine(&[0, 2], -2), &facts));
        assert!(!follows(&affine(&[0, 2], -4), &facts));
    }

    #[test]
    fn follows_by_integrality() {
        // 2x >= 1 gives x >= 1 over the integers.
        assert!(follows(&affine(&[1], -1), &[affine(&[2], -1)]));
        assert!(!follows(&affine(&[1], -2), &[affine(&[2], -1)]));
    }

    #[test]
    fn follows_from_a_contradiction() {
        // x >= 1 and -x >= 0.
        assert!(follows(&affine(&[1], -100), &[affine(&[1], -1), affine(&[-1], 0)]));
    }

    #[test]
    fn follows_nothing_without_facts() {
        assert!(!follows(&affine(&[1], 0), &[]));
        assert!(follows(&affine(&[], 0), &[]));
        assert!(!follows(&affine(&[], -1), &[]));
    }

    #[test]
    fn follows_stops_without_work() {
        assert!(!super::follows(&affine(&[1], -1), &[affine(&[2], -1)], &mut 1));
    }

    #[test]
    fn follows_answers_on_large_numbers() {
        let facts = [affine(&[i64::MAX, 1], -i64::MAX), affine(&[1, i64::MAX], 3)];
        assert!(!follows(&affine(&[-1, -1], 0), &facts));
    }
}
