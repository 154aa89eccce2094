"""Access patterns whose counters (sectors, bank conflicts) are recorded with ncu: one kernel launch of one block or more each."""
import numpy as np
from case import module, save, thread_index
from values import *
from warp import lines, store, u32


def generate(rng, small, dense):
    # global: loads of `width` bytes at byte offset table[thread], results summed and stored
    n = 128
    i = np.arange(n)
    patterns = {
        "stride1_b32": (4, i * 4), "stride2_b32": (4, i * 8), "stride8_b32": (4, i * 32), "stride9_b32": (4, i * 36), "offset1_b32": (4, i * 4 + 4), "offset12_b32": (4, i * 4 + 12),
        "same_b32": (4, i * 0), "reversed_b32": (4, (n - 1 - i) * 4), "random_b32": (4, rng.integers(0, 4096, n) * 4), "pairs_b32": (4, (i // 2) * 4),
        "stride1_b8": (1, i), "stride4_b8": (1, i * 4), "stride1_b16": (2, i * 2), "stride1_b64": (8, i * 8), "stride1_b128": (16, i * 16), "offset16_b128": (16, i * 16 + 16), "stride2_b128": (16, i * 32),
        "rows_b128": (16, (i % 4) * 16 + (i // 4) * 256), "half_b32": (4, np.where(i % 2 == 0, i * 4, i * 0 - 1)),
    }
    kind = {1: "b8", 2: "b16", 4: "b32", 8: "v2.b32", 16: "v4.b32"}
    for name, (width, offset) in patterns.items():
        registers = {1: "%rs20", 2: "%rs20", 4: "%r20", 8: "{%r20, %r21}", 16: "{%r20, %r21, %r22, %r23}"}[width]
        combine = {1: "cvt.u32.u16 %r20, %rs20;", 2: "cvt.u32.u16 %r20, %rs20;", 4: "", 8: "add.s32 %r20, %r20, %r21;",
                   16: "add.s32 %r20, %r20, %r21;\n add.s32 %r22, %r22, %r23;\n add.s32 %r20, %r20, %r22;"}[width]
        table = offset.astype(np.int32).view(np.uint32)
        body = thread_index() + lines(f"""ld.param.b64 %rd1, [k_param_0];
            ld.param.b64 %rd2, [k_param_1];
            ld.param.b64 %rd3, [k_param_2];
            mul.wide.u32 %rd4, %r1, 4;
            add.s64 %rd5, %rd1, %rd4;
            ld.global.b32 %r10, [%rd5];
            setp.lt.s32 %p1, %r10, 0;
            mov.b32 %r20, 1;
            @%p1 bra $L_end;
            cvt.u64.u32 %rd6, %r10;
            add.s64 %rd7, %rd2, %rd6;
            ld.global.{kind[width]} {registers}, [%rd7];""" + ("\n" + combine if combine else "") + """
            $L_end:
            add.s64 %rd8, %rd3, %rd4;
            st.global.b32 [%rd8], %r20;""")
        save(small, f"count_load_{name}", module(["ptr"] * 3, body), [1, 1, 1], [128, 1, 1], [table, (np.arange(0, (int(offset.max()) + width + 15) // 16 * 4, dtype=np.uint64) * 2654435761 & 0xffffffff).astype(np.uint32), n * 4], [2])
        if name in ("stride1_b32", "stride2_b32", "stride8_b32", "offset12_b32", "stride1_b128", "stride2_b128", "stride1_b8", "stride1_b64", "half_b32"):
            value = {1: "%rs20", 2: "%rs20", 4: "%r1", 8: "{%r1, %r10}", 16: "{%r1, %r10, %r1, %r10}"}[width]
            body = thread_index() + lines(f"""ld.param.b64 %rd1, [k_param_0];
                ld.param.b64 %rd2, [k_param_1];
                mul.wide.u32 %rd4, %r1, 4;
                add.s64 %rd5, %rd1, %rd4;
                ld.global.b32 %r10, [%rd5];
                setp.lt.s32 %p1, %r10, 0;
                @%p1 ret;
                cvt.u16.u32 %rs20, %r1;
                cvt.u64.u32 %rd6, %r10;
                add.s64 %rd7, %rd2, %rd6;
                st.global.{kind[width]} [%rd7], {value};""")
            save(small, f"count_store_{name}", module(["ptr"] * 2, body), [1, 1, 1], [128, 1, 1], [table, (int(offset.max()) + width + 15) // 16 * 16], [1])
    # shared: one load and one store per thread at a byte offset from a table
    n = 128
    i = np.arange(n)
    patterns = {
        "stride1_b32": (4, i * 4), "stride2_b32": (4, i * 8), "stride3_b32": (4, i * 12), "stride4_b32": (4, i * 16), "stride8_b32": (4, i * 32), "stride16_b32": (4, i * 64), "stride32_b32": (4, (i % 32) * 128 + (i // 32) * 4),
        "stride33_b32": (4, (i % 32) * 132), "same_b32": (4, i * 0), "pairs_b32": (4, (i // 2) * 4), "random_b32": (4, rng.integers(0, 1024, n) * 4), "two_words_b32": (4, (i % 2) * 128), "stride1_b8": (1, i), "stride1_b16": (2, i * 2),
        "same_b64": (8, i * 0), "pairs_b64": (8, (i // 2) * 8), "alternate_b64": (8, (i // 4 * 2 + i % 2) * 8), "quads_b64": (8, (i // 4) * 8), "fours_b64": (8, (i // 8 * 4 + i % 4) * 8),
        "mixed_pairs_b64": (8, np.where(i < 64, i // 2, i // 4 * 2 + i % 2) * 8), "pairs_b128": (16, (i // 2) * 16), "alternate_b128": (16, (i // 4 * 2 + i % 2) * 16), "quads_b128": (16, (i // 4) * 16),
        "fours_b128": (16, (i // 8 * 4 + i % 4) * 16), "broken_pairs_b64": (8, np.where(i % 32 == 31, 4000, (i // 2) * 8)), "stride1_b64": (8, i * 8), "stride2_b64": (8, i * 16), "stride3_b64": (8, i * 24), "halves_b64": (8, (i % 16) * 8), "stride1_b128": (16, i * 16), "stride2_b128": (16, i * 32), "stride3_b128": (16, i * 48), "same_b128": (16, i * 0),
        "quarters_b128": (16, (i % 8) * 16), "random_b128": (16, rng.integers(0, 256, n) * 16), "random_b64": (8, rng.integers(0, 512, n) * 8), "rows80_b128": (16, (i % 32) * 80), "rows64_b128": (16, (i % 8) * 64 + (i // 8 % 4) * 16),
    }
    for name, (width, offset) in patterns.items():
        registers = {1: "%rs20", 2: "%rs20", 4: "%r20", 8: "{%r20, %r21}", 16: "{%r20, %r21, %r22, %r23}"}[width]
        fill = {1: "cvt.u16.u32 %rs20, %r1;", 2: "cvt.u16.u32 %rs20, %r1;", 4: "mov.b32 %r20, %r1;", 8: "mov.b32 %r20, %r1;\n mov.b32 %r21, %r10;",
                16: "mov.b32 %r20, %r1;\n mov.b32 %r21, %r10;\n mov.b32 %r22, %r1;\n mov.b32 %r23, %r10;"}[width]
        combine = {1: "cvt.u32.u16 %r20, %rs20;", 2: "cvt.u32.u16 %r20, %rs20;", 4: "add.s32 %r20, %r20, 0;", 8: "add.s32 %r20, %r20, %r21;",
                   16: "add.s32 %r20, %r20, %r21;\n add.s32 %r22, %r22, %r23;\n add.s32 %r20, %r20, %r22;"}[width]
        size = 8192
        # stores of several threads to one word race: only patterns with distinct addresses store
        distinct = all(len(set(offset[w * 32:w * 32 + 32])) == 32 for w in range(4)) and name not in ("stride33_b32", "rows80_b128", "rows64_b128", "halves_b64", "quarters_b128") and len(set(offset)) == n
        access = ("\n" + fill + f"\nst.shared.{kind[width]} [%rd7], {registers};\nbar.sync 0;") if distinct else ""
        head = thread_index() + lines("""ld.param.b64 %rd1, [k_param_0];
            ld.param.b64 %rd3, [k_param_1];
            mul.wide.u32 %rd4, %r1, 4;
            add.s64 %rd5, %rd1, %rd4;
            ld.global.b32 %r10, [%rd5];
            mov.b64 %rd20, tile;
            cvt.u64.u32 %rd6, %r10;
            add.s64 %rd7, %rd20, %rd6;""")
        # the tile is set by conflict-free stores first, so that the loads have values
        setup = "".join(f"\tst.shared.b32 \t[%rd9+{j * 512}], %r{1 if j % 2 else 10};\n" for j in range(size // 512))
        head += "\tadd.s64 \t%rd9, %rd20, %rd4;\n" + setup + "\tbar.sync \t0;\n"
        body = head + (lines(access.strip()) if access else "") + lines(f"""ld.shared.{kind[width]} {registers}, [%rd7];
            {combine}
            add.s64 %rd8, %rd3, %rd4;
            st.global.b32 [%rd8], %r20;""")
        save(small, f"count_shared_{name}", module(["ptr"] * 2, body, globals=f".shared .align 128 .b8 tile[{size}];\n\n"), [1, 1, 1], [128, 1, 1], [u32(offset), n * 4], [1],
             note="16 conflict-free stores of b32 per thread fill the tile, then" + (" a store and" if distinct else "") + " a load at the offset of argument 0")
    # atomics in shared and in global memory, one per thread
    patterns = {"stride1": i * 4, "stride2": i * 8, "stride32": (i % 32) * 128, "same": i * 0, "pairs": (i // 2) * 4, "random": rng.integers(0, 64, n) * 4, "spread": rng.integers(0, 1024, n) * 4}
    for name, offset in patterns.items():
        for space, op in (("shared", "add.u32"), ("shared", "add.u32 1"), ("shared", "max.s32"), ("global", "add.u32")):
            value = "1" if op.endswith(" 1") else "%r1"
            label = op.split()[0].replace(".", "_") + ("_one" if op.endswith(" 1") else "")
            body = thread_index() + lines("""ld.param.b64 %rd1, [k_param_0];
                ld.param.b64 %rd3, [k_param_1];
                mul.wide.u32 %rd4, %r1, 4;
                add.s64 %rd5, %rd1, %rd4;
                ld.global.b32 %r10, [%rd5];
                cvt.u64.u32 %rd6, %r10;""")
            if space == "shared":
                body += "\tmov.b64 \t%rd20, tile;\n\tadd.s64 \t%rd7, %rd20, %rd6;\n\tadd.s64 \t%rd9, %rd20, %rd4;\n\tmov.b32 \t%r11, 0;\n"
                body += "".join(f"\tst.shared.b32 \t[%rd9+{j * 512}], %r11;\n" for j in range(8)) + "\tbar.sync \t0;\n"
                body += lines(f"""red.shared.{op.split()[0]} [%rd7], {value};
                    bar.sync 0;
                    add.s64 %rd8, %rd3, %rd4;
                    ld.shared.b32 %r12, [%rd7];
                    st.global.b32 [%rd8], %r12;""")
            else:
                body += f"\tadd.s64 \t%rd7, %rd3, %rd6;\n\tred.global.{op} \t[%rd7], %r1;\n"
            save(small, f"count_atom_{space}_{label}_{name}", module(["ptr"] * 2, body, globals=".shared .align 128 .b8 tile[4096];\n\n" if space == "shared" else ""), [1, 1, 1], [128, 1, 1],
                 [u32(offset), 512 if space == "shared" else 4096], [1] if space == "shared" else [], note="results do not depend on the order; none for global memory: only the counters count")
