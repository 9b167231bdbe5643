// Complex numbers: C's layout, and the C library's functions. In arithmetic the components may be
// vectors as well.
#pragma once

#include <fklarray/functor.h>

namespace fklarray {

template <typename T>
struct Complex {
    T re;
    T im;
};

template <typename T>
FK_HOST_DEVICE_STATIC Complex<T> operator+(Complex<T> a, Complex<T> b) {
    return {a.re + b.re, a.im + b.im};
}

template <typename T>
FK_HOST_DEVICE_STATIC Complex<T> operator-(Complex<T> a, Complex<T> b) {
    return {a.re - b.re, a.im - b.im};
}

template <typename T>
FK_HOST_DEVICE_STATIC Complex<T> operator-(Complex<T> z) {
    return {-z.re, -z.im};
}

// Rounded: of a difference and a sum of products side by side gcc 12 makes one fused instruction,
// -ffp-contract=off or not.
template <typename T>
FK_HOST_DEVICE_STATIC T product(T a, T b) {
#if !defined(__clang__) && !defined(__CUDACC__) && __GNUC__ >= 12
    return __builtin_assoc_barrier(a * b);
#else
    return a * b;
#endif
}

template <typename T>
FK_HOST_DEVICE_STATIC Complex<T> operator*(Complex<T> a, Complex<T> b) {
    return {product(a.re, b.re) - product(a.im, b.im), product(a.re, b.im) + product(a.im, b.re)};
}

template <typename T>
FK_HOST_DEVICE_STATIC T magnitude_of(T x) {
    return select(x < 0, static_cast<T>(-x), x);
}

// Smith's algorithm: scaled by the divisor's greater component, so that nothing overflows early.
template <typename T>
FK_HOST_DEVICE_STATIC Complex<T> operator/(Complex<T> a, Complex<T> b) {
    const auto turned = magnitude_of(b.re) < magnitude_of(b.im);
    const T greater = select(turned, b.im, b.re);
    const T smaller = select(turned, b.re, b.im);
    const T along = select(turned, a.im, a.re);
    const T across = select(turned, a.re, a.im);
    const T ratio = select(greater == 0, smaller, static_cast<T>(smaller / greater));
    const T scale = 1 / (greater + smaller * ratio);
    const T scaled = along * ratio;
    return {(along + across * ratio) * scale,
            select(turned, static_cast<T>(scaled - across), static_cast<T>(across - scaled)) *
                scale};
}

template <typename T>
FK_HOST_DEVICE_STATIC auto operator==(Complex<T> a, Complex<T> b) {
    return (a.re == b.re) & (a.im == b.im);
}

template <typename T>
FK_HOST_DEVICE_STATIC auto operator!=(Complex<T> a, Complex<T> b) {
    return (a.re != b.re) | (a.im != b.im);
}

template <typename T>
FK_HOST_DEVICE_STATIC Complex<T> reciprocal(Complex<T> z) {
    return Complex<T>{T{} + 1, T{}} / z;
}

#if !defined(__CUDACC__)
// complex64 is computed in complex128: C libraries' own float functions lose up to half the digits.
FK_HOST_STATIC double _Complex c_value(double re, double im) {
    double _Complex value;
    __real__ value = re;
    __imag__ value = im;
    return value;
}

template <typename T>
FK_HOST_STATIC double _Complex c_value(Complex<T> z) {
    return c_value(z.re, z.im);
}

template <typename T>
FK_HOST_STATIC Complex<T> from_c(double _Complex value) {
    return {static_cast<T>(__real__ value), static_cast<T>(__imag__ value)};
}

#define FKLARRAY_COMPLEX_FUNCTION(name)                                                            \
    template <typename T>                                                                          \
    FK_HOST_STATIC Complex<T> name(Complex<T> z) {                                                 \
        return from_c<T>(__builtin_c##name(c_value(z)));                                           \
    }
FKLARRAY_COMPLEX_FUNCTION(exp)
FKLARRAY_COMPLEX_FUNCTION(log)
FKLARRAY_COMPLEX_FUNCTION(sqrt)
FKLARRAY_COMPLEX_FUNCTION(cos)
FKLARRAY_COMPLEX_FUNCTION(sinh)
FKLARRAY_COMPLEX_FUNCTION(cosh)
FKLARRAY_COMPLEX_FUNCTION(asin)
FKLARRAY_COMPLEX_FUNCTION(acos)
FKLARRAY_COMPLEX_FUNCTION(atan)
FKLARRAY_COMPLEX_FUNCTION(asinh)
FKLARRAY_COMPLEX_FUNCTION(acosh)
FKLARRAY_COMPLEX_FUNCTION(atanh)

#undef FKLARRAY_COMPLEX_FUNCTION

// C leaves the sign of the zero at infinity to sin(2 * im), the standard to im.
template <typename T>
FK_HOST_STATIC Complex<T> tanh(Complex<T> z) {
    if (magnitude_of(z.re) == static_cast<T>(__builtin_inff())) {
        return {static_cast<T>(__builtin_copysign(1.0, z.re)),
                static_cast<T>(__builtin_copysign(0.0, z.im))};
    }
    return from_c<T>(__builtin_ctanh(c_value(z)));
}

// -1j * f(1j * z) for the hyperbolic sibling f: the special cases are that function's.
template <typename T>
FK_HOST_STATIC Complex<T> sin(Complex<T> z) {
    const Complex<T> turned = from_c<T>(__builtin_csinh(c_value(-z.im, z.re)));
    return {turned.im, -turned.re};
}

template <typename T>
FK_HOST_STATIC Complex<T> tan(Complex<T> z) {
    const Complex<T> turned = tanh(Complex<T>{-z.im, z.re});
    return {turned.im, -turned.re};
}

template <typename T>
FK_HOST_STATIC Complex<T> log2(Complex<T> z) {
    const double _Complex value = __builtin_clog(c_value(z));
    constexpr double ln2 = 0x1.62e42fefa39efp-1;
    return {static_cast<T>(__real__ value / ln2), static_cast<T>(__imag__ value / ln2)};
}

template <typename T>
FK_HOST_STATIC Complex<T> log10(Complex<T> z) {
    const double _Complex value = __builtin_clog(c_value(z));
    constexpr double ln10 = 0x1.26bb1bbb55516p+1;
    return {static_cast<T>(__real__ value / ln10), static_cast<T>(__imag__ value / ln10)};
}

// Near zero |1 + z|^2 - 1 is summed from its parts, of which 1 has gone.
template <typename T>
FK_HOST_STATIC Complex<T> log1p(Complex<T> z) {
    const double re = z.re, im = z.im;
    if (re > -0.5 && re < 0.5 && im > -0.5 && im < 0.5) {
        return {static_cast<T>(0.5 * __builtin_log1p(re * (2 + re) + im * im)),
                static_cast<T>(__builtin_atan2(im, 1 + re))};
    }
    return from_c<T>(__builtin_clog(c_value(1 + re, im)));
}

// exp(re) * cos(im) - 1 as (exp(re) - 1) * cos(im) - (1 - cos(im)): no digits cancel near zero.
template <typename T>
FK_HOST_STATIC Complex<T> expm1(Complex<T> z) {
    const double re = z.re, im = z.im;
    if (re == 0 && im == 0) return {0, z.im};
    if (re > -50 && re < 50 && im - im == 0) {
        const double half_sine = __builtin_sin(im / 2);
        return {static_cast<T>(__builtin_expm1(re) * __builtin_cos(im) - 2 * half_sine * half_sine),
                static_cast<T>(__builtin_exp(re) * __builtin_sin(im))};
    }
    const double _Complex value = __builtin_cexp(c_value(z));
    return {static_cast<T>(__real__ value - 1), static_cast<T>(__imag__ value)};
}

// By squaring: small integer powers of integers are exact.
template <typename Real>
FK_HOST_STATIC Complex<Real> small_power(Complex<Real> base, int exponent) {
    Complex<Real> power{1, 0};
    for (int rest = exponent < 0 ? -exponent : exponent; rest != 0; rest >>= 1) {
        if (rest & 1) power = power * base;
        base = base * base;
    }
    return exponent < 0 ? reciprocal(power) : power;
}

FK_HOST_STATIC Complex<double> c_power(Complex<double> x, Complex<double> y) {
    return from_c<double>(__builtin_cpow(c_value(x), c_value(y)));
}

FK_HOST_STATIC Complex<long double> c_power(Complex<long double> x, Complex<long double> y) {
    long double _Complex base, exponent;
    __real__ base = x.re;
    __imag__ base = x.im;
    __real__ exponent = y.re;
    __imag__ exponent = y.im;
    const long double _Complex power = __builtin_cpowl(base, exponent);
    return {__real__ power, __imag__ power};
}

// exp(y * log(x)), of which the product loses as many digits as the exponent is long: it is
// computed in more of them.
template <typename T>
FK_HOST_STATIC Complex<T> pow(Complex<T> x, Complex<T> y) {
    using Real = lean::conditional_t<sizeof(T) == 4, double, long double>;
    if (y.im == 0 && y.re >= -64 && y.re <= 64 && y.re == static_cast<int>(y.re)) {
        const Complex<Real> power = small_power(Complex<Real>{x.re, x.im}, static_cast<int>(y.re));
        // Infinities and zeros are left to the general case.
        const Real sum = magnitude_of(power.re) + magnitude_of(power.im);
        if (y.re == 0 || (sum - sum == 0 && sum != 0)) {
            return {static_cast<T>(power.re), static_cast<T>(power.im)};
        }
    }
    const Complex<Real> power = c_power(Complex<Real>{x.re, x.im}, Complex<Real>{y.re, y.im});
    return {static_cast<T>(power.re), static_cast<T>(power.im)};
}

// A unit number, or zero. Along an infinite part it is a unit, and across that zero, as in NumPy.
template <typename T>
FK_HOST_STATIC Complex<T> sign(Complex<T> z) {
    const double infinity = __builtin_inf();
    const bool is_along = magnitude_of(z.re) == infinity;
    const bool is_across = magnitude_of(z.im) == infinity;
    if (z.re != z.re || z.im != z.im || (is_along && is_across)) {
        const T nan = static_cast<T>(__builtin_nan(""));
        return {nan, nan};
    }
    if (z.re == 0 && z.im == 0) return {0, 0};
    if (is_along) return {static_cast<T>(__builtin_copysign(1.0, z.re)), 0};
    if (is_across) return {0, static_cast<T>(__builtin_copysign(1.0, z.im))};
    // In float64, and far from its limits, so that the magnitude has all its digits.
    const double sum = magnitude_of<double>(z.re) / 2 + magnitude_of<double>(z.im) / 2;
    const double scale = sum > 0x1p900 ? 0x1p-200 : sum < 0x1p-900 ? 0x1p200 : 1.0;
    const double re = z.re * scale, im = z.im * scale;
    const double magnitude = __builtin_hypot(re, im);
    return {static_cast<T>(re / magnitude), static_cast<T>(im / magnitude)};
}
#endif

}  // namespace fklarray
