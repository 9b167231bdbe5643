// Comparisons: a mask on vectors, a bool on scalars.
#pragma once

#include <fklarray/functor.h>

namespace fklarray {

struct Equal : Predicate {
    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V a, V b) {
        return a == b;
    }
};

struct NotEqual : Predicate {
    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V a, V b) {
        return a != b;
    }
};

struct Less : Predicate {
    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V a, V b) {
        return a < b;
    }
};

struct LessEqual : Predicate {
    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V a, V b) {
        return a <= b;
    }
};

struct Greater : Predicate {
    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V a, V b) {
        return a > b;
    }
};

struct GreaterEqual : Predicate {
    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V a, V b) {
        return a >= b;
    }
};

}  // namespace fklarray
