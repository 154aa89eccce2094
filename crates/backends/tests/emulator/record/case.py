"""Building blocks of the recorded cases: PTX text around instruction forms, and the case files.

A case is NAME.ptx (one module) and NAME.json (one launch). See README.md for the format.
"""
import base64, json, os, re, subprocess, sys, tempfile
import numpy as np

PTXAS = os.environ.get("PTXAS", "ptxas")
LEVELS = [("7.0", "sm_80"), ("7.8", "sm_90"), ("8.1", "sm_90"), ("8.6", "sm_90a")]
SIZE = {"b8": 1, "b16": 2, "b32": 4, "b64": 8}
REGISTER = {"b16": "%rs", "b32": "%r", "b64": "%rd"}
dropped = []  # (case, form, message): what ptxas refuses on every level


def assemble(text):
    """Returns {line number: message} of ptxas's errors; empty if the module is accepted."""
    target = re.search(r"\.target\s+(\w+)", text).group(1)
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        run = subprocess.run([PTXAS, "-O0", f"-arch={target}", file.name, "-o", "/dev/null"], capture_output=True, text=True)
    if run.returncode == 0:
        return {}
    errors = {}
    for line in (run.stderr + run.stdout).splitlines():
        found = re.search(r"line (\d+);? ?\s*(error|fatal)\s*:\s*(.*)", line)
        if found:
            errors.setdefault(int(found.group(1)), found.group(3))
    return errors or {0: run.stderr.strip()[:300]}


def module(parameters, body, level=LEVELS[0], globals="", entry="k", directives=""):
    """A module with one kernel. Pointers are '.u64 .ptr .global .align 16', as LLVM writes them."""
    lines = []
    for i, p in enumerate(parameters):
        kind = ".u64 .ptr .global .align 16" if p == "ptr" else f".{p}"
        lines.append(f"\t.param {kind} {entry}_param_{i}")
    registers = ""
    for prefix, kind in (("%p", "pred"), ("%rs", "b16"), ("%r", "b32"), ("%rd", "b64")):
        used = [int(n) for n in re.findall(re.escape(prefix) + r"(\d+)\b", body)]
        if used:
            registers += f"\t.reg .{kind} \t{prefix}<{max(used) + 1}>;\n"
    return (f".version {level[0]}\n.target {level[1]}\n.address_size 64\n\n{globals}"
            f".visible .entry {entry}(\n" + ",\n".join(lines) + f"\n)\n{directives}{{\n{registers}\n{body}\tret;\n}}\n")


def save(folder, name, text, grid, block, arguments, results, exact=True, bound=None, forms=None, note=None, shared=0,
         entry="k", check=True):
    """Writes one case. arguments: numpy array (buffer), int n (n bytes of zeros), ('u32', 5), ('u64', ..), ('f32', '0f..')."""
    if check:
        errors = assemble(text)
        if errors:
            sys.exit(f"{name}: {errors}\n" + "\n".join(f"{i + 1}: {l}" for i, l in enumerate(text.splitlines()) if i + 1 in errors))
    os.makedirs(folder, exist_ok=True)
    out = []
    for a in arguments:
        if isinstance(a, np.ndarray):
            out.append({"buffer": base64.b64encode(a.tobytes()).decode()})
        elif a[0] == "tensor_map" if isinstance(a, tuple) else False:
            data = {a[2][0]: a[2][1]} if isinstance(a[2], tuple) else {"buffer": base64.b64encode(a[2].tobytes()).decode()}
            out.append({"tensor_map": {**a[1], **data}})
        elif isinstance(a, int):
            out.append({"zeros": a})
        else:
            out.append({a[0]: a[1]})
    case = {"entry": entry, "grid": list(grid), "block": list(block), "shared": shared, "arguments": out,
            "results": {str(i): None for i in results}, "exact": exact}
    if bound:
        case["bound"] = bound
    if forms:
        case["forms"] = forms
    if note:
        case["note"] = note
    with open(f"{folder}/{name}.ptx", "w") as file:
        file.write(text)
    with open(f"{folder}/{name}.json", "w") as file:
        json.dump(case, file)


def thread_index(number=1, scratch=(2, 3)):
    """%r<number> = blockIdx.x * blockDim.x + threadIdx.x"""
    a, b = scratch
    return (f"\tmov.u32 \t%r{number}, %tid.x;\n\tmov.u32 \t%r{a}, %ctaid.x;\n\tmov.u32 \t%r{b}, %ntid.x;\n"
            f"\tmad.lo.s32 \t%r{number}, %r{a}, %r{b}, %r{number};\n")


def elementwise_text(inputs, forms, count, level):
    """One thread per element; every form writes a slab of `count` results, slabs grouped by the size of the result."""
    names = "abce"
    body, base = thread_index(), 4
    values = {}
    for i, kind in enumerate(inputs):
        body += f"\tld.param.b64 \t%rd{2 * i + 1}, [k_param_{i}];\n\tmul.wide.u32 \t%rd{2 * i + 2}, %r1, {SIZE[kind]};\n"
        body += f"\tadd.s64 \t%rd{2 * i + 1}, %rd{2 * i + 1}, %rd{2 * i + 2};\n"
        register = f"{REGISTER[kind]}{20 + i}"
        body += f"\tld.global.{kind} \t{register}, [%rd{2 * i + 1}];\n"
        values[names[i]] = register
    kinds = sorted({k for k, _ in forms})
    out = {}
    for j, kind in enumerate(kinds):
        body += f"\tld.param.b64 \t%rd{10 + j}, [k_param_{len(inputs) + j}];\n\tmul.wide.u32 \t%rd16, %r1, {SIZE[kind]};\n"
        body += f"\tadd.s64 \t%rd{10 + j}, %rd{10 + j}, %rd16;\n"
        out[kind] = [f"%rd{10 + j}", 0]
    owner = {}
    chunks = []
    number = 30
    for index, (kind, form) in enumerate(forms):
        d = f"{REGISTER[kind]}{number}"
        scratch = {"p": "%p1", "q": "%p2", "r": "%p3", "t": f"%r{number + 1}", "u": f"%r{number + 2}", "h": f"%rs{number + 1}",
                   "g": f"%rs{number + 2}", "w": f"%rd{number + 1}", "x": f"%rd{number + 2}"}
        number += 3
        address, offset = out[kind]
        text = "\t" + form.format(d=d, **values, **scratch).replace("; ", ";\n\t") + f"\n\tst.global.{kind} \t[{address}+{offset}], {d};\n"
        out[kind][1] += count * SIZE[kind]
        chunks.append((index, text))
    full = module(["ptr"] * (len(inputs) + len(kinds)), body + "".join(t for _, t in chunks), level)
    start = full[:full.index(chunks[0][1])].count("\n") + 1
    for index, text in chunks:
        for l in range(start, start + text.count("\n")):
            owner[l] = index
        start += text.count("\n")
    return full, owner, [(k, out[k][1]) for k in kinds]


def settle(name, inputs, forms, count):
    """Finds the lowest level that takes all forms, dropping those that no level takes."""
    for level in LEVELS:
        todo = list(forms)
        for _ in range(60):
            text, owner, _ = elementwise_text(inputs, todo, count, level)
            errors = assemble(text)
            if not errors:
                break
            bad = {owner[l]: m for l, m in errors.items() if l in owner}
            if not bad:
                sys.exit(f"{name}: {errors}")
            refused = [(todo[i], m) for i, m in bad.items()]
            todo = [f for i, f in enumerate(todo) if i not in bad]
            if level == LEVELS[-1]:
                dropped.extend((name, f[1], m) for f, m in refused)
            elif any("equires" in m or "not supported on" in m for _, m in refused):
                break  # a higher level is worth a try
        else:
            sys.exit(f"{name}: does not settle")
        if not errors and len(todo) == len(forms):
            return level, todo
    return settle(name, inputs, todo, count)


def elementwise(name, inputs, forms, data, folders, **more):
    """data: {folder: [array per input]}; all arrays of one folder have one length, a multiple of 32."""
    level, forms = settle(name, inputs, forms, 64)
    kinds = sorted({k for k, _ in forms})
    listed = [{"size": SIZE[k], "forms": [f for kind, f in forms if kind == k]} for k in kinds]
    for folder in folders:
        arrays = data[folder] if isinstance(data, dict) else data
        count = len(arrays[0])
        block = 128 if count % 128 == 0 else 32
        assert count % block == 0, (name, count)
        text, _, outs = elementwise_text(inputs, forms, count, level)
        save(folder, name, text, [count // block, 1, 1], [block, 1, 1], list(arrays) + [n for _, n in outs],
             range(len(inputs), len(inputs) + len(outs)), forms=listed, check=False, **more)
