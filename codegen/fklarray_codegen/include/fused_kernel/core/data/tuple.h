// An aggregate of values of different types that lives in registers.
#pragma once

#include <fklarray/lean.h>
#include <fused_kernel/core/utils/utils.h>

namespace fk {
namespace tuple_details {

template <std::size_t I, typename T>
struct Leaf {
    T value;
};

template <typename Indices, typename... Ts>
struct Leaves;

template <std::size_t... Is, typename... Ts>
struct Leaves<lean::index_sequence<Is...>, Ts...> : Leaf<Is, Ts>... {
    FK_HOST_DEVICE_CNST Leaves() : Leaf<Is, Ts>{}... {}
    FK_HOST_DEVICE_CNST explicit Leaves(lean::in_place_t, const Ts&... values)
        : Leaf<Is, Ts>{values}... {}
};

// Overload resolution finds the one base class with index I and deduces its type.
template <std::size_t I, typename T>
FK_HOST_DEVICE_CNST const T& leaf(const Leaf<I, T>& from) {
    return from.value;
}

template <std::size_t I, typename T>
FK_HOST_DEVICE_CNST T& leaf(Leaf<I, T>& from) {
    return from.value;
}

}  // namespace tuple_details

template <typename... Ts>
struct Tuple : tuple_details::Leaves<lean::index_sequence_for<Ts...>, Ts...> {
    using Base = tuple_details::Leaves<lean::index_sequence_for<Ts...>, Ts...>;
    static constexpr std::size_t size = sizeof...(Ts);

    FK_HOST_DEVICE_CNST Tuple() : Base() {}
    template <typename... Us,
              typename = lean::enable_if_t<(sizeof...(Us) == sizeof...(Ts)) && (sizeof...(Us) > 0)>>
    FK_HOST_DEVICE_CNST Tuple(const Us&... values) : Base(lean::in_place, values...) {}
};

template <typename... Ts>
Tuple(Ts...) -> Tuple<Ts...>;

template <std::size_t I, typename... Ts>
FK_HOST_DEVICE_CNST const auto& get(const Tuple<Ts...>& tuple) {
    return tuple_details::leaf<I>(tuple);
}

template <std::size_t I, typename... Ts>
FK_HOST_DEVICE_CNST auto& get(Tuple<Ts...>& tuple) {
    return tuple_details::leaf<I>(tuple);
}

}  // namespace fk
