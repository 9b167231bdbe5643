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
        operate(thread, ReadIOp::Operation::exec(thread, read), iOps...);
    }

    // The same for several points so far apart in a row, of which all are read first.
    template <int Points, typename ReadIOp, typename... IOps>
    FK_HOST_DEVICE_FUSE void exec_threads(const Point& thread, int distance, const ReadIOp& read,
                                          const IOps&... iOps) {
        if constexpr (Points == 1) {
            exec_thread(thread, read, iOps...);
        } else {
            read_points<Points>(thread, distance, read, [&](const auto&... inputs) {
                Point point = thread;
                ((operate(point, inputs, iOps...), point.x += distance), ...);
            });
        }
    }

private:
    template <int Points, typename ReadIOp, typename Rest, typename... Inputs>
    FK_HOST_DEVICE_FUSE void read_points(const Point& point, int distance, const ReadIOp& read,
                                         const Rest& rest, const Inputs&... inputs) {
        if constexpr (Points == 0) {
            rest(inputs...);
        } else {
            read_points<Points - 1>(Point{point.x + distance, point.y, point.z}, distance, read,
                                    rest, inputs..., ReadIOp::Operation::exec(point, read));
        }
    }

    // The same as folding with operator|, but every value is built where the next operation reads
    // it: a compiler keeps what is never copied as a whole in registers.
    template <typename Input, typename IOp, typename... Rest>
    FK_HOST_DEVICE_FUSE void operate(const Point& thread, const Input& input, const IOp& iOp,
                                     const Rest&... rest) {
        using Operation = typename IOp::Operation;
        if constexpr (opIs<WriteType, IOp> || opIs<MidWriteType, IOp>) {
            Operation::exec(thread, input, iOp);
            if constexpr (sizeof...(Rest) > 0) operate(thread, input, rest...);
        } else {
            static_assert(sizeof...(Rest) > 0, "The last operation must be a Write");
            if constexpr (opIs<OpenType, IOp>) {
                operate(thread, Operation::exec(thread, input, iOp), rest...);
            } else if constexpr (opIs<UnaryType, IOp>) {
                operate(thread, Operation::exec(input), rest...);
            } else {
                operate(thread, Operation::exec(input, iOp), rest...);
            }
        }
    }
};

}  // namespace fk
