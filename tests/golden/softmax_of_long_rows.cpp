#include <fused_kernel/fused_kernel.h>
#include <fklarray/operations.h>
#include <fklarray/entry.h>
#include <fklarray/functors/arithmetic.h>
#include <fklarray/functors/exponential.h>
#include <fklarray/rows.h>

FKLARRAY_ENTRY int fkl_entry(const void** params, void* stream) {
    using namespace fklarray;
    constexpr int lanes = pack_lanes<float>();
    // 1. Parameters
    const auto space = *reinterpret_cast<const Space<2>*>(params[0]);
    const auto x0 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[1]);
    const auto v0 = *reinterpret_cast<const Strided<float, 2, Inner::broadcast>*>(params[2]);
    const auto v1 = *reinterpret_cast<const Strided<float, 2, Inner::broadcast>*>(params[3]);
    const auto y0 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[4]);
    // Stage 1
    using A0 = StridedRead<float, lanes, 2, Inner::unit>;
    const auto a0 = A0::build({x0, space});
    const Fold<Max, 0, float, 2, Inner::broadcast> aw0{{v0, space}};
    const auto stage0 = stage<Work::fold>(list(a0), list(aw0));
    // Stage 2
    using B0 = StridedRead<float, lanes, 2, Inner::unit>;
    const auto b0 = B0::build({x0, space});
    using B1 = LoadStrided<B0::OutputType, 1, float, lanes, 2, Inner::broadcast>;
    const auto b1 = B1::build({v0, space});
    using B2 = Apply<Subtract, B1::OutputType, 0, 0, 1>;
    const auto b2 = B2::build();
    using B3 = Apply<Exp, B2::OutputType, 0, 0>;
    const auto b3 = B3::build();
    using BK0 = StridedWrite<B3::OutputType, 0, float, 2, Inner::unit>;
    const fk::MidWrite<BK0> bk0{{{y0, space}}};
    const Fold<Sum, 0, float, 2, Inner::broadcast> bw0{{v1, space}};
    const auto stage1 = stage<Work::fold>(list(b0, b1, b2, b3, bk0), list(bw0));
    // Stage 3
    using C0 = StridedRead<float, lanes, 2, Inner::unit>;
    const auto c0 = C0::build({y0, space});
    using C1 = LoadStrided<C0::OutputType, 1, float, lanes, 2, Inner::broadcast>;
    const auto c1 = C1::build({v1, space});
    using C2 = Apply<Divide, C1::OutputType, 0, 0, 1>;
    const auto c2 = C2::build();
    using CW0 = StridedUpdate<C2::OutputType, 0, float, 2, Inner::unit>;
    const auto cw0 = CW0::build({y0, space});
    const auto stage2 = stage<Work::elements>(list(c0, c1, c2), list(cw0));
    auto queue = open_stream(stream);
    fk::executeOperations<SharedRowsDPP<lanes>>(queue, space, stage0, stage1, stage2);
    return close_stream(queue);
}
