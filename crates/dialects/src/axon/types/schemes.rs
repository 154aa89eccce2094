//! Type schemes of polymorphic definitions.

use super::{Class, Elem, ElemNode, MAX_DEPTH, Node, Ty, Types};
use crate::text::Span;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use tc_ir::shape::{
    Dim, DimVar, Item, Shape, ShapeVar,
    solve::{self, Definition, Mark, Origin, Relation, Residual, Use},
};

/// How many equalities between type variables of a definition its uses have as well, for errors to point at: those
/// of `f1 = f0(f0)`, `f2 = f1(f1)`, .. more than double with each.
const MAX_EQUAL: usize = 256;

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

/// What of a definition stands for anything at each of its uses. The language is pure, so that any definition may
/// be evaluated anew at each use, and it is one wherever something of its type is open: without the value
/// restriction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generality {
    /// Its type is the same at all uses.
    Nothing,
    /// Element types: tensors, whose shapes depend on others that are the same at all uses.
    Elements,
    /// Element types and shapes: functions, and what depends on numbers alone.
    All,
}

/// A time in the inference of types.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypesMark {
    pub(crate) solver: Mark,
    nodes: usize,
    elems: usize,
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

impl Scheme {
    /// Whether it stands for several types.
    pub(crate) fn is_polymorphic(&self) -> bool {
        self.quantified.any
    }
}

impl Types {
    pub(crate) fn mark(&self) -> TypesMark {
        let (nodes, elems) = (self.nodes.len(), self.elems.len());
        TypesMark { solver: self.solver.mark(), nodes, elems }
    }

    /// What of the type of a definition stands for anything, where that is what was made inside more than `level`
    /// definitions. Its point-wise operations are those from a number on.
    pub(crate) fn generality(&mut self, ty: Ty, level: u32, since: usize) -> Generality {
        let (mut has_function, mut has_own_type, mut has_own_elem) = (false, false, false);
        let mut shapes: Vec<Shape> = Vec::new();
        let mut seen = HashSet::new();
        let mut pending = vec![ty];
        while let Some(ty) = pending.pop() {
            let ty = self.find(ty);
            if !seen.insert(ty) {
                continue;
            }
            match self.node(ty) {
                Node::Tuple(parts) => pending.extend(parts),
                Node::Function(params, result) => {
                    has_function = true;
                    pending.extend(params);
                    pending.push(result);
                }
                Node::Tensor(elem, shape) => {
                    let root = self.find_elem(elem);
                    let elem = self.elems[root as usize];
                    has_own_elem |= matches!(elem, ElemNode::Var(own, _) if level < own);
                    shapes.push(shape);
                }
                Node::Var(own) => has_own_type |= level < own,
                Node::Link(_) | Node::Error => {}
            }
        }
        if !has_function && !has_own_elem {
            return Generality::Nothing;
        }
        let (mut has_own_shape, mut depends) = (false, false);
        for shape in shapes {
            let shape = self.solver.resolved_shape(&shape);
            for own in self.levels(&shape) {
                has_own_shape |= level < own;
                depends |= own <= level;
            }
        }
        // What is asked of a function says more about its operations than the shapes that they have here.
        let operations: Vec<Shape> = self.solver.pointwise_shapes(since).cloned().collect();
        let is_open = operations.iter().any(|shape| {
            let shape = self.solver.resolved_shape(shape);
            shape.as_var().is_none_or(|var| self.solver.shape_level(var) <= level)
        });
        match has_function {
            true if is_open || !(has_own_type || has_own_elem || has_own_shape) => {
                Generality::Nothing
            }
            false if is_open || depends => Generality::Elements,
            _ => Generality::All,
        }
    }

    /// Says that what was made since a mark inside of one more than `level` definitions is made inside of these:
    /// sizes, and where asked for, types. What is of inner definitions stays theirs.
    pub(crate) fn lower_levels(&mut self, since: TypesMark, level: u32, types_too: bool) {
        self.solver.lower_levels_since(since.solver, level);
        if !types_too {
            return;
        }
        let lower = |own: &mut u32| *own = if *own == level + 1 { level } else { *own };
        for node in &mut self.nodes[since.nodes..] {
            if let Node::Var(own) = node {
                lower(own);
            }
        }
        for elem in &mut self.elems[since.elems..] {
            if let ElemNode::Var(own, _) = elem {
                lower(own);
            }
        }
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
        numbers.retain(|var| quantified.shapes.contains(var) && self.solver.is_of_number(*var));
        let definition = Rc::new(self.solver.definition(since, level));
        let definition = Some(definition).filter(|_| !hidden);
        Scheme { ty, quantified, residuals, definition, solved, numbers, integers: Vec::new() }
    }

    /// Inside how many definitions the variables of a shape were made.
    fn levels(&self, shape: &Shape) -> impl Iterator<Item = u32> + '_ {
        let (shapes, dims) = self.solver.shape_vars(shape);
        let shapes = shapes.into_iter().map(|var| self.solver.shape_level(var));
        shapes.chain(dims.into_iter().map(|var| self.solver.dim_level(var)))
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
                let solved = self.solver.representative(&solved);
                // Conditions, or the values of its variables, may say what it is, though some of these are free.
                let sums = shape.items.iter().filter(|it| matches!(it, Item::Dim(Dim::Sum(_))));
                let sums: Shape = sums.cloned().collect();
                let known = self.solver.known_shape(&shape);
                let is_own = self.quantify(&solved, quantified)
                    || self
                        .levels(&known)
                        .chain(self.levels(&sums))
                        .any(|own| quantified.level < own);
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
                let copy = copies.types.get(&given).or_else(|| copies.types.get(&ty));
                return copy.copied().unwrap_or(ty);
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
        let equal = self.equal.get(&root).filter(|equal| equal.len() <= MAX_EQUAL);
        let mut equal = equal.cloned().unwrap_or_default();
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
