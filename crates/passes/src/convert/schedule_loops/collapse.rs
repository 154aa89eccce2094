//! Two variables that walk through memory as one become one.
//!
//! Where every operand has `a` and `b` as two neighbouring subscripts, the inner of
//! which covers the whole of its dimension, or `a * extent + b`, or neither, the pair is one variable of
//! the product of their extents on buffers of one dimension less: a sum over rows and
//! columns is a sum over elements, and an operation on elements of a tensor is one on a
//! vector. Loops become longer, above all the innermost.
//!
//! `b` stays in the domain with one value, so that no variable changes its number; loops
//! over single values are not built. Only constant extents of `b` are looked at.

use crate::{
    convert::loop_nest::emit::{Nest, accessed, constrained, index_of},
    loops::{has_identity_layout, memref},
};
use melior::ir::ValueLike;
use std::collections::BTreeSet;
use tc_dialects::{
    imap::{Access, Generic, Indexed, Inside, Runtime, View, tiling},
    mlir::{self, Builder, Val},
};
use tc_ir::{Expr, IndexingMap, Interval, Node, Var};

/// Collapses variables until none is left to be, and replaces the operation if it is another one now. Runtime variables
/// that the nest has read are values in the new one.
pub(super) fn rebuild<'c>(nest: &mut Nest<'c>, generic: Generic<'c>) -> Option<Generic<'c>> {
    let builder = Builder::before(generic.op());
    let has_read = |(now, old): (&(Val<'c>, Option<IndexingMap>), &Val<'c>)| now.0 != *old;
    let mut has_changed = nest.runtimes.iter().zip(&generic.runtimes()).any(has_read);
    let used_as_value = indices(nest);
    while let Some((outer, inner)) = find(nest, &used_as_value) {
        apply(nest, &builder, outer, inner);
        has_changed = true;
    }
    has_changed.then(|| replace(nest, &builder, generic))
}

fn replace<'c>(nest: &Nest<'c>, builder: &Builder<'c>, generic: Generic<'c>) -> Generic<'c> {
    let access = |value, map: &IndexingMap, fill| {
        let (subscripts, guard) = (map.results.clone(), map.constraints.clone());
        Access { value, subscripts, guard, fill }
    };
    let runtime = |((value, map), fill): (&(Val<'c>, Option<IndexingMap>), &_)| match map {
        None => Runtime::Index(*value),
        Some(map) => Runtime::Element(access(*value, map, *fill)),
    };
    let runtimes = nest.runtimes.iter().zip(&nest.runtime_fills).map(runtime);
    let view = View {
        domain: nest.domain.clone(),
        runtimes: runtimes.collect(),
        inputs: nest.inputs.iter().map(|it| access(it.buffer, &it.map, it.fill)).collect(),
        outputs: nest.outputs.iter().map(|it| access(it.buffer, &it.map, None)).collect(),
        ..View::of(&nest.ir, generic)
    };
    let epilogue = generic.epilogue();
    let new = view.build(&nest.ir, builder, epilogue.is_some());
    let location = builder.location;
    mlir::copy_block(builder.context, generic.body(), new.body(), location);
    if let (Some(from), Some(to)) = (epilogue, new.epilogue()) {
        mlir::copy_block(builder.context, from, to, location);
    }
    tiling::copy_attributes(generic.op(), new.op());
    mlir::erase(generic.op());
    new
}

/// The variables of which the body or the epilogue asks for the value.
fn indices(nest: &Nest) -> BTreeSet<Var> {
    let blocks = nest.generic.blocks();
    let ops = blocks.iter().copied().flat_map(mlir::ops);
    let mut found: BTreeSet<_> = ops.filter_map(index_of).collect();
    for inside in Inside::all_of(&blocks) {
        found.extend(nest.needs(&constrained(&inside.conditions(&nest.ir))));
    }
    found
}

/// A pair that is one variable to every operand.
fn find(nest: &Nest, used_as_value: &BTreeSet<Var>) -> Option<(Var, Var)> {
    let mut pinned = used_as_value.clone();
    for (var, _) in nest.domain.vars().filter(|(var, _)| !matches!(var, Var::Runtime(_))) {
        pinned.extend(nest.bound_needs(var));
    }
    for constraint in &nest.domain.constraints {
        pinned.extend(nest.needs(&[constraint.expr]));
    }
    for (_, map) in &nest.runtimes {
        pinned.extend(map.iter().flat_map(|map| nest.needs(&accessed(map))));
    }
    for input in nest.inputs.iter().filter(|input| input.is_used) {
        pinned.extend(nest.needs(&constrained(&input.map.constraints)));
    }
    let free = |var: &Var| !pinned.contains(var) && nest.fixed(*var).is_none();
    // The pairs that the first destination has, then those of the inputs: a pair has to
    // be in one of them.
    let maps = nest.outputs.iter().map(|it| &it.map).chain(nest.inputs.iter().map(|it| &it.map));
    for map in maps {
        for pair in map.results.windows(2) {
            let vars = [pair[0], pair[1]].map(|expr| nest.ir.as_var(expr));
            if let [Some(outer), Some(inner)] = vars
                && outer != inner
                && matches!(outer, Var::Dim(_)) == matches!(inner, Var::Dim(_))
                && !matches!(outer, Var::Runtime(_))
                && !matches!(inner, Var::Runtime(_))
                && free(&outer)
                && free(&inner)
                && keeps_order(nest, outer, inner)
                && fits(nest, outer, inner)
            {
                return Some((outer, inner));
            }
        }
    }
    None
}

/// Whether the values of a pair come one after the other in the order of the ranges, if that matters.
fn keeps_order(nest: &Nest, outer: Var, inner: Var) -> bool {
    match (outer, inner) {
        (Var::Range(outer), Var::Range(inner)) if nest.generic.keeps_order() => {
            outer < inner && (outer + 1..inner).all(|it| nest.fixed(Var::Range(it)).is_some())
        }
        _ => true,
    }
}

/// Whether every operand has the pair as neighbours that are contiguous, as one, or not at all.
fn fits(nest: &Nest, outer: Var, inner: Var) -> bool {
    let Some(extent) = nest.extent(inner).filter(|_| nest.intervals.of(inner).lo == 0) else {
        return false;
    };
    let inputs = nest.inputs.iter().filter(|input| input.is_used);
    inputs
        .map(|input| (input.buffer, &input.map))
        .chain(nest.outputs.iter().map(|output| (output.buffer, &output.map)))
        .all(|(buffer, map)| {
            let uses = |var: Var| {
                map.results.iter().filter(|expr| nest.ir.vars(**expr).contains(&var)).count()
            };
            match place(nest, map, outer, inner) {
                None => map.results.iter().all(|expr| is_one(nest, *expr, extent, (outer, inner))),
                Some(place) => {
                    let ty = buffer.r#type();
                    uses(outer) == 1
                        && uses(inner) == 1
                        && mlir::shape(ty).get(place + 1) == Some(&Some(extent))
                        && has_identity_layout(ty)
                }
            }
        })
}

/// Whether an expression depends on `extent * outer + inner` only, if at all.
fn is_one(nest: &Nest, expr: Expr, extent: i64, (outer, inner): (Var, Var)) -> bool {
    let factors = [outer, inner].map(|var| nest.ir.coefficient(expr, var));
    let [Some(of_outer), Some(of_inner)] = factors else { return false };
    of_inner.checked_mul(extent) == Some(of_outer)
}

/// The dimension of which the subscript is `outer`, if that of the next one is `inner`.
fn place(nest: &Nest, map: &IndexingMap, outer: Var, inner: Var) -> Option<usize> {
    let is = |expr, var| nest.ir.node(expr) == Node::Var(var);
    map.results.windows(2).position(|pair| is(pair[0], outer) && is(pair[1], inner))
}

fn apply<'c>(nest: &mut Nest<'c>, builder: &Builder<'c>, outer: Var, inner: Var) {
    let extent = nest.extent(inner).expect("checked by `fits`");
    let mut changes = Vec::new();
    let inputs = nest.inputs.iter().filter(|input| input.is_used);
    let operands = inputs
        .map(|input| (input.buffer, &input.map))
        .chain(nest.outputs.iter().map(|output| (output.buffer, &output.map)));
    for (buffer, map) in operands {
        changes.push(
            place(nest, map, outer, inner).map(|place| (place, merge(builder, buffer, place))),
        );
    }
    let mut changes = changes.into_iter();
    // Nothing reads the others; their subscripts must not leave them.
    for input in nest.inputs.iter_mut().filter(|input| !input.is_used) {
        let first = |var| (var == outer).then(|| nest.ir.constant(0));
        input.map.results = nest.ir.substitute_all(&input.map.results, &first);
    }
    let inputs = nest.inputs.iter_mut().filter(|input| input.is_used);
    let slots = inputs
        .map(|input| (&mut input.buffer, &mut input.map))
        .chain(nest.outputs.iter_mut().map(|output| (&mut output.buffer, &mut output.map)));
    for (buffer, map) in slots {
        if let Some((place, merged)) = changes.next().flatten() {
            *buffer = merged;
            map.results.remove(place + 1);
        } else {
            map.results = nest.ir.substitute_all(&map.results, &|var| match var {
                _ if var == outer => Some(nest.ir.constant(0)),
                _ if var == inner => Some(nest.ir.var(outer)),
                _ => None,
            });
        }
    }
    let ir = &nest.ir;
    let (lower, upper) = nest.bounds_of(outer);
    let (first, last) = (ir.wrap(lower) * extent, ir.wrap(upper) * extent + (extent - 1));
    if let Some(variable) = nest.domain.variable_mut(outer) {
        (variable.lower, variable.upper) = (Some(first.expr()), Some(last.expr()));
    }
    if let Some(variable) = nest.domain.variable_mut(inner) {
        variable.set_interval(ir, Interval::point(0));
    }
    nest.intervals = nest.domain.intervals(&nest.ir);
}

/// `memref.collapse_shape` of the dimensions `place` and `place + 1`.
fn merge<'c>(builder: &Builder<'c>, buffer: Val<'c>, place: usize) -> Val<'c> {
    let ty = buffer.r#type();
    let mut shape = mlir::shape(ty);
    let rank = shape.len();
    let inner = shape.remove(place + 1);
    shape[place] = match (shape[place], inner) {
        (Some(outer), Some(inner)) => outer.checked_mul(inner),
        _ => None,
    };
    let mut groups: Vec<String> = (0..rank).map(|dim| format!("[{dim}]")).collect();
    groups[place] = format!("[{place}, {}]", place + 1);
    groups.remove(place + 1);
    let groups = mlir::parse_attribute(builder.context, &format!("[{}]", groups.join(", ")));
    builder.value_with(
        "memref.collapse_shape",
        &[buffer],
        memref(&shape, mlir::element_type(ty)),
        &[("reassociation", groups)],
    )
}
