//! Costs of functions in the output of `tc-run` and `tc-compile`.

use serde_json::{Value, json};
use std::time::Duration;
use tc_backends::{
    backend::{Cost, KernelCounts},
    program::Sizes,
    run::Bench,
};
use tc_passes::analysis::cost::Formula;

/// The costs of a call at some sizes; `None` if unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// Floating-point operations.
    pub flops: Option<i64>,
    /// Bytes that the operations read and write.
    pub bytes: Option<i64>,
    /// The most bytes held for tensors between operations.
    pub temporary_bytes: Option<i64>,
    /// The most bytes held inside of operations.
    pub scratch_bytes: Option<i64>,
}

impl Costs {
    /// The costs of the function of a name.
    pub fn of(costs: &[Cost], name: &str, sizes: &Sizes) -> Self {
        let cost = costs.iter().find(|cost| cost.name == name);
        let at = |formula: &Option<Formula>| formula.as_ref()?.evaluate(sizes);
        cost.map_or_else(Self::default, |cost| Self {
            flops: at(&cost.flops),
            bytes: at(&cost.bytes),
            temporary_bytes: at(&cost.temporary_bytes),
            scratch_bytes: at(&cost.scratch_bytes),
        })
    }
}

/// A measured function.
#[derive(Clone, Debug)]
pub struct Measured<'a> {
    /// Its name.
    pub name: &'a str,
    /// The time of a call.
    pub bench: Bench,
    /// Seconds from the imported program to code in memory.
    pub compile_seconds: f64,
    /// How much of that LLVM took.
    pub llvm_time: Duration,
    /// The costs of a call.
    pub costs: Costs,
    /// The threads of a call.
    pub threads: usize,
    /// The kernels of `--profile`.
    pub profile: Option<Value>,
}

impl Measured<'_> {
    /// The object that `--json` prints, with more keys of a language.
    pub fn json(&self, more: &[(&str, Value)]) -> Value {
        let Self { name, bench, compile_seconds, llvm_time, costs, threads, profile } = self;
        let passes = Duration::from_secs_f64(*compile_seconds).saturating_sub(*llvm_time);
        let mut object = json!({
            "name": name,
            "seconds_min": bench.seconds_min,
            "seconds_median": bench.seconds_median,
            "compile_seconds": compile_seconds,
            "passes_ms": milliseconds(passes),
            "llvm_ms": milliseconds(*llvm_time),
            "flops": costs.flops.map(|flops| flops as f64),
            "bytes": costs.bytes,
            "threads": threads,
            "temporary_bytes": costs.temporary_bytes,
            "scratch_bytes": costs.scratch_bytes,
        });
        if let Some(profile) = profile {
            object["profile"] = profile.clone();
        }
        for (key, value) in more {
            object[*key] = value.clone();
        }
        object
    }
}

/// The object that `--json` prints for a device that counts: the events of each kernel in one call.
pub fn counted(name: &str, kernels: &[KernelCounts], costs: Costs) -> Value {
    let kernels = kernels.iter().map(|counts| {
        let mut object = json!({ "name": counts.kernel, "launches": counts.launches });
        for (event, count) in &counts.events {
            object[*event] = json!(count);
        }
        object
    });
    json!({
        "name": name,
        "flops": costs.flops.map(|flops| flops as f64),
        "bytes": costs.bytes,
        "temporary_bytes": costs.temporary_bytes,
        "scratch_bytes": costs.scratch_bytes,
        "kernels": kernels.collect::<Vec<_>>(),
    })
}

/// Milliseconds, to the microsecond.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// The object that `tc-compile --report=json` prints: numbers, or formulas over sizes as text; and the times of passes and
/// of LLVM.
pub fn report(cost: &Cost, threads: usize, [passes, llvm]: [Duration; 2]) -> Value {
    let value = |formula: &Option<Formula>| match formula {
        Some(formula) => formula.constant().map_or_else(|| json!(formula.to_string()), Value::from),
        None => Value::Null,
    };
    json!({
        "name": cost.name,
        "flops": value(&cost.flops),
        "bytes": value(&cost.bytes),
        "threads": threads,
        "temporary_bytes": value(&cost.temporary_bytes),
        "scratch_bytes": value(&cost.scratch_bytes),
        "passes_ms": milliseconds(passes),
        "llvm_ms": milliseconds(llvm),
    })
}
