// How the threads of a GPU run the stages of a kernel: what both patterns share. A thread goes
// along one line of packs, those of a row or those that lie in one place of neighbouring rows, and
// knows for each stream where that line begins.
#pragma once

#include <fklarray/stages.h>
#include <fused_kernel/fused_kernel.h>

#if defined(__CUDACC__)
namespace fklarray {

enum class Along { row, column };

// What a launch does: all of its stages; or a fold or the stores of elements, shared out in
// segments; or a fold of what these have left, and stages that follow from it.
enum class GpuPart { whole, segments, join };

// The threads that share a row, or a column of packs.
struct GpuTeam {
    int thread;
    int threads;
};

// Where the packs of a stream lie along a line.
template <Along along, int Lanes, typename T, int Rank, Inner inner>
struct Line {
    Stored<T>* first;
    std::int64_t stride;  // from lane to lane
    std::int64_t step;    // from pack to pack

    // In shared memory if `kept` says where.
    FK_DEVICE_STATIC Line of(const Point& thread, const StreamParams<T, Rank, inner>& params,
                             char* kept) {
        const std::int64_t stride = inner_stride<inner>(params.stream);
        Stored<T>* const first = pack_of_thread<Lanes>(thread, params);
        if constexpr (along == Along::column) {
            return {first, stride, params.stream.strides[Rank - 2]};
        } else {
            return {kept == nullptr ? first : reinterpret_cast<Stored<T>*>(kept), stride,
                    Lanes * stride};
        }
    }
    FK_DEVICE_STATIC bool is_whole(const Line& line) {
        constexpr int bytes = sizeof(T) * Lanes;
        if constexpr (inner != Inner::unit) return true;
        return is_aligned<bytes>(line.first) &&
               (along == Along::row || line.step * static_cast<int>(sizeof(T)) % bytes == 0);
    }
    template <bool whole>
    FK_DEVICE_STATIC Pack<T, Lanes> read(const Line& line, std::int64_t pack, int lanes) {
        return load_lanes<inner, Lanes, T>(line.first + pack * line.step, line.stride,
                                           whole ? Lanes : lanes, whole);
    }
    template <bool whole>
    FK_DEVICE_STATIC void write(const Line& line, std::int64_t pack, int lanes,
                                const Pack<T, Lanes>& values) {
        store_lanes<inner, Lanes>(line.first + pack * line.step, line.stride, whole ? Lanes : lanes,
                                  whole, values);
    }
};

// A row has one value in all of its packs: it is read once.
template <int Lanes, typename T, int Rank>
struct RowValue {
    T value;

    FK_DEVICE_STATIC RowValue of(const Point& thread,
                                 const StreamParams<T, Rank, Inner::broadcast>& params, char*) {
        return {static_cast<T>(*row_of(thread, params))};
    }
    FK_DEVICE_STATIC bool is_whole(const RowValue&) { return true; }
    template <bool whole>
    FK_DEVICE_STATIC Pack<T, Lanes> read(const RowValue& row, std::int64_t, int) {
        return splat<T, Lanes>(row.value);
    }
};

struct NoLine {
    template <typename... Ignored>
    FK_DEVICE_STATIC NoLine of(const Ignored&...) {
        return {};
    }
    FK_DEVICE_STATIC bool is_whole(const NoLine&) { return true; }
};

// The line of an operation's parameters, or of a scan's.
template <Along along, int Lanes, bool reads, typename Params>
struct LineOf {
    using type = NoLine;
};
template <Along along, int Lanes, bool reads, typename T, int Rank, Inner inner>
struct LineOf<along, Lanes, reads, StreamParams<T, Rank, inner>> {
    using type = Line<along, Lanes, T, Rank, inner>;
};
template <int Lanes, typename T, int Rank>
struct LineOf<Along::row, Lanes, true, StreamParams<T, Rank, Inner::broadcast>> {
    using type = RowValue<Lanes, T, Rank>;
};

template <typename IOp, typename = void>
struct ParamsOf {
    using type = void;
};
template <typename IOp>
struct ParamsOf<IOp, std::void_t<decltype(std::declval<IOp&>().params)>> {
    using type = decltype(std::declval<IOp&>().params);
};

template <typename IOp, typename = void>
constexpr bool is_load = false;
template <typename IOp>
constexpr bool is_load<IOp, std::void_t<typename IOp::InstanceType>> =
    fk::opIs<fk::ReadType, IOp> || fk::opIs<fk::OpenType, IOp>;

template <Along along, int Lanes, typename IOp>
using LineFor = typename LineOf<along, Lanes, is_load<IOp>, typename ParamsOf<IOp>::type>::type;

// Where the streams of a list of operations lie, for one thread. `kept(i)` is where operation i
// finds the row in shared memory, or null.
template <Along along, int Lanes, typename... IOps, typename Kept, std::size_t... Is>
FK_DEVICE_STATIC auto lines_of(const Point& thread, const fk::Tuple<IOps...>& iops,
                               const Kept& kept, std::index_sequence<Is...>) {
    const auto line = [&](const auto& iop, int number) {
        using Where = LineFor<along, Lanes, std::decay_t<decltype(iop)>>;
        if constexpr (std::is_same_v<Where, NoLine>) {
            return Where{};
        } else {
            return Where::of(thread, iop.params, kept(number));
        }
    };
    return fk::Tuple<LineFor<along, Lanes, IOps>...>(line(fk::get<Is>(iops), Is)...);
}

struct NotKept {
    __device__ __forceinline__ char* operator()(int) const { return nullptr; }
};

template <typename... Wheres, std::size_t... Is>
FK_DEVICE_STATIC bool are_whole(const fk::Tuple<Wheres...>& lines, std::index_sequence<Is...>) {
    return (Wheres::is_whole(fk::get<Is>(lines)) && ...);
}

// A chain at one pack of its lines.
template <bool whole>
struct Spot {
    std::int64_t pack;
    int lanes;
};

template <std::size_t I, bool whole, typename Chain, typename Lines, typename Value, typename Body>
FK_DEVICE_STATIC auto follow_lines(const Spot<whole>& spot, const Chain& chain, const Lines& lines,
                                   const Value& value, const Body& body) {
    if constexpr (I == Chain::size) {
        return body(value);
    } else {
        const auto& iop = fk::get<I>(chain);
        const auto& line = fk::get<I>(lines);
        using IOp = std::decay_t<decltype(iop)>;
        using Operation = typename IOp::Operation;
        using Where = std::decay_t<decltype(line)>;
        if constexpr (fk::opIs<fk::MidWriteType, IOp>) {
            Where::template write<whole>(line, spot.pack, spot.lanes,
                                         value.template get<Operation::slot>());
            return follow_lines<I + 1>(spot, chain, lines, value, body);
        } else if constexpr (fk::opIs<fk::OpenType, IOp>) {
            return follow_lines<I + 1>(
                spot, chain, lines,
                place<Operation::slot>(value,
                                       Where::template read<whole>(line, spot.pack, spot.lanes)),
                body);
        } else if constexpr (fk::opIs<fk::UnaryType, IOp>) {
            return follow_lines<I + 1>(spot, chain, lines, Operation::exec(value), body);
        } else {
            return follow_lines<I + 1>(spot, chain, lines, Operation::exec(value, iop), body);
        }
    }
}

// Calls the body with the registers at the end of a chain.
template <bool whole, typename Chain, typename Lines, typename Body>
FK_DEVICE_STATIC auto run_lines(const Spot<whole>& spot, const Chain& chain, const Lines& lines,
                                const Body& body) {
    const auto& read = fk::get<0>(chain);
    const auto& line = fk::get<0>(lines);
    using Operation = typename std::decay_t<decltype(read)>::Operation;
    using Where = std::decay_t<decltype(line)>;
    if constexpr (std::is_same_v<Where, NoLine>) {
        return follow_lines<1>(spot, chain, lines, Operation::exec(Point{}, read), body);
    } else {
        using File = typename Operation::OutputType;
        const auto pack = Where::template read<whole>(line, spot.pack, spot.lanes);
        return follow_lines<1>(spot, chain, lines, File(std::in_place, pack), body);
    }
}

template <bool whole, typename Lines, typename File, typename... Ends, std::size_t... Is>
FK_DEVICE_STATIC void write_lines(const Spot<whole>& spot, const Lines& lines,
                                  const File& registers, const fk::Tuple<Ends...>&,
                                  std::index_sequence<Is...>) {
    (std::decay_t<decltype(fk::get<Is>(lines))>::template write<whole>(
         fk::get<Is>(lines), spot.pack, spot.lanes,
         registers.template get<Ends::Operation::slot>()),
     ...);
}

// How many packs are asked for at a time: short chains wait for memory, long ones fill registers.
template <typename StageType>
constexpr int gpu_batch = stage_weight<StageType> <= 2    ? 8
                          : stage_weight<StageType> <= 12 ? 4
                          : stage_weight<StageType> <= 24 ? 2
                                                          : 1;

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

FK_HOST_DEVICE_STATIC std::int64_t power_of_two_from(std::int64_t number) {
    std::int64_t power = 1;
    while (power < number) power *= 2;
    return power;
}

// The power of two that is not less than a number, but for the limits.
FK_HOST_STATIC int power_between(std::int64_t least, std::int64_t number, std::int64_t most) {
    return static_cast<int>(power_of_two_from(smaller(number < least ? least : number, most)));
}

FK_HOST_DEVICE_FUSE std::int64_t quotient_up(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
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
