// Stages over the columns of a GPU's teams of threads. A team has one place in all rows of a block
// of rows, or of a segment of them: a pack, whose lanes belong to different results. Elements are
// combined in the order of reductions.h: each thread has some of a chunk's 32 partial values.
#pragma once

#include <fklarray/gpu_stages.h>

#if defined(__CUDACC__)
namespace fklarray {

constexpr int gpu_column_threads = 256;  // of a block, at most

// A team and what it works on.
template <int Lanes, typename StageType>
class GpuColumnFold;
template <int Lanes, typename StageType>
struct GpuColumnScan;

template <int Lanes>
struct GpuColumn {
    static constexpr Along along = Along::column;
    static constexpr int lanes_of_pack = Lanes;
    template <typename StageType>
    using Fold = GpuColumnFold<Lanes, StageType>;
    template <typename StageType>
    using Scan = GpuColumnScan<Lanes, StageType>;

    Point point;  // of its pack in the first row
    GpuTeam team;
    bool is_there;
    bool is_whole;  // the pack
    int lanes;
    int across;          // how many teams a block has: their threads lie side by side
    std::int64_t begin;  // of the segment
    std::int64_t end;
    std::int64_t segments;
    std::int64_t place;     // of the segment's result in scratch memory, or of the first one's
    std::int64_t distance;  // from there to the next one's

    FK_DEVICE_STATIC void synchronise(const GpuColumn&) { __syncthreads(); }
};

// The values of a team's threads, the first `filled` of them, for its first thread. Threads are
// combined with their neighbours, the pairs with theirs, and so on; or in halves, as partial values
// are. Called by all threads of a block.
template <bool in_halves, typename S>
FK_DEVICE_STATIC typename S::type column_tree(typename S::type value, const GpuTeam& team,
                                              int across, std::int64_t filled) {
    using Value = typename S::type;
    alignas(16) __shared__ char memory[gpu_column_threads * sizeof(Value)];
    if (team.threads == 1) return value;
    auto* const values = reinterpret_cast<Value*>(memory) + threadIdx.x;
    *values = value;
    for (int step = 1; step < team.threads; step *= 2) {
        const int distance = in_halves ? team.threads / 2 / step : step;
        const bool is_first =
            in_halves ? team.thread < distance : (team.thread & (2 * step - 1)) == 0;
        __syncthreads();
        if (is_first && team.thread + distance < filled) {
            value = S::combine(value, values[distance * across]);
            *values = value;
        }
    }
    __syncthreads();
    return value;
}

template <int Lanes, typename StageType>
class GpuColumnFold {
    using S = States<Lanes, typename StageType::Ends>;
    using Column = GpuColumn<Lanes>;

public:
    using Value = typename S::type;

    // The segment's value for the first thread of the team.
    template <typename Lines>
    FK_DEVICE_STATIC Value fold(const Column& column, const StageType& stage, const Lines& lines) {
        const GpuTeam& team = column.team;
        if constexpr (S::any_order) {
            const std::int64_t length = std::int64_t{rows_of_sequence} * team.threads;
            const bool whole = is_whole(column, lines);
            std::int64_t row = column.begin + team.thread;
            Value value = S::neutral();
            for (; whole && row + length - team.threads < column.end; row += length) {
                value = S::append(value, sequence(stage, lines, row, team.threads));
            }
            value = S::append(value, rows(column, stage, lines, row, column.end, team.threads));
            return column_tree<false, S>(value, team, column.across, column.end - column.begin);
        } else {
            const bool is_one = column.end - column.begin <= chunk_length;
            GpuPairing<S> pairing;
            Value value;
            for (std::int64_t row = column.begin; row < column.end; row += chunk_length) {
                value = chunk(column, stage, lines, row);
                if (!is_one) pairing.push(value, 0);
            }
            return is_one ? value : pairing.total();
        }
    }

    // The same of what the column's segments have left.
    FK_DEVICE_STATIC Value join(const Column& column, const char* scratch) {
        const auto* const values = reinterpret_cast<const Value*>(scratch) + column.place;
        const std::int64_t run =
            power_of_two_from(power_quotient_up(column.segments, column.team.threads));
        const std::int64_t first = smaller(column.team.thread * run, column.segments - 1);
        const Value value =
            pair_up<S>(values, column.distance, first, smaller(first + run, column.segments));
        return column_tree<false, S>(value, column.team, column.across,
                                     power_quotient_up(column.segments, run));
    }

    FK_DEVICE_STATIC void store(const Column& column, const Value& value, const StageType& stage) {
        S::store_all(column.point, value, stage.ends);
    }

    // How many of a chunk's partial values a thread has at once, so that rows are read in order.
    static constexpr int partials = sizeof(Value) <= 16 ? 8 : sizeof(Value) <= 32 ? 4 : 2;
    // Threads of a team: so many, or one for each partial value; fewer if there are fewer rows.
    static constexpr int threads = S::any_order ? 1 : partial_values / partials;

private:
    static constexpr int rows_of_sequence = chunk_length / partial_values;

    template <typename Lines>
    FK_DEVICE_STATIC bool is_whole(const Column& column, const Lines& lines) {
        return column.is_there && column.is_whole &&
               are_whole(lines, lean::make_index_sequence<StageType::Chain::size>());
    }

    // Teams have a thread for each partial value, or for so many of them, or there are fewer rows.
    template <typename Lines>
    FK_DEVICE_STATIC Value chunk(const Column& column, const StageType& stage, const Lines& lines,
                                 std::int64_t begin) {
        const GpuTeam& team = column.team;
        const std::int64_t end = smaller(begin + chunk_length, column.end);
        const std::int64_t first = begin + team.thread;
        const int there = static_cast<int>(smaller(end - begin, partial_values));
        Value value;
        if (team.threads == partial_values) {
            value = is_whole(column, lines) && end - begin == chunk_length
                        ? sequence(stage, lines, first, partial_values)
                        : rows(column, stage, lines, first, end, partial_values);
        } else if (is_whole(column, lines)) {
            value = several<true>(column, stage, lines, first, end, there);
        } else {
            value = several<false>(column, stage, lines, first, end, there);
        }
        return column_tree<true, S>(value, team, column.across, there);
    }

    template <bool whole, typename Lines>
    FK_DEVICE_STATIC Value several(const Column& column, const StageType& stage, const Lines& lines,
                                   std::int64_t begin, std::int64_t end, int there) {
        const GpuTeam& team = column.team;
        Value values[partials];
#pragma unroll
        for (int i = 0; i < partials; ++i) values[i] = S::neutral();
#pragma unroll 1
        for (std::int64_t row = begin; row < end && column.is_there; row += partial_values) {
            // Rows that are not there are read as the last one, and forgotten.
            const auto spot = [&](int number) {
                return Spot<whole>{smaller(row + number * team.threads, end - 1), column.lanes};
            };
            decltype(fetch(spot(0), stage.chain, lines)) fetched[partials];
#pragma unroll
            for (int i = 0; i < partials; ++i) {
                fetched[i] = fetch(spot(i), stage.chain, lines);
            }
#pragma unroll
            for (int i = 0; i < partials; ++i) {
                // A choice, not a branch: the spots' computations mix.
                Value& value = values[i];
                Value next = value;
                append(next, stage, lines, spot(i), fetched[i]);
                value = row + i * team.threads < end ? next : value;
            }
        }
#pragma unroll
        for (int distance = partials / 2; distance > 0; distance /= 2) {
#pragma unroll
            for (int i = 0; i < distance; ++i) {
                const bool is_there = team.thread + (i + distance) * team.threads < there;
                if (is_there) values[i] = S::combine(values[i], values[i + distance]);
            }
        }
        return values[0];
    }

    // Of whole packs in rows that lie so many apart.
    template <typename Lines>
    FK_DEVICE_STATIC Value sequence(const StageType& stage, const Lines& lines, std::int64_t begin,
                                    int step) {
        const auto spot = [&](int number) {
            return Spot<true>{begin + std::int64_t{number} * step, Lanes};
        };
        Value value = S::neutral();
        run_spots<rows_of_sequence>(stage.chain, lines, spot, [&](int number, const auto& fetched) {
            append(value, stage, lines, spot(number), fetched);
        });
        return value;
    }

    // Of the same, few of them.
    template <typename Lines>
    FK_DEVICE_STATIC Value rows(const Column& column, const StageType& stage, const Lines& lines,
                                std::int64_t begin, std::int64_t end, int step) {
        Value value = S::neutral();
        std::int64_t row = begin;
        const auto one = [&](const auto& spot) {
            append(value, stage, lines, spot, fetch(spot, stage.chain, lines));
        };
#pragma unroll 1
        for (; row < end && is_whole(column, lines); row += step) one(Spot<true>{row, Lanes});
#pragma unroll 1
        for (; row < end && column.is_there; row += step) one(Spot<false>{row, column.lanes});
        return value;
    }

    template <typename Lines, typename SpotType, typename Fetched>
    FK_DEVICE_STATIC void append(Value& value, const StageType& stage, const Lines& lines,
                                 const SpotType& spot, const Fetched& fetched) {
        value = S::append(value,
                          run_lines(spot, stage.chain, lines, fetched, [&](const auto& registers) {
                              return S::start(registers, spot.pack);
                          }));
    }
};

// Columns scanned by one thread each.
template <int Lanes, typename Chain, typename... Scans>
struct GpuColumnScan<Lanes, Stage<Work::scan, Chain, fk::Tuple<Scans...>>> {
    using StageType = Stage<Work::scan, Chain, fk::Tuple<Scans...>>;
    using Column = GpuColumn<Lanes>;
    using Indices = lean::index_sequence_for<Scans...>;
    using Packs = fk::Tuple<Pack<typename Scans::Value, Lanes>...>;

    template <typename Lines>
    FK_DEVICE_STATIC void scan(const Column& column, const StageType& stage, const Lines& lines) {
        if (column.team.thread != 0 || !column.is_there) return;
        const auto targets = lines_of(column, stage.ends, NotKept{}, Indices());
        const bool is_whole =
            column.is_whole &&
            are_whole(lines, lean::make_index_sequence<StageType::Chain::size>()) &&
            are_whole(targets, Indices());
        Packs running = at(Spot<false>{0, column.lanes}, stage, lines);
        write(Spot<false>{0, column.lanes}, targets, running, Indices());
        std::int64_t row = 1;
        // Rows are asked for together: nothing that is stored in between is read.
        constexpr int batch = 4;
        for (; is_whole && row + batch <= column.end; row += batch) {
            Packs packs[batch];
#pragma unroll
            for (int i = 0; i < batch; ++i) packs[i] = at(Spot<true>{row + i, Lanes}, stage, lines);
#pragma unroll
            for (int i = 0; i < batch; ++i) {
                running = append(running, packs[i], Indices());
                write(Spot<true>{row + i, Lanes}, targets, running, Indices());
            }
        }
#pragma unroll 1
        for (; row < column.end; ++row) {
            const Spot<false> spot{row, column.lanes};
            running = append(running, at(spot, stage, lines), Indices());
            write(spot, targets, running, Indices());
        }
    }

private:
    template <bool whole, typename Lines>
    FK_DEVICE_STATIC Packs at(const Spot<whole>& spot, const StageType& stage, const Lines& lines) {
        return run_lines(spot, stage.chain, lines, [&](const auto& registers) {
            return Packs(registers.template get<Scans::slot>()...);
        });
    }
    template <std::size_t... Is>
    FK_DEVICE_STATIC Packs append(const Packs& a, const Packs& b, lean::index_sequence<Is...>) {
        return Packs(Scans::Reduction::append(fk::get<Is>(a), fk::get<Is>(b))...);
    }
    template <bool whole, typename Lines, std::size_t... Is>
    FK_DEVICE_STATIC void write(const Spot<whole>& spot, const Lines& targets, const Packs& packs,
                                lean::index_sequence<Is...>) {
        (LineFor<Along::column, Lanes, Scans>::template write<whole>(
             fk::get<Is>(targets), spot.pack, spot.lanes, fk::get<Is>(packs)),
         ...);
    }
};

// What is stored for each element, by all threads of the team.
template <int Lanes, typename StageType, typename Lines>
FK_DEVICE_STATIC void write_elements(const GpuColumn<Lanes>& column, const StageType& stage,
                                     const Lines& lines) {
    if (!column.is_there) return;
    constexpr auto operations = lean::make_index_sequence<StageType::Chain::size>();
    constexpr auto ends = lean::make_index_sequence<StageType::Ends::size>();
    const auto targets = lines_of(column, stage.ends, NotKept{}, ends);
    const auto write = [&](const auto& spot) {
        run_lines(spot, stage.chain, lines, [&](const auto& registers) {
            write_lines(spot, targets, registers, stage.ends, ends);
        });
    };
    std::int64_t row = column.begin + column.team.thread;
    if (column.is_whole && are_whole(lines, operations) && are_whole(targets, ends)) {
#pragma unroll 1
        for (; row < column.end; row += column.team.threads) write(Spot<true>{row, Lanes});
    }
#pragma unroll 1
    for (; row < column.end; row += column.team.threads) {
        write(Spot<false>{row, column.lanes});
    }
}

}  // namespace fklarray
#endif
