// An NVIDIA driver that is none: two devices whose memory is the host's, and whose streams run what
// they are given at once. Tests of what surrounds kernels run on it where there is no device. It
// can show neither races nor what real kernels do.
//
// A device's memory can only be touched during a copy or a kernel, so that whoever takes an address
// of a device for one of the host dies, as on a real one.
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

namespace {

constexpr std::size_t arena_bytes = std::size_t{1} << 34;
constexpr std::size_t device_bytes = std::size_t{2} << 30;  // what each device seems to have
constexpr std::size_t alignment = 512;
constexpr int devices = 2;
constexpr int out_of_memory = 2;
constexpr int invalid_value = 1;
constexpr int invalid_context = 201;

std::mutex lock;
char* arena = nullptr;
std::map<std::size_t, std::size_t> used;  // offset: bytes
std::size_t in_use = 0;
int visitors = 0;
std::set<void*> events;
thread_local void* contexts[16];
thread_local int depth = 0;

void reserve() {
    if (arena == nullptr) {
        arena = static_cast<char*>(mmap(nullptr, arena_bytes, PROT_NONE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    }
}

std::size_t find_gap(std::size_t bytes) {
    std::size_t start = 0;
    for (const auto& [offset, length] : used) {
        if (offset - start >= bytes) return start;
        start = offset + length;
    }
    return start;
}

}  // namespace

#define DRIVER extern "C" __attribute__((visibility("default")))

// The wrapper that the emulated nvcc puts around an entry calls these two.
DRIVER void emulated_begin() {
    const std::lock_guard<std::mutex> guard(lock);
    reserve();
    if (visitors++ == 0) mprotect(arena, arena_bytes, PROT_READ | PROT_WRITE);
}

DRIVER void emulated_end() {
    const std::lock_guard<std::mutex> guard(lock);
    if (--visitors == 0) mprotect(arena, arena_bytes, PROT_NONE);
}

DRIVER int cuInit(unsigned) { return 0; }
DRIVER int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
DRIVER int cuGetErrorString(int code, const char** text) {
    *text = code == out_of_memory ? "out of memory" : "emulated error";
    return 0;
}
DRIVER int cuDeviceGetCount(int* count) { return *count = devices, 0; }
DRIVER int cuDeviceGet(int* device, int number) { return *device = number, 0; }
DRIVER int cuDeviceGetName(char* name, int length, int) {
    return strncpy(name, "Emulated device", static_cast<std::size_t>(length)), 0;
}
DRIVER int cuDeviceGetAttribute(int* value, int attribute, int) {
    return *value = attribute == 75 ? 9 : 0, 0;
}
DRIVER int cuDevicePrimaryCtxRetain(void** context, int device) {
    return *context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(device) + 1), 0;
}
DRIVER int cuDeviceGetDefaultMemPool(void** pool, int) { return *pool = nullptr, 0; }
DRIVER int cuMemPoolSetAttribute(void*, int, void*) { return 0; }
DRIVER int cuMemPoolGetAttribute(void*, int, void* value) {
    const std::lock_guard<std::mutex> guard(lock);
    return *static_cast<std::uint64_t*>(value) = in_use, 0;
}
DRIVER int cuMemPoolTrimTo(void*, std::size_t) { return 0; }
DRIVER int cuCtxGetCurrent(void** context) {
    return *context = depth > 0 ? contexts[depth - 1] : nullptr, 0;
}
DRIVER int cuCtxPushCurrent_v2(void* context) { return contexts[depth++] = context, 0; }
DRIVER int cuCtxPopCurrent_v2(void** context) { return *context = contexts[--depth], 0; }
DRIVER int cuCtxSynchronize() { return 0; }
DRIVER int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
    const std::lock_guard<std::mutex> guard(lock);
    *total = device_bytes;
    *free = device_bytes - in_use;
    return 0;
}

DRIVER int cuMemAllocAsync(std::uint64_t* address, std::size_t bytes, void*) {
    if (depth == 0) return invalid_context;
    const std::lock_guard<std::mutex> guard(lock);
    reserve();
    const std::size_t length = (bytes + alignment - 1) / alignment * alignment;
    if (bytes == 0) return invalid_value;
    if (length > device_bytes - in_use) return out_of_memory;
    const std::size_t offset = find_gap(length);
    used[offset] = length;
    in_use += length;
    *address = reinterpret_cast<std::uint64_t>(arena + offset);
    return 0;
}

DRIVER int cuMemFreeAsync(std::uint64_t address, void*) {
    const std::lock_guard<std::mutex> guard(lock);
    const auto found = used.find(address - reinterpret_cast<std::uint64_t>(arena));
    if (found == used.end()) return invalid_value;
    in_use -= found->second;
    used.erase(found);
    return 0;
}

DRIVER int cuMemcpyAsync(std::uint64_t to, std::uint64_t from, std::size_t bytes, void*) {
    if (depth == 0) return invalid_context;
    emulated_begin();
    memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    emulated_end();
    return 0;
}

DRIVER int cuStreamSynchronize(void*) { return depth > 0 ? 0 : invalid_context; }
DRIVER int cuStreamWaitEvent(void*, void* event, unsigned) {
    const std::lock_guard<std::mutex> guard(lock);
    return events.count(event) ? 0 : invalid_value;
}
DRIVER int cuEventCreate(void** event, unsigned) {
    const std::lock_guard<std::mutex> guard(lock);
    *event = new char;
    return events.insert(*event), 0;
}
DRIVER int cuEventRecord(void*, void*) { return 0; }
DRIVER int cuEventQuery(void*) { return 0; }
DRIVER int cuEventDestroy_v2(void* event) {
    const std::lock_guard<std::mutex> guard(lock);
    if (events.erase(event) == 0) return invalid_value;
    delete static_cast<char*>(event);
    return 0;
}
