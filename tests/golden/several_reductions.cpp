#include <fused_kernel/fused_kernel.h>
#include <fklarray/operations.h>
#include <fklarray/entry.h>
#include <fklarray/functors/cast.h>
#include <fklarray/rows.h>

FKLARRAY_ENTRY int fkl_entry(const void** params, void* stream) {
    using namespace fklarray;
    constexpr int lanes = pack_lanes<std::int16_t, std::int64_t, std::int32_t>();
    // 1. Parameters
    const auto space = *reinterpret_cast<const Space<2>*>(params[0]);
    const auto x0 = *reinterpret_cast<const Strided<std::int16_t, 2, Inner::unit>*>(params[1]);
    const auto v0 = *reinterpret_cast<const Strided<std::int64_t, 2, Inner::broadcast>*>(params[2]);
    const auto v1 = *reinterpret_cast<const Strided<std::int64_t, 2, Inner::broadcast>*>(params[3]);
    // Stage 1
    using A0 = StridedRead<std::int16_t, lanes, 2, Inner::unit>;
    const auto a0 = A0::build({x0, space});
    using A1 = Apply<Cast<std::int64_t>, A0::OutputType, 1, 0>;
    const auto a1 = A1::build();
    const Fold<Sum, 1, std::int64_t, 2, Inner::broadcast> aw0{{v0, space}};
    const Fold<Argmax, 0, std::int16_t, 2, Inner::broadcast> aw1{{v1, space}};
    const auto stage0 = stage<Work::fold>(list(a0, a1), list(aw0, aw1));
    auto queue = open_stream(stream);
    fk::executeOperations<RowsDPP<lanes>>(queue, space, stage0);
    return close_stream(queue);
}
