"""Input values: special values of each type, mixed with random ones. All seeded."""
import numpy as np

SPECIAL = {
    "u8": [0, 1, 2, 0x7f, 0x80, 0x81, 0xfe, 0xff, 0x55, 0xaa],
    "u16": [0, 1, 2, 3, 15, 16, 17, 31, 32, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff, 0x5555, 0xaaaa],
    "u32": [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0x80000001,
            0xfffffffe, 0xffffffff, 0x55555555, 0xaaaaaaaa, 0x00ff00ff, 0x12345678],
    "u64": [0, 1, 2, 3, 31, 32, 63, 64, 65, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff,
            0x8000000000000000, 0x8000000000000001, 0xfffffffffffffffe, 0xffffffffffffffff, 0x5555555555555555, 0x123456789abcdef0],
    "f32": [0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 0xffa5a5a5,
            0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x3f000000, 0x3f800001,
            0x40490fdb, 0x33800000, 0xb3800000, 0x4b000001, 0x20000000, 0xa0123456],
    "f64": [0, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
            0xfff8123456789abc, 0x7ff0000000000001, 0xfff5a5a5a5a5a5a5, 1, 0x8000000000000001, 0x000fffffffffffff, 0x0010000000000000,
            0x8010000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x3ca0000000000000, 0xbca0000000000000, 0x3ff0000000000001,
            0x20000000a0000000],
    "f16": [0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0xfe12, 0x7c01, 0xfd55, 1, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x7bff,
            0xfbff, 0x3800, 0x3c01, 0x1000, 0x9000, 0x4248, 0x6401],
    "bf16": [0, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0, 0xffd2, 0x7f81, 0xffa5, 1, 0x8001, 0x007f, 0x807f, 0x0080, 0x8080, 0x7f7f,
             0xff7f, 0x3f00, 0x3f81, 0x3b80, 0xbb80, 0x4049, 0x4301],
}
BITS = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}
FIELDS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}


def uniform_bits(rng, kind, n):
    t = BITS[kind]
    return rng.integers(0, np.iinfo(t).max, n, dtype=t, endpoint=True)


def moderate(rng, kind, n, spread):
    """Random signs and fractions, exponents within +-spread of that of 1."""
    e, m = FIELDS[kind]
    bias = (1 << (e - 1)) - 1
    exponent = bias + rng.integers(-min(spread, bias - 1), min(spread, bias) + 1, n)
    fraction = rng.integers(0, 1 << m, n)
    fraction = np.where(rng.random(n) < 0.2, fraction & ~((1 << (m // 2)) - 1), fraction)  # some short fractions: exact and halfway cases
    sign = rng.integers(0, 2, n)
    return ((sign.astype(np.uint64) << np.uint64(e + m)) | (exponent.astype(np.uint64) << np.uint64(m)) | fraction.astype(np.uint64)).astype(BITS[kind])


def draw(rng, kind, n):
    """One operand: a third special values, a third any bits, a third (floats) near 1."""
    special = np.array(SPECIAL[kind], dtype=np.uint64).astype(BITS[kind])
    choice = rng.integers(0, 3, n)
    out = np.where(choice == 0, special[rng.integers(0, len(special), n)], uniform_bits(rng, kind, n))
    if kind in FIELDS:
        out = np.where(choice == 2, moderate(rng, kind, n, 12), out)
    return out


def pairs(rng, kind, n, share=0.7):
    """Two operands: all pairs of special values if they fit in `share` of n, then random ones (a few cancelling)."""
    special = np.array(SPECIAL[kind], dtype=np.uint64).astype(BITS[kind])
    a, b = [x.ravel() for x in np.meshgrid(special, special, indexing="ij")]
    keep = rng.permutation(len(a))[:int(n * share)]
    a, b = a[keep], b[keep]
    rest = n - len(a)
    ra, rb = draw(rng, kind, rest), draw(rng, kind, rest)
    if kind in FIELDS:
        near = moderate(rng, kind, rest, 3)
        top = BITS[kind](1) << BITS[kind](sum(FIELDS[kind]))
        pick = rng.random(rest)
        ra = np.where(pick < 0.6, moderate(rng, kind, rest, FIELDS[kind][1] + 2), ra)
        rb = np.where(pick < 0.6, moderate(rng, kind, rest, 2), rb)
        ra = np.where(pick < 0.15, near, ra)
        rb = np.where(pick < 0.15, (near ^ top) + BITS[kind](1), rb)
    return [np.concatenate([a, ra]), np.concatenate([b, rb])]


def triples(rng, kind, n):
    a, b = pairs(rng, kind, n, 0.4)
    c = draw(rng, kind, n)
    if kind in FIELDS:
        c = np.where(rng.random(n) < 0.4, moderate(rng, kind, n, FIELDS[kind][1] + 4), c)
    order = rng.permutation(n)
    return [a[order], b[order], c]
