// Stages of a kernel over the rows of an index space: each is a chain of Operations that is run for
// every element, or once for each row. A stage that folds leaves one value per row in memory, where
// the stages after it read it like any other stream; so a row stays in the cache from its first
// stage to its last.
#pragma once

#include <fklarray/operations.h>
#include <fklarray/reductions.h>

// Bytes of a core's second-level cache.
#if !defined(FKLARRAY_CACHE_BYTES)
#define FKLARRAY_CACHE_BYTES (512 << 10)
#endif

namespace fklarray {

enum class Work { fold, scan, row, elements };

// Ends the chain of a stage: the values that register Slot has along a row are reduced, and the
// result is stored where the row's value belongs.
template <typename Reduction_, int Slot, typename T, int Rank, Inner inner>
struct Fold {
    using Reduction = Reduction_;
    using Value = T;
    static constexpr int slot = Slot;
    template <int Lanes>
    using State = typename Reduction::template State<T, Lanes>;
    template <int Lanes>
    using Folded = typename Reduction::template Folded<T, Lanes>;

    StreamParams<typename Reduction::template Result<T>, Rank, inner> params;
};

// Ends the chain of a stage: the values that register Slot has along a row become what they are
// reduced to up to each of them, one after the other.
template <typename Reduction_, int Slot, typename T, int Rank, Inner inner>
struct Scan {
    using Reduction = Reduction_;
    using Value = T;
    static constexpr int slot = Slot;

    StreamParams<T, Rank, inner> params;
};

template <typename... Items>
FK_HOST_STATIC fk::Tuple<Items...> list(const Items&... items) {
    return fk::Tuple<Items...>(items...);
}

// `chain` begins with a Read; `ends` are its folds or writes.
template <Work work_, typename Chain_, typename Ends_>
struct Stage {
    static constexpr Work work = work_;
    using Chain = Chain_;
    using Ends = Ends_;
    Chain chain;
    Ends ends;
};

template <Work work, typename Chain, typename Ends>
FK_HOST_STATIC Stage<work, Chain, Ends> stage(const Chain& chain, const Ends& ends) {
    return {chain, ends};
}

// Lambdas into which a chain is inlined.
#define FKLARRAY_INLINED __attribute__((always_inline))

template <std::size_t I, typename Chain, typename Value, typename Body>
FK_HOST_DEVICE_STATIC auto follow(const Point& thread, const Value& value, const Chain& chain,
                                  const Body& body) {
    if constexpr (I == Chain::size) {
        return body(value);
    } else {
        const auto& iop = fk::get<I>(chain);
        using IOp = lean::decay_t<decltype(iop)>;
        using Operation = typename IOp::Operation;
        if constexpr (fk::opIs<fk::MidWriteType, IOp>) {
            Operation::exec(thread, value, iop);
            return follow<I + 1>(thread, value, chain, body);
        } else if constexpr (fk::opIs<fk::OpenType, IOp>) {
            return follow<I + 1>(thread, Operation::exec(thread, value, iop), chain, body);
        } else if constexpr (fk::opIs<fk::UnaryType, IOp>) {
            return follow<I + 1>(thread, Operation::exec(value), chain, body);
        } else {
            return follow<I + 1>(thread, Operation::exec(value, iop), chain, body);
        }
    }
}

// Calls the body with the registers at the end of a chain.
template <typename Chain, typename Body>
FK_HOST_DEVICE_STATIC auto run_chain(const Point& thread, const Chain& chain, const Body& body) {
    const auto& read = fk::get<0>(chain);
    return follow<1>(thread, lean::decay_t<decltype(read)>::Operation::exec(thread, read), chain,
                     body);
}

template <typename IOp>
FK_HOST_DEVICE_STATIC void unbind_iop(IOp& iop) {
    if constexpr (!fk::opIs<fk::UnaryType, IOp>) unbind(iop.params);
}

template <typename IOp>
FK_HOST_STATIC void move_back_iop(IOp& iop, std::int64_t elements) {
    if constexpr (!fk::opIs<fk::UnaryType, IOp>) move_back(iop.params, elements);
}

template <typename... IOps, std::size_t... Is>
FK_HOST_DEVICE_STATIC fk::Tuple<IOps...> unbounded(fk::Tuple<IOps...> chain,
                                                   lean::index_sequence<Is...>) {
    (unbind_iop(fk::get<Is>(chain)), ...);
    return chain;
}

template <typename StageType>
FK_HOST_DEVICE_STATIC StageType unbounded(const StageType& stage) {
    return {unbounded(stage.chain, lean::make_index_sequence<StageType::Chain::size>()),
            stage.ends};
}

template <typename... IOps, std::size_t... Is>
FK_HOST_STATIC fk::Tuple<IOps...> moved_back(fk::Tuple<IOps...> chain, std::int64_t elements,
                                             lean::index_sequence<Is...>) {
    (move_back_iop(fk::get<Is>(chain), elements), ...);
    return chain;
}

// The same of packs that start so many elements earlier in their row.
template <typename StageType>
FK_HOST_STATIC StageType moved_back(const StageType& stage, std::int64_t elements) {
    return {moved_back(stage.chain, elements, lean::make_index_sequence<StageType::Chain::size>()),
            stage.ends};
}

template <typename Ends, typename File, std::size_t... Is>
FK_HOST_DEVICE_STATIC void write_ends(const Point& thread, const File& registers, const Ends& ends,
                                      lean::index_sequence<Is...>) {
    (lean::decay_t<decltype(fk::get<Is>(ends))>::Operation::exec(thread, registers,
                                                                 fk::get<Is>(ends)),
     ...);
}

template <typename StageType>
FK_HOST_DEVICE_STATIC void run_writes(const Point& thread, const StageType& stage) {
    run_chain(thread, stage.chain, [&](const auto& registers) FKLARRAY_INLINED {
        write_ends(thread, registers, stage.ends,
                   lean::make_index_sequence<StageType::Ends::size>());
    });
}

template <typename... Folds, typename Tuple, std::size_t... Is>
FK_HOST_DEVICE_STATIC Tuple combine_all(const fk::Tuple<Folds...>*, const Tuple& a, const Tuple& b,
                                        lean::index_sequence<Is...>) {
    return Tuple(Folds::Reduction::combine(fk::get<Is>(a), fk::get<Is>(b))...);
}

// States of all folds of a stage whose lanes have become elements of a row, or rows.
template <int Lanes, typename Ends>
struct FoldedStates;

template <int Lanes, typename... Folds>
struct FoldedStates<Lanes, fk::Tuple<Folds...>> {
    using Ends = fk::Tuple<Folds...>;
    using type = fk::Tuple<typename Folds::template Folded<Lanes>...>;
    using One = FoldedStates<1, Ends>;

    FK_HOST_DEVICE_STATIC type combine(const type& a, const type& b) {
        return combine_all(static_cast<const Ends*>(nullptr), a, b, Indices());
    }

    FK_HOST_DEVICE_STATIC typename One::type fold_lanes(const type& states) {
        if constexpr (Lanes == 1) {
            return states;
        } else {
            using Half = FoldedStates<Lanes / 2, Ends>;
            return Half::fold_lanes(
                Half::combine(half(states, 0, Indices()), half(states, 1, Indices())));
        }
    }

    FK_HOST_DEVICE_STATIC void store_all(const Point& thread, const type& states,
                                         const Ends& ends) {
        store_all(thread, states, ends, Indices());
    }

private:
    using Indices = lean::index_sequence_for<Folds...>;
    template <std::size_t... Is>
    FK_HOST_DEVICE_STATIC auto half(const type& states, int which, lean::index_sequence<Is...>) {
        return typename FoldedStates<Lanes / 2, Ends>::type(
            Folds::Reduction::half(fk::get<Is>(states), which)...);
    }
    template <std::size_t... Is>
    FK_HOST_DEVICE_STATIC void store_all(const Point& thread, const type& states, const Ends& ends,
                                         lean::index_sequence<Is...>) {
        (store(thread, Folds::Reduction::result(fk::get<Is>(states)), fk::get<Is>(ends).params),
         ...);
    }
};

// The states of all folds of a stage while they run.
template <int Lanes, typename Ends>
struct States;

template <int Lanes, typename... Folds>
struct States<Lanes, fk::Tuple<Folds...>> {
    using Ends = fk::Tuple<Folds...>;
    using type = fk::Tuple<typename Folds::template State<Lanes>...>;
    using Folded = FoldedStates<Lanes, Ends>;
    using One = typename Folded::One;
    static constexpr bool any_order =
        (Folds::Reduction::template any_order<typename Folds::Value> && ...);

    template <typename File>
    FK_HOST_DEVICE_STATIC type start(const File& registers, std::int64_t number) {
        return type(Folds::Reduction::start(registers.template get<Folds::slot>(), number)...);
    }

    // For the end of a row: only the first lanes count, once the pack is moved forward.
    template <typename File>
    FK_HOST_DEVICE_STATIC type start_last(const File& registers, std::int64_t number, int shift,
                                          int valid) {
        return type(Folds::Reduction::start(
            ending<Folds>(registers.template get<Folds::slot>(), shift, valid), number)...);
    }

    FK_HOST_DEVICE_STATIC type neutral() {
        return type(Folds::Reduction::start(
            splat<typename Folds::Value, Lanes>(neutral_of<Folds>()), 0)...);
    }

    // Takes in what comes later in the row.
    FK_HOST_DEVICE_STATIC type append(const type& a, const type& b) {
        return append(a, b, Indices());
    }

    FK_HOST_DEVICE_STATIC type combine(const type& a, const type& b) {
        return combine_all(static_cast<const Ends*>(nullptr), a, b, Indices());
    }

    // The partial values of a chunk, `stride` apart.
    template <int Count = partial_values>
    FK_HOST_DEVICE_STATIC type fold_partials(const type* partial, std::int64_t stride) {
        if constexpr (Count == 1) {
            return *partial;
        } else {
            // The even ones and the odd ones, each in halves: 0 with 8, 4 with 12, and so on.
            return combine(fold_partials<Count / 2>(partial, 2 * stride),
                           fold_partials<Count / 2>(partial + stride, 2 * stride));
        }
    }

    FK_HOST_DEVICE_STATIC typename One::type fold_lanes(const type& states) {
        return Folded::fold_lanes(folding<1>(states, Indices()));
    }

    // Where each lane is a row of its own.
    FK_HOST_DEVICE_STATIC void store_all(const Point& thread, const type& states,
                                         const Ends& ends) {
        Folded::store_all(thread, folding<0>(states, Indices()), ends);
    }

private:
    using Indices = lean::index_sequence_for<Folds...>;
    template <typename Fold>
    FK_HOST_DEVICE_STATIC typename Fold::Value neutral_of() {
        return Fold::Reduction::template neutral<typename Fold::Value>();
    }
    template <typename Fold, typename Values>
    FK_HOST_DEVICE_STATIC Values ending(const Values& values, int shift, int valid) {
        if (valid == Lanes) return values;
        return moved_forward(values, shift, valid, neutral_of<Fold>());
    }
    template <std::size_t... Is>
    FK_HOST_DEVICE_STATIC type append(const type& a, const type& b, lean::index_sequence<Is...>) {
        return type(Folds::Reduction::append(fk::get<Is>(a), fk::get<Is>(b))...);
    }
    template <int Step, std::size_t... Is>
    FK_HOST_DEVICE_STATIC typename Folded::type folding(const type& states,
                                                        lean::index_sequence<Is...>) {
        return
            typename Folded::type(Folds::Reduction::template folding<Step>(fk::get<Is>(states))...);
    }
};

// Whether a row lies in the second-level cache rather than in the first, and its packs across lines
// of it: of such a row a processor reads too little ahead by itself.
template <typename Params>
FK_HOST_STATIC bool is_straddling(const Point&, const Params&, std::int64_t) {
    return false;
}
template <typename T, int Rank>
FK_HOST_STATIC bool is_straddling(const Point& row,
                                  const StreamParams<T, Rank, Inner::unit>& params,
                                  std::int64_t length) {
    const auto place = reinterpret_cast<std::uintptr_t>(row_of(row, params));
    const std::int64_t bytes = length * static_cast<int>(sizeof(T));
    return place % 64 != 0 && bytes > (48 << 10) && bytes <= FKLARRAY_CACHE_BYTES;
}

// Asks for what lies behind a pack, if `number` of its packs begins a line of the cache.
template <int Lanes, int number, typename Params>
FK_HOST_STATIC void read_ahead(const Point&, const Params&) {}
template <int Lanes, int number, typename T, int Rank>
FK_HOST_STATIC void read_ahead(const Point& thread,
                               const StreamParams<T, Rank, Inner::unit>& params) {
    constexpr int bytes = static_cast<int>(sizeof(T)) * Lanes;
    if constexpr (number * bytes % 64 == 0) {
        __builtin_prefetch(row_of(thread, params) + std::int64_t{thread.x} * Lanes +
                           512 / sizeof(T));
    }
}

// The place of a pack or a row. Compilers are told that nothing gets lost, so that the steps of a
// loop are steps in memory too.
FK_HOST_FUSE int as_int(std::int64_t place) {
    if (place < 0 || place > 0x7fffffff) __builtin_unreachable();
    return static_cast<int>(place);
}

FK_HOST_DEVICE_FUSE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// Calls the body with the points of rows [begin, end).
template <int Rank, typename Body>
FK_HOST_STATIC void for_rows(std::int64_t begin, std::int64_t end, const Space<Rank>& space,
                             const Body& body) {
    const auto rows = static_cast<int>(rows_of(space));
    Point point{0, static_cast<int>(begin % rows), static_cast<int>(begin / rows)};
    for (std::int64_t row = begin; row < end; ++row) {
        body(point);
        if (++point.y == rows) {
            point.y = 0;
            ++point.z;
        }
    }
}

// What the Operations of a stage take for one pack, in simple instructions.
template <typename Operation, typename = void>
constexpr std::int64_t operation_weight = 1;
template <typename Operation>
constexpr std::int64_t operation_weight<Operation, lean::enable_if_t<Operation::is_long>> = 8;

template <typename Chain>
constexpr std::int64_t chain_weight = 0;
template <typename... IOps>
constexpr std::int64_t chain_weight<fk::Tuple<IOps...>> =
    (operation_weight<typename IOps::Operation> + ...);
template <typename StageType>
constexpr std::int64_t stage_weight = chain_weight<typename StageType::Chain>;

// Work below which one thread is faster: where it sleeps, waking it takes ten microseconds.
template <typename Stream>
FK_HOST_STATIC std::int64_t threads_for(const Stream& stream, std::int64_t work) {
    return work < (1 << 15) ? 1 : stream.threads();
}

// Combines a sequence of values with their neighbours, the pairs with theirs, and so on.
template <typename S>
class Pairing {
public:
    // A value that stands for 2**level of the sequence.
    void push(typename S::type value, int level) {
        const std::uint64_t weight = std::uint64_t{1} << level;
        for (; (count_ >> level & 1) != 0; ++level) value = S::combine(levels()[level], value);
        levels()[level] = value;
        count_ += weight;
    }

    typename S::type total() const {
        int level = __builtin_ctzll(count_);
        typename S::type value = levels()[level];
        for (++level; (count_ >> level) != 0; ++level) {
            if ((count_ >> level & 1) != 0) value = S::combine(levels()[level], value);
        }
        return value;
    }

private:
    typename S::type* levels() { return reinterpret_cast<typename S::type*>(levels_); }
    const typename S::type* levels() const {
        return reinterpret_cast<const typename S::type*>(levels_);
    }

    // No constructor runs over memory that is written before it is read.
    alignas(typename S::type) char levels_[56 * sizeof(typename S::type)];
    std::uint64_t count_ = 0;
};

}  // namespace fklarray
