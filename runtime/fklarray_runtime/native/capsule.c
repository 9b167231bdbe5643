/* The capsules around managed tensors. Python calls these through ctypes, which keeps the GIL, so
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

uintptr_t fkl_capsule_new_address(void) { return (uintptr_t)new_capsule; }
uintptr_t fkl_capsule_inspect_address(void) { return (uintptr_t)inspect_capsule; }
uintptr_t fkl_capsule_claim_address(void) { return (uintptr_t)claim_capsule; }
