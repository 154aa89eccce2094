"""Cases of sm_90a: wgmma from shared memory (no swizzle), TMA loads and stores."""
import numpy as np
import mma
from case import module, save, thread_index, assemble, dropped
from values import *
from warp import lines, store

LEVEL = ("8.0", "sm_90a")
# name: k, type of A, of B, of C and D, the instruction without operands, what follows the predicate
FORMS = {}
for _k, _a, _b, _c in ((16, "bf16", "bf16", "f32"), (16, "f16", "f16", "f32"), (16, "f16", "f16", "f16"), (8, "tf32", "tf32", "f32"), (32, "e4m3", "e4m3", "f32"),
                       (32, "e5m2", "e4m3", "f32"), (32, "e4m3", "e4m3", "f16"), (32, "s8", "s8", "s32"), (32, "u8", "s8", "s32")):
    tail = ", 1, 1, 0, 0" if _k == 16 else "" if _c == "s32" else ", 1, 1"
    FORMS[f"m64n8k{_k}_{_c}_{_a}_{_b}"] = (_k, _a, _b, _c, f"wgmma.mma_async.sync.aligned.m64n8k{_k}.{_c}.{_a}.{_b}", tail)


def core_matrices(x, t):
    """[groups, rows, k] bits -> bytes in 8-row by 16-byte blocks: block (i, j) at (i * 2 + j) * 128."""
    w = mma.WIDTH[t] // 8
    raw = np.ascontiguousarray(x).astype({1: np.uint8, 2: np.uint16, 4: np.uint32}[w]).view(np.uint8).reshape(len(x), x.shape[1] // 8, 8, 2, 16)
    return np.ascontiguousarray(raw.transpose(0, 1, 3, 2, 4))


def text(form):
    k, ta, tb, tc, mnemonic, tail = form
    registers = 2 if tc == "f16" else 4
    d = [f"%r{50 + i}" for i in range(registers)]
    body = lines(f"""mov.u32 %r1, %tid.x;
        mov.u32 %r2, %ctaid.x;
        ld.param.b64 %rd1, [k_param_0];
        ld.param.b64 %rd2, [k_param_1];
        ld.param.b64 %rd3, [k_param_2];
        ld.param.b64 %rd4, [k_param_3];
        mul.wide.u32 %rd5, %r2, 2048;
        add.s64 %rd1, %rd1, %rd5;
        mul.wide.u32 %rd6, %r1, 16;
        add.s64 %rd1, %rd1, %rd6;
        ld.global.v4.b32 {{%r20, %r21, %r22, %r23}}, [%rd1];
        mov.b64 %rd7, tile;
        add.s64 %rd8, %rd7, %rd6;
        st.shared.v4.b32 [%rd8], {{%r20, %r21, %r22, %r23}};
        setp.ge.u32 %p1, %r1, 16;
        @%p1 bra $L_copied;
        mul.wide.u32 %rd9, %r2, 256;
        add.s64 %rd2, %rd2, %rd9;
        add.s64 %rd2, %rd2, %rd6;
        ld.global.v4.b32 {{%r20, %r21, %r22, %r23}}, [%rd2];
        st.shared.v4.b32 [%rd8+2048], {{%r20, %r21, %r22, %r23}};
        $L_copied:
        mad.lo.s32 %r3, %r2, {128 * registers}, %r1;
        mul.wide.u32 %rd10, %r3, 4;
        add.s64 %rd3, %rd3, %rd10;
        add.s64 %rd4, %rd4, %rd10;""")
    for i, r in enumerate(d):
        body += f"\tld.global.b32 \t{r}, [%rd3+{i * 512}];\n"
    body += lines(f"""fence.proxy.async.shared::cta;
        bar.sync 0;
        and.b64 %rd11, %rd7, 262143;
        shr.u64 %rd11, %rd11, 4;
        or.b64 %rd12, %rd11, {(128 >> 4) << 16 | (256 >> 4) << 32};
        add.s64 %rd13, %rd12, {2048 >> 4};
        mov.pred %p2, 1;
        wgmma.fence.sync.aligned;
        {mnemonic} {{{", ".join(d)}}}, %rd12, %rd13, %p2{tail};
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;""").replace("mov.pred %p2, 1", "setp.eq.b32 \t%p2, %r1, %r1")
    for i, r in enumerate(d):
        body += f"\tst.global.b32 \t[%rd4+{i * 512}], {r};\n"
    return module(["ptr"] * 4, body, ("8.4", "sm_90a") if tc == "s32" and ta != tb else LEVEL, globals=".shared .align 128 .b8 tile[2304];\n\n", directives=".reqntid 128, 1, 1\n")


def fragments(x, t):
    """[groups, 64, 8] bits <-> index arrays of the accumulator: registers, threads, elements."""
    e = 2 if t == "f16" else 1
    thread = np.arange(128)
    row, column = (thread >> 5) * 16 + ((thread & 31) >> 2), (thread & 3) * 2
    rows, columns = [], []
    for i in range(0, 4, e):
        rows.append(np.stack([row + 8 * (i >> 1)] * e, 1))
        columns.append(np.stack([column + (i & 1) + j for j in range(e)], 1))
    return np.array(rows), np.array(columns)


def generate(rng, small, dense):
    for name, form in FORMS.items():
        k, ta, tb, tc, mnemonic, tail = form
        source = text(form)
        errors = assemble(source)
        if errors:
            dropped.append(("wgmma_" + name, mnemonic, str(errors)))
            continue
        integer = tc == "s32"
        for folder, kinds, each in ((small, (0, 2) if integer else (2, 3), 1), (dense, range(3) if integer else range(len(mma.KINDS)), 4 if integer else 8)):
            make = mma.integer_matrices if integer else mma.matrices
            parts = [make(rng, kind, each, 64, 8, k, ta, tb, tc) for kind in kinds]
            a, b, c = [np.concatenate([p[i] for p in parts]) for i in range(3)]
            r, q = fragments(c, tc)
            word = c[:, r, q]
            shift = np.arange(word.shape[-1], dtype=np.uint64) * np.uint64(16)
            cc = np.bitwise_or.reduce(word << shift, axis=-1).astype(np.uint32)
            save(folder, "wgmma_" + name, source, [len(a), 1, 1], [128, 1, 1], [core_matrices(a, ta), core_matrices(b.transpose(0, 2, 1), tb), cc, cc.size * 4], [3], check=False,
                 forms=[mnemonic + tail], note="A [64, k] and B [8, k] as blocks of 8 rows by 16 bytes (no swizzle); accumulator register r of thread t at (block * registers + r) * 128 + t")
    # The innermost coordinate times the element size has to be a multiple of 16: else the launch fails with CUDA_ERROR_ILLEGAL_INSTRUCTION.
    # TMA: a box that hangs over the edges of a tensor of 2-byte elements, all swizzles
    rows, columns = 20, 72
    data = uniform_bits(rng, "u16", rows * columns)
    for swizzle, inner in (("none", 32), ("32B", 16), ("64B", 32), ("128B", 64)):
        box = [inner, 16]
        size = inner * 2 * 16
        for suffix, x, y in (("", 8, 0), ("_edge", columns - inner + 8, 9), ("_before", -8, -2)):
            tensor = {"buffer": None, "type": "u16", "sizes": [columns, rows], "strides": [columns * 2], "box": box, "swizzle": swizzle}
            body = lines(f"""mov.u32 %r1, %tid.x;
                setp.eq.b32 %p1, %r1, 0;
                mov.b64 %rd20, bar;
                mov.b64 %rd21, tile;
                ld.param.b64 %rd2, [k_param_1];
                @!%p1 bra $L_start;
                mbarrier.init.shared::cta.b64 [%rd20], 1;
                fence.mbarrier_init.release.cluster;
                $L_start:
                bar.sync 0;
                @!%p1 bra $L_wait;
                mov.b64 %rd3, k_param_0;
                cvta.param.u64 %rd4, %rd3;
                mov.b32 %r2, {x};
                mov.b32 %r3, {y};
                mbarrier.arrive.expect_tx.shared::cta.b64 _, [%rd20], {size};
                cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%rd21], [%rd4, {{%r2, %r3}}], [%rd20];
                $L_wait:
                mbarrier.try_wait.parity.shared::cta.b64 %p2, [%rd20], 0;
                @!%p2 bra $L_wait;
                mul.wide.u32 %rd5, %r1, 16;
                add.s64 %rd6, %rd21, %rd5;
                add.s64 %rd7, %rd2, %rd5;
                setp.ge.u32 %p3, %r1, {size // 16};
                @%p3 ret;
                ld.shared.v4.b32 {{%r20, %r21, %r22, %r23}}, [%rd6];
                st.global.v4.b32 [%rd7], {{%r20, %r21, %r22, %r23}};""")
            source = module(["ptr", "ptr"], body, LEVEL, globals=".shared .align 8 .b8 bar[8];\n.shared .align 1024 .b8 tile[2048];\n\n")
            source = source.replace(".param .u64 .ptr .global .align 16 k_param_0", ".param .align 64 .b8 k_param_0[128]")
            save(small, f"tma_load_{swizzle}{suffix}", source, [1, 1, 1], [128, 1, 1], [("tensor_map", tensor, data), size], [1], note=f"box at ({x}, {y}); elements outside are zero")
    box = uniform_bits(rng, "u16", 1024)
    for swizzle, x, y in (("128B", 24, 0), ("none", 24, 0), ("128B", 8, 4), ("none", 8, 4)):  # a store with a negative coordinate fails with the same error
        tensor = {"buffer": None, "type": "u16", "sizes": [columns, rows], "strides": [columns * 2], "box": [64, 16], "swizzle": swizzle}
        body = lines(f"""mov.u32 %r1, %tid.x;
            mov.b64 %rd21, tile;
            ld.param.b64 %rd2, [k_param_1];
            mul.wide.u32 %rd5, %r1, 16;
            add.s64 %rd6, %rd21, %rd5;
            add.s64 %rd7, %rd2, %rd5;
            ld.global.v4.b32 {{%r20, %r21, %r22, %r23}}, [%rd7];
            st.shared.v4.b32 [%rd6], {{%r20, %r21, %r22, %r23}};
            fence.proxy.async.shared::cta;
            bar.sync 0;
            setp.ne.b32 %p1, %r1, 0;
            @%p1 ret;
            mov.b64 %rd3, k_param_0;
            cvta.param.u64 %rd4, %rd3;
            mov.b32 %r2, {x};
            mov.b32 %r3, {y};
            cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd4, {{%r2, %r3}}], [%rd21];
            cp.async.bulk.commit_group;
            cp.async.bulk.wait_group 0;""")
        source = module(["ptr", "ptr"], body, LEVEL, globals=".shared .align 1024 .b8 tile[2048];\n\n").replace(
            ".param .u64 .ptr .global .align 16 k_param_0", ".param .align 64 .b8 k_param_0[128]")
        save(small, f"tma_store_{swizzle}_{x}_{y}", source, [1, 1, 1], [128, 1, 1], [("tensor_map", tensor, data), box], [0],
             note=f"box at ({x}, {y}); what lies outside the tensor is not written; result: the tensor")
