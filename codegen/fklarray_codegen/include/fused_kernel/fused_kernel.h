// Entry point of the library: run a chain of instantiable operations as one kernel.
#pragma once

#include <fused_kernel/core/execution_model/executors.h>

namespace fk {

template <typename DPPType, typename... IOps>
inline void executeOperations(Stream_<DPPType::PAR_ARCH>& stream, const IOps&... iOps) {
    Executor<DPPType>::executeOperations(stream, iOps...);
}

}  // namespace fk
