// What a block of threads of gpu_tiles.h has of one stream.
//
// Of a stream whose neighbours are those of many rows (Inner::across) a tile has a piece of each
// column, a multiple of 128 bytes that begins at one of 16. Columns of a pack follow each other;
// after a pack's there is a gap of 16 bytes, which spreads what the threads of a warp read, 8 packs
// of 4 rows, over all banks. Of one whose rows lie between each other (Inner::interleaved) it has
// the memory as it is.
#pragma once

#include <fklarray/operations.h>

#if defined(__CUDACC__)
namespace fklarray {

constexpr int tile_threads = 256;
constexpr int tile_piece = vector_bytes;  // of one access

struct TilePlace {
    int pack;  // the first one
    int row;
    int plane;
    int columns;  // as many elements of a row as the tile has
    int rows;
};

// Elements of a tile: from one to another of distances in elements.
template <typename T, int Rank>
struct StreamParams<T, Rank, Inner::tile> {
    Stored<T>* data;
    int pack;
    int lane;
    int row;
};

// A tile's packs always are whole.
template <typename T, int Rank>
FK_DEVICE_STATIC void makeWhole(StreamParams<T, Rank, Inner::tile>&) {}

template <int Lanes, typename T, int Rank>
FK_DEVICE_STATIC Stored<T>* pack_of_thread(const Point& thread,
                                           const StreamParams<T, Rank, Inner::tile>& params) {
    return params.data + thread.x * params.pack + thread.y * params.row;
}

template <int Lanes, typename T, int Rank>
FK_HOST_DEVICE_STATIC Pack<T, Lanes> load(const Point& thread,
                                          const StreamParams<T, Rank, Inner::tile>& params) {
    return load_lanes<Inner::tile, Lanes, T>(pack_of_thread<Lanes>(thread, params), params.lane,
                                             Lanes, false);
}

// Also what is beyond the row, where nobody reads it.
template <int Lanes, typename T, int Rank>
FK_HOST_DEVICE_STATIC void store(const Point& thread, const Pack<T, Lanes>& pack,
                                 const StreamParams<T, Rank, Inner::tile>& params) {
    store_lanes<Memory::any, Inner::tile, Lanes>(pack_of_thread<Lanes>(thread, params), params.lane,
                                                 Lanes, false, pack);
}

// The first element that a stream has in a tile.
template <int Lanes, typename T, int Rank, Inner inner>
FK_DEVICE_STATIC Stored<T>* start_of(const StreamParams<T, Rank, inner>& params,
                                     const TilePlace& place) {
    return row_of(Point{0, place.row, place.plane}, params) +
           std::int64_t{place.pack} * Lanes * inner_stride<inner>(params.stream);
}

// What parameters for all memory are for a tile.
template <int Lanes, typename Params>
FK_DEVICE_STATIC Params moved_to(const Params& params, const TilePlace&) {
    return params;
}
template <int Lanes, typename T, int Rank, Inner inner>
FK_DEVICE_STATIC auto moved_to(StreamParams<T, Rank, inner> params, const TilePlace& place) {
    params.stream.data = reinterpret_cast<T*>(start_of<Lanes>(params, place));
    params.space.shape[Rank - 1] = place.columns;
    params.space.last = place.columns;
    return params;
}

// Copies bytes between addresses that are equally far from multiples of 16.
FK_DEVICE_STATIC void copy_span(char* to, const char* from, int bytes) {
    const int before = static_cast<int>(reinterpret_cast<std::uintptr_t>(to) % tile_piece);
    for (int at = static_cast<int>(threadIdx.x) * tile_piece - before; at < bytes;
         at += tile_threads * tile_piece) {
        if (at >= 0 && at + tile_piece <= bytes) {
            *reinterpret_cast<uint4*>(to + at) = *reinterpret_cast<const uint4*>(from + at);
        } else {
            for (int i = at < 0 ? 0 : at; i < at + tile_piece && i < bytes; ++i) to[i] = from[i];
        }
    }
}

// Part of an interleaved stream that lies in a tile.
template <typename T>
struct Span {
    Stored<T>* lowest;
    int first;  // from there to the first element of the tile
    int length;

    FK_DEVICE_STATIC int magnitude(int number) { return number < 0 ? -number : number; }

    template <int Lanes, int Rank>
    FK_DEVICE_STATIC Span of(const StreamParams<T, Rank, Inner::interleaved>& params,
                             const TilePlace& place) {
        const int column = static_cast<int>(params.stream.strides[Rank - 1]);
        const int row = static_cast<int>(params.stream.strides[Rank - 2]);
        const int along = (place.columns - 1) * column;
        const int across = (place.rows - 1) * row;
        Span span;
        span.first = -((along < 0 ? along : 0) + (across < 0 ? across : 0));
        span.length = magnitude(along) + magnitude(across) + 1;
        span.lowest = start_of<Lanes>(params, place) - span.first;
        return span;
    }

    // Where it begins in a tile, which copies need.
    __device__ __forceinline__ int offset() const {
        return static_cast<int>(reinterpret_cast<std::uintptr_t>(lowest) % tile_piece);
    }
    __device__ __forceinline__ int bytes() const { return length * static_cast<int>(sizeof(T)); }
};

// Bytes of a tile's interleaved stream.
template <int Lanes, typename T, int Rank>
FK_HOST_DEVICE_STATIC int span_bytes(const StreamParams<T, Rank, Inner::interleaved>& params,
                                     int packs) {
    const int column = static_cast<int>(params.stream.strides[Rank - 1]);
    const int bytes = packs * Lanes * (column < 0 ? -column : column) * static_cast<int>(sizeof(T));
    return (bytes + 3 * tile_piece - 1) / tile_piece * tile_piece;
}

// Copies a tile's columns, of which each has as many whole pieces as there are rows.
template <typename Tile, int Lanes, typename T, int Rank>
FK_DEVICE_STATIC void copy_columns(Stored<T>* to, const Stored<T>* from, const TilePlace& place,
                                   const StreamParams<T, Rank, Inner::across>& params) {
    constexpr int rows = Tile::extents.rows;
    constexpr int step = tile_piece / static_cast<int>(sizeof(T));
    constexpr int columns = Tile::extents.packs * Lanes;
    constexpr int turns = (rows / step * columns + tile_threads - 1) / tile_threads;
    const std::int64_t stride = params.stream.strides[Rank - 1];
    uint4 held[turns];
    // All loads come before the first store, which would wait.
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
        const int piece = turn * tile_threads + static_cast<int>(threadIdx.x);
        const int column = piece / (rows / step);
        const int row = piece % (rows / step) * step;
        if (column < place.columns && row < place.rows) {
            held[turn] = *reinterpret_cast<const uint4*>(from + column * stride + row);
        }
    }
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
        const int piece = turn * tile_threads + static_cast<int>(threadIdx.x);
        const int column = piece / (rows / step);
        const int row = piece % (rows / step) * step;
        if (column < columns) {
            *reinterpret_cast<uint4*>(to + column * rows + column / Lanes * step + row) =
                held[turn];
        }
    }
}

// The same one element at a time, of any distances.
template <typename Tile, int Lanes, typename T, int Rank>
FK_DEVICE_STATIC void copy_elements(Stored<T>* to, const Stored<T>* from, const TilePlace& place,
                                    const StreamParams<T, Rank, Inner::across>& params) {
    constexpr int rows = Tile::extents.rows;
    constexpr int columns = Tile::extents.packs * Lanes;
    constexpr int step = tile_piece / static_cast<int>(sizeof(T));
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += tile_threads) {
        const int column = i / rows;
        const int row = i % rows;
        if (column < place.columns && row < place.rows) {
            to[column * rows + column / Lanes * step + row] =
                from[column * params.stream.strides[Rank - 1] +
                     row * params.stream.strides[Rank - 2]];
        }
    }
}

// The tile of a stream, and how much room it takes. It is there when all threads have come so far.
template <typename Tile, int Lanes, bool IsRead, typename T, int Rank>
FK_DEVICE_STATIC StreamParams<T, Rank, Inner::tile>
take_tile(const StreamParams<T, Rank, Inner::across>& params, char*& room, const TilePlace& place,
          int) {
    constexpr int rows = Tile::extents.rows;
    constexpr int packs = Tile::extents.packs;
    constexpr int gap = tile_piece / static_cast<int>(sizeof(T));
    const std::int64_t* const strides = params.stream.strides;
    Stored<T>* const tile = reinterpret_cast<Stored<T>*>(room);
    room += packs * (Lanes * rows + gap) * static_cast<int>(sizeof(T));
    const Stored<T>* const from = start_of<Lanes>(params, place);
    if (strides[Rank - 2] == 1 && strides[Rank - 1] % gap == 0 && place.rows % gap == 0 &&
        is_aligned<tile_piece>(from)) {
        copy_columns<Tile, Lanes>(tile, from, place, params);
    } else {
        copy_elements<Tile, Lanes>(tile, from, place, params);
    }
    return {tile, Lanes * rows + gap, rows, 1};
}

constexpr int tile_bytes_ahead = 192 << 10;

// One thread asks for the memory of a later tile of the row.
template <int Lanes, typename T, int Rank>
FK_DEVICE_STATIC void read_ahead(const Span<T>& span,
                                 const StreamParams<T, Rank, Inner::interleaved>& params,
                                 const TilePlace& place, int packs) {
    const std::int64_t tiles = tile_bytes_ahead / span.bytes();
    const std::int64_t later = place.pack + tiles * packs;
    if (threadIdx.x == 0 && (later + packs) * Lanes <= params.space.shape[Rank - 1]) {
        fk::readAhead(span.lowest + tiles * packs * Lanes * params.stream.strides[Rank - 1],
                      span.bytes());
    }
}

template <typename Tile, int Lanes, bool IsRead, typename T, int Rank>
FK_DEVICE_STATIC StreamParams<T, Rank, Inner::tile>
take_tile(const StreamParams<T, Rank, Inner::interleaved>& params, char*& room,
          const TilePlace& place, int packs) {
    const Span<T> span = Span<T>::template of<Lanes>(params, place);
    const auto column = static_cast<int>(params.stream.strides[Rank - 1]);
    const auto row = static_cast<int>(params.stream.strides[Rank - 2]);
    char* tile = room + span.offset();
    // The last pack has lanes that are not there, and lie before all others if one goes backwards.
    const int missing = column < 0 ? place.columns - packs * Lanes : 0;
    tile +=
        (missing * column * static_cast<int>(sizeof(T)) + tile_piece - 1) / tile_piece * tile_piece;
    room += span_bytes<Lanes>(params, packs);
    if constexpr (IsRead) {
        if constexpr (sizeof(T) * Lanes <= fk::gpuLeastRead)
            read_ahead<Lanes>(span, params, place, packs);
        copy_span(tile, reinterpret_cast<const char*>(span.lowest), span.bytes());
    }
    return {reinterpret_cast<Stored<T>*>(tile) + span.first, Lanes * column, column, row};
}

}  // namespace fklarray
#endif
