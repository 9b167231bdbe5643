/* NVIDIA's driver: what is used of it, and whether it is there. It is loaded when devices are first
 * asked for, so that machines without one lose nothing. */
#ifndef FKLARRAY_RUNTIME_DRIVER_H
#define FKLARRAY_RUNTIME_DRIVER_H

#include "native.h"

/* What is used of cuda.h, which is not there where this is compiled. */
typedef int Result;
typedef int Device;
typedef uint64_t Address;
typedef struct Context_* Context;
typedef struct Pool_* Pool;
typedef struct Event_* Event;
typedef void* Stream;

#define OUT_OF_MEMORY 2
#define INVALID_DEVICE 101
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
    X(cuCtxSynchronize, (void))                                                                    \
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

struct driver {
#define MEMBER(name, parameters) Result(*name) parameters;
    DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* Filled in by the first `fkl_device_count`. */
extern struct driver fkl_driver;

/* Whether this process is a child of one that has used devices, which cannot. */
extern int fkl_forked;

#endif
