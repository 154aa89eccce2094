//! Solves equations between shapes.
//!
//! Source: Axon, section 5. Each equation is taken apart by the rules of that section: equal
//! dimensions at both ends of two shapes are paired (*unpacking*, *append unpacking*), what lies
//! beside dimensions that a known rank needs is empty (*empty shapes*), ranks that do not fit fail
//! (*append dimensionality*), sizes are brought to canonical form (*simplification*), constants move
//! to the other side (*arithmetic simplification*), and a variable alone on one side is replaced
//! everywhere (*basic rules*). What no rule applies to is a *residual*: it is kept, an expression that
//! is known to be a constant is replaced by it elsewhere (*partial expressions*), and the program has
//! to check it when it runs.
//!
//! Where the paper leaves a choice:
//! - a shape or size that would have to contain itself fails; so does an equation between sizes that
//!   no positive integers satisfy (`(* d 4) = 13`);
//! - parts that both sides have in common are dropped: `(+ m 1) = (+ n 1)` gives `m = n`;
//! - two adjacent unknown shapes are never guessed: `p@q = [2,3]` is a residual.
//!
//! Every step keeps the set of solutions, so that a failure means that there is none, and what is
//! solved without residuals holds for all values of the free variables. The order of the equations
//! chooses only which of two variables stands for both.
//!
//! Replacement is by reference: a variable keeps its value, an equation that waits is found through
//! the variables in it. So the cost of an equation follows from its own size and not from that of
//! the set; each solved variable wakes the equations that wait for it, once. A step that binds a
//! variable leaves one variable less, one that rewrites by a residual leaves fewer terms, and all
//! others leave shorter equations: the solver always ends.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;

use super::{Arithmetic, Dim, DimError, DimVar, Item, MAX_ITEMS, Shape, ShapeVar};
use crate::expr::Node;
use crate::polynomial::{Monomial, Normalizer, Polynomial, PolynomialError};

/// What an equation was made for, chosen by the caller.
pub type Origin = u32;

/// How much work may go into making a set of conflicting equations minimal, in equations solved.
const MAX_EXPLANATION_WORK: usize = 1 << 19;

/// How many residuals rewrite others.
const MAX_RULES: usize = 256;

/// An equation, or another condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Two shapes are equal.
    Shapes(Shape, Shape),
    /// Two dimensions are equal.
    Dims(Dim, Dim),
    /// A size is positive.
    Positive(Dim),
    /// Two shapes have the same number of elements.
    Elements(Shape, Shape),
}

/// A condition that is left, and what its equation was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residual {
    /// The condition, with all that is known put in.
    pub relation: Relation,
    /// The equation that it comes from.
    pub origin: Origin,
}

/// Why a set of equations has no solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// These dimensions are never equal.
    Dims(Dim, Dim),
    /// The ranks of these shapes are never equal.
    Rank(Shape, Shape),
    /// The shape would have to contain itself.
    Endless(Shape, Shape),
    /// A size is zero or negative.
    NotPositive(Dim),
    /// The number of elements of a ragged shape is asked for.
    RaggedElements(Shape),
    /// A size cannot be calculated.
    Arithmetic(DimError),
}

/// A contradiction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Why there is no solution.
    pub reason: Reason,
    /// The equation in which it was found, with all that is known put in.
    pub relation: Relation,
    /// What that equation was made for.
    pub origin: Origin,
    /// What a set of equations that contradict each other were made for; sorted.
    pub core: Vec<Origin>,
    /// Whether no member of the set can be left out.
    pub minimal: bool,
}

/// A step of the solver, for explanations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The rule of section 5.
    pub rule: &'static str,
    /// What the rule was applied to.
    pub relation: Relation,
    /// The equation that it comes from.
    pub origin: Origin,
}

type EquationId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Queued,
    Stuck,
    Done,
}

#[derive(Debug)]
struct Equation {
    relation: Relation,
    origin: Origin,
    /// What it was derived from; nothing if it is given.
    parents: Vec<EquationId>,
    state: State,
}

#[derive(Debug)]
struct Variable<T> {
    value: Option<(T, EquationId)>,
    /// How many definitions it is nested in, for generalization.
    level: u32,
    /// Equations that wait for a value.
    waiting: Vec<EquationId>,
}

impl<T> Variable<T> {
    fn new(level: u32) -> Self {
        Self { value: None, level, waiting: Vec::new() }
    }
}

/// A residual that says what an expression is worth.
#[derive(Debug)]
struct DimRule {
    sum: Rc<Polynomial>,
    value: i64,
    equation: EquationId,
}

#[derive(Debug)]
struct ShapeRule {
    pattern: Shape,
    value: Shape,
    equation: EquationId,
}

/// Operands of a point-wise operator and its result.
#[derive(Clone, Debug)]
struct Pointwise {
    operands: Vec<Shape>,
    result: Shape,
    origin: Origin,
}

/// A set of equations and what is known about their variables.
#[derive(Debug, Default)]
pub struct Solver {
    arithmetic: Rc<Arithmetic>,
    dims: Vec<Variable<Dim>>,
    shapes: Vec<Variable<Shape>>,
    equations: Vec<Equation>,
    queue: VecDeque<EquationId>,
    /// Equations between sums, which come last and in an order of their own: what is found does not
    /// depend on the order in which they are added.
    later: BTreeSet<(String, EquationId)>,
    dim_rules: Vec<DimRule>,
    shape_rules: Vec<ShapeRule>,
    pointwise: VecDeque<Pointwise>,
    steps: Option<Vec<Step>>,
}

/// What became of an equation.
enum Outcome {
    Done,
    Stuck,
    /// Stuck, and it says what an expression is worth.
    Rule(Rc<Polynomial>, i64),
    ShapeRule(Shape, Shape),
}

type Stepped = Result<Outcome, Reason>;

impl From<PolynomialError> for Reason {
    fn from(error: PolynomialError) -> Self {
        Self::Arithmetic(error.into())
    }
}

impl From<DimError> for Reason {
    fn from(error: DimError) -> Self {
        Self::Arithmetic(error)
    }
}

impl Solver {
    /// A solver without variables and equations.
    pub fn new() -> Self {
        Self::default()
    }

    /// A solver without variables and equations, for dimensions of the same arithmetic.
    pub fn sibling(&self) -> Self {
        Self { arithmetic: Rc::clone(&self.arithmetic), ..Self::default() }
    }

    /// Keeps the steps of the solver from now on.
    pub fn trace(&mut self) {
        self.steps.get_or_insert_default();
    }

    /// The steps since the last call.
    pub fn take_steps(&mut self) -> Vec<Step> {
        self.steps.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The arithmetic of its dimensions.
    pub fn arithmetic(&self) -> &Arithmetic {
        &self.arithmetic
    }

    /// A new dimension variable, made inside `level` definitions.
    pub fn dim_var(&mut self, level: u32) -> DimVar {
        self.dims.push(Variable::new(level));
        DimVar(self.dims.len() as u32 - 1)
    }

    /// A new shape variable, made inside `level` definitions.
    pub fn shape_var(&mut self, level: u32) -> ShapeVar {
        self.shapes.push(Variable::new(level));
        ShapeVar(self.shapes.len() as u32 - 1)
    }

    /// The outermost definition that a free variable belongs to.
    pub fn dim_level(&self, var: DimVar) -> u32 {
        self.dims[var.0 as usize].level
    }

    /// The outermost definition that a free variable belongs to.
    pub fn shape_level(&self, var: ShapeVar) -> u32 {
        self.shapes[var.0 as usize].level
    }

    /// Lowers the level of whatever is free in a shape.
    pub fn lower_levels(&mut self, shape: &Shape, level: u32) {
        let shape = self.resolved_shape(shape);
        self.limit_levels(&shape, level);
    }

    fn limit_levels(&mut self, shape: &Shape, level: u32) {
        for item in &shape.items {
            match item {
                Item::Var(var) => {
                    let old = &mut self.shapes[var.0 as usize].level;
                    *old = level.min(*old);
                }
                Item::Dim(dim) => self.limit_dim_levels(dim, level),
            }
        }
    }

    fn limit_dim_levels(&mut self, dim: &Dim, level: u32) {
        for var in self.arithmetic.vars(dim) {
            let old = &mut self.dims[var.0 as usize].level;
            *old = level.min(*old);
        }
    }

    /// Adds an equation between shapes, and that their sizes are positive.
    pub fn equate_shapes(&mut self, left: Shape, right: Shape, origin: Origin) {
        for shape in [&left, &right] {
            self.positive_sizes(shape, origin);
        }
        self.given(Relation::Shapes(left, right), origin);
    }

    /// Adds an equation between dimensions.
    pub fn equate_dims(&mut self, left: Dim, right: Dim, origin: Origin) {
        self.given(Relation::Dims(left, right), origin);
    }

    /// Adds that two shapes have the same number of elements.
    pub fn equate_elements(&mut self, left: Shape, right: Shape, origin: Origin) {
        self.given(Relation::Elements(left, right), origin);
    }

    /// Adds that the sizes of a shape are positive.
    pub fn positive_sizes(&mut self, shape: &Shape, origin: Origin) {
        for item in &shape.items {
            if let Item::Dim(dim @ (Dim::Constant(..=0) | Dim::Sum(_))) = item {
                self.given(Relation::Positive(dim.clone()), origin);
            }
        }
    }

    /// Adds a condition.
    pub fn given(&mut self, relation: Relation, origin: Origin) {
        self.add(relation, origin, Vec::new());
    }

    /// Adds a point-wise operation: the shapes are equal, or if they cannot be, those of some
    /// operands are the last part of the result's. [`Solver::solve_pointwise`] decides.
    pub fn pointwise(&mut self, operands: Vec<Shape>, result: Shape, origin: Origin) {
        self.pointwise.push_back(Pointwise { operands, result, origin });
    }

    fn add(&mut self, relation: Relation, origin: Origin, parents: Vec<EquationId>) {
        let id = self.equations.len() as EquationId;
        self.equations.push(Equation { relation, origin, parents, state: State::Queued });
        self.enqueue(id);
    }

    fn enqueue(&mut self, id: EquationId) {
        match &self.equations[id as usize].relation {
            relation @ (Relation::Dims(Dim::Sum(_), _) | Relation::Dims(_, Dim::Sum(_))) => {
                self.later.insert((format!("0 {relation:?}"), id));
            }
            relation @ Relation::Positive(_) => {
                self.later.insert((format!("1 {relation:?}"), id));
            }
            _ => self.queue.push_back(id),
        }
    }

    fn dequeue(&mut self) -> Option<EquationId> {
        let first = self.queue.pop_front();
        first.or_else(|| self.later.pop_first().map(|(_, id)| id))
    }

    /// How many equations there are; those made later have higher numbers.
    pub fn mark(&self) -> usize {
        self.equations.len()
    }

    /// Applies the rules until none applies. After a conflict, the equation in which it was found
    /// counts as solved, and the next call goes on with the others.
    ///
    /// # Errors
    /// The equations contradict each other.
    pub fn solve(&mut self) -> Result<(), Box<Conflict>> {
        self.run().map_err(|(id, reason)| Box::new(self.conflict(id, reason)))
    }

    /// As [`Solver::solve`], without an explanation.
    fn run(&mut self) -> Result<(), (EquationId, Reason)> {
        while let Some(id) = self.dequeue() {
            self.equations[id as usize].state = State::Done;
            let relation = self.equations[id as usize].relation.clone();
            let old_rule = self.take_rule(id);
            match self.step(id, relation) {
                Ok(Outcome::Done) => {}
                Ok(outcome) => self.wait(id, outcome, old_rule),
                Err(reason) => return Err((id, reason)),
            }
        }
        Ok(())
    }

    /// How many point-wise operations are not decided.
    pub fn num_pointwise(&self) -> usize {
        self.pointwise.len()
    }

    /// Solves the equations, then decides about point-wise operations but for the first `keep`, one
    /// after the other in the order in which they were added, and solves again after each.
    ///
    /// # Errors
    /// The equations contradict each other.
    pub fn solve_pointwise(&mut self, keep: usize) -> Result<(), Box<Conflict>> {
        loop {
            self.solve()?;
            let Some(next) = self.pointwise.remove(keep) else { return Ok(()) };
            self.decide(next);
        }
    }

    /// Forgets point-wise operations that are not decided, and equations that are not solved.
    pub fn abandon(&mut self) {
        self.pointwise.clear();
        while let Some(id) = self.dequeue() {
            self.equations[id as usize].state = State::Done;
        }
    }

    fn note(&mut self, rule: &'static str, id: EquationId, relation: impl FnOnce() -> Relation) {
        let origin = self.equations[id as usize].origin;
        if let Some(steps) = &mut self.steps {
            steps.push(Step { rule, relation: relation(), origin });
        }
    }

    /// Registers an equation that no rule applies to.
    fn wait(&mut self, id: EquationId, outcome: Outcome, old: Option<Outcome>) {
        self.equations[id as usize].state = State::Stuck;
        let relation = self.resolved(&self.equations[id as usize].relation.clone());
        let mut shapes = Vec::new();
        let mut dims = Vec::new();
        match &relation {
            Relation::Shapes(a, b) | Relation::Elements(a, b) => {
                for item in a.items.iter().chain(&b.items) {
                    match item {
                        Item::Var(var) => shapes.push(*var),
                        Item::Dim(dim) => dims.extend(self.arithmetic.vars(dim)),
                    }
                }
            }
            Relation::Dims(a, b) => {
                dims.extend(self.arithmetic.vars(a));
                dims.extend(self.arithmetic.vars(b));
            }
            Relation::Positive(dim) => dims.extend(self.arithmetic.vars(dim)),
        }
        shapes.sort_unstable();
        shapes.dedup();
        dims.sort_unstable();
        dims.dedup();
        for var in shapes {
            self.shapes[var.0 as usize].waiting.push(id);
        }
        for var in dims {
            self.dims[var.0 as usize].waiting.push(id);
        }
        match outcome {
            Outcome::Rule(sum, value) if self.dim_rules.len() < MAX_RULES => {
                let known = matches!(&old, Some(Outcome::Rule(a, b)) if *a == sum && *b == value);
                let var = self.arithmetic.polynomial_vars(&sum).first().copied();
                self.dim_rules.push(DimRule { sum, value, equation: id });
                if let Some(var) = var.filter(|_| !known) {
                    let waiting = self.dims[var.0 as usize].waiting.clone();
                    self.wake(waiting, Some(id));
                }
            }
            Outcome::ShapeRule(pattern, value) if self.shape_rules.len() < MAX_RULES => {
                let known =
                    matches!(&old, Some(Outcome::ShapeRule(a, b)) if *a == pattern && *b == value);
                let var = pattern.items.iter().find_map(|item| match item {
                    Item::Var(var) => Some(*var),
                    Item::Dim(_) => None,
                });
                self.shape_rules.push(ShapeRule { pattern, value, equation: id });
                if let Some(var) = var.filter(|_| !known) {
                    let waiting = self.shapes[var.0 as usize].waiting.clone();
                    self.wake(waiting, Some(id));
                }
            }
            _ => {}
        }
    }

    fn wake(&mut self, equations: Vec<EquationId>, except: Option<EquationId>) {
        for id in equations {
            let equation = &mut self.equations[id as usize];
            if equation.state == State::Stuck && Some(id) != except {
                equation.state = State::Queued;
                self.enqueue(id);
            }
        }
    }

    /// The rule that an equation has given rise to, which is removed.
    fn take_rule(&mut self, id: EquationId) -> Option<Outcome> {
        if let Some(at) = self.dim_rules.iter().position(|rule| rule.equation == id) {
            let rule = self.dim_rules.swap_remove(at);
            return Some(Outcome::Rule(rule.sum, rule.value));
        }
        let at = self.shape_rules.iter().position(|rule| rule.equation == id)?;
        let rule = self.shape_rules.swap_remove(at);
        Some(Outcome::ShapeRule(rule.pattern, rule.value))
    }

    // Values of variables.

    /// Makes the value of a variable free of variables that have a value themselves.
    fn flatten_dim(&mut self, var: DimVar) -> Result<(), DimError> {
        let mut pending = vec![var];
        while let Some(&top) = pending.last() {
            let Some((value, _)) = &self.dims[top.0 as usize].value else {
                pending.pop();
                continue;
            };
            let value = value.clone();
            let inner: Vec<DimVar> = self.arithmetic.vars(&value);
            let mut deep = false;
            let mut bound = false;
            for var in inner {
                if let Some((value, _)) = &self.dims[var.0 as usize].value {
                    bound = true;
                    let vars = self.arithmetic.vars(value);
                    if vars.iter().any(|var| self.dims[var.0 as usize].value.is_some()) {
                        pending.push(var);
                        deep = true;
                    }
                }
            }
            if deep {
                continue;
            }
            if bound {
                let arithmetic = Rc::clone(&self.arithmetic);
                let dims = &self.dims;
                let flat = arithmetic.substitute(&value, &mut |var| {
                    dims[var.0 as usize].value.as_ref().map(|(value, _)| value.clone())
                })?;
                if let Some((value, _)) = &mut self.dims[top.0 as usize].value {
                    *value = flat;
                }
            }
            pending.pop();
        }
        Ok(())
    }

    fn try_dim(&mut self, dim: &Dim) -> Result<Dim, DimError> {
        let vars = match dim {
            Dim::Ragged | Dim::Constant(_) => return Ok(dim.clone()),
            Dim::Var(var) if self.dims[var.0 as usize].value.is_none() => return Ok(dim.clone()),
            _ => self.arithmetic.vars(dim),
        };
        for var in vars {
            self.flatten_dim(var)?;
        }
        let arithmetic = Rc::clone(&self.arithmetic);
        let dims = &self.dims;
        arithmetic.substitute(dim, &mut |var| {
            dims[var.0 as usize].value.as_ref().map(|(value, _)| value.clone())
        })
    }

    fn flatten_shape(&mut self, var: ShapeVar) -> Result<(), DimError> {
        let mut pending = vec![var];
        while let Some(&top) = pending.last() {
            let Some((value, _)) = &self.shapes[top.0 as usize].value else {
                pending.pop();
                continue;
            };
            let bound = |solver: &Self, var: ShapeVar| {
                solver.shapes[var.0 as usize].value.as_ref().map(|(value, _)| value.clone())
            };
            let mut deep = false;
            let mut flat = Shape::default();
            for item in &value.items {
                match item {
                    Item::Var(var) => match bound(self, *var) {
                        None => flat.items.push(item.clone()),
                        Some(inner) => {
                            let is_bound = |item: &Item| match item {
                                Item::Var(var) => self.shapes[var.0 as usize].value.is_some(),
                                Item::Dim(_) => false,
                            };
                            if inner.items.iter().any(is_bound) {
                                pending.push(*var);
                                deep = true;
                            }
                            flat.items.extend(inner.items);
                        }
                    },
                    Item::Dim(_) => flat.items.push(item.clone()),
                }
            }
            if deep {
                continue;
            }
            if MAX_ITEMS < flat.items.len() {
                return Err(DimError::TooLarge);
            }
            if let Some((value, _)) = &mut self.shapes[top.0 as usize].value {
                *value = flat;
            }
            pending.pop();
        }
        Ok(())
    }

    fn try_shape(&mut self, shape: &Shape) -> Result<Shape, DimError> {
        let mut items = Shape::default();
        for item in &shape.items {
            match item {
                Item::Dim(dim) => items.items.push(Item::Dim(self.try_dim(dim)?)),
                Item::Var(var) => {
                    self.flatten_shape(*var)?;
                    match self.shapes[var.0 as usize].value.clone() {
                        None => items.items.push(item.clone()),
                        Some((value, _)) => {
                            for item in value.items {
                                items.items.push(match item {
                                    Item::Dim(dim) => Item::Dim(self.try_dim(&dim)?),
                                    other => other,
                                });
                            }
                        }
                    }
                }
            }
        }
        if MAX_ITEMS < items.items.len() {
            return Err(DimError::TooLarge);
        }
        Ok(items)
    }

    /// A shape with all that is known put in, residuals included. What would be too large stays as
    /// it is.
    pub fn resolved_shape(&mut self, shape: &Shape) -> Shape {
        let mut result = self.try_shape(shape).unwrap_or_else(|_| shape.clone());
        result = self.rewritten(&result).unwrap_or(result);
        if !self.dim_rules.is_empty() {
            for item in &mut result.items {
                if let Item::Dim(dim) = item {
                    *dim = self.reduced(dim).unwrap_or_else(|_| dim.clone());
                }
            }
        }
        result
    }

    /// A dimension with all that is known put in, residuals included. What would be too large stays
    /// as it is.
    pub fn resolved_dim(&mut self, dim: &Dim) -> Dim {
        let dim = self.try_dim(dim).unwrap_or_else(|_| dim.clone());
        self.reduced(&dim).unwrap_or(dim)
    }

    /// A condition with all that is known put in, but for residuals.
    fn resolved(&mut self, relation: &Relation) -> Relation {
        let shape = |solver: &mut Self, shape: &Shape| {
            solver.try_shape(shape).unwrap_or_else(|_| shape.clone())
        };
        let dim =
            |solver: &mut Self, dim: &Dim| solver.try_dim(dim).unwrap_or_else(|_| dim.clone());
        match relation {
            Relation::Shapes(a, b) => Relation::Shapes(shape(self, a), shape(self, b)),
            Relation::Elements(a, b) => Relation::Elements(shape(self, a), shape(self, b)),
            Relation::Dims(a, b) => Relation::Dims(dim(self, a), dim(self, b)),
            Relation::Positive(a) => Relation::Positive(dim(self, a)),
        }
    }

    /// The conditions that are left, of the equations from a mark on.
    pub fn residuals(&mut self, from: usize) -> Vec<Residual> {
        let stuck = (from..self.equations.len())
            .filter(|&id| self.equations[id].state == State::Stuck)
            .map(|id| (self.equations[id].relation.clone(), self.equations[id].origin));
        let stuck: Vec<_> = stuck.collect();
        let mut seen = HashSet::new();
        let mut residuals = Vec::new();
        for (relation, origin) in stuck {
            let relation = self.resolved(&relation);
            if seen.insert(format!("{relation:?}")) {
                residuals.push(Residual { relation, origin });
            }
        }
        residuals
    }

    // Rewriting by residuals.

    /// A shape in which sequences that are known to be dimensions are replaced by them; `None` if
    /// there are none.
    fn rewritten(&self, shape: &Shape) -> Option<Shape> {
        let mut result = None;
        'again: loop {
            let shape: &Shape = result.as_ref().unwrap_or(shape);
            for rule in &self.shape_rules {
                let length = rule.pattern.items.len();
                let found =
                    shape.items.windows(length).position(|it| it == &rule.pattern.items[..]);
                if let Some(at) = found {
                    let mut items: Vec<Item> = shape.items.to_vec();
                    items.splice(at..at + length, rule.value.items.iter().cloned());
                    result = Some(items.into_iter().collect());
                    continue 'again;
                }
            }
            return result;
        }
    }

    /// A dimension in which expressions that are known to be constants are replaced by them.
    fn reduced(&self, dim: &Dim) -> Result<Dim, DimError> {
        match dim {
            Dim::Sum(sum) if !self.dim_rules.is_empty() => {
                let reduced = self.reduced_sum((**sum).clone())?;
                if reduced == **sum { Ok(dim.clone()) } else { self.arithmetic.dim(reduced) }
            }
            _ => Ok(dim.clone()),
        }
    }

    /// Recursion is as deep as divisions are nested, which the size of an expression limits.
    fn reduced_sum(&self, mut sum: Polynomial) -> Result<Polynomial, DimError> {
        let context = &self.arithmetic.context;
        let mut atoms = Vec::new();
        for (monomial, _) in sum.terms() {
            for &atom in monomial {
                if let Node::FloorDiv(lhs, rhs) = context.node(atom) {
                    let mut normalizer = Normalizer::new(context);
                    let old = (normalizer.polynomial(lhs)?, normalizer.polynomial(rhs)?);
                    let lhs = self.reduced_sum((*old.0).clone())?;
                    let rhs = self.reduced_sum((*old.1).clone())?;
                    if lhs != *old.0 || rhs != *old.1 {
                        if rhs.as_constant() == Some(0) {
                            return Err(DimError::DivisionByZero);
                        }
                        atoms.push((atom, Rc::new(normalizer.floor_div(&lhs, &rhs)?)));
                    }
                }
            }
        }
        if !atoms.is_empty() {
            sum = Normalizer::replacing_all(context, atoms).renormalize(&sum)?;
        }
        'again: loop {
            for rule in &self.dim_rules {
                if let Some(next) = rewrite_sum(&sum, &rule.sum, rule.value)? {
                    sum = next;
                    continue 'again;
                }
            }
            return Ok(sum);
        }
    }

    // The rules of section 5.

    fn step(&mut self, id: EquationId, relation: Relation) -> Stepped {
        match relation {
            Relation::Shapes(left, right) => self.step_shapes(id, &left, &right),
            Relation::Dims(left, right) => self.step_dims(id, &left, &right),
            Relation::Positive(dim) => self.step_positive(id, &dim),
            Relation::Elements(left, right) => self.step_elements(id, &left, &right),
        }
    }

    fn child(&mut self, id: EquationId, relation: Relation) {
        let origin = self.equations[id as usize].origin;
        self.add(relation, origin, vec![id]);
    }

    /// Replaces an equation by what residuals make of it. It may not be forgotten that this is known
    /// from them: what they are derived from may be rewritten by this equation in turn.
    fn rewritten_by_residuals(&mut self, id: EquationId, relation: Relation) -> Outcome {
        self.note("partial expressions", id, || relation.clone());
        let mut parents = vec![id];
        parents.extend(self.dim_rules.iter().map(|rule| rule.equation));
        parents.extend(self.shape_rules.iter().map(|rule| rule.equation));
        let origin = self.equations[id as usize].origin;
        self.add(relation, origin, parents);
        Outcome::Done
    }

    fn equal_dims(&mut self, id: EquationId, left: &Dim, right: &Dim) {
        if left != right {
            self.child(id, Relation::Dims(left.clone(), right.clone()));
        }
    }

    fn step_shapes(&mut self, id: EquationId, left: &Shape, right: &Shape) -> Stepped {
        let (left, right) = (self.try_shape(left)?, self.try_shape(right)?);
        if left == right {
            return Ok(Outcome::Done);
        }
        let (new_left, new_right) = (self.rewritten(&left), self.rewritten(&right));
        if new_left.is_some() || new_right.is_some() {
            let relation = Relation::Shapes(new_left.unwrap_or(left), new_right.unwrap_or(right));
            return Ok(self.rewritten_by_residuals(id, relation));
        }
        let rank = |left: &Shape, right: &Shape| Reason::Rank(left.clone(), right.clone());
        if let (Some(a), Some(b)) = (left.as_dims(), right.as_dims()) {
            // Unpacking.
            if a.len() != b.len() {
                return Err(rank(&left, &right));
            }
            self.note("unpacking", id, || Relation::Shapes(left.clone(), right.clone()));
            for (a, b) in a.into_iter().zip(b) {
                self.equal_dims(id, a, b);
            }
            return Ok(Outcome::Done);
        }
        // Append unpacking, at the start and at the end.
        let (whole_left, whole_right) = (left, right);
        let (mut a, mut b) = (&whole_left.items[..], &whole_right.items[..]);
        let mut shortened = false;
        loop {
            match (a, b) {
                ([Item::Dim(x), rest_a @ ..], [Item::Dim(y), rest_b @ ..])
                | ([rest_a @ .., Item::Dim(x)], [rest_b @ .., Item::Dim(y)]) => {
                    self.equal_dims(id, x, y);
                    (a, b) = (rest_a, rest_b);
                }
                ([Item::Var(x), rest_a @ ..], [Item::Var(y), rest_b @ ..]) if x == y => {
                    (a, b) = (rest_a, rest_b);
                }
                ([rest_a @ .., Item::Var(x)], [rest_b @ .., Item::Var(y)]) if x == y => {
                    (a, b) = (rest_a, rest_b);
                }
                _ => break,
            }
            shortened = true;
        }
        if shortened {
            self.note("append unpacking", id, || {
                Relation::Shapes(whole_left.clone(), whole_right.clone())
            });
        }
        let left: Shape = a.iter().cloned().collect();
        let right: Shape = b.iter().cloned().collect();
        if left == right {
            return Ok(Outcome::Done);
        }
        for (var, other) in [(&left, &right), (&right, &left)] {
            if let Some(var) = var.as_var() {
                if !other.items.contains(&Item::Var(var)) {
                    self.note("replacement", id, || {
                        Relation::Shapes(Shape::var(var), other.clone())
                    });
                    self.bind_shape(id, var, other.clone());
                    return Ok(Outcome::Done);
                }
                // What stands beside the variable itself can only be empty.
                if 0 < other.min_rank() {
                    return Err(Reason::Endless(Shape::var(var), other.clone()));
                }
            }
        }
        for (known, other) in [(&left, &right), (&right, &left)] {
            if known.as_dims().is_none() {
                continue;
            }
            // Append dimensionality, empty shapes.
            if known.items.len() < other.min_rank() {
                return Err(rank(&whole_left, &whole_right));
            }
            if known.items.len() == other.min_rank() {
                self.note("empty shapes", id, || Relation::Shapes(left.clone(), right.clone()));
                self.empty_vars(id, other, None);
                let dims = other.items.iter().filter(|item| item.as_dim().is_some());
                for (a, b) in known.items.iter().zip(dims) {
                    if let (Item::Dim(a), Item::Dim(b)) = (a, b) {
                        self.equal_dims(id, a, b);
                    }
                }
                return Ok(Outcome::Done);
            }
        }
        for (var, other) in [(&left, &right), (&right, &left)] {
            if let Some(var) = var.as_var() {
                self.note("empty shapes", id, || Relation::Shapes(left.clone(), right.clone()));
                let count = other.items.iter().filter(|item| **item == Item::Var(var)).count();
                self.empty_vars(id, other, Some(var).filter(|_| count == 1));
                return Ok(Outcome::Done);
            }
        }
        if shortened {
            self.child(id, Relation::Shapes(left, right));
            return Ok(Outcome::Done);
        }
        for (known, other) in [(&left, &right), (&right, &left)] {
            if known.as_dims().is_some() {
                return Ok(Outcome::ShapeRule(other.clone(), known.clone()));
            }
        }
        Ok(Outcome::Stuck)
    }

    /// Equates the variables of a shape with the empty shape, all but one.
    fn empty_vars(&mut self, id: EquationId, shape: &Shape, except: Option<ShapeVar>) {
        for item in &shape.items {
            if let Item::Var(var) = item
                && Some(*var) != except
            {
                self.child(id, Relation::Shapes(Shape::var(*var), Shape::default()));
            }
        }
    }

    fn bind_shape(&mut self, id: EquationId, var: ShapeVar, value: Shape) {
        let variable = &mut self.shapes[var.0 as usize];
        let level = variable.level;
        let waiting = std::mem::take(&mut variable.waiting);
        self.limit_levels(&value, level);
        self.shapes[var.0 as usize].value = Some((value, id));
        self.wake(waiting, None);
    }

    fn bind_dim(&mut self, id: EquationId, var: DimVar, value: Dim) -> Stepped {
        if let Dim::Constant(..=0) = value {
            return Err(Reason::NotPositive(value));
        }
        self.note("replacement", id, || Relation::Dims(Dim::Var(var), value.clone()));
        if let Dim::Sum(_) = value {
            self.child(id, Relation::Positive(value.clone()));
        }
        let variable = &mut self.dims[var.0 as usize];
        let level = variable.level;
        let waiting = std::mem::take(&mut variable.waiting);
        self.limit_dim_levels(&value, level);
        self.dims[var.0 as usize].value = Some((value, id));
        self.wake(waiting, None);
        Ok(Outcome::Done)
    }

    fn step_dims(&mut self, id: EquationId, left: &Dim, right: &Dim) -> Stepped {
        let left = self.try_dim(left)?;
        let right = self.try_dim(right)?;
        if left == right {
            return Ok(Outcome::Done);
        }
        let (new_left, new_right) = (self.reduced(&left)?, self.reduced(&right)?);
        if new_left != left || new_right != right {
            return Ok(self.rewritten_by_residuals(id, Relation::Dims(new_left, new_right)));
        }
        let different = || Reason::Dims(left.clone(), right.clone());
        match (&left, &right) {
            (Dim::Constant(_) | Dim::Ragged, Dim::Constant(_) | Dim::Ragged) => Err(different()),
            (Dim::Var(a), Dim::Var(b)) => {
                // The newer one is replaced.
                let (old, new) = (*a.min(b), *a.max(b));
                self.bind_dim(id, new, Dim::Var(old))
            }
            (Dim::Var(var), other @ (Dim::Constant(_) | Dim::Ragged))
            | (other @ (Dim::Constant(_) | Dim::Ragged), Dim::Var(var)) => {
                self.bind_dim(id, *var, other.clone())
            }
            (Dim::Ragged, Dim::Sum(_)) | (Dim::Sum(_), Dim::Ragged) => Ok(Outcome::Stuck),
            _ => {
                for (var, other) in [(&left, &right), (&right, &left)] {
                    if let Dim::Var(var) = var
                        && !self.arithmetic.vars(other).contains(var)
                    {
                        return self.bind_dim(id, *var, other.clone());
                    }
                }
                let outcome = self.step_sums(id, &left, &right)?;
                outcome.ok_or_else(different)
            }
        }
    }

    /// Arithmetic simplification of an equation between sizes. `None` if no positive integers
    /// satisfy it.
    fn step_sums(
        &mut self,
        id: EquationId,
        left: &Dim,
        right: &Dim,
    ) -> Result<Option<Outcome>, Reason> {
        let arithmetic = Rc::clone(&self.arithmetic);
        let (Some(a), Some(b)) = (arithmetic.polynomial(left), arithmetic.polynomial(right)) else {
            return Ok(Some(Outcome::Stuck));
        };
        // `a == b + constant`, without constants and common terms in `a` and `b`.
        let mut constant = difference(b.constant_part(), a.constant_part())?;
        let common = common_terms(&a, &b);
        let strip = |sum: &Polynomial| -> Result<Polynomial, DimError> {
            Ok(sum.sub(&common)?.plus(difference(0, sum.constant_part())?)?)
        };
        let (mut a, mut b) = (strip(&a)?, strip(&b)?);
        // Common factors.
        let divisor = i64::try_from(gcd(content(&a), content(&b))).unwrap_or(1);
        if divisor == 0 {
            return Ok(Some(Outcome::Done).filter(|_| constant == 0));
        }
        if constant % divisor != 0 {
            return Ok(None);
        }
        constant /= divisor;
        (a, b) = (divided(&a, divisor), divided(&b, divisor));
        // What always has the same sign is never zero.
        let whole = a.sub(&b)?;
        let (low, high) = arithmetic.bounds(&whole.plus(difference(0, constant)?)?);
        if low.is_some_and(|low| 0 < low) || high.is_some_and(|high| high < 0) {
            return Ok(None);
        }
        // `(op d c1) = c2`
        if let Some((var, factor)) = arithmetic.lone_var(&whole) {
            if constant.checked_rem(factor) != Some(0) {
                return Ok(None);
            }
            let value = constant.checked_div(factor).ok_or(DimError::Overflow)?;
            return self.bind_dim(id, var, Dim::Constant(value)).map(Some);
        }
        let (empty_a, empty_b) = (a.terms().len() == 0, b.terms().len() == 0);
        // A variable alone on a side, after what was common is dropped.
        let var_of = |sum: &Polynomial| match arithmetic.lone_var(sum) {
            Some((var, 1)) => Some(var),
            _ => None,
        };
        let value_of_a = || -> Result<Dim, DimError> { arithmetic.dim(b.plus(constant)?) };
        let value_of_b =
            || -> Result<Dim, DimError> { arithmetic.dim(a.plus(difference(0, constant)?)?) };
        let free = |var: DimVar, sum: &Polynomial| {
            Some(var).filter(|var| !arithmetic.polynomial_vars(sum).contains(var))
        };
        let var_a = var_of(&a).and_then(|var| free(var, &b));
        let var_b = var_of(&b).and_then(|var| free(var, &a));
        // Of two variables, the larger value is written as a sum.
        let prefer_a = match (var_a, var_b) {
            (Some(var_a), Some(var_b)) => (0, var_b) < (constant, var_a),
            (some, _) => some.is_some(),
        };
        match (var_a, var_b) {
            (Some(var), _) if prefer_a => return self.bind_dim(id, var, value_of_a()?).map(Some),
            (_, Some(var)) => return self.bind_dim(id, var, value_of_b()?).map(Some),
            _ => {}
        }
        // Partial expressions.
        let (sum, value) = match (empty_a, empty_b) {
            (false, true) => (a, constant),
            (true, false) => (b, difference(0, constant)?),
            _ if whole.terms().len() == 1 => (whole, constant),
            _ => return Ok(Some(Outcome::Stuck)),
        };
        let divisor = i64::try_from(content(&sum)).unwrap_or(1);
        if value % divisor != 0 {
            return Ok(None);
        }
        let (sum, value) = (divided(&sum, divisor), value / divisor);
        let negative = sum.terms().next().is_some_and(|(_, coefficient)| coefficient < 0);
        let (sum, value) = match negative {
            true => (sum.scale(-1)?, difference(0, value)?),
            false => (sum, value),
        };
        Ok(Some(Outcome::Rule(Rc::new(sum), value)))
    }

    fn step_positive(&mut self, id: EquationId, dim: &Dim) -> Stepped {
        let dim = self.try_dim(dim)?;
        let new = self.reduced(&dim)?;
        if new != dim {
            return Ok(self.rewritten_by_residuals(id, Relation::Positive(new)));
        }
        match &dim {
            Dim::Constant(1..) | Dim::Var(_) | Dim::Ragged => Ok(Outcome::Done),
            Dim::Constant(_) => Err(Reason::NotPositive(dim)),
            Dim::Sum(sum) => match self.arithmetic.bounds(sum) {
                (Some(1..), _) => Ok(Outcome::Done),
                (_, Some(..=0)) => Err(Reason::NotPositive(dim)),
                _ => Ok(Outcome::Stuck),
            },
        }
    }

    fn step_elements(&mut self, id: EquationId, left: &Shape, right: &Shape) -> Stepped {
        let (left, right) = (self.try_shape(left)?, self.try_shape(right)?);
        if left == right {
            return Ok(Outcome::Done);
        }
        let (new_left, new_right) = (self.rewritten(&left), self.rewritten(&right));
        if new_left.is_some() || new_right.is_some() {
            let relation = Relation::Elements(new_left.unwrap_or(left), new_right.unwrap_or(right));
            return Ok(self.rewritten_by_residuals(id, relation));
        }
        let mut products = Vec::new();
        for shape in [&left, &right] {
            let Some(dims) = shape.as_dims() else { return Ok(Outcome::Stuck) };
            if dims.contains(&&Dim::Ragged) {
                return Err(Reason::RaggedElements(shape.clone()));
            }
            let mut product = Dim::Constant(1);
            for dim in dims {
                product = self.arithmetic.apply(super::DimOp::Mul, &product, dim)?;
            }
            products.push(product);
        }
        self.equal_dims(id, &products[0], &products[1]);
        Ok(Outcome::Done)
    }

    // Point-wise operations.

    /// Chooses the equations of a point-wise operation.
    fn decide(&mut self, op: Pointwise) {
        let operands: Vec<Shape> =
            op.operands.iter().map(|shape| self.resolved_shape(shape)).collect();
        let result = self.resolved_shape(&op.result);
        let equal: Vec<(usize, bool)> = (0..operands.len()).map(|place| (place, false)).collect();
        // The operand that has the shape of the result, and which of the others are broadcast.
        let mut choice = (0, equal);
        if !self.all_equal(&operands, &result) {
            for (place, largest) in operands.iter().enumerate() {
                let broadcast: Vec<(usize, bool)> = (operands.iter().enumerate())
                    .map(|(other, shape)| {
                        (other, !self.all_equal(std::slice::from_ref(shape), largest))
                    })
                    .collect();
                let relations = broadcast.iter().map(|&(other, broadcast)| {
                    (operands[other].clone(), largest.clone(), broadcast)
                });
                let relations = relations.chain([(result.clone(), largest.clone(), false)]);
                if self.consistent(relations.collect()) {
                    choice = (place, broadcast);
                    break;
                }
            }
        }
        let largest = &op.operands[choice.0];
        for (other, broadcast) in choice.1 {
            let operand = op.operands[other].clone();
            if broadcast {
                let level = operand.items.iter().chain(&largest.items).map(|item| match item {
                    Item::Var(var) => self.shape_level(*var),
                    Item::Dim(_) => u32::MAX,
                });
                let leading = level.max().unwrap_or(0);
                let leading = self.shape_var(leading);
                let whole = std::iter::once(Item::Var(leading)).chain(operand.items).collect();
                if let Some(steps) = &mut self.steps {
                    let relation = Relation::Shapes(operands[other].clone(), largest.clone());
                    steps.push(Step { rule: "broadcast", relation, origin: op.origin });
                }
                self.given(Relation::Shapes(whole, largest.clone()), op.origin);
            } else if other != choice.0 {
                self.given(Relation::Shapes(operand, largest.clone()), op.origin);
            }
        }
        self.given(Relation::Shapes(op.result.clone(), largest.clone()), op.origin);
    }

    /// Whether shapes can be equal to another one, all at once.
    fn all_equal(&self, shapes: &[Shape], other: &Shape) -> bool {
        // Most are the same already, or variables of which nothing is known.
        let mut distinct: Vec<&Shape> = Vec::new();
        for shape in shapes.iter().chain([other]) {
            if !distinct.contains(&shape) {
                distinct.push(shape);
            }
        }
        let compound = distinct.iter().filter(|shape| shape.as_var().is_none());
        let compound: Vec<_> = compound.copied().collect();
        let inside =
            |var: ShapeVar| compound.iter().any(|shape| shape.items.contains(&Item::Var(var)));
        if compound.len() <= 1 && !distinct.iter().filter_map(|it| it.as_var()).any(inside) {
            return true;
        }
        let pairs = distinct[1..].iter().map(|&it| (it.clone(), distinct[0].clone(), false));
        self.consistent(pairs.collect())
    }

    /// Whether pairs of resolved shapes can be equal, or the second end in the first, when nothing
    /// else is asked of their variables.
    fn consistent(&self, pairs: Vec<(Shape, Shape, bool)>) -> bool {
        let mut copy = Copy::new(self);
        for (left, right, broadcast) in pairs {
            let mut left = copy.shape(&left);
            let right = copy.shape(&right);
            if broadcast {
                let leading = copy.to.shape_var(0);
                left.items.insert(0, Item::Var(leading));
            }
            copy.to.given(Relation::Shapes(left, right), 0);
        }
        copy.to.run().is_ok()
    }

    // Explanations.

    fn conflict(&mut self, id: EquationId, reason: Reason) -> Conflict {
        let given = self.ancestor(id);
        let relation = self.resolved(&self.equations[given as usize].relation.clone());
        let (core, minimal) = self.core(id);
        let mut origins: Vec<Origin> =
            core.iter().map(|&id| self.equations[id as usize].origin).collect();
        origins.sort_unstable();
        origins.dedup();
        let origin = self.equations[id as usize].origin;
        Conflict { reason, relation, origin, core: origins, minimal }
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

    /// Given equations that contradict each other, by leaving out what can be left out: first in
    /// large pieces, at last one by one. And whether that came to an end.
    fn core(&self, id: EquationId) -> (Vec<EquationId>, bool) {
        let mut set = self.support(id);
        let mut work = set.len();
        match self.refute(&set) {
            Some(smaller) => set = smaller,
            None => return (set, false),
        }
        let mut piece = set.len().div_ceil(2);
        loop {
            let mut at = 0;
            while at < set.len() {
                let end = (at + piece).min(set.len());
                let rest: Vec<_> = set[..at].iter().chain(&set[end..]).copied().collect();
                work += rest.len() + 1;
                if MAX_EXPLANATION_WORK < work {
                    return (set, false);
                }
                match self.refute(&rest) {
                    Some(smaller) => {
                        let first = set[at];
                        set = smaller;
                        at = set.partition_point(|&id| id < first);
                    }
                    None => at = end,
                }
            }
            if piece <= 1 {
                return (set, true);
            }
            piece = piece.div_ceil(2);
        }
    }

    /// Solves given equations on their own. If they contradict each other, those that show it.
    fn refute(&self, equations: &[EquationId]) -> Option<Vec<EquationId>> {
        let mut copy = Copy::new(self);
        for &id in equations {
            let relation = copy.relation(&self.equations[id as usize].relation);
            copy.to.given(relation, id);
        }
        let (failed, _) = copy.to.run().err()?;
        let support = copy.to.support(failed);
        let mut support: Vec<_> =
            support.into_iter().map(|id| copy.to.equations[id as usize].origin).collect();
        support.sort_unstable();
        support.dedup();
        Some(support)
    }
}

/// Copies equations to a solver of their own.
struct Copy<'s> {
    from: &'s Solver,
    to: Solver,
    dims: HashMap<DimVar, DimVar>,
    shapes: HashMap<ShapeVar, ShapeVar>,
}

impl<'s> Copy<'s> {
    fn new(from: &'s Solver) -> Self {
        Self { from, to: from.sibling(), dims: HashMap::new(), shapes: HashMap::new() }
    }

    fn dim(&mut self, dim: &Dim) -> Dim {
        let (dims, to) = (&mut self.dims, &mut self.to);
        let mut copied = |var| *dims.entry(var).or_insert_with(|| to.dim_var(0));
        match dim {
            Dim::Var(var) => Dim::Var(copied(*var)),
            // Renaming makes nothing larger.
            _ => {
                let arithmetic = Rc::clone(&self.from.arithmetic);
                let renamed = arithmetic.substitute(dim, &mut |var| Some(Dim::Var(copied(var))));
                renamed.unwrap_or_else(|_| dim.clone())
            }
        }
    }

    fn shape(&mut self, shape: &Shape) -> Shape {
        let items = shape.items.iter().map(|item| match item {
            Item::Dim(dim) => Item::Dim(self.dim(dim)),
            Item::Var(var) => {
                let to = &mut self.to;
                Item::Var(*self.shapes.entry(*var).or_insert_with(|| to.shape_var(0)))
            }
        });
        items.collect()
    }

    fn relation(&mut self, relation: &Relation) -> Relation {
        match relation {
            Relation::Shapes(a, b) => Relation::Shapes(self.shape(a), self.shape(b)),
            Relation::Elements(a, b) => Relation::Elements(self.shape(a), self.shape(b)),
            Relation::Dims(a, b) => Relation::Dims(self.dim(a), self.dim(b)),
            Relation::Positive(a) => Relation::Positive(self.dim(a)),
        }
    }
}

impl Arithmetic {
    /// The variable and its coefficient, if that is all of a sum.
    fn lone_var(&self, sum: &Polynomial) -> Option<(DimVar, i64)> {
        let mut terms = sum.terms();
        match (terms.next(), terms.next()) {
            (Some((monomial, coefficient)), None)
                if monomial.len() == 1 && sum.constant_part() == 0 =>
            {
                Some((self.as_var(monomial[0])?, coefficient))
            }
            _ => None,
        }
    }

    /// The least and the greatest value for positive variables, where the signs of the coefficients
    /// tell.
    fn bounds(&self, sum: &Polynomial) -> (Option<i64>, Option<i64>) {
        let atoms = sum.terms().flat_map(|(monomial, _)| monomial.iter());
        let mut shifted = Vec::new();
        for &atom in atoms {
            if self.as_var(atom).is_none() {
                return (None, None);
            }
            match Polynomial::atom(atom).plus(1) {
                Ok(value) => shifted.push((atom, Rc::new(value))),
                Err(_) => return (None, None),
            }
        }
        // With every variable one more than a natural number, the constant is at one end.
        let Ok(sum) = Normalizer::replacing_all(&self.context, shifted).renormalize(sum) else {
            return (None, None);
        };
        let end = Some(sum.constant_part());
        let same = |sign: i64| sum.terms().all(|(_, coefficient)| coefficient.signum() == sign);
        (end.filter(|_| same(1)), end.filter(|_| same(-1)))
    }
}

fn difference(a: i64, b: i64) -> Result<i64, DimError> {
    a.checked_sub(b).ok_or(DimError::Overflow)
}

fn gcd(a: u64, b: u64) -> u64 {
    crate::expr::gcd(a, b)
}

/// The greatest common divisor of the coefficients; 0 if there are none.
fn content(sum: &Polynomial) -> u64 {
    sum.terms().fold(0, |divisor, (_, coefficient)| gcd(divisor, coefficient.unsigned_abs()))
}

/// A sum without constant, divided by a divisor of its coefficients.
fn divided(sum: &Polynomial, divisor: i64) -> Polynomial {
    let mut result = Polynomial::default();
    for (monomial, coefficient) in sum.terms() {
        result.set(monomial, coefficient / divisor);
    }
    result
}

/// What two sums have in common: terms that both add, or both subtract.
fn common_terms(a: &Polynomial, b: &Polynomial) -> Polynomial {
    let mut common = Polynomial::default();
    for (monomial, coefficient) in a.terms() {
        let other = b.coefficient(monomial);
        if coefficient.signum() == other.signum() {
            let least =
                if coefficient.unsigned_abs() < other.unsigned_abs() { coefficient } else { other };
            common.set(monomial, least);
        }
    }
    common
}

/// `sum` with `pattern`, as often as it occurs and times whatever it is multiplied with, replaced by
/// `value`. `None` if it does not occur. No coefficient grows, but for terms of lower degree.
fn rewrite_sum(
    sum: &Polynomial,
    pattern: &Polynomial,
    value: i64,
) -> Result<Option<Polynomial>, DimError> {
    let Some((lead, _)) = pattern.terms().next() else { return Ok(None) };
    for (monomial, _) in sum.terms() {
        let Some(rest) = quotient(monomial, lead) else { continue };
        let occurrence = pattern.mul(&Polynomial::term(rest.clone(), 1))?;
        let times = occurrence.terms().map(|(monomial, part)| {
            let times = sum.coefficient(monomial).checked_div(part).unwrap_or(0);
            (times.signum(), times.unsigned_abs())
        });
        let least = times.reduce(|a, b| if a.0 == b.0 { (a.0, a.1.min(b.1)) } else { (0, 0) });
        let Some((sign, times @ 1..)) = least else { continue };
        let times = i64::try_from(times).map_err(|_| DimError::Overflow)? * sign;
        let factor = Polynomial::term(rest, times);
        return Ok(Some(sum.sub(&pattern.mul(&factor)?)?.add(&factor.scale(value)?)?));
    }
    Ok(None)
}

/// The factors of a product without those of another one, if it has them.
fn quotient(product: &Monomial, divisor: &Monomial) -> Option<Monomial> {
    let mut rest = product.clone();
    for atom in divisor {
        let at = rest.iter().position(|other| other == atom)?;
        rest.remove(at);
    }
    Some(rest)
}
