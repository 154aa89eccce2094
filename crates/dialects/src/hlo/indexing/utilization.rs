//! Operand utilization: the share of an operand that a full read of the output touches.
//!
//! The elements that are touched are the image of the maps from output to input. Dimensions of the
//! operand whose indices have no variables in common are independent, so that their images multiply;
//! within a group of dependent ones the image is enumerated. A sum of strided ranges that leave no
//! gap is counted without enumeration, and so is a map that has an inverse. The count is exact where that works out, for one map or for
//! several; runtime variables that are not part of each index may move the image but not change its
//! size. Otherwise the result is an upper bound.

use super::{Indexing, IndexingSet, OperandIndexing};
use crate::hlo::ArrayShape;
use std::collections::{BTreeSet, HashMap, HashSet};
use tc_ir::{Context, Expr, IndexingMap, Interval, MapEvaluator, Values, Var};

/// The most points that are enumerated for one group of dimensions.
const MAX_POINTS: u64 = 1 << 16;
/// Where there are no more points than this, enumeration costs less than finding an inverse.
const FEW_POINTS: u64 = 1 << 8;

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
        if set.is_unknown(array) {
            return Some(all);
        }
        let ctx = self.context();
        let mut maps: Vec<&OperandIndexing> = set
            .maps()
            .iter()
            .filter(|it| it.array == array && !it.map.is_known_empty(ctx))
            .collect();
        let images: Vec<Count> =
            maps.iter().map(|it| self.image_size(it, &shape.dims).clamp(total)).collect();
        if images.iter().any(|image| image.exact && image.size == total) {
            return Some(Utilization { exact: true, ..all });
        }
        // Only together may several maps touch an element twice.
        if let [image] = images[..] {
            return Some(Utilization { touched: image.size, total, exact: image.exact });
        }
        maps.retain(|it| it.runtimes.is_empty());
        if maps.len() == images.len()
            && let Some(points) = union(ctx, &maps, &shape.dims)
        {
            return Some(Utilization { touched: points, total, exact: true });
        }
        let sum = images.iter().fold(0i64, |sum, image| sum.saturating_add(image.size));
        Some(Utilization { touched: sum.min(total), total, exact: images.is_empty() })
    }

    /// The number of elements that one map leads to, within an array of these sizes. Large models
    /// repeat their maps, so that each is counted once.
    fn image_size(&self, indexing: &OperandIndexing, dims: &[i64]) -> Count {
        let key = (indexing.clone(), dims.to_vec());
        if let Some(&known) = self.images.borrow().get(&key) {
            return known;
        }
        let count = image_size(self.context(), indexing, dims);
        self.images.borrow_mut().insert(key, count);
        count
    }
}

/// The sizes of images that are known, by map and sizes of the array.
pub(super) type Images = HashMap<(OperandIndexing, Vec<i64>), Count>;

#[derive(Clone, Copy)]
pub(super) struct Count {
    size: i64,
    exact: bool,
}

impl Count {
    fn clamp(self, total: i64) -> Self {
        Self { size: self.size.min(total), exact: self.exact }
    }
}

/// The number of elements that one map leads to, within an array of these sizes.
fn image_size(ctx: &Context, indexing: &OperandIndexing, dims: &[i64]) -> Count {
    let mut indexing = indexing.clone();
    indexing.simplify(ctx);
    let map = &indexing.map;
    if map.is_known_empty(ctx) {
        return Count { size: 0, exact: true };
    }
    // Where an update may be left out, the image is smaller.
    let mut numbers = (0..).take(indexing.runtimes.len());
    let exact = numbers.all(|number| !indexing.restricts(ctx, number));
    let mut count = Count { size: 1, exact };
    for group in groups(ctx, map) {
        let part = group_size(ctx, &indexing, &group, dims);
        count.size = count.size.saturating_mul(part.size);
        count.exact &= part.exact;
    }
    count
}

/// Results and constraints with variables in common, by their numbers.
#[derive(Default)]
struct Group {
    results: Vec<usize>,
    constraints: Vec<usize>,
    vars: BTreeSet<Var>,
}

fn groups(ctx: &Context, map: &IndexingMap) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut add = |expr: Expr, result: Option<usize>, constraint: Option<usize>| {
        let mut group = Group {
            results: result.into_iter().collect(),
            constraints: constraint.into_iter().collect(),
            vars: ctx.vars(expr),
        };
        groups.retain_mut(|other| {
            let apart = other.vars.is_disjoint(&group.vars);
            if !apart {
                group.results.append(&mut other.results);
                group.constraints.append(&mut other.constraints);
                group.vars.append(&mut other.vars);
            }
            apart
        });
        groups.push(group);
    };
    for (number, &result) in map.results.iter().enumerate() {
        add(result, Some(number), None);
    }
    for (number, constraint) in map.constraints.iter().enumerate() {
        add(constraint.expr, None, Some(number));
    }
    groups
}

/// The number of different values of the results of a group.
fn group_size(ctx: &Context, indexing: &OperandIndexing, group: &Group, dims: &[i64]) -> Count {
    let map = &indexing.map;
    let mut extents = group.results.iter().map(|&result| dims.get(result).copied().unwrap_or(0));
    let all = extents.try_fold(1i64, |all, extent| all.checked_mul(extent)).unwrap_or(i64::MAX);
    let bound = Count { size: all, exact: false };
    let bounds = map.intervals(ctx);
    if let ([result], []) = (&group.results[..], &group.constraints[..]) {
        let range = ctx.interval_of(map.results[*result], &|var| bounds.of(var));
        if let Some(size) = strided(ctx, map, map.results[*result]) {
            // A runtime variable that is the same for all elements only moves the image.
            let moved = group.vars.iter().any(|var| matches!(var, Var::Runtime(_)));
            let is_same = || {
                group.vars.iter().all(|var| match var {
                    Var::Runtime(number) => indexing
                        .runtimes
                        .get(*number as usize)
                        .is_some_and(|it| ctx.vars_of_all(&it.map.results).is_empty()),
                    _ => true,
                })
            };
            let inside = Interval::new(0, all.saturating_sub(1)).covers(range);
            if inside && (!moved || is_same()) {
                return Count { size: size.min(all), exact: true };
            }
        }
    }
    if group.vars.iter().any(|var| matches!(var, Var::Runtime(_))) {
        return bound;
    }
    let part = restricted(map, group);
    let enumerated = |most| {
        let points = enumerate(ctx, &part, &group.vars, &group.results, dims, most)?;
        Some(Count { size: i64::try_from(points.len()).ok()?, exact: true })
    };
    enumerated(FEW_POINTS)
        .or_else(|| injective_size(ctx, &part, &group.results, dims))
        .or_else(|| enumerated(MAX_POINTS))
        .unwrap_or(bound)
}

/// The number of values if no two points have the same: then there is an inverse.
fn injective_size(
    ctx: &Context,
    part: &IndexingMap,
    results: &[usize],
    dims: &[i64],
) -> Option<Count> {
    let mut map = part.clone();
    map.remove_unused_vars(ctx);
    map.convert_symbols_to_dimensions(ctx);
    let bounds = map.intervals(ctx);
    let inside = map.results.iter().zip(results).all(|(&expr, &result)| {
        let range = ctx.interval_of(expr, &|var| bounds.of(var));
        dims.get(result).is_some_and(|&extent| Interval::new(0, extent - 1).covers(range))
    });
    if !inside || !map.constraints.is_empty() || map.inverse(ctx).is_err() {
        return None;
    }
    let size = map.vars().try_fold(1i64, |size, (var, _)| {
        size.checked_mul(i64::try_from(bounds.of(var).num_members()?).ok()?)
    })?;
    Some(Count { size, exact: true })
}

/// The number of values of a sum of multiples of variables, if they leave no gaps but those of their
/// common factor: each stride is at most what the smaller ones reach.
fn strided(ctx: &Context, map: &IndexingMap, expr: Expr) -> Option<i64> {
    let bounds = map.intervals(ctx);
    let mut terms = Vec::new();
    for (term, factor) in &ctx.linear_terms(expr)?.terms {
        let var = ctx.as_var(*term)?;
        if let Var::Runtime(_) = var {
            continue;
        }
        let count = i64::try_from(bounds.of(var).num_members()?).ok()?;
        terms.push((factor.checked_abs()?, count.checked_sub(1)?));
    }
    terms.sort_unstable();
    let unit = terms.first().map_or(1, |&(factor, _)| factor);
    let mut reach = 0i64;
    for (factor, span) in terms {
        if factor % unit != 0 || reach.checked_add(1)? < factor / unit {
            return None;
        }
        reach = reach.checked_add((factor / unit).checked_mul(span)?)?;
    }
    reach.checked_add(1)
}

/// The map with the results and constraints of a group only.
fn restricted(map: &IndexingMap, group: &Group) -> IndexingMap {
    IndexingMap {
        results: group.results.iter().map(|&number| map.results[number]).collect(),
        constraints: group.constraints.iter().map(|&number| map.constraints[number]).collect(),
        ..map.clone()
    }
}

/// The image of a map by enumeration of the variables that it uses; `None` if there are more than
/// `most` points. Values outside of the array are left out.
fn enumerate(
    ctx: &Context,
    map: &IndexingMap,
    vars: &BTreeSet<Var>,
    results: &[usize],
    dims: &[i64],
    most: u64,
) -> Option<HashSet<Vec<i64>>> {
    let bounds = map.intervals(ctx);
    let ranges: Vec<(Var, Interval)> = vars.iter().map(|&var| (var, bounds.of(var))).collect();
    let size = ranges.iter().try_fold(1u64, |size, (_, range)| {
        size.checked_mul(range.num_members()?).filter(|&size| size <= most)
    })?;
    let mut evaluator = MapEvaluator::new(ctx, map);
    let least = |variables: usize, make: fn(u32) -> Var| -> Vec<i64> {
        (0..variables).zip(0..).map(|(_, number)| bounds.of(make(number)).lo).collect()
    };
    // Variables that are not used stay at their first value.
    let mut point = Values {
        dims: least(map.dims.len(), Var::Dim),
        ranges: least(map.ranges.len(), Var::Range),
        runtimes: least(map.runtimes.len(), Var::Runtime),
    };
    let mut image = HashSet::new();
    for number in 0..size {
        let mut rest = number;
        for (var, range) in &ranges {
            let count = range.num_members()?;
            let value = range.lo.checked_add(i64::try_from(rest % count).ok()?)?;
            rest /= count;
            let place = match var {
                Var::Dim(number) => point.dims.get_mut(*number as usize),
                Var::Range(number) => point.ranges.get_mut(*number as usize),
                Var::Runtime(number) => point.runtimes.get_mut(*number as usize),
            };
            *place? = value;
        }
        if evaluator.contains(&point).ok()? {
            let values = evaluator.results().map(|number| evaluator.result(number));
            let values = values.collect::<Result<Vec<_>, _>>().ok()?;
            let inside = |(value, result): (&i64, &usize)| {
                dims.get(*result).is_some_and(|extent| (0..*extent).contains(value))
            };
            if values.iter().zip(results).all(inside) {
                image.insert(values);
            }
        }
    }
    Some(image)
}

/// The number of elements that at least one of the maps leads to.
fn union(ctx: &Context, maps: &[&OperandIndexing], dims: &[i64]) -> Option<i64> {
    let results: Vec<usize> = (0..dims.len()).collect();
    let mut points = HashSet::new();
    for indexing in maps {
        let map = &indexing.map;
        let constraints = map.constraints.iter().map(|it| it.expr);
        let exprs: Vec<Expr> = map.results.iter().copied().chain(constraints).collect();
        points.extend(enumerate(ctx, map, &ctx.vars_of_all(&exprs), &results, dims, MAX_POINTS)?);
    }
    i64::try_from(points.len()).ok()
}
