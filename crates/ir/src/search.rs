//! Enumerates the points of a domain with few points in a large box, by branch and prune.
//!
//! A box is tightened by the constraints, left out where one of them holds nowhere in it, and cut in two
//! otherwise, until single points are left (interval branch and
//! prune; Van Hentenryck, McAllester and Kapur, "Solving polynomial systems using a branch and prune
//! approach", 1997).

use crate::evaluator::{MapEvaluator, Values};
use crate::expr::{Context, Expr, Var};
use crate::interval::Interval;
use crate::map::IndexingMap;
use crate::tighten::{Operations, Sums, Tightened};

/// The most work, in operators and variables whose intervals are found.
const MAX_WORK: u64 = 1 << 20;
/// How much smaller a box has to become to be tightened again.
const MIN_PROGRESS: f64 = 0.8;

/// Points of a domain.
pub(crate) struct Found {
    pub(crate) points: Vec<Values>,
    pub(crate) are_all: bool,
    /// What it took.
    pub(crate) work: u64,
}

/// So many points of the domain of `map`, or all if they are fewer, as far as little work finds them.
pub(crate) fn search(ctx: &Context, map: &IndexingMap, limit: usize) -> Found {
    let vars: Vec<Var> = map.vars().map(|(var, _)| var).collect();
    let place = |var: Var| Some(map.position(var)).filter(|&place| vars.get(place) == Some(&var));
    let mut claims: Vec<(Expr, Interval)> =
        map.constraints.iter().map(|constraint| (constraint.expr, constraint.interval)).collect();
    for (var, variable) in map.vars() {
        // The intervals of the variables say the rest.
        if variable.constant_interval(ctx).is_none() {
            let distances = variable.distances(ctx, ctx.var(var)).into_iter().flatten();
            claims.extend(distances.map(|it| (it, Interval::NON_NEGATIVE)));
        }
    }
    let mut sums = Sums::default();
    for &(expr, interval) in &claims {
        sums.add(ctx, expr, interval, place);
    }
    let operations = Operations::new(ctx, &claims, place);
    let mut evaluator = MapEvaluator::new(ctx, map);
    let intervals = map.intervals(ctx);
    let mut open: Vec<Vec<Interval>> = vec![vars.iter().map(|&var| intervals.of(var)).collect()];
    let mut found = Found { points: Vec::new(), are_all: false, work: 0 };
    let work_per_round = (vars.len() + operations.len()) as u64;
    'cells: while let Some(mut cell) = open.pop() {
        loop {
            found.work += work_per_round;
            if MAX_WORK < found.work {
                return found;
            }
            let is_empty = cell.iter().any(|it| it.is_empty());
            if is_empty || sums.tighten(&mut cell) == Tightened::Empty {
                continue 'cells;
            }
            let before = size(&cell);
            match operations.tighten(&mut cell) {
                Tightened::Empty => continue 'cells,
                // Slow progress is left to bisection.
                Tightened::Open if size(&cell) < before * MIN_PROGRESS => {}
                Tightened::Open | Tightened::Settled => break,
            }
        }
        // The fewest values first (Haralick and Elliott 1980): fixed, they tighten the others.
        let open_places = (0..cell.len()).filter(|&place| cell[place].lo < cell[place].hi);
        let narrowest = open_places.min_by_key(|&place| cell[place].hi.abs_diff(cell[place].lo));
        let Some((place, interval)) = narrowest.map(|place| (place, cell[place])) else {
            let at = |it: &Interval| it.lo;
            let point: Values = vars.iter().copied().zip(cell.iter().map(at)).collect();
            if evaluator.contains(&point) == Ok(true) {
                found.points.push(point);
                if found.points.len() == limit {
                    return found;
                }
            }
            continue;
        };
        if !interval.is_bounded() {
            return found;
        }
        let half = interval.hi.abs_diff(interval.lo) / 2;
        let middle = interval.lo.saturating_add_unsigned(half);
        let mut upper = cell.clone();
        cell[place].hi = middle;
        upper[place].lo = middle + 1;
        open.extend([upper, cell]);
    }
    found.are_all = true;
    found
}

/// The number of points of a box.
fn size(cell: &[Interval]) -> f64 {
    cell.iter().map(|it| it.hi as f64 - it.lo as f64 + 1.0).product()
}
