/* NVIDIA devices: memory in the order of streams, copies and launches, by the driver's interface.
 *
 * Each block has one stream at a time, on which everything done with it is in order: another stream
 * that uses the block waits for the first one, and is the block's stream from then on. So a block
 * can go back to the driver's pool on its last stream, at once, whatever still runs. Nothing here
 * touches Python or needs the GIL. */
#include "driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LEGACY_STREAM ((Stream)1)
#define PER_THREAD_STREAM ((Stream)2)
#define SPARES 8
#define MOST_SPARE_BYTES ((size_t)16 << 20)

/* Memory of the legacy stream, which is never destroyed, that was given back last. The driver's
 * pool takes a microsecond to have it back and to hand it out again. */
typedef struct Spare {
    Address address; /* 0: none */
    size_t nbytes;
} Spare;

static struct {
    Context context;
    Pool pool;
    Spare spares[SPARES];
    int oldest; /* of the spares */
} devices[FKL_MAX_DEVICES];

/* What a block of a device's memory owns. */
typedef struct Memory {
    Address address;
    size_t nbytes; /* 0 for imported memory */
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
static pthread_mutex_t spares_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- contexts ---- */

/* Makes a device's context the thread's; returns whether `leave` is to undo that, or -1. */
static int enter(int32_t device, Result* result) {
    Context current = NULL;
    *result = FKL_DEVICE_FORKED;
    if (fkl_forked) return -1;
    *result = INVALID_DEVICE;
    if (device < 0 || device >= fkl_device_count()) return -1;
    if (devices[device].context == NULL) {
        Device handle;
        Context context = NULL;
        Pool pool = NULL;
        uint64_t everything = UINT64_MAX; /* the pool keeps what is given back, for reuse */
        if ((*result = fkl_driver.cuDeviceGet(&handle, device)) != 0 ||
            (*result = fkl_driver.cuDevicePrimaryCtxRetain(&context, handle)) != 0 ||
            (*result = fkl_driver.cuDeviceGetDefaultMemPool(&pool, handle)) != 0 ||
            (*result =
                 fkl_driver.cuMemPoolSetAttribute(pool, POOL_RELEASE_THRESHOLD, &everything)) != 0)
            return -1;
        devices[device].pool = pool;
        __atomic_store_n(&devices[device].context, context, __ATOMIC_RELEASE);
    }
    *result = fkl_driver.cuCtxGetCurrent(&current);
    if (*result == 0 && current == devices[device].context) return 0;
    *result = fkl_driver.cuCtxPushCurrent_v2(devices[device].context);
    return *result == 0 ? 1 : -1;
}

static void leave(int entered) {
    Context ignored;
    if (entered == 1) fkl_driver.cuCtxPopCurrent_v2(&ignored);
}

/* Makes one stream wait for what is queued on another now. */
static Result follow(Stream stream, Stream before) {
    Event event;
    Result result = fkl_driver.cuEventCreate(&event, EVENT_WITHOUT_TIMING);
    if (result != 0) return result;
    result = fkl_driver.cuEventRecord(event, before);
    if (result == 0) result = fkl_driver.cuStreamWaitEvent(stream, event, 0);
    fkl_driver.cuEventDestroy_v2(event); /* the driver lets it pass first */
    return result;
}

/* The legacy stream is in order with that of every thread, whose handle is the same in each. */
static Stream in_order(void* stream) {
    return stream == PER_THREAD_STREAM || stream == NULL ? LEGACY_STREAM : stream;
}

/* A stream that has blocks: its owner must not destroy it. */
typedef struct Used {
    Stream stream;
    int64_t blocks;
    struct Used* next;
} Used;

static Used* used;
static pthread_mutex_t used_lock = PTHREAD_MUTEX_INITIALIZER;

static void count_block(Stream stream, int change) {
    if (stream == LEGACY_STREAM || fkl_forked) return; /* nobody destroys that */
    pthread_mutex_lock(&used_lock);
    Used** place = &used;
    while (*place != NULL && (*place)->stream != stream) place = &(*place)->next;
    if (*place == NULL && (*place = calloc(1, sizeof **place)) != NULL) (*place)->stream = stream;
    if (*place != NULL && ((*place)->blocks += change) == 0) {
        Used* unused = *place;
        *place = unused->next;
        free(unused);
    }
    pthread_mutex_unlock(&used_lock);
}

int fkl_device_needs(void* stream) {
    if (fkl_forked) return 0;
    pthread_mutex_lock(&used_lock);
    const Used* found = used;
    while (found != NULL && found->stream != stream) found = found->next;
    pthread_mutex_unlock(&used_lock);
    return found != NULL;
}

static Result move_to(Memory* memory, Stream stream) {
    if (__atomic_load_n(&memory->stream, __ATOMIC_ACQUIRE) == stream) return 0;
    pthread_mutex_lock(&moving_lock);
    const Result result = memory->stream == stream ? 0 : follow(stream, memory->stream);
    if (result == 0 && memory->stream != stream) {
        count_block(stream, 1);
        count_block(memory->stream, -1);
        __atomic_store_n(&memory->stream, stream, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&moving_lock);
    return result;
}

/* ---- memory ---- */

static void drop_tensor(Memory* memory) {
    count_block(memory->stream, -1);
    fkl_delete_tensor(memory->managed, memory->versioned);
    free(memory);
}

/* Gives imported memory back that the device is done with. */
static void look_at_waiting(void) {
    Memory* done = NULL;
    pthread_mutex_lock(&waiting_lock);
    for (Memory** place = &waiting; *place != NULL;) {
        Memory* memory = *place;
        if (fkl_driver.cuEventQuery(memory->passed) == NOT_READY) {
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
        fkl_driver.cuEventDestroy_v2(memory->passed);
        drop_tensor(memory);
    }
}

static void let_wait(Memory* memory) {
    if (fkl_driver.cuEventCreate(&memory->passed, EVENT_WITHOUT_TIMING) != 0 ||
        fkl_driver.cuEventRecord(memory->passed, memory->stream) != 0) {
        drop_tensor(memory); /* the process ends, or the device has failed */
        return;
    }
    pthread_mutex_lock(&waiting_lock);
    memory->next = waiting;
    waiting = memory;
    pthread_mutex_unlock(&waiting_lock);
    look_at_waiting();
}

/* Keeps memory in place of the oldest spare, which is given back; returns whether it did. */
static int make_spare(const Memory* memory) {
    Address before = 0;
    if (memory->stream != LEGACY_STREAM || memory->nbytes > MOST_SPARE_BYTES) return 0;
    Spare* spares = devices[memory->device].spares;
    pthread_mutex_lock(&spares_lock);
    int chosen = 0;
    while (chosen < SPARES && spares[chosen].address != 0) ++chosen;
    if (chosen == SPARES) {
        chosen = devices[memory->device].oldest;
        devices[memory->device].oldest = (chosen + 1) % SPARES;
        before = spares[chosen].address;
    }
    spares[chosen] = (Spare){memory->address, memory->nbytes};
    pthread_mutex_unlock(&spares_lock);
    if (before != 0) fkl_driver.cuMemFreeAsync(before, LEGACY_STREAM);
    return 1;
}

/* A spare of so many bytes, or of any number; 0 if there is none. */
static Address take_spare(int32_t device, size_t nbytes, int any) {
    Address found = 0;
    Spare* spares = devices[device].spares;
    pthread_mutex_lock(&spares_lock);
    for (int i = 0; i < SPARES && found == 0; ++i) {
        if (!any && spares[i].nbytes != nbytes) continue;
        found = spares[i].address;
        spares[i] = (Spare){0};
    }
    pthread_mutex_unlock(&spares_lock);
    return found;
}

static void drop_memory(void* owner) {
    Memory* memory = owner;
    Result result;
    if (fkl_forked) return; /* the parent's */
    const int entered = enter(memory->device, &result);
    if (memory->managed != NULL) {
        let_wait(memory);
    } else {
        if (memory->address != 0 && !make_spare(memory))
            fkl_driver.cuMemFreeAsync(memory->address, memory->stream);
        count_block(memory->stream, -1);
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
    count_block(memory.stream, 1);
    block->owner = kept;
    block->drop = drop_memory;
    return (uintptr_t)block;
}

static Memory* memory_of(uintptr_t block) { return ((struct fkl_block*)block)->owner; }

uintptr_t fkl_device_allocate(int32_t device, size_t nbytes, void* stream, int* code) {
    Memory memory = {
        .nbytes = nbytes > 0 ? nbytes : 1, .device = device, .stream = in_order(stream)};
    const int entered = enter(device, code);
    if (entered < 0) return 0;
    if (waiting != NULL) look_at_waiting();
    if (memory.stream == LEGACY_STREAM) memory.address = take_spare(device, memory.nbytes, 0);
    if (memory.address == 0)
        *code = fkl_driver.cuMemAllocAsync(&memory.address, memory.nbytes, memory.stream);
    uintptr_t block = 0;
    if (*code == 0) {
        block = new_block(memory);
        if (block == 0) {
            *code = OUT_OF_MEMORY;
            fkl_driver.cuMemFreeAsync(memory.address, memory.stream);
        }
    }
    leave(entered);
    return block;
}

uintptr_t fkl_device_block(int32_t device, void* stream) {
    return new_block((Memory){.device = device, .stream = in_order(stream)});
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
    result = move_to(memory, in_order(stream));
    leave(entered);
    return result;
}

int fkl_device_copy(int32_t device, uint64_t to, uint64_t from, size_t nbytes, void* stream,
                    int wait) {
    Result result;
    stream = in_order(stream);
    const int entered = enter(device, &result);
    if (entered < 0) return result;
    if (nbytes > 0) result = fkl_driver.cuMemcpyAsync(to, from, nbytes, stream);
    if (result == 0 && wait) result = fkl_driver.cuStreamSynchronize(stream);
    leave(entered);
    return result;
}

int fkl_device_launch(const fkl_kernel* kernel, const char* data, int32_t device, void* stream,
                      const uint64_t* blocks, int32_t count) {
    Result result;
    stream = in_order(stream);
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
    if ((result = fkl_driver.cuDeviceGet(&handle, device)) == 0 &&
        (result = fkl_driver.cuDeviceGetName(found->name, sizeof found->name, handle)) == 0 &&
        (result = fkl_driver.cuDeviceGetAttribute(&found->major, ATTRIBUTE_MAJOR, handle)) == 0 &&
        (result = fkl_driver.cuDeviceGetAttribute(&found->minor, ATTRIBUTE_MINOR, handle)) == 0 &&
        (result = fkl_driver.cuDriverGetVersion(&found->driver)) == 0 &&
        (result = fkl_driver.cuMemPoolGetAttribute(devices[device].pool, POOL_RESERVED,
                                                   &found->reserved)) == 0)
        result = fkl_driver.cuMemGetInfo_v2(&found->free, &found->total);
    leave(entered);
    return result;
}

int fkl_device_trim(int32_t device) {
    Result result;
    if (device < 0 || device >= fkl_device_count()) return INVALID_DEVICE;
    if (devices[device].context == NULL || fkl_forked) return 0; /* nothing is this process' */
    const int entered = enter(device, &result);
    if (entered < 0) return result;
    look_at_waiting();
    for (Address spare; (spare = take_spare(device, 0, 1)) != 0;)
        fkl_driver.cuMemFreeAsync(spare, LEGACY_STREAM);
    /* The pool has back what was used before only when the device is done with that. */
    result = fkl_driver.cuCtxSynchronize();
    if (result == 0) result = fkl_driver.cuMemPoolTrimTo(devices[device].pool, 0);
    leave(entered);
    return result;
}
