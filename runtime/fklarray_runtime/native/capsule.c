/* The capsules around managed tensors. Python gets these through ctypes, which keeps the GIL, so
 * that looking at a capsule and claiming it are one step. Only functions of the stable ABI. */
#include <Python.h>

#include "native.h"

static const char* const fresh_names[] = {"dltensor", "dltensor_versioned"};
static const char* const used_names[] = {"used_dltensor", "used_dltensor_versioned"};

/* Runs for every capsule; a consumer has renamed the ones whose tensor it now owns. */
static void destroy_capsule(PyObject* capsule) {
    for (int versioned = 0; versioned < 2; ++versioned) {
        if (!PyCapsule_IsValid(capsule, fresh_names[versioned])) continue;
        fkl_delete_tensor(PyCapsule_GetPointer(capsule, fresh_names[versioned]), versioned);
        return;
    }
}

static PyObject* new_capsule(void* managed, int versioned) {
    PyObject* capsule = PyCapsule_New(managed, fresh_names[versioned], destroy_capsule);
    if (capsule == NULL) fkl_delete_tensor(managed, versioned);
    return capsule;
}

/* 0 or 1 for a fresh capsule (1: versioned), -1 for a used one, -2 for anything else. */
static int inspect_capsule(PyObject* capsule, uintptr_t* managed) {
    for (int versioned = 0; versioned < 2; ++versioned) {
        if (PyCapsule_IsValid(capsule, fresh_names[versioned])) {
            *managed = (uintptr_t)PyCapsule_GetPointer(capsule, fresh_names[versioned]);
            return versioned;
        }
        if (PyCapsule_IsValid(capsule, used_names[versioned])) return -1;
    }
    return -2;
}

/* Renames a fresh capsule; 0 when another consumer was faster. */
static int claim_capsule(PyObject* capsule, int versioned) {
    if (!PyCapsule_IsValid(capsule, fresh_names[versioned])) return 0;
    return PyCapsule_SetName(capsule, used_names[versioned]) == 0;
}

/* export(block, address, (device type, number), shape, code, bits, versioned, flags): a capsule
 * over a block. */
static PyObject* export_block(PyObject* self, PyObject* arguments) {
    unsigned long long block, address, flags;
    int64_t extents[FKL_MAX_NDIM];
    DLDevice device;
    PyObject* shape;
    int code, bits, versioned;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "KK(ii)O!iipK", &block, &address, &device.device_type,
                          &device.device_id, &PyTuple_Type, &shape, &code, &bits, &versioned,
                          &flags))
        return NULL;
    const Py_ssize_t ndim = PyTuple_Size(shape);
    if (ndim > FKL_MAX_NDIM) {
        PyErr_SetString(PyExc_BufferError, "DLPack tensors have at most 64 dimensions");
        return NULL;
    }
    for (Py_ssize_t axis = 0; axis < ndim; ++axis) {
        extents[axis] = PyLong_AsLongLong(PyTuple_GetItem(shape, axis));
        if (extents[axis] == -1 && PyErr_Occurred()) return NULL;
    }
    void* managed = fkl_export_tensor((uintptr_t)block, (uintptr_t)address, device, extents,
                                      (int32_t)ndim, code, bits, versioned, flags);
    return managed != NULL ? new_capsule(managed, versioned) : PyErr_NoMemory();
}

static PyObject* export_function(void) {
    static PyMethodDef definition = {"export", export_block, METH_VARARGS, NULL};
    return PyCFunction_New(&definition, NULL);
}

static void* new_untyped_capsule(void* managed, int versioned) {
    return new_capsule(managed, versioned);
}

const fkl_functions* fkl_functions_table(void) {
    static const fkl_functions table = {
        .abi = 2,
        .allocate = fkl_pool_allocate,
        .device_allocate = fkl_device_allocate,
        .device_address = fkl_device_address,
        .device_launch = fkl_device_launch,
        .launch = fkl_kernel_launch,
        .export_tensor = fkl_export_tensor,
        .new_capsule = new_untyped_capsule,
    };
    return &table;
}

uintptr_t fkl_export_function_address(void) { return (uintptr_t)export_function; }
uintptr_t fkl_capsule_inspect_address(void) { return (uintptr_t)inspect_capsule; }
uintptr_t fkl_capsule_claim_address(void) { return (uintptr_t)claim_capsule; }
