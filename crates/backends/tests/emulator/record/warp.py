"""Cases of warps: shuffles, votes, matching, reductions, divergence, matrix loads, barriers, atomics."""
import numpy as np
from case import module, save, thread_index, LEVELS, SIZE, REGISTER, assemble, dropped
from values import *


def load(i, kind, register, base=None, index="%r1"):
    """register = argument i [index]"""
    base = base or 2 * i + 40
    return (f"\tld.param.b64 \t%rd{base}, [k_param_{i}];\n\tmul.wide.u32 \t%rd{base + 1}, {index}, {SIZE[kind]};\n"
            f"\tadd.s64 \t%rd{base}, %rd{base}, %rd{base + 1};\n\tld.global.{kind} \t{register}, [%rd{base}];\n")


def store(i, kind, register, slab=0, index="%r1", base=None):
    base = base or 2 * i + 60
    return (f"\tld.param.b64 \t%rd{base}, [k_param_{i}];\n\tmul.wide.u32 \t%rd{base + 1}, {index}, {SIZE[kind]};\n"
            f"\tadd.s64 \t%rd{base}, %rd{base}, %rd{base + 1};\n\tst.global.{kind} \t[%rd{base}+{slab * SIZE[kind]}], {register};\n")


def lines(text):
    return "".join((l if l.rstrip().endswith(":") or l.startswith("$") else "\t" + l.strip()) + "\n" for l in text.strip().splitlines())


def u32(x):
    return np.asarray(x).astype(np.uint32)


def members(mask):
    return [i for i in range(32) if mask >> i & 1]


def shuffles(rng, folder):
    warps = 24
    n = warps * 32
    value = uniform_bits(rng, "u32", n)
    for mode in ("up", "down", "bfly", "idx"):
        lane = rng.integers(0, 32, (warps, 32))
        lane[:12] = rng.choice([0, 1, 2, 3, 4, 7, 8, 15, 16, 31], (12, 1))
        lane[12] = np.arange(32)[::-1]
        lane[13] = rng.choice([32, 33, 40, 63, 64, 255, -1], 32)  # only the low five bits count
        usual = 0 if mode == "up" else 31
        clamp = np.full((warps, 32), usual)
        for w, segment in ((3, 0x18), (4, 0x1c), (5, 0x1e), (6, 0x10), (7, 0x18), (14, 0x18), (15, 0x1c), (16, 0x10)):
            clamp[w] |= segment << 8
        clamp[17:20] = rng.integers(0, 32, (3, 1))
        clamp[20:22] = rng.integers(0, 32, (2, 1)) | (rng.choice([0x10, 0x18, 0x1c, 0x1e, 0x1f, 0x05], (2, 1)) << 8)
        clamp[22:] = rng.integers(0, 0x2000, (2, 32))  # every lane its own
        body = thread_index() + load(0, "b32", "%r10") + load(1, "b32", "%r11") + load(2, "b32", "%r12")
        body += lines(f"""shfl.sync.{mode}.b32 %r20|%p1, %r10, %r11, %r12, -1;
            selp.b32 %r21, 1, 0, %p1;""")
        body += store(3, "b32", "%r20") + store(4, "b32", "%r21")
        save(folder, f"shfl_{mode}", module(["ptr"] * 5, body), [warps, 1, 1], [32, 1, 1], [value, u32(lane.ravel()), u32(clamp.ravel()), 4 * n, 4 * n], [3, 4],
             note="arguments: value, b, c per lane; results: d, p")
    # some lanes leave, the rest shuffles with its own mask
    masks = [0xffffffff, 0x0000ffff, 0xffff0000, 0x55555555, 0xaaaaaaaa, 0x00000001, 0x80000000, 0xf0f0f0f0, 0x12345678, 0x7fffffff, 0xfffffffe, 0x00ff00ff]
    n = len(masks) * 32
    source = u32([[rng.choice(members(m)) for _ in range(32)] for m in masks]).ravel()
    value = uniform_bits(rng, "u32", n)
    body = thread_index() + load(0, "b32", "%r10") + load(1, "b32", "%r11") + load(2, "b32", "%r12")
    body += lines("""and.b32 %r13, %r1, 31;
        shr.u32 %r14, %r12, %r13;
        and.b32 %r14, %r14, 1;
        setp.eq.b32 %p1, %r14, 0;
        @%p1 ret;
        shfl.sync.idx.b32 %r20, %r10, %r11, 31, %r12;
        add.s32 %r20, %r20, 1;
        vote.sync.ballot.b32 %r21, %p1, %r12;
        shfl.sync.idx.b32 %r22|%p2, %r20, %r11, 31, %r12;
        @%p2 add.s32 %r22, %r22, 5;""")
    body += store(3, "b32", "%r22")
    save(folder, "shfl_rest", module(["ptr"] * 4, body), [len(masks), 1, 1], [32, 1, 1], [value, source, u32(np.repeat(masks, 32)), 4 * n], [3],
         note="lanes outside the mask return first; results of those lanes stay zero")
    return masks


def votes(rng, folder, masks):
    n = len(masks) * 32
    value = rng.integers(0, 4, n).astype(np.uint32)
    value[::64] = 7
    value[32:64] = 2
    value[3 * 32:4 * 32] = 1
    head = thread_index() + load(0, "b32", "%r10") + load(1, "b32", "%r12") + lines("""and.b32 %r13, %r1, 31;
        shr.u32 %r14, %r12, %r13;
        and.b32 %r14, %r14, 1;
        setp.eq.b32 %p1, %r14, 0;
        @%p1 bra $L_end;
        and.b32 %r15, %r10, 1;
        setp.eq.b32 %p2, %r15, 1;""")
    body = head + lines("""vote.sync.ballot.b32 %r20, %p2, %r12;
        vote.sync.any.pred %p3, %p2, %r12;
        vote.sync.all.pred %p4, %p2, %r12;
        vote.sync.uni.pred %p5, %p2, %r12;
        vote.sync.ballot.b32 %r21, !%p2, %r12;
        selp.b32 %r22, 1, 0, %p3;
        selp.b32 %r23, 2, 0, %p4;
        selp.b32 %r24, 4, 0, %p5;
        or.b32 %r22, %r22, %r23;
        or.b32 %r22, %r22, %r24;""") + store(2, "b32", "%r20") + store(3, "b32", "%r21") + store(4, "b32", "%r22") + "$L_end:\n"
    save(folder, "vote", module(["ptr"] * 5, body), [len(masks), 1, 1], [32, 1, 1], [value, u32(np.repeat(masks, 32)), 4 * n, 4 * n, 4 * n], [2, 3, 4],
         note="results: ballot of p, of !p, any + 2 all + 4 uni; lanes outside the mask branch away")
    body = head + lines("""cvt.u64.u32 %rd20, %r10;
        shl.b64 %rd20, %rd20, 33;
        match.any.sync.b32 %r20, %r10, %r12;
        match.all.sync.b32 %r21|%p3, %r10, %r12;
        selp.b32 %r22, 1, 0, %p3;
        match.any.sync.b64 %r23, %rd20, %r12;
        match.all.sync.b64 %r24|%p4, %rd20, %r12;
        xor.b32 %r23, %r23, %r24;""") + "".join(store(2 + i, "b32", f"%r{20 + i}") for i in range(4)) + "$L_end:\n"
    save(folder, "match", module(["ptr"] * 6, body), [len(masks), 1, 1], [32, 1, 1], [value, u32(np.repeat(masks, 32))] + [4 * n] * 4, [2, 3, 4, 5],
         note="results: match.any, match.all, its predicate, xor of the b64 forms")
    wide = draw(rng, "u32", n)
    ops = ["add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"]
    body = head + "".join(f"\tredux.sync.{op} \t%r{20 + i}, %r10, %r12;\n" for i, op in enumerate(ops))
    body += "".join(store(2, "b32", f"%r{20 + i}", slab=i * n) for i in range(len(ops))) + "$L_end:\n"
    save(folder, "redux", module(["ptr"] * 3, body), [len(masks), 1, 1], [32, 1, 1], [wide, u32(np.repeat(masks, 32)), 4 * n * len(ops)], [2], forms=ops,
         note="one slab per form")
    body = head + lines("""elect.sync %r20|%p3, %r12;
        selp.b32 %r21, 1, 0, %p3;""") + store(2, "b32", "%r20") + store(3, "b32", "%r21") + "$L_end:\n"
    save(folder, "elect", module(["ptr"] * 4, body, ("8.0", "sm_90")), [len(masks), 1, 1], [32, 1, 1], [value, u32(np.repeat(masks, 32)), 4 * n, 4 * n], [2, 3],
         note="the manual leaves the choice open; results: lane, predicate")
    body = thread_index() + load(0, "b32", "%r10") + lines("""activemask.b32 %r20;
        setp.eq.b32 %p1, %r10, 0;
        @%p1 bra $L_a;
        activemask.b32 %r21;
        setp.eq.b32 %p2, %r10, 1;
        @%p2 bra $L_b;
        activemask.b32 %r22;
        bra.uni $L_join;
        $L_b:
        activemask.b32 %r22;
        $L_join:
        activemask.b32 %r23;
        bra.uni $L_out;
        $L_a:
        activemask.b32 %r21;
        mov.b32 %r22, 0;
        mov.b32 %r23, 0;
        $L_out:
        bar.warp.sync -1;
        activemask.b32 %r24;""") + "".join(store(1, "b32", f"%r{20 + i}", slab=i * n) for i in range(5))
    save(folder, "activemask", module(["ptr"] * 2, body), [len(masks), 1, 1], [32, 1, 1], [value, 4 * n * 5], [1],
         note="scheduling decides; slabs: entry, one side, inner side, inner join (may be partial), after bar.warp.sync")
    body = thread_index() + "".join(f"\tmov.u32 \t%r{20 + i}, %{s};\n" for i, s in enumerate(
        ["tid.x", "tid.y", "tid.z", "ntid.x", "ntid.y", "ntid.z", "ctaid.x", "ctaid.y", "ctaid.z", "nctaid.x", "nctaid.y", "nctaid.z", "laneid",
         "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt"]))
    body += lines("""mad.lo.s32 %r4, %r24, %r21, 0;
        mad.lo.s32 %r4, %r22, %r24, %r21;
        mad.lo.s32 %r4, %r4, %r23, %r20;
        mul.lo.s32 %r5, %r23, %r24;
        mul.lo.s32 %r5, %r5, %r25;
        mad.lo.s32 %r6, %r28, %r30, %r27;
        mad.lo.s32 %r6, %r6, %r29, %r26;
        mad.lo.s32 %r7, %r6, %r5, %r4;""")
    total = (5 * 3 * 2) * (2 * 1 * 2)
    body += "".join(store(0, "b32", f"%r{20 + i}", slab=i * total, index="%r7") for i in range(18))
    save(folder, "special_registers", module(["ptr"], body), [2, 1, 2], [5, 3, 2], [4 * total * 18], [0], forms=["tid", "ntid", "ctaid", "nctaid (x, y, z each)", "laneid", "lanemask eq le lt ge gt"],
         note="%warpid is left out: on the device it is not tid / 32")


def control(rng, folder):
    n = 256
    value = rng.integers(0, 40, n).astype(np.uint32)
    body = thread_index() + load(0, "b32", "%r10") + lines("""mov.b32 %r20, 0;
        setp.lt.u32 %p1, %r10, 20;
        @!%p1 bra $L_else;
        add.s32 %r20, %r20, 1;
        and.b32 %r11, %r10, 1;
        setp.eq.b32 %p2, %r11, 0;
        @%p2 bra $L_even;
        add.s32 %r20, %r20, 10;
        bra.uni $L_odd_end;
        $L_even:
        add.s32 %r20, %r20, 100;
        setp.gt.u32 %p3, %r10, 12;
        @%p3 add.s32 %r20, %r20, 1000;
        @!%p3 sub.s32 %r20, %r20, 3;
        $L_odd_end:
        add.s32 %r20, %r20, %r10;
        bra.uni $L_end;
        $L_else:
        mul.lo.s32 %r20, %r10, 7;
        $L_end:
        shfl.sync.bfly.b32 %r21, %r20, 1, 31, -1;
        add.s32 %r20, %r20, %r21;""") + store(1, "b32", "%r20")
    save(folder, "flow_nested", module(["ptr"] * 2, body), [2, 1, 1], [128, 1, 1], [value, 4 * n], [1])
    body = thread_index() + load(0, "b32", "%r10") + lines("""mov.b32 %r20, 0;
        mov.b32 %r11, 0;
        $L_loop:
        setp.ge.u32 %p1, %r11, %r10;
        @%p1 bra $L_done;
        mov.b32 %r12, 0;
        $L_inner:
        add.s32 %r12, %r12, 1;
        mad.lo.s32 %r20, %r12, %r11, %r20;
        and.b32 %r13, %r20, 63;
        setp.eq.b32 %p2, %r13, 17;
        @%p2 bra $L_done;
        setp.lt.u32 %p3, %r12, %r11;
        @%p3 bra $L_inner;
        add.s32 %r11, %r11, 1;
        and.b32 %r13, %r11, 3;
        setp.eq.b32 %p4, %r13, 1;
        @%p4 bra $L_loop;
        add.s32 %r20, %r20, 3;
        bra.uni $L_loop;
        $L_done:
        bar.warp.sync -1;
        redux.sync.add.s32 %r21, %r20, -1;""") + store(1, "b32", "%r20") + store(2, "b32", "%r21")
    save(folder, "flow_loops", module(["ptr"] * 3, body), [2, 1, 1], [128, 1, 1], [value, 4 * n, 4 * n], [1, 2], note="different trip counts, break out of two loops, continue")
    body = thread_index() + load(0, "b32", "%r10") + lines("""and.b32 %r11, %r10, 7;
        mov.b32 %r20, 5;
        setp.gt.u32 %p1, %r11, 4;
        @%p1 bra $L_default;
        $L_table: .branchtargets $L_c0, $L_c1, $L_c2, $L_c1, $L_c4;
        brx.idx %r11, $L_table;
        $L_c0:
        add.s32 %r20, %r20, %r10;
        bra.uni $L_end;
        $L_c1:
        mul.lo.s32 %r20, %r20, %r10;
        bra.uni $L_end;
        $L_c2:
        sub.s32 %r20, %r20, %r10;
        $L_c4:
        xor.b32 %r20, %r20, 255;
        bra.uni $L_end;
        $L_default:
        mov.b32 %r20, -1;
        $L_end:
        vote.sync.any.pred %p2, %p1, -1;
        @%p2 add.s32 %r20, %r20, 1000;""") + store(1, "b32", "%r20")
    save(folder, "flow_switch", module(["ptr"] * 2, body), [2, 1, 1], [128, 1, 1], [value, 4 * n], [1], note="brx.idx with fall through")
    functions = """.func (.param .b32 ret) twice(.param .b32 a, .param .b64 p)
{
	.reg .b32 %r<6>;
	.reg .b64 %rd<3>;
	.reg .pred %p<2>;
	ld.param.b32 %r1, [a];
	ld.param.b64 %rd1, [p];
	setp.gt.u32 %p1, %r1, 20;
	@%p1 bra $L_big;
	ld.u32 %r2, [%rd1];
	add.s32 %r3, %r2, %r1;
	st.param.b32 [ret], %r3;
	ret;
$L_big:
	mul.lo.s32 %r3, %r1, 3;
	st.u32 [%rd1], %r3;
	st.param.b32 [ret], %r1;
	ret;
}

"""
    body = "\t.local .align 8 .b8 __local_depot0[64];\n\t.reg .b64 %SP, %SPL;\n\tmov.b64 \t%SPL, __local_depot0;\n\tcvta.local.u64 \t%SP, %SPL;\n"
    body += thread_index() + load(0, "b32", "%r10") + lines("""add.u64 %rd10, %SP, 16;
        st.local.u32 [%SPL+16], %r10;
        st.local.v4.u32 [%SPL+32], {%r10, %r1, %r10, %r1};
        and.b32 %r11, %r10, 3;
        mul.wide.u32 %rd11, %r11, 4;
        add.u64 %rd12, %SP, %rd11;
        ld.u32 %r13, [%rd12+32];
        add.s32 %r14, %r13, 1;
        st.u32 [%rd12+32], %r14;
        setp.eq.b32 %p1, %r11, 1;
        mov.b32 %r20, 77;
        @%p1 bra $L_skip;
        { // callseq 0, 0
        .param .b32 param0;
        .param .b64 param1;
        .param .b32 retval0;
        st.param.b32 [param0], %r10;
        st.param.b64 [param1], %rd10;
        call.uni (retval0), twice, (param0, param1);
        ld.param.b32 %r20, [retval0];
        } // callseq 0
        $L_skip:
        ld.local.u32 %r21, [%SPL+16];
        ld.local.v2.u32 {%r22, %r23}, [%SPL+40];
        add.s32 %r21, %r21, %r22;
        xor.b32 %r21, %r21, %r23;""").replace("call.uni", "call") + store(1, "b32", "%r20") + store(2, "b32", "%r21")
    save(folder, "flow_call", module(["ptr"] * 3, body, globals=functions), [2, 1, 1], [128, 1, 1], [value, 4 * n, 4 * n], [1, 2], note="call of a .func with divergent callers and returns, local memory, dynamic index, generic addresses")
    # a while loop whose exits wait for each other, and threads that leave for good
    body = thread_index() + load(0, "b32", "%r10") + lines("""setp.gt.u32 %p1, %r10, 35;
        @%p1 exit;
        mov.b32 %r20, 0;
        $L_loop:
        add.s32 %r20, %r20, %r10;
        add.s32 %r10, %r10, 3;
        setp.gt.u32 %p2, %r10, 38;
        @%p2 bra $L_out;
        setp.eq.b32 %p3, %r10, 30;
        @%p3 ret;
        bra.uni $L_loop;
        $L_out:
        bar.sync 0;""") + store(1, "b32", "%r20")
    save(folder, "flow_exit", module(["ptr"] * 2, body), [2, 1, 1], [128, 1, 1], [value, 4 * n], [1], note="early exit, then a barrier: exited threads count as arrived")
    text = thread_index() + load(0, "b32", "%r10") + lines("""mov.u32 %r30, %tid.x;
        and.b32 %r11, %r10, 1;
        setp.eq.b32 %p1, %r11, 1;
        bar.red.popc.u32 %r20, 0, %p1;
        bar.red.and.pred %p2, 0, %p1;
        bar.red.or.pred %p3, 0, %p1;
        selp.b32 %r21, 1, 0, %p2;
        selp.b32 %r22, 2, 0, %p3;
        or.b32 %r21, %r21, %r22;
        shr.u32 %r31, %r30, 6;
        add.s32 %r31, %r31, 1;
        mov.b64 %rd20, tile;
        cvt.u32.u64 %r32, %rd20;
        shl.b32 %r33, %r30, 2;
        add.s32 %r34, %r32, %r33;
        st.shared.b32 [%r34], %r10;
        bar.sync %r31, 64;
        xor.b32 %r35, %r33, 128;
        add.s32 %r36, %r32, %r35;
        ld.shared.b32 %r23, [%r36];
        setp.lt.u32 %p4, %r30, 64;
        @%p4 bra $L_producer;
        bar.sync 5, 128;
        ld.shared.b32 %r24, [tile+512];
        bra.uni $L_end;
        $L_producer:
        setp.eq.b32 %p5, %r30, 0;
        @%p5 st.shared.b32 [tile+512], 42;
        membar.cta;
        bar.arrive 5, 128;
        mov.b32 %r24, 9;
        $L_end:""").replace("tile;", "tile;") + "".join(store(1, "b32", f"%r{20 + i}", slab=i * n) for i in range(5))
    save(folder, "barriers", module(["ptr"] * 2, text, globals=".shared .align 16 .b8 tile[528];\n\n"), [2, 1, 1], [128, 1, 1], [value, 4 * n * 5], [1],
         note="bar.red, named barriers, arrive and sync; 32-bit shared addresses")


def atomics(rng, folder):
    n = 64
    cases = [("u32", "b32", "u32", ["add.u32", "add.s32", "min.u32", "max.u32", "min.s32", "max.s32", "and.b32", "or.b32", "xor.b32", "exch.b32", "inc.u32", "dec.u32"]),
             ("u64", "b64", "u64", ["add.u64", "min.u64", "max.u64", "min.s64", "max.s64", "and.b64", "or.b64", "xor.b64", "exch.b64"]),
             ("f32", "b32", "f32", ["add.f32"]), ("f64", "b64", "f64", ["add.f64"]),
             ("f16x2", "b32", "f16", ["add.noftz.f16x2"]), ("bf16x2", "b32", "bf16", ["add.noftz.bf16x2"]),
             ("f16", "b16", "f16", ["add.noftz.f16"]), ("bf16", "b16", "bf16", ["add.noftz.bf16"])]
    for name, kind, values, ops in cases:
        old, new = pairs(rng, values, n * 2, 0.5 if values[0] == "u" else 0.7)
        order = rng.permutation(2 * n)
        old, new = old[order], new[order]
        if name.endswith("x2"):
            old, new = [(x[:n].astype(np.uint32) | (x[n:].astype(np.uint32) << 16)) for x in (old, new)]
        old, new = old[:n], new[:n]
        if values == "u32":
            old[:24], new[:24] = np.tile([0, 5, 7, 9], 6), np.repeat([5, 6, 8, 0, 1, 0xffffffff], 4)
        size = SIZE[kind]
        register = REGISTER[kind]
        for space in ("global", "shared"):
            level = LEVELS[1] if name in ("bf16", "bf16x2") else LEVELS[0]
            body = thread_index() + load(0, kind, f"{register}10", base=40) + load(1, kind, f"{register}11", base=42) + "\tmov.u32 \t%r30, %tid.x;\n"
            for i, op in enumerate(ops):
                for red in (False, True):
                    if red and op.startswith("exch"):
                        continue
                    slab = i * 2 + red
                    if space == "global":  # the word lies in the result buffer
                        body += store(2, kind, f"{register}10", slab=slab * n)
                        body += lines("membar.gl;")
                        address = f"[%rd64+{slab * n * size}]"
                    else:
                        body += lines(f"""mov.b64 %rd20, tile;
                            mul.wide.u32 %rd21, %r30, {size};
                            add.s64 %rd20, %rd20, %rd21;
                            st.shared.{kind} [%rd20], {register}10;""")
                        address = "[%rd20]"
                    if red:
                        body += f"\tred.{space}.{op} \t{address}, {register}11;\n"
                    else:
                        body += f"\tatom.{space}.{op} \t{register}{12}, {address}, {register}11;\n" + store(3, kind, f"{register}12", slab=i * n)
                    if space == "shared":
                        body += f"\tld.shared.{kind} \t{register}13, [%rd20];\n" + store(2, kind, f"{register}13", slab=slab * n)
            text = module(["ptr"] * 4, body, level, globals=f".shared .align 16 .b8 tile[{n * size}];\n\n" if space == "shared" else "")
            errors = assemble(text)
            if errors:
                dropped.append((f"atom_{space}_{name}", ops[0], list(errors.values())[0]))
                continue
            save(folder, f"atom_{space}_{name}", text, [1, 1, 1], [n, 1, 1], [old, new, 2 * len(ops) * n * size, len(ops) * n * size], [2, 3], forms=ops, check=False,
                 note="argument 2: the words afterwards, slabs in pairs (atom, red); argument 3: what atom returned")
        if values[0] == "u":
            expected = np.where(rng.random(n) < 0.5, old, old ^ old.dtype.type(1))
            body = thread_index() + load(0, kind, f"{register}10") + load(1, kind, f"{register}11") + load(2, kind, f"{register}14") + store(3, kind, f"{register}10")
            body += f"\tatom.global.cas.{kind} \t{register}12, [%rd66], {register}14, {register}11;\n" + store(4, kind, f"{register}12")
            save(folder, f"atom_cas_{name}", module(["ptr"] * 5, body), [1, 1, 1], [n, 1, 1], [old, new, expected, n * size, n * size], [3, 4], note="results: word afterwards, old value")
    # many threads, one word: only results that do not depend on the order
    n = 512
    value = rng.integers(1, 1000, n).astype(np.uint32)
    body = thread_index() + load(0, "b32", "%r10") + "\tld.param.b64 \t%rd1, [k_param_1];\n\tcvt.rn.f32.u32 \t%r11, %r10;\n\tcvt.u64.u32 \t%rd2, %r10;\n\tcvt.rn.f64.u32 \t%rd3, %r10;\n"
    body += lines("""atom.global.add.u32 %r20, [%rd1], %r10;
        atom.global.add.u64 %rd4, [%rd1+8], %rd2;
        red.global.add.f32 [%rd1+16], %r11;
        red.global.add.f64 [%rd1+24], %rd3;
        red.global.max.u32 [%rd1+32], %r10;
        red.global.min.s32 [%rd1+36], %r10;
        red.global.or.b32 [%rd1+40], %r10;
        red.global.xor.b32 [%rd1+44], %r10;
        atom.relaxed.gpu.global.add.u32 %r21, [%rd1+48], 1;
        $L_cas:
        ld.volatile.global.u32 %r22, [%rd1+52];
        mul.lo.s32 %r23, %r10, 2;
        add.s32 %r23, %r22, %r23;
        atom.global.cas.b32 %r24, [%rd1+52], %r22, %r23;
        setp.ne.b32 %p1, %r24, %r22;
        @%p1 bra $L_cas;
        atom.acq_rel.gpu.global.inc.u32 %r25, [%rd1+56], 99;""")
    save(folder, "atom_contended", module(["ptr"] * 2, body), [4, 1, 1], [128, 1, 1], [value, np.zeros(16, np.uint32)], [1], note="sums are exact, so the order does not show")
    body = thread_index() + load(0, "b32", "%r10") + load(0, "b32", "%r11", base=50, index="%r1") + "\tld.param.b64 \t%rd1, [k_param_1];\n\tmul.wide.u32 \t%rd2, %r1, 16;\n\tadd.s64 \t%rd1, %rd1, %rd2;\n" + lines("""cvt.rn.f32.u32 %r11, %r10;
        neg.f32 %r12, %r11;
        red.relaxed.gpu.global.add.v2.f32 [%rd1], {%r11, %r12};
        atom.relaxed.gpu.global.add.v2.f32 {%r13, %r14}, [%rd1+8], {%r11, %r12};""")
    save(folder, "atom_vector", module(["ptr"] * 2, body, ("8.1", "sm_90")), [1, 1, 1], [128, 1, 1], [value[:128], moderate(rng, "f32", 512, 8)], [1])


def matrices(rng, folder):
    for num in (1, 2, 4):
        for trans in ("", ".trans"):
            warps = 2
            value = uniform_bits(rng, "u32", 512)  # 2 KiB of shared memory
            offset = u32(rng.permutation(128)[:64] * 16)
            regs = [f"%r{20 + i}" for i in range(num)]
            body = thread_index() + "\tmov.u32 \t%r30, %tid.x;\n\tmov.b64 \t%rd20, tile;\n\tld.param.b64 \t%rd1, [k_param_0];\n\tmul.wide.u32 \t%rd2, %r30, 32;\n\tadd.s64 \t%rd1, %rd1, %rd2;\n\tadd.s64 \t%rd3, %rd20, %rd2;\n"
            for i in range(2):
                body += f"\tld.global.nc.v4.b32 \t{{%r40, %r41, %r42, %r43}}, [%rd1+{16 * i}];\n\tst.shared.v4.b32 \t[%rd3+{16 * i}], {{%r40, %r41, %r42, %r43}};\n"
            head = body
            body += "\tbar.sync \t0;\n" + load(1, "b32", "%r10") + lines(f"""cvt.u64.u32 %rd4, %r10;
                add.s64 %rd5, %rd20, %rd4;
                ldmatrix.sync.aligned.m8n8.x{num}{trans}.shared.b16 {{{", ".join(regs)}}}, [%rd5];""")
            body += "".join(store(2, "b32", r, slab=64 * i) for i, r in enumerate(regs))
            tile = ".shared .align 128 .b8 tile[2048];\n\n"
            save(folder, f"ldmatrix_x{num}{trans.replace('.', '_')}", module(["ptr"] * 3, body, globals=tile), [1, 1, 1], [64, 1, 1], [value, offset, 64 * 4 * num], [2],
                 note="argument 0 fills the tile; argument 1: byte offset per lane; slab i: register i")
            body = head + "\tbar.sync \t0;\n" + load(1, "b32", "%r10") + "".join(load(3, "b32", r, index="%r1", base=70) .replace("[%rd70]", f"[%rd70+{256 * i}]") for i, r in enumerate(regs))
            body += lines(f"""cvt.u64.u32 %rd4, %r10;
                add.s64 %rd5, %rd20, %rd4;
                stmatrix.sync.aligned.m8n8.x{num}{trans}.shared.b16 [%rd5], {{{", ".join(regs)}}};
                bar.sync 0;
                ld.param.b64 %rd6, [k_param_2];
                add.s64 %rd6, %rd6, %rd2;""")
            for i in range(2):
                body += f"\tld.shared.v4.b32 \t{{%r40, %r41, %r42, %r43}}, [%rd3+{16 * i}];\n\tst.global.v4.b32 \t[%rd6+{16 * i}], {{%r40, %r41, %r42, %r43}};\n"
            save(folder, f"stmatrix_x{num}{trans.replace('.', '_')}", module(["ptr"] * 4, body, LEVELS[1], globals=tile), [1, 1, 1], [64, 1, 1],
                 [value, offset, 2048, uniform_bits(rng, "u32", 64 * num)], [2], note="argument 2: the whole tile afterwards")
    value = uniform_bits(rng, "u32", 64)
    body = thread_index() + load(0, "b32", "%r10") + "\tmovmatrix.sync.aligned.m8n8.trans.b16 \t%r20, %r10;\n" + store(1, "b32", "%r20")
    save(folder, "movmatrix", module(["ptr"] * 2, body, ("7.8", "sm_80")), [1, 1, 1], [64, 1, 1], [value, 256], [1])


def generate(rng, small, dense):
    masks = shuffles(rng, small)
    votes(rng, small, masks)
    control(rng, small)
    atomics(rng, small)
    matrices(rng, small)
