//! Timing of calls.

use std::time::{Duration, Instant};

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
    /// The times, and the rates for this many floating-point operations and bytes of a call, if they are
    /// known.
    pub fn describe(&self, flops: Option<i64>, bytes: Option<i64>) -> String {
        let times = format!(
            "{:.3} ms (median {:.3} of {} calls)",
            self.seconds_min * 1e3,
            self.seconds_median * 1e3,
            self.calls,
        );
        let rate = |amount: Option<i64>, unit: &str| {
            let rate = |amount| format!(", {:.2} {unit}", amount as f64 / self.seconds_min * 1e-9);
            amount.map_or_else(String::new, rate)
        };
        times + &rate(flops, "GFLOP/s") + &rate(bytes, "GB/s")
    }
}

/// Calls are measured for about this long, after a tenth of it to warm up.
const BUDGET: Duration = Duration::from_millis(500);
const MIN_CALLS: usize = 5;
const MAX_CALLS: usize = 10_000;

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
