//! The rounds of inference: variables that resolve, and their ranges.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tc_ir::expr::{Context, Expr, Var};
use tc_ir::interval::Interval;
use tc_ir::prove::{Prover, Verdict};
use tc_ir::solve::{Solution, SolveError, simplified, solve, tightest_lower, tightest_upper};

use super::names::Names;
use super::{Diagnostic, IndexVar, Inference, Kind, Range, Scope, Statement, Step, Value};

/// The largest value of a size.
const MAX_SIZE: i64 = i32::MAX as i64;

/// The one unresolved variable of an argument, and what solving for it gave.
struct Candidate {
    access: usize,
    dim: usize,
    index_var: usize,
    solution: Result<Solution, SolveError>,
}

pub(super) struct Engine<'a> {
    pub(super) context: &'a Context,
    pub(super) scope: &'a Scope,
    pub(super) statement: &'a Statement,
    pub(super) names: Names<'a>,
    /// Knows the sizes, and what is resolved so far.
    pub(super) prover: Prover<'a>,
    /// Position in the statement of each index variable.
    pub(super) positions: BTreeMap<Var, usize>,
    pub(super) unresolved: BTreeSet<usize>,
    /// Arguments that are in bounds because they resolved a variable.
    pub(super) by_construction: BTreeSet<(usize, usize)>,
    /// What kept arguments with one unresolved variable from bounding it in the last round.
    pub(super) obstacles: Vec<(usize, usize, usize, String)>,
    pub(super) result: Inference,
}

impl<'a> Engine<'a> {
    pub(super) fn new(context: &'a Context, scope: &'a Scope, statement: &'a Statement) -> Self {
        let names = Names { context, scope, statement };
        let positions = statement.index_vars.iter().enumerate();
        let positions = positions.map(|(position, index_var)| (index_var.var, position)).collect();
        let mut prover = Prover::new(context);
        for (number, value) in scope.values.iter().enumerate() {
            let interval = match value {
                Value::Size { .. } => Interval { lo: 1, hi: MAX_SIZE },
                Value::Data { interval, .. } => *interval,
            };
            let finite =
                |bound: i64, infinity: i64| (bound != infinity).then(|| context.constant(bound));
            let Ok(number) = u32::try_from(number) else {
                break;
            };
            prover.bound(
                Var::Runtime(number),
                finite(interval.lo, i64::MIN),
                finite(interval.hi, i64::MAX),
            );
        }
        let dims: BTreeSet<_> =
            statement.accesses.iter().flat_map(|access| access.dims.iter().copied()).collect();
        for (lower, upper) in dims {
            prover.assume_at_most(lower, upper);
        }
        let result =
            Inference { ranges: vec![None; statement.index_vars.len()], ..Inference::default() };
        Self {
            context,
            scope,
            statement,
            names,
            prover,
            positions,
            unresolved: (0..statement.index_vars.len()).collect(),
            by_construction: BTreeSet::new(),
            obstacles: Vec::new(),
            result,
        }
    }

    pub(super) fn is_data(&self, var: Var) -> bool {
        let Var::Runtime(number) = var else {
            return false;
        };
        matches!(self.scope.values.get(number as usize), Some(Value::Data { .. }))
    }

    pub(super) fn holds_data(&self, expr: Expr) -> bool {
        self.context.vars(expr).into_iter().any(|var| self.is_data(var))
    }

    /// Takes the ranges of `where` clauses.
    pub(super) fn declare(&mut self) {
        let mut declared: BTreeMap<usize, (Vec<Expr>, Vec<Expr>)> = BTreeMap::new();
        for range in &self.statement.declared {
            let IndexVar { name, location, .. } = &self.statement.index_vars[range.index_var];
            let mut vars = self.context.vars(range.lower);
            vars.extend(self.context.vars(range.upper));
            if let Some(other) = vars.iter().find_map(|var| self.positions.get(var)) {
                let other = &self.statement.index_vars[*other];
                let message = format!(
                    "range of index variable '{name}' depends on index variable '{}'",
                    other.name
                );
                let note = "the bounds of a range may use sizes only".to_owned();
                self.report(Kind::NonRectangular, *location, message, vec![(other.location, note)]);
            } else if let Some(&data) = vars.iter().find(|&&var| self.is_data(var)) {
                let data = self.names.of(data);
                let message = format!(
                    "range of index variable '{name}' depends on '{data}', known only at run time"
                );
                self.report(Kind::UnknownRange, *location, message, Vec::new());
            } else {
                let bounds = declared.entry(range.index_var).or_default();
                bounds.0.push(range.lower);
                bounds.1.push(range.upper);
            }
        }
        if !self.result.diagnostics.is_empty() {
            return;
        }
        for (index_var, (lowers, uppers)) in declared {
            match self.intersection(&lowers, &uppers) {
                Ok(Some(range)) => {
                    self.result.steps.push(Step::Declared { index_var, range });
                    self.resolve(index_var, range);
                }
                Ok(None) => {}
                Err(error) => {
                    let IndexVar { name, location, .. } = &self.statement.index_vars[index_var];
                    let message =
                        format!("the range given for index variable '{name}' cannot be computed");
                    let notes = vec![(*location, error.to_string())];
                    self.report(Kind::UnknownRange, *location, message, notes);
                }
            }
        }
    }

    fn intersection(&self, lowers: &[Expr], uppers: &[Expr]) -> Result<Option<Range>, SolveError> {
        let lower = tightest_lower(&self.prover, lowers)?;
        let upper = tightest_upper(&self.prover, uppers)?;
        let (Some(lower), Some(upper)) = (lower, upper) else { return Ok(None) };
        let extent = self.context.add(self.context.sub(upper, lower), self.context.constant(1));
        let extent = simplified(&self.prover, extent)?;
        Ok(Some(Range { lower, upper, extent }))
    }

    /// Fixes the range of a variable; reports one that is always empty.
    fn resolve(&mut self, index_var: usize, range: Range) {
        let IndexVar { name, var, location } = &self.statement.index_vars[index_var];
        self.unresolved.remove(&index_var);
        self.result.ranges[index_var] = Some(range);
        if self.prover.at_most(range.lower, range.upper) == Verdict::Refuted {
            let message = format!("range of index variable '{name}' is empty for all sizes");
            let found =
                format!("found '{}', expected an end above the start", self.names.range(range));
            self.report(Kind::EmptyRange, *location, message, vec![(*location, found)]);
            return;
        }
        self.prover.assume_at_most(range.lower, range.upper);
        self.prover.bound(*var, Some(range.lower), Some(range.upper));
    }

    pub(super) fn run_rounds(&mut self) {
        // Once everything is resolved, there is nothing left to ask.
        while !self.unresolved.is_empty() {
            self.result.steps.push(Step::Round(self.result.rounds.len() + 1));
            let candidates = self.candidates();
            let resolved = self.intersect(&candidates);
            if resolved.is_empty() {
                self.result.steps.push(Step::Stuck);
                self.obstacles = self.obstacles_of(&candidates);
                return;
            }
            for candidate in &candidates {
                let solved = candidate
                    .solution
                    .as_ref()
                    .is_ok_and(|solution| solution.conditions.is_empty());
                if solved && resolved.contains_key(&candidate.index_var) {
                    self.by_construction.insert((candidate.access, candidate.dim));
                }
            }
            let mut names = Vec::new();
            for (index_var, (range, num_bounds)) in resolved {
                self.result.steps.push(Step::Resolved { index_var, range, num_bounds });
                self.resolve(index_var, range);
                names.push(self.statement.index_vars[index_var].name.clone());
            }
            names.sort();
            self.result.rounds.push(names);
        }
    }

    /// Solves every argument with one unresolved variable.
    fn candidates(&mut self) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        let mut solved: HashMap<(Expr, Expr, Expr), Result<Solution, SolveError>> = HashMap::new();
        for (access, place) in self.statement.accesses.iter().enumerate() {
            for (dim, (&argument, &(lower, upper))) in
                place.args.iter().zip(&place.dims).enumerate()
            {
                let unresolved = self.unresolved_in(argument);
                let &[index_var] = &unresolved[..] else {
                    if 1 < unresolved.len() {
                        self.result.steps.push(Step::Waits { access, dim, unresolved });
                    }
                    continue;
                };
                let solution = solved.entry((argument, lower, upper)).or_insert_with(|| {
                    let var = self.statement.index_vars[index_var].var;
                    solve(&self.prover, argument, Some(lower), Some(upper), var, &|var| {
                        self.elimination(var)
                    })
                });
                self.result.steps.push(match solution {
                    Ok(Solution { lower, upper, .. }) => {
                        Step::Bounds { access, dim, index_var, lower: *lower, upper: *upper }
                    }
                    Err(error) => {
                        let reason = self.names.reason(error, index_var);
                        Step::Unsolved { access, dim, index_var, reason }
                    }
                });
                candidates.push(Candidate { access, dim, index_var, solution: solution.clone() });
            }
        }
        candidates
    }

    pub(super) fn unresolved_in(&self, argument: Expr) -> Vec<usize> {
        let positions = self
            .context
            .vars(argument)
            .into_iter()
            .filter_map(|var| self.positions.get(&var).copied());
        positions.filter(|position| self.unresolved.contains(position)).collect()
    }

    /// The interval of a variable that is eliminated: resolved index variables, and data, which may
    /// be anything.
    pub(super) fn elimination(&self, var: Var) -> Option<(Option<Expr>, Option<Expr>)> {
        if let Some(&position) = self.positions.get(&var) {
            return self.result.ranges[position]
                .map(|range| (Some(range.lower), Some(range.upper)));
        }
        self.is_data(var).then_some((None, None))
    }

    /// The variables that are now bounded on both sides, with the number of arguments that bound
    /// each.
    fn intersect(&self, candidates: &[Candidate]) -> BTreeMap<usize, (Range, usize)> {
        let mut bounds: BTreeMap<usize, (Vec<Expr>, Vec<Expr>, usize)> = BTreeMap::new();
        for candidate in candidates {
            let Ok(solution) = &candidate.solution else {
                continue;
            };
            let (lowers, uppers, num_bounds) = bounds.entry(candidate.index_var).or_default();
            lowers.extend(solution.lower.filter(|bound| !lowers.contains(bound)));
            uppers.extend(solution.upper.filter(|bound| !uppers.contains(bound)));
            *num_bounds += 1;
        }
        let resolved =
            bounds.into_iter().filter_map(|(index_var, (lowers, uppers, num_bounds))| {
                let range = self.intersection(&lowers, &uppers).ok()??;
                Some((index_var, (range, num_bounds)))
            });
        resolved.collect()
    }

    fn obstacles_of(&self, candidates: &[Candidate]) -> Vec<(usize, usize, usize, String)> {
        let reason = |candidate: &Candidate| match &candidate.solution {
            Err(error) => self.names.reason(error, candidate.index_var),
            Ok(Solution { lower: Some(_), upper: None, .. }) => {
                "it gives a lower bound only".to_owned()
            }
            Ok(Solution { lower: None, upper: Some(_), .. }) => {
                "it gives an upper bound only".to_owned()
            }
            Ok(Solution { lower: None, upper: None, .. }) => {
                "it is in bounds for every value".to_owned()
            }
            Ok(_) => "its bounds are too large to compare".to_owned(),
        };
        let obstacle = |candidate: &Candidate| {
            (candidate.access, candidate.dim, candidate.index_var, reason(candidate))
        };
        candidates.iter().map(obstacle).collect()
    }

    pub(super) fn report(
        &mut self,
        kind: Kind,
        location: usize,
        message: String,
        notes: Vec<(usize, String)>,
    ) {
        self.result.diagnostics.push(Diagnostic { kind, location, message, notes });
    }
}
