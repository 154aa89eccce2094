//! How many thread instructions the emulator of PTX executes in a second.
//!
//! Kernels of `crates/backends/tests/emulator/ptx` run on zeros, with and without the checks of races and of
//! undefined reads. The bar is 10^7 with all checks.

use std::time::Instant;
use tc_backends::nvvm::emulator::{Argument, Launch, Memory, Module, run};

/// A kernel, and how it is launched on three buffers.
struct Case {
    name: &'static str,
    text: &'static str,
    grid: u32,
    dynamic_shared: usize,
    /// A number after two of the buffers, in place of the third.
    size: Option<u32>,
}

macro_rules! ptx {
    ($name:literal) => {
        include_str!(concat!("../crates/backends/tests/emulator/ptx/", $name, ".ptx"))
    };
}

const CASES: [Case; 4] = [
    Case {
        name: "gemm f32 4x4",
        text: ptx!("c4_gemm_f32"),
        grid: 4,
        dynamic_shared: 0,
        size: None,
    },
    Case {
        name: "gemm f32 8x8",
        text: ptx!("c4b_gemm_f32_8x8"),
        grid: 4,
        dynamic_shared: 0,
        size: None,
    },
    Case {
        name: "softmax",
        text: ptx!("c2_softmax"),
        grid: 256,
        dynamic_shared: 0,
        size: Some(1024),
    },
    Case {
        name: "gemm bf16 (mma)",
        text: ptx!("c5c_gemm_bf16_4st"),
        grid: 2,
        dynamic_shared: 4 * 16384,
        size: None,
    },
];

/// The bytes of each buffer.
const BYTES: usize = 4 << 20;

fn main() {
    println!("{:<16} {:>7} {:>12} {:>12}", "kernel", "checks", "instructions", "per second");
    for case in CASES {
        let module = Module::parse(case.text).expect("PTX that the tests run, too");
        for checks in [true, false] {
            let mut memory = Memory::new();
            let buffers: Vec<_> = (0..3).map(|_| memory.create(&vec![0; BYTES], 256)).collect();
            let mut arguments: Vec<Argument> = buffers.into_iter().map(Argument::from).collect();
            if let Some(size) = case.size {
                arguments[2] = size.into();
            }
            let mut launch = Launch::new([case.grid, 1, 1], [256, 1, 1], arguments);
            launch.dynamic_shared = case.dynamic_shared;
            launch.options.check_races = checks;
            launch.options.check_initialised = checks;
            let start = Instant::now();
            let counts = run(&module, "k", &launch, &mut memory).expect("a kernel without faults");
            let seconds = start.elapsed().as_secs_f64();
            let count = counts.instructions.thread as f64;
            println!("{:<16} {checks:>7} {count:>12.3e} {:>12.3e}", case.name, count / seconds);
        }
    }
}
