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
//!   no positive integers satisfy (`(* d 4) = 13`); one variable is replaced by the only one that does
//!   (`(* d d) = 16`);
//! - parts that both sides have in common are dropped: `(+ m 1) = (+ n 1)` gives `m = n`;
//! - two adjacent unknown shapes are never guessed: `p@q = [2,3]` is a residual;
//! - residuals with a side in common equate their other sides;
//! - an equation between sizes is simplified on its own before it is put into others: `(+ (* d d) 1) = 5` is `d = 2`,
//!   whatever else says what `d` is; sizes that others are quotients of are replaced last;
//! - a residual whose variable has a value that other conditions say is positive is solved for it;
//! - what residuals allow one rank or size for only together has it: `(+ (* n 2) (* m 3)) = 5` gives `n = 1`, and
//!   `b = (/ 12 (+ b 1))` gives `b = 3`.
//!
//! Every step keeps the set of solutions, so that a failure means that there is none, and what is
//! solved without residuals holds for all values of the free variables. What is given between two
//! calls of [`Solver::solve`] is a set: it is put into an order that depends on the equations alone,
//! so that the order in which they are added does not matter, even for what the rules cannot solve.
//! [`Solver::settle`] makes one set of all that was given in several pieces, and asks what all residuals say
//! together.
//!
//! Replacement is by reference: a variable keeps its value, an equation that waits is found through
//! the variables in it. So the cost of an equation follows from its own size and not from that of
//! the set; each solved variable wakes the equations that wait for it, once. A step that binds a
//! variable leaves one variable less, one that rewrites by a residual leaves fewer terms, and all
//! others leave shorter equations or join classes of sides: the solver always ends.

mod consistent;
mod copy;
mod explain;
mod isolate;
mod pointwise;
mod ranges;
mod ranks;
mod roots;
mod sides;
mod sizes;
mod splits;
mod step;
mod sums;
mod together;
mod values;
mod witness;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;

pub use copy::Renaming;
pub use explain::{Clash, Definition, Known, Use};

use super::text::shape_text;
use super::{Arithmetic, Dim, DimError, DimVar, Item, Shape, ShapeVar};
use crate::polynomial::{Polynomial, PolynomialError};

/// What an equation was made for, chosen by the caller.
pub type Origin = u32;

/// The rule of a step that decides about an operand of a point-wise operation.
const BROADCAST: &str = "broadcast";

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
    /// No sizes satisfy several conditions, each of which is possible.
    Sizes,
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
    /// The equation in which it was found, with all that is known put in; as it was given, if it says
    /// that a size is positive.
    pub relation: Relation,
    /// What that equation was made for.
    pub origin: Origin,
    /// Its number.
    pub equation: EquationId,
    /// Whether it is the one for the result of a point-wise operation.
    pub is_result: bool,
    /// What a set of equations that contradict each other were made for; sorted. Of a size that
    /// cannot be calculated, what its parts were found for. Of what a use of a definition says, what it
    /// was made for there, and the use.
    pub core: Vec<Origin>,
    /// The same, where all that the use of a definition says was made for that use; empty of a size that
    /// cannot be calculated.
    pub places: Vec<Origin>,
    /// Whether no member of the set can be left out.
    pub minimal: bool,
    /// A set of equations that contradict each other, and the operations that are decided with them.
    given: Vec<explain::Labelled>,
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

/// A time in the life of a solver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    equations: usize,
    dims: usize,
    shapes: usize,
    steps: usize,
}

/// The number of an equation.
pub type EquationId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Queued,
    Stuck,
    Done,
    /// A contradiction was found in it, or in what it was taken apart into; or it is left out.
    Failed,
}

#[derive(Debug)]
struct Equation {
    relation: Relation,
    origin: Origin,
    /// What it was derived from; nothing if it is given.
    parents: Vec<EquationId>,
    state: State,
    /// Whether what it says depends on the order in which equations are solved: no rule applied to it
    /// for some time, or it gave a variable a value that may be another variable in the end.
    depends_on_order: bool,
    /// Whether it has been simplified on its own.
    is_simple: bool,
}

/// The place of an equation among those that come last: what it is; the newest of its variables; and how much it
/// subtracts.
type Class = (u8, Option<DimVar>, usize);

/// The class of equations that are simplified on their own.
const NEW: u8 = 0;
/// The class of equations that are solved only if there is no other way.
const LAST: u8 = 9;
/// The class of residuals that may be solved for one of their variables.
const OPEN: u8 = LAST + 1;

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

    /// Takes the value of a variable that was made inside of so many definitions.
    fn forget(&mut self, level: u32) {
        if self.level == level {
            *self = Self::new(level);
        }
    }
}

/// A variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Var {
    Shape(ShapeVar),
    Dim(DimVar),
}

/// A residual that says what an expression is worth.
#[derive(Debug)]
struct DimRule {
    sum: Rc<Polynomial>,
    value: i64,
    equation: EquationId,
    /// Those of the sum, sorted.
    vars: (Vec<ShapeVar>, Vec<DimVar>),
}

#[derive(Debug)]
struct ShapeRule {
    pattern: Shape,
    value: Shape,
    equation: EquationId,
    /// Those of the pattern, sorted.
    vars: (Vec<ShapeVar>, Vec<DimVar>),
}

/// Operands of a point-wise operator and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pointwise {
    operands: Vec<Shape>,
    result: Shape,
    origin: Origin,
    /// What is said for it, if something is: the place among the decisions.
    decision: Option<usize>,
}

/// A set of equations and what is known about their variables.
#[derive(Debug, Default)]
pub struct Solver {
    arithmetic: Rc<Arithmetic>,
    dims: Vec<Variable<Dim>>,
    shapes: Vec<Variable<Shape>>,
    equations: Vec<Equation>,
    /// Given equations that have not been looked at.
    given: Vec<EquationId>,
    queue: VecDeque<EquationId>,
    /// Equations between sums, which come last: those before them may give their variables values.
    later: BTreeSet<(Class, String, EquationId)>,
    dim_rules: Vec<DimRule>,
    shape_rules: Vec<ShapeRule>,
    /// What residuals have in common.
    sides: sides::Sides,
    pointwise: VecDeque<Pointwise>,
    /// The variables that more is known about since the last decision about an operation.
    news: Vec<Var>,
    /// What variables were said to be the last part of since decisions began.
    wholes: HashMap<ShapeVar, Vec<Shape>>,
    /// The operations for which something is said, in order.
    decisions: Vec<pointwise::Decision>,
    /// The places of the decisions that equations are for.
    decided: HashMap<EquationId, usize>,
    /// The shapes of numbers, each of which is as large as other operands need it, and not larger.
    numbers: BTreeSet<ShapeVar>,
    /// Those, and the variables that some of them are equal to, with the equations that say so.
    of_numbers: HashMap<ShapeVar, Option<EquationId>>,
    /// Variables that a program has a name for, and those that they are equal to.
    named_dims: HashSet<DimVar>,
    named_shapes: HashSet<ShapeVar>,
    /// Sizes that others are quotients of.
    divided: HashSet<DimVar>,
    steps: Option<Vec<Step>>,
    /// What is not added.
    left_out: HashSet<Origin>,
    /// Whether `(- h r) = 3` gives `h` a value.
    solves_differences: bool,
    /// The given equations by what they were made for, as many as an explanation has asked for.
    by_origin: HashMap<Origin, Vec<EquationId>>,
    num_indexed: usize,
    /// What was given for each use of a definition.
    uses: HashMap<Origin, Use>,
    /// Where definitions say what was given for a use of them, of equations that are not copies of theirs.
    inner: HashMap<EquationId, Box<[Origin]>>,
}

/// What became of an equation.
enum Outcome {
    Done,
    /// It is as simple as it can be on its own.
    Simple,
    Stuck,
    /// Stuck, and it says what an expression is worth.
    Rule(Rc<Polynomial>, i64),
    ShapeRule(Shape, Shape),
}

type Stepped = Result<Outcome, Reason>;

/// The equation that does not hold, and why.
type Failure = (EquationId, Reason);

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
        Self {
            arithmetic: Rc::clone(&self.arithmetic),
            solves_differences: self.solves_differences,
            ..Self::default()
        }
    }

    /// From now on `(- h r) = 3` is `h = (+ r 3)`. In the paper it is left, as a partial expression.
    pub fn solve_differences(&mut self) {
        self.solves_differences = true;
    }

    /// From now on, what is given for some origins is not added: whether a contradiction depends on them.
    pub fn leave_out(&mut self, origins: HashSet<Origin>) {
        self.left_out = origins;
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

    /// Says that a variable is the shape of a number.
    pub fn set_number(&mut self, var: ShapeVar) {
        self.numbers.insert(var);
        self.of_numbers.insert(var, None);
    }

    /// Says that a program has a name for a variable.
    pub fn set_named_dim(&mut self, var: DimVar) {
        self.named_dims.insert(var);
    }

    /// Says that a program has a name for a variable.
    pub fn set_named_shape(&mut self, var: ShapeVar) {
        self.named_shapes.insert(var);
    }

    /// Says that variables have a name if those do that they stand for.
    pub fn name_alike(&mut self, renaming: &Renaming) {
        let dims = renaming.dims.iter().filter(|(var, _)| self.named_dims.contains(var));
        let dims: Vec<DimVar> = dims.map(|(_, other)| *other).collect();
        self.named_dims.extend(dims);
        let shapes = renaming.shapes.iter().filter(|(var, _)| self.named_shapes.contains(var));
        let shapes: Vec<ShapeVar> = shapes.map(|(_, other)| *other).collect();
        self.named_shapes.extend(shapes);
    }

    /// The shapes of numbers that were made since a mark.
    pub fn numbers(&self, since: Mark) -> impl Iterator<Item = ShapeVar> + '_ {
        self.numbers.range(ShapeVar(since.shapes as u32)..).copied()
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

    /// Says that the variables which were made since a mark inside of one more than `level` definitions are made
    /// inside of these. Those of inner definitions stay theirs.
    pub fn lower_levels_since(&mut self, since: Mark, level: u32) {
        fn lower<T>(variables: &mut [Variable<T>], level: u32) {
            for variable in variables {
                if variable.level == level + 1 {
                    variable.level = level;
                }
            }
        }
        lower(&mut self.dims[since.dims..], level);
        lower(&mut self.shapes[since.shapes..], level);
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

    /// Adds an equation between shapes, and that their sizes are positive and so is what these are divided by. The
    /// number of the equation.
    pub fn equate_shapes(&mut self, left: Shape, right: Shape, origin: Origin) -> EquationId {
        for shape in [&left, &right] {
            self.positive_sizes(shape, origin);
        }
        self.given(Relation::Shapes(left, right), origin)
    }

    /// Adds an equation between dimensions, and that they are positive and so is what they are divided by.
    pub fn equate_dims(&mut self, left: Dim, right: Dim, origin: Origin) {
        for dim in [&left, &right] {
            self.positive_size(dim, origin);
        }
        self.given(Relation::Dims(left, right), origin);
    }

    /// Adds that two shapes have the same number of elements.
    pub fn equate_elements(&mut self, left: Shape, right: Shape, origin: Origin) {
        self.given(Relation::Elements(left, right), origin);
    }

    /// Adds that the sizes of a shape are positive, and that what they are divided by is.
    pub fn positive_sizes(&mut self, shape: &Shape, origin: Origin) {
        for dim in shape.items.iter().filter_map(Item::as_dim) {
            self.positive_size(dim, origin);
        }
    }

    fn positive_size(&mut self, dim: &Dim, origin: Origin) {
        if let Dim::Constant(..=0) | Dim::Sum(_) = dim {
            self.given(Relation::Positive(dim.clone()), origin);
            // Of what is divided by itself, or stands on both sides, it is not seen once that is simplified.
            for divisor in self.arithmetic.divisors(dim) {
                if let Dim::Sum(sum) = &divisor
                    && self.arithmetic.bounds(sum).0.is_none_or(|least| least < 1)
                {
                    self.given(Relation::Positive(divisor), origin);
                }
            }
        }
    }

    /// Adds a condition. Its number.
    pub fn given(&mut self, relation: Relation, origin: Origin) -> EquationId {
        self.given_by_all(relation, &[origin])
    }

    /// Adds a condition that follows from what the last origin, a use of a definition, says only since
    /// the definition says it at the others: first the place itself, then the uses inside of each other
    /// that lead there. Without origins it has none that errors can point at.
    pub fn given_by_all(&mut self, relation: Relation, origins: &[Origin]) -> EquationId {
        let (outer, inner) = origins.split_last().unwrap_or((&Origin::MAX, &[]));
        let id = self.record(relation, *outer, Vec::new());
        if !inner.is_empty() {
            self.inner.insert(id, inner.into());
        }
        match origins.iter().any(|origin| self.left_out.contains(origin)) {
            true => self.equations[id as usize].state = State::Failed,
            false => self.given.push(id),
        }
        id
    }

    /// A condition as it was given.
    pub fn relation(&self, equation: EquationId) -> &Relation {
        &self.equations[equation as usize].relation
    }

    /// What was given since a mark for a definition, whose own variables are made inside of more than
    /// `level` definitions.
    pub fn definition(&self, since: Mark, level: u32) -> Definition {
        Definition::new(since, self.mark(), level)
    }

    /// Says what was given for the use of a definition with this origin: the explanation of a
    /// contradiction looks into it.
    pub fn used(&mut self, origin: Origin, used: Use) {
        self.uses.insert(origin, used);
    }

    /// Adds a point-wise operation: the shapes are equal, or if they cannot be, those of some
    /// operands are the last part of the result's. [`Solver::solve_pointwise`] decides.
    pub fn pointwise(&mut self, operands: Vec<Shape>, result: Shape, origin: Origin) {
        if !self.left_out.contains(&origin) {
            self.pointwise.push_back(Pointwise { operands, result, origin, decision: None });
        }
    }

    fn add(&mut self, relation: Relation, origin: Origin, parents: Vec<EquationId>) {
        let id = self.record(relation, origin, parents);
        self.enqueue(id);
    }

    fn record(
        &mut self,
        relation: Relation,
        origin: Origin,
        parents: Vec<EquationId>,
    ) -> EquationId {
        self.equations.push(Equation {
            relation,
            origin,
            parents,
            state: State::Queued,
            depends_on_order: false,
            is_simple: false,
        });
        self.equations.len() as EquationId - 1
    }

    /// A dimension as text in which variables are ordered as they were made.
    fn dim_text(&self, dim: &Dim) -> String {
        self.arithmetic.dim_text(dim, &|var| format!("d{:08}", var.0))
    }

    fn shape_text(&self, shape: &Shape) -> String {
        shape_text(shape, &|var| format!("s{:08}", var.0), &|dim| self.dim_text(dim))
    }

    /// A condition as text that depends on nothing but the condition; for sizes, whichever side is written first.
    fn relation_text(&self, relation: &Relation) -> String {
        let (dim, shape) = (|it| self.dim_text(it), |it| self.shape_text(it));
        match relation {
            Relation::Shapes(a, b) => format!("{} = {}", shape(a), shape(b)),
            Relation::Dims(a, b) => {
                let (a, b) = (dim(a), dim(b));
                format!("{} = {}", (&a).min(&b), (&a).max(&b))
            }
            Relation::Positive(a) => format!("0 < {}", dim(a)),
            Relation::Elements(a, b) => format!("{} ~ {}", shape(a), shape(b)),
        }
    }

    fn text(&self, id: EquationId) -> String {
        self.relation_text(&self.equations[id as usize].relation)
    }

    /// The variable that an equation gives a value, if it is one of those alone on a side. Of two, the newer one.
    fn defined<'d>(&self, a: &'d Dim, b: &'d Dim) -> Option<(DimVar, &'d Dim)> {
        let sides = [(a, b), (b, a)].into_iter().filter_map(|(var, value)| match var {
            Dim::Var(var) if !self.arithmetic.vars(value).contains(var) => Some((*var, value)),
            _ => None,
        });
        sides.max_by_key(|(var, _)| *var)
    }

    /// Where an equation stands among those that come last; `None` for those that do not.
    fn class(&self, equation: &Equation) -> Option<Class> {
        match &equation.relation {
            Relation::Dims(a, b) if matches!((a, b), (Dim::Sum(_), _) | (_, Dim::Sum(_))) => {
                let vars = self.vars(&equation.relation).1;
                let newest = vars.last().copied();
                let balanced = match self.defined(a, b) {
                    Some(_) => None,
                    None if !equation.is_simple => return Some((NEW, None, vars.len())),
                    None => self.arithmetic.balanced(a, b).ok(),
                };
                let (a, b) = balanced.as_ref().map_or((a, b), |(a, b)| (a, b));
                let defined = self.defined(a, b);
                // Sizes that others are quotients of are not taken apart if there is another way.
                if defined.is_some_and(|(var, _)| self.divided.contains(&var)) {
                    return Some((LAST, newest, 0));
                }
                // Linear ones first: they may give the others their values. Of these, those whose value is positive
                // in any case, and then those that say what the newest of their variables is, so that results are
                // written with parameters.
                let linear = [a, b].into_iter().all(|dim| self.arithmetic.is_linear(dim));
                let defines = defined.is_some_and(|(var, _)| Some(var) == newest);
                let subtracted = defined.map(|(_, value)| self.arithmetic.num_subtracted(value));
                let class = [linear, subtracted == Some(0), defines];
                let class = class.iter().fold(0, |class, is_so| 2 * class + u8::from(!is_so));
                Some((NEW + 1 + class, newest, subtracted.unwrap_or(0)))
            }
            Relation::Positive(Dim::Sum(sum)) if self.arithmetic.bounds(sum) == (None, None) => {
                Some((LAST, None, 0))
            }
            _ => None,
        }
    }

    fn enqueue(&mut self, id: EquationId) {
        match self.class(&self.equations[id as usize]) {
            None => self.queue.push_back(id),
            Some(class) => _ = self.later.insert((class, self.text(id), id)),
        }
    }

    /// The next equation that is queued, or a residual that may be solved for one of its variables.
    fn dequeue(&mut self) -> Option<EquationId> {
        let first = self.queue.pop_front();
        first.or_else(|| self.later.pop_first().map(|(.., id)| id))
    }

    /// What there is at this time; what is made later is not before the mark.
    pub fn mark(&self) -> Mark {
        Mark {
            equations: self.equations.len(),
            dims: self.dims.len(),
            shapes: self.shapes.len(),
            steps: self.steps.as_ref().map_or(0, Vec::len),
        }
    }

    /// Applies the rules until none applies. After a conflict, the equation in which it was found
    /// counts as solved, and the next call goes on with the others.
    ///
    /// # Errors
    /// The equations contradict each other.
    pub fn solve(&mut self) -> Result<(), Box<Conflict>> {
        self.run().map_err(|failure| self.conflict(failure, usize::MAX, 0))
    }

    /// As [`Solver::solve`], without an explanation.
    fn run(&mut self) -> Result<(), Failure> {
        let mut given = std::mem::take(&mut self.given);
        // What says that a variable is empty comes first: variables beside it may be equal to others then.
        let is_last = |id: EquationId| match &self.equations[id as usize].relation {
            Relation::Shapes(a, b) => !a.items.is_empty() && !b.items.is_empty(),
            _ => true,
        };
        if 1 < given.len() {
            given.sort_by_cached_key(|&id| {
                (is_last(id), self.text(id), self.equations[id as usize].origin)
            });
        }
        for &id in &given {
            let divided = self.divided_vars(&self.equations[id as usize].relation);
            self.divided.extend(divided);
        }
        for id in given {
            self.equations[id as usize].state = State::Queued;
            self.enqueue(id);
        }
        while let Some(id) = self.dequeue() {
            if self.equations[id as usize].state != State::Queued {
                // What would be too large is left.
                let _ = self.isolate(id);
                continue;
            }
            self.equations[id as usize].state = State::Done;
            let relation = self.equations[id as usize].relation.clone();
            let old_rule = self.take_rule(id);
            match self.step(id, relation) {
                Ok(Outcome::Done) => {}
                Ok(Outcome::Simple) => {
                    let equation = &mut self.equations[id as usize];
                    (equation.state, equation.is_simple) = (State::Queued, true);
                    self.enqueue(id);
                }
                Ok(outcome) => self.wait(id, outcome, old_rule),
                Err(reason) => return Err((id, reason)),
            }
        }
        Ok(())
    }

    /// Solves what was given since a mark once more, all at once, so that the answer does not depend on
    /// which equations were solved before others were given. Where there is nothing but unification,
    /// it does not depend on that, and nothing is done. Variables
    /// made since then inside of `level` definitions lose their values first. Those of inner
    /// definitions keep theirs, which functions have already been used with, and those of outer ones,
    /// which all equations agree with. Then there have to be ranks and sizes that fit all residuals, and those that
    /// only one fits have it.
    ///
    /// # Errors
    /// The equations contradict each other.
    pub fn settle(&mut self, since: Mark, level: u32) -> Result<(), Box<Conflict>> {
        if self.reset(since, level) {
            self.solve()?;
            self.prefer_older(since, level);
            self.solve()?;
            let checked = self.solve_together(since);
            return checked.map_err(|failure| self.conflict(failure, usize::MAX, 0));
        }
        Ok(())
    }

    /// Takes back what was solved since a mark; not where the order of equations does not matter. Whether there
    /// is something to be solved.
    fn reset(&mut self, since: Mark, level: u32) -> bool {
        let ids = since.equations..self.equations.len();
        let is_unification =
            |equation: &Equation| !equation.depends_on_order && self.class(equation).is_none();
        if ids.clone().all(|id| is_unification(&self.equations[id])) {
            return false;
        }
        // Whether each equation is derived from one that was given since then.
        let mut is_own = vec![false; ids.len()];
        for id in ids {
            let Equation { parents, state, .. } = &self.equations[id];
            let (is_given, state) = (parents.is_empty(), *state);
            let own = parents.first().is_none_or(|&parent| {
                let place = (parent as usize).checked_sub(since.equations);
                place.is_some_and(|place| is_own[place])
            });
            is_own[id - since.equations] = own;
            if own && state != State::Failed {
                if state == State::Stuck {
                    self.take_rule(id as EquationId);
                }
                self.equations[id].state = State::Done;
                if is_given {
                    self.given.push(id as EquationId);
                    self.equations[id].is_simple = false;
                }
            }
        }
        for variable in self.dims.iter_mut().skip(since.dims) {
            variable.forget(level);
        }
        for variable in self.shapes.iter_mut().skip(since.shapes) {
            variable.forget(level);
        }
        if let Some(steps) = &mut self.steps {
            // What was decided stays so.
            let decided = steps.split_off(since.steps.min(steps.len())).into_iter();
            steps.extend(decided.filter(|step| step.rule == BROADCAST));
        }
        true
    }

    /// Replaces newer variables by the oldest that they are equal to, as unification does, also where that was
    /// found when others beside them turned out to be empty. Those are meant that [`Solver::reset`] takes back.
    fn prefer_older(&mut self, since: Mark, level: u32) {
        for number in since.shapes..self.shapes.len() {
            let var = ShapeVar(number as u32);
            let Some(cause) = self.shapes[number].value.as_ref().map(|(_, cause)| *cause) else {
                continue;
            };
            let value = self.try_shape(&Shape::var(var)).ok();
            if let Some(newer) = value.and_then(|value| value.as_var())
                && var < newer
                && [var, newer].iter().all(|var| self.shape_level(*var) == level)
            {
                self.shapes[number].value = None;
                self.bind_shape(cause, newer, Shape::var(var));
            }
        }
    }

    /// How many point-wise operations are not decided.
    pub fn num_pointwise(&self) -> usize {
        self.pointwise.len()
    }

    /// The shapes in the point-wise operations that are not decided, but for some that were given first.
    pub fn pointwise_shapes(&self, skip: usize) -> impl Iterator<Item = &Shape> {
        self.pointwise.iter().skip(skip).flat_map(|op| op.operands.iter().chain([&op.result]))
    }

    /// The conditions that are left, of the equations from a mark on.
    pub fn residuals(&mut self, from: Mark) -> Vec<Residual> {
        let stuck = (from.equations..self.equations.len())
            .filter(|&id| self.equations[id].state == State::Stuck)
            .map(|id| (self.equations[id].relation.clone(), self.equations[id].origin));
        let stuck: Vec<_> = stuck.collect();
        let resolved = stuck.into_iter().map(|(relation, origin)| {
            let relation = self.resolved(&relation);
            Residual { relation, origin }
        });
        let resolved = resolved.collect();
        self.spanning(resolved)
    }

    /// Forgets point-wise operations that are not decided, and equations that are not solved.
    pub fn abandon(&mut self) {
        self.pointwise.clear();
        let given = std::mem::take(&mut self.given);
        self.queue.extend(given);
        while let Some(id) = self.dequeue() {
            let state = &mut self.equations[id as usize].state;
            if *state != State::Stuck {
                *state = State::Done;
            }
        }
    }

    /// Forgets the residuals since a mark, of a definition that is wrong: they may contradict each other, and
    /// nothing follows from them for others.
    pub fn forget_residuals(&mut self, since: Mark) {
        for id in self.stuck_since(since) {
            self.take_rule(id);
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
        let relation = self.resolved(&self.equations[id as usize].relation.clone());
        self.equations[id as usize].depends_on_order = true;
        if self.connect(id, &relation) {
            return;
        }
        self.equations[id as usize].state = State::Stuck;
        if let Relation::Dims(..) = relation {
            self.later.insert(((OPEN, None, 0), self.relation_text(&relation), id));
        }
        let (shapes, dims) = self.vars(&relation);
        for var in shapes {
            self.shapes[var.0 as usize].waiting.push(id);
        }
        for var in dims {
            self.dims[var.0 as usize].waiting.push(id);
        }
        match outcome {
            Outcome::Rule(sum, value) if self.dim_rules.len() < MAX_RULES => {
                let known = matches!(&old, Some(Outcome::Rule(a, b)) if *a == sum && *b == value);
                let vars = self.arithmetic.polynomial_vars(&sum);
                let var = vars.first().copied();
                let vars = (Vec::new(), vars);
                self.dim_rules.push(DimRule { sum, value, equation: id, vars });
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
                let vars = self.vars(&Relation::Shapes(pattern.clone(), Shape::default()));
                self.shape_rules.push(ShapeRule { pattern, value, equation: id, vars });
                if let Some(var) = var.filter(|_| !known) {
                    let waiting = self.shapes[var.0 as usize].waiting.clone();
                    self.wake(waiting, Some(id));
                }
            }
            _ => {}
        }
    }

    /// The variables of a shape.
    pub fn shape_vars(&self, shape: &Shape) -> (Vec<ShapeVar>, Vec<DimVar>) {
        let (mut shapes, mut dims) = (Vec::new(), Vec::new());
        for item in &shape.items {
            match item {
                Item::Var(var) => shapes.push(*var),
                Item::Dim(dim) => dims.extend(self.arithmetic.vars(dim)),
            }
        }
        (shapes, dims)
    }

    /// The variables that stand in quotients of a condition.
    fn divided_vars(&self, relation: &Relation) -> Vec<DimVar> {
        let dims = |shape: &Shape| -> Vec<Dim> {
            shape.items.iter().filter_map(Item::as_dim).cloned().collect()
        };
        let dims: Vec<Dim> = match relation {
            Relation::Shapes(a, b) | Relation::Elements(a, b) => [dims(a), dims(b)].concat(),
            Relation::Dims(a, b) => vec![a.clone(), b.clone()],
            Relation::Positive(a) => vec![a.clone()],
        };
        dims.iter().flat_map(|dim| self.arithmetic.divided_vars(dim)).collect()
    }

    /// The variables of a condition, sorted.
    pub fn vars(&self, relation: &Relation) -> (Vec<ShapeVar>, Vec<DimVar>) {
        let (mut shapes, mut dims) = match relation {
            Relation::Shapes(a, b) | Relation::Elements(a, b) => {
                let (mut shapes, mut dims) = self.shape_vars(a);
                let others = self.shape_vars(b);
                shapes.extend(others.0);
                dims.extend(others.1);
                (shapes, dims)
            }
            Relation::Dims(a, b) => {
                let dims = self.arithmetic.vars(a).into_iter().chain(self.arithmetic.vars(b));
                (Vec::new(), dims.collect())
            }
            Relation::Positive(dim) => (Vec::new(), self.arithmetic.vars(dim)),
        };
        shapes.sort_unstable();
        shapes.dedup();
        dims.sort_unstable();
        dims.dedup();
        (shapes, dims)
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

    /// The rule that an equation has given rise to, which is removed, as are its sides.
    fn take_rule(&mut self, id: EquationId) -> Option<Outcome> {
        self.sides.remove(id);
        if let Some(at) = self.dim_rules.iter().position(|rule| rule.equation == id) {
            let rule = self.dim_rules.swap_remove(at);
            return Some(Outcome::Rule(rule.sum, rule.value));
        }
        let at = self.shape_rules.iter().position(|rule| rule.equation == id)?;
        let rule = self.shape_rules.swap_remove(at);
        Some(Outcome::ShapeRule(rule.pattern, rule.value))
    }
}

#[cfg(test)]
impl Solver {
    /// Equations between shapes as they are written, each with its place as origin.
    pub(super) fn of_shapes(equations: &[(&str, &str)]) -> (Self, super::text::Names) {
        let (mut solver, mut names) = (Self::new(), super::text::Names::default());
        for (&(left, right), origin) in equations.iter().zip(0..) {
            let [left, right] = [left, right].map(|text| names.shape(&mut solver, text).unwrap());
            solver.equate_shapes(left, right, origin);
        }
        (solver, names)
    }

    /// A shape that is written, with all put in that is known.
    pub(super) fn shown(&mut self, names: &mut super::text::Names, text: &str) -> String {
        let shape = names.shape(self, text).unwrap();
        let shape = self.resolved_shape(&shape);
        names.display_shape(self, &shape)
    }
}
