// The Operations that a fused kernel of fklarray is made of, on FKL's public Operation interface.
// The value that flows through the chain is a register file, an fk::Tuple of packs: loads and
// array operations put their result into one register, and writes store one and change none.
#pragma once

#include <fklarray/fused.h>
#include <fklarray/streams.h>
#include <fused_kernel/core/data/tuple.h>
#include <fused_kernel/core/execution_model/operation_model/operation_model.h>

namespace fklarray {

// The library's DECLARE_ macros name it without its namespace.
using fk::Point;

// The register file. Its constructor names itself, so that nothing converts to it by chance: with
// a plain tuple of one element the public library's operator| is ambiguous.
template <typename... Packs>
struct Registers : fk::Tuple<Packs...> {
    static constexpr std::size_t size = sizeof...(Packs);
    FK_HOST_DEVICE_CNST Registers() {}
    FK_HOST_DEVICE_CNST explicit Registers(lean::in_place_t, const Packs&... packs)
        : fk::Tuple<Packs...>(packs...) {}

    template <int Slot>
    FK_HOST_DEVICE_CNST const auto& get() const {
        return fk::get<Slot>(static_cast<const fk::Tuple<Packs...>&>(*this));
    }
};

// The value of register I once `value` has been put into register Slot.
template <std::size_t I, int Slot, typename File, typename Value>
FK_HOST_DEVICE_STATIC const auto& pick(const File& registers, const Value& value) {
    if constexpr (I == Slot) {
        return value;
    } else {
        return registers.template get<I>();
    }
}

template <typename File, int Slot, typename Value,
          typename Indices = lean::make_index_sequence<File::size + (Slot == File::size)>>
struct Placed;

// The registers with a value put into register Slot: a new one at the end, or one whose value is
// not needed any more. Reuse keeps the file as small as the graph is wide, and compilation linear.
template <typename File, int Slot, typename Value, std::size_t... Is>
struct Placed<File, Slot, Value, lean::index_sequence<Is...>> {
    using type = Registers<lean::decay_t<decltype(pick<Is, Slot>(
        lean::declval<const File&>(), lean::declval<const Value&>()))>...>;
    FK_HOST_DEVICE_STATIC type build(const File& registers, const Value& value) {
        return type(lean::in_place, pick<Is, Slot>(registers, value)...);
    }
};

template <int Slot, typename File, typename Value>
FK_HOST_DEVICE_STATIC auto place(const File& registers, const Value& value) {
    return Placed<File, Slot, Value>::build(registers, value);
}

// How many threads a read asks for: one per pack of each row.
#define DECLARE_PACK_GEOMETRY                                                                      \
    static constexpr int lanes = Lanes;                                                            \
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
    using Parent = fk::ReadOperation<T, StreamParams<T, Rank, inner>, Registers<Pack<T, Lanes>>,
                                     fk::TF::DISABLED, Self>;

public:
    FK_STATIC_STRUCT(StridedRead, Self)
    static constexpr int bytes_read = bytes_of<T, Lanes>(inner);
    DECLARE_READ_PARENT_BASIC
    FK_HOST_DEVICE_FUSE OutputType exec(const fk::Point& thread, const ParamsType& params) {
        return OutputType(lean::in_place, load<Lanes>(thread, params));
    }
#if defined(__CUDACC__)
    FK_DEVICE_STATIC const void* address(const fk::Point& thread, const InstantiableType& read) {
        return pack_of_thread<Lanes>(thread, read.params);
    }
#endif
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
    using Parent = fk::ReadOperation<T, ScalarParams<T, Rank>, Registers<Pack<T, Lanes>>,
                                     fk::TF::DISABLED, Self>;

public:
    FK_STATIC_STRUCT(ScalarRead, Self)
    DECLARE_READ_PARENT_BASIC
    FK_HOST_DEVICE_FUSE OutputType exec(const fk::Point&, const ParamsType& params) {
        return OutputType(lean::in_place, splat<T, Lanes>(params.value));
    }
    DECLARE_PACK_GEOMETRY
};

// Puts the elements of a further array into register Slot.
template <typename File, int Slot, typename T, int Lanes, int Rank, Inner inner>
struct LoadStrided {
private:
    using Self = LoadStrided<File, Slot, T, Lanes, Rank, inner>;
    using Parent = fk::OpenOperationParent<File, StreamParams<T, Rank, inner>,
                                           typename Placed<File, Slot, Pack<T, Lanes>>::type, Self>;

public:
    FK_STATIC_STRUCT(LoadStrided, Self)
    static constexpr int slot = Slot;
    static constexpr int bytes_read = bytes_of<T, Lanes>(inner);
    DECLARE_OPEN_PARENT
    FK_HOST_DEVICE_FUSE OutputType exec(const fk::Point& thread, const InputType& registers,
                                        const ParamsType& params) {
        return place<Slot>(registers, load<Lanes>(thread, params));
    }
};

// Puts a scalar, the same for all elements, into register Slot.
template <typename File, int Slot, typename T, int Lanes>
struct LoadScalar {
private:
    using Self = LoadScalar<File, Slot, T, Lanes>;
    using Value = lean::decay_t<decltype(shared(lean::declval<const Pack<T, Lanes>&>()))>;
    using Parent = fk::BinaryOperation<File, T, typename Placed<File, Slot, Value>::type, Self>;

public:
    FK_STATIC_STRUCT(LoadScalar, Self)
    DECLARE_BINARY_PARENT
    FK_HOST_DEVICE_FUSE OutputType exec(const InputType& registers, const ParamsType& value) {
        return place<Slot>(registers, shared(splat<T, Lanes>(value)));
    }
};

// Puts Functor(registers[Operands]...) into register Slot.
template <typename Functor, typename File, int Slot, int... Operands>
struct Apply {
private:
    using Self = Apply<Functor, File, Slot, Operands...>;
    using Result =
        decltype(apply<Functor>(lean::declval<const File&>().template get<Operands>()...));
    using Parent = fk::UnaryOperation<File, typename Placed<File, Slot, Result>::type, Self>;

public:
    FK_STATIC_STRUCT(Apply, Self)
    DECLARE_UNARY_PARENT
    static constexpr bool is_long = Functor::is_long;
    FK_HOST_DEVICE_FUSE OutputType exec(const InputType& registers) {
        return place<Slot>(registers, apply<Functor>(registers.template get<Operands>()...));
    }
};

// By hand: the library's DECLARE_WRITE_PARENT takes its input for a vector that threads may fuse.
#define FKLARRAY_DECLARE_WRITE                                                                     \
    using InputType = typename Parent::InputType;                                                  \
    using ParamsType = typename Parent::ParamsType;                                                \
    using WriteDataType = typename Parent::WriteDataType;                                          \
    using InstanceType = typename Parent::InstanceType;                                            \
    using InstantiableType = typename Parent::InstantiableType;                                    \
    using OperationDataType = typename Parent::OperationDataType;                                  \
    static constexpr bool IS_FUSED_OP = Parent::IS_FUSED_OP;                                       \
    static constexpr bool THREAD_FUSION = Parent::THREAD_FUSION;                                   \
    FK_HOST_FUSE InstantiableType build(const ParamsType& params) { return {{params}}; }           \
    FK_HOST_DEVICE_FUSE void exec(const Point& thread, const InputType& registers,                 \
                                  const OperationDataType& data) {                                 \
        exec(thread, registers, data.params);                                                      \
    }

// Stores register Slot; ends a chain, or (as fk::MidWrite) goes on with the same registers.
template <typename File, int Slot, typename T, int Rank, Inner inner>
struct StridedWrite {
private:
    using Self = StridedWrite<File, Slot, T, Rank, inner>;
    using Parent =
        fk::WriteOperation<File, StreamParams<T, Rank, inner>, T, fk::TF::DISABLED, Self>;

public:
    FK_STATIC_STRUCT(StridedWrite, Self)
    static constexpr int slot = Slot;
    FKLARRAY_DECLARE_WRITE
    FK_HOST_DEVICE_FUSE void exec(const Point& thread, const InputType& registers,
                                  const ParamsType& params) {
        store(thread, registers.template get<Slot>(), params);
    }
};

// The same where the chain has read what it writes to. The last pack of a row is moved back over
// elements that have their new value already: it stores the others only.
template <typename File, int Slot, typename T, int Rank, Inner inner>
struct StridedUpdate {
private:
    using Self = StridedUpdate<File, Slot, T, Rank, inner>;
    using Parent =
        fk::WriteOperation<File, StreamParams<T, Rank, inner>, T, fk::TF::DISABLED, Self>;

public:
    FK_STATIC_STRUCT(StridedUpdate, Self)
    static constexpr int slot = Slot;
    FKLARRAY_DECLARE_WRITE
    FK_HOST_DEVICE_FUSE void exec(const Point& thread, const InputType& registers,
                                  const ParamsType& params) {
        store_new(thread, registers.template get<Slot>(), params);
    }
};

}  // namespace fklarray
