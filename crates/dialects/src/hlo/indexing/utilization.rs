//! Operand utilization: the share of an operand that a full read of the output touches.
//!
//! The elements that are touched are the [image] of the maps from output to input. Of several
//! maps, the images are put together: where they are boxes, perhaps with steps, by the combinations of
//! indices that each of them has; where they are disjoint, as a sum; otherwise by enumeration. The
//! count is exact where that works out; runtime variables may move the image but not change its size.
//! Otherwise the result is an upper bound.

use super::{
    Indexing, IndexingSet, OperandIndexing,
    image::{Image, Side, elements, image},
    line::Progression,
};
use crate::hlo::ArrayShape;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The largest common period of steps.
const MAX_PERIOD: i128 = 1 << 12;
/// The most sets of maps that are told apart.
const MAX_SETS: usize = 1 << 12;

/// The share of an operand that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utilization {
    /// The elements that are read, or no fewer than are read.
    pub touched: i64,
    /// The elements of the operand.
    pub total: i64,
    /// Whether `touched` is the number, whatever the values of runtime variables.
    pub exact: bool,
}

impl Utilization {
    /// The share as a number; all of an operand without elements.
    pub fn share(self) -> f64 {
        if self.total == 0 { 1.0 } else { self.touched as f64 / self.total as f64 }
    }
}

impl Indexing<'_> {
    /// The share of one array of an operand that the maps from output to input of a set read;
    /// `None` if its size does not fit in an `i64`.
    pub fn utilization(
        &self,
        set: &IndexingSet,
        array: usize,
        shape: &ArrayShape,
    ) -> Option<Utilization> {
        let total = shape.num_elements()?;
        let all = Utilization { touched: total, total, exact: false };
        if total == 0 {
            return Some(Utilization { exact: true, ..all });
        }
        if set.is_unknown(array) {
            return Some(all);
        }
        let dims = &shape.dims;
        let maps = set.maps().iter().filter(|it| it.array == array);
        let (maps, images): (Vec<&OperandIndexing>, Vec<Image>) = maps
            .map(|it| (it, self.image(it, dims)))
            .filter(|(_, image)| 0 < image.count.size)
            .unzip();
        let is_exact = images.iter().all(|image| image.count.exact);
        let sum = images.iter().fold(0i64, |sum, image| sum.saturating_add(image.count.size));
        let sum = Utilization { touched: sum.min(total), total, exact: is_exact };
        if images.iter().any(|image| image.count.exact && image.count.size == total) {
            return Some(Utilization { exact: true, ..all });
        }
        // Only together may several maps touch an element twice.
        if images.len() < 2 || is_exact && are_disjoint(&images) {
            return Some(sum);
        }
        let touched = union_of_boxes(&images, dims.len()).or_else(|| self.union(&maps, dims));
        Some(match touched {
            Some(touched) => Utilization { touched, total, exact: true },
            None => Utilization { exact: false, ..sum },
        })
    }

    /// The elements that one map leads to, within an array of these sizes. Large models repeat
    /// their maps, so that each is counted once.
    fn image(&self, indexing: &OperandIndexing, dims: &[i64]) -> Image {
        let key = (indexing.clone(), dims.to_vec());
        if let Some(known) = self.images.borrow().get(&key) {
            return known.clone();
        }
        let image = image(self.context(), indexing, dims);
        self.images.borrow_mut().insert(key, image.clone());
        image
    }

    /// The number of elements that at least one of the maps leads to, by enumeration.
    fn union(&self, maps: &[&OperandIndexing], dims: &[i64]) -> Option<i64> {
        let mut points = HashSet::new();
        for map in maps {
            points.extend(elements(self.context(), map, dims)?);
        }
        i64::try_from(points.len()).ok()
    }
}

/// Whether any two images differ in the indices of some dimension.
fn are_disjoint(images: &[Image]) -> bool {
    let apart = |one: &Image, other: &Image| {
        let (Some(one), Some(other)) = (&one.sides, &other.sides) else { return false };
        one.iter().zip(other).any(|sides| match sides {
            (Some(one), Some(other)) => {
                one.moved_by == other.moved_by && one.indices.is_disjoint(other.indices)
            }
            _ => false,
        })
    };
    let pairs = images.iter().enumerate();
    pairs.into_iter().all(|(number, one)| images[..number].iter().all(|other| apart(one, other)))
}

/// The number of elements in at least one of the boxes.
///
/// For each dimension, indices that the same boxes have are alike; a set of boxes is a set of bits.
/// From dimension to dimension, the number of combinations of indices goes with the set of boxes
/// that have all of them.
fn union_of_boxes(images: &[Image], rank: usize) -> Option<i64> {
    let boxes: Vec<Vec<&Side>> = images
        .iter()
        .map(|image| image.sides.as_ref()?.iter().map(Option::as_ref).collect())
        .collect::<Option<_>>()?;
    let every = 1u128.checked_shl(u32::try_from(boxes.len()).ok()?).map_or(u128::MAX, |it| it - 1);
    if 128 < boxes.len() {
        return None;
    }
    let mut found = HashMap::from([(every, 1i128)]);
    for dim in 0..rank {
        let sides: Vec<&Side> =
            boxes.iter().map(|sides| sides.get(dim).copied()).collect::<Option<_>>()?;
        // They move together, or not at all.
        if sides.iter().any(|side| side.moved_by != sides[0].moved_by) {
            return None;
        }
        let sides: Vec<Progression> = sides.iter().map(|side| side.indices).collect();
        let alike = alike(&sides)?;
        let mut next: HashMap<u128, i128> = HashMap::new();
        for (set, combinations) in &found {
            for (other, indices) in &alike {
                if set & other != 0 {
                    let slot = next.entry(set & other).or_default();
                    *slot = slot.checked_add(combinations.checked_mul(*indices)?)?;
                }
            }
        }
        if MAX_SETS < next.len() {
            return None;
        }
        found = next;
    }
    i64::try_from(found.values().sum::<i128>()).ok()
}

/// How many indices each set of progressions has in common, and no other progression has.
fn alike(sides: &[Progression]) -> Option<HashMap<u128, i128>> {
    let ends: BTreeSet<i128> =
        sides.iter().flat_map(|side| [side.start, side.last() + 1]).collect();
    let mut found: HashMap<u128, i128> = HashMap::new();
    for (&start, &end) in ends.iter().zip(ends.iter().skip(1)) {
        let active = |side: &&Progression| side.start < end && start <= side.last();
        let steps = sides.iter().filter(active).map(|side| side.step);
        let period = steps.fold(1i128, |period, step| {
            let common = Progression::common_period(period, step);
            if common <= MAX_PERIOD { common } else { MAX_PERIOD + 1 }
        });
        if MAX_PERIOD < period {
            return None;
        }
        for first in start..end.min(start + period) {
            let set = sides.iter().enumerate().fold(0u128, |set, (number, side)| {
                set | u128::from(side.contains(first)) << number
            });
            if set != 0 {
                *found.entry(set).or_default() += (end - 1 - first) / period + 1;
            }
        }
    }
    Some(found)
}
