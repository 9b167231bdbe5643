// Number of dimensions of a pointer or a point.
#pragma once

namespace fk {

enum class ND { None, _1D, _2D, _3D };

}  // namespace fk
