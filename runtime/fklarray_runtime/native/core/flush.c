/* Flushing: a launch that Python has prepared (`Launch`), filled in and run; and the export. */
#include "core.h"

#include <string.h>

/* ---- Launch ---- */

#define MAX_BLOCK 4096

/* Where a number goes in the block of parameters, and how: a character of struct. */
typedef struct {
    Py_ssize_t offset;
    char format;
} Place;

typedef struct {
    PyObject_HEAD PyObject* kernel; /* keeps the library loaded */
    PyObject* node;                 /* of the result: an array in memory */
    PyObject* strides;              /* of the result */
    PyObject* block;                /* the parameters, as bytes, before they are filled in */
    const fkl_kernel* entry;
    void* executor;
    size_t nbytes; /* of the result */
    long long operations;
    int brief;        /* keeps the GIL */
    Py_ssize_t count; /* places of the leaves' values, then of the result's address */
    Place* places;
} Launch;

static int fill_places(Launch* launch, PyObject* offsets, const char* formats) {
    const Py_ssize_t block_bytes = PyBytes_GET_SIZE(launch->block);
    const Py_ssize_t count = PyTuple_GET_SIZE(offsets);
    if (block_bytes > MAX_BLOCK || count == 0 || (size_t)count != strlen(formats)) {
        PyErr_Format(PyExc_ValueError, "a launch has a format for each offset, in %d bytes",
                     MAX_BLOCK);
        return 0;
    }
    launch->places = PyMem_Calloc((size_t)count, sizeof *launch->places);
    if (launch->places == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    launch->count = count;
    for (Py_ssize_t i = 0; i < count; ++i) {
        const Py_ssize_t offset = PyLong_AsSsize_t(PyTuple_GET_ITEM(offsets, i));
        if (offset == -1 && PyErr_Occurred()) return 0;
        if (offset < 0 || offset >= block_bytes) {
            PyErr_SetString(PyExc_ValueError, "an offset lies outside the block");
            return 0;
        }
        launch->places[i] = (Place){offset, formats[i]};
    }
    return 1;
}

static PyObject* new_launch(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
    PyObject *kernel, *node, *strides, *block, *offsets;
    unsigned long long entry, executor, nbytes;
    long long operations;
    const char* formats;
    int brief;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "OKKSO!sOO!KLp", &kernel, &entry, &executor, &block,
                          &PyTuple_Type, &offsets, &formats, &node, &PyTuple_Type, &strides,
                          &nbytes, &operations, &brief))
        return NULL;
    Launch* launch = (Launch*)type->tp_alloc(type, 0);
    if (launch == NULL) return NULL;
    launch->kernel = Py_NewRef(kernel);
    launch->node = Py_NewRef(node);
    launch->strides = Py_NewRef(strides);
    launch->block = Py_NewRef(block);
    launch->entry = (const fkl_kernel*)(uintptr_t)entry;
    launch->executor = (void*)(uintptr_t)executor;
    launch->nbytes = (size_t)nbytes;
    launch->operations = operations;
    launch->brief = brief;
    if (!fill_places(launch, offsets, formats)) Py_CLEAR(launch);
    return (PyObject*)launch;
}

static void destroy_launch(PyObject* self) {
    Launch* launch = (Launch*)self;
    Py_XDECREF(launch->kernel);
    Py_XDECREF(launch->node);
    Py_XDECREF(launch->strides);
    Py_XDECREF(launch->block);
    PyMem_Free(launch->places);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject Launch_Type = {
    .ob_base = {PyObject_HEAD_INIT(NULL) 0},
    .tp_name = "fklarray_runtime._core.Launch",
    .tp_basicsize = sizeof(Launch),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new_launch,
    .tp_dealloc = destroy_launch,
};

/* What struct.pack does for one number; 0 for what is left to it. */
static int pack(char* to, char format, PyObject* value) {
    if (format == 'f' || format == 'd') {
        const double number = PyFloat_AsDouble(value);
        const float narrow = (float)number;
        if (number == -1.0 && PyErr_Occurred()) return 0;
        if (format == 'd')
            memcpy(to, &number, sizeof number);
        else
            memcpy(to, &narrow, sizeof narrow);
        return 1;
    }
    if (!PyLong_Check(value)) return 0;
    /* The value is in the range of its type: the lowest bytes are what the type holds. */
    const unsigned long long bits = PyLong_AsUnsignedLongLongMask(value);
    const uint8_t one = (uint8_t)bits;
    const uint16_t two = (uint16_t)bits;
    const uint32_t four = (uint32_t)bits;
    switch (format) {
    case 'P':
    case 'q':
    case 'Q':
        memcpy(to, &bits, sizeof bits);
        return 1;
    case 'i':
    case 'I':
        memcpy(to, &four, sizeof four);
        return 1;
    case 'h':
    case 'H':
        memcpy(to, &two, sizeof two);
        return 1;
    case 'b':
    case 'B':
    case '?':
        memcpy(to, &one, sizeof one);
        return 1;
    default:
        return 0;
    }
}

static int fill_in(const Launch* launch, PyObject* leaves, char* block) {
    memcpy(block, PyBytes_AS_STRING(launch->block), (size_t)PyBytes_GET_SIZE(launch->block));
    for (Py_ssize_t i = 0; i + 1 < launch->count; ++i) {
        PyObject* leaf = PyTuple_GET_ITEM(leaves, i);
        const Py_ssize_t offset =
            Py_TYPE(leaf) == core.stream ? core.stream_value : core.scalar_value;
        PyObject* value = get_slot(leaf, offset);
        const Place place = launch->places[i];
        if (value == NULL || !pack(block + place.offset, place.format, value)) return 0;
    }
    return 1;
}

/* ---- flushing ---- */

static long long kernels_launched, operations_run, flushes;

PyObject* read_counters(PyObject* module, PyObject* nothing) {
    (void)module, (void)nothing;
    return Py_BuildValue("LLL", kernels_launched, operations_run, flushes);
}

static int is_contiguous(PyObject* shape, PyObject* strides) {
    const Py_ssize_t ndim = PyTuple_GET_SIZE(shape);
    if (PyTuple_GET_SIZE(strides) != ndim) return 0;
    long long step = 1;
    for (Py_ssize_t axis = ndim - 1; axis >= 0; --axis) {
        const long long extent = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, axis));
        const long long stride = PyLong_AsLongLong(PyTuple_GET_ITEM(strides, axis));
        if (stride != (extent != 1 ? step : 0) || extent <= 0) return 0;
        step *= extent;
    }
    return 1;
}

/* The buffer of a state that fills its memory from the start in C order, borrowed; else NULL. */
static PyObject* computed_buffer(PyObject* state, PyObject* shape) {
    PyObject *node = PyTuple_GET_ITEM(state, 0), *leaves = PyTuple_GET_ITEM(state, 1);
    if (get_slot(node, core.node_op) != core.stream_op) return NULL;
    PyObject* stream = PyTuple_GET_ITEM(leaves, 0);
    if (Py_TYPE(stream) != core.stream) return NULL;
    PyObject* buffer = get_slot(stream, core.stream_buffer);
    if (Py_TYPE(buffer) != core.buffer) return NULL;
    const unsigned long long address =
        PyLong_AsUnsignedLongLongMask(get_slot(stream, core.stream_value));
    if (address != ((fkl_owner*)buffer)->address) return NULL;
    return is_contiguous(shape, get_slot(stream, core.stream_strides)) ? buffer : NULL;
}

/* The key of evaluation.py's plans: structure, shape, a contiguous result, strides of leaves. */
static PyObject* plan_key(PyObject* node, PyObject* shape, PyObject* leaves) {
    const Py_ssize_t count = PyTuple_GET_SIZE(leaves);
    PyObject* key = PyTuple_New(3 + count);
    if (key == NULL) return NULL;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(node));
    PyTuple_SET_ITEM(key, 1, Py_NewRef(shape));
    PyTuple_SET_ITEM(key, 2, Py_NewRef(Py_None));
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* leaf = PyTuple_GET_ITEM(leaves, i);
        PyObject* strides = NULL;
        if (Py_TYPE(leaf) == core.stream)
            strides = Py_NewRef(get_slot(leaf, core.stream_strides));
        else if (Py_TYPE(leaf) == core.scalar)
            strides = PyTuple_New(0); /* a singleton */
        if (strides == NULL) {        /* a result that something else computes first */
            Py_DECREF(key);
            return NULL;
        }
        PyTuple_SET_ITEM(key, 3 + i, strides);
    }
    return key;
}

/* Whether config.compile was read and lets kernels run. */
static int compiles(void) {
    static PyObject* name;
    if (name == NULL) name = PyUnicode_InternFromString("compile");
    PyObject* mode = name != NULL ? PyDict_GetItemWithError(core.settings, name) : NULL;
    return mode != NULL && PyUnicode_CompareWithASCIIString(mode, "off") != 0;
}

static Launch* find_launch(PyObject* node, PyObject* shape, PyObject* leaves) {
    PyObject* key = compiles() ? plan_key(node, shape, leaves) : NULL;
    if (key == NULL) return NULL;
    PyObject* plan = PyDict_GetItemWithError(core.plans, key);
    PyObject* launch = plan != NULL && Py_TYPE(plan) == core.plan
                           ? Py_XNewRef(get_slot(plan, core.plan_launch))
                           : NULL;
    Py_DECREF(key);
    if (launch != NULL && Py_TYPE(launch) != &Launch_Type) Py_CLEAR(launch); /* None */
    return (Launch*)launch;
}

/* A buffer of the pool; NULL where Python says why there is none. */
static PyObject* new_buffer(size_t nbytes) {
    fkl_owner* buffer = (fkl_owner*)new_object(core.buffer);
    if (buffer == NULL) return NULL;
    buffer->block = core.runtime->allocate(nbytes);
    buffer->address = buffer->block + FKL_HEADER_BYTES;
    buffer->nbytes = nbytes;
    if (buffer->block == 0) Py_CLEAR(buffer);
    return (PyObject*)buffer;
}

/* The state of a new array in memory, whose elements are yet to be written. */
static PyObject* new_result(const Launch* launch, uintptr_t* address) {
    PyObject* buffer = new_buffer(launch->nbytes);
    PyObject* stream = buffer != NULL ? new_object(core.stream) : NULL;
    if (stream == NULL) {
        Py_XDECREF(buffer);
        return NULL;
    }
    *address = ((fkl_owner*)buffer)->address;
    PyObject* number = PyLong_FromUnsignedLongLong(*address);
    set_slot(stream, core.stream_buffer, buffer);
    set_slot(stream, core.stream_value, number);
    set_slot(stream, core.stream_strides, Py_NewRef(launch->strides));
    PyObject* leaves = number != NULL ? PyTuple_Pack(1, stream) : NULL;
    PyObject* state = leaves != NULL ? PyTuple_Pack(2, launch->node, leaves) : NULL;
    Py_DECREF(stream);
    Py_XDECREF(leaves);
    return state;
}

static PyObject* run(const Launch* launch, PyObject* leaves) {
    _Alignas(16) char block[MAX_BLOCK + 16]; /* a place takes at most 8 bytes */
    uintptr_t address;
    int code;
    if (!fill_in(launch, leaves, block)) return NULL;
    PyObject* result = new_result(launch, &address);
    if (result == NULL) return NULL;
    memcpy(block + launch->places[launch->count - 1].offset, &address, sizeof address);
    if (launch->brief) {
        code = core.runtime->launch(launch->entry, block, launch->executor);
    } else {
        Py_BEGIN_ALLOW_THREADS;
        code = core.runtime->launch(launch->entry, block, launch->executor);
        Py_END_ALLOW_THREADS;
    }
    if (code != 0) Py_CLEAR(result); /* Python launches again, and says what went wrong */
    return result;
}

/* Recorded._materialize: the state of an array in memory, a new reference. */
static PyObject* materialize(PyObject* array) {
    Operand x;
    if (!take_array(array, &x)) return NULL;
    if (computed_buffer(x.state, x.shape) != NULL) return x.state;
    Launch* launch = find_launch(x.node, x.shape, x.leaves);
    PyObject* result = launch != NULL ? run(launch, x.leaves) : NULL;
    if (result != NULL) {
        ++kernels_launched;
        ++flushes;
        operations_run += launch->operations;
        /* An assignment in another thread meanwhile wins. */
        if (get_slot(array, core.array_state) == x.state)
            set_slot(array, core.array_state, Py_NewRef(result));
    }
    Py_XDECREF(launch);
    Py_DECREF(x.state);
    return result;
}

PyObject* quick_materialize(Front* front, PyObject* const* arguments, Py_ssize_t count,
                            PyObject* names) {
    (void)front;
    return count == 1 && names == NULL ? materialize(arguments[0]) : NULL;
}

/* ---- export ---- */

/* What the consumer asks for: 1 for a versioned capsule, 0 for a legacy one, -1 for Python. */
static int wanted_form(PyObject* const* values, PyObject* names) {
    int versioned = 0;
    const Py_ssize_t count = names != NULL ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* name = PyTuple_GET_ITEM(names, i);
        if (values[i] == Py_None) continue;
        /* Where nobody else sees the memory, no copy is made anyway. */
        if (values[i] == Py_False && PyUnicode_CompareWithASCIIString(name, "copy") == 0) continue;
        if (PyUnicode_CompareWithASCIIString(name, "max_version") != 0 ||
            !PyTuple_CheckExact(values[i]) || PyTuple_GET_SIZE(values[i]) != 2 ||
            !PyLong_CheckExact(PyTuple_GET_ITEM(values[i], 0)))
            return -1;
        versioned = PyLong_AsLong(PyTuple_GET_ITEM(values[i], 0)) >= 1;
        if (PyErr_Occurred()) return -1;
    }
    return versioned;
}

static PyObject* export_buffer(const fkl_owner* owner, PyObject* dtype, PyObject* shape,
                               int versioned) {
    int64_t extents[FKL_MAX_NDIM];
    const Py_ssize_t ndim = PyTuple_GET_SIZE(shape);
    if (ndim > FKL_MAX_NDIM) return NULL;
    for (Py_ssize_t axis = 0; axis < ndim; ++axis)
        extents[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, axis));
    const long code = PyLong_AsLong(get_slot(dtype, core.dtype_code));
    const long bits = PyLong_AsLong(get_slot(dtype, core.dtype_bits));
    void* managed = core.runtime->export_tensor(owner->block, owner->address, extents,
                                                (int32_t)ndim, (int)code, (int)bits, versioned, 0);
    return managed != NULL ? core.runtime->new_capsule(managed, versioned) : PyErr_NoMemory();
}

/* Array.__dlpack__ where the consumer may have the memory itself. */
PyObject* quick_dlpack(Front* front, PyObject* const* arguments, Py_ssize_t count,
                       PyObject* names) {
    (void)front;
    const int versioned = count == 1 ? wanted_form(arguments + 1, names) : -1;
    PyObject* state = versioned >= 0 ? materialize(arguments[0]) : NULL;
    if (state == NULL) return NULL;
    PyObject* shape = get_slot(arguments[0], core.array_shape);
    PyObject* buffer = computed_buffer(state, shape);
    PyObject* leaves = PyTuple_GET_ITEM(state, 1);
    PyObject* result = NULL;
    /* `is_private` in interchange.py: nobody but the array refers to the state or what it holds. */
    if (buffer != NULL && Py_REFCNT(state) == 2 && Py_REFCNT(leaves) == 1 &&
        Py_REFCNT(PyTuple_GET_ITEM(leaves, 0)) == 1 && Py_REFCNT(buffer) == 1 &&
        !((fkl_owner*)buffer)->readonly)
        result =
            export_buffer((fkl_owner*)buffer, get_slot(PyTuple_GET_ITEM(state, 0), core.node_dtype),
                          shape, versioned);
    Py_DECREF(state);
    return result;
}
