// Elementary functions on packs: those of inline_math.h, or glibc's libmvec, which is called by
// name: which form of a function runs must not depend on what an optimiser makes of the loop around
// it, since the last bits differ.
#pragma once

#include <fklarray/functor.h>
#include <fklarray/inline_math.h>

#if defined(FKLARRAY_VECTOR_MATH) && !defined(__CUDACC__) && defined(__SSE2__)
#define FKLARRAY_LIBMVEC 1
#endif

#if defined(FKLARRAY_LIBMVEC)
#if defined(__AVX2__)
#define FKLARRAY_LIBMVEC_32(arguments, name) _ZGVdN8##arguments##_##name##f
#define FKLARRAY_LIBMVEC_64(arguments, name) _ZGVdN4##arguments##_##name
#else
#define FKLARRAY_LIBMVEC_32(arguments, name) _ZGVbN4##arguments##_##name##f
#define FKLARRAY_LIBMVEC_64(arguments, name) _ZGVbN2##arguments##_##name
#endif

namespace fklarray {
// AVX-512 takes those of AVX2 twice, whose last bits are the ones that were tested.
constexpr int library_bytes = vector_bytes < 32 ? vector_bytes : 32;
using NativeFloats = Vector<float, library_bytes / sizeof(float)>;
using NativeDoubles = Vector<double, library_bytes / sizeof(double)>;
}  // namespace fklarray

#define FKLARRAY_DECLARE_NATIVE_1(name)                                                            \
    extern "C" NativeFloats FKLARRAY_LIBMVEC_32(v, name)(NativeFloats);                            \
    extern "C" NativeDoubles FKLARRAY_LIBMVEC_64(v, name)(NativeDoubles);
#define FKLARRAY_DECLARE_NATIVE_2(name)                                                            \
    extern "C" NativeFloats FKLARRAY_LIBMVEC_32(vv, name)(NativeFloats, NativeFloats);             \
    extern "C" NativeDoubles FKLARRAY_LIBMVEC_64(vv, name)(NativeDoubles, NativeDoubles);
#define FKLARRAY_NATIVE_1(name, V, floats)                                                         \
    using Register = V;                                                                            \
    FK_HOST_STATIC V native(V x) { return floats; }                                                \
    FK_HOST_STATIC NativeDoubles native(NativeDoubles x) { return FKLARRAY_LIBMVEC_64(v, name)(x); }
#define FKLARRAY_NATIVE_2(name)                                                                    \
    using Register = NativeFloats;                                                                 \
    FK_HOST_STATIC NativeFloats native(NativeFloats x, NativeFloats y) {                           \
        return FKLARRAY_LIBMVEC_32(vv, name)(x, y);                                                \
    }                                                                                              \
    FK_HOST_STATIC NativeDoubles native(NativeDoubles x, NativeDoubles y) {                        \
        return FKLARRAY_LIBMVEC_64(vv, name)(x, y);                                                \
    }
#else
#define FKLARRAY_DECLARE_NATIVE_1(name)
#define FKLARRAY_DECLARE_NATIVE_2(name)
#define FKLARRAY_NATIVE_1(name, V, floats)
#define FKLARRAY_NATIVE_2(name)
#endif

// C's function of one number or its lane. For a device clang knows them by their names alone.
#if defined(__CUDACC__)
#define FKLARRAY_C_FUNCTION(name) ::name
#else
#define FKLARRAY_C_FUNCTION(name) __builtin_##name
#endif

// Declares library::name, a function of one or two arguments, for elementary() below.
#define FKLARRAY_ELEMENTARY_1(name)                                                                \
    FKLARRAY_ELEMENTARY_OF(name, NativeFloats, FKLARRAY_LIBMVEC_32(v, name)(x))
#if defined(FKLARRAY_FUSED)
#define FKLARRAY_ELEMENTARY_INLINED_1(name) FKLARRAY_ELEMENTARY_OF(name, Floats, inlined::name(x))
#else
#define FKLARRAY_ELEMENTARY_INLINED_1(name) FKLARRAY_ELEMENTARY_1(name)
#endif
#define FKLARRAY_ELEMENTARY_OF(name, V, floats)                                                    \
    FKLARRAY_DECLARE_NATIVE_1(name)                                                                \
    namespace library {                                                                            \
    struct name {                                                                                  \
        FKLARRAY_NATIVE_1(name, V, floats)                                                         \
        FK_HOST_DEVICE_STATIC float lane(float x) { return FKLARRAY_C_FUNCTION(name##f)(x); }      \
        FK_HOST_DEVICE_STATIC double lane(double x) { return FKLARRAY_C_FUNCTION(name)(x); }       \
    };                                                                                             \
    }
#define FKLARRAY_ELEMENTARY_2(name)                                                                \
    FKLARRAY_DECLARE_NATIVE_2(name)                                                                \
    namespace library {                                                                            \
    struct name {                                                                                  \
        FKLARRAY_NATIVE_2(name)                                                                    \
        FK_HOST_DEVICE_STATIC float lane(float x, float y) {                                       \
            return FKLARRAY_C_FUNCTION(name##f)(x, y);                                             \
        }                                                                                          \
        FK_HOST_DEVICE_STATIC double lane(double x, double y) {                                    \
            return FKLARRAY_C_FUNCTION(name)(x, y);                                                \
        }                                                                                          \
    };                                                                                             \
    }

namespace fklarray {

// Parent of the functors that take some dozen instructions or more.
struct ElementaryFunctor : VectorFunctor {
    static constexpr bool is_long = true;
};

// The library's scalar function, one lane after the other.
template <typename Function, typename V, typename... Vs>
FK_HOST_DEVICE_STATIC V elementary_lanes(V x, Vs... rest) {
    if constexpr (is_scalar<V>) {
        return Function::lane(x, rest...);
    } else {
        V result;
        for (int lane = 0; lane < Shape<V>::lanes; ++lane) {
            result[lane] = Function::lane(x[lane], rest[lane]...);
        }
        return result;
    }
}

#if defined(FKLARRAY_LIBMVEC)
// Narrow values repeat themselves until they fill a register; zeros could take a slow path.
template <typename Native, typename V>
FK_HOST_STATIC Native padded(V x) {
    if constexpr (is_scalar<V>) {
        return constant<Native>(x);
    } else {
        V copies[sizeof(Native) / sizeof(V)];
        for (V& copy : copies) copy = x;
        return bit_cast<Native>(copies);
    }
}

template <typename Function>
struct Elementary {
    template <typename V, typename... Vs>
    FK_HOST_STATIC V exec(V x, Vs... rest) {
        using Native = lean::conditional_t<lean::is_same_v<Element<V>, float>,
                                           typename Function::Register, NativeDoubles>;
        if constexpr (lean::is_same_v<V, Native>) {
            return Function::native(x, rest...);
        } else if constexpr (sizeof(V) > sizeof(Native)) {
            return halved<Elementary>(x, rest...);
        } else {
            const Native result = Function::native(padded<Native>(x), padded<Native>(rest)...);
            V lanes;
            __builtin_memcpy(&lanes, &result, sizeof(V));
            return lanes;
        }
    }
};

template <typename Function, typename V, typename... Vs>
FK_HOST_STATIC V elementary(V x, Vs... rest) {
    return Elementary<Function>::exec(x, rest...);
}
#else
template <typename Function, typename V, typename... Vs>
FK_HOST_DEVICE_STATIC V elementary(V x, Vs... rest) {
    return elementary_lanes<Function>(x, rest...);
}
#endif

}  // namespace fklarray
