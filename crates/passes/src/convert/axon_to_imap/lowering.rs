//! Values of the program, and what builds them.

use super::{HINT, checks::Conditions};
use crate::convert::{
    elements::{
        coding::{decode, encode, normalize},
        multiply, scalar, storage_type, sum_type,
    },
    generic_builder::GenericBuilder,
    subscripts::identity,
};
use melior::ir::{Attribute, Location, Type, ValueLike};
use std::collections::HashSet;
use tc_dialects::{
    axon::{
        ElementType, TensorType,
        evaluate::Made,
        parametric::{Parametric, Requirement},
        to_hlo::hlo_element,
    },
    element::ElementType as HloElement,
    imap::{self, Combiner, CombinerKind, MAX_EXTENT},
    mlir::{self, Builder, Op, Val},
    report::placed,
    text::Span,
};
use tc_ir::{Expr, IndexingMap, Var, map::Variable, polynomial};

/// Most bytes of a tensor, far more than any memory has.
const MAX_BYTES: i64 = 1 << 62;

/// The type of a tensor in memory.
pub(super) fn tensor_type<'c>(
    b: &Builder<'c>,
    ir: &tc_ir::Context,
    ty: &TensorType<Expr>,
) -> Type<'c> {
    let dims: Vec<_> = ty.dims.iter().map(|size| ir.as_constant(*size)).collect();
    mlir::tensor_type(&dims, storage_type(b, hlo_element(ty.element)))
}

/// A value of the program.
#[derive(Clone, Debug)]
pub(super) struct Tensor<'c> {
    pub(super) data: Data<'c>,
    pub(super) ty: TensorType<Expr>,
}

/// How a value is held.
#[derive(Clone, Copy, Debug)]
pub(super) enum Data<'c> {
    /// What all elements are, of the type that is calculated with.
    Scalar(Val<'c>),
    /// A tensor, of the type that is stored.
    Stored(Val<'c>),
}

impl<'c> Tensor<'c> {
    pub(super) fn stored(value: Val<'c>, ty: TensorType<Expr>) -> Self {
        Self { data: Data::Stored(value), ty }
    }

    pub(super) fn scalar(value: Val<'c>, ty: TensorType<Expr>) -> Self {
        Self { data: Data::Scalar(value), ty }
    }

    pub(super) fn element(&self) -> HloElement {
        hlo_element(self.ty.element)
    }
}

/// An operand and the index at which it is read.
pub(super) type Source<'a, 'c> = (&'a Tensor<'c>, Vec<Expr>);

/// What calculates an element from elements of operands.
pub(super) type ElementFrom<'a, 'c> = dyn Fn(&Builder<'c>, &[Val<'c>]) -> Made<Val<'c>> + 'a;

/// Builds a function.
pub(super) struct Lowering<'c, 'a> {
    pub(super) ir: &'a tc_ir::Context,
    pub(super) entry: &'a Parametric,
    pub(super) location: &'a dyn Fn(Span) -> Location<'c>,
    /// The size variables: names and values.
    pub(super) sizes: Vec<(String, Val<'c>)>,
    /// Where operations are created.
    pub(super) b: Builder<'c>,
    pub(super) end_of_checks: Op<'c>,
    /// Numbers of bytes that are checked not to be too large.
    pub(super) bounded: HashSet<Expr>,
}

impl<'c> Lowering<'c, '_> {
    pub(super) fn before_checks(&self, span: Span) -> Builder<'c> {
        Builder::before(self.end_of_checks).located((self.location)(span))
    }

    pub(super) fn conditions(&self) -> Conditions<'_, 'c> {
        Conditions { ir: self.ir, sizes: &self.sizes }
    }

    /// Whether a requirement holds.
    pub(super) fn holds(
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
    pub(super) fn formulas(&self, sizes: &[Expr]) -> Attribute<'c> {
        let runtimes = self.sizes.iter().map(|(name, _)| Variable::default().named(name));
        let map = IndexingMap {
            runtimes: runtimes.collect(),
            results: sizes.to_vec(),
            ..IndexingMap::default()
        };
        imap::map::to_attribute(self.b.context, self.ir, &map)
    }

    /// The value of a size.
    pub(super) fn value(&self, size: Expr) -> Val<'c> {
        match self.ir.as_constant(size) {
            Some(size) => self.b.index(size),
            None => imap::build_sizes(&self.b, self.ir, &self.sizes, &[size])[0],
        }
    }

    pub(super) fn constant(&self, value: i64) -> Expr {
        self.ir.constant(value)
    }

    pub(super) fn dims(&self, rank: usize) -> Vec<Expr> {
        identity(self.ir, rank)
    }

    /// The bytes of a tensor.
    pub(super) fn bytes(&self, ty: &TensorType<Expr>) -> Expr {
        let width = i64::from(hlo_element(ty.element).bits().div_ceil(8));
        let bytes = ty.dims.iter().fold(self.constant(width), |it, size| self.ir.mul(it, *size));
        self.ir.canonicalize(bytes)
    }

    /// Sees to it that a tensor is not so large that indices and the size of its memory overflow.
    pub(super) fn bound(&mut self, ty: &TensorType<Expr>) -> Made<()> {
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
    pub(super) fn empty(&mut self, ty: &TensorType<Expr>) -> Made<Val<'c>> {
        self.bound(ty)?;
        let open = ty.dims.iter().filter(|size| self.ir.as_constant(**size).is_none());
        let sizes: Vec<_> = open.map(|size| self.value(*size)).collect();
        Ok(self.b.value("tensor.empty", &sizes, tensor_type(&self.b, self.ir, ty)))
    }

    /// An element of a tensor.
    pub(super) fn extract(&self, tensor: &Tensor<'c>, index: &[Val<'c>]) -> Val<'c> {
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
    pub(super) fn in_memory(&mut self, tensor: &Tensor<'c>) -> Made<Val<'c>> {
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
    pub(super) fn resize(&self, tensor: &mut Tensor<'c>, dims: Option<&[Expr]>) {
        let Some(dims) = dims.filter(|dims| dims.len() == tensor.ty.dims.len()) else { return };
        tensor.ty.dims = dims.to_vec();
        if let Data::Stored(value) = &mut tensor.data {
            let ty = tensor_type(&self.b, self.ir, &tensor.ty);
            if value.r#type() != ty {
                *value = self.b.value("tensor.cast", &[*value], ty);
            }
        }
    }

    pub(super) fn nest(&self, dims: &[Expr]) -> GenericBuilder<'c, '_> {
        GenericBuilder::over(self.ir, &self.sizes, dims)
    }

    /// Reads operands in a nest. Those that are scalars are not read.
    pub(super) fn read(nest: &mut GenericBuilder<'c, '_>, sources: &[Source<'_, 'c>]) {
        for (source, index) in sources {
            if let Data::Stored(value) = source.data {
                nest.read(value, index.clone());
            }
        }
    }

    /// The elements of operands in the body of a nest.
    pub(super) fn elements(
        b: &Builder<'c>,
        sources: &[Source<'_, 'c>],
        stored: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let mut stored = stored.iter();
        let mut element = |(source, _): &Source<'_, 'c>| match source.data {
            Data::Scalar(value) => value,
            Data::Stored(value) => decode(b, source.element(), *stored.next().unwrap_or(&value)),
        };
        sources.iter().map(&mut element).collect()
    }

    /// The tensor of what `value` calculates from the elements of `sources` at their indices.
    pub(super) fn compute(
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
    pub(super) fn rearrange(
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

    /// Unsigned numbers of 64 bits as signed ones; the largest one stands for those that do not fit.
    pub(super) fn as_signed(&mut self, tensor: &Tensor<'c>) -> Made<Tensor<'c>> {
        let ty = TensorType { element: ElementType::I64, dims: tensor.ty.dims.clone() };
        let index = self.dims(ty.dims.len());
        self.compute(ty, &[(tensor, index)], &|b, values| {
            let (value, ty) = (values[0], b.int_type(64));
            let is_large = b.compare_int("slt", value, b.integer(ty, 0));
            Ok(b.select(is_large, b.integer(ty, i64::MAX), value))
        })
    }

    /// Writes the elements of `source` into `target` at an index.
    pub(super) fn insert(
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
    pub(super) fn row(&mut self, tensor: &Tensor<'c>, number: Val<'c>) -> Made<Tensor<'c>> {
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
    pub(super) fn contract(
        &mut self,
        ty: TensorType<Expr>,
        (lhs, rhs): (&Tensor<'c>, &Tensor<'c>),
        ranges: impl FnOnce(&mut GenericBuilder<'c, '_>) -> (Vec<Expr>, Vec<Expr>),
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

impl<'c> Tensor<'c> {
    /// A tensor of the same type, as loops carry it.
    pub(super) fn holding(&self, value: Val<'c>) -> Self {
        match self.ty.dims.is_empty() {
            true => Self::scalar(value, self.ty.clone()),
            false => Self::stored(value, self.ty.clone()),
        }
    }
}

impl<'c> Lowering<'c, '_> {
    /// A value as loops carry it.
    pub(super) fn carried(&mut self, tensor: &Tensor<'c>) -> Made<Val<'c>> {
        match tensor.ty.dims.is_empty() {
            true => Ok(self.extract(tensor, &[])),
            false => self.in_memory(tensor),
        }
    }
}
