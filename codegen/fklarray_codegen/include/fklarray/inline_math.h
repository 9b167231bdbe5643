// exp, sin and cos of float32 where every processor has fused multiply-add, after J.-M. Muller et
// al., Handbook of Floating-Point Arithmetic, chapter 10: the argument is reduced by a constant in
// two or three parts, and a polynomial of least maximal error takes what remains. A call of libmvec
// takes half as long again. Errors over all arguments: 1.0, 1.5 and 1.5 units in the last place
// (benchmarks/every_float.py).
#pragma once

#include <fklarray/fused.h>

#if defined(FKLARRAY_FUSED)

namespace fklarray {
namespace inlined {
using fklarray::fused;

FK_HOST_STATIC Floats fused(Floats a, float b, Floats c) {
    return fused(a, constant<Floats>(b), c);
}
FK_HOST_STATIC Floats fused(Floats a, Floats b, float c) {
    return fused(a, b, constant<Floats>(c));
}
FK_HOST_STATIC Floats fused(Floats a, float b, float c) {
    return fused(a, constant<Floats>(b), constant<Floats>(c));
}

// Added to a number it leaves the nearest integer in the lowest bits; subtracted again, the number.
constexpr float round_up_to_integer = 0x1.8p23f;

FK_HOST_STATIC Ints magnitude_bits(Floats x) { return bit_cast<Ints>(x) & 0x7fffffff; }
// Rare, and without calls: a call would throw every constant of the loop out of its register.
FK_HOST_STATIC bool seldom_beyond(Ints magnitude, float limit) {
    return __builtin_expect(any_greater(magnitude, bit_cast<Ints>(constant<Floats>(limit))), 0);
}

struct Power {
    Floats fraction;  // exp(x) is 2^exponent times this
    Ints exponent;    // in the lowest bits
};

FK_HOST_STATIC Power power(Floats x) {
    const Floats rounded = fused(x, 0x1.715476p0f, round_up_to_integer);
    const Floats exponent = rounded - round_up_to_integer;
    Floats r = fused(exponent, -0x1.62e430p-1f, x);
    r = fused(exponent, 0x1.05c610p-29f, r);
    const Floats square = r * r;
    const Floats low = fused(r, 0x1.555492p-3f, 0x1.fffffcp-2f);
    Floats high = fused(r, 0x1.123a20p-7f, 0x1.5558f2p-5f);
    high = fused(square, 0x1.6a23cep-10f, high);
    return {fused(fused(high, square, low), square, r) + 1, bit_cast<Ints>(rounded)};
}

FK_HOST_STATIC Floats exp(Floats x) {
    if (seldom_beyond(magnitude_bits(x), 87)) {
        // 2^exponent may be no normal number: by two factors, of which the last one rounds.
        const Floats least = constant<Floats>(-110), greatest = constant<Floats>(100);
        const auto [fraction, bits] = power(x < least ? least : (x > greatest ? greatest : x));
        const Ints exponent = bits - bit_cast<std::int32_t>(round_up_to_integer);
        const Ints half = exponent >> 1;
        const Floats result = fraction * bit_cast<Floats>((half + 127) << 23) *
                              bit_cast<Floats>((exponent - half + 127) << 23);
        return x == x ? result : x;
    }
    const auto [fraction, exponent] = power(x);
    return bit_cast<Floats>(bit_cast<Ints>(fraction) + (exponent << 23));
}

// Greatest argument whose multiple of pi / 2 the three parts of it take away precisely.
constexpr float greatest_angle = 1e5f;

struct Angle {
    Floats rest;  // from -pi / 4 to pi / 4
    Ints quarter;
};

// M. Payne and R. Hanek, "Radian reduction for trigonometric functions", 1983: of 2 / pi only those
// digits count whose products with x are neither multiples of 4 nor too small.
FK_HOST_STATIC void reduce_lane(Angle& angle, float x, int lane) {
    constexpr std::uint64_t two_over_pi[] = {0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
                                             0xdb6295993c439041, 0xfe5163abdebbc561};
    const std::uint32_t bits = bit_cast<std::uint32_t>(x);
    const int exponent = static_cast<int>(bits >> 23) - 150;
    if (exponent == 105) {  // infinity or NaN
        angle.rest[lane] = x - x;
        return;
    }
    // 96 digits, the first of which counts as 2 once it is multiplied.
    const int at = 62 + exponent;
    const std::uint64_t* const words = two_over_pi + at / 64;
    using Wide = unsigned __int128;
    Wide digits = (Wide{words[0]} << 64 | words[1]) << at % 64;
    if (at % 64 != 0) digits |= words[2] >> (64 - at % 64);
    const Wide product = (digits >> 32) * ((bits & 0x7fffff) | 0x800000);
    const auto turns = static_cast<std::uint64_t>(product >> 32);
    const std::uint64_t quarter = (turns + (std::uint64_t{1} << 61)) >> 62;
    const auto rest = static_cast<std::int64_t>(turns - (quarter << 62));
    angle.rest[lane] = static_cast<float>(static_cast<double>(rest) * 0x1.921fb54442d18p-62);
    angle.quarter[lane] = static_cast<std::int32_t>(quarter);
}

// What is left of x, which is not below 0, and of how many quarters of a turn.
FK_HOST_STATIC Angle reduce(Floats x) {
    const Floats rounded = fused(x, 0x1.45f306p-1f, round_up_to_integer);
    const Floats multiple = rounded - round_up_to_integer;
    Floats rest = fused(multiple, -0x1.921fb4p0f, x);
    rest = fused(multiple, -0x1.4442d0p-24f, rest);
    Angle angle{fused(multiple, -0x1.846988p-48f, rest), bit_cast<Ints>(rounded)};
    if (seldom_beyond(bit_cast<Ints>(x), greatest_angle)) {
        for (int lane = 0; lane < native_floats; ++lane) {
            if (!(x[lane] <= greatest_angle)) reduce_lane(angle, x[lane], lane);
        }
    }
    return angle;
}

FK_HOST_STATIC Floats sin_of_reduced(Floats r, Ints quarter) {
    const Floats square = r * r;
    Floats sine = fused(square, -0x1.99406p-13f, 0x1.11073p-7f);
    sine = fused(fused(sine, square, -0x1.555546p-3f), r * square, r);
    Floats cosine = fused(square, 0x1.99e86ap-16f, -0x1.6c0c28p-10f);
    cosine = fused(cosine, square, 0x1.55554ap-5f);
    cosine = fused(cosine, square * square, fused(square, -0.5f, 1));
    const Floats result = (quarter << 31) < 0 ? cosine : sine;
    return bit_cast<Floats>(bit_cast<Ints>(result) ^ ((quarter & 2) << 30));
}

FK_HOST_STATIC Floats sin(Floats x) {
    const Ints magnitude = magnitude_bits(x);
    const auto [rest, quarter] = reduce(bit_cast<Floats>(magnitude));
    const Floats result = sin_of_reduced(rest, quarter);
    return bit_cast<Floats>(bit_cast<Ints>(result) ^ bit_cast<Ints>(x) ^ magnitude);
}

FK_HOST_STATIC Floats cos(Floats x) {
    const auto [rest, quarter] = reduce(bit_cast<Floats>(magnitude_bits(x)));
    return sin_of_reduced(rest, quarter + 1);
}

}  // namespace inlined
}  // namespace fklarray
#endif
