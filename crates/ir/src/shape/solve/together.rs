//! What several residuals say together: that they contradict each other, though each of them is possible, or what a
//! rank or a size has to be.

use std::collections::{BTreeMap, HashSet, VecDeque};

use super::{EquationId, Failure, Mark, Reason, Relation, Solver, State};
use crate::integer_program::{Answer, Program, Row};
use crate::shape::{Dim, DimVar, Shape, ShapeVar};

/// Residuals that share variables.
pub(super) type Connected = BTreeMap<EquationId, Relation>;

/// The unknowns among some that have the same value at all points of a program, as far as that is decided, and these
/// values.
pub(super) fn only_values(
    program: Program,
    columns: impl Iterator<Item = u32>,
    work: &mut usize,
) -> BTreeMap<u32, i128> {
    let Answer::Point(point) = program.solve(work) else { return BTreeMap::new() };
    let value = |point: &[i128], column: u32| point.get(column as usize).copied();
    let mut same: BTreeMap<u32, i128> =
        columns.filter_map(|column| Some((column, value(&point, column)?))).collect();
    let mut others = program;
    others.choices.push(Vec::new());
    while !same.is_empty() {
        // Another point, at which one of them has another value.
        let row = |column, lower, upper| Row { terms: vec![(column, 1)], lower, upper };
        let differs = same.iter().flat_map(|(&column, &value)| {
            [row(column, None, Some(value - 1)), row(column, Some(value + 1), None)]
        });
        others.choices.pop();
        others.choices.push(differs.collect());
        match others.solve(work) {
            Answer::Empty => break,
            Answer::Point(other) => same.retain(|column, old| value(&other, *column) == Some(*old)),
            Answer::Unknown => same.clear(),
        }
    }
    same
}

impl Solver {
    /// Checks the residuals since a mark, with those that share variables with them, and solves what follows only from
    /// several of them: ranks and sizes without an alternative.
    pub(super) fn solve_together(&mut self, since: Mark) -> Result<(), Failure> {
        loop {
            self.check_ranks(since)?;
            self.check_sizes(since)?;
            let is_new = self.find_ranks(since) || self.find_sizes(since);
            if !is_new && !self.try_sizes(since)? && !self.solve_splits(since)? {
                return Ok(());
            }
            self.run()?;
        }
    }

    /// Solves the equations. The residuals, if there are ranks and sizes that fit them, as far as that is decided.
    pub(super) fn checked(&mut self) -> Result<Vec<Relation>, Failure> {
        self.run()?;
        self.check_ranks(Mark::default())?;
        self.check_sizes(Mark::default())?;
        let stuck = self.stuck_since(Mark::default()).into_iter();
        Ok(stuck.map(|id| self.resolved(&self.equations[id as usize].relation.clone())).collect())
    }

    /// Adds that a variable has a rank, which follows from residuals.
    pub(super) fn has_rank(&mut self, connected: &Connected, var: ShapeVar, rank: usize) {
        let level = self.shape_level(var);
        let dims: Vec<Dim> = (0..rank).map(|_| Dim::Var(self.dim_var(level))).collect();
        self.follows(connected, Relation::Shapes(Shape::var(var), Shape::dims(dims)));
    }

    /// Adds what follows from residuals.
    pub(super) fn follows(&mut self, connected: &Connected, relation: Relation) {
        if let Some(newest) = connected.last_key_value().map(|(id, _)| *id) {
            self.note("only solution", newest, || relation.clone());
            let origin = self.equations[newest as usize].origin;
            self.add(relation, origin, connected.keys().rev().copied().collect());
        }
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
