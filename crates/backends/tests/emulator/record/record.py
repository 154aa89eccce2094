#!/usr/bin/env python3
"""Runs cases on a GPU through libcuda (ctypes; the driver compiles the PTX) and keeps the bytes of the results.

record.py run FOLDER OUT.tar.gz      each case in a process of its own; OUT holds NAME.INDEX and status.json
record.py launch FOLDER NAME..       launches the named cases once each, in this process (for ncu)
"""
import base64, ctypes, io, json, os, subprocess, sys, tarfile, time
from concurrent.futures import ThreadPoolExecutor

cuda = None


class Failure(Exception):
    pass


def check(code, what, log=None):
    if code:
        name = ctypes.c_char_p()
        cuda.cuGetErrorName(code, ctypes.byref(name))
        text = log.value.decode(errors="replace").strip() if log else ""
        raise Failure(f"{what}: {name.value.decode() if name.value else code} {text}".strip())


def start():
    global cuda
    for library in ("libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"):
        try:
            cuda = ctypes.CDLL(library)
            break
        except OSError:
            pass
    check(cuda.cuInit(0), "cuInit")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "context")
    check(cuda.cuCtxSetCurrent(context), "context")
    name, version = ctypes.create_string_buffer(100), ctypes.c_int()
    cuda.cuDeviceGetName(name, 100, device)
    cuda.cuDriverGetVersion(ctypes.byref(version))
    return {"device": name.value.decode(), "cuda": version.value}


def tensor_map(description, address):
    """The 128 bytes of a CUtensorMap over memory at `address`."""
    rank = len(description["sizes"])
    u64, u32 = ctypes.c_uint64, ctypes.c_uint32
    memory = ctypes.create_string_buffer(256)
    start = (ctypes.addressof(memory) + 127) & ~127
    kind = {"u8": 0, "u16": 1, "u32": 2, "f16": 6, "f32": 7, "bf16": 9}[description["type"]]
    swizzle = ["none", "32B", "64B", "128B"].index(description["swizzle"])
    check(cuda.cuTensorMapEncodeTiled(ctypes.c_void_p(start), kind, u32(rank), u64(address), (u64 * rank)(*description["sizes"]), (u64 * rank)(*description["strides"]),
                                      (u32 * rank)(*description["box"]), (u32 * rank)(*[1] * rank), 0, swizzle, 0, 0), "tensor map")
    return (ctypes.c_ubyte * 128).from_buffer_copy(ctypes.string_at(start, 128))


def contents(argument):
    if "tensor_map" in argument:
        return contents({k: v for k, v in argument["tensor_map"].items() if k == "buffer" or k.startswith("random")})
    if "buffer" in argument:
        return base64.b64decode(argument["buffer"])
    if "zeros" in argument:
        return bytes(argument["zeros"])
    for kind in ("f32", "bf16", "u8"):
        if "random_" + kind in argument:
            import numpy as np
            n = argument["random_" + kind]
            x = np.random.default_rng(n).normal(size=n)
            if kind == "f32":
                return x.astype(np.float32).tobytes()
            if kind == "bf16":
                return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
            return (x * 30 + 128).clip(0, 255).astype(np.uint8).tobytes()
    return None


def launch(folder, name):
    """Returns {index: bytes}."""
    case = json.load(open(f"{folder}/{name}.json"))
    text = open(f"{folder}/{name}.ptx", "rb").read() + b"\0"
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    log = ctypes.create_string_buffer(8192)
    options = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER and its size
    values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), 8192)
    check(cuda.cuModuleLoadDataEx(ctypes.byref(module), text, 2, options, values), "load", log)
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, case["entry"].encode()), "function")
    if case["shared"] > 48 * 1024:
        check(cuda.cuFuncSetAttribute(function, 8, case["shared"]), "shared memory")
    arguments, pointers = [], {}
    for i, a in enumerate(case["arguments"]):
        data = contents(a)
        if data is not None:
            p = ctypes.c_uint64()
            check(cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(max(len(data), 16))), "alloc")
            check(cuda.cuMemcpyHtoD_v2(p, data, ctypes.c_size_t(len(data))), "copy")
            pointers[i] = (p, len(data))
            arguments.append(tensor_map(a["tensor_map"], p.value) if "tensor_map" in a else p)
        elif "f32" in a:
            arguments.append(ctypes.c_uint32(int(a["f32"][2:], 16)))
        else:
            kind, value = next(iter(a.items()))
            arguments.append({"u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64}[kind](value))
    table = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments])
    check(cuda.cuLaunchKernel(function, *case["grid"], *case["block"], case["shared"], None, table, None), "launch")
    check(cuda.cuCtxSynchronize(), "synchronize")
    out = {}
    for i in case["results"]:
        p, size = pointers[int(i)]
        data = ctypes.create_string_buffer(size)
        check(cuda.cuMemcpyDtoH_v2(data, p, ctypes.c_size_t(size)), "copy back")
        out[i] = data.raw
    for p, _ in pointers.values():
        cuda.cuMemFree_v2(p)
    cuda.cuModuleUnload(module)
    return out


def worker(folder):
    """Reads names from stdin, one a line; writes one JSON line each. Leaves after a failure: the context may be lost."""
    info = start()
    for line in sys.stdin:
        name = line.strip()
        try:
            out = launch(folder, name)
            print(json.dumps({"info": info, "results": {i: base64.b64encode(d).decode() for i, d in out.items()}}), flush=True)
        except Failure as e:
            print(json.dumps({"error": str(e)}), flush=True)
            os._exit(1)


def run(folder, path):
    names = sorted(f[:-5] for f in os.listdir(folder) if f.endswith(".json"))
    status, files = {}, {}

    def share(part):
        process = None
        for name in part:
            if process is None or process.poll() is not None:
                process = subprocess.Popen([sys.executable, __file__, "worker", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            try:
                process.stdin.write(name + "\n")
                process.stdin.flush()
                import select
                if not select.select([process.stdout], [], [], 40)[0]:
                    status[name] = "no answer in 40 s"
                    process.kill()
                    process = None
                    continue
                line = process.stdout.readline()
                answer = json.loads(line) if line else {"error": "worker died"}
            except (BrokenPipeError, ValueError) as e:
                answer = {"error": repr(e)}
            if "error" in answer:
                status[name] = answer["error"]
                process.wait(20)
                process = None
            else:
                status[name] = "ok"
                status["info"] = answer["info"]
                for i, d in answer["results"].items():
                    files[f"{name}.{i}"] = base64.b64decode(d)
        if process:
            process.stdin.close()
            process.wait(20)

    began = time.time()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(share, [names[i::8] for i in range(8)]))
    with tarfile.open(path, "w:gz") as tar:
        files["status.json"] = json.dumps(status, indent=1).encode()
        for name, data in sorted(files.items()):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    bad = {n: s for n, s in status.items() if s != "ok" and n != "info"}
    print(f"{folder}: {len(names) - len(bad)} of {len(names)} in {time.time() - began:.1f} s", status.get("info"))
    for n, s in sorted(bad.items()):
        print("  FAILED", n, s[:300])


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2], sys.argv[3])
    elif sys.argv[1] == "worker":
        worker(sys.argv[2])
    else:
        start()
        for name in sys.argv[3:]:
            try:
                launch(sys.argv[2], name)
                print("launched", name, flush=True)
            except Failure as e:
                print("failed", name, e, flush=True)
