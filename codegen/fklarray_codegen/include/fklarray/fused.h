// Arithmetic on registers of float32 where every processor has fused multiply-add, and division by
// a value that all elements share.
#pragma once

#include <fklarray/functor.h>

#if defined(__AVX2__) && defined(__FMA__) && !defined(__CUDACC__)
#define FKLARRAY_FUSED 1

namespace fklarray {

constexpr int native_floats = vector_bytes / sizeof(float);
using Floats = Vector<float, native_floats>;
using Ints = Vector<std::int32_t, native_floats>;

// a * b + c, rounded once.
FK_HOST_STATIC Floats fused(Floats a, Floats b, Floats c) {
#if defined(FKLARRAY_AVX512)
    return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);
#else
    return __builtin_ia32_vfmaddps256(a, b, c);
#endif
}

// Whether a lane of a is greater than that of b. gcc 12 makes vectors of AVX-512's masks first.
FK_HOST_STATIC bool any_greater(Ints a, Ints b) {
#if defined(FKLARRAY_AVX512) && !defined(__clang__)
    return __builtin_ia32_pcmpgtd512_mask(a, b, -1) != 0;
#else
    return any(a > b);
#endif
}

}  // namespace fklarray
#endif

namespace fklarray {

#if defined(FKLARRAY_FUSED) && defined(FKLARRAY_AVX512)
// A pack of a value that all elements of an array share.
struct SharedFloats : Pack<float, native_floats> {};

template <typename Pack>
constexpr bool is_shared = lean::is_same_v<Pack, SharedFloats>;

// A pack of what were integers: 0, or at least 1 and at most 2^64.
struct WholeFloats : Pack<float, native_floats> {};

FK_HOST_STATIC SharedFloats shared(const Pack<float, native_floats>& pack) { return {pack}; }
template <typename T, int Lanes>
FK_HOST_STATIC Pack<T, Lanes> shared(const Pack<T, Lanes>& pack) {
    return pack;
}

// The correctly rounded quotient (P. Markstein, "Computation of elementary functions on the IBM
// RISC System/6000 processor", 1990), for a loop in which b stays the same: compilers take the
// reciprocal out of it. What is left takes half as long as a division of 64 bytes; of 32 bytes it
// takes as long.
// benchmarks/quotients.c has tried all divisors with the dividends that are hardest to round.
template <bool is_whole>
FK_HOST_STATIC Floats quotient_by_shared(Floats a, Floats b) {
    // From 2^-60 up to 2^60 products of them are normal numbers: there the magnitude's bits and
    // this offset make one of the lowest integers. Where b lies elsewhere nothing does.
    constexpr std::int32_t least = (127 - 60) << 23;
    constexpr std::int32_t most = (127 + 60) << 23;
    constexpr std::int32_t to_lowest = INT32_MAX - least + 1;
    const Ints limit = constant<Ints>(INT32_MIN + (most - 1 - least));
    const Ints divisor = bit_cast<Ints>(b) & 0x7fffffff;
    const Floats reciprocal = 1 / b;
    const Floats near = a * reciprocal;
    const Floats nearest = fused(fused(-near, b, a), reciprocal, near);
    Ints place = divisor + to_lowest;
    if constexpr (!is_whole) {
        const Ints offset = select(place > limit, Ints{}, constant<Ints>(to_lowest));
        place = (bit_cast<Ints>(a) & 0x7fffffff) + offset;
    }
    return __builtin_expect(any_greater(place, limit), 0) ? a / b : nearest;
}

// The functor on packs, of which it may matter what is known beforehand.
template <typename Functor, typename First, typename... Rest>
FK_HOST_STATIC auto apply(const First& first, const Rest&... rest) {
    const auto result = lift<Functor>(first, rest...);
    using Result = lean::decay_t<decltype(result)>;
    if constexpr (is_shared<First> && (is_shared<Rest> && ...)) {
        return shared(result);
    } else if constexpr (is_cast<Functor> && lean::is_integral_v<typename First::value_type> &&
                         lean::is_same_v<Result, Pack<float, native_floats>>) {
        return WholeFloats{result};
    } else {
        return result;
    }
}
template <typename Functor>
FK_HOST_STATIC auto apply(const Pack<float, native_floats>& a, const SharedFloats& b) {
    if constexpr (is_quotient<Functor>) {
        return pack_of<float, native_floats>(quotient_by_shared<false>(a.vector, b.vector));
    } else {
        return lift<Functor>(a, b);
    }
}
template <typename Functor>
FK_HOST_STATIC auto apply(const WholeFloats& a, const SharedFloats& b) {
    if constexpr (is_quotient<Functor>) {
        return pack_of<float, native_floats>(quotient_by_shared<true>(a.vector, b.vector));
    } else {
        return lift<Functor>(a, b);
    }
}
#else
template <typename Value>
FK_HOST_DEVICE_STATIC const Value& shared(const Value& pack) {
    return pack;
}
template <typename Functor, typename... Packs>
FK_HOST_DEVICE_STATIC auto apply(const Packs&... packs) {
    return lift<Functor>(packs...);
}
#endif

}  // namespace fklarray
