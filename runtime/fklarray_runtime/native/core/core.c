/* The module `fklarray_runtime._core`: the callables in front of Python's functions, and what they
 * know. */
#include "core.h"

#include <structmember.h>

Core core;

/* ---- Front ---- */

static PyObject* call_front(PyObject* self, PyObject* const* arguments, size_t flags,
                            PyObject* names, Quick quick) {
    Front* front = (Front*)self;
    if (core.array != NULL) {
        PyObject* result = quick(front, arguments, PyVectorcall_NARGS(flags), names);
        if (result != NULL) return result;
        /* Errors are Python's to raise, but nobody would press Ctrl-C twice. */
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
        PyErr_Clear();
    }
    return PyObject_Vectorcall(front->function, arguments, flags, names);
}

#define FRONT(name)                                                                                \
    static PyObject* call_##name(PyObject* self, PyObject* const* arguments, size_t flags,         \
                                 PyObject* names) {                                                \
        return call_front(self, arguments, flags, names, quick_##name);                            \
    }
FRONT(unary)
FRONT(binary)
FRONT(reflected)
FRONT(replay)
FRONT(materialize)
FRONT(dlpack)

static const struct {
    const char* name;
    vectorcallfunc call;
} kinds[] = {
    {"unary", call_unary},   {"binary", call_binary},           {"reflected", call_reflected},
    {"replay", call_replay}, {"materialize", call_materialize}, {"dlpack", call_dlpack},
};

static vectorcallfunc find_kind(const char* name) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
        if (strcmp(kinds[i].name, name) == 0) return kinds[i].call;
    PyErr_Format(PyExc_ValueError, "the core has nothing called %s", name);
    return NULL;
}

static PyObject* new_front(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
    const char* name;
    PyObject *function, *known = NULL, *floats = NULL, *integers = NULL, *small = NULL;
    static char* names[] = {"kind", "function", "known", "with_number", NULL};
    PyTypeObject* const dict = &PyDict_Type;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sO|O!(O!O!O!)", names, &name, &function,
                                     dict, &known, dict, &floats, dict, &integers, dict, &small))
        return NULL;
    const vectorcallfunc call = find_kind(name);
    Front* front = call != NULL ? (Front*)type->tp_alloc(type, 0) : NULL;
    if (front == NULL) return NULL;
    front->call = call;
    front->function = Py_NewRef(function);
    front->known = Py_XNewRef(known);
    front->floats = Py_XNewRef(floats);
    front->integers = Py_XNewRef(integers);
    front->small = Py_XNewRef(small);
    return (PyObject*)front;
}

static int traverse_front(PyObject* self, visitproc visit, void* arg) {
    Front* front = (Front*)self;
    Py_VISIT(front->function);
    Py_VISIT(front->known);
    Py_VISIT(front->floats);
    Py_VISIT(front->integers);
    Py_VISIT(front->small);
    return 0;
}

static int clear_front(PyObject* self) {
    Front* front = (Front*)self;
    Py_CLEAR(front->function);
    Py_CLEAR(front->known);
    Py_CLEAR(front->floats);
    Py_CLEAR(front->integers);
    Py_CLEAR(front->small);
    return 0;
}

static void destroy_front(PyObject* self) {
    PyObject_GC_UnTrack(self);
    PyObject_ClearWeakRefs(self);
    clear_front(self);
    Py_TYPE(self)->tp_free(self);
}

/* A method, as a Python function in a class is one. */
static PyObject* bind_front(PyObject* self, PyObject* object, PyObject* type) {
    (void)type;
    return object != NULL && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

/* Its name, documentation and so on are the function's. */
static PyObject* get_of_function(PyObject* self, void* name) {
    return PyObject_GetAttrString(((Front*)self)->function, name);
}

/* Pickled by name, as functions are. */
static PyObject* reduce_front(PyObject* self, PyObject* nothing) {
    (void)nothing;
    return PyObject_GetAttrString(((Front*)self)->function, "__qualname__");
}

static PyMethodDef front_methods[] = {
    {"__reduce__", reduce_front, METH_NOARGS, "Return the name that it is found by."},
    {NULL, NULL, 0, NULL},
};

static PyObject* represent_front(PyObject* self) { return PyObject_Repr(((Front*)self)->function); }

static PyGetSetDef front_attributes[] = {
    {"__doc__", get_of_function, NULL, NULL, "__doc__"},
    {"__module__", get_of_function, NULL, NULL, "__module__"},
    {"__name__", get_of_function, NULL, NULL, "__name__"},
    {"__qualname__", get_of_function, NULL, NULL, "__qualname__"},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef front_members[] = {
    {"__wrapped__", T_OBJECT_EX, offsetof(Front, function), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject Front_Type = {
    .ob_base = {PyObject_HEAD_INIT(NULL) 0},
    .tp_name = "fklarray_runtime._core.Front",
    .tp_basicsize = sizeof(Front),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(Front, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = new_front,
    .tp_traverse = traverse_front,
    .tp_clear = clear_front,
    .tp_dealloc = destroy_front,
    .tp_repr = represent_front,
    .tp_descr_get = bind_front,
    .tp_getset = front_attributes,
    .tp_members = front_members,
    .tp_methods = front_methods,
    .tp_weaklistoffset = offsetof(Front, references),
};

/* ---- connecting ---- */

/* Where a class keeps an attribute of its __slots__; -1 after an error. */
static Py_ssize_t find_slot(PyTypeObject* type, const char* name) {
    PyObject* descriptor = PyObject_GetAttrString((PyObject*)type, name);
    if (descriptor == NULL) return -1;
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(descriptor, &PyMemberDescr_Type))
        offset = ((PyMemberDescrObject*)descriptor)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%s.%s is no slot", type->tp_name, name);
    Py_DECREF(descriptor);
    return offset;
}

static int find_slots(PyTypeObject* array, PyTypeObject* node, PyTypeObject* dtype) {
    const struct {
        PyTypeObject* type;
        const char* name;
        Py_ssize_t* offset;
    } wanted[] = {
        {array, "_shape", &core.array_shape},
        {array, "_state", &core.array_state},
        {node, "op", &core.node_op},
        {node, "dtype", &core.node_dtype},
        {dtype, "dlpack_code", &core.dtype_code},
        {dtype, "bits", &core.dtype_bits},
        {core.stream, "buffer", &core.stream_buffer},
        {core.stream, "strides", &core.stream_strides},
        {core.stream, "value", &core.stream_value},
        {core.scalar, "value", &core.scalar_value},
        {core.deferred_stream, "_resolved", &core.stream_resolved},
        {core.pending_reduction, "_recipe", &core.deferred_recipe},
        {core.pending_reduction, "_result", &core.deferred_result},
        {core.pending_reduction, "depth", &core.deferred_depth},
        {core.pending_reduction, "nbytes", &core.deferred_nbytes},
        {core.pending_reduction, "result_bytes", &core.deferred_result_bytes},
        {core.pending_reduction, "passes", &core.pending_passes},
        {core.pending_reduction, "reduction", &core.pending_reduction_of},
        {core.pending_reduction, "shape", &core.pending_shape},
        {core.pending_reduction, "rows", &core.pending_rows},
        {core.plan, "launch", &core.plan_launch},
        {core.device_buffer, "device", &core.device_buffer_device},
        {core.device_buffer, "place", &core.device_buffer_place},
        {core.device_buffer, "_imported", &core.device_buffer_imported},
        {core.held, "recent", &core.held_recent},
        {core.held, "room", &core.held_room},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i) {
        *wanted[i].offset = find_slot(wanted[i].type, wanted[i].name);
        if (*wanted[i].offset < 0) return 0;
    }
    return 1;
}

PyDoc_STRVAR(connect_doc,
             "connect(*, array, node, dtype, stream, deferred_stream, scalar, buffer, "
             "device_buffer, current_stream, pending_reduction, plan, held, stream_op, settings, "
             "patterns, plans, broadcast, "
             "resolve, reduce, admit, held_by_thread, runtime)\n--\n\n"
             "Give the core the library's classes and what it looks up; it works from then on.");

/* A keyword argument of a type, held from now on; NULL, and an error, if it is anything else. */
static void* take(PyObject* keywords, const char* name, PyTypeObject* type) {
    PyObject* value = keywords != NULL ? PyDict_GetItemString(keywords, name) : NULL;
    if (value != NULL && PyObject_TypeCheck(value, type)) return Py_NewRef(value);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "connect needs %s, of type %s", name, type->tp_name);
    return NULL;
}

static int take_classes(PyObject* keywords) {
    PyTypeObject* const type = &PyType_Type;
    return (core.stream = take(keywords, "stream", type)) != NULL &&
           (core.deferred_stream = take(keywords, "deferred_stream", type)) != NULL &&
           (core.scalar = take(keywords, "scalar", type)) != NULL &&
           (core.buffer = take(keywords, "buffer", type)) != NULL &&
           (core.device_buffer = take(keywords, "device_buffer", type)) != NULL &&
           (core.pending_reduction = take(keywords, "pending_reduction", type)) != NULL &&
           (core.plan = take(keywords, "plan", type)) != NULL &&
           (core.held = take(keywords, "held", type)) != NULL;
}

static int take_objects(PyObject* keywords) {
    return (core.no_strides = PyTuple_New(0)) != NULL &&
           (core.stream_op = take(keywords, "stream_op", &PyUnicode_Type)) != NULL &&
           (core.settings = take(keywords, "settings", &PyDict_Type)) != NULL &&
           (core.patterns = take(keywords, "patterns", &PyDict_Type)) != NULL &&
           (core.plans = take(keywords, "plans", &PyDict_Type)) != NULL &&
           (core.broadcast = take(keywords, "broadcast", &PyBaseObject_Type)) != NULL &&
           (core.resolve = take(keywords, "resolve", &PyBaseObject_Type)) != NULL &&
           (core.reduce = take(keywords, "reduce", &PyBaseObject_Type)) != NULL &&
           (core.current_stream = take(keywords, "current_stream", &PyBaseObject_Type)) != NULL &&
           (core.admit = take(keywords, "admit", &PyBaseObject_Type)) != NULL &&
           (core.held_by_thread = take(keywords, "held_by_thread", &PyBaseObject_Type)) != NULL;
}

static int take_runtime(PyObject* keywords) {
    PyObject* address = take(keywords, "runtime", &PyLong_Type);
    if (address == NULL) return 0;
    core.runtime = (const fkl_functions*)PyLong_AsVoidPtr(address);
    Py_DECREF(address);
    if (core.runtime != NULL && core.runtime->abi == 2) return 1;
    PyErr_SetString(PyExc_ImportError, "fklarray_runtime._core is of another version");
    return 0;
}

static PyObject* connect(PyObject* module, PyObject* nothing, PyObject* keywords) {
    (void)module, (void)nothing;
    PyTypeObject* const array = take(keywords, "array", &PyType_Type);
    PyTypeObject* const node = take(keywords, "node", &PyType_Type);
    PyTypeObject* const dtype = take(keywords, "dtype", &PyType_Type);
    if (array == NULL || node == NULL || dtype == NULL || !take_classes(keywords) ||
        !take_objects(keywords) || !take_runtime(keywords) || !find_slots(array, node, dtype))
        return NULL;
    core.array = array;
    Py_RETURN_NONE;
}

/* ---- the module ---- */

static PyMethodDef functions[] = {
    {"connect", (PyCFunction)(void (*)(void))connect, METH_VARARGS | METH_KEYWORDS, connect_doc},
    {"counters", read_counters, METH_NOARGS, "Kernels, operations and flushes of the core."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "fklarray_runtime._core",
    .m_doc = "What the most frequent calls do, found without Python.",
    .m_size = -1,
    .m_methods = functions,
};

/* Without Py_mod_gil: a free-threaded Python keeps its GIL, which this code relies on. */
PyMODINIT_FUNC PyInit__core(void) {
    if (PyType_Ready(&Front_Type) < 0 || PyType_Ready(&Launch_Type) < 0) return NULL;
    PyObject* module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    if (PyModule_AddObjectRef(module, "Front", (PyObject*)&Front_Type) < 0 ||
        PyModule_AddObjectRef(module, "Launch", (PyObject*)&Launch_Type) < 0)
        Py_CLEAR(module);
    return module;
}
