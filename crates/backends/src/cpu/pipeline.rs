//! The passes from functions on tensors to the `llvm` dialect, as textual pipelines for
//! modules. All three parts together are `tc-opt --lower-to-cpu`.

use super::BACKEND;
use super::Cpu;
use tc_dialects::pass::{self, PassOption, PipelineInfo};
use tc_passes::{
    analysis::cost::LOAD,
    target::{Codegen, MAX_THREADS, Target as _},
};

/// All parts as one pipeline.
pub static LOWER_TO_CPU: PipelineInfo = PipelineInfo {
    argument: "lower-to-cpu",
    summary: "Lower functions on tensors to the llvm dialect, for a processor",
    options: &[
        PassOption {
            name: "threads",
            description: "The threads that the outer loops are divided among",
            default: "1",
        },
        PassOption {
            name: "strict-fp",
            description: "Neither reassociate nor contract floating-point operations",
            default: "false",
        },
        PassOption {
            name: "target-cpu",
            description: "The processor, as LLVM names it, or 'native' for this machine",
            default: "native",
        },
    ],
    build,
};

/// The option `threads`, or why it is invalid.
pub(crate) fn threads(options: &pass::Options) -> Result<usize, String> {
    let threads = options.text("threads").parse().ok();
    let threads = threads.filter(|threads| (1..=MAX_THREADS).contains(threads));
    threads.ok_or_else(|| format!("'threads' expects a number from 1 to {MAX_THREADS}"))
}

fn build(options: &pass::Options) -> Result<String, String> {
    let threads = threads(options)?;
    let strict_fp = options.truth("strict-fp")?;
    let machine = BACKEND.machine(Some(options.text("target-cpu")))?;
    let codegen = Codegen { threads, strict_fp, ..Codegen::new(machine) };
    Ok([BACKEND.legalize(true), BACKEND.lower(&codegen, true)].join(","))
}

/// Passes on each function, which run on several functions at the same time.
fn in_functions(passes: &[&str]) -> String {
    format!("func.func({})", passes.join(","))
}

/// The passes of a textual pipeline, with their options, one by one.
pub(super) fn passes(pipeline: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in split(pipeline) {
        match part.strip_suffix(')').and_then(|it| it.split_once('(')) {
            Some((anchor, inner)) if !anchor.contains('{') => {
                found.extend(passes(inner).iter().map(|pass| format!("{anchor}({pass})")));
            }
            _ => found.push(part.to_string()),
        }
    }
    found
}

/// The parts of a pipeline that no parentheses or braces enclose.
fn split(pipeline: &str) -> Vec<&str> {
    let mut depth = 0;
    let at_commas = |character| {
        match character {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    };
    pipeline.split(at_commas).collect()
}

/// The first part: results become destinations. Signatures are read after it. With `upstream`, the
/// program may contain any operation of MLIR's own dialects that works on tensors.
pub fn destinations(upstream: bool) -> String {
    let mut passes = Vec::new();
    if upstream {
        passes.extend([
            "func.func(shape-to-shape-lowering)",
            "func.func(convert-shape-constraints)",
            "convert-shape-to-std",
            "func.func(convert-elementwise-to-linalg)",
            "lower-affine",
        ]);
    }
    passes.extend([
        "split-complex",
        "expand-narrow-types",
        // Loops and branches carry scalars where they can, and loops that count are 'scf.for'.
        "scalarize-tensors",
        // 'canonicalize' visits all loops around a change again, so it should find little to change in
        // them. Where it makes a bound known, more loops count afterwards.
        "raise-while-to-for",
        "canonicalize",
        "cse",
        "raise-while-to-for",
        "convert-results-to-destinations",
    ]);
    passes.join(",")
}

/// The second part: buffers and loops. `upstream` as for [`destinations`].
pub fn to_loops(codegen: &Codegen, upstream: bool) -> String {
    [to_nests(codegen, upstream), from_nests(codegen)].join(",")
}

/// The pass that removes attributes of arguments, which LLVM IR cannot hold.
pub(crate) const DROP_ATTRIBUTES: &str = "drop-argument-attributes";

/// The passes from tensors to buffers, for every target.
pub(crate) const BUFFERIZE: [&str; 8] = [
    "unshare-empty-tensors",
    "reuse-carried-buffers",
    "copy-shared-destinations",
    // Up to bufferization nothing may fold the pairs of 'to_tensor' and 'to_buffer' that this makes.
    "bufferize-chains",
    "eliminate-empty-tensors",
    "one-shot-bufferize{allow-return-allocs-from-loops}",
    "canonicalize",
    "cse",
];

/// The first half of [`to_loops`]: kernels of loop nests, with all allocations and deallocations.
pub(super) fn to_nests(codegen: &Codegen, upstream: bool) -> String {
    let parallel = 1 < codegen.threads;
    let (bits, registers) = codegen.machine.vector_registers();
    let strict_fp = codegen.strict_fp;
    let threshold = codegen.machine.parallel_threshold();
    let choices = format!(
        "parallel={parallel} parallel-threshold={threshold} strict-fp={strict_fp} vector-bits={bits}"
    );
    let [first_cache, second_cache] = codegen.machine.cache_bytes;
    let loops = format!(
        "imap-schedule-loops{{strict-fp={strict_fp} vector-bits={bits} vector-registers={registers}}},\
         imap-vectorize{{{choices} cache-bytes={second_cache}}},convert-imap-to-scf{{{choices}}}"
    );
    let schedule = format!("imap-schedule{{{}}}", Cpu.tiles(codegen).options());
    let pack = format!("func.func(imap-pack{{vector-bits={bits} cache-bytes={first_cache}}})");
    // Of a fold to few results, each thread computes a part. A register block has a row of them.
    let split = format!(
        "func.func(imap-split-folds{{parts={} min-size={} row={} strict-fp={strict_fp}}})",
        codegen.threads,
        threshold / 2 / LOAD as i64,
        i64::from(registers) / 2 * codegen.machine.vector_length(32)
    );
    let mut passes = Vec::new();
    if codegen.excess_precision {
        passes.push("func.func(drop-roundings)");
    }
    passes.push("func.func(imap-split-variables,imap-permute-results)");
    if parallel {
        passes.push(&split);
    }
    passes.extend([&*pack, &schedule]);
    if codegen.profile {
        passes.push("note-work");
    }
    passes.extend(["func.func(imap-tile)", "cse"]);
    let independent = format!("func.func(parallelize-loops{{parallel-threshold={threshold}}})");
    if parallel {
        passes.push(&independent);
    }
    passes.push("func.func(hoist-scratch)");
    passes.extend(BUFFERIZE);
    passes.push("func.func(update-in-place,double-buffer-loops)");
    let copies = format!("func.func(parallelize-copies{{parallel-threshold={threshold}}})");
    if parallel {
        passes.push(&copies);
    }
    passes.push("func.func(mark-scratch,buffer-loop-hoisting)");
    passes.push(if parallel {
        "func.func(scf-forall-to-parallel)"
    } else {
        "func.func(scf-forall-to-for)"
    });
    if upstream {
        passes.extend(["convert-linalg-to-loops", "lower-affine"]);
    }
    // Kernels know that the buffers they take are apart, which parts of one workspace do not look like.
    passes.push("imap-outline-functions{max-operations=0}");
    if codegen.profile {
        passes.push("time-kernels");
    }
    // A nest of one operation stays whole.
    passes.push("imap-outline-functions{max-operations=1 max-loops=8}");
    let loops = in_functions(&[&loops, "cse", "canonicalize", "cse"]);
    passes.extend([
        &*loops,
        "deallocate-local-buffers",
        "lift-scratch",
        // Deallocation works on operations whose control flow it knows, loops that is.
        "ownership-based-buffer-deallocation",
        "func.func(canonicalize,buffer-deallocation-simplification)",
        "bufferization-lower-deallocations",
        "convert-bufferization-to-memref",
        "expand-strided-copies",
        "func.func(cse)",
        "hoist-deallocations",
        "imap-assign-buffers{allocate=true}",
        DROP_ATTRIBUTES,
    ]);
    passes.join(",")
}

/// The second half of [`to_loops`]: parallel regions, and index arithmetic.
fn from_nests(codegen: &Codegen) -> String {
    let mut passes = Vec::new();
    if 1 < codegen.threads {
        passes.push("outline-parallel-loops");
    }
    passes.extend([
        // Only now, because canonicalization keeps regions that hold calls of functions.
        "convert-imap-to-arith",
        "func.func(canonicalize,cse)",
        "hoist-divisions",
        "limit-vectorization",
    ]);
    passes.join(",")
}

/// The third part: the `llvm` dialect. `upstream` as for [`destinations`].
pub fn to_llvm(upstream: bool) -> String {
    let mut passes = Vec::new();
    if upstream {
        passes.extend([
            "func.func(affine-expand-index-ops)",
            "func.func(lower-vector-mask)",
            "func.func(lower-vector-multi-reduction)",
            "convert-vector-to-scf",
            "memref-expand",
            "math-expand-ops{ops=fpowi}",
            "convert-math-to-funcs",
            "convert-complex-to-standard",
        ]);
    }
    let expand = in_functions(&[
        "expand-strided-metadata",
        "lower-affine",
        // Conversions of bf16, which few processors have.
        "arith-expand{include-bf16=true}",
        "convert-scf-to-cf",
        "convert-math-to-llvm",
    ]);
    // Masks and steps of vectors are lowered by a pass of their own only.
    passes.extend([&*expand, "convert-math-to-libm", "func.func(convert-vector-to-llvm)"]);
    passes.extend([
        "separate-entry-blocks",
        // One conversion of all dialects: each one by itself visits every operation.
        "convert-to-llvm",
        "reconcile-unrealized-casts",
        "store-bools-as-bytes",
        "llvm.func(canonicalize,cse)",
    ]);
    // Last, for it looks for the pointers that are freed.
    passes.push("check-allocations");
    passes.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipelines_split_into_passes() {
        let found = passes("cse,func.func(a{b=1 c=2},d),e{f=1,g=2},h{i=(1)}");
        let functions = ["func.func(a{b=1 c=2})", "func.func(d)"];
        assert_eq!(found, ["cse", functions[0], functions[1], "e{f=1,g=2}", "h{i=(1)}"]);
    }
}
