//! Range inference: which values each index variable of a statement takes.
//!
//! The algorithm is that of the range-inference text of Tensor Comprehensions, in rounds. Variables with a `where`
//! range are resolved from the start. In a round, every argument of an access that holds exactly one unresolved
//! variable gives the largest interval of that variable for which the argument is in bounds for all values of the
//! resolved ones ([`tc_ir::solve`]); several intervals intersect. A variable is resolved at the end of a round that
//! bounds it on both sides. What is left when a round resolves nothing is an error.
//!
//! Afterwards every argument that did not resolve a variable is shown to be in bounds ([`tc_ir::prove`]) or becomes
//! a precondition: the exact condition on the sizes where the argument is monotone in the index variables, and a
//! condition on the data where it reads some.
//!
//! What is fixed here and open in the text:
//! - sizes are at least 1 and at most 2^31 - 1, ranges and dimensions are not empty;
//! - a value read from a tensor bounds nothing, even if its type has few values, unless `min` and `max` clamp it;
//!   the interval of its type does count when an access is shown to be in bounds;
//! - an `exists` access is never read, so that it leaves no precondition.
//!
//! Intervals are closed inside; texts are half-open, as TC writes them. Work is linear in the number of arguments
//! times rounds, a round resolving at least one variable; equal arguments are solved once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tc_ir::expr::{Context, Expr, Node, Var};
use tc_ir::interval::Interval;
use tc_ir::polynomial::{Normalizer, condition_text, text};
use tc_ir::prove::{Prover, Verdict};
use tc_ir::solve::{Extreme, Solution, SolveError, maximum, minimum, simplified, solve};
use tc_ir::solve::{tightest_lower, tightest_upper};

/// The largest value of a size.
const MAX_SIZE: i64 = i32::MAX as i64;

/// What the runtime variables of a statement's expressions stand for: element `k` describes `Var::Runtime(k)`.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// One per runtime variable.
    pub values: Vec<Value>,
}

/// A value that is known only at run time.
#[derive(Clone, Debug)]
pub enum Value {
    /// A size variable, in `[1, 2^31 - 1]`.
    Size {
        /// Its name.
        name: String,
    },
    /// A value read from a tensor, or computed in a way that the index algebra does not follow.
    Data {
        /// The expression as the user wrote it.
        text: String,
        /// The values that its type allows.
        interval: Interval,
        /// The index variables that it changes with.
        depends_on: BTreeSet<Var>,
    },
}

/// One statement, as range inference sees it. Locations are opaque numbers that come back in diagnostics.
#[derive(Clone, Debug, Default)]
pub struct Statement {
    /// Left-hand indices, then reduction variables.
    pub index_vars: Vec<IndexVar>,
    /// The ranges that `where` clauses give.
    pub declared: Vec<DeclaredRange>,
    /// All accesses of the right-hand side, of lets and of `exists` clauses, nested ones included.
    pub accesses: Vec<Access>,
}

/// An index variable.
#[derive(Clone, Debug)]
pub struct IndexVar {
    /// Its name.
    pub name: String,
    /// `Var::Dim` for a left-hand index, `Var::Range` for a reduction variable.
    pub var: Var,
    /// Where it first occurs.
    pub location: usize,
}

/// A range from a `where` clause.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredRange {
    /// The position of the variable in [`Statement::index_vars`].
    pub index_var: usize,
    /// The least value.
    pub lower: Expr,
    /// The greatest value, included.
    pub upper: Expr,
}

/// A read of a tensor.
#[derive(Clone, Debug)]
pub struct Access {
    /// The name of the tensor.
    pub tensor: String,
    /// The access as the user wrote it.
    pub text: String,
    /// Where it is.
    pub location: usize,
    /// Where the tensor gets its sizes, if there is such a place.
    pub declared_at: Option<usize>,
    /// One index expression per dimension.
    pub args: Vec<Expr>,
    /// Closed bounds of each dimension, over sizes.
    pub dims: Vec<(Expr, Expr)>,
    /// Whether the read is performed under a condition only: in a branch of `?:`, or on the right of `&&` or `||`.
    pub guarded: bool,
    /// Whether the access stands in an `exists` clause.
    pub from_exists: bool,
}

/// The range of an index variable, over sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least value.
    pub lower: Expr,
    /// The greatest value, included.
    pub upper: Expr,
    /// The number of values, `upper - lower + 1`.
    pub extent: Expr,
}

/// A condition that the caller has to meet so that a read is in bounds.
#[derive(Clone, Debug)]
pub struct Precondition {
    /// The position of the access in [`Statement::accesses`].
    pub access: usize,
    /// The dimension.
    pub dim: usize,
    /// The index expression.
    pub argument: Expr,
    /// The lower bound that it is not known to keep to.
    pub lower: Option<Expr>,
    /// The upper bound, included, that it is not known to keep to.
    pub upper: Option<Expr>,
    /// Expressions over sizes that are all `>= 0` exactly when every read is in bounds. `None` when that takes a
    /// look at each index: the argument holds data, or rises and falls with an index variable.
    pub conditions: Option<Vec<Expr>>,
    /// The condition as text, such as `I + J - 1 <= K`.
    pub text: String,
    /// Whether it depends on values read from a tensor.
    pub data_dependent: bool,
    /// Whether it matters only where the read is performed.
    pub guarded: bool,
    /// Whether it fails for all sizes.
    pub refuted: bool,
}

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The statement has no meaning.
    Error,
    /// The statement is accepted.
    Warning,
}

/// What a diagnostic is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An access holds several unresolved variables.
    Ambiguous,
    /// An index variable is multiplied or divided by data.
    DynamicStride,
    /// Nothing bounds an index variable.
    UnknownRange,
    /// A range holds nothing, whatever the sizes.
    EmptyRange,
    /// A range depends on another index variable.
    NonRectangular,
    /// A read may be out of bounds for some sizes.
    UncheckedPrecondition,
    /// A read may be out of bounds for some data.
    DataDependentAccess,
}

impl Kind {
    /// The name that conformance data uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ambiguous => "ambiguous",
            Self::DynamicStride => "dynamic_stride",
            Self::UnknownRange => "unknown_range",
            Self::EmptyRange => "empty_range",
            Self::NonRectangular => "non_rectangular",
            Self::UncheckedPrecondition => "unchecked_precondition",
            Self::DataDependentAccess => "data_dependent_access",
        }
    }

    /// The diagnostic code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Ambiguous => "TC0101",
            Self::DynamicStride => "TC0102",
            Self::UnknownRange => "TC0103",
            Self::EmptyRange => "TC0104",
            Self::NonRectangular => "TC0105",
            Self::UncheckedPrecondition => "TC0201",
            Self::DataDependentAccess => "TC0202",
        }
    }

    /// Whether it is an error or a warning.
    pub fn severity(self) -> Severity {
        match self {
            Self::UncheckedPrecondition | Self::DataDependentAccess => Severity::Warning,
            _ => Severity::Error,
        }
    }
}

/// A message about the statement.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// What it is about; gives severity and code.
    pub kind: Kind,
    /// Where.
    pub location: usize,
    /// What was found and expected.
    pub message: String,
    /// Related places.
    pub notes: Vec<(usize, String)>,
}

/// One step of the inference. Positions refer to the [`Statement`].
#[derive(Clone, Debug)]
pub enum Step {
    /// A `where` clause resolved a variable before the first round.
    Declared {
        /// The variable.
        index_var: usize,
        /// Its range.
        range: Range,
    },
    /// A round begins.
    Round(usize),
    /// An argument holds several unresolved variables.
    Waits {
        /// The access.
        access: usize,
        /// The dimension.
        dim: usize,
        /// The unresolved variables in it.
        unresolved: Vec<usize>,
    },
    /// An argument bounds the only unresolved variable in it.
    Bounds {
        /// The access.
        access: usize,
        /// The dimension.
        dim: usize,
        /// The variable.
        index_var: usize,
        /// The lower bound that the argument gives.
        lower: Option<Expr>,
        /// The upper bound that the argument gives, included.
        upper: Option<Expr>,
    },
    /// An argument holds one unresolved variable and does not bound it.
    Unsolved {
        /// The access.
        access: usize,
        /// The dimension.
        dim: usize,
        /// The variable.
        index_var: usize,
        /// Why not.
        reason: String,
    },
    /// A round resolved a variable.
    Resolved {
        /// The variable.
        index_var: usize,
        /// The intersection of all bounds.
        range: Range,
        /// How many arguments bound it.
        num_bounds: usize,
    },
    /// An argument resolved a variable and is in bounds by construction.
    ByConstruction {
        /// The access.
        access: usize,
        /// The dimension.
        dim: usize,
    },
    /// An argument is shown to be in bounds.
    Proven {
        /// The access.
        access: usize,
        /// The dimension.
        dim: usize,
    },
    /// An argument is in bounds under a condition, by its position in [`Inference::preconditions`].
    Left {
        /// The precondition.
        precondition: usize,
    },
}

/// What inference found for one statement.
#[derive(Clone, Debug, Default)]
pub struct Inference {
    /// One per index variable; `None` for those that were not resolved, which is an error.
    pub ranges: Vec<Option<Range>>,
    /// The names that each round resolved, sorted.
    pub rounds: Vec<Vec<String>>,
    /// What is left to the caller.
    pub preconditions: Vec<Precondition>,
    /// Errors and warnings, in the order of inference.
    pub diagnostics: Vec<Diagnostic>,
    /// The steps taken, for [`explain`].
    pub steps: Vec<Step>,
}

impl Inference {
    /// The ranges of all index variables, when there is no error.
    pub fn resolved(&self) -> Option<Vec<Range>> {
        let failed = |diagnostic: &Diagnostic| diagnostic.kind.severity() == Severity::Error;
        if self.diagnostics.iter().any(failed) {
            None
        } else {
            self.ranges.iter().copied().collect()
        }
    }
}

/// Infers the ranges of one statement.
pub fn infer(context: &Context, scope: &Scope, statement: &Statement) -> Inference {
    let mut engine = Engine::new(context, scope, statement);
    engine.declare();
    if engine.result.diagnostics.is_empty() {
        engine.run_rounds();
        engine.report_unresolved();
    }
    if engine.result.diagnostics.is_empty() {
        engine.check_accesses();
    }
    engine.result
}

/// The one unresolved variable of an argument, and what solving for it gave.
struct Candidate {
    access: usize,
    dim: usize,
    index_var: usize,
    solution: Result<Solution, SolveError>,
}

struct Engine<'a> {
    context: &'a Context,
    scope: &'a Scope,
    statement: &'a Statement,
    names: Names<'a>,
    /// Knows the sizes, and what is resolved so far.
    prover: Prover<'a>,
    /// Position in the statement of each index variable.
    positions: BTreeMap<Var, usize>,
    unresolved: BTreeSet<usize>,
    /// Arguments that are in bounds because they resolved a variable.
    by_construction: BTreeSet<(usize, usize)>,
    /// What kept arguments with one unresolved variable from bounding it in the last round.
    obstacles: Vec<(usize, usize, usize, String)>,
    result: Inference,
}

impl<'a> Engine<'a> {
    fn new(context: &'a Context, scope: &'a Scope, statement: &'a Statement) -> Self {
        let names = Names {
            context,
            scope,
            statement,
        };
        let positions = statement.index_vars.iter().enumerate();
        let positions = positions
            .map(|(position, index_var)| (index_var.var, position))
            .collect();
        let mut prover = Prover::new(context);
        for (number, value) in scope.values.iter().enumerate() {
            let interval = match value {
                Value::Size { .. } => Interval {
                    lo: 1,
                    hi: MAX_SIZE,
                },
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
        let dims: BTreeSet<_> = statement
            .accesses
            .iter()
            .flat_map(|access| access.dims.iter().copied())
            .collect();
        for (lower, upper) in dims {
            prover.assume_at_most(lower, upper);
        }
        let result = Inference {
            ranges: vec![None; statement.index_vars.len()],
            ..Inference::default()
        };
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

    fn is_data(&self, var: Var) -> bool {
        let Var::Runtime(number) = var else {
            return false;
        };
        matches!(
            self.scope.values.get(number as usize),
            Some(Value::Data { .. })
        )
    }

    fn holds_data(&self, expr: Expr) -> bool {
        self.context
            .vars(expr)
            .into_iter()
            .any(|var| self.is_data(var))
    }

    /// Takes the ranges of `where` clauses.
    fn declare(&mut self) {
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
                self.report(
                    Kind::NonRectangular,
                    *location,
                    message,
                    vec![(other.location, note)],
                );
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
            if let Some(range) = self.intersection(&lowers, &uppers) {
                self.result.steps.push(Step::Declared { index_var, range });
                self.resolve(index_var, range);
            }
        }
    }

    fn intersection(&self, lowers: &[Expr], uppers: &[Expr]) -> Option<Range> {
        let lower = tightest_lower(&self.prover, lowers).ok()??;
        let upper = tightest_upper(&self.prover, uppers).ok()??;
        let extent = self
            .context
            .add(self.context.sub(upper, lower), self.context.constant(1));
        let extent = simplified(&self.prover, extent).ok()?;
        Some(Range {
            lower,
            upper,
            extent,
        })
    }

    /// Fixes the range of a variable; reports one that is always empty.
    fn resolve(&mut self, index_var: usize, range: Range) {
        let IndexVar {
            name,
            var,
            location,
        } = &self.statement.index_vars[index_var];
        self.unresolved.remove(&index_var);
        self.result.ranges[index_var] = Some(range);
        if self.prover.at_most(range.lower, range.upper) == Verdict::Refuted {
            let message = format!("range of index variable '{name}' is empty for all sizes");
            let found = format!(
                "found '{}', expected an end above the start",
                self.names.range(range)
            );
            self.report(
                Kind::EmptyRange,
                *location,
                message,
                vec![(*location, found)],
            );
            return;
        }
        self.prover.assume_at_most(range.lower, range.upper);
        self.prover
            .bound(*var, Some(range.lower), Some(range.upper));
    }

    fn run_rounds(&mut self) {
        // Once everything is resolved, there is nothing left to ask.
        while !self.unresolved.is_empty() {
            self.result
                .steps
                .push(Step::Round(self.result.rounds.len() + 1));
            let candidates = self.candidates();
            let resolved = self.intersect(&candidates);
            if resolved.is_empty() {
                // The round that found nothing is no round.
                self.obstacles = self.obstacles_of(&candidates);
                return;
            }
            for candidate in &candidates {
                let solved = candidate
                    .solution
                    .as_ref()
                    .is_ok_and(|solution| solution.conditions.is_empty());
                if solved && resolved.contains_key(&candidate.index_var) {
                    self.by_construction
                        .insert((candidate.access, candidate.dim));
                }
            }
            let mut names = Vec::new();
            for (index_var, (range, num_bounds)) in resolved {
                self.result.steps.push(Step::Resolved {
                    index_var,
                    range,
                    num_bounds,
                });
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
                        self.result.steps.push(Step::Waits {
                            access,
                            dim,
                            unresolved,
                        });
                    }
                    continue;
                };
                let solution = solved.entry((argument, lower, upper)).or_insert_with(|| {
                    let var = self.statement.index_vars[index_var].var;
                    solve(
                        &self.prover,
                        argument,
                        Some(lower),
                        Some(upper),
                        var,
                        &|var| self.elimination(var),
                    )
                });
                self.result.steps.push(match solution {
                    Ok(Solution { lower, upper, .. }) => Step::Bounds {
                        access,
                        dim,
                        index_var,
                        lower: *lower,
                        upper: *upper,
                    },
                    Err(error) => {
                        let reason = self.names.reason(error, index_var);
                        Step::Unsolved {
                            access,
                            dim,
                            index_var,
                            reason,
                        }
                    }
                });
                candidates.push(Candidate {
                    access,
                    dim,
                    index_var,
                    solution: solution.clone(),
                });
            }
        }
        candidates
    }

    fn unresolved_in(&self, argument: Expr) -> Vec<usize> {
        let positions = self
            .context
            .vars(argument)
            .into_iter()
            .filter_map(|var| self.positions.get(&var).copied());
        positions
            .filter(|position| self.unresolved.contains(position))
            .collect()
    }

    /// The interval of a variable that is eliminated: resolved index variables, and data, which may be anything.
    fn elimination(&self, var: Var) -> Option<(Option<Expr>, Option<Expr>)> {
        if let Some(&position) = self.positions.get(&var) {
            return self.result.ranges[position]
                .map(|range| (Some(range.lower), Some(range.upper)));
        }
        self.is_data(var).then_some((None, None))
    }

    /// The variables that are now bounded on both sides, with the number of arguments that bound each.
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
            bounds
                .into_iter()
                .filter_map(|(index_var, (lowers, uppers, num_bounds))| {
                    Some((
                        index_var,
                        (self.intersection(&lowers, &uppers)?, num_bounds),
                    ))
                });
        resolved.collect()
    }

    fn obstacles_of(&self, candidates: &[Candidate]) -> Vec<(usize, usize, usize, String)> {
        let reason = |candidate: &Candidate| match &candidate.solution {
            Err(error) => self.names.reason(error, candidate.index_var),
            Ok(Solution {
                lower: Some(_),
                upper: None,
                ..
            }) => "it gives a lower bound only".to_owned(),
            Ok(Solution {
                lower: None,
                upper: Some(_),
                ..
            }) => "it gives an upper bound only".to_owned(),
            Ok(Solution {
                lower: None,
                upper: None,
                ..
            }) => "it is in bounds for every value".to_owned(),
            Ok(_) => "its bounds are too large to compare".to_owned(),
        };
        let obstacle = |candidate: &Candidate| {
            (
                candidate.access,
                candidate.dim,
                candidate.index_var,
                reason(candidate),
            )
        };
        candidates.iter().map(obstacle).collect()
    }

    /// Reports the variables that the rounds left, those that share an access together.
    fn report_unresolved(&mut self) {
        let mut holders: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        let mut strides: BTreeMap<usize, (usize, Var)> = BTreeMap::new();
        let mut groups: Vec<BTreeSet<usize>> = Vec::new();
        for (access, place) in self.statement.accesses.iter().enumerate() {
            for (dim, &argument) in place.args.iter().enumerate() {
                let unresolved = self.unresolved_in(argument);
                for &index_var in &unresolved {
                    holders.entry(index_var).or_default().push((access, dim));
                    if let Some(data) =
                        self.data_stride(argument, self.statement.index_vars[index_var].var)
                    {
                        strides.entry(index_var).or_insert((access, data));
                    }
                }
                if 1 < unresolved.len() {
                    let mut merged: BTreeSet<usize> = unresolved.into_iter().collect();
                    groups.retain(|group| {
                        let apart = group.is_disjoint(&merged);
                        if !apart {
                            merged.extend(group);
                        }
                        apart
                    });
                    groups.push(merged);
                }
            }
        }
        for (&index_var, &(access, data)) in &strides {
            self.report_stride(index_var, access, data);
        }
        for mut group in groups {
            group.retain(|index_var| !strides.contains_key(index_var));
            if !group.is_empty() {
                self.report_ambiguous(&group, &holders);
            }
            for index_var in group {
                self.unresolved.remove(&index_var);
            }
        }
        for index_var in self.unresolved.clone() {
            if !strides.contains_key(&index_var) {
                self.report_unknown(index_var);
            }
        }
    }

    /// A value known only at run time by which the argument multiplies or divides the variable.
    fn data_stride(&self, argument: Expr, var: Var) -> Option<Var> {
        let data_in = |expr: Expr| {
            self.context
                .vars(expr)
                .into_iter()
                .find(|&var| self.is_data(var))
        };
        let depends = |expr: Expr| self.context.vars(expr).contains(&var);
        self.context
            .topological(&[argument])
            .into_iter()
            .find_map(|expr| match self.context.node(expr) {
                Node::Mul(a, b) if depends(a) => data_in(b),
                Node::Mul(a, b) if depends(b) => data_in(a),
                Node::FloorDiv(a, b) | Node::CeilDiv(a, b) | Node::Mod(a, b) if depends(a) => {
                    data_in(b)
                }
                _ => None,
            })
    }

    fn report_stride(&mut self, index_var: usize, access: usize, data: Var) {
        let IndexVar { name, location, .. } = &self.statement.index_vars[index_var];
        let place = &self.statement.accesses[access];
        let message = format!("cannot infer the range of index variable '{name}'");
        let stride = format!(
            "its stride '{}' in '{}' is known only at run time",
            self.names.of(data),
            place.text
        );
        let notes = vec![
            (place.location, stride),
            (*location, self.names.suggestion(index_var)),
        ];
        self.report(Kind::DynamicStride, place.location, message, notes);
    }

    fn report_ambiguous(
        &mut self,
        group: &BTreeSet<usize>,
        holders: &BTreeMap<usize, Vec<(usize, usize)>>,
    ) {
        let mut places: Vec<(usize, usize)> = group
            .iter()
            .flat_map(|var| holders[var].iter().copied())
            .collect();
        places.sort_unstable();
        places.dedup();
        let variables = |group: &BTreeSet<usize>| -> String {
            let quoted = group
                .iter()
                .map(|&var| format!("'{}'", self.statement.index_vars[var].name));
            quoted.collect::<Vec<_>>().join(", ")
        };
        let message = match group.len() {
            1 => format!(
                "cannot infer the range of index variable {}",
                variables(group)
            ),
            _ => format!(
                "cannot infer ranges for index variables {}",
                variables(group)
            ),
        };
        let mut notes = Vec::new();
        let alone = places.iter().all(|place| place.0 == places[0].0);
        let mut last = None;
        for &(access, dim) in &places {
            let place = &self.statement.accesses[access];
            if last != Some(access) {
                let held: BTreeSet<usize> =
                    self.unresolved_in(place.args[dim]).into_iter().collect();
                notes.push((
                    place.location,
                    if alone {
                        let count = number_word(held.len());
                        let whom = if group.len() == 1 { "it" } else { "them" };
                        let text = &place.text;
                        format!("'{text}' is the only access that bounds {whom}, and it holds {count} unresolved variables")
                    } else {
                        format!("'{}' holds {} unresolved variables: {}", place.text, number_word(held.len()), variables(&held))
                    },
                ));
                last = Some(access);
            }
            notes.extend(self.size_note(access, dim));
        }
        let location = self.statement.accesses[places[0].0].location;
        if let Some(&index_var) = group.last() {
            notes.push((location, self.names.suggestion(index_var)));
        }
        self.report(Kind::Ambiguous, location, message, notes);
    }

    fn size_note(&self, access: usize, dim: usize) -> Option<(usize, String)> {
        let place = &self.statement.accesses[access];
        let (lower, upper) = place.dims[dim];
        let tensor = &place.tensor;
        let note = if self.context.as_constant(lower) == Some(0) {
            format!(
                "dimension {dim} of '{tensor}' has size '{}'",
                self.names.after(upper)
            )
        } else {
            format!(
                "dimension {dim} of '{tensor}' is '{}:{}'",
                self.names.text(lower),
                self.names.after(upper)
            )
        };
        Some((place.declared_at?, note))
    }

    fn report_unknown(&mut self, index_var: usize) {
        let IndexVar { name, location, .. } = &self.statement.index_vars[index_var];
        let message = format!("cannot infer the range of index variable '{name}'");
        let mut notes = Vec::new();
        for &(access, dim, var, ref reason) in &self.obstacles {
            if var == index_var {
                let place = &self.statement.accesses[access];
                let argument = self.names.text(place.args[dim]);
                notes.push((
                    place.location,
                    format!(
                        "'{argument}' in '{}' does not give it: {reason}",
                        place.text
                    ),
                ));
            }
        }
        if notes.is_empty() {
            notes.push((*location, format!("no access is indexed by '{name}'")));
        }
        notes.push((*location, self.names.suggestion(index_var)));
        self.report(Kind::UnknownRange, *location, message, notes);
    }

    /// Shows that arguments are in bounds, and turns the rest into preconditions.
    fn check_accesses(&mut self) {
        // The same read in several places counts once.
        let mut known: HashMap<(String, usize, String), usize> = HashMap::new();
        for (access, place) in self
            .statement
            .accesses
            .iter()
            .enumerate()
            .filter(|(_, place)| !place.from_exists)
        {
            for dim in 0..place.args.len().min(place.dims.len()) {
                if self.by_construction.contains(&(access, dim)) {
                    self.result.steps.push(Step::ByConstruction { access, dim });
                    continue;
                }
                let Some((precondition, notes)) = self.check(access, dim) else {
                    self.result.steps.push(Step::Proven { access, dim });
                    continue;
                };
                let key = (place.tensor.clone(), dim, precondition.text.clone());
                if let Some(&earlier) = known.get(&key) {
                    self.result.preconditions[earlier].guarded &= precondition.guarded;
                    self.result.steps.push(Step::Left {
                        precondition: earlier,
                    });
                    continue;
                }
                known.insert(key, self.result.preconditions.len());
                self.result.steps.push(Step::Left {
                    precondition: self.result.preconditions.len(),
                });
                let kind = if precondition.data_dependent {
                    Kind::DataDependentAccess
                } else {
                    Kind::UncheckedPrecondition
                };
                let certainty = if precondition.refuted && !place.guarded {
                    "is"
                } else {
                    "may be"
                };
                let message = format!("read of '{}' {certainty} out of bounds", place.tensor);
                self.report(kind, place.location, message, notes);
                self.result.preconditions.push(precondition);
            }
        }
    }

    /// The precondition of one argument and what there is to say about it; `None` when it is in bounds.
    fn check(&self, access: usize, dim: usize) -> Option<(Precondition, Vec<(usize, String)>)> {
        let place = &self.statement.accesses[access];
        let (argument, (lower, upper)) = (place.args[dim], place.dims[dim]);
        let below = self.prover.at_most(lower, argument);
        let above = self.prover.at_most(argument, upper);
        let lower = (below != Verdict::Proved).then_some(lower);
        let upper = (above != Verdict::Proved).then_some(upper);
        let data_dependent = self.holds_data(argument);
        let mut notes = Vec::new();
        let mut texts = Vec::new();
        let mut conditions = Some(Vec::new());
        let mut refuted = below == Verdict::Refuted || above == Verdict::Refuted;
        if !data_dependent {
            let elimination = |var| self.elimination(var);
            let sides = [
                lower.map(|bound| (bound, minimum(&self.prover, argument, &elimination), true)),
                upper.map(|bound| (bound, maximum(&self.prover, argument, &elimination), false)),
            ];
            for (bound, end, is_lower) in sides.into_iter().flatten() {
                let Ok(Extreme::Finite(end)) = end else {
                    conditions = None;
                    continue;
                };
                let (low, high) = if is_lower { (bound, end) } else { (end, bound) };
                match self.prover.at_most(low, high) {
                    // The exact condition can be shown where the argument itself was too much.
                    Verdict::Proved => continue,
                    Verdict::Refuted => refuted = true,
                    Verdict::Unknown => {}
                }
                let condition = self.context.sub(high, low);
                let condition = simplified(&self.prover, condition).unwrap_or(condition);
                texts.push(match self.context.as_constant(condition) {
                    Some(_) => format!("{} <= {}", self.names.text(low), self.names.text(high)),
                    None => condition_text(self.context, condition, &|var| self.names.of(var)),
                });
                if let Some(conditions) = &mut conditions {
                    conditions.push(condition);
                }
                let (argument, end, bound) = (
                    self.names.text(argument),
                    self.names.text(end),
                    self.names.text(bound),
                );
                let (reaches, ends) = if is_lower {
                    ("goes down to", "starts at")
                } else {
                    ("reaches", "ends at")
                };
                let tensor = &place.tensor;
                notes.push((
                    place.location,
                    format!("'{argument}' {reaches} {end}, but dimension {dim} of '{tensor}' {ends} {bound}"),
                ));
            }
        }
        if data_dependent || conditions.is_none() {
            conditions = None;
            texts = vec![self.names.condition(argument, lower, upper)];
        }
        if lower.is_none() && upper.is_none() || texts.is_empty() {
            return None;
        }
        if data_dependent {
            let argument = self.names.text(argument);
            notes.push((
                place.location,
                format!("'{argument}' is known only at run time"),
            ));
        }
        let text = texts.join(" and ");
        if place.guarded {
            notes.push((
                place.location,
                "the read is performed under a condition, which is not considered".to_owned(),
            ));
        }
        notes.push((place.location, format!("precondition recorded: {text}")));
        let precondition = Precondition {
            access,
            dim,
            argument,
            lower,
            upper,
            conditions,
            text,
            data_dependent,
            guarded: place.guarded,
            refuted,
        };
        Some((precondition, notes))
    }

    fn report(
        &mut self,
        kind: Kind,
        location: usize,
        message: String,
        notes: Vec<(usize, String)>,
    ) {
        self.result.diagnostics.push(Diagnostic {
            kind,
            location,
            message,
            notes,
        });
    }
}

fn number_word(count: usize) -> String {
    match count {
        2 => "two".to_owned(),
        3 => "three".to_owned(),
        4 => "four".to_owned(),
        _ => count.to_string(),
    }
}

/// Writes expressions with the names of the source.
#[derive(Clone, Copy)]
struct Names<'a> {
    context: &'a Context,
    scope: &'a Scope,
    statement: &'a Statement,
}

impl Names<'_> {
    fn of(&self, var: Var) -> String {
        if let Some(index_var) = self
            .statement
            .index_vars
            .iter()
            .find(|index_var| index_var.var == var)
        {
            return index_var.name.clone();
        }
        let Var::Runtime(number) = var else {
            return "?".to_owned();
        };
        match self.scope.values.get(number as usize) {
            Some(Value::Size { name }) => name.clone(),
            Some(Value::Data { text, .. }) => text.clone(),
            None => "?".to_owned(),
        }
    }

    fn text(&self, expr: Expr) -> String {
        text(self.context, expr, &|var| self.of(var))
    }

    /// The first value after a closed upper bound, as half-open ranges write it.
    fn after(&self, upper: Expr) -> String {
        let mut normalizer = Normalizer::new(self.context);
        let after = normalizer
            .polynomial(upper)
            .and_then(|upper| normalizer.expr(&upper.plus(1)?));
        after.map_or_else(|_| "...".to_owned(), |after| self.text(after))
    }

    fn range(&self, range: Range) -> String {
        format!("{}:{}", self.text(range.lower), self.after(range.upper))
    }

    /// `lower <= what < upper + 1`, with the ends that there are.
    fn interval(&self, what: &str, lower: Option<Expr>, upper: Option<Expr>) -> String {
        let lower = lower
            .map(|lower| format!("{} <= ", self.text(lower)))
            .unwrap_or_default();
        let upper = upper
            .map(|upper| format!(" < {}", self.after(upper)))
            .unwrap_or_default();
        format!("{lower}{what}{upper}")
    }

    fn condition(&self, argument: Expr, lower: Option<Expr>, upper: Option<Expr>) -> String {
        self.interval(&self.text(argument), lower, upper)
    }

    fn suggestion(&self, index_var: usize) -> String {
        let name = &self.statement.index_vars[index_var].name;
        let size = name
            .strip_prefix("r_")
            .filter(|rest| !rest.is_empty())
            .unwrap_or(name)
            .to_uppercase();
        format!("try a range for it: 'where {name} in 0:{size}'")
    }

    fn reason(&self, error: &SolveError, index_var: usize) -> String {
        let name = &self.statement.index_vars[index_var].name;
        match error {
            SolveError::NotLinear => format!("it is not linear in '{name}'"),
            SolveError::VaryingCoefficient { with } => {
                format!(
                    "the coefficient of '{name}' changes with '{}'",
                    self.of(*with)
                )
            }
            SolveError::UnknownSign { coefficient } => {
                format!(
                    "the sign of '{}' depends on the sizes",
                    self.text(*coefficient)
                )
            }
            SolveError::NotMonotone { var } => {
                format!("it rises and falls with '{}'", self.of(*var))
            }
            SolveError::Unbounded { var } => {
                format!("'{}' is known only at run time", self.of(*var))
            }
            SolveError::Undecided { condition } => {
                let condition = condition_text(self.context, *condition, &|var| self.of(var));
                format!("the bound differs with '{condition}'")
            }
            error => error.to_string(),
        }
    }
}

/// The inference as text, round by round: what each access argument gave, the ranges, and at the end which
/// arguments are in bounds and under what conditions.
pub fn explain(
    context: &Context,
    scope: &Scope,
    statement: &Statement,
    inference: &Inference,
) -> String {
    let names = Names {
        context,
        scope,
        statement,
    };
    let variable = |index_var: usize| statement.index_vars[index_var].name.as_str();
    let place = |access: usize, dim: usize| {
        let Access {
            text, args, dims, ..
        } = &statement.accesses[access];
        let condition = names.condition(args[dim], Some(dims[dim].0), Some(dims[dim].1));
        format!("{text}, dimension {dim}: {condition}")
    };
    let mut lines = Vec::new();
    let mut in_checks = false;
    for step in &inference.steps {
        if matches!(
            step,
            Step::ByConstruction { .. } | Step::Proven { .. } | Step::Left { .. }
        ) && !in_checks
        {
            in_checks = true;
            lines.push("bounds of the reads".to_owned());
        }
        lines.push(match step {
            Step::Declared { index_var, range } => {
                format!("where {} in {}", variable(*index_var), names.range(*range))
            }
            Step::Round(number) => format!("round {number}"),
            Step::Waits {
                access,
                dim,
                unresolved,
            } => {
                let unresolved: Vec<_> = unresolved
                    .iter()
                    .map(|&index_var| variable(index_var))
                    .collect();
                format!(
                    "  {} waits for all but one of {}",
                    place(*access, *dim),
                    unresolved.join(", ")
                )
            }
            Step::Bounds {
                access,
                dim,
                index_var,
                lower,
                upper,
            } => {
                let gives = match (lower, upper) {
                    (None, None) => format!("does not bound {}", variable(*index_var)),
                    _ => format!(
                        "gives {}",
                        names.interval(variable(*index_var), *lower, *upper)
                    ),
                };
                format!("  {} {gives}", place(*access, *dim))
            }
            Step::Unsolved {
                access,
                dim,
                index_var,
                reason,
            } => {
                format!(
                    "  {} gives nothing for {}: {reason}",
                    place(*access, *dim),
                    variable(*index_var)
                )
            }
            Step::Resolved {
                index_var,
                range,
                num_bounds,
            } => {
                let from = if *num_bounds == 1 {
                    String::new()
                } else {
                    format!(", by {num_bounds} conditions")
                };
                format!(
                    "  so {} in {}{from}",
                    variable(*index_var),
                    names.range(*range)
                )
            }
            Step::ByConstruction { access, dim } => {
                format!("  {} holds by construction", place(*access, *dim))
            }
            Step::Proven { access, dim } => format!("  {} is proven", place(*access, *dim)),
            Step::Left { precondition } => {
                let precondition = &inference.preconditions[*precondition];
                let place = place(precondition.access, precondition.dim);
                let guarded = if precondition.guarded {
                    ", where the read is performed"
                } else {
                    ""
                };
                format!(
                    "  {place} is left as the precondition {}{guarded}",
                    precondition.text
                )
            }
        });
    }
    for diagnostic in &inference.diagnostics {
        if diagnostic.kind.severity() == Severity::Error {
            lines.push(format!("error: {}", diagnostic.message));
            lines.extend(diagnostic.notes.iter().map(|(_, note)| format!("  {note}")));
        }
    }
    let mut text = lines.join("\n");
    text.push('\n');
    text
}
