//! Entries with symbolic sizes, which are parameters of the compiled function.
//!
//! The ranks of all parameters have to be known; a size is read from the dimension of a parameter that is
//! that size alone, or follows from a dimension that is linear in it. What inference has left as a condition
//! (Axon, section 5: residuals), and that dimensions of one size are equal, has to be checked once at entry:
//! the code of the function relies on it.
//!
//! ```
//! use tc_dialects::{axon, text::SourceFile};
//!
//! let text = "join = fn(x : f32 [m], y : f32 [n]) : f32 [8] { concat(x, y) };";
//! let (program, _) = axon::syntax::parse_program(&SourceFile::new("join.axon", text));
//! let mut inferred = axon::infer(&program, &axon::Options::default());
//! let ir = tc_ir::Context::new();
//! let join = inferred.parametric(&program, Some("join"), &[], &ir).unwrap();
//! let names: Vec<_> = join.sizes.iter().map(|size| size.name.as_str()).collect();
//! assert_eq!(names, ["m", "n"]);
//! let check = join.checks.last().unwrap();
//! assert_eq!(check.text, "result of the function needs (+ m n) = 8");
//! ```

use super::display::{KnownNames, Printer, SIZES, Used};
use super::infer::Inferred;
use super::specialize::{Given, Instance, Leaf, Refusal, Subst, TensorType, UNDETERMINED};
use super::syntax::ast::Program;
use super::types::{MAX_PARTS, Node, Ty};
use crate::{
    imap::MAX_EXTENT,
    text::{Diagnostic, Reason, Span},
};
use std::collections::HashMap;
use std::rc::Rc;
use tc_ir::{
    Context, Expr, Var, polynomial,
    shape::{
        Arithmetic, Dim, DimVar, Item, Shape,
        solve::{Relation, Residual},
    },
};

/// A size that is read from a parameter at entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeVariable {
    /// The name in the program, or another one.
    pub name: String,
    /// The number of the parameter.
    pub parameter: usize,
    /// The dimension.
    pub dim: usize,
}

/// What has to hold, in terms of size variables: the runtime variables of these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Both are the same.
    Equal(Expr, Expr),
    /// It is 1 at least.
    Positive(Expr),
    /// It is 1 at least, and at most [`MAX_EXTENT`].
    Size(Expr),
    /// A dimension of a parameter has this size.
    Extent(usize, usize, Expr),
}

/// A check of a function at entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryCheck {
    /// What has to hold.
    pub requirement: Requirement,
    /// The same as text: `result of the function needs (+ m n) = 8`.
    pub text: String,
    /// The place that asks for it.
    pub span: Span,
}

/// An entry of a program whose sizes are parameters.
#[derive(Clone, Debug)]
pub struct Parametric {
    /// The entry, with sizes as expressions of the size variables.
    pub instance: Instance<Expr>,
    /// The sizes of the tensors of the result, as far as the parameters determine them.
    pub results: Vec<Option<Vec<Expr>>>,
    /// The sizes that are read.
    pub sizes: Vec<SizeVariable>,
    /// What has to hold, in the order in which it is to be checked.
    pub checks: Vec<EntryCheck>,
    values: HashMap<DimVar, Expr>,
}

impl Parametric {
    /// The parameters as text: `x : f32 [m,4], y : f32 [n,m + n]`.
    pub fn signature(&self, ir: &Context) -> String {
        let name = |var| match var {
            Var::Runtime(number) => self.sizes[number as usize].name.clone(),
            other => tc_ir::text::default_name(other),
        };
        let parameter = |(parameter, ty): &(String, TensorType<Expr>)| {
            let dims: Vec<_> =
                ty.dims.iter().map(|dim| polynomial::text(ir, *dim, &name)).collect();
            format!("{parameter} : {} [{}]", ty.element.name(), dims.join(","))
        };
        let parameters: Vec<_> = self.instance.parameters.iter().map(parameter).collect();
        parameters.join(", ")
    }

    /// The size that a dimension has; `None` if the parameters do not determine it.
    pub fn size(&self, ir: &Context, dim: &Dim, arithmetic: &Arithmetic) -> Option<Expr> {
        arithmetic.expr(dim, ir, &|var| self.values.get(&var).copied())
    }
}

/// The dimensions of a parameter.
type Parameter<'l> = (&'l Leaf, Vec<Dim>);

/// Finds out which sizes are read where.
struct Reader<'a> {
    ir: &'a Context,
    arithmetic: &'a Arithmetic,
    /// What the program calls variables.
    known: Rc<KnownNames>,
    used: Used,
    names: HashMap<DimVar, String>,
    sizes: Vec<SizeVariable>,
    values: HashMap<DimVar, Expr>,
    checks: Vec<EntryCheck>,
}

impl Reader<'_> {
    fn check(&mut self, requirement: Requirement, text: String, span: Span) {
        self.checks.push(EntryCheck { requirement, text, span });
    }

    /// The expression of a new size variable.
    fn size(&mut self, name: String, leaf: &Leaf, (parameter, dim): (usize, usize)) -> Expr {
        let size = self.ir.runtime(self.sizes.len() as u32);
        let text = format!("expected dimension {dim} of '{}' to be 1 to {MAX_EXTENT}", leaf.name);
        self.check(Requirement::Size(size), text, leaf.span);
        self.sizes.push(SizeVariable { name, parameter, dim });
        size
    }

    /// The size variable that is read from a dimension.
    fn variable(&self, parameter: usize, dim: usize) -> Option<Expr> {
        let place = self.sizes.iter().position(|it| (it.parameter, it.dim) == (parameter, dim));
        place.map(|number| self.ir.runtime(number as u32))
    }

    fn name(&mut self, var: DimVar) -> String {
        let name = self.used.fresh(self.known.dims.get(&var), SIZES);
        self.names.insert(var, name.clone());
        name
    }

    fn value(&self, dim: &Dim) -> Option<Expr> {
        self.arithmetic.expr(dim, self.ir, &|var| self.values.get(&var).copied())
    }

    fn text(&self, dim: &Dim) -> String {
        let name = |var| self.names.get(&var).cloned().unwrap_or_else(|| "_".to_string());
        self.arithmetic.dim_text(dim, &name)
    }

    /// Reads the sizes that are dimensions.
    fn read(&mut self, parameters: &[Parameter]) {
        for (number, (leaf, dims)) in parameters.iter().enumerate() {
            for (place, dim) in dims.iter().enumerate() {
                let Dim::Var(var) = dim else { continue };
                if !self.values.contains_key(var) {
                    let name = self.name(*var);
                    let size = self.size(name, leaf, (number, place));
                    self.values.insert(*var, size);
                }
            }
        }
    }

    /// Solves dimensions that are linear in a size that is no dimension.
    ///
    /// # Errors
    /// A size that does not follow from others.
    fn solve(&mut self, parameters: &[Parameter]) -> Result<(), Diagnostic> {
        loop {
            let mut open = None;
            let mut solved = false;
            for (number, (leaf, dims)) in parameters.iter().enumerate() {
                for (place, dim) in dims.iter().enumerate() {
                    let mut vars = self.arithmetic.vars(dim);
                    vars.retain(|var| !self.values.contains_key(var));
                    let [var] = vars[..] else {
                        open = open.or((!vars.is_empty()).then_some((leaf, dim)));
                        continue;
                    };
                    match self.arithmetic.linear_in(dim, var) {
                        Some((factor, rest)) => {
                            self.solve_one((leaf, dim), (number, place), var, (factor, &rest));
                            solved = true;
                        }
                        None => open = open.or(Some((leaf, dim))),
                    }
                }
            }
            match open {
                None => return Ok(()),
                Some(_) if solved => {}
                Some((leaf, dim)) => return Err(self.unread(leaf, dim)),
            }
        }
    }

    fn solve_one(
        &mut self,
        (leaf, dim): (&Leaf, &Dim),
        place: (usize, usize),
        var: DimVar,
        (factor, rest): (i64, &Dim),
    ) {
        let name = self.name(var);
        let wanted = format!("{}_{}", leaf.name.replace('.', "_"), place.1);
        let read = self.used.fresh(Some(&wanted), SIZES);
        let extent = self.size(read, leaf, place);
        let rest = self.value(rest).expect("the rest has no other variable");
        let ir = self.ir;
        let value = ir.floor_div(ir.sub(extent, rest), ir.constant(factor));
        let value = ir.canonicalize(value);
        self.values.insert(var, value);
        let (whole, span) = (self.value(dim).expect("it is known by now"), leaf.span);
        let text = self.text(dim);
        let text = format!("expected dimension {} of '{}' to be {text}", place.1, leaf.name);
        if factor.abs() != 1 {
            self.check(Requirement::Equal(whole, extent), text.clone(), span);
        }
        let text = format!("{text} with {name} > 0");
        self.check(Requirement::Positive(value), text, span);
    }

    fn unread(&mut self, leaf: &Leaf, dim: &Dim) -> Diagnostic {
        for var in self.arithmetic.vars(dim) {
            if !self.names.contains_key(&var) {
                self.name(var);
            }
        }
        let text = self.text(dim);
        let message = format!(
            "the sizes in dimension '{text}' of '{}' do not follow from the sizes of parameters",
            leaf.name
        );
        let hint = format!("try '--shape {}=..' with a number for that dimension", leaf.name);
        Diagnostic::new(Reason::AxonUnknownSize, leaf.span, message).note(leaf.span, hint)
    }

    /// Dimensions that are read elsewhere, or follow from what is.
    fn check_extents(&mut self, parameters: &[Parameter]) {
        for (number, (leaf, dims)) in parameters.iter().enumerate() {
            for (place, dim) in dims.iter().enumerate() {
                if matches!(dim, Dim::Constant(_)) || self.variable(number, place).is_some() {
                    continue;
                }
                let value = self.value(dim).expect("it follows from what is read");
                let mut text = format!(
                    "expected dimension {place} of '{}' to be {}",
                    leaf.name,
                    self.text(dim)
                );
                if let Dim::Var(var) = dim {
                    let size = self.values[var];
                    let first = self.sizes.iter().zip(0..).find(|it| self.ir.runtime(it.1) == size);
                    if let Some((first, _)) = first {
                        let (leaf, _) = parameters[first.parameter];
                        text += &format!(", as dimension {} of '{}'", first.dim, leaf.name);
                    }
                }
                self.check(Requirement::Extent(number, place, value), text, leaf.span);
            }
        }
    }
}

impl Inferred {
    /// An entry for parameters of which some sizes may be given: those that are not are parameters of
    /// the compiled function. Without a name, it is the expression at the end of the program, or the
    /// only definition.
    ///
    /// # Errors
    /// There is no such entry or parameter, what is given contradicts the program, the rank of a
    /// parameter is not known, or a size does not follow from those of parameters. After an error
    /// about shapes, nothing else is asked of `self`.
    pub fn parametric(
        &mut self,
        program: &Program,
        entry: Option<&str>,
        given: &[Given],
        ir: &Context,
    ) -> Result<Parametric, Refusal> {
        let mark = self.inference.types.solver.mark();
        let opened = self.open_with(program, entry, given)?;
        let (mut errors, mut elements, mut parameters) = (Vec::new(), Vec::new(), Vec::new());
        for leaf in &opened.leaves {
            match self.parameter(leaf) {
                Ok((element, shape)) => match shape.as_dims() {
                    Some(dims) => {
                        elements.push(element);
                        parameters.push((leaf, dims.into_iter().cloned().collect::<Vec<_>>()));
                    }
                    None => {
                        let how = "with a number or '?' for each dimension that is open";
                        let what = "of which the rank is not known";
                        errors.push(self.unknown(leaf, &shape, what, "?", how));
                    }
                },
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            return Err(Refusal::Program(errors));
        }
        let residuals = self.inference.types.solver.residuals(mark);
        let known = self.inference.known_names();
        let mut reader = Reader {
            ir,
            arithmetic: self.inference.types.solver.arithmetic(),
            known,
            // No size is called as a parameter is.
            used: opened.leaves.iter().map(|leaf| leaf.name.clone()).collect(),
            names: HashMap::new(),
            sizes: Vec::new(),
            values: HashMap::new(),
            checks: Vec::new(),
        };
        reader.read(&parameters);
        reader.solve(&parameters)?;
        reader.check_extents(&parameters);
        let types = elements.into_iter().zip(&parameters).zip(0..);
        let types = types.map(|((element, (leaf, dims)), number)| {
            let size = |(place, dim): (usize, &Dim)| {
                let read = reader.variable(number, place);
                read.or_else(|| reader.value(dim)).expect("all follow from what is read")
            };
            let dims = dims.iter().enumerate().map(size).collect();
            (leaf.name.clone(), TensorType { element, dims })
        });
        let types = types.collect();
        let Reader { names, sizes, values, mut checks, .. } = reader;
        let names = Rc::new(KnownNames { dims: names, ..KnownNames::default() });
        for residual in residuals {
            let requirement = self.requirement(&residual, ir, &values);
            let requirement =
                requirement.ok_or_else(|| self.open_condition(&residual, &opened, UNDETERMINED))?;
            let origin = &self.inference.origins[residual.origin as usize];
            let mut printer = Printer::new(Rc::clone(&names));
            let condition = printer.condition(&self.inference.types, &residual.relation);
            let text = format!("{} {} {condition}", origin.describe(), origin.needs());
            checks.push(EntryCheck { requirement, text, span: origin.span });
        }
        let results = self.results(opened.result, ir, &values);
        let instance = self.instance(opened, types);
        Ok(Parametric { instance, results, sizes, checks, values })
    }

    /// The sizes of the tensors of a result.
    fn results(
        &mut self,
        result: Ty,
        ir: &Context,
        values: &HashMap<DimVar, Expr>,
    ) -> Vec<Option<Vec<Expr>>> {
        let types = &mut self.inference.types;
        let mut results = Vec::new();
        let mut open = vec![result];
        while let Some(ty) = open.pop() {
            match types.node(ty) {
                Node::Tuple(parts) => open.extend(parts.into_iter().rev()),
                Node::Tensor(_, shape) => {
                    let shape = types.known_shape(&shape, &Subst::default());
                    let arithmetic = types.solver.arithmetic();
                    let value = |var| values.get(&var).copied();
                    let size = |item: &Item| arithmetic.expr(item.as_dim()?, ir, &value);
                    results.push(shape.items.iter().map(size).collect());
                }
                _ => results.push(None),
            }
            if MAX_PARTS < results.len() {
                break;
            }
        }
        results
    }

    /// A condition in terms of what is read; `None` if that does not decide it.
    fn requirement(
        &self,
        residual: &Residual,
        ir: &Context,
        values: &HashMap<DimVar, Expr>,
    ) -> Option<Requirement> {
        let arithmetic = self.inference.types.solver.arithmetic();
        let value = |dim: &Dim| arithmetic.expr(dim, ir, &|var| values.get(&var).copied());
        let count = |shape: &Shape| {
            let one = ir.constant(1);
            shape
                .items
                .iter()
                .try_fold(one, |count, item| Some(ir.mul(count, value(item.as_dim()?)?)))
        };
        Some(match &residual.relation {
            Relation::Dims(left, right) => Requirement::Equal(value(left)?, value(right)?),
            Relation::Positive(dim) => Requirement::Positive(value(dim)?),
            Relation::Elements(left, right) => Requirement::Equal(count(left)?, count(right)?),
            Relation::Shapes(..) => return None,
        })
    }
}
