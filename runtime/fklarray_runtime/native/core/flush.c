/* Flushing: what is pending is found as a launch that Python has prepared; and the export. */
#include "core.h"

#include <string.h>

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
    if (Py_TYPE(buffer) != core.buffer && Py_TYPE(buffer) != core.device_buffer) return NULL;
    const unsigned long long address =
        PyLong_AsUnsignedLongLongMask(get_slot(stream, core.stream_value));
    if (address != ((fkl_owner*)buffer)->address) return NULL;
    return is_contiguous(shape, get_slot(stream, core.stream_strides)) ? buffer : NULL;
}

/* The key of evaluation.py's plans: structure, shape, a contiguous result, strides of leaves. */
static int add_plan_key(Parts* parts, PyObject* node, PyObject* shape, PyObject* leaves) {
    int is_whole = add(parts, node) && add(parts, shape) && add(parts, Py_None);
    for (Py_ssize_t i = 0; is_whole && i < PyTuple_GET_SIZE(leaves); ++i) {
        PyObject* leaf = PyTuple_GET_ITEM(leaves, i);
        if (Py_TYPE(leaf) == core.stream)
            is_whole = add(parts, get_slot(leaf, core.stream_strides));
        else /* or a result that something else computes first */
            is_whole = Py_TYPE(leaf) == core.scalar && add(parts, core.no_strides);
    }
    return is_whole;
}

static PyObject* find_plan(PyObject* node, PyObject* shape, PyObject* leaves) {
    Parts parts;
    parts.count = 0;
    PyObject* plan = NULL;
    if (add_plan_key(&parts, node, shape, leaves)) plan = find(core.plans, &parts);
    let_go_of_parts(&parts);
    return plan;
}

/* The plan of an expression with pending leaves. */
static PyObject* find_fused_plan(Met* met, const Operand* x) {
    PyObject* pattern = find_pattern(met, x->node, x->shape, x->leaves);
    PyObject* key = pattern != NULL ? PyTuple_Pack(1, pattern) : NULL;
    PyObject* plan = key != NULL ? Py_XNewRef(PyDict_GetItemWithError(core.plans, key)) : NULL;
    Py_XDECREF(pattern);
    Py_XDECREF(key);
    return plan;
}

/* Whether config.compile was read and lets kernels run. */
static int compiles(void) {
    static PyObject* name;
    if (name == NULL) name = PyUnicode_InternFromString("compile");
    PyObject* mode = name != NULL ? PyDict_GetItemWithError(core.settings, name) : NULL;
    return mode != NULL && PyUnicode_CompareWithASCIIString(mode, "off") != 0;
}

/* The launch of a plan, which is taken over. */
static Launch* launch_of(PyObject* plan) {
    PyObject* launch = plan != NULL && Py_TYPE(plan) == core.plan
                           ? Py_XNewRef(get_slot(plan, core.plan_launch))
                           : NULL;
    Py_XDECREF(plan);
    if (launch != NULL && Py_TYPE(launch) != &Launch_Type) Py_CLEAR(launch); /* None */
    return (Launch*)launch;
}

/* What a launch has written, as a state: its first result. */
static PyObject* result_state(const Launch* launch, PyObject* const* buffers) {
    const Result result = launch->result[0];
    PyObject* stream = new_stream(buffers[result.target], result.strides);
    PyObject* leaves = stream != NULL ? PyTuple_Pack(1, stream) : NULL;
    PyObject* state = leaves != NULL ? PyTuple_Pack(2, result.node, leaves) : NULL;
    Py_XDECREF(stream);
    Py_XDECREF(leaves);
    return state;
}

/* The state of a launch's result, once it has run; NULL where Python is to do it. */
static PyObject* run(const Launch* launch, const Met* met) {
    PyObject* buffers[MAX_TARGETS];
    if (!run_launch(launch, met->leaves, met->leaf_count, buffers)) return NULL;
    PyObject* state = result_state(launch, buffers);
    if (state != NULL) settle(launch, met, buffers);
    for (Py_ssize_t i = 0; i < launch->targets; ++i) Py_DECREF(buffers[i]);
    kernels_launched += state != NULL;
    operations_run += state != NULL ? launch->operations : 0;
    return state;
}

static PyObject* evaluate(const Operand* x) {
    Met met;
    if (!compiles()) return NULL;
    meet(&met, x->leaves);
    PyObject *plan = NULL, *result = NULL;
    if (met.deferred)
        plan = find_fused_plan(&met, x);
    else if (!met.too_many)
        plan = find_plan(x->node, x->shape, x->leaves);
    Launch* launch = launch_of(plan);
    if (launch != NULL && resolve(&met, launch)) result = run(launch, &met);
    Py_XDECREF(launch);
    let_go(&met);
    return result;
}

/* Recorded._materialize: the state of an array in memory, a new reference. */
static PyObject* materialize(PyObject* array) {
    Operand x;
    if (!take_array(array, &x)) return NULL;
    if (computed_buffer(x.state, x.shape) != NULL) return x.state;
    PyObject* result = evaluate(&x);
    if (result != NULL) {
        ++flushes;
        /* An assignment in another thread meanwhile wins. */
        if (get_slot(array, core.array_state) == x.state)
            set_slot(array, core.array_state, Py_NewRef(result));
    }
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
    const DLDevice cpu = {1, 0};
    void* managed = core.runtime->export_tensor(owner->block, owner->address, cpu, extents,
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
    if (buffer != NULL && Py_TYPE(buffer) == core.buffer && Py_REFCNT(state) == 2 &&
        Py_REFCNT(leaves) == 1 && Py_REFCNT(PyTuple_GET_ITEM(leaves, 0)) == 1 &&
        Py_REFCNT(buffer) == 1 && !((fkl_owner*)buffer)->readonly)
        result =
            export_buffer((fkl_owner*)buffer, get_slot(PyTuple_GET_ITEM(state, 0), core.node_dtype),
                          shape, versioned);
    Py_DECREF(state);
    return result;
}
