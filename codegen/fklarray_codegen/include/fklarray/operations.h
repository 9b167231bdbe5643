// The Operations that a fused kernel of fklarray is made of, on FKL's public Operation interface.
// The value that flows through the chain is a register file, an fk::Tuple of packs: loads and
// array operations put their result into one register, and writes store one and change none.
#pragma once

#include <fklarray/functor.h>
#include <fklarray/streams.h>
#include <fused_kernel/core/data/tuple.h>
#include <fused_kernel/core/execution_model/operation_model/operation_model.h>

namespace fklarray {

// The value of register I once `value` has been put into register Slot.
template <std::size_t I, int Slot, typename Registers, typename Value>
FK_HOST_DEVICE_STATIC const auto& pick(const Registers& registers, const Value& value) {
    if constexpr (I == Slot) {
        return value;
    } else {
        return fk::get<I>(registers);
    }
}

template <typename Registers, int Slot, typename Value,
          typename Indices = std::make_index_sequence<Registers::size + (Slot == Registers::size)>>
struct Placed;

// The registers with a value put into register Slot: a new one at the end, or one whose value is
// not needed any more. Reuse keeps the file as small as the graph is wide, and compilation linear.
template <typename Registers, int Slot, typename Value, std::size_t... Is>
struct Placed<Registers, Slot, Value, std::index_sequence<Is...>> {
    using type = fk::Tuple<std::decay_t<decltype(pick<Is, Slot>(
        std::declval<const Registers&>(), std::declval<const Value&>()))>...>;
    FK_HOST_DEVICE_STATIC type build(const Registers& registers, const Value& value) {
        return type(pick<Is, Slot>(registers, value)...);
    }
};

template <int Slot, typename Registers, typename Value>
FK_HOST_DEVICE_STATIC auto place(const Registers& registers, const Value& value) {
    return Placed<Registers, Slot, Value>::build(registers, value);
}

// How many threads a read asks for: one per pack of each row.
#define DECLARE_PACK_GEOMETRY                                                                      \
    FK_HOST_DEVICE_FUSE uint num_elems_x(const fk::Point& thread, const OperationDataType& data) { \
        return packs_in_row<Lanes>(thread, data.params.space);                                     \
    }                                                                                              \
    FK_HOST_DEVICE_FUSE uint num_elems_y(const fk::Point&, const OperationDataType& data) {        \
        return rows_of(data.params.space);                                                         \
    }                                                                                              \
    FK_HOST_DEVICE_FUSE uint num_elems_z(const fk::Point&, const OperationDataType& data) {        \
        return planes_of(data.params.space);                                                       \
    }                                                                                              \
    FK_HOST_DEVICE_FUSE fk::ActiveThreads getActiveThreads(const OperationDataType& data) {        \
        return {packs_in_row<Lanes>({0, 0, 0}, data.params.space), rows_of(data.params.space),     \
                planes_of(data.params.space)};                                                     \
    }

// Starts a chain: the first array of the kernel becomes register 0.
template <typename T, int Lanes, int Rank, Inner inner>
struct StridedRead {
  private:
    using Self = StridedRead<T, Lanes, Rank, inner>;
    using Parent = fk::ReadOperation<T, StreamParams<T, Rank, inner>, fk::Tuple<Pack<T, Lanes>>,
                                     fk::TF::DISABLED, Self>;

  public:
    FK_STATIC_STRUCT(StridedRead, Self)
    DECLARE_READ_PARENT
    FK_HOST_DEVICE_FUSE OutputType exec(const fk::Point& thread, const ParamsType& params) {
        return OutputType(load<Lanes>(thread, params));
    }
    DECLARE_PACK_GEOMETRY
};

template <typename T, int Rank>
struct ScalarParams {
    T value;
    Space<Rank> space;
};

// Starts a chain that reads no array: a scalar becomes register 0.
template <typename T, int Lanes, int Rank>
struct ScalarRead {
  private:
    using Self = ScalarRead<T, Lanes, Rank>;
    using Parent = fk::ReadOperation<T, ScalarParams<T, Rank>, fk::Tuple<Pack<T, Lanes>>,
                                     fk::TF::DISABLED, Self>;

  public:
    FK_STATIC_STRUCT(ScalarRead, Self)
    DECLARE_READ_PARENT
    FK_HOST_DEVICE_FUSE OutputType exec(const fk::Point&, const ParamsType& params) {
        return OutputType(splat<T, Lanes>(params.value));
    }
    DECLARE_PACK_GEOMETRY
};

// Puts the elements of a further array into register Slot.
template <typename Registers, int Slot, typename T, int Lanes, int Rank, Inner inner>
struct LoadStrided {
  private:
    using Self = LoadStrided<Registers, Slot, T, Lanes, Rank, inner>;
    using Parent =
        fk::OpenOperationParent<Registers, StreamParams<T, Rank, inner>,
                                typename Placed<Registers, Slot, Pack<T, Lanes>>::type, Self>;

  public:
    FK_STATIC_STRUCT(LoadStrided, Self)
    DECLARE_OPEN_PARENT
    FK_HOST_DEVICE_FUSE OutputType exec(const fk::Point& thread, const InputType& registers,
                                        const ParamsType& params) {
        return place<Slot>(registers, load<Lanes>(thread, params));
    }
};

// Puts a scalar, the same for all elements, into register Slot.
template <typename Registers, int Slot, typename T, int Lanes>
struct LoadScalar {
  private:
    using Self = LoadScalar<Registers, Slot, T, Lanes>;
    using Parent =
        fk::BinaryOperation<Registers, T, typename Placed<Registers, Slot, Pack<T, Lanes>>::type,
                            Self>;

  public:
    FK_STATIC_STRUCT(LoadScalar, Self)
    DECLARE_BINARY_PARENT
    FK_HOST_DEVICE_FUSE OutputType exec(const InputType& registers, const ParamsType& value) {
        return place<Slot>(registers, splat<T, Lanes>(value));
    }
};

// Puts Functor(registers[Operands]...) into register Slot.
template <typename Functor, typename Registers, int Slot, int... Operands>
struct Apply {
  private:
    using Self = Apply<Functor, Registers, Slot, Operands...>;
    using Result =
        decltype(lift<Functor>(fk::get<Operands>(std::declval<const Registers&>())...));
    using Parent =
        fk::UnaryOperation<Registers, typename Placed<Registers, Slot, Result>::type, Self>;

  public:
    FK_STATIC_STRUCT(Apply, Self)
    DECLARE_UNARY_PARENT
    FK_HOST_DEVICE_FUSE OutputType exec(const InputType& registers) {
        return place<Slot>(registers, lift<Functor>(fk::get<Operands>(registers)...));
    }
};

// Stores register Slot; ends a chain, or (as fk::MidWrite) goes on with the same registers.
template <typename Registers, int Slot, typename T, int Rank, Inner inner>
struct StridedWrite {
  private:
    using Self = StridedWrite<Registers, Slot, T, Rank, inner>;
    using Parent = fk::WriteOperation<Registers, StreamParams<T, Rank, inner>, T,
                                      fk::TF::DISABLED, Self>;

  public:
    FK_STATIC_STRUCT(StridedWrite, Self)
    DECLARE_WRITE_PARENT
    FK_HOST_DEVICE_FUSE void exec(const fk::Point& thread, const InputType& registers,
                                  const ParamsType& params) {
        store(thread, fk::get<Slot>(registers), params);
    }
};

}  // namespace fklarray
