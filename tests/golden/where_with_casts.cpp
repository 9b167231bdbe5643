#include <fused_kernel/fused_kernel.h>
#include <fklarray/operations.h>
#include <fklarray/entry.h>
#include <fklarray/functors/arithmetic.h>
#include <fklarray/functors/cast.h>
#include <fklarray/functors/comparison.h>
#include <fklarray/functors/selection.h>

FKLARRAY_ENTRY int fkl_entry(const void** params, void* stream) {
    using namespace fklarray;
    constexpr int lanes = pack_lanes<std::uint8_t, float, bool, double>();
    // 1. Parameters
    const auto space = *reinterpret_cast<const Space<2>*>(params[0]);
    const auto x0 = *reinterpret_cast<const Strided<std::uint8_t, 2, Inner::unit>*>(params[1]);
    const auto s1 = *reinterpret_cast<const float*>(params[2]);
    const auto s2 = *reinterpret_cast<const float*>(params[3]);
    const auto x3 = *reinterpret_cast<const Strided<double, 2, Inner::broadcast>*>(params[4]);
    const auto s4 = *reinterpret_cast<const float*>(params[5]);
    const auto y0 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[6]);
    // 2. Read
    using R0 = StridedRead<std::uint8_t, lanes, 2, Inner::unit>;
    const auto r0 = R0::build({x0, space});
    // 3. Compute, 4. Write
    using R1 = Apply<Cast<float>, R0::OutputType, 0, 0>;
    const auto r1 = R1::build();
    using R2 = LoadScalar<R1::OutputType, 1, float, lanes>;
    const auto r2 = R2::build(s1);
    using R3 = Apply<Divide, R2::OutputType, 0, 0, 1>;
    const auto r3 = R3::build();
    using R4 = LoadScalar<R3::OutputType, 1, float, lanes>;
    const auto r4 = R4::build(s2);
    using R5 = Apply<Greater, R4::OutputType, 1, 0, 1>;
    const auto r5 = R5::build();
    using R6 = LoadScalar<R5::OutputType, 2, float, lanes>;
    const auto r6 = R6::build(s4);
    using R7 = Apply<Subtract, R6::OutputType, 0, 0, 2>;
    const auto r7 = R7::build();
    using R8 = LoadStrided<R7::OutputType, 2, double, lanes, 2, Inner::broadcast>;
    const auto r8 = R8::build({x3, space});
    using R9 = Apply<Cast<float>, R8::OutputType, 2, 2>;
    const auto r9 = R9::build();
    using R10 = Apply<Where, R9::OutputType, 0, 1, 2, 0>;
    const auto r10 = R10::build();
    using W0 = StridedWrite<R10::OutputType, 0, float, 2, Inner::unit>;
    const auto w0 = W0::build({y0, space});
    auto queue = open_stream(stream);
    fk::executeOperations<fk::TransformDPP<>>(queue, r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, w0);
    return close_stream(queue);
}
