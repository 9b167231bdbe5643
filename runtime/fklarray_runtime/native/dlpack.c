/* Managed tensors in the two forms of DLPack. Nothing here touches Python: a deleter may run on
 * any thread, without the GIL, and after the interpreter has begun to shut down. */
#include "native.h"

#include <stdlib.h>
#include <string.h>

/* One allocation per exported tensor: the structure, then its shape, then its strides. */
typedef struct {
    union {
        DLManagedTensor legacy;
        DLManagedTensorVersioned versioned;
    } managed;
    int64_t extents[];
} Exported;

static void delete_legacy(DLManagedTensor* self) {
    fkl_block_release((uintptr_t)self->manager_ctx);
    free(self);
}

static void delete_versioned(DLManagedTensorVersioned* self) {
    fkl_block_release((uintptr_t)self->manager_ctx);
    free(self);
}

static void fill_strides(const int64_t* shape, int64_t* strides, int32_t ndim) {
    int64_t stride = 1;
    for (int32_t axis = ndim - 1; axis >= 0; --axis) {
        strides[axis] = stride;
        if (shape[axis] > 1)
            stride = (int64_t)((uint64_t)stride *
                               (uint64_t)shape[axis]); /* an empty axis must not zero the others */
    }
}

void* fkl_export_tensor(uintptr_t block, uintptr_t address, DLDevice device, const int64_t* shape,
                        int32_t ndim, int code, int bits, int versioned, uint64_t flags) {
    Exported* exported = calloc(1, sizeof *exported + (2 * (size_t)ndim + 1) * sizeof(int64_t));
    if (exported == NULL) return NULL;
    int64_t* extents = exported->extents;
    for (int32_t axis = 0; axis < ndim; ++axis) extents[axis] = shape[axis];
    fill_strides(extents, extents + ndim, ndim);
    const DLTensor tensor = {
        .data = (void*)address,
        .device = device,
        .ndim = ndim,
        .dtype = {(uint8_t)code, (uint8_t)bits, 1},
        .shape = extents,
        .strides = extents + ndim, /* never NULL: DLPack 1.2 forbids it */
    };
    fkl_block_retain(block);
    if (versioned) {
        exported->managed.versioned = (DLManagedTensorVersioned){
            .version = {1, 0},
            .manager_ctx = (void*)block,
            .deleter = delete_versioned,
            .flags = flags,
            .dl_tensor = tensor,
        };
    } else {
        exported->managed.legacy = (DLManagedTensor){
            .dl_tensor = tensor,
            .manager_ctx = (void*)block,
            .deleter = delete_legacy,
        };
    }
    return exported;
}

static void drop_legacy(void* managed) {
    DLManagedTensor* tensor = managed;
    if (tensor->deleter != NULL) tensor->deleter(tensor);
}

static void drop_versioned(void* managed) {
    DLManagedTensorVersioned* tensor = managed;
    if (tensor->deleter != NULL) tensor->deleter(tensor);
}

void fkl_delete_tensor(void* managed, int versioned) {
    if (versioned)
        drop_versioned(managed);
    else
        drop_legacy(managed);
}

/* The lowest byte and the number of bytes that the elements reach. Unsigned, because a foreign
 * tensor's numbers may be nonsense and must not overflow. */
static void find_span(fkl_description* description, const int64_t* shape, const int64_t* strides) {
    const uint64_t width = (uint64_t)description->bits / 8;
    uint64_t below = 0, above = width;
    int empty = 0;
    for (int64_t axis = 0; axis < description->ndim; ++axis) {
        const uint64_t reach = ((uint64_t)shape[axis] - 1) * (uint64_t)strides[axis] * width;
        if (shape[axis] == 0) empty = 1;
        if (strides[axis] < 0)
            below += reach;
        else
            above += reach;
    }
    description->lowest = (int64_t)((uint64_t)description->address + (empty ? 0 : below));
    description->nbytes = empty ? 0 : (int64_t)(above - below);
}

void fkl_describe_tensor(const void* managed, int versioned, fkl_description* description) {
    const DLTensor* tensor = &((const DLManagedTensor*)managed)->dl_tensor;
    memset(description, 0, sizeof *description);
    description->major = 1;
    if (versioned) {
        const DLManagedTensorVersioned* header = managed;
        description->major = header->version.major;
        description->minor = header->version.minor;
        if (header->version.major != 1) return; /* what follows may be laid out otherwise */
        description->flags = (int64_t)header->flags;
        tensor = &header->dl_tensor;
    }
    description->device_type = tensor->device.device_type;
    description->device_id = tensor->device.device_id;
    description->code = tensor->dtype.code;
    description->bits = tensor->dtype.bits;
    description->lanes = tensor->dtype.lanes;
    description->ndim = tensor->ndim;
    description->address = (int64_t)((uintptr_t)tensor->data + tensor->byte_offset);
    if (tensor->ndim < 0 || tensor->ndim > FKL_MAX_NDIM) return;
    int64_t* shape = description->extents;
    int64_t* strides = shape + tensor->ndim;
    for (int32_t axis = 0; axis < tensor->ndim; ++axis) shape[axis] = tensor->shape[axis];
    if (tensor->strides == NULL)
        fill_strides(shape, strides, tensor->ndim);
    else
        memcpy(strides, tensor->strides, (size_t)tensor->ndim * sizeof(int64_t));
    find_span(description, shape, strides);
}

uintptr_t fkl_import_block(void) { return (uintptr_t)fkl_block_foreign(); }

void fkl_import_adopt(uintptr_t handle, void* managed, int versioned) {
    struct fkl_block* block = (struct fkl_block*)handle;
    block->owner = managed;
    block->drop = versioned ? drop_versioned : drop_legacy;
}
