// One of two values.
#pragma once

#include <fklarray/functors/conversion.h>

namespace fklarray {

// Of equal values (zeros of both signs) the second; x64's instructions do the same.
struct Maximum : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V a, V b) {
        const V greater = select(a > b, a, b);
        if constexpr (is_floating<V>) {
            return select(a == a, greater, a);
        } else {
            return greater;
        }
    }
};

struct Minimum : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V a, V b) {
        const V smaller = select(a < b, a, b);
        if constexpr (is_floating<V>) {
            return select(a == a, smaller, a);
        } else {
            return smaller;
        }
    }
};

struct Where : ComponentFunctor {
    template <typename, typename T, typename...>
    using Result = T;

    template <typename Condition, typename V>
    FK_HOST_DEVICE_STATIC V exec(Condition condition, V a, V b) {
        if constexpr (lean::is_same_v<Condition, bool>) {
            return condition ? a : b;
        } else if constexpr (is_complex<V>) {
            return V{exec(condition, a.re, b.re), exec(condition, a.im, b.im)};
        } else {
            // Bytes of 1 become lanes of -1.
            const auto mask = bit_cast<Signed<Condition>>(static_cast<Condition>(-condition));
            return select(widen<Element<Signed<V>>>(mask), a, b);
        }
    }
};

}  // namespace fklarray
