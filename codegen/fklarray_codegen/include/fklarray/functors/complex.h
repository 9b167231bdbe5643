// Parts of complex numbers; a real number is its own real part and its own conjugate.
#pragma once

#include <fklarray/functor.h>

namespace fklarray {

template <typename T>
struct ComponentOf {
    using type = T;
};
template <typename T>
struct ComponentOf<Complex<T>> {
    using type = T;
};

struct Conj : ComponentFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return V{x.re, -x.im};
        } else {
            return x;
        }
    }
};

struct Real : ComponentFunctor {
    template <typename T, typename...>
    using Result = typename ComponentOf<T>::type;

    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V x) {
        if constexpr (is_complex<V>) {
            return x.re;
        } else {
            return x;
        }
    }
};

struct Imag : ComponentFunctor {
    template <typename T, typename...>
    using Result = typename ComponentOf<T>::type;

    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V x) {
        return x.im;
    }
};

}  // namespace fklarray
