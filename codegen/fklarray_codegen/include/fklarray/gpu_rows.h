// The pattern of rows.h on a GPU. Teams of threads take whole rows through all stages; of rows
// that are shared, each stage is a launch of its own in which several blocks have a row, and what
// they have folded is joined by another launch.
#pragma once

#include <fklarray/gpu_kept_rows.h>
#include <fklarray/gpu_row_stages.h>

#if defined(__CUDACC__)
namespace fklarray {

template <int Lanes, bool areShared>
struct RowsDPP;

// `Operations` of all stages; 0 where no row is gone through twice.
template <int Rank, int Operations>
struct GpuRows {
    static constexpr bool keeps = Operations > 0;
    Space<Rank> space;
    std::int64_t rows;      // of all planes
    std::int64_t segment;   // in chunks
    std::int64_t segments;  // of each row
    std::int64_t tasks;
    int threads;  // of a team; a power of two
    int first;    // stage
    int end;
    char* scratch;
    KeptRows<Rank, keeps ? Operations : 1> kept;

    template <typename Row>
    FK_DEVICE_STATIC char* kept_for(const GpuRows& rows, const Row& row, int operation) {
        if constexpr (!keeps) return nullptr;
        const int place = rows.kept.places[operation];
        return place == 0 ? nullptr : row.memory + 16 * (place - 1);
    }
};

template <int Rank>
FK_DEVICE_STATIC Point point_of(std::int64_t row, const Space<Rank>& space) {
    const std::int64_t rows = space.shape[Rank - 2];
    const std::int64_t plane = row < rows ? 0 : quotient(row, rows);
    return {0, static_cast<int>(row - plane * rows), static_cast<int>(plane)};
}

}  // namespace fklarray

namespace fk {

// What registers have to suffice for: threads read many packs at a time, but where rows are kept,
// these are read before, and more threads are better.
template <typename Rows, fklarray::GpuPart part>
constexpr bool keeps_rows = Rows::keeps && part == fklarray::GpuPart::whole;
template <typename Rows, fklarray::GpuPart part>
constexpr int row_threads = keeps_rows<Rows, part> ? 768 : 256;
template <typename Rows, fklarray::GpuPart part>
constexpr int row_blocks = keeps_rows<Rows, part> ? 1 : 2;

template <int Lanes, fklarray::GpuPart part, typename Rows, typename Stages>
__global__ void __launch_bounds__(row_threads<Rows, part>, row_blocks<Rows, part>)
    launchRows(const __grid_constant__ Rows rows, const __grid_constant__ Stages stages) {
    using fklarray::GpuPart;
    extern __shared__ uint4 keptRows[];
    const int threads = rows.threads;
    const int bits = __ffs(threads) - 1;
    const int team = static_cast<int>(threadIdx.x) >> bits;
    const int teams = static_cast<int>(blockDim.x) >> bits;
    const std::int64_t shares = part == GpuPart::segments ? rows.segments : 1;
    for (std::int64_t task = blockIdx.x; task < rows.tasks; task += gridDim.x) {
        const std::int64_t block = shares == 1 ? task : fklarray::quotient(task, shares);
        const std::int64_t segment = task - block * shares;
        const std::int64_t number = block * teams + team;
        fklarray::GpuRow<Lanes> row;
        row.is_there = number < rows.rows;
        const std::int64_t place = row.is_there ? number : rows.rows - 1;
        row.point = fklarray::point_of(place, rows.space);
        row.team = {static_cast<int>(threadIdx.x) & (threads - 1), threads};
        row.length = fklarray::row_length(row.point, rows.space);
        const std::int64_t chunks = fklarray::quotient_up(row.length, fklarray::chunk_length);
        row.begin = segment * rows.segment;
        row.end = shares == 1 ? chunks : fklarray::smaller(row.begin + rows.segment, chunks);
        row.segments = rows.segments;
        row.place = place * rows.segments + segment;
        row.memory = reinterpret_cast<char*>(keptRows) + team * rows.kept.bytes;
        if constexpr (Rows::keeps && part == GpuPart::whole) {
            for (int i = 0; i < rows.kept.count && row.is_there; ++i) {
                fklarray::bring(rows.kept.streams[i], row.point, rows.space, row.memory, row.team);
            }
            if (rows.kept.count > 0) {
                fklarray::finish_copies();
                fklarray::GpuRow<Lanes>::synchronise(row);
            }
        }
        fklarray::run_stages<part, 0, 0>(rows, row, stages);
    }
}

template <int Lanes, bool areShared>
struct Executor<fklarray::RowsDPP<Lanes, areShared>> {
    using Stream = Stream_<ParArch::GPU_NVIDIA>;
    using Work = fklarray::Work;
    using Part = fklarray::GpuPart;

    template <int Rank, typename... Stages>
    FK_HOST_STATIC void executeOperations(Stream& stream, const fklarray::Space<Rank>& space,
                                          const Stages&... stages) {
        constexpr bool isRepeated = ((Stages::work != Work::row) + ...) > 1;
        constexpr int operations = isRepeated ? (Stages::Chain::size + ...) : 0;
        const std::int64_t length = space.shape[Rank - 1];
        fklarray::GpuRows<Rank, operations> rows = {};
        rows.space = space;
        rows.rows = std::int64_t{fklarray::rows_of(space)} * fklarray::planes_of(space);
        if (rows.rows == 0 || length == 0) return;
        if constexpr (areShared) {
            const std::int64_t chunks = fklarray::quotient_up(length, fklarray::chunk_length);
            const int processors = fklarray::gpu_attribute(cudaDevAttrMultiProcessorCount);
            rows.segment = blockThreads / party;
            while (rows.segment * processors * 32 < chunks * rows.rows) rows.segment *= 2;
            rows.segments = fklarray::quotient_up(chunks, rows.segment);
            divide(stream, rows, stages...);
        } else {
            rows.segments = 1;
            whole(stream, rows, length, stages...);
        }
    }

private:
    static constexpr int blockThreads = 256;
    static constexpr int keptBytes = 256;  // for each thread
    // Threads that go through a chunk together; fewer than eight would not read memory well.
    static constexpr int party = fklarray::partial_values / Lanes;
    static constexpr int leastThreads = party > 8 ? party : 8;

    template <typename Rows, typename... Stages>
    FK_HOST_STATIC void whole(const Stream& stream, Rows rows, std::int64_t length,
                              const Stages&... stages) {
        // The threads of a scan take turns, so that more rows at a time are better than more of
        // them.
        constexpr bool scans = ((Stages::work == Work::scan) || ...);
        int threads = leastThreads;
        if constexpr (!scans) {
            threads = fklarray::power_between(leastThreads, length / (16 * Lanes), blockThreads);
            if constexpr (Rows::keeps) {
                const int room =
                    fklarray::gpu_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) - 4096;
                rows.kept = fklarray::Keeping<decltype(rows.kept)>::choose(length, room, stages...);
                // As many of them as a processor has room for.
                threads = fklarray::power_between(threads, rows.kept.bytes / keptBytes,
                                                  fklarray::gpu_row_threads);
            }
        }
        launch<Part::whole>(stream, rows, 0, sizeof...(Stages), threads, stages...);
    }

    template <typename Rows, typename... Stages>
    FK_HOST_STATIC void divide(const Stream& stream, Rows rows, const Stages&... stages) {
        constexpr Work works[] = {Stages::work...};
        constexpr int count = sizeof...(Stages);
        constexpr std::int64_t bytes = fklarray::result_bytes<fklarray::GpuRow<Lanes>, Stages...>();
        const fklarray::GpuScratch scratch(bytes * rows.rows * rows.segments,
                                           stream.getCUDAStream());
        if (!scratch.is_there()) return;
        rows.scratch = scratch.memory();
        for (int first = 0; first < count;) {
            int end = first + 1;
            if (works[first] == Work::fold) {
                launch<Part::segments>(stream, rows, first, end, blockThreads, stages...);
                while (end < count && works[end] == Work::row) ++end;
                const int threads = fklarray::power_between(32, rows.segments / 8, blockThreads);
                launch<Part::join>(stream, rows, first, end, threads, stages...);
            } else if (works[first] == Work::elements) {
                launch<Part::segments>(stream, rows, first, end, blockThreads, stages...);
            } else if constexpr (fklarray::has_whole_stages<Stages...>()) {
                launch<Part::whole>(stream, rows, first, end, leastThreads, stages...);
            }
            first = end;
        }
    }

    // Stages [first, end), with so many threads for a row or for each of its segments.
    template <Part part, typename Rows, typename... Stages>
    FK_HOST_STATIC void launch(const Stream& stream, Rows rows, int first, int end, int threads,
                               const Stages&... stages) {
        const auto kernel = launchRows<Lanes, part, Rows, Tuple<Stages...>>;
        const int block = threads < blockThreads ? blockThreads : threads;
        const int teams = block / threads;
        rows.first = first;
        rows.end = end;
        rows.threads = threads;
        rows.tasks =
            fklarray::quotient_up(rows.rows, teams) * (part == Part::segments ? rows.segments : 1);
        const int bytes = teams * rows.kept.bytes;
        if (bytes > 48 << 10) {
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        }
        const auto blocks = static_cast<uint>(fklarray::smaller(rows.tasks, 0x7fffffff));
        kernel<<<blocks, block, bytes, stream.getCUDAStream()>>>(rows, Tuple<Stages...>(stages...));
    }
};

}  // namespace fk
#endif
