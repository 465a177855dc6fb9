//===- Coefficients.h - Constants of the math expansions ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Derived by scripts/fit_math.py; do not edit. Each array holds the coefficients
// of a polynomial P in ascending order, exact in the type named by its suffix
// (all are written as doubles), with the error of P in exact arithmetic.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_MATH_COEFFICIENTS_H
#define NOVA_LIB_MATH_COEFFICIENTS_H

namespace nova::coefficients {

/// ln 2, the head short enough for n*head to be exact when |n| < 2^9.
inline constexpr double kLn2F32[] = {
    0x1.62e4p-1,
    0x1.7f7d1cp-20};

/// ln 2, the head short enough for n*head to be exact when |n| < 2^12.
inline constexpr double kLn2F64[] = {
    0x1.62e42fefa4p-1,
    -0x1.8432a1b0e2634p-43};

/// log2 e = 1/ln 2.
inline constexpr double kLog2eF32[] = {
    0x1.715476p+0,
    0x1.4ae0cp-26};

/// log2 e = 1/ln 2.
inline constexpr double kLog2eF64[] = {
    0x1.71547652b82fep+0,
    0x1.777d0ffda0d24p-56};

/// 2/pi in doubles.
inline constexpr double kTwoOverPi[] = {
    0x1.45f306dc9c883p-1,
    -0x1.6b01ec5417056p-55,
    -0x1.6447e493ad4cep-109};

/// pi/2 in doubles.
inline constexpr double kPiOver2[] = {
    0x1.921fb54442d18p+0,
    0x1.1a62633145c07p-54,
    -0x1.f1976b7ed8fbcp-110};

/// From each of these on, sin and cos use the next pair of kTrigF32.
inline constexpr double kTrigBoundsF32[] = {
    0x1p+44,
    0x1p+65,
    0x1p+86,
    0x1p+107};

/// Pairs of doubles: 2/pi, then its bits of weight below 2^(25-E).
inline constexpr double kTrigF32[] = {
    0x1.45f306dc9c883p-1,
    -0x1.6b01ec5417056p-55,
    0x1.b727220a94fe1p-23,
    0x1.d5f47d4d37703p-78,
    0x1.1054a7f09d5f4p-42,
    0x1.f534ddc0db629p-96,
    0x1.fc2757d1f534ep-64,
    -0x1.1f924eb53361ep-119,
    0x1.7d1f534ddc0dbp-84,
    0x1.8a5664f10e41p-138};

/// exp(r) = 1 + r + r^2 P(r), relative to exp(r),
/// on [-0.346608, 0.346608], error 2^-28.254.
inline constexpr double kExpF32[] = {
    0x1.fffffcp-2,
    0x1.555492p-3,
    0x1.5558aap-5,
    0x1.12396cp-7,
    0x1.6a5232p-10};

/// expm1(r) = r + r^2 P(r), relative to expm1(r),
/// on [-0.346608, 0.346608], error 2^-26.128.
inline constexpr double kExpm1F32[] = {
    0x1.fffffep-2,
    0x1.5554b4p-3,
    0x1.5556f6p-5,
    0x1.12253ep-7,
    0x1.6b9714p-10};

/// exp2(r) = 1 + r P(r), relative to exp2(r),
/// on [-0.5001, 0.5001], error 2^-28.313.
inline constexpr double kExp2F32[] = {
    0x1.62e43p-1,
    0x1.ebfbdcp-3,
    0x1.c6af7cp-5,
    0x1.3b2dep-7,
    0x1.5f0838p-10,
    0x1.416b82p-13};

/// log(1+f) = f - f^2/2 + f^3 P(f), relative to log(1+f),
/// on [-0.333333, 0.333333], error 2^-27.681.
inline constexpr double kLogF32[] = {
    0x1.555506p-2,
    -0x1.fffefcp-3,
    0x1.99d044p-3,
    -0x1.559c44p-3,
    0x1.1ed662p-3,
    -0x1.f332fcp-4,
    0x1.1e678cp-3,
    -0x1.07c882p-3};

/// log2(1+f) = f log2(e) + f^2 P(f), relative to log2(1+f),
/// on [-0.333333, 0.333333], error 2^-27.657.
inline constexpr double kLog2F32[] = {
    -0x1.715476p-1,
    0x1.ec703p-2,
    -0x1.7153ep-2,
    0x1.279d6cp-2,
    -0x1.ecd0d8p-3,
    0x1.9de66cp-3,
    -0x1.684fb4p-3,
    0x1.9cda2ap-3,
    -0x1.7bda92p-3};

/// tanh(x) = x + x z P(z), z = x^2, relative to tanh(x),
/// on [5.96046e-8, 0.390625], error 2^-27.721.
inline constexpr double kTanhF32[] = {
    -0x1.555532p-2,
    0x1.1106f6p-3,
    -0x1.b835a4p-5,
    0x1.51f8cep-6,
    -0x1.750ce4p-8};

/// erf(x) = x + x P(z), z = x^2, relative to erf(x),
/// on [5.96046e-8, 0.878906], error 2^-25.608.
inline constexpr double kErfF32[] = {
    0x1.06eba6p-3,
    -0x1.8126dcp-2,
    0x1.ce1858p-4,
    -0x1.b669c8p-6,
    0x1.466c12p-8,
    -0x1.36b084p-11};

/// ln(1 - erf(x)) = P(x), absolute error of erf(x) / erf(x),
/// on [0.9375, 4.0], error 2^-29.374.
inline constexpr double kErfcLogF32[] = {
    -0x1.d4ca04p-13,
    -0x1.20a7d8p+0,
    -0x1.4655eap-1,
    -0x1.a9044p-4,
    0x1.6ad884p-6,
    -0x1.8c3d72p-9,
    0x1.969d9p-13};

/// sin(r) = r + r z P(z), z = r^2, relative to sin(r),
/// on [5.96046e-8, 0.641771], error 2^-27.68.
inline constexpr double kSinF32[] = {
    -0x1.555544p-3,
    0x1.1106aap-7,
    -0x1.990d74p-13};

/// cos(r) = 1 - z/2 + z^2 P(z), z = r^2, relative to cos(r),
/// on [5.96046e-8, 0.641771], error 2^-32.597.
inline constexpr double kCosF32[] = {
    0x1.555548p-5,
    -0x1.6c0af4p-10,
    0x1.99911cp-16};

/// log2(1+f) = f P(f) in doubles, relative to log2(1+f),
/// on [-0.333333, 0.333333], error 2^-38.525.
inline constexpr double kPowLog2F32[] = {
    0x1.71547652bc273p+0,
    -0x1.71547652ee547p-1,
    0x1.ec709d8d68a12p-2,
    -0x1.715475c3d53c6p-2,
    0x1.2776e33d26bfep-2,
    -0x1.ec710a34ee707p-3,
    0x1.a60ad5d67b6c6p-3,
    -0x1.71426f257e3acp-3,
    0x1.4986f6eb37204p-3,
    -0x1.28fd1d9986555p-3,
    0x1.f9c3269518ea6p-4,
    -0x1.c9a323a0c724fp-4,
    0x1.432bdac7181edp-3,
    -0x1.3460c6042e4cfp-3};

/// exp2(r) = P(r) in doubles, relative to exp2(r),
/// on [-0.5001, 0.5001], error 2^-28.914.
inline constexpr double kPowExp2F32[] = {
    0x1p+0,
    0x1.62e430af5ed1bp-1,
    0x1.ebfbdc3b0b48bp-3,
    0x1.c6aee83b6d1d3p-5,
    0x1.3b2d4d7686ebep-7,
    0x1.5f3e7e7e63ca7p-10,
    0x1.41fba257ed71fp-13};

/// exp(r) = 1 + r + r^2 P(r), relative to exp(r),
/// on [-0.346608, 0.346608], error 2^-57.914.
inline constexpr double kExpF64[] = {
    0x1.000000000000ap-1,
    0x1.555555555550cp-3,
    0x1.555555555079dp-5,
    0x1.1111111124717p-7,
    0x1.6c16c184395d1p-10,
    0x1.a01a01381004ep-13,
    0x1.a0199a0bf4c22p-16,
    0x1.71df0cd33a541p-19,
    0x1.28ad603b9c13p-22,
    0x1.ad9f59e2ec3e3p-26};

/// expm1(r) = r + r^2 P(r), relative to expm1(r),
/// on [-0.346608, 0.346608], error 2^-61.617.
inline constexpr double kExpm1F64[] = {
    0x1p-1,
    0x1.5555555555559p-3,
    0x1.5555555555559p-5,
    0x1.111111110f70ap-7,
    0x1.6c16c16c16846p-10,
    0x1.a01a01af9c42dp-13,
    0x1.a01a019e37bb6p-16,
    0x1.71ddf93951524p-19,
    0x1.27e4f9094bf32p-22,
    0x1.af5d04e644d68p-26,
    0x1.1f384d00bd0f4p-29};

/// exp2(r) = 1 + r P(r), relative to exp2(r),
/// on [-0.5001, 0.5001], error 2^-59.735.
inline constexpr double kExp2F64[] = {
    0x1.62e42fefa39efp-1,
    0x1.ebfbdff82c58ep-3,
    0x1.c6b08d704a1d5p-5,
    0x1.3b2ab6fba519ep-7,
    0x1.5d87fe7873f81p-10,
    0x1.430912f7571adp-13,
    0x1.ffcbfd4b483dfp-17,
    0x1.62c0272411787p-20,
    0x1.b5232d3587e5cp-24,
    0x1.e4bbaface0ecbp-28,
    0x1.ec7997c123e1p-32,
    0x1.e0ae03d1c168bp-36};

/// log((1+s)/(1-s)) = 2s + s z P(z), z = s^2, relative to the logarithm,
/// on [8.67362e-19, 0.04], error 2^-55.902.
inline constexpr double kLogF64[] = {
    0x1.5555555555773p-1,
    0x1.99999998f1701p-2,
    0x1.249249b1b37cp-2,
    0x1.c71c01a57980dp-3,
    0x1.7474d90e6d91dp-3,
    0x1.38538c17d7dacp-3,
    0x1.3ab8fa4045517p-3};

/// tanh(x) = x + x z P(z), z = x^2, relative to tanh(x),
/// on [8.88178e-16, 0.390625], error 2^-56.444.
inline constexpr double kTanhF64[] = {
    -0x1.55555555554ffp-2,
    0x1.111111110ac95p-3,
    -0x1.ba1ba1b503c4p-5,
    0x1.664f477a6869fp-6,
    -0x1.226e1620657ecp-7,
    0x1.d6cf269d78f63p-9,
    -0x1.7d6894855a01dp-10,
    0x1.3365b3b42d805p-11,
    -0x1.df527e279ad95p-13,
    0x1.438a65a91bf8dp-14,
    -0x1.0d9a1226bc799p-16};

/// erf(x) = x + x P(z), z = x^2, relative to erf(x),
/// on [8.88178e-16, 0.878906], error 2^-56.016.
inline constexpr double kErfF64[] = {
    0x1.06eba8214db68p-3,
    -0x1.812746b037999p-2,
    0x1.ce2f21a03f35fp-4,
    -0x1.b82ce311872dp-6,
    0x1.565bcce88b502p-8,
    -0x1.c02dad71bb8ep-11,
    0x1.f9a26f7cbf425p-14,
    -0x1.f4c53b8ea73dfp-17,
    0x1.b94797204c206p-20,
    -0x1.5a83d32cd0f36p-23,
    0x1.cb549e76eef62p-27,
    -0x1.841ebdbd9e2abp-31};

/// exp(x^2) (1 - erf(x)) = P(t), x = 2(1+t)/(1-t), absolute error of erf(x) / erf(x),
/// on [-0.361702, 0.5], error 2^-63.469.
inline constexpr double kErfcxF64[] = {
    0x1.058671b52c776p-2,
    -0x1.b57034efd3f71p-2,
    0x1.eeea7dc8a77f5p-3,
    -0x1.437f0b68c2622p-4,
    0x1.e9471598acda8p-9,
    0x1.ca95ed63f4d21p-8,
    -0x1.bc25a30921e16p-11,
    -0x1.016b67c4765a1p-10,
    0x1.6d561c46b9fdfp-15,
    0x1.6daa89f5e7f78p-13,
    0x1.cf38aa8979681p-16,
    -0x1.cb0625c826a63p-16,
    -0x1.dc8a69c8fb399p-17,
    -0x1.64c13a427e28fp-21,
    0x1.a2df1829cf739p-23,
    -0x1.ab353aff4be38p-21};

} // namespace nova::coefficients

#endif // NOVA_LIB_MATH_COEFFICIENTS_H
