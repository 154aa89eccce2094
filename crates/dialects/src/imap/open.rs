//! A fold as several operations, so that its ranges can be cut.
//!
//! ```mlir
//! %y = imap.generic (i)[k] ins(%x[i, k], %b[i]) outs(%e[i]) fold [add f32] {..} epilogue {..}
//! ```
//!
//! becomes
//!
//! ```mlir
//! %i = imap.generic (i) outs(%e[i]) { 0.0 }
//! %a = imap.generic (i)[k] ins(%x[i, k]) outs(%i[i]) fold [add f32 from outs] {..}
//! %y = imap.generic (i) ins(%a[i], %b[i]) outs(%a[i]) {..}
//! ```

use super::{
    Access, Accumulator, Generic, Indexed, Inside, Runtime, Start, View, build_yield,
    substitute_in_conditions,
    tiling::{copy_attributes, stores_apart},
};
use crate::mlir::{self, Blk, Builder, Val, ValueMap};
use melior::ir::{ValueLike, operation::OperationLike};
use tc_ir::{Context, expr::Var};

/// Replaces a fold by operations that write its starts, accumulate in the destinations, and apply the epilogue. The
/// first and the last one are left out if they would do nothing. Gives the one that accumulates.
///
/// # Errors
/// The fold cannot be divided, for this reason.
pub fn open<'c>(ir: &Context, generic: Generic<'c>) -> Result<Generic<'c>, &'static str> {
    can_open(ir, generic)?;
    let builder = Builder::before(generic.op()).located(generic.op().location());
    let view = View::of(ir, generic);
    let mut fold = view.clone();
    for (number, accumulator) in view.accumulators.iter().enumerate() {
        if accumulator.destination().is_some() {
            continue;
        }
        let output = &mut fold.outputs[number];
        if mlir::element_type(output.value.r#type()) != accumulator.ty {
            output.value = builder.empty_like(output.value, accumulator.ty);
        }
        let mut init = in_map_form(&view);
        init.outputs = vec![output.clone()];
        init.drop_unused_runtimes(ir, &[]);
        let init = init.build(ir, &builder, false);
        let inside = Builder::at_end(builder.context, init.body(), builder.location);
        let start = accumulator.build_start(&inside, |_| unreachable!("not from a destination"));
        build_yield(&inside, &[start]);
        output.value = mlir::result(init.op(), 0);
        fold.accumulators[number].start = Start::Destination(number);
    }
    let fold = build_fold(ir, &builder, generic, fold);
    copy_attributes(generic.op(), fold.op());
    let mut results = mlir::results(fold.op());
    if generic.epilogue().is_some() {
        let accumulated = results.iter().zip(&view.outputs);
        let accumulated: Vec<_> =
            accumulated.map(|(value, output)| Access { value: *value, ..output.clone() }).collect();
        let mut finish = view.clone();
        // In place, where the types allow it.
        for (output, it) in finish.outputs.iter_mut().zip(&accumulated) {
            if it.value.r#type() == output.value.r#type() {
                output.value = it.value;
            }
        }
        let finish = build_finish(ir, &builder, generic, &finish, accumulated);
        results = mlir::results(finish.op());
    }
    for (old, new) in mlir::results(generic.op()).into_iter().zip(results) {
        mlir::replace_uses(old, new);
    }
    mlir::erase(generic.op());
    Ok(fold)
}

/// Whether a fold can be divided.
///
/// # Errors
/// It cannot, for this reason.
pub fn can_open(ir: &Context, generic: Generic) -> Result<(), &'static str> {
    let view = View::of(ir, generic);
    if view.accumulators.len() != view.outputs.len() {
        return Err("it has other accumulators than destinations");
    }
    if !view.inits().iter().all(|it| mlir::is_tensor(it.r#type())) {
        return Err("it works on buffers");
    }
    let is_moved =
        |(it, number): (&Accumulator, usize)| it.destination().is_some_and(|from| from != number);
    if view.accumulators.iter().zip(0..).any(is_moved) {
        return Err("an accumulator starts from the destination of another one");
    }
    if !stores_apart(ir, generic) {
        return Err("several of its results may be stored in one element");
    }
    check_epilogue(ir, generic, &view)
}

/// Builds a fold with the body of `old` and without its epilogue. `view` describes the new operation. Inputs that the
/// body does not read are left out.
pub fn build_fold<'c>(
    ir: &Context,
    builder: &Builder<'c>,
    old: Generic<'c>,
    mut view: View<'c>,
) -> Generic<'c> {
    let body = mlir::arguments(old.body());
    let used = used(&body);
    view.inputs = used.iter().map(|number| view.inputs[*number].clone()).collect();
    let conditions = Inside::conditions_in(ir, &[old.body()]);
    let runtimes = view.drop_unused_runtimes(ir, &conditions);
    let new = view.build(ir, builder, false);
    let (inside, arguments) = builder.inside(new.body());
    let mut values: ValueMap = used.iter().map(|number| body[*number]).zip(arguments).collect();
    copy_ops(ir, (old.body(), new.body()), (&inside, &mut values), &runtimes);
    new
}

/// Builds the operation that applies the epilogue of a fold to accumulated values. Without an epilogue, the operation
/// copies the values. `view` describes the fold, with the destinations of the new operation. The caller has checked
/// the fold with [`check_epilogue`].
pub fn build_finish<'c>(
    ir: &Context,
    builder: &Builder<'c>,
    fold: Generic<'c>,
    view: &View<'c>,
    accumulated: Vec<Access<'c>>,
) -> Generic<'c> {
    let count = accumulated.len();
    let End { view, used, runtimes } = End::of(ir, fold, view, accumulated);
    let finish = view.build(ir, builder, false);
    let (inside, inner) = builder.inside(finish.body());
    let Some(epilogue) = fold.epilogue() else {
        build_yield(&inside, &inner[..count]);
        return finish;
    };
    let arguments = mlir::arguments(epilogue);
    let read = used.iter().map(|number| arguments[count + number]);
    let old = arguments[..count].iter().copied().chain(read);
    let mut values: ValueMap = old.zip(inner).collect();
    copy_ops(ir, (epilogue, finish.body()), (&inside, &mut values), &runtimes);
    finish
}

/// Checks that the epilogue of a fold can be an operation without ranges.
///
/// # Errors
/// The epilogue uses a runtime variable that depends on a range variable.
pub fn check_epilogue<'c>(
    ir: &Context,
    fold: Generic<'c>,
    view: &View<'c>,
) -> Result<(), &'static str> {
    let end = End::of(ir, fold, view, Vec::new()).view;
    let mut elements = end.runtimes.iter().filter_map(Runtime::access);
    let is_range = |var: &Var| matches!(var, Var::Range(_));
    match elements.any(|it| ir.vars_of_all(&it.exprs()).iter().any(is_range)) {
        true => Err("its epilogue uses a runtime variable that is read per range"),
        false => Ok(()),
    }
}

/// The operation without ranges that applies the epilogue of a fold.
struct End<'c> {
    /// Its inputs are the accumulated values and the inputs of the fold that the epilogue uses.
    view: View<'c>,
    /// The numbers of those inputs of the fold.
    used: Vec<usize>,
    /// The old numbers of the runtime variables.
    runtimes: Vec<usize>,
}

impl<'c> End<'c> {
    fn of(ir: &Context, fold: Generic<'c>, whole: &View<'c>, accumulated: Vec<Access<'c>>) -> Self {
        let epilogue: Vec<_> = fold.epilogue().into_iter().collect();
        let arguments: Vec<_> = epilogue.iter().flat_map(|it| mlir::arguments(*it)).collect();
        let used = used(arguments.get(whole.accumulators.len()..).unwrap_or_default());
        let mut view = in_map_form(whole);
        let read = used.iter().map(|number| whole.inputs[*number].clone());
        view.inputs = accumulated.into_iter().chain(read).collect();
        let runtimes = view.drop_unused_runtimes(ir, &Inside::conditions_in(ir, &epilogue));
        Self { view, used, runtimes }
    }
}

/// The part of an operation that has no ranges. Folds store, and their epilogues run, where constraints do not hold,
/// too.
fn in_map_form<'c>(view: &View<'c>) -> View<'c> {
    let mut view =
        View { accumulators: Vec::new(), ordered: false, combiner: None, ..view.clone() };
    view.inputs.clear();
    view.domain.ranges.clear();
    view.domain.constraints.clear();
    view
}

/// The places of values that have uses.
fn used(values: &[Val]) -> Vec<usize> {
    let is_used = |number: &usize| !mlir::uses(values[*number]).is_empty();
    (0..values.len()).filter(is_used).collect()
}

/// Copies the operations of a block into one with the runtime variables of these old numbers.
fn copy_ops<'c>(
    ir: &Context,
    (from, to): (Blk<'c>, Blk<'c>),
    (inside, values): (&Builder<'c>, &mut ValueMap<'c>),
    runtimes: &[usize],
) {
    for op in mlir::ops(from) {
        inside.copy(op, values);
    }
    substitute_in_conditions(ir, &[to], &super::renumbering(ir, runtimes));
}
