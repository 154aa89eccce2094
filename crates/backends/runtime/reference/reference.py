"""Reference points for the scalar built-ins.

    python3 reference.py                                    writes points.txt
    python3 reference.py --library LIB.so [--points N] [--only NAME] [--width 32|64]
                                                            measures a compiled builtins.c on N random points

Needs mpmath (1.3 was used; with gmpy2 it is faster). Results are the exact ones
rounded to nearest even: a value is computed to 120 bits and again to 220, and
further where the two round differently. points.txt holds one block per function
and width,

    fn NAME WIDTH ARITY
    [=] INPUT... RESULT

with the bits in hexadecimal and `nan` for any NaN. On a line that begins with
`=` the result must be met bit by bit (special values and exact functions), on
the others within 8 ulp.
"""

import argparse
import ctypes
import math
import random
import struct
from fractions import Fraction
from pathlib import Path

from mpmath import mp, mpf

INF, NAN = math.inf, math.nan
SEED = 20240229


# --- widths ----------------------------------------------------------------


class Width:
    def __init__(self, bits, precision, least, code, integer, ctype):
        self.bits, self.precision, self.least = bits, precision, least
        self.code, self.integer, self.ctype = code, integer, ctype
        self.top = 3 - least - precision  # values from 2^top on are infinite
        self.max = float((2**precision - 1) * Fraction(2) ** (self.top - precision))
        self.tiny = 2.0**least
        self.normal = 2.0 ** (least + precision - 1)
        self.eps = 2.0 ** (1 - precision)

    def round(self, x):
        """An mpf or Fraction, rounded to nearest even."""
        if isinstance(x, Fraction):
            if x == 0:
                return 0.0
            sign, num, den = x < 0, abs(x.numerator), x.denominator
            shift = 2 * self.precision + 64 + den.bit_length()
            man = (num << shift) // den
            man = man << 1 | ((num << shift) % den != 0)
            exp = -shift - 1
        else:
            sign, man, exp, _ = x._mpf_
            man = int(man)
            if man == 0:
                return 0.0
        unit = max(exp + man.bit_length() - self.precision, self.least)
        cut = unit - exp
        if cut > 0:
            n, rest = man >> cut, man & ((1 << cut) - 1)
            half = 1 << (cut - 1)
            n += rest > half or (rest == half and n & 1)
        else:
            n = man << -cut
        value = Fraction(n) * Fraction(2) ** unit
        result = INF if value >= Fraction(2) ** self.top else float(value)
        return -result if sign else result

    def nearest(self, x):
        """A float, rounded to this width."""
        return x if x != x or abs(x) == INF or x == 0 else self.round(Fraction(x))

    def to_bits(self, x):
        return struct.unpack("<" + self.integer, struct.pack("<" + self.code, x))[0]

    def from_bits(self, b):
        return struct.unpack("<" + self.code, struct.pack("<" + self.integer, b))[0]

    def ordinal(self, x):
        b = self.to_bits(x)
        top = 1 << (self.bits - 1)
        return top - b if b & top else b

    def step(self, x, direction):
        o = self.ordinal(x) + direction
        return self.from_bits(o if o >= 0 else (1 << (self.bits - 1)) - o)

    def text(self, x):
        return "nan" if x != x else f"{self.to_bits(x):0{self.bits // 4}x}"


W32 = Width(32, 24, -149, "f", "I", ctypes.c_float)
W64 = Width(64, 53, -1074, "d", "Q", ctypes.c_double)


# --- exact functions: from floats to a float or a Fraction -----------------


def exact_round(x, w):
    r = Fraction(math.floor(abs(Fraction(x)) + Fraction(1, 2)))
    return math.copysign(float(r), x)


def pick(better):
    def f(x, y, w):
        if x == y:
            return x if (math.copysign(1, x) > math.copysign(1, y)) == (better(2, 1)) else y
        return x if better(x, y) else y

    return f


def fdim(x, y, w):
    return Fraction(x) - Fraction(y) if x > y else 0.0


def nextafter(x, y, w):
    r = y if x == y else w.step(x, 1 if y > x else -1)
    return math.copysign(r, x) if r == 0 and x else r


def signed_zero(f):
    """A zero result of f takes the sign of its first argument."""

    def g(x, *rest):
        r = f(x, *rest)
        return math.copysign(0.0, x) if r == 0 else r

    return g


EXACT = {
    "fabs": lambda x, w: abs(x),
    "ceil": signed_zero(lambda x, w: float(math.ceil(x))),
    "floor": signed_zero(lambda x, w: float(math.floor(x))),
    "trunc": signed_zero(lambda x, w: float(math.trunc(x))),
    "round": exact_round,
    "logb": lambda x, w: float(math.frexp(x)[1] - 1),
    "copysign": lambda x, y, w: math.copysign(x, y),
    "fdim": fdim,
    "fmax": pick(lambda a, b: a > b),
    "fmin": pick(lambda a, b: a < b),
    "fmod": lambda x, y, w: math.fmod(x, y),
    "remainder": lambda x, y, w: math.remainder(x, y),
    "nextafter": nextafter,
    "fma": lambda x, y, z, w: Fraction(x) * Fraction(y) + Fraction(z),
    "fdivide": lambda x, y, w: Fraction(x) / Fraction(y) or math.copysign(0.0, x) * math.copysign(1, y),
}


# --- the others: from mpf to mpf, to the working precision -------------------


def lgamma(x):
    if x > 0:
        return mp.loggamma(x)
    return mp.log(mp.pi / abs(x * mp.sinpi(x))) - mp.loggamma(-x)


def bessel(order, second):
    def f(x):
        if abs(x) < 200:
            return (mp.bessely if second else mp.besselj)(order, x)
        # The Hankel expansion: its least term is below e^(-2x).
        a, mu = mpf(1), 4 * order * order
        halves = [mpf(0), mpf(0)]
        k = 0
        y = abs(x)
        while abs(a) > mpf(2) ** (-mp.prec - 20):
            halves[k & 1] += a * (-1) ** (k // 2)
            k += 1
            a *= (mu - (2 * k - 1) ** 2) / (8 * k * y)
            assert k < 300
        p, q = halves
        c, s = mp.cos(y), mp.sin(y)
        # cos and sin of y - (2 order + 1) pi/4, times sqrt(2)
        cc, ss = ((c + s), (s - c)) if order == 0 else ((s - c), (-s - c))
        value = (p * ss + q * cc if second else p * cc - q * ss) / mp.sqrt(mp.pi * y)
        return -value if x < 0 and order == 1 else value

    return f


def erfcinv(q):
    y = mp.erfinv(1 - q) if q > mpf("0.01") else mp.sqrt(-mp.log(q * mp.sqrt(-mp.log(q))) / 1)
    for _ in range(100):
        e = mp.erfc(y)
        step = (mp.log(e) - mp.log(q)) * e * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
        y += step
        if abs(step) <= abs(y) * mpf(2) ** (5 - mp.prec):
            break
    return y


def erfcx(x):
    if x < 2**40:
        return mp.exp(x * x) * mp.erfc(x)
    term, total = mpf(1), mpf(1)
    for k in range(1, 40):  # the asymptotic series, to 2^-3000
        term *= -(2 * k - 1) / (2 * x * x)
        total += term
    return total / (x * mp.sqrt(mp.pi))


def norm(*v):
    return mp.sqrt(sum(x * x for x in v))


def rnorm(*v):
    return 1 / norm(*v)


def root3(x):
    return mp.sign(x) * mp.cbrt(abs(x))


SMOOTH = {
    "acos": mp.acos, "acosh": mp.acosh, "asin": mp.asin, "asinh": mp.asinh,
    "atan": mp.atan, "atanh": mp.atanh, "cbrt": root3, "cos": mp.cos, "cosh": mp.cosh,
    "cospi": mp.cospi, "erf": mp.erf, "erfc": mp.erfc, "exp": mp.exp,
    "cyl_bessel_i0": lambda x: mp.besseli(0, x), "cyl_bessel_i1": lambda x: mp.besseli(1, x),
    "erfcinv": lambda x: erfcinv(x) if x <= 1 else -erfcinv(2 - x),
    "erfcx": erfcx, "erfinv": mp.erfinv,
    "exp10": lambda x: mpf(10) ** x, "exp2": lambda x: mpf(2) ** x, "expm1": mp.expm1,
    "j0": bessel(0, False), "j1": bessel(1, False), "y0": bessel(0, True), "y1": bessel(1, True),
    "lgamma": lgamma, "log": mp.log, "log10": mp.log10, "log1p": mp.log1p,
    "log2": lambda x: mp.log(x) / mp.log(2), "normcdf": lambda x: mp.erfc(-x / mp.sqrt(2)) / 2,
    "normcdfinv": lambda x: -mp.sqrt(2) * erfcinv(2 * x) if x <= 0.5 else mp.sqrt(2) * erfcinv(2 - 2 * x),
    "rcbrt": lambda x: 1 / root3(x), "rsqrt": lambda x: 1 / mp.sqrt(x),
    "sin": mp.sin, "sinh": mp.sinh, "sinpi": mp.sinpi, "sqrt": mp.sqrt, "tan": mp.tan,
    "tanh": mp.tanh, "tgamma": mp.gamma,
    "atan2": mp.atan2, "hypot": norm, "pow": mp.power, "rhypot": rnorm,
    "norm3d": norm, "rnorm3d": rnorm, "norm4d": norm, "rnorm4d": rnorm,
}  # fmt: skip


def evaluate(name, args, w):
    """The result rounded to width w, for finite arguments inside the domain."""
    if name in EXACT:
        r = EXACT[name](*args, w)
        return w.round(r) if isinstance(r, Fraction) else w.nearest(r)
    if name == "sinpi" and math.floor(args[0]) == args[0]:
        return math.copysign(0.0, args[0])
    if name == "atan2" and args[0] == 0:
        return w.round(mp.pi) * math.copysign(1, args[0]) if args[1] < 0 else args[0]
    f = SMOOTH[name]
    previous = None
    for precision in (120, 220, 420, 820, 1620, 3240):
        with mp.workprec(precision):
            try:
                value = f(*[mpf(x) for x in args])
            except (ZeroDivisionError, mp.NoConvergence):
                continue
            current = w.round(+value.real)
        if current == previous:
            return current if current else math.copysign(current, value.real)
        previous = current
    raise ArithmeticError(f"{name}{args}: no agreement")


# --- special values, the same in both widths --------------------------------

IDENTITY = [(0.0, 0.0), (-0.0, -0.0)]
ODD_INF = [(INF, INF), (-INF, -INF)]
SPECIAL = {
    "acos": [(1, 0.0), (1.5, NAN), (-INF, NAN)],
    "acosh": [(1, 0.0), (0.5, NAN), (-3, NAN), (INF, INF), (-INF, NAN)],
    "asin": IDENTITY + [(1.5, NAN), (INF, NAN)],
    "asinh": IDENTITY + ODD_INF,
    "atan": IDENTITY,
    "atanh": IDENTITY + [(1, INF), (-1, -INF), (2, NAN), (INF, NAN)],
    "cbrt": IDENTITY + ODD_INF + [(27, 3)],
    "ceil": IDENTITY + ODD_INF,
    "cos": [(0.0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN)],
    "cosh": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, INF)],
    "cospi": [(0.0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN), (0.5, 0.0), (-0.5, 0.0), (1.5, 0.0), (1, -1), (-3, -1), (1e7, 1)],
    "cyl_bessel_i0": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, INF)],
    "cyl_bessel_i1": IDENTITY + ODD_INF,
    "erf": IDENTITY + [(INF, 1), (-INF, -1)],
    "erfc": [(0.0, 1), (-0.0, 1), (INF, 0.0), (-INF, 2)],
    "erfcinv": [(0.0, INF), (-0.0, INF), (1, 0.0), (2, -INF), (2.5, NAN), (-0.5, NAN), (INF, NAN)],
    "erfcx": [(0.0, 1), (-0.0, 1), (INF, 0.0), (-INF, INF), (-1e10, INF)],
    "erfinv": IDENTITY + [(1, INF), (-1, -INF), (1.5, NAN), (-INF, NAN)],
    "exp": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0.0), (1e5, INF), (-1e5, 0.0)],
    "exp10": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0.0), (1e5, INF), (-1e5, 0.0)],
    "exp2": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0.0), (1e5, INF), (-1e5, 0.0), (10, 1024)],
    "expm1": IDENTITY + [(INF, INF), (-INF, -1)],
    "fabs": [(-0.0, 0.0), (-INF, INF)],
    "floor": IDENTITY + ODD_INF,
    "j0": [(0.0, 1), (-0.0, 1), (INF, 0.0), (-INF, 0.0)],
    "j1": IDENTITY + [(INF, 0.0), (-INF, -0.0)],
    "lgamma": [(0.0, INF), (-0.0, INF), (1, 0.0), (2, 0.0), (-1, INF), (-30, INF), (INF, INF), (-INF, INF)],
    "log": [(0.0, -INF), (-0.0, -INF), (1, 0.0), (-1, NAN), (INF, INF), (-INF, NAN)],
    "log10": [(0.0, -INF), (-0.0, -INF), (1, 0.0), (-1, NAN), (INF, INF), (1000, 3)],
    "log1p": IDENTITY + [(-1, -INF), (-2, NAN), (INF, INF), (-INF, NAN)],
    "log2": [(0.0, -INF), (-0.0, -INF), (1, 0.0), (-1, NAN), (INF, INF), (1024, 10)],
    "logb": [(0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, INF)],
    "normcdf": [(0.0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0.0), (-1e9, 0.0)],
    "normcdfinv": [(0.0, -INF), (-0.0, -INF), (0.5, 0.0), (1, INF), (1.5, NAN), (-0.5, NAN), (-INF, NAN)],
    "rcbrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0), (8, 0.5)],
    "round": IDENTITY + ODD_INF + [(0.5, 1), (-0.5, -1), (2.5, 3), (-0.25, -0.0)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1, NAN), (-INF, NAN), (4, 0.5)],
    "sin": IDENTITY + [(INF, NAN), (-INF, NAN)],
    "sinh": IDENTITY + ODD_INF,
    "sinpi": IDENTITY + [(INF, NAN), (-INF, NAN), (1, 0.0), (-1, -0.0), (2, 0.0), (-8, -0.0), (0.5, 1), (-1.5, 1), (3e7, 0.0)],
    "sqrt": IDENTITY + [(INF, INF), (-1, NAN), (-INF, NAN)],
    "tan": IDENTITY + [(INF, NAN), (-INF, NAN)],
    "tanh": IDENTITY + [(INF, 1), (-INF, -1)],
    "tgamma": [(0.0, INF), (-0.0, -INF), (1, 1), (2, 1), (6, 120), (-1, NAN), (-50, NAN), (INF, INF), (-INF, NAN), (1e9, INF), (-190.5, -0.0), (-191.5, 0.0)],
    "trunc": IDENTITY + ODD_INF + [(-0.75, -0.0)],
    "y0": [(0.0, -INF), (-0.0, -INF), (INF, 0.0), (-1, NAN), (-INF, NAN)],
    "y1": [(0.0, -INF), (-0.0, -INF), (INF, 0.0), (-1, NAN), (-INF, NAN)],
    "atan2": [(0.0, 1, 0.0), (-0.0, 1, -0.0), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (1, INF, 0.0), (-1, INF, -0.0), (NAN, 1, NAN), (1, NAN, NAN)],
    "copysign": [(0.0, -1, -0.0), (INF, -0.0, -INF), (-3, INF, 3)],
    "fdim": [(INF, INF, 0.0), (-INF, INF, 0.0), (INF, 1, INF), (1, -INF, INF), (NAN, 1, NAN), (1, NAN, NAN), (2, 2, 0.0), (0.0, -0.0, 0.0)],
    "fdivide": [(1, 0.0, INF), (-1, 0.0, -INF), (1, -0.0, -INF), (0.0, 0.0, NAN), (INF, INF, NAN), (1, INF, 0.0), (-1, INF, -0.0), (INF, 2, INF), (NAN, 1, NAN)],
    "fmax": [(0.0, -0.0, 0.0), (-0.0, 0.0, 0.0), (NAN, 1, 1), (1, NAN, 1), (NAN, NAN, NAN), (-INF, 1, 1), (INF, 1, INF), (NAN, -INF, -INF)],
    "fmin": [(0.0, -0.0, -0.0), (-0.0, 0.0, -0.0), (NAN, 1, 1), (1, NAN, 1), (NAN, NAN, NAN), (-INF, 1, -INF), (INF, 1, 1), (NAN, INF, INF)],
    "fmod": [(0.0, 1, 0.0), (-0.0, 1, -0.0), (1, 0.0, NAN), (INF, 1, NAN), (1, INF, 1), (-6, 3, -0.0), (NAN, 1, NAN), (1, NAN, NAN)],
    "hypot": [(0.0, 0.0, 0.0), (-0.0, -0.0, 0.0), (INF, NAN, INF), (NAN, -INF, INF), (NAN, 1, NAN), (3, -4, 5)],
    "nextafter": [(1, NAN, NAN), (NAN, 1, NAN), (0.0, -0.0, -0.0), (INF, INF, INF), (1, 1, 1)],
    "pow": [(0.0, 0.0, 1), (NAN, 0.0, 1), (1, NAN, 1), (NAN, 1, NAN), (2, NAN, NAN), (-1, INF, 1), (-1, -INF, 1), (0.5, INF, 0.0), (2, INF, INF), (0.5, -INF, INF), (2, -INF, 0.0), (-0.0, -3, -INF), (-0.0, -2, INF), (0.0, -0.5, INF), (-0.0, 3, -0.0), (-0.0, 2, 0.0), (-INF, 3, -INF), (-INF, 2, INF), (-INF, -3, -0.0), (INF, -1, 0.0), (INF, 2, INF), (-2, 0.5, NAN), (-2, 3, -8)],
    "remainder": [(0.0, 1, 0.0), (-0.0, 1, -0.0), (1, 0.0, NAN), (INF, 1, NAN), (1, INF, 1), (-6, 3, -0.0), (5, 2, 1), (3, 2, -1), (NAN, 1, NAN), (1, NAN, NAN)],
    "rhypot": [(0.0, 0.0, INF), (-0.0, 0.0, INF), (INF, NAN, 0.0), (NAN, -INF, 0.0), (NAN, 1, NAN), (0.0, NAN, NAN), (-INF, 3, 0.0)],
    "fma": [(INF, 0.0, 1, NAN), (0.0, INF, NAN, NAN), (INF, 1, -INF, NAN), (INF, 1, 1, INF), (1, 1, -INF, -INF), (NAN, 1, 1, NAN), (0.0, -1, 0.0, 0.0), (0.0, -1, -0.0, -0.0)],
    "norm3d": [(0.0, -0.0, 0.0, 0.0), (INF, NAN, 1, INF), (NAN, 1, -INF, INF), (NAN, 1, 2, NAN), (0.0, 0.0, NAN, NAN), (2, 3, 6, 7)],
    "rnorm3d": [(0.0, 0.0, 0.0, INF), (INF, NAN, 1, 0.0), (NAN, 1, -INF, 0.0), (NAN, 1, 2, NAN), (0.0, NAN, 0.0, NAN)],
    "norm4d": [(0.0, -0.0, 0.0, 0.0, 0.0), (INF, NAN, 1, 1, INF), (NAN, 1, 1, -INF, INF), (NAN, 1, 2, 3, NAN), (1, -1, 1, -1, 2)],
    "rnorm4d": [(0.0, 0.0, 0.0, 0.0, INF), (NAN, NAN, 1, INF, 0.0), (NAN, 1, 2, 3, NAN), (1, 1, 1, 1, 0.5)],
}  # fmt: skip


# --- where to look -----------------------------------------------------------


class Sampler:
    def __init__(self, seed, w):
        self.random, self.w = random.Random(seed), w

    def uniform(self, a, b):
        return self.w.nearest(self.random.uniform(a, b))

    def magnitude(self, a, b, sign=True):
        """Logarithmically between the positive a and b, of either sign if asked."""
        u = self.random.uniform(math.log2(a), math.log2(b))
        x = self.w.nearest(min(max(2.0 ** min(u, 1023.999), a), b))
        return -x if sign and self.random.random() < 0.5 else x

    def near(self, x, a=1e-3):
        """Close to x, down to neighbours in the last place."""
        if self.random.random() < 0.3:
            return self.w.step(self.w.nearest(x), self.random.randint(-2, 2))
        return self.w.nearest(x + self.magnitude(2.0**-52, a) * (abs(x) or 1))


def any_of(*choices):
    return lambda s: s.random.choice(choices)(s)


def u(a, b):
    return lambda s: s.uniform(a, b)


def m(a=None, b=None, sign=True):
    return lambda s: s.magnitude(a or s.w.tiny, b or s.w.max, sign)


def near(*points, size=1e-3):
    return lambda s: s.near(s.random.choice(points), size)


def by_width(a, b):
    """a for 32 bits, b for 64."""
    return lambda s: (a if s.w.bits == 32 else b)(s)


_zeros = {}


def zero(name, most):
    """Near one of the first `most` zeros of a Bessel function, or of lgamma."""

    def f(s):
        k = s.random.randint(1, most)
        if (name, k) not in _zeros:
            with mp.workprec(80):
                if name == "lgamma":
                    n = 2 + k // 2
                    lo, hi = ((-n - mpf(1) / 2, -n - mpf(1) / 10**20), (-n + mpf(1) / 10**20, -n + mpf(1) / 2))[k % 2]
                    for _ in range(90):
                        x = (lo + hi) / 2
                        rising = k % 2 == 0  # towards the pole on the right
                        lo, hi = (x, hi) if (lgamma(x) < 0) == rising else (lo, x)
                else:
                    x = (mp.besseljzero if name[0] == "j" else mp.besselyzero)(int(name[1]), k)
                _zeros[name, k] = x
        x = _zeros[name, k]
        if s.random.random() < 0.4:
            return s.w.step(s.w.round(x), s.random.randint(-1, 1))
        return s.near(float(x), 1e-2)

    return f


WIDE = m()
POSITIVE = m(sign=False)
UNIT = any_of(u(-1, 1), m(None, 1), near(1, -1), near(0.5, -0.5))
INTEGERS = lambda s: float(s.random.randint(-400, 400)) / 2


def bessel_inputs(name):
    sign = name[0] == "j"
    return any_of(m(1e-10, 50, sign), u(0, 60), zero(name, 30), m(40, 1e6, sign), m(None, None, sign), u(1, 12))


SAMPLES = {
    "acos": [UNIT], "asin": [UNIT], "atanh": [UNIT],
    "acosh": [any_of(u(1, 30), near(1), m(1, None, False))],
    "asinh": [any_of(u(-30, 30), WIDE)], "atan": [any_of(u(-8, 8), WIDE)],
    "cbrt": [WIDE], "rcbrt": [WIDE], "sqrt": [POSITIVE], "rsqrt": [POSITIVE],
    "cos": [any_of(u(-30, 30), WIDE, m(1e-3, 1e8))], "sin": [any_of(u(-30, 30), WIDE, m(1e-3, 1e8))],
    "tan": [any_of(u(-30, 30), WIDE, m(1e-3, 1e8))],
    "cosh": [by_width(any_of(u(-89.5, 89.5), m(None, 89)), any_of(u(-711, 711), m(None, 711), u(-3, 3)))],
    "sinh": [by_width(any_of(u(-89.5, 89.5), m(None, 89)), any_of(u(-711, 711), m(None, 711), u(-3, 3)))],
    "tanh": [any_of(u(-25, 25), m(None, 25), u(-1, 1))],
    "cospi": [any_of(u(-20, 20), WIDE, near(0.5, 1.5, -2.5, 10.5), m(1, 1e9), INTEGERS)],
    "sinpi": [any_of(u(-20, 20), WIDE, near(1, 2, -3, 10), m(1, 1e9), INTEGERS)],
    "cyl_bessel_i0": [by_width(any_of(u(-12, 12), u(0, 92.5), m(None, 50)), any_of(u(-12, 12), u(0, 715), m(None, 50), near(8)))],
    "cyl_bessel_i1": [by_width(any_of(u(-12, 12), u(0, 92.5), m(None, 50)), any_of(u(-12, 12), u(0, 715), m(None, 50), near(8)))],
    "erf": [any_of(u(-6.5, 6.5), m(None, 6))],
    "erfc": [by_width(any_of(u(-5, 10.2), m(None, 10)), any_of(u(-6, 27.3), m(None, 27), u(0, 4)))],
    "erfcx": [by_width(any_of(u(-9.5, 30), m(1e-3, None, False), m(None, 9)), any_of(u(-26.8, 30), m(1e-3, None, False), m(None, 26), u(-2, 2)))],
    "erfinv": [UNIT],
    "erfcinv": [any_of(u(0, 2), m(None, 1, False), near(1, 0.5, 1.5), lambda s: s.w.nearest(2 - s.magnitude(s.w.eps * 2, 1, False)))],
    "normcdfinv": [any_of(u(0, 1), m(None, 0.5, False), near(0.5, 0.25, 0.75), lambda s: s.w.nearest(1 - s.magnitude(s.w.eps, 0.5, False)))],
    "normcdf": [by_width(any_of(u(-14.5, 6), m(None, 14)), any_of(u(-38.6, 9), m(None, 38), u(-3, 3)))],
    "exp": [by_width(any_of(u(-104, 89), m(None, 88)), any_of(u(-746, 710), m(None, 709), u(-2, 2)))],
    "expm1": [by_width(any_of(u(-20, 89), m(None, 88)), any_of(u(-40, 710), m(None, 709), u(-2, 2)))],
    "exp2": [by_width(any_of(u(-150, 129), m(None, 128)), any_of(u(-1076, 1025), m(None, 1020), u(-2, 2)))],
    "exp10": [by_width(any_of(u(-45.5, 38.7), m(None, 38)), any_of(u(-324, 308.5), m(None, 308), u(-2, 2), lambda s: float(s.random.randint(0, 22))))],
    "j0": [bessel_inputs("j0")], "j1": [bessel_inputs("j1")],
    "y0": [bessel_inputs("y0")], "y1": [bessel_inputs("y1")],
    "lgamma": [any_of(u(0, 20), near(1, 2), u(-30, 0), zero("lgamma", 30), m(None, 1e305, False), m(None, 1e10), near(3, 8, 0.5, 1.5))],
    "tgamma": [by_width(any_of(u(-10, 36), u(-43, 0), m(None, 30), near(-1, -2, 1, 2)), any_of(u(-20, 30), u(20, 172), u(-184, 0), m(None, 30), near(-1, -2, -30, 1, 2, 20)))],
    "log": [any_of(POSITIVE, near(1), u(0, 3))], "log2": [any_of(POSITIVE, near(1), u(0, 3))],
    "log10": [any_of(POSITIVE, near(1), u(0, 3))],
    "log1p": [any_of(POSITIVE, u(-0.9999, 1), m(None, 0.9), near(-1))],
    "fabs": [WIDE], "logb": [WIDE],
    **{f: [any_of(u(-10, 10), INTEGERS, m(1e-3, 1e17), WIDE)] for f in ("ceil", "floor", "round", "trunc")},
    "atan2": [any_of(u(-9, 9), WIDE)] * 2,
    **{f: [any_of(u(-9, 9), WIDE)] * 2 for f in ("copysign", "fdim", "fmax", "fmin", "nextafter")},
    "fdivide": [any_of(u(-9, 9), m(1e-30, 1e30), WIDE)] * 2,
    "fmod": [any_of(u(-900, 900), INTEGERS, m(1e-5, 1e30)), any_of(u(-9, 9), m(1e-5, 1e10))],
    "remainder": [any_of(u(-900, 900), INTEGERS, m(1e-5, 1e30)), any_of(u(-9, 9), m(1e-5, 1e10))],
    "hypot": [any_of(u(-9, 9), m(1e-6, 1e6))] * 2, "rhypot": [any_of(u(-9, 9), m(1e-6, 1e6), WIDE)] * 2,
    "pow": [any_of(u(0, 30), m(1e-30, 1e30, False), near(1)), any_of(u(-9, 9), m(1e-3, 300))],
    "fma": [any_of(u(-9, 9), m(1e-8, 1e8), WIDE)] * 3,
    "norm3d": [any_of(u(-9, 9), m(1e-6, 1e6))] * 3, "rnorm3d": [any_of(u(-9, 9), m(1e-6, 1e6))] * 3,
    "norm4d": [any_of(u(-9, 9), m(1e-6, 1e6))] * 4, "rnorm4d": [any_of(u(-9, 9), m(1e-6, 1e6))] * 4,
}  # fmt: skip

# Arguments of wide range for the functions that scale: all of like size.
SCALED = {"hypot", "rhypot", "norm3d", "rnorm3d", "norm4d", "rnorm4d"}

# Inputs that are hard or lie on a seam, (width, arguments).
HARD = {
    "sin": [(64, (6381956970095103.0 * 2.0**797,)), (32, (16367173.0 * 2.0**72,))],
    "cos": [(64, (6381956970095103.0 * 2.0**797,)), (32, (16367173.0 * 2.0**72,))],
    "j0": [(64, (6381956970095103.0 * 2.0**797,)), (64, (1.7e308,)), (64, (40.84,)), (64, (40.85,)), (32, (3e38,))],
    "j1": [(64, (6381956970095103.0 * 2.0**797,)), (64, (1.7e308,)), (64, (40.84,)), (64, (40.85,)), (32, (3e38,))],
    "y0": [(64, (6381956970095103.0 * 2.0**797,)), (64, (1.7e308,)), (64, (5e-324,)), (64, (3.15,)), (32, (3e38,))],
    "y1": [(64, (6381956970095103.0 * 2.0**797,)), (64, (1.7e308,)), (64, (1e-308,)), (64, (3.15,)), (32, (3e38,))],
    "lgamma": [(64, (5e-324,)), (64, (-5e-324,)), (64, (1.0 + 2.0**-52,)), (64, (2.0 - 2.0**-52,)), (64, (-17.0 - 2.0**-48,)), (64, (-24.5,)), (64, (2.5e305,))],
    "tgamma": [(64, (171.62,)), (64, (1e-308,)), (64, (-177.5,)), (64, (20.000000001,)), (64, (-180.0 - 2.0**-45,)), (64, (-20.0 - 2.0**-48,))],
    "erfcx": [(64, (-26.6,)), (64, (1e308,)), (64, (-1e-300,))],
    "normcdf": [(64, (-38.4,)), (64, (-37.5,)), (64, (-0.5,)), (32, (-14.1,))],
    "erfcinv": [(64, (5e-324,)), (64, (1.5,)), (64, (0.5,)), (32, (2.0**-149,))],
    "normcdfinv": [(64, (5e-324,)), (64, (0.25,)), (64, (0.75,)), (32, (2.0**-149,))],
    "exp10": [(64, (308.25,)), (64, (-323.0,)), (64, (22.0,)), (64, (1e-300,))],
    "cyl_bessel_i0": [(64, (713.9,)), (64, (1e-300,))],
    "cyl_bessel_i1": [(64, (713.9,)), (64, (1e-300,))],
    "rcbrt": [(64, (5e-324,)), (64, (1.79e308,)), (32, (2.0**-149,))],
    "rhypot": [(64, (1.7e308, 1.7e308)), (64, (3e-308, 5e-324))],
    "nextafter": [(64, (0.0, 1.0)), (64, (0.0, -1.0)), (32, (0.0, -1.0)), (64, (5e-324, 0.0)), (64, (1.0, 0.0)), (32, (1.0, 0.0)), (32, (1.0, 2.0))],
    "fma": [(64, (1.0 + 2.0**-30, 1.0 - 2.0**-30, -1.0)), (32, (1.0 + 2.0**-12, 1.0 - 2.0**-12, -1.0))],
    "atan2": [(64, (0.0, -1.0)), (64, (-0.0, -1.0)), (64, (1.0, 0.0)), (64, (-1.0, -0.0)), (32, (1.0, 0.0))],
}  # fmt: skip


def doubles(*values):
    return [(64, v if isinstance(v, tuple) else (v,)) for v in values]


# The ends of ranges, the seams between the formulas of elementary.c, and results that are
# close to 0, subnormal, or close to halfway between two numbers.
LEAST, NORMAL, MOST, ABOVE_1, BELOW_1 = 5e-324, 2.0**-1022, W64.max, 1 + 2.0**-52, 1 - 2.0**-53
HALF_LOG_2, ROOT_2, PI = 0.34657359027997264, math.sqrt(2), math.pi
for name, hard in {
    "exp": [LEAST, 2.0**-53, 2.0**-30, HALF_LOG_2, -HALF_LOG_2, 0.3465735902799727, 709.78, 709.782712893384, -708.4, -745.13, -744.44, -745.1332191019411],
    "exp2": [LEAST, 0.5, -0.5, 1023.9999999999999, -1021.5, -1022.5, -1073.5, -1074.5, 2.0**-53],
    "expm1": [LEAST, -LEAST, NORMAL, 2.0**-54, -(2.0**-54), 2.0**-30, HALF_LOG_2, -0.2876820724517809, -36.7, -37.5, 709.78, 709.782712893384],
    "log": [LEAST, NORMAL, 1e-310, ABOVE_1, BELOW_1, ROOT_2, 0.7071067811865475, 0.7071067811865476, MOST, 2.0, 0.5],
    "log2": [LEAST, NORMAL, ABOVE_1, BELOW_1, ROOT_2, 0.7071067811865475, MOST, 2.0**-1074, 2.0**1023],
    "log10": [LEAST, NORMAL, ABOVE_1, BELOW_1, ROOT_2, 0.7071067811865475, MOST, 1e22, 1e-5],
    "log1p": [LEAST, -LEAST, 2.0**-54, -(2.0**-54), 2.0**-30, 1e-16, -BELOW_1, 0.41421356237309503, -0.2928932188134525, MOST, 2.0**60],
    "pow": [(ABOVE_1, 3e18), (BELOW_1, 6e18), (BELOW_1, -6e18), (LEAST, 0.5), (LEAST, -0.95), (MOST, 0.999), (2.0, -1074.0), (2.0, -1073.5), (2.0, 1023.9999999999999), (10.0, 308.0), (10.0, -323.0), (-3.0, 5.0), (-2.5, -3.0), (1.5, LEAST), (1e-300, -1.02), (0.1, 307.5)],
    "sin": [LEAST, NORMAL, 2.0**-28, PI / 4, PI / 2, PI, 2 * PI, 22.0, 355.0, 33554431.999999996, 33554432.0, MOST],
    "cos": [LEAST, 2.0**-28, PI / 4, PI / 2, 1.5 * PI, 11.0, 33554431.999999996, 33554432.0, MOST],
    "tan": [LEAST, NORMAL, PI / 4, PI / 2, PI, 11.0, 22.0, 33554431.999999996, 33554432.0, MOST, 6381956970095103.0 * 2.0**797],
    "asin": [LEAST, 2.0**-28, 0.5, 0.5000000000000001, BELOW_1, -BELOW_1, 0.999999],
    "acos": [LEAST, 2.0**-60, 0.5, 0.5000000000000001, -0.5000000000000001, BELOW_1, -BELOW_1, 0.999999],
    "atan": [LEAST, 2.0**-28, 0.41421356237309503, 0.4142135623730951, 2.414213562373095, 2.4142135623730954, 2.0**60, 1e16, MOST],
    "atan2": [(LEAST, 1.0), (LEAST, LEAST), (MOST, MOST), (LEAST, MOST), (MOST, LEAST), (1.0, -1e19), (1e-310, 3e-309), (-1e300, -1.0), (LEAST, -1.0), (1.0, 2.0**60), (3e307, 1.7e308)],
    "sinh": [LEAST, 2.0**-28, 1e-3, HALF_LOG_2, 22.0, 709.8, 710.4758, -710.475, 710.4758600739439],
    "cosh": [LEAST, 1e-3, HALF_LOG_2, 22.0, 709.8, 710.4758, -710.475, 710.4758600739439],
    "tanh": [LEAST, 2.0**-28, 2.0**-27, 0.17, HALF_LOG_2 / 2, 0.25, 19.06, 22.0],
    "asinh": [LEAST, 2.0**-28, 0.4, 1.0, 2.0**30, 2.0**31, -MOST, MOST],
    "acosh": [ABOVE_1, 1.0000001, 1.5, 2.0, 2.0**30, 2.0**31, MOST],
    "atanh": [LEAST, 2.0**-28, 0.17, 0.17000000000000004, 0.5, BELOW_1, -BELOW_1],
    "erf": [LEAST, NORMAL, 0.875, 0.8749999999999999, 1.0, 5.9, 6.0],
    "erfc": [LEAST, 0.5, 0.49999999999999994, -0.875, -0.8750000000000001, 4.0, 5.99, 26.5, 26.543, 27.2, 27.226],
    "cbrt": [LEAST, -LEAST, NORMAL, MOST, 8.0, 0.125, ABOVE_1, BELOW_1, 1e-310],
    "sqrt": [LEAST, NORMAL, MOST, ABOVE_1, BELOW_1], "rsqrt": [LEAST, NORMAL, MOST, ABOVE_1, BELOW_1],
    "hypot": [(1.7e308, 1e308), (1e308, 1e308), (LEAST, LEAST), (3e-308, LEAST), (MOST, LEAST), (1.0, 2.0**-27)],
    "fmod": [(MOST, LEAST), (MOST, 3.0), (1e308, 1e-308), (-LEAST, MOST), (NORMAL, LEAST), (2.0**60, 3.0), (MOST, 0.75 * MOST)],
    "remainder": [(MOST, LEAST), (MOST, 3.0), (1e308, 1e-308), (-LEAST, MOST), (3 * LEAST, 2 * LEAST), (MOST, 0.75 * MOST), (0.75 * MOST, 0.5 * MOST), (5.0, 2.0), (7.0, 2.0), (-7.0, 2.0)],
    "round": [0.49999999999999994, -0.49999999999999994, 4503599627370495.5, 4503599627370497.0, -2.5, LEAST],
    **{f: [0.49999999999999994, -0.5, 4503599627370495.5, -4503599627370495.5, 9007199254740991.0, -LEAST, LEAST] for f in ("ceil", "floor", "trunc")},
    "logb": [LEAST, NORMAL, 1e-310, MOST], "nextafter": [(MOST, INF), (-NORMAL, 0.0), (-LEAST, 1.0), (NORMAL, 0.0)],
    "fma": [(ABOVE_1, ABOVE_1, 2.0**-107), (ABOVE_1, ABOVE_1, -1.0 - 2.0**-51), (2.0**-600, 2.0**-474, LEAST), (1.5 * 2.0**-540, 2.0**-534, -LEAST), (MOST, 2.0, -MOST), (MOST, MOST, -MOST), (3.0, LEAST, -LEAST)],
}.items():  # fmt: skip
    HARD[name] = HARD.get(name, []) + doubles(*hard)

NAMES = sorted(SAMPLES)
ARITY = {name: len(SAMPLES[name]) for name in NAMES}
assert set(SPECIAL) == set(SAMPLES) == set(EXACT) | set(SMOOTH)


def in_domain(name, args):
    if name in ("erfcinv", "normcdfinv"):
        return 0 < args[0] < (2 if name == "erfcinv" else 1)
    if name in ("acos", "asin", "erfinv", "atanh"):
        return abs(args[0]) < 1 or name in ("acos", "asin") and abs(args[0]) == 1
    if name in ("lgamma", "tgamma"):
        return args[0] > 0 or math.floor(args[0]) != args[0]
    if name in ("log", "log2", "log10", "y0", "y1"):
        return args[0] > 0
    if name == "log1p":
        return args[0] > -1
    if name == "acosh":
        return args[0] >= 1
    if name in ("fmod", "remainder", "fdivide"):
        return args[1] != 0
    if name in SCALED:
        return any(args)
    return True


def draw(name, s):
    while True:
        args = [f(s) for f in SAMPLES[name]]
        if name in SCALED and s.random.random() < 0.3:
            scale = s.magnitude(s.w.normal, s.w.max / 4, False)
            args = [s.w.nearest(a / 10 * scale) if abs(a) < 10 else s.w.nearest(scale) for a in args]
        if all(math.isfinite(a) for a in args) and in_domain(name, args):
            return args


def points(name, w, count, seed):
    """Argument lists: the hard ones, then `count` drawn at random."""
    s = Sampler(f"{seed} {name} {w.bits}", w)
    chosen = [list(args) for bits, args in HARD.get(name, []) if bits == w.bits]
    chosen = [[w.nearest(x) for x in args] for args in chosen]
    return chosen + [draw(name, s) for _ in range(count)]


def write():
    lines = ["# Written by reference.py, which explains the format."]
    for name in NAMES:
        for w in (W32, W64):
            lines.append(f"fn {name} {w.bits} {ARITY[name]}")
            if ARITY[name] == 1:
                lines.append("= nan nan")
            for row in SPECIAL[name]:
                lines.append("= " + " ".join(w.text(w.nearest(float(x))) for x in row))
            mark = "= " if name in EXACT or name == "sqrt" else ""
            count = 40 if name in EXACT else 90 if w.bits == 32 else 110
            for args in points(name, w, count // (1 if ARITY[name] < 3 else 2), SEED):
                result = evaluate(name, args, w)
                lines.append(mark + " ".join(w.text(x) for x in (*args, result)))
    (Path(__file__).resolve().parent / "points.txt").write_text("\n".join(lines) + "\n")


def measure(options):
    library = ctypes.CDLL(options.library)
    for name in NAMES:
        if options.only and name not in options.only.split(","):
            continue
        for w in (W32, W64):
            if options.width not in (0, w.bits):
                continue
            f = getattr(library, f"tc_{name}_f{w.bits}")
            f.restype, f.argtypes = w.ctype, [w.ctype] * ARITY[name]
            worst, where = 0, None
            for row in SPECIAL[name]:
                *args, want = [w.nearest(float(x)) for x in row]
                got = f(*args)
                if w.text(got) != w.text(want):
                    print(f"{name} {w.bits}: {args} gives {got}, expected {want}")
            for args in points(name, w, options.points, options.seed):
                want, got = evaluate(name, args, w), f(*args)
                error = INF if got != got else abs(w.ordinal(got) - w.ordinal(want))
                if want == 0 and w.text(got) != w.text(want) and got == 0:
                    print(f"{name} {w.bits}: {args} gives {got}, expected {want}")
                if error > worst:
                    worst, where = error, (args, got, want)
            print(f"{name:14} {w.bits} {worst:4} {where if worst > 1 else ''}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library")
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    parser.add_argument("--width", type=int, default=0)
    options = parser.parse_args()
    measure(options) if options.library else write()
