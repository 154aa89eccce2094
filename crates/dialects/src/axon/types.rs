//! Types of Axon values, and their unification.
//!
//! Source: Axon, section 4: Hindley-Milner unification, to which one rule is added: two tensor types
//! are equal if their element types are, and their shapes are, which is an equation for the shape
//! solver.
//!
//! Types are nodes of a graph; a variable that has a value is a link to it. Tuples and functions keep
//! their own parts, so that errors say which place asks for what; those that were found equal form
//! classes, so that no part is unified with another twice.

mod chains;
mod elements;
mod mismatch;
mod schemes;

pub use elements::{Class, ElementType};
pub(crate) use mismatch::{Difference, Mismatch, Path, Step};
pub(crate) use schemes::{Generality, Integer, Renaming, Scheme, TypesMark};

use chains::Goal;
use mismatch::Differs;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use tc_ir::shape::{
    DimError, Shape, ShapeVar,
    solve::{EquationId, Origin, Relation, Solver},
};

/// Deepest nesting of a type.
pub const MAX_DEPTH: u32 = 200;

/// Most parts of a type.
pub(crate) const MAX_PARTS: usize = 1 << 12;

/// A node of the graph of types.
pub(crate) type Ty = u32;

/// An element type that may not be known yet.
pub(crate) type Elem = u32;

/// What a type is.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Link(Ty),
    Var(u32),
    Tensor(Elem, Shape),
    Tuple(Vec<Ty>),
    Function(Vec<Ty>, Ty),
    /// The type of what is wrong; equal to any other.
    Error,
}

/// A kind of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tensor,
    Tuple,
    Function,
}

#[derive(Clone, Copy, Debug)]
enum ElemNode {
    Link(Elem),
    Var(u32, Class),
    Known(ElementType),
}

/// That two type variables are equal.
#[derive(Clone, Debug)]
struct Equal {
    left: Ty,
    right: Ty,
    /// Why: the place that says so, and if it stands in a definition, the uses that lead there.
    origins: Rc<[Origin]>,
    /// The part of a type that the place says it about.
    path: Option<Rc<Path>>,
}

/// All types of a program.
#[derive(Debug, Default)]
pub(crate) struct Types {
    nodes: Vec<Node>,
    elems: Vec<ElemNode>,
    /// What was asked of each element type when it was made.
    asked: Vec<Class>,
    /// The numbers that ask for something.
    literals: HashMap<Elem, Origin>,
    /// Element types that were found equal, and why.
    edges: Vec<(Elem, Elem, Rc<[Origin]>)>,
    /// The element types of definitions that others are in a use, and the use.
    copied: HashMap<Elem, (Elem, Origin)>,
    /// Tuples and functions that are equal to others.
    same: HashMap<Ty, Ty>,
    /// Which type a copy is one of, and why the two are equal.
    sources: HashMap<Ty, (Ty, Rc<[Origin]>)>,
    /// Why the type variables of a class are equal, by its root: as long as they have no value, so that
    /// each gets its own.
    equal: HashMap<Ty, Vec<Equal>>,
    /// The parts of types that equations are about, of those that are not about whole types.
    pub(crate) parts: HashMap<EquationId, Rc<Path>>,
    pub(crate) solver: Solver,
    /// Whether errors do not look into definitions: those of the prelude.
    pub(crate) hidden: bool,
    /// Variables of a definition that is run whose shapes it does not need.
    pub(crate) undetermined: HashSet<ShapeVar>,
    /// Whether a type was nested deeper than [`MAX_DEPTH`].
    pub(crate) too_deep: bool,
    /// Why a shape of a type is larger than what is kept.
    pub(crate) too_large: Option<DimError>,
}

impl Types {
    pub(crate) fn add(&mut self, node: Node) -> Ty {
        self.nodes.push(node);
        self.nodes.len() as Ty - 1
    }

    pub(crate) fn var(&mut self, level: u32) -> Ty {
        self.add(Node::Var(level))
    }

    pub(crate) fn elem_var(&mut self, level: u32, class: Class) -> Elem {
        self.add_elem(ElemNode::Var(level, class), class)
    }

    pub(crate) fn elem(&mut self, ty: ElementType) -> Elem {
        self.add_elem(ElemNode::Known(ty), Class::Any)
    }

    /// Says where the number is written that has an element type.
    pub(crate) fn literal(&mut self, elem: Elem, origin: Origin) {
        self.literals.insert(elem, origin);
    }

    fn add_elem(&mut self, elem: ElemNode, asked: Class) -> Elem {
        self.elems.push(elem);
        self.asked.push(asked);
        self.elems.len() as Elem - 1
    }

    /// A tensor of which nothing is known.
    pub(crate) fn tensor_var(&mut self, level: u32, class: Class) -> Ty {
        let elem = self.elem_var(level, class);
        let shape = Shape::var(self.solver.shape_var(level));
        self.add(Node::Tensor(elem, shape))
    }

    /// The node that a type is, behind its links.
    pub(crate) fn find(&mut self, ty: Ty) -> Ty {
        let mut root = ty;
        while let Node::Link(next) = self.nodes[root as usize] {
            root = next;
        }
        let mut at = ty;
        while let Node::Link(next) = self.nodes[at as usize] {
            self.nodes[at as usize] = Node::Link(root);
            at = next;
        }
        root
    }

    /// Which kind of values a type is of; nothing if that is open.
    pub(crate) fn kind(&mut self, ty: Ty) -> Option<Kind> {
        let root = self.find(ty);
        match self.nodes[root as usize] {
            Node::Tensor(..) => Some(Kind::Tensor),
            Node::Tuple(_) => Some(Kind::Tuple),
            Node::Function(..) => Some(Kind::Function),
            Node::Link(_) | Node::Var(_) | Node::Error => None,
        }
    }

    pub(crate) fn node(&mut self, ty: Ty) -> Node {
        let root = self.find(ty);
        self.nodes[root as usize].clone()
    }

    fn find_elem(&mut self, elem: Elem) -> Elem {
        let mut root = elem;
        while let ElemNode::Link(next) = self.elems[root as usize] {
            root = next;
        }
        let mut at = elem;
        while let ElemNode::Link(next) = self.elems[at as usize] {
            self.elems[at as usize] = ElemNode::Link(root);
            at = next;
        }
        root
    }

    /// The element type, or the root of its variable and its class.
    pub(crate) fn element(&mut self, elem: Elem) -> Result<ElementType, (Elem, Class)> {
        let root = self.find_elem(elem);
        match self.elems[root as usize] {
            ElemNode::Known(ty) => Ok(ty),
            ElemNode::Var(_, class) => Err((root, class)),
            ElemNode::Link(_) => Err((root, Class::Any)),
        }
    }

    /// Makes two types equal. Equations between shapes are left to the solver.
    pub(crate) fn unify(&mut self, a: Ty, b: Ty, origin: Origin) -> Result<(), Mismatch> {
        let origins: Rc<[Origin]> = [origin].into();
        let mut pending = vec![(a, b, None)];
        while let Some((left, right, path)) = pending.pop() {
            self.unify_parts((left, right), path.as_ref(), &origins, &mut pending)
                .map_err(|(difference, core)| Mismatch { difference, path, core })?;
        }
        Ok(())
    }

    /// Makes two types equal, but for their parts.
    fn unify_parts(
        &mut self,
        (left, right): (Ty, Ty),
        path: Option<&Rc<Path>>,
        origins: &Rc<[Origin]>,
        pending: &mut Vec<(Ty, Ty, Option<Rc<Path>>)>,
    ) -> Result<(), Differs> {
        let (a, b) = (self.find(left), self.find(right));
        if a == b {
            return Ok(());
        }
        let then = |step| Path::then(path, step);
        let difference = match (self.nodes[a as usize].clone(), self.nodes[b as usize].clone()) {
            (Node::Error, _) | (_, Node::Error) => return Ok(()),
            (Node::Var(level), Node::Var(_)) => {
                self.bind(a, level, b)?;
                let mut equal = self.equal.remove(&a).unwrap_or_default();
                let (origins, path) = (Rc::clone(origins), path.cloned());
                equal.push(Equal { left, right, origins, path });
                self.add_equal(b, equal);
                return Ok(());
            }
            (Node::Var(_), _) => {
                return self.resolve(left, b, path, Mirror::of_left(Rc::clone(origins)));
            }
            (_, Node::Var(_)) => {
                return self.resolve(right, a, path, Mirror::of_right(Rc::clone(origins)));
            }
            (Node::Tensor(elem_a, shape_a), Node::Tensor(elem_b, shape_b)) => {
                self.unify_elems(elem_a, elem_b, origins)?;
                let equation = self.solver.equate_shapes(shape_a, shape_b, origins[0]);
                self.parts.extend(path.map(|path| (equation, Rc::clone(path))));
                return Ok(());
            }
            (Node::Tuple(parts_a), Node::Tuple(parts_b)) => {
                if parts_a.len() == parts_b.len() {
                    if self.join(a, b) {
                        let parts = parts_a.into_iter().zip(parts_b).enumerate().rev();
                        pending.extend(parts.map(|(at, (a, b))| (a, b, then(Step::Part(at)))));
                    }
                    return Ok(());
                }
                Difference::Size(parts_a.len(), parts_b.len())
            }
            (Node::Function(params_a, result_a), Node::Function(params_b, result_b)) => {
                if params_a.len() == params_b.len() {
                    if self.join(a, b) {
                        pending.push((result_a, result_b, then(Step::Result)));
                        let params = params_a.into_iter().zip(params_b).enumerate().rev();
                        let step = |at| then(Step::Parameter(at + 1));
                        pending.extend(params.map(|(at, (a, b))| (a, b, step(at))));
                    }
                    return Ok(());
                }
                Difference::Arity(params_a.len(), params_b.len())
            }
            _ => Difference::Kinds(a, b),
        };
        let mut core = self.why_kind(a);
        core.append(&mut self.why_kind(b));
        Err((difference, core))
    }

    /// Whether the classes of two tuples or functions were not one already; now they are.
    fn join(&mut self, a: Ty, b: Ty) -> bool {
        let [a, b] = [a, b].map(|ty| {
            let mut root = ty;
            while let Some(&next) = self.same.get(&root) {
                root = next;
            }
            let mut at = ty;
            while let Some(next) = self.same.get_mut(&at) {
                at = std::mem::replace(next, root);
            }
            root
        });
        if a != b {
            self.same.insert(a, b);
        }
        a != b
    }

    /// Remembers why type variables of one class are equal.
    fn add_equal(&mut self, root: Ty, mut equal: Vec<Equal>) {
        if self.hidden {
            return;
        }
        let all = self.equal.entry(root).or_default();
        if all.len() < equal.len() {
            std::mem::swap(all, &mut equal);
        }
        all.append(&mut equal);
    }

    /// Gives a type variable, and those that are equal to it, a value: each its own, which is equal to that
    /// of another one for the reason why the two are.
    fn resolve(
        &mut self,
        var: Ty,
        value: Ty,
        path: Option<&Rc<Path>>,
        mut mirror: Mirror,
    ) -> Result<(), Differs> {
        let root = self.find(var);
        let Node::Var(level) = self.nodes[root as usize] else { return Ok(()) };
        let equal = self.equal.remove(&root).unwrap_or_default();
        let first = self.mirror(value, level, path, &mut mirror);
        self.bind(root, level, first)?;
        let mut near: HashMap<Ty, Vec<&Equal>> = HashMap::new();
        for it in &equal {
            near.entry(it.left).or_default().push(it);
            near.entry(it.right).or_default().push(it);
        }
        let mut pending = vec![(var, first)];
        let mut seen = HashSet::from([var]);
        while let Some((at, value)) = pending.pop() {
            self.nodes[at as usize] = Node::Link(value);
            for it in near.get(&at).into_iter().flatten() {
                let (other, mirror) = match at == it.left {
                    true => (it.right, Mirror::of_right(Rc::clone(&it.origins))),
                    false => (it.left, Mirror::of_left(Rc::clone(&it.origins))),
                };
                if seen.insert(other) {
                    let copy = self.mirror(value, level, it.path.as_ref(), &mut { mirror });
                    pending.push((other, copy));
                }
            }
        }
        Ok(())
    }

    /// A type that is equal to another one for the reason of an equation, which errors can point at.
    /// What is nested too deeply stays as it is.
    fn mirror(&mut self, ty: Ty, level: u32, path: Option<&Rc<Path>>, mirror: &mut Mirror) -> Ty {
        let given = ty;
        let ty = self.find(ty);
        if self.hidden || MAX_DEPTH < mirror.depth {
            return ty;
        }
        if let Some(&copy) = mirror.copies.get(&ty) {
            return copy;
        }
        mirror.depth += 1;
        let then = |step| Path::then(path, step);
        let mut inner =
            |types: &mut Self, ty, step| types.mirror(ty, level, then(step).as_ref(), mirror);
        let copy = match self.nodes[ty as usize].clone() {
            Node::Tuple(parts) => {
                let parts = parts.into_iter().enumerate();
                let parts = parts.map(|(at, part)| inner(self, part, Step::Part(at))).collect();
                self.add(Node::Tuple(parts))
            }
            Node::Function(params, result) => {
                let params = params.into_iter().enumerate();
                let params =
                    params.map(|(at, param)| inner(self, param, Step::Parameter(at + 1))).collect();
                let result = inner(self, result, Step::Result);
                self.add(Node::Function(params, result))
            }
            Node::Tensor(elem, shape) => {
                let own = self.elem_var(level, Class::Any);
                let own_shape = Shape::var(self.solver.shape_var(level));
                // A variable of any class is equal to anything.
                let _ = self.unify_elems(own, elem, &mirror.origins);
                let (left, right) = mirror.sides(own_shape.clone(), shape);
                let relation = Relation::Shapes(left, right);
                let equation = self.solver.given_by_all(relation, &mirror.origins);
                self.parts.extend(path.map(|path| (equation, Rc::clone(path))));
                self.add(Node::Tensor(own, own_shape))
            }
            Node::Var(_) => {
                let own = self.add(Node::Link(ty));
                let (left, right) = mirror.sides(own, given);
                let origins = Rc::clone(&mirror.origins);
                self.add_equal(ty, vec![Equal { left, right, origins, path: path.cloned() }]);
                mirror.depth -= 1;
                return own;
            }
            Node::Link(_) | Node::Error => ty,
        };
        if copy != ty {
            self.sources.insert(copy, (ty, Rc::clone(&mirror.origins)));
        }
        mirror.depth -= 1;
        mirror.copies.insert(ty, copy);
        copy
    }

    fn unify_elems(&mut self, a: Elem, b: Elem, origins: &Rc<[Origin]>) -> Result<(), Differs> {
        let (root_a, root_b) = (self.find_elem(a), self.find_elem(b));
        if root_a == root_b {
            return Ok(());
        }
        self.edges.push((a, b, Rc::clone(origins)));
        match (self.elems[root_a as usize], self.elems[root_b as usize]) {
            (ElemNode::Known(x), ElemNode::Known(y)) => {
                if x != y {
                    let core = self.last_edge(vec![(a, Goal::Known), (b, Goal::Known)]);
                    return Err((Difference::Elements(x, y), core));
                }
                self.elems[root_a as usize] = ElemNode::Link(root_b);
            }
            (ElemNode::Var(_, class), ElemNode::Known(ty))
            | (ElemNode::Known(ty), ElemNode::Var(_, class)) => {
                let (var, known) = match self.elems[root_a as usize] {
                    ElemNode::Known(_) => (root_b, root_a),
                    _ => (root_a, root_b),
                };
                if !class.holds(ty) {
                    let (known, asks, difference) = match var == root_a {
                        true => (b, a, Difference::NotOf(class, ty)),
                        false => (a, b, Difference::Known(ty, class)),
                    };
                    let goals = vec![(known, Goal::Known), (asks, Goal::Asked(class))];
                    return Err((difference, self.last_edge(goals)));
                }
                self.elems[var as usize] = ElemNode::Link(known);
            }
            (ElemNode::Var(level_a, class_a), ElemNode::Var(level_b, class_b)) => {
                let Some(class) = class_a.meet(class_b) else {
                    let goals = vec![(a, Goal::Apart(class_b)), (b, Goal::Apart(class_a))];
                    let difference = Difference::Classes(class_a, class_b);
                    return Err((difference, self.last_edge(goals)));
                };
                self.elems[root_a as usize] = ElemNode::Link(root_b);
                self.elems[root_b as usize] = ElemNode::Var(level_a.min(level_b), class);
            }
            _ => {}
        }
        Ok(())
    }

    /// A type that is equal to what is written, for a reason that errors can point at.
    pub(crate) fn annotated(&mut self, written: Ty, level: u32, origin: Origin) -> Ty {
        self.mirror(written, level, None, &mut Mirror::of_right([origin].into()))
    }

    /// Gives a type variable a value.
    fn bind(&mut self, var: Ty, level: u32, value: Ty) -> Result<(), Differs> {
        let mut seen = HashSet::new();
        let mut pending = vec![value];
        while let Some(ty) = pending.pop() {
            let ty = self.find(ty);
            if ty == var {
                return Err((Difference::Endless, Vec::new()));
            }
            if !seen.insert(ty) {
                continue;
            }
            match self.nodes[ty as usize].clone() {
                Node::Var(other) => self.nodes[ty as usize] = Node::Var(level.min(other)),
                Node::Tensor(elem, shape) => {
                    let elem = self.find_elem(elem);
                    if let ElemNode::Var(other, class) = self.elems[elem as usize] {
                        self.elems[elem as usize] = ElemNode::Var(level.min(other), class);
                    }
                    self.solver.lower_levels(&shape, level);
                }
                Node::Tuple(parts) => pending.extend(parts),
                Node::Function(params, result) => {
                    pending.extend(params);
                    pending.push(result);
                }
                Node::Link(_) | Node::Error => {}
            }
        }
        self.nodes[var as usize] = Node::Link(value);
        Ok(())
    }

    /// The shapes of the tensors among the first [`MAX_PARTS`] parts of a type, in the order in which they are
    /// printed.
    pub(crate) fn shapes(&mut self, ty: Ty) -> Vec<Shape> {
        let (mut shapes, mut pending) = (Vec::new(), vec![ty]);
        for _ in 0..MAX_PARTS {
            let Some(ty) = pending.pop() else { break };
            match self.node(ty) {
                Node::Tensor(_, shape) => shapes.push(shape),
                Node::Tuple(parts) => pending.extend(parts.into_iter().rev()),
                Node::Function(params, result) => {
                    pending.push(result);
                    pending.extend(params.into_iter().rev());
                }
                Node::Var(_) | Node::Link(_) | Node::Error => {}
            }
        }
        shapes
    }

    /// Whether a type has more than [`MAX_PARTS`] parts, those that occur twice counted twice.
    pub(crate) fn is_too_large(&mut self, ty: Ty) -> bool {
        let mut sizes: HashMap<Ty, usize> = HashMap::new();
        let mut pending = vec![ty];
        while let Some(&last) = pending.last() {
            let ty = self.find(last);
            let parts = match self.nodes[ty as usize].clone() {
                Node::Tuple(parts) => parts,
                Node::Function(params, result) => params.into_iter().chain([result]).collect(),
                _ => Vec::new(),
            };
            let parts: Vec<Ty> = parts.into_iter().map(|part| self.find(part)).collect();
            let unknown = parts.iter().copied().filter(|part| !sizes.contains_key(part));
            let known = pending.len();
            pending.extend(unknown);
            if pending.len() == known {
                let size =
                    parts.iter().fold(1_usize, |size, part| size.saturating_add(sizes[part]));
                if MAX_PARTS < size {
                    return true;
                }
                sizes.insert(ty, size);
                pending.pop();
            }
        }
        false
    }
}

/// Mirroring of a type under way.
struct Mirror {
    /// See [`Equal::origins`].
    origins: Rc<[Origin]>,
    /// Whether the mirrored type is on the left side of equations.
    is_left: bool,
    depth: u32,
    copies: HashMap<Ty, Ty>,
}

impl Mirror {
    fn of_left(origins: Rc<[Origin]>) -> Self {
        Self { origins, is_left: true, depth: 0, copies: HashMap::new() }
    }

    fn of_right(origins: Rc<[Origin]>) -> Self {
        Self { is_left: false, ..Self::of_left(origins) }
    }

    /// The sides of an equation between a mirror and what it is one of.
    fn sides<T>(&self, own: T, given: T) -> (T, T) {
        match self.is_left {
            true => (own, given),
            false => (given, own),
        }
    }
}
