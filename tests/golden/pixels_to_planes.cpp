#include <fused_kernel/fused_kernel.h>
#include <fklarray/operations.h>
#include <fklarray/entry.h>
#include <fklarray/functors/arithmetic.h>
#include <fklarray/functors/cast.h>
#include <fklarray/tiles.h>

FKLARRAY_ENTRY int fkl_entry(const void** params, void* stream) {
    using namespace fklarray;
    constexpr int lanes = interleaved_lanes<std::uint8_t, float>();
    // 1. Parameters
    const auto space = *reinterpret_cast<const Space<3>*>(params[0]);
    const auto x0 = *reinterpret_cast<const Strided<std::uint8_t, 3, Inner::interleaved>*>(params[1]);
    const auto s1 = *reinterpret_cast<const float*>(params[2]);
    const auto y0 = *reinterpret_cast<const Strided<float, 3, Inner::unit>*>(params[3]);
    // 2. Read
    using R0 = StridedRead<std::uint8_t, lanes, 3, Inner::interleaved>;
    const auto r0 = R0::build({x0, space});
    // 3. Compute, 4. Write
    using R1 = Apply<Cast<float>, R0::OutputType, 0, 0>;
    const auto r1 = R1::build();
    using R2 = LoadScalar<R1::OutputType, 1, float, lanes>;
    const auto r2 = R2::build(s1);
    using R3 = Apply<Divide, R2::OutputType, 0, 0, 1>;
    const auto r3 = R3::build();
    using W0 = StridedWrite<R3::OutputType, 0, float, 3, Inner::unit>;
    const auto w0 = W0::build({y0, space});
    auto queue = open_stream(stream);
    fk::executeOperations<TiledDPP<lanes>>(queue, r0, r1, r2, r3, w0);
    return close_stream(queue);
}
