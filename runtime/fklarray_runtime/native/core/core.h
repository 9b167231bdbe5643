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
    PyTypeObject *stream, *deferred_stream, *scalar, *buffer, *device_buffer;
    PyTypeObject *pending_reduction, *plan, *held;
    Py_ssize_t array_shape, array_state;
    Py_ssize_t node_op, node_dtype;
    Py_ssize_t stream_buffer, stream_strides, stream_value;
    Py_ssize_t scalar_value;
    Py_ssize_t dtype_code, dtype_bits;
    Py_ssize_t stream_resolved;
    Py_ssize_t deferred_recipe, deferred_result, deferred_depth, deferred_nbytes;
    Py_ssize_t deferred_result_bytes;
    Py_ssize_t pending_reduction_of, pending_shape, pending_rows, pending_passes;
    Py_ssize_t plan_launch;
    Py_ssize_t held_recent, held_room;
    Py_ssize_t device_buffer_device, device_buffer_place, device_buffer_imported;
    PyObject* no_strides;     /* those of numbers: the empty tuple */
    PyObject* stream_op;      /* `op` of the nodes of arrays in memory */
    PyObject* settings;       /* dict of the settings that were read */
    PyObject* patterns;       /* dict of fusion.py */
    PyObject* plans;          /* dict of plans.py */
    PyObject* broadcast;      /* the shape that two shapes broadcast to */
    PyObject* resolve;        /* the leaf in memory for one that is yet to be computed */
    PyObject* reduce;         /* what computes a pending reduction */
    PyObject* current_stream; /* of a device */
    PyObject* admit;          /* counts a pending result */
    PyObject* held_by_thread; /* what it is counted in */
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

/* The number of an object among others; as many as there are, if it is not among them. */
static inline Py_ssize_t number_of(PyObject* const* objects, Py_ssize_t count, PyObject* object) {
    Py_ssize_t number = 0;
    while (number < count && objects[number] != object) ++number;
    return number;
}

/* ---- find.c: what Python remembers, by a key of many parts ---- */

#define MAX_PARTS 512

/* The parts of a key, held. */
typedef struct {
    PyObject* part[MAX_PARTS];
    Py_ssize_t count;
} Parts;

/* Adds to a key; 0 if it has grown too long. */
static inline int add(Parts* parts, PyObject* part) {
    if (parts->count == MAX_PARTS) return 0;
    parts->part[parts->count++] = Py_NewRef(part);
    return 1;
}

/* Adds a small number, of which there is one object. */
static inline int add_number(Parts* parts, Py_ssize_t number) {
    PyObject* part = PyLong_FromSsize_t(number);
    const int added = part != NULL && add(parts, part);
    Py_XDECREF(part);
    return added;
}

/* What a dict of Python's has for a key, a new reference; NULL for nothing, or after an error.
 * What was found lately by these very parts is found without asking the dict. So what it has for a
 * key must be right for ever, even where the dict has forgotten it. */
PyObject* find(PyObject* known, const Parts* parts);
void let_go_of_parts(Parts* parts);

/* A callable that stands in front of a Python function. */
typedef struct {
    PyObject_HEAD vectorcallfunc call;
    PyObject* function;   /* what Python does */
    PyObject* references; /* weak ones */
    /* What `Shortcuts` remembers in dicts; NULL for other functions. */
    PyObject *known, *floats, *integers, *small;
} Front;

/* ---- launch.c: launches that Python has prepared ---- */

/* Where a number goes in the block of parameters, which leaf's, and how: a character of struct. */
typedef struct {
    Py_ssize_t offset, leaf;
    char format;
} Place;

/* An array that a launch writes, as an array in memory. */
typedef struct {
    Py_ssize_t target; /* its number among them */
    Py_ssize_t memory; /* number of the pending result that it is; -1 for the first result */
    PyObject *node, *strides;
} Result;

/* A leaf of a few elements that a row repeats: the kernel reads the whole row. */
typedef struct {
    Py_ssize_t leaf; /* number of its place */
    Py_ssize_t itemsize, period, stride, row;
} Repeat;

#define MAX_TARGETS 16
#define MAX_REPEATS 16

typedef struct {
    PyObject_HEAD PyObject* kernel; /* keeps the library loaded */
    PyObject* block;                /* the parameters, as bytes, before they are filled in */
    const fkl_kernel* entry;
    void* executor;
    long long operations;
    int brief;               /* keeps the GIL */
    int32_t device;          /* its number; -1 for the host */
    PyObject *number, *name; /* the same, and the device's name, for Python; else NULL */
    Py_ssize_t leaves, targets, results, repeats;
    Place* places; /* of the leaves' values, then of the arrays' addresses */
    Result* result;
    size_t nbytes[MAX_TARGETS];
    Repeat repeat[MAX_REPEATS];
} Launch;

extern PyTypeObject Launch_Type;

/* Runs a launch into new buffers; 0 where Python is to do it, and nothing is held then. */
int run_launch(const Launch* launch, PyObject* const* leaves, Py_ssize_t count, PyObject** buffers);
/* A stream over a buffer from its start. */
PyObject* new_stream(PyObject* buffer, PyObject* strides);

/* ---- fuse.c: leaves, and the pending reductions that some read ---- */

/* More leaves than one kernel reads are Python's matter. */
#define MAX_MET 128

/* Leaves and pending results of an expression, in the order in which they are met, and what the
 * latter reduce. All are held: any allocation may run Python code, which may compute them. */
typedef struct {
    PyObject *leaves[MAX_MET], *memories[MAX_TARGETS], *operands[MAX_TARGETS];
    Py_ssize_t leaf_count, memory_count;
    int too_many;
    int deferred; /* whether a leaf is yet to be computed */
} Met;

void meet(Met* met, PyObject* leaves);
/* The pattern of an expression with pending leaves, a new reference; NULL where Python is to find
 * it. */
PyObject* find_pattern(Met* met, PyObject* node, PyObject* shape, PyObject* leaves);
/* Puts what is in memory in the place of leaves that are not; 0 where something fails. */
int resolve(Met* met, const Launch* launch);
void let_go(Met* met);
void settle(const Launch* launch, const Met* met, PyObject* const* buffers);

/* ---- record.c, replay.c and flush.c: what stands in front ---- */

/* A quick result; NULL when Python is to be called, with an exception or without. */
typedef PyObject* (*Quick)(Front* front, PyObject* const* arguments, Py_ssize_t count,
                           PyObject* names);

PyObject* quick_unary(Front*, PyObject* const*, Py_ssize_t, PyObject*);
PyObject* quick_binary(Front*, PyObject* const*, Py_ssize_t, PyObject*);
PyObject* quick_reflected(Front*, PyObject* const*, Py_ssize_t, PyObject*);
PyObject* quick_replay(Front*, PyObject* const*, Py_ssize_t, PyObject*);
PyObject* quick_materialize(Front*, PyObject* const*, Py_ssize_t, PyObject*);
PyObject* quick_dlpack(Front*, PyObject* const*, Py_ssize_t, PyObject*);

/* Kernels launched, operations in them, and flushes, by the core alone. */
PyObject* read_counters(PyObject* module, PyObject* nothing);

#endif
