// What these headers need of <type_traits> and <utility>, under the same names: reading those two
// takes longer than reading all of ours, in every compilation that a user waits for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lean {

template <bool, typename Then, typename>
struct conditional {
    using type = Then;
};
template <typename Then, typename Else>
struct conditional<false, Then, Else> {
    using type = Else;
};
template <bool condition, typename Then, typename Else>
using conditional_t = typename conditional<condition, Then, Else>::type;

template <bool, typename T = void>
struct enable_if {};
template <typename T>
struct enable_if<true, T> {
    using type = T;
};
template <bool condition, typename T = void>
using enable_if_t = typename enable_if<condition, T>::type;

template <typename...>
struct make_void {
    using type = void;
};
template <typename... Ts>
using void_t = typename make_void<Ts...>::type;

template <typename, typename>
constexpr bool is_same_v = false;
template <typename T>
constexpr bool is_same_v<T, T> = true;

template <typename T, typename... Arguments>
constexpr bool is_constructible_v = __is_constructible(T, Arguments...);

template <typename T>
struct remove_const {
    using type = T;
};
template <typename T>
struct remove_const<const T> {
    using type = T;
};
template <typename T>
using remove_const_t = typename remove_const<T>::type;

template <typename T>
struct decay {
    using type = remove_const_t<T>;
};
template <typename T>
struct decay<T&> {
    using type = remove_const_t<T>;
};
template <typename T>
struct decay<T&&> {
    using type = remove_const_t<T>;
};
// Of objects: neither arrays nor functions.
template <typename T>
using decay_t = typename decay<T>::type;

template <typename T>
T&& declval() noexcept;

template <typename T>
constexpr bool is_floating_point_v =
    is_same_v<T, float> || is_same_v<T, double> || is_same_v<T, long double>;

template <typename>
struct Unsigned {
    static constexpr bool exists = false;
};
#define FKLARRAY_INTEGER(T, U)                                                                     \
    template <>                                                                                    \
    struct Unsigned<T> {                                                                           \
        static constexpr bool exists = true;                                                       \
        using type = U;                                                                            \
    };
FKLARRAY_INTEGER(bool, void)
FKLARRAY_INTEGER(char, unsigned char)
FKLARRAY_INTEGER(signed char, unsigned char)
FKLARRAY_INTEGER(unsigned char, unsigned char)
FKLARRAY_INTEGER(short, unsigned short)
FKLARRAY_INTEGER(unsigned short, unsigned short)
FKLARRAY_INTEGER(int, unsigned int)
FKLARRAY_INTEGER(unsigned int, unsigned int)
FKLARRAY_INTEGER(long, unsigned long)
FKLARRAY_INTEGER(unsigned long, unsigned long)
FKLARRAY_INTEGER(long long, unsigned long long)
FKLARRAY_INTEGER(unsigned long long, unsigned long long)
#undef FKLARRAY_INTEGER

template <typename T>
constexpr bool is_integral_v = Unsigned<T>::exists;
template <typename T>
using make_unsigned_t = typename Unsigned<T>::type;
template <typename T>
constexpr bool is_arithmetic_v = is_integral_v<T> || is_floating_point_v<T>;

template <typename T, bool = is_arithmetic_v<T>>
constexpr bool is_signed_v = T(-1) < T(0);
template <typename T>
constexpr bool is_signed_v<T, false> = false;

template <typename T, T... Is>
struct integer_sequence {};
#if defined(__clang__)
template <typename T, T count>
using make_integer_sequence = __make_integer_seq<integer_sequence, T, count>;
#else
template <typename T, T count>
using make_integer_sequence = integer_sequence<T, __integer_pack(count)...>;
#endif
template <std::size_t... Is>
using index_sequence = integer_sequence<std::size_t, Is...>;
template <std::size_t count>
using make_index_sequence = make_integer_sequence<std::size_t, count>;
template <typename... Ts>
using index_sequence_for = make_index_sequence<sizeof...(Ts)>;

struct in_place_t {};
constexpr in_place_t in_place{};

}  // namespace lean
