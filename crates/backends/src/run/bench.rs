//! Timing of a compiled function, and the work that it does.

use super::{Error, Shapes, Sizes};
use crate::{cpu::Function, runtime::Tensor};
use std::time::{Duration, Instant};
use tc_dialects::{
    imap::CombinerKind,
    mlir::{self, Blk, Op},
    tc::{Comprehension, Def},
};
use tc_ir::{Var, map::Variable};

/// Seconds of one call.
#[derive(Copy, Clone, Debug)]
pub struct Bench {
    /// The shortest.
    pub seconds_min: f64,
    /// The median.
    pub seconds_median: f64,
    /// How many calls were measured.
    pub calls: usize,
}

impl Bench {
    /// The times, and the rates for this many floating-point operations and bytes of a call.
    pub fn describe(&self, flops: f64, bytes: f64) -> String {
        format!(
            "{:.3} ms (median {:.3} of {} calls), {:.2} GFLOP/s, {:.2} GB/s",
            self.seconds_min * 1e3,
            self.seconds_median * 1e3,
            self.calls,
            flops / self.seconds_min * 1e-9,
            bytes / self.seconds_min * 1e-9,
        )
    }
}

/// Calls are measured for about this long, after a tenth of it to warm up.
const BUDGET: Duration = Duration::from_millis(500);
const MIN_CALLS: usize = 5;
const MAX_CALLS: usize = 10_000;

/// Measures calls of a function with the arguments that [`Function::run`] takes. What they say of
/// the first contents of outputs does not matter: each call goes on with what `outputs` hold.
///
/// # Errors
/// The call's.
pub fn measure(
    function: Function,
    arguments: &[&Tensor],
    outputs: &mut [Tensor],
) -> Result<Bench, Error> {
    let inputs = &arguments[..function.num_inputs().min(arguments.len())];
    sample(|| Ok(function.call(inputs, outputs)?))
}

/// Measures calls, after some to warm up.
///
/// # Errors
/// The call's.
pub fn sample<E>(mut call: impl FnMut() -> Result<(), E>) -> Result<Bench, E> {
    let warm = Instant::now();
    loop {
        call()?;
        if BUDGET / 10 <= warm.elapsed() {
            break;
        }
    }
    let mut seconds = Vec::new();
    let start = Instant::now();
    while seconds.len() < MIN_CALLS || (start.elapsed() < BUDGET && seconds.len() < MAX_CALLS) {
        let start = Instant::now();
        call()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(Bench {
        seconds_min: seconds[0],
        seconds_median: seconds[seconds.len() / 2],
        calls: seconds.len(),
    })
}

/// The floating-point operations that the statements of a function ask for at given
/// sizes: those of the body, and one per value that is combined. A built-in counts as one.
pub fn flops(def: Def, sizes: &Sizes) -> f64 {
    let operations = |statement: &Comprehension| {
        let combines = statement.combiner().kind != CombinerKind::Assign
            && mlir::is_float(statement.scalar_type());
        (float_operations(statement.body()) + usize::from(combines)) as f64
    };
    points(def, sizes).iter().map(|(statement, points)| points * operations(statement)).sum()
}

/// The bytes that a call has to move at least: every output once, and every input once, or
/// as many elements of it as are read where those are fewer, as of a look-up table.
pub fn bytes(def: Def, sizes: &Sizes, shapes: &Shapes) -> f64 {
    let parameters = def.parameters();
    let mut reads = vec![0.0; parameters.len()];
    let mut count = |op: Op, times: f64| {
        if mlir::is(op, "tc.read") {
            let tensor = mlir::operand(op, 0);
            if let Some(number) = parameters.iter().position(|it| it.value == tensor) {
                reads[number] += times;
            }
        }
    };
    mlir::walk(def.op(), &mut |op| {
        if mlir::ancestor(op, Comprehension::NAME).is_none() {
            count(op, 1.0);
        }
    });
    for (statement, points) in points(def, sizes) {
        mlir::walk(statement.op(), &mut |op| count(op, points));
    }
    let all = |extents: &[usize]| extents.iter().map(|extent| *extent as f64).product::<f64>();
    let inputs = parameters.iter().zip(&shapes.inputs).zip(reads).map(|((it, input), reads)| {
        let (_, element, extents) = input;
        let elements = if it.inout { all(extents) } else { all(extents).min(reads) };
        elements * element.size() as f64
    });
    let outputs = shapes.outputs.iter();
    let outputs = outputs.map(|(_, element, extents)| all(extents) * element.size() as f64);
    inputs.chain(outputs).sum()
}

/// The statements with the number of points of their domains.
fn points<'c>(def: Def<'c>, sizes: &Sizes) -> Vec<(Comprehension<'c>, f64)> {
    let ir = tc_ir::Context::new();
    let names: Vec<_> = def.sizes().into_iter().map(|(name, ..)| name).collect();
    let value = |var| match var {
        Var::Runtime(number) => sizes.get(*names.get(number as usize)?).copied(),
        _ => None,
    };
    let extent = |variable: &Variable| {
        let lower = ir.eval(variable.lower?, &value).ok()?;
        let upper = ir.eval(variable.upper?, &value).ok()?;
        Some((upper as f64 - lower as f64 + 1.0).max(0.0))
    };
    let with_points = |statement: Comprehension<'c>| {
        let domain = statement.domain(&ir)?;
        let points = domain.dims.iter().chain(&domain.ranges).filter_map(extent).product();
        Some((statement, points))
    };
    def.comprehensions().into_iter().filter_map(with_points).collect()
}

fn float_operations(block: Blk) -> usize {
    let mut count = 0;
    for top in mlir::ops(block) {
        mlir::walk(top, &mut |op| {
            count += usize::from(matches!(
                mlir::name(op),
                "arith.addf"
                    | "arith.subf"
                    | "arith.mulf"
                    | "arith.divf"
                    | "arith.negf"
                    | "arith.minnumf"
                    | "arith.maxnumf"
                    | "imap.builtin"
            ));
        });
    }
    count
}
