// A small unit of everything that compilers differ in: what one has to manage before it is chosen.
// It is a translation unit of its own.
#pragma once

#include <fklarray/entry.h>
#include <fklarray/float16.h>
#include <fklarray/functors/arithmetic.h>
#include <fklarray/functors/exponential.h>
#include <fklarray/operations.h>
#include <fused_kernel/fused_kernel.h>

FKLARRAY_ENTRY int fkl_entry(const void** params, void* stream) {
    using namespace fklarray;
    constexpr int lanes = pack_lanes<Float16>();
    const auto space = *reinterpret_cast<const Space<2>*>(params[0]);
    const auto x0 = *reinterpret_cast<const Strided<Float16, 2, Inner::unit>*>(params[1]);
    const auto y0 = *reinterpret_cast<const Strided<Float16, 2, Inner::unit>*>(params[2]);
    using R0 = StridedRead<Float16, lanes, 2, Inner::unit>;
    const auto r0 = R0::build({x0, space});
    using R1 = Apply<Exp, R0::OutputType, 0, 0>;
    const auto r1 = R1::build();
    using R2 = Apply<Divide, R1::OutputType, 0, 0, 0>;
    const auto r2 = R2::build();
    using W0 = StridedWrite<R2::OutputType, 0, Float16, 2, Inner::unit>;
    const auto w0 = W0::build({y0, space});
    auto queue = open_stream(stream);
    fk::executeOperations<fk::TransformDPP<>>(queue, r0, r1, r2, w0);
    return close_stream(queue);
}
