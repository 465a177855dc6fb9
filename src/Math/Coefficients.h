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

#include <cstdint>

namespace nova::coefficients {

/// ln 2, the head short enough for n*head to be exact when |n| < 2^9.
inline constexpr double kLn2F32[] = {
    0x1.62e4p-1,
    0x1.7f7d1cp-20};

/// ln 2, the head short enough for n*head to be exact when |n| < 2^12.
inline constexpr double kLn2F64[] = {
    0x1.62e42fefa3p-1,
    0x1.3de6af278ece6p-42};

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
    0x1.45f306dc9c882p-1,
    0x1.4a7f09d5f47d4p-54,
    0x1.a6ee06db14acdp-107};

/// pi/2 in doubles.
inline constexpr double kPiOver2[] = {
    0x1.921fb54442d18p+0,
    0x1.1a62633145c06p-54,
    0x1.c1cd129024e09p-107};

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
/// on [-0.346608, 0.346608], error 2^-55.587.
inline constexpr double kExpm1F64[] = {
    0x1.0000000000005p-1,
    0x1.555555555554fp-3,
    0x1.5555555552277p-5,
    0x1.1111111114e28p-7,
    0x1.6c16c17ec6513p-10,
    0x1.a01a0186c913fp-13,
    0x1.a019a7d388534p-16,
    0x1.71de675f0ed14p-19,
    0x1.28a170ee721bp-22,
    0x1.ae9761d00e47ap-26};

/// exp2(r) = 1 + r P(r), relative to exp2(r),
/// on [-0.5001, 0.5001], error 2^-57.765.
inline constexpr double kExp2F64[] = {
    0x1.62e42fefa39efp-1,
    0x1.ebfbdff82c59cp-3,
    0x1.c6b08d704a0d4p-5,
    0x1.3b2ab6fba11e8p-7,
    0x1.5d87fe78b3bc5p-10,
    0x1.4309130c0560cp-13,
    0x1.ffcbfbf8b9f2cp-17,
    0x1.62bfcdd0d15ccp-20,
    0x1.b5260dad70ba1p-24,
    0x1.e611bbe46bc74p-28,
    0x1.e80ef6bb01884p-32};

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
/// on [-0.361702, 0.5], error 2^-62.013.
inline constexpr double kErfcxF64[] = {
    0x1.058671b52c776p-2,
    -0x1.b57034efd3f77p-2,
    0x1.eeea7dc8a76a9p-3,
    -0x1.437f0b68c1a62p-4,
    0x1.e947159e20639p-9,
    0x1.ca95ed708a477p-8,
    -0x1.bc25a78fb1927p-11,
    -0x1.016b7c210847dp-10,
    0x1.6d56064c8f015p-15,
    0x1.6db9cb24fe375p-13,
    0x1.d0a8e25c456d1p-16,
    -0x1.ccbba9eae3717p-16,
    -0x1.fb1536b852c64p-17,
    -0x1.1783e11acbe6ap-19};

/// sin(r) = r + r z P(z), z = r^2, relative to sin(r),
/// on [8.88178e-16, 0.641771], error 2^-57.532.
inline constexpr double kSinF64[] = {
    -0x1.5555555555545p-3,
    0x1.111111110f25fp-7,
    -0x1.a01a019b4b705p-13,
    0x1.71de34ca2ab39p-19,
    -0x1.ae5ddd5f8c29fp-26,
    0x1.5d6b200a8a2bep-33};

/// cos(r) = 1 - z/2 + z^2 P(z), z = r^2, relative to cos(r),
/// on [8.88178e-16, 0.641771], error 2^-63.482.
inline constexpr double kCosF64[] = {
    0x1.5555555555548p-5,
    -0x1.6c16c16c1498ep-10,
    0x1.a01a019beb599p-16,
    -0x1.27e4f77ad615dp-22,
    0x1.1ee98ae47356cp-29,
    -0x1.8f7c8b9e02c16p-37};

/// A zero word, then the fraction bits of 2/pi, highest first.
inline constexpr uint64_t kTwoOverPiWords[] = {
    0x0000000000000000,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab};

/// 1/3 in doubles.
inline constexpr double kThird[] = {
    0x1.5555555555555p-2,
    0x1.5555555555555p-56};

/// 2/ln 2 in doubles.
inline constexpr double kTwoLog2eF64[] = {
    0x1.71547652b82fep+1,
    0x1.777d0ffda0d24p-55};

/// log((1+s)/(1-s)) = 2s (1 + z (1/3 + z P(z))), z = s^2, relative to the logarithm,
/// on [9.31323e-10, 0.04], error 2^-69.051.
inline constexpr double kPowLogF64[] = {
    0x1.9999999999968p-3,
    0x1.2492492498d43p-3,
    0x1.c71c71bc77141p-4,
    0x1.745d1bc352ab6p-4,
    0x1.3b1298f4236e9p-4,
    0x1.113a093e49589p-4,
    0x1.dad217d963e8ap-5,
    0x1.01789d859f4fap-4};

} // namespace nova::coefficients

#endif // NOVA_LIB_MATH_COEFFICIENTS_H
