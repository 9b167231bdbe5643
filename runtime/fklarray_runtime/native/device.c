/* NVIDIA devices: memory in the order of streams, copies and launches, by the driver's interface.
 *
 * The driver is loaded when devices are first asked for, so that machines without one lose nothing.
 * Each block has one stream at a time, on which everything done with it is in order: another stream
 * that uses the block waits for the first one, and is the block's stream from then on. So a block
 * can go back to the driver's pool on its last stream, at once, whatever still runs. Nothing here
 * touches Python or needs the GIL. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "native.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is used of cuda.h, which is not there where this is compiled. */
typedef int Result;
typedef int Device;
typedef uint64_t Address;
typedef struct Context_* Context;
typedef struct Pool_* Pool;
typedef struct Event_* Event;
typedef void* Stream;

#define OUT_OF_MEMORY 2
#define NOT_READY 600
#define ATTRIBUTE_MAJOR 75
#define ATTRIBUTE_MINOR 76
#define POOL_RELEASE_THRESHOLD 4
#define POOL_RESERVED 5
#define EVENT_WITHOUT_TIMING 2

/* Name in the driver, result, parameters. */
#define DRIVER_FUNCTIONS(X)                                                                        \
    X(cuInit, (unsigned))                                                                          \
    X(cuDriverGetVersion, (int*))                                                                  \
    X(cuGetErrorString, (Result, const char**))                                                    \
    X(cuDeviceGetCount, (int*))                                                                    \
    X(cuDeviceGet, (Device*, int))                                                                 \
    X(cuDeviceGetName, (char*, int, Device))                                                       \
    X(cuDeviceGetAttribute, (int*, int, Device))                                                   \
    X(cuDevicePrimaryCtxRetain, (Context*, Device))                                                \
    X(cuDeviceGetDefaultMemPool, (Pool*, Device))                                                  \
    X(cuMemPoolSetAttribute, (Pool, int, void*))                                                   \
    X(cuMemPoolGetAttribute, (Pool, int, void*))                                                   \
    X(cuMemPoolTrimTo, (Pool, size_t))                                                             \
    X(cuCtxGetCurrent, (Context*))                                                                 \
    X(cuCtxPushCurrent_v2, (Context))                                                              \
    X(cuCtxPopCurrent_v2, (Context*))                                                              \
    X(cuMemGetInfo_v2, (size_t*, size_t*))                                                         \
    X(cuMemAllocAsync, (Address*, size_t, Stream))                                                 \
    X(cuMemFreeAsync, (Address, Stream))                                                           \
    X(cuMemcpyAsync, (Address, Address, size_t, Stream))                                           \
    X(cuStreamSynchronize, (Stream))                                                               \
    X(cuStreamWaitEvent, (Stream, Event, unsigned))                                                \
    X(cuEventCreate, (Event*, unsigned))                                                           \
    X(cuEventRecord, (Event, Stream))                                                              \
    X(cuEventQuery, (Event))                                                                       \
    X(cuEventDestroy_v2, (Event))

static struct {
#define MEMBER(name, parameters) Result(*name) parameters;
    DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
} driver;

static struct {
    Context context;
    Pool pool;
} devices[FKL_MAX_DEVICES];

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static int32_t device_count;
static char problem[512];
static int forked;

/* What a block of a device's memory owns. */
typedef struct Memory {
    Address address;
    int32_t device;
    Stream stream; /* everything done with the memory is in order there */
    void* managed; /* imported memory: the producer's tensor */
    int versioned;
    Event passed; /* imported memory that nobody holds any more: when it has been used */
    struct Memory* next;
} Memory;

/* Imported memory whose producer may only have it back when the device is done with it. */
static Memory* waiting;
static pthread_mutex_t waiting_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t moving_lock = PTHREAD_MUTEX_INITIALIZER;

static void remember_the_fork(void) {
    forked = device_count > 0;
    pthread_mutex_init(&waiting_lock, NULL);
    pthread_mutex_init(&moving_lock, NULL);
}

static int load_driver(void) {
    const char* named = getenv("FKLARRAY_CUDA_DRIVER");
    void* library = dlopen(named != NULL ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(problem, sizeof problem, "there is no NVIDIA driver: %s", dlerror());
        return 0;
    }
    void* symbol;
    /* ISO C has no cast from an object pointer to a function pointer; POSIX promises the bits. */
#define FIND(name, parameters)                                                                     \
    symbol = dlsym(library, #name);                                                                \
    if (symbol == NULL) {                                                                          \
        snprintf(problem, sizeof problem, "the NVIDIA driver is too old: it has no " #name);       \
        return 0;                                                                                  \
    }                                                                                              \
    memcpy(&driver.name, &symbol, sizeof symbol);
    DRIVER_FUNCTIONS(FIND)
#undef FIND
    return 1;
}

static int succeeds(Result result, const char* doing) {
    if (result == 0) return 1;
    snprintf(problem, sizeof problem, "%s: %s", doing, fkl_device_message(result));
    return 0;
}

static void open_driver(void) {
    int count = 0;
    if (!load_driver() || !succeeds(driver.cuInit(0), "the NVIDIA driver does not start") ||
        !succeeds(driver.cuDeviceGetCount(&count), "the NVIDIA driver has no devices"))
        return;
    if (count == 0) snprintf(problem, sizeof problem, "the NVIDIA driver has no devices");
    pthread_atfork(NULL, NULL, remember_the_fork);
    device_count = count < FKL_MAX_DEVICES ? count : FKL_MAX_DEVICES;
}

int32_t fkl_device_count(void) {
    pthread_once(&opened, open_driver);
    return device_count;
}

const char* fkl_device_problem(void) {
    if (forked) return "CUDA does not work in a forked child of a process that has used it";
    return problem;
}

const char* fkl_device_message(int code) {
    const char* text = NULL;
    if (forked) return fkl_device_problem();
    if (driver.cuGetErrorString == NULL || driver.cuGetErrorString(code, &text) != 0) return "";
    return text != NULL ? text : "";
}

/* ---- contexts ---- */

/* Makes a device's context the thread's; returns whether `leave` is to undo that, or -1. */
static int enter(int32_t device, Result* result) {
    Context current = NULL;
    *result = FKL_DEVICE_FORKED;
    if (forked) return -1;
    if (devices[device].context == NULL) {
        Device handle;
        Context context = NULL;
        Pool pool = NULL;
        uint64_t everything = UINT64_MAX; /* the pool keeps what is given back, for reuse */
        if ((*result = driver.cuDeviceGet(&handle, device)) != 0 ||
            (*result = driver.cuDevicePrimaryCtxRetain(&context, handle)) != 0 ||
            (*result = driver.cuDeviceGetDefaultMemPool(&pool, handle)) != 0 ||
            (*result = driver.cuMemPoolSetAttribute(pool, POOL_RELEASE_THRESHOLD, &everything)) !=
                0)
            return -1;
        devices[device].pool = pool;
        __atomic_store_n(&devices[device].context, context, __ATOMIC_RELEASE);
    }
    *result = driver.cuCtxGetCurrent(&current);
    if (*result == 0 && current == devices[device].context) return 0;
    *result = driver.cuCtxPushCurrent_v2(devices[device].context);
    return *result == 0 ? 1 : -1;
}

static void leave(int entered) {
    Context ignored;
    if (entered == 1) driver.cuCtxPopCurrent_v2(&ignored);
}

/* Makes one stream wait for what is queued on another now. */
static Result follow(Stream stream, Stream before) {
    Event event;
    Result result = driver.cuEventCreate(&event, EVENT_WITHOUT_TIMING);
    if (result != 0) return result;
    result = driver.cuEventRecord(event, before);
    if (result == 0) result = driver.cuStreamWaitEvent(stream, event, 0);
    driver.cuEventDestroy_v2(event); /* the driver lets it pass first */
    return result;
}

static Result move_to(Memory* memory, Stream stream) {
    if (__atomic_load_n(&memory->stream, __ATOMIC_ACQUIRE) == stream) return 0;
    pthread_mutex_lock(&moving_lock);
    const Result result = memory->stream == stream ? 0 : follow(stream, memory->stream);
    if (result == 0) __atomic_store_n(&memory->stream, stream, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&moving_lock);
    return result;
}

/* ---- memory ---- */

static void drop_tensor(Memory* memory) {
    fkl_delete_tensor(memory->managed, memory->versioned);
    free(memory);
}

/* Gives imported memory back that the device is done with. */
static void look_at_waiting(void) {
    Memory* done = NULL;
    pthread_mutex_lock(&waiting_lock);
    for (Memory** place = &waiting; *place != NULL;) {
        Memory* memory = *place;
        if (driver.cuEventQuery(memory->passed) == NOT_READY) {
            place = &memory->next;
            continue;
        }
        *place = memory->next;
        memory->next = done;
        done = memory;
    }
    pthread_mutex_unlock(&waiting_lock);
    while (done != NULL) {
        Memory* memory = done;
        done = memory->next;
        driver.cuEventDestroy_v2(memory->passed);
        drop_tensor(memory);
    }
}

static void let_wait(Memory* memory) {
    if (driver.cuEventCreate(&memory->passed, EVENT_WITHOUT_TIMING) != 0 ||
        driver.cuEventRecord(memory->passed, memory->stream) != 0) {
        drop_tensor(memory); /* the process ends, or the device has failed */
        return;
    }
    pthread_mutex_lock(&waiting_lock);
    memory->next = waiting;
    waiting = memory;
    pthread_mutex_unlock(&waiting_lock);
    look_at_waiting();
}

static void drop_memory(void* owner) {
    Memory* memory = owner;
    Result result;
    if (forked) return; /* the parent's */
    const int entered = enter(memory->device, &result);
    if (memory->managed != NULL) {
        let_wait(memory);
    } else {
        driver.cuMemFreeAsync(memory->address, memory->stream);
        free(memory);
    }
    leave(entered);
}

static uintptr_t new_block(Memory memory) {
    struct fkl_block* block = fkl_block_foreign();
    Memory* kept = block != NULL ? malloc(sizeof *kept) : NULL;
    if (kept == NULL) {
        free(block);
        return 0;
    }
    *kept = memory;
    block->owner = kept;
    block->drop = drop_memory;
    return (uintptr_t)block;
}

static Memory* memory_of(uintptr_t block) { return ((struct fkl_block*)block)->owner; }

uintptr_t fkl_device_allocate(int32_t device, size_t nbytes, void* stream, int* code) {
    Memory memory = {.device = device, .stream = stream};
    const int entered = enter(device, code);
    if (entered < 0) return 0;
    if (waiting != NULL) look_at_waiting();
    *code = driver.cuMemAllocAsync(&memory.address, nbytes > 0 ? nbytes : 1, stream);
    uintptr_t block = 0;
    if (*code == 0) {
        block = new_block(memory);
        if (block == 0) {
            *code = OUT_OF_MEMORY;
            driver.cuMemFreeAsync(memory.address, stream);
        }
    }
    leave(entered);
    return block;
}

uintptr_t fkl_device_block(int32_t device, void* stream) {
    return new_block((Memory){.device = device, .stream = stream});
}

void fkl_device_adopt(uintptr_t block, void* managed, int versioned) {
    Memory* memory = memory_of(block);
    memory->managed = managed;
    memory->versioned = versioned;
}

uint64_t fkl_device_address(uintptr_t block) { return memory_of(block)->address; }

int fkl_device_use(uintptr_t block, void* stream) {
    Result result;
    Memory* memory = memory_of(block);
    const int entered = enter(memory->device, &result);
    if (entered < 0) return result;
    result = move_to(memory, stream);
    leave(entered);
    return result;
}

int fkl_device_copy(int32_t device, uint64_t to, uint64_t from, size_t nbytes, void* stream,
                    int wait) {
    Result result;
    const int entered = enter(device, &result);
    if (entered < 0) return result;
    if (nbytes > 0) result = driver.cuMemcpyAsync(to, from, nbytes, stream);
    if (result == 0 && wait) result = driver.cuStreamSynchronize(stream);
    leave(entered);
    return result;
}

int fkl_device_launch(const fkl_kernel* kernel, const char* data, int32_t device, void* stream,
                      const uint64_t* blocks, int32_t count) {
    Result result;
    const int entered = enter(device, &result);
    if (entered < 0) return FKL_DEVICE_REFUSED + result;
    for (int32_t i = 0; i < count && result == 0; ++i) {
        result = move_to(memory_of((uintptr_t)blocks[i]), stream);
    }
    result = result == 0 ? fkl_kernel_launch(kernel, data, stream) : FKL_DEVICE_REFUSED + result;
    leave(entered);
    return result;
}

/* ---- what the doctor asks ---- */

int fkl_device_properties(int32_t device, fkl_device_description* found) {
    Device handle;
    memset(found, 0, sizeof *found);
    Result result;
    const int entered = enter(device, &result);
    if (entered < 0) return result;
    if ((result = driver.cuDeviceGet(&handle, device)) == 0 &&
        (result = driver.cuDeviceGetName(found->name, sizeof found->name, handle)) == 0 &&
        (result = driver.cuDeviceGetAttribute(&found->major, ATTRIBUTE_MAJOR, handle)) == 0 &&
        (result = driver.cuDeviceGetAttribute(&found->minor, ATTRIBUTE_MINOR, handle)) == 0 &&
        (result = driver.cuDriverGetVersion(&found->driver)) == 0 &&
        (result = driver.cuMemPoolGetAttribute(devices[device].pool, POOL_RESERVED,
                                               &found->reserved)) == 0)
        result = driver.cuMemGetInfo_v2(&found->free, &found->total);
    leave(entered);
    return result;
}

int fkl_device_trim(int32_t device) {
    Result result;
    if (devices[device].context == NULL || forked) return 0; /* nothing is this process' */
    const int entered = enter(device, &result);
    if (entered < 0) return result;
    look_at_waiting();
    result = driver.cuMemPoolTrimTo(devices[device].pool, 0);
    leave(entered);
    return result;
}
