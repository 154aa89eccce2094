/*
 * Exact functions: rounding to integers, remainders, neighbours, minimum and maximum, and
 * what is one operation of IEEE arithmetic.
 */

#include "common.h"

/* ---- one instruction where the processor has it ---- */

#define INSTRUCTION_1(name) \
    VECTOR double tc_##name##_f64(double x) { return __builtin_##name(x); } \
    VECTOR float tc_##name##_f32(float x) { return __builtin_##name##f(x); }

INSTRUCTION_1(ceil)
INSTRUCTION_1(fabs)
INSTRUCTION_1(floor)
INSTRUCTION_1(trunc)

VECTOR double tc_copysign_f64(double x, double y) {
    return __builtin_copysign(x, y);
}

VECTOR float tc_copysign_f32(float x, float y) {
    return __builtin_copysignf(x, y);
}

VECTOR double tc_fma_f64(double x, double y, double z) {
    return __builtin_fma(x, y, z);
}

VECTOR float tc_fma_f32(float x, float y, float z) {
    return __builtin_fmaf(x, y, z);
}

VECTOR double tc_fdivide_f64(double x, double y) {
    return x / y;
}

VECTOR float tc_fdivide_f32(float x, float y) {
    return x / y;
}

/* ---- the same text in both widths ---- */

/* Halves go away from zero. The difference is exact. */
#define ROUND(suffix, type, builtin) \
    VECTOR type tc_round_##suffix(type x) { \
        type t = __builtin_trunc##builtin(x); \
        type away = t + __builtin_copysign##builtin(1, x); \
        return __builtin_fabs##builtin(x - t) >= (type)0.5 ? away : t; \
    }

ROUND(f64, double, )
ROUND(f32, float, f)

/* Minimum and maximum: NaN counts as missing, and -0 < +0. */
#define EXTREMA(suffix, type, negative) \
    VECTOR type tc_fmax_##suffix(type x, type y) { \
        type equal = negative(x) ? y : x; \
        type other = x > y || y != y ? x : y; \
        return x == y ? equal : other; \
    } \
    VECTOR type tc_fmin_##suffix(type x, type y) { \
        type equal = negative(x) ? x : y; \
        type other = x < y || y != y ? x : y; \
        return x == y ? equal : other; \
    }

ALWAYS_INLINE int is_negative_f32(float x) {
    return bits_of_f32(x) >> 31 != 0;
}

EXTREMA(f64, double, is_negative)
EXTREMA(f32, float, is_negative_f32)

VECTOR double tc_fdim_f64(double x, double y) {
    return x <= y ? 0 : x - y; /* a difference that is NaN where one of the two is */
}

VECTOR float tc_fdim_f32(float x, float y) {
    return x <= y ? 0 : x - y;
}

double tc_logb_f64(double x) {
    if (x == 0)
        return -INFINITY;
    if (!(magnitude(x) < INFINITY))
        return x * x;
    return exponent(x);
}

/* The number after x towards y: bits of numbers of one sign are in their order. */
#define NEXTAFTER(suffix, type, bits_type, to_bits, to_number, sign) \
    type tc_nextafter_##suffix(type x, type y) { \
        if (x != x || y != y) \
            return x + y; \
        if (x == y) \
            return y; \
        bits_type bits = to_bits(x); \
        if (x == 0) \
            return to_number((to_bits(y) & sign) | 1); \
        return to_number((x < y) == (x > 0) ? bits + 1 : bits - 1); \
    }

NEXTAFTER(f64, double, uint64_t, bits_of, from_bits, SIGN_BIT)
NEXTAFTER(f32, float, uint32_t, bits_of_f32, from_bits_f32, SIGN_BIT_F32)

/* ---- remainders ---- */

/* |x| = m 2^(e - 1075) with m < 2^53 and, if x is normal, m >= 2^52 */
static uint64_t integer_parts(double x, int *e) {
    uint64_t bits = bits_of(x) & ~SIGN_BIT;
    int field = (int)(bits >> 52);
    *e = field == 0 ? 1 : field;
    uint64_t m = bits & UINT64_C(0xfffffffffffff);
    return field == 0 ? m : m | UINT64_C(0x10000000000000);
}

/* m 2^(e - 1075) for m < 2^53 and e >= 1, which is a number */
static double from_integer_parts(uint64_t m, int e) {
    if (m == 0)
        return 0;
    int shift = __builtin_clzll(m) - 11;
    shift = shift < e - 1 ? shift : e - 1;
    m <<= shift;
    e -= shift;
    return from_bits(m >> 52 == 0 ? m : (m & UINT64_C(0xfffffffffffff)) | (uint64_t)e << 52);
}

/* Long division, 11 bits at a time. */
double tc_fmod_f64(double x, double y) {
    double a = magnitude(x), b = magnitude(y);
    if (!(a < INFINITY) || !(b > 0))
        return NAN;
    if (a < b) /* an infinite y too */
        return x;
    int e, divisor_e;
    uint64_t m = integer_parts(a, &e), divisor = integer_parts(b, &divisor_e);
    m %= divisor;
    for (int left = e - divisor_e; left > 0 && m != 0;) {
        int step = left < 11 ? left : 11;
        m = (m << step) % divisor;
        left -= step;
    }
    return flip_sign(from_integer_parts(m, divisor_e), x);
}

/* The remainder of two floats is a float. */
float tc_fmod_f32(float x, float y) {
    return (float)tc_fmod_f64(x, y);
}

/* To the nearest integer quotient, ties to even: from the remainder modulo 2 y. */
double tc_remainder_f64(double x, double y) {
    double a = magnitude(x), b = magnitude(y);
    if (!(a < INFINITY) || !(b > 0))
        return NAN;
    if (b < 0x1p+1023)
        a = magnitude(tc_fmod_f64(a, 2 * b));
    /* Comparisons with b/2, exact where b is subnormal and where a is large. */
    int small = b < 0x1p-1000;
    if (small ? a + a > b : a > 0.5 * b) {
        a -= b;
        if (small ? a + a >= b : a >= 0.5 * b)
            a -= b;
    }
    return a == 0 ? flip_sign(0, x) : flip_sign(a, x);
}

float tc_remainder_f32(float x, float y) {
    return (float)tc_remainder_f64(x, y);
}

float tc_logb_f32(float x) {
    return (float)tc_logb_f64(x);
}
