// Special functions beyond the standard: error functions, the normal distribution, entropies.
#pragma once

#include <fklarray/functors/division.h>
#include <fklarray/functors/exponential.h>
#include <fklarray/functors/hyperbolic.h>

#if !defined(__CUDACC__)
extern "C" double lgamma_r(double, int*);
#endif

namespace fklarray {

// A function of float64 on vectors of any floating-point type: float32 results are rounded once.
template <typename Function>
struct InFloat64 {
    template <typename V, typename... Vs>
    FK_HOST_DEVICE_STATIC V exec(V x, Vs... rest) {
        if constexpr (!is_scalar<V> && sizeof(Like<V, double>) > vector_bytes) {
            return halved<InFloat64>(x, rest...);
        } else {
            return convert<Element<V>>(
                Function::exec(convert<double>(x), convert<double>(rest)...));
        }
    }
};

FKLARRAY_ELEMENTARY_1(erf)
struct Erf : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        return elementary<library::erf>(x);
    }
};

FKLARRAY_ELEMENTARY_1(erfc)
struct Erfc : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        return elementary<library::erfc>(x);
    }
};

// Of the smaller exponential, which cannot overflow.
struct Expit : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        const V one = constant<V>(1);
        const V exponential = elementary<library::exp>(static_cast<V>(-absolute(x)));
        return select(x < 0, exponential, select(x == x, one, x)) / (one + exponential);
    }
};

// Around 1/2, where the quotient is near 1, as 2 * atanh(2 * x - 1), of which nothing is rounded.
struct Logit : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        if constexpr (sizeof(Element<V>) < sizeof(double)) {
            return InFloat64<Quotient>::exec(x);
        } else {
            const V middle = 2 * x - 1;
            const auto is_middle = absolute(middle) < constant<V>(0.5);
            const V inner = 2 * elementary<library::atanh>(select(is_middle, middle, V{}));
            return select(is_middle, inner, Quotient::exec(x));
        }
    }

private:
    struct Quotient {
        template <typename V>
        FK_HOST_DEVICE_STATIC V exec(V x) {
            return elementary<library::log>(x / (1 - x));
        }
    };
};

struct Entr : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        const V infinity = constant<V>(__builtin_inff());
        const V product = -x * elementary<library::log>(select(x > 0, x, constant<V>(1)));
        const V result = select(x < 0, static_cast<V>(-infinity), product);
        return select(x == 0, V{}, result);
    }
};

// Zero times anything is zero, but for NaN.
template <typename V>
FK_HOST_DEVICE_STATIC V times_logarithm(V x, V y, V logarithm) {
    return select((x == 0) & (y == y), V{}, static_cast<V>(x * logarithm));
}

struct Xlogy : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x, V y) {
        return times_logarithm(x, y, elementary<library::log>(y));
    }
};

struct Xlog1py : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x, V y) {
        return times_logarithm(x, y, elementary<library::log1p>(y));
    }
};

// x * log(x / y), and infinite where x or y is not one of a probability.
struct RelEntr : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x, V y) {
        const V zero{};
        const V infinity = constant<V>(__builtin_inff());
        const auto inside = (x > zero) & (y > zero);
        const V one = constant<V>(1);
        const V numerator = select(inside, x, one);
        const V denominator = select(inside, y, one);
        const V product = numerator * InFloat64<LogarithmOfRatio>::exec(numerator, denominator);
        const V outside = select((x == zero) & (y >= zero), zero, infinity);
        const V result = select(inside, product, outside);
        return select((x == x) & (y == y), result, static_cast<V>(x + y));
    }

private:
    struct LogarithmOfRatio {
        template <typename V>
        FK_HOST_DEVICE_STATIC V exec(V x, V y) {
            const V ratio = x / y;
            // Neighbours have an exact difference.
            const auto near = (ratio > constant<V>(0.5)) & (ratio < constant<V>(2));
            const V difference = select(near, static_cast<V>((x - y) / y), V{});
            const V close = elementary<library::log1p>(difference);
            V distant = elementary<library::log>(ratio);
            const auto lost = (ratio < constant<V>(0x1p-1000)) | (ratio > constant<V>(0x1p1000));
            if (__builtin_expect(any(lost), 0)) {
                const V parts = elementary<library::log>(x) - elementary<library::log>(y);
                distant = select(lost, parts, distant);
            }
            return select(near, close, distant);
        }
    };
};

// Probability that a standard normal variable is below x.
struct Ndtr : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        return InFloat64<Probability>::exec(x);
    }

    // erfc(-x / sqrt(2)) / 2. Far below zero the last bit of the quotient is worth hundreds in the
    // result: what rounding it has cut off goes in by the derivative of erfc.
    struct Probability {
        template <typename V>
        FK_HOST_DEVICE_STATIC V exec(V x) {
            const V root = constant<V>(0x1.6a09e667f3bcdp-1);
            const V rest = constant<V>(-0x1.bdd3413b26456p-55);
            const V two_over_root_pi = constant<V>(0x1.20dd750429b6dp+0);
            const auto near = (x > constant<V>(-40)) & (x < constant<V>(10));
            const V limited = select(near, x, V{});
            const V product = limited * root;
            const V cut_off = product_error(limited, root, product) + limited * rest;
            const V density =
                two_over_root_pi * elementary<library::exp>(static_cast<V>(-product * product));
            const V whole = select(near, static_cast<V>(-product), static_cast<V>(-x * root));
            return constant<V>(0.5) * (elementary<library::erfc>(whole) + cut_off * density);
        }
    };
};

struct LogNdtr : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        return InFloat64<Logarithm>::exec(x);
    }

private:
    struct Logarithm {
        template <typename V>
        FK_HOST_DEVICE_STATIC V exec(V x) {
            const V tail = Ndtr::Probability::exec(static_cast<V>(-absolute(x)));
            const auto below = x < 0;
            const V above_half = elementary<library::log1p>(static_cast<V>(-tail));
            V result = select(below, elementary<library::log>(tail), above_half);
            const auto far = x < constant<V>(-30);
            if (__builtin_expect(any(far), 0)) result = select(far, asymptotic(x), result);
            return result;
        }

        // Abramowitz and Stegun, 26.2.12.
        template <typename V>
        FK_HOST_DEVICE_STATIC V asymptotic(V x) {
            const V square = x * x;
            const V inverse = 1 / square;
            const V half_log_two_pi = constant<V>(0x1.d67f1c864beb5p-1);
            const V series =
                inverse * (inverse * (inverse * (inverse * (105 - 945 * inverse) - 15) + 3) - 1);
            return elementary<library::log1p>(series) - elementary<library::log>(absolute(x)) -
                   half_log_two_pi - square / 2;
        }
    };
};

namespace library {
struct lgamma {
    FK_HOST_DEVICE_STATIC double lane(double x) {
#if defined(__CUDACC__)
        return ::lgamma(x);
#else
        // lgamma itself writes the sign to a variable that all threads share.
        int sign;
        return lgamma_r(x, &sign);
#endif
    }
};
}  // namespace library

struct Gammaln : ElementaryFunctor {
    template <typename V>
    FK_HOST_DEVICE_STATIC V exec(V x) {
        return InFloat64<Logarithm>::exec(x);
    }

private:
    struct Logarithm {
        template <typename V>
        FK_HOST_DEVICE_STATIC V exec(V x) {
            // C has plus infinity here.
            const V infinity = constant<V>(__builtin_inff());
            return select(x == -infinity, x, elementary_lanes<library::lgamma>(x));
        }
    };
};

}  // namespace fklarray
