//! Decides whether equations are consistent with the existing ones.
//!
//! They are solved in a copy, and of the residuals only those with them that the rules may change then:
//! - where more is known about a variable;
//! - where another condition that is new, or more is known about, has a side in common, rewrites it, or is rewritten
//!   by it.
//!
//! Then it is the turn of those that these change. So what one of many connected residuals is asked costs what
//! follows from the answer, and not the number of them.

use std::collections::HashSet;

use super::copy::Copy;
use super::together::Connected;
use super::{EquationId, Mark, Relation, Solver};
use crate::shape::{Dim, DimVar, Shape, ShapeVar};

/// How many residuals are looked at.
const MAX_NEIGHBOURS: usize = 256;

/// The variables of a condition, or of what it rewrites others with.
type Vars = (Vec<ShapeVar>, Vec<DimVar>);

/// What is known in a copy that the residuals of the original do not say.
#[derive(Default)]
struct News {
    /// Variables that have a value.
    bound: Vars,
    /// Their values, and residuals.
    relations: Vec<Relation>,
    /// What is rewritten by residuals.
    patterns: Vec<Vars>,
}

impl Solver {
    /// Whether resolved equations can hold beside the residuals. Variables that are not in the solver are new.
    pub(super) fn are_consistent(&mut self, equations: &[Relation]) -> bool {
        let mut seen = HashSet::new();
        let mut neighbours = Connected::default();
        loop {
            let all = equations.iter().chain(neighbours.values());
            let mut copy = Copy::new(self, all.map(|relation| self.vars(relation)));
            for relation in equations {
                copy.to.given(copy.relation(relation), 0);
            }
            let first = copy.to.mark();
            for relation in neighbours.values() {
                copy.to.given(copy.relation(relation), 0);
            }
            let known = first.equations..copy.to.equations.len();
            if copy.to.run().is_err() {
                return false;
            }
            let mut start = self.concerned(&copy.news(|id| known.contains(&(id as usize))));
            let mut distinct = HashSet::new();
            start.retain(|id| !seen.contains(id) && distinct.insert(*id));
            // At least twice as many as before, so that there are few rounds.
            let limit = start.len().max(neighbours.len());
            let limit = limit.min(MAX_NEIGHBOURS - neighbours.len());
            if start.is_empty() || limit == 0 {
                return copy.to.solve_together(Mark::default()).is_ok();
            }
            neighbours.extend(self.connected(start, &mut seen, limit, true, |_| true));
        }
    }

    /// The residuals that news may change, in the order of what they have to do with.
    fn concerned(&mut self, news: &News) -> Vec<EquationId> {
        let shapes = news.bound.0.iter().filter_map(|var| self.shapes.get(var.0 as usize));
        let dims = news.bound.1.iter().filter_map(|var| self.dims.get(var.0 as usize));
        let waiting = shapes.map(|it| &it.waiting).chain(dims.map(|it| &it.waiting));
        let mut concerned: Vec<EquationId> = waiting.flat_map(|ids| self.stuck_of(ids)).collect();
        for relation in &news.relations {
            concerned.extend(self.beside(relation));
            let vars = self.vars(relation);
            let dim_rules = self.dim_rules.iter().map(|rule| (&rule.vars, rule.equation));
            let shape_rules = self.shape_rules.iter().map(|rule| (&rule.vars, rule.equation));
            let rules = dim_rules.chain(shape_rules);
            concerned.extend(rules.filter(|(it, _)| contains(&vars, it)).map(|(_, id)| id));
        }
        for vars in &news.patterns {
            let shape = vars.0.first().and_then(|var| self.shapes.get(var.0 as usize));
            let dim = vars.1.first().and_then(|var| self.dims.get(var.0 as usize));
            let waiting = shape.map(|it| &it.waiting).or(dim.map(|it| &it.waiting));
            let ids = waiting.into_iter().flat_map(|ids| self.stuck_of(ids));
            for id in ids.collect::<Vec<_>>() {
                let relation = self.resolved(&self.equations[id as usize].relation.clone());
                if contains(&self.vars(&relation), vars) {
                    concerned.push(id);
                }
            }
        }
        concerned
    }
}

/// Whether the variables of one thing are among those of another one. Both are sorted.
fn contains(all: &Vars, some: &Vars) -> bool {
    some.0.iter().all(|var| all.0.binary_search(var).is_ok())
        && some.1.iter().all(|var| all.1.binary_search(var).is_ok())
}

impl Copy {
    /// What is known but for residuals that are as they were given, in terms of the original.
    fn news(&mut self, is_given: impl Fn(EquationId) -> bool) -> News {
        let mut news = News::default();
        for number in 0..self.to.shapes.len() {
            let var = ShapeVar(number as u32);
            if self.to.shapes[number].value.is_some() {
                news.bound.0.push(var);
                let value = Relation::Shapes(Shape::var(var), Shape::default());
                news.relations.push(self.to.resolved(&value));
            }
        }
        for number in 0..self.to.dims.len() {
            let var = DimVar(number as u32);
            if self.to.dims[number].value.is_some() {
                news.bound.1.push(var);
                news.relations.push(self.to.resolved(&Relation::Positive(Dim::Var(var))));
            }
        }
        let mut is_new = HashSet::new();
        for id in self.to.stuck_since(Mark::default()) {
            let relation = self.to.equations[id as usize].relation.clone();
            let resolved = self.to.resolved(&relation);
            if !is_given(id) || resolved != relation {
                news.relations.push(resolved);
                is_new.insert(id);
            }
        }
        let dim_rules = self.to.dim_rules.iter().map(|rule| (&rule.vars, rule.equation));
        let shape_rules = self.to.shape_rules.iter().map(|rule| (&rule.vars, rule.equation));
        let new = dim_rules.chain(shape_rules).filter(|(_, id)| is_new.contains(id));
        news.patterns.extend(new.map(|(vars, _)| vars.clone()));
        self.original_news(news)
    }

    fn original_news(&self, news: News) -> News {
        let relations = news.relations.iter().map(|it| self.original(it)).collect();
        let vars = |vars: Vars| self.original_vars(vars);
        let patterns = news.patterns.into_iter().map(vars).collect();
        News { bound: self.original_vars(news.bound), relations, patterns }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shape::{DimOp, Item};

    const NUM_SHAPES: u32 = 4;
    const NUM_DIMS: u32 = 3;

    /// A shape whose dimensions are numbered, the variables among them or sums of two.
    type Numbered = Vec<(u32, u32, u32)>;

    fn any_shape() -> impl Strategy<Value = Numbered> {
        prop::collection::vec((0..5_u32, 0..NUM_SHAPES, 0..NUM_DIMS), 0..5)
    }

    fn shape(solver: &Solver, numbered: &Numbered) -> Shape {
        let item = |&(kind, a, b): &(u32, u32, u32)| match kind {
            0..=1 => Item::Var(ShapeVar(a)),
            2 => Item::Dim(Dim::Constant(1 + i64::from(b))),
            3 => Item::Dim(Dim::Var(DimVar(b))),
            _ => {
                let [a, b] = [a % NUM_DIMS, b].map(|number| Dim::Var(DimVar(number)));
                Item::Dim(solver.arithmetic().apply(DimOp::Add, &a, &b).expect("small"))
            }
        };
        numbered.iter().map(item).collect()
    }

    fn solved(system: &[[Numbered; 2]]) -> Option<Solver> {
        let mut solver = Solver::new();
        (0..NUM_DIMS).for_each(|_| _ = solver.dim_var(0));
        (0..NUM_SHAPES).for_each(|_| _ = solver.shape_var(0));
        for sides in system {
            let [left, right] = sides.each_ref().map(|side| shape(&solver, side));
            solver.equate_shapes(left, right, 0);
        }
        solver.solve().ok().map(|()| solver)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// Equations that contradict those before them are left out.
        #[test]
        fn answers_are_those_of_all_residuals(
            system in prop::collection::vec([any_shape(), any_shape()], 1..6),
            equation in [any_shape(), any_shape()],
        ) {
            let mut kept: Vec<[Numbered; 2]> = Vec::new();
            for sides in system {
                kept.push(sides);
                if solved(&kept).is_none() {
                    kept.pop();
                }
            }
            let mut solver = solved(&kept).expect("they were solved");
            let [left, right] = equation.map(|side| shape(&solver, &side));
            let equation = Relation::Shapes(solver.resolved_shape(&left), solver.resolved_shape(&right));
            let mut all = vec![equation.clone()];
            for id in solver.stuck_since(Mark::default()) {
                let relation = solver.equations[id as usize].relation.clone();
                all.push(solver.resolved(&relation));
            }
            let mut copy = Copy::new(&solver, all.iter().map(|relation| solver.vars(relation)));
            all.iter().for_each(|relation| _ = copy.to.given(copy.relation(relation), 0));
            let mut expected = copy.to.run().is_ok();
            let are_consistent = solver.are_consistent(&[equation]);
            if !are_consistent {
                // In another order the rules may miss what they say together.
                expected = expected && copy.to.solve_together(Mark::default()).is_ok();
            }
            prop_assert_eq!(are_consistent, expected, "{:?}", all);
        }
    }
}
