//! In which order the variables of a domain become loops.
//!
//! The cost of a variable as the innermost loop counts, over all operands but those that only an epilogue reads,
//! how far one step of it moves through memory: 0 if the operand stays where it is, 1 if it moves
//! to the neighbour, and up to a cache line (16 elements) otherwise; a destination
//! counts twice, being read and written. A loop of few iterations cannot be vectorized
//! and costs more. Outer loops are in order of decreasing cost, so that those which
//! move farthest are outermost.

use super::emit::Nest;
use tc_dialects::imap::Indexed;
use tc_ir::{Expr, IndexingMap, Var};

/// The cost of one step that leaves the cache line.
const FAR: u64 = 16;
/// Iterations below which a loop is too short for vectors.
const SHORT: u64 = 16;

/// The shape of the nest, with its variables from the outermost to the innermost.
#[derive(Clone, Debug)]
pub(in crate::convert) enum Plan {
    /// Fold in registers: dimension variables, then range variables inside them.
    Registers { dims: Vec<Var>, ranges: Vec<Var> },
    /// Accumulate in memory over strips of the dimension variable `row`.
    Rows { row: Var, dims: Vec<Var>, ranges: Vec<Var> },
}

impl Plan {
    /// The variables from the outermost to the innermost.
    pub fn order(&self) -> Vec<Var> {
        match self {
            Self::Registers { dims, ranges } => [&dims[..], ranges].concat(),
            Self::Rows { row, dims, ranges } => [&dims[..], ranges, &[*row]].concat(),
        }
    }
}

/// How far one step of `var` moves in an operand with this map.
fn step(nest: &Nest, map: &IndexingMap, var: Var) -> u64 {
    let uses = |expr| nest.needs(&[expr]).contains(&var);
    let Some((last, outer)) = map.results.split_last() else { return 0 };
    if outer.iter().any(|expr| uses(*expr)) {
        return FAR;
    }
    if !uses(*last) {
        return 0;
    }
    match nest.ir.coefficient(*last, var) {
        // Elements that are read at a place along `var` are anywhere.
        Some(0) | None => FAR / 4,
        Some(factor) => factor.unsigned_abs().min(FAR),
    }
}

/// How far one step of `lane` moves in an operand with this map; `None` if that depends
/// on where it is, or leaves the innermost dimension.
pub(in crate::convert) fn step_along(nest: &Nest, map: &IndexingMap, lane: Var) -> Option<i64> {
    if !nest.needs(&map.results).contains(&lane) {
        return Some(0);
    }
    let (last, outer) = map.results.split_last()?;
    if nest.needs(outer).contains(&lane) {
        return None;
    }
    if differs_at_runtime(nest, &[*last], lane) {
        return None;
    }
    nest.ir.coefficient(*last, lane)
}

/// Whether expressions have a runtime variable that is read at a place along the lanes.
pub(super) fn differs_at_runtime(nest: &Nest, exprs: &[Expr], lane: Var) -> bool {
    let variables = nest.ir.vars_of_all(exprs).into_iter();
    let runtimes = variables.filter(|var| matches!(var, Var::Runtime(_)));
    let runtimes: Vec<Expr> = runtimes.map(|var| nest.ir.var(var)).collect();
    nest.needs(&runtimes).contains(&lane)
}

/// Whether a constraint depends on a variable.
pub(in crate::convert) fn is_constrained(nest: &Nest, var: Var) -> bool {
    nest.domain.constraints.iter().any(|it| nest.needs(&[it.expr]).contains(&var))
}

fn cost(nest: &Nest, var: Var) -> u64 {
    let inputs = nest.inputs.iter().filter(|input| input.is_folded);
    let mut cost: u64 = inputs.map(|input| step(nest, &input.map, var)).sum();
    cost += nest.outputs.iter().map(|output| 2 * step(nest, &output.map, var)).sum::<u64>();
    let extent = nest.intervals.of(var).num_members().unwrap_or(u64::MAX);
    if extent < SHORT {
        cost += SHORT - extent;
    }
    // A float sum in source order is one chain of dependent additions.
    if matches!(var, Var::Range(_)) && nest.keeps_order() {
        cost += FAR / 2;
    }
    cost
}

/// Whether a window slides along a dimension variable: the dimension and the range walk through the same rows of an input,
/// and neighbouring results are neighbours. Lanes along the results need no fold across them.
fn slides(nest: &Nest, dim: Var, range: Var) -> bool {
    let is_walk = |map: &IndexingMap, var| step_along(nest, map, var) == Some(1);
    let is_along = |map: &IndexingMap| step_along(nest, map, range).is_some_and(|it| it != 0);
    let is_window = |map: &IndexingMap| is_walk(map, dim) && is_along(map);
    let inputs = || nest.inputs.iter().filter(|input| input.is_folded);
    nest.intervals.of(dim).num_members().is_none_or(|extent| SHORT <= extent)
        && inputs().any(|input| is_window(&input.map))
        && inputs().all(|input| matches!(step_along(nest, &input.map, dim), Some(0 | 1)))
        && nest.outputs.iter().all(|output| is_walk(&output.map, dim))
}

/// Chooses the shape and the order of the loops. `None` if the bounds of the variables
/// depend on each other in a circle, or on later ranges in an ordered fold.
pub(in crate::convert) fn plan(nest: &Nest) -> Option<Plan> {
    let is_loop = |var: &Var| nest.fixed(*var).is_none();
    let dims = (0..nest.domain.dims.len() as u32).map(Var::Dim).filter(is_loop);
    let ranges = (0..nest.domain.ranges.len() as u32).map(Var::Range).filter(is_loop);
    let (dims, ranges): (Vec<Var>, Vec<Var>) = (dims.collect(), ranges.collect());
    let by_cost = |vars: &[Var]| {
        let mut vars: Vec<_> = vars.iter().map(|var| (cost(nest, *var), *var)).collect();
        vars.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        vars
    };
    let (costed_dims, costed_ranges) = (by_cost(&dims), by_cost(&ranges));
    let dims: Vec<Var> = costed_dims.iter().map(|(_, var)| *var).collect();
    // An ordered fold keeps the order of its ranges.
    let is_kept = nest.generic.keeps_order();
    let by_cost = costed_ranges.iter().map(|(_, var)| *var);
    let ranges: Vec<Var> = if is_kept { ranges } else { by_cost.collect() };
    let in_order = |dims: &[Var]| {
        let found = respect_bounds(nest, dims, ranges.clone())?;
        (!is_kept || found == ranges).then_some(found)
    };
    if let (Some((dim_cost, row)), Some((range_cost, range))) =
        (costed_dims.last(), costed_ranges.last())
        && (dim_cost < range_cost || slides(nest, *row, *range))
    {
        let rest: Vec<_> = dims.iter().copied().filter(|var| var != row).collect();
        // The row's loop goes inside the ranges and is run once for initialization
        // outside of them: neither may bound the other.
        let independent = nest.bound_needs(*row).is_subset(&rest.iter().copied().collect())
            && ranges.iter().chain(&rest).all(|var| !nest.bound_needs(*var).contains(row));
        if independent {
            let dims = respect_bounds(nest, &[], rest)?;
            let mut ranges = in_order(&dims)?;
            if !is_kept {
                // Constraints that bound no loop, such as those of remainders, are tested once for the other ranges.
                let is_tested = |var: Var| {
                    let mut constraints = nest.domain.constraints.iter();
                    constraints.any(|it| nest.ir.coefficient(it.expr, var).is_none())
                };
                ranges.sort_by_key(|var| !is_tested(*var));
                ranges = respect_bounds(nest, &dims, ranges)?;
            }
            return Some(Plan::Rows { row: *row, dims, ranges });
        }
    }
    let dims = respect_bounds(nest, &[], dims)?;
    let ranges = in_order(&dims)?;
    Some(Plan::Registers { dims, ranges })
}

/// The other variables of a scan: those of the loops around it, and the one whose loop goes
/// inside it, if one is worth that. `None` as for [`plan`].
pub(in crate::convert) fn around(nest: &Nest, scanned: Var) -> Option<(Vec<Var>, Option<Var>)> {
    let is_other = |var: &Var| nest.fixed(*var).is_none() && *var != scanned;
    let others = (0..nest.domain.dims.len() as u32).map(Var::Dim).filter(is_other);
    let mut others: Vec<_> = others.map(|var| (cost(nest, var), var)).collect();
    others.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
    let scanned_cost = cost(nest, scanned);
    let is_free = |row: Var| others.iter().all(|(_, var)| !nest.bound_needs(*var).contains(&row));
    let row = others.last().filter(|(cost, row)| *cost < scanned_cost && is_free(*row));
    let row = row.map(|(_, row)| *row);
    let rest = others.into_iter().map(|(_, var)| var).filter(|var| Some(*var) != row).collect();
    let rest = respect_bounds(nest, &[], rest)?;
    let known = |var: Var| nest.bound_needs(var).iter().all(|it| rest.contains(it));
    (known(scanned) && row.is_none_or(known)).then_some((rest, row))
}

/// The order of the loops of a scatter: `free` variables may go anywhere, the others keep their order.
/// `None` if the bounds of the variables do not allow that.
pub(in crate::convert) fn of_scatter(nest: &Nest, dims: &[Var], free: &[Var]) -> Option<Vec<Var>> {
    let costed = |var: &Var| (cost(nest, *var), *var);
    let (mut movable, mut fixed): (Vec<_>, Vec<_>) =
        dims.iter().map(costed).partition(|(_, var)| free.contains(var));
    movable.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
    // From the innermost one outwards. A movable one goes inside, so that what the others need is
    // done once.
    let mut order = Vec::new();
    loop {
        let is_inner = match (movable.last(), fixed.last()) {
            (Some((inner, _)), Some((outer, _))) => inner <= outer,
            (inner, _) => inner.is_some(),
        };
        let list = if is_inner { &mut movable } else { &mut fixed };
        let Some((_, var)) = list.pop() else { break };
        order.push(var);
    }
    order.reverse();
    let order = respect_bounds(nest, &[], order)?;
    let is_fixed = |var: &&Var| !free.contains(var);
    order.iter().filter(is_fixed).eq(dims.iter().filter(is_fixed)).then_some(order)
}

/// Reorders `wanted` so that each variable comes after those its bounds need.
pub(super) fn respect_bounds(nest: &Nest, outer: &[Var], wanted: Vec<Var>) -> Option<Vec<Var>> {
    let mut result: Vec<Var> = Vec::new();
    let mut left = wanted;
    while !left.is_empty() {
        let ready = left.iter().position(|var| {
            nest.bound_needs(*var).iter().all(|it| outer.contains(it) || result.contains(it))
        })?;
        result.push(left.remove(ready));
    }
    Some(result)
}
