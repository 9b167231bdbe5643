// What a translation unit exports: fkl_entry, which it defines itself, and fkl_error_message.
// Include it once per library.
#pragma once

#include <fused_kernel/fused_kernel.h>

#include <type_traits>

#define FKLARRAY_ENTRY extern "C" __attribute__((visibility("default")))

// The text for the last non-zero return of fkl_entry. Nothing on a CPU can fail.
FKLARRAY_ENTRY const char* fkl_error_message() { return ""; }

namespace fklarray {

// A stream around the host's executor where the library has such a constructor (the public FKL
// has none on the CPU, and runs in the calling thread).
template <typename Stream = fk::Stream>
Stream open_stream([[maybe_unused]] void* stream) {
    if constexpr (std::is_constructible_v<Stream, void*>) {
        return Stream(stream);
    } else {
        return Stream();
    }
}

inline int close_stream(fk::Stream&) { return 0; }

}  // namespace fklarray
