// Executors for NVIDIA GPUs: a pattern becomes a kernel, and its operations the kernel's
// parameters.
#pragma once

#include <fused_kernel/core/execution_model/data_parallel_patterns.h>
#include <fused_kernel/core/execution_model/stream.h>

#if defined(__CUDACC__)
namespace fk {

template <typename DataParallelPattern>
struct Executor;

// Division of numbers below 2^31 by one that the host knows, in three instructions instead of
// twenty (T. Granlund and P. Montgomery, "Division by invariant integers using multiplication").
struct GpuDivisor {
    uint divisor;
    uint multiplier;
    uint shift;

    FK_HOST_FUSE GpuDivisor by(uint divisor) {
        uint shift = 0;
        while ((std::uint64_t{1} << shift) < divisor) ++shift;
        const std::uint64_t scaled = ((std::uint64_t{1} << shift) - divisor) << 32;
        return {divisor, static_cast<uint>(scaled / divisor + 1), shift};
    }
    FK_DEVICE_STATIC uint quotient(uint number, const GpuDivisor& by) {
        return (__umulhi(number, by.multiplier) + number) >> by.shift;
    }
};

// How a one-dimensional grid, the only one without a small limit, covers columns, rows and planes.
// A column is as wide as a block's threads have points side by side.
struct GpuGrid {
    GpuDivisor columns;
    GpuDivisor rows;
    uint lines;         // rows of blocks, of all planes
    uint wholeColumns;  // in these
    uint wholeRows;     // every thread's point is whole; there are none if some stream is not
};

constexpr uint gpuBlockThreads = 128;

// Whether an Operation can move so many elements at once, at points that are whole; and what it can
// do without there. One that says nothing can, and does without nothing.
template <typename Params>
FK_HOST_FUSE bool movesWhole(const Params&, int) {
    return true;
}
template <typename Params>
FK_HOST_DEVICE_FUSE void makeWhole(Params&) {}

// Elements of a point.
template <typename ReadIOp, typename = void>
constexpr int elements = 1;
template <typename ReadIOp>
constexpr int elements<ReadIOp, lean::void_t<decltype(ReadIOp::Operation::lanes)>> =
    ReadIOp::Operation::lanes;

// Bytes that an Operation reads at a point; 0 is also what one says that does not know.
template <typename Operation, typename = void>
constexpr int bytesRead = 0;
template <typename Operation>
constexpr int bytesRead<Operation, lean::void_t<decltype(Operation::bytes_read)>> =
    Operation::bytes_read;

template <typename... IOps>
constexpr int bytesOfPoint = (bytesRead<typename IOps::Operation> + ...);

// Points of a thread. One is best for a copy of a stream; several help where a thread reads so
// little at each that too few bytes are under way, and where operations on the two numbers of 8
// bytes that are a point take as long as the memory.
template <typename ReadIOp, typename... IOps>
FK_HOST_DEVICE_FUSE int pointsOfThread() {
    constexpr int bytes = bytesOfPoint<ReadIOp, IOps...>;
    if (bytes == 0 || bytes > 16) return 1;
    return bytes < 4 ? 4 : elements<ReadIOp> == 2 ? 2 : 1;
}

// Asks for memory that is read later, in bursts. Where much more is written than read, this saves
// turns of the memory between the two. Older devices have no such instruction.
FK_DEVICE_STATIC void readAhead([[maybe_unused]] const void* address, [[maybe_unused]] int bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    const auto begin = reinterpret_cast<std::uintptr_t>(address) / 16 * 16;
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(begin), "r"(bytes / 16 * 16));
#endif
}

constexpr int gpuLeastRead = 4;         // bytes of a point: with more, nothing is read ahead
constexpr int gpuBlocksAhead = 16;      // that one of them reads ahead for
constexpr int gpuBytesAhead = 2 << 20;  // how far

// The first thread of some blocks reads ahead in the row.
template <int Points, typename ReadIOp>
FK_DEVICE_STATIC void readAhead(const Point& thread, uint column, uint columns,
                                const ReadIOp& read) {
    const uint width = blockDim.x * Points;
    const uint bytes = width * bytesRead<typename ReadIOp::Operation>;
    const uint ahead = column + gpuBytesAhead / bytes;
    if (threadIdx.x == 0 && column % gpuBlocksAhead == 0 && ahead + gpuBlocksAhead <= columns) {
        const Point point{static_cast<int>(ahead * width), thread.y, thread.z};
        readAhead(ReadIOp::Operation::address(point, read), gpuBlocksAhead * bytes);
    }
}

template <typename IOp, typename = void>
constexpr bool hasParams = false;
template <typename IOp>
constexpr bool hasParams<IOp, lean::void_t<decltype(lean::declval<IOp&>().params)>> = true;

template <typename IOp>
FK_DEVICE_STATIC IOp inside(IOp iOp) {
    if constexpr (hasParams<IOp>) makeWhole(iOp.params);
    return iOp;
}
template <typename IOp>
FK_HOST_STATIC bool isWhole(const IOp& iOp, int elements) {
    if constexpr (hasParams<IOp>) return movesWhole(iOp.params, elements);
    return true;
}

template <typename Pattern, typename ReadIOp, typename... IOps>
__global__ void __launch_bounds__(gpuBlockThreads)
    launchTransform(const __grid_constant__ GpuGrid grid, const __grid_constant__ ReadIOp read,
                    const __grid_constant__ IOps... iOps) {
    constexpr int points = pointsOfThread<ReadIOp, IOps...>();
    uint line = 0;
    uint column = blockIdx.x;
    if (grid.lines > 1) {
        line = GpuDivisor::quotient(blockIdx.x, grid.columns);
        column -= line * grid.columns.divisor;
    }
    uint row = line;
    uint plane = 0;
    if (grid.lines > grid.rows.divisor) {
        plane = GpuDivisor::quotient(line, grid.rows);
        row -= plane * grid.rows.divisor;
    }
    const Point thread{static_cast<int>(column * blockDim.x * points + threadIdx.x),
                       static_cast<int>(row * blockDim.y + threadIdx.y), static_cast<int>(plane)};
    if (column < grid.wholeColumns && row < grid.wholeRows) {
        constexpr int bytes = bytesOfPoint<ReadIOp, IOps...>;
        if constexpr (bytes == bytesRead<typename ReadIOp::Operation> && bytes > 0 &&
                      bytes <= gpuLeastRead) {
            readAhead<points>(thread, column, grid.wholeColumns, read);
        }
        Pattern::template exec_threads<points>(thread, static_cast<int>(blockDim.x), inside(read),
                                               inside(iOps)...);
    } else if (thread.y < static_cast<int>(ReadIOp::Operation::num_elems_y(thread, read))) {
        const int width = static_cast<int>(ReadIOp::Operation::num_elems_x(thread, read));
        if constexpr (points == 1) {
            if (thread.x < width) Pattern::exec_thread(thread, read, iOps...);
        } else {
            const int end = thread.x + points * static_cast<int>(blockDim.x);
#pragma unroll 1
            for (int x = thread.x; x < end && x < width; x += static_cast<int>(blockDim.x)) {
                Pattern::exec_thread(Point{x, thread.y, thread.z}, read, iOps...);
            }
        }
    }
}

template <TF TFEN>
struct Executor<TransformDPP<ParArch::GPU_NVIDIA, TFEN>> {
    using Pattern = TransformDPP<ParArch::GPU_NVIDIA, TFEN>;

    template <typename ReadIOp, typename... IOps>
    FK_HOST_STATIC void executeOperations(Stream_<ParArch::GPU_NVIDIA>& stream, const ReadIOp& read,
                                          const IOps&... iOps) {
        const ActiveThreads active = Pattern::getActiveThreads(read);
        // Several short rows share a block.
        uint width = gpuBlockThreads;
        while (width > 1 && width / 2 >= active.x) width /= 2;
        const dim3 block(width, gpuBlockThreads / width);
        const uint column = block.x * pointsOfThread<ReadIOp, IOps...>();
        const uint columns = (active.x + column - 1) / column;
        const uint rows = (active.y + block.y - 1) / block.y;
        // The last pack of a row may not be whole, and the last row may be shorter.
        constexpr int count = elements<ReadIOp>;
        const bool areWhole = isWhole(read, count) && (isWhole(iOps, count) && ...);
        const uint wholeRows = !areWhole || block.y > 1 ? 0 : active.y > 1 ? active.y - 1 : 1;
        const GpuGrid grid{GpuDivisor::by(columns), GpuDivisor::by(rows), rows * active.z,
                           (active.x - 1) / column, wholeRows};
        launchTransform<Pattern>
            <<<columns * grid.lines, block, 0, stream.getCUDAStream()>>>(grid, read, iOps...);
    }
};

}  // namespace fk
#endif
