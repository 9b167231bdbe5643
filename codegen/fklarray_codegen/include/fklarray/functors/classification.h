// Questions about the kind of a value.
#pragma once

#include <fklarray/functor.h>

namespace fklarray {

// The bits without the sign: they order floating-point values by magnitude, NaN last.
template <typename V>
FK_HOST_DEVICE_STATIC Signed<V> magnitude_bits(V x) {
    using Bits = Element<Signed<V>>;
    constexpr Bits mask = static_cast<Bits>(static_cast<lean::make_unsigned_t<Bits>>(-1) >> 1);
    return bit_cast<Signed<V>>(x) & mask;
}

template <typename V>
constexpr Element<Signed<V>> infinity_bits =
    sizeof(Element<V>) == 4 ? Element<Signed<V>>{0x7f800000}
                            : static_cast<Element<Signed<V>>>(0x7ff0000000000000);

// The same answer for every lane, as a mask.
template <bool answer, typename V>
FK_HOST_DEVICE_STATIC auto always(V x) {
    if constexpr (answer) {
        return x == x;
    } else {
        return x != x;
    }
}

struct Isnan : Predicate {
    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V x) {
        return x != x;
    }
};

struct Isinf : Predicate {
    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V x) {
        if constexpr (is_complex<V>) {
            return exec(x.re) | exec(x.im);
        } else if constexpr (is_floating<V>) {
            return magnitude_bits(x) == infinity_bits<V>;
        } else {
            return always<false>(x);
        }
    }
};

struct Isfinite : Predicate {
    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V x) {
        if constexpr (is_complex<V>) {
            return exec(x.re) & exec(x.im);
        } else if constexpr (is_floating<V>) {
            return magnitude_bits(x) < infinity_bits<V>;
        } else {
            return always<true>(x);
        }
    }
};

struct Signbit : Predicate {
    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V x) {
        return bit_cast<Signed<V>>(x) < 0;
    }
};

}  // namespace fklarray
