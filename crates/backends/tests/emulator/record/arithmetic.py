"""Cases of one thread per element: integers, floats, conversions, approximations."""
import numpy as np
from case import elementwise
from values import *

RND = ["rn", "rz", "rm", "rp"]
ULP = {"ex2": "2 ulp", "lg2": "absolute 2^-22 in (0.5, 2), relative 2^-22 elsewhere", "rcp": "1 ulp", "rsqrt": "relative 2^-22.9",
       "sqrt": "relative 2^-23", "sin": "absolute 2^-20.5 in [-2pi, 2pi], 2^-14.7 in [-100pi, 100pi], none outside",
       "cos": "absolute 2^-20.5 in [-2pi, 2pi], 2^-14.7 in [-100pi, 100pi], none outside", "tanh": "relative 2^-11",
       "div": "2 ulp for |b| in [2^-126, 2^126]; div.full 2 ulp"}


def predicates(list_of_setp):
    """Packs the outcomes of many setp forms into one word: bit i is form i. {p} is the outcome."""
    text = "mov.b32 {d}, 0; "
    for i, form in enumerate(list_of_setp):
        text += form + f"; selp.b32 {{t}}, {1 << i}, 0, {{p}}; or.b32 {{d}}, {{d}}, {{t}}; "
    return ("b32", text.strip())


def integers(rng, folder):
    def case(name, kinds, forms, arrays):
        elementwise(name, kinds, forms, {folder: arrays}, [folder])

    def b(kind, *texts):
        return [(kind, t) for t in texts]

    compare_s, compare_u = ["eq", "ne", "lt", "le", "gt", "ge"], ["eq", "ne", "lo", "ls", "hi", "hs", "lt", "le", "gt", "ge"]
    for bits, n in ((32, 128), (64, 128), (16, 192)):
        k = f"b{bits}"
        a, bb, c = triples(rng, f"u{bits}", n)
        two = []
        for op in ["add.s", "sub.s", "mul.lo.s", "mul.hi.s", "mul.hi.u", "min.s", "min.u", "max.s", "max.u"]:
            two.append(f"{op}{bits} {{d}}, {{a}}, {{b}};")
        two += [f"{op}.b{bits} {{d}}, {{a}}, {{b}};" for op in ("and", "or", "xor")]
        two += [f"{op}{bits} {{d}}, {{a}};" for op in ("neg.s", "abs.s", "not.b", "cnot.b")]
        two += [f"mad.lo.s{bits} {{d}}, {{a}}, {{b}}, {{c}};"]
        forms = b(k, *two)
        if bits == 32:
            forms += b(k, *[f"{op} {{d}}, {{a}}, {{b}};" for op in
                            ("add.sat.s32", "sub.sat.s32", "mul24.lo.s32", "mul24.lo.u32", "mul24.hi.s32", "mul24.hi.u32", "min.relu.s32", "max.relu.s32",
                             "add.s16x2", "add.u16x2", "min.s16x2", "min.u16x2", "max.s16x2", "max.u16x2", "min.relu.s16x2", "max.relu.s16x2")])
            forms += b(k, *[f"{op} {{d}}, {{a}}, {{b}}, {{c}};" for op in
                            ("mad.hi.s32", "mad.hi.u32", "mad.hi.sat.s32", "mad24.lo.s32", "mad24.lo.u32", "sad.s32", "sad.u32", "dp4a.s32.s32", "dp4a.u32.u32", "dp4a.s32.u32",
                             "dp4a.u32.s32", "dp2a.lo.s32.s32", "dp2a.hi.s32.s32", "dp2a.lo.u32.u32", "dp2a.hi.s32.u32",
                             "slct.b32.s32", "slct.b32.f32", "slct.ftz.b32.f32", "shf.l.wrap.b32", "shf.l.clamp.b32", "shf.r.wrap.b32", "shf.r.clamp.b32",
                             "prmt.b32", "prmt.b32.f4e", "prmt.b32.b4e", "prmt.b32.rc8", "prmt.b32.ecl", "prmt.b32.ecr", "prmt.b32.rc16")])
            forms += b(k, *[f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {i};" for i in (0x80, 0xfe, 0x96, 0xe8, 0xca, 0x1b, 0x6a)])
            forms += b(k, "popc.b32 {d}, {a};", "clz.b32 {d}, {a};", "brev.b32 {d}, {a};", "bfind.u32 {d}, {a};", "bfind.s32 {d}, {a};",
                       "bfind.shiftamt.u32 {d}, {a};", "bfind.shiftamt.s32 {d}, {a};",
                       "add.cc.u32 {t}, {a}, {b}; addc.u32 {d}, {c}, {a};", "sub.cc.u32 {t}, {a}, {b}; subc.u32 {d}, {c}, {a};",
                       "mad.lo.cc.u32 {t}, {a}, {b}, {c}; madc.hi.u32 {d}, {a}, {b}, {c};", "add.cc.s32 {t}, {a}, {b}; addc.cc.s32 {t}, {b}, {c}; addc.s32 {d}, {a}, 0;")
            forms += b("b64", "mul.wide.s32 {d}, {a}, {b};", "mul.wide.u32 {d}, {a}, {b};", "cvt.u64.u32 {w}, {c}; mad.wide.s32 {d}, {a}, {b}, {w};",
                       "cvt.s64.s32 {w}, {c}; mad.wide.u32 {d}, {a}, {b}, {w};", "mov.b64 {d}, {{{a}, {b}}};")
        if bits == 64:
            forms += b("b32", "popc.b64 {d}, {a};", "clz.b64 {d}, {a};", "bfind.u64 {d}, {a};", "bfind.s64 {d}, {a};", "bfind.shiftamt.s64 {d}, {a};",
                       "mov.b64 {{{d}, {t}}}, {a};", "mov.b64 {{{t}, {d}}}, {a};")
            forms += b(k, "brev.b64 {d}, {a};", "mad.hi.s64 {d}, {a}, {b}, {c};", "mad.hi.u64 {d}, {a}, {b}, {c};", "sad.s64 {d}, {a}, {b}, {c};",
                       "add.cc.u64 {w}, {a}, {b}; addc.u64 {d}, {c}, {a};", "sub.cc.u64 {w}, {a}, {b}; subc.u64 {d}, {c}, {a};")
        if bits == 16:
            forms += b("b32", "mul.wide.s16 {d}, {a}, {b};", "mul.wide.u16 {d}, {a}, {b};", "cvt.u32.u16 {t}, {c}; mad.wide.s16 {d}, {a}, {b}, {t};",
                       "mov.b32 {d}, {{{a}, {b}}};")
        case(f"int_{k}", [k, k, k], forms, [a, bb, c])
        compares = [f"setp.{c}.s{bits} {{p}}, {{a}}, {{b}}" for c in compare_s] + [f"setp.{c}.u{bits} {{p}}, {{a}}, {{b}}" for c in compare_u]
        compares += [f"setp.{c}.b{bits} {{p}}, {{a}}, {{b}}" for c in ("eq", "ne")]
        extra = []
        if bits == 32:
            extra = b("b32", "set.lt.u32.s32 {d}, {a}, {b};", "set.hi.s32.u32 {d}, {a}, {b};", "set.ge.f32.s32 {d}, {a}, {b};",
                      "setp.lt.s32 {p}, {c}, 0; setp.lt.and.s32 {q}|{r}, {a}, {b}, {p}; selp.b32 {d}, 1, 2, {q}; @{r} add.s32 {d}, {d}, 10;",
                      "setp.lt.s32 {p}, {c}, 0; setp.lt.or.u32 {q}|{r}, {a}, {b}, !{p}; selp.b32 {d}, 1, 2, {q}; @{r} add.s32 {d}, {d}, 10;",
                      "setp.lt.s32 {p}, {c}, 0; setp.ge.xor.u32 {q}|{r}, {a}, {b}, {p}; selp.b32 {d}, 1, 2, {q}; @!{r} add.s32 {d}, {d}, 10;",
                      "setp.lt.s32 {p}, {a}, 0; setp.lt.s32 {q}, {b}, 0; and.pred {r}, {p}, {q}; selp.b32 {d}, 1, 0, {r}; xor.pred {r}, {p}, {q}; selp.b32 {t}, 2, 0, {r}; or.b32 {d}, {d}, {t}; or.pred {r}, {p}, {q}; selp.b32 {t}, 4, 0, {r}; or.b32 {d}, {d}, {t}; not.pred {r}, {p}; selp.b32 {t}, 8, 0, {r}; or.b32 {d}, {d}, {t};",
                      "set.lt.and.u32.s32 {d}, {a}, {b}, 1;")[:7]
        case(f"compare_{k}", [k, k, k], [predicates(compares)] + extra, [a, bb, c])
        # division: no zero divisors and no INT_MIN / -1 here
        top = BITS[f"u{bits}"](1 << (bits - 1))
        da, db = a.copy(), bb.copy()
        db[db == 0] = 7
        db[(db == BITS[f"u{bits}"]((1 << bits) - 1)) & (da == top)] = 3
        case(f"divide_{k}", [k, k], [(k, f"{op}.{s}{bits} {{d}}, {{a}}, {{b}};") for op in ("div", "rem") for s in "su"], [da, db])
        zero = np.array([0, 0, 0, 0, 0, top - 1, 5, top], dtype=BITS[f"u{bits}"]).repeat(4)
        zb = zero.copy()
        za = np.array(SPECIAL[f"u{bits}"][:20] + [1] * 12, dtype=np.uint64).astype(BITS[f"u{bits}"])[:32]
        zb[:28] = 0
        za[28:], zb[28:] = top, BITS[f"u{bits}"]((1 << bits) - 1)
        elementwise(f"divide_undefined_{k}", [k, k], [(k, f"{op}.{s}{bits} {{d}}, {{a}}, {{b}};") for op in ("div", "rem") for s in "su"],
                    {folder: [za, zb]}, [folder], note="division by zero and INT_MIN / -1: unspecified by the manual; what this device gives")
        # shifts: the amount is always 32 bits wide
        amount = np.array([0, 1, 2, 3, 5, 8, 15, 16, 17, 30, 31, 32, 33, 47, 48, 62, 63, 64, 65, 100, 127, 128, 255, 256, 0x7fffffff, 0x80000000, 0xffffffff, 0xffffffe0],
                          dtype=np.uint32)
        sh = amount[rng.integers(0, len(amount), n)]
        case(f"shift_{k}", [k, "b32"], b(k, *[f"{op}{bits} {{d}}, {{a}}, {{b}};" for op in ("shl.b", "shr.s", "shr.u", "shr.b")]), [a, sh])
        if bits != 16:
            field = np.array([0, 1, 2, 5, 8, 15, 16, 24, 31, 32, 33, 40, 63, 64, 65, 128, 200, 255, 256, 0x101, 0xffffffff], dtype=np.uint32)
            pos, length = field[rng.integers(0, len(field), n)], field[rng.integers(0, len(field), n)]
            small = rng.random(n) < 0.5
            pos, length = np.where(small, rng.integers(0, 40, n), pos).astype(np.uint32), np.where(small, rng.integers(0, 40, n), length).astype(np.uint32)
            forms = b(k, f"bfe.u{bits} {{d}}, {{a}}, {{b}}, {{c}};", f"bfe.s{bits} {{d}}, {{a}}, {{b}}, {{c}};")
            if bits == 32:
                forms += b(k, "bmsk.clamp.b32 {d}, {b}, {c};", "bmsk.wrap.b32 {d}, {b}, {c};", "szext.clamp.s32 {d}, {a}, {c};", "szext.wrap.s32 {d}, {a}, {c};",
                           "szext.clamp.u32 {d}, {a}, {c};", "szext.wrap.u32 {d}, {a}, {c};")
            case(f"field_{k}", [k, "b32", "b32"], forms, [a, pos, length])
            case(f"insert_{k}", [k, k, "b32", "b32"], b(k, f"bfi.b{bits} {{d}}, {{a}}, {{b}}, {{c}}, {{e}};"), [a, bb, pos, length])


def floats(rng, folder):
    for t, n in (("f32", 256), ("f64", 160)):
        k = f"b{t[1:]}"
        ftz = ["", ".ftz"] if t == "f32" else [""]
        sat = ["", ".sat"] if t == "f32" else [""]
        forms = [(k, f"{op}.{r}{f}{s}.{t} {{d}}, {{a}}, {{b}};") for op in ("add", "sub", "mul") for r in RND for f in ftz for s in sat]
        forms += [(k, f"{op}.{t} {{d}}, {{a}}, {{b}};") for op in ("add", "sub", "mul")]
        forms += [(k, f"div.{r}{f}.{t} {{d}}, {{a}}, {{b}};") for r in RND for f in ftz]
        forms += [(k, f"{op}{f}{nan}{x}.{t} {{d}}, {{a}}, {{b}};") for op in ("min", "max") for f in ftz
                  for nan in (["", ".NaN"] if t == "f32" else [""]) for x in (["", ".xorsign.abs"] if t == "f32" else [""])]
        forms += [(k, f"copysign.{t} {{d}}, {{a}}, {{b}};")]
        elementwise(f"{t}_two", [k, k], forms, {folder: pairs(rng, t, n)}, [folder])
        forms = [(k, f"fma.{r}{f}{s}.{t} {{d}}, {{a}}, {{b}}, {{c}};") for r in RND for f in ftz for s in sat] + [(k, f"mad.rn.{t} {{d}}, {{a}}, {{b}}, {{c}};")]
        elementwise(f"{t}_fma", [k, k, k], forms, {folder: triples(rng, t, n)}, [folder])
        one = [(k, f"{op}.{r}{f}.{t} {{d}}, {{a}};") for op in ("rcp", "sqrt") for r in RND for f in ftz]
        one += [(k, f"{op}{f}.{t} {{d}}, {{a}};") for op in ("neg", "abs") for f in ftz]
        tests = [f"testp.{x}.{t} {{p}}, {{a}}" for x in ("finite", "infinite", "number", "notanumber", "normal", "subnormal")]
        special = np.array(SPECIAL[t], dtype=np.uint64).astype(BITS[t])
        a = np.concatenate([special, draw(rng, t, 192 - len(special))])
        a[96:] = moderate(rng, t, 96, 40) & BITS[t]((1 << (sum(FIELDS[t]))) - 1)
        elementwise(f"{t}_one", [k], one + [predicates(tests)], {folder: [a]}, [folder])
        ordered = ["eq", "ne", "lt", "le", "gt", "ge"]
        compares = ordered + [c + "u" for c in ordered] + ["num", "nan"]
        forms = [predicates([f"setp.{c}{f}.{t} {{p}}, {{a}}, {{b}}" for c in compares]) for f in ftz]
        if t == "f32":
            forms += [("b32", x) for x in ("set.lt.f32.f32 {d}, {a}, {b};", "set.gtu.u32.f32 {d}, {a}, {b};", "set.eq.ftz.s32.f32 {d}, {a}, {b};",
                                           "setp.lt.f32 {p}|{q}, {a}, {b}; selp.f32 {d}, {a}, {b}, {p}; @{q} neg.f32 {d}, {d};")]
        elementwise(f"{t}_compare", [k, k], forms, {folder: pairs(rng, t, 256)}, [folder])

    values = np.array([0x7ff8000000000001, 0xfff8000000000002, 0x7ff0000000000003, 0xfff0000000000004, 0x7ff0000000000000, 0x0, 0xc000000000000000], dtype=np.uint64)
    a, b, c = [np.concatenate([x.ravel(), values[:1].repeat(9)]) for x in np.meshgrid(values, values, values, indexing="ij")]
    forms = [("b64", f"{op} {{d}}, {{a}}, {{b}};") for op in ("add.rn.f64", "sub.rn.f64", "mul.rn.f64", "div.rn.f64", "min.f64", "max.f64")] + [("b64", "fma.rn.f64 {d}, {a}, {b}, {c};")]
    elementwise("f64_nan", ["b64"] * 3, forms, {folder: [a, b, c]}, [folder], note="which NaN comes out")


def halves(rng, folder):
    for t in ("f16", "bf16"):
        for packed in (False, True):
            k, x = ("b32", t + "x2") if packed else ("b16", t)
            n = 96 if packed else 256

            def pack(arrays):
                return [(a[:n].astype(np.uint32) | (np.roll(a, 7)[:n].astype(np.uint32) << 16)) if packed else a for a in arrays]
            ftz = ["", ".ftz"] if t == "f16" else [""]
            sat = ["", ".sat"] if t == "f16" else [""]
            forms = [(k, f"{op}{r}{f}{s}.{x} {{d}}, {{a}}, {{b}};") for op in ("add", "sub", "mul") for r in ("", ".rn") for f in ftz for s in sat if r or not f + s]
            forms += [(k, f"{op}{f}{nan}{xs}.{x} {{d}}, {{a}}, {{b}};") for op in ("min", "max") for f in ftz for nan in ("", ".NaN") for xs in ("", ".xorsign.abs")]
            forms += [(k, f"{op}.{x} {{d}}, {{a}};") for op in ("neg", "abs")]
            elementwise(f"{x}_two", [k, k], forms, {folder: pack(pairs(rng, t, 256))}, [folder])
            forms = [(k, f"fma.rn{f}{s}.{x} {{d}}, {{a}}, {{b}}, {{c}};") for f in ftz for s in sat + [".relu"]]
            elementwise(f"{x}_fma", [k, k, k], forms, {folder: pack(triples(rng, t, 256))}, [folder])
            if not packed:
                ordered = ["eq", "ne", "lt", "le", "gt", "ge"]
                compares = ordered + [c + "u" for c in ordered] + ["num", "nan"]
                elementwise(f"{t}_compare", [k, k], [predicates([f"setp.{c}.{t} {{p}}, {{a}}, {{b}}" for c in compares])], {folder: pairs(rng, t, 256)}, [folder])


def conversions(rng, folder):
    ints = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]
    size = lambda t: {"8": "b16", "16": "b16", "32": "b32", "64": "b64"}[t.lstrip("usbf")]
    for t in ("f32", "f64", "f16", "bf16"):
        rnd = ["rni", "rzi", "rmi", "rpi"]
        ftz = ["", ".ftz"] if t == "f32" else [""]
        forms = []
        for i in ints:
            store = lambda text: (size(i), text) if i[1:] != "8" else ("b32", text)  # 8-bit results in a 32-bit register: shows the extension
            forms += [store(f"cvt.{r}{f}.{i}.{t} {{d}}, {{a}};") for r in rnd for f in (ftz if r == "rni" else [""])]
            forms += [store(f"cvt.rzi.sat.{i}.{t} {{d}}, {{a}};")] if i in ("s32", "u8") else []
        special = np.array(SPECIAL[t], dtype=np.uint64).astype(BITS[t])
        n = 128
        values = np.array([v + s * f for v in [0, 1, 2, 3, 126, 127, 128, 254, 255, 256, 32767, 32768, 65535, 65536, 8388607, 2147483520, 2147483648, 4294967040, 4294967296,
                                               9223371487098961920, 9223372036854775808, 18446744073709551616] for f in (0, 0.5, 0.25) for s in (1, -1)] + [2147483647, 4294967295, -2147483649, 4294967295.5], dtype=np.float64)
        values = np.concatenate([values, -values])
        import ml_dtypes
        with np.errstate(all="ignore"):
            edge = values.astype({"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[t]).view(BITS[t])
        edge = edge[rng.permutation(len(edge))][:n - len(special) - 24]
        a = np.concatenate([special, edge, moderate(rng, t, n - len(special) - len(edge), 66)])
        elementwise(f"cvt_int_{t}", [f"b{t.lstrip('bf')}"], forms, {folder: [a]}, [folder])
    for i in ints:
        bits = i[1:]
        forms = [(size(f), f"cvt.{r}{s}.{f}.{i} {{d}}, {{a}};") for f in ("f16", "bf16", "f32", "f64") for r in RND
                 for s in (["", ".sat"] if r == "rn" and f in ("f16", "f32") else [""])]
        special = np.array(SPECIAL["u" + bits], dtype=np.uint64).astype(BITS["u" + bits])
        raw = uniform_bits(rng, "u" + bits, 96 - len(special))
        if bits in ("32", "64"):  # near halfway cases of f32, f64, f16
            shift = rng.integers(0, int(bits) - 2, len(raw)).astype(raw.dtype)
            raw = (raw >> shift)
        a = np.concatenate([special, raw])
        if bits == "8":
            a = a.astype(np.uint16)
        elementwise(f"cvt_float_{i}", ["b16" if bits == "8" else f"b{bits}"], forms, {folder: [a]}, [folder])
    for i in ints:
        bits = i[1:]
        register = "b16" if bits == "8" else f"b{bits}"
        forms = [("b32" if o[1:] == "8" else size(o), f"cvt{s}.{o}.{i} {{d}}, {{a}};") for o in ints for s in ("", ".sat") if o != i or not s]
        special = np.array(SPECIAL["u" + register[1:]], dtype=np.uint64).astype(BITS["u" + register[1:]])
        a = np.concatenate([special, uniform_bits(rng, "u" + register[1:], 64 - len(special))])
        elementwise(f"cvt_{i}", [register], forms, {folder: [a]}, [folder])
    pack = [("b32", f"cvt.pack.sat.{t}.s32.b32 {{d}}, {{a}}, {{b}}, {{c}};") for t in ("u8", "s8")] + [("b32", f"cvt.pack.sat.{t}.s32 {{d}}, {{a}}, {{b}};") for t in ("u16", "s16")]
    elementwise("cvt_pack", ["b32"] * 3, pack, {folder: [draw(rng, "u32", 128) >> rng.choice([0, 16, 24], 128).astype(np.uint32) for _ in range(3)]}, [folder])
    # between floats
    def near_halfway(t, n):
        """f32/f64 values around the halfway points of the narrower types."""
        m = FIELDS[t][1]
        a = moderate(rng, t, n, 30).astype(np.uint64)
        keep = rng.choice([1, 2, 3, 7, 10, 23], n).astype(np.uint64)
        low = np.maximum(m - keep.astype(np.int64), 1).astype(np.uint64)
        half = np.uint64(1) << (low - np.uint64(1))
        a = (a >> low << low) + half + rng.choice([0, 0, 1, -1], n).astype(np.int64).astype(np.uint64)
        return a.astype(BITS[t])
    for t in ("f32", "f64", "f16", "bf16"):
        ftz = ["", ".ftz"] if t == "f32" else [""]
        ftz_any = ["", ".ftz"]
        forms = []
        for o in ("f16", "bf16", "f32", "f64"):
            for r in [""] + ["." + r for r in RND]:
                for f in ftz_any:
                    for s in ("", ".sat"):
                        if o == t and r:
                            continue
                        forms.append((size(o), f"cvt{r}{f}{s}.{o}.{t} {{d}}, {{a}};"))
            if o == t:
                forms += [(size(o), f"cvt.{r}{f}{s}.{o}.{t} {{d}}, {{a}};") for r in ("rni", "rzi", "rmi", "rpi") for f in ftz for s in (["", ".sat"] if r in ("rni", "rpi") else [""])]
        if t == "f32":
            forms += [("b32", f"cvt.{m}.tf32.f32 {{d}}, {{a}};") for m in ("rna", "rna.satfinite", "rn", "rz", "rn.relu", "rz.relu", "rn.satfinite")]
            forms += [("b16", f"cvt.{r}.relu.{o}.f32 {{d}}, {{a}};") for r in ("rn", "rz") for o in ("f16", "bf16")]
            forms += [("b16", f"cvt.{r}.satfinite.{o}.f32 {{d}}, {{a}};") for r in ("rn", "rz") for o in ("f16", "bf16")]
        special = np.array(SPECIAL[t], dtype=np.uint64).astype(BITS[t])
        n = 160
        rest = n - len(special)
        a = np.concatenate([special, draw(rng, t, rest // 3), moderate(rng, t, rest - rest // 3 - rest // 3, 16),
                            near_halfway(t, rest // 3) if t in ("f32", "f64") else draw(rng, t, rest // 3)])
        if t == "f64":  # around the ranges of f32 and f16
            extra = np.array([3.4028235677973366e38, 3.4028234663852886e38, 3.40282357e38, 65504, 65519.99, 65520, 65535, 1e-45, 7e-46, 7.1e-46, 1.1754943508222875e-38, 1.17549429e-38,
                              5.96e-8, 2.98e-8, 2.9802322387695312e-08, 6.1e-5, 6.103515625e-05, 9.2e-41, 4.6e-41])
            a[-len(extra):] = extra.view(np.uint64)
        if t == "f32":
            extra = np.array([65504, 65519.99, 65520, 65535, 5.96e-8, 2.98e-8, 2.9802322387695312e-08, 6.1e-5, 6.103515625e-05, 9.2e-41, 4.6e-41, 3.3895314e38, 3.3961775e38, 448, 464, 464.0001, 480, 57344, 61440, 61439], dtype=np.float32)
            a[-len(extra):] = extra.view(np.uint32)
        elementwise(f"cvt_{t}", [f"b{t.lstrip('bf')}"], forms, {folder: [a]}, [folder])
    a = draw(rng, "f32", 256)
    fp8 = moderate(rng, "f32", 256, 20)
    short = (fp8 >> np.uint32(18) << np.uint32(18)) + rng.choice([0, 1 << 17, 1 << 19, (1 << 17) + 1, (1 << 19) - 1], 256).astype(np.uint32)
    a[:200] = short[:200]
    edges = np.array([448, 464, 464.0001, 480, 57344, 61440, 61439, 65536, 2**-9, 2**-10, 1.5 * 2**-10, 2**-16, 2**-17, 1.5 * 2**-17, 2**-6, 0.97 * 2**-6, 65504, 65520], dtype=np.float32).view(np.uint32)
    a[200:200 + len(edges)], a[230:230 + len(edges)] = edges, edges ^ np.uint32(0x80000000)
    b = np.roll(a, 11)
    forms = [("b32", f"cvt.{r}{x}{s}.{o}.f32 {{d}}, {{a}}, {{b}};") for o in ("f16x2", "bf16x2") for r in ("rn", "rz") for x in ("", ".relu") for s in ("", ".satfinite")]
    forms += [("b16", f"cvt.rn.satfinite{x}.{o}.f32 {{d}}, {{a}}, {{b}};") for o in ("e4m3x2", "e5m2x2") for x in ("", ".relu")]
    forms += [("b16", f"cvt.rn.satfinite{x}.{o}.f16x2 {{d}}, {{a}};") for o in ("e4m3x2", "e5m2x2") for x in ("", ".relu")]
    elementwise("cvt_packed", ["b32", "b32"], forms, {folder: [a, b]}, [folder])
    forms = [("b32", f"cvt.rn{x}.f16x2.{o} {{d}}, {{a}};") for o in ("e4m3x2", "e5m2x2") for x in ("", ".relu")]
    elementwise("cvt_fp8", ["b16"], forms, {folder: [(np.arange(256, dtype=np.uint16) | (np.arange(256, dtype=np.uint16)[::-1] << 8))]}, [folder])


def approximations(rng, small, dense):
    def inputs(n, domain):
        """Special values, denormals, all exponents, a dense stretch around 1, and the domain's own ranges."""
        special = np.array(SPECIAL["f32"], dtype=np.uint32)
        denormal = rng.integers(1, 0x7fffff, n // 16, dtype=np.uint32) | (rng.integers(0, 2, n // 16, dtype=np.uint32) << np.uint32(31))
        spread = moderate(rng, "f32", n // 4, 126)
        parts = [special, denormal, spread]
        left = n - sum(map(len, parts))
        if domain == "trig":
            x = np.concatenate([rng.uniform(-2 * np.pi, 2 * np.pi, left // 2), rng.uniform(-100 * np.pi, 100 * np.pi, left // 4),
                                np.round(rng.uniform(-200, 200, left // 8)) * (np.pi / 2), 2.0 ** rng.uniform(5, 127, left - left // 2 - left // 4 - left // 8)])
        elif domain == "exp":
            x = np.concatenate([rng.uniform(-1, 1, left // 3), rng.uniform(-151, 129, left // 3), rng.uniform(-150, -125, left - left // 3 * 2)])
        elif domain == "tanh":
            x = np.concatenate([rng.uniform(-1, 1, left // 2), rng.uniform(-12, 12, left // 4), rng.normal(size=left - left // 2 - left // 4) * 0.01])
        else:
            x = np.concatenate([rng.uniform(1, 4, left // 2), rng.uniform(0.25, 2.1, left - left // 2)])
        return np.concatenate(parts + [x.astype(np.float32).view(np.uint32)])
    n_small, n_dense = 1024, 65536
    for domain, ops in (("trig", ["sin", "cos"]), ("exp", ["ex2"]), ("tanh", ["tanh"]), ("root", ["lg2", "rcp", "rsqrt", "sqrt"])):
        forms = [("b32", f"{op}.approx{f}.f32 {{d}}, {{a}};") for op in ops for f in ("", ".ftz") if op != "tanh" or not f]
        elementwise(f"approx_{domain}", ["b32"], forms, {small: [inputs(n_small, domain)], dense: [inputs(n_dense, domain)]}, [small, dense],
                    exact=False, bound="; ".join(f"{op}: {ULP[op]}" for op in ops))
    def quotient(n):
        a, b = pairs(rng, "f32", n)
        b[n // 2:n // 2 + n // 8] = moderate(rng, "f32", n // 8, 126)
        a[n // 2:n // 2 + n // 8] = moderate(rng, "f32", n // 8, 126)
        return [a, b]
    forms = [("b32", f"div.{m}{f}.f32 {{d}}, {{a}}, {{b}};") for m in ("approx", "full") for f in ("", ".ftz")]
    elementwise("approx_div", ["b32", "b32"], forms, {small: quotient(n_small), dense: quotient(n_dense)}, [small, dense], exact=False, bound=ULP["div"])
    every = np.arange(65536, dtype=np.uint32).astype(np.uint16)
    half = {"f16": ["ex2.approx.f16", "tanh.approx.f16"], "bf16": ["ex2.approx.ftz.bf16", "tanh.approx.bf16"]}
    bound = {"f16": "ex2: relative 2^-9.9; tanh: absolute 2^-10.987", "bf16": "ex2: relative 2^-7; tanh: absolute 2^-8"}
    for t in half:
        some = np.concatenate([np.array(SPECIAL[t], dtype=np.uint16), every[rng.permutation(65536)[:1024 - len(SPECIAL[t])]]])
        some[300:] = moderate(rng, t, 724, 9)
        elementwise(f"approx_{t}", ["b16"], [("b16", f"{f} {{d}}, {{a}};") for f in half[t]], {small: [some], dense: [every]}, [small, dense], exact=False, bound=bound[t])
        pair = some[:256].astype(np.uint32) | (some[256:512].astype(np.uint32) << 16)
        elementwise(f"approx_{t}x2", ["b32"], [("b32", f"{f}x2 {{d}}, {{a}};") for f in half[t]], {small: [pair]}, [small], exact=False, bound=bound[t])
    special = np.array(SPECIAL["f64"], dtype=np.uint64)
    def wide(n):
        return np.concatenate([special, draw(rng, "f64", n // 4), moderate(rng, "f64", n - n // 4 - len(special), 60) & np.uint64(0x7fffffffffffffff)])
    forms = [("b64", f"{f} {{d}}, {{a}};") for f in ("rcp.approx.ftz.f64", "rsqrt.approx.f64", "rsqrt.approx.ftz.f64")]
    elementwise("approx_f64", ["b64"], forms, {small: [wide(256)], dense: [wide(16384)]}, [small, dense], exact=False,
                bound="rcp.approx.ftz, rsqrt.approx.ftz: 20 bits of fraction, no bound given; rsqrt.approx: none given")
