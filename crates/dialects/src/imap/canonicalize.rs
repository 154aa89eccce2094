//! Canonicalization of `imap.generic`: what is known of the values of runtime variables.
//!
//! * A constant value replaces its variable.
//! * The bounds of a variable shrink to what upstream proves of a value that `affine` operations
//!   compute or that a loop counts, such as the size of a tile that may be cut at the end.

use super::{
    Generic, Indexed,
    extents::{constant_index, is_index},
    map,
};
use crate::{
    ffi,
    mlir::{self, Op, Val},
};
use tc_ir::{
    Context, Interval,
    expr::{Expr, Var},
    map::{IndexingMap, Variable},
};

/// Whether upstream can bound a value by looking at few operations.
fn has_bounds(value: Val) -> bool {
    match mlir::defining_op(value) {
        Some(op) => mlir::name(op).starts_with("affine."),
        None => {
            let is_loop = |op: Op| ["scf.for", "scf.forall"].contains(&mlir::name(op));
            mlir::argument_parent(value).is_some_and(is_loop)
        }
    }
}

/// The variable with bounds that a value is known to have.
fn bounded<'c>(ir: &Context, variable: &Variable, value: Val<'c>) -> Option<Variable> {
    let old = variable.constant_interval(ir).filter(|_| has_bounds(value))?;
    let (lower, upper) = ffi::constant_bounds(value);
    let interval = old.intersect(Interval::new(lower, upper));
    if interval == old || interval.is_empty() {
        return None;
    }
    let mut variable = variable.clone();
    variable.set_interval(ir, interval);
    Some(variable)
}

/// Replaces variables of a map by expressions, and writes all expressions in normal form.
fn substitute(ir: &Context, map: &mut IndexingMap, replacement: &dyn Fn(Var) -> Option<Expr>) {
    map.substitute(ir, replacement);
    for variable in map.dims.iter_mut().chain(&mut map.ranges).chain(&mut map.runtimes) {
        for bound in variable.lower.iter_mut().chain(&mut variable.upper) {
            *bound = ir.canonicalize(*bound);
        }
    }
    for result in &mut map.results {
        *result = ir.canonicalize(*result);
    }
}

/// Canonicalizes an operation in place, and returns whether it changed.
pub fn canonicalize(generic: Generic) -> bool {
    // Most operations need no look at their maps.
    let is_known = |value: &Val| constant_index(*value).is_some() || has_bounds(*value);
    if !generic.runtimes().iter().any(|value| is_index(*value) && is_known(value)) {
        return false;
    }
    let ir = Context::new();
    let mut parts = generic.parts(&ir);
    let constants: Vec<_> = parts.runtimes.iter().map(|value| constant_index(*value)).collect();
    let mut has_changed = constants.iter().any(Option::is_some);
    for (variable, value) in parts.domain.runtimes.iter_mut().zip(&parts.runtimes) {
        if is_index(*value)
            && let Some(bounded) = bounded(&ir, variable, *value)
        {
            *variable = bounded;
            has_changed = true;
        }
    }
    if !has_changed {
        return false;
    }
    for map in std::iter::once(&mut parts.domain).chain(&mut parts.maps) {
        substitute(&ir, map, &|var| match var {
            Var::Runtime(number) => constants[number as usize].map(|value| ir.constant(value)),
            _ => None,
        });
    }
    parts.drop_unused_runtimes(&ir);
    let context = mlir::context_of(generic.op());
    let maps: Vec<_> = parts.maps.iter().map(|map| map::to_attribute(context, &ir, map)).collect();
    let groups = [parts.runtimes.len(), parts.inputs.len(), parts.inits.len()];
    let op = generic.op();
    mlir::set_operands(op, &[parts.runtimes, parts.inputs, parts.inits].concat());
    mlir::set_attribute(op, "operandSegmentSizes", mlir::segments(context, &groups));
    mlir::set_attribute(op, "domain", map::to_attribute(context, &ir, &parts.domain));
    mlir::set_attribute(op, "maps", mlir::array(context, &maps));
    true
}
