// How a thread of a GPU loads and stores its pack: at once where all lanes are in the row and lie
// at a multiple of their size, else lane by lane. No thread touches another one's elements.
#pragma once

#include <fklarray/streams.h>

#if defined(__CUDACC__)
namespace fklarray {

// What one access moves.
template <int Bytes>
struct Access;
template <>
struct Access<1> {
    using type = unsigned char;
};
template <>
struct Access<2> {
    using type = unsigned short;
};
template <>
struct Access<4> {
    using type = unsigned int;
};
template <>
struct Access<8> {
    using type = uint2;
};
template <>
struct Access<16> {
    using type = uint4;
};

template <int Bytes>
FK_DEVICE_STATIC bool is_aligned(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % Bytes == 0;
}

template <typename T, int Lanes>
FK_DEVICE_STATIC Pack<T, Lanes> load_aligned(const Stored<T>* from) {
    using Wide = typename Access<sizeof(T) * Lanes>::type;
    const Wide wide = *reinterpret_cast<const Wide*>(from);
    Pack<Stored<T>, Lanes> stored;
    memcpy(&stored, &wide, sizeof(wide));
    if constexpr (lean::is_same_v<T, Stored<T>>) {
        return stored;
    } else {
        Pack<T, Lanes> pack;
        for (int lane = 0; lane < Lanes; ++lane) pack.set(lane, static_cast<T>(stored.get(lane)));
        return pack;
    }
}

// What a thread stores to: the device's memory, or that or what its block shares.
enum class Memory { global, any };

// One access. Left to itself, the compiler takes it apart where branches have made its words.
template <Memory memory, typename Wide>
FK_DEVICE_STATIC void store_wide(Wide* to, const Wide& wide) {
#if defined(__CUDA_ARCH__)
    constexpr bool is_global = memory == Memory::global;
    if constexpr (sizeof(Wide) == 16 && is_global) {
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                     "r"(wide.x), "r"(wide.y), "r"(wide.z), "r"(wide.w)
                     : "memory");
        return;
    } else if constexpr (sizeof(Wide) == 16) {
        asm volatile("st.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(wide.x), "r"(wide.y),
                     "r"(wide.z), "r"(wide.w)
                     : "memory");
        return;
    } else if constexpr (sizeof(Wide) == 8 && is_global) {
        asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)),
                     "r"(wide.x), "r"(wide.y)
                     : "memory");
        return;
    } else if constexpr (sizeof(Wide) == 8) {
        asm volatile("st.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(wide.x), "r"(wide.y) : "memory");
        return;
    }
#endif
    *to = wide;
}

// Places, which take more room than what they are of, are stored by several accesses.
template <Memory memory, typename T, int Lanes>
FK_DEVICE_STATIC void store_aligned(Stored<T>* to, const Pack<T, Lanes>& pack) {
    constexpr int bytes = sizeof(T) * Lanes;
    constexpr int step = bytes < vector_bytes ? bytes : vector_bytes;
    using Wide = typename Access<step>::type;
    Wide wide[bytes / step];
    memcpy(wide, &pack, bytes);
    for (int i = 0; i < bytes / step; ++i) {
        store_wide<memory>(reinterpret_cast<Wide*>(to) + i, wide[i]);
    }
}

// Whether the packs of a stream all begin at multiples of their size.
template <typename T, int Rank>
FK_HOST_STATIC bool movesWhole(const StreamParams<T, Rank, Inner::unit>& params, int lanes) {
    const auto size = static_cast<std::int64_t>(sizeof(T)) * lanes;
    bool whole = reinterpret_cast<std::intptr_t>(params.stream.data) % size == 0;
    for (int i = 0; i < Rank - 1; ++i) {
        whole = whole && (params.space.shape[i] == 1 || params.stream.strides[i] % lanes == 0);
    }
    return whole;
}

template <typename T, int Rank, Inner inner>
FK_DEVICE_STATIC void makeWhole(StreamParams<T, Rank, inner>& params) {
    params.is_whole = true;
}

// Lanes of the thread's pack that are in the row.
template <int Lanes, int Rank>
FK_HOST_DEVICE_FUSE int lanes_in_row(const fk::Point& thread, const Space<Rank>& space) {
    const std::int64_t rest = row_length(thread, space) - std::int64_t{thread.x} * Lanes;
    return rest < Lanes ? static_cast<int>(rest) : Lanes;
}

// The first `lanes` lanes of a pack, from where they lie on. The missing ones repeat the last
// element; what is computed in them is dropped.
template <Inner inner, int Lanes, typename T>
FK_HOST_DEVICE_STATIC Pack<T, Lanes> load_lanes(const Stored<T>* from, std::int64_t stride,
                                                int lanes, bool aligned) {
    if constexpr (inner == Inner::broadcast) {
        return splat<T, Lanes>(static_cast<T>(*from));
    } else {
        if constexpr (inner == Inner::unit) {
            if (lanes == Lanes && aligned) return load_aligned<T, Lanes>(from);
        }
        const auto element = [&](int lane) {
            return from[(lane < lanes ? lane : lanes - 1) * stride];
        };
        Pack<T, Lanes> pack;
        if constexpr (is_sixteen_bits<T> && Lanes % 2 == 0) {
            // In pairs, as which they are worked on.
            for (int lane = 0; lane < Lanes; lane += 2) {
                const std::uint32_t pair =
                    element(lane).bits | std::uint32_t{element(lane + 1).bits} << 16;
                memcpy(&pack.vector[lane], &pair, sizeof pair);
            }
        } else {
            for (int lane = 0; lane < Lanes; ++lane) pack.set(lane, static_cast<T>(element(lane)));
        }
        return pack;
    }
}

template <Memory memory, Inner inner, int Lanes, typename T>
FK_HOST_DEVICE_STATIC void store_lanes(Stored<T>* to, std::int64_t stride, int lanes, bool aligned,
                                       const Pack<T, Lanes>& pack) {
    if constexpr (inner == Inner::broadcast) {
        *to = pack.get(0);  // what belongs to the row as a whole
    } else {
        if constexpr (inner == Inner::unit) {
            if (lanes == Lanes && aligned) {
                store_aligned<memory>(to, pack);
                return;
            }
        }
        for (int lane = 0; lane < Lanes; ++lane) {
            if (lane < lanes) to[lane * stride] = pack.get(lane);
        }
    }
}

template <int Lanes, typename T, int Rank, Inner inner>
FK_HOST_DEVICE_STATIC Stored<T>* pack_of_thread(const fk::Point& thread,
                                                const StreamParams<T, Rank, inner>& params) {
    return row_of(thread, params) +
           std::int64_t{thread.x} * Lanes * inner_stride<inner>(params.stream);
}

template <int Lanes, typename Params>
FK_HOST_DEVICE_STATIC int lanes_of_thread(const fk::Point& thread, const Params& params) {
    return params.is_whole ? Lanes : lanes_in_row<Lanes>(thread, params.space);
}

template <int Lanes, typename T, int Rank, Inner inner>
FK_HOST_DEVICE_STATIC Pack<T, Lanes> load(const fk::Point& thread,
                                          const StreamParams<T, Rank, inner>& params) {
    const Stored<T>* const from = pack_of_thread<Lanes>(thread, params);
    return load_lanes<inner, Lanes, T>(from, inner_stride<inner>(params.stream),
                                       lanes_of_thread<Lanes>(thread, params),
                                       params.is_whole || is_aligned<sizeof(T) * Lanes>(from));
}

template <int Lanes, typename T, int Rank, Inner inner>
FK_HOST_DEVICE_STATIC void store(const fk::Point& thread, const Pack<T, Lanes>& pack,
                                 const StreamParams<T, Rank, inner>& params) {
    Stored<T>* const to = pack_of_thread<Lanes>(thread, params);
    store_lanes<Memory::global, inner, Lanes>(
        to, inner_stride<inner>(params.stream), lanes_of_thread<Lanes>(thread, params),
        params.is_whole || is_aligned<sizeof(T) * Lanes>(to), pack);
}

// No pack stores what another one has stored.
template <int Lanes, typename T, int Rank, Inner inner>
FK_HOST_DEVICE_STATIC void store_new(const fk::Point& thread, const Pack<T, Lanes>& pack,
                                     const StreamParams<T, Rank, inner>& params) {
    store(thread, pack, params);
}

}  // namespace fklarray
#endif
