// How a functor, written for one element, is applied to packs, and the vocabulary functors are
// written in: the same expression works on a scalar and on a compiler vector.
#pragma once

#include <fklarray/pack.h>

// Vectors wider than a register are passed between inlined functions only: there is no ABI to warn
// about.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace fklarray {

template <typename T>
constexpr bool is_complex = false;
template <typename T>
constexpr bool is_complex<Complex<T>> = true;

// Parent of functors whose exec() is a template that takes compiler vectors as it takes scalars.
// Comparisons on vectors give masks of 0 and -1; Result says that they mean bool.
struct VectorFunctor {
    static constexpr bool is_long = false;
    static constexpr bool by_component = false;
    template <typename T, typename...>
    using Result = T;
    template <typename... Ts>
    static constexpr bool on_vectors = (lean::is_arithmetic_v<Ts> && ...);
};

// Parent of the vector functors that also take complex numbers whose components are vectors.
struct ComponentFunctor : VectorFunctor {
    template <typename...>
    static constexpr bool on_vectors = true;
};

// Parent of those that do the same to every component of complex numbers, which stay together.
struct EachComponent : ComponentFunctor {
    static constexpr bool by_component = true;
};

// Parent of the functors that ask a question.
struct Predicate : ComponentFunctor {
    template <typename, typename...>
    using Result = bool;
};

// The functor that does Functor's work on operands of type T. Bytes of bool look like uint8 in a
// vector, so where the two differ the type has to decide.
template <typename Functor, typename T>
struct FunctorFor {
    using type = Functor;
};

// For numbers of 16 bits, of which float16.h knows more: whether a functor takes their bits, and
// packs of values rounded to the type.
template <typename Functor>
constexpr bool on_stored_bits = false;
template <typename T>
struct Rounded;

template <int Bytes>
struct IntegerOf;
template <>
struct IntegerOf<1> {
    using signed_type = std::int8_t;
    using unsigned_type = std::uint8_t;
};
template <>
struct IntegerOf<2> {
    using signed_type = std::int16_t;
    using unsigned_type = std::uint16_t;
};
template <>
struct IntegerOf<4> {
    using signed_type = std::int32_t;
    using unsigned_type = std::uint32_t;
};
template <>
struct IntegerOf<8> {
    using signed_type = std::int64_t;
    using unsigned_type = std::uint64_t;
};

// What one lane of a vector holds; a scalar is its own only lane. Like<V, T> has V's lanes of T.
template <typename V, bool = lean::is_arithmetic_v<V>>
struct Shape {
    using element = V;
    static constexpr int lanes = 1;
    template <typename T>
    using like = T;
};

#if !defined(__CUDACC__)
template <typename V>
struct Shape<V, false> {
    using element = lean::decay_t<decltype(lean::declval<V&>()[0])>;
    static constexpr int lanes = sizeof(V) / sizeof(element);
    template <typename T>
    using like = Vector<T, lanes>;
};
#endif

template <typename V>
using Element = typename Shape<V>::element;
template <typename V, typename T>
using Like = typename Shape<V>::template like<T>;
template <typename V>
using Signed = Like<V, typename IntegerOf<sizeof(Element<V>)>::signed_type>;
template <typename V>
using Unsigned = Like<V, typename IntegerOf<sizeof(Element<V>)>::unsigned_type>;

template <typename V>
constexpr bool is_floating = lean::is_floating_point_v<Element<V>>;
template <typename V>
constexpr bool is_signed = lean::is_signed_v<Element<V>>;
template <typename V>
constexpr bool is_scalar = lean::is_arithmetic_v<V>;
template <typename V>
constexpr int element_bits = 8 * sizeof(Element<V>);

// The same value in every lane; subtracting zero keeps the sign of -0.0.
template <typename V>
FK_HOST_DEVICE_STATIC V constant(Element<V> value) {
    return static_cast<V>(value - V{});
}

// The same bits, read as another type of the same size.
template <typename To, typename From>
FK_HOST_DEVICE_STATIC To bit_cast(const From& from) {
    static_assert(sizeof(To) == sizeof(From), "Only the type changes");
    To to;
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
}

// Lanes of a where the mask (of a comparison) is set, of b elsewhere.
template <typename Mask, typename V>
FK_HOST_DEVICE_STATIC V select(Mask mask, V a, V b) {
    return mask ? a : b;
}

// Lane by lane conversion of values.
template <typename T, typename V>
FK_HOST_DEVICE_STATIC Like<V, T> convert(V value) {
#if !defined(__CUDACC__)
    if constexpr (!is_scalar<V>) {
        return __builtin_convertvector(value, Like<V, T>);
    } else
#endif
    {
        return static_cast<T>(value);
    }
}

// Integers to an integer type of at least their size, doubling it step by step.
template <typename T, typename V>
FK_HOST_DEVICE_STATIC Like<V, T> widen(V value) {
#if defined(__AVX2__) && !defined(__clang__) && !defined(__CUDACC__)
    // gcc takes up to eight instructions where this is one.
#if defined(FKLARRAY_AVX512)
    if constexpr (sizeof(T) == 4 && sizeof(Element<V>) == 1 && sizeof(V) == 16) {
        const auto bytes = bit_cast<Vector<char, 16>>(value);
        const Vector<int, 16> none{};
        return is_signed<V>
                   ? bit_cast<Like<V, T>>(__builtin_ia32_pmovsxbd512_mask(bytes, none, -1))
                   : bit_cast<Like<V, T>>(__builtin_ia32_pmovzxbd512_mask(bytes, none, -1));
    } else if constexpr (sizeof(T) == 4 && sizeof(Element<V>) == 2 && sizeof(V) == 32) {
        const auto words = bit_cast<Vector<short, 16>>(value);
        const Vector<int, 16> none{};
        return is_signed<V>
                   ? bit_cast<Like<V, T>>(__builtin_ia32_pmovsxwd512_mask(words, none, -1))
                   : bit_cast<Like<V, T>>(__builtin_ia32_pmovzxwd512_mask(words, none, -1));
    } else
#endif
        if constexpr (sizeof(T) == 4 && sizeof(Element<V>) == 1 && sizeof(V) == 8) {
        const Vector<std::uint64_t, 2> low = {bit_cast<std::uint64_t>(value), 0};
        const auto bytes = bit_cast<Vector<char, 16>>(low);
        return is_signed<V> ? bit_cast<Like<V, T>>(__builtin_ia32_pmovsxbd256(bytes))
                            : bit_cast<Like<V, T>>(__builtin_ia32_pmovzxbd256(bytes));
    } else if constexpr (sizeof(T) == 4 && sizeof(Element<V>) == 2 && sizeof(V) == 16) {
        const auto words = bit_cast<Vector<short, 8>>(value);
        return is_signed<V> ? bit_cast<Like<V, T>>(__builtin_ia32_pmovsxwd256(words))
                            : bit_cast<Like<V, T>>(__builtin_ia32_pmovzxwd256(words));
    } else
#endif
        if constexpr (sizeof(T) > 2 * sizeof(Element<V>)) {
        using Integer = IntegerOf<2 * sizeof(Element<V>)>;
        return widen<T>(convert<lean::conditional_t<is_signed<V>, typename Integer::signed_type,
                                                    typename Integer::unsigned_type>>(value));
    } else {
        return convert<T>(value);
    }
}

// Integers to an integer type of at most their size, halving it step by step.
template <typename T, typename V>
FK_HOST_DEVICE_STATIC Like<V, T> narrow(V value) {
#if defined(FKLARRAY_AVX512) && !defined(__clang__)
    if constexpr (sizeof(T) == 1 && sizeof(Element<V>) == 4 && sizeof(V) == 64) {
        const Vector<char, 16> none{};
        return bit_cast<Like<V, T>>(
            __builtin_ia32_pmovdb512_mask(bit_cast<Vector<int, 16>>(value), none, -1));
    } else if constexpr (sizeof(T) == 2 && sizeof(Element<V>) == 4 && sizeof(V) == 64) {
        const Vector<short, 16> none{};
        return bit_cast<Like<V, T>>(
            __builtin_ia32_pmovdw512_mask(bit_cast<Vector<int, 16>>(value), none, -1));
    } else
#endif
        if constexpr (2 * sizeof(T) < sizeof(Element<V>)) {
        return narrow<T>(convert<typename IntegerOf<sizeof(Element<V>) / 2>::unsigned_type>(value));
    } else {
        return convert<T>(value);
    }
}

// Whether a lane is not zero; of a mask, whether it is set.
template <typename V>
FK_HOST_DEVICE_STATIC bool any(V value) {
#if defined(__CUDACC__)
    return value != 0;
#else
    if constexpr (is_scalar<V>) {
        return value != 0;
    } else if constexpr (sizeof(V) > 32) {
        const auto part = bit_cast<Halves<Vector<Element<V>, Shape<V>::lanes / 2>>>(value);
        return any(part.low | part.high);
#if defined(__AVX__)
    } else if constexpr (sizeof(V) == 32) {
        return __builtin_ia32_pmovmskb256(bit_cast<Vector<char, 32>>(value != 0)) != 0;
#endif
    } else if constexpr (sizeof(V) > 8) {
        const auto words = bit_cast<Vector<std::uint64_t, sizeof(V) / 8>>(value);
        std::uint64_t bits = 0;
        for (int word = 0; word < static_cast<int>(sizeof(V) / 8); ++word) bits |= words[word];
        return bits != 0;
    } else {
        return bit_cast<typename IntegerOf<sizeof(V)>::unsigned_type>(value) != 0;
    }
#endif
}

template <typename Mask>
FK_HOST_DEVICE_STATIC bool all(Mask mask) {
    return !any(mask == 0);
}

// One lane after the other.
template <typename Functor, typename T, int Lanes, typename... Packs>
FK_HOST_DEVICE_STATIC auto lift_lanes(const Pack<T, Lanes>& first, const Packs&... rest) {
    Pack<typename Functor::template Result<T, typename Packs::value_type...>, Lanes> result;
    for (int lane = 0; lane < Lanes; ++lane) {
        result.set(lane, Functor::exec(first.get(lane), rest.get(lane)...));
    }
    return result;
}

#if !defined(__CUDACC__)
#if defined(__clang__) || __GNUC__ >= 12
#define FKLARRAY_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define FKLARRAY_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Signed<decltype(a)>{__VA_ARGS__})
#endif

// Not through memory, where gcc can: a load of what two stores have written waits for both.
template <typename V, std::size_t... Is>
FK_HOST_STATIC auto joined(V low, V high, lean::index_sequence<Is...>) {
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(low, high, Is...);
#else
    return bit_cast<Vector<Element<V>, sizeof...(Is)>>(Halves<V>{low, high});
#endif
}

// The function on the lower and the upper half of vectors: for what needs wider lanes inside than
// outside, and would not fit into registers whole.
template <typename Function, typename V, typename... Vs>
FK_HOST_STATIC auto halved(V x, Vs... rest) {
    using Half = Halves<Vector<Element<V>, Shape<V>::lanes / 2>>;
    const auto low = Function::exec(bit_cast<Half>(x).low, bit_cast<Half>(rest).low...);
    const auto high = Function::exec(bit_cast<Half>(x).high, bit_cast<Half>(rest).high...);
    using Part = lean::remove_const_t<decltype(low)>;
    return joined(low, high, lean::make_index_sequence<2 * Shape<Part>::lanes>());
}

// What functors on vectors take: complex numbers come apart into a vector of each component.
template <typename T, int Lanes, typename Indices = lean::make_index_sequence<Lanes>>
struct Components;

template <typename T, int Lanes, std::size_t... Is>
struct Components<Complex<T>, Lanes, lean::index_sequence<Is...>> {
    using Part = Vector<T, Lanes>;
    FK_HOST_STATIC Complex<Part> split(const Halves<Part>& numbers) {
        return {FKLARRAY_SHUFFLE(numbers.low, numbers.high, (2 * Is)...),
                FKLARRAY_SHUFFLE(numbers.low, numbers.high, (2 * Is + 1)...)};
    }
    FK_HOST_STATIC Halves<Part> join(const Complex<Part>& parts) {
        return {FKLARRAY_SHUFFLE(parts.re, parts.im, (Is / 2 + Is % 2 * Lanes)...),
                FKLARRAY_SHUFFLE(parts.re, parts.im, ((Is + Lanes) / 2 + Is % 2 * Lanes)...)};
    }
};

template <typename T, int Lanes>
FK_HOST_STATIC auto registers_of(const Pack<T, Lanes>& pack) {
    if constexpr (is_complex<T>) {
        return Components<T, Lanes>::split(pack.vector);
    } else {
        return pack.vector;
    }
}

template <typename T, int Lanes, typename Value>
FK_HOST_STATIC Pack<T, Lanes> pack_of(const Value& value) {
    Pack<T, Lanes> pack;
    if constexpr (is_complex<T>) {
        pack.vector = Components<T, Lanes>::join(value);
    } else if constexpr (lean::is_same_v<Value, Vector<T, Lanes>>) {
        pack.vector = value;
    } else {
        static_assert(lean::is_same_v<T, bool>, "Only masks are turned into results");
        pack.vector = narrow<unsigned char>(value) & 1;
    }
    return pack;
}
#else
// Scalars have no halves: only named, in branches that are never taken.
template <typename Function, typename V, typename... Vs>
V halved(V x, Vs... rest);
#endif

// Functors know 16-bit numbers as the float32 values they are, or as their bits.
template <typename T, int Lanes>
FK_HOST_DEVICE_STATIC const Pack<T, Lanes>& stored_bits(const Pack<T, Lanes>& pack) {
    return pack;
}
template <typename T, int Lanes>
FK_HOST_DEVICE_STATIC const Pack<T, Lanes>& values_of(const Pack<T, Lanes>& pack) {
    return pack;
}

template <typename T, typename Bits, int Lanes>
FK_HOST_DEVICE_STATIC Pack<T, Lanes> from_stored_bits(const Pack<Bits, Lanes>& bits) {
    Pack<T, Lanes> pack;
#if defined(__CUDACC__)
    for (int lane = 0; lane < Lanes; ++lane) {
        T value;
        memcpy(&value, &bits.vector[lane], sizeof value);
        pack.set(lane, value);
    }
#else
    pack.vector = bits.vector;
#endif
    return pack;
}

// What it matters to know of a functor: that it divides floating-point numbers, or only casts.
template <typename Functor>
constexpr bool is_quotient = false;
template <typename Functor>
constexpr bool is_cast = false;

// What computes two numbers at once, in types for which there is such a thing.
template <typename T, typename Name, typename... Rest>
struct OnPairs {
    static constexpr bool exists = false;
};

template <typename Name, typename T, int Lanes, typename... Packs>
FK_HOST_DEVICE_STATIC auto lift(const Pack<T, Lanes>& first, const Packs&... rest) {
    using Functor = typename FunctorFor<Name, T>::type;
    using Result = typename Name::template Result<T, typename Packs::value_type...>;
    using Pairs = OnPairs<T, Name, typename Packs::value_type...>;
    if constexpr (Pairs::exists && Lanes % 2 == 0) {
        return Pairs::lift(first, rest...);
    } else if constexpr (is_sixteen_bits<T> ||
                         (is_sixteen_bits<typename Packs::value_type> || ...) ||
                         is_sixteen_bits<Result>) {
        if constexpr (on_stored_bits<Functor>) {
            return from_stored_bits<Result>(
                lift<Functor>(stored_bits(first), stored_bits(rest)...));
        } else if constexpr (is_sixteen_bits<Result>) {
            return Rounded<Result>::from(lift<Functor>(values_of(first), values_of(rest)...));
        } else {
            return lift<Functor>(values_of(first), values_of(rest)...);
        }
#if !defined(__CUDACC__)
    } else if constexpr (is_complex<T> && Functor::by_component) {
        return Pack<T, Lanes>{{Functor::exec(first.vector.low, rest.vector.low...),
                               Functor::exec(first.vector.high, rest.vector.high...)}};
    } else if constexpr (Lanes > 1 &&
                         Functor::template on_vectors<T, typename Packs::value_type...>) {
        return pack_of<Result, Lanes>(Functor::exec(registers_of(first), registers_of(rest)...));
#endif
    } else {
        return lift_lanes<Functor>(first, rest...);
    }
}

}  // namespace fklarray
