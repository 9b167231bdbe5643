/* Expressions with pending reductions, as fusion.py describes them to find them again. */
#include "core.h"

void meet(Met* met, PyObject* leaves) {
    const Py_ssize_t count = PyTuple_GET_SIZE(leaves);
    met->leaf_count = met->memory_count = 0;
    met->too_many = count > MAX_MET;
    met->deferred = 0;
    for (Py_ssize_t i = 0; i < count && !met->too_many; ++i) {
        PyObject* leaf = PyTuple_GET_ITEM(leaves, i);
        met->leaves[met->leaf_count++] = Py_NewRef(leaf);
        met->deferred |= Py_TYPE(leaf) == core.deferred_stream;
    }
}

void let_go(Met* met) {
    for (Py_ssize_t i = 0; i < met->leaf_count; ++i) Py_DECREF(met->leaves[i]);
    for (Py_ssize_t i = 0; i < met->memory_count; ++i) {
        Py_DECREF(met->memories[i]);
        Py_DECREF(met->operands[i]);
    }
    met->leaf_count = met->memory_count = 0;
}

/* The reduction whose results a leaf reads, and what is reduced, both borrowed; NULL as in
 * Python. */
static PyObject* pending_of(PyObject* leaf, PyObject** operand) {
    if (Py_TYPE(leaf) != core.deferred_stream) return NULL;
    PyObject* memory = get_slot(leaf, core.stream_buffer);
    if (Py_TYPE(memory) != core.pending_reduction ||
        PyLong_AsLongLong(get_slot(leaf, core.stream_value)) != 0)
        return NULL;
    PyObject* recipe = get_slot(memory, core.deferred_recipe);
    if (recipe == NULL || recipe == Py_None) return NULL;
    *operand = PyTuple_GET_ITEM(PyTuple_GET_ITEM(recipe, 1), 0);
    return memory;
}

static int describe(Met* met, Parts* parts, PyObject* node, PyObject* leaves);

static int describe_reduction(Met* met, Parts* parts, PyObject* memory, PyObject* operand) {
    const Py_ssize_t number = number_of(met->memories, met->memory_count, memory);
    if (number < met->memory_count) return add_number(parts, number);
    if (met->memory_count == MAX_TARGETS) return 0;
    met->operands[met->memory_count] = Py_NewRef(operand);
    met->memories[met->memory_count++] = Py_NewRef(memory);
    return add(parts, get_slot(memory, core.pending_reduction_of)) &&
           add(parts, get_slot(memory, core.pending_shape)) &&
           add(parts, get_slot(memory, core.pending_rows)) &&
           describe(met, parts, PyTuple_GET_ITEM(operand, 0), PyTuple_GET_ITEM(operand, 1));
}

static int describe_leaf(Met* met, Parts* parts, PyObject* leaf) {
    const Py_ssize_t number = number_of(met->leaves, met->leaf_count, leaf);
    if (number < met->leaf_count) return add_number(parts, number);
    if (met->leaf_count == MAX_MET || !add(parts, Py_None)) return 0;
    met->leaves[met->leaf_count++] = Py_NewRef(leaf);
    if (Py_TYPE(leaf) == core.scalar) return add(parts, core.no_strides);
    if (!add(parts, get_slot(leaf, core.stream_strides))) return 0;
    PyObject *operand, *memory = pending_of(leaf, &operand);
    return memory == NULL || describe_reduction(met, parts, memory, operand);
}

/* `_Met.describe`, given leaves that somebody holds. */
static int describe(Met* met, Parts* parts, PyObject* node, PyObject* leaves) {
    int is_whole = add(parts, node);
    for (Py_ssize_t i = 0; is_whole && i < PyTuple_GET_SIZE(leaves); ++i)
        is_whole = describe_leaf(met, parts, PyTuple_GET_ITEM(leaves, i));
    return is_whole;
}

PyObject* find_pattern(Met* met, PyObject* node, PyObject* shape, PyObject* leaves) {
    Parts parts;
    parts.count = 0;
    let_go(met); /* they are met again, in Python's order */
    PyObject* pattern = NULL;
    if (add(&parts, shape) && describe(met, &parts, node, leaves))
        pattern = find(core.patterns, &parts);
    let_go_of_parts(&parts);
    return pattern;
}

int resolve(Met* met, const Launch* launch) {
    for (Py_ssize_t i = 0; i < launch->leaves; ++i) {
        const Py_ssize_t number = launch->places[i].leaf;
        if (number >= met->leaf_count) return 0;
        PyObject* leaf = met->leaves[number];
        if (Py_TYPE(leaf) != core.deferred_stream) continue;
        PyObject* found = PyObject_CallOneArg(core.resolve, leaf);
        if (found == NULL) return 0;
        met->leaves[number] = found;
        Py_DECREF(leaf);
    }
    return 1;
}

/* Deferred.settle for each pending result that the launch has computed. */
void settle(const Launch* launch, const Met* met, PyObject* const* buffers) {
    for (Py_ssize_t i = 1; i < launch->results; ++i) {
        const Result result = launch->result[i];
        PyObject* memory = result.memory < met->memory_count ? met->memories[result.memory] : NULL;
        PyObject* stream =
            memory != NULL ? new_stream(buffers[result.target], result.strides) : NULL;
        if (stream == NULL) continue; /* it stays pending */
        PyObject* before = get_slot(memory, core.deferred_result);
        if (before == NULL || before == Py_None)
            set_slot(memory, core.deferred_result, stream);
        else
            Py_DECREF(stream);
        set_slot(memory, core.deferred_recipe, Py_NewRef(Py_None));
    }
}
