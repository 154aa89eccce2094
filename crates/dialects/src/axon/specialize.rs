//! Programs at known sizes: types of the parameters of an entry, and bindings of type variables.
//!
//! A definition is polymorphic: its variables stand for something else wherever it is used. A
//! [`Subst`] says for what at one use, so that the types that inference found once per expression
//! ([`Uses`](super::infer::Uses)) become known at every instance of it, without inferring anything
//! again. This is how type-passing implementations of ML see polymorphism (Harper and Morrisett,
//! "Compiling Polymorphism Using Intensional Type Analysis", section 2), with the passing done while
//! compiling.

use super::display::{KnownNames, Printer};
use super::infer::{Inferred, Run, Valued, What};
use super::syntax::ast::{ExprKind, Function, Pattern, Program};
use super::types::{Class, Elem, ElementType, Node, Renaming, Ty, Types};
use crate::{
    imap::MAX_EXTENT,
    text::{Diagnostic, Reason, Span},
};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::rc::Rc;
use tc_ir::shape::{
    Dim, DimVar, Item, Shape, ShapeVar,
    solve::{Mark, Origin, Relation, Residual},
};

/// A tensor type without variables; sizes are numbers, or expressions of what is read at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorType<S = i64> {
    /// The type of the elements.
    pub element: ElementType,
    /// The sizes, first dimension first.
    pub dims: Vec<S>,
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<_> = self.dims.iter().map(i64::to_string).collect();
        write!(f, "{} [{}]", self.element.name(), dims.join(","))
    }
}

/// What a user says about a parameter of the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The name of the parameter; a part of a tuple is `name.0`, `name.1`, ..
    pub parameter: String,
    /// The type of its elements; what the program says if there is none.
    pub element: Option<ElementType>,
    /// Its sizes; those that are not given follow from others, or are parameters of the compiled
    /// function.
    pub dims: Vec<Option<i64>>,
    /// What says so, where errors name it: an argument of a command line, or a file.
    pub source: Option<String>,
}

impl Given {
    /// Reads `NAME=4x3`, `NAME=f64[4,3]`, `NAME=[]` or `NAME=?x3`; `None` if the text is neither.
    pub fn parse(text: &str) -> Option<Self> {
        let (parameter, shape) = text.split_once('=')?;
        let shape = shape.trim();
        let start = shape.find(|c: char| c == '[' || c.is_whitespace()).unwrap_or(0);
        let (element, sizes) = match ElementType::from_name(shape[..start].trim()) {
            Some(element) => (Some(element), shape[start..].trim()),
            None if start == 0 => (None, shape),
            None => return None,
        };
        let inner = sizes.strip_prefix('[').map(|rest| rest.strip_suffix(']'));
        let sizes = match inner {
            Some(inner) => inner?,
            None => sizes,
        };
        let size = |text: &str| match text.trim() {
            "?" => Some(None),
            text => text.parse().ok().filter(|size| (1..=MAX_EXTENT).contains(size)).map(Some),
        };
        let dims = match sizes.trim() {
            "" if inner.is_some() => Vec::new(),
            sizes => sizes.split([',', 'x']).map(size).collect::<Option<_>>()?,
        };
        Some(Self { parameter: parameter.trim().to_string(), element, dims, source: None })
    }
}

/// Why a program does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// What is asked for is not there.
    Request(String),
    /// Something is wrong at these places.
    Program(Vec<Diagnostic>),
}

impl From<Diagnostic> for Refusal {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Program(vec![diagnostic])
    }
}

/// The structure of a value: tensors in tuples.
#[derive(Clone, Debug)]
pub(crate) enum Structure {
    Tensor,
    Tuple(Vec<Structure>),
}

/// An entry of a program at known types.
#[derive(Clone, Debug)]
pub struct Instance<S = i64> {
    /// The name of the entry; none for the expression at the end of the program.
    pub name: Option<Rc<str>>,
    /// The names and types of the tensors that it takes.
    pub parameters: Vec<(String, TensorType<S>)>,
    /// Per argument of the function how these belong together; none if the entry is no function.
    pub(crate) arguments: Option<Vec<Structure>>,
    /// What the variables of the entry stand for.
    pub(crate) subst: Rc<Subst>,
    /// Where it is defined.
    pub(crate) span: Span,
}

impl<S> Instance<S> {
    /// Where the entry is defined.
    pub fn span(&self) -> Span {
        self.span
    }
}

/// That a condition is open.
pub(super) const UNDETERMINED: &str = "which what is given does not determine";

/// What variables stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subst {
    elems: HashMap<Elem, ElementType>,
    dims: HashMap<DimVar, Dim>,
    shapes: HashMap<ShapeVar, Shape>,
}

/// The element type of what could be of any in a class.
fn default_element(class: Class) -> ElementType {
    match class {
        Class::Any | Class::Number | Class::Float => ElementType::F32,
        Class::Integer => ElementType::I32,
    }
}

impl Types {
    /// A dimension with all that is known about it put in.
    pub(crate) fn known_dim(&mut self, dim: &Dim, subst: &Subst) -> Dim {
        let dim = self.solver.resolved_dim(dim);
        let known = &mut |var| subst.dims.get(&var).cloned();
        match self.solver.arithmetic().substitute(&dim, known) {
            // Conditions may say what it is, though not what its variables are.
            Ok(known) if constant(&known).is_none() => self.solver.resolved_dim(&known),
            Ok(known) => known,
            Err(_) => dim,
        }
    }

    /// A shape with all that is known about it put in.
    pub(crate) fn known_shape(&mut self, shape: &Shape, subst: &Subst) -> Shape {
        let shape = self.solver.resolved_shape(shape);
        let mut known = Shape::default();
        for item in shape.items {
            match item {
                Item::Var(var) => match subst.shapes.get(&var) {
                    Some(shape) => known.items.extend(shape.items.iter().cloned()),
                    None => known.items.push(item),
                },
                Item::Dim(dim) => known.items.push(Item::Dim(self.known_dim(&dim, subst))),
            }
        }
        match sizes(&known) {
            Some(_) => known,
            None => self.solver.resolved_shape(&known),
        }
    }

    /// An element type; one that nothing determines is the default of its class.
    pub(crate) fn known_element(&mut self, elem: Elem, subst: &Subst) -> ElementType {
        match self.element(elem) {
            Ok(known) => known,
            Err((root, class)) => {
                subst.elems.get(&root).copied().unwrap_or_else(|| default_element(class))
            }
        }
    }

    /// What the variables of a definition stand for where it is used, given what those of the place
    /// of the use stand for; `outer` says it of the definitions around the definition.
    pub(crate) fn compose(&mut self, outer: &Subst, renaming: &Renaming, here: &Subst) -> Subst {
        let mut subst = outer.clone();
        for (&elem, &used) in &renaming.elems {
            subst.elems.insert(elem, self.known_element(used, here));
        }
        for (&var, &used) in &renaming.sizes.dims {
            subst.dims.insert(var, self.known_dim(&Dim::Var(used), here));
        }
        for (&var, &used) in &renaming.sizes.shapes {
            subst.shapes.insert(var, self.known_shape(&Shape::var(used), here));
        }
        subst
    }
}

/// The sizes of a shape, if all are known.
fn sizes(shape: &Shape) -> Option<Vec<i64>> {
    shape.items.iter().map(|item| constant(item.as_dim()?)).collect()
}

/// The number that a dimension is, if it is one.
pub fn constant(dim: &Dim) -> Option<i64> {
    match dim {
        Dim::Constant(size) => Some(*size),
        _ => None,
    }
}

/// Whether a dimension of a shape is ragged.
pub(crate) fn is_ragged(shape: &Shape) -> bool {
    shape.items.contains(&Item::Dim(Dim::Ragged))
}

impl Inferred {
    /// The types of an entry for given shapes of parameters; without a name, the expression at the
    /// end of the program, or the only definition. What the program says about sizes is checked.
    ///
    /// # Errors
    /// There is no such entry or parameter, the shapes contradict the program, or do not determine
    /// the shapes of all parameters. After an error about shapes, nothing else is asked of `self`.
    pub fn specialize(
        &mut self,
        program: &Program,
        entry: Option<&str>,
        given: &[Given],
    ) -> Result<Instance, Refusal> {
        let mark = self.inference.types.solver.mark();
        let opened = self.open_with(program, entry, given)?;
        let mut parameters = Vec::new();
        let mut errors = Vec::new();
        for leaf in &opened.leaves {
            match self.known_parameter(leaf, given) {
                Ok(ty) => parameters.push((leaf.name.clone(), ty)),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            let residuals = self.inference.types.solver.residuals(mark);
            if let Some((residual, open)) = self.undecided(&residuals) {
                errors.push(self.open_condition(residual, &opened, open));
            }
        }
        if !errors.is_empty() {
            return Err(Refusal::Program(errors));
        }
        Ok(self.instance(opened, parameters))
    }

    /// One of the conditions that nothing decides. Which of its solutions the variables of a condition have does not
    /// matter if they have one, and their values are not needed: what would depend on them has no size.
    fn undecided<'r>(&mut self, residuals: &'r [Residual]) -> Option<(&'r Residual, &'static str)> {
        let inference = &mut self.inference;
        let option = residuals.iter().find(|it| inference.option_hint(it.origin).is_some());
        if let Some(option) = option {
            return Some((option, UNDETERMINED));
        }
        if !inference.types.solver.have_solution(residuals) {
            return Some((residuals.first()?, "and small sizes that fit were not found"));
        }
        for Residual { relation, .. } in residuals {
            let (shapes, _) = inference.types.solver.vars(relation);
            inference.types.undetermined.extend(shapes);
        }
        None
    }

    /// An opened entry whose parameters are of these types.
    pub(super) fn instance<S>(
        &mut self,
        opened: Opened,
        parameters: Vec<(String, TensorType<S>)>,
    ) -> Instance<S> {
        let Opened { name, span, arguments, renaming, .. } = opened;
        let none = Subst::default();
        let subst = Rc::new(self.inference.types.compose(&none, &renaming, &none));
        Instance { name, parameters, arguments, subst, span }
    }

    /// An entry, with what is given about its parameters and all that follows.
    pub(super) fn open_with(
        &mut self,
        program: &Program,
        entry: Option<&str>,
        given: &[Given],
    ) -> Result<Opened, Refusal> {
        let mark = self.inference.types.solver.mark();
        let opened = self.open(program, entry)?;
        let leaves = &opened.leaves;
        self.inference.solve(None, 0);
        let asked = self.shape_vars(leaves);
        for given in given {
            let leaf = leaves.iter().find(|leaf| leaf.name == given.parameter);
            let Some(leaf) = leaf else {
                let part = format!("{}.", given.parameter);
                let parts = leaves.iter().filter(|leaf| leaf.name.starts_with(&part));
                let parts: Vec<_> =
                    parts.map(|leaf| format!("'--shape {}=..'", leaf.name)).collect();
                if !parts.is_empty() {
                    return Err(Refusal::Request(format!(
                        "'{}' is a tuple, and has a shape for each of its parts; try {}",
                        given.parameter,
                        parts.join(", ")
                    )));
                }
                let names: Vec<_> = leaves.iter().map(|leaf| leaf.name.as_str()).collect();
                return Err(Refusal::Request(format!(
                    "there is no parameter '{}'; {}",
                    given.parameter,
                    match names.is_empty() {
                        true => "the entry has none".to_string(),
                        false => format!("the entry has: {}", names.join(", ")),
                    }
                )));
            };
            if let Some(size) = given.dims.iter().flatten().find(|size| **size < 1) {
                return Err(Refusal::Request(format!(
                    "size {size} of '{}' is not positive",
                    given.parameter
                )));
            }
            self.refuse_ragged(leaf).map_err(|error| Refusal::Program(vec![error]))?;
            let inference = &mut self.inference;
            let types = &mut inference.types;
            let elem = match given.element {
                Some(element) => types.elem(element),
                None => types.elem_var(0, Class::Any),
            };
            let size = |size: &Option<i64>| match size {
                Some(size) => Dim::Constant(*size),
                None => Dim::Var(types.solver.dim_var(0)),
            };
            let shape = Shape::dims(given.dims.iter().map(size));
            let ty = types.add(Node::Tensor(elem, shape));
            let what =
                What::Given(leaf.name.as_str().into(), given.source.as_deref().map(Rc::from));
            let origin = inference.origin(leaf.span, what, Some(ty));
            if let Err(mismatch) = inference.types.unify(leaf.ty, ty, origin) {
                inference.report_mismatch(mismatch, origin);
            }
        }
        self.inference.solve(None, 0);
        self.default_numbers(&opened, &asked, mark);
        let inference = &mut self.inference;
        let errors = inference.diagnostics.len();
        inference.settle(mark, errors);
        inference.check_integers();
        if !inference.diagnostics.is_empty() {
            return Err(Refusal::Program(std::mem::take(&mut inference.diagnostics)));
        }
        Ok(opened)
    }

    /// The shape variables of the types of parameters.
    fn shape_vars(&mut self, leaves: &[Leaf]) -> Vec<ShapeVar> {
        let types = &mut self.inference.types;
        let mut vars = Vec::new();
        for leaf in leaves {
            if let Node::Tensor(_, shape) = types.node(leaf.ty) {
                let shape = types.solver.resolved_shape(&shape);
                vars.extend(types.solver.shape_vars(&shape).0);
            }
        }
        vars
    }

    /// Numbers that are in conditions which are not decided, and whose shapes nothing determines, are
    /// scalars; not those of shapes that parameters are asked for.
    fn default_numbers(&mut self, opened: &Opened, asked: &[ShapeVar], mark: Mark) {
        let types = &mut self.inference.types;
        let mut free = HashSet::new();
        for residual in types.solver.residuals(mark) {
            free.extend(types.solver.vars(&residual.relation).0);
        }
        for &var in asked {
            let shape = types.solver.resolved_shape(&Shape::var(var));
            for var in types.solver.shape_vars(&shape).0 {
                free.remove(&var);
            }
        }
        if free.is_empty() {
            return;
        }
        let numbers: Vec<ShapeVar> = types.solver.numbers(Mark::default()).collect();
        for var in numbers {
            let types = &mut self.inference.types;
            let root = types.solver.resolved_shape(&Shape::var(var)).as_var();
            if root.is_some_and(|root| free.contains(&root)) {
                let origin = self.inference.origin(opened.span, What::Number, None);
                let solver = &mut self.inference.types.solver;
                solver.given(Relation::Shapes(Shape::var(var), Shape::default()), origin);
                self.inference.solve(None, 0);
            }
        }
    }

    /// The names of the tensors that an entry takes, in order; a part of a tuple is `name.0`, `name.1`,
    /// .., and a parameter without a name `in0`, `in1`, ..
    ///
    /// # Errors
    /// There is no such entry, or it takes a function.
    pub fn parameters(
        &mut self,
        program: &Program,
        entry: Option<&str>,
    ) -> Result<Vec<String>, Refusal> {
        Ok(self.open(program, entry)?.leaves.into_iter().map(|leaf| leaf.name).collect())
    }

    /// An entry at types of its own, of which nothing but what the program says is known.
    fn open(&mut self, program: &Program, entry: Option<&str>) -> Result<Opened, Refusal> {
        let name = self.entry(entry)?;
        let scheme = Rc::new(self.scheme(name.as_deref()).expect("the entry is there"));
        let prelude = Rc::clone(&self.prelude);
        let defined = defined(program, &prelude, name.as_deref());
        let span = defined.map_or(Span::default(), |it| it.span);
        let inference = &mut self.inference;
        // A condition of the run stands where the definition asks for it.
        let asks = scheme.residuals.iter().map(|residual| {
            let info = inference.origins[residual.origin as usize].clone();
            inference.origin(info.span, info.what, info.found)
        });
        let asks: Vec<Origin> = asks.collect();
        let origin = inference.origin(span, What::Entry, None);
        let (ty, renaming) = inference.types.instantiate(&scheme, 0, origin, &asks);
        inference.use_integers(&scheme, &renaming, origin);
        inference.name_copies(&self.names, &renaming);
        let renaming = Rc::new(renaming);
        inference.run = Some(Run {
            origin,
            definition: (name.clone(), span, scheme.ty),
            scheme,
            renaming: Rc::clone(&renaming),
            names: Rc::clone(&self.names),
        });
        let (parameters, result) = match inference.types.node(ty) {
            Node::Function(params, result) => (Some(params), result),
            _ => (None, ty),
        };
        let mut leaves = Vec::new();
        let mut structures = Vec::new();
        for (number, param) in parameters.iter().flatten().enumerate() {
            let named = defined.and_then(|it| Some((it, it.function?.params.get(number)?)));
            let (name, place) = match named {
                Some((at, param)) if at.in_prelude => (param.name.text.to_string(), span),
                Some((_, param)) => (param.name.text.to_string(), param.name.span),
                None => (format!("in{number}"), span),
            };
            structures.push(self.leaves(*param, name, place, &mut leaves)?);
        }
        let arguments = parameters.map(|_| structures);
        let named = leaves.iter().map(|leaf| (leaf.name.as_str().into(), leaf.span, leaf.ty));
        self.inference.named.extend(named);
        Ok(Opened { name, span, leaves, arguments, result, renaming })
    }

    /// The name of the entry asked for.
    fn entry(&self, asked: Option<&str>) -> Result<Option<Rc<str>>, Refusal> {
        let names = self.definitions();
        let list = || match names.is_empty() {
            true => "the file defines nothing".to_string(),
            false => format!("the file has: {}", names.join(", ")),
        };
        match asked {
            Some(asked) => match names.iter().find(|name| ***name == *asked) {
                Some(name) => Ok(Some(Rc::clone(name))),
                None => {
                    Err(Refusal::Request(format!("there is no definition '{asked}'; {}", list())))
                }
            },
            None if self.has_result() => Ok(None),
            None => match names.as_slice() {
                [name] => Ok(Some(Rc::clone(name))),
                [] => Err(Refusal::from(Diagnostic::new(
                    Reason::AxonSyntax,
                    Span::new(0, 0),
                    "expected a definition 'name = value;', found none in the file",
                ))),
                _ => Err(Refusal::Request(format!(
                    "the file has several definitions and no expression at its end; try '--entry' \
                     with one of: {}",
                    names.join(", ")
                ))),
            },
        }
    }

    /// Collects the tensors of a parameter.
    fn leaves(
        &mut self,
        ty: Ty,
        name: String,
        span: Span,
        leaves: &mut Vec<Leaf>,
    ) -> Result<Structure, Refusal> {
        let types = &mut self.inference.types;
        match types.node(ty) {
            Node::Tuple(parts) => {
                let mut structures = Vec::new();
                for (number, part) in parts.into_iter().enumerate() {
                    structures.push(self.leaves(part, format!("{name}.{number}"), span, leaves)?);
                }
                Ok(Structure::Tuple(structures))
            }
            Node::Function(..) => Err(refuse(
                span,
                format!("'{name}' is a function, expected an entry whose parameters are tensors"),
            )
            .note(span, "try a definition that passes a function for it")
            .into()),
            Node::Var(_) => {
                // Any value will do: a tensor is one.
                let tensor = types.tensor_var(0, Class::Any);
                let origin =
                    self.inference.origin(span, What::Given(name.as_str().into(), None), None);
                // A variable is equal to anything.
                let _ = self.inference.types.unify(ty, tensor, origin);
                leaves.push(Leaf { name, ty: tensor, span });
                Ok(Structure::Tensor)
            }
            Node::Tensor(..) | Node::Link(_) | Node::Error => {
                leaves.push(Leaf { name, ty, span });
                Ok(Structure::Tensor)
            }
        }
    }

    /// The element type and the shape of a parameter, as far as they are known.
    pub(super) fn parameter(&mut self, leaf: &Leaf) -> Result<(ElementType, Shape), Diagnostic> {
        let none = Subst::default();
        let types = &mut self.inference.types;
        let Node::Tensor(elem, shape) = types.node(leaf.ty) else {
            return Err(refuse(leaf.span, format!("'{}' is no tensor", leaf.name)));
        };
        let shape = types.known_shape(&shape, &none);
        let element = types.known_element(elem, &none);
        self.refuse_ragged(leaf)?;
        Ok((element, shape))
    }

    fn refuse_ragged(&mut self, leaf: &Leaf) -> Result<(), Diagnostic> {
        let types = &mut self.inference.types;
        let Node::Tensor(_, shape) = types.node(leaf.ty) else { return Ok(()) };
        if !is_ragged(&types.known_shape(&shape, &Subst::default())) {
            return Ok(());
        }
        let text = self.inference.anonymous(leaf.ty);
        let message = format!("'{}' is {text}: ragged tensors are not executed", leaf.name);
        let hint = "'*' differs across the tensor; try a variable, and pad to the largest size";
        Err(refuse(leaf.span, message).note(leaf.span, hint))
    }

    fn known_parameter(&mut self, leaf: &Leaf, given: &[Given]) -> Result<TensorType, Diagnostic> {
        let (element, shape) = self.parameter(leaf)?;
        if let Some(dims) = sizes(&shape) {
            if let Some(size) = dims.iter().find(|size| MAX_EXTENT < **size) {
                let message = format!(
                    "a size of '{}' would be {size}, expected at most {MAX_EXTENT}",
                    leaf.name
                );
                let mut error = Diagnostic::new(Reason::AxonLimit, leaf.span, message);
                for source in given.iter().filter_map(|given| given.source.as_ref()) {
                    error
                        .notes
                        .push((leaf.span, format!("'{source}' is given; try smaller sizes")));
                }
                return Err(error);
            }
            return Ok(TensorType { element, dims });
        }
        let what = "of which not all sizes are known";
        Err(self.unknown(leaf, &shape, what, "N", "with a number for what is open"))
    }

    /// Refuses a parameter whose shape is not known; what is open is written as `open` in the hint.
    pub(super) fn unknown(
        &mut self,
        leaf: &Leaf,
        shape: &Shape,
        what: &str,
        open: &str,
        how: &str,
    ) -> Diagnostic {
        let text = self.inference.anonymous(leaf.ty);
        let message = format!("'{}' is {text}, {what}", leaf.name);
        let size = |item: &Item| match item {
            Item::Dim(Dim::Constant(size)) => size.to_string(),
            Item::Dim(_) => open.to_string(),
            Item::Var(_) if shape.as_var().is_some() => format!("{open}x{open}"),
            Item::Var(_) => "..".to_string(),
        };
        let sizes: Vec<_> = shape.items.iter().map(size).collect();
        let hint = format!("try '--shape {}={}' {how}", leaf.name, sizes.join("x"));
        Diagnostic::new(Reason::AxonUnknownSize, leaf.span, message).note(leaf.span, hint)
    }

    /// Refuses a condition of the program that what is known does not decide: `open` says so.
    pub(super) fn open_condition(
        &mut self,
        residual: &Residual,
        opened: &Opened,
        open: &str,
    ) -> Diagnostic {
        let (names, values) = self.names_and_values(opened);
        let inference = &mut self.inference;
        let mut printer = Printer::new(names).reserve(inference.reserved());
        printer.name_all(&inference.types, &residual.relation);
        let text = printer.condition(&inference.types, &residual.relation);
        let origin = &inference.origins[residual.origin as usize];
        let (span, place) = (origin.span, origin.describe());
        let message = format!("{place} {} {text}, {open}", origin.needs());
        let mut error = Diagnostic::new(Reason::AxonUnknownSize, span, message);
        inference.explain_names(&mut error, &mut printer, &values);
        if let Some(hint) = inference.option_hint(residual.origin) {
            error.notes.push((span, hint));
        }
        error
    }

    /// What the program calls the variables of an entry, and the values that they stand in.
    fn names_and_values(&mut self, opened: &Opened) -> (Rc<KnownNames>, Vec<Valued>) {
        let leaf = |leaf: &Leaf| (Some(leaf.name.as_str().into()), leaf.span, leaf.ty);
        let mut values: Vec<Valued> = opened.leaves.iter().map(leaf).collect();
        let renaming = &opened.renaming;
        for (name, span, ty) in self.inference.values() {
            let types = &mut self.inference.types;
            if let Node::Tensor(elem, shape) = types.node(ty) {
                let shape = types.solver.resolved_shape(&shape);
                let shape = renaming.sizes.shape(types.solver.arithmetic(), &shape);
                values.push((name, span, types.add(Node::Tensor(elem, shape))));
            }
        }
        (self.inference.known_names(), values)
    }
}

/// An entry before anything is said about its parameters.
pub(super) struct Opened {
    name: Option<Rc<str>>,
    span: Span,
    /// The tensors that it takes.
    pub(super) leaves: Vec<Leaf>,
    /// Per argument of the function how these belong together; none if the entry is no function.
    arguments: Option<Vec<Structure>>,
    /// The type of its value, or of that of the function that it is.
    pub(super) result: Ty,
    pub(super) renaming: Rc<Renaming>,
}

/// A tensor among the parameters.
pub(super) struct Leaf {
    pub(super) name: String,
    pub(super) ty: Ty,
    pub(super) span: Span,
}

/// Says that something cannot be executed.
pub fn refuse(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Reason::AxonExecution, span, message)
}

/// Where an entry is defined.
#[derive(Clone, Copy)]
struct Defined<'p> {
    function: Option<&'p Function>,
    span: Span,
    in_prelude: bool,
}

/// Where an entry is defined; names that stand for other definitions are followed.
fn defined<'p>(
    program: &'p Program,
    prelude: &'p Program,
    entry: Option<&str>,
) -> Option<Defined<'p>> {
    let mut definitions: Vec<_> = prelude.lets.iter().map(|it| (it, true)).collect();
    definitions.extend(program.lets.iter().map(|it| (it, false)));
    let (mut value, mut in_prelude) = (program.result.as_ref(), false);
    let mut wanted = entry;
    let mut span = value.map(|value| value.span);
    loop {
        if let Some(name) = wanted {
            let (definition, is_prelude) = loop {
                let (definition, is_prelude) = definitions.pop()?;
                if matches!(&definition.pattern, Pattern::Name(it) if *it.text == *name) {
                    break (definition, is_prelude);
                }
            };
            span = span.or(Some(definition.pattern.span()));
            (value, in_prelude) = (Some(&definition.value), is_prelude);
        }
        let function = match &value?.kind {
            ExprKind::Function(function) => Some(&**function),
            ExprKind::Name(name) => {
                wanted = Some(name);
                continue;
            }
            _ => None,
        };
        return Some(Defined { function, span: span?, in_prelude });
    }
}
