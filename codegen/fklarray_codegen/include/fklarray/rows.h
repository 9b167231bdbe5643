// The pattern that walks along rows: the elements of a pack are neighbours in a row.
#pragma once

#include <fklarray/stages.h>
#include <fused_kernel/fused_kernel.h>

namespace fklarray {

template <int Lanes_>
struct RowsDPP {
    static constexpr fk::ParArch PAR_ARCH = fk::defaultParArch;
    static constexpr int Lanes = Lanes_;
};

}  // namespace fklarray

#if defined(__CUDACC__)
#include <fklarray/gpu_rows.h>
#else
namespace fklarray {

// Chunks of one row, folded.
template <int Lanes, typename StageType>
class RowFold {
    using S = States<Lanes, typename StageType::Ends>;
    using One = typename S::One;

public:
    using Value = typename One::type;

private:
    // Packs that hold the partial values of a chunk. Where their order does not matter there may be
    // fewer, which stay in registers.
    static constexpr int all_subs = Lanes < partial_values ? partial_values / Lanes : 1;
    static constexpr int subs = S::any_order && all_subs > 4 ? 4 : all_subs;
    static constexpr int packs = chunk_length / Lanes;
    // So many chunks are combined in a tree without branches.
    static constexpr int group_level = 3;
    static constexpr int group = 1 << group_level;

    struct Partials {
        typename S::type values[subs];
    };

public:
    // Of chunks [begin, end), `begin` being a multiple of a power of two that is not less than
    // their number.
    static __attribute__((noinline)) Value chunks(const StageType& stage, const Point& row,
                                                  std::int64_t begin, std::int64_t end,
                                                  std::int64_t length) {
        const std::int64_t complete = smaller(length / chunk_length, end);
        if (end - begin == 1) return incomplete(stage, row, begin * packs, length);
        Pairing<One> pairing;
        const StageType inside = unbounded(stage);
        Value values[group];
        for (std::int64_t chunk = begin; chunk < complete; ++chunk) {
            const int place = static_cast<int>(chunk % group);
            values[place] = fold(steps(inside, row, chunk * packs, packs));
            if (place == group - 1) {
                pairing.push(tree(values), group_level);
            } else if (chunk == complete - 1) {
                for (int i = 0; i <= place; ++i) pairing.push(values[i], 0);
            }
        }
        if (complete < end) {
            pairing.push(incomplete(stage, row, complete * packs, length), 0);
        }
        return pairing.total();
    }

    FK_HOST_STATIC Value combine(const Value* values, std::int64_t count) {
        Pairing<One> pairing;
        for (std::int64_t i = 0; i < count; ++i) pairing.push(values[i], 0);
        return pairing.total();
    }

    FK_HOST_STATIC void store(const Point& row, const Value& value, const StageType& stage) {
        One::store_all(row, value, stage.ends);
    }

private:
    FK_HOST_STATIC typename S::type at(const StageType& stage, Point thread, std::int64_t x) {
        thread.x = static_cast<int>(x);
        return run_chain(thread, stage.chain, [&](const auto& registers) FKLARRAY_INLINED {
            return S::start(registers, x);
        });
    }

    FK_HOST_STATIC Value tree(const Value* values) {
        Value level[group / 2];
        for (int i = 0; i < group / 2; ++i)
            level[i] = One::combine(values[2 * i], values[2 * i + 1]);
        for (int width = group / 2; width > 1; width /= 2) {
            for (int i = 0; i < width / 2; ++i) {
                level[i] = One::combine(level[2 * i], level[2 * i + 1]);
            }
        }
        return level[0];
    }

    FK_HOST_STATIC Value fold(const Partials& partials) {
        return S::fold_lanes(S::template fold_partials<subs>(partials.values, 1));
    }

    // The partial values of `count` packs, a multiple of `subs`.
    FK_HOST_STATIC Partials steps(const StageType& inside, const Point& row, std::int64_t x,
                                  std::int64_t count) {
        if constexpr (StageType::Chain::size <= 2) {
            return unrolled(inside, row, x, count, std::make_index_sequence<subs>());
        } else {
            // One copy of a longer chain, which takes longer than its running values in memory.
            Partials partials;
            for (typename S::type& value : partials.values) value = S::neutral();
            for (std::int64_t step = 0; step < count; ++step) {
                typename S::type& value = partials.values[step % subs];
                value = S::append(value, at(inside, row, x + step));
            }
            return partials;
        }
    }

    template <std::size_t... Is>
    FK_HOST_STATIC Partials unrolled(const StageType& inside, const Point& row, std::int64_t x,
                                     std::int64_t count, std::index_sequence<Is...> indices) {
        return unrolled(inside, row, x, count, indices, (static_cast<void>(Is), S::neutral())...);
    }

    // The running values are arguments, of which compilers keep each in a register.
    template <std::size_t... Is, typename... Running>
    FK_HOST_STATIC Partials unrolled(const StageType& inside, const Point& row, std::int64_t x,
                                     std::int64_t count, std::index_sequence<Is...>,
                                     Running... running) {
        for (std::int64_t step = 0; step < count; step += subs) {
            ((running = S::append(running, at(inside, row, x + step + Is))), ...);
        }
        return {{running...}};
    }

    // From pack x to the end of the row, not more than a chunk. The last pack is moved back, and
    // its elements forward again.
    static __attribute__((noinline)) Value incomplete(const StageType& stage, Point thread,
                                                      std::int64_t x, std::int64_t length) {
        const std::int64_t whole = smaller(length / Lanes - x, packs);
        const std::int64_t even = whole - whole % subs;
        const StageType inside = unbounded(stage);
        Partials partials = steps(inside, thread, x, even);
        std::int64_t step = even;
        for (; step < whole; ++step) {
            typename S::type& value = partials.values[step % subs];
            value = S::append(value, at(inside, thread, x + step));
        }
        const int valid = static_cast<int>(smaller(length - (x + step) * Lanes, Lanes));
        if (step < packs && valid > 0) {
            thread.x = static_cast<int>(x + step);
            const int shift = length < Lanes ? 0 : Lanes - valid;
            typename S::type& value = partials.values[step % subs];
            value = S::append(
                value, run_chain(thread, stage.chain, [&](const auto& registers) FKLARRAY_INLINED {
                    return S::start_last(registers, x + step, shift, valid);
                }));
        }
        return fold(partials);
    }
};

// One row, scanned. Each result is stored by itself: putting it into its lane takes longer than the
// next addition.
template <int Lanes, typename StageType>
struct RowScan;

template <int Lanes, typename Chain, typename... Scans>
struct RowScan<Lanes, Stage<Work::scan, Chain, fk::Tuple<Scans...>>> {
    using StageType = Stage<Work::scan, Chain, fk::Tuple<Scans...>>;

    // By value: see Executor<TransformDPP>.
    static __attribute__((noinline)) void row(const StageType stage, Point thread,
                                              std::int64_t length) {
        fk::Tuple<Pack<typename Scans::Value, 1>...> running;
        const std::int64_t packs = (length + Lanes - 1) / Lanes;
        for (std::int64_t x = 0; x < packs; ++x) {
            thread.x = static_cast<int>(x);
            // The last pack is moved back: its first lanes were taken in before.
            const std::int64_t first = length < Lanes ? 0 : smaller(x * Lanes, length - Lanes);
            const Part part{first, static_cast<int>(x * Lanes - first),
                            static_cast<int>(smaller(length - first, Lanes))};
            run_chain(thread, stage.chain, [&](const auto& registers) FKLARRAY_INLINED {
                take_in(thread, registers, stage.ends, running, part,
                        std::index_sequence_for<Scans...>());
            });
        }
    }

private:
    // Lanes [begin, end) of the pack that starts with element `first` of the row.
    struct Part {
        std::int64_t first;
        int begin;
        int end;
    };

    template <typename File, typename Running, std::size_t... Is>
    FK_HOST_STATIC void take_in(const Point& thread, const File& registers,
                                const fk::Tuple<Scans...>& ends, Running& running, const Part& part,
                                std::index_sequence<Is...>) {
        (scan<Scans>(thread, registers.template get<Scans::slot>(), fk::get<Is>(running),
                     fk::get<Is>(ends).params, part),
         ...);
    }

    template <typename Scan, typename T, int Rank, Inner inner>
    FK_HOST_STATIC void scan(const Point& thread, const Pack<T, Lanes>& values, Pack<T, 1>& running,
                             const StreamParams<T, Rank, inner>& params, const Part& part) {
        const std::int64_t stride = inner_stride<inner>(params.stream);
        Stored<T>* const to = row_of(thread, params) + part.first * stride;
        T lanes[Lanes];
        copy_lanes(lanes, values, std::make_integer_sequence<int, Lanes>());
        // In a register, which the tuple is not.
        T total = running.get(0);
        int begin = part.begin;
        if (thread.x == 0) {
            total = lanes[0];
            to[0] = total;
            begin = 1;
        }
        const auto step = [&](int lane) FKLARRAY_INLINED {
            total = Scan::Reduction::append_one(total, lanes[lane]);
            to[lane * stride] = total;
        };
        if (begin == 0 && part.end == Lanes) {
            for (int lane = 0; lane < Lanes; ++lane) step(lane);  // of a length that is known
        } else {
            for (int lane = begin; lane < part.end; ++lane) step(lane);
        }
        running.set(0, total);
    }

    template <typename T, int... Is>
    FK_HOST_STATIC void copy_lanes(T* lanes, const Pack<T, Lanes>& values,
                                   std::integer_sequence<int, Is...>) {
        if constexpr (std::is_arithmetic_v<T>) {
            __builtin_memcpy(lanes, &values.vector, sizeof(values.vector));
        } else {
            ((lanes[Is] = values.get(Is)), ...);
        }
    }
};

}  // namespace fklarray

namespace fk {

// Rows are shared out among threads; where there are too few of them, the chunks of each are. A
// thread takes a block of rows through one stage after the other: small enough to stay in the
// cache, but not a single short row, which would wait for each stage's result.
template <int Lanes>
struct Executor<fklarray::RowsDPP<Lanes>> {
    template <typename Space, typename... Stages>
    FK_HOST_STATIC void executeOperations(Stream_<ParArch::CPU>& stream, const Space& space,
                                          const Stages&... stages) {
        const std::int64_t rows = std::int64_t{rows_of(space)} * planes_of(space);
        const std::int64_t length = row_length({0, 0, 0}, space);
        const std::int64_t threads = fklarray::threads_for(
            stream, rows * ((length + Lanes - 1) / Lanes) * (fklarray::stage_weight<Stages> + ...));
        if (threads > 1 && rows < 2 * threads &&
            length >= 2 * leastSegment * fklarray::chunk_length) {
            for (std::int64_t row = 0; row < rows; ++row) {
                (divide(stream, stages, space, row, length), ...);
            }
            return;
        }
        const std::int64_t tasks = threads == 1 ? 1 : fklarray::smaller(rows, threads * 8);
        const std::int64_t fitting = 1 + blockElements / length;
        stream.run(tasks, [&](std::int64_t task) {
            const std::int64_t end = rows * (task + 1) / tasks;
            for (std::int64_t row = rows * task / tasks; row < end; row += fitting) {
                (whole(stages, space, row, fklarray::smaller(row + fitting, end), length), ...);
            }
        });
    }

private:
    static constexpr std::int64_t blockElements = 2048;
    // In chunks: long enough to repay handing it to a thread.
    static constexpr std::int64_t leastSegment = 32;
    static constexpr std::int64_t mostSegments = 256;

    FK_HOST_FUSE std::int64_t chunksIn(std::int64_t length) {
        return (length + fklarray::chunk_length - 1) / fklarray::chunk_length;
    }

    template <typename Stage, typename Space>
    FK_HOST_STATIC void whole(const Stage& stage, const Space& space, std::int64_t begin,
                              std::int64_t end, std::int64_t length) {
        if constexpr (Stage::work == fklarray::Work::fold) {
            folds(stage, space, begin, end, length);
        } else if constexpr (Stage::work == fklarray::Work::scan) {
            scans(stage, space, begin, end, length);
        } else {
            const bool isOfRow = Stage::work == fklarray::Work::row;
            const std::int64_t packs = isOfRow ? 1 : (length + Lanes - 1) / Lanes;
            fklarray::for_rows(begin, end, space,
                               [&](const Point& row) { elements(stage, row, 0, packs); });
        }
    }

    template <typename Stage, typename Space>
    FK_HOST_STATIC void folds(const Stage& stage, const Space& space, std::int64_t begin,
                              std::int64_t end, std::int64_t length) {
        using Fold = fklarray::RowFold<Lanes, Stage>;
        fklarray::for_rows(begin, end, space, [&](const Point& row) {
            Fold::store(row, Fold::chunks(stage, row, 0, chunksIn(length), length), stage);
        });
    }

    template <typename Stage, typename Space>
    FK_HOST_STATIC void scans(const Stage& stage, const Space& space, std::int64_t begin,
                              std::int64_t end, std::int64_t length) {
        fklarray::for_rows(begin, end, space, [&](const Point& row) {
            fklarray::RowScan<Lanes, Stage>::row(stage, row, length);
        });
    }

    // By value: see Executor<TransformDPP>. Of one row, whose place stays the same for the loop.
    template <typename Stage>
    static __attribute__((noinline)) void elements(const Stage stage, Point thread,
                                                   std::int64_t begin, std::int64_t end) {
        for (std::int64_t x = begin; x < end; ++x) {
            thread.x = static_cast<int>(x);
            fklarray::run_writes(thread, stage);
        }
    }

    template <typename Stage, typename Space>
    FK_HOST_STATIC void divide(Stream_<ParArch::CPU>& stream, const Stage& stage,
                               const Space& space, std::int64_t row, std::int64_t length) {
        if constexpr (Stage::work == fklarray::Work::fold) {
            fklarray::for_rows(row, row + 1, space, [&](const Point& thread) {
                divide_fold(stream, stage, thread, length);
            });
        } else if constexpr (Stage::work == fklarray::Work::elements) {
            const std::int64_t packs = (length + Lanes - 1) / Lanes;
            const std::int64_t tasks = fklarray::smaller(packs, stream.threads() * 8);
            fklarray::for_rows(row, row + 1, space, [&](const Point& thread) {
                stream.run(tasks, [&](std::int64_t task) {
                    elements(stage, thread, packs * task / tasks, packs * (task + 1) / tasks);
                });
            });
        } else {
            // One value; or one after the other, an order that threads cannot share.
            whole(stage, space, row, row + 1, length);
        }
    }

    template <typename Stage>
    FK_HOST_STATIC void divide_fold(Stream_<ParArch::CPU>& stream, const Stage& stage,
                                    const Point& row, std::int64_t length) {
        using Fold = fklarray::RowFold<Lanes, Stage>;
        const std::int64_t chunks = chunksIn(length);
        std::int64_t segment = leastSegment;
        while (segment * mostSegments < chunks) segment *= 2;
        const std::int64_t segments = (chunks + segment - 1) / segment;
        typename Fold::Value values[mostSegments];
        stream.run(segments, [&](std::int64_t task) {
            const std::int64_t begin = task * segment;
            values[task] =
                Fold::chunks(stage, row, begin, fklarray::smaller(begin + segment, chunks), length);
        });
        Fold::store(row, Fold::combine(values, segments), stage);
    }
};

}  // namespace fk
#endif
