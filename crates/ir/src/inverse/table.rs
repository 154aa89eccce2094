//! Numbers that take few values: their equations are tables.
//!
//! Where the unknowns of some equations have few points together, and their left sides tell these apart,
//! each unknown is a function of the values, of which all pairs are known. It is written as a sum over
//! the pieces between its breakpoints: in each, `x` changes by `dx` with every `dz` of the value, which is
//! `dx * ((min(max(z, a), b) - a) floordiv dz)`. Several values are one number in mixed radix.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::Solver;
use super::monotone::Sum;
use crate::evaluator::MapEvaluator;
use crate::expr::{Expr, Node, Var};
use crate::interval::Interval;
use crate::map::{Constraint, IndexingMap, Variable};
use crate::search::search;

/// The most points of a table.
const MAX_POINTS: usize = 1 << 10;
/// The most pieces that an unknown is written in.
const MAX_PIECES: usize = 32;
/// The most equations that are looked at for one table.
const MAX_FACTS: usize = 64;

/// An expression over unknown variables alone, and what it equals.
struct Fact {
    expr: Expr,
    value: Expr,
    vars: BTreeSet<Var>,
}

impl Solver<'_> {
    /// Solves variables of which few values are possible by what is known of them.
    pub(super) fn tabulate(&mut self) {
        let facts = self.facts();
        let unsolved: Vec<Var> = facts.iter().flat_map(|it| it.vars.iter().copied()).collect();
        let mut sets: BTreeSet<BTreeSet<Var>> =
            unsolved.iter().map(|&var| BTreeSet::from([var])).collect();
        sets.extend(components(&facts));
        for vars in sets {
            let solved = vars.iter().any(|&var| self.solved(var).is_some());
            let of_these = facts.iter().filter(|fact| fact.vars.is_subset(&vars));
            let of_these: Vec<&Fact> = of_these.take(MAX_FACTS).collect();
            if !solved && !of_these.is_empty() {
                self.tabulate_these(&vars.into_iter().collect::<Vec<_>>(), &of_these);
            }
        }
    }

    fn facts(&self) -> Vec<Fact> {
        let ctx = self.ctx;
        let mut found: BTreeMap<Expr, Expr> = BTreeMap::new();
        for &(lhs, rhs) in &self.equations {
            if let Some(Sum { unknown, known }) = self.sum(lhs) {
                found.entry(self.total(&unknown)).or_insert(ctx.sub(rhs, known));
            }
        }
        let is_compound = |expr: Expr| !matches!(ctx.node(expr), Node::Var(_) | Node::Const(_));
        for (&term, &value) in self.known.iter().filter(|it| is_compound(*it.0)) {
            found.entry(term).or_insert(value);
        }
        let is_unknown = |var: &Var| matches!(var, Var::Dim(_)) && self.solved(*var).is_none();
        let facts =
            found.into_iter().map(|(expr, value)| Fact { expr, value, vars: ctx.vars(expr) });
        facts.filter(|it| !it.vars.is_empty() && it.vars.iter().all(is_unknown)).collect()
    }

    fn tabulate_these(&mut self, vars: &[Var], facts: &[&Fact]) -> Option<()> {
        let ctx = self.ctx;
        let renumbered = |expr: Expr| {
            ctx.substitute(expr, &|var| Some(ctx.dim((0..).zip(vars).find(|it| *it.1 == var)?.0)))
        };
        let intervals: Vec<Interval> =
            vars.iter().map(|&var| self.simplifier.interval_of(ctx.var(var))).collect();
        let is_about = |expr: Expr| ctx.vars(expr).iter().all(|var| vars.contains(var));
        let constraints = self.map.constraints.iter().filter(|it| is_about(it.expr));
        let part = IndexingMap {
            dims: intervals.iter().map(|&it| Variable::bounded(ctx, it)).collect(),
            results: facts.iter().map(|fact| renumbered(fact.expr)).collect(),
            constraints: constraints
                .map(|it| Constraint { expr: renumbered(it.expr), ..*it })
                .collect(),
            ..IndexingMap::default()
        };
        let found = search(ctx, &part, MAX_POINTS + 1);
        let points = found.points;
        if !found.are_all || points.is_empty() || MAX_POINTS < points.len() {
            return None;
        }
        let mut evaluator = MapEvaluator::new(ctx, &part);
        let mut columns = vec![Vec::with_capacity(points.len()); facts.len()];
        for point in &points {
            evaluator.contains(point).ok()?;
            for (column, number) in columns.iter_mut().zip(evaluator.results()) {
                column.push(evaluator.result(number).ok()?);
            }
        }
        let (key, chosen) = key(&columns)?;
        let mut value = ctx.constant(0);
        for Digit { column, least, stride } in chosen {
            let digit = ctx.sub(facts[column].value, ctx.constant(least));
            value = ctx.add(value, ctx.mul(digit, ctx.constant(stride)));
        }
        let mut solutions = Vec::new();
        for place in 0..vars.len() {
            let mut pairs: Vec<(i64, i64)> =
                key.iter().zip(&points).map(|(&key, point)| (key, point.dims[place])).collect();
            pairs.sort_unstable();
            solutions.push(self.interpolated(value, &pairs)?);
        }
        for (&var, solution) in vars.iter().zip(solutions) {
            self.learn(ctx.var(var), solution);
        }
        Some(())
    }

    /// The function of `z` with these values, in the order of `z`. `None` if it has too many pieces.
    fn interpolated(&self, z: Expr, pairs: &[(i64, i64)]) -> Option<Expr> {
        let ctx = self.ctx;
        let (&(first, start), &(last, _)) = (pairs.first()?, pairs.last()?);
        let mut sum = ctx.constant(start);
        let mut pieces = 0;
        let mut place = 0;
        while let [(from, x), (next, y), rest @ ..] = &pairs[place..] {
            let (dz, dx) = (next.checked_sub(*from)?, y.checked_sub(*x)?);
            let mut end = (*next, *y);
            place += 1;
            for &(z, x) in rest {
                if z.checked_sub(end.0)? != dz || x.checked_sub(end.1)? != dx {
                    break;
                }
                end = (z, x);
                place += 1;
            }
            if dx == 0 {
                continue;
            }
            pieces += 1;
            if MAX_PIECES < pieces {
                return None;
            }
            let mut above = ctx.sub(z, ctx.constant(*from));
            if *from != first {
                above = ctx.max(above, ctx.constant(0));
            }
            if end.0 != last {
                above = ctx.min(above, ctx.constant(end.0 - from));
            }
            let steps = ctx.floor_div(above, ctx.constant(dz));
            sum = ctx.add(sum, ctx.mul(steps, ctx.constant(dx)));
        }
        Some(sum)
    }
}

/// The sets of variables that occur together.
fn components(facts: &[Fact]) -> Vec<BTreeSet<Var>> {
    let mut sets: Vec<BTreeSet<Var>> = Vec::new();
    for fact in facts {
        let mut whole = fact.vars.clone();
        sets.retain(|set| {
            let is_apart = set.is_disjoint(&whole);
            if !is_apart {
                whole.extend(set);
            }
            is_apart
        });
        sets.push(whole);
    }
    sets
}

/// A column, the least value in it, and what the distance from that is multiplied by.
struct Digit {
    column: usize,
    least: i64,
    stride: i64,
}

/// A number for each row of the columns, all different, and the digits that it is made of.
fn key(columns: &[Vec<i64>]) -> Option<(Vec<i64>, Vec<Digit>)> {
    let num_rows = columns.first()?.len();
    let mut key = vec![0_i64; num_rows];
    let mut chosen: Vec<Digit> = Vec::new();
    let mut num_keys = 1;
    while num_keys < num_rows {
        let extended = |column: &Vec<i64>| {
            let (&lo, &hi) = (column.iter().min()?, column.iter().max()?);
            let extent = hi.checked_sub(lo)?.checked_add(1)?;
            let digits = column.iter().zip(&key);
            let keys = digits.map(|(value, key)| key.checked_mul(extent)?.checked_add(value - lo));
            let keys = keys.collect::<Option<Vec<i64>>>()?;
            let distinct = keys.iter().collect::<HashSet<_>>().len();
            Some((distinct, keys, lo, extent))
        };
        // The one that tells most apart.
        let candidates = columns.iter().enumerate().filter_map(|it| Some((it.0, extended(it.1)?)));
        let best = candidates.max_by_key(|(place, it)| (it.0, std::cmp::Reverse(*place)))?;
        let (column, (distinct, keys, least, extent)) = best;
        if distinct == num_keys {
            return None;
        }
        for digit in &mut chosen {
            digit.stride = digit.stride.checked_mul(extent)?;
        }
        chosen.push(Digit { column, least, stride: 1 });
        (key, num_keys) = (keys, distinct);
    }
    Some((key, chosen))
}

#[cfg(test)]
mod tests {
    use super::super::tests::inverse_of;

    #[test]
    fn few_points() {
        for text in [
            "(d0) -> (d0 * d0), domain: d0 in [3, 3]",
            "(d0) -> (d0 * d0), domain: d0 in [0, 9]",
            "(d0) -> (d0 * d0 * d0 - d0), domain: d0 in [1, 12]",
            "(d0) -> ((d0 * d0) mod 11), domain: d0 in [0, 5]",
            "(d0, d1) -> (d0 * d1, d0 + d1), domain: d0 in [0, 3], d1 in [4, 7]",
            "(d0, d1) -> (d0 * d1), domain: d0 in [1, 99999], d1 in [99999, 999999], d0 * d1 in [0, 100001]",
            "(d0, d1, d2) -> (d0 * d0 + d1, d1, d2), domain: d0 in [0, 9], d1 in [0, 999], d2 in [-9, 9]",
            "(d0) -> (max(d0 * 10, d0 * 2 + 7) + min(d0 mod 2, d0 / 3)), domain: d0 in [0, 20]",
        ] {
            inverse_of(text);
        }
    }
}
