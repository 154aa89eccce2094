//! Builds `imap.generic`, and loops over memory for operations without indexing maps.

use super::{
    coding::{decode, encode},
    value::{Array, Scalar, storage_type, tensor_type},
};
use crate::convert::{
    index_expr::{IndexExprs, IndexMath},
    loops::{build_alloc, build_for, build_if, build_scratch},
};
use melior::ir::{Attribute, ValueLike, r#type::MemRefType};
use tc_dialects::{
    element::ElementType,
    hlo::{ArrayShape, indexing::Accesses},
    imap::{
        self, Accumulator, AnyIndexed, Combiner, GenericParts, Indexed, MAX_EXTENT, ScatterPromises,
    },
    mlir::{self, Builder, Val},
};
use tc_ir::{
    Context, Expr, IndexingMap, Interval, Node, Var,
    map::{Constraint, Variable},
};

/// The conditions of a read, and the constant if one of them fails; `None` is zero.
pub(in crate::convert) type Guard<'c> = (Vec<Constraint>, Option<Attribute<'c>>);

/// An `imap.generic` to be built.
#[derive(Clone)]
pub(in crate::convert) struct Nest<'c, 'i> {
    ir: &'i Context,
    domain: IndexingMap,
    runtimes: Vec<Val<'c>>,
    /// The indices of the elements that runtime variables are, of those read from tensors.
    tables: Vec<Vec<Expr>>,
    inputs: Vec<(Val<'c>, Vec<Expr>, Guard<'c>)>,
    outputs: Vec<(Val<'c>, Vec<Expr>, Combiner)>,
    /// The scanned dimension variable, and whether the scan is exclusive.
    scan: Option<(u32, bool)>,
    /// The guard of the destinations of a scatter, and its promises.
    scatter: Option<(Vec<Constraint>, ScatterPromises)>,
}

impl<'c, 'i> Nest<'c, 'i> {
    /// Over dimension variables of these extents, none of them 0.
    pub(in crate::convert) fn new(ir: &'i Context, dims: &[i64]) -> Self {
        let dims: Vec<_> = dims.iter().map(|extent| ir.constant(*extent)).collect();
        Self::over(ir, &[], &dims)
    }

    /// Over dimension variables whose extents are expressions of sizes, the first runtime variables.
    pub(in crate::convert) fn over(
        ir: &'i Context,
        sizes: &[(String, Val<'c>)],
        dims: &[Expr],
    ) -> Self {
        let size = |(name, _): &(String, _)| {
            Variable::bounded(ir, Interval::new(1, MAX_EXTENT)).named(name)
        };
        let domain = IndexingMap {
            dims: dims.iter().map(|extent| below(ir, *extent)).collect(),
            runtimes: sizes.iter().map(size).collect(),
            ..IndexingMap::default()
        };
        Self::within(ir, domain, sizes.iter().map(|(_, value)| *value).collect())
    }

    /// Over a domain, with the values of its runtime variables.
    pub(in crate::convert) fn within(
        ir: &'i Context,
        domain: IndexingMap,
        runtimes: Vec<Val<'c>>,
    ) -> Self {
        let (tables, inputs, outputs) = (Vec::new(), Vec::new(), Vec::new());
        Self { ir, domain, runtimes, tables, inputs, outputs, scan: None, scatter: None }
    }

    /// Over the loops of accesses, given the values of their runtime variables.
    pub(super) fn along(ir: &'i Context, accesses: &Accesses, runtimes: Vec<Val<'c>>) -> Self {
        Self::within(ir, accesses.domain.clone(), runtimes)
    }

    /// Scans along a dimension variable; no range variable may be added.
    pub(super) fn scan(&mut self, dim: u32, is_exclusive: bool) {
        self.scan = Some((dim, is_exclusive));
    }

    /// Updates elements of the destinations where constraints hold.
    pub(super) fn scatter(&mut self, guard: Vec<Constraint>, promises: ScatterPromises) {
        self.scatter = Some((guard, promises));
    }

    /// Adds a range variable, from 0 to below `extent`; a single value needs none.
    pub(in crate::convert) fn range(&mut self, extent: i64) -> Expr {
        self.range_over(self.ir.constant(extent))
    }

    /// Adds a range variable whose extent is an expression of sizes.
    pub(in crate::convert) fn range_over(&mut self, extent: Expr) -> Expr {
        if self.ir.as_constant(extent) == Some(1) {
            return self.ir.constant(0);
        }
        let number = self.domain.ranges.len() as u32;
        self.domain.ranges.push(below(self.ir, extent));
        self.ir.range(number)
    }

    /// Adds a runtime variable with the value of an index between 0 and `last`.
    pub(in crate::convert) fn runtime(&mut self, value: Val<'c>, last: i64) -> Expr {
        let number = self.domain.runtimes.len() as u32;
        self.domain.runtimes.push(Variable::bounded(self.ir, Interval::new(0, last)));
        self.runtimes.push(value);
        self.ir.runtime(number)
    }

    /// Gives the next runtime variable of the domain the elements of a tensor. It has the bounds of the
    /// type, and those of unsigned integers if `is_unsigned`.
    pub(super) fn table(&mut self, tensor: Val<'c>, index: Vec<Expr>, is_unsigned: bool) {
        let variable = &mut self.domain.runtimes[self.runtimes.len()];
        *variable = Variable { name: variable.name.clone(), ..Variable::default() };
        if is_unsigned {
            let interval = imap::element_interval(mlir::element_type(tensor.r#type()), true);
            variable.set_interval(self.ir, interval);
        }
        self.runtimes.push(tensor);
        self.tables.push(index);
    }

    /// The body applies only where an expression has a value in the interval. It never becomes a
    /// bound of a dimension variable, which would leave elements of the result unwritten.
    pub(in crate::convert) fn constrain(&mut self, expr: Expr, interval: Interval) {
        if !interval.covers(self.domain.range_of(self.ir, expr).interval) {
            match self.ir.node(expr) {
                Node::Var(Var::Dim(_)) => {
                    self.domain.constraints.push(Constraint { expr, interval });
                }
                _ => self.domain.add_constraint(self.ir, expr, interval),
            }
        }
    }

    /// Reads a tensor at an index.
    pub(in crate::convert) fn read(&mut self, tensor: Val<'c>, index: Vec<Expr>) {
        self.read_where(tensor, index, (Vec::new(), None));
    }

    /// Reads a tensor at an index, under a guard.
    pub(in crate::convert) fn read_where(
        &mut self,
        tensor: Val<'c>,
        index: Vec<Expr>,
        guard: Guard<'c>,
    ) {
        self.inputs.push((tensor, index, guard));
    }

    /// Writes to a tensor at an index.
    pub(in crate::convert) fn write(
        &mut self,
        init: Val<'c>,
        index: Vec<Expr>,
        combiner: Combiner,
    ) {
        self.outputs.push((init, index, combiner));
    }

    /// Builds it, with what `body` computes from what is read.
    ///
    /// # Errors
    /// Those of `body`.
    pub(in crate::convert) fn build(
        self,
        b: &Builder<'c>,
        body: impl FnOnce(&Builder<'c>, &[Val<'c>]) -> Result<Vec<Val<'c>>, String>,
    ) -> Result<Vec<Val<'c>>, String> {
        let generic = self.build_generic(b, false);
        let inside = Builder::at_end(b.context, generic.body(), b.location);
        let values = body(&inside, &mlir::arguments(generic.body()))?;
        imap::build_yield(&inside, &values);
        Ok(mlir::results(generic.op()))
    }

    /// Builds it with empty blocks, one of them for an epilogue if that is asked for.
    pub(in crate::convert) fn build_generic(
        self,
        b: &Builder<'c>,
        epilogue: bool,
    ) -> AnyIndexed<'c> {
        let combiners: Vec<_> = self.outputs.iter().map(|(.., combiner)| *combiner).collect();
        let inits: Vec<_> = self.outputs.iter().map(|(init, ..)| *init).collect();
        let accumulators = Accumulator::of_combiners(b.context, &combiners, &inits);
        self.build_fold(b, accumulators, epilogue)
    }

    /// Builds it with empty blocks and other accumulators than the combiners of the destinations.
    pub(super) fn build_fold(
        self,
        b: &Builder<'c>,
        accumulators: Vec<Accumulator<'c>>,
        epilogue: bool,
    ) -> AnyIndexed<'c> {
        let unbounded = |it: &Variable| Variable { name: it.name.clone(), ..Variable::default() };
        let free = |variables: &[Variable]| variables.iter().map(unbounded).collect();
        let frame = IndexingMap {
            dims: free(&self.domain.dims),
            ranges: free(&self.domain.ranges),
            runtimes: free(&self.domain.runtimes),
            ..IndexingMap::default()
        };
        let inputs = self.inputs.iter().map(|(_, index, (guard, _))| (index, &guard[..]));
        let guard = self.scatter.as_ref().map_or(&[][..], |(guard, _)| guard);
        let outputs = self.outputs.iter().map(|(_, index, _)| (index, guard));
        let tables = self.tables.iter().map(|index| (index, &[][..]));
        let maps = inputs.chain(outputs).chain(tables).map(|(index, guard)| {
            let results = index.iter().map(|expr| self.ir.canonicalize(*expr)).collect();
            let mut map = IndexingMap { results, ..self.domain.clone() };
            map.constraints.clear();
            // A destination has elements where a range has no values.
            if !map.is_known_empty(self.ir) {
                map.simplify(self.ir);
            }
            let constraints = guard.to_vec();
            IndexingMap { results: map.results, constraints, ..frame.clone() }
        });
        let maps = maps.collect();
        let mut parts = GenericParts {
            maps,
            fills: self.inputs.iter().map(|(.., (_, fill))| *fill).collect(),
            domain: self.domain,
            runtimes: self.runtimes,
            inputs: self.inputs.iter().map(|(tensor, ..)| *tensor).collect(),
            inits: self.outputs.iter().map(|(init, ..)| *init).collect(),
            accumulators,
            combiner: None,
        };
        parts.drop_unused_runtimes(self.ir, &[]);
        match (self.scan, self.scatter) {
            (Some(scan), _) => parts.build_scan(self.ir, b, epilogue, scan).into(),
            (_, Some((_, promises))) => parts.build_scatter(self.ir, b, promises).into(),
            (None, None) => parts.build(self.ir, b, epilogue).into(),
        }
    }
}

/// A variable from 0 to below an extent.
fn below(ir: &Context, extent: Expr) -> Variable {
    let last = ir.canonicalize((ir.wrap(extent) - 1).expr());
    Variable::between(ir.constant(0), last)
}

/// The dimension variables `d0, ..` as an index.
pub(in crate::convert) fn identity(ir: &Context, rank: usize) -> Vec<Expr> {
    (0..rank as u32).map(|dim| ir.dim(dim)).collect()
}

/// Tensors of undefined elements, one per part.
pub(super) fn empty<'c>(b: &Builder<'c>, shape: &ArrayShape) -> Vec<Val<'c>> {
    let ty = tensor_type(b, shape);
    (0..shape.element_type.num_parts()).map(|_| b.value("tensor.empty", &[], ty)).collect()
}

/// An array of undefined elements.
pub(super) fn empty_array<'c>(b: &Builder<'c>, shape: &ArrayShape) -> Array<'c> {
    Array { parts: empty(b, shape), shape: shape.clone() }
}

/// The elements that a body reads, decoded: one scalar per array.
pub(super) fn decode_all<'c>(
    b: &Builder<'c>,
    elements: &[ElementType],
    stored: &[Val<'c>],
) -> Vec<Scalar<'c>> {
    let decoded = |(element, parts): (&ElementType, Scalar<'c>)| {
        parts.into_iter().map(|value| decode(b, element.part(), value)).collect()
    };
    elements.iter().zip(scalars(stored, elements.iter().copied())).map(decoded).collect()
}

/// Elements of these types, from their parts one after the other.
pub(super) fn scalars<'c>(
    parts: &[Val<'c>],
    elements: impl IntoIterator<Item = ElementType>,
) -> Vec<Scalar<'c>> {
    let mut parts = parts.iter().copied();
    let scalar = |element: ElementType| parts.by_ref().take(element.num_parts()).collect();
    elements.into_iter().map(scalar).collect()
}

/// The parts of an element as they are stored.
pub(super) fn encode_all<'c>(b: &Builder<'c>, element: ElementType, x: &[Val<'c>]) -> Vec<Val<'c>> {
    x.iter().map(|value| encode(b, element.part(), *value)).collect()
}

/// An array of memory, one buffer per part.
#[derive(Clone)]
pub(super) struct Memory<'c> {
    parts: Vec<Val<'c>>,
    shape: ArrayShape,
}

impl<'c> Memory<'c> {
    /// Memory of undefined elements.
    pub(super) fn allocate(b: &Builder<'c>, shape: &ArrayShape) -> Self {
        let ty = memref_type(b, shape);
        let parts = (0..shape.element_type.num_parts()).map(|_| build_alloc(b, ty)).collect();
        Self { parts, shape: shape.clone() }
    }

    /// Memory of undefined elements that only one instruction uses.
    pub(super) fn scratch(b: &Builder<'c>, shape: &ArrayShape) -> Self {
        let ty = memref_type(b, shape);
        let parts =
            (0..shape.element_type.num_parts()).map(|_| build_scratch(b, ty, &[])).collect();
        Self { parts, shape: shape.clone() }
    }

    /// The memory of an array, which may only be read.
    pub(super) fn of(b: &Builder<'c>, array: &Array<'c>) -> Self {
        let ty = memref_type(b, &array.shape);
        let read_only = [("read_only", Attribute::unit(b.context))];
        let buffer =
            |part: &Val<'c>| b.value_with("bufferization.to_buffer", &[*part], ty, &read_only);
        Self { parts: array.parts.iter().map(buffer).collect(), shape: array.shape.clone() }
    }

    /// Memory that holds a copy of an array.
    pub(super) fn copy_of(b: &Builder<'c>, array: &Array<'c>) -> Self {
        let (source, copy) = (Self::of(b, array), Self::allocate(b, &array.shape));
        for (from, to) in source.parts.iter().zip(&copy.parts) {
            b.op("memref.copy", &[*from, *to], &[]);
        }
        copy
    }

    /// The array in the memory, which is not written any more: others may read the memory itself, because
    /// a `to_buffer` of the array folds to it.
    pub(super) fn array(self, b: &Builder<'c>) -> Array<'c> {
        let ty = tensor_type(b, &self.shape);
        let unit = Attribute::unit(b.context);
        let attributes = [("restrict", unit)];
        let tensor =
            |part: &Val<'c>| b.value_with("bufferization.to_tensor", &[*part], ty, &attributes);
        Array { parts: self.parts.iter().map(tensor).collect(), shape: self.shape }
    }

    /// The same memory with the parts in the other order: real and imaginary ones exchanged.
    pub(super) fn swapped(&self) -> Self {
        Self { parts: self.parts.iter().rev().copied().collect(), shape: self.shape.clone() }
    }

    pub(super) fn load(&self, b: &Builder<'c>, index: &[Val<'c>]) -> Scalar<'c> {
        let element = self.shape.element_type;
        let stored = storage_type(b, element);
        let load = |part: &Val<'c>| {
            let operands = [&[*part], index].concat();
            decode(b, element.part(), b.value("memref.load", &operands, stored))
        };
        self.parts.iter().map(load).collect()
    }

    pub(super) fn store(&self, b: &Builder<'c>, index: &[Val<'c>], value: &[Val<'c>]) {
        let values = encode_all(b, self.shape.element_type, value);
        for (part, value) in self.parts.iter().zip(values) {
            b.op("memref.store", &[&[value, *part], index].concat(), &[]);
        }
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
            for (source, target) in source.parts.iter().zip(&self.parts) {
                let value = b.value("memref.load", &[&[*source], from].concat(), stored);
                b.op("memref.store", &[&[value, *target], &to[..]].concat(), &[]);
            }
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
        let emitter = IndexExprs {
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

/// Loops over a box, the last dimension innermost.
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
        let mut result = Ok(());
        let bounds = (b.index(0), b.index(*extent), b.index(1));
        build_for(b, bounds, &[], &mut |inside, index, _| {
            indices.push(index);
            result = level(inside, rest, indices, body);
            indices.pop();
            Vec::new()
        });
        result
    }
    level(b, dims, &mut Vec::new(), body)
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
