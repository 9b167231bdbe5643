// A pack: the same value of several neighbouring elements, as one SIMD register (or a few).
// Packs are what flows through a chain of Operations. Every element of an array goes through the
// same instructions, wherever it lies: the end of a row is a full pack too, so that the last
// elements never take a scalar path whose last bit differs.
#pragma once

#include <fklarray/lean.h>
#include <fused_kernel/core/utils/utils.h>

namespace fklarray {

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define FKLARRAY_AVX512 1
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <typename T>
struct Complex;
template <typename Format>
struct SixteenBits;

// Whether numbers of the type are floating-point numbers of 16 bits (see float16.h).
template <typename T>
constexpr bool is_sixteen_bits = false;
template <typename Format>
constexpr bool is_sixteen_bits<SixteenBits<Format>> = true;

// Size of what is computed with: numbers of 16 bits take part as float32.
template <typename T>
constexpr int component_bytes = sizeof(T);
template <typename T>
constexpr int component_bytes<Complex<T>> = sizeof(T);
template <typename Format>
constexpr int component_bytes<SixteenBits<Format>> = sizeof(float);

#if defined(__CUDACC__)
// How many elements a pack holds in a kernel over these types: the widest take one access of 16
// bytes. With more, packs of wide types take several accesses that lie apart for neighbours.
template <typename... Ts>
constexpr int pack_lanes() {
    std::size_t widest = 1;
    ((widest = sizeof(Ts) > widest ? sizeof(Ts) : widest), ...);
    return static_cast<int>(vector_bytes / widest);
}

// The same where elements of a pack lie apart in a tile: longer packs meet in few of its banks.
template <typename... Ts>
constexpr int interleaved_lanes() {
    return pack_lanes<Ts...>() < 4 ? pack_lanes<Ts...>() : 4;
}

template <typename T, int Lanes>
struct Pack {
    using value_type = T;
    static constexpr int lanes = Lanes;
    T vector[Lanes];

    FK_HOST_DEVICE_CNST T get(int lane) const { return vector[lane]; }
    FK_HOST_DEVICE_CNST void set(int lane, T value) { vector[lane] = value; }
};

template <typename T, int Lanes>
FK_HOST_DEVICE_STATIC Pack<T, Lanes> splat(T value) {
    Pack<T, Lanes> pack;
    for (int lane = 0; lane < Lanes; ++lane) pack.set(lane, value);
    return pack;
}
#else
constexpr int most_lanes = 32;

// How many elements a pack holds in a kernel over these types: the widest fills one register, or
// there are as many as a reduction has partial values.
template <typename... Ts>
constexpr int pack_lanes() {
    int widest = 1;
    ((widest = component_bytes<Ts> > widest ? component_bytes<Ts> : widest), ...);
    return vector_bytes / widest < most_lanes ? vector_bytes / widest : most_lanes;
}

template <typename T, int Lanes>
struct VectorOf {
    typedef T type __attribute__((vector_size(sizeof(T) * Lanes)));
};
template <int Lanes>
struct VectorOf<bool, Lanes> : VectorOf<unsigned char, Lanes> {};

template <typename T, int Lanes>
using Vector = typename VectorOf<T, Lanes>::type;

// Real and integer types, and bool as bytes of 0 and 1, are compiler vectors.
template <typename T, int Lanes, typename = void>
struct Pack {
    using value_type = T;
    static constexpr int lanes = Lanes;
    Vector<T, Lanes> vector;

    FK_HOST_DEVICE_CNST T get(int lane) const { return static_cast<T>(vector[lane]); }
    FK_HOST_DEVICE_CNST void set(int lane, T value) { vector[lane] = value; }
};

// Floating-point numbers of 16 bits are vectors of their bits.
template <typename T, int Lanes>
struct Pack<T, Lanes, lean::enable_if_t<is_sixteen_bits<T>>> {
    using value_type = T;
    static constexpr int lanes = Lanes;
    Vector<std::uint16_t, Lanes> vector;

    FK_HOST_DEVICE_CNST T get(int lane) const {
        T value;
        value.bits = vector[lane];
        return value;
    }
    FK_HOST_DEVICE_CNST void set(int lane, T value) { vector[lane] = value.bits; }
};

template <typename V>
struct Halves {
    V low;
    V high;
};

// Complex numbers are two vectors of components, which take turns.
template <typename T, int Lanes>
struct Pack<Complex<T>, Lanes> {
    using value_type = Complex<T>;
    static constexpr int lanes = Lanes;
    Halves<Vector<T, Lanes>> vector;

    FK_HOST_DEVICE_CNST T component(int number) const {
        return number < Lanes ? vector.low[number] : vector.high[number - Lanes];
    }
    FK_HOST_DEVICE_CNST void set_component(int number, T value) {
        if (number < Lanes) {
            vector.low[number] = value;
        } else {
            vector.high[number - Lanes] = value;
        }
    }
    FK_HOST_DEVICE_CNST Complex<T> get(int lane) const {
        return {component(2 * lane), component(2 * lane + 1)};
    }
    FK_HOST_DEVICE_CNST void set(int lane, Complex<T> value) {
        set_component(2 * lane, value.re);
        set_component(2 * lane + 1, value.im);
    }
};

template <typename T, int Lanes>
FK_HOST_DEVICE_STATIC Pack<T, Lanes> splat(T value) {
    Pack<T, Lanes> pack;
    if constexpr (lean::is_arithmetic_v<T>) {
        using Lane = lean::conditional_t<lean::is_same_v<T, bool>, unsigned char, T>;
        pack.vector = static_cast<Lane>(value) - Vector<T, Lanes>{};
    } else {
        for (int lane = 0; lane < Lanes; ++lane) pack.set(lane, value);
    }
    return pack;
}

#endif

}  // namespace fklarray
