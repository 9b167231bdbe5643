#include <fused_kernel/fused_kernel.h>
#include <fklarray/operations.h>
#include <fklarray/entry.h>
#include <fklarray/functors/arithmetic.h>
#include <fklarray/rows.h>

FKLARRAY_ENTRY int fkl_entry(const void** params, void* stream) {
    using namespace fklarray;
    constexpr int lanes = pack_lanes<float>();
    // 1. Parameters
    const auto space = *reinterpret_cast<const Space<2>*>(params[0]);
    const auto x0 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[1]);
    const auto s1 = *reinterpret_cast<const float*>(params[2]);
    const auto s2 = *reinterpret_cast<const float*>(params[3]);
    const auto s3 = *reinterpret_cast<const float*>(params[4]);
    const auto s4 = *reinterpret_cast<const float*>(params[5]);
    const auto v0 = *reinterpret_cast<const Strided<float, 2, Inner::broadcast>*>(params[6]);
    const auto v1 = *reinterpret_cast<const Strided<float, 2, Inner::broadcast>*>(params[7]);
    const auto v2 = *reinterpret_cast<const Strided<float, 2, Inner::broadcast>*>(params[8]);
    const auto v3 = *reinterpret_cast<const Strided<float, 2, Inner::broadcast>*>(params[9]);
    const auto v4 = *reinterpret_cast<const Strided<float, 2, Inner::broadcast>*>(params[10]);
    const auto y0 = *reinterpret_cast<const Strided<float, 2, Inner::unit>*>(params[11]);
    // Stage 1
    using A0 = StridedRead<float, lanes, 2, Inner::unit>;
    const auto a0 = A0::build({x0, space});
    const Fold<Sum, 0, float, 2, Inner::broadcast> aw0{{v0, space}};
    const auto stage0 = stage<Work::fold>(list(a0), list(aw0));
    // Stage 2
    using B0 = StridedRead<float, lanes, 2, Inner::broadcast>;
    const auto b0 = B0::build({v0, space});
    using B1 = LoadScalar<B0::OutputType, 1, float, lanes>;
    const auto b1 = B1::build(s2);
    using B2 = Apply<Divide, B1::OutputType, 1, 0, 1>;
    const auto b2 = B2::build();
    using B3 = LoadScalar<B2::OutputType, 2, float, lanes>;
    const auto b3 = B3::build(s1);
    using B4 = Apply<Divide, B3::OutputType, 0, 0, 2>;
    const auto b4 = B4::build();
    using BW0 = StridedWrite<B4::OutputType, 1, float, 2, Inner::broadcast>;
    const auto bw0 = BW0::build({v1, space});
    using BW1 = StridedWrite<B4::OutputType, 0, float, 2, Inner::broadcast>;
    const auto bw1 = BW1::build({v4, space});
    const auto stage1 = stage<Work::row>(list(b0, b1, b2, b3, b4), list(bw0, bw1));
    // Stage 3
    using C0 = StridedRead<float, lanes, 2, Inner::unit>;
    const auto c0 = C0::build({x0, space});
    using C1 = LoadStrided<C0::OutputType, 1, float, lanes, 2, Inner::broadcast>;
    const auto c1 = C1::build({v1, space});
    using C2 = Apply<Subtract, C1::OutputType, 0, 0, 1>;
    const auto c2 = C2::build();
    using C3 = Apply<Square, C2::OutputType, 0, 0>;
    const auto c3 = C3::build();
    const Fold<Sum, 0, float, 2, Inner::broadcast> cw0{{v2, space}};
    const auto stage2 = stage<Work::fold>(list(c0, c1, c2, c3), list(cw0));
    // Stage 4
    using D0 = StridedRead<float, lanes, 2, Inner::broadcast>;
    const auto d0 = D0::build({v2, space});
    using D1 = LoadScalar<D0::OutputType, 1, float, lanes>;
    const auto d1 = D1::build(s3);
    using D2 = Apply<Divide, D1::OutputType, 0, 0, 1>;
    const auto d2 = D2::build();
    using D3 = Apply<Sqrt, D2::OutputType, 0, 0>;
    const auto d3 = D3::build();
    using D4 = LoadScalar<D3::OutputType, 1, float, lanes>;
    const auto d4 = D4::build(s4);
    using D5 = Apply<Add, D4::OutputType, 0, 0, 1>;
    const auto d5 = D5::build();
    using DW0 = StridedWrite<D5::OutputType, 0, float, 2, Inner::broadcast>;
    const auto dw0 = DW0::build({v3, space});
    const auto stage3 = stage<Work::row>(list(d0, d1, d2, d3, d4, d5), list(dw0));
    // Stage 5
    using E0 = StridedRead<float, lanes, 2, Inner::unit>;
    const auto e0 = E0::build({x0, space});
    using E1 = LoadStrided<E0::OutputType, 1, float, lanes, 2, Inner::broadcast>;
    const auto e1 = E1::build({v3, space});
    using E2 = LoadStrided<E1::OutputType, 2, float, lanes, 2, Inner::broadcast>;
    const auto e2 = E2::build({v4, space});
    using E3 = Apply<Subtract, E2::OutputType, 0, 0, 2>;
    const auto e3 = E3::build();
    using E4 = Apply<Divide, E3::OutputType, 0, 0, 1>;
    const auto e4 = E4::build();
    using EW0 = StridedWrite<E4::OutputType, 0, float, 2, Inner::unit>;
    const auto ew0 = EW0::build({y0, space});
    const auto stage4 = stage<Work::elements>(list(e0, e1, e2, e3, e4), list(ew0));
    auto queue = open_stream(stream);
    fk::executeOperations<RowsDPP<lanes>>(queue, space, stage0, stage1, stage2, stage3, stage4);
    return close_stream(queue);
}
