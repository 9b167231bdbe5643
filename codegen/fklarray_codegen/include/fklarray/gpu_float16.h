// Numbers of 16 bits two at a time on a GPU, where the result has the bits that float32 would give.
#pragma once

#include <fklarray/float16.h>

#if defined(__CUDA_ARCH__)
namespace fklarray {

FK_DEVICE_STATIC float near_reciprocal(float x) {
    float reciprocal;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(x));
    return reciprocal;
}

// One copy of what is seldom needed.
[[maybe_unused]] static __device__ __noinline__ float slow_quotient(float a, float b) {
    return a / b;
}

#define FKLARRAY_PAIR_INSTRUCTION(name, instruction)                                               \
    FK_DEVICE_STATIC std::uint32_t name(std::uint32_t a, std::uint32_t b) {                        \
        std::uint32_t result;                                                                      \
        asm(instruction " %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));                           \
        return result;                                                                             \
    }

// The first number of a pair is in the low half.
template <>
struct Pairs<Binary16> {
    FK_DEVICE_STATIC void widen(std::uint32_t pair, float& first, float& second) {
        first = Binary16::widened(static_cast<std::uint16_t>(pair));
        second = Binary16::widened(static_cast<std::uint16_t>(pair >> 16));
    }
    FK_DEVICE_STATIC std::uint32_t rounded(float first, float second) {
        std::uint32_t pair;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
        return pair;
    }
    // A sum of two of these numbers, or their product, that is rounded at once has the bits of one
    // that is rounded to float32 before.
    FKLARRAY_PAIR_INSTRUCTION(sum, "add.rn.f16x2")
    FKLARRAY_PAIR_INSTRUCTION(difference, "sub.rn.f16x2")
    static constexpr bool has_products = true;
    FKLARRAY_PAIR_INSTRUCTION(product, "mul.rn.f16x2")

    FKLARRAY_PAIR_INSTRUCTION(least, "min.NaN.f16x2")
    FKLARRAY_PAIR_INSTRUCTION(greatest, "max.NaN.f16x2")

    // By the steps of float32's division, which go wrong only with zeros, infinities and NaN: they
    // leave 0 or NaN then.
    FK_DEVICE_STATIC float near_quotient(float a, float b) {
        const float rough = near_reciprocal(b);
        const float reciprocal = __fmaf_rn(__fmaf_rn(-b, rough, 1.0f), rough, rough);
        const float near = __fmul_rn(a, reciprocal);
        return __fmaf_rn(__fmaf_rn(-b, near, a), reciprocal, near);
    }
    static constexpr std::uint16_t least_sure = 1;
};

template <>
struct Pairs<Brain16> {
    FK_DEVICE_STATIC void widen(std::uint32_t pair, float& first, float& second) {
        first = __uint_as_float(pair << 16);
        second = __uint_as_float(pair & 0xffff0000u);
    }
    FK_DEVICE_STATIC std::uint32_t rounded(float first, float second) {
        std::uint32_t pair;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
        return pair;
    }
    // Multiplied by one, which every architecture can.
    FK_DEVICE_STATIC std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
        std::uint32_t sum;
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(0x3f803f80u), "r"(b));
        return sum;
    }
    FK_DEVICE_STATIC std::uint32_t difference(std::uint32_t a, std::uint32_t b) {
        std::uint32_t difference;
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(difference) : "r"(b), "r"(0xbf80bf80u), "r"(a));
        return difference;
    }
    // One far below one differs in its last bit when it is not rounded to float32 before.
    static constexpr bool has_products = false;

    FKLARRAY_PAIR_INSTRUCTION(least, "min.NaN.bf16x2")
    FKLARRAY_PAIR_INSTRUCTION(greatest, "max.NaN.bf16x2")

    // Within 2^-22 of the quotient, and no quotient of two 8-bit numbers is closer than 2^-17 to
    // where rounding changes, unless it is subnormal. A subnormal divisor leaves infinity.
    FK_DEVICE_STATIC float near_quotient(float a, float b) {
        return __fmul_rn(a, near_reciprocal(b));
    }
    static constexpr std::uint16_t least_sure = 0x80;
};

struct Add;
struct Subtract;
struct Multiply;
struct Divide;

template <typename Format, typename Name>
struct OnPairs<SixteenBits<Format>, Name, SixteenBits<Format>> {
    static constexpr bool exists = lean::is_same_v<Name, Add> || lean::is_same_v<Name, Subtract> ||
                                   lean::is_same_v<Name, Divide> ||
                                   (lean::is_same_v<Name, Multiply> && Pairs<Format>::has_products);
    template <int Lanes>
    using Numbers = Pack<SixteenBits<Format>, Lanes>;

    template <int Lanes>
    FK_DEVICE_STATIC auto lift(const Numbers<Lanes>& a, const Numbers<Lanes>& b) {
        if constexpr (lean::is_same_v<Name, Divide>) {
            return quotients(a, b);
        } else {
            Numbers<Lanes> result;
            for (int lane = 0; lane < Lanes; lane += 2) {
                std::uint32_t first, second;
                memcpy(&first, &a.vector[lane], sizeof first);
                memcpy(&second, &b.vector[lane], sizeof second);
                const std::uint32_t pair = one(first, second);
                memcpy(&result.vector[lane], &pair, sizeof pair);
            }
            return result;
        }
    }

private:
    FK_DEVICE_STATIC std::uint32_t one(std::uint32_t a, std::uint32_t b) {
        if constexpr (lean::is_same_v<Name, Add>) {
            return Pairs<Format>::sum(a, b);
        } else if constexpr (lean::is_same_v<Name, Subtract>) {
            return Pairs<Format>::difference(a, b);
        } else {
            return Pairs<Format>::product(a, b);
        }
    }

    // Near ones, if all of the pack's round to what the right ones round to.
    template <int Lanes>
    FK_DEVICE_STATIC Numbers<Lanes> quotients(const Numbers<Lanes>& a, const Numbers<Lanes>& b) {
        using Two = Pairs<Format>;
        const auto x = values_of(a);
        const auto y = values_of(b);
        Numbers<Lanes> result;
        std::uint32_t least = 0x7c007c00;
        std::uint32_t greatest = 0;
        for (int lane = 0; lane < Lanes; lane += 2) {
            const auto pair = Two::rounded(Two::near_quotient(x.get(lane), y.get(lane)),
                                           Two::near_quotient(x.get(lane + 1), y.get(lane + 1)));
            memcpy(&result.vector[lane], &pair, sizeof pair);
            least = Two::least(least, pair & 0x7fff7fff);
            greatest = Two::greatest(greatest, pair & 0x7fff7fff);
        }
        const auto is_sure = [](std::uint32_t least, std::uint32_t greatest) {
            return least >= Two::least_sure &&
                   greatest < static_cast<std::uint32_t>(Format::infinity);
        };
        if (__builtin_expect(is_sure(least & 0xffff, greatest & 0xffff) &&
                                 is_sure(least >> 16, greatest >> 16),
                             1))
            return result;
        Pack<float, Lanes> right;
        for (int lane = 0; lane < Lanes; ++lane) {
            right.set(lane, slow_quotient(x.get(lane), y.get(lane)));
        }
        return Rounded<SixteenBits<Format>>::from(right);
    }
};

}  // namespace fklarray
#endif
