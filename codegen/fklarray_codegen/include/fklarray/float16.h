// Floating-point numbers of 16 bits: stored so, and computed in float32. Every operation's result
// is rounded to 16 bits before the next one sees it. For +, -, *, / and the square root of numbers
// in the normal range that is the correctly rounded result: float32 has more than twice as many
// digits (Figueroa, "When is double rounding innocuous?", 1995). Elementary functions are within
// half a unit in the last place and their bound in float32.
#pragma once

#include <fklarray/functor.h>

#if defined(__F16C__) && !defined(__CUDACC__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_vcvtph2ps256) && __has_builtin(__builtin_ia32_vcvtps2ph256)
#define FKLARRAY_F16C 1
#endif
#endif

namespace fklarray {

template <typename Format>
struct Widen;
template <typename Format>
struct RoundTo;

// binary16 of IEEE 754: 5 bits of exponent, 10 of fraction.
struct Binary16 {
    static constexpr std::int16_t infinity = 0x7c00;

    template <typename V>
    FK_HOST_DEVICE_STATIC Like<V, float> widened(V stored) {
#if defined(__CUDA_ARCH__)
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(stored));
        return value;
#else
#if defined(FKLARRAY_F16C)
        if constexpr (sizeof(V) == 16) {
            return __builtin_ia32_vcvtph2ps256(bit_cast<Vector<short, 8>>(stored));
        } else if constexpr (sizeof(V) == 32) {
            return halved<Widen<Binary16>>(stored);
        } else
#endif
        {
            return widened_by_bits(stored);
        }
#endif
    }

    // From float32 or float64 in one rounding, to the nearest and of two the even one.
    template <typename V>
    FK_HOST_DEVICE_STATIC Like<V, std::uint16_t> rounded(V value) {
#if defined(__CUDA_ARCH__)
        std::uint16_t stored;
        if constexpr (sizeof(V) == 8) {
            asm("cvt.rn.f16.f64 %0, %1;" : "=h"(stored) : "d"(value));
        } else {
            asm("cvt.rn.f16.f32 %0, %1;" : "=h"(stored) : "f"(value));
        }
        return stored;
#else
#if defined(FKLARRAY_F16C)
        if constexpr (lean::is_same_v<V, Vector<float, 8>>) {
            return bit_cast<Like<V, std::uint16_t>>(__builtin_ia32_vcvtps2ph256(value, 0));
        } else if constexpr (lean::is_same_v<V, Vector<float, 16>>) {
            return halved<RoundTo<Binary16>>(value);
        } else
#endif
        {
            return rounded_by_bits(value);
        }
#endif
    }

    // What the instructions do, on processors without them.
    template <typename V>
    FK_HOST_DEVICE_STATIC Like<V, float> widened_by_bits(V stored) {
        using Bits = Like<V, std::int32_t>;
        using Values = Like<V, float>;
        constexpr std::int32_t bias = (127 - 15) << 23;
        const Bits bits = bit_cast<Bits>(widen<std::uint32_t>(stored));
        const Bits magnitude = bits & 0x7fff;
        const Bits sign = (bits & 0x8000) << 16;
        const Bits normal = (magnitude << 13) + bias;
        // Infinity's exponent becomes infinity's, and NaN a quiet one; an exponent of 0 counts like
        // an exponent of 1.
        const Bits above = normal + bias;
        const Bits infinite = select(magnitude > infinity, above | 0x400000, above);
        const Bits special = select(magnitude < infinity, normal, infinite);
        const Values subnormal = bit_cast<Values>(normal + (1 << 23)) - 0x1p-14f;
        const Bits result = select(magnitude < 0x400, bit_cast<Bits>(subnormal), special);
        return bit_cast<Values>(result | sign);
    }

    template <typename V>
    FK_HOST_DEVICE_STATIC Like<V, std::uint16_t> rounded_by_bits(V value) {
        // Signed: processors compare vectors of those.
        using Bits = Signed<V>;
        using Word = Element<Bits>;
        constexpr bool is_wide = sizeof(Word) == 8;
        constexpr int digits = is_wide ? 52 : 23;
        constexpr int dropped = digits - 10;
        constexpr Word bias = (is_wide ? 1023 : 127) - 15;
        constexpr Word least_normal = (bias + 1) << digits;
        constexpr Word past_largest = ((bias + 31) << digits) - (Word{1} << (dropped - 1));
        constexpr Word past_infinity = ((2 * (bias + 15) + 1) << digits) + 1;
        const Bits bits = bit_cast<Bits>(value);
        const Bits magnitude =
            bits & static_cast<Word>(static_cast<lean::make_unsigned_t<Word>>(-1) >> 1);
        const Bits sign = (bits >> (8 * sizeof(Word) - 16)) & 0x8000;
        const Bits odd = (magnitude >> dropped) & 1;
        const Bits half = odd + ((Word{1} << (dropped - 1)) - 1);
        const Bits normal = (magnitude + half - (bias << digits)) >> dropped;
        // The last place of this number is the smallest subnormal one: the sum rounds to it.
        const V places = constant<V>(is_wide ? 0x1p28f : 0x1p-1f);
        const Bits subnormal =
            bit_cast<Bits>(bit_cast<V>(magnitude) + places) - bit_cast<Bits>(places);
        const Bits finite = select(magnitude < least_normal, subnormal, normal);
        const Bits nan = ((magnitude >> dropped) & 0x3ff) | (infinity + 0x200);
        const Bits limit = select(magnitude < past_infinity, constant<Bits>(infinity), nan);
        const Bits result = select(magnitude < past_largest, finite, limit) | sign;
        return narrow<std::uint16_t>(bit_cast<Unsigned<V>>(result));
    }
};

// bfloat16: the upper half of a float32. Of a float64 it is the upper half of its float32, which
// rounds twice, as ml_dtypes does.
struct Brain16 {
    static constexpr std::int16_t infinity = 0x7f80;

    template <typename V>
    FK_HOST_DEVICE_STATIC Like<V, float> widened(V stored) {
        return bit_cast<Like<V, float>>(widen<std::uint32_t>(stored) << 16);
    }

    template <typename V>
    FK_HOST_DEVICE_STATIC Like<V, std::uint16_t> rounded(V value) {
        if constexpr (sizeof(Element<V>) == 8) {
            return rounded(convert<float>(value));
        } else {
#if defined(__CUDA_ARCH__)
            // Of a pair with zero: the conversion of one number runs at a quarter of the speed.
            std::uint32_t pair;
            asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(value));
            return static_cast<std::uint16_t>(pair);
#else
            using Bits = Unsigned<V>;
            const Bits bits = bit_cast<Bits>(value);
            const Bits odd = (bits >> 16) & 1;
            const Bits nearest = bits + (odd + 0x7fff);
            const Bits quiet = bits | 0x400000;
            return narrow<std::uint16_t>(
                static_cast<Bits>(select(value == value, nearest, quiet) >> 16));
#endif
        }
    }
};

// As a parameter of a kernel a number of these types is a double.
template <typename Format>
struct SixteenBits {
    std::uint16_t bits;

    SixteenBits() = default;
    FK_HOST_DEVICE_CNST SixteenBits(double value) : bits(Format::rounded(value)) {}
};

using Float16 = SixteenBits<Binary16>;
using BFloat16 = SixteenBits<Brain16>;

// Stored bits to values, and back.
template <typename Format>
struct Widen : VectorFunctor {
    template <typename...>
    using Result = float;

    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V stored) {
        return Format::widened(stored);
    }
};

template <typename Format>
struct RoundTo : VectorFunctor {
    template <typename...>
    using Result = std::uint16_t;

    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V value) {
        return Format::rounded(value);
    }
};

// Casts of float64 to float16 round once; everything else goes through float32.
template <typename To>
struct Cast;
template <typename Format, typename From>
struct FunctorFor<Cast<SixteenBits<Format>>, From> {
    using type = Cast<float>;
};
template <>
struct FunctorFor<Cast<Float16>, double> {
    using type = Cast<double>;
};
template <>
struct FunctorFor<Cast<Float16>, Complex<double>> {
    using type = Cast<double>;
};

// Neighbours are neighbours among stored numbers: their magnitudes are ordered as their bits are.
template <typename Format>
struct NextStored : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x, V towards) {
        using Bits = Signed<V>;
        const V sign = towards & 0x8000;
        const Bits from = bit_cast<Bits>(x);
        const Bits from_magnitude = from & 0x7fff;
        const Bits to_magnitude = bit_cast<Bits>(towards) & 0x7fff;
        const Bits from_place =
            select(from < 0, static_cast<Bits>(-from_magnitude), from_magnitude);
        const Bits to_place = select(sign != 0, static_cast<Bits>(-to_magnitude), to_magnitude);
        const Bits one = constant<Bits>(1);
        const auto is_away = (to_place > from_place) == (from >= 0);
        const V moved = bit_cast<V>(
            select(is_away, static_cast<Bits>(from + one), static_cast<Bits>(from - one)));
        const V next = select(from_magnitude == 0, static_cast<V>(sign | 1), moved);
        const V result = select(from_place == to_place, towards, next);
        const V unless_nan = select(to_magnitude > Format::infinity, towards, result);
        return select(from_magnitude > Format::infinity, x, unless_nan);
    }
};

struct Nextafter;
template <typename Format>
struct FunctorFor<Nextafter, SixteenBits<Format>> {
    using type = NextStored<Format>;
};

// Functors whose result is a matter of bits: they take and give what is stored.
struct Copysign;
struct Signbit;
struct Where;
template <>
constexpr bool on_stored_bits<Copysign> = true;
template <>
constexpr bool on_stored_bits<Signbit> = true;
template <>
constexpr bool on_stored_bits<Where> = true;
template <typename Format>
constexpr bool on_stored_bits<NextStored<Format>> = true;

template <typename Format, int Lanes>
FK_HOST_DEVICE_STATIC Pack<std::uint16_t, Lanes>
stored_bits(const Pack<SixteenBits<Format>, Lanes>& pack) {
    return bit_cast<Pack<std::uint16_t, Lanes>>(pack);
}

template <typename Format>
struct Pairs;

template <typename Format, int Lanes>
FK_HOST_DEVICE_STATIC Pack<float, Lanes> values_of(const Pack<SixteenBits<Format>, Lanes>& pack) {
#if defined(__CUDA_ARCH__)
    if constexpr (Lanes % 2 == 0) {
        Pack<float, Lanes> values;
        for (int lane = 0; lane < Lanes; lane += 2) {
            std::uint32_t pair;
            memcpy(&pair, &pack.vector[lane], sizeof pair);
            Pairs<Format>::widen(pair, values.vector[lane], values.vector[lane + 1]);
        }
        return values;
    }
#endif
    return lift<Widen<Format>>(stored_bits(pack));
}

template <typename Format>
struct Rounded<SixteenBits<Format>> {
    template <typename T, int Lanes>
    FK_HOST_DEVICE_STATIC Pack<SixteenBits<Format>, Lanes> from(const Pack<T, Lanes>& pack) {
#if defined(__CUDA_ARCH__)
        if constexpr (lean::is_same_v<T, float> && Lanes % 2 == 0) {
            Pack<SixteenBits<Format>, Lanes> rounded;
            for (int lane = 0; lane < Lanes; lane += 2) {
                const auto pair = Pairs<Format>::rounded(pack.get(lane), pack.get(lane + 1));
                memcpy(&rounded.vector[lane], &pair, sizeof pair);
            }
            return rounded;
        }
#endif
        return bit_cast<Pack<SixteenBits<Format>, Lanes>>(lift<RoundTo<Format>>(pack));
    }
};

}  // namespace fklarray

#include <fklarray/gpu_float16.h>
