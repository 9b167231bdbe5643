/* One loaded library: its entry, and where each parameter lies in the packed block. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "native.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*Entry)(const void** parameters, void* stream);
typedef const char* (*Message)(void);

struct fkl_kernel {
    void* library;
    Entry entry;
    Message message;
    size_t bytes;
    int32_t count;
    int64_t offsets[];
};

/* The strictest alignment of a parameter that is not over-aligned on purpose. */
#define PARAMETER_ALIGNMENT ((size_t)16)

static void* find_symbol(void* library, const char* name, char* error, size_t error_bytes) {
    void* symbol = dlsym(library, name);
    if (symbol == NULL) snprintf(error, error_bytes, "the library has no symbol %s", name);
    return symbol;
}

fkl_kernel* fkl_kernel_open(const char* path, const int64_t* offsets, int32_t count, size_t bytes,
                            char* error, size_t error_bytes) {
    fkl_kernel* kernel = malloc(sizeof *kernel + (size_t)count * sizeof(int64_t));
    if (kernel == NULL) {
        snprintf(error, error_bytes, "out of memory");
        return NULL;
    }
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char* text = dlerror();
        snprintf(error, error_bytes, "%s", text != NULL ? text : "dlopen failed");
        free(kernel);
        return NULL;
    }
    void* entry = find_symbol(library, "fkl_entry", error, error_bytes);
    void* message =
        entry != NULL ? find_symbol(library, "fkl_error_message", error, error_bytes) : NULL;
    if (message == NULL) {
        dlclose(library);
        free(kernel);
        return NULL;
    }
    kernel->library = library;
    /* ISO C has no cast from an object pointer to a function pointer; POSIX promises the bits. */
    memcpy(&kernel->entry, &entry, sizeof entry);
    memcpy(&kernel->message, &message, sizeof message);
    kernel->bytes = bytes;
    kernel->count = count;
    memcpy(kernel->offsets, offsets, (size_t)count * sizeof(int64_t));
    return kernel;
}

static int call(const fkl_kernel* kernel, const char* data, void* stream) {
    const void* parameters[kernel->count + 1];
    for (int32_t i = 0; i < kernel->count; ++i) parameters[i] = data + kernel->offsets[i];
    parameters[kernel->count] = NULL;
    return kernel->entry(parameters, stream);
}

/* A bytes object's text is aligned to 16 on every CPython known; this holds if one differs. */
static int call_aligned(const fkl_kernel* kernel, const char* data, void* stream) {
    char* copy = NULL;
    const size_t bytes = kernel->bytes > 0 ? kernel->bytes : 1;
    if (posix_memalign((void**)&copy, 64, bytes) != 0) return -1;
    memcpy(copy, data, kernel->bytes);
    const int code = call(kernel, copy, stream);
    free(copy);
    return code;
}

int fkl_kernel_launch(const fkl_kernel* kernel, const char* data, void* stream) {
    if (((uintptr_t)data & (PARAMETER_ALIGNMENT - 1)) != 0) {
        return call_aligned(kernel, data, stream);
    }
    return call(kernel, data, stream);
}

const char* fkl_kernel_message(const fkl_kernel* kernel) { return kernel->message(); }

void fkl_kernel_close(fkl_kernel* kernel) {
    dlclose(kernel->library);
    free(kernel);
}
