//! Why equations have no solution: what they were made for, none of which can be left out.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::copy::Copy;
use super::{Conflict, EquationId, Origin, Reason, Relation, Solver, State};
use crate::shape::{Dim, DimError, DimVar, Item, Shape};

/// How much work may go into making a set of conflicting equations minimal, in equations solved.
const MAX_EXPLANATION_WORK: usize = 1 << 19;

impl Solver {
    pub(super) fn conflict(&mut self, id: EquationId, reason: Reason) -> Conflict {
        let given = self.ancestor(id);
        let relation = match self.equations[given as usize].relation.clone() {
            // It says what is compared.
            positive @ Relation::Positive(_) => positive,
            relation => self.resolved(&relation),
        };
        let (core, minimal) = match reason {
            // No contradiction: what is too large follows from each of many places.
            Reason::Arithmetic(DimError::Overflow | DimError::TooLarge) => {
                (self.direct_causes(id), true)
            }
            _ => self.core(id),
        };
        self.equations[given as usize].state = State::Failed;
        let origin = self.equations[id as usize].origin;
        Conflict { reason, relation, origin, core, minimal }
    }

    fn ancestor(&self, mut id: EquationId) -> EquationId {
        while let Some(parent) = self.equations[id as usize].parents.first() {
            id = *parent;
        }
        id
    }

    /// The given equations that a derived one may depend on, sorted.
    fn support(&self, id: EquationId) -> Vec<EquationId> {
        let mut seen: HashSet<EquationId> = HashSet::new();
        let mut given = Vec::new();
        let mut pending = vec![id];
        while let Some(id) = pending.pop() {
            if !seen.insert(id) {
                continue;
            }
            let equation = &self.equations[id as usize];
            if equation.parents.is_empty() {
                given.push(id);
            }
            pending.extend(&equation.parents);
            let mut shape = |shape: &Shape| {
                for item in &shape.items {
                    match item {
                        Item::Var(var) => {
                            let value = &self.shapes[var.0 as usize].value;
                            pending.extend(value.as_ref().map(|(_, cause)| *cause));
                        }
                        Item::Dim(dim) => pending.extend(self.causes(dim)),
                    }
                }
            };
            match &equation.relation {
                Relation::Shapes(a, b) | Relation::Elements(a, b) => {
                    shape(a);
                    shape(b);
                }
                Relation::Dims(a, b) => {
                    pending.extend(self.causes(a));
                    pending.extend(self.causes(b));
                }
                Relation::Positive(dim) => pending.extend(self.causes(dim)),
            }
        }
        given.sort_unstable();
        given
    }

    /// The equations that gave the variables of a dimension their values.
    fn causes(&self, dim: &Dim) -> Vec<EquationId> {
        let vars = self.arithmetic.vars(dim).into_iter();
        let cause = |var: DimVar| self.dims[var.0 as usize].value.as_ref().map(|(_, id)| *id);
        vars.filter_map(cause).collect()
    }

    /// What the values of the variables of an equation were found for.
    fn direct_causes(&self, id: EquationId) -> Vec<Origin> {
        let (shapes, dims) = self.vars(&self.equations[id as usize].relation);
        let shapes = shapes
            .into_iter()
            .filter_map(|var| self.shapes[var.0 as usize].value.as_ref().map(|(_, cause)| *cause));
        let dims = dims.into_iter().flat_map(|var| self.causes(&Dim::Var(var)));
        let origins = shapes.chain(dims).chain([id]).map(|id| self.equations[id as usize].origin);
        let origins: BTreeSet<Origin> = origins.collect();
        origins.into_iter().collect()
    }

    /// What equations were made for that contradict each other, by leaving out what can be left out:
    /// first in large pieces, at last one by one. And whether that came to an end.
    fn core(&mut self, id: EquationId) -> (Vec<Origin>, bool) {
        let made_for = self.made_for(&self.support(id));
        let origins: Vec<Origin> = made_for.keys().copied().collect();
        let mut work = 0;
        let Some(mut set) = self.refute(&made_for, &origins) else { return (origins, false) };
        let mut piece = set.len().div_ceil(2);
        loop {
            let before = set.len();
            let mut at = 0;
            while at < set.len() {
                let end = (at + piece).min(set.len());
                let rest: Vec<_> = set[..at].iter().chain(&set[end..]).copied().collect();
                work += 1 + rest.iter().map(|origin| made_for[origin].len()).sum::<usize>();
                if MAX_EXPLANATION_WORK < work {
                    return (set, false);
                }
                match self.refute(&made_for, &rest) {
                    Some(smaller) => {
                        let first = set[at];
                        set = smaller;
                        at = set.partition_point(|&origin| origin < first);
                    }
                    None => at = end,
                }
            }
            // What could not be left out may be left out now that others are.
            if piece <= 1 && set.len() == before {
                return (set, true);
            }
            piece = piece.div_ceil(2);
        }
    }

    /// The given equations of each origin that occurs in a support. Whoever leaves out an origin
    /// leaves out all of them, so they need not be in the support, unless they have failed before.
    fn made_for(&mut self, support: &[EquationId]) -> BTreeMap<Origin, Vec<EquationId>> {
        let mut made_for: BTreeMap<Origin, Vec<EquationId>> = BTreeMap::new();
        for &id in support {
            made_for.entry(self.equations[id as usize].origin).or_default();
        }
        for (id, equation) in self.equations.iter().enumerate().skip(self.num_indexed) {
            if equation.parents.is_empty() {
                self.by_origin.entry(equation.origin).or_default().push(id as EquationId);
            }
        }
        self.num_indexed = self.equations.len();
        for (origin, equations) in &mut made_for {
            let counts = |id: &EquationId| {
                let failed = self.equations[*id as usize].state == State::Failed;
                !failed || support.binary_search(id).is_ok()
            };
            equations.extend(self.by_origin[origin].iter().copied().filter(counts));
        }
        made_for
    }

    /// Solves the equations of some origins on their own. If they contradict each other, the origins
    /// of those that show it.
    fn refute(
        &self,
        made_for: &BTreeMap<Origin, Vec<EquationId>>,
        origins: &[Origin],
    ) -> Option<Vec<Origin>> {
        let given = origins.iter().flat_map(|origin| {
            let relation = |id: &EquationId| &self.equations[*id as usize].relation;
            made_for[origin].iter().map(move |id| (relation(id), *origin))
        });
        let mut copy = Copy::new(self, given.clone().map(|(relation, _)| relation));
        for (relation, origin) in given {
            let relation = copy.relation(relation);
            copy.to.given(relation, origin);
        }
        let (failed, _) = copy.to.run().err()?;
        let support = copy.to.support(failed).into_iter();
        let origins: BTreeSet<Origin> =
            support.map(|id| copy.to.equations[id as usize].origin).collect();
        Some(origins.into_iter().collect())
    }
}
