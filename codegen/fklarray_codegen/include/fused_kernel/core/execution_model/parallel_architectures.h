// The kinds of processor that a data parallel pattern can run on.
#pragma once

namespace fk {

enum class ParArch { CPU, GPU_NVIDIA };

#if defined(__CUDACC__)
constexpr ParArch defaultParArch = ParArch::GPU_NVIDIA;
#else
constexpr ParArch defaultParArch = ParArch::CPU;
#endif

}  // namespace fk
