//! Types of Axon values, and their unification.
//!
//! Source: Axon, section 4: Hindley-Milner unification, to which one rule is added: two tensor types
//! are equal if their element types are, and their shapes are, which is an equation for the shape
//! solver.
//!
//! Types are nodes of a graph; a variable that has a value is a link to it. Tuples and functions keep
//! their own parts, so that errors say which place asks for what; those that were found equal form
//! classes, so that no part is unified with another twice.

use crate::tc::syntax::Span;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::rc::Rc;
use tc_ir::shape::{
    DimError, DimVar, Item, Shape, ShapeVar,
    solve::{self, Definition, EquationId, Mark, Origin, Relation, Residual, Solver, Use},
};

/// Deepest nesting of a type.
pub const MAX_DEPTH: u32 = 200;

/// Most parts of a type.
pub(crate) const MAX_PARTS: usize = 1 << 12;

/// The type of the elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ElementType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

impl ElementType {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
    ];

    /// The spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The type with a spelling.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// The least and the greatest integer of an integer type.
    pub fn integer_range(self) -> Option<(i128, i128)> {
        let (bits, signed) = match self {
            Self::I8 => (8, true),
            Self::I16 => (16, true),
            Self::I32 => (32, true),
            Self::I64 => (64, true),
            Self::U8 => (8, false),
            Self::U16 => (16, false),
            Self::U32 => (32, false),
            Self::U64 => (64, false),
            _ => return None,
        };
        Some(if signed { (-1 << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) })
    }

    /// Why there is no such integer of this type.
    pub fn misfit(self, value: i128) -> Option<String> {
        let (low, high) = self.integer_range()?;
        let message = || format!("{value} does not fit {}, expected {low} to {high}", self.name());
        (!(low..=high).contains(&value)).then(message)
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        self.class() == Class::Float
    }

    /// The smallest class that it belongs to.
    fn class(self) -> Class {
        match self {
            Self::Bool => Class::Any,
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 => Class::Float,
            _ => Class::Integer,
        }
    }
}

/// What is asked of an element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Nothing.
    Any,
    /// All but `bool`.
    Number,
    /// Integers, with and without sign.
    Integer,
    /// Floating-point numbers.
    Float,
}

impl Class {
    /// The spelling in the table of built-in functions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Float => "float",
        }
    }

    /// The class with a spelling.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Any, Self::Number, Self::Integer, Self::Float]
            .into_iter()
            .find(|class| class.name() == name)
    }

    /// What belongs to both.
    fn meet(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, one) | (one, Self::Any) => Some(one),
            (Self::Number, one) | (one, Self::Number) => Some(one),
            _ => Some(self).filter(|_| self == other),
        }
    }

    fn holds(self, ty: ElementType) -> bool {
        match self {
            Self::Any => true,
            Self::Number => ty != ElementType::Bool,
            Self::Integer | Self::Float => ty.class() == self,
        }
    }
}

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

#[derive(Clone, Copy, Debug)]
enum ElemNode {
    Link(Elem),
    Var(u32, Class),
    Known(ElementType),
}

/// A type in which some variables stand for any type.
#[derive(Clone, Debug)]
pub(crate) struct Scheme {
    pub(crate) ty: Ty,
    quantified: Quantified,
    /// Conditions on the variables that could not be solved.
    pub(crate) residuals: Vec<Residual>,
    /// What was given for it; `None` if errors do not look into it.
    definition: Option<Rc<Definition>>,
    /// The shapes of its tensors before they were solved, of those that were.
    solved: HashMap<Ty, Shape>,
    /// Shapes of numbers.
    numbers: Vec<ShapeVar>,
    /// Integers whose type a use determines: the least and the greatest of each element type.
    pub(crate) integers: Vec<Integer>,
}

/// An integer in a program.
#[derive(Clone, Debug)]
pub(crate) struct Integer {
    pub(crate) value: i128,
    pub(crate) span: Span,
    pub(crate) elem: Elem,
}

/// The variables that were made inside more than some number of definitions.
#[derive(Clone, Debug, Default)]
struct Quantified {
    level: u32,
    any: bool,
    /// Whether there are others, which stand for any size or shape in an inner definition.
    inner: bool,
    dims: BTreeSet<DimVar>,
    shapes: BTreeSet<ShapeVar>,
}

/// Why two types are not equal.
#[derive(Clone, Debug)]
pub(crate) struct Mismatch {
    pub(crate) difference: Difference,
    /// The part of the types that differs.
    pub(crate) path: Option<Rc<Path>>,
    /// What says what the two parts are.
    pub(crate) core: Vec<Origin>,
}

/// How two types differ.
#[derive(Clone, Debug)]
pub(crate) enum Difference {
    /// They are of different kinds.
    Kinds(Ty, Ty),
    /// Functions of different numbers of parameters.
    Arity(usize, usize),
    /// Tuples of different sizes.
    Size(usize, usize),
    /// Different element types.
    Elements(ElementType, ElementType),
    /// An element type that is not of the class that is expected.
    NotOf(Class, ElementType),
    /// Some element type of a class, where one is expected that is not of it.
    Known(ElementType, Class),
    /// Some element type of a class, where one of another class is expected.
    Classes(Class, Class),
    /// A type that would have to contain itself.
    Endless,
}

impl Difference {
    /// Whether it is about kinds of values, not about element types.
    pub(crate) fn is_of_kinds(&self) -> bool {
        use Difference::{Classes, Elements, Known, NotOf};
        !matches!(self, Elements(..) | NotOf(..) | Known(..) | Classes(..))
    }
}

/// How two types differ, and what says so.
type Differs = (Difference, Vec<Origin>);

/// A step from a type to a part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Of a tuple.
    Part(usize),
    /// Of a function, from 1.
    Parameter(usize),
    /// Of a function.
    Result,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part(number) => write!(f, "part .{number}"),
            Self::Parameter(number) => write!(f, "parameter {number}"),
            Self::Result => write!(f, "the result"),
        }
    }
}

/// The way from a type to a part of it; the last step first.
#[derive(Debug)]
pub(crate) struct Path {
    step: Step,
    before: Option<Rc<Path>>,
}

impl Path {
    pub(crate) fn then(before: Option<&Rc<Self>>, step: Step) -> Option<Rc<Self>> {
        Some(Rc::new(Self { step, before: before.cloned() }))
    }

    /// `the result of parameter 1 of `.
    pub(crate) fn prefix(path: Option<&Rc<Self>>) -> String {
        let steps = std::iter::successors(path, |path| path.before.as_ref());
        steps.map(|path| format!("{} of ", path.step)).collect()
    }
}

/// An element type that another one is equal to, and why.
type Link<'t> = (Elem, &'t Rc<[Origin]>);

/// Where a chain of equal element types ends.
#[derive(Clone, Copy)]
enum Goal {
    Known,
    Node(Elem),
    /// Where a class is asked for.
    Asked(Class),
    /// Where a class is asked for that has nothing in common with another.
    Apart(Class),
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

/// How many uses of definitions are looked into to explain an element type.
const MAX_CHAINS: usize = 256;

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

    /// What says that a type is a tensor, a tuple or a function.
    pub(crate) fn why_kind(&mut self, ty: Ty) -> Vec<Origin> {
        let mut origins = Vec::new();
        let mut at = self.find(ty);
        while let Some((source, why)) = self.sources.get(&at) {
            origins.extend_from_slice(why);
            at = *source;
        }
        origins
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

    /// What says that two different element types are the same, or that one belongs to a class: the
    /// shortest chains of equalities from the last equation to the goals. No link can be left out.
    fn last_edge(&self, goals: Vec<(Elem, Goal)>) -> Vec<Origin> {
        let (last, others) = self.edges.split_last().expect("one was added");
        let mut path = self.chains(goals, others);
        path.extend_from_slice(&last.2);
        path.sort_unstable();
        path.dedup();
        path
    }

    /// What says that the type of elements is what it is.
    pub(crate) fn why_known(&self, elem: Elem) -> Vec<Origin> {
        self.chains(vec![(elem, Goal::Known)], &self.edges)
    }

    /// The shortest chains of equalities from element types to goals. What is equal in a use
    /// of a definition is so because of a chain in the definition.
    fn chains(
        &self,
        mut goals: Vec<(Elem, Goal)>,
        edges: &[(Elem, Elem, Rc<[Origin]>)],
    ) -> Vec<Origin> {
        let mut near: HashMap<Elem, Vec<Link>> = HashMap::new();
        for (x, y, origins) in edges {
            near.entry(*x).or_default().push((*y, origins));
            near.entry(*y).or_default().push((*x, origins));
        }
        let mut path = Vec::new();
        for _ in 0..MAX_CHAINS {
            let Some((start, goal)) = goals.pop() else { break };
            let mut from: HashMap<Elem, Option<Link>> = HashMap::from([(start, None)]);
            let mut queue = VecDeque::from([start]);
            while let Some(at) = queue.pop_front() {
                if self.is_at(at, goal) {
                    let copied = self.copied.get(&at).filter(|_| !matches!(goal, Goal::Node(_)));
                    if let Some(&(original, used)) = copied {
                        path.push(used);
                        goals.push((original, goal));
                    }
                    path.extend(self.literals.get(&at));
                    self.chain(at, &from, &mut path, &mut goals);
                    break;
                }
                for &(next, origins) in near.get(&at).into_iter().flatten() {
                    from.entry(next).or_insert_with(|| {
                        queue.push_back(next);
                        Some((at, origins))
                    });
                }
            }
        }
        path
    }

    /// The links of a chain; those that are uses of definitions become goals.
    fn chain(
        &self,
        end: Elem,
        from: &HashMap<Elem, Option<Link>>,
        path: &mut Vec<Origin>,
        goals: &mut Vec<(Elem, Goal)>,
    ) {
        // Where the links of one use began.
        let mut inside: Option<Elem> = None;
        let mut at = end;
        loop {
            let step = from[&at];
            let used = |elem| self.copied.get(&elem).map(|(_, used)| *used);
            let is_used = step.is_some_and(|(previous, origins)| {
                let here = used(at).is_some_and(|used| **origins == [used]);
                here && used(previous) == used(at)
            });
            if let Some(last) = inside.filter(|_| !is_used) {
                goals.push((self.copied[&last].0, Goal::Node(self.copied[&at].0)));
                inside = None;
            }
            let Some((previous, origins)) = step else { return };
            path.extend_from_slice(origins);
            if is_used {
                inside = inside.or(Some(at));
            }
            at = previous;
        }
    }

    fn is_at(&self, elem: Elem, goal: Goal) -> bool {
        let asked = self.asked[elem as usize];
        match goal {
            Goal::Known => matches!(self.elems[elem as usize], ElemNode::Known(_)),
            Goal::Node(node) => elem == node,
            Goal::Asked(class) => asked == class,
            Goal::Apart(class) => asked.meet(class).is_none(),
        }
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

    /// The scheme of a type without variables that stand for any type.
    pub(crate) fn monomorphic(ty: Ty) -> Scheme {
        Scheme {
            ty,
            quantified: Quantified::default(),
            residuals: Vec::new(),
            definition: None,
            solved: HashMap::new(),
            numbers: Vec::new(),
            integers: Vec::new(),
        }
    }

    /// A type in which the variables made inside more than `level` definitions stand for any type,
    /// and the conditions on them, which are those of the equations from `since` on.
    pub(crate) fn generalize(&mut self, ty: Ty, level: u32, since: Mark) -> Scheme {
        let hidden = self.hidden;
        let quantified = Quantified { level, ..Quantified::default() };
        let mut copying =
            Generalization { quantified, memo: HashMap::new(), solved: HashMap::new() };
        let ty = self.resolved_copy(ty, &mut copying, 0);
        let Generalization { mut quantified, solved, .. } = copying;
        let mut residuals = Vec::new();
        for residual in self.solver.residuals(since) {
            let mut inside = Quantified { level, ..Quantified::default() };
            match &residual.relation {
                Relation::Shapes(a, b) | Relation::Elements(a, b) => {
                    self.quantify(a, &mut inside);
                    self.quantify(b, &mut inside);
                }
                Relation::Dims(a, b) => {
                    self.quantify(&Shape::dims([a.clone(), b.clone()]), &mut inside);
                }
                Relation::Positive(a) => {
                    self.quantify(&Shape::dims([a.clone()]), &mut inside);
                }
            }
            // What only inner definitions can be used with is a condition of theirs.
            if inside.any && !inside.inner {
                quantified.dims.append(&mut inside.dims);
                quantified.shapes.append(&mut inside.shapes);
                // Also where the type has no variable: uses are asked for it.
                quantified.any = true;
                residuals.push(residual);
            }
        }
        let made: Vec<ShapeVar> = self.solver.numbers(since).collect();
        let root = |var: ShapeVar| self.solver.resolved_shape(&Shape::var(var)).as_var();
        let mut numbers: Vec<ShapeVar> = made.into_iter().filter_map(root).collect();
        numbers.retain(|var| quantified.shapes.contains(var));
        let definition = Rc::new(self.solver.definition(since, level));
        let definition = Some(definition).filter(|_| !hidden);
        Scheme { ty, quantified, residuals, definition, solved, numbers, integers: Vec::new() }
    }

    /// Collects the variables of a shape that stand for any value; whether there are some.
    fn quantify(&self, shape: &Shape, quantified: &mut Quantified) -> bool {
        let mut found = false;
        for item in &shape.items {
            match item {
                Item::Var(var) => {
                    let level = self.solver.shape_level(*var);
                    if quantified.level < level {
                        quantified.shapes.insert(*var);
                        found = true;
                        quantified.inner |= quantified.level + 1 < level;
                    }
                }
                Item::Dim(dim) => {
                    for var in self.solver.arithmetic().vars(dim) {
                        let level = self.solver.dim_level(var);
                        if quantified.level < level {
                            quantified.dims.insert(var);
                            found = true;
                            quantified.inner |= quantified.level + 1 < level;
                        }
                    }
                }
            }
        }
        quantified.any |= found;
        found
    }

    /// A copy of a type with what is known about its shapes put in; collects what is quantified.
    fn resolved_copy(&mut self, ty: Ty, copying: &mut Generalization, depth: u32) -> Ty {
        let given = ty;
        let ty = self.find(ty);
        if let Some(&copy) = copying.memo.get(&ty) {
            return copy;
        }
        if MAX_DEPTH < depth {
            self.too_deep = true;
            return self.add(Node::Error);
        }
        let mut inner = |types: &mut Self, ty| types.resolved_copy(ty, copying, depth + 1);
        let copy = match self.nodes[ty as usize].clone() {
            Node::Tuple(parts) => {
                let parts = parts.into_iter().map(|part| inner(self, part)).collect();
                self.add(Node::Tuple(parts))
            }
            Node::Function(params, result) => {
                let params = params.into_iter().map(|param| inner(self, param)).collect();
                let result = inner(self, result);
                self.add(Node::Function(params, result))
            }
            Node::Tensor(elem, shape) => {
                let Generalization { quantified, .. } = copying;
                self.too_large = self.too_large.or(self.solver.check_shape(&shape).err());
                let solved = self.solver.resolved_shape(&shape);
                let solved = self.solver.representative(solved);
                let is_own = self.quantify(&solved, quantified);
                let root = self.find_elem(elem);
                if let ElemNode::Var(level, _) = self.elems[root as usize] {
                    quantified.any |= quantified.level < level;
                }
                // What is the same in all uses stays as it is, so that errors find out why.
                let (elem, kept) = match (self.hidden, is_own) {
                    (true, _) => (root, solved.clone()),
                    (false, true) => (elem, solved.clone()),
                    (false, false) => (elem, shape.clone()),
                };
                let looked_into = !self.hidden && is_own && shape != solved;
                let copy = self.add(Node::Tensor(elem, kept));
                if looked_into {
                    copying.solved.insert(copy, shape);
                }
                copy
            }
            Node::Var(level) => {
                copying.quantified.any |= copying.quantified.level < level;
                return given;
            }
            Node::Link(_) | Node::Error => ty,
        };
        if copy != ty && !self.hidden {
            self.sources.insert(copy, (ty, [].into()));
        }
        copying.memo.insert(ty, copy);
        copy
    }

    /// The type of a use of what has a scheme, and what stands for its variables. The origin is that of
    /// the use, but for conditions, which have one each.
    pub(crate) fn instantiate(
        &mut self,
        scheme: &Scheme,
        level: u32,
        origin: Origin,
        asks: &[Origin],
    ) -> (Ty, Renaming) {
        if !scheme.quantified.any {
            return (scheme.ty, Renaming::default());
        }
        let mut copies = Copies::new(scheme, level, origin);
        for &var in &scheme.quantified.dims {
            copies.renaming.sizes.dims.insert(var, self.solver.dim_var(level));
        }
        for &var in &scheme.quantified.shapes {
            copies.renaming.sizes.shapes.insert(var, self.solver.shape_var(level));
        }
        self.solver.name_alike(&copies.renaming.sizes);
        for var in &scheme.numbers {
            self.solver.set_number(copies.renaming.sizes.shapes[var]);
        }
        let ty = self.copy(scheme.ty, &mut copies, 0);
        let Copies { renaming, shapes, .. } = copies;
        for (residual, origin) in scheme.residuals.iter().zip(asks) {
            let relation = renaming.sizes.relation(self.solver.arithmetic(), &residual.relation);
            self.solver.given(relation, *origin);
        }
        if let Some(definition) = scheme.definition.clone() {
            let renaming = renaming.sizes.clone();
            let used = Use { definition, renaming, shapes };
            for &condition in asks.iter().filter(|condition| **condition != origin) {
                self.solver.used(condition, used.clone());
            }
            self.solver.used(origin, used);
        }
        (ty, renaming)
    }

    fn copy(&mut self, ty: Ty, copies: &mut Copies, depth: u32) -> Ty {
        let given = ty;
        let ty = self.find(ty);
        if let Some(&copy) = copies.types.get(&given).or_else(|| copies.types.get(&ty)) {
            return copy;
        }
        if MAX_DEPTH < depth {
            self.too_deep = true;
            return self.add(Node::Error);
        }
        let copy = match self.nodes[ty as usize].clone() {
            Node::Tuple(parts) => {
                let parts =
                    parts.into_iter().map(|part| self.copy(part, copies, depth + 1)).collect();
                self.add(Node::Tuple(parts))
            }
            Node::Function(params, result) => {
                let params =
                    params.into_iter().map(|param| self.copy(param, copies, depth + 1)).collect();
                let result = self.copy(result, copies, depth + 1);
                self.add(Node::Function(params, result))
            }
            Node::Tensor(elem, shape) => {
                let elem = self.copy_elem(elem, copies);
                let mut shape = copies.renaming.sizes.shape(self.solver.arithmetic(), &shape);
                if let Some(original) = copies.scheme.solved.get(&ty) {
                    let var = self.solver.shape_var(copies.level);
                    copies.shapes.push((var, original.clone()));
                    self.solver.given(Relation::Shapes(Shape::var(var), shape), copies.origin);
                    shape = Shape::var(var);
                }
                self.add(Node::Tensor(elem, shape))
            }
            Node::Var(level) if copies.scheme.quantified.level < level => {
                self.copy_class(ty, copies);
                return copies.types.get(&given).copied().unwrap_or(ty);
            }
            Node::Var(_) | Node::Link(_) | Node::Error => ty,
        };
        if copy != ty && copies.scheme.definition.is_some() {
            self.sources.insert(copy, (ty, Rc::clone(&copies.origins)));
        }
        copies.types.insert(ty, copy);
        copy
    }

    /// Variables for those of a class, which are equal since those of the definition are.
    fn copy_class(&mut self, root: Ty, copies: &mut Copies) {
        let class = self.var(copies.level);
        copies.types.insert(root, class);
        let mut equal = self.equal.get(&root).cloned().unwrap_or_default();
        for it in &mut equal {
            for ty in [&mut it.left, &mut it.right] {
                *ty = *copies.types.entry(*ty).or_insert_with(|| {
                    self.nodes.push(Node::Link(class));
                    self.nodes.len() as Ty - 1
                });
            }
            it.origins = it.origins.iter().copied().chain([copies.origin]).collect();
        }
        if !equal.is_empty() {
            self.add_equal(class, equal);
        }
    }

    /// The integer of a definition in a use of it, if that determines its type.
    pub(crate) fn copy_integer(
        &mut self,
        integer: &Integer,
        renaming: &Renaming,
        origin: Origin,
    ) -> Option<Integer> {
        let root = self.find_elem(integer.elem);
        let whole = *renaming.elems.get(&root)?;
        let copy = self.add_elem(ElemNode::Link(whole), Class::Any);
        self.edges.push((copy, whole, [origin].into()));
        self.copied.insert(copy, (integer.elem, origin));
        Some(Integer { elem: copy, ..integer.clone() })
    }

    fn copy_elem(&mut self, elem: Elem, copies: &mut Copies) -> Elem {
        let root = self.find_elem(elem);
        let hidden = copies.scheme.definition.is_none();
        let (level, origin) = (copies.level, copies.origin);
        let whole = match self.elems[root as usize] {
            ElemNode::Var(own, class) if copies.scheme.quantified.level < own => {
                match copies.renaming.elems.get(&root) {
                    Some(&copy) => Some(copy),
                    None => {
                        let copy = self.elem_var(level, class);
                        copies.renaming.elems.insert(root, copy);
                        if !hidden {
                            self.copied.insert(copy, (root, origin));
                        }
                        Some(copy)
                    }
                }
            }
            ElemNode::Known(_) => None,
            _ => return elem,
        };
        if hidden {
            return whole.unwrap_or(elem);
        }
        if let Some(&copy) = copies.elems.get(&elem) {
            return copy;
        }
        // Each element type of the definition has one in the use, so that the chain between two of them
        // is that of the definition.
        let copy = match whole {
            Some(whole) if elem == root => whole,
            Some(whole) => {
                let copy = self.add_elem(ElemNode::Link(whole), Class::Any);
                self.edges.push((copy, whole, Rc::clone(&copies.origins)));
                copy
            }
            None => self.add_elem(self.elems[root as usize], Class::Any),
        };
        self.copied.insert(copy, (elem, origin));
        copies.elems.insert(elem, copy);
        copy
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

/// The generalization of a type under way.
struct Generalization {
    quantified: Quantified,
    memo: HashMap<Ty, Ty>,
    solved: HashMap<Ty, Shape>,
}

/// What stands for the variables of a scheme in one of its uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Renaming {
    pub(crate) elems: HashMap<Elem, Elem>,
    pub(crate) sizes: solve::Renaming,
}

/// The copy of a type under way.
struct Copies<'s> {
    scheme: &'s Scheme,
    level: u32,
    origin: Origin,
    /// The origin alone.
    origins: Rc<[Origin]>,
    types: HashMap<Ty, Ty>,
    elems: HashMap<Elem, Elem>,
    renaming: Renaming,
    /// Variables for shapes of the definition that were solved.
    shapes: Vec<(ShapeVar, Shape)>,
}

impl<'s> Copies<'s> {
    fn new(scheme: &'s Scheme, level: u32, origin: Origin) -> Self {
        Self {
            scheme,
            level,
            origin,
            origins: [origin].into(),
            types: HashMap::new(),
            elems: HashMap::new(),
            renaming: Renaming::default(),
            shapes: Vec::new(),
        }
    }
}
