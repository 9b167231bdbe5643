// Coordinates of the element (or pack of elements) that one thread works on.
#pragma once

#include <fused_kernel/core/data/nd.h>

namespace fk {

template <typename T, ND D>
struct Point_;

template <typename T>
struct Point_<T, ND::_1D> {
    T x;
};

template <typename T>
struct Point_<T, ND::_2D> {
    T x, y;
};

template <typename T>
struct Point_<T, ND::_3D> {
    T x, y, z;
};

using Point = Point_<int, ND::_3D>;

}  // namespace fk
