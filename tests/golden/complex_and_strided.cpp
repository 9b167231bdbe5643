#include <fused_kernel/fused_kernel.h>
#include <fklarray/complex.h>
#include <fklarray/operations.h>
#include <fklarray/entry.h>
#include <fklarray/functors/arithmetic.h>
#include <fklarray/functors/cast.h>

FKLARRAY_ENTRY int fkl_entry(const void** params, void* stream) {
    using namespace fklarray;
    constexpr int lanes = pack_lanes<fklarray::Complex<float>, float>();
    // 1. Parameters
    const auto space = *reinterpret_cast<const Space<2>*>(params[0]);
    const auto s0 = *reinterpret_cast<const fklarray::Complex<float>*>(params[1]);
    const auto x1 = *reinterpret_cast<const Strided<fklarray::Complex<float>, 2, Inner::strided>*>(params[2]);
    const auto x2 = *reinterpret_cast<const Strided<float, 2, Inner::strided>*>(params[3]);
    const auto y0 = *reinterpret_cast<const Strided<fklarray::Complex<float>, 2, Inner::unit>*>(params[4]);
    // 2. Read
    using R0 = StridedRead<fklarray::Complex<float>, lanes, 2, Inner::strided>;
    const auto r0 = R0::build({x1, space});
    // 3. Compute, 4. Write
    using R1 = LoadScalar<R0::OutputType, 1, fklarray::Complex<float>, lanes>;
    const auto r1 = R1::build(s0);
    using R2 = Apply<Subtract, R1::OutputType, 0, 1, 0>;
    const auto r2 = R2::build();
    using R3 = LoadStrided<R2::OutputType, 1, float, lanes, 2, Inner::strided>;
    const auto r3 = R3::build({x2, space});
    using R4 = Apply<Cast<fklarray::Complex<float>>, R3::OutputType, 1, 1>;
    const auto r4 = R4::build();
    using R5 = Apply<Multiply, R4::OutputType, 0, 0, 1>;
    const auto r5 = R5::build();
    using W0 = StridedWrite<R5::OutputType, 0, fklarray::Complex<float>, 2, Inner::unit>;
    const auto w0 = W0::build({y0, space});
    auto queue = open_stream(stream);
    fk::executeOperations<fk::TransformDPP<>>(queue, r0, r1, r2, r3, r4, r5, w0);
    return close_stream(queue);
}
