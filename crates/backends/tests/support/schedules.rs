//! Random tiles, copies, orders of loops and register blocks, for the operations of a module that can have them.

use super::random::Random;
use melior::ir::Module;
use tc_backends::{Codegen, Stage, cpu};
use tc_dialects::{
    imap::{
        Generic, Indexed,
        schedule::{Schedule, Step, variable_names},
    },
    mlir, report,
};
use tc_ir::Context;

/// Parts of the errors for schedules that an operation cannot have.
const REFUSED: &[&str] = &[
    "cannot be computed by",
    "cannot be computed in tiles of a range",
    "the schedule packs input",
    "the schedule names",
    "keeps the order of its ranges",
    "only the last may stand behind ranges",
    "which comes later",
    "the bounds of the last dimension need a range",
];

/// The operations that may have a schedule.
pub fn generics<'c>(module: &Module<'c>) -> Vec<Generic<'c>> {
    let mut found = Vec::new();
    mlir::walk(mlir::op_ref(module.as_operation()), &mut |op| found.extend(Generic::cast(op)));
    found
}

/// Gives at most so many operations random steps. One that is refused is taken back. Returns the number of steps that
/// are left.
///
/// # Errors
/// A lowering fails for another reason.
pub fn schedule(
    module: &Module,
    options: &Codegen,
    most: usize,
    random: &mut Random,
) -> Result<usize, String> {
    let (mut count, mut tried) = (0, 0);
    for generic in generics(module) {
        if most <= tried {
            break;
        }
        if !random.chance(60) {
            continue;
        }
        tried += 1;
        let schedule = draw(generic, random);
        schedule.set(generic.op());
        let context = mlir::context_of(generic.op());
        let (handler, received) = report::collect(context);
        let lowered = cpu::BACKEND.lower_to(module, options, Stage::Llvm);
        context.detach_diagnostic_handler(handler);
        if lowered.is_ok() {
            count += schedule.steps.len();
            continue;
        }
        let messages: Vec<_> = received.borrow().iter().map(|it| it.message.clone()).collect();
        if !messages.iter().any(|it| REFUSED.iter().any(|refused| it.contains(refused))) {
            return Err(format!("{schedule}: {}", messages.join("\n")));
        }
        Schedule::default().set(generic.op());
    }
    Ok(count)
}

/// The sizes of tiles.
const SIZES: [i64; 5] = [1, 2, 3, 4, 7];

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
                sizes.push((name.clone(), SIZES[random.weighted(&[1, 3, 3, 3, 2])]));
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
