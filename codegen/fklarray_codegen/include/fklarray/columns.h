// The pattern that walks along columns: the rows that are reduced lie across the dimension in which
// memory is contiguous. The elements of a pack belong to different results, dimension Rank - 2 of
// the index space is the one that is reduced, and a tile of columns goes through all stages.
#pragma once

#include <fklarray/stages.h>
#include <fused_kernel/fused_kernel.h>

namespace fklarray {

// A device's blocks may share columns that are few.
template <int Lanes_, bool areShared = false>
struct ColumnsDPP {
    static constexpr fk::ParArch PAR_ARCH = fk::defaultParArch;
    static constexpr int Lanes = Lanes_;
};
template <int Lanes>
using SharedColumnsDPP = ColumnsDPP<Lanes, true>;

}  // namespace fklarray

#if defined(__CUDACC__)
#include <fklarray/gpu_columns.h>
#else
namespace fklarray {

// Packs [begin, end) of every row, in one block of rows.
struct Tile {
    int begin;
    int end;
    int z;
    bool is_last;  // of its rows
};

// Running values of a tile: in half of that cache, since what is read goes through it too.
template <int Lanes, typename StageType>
class ColumnFold {
    using S = States<Lanes, typename StageType::Ends>;
    static constexpr int max_bytes = FKLARRAY_CACHE_BYTES / 2;
    // Rows of a partial value that are appended at once, so that it is read and written less often;
    // more of them would be too many places in memory at a time.
    static constexpr int together = 4;
    static constexpr bool is_short = StageType::Chain::size <= 2;

public:
    using Value = typename S::type;

    static constexpr int levels(std::int64_t rows) {
        int levels = 1;
        for (std::int64_t chunks = rows / chunk_length; chunks != 0; chunks /= 2) ++levels;
        return levels;
    }

    // The widest tile whose running values fit, of an odd number of packs: see rows().
    static constexpr std::int64_t max_packs(std::int64_t rows) {
        const std::int64_t packs =
            max_bytes / static_cast<std::int64_t>(sizeof(Value)) / (partial_values + levels(rows));
        return packs > 3 ? (packs - 1) | 1 : 3;
    }

    // Folds rows [begin, end), `begin` being a multiple of a chunk and of a power of two chunks not
    // less than their number. By value: see Executor<TransformDPP>.
    static __attribute__((noinline)) void rows(const StageType stage, const Tile tile,
                                               std::int64_t begin, std::int64_t end,
                                               Value* results) {
        const int width = tile.end - tile.begin;
        // Odd: a column's partial values lie in different sets of the cache.
        const int stride = width | 1;
        // No constructor runs over memory that is written before it is read.
        alignas(64) char memory[max_bytes];
        Value* const partial = reinterpret_cast<Value*>(memory);
        Value* const pairs = partial + partial_values * stride;
        std::uint64_t chunks = 0;
        for (std::int64_t row = begin; row < end; row += chunk_length, ++chunks) {
            const std::int64_t stop = smaller(row + chunk_length, end);
            fold_chunk(stage, tile, row, stop, partial, stride);
            int level = 0;
            for (; (chunks >> level & 1) != 0; ++level) {
                combine(partial, pairs + level * width, partial, width);
            }
            __builtin_memcpy(static_cast<void*>(pairs + level * width), partial,
                             width * sizeof(Value));
        }
        int level = __builtin_ctzll(chunks);
        __builtin_memcpy(static_cast<void*>(results), pairs + level * width, width * sizeof(Value));
        for (++level; (chunks >> level) != 0; ++level) {
            if ((chunks >> level & 1) != 0) combine(results, pairs + level * width, results, width);
        }
    }

    // The results of consecutive blocks of rows, `width` values each; into the first of them.
    FK_HOST_STATIC void join(Value* blocks, std::int64_t count, int width) {
        for (int x = 0; x < width; ++x) {
            Pairing<S> pairing;
            for (std::int64_t i = 0; i < count; ++i) pairing.push(blocks[i * width + x], 0);
            blocks[x] = pairing.total();
        }
    }

    FK_HOST_STATIC void store(const StageType& stage, const Tile& tile, const Value* results) {
        for (int x = tile.begin; x < tile.end; ++x) {
            S::store_all(Point{x, 0, tile.z}, results[x - tile.begin], stage.ends);
        }
    }

private:
    FK_HOST_STATIC Value at(const StageType& stage, const Tile& tile, int x, std::int64_t row) {
        return run_chain(Point{x, as_int(row), tile.z}, stage.chain,
                         [&](const auto& registers)
                             FKLARRAY_INLINED { return S::start(registers, row); });
    }

    FK_HOST_STATIC void combine(Value* to, const Value* a, const Value* b, int width) {
        for (int x = 0; x < width; ++x) to[x] = S::combine(a[x], b[x]);
    }

    // Appends rows row, row + partial_values, and so on. Where each row of a short chain begins is
    // known outside the loop over packs; there is one copy of a longer one.
    template <int Count>
    FK_HOST_STATIC Value append(const StageType& stage, const Tile& tile, int x, std::int64_t row,
                                std::int64_t count, Value running) {
        if constexpr (is_short) {
            return append(stage, tile, x, row, running, lean::make_index_sequence<Count>());
        } else {
            for (std::int64_t i = 0; i < count; ++i, row += partial_values) {
                running = S::append(running, at(stage, tile, x, row));
            }
            return running;
        }
    }

    template <std::size_t... Is>
    FK_HOST_STATIC Value append(const StageType& stage, const Tile& tile, int x, std::int64_t row,
                                Value running, lean::index_sequence<Is...>) {
        ((running =
              S::append(running, at(stage, tile, x, row + static_cast<int>(Is) * partial_values))),
         ...);
        return running;
    }

    // Appends `count` rows (row, row + partial_values, ...) to a partial value of each column.
    template <int Most = together>
    FK_HOST_STATIC void take(const StageType& stage, const StageType& inside, const Tile& tile,
                             std::int64_t row, std::int64_t count, bool is_first, Value* running) {
        if constexpr (is_short && Most > 1) {
            if (count < Most) {
                take<Most - 1>(stage, inside, tile, row, count, is_first, running);
                return;
            }
        }
        const Value neutral = S::neutral();
        // The last pack of a row may have to be moved back.
        const int whole = tile.end - (tile.is_last ? 1 : 0);
        for (int x = tile.begin; x < whole; ++x, ++running) {
            *running = append<Most>(inside, tile, x, row, count, is_first ? neutral : *running);
        }
        if (tile.is_last) {
            *running = append<Most>(stage, tile, whole, row, count, is_first ? neutral : *running);
        }
    }

    // Leaves the chunk's results in the first of the partial values.
    FK_HOST_STATIC void fold_chunk(const StageType& stage, const Tile& tile, std::int64_t begin,
                                   std::int64_t end, Value* partial, int stride) {
        const int width = tile.end - tile.begin;
        const Value neutral = S::neutral();
        const StageType inside = unbounded(stage);
        const std::int64_t step = together * partial_values;
        for (std::int64_t row = begin; row < end; row += step) {
            const std::int64_t stop = smaller(row + step, end);
            const std::int64_t rows = smaller(stop - row, partial_values);
            for (std::int64_t i = 0; i < rows; ++i) {
                const std::int64_t count = (stop - row - i - 1) / partial_values + 1;
                take(stage, inside, tile, row + i, count, row == begin, partial + i * stride);
            }
        }
        const int filled = static_cast<int>(smaller(end - begin, partial_values));
        for (int x = filled * stride; x < partial_values * stride; ++x) partial[x] = neutral;
        for (int x = 0; x < width; ++x)
            partial[x] = S::template fold_partials<partial_values>(partial + x, stride);
    }
};

// The rows of a tile, scanned: each lane is one row.
template <int Lanes, typename StageType>
struct ColumnScan;

template <int Lanes, typename Chain, typename... Scans>
struct ColumnScan<Lanes, Stage<Work::scan, Chain, fk::Tuple<Scans...>>> {
    using StageType = Stage<Work::scan, Chain, fk::Tuple<Scans...>>;
    using Running = fk::Tuple<Pack<typename Scans::Value, Lanes>...>;

    // By value: see Executor<TransformDPP>.
    static __attribute__((noinline)) void rows(const StageType stage, const Tile tile,
                                               std::int64_t rows, Running* running) {
        for (std::int64_t row = 0; row < rows; ++row) {
            for (int x = tile.begin; x < tile.end; ++x) {
                const Point thread{x, as_int(row), tile.z};
                run_chain(thread, stage.chain, [&](const auto& registers) FKLARRAY_INLINED {
                    take_in(thread, registers, stage.ends, running[x - tile.begin],
                            lean::index_sequence_for<Scans...>());
                });
            }
        }
    }

private:
    template <typename File, std::size_t... Is>
    FK_HOST_STATIC void take_in(const Point& thread, const File& registers,
                                const fk::Tuple<Scans...>& ends, Running& running,
                                lean::index_sequence<Is...>) {
        ((fk::get<Is>(running) =
              thread.y == 0 ? registers.template get<Scans::slot>()
                            : Scans::Reduction::append(fk::get<Is>(running),
                                                       registers.template get<Scans::slot>()),
          store(thread, fk::get<Is>(running), fk::get<Is>(ends).params)),
         ...);
    }
};

}  // namespace fklarray

namespace fk {

// Tiles of columns are shared out among threads; where there are too few of them, and one stage
// only, blocks of rows are.
template <int Lanes, bool areShared>
struct Executor<fklarray::ColumnsDPP<Lanes, areShared>> {
    template <typename Space, typename... Stages>
    FK_HOST_STATIC void executeOperations(Stream_<ParArch::CPU>& stream, const Space& space,
                                          const Stages&... stages) {
        const std::int64_t rows = rows_of(space);
        const std::int64_t planes = planes_of(space);
        const int packs = static_cast<int>(fklarray::packs_in_row<Lanes>({0, 0, 0}, space));
        const std::int64_t threads = fklarray::threads_for(
            stream, rows * planes * packs * (fklarray::stage_weight<Stages> + ...));
        std::int64_t width = packs;
        ((width = fklarray::smaller(width, widest<Stages>(rows))), ...);
        if (threads > 1) {
            // As many tiles for each thread, as long as they are not too narrow to be read well.
            const std::int64_t share = (tilesOf(packs, width) * planes + threads - 1) / threads;
            const std::int64_t wanted = (share > 2 ? share : 2) * threads;
            const std::int64_t inPlane = (wanted + planes - 1) / planes;
            const std::int64_t narrower = (packs + inPlane - 1) / inPlane;
            width = fklarray::smaller(width, narrower > narrowest ? narrower : narrowest);
        }
        const std::int64_t tiles = tilesOf(packs, width);
        const auto tile = [&](std::int64_t task) {
            const std::int64_t begin = task % tiles * width;
            const bool isLast = task % tiles == tiles - 1;
            return fklarray::Tile{static_cast<int>(begin),
                                  static_cast<int>(isLast ? packs : begin + width),
                                  static_cast<int>(task / tiles), isLast};
        };
        if constexpr (sizeof...(Stages) == 1 && ((Stages::work == fklarray::Work::fold) && ...)) {
            if (tiles * planes < threads && rows >= 2 * leastRows) {
                for (std::int64_t task = 0; task < tiles * planes; ++task) {
                    (divide(stream, tile(task), rows, stages), ...);
                }
                return;
            }
        }
        stream.run(tiles * planes,
                   [&](std::int64_t task) { (whole(tile(task), rows, stages), ...); });
    }

private:
    static constexpr std::int64_t narrowest = 16;
    static constexpr std::int64_t leastRows = 8 * fklarray::chunk_length;
    static constexpr int mostBlocks = 64;
    static constexpr std::int64_t widestTile = 512;

    // A last tile of one pack belongs to the one before it: the pack may be moved back over that
    // one's last, and no other thread may work on the same elements.
    FK_HOST_FUSE std::int64_t tilesOf(std::int64_t packs, std::int64_t width) {
        return packs / width + (packs % width > 1 || packs < width ? 1 : 0);
    }

    // One less than what fits: the last tile may have one pack more.
    template <typename Stage>
    FK_HOST_STATIC std::int64_t widest(std::int64_t rows) {
        if constexpr (Stage::work == fklarray::Work::fold) {
            return fklarray::smaller(widestTile,
                                     fklarray::ColumnFold<Lanes, Stage>::max_packs(rows)) -
                   1;
        } else {
            return widestTile - 1;
        }
    }

    template <typename Stage>
    FK_HOST_STATIC void whole(const fklarray::Tile& tile, std::int64_t rows, const Stage& stage) {
        if constexpr (Stage::work == fklarray::Work::fold) {
            using Fold = fklarray::ColumnFold<Lanes, Stage>;
            alignas(64) char memory[widestTile * sizeof(typename Fold::Value)];
            auto* const results = reinterpret_cast<typename Fold::Value*>(memory);
            Fold::rows(stage, tile, 0, rows, results);
            Fold::store(stage, tile, results);
        } else if constexpr (Stage::work == fklarray::Work::scan) {
            using Scan = fklarray::ColumnScan<Lanes, Stage>;
            alignas(64) char memory[widestTile * sizeof(typename Scan::Running)];
            Scan::rows(stage, tile, rows, reinterpret_cast<typename Scan::Running*>(memory));
        } else {
            writes(stage, tile, Stage::work == fklarray::Work::row ? 1 : rows);
        }
    }

    // By value: see Executor<TransformDPP>.
    template <typename Stage>
    static __attribute__((noinline)) void writes(const Stage stage, const fklarray::Tile tile,
                                                 std::int64_t rows) {
        for (std::int64_t row = 0; row < rows; ++row) {
            for (int x = tile.begin; x < tile.end; ++x) {
                fklarray::run_writes(Point{x, fklarray::as_int(row), tile.z}, stage);
            }
        }
    }

    template <typename Stage>
    FK_HOST_STATIC void divide(Stream_<ParArch::CPU>& stream, const fklarray::Tile& tile,
                               std::int64_t rows, const Stage& stage) {
        using Fold = fklarray::ColumnFold<Lanes, Stage>;
        std::int64_t block = leastRows;
        while (block * mostBlocks < rows) block *= 2;
        const std::int64_t blocks = (rows + block - 1) / block;
        const int width = tile.end - tile.begin;
        alignas(64) char memory[mostBlocks * (narrowest + 1) * sizeof(typename Fold::Value)];
        auto* const results = reinterpret_cast<typename Fold::Value*>(memory);
        stream.run(blocks, [&](std::int64_t task) {
            Fold::rows(stage, tile, task * block, fklarray::smaller((task + 1) * block, rows),
                       results + task * width);
        });
        Fold::join(results, blocks, width);
        Fold::store(stage, tile, results);
    }
};

}  // namespace fk
#endif
