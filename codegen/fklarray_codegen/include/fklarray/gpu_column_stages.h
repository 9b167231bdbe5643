// Stages over the columns of a GPU's teams of threads. A team has one place in all rows of a block
// of rows, or of a segment of them: a pack, whose lanes belong to different results. Elements are
// combined in the order of reductions.h: each thread has some of a chunk's 32 partial values.
#pragma once

#include <fklarray/gpu_stages.h>

#if defined(__CUDACC__)
namespace fklarray {

constexpr int gpu_column_threads = 256;  // of a block, at most

// A team and what it works on.
template <int Lanes>
struct GpuColumn {
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
        const bool is_first = in_halves ? team.thread < distance : team.thread % (2 * step) == 0;
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
            const Value value =
                rows(column, stage, lines, column.begin + team.thread, column.end, team.threads);
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
            power_of_two_from(quotient_up(column.segments, column.team.threads));
        const std::int64_t first = smaller(column.team.thread * run, column.segments - 1);
        const Value value =
            pair_up<S>(values, column.distance, first, smaller(first + run, column.segments));
        return column_tree<false, S>(value, column.team, column.across,
                                     quotient_up(column.segments, run));
    }

    FK_DEVICE_STATIC void store(const Column& column, const Value& value, const StageType& stage) {
        S::store_all(column.point, value, stage.ends);
    }

private:
    template <typename Lines>
    FK_DEVICE_STATIC Value chunk(const Column& column, const StageType& stage, const Lines& lines,
                                 std::int64_t begin) {
        const std::int64_t end = smaller(begin + chunk_length, column.end);
        const GpuTeam& team = column.team;
        const int partials = static_cast<int>(smaller(end - begin, partial_values));
        // The thread's partial values are combined in halves as well: of each two of them the one
        // that comes second is as far away as can be.
        const int mine = partial_values / team.threads;
        const int bits = 31 - __clz(mine);
        GpuPairing<S> pairing;
        Value value;
        do {
            const auto turned = static_cast<std::uint64_t>(__brev(pairing.count()));
            const int partial = static_cast<int>((turned << bits) >> 32);
            const int first = team.thread + partial * team.threads;
            if (partial == 0 || first < partials) {
                value = rows(column, stage, lines, begin + first, end, partial_values);
                if (mine > 1) pairing.push(value, 0);
            } else {
                pairing.skip();
            }
        } while (pairing.count() < mine && mine > 1);
        if (mine > 1) value = pairing.total();
        return column_tree<true, S>(value, team, column.across, partials);
    }

    template <typename Lines>
    FK_DEVICE_STATIC Value rows(const Column& column, const StageType& stage, const Lines& lines,
                                std::int64_t begin, std::int64_t end, int step) {
        constexpr auto indices = std::make_index_sequence<StageType::Chain::size>();
        constexpr int batch = gpu_batch<StageType>;
        Value state = S::neutral();
        std::int64_t row = begin;
        if (!column.is_there) return state;
        if (column.is_whole && are_whole(lines, indices)) {
#pragma unroll batch
            for (; row < end; row += step) {
                state = S::append(state, run_lines(Spot<true>{row, Lanes}, stage.chain, lines,
                                                   [&](const auto& registers) {
                                                       return S::start(registers, row);
                                                   }));
            }
        }
#pragma unroll 1
        for (; row < end; row += step) {
            state = S::append(
                state, run_lines(Spot<false>{row, column.lanes}, stage.chain, lines,
                                 [&](const auto& registers) { return S::start(registers, row); }));
        }
        return state;
    }
};

// Columns scanned by one thread each.
template <int Lanes, typename StageType>
struct GpuColumnScan;

template <int Lanes, typename Chain, typename... Scans>
struct GpuColumnScan<Lanes, Stage<Work::scan, Chain, fk::Tuple<Scans...>>> {
    using StageType = Stage<Work::scan, Chain, fk::Tuple<Scans...>>;
    using Column = GpuColumn<Lanes>;
    using Indices = std::index_sequence_for<Scans...>;
    using Packs = fk::Tuple<Pack<typename Scans::Value, Lanes>...>;

    template <typename Lines>
    FK_DEVICE_STATIC void scan(const Column& column, const StageType& stage, const Lines& lines) {
        if (column.team.thread != 0 || !column.is_there) return;
        const auto targets =
            lines_of<Along::column, Lanes>(column.point, stage.ends, NotKept{}, Indices());
        const bool is_whole =
            column.is_whole &&
            are_whole(lines, std::make_index_sequence<StageType::Chain::size>()) &&
            are_whole(targets, Indices());
        Packs running = at(Spot<false>{0, column.lanes}, stage, lines);
        write(Spot<false>{0, column.lanes}, targets, running, Indices());
        std::int64_t row = 1;
        // Rows are asked for together: nothing that is stored in between is read.
        constexpr int batch = gpu_batch<StageType>;
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
    FK_DEVICE_STATIC Packs append(const Packs& a, const Packs& b, std::index_sequence<Is...>) {
        return Packs(Scans::Reduction::append(fk::get<Is>(a), fk::get<Is>(b))...);
    }
    template <bool whole, typename Lines, std::size_t... Is>
    FK_DEVICE_STATIC void write(const Spot<whole>& spot, const Lines& targets, const Packs& packs,
                                std::index_sequence<Is...>) {
        (LineFor<Along::column, Lanes, Scans>::template write<whole>(
             fk::get<Is>(targets), spot.pack, spot.lanes, fk::get<Is>(packs)),
         ...);
    }
};

// What is stored for each element, by all threads of the team.
template <int Lanes, typename StageType, typename Lines>
FK_DEVICE_STATIC void write_column(const GpuColumn<Lanes>& column, const StageType& stage,
                                   const Lines& lines) {
    if (!column.is_there) return;
    constexpr auto operations = std::make_index_sequence<StageType::Chain::size>();
    constexpr auto ends = std::make_index_sequence<StageType::Ends::size>();
    const auto targets = lines_of<Along::column, Lanes>(column.point, stage.ends, NotKept{}, ends);
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
