//! Why equations have no solution: what they were made for, none of which can be left out.
//!
//! The minimal set is found by leaving out (Chinneck and Dravnieks, "Locating minimal infeasible
//! constraint sets in linear programs", 1991: the deletion filter), first in large pieces. What a use
//! of a definition says is at first one member of the set; as long as there is such a use, the
//! equations of its definition take its place, with variables of their own, and what can be left out
//! now is left out. So the places inside of a definition are found that a contradiction outside of it
//! depends on, and nothing is paid for them before there is one.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::rc::Rc;

use super::copy::{Copy, Renaming};
use super::{Conflict, Equation, EquationId, Mark, Origin, Reason, Relation, Solver, State};
use crate::shape::{Dim, DimError, DimVar, Item, Shape, ShapeVar};

/// How much work may go into making a set of conflicting equations minimal, in equations solved.
const MAX_EXPLANATION_WORK: usize = 1 << 19;

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
    contexts: Vec<Context>,
    /// The uses that definitions have been put in for, and their contexts.
    done: HashSet<(Origin, usize)>,
}

#[derive(Clone, Debug)]
struct Labelled {
    /// The given equation that it is a copy of; `None` of what a use says.
    id: Option<EquationId>,
    relation: Relation,
    labels: Vec<Origin>,
    /// The number of its context.
    context: usize,
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
    /// Its number.
    pub equation: EquationId,
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

impl Solver {
    pub(super) fn conflict(&mut self, id: EquationId, reason: Reason) -> Conflict {
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
            _ => self.core(id, &mut conflict),
        }
        self.equations[given as usize].state = State::Failed;
        conflict
    }

    fn ancestor(&self, mut id: EquationId) -> EquationId {
        while let Some(parent) = self.equations[id as usize].parents.first() {
            id = *parent;
        }
        id
    }

    /// The given equations that derived ones may depend on, sorted.
    fn support(&self, mut pending: Vec<EquationId>) -> Vec<EquationId> {
        let mut seen: HashSet<EquationId> = HashSet::new();
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

    /// What equations were made for that contradict each other.
    fn core(&mut self, id: EquationId, conflict: &mut Conflict) {
        let made_for = self.made_for(&self.support(vec![id]));
        let given = made_for.values().flatten();
        let root = Context::default();
        let mut system = System {
            equations: given.map(|&id| self.labelled(id, 0, &root)).collect(),
            contexts: vec![root],
            done: HashSet::new(),
        };
        let mut work = MAX_EXPLANATION_WORK;
        let origins: Vec<Origin> = made_for.keys().copied().collect();
        (conflict.core, conflict.minimal) = match self.refute(&system, &origins) {
            Some(set) => self.minimal(&system, set, &[], &mut work),
            None => (origins, false),
        };
        let given = conflict.core.iter().flat_map(|origin| made_for[origin].iter().copied());
        conflict.given = given.collect();
        conflict.places = conflict.core.clone();
        let mut num_copied = 0;
        for _ in 0..MAX_NESTED {
            if !conflict.minimal {
                break;
            }
            system.equations.retain(|equation| is_among(&equation.labels, &conflict.core));
            let Some(next) = self.put_in(&system, &mut num_copied) else { break };
            let labels = next.equations.iter().flat_map(|equation| equation.labels.iter().copied());
            let all: BTreeSet<Origin> = labels.collect();
            let all: Vec<Origin> = all.into_iter().collect();
            // What the rules leave open may be found in another order only.
            let Some(set) = self.refute(&next, &all) else { break };
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
                match work.checked_sub(1 + system.equations.len()) {
                    Some(left) => *work = left,
                    None => return (set, false),
                }
                match self.refute(system, &rest) {
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

    /// A copy of a given equation in a context.
    fn labelled(&self, id: EquationId, context: usize, at: &Context) -> Labelled {
        let Equation { relation, origin, .. } = &self.equations[id as usize];
        let labels = [*origin].into_iter().chain(at.labels.iter().copied()).collect();
        let relation = at.renaming.relation(&self.arithmetic, relation);
        Labelled { id: Some(id), relation, labels, context }
    }

    /// The system with the equations of their definitions in the place of uses. `None` if there are none,
    /// or too many.
    fn put_in(&mut self, system: &System, num_copied: &mut usize) -> Option<System> {
        let mut next = System { equations: Vec::new(), ..system.clone() };
        let mut there: HashSet<(EquationId, usize)> = HashSet::new();
        for equation in &system.equations {
            let Labelled { id, context, .. } = *equation;
            let place = id.map(|id| self.equations[id as usize].origin);
            let used = place.and_then(|place| Some((place, self.uses.get(&place)?.clone())));
            let Some((place, used)) = used else {
                if id.is_none_or(|id| there.insert((id, context))) {
                    next.equations.push(equation.clone());
                }
                continue;
            };
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
                    id: None,
                    relation,
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
                if there.insert((id, at)) {
                    next.equations.push(self.labelled(id, at, &next.contexts[at]));
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
                renaming.shapes.insert(var, self.shape_var(0));
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
    fn refute(&self, system: &System, origins: &[Origin]) -> Option<Vec<Origin>> {
        let given = system.equations.iter().enumerate();
        let given = given.filter(|(_, equation)| is_among(&equation.labels, origins));
        let mut copy = Copy::new(self, given.clone().map(|(_, equation)| &equation.relation));
        for (number, equation) in given {
            copy.to.given(copy.relation(&equation.relation), number as Origin);
        }
        let (failed, _) = copy.to.run().err()?;
        let support = copy.to.support(vec![failed]).into_iter();
        let number = |id: EquationId| copy.to.equations[id as usize].origin as usize;
        let labels = support.flat_map(|id| system.equations[number(id)].labels.iter().copied());
        let origins: BTreeSet<Origin> = labels.collect();
        Some(origins.into_iter().collect())
    }

    /// Why the equation of one place contradicts those of the others that a conflict is about, where
    /// each use of a definition is one place. If it is another equation that does not hold in the end,
    /// its origin.
    ///
    /// # Errors
    /// The equation that does not hold was made for something else, or there is none.
    pub fn clash(&self, conflict: &Conflict, last: Origin) -> Result<Clash, Option<Origin>> {
        let relation = |id: &EquationId| &self.equations[*id as usize].relation;
        let (own, others): (Vec<EquationId>, Vec<EquationId>) =
            conflict.given.iter().partition(|id| self.equations[**id as usize].origin == last);
        let all = || {
            let mut copy = Copy::new(self, conflict.given.iter().map(relation));
            for id in &others {
                copy.to.given(copy.relation(relation(id)), *id);
            }
            copy.to.run().map(|()| copy).map_err(|_| None)
        };
        let (mut known, mut copy) = (all()?, all()?);
        for id in own {
            let given = copy.relation(relation(&id));
            copy.to.given(given, id);
            let Err((failed, reason)) = copy.to.run() else {
                let given = known.relation(relation(&id));
                known.to.given(given, id);
                known.to.run().map_err(|_| None)?;
                continue;
            };
            let equation = copy.to.equations[copy.to.ancestor(failed) as usize].origin;
            if equation != id {
                return Err(Some(self.equations[equation as usize].origin));
            }
            let relation = match relation(&id) {
                // It says what is compared.
                positive @ Relation::Positive(_) => positive.clone(),
                given => {
                    let given = known.to.resolved(&known.relation(given));
                    known.original(&given)
                }
            };
            let dim = |it: &Dim| copy.original_dim(it);
            let shape = |it: &Shape| copy.original_shape(it);
            let reason = match &reason {
                Reason::Dims(a, b) => Reason::Dims(dim(a), dim(b)),
                Reason::Rank(a, b) => Reason::Rank(shape(a), shape(b)),
                Reason::Endless(a, b) => Reason::Endless(shape(a), shape(b)),
                Reason::NotPositive(a) => Reason::NotPositive(dim(a)),
                Reason::RaggedElements(a) => Reason::RaggedElements(shape(a)),
                Reason::Arithmetic(error) => Reason::Arithmetic(*error),
            };
            return Ok(Clash { relation, equation, reason, known: Known(known) });
        }
        Err(None)
    }
}

fn is_among(labels: &[Origin], origins: &[Origin]) -> bool {
    labels.iter().all(|label| origins.binary_search(label).is_ok())
}
