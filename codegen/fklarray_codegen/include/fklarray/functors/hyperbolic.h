// Hyperbolic functions and their inverses.
#pragma once

#include <fklarray/vector_math.h>

namespace fklarray {

FKLARRAY_ELEMENTARY_1(sinh)
struct Sinh : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return sinh(x);
        } else {
            return elementary<library::sinh>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_1(cosh)
struct Cosh : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return cosh(x);
        } else {
            return elementary<library::cosh>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_1(tanh)
struct Tanh : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return tanh(x);
        } else {
            return elementary<library::tanh>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_1(asinh)
struct Asinh : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return asinh(x);
        } else {
            return elementary<library::asinh>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_1(acosh)
struct Acosh : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return acosh(x);
        } else {
            return elementary<library::acosh>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_1(atanh)
struct Atanh : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return atanh(x);
        } else {
            return elementary<library::atanh>(x);
        }
    }
};

}  // namespace fklarray
