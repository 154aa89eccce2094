/*
 * What some processors have instructions for and others do not: rounding to integers, fused
 * multiply-add, and conversions from and to the 16-bit formats.
 *
 * Where the target of a module lacks an instruction, the compiler puts tc_soft_<name> in the
 * place of LLVM's intrinsic <name>, which would become a call of the C library. The
 * conversions get the names that LLVM calls such functions by. All are exact, or
 * rounded to nearest even from the exact value.
 */

#include "common.h"

/* ---- to integers ---- */

VECTOR double tc_soft_roundeven_f64(double x) {
    return nearest(x);
}

VECTOR double tc_soft_floor_f64(double x) {
    double r = nearest(x);
    return r > x ? r - 1 : r;
}

VECTOR double tc_soft_ceil_f64(double x) {
    return -tc_soft_floor_f64(-x);
}

VECTOR double tc_soft_trunc_f64(double x) {
    return flip_sign(tc_soft_floor_f64(magnitude(x)), x);
}

/* Halves go away from zero. */
VECTOR double tc_soft_round_f64(double x) {
    double a = magnitude(x), t = tc_soft_floor_f64(a);
    return flip_sign(a - t >= 0.5 ? t + 1 : t, x);
}

VECTOR float tc_soft_roundeven_f32(float x) {
    float a = __builtin_fabsf(x), r = (a + 0x1p+23f) - 0x1p+23f;
    return flip_sign_f32(a < 0x1p+23f ? r : a, x);
}

VECTOR float tc_soft_floor_f32(float x) {
    float r = tc_soft_roundeven_f32(x);
    return r > x ? r - 1 : r;
}

VECTOR float tc_soft_ceil_f32(float x) {
    return -tc_soft_floor_f32(-x);
}

VECTOR float tc_soft_trunc_f32(float x) {
    return flip_sign_f32(tc_soft_floor_f32(__builtin_fabsf(x)), x);
}

VECTOR float tc_soft_round_f32(float x) {
    float a = __builtin_fabsf(x), t = tc_soft_floor_f32(a);
    return flip_sign_f32(a - t >= 0.5f ? t + 1 : t, x);
}

/* ---- fused multiply-add ---- */

/*
 * The product is exact in double. If the sum is not, its last bit is made odd, by which
 * the rounding to float sees on what side of a tie it lies (Boldo and Melquiond, "Emulation
 * of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
 */
VECTOR float tc_soft_fma_f32(float x, float y, float z) {
    dd sum = two_sum((double)x * y, z);
    uint64_t bits = bits_of(sum.hi);
    int inexact = magnitude(sum.lo) > 0; /* no where the sum is infinite: lo is NaN then */
    uint64_t odd = is_negative(sum.hi) == is_negative(sum.lo) ? bits + 1 : bits - 1;
    return (float)from_bits(inexact && (bits & 1) == 0 ? odd : bits);
}

/* v 2^-n, its last bit set if anything is lost */
static u128 shift_right(u128 v, int n) {
    if (n > 127)
        return v != 0;
    u128 kept = v >> n;
    return kept | (kept << n != v);
}

/* x = m 2^e with 2^52 <= |m| < 2^53, for x finite and not zero */
static uint64_t mantissa_of(double x, int *e) {
    *e = exponent(x) - 52;
    return (bits_of(scale(x, -*e - 10)) & UINT64_C(0xfffffffffffff)) | UINT64_C(1) << 52;
}

double tc_soft_fma_f64(double x, double y, double z) {
    if (!(magnitude(x) < INFINITY && magnitude(y) < INFINITY) || x == 0 || y == 0)
        return x * y + z;
    if (!(magnitude(z) < INFINITY))
        return z;
    if (z == 0)
        return x * y;
    int ex, ey, ez;
    uint64_t mx = mantissa_of(x, &ex), my = mantissa_of(y, &ey), mz = mantissa_of(z, &ez);
    /* Both as integers below 2^126 times 2^e, one of them shortened if they are far apart. */
    u128 product = (u128)mx * my, addend = mz;
    int e = ex + ey, difference = ez - e;
    if (difference > 73) {
        product = shift_right(product, difference - 73);
        e += difference - 73;
        difference = 73;
    }
    addend = difference >= 0 ? addend << difference : shift_right(addend, -difference);
    int negative = is_negative(x) != is_negative(y), opposite = negative != is_negative(z);
    u128 sum;
    if (!opposite) {
        sum = product + addend;
    } else if (product >= addend) {
        sum = product - addend;
    } else {
        sum = addend - product;
        negative = !negative;
    }
    if (sum == 0)
        return 0;
    /* The highest 64 bits, the last of them set if there are more. */
    uint64_t high = (uint64_t)(sum >> 64), low = (uint64_t)sum;
    int zeros = high != 0 ? __builtin_clzll(high) : 64 + __builtin_clzll(low);
    sum <<= zeros;
    uint64_t top = (uint64_t)(sum >> 64) | ((uint64_t)sum != 0);
    e += 64 - zeros;
    /* As many as the result has: fewer if it is subnormal. */
    int drop = e + 11 < -1074 ? -1074 - e : 11;
    if (drop > 64)
        return negative ? -0.0 : 0.0;
    uint64_t kept = drop < 64 ? top >> drop : 0;
    uint64_t rest = drop < 64 ? top - (kept << drop) : top, half = UINT64_C(1) << (drop - 1);
    kept += rest > half || (rest == half && (kept & 1));
    double r = scale((double)kept, e + drop);
    return negative ? -r : r;
}

/* ---- 16-bit formats ---- */

static _Float16 half_from_bits(uint32_t bits) {
    union { uint16_t bits; _Float16 number; } u = {(uint16_t)bits};
    return u.number;
}

_Float16 tc_soft_truncsfhf2(float x) {
    uint32_t bits = bits_of_f32(x), sign = bits >> 16 & 0x8000, a = bits & ~SIGN_BIT_F32;
    if (a > 0x7f800000)
        return half_from_bits(sign | 0x7e00 | (a >> 13 & 0x3ff));
    if (a >= 0x477ff000) /* 65520 */
        return half_from_bits(sign | 0x7c00);
    if (a < 0x38800000) /* 2^-14: the last place of a sum from 1/2 on is that of a subnormal */
        return half_from_bits(sign | (bits_of_f32(from_bits_f32(a) + 0.5f) - 0x3f000000));
    return half_from_bits(sign | ((a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13));
}

/* Through a float whose last bit is odd where it is not exact. */
_Float16 tc_soft_truncdfhf2(double x) {
    float y = (float)x;
    uint32_t bits = bits_of_f32(y);
    if (magnitude(x) < INFINITY && y != x && (bits & 1) == 0)
        bits = magnitude(y) < magnitude(x) ? bits + 1 : bits - 1;
    return tc_soft_truncsfhf2(from_bits_f32(bits));
}

float tc_soft_extendhfsf2(_Float16 x) {
    union { _Float16 number; uint16_t bits; } u = {x};
    uint32_t sign = (uint32_t)(u.bits & 0x8000) << 16, a = u.bits & 0x7fff;
    if (a < 0x400)
        return from_bits_f32(sign | bits_of_f32((float)(int32_t)a * 0x1p-24f));
    uint32_t bias = a < 0x7c00 ? 112 : 224;
    return from_bits_f32(sign | ((a << 13) + (bias << 23)));
}

static __bf16 bf16_from_bits(uint32_t bits) {
    union { uint16_t bits; __bf16 number; } u = {(uint16_t)bits};
    return u.number;
}

__bf16 tc_soft_truncsfbf2(float x) {
    uint32_t bits = bits_of_f32(x);
    if (x != x)
        return bf16_from_bits(bits >> 16 | 0x40);
    return bf16_from_bits((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

__bf16 tc_soft_truncdfbf2(double x) {
    float y = (float)x;
    uint32_t bits = bits_of_f32(y);
    if (magnitude(x) < INFINITY && y != x && (bits & 1) == 0)
        bits = magnitude(y) < magnitude(x) ? bits + 1 : bits - 1;
    return tc_soft_truncsfbf2(from_bits_f32(bits));
}
