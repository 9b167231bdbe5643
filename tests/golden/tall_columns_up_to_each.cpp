#include <fused_kernel/fused_kernel.h>
#include <fklarray/operations.h>
#include <fklarray/entry.h>
#include <fklarray/functors/arithmetic.h>
#include <fklarray/columns.h>

FKLARRAY_ENTRY int fkl_entry(const void** params, void* stream) {
    using namespace fklarray;
    constexpr int lanes = pack_lanes<float>();
    // 1. Parameters
    const auto space = *reinterpret_cast<const Space<2>*>(params[0]);
    const auto x0 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[1]);
    const auto v0 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[2]);
    const auto y0 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[3]);
    const auto y1 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[4]);
    // Stage 1
    using A0 = StridedRead<float, lanes, 2, Inner::unit>;
    const auto a0 = A0::build({x0, space});
    const Fold<Sum, 0, float, 2, Inner::unit> aw0{{v0, space}};
    const auto stage0 = stage<Work::fold>(list(a0), list(aw0));
    // Stage 2
    using B0 = StridedRead<float, lanes, 2, Inner::unit>;
    const auto b0 = B0::build({x0, space});
    const Scan<Sum, 0, float, 2, Inner::unit> bw0{{y0, space}};
    const auto stage1 = stage<Work::scan>(list(b0), list(bw0));
    // Stage 3
    using C0 = StridedRead<float, lanes, 2, Inner::unit>;
    const auto c0 = C0::build({y0, space});
    using C1 = LoadStrided<C0::OutputType, 1, float, lanes, 2, Inner::unit>;
    const auto c1 = C1::build({v0, space});
    using C2 = Apply<Divide, C1::OutputType, 0, 0, 1>;
    const auto c2 = C2::build();
    using CW0 = StridedWrite<C2::OutputType, 0, float, 2, Inner::unit>;
    const auto cw0 = CW0::build({y1, space});
    const auto stage2 = stage<Work::elements>(list(c0, c1, c2), list(cw0));
    auto queue = open_stream(stream);
    fk::executeOperations<SharedColumnsDPP<lanes>>(queue, space, stage0, stage1, stage2);
    return close_stream(queue);
}
