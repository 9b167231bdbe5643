#include <fused_kernel/fused_kernel.h>
#include <fklarray/operations.h>
#include <fklarray/entry.h>
#include <fklarray/functors/arithmetic.h>
#include <fklarray/functors/exponential.h>

FKLARRAY_ENTRY int fkl_entry(const void** params, void* stream) {
    using namespace fklarray;
    constexpr int lanes = pack_lanes<float>();
    // 1. Parameters
    const auto space = *reinterpret_cast<const Space<2>*>(params[0]);
    const auto x0 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[1]);
    const auto x1 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[2]);
    const auto s2 = *reinterpret_cast<const float*>(params[3]);
    const auto x3 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[4]);
    const auto y0 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[5]);
    // 2. Read
    using R0 = StridedRead<float, lanes, 2, Inner::unit>;
    const auto r0 = R0::build({x3, space});
    // 3. Compute, 4. Write
    using R1 = LoadScalar<R0::OutputType, 1, float, lanes>;
    const auto r1 = R1::build(s2);
    using R2 = Apply<Multiply, R1::OutputType, 0, 1, 0>;
    const auto r2 = R2::build();
    using R3 = Apply<Exp, R2::OutputType, 0, 0>;
    const auto r3 = R3::build();
    using R4 = LoadStrided<R3::OutputType, 1, float, lanes, 2, Inner::unit>;
    const auto r4 = R4::build({x0, space});
    using R5 = LoadStrided<R4::OutputType, 2, float, lanes, 2, Inner::unit>;
    const auto r5 = R5::build({x1, space});
    using R6 = Apply<Multiply, R5::OutputType, 1, 1, 2>;
    const auto r6 = R6::build();
    using R7 = Apply<Add, R6::OutputType, 0, 1, 0>;
    const auto r7 = R7::build();
    using W0 = StridedWrite<R7::OutputType, 0, float, 2, Inner::unit>;
    const auto w0 = W0::build({y0, space});
    auto queue = open_stream(stream);
    fk::executeOperations<fk::TransformDPP<>>(queue, r0, r1, r2, r3, r4, r5, r6, r7, w0);
    return close_stream(queue);
}
