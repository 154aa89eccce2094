//! The passes from kernels, operations of `imap` on buffers in a `gpu.module`, to the `llvm` dialect.

use tc_dialects::pass::{self, PassOption, PipelineInfo};

/// The whole pipeline as `tc-opt` runs it.
pub static LOWER_TO_NVVM: PipelineInfo = PipelineInfo {
    argument: "lower-to-nvvm",
    summary: "Lower kernels to the llvm and nvvm dialects, for a GPU",
    options: &[
        PassOption {
            name: "index-bitwidth",
            description: "Bits of an index: 32 or 64",
            default: "32",
        },
        PassOption {
            name: "strict-fp",
            description: "Neither reassociate nor contract floating-point operations",
            default: "false",
        },
    ],
    build,
};

fn build(options: &pass::Options) -> Result<String, String> {
    let bits = match options.text("index-bitwidth") {
        "32" => 32,
        "64" => 64,
        _ => return Err("'index-bitwidth' expects 32 or 64".to_string()),
    };
    Ok(lower(bits, options.truth("strict-fp")?))
}

/// The pipeline as text, for indices of so many bits.
pub(super) fn lower(index_bits: u32, strict_fp: bool) -> String {
    let threads = format!("gpu.func(convert-imap-to-gpu{{strict-fp={strict_fp}}})");
    let convert = format!("convert-kernels-to-nvvm{{index-bitwidth={index_bits}}}");
    let passes = [
        &*threads,
        "canonicalize",
        "cse",
        "loop-invariant-code-motion",
        "canonicalize",
        "cse",
        "convert-imap-to-arith",
        "convert-scf-to-cf",
        "expand-strided-metadata",
        "lower-affine",
        "arith-expand{include-bf16=true}",
        &*convert,
        "canonicalize",
        "cse",
        "reconcile-unrealized-casts",
    ];
    format!("gpu.module({})", passes.join(","))
}
