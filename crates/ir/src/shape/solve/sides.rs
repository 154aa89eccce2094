//! Transitivity of residuals: equations with a common side equate their other sides.
//!
//! The basic rules of section 5 do this where the common side is a variable. Here it is anything
//! that no rule takes apart: `[n]@s = p@[a,b]` and `[n]@s = p@[b,c]` say that `a`, `b` and `c` are
//! the same, whichever of the three shapes the program writes first.
//!
//! Sides are the nodes of a graph, residuals its edges. A residual between two sides that others
//! connect already says nothing new. One that connects two classes of sides gives an equation for
//! each pair of members: it is taken apart, or it is between connected sides and forgotten. So there
//! is an end: what is taken apart is between smaller sides. Of large classes, only some pairs are asked for,
//! but whether sides are connected is always known: otherwise their pairs would be asked for again and again.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::{EquationId, Relation, Residual, Solver};
use crate::shape::{Dim, DimVar, Item, MAX_ITEMS, RankEquation, Shape, ShapeVar};

/// The most members of a class that are equated with those of another one.
const MAX_CLASS: usize = 24;

/// A side of an equation.
#[derive(Clone, Debug)]
enum Side {
    Shape(Shape),
    Dim(Dim),
}

/// A side, as text that depends on nothing else; and the side itself.
type Member = (String, Side);

/// The number of a side.
type SideId = usize;

/// Members of a class, and the place of the one from which each was reached, by which residual.
type Class = Vec<(SideId, Option<(usize, EquationId)>)>;

/// The sides of residuals.
#[derive(Debug, Default)]
pub(super) struct Sides {
    members: Vec<Member>,
    /// How many items those that are shapes have.
    lengths: BTreeSet<usize>,
    /// The numbers of sides by their texts.
    numbers: HashMap<String, SideId>,
    /// What each residual connects.
    edges: HashMap<EquationId, [SideId; 2]>,
    /// The residuals that connect each side with others.
    at: Vec<Vec<EquationId>>,
}

impl Sides {
    fn number(&mut self, member: Member) -> SideId {
        let number = *self.numbers.entry(member.0.clone()).or_insert(self.members.len());
        if number == self.members.len() {
            if let Side::Shape(shape) = &member.1 {
                self.lengths.insert(shape.items.len());
            }
            self.members.push(member);
            self.at.push(Vec::new());
        }
        number
    }

    fn insert(&mut self, id: EquationId, sides: [SideId; 2]) {
        sides.iter().for_each(|side| self.at[*side].push(id));
        self.edges.insert(id, sides);
    }

    pub(super) fn remove(&mut self, id: EquationId) {
        for side in self.edges.remove(&id).into_iter().flatten() {
            self.at[side].retain(|other| *other != id);
        }
    }

    /// The sides that are connected with one, nearest first, as many as are asked for, up to the last one that is
    /// asked for.
    fn class(&self, start: SideId, limit: usize, last: Option<SideId>) -> Class {
        let mut seen = HashSet::from([start]);
        let mut class = vec![(start, None)];
        let mut next = 0;
        while let Some(&(side, _)) = class.get(next) {
            for &id in &self.at[side] {
                for other in self.edges[&id] {
                    if class.len() < limit && seen.insert(other) {
                        class.push((other, Some((next, id))));
                        if Some(other) == last {
                            return class;
                        }
                    }
                }
            }
            next += 1;
        }
        class
    }

    /// Whether residuals say that two sides are equal.
    fn are_connected(&self, [first, last]: [SideId; 2]) -> bool {
        let class = self.class(first, usize::MAX, Some(last));
        class.last().is_some_and(|(side, _)| *side == last)
    }
}

/// The residuals that connect a member of a class with the first one.
fn path(class: &Class, mut place: usize) -> Vec<EquationId> {
    let mut path = Vec::new();
    while let Some((previous, id)) = class[place].1 {
        path.push(id);
        place = previous;
    }
    path
}

fn equation(left: &Side, right: &Side) -> Option<Relation> {
    match (left, right) {
        (Side::Shape(a), Side::Shape(b)) => Some(Relation::Shapes(a.clone(), b.clone())),
        (Side::Dim(a), Side::Dim(b)) => Some(Relation::Dims(a.clone(), b.clone())),
        _ => None,
    }
}

/// Whether no rule takes an equation between shapes apart.
fn is_open(relation: &Relation) -> bool {
    let Relation::Shapes(left, right) = relation else { return false };
    let are_paired = |ends: (Option<&Item>, Option<&Item>)| match ends {
        (Some(Item::Var(a)), Some(Item::Var(b))) => a == b,
        (Some(Item::Dim(_)), Some(Item::Dim(_))) => true,
        _ => false,
    };
    let (a, b) = (&left.items, &right.items);
    let are_compound = 1 < a.len() && 1 < b.len();
    are_compound
        && !are_paired((a.first(), b.first()))
        && !are_paired((a.last(), b.last()))
        && RankEquation::new(left, right).is_open()
}

impl Solver {
    /// The sides of a residual that others may have; `None` where one is known, so that partial
    /// expressions put it into the others.
    fn sides(&self, relation: &Relation) -> Option<[Member; 2]> {
        let sides = match relation {
            Relation::Shapes(a, b) if a.as_dims().is_none() && b.as_dims().is_none() => {
                [Side::Shape(a.clone()), Side::Shape(b.clone())]
            }
            Relation::Dims(a, b) => {
                let (a, b) = self.arithmetic.balanced(a, b).ok()?;
                let is_known = |dim: &Dim| matches!(dim, Dim::Constant(_) | Dim::Ragged);
                if is_known(&a) || is_known(&b) {
                    return None;
                }
                [Side::Dim(a), Side::Dim(b)]
            }
            _ => return None,
        };
        Some(sides.map(|side| {
            let text = match &side {
                Side::Shape(shape) => self.shape_text(shape),
                Side::Dim(dim) => self.dim_text(dim),
            };
            (text, side)
        }))
    }

    /// Adds what a residual and others with a side in common say about their other sides. Whether it
    /// says nothing new.
    pub(super) fn connect(&mut self, id: EquationId, relation: &Relation) -> bool {
        let Some(sides) = self.sides(relation) else { return false };
        let sides = sides.map(|side| self.sides.number(side));
        if self.sides.are_connected(sides) {
            return true;
        }
        let [lefts, rights] = sides.map(|side| self.sides.class(side, MAX_CLASS, None));
        let origin = self.equations[id as usize].origin;
        for (left_place, (left, _)) in lefts.iter().enumerate() {
            for (right_place, (right, _)) in rights.iter().enumerate() {
                let [left, right] = [left, right].map(|side| &self.sides.members[*side].1);
                if let Some(relation) = equation(left, right)
                    && 0 < left_place + right_place
                    && !is_open(&relation)
                {
                    self.note("transitivity", id, || relation.clone());
                    let mut parents = vec![id];
                    parents.extend(path(&lefts, left_place));
                    parents.extend(path(&rights, right_place));
                    self.add(relation, origin, parents);
                }
            }
        }
        self.sides.insert(id, sides);
        false
    }

    /// The residuals that have a side in common with a relation.
    pub(super) fn beside(&self, relation: &Relation) -> impl Iterator<Item = EquationId> + '_ {
        let sides = self.sides(relation).into_iter().flatten();
        let numbers = sides.filter_map(|(text, _)| self.sides.numbers.get(&text).copied());
        numbers.flat_map(|number| self.sides.at[number].iter().copied())
    }

    /// A shape in which the longest parts from the left are replaced by what stands for all that residuals say
    /// they are equal to.
    pub fn representative(&self, shape: &Shape) -> Shape {
        let mut result = Shape::default();
        let mut rest = &shape.items[..];
        while let [item, others @ ..] = rest {
            let lengths = self.sides.lengths.iter().rev().filter(|length| **length <= rest.len());
            let found = lengths.copied().find_map(|length| {
                let part = rest[..length].iter().cloned().collect();
                let number = *self.sides.numbers.get(&self.shape_text(&part))?;
                if self.sides.at[number].is_empty() {
                    return None;
                }
                let class = self.sides.class(number, usize::MAX, None);
                match self.first(&self.sides, class) {
                    Some((_, Side::Shape(first))) => Some((first, length)),
                    _ => None,
                }
            });
            if let Some((first, length)) = found {
                result.items.extend(first.items.iter().cloned());
                rest = &rest[length..];
            } else {
                result.items.push(item.clone());
                rest = others;
            }
        }
        if result.items.len() <= MAX_ITEMS { result } else { shape.clone() }
    }

    /// The member of a class that stands for all: of the most variables that have a name, and of which most is
    /// known otherwise. Only where there is no difference, the one whose variables were made first.
    fn first<'s>(&self, sides: &'s Sides, class: Class) -> Option<&'s Member> {
        let key = |(text, side): &&Member| {
            let (shapes, dims) = match side {
                Side::Shape(shape) => self.shape_vars(shape),
                Side::Dim(dim) => (Vec::new(), self.arithmetic.vars(dim)),
            };
            let shapes: HashSet<ShapeVar> = shapes.into_iter().collect();
            let dims: HashSet<DimVar> = dims.into_iter().collect();
            let num_unnamed = shapes.difference(&self.named_shapes).count()
                + dims.difference(&self.named_dims).count();
            let (rank, look) = match side {
                Side::Shape(shape) => (shape.min_rank(), self.look(shape)),
                Side::Dim(dim) => (0, self.look(&Shape::dims([dim.clone()]))),
            };
            (num_unnamed, Reverse(rank), look, text.clone())
        };
        class.into_iter().map(|(side, _)| &sides.members[side]).min_by_key(key)
    }

    /// Residuals as they are shown: each once, with what is known second; those between several sides
    /// as equations of one of these with each of the others.
    pub(super) fn spanning(&self, residuals: Vec<Residual>) -> Vec<Residual> {
        let mut graph = Sides::default();
        for (place, residual) in residuals.iter().enumerate() {
            if let Some(sides) = self.sides(&residual.relation) {
                let sides = sides.map(|side| graph.number(side));
                graph.insert(place as EquationId, sides);
            }
        }
        let mut shown: Vec<Residual> = Vec::new();
        let (mut seen, mut spanned) = (HashSet::new(), HashSet::new());
        for (place, residual) in residuals.iter().enumerate() {
            let Some([start, _]) = graph.edges.get(&(place as EquationId)) else {
                let relation = self.oriented(&residual.relation);
                if seen.insert(self.relation_text(&relation)) {
                    shown.push(Residual { relation, origin: residual.origin });
                }
                continue;
            };
            if spanned.contains(start) {
                continue;
            }
            let class = graph.class(*start, usize::MAX, None);
            spanned.extend(class.iter().map(|(side, _)| *side));
            if class.len() == 2 {
                let relation = self.oriented(&residual.relation);
                shown.push(Residual { relation, origin: residual.origin });
                continue;
            }
            let Some((text, first)) = self.first(&graph, class) else { continue };
            for (side, edge) in graph.class(graph.numbers[text], usize::MAX, None) {
                if let (Some((_, edge)), Some(relation)) =
                    (edge, equation(first, &graph.members[side].1))
                {
                    shown.push(Residual { relation, origin: residuals[edge as usize].origin });
                }
            }
        }
        shown
    }

    /// An equation with what is known second, or else with the shorter side first.
    pub(super) fn oriented(&self, relation: &Relation) -> Relation {
        let swaps = |known: [bool; 2], texts: [String; 2]| match known {
            [a, b] if a != b => a,
            _ => (texts[1].len(), &texts[1]) < (texts[0].len(), &texts[0]),
        };
        match relation {
            Relation::Shapes(a, b) => {
                let known = [a, b].map(|shape| shape.as_dims().is_some());
                match swaps(known, [a, b].map(|shape| self.shape_text(shape))) {
                    true => Relation::Shapes(b.clone(), a.clone()),
                    false => relation.clone(),
                }
            }
            Relation::Dims(a, b) => {
                let known = [a, b].map(|dim| matches!(dim, Dim::Constant(_) | Dim::Ragged));
                match swaps(known, [a, b].map(|dim| self.dim_text(dim))) {
                    true => Relation::Dims(b.clone(), a.clone()),
                    false => relation.clone(),
                }
            }
            _ => relation.clone(),
        }
    }
}
