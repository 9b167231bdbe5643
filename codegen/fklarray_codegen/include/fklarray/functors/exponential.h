// Exponentials, logarithms and powers.
#pragma once

#include <fklarray/functors/arithmetic.h>
#include <fklarray/vector_math.h>

namespace fklarray {

FKLARRAY_ELEMENTARY_INLINED_1(exp)
struct Exp : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return exp(x);
        } else {
            return elementary<library::exp>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_1(expm1)
struct Expm1 : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return expm1(x);
        } else {
            return elementary<library::expm1>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_1(log)
struct Log : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return log(x);
        } else {
            return elementary<library::log>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_1(log1p)
struct Log1p : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return log1p(x);
        } else {
            return elementary<library::log1p>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_1(log2)
struct Log2 : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return log2(x);
        } else {
            return elementary<library::log2>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_1(log10)
struct Log10 : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return log10(x);
        } else {
            return elementary<library::log10>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_2(hypot)
struct Hypot : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x, V y) {
        return elementary<library::hypot>(x, y);
    }
};

// In float64: where the sum of the exponentials is near 1 its logarithm loses leading digits.
struct Logaddexp : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x, V y) {
        using Wide = Like<V, double>;
        if constexpr (!is_scalar<V> && sizeof(Wide) > vector_bytes) {
            return halved<Logaddexp>(x, y);
        } else {
            const Wide a = convert<double>(x);
            const Wide b = convert<double>(y);
            const Wide greater = select(a > b, a, b);
            // An infinite difference adds nothing; equal infinities have none.
            const Wide distance = select(a == b, Wide{}, static_cast<Wide>(-absolute(a - b)));
            const Wide exponential = elementary<library::exp>(distance);
            const Wide sum = greater + elementary<library::log1p>(exponential);
            // Of two NaNs a sum takes either one: here the operands' only.
            return convert<Element<V>>(select(distance == distance, sum, static_cast<Wide>(a + b)));
        }
    }
};

template <typename Bits>
FK_HOST_DEVICE_STATIC Bits power_of(Bits base, Bits exponent) {
    const Bits one = constant<Bits>(1);
    Bits result = one;
    while (any(exponent)) {
        const Bits odd = static_cast<Bits>(exponent & one);
        result = select(odd != 0, Multiply::exec(result, base), result);
        base = Multiply::exec(base, base);
        exponent = static_cast<Bits>(exponent >> 1);
    }
    return result;
}

// Squares and multiplies, wrapping. A negative power is 1 / (base ^ -exponent), truncated: it is 0
// but for the bases 1 and -1, and 0 for the base 0 as well.
template <typename V>
FK_HOST_DEVICE_STATIC V integer_power(V base, V exponent) {
    using Bits = Unsigned<V>;
    const Bits one = constant<Bits>(1);
    Bits remaining = bit_cast<Bits>(exponent);
    if constexpr (is_signed<V>) {
        // Only the parity of a negative exponent matters, and only to the bases 1 and -1.
        const Bits parity = static_cast<Bits>(remaining & one);
        remaining = select(exponent < 0, parity, remaining);
        const V unit = select(base == 1, base, select(base == -1, base, V{}));
        const V start = select(exponent < 0, unit, base);
        const Bits odd = power_of(bit_cast<Bits>(start), remaining);
        const V zero_power = select(exponent < 0, static_cast<V>(unit * unit), constant<V>(1));
        return select(remaining == 0, zero_power, bit_cast<V>(odd));
    } else {
        return power_of(base, remaining);
    }
}

FKLARRAY_ELEMENTARY_2(pow)
struct Pow : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x, V y) {
        if constexpr (is_complex<V>) {
            return pow(x, y);
        } else if constexpr (is_floating<V>) {
            return elementary<library::pow>(x, y);
        } else {
            return integer_power(x, y);
        }
    }
};

}  // namespace fklarray
