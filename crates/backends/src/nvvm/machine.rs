//! GPU descriptions: the names and PTX versions of supported generations.

use tc_passes::target::Machine;

/// A generation of GPUs.
struct Generation {
    /// The name of LLVM and ptxas.
    name: &'static str,
    /// The lowest version of PTX that has its instructions, as LLVM names it.
    ptx: &'static str,
    /// The multiprocessors of its largest data center GPU: A100, H100 and B200.
    multiprocessors: i64,
}

/// The oldest generation first.
const GENERATIONS: [Generation; 3] = [
    Generation { name: "sm_80", ptx: "+ptx70", multiprocessors: 108 },
    Generation { name: "sm_90a", ptx: "+ptx80", multiprocessors: 132 },
    Generation { name: "sm_100a", ptx: "+ptx86", multiprocessors: 148 },
];

/// The threads that a multiprocessor of each generation holds.
const THREADS: i64 = 2048;

/// The supported generations of GPUs, the oldest one first.
pub fn machines() -> Vec<Machine> {
    GENERATIONS.iter().map(machine).collect()
}

/// The blocks of so many threads that a GPU holds at a time; 1 for another machine.
pub(super) fn resident_blocks(machine: &Machine, threads: i64) -> i64 {
    let generation = GENERATIONS.iter().find(|it| it.name == machine.cpu);
    generation.map_or(1, |it| it.multiprocessors * (THREADS / threads))
}

/// The fewest blocks of so many threads, with as many registers as a kernel may use, that fill a GPU; 1 for another
/// machine.
pub(super) fn busy_blocks(machine: &Machine, threads: i64) -> i64 {
    (resident_blocks(machine, threads) / 4).max(1)
}

/// The blocks of so many threads that are a quarter of the threads that a multiprocessor holds.
pub(super) fn least_blocks(threads: i64) -> i64 {
    THREADS / 4 / threads
}

fn machine(generation: &Generation) -> Machine {
    Machine {
        triple: "nvptx64-nvidia-cuda".to_string(),
        cpu: generation.name.to_string(),
        features: generation.ptx.to_string(),
        cache_bytes: [0, 0],
        set_bytes: 0,
    }
}
