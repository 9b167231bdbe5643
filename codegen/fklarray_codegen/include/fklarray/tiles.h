// A pattern for chains some of whose streams have their neighbours across the rows: every point is
// read, transformed and written on its own, but points are visited in tiles, within which such
// streams are read or written along their own neighbours.
#pragma once

#include <fklarray/operations.h>
#include <fused_kernel/fused_kernel.h>

namespace fklarray {

template <int Lanes>
struct TiledDPP {
    static constexpr fk::ParArch PAR_ARCH = fk::defaultParArch;
};

}  // namespace fklarray

#if defined(__CUDACC__)
#include <fklarray/gpu_tiles.h>
#else
namespace fk {

template <int Lanes>
struct Executor<fklarray::TiledDPP<Lanes>> : Executor<TransformDPP<>> {};

}  // namespace fk
#endif
