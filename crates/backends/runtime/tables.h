/* The constant tables of the built-ins, written by reference/tables.py. */

#ifndef TC_TABLES_H
#define TC_TABLES_H

#include <stdint.h>

/* pi */
static const double PI_HI = 0x1.921fb54442d18p+1, PI_LO = 0x1.1a62633145c07p-53;

/* sqrt(2 pi) */
static const double SQRT_2PI_HI = 0x1.40d931ff62706p+1, SQRT_2PI_LO = -0x1.a6a0d6f814637p-53;

/* pi/2 */
static const double HALF_PI_HI = 0x1.921fb54442d18p+0, HALF_PI_LO = 0x1.1a62633145c07p-54;

/* log2(10) */
static const double LOG2_10_HI = 0x1.a934f0979a371p+1, LOG2_10_LO = 0x1.7f2495fb7fa6dp-53;

/* (exp(r) - 1 - r)/r^2, |r| <= log(2)/2 */
static const double EXP[11] = {
    0x1p-1, 0x1.5555555555557p-3, 0x1.5555555555557p-5, 0x1.11111111100dfp-7,
    0x1.6c16c16c15a6cp-10, 0x1.a01a01abe6590p-13, 0x1.a01a01a9e82cbp-16, 0x1.71de0236dcb2ap-19,
    0x1.27e4d41d29b6fp-22, 0x1.af4dde68d4777p-26, 0x1.1f7f2076b3148p-29,
};

/* the same for floats */
static const float EXP_F32[6] = {
    0x1p-1f, 0x1.555556p-3f, 0x1.5554eap-5f, 0x1.1110c6p-7f,
    0x1.6d431ap-10f, 0x1.a1516ep-13f,
};

/* log(2) in two parts, the first of 32 bits */
static const double LOG_2[2] = {
    0x1.62e42fee00000p-1, 0x1.a39ef35793c76p-33,
};

/* the same for floats, the first of 15 bits */
static const float LOG_2_F32[2] = {
    0x1.62e4p-1f, 0x1.7f7d1cp-20f,
};

/* 1/log(2) */
static const double LOG2_E_HI = 0x1.71547652b82fep+0, LOG2_E_LO = 0x1.777d0ffda0d24p-56;

/* 1/log(10) */
static const double LOG10_E_HI = 0x1.bcb7b1526e50ep-2, LOG10_E_LO = 0x1.95355baaafad3p-57;

/* log(2) */
static const double LOG_2_EXACT_HI = 0x1.62e42fefa39efp-1, LOG_2_EXACT_LO = 0x1.abc9e3b39803fp-56;

/* log(10) */
static const double LOG_10_HI = 0x1.26bb1bbb55516p+1, LOG_10_LO = -0x1.f48ad494ea3e9p-53;

/* (atanh(s)/s - 1 - z/3)/z^2 in z = s^2, s <= (sqrt 2 - 1)/(sqrt 2 + 1) */
static const double ATANH[8] = {
    0x1.999999999999ap-3, 0x1.2492492492522p-3, 0x1.c71c71c6ea757p-4, 0x1.745d177ab80cfp-4,
    0x1.3b1395c571b61p-4, 0x1.1118ca4ea8a05p-4, 0x1.df7c540c14106p-5, 0x1.e032c677eb535p-5,
};

/* (log(1 + f) - f + f^2/2)/f^3, 1 + f in [sqrt 1/2, sqrt 2] */
static const float LOG_F32[9] = {
    0x1.555554p-2f, -0x1.fffff2p-3f, 0x1.999d5p-3f, -0x1.555ed8p-3f,
    0x1.23d6b6p-3f, -0x1.fc5b4cp-4f, 0x1.dda7cep-4f, -0x1.d9f4d6p-4f,
    0x1.24da9ap-4f,
};

/* log2((1 + s)/(1 - s))/s in s^2, for results in single precision */
static const double LOG2_NARROW[6] = {
    0x1.71547652b8251p+1, 0x1.ec709dc53bc39p-1, 0x1.2776c293f5ad3p-1, 0x1.a61a2e3aa2a48p-2,
    0x1.47956cfbbb6abp-2, 0x1.21afa68ac460bp-2,
};

/* 2^f, |f| <= 1/2, for results in single precision */
static const double EXP2_NARROW[9] = {
    0x1.000000000003dp+0, 0x1.62e42fef84cd5p-1, 0x1.ebfbdff8149e3p-3, 0x1.c6b08dd7007ccp-5,
    0x1.3b2ab72b1879ep-7, 0x1.5d8745a3cec2ap-10, 0x1.43088e23ba6dap-13, 0x1.00dc4c3d33fc1p-16,
    0x1.63ef985f2da27p-20,
};

/* (2^f - 1)/f, |f| <= 1/2 */
static const float EXP2_F32[6] = {
    0x1.62e43p-1f, 0x1.ebfbep-3f, 0x1.c6af6cp-5f, 0x1.3b2a1cp-7f,
    0x1.5f0896p-10f, 0x1.444004p-13f,
};

/* pi/2 in four parts, the first three of 28 bits */
static const double HALF_PI_PARTS[4] = {
    0x1.921fb54000000p+0, 0x1.10b4610000000p-30, 0x1.a626330000000p-58, 0x1.45c06e0e68948p-86,
};

/* (sin(x)/x - 1)/z in z = x^2, x <= pi/4 */
static const double SIN[7] = {
    -0x1.5555555555555p-3, 0x1.1111111111110p-7, -0x1.a01a01a019938p-13, 0x1.71de3a5460a0fp-19,
    -0x1.ae645412d6e00p-26, 0x1.61217f180a839p-33, -0x1.ab17dac2a38f8p-41,
};

/* (cos(x) - 1 + z/2)/z^2 in z = x^2, x <= pi/4 */
static const double COS[6] = {
    0x1.5555555555555p-5, -0x1.6c16c16c16967p-10, 0x1.a01a019f4ebc2p-16, -0x1.27e4fa17e7b11p-22,
    0x1.1eeb68f5d1d19p-29, -0x1.907dab874477ap-37,
};

/* sin(pi/2 f)/f in f^2, |f| <= 1/2, for results in single precision */
static const double SIN_NARROW[5] = {
    0x1.921fb5443b33ep+0, -0x1.4abbce56805c4p-1, 0x1.466bbaa5ed8dfp-4, -0x1.32ca8d3abfe96p-8,
    0x1.4bc3b68e9946ap-13,
};

/* cos(pi/2 f) in f^2 */
static const double COS_NARROW[6] = {
    0x1.ffffffffffe00p-1, -0x1.3bd3cc9bd26b6p+0, 0x1.03c1f074ab663p-2, -0x1.55d3ba06dd5ccp-6,
    0x1.e1e7b24f9df27p-11, -0x1.a0e83050adeadp-16,
};

/* 2/pi for floats from 2^(26 j) on, modulo what gives whole turns: two parts of 29 bits and the rest */
static const double QUARTER_TURNS[5][3] = {
    {0x1.45f306d000000p-1, 0x1.9391054000000p-30, 0x1.4fe13abe8fa9ap-59},
    {0x1.17cc1b6000000p-3, 0x1.27220a9000000p-31, 0x1.3f84eafa3ea6ap-61},
    {0x1.c9c882a000000p-29, 0x1.4fe13a8000000p-59, 0x1.f47d4d377036ep-86},
    {0x1.4a7f09d000000p-54, 0x1.7d1f534000000p-84, 0x1.bb81b6c52b328p-113},
    {0x1.57d1f53000000p-80, 0x1.377036c000000p-110, 0x1.8a5664f10e410p-138},
};

/* (atan(x)/x - 1)/z in z = x^2, x <= sqrt(2) - 1 */
static const double ATAN[12] = {
    -0x1.5555555555555p-2, 0x1.9999999999955p-3, -0x1.249249248d9d2p-3, 0x1.c71c71c31a1b5p-4,
    -0x1.745d1661d58bdp-4, 0x1.3b1393431b213p-4, -0x1.110e8efcdcab1p-4, 0x1.e19aaa9aa550dp-5,
    -0x1.ac7eb0526a072p-5, 0x1.74efa662b9ff6p-5, -0x1.1b5f6058a6cbap-5, 0x1.0b2fc6da499d1p-6,
};

/* (asin(x)/x - 1)/z in z = x^2, x <= 1/2 */
static const double ASIN[14] = {
    0x1.5555555555555p-3, 0x1.333333333338dp-4, 0x1.6db6db6dab8c8p-5, 0x1.f1c71c7ab773bp-6,
    0x1.6e8ba111cbee1p-6, 0x1.1c4efed112cabp-6, 0x1.c990696debaebp-7, 0x1.7b059b3392a26p-7,
    0x1.3b30e2d3c9943p-7, 0x1.31ebcb0b50780p-7, 0x1.871a6f82ebbb1p-9, 0x1.42c6c63a56585p-6,
    -0x1.3e98e91fb5af7p-6, 0x1.e739909fa5471p-6,
};

/* pi/4 */
static const double QUARTER_PI_HI = 0x1.921fb54442d18p-1, QUARTER_PI_LO = 0x1.1a62633145c07p-55;

/* x^(-1/3), x in [1/8, 1], an estimate */
static const double INVERSE_CBRT[5] = {
    0x1.551b97d71b68bp+1, -0x1.bbfadb16e1572p+2, 0x1.afdfaaed5a9bcp+3, -0x1.9938aa240ef10p+3,
    0x1.2483058033f9fp+2,
};

/* (tanh(x)/x - 1)/z in z = x^2, x <= 5/8 */
static const float TANH_F32[5] = {
    -0x1.555552p-2f, 0x1.110e2ap-3f, -0x1.b9284p-5f, 0x1.5819bep-6f,
    -0x1.8ff574p-8f,
};

/* erf(x)/x - 1 in x^2, x <= 7/8 */
static const double ERF[12] = {
    0x1.06eba8214db69p-3, -0x1.812746b0379e5p-2, 0x1.ce2f21a0429b8p-4, -0x1.b82ce3127b7acp-6,
    0x1.565bcd0bcd79dp-8, -0x1.c02db36435840p-11, 0x1.f9a30fdd3b228p-14, -0x1.f4d01a22f2c11p-17,
    0x1.b9c0f89b5ea18p-20, -0x1.5dcf39196c1bep-23, 0x1.e542772897c63p-27, -0x1.dc729bcf1f7c9p-31,
};

/* the same for floats, x <= 1 */
static const float ERF_F32[7] = {
    0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2d18p-4f, -0x1.b7fb38p-6f,
    0x1.541636p-8f, -0x1.a46b4p-11f, 0x1.4a9dacp-14f,
};

/* -log(erfc(x)) in x - 1.5, x in [1, 4] */
static const float ERFC_LOG_F32[9] = {
    0x1.b1370ap+1f, 0x1.c12062p+1f, 0x1.c9081ep-1f, 0x1.a71caep-6f,
    -0x1.899576p-8f, 0x1.48d514p-10f, -0x1.c477fcp-13f, 0x1.b7ee22p-16f,
    -0x1.b14578p-20f,
};

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

#endif
