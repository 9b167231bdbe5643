// The pattern of columns.h on a GPU. Teams of threads take packs of all rows through all stages; of
// columns that are shared, each stage is a launch of its own in which several blocks have the rows
// of a pack, and what they have folded is joined by another launch.
#pragma once

#include <fklarray/gpu_column_stages.h>

#if defined(__CUDACC__)
namespace fklarray {

template <int Lanes, bool areShared>
struct ColumnsDPP;

template <int Rank>
struct GpuColumns {
    Space<Rank> space;
    std::int64_t packs;     // of a row
    std::int64_t planes;    // blocks of rows
    std::int64_t segment;   // in rows
    std::int64_t segments;  // of each block of rows
    std::int64_t tiles;     // blocks that have a row, or a segment of rows, together
    std::int64_t tasks;
    int across;   // teams of a block
    int threads;  // of a team; powers of two
    int first;    // stage
    int end;
    char* scratch;

    template <typename Column>
    FK_DEVICE_STATIC char* kept_for(const GpuColumns&, const Column&, int) {
        return nullptr;
    }
};

}  // namespace fklarray

namespace fk {

template <int Lanes, fklarray::GpuPart part, typename Columns, typename Stages>
__global__ void __launch_bounds__(fklarray::gpu_column_threads, 2)
    launchColumns(const __grid_constant__ Columns columns, const __grid_constant__ Stages stages) {
    const std::int64_t shares = part == fklarray::GpuPart::segments ? columns.segments : 1;
    const int bits = __ffs(columns.across) - 1;
    for (std::int64_t task = blockIdx.x; task < columns.tasks; task += gridDim.x) {
        // Neighbours in memory are neighbours in time.
        const std::int64_t line = fklarray::quotient(task, columns.tiles);
        const std::int64_t plane = shares == 1 ? line : fklarray::quotient(line, shares);
        const std::int64_t segment = line - plane * shares;
        const std::int64_t pack =
            ((task - line * columns.tiles) << bits) + (threadIdx.x & (columns.across - 1));
        fklarray::GpuColumn<Lanes> column;
        column.is_there = pack < columns.packs;
        const std::int64_t x = column.is_there ? pack : columns.packs - 1;
        column.point = {static_cast<int>(x), 0, static_cast<int>(plane)};
        column.team = {static_cast<int>(threadIdx.x) >> bits, columns.threads};
        column.across = columns.across;
        column.lanes = fklarray::lanes_in_row<Lanes>(column.point, columns.space);
        column.is_whole = column.lanes == Lanes;
        const std::int64_t rows = fklarray::rows_of(columns.space);
        column.begin = segment * columns.segment;
        column.end = shares == 1 ? rows : fklarray::smaller(column.begin + columns.segment, rows);
        column.segments = columns.segments;
        column.distance = columns.packs;
        column.place = (plane * columns.segments + segment) * columns.packs + x;
        fklarray::run_stages<part, 0, 0>(columns, column, stages);
    }
}

template <int Lanes, bool areShared>
struct Executor<fklarray::ColumnsDPP<Lanes, areShared>> {
    using Stream = Stream_<ParArch::GPU_NVIDIA>;
    using Work = fklarray::Work;
    using Part = fklarray::GpuPart;

    template <int Rank, typename... Stages>
    FK_HOST_STATIC void executeOperations(Stream& stream, const fklarray::Space<Rank>& space,
                                          const Stages&... stages) {
        fklarray::GpuColumns<Rank> columns = {};
        columns.space = space;
        columns.packs = fklarray::packs_in_row<Lanes>({0, 0, 0}, space);
        columns.planes = fklarray::planes_of(space);
        const std::int64_t rows = fklarray::rows_of(space);
        const std::int64_t packs = columns.packs * columns.planes;
        if (rows == 0 || packs == 0) return;
        const int processors = fklarray::gpu_attribute(cudaDevAttrMultiProcessorCount);
        const std::int64_t wanted = std::int64_t{processors} * 1024;  // threads
        constexpr int least = leastThreads<Stages...>();
        int threads = columns.packs >= widestTile ? least : fklarray::partial_values;
        while (threads > 1 && rows <= threads / 2 * (fklarray::partial_values / least))
            threads /= 2;
        if constexpr (areShared) {
            const std::int64_t segments = fklarray::quotient_up(2 * wanted, packs * threads);
            columns.segment = leastRows;
            while (columns.segment * segments < rows) columns.segment *= 2;
            columns.segments = fklarray::quotient_up(rows, columns.segment);
            divide(stream, columns, threads, stages...);
        } else {
            columns.segments = 1;
            // More threads, if there are few.
            if (packs * threads < wanted && rows >= fklarray::partial_values) {
                threads = fklarray::partial_values;
            }
            launch<Part::whole>(stream, columns, 0, sizeof...(Stages), threads, stages...);
        }
    }

private:
    static constexpr std::int64_t leastRows = fklarray::chunk_length;
    static constexpr int widestTile = 64;  // in packs: what is read well

    // What the folds of all stages can do with.
    template <typename... Stages>
    static constexpr int leastThreads() {
        int least = 1;
        const auto raise = [&](int threads) { least = threads > least ? threads : least; };
        (raise(threadsOf<Stages>()), ...);
        return least;
    }
    template <typename Stage>
    static constexpr int threadsOf() {
        if constexpr (Stage::work == Work::fold) {
            return fklarray::GpuColumnFold<Lanes, Stage>::threads;
        } else {
            return 1;
        }
    }
    FK_HOST_STATIC int mostThreads(std::int64_t packs) {
        return fklarray::gpu_column_threads / fklarray::power_between(1, packs, widestTile);
    }

    template <typename Columns, typename... Stages>
    FK_HOST_STATIC void divide(const Stream& stream, Columns columns, int threads,
                               const Stages&... stages) {
        constexpr Work works[] = {Stages::work...};
        constexpr int count = sizeof...(Stages);
        constexpr std::int64_t bytes =
            fklarray::result_bytes<fklarray::GpuColumn<Lanes>, Stages...>();
        const fklarray::GpuScratch scratch(
            bytes * columns.packs * columns.planes * columns.segments, stream.getCUDAStream());
        if (!scratch.is_there()) return;
        columns.scratch = scratch.memory();
        for (int first = 0; first < count;) {
            int end = first + 1;
            if (works[first] == Work::fold) {
                launch<Part::segments>(stream, columns, first, end, threads, stages...);
                while (end < count && works[end] == Work::row) ++end;
                const int most = mostThreads(columns.packs);
                launch<Part::join>(stream, columns, first, end,
                                   fklarray::power_between(1, columns.segments / 8, most),
                                   stages...);
            } else if (works[first] == Work::elements) {
                launch<Part::segments>(stream, columns, first, end, threads, stages...);
            } else if constexpr (fklarray::has_whole_stages<Stages...>()) {
                launch<Part::whole>(stream, columns, first, end, 1, stages...);
            }
            first = end;
        }
    }

    // Stages [first, end), with so many threads for each pack of a row or of a segment.
    template <Part part, typename Columns, typename... Stages>
    FK_HOST_STATIC void launch(const Stream& stream, Columns columns, int first, int end,
                               int threads, const Stages&... stages) {
        columns.first = first;
        columns.end = end;
        columns.threads = threads;
        columns.across = fklarray::gpu_column_threads / threads;
        while (columns.across > 1 && columns.across / 2 >= columns.packs) columns.across /= 2;
        columns.tiles = fklarray::quotient_up(columns.packs, columns.across);
        columns.tasks =
            columns.tiles * columns.planes * (part == Part::segments ? columns.segments : 1);
        const auto blocks = static_cast<uint>(fklarray::smaller(columns.tasks, 0x7fffffff));
        const auto kernel = launchColumns<Lanes, part, Columns, Tuple<Stages...>>;
        kernel<<<blocks, columns.across * threads, 0, stream.getCUDAStream()>>>(
            columns, Tuple<Stages...>(stages...));
    }
};

}  // namespace fk
#endif
