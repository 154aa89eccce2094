"""Cases of memory: cp.async, loads and stores of all widths, address spaces, parameters, constants, mbarrier and bulk copies."""
import numpy as np
from case import module, save, thread_index, LEVELS, SIZE
from values import *
from warp import load, store, lines, u32


def generate(rng, small, dense):
    # cp.async: every thread copies one 16-byte cell; the tile is filled with 0xee bytes before
    data = uniform_bits(rng, "u32", 4 * 128)
    for cache, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
        count = rng.integers(0, size + 1, 128)
        count[:size + 1] = np.arange(size + 1)
        head = thread_index() + load(1, "b32", "%r10") + lines("""mov.b64 %rd20, tile;
            mul.wide.u32 %rd21, %r1, 16;
            add.s64 %rd22, %rd20, %rd21;
            ld.param.b64 %rd1, [k_param_0];
            add.s64 %rd23, %rd1, %rd21;
            mov.b32 %r30, 0xeeeeeeee;
            st.shared.v4.b32 [%rd22], {%r30, %r30, %r30, %r30};
            bar.sync 0;""")
        tail = lines("""ld.param.b64 %rd2, [k_param_2];
            add.s64 %rd24, %rd2, %rd21;
            xor.b64 %rd25, %rd21, 512;
            add.s64 %rd26, %rd20, %rd25;
            ld.shared.v4.b32 {%r40, %r41, %r42, %r43}, [%rd26];
            add.s64 %rd27, %rd2, %rd25;
            st.global.v4.b32 [%rd27], {%r40, %r41, %r42, %r43};""")
        body = head + lines(f"""cp.async.{cache}.shared.global [%rd22], [%rd23], {size}, %r10;
            cp.async.commit_group;
            cp.async.wait_group 0;
            bar.sync 0;""") + tail
        tile = ".shared .align 16 .b8 tile[2048];\n\n"
        save(small, f"cp_async_{cache}_{size}_bytes", module(["ptr"] * 3, body, globals=tile), [1, 1, 1], [128, 1, 1], [data, u32(count), 2048], [2],
             note="source size per thread: the rest of the copied bytes becomes zero; bytes beyond the copy keep 0xee")
        body = head + lines(f"""setp.eq.b32 %p1, %r10, 0;
            cp.async.{cache}.shared.global [%rd22], [%rd23], {size};
            cp.async.wait_all;
            bar.sync 0;
            @%p1 cp.async.{cache}.shared.global [%rd22], [%rd1], {size};
            cp.async.commit_group;
            cp.async.commit_group;
            cp.async.wait_group 1;
            cp.async.wait_group 0;
            bar.sync 0;""") + tail
        save(small, f"cp_async_{cache}_{size}", module(["ptr"] * 3, body, globals=tile), [1, 1, 1], [128, 1, 1], [data, u32(count), 2048], [2], note="whole copies, a guarded second one, empty groups")
    body = thread_index() + load(1, "b32", "%r10") + lines("""mov.b64 %rd20, tile;
        mul.wide.u32 %rd21, %r1, 16;
        add.s64 %rd22, %rd20, %rd21;
        ld.param.b64 %rd1, [k_param_0];
        add.s64 %rd23, %rd1, %rd21;
        setp.lt.u32 %p1, %r10, 8;
        cp.async.ca.shared.global [%rd22], [%rd23], 16, %p1;
        cp.async.wait_all;
        bar.sync 0;
        ld.shared.v4.b32 {%r40, %r41, %r42, %r43}, [%rd22];
        ld.param.b64 %rd2, [k_param_2];
        add.s64 %rd24, %rd2, %rd21;
        st.global.v4.b32 [%rd24], {%r40, %r41, %r42, %r43};""")
    save(small, "cp_async_ignore_source", module(["ptr"] * 3, body, ("7.5", "sm_80"), globals=tile), [1, 1, 1], [128, 1, 1], [data, u32(rng.integers(0, 16, 128)), 2048], [2],
         note="predicate operand: true ignores the source, zeros are written")

    # widths and extension
    n = 64
    raw = rng.integers(0, 256, n * 16, dtype=np.uint8)
    body = thread_index() + lines("""ld.param.b64 %rd1, [k_param_0];
        ld.param.b64 %rd2, [k_param_1];
        mul.wide.u32 %rd3, %r1, 16;
        add.s64 %rd1, %rd1, %rd3;
        mul.wide.u32 %rd4, %r1, 128;
        add.s64 %rd2, %rd2, %rd4;
        ld.global.s8 %r20, [%rd1+1];
        ld.global.u8 %r21, [%rd1+2];
        ld.global.s16 %r22, [%rd1+2];
        ld.global.u16 %r23, [%rd1+4];
        st.global.v4.b32 [%rd2], {%r20, %r21, %r22, %r23};
        ld.global.s8 %rd20, [%rd1+3];
        ld.global.s32 %rd21, [%rd1+4];
        st.global.v2.b64 [%rd2+16], {%rd20, %rd21};
        ld.global.b8 %rs20, [%rd1+5];
        ld.global.s8 %rs21, [%rd1+6];
        ld.global.v2.b16 {%rs22, %rs23}, [%rd1+8];
        st.global.v4.b16 [%rd2+32], {%rs20, %rs21, %rs22, %rs23};
        ld.global.v4.b8 {%rs24, %rs25, %rs26, %rs27}, [%rd1+12];
        st.global.v4.b16 [%rd2+40], {%rs24, %rs25, %rs26, %rs27};
        ld.global.nc.v4.b32 {%r30, %r31, %r32, %r33}, [%rd1];
        st.global.v4.b32 [%rd2+48], {%r33, %r32, %r31, %r30};
        ld.global.v2.b64 {%rd22, %rd23}, [%rd1];
        st.global.b64 [%rd2+64], %rd23;
        st.global.b8 [%rd2+72], %r31;
        st.global.b8 [%rd2+73], %rs22;
        st.global.b16 [%rd2+74], %rs23;
        st.global.b8 [%rd2+77], %rd22;
        st.global.v2.b8 [%rd2+78], {%rs20, %rs27};
        ld.global.nc.L1::no_allocate.v2.b32 {%r34, %r35}, [%rd1+8];
        st.global.cs.v2.b32 [%rd2+80], {%r34, %r35};
        ld.volatile.global.b32 %r36, [%rd1];
        ld.relaxed.gpu.global.b32 %r37, [%rd1+4];
        ld.acquire.gpu.global.b32 %r38, [%rd1+8];
        st.release.gpu.global.b32 [%rd2+88], %r36;
        st.relaxed.gpu.global.b32 [%rd2+92], %r37;
        st.volatile.global.b32 [%rd2+96], %r38;
        ld.global.lu.b32 %r39, [%rd1+12];
        st.global.wt.b32 [%rd2+100], %r39;
        mov.b32 {%rs30, %rs31}, %r30;
        mov.b32 %r40, {%rs31, %rs30};
        mov.b64 %rd24, {%rs30, %rs31, %rs22, %rs23};
        st.global.b32 [%rd2+104], %r40;
        st.global.b64 [%rd2+112], %rd24;
        prefetch.global.L2 [%rd1];
        mov.b32 %r41, 0f3FC00000;
        mov.b64 %rd25, 0dBFF8000000000000;
        cvt.rn.f32.f64 %r42, %rd25;
        add.rn.f32 %r41, %r41, %r42;
        add.rn.f32 %r41, %r41, 0f40490FDB;
        st.global.b32 [%rd2+120], %r41;
        mov.b16 %rs32, 0x3C00;
        st.global.b16 [%rd2+124], %rs32;""")
    save(small, "memory_widths", module(["ptr", "ptr"], body, ("7.4", "sm_80")), [1, 1, 1], [n, 1, 1], [raw, n * 128], [1])

    n = 128
    constant = rng.integers(0, 256, 64, dtype=np.uint8)
    globals = (".const .align 4 .b8 table[64] = {" + ", ".join(map(str, constant)) + "};\n.shared .align 16 .b8 tile[1024];\n.global .align 8 .b8 word[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};\n\n")
    body = "\t.local .align 16 .b8 __local_depot0[32];\n" + thread_index() + load(0, "b32", "%r10") + lines("""mov.u32 %r30, %tid.x;
        mov.b64 %rd20, tile;
        cvta.shared.u64 %rd21, %rd20;
        mul.wide.u32 %rd22, %r30, 8;
        add.s64 %rd21, %rd21, %rd22;
        st.b32 [%rd21], %r10;
        st.shared.b32 [tile+516], 7;
        bar.sync 0;
        xor.b64 %rd23, %rd22, 8;
        add.s64 %rd24, %rd20, %rd23;
        ld.shared.b32 %r20, [%rd24];
        mov.b64 %rd25, __local_depot0;
        cvta.local.u64 %rd26, %rd25;
        st.b64 [%rd26+8], %rd22;
        ld.local.b64 %rd27, [%rd25+8];
        cvt.u32.u64 %r21, %rd27;
        and.b32 %r31, %r10, 15;
        shl.b32 %r31, %r31, 2;
        cvt.u64.u32 %rd28, %r31;
        mov.b64 %rd29, table;
        add.s64 %rd30, %rd29, %rd28;
        ld.const.b32 %r22, [%rd30];
        ld.const.u8 %r23, [table+5];
        cvta.const.u64 %rd31, %rd30;
        ld.b32 %r24, [%rd31];
        ld.param.b64 %rd32, [k_param_0];
        cvta.to.global.u64 %rd33, %rd32;
        ld.global.b32 %r25, [%rd33+12];
        ld.b32 %r26, [%rd32+16];
        isspacep.shared %p1, %rd21;
        isspacep.global %p2, %rd21;
        isspacep.local %p3, %rd26;
        isspacep.global %p4, %rd32;
        selp.b32 %r27, 1, 0, %p1;
        selp.b32 %r28, 2, 0, %p2;
        or.b32 %r27, %r27, %r28;
        selp.b32 %r28, 4, 0, %p3;
        or.b32 %r27, %r27, %r28;
        selp.b32 %r28, 8, 0, %p4;
        or.b32 %r27, %r27, %r28;
        cvta.to.shared.u64 %rd34, %rd21;
        sub.s64 %rd34, %rd34, %rd20;
        cvt.u32.u64 %r28, %rd34;
        ld.global.u32 %r29, [word+4];""") + "".join(store(1, "b32", f"%r{20 + i}", slab=i * n) for i in range(10))
    value = uniform_bits(rng, "u32", n)
    save(small, "memory_spaces", module(["ptr", "ptr"], body, globals=globals), [2, 1, 1], [64, 1, 1], [value, 4 * n * 10], [1], note="generic addresses of shared, local, const and global memory")

    text = module(["ptr", "u32", "u64", "f32", "u16", "u8"], thread_index() + lines("""ld.param.b32 %r20, [k_param_1];
        ld.param.b64 %rd20, [k_param_2];
        ld.param.b32 %r21, [k_param_3];
        ld.param.b16 %rs20, [k_param_4];
        ld.param.b8 %rs21, [k_param_5];
        ld.param.s8 %r24, [k_param_5];
        ld.param.v2.b32 {%r25, %r26}, [k_param_2];
        cvt.u32.u16 %r22, %rs20;
        cvt.u32.u16 %r23, %rs21;
        add.rn.f32 %r21, %r21, 0f3F800000;
        cvt.u32.u64 %r27, %rd20;""") + "".join(store(0, "b32", f"%r{20 + i}", slab=i * 32) for i in range(8)))
    save(small, "memory_parameters", text, [1, 1, 1], [32, 1, 1], [32 * 8 * 4, ("u32", 123456789), ("u64", 0x123456789abcdef0), ("f32", "0f40200000"), ("u16", 0xfedc), ("u8", 0x9a)], [0])

    # dynamic shared memory, bank of extern symbols
    body = thread_index() + load(0, "b32", "%r10") + lines("""mov.b64 %rd20, smem;
        mul.wide.u32 %rd21, %r1, 4;
        add.s64 %rd22, %rd20, %rd21;
        st.shared.b32 [%rd22+1024], %r10;
        bar.sync 0;
        xor.b64 %rd23, %rd21, 508;
        add.s64 %rd24, %rd20, %rd23;
        ld.shared.b32 %r20, [%rd24+1024];
        mov.u32 %r21, %dynamic_smem_size;""") + store(1, "b32", "%r20") + store(1, "b32", "%r21", slab=128)
    save(small, "memory_dynamic_shared", module(["ptr"] * 2, body, globals=".extern .shared .align 16 .b8 smem[];\n\n"), [1, 1, 1], [128, 1, 1], [value, 1024], [1], shared=1536)

    # mbarrier with plain arrivals, and a bulk copy
    bars = ".shared .align 8 .b8 bar[16];\n.shared .align 128 .b8 tile[2048];\n\n"
    body = thread_index() + load(0, "b32", "%r10") + lines("""mov.u32 %r30, %tid.x;
        setp.eq.b32 %p1, %r30, 0;
        mov.b64 %rd20, bar;
        mov.b64 %rd25, tile;
        @%p1 mbarrier.init.shared.b64 [%rd20], 128;
        bar.sync 0;
        mul.wide.u32 %rd26, %r30, 4;
        add.s64 %rd27, %rd25, %rd26;
        st.shared.b32 [%rd27], %r10;
        mbarrier.arrive.shared.b64 %rd21, [%rd20];
        $L_wait:
        mbarrier.test_wait.shared.b64 %p2, [%rd20], %rd21;
        @!%p2 bra $L_wait;
        xor.b64 %rd28, %rd26, 256;
        add.s64 %rd29, %rd25, %rd28;
        ld.shared.b32 %r20, [%rd29];
        add.s32 %r21, %r20, 1;
        mbarrier.arrive.shared.b64 %rd22, [%rd20];
        $L_wait2:
        mbarrier.test_wait.shared.b64 %p2, [%rd20], %rd22;
        @!%p2 bra $L_wait2;
        st.shared.b32 [%rd27], %r21;
        bar.sync 0;
        ld.shared.b32 %r22, [%rd29];""") + store(1, "b32", "%r20") + store(1, "b32", "%r22", slab=n)
    save(small, "mbarrier", module(["ptr"] * 2, body, globals=bars), [1, 1, 1], [128, 1, 1], [value, 8 * n], [1])
    data = uniform_bits(rng, "u32", 512)
    body = thread_index() + lines("""mov.u32 %r30, %tid.x;
        setp.eq.b32 %p1, %r30, 0;
        mov.b64 %rd20, bar;
        mov.b64 %rd25, tile;
        ld.param.b64 %rd1, [k_param_0];
        ld.param.b64 %rd2, [k_param_1];
        @!%p1 bra $L_start;
        mbarrier.init.shared::cta.b64 [%rd20], 1;
        fence.mbarrier_init.release.cluster;
        $L_start:
        bar.sync 0;
        @!%p1 bra $L_wait;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [%rd20], 1536;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%rd25+512], [%rd1], 1024, [%rd20];
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%rd25], [%rd1+1040], 512, [%rd20];
        $L_wait:
        mbarrier.try_wait.parity.shared::cta.b64 %p2, [%rd20], 0;
        @!%p2 bra $L_wait;
        mul.wide.u32 %rd26, %r30, 4;
        add.s64 %rd27, %rd25, %rd26;
        ld.shared.b32 %r20, [%rd27];
        ld.shared.b32 %r21, [%rd27+512];
        ld.shared.b32 %r22, [%rd27+1024];
        bar.sync 0;
        add.s32 %r20, %r20, 1;
        st.shared.b32 [%rd27], %r20;
        st.shared.b32 [%rd27+512], %r21;
        st.shared.b32 [%rd27+1024], %r22;
        fence.proxy.async.shared::cta;
        bar.sync 0;
        @!%p1 bra $L_end;
        cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%rd25], 1536;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
        $L_end:""")
    save(small, "bulk_copy", module(["ptr"] * 2, body, ("8.0", "sm_90"), globals=bars), [1, 1, 1], [128, 1, 1], [data, 1536], [1], note="cp.async.bulk in both directions")
