//! Random tiles, copies, orders of loops and register blocks, for the operations of a module that can have them.

use crate::random::Random;
use melior::ir::Module;
use std::{cell::RefCell, rc::Rc};
use tc_backends::{Codegen, Stage, cpu};
use tc_dialects::{
    imap::{
        Generic, Indexed,
        schedule::{Schedule, Step, variable_names},
    },
    mlir,
    report::Received,
};
use tc_ir::Context;

/// Parts of the errors for schedules that an operation cannot have.
const REFUSED: &[&str] = &[
    "cannot be computed by",
    "cannot be computed in tiles of a range",
    "the schedule packs input",
    "keeps the order of its ranges",
    "only the last may stand behind ranges",
    "which comes later",
    "the bounds of the last dimension need a range",
];

/// Gives operations random steps. One that is refused is taken back. Returns the number of steps
/// that are left.
///
/// # Errors
/// A lowering fails for another reason.
pub fn schedule<'c>(
    module: &Module<'c>,
    options: &Codegen,
    received: &Rc<RefCell<Vec<Received>>>,
    random: &mut Random,
) -> Result<usize, String> {
    let mut count = 0;
    let mut generics = Vec::new();
    mlir::walk(mlir::op_ref(module.as_operation()), &mut |op| generics.extend(Generic::cast(op)));
    for generic in generics {
        if !random.chance(60) {
            continue;
        }
        let schedule = draw(generic, random);
        schedule.set(generic.op());
        let before = received.borrow().len();
        if cpu::BACKEND.lower_to(module, options, Stage::Llvm).is_ok() {
            count += schedule.steps.len();
            continue;
        }
        let found = received.borrow();
        let messages: Vec<_> = found[before..].iter().map(|it| it.message.clone()).collect();
        if !messages.iter().any(|it| REFUSED.iter().any(|refused| it.contains(refused))) {
            return Err(format!("{schedule}: {}", messages.join("\n")));
        }
        Schedule::default().set(generic.op());
    }
    Ok(count)
}

fn draw(generic: Generic, random: &mut Random) -> Schedule {
    let ir = Context::new();
    let domain = generic.domain(&ir);
    let mut names = variable_names(&domain);
    let mut ranges = names.split_off(domain.dims.len());
    let mut steps = Vec::new();
    while random.chance(40) {
        let mut sizes = Vec::new();
        for name in names.iter().chain(&ranges) {
            if random.chance(50) {
                sizes.push((name.clone(), *random.pick(&[1, 2, 3, 4, 7])));
            }
        }
        if !sizes.is_empty() {
            steps.push(if random.chance(70) { Step::Tile(sizes) } else { Step::Forall(sizes) });
        }
        let num_inputs = generic.inputs().len();
        if 0 < num_inputs && random.chance(50) {
            steps.push(Step::Pack(random.below(num_inputs)));
        }
    }
    if random.chance(50) {
        shuffle(&mut names, random);
        shuffle(&mut ranges, random);
    }
    let mut order = names.clone();
    order.append(&mut ranges);
    if random.chance(40) && !names.is_empty() {
        // Rows.
        let row = order.remove(names.len() - 1);
        order.push(row);
    }
    let lanes = order.last().cloned();
    if random.chance(50) && !order.is_empty() {
        steps.push(Step::Order(order));
    }
    if let Some(lanes) = lanes.filter(|_| random.chance(70)) {
        let mut sizes: Vec<_> = Vec::new();
        for name in names.into_iter().filter(|name| *name != lanes) {
            if random.chance(50) {
                sizes.push((name, random.between(1, 4)));
            }
        }
        sizes.push((lanes.clone(), *random.pick(&[2, 4, 8, 16, 32])));
        steps.push(Step::Vector { sizes, lanes });
    }
    Schedule { steps }
}

fn shuffle(names: &mut [String], random: &mut Random) {
    for last in (1..names.len()).rev() {
        names.swap(last, random.below(last + 1));
    }
}
