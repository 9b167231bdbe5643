// The pattern of tiles.h on a GPU. A block of threads has a tile: it copies what such streams have
// in it to shared memory, along their neighbours, 16 bytes at a time, and packs are loaded from
// there; or stored there, and copied away in the end.
#pragma once

#include <fklarray/gpu_tile_streams.h>
#include <fused_kernel/fused_kernel.h>

#if defined(__CUDACC__)
namespace fklarray {

// Rows of tiles that are walked across together, so that neither side leaves the cache's lines.
constexpr uint tile_group = 8;
constexpr int tile_room = 20 << 10;  // bytes: eight blocks of threads share a processor
constexpr int most_tile_bytes = 48 << 10;
constexpr int tile_column_bytes = 256;
constexpr int tile_packs = 16;
// Of interleaved rows. What is read comes in earlier if tiles are small, what is written goes away
// in longer runs if they are large.
constexpr int read_packs = 256;
constexpr int written_packs = 512;

// What an operation moves between memory and its registers.
template <typename Params>
struct Moved {
    static constexpr Inner inner = Inner::broadcast;
    static constexpr int bytes = 0;
};
template <typename T, int Rank, Inner inner_>
struct Moved<StreamParams<T, Rank, inner_>> {
    static constexpr Inner inner = inner_;
    static constexpr int bytes = sizeof(T);
};

template <typename IOp, bool = fk::hasParams<IOp>>
struct MovedBy : Moved<void> {};
template <typename IOp>
struct MovedBy<IOp, true> : Moved<lean::decay_t<decltype(lean::declval<IOp&>().params)>> {};

// The same operation on a tile.
template <typename Operation>
struct OnTile;
template <typename T, int Lanes, int Rank, Inner inner>
struct OnTile<StridedRead<T, Lanes, Rank, inner>> {
    using type = StridedRead<T, Lanes, Rank, Inner::tile>;
};
template <typename File, int Slot, typename T, int Lanes, int Rank, Inner inner>
struct OnTile<LoadStrided<File, Slot, T, Lanes, Rank, inner>> {
    using type = LoadStrided<File, Slot, T, Lanes, Rank, Inner::tile>;
};
template <typename File, int Slot, typename T, int Rank, Inner inner>
struct OnTile<StridedWrite<File, Slot, T, Rank, inner>> {
    using type = StridedWrite<File, Slot, T, Rank, Inner::tile>;
};

template <typename IOp>
constexpr bool is_on_tile =
    MovedBy<IOp>::inner == Inner::across || MovedBy<IOp>::inner == Inner::interleaved;
template <typename IOp>
constexpr bool is_write = fk::opIs<fk::WriteType, IOp> || fk::opIs<fk::MidWriteType, IOp>;

// Extents of tiles, in packs and rows: constants, but for packs of interleaved rows.
template <int Lanes, typename... IOps>
struct TileOf {
    static constexpr bool is_interleaved = ((MovedBy<IOps>::inner == Inner::interleaved) || ...);
    // Neighbouring packs of the threads of a warp.
    static constexpr int width = is_interleaved ? 32 : 8;

    FK_HOST_DEVICE_FUSE int column_bytes(int rows, int packs) {
        int bytes = 0;
        ((bytes += MovedBy<IOps>::inner == Inner::across
                       ? packs * (Lanes * rows * MovedBy<IOps>::bytes + tile_piece)
                       : 0),
         ...);
        return bytes;
    }

    struct Extents {
        int rows;
        int packs;
        int bytes;
    };

    // As large as there is room for: columns first become shorter, down to 128 bytes of the
    // narrowest type.
    FK_HOST_DEVICE_FUSE Extents across() {
        int narrowest = 16;
        ((narrowest = MovedBy<IOps>::inner == Inner::across && MovedBy<IOps>::bytes < narrowest
                          ? MovedBy<IOps>::bytes
                          : narrowest),
         ...);
        int rows = tile_column_bytes / narrowest;
        int packs = tile_packs;
        while (column_bytes(rows, packs) > tile_room && rows * narrowest > 128) rows /= 2;
        while (column_bytes(rows, packs) > tile_room && packs > width) packs /= 2;
        while (column_bytes(rows, packs) > most_tile_bytes) rows /= 2;
        return {rows, packs, column_bytes(rows, packs)};
    }

    static constexpr Extents extents = across();
};

// How a one-dimensional grid covers planes with tiles.
struct GpuTiles {
    std::int64_t length;      // of a row
    uint height;              // rows of a plane
    uint rows;                // of tiles, in a plane
    fk::GpuDivisor in_plane;  // tiles
    fk::GpuDivisor in_group;  // tiles of rows that are walked together
    int packs;                // of a tile
    bool are_whole;           // packs of all other streams, but for a row's last one
};

// Several rows of tiles are walked together, so that both what is read and what is written are
// long runs.
template <typename Tile, int Lanes>
FK_DEVICE_STATIC TilePlace tile_place(uint block, const GpuTiles& tiles, int packs) {
    const uint plane = fk::GpuDivisor::quotient(block, tiles.in_plane);
    uint column = block - plane * tiles.in_plane.divisor;
    TilePlace place;
    place.plane = static_cast<int>(plane);
    place.row = 0;
    place.rows = static_cast<int>(tiles.height);
    if constexpr (!Tile::is_interleaved) {
        const uint group = fk::GpuDivisor::quotient(column, tiles.in_group);
        const uint rest = column - group * tiles.in_group.divisor;
        const uint below = tiles.rows - group * tile_group;
        const uint rows = below < tile_group ? below : tile_group;
        column = rows == tile_group ? rest / tile_group : rest / rows;
        place.row = static_cast<int>(group * tile_group + rest - column * rows);
        place.row *= Tile::extents.rows;
        place.rows -= place.row;
        if (place.rows > Tile::extents.rows) place.rows = Tile::extents.rows;
    }
    place.pack = static_cast<int>(column) * packs;
    const std::int64_t columns = tiles.length - std::int64_t{place.pack} * Lanes;
    place.columns = columns < packs * Lanes ? static_cast<int>(columns) : packs * Lanes;
    return place;
}

// The operation, on its tile if it has one.
template <typename Tile, int Lanes, template <typename> class Kind, typename Operation>
FK_DEVICE_STATIC auto on_tile(const Kind<Operation>& iop, char*& room, const TilePlace& place,
                              int packs) {
    using IOp = Kind<Operation>;
    if constexpr (is_on_tile<IOp>) {
        return Kind<typename OnTile<Operation>::type>{
            {take_tile<Tile, Lanes, !is_write<IOp>>(iop.params, room, place, packs)}};
    } else if constexpr (fk::hasParams<IOp>) {
        return IOp{{moved_to<Lanes>(iop.params, place)}};
    } else {
        return iop;
    }
}

// Copies away what an operation has written on its tile.
template <int Lanes, typename IOp, typename TileIOp>
FK_DEVICE_STATIC void leave_tile(const IOp& iop, const TileIOp& on_tile, const TilePlace& place) {
    if constexpr (is_on_tile<IOp> && is_write<IOp>) {
        using T = typename IOp::Operation::WriteDataType;
        const Span<T> span = Span<T>::template of<Lanes>(iop.params, place);
        copy_span(reinterpret_cast<char*>(span.lowest),
                  reinterpret_cast<const char*>(on_tile.params.data - span.first), span.bytes());
    }
}

template <int Lanes, typename... TileIOps, std::size_t... Is, typename... IOps>
FK_DEVICE_STATIC void leave_tiles(const fk::Tuple<TileIOps...>& chain, const TilePlace& place,
                                  lean::index_sequence<Is...>, const IOps&... iops) {
    (leave_tile<Lanes>(iops, fk::get<Is>(chain), place), ...);
}

// Runs a chain for all points of a tile of so many elements and rows: neighbouring threads for
// neighbouring packs, as many as 2 to the power of `bits`.
template <int Lanes, typename... IOps>
FK_DEVICE_STATIC void run_tile(int columns, int rows, int bits, const IOps&... iops) {
    using Pattern = fk::TransformDPP<fk::ParArch::GPU_NVIDIA>;
    const int thread = static_cast<int>(threadIdx.x);
    const int width = 1 << bits;
    const int first = thread & (width - 1);
    for (int row = thread >> bits; row < rows; row += tile_threads >> bits) {
#pragma unroll 1
        for (int pack = first; pack * Lanes < columns; pack += width) {
            Pattern::exec_thread(Point{pack, row, 0}, iops...);
        }
    }
}

template <int Lanes, typename... IOps, std::size_t... Is>
FK_DEVICE_STATIC void run_tile(const fk::Tuple<IOps...>& chain, const TilePlace& place, int bits,
                               int packs, bool are_whole, lean::index_sequence<Is...>) {
    if (are_whole && place.columns == packs * Lanes) {
        run_tile<Lanes>(packs * Lanes, place.rows, bits, fk::inside(fk::get<Is>(chain))...);
    } else {
        run_tile<Lanes>(place.columns, place.rows, bits, fk::get<Is>(chain)...);
    }
}

template <int Lanes, typename... IOps>
__global__ void __launch_bounds__(tile_threads)
    launchTiles(const __grid_constant__ GpuTiles tiles, const __grid_constant__ IOps... iops) {
    extern __shared__ uint4 shared_memory[];
    using Tile = TileOf<Lanes, IOps...>;
    const int packs = Tile::is_interleaved ? tiles.packs : Tile::extents.packs;
    const TilePlace place = tile_place<Tile, Lanes>(blockIdx.x, tiles, packs);
    char* room = reinterpret_cast<char*>(shared_memory);
    const fk::Tuple<decltype(on_tile<Tile, Lanes>(iops, room, place, packs))...> chain{
        on_tile<Tile, Lanes>(iops, room, place, packs)...};
    __syncthreads();
    constexpr auto indices = lean::make_index_sequence<sizeof...(IOps)>();
    int bits = 3;
    if constexpr (Tile::is_interleaved) {
        bits = 31 - __clz(packs < tile_threads ? packs : tile_threads);
    }
    run_tile<Lanes>(chain, place, bits, packs, tiles.are_whole, indices);
    if constexpr (((is_on_tile<IOps> && is_write<IOps>) || ...)) {
        __syncthreads();
        leave_tiles<Lanes>(chain, place, indices, iops...);
    }
}

}  // namespace fklarray

namespace fk {

template <int Lanes>
struct Executor<fklarray::TiledDPP<Lanes>> {
    template <typename... IOps>
    FK_HOST_STATIC void executeOperations(Stream_<ParArch::GPU_NVIDIA>& stream,
                                          const IOps&... iops) {
        run(stream, space_of(iops...), iops...);
    }

private:
    template <typename ReadIOp, typename... IOps>
    FK_HOST_STATIC const auto& space_of(const ReadIOp& read, const IOps&...) {
        return read.params.space;
    }

    template <int Rank, typename... IOps>
    FK_HOST_STATIC void run(Stream_<ParArch::GPU_NVIDIA>& stream,
                            const fklarray::Space<Rank>& space, const IOps&... iops) {
        using Tile = fklarray::TileOf<Lanes, IOps...>;
        fklarray::GpuTiles tiles;
        tiles.length = space.shape[Rank - 1];
        tiles.height = static_cast<uint>(space.shape[Rank - 2]);
        tiles.are_whole = (isWhole(iops, Lanes) && ...);
        int bytes = Tile::extents.bytes;
        tiles.packs = Tile::extents.packs;
        int rows = Tile::extents.rows;
        if constexpr (Tile::is_interleaved) {
            rows = static_cast<int>(tiles.height);
            constexpr bool is_written =
                ((fklarray::is_on_tile<IOps> && fklarray::is_write<IOps>) || ...);
            tiles.packs = is_written ? fklarray::written_packs : fklarray::read_packs;
            while ((bytes = (spanBytes(iops, tiles.packs) + ...)) > fklarray::tile_room &&
                   tiles.packs > Tile::width) {
                tiles.packs /= 2;
            }
        }
        const std::int64_t width = tiles.packs * Lanes;
        const uint columns = static_cast<uint>((tiles.length + width - 1) / width);
        tiles.rows = (tiles.height + rows - 1) / rows;
        tiles.in_plane = GpuDivisor::by(columns * tiles.rows);
        tiles.in_group = GpuDivisor::by(columns * fklarray::tile_group);
        const uint blocks = columns * tiles.rows * fklarray::planes_of(space);
        fklarray::launchTiles<Lanes>
            <<<blocks, fklarray::tile_threads, bytes, stream.getCUDAStream()>>>(tiles, iops...);
    }

    template <typename IOp>
    FK_HOST_STATIC int spanBytes(const IOp& iop, int packs) {
        if constexpr (fklarray::is_on_tile<IOp>) {
            return fklarray::span_bytes<Lanes>(iop.params, packs);
        } else {
            return 0;
        }
    }
};

}  // namespace fk
#endif
