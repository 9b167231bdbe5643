// What the threads of a GPU move along lines of packs, those of a row or those that lie in one
// place of neighbouring rows: a thread knows for each stream where its line begins.
#pragma once

#include <fklarray/stages.h>
#include <fused_kernel/fused_kernel.h>

#if defined(__CUDACC__)
namespace fklarray {

enum class Along { row, column };

// Where the packs of a stream lie along a line.
template <Along along, int Lanes, typename T, int Rank, Inner inner>
struct Line {
    Stored<T>* first;
    std::int64_t stride;  // from lane to lane
    std::int64_t step;    // from pack to pack

    // In shared memory if `kept` says where.
    FK_DEVICE_STATIC Line of(const Point& thread, const StreamParams<T, Rank, inner>& params,
                             char* kept, bool) {
        const std::int64_t stride = inner_stride<inner>(params.stream);
        Stored<T>* const first = pack_of_thread<Lanes>(thread, params);
        if constexpr (along == Along::column) {
            return {first, stride, params.stream.strides[Rank - 2]};
        } else {
            return {kept == nullptr ? first : reinterpret_cast<Stored<T>*>(kept), stride,
                    Lanes * stride};
        }
    }
    FK_DEVICE_STATIC bool is_whole(const Line& line) {
        constexpr int bytes = sizeof(T) * Lanes;
        if constexpr (inner != Inner::unit) return true;
        return is_aligned<bytes>(line.first) &&
               (along == Along::row || line.step * static_cast<int>(sizeof(T)) % bytes == 0);
    }
    template <bool whole>
    FK_DEVICE_STATIC Pack<T, Lanes> read(const Line& line, std::int64_t pack, int lanes) {
        return load_lanes<inner, Lanes, T>(line.first + pack * line.step, line.stride,
                                           whole ? Lanes : lanes, whole);
    }
    template <bool whole>
    FK_DEVICE_STATIC void write(const Line& line, std::int64_t pack, int lanes,
                                const Pack<T, Lanes>& values) {
        store_lanes<Memory::any, inner, Lanes>(line.first + pack * line.step, line.stride,
                                               whole ? Lanes : lanes, whole, values);
    }
};

// A row has one value in all of its packs: it is read once.
template <int Lanes, typename T, int Rank>
struct RowValue {
    T value;

    FK_DEVICE_STATIC RowValue of(const Point& thread,
                                 const StreamParams<T, Rank, Inner::broadcast>& params, char*,
                                 bool is_there) {
        if (!is_there) return {};  // it may not have been written yet
        return {static_cast<T>(*row_of(thread, params))};
    }
    FK_DEVICE_STATIC bool is_whole(const RowValue&) { return true; }
    template <bool whole>
    FK_DEVICE_STATIC Pack<T, Lanes> read(const RowValue& row, std::int64_t, int) {
        return splat<T, Lanes>(row.value);
    }
};

struct NoLine {
    template <typename... Ignored>
    FK_DEVICE_STATIC NoLine of(const Ignored&...) {
        return {};
    }
    FK_DEVICE_STATIC bool is_whole(const NoLine&) { return true; }
};

// The line of an operation's parameters, or of a scan's.
template <Along along, int Lanes, bool reads, typename Params>
struct LineOf {
    using type = NoLine;
};
template <Along along, int Lanes, bool reads, typename T, int Rank, Inner inner>
struct LineOf<along, Lanes, reads, StreamParams<T, Rank, inner>> {
    using type = Line<along, Lanes, T, Rank, inner>;
};
template <int Lanes, typename T, int Rank>
struct LineOf<Along::row, Lanes, true, StreamParams<T, Rank, Inner::broadcast>> {
    using type = RowValue<Lanes, T, Rank>;
};

template <typename IOp, typename = void>
struct ParamsOf {
    using type = void;
};
template <typename IOp>
struct ParamsOf<IOp, lean::void_t<decltype(lean::declval<IOp&>().params)>> {
    using type = decltype(lean::declval<IOp&>().params);
};

template <typename IOp, typename = void>
constexpr bool is_load = false;
template <typename IOp>
constexpr bool is_load<IOp, lean::void_t<typename IOp::InstanceType>> =
    fk::opIs<fk::ReadType, IOp> || fk::opIs<fk::OpenType, IOp>;

template <Along along, int Lanes, typename IOp>
using LineFor = typename LineOf<along, Lanes, is_load<IOp>, typename ParamsOf<IOp>::type>::type;

// Where the streams of a list of operations lie, for one thread of a team. `kept(i)` is where
// operation i finds the row in shared memory, or null.
template <typename Place, typename... IOps, typename Kept, std::size_t... Is>
FK_DEVICE_STATIC auto lines_of(const Place& team, const fk::Tuple<IOps...>& iops, const Kept& kept,
                               lean::index_sequence<Is...>) {
    constexpr Along along = Place::along;
    constexpr int Lanes = Place::lanes_of_pack;
    const auto line = [&](const auto& iop, int number) {
        using Where = LineFor<along, Lanes, lean::decay_t<decltype(iop)>>;
        if constexpr (lean::is_same_v<Where, NoLine>) {
            return Where{};
        } else {
            return Where::of(team.point, iop.params, kept(number), team.is_there);
        }
    };
    return fk::Tuple<LineFor<along, Lanes, IOps>...>(line(fk::get<Is>(iops), Is)...);
}

struct NotKept {
    __device__ __forceinline__ char* operator()(int) const { return nullptr; }
};

template <typename... Wheres, std::size_t... Is>
FK_DEVICE_STATIC bool are_whole(const fk::Tuple<Wheres...>& lines, lean::index_sequence<Is...>) {
    return (Wheres::is_whole(fk::get<Is>(lines)) && ...);
}

// A chain at one pack of its lines.
template <bool whole>
struct Spot {
    std::int64_t pack;
    int lanes;
};

template <typename IOp, bool whole, typename Where>
FK_DEVICE_STATIC auto fetch_one(const Spot<whole>& spot, const Where& line) {
    if constexpr (is_load<IOp> && !lean::is_same_v<Where, NoLine>) {
        return Where::template read<whole>(line, spot.pack, spot.lanes);
    } else {
        return NoLine{};
    }
}

template <bool whole, typename... IOps, typename Lines, std::size_t... Is>
FK_DEVICE_STATIC auto fetch(const Spot<whole>& spot, const fk::Tuple<IOps...>&, const Lines& lines,
                            lean::index_sequence<Is...>) {
    return fk::Tuple<decltype(fetch_one<IOps>(spot, fk::get<Is>(lines)))...>(
        fetch_one<IOps>(spot, fk::get<Is>(lines))...);
}

// What a chain reads at a spot, by operation: apart from what it computes, so that several spots'
// can be asked for first.
template <bool whole, typename Chain, typename Lines>
FK_DEVICE_STATIC auto fetch(const Spot<whole>& spot, const Chain& chain, const Lines& lines) {
    return fetch(spot, chain, lines, lean::make_index_sequence<Chain::size>());
}

template <std::size_t I, bool whole, typename Chain, typename Lines, typename Fetched,
          typename Value, typename Body>
FK_DEVICE_STATIC auto follow_lines(const Spot<whole>& spot, const Chain& chain, const Lines& lines,
                                   const Fetched& fetched, const Value& value, const Body& body) {
    if constexpr (I == Chain::size) {
        return body(value);
    } else {
        const auto& iop = fk::get<I>(chain);
        const auto& line = fk::get<I>(lines);
        using IOp = lean::decay_t<decltype(iop)>;
        using Operation = typename IOp::Operation;
        using Where = lean::decay_t<decltype(line)>;
        const auto go_on = [&](const auto& next) {
            return follow_lines<I + 1>(spot, chain, lines, fetched, next, body);
        };
        if constexpr (fk::opIs<fk::MidWriteType, IOp>) {
            Where::template write<whole>(line, spot.pack, spot.lanes,
                                         value.template get<Operation::slot>());
            return go_on(value);
        } else if constexpr (fk::opIs<fk::OpenType, IOp>) {
            return go_on(place<Operation::slot>(value, fk::get<I>(fetched)));
        } else if constexpr (fk::opIs<fk::UnaryType, IOp>) {
            return go_on(Operation::exec(value));
        } else {
            return go_on(Operation::exec(value, iop));
        }
    }
}

// Calls the body with the registers at the end of a chain.
template <bool whole, typename Chain, typename Lines, typename Fetched, typename Body>
FK_DEVICE_STATIC auto run_lines(const Spot<whole>& spot, const Chain& chain, const Lines& lines,
                                const Fetched& fetched, const Body& body) {
    const auto& read = fk::get<0>(chain);
    using Operation = typename lean::decay_t<decltype(read)>::Operation;
    const auto& first = fk::get<0>(fetched);
    if constexpr (lean::is_same_v<lean::decay_t<decltype(first)>, NoLine>) {
        return follow_lines<1>(spot, chain, lines, fetched, Operation::exec(Point{}, read), body);
    } else {
        using File = typename Operation::OutputType;
        return follow_lines<1>(spot, chain, lines, fetched, File(lean::in_place, first), body);
    }
}
template <bool whole, typename Chain, typename Lines, typename Body>
FK_DEVICE_STATIC auto run_lines(const Spot<whole>& spot, const Chain& chain, const Lines& lines,
                                const Body& body) {
    return run_lines(spot, chain, lines, fetch(spot, chain, lines), body);
}

template <bool whole, typename Lines, typename File, typename... Ends, std::size_t... Is>
FK_DEVICE_STATIC void write_lines(const Spot<whole>& spot, const Lines& lines,
                                  const File& registers, const fk::Tuple<Ends...>&,
                                  lean::index_sequence<Is...>) {
    (lean::decay_t<decltype(fk::get<Is>(lines))>::template write<whole>(
         fk::get<Is>(lines), spot.pack, spot.lanes,
         registers.template get<Ends::Operation::slot>()),
     ...);
}

template <typename Chain>
constexpr int chain_loads = 0;
template <typename... IOps>
constexpr int chain_loads<fk::Tuple<IOps...>> = (int{is_load<IOps>} + ...);

// At how many spots a thread fetches at a time: as many as it has registers for.
template <typename Chain>
constexpr int spots_at_once = chain_loads<Chain> <= 1   ? 16
                              : chain_loads<Chain> <= 2 ? 8
                              : chain_loads<Chain> <= 4 ? 2
                                                        : 1;

// Calls the body with the numbers of so many spots and what is fetched there.
template <int count, typename Chain, typename Lines, typename SpotOf, typename Body>
FK_DEVICE_STATIC void run_spots(const Chain& chain, const Lines& lines, const SpotOf& spot,
                                const Body& body) {
    constexpr int at_once = spots_at_once<Chain> < count ? spots_at_once<Chain> : count;
    static_assert(count % at_once == 0, "Batches are whole");
#pragma unroll 1
    for (int first = 0; first < count; first += at_once) {
        decltype(fetch(spot(0), chain, lines)) batch[at_once];
#pragma unroll
        for (int i = 0; i < at_once; ++i) batch[i] = fetch(spot(first + i), chain, lines);
#pragma unroll
        for (int i = 0; i < at_once; ++i) body(first + i, batch[i]);
    }
}

}  // namespace fklarray
#endif
