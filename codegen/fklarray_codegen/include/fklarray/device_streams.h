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
    Pack<T, Lanes> pack;
    for (int lane = 0; lane < Lanes; ++lane) pack.set(lane, static_cast<T>(stored.get(lane)));
    return pack;
}

template <typename T, int Lanes>
FK_DEVICE_STATIC void store_aligned(Stored<T>* to, const Pack<T, Lanes>& pack) {
    using Wide = typename Access<sizeof(T) * Lanes>::type;
    Wide wide;
    memcpy(&wide, &pack, sizeof(wide));
    *reinterpret_cast<Wide*>(to) = wide;
}

// Lanes of the thread's pack that are in the row.
template <int Lanes, int Rank>
FK_HOST_DEVICE_FUSE int lanes_in_row(const fk::Point& thread, const Space<Rank>& space) {
    const std::int64_t rest = row_length(thread, space) - std::int64_t{thread.x} * Lanes;
    return rest < Lanes ? static_cast<int>(rest) : Lanes;
}

template <int Lanes, typename T, int Rank, Inner inner>
FK_HOST_DEVICE_STATIC Pack<T, Lanes> load(const fk::Point& thread,
                                          const StreamParams<T, Rank, inner>& params) {
    const Stored<T>* const row = row_of(thread, params);
    if constexpr (inner == Inner::broadcast) {
        return splat<T, Lanes>(static_cast<T>(*row));
    } else {
        const std::int64_t stride = inner_stride<inner>(params.stream);
        const Stored<T>* const from = row + std::int64_t{thread.x} * Lanes * stride;
        const int lanes = lanes_in_row<Lanes>(thread, params.space);
        if constexpr (inner == Inner::unit) {
            if (lanes == Lanes && is_aligned<sizeof(T) * Lanes>(from)) {
                return load_aligned<T, Lanes>(from);
            }
        }
        // The missing lanes repeat the last element; what is computed in them is dropped.
        Pack<T, Lanes> pack;
        for (int lane = 0; lane < Lanes; ++lane) {
            pack.set(lane, static_cast<T>(from[(lane < lanes ? lane : lanes - 1) * stride]));
        }
        return pack;
    }
}

template <int Lanes, typename T, int Rank, Inner inner>
FK_HOST_DEVICE_STATIC void store(const fk::Point& thread, const Pack<T, Lanes>& pack,
                                 const StreamParams<T, Rank, inner>& params) {
    Stored<T>* const row = row_of(thread, params);
    if constexpr (inner == Inner::broadcast) {
        *row = pack.get(0);  // what belongs to the row as a whole
    } else {
        const std::int64_t stride = inner_stride<inner>(params.stream);
        Stored<T>* const to = row + std::int64_t{thread.x} * Lanes * stride;
        const int lanes = lanes_in_row<Lanes>(thread, params.space);
        if constexpr (inner == Inner::unit) {
            if (lanes == Lanes && is_aligned<sizeof(T) * Lanes>(to)) {
                store_aligned<T, Lanes>(to, pack);
                return;
            }
        }
        for (int lane = 0; lane < Lanes; ++lane) {
            if (lane < lanes) to[lane * stride] = pack.get(lane);
        }
    }
}

// No pack stores what another one has stored.
template <int Lanes, typename T, int Rank, Inner inner>
FK_HOST_DEVICE_STATIC void store_new(const fk::Point& thread, const Pack<T, Lanes>& pack,
                                     const StreamParams<T, Rank, inner>& params) {
    store(thread, pack, params);
}

}  // namespace fklarray
#endif
