//! Relations between elements of an output and elements of operands.
//!
//! A [`Relation`] says it once, without a direction: *variables* with ranges, for each of the
//! arrays which variable its index is in each dimension, and linear *equations* between the
//! variables. For a window of a convolution these are the output position `o`, the position `w` in
//! the window and the input position `i`, with `o * stride + w * dilation - padding == i`. Both maps
//! of a pair follow from that by [`Relation::map`], so that they are inverses of each other, and
//! [`Accesses`] of loops over one of the arrays.
//!
//! The method: the variables of the source array become dimension variables. An equation whose
//! unknowns are digits of a number (each coefficient larger than all that the smaller ones add up
//! to, as in `8*a + b` with `b in [0, 7]`) gives them as quotients and remainders, with constraints
//! where not every number has such digits. When no equation does, the next unknown becomes a range
//! variable, in the order of their declaration; those of the target array that stand in an equation
//! come last.
//!
//! Runtime variables are known from the start: they stand for values of other instructions.

use super::{Accesses, Direction, OperandIndexing, RuntimeSource, RuntimeVariable};
use tc_ir::{Constraint, Context, Expr, IndexingMap, Interval, Node, Variable};

/// A variable of a [`Relation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VarId(usize);

/// The index of an array in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Index {
    /// The value of a variable.
    Var(VarId),
    /// Always the same.
    Const(i64),
}

/// `sum of coefficient * variable + constant == 0`.
#[derive(Clone, Debug)]
pub(super) struct Equation {
    terms: Vec<(i64, VarId)>,
    constant: i64,
    /// Whether what it is solved for must stay in its range.
    checked: bool,
}

/// The terms and the constant add up to a multiple of the step in the interval.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub terms: Vec<(i64, VarId)>,
    pub constant: i64,
    pub step: i64,
    pub interval: Interval,
}

#[derive(Clone, Debug)]
pub(super) struct Runtime {
    var: VarId,
    source: RuntimeSource,
    index: Vec<Index>,
    moved: bool,
}

/// See the [module](self) text.
#[derive(Clone, Debug, Default)]
pub(super) struct Relation {
    pub(super) vars: Vec<Interval>,
    pub(super) equations: Vec<Equation>,
    /// Sums that lie in an interval.
    pub(super) bounds: Vec<(Vec<(i64, VarId)>, Interval)>,
    /// Where the arrays are not related although everything else says so: where all conditions of
    /// one of the lists hold.
    pub(super) exceptions: Vec<Vec<Condition>>,
    pub(super) runtimes: Vec<Runtime>,
    /// The index of the output.
    pub output: Vec<Index>,
    /// The index of each operand that the relation is asked for.
    pub operands: Vec<Vec<Index>>,
    /// Which replica of the group the operand is read from; this one if it is not said.
    pub replica: Option<Index>,
    /// Which array of the operand is meant.
    pub array: usize,
    /// Whether values decide if the arrays are related at all.
    pub is_conditional: bool,
    /// Whether the map is simplified. XLA leaves the maps of most single instructions as their
    /// definition gives them, and simplifies those that it composes from several steps.
    pub simplify: bool,
    /// Whether the index of a dimension of one element is a variable with one value. Otherwise it is a constant.
    pub keeps_points: bool,
}

impl Relation {
    /// A variable over the positions of a dimension.
    pub fn var(&mut self, extent: i64) -> VarId {
        self.vars.push(Interval::new(0, extent.saturating_sub(1)));
        VarId(self.vars.len() - 1)
    }

    /// A variable for each dimension.
    pub fn vars(&mut self, dims: &[i64]) -> Vec<VarId> {
        dims.iter().map(|&extent| self.var(extent)).collect()
    }

    /// A value that is known when the program runs; `index` leads to it in the array that holds
    /// it, and `moved` says whether it is moved into the interval.
    pub fn runtime(
        &mut self,
        interval: Interval,
        source: RuntimeSource,
        index: Vec<Index>,
        moved: bool,
    ) -> VarId {
        self.vars.push(interval);
        let var = VarId(self.vars.len() - 1);
        self.runtimes.push(Runtime { var, source, index, moved });
        var
    }

    /// The sources and the intervals of the runtime variables.
    pub fn runtime_sources(&self) -> impl Iterator<Item = (RuntimeSource, Interval)> {
        self.runtimes.iter().map(|runtime| (runtime.source, self.vars[runtime.var.0]))
    }

    /// Demands that the terms and the constant add up to 0.
    pub fn equate(&mut self, terms: impl Into<Vec<(i64, VarId)>>, constant: i64) {
        self.equations.push(Equation { terms: terms.into(), constant, checked: true });
    }

    /// As [`equate`](Self::equate), but what it is solved for may leave its range.
    pub fn equate_unchecked(&mut self, terms: impl Into<Vec<(i64, VarId)>>, constant: i64) {
        self.equations.push(Equation { terms: terms.into(), constant, checked: false });
    }

    /// Demands that the terms add up to something in the interval.
    pub fn bound(&mut self, terms: impl Into<Vec<(i64, VarId)>>, interval: Interval) {
        self.bounds.push((terms.into(), interval));
    }

    /// Demands that one of the conditions does not hold.
    pub fn except(&mut self, conditions: Vec<Condition>) {
        self.exceptions.push(conditions);
    }

    /// Whether a variable stands for something besides itself.
    fn mentions(&self, var: VarId) -> bool {
        let in_terms = |terms: &[(i64, VarId)]| terms.iter().any(|(_, each)| *each == var);
        let index = self.output.iter().chain(self.operands.iter().flatten()).chain(&self.replica);
        let index = index.chain(self.runtimes.iter().flat_map(|runtime| &runtime.index));
        index.into_iter().any(|each| *each == Index::Var(var))
            || self.equations.iter().any(|equation| in_terms(&equation.terms))
            || self.bounds.iter().any(|(terms, _)| in_terms(terms))
            || self.exceptions.iter().flatten().any(|condition| in_terms(&condition.terms))
    }

    /// The same between an output and one operand with the two exchanged.
    pub fn swapped(mut self) -> Self {
        if let [operand] = &mut self.operands[..] {
            std::mem::swap(&mut self.output, operand);
        }
        self
    }

    /// The map between output and first operand in the given direction; `None` if a number does not
    /// fit in an `i64`.
    pub fn map(&self, ctx: &Context, direction: Direction) -> Option<OperandIndexing> {
        let operand = self.operands.first()?;
        let (source, target) = match direction {
            Direction::OutputToInput => (&self.output, operand),
            Direction::InputToOutput => (operand, &self.output),
        };
        if self.vars.iter().any(|interval| interval.is_empty()) {
            return Some(OperandIndexing::empty(ctx, source.len(), target.len(), self.array));
        }
        let mut solver = Solver::new(ctx, self);
        solver.bind_source(source);
        solver.solve(target)?;
        solver.restrict()?;
        let mut map = solver.map.clone();
        map.results = solver.values(target)?;
        let unrestricted = solver.unrestricted();
        let runtimes = solver.runtimes(&unrestricted)?;
        let replica = match &self.replica {
            Some(index) => {
                Some(IndexingMap { results: vec![solver.value(*index)?], ..unrestricted.clone() })
            }
            None => None,
        };
        let mut exceptions = Vec::with_capacity(self.exceptions.len());
        for conditions in &self.exceptions {
            let mut solver = solver.clone();
            solver.map = unrestricted.clone();
            for Condition { terms, constant, step, interval } in conditions {
                let sum = solver.sum(terms)?;
                let sum = ctx.add(sum, ctx.constant(*constant));
                solver.constrain(sum, *interval)?;
                let rest = ctx.modulo(sum, ctx.constant(*step));
                solver.constrain(rest, Interval::point(0))?;
            }
            exceptions.push(solver.map);
        }
        let (array, is_conditional) = (self.array, self.is_conditional);
        let mut indexing =
            OperandIndexing { array, map, runtimes, replica, exceptions, is_conditional };
        indexing.simplify_exceptions(ctx);
        if self.simplify {
            indexing.simplify(ctx);
        }
        Some(indexing)
    }

    /// Loops over one array, and the elements of the other arrays that each iteration accesses; `None`
    /// if a number does not fit in an `i64`.
    pub fn accesses(&self, ctx: &Context, direction: Direction) -> Option<Accesses> {
        let (source, targets) = match direction {
            Direction::OutputToInput => (&self.output, &self.operands[..]),
            Direction::InputToOutput => {
                (self.operands.first()?, std::slice::from_ref(&self.output))
            }
        };
        let mut solver = Solver::new(ctx, self);
        solver.for_loops = true;
        if self.vars.iter().any(|interval| interval.is_empty()) {
            let mut domain = solver.map;
            domain.dims = vec![Variable::default(); source.len()];
            domain.set_known_empty(ctx);
            return Some(Accesses { domain, ..Accesses::default() });
        }
        solver.bind_source(source);
        solver.solve(targets.first()?)?;
        solver.restrict()?;
        let index = solver.values(source)?;
        let indices = targets.iter().map(|target| solver.values(target)).collect::<Option<_>>()?;
        let runtimes = solver.runtimes(&solver.unrestricted())?;
        let Solver { map: mut domain, free_dims: dims, .. } = solver;
        for constraint in std::mem::take(&mut domain.constraints) {
            if !constraint.interval.covers(domain.range_of(ctx, constraint.expr).interval) {
                domain.constraints.push(constraint);
            }
        }
        // The whole output is computed, also where there is nothing to read.
        if direction == Direction::OutputToInput {
            for (number, (narrowed, dim)) in (0..).zip(domain.dims.iter_mut().zip(dims)) {
                if *narrowed != dim {
                    let interval = narrowed.constant_interval(ctx)?;
                    domain.constraints.push(Constraint { expr: ctx.dim(number), interval });
                    *narrowed = dim;
                }
            }
        }
        Some(Accesses { domain, index, indices, runtimes })
    }
}

#[derive(Clone)]
struct Solver<'r> {
    ctx: &'r Context,
    relation: &'r Relation,
    bound: Vec<Option<Expr>>,
    map: IndexingMap,
    /// The dimension variables as they were before constraints narrowed them.
    free_dims: Vec<Variable>,
    /// Whether the map is that of loops: a variable of one value needs none, and the sum of a
    /// constraint is the subscript that it keeps inside.
    for_loops: bool,
}

impl<'r> Solver<'r> {
    fn new(ctx: &'r Context, relation: &'r Relation) -> Self {
        let mut bound = vec![None; relation.vars.len()];
        let mut map = IndexingMap::default();
        for (number, runtime) in (0..).zip(&relation.runtimes) {
            bound[runtime.var.0] = Some(ctx.runtime(number));
            map.runtimes.push(Variable::bounded(ctx, relation.vars[runtime.var.0]));
        }
        Self { ctx, relation, bound, map, free_dims: Vec::new(), for_loops: false }
    }

    fn value(&self, index: Index) -> Option<Expr> {
        match index {
            Index::Var(var) => self.bound[var.0],
            Index::Const(value) => Some(self.ctx.constant(value)),
        }
    }

    fn values(&self, index: &[Index]) -> Option<Vec<Expr>> {
        index.iter().map(|&index| self.value(index)).collect()
    }

    /// The variables of the map without what restricts them.
    fn unrestricted(&self) -> IndexingMap {
        let (dims, constraints) = (self.free_dims.clone(), Vec::new());
        IndexingMap { dims, constraints, ..self.map.clone() }
    }

    /// What the runtime variables stand for; `frame` has the variables of the map.
    fn runtimes(&self, frame: &IndexingMap) -> Option<Vec<RuntimeVariable>> {
        let runtime = |Runtime { var, source, index, moved }: &Runtime| {
            let map = IndexingMap { results: self.values(index)?, ..frame.clone() };
            let moved_into = moved.then_some(self.relation.vars[var.0]);
            Some(RuntimeVariable { source: *source, map, moved_into })
        };
        self.relation.runtimes.iter().map(runtime).collect()
    }

    fn bind_source(&mut self, source: &[Index]) {
        for (number, index) in (0..).zip(source) {
            let dim = self.ctx.dim(number);
            let interval = match *index {
                Index::Var(var) => {
                    match self.bound[var.0] {
                        None => self.bound[var.0] = Some(dim),
                        Some(same) => self.map.constraints.push(Constraint {
                            expr: self.ctx.sub(dim, same),
                            interval: Interval::point(0),
                        }),
                    }
                    self.relation.vars[var.0]
                }
                Index::Const(value) => Interval::point(value),
            };
            self.map.dims.push(Variable::bounded(self.ctx, interval));
        }
        self.free_dims = self.map.dims.clone();
    }

    fn solve(&mut self, target: &[Index]) -> Option<()> {
        let mut open: Vec<&Equation> = self.relation.equations.iter().collect();
        let mentioned: Vec<VarId> =
            (0..self.bound.len()).map(VarId).filter(|&var| self.relation.mentions(var)).collect();
        loop {
            let mut rest = Vec::new();
            let before = open.len();
            for equation in open {
                if !self.solve_equation(equation)? {
                    rest.push(equation);
                }
            }
            let progress = rest.len() < before;
            open = rest;
            if progress {
                continue;
            }
            let unbound = |var: &&VarId| self.bound[var.0].is_none();
            let mut all = mentioned.iter().filter(unbound);
            // A variable of the target that an equation may still give waits for it.
            let waits = |var: &&VarId| {
                target.contains(&Index::Var(**var))
                    && open.iter().any(|it| it.terms.iter().any(|(_, each)| each == *var))
            };
            let next = all.clone().find(|var| !waits(var)).or_else(|| all.next());
            let Some(&var) = next else { return Some(()) };
            let interval = self.relation.vars[var.0];
            if let Some(value) = interval.as_point().filter(|_| self.for_loops) {
                self.bound[var.0] = Some(self.ctx.constant(value));
                continue;
            }
            let number = u32::try_from(self.map.ranges.len()).ok()?;
            self.bound[var.0] = Some(self.ctx.range(number));
            self.map.ranges.push(Variable::bounded(self.ctx, interval));
        }
    }

    /// Solves an equation for its unknowns, if they are digits; an equation without unknowns
    /// becomes a constraint.
    fn solve_equation(&mut self, equation: &Equation) -> Option<bool> {
        let (known, unknown): (Vec<_>, Vec<_>) =
            equation.terms.iter().copied().partition(|(_, var)| self.bound[var.0].is_some());
        let positive = unknown.iter().all(|(factor, _)| 0 < *factor);
        let negative = unknown.iter().all(|(factor, _)| *factor < 0);
        if !positive && !negative {
            return Some(false);
        }
        // `sum of factor * unknown == sum of known + constant`, with positive factors.
        let sign = if positive { -1 } else { 1 };
        let mut constant = equation.constant.checked_mul(sign)?;
        let mut sum = self.ctx.constant(0);
        let is_shift = matches!(known[..], [(factor, _)] if factor.checked_mul(sign) == Some(1))
            && matches!(unknown[..], [(1 | -1, _)]);
        for (factor, var) in known {
            let factor = self.ctx.constant(factor.checked_mul(sign)?);
            sum = self.ctx.add(sum, self.ctx.mul(self.bound[var.0]?, factor));
        }
        let mut digits = Vec::new();
        for (factor, var) in unknown {
            let factor = factor.checked_abs()?;
            let Interval { lo, hi } = self.relation.vars[var.0];
            constant = constant.checked_sub(factor.checked_mul(lo)?)?;
            digits.push((factor, hi.checked_sub(lo)?, lo, var));
        }
        digits.sort_by_key(|&(factor, ..)| std::cmp::Reverse(factor));
        let mut largest = 0i64;
        for &(factor, span, ..) in digits.iter().rev() {
            if span != 0 && factor <= largest {
                return Some(false);
            }
            largest = largest.checked_add(factor.checked_mul(span)?)?;
        }
        let number = self.ctx.add(sum, self.ctx.constant(constant));
        if equation.checked {
            self.constrain(number, Interval::new(0, largest))?;
        }
        // What the digits so far leave of the number, and what the last one counted.
        let mut rest = number;
        let mut unit = None;
        for (factor, span, lo, var) in digits {
            if span == 0 && !(is_shift && self.relation.keeps_points) {
                self.bound[var.0] = Some(self.ctx.constant(lo));
                continue;
            }
            if let Some(unit) = unit {
                rest = self.ctx.modulo(rest, self.ctx.constant(unit));
            }
            let digit = self.ctx.floor_div(rest, self.ctx.constant(factor));
            if equation.checked && unit.is_some_and(|unit: i64| span < (unit - 1) / factor) {
                self.constrain(digit, Interval::new(0, span))?;
            }
            self.bound[var.0] = Some(self.ctx.add(digit, self.ctx.constant(lo)));
            unit = Some(factor);
        }
        if equation.checked
            && let Some(unit) = unit.filter(|&unit| unit != 1)
        {
            let remainder = self.ctx.modulo(rest, self.ctx.constant(unit));
            self.constrain(remainder, Interval::point(0))?;
        }
        Some(true)
    }

    /// Restricts the domain to where the expression lies in the interval.
    fn constrain(&mut self, expr: Expr, interval: Interval) -> Option<()> {
        let intervals = self.map.intervals(self.ctx);
        if interval.covers(self.ctx.interval_of(expr, &|var| intervals.of(var))) {
            return Some(());
        }
        let (expr, interval) = match self.ctx.node(expr) {
            // `x + c in [lo, hi]` is `x in [lo - c, hi - c]`, which may bound a variable.
            Node::Add(inner, offset)
                if self.ctx.as_constant(offset).is_some()
                    && (!self.for_loops || matches!(self.ctx.node(inner), Node::Var(_))) =>
            {
                let offset = self.ctx.as_constant(offset)?;
                let ends = (interval.lo.checked_sub(offset)?, interval.hi.checked_sub(offset)?);
                (inner, Interval::new(ends.0, ends.1))
            }
            _ => (expr, interval),
        };
        self.map.add_constraint(self.ctx, expr, interval);
        Some(())
    }

    fn sum(&self, terms: &[(i64, VarId)]) -> Option<Expr> {
        terms.iter().try_fold(self.ctx.constant(0), |sum, &(factor, var)| {
            let factor = self.ctx.constant(factor);
            Some(self.ctx.add(sum, self.ctx.mul(self.bound[var.0]?, factor)))
        })
    }

    /// Adds the bounds of sums as constraints.
    fn restrict(&mut self) -> Option<()> {
        for (terms, interval) in &self.relation.bounds {
            let sum = self.sum(terms)?;
            let intervals = self.map.intervals(self.ctx);
            if !interval.covers(self.ctx.interval_of(sum, &|var| intervals.of(var))) {
                self.map.add_constraint(self.ctx, sum, *interval);
            }
        }
        Some(())
    }
}
