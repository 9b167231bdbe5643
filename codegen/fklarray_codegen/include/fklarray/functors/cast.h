// Casts between all data types.
#pragma once

#include <fklarray/functors/conversion.h>

namespace fklarray {

// Whatever is not zero is true, NaN too. A complex number gives its real part to a real type.
template <typename To>
struct Cast : ComponentFunctor {
    template <typename, typename...>
    using Result = To;

    template <typename V>
    FK_HOST_DEVICE_STATIC auto exec(V value) {
        if constexpr (lean::is_same_v<To, bool>) {
            return is_true(value);
        } else if constexpr (!is_complex<To> && !is_complex<V>) {
            return convert_staged<To>(value);
        } else if constexpr (!is_complex<To>) {
            return convert_staged<To>(value.re);
        } else {
            return complex_of<decltype(To::re)>(value);
        }
    }

private:
    template <typename V>
    FK_HOST_DEVICE_STATIC auto is_true(V value) {
        if constexpr (is_complex<V>) {
            return is_true(value.re) | is_true(value.im);
        } else {
            return value != V{};
        }
    }

    template <typename T, typename V>
    FK_HOST_DEVICE_STATIC auto complex_of(V value) {
        if constexpr (is_complex<V>) {
            using Component = decltype(convert_staged<T>(value.re));
            return Complex<Component>{convert_staged<T>(value.re), convert_staged<T>(value.im)};
        } else {
            using Component = decltype(convert_staged<T>(value));
            return Complex<Component>{convert_staged<T>(value), Component{}};
        }
    }
};

template <typename To>
constexpr bool is_cast<Cast<To>> = true;

}  // namespace fklarray
