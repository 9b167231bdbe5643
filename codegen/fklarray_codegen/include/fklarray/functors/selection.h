// One of two values.
#pragma once

#include <fklarray/functors/conversion.h>
#include <fklarray/fused.h>

namespace fklarray {

// Of equal values, and where one is NaN, the second.
template <typename V>
FK_HOST_DEVICE_STATIC V greater_of(V a, V b) {
    return select(a > b, a, b);
}
template <typename V>
FK_HOST_DEVICE_STATIC V smaller_of(V a, V b) {
    return select(a < b, a, b);
}
#if defined(FKLARRAY_FUSED) && !defined(__clang__)
// Instructions that gcc 12 does not find where a comparison with NaN follows.
FK_HOST_STATIC Floats greater_of(Floats a, Floats b) {
#if defined(FKLARRAY_AVX512)
    return __builtin_ia32_maxps512_mask(a, b, a, -1, 4);
#else
    return __builtin_ia32_maxps256(a, b);
#endif
}
FK_HOST_STATIC Floats smaller_of(Floats a, Floats b) {
#if defined(FKLARRAY_AVX512)
    return __builtin_ia32_minps512_mask(a, b, a, -1, 4);
#else
    return __builtin_ia32_minps256(a, b);
#endif
}
#endif

// Of equal values (zeros of both signs) the second; x64's instructions do the same.
struct Maximum : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V a, V b) {
        const V greater = greater_of(a, b);
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
        const V smaller = smaller_of(a, b);
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
