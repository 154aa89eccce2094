/*
 * Exponentials, logarithms, powers, trigonometric and hyperbolic functions and their
 * inverses, in double precision.
 *
 * Arguments are reduced without tables (Cody and Waite, "Software Manual for the
 * Elementary Functions", 1980; Muller, "Elementary Functions", chapters 6 and 9; Payne
 * and Hanek, "Radian reduction for trigonometric functions", 1983, for large angles),
 * and what a result loses by its last rounding steps is carried in double-double. exp,
 * expm1, log, tanh and their like have no branches, so that loops over them become
 * vectors. Most results lie within 1 ulp, all of them within 2.
 */

#include "common.h"

/* ---- exponentials ---- */

/* exp(x) = 2^k (1 + rest) */
typedef struct {
    dd rest;
    double k;
} exponential;

/* exp(r + lo) - 1 for |r| <= log(2)/2 and lo below the last place of r */
ALWAYS_INLINE dd exp_minus_1(double r, double lo) {
    return fast_two_sum(r, muladd(r * r, POLY(EXP, r), muladd(lo, r, lo)));
}

/* exp(x + lo) for |x| <= 746 */
ALWAYS_INLINE exponential exp_parts(double x, double lo) {
    double k = (x * LOG2_E_HI + MAGIC) - MAGIC;
    double a = x - k * LOG_2[0]; /* exact */
    double b = k * LOG_2[1];
    double r = a - b;
    dd sum = two_sum(r, ((a - r) - b) + lo);
    return (exponential){exp_minus_1(sum.hi, sum.lo), k};
}

/* The mantissa of an exponential: 1 + rest. */
ALWAYS_INLINE dd mantissa(exponential e) {
    dd sum = fast_two_sum(1, e.rest.hi);
    return (dd){sum.hi, sum.lo + e.rest.lo};
}

ALWAYS_INLINE double rounded(exponential e) {
    dd m = mantissa(e);
    return scale(m.hi + m.lo, e.k);
}

/* x between two numbers, or NaN */
ALWAYS_INLINE double clamp(double x, double least, double most) {
    x = x < least ? least : x;
    return x > most ? most : x;
}

VECTOR double tc_exp_f64(double x) {
    return rounded(exp_parts(clamp(x, -746, 710), 0));
}

VECTOR double tc_exp2_f64(double x) {
    x = clamp(x, -1080, 1030);
    double k = (x + MAGIC) - MAGIC;
    dd r = two_prod(x - k, LOG_2_EXACT_HI);
    return rounded((exponential){exp_minus_1(r.hi, muladd(x - k, LOG_2_EXACT_LO, r.lo)), k});
}

VECTOR double tc_exp10_f64(double x) {
    x = clamp(x, -330, 310);
    dd y = two_prod(x, LOG_10_HI);
    return rounded(exp_parts(y.hi, muladd(x, LOG_10_LO, y.lo)));
}

/* (exp(x) - 1)/4 for -50 <= x <= 710.5 */
ALWAYS_INLINE dd quarter_expm1(double x) {
    exponential e = exp_parts(x, 0);
    double unit = power_of_2(e.k - 2);
    dd sum = two_sum(unit - 0.25, unit * e.rest.hi);
    return (dd){sum.hi, sum.lo + unit * e.rest.lo};
}

VECTOR double tc_expm1_f64(double x) {
    dd q = quarter_expm1(clamp(x, -50, 710));
    return magnitude(x) < 0x1p-54 ? x : 4 * (q.hi + q.lo);
}

/* With e = exp(|x|) - 1: sinh |x| = (e + e/(e + 1))/2 and tanh |x| = e(2|x|)/(e(2|x|) + 2). */

VECTOR double tc_sinh_f64(double x) {
    double a = magnitude(x);
    dd q = quarter_expm1(clamp(a, 0, 710.5));
    double r = 2 * (q.hi + (q.lo + q.hi / (1 + 4 * q.hi)));
    return a < 0x1p-28 ? x : flip_sign(r, x);
}

VECTOR double tc_cosh_f64(double x) {
    exponential e = exp_parts(clamp(magnitude(x), 0, 710.5), 0);
    double unit = power_of_2(e.k - 2);
    dd m = mantissa(e);
    double large = unit * m.hi;
    return 2 * (large + (unit * m.lo + 0.0625 / large));
}

VECTOR double tc_tanh_f64(double x) {
    double a = magnitude(x);
    dd q = quarter_expm1(clamp(2 * a, 0, 50));
    dd d = two_sum(0.5, q.hi);
    double r = q.hi / d.hi;
    /* What the quotient lacks, over d, where 1/d = 2 (1 - r). */
    r += (q.lo - r * (d.lo + q.lo)) * (2 * (1 - r));
    return a < 0x1p-28 ? x : flip_sign(r, x);
}

/* ---- logarithms ---- */

/* x = 2^e m with m in [sqrt 1/2, sqrt 2) */
typedef struct {
    double m, e;
} parts;

/* for x positive and finite; something arbitrary for any other x */
ALWAYS_INLINE parts split(double x) {
    const uint64_t one = UINT64_C(0x3ff0000000000000), root = UINT64_C(0x3fe6a09e667f3bcd);
    int tiny = x < 0x1p-1022;
    uint64_t bits = bits_of(tiny ? x * 0x1p+54 : x) + (one - root);
    double biased = from_bits(bits >> 52 | UINT64_C(0x4330000000000000)); /* 2^52 + .. */
    return (parts){
        from_bits((bits & UINT64_C(0xfffffffffffff)) + root),
        biased - (tiny ? 0x1p+52 + 1077 : 0x1p+52 + 1023),
    };
}

/* r for x positive and finite, and what logarithms are elsewhere */
ALWAYS_INLINE double log_special(double x, double r) {
    r = x < INFINITY ? r : x; /* NaN too */
    r = x < 0 ? NAN : r;
    return x == 0 ? -INFINITY : r;
}

/* With s = f/(2 + f), log(1 + f) = 2 atanh(s) = f - s (f - (2 atanh(s)/s - 2)). */
VECTOR double tc_log_f64(double x) {
    parts p = split(x);
    double f = p.m - 1, s = f / (2 + f), z = s * s;
    double rest = z * muladd(2 * z, POLY(ATANH, z), 2.0 / 3);
    double square = 0.5 * f * f;
    double r = p.e * LOG_2[0] - ((square - muladd(s, square + rest, p.e * LOG_2[1])) - f);
    return log_special(x, r);
}

/* atanh(s) for |s| at most (sqrt 2 - 1)/(sqrt 2 + 1), good to about 2^-66 */
ALWAYS_INLINE dd atanh_small(dd s) {
    const dd third = {0x1.5555555555555p-2, 0x1.5555555555555p-56};
    dd z = dd_mul(s, s);
    dd cube = dd_mul(dd_mul(z, s), third);
    double rest = s.hi * z.hi * z.hi * POLY(ATANH, z.hi);
    return dd_add(s, fast_two_sum(cube.hi, cube.lo + rest));
}

/* log(2^e (m + c)) for m in [sqrt 1/2, sqrt 2) and a small c, good to about 2^-66 */
ALWAYS_INLINE dd log_dd(double m, double c, double e) {
    dd below = two_sum(m - 1, c), above = two_sum(m, 1);
    above = fast_two_sum(above.hi, above.lo + c);
    dd r = atanh_small(dd_div(below, above));
    dd exponent = fast_two_sum(e * LOG_2[0], e * LOG_2[1]);
    return dd_add(exponent, (dd){2 * r.hi, 2 * r.lo});
}

/* log(x) for x in double-double, positive and finite */
ALWAYS_INLINE dd log_of_dd(dd x) {
    parts p = split(x.hi);
    double c = x.lo * power_of_2(p.e < 1000 ? -p.e : -1000);
    return log_dd(p.m, c, p.e);
}

double tc_log2_f64(double x) {
    parts p = split(x);
    dd r = dd_mul(log_dd(p.m, 0, 0), (dd){LOG2_E_HI, LOG2_E_LO});
    r = dd_add_d(r, p.e);
    return log_special(x, r.hi);
}

double tc_log10_f64(double x) {
    parts p = split(x);
    dd r = dd_mul(log_dd(p.m, 0, p.e), (dd){LOG10_E_HI, LOG10_E_LO});
    return log_special(x, r.hi);
}

VECTOR double tc_log1p_f64(double x) {
    dd r = log_of_dd(two_sum(1, x));
    double special = log_special(x + 1, r.hi + r.lo);
    return magnitude(x) < 0x1p-54 ? x : special;
}

double tc_atanh_f64(double x) {
    double a = magnitude(x);
    if (!(a < 1))
        return a == 1 ? flip_sign(INFINITY, x) : NAN;
    if (a < 0x1p-28)
        return x;
    if (a < 0.17)
        return flip_sign(atanh_small((dd){a, 0}).hi, x);
    return flip_sign(0.5 * log_of_dd(dd_div(two_sum(1, a), two_sum(1, -a))).hi, x);
}

/* log(1 + x + y) for x >= y >= 0, not large */
static double log_of_sum(double x, double y) {
    dd sum = fast_two_sum(x, y), u = two_sum(1, sum.hi);
    return log_of_dd(fast_two_sum(u.hi, u.lo + sum.lo)).hi;
}

/* log(2 x) for large x */
static double log_of_double(double x) {
    parts p = split(x);
    return log_dd(p.m, 0, p.e + 1).hi;
}

double tc_asinh_f64(double x) {
    double a = magnitude(x);
    if (a < 0x1p-28 || !(a < INFINITY))
        return x;
    if (a > 0x1p+30)
        return flip_sign(log_of_double(a), x);
    double square = a * a;
    return flip_sign(log_of_sum(a, square / (1 + __builtin_sqrt(1 + square))), x);
}

double tc_acosh_f64(double x) {
    if (!(x >= 1))
        return NAN;
    if (x > 0x1p+30)
        return x == INFINITY ? x : log_of_double(x);
    double t = x - 1, root = __builtin_sqrt(t * (t + 2));
    return log_of_sum(root, t);
}

/* ---- powers ---- */

/* exp(y log(a)) for a positive and finite, y finite */
static double positive_power(double a, double y) {
    parts p = split(a);
    dd l = log_dd(p.m, 0, p.e);
    if (!(magnitude(y * l.hi) < 746))
        return (y < 0) == (l.hi < 0) ? INFINITY : 0;
    dd t = two_prod(y, l.hi);
    t = fast_two_sum(t.hi, t.lo + y * l.lo);
    return rounded(exp_parts(t.hi, t.lo));
}

double tc_pow_f64(double x, double y) {
    if (y == 0 || x == 1)
        return 1;
    if (x != x || y != y)
        return x + y;
    double a = magnitude(x);
    int whole = nearest(y) == y;
    int odd = whole && magnitude(y) < 0x1p+53 && nearest(0.5 * y) != 0.5 * y;
    double sign = is_negative(x) && odd ? -1 : 1;
    if (a == 0 || a == INFINITY)
        return sign * ((a == 0) == (y < 0) ? INFINITY : 0);
    if (magnitude(y) == INFINITY)
        return a == 1 ? 1 : (a > 1) == (y > 0) ? INFINITY : 0;
    if (x < 0 && !whole)
        return NAN;
    return sign * positive_power(a, y);
}

/* ---- angles ---- */

/*
 * x - shift pi/4 modulo 2 pi for x >= 32, as a number of quarter turns, returned,
 * and an angle of at most pi/4. 2/pi is taken to 192 bits from the place where
 * its product with x is below four, so the angle is exact to about 2^-136.
 */
static int reduce(double x, unsigned shift, dd *angle) {
    uint64_t bits = bits_of(x);
    uint64_t m = (bits & 0xfffffffffffffu) | 0x10000000000000u;
    int e = (int)(bits >> 52) - 1075; /* x = m 2^e */
    int offset = e + 62;              /* of the first bit that matters */
    const uint64_t *t = TWO_OVER_PI + offset / 64;
    int s = offset % 64;
    uint64_t w[3];
    for (int i = 0; i < 3; i++)
        w[i] = s == 0 ? t[i] : t[i] << s | t[i + 1] >> (64 - s);
    /* m w modulo 2^192, in units of 2^-190 quarter turns */
    u128 p2 = (u128)m * w[2];
    u128 p1 = (u128)m * w[1] + (uint64_t)(p2 >> 64);
    uint64_t v0 = m * w[0] + (uint64_t)(p1 >> 64), v1 = (uint64_t)p1, v2 = (uint64_t)p2;
    /* Less shift half turns of a quarter, plus one half to round. */
    v0 += (UINT64_C(1) - shift) << 61;
    int quarter = (int)(v0 >> 62);
    v0 &= UINT64_C(0x3fffffffffffffff);
    int negative = v0 < UINT64_C(1) << 61;
    v0 -= UINT64_C(1) << 61;
    if (negative) {
        v2 = ~v2 + 1;
        v1 = ~v1 + (v2 == 0);
        v0 = ~v0 + (v1 == 0 && v2 == 0);
    }
    /* To double-double: pieces of 32 bits are exact, and are added from the top. */
    double piece[6] = {
        (double)(v0 >> 32) * 0x1p-30, (double)(v0 & 0xffffffffu) * 0x1p-62,
        (double)(v1 >> 32) * 0x1p-94, (double)(v1 & 0xffffffffu) * 0x1p-126,
        (double)(v2 >> 32) * 0x1p-158, (double)(v2 & 0xffffffffu) * 0x1p-190,
    };
    dd sum = {piece[0], 0};
    for (int i = 1; i < 6; i++)
        sum = dd_add_d(sum, piece[i]);
    sum = dd_mul(sum, (dd){HALF_PI_HI, HALF_PI_LO});
    *angle = negative ? (dd){-sum.hi, -sum.lo} : sum;
    return quarter;
}

/* The same with shift 0 for any finite x >= 0. The products below are exact up to 2^25. */
static int reduce_any(double x, dd *angle) {
    if (x >= 0x1p+25)
        return reduce(x, 0, angle);
    double k = (x * TWO_OVER_PI_D + MAGIC) - MAGIC;
    dd a = two_sum(x - k * HALF_PI_PARTS[0], -(k * HALF_PI_PARTS[1]));
    dd b = two_sum(a.hi, -(k * HALF_PI_PARTS[2]));
    *angle = two_sum(b.hi, b.lo + (a.lo - k * HALF_PI_PARTS[3]));
    return (int)k;
}

/* sine and cosine of an angle of at most pi/4 */
static double sin_small(dd angle) {
    double x = angle.hi, z = x * x;
    return x + muladd(x * z, POLY(SIN, z), angle.lo * (1 - 0.5 * z));
}

static double cos_small(dd angle) {
    double x = angle.hi, z = x * x, half = 0.5 * z, w = 1 - half;
    return w + (((1 - w) - half) + (z * z * POLY(COS, z) - x * angle.lo));
}

/* the cosine of a number of quarter turns and an angle */
static double turned_cos(int quarter, dd angle) {
    double v = quarter & 1 ? -sin_small(angle) : cos_small(angle);
    return quarter & 2 ? -v : v;
}

double tc_cos_f64(double x) {
    if (!(magnitude(x) < INFINITY))
        return NAN;
    dd angle;
    int quarter = reduce_any(magnitude(x), &angle);
    return turned_cos(quarter, angle);
}

double tc_sin_f64(double x) {
    if (!(magnitude(x) < INFINITY))
        return NAN;
    dd angle;
    int quarter = reduce_any(magnitude(x), &angle);
    return flip_sign(turned_cos(quarter + 3, angle), x);
}

double tc_tan_f64(double x) {
    if (!(magnitude(x) < INFINITY))
        return NAN;
    dd angle;
    int quarter = reduce_any(magnitude(x), &angle);
    return flip_sign(turned_cos(quarter + 3, angle) / turned_cos(quarter, angle), x);
}

/* sin(pi x) for quarter = 0, cos(pi x) for quarter = 1 */
static double sinpi_shifted(double x, int quarter) {
    if (!(magnitude(x) < INFINITY))
        return NAN;
    double r = x - 2 * nearest(0.5 * x); /* exact, in [-1, 1] */
    double n = nearest(2 * r);
    double f = r - 0.5 * n; /* exact, in [-1/4, 1/4] */
    dd angle = two_prod(PI_HI, f);
    angle.lo += PI_LO * f;
    return turned_cos((int)n + quarter + 3, angle);
}

double tc_sinpi_f64(double x) {
    if (nearest(x) == x && magnitude(x) < INFINITY)
        return flip_sign(0, x);
    return sinpi_shifted(x, 0);
}

double tc_cospi_f64(double x) {
    return sinpi_shifted(x, 1) + 0.0; /* a zero is positive */
}

/* ---- inverse trigonometric functions ---- */

/*
 * The angle of the point (x, y) in the first quadrant, by the difference to the nearest of
 * 0, pi/4 and pi/2. Quotients must be far from overflow and underflow.
 */
static dd angle_of(double y, double x) {
    dd n = {y, 0}, d = {x, 0}, offset = {0, 0};
    if (y > (SQRT_2 + 1) * x) {
        n = (dd){-x, 0};
        d = (dd){y, 0};
        offset = (dd){HALF_PI_HI, HALF_PI_LO};
    } else if (y > (SQRT_2 - 1) * x) {
        n = two_sum(y, -x);
        d = two_sum(y, x);
        offset = (dd){QUARTER_PI_HI, QUARTER_PI_LO};
    }
    dd t = dd_div(n, d);
    double z = t.hi * t.hi;
    dd sum = two_sum(offset.hi, t.hi);
    return fast_two_sum(sum.hi, sum.lo + (offset.lo + muladd(t.hi * z, POLY(ATAN, z), t.lo)));
}

double tc_atan_f64(double x) {
    double a = magnitude(x);
    if (a < 0x1p-28 || x != x)
        return x;
    return flip_sign(a > 0x1p+60 ? HALF_PI_HI : angle_of(a, 1).hi, x);
}

double tc_atan2_f64(double y, double x) {
    if (x != x || y != y)
        return x + y;
    double a = magnitude(y), b = magnitude(x);
    dd angle = {0, 0};
    if (a == INFINITY && b == INFINITY) {
        angle = (dd){QUARTER_PI_HI, QUARTER_PI_LO};
    } else if (a == INFINITY || (b == 0 && a != 0)) {
        angle = (dd){HALF_PI_HI, HALF_PI_LO};
    } else if (b != INFINITY && a != 0) {
        int e = exponent(b), difference = exponent(a) - e;
        if (difference > 60)
            angle = (dd){HALF_PI_HI, HALF_PI_LO};
        else if (difference < -60)
            angle = (dd){is_negative(x) ? 0 : a / b, 0};
        else
            angle = angle_of(scale(a, -e), scale(b, -e));
    }
    if (is_negative(x))
        angle.hi = PI_HI - (angle.hi - (PI_LO - angle.lo));
    return flip_sign(angle.hi, y);
}

/* asin(s) - s for s in [0, 1/2] with square z */
static double asin_rest(double s, double z) {
    return s * z * POLY(ASIN, z);
}

/* asin of the root of (1 - a)/2, for 1/2 <= a <= 1: half of acos(a) */
static dd half_acos(double a) {
    double z = 0.5 * (1 - a), s = __builtin_sqrt(z);
    double low = s > 0 ? __builtin_fma(-s, s, z) / (2 * s) : 0; /* of the root */
    return (dd){s, low + asin_rest(s, z)};
}

double tc_asin_f64(double x) {
    double a = magnitude(x);
    if (!(a <= 1))
        return NAN;
    if (a < 0x1p-28)
        return x;
    if (a <= 0.5)
        return x + asin_rest(x, x * x);
    dd half = half_acos(a);
    dd sum = fast_two_sum(HALF_PI_HI, -2 * half.hi);
    return flip_sign(sum.hi + (sum.lo + (HALF_PI_LO - 2 * half.lo)), x);
}

double tc_acos_f64(double x) {
    double a = magnitude(x);
    if (!(a <= 1))
        return NAN;
    if (a <= 0.5) {
        dd sum = fast_two_sum(HALF_PI_HI, -x);
        return sum.hi + (sum.lo + (HALF_PI_LO - asin_rest(x, x * x)));
    }
    dd half = half_acos(a);
    if (x > 0)
        return 2 * (half.hi + half.lo);
    dd sum = fast_two_sum(PI_HI, -2 * half.hi);
    return sum.hi + (sum.lo + (PI_LO - 2 * half.lo));
}

/* ---- roots and lengths ---- */

double tc_sqrt_f64(double x) {
    return __builtin_sqrt(x);
}

VECTOR double tc_rsqrt_f64(double x) {
    return 1 / __builtin_sqrt(x);
}

/* x = m 8^third with |m| in [1/8, 1), for x finite and not zero */
static double split_cube(double x, int *third) {
    int e = exponent(x) + 1;
    *third = (e + 3002) / 3 - 1000; /* rounds up, so e - 3 third is in {-2, -1, 0} */
    return scale(x, -3 * *third);
}

/* |m|^(-1/3) for |m| in [1/8, 1): two steps of order four from an estimate */
static double inverse_root(double m) {
    m = magnitude(m);
    double r = POLY(INVERSE_CBRT, m);
    for (int k = 0; k < 2; k++) {
        double h = 1 - m * r * r * r;
        r += r * h * (1.0 / 3 + h * (2.0 / 9 + h * (14.0 / 81)));
    }
    return r;
}

double tc_cbrt_f64(double x) {
    if (x == 0 || !(magnitude(x) < INFINITY))
        return x;
    int third;
    double m = split_cube(x, &third), r = inverse_root(m), z = m * r * r;
    /* A step of Newton's method with an exact residual. */
    dd square = two_prod(z, z);
    double residual = __builtin_fma(-square.hi, z, m) - square.lo * z;
    return scale(z + residual / (3 * square.hi), third);
}

double tc_rcbrt_f64(double x) {
    if (x == 0 || !(magnitude(x) < INFINITY))
        return 1 / x;
    int third;
    double m = split_cube(x, &third), z = flip_sign(inverse_root(m), m);
    double residual = __builtin_fma(-(m * z), z * z, 1);
    return scale(__builtin_fma(z * (1.0 / 3), residual, z), -third);
}

/*
 * The sum of squares of n numbers, scaled by 4^-e so that nothing overflows or
 * underflows. NaN only where no number is infinite.
 */
static double squares(const double *v, int n, int *e) {
    double most = 0, any = 0;
    int infinite = 0;
    *e = 0;
    for (int k = 0; k < n; k++) {
        double a = magnitude(v[k]);
        infinite |= a == INFINITY;
        any += a;
        most = a > most ? a : most;
    }
    if (infinite)
        return INFINITY;
    if (any != any || most == 0)
        return any != any ? any : 0;
    *e = exponent(most) + 1;
    double s = 0;
    for (int k = 0; k < n; k++) {
        double t = scale(v[k], -*e);
        s = __builtin_fma(t, t, s);
    }
    return s;
}

static double norm(const double *v, int n) {
    int e;
    double s = squares(v, n, &e);
    return scale(__builtin_sqrt(s), e);
}

static double rnorm(const double *v, int n) {
    int e;
    double s = squares(v, n, &e);
    return scale(1 / __builtin_sqrt(s), -e);
}

double tc_hypot_f64(double x, double y) {
    return norm((double[]){x, y}, 2);
}

double tc_rhypot_f64(double x, double y) {
    return rnorm((double[]){x, y}, 2);
}

double tc_norm3d_f64(double x, double y, double z) {
    return norm((double[]){x, y, z}, 3);
}

double tc_rnorm3d_f64(double x, double y, double z) {
    return rnorm((double[]){x, y, z}, 3);
}

double tc_norm4d_f64(double x, double y, double z, double w) {
    return norm((double[]){x, y, z, w}, 4);
}

double tc_rnorm4d_f64(double x, double y, double z, double w) {
    return rnorm((double[]){x, y, z, w}, 4);
}
