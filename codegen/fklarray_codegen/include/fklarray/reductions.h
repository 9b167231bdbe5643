// Reductions: how the values of many elements become one. What they are combined in depends on
// their number alone, neither on strides nor on packs or threads:
//   - elements come in chunks of 512, in which element i belongs to partial value i % 32;
//   - a chunk's partial values are folded in halves: 0 with 16, 1 with 17, and so on;
//   - chunks are combined with their neighbours, those pairs with theirs, and so on; what is left
//     over is combined from the last to the first.
// So the error of a sum grows with the logarithm of the number, as in pairwise summation.
#pragma once

#include <fklarray/functors/arithmetic.h>
#include <fklarray/functors/bitwise.h>
#include <fklarray/functors/comparison.h>
#include <fklarray/functors/selection.h>
#include <fklarray/streams.h>

namespace fklarray {

constexpr int chunk_length = 512;
constexpr int partial_values = 32;

// The least value of a type; infinite where the type has that.
template <typename T>
FK_HOST_DEVICE_STATIC T least() {
    if constexpr (lean::is_floating_point_v<T>) {
        return static_cast<T>(-__builtin_inff());
    } else {
        return lean::is_signed_v<T> ? static_cast<T>(T{1} << (8 * sizeof(T) - 1)) : T{0};
    }
}

template <typename T>
FK_HOST_DEVICE_STATIC T greatest() {
    if constexpr (lean::is_floating_point_v<T>) {
        return static_cast<T>(__builtin_inff());
    } else {
        return static_cast<T>(~least<T>());
    }
}

template <typename T, int Lanes>
FK_HOST_DEVICE_STATIC Pack<T, Lanes / 2> half_of(const Pack<T, Lanes>& pack, int which) {
    Pack<T, Lanes / 2> half;
#if defined(FKLARRAY_AVX512) && !defined(__clang__)
    // gcc 12 takes a register of 64 bytes apart in memory.
    if constexpr (sizeof(pack) == 64) {
        using Words = Vector<long long, 8>;
        const Words words = bit_cast<Words>(pack);
        return bit_cast<Pack<T, Lanes / 2>>(
            which == 0 ? __builtin_shufflevector(words, words, 0, 1, 2, 3)
                       : __builtin_shufflevector(words, words, 4, 5, 6, 7));
    }
#endif
    __builtin_memcpy(&half, reinterpret_cast<const char*>(&pack) + which * sizeof(half),
                     sizeof(half));
    return half;
}

#if defined(__AVX2__) && !defined(__CUDACC__)
struct EightWords {
    using Words = Vector<std::int32_t, 8>;
    static constexpr Words places = {0, 1, 2, 3, 4, 5, 6, 7};
    FK_HOST_STATIC Words permuted(Words words, Words from) {
        return __builtin_ia32_permvarsi256(words, from);
    }
};
#if defined(FKLARRAY_AVX512)
struct SixteenWords {
    using Words = Vector<std::int32_t, 16>;
    static constexpr Words places = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    FK_HOST_STATIC Words permuted(Words words, Words from) {
#if defined(__clang__)
        return __builtin_ia32_permvarsi512(words, from);
#else
        return __builtin_ia32_permvarsi512_mask(words, from, words, -1);
#endif
    }
};
template <int Bytes>
using WordsOf = lean::conditional_t<Bytes == 32, EightWords, SixteenWords>;
#else
template <int Bytes>
using WordsOf = EightWords;
#endif
#endif

// Of a pack that was moved back by `shift`: its `valid` lanes at the front, a value behind them.
template <typename T, int Lanes>
FK_HOST_DEVICE_STATIC Pack<T, Lanes>
moved_forward(const Pack<T, Lanes>& pack, [[maybe_unused]] int shift, int valid, T filler) {
#if defined(__CUDACC__)
    Pack<T, Lanes> result = pack;  // which no GPU moves
    for (int lane = 0; lane < Lanes; ++lane) {
        if (lane >= valid) result.set(lane, filler);
    }
    return result;
#else
    const Pack<T, Lanes> fill = splat<T, Lanes>(filler);
#if defined(__AVX2__)
    // Not through memory: a load of what two stores have written waits for both.
    if constexpr (sizeof(pack) >= 32 && sizeof(pack) <= vector_bytes && sizeof(T) % 4 == 0) {
        using Register = WordsOf<sizeof(pack)>;
        using Words = typename Register::Words;
        constexpr int words = sizeof(T) / 4;
        const Words moved =
            Register::permuted(bit_cast<Words>(pack), Register::places + shift * words);
        return bit_cast<Pack<T, Lanes>>(
            select(Register::places < valid * words, moved, bit_cast<Words>(fill)));
    } else
#endif
    {
        char lanes[2 * sizeof(pack)];
        __builtin_memcpy(lanes, &pack, sizeof(pack));
        __builtin_memcpy(lanes + (shift + valid) * sizeof(T), &fill, sizeof(fill));
        Pack<T, Lanes> result;
        __builtin_memcpy(&result, lanes + shift * sizeof(T), sizeof(result));
        return result;
    }
#endif
}

// By an elementwise functor. The state is a pack of partial values; `neutral` changes nothing it
// is combined with, not even -0.0.
template <typename Functor>
struct ReductionBy {
    static constexpr bool by_component = Functor::by_component;
    template <typename T>
    using Result = T;
    template <typename T, int Lanes>
    using State = Pack<T, Lanes>;
    template <typename T, int Lanes>
    using Folded = Pack<T, Lanes>;
    // Whether the result does not depend on the order in which elements are combined. Of equal
    // zeros an extreme is the one that comes last.
    template <typename T>
    static constexpr bool any_order = lean::is_integral_v<T>;

    // With the number of the pack in its row, or of the row across which packs lie.
    template <typename T, int Lanes>
    FK_HOST_DEVICE_STATIC Pack<T, Lanes> start(const Pack<T, Lanes>& values, std::int64_t) {
        return values;
    }
    template <typename T, int Lanes>
    FK_HOST_DEVICE_STATIC Pack<T, Lanes> append(const Pack<T, Lanes>& a, const Pack<T, Lanes>& b) {
        return lift<Functor>(a, b);
    }
    template <typename T, int Lanes>
    FK_HOST_DEVICE_STATIC Pack<T, Lanes> combine(const Pack<T, Lanes>& a, const Pack<T, Lanes>& b) {
        return lift<Functor>(a, b);
    }
    // Of single elements.
    template <typename T>
    FK_HOST_DEVICE_STATIC T append_one(T a, T b) {
        if constexpr (is_sixteen_bits<T>) {
            return lift<Functor>(splat<T, 1>(a), splat<T, 1>(b)).get(0);
        } else {
            return static_cast<T>(Functor::exec(a, b));
        }
    }
    template <int Step, typename T, int Lanes>
    FK_HOST_DEVICE_STATIC const Pack<T, Lanes>& folding(const Pack<T, Lanes>& state) {
        return state;
    }
    template <typename T, int Lanes>
    FK_HOST_DEVICE_STATIC Pack<T, Lanes / 2> half(const Pack<T, Lanes>& state, int which) {
        return half_of(state, which);
    }
    template <typename T, int Lanes>
    FK_HOST_DEVICE_STATIC Pack<T, Lanes> result(const Pack<T, Lanes>& state) {
        return state;
    }
};

struct Sum : ReductionBy<Add> {
    template <typename T>
    FK_HOST_DEVICE_STATIC T neutral() {
        if constexpr (is_complex<T>) {
            return {-0.0f, -0.0f};
        } else {
            return static_cast<T>(-0.0f);
        }
    }
};

struct Prod : ReductionBy<Multiply> {
    template <typename T>
    FK_HOST_DEVICE_STATIC T neutral() {
        if constexpr (is_complex<T>) {
            return {1, 0};
        } else {
            return 1;
        }
    }
};

struct Max : ReductionBy<Maximum> {
    template <typename T>
    FK_HOST_DEVICE_STATIC T neutral() {
        return least<T>();
    }
};

struct Min : ReductionBy<Minimum> {
    template <typename T>
    FK_HOST_DEVICE_STATIC T neutral() {
        return greatest<T>();
    }
};

struct Any : ReductionBy<LogicalOr> {
    template <typename T>
    FK_HOST_DEVICE_STATIC T neutral() {
        return false;
    }
};

struct All : ReductionBy<LogicalAnd> {
    template <typename T>
    FK_HOST_DEVICE_STATIC T neutral() {
        return true;
    }
};

// A value and where in its row it was. While packs are taken in one after the other, that is the
// number of the pack, as an integer of the value's size; lanes are folded by the element's number.
template <typename T, typename Index, int Lanes>
struct PlacedPack {
    Pack<T, Lanes> value;
    Pack<Index, Lanes> index;
};

template <typename T>
using PackNumber = lean::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;

// The first place of the extreme value, or of NaN.
template <typename Extreme, typename IsBetter>
struct Position {
    template <typename T>
    using Result = std::int64_t;
    template <typename T, int Lanes>
    using State = PlacedPack<T, PackNumber<T>, Lanes>;
    template <typename T, int Lanes>
    using Folded = PlacedPack<T, std::int64_t, Lanes>;
    template <typename T>
    static constexpr bool any_order = true;

    template <typename T>
    FK_HOST_DEVICE_STATIC T neutral() {
        return Extreme::template neutral<T>();
    }
    template <typename T, int Lanes>
    FK_HOST_DEVICE_STATIC State<T, Lanes> start(const Pack<T, Lanes>& values, std::int64_t number) {
        using Index = PackNumber<T>;
        return {values, splat<Index, Lanes>(static_cast<Index>(number))};
    }
#if defined(__CUDACC__)
    // b comes later than a: where they are as good, a stays.
    template <typename T, int Lanes>
    FK_HOST_DEVICE_STATIC State<T, Lanes> append(const State<T, Lanes>& a,
                                                 const State<T, Lanes>& b) {
        State<T, Lanes> state = a;
        for (int lane = 0; lane < Lanes; ++lane) {
            if (is_better(b.value.get(lane), a.value.get(lane))) place(state, b, lane);
        }
        return state;
    }
    template <typename T, typename Index, int Lanes>
    FK_HOST_DEVICE_STATIC PlacedPack<T, Index, Lanes>
    combine(const PlacedPack<T, Index, Lanes>& a, const PlacedPack<T, Index, Lanes>& b) {
        PlacedPack<T, Index, Lanes> state = a;
        for (int lane = 0; lane < Lanes; ++lane) {
            const T x = a.value.get(lane);
            const T y = b.value.get(lane);
            const bool equal = x == y || (x != x && y != y);
            const bool earlier = b.index.get(lane) < a.index.get(lane);
            if (is_better(y, x) || (equal && earlier)) place(state, b, lane);
        }
        return state;
    }
    // Step is 1 where the lanes are elements of the row, 0 where they belong to different rows.
    template <int Step, typename T, int Lanes>
    FK_HOST_DEVICE_STATIC Folded<T, Lanes> folding(const State<T, Lanes>& state) {
        Folded<T, Lanes> folded{state.value, {}};
        for (int lane = 0; lane < Lanes; ++lane) {
            const std::int64_t number = state.index.get(lane);
            folded.index.set(lane, Step == 0 ? number : number * Lanes + lane);
        }
        return folded;
    }
#else
    // b comes later than a: where they are as good, a stays.
    template <typename T, int Lanes>
    FK_HOST_DEVICE_STATIC State<T, Lanes> append(const State<T, Lanes>& a,
                                                 const State<T, Lanes>& b) {
        return chosen(is_better(b.value.vector, a.value.vector), a, b);
    }
    template <typename T, typename Index, int Lanes>
    FK_HOST_DEVICE_STATIC PlacedPack<T, Index, Lanes>
    combine(const PlacedPack<T, Index, Lanes>& a, const PlacedPack<T, Index, Lanes>& b) {
        const auto x = a.value.vector;
        const auto y = b.value.vector;
        auto equal = x == y;
        if constexpr (lean::is_floating_point_v<T>) equal = equal | ((x != x) & (y != y));
        using Mask = lean::decay_t<decltype(equal)>;
        const Mask earlier = mask_like<Mask>(b.index.vector < a.index.vector);
        return chosen(is_better(y, x) | (equal & earlier), a, b);
    }
    // Step is 1 where the lanes are elements of the row, 0 where they belong to different rows.
    template <int Step, typename T, int Lanes>
    FK_HOST_DEVICE_STATIC Folded<T, Lanes> folding(const State<T, Lanes>& state) {
        std::int64_t lanes[Lanes];
        for (int lane = 0; lane < Lanes; ++lane) lanes[lane] = Step * lane;
        Folded<T, Lanes> folded{state.value, {}};
        __builtin_memcpy(&folded.index, lanes, sizeof(lanes));
        folded.index.vector +=
            convert<std::int64_t>(state.index.vector) * (Step == 0 ? 1 : std::int64_t{Lanes});
        return folded;
    }
#endif
    template <typename T, int Lanes>
    FK_HOST_DEVICE_STATIC Folded<T, Lanes / 2> half(const Folded<T, Lanes>& state, int which) {
        return {half_of(state.value, which), half_of(state.index, which)};
    }
    template <typename T, int Lanes>
    FK_HOST_DEVICE_STATIC Pack<std::int64_t, Lanes> result(const Folded<T, Lanes>& state) {
        return state.index;
    }

private:
    template <typename V>
    FK_HOST_DEVICE_STATIC auto is_better(V y, V x) {
        auto better = IsBetter::exec(y, x);
        if constexpr (is_floating<V>) better = (better | (y != y)) & (x == x);
        return better;
    }
#if defined(__CUDACC__)
    template <typename T, typename Index, int Lanes>
    FK_HOST_DEVICE_STATIC void place(PlacedPack<T, Index, Lanes>& state,
                                     const PlacedPack<T, Index, Lanes>& from, int lane) {
        state.value.set(lane, from.value.get(lane));
        state.index.set(lane, from.index.get(lane));
    }
#else
    // A mask with lanes of another size.
    template <typename To, typename From>
    FK_HOST_DEVICE_STATIC To mask_like(From mask) {
        return convert<Element<To>>(mask);
    }
    template <typename Mask, typename T, typename Index, int Lanes>
    FK_HOST_DEVICE_STATIC PlacedPack<T, Index, Lanes>
    chosen(Mask mask, const PlacedPack<T, Index, Lanes>& a, const PlacedPack<T, Index, Lanes>& b) {
        PlacedPack<T, Index, Lanes> state;
        state.value.vector = select(mask, b.value.vector, a.value.vector);
        state.index.vector =
            select(mask_like<lean::decay_t<decltype(a.index.vector < a.index.vector)>>(mask),
                   b.index.vector, a.index.vector);
        return state;
    }
#endif
};

struct Argmax : Position<Max, Greater> {};
struct Argmin : Position<Min, Less> {};

}  // namespace fklarray
