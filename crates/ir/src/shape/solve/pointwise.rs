//! Element-wise operations: decides which operands are equal and which are broadcast.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};

use super::{
    BROADCAST, Conflict, EquationId, Failure, Pointwise, Relation, Solver, State, Step, Var,
};
use crate::shape::text::shape_text;
use crate::shape::{Dim, Item, Shape, ShapeVar};

/// How many residuals are looked at to find out what shapes depend on: those nearest to their variables.
const MAX_NEIGHBOURS: usize = 256;

/// How many shapes are found that are the last part of one.
const MAX_PARTS: usize = 64;

/// What is said for a point-wise operation.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) op: Pointwise,
    /// The number of equations when the operations that were decided with it were complete.
    pub(super) time: EquationId,
    /// The equations of its result.
    results: Vec<EquationId>,
    /// What stands before each of its operands in its result, if that was said.
    leading: Vec<Option<ShapeVar>>,
    /// What was chosen, if it is decided.
    pub(super) choice: Option<Choice>,
}

/// The operand that has the shape of the result, and whether each operand is broadcast.
type Choice = (usize, Vec<bool>);

/// What is decided first: the least.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Priority {
    kind: Kind,
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

impl Priority {
    /// That of an operation on operands of known ranks without a choice: these are decided in the order in which they
    /// were added, so that those of others become known.
    fn known() -> Self {
        Self {
            kind: Kind::Forced,
            rank: 0,
            num_dims: Reverse(0),
            num_known: Reverse(0),
            operands: Vec::new(),
            result: String::new(),
            places: Vec::new(),
        }
    }
}

/// What can be decided about an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// There is at most one possibility.
    Forced,
    /// Its shapes can be equal, or those of all operands that need not be broadcast.
    Open,
    /// An operand has to be broadcast, and several could be.
    Ambiguous,
}

/// Where a variable stands first in some shapes: the number of the shape, its place there, and if another
/// variable stood there before, its place in the value of that one.
type Place = Vec<usize>;

/// The place of what does not stand there.
const NOWHERE: usize = usize::MAX;

/// The operations of a round in whose results a variable stands, or that wait for it.
type Results = HashMap<ShapeVar, BTreeSet<usize>>;

/// Takes an operation from those in whose results a variable stands. The operations that wait for it no longer: as
/// long as two others are there, each one does.
fn released(
    results: &mut Results,
    waiting: &mut Results,
    var: ShapeVar,
    number: usize,
) -> BTreeSet<usize> {
    let num_left = results.get_mut(&var).map_or(0, |numbers| {
        numbers.remove(&number);
        numbers.len()
    });
    if num_left < 2 { waiting.remove(&var).unwrap_or_default() } else { BTreeSet::new() }
}

impl Pointwise {
    /// Its operands and its result.
    pub(super) fn shapes(&self) -> impl Iterator<Item = &Shape> {
        self.operands.iter().chain([&self.result])
    }
}

impl Solver {
    /// Solves the equations, then decides about point-wise operations but for the first `keep`, one
    /// after the other, and solves again after each. What holds whatever is decided comes first, and is said as soon as
    /// it is known: operands are the last part of a known result, one that all others are the last part of is equal to
    /// it, and operations for which there is no choice are decided. Of the others, one whose operands depend on the
    /// results of others, also by residuals, waits for these. Those come first whose operands have the fewest
    /// dimensions, since what they make small can still be broadcast by larger ones, then those of which most is known,
    /// then by what their operands look like, and then those whose variables come first in `shapes`, which are
    /// those of a type. Those added first come first only where there is no difference. At the very end, operations
    /// are refused of which some operand has to be broadcast and each could be.
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
        if self.pointwise.len() <= keep {
            return Ok(());
        }
        let mut round: Vec<Option<Pointwise>> =
            self.pointwise.split_off(keep).into_iter().map(Some).collect();
        let mut places = HashMap::new();
        for (number, shape) in shapes.iter().enumerate() {
            for (place, var) in self.known_vars(shape).into_iter().enumerate() {
                places.entry(var).or_insert_with(|| vec![number, place]);
            }
        }
        let decided = self.pointwise_round(&mut round, &mut places, time);
        self.pointwise.extend(round.into_iter().flatten());
        decided
    }

    /// Decides about operations, each of which is taken out then. One that waits for others comes after those that do
    /// not, as far as that shows in the variables that there are.
    fn pointwise_round(
        &mut self,
        round: &mut [Option<Pointwise>],
        places: &mut HashMap<Var, Place>,
        time: EquationId,
    ) -> Result<(), Failure> {
        // The operations in whose results a variable stands, and those that wait for it.
        let mut results: Results = HashMap::new();
        let mut waiting: Results = HashMap::new();
        for (number, op) in round.iter().enumerate() {
            if let Some(op) = op.as_ref().filter(|op| !self.has_result(op)) {
                for var in self.free(&op.result) {
                    results.entry(var).or_default().insert(number);
                }
            }
        }
        // The operations in which a variable stands: their turn is another one when more is known about it.
        let mut standing: HashMap<Var, BTreeSet<usize>> = HashMap::new();
        let mut ready: BinaryHeap<Reverse<(Priority, usize, u32)>> = BinaryHeap::new();
        // Those that wait.
        let mut blocked = BinaryHeap::new();
        let mut num_asked = vec![0; round.len()];
        let mut asked: BTreeSet<usize> = (0..round.len()).collect();
        self.news.clear();
        self.wholes.clear();
        loop {
            self.run()?;
            for var in std::mem::take(&mut self.news) {
                asked.extend(standing.get(&var).into_iter().flatten());
                let value = match var {
                    Var::Shape(var) => Shape::var(var),
                    Var::Dim(var) => Shape::dims([Dim::Var(var)]),
                };
                let value = self.known_vars(&value);
                if value == [var] {
                    continue;
                }
                let place = places.remove(&var);
                if let Var::Shape(var) = var {
                    asked.extend(waiting.remove(&var).unwrap_or_default());
                    let numbers = results.remove(&var).unwrap_or_default();
                    for var in &value {
                        if let Var::Shape(var) = var {
                            results.entry(*var).or_default().extend(&numbers);
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
            while let Some(number) = asked.pop_first() {
                let Some(mut op) = round[number].take() else { continue };
                let priority = self.priority(&op, places);
                if priority.kind != Kind::Forced {
                    let had_result = self.has_result(&op);
                    self.say_facts(&mut op, time, round, &results);
                    if !had_result && self.has_result(&op) {
                        for var in self.free(&op.result) {
                            asked.extend(released(&mut results, &mut waiting, var, number));
                        }
                    }
                }
                for var in op.shapes().flat_map(|shape| self.known_vars(shape)) {
                    standing.entry(var).or_default().insert(number);
                }
                num_asked[number] += 1;
                let open = self.open_operand(number, &op, &results);
                let is_ready = match (priority.kind, open) {
                    (Kind::Open, Some(var)) => {
                        waiting.entry(var).or_default().insert(number);
                        false
                    }
                    (Kind::Ambiguous, _) => false,
                    _ => true,
                };
                let queue = if is_ready { &mut ready } else { &mut blocked };
                queue.push(Reverse((priority, number, num_asked[number])));
                round[number] = Some(op);
            }
            if !self.given.is_empty() {
                continue;
            }
            let is_ready = !ready.is_empty();
            let next = if is_ready { ready.pop() } else { blocked.pop() };
            let Some(Reverse((priority, number, time_asked))) = next else { return Ok(()) };
            let Some(op) = round[number].take_if(|_| time_asked == num_asked[number]) else {
                continue;
            };
            if is_ready
                && priority.kind == Kind::Open
                && let Some(var) = self.open_operand(number, &op, &results)
            {
                waiting.entry(var).or_default().insert(number);
                round[number] = Some(op);
                blocked.push(Reverse((priority, number, time_asked)));
                continue;
            }
            if !is_ready {
                // Conditions may say more by now.
                let known = self.priority(&op, places);
                if known != priority {
                    round[number] = Some(op);
                    asked.insert(number);
                    continue;
                }
            }
            for var in self.free(&op.result) {
                asked.extend(released(&mut results, &mut waiting, var, number));
            }
            self.decide(op, time);
        }
    }

    /// Says what holds whatever is decided about an operation of a round: its operands are the last part of its
    /// result, and if all are the last part of one of them, that one is equal to it.
    fn say_facts(
        &mut self,
        op: &mut Pointwise,
        time: EquationId,
        round: &[Option<Pointwise>],
        results: &Results,
    ) {
        let operands: Vec<Shape> = op.operands.iter().map(|it| self.resolved_shape(it)).collect();
        let result = self.resolved_shape(&op.result);
        if result.as_dims().is_some() {
            for (number, operand) in operands.iter().enumerate() {
                if !result.items.ends_with(&operand.items) && !self.is_part_of(operand, &result) {
                    let place = self.decision_about(op, time);
                    if self.decisions[place].leading[number].is_none() {
                        self.say_last_part(place, number, &op.result);
                    }
                }
            }
        }
        if self.has_result(op) {
            return;
        }
        // A number is not larger than the others.
        let others: Vec<&Shape> = operands.iter().filter(|it| !self.is_number(it)).collect();
        let max_parts = if result.as_var().is_some() { 1 } else { MAX_PARTS };
        let largest = (0..operands.len()).find(|&number| {
            self.ends_in(&operands[number], others.clone(), max_parts, round, results)
        });
        if let Some(largest) = largest
            && operands[largest] != result
            && !self.is_number(&operands[largest])
        {
            let place = self.decision_about(op, time);
            self.say_result(place, largest);
        }
    }

    /// Whether some shapes are the last part of another one, whatever is decided: of itself, or of so many parts of it,
    /// which are the operands of operations of a round that it or a part is the result of.
    fn ends_in(
        &mut self,
        whole: &Shape,
        mut others: Vec<&Shape>,
        max_parts: usize,
        round: &[Option<Pointwise>],
        results: &Results,
    ) -> bool {
        let mut parts = vec![whole.clone()];
        let mut place = 0;
        others.retain(|other| !whole.items.ends_with(&other.items));
        while let Some(part) = parts.get(place)
            && parts.len() < max_parts
            && !others.is_empty()
        {
            let part = part.clone();
            place += 1;
            let ops = part.as_var().and_then(|var| results.get(&var)).into_iter().flatten();
            for op in ops.filter_map(|number| round[*number].as_ref()) {
                if self.resolved_shape(&op.result) == part {
                    for operand in &op.operands {
                        let operand = self.resolved_shape(operand);
                        if !parts.contains(&operand) {
                            others.retain(|other| !operand.items.ends_with(&other.items));
                            parts.push(operand);
                        }
                    }
                }
            }
        }
        others.is_empty()
    }

    /// The place of what is said for an operation.
    fn decision_about(&mut self, op: &mut Pointwise, time: EquationId) -> usize {
        if let Some(place) = op.decision {
            return place;
        }
        let decision = Decision {
            op: op.clone(),
            time,
            results: Vec::new(),
            leading: vec![None; op.operands.len()],
            choice: None,
        };
        self.decisions.push(decision);
        *op.decision.insert(self.decisions.len() - 1)
    }

    /// Whether it has been said which operand the result of an operation is equal to.
    fn has_result(&self, op: &Pointwise) -> bool {
        op.decision.is_some_and(|place| !self.decisions[place].results.is_empty())
    }

    /// Adds an equation for an operation.
    fn say(&mut self, place: usize, left: Shape, right: Shape) -> EquationId {
        let id = self.given(Relation::Shapes(left, right), self.decisions[place].op.origin);
        self.decided.insert(id, place);
        id
    }

    /// Says that an operand has the shape of the result.
    fn say_result(&mut self, place: usize, largest: usize) {
        let op = &self.decisions[place].op;
        let id = self.say(place, op.result.clone(), op.operands[largest].clone());
        self.decisions[place].results.push(id);
    }

    /// Whether a resolved shape was said to be the last part of another one.
    fn is_part_of(&self, part: &Shape, whole: &Shape) -> bool {
        let wholes = part.as_var().and_then(|var| self.wholes.get(&var));
        wholes.is_some_and(|wholes| wholes.contains(whole))
    }

    /// Says that an operand is the last part of a shape that is the result's.
    fn say_last_part(&mut self, place: usize, number: usize, whole: &Shape) {
        let Decision { op, leading, .. } = &self.decisions[place];
        let (operand, leading) = (op.operands[number].clone(), leading[number]);
        let [known, known_whole] = [&operand, whole].map(|shape| self.resolved_shape(shape));
        if let Some(var) = known.as_var().filter(|_| !self.is_part_of(&known, &known_whole)) {
            self.wholes.entry(var).or_default().push(known_whole);
            self.news.push(Var::Shape(var));
        }
        let leading = leading.unwrap_or_else(|| {
            let level = operand.items.iter().chain(&whole.items).map(|item| match item {
                Item::Var(var) => self.shape_level(*var),
                Item::Dim(_) => u32::MAX,
            });
            let level = level.max().unwrap_or(0);
            self.shape_var(level)
        });
        self.decisions[place].leading[number] = Some(leading);
        let part = std::iter::once(Item::Var(leading)).chain(operand.items).collect();
        self.say(place, part, whole.clone());
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
        number: usize,
        op: &Pointwise,
        results: &Results,
    ) -> Option<ShapeVar> {
        let operands = op.operands.iter().flat_map(|operand| self.free(operand)).collect();
        // It does not wait for itself.
        let is_open =
            |var: &ShapeVar| results.get(var).into_iter().flatten().any(|it| *it != number);
        self.reached(operands).into_iter().find(is_open)
    }

    /// What can be decided about an operation.
    fn kind(&mut self, op: &Pointwise) -> Kind {
        let operands: Vec<Shape> = op.operands.iter().map(|it| self.resolved_shape(it)).collect();
        let result = self.resolved_shape(&op.result);
        let is_same = operands.windows(2).all(|pair| pair[0] == pair[1]);
        if is_same || operands.iter().all(|operand| operand.as_dims().is_some()) {
            return Kind::Forced;
        }
        if self.all_equal(&operands, &result) {
            return Kind::Open;
        }
        let choices = self.choices(&operands, &result);
        match &choices[..] {
            [] | [_] => Kind::Forced,
            [first, others @ ..] if others.iter().all(|it| it.1 == first.1) => Kind::Open,
            _ => Kind::Ambiguous,
        }
    }

    /// What the conditions allow where the shapes are not equal: which operand has the shape of the result,
    /// and whether each operand is broadcast.
    fn choices(&mut self, operands: &[Shape], result: &Shape) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (place, largest) in operands.iter().enumerate() {
            // A number does not take dimensions that only the result has.
            let is_number = self.is_number(largest);
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
                choices.push((place, broadcast));
            }
        }
        choices
    }

    /// When an operation is decided about, among those that are ready.
    fn priority(&mut self, op: &Pointwise, places: &HashMap<Var, Place>) -> Priority {
        let kind = self.kind(op);
        let mut operands: Vec<Shape> =
            op.operands.iter().map(|it| self.resolved_shape(it)).collect();
        if kind == Kind::Forced && operands.iter().all(|operand| operand.as_dims().is_some()) {
            return Priority::known();
        }
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
            kind,
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
    pub(super) fn decide(&mut self, mut op: Pointwise, time: EquationId) {
        let operands: Vec<Shape> =
            op.operands.iter().map(|shape| self.resolved_shape(shape)).collect();
        let result = self.resolved_shape(&op.result);
        // The operand that has the shape of the result, and which of the others are broadcast.
        let mut choice = (0, vec![false; operands.len()]);
        let rank = |shape: &Shape| Some(shape.as_dims()?.len());
        let ranks: Vec<Option<usize>> = operands.iter().map(rank).collect();
        // Only one whose rank is not known can have more dimensions than all others.
        let unknown = operands.iter().position(|it| rank(it).is_none() && !self.is_number(it));
        let result_rank = rank(&result).filter(|_| unknown.is_some());
        let largest = ranks.iter().copied().chain([result_rank]).max().flatten();
        let is_smaller = |rank: &Option<usize>| rank.is_some() && *rank < largest;
        if ranks.iter().any(is_smaller) {
            // They are not equal. If they cannot be broadcast either, this says why.
            let place = ranks.iter().position(|rank| *rank == largest).or(unknown).unwrap_or(0);
            choice = (place, ranks.iter().map(is_smaller).collect());
        }
        if !self.all_equal(&operands, &result) {
            let choices = self.choices(&operands, &result);
            if let Some(first) = choices.first()
                && choices.iter().all(|it| it.1 == first.1)
            {
                choice = first.clone();
            }
        }
        let place = self.decision_about(&mut op, time);
        let largest = &op.operands[choice.0];
        for (other, &broadcast) in choice.1.iter().enumerate() {
            let operand = &op.operands[other];
            if broadcast {
                if let Some(steps) = &mut self.steps {
                    let relation = Relation::Shapes(operands[other].clone(), largest.clone());
                    steps.push(Step { rule: BROADCAST, relation, origin: op.origin });
                }
                self.say_last_part(place, other, largest);
            } else if other != choice.0 {
                self.say(place, operand.clone(), largest.clone());
            }
        }
        self.say_result(place, choice.0);
        self.decisions[place].choice = Some(choice);
    }

    /// The place of the decision that an equation is for.
    pub(super) fn decision(&self, id: EquationId) -> Option<usize> {
        self.decided.get(&id).copied()
    }

    /// Whether an equation is one for the result of a point-wise operation.
    pub(super) fn is_result(&self, id: EquationId) -> bool {
        self.decision(id).is_some_and(|place| self.decisions[place].results.contains(&id))
    }

    /// Whether an equation is for an operation that has operands which are not numbers.
    pub(super) fn is_decided_with_others(&mut self, id: EquationId) -> bool {
        let Some(place) = self.decision(self.ancestor(id)) else { return false };
        let operands: Vec<Shape> = self.decisions[place].op.operands.clone();
        operands.iter().any(|operand| {
            let operand = self.resolved_shape(operand);
            !self.is_number(&operand)
        })
    }

    /// Whether a free variable is the shape of a number that no operation has tied to another operand.
    pub fn is_of_number(&self, var: ShapeVar) -> bool {
        self.of_numbers.contains_key(&var)
    }

    /// Whether a resolved shape is that of a number, of which nothing is known.
    fn is_number(&self, shape: &Shape) -> bool {
        shape.as_var().is_some_and(|var| self.is_of_number(var))
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
    fn consistent(&mut self, mut pairs: Vec<(Shape, Shape, bool)>) -> bool {
        // Of most, nothing is left to be asked.
        let mut are_possible = true;
        pairs.retain(|(left, right, broadcast)| {
            let known = compared(left, right, *broadcast);
            are_possible &= known != Some(false);
            known.is_none()
        });
        if !are_possible || pairs.is_empty() {
            return are_possible;
        }
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

/// Whether resolved shapes are equal, or the second one ends in the first, if that shows in the shapes alone.
fn compared(left: &Shape, right: &Shape, broadcast: bool) -> Option<bool> {
    let (part, whole) = (left.as_dims()?, right.as_dims()?);
    let num_leading = whole.len().checked_sub(part.len());
    let Some(start) = num_leading.filter(|leading| broadcast || *leading == 0) else {
        return Some(false);
    };
    let is_known = |dim: &Dim| matches!(dim, Dim::Constant(_) | Dim::Ragged);
    let mut pairs = part.into_iter().zip(&whole[start..]);
    if pairs.clone().any(|(a, b)| a != *b && is_known(a) && is_known(b)) {
        return Some(false);
    }
    pairs.all(|(a, b)| a == *b).then_some(true)
}
