// How many threads a pattern starts along each dimension.
#pragma once

#include <fused_kernel/core/utils/utils.h>

namespace fk {

struct ActiveThreads {
    uint x, y, z;
    FK_HOST_DEVICE_CNST ActiveThreads(uint x_ = 1, uint y_ = 1, uint z_ = 1)
        : x(x_), y(y_), z(z_) {}
};

}  // namespace fk
