//! Sizes of operands as expressions over the runtime variables of an `imap.generic`, and which
//! destinations the operation stores completely.

use super::{Indexed, Scatter, map};
use crate::mlir::{self, Op, Val};
use melior::ir::{BlockLike, TypeLike, ValueLike, operation::OperationLike};
use std::collections::BTreeSet;
use tc_ir::{
    Context, Interval,
    expr::{Expr, Var},
    map::IndexingMap,
};

/// Whether a value is of type `index`.
pub fn is_index(value: Val) -> bool {
    value.r#type().is_index()
}

/// The value of an `index` constant.
pub fn constant_index(value: Val) -> Option<i64> {
    mlir::constant_of(value).filter(|_| is_index(value))
}

/// The tensor and the dimension of a `tensor.dim` or `memref.dim` with a constant dimension.
pub fn queried_extent<'c>(value: Val<'c>) -> Option<(Val<'c>, usize)> {
    let is_dim = |op: &Op| mlir::is(*op, "tensor.dim") || mlir::is(*op, "memref.dim");
    let op = mlir::defining_op(value).filter(is_dim)?;
    let dim = constant_index(mlir::operand(op, 1))?;
    Some((mlir::operand(op, 0), usize::try_from(dim).ok()?))
}

/// A value of type `index` as an expression over runtime variables, given their values. Looks
/// through one `imap.apply`.
pub fn size_expr<'c>(ir: &Context, runtimes: &[Val<'c>], value: Val<'c>) -> Option<Expr> {
    let known = |value: Val<'c>| {
        let runtime = runtimes.iter().position(|it| *it == value);
        let variable = runtime.and_then(|number| u32::try_from(number).ok());
        variable
            .map(|number| ir.runtime(number))
            .or_else(|| Some(ir.constant(constant_index(value)?)))
    };
    known(value).or_else(|| {
        let op = mlir::defining_op(value).filter(|op| mlir::is(*op, "imap.apply"))?;
        let map = map::from_attribute(ir, op.attribute("map").ok()?)?;
        let operands: Option<Vec<_>> = mlir::operands(op).into_iter().map(known).collect();
        let operands = operands?;
        let replacement = |var| operands.get(map.position(var)).copied();
        Some(ir.substitute(map.results[mlir::number(value)], &replacement))
    })
}

/// The extent of a dimension of a tensor or memref as an expression over runtime variables, given
/// their values. Emits no operation.
pub fn extent_expr<'c>(
    ir: &Context,
    runtimes: &[Val<'c>],
    tensor: Val<'c>,
    dim: usize,
) -> Option<Expr> {
    let shape = mlir::shape(tensor.r#type());
    if let Some(extent) = *shape.get(dim)? {
        return Some(ir.constant(extent));
    }
    if let Some(init) = destination_of_tiles(tensor) {
        return extent_expr(ir, runtimes, init, dim);
    }
    let size = mlir::defining_op(tensor).and_then(|op| {
        let dynamic = shape[..dim].iter().filter(|extent| extent.is_none()).count();
        match mlir::name(op) {
            "tensor.empty" => Some(mlir::operand(op, dynamic)),
            "tensor.extract_slice" => {
                let sizes = mlir::integers_attr(op, "static_sizes");
                // Without dropped dimensions, sizes and extents correspond.
                let value = || mlir::operand_group(op, 2).get(dynamic).copied();
                (sizes.len() == shape.len()).then(value)?
            }
            _ => None,
        }
    });
    let queried = || {
        let is_extent = |value: &Val<'c>| queried_extent(*value) == Some((tensor, dim));
        let number = runtimes.iter().position(is_extent)?;
        Some(ir.runtime(u32::try_from(number).ok()?))
    };
    size.and_then(|size| size_expr(ir, runtimes, size)).or_else(queried)
}

/// The tensor whose tiles a loop stores, given the argument of its body. An `scf.for` may carry tensors of different
/// extents, except one that tiling is still building: its body has no terminator.
fn destination_of_tiles<'c>(tensor: Val<'c>) -> Option<Val<'c>> {
    let block = mlir::argument_block(tensor)?;
    let op = mlir::argument_parent(tensor)?;
    let is_open = || mlir::is(op, "scf.for") && block.terminator().is_none();
    if !mlir::is(op, "scf.forall") && !is_open() {
        return None;
    }
    let from_end = mlir::arguments(block).len() - mlir::number(tensor);
    op.operand_count().checked_sub(from_end).map(|place| mlir::operand(op, place))
}

/// The dimension variable and the offset of an expression `d + offset`.
pub fn shifted_dim(ir: &Context, expr: Expr) -> Option<(u32, Expr)> {
    let dims: Vec<_> = ir.vars(expr).into_iter().filter(|var| matches!(var, Var::Dim(_))).collect();
    let [Var::Dim(dim)] = dims[..] else { return None };
    let offset = ir.canonicalize(ir.sub(expr, ir.dim(dim)));
    (!ir.vars(offset).contains(&Var::Dim(dim))).then_some((dim, offset))
}

/// The values of a sum such as `d0 + 8 * d1`, and its dimension variables, if they have constant bounds and the sum has
/// each value between its least and its largest one.
fn run(ir: &Context, domain: &IndexingMap, expr: Expr) -> Option<(Interval, Vec<u32>)> {
    let linear = ir.linear_terms(expr)?;
    let (mut lowest, mut steps) = (linear.constant, Vec::new());
    for (term, step) in linear.terms {
        let Some(Var::Dim(dim)) = ir.as_var(term) else { return None };
        let interval = domain.dims[dim as usize].constant_interval(ir)?;
        let distance = i64::try_from(interval.num_members()?).ok()?.checked_sub(1)?;
        lowest = lowest.checked_add(step.checked_mul(interval.lo)?)?;
        steps.push((step, distance, dim));
    }
    steps.sort_unstable();
    let mut reach = 0_i64;
    for (step, distance, _) in &steps {
        if *step < 1 || *distance < 0 || (*distance != 0 && reach < step - 1) {
            return None;
        }
        reach = reach.checked_add(step.checked_mul(*distance)?)?;
    }
    let dims = steps.into_iter().map(|(_, _, dim)| dim).collect();
    Some((Interval::new(lowest, lowest.checked_add(reach)?), dims))
}

/// Whether the subscripts of a destination reach every element of it from the box of the dimension
/// variables. Constraints are ignored.
pub fn reaches_all<'c>(
    ir: &Context,
    domain: &IndexingMap,
    runtimes: &[Val<'c>],
    subscripts: &[Expr],
    init: Val<'c>,
) -> bool {
    let is_zero = |expr| ir.as_constant(ir.canonicalize(expr)) == Some(0);
    let mut used = BTreeSet::new();
    subscripts.iter().enumerate().all(|(place, result)| {
        let Some(extent) = extent_expr(ir, runtimes, init, place) else { return false };
        let (mut first, mut last) = (*result, *result);
        if let Some((values, dims)) = run(ir, domain, *result) {
            (first, last) = (ir.constant(values.lo), ir.constant(values.hi));
            if !dims.into_iter().all(|dim| used.insert(dim)) {
                return false;
            }
        } else if let Some((dim, _)) = shifted_dim(ir, *result) {
            let variable = &domain.dims[dim as usize];
            let at = |bound: Option<Expr>| {
                ir.substitute(*result, &|var| bound.filter(|_| var == Var::Dim(dim)))
            };
            (first, last) = (at(variable.lower), at(variable.upper));
            if !used.insert(dim) {
                return false;
            }
        }
        is_zero(first) && is_zero((ir.wrap(extent) - 1 - last).expr())
    })
}

/// [`Indexed::reads_destination`].
pub(super) fn reads_destination<'c>(op: impl Indexed<'c>, destination: usize) -> bool {
    if mlir::is(op.op(), Scatter::NAME) {
        return true;
    }
    let accumulators = op.accumulators();
    let skips_stores = accumulators.is_empty() && op.frozen_domain().has_constraints();
    if skips_stores || accumulators.iter().any(|it| it.destination() == Some(destination)) {
        return true;
    }
    let ir = Context::new();
    let domain = op.domain(&ir);
    let map = op.frozen_maps().get(op.inputs().len() + destination).copied();
    let init = op.inits().get(destination).copied();
    let covers = map.zip(init).is_some_and(|(map, init)| {
        reaches_all(&ir, &domain, &op.runtimes(), &map.thaw(&ir).results, init)
    });
    !covers
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tc_ir::map::Variable;

    proptest! {
        #[test]
        fn runs_are_the_values_without_gaps(
            terms in prop::collection::vec((1_i64..7, -2_i64..3, 1_i64..5), 1..4),
            constant in -3_i64..4,
        ) {
            let ir = Context::new();
            let (mut domain, mut sum) = (IndexingMap::default(), ir.constant(constant));
            let mut values = BTreeSet::from([constant]);
            for (dim, (step, lowest, count)) in terms.into_iter().enumerate() {
                let interval = Interval::new(lowest, lowest + count - 1);
                domain.dims.push(Variable::bounded(&ir, interval));
                sum = ir.add(sum, ir.mul(ir.dim(dim as u32), ir.constant(step)));
                let added = (interval.lo..=interval.hi).map(|it| step * it);
                values = added.flat_map(|it| values.iter().map(move |old| old + it)).collect();
            }
            let all = (*values.first().unwrap(), *values.last().unwrap());
            let is_run = values.len() as i64 == all.1 - all.0 + 1;
            match run(&ir, &domain, sum) {
                Some((found, _)) => {
                    prop_assert!(is_run);
                    prop_assert_eq!((found.lo, found.hi), all);
                }
                None => prop_assert!(!is_run),
            }
        }
    }
}
