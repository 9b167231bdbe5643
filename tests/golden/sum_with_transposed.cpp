#include <fused_kernel/fused_kernel.h>
#include <fklarray/operations.h>
#include <fklarray/entry.h>
#include <fklarray/functors/arithmetic.h>
#include <fklarray/tiles.h>

FKLARRAY_ENTRY int fkl_entry(const void** params, void* stream) {
    using namespace fklarray;
    constexpr int lanes = pack_lanes<float>();
    // 1. Parameters
    const auto space = *reinterpret_cast<const Space<2>*>(params[0]);
    const auto x0 = *reinterpret_cast<const Strided<float, 2, Inner::across>*>(params[1]);
    const auto x1 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[2]);
    const auto x2 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[3]);
    const auto y0 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[4]);
    // 2. Read
    using R0 = StridedRead<float, lanes, 2, Inner::unit>;
    const auto r0 = R0::build({x1, space});
    // 3. Compute, 4. Write
    using R1 = LoadStrided<R0::OutputType, 1, float, lanes, 2, Inner::unit>;
    const auto r1 = R1::build({x2, space});
    using R2 = Apply<Multiply, R1::OutputType, 0, 0, 1>;
    const auto r2 = R2::build();
    using R3 = LoadStrided<R2::OutputType, 1, float, lanes, 2, Inner::across>;
    const auto r3 = R3::build({x0, space});
    using R4 = Apply<Add, R3::OutputType, 0, 1, 0>;
    const auto r4 = R4::build();
    using W0 = StridedWrite<R4::OutputType, 0, float, 2, Inner::unit>;
    const auto w0 = W0::build({y0, space});
    auto queue = open_stream(stream);
    fk::executeOperations<TiledDPP<lanes>>(queue, r0, r1, r2, r3, r4, w0);
    return close_stream(queue);
}
