//! Index values and extents of a function as expressions over the sizes of its arguments.

use melior::ir::{Type, ValueLike, operation::OperationLike, r#type::MemRefType};
use std::{cell::RefCell, collections::HashMap};
use tc_dialects::{
    imap,
    mlir::{self, Op, Val},
};
use tc_ir::{
    Context, Expr, IndexingMap,
    prove::{Prover, Verdict},
};

/// How many operations may lie between a value and the arguments.
const MAX_DEPTH: usize = 64;

/// The attribute of a view with what is static of some of its numbers, and the group of the other operands.
type Part = (&'static str, usize);
const OFFSETS: Part = ("static_offsets", 1);
const SIZES: Part = ("static_sizes", 2);
const STRIDES: Part = ("static_strides", 3);

/// The extents of the arguments of a function, as expressions over sizes. Size `n` is the runtime variable
/// `n`.
pub struct Extents<'i> {
    /// Where the expressions live.
    pub ir: &'i Context,
    function: usize,
    names: Vec<String>,
    arguments: Vec<Vec<Option<Expr>>>,
    scalars: Vec<Option<Expr>>,
    known: RefCell<HashMap<usize, Option<Expr>>>,
    /// Values of the indices of loops.
    bound: RefCell<HashMap<usize, Expr>>,
    /// Extents of tensors and buffers that loops carry, by value and dimension.
    carried: RefCell<HashMap<(usize, usize), Option<Expr>>>,
    /// Knows that sizes and extents are not negative.
    prover: Prover<'i>,
}

impl<'i> Extents<'i> {
    /// The extents of a function whose arguments [`add_argument`](Self::add_argument) adds.
    pub fn new(ir: &'i Context, function: Op) -> Self {
        Self {
            ir,
            function: mlir::op_key(function),
            names: Vec::new(),
            arguments: Vec::new(),
            scalars: Vec::new(),
            known: RefCell::default(),
            bound: RefCell::default(),
            carried: RefCell::default(),
            prover: Prover::new(ir),
        }
    }

    /// The names of the sizes.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The size of a name, which is at least `least`.
    pub fn size(&mut self, name: &str, least: i64) -> Expr {
        let place = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_string());
            self.names.len() - 1
        });
        let size = self.ir.runtime(place as u32);
        self.prover.assume_at_most(self.ir.constant(least), size);
        size
    }

    /// The result of a map over sizes of these names.
    pub fn computed(&mut self, map: &IndexingMap, names: &[String], result: usize) -> Option<Expr> {
        let sizes: Vec<_> = names.iter().map(|name| self.size(name, 1)).collect();
        let replacement = |var| match var {
            tc_ir::Var::Runtime(number) => sizes.get(number as usize).copied(),
            _ => None,
        };
        Some(self.ir.substitute(*map.results.get(result)?, &replacement))
    }

    /// Adds the next argument: its extents, if they are known, and its element if it is an index.
    pub fn add_argument(&mut self, extents: Vec<Option<Expr>>, scalar: Option<Expr>) {
        for extent in extents.iter().flatten() {
            self.prover.assume_at_most(self.ir.constant(0), *extent);
        }
        self.arguments.push(extents);
        self.scalars.push(scalar);
    }

    /// The number of the argument of the function that a value is.
    fn argument(&self, value: Val) -> Option<usize> {
        let parent = mlir::argument_parent(value)?;
        (mlir::op_key(parent) == self.function).then(|| mlir::number(value))
    }

    /// An index as an expression over sizes.
    pub fn value(&self, value: Val) -> Option<Expr> {
        self.value_within(value, MAX_DEPTH)
    }

    /// Gives an index that a loop changes a value, or takes it away.
    pub(super) fn bind(&self, index: Val, value: Option<i64>) {
        self.known.borrow_mut().clear();
        let key = mlir::value_key(index);
        let mut bound = self.bound.borrow_mut();
        match value {
            Some(value) => bound.insert(key, self.ir.constant(value)),
            None => bound.remove(&key),
        };
    }

    fn value_within(&self, value: Val, depth: usize) -> Option<Expr> {
        let key = mlir::value_key(value);
        if let Some(value) = self.bound.borrow().get(&key) {
            return Some(*value);
        }
        if let Some(known) = self.known.borrow().get(&key) {
            return *known;
        }
        let found = self.compute(value, depth.checked_sub(1)?);
        self.known.borrow_mut().insert(key, found);
        found
    }

    fn compute(&self, value: Val, depth: usize) -> Option<Expr> {
        let op = mlir::defining_op(value)?;
        let ir = self.ir;
        let operand = |number| self.value_within(mlir::operand(op, number), depth);
        let binary = |build: &dyn Fn(Expr, Expr) -> Expr| Some(build(operand(0)?, operand(1)?));
        match mlir::name(op) {
            "arith.constant" => mlir::integer_attr(op, "value").map(|it| ir.constant(it)),
            "arith.addi" => binary(&|a, b| ir.add(a, b)),
            "arith.subi" => binary(&|a, b| ir.sub(a, b)),
            "arith.muli" => binary(&|a, b| ir.mul(a, b)),
            "arith.minsi" => binary(&|a, b| ir.min(a, b)),
            "arith.maxsi" => binary(&|a, b| match (ir.as_constant(a), ir.as_constant(b)) {
                (Some(0), _) => self.not_negative(b),
                (_, Some(0)) => self.not_negative(a),
                _ => ir.max(a, b),
            }),
            "arith.floordivsi" => binary(&|a, b| ir.floor_div(a, b)),
            "arith.ceildivsi" => binary(&|a, b| ir.ceil_div(a, b)),
            "arith.index_cast" => operand(0),
            "tensor.dim" | "memref.dim" => {
                let dim = ir.as_constant(operand(1)?)?;
                self.extent_within(mlir::operand(op, 0), usize::try_from(dim).ok()?, depth)
            }
            "memref.extract_strided_metadata" => {
                let buffer = mlir::operand(op, 0);
                let rank = mlir::shape(buffer.r#type()).len();
                match mlir::number(value).checked_sub(1)? {
                    0 => self.offset_within(buffer, depth),
                    part if part <= rank => self.extent_within(buffer, part - 1, depth),
                    part => self.stride_within(buffer, part - 1 - rank, depth),
                }
            }
            "tensor.extract" | "memref.load" => {
                self.scalars.get(self.argument(root(mlir::operand(op, 0)))?).copied()?
            }
            "imap.apply" => {
                let map = imap::map::from_attribute(ir, op.attribute("map").ok()?)?;
                let operands: Option<Vec<_>> = (0..op.operand_count()).map(operand).collect();
                let operands = operands?;
                let result = *map.results.get(mlir::number(value))?;
                Some(ir.substitute(result, &|var| operands.get(map.position(var)).copied()))
            }
            _ => None,
        }
    }

    /// The extent of a dimension of a tensor or buffer.
    pub fn extent(&self, shaped: Val, dim: usize) -> Option<Expr> {
        self.extent_within(shaped, dim, MAX_DEPTH)
    }

    fn extent_within(&self, shaped: Val, dim: usize, depth: usize) -> Option<Expr> {
        let depth = depth.checked_sub(1)?;
        let shape = mlir::shape(shaped.r#type());
        if let Some(extent) = *shape.get(dim)? {
            return Some(self.ir.constant(extent));
        }
        if let Some(number) = self.argument(shaped) {
            return self.arguments.get(number)?.get(dim).copied().flatten();
        }
        let Some(op) = mlir::defining_op(shaped) else {
            return self.extent_of_carried(shaped, dim, depth);
        };
        match mlir::name(op) {
            "scf.for" => {
                let body = mlir::arguments(mlir::body(op, 0)?);
                self.extent_within(*body.get(1 + mlir::number(shaped))?, dim, depth)
            }
            "scf.while" => {
                let passed = mlir::operands(mlir::terminator(mlir::body(op, 0)?));
                self.extent_within(*passed.get(1 + mlir::number(shaped))?, dim, depth)
            }
            "tensor.empty" | "memref.alloc" | "memref.alloca" => {
                let number = shape[..dim].iter().filter(|extent| extent.is_none()).count();
                self.value_within(*mlir::operands(op).get(number)?, depth)
            }
            "memref.view" => {
                let number = shape[..dim].iter().filter(|extent| extent.is_none()).count();
                self.value_within(*mlir::operands(op).get(2 + number)?, depth)
            }
            "memref.reinterpret_cast" | "memref.subview" => self.part(op, SIZES, dim, depth),
            "tensor.cast"
            | "memref.cast"
            | "bufferization.to_tensor"
            | "bufferization.to_buffer" => self.extent_within(mlir::operand(op, 0), dim, depth),
            "memref.distinct_objects" => {
                self.extent_within(mlir::operand(op, mlir::number(shaped)), dim, depth)
            }
            "bufferization.materialize_in_destination" => {
                self.extent_within(mlir::operand(op, 1), dim, depth)
            }
            _ => {
                let init = imap::destinations(op)?.get(mlir::number(shaped)).copied()?;
                self.extent_within(init, dim, depth)
            }
        }
    }

    /// The elements from the start of the memory of a buffer to its first element.
    pub fn offset(&self, buffer: Val) -> Option<Expr> {
        self.offset_within(buffer, MAX_DEPTH)
    }

    fn offset_within(&self, buffer: Val, depth: usize) -> Option<Expr> {
        let depth = depth.checked_sub(1)?;
        let (_, offset) = MemRefType::try_from(buffer.r#type()).ok()?.strides_and_offset();
        if offset != i64::MIN {
            return Some(self.ir.constant(offset));
        }
        let op = mlir::defining_op(buffer)?;
        let source = mlir::operand(op, 0);
        match mlir::name(op) {
            "memref.cast" => self.offset_within(source, depth),
            "memref.reinterpret_cast" => self.part(op, OFFSETS, 0, depth),
            "memref.subview" => {
                let mut offset = self.offset_within(source, depth)?;
                for dim in 0..mlir::shape(source.r#type()).len() {
                    let stride = self.stride_within(source, dim, depth)?;
                    let start = self.part(op, OFFSETS, dim, depth)?;
                    offset = self.ir.add(offset, self.ir.mul(start, stride));
                }
                Some(offset)
            }
            _ => None,
        }
    }

    /// The elements from one to the next along a dimension of a buffer.
    pub fn stride(&self, buffer: Val, dim: usize) -> Option<Expr> {
        self.stride_within(buffer, dim, MAX_DEPTH)
    }

    fn stride_within(&self, buffer: Val, dim: usize, depth: usize) -> Option<Expr> {
        let depth = depth.checked_sub(1)?;
        let ty = MemRefType::try_from(buffer.r#type()).ok()?;
        let (strides, _) = ty.strides_and_offset();
        let stride = *strides.get(dim)?;
        if stride != i64::MIN {
            return Some(self.ir.constant(stride));
        }
        let shape = mlir::shape(buffer.r#type());
        let extents: Vec<_> = shape.iter().map(|extent| extent.unwrap_or(i64::MIN)).collect();
        let element = mlir::element_type(buffer.r#type());
        let plain = MemRefType::contiguous(element, &extents, ty.memory_space());
        if buffer.r#type() == Type::from(plain) {
            let mut product = self.ir.constant(1);
            for dim in dim + 1..shape.len() {
                product = self.ir.mul(product, self.extent_within(buffer, dim, depth)?);
            }
            return Some(product);
        }
        let op = mlir::defining_op(buffer)?;
        let source = mlir::operand(op, 0);
        match mlir::name(op) {
            "memref.cast" => self.stride_within(source, dim, depth),
            "memref.reinterpret_cast" => self.part(op, STRIDES, dim, depth),
            "memref.subview" if mlir::shape(source.r#type()).len() == shape.len() => {
                let step = self.part(op, STRIDES, dim, depth)?;
                Some(self.ir.mul(step, self.stride_within(source, dim, depth)?))
            }
            _ => None,
        }
    }

    /// One of the offsets, sizes or strides of a view.
    fn part(&self, op: Op, (name, group): Part, number: usize, depth: usize) -> Option<Expr> {
        let parts = mlir::integers_attr(op, name);
        // Without dimensions of the source that the view drops, the numbers are those of dimensions.
        let rank = mlir::shape(mlir::result(op, 0).r#type()).len();
        if name == SIZES.0 && parts.len() != rank {
            return None;
        }
        match *parts.get(number)? {
            i64::MIN => {
                let before = parts[..number].iter().filter(|it| **it == i64::MIN).count();
                self.value_within(*mlir::operand_group(op, group).get(before)?, depth)
            }
            part => Some(self.ir.constant(part)),
        }
    }

    /// The extent of an argument of a region of a loop, if it is the same in all iterations.
    fn extent_of_carried(&self, shaped: Val, dim: usize, depth: usize) -> Option<Expr> {
        let key = (mlir::value_key(shaped), dim);
        if let Some(known) = self.carried.borrow().get(&key) {
            return *known;
        }
        let (op, number) = (mlir::argument_parent(shaped)?, mlir::number(shaped));
        let terminator = |region| Some(mlir::operands(mlir::terminator(mlir::body(op, region)?)));
        let (init, next) = match mlir::name(op) {
            "scf.for" => {
                let number = number.checked_sub(1)?;
                (mlir::operand(op, 3 + number), *terminator(0)?.get(number)?)
            }
            "scf.while" if mlir::argument_block(shaped) == mlir::body(op, 0) => {
                (mlir::operand(op, number), *terminator(1)?.get(number)?)
            }
            "scf.while" => {
                return self.extent_within(*terminator(0)?.get(1 + number)?, dim, depth);
            }
            _ => return None,
        };
        let first = self.extent_within(init, dim, depth);
        self.carried.borrow_mut().insert(key, first);
        let extent = first.filter(|_| self.extent_within(next, dim, depth) == first);
        if extent.is_none() {
            // Nothing may be kept that was derived from the assumption.
            self.known.borrow_mut().clear();
            self.carried.borrow_mut().clear();
        }
        self.carried.borrow_mut().insert(key, extent);
        extent
    }

    /// The smaller expression, for all sizes if that can be shown.
    pub fn min(&self, a: Expr, b: Expr) -> Expr {
        match () {
            () if self.is_at_most(a, b) => a,
            () if self.is_at_most(b, a) => b,
            () => self.ir.min(a, b),
        }
    }

    /// The larger of an expression and 0.
    pub fn not_negative(&self, expr: Expr) -> Expr {
        let zero = self.ir.constant(0);
        if self.is_at_most(zero, expr) { expr } else { self.ir.max(zero, expr) }
    }

    fn is_at_most(&self, a: Expr, b: Expr) -> bool {
        match self.ir.as_constant(a).zip(self.ir.as_constant(b)) {
            Some((a, b)) => a <= b,
            None => self.prover.at_most(a, b) == Verdict::Proved,
        }
    }

    /// The number of elements of a tensor or buffer.
    pub fn elements(&self, shaped: Val) -> Option<Expr> {
        let mut product = self.ir.constant(1);
        for dim in 0..mlir::shape(shaped.r#type()).len() {
            product = self.ir.mul(product, self.extent(shaped, dim)?);
        }
        Some(product)
    }
}

/// The tensor or buffer whose elements a value has, without casts.
pub(super) fn root<'c>(value: Val<'c>) -> Val<'c> {
    let mut value = value;
    while let Some(op) = mlir::defining_op(value) {
        let operand = match mlir::name(op) {
            "tensor.cast"
            | "memref.cast"
            | "bufferization.to_tensor"
            | "bufferization.to_buffer"
            | "tensor.expand_shape"
            | "tensor.collapse_shape"
            | "memref.expand_shape"
            | "memref.collapse_shape" => 0,
            "memref.distinct_objects" => mlir::number(value),
            _ => break,
        };
        value = mlir::operand(op, operand);
    }
    value
}
