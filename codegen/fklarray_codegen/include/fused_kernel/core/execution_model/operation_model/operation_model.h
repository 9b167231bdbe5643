// The whole operation model in one include.
#pragma once

#include <fused_kernel/core/execution_model/operation_model/parent_operations.h>
