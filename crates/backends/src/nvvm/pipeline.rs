//! The passes from kernels, operations of `imap` on buffers in a `gpu.module`, to the `llvm` dialect.

use super::machine::{busy_blocks, resident_blocks};
use crate::cpu::pipeline::{BUFFERIZE, DROP_ATTRIBUTES, destinations, to_llvm};
use tc_dialects::pass::{self, PassOption, PipelineInfo};
use tc_passes::target::{Codegen, TileLimits};

/// The pipeline of programs up to kernels as `tc-opt` runs it.
pub static OUTLINE_KERNELS: PipelineInfo = PipelineInfo {
    argument: "lower-to-kernels",
    summary: "Lower functions on tensors to kernels for a GPU, and functions that launch them",
    options: &[
        PassOption {
            name: "parts",
            description: "The number of folds that keep the GPU busy",
            default: "1",
        },
        PassOption {
            name: "strict-fp",
            description: "Neither reassociate nor contract floating-point operations",
            default: "false",
        },
    ],
    build: |options| {
        let parts = options.number("parts").ok_or("'parts' expects a number")?;
        let kernels = outline(parts, options.truth("strict-fp")?, true);
        Ok([INLINE, &destinations(true), &kernels].join(","))
    },
};

/// The pass before all others: the kernels that a function launches are its own.
pub(super) const INLINE: &str = "inline-calls";
/// Threads of a block.
pub(super) const BLOCK: i64 = 256;
/// The most bytes of a tile. It is in shared memory, together with the values that warps exchange. Every GPU gives a
/// block 48 KiB of shared memory.
const TILE_BYTES: u64 = 40 << 10;
/// Elements of four bytes that memory moves together.
const STRIP: u64 = 8;
/// Blocks of a launch, as a multiple of those that run at a time.
const WAVES: i64 = 4;
/// Values of a fold that are worth a thread of a block.
const VALUES_PER_THREAD: i64 = 4;

/// The limits of the tiles of blocks.
pub(super) fn tiles() -> TileLimits {
    TileLimits {
        min_bytes: 1,
        tile_bytes: TILE_BYTES,
        shared_bytes: TILE_BYTES,
        product_bytes: 0,
        min_points: BLOCK.unsigned_abs(),
        min_row: (BLOCK * VALUES_PER_THREAD).unsigned_abs(),
        min_strip: STRIP,
        min_tiles: 2,
        blocks: true,
        ..TileLimits::default()
    }
}

/// The passes from functions with destinations to kernels and a workspace. With `upstream`, functions may contain
/// structured operations of `linalg` on tensors.
pub(super) fn to_kernels(codegen: &Codegen, upstream: bool) -> String {
    let kernels = outline(resident_blocks(&codegen.machine, BLOCK), codegen.strict_fp, upstream);
    match codegen.excess_precision {
        true => format!("func.func(drop-roundings),{kernels}"),
        false => kernels,
    }
}

/// [`to_kernels`] for a GPU that so many folds keep busy.
fn outline(parts: i64, strict_fp: bool, upstream: bool) -> String {
    let structured = "func.func(convert-elementwise-to-linalg,convert-linalg-to-imap)";
    let schedule = format!("imap-schedule{{{}}}", tiles().options());
    let split = format!(
        "func.func(imap-split-folds{{parts={parts} min-size={} strict-fp={strict_fp}}})",
        BLOCK * VALUES_PER_THREAD
    );
    let split = [&*schedule, &*split, "func.func(imap-tile)", "cse"];
    let outline = match parts {
        1 => "imap-outline-kernels".to_string(),
        _ => format!("imap-outline-kernels{{max-blocks={}}}", parts.saturating_mul(WAVES)),
    };
    let kernels = [
        "pin-carried-buffers",
        DROP_ATTRIBUTES,
        "func.func(scf-forall-to-parallel)",
        "canonicalize",
        "cse",
        &*outline,
        "canonicalize",
        "cse",
        "imap-assign-buffers",
    ];
    let structured = if upstream { &[structured][..] } else { &[] };
    [structured, &split, &BUFFERIZE, &kernels].concat().join(",")
}

/// The passes from functions that call a device to the `llvm` dialect, without kernels.
pub(super) fn host() -> String {
    let scalars = "convert-imap-to-arith,canonicalize,cse";
    [scalars, &to_llvm(true), "check-device-reads"].join(",")
}

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
        PassOption { name: "blocks", description: "Blocks that keep the GPU busy", default: "1" },
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
    let blocks = options.number("blocks").ok_or("'blocks' expects a number")?;
    Ok(lower_for(bits, blocks, options.truth("strict-fp")?))
}

/// The pass of a `gpu.module` that turns kernels into the code of a thread.
pub(super) fn threads(codegen: &Codegen) -> String {
    threads_for(busy_blocks(&codegen.machine, BLOCK), codegen.strict_fp)
}

fn threads_for(blocks: i64, strict_fp: bool) -> String {
    let options = format!("block-size={BLOCK} blocks={blocks} strict-fp={strict_fp}");
    format!("gpu.func(convert-imap-to-gpu{{{options}}})")
}

/// The pipeline as text, for indices of so many bits.
pub(super) fn lower(index_bits: u32, codegen: &Codegen) -> String {
    lower_for(index_bits, busy_blocks(&codegen.machine, BLOCK), codegen.strict_fp)
}

fn lower_for(index_bits: u32, blocks: i64, strict_fp: bool) -> String {
    let threads = threads_for(blocks, strict_fp);
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
