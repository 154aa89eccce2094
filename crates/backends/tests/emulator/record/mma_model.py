#!/usr/bin/env python3
"""A model of mma.sync and wgmma as the device computes it, and a check of it against recorded products.

mma_model.py DENSE RAW: DENSE holds the inputs, RAW the recorded results (NAME.3). Prints one line per form.
"""
import base64, ctypes, json, os, sys
import numpy as np
import hopper
import mma

FLOAT = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "f32": (8, 23), "e4m3": (4, 3), "e5m2": (5, 2), "f64": (11, 52)}


def split(bits, t):
    """bits -> sign (+-1), significand (integer), exponent, with value = sign * significand * 2^(exponent - fraction bits); NaN and infinity flags.
    Subnormal numbers keep the smallest exponent and have no hidden bit."""
    e, m = FLOAT[t]
    if t == "tf32":
        bits = bits >> np.uint64(13)
    bits = bits.astype(np.int64)
    sign = 1 - 2 * ((bits >> (e + m)) & 1)
    exponent, fraction = (bits >> m) & ((1 << e) - 1), bits & ((1 << m) - 1)
    bias = (1 << (e - 1)) - 1
    if t == "e4m3":
        nan, inf = (exponent == 15) & (fraction == 7), np.zeros(bits.shape, bool)
    else:
        top = exponent == (1 << e) - 1
        nan, inf = top & (fraction != 0), top & (fraction == 0)
    significand = np.where(exponent > 0, fraction | (1 << m), fraction)
    return sign, np.where(nan | inf, 0, significand), np.maximum(exponent, 1) - bias, nan, inf


def shift(value, by):
    """value * 2^by, truncated towards zero; int64."""
    by = np.clip(by, -63, 62)
    magnitude = np.abs(value)
    moved = np.where(by >= 0, magnitude << np.maximum(by, 0), magnitude >> np.maximum(-by, 0))
    return np.where(value < 0, -moved, moved)


def bit_length(x):
    """Of non-negative int64."""
    n = np.zeros(x.shape, np.int64)
    x = x.copy()
    for s in (32, 16, 8, 4, 2, 1):
        big = x >= (1 << s)
        n += np.where(big, s, 0)
        x = np.where(big, x >> s, x)
    return n + (x > 0)


def pack(total, unit, t, rounding, digits=None):
    """total * 2^unit (int64, int) to the bits of t; rounding 'rz' or 'rn'. Zero is always +0; too large is infinity, with 'rz' too."""
    e, m = FLOAT[t]
    if digits:  # fewer fraction bits in the same format
        wide, m = m, digits
    bias = (1 << (e - 1)) - 1
    magnitude = np.abs(total)
    exponent = np.maximum(bit_length(magnitude) - 1 + unit, 1 - bias)  # of the result before rounding
    drop = exponent - m - unit  # bits below the last place
    kept = shift(magnitude, -drop)
    if rounding == "rn":
        rest = magnitude - shift(kept, drop)
        half = np.where(drop > 0, np.int64(1) << np.clip(drop - 1, 0, 62), 0)
        kept = kept + ((drop > 0) & (drop < 63) & ((rest > half) | ((rest == half) & (kept & 1 == 1))))
    carry = kept >= (1 << (m + 1))
    kept, exponent = np.where(carry, kept >> 1, kept), exponent + carry
    out = np.where(kept >= (1 << m), ((exponent + bias) << m) | (kept & ((1 << m) - 1)), kept)
    out = np.minimum(out, ((1 << e) - 1) << m)
    out = out | (((total < 0) & (out != 0)).astype(np.int64) << (e + m))
    return (out << (wide - m) if digits else out).astype(np.uint64)


def hmma(a, b, c, ta, tb, tc, bits=25):
    """One step of the tensor core, all K products at once: A [w, m, k], B [w, k, n], C [w, m, n] as bits.

    Every product is exact. The largest exponent E is that of C or of a product (the sum of the operands' exponents: a product's
    significand lies in [1, 4) and is not normalized), and at least -126. All terms are cut off (towards zero) below 2^(E - 25), which is two
    bits below the last place of an f32 of exponent E; their sum is exact, and it is cut off (f32) or rounded to nearest even (f16) once.
    wgmma of fp8 cuts the terms off below 2^(E - 13) (bits = 13) and keeps 13 fraction bits of an f32 result.
    """
    sa, ma, ea, na, ia = split(a[:, :, :, None], ta)
    sb, mb, eb, nb, ib = split(b[:, None, :, :], tb)
    sc, mc, ec, nc, ic = split(c, tc)
    zero = lambda m, special: (m == 0) & ~special
    nan = na | nb | (ia & zero(mb, nb | ib)) | (ib & zero(ma, na | ia))
    inf = (ia | ib) & ~nan
    s, p = sa * sb, ma * mb
    plus, minus = (inf & (s > 0)).any(2) | (ic & (sc > 0)), (inf & (s < 0)).any(2) | (ic & (sc < 0))
    e = np.where(p != 0, ea + eb, -126)
    largest = np.maximum(np.maximum(e.max(2), np.where(mc != 0, ec, -126)), -126)
    unit = largest - bits
    total = shift(s * p, e - FLOAT[ta][1] - FLOAT[tb][1] - unit[:, :, None]).sum(2) + shift(sc * mc, ec - FLOAT[tc][1] - unit)
    out = pack(total, unit, tc, "rz", 13) if bits == 13 and tc == "f32" else pack(total, unit, tc, "rz" if tc == "f32" else "rn")
    e_t, m_t = FLOAT[tc]
    top = ((1 << e_t) - 1) << m_t
    out = np.where(plus, np.uint64(top), np.where(minus, np.uint64(top | 1 << (e_t + m_t)), out))
    return np.where(nan.any(2) | nc | (plus & minus), np.uint64((1 << (e_t + m_t)) - 1), out)


def add(x, y, t):
    """add.rn of f32 or f16; NaN is 7fffffff or 7fff."""
    kind = {"f32": np.float32, "f16": np.float16}[t]
    word = {"f32": np.uint32, "f16": np.uint16}[t]
    with np.errstate(all="ignore"):
        r = x.astype(word).view(kind) + y.astype(word).view(kind)
    return np.where(np.isnan(r), word(np.iinfo(word).max >> 1), r.view(word)).astype(np.uint64)


def product(a, b, c, form):
    m, n, k, ta, tb, tc, mnemonic, level = form
    if ta in ("e4m3", "e5m2"):  # on sm_90 ptxas converts to f16 and takes two steps from zero, then adds C
        widen = lambda x, t: mma.encode(mma.decode(x, t), "f16")
        a, b = np.where(split(a, ta)[3], np.uint64(0x7e00), widen(a, ta)), np.where(split(b, tb)[3], np.uint64(0x7e00), widen(b, tb))
        d = np.zeros_like(c)
        for part in (0, 2):
            index = [i for i in range(k) if i & 2 == part]
            d = hmma(a[:, :, index], b[:, index, :], d, "f16", "f16", tc)
        return add(c, d, tc)
    if tc == "s32":
        x, y = mma.decode(a, ta)[:, :, :, None], mma.decode(b, tb)[:, None]
        terms = (x ^ y if "xor" in mnemonic else x & y) if ta == "b1" else x * y
        total = terms.sum(2) + mma.decode(c, "s32")
        if "satfinite" in mnemonic:
            total = np.clip(total, -2 ** 31, 2 ** 31 - 1)
        return (total & 0xffffffff).astype(np.uint64)
    if tc == "f64":  # a chain of fma.rn in the order of k
        libm = ctypes.CDLL("libm.so.6")
        libm.fma.restype, libm.fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3
        fma = np.frompyfunc(libm.fma, 3, 1)
        d = c.view(np.float64)
        with np.errstate(all="ignore"):
            for i in range(k):
                d = fma(*np.broadcast_arrays(a.view(np.float64)[:, :, i, None], b.view(np.float64)[:, None, i, :]), d).astype(np.float64)
        return d.view(np.uint64)
    return hmma(a, b, c, ta, tb, tc)


def load(root, raw, name):
    m, n, k, ta, tb, tc, mnemonic, level = mma.FORMS[name]
    case = json.load(open(f"{root}/mma_{name}.json"))
    word = np.uint64 if tc == "f64" else np.uint32
    buffers = [np.frombuffer(base64.b64decode(x["buffer"]), word) for x in case["arguments"][:3]] + [np.frombuffer(open(f"{raw}/mma_{name}.3", "rb").read(), word)]
    out = []
    for which, t, x in zip("ABCC", (ta, tb, tc, tc), buffers):
        registers = mma.place(which, m, k, t)[0].shape[0]
        out.append(mma.scatter(x.reshape(-1, registers, 32), which, m, n, k, t))
    return out


def load_wgmma(root, raw, name):
    k, ta, tb, tc, mnemonic, tail = hopper.FORMS[name]
    case = json.load(open(f"{root}/wgmma_{name}.json"))
    buffers = [np.frombuffer(base64.b64decode(x["buffer"]), np.uint8) for x in case["arguments"][:3]] + [np.frombuffer(open(f"{raw}/wgmma_{name}.3", "rb").read(), np.uint8)]
    groups = case["grid"][0]
    kind = {8: np.uint8, 16: np.uint16, 32: np.uint32}[mma.WIDTH[ta]]

    def operand(x, rows):
        return np.ascontiguousarray(x.reshape(groups, rows // 8, 2, 8, 16).transpose(0, 1, 3, 2, 4)).reshape(groups, rows, 32).view(kind).astype(np.uint64)

    def accumulator(x):
        r, q = hopper.fragments(None, tc)
        words = x.view(np.uint32).reshape(groups, -1, 128).astype(np.uint64)
        out = np.zeros((groups, 64, 8), np.uint64)
        out[:, r, q] = (words[..., None] >> (np.arange(r.shape[-1], dtype=np.uint64) * np.uint64(16))) & np.uint64((1 << mma.WIDTH[tc]) - 1)
        return out
    return operand(buffers[0], 64), operand(buffers[1], 8).transpose(0, 2, 1), accumulator(buffers[2]), accumulator(buffers[3])


def main():
    root, raw = sys.argv[1:3]

    def report(name, d, expected, integer):
        bad = d != expected
        if d.size and name.endswith("f64"):
            bad &= ~np.isnan(d.view(np.float64))  # NaN keeps a payload: not modelled
        print(f"{name}: {bad.size - int(bad.sum())} of {bad.size} equal ({len(d)} products of matrices); unequal per kind of input {[int(x.sum()) for x in np.array_split(bad, 3 if integer else len(mma.KINDS))]}")

    for name, form in mma.FORMS.items():
        a, b, c, d = load(root, raw, name)
        report("mma " + name, d, product(a, b, c, form), form[5] == "s32")
    for name, (k, ta, tb, tc, mnemonic, tail) in hopper.FORMS.items():
        a, b, c, d = load_wgmma(root, raw, name)
        if tc == "s32":
            expected = product(a, b, c, (64, 8, k, ta, tb, tc, mnemonic, None))
        else:
            expected = hmma(a, b, c, ta, tb, tc, bits=13 if ta[0] == "e" else 25)
        report("wgmma " + name, d, expected, tc == "s32")


if __name__ == "__main__":
    main()
