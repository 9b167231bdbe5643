/* The driver's functions, found by name, and what is wrong where they are not. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct driver fkl_driver;
int fkl_forked;

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static int32_t device_count;
static char problem[512];

static void remember_the_fork(void) { fkl_forked = device_count > 0; }

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
    memcpy(&fkl_driver.name, &symbol, sizeof symbol);
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
    if (!load_driver() || !succeeds(fkl_driver.cuInit(0), "the NVIDIA driver does not start") ||
        !succeeds(fkl_driver.cuDeviceGetCount(&count), "the NVIDIA driver has no devices"))
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
    if (fkl_forked) return "CUDA does not work in a forked child of a process that has used it";
    return problem;
}

const char* fkl_device_message(int code) {
    const char* text = NULL;
    if (fkl_forked) return fkl_device_problem();
    if (fkl_driver.cuGetErrorString == NULL || fkl_driver.cuGetErrorString(code, &text) != 0)
        return "";
    return text != NULL ? text : "";
}
