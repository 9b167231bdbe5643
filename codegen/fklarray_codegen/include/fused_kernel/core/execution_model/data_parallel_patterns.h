// Data parallel patterns: what one thread does with a chain of instantiable operations.
#pragma once

#include <fused_kernel/core/execution_model/operation_model/operation_model.h>
#include <fused_kernel/core/execution_model/parallel_architectures.h>

namespace fk {

// Every point is read, transformed and written on its own.
template <ParArch PA = defaultParArch, TF TFEN = TF::DISABLED>
struct TransformDPP {
    static constexpr ParArch PAR_ARCH = PA;

    template <typename ReadIOp>
    FK_HOST_DEVICE_FUSE ActiveThreads getActiveThreads(const ReadIOp& read) {
        static_assert(isAnyCompleteReadType<ReadIOp>, "The first operation must be a Read");
        return ReadIOp::Operation::getActiveThreads(read);
    }

    template <typename ReadIOp, typename... IOps>
    FK_HOST_DEVICE_FUSE void exec_thread(const Point& thread, const ReadIOp& read,
                                         const IOps&... iOps) {
        // The final Write passes the fold on, so that its own exec can be called with the value.
        const auto fold = ((thread | read) | ... | iOps);
        write(fold, iOps...);
    }

private:
    template <typename Fold, typename First, typename... Rest>
    FK_HOST_DEVICE_FUSE void write(const Fold& fold, const First& first, const Rest&... rest) {
        if constexpr (sizeof...(Rest) > 0) {
            write(fold, rest...);
        } else {
            static_assert(opIs<WriteType, First>, "The last operation must be a Write");
            First::Operation::exec(fold.thread, fold.input, first);
        }
    }
};

}  // namespace fk
