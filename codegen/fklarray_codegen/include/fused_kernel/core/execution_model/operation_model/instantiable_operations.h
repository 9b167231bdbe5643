// Instantiable operations (IOps): an Operation together with its parameters. A kernel is the fold
//   point | read | compute | ... | write
// in which InputFoldType carries the point and the value that flows through the chain.
#pragma once

#include <fused_kernel/core/data/point.h>
#include <fused_kernel/core/execution_model/active_threads.h>
#include <fused_kernel/core/execution_model/operation_model/operation_data.h>

namespace fk {

template <typename Input = void>
struct InputFoldType {
    Point thread;
    Input input;
};

template <>
struct InputFoldType<void> {
    template <typename Input>
    FK_HOST_DEVICE_FUSE InputFoldType<Input> build(const Point& thread, const Input& input) {
        return {thread, input};
    }
};

#define FK_INSTANTIABLE_OPERATION(type)                                                            \
    using Operation = Operation_t;                                                                 \
    using InstanceType = type;                                                                     \
    template <typename Type>                                                                       \
    static constexpr bool is = lean::is_same_v<Type, InstanceType>;

template <typename Operation_t>
struct ReadInstantiableOperation final : OperationData<Operation_t> {
    FK_INSTANTIABLE_OPERATION(ReadType)
    FK_HOST_DEVICE_CNST ActiveThreads getActiveThreads() const {
        return Operation::getActiveThreads(*this);
    }
    FK_HOST_DEVICE_CNST friend auto operator|(const Point& thread,
                                              const ReadInstantiableOperation& self) {
        return InputFoldType<>::build(thread, Operation::exec(thread, self));
    }
};

template <typename Operation_t>
struct ReadBackInstantiableOperation final : OperationData<Operation_t> {
    FK_INSTANTIABLE_OPERATION(ReadBackType)
    FK_HOST_DEVICE_CNST ActiveThreads getActiveThreads() const {
        return Operation::getActiveThreads(*this);
    }
    FK_HOST_DEVICE_CNST friend auto operator|(const Point& thread,
                                              const ReadBackInstantiableOperation& self) {
        return InputFoldType<>::build(thread, Operation::exec(thread, self));
    }
};

template <typename Operation_t>
struct UnaryInstantiableOperation {
    FK_INSTANTIABLE_OPERATION(UnaryType)
    template <typename Input>
    FK_HOST_DEVICE_CNST friend auto operator|(const InputFoldType<Input>& fold,
                                              const UnaryInstantiableOperation&) {
        return InputFoldType<>::build(fold.thread, Operation::exec(fold.input));
    }
};

template <typename Operation_t>
struct BinaryInstantiableOperation final : OperationData<Operation_t> {
    FK_INSTANTIABLE_OPERATION(BinaryType)
    template <typename Input>
    FK_HOST_DEVICE_CNST friend auto operator|(const InputFoldType<Input>& fold,
                                              const BinaryInstantiableOperation& self) {
        return InputFoldType<>::build(fold.thread, Operation::exec(fold.input, self));
    }
};

template <typename Operation_t>
struct TernaryInstantiableOperation final : OperationData<Operation_t> {
    FK_INSTANTIABLE_OPERATION(TernaryType)
    template <typename Input>
    FK_HOST_DEVICE_CNST friend auto operator|(const InputFoldType<Input>& fold,
                                              const TernaryInstantiableOperation& self) {
        return InputFoldType<>::build(fold.thread, Operation::exec(fold.input, self));
    }
};

template <typename Operation_t>
struct OpenInstantiableOperation final : OperationData<Operation_t> {
    FK_INSTANTIABLE_OPERATION(OpenType)
    template <typename Input>
    FK_HOST_DEVICE_CNST friend auto operator|(const InputFoldType<Input>& fold,
                                              const OpenInstantiableOperation& self) {
        return InputFoldType<>::build(fold.thread, Operation::exec(fold.thread, fold.input, self));
    }
};

// Wraps an Operation of WriteType (or MidWriteType) in the middle of a chain.
template <typename Operation_t>
struct MidWriteInstantiableOperation final : OperationData<Operation_t> {
    FK_INSTANTIABLE_OPERATION(MidWriteType)
    template <typename Input>
    FK_HOST_DEVICE_CNST friend auto operator|(const InputFoldType<Input>& fold,
                                              const MidWriteInstantiableOperation& self) {
        Operation::exec(fold.thread, fold.input, self);
        return fold;
    }
};

template <typename Operation_t>
struct WriteInstantiableOperation final : OperationData<Operation_t> {
    FK_INSTANTIABLE_OPERATION(WriteType)
    template <typename Input>
    FK_HOST_DEVICE_CNST friend auto operator|(const InputFoldType<Input>& fold,
                                              const WriteInstantiableOperation&) {
        return fold;
    }
};

#undef FK_INSTANTIABLE_OPERATION

template <typename Operation>
using Read = ReadInstantiableOperation<Operation>;
template <typename Operation>
using ReadBack = ReadBackInstantiableOperation<Operation>;
template <typename Operation>
using Unary = UnaryInstantiableOperation<Operation>;
template <typename Operation>
using Binary = BinaryInstantiableOperation<Operation>;
template <typename Operation>
using Ternary = TernaryInstantiableOperation<Operation>;
template <typename Operation>
using Open = OpenInstantiableOperation<Operation>;
template <typename Operation>
using MidWrite = MidWriteInstantiableOperation<Operation>;
template <typename Operation>
using Write = WriteInstantiableOperation<Operation>;

}  // namespace fk
