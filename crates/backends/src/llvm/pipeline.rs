//! LLVM's passes for loop nests on a processor.

/// Loops with more iterations are not fully unrolled. LLVM limits the instructions of an unrolled loop instead: it unrolls
/// rows of 32 vectors, and the result is not faster but takes long to compile.
const MAX_UNROLLED: u32 = 4;

/// The pipeline as text. It is `default<O3>` of LLVM 22 without the passes for other languages, those for branches that
/// loop nests do not have, and those that [`super::initialize`] switches off. With [`MAX_UNROLLED`], it takes about two
/// thirds of the time, for code that is as fast.
pub(super) fn for_loop_nests() -> String {
    let combine = "instcombine<max-iterations=1;no-verify-fixpoint>";
    let simplify = "simplifycfg<switch-range-to-icmp;keep-loops>";
    let sink = "simplifycfg<switch-range-to-icmp;keep-loops;hoist-common-insts;sink-common-insts>";
    let last = "simplifycfg<switch-range-to-icmp;keep-loops;hoist-loads-stores-with-cond-faulting;\
                speculate-unpredictables>";
    let rotate = "loop-rotate<header-duplication;no-prepare-for-lto>";
    // Most built-ins are not called, and other parts of the program have functions of their own: these go before
    // anything is done about them.
    let builtins = format!(
        "elim-avail-extern,globaldce,inferattrs,function<eager-inv>({simplify},sroa<modify-cfg>,early-cse<>),always-inline,globalopt"
    );
    let invariants = format!(
        "loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,{rotate},\
         licm<allowspeculation>,simple-loop-unswitch<nontrivial;trivial>)"
    );
    let unroll = |more: &str| {
        format!(
            "loop-unroll<O3;full-unroll-max={MAX_UNROLLED};no-partial;no-upperbound;no-peeling;no-profile-peeling{more}>"
        )
    };
    let early_unroll = unroll(";no-runtime");
    let functions = [
        "sroa<modify-cfg>",
        "early-cse<memssa>",
        simplify,
        combine,
        "reassociate",
        &invariants,
        simplify,
        combine,
        "loop(loop-idiom,indvars,loop-deletion)",
        &early_unroll,
        "sroa<modify-cfg>",
        "gvn<>",
        "sccp",
        "bdce",
        combine,
        "adce",
        "memcpyopt",
        "dse",
        "loop-mssa(licm<allowspeculation>)",
        sink,
        combine,
    ];
    let late_rotate = format!("loop({rotate},loop-deletion)");
    let late_unroll = unroll("");
    let vectors = [
        "float2int",
        "lower-constant-intrinsics",
        &late_rotate,
        "inject-tli-mappings",
        "loop-vectorize<no-interleave-forced-only;no-vectorize-forced-only>",
        "infer-alignment",
        "loop-load-elim",
        combine,
        sink,
        "vector-combine",
        combine,
        &late_unroll,
        "sroa<preserve-cfg>",
        "infer-alignment",
        combine,
        "loop-mssa(licm<allowspeculation>)",
        "loop-sink",
        "instsimplify",
        "div-rem-pairs",
        last,
    ];
    format!(
        "{builtins},cgscc(devirt<4>(inline,function-attrs<skip-non-recursive-function-attrs>,\
         function<eager-inv;no-rerun>({}))),globalopt,globaldce,function<eager-inv>({}),globaldce,constmerge",
        functions.join(","),
        vectors.join(",")
    )
}
