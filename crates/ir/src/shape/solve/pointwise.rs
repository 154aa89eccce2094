//! Point-wise operations: which operands are equal, and which are broadcast.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::ops::Range;

use super::{
    BROADCAST, Conflict, EquationId, Failure, Pointwise, Relation, Solver, State, Step, Var,
};
use crate::shape::text::shape_text;
use crate::shape::{Dim, Item, Shape, ShapeVar};

/// How many residuals are looked at to find out what shapes depend on: those nearest to their variables.
const MAX_NEIGHBOURS: usize = 256;

/// A decision about a point-wise operation.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) op: Pointwise,
    /// The number of equations when the operations that were decided with it were complete.
    pub(super) time: EquationId,
    /// Its equations; the last one is that of the result.
    pub(super) equations: Range<EquationId>,
    /// The operand that has the shape of the result, and whether each operand is broadcast.
    pub(super) choice: (usize, Vec<bool>),
}

/// What is decided first: the least.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Priority {
    /// How many dimensions the largest operand is known to have at least.
    rank: usize,
    /// How many all of them have.
    num_dims: Reverse<usize>,
    /// How many of these sizes are known.
    num_known: Reverse<usize>,
    operands: Vec<String>,
    result: String,
    /// Where their variables stand.
    places: Vec<Place>,
}

/// Where a variable stands first in some shapes: the number of the shape, its place there, and if another
/// variable stood there before, its place in the value of that one.
type Place = Vec<usize>;

/// The place of what does not stand there.
const NOWHERE: usize = usize::MAX;

impl Pointwise {
    /// Its operands and its result.
    pub(super) fn shapes(&self) -> impl Iterator<Item = &Shape> {
        self.operands.iter().chain([&self.result])
    }
}

impl Solver {
    /// Solves the equations, then decides about point-wise operations but for the first `keep`, one
    /// after the other, and solves again after each. An operation whose operands depend on the results
    /// of others, also by residuals, waits for these; of those that wait for each other the ones come first
    /// that have to be broadcast. Otherwise those come first whose operands have the fewest dimensions,
    /// since what they make small can still be broadcast by larger ones, then those of which most is known,
    /// then by what their operands look like, and then those whose variables come first in `shapes`, which are
    /// those of a type. Those added first come first only where there is no difference.
    ///
    /// # Errors
    /// The equations contradict each other.
    pub fn solve_pointwise(&mut self, keep: usize, shapes: &[Shape]) -> Result<(), Box<Conflict>> {
        let time = self.equations.len() as EquationId;
        self.run_pointwise(keep, shapes).map_err(|failure| self.conflict(failure, keep, time))
    }

    /// As [`Solver::solve_pointwise`], without an explanation.
    pub(super) fn run_pointwise(&mut self, keep: usize, shapes: &[Shape]) -> Result<(), Failure> {
        let time = self.equations.len() as EquationId;
        self.run()?;
        while keep < self.pointwise.len() {
            let mut round: Vec<Option<Pointwise>> =
                self.pointwise.split_off(keep).into_iter().map(Some).collect();
            let mut places = HashMap::new();
            for (number, shape) in shapes.iter().enumerate() {
                for (place, var) in self.known_vars(shape).into_iter().enumerate() {
                    places.entry(var).or_insert_with(|| vec![number, place]);
                }
            }
            let failed = self.pointwise_round(&mut round, &mut places, time);
            let num_left = round.iter().flatten().count();
            let decided = num_left < round.len();
            self.pointwise.extend(round.into_iter().flatten());
            failed?;
            if !decided {
                // Of those that wait for each other.
                let open: Vec<Pointwise> = self.pointwise.iter().skip(keep).cloned().collect();
                let order = |op: &Pointwise| (self.may_be_equal(op), self.priority(op, &places));
                let first = (keep..).zip(open.iter().map(order)).min_by(|a, b| a.1.cmp(&b.1));
                let first = first.map(|(place, _)| place);
                if let Some(first) = first.and_then(|place| self.pointwise.remove(place)) {
                    self.decide(first, time);
                    self.run()?;
                }
            }
        }
        Ok(())
    }

    /// Decides about operations, each of which is taken out then, until those that are left wait for
    /// each other, as far as that shows in the variables that there are now.
    fn pointwise_round(
        &mut self,
        round: &mut [Option<Pointwise>],
        places: &mut HashMap<Var, Place>,
        time: EquationId,
    ) -> Result<(), Failure> {
        // How many operations that are not decided have a variable in their result, and which wait
        // for it.
        let mut open: HashMap<ShapeVar, usize> = HashMap::new();
        let mut waiting: HashMap<ShapeVar, BTreeSet<usize>> = HashMap::new();
        for op in round.iter().flatten() {
            self.free(&op.result).into_iter().for_each(|var| *open.entry(var).or_default() += 1);
        }
        // The operations in which a variable stands: their turn is another one when more is known about it.
        let mut standing: HashMap<Var, BTreeSet<usize>> = HashMap::new();
        let mut ready: BinaryHeap<Reverse<(Priority, usize, u32)>> = BinaryHeap::new();
        let mut num_asked = vec![0; round.len()];
        let mut asked: BTreeSet<usize> = (0..round.len()).collect();
        self.bound.clear();
        loop {
            while let Some(number) = asked.pop_first() {
                let Some(op) = &round[number] else { continue };
                for var in op.shapes().flat_map(|shape| self.known_vars(shape)) {
                    standing.entry(var).or_default().insert(number);
                }
                num_asked[number] += 1;
                match self.open_operand(op, &open) {
                    Some(var) => _ = waiting.entry(var).or_default().insert(number),
                    None => {
                        let priority = self.priority(op, places);
                        ready.push(Reverse((priority, number, num_asked[number])));
                    }
                }
            }
            let Some(Reverse((_, number, time_asked))) = ready.pop() else { return Ok(()) };
            let Some(op) = round[number].take_if(|_| time_asked == num_asked[number]) else {
                continue;
            };
            if let Some(var) = self.open_operand(&op, &open) {
                waiting.entry(var).or_default().insert(number);
                round[number] = Some(op);
                continue;
            }
            for var in self.free(&op.result) {
                open.entry(var).and_modify(|count| *count = count.saturating_sub(1));
                asked.extend(waiting.remove(&var).unwrap_or_default());
            }
            self.decide(op, time);
            self.run()?;
            for var in std::mem::take(&mut self.bound) {
                asked.extend(standing.remove(&var).unwrap_or_default());
                let place = places.remove(&var);
                let value = match var {
                    Var::Shape(var) => Shape::var(var),
                    Var::Dim(var) => Shape::dims([Dim::Var(var)]),
                };
                let value = self.known_vars(&value);
                if let Var::Shape(var) = var {
                    asked.extend(waiting.remove(&var).unwrap_or_default());
                    let count = open.remove(&var).unwrap_or_default();
                    for var in &value {
                        if let Var::Shape(var) = var {
                            *open.entry(*var).or_default() += count;
                        }
                    }
                }
                let Some(place) = place else { continue };
                let is_alone = value.len() == 1;
                for (number, var) in value.into_iter().enumerate() {
                    let own = if is_alone { &[][..] } else { &[number] };
                    let place = [&place[..], own].concat();
                    if places.get(&var).is_none_or(|old| place < *old) {
                        places.insert(var, place);
                        asked.extend(standing.get(&var).into_iter().flatten());
                    }
                }
            }
        }
    }

    /// The variables of a shape in order, with all put in that is known.
    fn known_vars(&mut self, shape: &Shape) -> Vec<Var> {
        let vars = self.resolved_shape(shape).items.into_iter().flat_map(|item| match item {
            Item::Var(var) => vec![Var::Shape(var)],
            Item::Dim(dim) => self.arithmetic.vars(&dim).into_iter().map(Var::Dim).collect(),
        });
        vars.collect()
    }

    /// A variable that the operands of an operation depend on, and that the results of others are written with.
    fn open_operand(
        &mut self,
        op: &Pointwise,
        open: &HashMap<ShapeVar, usize>,
    ) -> Option<ShapeVar> {
        let result = self.free(&op.result);
        let operands = op.operands.iter().flat_map(|operand| self.free(operand)).collect();
        // It does not wait for itself.
        let is_open = |var: &ShapeVar| {
            let own = result.iter().filter(|it| *it == var).count();
            open.get(var).is_some_and(|count| own < *count)
        };
        self.reached(operands).into_iter().find(is_open)
    }

    /// Whether the operands of an operation and its result can be equal: otherwise it is clear that one is
    /// broadcast.
    fn may_be_equal(&mut self, op: &Pointwise) -> bool {
        let operands: Vec<Shape> = op.operands.iter().map(|it| self.resolved_shape(it)).collect();
        let result = self.resolved_shape(&op.result);
        self.all_equal(&operands, &result)
    }

    /// When an operation is decided about, among those that are ready.
    fn priority(&mut self, op: &Pointwise, places: &HashMap<Var, Place>) -> Priority {
        let mut operands: Vec<Shape> =
            op.operands.iter().map(|it| self.resolved_shape(it)).collect();
        operands.push(self.resolved_shape(&op.result));
        let mut looks: Vec<String> = operands.iter().map(|shape| self.look(shape)).collect();
        let result = looks.pop().unwrap_or_default();
        operands.pop();
        looks.sort();
        let vars = op.shapes().flat_map(|shape| self.known_vars(shape));
        let place = |var| places.get(&var).cloned().unwrap_or_else(|| vec![NOWHERE]);
        let places = vars.map(place).collect();
        let ranks = operands.iter().map(Shape::min_rank);
        let sizes = operands.iter().flat_map(|shape| shape.items.iter().filter_map(Item::as_dim));
        let num_known = sizes.filter(|dim| matches!(dim, Dim::Constant(_))).count();
        Priority {
            rank: ranks.clone().max().unwrap_or(0),
            num_dims: Reverse(ranks.sum()),
            num_known: Reverse(num_known),
            operands: looks,
            result,
            places,
        }
    }

    /// A shape as text in which the numbers of variables do not matter.
    pub(super) fn look(&self, shape: &Shape) -> String {
        let dim = |dim: &Dim| self.arithmetic.dim_text(dim, &|_| "d".to_string());
        shape_text(shape, &|_| "s".to_string(), &dim)
    }

    /// The variables of a shape that stand for shapes which are not known.
    fn free(&mut self, shape: &Shape) -> Vec<ShapeVar> {
        let vars = self.resolved_shape(shape).items.into_iter().filter_map(|item| match item {
            Item::Var(var) => Some(var),
            Item::Dim(_) => None,
        });
        vars.collect()
    }

    /// Variables, and those that residuals relate them to: `r` in `[k]@r = p@[3]` is known with `p`.
    fn reached(&mut self, mut vars: Vec<ShapeVar>) -> Vec<ShapeVar> {
        let mut seen: HashSet<ShapeVar> = vars.iter().copied().collect();
        let mut looked_at: HashSet<EquationId> = HashSet::new();
        let mut place = 0;
        while let Some(var) = vars.get(place) {
            place += 1;
            let stuck = self.stuck_of(&self.shapes[var.0 as usize].waiting);
            for id in stuck.collect::<Vec<_>>() {
                if looked_at.len() == MAX_NEIGHBOURS {
                    return vars;
                }
                if looked_at.insert(id)
                    && let Relation::Shapes(left, right) =
                        self.equations[id as usize].relation.clone()
                {
                    let both = [self.free(&left), self.free(&right)].concat();
                    vars.extend(both.into_iter().filter(|var| seen.insert(*var)));
                }
            }
        }
        vars
    }

    /// Chooses the equations of a point-wise operation.
    pub(super) fn decide(&mut self, op: Pointwise, time: EquationId) {
        let start = self.equations.len() as EquationId;
        let operands: Vec<Shape> =
            op.operands.iter().map(|shape| self.resolved_shape(shape)).collect();
        let result = self.resolved_shape(&op.result);
        // The operand that has the shape of the result, and which of the others are broadcast.
        let mut choice = (0, vec![false; operands.len()]);
        let rank = |shape: &Shape| Some(shape.as_dims()?.len());
        let ranks: Vec<Option<usize>> = operands.iter().map(rank).collect();
        // Only one whose rank is not known can have more dimensions than all others.
        let unknown = operands.iter().position(|it| rank(it).is_none() && !self.is_of_number(it));
        let result_rank = rank(&result).filter(|_| unknown.is_some());
        let largest = ranks.iter().copied().chain([result_rank]).max().flatten();
        let is_smaller = |rank: &Option<usize>| rank.is_some() && *rank < largest;
        if ranks.iter().any(is_smaller) {
            // They are not equal. If they cannot be broadcast either, this says why.
            let place = ranks.iter().position(|rank| *rank == largest).or(unknown).unwrap_or(0);
            choice = (place, ranks.iter().map(is_smaller).collect());
        }
        if !self.all_equal(&operands, &result) {
            for (place, largest) in operands.iter().enumerate() {
                // A number does not take dimensions that only the result has.
                let is_number = self.is_of_number(largest);
                let is_broadcast = |shape: &Shape| {
                    let mut shapes = vec![shape.clone()];
                    shapes.extend((!is_number).then(|| result.clone()));
                    !self.all_equal(&shapes, largest)
                };
                let broadcast: Vec<bool> = operands.iter().map(is_broadcast).collect();
                let relations = (operands.iter().zip(&broadcast))
                    .map(|(shape, &broadcast)| (shape.clone(), largest.clone(), broadcast));
                let relations = relations.chain([(result.clone(), largest.clone(), false)]);
                let relations = relations.collect();
                if self.consistent(relations) {
                    choice = (place, broadcast);
                    break;
                }
            }
        }
        let largest = &op.operands[choice.0];
        for (other, &broadcast) in choice.1.iter().enumerate() {
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
                    steps.push(Step { rule: BROADCAST, relation, origin: op.origin });
                }
                self.given(Relation::Shapes(whole, largest.clone()), op.origin);
            } else if other != choice.0 {
                self.given(Relation::Shapes(operand, largest.clone()), op.origin);
            }
        }
        self.given(Relation::Shapes(op.result.clone(), largest.clone()), op.origin);
        let equations = start..self.equations.len() as EquationId;
        self.decisions.push(Decision { op, time, equations, choice });
    }

    /// The place of the decision that an equation is for.
    pub(super) fn decision(&self, id: EquationId) -> Option<usize> {
        let place = self.decisions.partition_point(|decision| decision.equations.end <= id);
        self.decisions.get(place)?.equations.contains(&id).then_some(place)
    }

    /// Whether an equation is the one for the result of a point-wise operation.
    pub(super) fn is_result(&self, id: EquationId) -> bool {
        self.decision(id).is_some_and(|place| id + 1 == self.decisions[place].equations.end)
    }

    /// Whether a resolved shape is that of a number, of which nothing is known.
    fn is_of_number(&self, shape: &Shape) -> bool {
        shape.as_var().is_some_and(|var| self.of_numbers.contains_key(&var))
    }

    /// Whether shapes can be equal to another one, all at once.
    fn all_equal(&mut self, shapes: &[Shape], other: &Shape) -> bool {
        // Most are the same already, or variables of which nothing is known.
        let mut distinct: Vec<&Shape> = Vec::new();
        for shape in shapes.iter().chain([other]) {
            if !distinct.contains(&shape) {
                distinct.push(shape);
            }
        }
        let compound = distinct.iter().filter(|shape| shape.as_var().is_none());
        let compound: Vec<_> = compound.copied().collect();
        let is_asked = |var: ShapeVar| {
            compound.iter().any(|shape| shape.items.contains(&Item::Var(var)))
                || self.stuck_of(&self.shapes[var.0 as usize].waiting).next().is_some()
        };
        if distinct.len() == 1
            || compound.len() <= 1 && !distinct.iter().filter_map(|it| it.as_var()).any(is_asked)
        {
            return true;
        }
        let pairs = distinct[1..].iter().map(|&it| (it.clone(), distinct[0].clone(), false));
        self.consistent(pairs.collect())
    }

    /// Whether pairs of resolved shapes can be equal, or the second end in the first, given the
    /// residuals.
    fn consistent(&mut self, pairs: Vec<(Shape, Shape, bool)>) -> bool {
        let mut leading = (self.shapes.len() as u32..).map(|number| Item::Var(ShapeVar(number)));
        let equation = |(mut left, right, broadcast): (Shape, Shape, bool)| {
            if broadcast {
                left.items.insert_many(0, leading.next());
            }
            Relation::Shapes(left, right)
        };
        let equations: Vec<Relation> = pairs.into_iter().map(equation).collect();
        self.are_consistent(&equations)
    }

    /// Those of some equations that are residuals.
    pub(super) fn stuck_of<'s>(
        &'s self,
        ids: &'s [EquationId],
    ) -> impl Iterator<Item = EquationId> + 's {
        ids.iter().copied().filter(|&id| self.equations[id as usize].state == State::Stuck)
    }
}
