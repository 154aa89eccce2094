#!/usr/bin/env python3
"""merge.py CASES RESULTS VECTORS VECTORS_SM90A: cases with the recorded results, in the form the repository keeps. RESULTS is an unpacked
cases.tar.gz with device.txt. Cases of wgmma, TMA and fp8 products go to VECTORS_SM90A, all others to VECTORS."""
import base64, json, os, re, shutil, sys

cases, results, *folders = sys.argv[1:5]
device, driver = open(f"{results}/device.txt").read().strip().split(", ")[:2]
for folder in folders:
    os.makedirs(folder, exist_ok=True)
total = [0, 0]
for file in sorted(os.listdir(cases)):
    if not file.endswith(".json"):
        continue
    name = file[:-5]
    case = json.load(open(f"{cases}/{file}"))
    for i in case["results"]:
        path = f"{results}/{name}.{i}"
        if not os.path.exists(path):
            print("no result:", name)
            break
        case["results"][i] = base64.b64encode(open(path, "rb").read()).decode()
    else:
        case["device"], case["driver"] = device, driver
        which = int(bool(re.match("wgmma_|tma_|c[78]_|mma_.*e[45]m", name)))
        vectors = folders[which]
        text = json.dumps(case, separators=(",", ":"))
        with open(f"{vectors}/{name}.json", "w") as out:
            out.write(text + "\n")
        shutil.copy(f"{cases}/{name}.ptx", f"{vectors}/{name}.ptx")
        total[which] += len(text) + 1 + os.path.getsize(f"{cases}/{name}.ptx")
print(total, "bytes")
