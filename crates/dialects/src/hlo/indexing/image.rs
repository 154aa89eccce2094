//! Counts the elements in the image of a map.
//!
//! Runtime variables that have one value for all elements of the output, as the starts of a
//! `dynamic-slice` do, are *common*: the count may depend on them, but for each value of theirs they
//! are constants. Results and constraints that have no other variables in common are independent, so
//! that their counts multiply. Each such group is counted
//!
//! 1. as a [line], if it is one index;
//! 2. by enumeration, for each value of the common runtime variables, if there are few points;
//! 3. as the number of points, if the map has an inverse.
//!
//! Where runtime variables differ from element to element, as in a `gather`, there are no more
//! elements than points to read from.

use super::{
    OperandIndexing, RuntimeSource,
    line::{Progression, line},
};
use std::collections::{BTreeSet, HashMap, HashSet};
use tc_ir::{
    Context, Emptiness, Expr, IndexingMap, Interval, MapEvaluator, Node, Values, Var, VarIntervals,
    expr::{checked_ceil_div, checked_floor_div},
};

/// The most points that are enumerated for one group.
pub(super) const MAX_POINTS: u64 = 1 << 16;
/// Where there are no more points than this, enumeration costs less than finding an inverse.
const FEW_POINTS: u64 = 1 << 8;

/// The images that are known, by map and sizes of the array.
pub(super) type Images = HashMap<(OperandIndexing, Vec<i64>), Image>;

/// A number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    /// The number, or no fewer than there are.
    pub size: i64,
    /// Whether it is the number, whatever the values of runtime variables.
    pub exact: bool,
}

impl Count {
    fn exactly(size: i64) -> Self {
        Self { size, exact: true }
    }

    fn at_most(size: i64) -> Self {
        Self { size, exact: false }
    }
}

/// The elements that a map leads to.
#[derive(Clone, Debug)]
pub(super) struct Image {
    pub count: Count,
    /// If every combination of an index in each dimension is an element: these indices, where they
    /// are regular.
    pub sides: Option<Vec<Option<Side>>>,
}

/// The indices of an image in one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Side {
    pub indices: Progression,
    /// By multiples of which runtime variables they are moved.
    pub moved_by: Vec<(CommonValue, i64)>,
}

/// A value that runtime variables of several maps may have in common: where it comes from, at which
/// index, and what it is moved into.
pub(super) type CommonValue = (RuntimeSource, Vec<i64>, Option<Interval>);

/// The elements of an array of these sizes that a map leads to.
pub(super) fn image(ctx: &Context, indexing: &OperandIndexing, dims: &[i64]) -> Image {
    let mut indexing = indexing.clone();
    indexing.simplify(ctx);
    if indexing.map.is_known_empty(ctx) {
        return Image { count: Count::exactly(0), sides: None };
    }
    let domain = Domain::of(ctx, &indexing);
    let mut image = domain.image(dims);
    if !indexing.exceptions.is_empty() {
        let count = domain.without(&indexing.exceptions, dims, image.count);
        image = Image { count, sides: None };
    }
    let mut numbers = (0..).take(indexing.runtimes.len());
    let is_certain =
        !indexing.is_conditional && numbers.all(|number| !indexing.restricts(ctx, number));
    if !is_certain && 0 < image.count.size {
        image = Image { count: Count::at_most(image.count.size), sides: None };
    }
    image
}

/// A map with what is known of its runtime variables.
#[derive(Clone)]
struct Domain<'c> {
    ctx: &'c Context,
    map: IndexingMap,
    /// The runtime variables that have one value for all elements.
    common: BTreeSet<Var>,
    /// Which value that is, if it does not depend on others.
    values: HashMap<Var, CommonValue>,
    /// The variables that the values of the others depend on.
    sources: HashMap<Var, BTreeSet<Var>>,
    /// The values that runtime variables may have, whether or not the map holds for them.
    possible: VarIntervals,
}

/// Results and constraints with variables in common, by their numbers.
#[derive(Default)]
struct Group {
    results: Vec<usize>,
    constraints: Vec<usize>,
    /// The variables, but for common ones.
    vars: BTreeSet<Var>,
}

impl<'c> Domain<'c> {
    fn of(ctx: &'c Context, indexing: &OperandIndexing) -> Self {
        let (mut common, mut sources) = (BTreeSet::new(), HashMap::new());
        let mut values = HashMap::new();
        // The position of one may depend on those after it.
        let runtimes: Vec<_> = (0..).zip(&indexing.runtimes).collect();
        for (number, runtime) in runtimes.into_iter().rev() {
            let mut own = BTreeSet::new();
            for var in ctx.vars_of_all(&runtime.map.results) {
                match sources.get(&var) {
                    Some(others) => own.extend(others),
                    None if common.contains(&var) => {}
                    None => own.extend([var]),
                }
            }
            if own.is_empty() {
                common.insert(Var::Runtime(number));
                let index = runtime.map.results.iter().map(|&index| ctx.as_constant(index));
                if let Some(index) = index.collect() {
                    let value = (runtime.source, index, runtime.moved_into);
                    values.insert(Var::Runtime(number), value);
                }
            } else {
                sources.insert(Var::Runtime(number), own);
            }
        }
        let possible = indexing.map.intervals(ctx);
        Self { ctx, map: indexing.map.clone(), common, values, sources, possible }
    }

    /// The same number of points in other variables, without constraints of two kinds.
    ///
    /// Where `d - rt` is bounded, `d + rt` takes the place of the variable `d`, if it has room for that
    /// whatever the value of `rt`: then `rt` moves the points, and does not change how many there are.
    /// Where `d mod m` is known, a multiple of `m` and the rest take its place.
    fn with_free_variables(&self) -> Self {
        let mut domain = self.clone();
        for _ in 0..self.map.constraints.len() {
            let next = domain.movable().or_else(|| domain.stepped());
            let Some((number, var, value, interval)) = next else { break };
            domain.map.constraints.remove(number);
            domain.map.substitute(self.ctx, &|each| (each == var).then_some(value));
            if let Some(variable) = domain.map.variable_mut(var) {
                variable.set_interval(self.ctx, interval);
            }
            domain.map.simplify(self.ctx);
        }
        domain
    }

    /// A constraint by number, a variable in it, what takes its place, and the bounds of the variable
    /// then.
    fn stepped(&self) -> Option<(usize, Var, Expr, Interval)> {
        let (ctx, bounds) = (self.ctx, self.map.intervals(self.ctx));
        self.map.constraints.iter().enumerate().find_map(|(number, constraint)| {
            let Node::Mod(inner, modulus) = ctx.node(constraint.expr) else { return None };
            let (rest, modulus) = (constraint.interval.as_point()?, ctx.as_constant(modulus)?);
            let linear = ctx.linear_terms(inner)?;
            let [(term, sign @ (1 | -1))] = linear.terms[..] else { return None };
            let var = ctx.as_var(term).filter(|var| !matches!(var, Var::Runtime(_)))?;
            let range = bounds.of(var);
            if modulus < 2 || !(0..modulus).contains(&rest) || !range.is_bounded() {
                return None;
            }
            let rest = rest.checked_sub(linear.constant)?.checked_mul(sign)?.rem_euclid(modulus);
            let first = checked_ceil_div(range.lo.checked_sub(rest)?, modulus)?;
            let last = checked_floor_div(range.hi.checked_sub(rest)?, modulus)?;
            let multiple = ctx.mul(ctx.var(var), ctx.constant(modulus));
            let value = ctx.add(multiple, ctx.constant(rest));
            Some((number, var, value, Interval::new(first, last)))
        })
    }

    /// As [`stepped`](Self::stepped), for the other kind of constraint.
    fn movable(&self) -> Option<(usize, Var, Expr, Interval)> {
        let bounds = self.map.intervals(self.ctx);
        self.map.constraints.iter().enumerate().find_map(|(number, constraint)| {
            let linear = self.ctx.linear_terms(constraint.expr)?;
            let [(first, one), (second, other)] = linear.terms[..] else { return None };
            let (first, second) = (self.ctx.as_var(first)?, self.ctx.as_var(second)?);
            let ((var, sign), runtime) = match (self.common.contains(&first), one, other) {
                (true, -1, 1) | (true, 1, -1) => ((second, other), first),
                (false, -1, 1) | (false, 1, -1) => ((first, one), second),
                _ => return None,
            };
            if !self.common.contains(&runtime) || matches!(var, Var::Runtime(_)) {
                return None;
            }
            let interval = constraint.interval.sub(Interval::point(linear.constant));
            let interval = if sign < 0 { interval.neg() } else { interval };
            let has_room =
                interval.is_bounded() && bounds.of(var).covers(interval.add(bounds.of(runtime)));
            let value = self.ctx.add(self.ctx.var(var), self.ctx.var(runtime));
            has_room.then_some((number, var, value, interval))
        })
    }

    /// The variables that the value of an expression depends on, but for common ones.
    fn vars(&self, expr: Expr) -> BTreeSet<Var> {
        let mut vars = self.ctx.vars(expr);
        vars.retain(|var| !self.common.contains(var));
        let sources = vars.iter().filter_map(|var| self.sources.get(var));
        let sources: Vec<Var> = sources.flatten().copied().collect();
        vars.extend(sources);
        vars
    }

    fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut add = |expr: Expr, result: Option<usize>, constraint: Option<usize>| {
            let mut group = Group {
                results: result.into_iter().collect(),
                constraints: constraint.into_iter().collect(),
                vars: self.vars(expr),
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
        for (number, &result) in self.map.results.iter().enumerate() {
            add(result, Some(number), None);
        }
        for (number, constraint) in self.map.constraints.iter().enumerate() {
            add(constraint.expr, None, Some(number));
        }
        groups
    }

    /// What the results lead to within an array of these sizes.
    fn image(&self, dims: &[i64]) -> Image {
        let domain = self.with_free_variables();
        let mut image = domain.image_of_groups(dims);
        let bounds = domain.map.intervals(self.ctx);
        let runtimes = (0..).map(Var::Runtime).take(domain.map.runtimes.len());
        // For other values there are no elements.
        if { runtimes }.any(|var| bounds.of(var) != self.possible.of(var)) && 0 < image.count.size {
            image = Image { count: Count::at_most(image.count.size), sides: None };
        }
        image
    }

    fn image_of_groups(&self, dims: &[i64]) -> Image {
        if self.map.is_known_empty(self.ctx) {
            return Image { count: Count::exactly(0), sides: None };
        }
        let mut count = Count::exactly(1);
        let mut sides = Some(vec![None; dims.len()]);
        for group in self.groups() {
            let (part, side) = self.group(&group, dims);
            let extent = |result: &usize| dims.get(*result).copied().unwrap_or(0);
            let all = group.results.iter().map(extent).fold(1, i64::saturating_mul);
            match (&group.results[..], &mut sides) {
                ([result], Some(sides)) => sides[*result] = side,
                (results, Some(sides)) if part == Count::exactly(all) => {
                    for result in results {
                        let count = extent(result).into();
                        let indices = Progression { start: 0, step: 1, count };
                        sides[*result] = Some(Side { indices, moved_by: Vec::new() });
                    }
                }
                _ => sides = None,
            }
            count = match (count, part) {
                (_, Count { size: 0, exact: true }) | (Count { size: 0, exact: true }, _) => {
                    Count::exactly(0)
                }
                _ => Count {
                    size: count.size.saturating_mul(part.size),
                    exact: count.exact && part.exact,
                },
            };
        }
        let sides = sides.filter(|_| count.exact && 0 < count.size);
        Image { count, sides }
    }

    /// How many values the results of a group have together.
    fn group(&self, group: &Group, dims: &[i64]) -> (Count, Option<Side>) {
        let (ctx, map) = (self.ctx, &self.map);
        let bounds = map.intervals(ctx);
        let extents: Option<Vec<i64>> =
            group.results.iter().map(|&result| dims.get(result).copied()).collect();
        let Some(extents) = extents else { return (Count::exactly(0), None) };
        let all = extents.iter().copied().fold(1, i64::saturating_mul);
        let fixed = group.vars.iter().filter(|var| !matches!(var, Var::Runtime(_)));
        let points = fixed.map(|&var| num_members(&bounds, var)).fold(1, i64::saturating_mul);
        let bound = Count::at_most(all.min(points));
        if group.vars.iter().any(|var| matches!(var, Var::Runtime(_))) {
            return (bound, None);
        }
        let part = IndexingMap {
            results: group.results.iter().map(|&number| map.results[number]).collect(),
            constraints: group.constraints.iter().map(|&number| map.constraints[number]).collect(),
            ..map.clone()
        };
        if let ([index], [extent]) = (&part.results[..], &extents[..])
            && let Some(line) = line(ctx, &bounds, *index, &part.constraints, &self.common, *extent)
            && let Ok(size) = i64::try_from(line.count)
        {
            let side = line.progression.and_then(|indices| self.side(*index, indices));
            return (Count::exactly(size), side);
        }
        let exprs = part.results.iter().copied().chain(part.constraints.iter().map(|it| it.expr));
        let exprs: Vec<Expr> = exprs.collect();
        let mut vars = ctx.vars_of_all(&exprs);
        vars.retain(|var| self.common.contains(var));
        let count = count_points(ctx, &part, (&vars, &group.vars), &extents, FEW_POINTS)
            .or_else(|| has_points(ctx, &part, &vars))
            .or_else(|| injective(ctx, &part, &vars, &extents))
            .or_else(|| count_points(ctx, &part, (&vars, &group.vars), &extents, MAX_POINTS))
            .unwrap_or(bound);
        (count, None)
    }

    /// These values of an index, with what they are moved by.
    fn side(&self, index: Expr, indices: Progression) -> Option<Side> {
        let mut moved_by = Vec::new();
        if !self.ctx.vars(index).is_disjoint(&self.common) {
            for &(term, factor) in &self.ctx.linear_terms(index)?.terms {
                let var = self.ctx.as_var(term)?;
                if self.common.contains(&var) {
                    moved_by.push((self.values.get(&var)?.clone(), factor));
                }
            }
        }
        moved_by.sort_unstable();
        Some(Side { indices, moved_by })
    }

    /// The number of values that these variables have together.
    fn num_points(&self, vars: &BTreeSet<Var>) -> Count {
        let results = vars.iter().map(|&var| self.ctx.var(var)).collect();
        let domain = Self { map: IndexingMap { results, ..self.map.clone() }, ..self.clone() };
        domain.image(&vec![i64::MAX; vars.len()]).count
    }

    /// What is left of an image of this size without the points of the exceptions.
    fn without(&self, exceptions: &[IndexingMap], dims: &[i64], whole: Count) -> Count {
        let count = self.without_points(exceptions, dims, whole);
        if count.exact {
            return count;
        }
        let vars = |wanted: &dyn Fn(&Var) -> bool| -> BTreeSet<Var> {
            self.map.vars().map(|(var, _)| var).filter(wanted).collect()
        };
        let common = vars(&|var| self.common.contains(var));
        let others = vars(&|var| !self.common.contains(var));
        if others.iter().any(|var| matches!(var, Var::Runtime(_))) {
            return count;
        }
        let vars = (&common, &others);
        let found = count_points_except(self.ctx, &self.map, vars, dims, exceptions, MAX_POINTS);
        found.unwrap_or(count)
    }

    /// The same, if each element has one point that leads to it: then the points of exceptions
    /// count.
    fn without_points(&self, exceptions: &[IndexingMap], dims: &[i64], whole: Count) -> Count {
        let groups = self.groups().into_iter().filter(|group| !group.results.is_empty());
        let mut linked: BTreeSet<Var> = groups.flat_map(|group| group.vars).collect();
        for exception in exceptions {
            let restricted = self.restricted(exception);
            let (bounds, domain) =
                (restricted.map.intervals(self.ctx), self.map.intervals(self.ctx));
            let mut free: BTreeSet<Var> = restricted
                .map
                .vars()
                .map(|(var, _)| var)
                .filter(|&var| bounds.of(var) != domain.of(var))
                .collect();
            for group in restricted.groups() {
                match group.results.is_empty() {
                    true => free.extend(&group.vars),
                    false => linked.extend(&group.vars),
                }
            }
            free.retain(|var| !linked.contains(var));
            if free.iter().any(|var| matches!(var, Var::Runtime(_))) {
                return Count::at_most(whole.size);
            }
            // Where points of the same element lie outside, it is read.
            let (inside, all) = (restricted.num_points(&free), self.num_points(&free));
            match (inside.exact && all.exact, exceptions.len()) {
                (true, _) if inside == all => {}
                (true, 1) => return whole,
                _ => return Count::at_most(whole.size),
            }
        }
        linked.retain(|var| !self.common.contains(var));
        if !whole.exact || self.num_points(&linked) != whole {
            return Count::at_most(whole.size);
        }
        self.without_union(exceptions, dims, whole)
    }

    /// By inclusion and exclusion; most exceptions have nothing in common.
    fn without_union(&self, exceptions: &[IndexingMap], dims: &[i64], whole: Count) -> Count {
        let (mut excluded, mut largest, mut exact) = (0i64, 0, true);
        let mut open = vec![(self.clone(), 0, 1i64)];
        while let Some((domain, first, sign)) = open.pop() {
            for (number, exception) in exceptions.iter().enumerate().skip(first) {
                let both = domain.restricted(exception);
                let part = both.image(dims).count;
                if part == Count::exactly(0) {
                    continue;
                }
                if first == 0 && part.exact {
                    largest = largest.max(part.size);
                }
                exact &= part.exact;
                excluded = excluded.saturating_add(part.size.saturating_mul(sign));
                open.push((both, number + 1, -sign));
            }
            // From here on, nothing would change.
            if !exact {
                break;
            }
        }
        match exact {
            true => Count::exactly(whole.size.saturating_sub(excluded)),
            false => Count::at_most(whole.size.saturating_sub(largest)),
        }
    }

    /// The part of the domain where an exception holds too.
    fn restricted(&self, exception: &IndexingMap) -> Self {
        let mut domain = self.clone();
        let bounds = exception.intervals(self.ctx);
        for (var, _) in exception.vars() {
            let interval = domain.map.interval(self.ctx, var).intersect(bounds.of(var));
            if let Some(variable) = domain.map.variable_mut(var) {
                variable.set_interval(self.ctx, interval);
            }
        }
        for constraint in &exception.constraints {
            domain.map.add_constraint(self.ctx, constraint.expr, constraint.interval);
        }
        domain.map.simplify(self.ctx);
        domain
    }
}

fn num_members(bounds: &VarIntervals, var: Var) -> i64 {
    let members = bounds.of(var).num_members();
    members.and_then(|count| i64::try_from(count).ok()).unwrap_or(i64::MAX)
}

/// Whether constraints without results leave anything, as a number.
fn has_points(ctx: &Context, part: &IndexingMap, common: &BTreeSet<Var>) -> Option<Count> {
    if !part.results.is_empty() || !common.is_empty() {
        return None;
    }
    match part.emptiness(ctx) {
        Emptiness::Empty => Some(Count::exactly(0)),
        Emptiness::Inhabited(_) => Some(Count::exactly(1)),
        Emptiness::Unknown => None,
    }
}

/// The number of values if no two points have the same: then there is an inverse.
fn injective(
    ctx: &Context,
    part: &IndexingMap,
    common: &BTreeSet<Var>,
    extents: &[i64],
) -> Option<Count> {
    let mut map = part.clone();
    map.remove_unused_vars(ctx);
    map.convert_symbols_to_dimensions(ctx);
    let bounds = map.intervals(ctx);
    let inside = map.results.iter().zip(extents).all(|(&expr, &extent)| {
        let range = ctx.interval_of(expr, &|var| bounds.of(var));
        Interval::new(0, extent.saturating_sub(1)).covers(range)
    });
    if !inside || !common.is_empty() || !map.constraints.is_empty() || !map.has_inverse(ctx) {
        return None;
    }
    let size = map.vars().try_fold(1i64, |size, (var, _)| {
        size.checked_mul(i64::try_from(bounds.of(var).num_members()?).ok()?)
    })?;
    Some(Count::exactly(size))
}

/// The number of values of the results inside of an array of these sizes, by enumeration of
/// variables: for each value of the common ones, the others. `None` if there are more than `most`
/// points.
fn count_points(
    ctx: &Context,
    map: &IndexingMap,
    vars: (&BTreeSet<Var>, &BTreeSet<Var>),
    extents: &[i64],
    most: u64,
) -> Option<Count> {
    count_points_except(ctx, map, vars, extents, &[], most)
}

/// As [`count_points`], without the points of exceptions.
fn count_points_except(
    ctx: &Context,
    map: &IndexingMap,
    (common, others): (&BTreeSet<Var>, &BTreeSet<Var>),
    extents: &[i64],
    exceptions: &[IndexingMap],
    most: u64,
) -> Option<Count> {
    let bounds = map.intervals(ctx);
    let ranges = |vars: &BTreeSet<Var>| -> Vec<(Var, Interval)> {
        vars.iter().map(|&var| (var, bounds.of(var))).collect()
    };
    let (common, others) = (ranges(common), ranges(others));
    let num_common = size_of_box(&common, most)?;
    let num_others = size_of_box(&others, most)?;
    num_common.checked_mul(num_others).filter(|&size| size <= most)?;
    let mut evaluator = MapEvaluator::new(ctx, map);
    let mut exceptions: Vec<MapEvaluator> =
        exceptions.iter().map(|it| MapEvaluator::new(ctx, it)).collect();
    let mut point = least_point(map, &bounds);
    let (mut least, mut largest) = (i64::MAX, 0);
    for number in 0..num_common {
        set_point(&mut point, &common, number)?;
        let mut image = HashSet::new();
        for number in 0..num_others {
            set_point(&mut point, &others, number)?;
            if !evaluator.contains(&point).ok()? {
                continue;
            }
            let mut excluded = false;
            for exception in &mut exceptions {
                excluded |= exception.contains(&point).ok()?;
            }
            if !excluded && let Some(element) = element(&mut evaluator, extents)? {
                image.insert(element);
            }
        }
        let count = i64::try_from(image.len()).ok()?;
        (least, largest) = (least.min(count), largest.max(count));
    }
    Some(Count { size: largest, exact: least == largest || num_common == 0 })
}

/// The points of a map without runtime variables that lead to an element, if the box around its
/// domain has at most [`MAX_POINTS`]; `None` otherwise.
pub(super) fn elements(
    ctx: &Context,
    indexing: &OperandIndexing,
    dims: &[i64],
) -> Option<HashSet<Vec<i64>>> {
    let map = &indexing.map;
    let bounds = map.intervals(ctx);
    let ranges: Vec<(Var, Interval)> = map.vars().map(|(var, _)| (var, bounds.of(var))).collect();
    if !indexing.runtimes.is_empty() || indexing.is_conditional {
        return None;
    }
    let mut evaluator = MapEvaluator::new(ctx, map);
    let mut exceptions: Vec<MapEvaluator> =
        indexing.exceptions.iter().map(|it| MapEvaluator::new(ctx, it)).collect();
    let mut point = least_point(map, &bounds);
    let mut image = HashSet::new();
    for number in 0..size_of_box(&ranges, MAX_POINTS)? {
        set_point(&mut point, &ranges, number)?;
        let mut inside = evaluator.contains(&point).ok()?;
        for exception in &mut exceptions {
            inside &= !exception.contains(&point).ok()?;
        }
        if inside && let Some(element) = element(&mut evaluator, dims)? {
            image.insert(element);
        }
    }
    Some(image)
}

/// Where a point leads to, if that is inside of the array.
#[expect(clippy::option_option, reason = "the outer one is failure")]
fn element(evaluator: &mut MapEvaluator, extents: &[i64]) -> Option<Option<Vec<i64>>> {
    let values = evaluator.results().map(|number| evaluator.result(number));
    let values = values.collect::<Result<Vec<_>, _>>().ok()?;
    let inside = values.iter().zip(extents).all(|(value, extent)| (0..*extent).contains(value));
    Some(inside.then_some(values))
}

/// The number of points of a box, if they are at most so many.
fn size_of_box(ranges: &[(Var, Interval)], most: u64) -> Option<u64> {
    ranges.iter().try_fold(1u64, |size, (_, range)| {
        size.checked_mul(range.num_members()?).filter(|&size| size <= most)
    })
}

/// The first value of each variable; those that are not used stay there.
fn least_point(map: &IndexingMap, bounds: &VarIntervals) -> Values {
    let least = |variables: usize, make: fn(u32) -> Var| -> Vec<i64> {
        (0..variables).zip(0..).map(|(_, number)| bounds.of(make(number)).lo).collect()
    };
    Values {
        dims: least(map.dims.len(), Var::Dim),
        ranges: least(map.ranges.len(), Var::Range),
        runtimes: least(map.runtimes.len(), Var::Runtime),
    }
}

/// Gives the variables of a box the values of the point with this number.
fn set_point(point: &mut Values, ranges: &[(Var, Interval)], number: u64) -> Option<()> {
    let mut rest = number;
    for (var, range) in ranges {
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
    Some(())
}
