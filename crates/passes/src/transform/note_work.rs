//! `note-work`: note the work of each operation of `imap` in its location, and its schedule.
//!
//! The tiles and loops that later passes make of an operation keep its location, so `time-kernels` finds the
//! floating-point operations and bytes of the whole operation there. The metadata of the location are a number for the
//! operation, its floating-point operations and its bytes; these are -1 if they are not constant. The attribute
//! `tc.schedules` of the module has the steps of the schedules by these numbers, because `imap-tile` removes schedules.

use super::outline_functions::is_operation;
use crate::analysis::cost::{Extents, Formula, Work, work_of_operation};
use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::BTreeMap;
use tc_dialects::{
    imap::schedule::Schedule,
    mlir::{self, Op},
    pass::{Failure, PassInfo, PassRun},
};
use tc_ir::{Context, Expr};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "note-work",
    summary: "Note the work of each operation of imap in its location, and its schedule",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &[],
    run,
};

/// The attribute of the module with the schedules of operations.
const SCHEDULES: &str = "tc.schedules";

/// Floating-point operations and bytes, if they are constant.
pub(super) type Amounts = [Option<i64>; 2];

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let mut schedules = Vec::new();
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        pass.enter(function);
        let ir = Context::new();
        let extents = extents(&ir, function);
        mlir::walk(function, &mut |op| {
            if is_operation(op) {
                let amounts = constant(&ir, work_of_operation(op, &extents));
                let [flops, bytes] = amounts.map(|amount| amount.unwrap_or(-1));
                mlir::tag_location(op, &[schedules.len() as i64, flops, bytes]);
                let schedule = Schedule::of(op).unwrap_or_default().text();
                schedules.push(mlir::string(pass.context, &schedule));
            }
        });
    }
    mlir::set_attribute(pass.op, SCHEDULES, mlir::array(pass.context, &schedules));
    Ok(())
}

/// Removes the schedules of operations, by their numbers, from a module.
pub(super) fn take_schedules(module: Op) -> Vec<String> {
    let text = |it| mlir::string_of(it).unwrap_or_default().to_string();
    let schedules = mlir::array_attr(module, SCHEDULES).into_iter().map(text).collect();
    mlir::remove_attribute(module, SCHEDULES);
    schedules
}

/// The amounts of work that are constant.
pub(super) fn constant(ir: &Context, work: Work) -> Amounts {
    let constant = |amount: Option<Expr>| Formula::new(ir, amount?, &[])?.constant();
    [constant(work.flops), constant(work.bytes)]
}

/// The extents of the arguments of a function, if they are constant.
pub(super) fn extents<'i>(ir: &'i Context, function: Op) -> Extents<'i> {
    let mut extents = Extents::new(ir, function);
    for value in mlir::body(function, 0).map(mlir::arguments).unwrap_or_default() {
        let ty = value.r#type();
        let shape = match mlir::is_tensor(ty) || mlir::is_memref(ty) {
            true => mlir::shape(ty),
            false => Vec::new(),
        };
        let dims = shape.into_iter().map(|extent| extent.map(|extent| ir.constant(extent)));
        extents.add_argument(dims.collect(), None);
    }
    extents
}

/// The operations whose work is noted in a location, by their numbers.
pub(super) fn noted(op: Op) -> BTreeMap<i64, Amounts> {
    let amount = |amount: i64| (0 <= amount).then_some(amount);
    let tags = mlir::location_tags(op.location()).into_iter();
    tags.filter_map(|tag| match tag[..] {
        [number, flops, bytes] => Some((number, [amount(flops), amount(bytes)])),
        _ => None,
    })
    .collect()
}
