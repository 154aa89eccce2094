//! Epilogues that are worth loops of their own.
//!
//! A fold along the lanes of vectors finishes one result at a time. An epilogue that calls a function, such as the
//! `tanh` of a recurrent network, would take longer for one number than a vector does for all its lanes. The fold
//! stores its results then, and an operation on elements finishes them in place.

use crate::analysis::buffers::origin;
use melior::ir::ValueLike;
use tc_dialects::{
    imap::{
        Access, Generic, Indexed, Start, View,
        open::{build_finish, build_fold, check_epilogue},
    },
    mlir::{self, Builder, Val},
};
use tc_ir::Context;

/// Replaces a fold by one without its epilogue, and one operation on its results; `None` if that gains nothing, or if
/// the destinations cannot hold the accumulators.
pub(super) fn detach<'c>(generic: Generic<'c>) -> Option<[Generic<'c>; 2]> {
    let epilogue = generic.epilogue()?;
    let calls = mlir::ops(epilogue).into_iter().any(|op| mlir::is(op, "imap.builtin"));
    if !calls {
        return None;
    }
    let ir = Context::new();
    let view = View::of(&ir, generic);
    let count = view.accumulators.len();
    let element = |access: &Access<'c>| mlir::element_type(access.value.r#type());
    let holds = |(access, place): (&Access<'c>, usize)| {
        let accumulator = &view.accumulators[place];
        accumulator.ty == element(access)
            && !matches!(accumulator.start, Start::Destination(other) if other != place)
    };
    let arguments = mlir::arguments(epilogue);
    let is_used = |number: &usize| !mlir::uses(arguments[count + number]).is_empty();
    let used: Vec<usize> = (0..view.inputs.len()).filter(is_used).collect();
    // The first operation must not overwrite an input of the second one.
    let is_apart = |value: Val<'c>| {
        let outputs = view.outputs.iter().map(|it| origin(it.value));
        let own = origin(value);
        own.is_some() && outputs.into_iter().all(|it| it.is_some() && it != own)
    };
    if view.outputs.len() != count
        || !view.outputs.iter().zip(0..).all(holds)
        || check_epilogue(&ir, generic, &view).is_err()
        || !used.iter().all(|number| is_apart(view.inputs[*number].value))
    {
        return None;
    }

    let builder = Builder::before(generic.op());
    let accumulated = view.outputs.clone();
    let fold = build_fold(&ir, &builder, generic, view.clone());
    let finish = build_finish(&ir, &builder, generic, &view, accumulated);
    mlir::erase(generic.op());
    Some([fold, finish])
}
