/*
 * What all of the built-ins share: the bits of numbers, exact scaling, polynomials, and
 * double-double arithmetic.
 *
 * Nothing here or in the files that include it refers to anything outside of them. What
 * is written __builtin_.. is one instruction: for targets without it, the compiler puts
 * the function of soft.c in its place.
 *
 * Sources: Dekker, "A floating-point technique for extending the available precision",
 * 1971; Muller, "Elementary Functions", 3rd edition, chapter 11 (rounding to an integer by
 * adding a large number).
 */

#ifndef TC_COMMON_H
#define TC_COMMON_H

#include <stdint.h>

#include "tables.h"

/* Contraction would break the error-free sums. */
#pragma STDC FP_CONTRACT OFF

__extension__ typedef unsigned __int128 u128;

#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* A built-in that is taken apart wherever it is called, so that loops become vectors. */
#define VECTOR __attribute__((always_inline))

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define POLY(table, x) poly(table, COUNT(table), x)
#define POLY_F32(table, x) poly_f32(table, COUNT(table), x)

static const double SQRT_2 = 0x1.6a09e667f3bcdp+0;
static const double SQRT_HALF = 0x1.6a09e667f3bcdp-1;
static const double INV_SQRT_PI = 0x1.20dd750429b6dp-1;
static const double TWO_OVER_PI_D = 0x1.45f306dc9c883p-1;
static const double LOG_SQRT_2PI = 0x1.d67f1c864beb5p-1;

/* ---- the bits of numbers ---- */

ALWAYS_INLINE uint64_t bits_of(double x) {
    union { double number; uint64_t bits; } u = {x};
    return u.bits;
}

ALWAYS_INLINE double from_bits(uint64_t bits) {
    union { uint64_t bits; double number; } u = {bits};
    return u.number;
}

ALWAYS_INLINE uint32_t bits_of_f32(float x) {
    union { float number; uint32_t bits; } u = {x};
    return u.bits;
}

ALWAYS_INLINE float from_bits_f32(uint32_t bits) {
    union { uint32_t bits; float number; } u = {bits};
    return u.number;
}

#define SIGN_BIT (UINT64_C(1) << 63)
#define SIGN_BIT_F32 (UINT32_C(1) << 31)

ALWAYS_INLINE double magnitude(double x) {
    return __builtin_fabs(x);
}

/* y with its sign changed where x has one */
ALWAYS_INLINE double flip_sign(double y, double x) {
    return from_bits(bits_of(y) ^ (bits_of(x) & SIGN_BIT));
}

ALWAYS_INLINE float flip_sign_f32(float y, float x) {
    return from_bits_f32(bits_of_f32(y) ^ (bits_of_f32(x) & SIGN_BIT_F32));
}

ALWAYS_INLINE int is_negative(double x) {
    return bits_of(x) >> 63 != 0;
}

/* ---- integers and powers of two ---- */

/* x + MAGIC is rounded to an integer, whose lowest bits are the lowest of the sum. */
#define MAGIC 0x1.8p+52
#define MAGIC_F32 0x1.8p+23f

/* the integer nearest to x, for any x; -0.25 gives -0 */
ALWAYS_INLINE double nearest(double x) {
    double a = magnitude(x), r = (a + 0x1p+52) - 0x1p+52;
    return flip_sign(a < 0x1p+52 ? r : a, x);
}

/* 2^n for an integer -1023 < n < 1024, or something arbitrary for NaN */
ALWAYS_INLINE double power_of_2(double n) {
    return from_bits((bits_of(n + MAGIC) + 1023) << 52);
}

ALWAYS_INLINE float power_of_2_f32(float n) {
    return from_bits_f32((bits_of_f32(n + MAGIC_F32) + 127) << 23);
}

/* x 2^n for an integer n of at most 2044, rounded once if x is normal and not tiny */
ALWAYS_INLINE double scale(double x, double n) {
    double half = (0.5 * n + MAGIC) - MAGIC;
    return x * power_of_2(half) * power_of_2(n - half);
}

ALWAYS_INLINE float scale_f32(float x, float n) {
    float half = (0.5f * n + MAGIC_F32) - MAGIC_F32;
    return x * power_of_2_f32(half) * power_of_2_f32(n - half);
}

/* floor(log2 |x|) for x finite and not zero */
static int exponent(double x) {
    uint64_t bits = bits_of(x) & ~SIGN_BIT;
    if (bits >> 52 != 0)
        return (int)(bits >> 52) - 1023;
    return -1011 - __builtin_clzll(bits);
}

/* ---- polynomials: sum table[k] x^k ---- */

/* x y + z with one rounding or two, whatever is faster */
ALWAYS_INLINE double muladd(double x, double y, double z) {
#pragma STDC FP_CONTRACT ON
    return x * y + z;
}

ALWAYS_INLINE float muladd_f32(float x, float y, float z) {
#pragma STDC FP_CONTRACT ON
    return x * y + z;
}

ALWAYS_INLINE double poly(const double *table, int n, double x) {
    double s = table[n - 1];
#pragma unroll
    for (int k = n - 2; k >= 0; k--)
        s = muladd(s, x, table[k]);
    return s;
}

ALWAYS_INLINE float poly_f32(const float *table, int n, float x) {
    float s = table[n - 1];
#pragma unroll
    for (int k = n - 2; k >= 0; k--)
        s = muladd_f32(s, x, table[k]);
    return s;
}

/* ---- double-double arithmetic: hi + lo, |lo| at most half an ulp of hi ---- */

typedef struct {
    double hi, lo;
} dd;

/* a + b without error */
ALWAYS_INLINE dd two_sum(double a, double b) {
    double s = a + b;
    double t = s - a;
    return (dd){s, (a - (s - t)) + (b - t)};
}

/* a + b without error where |a| >= |b| */
ALWAYS_INLINE dd fast_two_sum(double a, double b) {
    double s = a + b;
    return (dd){s, b - (s - a)};
}

ALWAYS_INLINE dd two_prod(double a, double b) {
    double p = a * b;
    return (dd){p, __builtin_fma(a, b, -p)};
}

static dd dd_add(dd a, dd b) {
    dd s = two_sum(a.hi, b.hi), t = two_sum(a.lo, b.lo);
    s = fast_two_sum(s.hi, s.lo + t.hi);
    return fast_two_sum(s.hi, s.lo + t.lo);
}

static dd dd_mul(dd a, dd b) {
    dd p = two_prod(a.hi, b.hi);
    return fast_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

static dd dd_mul_d(dd a, double b) {
    dd p = two_prod(a.hi, b);
    return fast_two_sum(p.hi, __builtin_fma(a.lo, b, p.lo));
}

static dd dd_add_d(dd a, double b) {
    dd s = two_sum(a.hi, b);
    return fast_two_sum(s.hi, s.lo + a.lo);
}

/* a / b */
static dd dd_div(dd a, dd b) {
    double q = a.hi / b.hi;
    double r = __builtin_fma(-q, b.hi, a.hi) + (a.lo - q * b.lo);
    return fast_two_sum(q, r / b.hi);
}

/* 1 / a as dd */
static dd dd_inverse(dd a) {
    double q = 1 / a.hi;
    double r = __builtin_fma(-q, a.hi, 1) - q * a.lo;
    return fast_two_sum(q, q * r);
}

#endif
