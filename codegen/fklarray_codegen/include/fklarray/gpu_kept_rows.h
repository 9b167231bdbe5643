// Rows that stay in a GPU's shared memory from a kernel's first stage to its last, so that global
// memory is read once, and what one stage leaves for another never gets there.
#pragma once

#include <fklarray/gpu_stages.h>

#if defined(__CUDACC__)
namespace fklarray {

// A stream whose rows are brought before the first stage.
template <int Rank>
struct KeptStream {
    Strided<char, Rank, Inner::unit> bytes;  // its strides too are counted in bytes
    std::int64_t length;
    int place;  // in the team's memory
};

template <int Rank, int Operations>
struct KeptRows {
    static constexpr int most_streams = 8;

    KeptStream<Rank> streams[most_streams];
    int count;
    int bytes;  // of a team's memory
    // Of what each operation moves, in 16 bytes and counted from 1; 0: it is not here.
    std::int16_t places[Operations];
};

// The parameters of what moves packs of neighbours.
template <typename Params>
constexpr bool is_unit_stream = false;
template <typename T, int Rank>
constexpr bool is_unit_stream<StreamParams<T, Rank, Inner::unit>> = true;

// Chooses what is kept: what several stages read; or one writes on the way, where the row may lie
// that nobody reads after that.
template <typename Kept>
class Keeping;

template <int Rank, int Operations>
class Keeping<KeptRows<Rank, Operations>> {
    struct Use {
        Strided<char, Rank, Inner::unit> bytes;
        int element;
        int stage;
        bool is_load;
    };

public:
    template <typename... Stages>
    FK_HOST_STATIC KeptRows<Rank, Operations> choose(std::int64_t length, int most_bytes,
                                                     const Stages&... stages) {
        Use uses[Operations] = {};
        const void* targets[(Stages::Ends::size + ...)];
        int operation = 0;
        int stage = 0;
        int target = 0;
        const auto note = [&](const auto& one) {
            visit(
                one.chain, [&](const auto& iop) { uses[operation++] = use_of(iop, stage); },
                lean::make_index_sequence<lean::decay_t<decltype(one.chain)>::size>());
            visit(
                one.ends, [&](const auto& end) { targets[target++] = end.params.stream.data; },
                lean::make_index_sequence<lean::decay_t<decltype(one.ends)>::size>());
            ++stage;
        };
        (note(stages), ...);
        KeptRows<Rank, Operations> kept = {};
        for (int i = 0; i < Operations; ++i) {
            if (kept.places[i] == 0 && is_worth(uses, i, targets, target)) {
                add(kept, uses, i, length, most_bytes);
            }
        }
        return kept;
    }

private:
    template <typename List, typename Body, std::size_t... Is>
    FK_HOST_STATIC void visit(const List& list, const Body& body, lean::index_sequence<Is...>) {
        (body(fk::get<Is>(list)), ...);
    }

    template <typename IOp>
    FK_HOST_STATIC Use use_of([[maybe_unused]] const IOp& iop, [[maybe_unused]] int stage) {
        Use use = {};
        if constexpr (is_unit_stream<typename ParamsOf<IOp>::type>) {
            const auto& stream = iop.params.stream;
            use = {{reinterpret_cast<char*>(stream.data), {}},
                   static_cast<int>(sizeof(*stream.data)),
                   stage,
                   is_load<IOp>};
            for (int i = 0; i < Rank - 1; ++i) {
                use.bytes.strides[i] = stream.strides[i] * use.element;
            }
        }
        return use;
    }

    FK_HOST_STATIC bool are_same(const Use& a, const Use& b) {
        bool same = a.bytes.data == b.bytes.data && a.element == b.element;
        for (int i = 0; i < Rank - 1; ++i) same = same && a.bytes.strides[i] == b.bytes.strides[i];
        return same;
    }

    FK_HOST_STATIC bool is_worth(const Use* uses, int first, const void* const* targets,
                                 int count) {
        const Use& use = uses[first];
        if (use.bytes.data == nullptr) return false;
        for (int i = 0; use.is_load && i < count; ++i) {
            if (targets[i] == use.bytes.data) return false;  // not there before the first stage
        }
        for (int i = first + 1; i < Operations; ++i) {
            if (uses[i].stage > use.stage && are_same(use, uses[i])) return true;
        }
        return false;
    }

    FK_HOST_STATIC void add(KeptRows<Rank, Operations>& kept, const Use* uses, int first,
                            std::int64_t length, int most_bytes) {
        const Use& use = uses[first];
        const std::int64_t bytes = length * use.element;
        const std::int64_t room = quotient_up(bytes, 16) * 16;
        int place = use.is_load ? 0 : place_of_read(kept, uses, use);
        if (place == 0) {
            if (kept.count == kept.most_streams || kept.bytes + room > most_bytes) return;
            place = kept.bytes / 16 + 1;
            if (use.is_load) kept.streams[kept.count++] = {use.bytes, bytes, kept.bytes};
            kept.bytes += static_cast<int>(room);
        }
        for (int i = first; i < Operations; ++i) {
            if (are_same(use, uses[i])) kept.places[i] = static_cast<std::int16_t>(place);
        }
    }

    // Of a row that no stage after this one reads, with elements of this size; or 0.
    FK_HOST_STATIC int place_of_read(const KeptRows<Rank, Operations>& kept, const Use* uses,
                                     const Use& write) {
        for (int i = 0; i < Operations; ++i) {
            if (kept.places[i] == 0 || uses[i].element != write.element) continue;
            bool is_over = true;
            for (int j = 0; j < Operations; ++j) {
                is_over =
                    is_over && (kept.places[j] != kept.places[i] || uses[j].stage <= write.stage);
            }
            if (is_over) return kept.places[i];
        }
        return 0;
    }
};

// From global to shared memory, not waiting for it.
template <int Bytes>
FK_DEVICE_STATIC void start_copy(char* to, const char* from) {
    const auto address = static_cast<uint>(__cvta_generic_to_shared(to));
    if constexpr (Bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from)
                     : "memory");
    }
}

template <int Bytes>
FK_DEVICE_STATIC std::int64_t start_copies(char* to, const char* from, std::int64_t length,
                                           const GpuTeam& team) {
    for (std::int64_t i = team.thread; i < length / Bytes; i += team.threads) {
        start_copy<Bytes>(to + i * Bytes, from + i * Bytes);
    }
    return length / Bytes * Bytes;
}

// A team's row of a stream, into its memory.
template <int Rank>
FK_DEVICE_STATIC void bring(const KeptStream<Rank>& kept, const Point& row,
                            const Space<Rank>& space, char* memory, const GpuTeam& team) {
    const char* const from = row_of(row, StreamParams<char, Rank, Inner::unit>{kept.bytes, space});
    char* const to = memory + kept.place;
    std::int64_t done = 0;
    if (is_aligned<16>(from)) {
        done = start_copies<16>(to, from, kept.length, team);
    } else if (is_aligned<4>(from)) {
        done = start_copies<4>(to, from, kept.length, team);
    }
    for (done += team.thread; done < kept.length; done += team.threads) to[done] = from[done];
}

FK_DEVICE_STATIC void finish_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace fklarray
#endif
