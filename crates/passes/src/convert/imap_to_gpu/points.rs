//! Points: each thread computes every n-th point, or n-th vector of neighbouring points, of the dimension
//! variables.

use super::{ACCESS_BYTES, Grid, SECTOR_BYTES, Share, Space, divide};
use crate::{
    convert::index_emitter::IndexMath,
    convert::loop_nest::{
        emit::{Nest, Scope},
        loops::at_point,
        order,
        vectors::{extract, vector_type},
    },
    loops,
};
use melior::ir::{Attribute, Type, ValueLike};
use std::collections::BTreeMap;
use tc_dialects::mlir::{self, Builder, Val};
use tc_ir::{Expr, IndexingMap, Var};

/// A thread per point.
pub(super) fn points<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    grid: &Grid<'c>,
    dims: &[Var],
    ranges: &[Var],
) {
    let mut scope = scope.clone();
    let space = Space::new(nest, builder, &mut scope, dims);
    let at_once = points_at_once(nest, dims);
    let Share { first, step } = grid.groups(builder, 1);
    let end = divide(builder, space.total, at_once);
    nest.load_invariant(builder, &mut scope, &[dims, ranges].concat());
    let (narrowing, tested) =
        nest.distribute_constraints(ranges, &|var| matches!(var, Var::Range(_)));
    loops::build_for(builder, (first, end, step), &[], &mut |builder, point, _| {
        let mut scope = scope.clone();
        space.enter(builder, &mut scope, point, at_once);
        if at_once == 1 {
            at_point(nest, builder, &scope, ranges, &narrowing, &tested);
        } else {
            neighbours(nest, builder, &scope, dims[dims.len() - 1], at_once);
        }
        Vec::new()
    });
}

/// The number of neighbouring points that a thread computes at once: one access of at most 128 bits per operand
/// whose elements are neighbours. So the accesses of the threads of a warp are neighbours, too.
fn points_at_once(nest: &Nest, dims: &[Var]) -> i64 {
    let Some(inner) = dims.last() else { return 1 };
    if !nest.is_map_form() || !nest.domain.constraints.is_empty() {
        return 1;
    }
    let is_index = |(_, map): &(Val, Option<IndexingMap>)| {
        map.as_ref().is_some_and(|map| order::step_along(nest, map, *inner) != Some(0))
    };
    if nest.runtimes.iter().any(is_index) {
        return 1;
    }
    let inputs = nest.inputs.iter().filter(|it| it.is_used).map(|it| (it.buffer.r#type(), &it.map));
    let outputs = nest.outputs.iter().map(|it| (it.buffer.r#type(), &it.map));
    let accesses: Vec<_> =
        inputs.filter(|(ty, map)| are_near(nest, *ty, map, *inner)).chain(outputs).collect();
    let widths =
        accesses.iter().map(|(ty, _)| i64::from(mlir::byte_width(mlir::element_type(*ty))));
    let count = widths.max().map_or(1, |bytes| ACCESS_BYTES / bytes).max(1);
    let is_multiple = nest.extent(*inner).is_some_and(|extent| extent % count == 0);
    let are_vectors = accesses.iter().all(|(ty, map)| is_vector(nest, *ty, map, *inner, count));
    if is_multiple && are_vectors { count } else { 1 }
}

/// Whether the elements of an operand at neighbouring points are different ones, which share a sector of memory.
fn are_near(nest: &Nest, buffer: Type, map: &IndexingMap, inner: Var) -> bool {
    let bytes = i64::from(mlir::byte_width(mlir::element_type(buffer)));
    let step =
        order::step_along(nest, map, inner).map(|step| step.saturating_abs().saturating_mul(bytes));
    step.is_some_and(|step| 0 < step && step < SECTOR_BYTES)
}

/// Whether so many neighbouring points of a variable, from a multiple of their number on, touch elements that
/// an aligned vector holds. A vector of truth values would be one of bits.
fn is_vector(nest: &Nest, buffer: Type, map: &IndexingMap, inner: Var, count: i64) -> bool {
    let Some((last, outer)) = map.results.split_last() else { return false };
    let rows_are_aligned = outer.is_empty()
        || mlir::shape(buffer).last().copied().flatten().is_some_and(|extent| extent % count == 0);
    let first = nest.ir.substitute(*last, &|var| (var == inner).then(|| nest.ir.constant(0)));
    let (lower, _) = nest.bounds_of(inner);
    map.constraints.is_empty()
        && mlir::integer_width(mlir::element_type(buffer)) != Some(1)
        && loops::has_identity_layout(buffer)
        && order::step_along(nest, map, inner) == Some(1)
        && rows_are_aligned
        && is_multiple_of(nest, first, count)
        && is_multiple_of(nest, lower, count)
}

/// Whether an expression is seen to be a multiple of a number.
fn is_multiple_of(nest: &Nest, expr: Expr, number: i64) -> bool {
    let Some(linear) = nest.ir.linear_terms(expr) else { return false };
    linear.constant % number == 0
        && linear.terms.iter().all(|(_, coefficient)| coefficient % number == 0)
}

/// Computes neighbouring points with one access per operand whose elements are neighbours.
fn neighbours<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    inner: Var,
    count: i64,
) {
    let mut scope = scope.clone();
    // By input, the elements at all points.
    let mut loaded: BTreeMap<usize, Vec<Val<'c>>> = BTreeMap::new();
    for (number, input) in nest.inputs.iter().enumerate() {
        let ty = input.buffer.r#type();
        if !input.is_used || !is_vector(nest, ty, &input.map, inner, count) {
            continue;
        }
        let vector = vector_type(mlir::element_type(ty), count);
        let indices = nest.exprs(builder, &mut scope, &input.map.results, true);
        let operands = [&[input.buffer], &indices[..]].concat();
        let attributes = [aligned(builder, vector, count)];
        let elements = builder.value_with("vector.load", &operands, vector, &attributes);
        loaded.insert(number, (0..count).map(|place| extract(builder, elements, place)).collect());
    }
    let computed: Vec<_> = (0..count)
        .map(|point| {
            let mut scope = scope.clone();
            let value = builder.add_index(scope.values[&inner], builder.index(point));
            scope.values.insert(inner, value);
            let elements = loaded.iter();
            scope.loaded.extend(elements.map(|(number, all)| (*number, all[point as usize])));
            nest.compute(builder, &mut scope)
        })
        .collect();
    for (number, output) in nest.outputs.iter().enumerate() {
        let elements: Vec<_> = computed.iter().map(|values| values[number]).collect();
        let vector = vector_type(output.element, count);
        let value = builder.value("vector.from_elements", &elements, vector);
        let indices = nest.exprs(builder, &mut scope, &output.map.results, true);
        let operands = [&[value, output.buffer], &indices[..]].concat();
        let attributes = [aligned(builder, vector, count)];
        builder.op_with("vector.store", &operands, &[], &attributes, vec![]);
    }
}

/// The attribute that states that an access is aligned to the size of its vector, or to one access.
fn aligned<'c>(
    builder: &Builder<'c>,
    vector: Type<'c>,
    count: i64,
) -> (&'static str, Attribute<'c>) {
    let bytes = count * i64::from(mlir::byte_width(mlir::element_type(vector)));
    ("alignment", mlir::i64_attr(builder.context, bytes.min(ACCESS_BYTES)))
}
