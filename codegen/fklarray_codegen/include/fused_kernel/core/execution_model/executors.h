// Executors: how the threads of a data parallel pattern are run on each kind of processor.
#pragma once

#include <fused_kernel/core/execution_model/data_parallel_patterns.h>
#include <fused_kernel/core/execution_model/stream.h>

namespace fk {

template <typename DataParallelPattern>
struct Executor;

// Rows (all x of one y and z) are shared out among threads; small work stays in the caller, where
// waking a thread would cost more than it saves.
template <TF TFEN>
struct Executor<TransformDPP<ParArch::CPU, TFEN>> {
    template <typename ReadIOp, typename... IOps>
    FK_HOST_STATIC void executeOperations(Stream_<ParArch::CPU>& stream, const ReadIOp& read,
                                          const IOps&... iOps) {
        const ActiveThreads active = TransformDPP<ParArch::CPU, TFEN>::getActiveThreads(read);
        const std::int64_t rows = std::int64_t{active.y} * active.z;
        const std::int64_t work = rows * active.x * std::int64_t{sizeof...(IOps)};
        const std::int64_t threads = work < parallelWork ? 1 : stream.threads();
        const std::int64_t tasks = threads == 1 ? 1 : smaller(rows, threads * tasksPerThread);
        stream.run(tasks, [&, rows, tasks](std::int64_t task) {
            executeRows(rows * task / tasks, rows * (task + 1) / tasks, active, read, iOps...);
        });
    }

private:
    // Operations times points below which one thread is faster (measured: a wake-up costs 5 us).
    static constexpr std::int64_t parallelWork = 1 << 16;
    static constexpr std::int64_t tasksPerThread = 8;

    FK_HOST_FUSE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

    // By value: parameters that nothing else can point to stay in registers over every store.
    template <typename ReadIOp, typename... IOps>
    FK_HOST_STATIC void executeRows(std::int64_t begin, std::int64_t end, ActiveThreads active,
                                    const ReadIOp read, const IOps... iOps) {
        for (std::int64_t row = begin; row < end; ++row) {
            const int y = static_cast<int>(row % active.y);
            const int z = static_cast<int>(row / active.y);
            const int width =
                static_cast<int>(ReadIOp::Operation::num_elems_x(Point{0, y, z}, read));
            for (int x = 0; x < width; ++x) {
                TransformDPP<ParArch::CPU, TFEN>::exec_thread(Point{x, y, z}, read, iOps...);
            }
        }
    }
};

}  // namespace fk
