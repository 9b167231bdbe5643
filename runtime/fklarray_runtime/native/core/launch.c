/* Launches that Python has prepared, filled in and run. */
#include "core.h"

#include <string.h>

#define MAX_BLOCK 4096

/* A place for each leaf, whose number it takes from `numbers`, and for each array to write. */
static int fill_places(Launch* launch, PyObject* offsets, const char* formats, PyObject* numbers) {
    const Py_ssize_t block_bytes = PyBytes_GET_SIZE(launch->block);
    const Py_ssize_t count = PyTuple_GET_SIZE(offsets);
    launch->leaves = PyTuple_GET_SIZE(numbers);
    if (block_bytes > MAX_BLOCK || count != launch->leaves + launch->targets ||
        (size_t)count != strlen(formats)) {
        PyErr_Format(PyExc_ValueError, "a launch has a format for each offset, in %d bytes",
                     MAX_BLOCK);
        return 0;
    }
    launch->places = PyMem_Calloc((size_t)count, sizeof *launch->places);
    if (launch->places == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
        const Py_ssize_t offset = PyLong_AsSsize_t(PyTuple_GET_ITEM(offsets, i));
        const Py_ssize_t number =
            i < launch->leaves ? PyLong_AsSsize_t(PyTuple_GET_ITEM(numbers, i)) : 0;
        if (PyErr_Occurred()) return 0;
        if (offset < 0 || offset >= block_bytes || number < 0) {
            PyErr_SetString(PyExc_ValueError, "an offset lies outside the block");
            return 0;
        }
        launch->places[i] = (Place){offset, number, formats[i]};
    }
    return 1;
}

static int fill_targets(Launch* launch, PyObject* sizes) {
    launch->targets = PyTuple_GET_SIZE(sizes);
    if (launch->targets == 0 || launch->targets > MAX_TARGETS) {
        PyErr_Format(PyExc_ValueError, "a launch writes 1 to %d arrays", MAX_TARGETS);
        return 0;
    }
    for (Py_ssize_t i = 0; i < launch->targets; ++i)
        launch->nbytes[i] = PyLong_AsSize_t(PyTuple_GET_ITEM(sizes, i));
    return !PyErr_Occurred();
}

/* A stored result as Python describes it: its number among the arrays, and what it is. */
static int fill_result(const Launch* launch, PyObject* parts, Result* result) {
    if (!PyArg_ParseTuple(parts, "nnOO!", &result->target, &result->memory, &result->node,
                          &PyTuple_Type, &result->strides))
        return 0;
    Py_INCREF(result->node);
    Py_INCREF(result->strides);
    if (result->target >= 0 && result->target < launch->targets) return 1;
    PyErr_SetString(PyExc_ValueError, "a result is one of the arrays that are written");
    return 0;
}

static int fill_results(Launch* launch, PyObject* results) {
    const Py_ssize_t count = PyTuple_GET_SIZE(results);
    launch->result = PyMem_Calloc((size_t)count + 1, sizeof *launch->result);
    if (launch->result == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; ++i, ++launch->results)
        if (!fill_result(launch, PyTuple_GET_ITEM(results, i), launch->result + i)) {
            ++launch->results; /* what it holds is released */
            return 0;
        }
    return 1;
}

static int fill_repeats(Launch* launch, PyObject* repeats) {
    const Py_ssize_t count = PyTuple_GET_SIZE(repeats);
    if (count > MAX_REPEATS) {
        PyErr_Format(PyExc_ValueError, "a launch repeats up to %d leaves", MAX_REPEATS);
        return 0;
    }
    for (; launch->repeats < count; ++launch->repeats) {
        Repeat* repeat = launch->repeat + launch->repeats;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(repeats, launch->repeats), "nnnnn", &repeat->leaf,
                              &repeat->itemsize, &repeat->period, &repeat->stride, &repeat->row))
            return 0;
        if (repeat->leaf < 0 || repeat->leaf >= launch->leaves || repeat->itemsize <= 0 ||
            repeat->period <= 0 || repeat->row < repeat->period) {
            PyErr_SetString(PyExc_ValueError, "a row repeats the elements of a leaf");
            return 0;
        }
    }
    return 1;
}

static PyObject* new_launch(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
    PyObject *kernel, *block, *offsets, *numbers, *sizes, *results, *repeats;
    unsigned long long entry, executor;
    long long operations;
    const char* formats;
    int brief, device;
    const char* name;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "OKKSO!sO!O!O!O!Lpis", &kernel, &entry, &executor, &block,
                          &PyTuple_Type, &offsets, &formats, &PyTuple_Type, &numbers, &PyTuple_Type,
                          &sizes, &PyTuple_Type, &results, &PyTuple_Type, &repeats, &operations,
                          &brief, &device, &name))
        return NULL;
    Launch* launch = (Launch*)type->tp_alloc(type, 0);
    if (launch == NULL) return NULL;
    launch->kernel = Py_NewRef(kernel);
    launch->block = Py_NewRef(block);
    launch->entry = (const fkl_kernel*)(uintptr_t)entry;
    launch->executor = (void*)(uintptr_t)executor;
    launch->operations = operations;
    launch->brief = brief;
    launch->device = device;
    launch->number = PyLong_FromLong(device);
    launch->name = PyUnicode_FromString(name);
    if (launch->number == NULL || launch->name == NULL || !fill_targets(launch, sizes) ||
        !fill_places(launch, offsets, formats, numbers) || !fill_results(launch, results) ||
        !fill_repeats(launch, repeats))
        Py_CLEAR(launch);
    return (PyObject*)launch;
}

static void destroy_launch(PyObject* self) {
    Launch* launch = (Launch*)self;
    Py_XDECREF(launch->kernel);
    Py_XDECREF(launch->block);
    Py_XDECREF(launch->number);
    Py_XDECREF(launch->name);
    for (Py_ssize_t i = 0; i < launch->results; ++i) {
        Py_XDECREF(launch->result[i].node);
        Py_XDECREF(launch->result[i].strides);
    }
    PyMem_Free(launch->result);
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

/* What struct.pack does for one number, of which F and D are complex ones; 0 for what is left to
 * Python. */
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
    if (format == 'F' || format == 'D') {
        const Py_complex number = PyComplex_AsCComplex(value);
        const float narrow[] = {(float)number.real, (float)number.imag};
        if (number.real == -1.0 && PyErr_Occurred()) return 0;
        if (format == 'D')
            memcpy(to, &number, sizeof number);
        else
            memcpy(to, narrow, sizeof narrow);
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

static int fill_in(const Launch* launch, PyObject* const* leaves, Py_ssize_t count, char* block) {
    memcpy(block, PyBytes_AS_STRING(launch->block), (size_t)PyBytes_GET_SIZE(launch->block));
    for (Py_ssize_t i = 0; i < launch->leaves; ++i) {
        const Place place = launch->places[i];
        if (place.leaf >= count) return 0;
        PyObject* leaf = leaves[place.leaf];
        const Py_ssize_t offset =
            Py_TYPE(leaf) == core.scalar ? core.scalar_value : core.stream_value;
        PyObject* value = get_slot(leaf, offset);
        if (value == NULL || !pack(block + place.offset, place.format, value)) return 0;
    }
    return 1;
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

static void release(PyObject** buffers, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; ++i) Py_DECREF(buffers[i]);
}

/* `repeated_row` in interchange.py: gives the kernel a row of its own, which is returned. */
static PyObject* repeat_row(const Launch* launch, Repeat repeat, char* block) {
    const size_t nbytes = (size_t)repeat.row * (size_t)repeat.itemsize;
    PyObject* buffer = new_buffer(nbytes);
    if (buffer == NULL) return NULL;
    char *place = block + launch->places[repeat.leaf].offset, *from;
    char* row = (char*)((fkl_owner*)buffer)->address;
    memcpy(&from, place, sizeof from);
    memcpy(place, &row, sizeof row);
    for (Py_ssize_t i = 0; i < repeat.period; ++i)
        memcpy(row + i * repeat.itemsize, from + i * repeat.stride * repeat.itemsize,
               (size_t)repeat.itemsize);
    size_t filled = (size_t)repeat.period * (size_t)repeat.itemsize;
    while (filled < nbytes) {
        const size_t more = filled < nbytes - filled ? filled : nbytes - filled;
        memcpy(row + filled, row, more);
        filled += more;
    }
    return buffer;
}

static int repeat_rows(const Launch* launch, char* block, PyObject** rows) {
    for (Py_ssize_t i = 0; i < launch->repeats; ++i) {
        rows[i] = repeat_row(launch, launch->repeat[i], block);
        if (rows[i] == NULL) {
            release(rows, i);
            return 0;
        }
    }
    return 1;
}

static PyObject* new_device_buffer(const Launch* launch, size_t nbytes, void* stream) {
    int code;
    const uintptr_t block = core.runtime->device_allocate(launch->device, nbytes, stream, &code);
    PyObject* buffer = block != 0 ? new_object(core.device_buffer) : NULL;
    if (buffer == NULL) return NULL; /* Python tries again, and says what went wrong */
    fkl_owner* owner = (fkl_owner*)buffer;
    owner->block = block;
    owner->address = (uintptr_t)core.runtime->device_address(block);
    owner->nbytes = nbytes;
    set_slot(buffer, core.device_buffer_device, Py_NewRef(launch->number));
    set_slot(buffer, core.device_buffer_place, Py_NewRef(launch->name));
    set_slot(buffer, core.device_buffer_imported, Py_NewRef(Py_False));
    return buffer;
}

/* New buffers for what a launch writes. */
static int make_buffers(const Launch* launch, char* block, PyObject** buffers, void* stream) {
    for (Py_ssize_t i = 0; i < launch->targets; ++i) {
        buffers[i] = launch->device < 0 ? new_buffer(launch->nbytes[i])
                                        : new_device_buffer(launch, launch->nbytes[i], stream);
        if (buffers[i] == NULL) {
            release(buffers, i);
            return 0;
        }
        const uintptr_t address = ((fkl_owner*)buffers[i])->address;
        memcpy(block + launch->places[launch->leaves + i].offset, &address, sizeof address);
    }
    return 1;
}

static int call_kernel(const Launch* launch, const char* block) {
    int code;
    if (launch->brief) return core.runtime->launch(launch->entry, block, launch->executor);
    Py_BEGIN_ALLOW_THREADS;
    code = core.runtime->launch(launch->entry, block, launch->executor);
    Py_END_ALLOW_THREADS;
    return code;
}

/* The blocks that a launch on a device reads and writes; 0 if one is not there. */
static int find_blocks(const Launch* launch, PyObject* const* leaves, PyObject* const* buffers,
                       uint64_t* blocks) {
    int32_t count = 0;
    for (Py_ssize_t i = 0; i < launch->leaves; ++i) {
        PyObject* leaf = leaves[launch->places[i].leaf];
        if (Py_TYPE(leaf) != core.stream) continue;
        PyObject* buffer = get_slot(leaf, core.stream_buffer);
        if (Py_TYPE(buffer) != core.device_buffer || count == MAX_MET) return 0;
        blocks[count++] = ((fkl_owner*)buffer)->block;
    }
    for (Py_ssize_t i = 0; i < launch->targets; ++i)
        blocks[count++] = ((fkl_owner*)buffers[i])->block;
    return count;
}

/* The stream of a device that work is queued on; NULL, and no exception, where Python is to ask. */
static void* current_stream(const Launch* launch) {
    PyObject* handle = PyObject_CallOneArg(core.current_stream, launch->number);
    void* stream = handle != NULL ? PyLong_AsVoidPtr(handle) : NULL;
    Py_XDECREF(handle);
    PyErr_Clear();
    return stream;
}

static int launch_on_device(const Launch* launch, const char* block, void* stream,
                            PyObject* const* leaves, PyObject* const* buffers) {
    uint64_t blocks[MAX_MET + MAX_TARGETS];
    const int count = find_blocks(launch, leaves, buffers, blocks);
    int code = -1;
    if (count == 0) return code;
    Py_BEGIN_ALLOW_THREADS; /* a launch waits where too many are queued */
    code = core.runtime->device_launch(launch->entry, block, launch->device, stream, blocks, count);
    Py_END_ALLOW_THREADS;
    return code;
}

int run_launch(const Launch* launch, PyObject* const* leaves, Py_ssize_t count,
               PyObject** buffers) {
    _Alignas(16) char block[MAX_BLOCK + 16]; /* a place takes at most 16 bytes */
    PyObject* rows[MAX_REPEATS];
    if (!fill_in(launch, leaves, count, block) || !repeat_rows(launch, block, rows)) return 0;
    void* stream = launch->device >= 0 ? current_stream(launch) : NULL;
    int done =
        (launch->device < 0 || stream != NULL) && make_buffers(launch, block, buffers, stream);
    if (done &&
        (launch->device < 0 ? call_kernel(launch, block)
                            : launch_on_device(launch, block, stream, leaves, buffers)) != 0) {
        release(buffers, launch->targets); /* Python launches again, and says what went wrong */
        done = 0;
    }
    release(rows, launch->repeats);
    return done;
}

PyObject* new_stream(PyObject* buffer, PyObject* strides) {
    PyObject* stream = new_object(core.stream);
    PyObject* number = PyLong_FromUnsignedLongLong(((fkl_owner*)buffer)->address);
    if (stream == NULL || number == NULL) {
        Py_XDECREF(stream);
        Py_XDECREF(number);
        return NULL;
    }
    set_slot(stream, core.stream_buffer, Py_NewRef(buffer));
    set_slot(stream, core.stream_value, number);
    set_slot(stream, core.stream_strides, Py_NewRef(strides));
    return stream;
}
