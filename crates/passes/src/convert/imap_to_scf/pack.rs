//! Inputs that would be read across their rows again and again are copied first, so that
//! they are read along them.
//!
//! `C(m, n) +=! A(m, k) * B(n, k)` with a short or a reused `k` is best done with `n`
//! along the lanes of vectors, but `B` is not contiguous in `n`. As `B` does not depend
//! on `m`, a transposed copy costs one pass over it and serves every `m`. The copy is an
//! `imap.generic` of its own, which becomes a transposition in registers.
//!
//! The inputs of a batch of such products are copied at once. Done for constant extents only, if the
//! copy is small and each of its elements serves many points. Elements that constraints exclude are
//! not copied: they need not exist.

use crate::convert::loop_nest::{
    emit::Nest,
    order::{Plan, step_along},
};
use crate::loops::build_scratch;
use melior::ir::{ValueLike, r#type::MemRefType};
use std::collections::BTreeSet;
use tc_dialects::{
    imap::{self, Access, Generic, Indexed, Runtime, View},
    mlir::{self, Builder},
};
use tc_ir::{Constraint, Expr, IndexingMap, Var, Variable};

/// How many points a copied element has to serve if the reduction is short, and folding
/// across the lanes for each result takes much of the time.
const MIN_REUSE: i64 = 32;
/// How many it has to serve otherwise.
const MIN_REUSE_LONG: i64 = 1024;
/// Vectors that a short reduction has along its innermost variable.
const SHORT: i64 = 8;
/// The most elements of a copy: 16 MB of floats.
const MAX_ELEMENTS: i64 = 1 << 22;

/// Copies the inputs that keep a dimension variable from being along the lanes, if that
/// is worth it, and returns the copying operations, which are still to be converted.
pub(super) fn pack<'c>(
    nest: &mut Nest<'c>,
    plan: &Plan,
    builder: &Builder<'c>,
) -> Vec<Generic<'c>> {
    let Plan::Registers { dims, ranges } = plan else { return Vec::new() };
    if ranges.is_empty() || nest.choices.vector_bits < 128 {
        return Vec::new();
    }
    let try_lane = |lane: &Var| Some((*lane, misfits(nest, dims, ranges, *lane)?));
    let found = dims.iter().rev().find_map(try_lane);
    let Some((lane, misfits)) = found else { return Vec::new() };
    misfits.into_iter().map(|number| copy(nest, builder, number, lane)).collect()
}

/// The inputs to be copied so that `lane` can be along the lanes; `None` if it cannot be,
/// or is not worth it.
fn misfits(nest: &Nest, dims: &[Var], ranges: &[Var], lane: Var) -> Option<Vec<usize>> {
    let lanes = nest.choices.vector_bits / 32;
    if nest.extent(lane)? < lanes / 2
        || nest.outputs.iter().any(|output| step_along(nest, &output.map, lane) != Some(1))
    {
        return None;
    }
    let innermost = *ranges.last()?;
    let used = || nest.inputs.iter().filter(|input| input.is_used);
    // Without the copy, a long reduction runs along the lanes, if its inputs allow that.
    let is_along = used().all(|it| matches!(step_along(nest, &it.map, innermost), Some(0 | 1)));
    let is_long = is_along && SHORT * lanes < nest.extent(innermost)?;
    let min_reuse = if is_long { MIN_REUSE_LONG } else { MIN_REUSE };
    // What every operand depends on selects one of a batch of reductions, each with inputs of its own.
    let maps = || used().map(|it| &it.map).chain(nest.outputs.iter().map(|it| &it.map));
    let is_batch = |var: &Var| maps().all(|map| nest.needs(&map.results).contains(var));
    let mut found = Vec::new();
    for (number, input) in nest.inputs.iter().enumerate().filter(|(_, input)| input.is_used) {
        if matches!(step_along(nest, &input.map, lane), Some(0 | 1)) {
            continue;
        }
        let vars = nest.ir.vars_of_all(&input.map.results);
        let needs = nest.needs(&input.map.results);
        // Elements that are read in the loops select rows, of which a copy would read few.
        let is_value = |var: &Var| !matches!(var, Var::Runtime(number) if nest.runtimes[*number as usize].1.is_some());
        let is_plain = vars.iter().all(is_value) && input.map.constraints.is_empty();
        let mut elements: i64 = 1;
        for var in &needs {
            elements = elements.checked_mul(nest.extent(*var)?)?;
        }
        let mut reuse: i64 = 1;
        for var in dims.iter().filter(|var| !needs.contains(var)) {
            reuse = reuse.saturating_mul(nest.extent(*var).unwrap_or(min_reuse));
        }
        // The copy has the constraints on its variables; others may exclude its points, too.
        let is_copied = nest.domain.constraints.iter().all(|constraint| {
            nest.needs(&[constraint.expr]).is_disjoint(&needs) || concerns(nest, constraint, &needs)
        });
        let is_dim = |var: &&Var| matches!(var, Var::Dim(_)) && !is_batch(var);
        let dims_needed = needs.iter().filter(is_dim).count();
        if !is_plain
            || !is_copied
            || dims_needed != 1
            || MAX_ELEMENTS < elements
            || reuse < min_reuse
        {
            return None;
        }
        found.push(number);
    }
    (!found.is_empty()).then_some(found)
}

/// Whether a constraint is one on these dimension and range variables.
fn concerns(nest: &Nest, constraint: &Constraint, vars: &BTreeSet<Var>) -> bool {
    let needs = nest.needs(&[constraint.expr]);
    let has_runtimes =
        nest.ir.vars(constraint.expr).iter().any(|var| matches!(var, Var::Runtime(_)));
    !needs.is_empty() && needs.is_subset(vars) && !has_runtimes
}

/// Copies an input into a buffer whose dimensions are the variables it depends on,
/// `lane` the innermost.
fn copy<'c>(nest: &mut Nest<'c>, builder: &Builder<'c>, number: usize, lane: Var) -> Generic<'c> {
    let ir = &nest.ir;
    let input = &nest.inputs[number];
    let needs: BTreeSet<Var> = nest.needs(&input.map.results);
    let mut order: Vec<Var> = needs.iter().copied().filter(|var| *var != lane).collect();
    order.push(lane);
    let element = mlir::element_type(input.buffer.r#type());
    let extents: Vec<i64> = order.iter().filter_map(|var| nest.extent(*var)).collect();
    let packed =
        build_scratch(builder, MemRefType::contiguous(element, &extents, None).into(), &[]);

    // In the copy, the variables are dimension variables in the order of the buffer.
    let read = ir.vars_of_all(&input.map.results);
    let runtimes: Vec<Var> =
        read.into_iter().filter(|var| matches!(var, Var::Runtime(_))).collect();
    let dims = (0..).zip(&order).map(|(dim, var)| (*var, ir.dim(dim)));
    let values = (0..).zip(&runtimes).map(|(number, var)| (*var, ir.runtime(number)));
    let numbered: Vec<(Var, Expr)> = dims.chain(values).collect();
    let renamed = |var: Var| match numbered.iter().find(|(known, _)| *known == var) {
        Some((_, expr)) => Some(*expr),
        None => nest.fixed(var).map(|value| ir.constant(value)),
    };
    let bounded = |vars: &[Var]| {
        let bounded = |var: &Var| Variable::bounded(ir, nest.intervals.of(*var));
        vars.iter().map(bounded).collect()
    };
    let origin = |var: &Var| ir.constant(nest.intervals.of(*var).lo);
    let places = numbered[..order.len()].iter();
    let places = places.map(|(var, expr)| ir.sub(*expr, origin(var))).collect();
    let constraints = nest.domain.constraints.iter();
    let constraints = constraints
        .filter(|it| concerns(nest, it, &needs))
        .map(|it| Constraint { expr: ir.substitute(it.expr, &renamed), interval: it.interval });
    let constraints = constraints.collect();
    let subscripts = ir.substitute_all(&input.map.results, &renamed);
    let value = |var| match var {
        Var::Runtime(number) => Some(Runtime::Index(nest.runtimes[number as usize].0)),
        _ => None,
    };
    let view = View {
        domain: IndexingMap {
            dims: bounded(&order),
            runtimes: bounded(&runtimes),
            constraints,
            ..IndexingMap::default()
        },
        runtimes: runtimes.into_iter().filter_map(value).collect(),
        inputs: vec![Access::new(input.buffer, subscripts)],
        outputs: vec![Access::new(packed, places)],
        accumulators: Vec::new(),
        ordered: false,
        combiner: None,
    };
    let generic = view.build(ir, builder, false);
    let body = generic.body();
    let inside = Builder::at_end(builder.context, body, builder.location);
    imap::build_yield(&inside, &mlir::arguments(body));

    let results = order.iter().map(|var| ir.sub(ir.var(*var), origin(var))).collect();
    let input = &mut nest.inputs[number];
    input.buffer = packed;
    input.map.results = results;
    generic
}
