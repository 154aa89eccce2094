//! The passes from functions on tensors to the `llvm` dialect, as textual pipelines that
//! work in `tc-opt --pass-pipeline=..` too.

use super::Options;

/// The first part: results become destinations. Signatures are read after it.
pub fn destinations() -> String {
    "builtin.module(canonicalize,cse,convert-results-to-destinations)".to_string()
}

/// The second part: buffers, loops, and the `llvm` dialect.
pub fn to_llvm(options: &Options) -> String {
    let parallel = 1 < options.threads;
    let (bits, registers) = options.target.vector_registers();
    let loops = format!(
        "func.func(convert-imap-to-scf{{parallel={parallel} strict-fp={} vector-bits={bits} \
         vector-registers={registers}}})",
        options.strict_fp
    );
    let mut passes = vec![
        // Buffers.
        "unshare-empty-tensors",
        "copy-shared-destinations",
        "eliminate-empty-tensors",
        "empty-tensor-to-alloc-tensor",
        "one-shot-bufferize{allow-return-allocs-from-loops}",
        "canonicalize",
        "cse",
    ];
    if !parallel {
        // What runs in parallel keeps its outer dimension for that.
        passes.push("func.func(fuse-outer-dimensions)");
    }
    passes.extend([
        // Loops.
        &*loops,
        "canonicalize",
        "cse",
        // Deallocation works on operations whose control flow it knows, loops that is.
        "ownership-based-buffer-deallocation",
        "canonicalize",
        "buffer-deallocation-simplification",
        "bufferization-lower-deallocations",
        "cse",
        "canonicalize",
        "hoist-deallocations",
        "outline-loops",
    ]);
    if parallel {
        // Between the two, canonicalization removes regions that the second cannot handle.
        passes.extend(["convert-scf-to-openmp", "canonicalize"]);
    }
    passes.extend([
        // Only now, because canonicalization keeps regions that hold calls of functions.
        "convert-imap-to-arith",
        "canonicalize",
        "cse",
        "hoist-divisions",
        "limit-vectorization",
        // The llvm dialect.
        "expand-strided-metadata",
        "lower-affine",
        "func.func(arith-expand)",
        "convert-scf-to-cf",
        "convert-vector-to-llvm",
        "convert-math-to-llvm",
        "convert-math-to-libm",
        "finalize-memref-to-llvm",
        "convert-index-to-llvm",
        "convert-arith-to-llvm",
        "convert-cf-to-llvm",
    ]);
    if parallel {
        passes.push("convert-openmp-to-llvm");
    }
    passes.extend(["convert-func-to-llvm", "reconcile-unrealized-casts", "canonicalize", "cse"]);
    // Last, for it looks for the pointers that are freed.
    passes.push("check-allocations");
    format!("builtin.module({})", passes.join(","))
}
