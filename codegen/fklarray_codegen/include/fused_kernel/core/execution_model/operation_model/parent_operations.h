// Parents of the Operations. A child names its parent in a private alias `Parent` and expands the
// matching DECLARE_ macro, which brings the parent's types, build(), and the exec() that takes
// OperationData and forwards to the child's exec() on plain parameters.
#pragma once

#include <fused_kernel/core/execution_model/operation_model/instantiable_operations.h>
#include <fused_kernel/core/execution_model/thread_fusion.h>

namespace fk {

template <typename I, typename O, typename ChildImplementation, bool IS_FUSED = false>
struct UnaryOperation {
    using Child = ChildImplementation;
    using InputType = I;
    using OutputType = O;
    using InstanceType = UnaryType;
    using InstantiableType = Unary<Child>;
    static constexpr bool IS_FUSED_OP = IS_FUSED;
};

template <typename I, typename P, typename O, typename ChildImplementation, bool IS_FUSED = false>
struct BinaryOperation {
    using Child = ChildImplementation;
    using InputType = I;
    using OutputType = O;
    using ParamsType = P;
    using InstanceType = BinaryType;
    using OperationDataType = OperationData<Child>;
    using InstantiableType = Binary<Child>;
    static constexpr bool IS_FUSED_OP = IS_FUSED;
};

template <typename I, typename P, typename B, typename O, typename ChildImplementation,
          bool IS_FUSED = false>
struct TernaryOperation {
    using Child = ChildImplementation;
    using InputType = I;
    using OutputType = O;
    using ParamsType = P;
    using BackIOp = B;
    using InstanceType = TernaryType;
    using OperationDataType = OperationData<Child>;
    using InstantiableType = Ternary<Child>;
    static constexpr bool IS_FUSED_OP = IS_FUSED;
};

template <typename RT, typename P, typename O, TF TFE, typename ChildImplementation,
          bool IS_FUSED = false>
struct ReadOperation {
    using Child = ChildImplementation;
    using ParamsType = P;
    using ReadDataType = RT;
    using OutputType = O;
    using InstanceType = ReadType;
    using OperationDataType = OperationData<Child>;
    using InstantiableType = Read<Child>;
    static constexpr bool THREAD_FUSION = TFE == TF::ENABLED;
    static constexpr bool IS_FUSED_OP = IS_FUSED;
};

template <typename RT, typename P, typename B, typename O, typename ChildImplementation>
struct ReadBackOperation {
    using Child = ChildImplementation;
    using ReadDataType = RT;
    using OutputType = O;
    using ParamsType = P;
    using BackIOp = B;
    using InstanceType = ReadBackType;
    using OperationDataType = OperationData<Child>;
    using InstantiableType = ReadBack<Child>;
    static constexpr bool THREAD_FUSION = false;
    static constexpr bool IS_FUSED_OP = false;
};

template <typename I, typename P, typename O, typename ChildImplementation, bool IS_FUSED = false>
struct OpenOperationParent {
    using Child = ChildImplementation;
    using ParamsType = P;
    using InputType = I;
    using OutputType = O;
    using InstanceType = OpenType;
    using OperationDataType = OperationData<Child>;
    using InstantiableType = Open<Child>;
    static constexpr bool IS_FUSED_OP = IS_FUSED;
};

template <typename I, typename P, typename WT, TF TFE, typename ChildImplementation,
          bool IS_FUSED = false>
struct WriteOperation {
    using Child = ChildImplementation;
    using ParamsType = P;
    using InputType = I;
    using WriteDataType = WT;
    using InstanceType = WriteType;
    using OperationDataType = OperationData<Child>;
    using InstantiableType = Write<Child>;
    static constexpr bool THREAD_FUSION = TFE == TF::ENABLED;
    static constexpr bool IS_FUSED_OP = IS_FUSED;
};

}  // namespace fk

#define FK_DECLARE_COMMON                                                                          \
    using InstanceType = typename Parent::InstanceType;                                            \
    using InstantiableType = typename Parent::InstantiableType;                                    \
    static constexpr bool IS_FUSED_OP = Parent::IS_FUSED_OP;

#define FK_DECLARE_PARAMS                                                                          \
    FK_DECLARE_COMMON                                                                              \
    using ParamsType = typename Parent::ParamsType;                                                \
    using OperationDataType = typename Parent::OperationDataType;                                  \
    FK_HOST_FUSE InstantiableType build(const OperationDataType& opData) { return {opData}; }

#define FK_DECLARE_BUILD_PARAMS                                                                    \
    FK_HOST_FUSE InstantiableType build(const ParamsType& params) { return {{params}}; }

#define FK_DECLARE_BUILD_BACK                                                                      \
    using BackIOp = typename Parent::BackIOp;                                                      \
    FK_HOST_FUSE InstantiableType build(const ParamsType& params, const BackIOp& backIOp) {        \
        return {{params, backIOp}};                                                                \
    }

#define FK_DECLARE_INPUT using InputType = typename Parent::InputType;
#define FK_DECLARE_OUTPUT using OutputType = typename Parent::OutputType;
#define FK_DECLARE_READ_DATA                                                                       \
    using ReadDataType = typename Parent::ReadDataType;                                            \
    static constexpr bool THREAD_FUSION = Parent::THREAD_FUSION;

#define DECLARE_UNARY_PARENT                                                                       \
    FK_DECLARE_COMMON FK_DECLARE_INPUT FK_DECLARE_OUTPUT FK_HOST_FUSE InstantiableType build() {   \
        return {};                                                                                 \
    }

#define DECLARE_BINARY_PARENT                                                                      \
    FK_DECLARE_PARAMS FK_DECLARE_BUILD_PARAMS FK_DECLARE_INPUT FK_DECLARE_OUTPUT                   \
        FK_HOST_DEVICE_FUSE OutputType                                                             \
        exec(const InputType& input, const OperationDataType& opData) {                            \
        return exec(input, opData.params);                                                         \
    }

#define DECLARE_TERNARY_PARENT                                                                     \
    FK_DECLARE_PARAMS FK_DECLARE_BUILD_BACK FK_DECLARE_INPUT FK_DECLARE_OUTPUT FK_HOST_DEVICE_FUSE \
        OutputType                                                                                 \
        exec(const InputType& input, const OperationDataType& opData) {                            \
        return exec(input, opData.params, opData.backIOp);                                         \
    }

#define DECLARE_READ_PARENT_BASIC                                                                  \
    FK_DECLARE_PARAMS FK_DECLARE_BUILD_PARAMS FK_DECLARE_OUTPUT FK_DECLARE_READ_DATA               \
        FK_HOST_DEVICE_FUSE OutputType                                                             \
        exec(const fk::Point& thread, const OperationDataType& opData) {                           \
        return exec(thread, opData.params);                                                        \
    }
#define DECLARE_READ_PARENT DECLARE_READ_PARENT_BASIC

#define DECLARE_READBACK_PARENT_BASIC                                                              \
    FK_DECLARE_PARAMS FK_DECLARE_BUILD_BACK FK_DECLARE_OUTPUT FK_DECLARE_READ_DATA                 \
        FK_HOST_DEVICE_FUSE OutputType                                                             \
        exec(const fk::Point& thread, const OperationDataType& opData) {                           \
        return exec(thread, opData.params, opData.backIOp);                                        \
    }
#define DECLARE_READBACK_PARENT DECLARE_READBACK_PARENT_BASIC

#define DECLARE_OPEN_PARENT                                                                        \
    FK_DECLARE_PARAMS FK_DECLARE_BUILD_PARAMS FK_DECLARE_INPUT FK_DECLARE_OUTPUT                   \
        FK_HOST_DEVICE_FUSE OutputType                                                             \
        exec(const fk::Point& thread, const InputType& input, const OperationDataType& opData) {   \
        return exec(thread, input, opData.params);                                                 \
    }

#define DECLARE_WRITE_PARENT_BASIC                                                                 \
    FK_DECLARE_PARAMS FK_DECLARE_BUILD_PARAMS FK_DECLARE_INPUT using WriteDataType =               \
        typename Parent::WriteDataType;                                                            \
    static constexpr bool THREAD_FUSION = Parent::THREAD_FUSION;                                   \
    FK_HOST_DEVICE_FUSE void exec(const fk::Point& thread, const InputType& input,                 \
                                  const OperationDataType& opData) {                               \
        exec(thread, input, opData.params);                                                        \
    }
#define DECLARE_WRITE_PARENT DECLARE_WRITE_PARENT_BASIC
