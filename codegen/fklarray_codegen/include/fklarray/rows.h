// The pattern that walks along rows: the elements of a pack are neighbours in a row.
#pragma once

#include <fklarray/stages.h>
#include <fused_kernel/fused_kernel.h>

namespace fklarray {

// A device's blocks may share rows that are few.
template <int Lanes_, bool areShared = false>
struct RowsDPP {
    static constexpr fk::ParArch PAR_ARCH = fk::defaultParArch;
    static constexpr int Lanes = Lanes_;
};
template <int Lanes>
using SharedRowsDPP = RowsDPP<Lanes, true>;

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
    static __attribute__((noinline)) Value chunks(const StageType& stage, const Point row,
                                                  std::int64_t begin, std::int64_t end,
                                                  std::int64_t length) {
        if (length < Lanes) return narrow(stage, row, static_cast<int>(length));
        Pairing<One> pairing;
        const StageType inside = unbounded(stage);
        Value values[group];
        for (std::int64_t chunk = begin; chunk < end; ++chunk) {
            const Value value = fold(partials(inside, row, chunk * packs, length));
            if (end - begin == 1) return value;
            const int place = static_cast<int>(chunk % group);
            values[place] = value;
            if (place == group - 1) {
                pairing.push(tree(values), group_level);
            } else if (chunk == end - 1) {
                for (int i = 0; i <= place; ++i) pairing.push(values[i], 0);
            }
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
    // Of a pack that was moved back only the last lanes count.
    FK_HOST_STATIC typename S::type at(const StageType& stage, Point thread, std::int64_t x,
                                       int valid = Lanes) {
        thread.x = as_int(x);
        return run_chain(thread, stage.chain, [&](const auto& registers) FKLARRAY_INLINED {
            return S::start_last(registers, x, Lanes - valid, valid);
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

    // From pack x to the end of the row, not more than a chunk. The last pack is moved back, and
    // its elements forward again.
    FK_HOST_STATIC Partials partials(const StageType& inside, const Point& row, std::int64_t x,
                                     std::int64_t length) {
        const std::int64_t whole = smaller(length / Lanes - x, packs);
        const int valid = whole == packs ? 0 : static_cast<int>(length % Lanes);
        constexpr auto indices = lean::make_index_sequence<subs>();
        if constexpr (StageType::Chain::size <= 2) {
            const std::int64_t even = whole - whole % subs;
            const bool reads_ahead = is_straddling(row, fk::get<0>(inside.chain).params, length);
            Partials partials = reads_ahead ? unrolled<true>(inside, row, x, even, indices)
                                            : unrolled<false>(inside, row, x, even, indices);
            if (whole < packs) {
                append_rest(partials, inside, row, x + even, static_cast<int>(whole - even), valid,
                            indices);
            }
            return partials;
        } else {
            // One copy of a longer chain, which takes longer than its running values in memory.
            Partials partials;
            for (typename S::type& value : partials.values) value = S::neutral();
            const std::int64_t count = whole + (valid > 0 ? 1 : 0);
            StageType place = inside;
            for (std::int64_t step = 0; step < count; ++step) {
                const bool is_last = step == whole;
                if (is_last) place = moved_back(place, Lanes - valid);
                typename S::type& value = partials.values[step % subs];
                value = S::append(value, at(place, row, x + step, is_last ? valid : Lanes));
            }
            return partials;
        }
    }

    template <bool reads_ahead, std::size_t... Is>
    FK_HOST_STATIC Partials unrolled(const StageType& inside, const Point& row, std::int64_t x,
                                     std::int64_t count, lean::index_sequence<Is...> indices) {
        return unrolled<reads_ahead>(inside, row, x, count, indices,
                                     (static_cast<void>(Is), S::neutral())...);
    }

    // The running values are arguments, of which compilers keep each in a register.
    template <bool reads_ahead, std::size_t... Is, typename... Running>
    FK_HOST_STATIC Partials unrolled(const StageType& inside, const Point& row, std::int64_t x,
                                     std::int64_t count, lean::index_sequence<Is...>,
                                     Running... running) {
        for (std::int64_t step = 0; step < count; step += subs) {
            if constexpr (reads_ahead) {
                const auto& stream = fk::get<0>(inside.chain).params;
                const auto ahead = [&](std::int64_t at) { return Point{as_int(at), row.y, row.z}; };
                (fklarray::read_ahead<Lanes, Is>(ahead(x + step + Is), stream), ...);
            }
            ((running = S::append(running, at(inside, row, x + step + Is))), ...);
        }
        return {{running...}};
    }

    // Fewer packs than partial values, the last of `valid` elements if there are any.
    template <std::size_t... Is>
    FK_HOST_STATIC void append_rest(Partials& partials, const StageType& inside, const Point& row,
                                    std::int64_t x, int count, int valid,
                                    lean::index_sequence<Is...>) {
        const auto append = [&](std::size_t i, const typename S::type& state) FKLARRAY_INLINED {
            partials.values[i] = S::append(partials.values[i], state);
        };
        ((static_cast<int>(Is) < count ? append(Is, at(inside, row, x + Is)) : void()), ...);
        if (valid > 0) {
            const auto state = at(moved_back(inside, Lanes - valid), row, x + count, valid);
            ((static_cast<int>(Is) == count ? append(Is, state) : void()), ...);
        }
    }

    // A row that is shorter than a pack.
    FKLARRAY_COLD Value narrow(const StageType& stage, Point thread, int length) {
        thread.x = 0;
        Partials partials;
        for (typename S::type& value : partials.values) value = S::neutral();
        partials.values[0] =
            run_chain(thread, stage.chain, [&](const auto& registers) FKLARRAY_INLINED {
                return S::append(S::neutral(), S::start_last(registers, 0, 0, length));
            });
        return fold(partials);
    }
};

// What single elements are added up as: both components of complex numbers at once.
template <typename T, bool by_component>
struct InOneRegister {
    using type = T;
};
template <typename T>
struct InOneRegister<Complex<T>, true> {
    using type = Vector<T, 2>;
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
        fk::Tuple<Single<Scans>...> running;
        const std::int64_t packs = (length + Lanes - 1) / Lanes;
        for (std::int64_t x = 0; x < packs; ++x) {
            thread.x = as_int(x);
            // The last pack is moved back: its first lanes were taken in before.
            const std::int64_t first = length < Lanes ? 0 : smaller(x * Lanes, length - Lanes);
            const Part part{first, static_cast<int>(x * Lanes - first),
                            static_cast<int>(smaller(length - first, Lanes))};
            run_chain(thread, stage.chain, [&](const auto& registers) FKLARRAY_INLINED {
                take_in(thread, registers, stage.ends, running, part,
                        lean::index_sequence_for<Scans...>());
            });
        }
    }

private:
    template <typename Scan>
    using Single =
        typename InOneRegister<typename Scan::Value, Scan::Reduction::by_component>::type;

    // Lanes [begin, end) of the pack that starts with element `first` of the row.
    struct Part {
        std::int64_t first;
        int begin;
        int end;
    };

    template <typename File, typename Running, std::size_t... Is>
    FK_HOST_STATIC void take_in(const Point& thread, const File& registers,
                                const fk::Tuple<Scans...>& ends, Running& running, const Part& part,
                                lean::index_sequence<Is...>) {
        (scan<Scans>(thread, registers.template get<Scans::slot>(), fk::get<Is>(running),
                     fk::get<Is>(ends).params, part),
         ...);
    }

    template <typename Scan, typename T, int Rank, Inner inner>
    FK_HOST_STATIC void scan(const Point& thread, const Pack<T, Lanes>& values,
                             Single<Scan>& running, const StreamParams<T, Rank, inner>& params,
                             const Part& part) {
        const std::int64_t stride = inner_stride<inner>(params.stream);
        Stored<T>* const to = row_of(thread, params) + part.first * stride;
        Single<Scan> lanes[Lanes];
        copy_registers<sizeof(lanes)>(lanes, &values.vector);
        // In a register, which the tuple is not.
        Single<Scan> total = running;
        int begin = part.begin;
        const auto put = [&](int lane) FKLARRAY_INLINED {
            __builtin_memcpy(static_cast<void*>(to + lane * stride), &total, sizeof(total));
        };
        if (thread.x == 0) {
            total = lanes[0];
            put(0);
            begin = 1;
        }
        const auto step = [&](int lane) FKLARRAY_INLINED {
            total = Scan::Reduction::append_one(total, lanes[lane]);
            put(lane);
        };
        if (begin == 0 && part.end == Lanes) {
            for (int lane = 0; lane < Lanes; ++lane) step(lane);  // of a length that is known
        } else {
            for (int lane = begin; lane < part.end; ++lane) step(lane);
        }
        running = total;
    }
};

}  // namespace fklarray

namespace fk {

// Rows are shared out among threads; where there are too few of them, the chunks of each are. A
// thread takes a block of rows through one stage after the other: small enough to stay in the
// cache, but not a single short row, which would wait for each stage's result.
template <int Lanes, bool areShared>
struct Executor<fklarray::RowsDPP<Lanes, areShared>> {
    template <typename Space, typename... Stages>
    FK_HOST_STATIC void executeOperations(Stream_<ParArch::CPU>& stream, const Space& space,
                                          const Stages&... stages) {
        const std::int64_t rows = std::int64_t{rows_of(space)} * planes_of(space);
        const std::int64_t length = row_length({0, 0, 0}, space);
        const std::int64_t threads = fklarray::threads_for(
            stream, rows * packsIn(length) * (fklarray::stage_weight<Stages> + ...));
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

    FK_HOST_FUSE std::int64_t packsIn(std::int64_t length) { return (length + Lanes - 1) / Lanes; }

    template <typename Stage, typename Space>
    FK_HOST_STATIC void whole(const Stage& stage, const Space& space, std::int64_t begin,
                              std::int64_t end, std::int64_t length) {
        fklarray::for_rows(begin, end, space, [&](const Point& row) {
            if constexpr (Stage::work == fklarray::Work::fold) {
                using Fold = fklarray::RowFold<Lanes, Stage>;
                Fold::store(row, Fold::chunks(stage, row, 0, chunksIn(length), length), stage);
            } else if constexpr (Stage::work == fklarray::Work::scan) {
                fklarray::RowScan<Lanes, Stage>::row(stage, row, length);
            } else {
                const bool isOfRow = Stage::work == fklarray::Work::row;
                elements(stage, row, 0, isOfRow ? 1 : packsIn(length));
            }
        });
    }

    // By value: see Executor<TransformDPP>. Of one row, whose place stays the same for the loop.
    template <typename Stage>
    static __attribute__((noinline)) void elements(const Stage stage, Point thread,
                                                   std::int64_t begin, std::int64_t end) {
        for (std::int64_t x = begin; x < end; ++x) {
            thread.x = fklarray::as_int(x);
            fklarray::run_writes(thread, stage);
        }
    }

    template <typename Stage, typename Space>
    FK_HOST_STATIC void divide(Stream_<ParArch::CPU>& stream, const Stage& stage,
                               const Space& space, std::int64_t row, std::int64_t length) {
        fklarray::for_rows(row, row + 1, space, [&](const Point& thread) {
            if constexpr (Stage::work == fklarray::Work::fold) {
                using Fold = fklarray::RowFold<Lanes, Stage>;
                const std::int64_t chunks = chunksIn(length);
                std::int64_t segment = leastSegment;
                while (segment * mostSegments < chunks) segment *= 2;
                const std::int64_t segments = (chunks + segment - 1) / segment;
                typename Fold::Value values[mostSegments];
                stream.run(segments, [&](std::int64_t task) {
                    const std::int64_t begin = task * segment;
                    const std::int64_t end = fklarray::smaller(begin + segment, chunks);
                    values[task] = Fold::chunks(stage, thread, begin, end, length);
                });
                Fold::store(thread, Fold::combine(values, segments), stage);
            } else if constexpr (Stage::work == fklarray::Work::elements) {
                const std::int64_t packs = packsIn(length);
                const std::int64_t tasks = fklarray::smaller(packs, stream.threads() * 8);
                stream.run(tasks, [&](std::int64_t task) {
                    elements(stage, thread, packs * task / tasks, packs * (task + 1) / tasks);
                });
            } else {
                // One value; or one after the other, an order that threads cannot share.
                whole(stage, space, row, row + 1, length);
            }
        });
    }
};

}  // namespace fk
#endif
