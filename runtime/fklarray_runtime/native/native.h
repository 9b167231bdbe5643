/* The native half of fklarray_runtime: interface.h plus what the C files share. */
#ifndef FKLARRAY_RUNTIME_NATIVE_H
#define FKLARRAY_RUNTIME_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#include "interface.h"

/* A reference-counted block. A pool block's payload follows its header at once. */
struct fkl_block {
    int64_t references;     /* atomic */
    size_t capacity;        /* payload bytes; 0 for imported memory */
    void* owner;            /* imported memory: the producer's managed tensor */
    void (*drop)(void*);    /* imported memory: how to delete owner */
    struct fkl_block* next; /* in the pool's list, while kept for reuse */
    struct fkl_block* previous;
    void* mapping;        /* large blocks: start of the mapping, else NULL */
    size_t mapping_bytes; /* large blocks: its length; small ones: the size class */
};

_Static_assert(sizeof(struct fkl_block) <= FKL_HEADER_BYTES, "the payload follows the header");

/* A header for memory that somebody else owns. */
struct fkl_block* fkl_block_foreign(void);

#endif
