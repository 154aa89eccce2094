/*
 * The scalar built-ins of the compiler: tc_<name>_f32 and tc_<name>_f64.
 *
 * Meanings, special values included, are those of the CUDA math functions of
 * the same name. One source serves twice: as LLVM bitcode it is linked into
 * generated code, and as a native library it backs the reference interpreter
 * and the tests, so that both compute the same bits.
 *
 * Accuracy: every result lies within 8 ulp of the exact one, in both widths and
 * over the whole range, near the zeros of j0, j1, y0, y1 and lgamma too
 * (reference/ holds the points it is tested on). Functions that the C library
 * has and computes well are taken from it; it is assumed to keep to 5 ulp, and
 * to about 1 ulp for exp, log, pow, and sin, cos and tan of moderate arguments.
 * With glibc 2.36 at most 5 ulp were found, in sweeps of 10^5 points a function.
 * In single precision, what the C library lacks or does poorly is computed in
 * double and rounded.
 *
 * Needs C11, IEEE arithmetic rounding to nearest, a 128-bit integer (gcc and
 * clang on 64-bit targets), and no fast-math flags. There is no state, and errno
 * is never read: compile with -fno-math-errno, so that calls of the C library
 * can become instructions.
 *
 * Sources: Abramowitz and Stegun, chapters 6, 7 and 9 (series, recurrences,
 * asymptotic expansions; numbers such as 9.1.10 below); Shepherd and Laframboise,
 * "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", 1981; Payne and Hanek,
 * "Radian reduction for trigonometric functions", 1983; Dekker, "A floating-point
 * technique for extending the available precision", 1971.
 */

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Contraction would break the error-free sums below; gcc -std=c11 does none. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

__extension__ typedef unsigned __int128 u128;

/* BEGIN TABLES, written by reference/tables.py */
/* pi */
static const double PI_HI = 0x1.921fb54442d18p+1, PI_LO = 0x1.1a62633145c07p-53;

/* sqrt(2 pi) */
static const double SQRT_2PI_HI = 0x1.40d931ff62706p+1, SQRT_2PI_LO = -0x1.a6a0d6f814637p-53;

/* pi/2 */
static const double HALF_PI_HI = 0x1.921fb54442d18p+0, HALF_PI_LO = 0x1.1a62633145c07p-54;

/* log2(10) */
static const double LOG2_10_HI = 0x1.a934f0979a371p+1, LOG2_10_LO = 0x1.7f2495fb7fa6dp-53;

/* erfinv(x)/x in w = -log(1 - x^2), |x| <= 1/2 */
static const double ERFINV_MID[9] = {
    0x1.c5bf891b4ef6bp-1, 0x1.db29fb2fee5b0p-3, 0x1.7a72e72c316d1p-7, -0x1.321102684354bp-9,
    -0x1.0c86acf6299c1p-13, 0x1.86ff881a3595fp-15, 0x1.0fc45bf8d300ep-19, -0x1.1439c576612c7p-20,
    -0x1.e868388aed6f5p-28,
};

/* erfcinv(q) in s - 1.125, s = sqrt(-log q) in [0.82, 1.5] */
static const double ERFCINV_0[17] = {
    0x1.85719bb49b81fp-1, 0x1.00ca7702bb6a1p+0, 0x1.52a9ae6ea53b0p-4, -0x1.55b5b32f0ac77p-4,
    0x1.d969fa54a00a0p-5, -0x1.f59c8a9609214p-6, 0x1.6ad0b54ae7127p-7, -0x1.937fd09db0f08p-12,
    -0x1.d803d9e35a0c7p-9, 0x1.ed8b3a36ba46cp-9, -0x1.3eb3094c70465p-9, 0x1.04806cb9b4c8fp-10,
    -0x1.22c7ff010fcf7p-15, -0x1.902acc1f60c8ep-12, 0x1.b8c98a22eeed4p-12, -0x1.1e02d0d66588dp-12,
    0x1.8145b30214d93p-14,
};

/* erfcinv(q) in s - 2.25, s = sqrt(-log q) in [1.5, 3] */
static const double ERFCINV_1[20] = {
    0x1.ee37c319ced6bp+0, 0x1.0c86e0c0398e9p+0, -0x1.7d24b4af1af21p-9, -0x1.bd51c5bfb90e3p-9,
    0x1.5b20ca34b6d97p-9, -0x1.6e131564e3a28p-10, 0x1.4927564a5298fp-11, -0x1.0aecd64dd4874p-12,
    0x1.8c9bf2cbfe313p-14, -0x1.0cc7e8768fd81p-15, 0x1.4399956b5703ep-17, -0x1.3f5efc68393b6p-19,
    0x1.6754ed689b90ep-22, 0x1.b18c02ed825f7p-24, -0x1.05578784fed5bp-23, 0x1.3785d6d80cdfap-24,
    -0x1.210f709a13fd3p-25, 0x1.f512b864fe1f1p-27, -0x1.b780dc72970a1p-28, 0x1.d9492e114d34ap-30,
};

/* erfcinv(q) in s - 4.5, s = sqrt(-log q) in [3, 6] */
static const double ERFCINV_2[20] = {
    0x1.110aa28297e8cp+2, 0x1.0725be229425cp+0, -0x1.d7d02c244654fp-9, 0x1.bcba17b370764p-12,
    -0x1.1c93e5056b65dp-15, -0x1.5bc6da7cb52d1p-19, 0x1.349a170166dc5p-19, -0x1.ae55a7859093ap-21,
    0x1.e4a82ed1e7a7fp-23, -0x1.ede3176f157ecp-25, 0x1.d9d2baed4cbe4p-27, -0x1.b3bda4d524e8bp-29,
    0x1.838188d80f073p-31, -0x1.4f702ea97a443p-33, 0x1.1dc42a0f006a0p-35, -0x1.d66e10968c1b6p-38,
    0x1.5a9806338e2dep-40, -0x1.12e1cb0938054p-42, 0x1.3cc0b89395af6p-44, -0x1.c05a54a2679bcp-47,
};

/* erfcinv(q) in s - 9, s = sqrt(-log q) in [6, 12] */
static const double ERFCINV_3[20] = {
    0x1.1b0daced0127cp+3, 0x1.02d71653331c5p+0, -0x1.d7b40402347c2p-11, 0x1.3d0c0c77b1bbep-14,
    -0x1.aca6c834b5bfcp-18, 0x1.1de7219859cfap-21, -0x1.70b90eed446a1p-25, 0x1.bd5d73cd20b6cp-29,
    -0x1.d5d1b7d08f3bfp-33, 0x1.507d3c92358a1p-37, 0x1.6833e84050324p-42, -0x1.80575b8255325p-43,
    0x1.1fc29440eef48p-45, -0x1.5c11815ef8c40p-48, 0x1.920115a4ea1e6p-51, -0x1.a0d45be8fdf3cp-54,
    0x1.211e81e1269c1p-57, -0x1.1245dde2d77fcp-60, 0x1.5492bc516079ap-62, -0x1.439d212fe0055p-65,
};

/* erfcinv(q) in s - 19, s = sqrt(-log q) in [12, 27.4] */
static const double ERFCINV_4[20] = {
    0x1.2e8460628ad62p+4, 0x1.00e585b837f01p+0, -0x1.373db9ce48d9ap-13, 0x1.b8474df830686p-18,
    -0x1.3e230330df1fep-22, 0x1.d159cae3dd2c1p-27, -0x1.56b348e63b3a9p-31, 0x1.fa874d85d2227p-36,
    -0x1.76b5439b92faap-40, 0x1.14e1c27cf6005p-44, -0x1.97ebdac67cba3p-49, 0x1.2af2948d51a56p-53,
    -0x1.b30775a02d8e7p-58, 0x1.39611c9e1a393p-62, -0x1.bbd8254e491adp-67, 0x1.32fb7a1db2f28p-71,
    -0x1.a87d453fda927p-76, 0x1.27e206be2e69dp-80, -0x1.570ad552d79c4p-85, 0x1.a16cd947ba00bp-91,
};

/* (1 + 2x) erfcx(x) in t + 0.375, t = (x - 4)/(x + 4), x in [1/2, 4] */
static const double ERFCX_NEAR[17] = {
    0x1.47efb252fa4e3p+0, -0x1.68855c59260efp-4, -0x1.c85e1cdd3f847p-3, 0x1.d20d67f99e029p-2,
    -0x1.0689e92cbe5bcp-1, 0x1.a8134f40a5419p-2, -0x1.021008fae738fp-2, 0x1.d20d2d8741347p-4,
    -0x1.1bf4800b1cee2p-5, 0x1.254349e7239d5p-8, 0x1.8a370b90e8363p-10, -0x1.a9ca0ae92013ep-11,
    0x1.275e1bc9bd21cp-15, 0x1.3aadeee01f567p-14, -0x1.cdb0bee8a1d93p-17, -0x1.a9a7ea9765d1ap-18,
    0x1.c1e5307a916e1p-20,
};

/* the same in t - 0.5, x >= 4 */
static const double ERFCX_FAR[18] = {
    0x1.2bddf4a9768ecp+0, -0x1.a86d7e29e351cp-4, 0x1.43c35e64de18ep-5, -0x1.b6c0d731ff640p-8,
    -0x1.b32729525e93cp-8, 0x1.36f518542c3cbp-7, -0x1.0114467e3f8f9p-7, 0x1.4e11e73c8719ep-8,
    -0x1.6abca740152e5p-9, 0x1.4ada7f3085f64p-10, -0x1.eaed8865e37b8p-12, 0x1.0a6f65cf2978fp-13,
    -0x1.ece7ce9240786p-17, -0x1.f774f45e8f4a2p-18, 0x1.62c96df42c30cp-18, -0x1.5f03db16e60cap-20,
    -0x1.0d42459635f4dp-22, 0x1.064f7388e0320p-22,
};

/* 1/Gamma(1 + e) = sum c_k e^k, |e| <= 1/2: hi and lo of c_0 .. c_8 */
static const double RGAMMA_DD[9][2] = {
    {0x1p+0, 0x0.0p+0},
    {0x1.2788cfc6fb619p-1, -0x1.6cb90701fbfabp-58},
    {-0x1.4fcf4026afa2ep-1, 0x1.8a3db7a90c42ap-56},
    {-0x1.5815e8fa27048p-5, 0x1.b85ea59bc3638p-60},
    {0x1.5512320b43fbep-3, 0x1.77e9bfd84d0f8p-57},
    {-0x1.59af103c34092p-5, -0x1.ef8da0241c465p-59},
    {-0x1.3b4af28483e21p-7, -0x1.38dbcf40c139bp-61},
    {0x1.d919c527f60b2p-8, -0x1.a91714b11611fp-62},
    {-0x1.317112ce3a2a8p-10, 0x1.0b48922be53b9p-64},
};

/* the same from c_9 on */
static const double RGAMMA[16] = {
    -0x1.c364fe6f1563dp-13, 0x1.0c8a78cd9f9d2p-13, -0x1.51ce8af47eabep-16, -0x1.4fad41fc34fbbp-20,
    0x1.302509dbc0de3p-20, -0x1.b9986666c225dp-23, 0x1.a44b7ba22d629p-28, 0x1.57bc3fc384334p-28,
    -0x1.44b4cedca388fp-30, 0x1.cae7675c18607p-34, 0x1.11d065bfaf067p-37, -0x1.0423bac8ca3fbp-38,
    0x1.1f20151323cd0p-41, -0x1.72cb88ea5ae6ep-46, -0x1.815f72a05f16fp-48, 0x1.6198491a83bcdp-50,
};

/* lgamma(x)/((x - 1)(x - 2)) in x - 1, x in [1/2, 3/2] */
static const double LGAMMA_1[29] = {
    0x1.2788cfc6fb619p-1, -0x1.f6465978d46e7p-3, 0x1.3e54520481eb8p-3, -0x1.d7a3e6a8f2acfp-4,
    0x1.79cf9c4c5bdd6p-4, -0x1.3cb1f9d3742d0p-4, 0x1.115549e5354dbp-4, -0x1.e182471e72391p-5,
    0x1.ae8a9a53b32fcp-5, -0x1.85792598debbfp-5, 0x1.639f29b68d440p-5, -0x1.4737401ca0772p-5,
    0x1.2f0626c398a1ap-5, -0x1.1a1a903bf4c59p-5, 0x1.07e648e84e5c7p-5, -0x1.f171a7f01d4c8p-6,
    0x1.d5cc5449c3594p-6, -0x1.ae266d0f36d1ap-6, 0x1.930c5142860b8p-6, -0x1.dbab0c79e5fd5p-6,
    0x1.de23908521a35p-6, -0x1.1963df31ec066p-9, -0x1.8054719b93c4fp-9, -0x1.41dc136a08d78p-4,
    0x1.61ac9e62650dfp-4, 0x1.611445c73f265p-4, -0x1.8d21415f52558p-4, -0x1.d637a649f9ff1p-4,
    0x1.e6cc56b5c206dp-4,
};

/* the same in x - 2.25, x in [3/2, 3] */
static const double LGAMMA_2[22] = {
    0x1.992dfc9539d9bp-2, -0x1.5fc498795de96p-4, 0x1.9dff298b20962p-6, -0x1.155963451c756p-7,
    0x1.8e9b025ba1921p-9, -0x1.2b1a505b72fefp-10, 0x1.ce0fe40b781f0p-12, -0x1.6c4b7acb9f603p-13,
    0x1.2399887140b19p-14, -0x1.d84449baaa1d7p-16, 0x1.81f10579d6e11p-17, -0x1.3dba9fbc0ed01p-18,
    0x1.0734968e56a1bp-19, -0x1.b64462de84e1ap-21, 0x1.6d6bb980ae941p-22, -0x1.3271433e29c79p-23,
    0x1.0acf2279c665bp-24, -0x1.c56bf48b81950p-26, 0x1.22eece25c69f5p-27, -0x1.dc26d7ee2fa32p-29,
    0x1.e0d0ca3ca522fp-29, -0x1.a5a256b6196e5p-30,
};

/* lgamma(x) - (x - 1/2) log x + x - log(2 pi)/2 = sum c_k / x^(2k + 1) */
static const double STIRLING[10] = {
    0x1.5555555555555p-4, -0x1.6c16c16c16c17p-9, 0x1.a01a01a01a01ap-11, -0x1.3813813813814p-11,
    0x1.b951e2b18ff23p-11, -0x1.f6ab0d9993c7dp-10, 0x1.a41a41a41a41ap-8, -0x1.e4286cb0f5398p-6,
    0x1.6fe96381e0680p-3, -0x1.6476701181f3ap+0,
};

/* the zeros of lgamma below -2, greatest first: x0 (hi, lo), slope, and a, b of slope h (1 + a h + b h^2) */
static const double LGAMMA_ZEROS[31][5] = {
    {-0x1.5fb410a1bd901p+1, 0x1.a19a96d2e6f85p-54, -0x1.ea12da904b18cp+0, -0x1.401d6dca7df66p+2, 0x1.4fe848c1fe466p+3},
    {-0x1.5fb410a1bd901p+1, 0x1.a19a96d2e6f85p-54, -0x1.ea12da904b18cp+0, -0x1.401d6dca7df66p+2, 0x1.4fe848c1fe466p+3},
    {-0x1.9260dbc9e59afp+1, -0x1.f717cd335a7b3p-53, 0x1.f20a65f2fac55p+2, 0x1.a8e2bb8ffdeb7p+1, 0x1.cda9b4d92c3c6p+3},
    {-0x1.fa471547c2fe5p+1, -0x1.70d4561291237p-56, -0x1.4b99d966c5647p+4, -0x1.84a753636f57ep+3, 0x1.680250fd878d0p+7},
    {-0x1.0284e78599581p+2, 0x1.e78c1e9e43cfep-53, 0x1.aca5cf4921642p+4, 0x1.834edfd8ccae1p+3, 0x1.980849f7dbc2dp+7},
    {-0x1.3f7577a6eeafdp+2, 0x1.5de5eab7f12cfp-53, -0x1.d224a3ef9e41fp+6, -0x1.e036497ff112fp+5, 0x1.27bc3fbade9cbp+12},
    {-0x1.4086a57f0b6d9p+2, -0x1.95262b72ca9cap-55, 0x1.ed72e0829ae02p+6, 0x1.e032533de3b19p+5, 0x1.3043c4ae61a76p+12},
    {-0x1.7fe92f591f40dp+2, -0x1.7dd4ed62cbd32p-52, -0x1.661f6a43a5e12p+9, -0x1.680127f8bf934p+8, 0x1.509f444e9c2b8p+17},
    {-0x1.8016b25897c8dp+2, 0x1.27e0f49a4ba72p-54, 0x1.69de49e3af2aap+9, 0x1.680123e5e222ap+8, 0x1.5260bbb2a4888p+17},
    {-0x1.bffcbf76b86f0p+2, 0x1.853b29347b806p-57, -0x1.3abf7a5cea91bp+12, -0x1.3b0005814745ep+11, 0x1.024b8b71fb101p+23},
    {-0x1.c0033fdedfe1fp+2, 0x1.20bb7d2324678p-52, 0x1.3b407aa387bd1p+12, 0x1.3b00057e4712ep+11, 0x1.0280748e050fep+23},
    {-0x1.ffff97f8159cfp+2, -0x1.e54f415a91586p-55, -0x1.3af76fe4c2fabp+15, -0x1.3b000016eb9e8p+14, 0x1.02627cee3a871p+29},
    {-0x1.000034028b3f9p+3, -0x1.f60cb3cec1cedp-52, 0x1.3b088fed67718p+15, 0x1.3b000016e9f56p+14, 0x1.02698311c578fp+29},
    {-0x1.1ffffa3884bd0p+3, -0x1.ff90c9d2ae925p-53, -0x1.625edfc63db2fp+18, -0x1.626000005484ep+17, 0x1.470893018037fp+35},
    {-0x1.200005c7768fbp+3, -0x1.b5b610ffb70d4p-54, 0x1.6261203919440p+18, 0x1.6260000054843p+17, 0x1.47099cfe7fc81p+35},
    {-0x1.3fffff6c0d7c0p+3, 0x1.197cea8c42d7dp-51, -0x1.baf7da5f3795dp+21, -0x1.baf8000001178p+20, 0x1.fefe1fcbfc08cp+41},
    {-0x1.40000093f2777p+3, -0x1.927b45d95e154p-52, 0x1.baf825a0c63b2p+21, 0x1.baf8000001178p+20, 0x1.fefe4b3403f74p+41},
    {-0x1.5ffffff28cdd4p+3, 0x1.c9924a65aa486p-53, -0x1.308a7d8eadb7cp+25, -0x1.308a80000001ap+24, 0x1.e30c4ca312a8cp+48},
    {-0x1.6000000d7322ap+3, -0x1.8aecb2d37ff52p-51, 0x1.308a827152450p+25, 0x1.308a80000001ap+24, 0x1.e30c5082ed574p+48},
    {-0x1.7ffffffee1127p+3, -0x1.ce1f7906b30f5p-54, -0x1.c8cfbfaf2b0c8p+28, -0x1.c8cfc00000000p+27, 0x1.0fb6ec1aa5d8fp+56},
    {-0x1.800000011eed9p+3, 0x1.19d5307e1fb5ep-53, 0x1.c8cfc050d4f38p+28, 0x1.c8cfc00000000p+27, 0x1.0fb6ec4aba271p+56},
    {-0x1.9fffffffe9edcp+3, 0x1.84f40342d001cp-51, -0x1.7328cbfacb4e5p+32, -0x1.7328cc0000000p+31, 0x1.66bf83d8684f6p+63},
    {-0x1.a000000016124p+3, -0x1.84e03341ee8ddp-51, 0x1.7328cc0534b1bp+32, 0x1.7328cc0000000p+31, 0x1.66bf83dd7070ap+63},
    {-0x1.bffffffffe6c7p+3, 0x1.d2a30f3dae0fbp-51, -0x1.44c3b27faa6bcp+36, -0x1.44c3b28000000p+35, 0x1.12aaa0f378c92p+71},
    {-0x1.c000000001939p+3, -0x1.d2a2f4a73af63p-51, 0x1.44c3b28055944p+36, 0x1.44c3b28000000p+35, 0x1.12aaa0f3c129ep+71},
    {-0x1.dfffffffffe52p+3, 0x1.fcf9ccfd8867ep-51, -0x1.30777757fa84ap+40, -0x1.3077775800000p+39, 0x1.e2cfeeec3595ep+78},
    {-0x1.e0000000001aep+3, -0x1.fcf9ccde87210p-51, 0x1.30777758057b6p+40, 0x1.3077775800000p+39, 0x1.e2cfeeec3e475p+78},
    {-0x1.fffffffffffe5p+3, -0x1.80c18cc43ea26p-53, -0x1.30777757ffa65p+44, -0x1.3077775800000p+43, 0x1.e2cfeeec39a77p+86},
    {-0x1.000000000000dp+4, -0x1.cfe7ce6768509p-50, 0x1.307777580059bp+44, 0x1.3077775800000p+43, 0x1.e2cfeeec3a35bp+86},
    {-0x1.0ffffffffffffp+4, -0x1.ab4e23f3d49f1p-51, -0x1.437eeecd7ffa4p+48, -0x1.437eeecd80000p+47, 0x1.10865e5c56b0cp+95},
    {-0x1.1000000000001p+4, 0x1.ab4e23f3d4bbcp-51, 0x1.437eeecd8005cp+48, 0x1.437eeecd80000p+47, 0x1.10865e5c56b59p+95},
};

/* J0(x) in x^2, x <= 1.65 */
static const double J0_SMALL[9] = {
    0x1p+0, -0x1.ffffffffffffcp-3, 0x1.ffffffffffdb1p-7, -0x1.c71c71c70b036p-12,
    0x1.c71c71bedf406p-18, -0x1.234565597902fp-24, 0x1.02e7ad20ef17fp-31, -0x1.51ea8929c9378p-39,
    0x1.459af4e579d3ep-47,
};

/* J1(x)/x in x^2, x <= 1.65 */
static const double J1_SMALL[9] = {
    0x1p-1, -0x1.fffffffffffffp-5, 0x1.55555555554dfp-9, -0x1.c71c71c71573dp-15,
    0x1.6c16c168c8c68p-21, -0x1.845c884b8fecbp-28, 0x1.27e46f331cf88p-35, -0x1.51f72bb22bda0p-43,
    0x1.2286e99527faap-51,
};

/* zeros x0 of J0 and J1 in turn: x0 (hi, lo), J0(x0), J0'(x0) */
static const double BESSEL_J[25][4] = {
    {0x1.33d152e971b40p+1, -0x1.0f539d7da258ep-53, 0x0.0p+0, -0x1.09cdb36551280p-1},
    {0x1.ea75575af6f09p+1, -0x1.60155a9d1b256p-53, -0x1.9c6cf582cbf7fp-2, 0x0.0p+0},
    {0x1.6148f5b2c2e45p+2, 0x1.75054cd60a517p-54, 0x0.0p+0, 0x1.5c6e60a097823p-2},
    {0x1.c0ff5f3b47250p+2, -0x1.b226d9d243827p-54, 0x1.33518b3874e8ap-2, 0x0.0p+0},
    {0x1.14eb56cccdecap+3, -0x1.51970714c7c25p-52, 0x0.0p+0, -0x1.15f7977a772d4p-2},
    {0x1.458d0d0bdfc29p+3, 0x1.02610a51562b6p-51, -0x1.ff654544ebcd1p-3, 0x0.0p+0},
    {0x1.79544008272b6p+3, 0x1.444fd5821d5b1p-52, 0x0.0p+0, 0x1.dc13e66ac2e77p-3},
    {0x1.aa5baf310e5a2p+3, 0x1.2bce7fd18e693p-52, 0x1.bf3337873a7d8p-3, 0x0.0p+0},
    {0x1.ddca13ef271d2p+3, -0x1.9796609364e85p-51, 0x0.0p+0, -0x1.a701d0f967500p-3},
    {0x1.0787b360508c5p+4, -0x1.d2a68e88ab317p-50, -0x1.925c6fca08f55p-3, 0x0.0p+0},
    {0x1.212313f8a19f6p+4, -0x1.165fd108f46ffp-50, 0x0.0p+0, 0x1.8077f56c9b782p-3},
    {0x1.39da8e7416ca4p+4, -0x1.21830197e9e86p-50, 0x1.70c511227d5aap-3, 0x0.0p+0},
    {0x1.5362dd173f792p+4, 0x1.1d2dfa1c3b5a8p-51, 0x0.0p+0, -0x1.62d93aa9d05bbp-3},
    {0x1.6c294e3d4d8acp+4, -0x1.1bf33afef88f1p-51, -0x1.5664e13b70622p-3, 0x0.0p+0},
    {0x1.85a3b930156ddp+4, 0x1.0847c620015e0p-50, 0x0.0p+0, 0x1.4b2a2ebf61ecep-3},
    {0x1.9e7570dcea106p+4, 0x1.1a2686480d882p-51, 0x1.40f90793605bbp-3, 0x0.0p+0},
    {0x1.b7e54a5fd5f11p+4, 0x1.d2b3714972b28p-50, 0x0.0p+0, -0x1.37aac8c1aeabbp-3},
    {0x1.d0bfcf471fcccp+4, -0x1.42ce39ec976fbp-52, -0x1.2f2072e638cf4p-3, 0x0.0p+0},
    {0x1.ea27591cbbed2p+4, -0x1.36bbabc1c9f31p-51, 0x0.0p+0, 0x1.27407dfadee6dp-3},
    {0x1.018476e6b2bf0p+5, -0x1.be3a1cd066b66p-50, 0x1.1ff5eec6a01cdp-3, 0x0.0p+0},
    {0x1.0e34e13a66fe6p+5, 0x1.a326cf4307839p-50, 0x0.0p+0, -0x1.192f23ce3e051p-3},
    {0x1.1aa890dc5e97cp+5, -0x1.d5fbbff045068p-49, -0x1.12dd57bf18adap-3, 0x0.0p+0},
    {0x1.275637a9619ecp+5, -0x1.0b6068f861c6fp-50, 0x0.0p+0, 0x1.0cf3ed059c573p-3},
    {0x1.33cc523d5cb69p+5, 0x1.9eafeca0ca4fdp-51, 0x1.076826cc2c191p-3, 0x0.0p+0},
    {0x1.4077a7ed6293ap+5, -0x1.34c86f4e27936p-52, 0x0.0p+0, -0x1.0230b9797a7b3p-3},
};

/* zeros x0 of Y0 and Y1 in turn, from the second of Y0: x0 (hi, lo), Y0(x0), Y0'(x0) */
static const double BESSEL_Y[24][4] = {
    {0x1.fa9534d98569cp+1, -0x1.f06ae7804384ep-54, 0x0.0p+0, -0x1.9c34256a12a0cp-2},
    {0x1.5b7fe4e87b02ep+2, 0x1.dfe7bac228e8cp-52, -0x1.5c7c556f0c19ap-2, 0x0.0p+0},
    {0x1.c581dc4e72103p+2, -0x1.9774a495f56cfp-54, 0x0.0p+0, 0x1.334cca0697a5bp-2},
    {0x1.13127ae6169b4p+3, 0x1.479cc068d9046p-52, 0x1.15f993fceab5cp-2, 0x0.0p+0},
    {0x1.471d735a47d58p+3, -0x1.cb49ff791c495p-51, 0x0.0p+0, -0x1.ff635cc72b9f1p-3},
    {0x1.77f9138d43206p+3, 0x1.0fc786ce06080p-55, -0x1.dc14ea14e89f9p-3, 0x0.0p+0},
    {0x1.ab8e1c4a1e74ap+3, -0x1.7df81de86f24dp-51, 0x0.0p+0, 0x1.bf32a27594007p-3},
    {0x1.dcb7d88de848bp+3, -0x1.5e091a50f8e05p-51, 0x1.a7022be084d99p-3, 0x0.0p+0},
    {0x1.0803c74003214p+4, 0x1.25a237d12159bp-50, 0x0.0p+0, -0x1.925c35988ee29p-3},
    {0x1.20b1c695f1e3bp+4, -0x1.a1ee4c5487edep-50, -0x1.80781c32422e7p-3, 0x0.0p+0},
    {0x1.3a42cdf5febd7p+4, -0x1.8bf92d51fbaebp-50, 0x0.0p+0, 0x1.70c4f66cab47fp-3},
    {0x1.53025492188cdp+4, 0x1.391b14410528fp-50, 0x1.62d94d97e859cp-3, 0x0.0p+0},
    {0x1.6c832fd77ac07p+4, 0x1.ca75080cf53a8p-50, 0x0.0p+0, -0x1.5664d37c37d7bp-3},
    {0x1.854fa303820cap+4, 0x1.52f75f025b205p-52, -0x1.4b2a38f1ab9b4p-3, 0x0.0p+0},
    {0x1.9ec46f3e80146p+4, -0x1.03e052bd9c0afp-52, 0x0.0p+0, 0x1.40f8ffdf09a5fp-3},
    {0x1.b79acee8cfb7dp+4, -0x1.cf130fbea3b24p-52, 0x1.37aaceac987b9p-3, 0x0.0p+0},
    {0x1.d106449616c4fp+4, 0x1.0aab17eca74b9p-50, 0x0.0p+0, -0x1.2f206e49909c7p-3},
    {0x1.e9e480605283cp+4, -0x1.e7a77047d6166p-54, -0x1.2740819f1caaap-3, 0x0.0p+0},
    {0x1.01a4420e4abeep+5, 0x1.d2f18aa8a8f2fp-49, 0x0.0p+0, 0x1.1ff5ebddd3c3ap-3},
    {0x1.0e16907f8fb56p+5, -0x1.96beabef7ecf4p-49, 0x1.192f2627a74e3p-3, 0x0.0p+0},
    {0x1.1ac588c944279p+5, -0x1.9dd1578036d11p-53, 0x0.0p+0, -0x1.12dd55d4be2b3p-3},
    {0x1.273a7b35a7affp+5, 0x1.2481e87adfe57p-50, -0x1.0cf3ee98f769bp-3, 0x0.0p+0},
    {0x1.33e6ecf5cb221p+5, -0x1.9c3dd43e59158p-49, 0x0.0p+0, 0x1.0768257dad56ap-3},
    {0x1.405e18393afb5p+5, 0x1.a8ffacaac8461p-50, 0x1.0230ba90f2871p-3, 0x0.0p+0},
};

/* the first zero of Y0 */
static const double Y0_ZERO_HI = 0x1.c982eb8d417eap-1, Y0_ZERO_LO = 0x1.ea9d270347f83p-56;

/* the first zero of Y1 */
static const double Y1_ZERO_HI = 0x1.193bed4dff243p+1, Y1_ZERO_LO = -0x1.bd1e50d219bfdp-55;

/* (pi/2 Y0(x) - log(x/x0) J0(x))/(x^2 - x0^2) in x^2, x <= 2, x0 the first zero */
static const double Y0_SMALL[9] = {
    0x1.24fa6fc62dabfp-2, -0x1.aef08e53df270p-6, 0x1.ceaa2237a8946p-11, -0x1.04c2f5683a21ap-16,
    0x1.6ba6e0343ebf1p-23, -0x1.5940c5dc01b8cp-30, 0x1.db79e829ca376p-38, -0x1.f05c11b516132p-46,
    0x1.8516aee54dc4dp-54,
};

/* Y0(x) in x - 2.5625, x in [2, 3.16] */
static const double Y0_MIDDLE[18] = {
    0x1.f3d1859dab456p-2, -0x1.61e9817dc6359p-3, -0x1.aec32de907b72p-3, 0x1.a82578c6865b6p-5,
    0x1.05f00c2bd09dcp-7, -0x1.00fbf01932dc9p-10, -0x1.45aa9ad1abc8ep-11, 0x1.48ebca2271e11p-13,
    -0x1.2ae76cf0cc246p-15, 0x1.c69d16b328903p-17, -0x1.5266b474bcae8p-18, 0x1.e11c872979b22p-20,
    -0x1.597bf572f1af9p-21, 0x1.f37cd91fd32c2p-23, -0x1.64a294159629bp-24, 0x1.09f8d1c473779p-25,
    -0x1.dcd204e66d5a5p-27, 0x1.3e029f0e70beep-28,
};

/* x (pi/2 Y1(x) - log(x/x0) J1(x))/(x^2 - x0^2) in x^2, x <= 3.16, x0 the first zero */
static const double Y1_SMALL[11] = {
    0x1.a83e073feaf24p-3, 0x1.9c7cff3a0e7a9p-6, -0x1.2a96954231830p-9, 0x1.1108777b36bc5p-14,
    -0x1.073c253a7f6ddp-20, 0x1.3f21fe4c8da07p-27, -0x1.0b84543ddab5ap-34, 0x1.499ad6e7af653p-42,
    -0x1.377b4c566c63bp-50, 0x1.cfe913a7ff39ap-59, -0x1.fd375034ef1f1p-68,
};

/* log of the amplitude of order 0: sum c_k / x^(2k + 2) */
static const double AMPLITUDE_0[7] = {
    -0x1p-4, 0x1.a000000000000p-4, -0x1.12aaaaaaaaaabp-1, 0x1.73d4000000000p+2,
    -0x1.a9df0cccccccdp+6, 0x1.7217ac5555555p+11, -0x1.c6733f2524925p+16,
};

/* phase of order 0: sum c_k / x^(2k + 1), hi and lo of c_0 .. c_6 */
static const double PHASE_0_DD[7][2] = {
    {-0x1p-3, 0x0.0p+0},
    {0x1.0aaaaaaaaaaabp-4, -0x1.5555555555555p-58},
    {-0x1.ad33333333333p-3, -0x1.999999999999ap-58},
    {0x1.a358492492492p+0, 0x1.2492492492492p-54},
    {-0x1.779a1f8e38e39p+4, 0x1.c71c71c71c71cp-52},
    {0x1.0bd1fc8b1745dp+9, 0x1.745d1745d1746p-47},
    {-0x1.16b51e66c789ep+14, 0x1.d89d89d89d89ep-40},
};

/* the same from c_7 on */
static const double PHASE_0[23] = {
    0x1.8ecc3af33ab37p+19, -0x1.779dae2b8512fp+25, 0x1.c296336955c7fp+31, -0x1.4f5ee683b6432p+38,
    0x1.2f51eced6693fp+45, -0x1.47a533f6de60ap+52, 0x1.a0a16e6f97809p+59, -0x1.34046f37b54fdp+67,
    0x1.06023472701c9p+75, -0x1.fc2ca43f8f3ccp+82, 0x1.16a9627a7f67cp+91, -0x1.572a8ac1517f7p+99,
    0x1.d7878738aae2bp+107, -0x1.6768ff362a6a8p+116, 0x1.2e61448ca47b1p+125, -0x1.177fb247aa93cp+134,
    0x1.1aa42ac71685bp+143, -0x1.377d0bfe039b5p+152, 0x1.74c932d7f76e8p+161, -0x1.e2ea2fccca225p+170,
    0x1.518c37b7e9527p+180, -0x1.fbcef10f84365p+189, 0x1.99fe45e0d5c51p+199,
};

/* log of the amplitude of order 1: sum c_k / x^(2k + 2) */
static const double AMPLITUDE_1[7] = {
    0x1.8000000000000p-3, -0x1.b000000000000p-3, 0x1.b000000000000p-1, -0x1.faac000000000p+2,
    0x1.0ccf933333333p+7, -0x1.be4b730000000p+11, 0x1.09cff9e7b6db7p+17,
};

/* phase of order 1: sum c_k / x^(2k + 1), hi and lo of c_0 .. c_6 */
static const double PHASE_1_DD[7][2] = {
    {0x1.8000000000000p-2, 0x0.0p+0},
    {-0x1.5000000000000p-3, 0x0.0p+0},
    {0x1.7bccccccccccdp-2, -0x1.999999999999ap-57},
    {-0x1.2f486db6db6dbp+1, -0x1.b6db6db6db6dbp-53},
    {0x1.e9fbf40000000p+4, 0x0.0p+0},
    {-0x1.4997b55945d17p+9, -0x1.1745d1745d174p-45},
    {0x1.4a914195269d9p+14, -0x1.89d89d89d89d9p-40},
};

/* the same from c_7 on */
static const double PHASE_1[23] = {
    -0x1.cd1b53816aec1p+19, 0x1.aa4095d419351p+25, -0x1.f809305f11b9dp+31, 0x1.72e6809ed618bp+38,
    -0x1.4c5b6057839f9p+45, 0x1.6441cffe88783p+52, -0x1.c2144ab994bcdp+59, 0x1.4ae6f218a30dep+67,
    -0x1.181ffdb880f4ep+75, 0x1.0e844ddb85314p+83, -0x1.279566d935729p+91, 0x1.6acf57fb43638p+99,
    -0x1.f10ea1f512c71p+107, 0x1.79ddfe29e1900p+116, -0x1.3d26151b5ec76p+125, 0x1.24837aa75a65fp+134,
    -0x1.27375674b7ea3p+143, 0x1.44c181b3c2e98p+152, -0x1.8403d4146ff40p+161, 0x1.f5de2af0ef02ap+170,
    -0x1.5e4b7a3fe3341p+180, 0x1.0724b70df3489p+190, -0x1.a86360481e62ap+199,
};

/* 2/pi: a word of zeros, then 1280 bits after the binary point */
static const uint64_t TWO_OVER_PI[21] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
    0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
};

/* I0(x) in x^2, x <= 8 */
static const double I0_SMALL[17] = {
    0x1p+0, 0x1p-2, 0x1.0000000000002p-6, 0x1.c71c71c71c6dfp-12,
    0x1.c71c71c71cbebp-18, 0x1.23456789a82b6p-24, 0x1.02e85c08d2b69p-31, 0x1.522a43f14ed5bp-39,
    0x1.522a44465db87p-47, 0x1.0b312ee0b62c8p-55, 0x1.5601c817fb294p-64, 0x1.69c761327b691p-73,
    0x1.41b6d2a3ef29ep-82, 0x1.e56ec2a042a81p-92, 0x1.46a6fe00cd6ffp-101, 0x1.31c4039a69bf6p-111,
    0x1.20de50ee937a2p-120,
};

/* I1(x)/x in x^2, x <= 8 */
static const double I1_SMALL[16] = {
    0x1p-1, 0x1.0000000000001p-4, 0x1.5555555555540p-9, 0x1.c71c71c71c9f2p-15,
    0x1.6c16c16c13a31p-21, 0x1.845c8a0d2769ep-28, 0x1.27e4fb73ec47ep-35, 0x1.522a443bfc5e8p-43,
    0x1.2c97551e62e0ap-51, 0x1.ab8235081a452p-60, 0x1.f172556758d22p-69, 0x1.e29108846b664p-78,
    0x1.8a6efe52fa2efp-87, 0x1.1dc64f2e4590cp-96, 0x1.1ebc3216bf4cfp-106, 0x1.20ebdb99edb53p-115,
};

/* sqrt(x) exp(-x) I0(x) in 1/x - 1/16, x >= 8 */
static const double I0_LARGE[25] = {
    0x1.9bd428ad249a5p-2, 0x1.b87969bb93b86p-5, 0x1.1daa72b5e2c32p-5, 0x1.75e5ee71967abp-5,
    0x1.8e513a6ff75bap-4, 0x1.3f49a7ccb976ap-2, 0x1.7d0f172818efdp+0, 0x1.51ce757be86cdp+3,
    0x1.7232a73bb7903p+6, 0x1.0393594662bf3p+9, -0x1.cfaf4238fd838p+12, -0x1.ccb83f4de6714p+17,
    -0x1.737472d5fc178p+20, 0x1.037c1e370c346p+25, 0x1.feb900066f74fp+28, -0x1.e1b62ed466a00p+31,
    -0x1.994d39b2adb98p+36, 0x1.a17ed71b11574p+38, 0x1.f4621134da675p+43, -0x1.39ba36e062425p+45,
    -0x1.bd8f71c740d46p+50, 0x1.4f253d7376559p+51, 0x1.f81dae5581cdap+56, -0x1.63312684e0e17p+56,
    -0x1.0b74fd352b161p+62,
};

/* sqrt(x) exp(-x) I1(x) in 1/x - 1/16, x >= 8 */
static const double I1_LARGE[26] = {
    0x1.8ebe783a84030p-2, -0x1.3f796198ee63bp-3, -0x1.cbc54df1e94e9p-5, -0x1.f89c2304a6004p-5,
    -0x1.ec8e106a9a013p-4, -0x1.76138506935aep-2, -0x1.ad8d58013f912p+0, -0x1.727794336cd86p+3,
    -0x1.918ef6305c158p+6, -0x1.21e33ad94db2ap+9, 0x1.ceb9ea28bef51p+12, 0x1.e3c2ab8336a10p+17,
    0x1.9accd7c52f0a0p+20, -0x1.0b9c09f82413dp+25, -0x1.0f57d5fe901dcp+29, 0x1.0153bad4d1883p+32,
    0x1.ae0162053dc0dp+36, -0x1.06537bf490ff2p+39, -0x1.05e08b1595975p+44, 0x1.10f49738400f5p+46,
    0x1.d23b8e66d2fafp+50, -0x1.db906f154a428p+52, -0x1.0816855ef7484p+57, 0x1.136bbd03fd173p+59,
    0x1.18c8bcd179b4bp+62, -0x1.2d8fa19293d06p+64,
};

/* END TABLES */

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define POLY(table, x) poly(table, COUNT(table), x)

static const double SQRT_2 = 0x1.6a09e667f3bcdp+0;
static const double SQRT_HALF = 0x1.6a09e667f3bcdp-1;
static const double INV_SQRT_PI = 0x1.20dd750429b6dp-1;
static const double TWO_OVER_PI_D = 0x1.45f306dc9c883p-1;
static const double LN_2 = 0x1.62e42fefa39efp-1;
static const double LOG_SQRT_2PI = 0x1.d67f1c864beb5p-1;

/* sum table[k] x^k */
static double poly(const double *table, int n, double x) {
    double s = table[n - 1];
    for (int k = n - 2; k >= 0; k--)
        s = fma(s, x, table[k]);
    return s;
}

/* ---- double-double arithmetic: hi + lo, |lo| at most half an ulp of hi ---- */

typedef struct {
    double hi, lo;
} dd;

/* a + b without error */
static dd two_sum(double a, double b) {
    double s = a + b;
    double t = s - a;
    return (dd){s, (a - (s - t)) + (b - t)};
}

/* a + b without error where |a| >= |b| */
static dd fast_two_sum(double a, double b) {
    double s = a + b;
    return (dd){s, b - (s - a)};
}

static dd two_prod(double a, double b) {
    double p = a * b;
    return (dd){p, fma(a, b, -p)};
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
    return fast_two_sum(p.hi, fma(a.lo, b, p.lo));
}

static dd dd_add_d(dd a, double b) {
    dd s = two_sum(a.hi, b);
    return fast_two_sum(s.hi, s.lo + a.lo);
}

/* 1 / a as dd */
static dd dd_inverse(dd a) {
    double q = 1 / a.hi;
    double r = fma(-q, a.hi, 1) - q * a.lo;
    return fast_two_sum(q, q * r);
}

/* ---- error function family ---- */

/* erfcinv(q) for q in [0, 1/2] */
static double erfcinv_tail(double q) {
    if (q == 0)
        return INFINITY;
    double s = sqrt(-log(q));
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
    return x * POLY(ERFINV_MID, -log1p(-x * x));
}

double tc_erfinv_f64(double x) {
    double a = fabs(x);
    if (!(a <= 1))
        return NAN;
    if (a <= 0.5)
        return erfinv_middle(x);
    return copysign(erfcinv_tail(1 - a), x);
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
    if (x < 0.5)
        return exp(x * x) * erfc(x);
    double t = (x - 4) / (x + 4);
    return (t < 0 ? POLY(ERFCX_NEAR, t + 0.375) : POLY(ERFCX_FAR, t - 0.5)) / (1 + 2 * x);
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
    double e = exp(square.hi);
    /* An infinite e times a zero or negative low part must stay infinite. */
    return e == INFINITY ? e : 2 * (e + e * square.lo) - erfcx_positive(-x);
}

double tc_normcdf_f64(double x) {
    if (!(x < -0.5))
        return 0.5 * erfc(-x * SQRT_HALF);
    if (x < -40)
        return 0;
    /* exp(-x^2/2) erfcx(-x/sqrt 2) / 2. Far out the exponential is the square of
       one that cannot underflow, so that a subnormal result is rounded once. */
    double part = x < -37 ? 0.5 : 1;
    dd square = two_prod(x, 0.5 * x);
    double e = exp(-part * square.hi);
    double f = 0.5 * erfcx_positive(-x * SQRT_HALF);
    double r = e * (f - f * square.lo);
    return part < 1 ? r * e : r;
}

/* ---- sine and cosine of multiples of pi ---- */

/* sin(pi x) for quarter = 0, cos(pi x) for quarter = 1 */
static double sinpi_shifted(double x, int quarter) {
    if (!(fabs(x) < INFINITY))
        return NAN;
    double r = x - 2 * rint(0.5 * x); /* exact, in [-1, 1] */
    double n = rint(2 * r);
    double f = r - 0.5 * n; /* exact, in [-1/4, 1/4] */
    double hi = PI_HI * f;
    double lo = fma(PI_HI, f, -hi) + PI_LO * f;
    int k = ((int)n + quarter) & 3;
    double v = k & 1 ? cos(hi) - lo * sin(hi) : sin(hi) + lo * cos(hi);
    return k & 2 ? -v : v;
}

double tc_sinpi_f64(double x) {
    if (rint(x) == x && fabs(x) < INFINITY)
        return copysign(0, x);
    return sinpi_shifted(x, 0);
}

double tc_cospi_f64(double x) {
    return sinpi_shifted(x, 1) + 0.0; /* a zero is positive */
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
    double n = rint(x);
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
    if (fabs(x) < 0x1p-54)
        return 1 / x;
    if (x < 0 && floor(x) == x)
        return NAN; /* -infinity too */
    if (fabs(x) <= 20) {
        dd r = rgamma_small(x);
        return dd_inverse(r).hi;
    }
    double y = fabs(x);
    int negative = x < 0 && fmod(floor(x), 2) != 0;
    if (y > 185)
        return x > 0 ? INFINITY : negative ? -0.0 : 0.0;
    /* Gamma(y) = p * q, each of them far from overflow. Only the library's own
       errors count: the products keep a low part. */
    double p = pow(y, 0.5 * y - 0.25);
    dd q = dd_mul(two_prod(p, exp(-y)), (dd){SQRT_2PI_HI, SQRT_2PI_LO});
    q = dd_add_d(q, q.hi * expm1(stirling(y)));
    if (x > 0)
        return q.hi * p == INFINITY ? INFINITY : fma(q.hi, p, q.lo * p);
    /* Gamma(-y) = -pi / (y sin(pi y) Gamma(y)) (6.1.17) */
    q = dd_inverse(dd_mul_d(dd_mul_d(q, y), sinpi_shifted(y - rint(y), 0)));
    double r = fabs(PI_HI * q.hi + PI_LO * q.hi + PI_HI * q.lo) / p;
    return negative ? -r : r;
}

/* lgamma(x) for -24 <= x < -2, x no integer */
static double lgamma_negative(double x) {
    /* Close to a zero: its expansion. Zeros come in pairs, one each side of an
       integer; the first pair is incomplete. */
    for (int k = 0; k < COUNT(LGAMMA_ZEROS); k++) {
        const double *z = LGAMMA_ZEROS[k];
        double h = (x - z[0]) - z[1];
        if (fabs(h * z[2]) < 0x1p-18)
            return z[2] * h * fma(h, fma(h, z[4], z[3]), 1);
    }
    dd r = rgamma_small(x);
    if (r.hi < 0)
        r = (dd){-r.hi, -r.lo};
    if (r.hi > 0.5 && r.hi < 2)
        return -log1p((r.hi - 1) + r.lo);
    return -log(r.hi);
}

double tc_lgamma_f64(double x) {
    if (x != x)
        return x;
    if (x <= 0 && floor(x) == x)
        return INFINITY; /* -infinity too */
    if (fabs(x) == INFINITY)
        return INFINITY;
    if (x < 0) {
        if (x > -0x1p-54)
            return -log(-x);
        if (x >= -2)
            return -log(fabs(rgamma_small(x).hi));
        if (x >= -24)
            return lgamma_negative(x);
        return -log(-x * fabs(sinpi_shifted(x, 0)) / PI_HI) - tc_lgamma_f64(-x);
    }
    if (x < 0.5) /* lgamma(1 + x) - log x */
        return x * (x - 1) * POLY(LGAMMA_1, x) - log(x);
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
        return log(p) + (x - 1) * (x - 2) * POLY(LGAMMA_2, x - 2.25);
    }
    return (x - 0.5) * (log(x) - 1) + (LOG_SQRT_2PI - 0.5 + stirling(x));
}

/* ---- angles ---- */

/*
 * x - shift pi/4 modulo 2 pi for x >= 32, as a number of quarter turns, returned,
 * and an angle of at most pi/4. 2/pi is taken to 192 bits from the place where
 * its product with x is below four, so the angle is exact to about 2^-136.
 */
static int reduce(double x, unsigned shift, dd *angle) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
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
    dd sum = {0, 0};
    for (int i = 0; i < 6; i++)
        sum = dd_add_d(sum, piece[i]);
    sum = dd_mul(sum, (dd){HALF_PI_HI, HALF_PI_LO});
    *angle = negative ? (dd){-sum.hi, -sum.lo} : sum;
    return quarter;
}

/* the cosine of a number of quarter turns and an angle */
static double turned_cos(int quarter, dd angle) {
    double v = quarter & 1 ? -sin(angle.hi) - cos(angle.hi) * angle.lo
                           : cos(angle.hi) - sin(angle.hi) * angle.lo;
    return quarter & 2 ? -v : v;
}

/*
 * The C library's sine, cosine and tangent in double lose digits near their zeros
 * where the argument is large (glibc 2.36: 100000 ulp), hence the own reduction.
 */
#define LARGE_ANGLE 0x1p+25

static int is_large_angle(double x) {
    return fabs(x) >= LARGE_ANGLE && fabs(x) < INFINITY;
}

double tc_cos_f64(double x) {
    if (!is_large_angle(x))
        return cos(x);
    dd angle;
    int quarter = reduce(fabs(x), 0, &angle);
    return turned_cos(quarter, angle);
}

double tc_sin_f64(double x) {
    if (!is_large_angle(x))
        return sin(x);
    dd angle;
    int quarter = reduce(fabs(x), 2, &angle); /* sin x = cos(x - pi/2) */
    return copysign(1, x) * turned_cos(quarter, angle);
}

double tc_tan_f64(double x) {
    if (!is_large_angle(x))
        return tan(x);
    dd angle;
    int quarter = reduce(fabs(x), 0, &angle);
    return copysign(1, x) * (turned_cos(quarter + 3, angle) / turned_cos(quarter, angle));
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
    double a[TERMS] = {row[2], row[3]};
    for (int k = 0; k + 2 < TERMS; k++) {
        double n = k + 1, before = k > 0 ? a[k - 1] : 0;
        a[k + 2] = -(fma(fma(n * n, a[k + 1], before), inverse, a[k])) / (n * (n + 1));
    }
    if (order == 0)
        return poly(a, TERMS, h);
    double s = 0;
    for (int k = TERMS - 1; k > 0; k--)
        s = fma(s, h, k * a[k]);
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
    return sqrt(TWO_OVER_PI_D * inverse) * (value + value * expm1(amplitude));
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
    x = fabs(x);
    return x == INFINITY ? 0 : j0_positive(x);
}

double tc_j1_f64(double x) {
    if (x != x)
        return x;
    double a = fabs(x);
    return copysign(1, x) * (a == INFINITY ? 0 : j1_positive(a));
}

/* log(x / (hi + lo)) and, in *gap, x^2 - (hi + lo)^2, both to relative precision */
static double log_ratio(double x, double hi, double lo, double *gap) {
    double h = (x - hi) - lo;
    *gap = h * (x + hi);
    /* x / hi would lose bits where x is subnormal */
    return x < 0.5 * hi ? log(x) - log(hi) : log1p(h / hi);
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
    double e = exp(0.5 * x);
    return e * (v / sqrt(x)) * e;
}

double tc_cyl_bessel_i0_f64(double x) {
    double a = fabs(x);
    if (a < 8)
        return POLY(I0_SMALL, a * a);
    if (a > 720)
        return INFINITY;
    return bessel_growth(a, POLY(I0_LARGE, 1 / a - 0.0625));
}

double tc_cyl_bessel_i1_f64(double x) {
    double a = fabs(x);
    if (a < 8)
        return x * POLY(I1_SMALL, a * a);
    if (a > 720)
        return copysign(INFINITY, x);
    return copysign(bessel_growth(a, POLY(I1_LARGE, 1 / a - 0.0625)), x);
}

/* ---- powers, roots and lengths ---- */

double tc_exp10_f64(double x) {
    if (!(x > -400 && x < 400))
        return exp(x); /* the same special values */
    dd t = two_prod(x, LOG2_10_HI);
    double e = exp2(t.hi);
    double c = LN_2 * fma(x, LOG2_10_LO, t.lo);
    return e == INFINITY ? e : fma(e, c, e);
}

double tc_rsqrt_f64(double x) {
    return 1 / sqrt(x);
}

/* x = m 8^third with |m| in [1/8, 1), for x finite and not zero */
static double split_cube(double x, int *third) {
    int e;
    double m = frexp(x, &e);
    *third = (e + 3002) / 3 - 1000; /* rounds up, so e - 3 third is in {-2, -1, 0} */
    return ldexp(m, e - 3 * *third);
}

/* The C library's root may be 4 ulp off; one step of Newton's method follows. */
double tc_cbrt_f64(double x) {
    double y = cbrt(x);
    if (x == 0 || !(fabs(x) < INFINITY))
        return y;
    int third;
    double m = split_cube(x, &third);
    double z = ldexp(y, -third);
    dd square = two_prod(z, z);
    double residual = fma(-square.hi, z, m) - square.lo * z;
    return ldexp(z + residual / (3 * square.hi), third);
}

double tc_rcbrt_f64(double x) {
    double y = 1 / cbrt(x);
    if (x == 0 || !(fabs(x) < INFINITY))
        return y;
    int third;
    double m = split_cube(x, &third);
    double z = ldexp(y, third);
    double residual = fma(-(m * z), z * z, 1);
    return ldexp(fma(z * (1.0 / 3), residual, z), -third);
}

/*
 * The sum of squares of n numbers, scaled by 4^-e so that nothing overflows or
 * underflows. NaN only where no number is infinite.
 */
static double squares(const double *v, int n, int *e) {
    double most = 0, any = 0;
    for (int k = 0; k < n; k++) {
        if (fabs(v[k]) == INFINITY) {
            *e = 0;
            return INFINITY;
        }
        any += v[k];
        most = fmax(most, fabs(v[k]));
    }
    *e = 0;
    if (any != any || most == 0)
        return any != any ? any : 0;
    frexp(most, e);
    double s = 0;
    for (int k = 0; k < n; k++) {
        double t = ldexp(v[k], -*e);
        s = fma(t, t, s);
    }
    return s;
}

static double norm(const double *v, int n) {
    int e;
    double s = squares(v, n, &e);
    return ldexp(sqrt(s), e);
}

static double rnorm(const double *v, int n) {
    int e;
    double s = squares(v, n, &e);
    return ldexp(1 / sqrt(s), -e);
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

/* ---- minimum and maximum: NaN counts as missing, and -0 < +0 ---- */

double tc_fmax_f64(double x, double y) {
    if (x == y)
        return signbit(x) ? y : x;
    return x > y || y != y ? x : y;
}

double tc_fmin_f64(double x, double y) {
    if (x == y)
        return signbit(x) ? x : y;
    return x < y || y != y ? x : y;
}

float tc_fmax_f32(float x, float y) {
    if (x == y)
        return signbit(x) ? y : x;
    return x > y || y != y ? x : y;
}

float tc_fmin_f32(float x, float y) {
    if (x == y)
        return signbit(x) ? x : y;
    return x < y || y != y ? x : y;
}

double tc_fdivide_f64(double x, double y) {
    return x / y;
}

float tc_fdivide_f32(float x, float y) {
    return x / y;
}

/* ---- taken from the C library in both widths ---- */

#define LIBM_1(name) \
    double tc_##name##_f64(double x) { return name(x); } \
    float tc_##name##_f32(float x) { return name##f(x); }

#define LIBM_2(name) \
    double tc_##name##_f64(double x, double y) { return name(x, y); } \
    float tc_##name##_f32(float x, float y) { return name##f(x, y); }

LIBM_1(acos)
LIBM_1(acosh)
LIBM_1(asin)
LIBM_1(asinh)
LIBM_1(atan)
LIBM_1(atanh)
LIBM_1(ceil)
LIBM_1(cosh)
LIBM_1(erf)
LIBM_1(erfc)
LIBM_1(exp)
LIBM_1(exp2)
LIBM_1(expm1)
LIBM_1(fabs)
LIBM_1(floor)
LIBM_1(log)
LIBM_1(log10)
LIBM_1(log1p)
LIBM_1(log2)
LIBM_1(logb)
LIBM_1(round)
LIBM_1(sinh)
LIBM_1(sqrt)
LIBM_1(tanh)
LIBM_1(trunc)
LIBM_2(atan2)
LIBM_2(copysign)
LIBM_2(fdim)
LIBM_2(fmod)
LIBM_2(hypot)
LIBM_2(nextafter)
LIBM_2(pow)
LIBM_2(remainder)

double tc_fma_f64(double x, double y, double z) {
    return fma(x, y, z);
}

float tc_fma_f32(float x, float y, float z) {
    return fmaf(x, y, z);
}

float tc_cos_f32(float x) {
    return cosf(x);
}

float tc_sin_f32(float x) {
    return sinf(x);
}

float tc_tan_f32(float x) {
    return tanf(x);
}

/* ---- single precision through double ---- */

#define NARROW_1(name) \
    float tc_##name##_f32(float x) { return (float)tc_##name##_f64(x); }

NARROW_1(cospi)
NARROW_1(cyl_bessel_i0)
NARROW_1(cyl_bessel_i1)
NARROW_1(erfcinv)
NARROW_1(erfcx)
NARROW_1(erfinv)
NARROW_1(j0)
NARROW_1(j1)
NARROW_1(lgamma)
NARROW_1(normcdf)
NARROW_1(normcdfinv)
NARROW_1(sinpi)
NARROW_1(tgamma)
NARROW_1(y0)
NARROW_1(y1)

float tc_exp10_f32(float x) {
    return (float)exp2(LOG2_10_HI * x);
}

float tc_rsqrt_f32(float x) {
    return 1 / sqrtf(x);
}

float tc_cbrt_f32(float x) {
    return (float)cbrt(x);
}

float tc_rcbrt_f32(float x) {
    return (float)(1 / cbrt(x));
}

/* The square of a float is far from the ends of double's range. */
static double squares_f32(const float *v, int n) {
    double s = 0;
    int infinite = 0;
    for (int k = 0; k < n; k++) {
        infinite |= fabsf(v[k]) == INFINITY;
        s += (double)v[k] * v[k];
    }
    return infinite ? INFINITY : s;
}

float tc_rhypot_f32(float x, float y) {
    return (float)(1 / sqrt(squares_f32((float[]){x, y}, 2)));
}

float tc_norm3d_f32(float x, float y, float z) {
    return (float)sqrt(squares_f32((float[]){x, y, z}, 3));
}

float tc_rnorm3d_f32(float x, float y, float z) {
    return (float)(1 / sqrt(squares_f32((float[]){x, y, z}, 3)));
}

float tc_norm4d_f32(float x, float y, float z, float w) {
    return (float)sqrt(squares_f32((float[]){x, y, z, w}, 4));
}

float tc_rnorm4d_f32(float x, float y, float z, float w) {
    return (float)(1 / sqrt(squares_f32((float[]){x, y, z, w}, 4)));
}
