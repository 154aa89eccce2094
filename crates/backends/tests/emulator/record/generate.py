#!/usr/bin/env python3
"""Writes the cases (without results): cases/ for the repository, dense/ for analysis. PTXAS names ptxas."""
import os, sys
import numpy as np
import arithmetic, case

def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    small, dense = f"{root}/cases", f"{root}/dense"
    parts = sys.argv[2].split(",") if len(sys.argv) > 2 else ["arithmetic", "warp", "mma", "memory", "count", "faults", "hopper"]
    if "arithmetic" in parts:
        arithmetic.integers(np.random.default_rng(1), small)
        arithmetic.floats(np.random.default_rng(2), small)
        arithmetic.halves(np.random.default_rng(3), small)
        arithmetic.conversions(np.random.default_rng(4), small)
        arithmetic.approximations(np.random.default_rng(5), small, dense)
    for part in ("warp", "mma", "memory", "count", "faults", "hopper"):
        if part in parts:
            __import__(part).generate(np.random.default_rng(10), small, dense)
    with open(f"{root}/dropped.{'-'.join(parts)}.txt", "w") as file:
        for name, form, message in sorted(set(case.dropped)):
            file.write(f"{name}\t{form}\t{message}\n")

main()
