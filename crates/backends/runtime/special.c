/*
 * The error function and its relatives, the gamma function, and Bessel functions, in double
 * precision.
 *
 * Near the zeros of j0, j1, y0, y1 and lgamma results are as accurate as elsewhere: there,
 * expansions about the zeros are used.
 *
 * Sources: Abramowitz and Stegun, chapters 6, 7 and 9 (series, recurrences, asymptotic
 * expansions; numbers such as 9.1.10 below); Shepherd and Laframboise, "Chebyshev
 * approximation of (1 + 2x) exp(x^2) erfc x", 1981.
 */

#include "common.h"

/* ---- error function family ---- */

/* (1 + 2x) erfcx(x) for x >= 1/2, over 1 + 2x */
static double erfcx_tail(double x) {
    double t = (x - 4) / (x + 4);
    return (t < 0 ? POLY(ERFCX_NEAR, t + 0.375) : POLY(ERFCX_FAR, t - 0.5)) / (1 + 2 * x);
}

/* erfc(x) = exp(-x^2) erfcx(x) for x in [1/2, 28], with one rounding if it is subnormal */
static double erfc_tail(double x) {
    dd square = two_prod(x, x);
    exponential e = exp_parts(-square.hi < -746 ? -746 : -square.hi, -square.lo);
    dd m = mantissa(e);
    return scale((m.hi + m.lo) * erfcx_tail(x), e.k);
}

double tc_erf_f64(double x) {
    double a = magnitude(x);
    if (a < 0.875)
        return x + x * POLY(ERF, x * x);
    if (a < 6)
        return flip_sign(1 - erfc_tail(a), x);
    return x != x ? x : flip_sign(1, x);
}

double tc_erfc_f64(double x) {
    if (x < -0.875)
        return 1 - tc_erf_f64(x);
    if (x < 0.5)
        return (1 - x) - x * POLY(ERF, x * x);
    if (x < 28)
        return erfc_tail(x);
    return x != x ? x : 0;
}

/* erfcinv(q) for q in [0, 1/2] */
static double erfcinv_tail(double q) {
    if (q == 0)
        return INFINITY;
    double s = __builtin_sqrt(-tc_log_f64(q));
    if (s < 1.5)
        return POLY(ERFCINV_0, s - 1.125);
    if (s < 3)
        return POLY(ERFCINV_1, s - 2.25);
    if (s < 6)
        return POLY(ERFCINV_2, s - 4.5);
    if (s < 12)
        return POLY(ERFCINV_3, s - 9);
    return POLY(ERFCINV_4, s - 19);
}

/* erfinv(x) for |x| <= 1/2 */
static double erfinv_middle(double x) {
    return x * POLY(ERFINV_MID, -tc_log1p_f64(-x * x));
}

double tc_erfinv_f64(double x) {
    double a = magnitude(x);
    if (!(a <= 1))
        return NAN;
    if (a <= 0.5)
        return erfinv_middle(x);
    return flip_sign(erfcinv_tail(1 - a), x);
}

double tc_erfcinv_f64(double x) {
    if (!(x >= 0 && x <= 2))
        return NAN;
    if (x < 0.5)
        return erfcinv_tail(x);
    if (x > 1.5)
        return -erfcinv_tail(2 - x);
    return erfinv_middle(1 - x);
}

double tc_normcdfinv_f64(double x) {
    if (!(x >= 0 && x <= 1))
        return NAN;
    if (x < 0.25)
        return -SQRT_2 * erfcinv_tail(2 * x);
    if (x > 0.75)
        return SQRT_2 * erfcinv_tail(2 * (1 - x));
    return SQRT_2 * erfinv_middle(2 * (x - 0.5));
}

/* erfcx(x) for finite x >= 0 */
static double erfcx_positive(double x) {
    return x < 0.5 ? tc_exp_f64(x * x) * tc_erfc_f64(x) : erfcx_tail(x);
}

double tc_erfcx_f64(double x) {
    if (x != x)
        return x;
    if (x >= 0x1p+60)
        return INV_SQRT_PI / x; /* infinity gives +0 */
    if (x >= 0)
        return erfcx_positive(x);
    if (x < -27)
        return INFINITY;
    dd square = two_prod(x, x);
    double e = tc_exp_f64(square.hi);
    /* An infinite e times a zero or negative low part must stay infinite. */
    return e == INFINITY ? e : 2 * (e + e * square.lo) - erfcx_positive(-x);
}

double tc_normcdf_f64(double x) {
    if (!(x < -0.5))
        return 0.5 * tc_erfc_f64(-x * SQRT_HALF);
    if (x < -40)
        return 0;
    /* exp(-x^2/2) erfcx(-x/sqrt 2) / 2. Far out the exponential is the square of
       one that cannot underflow, so that a subnormal result is rounded once. */
    double part = x < -37 ? 0.5 : 1;
    dd square = two_prod(x, 0.5 * x);
    double e = tc_exp_f64(-part * square.hi);
    double f = 0.5 * erfcx_positive(-x * SQRT_HALF);
    double r = e * (f - f * square.lo);
    return part < 1 ? r * e : r;
}

/* ---- gamma family ---- */

/* 1/Gamma(1 + e) for |e| <= 1/2, good to about 2^-80 */
static dd rgamma_near_1(double e) {
    dd s = {POLY(RGAMMA, e), 0};
    for (int k = COUNT(RGAMMA_DD) - 1; k >= 0; k--)
        s = dd_add(dd_mul_d(s, e), (dd){RGAMMA_DD[k][0], RGAMMA_DD[k][1]});
    return s;
}

/*
 * 1/Gamma(x) for |x| <= 24, x not tiny, by the recurrence (6.1.15) to the nearest
 * integer. Each factor x - k is exact: it is a multiple of the last place of x
 * and no greater than x.
 */
static dd rgamma_small(double x) {
    double n = nearest(x);
    dd r = rgamma_near_1(x - n);
    if (n < 1) {
        for (double k = 0; k >= n; k--)
            r = dd_mul_d(r, x - k);
        return r;
    }
    dd p = {1, 0};
    for (double k = 1; k < n; k++)
        p = dd_mul_d(p, x - k);
    return dd_mul(r, dd_inverse(p));
}

/* lgamma(x) - (x - 1/2) log x + x - log(2 pi)/2 for x >= 8 (6.1.41) */
static double stirling(double x) {
    return POLY(STIRLING, 1 / (x * x)) / x;
}

double tc_tgamma_f64(double x) {
    if (x != x)
        return x;
    if (magnitude(x) < 0x1p-54)
        return 1 / x;
    if (x < 0 && __builtin_floor(x) == x)
        return NAN; /* -infinity too */
    if (magnitude(x) <= 20) {
        dd r = rgamma_small(x);
        return dd_inverse(r).hi;
    }
    double y = magnitude(x);
    int negative = x < 0 && tc_fmod_f64(__builtin_floor(x), 2) != 0;
    if (y > 185)
        return x > 0 ? INFINITY : negative ? -0.0 : 0.0;
    /* Gamma(y) = p * q, each of them far from overflow. Only the library's own
       errors count: the products keep a low part. */
    double p = tc_pow_f64(y, 0.5 * y - 0.25);
    dd q = dd_mul(two_prod(p, tc_exp_f64(-y)), (dd){SQRT_2PI_HI, SQRT_2PI_LO});
    q = dd_add_d(q, q.hi * tc_expm1_f64(stirling(y)));
    if (x > 0)
        return q.hi * p == INFINITY ? INFINITY : __builtin_fma(q.hi, p, q.lo * p);
    /* Gamma(-y) = -pi / (y sin(pi y) Gamma(y)) (6.1.17) */
    q = dd_inverse(dd_mul_d(dd_mul_d(q, y), sinpi_shifted(y - nearest(y), 0)));
    double r = magnitude(PI_HI * q.hi + PI_LO * q.hi + PI_HI * q.lo) / p;
    return negative ? -r : r;
}

/* lgamma(x) for -24 <= x < -2, x no integer */
static double lgamma_negative(double x) {
    /* Close to a zero: its expansion. Zeros come in pairs, one each side of an
       integer; the first pair is incomplete. */
    for (int k = 0; k < COUNT(LGAMMA_ZEROS); k++) {
        const double *z = LGAMMA_ZEROS[k];
        double h = (x - z[0]) - z[1];
        if (magnitude(h * z[2]) < 0x1p-18)
            return z[2] * h * __builtin_fma(h, __builtin_fma(h, z[4], z[3]), 1);
    }
    dd r = rgamma_small(x);
    if (r.hi < 0)
        r = (dd){-r.hi, -r.lo};
    if (r.hi > 0.5 && r.hi < 2)
        return -tc_log1p_f64((r.hi - 1) + r.lo);
    return -tc_log_f64(r.hi);
}

/* lgamma(x) for x >= 8 */
static double lgamma_large(double x) {
    return (x - 0.5) * (tc_log_f64(x) - 1) + (LOG_SQRT_2PI - 0.5 + stirling(x));
}

double tc_lgamma_f64(double x) {
    if (x != x)
        return x;
    if (x <= 0 && __builtin_floor(x) == x)
        return INFINITY; /* -infinity too */
    if (magnitude(x) == INFINITY)
        return INFINITY;
    if (x < 0) {
        if (x > -0x1p-54)
            return -tc_log_f64(-x);
        if (x >= -2)
            return -tc_log_f64(magnitude(rgamma_small(x).hi));
        if (x >= -24)
            return lgamma_negative(x);
        return -tc_log_f64(-x * magnitude(sinpi_shifted(x, 0)) / PI_HI) - lgamma_large(-x);
    }
    if (x < 0.5) /* lgamma(1 + x) - log x */
        return x * (x - 1) * POLY(LGAMMA_1, x) - tc_log_f64(x);
    if (x < 1.5)
        return (x - 1) * (x - 2) * POLY(LGAMMA_1, x - 1) + 0.0; /* +0 at 1 */
    if (x < 3)
        return (x - 1) * (x - 2) * POLY(LGAMMA_2, x - 2.25);
    if (x < 8) {
        double p = 1;
        while (x >= 3) {
            x -= 1;
            p *= x;
        }
        return tc_log_f64(p) + (x - 1) * (x - 2) * POLY(LGAMMA_2, x - 2.25);
    }
    return lgamma_large(x);
}

/* ---- Bessel functions ---- */

/*
 * For x > 1.65 every zero of J0 and J1 must be met to relative precision. Up to
 * 26 pi/2 the Taylor series about the nearest zero of J0 or J1 is used: Bessel's
 * equation (9.1.1) gives its coefficients from the first two by a recurrence, so
 * that a row of four numbers suffices. Beyond, the modulus and phase (9.2.28 and
 * 9.2.29), where the phase is reduced in extended precision. Y0 and Y1 likewise.
 */
#define ASYMPTOTIC_FROM (26 * HALF_PI_HI)

/*
 * A solution f of Bessel's equation of order 0, near x0 = row[0] + row[1] where
 * f = row[2] and f' = row[3], one of them 0: f(x), or -f'(x) for order 1. With
 * a_k the coefficients of h^k, h = x - x0,
 *     x0 (k + 1)(k + 2) a_{k+2} = -((k + 1)^2 a_{k+1} + x0 a_k + a_{k-1}).
 */
static double bessel_taylor(const double row[4], int order, double x) {
    double x0 = row[0], h = (x - x0) - row[1];
    double inverse = 1 / x0;
    enum { TERMS = 27 };
    double a[TERMS];
    a[0] = row[2];
    a[1] = row[3];
    for (int k = 0; k + 2 < TERMS; k++) {
        double n = k + 1, before = k > 0 ? a[k - 1] : 0;
        a[k + 2] = -(__builtin_fma(__builtin_fma(n * n, a[k + 1], before), inverse, a[k])) / (n * (n + 1));
    }
    if (order == 0)
        return poly(a, TERMS, h);
    double s = 0;
    for (int k = TERMS - 1; k > 0; k--)
        s = __builtin_fma(s, h, k * a[k]);
    return -s;
}

/* J (second = 0) or Y (second = 1) of order 0 or 1 for x >= ASYMPTOTIC_FROM */
static double bessel_asymptotic(double x, int order, int second) {
    dd angle;
    int quarter = reduce(x, 1 + 2 * (unsigned)order + 2 * (unsigned)second, &angle);
    double inverse = 1 / x, z = inverse * inverse, amplitude;
    /* The phase in double-double for moderate x; terms die out for large x. */
    dd square = two_prod(x, x);
    square = dd_inverse(square);
    dd phase;
    const double(*leading)[2];
    int n;
    if (order == 0) {
        amplitude = z * POLY(AMPLITUDE_0, z);
        phase = (dd){POLY(PHASE_0, z), 0};
        leading = PHASE_0_DD;
        n = COUNT(PHASE_0_DD);
    } else {
        amplitude = z * POLY(AMPLITUDE_1, z);
        phase = (dd){POLY(PHASE_1, z), 0};
        leading = PHASE_1_DD;
        n = COUNT(PHASE_1_DD);
    }
    if (x < 0x1p+100) {
        for (int k = n - 1; k >= 0; k--)
            phase = dd_add(dd_mul(phase, square), (dd){leading[k][0], leading[k][1]});
        phase = dd_mul(phase, dd_inverse((dd){x, 0}));
    } else {
        phase = (dd){leading[0][0] * inverse, 0};
    }
    angle = dd_add(angle, phase);
    double value = turned_cos(quarter, angle);
    return __builtin_sqrt(TWO_OVER_PI_D * inverse) * (value + value * tc_expm1_f64(amplitude));
}

/* J0(x) for finite x >= 0 */
static double j0_positive(double x) {
    if (x < 1.6)
        return POLY(J0_SMALL, x * x);
    if (x < ASYMPTOTIC_FROM)
        return bessel_taylor(BESSEL_J[(int)(x * TWO_OVER_PI_D - 1)], 0, x);
    return bessel_asymptotic(x, 0, 0);
}

/* J1(x) for finite x >= 0 */
static double j1_positive(double x) {
    if (x < 1.6)
        return x * POLY(J1_SMALL, x * x);
    if (x < ASYMPTOTIC_FROM)
        return bessel_taylor(BESSEL_J[(int)(x * TWO_OVER_PI_D - 1)], 1, x);
    return bessel_asymptotic(x, 1, 0);
}

double tc_j0_f64(double x) {
    if (x != x)
        return x;
    x = magnitude(x);
    return x == INFINITY ? 0 : j0_positive(x);
}

double tc_j1_f64(double x) {
    if (x != x)
        return x;
    double a = magnitude(x);
    return flip_sign(a == INFINITY ? 0 : j1_positive(a), x);
}

/* log(x / (hi + lo)) and, in *gap, x^2 - (hi + lo)^2, both to relative precision */
static double log_ratio(double x, double hi, double lo, double *gap) {
    double h = (x - hi) - lo;
    *gap = h * (x + hi);
    /* x / hi would lose bits where x is subnormal */
    return x < 0.5 * hi ? tc_log_f64(x) - tc_log_f64(hi) : tc_log1p_f64(h / hi);
}

double tc_y0_f64(double x) {
    if (!(x >= 0))
        return NAN;
    if (x == 0)
        return -INFINITY;
    if (x == INFINITY)
        return 0;
    if (x >= 2 && x < 3.15)
        return POLY(Y0_MIDDLE, x - 2.5625);
    if (x < 2) { /* 9.1.13, arranged about the first zero */
        double gap, l = log_ratio(x, Y0_ZERO_HI, Y0_ZERO_LO, &gap);
        return TWO_OVER_PI_D * (l * j0_positive(x) + gap * POLY(Y0_SMALL, x * x));
    }
    if (x < ASYMPTOTIC_FROM)
        return bessel_taylor(BESSEL_Y[(int)(x * TWO_OVER_PI_D - 2)], 0, x);
    return bessel_asymptotic(x, 0, 1);
}

double tc_y1_f64(double x) {
    if (!(x >= 0))
        return NAN;
    if (x == 0)
        return -INFINITY;
    if (x == INFINITY)
        return 0;
    if (x < 3.15) { /* 9.1.11, arranged about the first zero */
        double gap, l = log_ratio(x, Y1_ZERO_HI, Y1_ZERO_LO, &gap);
        /* Divided last, since 1 / x alone may overflow. */
        return TWO_OVER_PI_D * (l * x * j1_positive(x) + gap * POLY(Y1_SMALL, x * x)) / x;
    }
    if (x < ASYMPTOTIC_FROM)
        return bessel_taylor(BESSEL_Y[(int)(x * TWO_OVER_PI_D - 2)], 1, x);
    return bessel_asymptotic(x, 1, 1);
}

/* exp(x) v / sqrt(x) where exp(x) alone may overflow */
static double bessel_growth(double x, double v) {
    double e = tc_exp_f64(0.5 * x);
    return e * (v / __builtin_sqrt(x)) * e;
}

double tc_cyl_bessel_i0_f64(double x) {
    double a = magnitude(x);
    if (a < 8)
        return POLY(I0_SMALL, a * a);
    if (a > 720)
        return INFINITY;
    return bessel_growth(a, POLY(I0_LARGE, 1 / a - 0.0625));
}

double tc_cyl_bessel_i1_f64(double x) {
    double a = magnitude(x);
    if (a < 8)
        return x * POLY(I1_SMALL, a * a);
    if (a > 720)
        return flip_sign(INFINITY, x);
    return flip_sign(bessel_growth(a, POLY(I1_LARGE, 1 / a - 0.0625)), x);
}

