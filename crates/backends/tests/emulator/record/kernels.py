#!/usr/bin/env python3
"""Whole kernels: MLIR (directory as argument) through mlir-opt, mlir-translate, opt and llc to PTX, with random inputs.

kernels.py MLIR_DIRECTORY ROOT: writes ROOT/cases (small sizes) and ROOT/large (the sizes of the MLIR, inputs from a seed; counters only).
Environment: NVVM32 (the plugin with the conversion pass), LLVM (suffix of the tools, '-22').
"""
import os, re, subprocess, sys
import numpy as np
import ml_dtypes
from case import save

SUFFIX = os.environ.get("LLVM", "-22")
PIPELINE = ("builtin.module(convert-vector-to-scf{full-unroll=true},convert-scf-to-cf,expand-strided-metadata,lower-affine,nvvm32,"
            "convert-nvvm-to-llvm,canonicalize,cse,reconcile-unrealized-casts)")


def run(command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command}: {done.stderr[:2000]}")
    return done.stdout


def ptx(mlir, chip="sm_80", feature="+ptx70"):
    lowered = run([f"mlir-opt{SUFFIX}", f"--load-pass-plugin={os.environ['NVVM32']}", f"--pass-pipeline={PIPELINE}"], mlir)
    ir = run([f"mlir-translate{SUFFIX}", "--mlir-to-llvmir"], lowered)
    if "ptx_kernel" not in ir:
        ir = re.sub(r"define void @k\(", "define ptx_kernel void @k(", ir)
    ir = 'target triple = "nvptx64-nvidia-cuda"\ntarget datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"\n' + re.sub(r"^target .*$", "", ir, flags=re.M)
    ir = run([f"opt{SUFFIX}", "-S", "-O3", "-mtriple=nvptx64-nvidia-cuda", f"-mcpu={chip}"], ir)
    text = run([f"llc{SUFFIX}", "-O3", f"-mcpu={chip}", f"-mattr={feature}"], ir)
    if os.environ.get("SHOW"):
        print(text)
    return text


def main():
    directory, root = sys.argv[1:3]
    small, large = f"{root}/cases", f"{root}/large"
    rng = np.random.default_rng(20)
    read = lambda name: open(f"{directory}/{name}.mlir").read()
    def random(kind, count):  # large inputs travel as a seed
        if count > 1 << 16:
            return ("random_" + kind, count)
        x = rng.normal(size=count)
        return x.astype(np.float32) if kind == "f32" else x.astype(ml_dtypes.bfloat16).view(np.uint16)
    f32 = lambda *shape: random("f32", int(np.prod(shape)))
    bf16 = lambda *shape: random("bf16", int(np.prod(shape)))
    approx = dict(exact=False, bound="ex2.approx 2 ulp, rcp.approx 1 ulp, tanh.approx relative 2^-11, composed; sqrt.rn and fma are exact")

    text = ptx(read("c1_elementwise"))
    for name, n, blocks, folder in (("1024", 1024, 1, small), ("ragged_1612", 1612, 1, small), ("4194304", 1 << 22, 528, large)):
        save(folder, f"c1_elementwise_{name}", text, [blocks, 1, 1], [256, 1, 1], [f32(n), n * 4, ("u32", n)], [1], **approx)
    text = ptx(read("c2_softmax"))
    for name, n, rows, folder in (("512", 512, 3, small), ("ragged_300", 300, 3, small), ("4096", 4096, 4096, large)):
        save(folder, f"c2_softmax_{name}", text, [rows, 1, 1], [256, 1, 1], [f32(rows, n), rows * n * 4, ("u32", n)], [1], **approx)
    text = ptx(read("c3_transpose"))
    for name, m, n, folder in (("64x32", 64, 32, small), ("ragged_45x38", 45, 38, small), ("4096x4096", 4096, 4096, large)):
        save(folder, f"c3_transpose_{name}", text, [(n + 31) // 32, (m + 31) // 32, 1], [32, 8, 1], [f32(m, n), m * n * 4, ("u32", m), ("u32", n)], [1], **approx)
    def resize(source, old, new):
        return re.sub(rf"\b{old}x{old}x", f"{new}x{new}x", re.sub(rf"constant {old} :", f"constant {new} :", source))
    source = read("c4_gemm_f32")
    for name, n, tile, folder in (("64", 64, 64, small), ("1024", 1024, 64, large)):
        save(folder, f"c4_gemm_f32_{name}", ptx(resize(source, 1024, n)), [n // tile, n // tile, 1], [256, 1, 1], [f32(n, n), f32(n, n), n * n * 4], [2])
    source = read("c4b_gemm_f32_8x8")
    save(large, "c4b_gemm_f32_8x8_1024", ptx(source), [8, 8, 1], [256, 1, 1], [f32(1024, 1024), f32(1024, 1024), 1 << 22], [2])
    for base, stages in (("c5_gemm_bf16", 2), ("c5b_gemm_bf16_3st", 3), ("c5c_gemm_bf16_4st", 4)):
        source = read(base)
        for name, n, folder in (("128", 128, small), ("1024", 1024, large)):
            if n == 128 and stages > 2:
                continue
            changed = source
            if n != 1024:  # %c1024 is the row length; the loop's bound counts K tiles of 32
                changed = source.replace("arith.constant 1024 :", f"arith.constant {n} :").replace("arith.constant 32768 :", f"arith.constant {32 * n} :")
                bound = re.search(r"%ub = arith.constant (\d+)", changed)
                assert int(bound.group(1)) == 1024 // 32, bound
                changed = changed.replace(bound.group(0), f"%ub = arith.constant {n // 32}")
                changed, count = re.subn(r"arith.cmpi slt, (%v\d+), %c32 ", r"arith.cmpi slt, \1, %ub ", changed)
                assert count == 1, count
            save(folder, f"{base}_{name}", ptx(changed), [n // 128, n // 128, 1], [256, 1, 1], [bf16(n, n), bf16(n, n), n * n * 4], [2], shared=stages * 16384)
    # TMA and wgmma: the box hangs over the edges of A and B, the loop goes round the four stages
    source = read("c7_wgmma_tma")
    for name, (m, n, k, tiles), folder in (("ragged_100x120x96", (100, 120, 96, 5), small), ("1024", (1024, 1024, 1024, 16), large)):
        wide = (n + 127) // 128 * 128
        changed = source.replace("%kt = arith.constant 16 :", f"%kt = arith.constant {tiles} :").replace("%cN = arith.constant 1024 :", f"%cN = arith.constant {wide} :")
        changed = re.sub(r"%p\[(\d+)\]", lambda x: f"%p[{int(x.group(1)) % 8192 + int(x.group(1)) // 8192 * 8 * wide}]", changed)  # 8 rows further
        maps = []
        for rows in (m, n):
            x = bf16(rows, k)
            description = {"type": "bf16", "sizes": [k, rows], "strides": [k * 2], "box": [64, 128], "swizzle": "128B"}
            maps.append(("tensor_map", description, x))
        high = (m + 127) // 128 * 128
        save(folder, f"c7_wgmma_tma_{name}", ptx(changed, "sm_90a", "+ptx80"), [wide // 128, high // 128, 1], [384, 1, 1], maps + [high * wide * 4], [2], shared=131072 + 128 + 1024)
    text = ptx(read("c6_hist_scan"))
    for name, blocks, folder in (("1", 1, small), ("256", 256, large)):
        skewed = (rng.normal(size=blocks * 4096) * 30 + 128).clip(0, 255).astype(np.uint8)
        save(folder, f"c6_hist_scan_{name}", text, [blocks, 1, 1], [256, 1, 1], [skewed if blocks < 16 else ("random_u8", blocks * 4096), np.zeros(256, np.uint32), np.zeros(256, np.uint32)], [1, 2], note="the results need zeros at the start")


main()
