"""Compares the memory for temporaries of compiled HLO modules with that of XLA's CPU compiler.

usage: temporaries.py TC_COMPILE FILE..

Prints a row for each module whose `temporary_bytes` are more than XLA's `temp_size_in_bytes`, and counts the other
modules. A module that one of the compilers refuses has a row with the reason. Needs the packages of requirements.txt.
"""

import json
import os
import pathlib
import subprocess
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

from jax._src import xla_bridge
from jaxlib import _hlo, _jax, xla_client


def of_xla(path):
    """Bytes that XLA allocates for temporaries, with one thread."""
    module = _hlo.hlo_module_from_text(path.read_text())
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    backend = xla_bridge.get_backend("cpu")
    devices = xla_client.DeviceList(tuple(backend.devices()[:1]))
    text = _jax.mlir.xla_computation_to_mlir_module(computation)
    compiled = backend.compile_and_load(text, devices, xla_client.CompileOptions())
    return compiled.get_compiled_memory_stats().temp_size_in_bytes


def of_tc(compiler, path):
    """Bytes that the functions of the program allocate for temporaries, with one thread. `None` if they are unknown."""
    command = [compiler, path, "--report=json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[0])
    functions = [json.loads(line)["temporary_bytes"] for line in done.stdout.splitlines()]
    return None if None in functions else sum(functions)


def name_of(path):
    return path.parent.name if path.stem == "module" else path.stem


def main(compiler, paths):
    compared = more = 0
    print("| module | temporary_bytes | XLA |\n|---|---|---|")
    for path in map(pathlib.Path, paths):
        try:
            ours, theirs = of_tc(compiler, path), of_xla(path)
        except Exception as error:  # of either compiler: a row like any other
            print(f"| {name_of(path)} | {str(error).splitlines()[0][:100]} | |", flush=True)
            continue
        compared += 1
        if ours is None or theirs < ours:
            more += 1
            print(f"| {name_of(path)} | {ours} | {theirs} |", flush=True)
    print(f"\n{compared - more} of {compared} modules have at most the temporaries of XLA.")


main(sys.argv[1], sys.argv[2:])
