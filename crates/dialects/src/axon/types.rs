//! Types of Axon values, and their unification.
//!
//! Source: Axon, section 4: Hindley-Milner unification, to which one rule is added: two tensor types
//! are equal if their element types are, and their shapes are, which is an equation for the shape
//! solver.
//!
//! Types are nodes of a graph; a variable that has a value, and a node that was found equal to
//! another, is a link to it, so that no part is unified with another twice.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use tc_ir::shape::{
    Dim, DimVar, Item, Shape, ShapeVar,
    solve::{Mark, Origin, Relation, Residual, Solver},
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
    pub fn misfit(self, value: i64) -> Option<String> {
        let (low, high) = self.integer_range()?;
        let message = || format!("{value} does not fit {}, expected {low} to {high}", self.name());
        (!(low..=high).contains(&i128::from(value))).then(message)
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
pub(crate) enum Mismatch {
    /// They are of different kinds.
    Kinds(Ty, Ty),
    /// Functions of different numbers of parameters.
    Arity(usize, usize),
    /// Tuples of different sizes.
    Size(usize, usize),
    /// Different element types, and what says so.
    Elements(ElementType, ElementType, Vec<Origin>),
    /// An element type that does not belong to a class.
    Class(String, Class),
    /// A type that would have to contain itself.
    Endless,
}

/// All types of a program.
#[derive(Debug, Default)]
pub(crate) struct Types {
    nodes: Vec<Node>,
    elems: Vec<ElemNode>,
    /// Element types that were found equal, and why.
    edges: Vec<(Elem, Elem, Origin)>,
    pub(crate) solver: Solver,
    /// Whether a type was nested deeper than [`MAX_DEPTH`].
    pub(crate) too_deep: bool,
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
        self.elems.push(ElemNode::Var(level, class));
        self.elems.len() as Elem - 1
    }

    pub(crate) fn elem(&mut self, ty: ElementType) -> Elem {
        self.elems.push(ElemNode::Known(ty));
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
        let mut pending = vec![(a, b)];
        while let Some((a, b)) = pending.pop() {
            let (a, b) = (self.find(a), self.find(b));
            if a == b {
                continue;
            }
            match (self.nodes[a as usize].clone(), self.nodes[b as usize].clone()) {
                (Node::Error, _) | (_, Node::Error) => {}
                (Node::Var(level), _) => self.bind(a, level, b)?,
                (_, Node::Var(level)) => self.bind(b, level, a)?,
                (Node::Tensor(elem_a, shape_a), Node::Tensor(elem_b, shape_b)) => {
                    self.unify_elems(elem_a, elem_b, origin)?;
                    self.solver.equate_shapes(shape_a, shape_b, origin);
                    // Not linked: each keeps its shape, so that conflicts can be explained.
                }
                (Node::Tuple(parts_a), Node::Tuple(parts_b)) => {
                    if parts_a.len() != parts_b.len() {
                        return Err(Mismatch::Size(parts_a.len(), parts_b.len()));
                    }
                    self.nodes[a as usize] = Node::Link(b);
                    pending.extend(parts_a.into_iter().zip(parts_b).rev());
                }
                (Node::Function(params_a, result_a), Node::Function(params_b, result_b)) => {
                    if params_a.len() != params_b.len() {
                        return Err(Mismatch::Arity(params_a.len(), params_b.len()));
                    }
                    self.nodes[a as usize] = Node::Link(b);
                    pending.push((result_a, result_b));
                    pending.extend(params_a.into_iter().zip(params_b).rev());
                }
                _ => return Err(Mismatch::Kinds(a, b)),
            }
        }
        Ok(())
    }

    pub(crate) fn unify_elems(&mut self, a: Elem, b: Elem, origin: Origin) -> Result<(), Mismatch> {
        let (root_a, root_b) = (self.find_elem(a), self.find_elem(b));
        if root_a == root_b {
            return Ok(());
        }
        self.edges.push((a, b, origin));
        match (self.elems[root_a as usize], self.elems[root_b as usize]) {
            (ElemNode::Known(x), ElemNode::Known(y)) => {
                if x != y {
                    return Err(Mismatch::Elements(x, y, self.element_path(a, b, origin)));
                }
                self.elems[root_a as usize] = ElemNode::Link(root_b);
            }
            (ElemNode::Var(_, class), ElemNode::Known(ty))
            | (ElemNode::Known(ty), ElemNode::Var(_, class)) => {
                if !class.holds(ty) {
                    return Err(Mismatch::Class(ty.name().to_string(), class));
                }
                let (var, known) = match self.elems[root_a as usize] {
                    ElemNode::Known(_) => (root_b, root_a),
                    _ => (root_a, root_b),
                };
                self.elems[var as usize] = ElemNode::Link(known);
            }
            (ElemNode::Var(level_a, class_a), ElemNode::Var(level_b, class_b)) => {
                let Some(class) = class_a.meet(class_b) else {
                    return Err(Mismatch::Class(class_a.name().to_string(), class_b));
                };
                self.elems[root_a as usize] = ElemNode::Link(root_b);
                self.elems[root_b as usize] = ElemNode::Var(level_a.min(level_b), class);
            }
            _ => {}
        }
        Ok(())
    }

    /// What says that two different element types are the same: the shortest chain of equalities from
    /// one to the other. No link of it can be left out.
    fn element_path(&self, a: Elem, b: Elem, last: Origin) -> Vec<Origin> {
        let mut path = self.known_from(&[a, b], self.edges.len() - 1);
        path.push(last);
        path.sort_unstable();
        path.dedup();
        path
    }

    /// What says that the type of elements is what it is.
    pub(crate) fn why_known(&self, elem: Elem) -> Vec<Origin> {
        self.known_from(&[elem], self.edges.len())
    }

    /// The shortest chains of equalities, of so many, from some element types to known ones.
    fn known_from(&self, starts: &[Elem], num_edges: usize) -> Vec<Origin> {
        let mut near: HashMap<Elem, Vec<(Elem, Origin)>> = HashMap::new();
        for &(x, y, origin) in &self.edges[..num_edges] {
            near.entry(x).or_default().push((y, origin));
            near.entry(y).or_default().push((x, origin));
        }
        let mut path = Vec::new();
        for &start in starts {
            let mut from: HashMap<Elem, Option<(Elem, Origin)>> = HashMap::from([(start, None)]);
            let mut queue = VecDeque::from([start]);
            while let Some(at) = queue.pop_front() {
                if let ElemNode::Known(_) = self.elems[at as usize] {
                    let mut step = from[&at];
                    while let Some((previous, origin)) = step {
                        path.push(origin);
                        step = from[&previous];
                    }
                    break;
                }
                for &(next, origin) in near.get(&at).into_iter().flatten() {
                    from.entry(next).or_insert_with(|| {
                        queue.push_back(next);
                        Some((at, origin))
                    });
                }
            }
        }
        path
    }

    /// Gives a type variable a value.
    fn bind(&mut self, var: Ty, level: u32, value: Ty) -> Result<(), Mismatch> {
        let mut seen = HashSet::new();
        let mut pending = vec![value];
        while let Some(ty) = pending.pop() {
            let ty = self.find(ty);
            if ty == var {
                return Err(Mismatch::Endless);
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
        Scheme { ty, quantified: Quantified::default(), residuals: Vec::new() }
    }

    /// A type in which the variables made inside more than `level` definitions stand for any type,
    /// and the conditions on them, which are those of the equations from `mark` on.
    pub(crate) fn generalize(&mut self, ty: Ty, level: u32, mark: Mark) -> Scheme {
        let mut quantified = Quantified { level, ..Quantified::default() };
        let ty = self.resolved_copy(ty, &mut quantified, &mut HashMap::new(), 0);
        let mut residuals = Vec::new();
        for residual in self.solver.residuals(mark) {
            let mut inside = Quantified { level, ..Quantified::default() };
            match &residual.relation {
                Relation::Shapes(a, b) | Relation::Elements(a, b) => {
                    self.quantify(a, &mut inside);
                    self.quantify(b, &mut inside);
                }
                Relation::Dims(a, b) => {
                    self.quantify(&Shape::dims([a.clone(), b.clone()]), &mut inside);
                }
                Relation::Positive(a) => self.quantify(&Shape::dims([a.clone()]), &mut inside),
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
        Scheme { ty, quantified, residuals }
    }

    fn quantify(&self, shape: &Shape, quantified: &mut Quantified) {
        for item in &shape.items {
            match item {
                Item::Var(var) => {
                    let level = self.solver.shape_level(*var);
                    if quantified.level < level {
                        quantified.shapes.insert(*var);
                        quantified.any = true;
                        quantified.inner |= quantified.level + 1 < level;
                    }
                }
                Item::Dim(dim) => {
                    for var in self.solver.arithmetic().vars(dim) {
                        let level = self.solver.dim_level(var);
                        if quantified.level < level {
                            quantified.dims.insert(var);
                            quantified.any = true;
                            quantified.inner |= quantified.level + 1 < level;
                        }
                    }
                }
            }
        }
    }

    /// A copy of a type with what is known about its shapes put in; collects what is quantified.
    fn resolved_copy(
        &mut self,
        ty: Ty,
        quantified: &mut Quantified,
        memo: &mut HashMap<Ty, Ty>,
        depth: u32,
    ) -> Ty {
        let ty = self.find(ty);
        if let Some(&copy) = memo.get(&ty) {
            return copy;
        }
        if MAX_DEPTH < depth {
            self.too_deep = true;
            return self.add(Node::Error);
        }
        let mut inner = |types: &mut Self, ty| types.resolved_copy(ty, quantified, memo, depth + 1);
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
                let shape = self.solver.resolved_shape(&shape);
                let shape = self.solver.representative(shape);
                self.quantify(&shape, quantified);
                let elem = self.find_elem(elem);
                if let ElemNode::Var(level, _) = self.elems[elem as usize] {
                    quantified.any |= quantified.level < level;
                }
                self.add(Node::Tensor(elem, shape))
            }
            Node::Var(level) => {
                quantified.any |= quantified.level < level;
                ty
            }
            Node::Link(_) | Node::Error => ty,
        };
        memo.insert(ty, copy);
        copy
    }

    /// The type of a use of what has a scheme, and what stands for its variables. Conditions have the
    /// origin of the use, or without one that of what asks for them.
    pub(crate) fn instantiate(
        &mut self,
        scheme: &Scheme,
        level: u32,
        origin: Option<Origin>,
    ) -> (Ty, Renaming) {
        if !scheme.quantified.any {
            return (scheme.ty, Renaming::default());
        }
        let mut copies = Copies::new(scheme, level);
        for &var in &scheme.quantified.dims {
            copies.renaming.dims.insert(var, self.solver.dim_var(level));
        }
        for &var in &scheme.quantified.shapes {
            copies.renaming.shapes.insert(var, self.solver.shape_var(level));
        }
        let ty = self.copy(scheme.ty, &mut copies, 0);
        for residual in &scheme.residuals {
            let relation = match &residual.relation {
                Relation::Shapes(a, b) => {
                    Relation::Shapes(self.copy_shape(a, &copies), self.copy_shape(b, &copies))
                }
                Relation::Elements(a, b) => {
                    Relation::Elements(self.copy_shape(a, &copies), self.copy_shape(b, &copies))
                }
                Relation::Dims(a, b) => {
                    Relation::Dims(self.copy_dim(a, &copies), self.copy_dim(b, &copies))
                }
                Relation::Positive(a) => Relation::Positive(self.copy_dim(a, &copies)),
            };
            self.solver.given(relation, origin.unwrap_or(residual.origin));
        }
        (ty, copies.renaming)
    }

    fn copy(&mut self, ty: Ty, copies: &mut Copies, depth: u32) -> Ty {
        let ty = self.find(ty);
        if let Some(&copy) = copies.types.get(&ty) {
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
                let shape = self.copy_shape(&shape, copies);
                let root = self.find_elem(elem);
                let elem = match self.elems[root as usize] {
                    ElemNode::Var(level, class) if copies.scheme.quantified.level < level => {
                        match copies.renaming.elems.get(&root) {
                            Some(&copy) => copy,
                            None => {
                                let copy = self.elem_var(copies.level, class);
                                copies.renaming.elems.insert(root, copy);
                                copy
                            }
                        }
                    }
                    _ => elem,
                };
                self.add(Node::Tensor(elem, shape))
            }
            Node::Var(level) if copies.scheme.quantified.level < level => self.var(copies.level),
            Node::Var(_) | Node::Link(_) | Node::Error => ty,
        };
        copies.types.insert(ty, copy);
        copy
    }

    fn copy_dim(&self, dim: &Dim, copies: &Copies) -> Dim {
        let renamed = self
            .solver
            .arithmetic()
            .substitute(dim, &mut |var| copies.renaming.dims.get(&var).map(|var| Dim::Var(*var)));
        // Renaming makes nothing larger.
        renamed.unwrap_or_else(|_| dim.clone())
    }

    fn copy_shape(&self, shape: &Shape, copies: &Copies) -> Shape {
        let items = shape.items.iter().map(|item| match item {
            Item::Var(var) => Item::Var(copies.renaming.shapes.get(var).copied().unwrap_or(*var)),
            Item::Dim(dim) => Item::Dim(self.copy_dim(dim, copies)),
        });
        items.collect()
    }
}

/// What stands for the variables of a scheme in one of its uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Renaming {
    pub(crate) elems: HashMap<Elem, Elem>,
    pub(crate) dims: HashMap<DimVar, DimVar>,
    pub(crate) shapes: HashMap<ShapeVar, ShapeVar>,
}

/// The copy of a type under way.
struct Copies<'s> {
    scheme: &'s Scheme,
    level: u32,
    types: HashMap<Ty, Ty>,
    renaming: Renaming,
}

impl<'s> Copies<'s> {
    fn new(scheme: &'s Scheme, level: u32) -> Self {
        Self { scheme, level, types: HashMap::new(), renaming: Renaming::default() }
    }
}
