// Conversions of values in the steps that processors have instructions for; a direct conversion
// over several sizes is taken apart into scalars by compilers.
#pragma once

#include <fklarray/functor.h>

namespace fklarray {

template <typename T, typename V>
FK_HOST_DEVICE_STATIC Like<V, T> integer_to_integer(V value) {
    if constexpr (sizeof(T) > sizeof(Element<V>)) {
        return widen<T>(value);
    } else {
        return narrow<T>(value);
    }
}

// Every path rounds once.
template <typename T, typename V>
FK_HOST_DEVICE_STATIC Like<V, T> integer_to_floating(V value) {
    if constexpr (sizeof(Element<V>) < 4) {
        return convert<T>(widen<std::int32_t>(value));
    } else if constexpr (is_scalar<V>) {
        return static_cast<T>(value);
    } else if constexpr (sizeof(Element<V>) == 8 && sizeof(T) == 8) {
        // Both halves become exact float64 values through the exponents of 2^84 and 2^52.
        using Bits = Like<V, std::uint64_t>;
        using Values = Like<V, T>;
        constexpr std::uint64_t sign = is_signed<V> ? std::uint64_t{1} << 63 : 0;
        const Bits bits = bit_cast<Bits>(value) ^ sign;
        const Bits high = (bits >> 32) | 0x4530000000000000u;
        const Bits low = (bits & 0xffffffffu) | 0x4330000000000000u;
        constexpr T offset = is_signed<V> ? 0x1p84 + 0x1p63 + 0x1p52 : 0x1p84 + 0x1p52;
        return (bit_cast<Values>(high) - offset) + bit_cast<Values>(low);
    } else if constexpr (is_signed<V> || sizeof(Element<V>) == 8) {
        return convert<T>(value);
    } else if constexpr (sizeof(T) == 8) {
        return convert<T>(bit_cast<Like<V, std::int32_t>>(value ^ 0x80000000u)) + 0x1p31;
    } else {
        return convert<T>(bit_cast<Like<V, std::int32_t>>(value >> 16)) * 0x1p16f +
               convert<T>(bit_cast<Like<V, std::int32_t>>(value & 0xffffu));
    }
}

// Truncates. Through int32 (int64 for 64-bit results), whose conversion is an instruction: values
// out of range then give the same bits in a vector and alone.
template <typename T, typename V>
FK_HOST_DEVICE_STATIC Like<V, T> floating_to_integer(V value) {
    constexpr bool wide = sizeof(T) == 8;
    using Integer = lean::conditional_t<wide, std::int64_t, std::int32_t>;
    if constexpr (lean::is_signed_v<T> || sizeof(T) < 4) {
        return integer_to_integer<T>(convert<Integer>(value));
    } else {
        // The upper half of an unsigned type's range is brought down before and up after.
        using Result = Like<V, T>;
        const V half = constant<V>(wide ? 0x1p63f : 0x1p31f);
        const Result lower = bit_cast<Result>(
            convert<Integer>(select(value < half, value, static_cast<V>(value - half))));
        const Result top = constant<Result>(T{1} << (8 * sizeof(T) - 1));
        if constexpr (is_scalar<V>) {
            return value < half ? lower : lower ^ top;
        } else {
            const auto upper = integer_to_integer<Integer>(bit_cast<Signed<V>>(value >= half));
            return lower ^ (bit_cast<Result>(upper) & top);
        }
    }
}

template <typename T, typename V>
FK_HOST_DEVICE_STATIC Like<V, T> convert_staged(V value) {
    if constexpr (lean::is_same_v<T, Element<V>>) {
        return value;
    } else if constexpr (is_floating<V>) {
        if constexpr (lean::is_floating_point_v<T>) {
            return convert<T>(value);
        } else {
            return floating_to_integer<T>(value);
        }
    } else if constexpr (lean::is_floating_point_v<T>) {
        return integer_to_floating<T>(value);
    } else {
        return integer_to_integer<T>(value);
    }
}

}  // namespace fklarray
