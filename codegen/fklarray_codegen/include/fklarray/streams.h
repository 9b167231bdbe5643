// Arrays with strides, and how the elements of one thread are loaded and stored. An index space has
// at least two dimensions: rows, and elements in a row. One thread works on one pack of a row:
// thread.x is the pack, thread.y the row, thread.z counts the dimensions before them. The last row
// of each block of rows may be shorter, which lets any long run of elements be cut into rows of one
// length.
#pragma once

#include <fklarray/pack.h>
#include <fused_kernel/core/data/point.h>
#include <fused_kernel/core/execution_model/active_threads.h>

#define FKLARRAY_COLD __attribute__((noinline, cold)) static

namespace fklarray {

template <int Rank>
struct Space {
    static_assert(Rank >= 2, "An index space has rows and elements");
    std::int64_t shape[Rank];
    std::int64_t last;  // number of elements in the last row
};

// How a stream moves from one element of a row to the next. `across` and `interleaved` are strided
// too, but a row's neighbours lie side by side: those of many rows, or of few which lie between
// each other (the channels of pixels). `tile` is what a block of threads has of such a stream.
enum class Inner { unit, broadcast, strided, across, interleaved, tile };

FK_HOST_DEVICE_FUSE bool has_stride(Inner inner) {
    return inner != Inner::unit && inner != Inner::broadcast;
}

// What a pack takes of the memory's bandwidth; what all rows or elements share, it takes once.
template <typename T, int Lanes>
FK_HOST_DEVICE_FUSE int bytes_of(Inner inner) {
    return inner == Inner::broadcast ? 0 : static_cast<int>(sizeof(T)) * Lanes;
}

// Strides are counted in elements; the inner one is given only where the type does not say it.
template <typename T, int Rank, Inner inner>
struct Strided {
    T* data;
    std::int64_t strides[has_stride(inner) ? Rank : Rank - 1];
};

template <typename T, int Rank, Inner inner>
struct StreamParams {
    Strided<T, Rank, inner> stream;
    Space<Rank> space;
#if defined(__CUDACC__)
    bool is_whole = false;  // known of all packs that are asked for, and that they are aligned
#endif
};

// Tells the compiler that no pack which is asked for reaches beyond the end of its row.
template <typename Params, typename = void>
constexpr bool has_space = false;
template <typename Params>
constexpr bool has_space<Params, lean::void_t<decltype(Params::space)>> = true;

template <typename Params>
FK_HOST_DEVICE_FUSE void unbind(Params& params) {
    if constexpr (has_space<Params>) {
        constexpr int rank = sizeof(params.space.shape) / sizeof(std::int64_t);
        params.space.shape[rank - 1] = std::int64_t{1} << 62;
        params.space.last = std::int64_t{1} << 62;
    }
}

template <Inner inner, typename T, int Rank>
FK_HOST_DEVICE_STATIC std::int64_t inner_stride(const Strided<T, Rank, inner>& stream) {
    if constexpr (has_stride(inner)) {
        return stream.strides[Rank - 1];
    } else {
        return inner == Inner::unit ? 1 : 0;
    }
}

// Makes every pack start so many elements earlier in its row.
template <typename Params>
FK_HOST_DEVICE_FUSE void move_back(Params&, std::int64_t) {}
template <typename T, int Rank, Inner inner>
FK_HOST_DEVICE_FUSE void move_back(StreamParams<T, Rank, inner>& params, std::int64_t elements) {
    params.stream.data -= elements * inner_stride<inner>(params.stream);
}

template <int Rank>
FK_HOST_DEVICE_FUSE std::int64_t row_length(const fk::Point& thread, const Space<Rank>& space) {
    return thread.y == space.shape[Rank - 2] - 1 ? space.last : space.shape[Rank - 1];
}

// Memory from elsewhere may hold bools that are neither 0 nor 1: they are read as bytes.
template <typename T>
using Stored = lean::conditional_t<lean::is_same_v<T, bool>, unsigned char, T>;

template <typename T, int Rank, Inner inner>
FK_HOST_DEVICE_STATIC Stored<T>* row_of(const fk::Point& thread,
                                        const StreamParams<T, Rank, inner>& params) {
    Stored<T>* row = reinterpret_cast<Stored<T>*>(params.stream.data) +
                     thread.y * params.stream.strides[Rank - 2];
    if constexpr (Rank == 3) {
        row += thread.z * params.stream.strides[0];
    } else if constexpr (Rank > 3) {
        std::int64_t rest = thread.z;
        for (int dimension = Rank - 3; dimension >= 0; --dimension) {
            const std::int64_t index = rest % params.space.shape[dimension];
            rest /= params.space.shape[dimension];
            row += index * params.stream.strides[dimension];
        }
    }
    return row;
}

#if !defined(__CUDACC__)
// Where the pack of a thread starts in its row, given where the last full pack does: the last pack
// is moved back, so that it is full as well.
template <int Lanes>
FK_HOST_DEVICE_FUSE std::int64_t first_of(const fk::Point& thread, std::int64_t latest) {
    const std::int64_t first = std::int64_t{thread.x} * Lanes;
    return first < latest ? first : latest;
}

// The end of a row that is shorter than a pack, kept out of the loop.
template <typename T, int Lanes>
FKLARRAY_COLD Pack<T, Lanes> load_short(const Stored<T>* row, std::int64_t stride,
                                        std::int64_t length) {
    Pack<T, Lanes> pack;
    for (int lane = 0; lane < Lanes; ++lane) {
        pack.set(lane, static_cast<T>(row[(lane < length ? lane : length - 1) * stride]));
    }
    return pack;
}

template <typename T, int Lanes>
FKLARRAY_COLD void store_short(Stored<T>* row, std::int64_t stride, std::int64_t length,
                               Pack<T, Lanes> pack) {
    for (int lane = 0; lane < length; ++lane) row[lane * stride] = pack.get(lane);
}

// One register after the other: gcc takes a larger memcpy apart into smaller moves, on which the
// vector loads that follow have to wait.
template <int Bytes>
FK_HOST_DEVICE_STATIC void copy_registers(void* to, const void* from) {
    constexpr int step = Bytes < vector_bytes ? Bytes : vector_bytes;
    for (int at = 0; at < Bytes; at += step) {
        Vector<char, step> piece;
        __builtin_memcpy(&piece, static_cast<const char*>(from) + at, step);
        __builtin_memcpy(static_cast<char*>(to) + at, &piece, step);
    }
}

// Lane by lane without a loop: a lane whose number is not known goes through memory.
template <typename T, int Lanes, int... Is>
FK_HOST_DEVICE_STATIC void gather(Pack<T, Lanes>& pack, const Stored<T>* from, std::int64_t stride,
                                  lean::integer_sequence<int, Is...>) {
    if constexpr (lean::is_same_v<T, bool>) {
        // Not one after the other: gcc 12 makes masks of the bytes' truth, and leaves them so.
        ((pack.vector[Is] = from[Is * stride]), ...);
        pack.vector = (pack.vector != 0) & 1;
    } else {
        (pack.set(Is, static_cast<T>(from[Is * stride])), ...);
    }
}
template <typename T, int Lanes, int... Is>
FK_HOST_DEVICE_STATIC void scatter(const Pack<T, Lanes>& pack, Stored<T>* to, std::int64_t stride,
                                   lean::integer_sequence<int, Is...>) {
    ((to[Is * stride] = pack.get(Is)), ...);
}

template <int Lanes, typename T, int Rank, Inner inner>
FK_HOST_DEVICE_STATIC Pack<T, Lanes> load(const fk::Point& thread,
                                          const StreamParams<T, Rank, inner>& params) {
    const Stored<T>* const row = row_of(thread, params);
    if constexpr (inner == Inner::broadcast) {
        return splat<T, Lanes>(static_cast<T>(*row));
    } else {
        const std::int64_t latest = row_length(thread, params.space) - Lanes;
        const std::int64_t stride = inner_stride<inner>(params.stream);
        const Stored<T>* from = row + first_of<Lanes>(thread, latest) * stride;
        Pack<T, Lanes> pack;
        if constexpr (inner == Inner::unit) {
            // Rows shorter than a pack are rare. The missing lanes repeat the last element;
            // whatever is computed in them is dropped. No call: it would throw running values out
            // of their registers.
            Stored<T> repeated[Lanes];
            if (__builtin_expect(latest < 0, 0)) {
                for (int lane = 0; lane < Lanes; ++lane) {
                    repeated[lane] = row[lane < latest + Lanes ? lane : latest + Lanes - 1];
                }
                from = repeated;
            }
            copy_registers<sizeof(T) * Lanes>(&pack.vector, from);
            // As everywhere else, any byte but 0 is true.
            if constexpr (lean::is_same_v<T, bool>) pack.vector = (pack.vector != 0) & 1;
        } else {
            if (__builtin_expect(latest < 0, 0)) {
                return load_short<T, Lanes>(row, stride, latest + Lanes);
            }
            gather(pack, from, stride, lean::make_integer_sequence<int, Lanes>());
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
        return;
    }
    const std::int64_t latest = row_length(thread, params.space) - Lanes;
    const std::int64_t stride = inner_stride<inner>(params.stream);
    if (__builtin_expect(latest < 0, 0)) {
        store_short<T, Lanes>(row, stride, latest + Lanes, pack);
        return;
    }
    Stored<T>* const to = row + first_of<Lanes>(thread, latest) * stride;
    if constexpr (inner == Inner::unit) {
        copy_registers<sizeof(T) * Lanes>(to, &pack.vector);
    } else {
        scatter(pack, to, stride, lean::make_integer_sequence<int, Lanes>());
    }
}

// Stores what no pack before this one of the same row has stored.
template <int Lanes, typename T, int Rank, Inner inner>
FK_HOST_DEVICE_STATIC void store_new(const fk::Point& thread, const Pack<T, Lanes>& pack,
                                     const StreamParams<T, Rank, inner>& params) {
    const std::int64_t latest = row_length(thread, params.space) - Lanes;
    const std::int64_t first = std::int64_t{thread.x} * Lanes;
    if (__builtin_expect(first <= latest || latest < 0, 1)) {
        store(thread, pack, params);
        return;
    }
    const std::int64_t stride = inner_stride<inner>(params.stream);
    Stored<T>* const to = row_of(thread, params) + latest * stride;
    for (int lane = static_cast<int>(first - latest); lane < Lanes; ++lane) {
        to[lane * stride] = pack.get(lane);
    }
}

#endif

template <int Lanes, int Rank>
FK_HOST_DEVICE_FUSE uint packs_in_row(const fk::Point& thread, const Space<Rank>& space) {
    return static_cast<uint>((row_length(thread, space) + Lanes - 1) / Lanes);
}

template <int Rank>
FK_HOST_DEVICE_FUSE uint rows_of(const Space<Rank>& space) {
    return static_cast<uint>(space.shape[Rank - 2]);
}

template <int Rank>
FK_HOST_DEVICE_FUSE uint planes_of(const Space<Rank>& space) {
    std::int64_t planes = 1;
    for (int dimension = 0; dimension < Rank - 2; ++dimension) planes *= space.shape[dimension];
    return static_cast<uint>(planes);
}

}  // namespace fklarray

#if defined(__CUDACC__)
#include <fklarray/device_streams.h>
#endif
