//! Folds with a combiner region, with an error bound for other orders.
//!
//! The points are combined in sequence and, separately, in pairs: two points, two pairs, and so on. The bound covers both
//! results. It also adds one roundoff of the largest value per point, as for sums (`fold.rs`), because other steps may
//! round in other orders. This bound is an estimate: it assumes that the combiner damps errors, as for means and variances.

use super::{
    fold::{Fold, growth},
    machine::{Machine, Result},
    program::{Combiner, LoopNest},
    scalar::Scalar,
};

/// A fold with a region under way.
#[derive(Default)]
pub(super) struct RegionFold {
    starts: Vec<Scalar>,
    /// The values of 1, 2, 4 and so on points, more points first. Each has the binary logarithm of its number of points.
    parts: Vec<(u32, Vec<Scalar>)>,
    num_points: u64,
    /// Per accumulator the largest magnitude.
    largest: Vec<f64>,
}

impl RegionFold {
    /// Starts like these folds.
    pub(super) fn new(folds: &[Fold]) -> Self {
        let starts: Vec<_> = folds.iter().map(Fold::finish).collect();
        let largest = vec![0.0; starts.len()];
        Self { starts, largest, ..Self::default() }
    }

    fn note(&mut self, values: &[Scalar]) {
        for (largest, value) in self.largest.iter_mut().zip(values) {
            let magnitude = value.as_float().abs() + value.error;
            if magnitude.is_finite() {
                *largest = largest.max(magnitude);
            }
        }
    }
}

impl<'p> Machine<'p> {
    /// Combines two values per accumulator.
    pub(super) fn combine(
        &mut self,
        combiner: &'p Combiner,
        old: &[Scalar],
        new: &[Scalar],
    ) -> Result<Vec<Scalar>> {
        for (reg, value) in combiner.arguments.iter().zip(old.iter().chain(new)) {
            self.regs[*reg] = *value;
        }
        self.code(&combiner.code)?;
        Ok(combiner.results.iter().map(|reg| self.regs[*reg]).collect())
    }

    /// Folds in the values of one more point, unless the fold keeps its order.
    pub(super) fn combine_in_pairs(
        &mut self,
        combiner: &'p Combiner,
        fold: &mut RegionFold,
        mut values: Vec<Scalar>,
    ) -> Result<()> {
        if combiner.promises.is_empty() {
            return Ok(());
        }
        fold.num_points += 1;
        fold.note(&values);
        let mut level = 0;
        while let Some((_, part)) = fold.parts.pop_if(|(other, _)| *other == level) {
            values = self.combine(combiner, &part, &values)?;
            fold.note(&values);
            level += 1;
        }
        fold.parts.push((level, values));
        Ok(())
    }

    /// Widens the errors of the folded values, in the registers of their accumulators, to cover other orders.
    pub(super) fn widen(
        &mut self,
        nest: &LoopNest,
        combiner: &'p Combiner,
        fold: &RegionFold,
    ) -> Result<()> {
        let mut other = fold.starts.clone();
        for (_, part) in &fold.parts {
            other = self.combine(combiner, &other, part)?;
        }
        let accumulators = nest.accumulators.iter().zip(&combiner.promises);
        for (number, (accumulator, promise)) in accumulators.enumerate() {
            let value = &mut self.regs[accumulator.folded];
            *value = value.either(other[number], promise.is_float);
            if let Some(ty) = promise.rounds
                && !value.is_undefined()
            {
                value.error += growth(fold.num_points, ty.roundoff()) * fold.largest[number];
            }
        }
        Ok(())
    }
}
