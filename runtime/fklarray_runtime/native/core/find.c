/* What Python remembers in dicts, looked up by a key of many parts. */
#include "core.h"

#include <string.h>

/* Latest keys, and what was found by them; nothing at first. */
#define RECENT_BITS 8
static struct {
    PyObject *known, *key, *found;
} recent[1 << RECENT_BITS];

/* The place of a key among the latest: by its parts' identity, as they are compared. */
static size_t place_of(PyObject* known, const Parts* parts) {
    uint64_t mixed = (uintptr_t)known;
    for (Py_ssize_t i = 0; i < parts->count; ++i)
        mixed = (mixed ^ (uintptr_t)parts->part[i]) * UINT64_C(0x9E3779B97F4A7C15);
    return mixed >> (64 - RECENT_BITS);
}

static int is_key(PyObject* key, const Parts* parts) {
    return PyTuple_GET_SIZE(key) == parts->count &&
           memcmp(((PyTupleObject*)key)->ob_item, parts->part,
                  (size_t)parts->count * sizeof *parts->part) == 0;
}

static void remember(size_t place, PyObject* known, PyObject* key, PyObject* found) {
    PyObject* const before[] = {recent[place].known, recent[place].key, recent[place].found};
    recent[place].known = Py_NewRef(known);
    recent[place].key = Py_NewRef(key);
    recent[place].found = Py_NewRef(found);
    for (size_t i = 0; i < sizeof before / sizeof *before; ++i) Py_XDECREF(before[i]);
}

PyObject* find(PyObject* known, const Parts* parts) {
    const size_t place = place_of(known, parts);
    if (recent[place].known == known && is_key(recent[place].key, parts))
        return Py_NewRef(recent[place].found);
    PyObject* key = PyTuple_New(parts->count);
    if (key == NULL) return NULL;
    for (Py_ssize_t i = 0; i < parts->count; ++i)
        PyTuple_SET_ITEM(key, i, Py_NewRef(parts->part[i]));
    PyObject* found = Py_XNewRef(PyDict_GetItemWithError(known, key));
    if (found != NULL) remember(place, known, key, found);
    Py_DECREF(key);
    return found;
}

void let_go_of_parts(Parts* parts) {
    for (Py_ssize_t i = 0; i < parts->count; ++i) Py_DECREF(parts->part[i]);
    parts->count = 0;
}
