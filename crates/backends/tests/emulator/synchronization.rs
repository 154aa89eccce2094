//! Small kernels that synchronise, rightly and wrongly: what is an error and what is not.

use tc_backends::nvvm::emulator::{
    BlockOrder, Counts, Error, FaultKind, Launch, Memory, Module, run,
};

/// A kernel with a pointer `x` in `%rd1`, the thread in `%r1`, the block in `%r2`, the lane in
/// `%r3`, the address of its element of `x` in `%rd2` and of `tile` in `%rd4`.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.0
.target sm_90
.address_size 64
.shared .align 1024 .b8 tile[1024];
.visible .entry k(.param .u64 x)
{{
.reg .pred %p<9>;
.reg .b32 %r<20>;
.reg .b64 %rd<20>;
ld.param.b64 %rd1, [x];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %laneid;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd2, %rd1, %rd3;
mov.b64 %rd5, tile;
add.s64 %rd4, %rd5, %rd3;
{body}
ret;
}}
"
    )
}

fn launch(text: &str, grid: u32, block: u32, order: BlockOrder) -> Result<(Counts, Memory), Error> {
    let module = Module::parse(text)?;
    let mut memory = Memory::new();
    let x = memory.create(&[0; 1024], 16);
    let mut launch = Launch::new([grid, 1, 1], [block, 1, 1], vec![x.into()]);
    launch.options.order = order;
    launch.options.max_instructions = 1_000_000;
    let counts = run(&module, "k", &launch, &mut memory)?;
    Ok((counts, memory))
}

fn accepts(body: &str, grid: u32, block: u32) {
    for order in [BlockOrder::Sequential, BlockOrder::Interleaved(4)] {
        if let Err(error) = launch(&kernel(body), grid, block, order) {
            panic!("{error}\n{body}");
        }
    }
}

fn rejects(body: &str, grid: u32, block: u32) -> FaultKind {
    match launch(&kernel(body), grid, block, BlockOrder::Sequential) {
        Err(Error::Fault(fault)) => fault.kind,
        Err(error) => panic!("{error}\n{body}"),
        Ok(_) => panic!("expected a fault\n{body}"),
    }
}

fn is_race(kind: &FaultKind) -> bool {
    matches!(kind, FaultKind::Race { .. })
}

/// Every thread writes its element of the tile, then reads its neighbour's.
fn exchange(between: &str) -> String {
    format!(
        "st.shared.b32 [%rd4], %r1;
{between}
xor.b64 %rd6, %rd3, 4;
add.s64 %rd6, %rd5, %rd6;
ld.shared.b32 %r4, [%rd6];"
    )
}

#[test]
fn lanes_need_a_warp_barrier() {
    assert!(is_race(&rejects(&exchange(""), 1, 64)));
    accepts(&exchange("bar.warp.sync -1;"), 1, 64);
    accepts(&exchange("bar.sync 0;"), 1, 64);
    // A shuffle orders nothing.
    let kind = rejects(&exchange("shfl.sync.bfly.b32 %r5, %r1, 1, 31, -1;"), 1, 32);
    assert!(is_race(&kind), "{kind}");
    // A barrier of some lanes orders these only.
    let half = "setp.lt.u32 %p1, %r3, 16;\n@%p1 bar.warp.sync 65535;";
    let kind = rejects(&exchange(half), 1, 32);
    assert!(matches!(kind, FaultKind::Race { offset: 64..128, .. }), "{kind}");
}

#[test]
fn a_race_names_both_accesses() {
    let text = kernel(&exchange(""));
    let error = launch(&text, 1, 32, BlockOrder::Sequential).expect_err("a race");
    assert_eq!(
        error.to_string(),
        "kernel 'k', line 22:1, thread (0, 0, 0) of block (0, 0, 0): race at offset 4 of shared \
         memory: write at line 18:1 by thread (1, 0, 0) of block (0, 0, 0); read at line 22:1 by \
         thread (0, 0, 0) of block (0, 0, 0)"
    );
}

#[test]
fn warps_need_a_block_barrier() {
    let other_warp = |between: &str| {
        format!(
            "st.shared.b32 [%rd4], %r1;
{between}
xor.b64 %rd6, %rd3, 128;
add.s64 %rd6, %rd5, %rd6;
ld.shared.b32 %r4, [%rd6];"
        )
    };
    let kind = rejects(&other_warp("bar.warp.sync -1;"), 1, 64);
    assert!(matches!(kind, FaultKind::Race { .. } | FaultKind::Uninitialised { .. }), "{kind}");
    accepts(&other_warp("bar.sync 0;"), 1, 64);
    accepts(&other_warp("barrier.sync 3, 64;"), 1, 64);
}

#[test]
fn a_write_after_reads_is_a_race() {
    // All warps read one word, then the last one writes it.
    let body = |between: &str| {
        format!(
            "setp.eq.u32 %p1, %r1, 0;
@%p1 st.shared.b32 [tile], 7;
bar.sync 0;
ld.shared.b32 %r4, [tile];
{between}
setp.eq.u32 %p2, %r1, 127;
@%p2 st.shared.b32 [tile], 8;"
        )
    };
    let kind = rejects(&body("bar.warp.sync -1;"), 1, 128);
    assert!(is_race(&kind), "{kind}");
    accepts(&body("bar.sync 0;"), 1, 128);
}

#[test]
fn all_lanes_must_not_write_one_word() {
    assert!(is_race(&rejects("st.shared.b32 [tile], 7;", 1, 32)));
    accepts("setp.eq.u32 %p1, %r1, 3;\n@%p1 st.shared.b32 [tile], 7;", 1, 32);
    // Bytes of one word are different places.
    accepts("cvt.u64.u32 %rd7, %r1;\nadd.s64 %rd7, %rd5, %rd7;\nst.shared.b8 [%rd7], %r1;", 1, 64);
}

#[test]
fn producers_and_consumers_meet_at_named_barriers() {
    let body = |arrive: &str, sync: &str| {
        format!(
            "setp.ge.u32 %p1, %r1, 32;
@%p1 bra $consumer;
st.shared.b32 [%rd4], %r1;
{arrive}
bra.uni $end;
$consumer:
{sync}
ld.shared.b32 %r4, [%rd4+-128];
$end:"
        )
    };
    accepts(&body("bar.arrive 1, 64;", "bar.sync 1, 64;"), 1, 64);
    let kind = rejects(&body("", "bar.warp.sync -1;"), 1, 64);
    assert!(matches!(kind, FaultKind::Race { .. } | FaultKind::Uninitialised { .. }), "{kind}");
    let kind = rejects(&body("bar.arrive 2, 64;", "bar.sync 1, 64;"), 1, 64);
    assert!(matches!(kind, FaultKind::Deadlock(_)), "{kind}");
}

#[test]
fn a_cluster_of_one_block_has_a_barrier() {
    let body = |wait: &str| {
        format!(
            "st.shared.b32 [%rd4], %r1;
barrier.cluster.arrive.aligned;
{wait}
xor.b64 %rd6, %rd3, 128;
add.s64 %rd6, %rd5, %rd6;
mapa.shared::cluster.u64 %rd6, %rd6, 0;
ld.shared::cluster.b32 %r4, [%rd6];"
        )
    };
    accepts(&body("barrier.cluster.wait.aligned;"), 1, 64);
    let kind = rejects(&body(""), 1, 64);
    assert!(matches!(kind, FaultKind::Race { .. } | FaultKind::Uninitialised { .. }), "{kind}");
}

#[test]
fn barriers_reduce() {
    let body = "setp.eq.u32 %p1, %r1, 40;
bar.red.or.pred %p2, 0, %p1;
bar.red.popc.u32 %r4, 0, %p1;
selp.b32 %r5, 10, 0, %p2;
add.s32 %r4, %r4, %r5;
st.global.b32 [%rd2], %r4;";
    let (_, memory) = launch(&kernel(body), 1, 64, BlockOrder::Sequential).expect("a run");
    let buffer = memory.buffers().next().expect("a buffer");
    assert!(memory.read(buffer)[..256].chunks(4).all(|word| word == [11, 0, 0, 0]));
}

#[test]
fn barriers_in_divergent_code_are_errors() {
    let kind = rejects("setp.lt.u32 %p1, %r3, 16;\n@%p1 bar.sync 0;", 1, 32);
    assert_eq!(kind, FaultKind::Divergent { what: "barrier", active: 0xffff, warp: u32::MAX });
    let exits = "setp.lt.u32 %p1, %r3, 16;\n@%p1 ret;\nbar.sync 0;";
    assert!(matches!(rejects(exits, 1, 32), FaultKind::Divergent { .. }));
    // Whole warps may leave before.
    accepts("setp.lt.u32 %p1, %r1, 32;\n@%p1 ret;\nbar.sync 0;", 1, 64);
    let kind = rejects(
        "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra $a;\nbar.sync 1;\nbra.uni $b;\n$a:\nbar.sync 2;\n$b:",
        1,
        64,
    );
    assert!(matches!(&kind, FaultKind::Deadlock(text) if text.contains("barrier 1")), "{kind}");
}

#[test]
fn masks_must_name_who_is_there() {
    let missing = |body: &str| match rejects(body, 1, 32) {
        FaultKind::MissingLanes { missing, why, .. } => (missing, why),
        kind => panic!("{kind}"),
    };
    let exited = "setp.lt.u32 %p1, %r3, 4;\n@%p1 ret;\nshfl.sync.idx.b32 %r4, %r1, 0, 31, -1;";
    assert_eq!(missing(exited), (15, "have exited".to_string()));
    let elsewhere = "setp.lt.u32 %p1, %r3, 16;
@%p1 bra $a;
bar.warp.sync -1;
bra.uni $b;
$a:
bar.warp.sync -1;
$b:";
    let (lanes, why) = missing(elsewhere);
    assert!(lanes.count_ones() == 16 && why.starts_with("are at line"), "{why}");
    let kind = rejects("shfl.sync.idx.b32 %r4, %r1, 0, 31, 255;", 1, 32);
    assert!(matches!(kind, FaultKind::UnnamedLanes { mask: 255, .. }), "{kind}");
    // Halves that each name themselves.
    accepts(
        "setp.lt.u32 %p1, %r3, 16;
selp.b32 %r5, 65535, -65536, %p1;
shfl.sync.bfly.b32 %r4, %r1, 1, 31, %r5;",
        1,
        32,
    );
}

#[test]
fn matrices_need_the_whole_warp() {
    let body =
        "setp.lt.u32 %p1, %r3, 16;\n@%p1 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%rd5];";
    assert!(matches!(rejects(body, 1, 32), FaultKind::Divergent { what: "ldmatrix", .. }));
}

/// Block 0 writes data and a flag; block 1 waits for the flag and reads the data.
fn message(write: &str, read: &str) -> String {
    format!(
        "setp.ne.u32 %p1, %r1, 0;
@%p1 ret;
setp.ne.u32 %p2, %r2, 0;
@%p2 bra $reader;
st.global.b32 [%rd1], 42;
{write}
ret;
$reader:
{read}
setp.eq.u32 %p3, %r4, 0;
@%p3 bra $reader;
ld.global.b32 %r5, [%rd1];
st.global.b32 [%rd1+128], %r5;"
    )
}

#[test]
fn blocks_synchronise_by_release_and_acquire() {
    let acquire = "ld.acquire.gpu.global.b32 %r4, [%rd1+64];";
    accepts(&message("st.release.gpu.global.b32 [%rd1+64], 1;", acquire), 2, 32);
    let fences = (
        "fence.acq_rel.gpu;\nred.relaxed.gpu.global.add.u32 [%rd1+64], 1;",
        "ld.relaxed.gpu.global.b32 %r4, [%rd1+64];\nfence.acq_rel.gpu;",
    );
    accepts(&message(fences.0, fences.1), 2, 32);
    let wrong = [
        message("st.relaxed.gpu.global.b32 [%rd1+64], 1;", acquire),
        message(
            "st.release.gpu.global.b32 [%rd1+64], 1;",
            "ld.relaxed.gpu.global.b32 %r4, [%rd1+64];",
        ),
        message("st.release.cta.global.b32 [%rd1+64], 1;", acquire),
        message("st.global.b32 [%rd1+64], 1;", acquire),
        message("membar.cta;\nred.global.add.u32 [%rd1+64], 1;", acquire),
    ];
    for body in wrong {
        let kind = rejects(&body, 2, 32);
        assert!(is_race(&kind), "{kind}\n{body}");
    }
}

#[test]
fn the_last_block_may_read_what_all_wrote() {
    let body = |fence: &str| {
        format!(
            "mad.lo.s32 %r4, %r2, 64, %r1;
mul.wide.u32 %rd7, %r4, 4;
add.s64 %rd7, %rd1, %rd7;
st.global.b32 [%rd7], %r4;
bar.sync 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra $wait;
{fence}
atom.global.add.u32 %r5, [%rd1+1020], 1;
{fence}
st.shared.b32 [tile], %r5;
$wait:
bar.sync 0;
ld.shared.b32 %r6, [tile];
setp.ne.u32 %p2, %r6, 2;
@%p2 ret;
ld.global.b32 %r7, [%rd2];
ld.global.b32 %r8, [%rd2+256];"
        )
    };
    accepts(&body("fence.acq_rel.gpu;"), 3, 64);
    assert!(is_race(&rejects(&body(""), 3, 64)));
}

#[test]
fn atomics_race_with_ordinary_accesses_only() {
    accepts("red.global.add.u32 [%rd1], 1;", 4, 64);
}

#[test]
fn atomics_of_one_block_race_with_other_blocks() {
    assert!(is_race(&rejects("red.relaxed.cta.global.add.u32 [%rd1], 1;", 2, 32)));
    assert!(is_race(&rejects("red.global.add.u32 [%rd1], 1;\nld.global.b32 %r4, [%rd1];", 1, 32)));
}

#[test]
fn blocks_race_in_global_memory() {
    assert!(is_race(&rejects("st.global.b32 [%rd2], %r1;", 2, 32)));
    let kind = rejects(
        "ld.global.b32 %r4, [%rd2];\nadd.s32 %r4, %r4, 1;\nst.global.b32 [%rd2], %r4;",
        2,
        32,
    );
    assert!(is_race(&kind));
    accepts("ld.global.b32 %r4, [%rd2];", 4, 32);
    let kind =
        rejects("st.global.b32 [%rd2], %r1;\nbar.sync 0;\nld.global.nc.b32 %r4, [%rd2];", 1, 32);
    assert!(matches!(kind, FaultKind::NonCoherent { .. }), "{kind}");
}

#[test]
fn asynchronous_copies_land_at_the_wait() {
    let body = |wait: &str| {
        format!(
            "cp.async.ca.shared.global [%rd4], [%rd2], 4;
cp.async.commit_group;
{wait}
xor.b64 %rd6, %rd3, 128;
add.s64 %rd6, %rd5, %rd6;
ld.shared.b32 %r4, [%rd6];"
        )
    };
    accepts(&body("cp.async.wait_group 0;\nbar.sync 0;"), 1, 64);
    accepts(&body("cp.async.wait_all;\nbar.sync 0;"), 1, 64);
    for wait in ["", "bar.sync 0;", "cp.async.wait_group 1;\nbar.sync 0;"] {
        let kind = rejects(&body(wait), 1, 64);
        assert!(
            matches!(kind, FaultKind::BeforeWait { .. } | FaultKind::Uninitialised { .. }),
            "{kind}"
        );
    }
    // The wait makes the copies of the own thread visible, not those of others.
    let kind = rejects(&body("cp.async.wait_group 0;"), 1, 64);
    assert!(matches!(
        kind,
        FaultKind::BeforeWait { .. } | FaultKind::Race { .. } | FaultKind::Uninitialised { .. }
    ));
    let overwritten = "cp.async.ca.shared.global [%rd4], [%rd2], 4;\nst.shared.b32 [%rd4], 1;";
    let kind = rejects(overwritten, 1, 32);
    assert!(matches!(kind, FaultKind::BeforeWait { access: "write", .. }), "{kind}");
}

/// Thread 0 copies 128 bytes with an mbarrier at `tile + 512`; all wait for it.
fn bulk(expect: u32, wait: &str) -> String {
    format!(
        "setp.ne.u32 %p1, %r1, 0;
@%p1 bra $ready;
mbarrier.init.shared.b64 [tile+512], 1;
$ready:
bar.sync 0;
@%p1 bra $wait;
mbarrier.arrive.expect_tx.shared.b64 _, [tile+512], {expect};
mov.b32 %r6, 128;
cvta.to.global.u64 %rd8, %rd1;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd8], %r6, [tile+512];
$wait:
{wait}
ld.shared.b32 %r4, [%rd4];"
    )
}

#[test]
fn bulk_copies_land_at_the_mbarrier() {
    let wait = "mbarrier.try_wait.parity.shared.b64 %p2, [tile+512], 0;\n@!%p2 bra $wait;";
    accepts(&bulk(128, wait), 1, 32);
    let kind = rejects(&bulk(128, ""), 1, 32);
    assert!(matches!(kind, FaultKind::BeforeWait { .. }), "{kind}");
    let kind = rejects(&bulk(256, wait), 1, 32);
    assert!(matches!(kind, FaultKind::Deadlock(_)), "{kind}");
}

#[test]
fn places_are_checked() {
    let out_of_bounds = |body: &str| matches!(rejects(body, 1, 32), FaultKind::OutOfBounds { .. });
    assert!(out_of_bounds("ld.global.b32 %r4, [%rd1+-4];"));
    assert!(out_of_bounds("ld.global.b32 %r4, [%rd1+1024];"));
    assert!(out_of_bounds("mov.b64 %rd7, 0;\nld.global.b32 %r4, [%rd7];"));
    assert!(out_of_bounds("st.shared.b32 [tile+1024], 0;"));
    assert!(out_of_bounds("ld.b32 %r4, [%rd5];"));
    assert!(matches!(rejects("ld.global.b32 %r4, [%rd1+2];", 1, 1), FaultKind::Misaligned { .. }));
    assert!(matches!(rejects("ld.shared.b32 %r4, [tile];", 1, 1), FaultKind::Uninitialised { .. }));
    let local = ".local .align 4 .b8 depot[8];\nld.local.b32 %r4, [depot+4];";
    assert!(matches!(rejects(local, 1, 1), FaultKind::Uninitialised { .. }));
    assert!(out_of_bounds(".local .align 4 .b8 depot[8];\nst.local.b32 [depot+8], 1;"));
}

#[test]
fn endless_loops_end() {
    assert_eq!(rejects("$loop:\nbra.uni $loop;", 1, 32), FaultKind::Limit(1_000_000));
    assert_eq!(rejects("trap;", 1, 32), FaultKind::Trap);
}
