// Stages over the rows of a GPU's teams of threads. A team has a row: some threads of a warp, a
// block, or for each segment of a long row a block. Elements are combined in the order of
// reductions.h: the threads that read 32 neighbouring elements hold their partial values and go
// through a chunk together; teams take runs of chunks whose number is a power of two.
#pragma once

#include <fklarray/gpu_stages.h>

#if defined(__CUDACC__)
namespace fklarray {

constexpr int gpu_row_threads = 512;  // of a block, at most

// A team and what it works on.
template <int Lanes, typename StageType>
class GpuRowFold;
template <int Lanes, typename StageType>
struct GpuRowScan;

template <int Lanes>
struct GpuRow {
    static constexpr Along along = Along::row;
    static constexpr int lanes_of_pack = Lanes;
    static constexpr std::int64_t packs_of_chunk = chunk_length / Lanes;
    static constexpr int packs_of_sequence = chunk_length / partial_values;
    template <typename StageType>
    using Fold = GpuRowFold<Lanes, StageType>;
    template <typename StageType>
    using Scan = GpuRowScan<Lanes, StageType>;

    Point point;
    GpuTeam team;
    bool is_there;  // there may be fewer rows than teams
    std::int64_t length;
    std::int64_t begin;  // of the segment, in chunks
    std::int64_t end;
    std::int64_t segments;
    std::int64_t place;  // of the segment's result in scratch memory, or of the first one's
    char* memory;        // in which rows are kept

    FK_DEVICE_STATIC std::int64_t all_packs(const GpuRow& row) {
        return quotient_up(row.length, Lanes);
    }
    FK_DEVICE_STATIC std::int64_t end_pack(const GpuRow& row) {
        return row.is_there ? smaller(row.end * packs_of_chunk, all_packs(row)) : 0;
    }
    // Packs before this one are whole, if the lines are.
    FK_DEVICE_STATIC std::int64_t whole_packs(const GpuRow& row) { return row.length / Lanes; }
    FK_DEVICE_STATIC int lanes(const GpuRow& row, std::int64_t pack) {
        return static_cast<int>(smaller(row.length - pack * Lanes, Lanes));
    }
    FK_DEVICE_STATIC void synchronise(const GpuRow& row) {
        if (row.team.threads > 32) {
            __syncthreads();
        } else {
            __syncwarp();
        }
    }
};

// The values of a team's parties, the first `filled` of them, combined with their neighbours, the
// pairs with theirs, and so on. A party is so many threads, of which the first one has the value;
// the team's first thread gets the result.
template <typename S>
FK_DEVICE_STATIC typename S::type tree(typename S::type value, const GpuTeam& team, int party,
                                       std::int64_t filled) {
    const int width = team.threads < 32 ? team.threads : 32;
    for (int distance = party; distance < width; distance *= 2) {
        const auto further = from_further(value, distance);
        if ((team.thread + distance) / party < filled) value = S::combine(value, further);
    }
    if (team.threads > 32) {
        alignas(16) __shared__ char memory[gpu_row_threads / 32 * sizeof(value)];
        auto* const values = reinterpret_cast<typename S::type*>(memory);
        const int warps = team.threads / 32;
        const int warp = team.thread / 32;
        auto* const mine = values + (threadIdx.x - team.thread) / 32;
        if (team.thread % 32 == 0) mine[warp] = value;
        __syncthreads();
        if (warp == 0) {
            value = mine[team.thread < warps ? team.thread : 0];
            const int parties = party < 32 ? 32 / party : 1;
            for (int distance = 1; distance < warps; distance *= 2) {
                const auto further = from_further(value, distance);
                if ((team.thread + distance) * parties < filled) {
                    value = S::combine(value, further);
                }
            }
        }
    }
    return value;
}

template <int Lanes, typename StageType>
class GpuRowFold {
    using S = States<Lanes, typename StageType::Ends>;
    using One = typename S::One;
    using Row = GpuRow<Lanes>;
    // Threads that go through a chunk together.
    static constexpr int party = partial_values / Lanes;

public:
    using Value = typename One::type;

    // The row's value, or its segment's, for the first thread of the team.
    template <typename Lines>
    FK_DEVICE_STATIC Value fold(const Row& row, const StageType& stage, const Lines& lines) {
        const std::int64_t whole = smaller(whole_packs(row, lines), Row::end_pack(row));
        if constexpr (S::any_order) {
            const std::int64_t begin = row.begin * Row::packs_of_chunk;
            const std::int64_t end = Row::end_pack(row);
            const std::int64_t step = row.team.threads;
            const std::int64_t length = Row::packs_of_sequence * step;
            std::int64_t pack = begin + row.team.thread;
            auto state = S::neutral();
            for (; pack + length - step < whole; pack += length) {
                state = S::append(state, sequence(stage, lines, pack, step));
            }
            state = S::append(state, packs(row, stage, lines, pack, end, step));
            return tree<One>(S::fold_lanes(state), row.team, 1, end - begin);
        } else {
            const std::int64_t chunks = row.end - row.begin;
            const std::int64_t run = run_of(chunks, row.team.threads / party);
            const std::int64_t first = row.begin + row.team.thread / party * run;
            GpuPairing<One> pairing;
            Value value;
            for (std::int64_t number = first; number < first + run; ++number) {
                const std::int64_t pack = number * Row::packs_of_chunk + row.team.thread % party;
                const std::int64_t end = (number + 1) * Row::packs_of_chunk;
                value = together(end <= whole ? sequence(stage, lines, pack, party)
                                              : packs(row, stage, lines, pack, end, party));
                if (run > 1 && (number == first || number < row.end)) pairing.push(value, 0);
            }
            if (run > 1) value = pairing.total();
            return tree<One>(value, row.team, party, power_quotient_up(chunks, run));
        }
    }

    // The same of what the row's segments have left.
    FK_DEVICE_STATIC Value join(const Row& row, const char* scratch) {
        const auto* const values = reinterpret_cast<const Value*>(scratch) + row.place;
        const std::int64_t run = run_of(row.segments, row.team.threads);
        const std::int64_t first = smaller(row.team.thread * run, row.segments - 1);
        const Value value = pair_up<One>(values, 1, first, smaller(first + run, row.segments));
        return tree<One>(value, row.team, 1, power_quotient_up(row.segments, run));
    }

    FK_DEVICE_STATIC void store(const Row& row, const Value& value, const StageType& stage) {
        One::store_all(row.point, value, stage.ends);
    }

private:
    // How many of the items one of the parties takes.
    FK_DEVICE_STATIC std::int64_t run_of(std::int64_t items, int parties) {
        return power_of_two_from(power_quotient_up(items, parties));
    }

    // A chunk's value, for the first thread of its party.
    FK_DEVICE_STATIC Value together(typename S::type state) {
        for (int distance = party / 2; distance > 0; distance /= 2) {
            state = S::combine(state, from_further(state, distance));
        }
        return S::fold_lanes(state);
    }

    // How many of its packs may be read as such.
    template <typename Lines>
    FK_DEVICE_STATIC std::int64_t whole_packs(const Row& row, const Lines& lines) {
        constexpr auto indices = lean::make_index_sequence<StageType::Chain::size>();
        return are_whole(lines, indices) ? Row::whole_packs(row) : 0;
    }

    // Of whole packs that lie so many apart.
    template <typename Lines>
    FK_DEVICE_STATIC typename S::type sequence(const StageType& stage, const Lines& lines,
                                               std::int64_t begin, std::int64_t step) {
        const auto spot = [&](int number) { return Spot<true>{begin + number * step, Lanes}; };
        typename S::type state = S::neutral();
        run_spots<Row::packs_of_sequence>(
            stage.chain, lines, spot, [&](int number, const auto& fetched) {
                const auto start = [&](const auto& registers) {
                    return S::start(registers, spot(number).pack);
                };
                state =
                    S::append(state, run_lines(spot(number), stage.chain, lines, fetched, start));
            });
        return state;
    }

    // Up to `end` or that of the row; few of them.
    template <typename Lines>
    FK_DEVICE_STATIC typename S::type packs(const Row& row, const StageType& stage,
                                            const Lines& lines, std::int64_t begin,
                                            std::int64_t end, std::int64_t step) {
        const std::int64_t last = smaller(end, Row::end_pack(row));
        const std::int64_t whole = smaller(last, whole_packs(row, lines));
        typename S::type state = S::neutral();
        std::int64_t pack = begin;
#pragma unroll 1
        for (; pack < whole; pack += step) {
            state = S::append(
                state, run_lines(Spot<true>{pack, Lanes}, stage.chain, lines,
                                 [&](const auto& registers) { return S::start(registers, pack); }));
        }
#pragma unroll 1
        for (; pack < last; pack += step) {
            const int lanes = Row::lanes(row, pack);
            state = S::append(state, run_lines(Spot<false>{pack, lanes}, stage.chain, lines,
                                               [&](const auto& registers) {
                                                   return S::start_last(registers, pack, 0, lanes);
                                               }));
        }
        return state;
    }
};

// A row scanned by a team within a warp: one thread after the other adds up its pack.
template <int Lanes, typename Chain, typename... Scans>
struct GpuRowScan<Lanes, Stage<Work::scan, Chain, fk::Tuple<Scans...>>> {
    using StageType = Stage<Work::scan, Chain, fk::Tuple<Scans...>>;
    using Row = GpuRow<Lanes>;
    using Indices = lean::index_sequence_for<Scans...>;
    using Packs = fk::Tuple<Pack<typename Scans::Value, Lanes>...>;
    using Running = fk::Tuple<Pack<typename Scans::Value, 1>...>;

    template <typename Lines>
    FK_DEVICE_STATIC void scan(const Row& row, const StageType& stage, const Lines& lines) {
        const auto targets = lines_of(row, stage.ends, NotKept{}, Indices());
        const std::int64_t end = Row::end_pack(row);
        Running running;
        for (std::int64_t first = 0; first < Row::all_packs(row); first += row.team.threads) {
            const std::int64_t pack = first + row.team.thread;
            const int lanes = Row::lanes(row, pack);
            Packs packs;
            if (pack < end) {
                packs = run_lines(Spot<false>{pack, lanes}, stage.chain, lines,
                                  [&](const auto& registers) {
                                      return Packs(registers.template get<Scans::slot>()...);
                                  });
            }
            take_in(row.team, first == 0, packs, running, Indices());
            if (pack < end) write(Spot<false>{pack, lanes}, targets, packs, Indices());
        }
    }

private:
    template <std::size_t... Is>
    FK_DEVICE_STATIC void take_in(const GpuTeam& team, bool is_first, Packs& packs,
                                  Running& running, lean::index_sequence<Is...>) {
        for (int turn = 0; turn < team.threads; ++turn) {
            if (team.thread == turn) {
                (add_up<Scans>(is_first && turn == 0, fk::get<Is>(packs), fk::get<Is>(running)),
                 ...);
            }
            ((fk::get<Is>(running) = from_thread(fk::get<Is>(running), turn, team.threads)), ...);
        }
    }

    template <typename Scan, typename T>
    FK_DEVICE_STATIC void add_up(bool is_first, Pack<T, Lanes>& pack, Pack<T, 1>& running) {
        T total = is_first ? pack.get(0) : Scan::Reduction::append_one(running.get(0), pack.get(0));
        pack.set(0, total);
        for (int lane = 1; lane < Lanes; ++lane) {
            total = Scan::Reduction::append_one(total, pack.get(lane));
            pack.set(lane, total);
        }
        running.set(0, total);
    }

    template <typename Lines, std::size_t... Is>
    FK_DEVICE_STATIC void write(const Spot<false>& spot, const Lines& targets, const Packs& packs,
                                lean::index_sequence<Is...>) {
        (LineFor<Along::row, Lanes, Scans>::template write<false>(fk::get<Is>(targets), spot.pack,
                                                                  spot.lanes, fk::get<Is>(packs)),
         ...);
    }
};

// What is stored for each element, by all threads of the team.
template <int Lanes, typename StageType, typename Lines>
FK_DEVICE_STATIC void write_elements(const GpuRow<Lanes>& row, const StageType& stage,
                                     const Lines& lines) {
    using Row = GpuRow<Lanes>;
    constexpr auto operations = lean::make_index_sequence<StageType::Chain::size>();
    constexpr auto ends = lean::make_index_sequence<StageType::Ends::size>();
    const auto targets = lines_of(row, stage.ends, NotKept{}, ends);
    const bool aligned = are_whole(lines, operations) && are_whole(targets, ends);
    const std::int64_t end = Row::end_pack(row);
    const std::int64_t whole = aligned ? smaller(end, Row::whole_packs(row)) : 0;
    std::int64_t pack = row.begin * Row::packs_of_chunk + row.team.thread;
    const auto write = [&](const auto& spot) {
        run_lines(spot, stage.chain, lines, [&](const auto& registers) {
            write_lines(spot, targets, registers, stage.ends, ends);
        });
    };
#pragma unroll 1
    for (; pack < whole; pack += row.team.threads) write(Spot<true>{pack, Lanes});
#pragma unroll 1
    for (; pack < end; pack += row.team.threads) write(Spot<false>{pack, Row::lanes(row, pack)});
}

}  // namespace fklarray
#endif
