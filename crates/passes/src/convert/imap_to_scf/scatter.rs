//! Loops of `imap.scatter`.
//!
//! The updates are done in lexicographic order of the dimension variables, the last of which is the
//! innermost loop. Each condition is tested in the outermost loop in which it is known, so that
//! rows have one test and one load of their index.

use super::{
    Choices,
    emit::{Nest, Scope},
    nest::{declare_distinct, row_loop},
};
use tc_dialects::{
    imap::Scatter,
    mlir::{self, Builder},
    report::Report,
};
use tc_ir::Var;

/// Replaces an `imap.scatter` on buffers by loops.
pub(super) fn convert<'c>(scatter: Scatter<'c>, choices: Choices) -> Result<(), Report<'c>> {
    let op = scatter.op();
    let mut nest = Nest::new(scatter.into(), choices)?;
    // The destinations have one guard.
    let guards = nest.outputs.iter_mut().map(|it| std::mem::take(&mut it.map.constraints));
    let guard = guards.last();
    nest.domain.constraints.extend(guard.unwrap_or_default());
    let builder = Builder::before(op);
    let mut scope = nest.outer_scope(&builder);
    declare_distinct(&nest, &builder, &mut scope);
    let is_loop = |var: &Var| nest.fixed(*var).is_none();
    let dims: Vec<_> = (0..nest.domain.dims.len() as u32).map(Var::Dim).filter(is_loop).collect();
    let conditions: Vec<_> = (0..nest.domain.constraints.len()).collect();
    update(&nest, &builder, &scope, &dims, &conditions);
    mlir::erase(op);
    Ok(())
}

/// The loops over these dimension variables, in which these constraints are still to be tested.
fn update<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    dims: &[Var],
    conditions: &[usize],
) {
    let is_known = |number: &usize| {
        let needs = nest.needs(&[nest.domain.constraints[*number].expr]);
        dims.iter().all(|var| !needs.contains(var))
    };
    let (ready, late): (Vec<usize>, Vec<usize>) = conditions.iter().copied().partition(is_known);
    nest.guarded(builder, scope, &ready, &[], &mut |builder, scope| {
        match dims.split_first() {
            Some((var, rest)) => {
                row_loop(nest, builder, scope, *var, &[], false, &mut |builder, scope| {
                    update(nest, builder, scope, rest, &late);
                });
            }
            None => store(nest, builder, scope),
        }
        Vec::new()
    });
}

/// Updates the elements of one point.
fn store<'c>(nest: &Nest<'c>, builder: &Builder<'c>, scope: &mut Scope<'c>) {
    let stored = match nest.is_map_form() {
        true => nest.compute(builder, scope),
        false => {
            let numbers = 0..nest.accumulators.len();
            let held: Vec<_> = numbers.map(|number| nest.start(builder, scope, number)).collect();
            nest.fold(builder, scope, &held)
        }
    };
    for (number, value) in stored.into_iter().enumerate() {
        nest.store_output(builder, scope, number, value);
    }
}
