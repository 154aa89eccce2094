//! Two points with the same results, which show that a map has no inverse.

use std::collections::HashMap;

use super::InverseError;
use crate::evaluator::{MapEvaluator, Values};
use crate::expr::{Context, Expr, Var};
use crate::interval::Interval;
use crate::linear_domain::{LinearAnswer, LinearDomain};
use crate::map::{Constraint, IndexingMap};
use crate::samples::BoundingBox;

/// The terms of rows that are touched to find two points.
const MAX_WORK: usize = 1 << 20;
/// The most operations that are evaluated at points of a large box.
const MAX_OPERATIONS: usize = 1 << 22;

/// Two points with the same results, or that the equations were not solved.
///
/// Such pairs are the points of a domain of twice as many variables, which is
/// [decided](crate::emptiness) where the map is linear, with quotients and remainders. The points
/// of a small box are enumerated, and some of a large one tried.
pub(super) fn collision(ctx: &Context, map: &IndexingMap, unsolved: &[Var]) -> InverseError {
    match find(ctx, map, unsolved) {
        Some(points) => InverseError::NotInjective(Box::new(points)),
        None => InverseError::Unsolved(unsolved.first().copied().unwrap_or(Var::Dim(0))),
    }
}

fn find(ctx: &Context, map: &IndexingMap, unsolved: &[Var]) -> Option<[Values; 2]> {
    let mut evaluator = MapEvaluator::new(ctx, map);
    let mut results = |point: &Values| {
        if evaluator.contains(point) != Ok(true) {
            return None;
        }
        evaluator.results().map(|number| evaluator.result(number).ok()).collect::<Option<Vec<_>>>()
    };
    if let Some([first, second]) = pair(ctx, map)
        && first != second
        && let Some(found) = results(&first)
        && results(&second) == Some(found)
    {
        return Some([first, second]);
    }
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

/// Two points that the linear part of the map does not tell apart.
fn pair(ctx: &Context, map: &IndexingMap) -> Option<[Values; 2]> {
    let rank = map.dims.len();
    let moved = |expr: Expr| {
        ctx.substitute(expr, &|var| match var {
            Var::Dim(i) => Some(ctx.dim(i.checked_add(u32::try_from(rank).ok()?)?)),
            _ => None,
        })
    };
    let mut both = map.clone();
    both.dims.extend(map.dims.iter().cloned());
    let copies = map.constraints.iter().map(|it| Constraint { expr: moved(it.expr), ..*it });
    both.constraints.extend(copies);
    both.constraints.extend(map.results.iter().map(|&result| Constraint {
        expr: ctx.sub(result, moved(result)),
        interval: Interval::point(0),
    }));
    let mut domain = LinearDomain::new(ctx, &both);
    // One of two different points is larger in some variable: the second.
    let larger = (0..).take(rank).map(|i| {
        let dim = ctx.dim(i);
        (ctx.sub(moved(dim), dim), Interval::new(1, i64::MAX))
    });
    domain.choose(&larger.collect::<Vec<_>>());
    let LinearAnswer::Point(mut first) = domain.solve(&mut { MAX_WORK }) else { return None };
    let second = Values { dims: first.dims.split_off(rank), ..first.clone() };
    Some([first, second])
}
