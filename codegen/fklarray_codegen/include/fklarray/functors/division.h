// Floor division and its remainder.
#pragma once

#include <fklarray/functors/conversion.h>
#include <fklarray/functors/rounding.h>
#include <fklarray/vector_math.h>

namespace fklarray {

// Truncated quotient of integers for divisors other than 0 and -1. Processors divide vectors of
// floating-point values only; those are precise enough for types of half their significand.
struct TruncatedQuotient {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V a, V b) {
        using Real = lean::conditional_t<sizeof(Element<V>) == 4, double, float>;
        if constexpr (is_scalar<V> || sizeof(Element<V>) == 8) {
            return static_cast<V>(a / b);
        } else if constexpr (sizeof(Like<V, Real>) > vector_bytes) {
            return halved<TruncatedQuotient>(a, b);
        } else {
            return convert_staged<Element<V>>(convert_staged<Real>(a) / convert_staged<Real>(b));
        }
    }
};

template <typename V>
struct Division {
    V quotient;
    V remainder;
};

// By zero both are zero. The quotient by -1 is -a, which for the smallest integer is itself.
template <typename V>
FK_HOST_DEVICE_STATIC Division<V> divide_integers(V a, V b) {
    const V zero{};
    const V one = constant<V>(1);
    V divisor = select(b == zero, one, b);
    if constexpr (is_signed<V>) {
        const V minus_one = constant<V>(-1);
        divisor = select(b == minus_one, one, divisor);
        V quotient = TruncatedQuotient::exec(a, divisor);
        V remainder = static_cast<V>(a - Multiply::exec(quotient, divisor));
        const V sign = static_cast<V>(remainder ^ b);
        const V adjusted = select(remainder == zero, zero, sign);
        quotient = select(adjusted < zero, static_cast<V>(quotient - one), quotient);
        remainder = select(adjusted < zero, static_cast<V>(remainder + b), remainder);
        quotient = select(b == minus_one, Negative::exec(a), quotient);
        return {select(b == zero, zero, quotient), remainder};
    } else {
        const V quotient = TruncatedQuotient::exec(a, divisor);
        const V remainder = static_cast<V>(a - Multiply::exec(quotient, divisor));
        return {select(b == zero, zero, quotient), remainder};
    }
}

namespace library {
struct fmod {
    FK_HOST_DEVICE_STATIC float lane(float a, float b) { return FKLARRAY_C_FUNCTION(fmodf)(a, b); }
    FK_HOST_DEVICE_STATIC double lane(double a, double b) {
        return FKLARRAY_C_FUNCTION(fmod)(a, b);
    }
};
}  // namespace library

// The product as a sum of two values without error (Dekker), for factors far from the limits.
template <typename V>
FK_HOST_DEVICE_STATIC V product_error(V a, V b, V product) {
    const V splitter = constant<V>(0x1p27 + 1);
    const V scaled_a = splitter * a;
    const V scaled_b = splitter * b;
    const V high_a = scaled_a - (scaled_a - a);
    const V high_b = scaled_b - (scaled_b - b);
    const V low_a = a - high_a;
    const V low_b = b - high_b;
    return ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b;
}

// a - b * trunc(a / b), exactly, with the sign of a (but for zero). For quotients and divisors of
// usual size in float64 arithmetic; the others take the C library's function, which is exact too.
struct TruncatedRemainder {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V a, V b) {
        if constexpr (is_scalar<V>) {
            return library::fmod::lane(a, b);
        } else if constexpr (sizeof(Like<V, double>) > vector_bytes) {
            return halved<TruncatedRemainder>(a, b);
        } else {
            using Wide = Like<V, double>;
            const Wide wide_a = convert<double>(a);
            const Wide wide_b = convert<double>(b);
            const Wide quotient = wide_a / wide_b;
            const Wide whole = rounded<Rounding::trunc>(quotient);
            const Wide product = whole * wide_b;
            Wide rest = wide_a - product;
            Signed<Wide> usual;
            if constexpr (sizeof(Element<V>) == 4) {
                // 24 digits of the divisor times 28 of the quotient: the product is exact.
                usual = (absolute(quotient) < 0x1p28) & (absolute(wide_b) < 0x1p200);
            } else {
                rest -= product_error(whole, wide_b, product);
                // A quotient rounded up to an integer has left too little.
                const auto past = select(wide_a < 0, rest, static_cast<Wide>(-rest)) > 0;
                rest = select(past, rest + Copysign::exec(absolute(wide_b), wide_a), rest);
                usual = (absolute(quotient) < 0x1p52) & (absolute(wide_b) < 0x1p900) &
                        (absolute(wide_b) > 0x1p-900);
            }
            if (__builtin_expect(all(usual), 1)) return convert<Element<V>>(rest);
            return elementary_lanes<library::fmod>(a, b);
        }
    }
};

struct Remainder : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V a, V b) {
        if constexpr (is_floating<V>) {
            const V zero{};
            const V rest = TruncatedRemainder::exec(a, b);
            const V same_sign = select(rest < zero, select(b < zero, rest, rest + b),
                                       select(b < zero, rest + b, rest));
            return select(rest == zero, Copysign::exec(zero, b), same_sign);
        } else {
            return divide_integers(a, b).remainder;
        }
    }
};

struct FloorDivide : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V a, V b) {
        if constexpr (is_floating<V>) {
            const V zero{};
            const V one = constant<V>(1);
            const V ratio = a / b;
            const V rest = TruncatedRemainder::exec(a, b);
            V quotient = (a - rest) / b;
            const V less = quotient - one;
            quotient = select(rest < zero, select(b > zero, less, quotient),
                              select(rest > zero, select(b < zero, less, quotient), quotient));
            const V below = rounded<Rounding::floor>(quotient);
            const V whole = select(quotient - below > constant<V>(0.5), below + one, below);
            const V result = select(quotient == zero, Copysign::exec(zero, ratio), whole);
            // With an infinity or a zero divisor the standard wants the ratio itself.
            const V magnitude = absolute(b);
            const V infinity = constant<V>(__builtin_inff());
            const auto special = (absolute(ratio) == infinity) | (magnitude == infinity);
            return select(special, ratio, result);
        } else {
            return divide_integers(a, b).quotient;
        }
    }
};

}  // namespace fklarray
