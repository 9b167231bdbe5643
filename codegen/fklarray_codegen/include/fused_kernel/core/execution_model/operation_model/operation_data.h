// What an instantiable operation carries: the run-time parameters of its Operation.
#pragma once

#include <fused_kernel/core/execution_model/operation_model/operation_types.h>
#include <fused_kernel/core/utils/utils.h>

namespace fk {

template <typename Operation, typename = void>
struct OperationData {
    FK_HOST_DEVICE_CNST OperationData() {}
    FK_HOST_DEVICE_CNST OperationData(const typename Operation::ParamsType& params_)
        : params(params_) {}
    typename Operation::ParamsType params{};
};

template <typename Operation>
struct OperationData<Operation, lean::void_t<typename Operation::BackIOp>> {
    FK_HOST_DEVICE_CNST OperationData() {}
    FK_HOST_DEVICE_CNST OperationData(const typename Operation::ParamsType& params_,
                                      const typename Operation::BackIOp& backIOp_)
        : params(params_), backIOp(backIOp_) {}
    typename Operation::ParamsType params{};
    typename Operation::BackIOp backIOp{};
};

}  // namespace fk
