// Arithmetic that IEEE 754 and two's complement define to the last bit.
#pragma once

#include <fklarray/functor.h>

namespace fklarray {

// An integer in an unsigned type, whose overflow C++ defines, while that of int is for nvcc a case
// that never occurs; anything else as it is.
template <typename V>
FK_HOST_DEVICE_STATIC auto wrapping(V x) {
    if constexpr (lean::is_integral_v<V>) {
        return static_cast<lean::conditional_t<(sizeof(V) > 4), std::uint64_t, std::uint32_t>>(x);
    } else {
        return x;
    }
}

// The cast undoes C++'s promotion of narrow integers: every result wraps in its own type.
struct Add : EachComponent {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V a, V b) {
        return static_cast<V>(wrapping(a) + wrapping(b));
    }
};

struct Subtract : EachComponent {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V a, V b) {
        return static_cast<V>(wrapping(a) - wrapping(b));
    }
};

struct Multiply : ComponentFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V a, V b) {
        return static_cast<V>(wrapping(a) * wrapping(b));
    }
};

#if defined(__CUDA_ARCH__)
// Whether products of powers of a number stay normal numbers.
FK_DEVICE_STATIC bool has_room(float x) {
    return (__float_as_uint(x) << 1) - (67u << 24) < (120u << 24);
}

// The correctly rounded quotient, by the operator's own steps (P. Markstein, "Computation of
// elementary functions on the IBM RISC System/6000 processor", 1990). Where a pack is divided by a
// scalar they share the reciprocal, which the operator would compute for every element.
FK_DEVICE_STATIC float quotient(float a, float b) {
    float rough;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(rough) : "f"(b));
    const float reciprocal = __fmaf_rn(__fmaf_rn(-b, rough, 1.0f), rough, rough);
    const float near = __fmul_rn(a, reciprocal);
    const float nearest = __fmaf_rn(__fmaf_rn(-b, near, a), reciprocal, near);
    return __builtin_expect(has_room(a) && has_room(b), 1) ? nearest : a / b;
}
#endif

struct Divide : ComponentFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V a, V b) {
#if defined(__CUDA_ARCH__)
        if constexpr (lean::is_same_v<V, float>) return quotient(a, b);
#endif
        return static_cast<V>(a / b);
    }
};

template <>
constexpr bool is_quotient<Divide> = true;

struct Negative : EachComponent {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        return static_cast<V>(-wrapping(x));
    }
};

struct Positive : ComponentFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        return x;
    }
};

struct Square : ComponentFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        return Multiply::exec(x, x);
    }
};

struct Reciprocal : ComponentFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return reciprocal(x);
        } else {
            return constant<V>(1) / x;
        }
    }
};

template <typename V>
FK_HOST_DEVICE_STATIC V absolute(V x) {
    if constexpr (is_floating<V>) {
        constexpr Element<Unsigned<V>> magnitude = static_cast<Element<Unsigned<V>>>(-1) >> 1;
        return bit_cast<V>(bit_cast<Unsigned<V>>(x) & magnitude);
    } else if constexpr (is_signed<V>) {
        return select(x < 0, Negative::exec(x), x);
    } else {
        return x;
    }
}

struct Copysign : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V magnitude, V sign) {
        using Bits = Unsigned<V>;
        constexpr Element<Bits> mask = static_cast<Element<Bits>>(-1) >> 1;
        constexpr Element<Bits> top = static_cast<Element<Bits>>(~mask);
        const auto signed_bits = (bit_cast<Bits>(magnitude) & mask) | (bit_cast<Bits>(sign) & top);
        return bit_cast<V>(static_cast<Bits>(signed_bits));
    }
};

struct Sign : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return sign(x);
        } else {
            const V zero{};
            const V positive = select(x > zero, constant<V>(1), zero);
            if constexpr (!is_signed<V>) {
                return positive;
            } else if constexpr (!is_floating<V>) {
                return select(x < zero, constant<V>(-1), positive);
            } else {
                return select(x < zero, constant<V>(-1), select(x == x, positive, x));
            }
        }
    }
};

#if !defined(__CUDACC__) && defined(__clang__) && __has_builtin(__builtin_elementwise_sqrt)
// Newer versions of clang have this instead of the processor's builtins.
template <typename V, typename = lean::enable_if_t<!is_scalar<V>>>
FK_HOST_STATIC V vector_square_root(V x) {
    return __builtin_elementwise_sqrt(x);
}
FK_HOST_STATIC Vector<float, 4> square_root(Vector<float, 4> x) { return vector_square_root(x); }
FK_HOST_STATIC Vector<double, 2> square_root(Vector<double, 2> x) { return vector_square_root(x); }
FK_HOST_STATIC Vector<float, 8> square_root(Vector<float, 8> x) { return vector_square_root(x); }
FK_HOST_STATIC Vector<double, 4> square_root(Vector<double, 4> x) { return vector_square_root(x); }
#else
#if !defined(__CUDACC__) && defined(__SSE2__)
FK_HOST_STATIC Vector<float, 4> square_root(Vector<float, 4> x) { return __builtin_ia32_sqrtps(x); }
FK_HOST_STATIC Vector<double, 2> square_root(Vector<double, 2> x) {
    return __builtin_ia32_sqrtpd(x);
}
#endif
#if !defined(__CUDACC__) && defined(__AVX__)
FK_HOST_STATIC Vector<float, 8> square_root(Vector<float, 8> x) {
    return __builtin_ia32_sqrtps256(x);
}
FK_HOST_STATIC Vector<double, 4> square_root(Vector<double, 4> x) {
    return __builtin_ia32_sqrtpd256(x);
}
#endif
#endif
FK_HOST_DEVICE_STATIC float square_root(float x) { return __builtin_sqrtf(x); }
FK_HOST_DEVICE_STATIC double square_root(double x) { return __builtin_sqrt(x); }
struct Sqrt;
template <typename V>
FK_HOST_DEVICE_STATIC V square_root(V x) {
    if constexpr (sizeof(V) > 32) {
        return halved<Sqrt>(x);
    } else {
        V root;
        for (int lane = 0; lane < Shape<V>::lanes; ++lane) root[lane] = square_root(x[lane]);
        return root;
    }
}

struct Sqrt : VectorFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (is_complex<V>) {
            return sqrt(x);
        } else {
            return square_root(x);
        }
    }
};

// Of a complex number, to about one unit in the last place; an infinity outweighs NaN.
struct Modulus {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V re, V im) {
        if constexpr (!is_scalar<V> && sizeof(Like<V, double>) > vector_bytes) {
            return halved<Modulus>(re, im);
        } else {
            const V infinity = constant<V>(static_cast<Element<V>>(__builtin_inff()));
            return select((absolute(re) == infinity) | (absolute(im) == infinity), infinity,
                          finite(re, im));
        }
    }

private:
    template <typename V>
    FK_HOST_DEVICE_STATIC V finite(V re, V im) {
        const auto x = convert<double>(re);
        const auto y = convert<double>(im);
        if constexpr (sizeof(Element<V>) < sizeof(double)) {
            return convert<Element<V>>(square_root(x * x + y * y));
        } else {
            // By a power of two, so that no square overflows, and none that counts underflows.
            const V great = constant<V>(0x1p600);
            const V small = constant<V>(0x1p-600);
            const V one = constant<V>(1);
            const V greater = select(absolute(x) < absolute(y), absolute(y), absolute(x));
            const auto is_great = greater > 0x1p500;
            const auto is_small = greater < 0x1p-500;
            const V scale = select(is_great, small, select(is_small, great, one));
            const V back = select(is_great, great, select(is_small, small, one));
            const V a = x * scale, b = y * scale;
            return square_root(a * a + b * b) * back;
        }
    }
};

struct Abs : ComponentFunctor {
    template <typename T>
    struct Magnitude {
        using type = T;
    };
    template <typename T>
    struct Magnitude<Complex<T>> {
        using type = T;
    };
    template <typename T, typename...>
    using Result = typename Magnitude<T>::type;

    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V x) {
        if constexpr (is_complex<V>) {
            return Modulus::exec(x.re, x.im);
        } else {
            return absolute(x);
        }
    }
};

}  // namespace fklarray
