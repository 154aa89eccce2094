//! Points of a box: all of them where they are few, otherwise its corners and seeded random ones.

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

/// The points to look at.
pub(crate) enum Samples {
    /// Every point.
    All(Vec<Values>),
    /// Some of them.
    Some(Vec<Values>),
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

    /// All points, or a fixed choice of them.
    pub(crate) fn samples(&self) -> Samples {
        match self.enumerate(MAX_ENUMERATED) {
            Some(points) => Samples::All(points),
            None => Samples::Some(self.some()),
        }
    }

    /// All points, if there are at most so many.
    pub(crate) fn enumerate(&self, limit: u64) -> Option<Vec<Values>> {
        match self.num_points().filter(|&size| size <= limit)? {
            0 => Some(Vec::new()),
            _ => Some(self.all()),
        }
    }

    fn all(&self) -> Vec<Values> {
        let mut points = Vec::new();
        let mut current: Vec<i64> = self.vars.iter().map(|(_, interval)| interval.lo).collect();
        loop {
            points.push(self.values(&current));
            let mut carried = true;
            for (value, (_, interval)) in current.iter_mut().zip(&self.vars).rev() {
                if *value < interval.hi {
                    *value += 1;
                    carried = false;
                    break;
                }
                *value = interval.lo;
            }
            if carried {
                return points;
            }
        }
    }

    fn some(&self) -> Vec<Values> {
        let windows: Vec<Interval> = self.vars.iter().map(|(_, it)| window(*it)).collect();
        let mut points = Vec::new();
        let num_corners = u32::try_from(windows.len()).unwrap_or(u32::MAX).min(MAX_CORNERS);
        for corner in 0..1_u32 << num_corners {
            // Where there are too many variables, the rest follows the first.
            let end = |i: usize| corner >> (i % 32).min(MAX_CORNERS as usize - 1) & 1 == 0;
            let ends = windows.iter().enumerate();
            let values: Vec<i64> = ends.map(|(i, it)| if end(i) { it.lo } else { it.hi }).collect();
            points.push(self.values(&values));
        }
        let mut random = Random::new();
        for _ in 0..NUM_RANDOM {
            let values: Vec<i64> = windows.iter().map(|it| random.member(*it)).collect();
            points.push(self.values(&values));
        }
        points
    }

    fn values(&self, values: &[i64]) -> Values {
        let mut point = Values::default();
        for ((var, _), &value) in self.vars.iter().zip(values) {
            match var {
                Var::Dim(_) => point.dims.push(value),
                Var::Range(_) => point.ranges.push(value),
                Var::Runtime(_) => point.runtimes.push(value),
            }
        }
        point
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

    fn around(text: &str) -> BoundingBox {
        let ctx = Context::new();
        let map = IndexingMap::parse(&ctx, text).expect("a map");
        BoundingBox::around(&ctx, &[&map])
    }

    #[test]
    fn small_boxes_are_enumerated() {
        let Samples::All(points) =
            around("(d0)[s0]{N} -> (), domain: d0 in [1, 2], s0 in [-1, 0], N in [7, 7]").samples()
        else {
            panic!("four points");
        };
        let found: Vec<_> =
            points.iter().map(|it| (it.dims[0], it.ranges[0], it.runtimes[0])).collect();
        assert_eq!(found, [(1, -1, 7), (1, 0, 7), (2, -1, 7), (2, 0, 7)]);
        assert!(matches!(around("() -> ()").samples(), Samples::All(points) if points.len() == 1));
        let empty = around("(d0, d1) -> (), domain: d0 in [1, 0]");
        assert!(matches!(empty.samples(), Samples::All(points) if points.is_empty()));
    }

    #[test]
    fn samples_lie_in_the_box() {
        let text = "(d0, d1, d2) -> (), domain: d0 in [-9223372036854775807, 9223372036854775806], \
                    d1 in [9223372036854775800, inf], d2 in [-inf, -9223372036854775800]";
        let Samples::Some(points) = around(text).samples() else {
            panic!("many points");
        };
        assert_eq!(points.len(), 8 + NUM_RANDOM);
        for point in points {
            assert!(i64::MAX - 7 <= point.dims[1] && point.dims[2] <= -i64::MAX + 7);
        }
    }
}
