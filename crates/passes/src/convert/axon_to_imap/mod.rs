//! `convert-axon-to-imap`: a definition of an Axon program as a function whose sizes are parameters.
//!
//! The ranks of all parameters are known; sizes that are not given are read from the dimensions of
//! arguments (`tc.sizes`), and all others are expressions of these. So a function is built once for all
//! sizes. Functions of the program are evaluated at each call as for HLO, and mean the same; what is built
//! is `imap.generic` with the sizes among its runtime variables:
//!
//! | functions | become |
//! |---|---|
//! | point-wise ones, what moves elements, `iota` | `imap.generic` with the maps of the operands |
//! | `matmul`, `conv`, sums, products and extrema | `imap.generic` with range variables |
//! | other reductions | loops of `scf` over the elements |
//! | `map`, `loop` | a loop of `scf` that carries the state and what the calls give |
//!
//! Values without dimensions, and tensors of equal elements, are scalars until they are needed in memory.
//!
//! At entry, checks with the place in the program that asks for them (`imap.check`): sizes are positive, a
//! size that several dimensions have is the same in all of them, and the conditions that inference has
//! left hold. The code after them relies on that. Sizes of results are formulas (`tc.extents`), and the
//! tensors that callers pass for them are checked against these (`tc.check_extents`).
//!
//! Before, a program with
//!
//! ```text
//! join = fn(x : f32 [m], y : f32 [n]) : f32 [8] { concat(x, y) };
//! ```
//!
//! After, with types and maps shortened:
//!
//! ```mlir
//! func.func @join(%x: tensor<?xf32> {tc.name = "x", tc.sizes = ["m"]}, %y: tensor<?xf32> ..) -> tensor<8xf32> {
//!   %m = tensor.dim %x, %c0
//!   %n = tensor.dim %y, %c0
//!   %sum = imap.apply <(){m, n} -> (m + n)>(%m, %n)
//!   %holds = arith.cmpi eq, %sum, %c8
//!   imap.check %holds, "join.axon:1:49: result of the function needs (+ m n) = 8"
//!   %init = tensor.empty(%sum) : tensor<?xf32>
//!   %first = imap.generic <(d0){m} ..> runtime(%m) ins(%x) outs(%init) maps [(d0), (d0)] ..
//!   %both = imap.generic <(d0){m, n} ..> runtime(%m, %n) ins(%y) outs(%first) maps [(d0), (d0 + m)] ..
//!   %result = tensor.cast %both : tensor<?xf32> to tensor<8xf32>
//!   return %result
//! }
//! ```
//!
//! Limits: those of `tc_dialects::axon::evaluate`, with at most 16384 calls; a condition that divides by what may be zero, or divides
//! numbers of more than 64 bits, is refused.

mod checks;

use super::{
    axon_to_hlo,
    hlo_to_imap::{
        coding::{decode, encode, normalize},
        describe_arrays,
        dynamic::to_index,
        nest::{Nest, identity},
        scalar,
        structure::reshape_index,
        value::{Scalar, multiply, storage_type, sum_type},
        window::combiner,
    },
    loops::build_for,
    tc_to_imap::build_division,
};
use checks::Conditions;
use melior::{
    Context,
    ir::{
        Attribute, BlockLike, Location, Module as MlirModule, Type, ValueLike, r#type::FunctionType,
    },
};
use std::collections::HashSet;
use tc_dialects::{
    axon::{
        ElementType, Inferred, TensorType,
        evaluate::{
            Callee, Evaluated, Iterated, Machine, Made, Number, Pointwise, Target, Value, Window,
            evaluate, refuse,
        },
        parametric::{Parametric, Requirement},
        syntax::ast::Program,
        to_hlo::{bits, hlo_element, opcode},
    },
    diagnostic::placed,
    hlo::{
        ArrayLiteral, Attribute as HloAttribute, ElementType as HloElement, Instruction, Payload,
        Shape, Value as HloValue,
    },
    imap::{self, Combiner, CombinerKind},
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    tc::{
        MAX_EXTENT,
        syntax::{Diagnostic, Span},
    },
};
use tc_ir::{
    Expr, IndexingMap, Var,
    interval::Interval,
    map::Variable,
    polynomial,
    shape::{Arithmetic, Dim},
};

/// The dialects of what is built.
const DIALECTS: [&str; 6] = ["arith", "func", "imap", "math", "scf", "tensor"];

/// Most bytes of a tensor, far more than any memory has.
const MAX_BYTES: i64 = 1 << 62;

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "convert-axon-to-imap",
    summary: "Convert a definition of an Axon program to a function whose sizes are parameters",
    anchor: "builtin.module",
    options: axon_to_hlo::OPTIONS,
    dependent_dialects: &DIALECTS,
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    axon_to_hlo::convert_program(pass, |read, entry, given, program| {
        let ir = tc_ir::Context::new();
        read.parametric(entry, given, &ir, &mut |inferred, tree, parametric, name, location| {
            build(&Builder::before(program), inferred, tree, (&ir, parametric), name, location)
        })
    })
}

/// Builds a module of the function that an entry is; `name` is what it is called, and `location` says
/// where a place in the program is.
///
/// # Errors
/// What cannot be executed, or not with sizes that are parameters.
pub fn convert<'c>(
    context: &'c Context,
    inferred: &mut Inferred,
    program: &Program,
    entry: (&tc_ir::Context, &Parametric),
    name: &str,
    location: &dyn Fn(Span) -> Location<'c>,
) -> Result<MlirModule<'c>, Diagnostic> {
    for dialect in DIALECTS {
        context.get_or_load_dialect(dialect);
    }
    let at = location(entry.1.instance.span());
    let module = MlirModule::new(at);
    let outside = Builder::at_end(context, mlir::block_ref(module.body()), at);
    build(&outside, inferred, program, entry, name, location)?;
    Ok(module)
}

/// Builds the function of an entry.
fn build<'c>(
    outside: &Builder<'c>,
    inferred: &mut Inferred,
    program: &Program,
    (ir, entry): (&tc_ir::Context, &Parametric),
    name: &str,
    location: &dyn Fn(Span) -> Location<'c>,
) -> Result<(), Diagnostic> {
    let context = outside.context;
    let types: Vec<_> =
        entry.instance.parameters.iter().map(|(_, ty)| tensor_type(outside, ir, ty)).collect();
    let at = location(entry.instance.span());
    let (region, block) = mlir::region_with_block(&types, at);
    let b = Builder::at_end(context, block, at);
    let arguments = mlir::arguments(block);
    let size = |size: &tc_dialects::axon::parametric::SizeVariable| {
        (size.name.clone(), b.dim(arguments[size.parameter], size.dim))
    };
    let sizes = entry.sizes.iter().map(size).collect();
    // Checks stand before it; nothing uses it.
    let end_of_checks = mlir::defining_op(b.index(0)).expect("a constant");
    let bounded = HashSet::new();
    let mut lowering = Lowering { ir, entry, location, sizes, b, end_of_checks, bounded };
    for (_, ty) in &entry.instance.parameters {
        // It is in memory.
        lowering.bounded.insert(lowering.bytes(ty));
    }
    for check in &entry.checks {
        let b = lowering.before_checks(check.span);
        let holds = lowering.holds(&b, &arguments, check.requirement).map_err(|reason| {
            let message = format!("{}, which {reason} where sizes are parameters", check.text);
            refuse(check.span, message).note(check.span, HINT)
        })?;
        imap::build_check(&b, holds, &placed(b.location, &check.text));
    }
    let parameters = entry.instance.parameters.iter().zip(&arguments);
    let parameters = parameters.map(|((_, ty), value)| Tensor::stored(*value, ty.clone()));
    let parameters = parameters.collect();
    let (mut lowering, mut results) =
        evaluate(inferred, program, &entry.instance, lowering, parameters)?;
    for (result, dims) in results.iter_mut().zip(&entry.results) {
        lowering.resize(result, dims.as_deref());
    }
    let values = results.iter().map(|result| lowering.in_memory(result)).collect::<Made<Vec<_>>>();
    let values = values.map_err(|error| refuse(entry.instance.span(), error))?;
    lowering.b.op("func.return", &values, &[]);

    let result_types: Vec<_> = values.iter().map(|value| value.r#type()).collect();
    let ty: Type = FunctionType::new(context, &types, &result_types).into();
    let described = |element: ElementType, name: String, extra: &[(&str, Attribute<'c>)]| {
        let shape = Shape::array(hlo_element(element), []);
        let described = describe_arrays(context, &shape, &|_| name.clone());
        mlir::extend_dictionary(context, described[0], extra)
    };
    let mut argument_attributes = Vec::new();
    for (number, (name, ty)) in entry.instance.parameters.iter().enumerate() {
        let mut names = vec![String::new(); ty.dims.len()];
        for size in entry.sizes.iter().filter(|size| size.parameter == number) {
            names[size.dim].clone_from(&size.name);
        }
        for (name, expr) in names.iter_mut().zip(&ty.dims) {
            let same = entry.sizes.iter().zip(0..).find(|it| ir.runtime(it.1) == *expr);
            if let Some((size, _)) = same {
                name.clone_from(&size.name);
            }
        }
        let mut extra = vec![("tc.sizes", mlir::strings(context, &names))];
        let is_formula =
            |(name, expr): (&String, &Expr)| name.is_empty() && ir.as_constant(*expr).is_none();
        if names.iter().zip(&ty.dims).any(is_formula) {
            extra.push(("tc.extents", lowering.formulas(&ty.dims)));
        }
        argument_attributes.push(described(ty.element, name.clone(), &extra));
    }
    let mut result_attributes = Vec::new();
    for (number, result) in results.iter().enumerate() {
        let is_open = result.ty.dims.iter().any(|size| ir.as_constant(*size).is_none());
        let extents = is_open.then(|| ("tc.extents", lowering.formulas(&result.ty.dims)));
        let extra: Vec<_> = extents.into_iter().collect();
        result_attributes.push(described(result.ty.element, format!("out{number}"), &extra));
    }
    outside.located(at).op_with(
        "func.func",
        &[],
        &[],
        &[
            ("sym_name", mlir::string(context, name)),
            ("function_type", mlir::type_attr(ty)),
            ("arg_attrs", mlir::array(context, &argument_attributes)),
            ("res_attrs", mlir::array(context, &result_attributes)),
            ("tc.check_extents", Attribute::unit(context)),
        ],
        vec![region],
    );
    Ok(())
}

/// What to do about what needs sizes that are known.
const HINT: &str = "try '--shape NAME=4x3' with all sizes of the parameters";

/// The type of a tensor in memory.
fn tensor_type<'c>(b: &Builder<'c>, ir: &tc_ir::Context, ty: &TensorType<Expr>) -> Type<'c> {
    let dims: Vec<_> = ty.dims.iter().map(|size| ir.as_constant(*size)).collect();
    mlir::tensor_type(&dims, storage_type(b, hlo_element(ty.element)))
}

/// A value of the program.
#[derive(Clone, Debug)]
struct Tensor<'c> {
    data: Data<'c>,
    ty: TensorType<Expr>,
}

/// How a value is held.
#[derive(Clone, Copy, Debug)]
enum Data<'c> {
    /// What all elements are, of the type that is calculated with.
    Scalar(Val<'c>),
    /// A tensor, of the type that is stored.
    Stored(Val<'c>),
}

impl<'c> Tensor<'c> {
    fn stored(value: Val<'c>, ty: TensorType<Expr>) -> Self {
        Self { data: Data::Stored(value), ty }
    }

    fn scalar(value: Val<'c>, ty: TensorType<Expr>) -> Self {
        Self { data: Data::Scalar(value), ty }
    }

    fn element(&self) -> HloElement {
        hlo_element(self.ty.element)
    }
}

/// An operand and the index at which it is read.
type Source<'a, 'c> = (&'a Tensor<'c>, Vec<Expr>);

/// What calculates an element from elements of operands.
type ElementFrom<'a, 'c> = dyn Fn(&Builder<'c>, &[Val<'c>]) -> Made<Val<'c>> + 'a;

/// Builds a function.
struct Lowering<'c, 'a> {
    ir: &'a tc_ir::Context,
    entry: &'a Parametric,
    location: &'a dyn Fn(Span) -> Location<'c>,
    /// The size variables: names and values.
    sizes: Vec<(String, Val<'c>)>,
    /// Where operations are created.
    b: Builder<'c>,
    end_of_checks: Op<'c>,
    /// Numbers of bytes that are checked not to be too large.
    bounded: HashSet<Expr>,
}

impl<'c> Lowering<'c, '_> {
    fn before_checks(&self, span: Span) -> Builder<'c> {
        Builder::before(self.end_of_checks).located((self.location)(span))
    }

    fn conditions(&self) -> Conditions<'_, 'c> {
        Conditions { ir: self.ir, sizes: &self.sizes }
    }

    /// Whether a requirement holds.
    fn holds(
        &self,
        b: &Builder<'c>,
        arguments: &[Val<'c>],
        requirement: Requirement,
    ) -> Made<Val<'c>> {
        let conditions = self.conditions();
        let one = self.ir.constant(1);
        match requirement {
            Requirement::Equal(lhs, rhs) => conditions.compare(b, "eq", lhs, rhs),
            Requirement::Positive(size) => conditions.compare(b, "sle", one, size),
            Requirement::Size(size) => {
                // As an unsigned number, what is below 1 is large.
                let size = self.ir.sub(size, one);
                conditions.compare(b, "ult", size, self.ir.constant(MAX_EXTENT))
            }
            Requirement::Extent(parameter, dim, size) => {
                let extent = b.dim(arguments[parameter], dim);
                let values = conditions.values(b, &[size])?;
                let ty = values[0].r#type();
                let extent = match ty == b.index_type() {
                    true => extent,
                    false => b.value("arith.index_cast", &[extent], ty),
                };
                Ok(b.compare_int("eq", extent, values[0]))
            }
        }
    }

    /// The attribute with sizes as formulas over the size variables.
    fn formulas(&self, sizes: &[Expr]) -> Attribute<'c> {
        let runtimes = self.sizes.iter().map(|(name, _)| Variable::default().named(name));
        let map = IndexingMap {
            runtimes: runtimes.collect(),
            results: sizes.to_vec(),
            ..IndexingMap::default()
        };
        imap::map::to_attribute(self.b.context, self.ir, &map)
    }

    /// The value of a size.
    fn value(&self, size: Expr) -> Val<'c> {
        match self.ir.as_constant(size) {
            Some(size) => self.b.index(size),
            None => imap::build_sizes(&self.b, self.ir, &self.sizes, &[size])[0],
        }
    }

    fn constant(&self, value: i64) -> Expr {
        self.ir.constant(value)
    }

    fn dims(&self, rank: usize) -> Vec<Expr> {
        identity(self.ir, rank)
    }

    /// The bytes of a tensor.
    fn bytes(&self, ty: &TensorType<Expr>) -> Expr {
        let width = i64::from(hlo_element(ty.element).bits().div_ceil(8));
        let bytes = ty.dims.iter().fold(self.constant(width), |it, size| self.ir.mul(it, *size));
        self.ir.canonicalize(bytes)
    }

    /// Sees to it that a tensor is not so large that indices and the size of its memory overflow.
    fn bound(&mut self, ty: &TensorType<Expr>) -> Made<()> {
        if !self.conditions().is_defined(&ty.dims) {
            return Err(format!("a size divides by what may be zero; {HINT}"));
        }
        let bytes = self.bytes(ty);
        if self.conditions().interval(bytes).hi <= MAX_BYTES || !self.bounded.insert(bytes) {
            return Ok(());
        }
        let b = Builder::before(self.end_of_checks).located(self.b.location);
        let holds = self.conditions().compare(&b, "sle", bytes, self.constant(MAX_BYTES));
        let holds = holds.map_err(|reason| format!("the size of a tensor {reason}; {HINT}"))?;
        let text = polynomial::text(self.ir, bytes, &|var| match var {
            Var::Runtime(number) => self.sizes[number as usize].0.clone(),
            other => tc_ir::text::default_name(other),
        });
        let text = format!("a tensor of {text} bytes is too large");
        imap::build_check(&b, holds, &placed(b.location, &text));
        Ok(())
    }

    /// A tensor of undefined elements.
    fn empty(&mut self, ty: &TensorType<Expr>) -> Made<Val<'c>> {
        self.bound(ty)?;
        let open = ty.dims.iter().filter(|size| self.ir.as_constant(**size).is_none());
        let sizes: Vec<_> = open.map(|size| self.value(*size)).collect();
        Ok(self.b.value("tensor.empty", &sizes, tensor_type(&self.b, self.ir, ty)))
    }

    /// An element of a tensor.
    fn extract(&self, tensor: &Tensor<'c>, index: &[Val<'c>]) -> Val<'c> {
        match tensor.data {
            Data::Scalar(value) => value,
            Data::Stored(value) => {
                let stored = mlir::element_type(value.r#type());
                let operands = [&[value], index].concat();
                let stored = self.b.value("tensor.extract", &operands, stored);
                decode(&self.b, tensor.element(), stored)
            }
        }
    }

    /// A value as a tensor.
    fn in_memory(&mut self, tensor: &Tensor<'c>) -> Made<Val<'c>> {
        let value = match tensor.data {
            Data::Stored(value) => return Ok(value),
            Data::Scalar(value) => encode(&self.b, tensor.element(), value),
        };
        if tensor.ty.dims.is_empty() {
            let ty = tensor_type(&self.b, self.ir, &tensor.ty);
            return Ok(self.b.value("tensor.from_elements", &[value], ty));
        }
        let init = self.empty(&tensor.ty)?;
        let mut nest = self.nest(&tensor.ty.dims);
        nest.write(init, self.dims(tensor.ty.dims.len()), Combiner::ASSIGN);
        Ok(nest.build(&self.b, |_, _| Ok(vec![value]))?[0])
    }

    /// Writes the sizes of a tensor as the signature does: what has been checked says that they are
    /// the same.
    fn resize(&self, tensor: &mut Tensor<'c>, dims: Option<&[Expr]>) {
        let Some(dims) = dims.filter(|dims| dims.len() == tensor.ty.dims.len()) else { return };
        tensor.ty.dims = dims.to_vec();
        if let Data::Stored(value) = &mut tensor.data {
            let ty = tensor_type(&self.b, self.ir, &tensor.ty);
            if value.r#type() != ty {
                *value = self.b.value("tensor.cast", &[*value], ty);
            }
        }
    }

    fn nest(&self, dims: &[Expr]) -> Nest<'c, '_> {
        Nest::over(self.ir, &self.sizes, dims)
    }

    /// Reads operands in a nest. Those that are scalars are not read.
    fn read(nest: &mut Nest<'c, '_>, sources: &[Source<'_, 'c>]) {
        for (source, index) in sources {
            if let Data::Stored(value) = source.data {
                nest.read(value, index.clone());
            }
        }
    }

    /// The elements of operands in the body of a nest.
    fn elements(b: &Builder<'c>, sources: &[Source<'_, 'c>], stored: &[Val<'c>]) -> Vec<Val<'c>> {
        let mut stored = stored.iter();
        let mut element = |(source, _): &Source<'_, 'c>| match source.data {
            Data::Scalar(value) => value,
            Data::Stored(value) => decode(b, source.element(), *stored.next().unwrap_or(&value)),
        };
        sources.iter().map(&mut element).collect()
    }

    /// The tensor of what `value` calculates from the elements of `sources` at their indices.
    fn compute(
        &mut self,
        ty: TensorType<Expr>,
        sources: &[Source<'_, 'c>],
        value: &ElementFrom<'_, 'c>,
    ) -> Made<Tensor<'c>> {
        if ty.dims.is_empty() {
            let read = |(source, index): &Source<'_, 'c>| {
                let index: Vec<_> = index.iter().map(|place| self.value(*place)).collect();
                self.extract(source, &index)
            };
            let operands: Vec<_> = sources.iter().map(read).collect();
            return Ok(Tensor::scalar(value(&self.b, &operands)?, ty));
        }
        let init = self.empty(&ty)?;
        let mut nest = self.nest(&ty.dims);
        Self::read(&mut nest, sources);
        nest.write(init, self.dims(ty.dims.len()), Combiner::ASSIGN);
        let element = hlo_element(ty.element);
        let values = nest.build(&self.b, |inside, stored| {
            let operands = Self::elements(inside, sources, stored);
            Ok(vec![encode(inside, element, value(inside, &operands)?)])
        })?;
        Ok(Tensor::stored(values[0], ty))
    }

    /// The tensor whose elements are those of another at an index.
    fn rearrange(
        &mut self,
        tensor: &Tensor<'c>,
        dims: Vec<Expr>,
        index: Vec<Expr>,
    ) -> Made<Tensor<'c>> {
        let ty = TensorType { element: tensor.ty.element, dims };
        match tensor.data {
            Data::Scalar(value) => Ok(Tensor::scalar(value, ty)),
            Data::Stored(_) => self.compute(ty, &[(tensor, index)], &|_, values| Ok(values[0])),
        }
    }

    /// Writes the elements of `source` into `target` at an index.
    fn insert(
        &self,
        source: &Tensor<'c>,
        target: Val<'c>,
        row: Option<Val<'c>>,
        index: &dyn Fn(Option<Expr>) -> Vec<Expr>,
    ) -> Made<Val<'c>> {
        let mut nest = self.nest(&source.ty.dims);
        let row = row.map(|row| nest.runtime(row, MAX_EXTENT - 1));
        let sources = [(source, self.dims(source.ty.dims.len()))];
        Self::read(&mut nest, &sources);
        nest.write(target, index(row), Combiner::ASSIGN);
        let values = nest.build(&self.b, |inside, stored| {
            let elements = Self::elements(inside, &sources, stored);
            Ok(vec![encode(inside, source.element(), elements[0])])
        })?;
        Ok(values[0])
    }

    /// A row of a tensor by its number.
    fn row(&mut self, tensor: &Tensor<'c>, number: Val<'c>) -> Made<Tensor<'c>> {
        let ty = TensorType { element: tensor.ty.element, dims: tensor.ty.dims[1..].to_vec() };
        let value = match tensor.data {
            Data::Scalar(value) => return Ok(Tensor::scalar(value, ty)),
            Data::Stored(_) if ty.dims.is_empty() => {
                return Ok(Tensor::scalar(self.extract(tensor, &[number]), ty));
            }
            Data::Stored(value) => value,
        };
        let init = self.empty(&ty)?;
        let mut nest = self.nest(&ty.dims);
        let mut index = vec![nest.runtime(number, MAX_EXTENT - 1)];
        index.extend(self.dims(ty.dims.len()));
        nest.read(value, index);
        nest.write(init, self.dims(ty.dims.len()), Combiner::ASSIGN);
        let values = nest.build(&self.b, |_, stored| Ok(stored.to_vec()))?;
        Ok(Tensor::stored(values[0], ty))
    }

    /// The sums of products of elements of two operands, in a nest to which `ranges` adds what is
    /// summed over, and gives the indices.
    fn contract(
        &mut self,
        ty: TensorType<Expr>,
        (lhs, rhs): (&Tensor<'c>, &Tensor<'c>),
        ranges: impl FnOnce(&mut Nest<'c, '_>) -> (Vec<Expr>, Vec<Expr>),
    ) -> Made<Tensor<'c>> {
        let (element, sum) = (lhs.element(), sum_type(lhs.element()));
        let init = match sum == element {
            true => self.empty(&ty)?,
            false => self.empty(&TensorType { element: ElementType::F32, ..ty.clone() })?,
        };
        let mut nest = self.nest(&ty.dims);
        let (left, right) = ranges(&mut nest);
        let sources = [(lhs, left), (rhs, right)];
        Self::read(&mut nest, &sources);
        let combiner = Combiner { kind: CombinerKind::Add, from_identity: true };
        nest.write(init, self.dims(ty.dims.len()), combiner);
        let values = nest.build(&self.b, |inside, stored| {
            let factors = Self::elements(inside, &sources, stored);
            let factor = |x: Val<'c>| scalar::convert(inside, element, sum, &[x])[0];
            Ok(vec![multiply(inside, sum, factor(factors[0]), factor(factors[1]))])
        })?;
        if sum == element {
            return Ok(Tensor::stored(values[0], ty));
        }
        let sums = TensorType { element: ElementType::F32, dims: ty.dims.clone() };
        let sums = Tensor::stored(values[0], sums);
        let index = self.dims(ty.dims.len());
        self.compute(ty, &[(&sums, index)], &|b, x| {
            Ok(normalize(b, element, scalar::convert(b, sum, element, x)[0]))
        })
    }
}

/// A function on elements.
fn apply<'c>(
    b: &Builder<'c>,
    function: Pointwise,
    operands: &[(HloElement, Val<'c>)],
    result: HloElement,
) -> Made<Val<'c>> {
    if function == Pointwise::Div && !result.is_float() {
        let unsigned = result.kind() != tc_dialects::hlo::ElementKind::Signed;
        return Ok(build_division(b, (operands[0].1, operands[1].1), unsigned, false));
    }
    let (opcode, direction) = opcode(function);
    let direction = direction.map(|it| (HloAttribute::Direction, HloValue::Direction(it)));
    let instruction = Instruction {
        name: String::new(),
        opcode,
        shape: Shape::array(result, []),
        operands: Vec::new(),
        attributes: direction.into_iter().collect(),
        payload: Payload::None,
        span: Span::default(),
    };
    let operands: Vec<(_, Scalar)> = operands.iter().map(|(ty, x)| (*ty, vec![*x])).collect();
    Ok(scalar::apply(b, &instruction, &operands)?[0])
}

impl<'c> Target for Lowering<'c, '_> {
    type Tensor = Tensor<'c>;
    type Size = Expr;
    const MAX_CALLS: usize = 1 << 14;

    fn tensor_type<'t>(&'t self, tensor: &'t Tensor<'c>) -> &'t TensorType<Expr> {
        &tensor.ty
    }

    fn size(&self, dim: &Dim, arithmetic: &Arithmetic) -> Option<Expr> {
        self.entry.size(self.ir, dim, arithmetic)
    }

    fn at(&mut self, span: Span) {
        self.b = self.b.located((self.location)(span));
    }

    fn number(&mut self, number: Number, element: ElementType) -> Made<Tensor<'c>> {
        let mut literal = ArrayLiteral::new(hlo_element(element));
        literal.push_bits(bits(number, element));
        let ty = TensorType { element, dims: Vec::new() };
        Ok(Tensor::scalar(scalar::constant(&self.b, &literal, 0)[0], ty))
    }

    fn broadcast(&mut self, tensor: &Tensor<'c>, dims: &[Expr]) -> Made<Tensor<'c>> {
        let index = self.dims(dims.len()).split_off(dims.len() - tensor.ty.dims.len());
        self.rearrange(tensor, dims.to_vec(), index)
    }

    fn pointwise(&mut self, function: Pointwise, of: &[Tensor<'c>]) -> Made<Tensor<'c>> {
        let elements: Vec<_> = of.iter().map(|it| it.ty.element).collect();
        let ty = TensorType { element: function.result(&elements), dims: of[0].ty.dims.clone() };
        let index = self.dims(ty.dims.len());
        let sources: Vec<_> = of.iter().map(|it| (it, index.clone())).collect();
        let result = hlo_element(ty.element);
        let value = |b: &Builder<'c>, values: &[Val<'c>]| {
            let operands: Vec<_> =
                of.iter().map(Tensor::element).zip(values.iter().copied()).collect();
            apply(b, function, &operands, result)
        };
        if of.iter().all(|it| matches!(it.data, Data::Scalar(_))) {
            let values = Self::elements(&self.b, &sources, &[]);
            return Ok(Tensor::scalar(value(&self.b, &values)?, ty));
        }
        self.compute(ty, &sources, &value)
    }

    fn dot(&mut self, lhs: &Tensor<'c>, rhs: &Tensor<'c>, batch: usize) -> Made<Tensor<'c>> {
        let free = lhs.ty.dims.len() - 1;
        let mut dims = lhs.ty.dims[..free].to_vec();
        dims.extend(&rhs.ty.dims[batch + 1..]);
        let at = self.dims(dims.len());
        let summed = lhs.ty.dims[free];
        let ty = TensorType { element: lhs.ty.element, dims };
        self.contract(ty, (lhs, rhs), |nest| {
            let place = nest.range_over(summed);
            let left = [&at[..free], &[place]].concat();
            (left, [&at[..batch], &[place], &at[free..]].concat())
        })
    }

    fn convolution(
        &mut self,
        images: &Tensor<'c>,
        filters: &Tensor<'c>,
        window: Window,
        dims: [Expr; 4],
    ) -> Made<Tensor<'c>> {
        let ir = self.ir;
        let ty = TensorType { element: images.ty.element, dims: dims.to_vec() };
        self.contract(ty, (images, filters), |nest| {
            let (mut left, mut right) = (vec![ir.dim(0)], vec![ir.dim(1)]);
            let mut places = Vec::new();
            for (number, dim) in [2, 3].into_iter().enumerate() {
                let tap = nest.range_over(filters.ty.dims[dim]);
                let start = ir.mul(ir.dim(dim as u32), ir.constant(window.stride[number]));
                let offset = ir.mul(tap, ir.constant(window.dilation[number]));
                let padding = window.padding[number];
                let place = ir.sub(ir.add(start, offset), ir.constant(padding));
                if 0 < padding {
                    nest.constrain(place, Interval::NON_NEGATIVE);
                    let last = ir.sub(images.ty.dims[dim], ir.constant(1));
                    let beyond = ir.canonicalize(ir.sub(last, place));
                    nest.constrain(beyond, Interval::NON_NEGATIVE);
                }
                places.push((place, tap));
            }
            let channel = nest.range_over(images.ty.dims[1]);
            left.push(channel);
            right.push(channel);
            for (place, tap) in places {
                left.push(place);
                right.push(tap);
            }
            (left, right)
        })
    }

    fn concat(&mut self, first: &Tensor<'c>, second: &Tensor<'c>) -> Made<Tensor<'c>> {
        let ir = self.ir;
        let mut ty = first.ty.clone();
        ty.dims[0] = ir.canonicalize(ir.add(ty.dims[0], second.ty.dims[0]));
        let rank = ty.dims.len();
        let mut target = self.empty(&ty)?;
        for (part, offset) in [(first, ir.constant(0)), (second, first.ty.dims[0])] {
            target = self.insert(part, target, None, &|_| {
                let mut index = identity(ir, rank);
                index[0] = ir.add(index[0], offset);
                index
            })?;
        }
        Ok(Tensor::stored(target, ty))
    }

    fn reverse(&mut self, tensor: &Tensor<'c>) -> Made<Tensor<'c>> {
        let mut index = self.dims(tensor.ty.dims.len());
        let last = self.ir.sub(tensor.ty.dims[0], self.constant(1));
        index[0] = self.ir.sub(last, index[0]);
        self.rearrange(tensor, tensor.ty.dims.clone(), index)
    }

    fn slice(&mut self, tensor: &Tensor<'c>, start: Expr, size: Expr) -> Made<Tensor<'c>> {
        let mut dims = tensor.ty.dims.clone();
        dims[0] = size;
        let mut index = self.dims(dims.len());
        index[0] = self.ir.add(index[0], start);
        self.rearrange(tensor, dims, index)
    }

    fn gather(&mut self, tensor: &Tensor<'c>, indices: &Tensor<'c>) -> Made<Tensor<'c>> {
        let last = self.value(self.ir.sub(tensor.ty.dims[0], self.constant(1)));
        let zero = self.b.index(0);
        // Indices are moved inside.
        let clamp = |b: &Builder<'c>, number: Val<'c>| {
            let number = to_index(b, indices.element(), number);
            let number = b.value("arith.maxsi", &[number, zero], b.index_type());
            b.value("arith.minsi", &[number, last], b.index_type())
        };
        let places = indices.ty.dims.len();
        if places == 0 {
            let number = clamp(&self.b, self.extract(indices, &[]));
            return self.row(tensor, number);
        }
        let value = self.in_memory(tensor)?;
        let mut dims = indices.ty.dims.clone();
        dims.extend(&tensor.ty.dims[1..]);
        let rank = dims.len();
        let ty = TensorType { element: tensor.ty.element, dims };
        let index = self.dims(places);
        self.compute(ty, &[(indices, index)], &|b, numbers| {
            let mut operands = vec![value, clamp(b, numbers[0])];
            operands.extend((places..rank).map(|dim| imap::build_index(b, "dim", dim as u32)));
            let stored = b.value("tensor.extract", &operands, mlir::element_type(value.r#type()));
            Ok(decode(b, tensor.element(), stored))
        })
    }

    fn transpose(&mut self, tensor: &Tensor<'c>) -> Made<Tensor<'c>> {
        let (mut dims, mut index) = (tensor.ty.dims.clone(), self.dims(2));
        dims.reverse();
        index.reverse();
        self.rearrange(tensor, dims, index)
    }

    fn reshape(&mut self, tensor: &Tensor<'c>, dims: &[Expr]) -> Made<Tensor<'c>> {
        let index = reshape_index(self.ir, &self.dims(dims.len()), dims, &tensor.ty.dims);
        self.rearrange(tensor, dims.to_vec(), index)
    }

    fn iota(&mut self, element: ElementType, size: Expr) -> Made<Tensor<'c>> {
        let ty = TensorType { element, dims: vec![size] };
        self.compute(ty, &[], &|b, _| {
            let number = imap::build_index(b, "dim", 0);
            let number = b.value("arith.index_cast", &[number], b.int_type(64));
            Ok(scalar::convert(b, HloElement::S64, hlo_element(element), &[number])[0])
        })
    }

    fn reduce(
        machine: &mut Machine<'_, Self>,
        function: Callee,
        init: &Tensor<'c>,
        of: &Tensor<'c>,
        span: Span,
    ) -> Evaluated<Tensor<'c>> {
        let at = |error: String| refuse(span, error);
        let kind = machine.as_pointwise(function).map(|function| opcode(function).0);
        let kind = kind.and_then(|opcode| combiner(opcode, of.element()));
        let target = &mut machine.target;
        let ty = TensorType { element: of.ty.element, dims: of.ty.dims[1..].to_vec() };
        let of = &Tensor::stored(target.in_memory(of).map_err(at)?, of.ty.clone());
        let rank = ty.dims.len();
        if let Some(kind) = kind {
            let filled = target.broadcast(init, &ty.dims).map_err(at)?;
            let filled = target.in_memory(&filled).map_err(at)?;
            let mut nest = target.nest(&ty.dims);
            let mut index = vec![nest.range_over(of.ty.dims[0])];
            index.extend(target.dims(rank));
            Lowering::read(&mut nest, &[(of, index)]);
            nest.write(filled, target.dims(rank), Combiner { kind, from_identity: false });
            let values = nest.build(&target.b, |_, stored| Ok(stored.to_vec())).map_err(at)?;
            return Ok(Tensor::stored(values[0], ty));
        }
        let init = target.extract(init, &[]);
        if rank == 0 {
            let value = fold(machine, function, of, init, &[], span)?;
            return Ok(Tensor::scalar(value, ty));
        }
        let target = target.empty(&ty).map_err(at)?;
        let value = fold_all(machine, function, of, init, (&mut Vec::new(), target), span)?;
        Ok(Tensor::stored(value, ty))
    }

    fn iterate(
        machine: &mut Machine<'_, Self>,
        function: Callee,
        state: Option<Value<Tensor<'c>>>,
        over: &Tensor<'c>,
        span: Span,
    ) -> Evaluated<Iterated<Tensor<'c>>> {
        let at = |error: String| refuse(span, error);
        let lowering = &mut machine.target;
        let outside = lowering.b;
        let tensors = state.as_ref().and_then(Value::tensors).unwrap_or_default();
        let inits = tensors.iter().map(|it| lowering.carried(it)).collect::<Made<Vec<_>>>();
        let mut inits = inits.map_err(at)?;
        let mut types = vec![outside.index_type()];
        types.extend(inits.iter().map(|init| init.r#type()));
        let (region, block) = mlir::region_with_block(&types, outside.location);
        let arguments = mlir::arguments(block);
        lowering.b = Builder::at_end(outside.context, block, outside.location);
        let row = lowering.row(over, arguments[0]).map_err(at)?;
        let carried = arguments[1..].iter().zip(&tensors);
        let mut carried = carried.map(|(value, like)| like.holding(*value));
        let mut args = Vec::new();
        args.extend(state.as_ref().map(|state| state.with_tensors(&mut carried)));
        args.push(Value::Tensor(row));
        let result = machine.apply(function, args, span)?;
        let lowering = &mut machine.target;
        lowering.at(span);
        let (next, result) = match (&state, result) {
            (None, Value::Tensor(result)) => (Vec::new(), result),
            (Some(_), Value::Tuple(parts)) => match &parts[..] {
                [next, Value::Tensor(result)] => {
                    (next.tensors().unwrap_or_default(), result.clone())
                }
                _ => return Err(at("the function gives no state and tensor".to_string())),
            },
            _ => return Err(at("the function gives no tensor".to_string())),
        };
        let same = |(old, new): (&Tensor<'c>, &Tensor<'c>)| {
            (old.ty.element, old.ty.dims.len()) == (new.ty.element, new.ty.dims.len())
        };
        if next.len() != tensors.len() || !tensors.iter().zip(&next).all(same) {
            return Err(at("the state of a loop changes its type".to_string()));
        }
        let mut yielded = Vec::new();
        for (init, tensor) in inits.iter().zip(&next) {
            let value = lowering.carried(tensor).map_err(at)?;
            let ty = init.r#type();
            // Sizes that are equal may be written differently.
            yielded.push(match value.r#type() == ty {
                true => value,
                false => lowering.b.value("tensor.cast", &[value], ty),
            });
        }
        // What all calls give.
        let mut all = result.ty.clone();
        all.dims.insert(0, over.ty.dims[0]);
        let inside = std::mem::replace(&mut lowering.b, outside);
        lowering.at(span);
        let empty = lowering.empty(&all).map_err(at)?;
        lowering.b = inside;
        let results = mlir::val(block.add_argument(empty.r#type(), outside.location));
        yielded.push(match result.ty.dims.is_empty() {
            true => {
                let element = lowering.extract(&result, &[]);
                let element = encode(&lowering.b, result.element(), element);
                let operands = [element, results, arguments[0]];
                lowering.b.value("tensor.insert", &operands, empty.r#type())
            }
            false => {
                let rank = result.ty.dims.len();
                let dims = lowering.dims(rank);
                let zero = lowering.constant(0);
                let index = |row: Option<Expr>| [&[row.unwrap_or(zero)], &dims[..]].concat();
                lowering.insert(&result, results, Some(arguments[0]), &index).map_err(at)?
            }
        });
        lowering.b.op("scf.yield", &yielded, &[]);
        lowering.b = outside;
        lowering.at(span);
        inits.push(empty);
        let bounds = [lowering.b.index(0), lowering.value(over.ty.dims[0]), lowering.b.index(1)];
        let operands = [&bounds[..], &inits].concat();
        let types: Vec<_> = inits.iter().map(|init| init.r#type()).collect();
        let op = lowering.b.op_with("scf.for", &operands, &types, &[], vec![region]);
        let mut values = mlir::results(op);
        let results = values.pop().map(|value| Tensor::stored(value, all));
        let results = results.ok_or_else(|| at("a loop without results".to_string()))?;
        let last = values.into_iter().zip(&tensors).map(|(value, like)| like.holding(value));
        Ok((state.map(|state| state.with_tensors(&mut last.into_iter())), results))
    }
}

impl<'c> Tensor<'c> {
    /// A tensor of the same type, as loops carry it.
    fn holding(&self, value: Val<'c>) -> Self {
        match self.ty.dims.is_empty() {
            true => Self::scalar(value, self.ty.clone()),
            false => Self::stored(value, self.ty.clone()),
        }
    }
}

impl<'c> Lowering<'c, '_> {
    /// A value as loops carry it.
    fn carried(&mut self, tensor: &Tensor<'c>) -> Made<Val<'c>> {
        match tensor.ty.dims.is_empty() {
            true => Ok(self.extract(tensor, &[])),
            false => self.in_memory(tensor),
        }
    }
}

/// The elements of a reduction one by one, in loops around that over the rows; `indices` are those of
/// the loops that there are.
fn fold_all<'c>(
    machine: &mut Machine<'_, Lowering<'c, '_>>,
    function: Callee,
    of: &Tensor<'c>,
    init: Val<'c>,
    (indices, into): (&mut Vec<Val<'c>>, Val<'c>),
    span: Span,
) -> Evaluated<Val<'c>> {
    let Some(extent) = of.ty.dims[1..].get(indices.len()) else {
        let value = fold(machine, function, of, init, indices, span)?;
        let b = machine.target.b;
        let operands = [&[encode(&b, of.element(), value), into], &indices[..]].concat();
        return Ok(b.value("tensor.insert", &operands, into.r#type()));
    };
    over(machine, *extent, into, &mut |machine, index, into| {
        indices.push(index);
        let value = fold_all(machine, function, of, init, (indices, into), span);
        indices.pop();
        value
    })
}

/// A reduction of the elements of all rows at one index.
fn fold<'c>(
    machine: &mut Machine<'_, Lowering<'c, '_>>,
    function: Callee,
    of: &Tensor<'c>,
    init: Val<'c>,
    indices: &[Val<'c>],
    span: Span,
) -> Evaluated<Val<'c>> {
    let element = of.ty.element;
    over(machine, of.ty.dims[0], init, &mut |machine, row, so_far| {
        let next = machine.target.extract(of, &[&[row], indices].concat());
        let ty = TensorType { element, dims: Vec::new() };
        let args = [so_far, next].map(|value| Value::Tensor(Tensor::scalar(value, ty.clone())));
        match machine.apply(function, args.into(), span)? {
            Value::Tensor(result) if result.ty.dims.is_empty() => {
                Ok(machine.target.extract(&result, &[]))
            }
            _ => Err(refuse(span, "the function of 'reduce' gives no scalar")),
        }
    })
}

/// What fills a loop: from the index and what it carries, the next.
type Step<'a, 'p, 'c, 't> =
    dyn FnMut(&mut Machine<'p, Lowering<'c, 't>>, Val<'c>, Val<'c>) -> Evaluated<Val<'c>> + 'a;

/// A loop that carries a value.
fn over<'p, 'c, 't>(
    machine: &mut Machine<'p, Lowering<'c, 't>>,
    extent: Expr,
    init: Val<'c>,
    step: &mut Step<'_, 'p, 'c, 't>,
) -> Evaluated<Val<'c>> {
    let outside = machine.target.b;
    let bounds = (outside.index(0), machine.target.value(extent), outside.index(1));
    let mut failed = Ok(());
    let results = build_for(&outside, bounds, &[init], &mut |inside, index, carried| {
        machine.target.b = *inside;
        let next = step(machine, index, carried[0]).unwrap_or_else(|error| {
            failed = Err(error);
            carried[0]
        });
        vec![next]
    });
    machine.target.b = outside;
    failed.map(|()| results[0])
}
