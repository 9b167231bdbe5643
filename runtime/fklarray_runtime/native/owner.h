/* The object that holds a reference to a block. Also read by the compiled core of fklarray, which
 * makes such objects itself. */
#ifndef FKLARRAY_RUNTIME_OWNER_H
#define FKLARRAY_RUNTIME_OWNER_H

#include <Python.h>

#include "native.h"

typedef struct {
    PyObject_HEAD uintptr_t block;
    uintptr_t address;
    unsigned long long nbytes;
    char readonly;
} fkl_owner;

#endif
