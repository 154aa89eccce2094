//! Unknowns with few values: their equations are tables.
//!
//! Where the unknowns of some equations and constraints have few points together, and the left sides tell these apart,
//! each unknown is a function of the values, of which all pairs are known. It is written as a sum over
//! the pieces between its breakpoints: in each, `x` changes by `dx` with every `dz` of the value, which is
//! `dx * ((min(max(z, a), b) - a) floordiv dz)`. Several values are one number in mixed radix.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::Solver;
use super::monotone::{Sum, Unit};
use crate::evaluator::MapEvaluator;
use crate::expr::{Expr, Node, Var};
use crate::interval::Interval;
use crate::map::{Constraint, IndexingMap, Variable};
use crate::search::search;

/// How large a table may be.
#[derive(Copy, Clone)]
pub(super) struct TableSize {
    /// The most points of the unknowns.
    points: usize,
    /// The most pieces that an unknown is written in.
    pieces: usize,
}

impl TableSize {
    /// Of solutions that are no longer than others.
    pub(super) const SMALL: Self = Self { points: 1 << 10, pieces: 32 };
    /// Of those where there is no other.
    pub(super) const LARGE: Self = Self { points: 1 << 12, pieces: 1 << 12 };
}

/// The most equations that are looked at for one table.
const MAX_FACTS: usize = 64;

/// An expression over variables, and what it equals.
#[derive(Clone)]
struct Fact {
    expr: Expr,
    value: Expr,
    vars: BTreeSet<Var>,
}

/// What a table is made for: variables, some of which stand for remainders.
struct Unknowns<'r> {
    remainders: &'r BTreeMap<Var, (Expr, Interval)>,
    vars: Vec<Var>,
}

impl Solver<'_> {
    /// Solves variables and remainders of which few values are possible by what is known of them.
    pub(super) fn tabulate(&mut self) {
        let ctx = self.ctx;
        let mut facts = self.facts();
        let remainders = self.remainders(&mut facts);
        let is_solved = |solver: &Self, var: Var| {
            !remainders.contains_key(&var) && solver.solved(var).is_some()
        };
        let is_dim = |var: &Var| matches!(var, Var::Dim(_));
        let restricted = self.map.constraints.iter().map(|it| ctx.vars(it.expr));
        let restricted: Vec<BTreeSet<Var>> =
            restricted.filter(|it| it.iter().all(is_dim)).collect();
        // Sets of variables that occur together.
        let links = || facts.iter().map(|it| &it.vars).chain(&restricted);
        let unsolved = links().flatten().copied();
        let unsolved: BTreeSet<Var> = unsolved.filter(|&var| !is_solved(self, var)).collect();
        let mut sets: BTreeSet<BTreeSet<Var>> =
            unsolved.iter().map(|&var| BTreeSet::from([var])).collect();
        sets.extend(components(links(), &unsolved));
        for vars in sets {
            if self.work.spend(facts.len() + self.map.constraints.len()).is_none() {
                return;
            }
            let mut these =
                Unknowns { remainders: &remainders, vars: vars.iter().copied().collect() };
            let of_these = facts.iter().filter(|fact| fact.vars.is_subset(&vars));
            let of_these: Vec<Fact> = of_these.take(MAX_FACTS).cloned().collect();
            if vars.iter().any(|&var| is_solved(self, var))
                || self.tabulate_these(&these, &of_these).is_some()
            {
                continue;
            }
            // What depends on solved variables, too: these are known by themselves.
            let is_about = |of: &&BTreeSet<Var>| {
                !of.is_disjoint(&vars) && of.difference(&vars).all(|&var| is_solved(self, var))
            };
            let wider = facts.iter().filter(|fact| is_about(&&fact.vars));
            let mut wider: Vec<Fact> = wider.cloned().collect();
            let all: BTreeSet<Var> = links().filter(is_about).flatten().copied().collect();
            for &var in all.difference(&vars) {
                let value = self.solved(var);
                let fact = |value| Fact { expr: ctx.var(var), value, vars: BTreeSet::from([var]) };
                wider.extend(value.map(fact));
            }
            these.vars = all.into_iter().collect();
            if these.vars.len() != vars.len() && wider.len() <= MAX_FACTS {
                self.tabulate_these(&these, &wider);
            }
        }
    }

    /// What is known of expressions over variables.
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
        let facts =
            found.into_iter().map(|(expr, value)| Fact { expr, value, vars: ctx.vars(expr) });
        let is_dim = |var: &Var| matches!(var, Var::Dim(_));
        facts.filter(|it| !it.vars.is_empty() && it.vars.iter().all(is_dim)).collect()
    }

    /// Adds the facts that depend on one remainder alone, with a new variable for it.
    fn remainders(&self, facts: &mut Vec<Fact>) -> BTreeMap<Var, (Expr, Interval)> {
        let ctx = self.ctx;
        let mut vars: BTreeMap<Expr, Var> = BTreeMap::new();
        let mut intervals = BTreeMap::new();
        let mut added = Vec::new();
        for fact in facts.iter().take(MAX_FACTS) {
            let parts = ctx.topological(&[fact.expr]);
            for &part in &parts {
                let Node::Mod(number, modulus) = ctx.node(part) else { continue };
                let Some(modulus) = ctx.as_constant(modulus).filter(|&modulus| 0 < modulus) else {
                    continue;
                };
                if part == fact.expr || ctx.as_var(number).is_some() {
                    continue;
                }
                let unit = Unit::of(ctx, part);
                let unit = unit.unwrap_or(Unit { term: part, scale: 1, offset: 0 });
                if self.known.contains_key(&unit.term) {
                    continue;
                }
                let next =
                    u32::try_from(vars.len()).ok().and_then(|len| (u32::MAX - 1).checked_sub(len));
                let Some(next) = next.map(Var::Dim) else { continue };
                let var = *vars.entry(unit.term).or_insert(next);
                let largest = (modulus / unit.scale).saturating_sub(1);
                intervals.insert(var, (unit.term, Interval::new(0, largest)));
                let whole = ctx.mul(ctx.var(var), ctx.constant(unit.scale));
                let whole = ctx.add(whole, ctx.constant(unit.offset));
                // They are sorted and made again.
                if self.work.spend(4 * parts.len()).is_none() {
                    return intervals;
                }
                let expr = ctx.replace(fact.expr, part, whole);
                let vars = BTreeSet::from([var]);
                if ctx.vars(expr) == vars {
                    added.push(Fact { expr, value: fact.value, vars });
                }
            }
        }
        facts.extend(added);
        intervals
    }

    fn tabulate_these(&mut self, these: &Unknowns, facts: &[Fact]) -> Option<()> {
        let ctx = self.ctx;
        let Unknowns { remainders, vars } = these;
        // Nothing tells values apart.
        if facts.is_empty() {
            return None;
        }
        let renumbered = |expr: Expr| {
            ctx.substitute(expr, &|var| Some(ctx.dim((0..).zip(vars).find(|it| *it.1 == var)?.0)))
        };
        let expr_of = |var: &Var| remainders.get(var).map_or(ctx.var(*var), |it| it.0);
        let mut interval_of = |var: &Var| match remainders.get(var) {
            Some(&(_, interval)) => interval,
            None => self.simplifier.interval_of(ctx.var(*var)),
        };
        let intervals: Vec<Interval> = vars.iter().map(&mut interval_of).collect();
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
        let found = search(ctx, &part, self.tables.points + 1);
        let points = found.points;
        let roots = part.results.iter().copied().chain(part.constraints.iter().map(|it| it.expr));
        let num_exprs = ctx.topological(&roots.collect::<Vec<_>>()).len();
        let evaluated = points.len().saturating_mul(num_exprs);
        self.work.spend(evaluated.saturating_add(found.work as usize))?;
        if !found.are_all || points.is_empty() || self.tables.points < points.len() {
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
        for (expr, solution) in vars.iter().map(expr_of).zip(solutions) {
            if !self.known.contains_key(&expr) {
                self.learn(expr, solution);
            }
        }
        Some(())
    }

    /// The function of `z` with these values, in the order of `z`. `None` on overflow, or if it has too many
    /// pieces.
    fn interpolated(&self, z: Expr, pairs: &[(i64, i64)]) -> Option<Expr> {
        let (&(first, start), &(last, _)) = (pairs.first()?, pairs.last()?);
        let mut pieces = Vec::new();
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
            if self.tables.pieces <= pieces.len() {
                return None;
            }
            let from = (*from != first).then_some(*from);
            pieces.push(Piece { from, to: (end.0 != last).then_some(end.0), dz, dx });
        }
        Some(self.sum_of_pieces(z, (first, start), &pieces))
    }

    /// `x` as a sum over what it changes by in each piece, where it is `start.1` at `z == start.0`.
    pub(super) fn sum_of_pieces(&self, z: Expr, start: (i64, i64), pieces: &[Piece]) -> Expr {
        let ctx = self.ctx;
        let mut sum = ctx.constant(start.1);
        for piece in pieces {
            let from = piece.from.unwrap_or(start.0);
            let mut above = ctx.sub(z, ctx.constant(from));
            if piece.from.is_some() {
                above = ctx.max(above, ctx.constant(0));
            }
            if let Some(to) = piece.to {
                above = ctx.min(above, ctx.sub(ctx.constant(to), ctx.constant(from)));
            }
            let steps = ctx.floor_div(above, ctx.constant(piece.dz));
            sum = ctx.add(sum, ctx.mul(steps, ctx.constant(piece.dx)));
        }
        sum
    }
}

/// A part of a function of `z` in which `x` changes by `dx` with every `dz`.
pub(super) struct Piece {
    /// Where it begins, if it is not the first, and ends, if it is not the last.
    pub(super) from: Option<i64>,
    pub(super) to: Option<i64>,
    pub(super) dz: i64,
    pub(super) dx: i64,
}

/// The sets of unsolved variables that occur together.
fn components<'v>(
    links: impl Iterator<Item = &'v BTreeSet<Var>>,
    unsolved: &BTreeSet<Var>,
) -> Vec<BTreeSet<Var>> {
    let mut sets: Vec<BTreeSet<Var>> = Vec::new();
    for link in links {
        let mut whole: BTreeSet<Var> = link.intersection(unsolved).copied().collect();
        if whole.is_empty() {
            continue;
        }
        sets.retain_mut(|set| {
            let is_apart = set.is_disjoint(&whole);
            if !is_apart {
                if whole.len() < set.len() {
                    std::mem::swap(set, &mut whole);
                }
                whole.extend(&*set);
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
            "(d0) -> (d0 * d0), domain: d0 in [0, 99]",
            "(d0) -> ((d0 * d0 * 7) mod 401), domain: d0 in [-150, -1]",
            "(d0, d1) -> (d0 * d1, d0 + d1), domain: d0 in [0, 11], d1 in [0, 11], d1 - d0 in [0, 11]",
            "(d0) -> (d0 * d0 * d0 - d0), domain: d0 in [1, 12]",
            "(d0) -> ((d0 * d0) mod 11), domain: d0 in [0, 5]",
            "(d0, d1) -> (d0 * d1, d0 + d1), domain: d0 in [0, 3], d1 in [4, 7]",
            "(d0, d1) -> (d0 * d1), domain: d0 in [1, 99999], d1 in [99999, 999999], d0 * d1 in [0, 100001]",
            "(d0, d1, d2) -> (d0 * d0 + d1, d1, d2), domain: d0 in [0, 9], d1 in [0, 999], d2 in [-9, 9]",
            "(d0, d1) -> ((((d0 + d1 * 3) mod 4) * 5) / 2, d1 mod 5, d1 mod 6), domain: d0 in [0, 3], d1 in [0, 5]",
            "(d0, d1) -> ((d1 - d0) mod 4 + ((d1 - d0) mod 4 - 2) / 2, d0), domain: d0 in [0, 5000], d1 in [0, 3]",
            "(d0) -> (max(d0 * 10, d0 * 2 + 7) + min(d0 mod 2, d0 / 3)), domain: d0 in [0, 20]",
            "(d0, d1) -> (d0), domain: d0 in [2, 9], d1 in [1, 9], d0 * d1 in [10, 11]",
            "(d0, d1, d2) -> (d0), domain: d0 in [1, 5], d1 in [1, 9], d2 in [0, 3], d1 * d1 - d0 in [0, 1], \
             d1 * d2 * d0 in [8, 9]",
        ] {
            inverse_of(text);
        }
    }

    #[test]
    fn digits_come_before_large_tables() {
        for text in [
            "(d0, d1) -> ((d0 / 8) * 64 + (d1 / 8) * 512 + (d1 mod 8) * 8 + d0 mod 8), domain: \
             d0 in [0, 63], d1 in [0, 63]",
            "(d0) -> ((d0 / 8) * 8 + 7 - d0 mod 8), domain: d0 in [0, 1023]",
            "(d0) -> ((d0 / 4) * 10 + d0 mod 4), domain: d0 in [0, 399]",
            "(d0) -> (d0 * 3 + (d0 / 5) * 2), domain: d0 in [0, 1000]",
        ] {
            let inverse = inverse_of(text);
            assert!(inverse.len() < 200, "{inverse}");
        }
    }
}
