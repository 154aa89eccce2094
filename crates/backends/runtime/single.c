/*
 * Single precision.
 *
 * The functions that loops are full of have no branches, calls or tables, so that loops
 * over them become vectors: exp, exp2, expm1, log, log1p, tanh and erf calculate with floats
 * only, log2, pow, sin, cos and tan in double. All others round the function in double, whose
 * error of some 2^-52 leaves little more than half an ulp. The worst that was found are
 * expm1 and rsqrt with 1.5 ulp (make math-accuracy tries all floats).
 */

#include "common.h"

/* ---- with floats ---- */

/* exp(x) = 2^k (1 + rest) for |x| <= 104 */
typedef struct {
    float rest, k;
} exponential_f32;

ALWAYS_INLINE exponential_f32 exp_parts_f32(float x) {
    float k = (x * (float)LOG2_E_HI + MAGIC_F32) - MAGIC_F32;
    float r = (x - k * LOG_2_F32[0]) - k * LOG_2_F32[1]; /* the first product is exact */
    return (exponential_f32){muladd_f32(r * r, POLY_F32(EXP_F32, r), r), k};
}

ALWAYS_INLINE float clamp_f32(float x, float least, float most) {
    x = x < least ? least : x;
    return x > most ? most : x;
}

VECTOR float tc_exp_f32(float x) {
    exponential_f32 e = exp_parts_f32(clamp_f32(x, -104, 89));
    return scale_f32(1 + e.rest, e.k);
}

VECTOR float tc_exp2_f32(float x) {
    x = clamp_f32(x, -151, 129);
    float k = (x + MAGIC_F32) - MAGIC_F32, f = x - k;
    return scale_f32(muladd_f32(f, POLY_F32(EXP2_F32, f), 1), k);
}

VECTOR float tc_expm1_f32(float x) {
    exponential_f32 e = exp_parts_f32(clamp_f32(x, -20, 89));
    float half = power_of_2_f32(e.k - 1);
    float r = 2 * ((half - 0.5f) + half * e.rest);
    return __builtin_fabsf(x) < 0x1p-25f ? x : r;
}

VECTOR float tc_tanh_f32(float x) {
    float a = __builtin_fabsf(x);
    exponential_f32 e = exp_parts_f32(clamp_f32(2 * a, 0, 20));
    float large = 1 - 2 / (muladd_f32(power_of_2_f32(e.k), 1 + e.rest, 1));
    float z = a * a;
    float small = muladd_f32(a * z, POLY_F32(TANH_F32, z), a);
    return flip_sign_f32(a < 0.625f ? small : large, x);
}

/* x = 2^e (1 + f) with 1 + f in [sqrt 1/2, sqrt 2) */
typedef struct {
    float f, e;
} parts_f32;

/* for x positive and finite; something arbitrary for any other x */
ALWAYS_INLINE parts_f32 split_f32(float x) {
    const uint32_t one = 0x3f800000, root = 0x3f3504f3;
    int tiny = x < 0x1p-126f;
    uint32_t bits = bits_of_f32(tiny ? x * 0x1p+24f : x) + (one - root);
    float m = from_bits_f32((bits & 0x7fffff) + root);
    return (parts_f32){m - 1, (float)((int32_t)(bits >> 23) - (tiny ? 151 : 127))};
}

/* e log(2) + log(1 + f) */
ALWAYS_INLINE float log_f32(float f, float e) {
    float square = f * f;
    float rest = muladd_f32(square * f, POLY_F32(LOG_F32, f), -0.5f * square);
    return (muladd_f32(e, LOG_2_F32[1], rest) + f) + e * LOG_2_F32[0];
}

/* r for x positive and finite, and what logarithms are elsewhere */
ALWAYS_INLINE float log_special_f32(float x, float r) {
    r = x < INFINITY ? r : x; /* NaN too */
    r = x < 0 ? NAN : r;
    return x == 0 ? -INFINITY : r;
}

VECTOR float tc_log_f32(float x) {
    parts_f32 p = split_f32(x);
    return log_special_f32(x, log_f32(p.f, p.e));
}

VECTOR float tc_log1p_f32(float x) {
    float u = 1 + x, v = u - x;                         /* u + c = 1 + x */
    float c = (x - (u - v)) + (1 - v);
    parts_f32 p = split_f32(u);
    float unit = power_of_2_f32(p.e < 100 ? -p.e : -100); /* c does not matter then */
    float r = log_special_f32(u, log_f32(p.f + c * unit, p.e));
    return __builtin_fabsf(x) < 0x1p-25f ? x : r;
}

VECTOR float tc_erf_f32(float x) {
    float a = __builtin_fabsf(x), z = x * x;
    float small = muladd_f32(a, POLY_F32(ERF_F32, z), a);
    float b = clamp_f32(a, 1, 4);
    exponential_f32 e = exp_parts_f32(-POLY_F32(ERFC_LOG_F32, b - 1.5f));
    float large = 1 - (1 + e.rest) * power_of_2_f32(e.k);
    return flip_sign_f32(a < 1 ? small : large, x);
}

VECTOR float tc_sqrt_f32(float x) {
    return __builtin_sqrtf(x);
}

VECTOR float tc_rsqrt_f32(float x) {
    return 1 / __builtin_sqrtf(x);
}

/* ---- with doubles, without branches ---- */

/* log2(x) for x a positive float, to 2^-38 */
ALWAYS_INLINE double log2_narrow(double x) {
    parts p = split(x);
    double f = p.m - 1, s = f / (2 + f);
    return muladd(s, POLY(LOG2_NARROW, s * s), p.e);
}

/* 2^x for |x| <= 1000, to 2^-35 */
ALWAYS_INLINE double exp2_narrow(double x) {
    double k = (x + MAGIC) - MAGIC;
    return POLY(EXP2_NARROW, x - k) * power_of_2(k);
}

VECTOR float tc_log2_f32(float x) {
    return log_special_f32(x, (float)log2_narrow(x));
}

VECTOR float tc_pow_f32(float x, float y) {
    float a = __builtin_fabsf(x), b = __builtin_fabsf(y);
    double l = log2_narrow(a);
    l = a == 0 ? -INFINITY : l;
    l = a < INFINITY ? l : a; /* NaN too */
    float r = (float)exp2_narrow(clamp(y * l, -200, 200));
    /* Floats from 2^24 on are even. */
    float small = b < 0x1p+24f ? y : 0;
    int32_t n = (int32_t)small;
    int whole = (float)n == small, negative = bits_of_f32(x) >> 31 != 0;
    r = negative && (n & 1) && whole ? -r : r;
    r = x < 0 && a < INFINITY && !whole ? NAN : r;
    r = a == 1 && (x == 1 || b == INFINITY) ? 1 : r;
    return y == 0 ? 1 : r;
}

/*
 * sin and cos for any float: x = (4 n + quarter + turn) pi/2. What the leading bits of 2/pi
 * give in whole turns is left out of the constants, of which there is a set for each 26
 * binary orders of magnitude; the first two products are exact. (Payne and Hanek's method,
 * with as few sets as let doubles stand in for integers.)
 */
typedef struct {
    double quarter, turn; /* |turn| <= 1/2 */
} quarter_turns;

/* x modulo 4, in [-2, 2] */
ALWAYS_INLINE double modulo_4(double x) {
    return x - 4 * ((0.25 * x + MAGIC) - MAGIC);
}

ALWAYS_INLINE quarter_turns reduce_f32(double x) {
    double c0 = QUARTER_TURNS[0][0], c1 = QUARTER_TURNS[0][1], c2 = QUARTER_TURNS[0][2];
#pragma unroll
    for (int j = 1; j < COUNT(QUARTER_TURNS); j++) {
        int reached = x >= power_of_2(26 * j);
        c0 = reached ? QUARTER_TURNS[j][0] : c0;
        c1 = reached ? QUARTER_TURNS[j][1] : c1;
        c2 = reached ? QUARTER_TURNS[j][2] : c2;
    }
    double a = modulo_4(x * c0), b = modulo_4(x * c1);
    double quarter = ((a + b) + MAGIC) - MAGIC;
    return (quarter_turns){quarter, ((a - quarter) + b) + x * c2};
}

/* the cosine of an angle in quarter turns; NaN and infinities give NaN */
ALWAYS_INLINE double cos_quarters(double quarter, double turn) {
    uint64_t n = bits_of(quarter + MAGIC);
    double z = turn * turn;
    double s = turn * POLY(SIN_NARROW, z), c = POLY(COS_NARROW, z);
    double v = n & 1 ? s : c;
    return from_bits(bits_of(v) ^ ((n + 1) & 2) << 62);
}

VECTOR float tc_cos_f32(float x) {
    quarter_turns t = reduce_f32(__builtin_fabsf(x));
    return (float)cos_quarters(t.quarter, t.turn);
}

VECTOR float tc_sin_f32(float x) {
    quarter_turns t = reduce_f32(__builtin_fabsf(x));
    return flip_sign_f32((float)cos_quarters(t.quarter - 1, t.turn), x);
}

VECTOR float tc_tan_f32(float x) {
    quarter_turns t = reduce_f32(__builtin_fabsf(x));
    double s = cos_quarters(t.quarter - 1, t.turn), c = cos_quarters(t.quarter, t.turn);
    return flip_sign_f32((float)(s / c), x);
}

/* ---- rounded from double ---- */

#define NARROW_1(name) \
    float tc_##name##_f32(float x) { return (float)tc_##name##_f64(x); }

#define NARROW_2(name) \
    float tc_##name##_f32(float x, float y) { return (float)tc_##name##_f64(x, y); }

NARROW_1(acos)
NARROW_1(acosh)
NARROW_1(asin)
NARROW_1(asinh)
NARROW_1(atan)
NARROW_1(atanh)
NARROW_1(cbrt)
NARROW_1(cosh)
NARROW_1(cospi)
NARROW_1(cyl_bessel_i0)
NARROW_1(cyl_bessel_i1)
NARROW_1(erfc)
NARROW_1(erfcinv)
NARROW_1(erfcx)
NARROW_1(erfinv)
NARROW_1(exp10)
NARROW_1(j0)
NARROW_1(j1)
NARROW_1(lgamma)
NARROW_1(log10)
NARROW_1(normcdf)
NARROW_1(normcdfinv)
NARROW_1(rcbrt)
NARROW_1(sinh)
NARROW_1(sinpi)
NARROW_1(tgamma)
NARROW_1(y0)
NARROW_1(y1)
NARROW_2(atan2)

/* The square of a float is far from the ends of double's range. */
static double squares_f32(const float *v, int n) {
    double s = 0;
    int infinite = 0;
    for (int k = 0; k < n; k++) {
        infinite |= __builtin_fabsf(v[k]) == INFINITY;
        s += (double)v[k] * v[k];
    }
    return infinite ? INFINITY : s;
}

float tc_hypot_f32(float x, float y) {
    return (float)__builtin_sqrt(squares_f32((float[]){x, y}, 2));
}

float tc_rhypot_f32(float x, float y) {
    return (float)(1 / __builtin_sqrt(squares_f32((float[]){x, y}, 2)));
}

float tc_norm3d_f32(float x, float y, float z) {
    return (float)__builtin_sqrt(squares_f32((float[]){x, y, z}, 3));
}

float tc_rnorm3d_f32(float x, float y, float z) {
    return (float)(1 / __builtin_sqrt(squares_f32((float[]){x, y, z}, 3)));
}

float tc_norm4d_f32(float x, float y, float z, float w) {
    return (float)__builtin_sqrt(squares_f32((float[]){x, y, z, w}, 4));
}

float tc_rnorm4d_f32(float x, float y, float z, float w) {
    return (float)(1 / __builtin_sqrt(squares_f32((float[]){x, y, z, w}, 4)));
}
