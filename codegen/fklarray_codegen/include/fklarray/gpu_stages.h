// How the threads of a GPU run the stages of a kernel: what both patterns share.
#pragma once

#include <fklarray/gpu_lines.h>

#if defined(__CUDACC__)
namespace fklarray {

// What a launch does: all of its stages; or a fold or the stores of elements, shared out in
// segments; or a fold of what these have left, and stages that follow from it.
enum class GpuPart { whole, segments, join };

template <GpuPart part, Work work>
constexpr bool takes_part = part == GpuPart::whole || work == Work::fold ||
                            work == (part == GpuPart::segments ? Work::elements : Work::row);

// Whether a launch of blocks that share rows has stages that they cannot share: scans, and what is
// computed for rows before anything is folded.
template <typename... Stages>
constexpr bool has_whole_stages() {
    constexpr Work works[] = {Stages::work...};
    bool has = works[0] == Work::row;
    for (const Work work : works) has = has || work == Work::scan;
    return has;
}

// The threads that share a row, or a column of packs.
struct GpuTeam {
    int thread;
    int threads;
};

// Runs stage `Number` and those after it, as far as the launch has them, where a team is; the
// stage's first operation has number `Operation` among all.
template <GpuPart part, int Number, int Operation, typename Launch, typename Place, typename Stages>
FK_DEVICE_STATIC void run_stages(const Launch& launch, const Place& place, const Stages& stages) {
    const auto& stage = fk::get<Number>(stages);
    using StageType = lean::decay_t<decltype(stage)>;
    constexpr Work work = StageType::work;
    constexpr int size = StageType::Chain::size;
    if (takes_part<part, work> && Number >= launch.first && Number < launch.end) {
        const bool is_first = place.team.thread == 0 && place.is_there;
        if constexpr (work == Work::row) {
            if (is_first) run_writes(place.point, stage);
        } else if constexpr (takes_part<part, work>) {
            const auto kept = [&](int operation) -> char* {
                if constexpr (part != GpuPart::whole) return nullptr;
                return Launch::kept_for(launch, place, Operation + operation);
            };
            const auto lines =
                lines_of(place, stage.chain, kept, lean::make_index_sequence<size>());
            if constexpr (work == Work::fold) {
                using Fold = typename Place::template Fold<StageType>;
                if constexpr (part == GpuPart::join) {
                    const auto value = Fold::join(place, launch.scratch);
                    if (is_first) Fold::store(place, value, stage);
                } else {
                    const auto value = Fold::fold(place, stage, lines);
                    if constexpr (part == GpuPart::segments) {
                        auto* const values =
                            reinterpret_cast<typename Fold::Value*>(launch.scratch);
                        if (is_first) values[place.place] = value;
                    } else if (is_first) {
                        Fold::store(place, value, stage);
                    }
                }
            } else if constexpr (work == Work::scan) {
                Place::template Scan<StageType>::scan(place, stage, lines);
            } else {
                write_elements(place, stage, lines);
            }
        }
        Place::synchronise(place);
    }
    if constexpr (Number + 1 < static_cast<int>(Stages::size)) {
        run_stages<part, Number + 1, Operation + size>(launch, place, stages);
    }
}

// The largest of what the folds of stages leave.
template <typename Place, typename Stage>
constexpr void raise_to_result(std::int64_t& bytes) {
    if constexpr (Stage::work == Work::fold) {
        constexpr std::int64_t size = sizeof(typename Place::template Fold<Stage>::Value);
        if (size > bytes) bytes = size;
    }
}
template <typename Place, typename... Stages>
constexpr std::int64_t result_bytes() {
    std::int64_t bytes = 0;
    (raise_to_result<Place, Stages>(bytes), ...);
    return bytes;
}

template <typename Value, typename Exchange>
FK_DEVICE_STATIC Value from_other(const Value& value, const Exchange& exchange) {
    constexpr int words = (sizeof(Value) + 3) / 4;
    uint bits[words] = {};
    memcpy(bits, &value, sizeof(Value));
    for (int word = 0; word < words; ++word) bits[word] = exchange(bits[word]);
    Value other;
    memcpy(static_cast<void*>(&other), bits, sizeof(Value));
    return other;
}

// The value of the thread that lies `distance` further on in the warp.
template <typename Value>
FK_DEVICE_STATIC Value from_further(const Value& value, int distance) {
    return from_other(value,
                      [&](uint bits) { return __shfl_down_sync(0xffffffff, bits, distance); });
}

// The value of a thread among `width` neighbours.
template <typename Value>
FK_DEVICE_STATIC Value from_thread(const Value& value, int thread, int width) {
    return from_other(value,
                      [&](uint bits) { return __shfl_sync(0xffffffff, bits, thread, width); });
}

// As Pairing: of values that one thread has, one after the other.
template <typename S>
class GpuPairing {
public:
    using Value = typename S::type;

    __device__ __forceinline__ GpuPairing() {}

    __device__ __forceinline__ void push(Value value, int level) {
        std::uint64_t count = count_ + (std::uint64_t{1} << level);
        for (; (count_ >> level & 1) != 0; ++level) value = S::combine(levels()[level], value);
        levels()[level] = value;
        count_ = count;
    }
    // Where the values that come next are missing, as many as make up a pair of pairs.
    __device__ __forceinline__ void skip() {
        const int level = __ffsll(static_cast<long long>(count_)) - 1;
        const Value value = levels()[level];
        count_ -= std::uint64_t{1} << level;
        push(value, level + 1);
    }
    __device__ __forceinline__ std::uint64_t count() const { return count_; }

    __device__ __forceinline__ Value total() {
        int level = __ffsll(static_cast<long long>(count_)) - 1;
        Value value = levels()[level];
        for (++level; (count_ >> level) != 0; ++level) {
            if ((count_ >> level & 1) != 0) value = S::combine(levels()[level], value);
        }
        return value;
    }

private:
    static constexpr int most_levels = 32;
    __device__ __forceinline__ Value* levels() { return reinterpret_cast<Value*>(memory_); }

    // No constructor runs over what is written before it is read.
    alignas(16) char memory_[most_levels * sizeof(Value)];
    std::uint64_t count_ = 0;
};

// Of values [begin, end) in memory, at least one, some of which are asked for at a time.
template <typename S>
FK_DEVICE_STATIC typename S::type pair_up(const typename S::type* values, std::int64_t distance,
                                          std::int64_t begin, std::int64_t end) {
    constexpr int batch = sizeof(typename S::type) <= 4 ? 8 : sizeof(typename S::type) <= 8 ? 4 : 2;
    GpuPairing<S> pairing;
    for (std::int64_t i = begin; i < end; i += batch) {
        typename S::type next[batch];
#pragma unroll
        for (int j = 0; j < batch; ++j) next[j] = values[smaller(i + j, end - 1) * distance];
#pragma unroll
        for (int j = 0; j < batch; ++j) {
            if (i + j < end) pairing.push(next[j], 0);
        }
    }
    return pairing.total();
}

FK_HOST_DEVICE_FUSE std::int64_t quotient_up(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

// Division takes a thread long, of 64 bits most of all, and nothing is read meanwhile.
FK_DEVICE_STATIC std::int64_t quotient(std::int64_t a, std::int64_t b) {
    if ((a | b) >> 32 == 0) return static_cast<uint>(a) / static_cast<uint>(b);
    return a / b;
}
FK_DEVICE_STATIC std::int64_t power_quotient_up(std::int64_t a, std::int64_t power) {
    return (a + power - 1) >> (__ffsll(power) - 1);
}
FK_DEVICE_STATIC std::int64_t power_of_two_from(std::int64_t number) {
    return number <= 1 ? 1 : std::int64_t{1} << (64 - __clzll(number - 1));
}

// The power of two that is not less than a number, but for the limits.
FK_HOST_STATIC int power_between(int least, std::int64_t number, int most) {
    int power = least;
    while (power < number && power < most) power *= 2;
    return power;
}

// What the host asks the device in use.
FK_HOST_STATIC int gpu_attribute(cudaDeviceAttr attribute) {
    int device = 0;
    int value = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&value, attribute, device);
    return value;
}

// Memory of the device that the launches on a stream share.
class GpuScratch {
public:
    GpuScratch(std::int64_t bytes, cudaStream_t stream) : stream_(stream) {
        if (cudaMallocAsync(&memory_, bytes + 1, stream) != cudaSuccess) memory_ = nullptr;
    }
    GpuScratch(const GpuScratch&) = delete;
    GpuScratch& operator=(const GpuScratch&) = delete;
    ~GpuScratch() {
        if (memory_ != nullptr) cudaFreeAsync(memory_, stream_);
    }
    bool is_there() const { return memory_ != nullptr; }
    char* memory() const { return static_cast<char*>(memory_); }

private:
    void* memory_ = nullptr;
    cudaStream_t stream_;
};

}  // namespace fklarray
#endif
