//! Loops over memory, for operations without indexing maps.

use super::value::{Array, tensor_type};
use crate::{
    convert::{
        elements::{Scalar, decode_element, encode_element, storage_type},
        index_emitter::{IndexEmitter, IndexMath},
    },
    loops::{build_alloc, build_for, build_if, build_independent, build_scratch},
};
use melior::ir::{Attribute, r#type::MemRefType};
use tc_dialects::{
    element::ElementType,
    hlo::{ArrayShape, indexing::Accesses},
    mlir::{Builder, Val},
};
use tc_ir::{Context, Expr, Interval, Var, map::Variable};

/// A tensor of undefined elements.
pub(super) fn empty<'c>(b: &Builder<'c>, shape: &ArrayShape) -> Val<'c> {
    b.value("tensor.empty", &[], tensor_type(b, shape))
}

/// An array of undefined elements.
pub(super) fn empty_array<'c>(b: &Builder<'c>, shape: &ArrayShape) -> Array<'c> {
    Array { tensor: empty(b, shape), shape: shape.clone() }
}

/// An array of memory.
#[derive(Clone)]
pub(super) struct Memory<'c> {
    buffer: Val<'c>,
    shape: ArrayShape,
    /// Whether loads and stores exchange the parts of complex numbers.
    is_swapped: bool,
}

impl<'c> Memory<'c> {
    /// Memory of undefined elements.
    pub(super) fn allocate(b: &Builder<'c>, shape: &ArrayShape) -> Self {
        Self::at(build_alloc(b, memref_type(b, shape)), shape)
    }

    /// Memory of undefined elements that only one instruction uses. In a loop, each iteration has its own.
    pub(super) fn scratch(b: &Builder<'c>, shape: &ArrayShape) -> Self {
        Self::at(build_scratch(b, memref_type(b, shape), &[]), shape)
    }

    /// The memory of an array, which may only be read.
    pub(super) fn of(b: &Builder<'c>, array: &Array<'c>) -> Self {
        let ty = memref_type(b, &array.shape);
        let read_only = [("read_only", Attribute::unit(b.context))];
        let buffer = b.value_with("bufferization.to_buffer", &[array.tensor], ty, &read_only);
        Self::at(buffer, &array.shape)
    }

    fn at(buffer: Val<'c>, shape: &ArrayShape) -> Self {
        Self { buffer, shape: shape.clone(), is_swapped: false }
    }

    /// Memory that holds a copy of an array.
    pub(super) fn copy_of(b: &Builder<'c>, array: &Array<'c>) -> Self {
        let (source, copy) = (Self::of(b, array), Self::allocate(b, &array.shape));
        b.op("memref.copy", &[source.buffer, copy.buffer], &[]);
        copy
    }

    /// The array in the memory, which is not written any more: others may read the memory itself, because
    /// a `to_buffer` of the array folds to it.
    pub(super) fn array(self, b: &Builder<'c>) -> Array<'c> {
        let ty = tensor_type(b, &self.shape);
        let unit = Attribute::unit(b.context);
        let attributes = [("restrict", unit)];
        let tensor = b.value_with("bufferization.to_tensor", &[self.buffer], ty, &attributes);
        Array { tensor, shape: self.shape }
    }

    /// The same memory of complex numbers with real and imaginary parts exchanged.
    pub(super) fn swapped(&self) -> Self {
        Self { is_swapped: !self.is_swapped, ..self.clone() }
    }

    pub(super) fn load(&self, b: &Builder<'c>, index: &[Val<'c>]) -> Scalar<'c> {
        let element = self.shape.element_type;
        let operands = [&[self.buffer], index].concat();
        let stored = b.value("memref.load", &operands, storage_type(b, element));
        let mut parts = decode_element(b, element, stored);
        if self.is_swapped {
            parts.reverse();
        }
        parts
    }

    pub(super) fn store(&self, b: &Builder<'c>, index: &[Val<'c>], value: &[Val<'c>]) {
        let mut parts = value.to_vec();
        if self.is_swapped {
            parts.reverse();
        }
        let stored = encode_element(b, self.shape.element_type, &parts);
        b.op("memref.store", &[&[stored, self.buffer], index].concat(), &[]);
    }

    /// Writes the elements of `source` to where accesses over it lead.
    pub(super) fn insert(
        &self,
        b: &Builder<'c>,
        source: &Self,
        ir: &Context,
        accesses: &Accesses,
    ) -> Result<(), String> {
        let stored = storage_type(b, self.element());
        for_each(b, &source.shape.dims, &mut |b, from| {
            let point = Point { ir, accesses, dims: from, ranges: &[], runtimes: &[] };
            let to = point.emit(b, &accesses.indices[0]);
            let value = b.value("memref.load", &[&[source.buffer], from].concat(), stored);
            b.op("memref.store", &[&[value, self.buffer], &to[..]].concat(), &[]);
            Ok(())
        })
    }

    pub(super) fn element(&self) -> ElementType {
        self.shape.element_type
    }
}

fn memref_type<'c>(b: &Builder<'c>, shape: &ArrayShape) -> melior::ir::Type<'c> {
    MemRefType::new(storage_type(b, shape.element_type), &shape.dims, None, None).into()
}

/// The values of the variables of accesses in loops over memory.
pub(super) struct Point<'a, 'c> {
    pub(super) ir: &'a Context,
    pub(super) accesses: &'a Accesses,
    pub(super) dims: &'a [Val<'c>],
    pub(super) ranges: &'a [Val<'c>],
    pub(super) runtimes: &'a [Val<'c>],
}

impl<'c> Point<'_, 'c> {
    /// The values of expressions over the variables.
    pub(super) fn emit(&self, b: &Builder<'c>, exprs: &[Expr]) -> Vec<Val<'c>> {
        let intervals = self.accesses.domain.intervals(self.ir);
        let emitter = IndexEmitter {
            builder: *b,
            ir: self.ir,
            intervals: &|var| intervals.of(var),
            no_overflow: true,
        };
        emitter.emit(exprs, &|var| match var {
            Var::Dim(number) => self.dims.get(number as usize).copied(),
            Var::Range(number) => self.ranges.get(number as usize).copied(),
            Var::Runtime(number) => self.runtimes.get(number as usize).copied(),
        })
    }

    /// Whether the constraints hold, and runtime variables that are not moved into their bounds are
    /// in them; `None` if that is always so.
    pub(super) fn is_inside(&self, b: &Builder<'c>) -> Option<Val<'c>> {
        let Accesses { domain, runtimes, .. } = self.accesses;
        let free = (0..).zip(runtimes).filter(|(_, runtime)| runtime.moved_into.is_none());
        let bounds = free.map(|(number, _)| {
            (self.ir.runtime(number), domain.interval(self.ir, Var::Runtime(number)))
        });
        let constraints = domain.constraints.iter().map(|it| (it.expr, it.interval));
        let inside = bounds.chain(constraints).map(|(expr, Interval { lo, hi })| {
            let first = self.ir.sub(expr, self.ir.constant(lo));
            b.is_inside(self.emit(b, &[first])[0], hi - lo + 1)
        });
        inside.reduce(|x, y| b.and(x, y))
    }
}

/// How many values variables with constant bounds have.
pub(super) fn extents(ir: &Context, variables: &[Variable]) -> Vec<i64> {
    let extent = |variable: &Variable| {
        let Interval { lo, hi } = variable.constant_interval(ir).unwrap_or(Interval::EMPTY);
        hi.saturating_sub(lo).saturating_add(1).max(0)
    };
    variables.iter().map(extent).collect()
}

/// What `then` computes where `inside` holds, or everywhere if it is `None`; elsewhere the given
/// values.
///
/// # Errors
/// Those of `then`.
pub(super) fn build_inside<'c>(
    b: &Builder<'c>,
    inside: Option<Val<'c>>,
    otherwise: &[Val<'c>],
    then: &mut dyn FnMut(&Builder<'c>) -> Result<Vec<Val<'c>>, String>,
) -> Result<Vec<Val<'c>>, String> {
    let Some(inside) = inside else { return then(b) };
    let mut failed = Ok(());
    let mut values = |b: &Builder<'c>| {
        then(b).unwrap_or_else(|error| {
            failed = Err(error);
            otherwise.to_vec()
        })
    };
    let values = build_if(b, inside, &mut values, &mut |_| otherwise.to_vec());
    failed.map(|()| values)
}

/// What fills a nest of loops: from the indices.
pub(super) type NestBody<'a, 'c> = dyn FnMut(&Builder<'c>, &[Val<'c>]) -> Result<(), String> + 'a;

/// Loops over a box, the last dimension innermost. The points are independent of each other.
///
/// # Errors
/// Those of `body`.
pub(super) fn for_each<'c>(
    b: &Builder<'c>,
    dims: &[i64],
    body: &mut NestBody<'_, 'c>,
) -> Result<(), String> {
    fn level<'c>(
        b: &Builder<'c>,
        dims: &[i64],
        indices: &mut Vec<Val<'c>>,
        body: &mut NestBody<'_, 'c>,
    ) -> Result<(), String> {
        let Some((extent, rest)) = dims.split_first() else { return body(b, indices) };
        each(b, b.index(*extent), &mut |inside, index| {
            indices.push(index);
            let result = level(inside, rest, indices, body);
            indices.pop();
            result
        })
    }
    level(b, dims, &mut Vec::new(), body)
}

/// A loop from 0 to below `extent` whose iterations are independent of each other.
///
/// # Errors
/// Those of `body`.
pub(super) fn each<'c>(
    b: &Builder<'c>,
    extent: Val<'c>,
    body: &mut dyn FnMut(&Builder<'c>, Val<'c>) -> Result<(), String>,
) -> Result<(), String> {
    let mut result = Ok(());
    build_independent(b, extent, &mut |b, index| result = body(b, index));
    result
}

/// A loop from 0 to below `extent` whose iterations run in order.
///
/// # Errors
/// Those of `body`.
pub(super) fn in_order<'c>(
    b: &Builder<'c>,
    extent: Val<'c>,
    body: &mut dyn FnMut(&Builder<'c>, Val<'c>) -> Result<(), String>,
) -> Result<(), String> {
    fold(b, extent, &[], &mut |b, index, _| body(b, index).map(|()| Vec::new())).map(|_| ())
}

/// What fills a loop that carries values: from the index and the values, the next values.
pub(super) type FoldBody<'a, 'c> =
    dyn FnMut(&Builder<'c>, Val<'c>, &[Val<'c>]) -> Result<Vec<Val<'c>>, String> + 'a;
/// The same for a nest: from all indices.
pub(super) type FoldBoxBody<'a, 'c> =
    dyn FnMut(&Builder<'c>, &[Val<'c>], &[Val<'c>]) -> Result<Vec<Val<'c>>, String> + 'a;

/// A loop from 0 to below `extent` that carries values.
///
/// # Errors
/// Those of `body`.
pub(super) fn fold<'c>(
    b: &Builder<'c>,
    extent: Val<'c>,
    inits: &[Val<'c>],
    body: &mut FoldBody<'_, 'c>,
) -> Result<Vec<Val<'c>>, String> {
    let mut failed = None;
    let bounds = (b.index(0), extent, b.index(1));
    let results = build_for(b, bounds, inits, &mut |inside, index, carried| {
        body(inside, index, carried).unwrap_or_else(|error| {
            failed = Some(error);
            carried.to_vec()
        })
    });
    failed.map_or(Ok(results), Err)
}

/// [`fold`] over a box, the last dimension innermost.
///
/// # Errors
/// Those of `body`.
pub(super) fn fold_box<'c>(
    b: &Builder<'c>,
    dims: &[i64],
    inits: &[Val<'c>],
    body: &mut FoldBoxBody<'_, 'c>,
) -> Result<Vec<Val<'c>>, String> {
    fn level<'c>(
        b: &Builder<'c>,
        dims: &[i64],
        indices: &mut Vec<Val<'c>>,
        inits: &[Val<'c>],
        body: &mut FoldBoxBody<'_, 'c>,
    ) -> Result<Vec<Val<'c>>, String> {
        let Some((extent, rest)) = dims.split_first() else { return body(b, indices, inits) };
        fold(b, b.index(*extent), inits, &mut |inside, index, carried| {
            indices.push(index);
            let result = level(inside, rest, indices, carried, body);
            indices.pop();
            result
        })
    }
    level(b, dims, &mut Vec::new(), inits, body)
}
