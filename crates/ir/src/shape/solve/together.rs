//! Whether residuals contradict each other, though each of them is possible.

use std::collections::{BTreeMap, HashSet, VecDeque};

use super::{EquationId, Failure, Mark, Reason, Relation, Solver, State};
use crate::shape::{DimVar, ShapeVar};

/// Residuals that share variables.
pub(super) type Connected = BTreeMap<EquationId, Relation>;

impl Solver {
    /// Checks the residuals since a mark, with those that share variables with them.
    pub(super) fn check_together(&mut self, since: Mark) -> Result<(), Failure> {
        self.check_ranks(since)?;
        self.check_sizes(since)?;
        self.check_splits(since)
    }

    /// The residuals since a mark.
    pub(super) fn stuck_since(&self, since: Mark) -> Vec<EquationId> {
        let ids = since.equations as EquationId..self.equations.len() as EquationId;
        ids.filter(|&id| self.equations[id as usize].state == State::Stuck).collect()
    }

    /// Residuals of some kinds and those that share variables with them, also by others: as many as are asked for
    /// of those that have not been seen, nearest first. Sizes connect them only where `by_sizes` says so.
    pub(super) fn connected(
        &mut self,
        start: impl IntoIterator<Item = EquationId>,
        seen: &mut HashSet<EquationId>,
        limit: usize,
        by_sizes: bool,
        is_asked: impl Fn(&Relation) -> bool,
    ) -> Connected {
        let mut connected = Connected::default();
        let mut shapes: HashSet<ShapeVar> = HashSet::new();
        let mut dims: HashSet<DimVar> = HashSet::new();
        let mut pending: VecDeque<EquationId> = start.into_iter().collect();
        while let Some(id) = pending.pop_front() {
            if connected.len() == limit {
                break;
            }
            if !is_asked(&self.equations[id as usize].relation) || !seen.insert(id) {
                continue;
            }
            let relation = self.resolved(&self.equations[id as usize].relation.clone());
            let vars = self.vars(&relation);
            for var in vars.0.into_iter().filter(|var| shapes.insert(*var)) {
                pending.extend(self.stuck_of(&self.shapes[var.0 as usize].waiting));
            }
            for var in vars.1.into_iter().filter(|var| by_sizes && dims.insert(*var)) {
                pending.extend(self.stuck_of(&self.dims[var.0 as usize].waiting));
            }
            connected.insert(id, relation);
        }
        connected
    }

    /// Says that residuals contradict each other.
    pub(super) fn contradiction(
        &mut self,
        connected: &Connected,
        reason: Reason,
    ) -> Result<(), Failure> {
        let Some((newest, relation)) = connected.last_key_value() else { return Ok(()) };
        let origin = self.equations[*newest as usize].origin;
        let parents = connected.keys().rev().copied().collect();
        Err((self.record(relation.clone(), origin, parents), reason))
    }
}
