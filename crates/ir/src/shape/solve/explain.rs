//! Explains contradictions by a minimal set of origins.
//!
//! The minimal set is found by leaving out (Chinneck and Dravnieks, "Locating minimal infeasible
//! constraint sets in linear programs", 1991: the deletion filter), first in large pieces. What a use
//! of a definition says is at first one member of the set; as long as there is such a use, the
//! equations of its definition take its place, with variables of their own, and what can be left out
//! now is left out. So the places inside of a definition are found that a contradiction outside of it
//! depends on, and nothing is paid for them before there is one.
//!
//! What was decided about a point-wise operation depends on what else there was. So the operation is
//! the member of the set, and it is decided anew where only a part of the others is there, once all of
//! these are solved that were there when it was decided.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::Hash;
use std::ops::Range;
use std::rc::Rc;

use super::copy::{Copy, Renaming};
use super::pointwise::Decision;
use super::{
    Conflict, Equation, EquationId, Failure, Mark, Origin, Pointwise, Reason, Relation, Solver,
    State, Variable,
};
use crate::shape::{Dim, DimError, DimVar, Item, Shape, ShapeVar};

/// How much work may go into making a set of conflicting equations minimal, in equations solved, parts of what is
/// found out about variables, and [`DECISION_WORK`] for each decision about a point-wise operation.
const MAX_EXPLANATION_WORK: usize = 1 << 22;

/// How much work a decision is.
const DECISION_WORK: usize = 100;

/// How many definitions deep an explanation goes; what is used there is one member of the set.
const MAX_NESTED: usize = 128;

/// How many equations of definitions are looked at.
const MAX_COPIED: usize = 1 << 16;

/// The equations of a definition, and which of its variables stand for something else in each use.
#[derive(Clone, Debug)]
pub struct Definition {
    since: Mark,
    end: Mark,
    /// Variables that were made meanwhile inside of more definitions are its own.
    level: u32,
}

impl Definition {
    pub(super) fn new(since: Mark, end: Mark, level: u32) -> Self {
        Self { since, end, level }
    }
}

/// A use of a definition.
#[derive(Clone, Debug)]
pub struct Use {
    /// What is used.
    pub definition: Rc<Definition>,
    /// What stands for the variables that it has for any value.
    pub renaming: Renaming,
    /// Variables of the use that stand for shapes of the definition, in its terms.
    pub shapes: Vec<(ShapeVar, Shape)>,
}

/// Equations that have no solution, each with what it was made for: first the place of the equation
/// itself, then the uses of definitions that it comes from.
#[derive(Clone, Debug, Default)]
struct System {
    equations: Vec<Labelled>,
    /// Where the contradiction was found.
    origin: Origin,
    contexts: Vec<Context>,
    /// The uses that definitions have been put in for, and their contexts.
    done: HashSet<(Origin, usize)>,
}

/// What is said in the place of a member of the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Labelled {
    /// What was given; `None` of what a use says, and of an operation that is not decided.
    source: Option<Source>,
    said: Said,
    /// The number of equations when it was said.
    time: EquationId,
    labels: Vec<Origin>,
    /// The number of its context.
    context: usize,
}

/// What something is a copy of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    /// A given equation.
    Equation(EquationId),
    /// An operation, by the place of the decision about it.
    Decision(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    Relation(Relation),
    Pointwise(Pointwise),
}

/// A definition put in for a use, in the context of the use. The first one is no definition.
#[derive(Clone, Debug, Default)]
struct Context {
    given: Range<usize>,
    renaming: Renaming,
    /// The uses.
    labels: Vec<Origin>,
    outer: usize,
}

/// A contradiction between the equation of one place and those of others.
#[derive(Debug)]
pub struct Clash {
    /// The equation, with all put in that the others say.
    pub relation: Relation,
    /// Its number; `None` if it was decided about.
    pub equation: Option<EquationId>,
    /// Whether it is the one for the result of a point-wise operation.
    pub is_result: bool,
    /// Why it does not hold.
    pub reason: Reason,
    /// What the others say.
    pub known: Known,
}

/// What some equations say on their own.
#[derive(Debug)]
pub struct Known(Copy);

impl Known {
    /// A shape with all put in that the equations say.
    pub fn shape(&mut self, shape: &Shape) -> Shape {
        self.0.resolved_shape(shape)
    }

    /// A dimension with all put in that the equations say.
    pub fn dim(&mut self, dim: &Dim) -> Dim {
        self.0.resolved_dim(dim)
    }
}

/// A variable, the one that is its value, the value of that one, and so on, each with the equation that
/// gave it the value.
fn chain<V: std::marker::Copy>(
    first: V,
    next: impl Fn(V) -> Option<(Option<V>, EquationId)>,
) -> Vec<(V, Option<EquationId>)> {
    let mut links = Vec::new();
    let mut var = Some(first);
    while let Some(current) = var {
        let value = next(current);
        links.push((current, value.map(|(_, id)| id)));
        var = value.and_then(|(value, _)| value);
    }
    links
}

/// The equations of two chains before the first variable that both have.
fn apart<V: std::marker::Copy + Eq + Hash>(
    a: Vec<(V, Option<EquationId>)>,
    b: Vec<(V, Option<EquationId>)>,
) -> Vec<EquationId> {
    let vars: HashSet<V> = b.iter().map(|(var, _)| *var).collect();
    let common = a.iter().map(|(var, _)| *var).find(|var| vars.contains(var));
    let before = |links: Vec<(V, Option<EquationId>)>| {
        links.into_iter().take_while(move |(var, _)| Some(*var) != common)
    };
    before(a).chain(before(b)).filter_map(|(_, id)| id).collect()
}

impl System {
    /// All that something was made for, sorted.
    fn labels(&self) -> Vec<Origin> {
        let labels = self.equations.iter().flat_map(|equation| equation.labels.iter().copied());
        let all: BTreeSet<Origin> = labels.collect();
        all.into_iter().collect()
    }
}

impl Solver {
    /// Explains that an equation does not hold, where point-wise operations but for the first `keep` are
    /// being decided about since some time.
    pub(super) fn conflict(
        &mut self,
        (id, reason): Failure,
        keep: usize,
        time: EquationId,
    ) -> Box<Conflict> {
        let given = self.ancestor(id);
        let relation = match self.equations[given as usize].relation.clone() {
            // It says what is compared.
            positive @ Relation::Positive(_) => positive,
            relation => self.resolved(&relation),
        };
        let origin = self.equations[id as usize].origin;
        let mut conflict = Conflict {
            reason,
            relation,
            origin,
            equation: given,
            is_result: self.is_result(given),
            core: Vec::new(),
            places: Vec::new(),
            minimal: true,
            given: Vec::new(),
        };
        match conflict.reason {
            // No contradiction: what is too large follows from each of many places.
            Reason::Arithmetic(DimError::Overflow | DimError::TooLarge) => {
                conflict.core = self.direct_causes(id);
            }
            _ => {
                let open = self.pointwise.iter().skip(keep).map(|op| Labelled {
                    source: None,
                    said: Said::Pointwise(op.clone()),
                    time,
                    labels: vec![op.origin],
                    context: 0,
                });
                let open: Vec<Labelled> = open.collect();
                self.core(id, open, &mut conflict);
            }
        }
        self.equations[given as usize].state = State::Failed;
        Box::new(conflict)
    }

    /// Returns what the given equations were made for from which it follows that two dimensions are
    /// equal; sorted. More than are needed may be among them.
    pub fn why_equal_dims(&self, a: DimVar, b: DimVar) -> Vec<Origin> {
        let next = |var: DimVar| {
            let (value, id) = self.dims[var.0 as usize].value.as_ref()?;
            let next = match value {
                Dim::Var(next) => Some(*next),
                _ => None,
            };
            Some((next, *id))
        };
        self.origins_of(apart(chain(a, next), chain(b, next)))
    }

    /// The same for two shapes.
    pub fn why_equal_shapes(&self, a: ShapeVar, b: ShapeVar) -> Vec<Origin> {
        let next = |var: ShapeVar| {
            let (value, id) = self.shapes[var.0 as usize].value.as_ref()?;
            Some((value.as_var(), *id))
        };
        self.origins_of(apart(chain(a, next), chain(b, next)))
    }

    fn origins_of(&self, derived: Vec<EquationId>) -> Vec<Origin> {
        let given = self.support(derived).into_iter();
        let origins: BTreeSet<Origin> =
            given.map(|id| self.equations[id as usize].origin).collect();
        origins.into_iter().collect()
    }

    pub(super) fn ancestor(&self, mut id: EquationId) -> EquationId {
        while let Some(parent) = self.equations[id as usize].parents.first() {
            id = *parent;
        }
        id
    }

    /// The given equations that derived ones may depend on, sorted.
    fn support(&self, from: Vec<EquationId>) -> Vec<EquationId> {
        let given = self.support_of(from.clone(), None);
        match given.iter().any(|id| self.decision(*id).is_some()) {
            true => self.support_of(from, Some(&[])),
            false => given,
        }
    }

    /// The given equations that derived ones may depend on, sorted. Where operations are decided anew,
    /// all that may be known about their operands and results, and about some more shapes.
    fn support_of(
        &self,
        mut pending: Vec<EquationId>,
        decided: Option<&[&Shape]>,
    ) -> Vec<EquationId> {
        let mut seen: HashSet<EquationId> = HashSet::new();
        let decides = decided.is_some();
        let shapes = decided.into_iter().flatten();
        shapes.for_each(|shape| self.causes_of(shape, true, &mut pending));
        let mut given = Vec::new();
        while let Some(id) = pending.pop() {
            if !seen.insert(id) {
                continue;
            }
            let equation = &self.equations[id as usize];
            if equation.parents.is_empty() {
                given.push(id);
            }
            pending.extend(&equation.parents);
            let mut shape = |shape: &Shape| self.causes_of(shape, decides, &mut pending);
            if let Some(place) = self.decision(id).filter(|_| decides) {
                self.decisions[place].op.shapes().for_each(&mut shape);
            }
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

    /// The equations that gave the variables of a shape their values, and where something is to be
    /// decided about it, the residuals that they stand in and what says that they are those of numbers.
    fn causes_of(&self, shape: &Shape, decides: bool, causes: &mut Vec<EquationId>) {
        for item in &shape.items {
            match item {
                Item::Var(var) => {
                    let Variable { value, waiting, .. } = &self.shapes[var.0 as usize];
                    causes.extend(value.as_ref().map(|(_, cause)| *cause));
                    if decides {
                        causes.extend(self.stuck_of(waiting));
                        causes.extend(self.of_numbers.get(var).copied().flatten());
                    }
                }
                Item::Dim(dim) => causes.extend(self.causes(dim)),
            }
        }
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

    /// What equations were made for that contradict each other. `open` are operations that have not been
    /// decided about.
    fn core(&mut self, id: EquationId, open: Vec<Labelled>, conflict: &mut Conflict) {
        let mut system = self.system(&self.support(vec![id]), conflict.origin);
        let mut work = MAX_EXPLANATION_WORK;
        let mut refuted = self.refute(&system, &system.labels(), &mut work);
        if refuted.is_none() {
            // Others come first where something else is decided.
            let shapes = open.iter().filter_map(|it| match &it.said {
                Said::Pointwise(op) => Some(op.shapes()),
                Said::Relation(_) => None,
            });
            let shapes: Vec<&Shape> = shapes.flatten().collect();
            let support = self.support_of(vec![id], Some(&shapes));
            system = self.system(&support, conflict.origin);
            system.equations.extend(open);
            refuted = self.refute(&system, &system.labels(), &mut work);
        }
        (conflict.core, conflict.minimal) = match refuted {
            Some(set) => self.minimal(&system, set, &[], &mut work),
            None => (system.labels(), false),
        };
        let is_given = |it: &&Labelled| is_among(&it.labels, &conflict.core);
        conflict.given = system.equations.iter().filter(is_given).cloned().collect();
        conflict.places = conflict.core.clone();
        let mut num_copied = 0;
        for _ in 0..MAX_NESTED {
            if !conflict.minimal {
                break;
            }
            system.equations.retain(|equation| is_among(&equation.labels, &conflict.core));
            let Some(next) = self.put_in(&system, &mut num_copied) else { break };
            // What the rules leave open may be found in another order only.
            let Some(set) = self.refute(&next, &next.labels(), &mut work) else { break };
            system = next;
            // Without one of those that were needed, what takes the place of a use says no more than it.
            let needed = std::mem::take(&mut conflict.core);
            (conflict.core, conflict.minimal) = self.minimal(&system, set, &needed, &mut work);
        }
        if conflict.minimal && 0 < num_copied {
            let set = std::mem::take(&mut conflict.core);
            (conflict.core, conflict.minimal) = self.minimal(&system, set, &[], &mut work);
        }
    }

    /// Leaves out what can be left out, but for what is needed: first in large pieces, at last one by
    /// one. And whether that came to an end.
    fn minimal(
        &self,
        system: &System,
        mut set: Vec<Origin>,
        needed: &[Origin],
        work: &mut usize,
    ) -> (Vec<Origin>, bool) {
        let is_open = |origin: &Origin| needed.binary_search(origin).is_err();
        let mut open: Vec<Origin> = set.iter().copied().filter(is_open).collect();
        let mut piece = open.len().div_ceil(2);
        loop {
            let before = open.len();
            let mut at = 0;
            while at < open.len() {
                let end = (at + piece).min(open.len());
                let left_out = &open[at..end];
                let mut rest = set.clone();
                rest.retain(|origin| left_out.binary_search(origin).is_err());
                if *work == 0 {
                    return (set, false);
                }
                match self.refute(system, &rest, work) {
                    Some(smaller) => {
                        let first = open[at];
                        set = smaller;
                        open.retain(|origin| set.binary_search(origin).is_ok());
                        at = open.partition_point(|&origin| origin < first);
                    }
                    None => at = end,
                }
            }
            // What could not be left out may be left out now that others are.
            if piece <= 1 && open.len() == before {
                return (set, true);
            }
            piece = piece.div_ceil(2);
        }
    }

    /// What was given for the origins of a support.
    fn system(&mut self, support: &[EquationId], origin: Origin) -> System {
        let made_for = self.made_for(support);
        let root = Context::default();
        let mut there = HashSet::new();
        let sources = made_for.values().flatten().map(|&id| self.source(id));
        let sources = sources.filter(|source| there.insert(*source));
        let equations = sources.map(|source| self.labelled(source, 0, &root)).collect();
        System { equations, origin, contexts: vec![root], done: HashSet::new() }
    }

    /// What a given equation is one of.
    fn source(&self, id: EquationId) -> Source {
        self.decision(id).map_or(Source::Equation(id), Source::Decision)
    }

    /// A copy of what was given in a context.
    fn labelled(&self, source: Source, context: usize, at: &Context) -> Labelled {
        let (time, origin, said) = match source {
            Source::Decision(place) => {
                let Decision { op, time, .. } = &self.decisions[place];
                let copy = at.renaming.pointwise(&self.arithmetic, op);
                (*time, op.origin, Said::Pointwise(copy))
            }
            Source::Equation(id) => {
                let Equation { relation, origin, .. } = &self.equations[id as usize];
                let copy = at.renaming.relation(&self.arithmetic, relation);
                (id, *origin, Said::Relation(copy))
            }
        };
        let labels = [origin].into_iter().chain(at.labels.iter().copied()).collect();
        Labelled { source: Some(source), said, time, labels, context }
    }

    /// The system with the equations of their definitions in the place of uses. `None` if there are none,
    /// or too many.
    fn put_in(&mut self, system: &System, num_copied: &mut usize) -> Option<System> {
        let mut next = System { equations: Vec::new(), ..system.clone() };
        let mut there: HashSet<(Source, usize)> = HashSet::new();
        for equation in &system.equations {
            let Labelled { source, context, time, .. } = *equation;
            let place = source.map(|_| equation.labels[0]);
            let used = place.and_then(|place| Some((place, self.uses.get(&place)?.clone())));
            let Some((place, used)) = used else {
                if source.is_none_or(|source| there.insert((source, context))) {
                    next.equations.push(equation.clone());
                }
                continue;
            };
            if let Some(Source::Equation(id)) = source
                && let Some(inner) = self.inner.get(&id)
            {
                let labels = [&inner[..], &equation.labels].concat();
                next.equations.push(Labelled { labels, ..equation.clone() });
            }
            if !next.done.insert((place, context)) {
                continue;
            }
            let given = used.definition.since.equations..used.definition.end.equations;
            *num_copied += given.len();
            if MAX_COPIED < *num_copied {
                return None;
            }
            let ids = given.clone().filter(|&id| {
                let equation = &self.equations[id];
                equation.parents.is_empty() && equation.state != State::Failed
            });
            let ids: Vec<EquationId> = ids.map(|id| id as EquationId).collect();
            let (renaming, foreign) = self.own_variables(&next.contexts[context], &used, &ids);
            let outer = &next.contexts[context];
            let labels: Vec<Origin> =
                [place].into_iter().chain(outer.labels.iter().copied()).collect();
            for (var, shape) in &used.shapes {
                let var = outer.renaming.shapes.get(var).copied().unwrap_or(*var);
                let shape = renaming.shape(&self.arithmetic, shape);
                let relation = Relation::Shapes(Shape::var(var), shape);
                next.equations.push(Labelled {
                    source: None,
                    said: Said::Relation(relation),
                    time,
                    labels: labels.clone(),
                    context,
                });
            }
            let number = next.contexts.len();
            next.contexts.push(Context { given, renaming, labels, outer: context });
            for id in ids.into_iter().chain(foreign) {
                // What a definition knows from around it was given there.
                let mut at = number;
                while at != 0 && !next.contexts[at].given.contains(&(id as usize)) {
                    at = next.contexts[at].outer;
                }
                let source = self.source(id);
                if there.insert((source, at)) {
                    next.equations.push(self.labelled(source, at, &next.contexts[at]));
                }
            }
        }
        Some(next).filter(|next| system.done.len() < next.done.len())
    }

    /// Variables for those of a definition, in a context in which it is used, and what was given for
    /// those that it knows from around it.
    fn own_variables(
        &mut self,
        outer: &Context,
        used: &Use,
        ids: &[EquationId],
    ) -> (Renaming, Vec<EquationId>) {
        let Definition { since, end, level } = *used.definition;
        let mut renaming = outer.renaming.clone();
        for (&var, &other) in &used.renaming.dims {
            let other = outer.renaming.dims.get(&other).copied().unwrap_or(other);
            renaming.dims.insert(var, other);
        }
        for (&var, &other) in &used.renaming.shapes {
            let other = outer.renaming.shapes.get(&other).copied().unwrap_or(other);
            renaming.shapes.insert(var, other);
        }
        let (mut shapes, mut dims) = (BTreeSet::new(), BTreeSet::new());
        let mut add = |vars: (Vec<ShapeVar>, Vec<DimVar>)| {
            shapes.extend(vars.0);
            dims.extend(vars.1);
        };
        ids.iter().for_each(|&id| add(self.vars(&self.equations[id as usize].relation)));
        used.shapes.iter().for_each(|(_, shape)| add(self.shape_vars(shape)));
        let mut causes = Vec::new();
        for var in shapes {
            let place = var.0 as usize;
            let is_own = (since.shapes..end.shapes).contains(&place);
            if !is_own || self.shape_level(var) <= level {
                causes.extend(self.shapes[place].value.as_ref().map(|(_, cause)| *cause));
            } else if !used.renaming.shapes.contains_key(&var) {
                let own = self.shape_var(0);
                if self.numbers.contains(&var) {
                    self.set_number(own);
                }
                renaming.shapes.insert(var, own);
            }
        }
        for var in dims {
            let place = var.0 as usize;
            let is_own = (since.dims..end.dims).contains(&place);
            if !is_own || self.dim_level(var) <= level {
                causes.extend(self.dims[place].value.as_ref().map(|(_, cause)| *cause));
            } else if !used.renaming.dims.contains_key(&var) {
                renaming.dims.insert(var, self.dim_var(0));
            }
        }
        (renaming, self.support(causes))
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
    fn refute(&self, system: &System, origins: &[Origin], work: &mut usize) -> Option<Vec<Origin>> {
        let mut found = None;
        let mut set = origins.to_vec();
        loop {
            let said = system.equations.iter().filter(|it| is_among(&it.labels, &set));
            let said: Vec<&Labelled> = said.collect();
            let mut copy = self.copy_for(&said);
            let replayed = copy.replay(&said);
            *work = work.saturating_sub(copy.to.size());
            let Err((failed, _)) = replayed else { return found };
            let support = copy.to.support(vec![failed]);
            let wrong = copy.to.equations[copy.to.ancestor(failed) as usize].origin;
            if !said[wrong as usize].labels.contains(&system.origin)
                && !self.are_decided_alike(&copy.to, &said, &support)
            {
                return found;
            }
            let number = |id: &EquationId| copy.to.equations[*id as usize].origin as usize;
            let labels = support.iter().flat_map(|id| said[number(id)].labels.iter().copied());
            let smaller: BTreeSet<Origin> = labels.collect();
            let smaller: Vec<Origin> = smaller.into_iter().collect();
            // What is decided may depend on others.
            if support.iter().all(|id| copy.to.decision(*id).is_none()) {
                return Some(smaller);
            }
            if smaller.len() == set.len() {
                return Some(set);
            }
            found = Some(std::mem::replace(&mut set, smaller));
        }
    }

    /// How many equations and decisions there are, and parts of what is known about variables.
    fn size(&self) -> usize {
        let terms = |dim: &Dim| match dim {
            Dim::Sum(sum) => sum.terms().len(),
            _ => 1,
        };
        let dims = self.dims.iter().filter_map(|it| it.value.as_ref()).map(|(dim, _)| terms(dim));
        let shapes = self.shapes.iter().filter_map(|it| it.value.as_ref());
        let shapes = shapes.map(|(shape, _)| shape.items.len());
        let decisions = self.decisions.len() * DECISION_WORK;
        self.equations.len() + decisions + dims.sum::<usize>() + shapes.sum::<usize>()
    }

    /// Whether operations that a contradiction depends on are decided as they were: otherwise, if it is found
    /// at another place, it is one of another program, in which they mean something else. The last one may be
    /// what nothing could be decided about, and operands of which nothing is known but the decision have any shape.
    fn are_decided_alike(&self, copy: &Solver, said: &[&Labelled], support: &[EquationId]) -> bool {
        support.iter().filter_map(|id| copy.decision(*id)).all(|number| {
            let decision = &copy.decisions[number];
            let Some(Source::Decision(place)) = said[decision.op.origin as usize].source else {
                return true;
            };
            if place + 1 == self.decisions.len() {
                return true;
            }
            let (Some((first, are_broadcast)), Some((own_first, were_broadcast))) =
                (&decision.choice, &self.decisions[place].choice)
            else {
                return decision.choice == self.decisions[place].choice;
            };
            let is_free = |operand: &Shape| {
                let var = operand.as_var().map(|var| &copy.shapes[var.0 as usize]);
                let cause = var.and_then(|var| var.value.as_ref()).map(|(_, cause)| *cause);
                cause.is_some_and(|cause| copy.decision(copy.ancestor(cause)) == Some(number))
            };
            let mut operands =
                decision.op.operands.iter().zip(are_broadcast.iter().zip(were_broadcast));
            first == own_first && operands.all(|(operand, (is, was))| is == was || is_free(operand))
        })
    }

    /// A copy without equations, for the variables of some.
    fn copy_for(&self, said: &[&Labelled]) -> Copy {
        let vars = said.iter().map(|it| match &it.said {
            Said::Relation(relation) => self.vars(relation),
            Said::Pointwise(op) => {
                let vars = op.shapes().map(|it| self.shape_vars(it));
                let (shapes, dims): (Vec<_>, Vec<_>) = vars.unzip();
                (shapes.concat(), dims.concat())
            }
        });
        let mut copy = Copy::new(self, vars);
        copy.set_numbers(self);
        copy
    }

    /// Why the equation of one place contradicts those of the others that a conflict is about, where
    /// each use of a definition is one place. If it is another equation that does not hold in the end,
    /// its origin.
    ///
    /// # Errors
    /// The equation that does not hold was made for something else, or there is none.
    pub fn clash(&mut self, conflict: &Conflict, last: Origin) -> Result<Clash, Option<Origin>> {
        let all: Vec<&Labelled> = conflict.given.iter().collect();
        let (own, others): (Vec<&Labelled>, Vec<&Labelled>) =
            all.iter().partition(|it| it.labels[0] == last);
        let solved = || {
            let mut copy = self.copy_for(&all);
            copy.replay(&others).map(|()| copy).map_err(|_| None)
        };
        let (mut known, mut copy) = (solved()?, solved()?);
        let mut made = Vec::new();
        for labelled in own {
            match &labelled.said {
                Said::Relation(relation) => _ = copy.to.given(copy.relation(relation), Origin::MAX),
                Said::Pointwise(op) => {
                    let first = copy.to.shapes.len();
                    copy.to.decide(copy.pointwise(op, Origin::MAX), 0);
                    // What the operation is broadcast along.
                    for number in first..copy.to.shapes.len() {
                        let var = self.shape_var(0);
                        copy.adopt(var, ShapeVar(number as u32));
                        let known_copy = known.to.shape_var(0);
                        known.adopt(var, known_copy);
                    }
                }
            }
            for id in std::mem::take(&mut copy.to.given) {
                made.push((id, labelled.source));
                copy.to.given.push(id);
                let solved = copy.to.run().and_then(|()| copy.to.solve_together(Mark::default()));
                let Err((failed, reason)) = solved else { continue };
                let wrong = copy.to.ancestor(failed);
                let relation = |id: EquationId| copy.to.equations[id as usize].relation.clone();
                let Some((_, source)) = made.iter().find(|(id, _)| *id == wrong) else {
                    let place = copy.to.equations[wrong as usize].origin as usize;
                    return Err(others.get(place).map(|it| it.labels[0]));
                };
                let right = made.iter().map(|(id, _)| *id).filter(|id| *id != wrong);
                right.for_each(|id| _ = known.to.given(relation(id), Origin::MAX));
                known.to.run().map_err(|_| None)?;
                let equation = match source {
                    Some(Source::Equation(id)) => Some(*id),
                    _ => None,
                };
                let relation = match relation(wrong) {
                    // It says what is compared.
                    positive @ Relation::Positive(_) => positive,
                    given => known.to.resolved(&given),
                };
                let relation = known.original(&relation);
                let reason = copy.original_reason(&reason);
                let is_result = copy.to.is_result(wrong);
                return Ok(Clash { relation, equation, is_result, reason, known: Known(known) });
            }
        }
        Err(None)
    }
}

impl Copy {
    /// Solves what was said, in the order of time: operations are decided anew when they were, after the
    /// equations before. Equations are made for the places of what was said.
    fn replay(&mut self, said: &[&Labelled]) -> Result<(), Failure> {
        let when = |place: &usize| {
            let Labelled { said, time, .. } = said[*place];
            (*time, matches!(said, Said::Relation(_)))
        };
        // Where there is no other reason, operations are decided about in the order of that time.
        let first = |place: usize| match said[place].source {
            Some(Source::Decision(number)) => (number, None),
            _ => (usize::MAX, said[place].labels.first()),
        };
        let mut order: Vec<usize> = (0..said.len()).collect();
        order.sort_by_key(|place| (when(place), first(*place)));
        let mut last = None;
        for place in order {
            if 0 < self.to.num_pointwise() && last != Some(when(&place)) {
                self.to.run_pointwise(0, &[])?;
            }
            last = Some(when(&place));
            match &said[place].said {
                Said::Relation(relation) => {
                    self.to.given(self.relation(relation), place as Origin);
                }
                Said::Pointwise(op) => {
                    self.to.pointwise.push_back(self.pointwise(op, place as Origin));
                }
            }
        }
        self.to.run_pointwise(0, &[])?;
        // As complete definitions are solved once more.
        if !self.to.decisions.is_empty() && self.to.reset(Mark::default(), 0) {
            self.to.run()?;
        }
        self.to.solve_together(Mark::default())
    }
}

fn is_among(labels: &[Origin], origins: &[Origin]) -> bool {
    labels.iter().all(|label| origins.binary_search(label).is_ok())
}
