//! Whether shapes of known rank can be split among the variables that are appended to them.
//!
//! `a@[5]@b = [3,4]` says nothing about `a`, but whatever its rank is, `5` would be another size. Where one side of
//! a residual has a known rank, its variables have finitely many ranks. They are tried, and what each of them means
//! is solved together with the residuals that share variables with it.

use std::collections::{HashMap, HashSet};

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
    /// Checks the residuals since a mark, with those that share variables with them.
    pub(super) fn check_splits(&mut self, since: Mark) -> Result<(), Failure> {
        let mut work = MAX_SPLIT_WORK;
        let mut asked: HashSet<EquationId> = HashSet::new();
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
            if !self.have_splits(&residuals, &mut work) {
                return self.contradiction(&connected, Reason::Sizes);
            }
        }
        Ok(())
    }

    /// Whether some ranks of variables allow all conditions, or that is not decided.
    fn have_splits(&self, residuals: &[Relation], work: &mut usize) -> bool {
        let whole = Copy::new(self, residuals.iter().map(|it| self.vars(it)));
        let residuals: Vec<Relation> = residuals.iter().map(|it| whole.relation(it)).collect();
        let mut whole = whole.to;
        let mut parts: HashMap<ShapeVar, Vec<Dim>> = HashMap::new();
        let mut open: Vec<Vec<(ShapeVar, usize)>> = vec![Vec::new()];
        while let Some(ranks) = open.pop() {
            *work = work.saturating_sub(residuals.len() + ranks.len());
            if *work == 0 {
                return true;
            }
            let tried = ranks.iter().map(|(var, rank)| {
                let dims = parts[var][..*rank].iter().cloned();
                Relation::Shapes(Shape::var(*var), Shape::dims(dims))
            });
            let all: Vec<Relation> = residuals.iter().cloned().chain(tried).collect();
            let mut copy = Copy::new(&whole, all.iter().map(|it| whole.vars(it)));
            for relation in &all {
                copy.to.given(copy.relation(relation), 0);
            }
            let next = match copy.to.next_split() {
                Err((_, Reason::Arithmetic(_))) => return true,
                Err(_) => continue,
                Ok(None) => return true,
                Ok(Some(next)) => copy.original(&next),
            };
            let Some((known, others)) = split(&next) else { return true };
            let is_var = |item: &Item| match item {
                Item::Var(var) => Some(*var),
                Item::Dim(_) => None,
            };
            let Some(var) = others.items.iter().find_map(is_var) else { return true };
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
        false
    }

    /// Solves the equations, then the residual of which the fewest dimensions are to be split.
    fn next_split(&mut self) -> Result<Option<Relation>, Failure> {
        self.run()?;
        self.check_ranks(Mark::default())?;
        self.check_sizes(Mark::default())?;
        let stuck = self.stuck_since(Mark::default()).into_iter();
        let all: Vec<Relation> =
            stuck.map(|id| self.resolved(&self.equations[id as usize].relation.clone())).collect();
        let num_known = |relation: &Relation| split(relation).map(|(known, _)| known.items.len());
        Ok(all.into_iter().filter(|it| split(it).is_some()).min_by_key(num_known))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Origin;
    use super::*;
    use crate::shape::DimVar;
    use crate::shape::text::Names;

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

    /// Whether sizes begin like a shape whose variables stand for some sizes, and the same for what follows.
    fn fits(items: &[Item], sizes: &[i64], values: &mut [Option<Vec<i64>>; 3], size: i64) -> bool {
        let Some((first, rest)) = items.split_first() else { return sizes.is_empty() };
        let var = match first {
            Item::Dim(dim) => {
                let value = if let Dim::Constant(value) = dim { *value } else { size };
                return sizes.first() == Some(&value) && fits(rest, &sizes[1..], values, size);
            }
            Item::Var(var) => var.0 as usize,
        };
        if let Some(value) = values[var].clone() {
            return sizes.starts_with(&value) && fits(rest, &sizes[value.len()..], values, size);
        }
        let found = (0..=sizes.len()).any(|rank| {
            values[var] = Some(sizes[..rank].to_vec());
            fits(rest, &sizes[rank..], values, size)
        });
        if !found {
            values[var] = None;
        }
        found
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
            let any = (1..=NUM_SIZES + 1).any(|size| {
                let value = |item: &Item| match item {
                    Item::Dim(Dim::Constant(value)) => *value,
                    _ => size,
                };
                let sizes: Vec<i64> = known.iter().map(value).collect();
                fits(&items, &sizes, &mut [None, None, None], size)
            });
            prop_assert_eq!(solver.have_splits(&relations, &mut { MAX_SPLIT_WORK }), any);
        }
    }

    #[test]
    fn shapes_that_cannot_be_split_are_refused() {
        let refused = |equations: &[(&str, &str)]| {
            let (mut solver, mut names) = (Solver::new(), Names::default());
            for (number, (left, right)) in equations.iter().enumerate() {
                let [left, right] =
                    [left, right].map(|text| names.shape(&mut solver, text).unwrap());
                solver.equate_shapes(left, right, number as Origin);
            }
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
}
