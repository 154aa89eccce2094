//! Decides whether shapes of known rank can be split among their appended variables.
//!
//! `a@[5]@b = [3,4]` says nothing about `a`, but whatever its rank is, `5` would be another size. Where one side of
//! a residual has a known rank, its variables have finitely many ranks. They are tried, and what each of them means
//! is solved together with the residuals that share variables with it. A rank that is the same in all that is possible
//! is known: of `p@[3]@q = [2,3,4]`, `p` and `q` have one dimension.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::copy::Copy;
use super::{EquationId, Failure, Mark, Reason, Relation, Solver};
use crate::shape::{Dim, Item, RankEquation, Shape, ShapeVar};

/// How many residuals are looked at with each.
const MAX_CONNECTED: usize = 64;
/// How much work all questions of a definition may be, in equations solved.
const MAX_SPLIT_WORK: usize = 1 << 14;

/// Known dimensions, and a shape with variables that they are split among.
fn split(relation: &Relation) -> Option<(&Shape, &Shape)> {
    let Relation::Shapes(left, right) = relation else { return None };
    match (left.as_dims(), right.as_dims()) {
        (Some(_), None) => Some((left, right)),
        (None, Some(_)) => Some((right, left)),
        _ => None,
    }
}

impl Solver {
    /// Checks the residuals since a mark, with those that share variables with them, and equates the variables that
    /// have only one possible rank with so many dimensions. Whether there are any.
    pub(super) fn solve_splits(&mut self, since: Mark) -> Result<bool, Failure> {
        let mut work = MAX_SPLIT_WORK;
        let mut asked: HashSet<EquationId> = HashSet::new();
        let mut is_new = false;
        for id in self.stuck_since(since) {
            let relation = self.resolved(&self.equations[id as usize].relation.clone());
            if split(&relation).is_none() || asked.contains(&id) {
                continue;
            }
            let connected =
                self.connected([id], &mut HashSet::new(), MAX_CONNECTED, true, |_| true);
            if connected.len() < MAX_CONNECTED {
                asked.extend(connected.keys());
            }
            let residuals: Vec<Relation> = connected.values().cloned().collect();
            let Some(ranks) = self.only_splits(&residuals, &mut work) else {
                return self.contradiction(&connected, Reason::Sizes).map(|()| false);
            };
            for (var, rank) in ranks {
                is_new = true;
                self.has_rank(&connected, var, rank);
            }
        }
        Ok(is_new)
    }

    /// The variables that have the same rank wherever all conditions hold, as far as that is decided, and these ranks.
    /// `None` if the conditions do not hold for any ranks.
    fn only_splits(
        &self,
        residuals: &[Relation],
        work: &mut usize,
    ) -> Option<BTreeMap<ShapeVar, usize>> {
        let mut outer = Copy::new(self, residuals.iter().map(|it| self.vars(it)));
        let residuals: Vec<Relation> = residuals.iter().map(|it| outer.relation(it)).collect();
        let whole = &mut outer.to;
        let vars: BTreeSet<ShapeVar> = residuals.iter().flat_map(|it| whole.vars(it).0).collect();
        let mut parts: HashMap<ShapeVar, Vec<Dim>> = HashMap::new();
        let mut open: Vec<Vec<(ShapeVar, usize)>> = vec![Vec::new()];
        let mut found: Option<BTreeMap<ShapeVar, usize>> = None;
        while let Some(ranks) = open.pop() {
            *work = work.saturating_sub(residuals.len() + ranks.len());
            if *work == 0 {
                return Some(BTreeMap::new());
            }
            let tried = ranks.iter().map(|(var, rank)| {
                let dims = parts[var][..*rank].iter().cloned();
                Relation::Shapes(Shape::var(*var), Shape::dims(dims))
            });
            let all: Vec<Relation> = residuals.iter().cloned().chain(tried).collect();
            let mut copy = Copy::new(whole, all.iter().map(|it| whole.vars(it)));
            for relation in &all {
                copy.to.given(copy.relation(relation), 0);
            }
            let next = match copy.to.next_split() {
                Err((_, Reason::Arithmetic(_))) => return Some(BTreeMap::new()),
                Err(_) => continue,
                Ok(next) => next.map(|it| copy.original(&it)),
            };
            let sides = next.as_ref().and_then(split);
            let Some((known, others)) = sides else {
                let rank = |var: &ShapeVar| {
                    Some((*var, copy.resolved_shape(&Shape::var(*var)).as_dims()?.len()))
                };
                let ranks: BTreeMap<ShapeVar, usize> = vars.iter().filter_map(rank).collect();
                let same = found.get_or_insert_with(|| ranks.clone());
                same.retain(|var, rank| ranks.get(var) == Some(rank));
                if same.is_empty() {
                    break;
                }
                continue;
            };
            let is_var = |item: &Item| match item {
                Item::Var(var) => Some(*var),
                Item::Dim(_) => None,
            };
            let Some(var) = others.items.iter().find_map(is_var) else { continue };
            let RankEquation { counts, num_dims, .. } = RankEquation::new(known, others);
            let most = counts.get(&var).and_then(|count| num_dims.checked_div(*count));
            let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(0);
            let dims = parts.entry(var).or_default();
            while dims.len() < most {
                dims.push(Dim::Var(whole.dim_var(0)));
            }
            let extended = |rank| ranks.iter().copied().chain([(var, rank)]).collect();
            open.extend((0..=most).rev().map(extended));
        }
        let original =
            |(var, rank)| Some((*outer.original_vars((vec![var], vec![])).0.first()?, rank));
        found.map(|same| same.into_iter().filter_map(original).collect())
    }

    /// Solves the equations, then the residual of which the fewest dimensions are to be split.
    fn next_split(&mut self) -> Result<Option<Relation>, Failure> {
        let left = self.checked()?;
        let num_known = |relation: &Relation| split(relation).map(|(known, _)| known.items.len());
        Ok(left.into_iter().filter(|it| split(it).is_some()).min_by_key(num_known))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shape::DimVar;

    const NUM_VARS: u32 = 3;
    const NUM_SIZES: i64 = 2;

    /// A size as a number: a variable, or a constant.
    fn dim(number: i64) -> Item {
        Item::Dim(match number {
            1..=NUM_SIZES => Dim::Constant(number),
            _ => Dim::Var(DimVar(0)),
        })
    }

    fn any_side() -> impl Strategy<Value = Shape> {
        let item = prop_oneof![
            1 => (0..=NUM_SIZES).prop_map(dim),
            2 => (0..NUM_VARS).prop_map(|var| Item::Var(ShapeVar(var))),
        ];
        prop::collection::vec(item, 1..5).prop_map(|items| items.into_iter().collect())
    }

    fn any_known() -> impl Strategy<Value = Shape> {
        prop::collection::vec((0..=NUM_SIZES).prop_map(dim), 0..4)
            .prop_map(|items| items.into_iter().collect())
    }

    /// The sizes that variables stand for.
    type Values = [Option<Vec<i64>>; NUM_VARS as usize];

    /// Visits all values of variables for which sizes are those of a shape.
    fn fits(
        items: &[Item],
        sizes: &[i64],
        values: &mut Values,
        size: i64,
        found: &mut dyn FnMut(&Values),
    ) {
        let Some((first, rest)) = items.split_first() else {
            if sizes.is_empty() {
                found(values);
            }
            return;
        };
        let var = match first {
            Item::Dim(dim) => {
                let value = if let Dim::Constant(value) = dim { *value } else { size };
                if sizes.first() == Some(&value) {
                    fits(rest, &sizes[1..], values, size, found);
                }
                return;
            }
            Item::Var(var) => var.0 as usize,
        };
        if let Some(value) = values[var].clone() {
            if sizes.starts_with(&value) {
                fits(rest, &sizes[value.len()..], values, size, found);
            }
            return;
        }
        for rank in 0..=sizes.len() {
            values[var] = Some(sizes[..rank].to_vec());
            fits(rest, &sizes[rank..], values, size, found);
        }
        values[var] = None;
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// All equations are asked as one, `first@second = known`, with a separator between them.
        #[test]
        fn answers_are_those_of_enumeration(
            equations in prop::collection::vec((any_side(), any_known()), 1..4),
        ) {
            let mut solver = Solver::new();
            solver.dim_var(0);
            (0..NUM_VARS).for_each(|_| _ = solver.shape_var(0));
            let relations: Vec<Relation> =
                equations.iter().map(|(a, b)| Relation::Shapes(a.clone(), b.clone())).collect();
            const SEPARATOR: i64 = 100;
            let (mut items, mut known) = (Vec::new(), Vec::new());
            for (side, dims) in &equations {
                items.extend(side.items.iter().cloned());
                items.push(Item::Dim(Dim::Constant(SEPARATOR)));
                known.extend(dims.items.iter().cloned());
                known.push(Item::Dim(Dim::Constant(SEPARATOR)));
            }
            let mut possible: Vec<Vec<Option<usize>>> = Vec::new();
            for size in 1..=NUM_SIZES + 1 {
                let value = |item: &Item| match item {
                    Item::Dim(Dim::Constant(value)) => *value,
                    _ => size,
                };
                let sizes: Vec<i64> = known.iter().map(value).collect();
                fits(&items, &sizes, &mut [None, None, None], size, &mut |values| {
                    let ranks = values.iter().map(|it| it.as_ref().map(Vec::len));
                    possible.push(ranks.collect());
                });
            }
            let found = solver.only_splits(&relations, &mut { MAX_SPLIT_WORK });
            prop_assert_eq!(found.is_some(), !possible.is_empty());
            for (var, only) in found.iter().flatten() {
                prop_assert!(possible.iter().all(|ranks| ranks[var.0 as usize] == Some(*only)));
            }
            for var in 0..NUM_VARS {
                let ranks: BTreeSet<Option<usize>> =
                    possible.iter().map(|ranks| ranks[var as usize]).collect();
                let is_only = ranks.len() == 1 && !ranks.contains(&None);
                let is_found = found.as_ref().is_some_and(|it| it.contains_key(&ShapeVar(var)));
                prop_assert_eq!(is_found, is_only);
            }
        }
    }

    #[test]
    fn shapes_that_cannot_be_split_are_refused() {
        let refused = |equations: &[(&str, &str)]| {
            let (mut solver, _) = Solver::of_shapes(equations);
            solver.solve().and_then(|()| solver.settle(Mark::default(), 0)).map_err(|it| it.core)
        };
        assert_eq!(refused(&[("a@[5]@b", "[3,4]")]), Err(vec![0]));
        assert_eq!(refused(&[("a@[4]@b", "[3,4]")]), Ok(()));
        assert_eq!(refused(&[("a@b", "[3,4]"), ("b@a", "[4,2]")]), Err(vec![0, 1]));
        assert_eq!(refused(&[("a@b", "[3,4]"), ("p@q", "[2]"), ("b@a", "[4,3]")]), Ok(()));
        let three = [("a@[n]@b", "[3,4]"), ("[n + m]", "[3]"), ("p@q", "[n,m]")];
        for equations in [three, [three[1], three[0], three[2]]] {
            assert_eq!(refused(&equations), Err(vec![0, 1]));
        }
    }

    #[test]
    fn only_possible_splits_are_found() {
        let found = |equations: &[(&str, &str)]| {
            let (mut solver, mut names) = Solver::of_shapes(equations);
            solver.solve().and_then(|()| solver.settle(Mark::default(), 0)).unwrap();
            ["p", "q"].map(|name| solver.shown(&mut names, name))
        };
        assert_eq!(found(&[("p@[3]@q", "[2,3,4]")]), ["[2]", "[4]"]);
        assert_eq!(found(&[("p@[3]@q", "[3,3,4]")]), ["p", "q"]);
        for equations in
            [[("p@q", "[2,3]"), ("q@p", "[3,2]")], [("q@p", "[3,2]"), ("p@q", "[2,3]")]]
        {
            assert_eq!(found(&equations), ["[2]", "[3]"]);
        }
        assert_eq!(found(&[("p@q", "[2,2]"), ("q@p", "[2,2]")]), ["p", "q"]);
    }
}
