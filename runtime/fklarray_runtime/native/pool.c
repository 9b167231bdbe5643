/* The caching pool.
 *
 * Small blocks (under 1 MiB) come in size classes, four to each power of two, and are kept in one
 * free list per class. Large blocks are mapped, ask for huge pages, and are reused best fit with at
 * most a quarter of waste: the page faults of fresh memory cost as much as a kernel over it.
 * Kept for reuse: at most 256 MiB or half of the most that was ever in use, whichever is more; and
 * no fresh memory is taken while something is kept and the pool is half as large again as what was
 * ever in use (or 32 MiB). The large blocks unused for longest go first. The user may set a lower
 * limit of what is kept. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "native.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/sysinfo.h>
#endif

#define ALIGNMENT ((size_t)64)
#define LARGE_BYTES ((size_t)1 << 20)
#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define LEAST_KEPT_BYTES ((size_t)256 << 20)
#define LEAST_POOL_BYTES ((size_t)32 << 20)
#define EXACT_CLASSES 8
#define CLASSES 52
/* Large payloads start at one of these many cache lines: equal offsets in a page would make every
 * stream of a kernel compete for the same sets of the cache. */
#define COLOURS 31

typedef struct fkl_block Block;

static struct {
    pthread_mutex_t lock;
    Block* small[CLASSES];
    Block* newest; /* large blocks kept for reuse, by time of release */
    Block* oldest;
    size_t in_use;
    size_t kept;
    size_t most_in_use;
    size_t limit; /* of what is kept, set by the user */
    size_t colour;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .limit = SIZE_MAX};

static size_t memory_limit = SIZE_MAX; /* physical memory and swap, within the container's share */

static void lock_pool(void) { pthread_mutex_lock(&pool.lock); }
static void unlock_pool(void) { pthread_mutex_unlock(&pool.lock); }

static size_t read_number(const char* path) {
    unsigned long long number = 0;
    FILE* file = fopen(path, "re");
    if (file == NULL) return SIZE_MAX;
    if (fscanf(file, "%llu", &number) != 1) number = SIZE_MAX;
    fclose(file);
    return (size_t)number;
}

static void find_memory_limit(void) {
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page = sysconf(_SC_PAGESIZE);
    size_t physical = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX / 2;
    size_t swap = 0;
#if defined(__linux__)
    struct sysinfo information;
    if (sysinfo(&information) == 0) swap = (size_t)information.totalswap * information.mem_unit;
    const size_t second = read_number("/sys/fs/cgroup/memory.max");
    const size_t first = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    if (second < physical) physical = second;
    if (first < physical) physical = first;
#endif
    memory_limit = physical + swap;
}

__attribute__((constructor)) static void prepare_pool(void) {
    find_memory_limit();
    /* Without this a child forked while another thread allocates would wait for ever. */
    pthread_atfork(lock_pool, unlock_pool, unlock_pool);
}

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

/* The size class for nbytes < LARGE_BYTES, and its capacity. */
static size_t size_class(size_t nbytes, size_t* capacity) {
    const size_t lines = nbytes == 0 ? 1 : (nbytes + ALIGNMENT - 1) / ALIGNMENT;
    if (lines <= EXACT_CLASSES) {
        *capacity = lines * ALIGNMENT;
        return lines - 1;
    }
    const size_t exponent = 63 - (size_t)__builtin_clzll((unsigned long long)(lines - 1));
    const size_t step = (size_t)1 << (exponent - 2);
    const size_t quarter = (lines - 1) / step;
    *capacity = (quarter + 1) * step * ALIGNMENT;
    return EXACT_CLASSES + (exponent - 3) * 4 + (quarter - 4);
}

static void unlink_large(Block* block) {
    if (block->previous != NULL)
        block->previous->next = block->next;
    else
        pool.newest = block->next;
    if (block->next != NULL)
        block->next->previous = block->previous;
    else
        pool.oldest = block->previous;
    pool.kept -= block->capacity;
}

static void link_large(Block* block) {
    block->previous = NULL;
    block->next = pool.newest;
    if (pool.newest != NULL)
        pool.newest->previous = block;
    else
        pool.oldest = block;
    pool.newest = block;
    pool.kept += block->capacity;
}

/* The smallest kept large block that holds nbytes with at most a quarter of waste. */
static Block* take_large(size_t nbytes) {
    Block* best = NULL;
    for (Block* block = pool.newest; block != NULL; block = block->next) {
        if (block->capacity < nbytes || block->capacity - nbytes > nbytes / 4) continue;
        if (best == NULL || block->capacity < best->capacity) best = block;
        if (best->capacity == round_up(nbytes, ALIGNMENT)) break;
    }
    if (best != NULL) unlink_large(best);
    return best;
}

static Block* take_small(size_t class_index) {
    Block* block = pool.small[class_index];
    if (block != NULL) {
        pool.small[class_index] = block->next;
        pool.kept -= block->capacity;
    }
    return block;
}

static void return_to_system(Block* block) {
    while (block != NULL) {
        Block* next = block->next;
        if (block->mapping != NULL)
            munmap(block->mapping, block->mapping_bytes);
        else
            free(block);
        block = next;
    }
}

/* Takes everything kept for reuse out of the pool, as one list. The lock is held. */
static Block* take_kept(void) {
    Block* all = pool.newest;
    pool.newest = pool.oldest = NULL;
    for (size_t i = 0; i < CLASSES; ++i) {
        Block* block = pool.small[i];
        pool.small[i] = NULL;
        while (block != NULL) {
            Block* next = block->next;
            block->next = all;
            all = block;
            block = next;
        }
    }
    pool.kept = 0;
    return all;
}

/* Takes the large block that is unused for longest out of the pool, in front of a list. */
static Block* take_oldest(Block* list) {
    Block* oldest = pool.oldest;
    unlink_large(oldest);
    oldest->next = list;
    return oldest;
}

/* Takes out of the pool, as one list, what must go before fresh memory comes. The lock is held.
 * A process's share of memory is given to it by what its arrays take at once: what is kept for
 * other sizes must not come on top of that. The half allows sizes to alternate without faults. */
static Block* make_room(size_t capacity) {
    Block* dropped = NULL;
    const size_t in_use = pool.in_use + capacity;
    size_t most = pool.most_in_use > in_use ? pool.most_in_use : in_use;
    most += most / 2;
    if (most < LEAST_POOL_BYTES) most = LEAST_POOL_BYTES;
    if (most > memory_limit) most = memory_limit;
    while (pool.oldest != NULL && pool.in_use + pool.kept + capacity > most)
        dropped = take_oldest(dropped);
    if (pool.in_use + pool.kept + capacity <= most) return dropped;
    for (Block* small = take_kept(); small != NULL;) {
        Block* next = small->next;
        small->next = dropped;
        dropped = small;
        small = next;
    }
    return dropped;
}

static Block* fresh_small(size_t capacity, size_t class_index) {
    void* memory = NULL;
    if (posix_memalign(&memory, ALIGNMENT, FKL_HEADER_BYTES + capacity) != 0) return NULL;
    Block* block = memory;
    *block = (Block){.capacity = capacity, .mapping_bytes = class_index};
    return block;
}

static Block* fresh_large(size_t capacity, size_t colour) {
    const size_t offset = (1 + colour) * ALIGNMENT;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t bytes = round_up(offset + capacity, page);
    const size_t slack = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : 0;
    char* mapping =
        mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return NULL;
    if (slack != 0) { /* start at a huge page, and give both ends back */
        char* start = (char*)round_up((uintptr_t)mapping, HUGE_PAGE_BYTES);
        const size_t front = (size_t)(start - mapping);
        if (front != 0) munmap(mapping, front);
        if (slack != front) munmap(start + bytes, slack - front);
        mapping = start;
    }
#if defined(MADV_HUGEPAGE)
    madvise(mapping, bytes, MADV_HUGEPAGE);
#endif
    Block* block = (Block*)(mapping + offset - FKL_HEADER_BYTES);
    *block = (Block){.capacity = capacity, .mapping = mapping, .mapping_bytes = bytes};
    return block;
}

uintptr_t fkl_pool_allocate(size_t nbytes) {
    const int large = nbytes >= LARGE_BYTES;
    size_t capacity = 0, class_index = 0;
    Block* dropped = NULL;
    if (nbytes > SIZE_MAX / 2) return 0;
    if (large)
        capacity = round_up(nbytes, ALIGNMENT);
    else
        class_index = size_class(nbytes, &capacity);
    lock_pool();
    /* Linux promises memory it does not have and kills whoever touches it, so refuse here. */
    if (capacity > memory_limit || pool.in_use > memory_limit - capacity) {
        unlock_pool();
        return 0;
    }
    Block* block = large ? take_large(nbytes) : take_small(class_index);
    if (block == NULL) dropped = make_room(capacity);
    const size_t colour = pool.colour;
    if (block == NULL && large) pool.colour = (pool.colour + 7) % COLOURS;
    if (block != NULL) capacity = block->capacity;
    pool.in_use += capacity;
    if (pool.in_use > pool.most_in_use) pool.most_in_use = pool.in_use;
    unlock_pool();
    return_to_system(dropped);
    for (int attempt = 0; block == NULL && attempt < 2; ++attempt) {
        if (attempt != 0) fkl_pool_trim();
        block = large ? fresh_large(capacity, colour) : fresh_small(capacity, class_index);
    }
    if (block == NULL) {
        lock_pool();
        pool.in_use -= capacity;
        unlock_pool();
        return 0;
    }
    __atomic_store_n(&block->references, 1, __ATOMIC_RELAXED);
    return (uintptr_t)block;
}

/* Keeps a block for reuse, or gives it and the oldest ones back when too much is kept. */
static void keep(Block* block) {
    Block* dropped = NULL;
    lock_pool();
    pool.in_use -= block->capacity;
    const size_t half = pool.most_in_use / 2;
    size_t limit = half > LEAST_KEPT_BYTES ? half : LEAST_KEPT_BYTES;
    if (limit > pool.limit) limit = pool.limit;
    while (pool.oldest != NULL && pool.kept + block->capacity > limit)
        dropped = take_oldest(dropped);
    if (pool.kept + block->capacity > limit) {
        block->next = dropped;
        dropped = block;
    } else if (block->mapping != NULL) {
        link_large(block);
    } else {
        block->next = pool.small[block->mapping_bytes];
        pool.small[block->mapping_bytes] = block;
        pool.kept += block->capacity;
    }
    unlock_pool();
    return_to_system(dropped);
}

size_t fkl_pool_bytes(void) {
    lock_pool();
    const size_t bytes = pool.in_use + pool.kept;
    unlock_pool();
    return bytes;
}

void fkl_pool_set_limit(size_t nbytes) {
    Block* dropped = NULL;
    lock_pool();
    pool.limit = nbytes;
    while (pool.oldest != NULL && pool.kept > nbytes) dropped = take_oldest(dropped);
    const int small_ones_too = pool.kept > nbytes;
    unlock_pool();
    return_to_system(dropped);
    if (small_ones_too) fkl_pool_trim();
}

void fkl_pool_trim(void) {
    lock_pool();
    Block* all = take_kept();
    unlock_pool();
    return_to_system(all);
}

Block* fkl_block_foreign(void) {
    Block* block = calloc(1, sizeof *block);
    if (block != NULL) block->references = 1;
    return block;
}

void fkl_block_retain(uintptr_t block) {
    __atomic_fetch_add(&((Block*)block)->references, 1, __ATOMIC_RELAXED);
}

void fkl_block_release(uintptr_t handle) {
    Block* block = (Block*)handle;
    if (__atomic_fetch_sub(&block->references, 1, __ATOMIC_ACQ_REL) != 1) return;
    if (block->capacity != 0) {
        keep(block);
        return;
    }
    if (block->drop != NULL) block->drop(block->owner);
    free(block);
}

int64_t fkl_block_references(uintptr_t block) {
    return __atomic_load_n(&((Block*)block)->references, __ATOMIC_ACQUIRE);
}
