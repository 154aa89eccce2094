// Largest errors of the approximate instructions over all 2^32 inputs, against double precision.
// nvcc -O2 -gencode=arch=compute_90a,code=sm_90a -o approximate approximate.cu
#include <cstdint>
#include <cstdio>
#include <cmath>
#include <cstring>

enum Op { EX2, EX2F, LG2, RCP, RCPF, RSQRT, SQRT, SQRTF, SIN, COS, TANH, DIVA, DIVF, COUNT };
static const char *names[COUNT] = {"ex2.approx.f32", "ex2.approx.ftz.f32", "lg2.approx.f32", "rcp.approx.f32", "rcp.approx.ftz.f32", "rsqrt.approx.f32", "sqrt.approx.f32",
                                   "sqrt.approx.ftz.f32", "sin.approx.f32", "cos.approx.f32", "tanh.approx.f32", "div.approx.f32", "div.full.f32"};
struct Result { unsigned long long abs[4], rel[4], ulp[4], wrong, finite; };

__device__ uint64_t hash(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull; x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull; x = (x ^ (x >> 27)) * 0x94d049bb133111ebull; return x ^ (x >> 31);
}
__device__ void worst(unsigned long long *slot, double error, uint32_t input) {
  unsigned long long key = ((unsigned long long)__float_as_uint((float)error) << 32) | input;
  if (key > *(volatile unsigned long long *)slot) atomicMax(slot, key);
}
template <int OP> __global__ void all(Result *result) {
  for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < (1ull << 32); i += (uint64_t)gridDim.x * blockDim.x) {
    uint32_t bits = (uint32_t)i;
    float x = __uint_as_float(bits), y, b = 1;
    double r, a = x;
    int zone = 0;
    bool small = fabs(a) < 0x1p-126;
#define ASM(op) asm volatile(op " %0, %1;" : "=f"(y) : "f"(x))
    if (OP == EX2 || OP == EX2F) { if (OP == EX2) ASM("ex2.approx.f32"); else ASM("ex2.approx.ftz.f32"); r = exp2(a); zone = r < 0x1p-126; }
    if (OP == LG2) { ASM("lg2.approx.f32"); r = log2(a); zone = a > 0.5 && a < 2 ? 0 : small ? 2 : 1; }
    if (OP == RCP || OP == RCPF) { if (OP == RCP) ASM("rcp.approx.f32"); else ASM("rcp.approx.ftz.f32"); r = 1 / a; zone = small ? 1 : fabs(r) < 0x1p-126 ? 2 : 0; }
    if (OP == RSQRT) { ASM("rsqrt.approx.f32"); r = rsqrt(a); zone = small; }
    if (OP == SQRT || OP == SQRTF) { if (OP == SQRT) ASM("sqrt.approx.f32"); else ASM("sqrt.approx.ftz.f32"); r = sqrt(a); zone = small; }
    if (OP == SIN || OP == COS) { if (OP == SIN) { ASM("sin.approx.f32"); r = sin(a); } else { ASM("cos.approx.f32"); r = cos(a); }
      zone = small ? 3 : fabs(a) <= 6.283185307179586 ? 0 : fabs(a) <= 314.1592653589793 ? 1 : 2; }
    if (OP == TANH) { ASM("tanh.approx.f32"); r = tanh(a); zone = small; }
    if (OP == DIVA || OP == DIVF) {
      uint64_t h = hash(i); x = __uint_as_float((uint32_t)h); b = __uint_as_float((uint32_t)(h >> 32)); a = x;
      if (OP == DIVA) asm volatile("div.approx.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(b)); else asm volatile("div.full.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(b));
      r = a / (double)b; bits = (uint32_t)i;
      zone = !(fabs((double)b) >= 0x1p-126 && fabs((double)b) <= 0x1p126) ? 1 : fabs(a) < 0x1p-126 ? 2 : fabs(r) < 0x1p-126 ? 3 : 0;
    }
    float nearest = (float)r;
    if (nearest != nearest || isinf(nearest) || isnan(a) || isnan(b)) {
      if (!((nearest != nearest && y != y) || nearest == y)) atomicAdd(&result->wrong, 1ull);
      continue;
    }
    double e = fabs((double)y - r);
    int exponent; frexp(nearest == 0 ? 0x1p-149 : (double)nearest, &exponent);
    double ulp = ldexp(1.0, max(exponent - 24, -149));
    worst(&result->abs[zone], e, bits);
    if (r != 0) worst(&result->rel[zone], e / fabs(r), bits);
    worst(&result->ulp[zone], e / ulp, bits);
  }
}
static float high(unsigned long long key) { uint32_t b = key >> 32; float f; memcpy(&f, &b, 4); return f; }
template <int OP> void go(Result *device) {
  if constexpr (OP < COUNT) {
    Result host;
    cudaMemset(device, 0, sizeof host);
    all<OP><<<132 * 8, 256>>>(device);
    cudaError_t e = cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost);
    if (e) printf("%s: %s\n", names[OP], cudaGetErrorString(e));
    for (int z = 0; z < 4; z++)
      if (host.ulp[z])
        printf("%s zone %d: abs 2^%.3f (%g at %08x) rel 2^%.3f (at %08x) ulp %.4f (at %08x)\n", names[OP], z, log2(high(host.abs[z])), high(host.abs[z]), (uint32_t)host.abs[z],
               log2(high(host.rel[z])), (uint32_t)host.rel[z], high(host.ulp[z]), (uint32_t)host.ulp[z]);
    printf("%s: %llu results differ where the exact one rounds to infinity or is NaN\n", names[OP], host.wrong);
    fflush(stdout);
    go<OP + 1>(device);
  }
}
int main() {
  Result *device;
  cudaMalloc(&device, sizeof *device);
  go<0>(device);
}
