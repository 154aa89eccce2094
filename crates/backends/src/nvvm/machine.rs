//! GPU descriptions: the names and PTX versions of supported generations.

use tc_passes::target::Machine;

/// The names of LLVM and ptxas, the oldest generation first, with the lowest version of PTX that has
/// its instructions, as LLVM names it.
const GENERATIONS: [(&str, &str); 3] =
    [("sm_80", "+ptx70"), ("sm_90a", "+ptx80"), ("sm_100a", "+ptx86")];

/// The supported generations of GPUs, the oldest one first.
pub fn machines() -> Vec<Machine> {
    GENERATIONS.iter().map(machine).collect()
}

fn machine((name, ptx): &(&str, &str)) -> Machine {
    Machine {
        triple: "nvptx64-nvidia-cuda".to_string(),
        cpu: (*name).to_string(),
        features: (*ptx).to_string(),
    }
}
