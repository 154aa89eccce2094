#!/usr/bin/env python3
"""Prints values of complex functions for the test `complex.rs`: `complex_values.py > complex_values.txt`.

A line has an HLO opcode, the parts of its operands, which are numbers of single precision, and the parts
of the result. Needs mpmath.
"""

import random
import struct

import mpmath

# Parts of operands are between 2^-126 and 2^127, so that digits of sums and of powers of both count.
mpmath.mp.prec = 3000
PER_OPCODE = 48
ANGLE_LIMIT = 2.0**14

FUNCTIONS = {
    "sqrt": mpmath.sqrt,
    "rsqrt": lambda z: 1 / mpmath.sqrt(z),
    "exponential": mpmath.exp,
    "exponential-minus-one": lambda z: mpmath.exp(z) - 1,
    "log": mpmath.log,
    "log-plus-one": lambda z: mpmath.log(1 + z),
    "sine": mpmath.sin,
    "cosine": mpmath.cos,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tan": mpmath.tan,
    "tanh": mpmath.tanh,
    "logistic": lambda z: 1 / (1 + mpmath.exp(-z)),
    "power": lambda z, w: mpmath.exp(w * mpmath.log(z)),
}
PERIODIC = ["exponential", "exponential-minus-one", "logistic", "sine", "cosine", "sinh", "cosh", "tan", "tanh"]


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def size():
    """A size of a part: of any order, near 1, or of the order of an angle."""
    kind = random.randrange(4)
    if kind == 0:
        return 2 ** random.uniform(-120, 120)
    if kind == 1:
        return 1 + random.choice([-0.5, 1]) * 2 ** random.uniform(-24, -1)
    return 2 ** random.uniform(-12, 6)


def part():
    return random.choice([-1, 1]) * size()


def operand():
    """Anywhere, near an axis, on the real axis, or near the unit circle."""
    kind = random.randrange(6)
    x, y = part(), part()
    if kind == 0:
        y = x * 2 ** random.uniform(-30, 0)
    elif kind == 1:
        x = y * 2 ** random.uniform(-30, 0)
    elif kind == 2:
        y = 0.0
    elif kind == 3:
        angle = random.uniform(-3.2, 3.2)
        x, y = float(mpmath.cos(angle)), float(mpmath.sin(angle))
    return single(x), single(y)


def exponent():
    kind = random.randrange(3)
    if kind == 0:
        return float(random.randint(-4, 4)), 0.0
    if kind == 1:
        return single(random.uniform(-8, 8)), 0.0
    return single(random.uniform(-4, 4)), single(random.uniform(-4, 4))


def text(x):
    return mpmath.nstr(x, 20, min_fixed=0, max_fixed=0) if x else "0"


def main():
    random.seed(29)
    for opcode, function in FUNCTIONS.items():
        count = 0
        while count < PER_OPCODE:
            operands = [operand()]
            if opcode == "power":
                operands.append(exponent())
            if opcode in PERIODIC and ANGLE_LIMIT < max(map(abs, operands[0])):
                continue
            if operands[0] == (0.0, 0.0):
                continue
            try:
                value = mpmath.mpc(function(*(mpmath.mpc(*parts) for parts in operands)))
            except ZeroDivisionError:
                continue
            # Results on an axis have the error of pi in the other part.
            clean = [0 if abs(x) < abs(value) * mpmath.mpf(2) ** -2000 else x for x in (value.real, value.imag)]
            if max(map(abs, clean)) > mpmath.mpf(2) ** 1023:
                continue
            numbers = [f"{x:.9g}" for parts in operands for x in parts] + [text(x) for x in clean]
            print(opcode, *numbers)
            count += 1


main()
