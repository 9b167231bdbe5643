#include <fused_kernel/fused_kernel.h>
#include <fklarray/operations.h>
#include <fklarray/entry.h>
#include <fklarray/functors/arithmetic.h>
#include <fklarray/functors/cast.h>
#include <fklarray/functors/exponential.h>
#include <fklarray/functors/rounding.h>

FKLARRAY_ENTRY int fkl_entry(const void** params, void* stream) {
    using namespace fklarray;
    constexpr int lanes = pack_lanes<double, std::int64_t>();
    // 1. Parameters
    const auto space = *reinterpret_cast<const Space<2>*>(params[0]);
    const auto x0 = *reinterpret_cast<const Strided<double, 2, Inner::unit>*>(params[1]);
    const auto x1 = *reinterpret_cast<const Strided<double, 2, Inner::unit>*>(params[2]);
    const auto y0 = *reinterpret_cast<const Strided<double, 2, Inner::unit>*>(params[3]);
    const auto y1 = *reinterpret_cast<const Strided<std::int64_t, 2, Inner::unit>*>(params[4]);
    // 2. Read
    using R0 = StridedRead<double, lanes, 2, Inner::unit>;
    const auto r0 = R0::build({x0, space});
    // 3. Compute, 4. Write
    using R1 = LoadStrided<R0::OutputType, 1, double, lanes, 2, Inner::unit>;
    const auto r1 = R1::build({x1, space});
    using R2 = Apply<Hypot, R1::OutputType, 1, 0, 1>;
    const auto r2 = R2::build();
    using R3 = Apply<Floor, R2::OutputType, 2, 1>;
    const auto r3 = R3::build();
    using R4 = Apply<Cast<std::int64_t>, R3::OutputType, 2, 2>;
    const auto r4 = R4::build();
    using R5 = Apply<Divide, R4::OutputType, 0, 0, 1>;
    const auto r5 = R5::build();
    using W0 = StridedWrite<R5::OutputType, 0, double, 2, Inner::unit>;
    const fk::MidWrite<W0> w0{{{y0, space}}};
    using W1 = StridedWrite<R5::OutputType, 2, std::int64_t, 2, Inner::unit>;
    const auto w1 = W1::build({y1, space});
    auto queue = open_stream(stream);
    fk::executeOperations<fk::TransformDPP<>>(queue, r0, r1, r2, r3, r4, r5, w0, w1);
    return close_stream(queue);
}
