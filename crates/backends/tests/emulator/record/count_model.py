#!/usr/bin/env python3
"""Rules for sectors and shared-memory wavefronts, checked against the recorded counters: count_model.py CASES counters.json"""
import base64, json, sys
import numpy as np

BYTES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8, "b128": 16}


def sectors(offsets, width):
    """Per warp: the distinct 32-byte sectors that its lanes touch (negative offset: inactive lane)."""
    return sum(len({(int(o) + b) // 32 for o in offsets[s:s + 32] if o >= 0 for b in (0, width - 1)}) for s in range(0, len(offsets), 32))


def wavefronts(offsets, width):
    """Per warp: accesses of up to 4 bytes are one part; of 8 bytes two (half warps), of 16 bytes four (quarters). A part takes as many
    wavefronts as the busiest of 32 banks has distinct words. Two neighbouring parts become one if every lane's address is that of
    lane ^ 1, or every lane's that of lane ^ 2 (8 bytes: over the warp; 16 bytes: over a half warp)."""
    total = 0
    for s in range(0, len(offsets), 32):
        lanes = [int(o) for o in offsets[s:s + 32]]
        size = {8: 16, 16: 8}.get(width, 32)
        parts, p = [], 0
        while p < 32:
            both = lanes[p:p + 2 * size]
            merged = size < 32 and any(all(both[i] == both[i ^ x] for i in range(len(both))) for x in (1, 2))
            parts.append(both if merged else lanes[p:p + size])
            if size < 32 and not merged:
                parts.append(lanes[p + size:p + 2 * size])
            p += 2 * size if size < 32 else 32
        for part in parts:
            banks = [0] * 32
            for word in {(o + b) // 4 for o in part for b in range(0, max(width, 4), 4)}:
                banks[word % 32] += 1
            total += max(banks)
    return total


def atomic_wavefronts(offsets, one):
    """red and atom in shared memory: the lanes of the busiest bank; adding the constant 1: its distinct words."""
    lanes = lambda s: [int(o) // 4 for o in offsets[s:s + 32]]
    return sum(max(np.bincount([w % 32 for w in (set(lanes(s)) if one else lanes(s))])) for s in range(0, len(offsets), 32))


def atomic_sectors(offsets):
    """red in global memory: each sector counts as often as its busiest word has lanes."""
    total = 0
    for s in range(0, len(offsets), 32):
        words = [int(o) // 4 for o in offsets[s:s + 32]]
        total += sum(max(words.count(w) for w in words if w // 8 == sector) for sector in {w // 8 for w in words})
    return total


def main():
    cases, counters = sys.argv[1], json.load(open(sys.argv[2]))
    counters = counters.get("small", counters)
    wrong = 0
    for name in sorted(n for n in counters if n.startswith("count_")):
        c, width = counters[name]["counters"], BYTES.get(name.split("_")[-1])
        table = json.load(open(f"{cases}/{name}.json"))["arguments"][0]["buffer"]
        offsets = np.frombuffer(base64.b64decode(table), np.int32)
        if "atom_shared" in name:
            pair = c["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom"], atomic_wavefronts(offsets, "_one_" in name)
        elif "atom_global" in name:
            pair = c["l1tex__t_sectors_pipe_lsu_mem_global_op_red"], atomic_sectors(offsets)
        elif "_load_" in name:  # the table itself is loaded too
            pair = c["l1tex__t_sectors_pipe_lsu_mem_global_op_ld"], sectors(offsets, width) + sectors(np.arange(len(offsets)) * 4, 4)
        elif "_store_" in name:
            pair = c["l1tex__t_sectors_pipe_lsu_mem_global_op_st"], sectors(offsets, width)
        else:
            pair = c["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld"], wavefronts(offsets, width)
            stored = c["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st"] - 64  # 16 stores of 4 warps fill the tile
            wrong += stored not in (0, pair[1])
        wrong += pair[0] != pair[1]
        print(name, *pair, "" if pair[0] == pair[1] else "DIFFERS")
    print(wrong, "differ")


main()
