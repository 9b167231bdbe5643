// The threads of a kernel, one after the other on the host: each runs to its next barrier before
// the next one starts, and shared memory holds no zeros. So what needs a barrier and has none, or
// what nobody has stored, gives wrong results.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __shared__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads)

struct uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

using cudaError_t = int;
using cudaStream_t = void*;
constexpr cudaError_t cudaSuccess = 0;
constexpr cudaError_t cudaErrorInvalidConfiguration = 9;
constexpr unsigned cudaStreamNonBlocking = 1;

inline dim3 threadIdx, blockIdx, blockDim;

inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>(std::uint64_t{a} * b >> 32);
}
inline int __clz(int number) { return __builtin_clz(static_cast<unsigned>(number)); }

namespace fklarray {

constexpr std::size_t shared_bytes = 48 << 10;
inline uint4 shared_memory[shared_bytes / sizeof(uint4)];

}  // namespace fklarray

namespace emulated {

constexpr std::size_t stack_bytes = 64 << 10;
inline std::mutex lock;
inline cudaError_t error = cudaSuccess;
inline ucontext_t scheduler;
inline const std::function<void()>* kernel;

struct Thread {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[stack_bytes]};
    dim3 index;
    bool is_done = false;
};
inline Thread* current;

inline void start() {
    (*kernel)();
    current->is_done = true;
}

inline void run_block(std::vector<Thread>& threads) {
    std::memset(fklarray::shared_memory, 0xa5, fklarray::shared_bytes);
    for (Thread& thread : threads) {
        thread.is_done = false;
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = thread.stack.get();
        thread.context.uc_stack.ss_size = stack_bytes;
        thread.context.uc_link = &scheduler;
        makecontext(&thread.context, start, 0);
    }
    for (bool is_running = true; is_running;) {
        is_running = false;
        for (Thread& thread : threads) {
            if (thread.is_done) continue;
            current = &thread;
            threadIdx = thread.index;
            swapcontext(&scheduler, &thread.context);
            is_running = is_running || !thread.is_done;
        }
    }
}

inline void launch(dim3 grid, dim3 block, std::size_t bytes, cudaStream_t,
                   const std::function<void()>& body) {
    const std::lock_guard<std::mutex> guard(lock);
    const unsigned count = block.x * block.y * block.z;
    if (bytes > fklarray::shared_bytes || count > 1024 || grid.x == 0) {
        error = cudaErrorInvalidConfiguration;
        return;
    }
    kernel = &body;
    blockDim = block;
    std::vector<Thread> threads(count);
    for (unsigned i = 0; i < count; ++i) threads[i].index = {i % block.x, i / block.x, 0};
    for (unsigned i = 0; i < grid.x; ++i) {
        blockIdx = {i, 0, 0};
        run_block(threads);
    }
}

}  // namespace emulated

inline void __syncthreads() { swapcontext(&emulated::current->context, &emulated::scheduler); }

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    return *stream = &emulated::lock, cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaGetLastError() { return std::exchange(emulated::error, cudaSuccess); }
inline const char* cudaGetErrorString(cudaError_t) { return "emulated error"; }
