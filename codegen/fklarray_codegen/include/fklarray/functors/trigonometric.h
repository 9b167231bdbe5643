// Trigonometric functions and their inverses.
#pragma once

#include <fklarray/vector_math.h>

namespace fklarray {

FKLARRAY_ELEMENTARY_INLINED_1(sin)
struct Sin : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return sin(x);
        } else {
            return elementary<library::sin>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_INLINED_1(cos)
struct Cos : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return cos(x);
        } else {
            return elementary<library::cos>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_1(tan)
struct Tan : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return tan(x);
        } else {
            return elementary<library::tan>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_1(asin)
struct Asin : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return asin(x);
        } else {
            return elementary<library::asin>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_1(acos)
struct Acos : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return acos(x);
        } else {
            return elementary<library::acos>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_1(atan)
struct Atan : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return atan(x);
        } else {
            return elementary<library::atan>(x);
        }
    }
};

FKLARRAY_ELEMENTARY_2(atan2)
struct Atan2 : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x, V y) {
        return elementary<library::atan2>(x, y);
    }
};

}  // namespace fklarray
