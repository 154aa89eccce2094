//! The clock that code calls if it measures its kernels.

use super::interface::KERNEL_PREFIX;
use crate::backend::{KernelTimes, Profile};
use std::{
    cell::RefCell,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tc_passes::transform::time_kernels::{CLOCK, Kernel};

/// The kernel runs of one call.
#[derive(Default)]
struct Record {
    /// When the kernels that have not ended began.
    running: Vec<Instant>,
    /// The numbers and times of the runs that have ended.
    runs: Vec<(i64, Duration)>,
}

thread_local! {
    /// The call that this thread makes. Parallel loops are inside of kernels, so kernels begin in this thread.
    static RECORD: RefCell<Record> = RefCell::default();
}

extern "C" fn begin(_: i64) {
    RECORD.with_borrow_mut(|record| record.running.push(Instant::now()));
}

extern "C" fn end(kernel: i64) {
    let now = Instant::now();
    RECORD.with_borrow_mut(|record| {
        if let Some(start) = record.running.pop() {
            record.runs.push((kernel, now - start));
        }
    });
}

/// The names and addresses of the functions that code calls.
pub(super) fn clock() -> [(&'static str, usize); 2] {
    [(CLOCK[0], begin as *const () as usize), (CLOCK[1], end as *const () as usize)]
}

/// Measures calls of a program.
pub(super) struct Measurement(Mutex<State>);

struct State {
    /// Whether the program was called before.
    is_warm: bool,
    profile: Profile,
}

impl Measurement {
    /// For code with these kernels.
    pub fn new(kernels: &[Kernel]) -> Self {
        let times = |kernel: &Kernel| {
            let name = kernel.name.strip_prefix(KERNEL_PREFIX).unwrap_or(&kernel.name).to_string();
            KernelTimes::new(Kernel { name, ..kernel.clone() })
        };
        let kernels = kernels.iter().map(times).collect();
        Self(Mutex::new(State {
            is_warm: false,
            profile: Profile { kernels, ..Profile::default() },
        }))
    }

    /// Makes a call.
    pub fn measure<T>(&self, call: impl FnOnce() -> T) -> T {
        RECORD.set(Record::default());
        let start = Instant::now();
        let result = call();
        let time = start.elapsed();
        let Record { runs, .. } = RECORD.take();
        let mut state = self.state();
        if mem::replace(&mut state.is_warm, true) {
            state.profile.calls += 1;
            state.profile.total += time;
            for (kernel, time) in runs {
                let times = usize::try_from(kernel).ok();
                let times = times.and_then(|kernel| state.profile.kernels.get_mut(kernel));
                times.into_iter().for_each(|times| times.add(time));
            }
        }
        result
    }

    /// The times so far.
    pub fn profile(&self) -> Profile {
        self.state().profile.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_after_the_first_count() {
        let kernel = |name: &str| Kernel {
            name: format!("{KERNEL_PREFIX}{name}"),
            lines: Vec::new(),
            flops: None,
            bytes: None,
            schedule: String::new(),
        };
        let measurement = Measurement::new(&[kernel("a"), kernel("b")]);
        for runs in [3, 2, 2] {
            measurement.measure(|| {
                for _ in 0..runs {
                    begin(1);
                    end(1);
                }
            });
        }
        let profile = measurement.profile();
        assert_eq!(profile.calls, 2);
        let runs = profile.kernels.iter().map(|it| (it.kernel.name.as_str(), it.runs));
        assert_eq!(runs.collect::<Vec<_>>(), [("a", 0), ("b", 4)]);
        assert!(profile.kernels[1].total <= profile.total);
    }

    #[test]
    fn kernels_out_of_order_are_ignored() {
        let measurement = Measurement::new(&[]);
        measurement.measure(|| ());
        measurement.measure(|| {
            end(0);
            begin(-1);
            end(-1);
        });
        assert_eq!(measurement.profile().calls, 1);
    }
}
