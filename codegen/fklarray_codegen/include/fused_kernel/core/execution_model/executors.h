// Executors: how the threads of a data parallel pattern are run on each kind of processor.
#pragma once

#include <fused_kernel/core/data/tuple.h>
#include <fused_kernel/core/execution_model/data_parallel_patterns.h>
#include <fused_kernel/core/execution_model/stream.h>
#if defined(__CUDACC__)
#include <fused_kernel/core/execution_model/gpu_executors.h>
#endif

namespace fk {

template <typename DataParallelPattern>
struct Executor;

// Operations of dozens of instructions, which say so. A processor looks ahead over a hundred or two
// of them: a chain of several is run in parts, each for a block of points, so that what it finds
// there is independent.
template <typename Operation, typename = void>
constexpr bool isLong = false;
template <typename Operation>
constexpr bool isLong<Operation, lean::enable_if_t<Operation::is_long>> = true;

// What a part of a chain leaves for the next one.
template <typename Value>
struct Kept {
    Value* values;
    int first;  // x of the first point
};

template <typename Value>
struct WriteKept {
    using InstanceType = WriteType;
    using Operation = WriteKept;
    Kept<Value> kept;

    FK_HOST_FUSE void exec(const Point& thread, const Value& value, const WriteKept& to) {
        to.kept.values[thread.x - to.kept.first] = value;
    }
};

template <typename Value>
struct ReadKept {
    using InstanceType = ReadType;
    using Operation = ReadKept;
    Kept<Value> kept;

    FK_HOST_FUSE const Value& exec(const Point& thread, const ReadKept& from) {
        return from.kept.values[thread.x - from.kept.first];
    }
};

// The parts of a chain: each but the last ends with a long Operation.
template <typename... IOps>
struct Parts {
    static constexpr std::size_t size = sizeof...(IOps);

    // One past the last Operation of the part that begins with Operation `begin`.
    FK_HOST_FUSE std::size_t endOf(std::size_t begin) {
        constexpr bool longs[] = {isLong<typename IOps::Operation>...};
        std::size_t end = size;
        bool another = false;
        for (std::size_t i = size; i-- > begin;) {
            if (!longs[i]) continue;
            if (another) end = i + 1;
            another = true;
        }
        return end;
    }

    // How many points make a block: as many as leave their values in the first-level cache, and not
    // so many that their results wait for memory all at once.
    FK_HOST_FUSE int points() {
        std::size_t largest = 1;
        ((largest = bytes<IOps>() > largest ? bytes<IOps>() : largest), ...);
        const auto fitting = static_cast<int>(8192 / largest);
        return fitting > 32 ? 32 : fitting < 8 ? 8 : fitting;
    }

private:
    template <typename IOp>
    FK_HOST_FUSE std::size_t bytes() {
        if constexpr (isLong<typename IOp::Operation>) {
            return sizeof(typename IOp::Operation::OutputType);
        } else {
            return 1;
        }
    }
};

// Rows (all x of one y and z) are shared out among threads; small work stays in the caller, where
// waking a thread would cost more than it saves.
template <TF TFEN>
struct Executor<TransformDPP<ParArch::CPU, TFEN>> {
    using Pattern = TransformDPP<ParArch::CPU, TFEN>;

    template <typename ReadIOp, typename... IOps>
    FK_HOST_STATIC void executeOperations(Stream_<ParArch::CPU>& stream, const ReadIOp& read,
                                          const IOps&... iOps) {
        const ActiveThreads active = Pattern::getActiveThreads(read);
        const std::int64_t rows = std::int64_t{active.y} * active.z;
        const std::int64_t work = rows * active.x * (std::int64_t{weight<IOps>} + ...);
        const std::int64_t threads = work < parallelWork ? 1 : stream.threads();
        const std::int64_t tasks = threads == 1 ? 1 : smaller(rows, threads * tasksPerThread);
        stream.run(tasks, [&, rows, tasks](std::int64_t task) {
            executeRows(rows * task / tasks, rows * (task + 1) / tasks, active, read, iOps...);
        });
    }

private:
    template <typename IOp>
    static constexpr int weight = isLong<typename IOp::Operation> ? 8 : 1;

    // Operations times points below which one thread is faster (measured: a wake-up costs 5 us).
    static constexpr std::int64_t parallelWork = 1 << 16;
    static constexpr std::int64_t tasksPerThread = 8;

    FK_HOST_FUSE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

    // By value: parameters that nothing else can point to stay in registers over every store.
    template <typename ReadIOp, typename... IOps>
    FK_HOST_STATIC void executeRows(std::int64_t begin, std::int64_t end, ActiveThreads active,
                                    const ReadIOp read, const IOps... iOps) {
        int y = static_cast<int>(begin % active.y);
        int z = static_cast<int>(begin / active.y);
        for (std::int64_t row = begin; row < end; ++row, ++y) {
            if (y == static_cast<int>(active.y)) {
                y = 0;
                ++z;
            }
            const int width =
                static_cast<int>(ReadIOp::Operation::num_elems_x(Point{0, y, z}, read));
            if constexpr (Parts<IOps...>::endOf(0) == sizeof...(IOps)) {
                for (int x = 0; x < width; ++x) Pattern::exec_thread(Point{x, y, z}, read, iOps...);
            } else {
                const Tuple<IOps...> chain(iOps...);
                constexpr int step = Parts<IOps...>::points();
                for (int x = 0; x < width; x += step) {
                    executeParts<0>(Point{x, y, z}, width - x < step ? width : x + step, read,
                                    chain);
                }
            }
        }
    }

    // The Operations from Begin on, for the points from the first to the one before x = end.
    template <std::size_t Begin, typename ReadIOp, typename... IOps>
    FK_HOST_STATIC void executeParts(const Point& first, int end, const ReadIOp& read,
                                     const Tuple<IOps...>& chain) {
        constexpr std::size_t partEnd = Parts<IOps...>::endOf(Begin);
        constexpr auto part = lean::make_index_sequence<partEnd - Begin>();
        if constexpr (partEnd == sizeof...(IOps)) {
            executePart<Begin>(first, end, read, chain, part);
        } else {
            using Last = lean::decay_t<decltype(get<partEnd - 1>(chain))>;
            using Value = typename Last::Operation::OutputType;
            Value values[Parts<IOps...>::points()];
            const Kept<Value> kept{values, first.x};
            executePart<Begin>(first, end, read, chain, part, WriteKept<Value>{kept});
            executeParts<partEnd>(first, end, ReadKept<Value>{kept}, chain);
        }
    }

    template <std::size_t Begin, typename ReadIOp, typename Chain, std::size_t... Is,
              typename... Ends>
    FK_HOST_STATIC void executePart(const Point& first, int end, const ReadIOp& read,
                                    const Chain& chain, lean::index_sequence<Is...>,
                                    const Ends&... ends) {
        for (Point point = first; point.x < end; ++point.x) {
            Pattern::exec_thread(point, read, get<Begin + Is>(chain)..., ends...);
        }
    }
};

}  // namespace fk
