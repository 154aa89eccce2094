//! Timing of a compiled function, and the work that it does.

use super::{Error, Sizes};
use crate::{cpu::Function, runtime::Tensor};
use std::time::{Duration, Instant};
use tc_dialects::{
    mlir::{self, Blk},
    tc::Def,
};
use tc_ir::Var;

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

/// Calls are measured for about this long, after a tenth of it to warm up.
const BUDGET: Duration = Duration::from_millis(500);
const MIN_CALLS: usize = 5;
const MAX_CALLS: usize = 10_000;

/// Measures calls of a function, after some to warm up.
///
/// # Errors
/// The call's.
pub fn measure(
    function: Function,
    inputs: &[&Tensor],
    outputs: &mut [Tensor],
) -> Result<Bench, Error> {
    let warm = Instant::now();
    loop {
        function.call(inputs, outputs)?;
        if BUDGET / 10 <= warm.elapsed() {
            break;
        }
    }
    let mut seconds = Vec::new();
    let start = Instant::now();
    while seconds.len() < MIN_CALLS || (start.elapsed() < BUDGET && seconds.len() < MAX_CALLS) {
        let call = Instant::now();
        function.call(inputs, outputs)?;
        seconds.push(call.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(Bench { seconds_min: seconds[0], seconds_median: seconds[seconds.len() / 2], calls: seconds.len() })
}

/// The floating-point operations that the statements of a function ask for at given
/// sizes: those of the body, and one per value that is combined. A built-in counts as one.
pub fn flops(def: Def, sizes: &Sizes) -> f64 {
    let ir = tc_ir::Context::new();
    let names: Vec<_> = def.sizes().into_iter().map(|(name, ..)| name).collect();
    let value = |var| match var {
        Var::Runtime(number) => sizes.get(*names.get(number as usize)?).copied(),
        _ => None,
    };
    let mut total = 0.0;
    for statement in def.comprehensions() {
        let Some(domain) = statement.domain(&ir) else { continue };
        let points: f64 = domain
            .dims
            .iter()
            .chain(&domain.ranges)
            .filter_map(|it| Some(ir.eval(it.upper?, &value).ok()? - ir.eval(it.lower?, &value).ok()? + 1))
            .map(|extent| extent.max(0) as f64)
            .product();
        let combines = statement.combiner().kind != tc_dialects::imap::CombinerKind::Assign
            && mlir::is_float(statement.scalar_type());
        total += points * (float_operations(statement.body()) + usize::from(combines)) as f64;
    }
    total
}

fn float_operations(block: Blk) -> usize {
    let mut count = 0;
    for top in mlir::ops(block) {
        mlir::walk(top, &mut |op| {
            count += usize::from(matches!(
                mlir::name(op),
                "arith.addf" | "arith.subf" | "arith.mulf" | "arith.divf" | "arith.negf"
                    | "arith.minnumf" | "arith.maxnumf" | "imap.builtin"
            ));
        });
    }
    count
}
