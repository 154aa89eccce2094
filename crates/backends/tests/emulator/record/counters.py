#!/usr/bin/env python3
"""Hardware counters of cases with Nsight Compute: counters.py FOLDER OUT.json NAME..; one launch per case, in order."""
import csv, io, json, re, subprocess, sys, os

WANTED = r"""l1tex__t_(requests|sectors)_pipe_lsu_mem_global_op_(ld|st|red|atom|ldgsts)$
l1tex__t_(requests|sectors)_pipe_lsu_mem_global_op_ldgsts_cache_(access|bypass)$
l1tex__t_(requests|sectors)_pipe_lsu_mem_local_op_(ld|st)$
l1tex__data_bank_conflicts_pipe_lsu_mem_shared(_op_(ld|st|atom|ldgsts|ldsm))?$
l1tex__data_pipe_lsu_wavefronts_mem_shared(_op_(ld|st|atom|ldgsts|ldsm))?$
smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared(_op_(ld|st|ldgsts|ldsm))?$
smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared(_op_(ld|st|ldgsts|ldsm))?(_ideal)?$
l1tex__data_pipe_lsu_wavefronts$
smsp__(thread_)?inst_executed$
smsp__inst_executed_op_(shared_ld|shared_st|shared_atom|global_ld|global_st|global_red|global_atom|ldgsts|ldsm|local_ld|local_st|branch|shared|global|generic)$
smsp__inst_executed_pipe_(tensor|tensor_op_hmma|xu|fma|alu|lsu)$
smsp__sass_thread_inst_executed_op_(ffma|fadd|fmul|dfma|hfma|integer|fp32|fp16|conversion|control|memory|bit|inter_thread_communication|misc|uniform)_pred_on$
sm__inst_executed_pipe_tensor(_op_hmma)?$
sm__ops_path_tensor_src_(bf16|fp16|tf32)_dst_fp32$
dram__bytes_(read|write)$
lts__t_sectors_op_(read|write|atom|red)$
smsp__sass_average_branch_targets_threads_uniform$""".split("\n")


def main():
    folder, path, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    query = subprocess.run(["ncu", "--query-metrics"], capture_output=True, text=True)
    have = [l.split()[0] for l in query.stdout.splitlines() if l and "__" in l.split()[0]]
    metrics = sorted(m + ".sum" for m in set(have) if any(re.match(w, m) for w in WANTED))
    print(len(have), "metrics known,", len(metrics), "asked for", query.stderr[:300], flush=True)
    here = os.path.dirname(os.path.abspath(__file__))
    command = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base", "--metrics", ",".join(metrics),
               sys.executable, f"{here}/record.py", "launch", folder] + names
    done = subprocess.run(command, capture_output=True, text=True)
    launched = re.findall(r"^launched (\S+)", done.stdout, re.M)
    for line in re.findall(r"^(?:failed|==ERROR==).*", done.stdout + done.stderr, re.M)[:20]:
        print(line)
    start = done.stdout.find('"ID"')
    table = [r for r in csv.DictReader(io.StringIO(done.stdout[start:])) if r["ID"].strip().isdigit()] if start >= 0 else []
    if not table:
        print(done.stdout[-3000:], done.stderr[-3000:])
    out = {}
    for name, row in zip(launched, table):
        values = {}
        for m in metrics:
            text = (row.get(m) or "").replace(",", "")
            try:
                values[m[:-4]] = int(float(text))
            except ValueError:
                pass
        case = json.load(open(f"{folder}/{name}.json"))
        out[name] = {"grid": case["grid"], "block": case["block"], "counters": values}
    json.dump(out, open(path, "w"), indent=0)
    print(len(launched), "launched,", len(table), "rows")


main()
