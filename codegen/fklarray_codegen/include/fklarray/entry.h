// What a translation unit exports: fkl_entry, which it defines itself, and fkl_error_message.
// Include it once per library.
#pragma once

#include <fklarray/lean.h>
#include <fused_kernel/fused_kernel.h>

#define FKLARRAY_ENTRY extern "C" __attribute__((visibility("default")))

#if defined(__CUDACC__)
namespace fklarray {

inline thread_local cudaError_t last_error = cudaSuccess;

// For callers who have no stream and wait: one for each unit.
inline cudaStream_t own_stream() {
    static const cudaStream_t stream = [] {
        cudaStream_t created = nullptr;
        cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking);
        return created;
    }();
    return stream;
}

inline fk::Stream open_stream(void* stream) {
    return fk::Stream(stream != nullptr ? static_cast<cudaStream_t>(stream) : own_stream());
}

// What went wrong, or 0. A launch on the caller's stream may still be running.
inline int close_stream(fk::Stream& stream) {
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess && stream.getCUDAStream() == own_stream()) {
        error = cudaStreamSynchronize(own_stream());
    }
    if (error != cudaSuccess) last_error = error;
    return error;
}

}  // namespace fklarray

// The text for the last non-zero return of fkl_entry in this thread.
FKLARRAY_ENTRY const char* fkl_error_message() { return cudaGetErrorString(fklarray::last_error); }
#else
// The text for the last non-zero return of fkl_entry. Nothing on a CPU can fail.
FKLARRAY_ENTRY const char* fkl_error_message() { return ""; }

namespace fklarray {

// A stream around the host's executor where the library has such a constructor (the public FKL
// has none on the CPU, and runs in the calling thread).
template <typename Stream = fk::Stream>
Stream open_stream([[maybe_unused]] void* stream) {
    if constexpr (lean::is_constructible_v<Stream, void*>) {
        return Stream(stream);
    } else {
        return Stream();
    }
}

inline int close_stream(fk::Stream&) { return 0; }

}  // namespace fklarray
#endif
