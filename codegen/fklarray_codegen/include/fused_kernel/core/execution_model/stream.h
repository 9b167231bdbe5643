// Where the work of executeOperations is submitted to.
#pragma once

#include <fused_kernel/core/execution_model/parallel_architectures.h>

#include <cstdint>

namespace fk {

template <ParArch PA>
class Stream_;

// On the CPU a stream wraps an executor that runs tasks on the caller's threads. The structure is
// the C ABI of the host language's thread pool; a null pointer means: run in the calling thread.
template <>
class Stream_<ParArch::CPU> {
public:
    struct TaskExecutor {
        std::int32_t abi;
        std::int32_t threads;
        void (*run)(TaskExecutor* self, void (*body)(void* context, std::int64_t task),
                    void* context, std::int64_t tasks);
    };

    Stream_() = default;
    explicit Stream_(void* executor) : executor_(static_cast<TaskExecutor*>(executor)) {}

    int threads() const { return executor_ ? executor_->threads : 1; }

    // Calls body(task) for every task in [0, tasks), in any order, and returns when all are done.
    template <typename Body>
    void run(std::int64_t tasks, const Body& body) const {
        if (executor_ == nullptr || tasks == 1) {
            for (std::int64_t task = 0; task < tasks; ++task) body(task);
            return;
        }
        const auto call = [](void* context, std::int64_t task) {
            (*static_cast<const Body*>(context))(task);
        };
        executor_->run(executor_, call, const_cast<Body*>(&body), tasks);
    }

    void sync() {}
    static constexpr ParArch parArch() { return ParArch::CPU; }

private:
    TaskExecutor* executor_ = nullptr;
};

#if defined(__CUDACC__)
// A CUDA stream of somebody else's.
template <>
class Stream_<ParArch::GPU_NVIDIA> {
public:
    explicit Stream_(cudaStream_t stream) : stream_(stream) {}

    cudaStream_t getCUDAStream() const { return stream_; }
    void sync() { cudaStreamSynchronize(stream_); }
    static constexpr ParArch parArch() { return ParArch::GPU_NVIDIA; }

private:
    cudaStream_t stream_;
};
#endif

using Stream = Stream_<defaultParArch>;

}  // namespace fk
