#!/bin/bash
# On the machine with the GPU: OUT=FOLDER run.sh all|small|sanitize. The folder build/ lies beside this script.
cd "$(dirname "$0")" || exit 1
build=$PWD/build
mkdir -p "$OUT"
scratch=$(mktemp -d)
export PYTHONUNBUFFERED=1
PATH=$PATH:/usr/local/cuda/bin
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | tee "$OUT/device.txt"
list() { (cd "$1" && ls | sed -n 's/\.json$//p' | grep -E "$2"); }
counted='^(count_|c[1-7]b?_|ldmatrix|stmatrix|cp_async|atom_(shared|global)_(u32|f32)|flow_|atom_contended|mma_m16n8k16_f32_bf16|memory_)'
record() { timeout 100 python3 record.py run "$build/$1" "$OUT/$1.tar.gz"; }
case "$1" in
all)
  (nvcc -O2 -gencode=arch=compute_90a,code=sm_90a -o "$scratch/approximate" approximate.cu 2>&1; echo "nvcc $?") &
  record cases; record dense; record faults
  wait
  timeout 60 "$scratch/approximate" | tee "$OUT/approximate.txt"
  timeout 150 python3 counters.py "$build/cases" "$OUT/counters.json" $(list "$build/cases" "$counted")
  timeout 90 python3 counters.py "$build/large" "$OUT/counters_large.json" $(list "$build/large" .)
  ;;
small)
  record cases; record faults
  timeout 150 python3 counters.py "$build/cases" "$OUT/counters.json" $(list "$build/cases" "$counted")
  ;;
sanitize)
  for tool in memcheck racecheck; do
    timeout 100 compute-sanitizer --tool $tool python3 record.py launch "$build/cases" $(list "$build/cases" '^[^m]|^m[^m]') > "$OUT/$tool.txt" 2>&1
    grep -E "SUMMARY|failed" "$OUT/$tool.txt"
  done
  ;;
esac
rm -r "$scratch"
