// Reductions: how the values of many elements become one. What they are combined in depends on
// their number alone, neither on strides nor on packs or threads:
//   - elements come in chunks of 128, in which element i belongs to partial value i % 16;
//   - a chunk's partial values are folded in halves: 0 with 8, 1 with 9, and so on;
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

constexpr int chunk_length = 128;
constexpr int partial_values = 16;

// The least value of a type; infinite where the type has that.
template <typename T>
FK_HOST_DEVICE_STATIC T least() {
    if constexpr (std::is_floating_point_v<T>) {
        return static_cast<T>(-__builtin_inff());
    } else {
        return std::is_signed_v<T> ? static_cast<T>(T{1} << (8 * sizeof(T) - 1)) : T{0};
    }
}

template <typename T>
FK_HOST_DEVICE_STATIC T greatest() {
    if constexpr (std::is_floating_point_v<T>) {
        return static_cast<T>(__builtin_inff());
    } else {
        return static_cast<T>(~least<T>());
    }
}

template <typename T, int Lanes>
FK_HOST_DEVICE_STATIC Pack<T, Lanes / 2> half_of(const Pack<T, Lanes>& pack, int which) {
    Pack<T, Lanes / 2> half;
    __builtin_memcpy(&half, reinterpret_cast<const char*>(&pack) + which * sizeof(half),
                     sizeof(half));
    return half;
}

// Of a pack that was moved back by `shift`: its `valid` lanes at the front, a value behind them.
template <typename T, int Lanes>
FK_HOST_DEVICE_STATIC Pack<T, Lanes> moved_forward(const Pack<T, Lanes>& pack, int shift, int valid,
                                                   T filler) {
    const Pack<T, Lanes> fill = splat<T, Lanes>(filler);
    char lanes[2 * sizeof(pack)];
    __builtin_memcpy(lanes, &pack, sizeof(pack));
    __builtin_memcpy(lanes + (shift + valid) * sizeof(T), &fill, sizeof(fill));
    Pack<T, Lanes> result;
    __builtin_memcpy(&result, lanes + shift * sizeof(T), sizeof(result));
    return result;
}

// By an elementwise functor. The state is a pack of partial values; `neutral` changes nothing it
// is combined with, not even -0.0.
template <typename Functor>
struct ReductionBy {
    template <typename T>
    using Result = T;
    template <typename T, int Lanes>
    using State = Pack<T, Lanes>;

    // `index` is the first lane's, and grows by Step.
    template <int Step, typename T, int Lanes>
    FK_HOST_DEVICE_STATIC Pack<T, Lanes> start(const Pack<T, Lanes>& values, std::int64_t) {
        return values;
    }
    template <typename T, int Lanes>
    FK_HOST_DEVICE_STATIC Pack<T, Lanes> combine(const Pack<T, Lanes>& a, const Pack<T, Lanes>& b) {
        return lift<Functor>(a, b);
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

// The first place of the extreme value, or of NaN.
template <typename Extreme, typename IsBetter>
struct Position {
    template <typename T>
    using Result = std::int64_t;
    template <typename T, int Lanes>
    struct State {
        Pack<T, Lanes> value;
        Pack<std::int64_t, Lanes> index;
    };

    template <typename T>
    FK_HOST_DEVICE_STATIC T neutral() {
        return Extreme::template neutral<T>();
    }
    template <int Step, typename T, int Lanes>
    FK_HOST_DEVICE_STATIC State<T, Lanes> start(const Pack<T, Lanes>& values, std::int64_t index) {
        State<T, Lanes> state{values, splat<std::int64_t, Lanes>(index)};
        if constexpr (Step != 0) {
            for (int lane = 0; lane < Lanes; ++lane) state.index.vector[lane] += Step * lane;
        }
        return state;
    }
    template <typename T, int Lanes>
    FK_HOST_DEVICE_STATIC State<T, Lanes> combine(const State<T, Lanes>& a,
                                                  const State<T, Lanes>& b) {
        const auto x = a.value.vector;
        const auto y = b.value.vector;
        // Lanes of b are taken where they are better, or as good and earlier.
        auto better = IsBetter::exec(y, x);
        auto equal = x == y;
        if constexpr (std::is_floating_point_v<T>) {
            better = (better | (y != y)) & (x == x);
            equal = equal | ((x != x) & (y != y));
        }
        const auto earlier = b.index.vector < a.index.vector;
        using Wide = std::decay_t<decltype(earlier)>;
        const Wide take = mask_like<Wide>(better) | (mask_like<Wide>(equal) & earlier);
        State<T, Lanes> state;
        state.index.vector = select(take, b.index.vector, a.index.vector);
        state.value.vector = select(mask_like<std::decay_t<decltype(better)>>(take), y, x);
        return state;
    }
    template <typename T, int Lanes>
    FK_HOST_DEVICE_STATIC State<T, Lanes / 2> half(const State<T, Lanes>& state, int which) {
        return {half_of(state.value, which), half_of(state.index, which)};
    }
    template <typename T, int Lanes>
    FK_HOST_DEVICE_STATIC Pack<std::int64_t, Lanes> result(const State<T, Lanes>& state) {
        return state.index;
    }

private:
    // A mask with lanes of another size.
    template <typename To, typename From>
    FK_HOST_DEVICE_STATIC To mask_like(From mask) {
        return convert<Element<To>>(mask);
    }
};

struct Argmax : Position<Max, Greater> {};
struct Argmin : Position<Min, Less> {};

}  // namespace fklarray
