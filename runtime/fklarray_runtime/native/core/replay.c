/* Recordings made again, as replay.py remembers them. */
#include "core.h"

#include <math.h>

/* Leaves of the arrays, then what the steps make; arrays with more are Python's matter. */
#define MAX_OBJECTS 128

typedef struct {
    PyObject* objects[MAX_OBJECTS];
    Py_ssize_t count;
} Objects;

/* ---- the key ---- */

static int add_leaf(Parts* parts, PyObject* leaf, Objects* given) {
    const Py_ssize_t number = number_of(given->objects, given->count, leaf);
    if (number < given->count) return add_number(parts, number);
    if (given->count == MAX_OBJECTS / 2) return 0;
    given->objects[given->count++] = Py_NewRef(leaf);
    if (!add(parts, Py_None)) return 0;
    if (Py_TYPE(leaf) == core.scalar) return add(parts, core.no_strides);
    return Py_TYPE(leaf) == core.stream && add(parts, get_slot(leaf, core.stream_strides));
}

static int add_array(Parts* parts, const Operand* x, Objects* given) {
    int is_whole = add(parts, x->node) && add(parts, x->shape);
    for (Py_ssize_t i = 0; is_whole && i < PyTuple_GET_SIZE(x->leaves); ++i)
        is_whole = add_leaf(parts, PyTuple_GET_ITEM(x->leaves, i), given);
    return is_whole;
}

/* `_is_plain` in replay.py. */
static int is_plain(PyObject* value) {
    if (PyFloat_CheckExact(value)) {
        const double number = PyFloat_AS_DOUBLE(value);
        return number > 0 || number < 0 || (number == 0 && !signbit(number));
    }
    if (PyTuple_CheckExact(value)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
            if (!PyLong_CheckExact(PyTuple_GET_ITEM(value, i))) return 0;
        return 1;
    }
    return value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
           Py_TYPE(value) == &PyType_Type;
}

static int add_argument(Parts* parts, PyObject* value, Objects* given) {
    Operand x;
    if (!take_array(value, &x))
        return is_plain(value) && add(parts, (PyObject*)Py_TYPE(value)) && add(parts, value);
    const int added = add_array(parts, &x, given);
    Py_DECREF(x.state);
    return added;
}

/* `_key` in replay.py; holds the arrays' leaves. */
static int add_arguments(Parts* parts, PyObject* const* arguments, Py_ssize_t count,
                         PyObject* names, Objects* given) {
    for (Py_ssize_t i = 0; i < count; ++i)
        if (!add_argument(parts, arguments[i], given)) return 0;
    return add(parts, names != NULL ? names : core.no_strides);
}

/* ---- the steps ---- */

static PyObject* part(PyObject* step, Py_ssize_t number) { return PyTuple_GET_ITEM(step, number); }

static PyObject* make_scalar(PyObject* step) {
    PyObject* scalar = new_object(core.scalar);
    if (scalar != NULL) set_slot(scalar, core.scalar_value, Py_NewRef(part(step, 0)));
    return scalar;
}

static PyObject* make_stream(PyObject* step, const Objects* objects) {
    PyObject* stream = new_object(core.deferred_stream);
    if (stream == NULL) return NULL;
    PyObject* memory = objects->objects[PyLong_AsSsize_t(part(step, 0))];
    set_slot(stream, core.stream_buffer, Py_NewRef(memory));
    set_slot(stream, core.stream_value, Py_NewRef(part(step, 1)));
    set_slot(stream, core.stream_strides, Py_NewRef(part(step, 2)));
    set_slot(stream, core.stream_resolved, Py_NewRef(Py_None));
    return stream;
}

/* The state of a structure over some of the objects. */
static PyObject* make_state(PyObject* node, PyObject* numbers, const Objects* objects) {
    const Py_ssize_t count = PyTuple_GET_SIZE(numbers);
    PyObject* leaves = PyTuple_New(count);
    for (Py_ssize_t i = 0; leaves != NULL && i < count; ++i) {
        const Py_ssize_t number = PyLong_AsSsize_t(part(numbers, i));
        PyTuple_SET_ITEM(leaves, i, Py_NewRef(objects->objects[number]));
    }
    PyObject* state = leaves != NULL ? PyTuple_Pack(2, node, leaves) : NULL;
    Py_XDECREF(leaves);
    return state;
}

/* Bytes that a stream's memory takes. */
static unsigned long long bytes_of(PyObject* leaf) {
    PyObject* buffer = get_slot(leaf, core.stream_buffer);
    if (Py_TYPE(buffer) == core.buffer || Py_TYPE(buffer) == core.device_buffer)
        return ((fkl_owner*)buffer)->nbytes;
    if (Py_TYPE(buffer) == core.pending_reduction)
        return PyLong_AsUnsignedLongLong(get_slot(buffer, core.deferred_nbytes));
    return 0;
}

/* Bytes of the blocks that a state reads, each once. */
static unsigned long long bytes_read(PyObject* state) {
    PyObject* leaves = part(state, 1);
    unsigned long long sum = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(leaves); ++i) {
        PyObject* leaf = part(leaves, i);
        int is_known = Py_TYPE(leaf) == core.scalar;
        for (Py_ssize_t j = 0; j < i && !is_known; ++j)
            is_known =
                Py_TYPE(part(leaves, j)) != core.scalar &&
                get_slot(part(leaves, j), core.stream_buffer) == get_slot(leaf, core.stream_buffer);
        if (!is_known) sum += bytes_of(leaf);
    }
    return sum;
}

static PyObject* make_memory(PyObject* step, const Objects* objects) {
    PyObject* state = make_state(part(step, 0), part(step, 1), objects);
    PyObject* operands = state != NULL ? PyTuple_Pack(1, state) : NULL;
    PyObject* recipe = operands != NULL ? PyTuple_Pack(2, core.reduce, operands) : NULL;
    PyObject* memory = recipe != NULL ? new_object(core.pending_reduction) : NULL;
    PyObject* nbytes = NULL;
    if (memory != NULL)
        nbytes = PyLong_FromUnsignedLongLong(PyLong_AsUnsignedLongLong(part(step, 7)) +
                                             bytes_read(state));
    Py_XDECREF(state);
    Py_XDECREF(operands);
    if (nbytes == NULL) {
        Py_XDECREF(recipe);
        Py_XDECREF(memory);
        return NULL;
    }
    set_slot(memory, core.deferred_recipe, recipe);
    set_slot(memory, core.deferred_result, Py_NewRef(Py_None));
    set_slot(memory, core.deferred_nbytes, nbytes);
    set_slot(memory, core.pending_reduction_of, Py_NewRef(part(step, 2)));
    set_slot(memory, core.pending_shape, Py_NewRef(part(step, 3)));
    set_slot(memory, core.pending_rows, Py_NewRef(part(step, 4)));
    set_slot(memory, core.deferred_depth, Py_NewRef(part(step, 5)));
    set_slot(memory, core.pending_passes, Py_NewRef(part(step, 6)));
    set_slot(memory, core.deferred_result_bytes, Py_NewRef(part(step, 7)));
    return memory;
}

static PyObject* make(PyObject* step, const Objects* objects) {
    switch (PyTuple_GET_SIZE(step)) {
    case 1:
        return make_scalar(step);
    case 3:
        return make_stream(step, objects);
    default:
        return make_memory(step, objects);
    }
}

/* What this thread's pending results are counted in, a new reference; NULL after an error. */
static PyObject* held_by_thread(void) {
    static uint64_t thread; /* numbers begin with 1 and are not used again */
    static PyObject* held;
    const uint64_t current = PyThreadState_GetID(PyThreadState_Get());
    if (thread == current) return Py_NewRef(held);
    PyObject* found = PyObject_CallNoArgs(core.held_by_thread);
    if (found == NULL) return NULL;
    PyObject* before = held;
    thread = current;
    held = Py_NewRef(found);
    Py_XDECREF(before);
    return found;
}

/* As in pending.py. */
#define LEAST_BYTES 4096

/* Counts a result of so many bytes; 0 where there is no room for it. */
static int count_in(PyObject* held, PyObject* reference, long long nbytes) {
    const long long room = PyLong_AsLongLong(get_slot(held, core.held_room)) - nbytes;
    PyObject* left = room >= 0 ? PyLong_FromLongLong(room) : NULL;
    if (left == NULL || PyList_Append(get_slot(held, core.held_recent), reference) < 0) {
        Py_XDECREF(left);
        return 0;
    }
    set_slot(held, core.held_room, left);
    return 1;
}

/* `admit` in pending.py, which looks at what is held where there is no more room. */
static int admit(PyObject* memory) {
    const long long nbytes = PyLong_AsLongLong(get_slot(memory, core.deferred_nbytes));
    if (nbytes < LEAST_BYTES) return 1;
    PyObject* reference = PyWeakref_NewRef(memory, NULL);
    PyObject* held = reference != NULL ? held_by_thread() : NULL;
    int admitted = held != NULL && count_in(held, reference, nbytes);
    Py_XDECREF(reference);
    Py_XDECREF(held);
    if (!admitted && !PyErr_Occurred()) {
        PyObject* none = PyObject_CallOneArg(core.admit, memory);
        admitted = none != NULL;
        Py_XDECREF(none);
    }
    return admitted;
}

static int admit_all(const Objects* objects, Py_ssize_t from) {
    for (Py_ssize_t i = from; i < objects->count; ++i)
        if (Py_TYPE(objects->objects[i]) == core.pending_reduction && !admit(objects->objects[i]))
            return 0;
    return 1;
}

static PyObject* make_array(PyObject* recipe, Objects* objects) {
    PyObject* steps = part(recipe, 0);
    const Py_ssize_t given = objects->count;
    if (given + PyTuple_GET_SIZE(steps) > MAX_OBJECTS) return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(steps); ++i) {
        PyObject* object = make(part(steps, i), objects);
        if (object == NULL) return NULL;
        objects->objects[objects->count++] = object;
    }
    PyObject* state = make_state(part(recipe, 1), part(recipe, 2), objects);
    PyObject* array = state != NULL ? new_object(core.array) : NULL;
    if (array == NULL) {
        Py_XDECREF(state);
        return NULL;
    }
    set_slot(array, core.array_state, state);
    set_slot(array, core.array_shape, Py_NewRef(part(recipe, 3)));
    if (!admit_all(objects, given)) Py_CLEAR(array);
    return array;
}

PyObject* quick_replay(Front* front, PyObject* const* arguments, Py_ssize_t count,
                       PyObject* names) {
    Objects objects;
    Parts parts;
    objects.count = parts.count = 0;
    const Py_ssize_t named = names != NULL ? PyTuple_GET_SIZE(names) : 0;
    PyObject *recipe = NULL, *result = NULL;
    if (add_arguments(&parts, arguments, count + named, names, &objects))
        recipe = find(front->known, &parts);
    let_go_of_parts(&parts);
    if (recipe != NULL && recipe != Py_None) result = make_array(recipe, &objects);
    Py_XDECREF(recipe);
    for (Py_ssize_t i = 0; i < objects.count; ++i) Py_DECREF(objects.objects[i]);
    return result;
}
