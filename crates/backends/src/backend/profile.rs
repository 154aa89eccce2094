//! The times of the kernels of a program.

use std::time::Duration;
use tc_passes::transform::time_kernels::Kernel;

/// The times of all calls of a program except the first one, which touches memory that the others find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The number of calls.
    pub calls: u64,
    /// The time of all calls.
    pub total: Duration,
    /// The times of the kernels in these calls.
    pub kernels: Vec<KernelTimes>,
}

/// The runs of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelTimes {
    /// The kernel.
    pub kernel: Kernel,
    /// The number of runs.
    pub runs: u64,
    /// The time of all runs.
    pub total: Duration,
    /// The time of the shortest run; zero if there was none.
    pub least: Duration,
}

impl KernelTimes {
    /// A kernel that has not run yet.
    pub fn new(kernel: Kernel) -> Self {
        Self { kernel, runs: 0, total: Duration::ZERO, least: Duration::ZERO }
    }

    /// Adds a run.
    pub fn add(&mut self, time: Duration) {
        self.least = if self.runs == 0 { time } else { time.min(self.least) };
        self.runs += 1;
        self.total += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up() {
        let kernel = Kernel {
            name: "f".to_string(),
            lines: vec![1],
            flops: None,
            bytes: Some(8),
            schedule: String::new(),
        };
        let mut times = KernelTimes::new(kernel);
        for nanoseconds in [5, 3, 4] {
            times.add(Duration::from_nanos(nanoseconds));
        }
        assert_eq!((times.runs, times.total.as_nanos(), times.least.as_nanos()), (3, 12, 3));
    }
}
