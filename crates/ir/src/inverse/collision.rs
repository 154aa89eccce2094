//! Finds two points with equal results, which prove that a map has no inverse.

use std::collections::HashMap;

use super::InverseError;
use crate::evaluator::{MapEvaluator, Values};
use crate::expr::{Context, Expr, Var};
use crate::interval::Interval;
use crate::linear_domain::{LinearAnswer, LinearDomain};
use crate::map::{Constraint, IndexingMap};
use crate::samples::BoundingBox;
use crate::search::search;

/// The terms of rows that are touched to find two points.
const MAX_WORK: usize = 1 << 20;
/// The most operations that are evaluated at points of a large box.
const MAX_OPERATIONS: usize = 1 << 22;
/// The most variables in which two points that differ are searched for.
const MAX_SEARCHES: usize = 4;

/// Two points with the same results, or that the equations were not solved.
///
/// Such pairs are the points of a domain of twice as many variables, which is
/// [decided](crate::emptiness) where the map is linear, with quotients and remainders, and searched
/// otherwise. The points of a small box are enumerated, and some of a large one tried. They are those of the
/// given map: constraints that have no value there are missing in the simplified one.
pub(super) fn collision(
    ctx: &Context,
    given: &IndexingMap,
    map: &IndexingMap,
    unsolved: &[Var],
) -> InverseError {
    let mut evaluator = MapEvaluator::new(ctx, given);
    let mut results = |point: &Values| {
        if evaluator.contains(point) != Ok(true) {
            return None;
        }
        evaluator.results().map(|number| evaluator.result(number).ok()).collect()
    };
    let both = pairs(ctx, map);
    let found = linear_pair(ctx, &both, map.dims.len());
    let found = found.filter(|pair| is_collision(pair, &mut results));
    let found = found.or_else(|| sampled_pair(ctx, map, unsolved, &mut results)).or_else(|| {
        let pairs = unsolved
            .iter()
            .take(MAX_SEARCHES)
            .filter_map(|&var| searched_pair(ctx, &both, map.dims.len(), var));
        pairs.into_iter().find(|pair| is_collision(pair, &mut results))
    });
    match found {
        Some(points) => InverseError::NotInjective(Box::new(points)),
        None => InverseError::Unsolved(unsolved.first().copied().unwrap_or(Var::Dim(0))),
    }
}

/// The results at a point of the domain, where all have values.
type Results<'r> = &'r mut dyn FnMut(&Values) -> Option<Vec<i64>>;

fn is_collision([first, second]: &[Values; 2], results: Results) -> bool {
    first != second && results(first).is_some_and(|found| results(second) == Some(found))
}

/// Two points of a small box, or neighbours in a large one.
fn sampled_pair(
    ctx: &Context,
    map: &IndexingMap,
    unsolved: &[Var],
    results: Results,
) -> Option<[Values; 2]> {
    let mut samples = BoundingBox::around(ctx, &[map]).samples();
    let are_all = samples.are_all();
    let mut seen: HashMap<(Vec<i64>, Vec<i64>), Values> = HashMap::new();
    let per_point = map.results.iter().map(|&result| ctx.cost(result) as usize + 1).sum::<usize>();
    let mut left = MAX_OPERATIONS / per_point.max(map.dims.len()).max(1);
    while let Some(point) = samples.advance() {
        let Some(found) = results(point) else { continue };
        if are_all {
            let key = (found, point.runtimes.clone());
            if let Some(other) = seen.insert(key, point.clone()) {
                return Some([other, point.clone()]);
            }
            continue;
        }
        for &var in unsolved {
            left = left.checked_sub(1)?;
            let mut other = point.clone();
            if let Some(value) = other.of_mut(var) {
                *value = value.saturating_add(1);
            }
            if other != *point && results(&other).as_ref() == Some(&found) {
                return Some([point.clone(), other]);
            }
        }
    }
    None
}

/// Moves the dimension variables of an expression to those of the second point.
fn moved(ctx: &Context, expr: Expr, rank: usize) -> Expr {
    ctx.substitute(expr, &|var| match var {
        Var::Dim(i) => Some(ctx.dim(i.checked_add(u32::try_from(rank).ok()?)?)),
        _ => None,
    })
}

/// The pairs of points with the same results.
fn pairs(ctx: &Context, map: &IndexingMap) -> IndexingMap {
    let moved = |expr: Expr| moved(ctx, expr, map.dims.len());
    let mut both = map.clone();
    both.dims.extend(map.dims.iter().cloned());
    let copies = map.constraints.iter().map(|it| Constraint { expr: moved(it.expr), ..*it });
    both.constraints.extend(copies);
    both.constraints.extend(map.results.iter().map(|&result| Constraint {
        expr: ctx.sub(result, moved(result)),
        interval: Interval::point(0),
    }));
    both
}

/// The points of a pair, where `rank` variables are those of the first.
fn apart(mut first: Values, rank: usize) -> [Values; 2] {
    let second = Values { dims: first.dims.split_off(rank), ..first.clone() };
    [first, second]
}

/// Two points that the linear part of the map does not tell apart.
fn linear_pair(ctx: &Context, both: &IndexingMap, rank: usize) -> Option<[Values; 2]> {
    let mut domain = LinearDomain::new(ctx, both);
    // One of two different points is larger in some variable: the second.
    let larger = (0..).take(rank).map(|i| {
        let dim = ctx.dim(i);
        (ctx.sub(moved(ctx, dim, rank), dim), Interval::new(1, i64::MAX))
    });
    domain.choose(&larger.collect::<Vec<_>>());
    match domain.solve(&mut { MAX_WORK }) {
        LinearAnswer::Point(point) => Some(apart(point, rank)),
        LinearAnswer::Empty | LinearAnswer::Unknown => None,
    }
}

/// Two points, the second of which is larger in a variable, by branch and prune.
fn searched_pair(ctx: &Context, both: &IndexingMap, rank: usize, var: Var) -> Option<[Values; 2]> {
    let mut both = both.clone();
    let expr = ctx.sub(moved(ctx, ctx.var(var), rank), ctx.var(var));
    both.constraints.push(Constraint { expr, interval: Interval::new(1, i64::MAX) });
    Some(apart(search(ctx, &both, 1).points.pop()?, rank))
}
