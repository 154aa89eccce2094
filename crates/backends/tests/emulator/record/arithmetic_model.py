#!/usr/bin/env python3
"""Checks recorded arithmetic against exact rational arithmetic: arithmetic_model.py CASES RESULTS. Says per form how many results differ and shows some."""
import base64, json, math, os, re, sys
from fractions import Fraction as F
import numpy as np

FORMAT = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
WORD = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def classify(bits, t):
    """('nan',), ('inf', sign) or ('num', sign, Fraction of the magnitude)"""
    e, m = FORMAT[t]
    sign, exponent, fraction = bits >> (e + m) & 1, bits >> m & ((1 << e) - 1), bits & ((1 << m) - 1)
    if exponent == (1 << e) - 1:
        return ("nan",) if fraction else ("inf", sign)
    bias = (1 << (e - 1)) - 1
    if exponent == 0:
        return ("num", sign, F(fraction) * F(2) ** (1 - bias - m))
    return ("num", sign, F(fraction | 1 << m) * F(2) ** (exponent - bias - m))


def flush(c, t):
    e, m = FORMAT[t]
    return ("num", c[1], F(0)) if c[0] == "num" and c[2] < F(2) ** (2 - (1 << (e - 1))) else c


def log2floor(x):
    n = x.numerator.bit_length() - x.denominator.bit_length()
    return n if F(2) ** n <= x else n - 1


def rounded(sign, x, t, mode, ftz=False, exact=True):
    """Magnitude x (a Fraction; inexact below if not exact) to bits."""
    e, m = FORMAT[t]
    bias = (1 << (e - 1)) - 1
    if x == 0:
        return sign << (e + m)
    exponent = max(log2floor(x), 1 - bias)
    unit = F(2) ** (exponent - m)
    q = x / unit
    n = q.numerator // q.denominator
    rest = q - n
    up = {"rn": rest > F(1, 2) or (rest == F(1, 2) and n & 1), "rz": False, "rm": rest > 0 and sign, "rp": rest > 0 and not sign}[mode]
    if ftz and x < F(2) ** (1 - bias):  # flushed before rounding?
        if ftz == "before" or n + bool(up) < 1 << m:
            return sign << (e + m)
    n += bool(up)
    if n >= 1 << (m + 1):
        n >>= 1
        exponent += 1
    if exponent > bias:
        big = mode == "rn" or (mode == "rm" and sign) or (mode == "rp" and not sign)
        return (sign << (e + m)) | (((1 << e) - 1) << m if big else ((((1 << e) - 1) << m) - 1))
    return (sign << (e + m)) | (n if n < 1 << m else ((exponent + bias) << m) | (n & ((1 << m) - 1)))


def sqrt_fraction(x):
    """A Fraction just above or at the root, good enough for any rounding here."""
    s = 1300
    n = (x.numerator << (2 * s)) // x.denominator
    r = math.isqrt(n)
    exact = r * r * x.denominator == x.numerator << (2 * s)
    return F(2 * r + (0 if exact else 1), 2 << s)


def canonical(t):
    e, m = FORMAT[t]
    return (1 << (e + m)) - 1


def compute(op, mode, ftz, sat, t, args):
    """Bits, or None where this model says nothing."""
    c = [classify(a, t) for a in args]
    if ftz:
        c = [flush(x, t) for x in c]
    if any(x[0] == "nan" for x in c):
        return "nan"
    e, m = FORMAT[t]
    inf = ((1 << e) - 1) << m
    top = e + m
    neg = 1 if mode == "rm" else 0
    if op == "sub":
        c[1] = (c[1][0], 1 - c[1][1]) + c[1][2:]
        op = "add"
    def value(x):
        return -x[2] if x[1] else x[2]
    def finish(v, zero_sign):
        return rounded(zero_sign if v == 0 else int(v < 0), abs(v), t, mode, ftz)
    if op == "add":
        a, b = c
        if a[0] == "inf" or b[0] == "inf":
            if a[0] == b[0] and a[1] != b[1]:
                return "nan"
            return ((a if a[0] == "inf" else b)[1] << top) | inf
        return finish(value(a) + value(b), a[1] if a[1] == b[1] else neg)
    if op in ("mul", "fma"):
        a, b = c[:2]
        s = a[1] ^ b[1]
        zero = lambda x: x[0] == "num" and x[2] == 0
        if a[0] == "inf" or b[0] == "inf":
            if zero(a) or zero(b):
                return "nan"
            if op == "fma" and c[2][0] == "inf" and c[2][1] != s:
                return "nan"
            return (s << top) | inf
        p = value(a) * value(b)
        if op == "mul":
            return finish(p, s)
        if c[2][0] == "inf":
            return (c[2][1] << top) | inf
        zs = s if (s == c[2][1] and p == 0 and zero(c[2])) else neg
        return finish(p + value(c[2]), zs)
    if op in ("div", "rcp"):
        a, b = c if op == "div" else (("num", 0, F(1)), c[0])
        s = a[1] ^ b[1]
        if a[0] == "inf":
            return "nan" if b[0] == "inf" else (s << top) | inf
        if b[0] == "inf":
            return s << top
        if b[2] == 0:
            return "nan" if a[2] == 0 else (s << top) | inf
        return rounded(s, a[2] / b[2], t, mode, ftz)
    if op == "sqrt":
        a = c[0]
        if a[0] == "num" and a[2] == 0:
            return a[1] << top
        if a[1]:
            return "nan"
        return inf if a[0] == "inf" else rounded(0, sqrt_fraction(a[2]), t, mode, ftz)


def saturate(bits, t):
    if bits == "nan":
        return 0
    e, m = FORMAT[t]
    c = classify(bits, t)
    one = ((1 << (e - 1)) - 1) << m
    if c[1]:
        return 0
    return min(bits, one)


def main():
    folder, results = sys.argv[1:3]
    for name in sorted(f[:-5] for f in os.listdir(folder) if re.match(r"(f32|f64|f16|bf16)_(two|one|fma)\.json", f)):
        case = json.load(open(f"{folder}/{name}.json"))
        t = name.split("_")[0]
        w = WORD[(sum(FORMAT[t]) + 1) // 8]
        ins = [np.frombuffer(base64.b64decode(a["buffer"]), w) for a in case["arguments"] if "buffer" in a]
        index = [i for i in case["results"]][0]
        out = np.frombuffer(open(f"{results}/{name}.{index if t != 'f64' or name != 'f64_one' else index}", "rb").read(), np.uint8)
        slabs = None
        for i in case["results"]:
            forms = case["forms"][list(case["results"]).index(i)]
            if forms["size"] != w().itemsize:
                continue
            data = np.frombuffer(open(f"{results}/{name}.{i}", "rb").read(), w).reshape(len(forms["forms"]), -1)
            for form, got in zip(forms["forms"], data):
                op = form.split()[0]
                parts = op.split(".")
                if parts[0] not in ("add", "sub", "mul", "fma", "div", "rcp", "sqrt") or "relu" in parts or "setp" in form:
                    continue
                mode = next((p for p in parts if p in ("rn", "rz", "rm", "rp")), "rn")
                ftz = "ftz" in parts
                bad, nans = [], set()
                for j in range(len(got)):
                    args = [int(x[j]) for x in ins][:{"rcp": 1, "sqrt": 1, "fma": 3}.get(parts[0], 2)]
                    want = compute(parts[0], mode, "after" if ftz else False, "sat" in parts, t, args)
                    alternative = compute(parts[0], mode, "before", "sat" in parts, t, args) if ftz else want
                    if "sat" in parts:
                        want, alternative = saturate(want, t), saturate(alternative, t)
                    g = int(got[j])
                    if want == "nan":
                        if classify(g, t)[0] != "nan":
                            bad.append((args, g, want))
                        else:
                            nans.add(g)
                    elif g != want:
                        bad.append((args, g, want, "flush before rounding fits" if g == alternative else ""))
                if bad or nans - {canonical(t)}:
                    print(name, op, len(bad), "differ;", "NaN results", sorted(hex(n) for n in nans)[:6])
                    for b in bad[:3]:
                        print("     ", [hex(x) for x in b[0]], "device", hex(b[1]), "model", b[2] if isinstance(b[2], str) else hex(b[2]), *b[3:])
        print(name, "checked")


if __name__ == "__main__":
    main()
