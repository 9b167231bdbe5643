/* Recording: the structures that `Shortcuts` in operators.py remembers, looked up. */
#include "core.h"

/* As in operators.py: rounding to the array's type cannot overflow. */
#define SAFE 1e38
/* An int up to here has a place in every integer type. */
#define EVERYWHERE 127

/* A new array; takes over the references to structure and leaves, NULL after an error. */
static PyObject* new_array(PyObject* shape, PyObject* structure, PyObject* leaves) {
    PyObject* state = structure != NULL && leaves != NULL ? PyTuple_New(2) : NULL;
    PyObject* array = state != NULL ? new_object(core.array) : NULL;
    if (array == NULL) {
        Py_XDECREF(state);
        Py_XDECREF(structure);
        Py_XDECREF(leaves);
        return NULL;
    }
    PyTuple_SET_ITEM(state, 0, structure);
    PyTuple_SET_ITEM(state, 1, leaves);
    set_slot(array, core.array_shape, Py_NewRef(shape));
    set_slot(array, core.array_state, state);
    return array;
}

/* A remembered structure, or NULL. */
static PyObject* look_up(PyObject* known, PyObject* key) {
    return Py_XNewRef(PyDict_GetItemWithError(known, key));
}

PyObject* quick_unary(Front* front, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
    Operand x;
    if (count != 1 || names != NULL || !take_array(arguments[0], &x)) return NULL;
    PyObject* structure = look_up(front->known, x.node);
    PyObject* result =
        structure != NULL ? new_array(x.shape, structure, Py_NewRef(x.leaves)) : NULL;
    Py_DECREF(x.state);
    return result;
}

/* The structure that is remembered for a number, and the number as a kernel gets it; NULL for
 * anything but a float or an int of a usual size. */
static PyObject* structure_of(Front* front, PyObject* node, PyObject* number, PyObject** value) {
    *value = NULL;
    if (PyFloat_CheckExact(number)) {
        const double real = PyFloat_AS_DOUBLE(number);
        if (!(-SAFE < real && real < SAFE)) return NULL;
        *value = Py_NewRef(number);
        return look_up(front->floats, node);
    }
    if (!PyLong_CheckExact(number)) return NULL;
    const double real = PyLong_AsDouble(number);
    if (!(-SAFE < real && real < SAFE) || (real == -1.0 && PyErr_Occurred())) return NULL;
    PyObject* structure = look_up(front->integers, node);
    if (structure != NULL) {
        *value = PyFloat_FromDouble(real);
    } else if (0 <= real && real <= EVERYWHERE) {
        *value = Py_NewRef(number);
        structure = look_up(front->small, node);
    }
    return structure;
}

/* The leaves and a scalar, in front of them or after; takes over the scalar's value. */
static PyObject* add_scalar(PyObject* leaves, PyObject* value, int in_front) {
    PyObject* scalar = value != NULL ? new_object(core.scalar) : NULL;
    const Py_ssize_t count = PyTuple_GET_SIZE(leaves);
    PyObject* joined = scalar != NULL ? PyTuple_New(count + 1) : NULL;
    if (joined == NULL) {
        Py_XDECREF(scalar);
        Py_XDECREF(value);
        return NULL;
    }
    set_slot(scalar, core.scalar_value, value);
    for (Py_ssize_t i = 0; i < count; ++i)
        PyTuple_SET_ITEM(joined, i + in_front, Py_NewRef(PyTuple_GET_ITEM(leaves, i)));
    PyTuple_SET_ITEM(joined, in_front ? 0 : count, scalar);
    return joined;
}

/* Shortcuts._number. */
static PyObject* with_number(Front* front, PyObject* array, PyObject* number, int reflected) {
    Operand x;
    PyObject *value, *result = NULL;
    if (!take_array(array, &x)) return NULL;
    PyObject* structure = structure_of(front, x.node, number, &value);
    if (structure != NULL)
        result = new_array(x.shape, structure, add_scalar(x.leaves, value, reflected));
    else
        Py_XDECREF(value);
    Py_DECREF(x.state);
    return result;
}

/* `merge` in recording.py; where a leaf is shared, adds to a key where the second's leaves are. */
static PyObject* join(PyObject* leaves, PyObject* more, Parts* parts) {
    const Py_ssize_t first = PyTuple_GET_SIZE(leaves), second = PyTuple_GET_SIZE(more);
    PyObject* joined[MAX_MET];
    Py_ssize_t places[MAX_MET], count = first;
    if (first + second > MAX_MET) return NULL;
    for (Py_ssize_t i = 0; i < first; ++i) joined[i] = PyTuple_GET_ITEM(leaves, i);
    for (Py_ssize_t i = 0; i < second; ++i) {
        PyObject* leaf = PyTuple_GET_ITEM(more, i);
        places[i] = number_of(joined, first, leaf);
        if (places[i] == first) {
            places[i] = count;
            joined[count++] = leaf;
        }
    }
    if (count < first + second)
        for (Py_ssize_t i = 0; i < second; ++i)
            if (!add_number(parts, places[i])) return NULL;
    PyObject* result = PyTuple_New(count);
    for (Py_ssize_t i = 0; result != NULL && i < count; ++i)
        PyTuple_SET_ITEM(result, i, Py_NewRef(joined[i]));
    return result;
}

/* Whether a shape is what it and another one broadcast to. */
static int covers(PyObject* shape, PyObject* other) {
    const Py_ssize_t more = PyTuple_GET_SIZE(shape) - PyTuple_GET_SIZE(other);
    if (more < 0) return 0;
    for (Py_ssize_t axis = 0; axis < PyTuple_GET_SIZE(other); ++axis) {
        const long long extent = PyLong_AsLongLong(PyTuple_GET_ITEM(other, axis));
        if (extent != 1 && extent != PyLong_AsLongLong(PyTuple_GET_ITEM(shape, more + axis)))
            return 0;
    }
    return 1;
}

/* The shape that two shapes broadcast to, a new reference. */
static PyObject* common_shape(PyObject* first, PyObject* second) {
    if (first == second || covers(first, second)) return Py_NewRef(first);
    if (covers(second, first)) return Py_NewRef(second);
    return PyObject_CallFunctionObjArgs(core.broadcast, first, second, NULL);
}

/* Shortcuts.binary for two arrays. */
static PyObject* with_array(PyObject* known, const Operand* x1, const Operand* x2) {
    Parts parts;
    parts.count = 0;
    add(&parts, x1->node);
    add(&parts, x2->node);
    PyObject* leaves = join(x1->leaves, x2->leaves, &parts);
    PyObject* structure = leaves != NULL ? find(known, &parts) : NULL;
    let_go_of_parts(&parts);
    PyObject* shape = structure != NULL ? common_shape(x1->shape, x2->shape) : NULL;
    if (shape == NULL) Py_CLEAR(structure);
    PyObject* result = new_array(shape, structure, leaves);
    Py_XDECREF(shape);
    return result;
}

PyObject* quick_binary(Front* front, PyObject* const* arguments, Py_ssize_t count,
                       PyObject* names) {
    if (count != 2 || names != NULL) return NULL;
    Operand x1, x2;
    if (!take_array(arguments[1], &x2)) return with_number(front, arguments[0], arguments[1], 0);
    PyObject* result = NULL;
    if (take_array(arguments[0], &x1)) {
        result = with_array(front->known, &x1, &x2);
        Py_DECREF(x1.state);
    }
    Py_DECREF(x2.state);
    return result;
}

PyObject* quick_reflected(Front* front, PyObject* const* arguments, Py_ssize_t count,
                          PyObject* names) {
    if (count != 2 || names != NULL) return NULL;
    return with_number(front, arguments[0], arguments[1], 1);
}
