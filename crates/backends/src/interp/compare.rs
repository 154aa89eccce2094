//! Compares results of compiled programs with results of the interpreter.

use super::{Outcome, scalar::SLACK};
use crate::runtime::{ElementType, Number, Shape, Tensor};

/// How near a tensor came to the bounds.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// The number of elements compared.
    pub num_elements: usize,
    /// The elements of which nothing is known, so that any value passes.
    pub num_uncertain: usize,
    /// The largest difference, in parts of its bound: at most 1.
    pub max_error_ratio: f64,
}

/// Where a tensor is not what it must be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Mismatch {
    /// The tensors have different types or shapes.
    #[error("expected {expected}{}, but found {found}{}", Shape(.expected_shape), Shape(.found_shape))]
    Type {
        /// The element type found.
        found: ElementType,
        /// The shape found.
        found_shape: Vec<usize>,
        /// The element type expected.
        expected: ElementType,
        /// The shape expected.
        expected_shape: Vec<usize>,
    },
    /// An element is too far from its value.
    #[error("at {}: expected {expected} within {bound:e}, but found {found}", Shape(.index))]
    Value {
        /// The index of the element.
        index: Vec<usize>,
        /// The value found.
        found: Number,
        /// The value of the interpreter.
        expected: Number,
        /// How far the one may be from the other.
        bound: f64,
    },
}

/// Checks that every element is within its bound of what the interpreter computed. A nan
/// agrees with any nan, zeros agree whatever their signs.
///
/// # Errors
/// The first element, in row-major order, that is not.
pub fn compare(outcome: &Outcome, found: &Tensor) -> Result<Stats, Mismatch> {
    if (outcome.element(), outcome.shape()) != (found.element(), found.shape()) {
        return Err(Mismatch::Type {
            found: found.element(),
            found_shape: found.shape().to_vec(),
            expected: outcome.element(),
            expected_shape: outcome.shape().to_vec(),
        });
    }
    let mut stats = Stats { num_elements: found.num_elements(), ..Stats::default() };
    for (position, number) in found.numbers().enumerate() {
        let number = outcome.value_of(number);
        if outcome.is_uncertain(position) {
            stats.num_uncertain += 1;
            continue;
        }
        let (expected, bound) = (outcome.number(position), outcome.error_bound(position));
        let mismatch = || Mismatch::Value {
            index: outcome.index_of(position),
            found: number,
            expected,
            bound,
        };
        if let (Number::Float(found), Number::Float(expected)) = (number, expected) {
            if found == expected || found.is_nan() && expected.is_nan() {
                continue;
            }
            let difference = (found - expected).abs();
            // False also where one of them is not finite: the difference is nan or infinite.
            let agrees = difference <= bound * SLACK;
            if !agrees {
                return Err(mismatch());
            }
            stats.max_error_ratio = stats.max_error_ratio.max((difference / bound).min(1.0));
        } else if number != expected {
            return Err(mismatch());
        }
    }
    Ok(stats)
}
