//! The times of kernels, which `tc-run --profile` prints.

use serde_json::{Value, json};
use std::{
    cmp::Reverse,
    fs, thread,
    time::{Duration, Instant},
};
use tc_backends::backend::{KernelTimes, Profile};
use tc_passes::{target::Codegen, transform::time_kernels::Kernel};

/// The bytes that the copies of a bandwidth measurement move: more than caches hold.
const COPIED: usize = 1 << 26;
/// The copies of which the fastest one counts.
const COPIES: usize = 4;
/// Fused multiply-adds of vectors that a core starts in a cycle.
const UNITS: f64 = 2.0;
/// The last row of a table.
const OUTSIDE: &str = "outside of kernels";
/// The lines of a kernel that a table lists.
const MAX_LINES: usize = 6;

/// What a machine can do at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Bytes per second that its threads read and write, as copies of memory do.
    pub bytes: f64,
    /// Operations on `f32` per second: two vectors multiplied and added per cycle; `None` if the frequency is unknown.
    pub flops: Option<f64>,
}

impl Limits {
    /// Measures the bandwidth of memory, and asks the system for the frequency.
    pub fn measure(codegen: &Codegen) -> Self {
        let flops = frequency().map(|hertz| {
            let lanes = f64::from(codegen.machine.vector_registers().0) / 32.0;
            hertz * lanes * 2.0 * UNITS * codegen.threads as f64
        });
        Self { bytes: bandwidth(codegen.threads), flops }
    }

    /// The least seconds in which a kernel can run.
    fn seconds(&self, flops: Option<u64>, bytes: Option<u64>) -> Option<f64> {
        let memory = bytes.map(|bytes| bytes as f64 / self.bytes);
        let arithmetic = flops.zip(self.flops).map(|(flops, limit)| flops as f64 / limit);
        memory.into_iter().chain(arithmetic).max_by(f64::total_cmp)
    }
}

/// The bytes per second that threads read and write together.
fn bandwidth(threads: usize) -> f64 {
    let threads = threads.max(1);
    let part = COPIED / threads;
    let source = vec![1_u8; part * threads];
    let mut target = vec![0_u8; part * threads];
    let mut best = f64::INFINITY;
    for _ in 0..COPIES {
        let start = Instant::now();
        thread::scope(|scope| {
            for (from, to) in source.chunks(part).zip(target.chunks_mut(part)) {
                scope.spawn(|| to.copy_from_slice(from));
            }
        });
        best = best.min(start.elapsed().as_secs_f64());
    }
    2.0 * (part * threads) as f64 / best
}

/// The frequency of the first core in hertz, as Linux reports it.
fn frequency() -> Option<f64> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("cpu MHz"))?;
    line.split(':').nth(1)?.trim().parse::<f64>().ok().map(|it| it * 1e6)
}

/// The kernels of a program that was measured, and the limits of the machine.
pub struct Report {
    profile: Profile,
    limits: Limits,
}

impl Report {
    /// Measures the limits of the machine for code of this kind.
    pub fn new(profile: Profile, codegen: &Codegen) -> Self {
        Self { profile, limits: Limits::measure(codegen) }
    }

    /// The kernels that ran, the most expensive first.
    fn kernels(&self) -> Vec<&KernelTimes> {
        let mut kernels: Vec<_> = self.profile.kernels.iter().filter(|it| it.runs != 0).collect();
        kernels.sort_by_key(|it| Reverse(it.total));
        kernels
    }

    /// A number or a time of all calls, per call.
    fn per_call(&self, amount: f64) -> f64 {
        amount / self.profile.calls.max(1) as f64
    }

    /// The time of all calls that is not in kernels.
    fn outside(&self) -> Duration {
        self.profile
            .kernels
            .iter()
            .fold(self.profile.total, |left, it| left.saturating_sub(it.total))
    }

    /// The part of the limit that the shortest run reaches.
    fn share(&self, times: &KernelTimes) -> Option<f64> {
        let least = self.limits.seconds(times.kernel.flops, times.kernel.bytes)?;
        let seconds = times.least.as_secs_f64();
        (0.0 < seconds).then(|| least / seconds)
    }

    /// A table, which has a row for each kernel and one for the time outside of kernels.
    pub fn table(&self) -> String {
        let mut text = format!("limits: {:.1} GB/s", self.limits.bytes * 1e-9);
        if let Some(flops) = self.limits.flops {
            text += &format!(", {:.1} GFLOP/s", flops * 1e-9);
        }
        let kernels = self.kernels();
        let names = kernels.iter().map(|it| described(&it.kernel).len());
        let width = names.chain([OUTSIDE.len()]).max().unwrap_or_default();
        text += &row(
            ["us/call", "share", "runs", "us/run", "bytes", "flops", "GB/s", "GFLOP/s"]
                .map(str::to_string),
            ["limit", "kernel", "schedule"],
            width,
        );
        let total = self.profile.total.as_secs_f64();
        let time = |time: Duration| {
            let seconds = time.as_secs_f64();
            let share = if 0.0 < total { percent(seconds / total) } else { String::new() };
            [format!("{:.2}", self.per_call(seconds) * 1e6), share]
        };
        for times in kernels {
            let kernel = &times.kernel;
            let seconds = times.least.as_secs_f64();
            let rate = |amount: Option<u64>| {
                let rate = amount.filter(|_| 0.0 < seconds).map(|it| it as f64 / seconds * 1e-9);
                rate.map_or_else(|| "-".to_string(), |rate| format!("{rate:.2}"))
            };
            let amount =
                |it: Option<u64>| it.map_or_else(|| "-".to_string(), |it| scaled(it as f64));
            let [per_call, share] = time(times.total);
            let cells = [
                per_call,
                share,
                format!("{:.1}", self.per_call(times.runs as f64)),
                format!("{:.2}", seconds * 1e6),
                amount(kernel.bytes),
                amount(kernel.flops),
                rate(kernel.bytes),
                rate(kernel.flops),
            ];
            let limit = self.share(times).map_or_else(|| "-".to_string(), percent);
            text += &row(cells, [&limit, &described(kernel), &kernel.schedule], width);
        }
        let [per_call, share] = time(self.outside());
        let mut cells = [const { String::new() }; 8];
        (cells[0], cells[1]) = (per_call, share);
        text + &row(cells, ["", OUTSIDE, ""], width) + "\n"
    }

    /// The same as JSON.
    pub fn json(&self) -> Value {
        let seconds = |time: Duration| self.per_call(time.as_secs_f64());
        let kernels = self.kernels().into_iter().map(|times| {
            json!({
                "name": times.kernel.name,
                "lines": times.kernel.lines,
                "runs": self.per_call(times.runs as f64),
                "seconds": seconds(times.total),
                "seconds_min": times.least.as_secs_f64(),
                "flops": times.kernel.flops,
                "bytes": times.kernel.bytes,
                "limit_share": self.share(times),
                "schedule": times.kernel.schedule,
            })
        });
        json!({
            "calls": self.profile.calls,
            "seconds": seconds(self.profile.total),
            "seconds_outside": seconds(self.outside()),
            "bytes_per_second": self.limits.bytes,
            "flops_per_second": self.limits.flops,
            "kernels": kernels.collect::<Vec<_>>(),
        })
    }
}

/// A row of the table, after the end of the line before it. The column of kernels is `width` wide.
fn row(cells: [String; 8], [limit, kernel, schedule]: [&str; 3], width: usize) -> String {
    let [per_call, share, runs, per_run, bytes, flops, gigabytes, gigaflops] = cells;
    let row = format!(
        "\n{per_call:>9} {share:>5} {runs:>7} {per_run:>9} {bytes:>7} {flops:>7} {gigabytes:>7} {gigaflops:>8} {limit:>5}  {kernel:width$}  {schedule}"
    );
    row.trim_end().to_string()
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// A number with three digits or more, and a letter for the power of ten.
fn scaled(amount: f64) -> String {
    match [(1e9, "G"), (1e6, "M"), (1e3, "K")].into_iter().find(|(scale, _)| *scale <= amount) {
        Some((scale, letter)) => format!("{:.2}{letter}", amount / scale),
        None => amount.to_string(),
    }
}

/// The name of a kernel and the first lines that it comes from.
fn described(kernel: &Kernel) -> String {
    let lines: Vec<_> = kernel.lines.iter().take(MAX_LINES).map(i64::to_string).collect();
    let word = if kernel.lines.len() == 1 { "line" } else { "lines" };
    let rest = if MAX_LINES < kernel.lines.len() { ", .." } else { "" };
    match lines.is_empty() {
        true => kernel.name.clone(),
        false => format!("{}, {word} {}{rest}", kernel.name, lines.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(name: &str, milliseconds: u64, bytes: u64, lines: &[i64]) -> KernelTimes {
        let (flops, bytes, lines) = (None, Some(bytes), lines.to_vec());
        KernelTimes {
            kernel: Kernel { name: name.to_string(), lines, flops, bytes, schedule: String::new() },
            runs: 20,
            total: Duration::from_millis(milliseconds),
            least: Duration::from_millis(milliseconds) / 40,
        }
    }

    fn report() -> Report {
        let mut long = times("long", 30, 750_000, &[7]);
        long.kernel.schedule = "tile [i = 4]".to_string();
        let kernels = vec![
            times("short", 10, 1000, &[]),
            long,
            KernelTimes { runs: 0, ..times("idle", 0, 1, &[]) },
        ];
        let profile = Profile { calls: 10, total: Duration::from_millis(50), kernels };
        Report { profile, limits: Limits { bytes: 2e9, flops: None } }
    }

    #[test]
    fn kernels_are_ordered_and_compared_with_limits() {
        let table = report().table();
        let expected = [
            "limits: 2.0 GB/s",
            "  us/call share    runs    us/run   bytes   flops    GB/s  GFLOP/s limit  kernel              schedule",
            "  3000.00   60%     2.0    750.00 750.00K       -    1.00        -   50%  long, line 7        tile [i = 4]",
            "  1000.00   20%     2.0    250.00   1.00K       -    0.00        -    0%  short",
            "  1000.00   20%                                                           outside of kernels",
        ];
        assert_eq!(table.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn json_has_all_numbers() {
        let json = report().json();
        assert_eq!(json["kernels"][0]["limit_share"], 0.5);
        assert_eq!(json["kernels"][0]["lines"], json!([7]));
        assert_eq!(json["kernels"][1]["flops"], Value::Null);
        assert_eq!(json["kernels"][0]["schedule"], "tile [i = 4]");
        assert_eq!(json["seconds_outside"], 0.001);
    }

    #[test]
    fn many_lines_are_cut() {
        let many = times("many", 1, 1, &[1, 2, 3, 4, 5, 6, 7]).kernel;
        assert_eq!(described(&many), "many, lines 1, 2, 3, 4, 5, 6, ..");
    }

    #[test]
    fn amounts_have_letters() {
        assert_eq!([999.0, 1e3, 2.5e6, 7e10].map(scaled), ["999", "1.00K", "2.50M", "70.00G"]);
    }

    #[test]
    fn more_expensive_resource_is_the_limit() {
        let limits = Limits { bytes: 1e3, flops: Some(1e6) };
        assert_eq!(limits.seconds(Some(2_000_000), Some(1000)), Some(2.0));
        assert_eq!(limits.seconds(Some(1), Some(3000)), Some(3.0));
        assert_eq!(limits.seconds(None, None), None);
    }
}
