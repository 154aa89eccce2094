//! Relations between the ranks of two shapes, with common variables canceled.

use std::collections::BTreeMap;

use super::{Item, Shape, ShapeVar};
use crate::expr::gcd;

/// `sum(count * rank(var)) = num_dims`, which holds if two shapes are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankEquation {
    /// How often each variable stands there; not 0. All are positive, or there are some of both signs.
    pub counts: BTreeMap<ShapeVar, i64>,
    /// How many dimensions the variables have together.
    pub num_dims: i64,
    /// Whether the variables stand in the second shape, if all are of one sign.
    pub is_swapped: bool,
}

impl RankEquation {
    /// The equation of two shapes.
    pub fn new(left: &Shape, right: &Shape) -> Self {
        let mut counts: BTreeMap<ShapeVar, i64> = BTreeMap::new();
        let mut num_dims = 0;
        for (shape, sign) in [(left, 1), (right, -1)] {
            for item in &shape.items {
                match item {
                    Item::Var(var) => *counts.entry(*var).or_default() += sign,
                    Item::Dim(_) => num_dims -= sign,
                }
            }
        }
        counts.retain(|_, count| *count != 0);
        let is_swapped = !counts.is_empty() && counts.values().all(|count| *count < 0);
        if is_swapped {
            counts.values_mut().for_each(|count| *count = -*count);
            num_dims = -num_dims;
        }
        Self { counts, num_dims, is_swapped }
    }

    /// Whether variables stand on both sides: ranks say nothing then.
    pub fn is_open(&self) -> bool {
        self.counts.values().any(|count| *count < 0)
    }

    /// What the number of dimensions is a multiple of; 0 if there are no variables.
    pub fn divisor(&self) -> u64 {
        self.counts.values().fold(0, |divisor, count| gcd(divisor, count.unsigned_abs()))
    }

    /// Whether no ranks satisfy it.
    pub fn is_impossible(&self) -> bool {
        !self.is_open()
            && match u64::try_from(self.num_dims) {
                Ok(num_dims) => num_dims.checked_rem(self.divisor()).unwrap_or(num_dims) != 0,
                Err(_) => true,
            }
    }
}
