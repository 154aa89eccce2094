"""Matrix products: one product per warp, fragments loaded and stored register by register.

Buffers hold, for each warp, register r of lane l at ((warp * registers + r) * 32 + l). Eight kinds of input per form (see `matrices`).
"""
import numpy as np
import ml_dtypes
from case import module, save, thread_index, assemble, dropped, LEVELS

# name: (m, n, k, type of A, of B, of C and D, mnemonic, level)
def floating(k, a, b, c, level=LEVELS[0]):
    return (16, 8, k, a, b, c, f"mma.sync.aligned.m16n8k{k}.row.col.{c}.{a}.{b}.{c}", level)

FORMS = {
    "m16n8k16_f32_bf16": floating(16, "bf16", "bf16", "f32"),
    "m16n8k16_f32_f16": floating(16, "f16", "f16", "f32"),
    "m16n8k16_f16_f16": floating(16, "f16", "f16", "f16"),
    "m16n8k8_f32_bf16": floating(8, "bf16", "bf16", "f32"),
    "m16n8k8_f32_f16": floating(8, "f16", "f16", "f32"),
    "m16n8k8_f16_f16": floating(8, "f16", "f16", "f16"),
    "m16n8k8_f32_tf32": floating(8, "tf32", "tf32", "f32"),
    "m16n8k4_f32_tf32": floating(4, "tf32", "tf32", "f32"),
    "m16n8k32_f32_e4m3": floating(32, "e4m3", "e4m3", "f32", ("8.4", "sm_89")),
    "m16n8k32_f32_e5m2": floating(32, "e5m2", "e5m2", "f32", ("8.4", "sm_89")),
    "m16n8k32_f32_e4m3_e5m2": floating(32, "e4m3", "e5m2", "f32", ("8.4", "sm_89")),
    "m16n8k16_f32_e4m3": floating(16, "e4m3", "e4m3", "f32", ("8.7", "sm_89")),
    "m16n8k32_f16_e4m3": floating(32, "e4m3", "e4m3", "f16", ("8.7", "sm_89")),
    "m8n8k4_f64": (8, 8, 4, "f64", "f64", "f64", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", LEVELS[0]),
    "m16n8k4_f64": (16, 8, 4, "f64", "f64", "f64", "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64", LEVELS[1]),
    "m16n8k8_f64": (16, 8, 8, "f64", "f64", "f64", "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64", LEVELS[1]),
    "m16n8k16_f64": (16, 8, 16, "f64", "f64", "f64", "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", LEVELS[1]),
}
for _k, _a, _b, _s in ((32, "s8", "s8", ""), (32, "u8", "u8", ""), (32, "s8", "u8", ".satfinite"), (32, "u8", "s8", ""), (16, "s8", "s8", ""),
                       (64, "s4", "s4", ""), (64, "u4", "s4", ".satfinite"), (32, "s4", "s4", "")):
    FORMS[f"m16n8k{_k}_s32_{_a}_{_b}{_s.replace('.', '_')}"] = (16, 8, _k, _a, _b, "s32", f"mma.sync.aligned.m16n8k{_k}.row.col{_s}.s32.{_a}.{_b}.s32", LEVELS[0])
FORMS["m8n8k16_s32_s8_u8"] = (8, 8, 16, "s8", "u8", "s32", "mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32", LEVELS[0])
for _o in ("xor", "and"):
    FORMS[f"m16n8k256_s32_b1_{_o}"] = (16, 8, 256, "b1", "b1", "s32", f"mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.{_o}.popc", ("7.1", "sm_80"))

WIDTH = {"bf16": 16, "f16": 16, "tf32": 32, "f32": 32, "f64": 64, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "s32": 32}
NUMPY = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
RANGE = {"bf16": 126, "f16": 14, "tf32": 126, "f32": 126, "f64": 1022, "e4m3": 6, "e5m2": 14}  # exponents of normal numbers are at least -RANGE
FRACTION = {"bf16": 7, "f16": 10, "tf32": 10, "f32": 23, "f64": 52, "e4m3": 3, "e5m2": 2}


def encode(values, t):
    """float64 values to the bits of type t, rounded to nearest."""
    with np.errstate(all="ignore"):
        if t == "tf32":
            bits = values.astype(np.float32).view(np.uint32)
            return (bits & np.uint32(0xffffe000)).astype(np.uint64)
        out = values.astype(NUMPY[t])
        return out.view({8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[WIDTH[t]]).astype(np.uint64)


def decode(bits, t):
    """Bits to float64 (integers: to int64)."""
    bits = bits.astype(np.uint64)
    if t in ("s4", "s8", "s32"):
        w = WIDTH[t]
        x = bits.astype(np.int64)
        return np.where(x >> (w - 1), x - (1 << w), x)
    if t in ("u4", "u8", "b1"):
        return bits.astype(np.int64)
    if t == "tf32":
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    return bits.astype({8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[WIDTH[t]]).view(NUMPY[t]).astype(np.float64)


def place(which, m, k, t):
    """Index arrays [registers, lanes, elements of a register]: (row, column) of A or C, (k, n) of B."""
    lane = np.arange(32)
    g, q = lane >> 2, lane & 3
    e = max(1, 32 // WIDTH[t])
    if which == "C":
        e_c = 2 if t == "f16" else 1
        halves = [(g + 8 * h) for h in range(m // 8)]
        rows, cols = [], []
        for h in halves:
            for i in range(0, 2, e_c):
                rows.append(np.stack([h] * e_c, 1))
                cols.append(np.stack([q * 2 + i + j for j in range(e_c)], 1))
        return np.array(rows), np.array(cols)
    groups = k // (4 * e)
    rows, cols = [], []
    for j in range(groups):
        column = np.stack([q * e + i + 4 * e * j for i in range(e)], 1)
        if which == "B":
            rows.append(column)
            cols.append(np.stack([g] * e, 1))
        else:
            for h in range(m // 8):
                rows.append(np.stack([g + 8 * h] * e, 1))
                cols.append(column)
    return np.array(rows), np.array(cols)


def gather(matrix, which, m, k, t):
    """[warps, rows, cols] of bits -> [warps, registers, 32] words."""
    r, c = place(which, m, k, t)
    x = matrix[:, r, c]  # warps, registers, lanes, elements
    shift = np.arange(x.shape[-1], dtype=np.uint64) * np.uint64(WIDTH[t])
    words = np.bitwise_or.reduce(x << shift, axis=-1)
    return words.astype(np.uint64 if WIDTH[t] == 64 else np.uint32)


def scatter(words, which, m, n, k, t):
    """[warps, registers, 32] words -> [warps, rows, cols] of bits."""
    r, c = place(which, m, k, t)
    out = np.zeros((len(words), *{"A": (m, k), "B": (k, n), "C": (m, n)}[which]), dtype=np.uint64)
    shift = np.arange(r.shape[-1], dtype=np.uint64) * np.uint64(WIDTH[t])
    out[:, r, c] = (words.astype(np.uint64)[..., None] >> shift) & np.uint64((1 << WIDTH[t]) - 1)
    return out


KINDS = ["normal", "normal, C = 0", "scales", "cancelling", "powers of two", "subnormal", "overflow, infinity, NaN", "one large", "any bits", "large C"]


def matrices(rng, kind, warps, m, n, k, ta, tb, tc):
    """Float matrices (float64, before rounding to the types) of one kind; returns bits."""
    ra, rb = RANGE[ta], RANGE[tb]
    rc = RANGE[tc]
    A, B, C = rng.normal(size=(warps, m, k)), rng.normal(size=(warps, k, n)), rng.normal(size=(warps, m, n)) * 4
    sign = lambda shape: rng.choice([-1.0, 1.0], shape)
    clip = lambda e, r: np.clip(e, -r, r)
    if kind == 1:
        C[:] = 0
    if kind == 2:  # exponents spread widely
        s = 12
        A *= 2.0 ** clip(rng.integers(-s, s + 1, A.shape), ra - 2)
        B *= 2.0 ** clip(rng.integers(-s, s + 1, B.shape), rb - 2)
        C *= 2.0 ** clip(rng.integers(-28, 24, C.shape), rc - 3)
    if kind == 3:  # pairs of products cancel almost, in random places
        A, B = 1 + rng.random(A.shape), 1 + rng.random(B.shape)
        order = rng.permuted(np.tile(np.arange(k), (warps, 1)), axis=1)
        for w in range(warps):
            for i in range(0, k - 1, 2):
                x, y = order[w, i], order[w, i + 1]
                A[w, :, y], B[w, y, :] = -A[w, :, x], B[w, x, :]
        scale = 2.0 ** rng.integers(0, min(12, ra), (warps, 1, 1))
        A[:, :, :] *= scale
        hit = rng.random(A.shape) < 1.5 / k
        A = np.where(hit, A * (1 + 2.0 ** -FRACTION[ta]), A)
        C = rng.normal(size=C.shape) * 2.0 ** clip(rng.integers(-30, 4, C.shape), rc - 3)
    if kind == 4:  # powers of two: shows where bits fall off
        A = sign(A.shape) * 2.0 ** clip(rng.integers(-16, 15, A.shape), ra)
        B = sign(B.shape) * 2.0 ** clip(rng.integers(-4, 4, B.shape), rb)
        C = sign(C.shape) * 2.0 ** clip(rng.integers(-34, 14, C.shape), rc)
        A = np.where(rng.random(A.shape) < 0.5, 0, A)
    if kind == 5:
        A *= 2.0 ** -(ra + rng.integers(-1, FRACTION[ta] + 1, A.shape))
        small = rng.random((warps, 1, 1)) < 0.5
        B = np.where(small, B, B * 2.0 ** -(rb + rng.integers(-1, FRACTION[tb] + 1, B.shape)))
        C *= 2.0 ** -(rc + rng.integers(-3, FRACTION[tc] + 1, C.shape))
    if kind == 6:
        big = {"bf16": 120, "f16": 14, "tf32": 120, "e4m3": 7, "e5m2": 14, "f64": 1000}[ta]
        half = np.arange(warps) % 2 == 0
        grow = 2.0 ** (big / 2 + rng.integers(-3, 6, A.shape)) if ta not in ("e4m3", "e5m2", "f16") else 2.0 ** rng.integers(big - 4, big + 1, A.shape)
        A = np.where(half[:, None, None], A * grow, A)
        B = np.where(half[:, None, None], B * (2.0 ** (big / 2 + rng.integers(-3, 6, B.shape)) if ta not in ("e4m3", "e5m2", "f16") else 2.0 ** rng.integers(big - 4, big + 1, B.shape)), B)
        C = np.where(half[:, None, None], C * 2.0 ** clip(rng.integers(118, 124, C.shape), rc - 3) if tc == "f32" else C, C)
    if kind == 7:  # one large product in a random place, the rest small
        A, B = A * 2.0 ** clip(-rng.integers(0, 10, A.shape), ra - 2), B * 2.0 ** clip(-rng.integers(0, 4, B.shape), rb - 2)
        for w in range(warps):
            for r in range(m):
                A[w, r, rng.integers(0, k)] *= 2.0 ** min(ra - 2, 12)
        C *= 2.0 ** clip(-rng.integers(0, 16, C.shape), rc - 3)
    if kind == 9:  # a large C
        C = sign(C.shape) * (1 + rng.random(C.shape)) * 2.0 ** clip(rng.integers(2, 26, C.shape), rc - 3)
    a, b, c = encode(A, ta), encode(B, tb), encode(C, tc)
    if kind == 8:  # any bits, exponents all ones kept rare
        def any_bits(shape, t):
            w = WIDTH[t]
            x = rng.integers(0, 2 ** 63, shape, dtype=np.uint64) * np.uint64(2) + rng.integers(0, 2, shape, dtype=np.uint64)
            x &= np.uint64((1 << w) - 1) if w < 64 else np.uint64(0xffffffffffffffff)
            value = np.abs(decode(x, t))
            bad = ~(value < 2.0 ** (RANGE[t] - 2)) & (rng.random(shape) > 0.002)
            return np.where(bad, encode(rng.normal(size=shape), t), x)
        a, b, c = any_bits(a.shape, ta), any_bits(b.shape, tb), any_bits(c.shape, tc)
    if kind == 6:
        for w in range(1, warps, 2):  # rows, columns and entries with infinities and NaNs, with payloads
            for x, t in ((a, ta), (b, tb), (c, tc)):
                f = FRACTION[t]
                sgn = np.uint64(1 << (WIDTH[t] - 1))
                inf = encode(np.array([np.inf]), t)[0] if t != "e4m3" else np.uint64(0x7f)
                low = np.uint64(13 if t == "tf32" else 0)
                nans = [inf | (np.uint64(1) << np.uint64(f - 1) << low), inf | (np.uint64(1) << low), sgn | inf | (np.uint64(3) << low), inf | (np.uint64((1 << f) - 1) << low)]
                for value, count in ((inf, 2), (inf | sgn, 2), (nans[rng.integers(0, 4)], 1), (np.uint64(0), 2)):
                    for _ in range(count):
                        i, j = rng.integers(0, x.shape[1]), rng.integers(0, x.shape[2])
                        x[w, i, j] = value
    return a, b, c


def integer_matrices(rng, kind, warps, m, n, k, ta, tb, tc):
    def bits(t, shape):
        top = (1 << WIDTH[t]) - 1
        x = rng.integers(0, top + 1, shape, dtype=np.uint64)
        if kind % 3 == 1:
            x = rng.choice(np.array([0, top, (top >> 1), (top >> 1) + 1], dtype=np.uint64), shape)
        return x
    a, b, c = bits(ta, (warps, m, k)), bits(tb, (warps, k, n)), rng.integers(0, 1 << 32, (warps, m, n), dtype=np.uint64)
    if kind % 3 == 2:  # overflow of the sum
        c = rng.choice(np.array([0x7fffffff, 0x7ffffff0, 0x7fff0000, 0x80000000, 0x80000010, 0x8000ff00], dtype=np.uint64), c.shape)
    return a, b, c


def text(form):
    m, n, k, ta, tb, tc, mnemonic, level = form
    counts = [place("A", m, k, ta)[0].shape[0], place("B", m, k, tb)[0].shape[0], place("C", m, k, tc)[0].shape[0]]
    wide = WIDTH[tc] == 64
    prefix, size, load = ("%rd", 8, "b64") if wide else ("%r", 4, "b32")
    body = thread_index() + "\tshr.u32 \t%r4, %r1, 5;\n\tand.b32 \t%r5, %r1, 31;\n"
    names, number = [], 20
    for i, count in enumerate(counts + [counts[2]]):
        body += f"\tld.param.b64 \t%rd{i + 1}, [k_param_{i}];\n\tmul.lo.s32 \t%r6, %r4, {count * 32};\n\tadd.s32 \t%r6, %r6, %r5;\n"
        body += f"\tmul.wide.u32 \t%rd5, %r6, {size};\n\tadd.s64 \t%rd{i + 1}, %rd{i + 1}, %rd5;\n"
        names.append([f"{prefix}{number + j}" for j in range(count)])
        number += count
    for i in range(3):
        for j, r in enumerate(names[i]):
            body += f"\tld.global.{load} \t{r}, [%rd{i + 1}+{j * 32 * size}];\n"
    braces = lambda r: r[0] if len(r) == 1 and wide else "{" + ", ".join(r) + "}"
    braces = lambda r: "{" + ", ".join(r) + "}"
    body += f"\t{mnemonic}\n\t\t{braces(names[3])},\n\t\t{braces(names[0])},\n\t\t{braces(names[1])},\n\t\t{braces(names[2])};\n"
    for j, r in enumerate(names[3]):
        body += f"\tst.global.{load} \t[%rd4+{j * 32 * size}], {r};\n"
    return module(["ptr"] * 4, body, level), counts, size


def generate(rng, small, dense):
    for name, form in FORMS.items():
        m, n, k, ta, tb, tc, mnemonic, level = form
        source, counts, size = text(form)
        errors = assemble(source)
        if errors:
            dropped.append(("mma_" + name, mnemonic, list(errors.values())[0]))
            continue
        integer = tc == "s32"
        for folder, each in ((small, 1), (dense, 8 if integer else 64)):
            kinds = range(3) if integer else range(len(KINDS))
            if folder == small and tc == "f64":
                kinds = (0, 4, 6, 8) if k == 4 else (6, 8)
            if folder == small and not integer and tc != "f64" and name not in ("m16n8k16_f32_bf16", "m16n8k16_f32_f16", "m16n8k8_f32_tf32"):
                kinds = (2, 3, 4, 5, 6, 8, 9)
            make = integer_matrices if integer else matrices
            parts = [make(rng, kind, (2 if kind == 6 and each == 1 and not integer else each), m, n, k, ta, tb, tc) for kind in kinds]
            a, b, c = [np.concatenate([p[i] for p in parts]) for i in range(3)]
            buffers = [gather(a, "A", m, k, ta), gather(b, "B", m, k, tb), gather(c, "C", m, k, tc)]
            warps = len(a)
            per_block = next(x for x in (8, 4, 3, 2, 1) if warps % x == 0)
            save(folder, "mma_" + name, source, [warps // per_block, 1, 1], [32 * per_block, 1, 1], buffers + [warps * counts[2] * 32 * size], [3], check=False,
                 forms=[mnemonic], note="one product per warp; kinds of input in turn: " + ("any bits; extremes; overflow" if integer else "; ".join(KINDS[i] for i in kinds)))
