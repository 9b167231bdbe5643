/* The base class of Buffer: a block's owner, which gives its reference back when it dies, also
 * while the interpreter shuts down. Only functions of the stable ABI. */
#include "owner.h"

#include <structmember.h>

static int initialise(PyObject* self, PyObject* arguments, PyObject* keywords) {
    fkl_owner* owner = (fkl_owner*)self;
    unsigned long long address, nbytes, block;
    int readonly;
    if (keywords != NULL && PyDict_Size(keywords) != 0) {
        PyErr_SetString(PyExc_TypeError, "an owner of a block takes no keywords");
        return -1;
    }
    if (!PyArg_ParseTuple(arguments, "KKpK", &address, &nbytes, &readonly, &block)) return -1;
    if (owner->block != 0) {
        PyErr_SetString(PyExc_TypeError, "an owner has one block");
        return -1;
    }
    owner->address = (uintptr_t)address;
    owner->nbytes = nbytes;
    owner->readonly = (char)readonly;
    owner->block = (uintptr_t)block;
    return 0;
}

/* Unmapping, and another library's deleter, may take their time: others run meanwhile. */
#define BRIEF_BYTES (1 << 20)

static void destroy(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    const fkl_owner owner = *(fkl_owner*)self;
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF((PyObject*)type);
    if (owner.block == 0) return;
    if (owner.nbytes < BRIEF_BYTES && owner.address == owner.block + FKL_HEADER_BYTES) {
        fkl_block_release(owner.block);
        return;
    }
    Py_BEGIN_ALLOW_THREADS;
    fkl_block_release(owner.block);
    Py_END_ALLOW_THREADS;
}

static PyMemberDef members[] = {
    {"_block", T_ULONGLONG, offsetof(fkl_owner, block), READONLY, NULL},
    {"address", T_ULONGLONG, offsetof(fkl_owner, address), READONLY, NULL},
    {"nbytes", T_ULONGLONG, offsetof(fkl_owner, nbytes), READONLY, NULL},
    {"readonly", T_BOOL, offsetof(fkl_owner, readonly), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_init, initialise},
    {Py_tp_dealloc, destroy},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec specification = {
    .name = "fklarray_runtime._native.Owner",
    .basicsize = sizeof(fkl_owner),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

static PyObject* owner_type(void) { return PyType_FromSpec(&specification); }

uintptr_t fkl_owner_type_address(void) { return (uintptr_t)owner_type; }
