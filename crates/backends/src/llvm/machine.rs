//! Instructions that a machine has.

use super::has_feature;
use tc_passes::target::Machine;

/// Whether rounding to an integer is an instruction: so it is for 64-bit Arm, for GPUs, and for x86
/// from SSE4.1 on. Of other architectures nothing is known.
pub(super) fn rounds(machine: &Machine) -> bool {
    is_arm(machine) || machine.is_gpu() || is_x86_with(machine, "sse4.1")
}

/// Whether a fused multiply-add is an instruction.
pub(super) fn has_fma(machine: &Machine) -> bool {
    is_arm(machine) || machine.is_gpu() || is_x86_with(machine, "fma")
}

fn is_arm(machine: &Machine) -> bool {
    ["aarch64", "arm64"].iter().any(|name| machine.triple.starts_with(name))
}

fn is_x86_with(machine: &Machine, feature: &str) -> bool {
    machine.triple.starts_with("x86_64") && has_feature(machine, feature)
}
