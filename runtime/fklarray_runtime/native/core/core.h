/* The compiled core of fklarray: what the most frequent calls do, found without Python.
 *
 * Each of these functions stands in front of a function of Python (`Front`), which it gives the
 * call to whenever something is not as usual. So it knows nothing that Python does not: results,
 * errors and everything that is remembered are the Python function's. */
#ifndef FKLARRAY_CORE_H
#define FKLARRAY_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "owner.h"

/* ---- core.c: what Python connects the core to ---- */

/* The library's classes, and where in their objects each attribute of their __slots__ lies. */
typedef struct {
    PyTypeObject* array; /* connected last: NULL until the core may be used */
    PyTypeObject *stream, *scalar, *buffer, *plan;
    Py_ssize_t array_shape, array_state;
    Py_ssize_t node_op, node_dtype;
    Py_ssize_t stream_buffer, stream_strides, stream_value;
    Py_ssize_t scalar_value;
    Py_ssize_t dtype_code, dtype_bits;
    Py_ssize_t plan_launch;
    PyObject* stream_op; /* `op` of the nodes of arrays in memory */
    PyObject* settings;  /* dict of the settings that were read */
    PyObject* plans;     /* dict of evaluation.py */
    PyObject* broadcast; /* the shape that two shapes broadcast to */
    const fkl_functions* runtime;
} Core;

extern Core core;

/* An attribute in a slot, borrowed; NULL if it was never set. */
static inline PyObject* get_slot(PyObject* object, Py_ssize_t offset) {
    return *(PyObject**)((char*)object + offset);
}

/* Gives an attribute a new value, whose reference is taken over. */
static inline void set_slot(PyObject* object, Py_ssize_t offset, PyObject* value) {
    PyObject** slot = (PyObject**)((char*)object + offset);
    PyObject* before = *slot;
    *slot = value;
    Py_XDECREF(before);
}

static inline PyObject* new_object(PyTypeObject* type) { return type->tp_alloc(type, 0); }

/* What is read of an array. The state is held, the others are borrowed from it and the array. */
typedef struct {
    PyObject *state, *shape, *node, *leaves;
} Operand;

/* Whether an object is an array of this very class; `state` is to be released then. */
static inline int take_array(PyObject* object, Operand* operand) {
    if (Py_TYPE(object) != core.array) return 0;
    PyObject* state = get_slot(object, core.array_state);
    operand->shape = get_slot(object, core.array_shape);
    if (state == NULL || operand->shape == NULL) return 0;
    operand->state = Py_NewRef(state);
    operand->node = PyTuple_GET_ITEM(state, 0);
    operand->leaves = PyTuple_GET_ITEM(state, 1);
    return 1;
}

/* A callable that stands in front of a Python function. */
typedef struct {
    PyObject_HEAD vectorcallfunc call;
    PyObject* function; /* what Python does */
    /* What `Shortcuts` remembers in dicts; NULL for other functions. */
    PyObject *known, *floats, *integers, *small;
} Front;

/* ---- record.c and flush.c: what stands in front ---- */

/* A quick result; NULL when Python is to be called, with an exception or without. */
typedef PyObject* (*Quick)(Front* front, PyObject* const* arguments, Py_ssize_t count,
                           PyObject* names);

PyObject* quick_unary(Front*, PyObject* const*, Py_ssize_t, PyObject*);
PyObject* quick_binary(Front*, PyObject* const*, Py_ssize_t, PyObject*);
PyObject* quick_reflected(Front*, PyObject* const*, Py_ssize_t, PyObject*);
PyObject* quick_materialize(Front*, PyObject* const*, Py_ssize_t, PyObject*);
PyObject* quick_dlpack(Front*, PyObject* const*, Py_ssize_t, PyObject*);

extern PyTypeObject Launch_Type;
/* Kernels launched, operations in them, and flushes, by the core alone. */
PyObject* read_counters(PyObject* module, PyObject* nothing);

#endif
