//! Sample points of a box: all points if there are few, otherwise its corners and seeded random points.

use crate::evaluator::Values;
use crate::expr::{Context, Var};
use crate::interval::Interval;
use crate::map::IndexingMap;

/// The most points of a box that are enumerated.
const MAX_ENUMERATED: u64 = 1 << 16;
/// How many random points stand for a larger box.
const NUM_RANDOM: usize = 10_000;
/// The most corners that are taken, the random points not counted.
const MAX_CORNERS: u32 = 10;
/// How far from a finite end points are taken where the other end is infinite.
const REACH: i64 = 1 << 32;

/// The interval of each variable.
pub(crate) struct BoundingBox {
    vars: Vec<(Var, Interval)>,
}

impl BoundingBox {
    /// The smallest box that covers the domains of the maps, which have the same variables.
    pub(crate) fn around(ctx: &Context, maps: &[&IndexingMap]) -> Self {
        let intervals: Vec<_> = maps.iter().map(|map| map.intervals(ctx)).collect();
        let vars = maps.first().into_iter().flat_map(|map| map.vars());
        let hull =
            |var| intervals.iter().map(|it| it.of(var)).fold(Interval::EMPTY, Interval::hull);
        Self { vars: vars.map(|(var, _)| (var, hull(var))).collect() }
    }

    /// The number of points; `None` when there are too many to count.
    fn num_points(&self) -> Option<u64> {
        if self.vars.iter().any(|(_, interval)| interval.is_empty()) {
            return Some(0);
        }
        self.vars
            .iter()
            .try_fold(1_u64, |size, (_, interval)| size.checked_mul(interval.num_members()?))
    }

    /// All points, the last variable fastest, or a fixed choice of them.
    pub(crate) fn samples(self) -> Samples {
        let size = self.num_points();
        let are_all = size.is_some_and(|size| size <= MAX_ENUMERATED);
        let vars = if are_all {
            self.vars
        } else {
            self.vars.iter().map(|&(var, interval)| (var, window(interval))).collect()
        };
        let point = vars.iter().map(|&(var, interval)| (var, interval.lo)).collect();
        let next = match size {
            Some(0) => Next::Nothing,
            _ if are_all => Next::First,
            _ => Next::Corner(0),
        };
        Samples { vars, point, next, are_all }
    }

    /// All points, if there are at most so many.
    pub(crate) fn enumerate(self, limit: u64) -> Option<Samples> {
        self.num_points().filter(|&size| size <= limit.min(MAX_ENUMERATED))?;
        Some(self.samples())
    }
}

/// The points to look at, one after the other.
pub(crate) struct Samples {
    vars: Vec<(Var, Interval)>,
    /// The last one.
    point: Values,
    next: Next,
    are_all: bool,
}

/// What comes after the last point.
enum Next {
    /// The first of all.
    First,
    /// The one that follows in the order of enumeration.
    Following,
    /// The corner with this number.
    Corner(u32),
    /// So many random points, from this generator.
    Random(usize, Random),
    Nothing,
}

impl Samples {
    /// Whether they are all points of the box.
    pub(crate) fn are_all(&self) -> bool {
        self.are_all
    }

    /// The first of the points still to come for which something holds.
    pub(crate) fn find(&mut self, mut holds: impl FnMut(&Values) -> bool) -> Option<Values> {
        while let Some(point) = self.advance() {
            if holds(point) {
                return Some(point.clone());
            }
        }
        None
    }

    /// Goes to the next point.
    pub(crate) fn advance(&mut self) -> Option<&Values> {
        match &mut self.next {
            Next::First => self.next = Next::Following,
            Next::Following => {
                let mut carried = true;
                for &(var, interval) in self.vars.iter().rev() {
                    let Some(value) = self.point.of_mut(var) else { continue };
                    if *value < interval.hi {
                        *value += 1;
                        carried = false;
                        break;
                    }
                    *value = interval.lo;
                }
                if carried {
                    self.next = Next::Nothing;
                    return None;
                }
            }
            Next::Corner(corner) => {
                for (i, &(var, interval)) in self.vars.iter().enumerate() {
                    // Where there are too many variables, the rest follows the first.
                    let is_low = *corner >> (i % 32).min(MAX_CORNERS as usize - 1) & 1 == 0;
                    if let Some(value) = self.point.of_mut(var) {
                        *value = if is_low { interval.lo } else { interval.hi };
                    }
                }
                let num_vars = u32::try_from(self.vars.len()).unwrap_or(u32::MAX);
                *corner += 1;
                if *corner == 1 << num_vars.min(MAX_CORNERS) {
                    self.next = Next::Random(NUM_RANDOM, Random::new());
                }
            }
            Next::Random(0, _) | Next::Nothing => return None,
            Next::Random(left, random) => {
                *left -= 1;
                for &(var, interval) in &self.vars {
                    if let Some(value) = self.point.of_mut(var) {
                        *value = random.member(interval);
                    }
                }
            }
        }
        Some(&self.point)
    }
}

/// A bounded part of an interval that is not empty.
fn window(interval: Interval) -> Interval {
    match (interval.lo == i64::MIN, interval.hi == i64::MAX) {
        (false, false) => interval,
        (false, true) => Interval::new(interval.lo, interval.lo.saturating_add(REACH)),
        (true, false) => Interval::new(interval.hi.saturating_sub(REACH), interval.hi),
        (true, true) => Interval::new(-REACH, REACH),
    }
}

/// A generator of pseudo-random numbers with a fixed seed (SplitMix64, Steele et al. 2014).
struct Random(u64);

impl Random {
    fn new() -> Self {
        Self(0x5eed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A member of a bounded interval that is not empty, often near one of its ends.
    fn member(&mut self, interval: Interval) -> i64 {
        let span = interval.hi.abs_diff(interval.lo);
        let offset = match self.next() % 8 {
            0 => 0,
            1 => span,
            2 => (self.next() % 16).min(span),
            3 => span - (self.next() % 16).min(span),
            // Near zero, where small divisors make the most of a difference.
            4 if interval.contains(0) => {
                (interval.lo.unsigned_abs().saturating_sub(16) + self.next() % 33).min(span)
            }
            _ => {
                let random = self.next();
                span.checked_add(1).map_or(random, |size| random % size)
            }
        };
        let value = i128::from(interval.lo) + i128::from(offset);
        i64::try_from(value).expect("between two 64-bit numbers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The points, and whether they are all.
    fn around(text: &str) -> (Vec<Values>, bool) {
        let ctx = Context::new();
        let map = IndexingMap::parse(&ctx, text).expect("a map");
        let mut samples = BoundingBox::around(&ctx, &[&map]).samples();
        let mut points = Vec::new();
        while let Some(point) = samples.advance() {
            points.push(point.clone());
        }
        assert!(samples.advance().is_none());
        (points, samples.are_all())
    }

    #[test]
    fn small_boxes_are_enumerated() {
        let text = "(d0)[s0]{N} -> (), domain: d0 in [1, 2], s0 in [-1, 0], N in [7, 7]";
        let (points, are_all) = around(text);
        let found: Vec<_> =
            points.iter().map(|it| (it.dims[0], it.ranges[0], it.runtimes[0])).collect();
        assert_eq!(found, [(1, -1, 7), (1, 0, 7), (2, -1, 7), (2, 0, 7)]);
        assert!(are_all);
        assert_eq!(around("() -> ()"), (vec![Values::default()], true));
        assert_eq!(around("(d0, d1) -> (), domain: d0 in [1, 0]"), (Vec::new(), true));
    }

    #[test]
    fn samples_lie_in_the_box() {
        let text = "(d0, d1, d2) -> (), domain: d0 in [-9223372036854775807, 9223372036854775806], \
                    d1 in [9223372036854775800, inf], d2 in [-inf, -9223372036854775800]";
        let (points, are_all) = around(text);
        assert!(!are_all);
        assert_eq!(points.len(), 8 + NUM_RANDOM);
        for point in points {
            assert!(i64::MAX - 7 <= point.dims[1] && point.dims[2] <= -i64::MAX + 7);
        }
    }
}
