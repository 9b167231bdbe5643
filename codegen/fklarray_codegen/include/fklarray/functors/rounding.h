// Rounding to integers, and neighbours.
#pragma once

#include <fklarray/functors/arithmetic.h>

namespace fklarray {

enum class Rounding { nearest = 8, floor = 9, ceil = 10, trunc = 11 };  // as x64's ROUNDPS takes it

// Adding and subtracting 2^23 (2^52) rounds to the nearest even integer; the rest is comparisons.
template <Rounding mode, typename V>
FK_HOST_DEVICE_STATIC V rounded_by_sum(V x) {
    const V limit = constant<V>(sizeof(Element<V>) == 4 ? 0x1p23f : 0x1p52f);
    const V one = constant<V>(1);
    const V magnitude = absolute(x);
    const V nearest = select(magnitude < limit, (magnitude + limit) - limit, magnitude);
    const V whole = Copysign::exec(nearest, x);
    V result = whole;
    if constexpr (mode == Rounding::floor) result = select(whole > x, whole - one, whole);
    if constexpr (mode == Rounding::ceil) result = select(whole < x, whole + one, whole);
    if constexpr (mode == Rounding::trunc) {
        result = select(nearest > magnitude, nearest - one, nearest);
    }
    return Copysign::exec(result, x);
}

template <Rounding mode>
struct RoundedTo;

template <Rounding mode, typename V>
FK_HOST_DEVICE_STATIC V rounded(V x) {
    if constexpr (!is_floating<V>) {
        return x;
#if !defined(__CUDACC__) && defined(__AVX__)
    } else if constexpr (lean::is_same_v<V, Vector<float, 8>>) {
        return __builtin_ia32_roundps256(x, static_cast<int>(mode));
    } else if constexpr (lean::is_same_v<V, Vector<double, 4>>) {
        return __builtin_ia32_roundpd256(x, static_cast<int>(mode));
#endif
#if !defined(__CUDACC__) && defined(__SSE4_1__)
    } else if constexpr (lean::is_same_v<V, Vector<float, 4>>) {
        return __builtin_ia32_roundps(x, static_cast<int>(mode));
    } else if constexpr (lean::is_same_v<V, Vector<double, 2>>) {
        return __builtin_ia32_roundpd(x, static_cast<int>(mode));
#endif
    } else if constexpr (sizeof(V) > 32) {
        return halved<RoundedTo<mode>>(x);
    } else {
        return rounded_by_sum<mode>(x);
    }
}

template <Rounding mode>
struct RoundedTo {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        return rounded<mode>(x);
    }
};

struct Floor : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        return rounded<Rounding::floor>(x);
    }
};

struct Ceil : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        return rounded<Rounding::ceil>(x);
    }
};

struct Trunc : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        return rounded<Rounding::trunc>(x);
    }
};

struct Round : ComponentFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return V{exec(x.re), exec(x.im)};
        } else {
            return rounded<Rounding::nearest>(x);
        }
    }
};

// The bits of floating-point values of one sign are ordered as the values are.
struct Nextafter : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x, V towards) {
        using Bits = Signed<V>;
        const V zero{};
        const Bits bits = bit_cast<Bits>(x);
        const Bits one = constant<Bits>(1);
        const Bits away = bits + one;
        const Bits back = bits - one;
        const Bits up = select(x > zero, away, back);
        const Bits down = select(x > zero, back, away);
        const Bits next = select(towards > x, up, down);
        const V smallest = Copysign::exec(bit_cast<V>(one), towards);
        const V moved = select(x == zero, smallest, bit_cast<V>(next));
        const V result = select(x == towards, towards, moved);
        return select(x == x, select(towards == towards, result, towards), x);
    }
};

}  // namespace fklarray
