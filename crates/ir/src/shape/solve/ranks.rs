//! Decides whether some ranks satisfy all residuals.
//!
//! The rules of section 5 look at one equation at a time. `[b]@c = d@[e,g]` and `[a,b]@c = d@[g,f]` are possible
//! each, but `c` cannot have both one dimension more than `d` and as many. An equation between shapes is a linear
//! one between their ranks, which are natural numbers: whether those that share variables have a solution is a
//! question that [`crate::integer_program`] decides exactly. What would take too much work is left.

use std::collections::{BTreeMap, HashSet};

use super::together::only_values;
use super::{Failure, Mark, Reason, Relation, Solver};
use crate::integer_program::{Answer, Program, Row, Terms};
use crate::shape::{MAX_ITEMS, RankEquation, ShapeVar};

/// How much work the question about the ranks of connected residuals may be, in terms touched.
const MAX_RANK_WORK: usize = 1 << 16;

impl Solver {
    /// Checks the residuals since a mark, with those that share shape variables with them.
    pub(super) fn check_ranks(&mut self, since: Mark) -> Result<(), Failure> {
        let mut seen = HashSet::new();
        for id in self.stuck_since(since) {
            let is_asked = |relation: &Relation| matches!(relation, Relation::Shapes(..));
            let connected = self.connected([id], &mut seen, usize::MAX, false, is_asked);
            if !have_ranks(connected.values())
                && let Some(Relation::Shapes(left, right)) = connected.values().next_back()
            {
                let reason = Reason::Rank(left.clone(), right.clone());
                return self.contradiction(&connected, reason);
            }
        }
        Ok(())
    }

    /// Equates the variables that have only one possible rank with so many dimensions. Whether there are any.
    pub(super) fn find_ranks(&mut self, since: Mark) -> bool {
        let mut seen = HashSet::new();
        let mut is_new = false;
        for id in self.stuck_since(since) {
            let is_asked = |relation: &Relation| matches!(relation, Relation::Shapes(..));
            let connected = self.connected([id], &mut seen, usize::MAX, false, is_asked);
            let (program, columns) = ranks(connected.values());
            let found = only_values(program, columns.values().copied(), &mut { MAX_RANK_WORK });
            for (var, column) in columns {
                let rank = found.get(&column).and_then(|rank| usize::try_from(*rank).ok());
                if let Some(rank) = rank.filter(|rank| *rank <= MAX_ITEMS) {
                    is_new = true;
                    self.has_rank(&connected, var, rank);
                }
            }
        }
        is_new
    }
}

/// Whether some ranks satisfy all equations, or that is not decided.
fn have_ranks<'r>(residuals: impl Iterator<Item = &'r Relation>) -> bool {
    ranks(residuals).0.solve(&mut { MAX_RANK_WORK }) != Answer::Empty
}

/// What equations say about the ranks of their variables, and the columns of these.
fn ranks<'r>(residuals: impl Iterator<Item = &'r Relation>) -> (Program, BTreeMap<ShapeVar, u32>) {
    let mut program = Program::default();
    let mut columns: BTreeMap<ShapeVar, u32> = BTreeMap::new();
    for residual in residuals {
        let Relation::Shapes(left, right) = residual else { continue };
        let RankEquation { counts, num_dims, .. } = RankEquation::new(left, right);
        let mut terms = Terms::default();
        for (var, count) in counts {
            let next = columns.len() as u32;
            terms.push((*columns.entry(var).or_insert(next), i128::from(count)));
        }
        terms.sort_unstable();
        let value = Some(i128::from(num_dims));
        program.rows.push(Row { terms, lower: value, upper: value });
    }
    let natural = |column| Row { terms: vec![(column, 1)], lower: Some(0), upper: None };
    program.rows.extend((0..columns.len() as u32).map(natural));
    (program, columns)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::collections::BTreeSet;

    use super::super::Origin;
    use super::*;
    use crate::shape::{Dim, Item, Shape};

    const NUM_VARS: u32 = 3;
    /// The rank that each variable has at most.
    const MOST: usize = 3;

    fn any_shape() -> impl Strategy<Value = Shape> {
        let item = prop_oneof![
            1 => Just(Item::Dim(Dim::Constant(1))),
            2 => (0..NUM_VARS).prop_map(|var| Item::Var(ShapeVar(var))),
        ];
        prop::collection::vec(item, 0..6).prop_map(|items| items.into_iter().collect())
    }

    fn rank(shape: &Shape, ranks: &[usize]) -> usize {
        let item = |item: &Item| match item {
            Item::Dim(_) => 1,
            Item::Var(var) => ranks[var.0 as usize],
        };
        shape.items.iter().map(item).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Each variable has another one beside it that makes its rank at most [`MOST`].
        #[test]
        fn answers_are_those_of_enumeration(
            sides in prop::collection::vec([any_shape(), any_shape()], 1..4),
        ) {
            let bound = |var| {
                let both = [var, var + NUM_VARS].map(|var| Item::Var(ShapeVar(var)));
                [both.into_iter().collect(), Shape::dims((0..MOST).map(|_| Dim::Constant(1)))]
            };
            let bounds = (0..NUM_VARS).map(bound);
            let residuals = sides.iter().cloned().chain(bounds);
            let residuals: Vec<Relation> = residuals.map(|[a, b]| Relation::Shapes(a, b)).collect();
            let small = || 0..=MOST;
            let all = small().flat_map(|a| small().flat_map(move |b| small().map(move |c| [a, b, c])));
            let holds = |it: [usize; 3]| sides.iter().all(|[a, b]| rank(a, &it) == rank(b, &it));
            let solutions: Vec<[usize; 3]> = all.filter(|it| holds(*it)).collect();
            prop_assert_eq!(have_ranks(residuals.iter()), !solutions.is_empty());
            let (program, columns) = ranks(residuals.iter());
            let only = only_values(program, columns.values().copied(), &mut { MAX_RANK_WORK });
            for (place, var) in (0..NUM_VARS).map(ShapeVar).enumerate() {
                let ranks: BTreeSet<i128> = solutions.iter().map(|it| it[place] as i128).collect();
                let found = columns.get(&var).and_then(|column| only.get(column));
                prop_assert_eq!(found, ranks.first().filter(|_| ranks.len() == 1), "{:?}", var);
            }
        }
    }

    #[test]
    fn several_equations_contradict_each_other() {
        let solved = |equations: &[(&str, &str)]| {
            let (mut solver, _) = Solver::of_shapes(equations);
            solver.solve().and_then(|()| solver.settle(Mark::default(), 0))
        };
        let three = [("[b]@c", "d@[e,g]"), ("[a,b]@c", "d@[g,f]"), ("[x]@y", "z@[x,x]")];
        for equations in [three, [three[2], three[1], three[0]]] {
            let conflict = solved(&equations).unwrap_err();
            let core = equations.iter().enumerate().filter(|(_, it)| **it != three[2]);
            let core: Vec<Origin> = core.map(|(number, _)| number as Origin).collect();
            assert_eq!((conflict.core, conflict.minimal), (core, true));
        }
        assert!(solved(&[three[0], three[2]]).is_ok());
    }

    #[test]
    fn only_possible_ranks_are_found() {
        let found = |equations: &[(&str, &str)], name| {
            let (mut solver, mut names) = Solver::of_shapes(equations);
            solver.solve().unwrap();
            solver.settle(Mark::default(), 0).unwrap();
            solver.shown(&mut names, name)
        };
        let three = [("p@q", "[2,3]"), ("p@[3]", "[2]@q"), ("[x]@y", "z@[x,x]")];
        for equations in [three, [three[2], three[1], three[0]]] {
            assert_eq!(found(&equations, "p"), "[2]");
            assert_eq!(found(&equations, "q"), "[3]");
            assert_eq!(found(&equations, "y"), "y");
        }
    }
}
