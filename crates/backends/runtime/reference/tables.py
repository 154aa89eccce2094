"""Computes ../tables.h, the constant tables of the built-ins.

    python3 tables.py            writes the file
    python3 tables.py --check    fails when the file would change

Needs mpmath (1.3 was used). Every number is derived here from a definition:
polynomials interpolate the function at Chebyshev nodes in high precision, the
degree being the least one that keeps the error below 2^-57 of the least value
where nothing else is said; zeros come from Newton's method; the asymptotic series
of the Bessel functions are expanded in exact rationals.
"""

import struct
import sys
from fractions import Fraction
from pathlib import Path

from mpmath import mp, mpf

mp.prec = 400
SOURCE = Path(__file__).resolve().parent.parent / "tables.h"
HEAD = """/* The constant tables of the built-ins, written by reference/tables.py. */

#ifndef TC_TABLES_H
#define TC_TABLES_H

#include <stdint.h>

"""
TARGET = mpf(2) ** -57
out = []


def hexf(x):
    return float(x).hex().replace("0x1.0000000000000p", "0x1p")


def split(x):
    """The two doubles nearest to x: x = hi + lo to about 2^-106."""
    hi = float(x)
    return hi, float(x - mpf(hi))


def single(x):
    """The float nearest to x, as C writes it."""
    rounded = struct.unpack("<f", struct.pack("<f", float(x)))[0]
    digits, exponent = rounded.hex().split("p")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return f"{digits}p{exponent}f"


def array(name, values, what, width=1, kind="double"):
    """Emits a table; `width` numbers form one row of a two-dimensional one."""
    dim = f"[{len(values) // width}]" + (f"[{width}]" if width > 1 else "")
    out.append(f"/* {what} */\nstatic const {kind} {name}{dim} = {{\n")
    texts = [hexf(v) if kind == "double" else single(v) for v in values]
    per = width if width > 1 else 4
    for i in range(0, len(texts), per):
        row = ", ".join(texts[i : i + per])
        out.append(f"    {{{row}}},\n" if width > 1 else f"    {row},\n")
    out.append("};\n\n")


def pair(name, x, what):
    hi, lo = split(x)
    out.append(f"/* {what} */\nstatic const double {name}_HI = {hexf(hi)}, {name}_LO = {hexf(lo)};\n\n")


def fit(f, a, b, centre=None, target=None):
    """Coefficients of (x - centre)^k, the fewest with an error below `target` on [a, b]."""
    a, b = mpf(a), mpf(b)
    mid, half = (a + b) / 2, (b - a) / 2
    centre = mid if centre is None else mpf(centre)
    top = 64
    nodes = [mp.cos(mp.pi * (2 * j + 1) / (2 * top)) for j in range(top)]
    values = [f(mid + half * t) for t in nodes]
    target = TARGET * min(abs(v) for v in values) if target is None else mpf(2) ** target
    cheb = []
    for k in range(top):
        s = sum(v * mp.cos(k * mp.pi * (2 * j + 1) / (2 * top)) for j, v in enumerate(values))
        cheb.append(s * (1 if k == 0 else 2) / top)
    n = top
    rest = mpf(0)
    while n > 1 and rest + abs(cheb[n - 1]) < target:
        rest += abs(cheb[n - 1])
        n -= 1
    assert n < top - 4, (n, "interval too wide")
    # Chebyshev to powers of t, then to powers of x - centre.
    prev, cur = [mpf(1)], [mpf(0), mpf(1)]
    power = [mpf(0)] * n
    power[0] += cheb[0]
    for k in range(1, n):
        for i, c in enumerate(cur):
            power[i] += cheb[k] * c
        nxt = [mpf(0)] + [2 * c for c in cur]
        for i, c in enumerate(prev):
            nxt[i] -= c
        prev, cur = cur, nxt
    # t = (h + centre - mid) / half
    shift = centre - mid
    result = [mpf(0)] * n
    for k in range(n):
        for i in range(k + 1):
            result[i] += power[k] / half**k * mp.binomial(k, i) * shift ** (k - i)
    return result


def poly(name, what, f, a, b, centre=None, target=None, kind="double"):
    """A table of coefficients. `target` is the binary logarithm of an absolute error."""
    coefficients = fit(f, a, b, centre, target)
    array(name, coefficients, what, kind=kind)
    print(f"{name}: {len(coefficients)} coefficients", file=sys.stderr)


# --- elementary functions --------------------------------------------------


def pieces(x, bits, count, top=None):
    """x in `count` parts of `bits` bits each, from the bit of weight 2^top on, and the rest."""
    parts, rest = [], mpf(x)
    top = int(mp.floor(mp.log(rest, 2))) if top is None else top
    for k in range(count):
        unit = mpf(2) ** (top - bits * (k + 1) + 1)
        part = mp.floor(rest / unit) * unit
        parts.append(part)
        rest -= part
    return [*parts, rest]


def near_zero(f, series):
    """f, or its value at 0 where f(x) is 0/0 there."""
    return lambda x: f(x) if abs(x) > mpf(2) ** -60 else mpf(series)


def elementary_functions():
    half_log_2 = mp.log(2) / 2 * (1 + mpf(2) ** -20)
    exp_rest = near_zero(lambda r: (mp.expm1(r) - r) / r**2, "0.5")
    poly("EXP", "(exp(r) - 1 - r)/r^2, |r| <= log(2)/2", exp_rest, -half_log_2, half_log_2, 0, -57)
    poly("EXP_F32", "the same for floats", exp_rest, -half_log_2, half_log_2, 0, -24, "float")
    array("LOG_2", pieces(mp.log(2), 32, 1), "log(2) in two parts, the first of 32 bits")
    array("LOG_2_F32", pieces(mp.log(2), 15, 1), "the same for floats, the first of 15 bits", kind="float")
    pair("LOG2_E", 1 / mp.log(2), "1/log(2)")
    pair("LOG10_E", 1 / mp.log(10), "1/log(10)")
    pair("LOG_2_EXACT", mp.log(2), "log(2)")
    pair("LOG_10", mp.log(10), "log(10)")

    most = (3 - 2 * mp.sqrt(2)) ** 2 * (1 + mpf(2) ** -20)  # ((sqrt 2 - 1)/(sqrt 2 + 1))^2
    root = lambda f: (lambda z: f(mp.sqrt(z)))
    atanh_rest = near_zero(root(lambda s: (mp.atanh(s) / s - 1 - s * s / 3) / s**4), "0.2")
    poly("ATANH", "(atanh(s)/s - 1 - z/3)/z^2 in z = s^2, s <= (sqrt 2 - 1)/(sqrt 2 + 1)", atanh_rest, 0, most, 0, -58)
    log_rest = near_zero(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, mpf(1) / 3)
    poly("LOG_F32", "(log(1 + f) - f + f^2/2)/f^3, 1 + f in [sqrt 1/2, sqrt 2]", log_rest, mp.sqrt(2) / 2 - 1, mp.sqrt(2) - 1, 0, -23, "float")
    log2_ratio = near_zero(root(lambda s: 2 * mp.atanh(s) / s / mp.log(2)), 2 / mp.log(2))
    poly("LOG2_NARROW", "log2((1 + s)/(1 - s))/s in s^2, for results in single precision", log2_ratio, 0, most, 0, -40)
    poly("EXP2_NARROW", "2^f, |f| <= 1/2, for results in single precision", lambda f: mpf(2) ** f, -0.5, 0.5, 0, -37)
    exp2_rest = near_zero(lambda f: mp.expm1(f * mp.log(2)) / f, mp.log(2))
    poly("EXP2_F32", "(2^f - 1)/f, |f| <= 1/2", exp2_rest, -0.5, 0.5, 0, -26, "float")

    quarter = mp.pi / 4 * (1 + mpf(2) ** -20)
    array("HALF_PI_PARTS", pieces(mp.pi / 2, 28, 3), "pi/2 in four parts, the first three of 28 bits")
    sin_rest = near_zero(root(lambda x: (mp.sin(x) / x - 1) / x**2), -mpf(1) / 6)
    cos_rest = near_zero(root(lambda x: (mp.cos(x) - 1 + x * x / 2) / x**4), mpf(1) / 24)
    poly("SIN", "(sin(x)/x - 1)/z in z = x^2, x <= pi/4", sin_rest, 0, quarter**2, 0, -58)
    poly("COS", "(cos(x) - 1 + z/2)/z^2 in z = x^2, x <= pi/4", cos_rest, 0, quarter**2, 0, -58)
    poly("SIN_NARROW", "sin(pi/2 f)/f in f^2, |f| <= 1/2, for results in single precision",
         near_zero(root(lambda f: mp.sin(mp.pi / 2 * f) / f), mp.pi / 2), 0, "0.251", 0, -36)
    poly("COS_NARROW", "cos(pi/2 f) in f^2", root(lambda f: mp.cos(mp.pi / 2 * f)), 0, "0.251", 0, -36)
    rows = []
    for j in range(5):
        # Bits whose product with a float of at least 2^(26 j) is a multiple of 4 are left out.
        top = 24 - 26 * j
        window = 2 / mp.pi
        if j > 0:
            unit = mpf(2) ** (top + 1)
            window -= mp.floor(window / unit) * unit
        rows += pieces(window, 29, 2, top if j > 0 else -1)
    array("QUARTER_TURNS", rows,
          "2/pi for floats from 2^(26 j) on, modulo what gives whole turns: two parts of 29 bits and the rest", 3)

    atan_rest = near_zero(root(lambda x: (mp.atan(x) / x - 1) / x**2), -mpf(1) / 3)
    poly("ATAN", "(atan(x)/x - 1)/z in z = x^2, x <= sqrt(2) - 1", atan_rest, 0, (mp.sqrt(2) - 1) ** 2 * (1 + mpf(2) ** -20), 0, -56)
    asin_rest = near_zero(root(lambda x: (mp.asin(x) / x - 1) / x**2), mpf(1) / 6)
    poly("ASIN", "(asin(x)/x - 1)/z in z = x^2, x <= 1/2", asin_rest, 0, "0.25", 0, -57)
    pair("QUARTER_PI", mp.pi / 4, "pi/4")

    poly("INVERSE_CBRT", "x^(-1/3), x in [1/8, 1], an estimate", lambda x: 1 / mp.cbrt(x), "0.125", 1, 0, -5)

    tanh_rest = near_zero(root(lambda x: (mp.tanh(x) / x - 1) / x**2), -mpf(1) / 3)
    poly("TANH_F32", "(tanh(x)/x - 1)/z in z = x^2, x <= 5/8", tanh_rest, 0, "0.391", 0, -24, "float")
    erf_rest = near_zero(root(lambda x: mp.erf(x) / x - 1), 2 / mp.sqrt(mp.pi) - 1)
    poly("ERF", "erf(x)/x - 1 in x^2, x <= 7/8", erf_rest, 0, "0.766", 0, -57)
    poly("ERF_F32", "the same for floats, x <= 1", erf_rest, 0, 1, 0, -27, "float")
    poly("ERFC_LOG_F32", "-log(erfc(x)) in x - 1.5, x in [1, 4]", lambda x: -mp.log(mp.erfc(x)), 1, 4, "1.5", -24, "float")


# --- error function family -------------------------------------------------


def inverse_erfc(q):
    """erfcinv by Newton's method on log(erfc(y)) = log(q)."""
    target = mp.log(q)
    y = mp.sqrt(max(-target - mp.log(mp.sqrt(max(-target, mpf(1)))), mpf("0.2")))
    for _ in range(200):
        e = mp.erfc(y)
        step = (mp.log(e) - target) * e / (2 / mp.sqrt(mp.pi) * mp.exp(-y * y))
        y += step
        if abs(step) < abs(y) * mpf(2) ** -300:
            break
    return y


def erfinv_over_x(w):
    """erfinv(x) / x where w = -log(1 - x^2)."""
    if w < mpf(2) ** -300:
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def error_functions():
    poly("ERFINV_MID", "erfinv(x)/x in w = -log(1 - x^2), |x| <= 1/2", erfinv_over_x, 0, "0.29", 0)
    for i, (a, b, c) in enumerate(TAILS):
        poly(
            f"ERFCINV_{i}",
            f"erfcinv(q) in s - {c}, s = sqrt(-log q) in [{a}, {b}]",
            lambda s: inverse_erfc(mp.exp(-s * s)),
            a,
            b,
            c,
        )

    def scaled(t):
        x = 4 * (1 + t) / (1 - t)
        return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x) if x < 10**6 else (2 + 1 / x) * (1 - 1 / (2 * x * x)) / mp.sqrt(mp.pi)

    poly("ERFCX_NEAR", "(1 + 2x) erfcx(x) in t + 0.375, t = (x - 4)/(x + 4), x in [1/2, 4]", scaled, "-0.78", 0, "-0.375")
    poly("ERFCX_FAR", "the same in t - 0.5, x >= 4", scaled, 0, 1, "0.5")


TAILS = [("0.82", "1.5", "1.125"), ("1.5", 3, "2.25"), (3, 6, "4.5"), (6, 12, 9), (12, "27.4", 19)]

# --- gamma family ----------------------------------------------------------


def lgamma_zero(n, above):
    """The zero of lgamma just above or just below -n."""
    e = (1 if above else -1) / mp.factorial(n)
    if n == 2:
        e = mpf("0.5")
    elif n == 3:
        e = mpf("-0.14") if not above else mpf("0.25")
    x = -n + e
    g = lambda y: mp.log(abs(mp.gamma(y)))
    for _ in range(300):
        step = g(x) / mp.digamma(x)
        x -= step
        if abs(step) < mpf(2) ** -360:
            break
    assert abs(g(x)) < mpf(2) ** -300
    return x


def gamma_functions():
    coefficients = mp.taylor(mp.rgamma, 1, 30)
    pairs = []
    for c in coefficients[:9]:
        pairs += split(c)
    array("RGAMMA_DD", pairs, "1/Gamma(1 + e) = sum c_k e^k, |e| <= 1/2: hi and lo of c_0 .. c_8", 2)
    rest = [c for k, c in enumerate(coefficients) if k >= 9 and abs(c) / mpf(2) ** k > mpf(2) ** -75]
    array("RGAMMA", rest, "the same from c_9 on")

    def quotient(x):
        return mp.loggamma(x) / ((x - 1) * (x - 2))

    poly("LGAMMA_1", "lgamma(x)/((x - 1)(x - 2)) in x - 1, x in [1/2, 3/2]", quotient, "0.5", "1.5", 1)
    poly("LGAMMA_2", "the same in x - 2.25, x in [3/2, 3]", quotient, "1.5", 3, "2.25")

    terms = [mp.bernoulli(2 * k) / (2 * k * (2 * k - 1)) for k in range(1, 11)]
    array("STIRLING", terms, "lgamma(x) - (x - 1/2) log x + x - log(2 pi)/2 = sum c_k / x^(2k + 1)")

    rows = []
    zeros = sorted((lgamma_zero(n, above) for n in range(2, 18) for above in (False, True)
                    if n > 3 or (n, above) in ((2, False), (3, True), (3, False))), reverse=True)
    for x in zeros:
        hi, lo = split(x)
        c = [mp.digamma(x)] + [mp.polygamma(k, x) / mp.factorial(k + 1) for k in (1, 2)]
        rows += [hi, lo, c[0], c[1] / c[0], c[2] / c[0]]
    array("LGAMMA_ZEROS", rows,
          "the zeros of lgamma below -2, greatest first: x0 (hi, lo), slope, and a, b of slope h (1 + a h + b h^2)", 5)


# --- Bessel functions ------------------------------------------------------


def newton(f, df, x):
    for _ in range(100):
        step = f(x) / df(x)
        x -= step
        if abs(step) < mpf(2) ** -380:
            return x
    raise AssertionError("no convergence")


def centres(f0, f1, first, count):
    """Rows (x0 hi, x0 lo, f0(x0), f0'(x0)) at the zeros of f0 and of f1 = -f0' in turn."""
    rows = []
    for m in range(count):
        guess = (mpf(first) + m) * mp.pi / 2
        if m % 2 == 0:
            x = newton(f0, lambda y: -f1(y), guess)
            value, slope = mpf(0), -f1(x)
        else:
            x = newton(f1, lambda y: f0(y) - f1(y) / y, guess)
            value, slope = f0(x), mpf(0)
        assert abs(x - guess) < mpf("0.12")
        rows += [*split(x), value, slope]
    return rows


def phase_series(nu, terms):
    """Exact coefficients of log B and of the phase of H = P + iQ = B exp(i phase) in 1/x.

    P and Q are the two halves of the Hankel expansion, sum_k a_k (i/x)^k.
    """
    mu = 4 * nu * nu
    a = [Fraction(1)]
    for k in range(1, terms):
        a.append(a[-1] * (mu - (2 * k - 1) ** 2) / (8 * k))
    # log of sum a_k u^k with u = i/x: k l_k = k a_k - sum_{j<k} j l_j a_{k-j}
    log = [Fraction(0)] * terms
    for k in range(1, terms):
        log[k] = (k * a[k] - sum(j * log[j] * a[k - j] for j in range(1, k))) / k
    amplitude = [log[k] * (-1) ** (k // 2) for k in range(2, terms, 2)]
    phase = [log[k] * (-1) ** (k // 2) for k in range(1, terms, 2)]
    return amplitude, phase


def bessel_functions():
    j = lambda n: (lambda x: mp.besselj(n, x))
    y = lambda n: (lambda x: mp.bessely(n, x))
    root = lambda f: (lambda z: f(mp.sqrt(z)))
    tiny = mpf(2) ** -200
    poly("J0_SMALL", "J0(x) in x^2, x <= 1.65", root(j(0)), 0, "2.7225", 0)
    poly("J1_SMALL", "J1(x)/x in x^2, x <= 1.65", root(lambda x: j(1)(x) / x), 0, "2.7225", 0)
    array("BESSEL_J", centres(j(0), j(1), "1.5", 25),
          "zeros x0 of J0 and J1 in turn: x0 (hi, lo), J0(x0), J0'(x0)", 4)
    array("BESSEL_Y", centres(y(0), y(1), "2.5", 24),
          "zeros x0 of Y0 and Y1 in turn, from the second of Y0: x0 (hi, lo), Y0(x0), Y0'(x0)", 4)
    z0 = newton(y(0), lambda x: -y(1)(x), mpf("0.89"))
    z1 = newton(y(1), lambda x: y(0)(x) - y(1)(x) / x, mpf("2.2"))
    pair("Y0_ZERO", z0, "the first zero of Y0")
    pair("Y1_ZERO", z1, "the first zero of Y1")

    def y0_rest(x):
        return (y(0)(x) * mp.pi / 2 - mp.log(x / z0) * j(0)(x)) / (x * x - z0 * z0)

    def y1_rest(x):
        return (y(1)(x) * mp.pi / 2 - mp.log(x / z1) * j(1)(x)) * x / (x * x - z1 * z1)

    poly("Y0_SMALL", "(pi/2 Y0(x) - log(x/x0) J0(x))/(x^2 - x0^2) in x^2, x <= 2, x0 the first zero", root(y0_rest), 0, 4, 0)
    poly("Y0_MIDDLE", "Y0(x) in x - 2.5625, x in [2, 3.16]", y(0), 2, "3.16", "2.5625")
    poly("Y1_SMALL", "x (pi/2 Y1(x) - log(x/x0) J1(x))/(x^2 - x0^2) in x^2, x <= 3.16, x0 the first zero", root(y1_rest), 0, "9.9856", 0)
    for nu in (0, 1):
        amplitude, phase = phase_series(nu, 90)
        limit = 1 / mpf("40.8")
        keep = [c for k, c in enumerate(amplitude) if abs(mpf(c.numerator) / c.denominator) * limit ** (2 * k + 2) > mpf(2) ** -62]
        array(f"AMPLITUDE_{nu}", [mpf(c.numerator) / c.denominator for c in keep],
              f"log of the amplitude of order {nu}: sum c_k / x^(2k + 2)")
        exact = [mpf(c.numerator) / c.denominator for c in phase]
        size = [abs(c) * limit ** (2 * k + 1) for k, c in enumerate(exact)]
        pairs = []
        for c in exact[:7]:
            pairs += split(c)
        array(f"PHASE_{nu}_DD", pairs, f"phase of order {nu}: sum c_k / x^(2k + 1), hi and lo of c_0 .. c_6", 2)
        last = min(range(len(size)), key=lambda k: size[k])
        n = next((k for k in range(7, last + 1) if size[k] < mpf(2) ** -116), last)
        print(f"PHASE_{nu}: {n} terms, last {mp.nstr(mp.log(size[n], 2), 4)}", file=sys.stderr)
        array(f"PHASE_{nu}", exact[7:n], "the same from c_7 on")

    mp.prec = 1400
    scaled = int(mp.floor(2 / mp.pi * mpf(2) ** 1280))
    mp.prec = 400
    words = [0] + [(scaled >> (1280 - 64 * (i + 1))) & (2**64 - 1) for i in range(20)]
    out.append("/* 2/pi: a word of zeros, then 1280 bits after the binary point */\n")
    out.append(f"static const uint64_t TWO_OVER_PI[{len(words)}] = {{\n")
    for i in range(0, len(words), 3):
        out.append("    " + ", ".join(f"0x{w:016x}" for w in words[i : i + 3]) + ",\n")
    out.append("};\n\n")

    i0 = lambda x: mp.besseli(0, x)
    i1 = lambda x: mp.besseli(1, x)
    poly("I0_SMALL", "I0(x) in x^2, x <= 8", root(i0), 0, 64, 0)
    poly("I1_SMALL", "I1(x)/x in x^2, x <= 8", root(lambda x: i1(x) / x), 0, 64, 0)
    large = lambda f: (lambda u: f(1 / u) * mp.exp(-1 / u) / mp.sqrt(u))
    poly("I0_LARGE", "sqrt(x) exp(-x) I0(x) in 1/x - 1/16, x >= 8", large(i0), tiny ** (mpf(1) / 16), "0.125", "0.0625")
    poly("I1_LARGE", "sqrt(x) exp(-x) I1(x) in 1/x - 1/16, x >= 8", large(i1), tiny ** (mpf(1) / 16), "0.125", "0.0625")


def constants():
    pair("PI", mp.pi, "pi")
    pair("SQRT_2PI", mp.sqrt(2 * mp.pi), "sqrt(2 pi)")
    pair("HALF_PI", mp.pi / 2, "pi/2")
    pair("LOG2_10", mp.log(10, 2), "log2(10)")


def main():
    constants()
    elementary_functions()
    error_functions()
    gamma_functions()
    bessel_functions()
    new = HEAD + "".join(out) + "#endif\n"
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if new == SOURCE.read_text() else f"{SOURCE.name} differs from what tables.py computes")
    SOURCE.write_text(new)


if __name__ == "__main__":
    main()
