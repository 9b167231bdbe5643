// Operations on bits, and logic on bool (bytes of 0 and 1).
#pragma once

#include <fklarray/functor.h>

namespace fklarray {

struct BitwiseAnd : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V a, V b) {
        return static_cast<V>(a & b);
    }
};

struct BitwiseOr : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V a, V b) {
        return static_cast<V>(a | b);
    }
};

struct BitwiseXor : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V a, V b) {
        return static_cast<V>(a ^ b);
    }
};

struct BitwiseInvert : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        return static_cast<V>(~x);
    }
};

struct LogicalAnd : BitwiseAnd {};
struct LogicalOr : BitwiseOr {};
struct LogicalXor : BitwiseXor {};

struct LogicalNot : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        return static_cast<V>(x ^ 1);
    }
};

template <>
struct FunctorFor<BitwiseInvert, bool> {
    using type = LogicalNot;
};

enum class Direction { left, right };

// Moves by 1, 2, 4, ... places where the count has that bit: vectors of narrow integers, and older
// processors, have no instruction that shifts each lane by a count of its own.
template <Direction direction, int places, typename V>
FK_HOST_DEVICE_STATIC V shift_in_steps(V x, V count) {
    if constexpr (places == element_bits<V>) {
        return x;
    } else {
        const V moved = direction == Direction::left ? x << places : x >> places;
        const V next = select((count & static_cast<Element<V>>(places)) != 0, moved, x);
        return shift_in_steps<direction, 2 * places>(next, count);
    }
}

// The count is at least zero and below the number of bits.
template <Direction direction, typename V>
FK_HOST_DEVICE_STATIC V shift(V x, V count) {
#if defined(__AVX2__)
    constexpr bool each_lane = sizeof(Element<V>) >= 4;
#else
    constexpr bool each_lane = false;
#endif
    if constexpr (is_scalar<V> || each_lane) {
        return static_cast<V>(direction == Direction::left ? x << count : x >> count);
    } else {
        return shift_in_steps<direction, 1>(x, count);
    }
}

// A negative count is a huge one: as unsigned values both are beyond the number of bits.
struct BitwiseLeftShift : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x, V count) {
        using Bits = Unsigned<V>;
        const Bits places = bit_cast<Bits>(count);
        const Bits last = constant<Bits>(element_bits<V> - 1);
        const Bits moved =
            shift<Direction::left>(bit_cast<Bits>(x), static_cast<Bits>(places & last));
        return bit_cast<V>(select(places > last, Bits{}, moved));
    }
};

struct BitwiseRightShift : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x, V count) {
        using Bits = Unsigned<V>;
        const Bits places = bit_cast<Bits>(count);
        const Bits last = constant<Bits>(element_bits<V> - 1);
        const Bits within = select(places > last, last, places);
        const V moved = shift<Direction::right>(x, bit_cast<V>(within));
        if constexpr (is_signed<V>) {
            return moved;
        } else {
            return select(places > last, V{}, moved);
        }
    }
};

}  // namespace fklarray
