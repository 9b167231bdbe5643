/* Everything Python sees. native_build.py hands this very text to cffi, so it holds
 * declarations only: no directive but plain #define constants. */

/* Bytes between a pool block's header and its payload. */
#define FKL_HEADER_BYTES 64
/* The most parameters one entry takes. */
#define FKL_MAX_PARAMETERS 8192

/* ---- pool.c: blocks of memory; a block is named by the address of its header ---- */

/* A block with one reference, its payload at block + FKL_HEADER_BYTES; 0 when refused. */
uintptr_t fkl_pool_allocate(size_t nbytes);
/* Bytes the pool holds: blocks in use and blocks kept for reuse. */
size_t fkl_pool_bytes(void);
/* Gives the blocks kept for reuse back to the system. */
void fkl_pool_trim(void);
/* Keeps so many bytes for reuse at most, whatever the pool's own limit is. */
void fkl_pool_set_limit(size_t nbytes);

void fkl_block_retain(uintptr_t block);
void fkl_block_release(uintptr_t block);
int64_t fkl_block_references(uintptr_t block);

/* ---- dlpack.c: the C structures of DLPack 1.x ---- */

typedef struct {
    int32_t device_type;
    int32_t device_id;
} DLDevice;

typedef struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

typedef struct {
    void* data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t* shape;
    int64_t* strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void* manager_ctx;
    void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

typedef struct {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void* manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned* self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

/* A managed tensor over a block, which it keeps alive; NULL when memory is short. */
void* fkl_export_tensor(uintptr_t block, uintptr_t address, DLDevice device, const int64_t* shape,
                        int32_t ndim, int code, int bits, int versioned, uint64_t flags);
/* What a consumer does when it is done: calls the tensor's deleter, if there is one. */
void fkl_delete_tensor(void* managed, int versioned);
#define FKL_MAX_NDIM 64

/* What a managed tensor says, in one array that Python unpacks at once. */
typedef struct {
    int64_t major, minor, flags; /* 1, 0, 0 for the legacy form */
    int64_t device_type, device_id;
    int64_t code, bits, lanes;
    int64_t ndim;           /* as stored; the extents are filled in for 0 to FKL_MAX_NDIM */
    int64_t address;        /* of element (0, 0, ...) */
    int64_t lowest, nbytes; /* the bytes that all elements span */
    int64_t extents[2 * FKL_MAX_NDIM]; /* shape, then strides in elements */
} fkl_description;

/* Describes a tensor of a major version that is known; of others only the version. */
void fkl_describe_tensor(const void* managed, int versioned, fkl_description* description);
/* A block that owns nothing yet; 0 when memory is short. */
uintptr_t fkl_import_block(void);
/* From here on the block owns the producer's tensor and deletes it with its last reference. */
void fkl_import_adopt(uintptr_t block, void* managed, int versioned);

/* ---- capsule.c: addresses for ctypes, whose calls keep the GIL ---- */

/* Makes a function that exports a block; inspects and claims a capsule. See capsule.c. */
uintptr_t fkl_export_function_address(void);
uintptr_t fkl_capsule_inspect_address(void);
uintptr_t fkl_capsule_claim_address(void);

/* ---- owner.c ---- */

/* Makes the base class of Buffer; for ctypes, too. */
uintptr_t fkl_owner_type_address(void);

/* ---- thread_pool.c: the CPU executor, handed to each entry as its stream ---- */

typedef struct fkl_executor {
    int32_t abi;     /* 1 */
    int32_t threads; /* how many may run at once, at least 1 */
    void (*run)(struct fkl_executor* self, void (*body)(void* context, int64_t task), void* context,
                int64_t tasks);
} fkl_executor;

fkl_executor* fkl_executor_instance(void);
void fkl_executor_set_threads(int32_t threads);
/* Workers that exist in this process; 0 until the first parallel run and after a fork. */
int32_t fkl_executor_workers(void);

/* ---- loader.c: one loaded library and its entry ---- */

typedef struct fkl_kernel fkl_kernel;

/* Loads path and finds its entry; NULL with a text in error when that fails. */
fkl_kernel* fkl_kernel_open(const char* path, const int64_t* offsets, int32_t count, size_t bytes,
                            char* error, size_t error_bytes);
/* Calls the entry with pointers into data; its return code. */
int fkl_kernel_launch(const fkl_kernel* kernel, const char* data, void* stream);
const char* fkl_kernel_message(const fkl_kernel* kernel);
void fkl_kernel_close(fkl_kernel* kernel);

/* ---- device.c: NVIDIA devices; functions with a result return the driver's code, 0 for none ----
 */

#define FKL_MAX_DEVICES 64
/* Not the driver's: CUDA was used before this process was forked. */
#define FKL_DEVICE_FORKED -1
/* Added to the driver's code where it refused what comes before an entry, which was not called. */
#define FKL_DEVICE_REFUSED 0x10000

typedef struct {
    char name[128];
    int major, minor;   /* of the compute capability */
    int driver;         /* 1000 * major + 10 * minor of the newest CUDA that it runs */
    uint64_t reserved;  /* bytes in the pool, in use and kept for reuse */
    size_t free, total; /* bytes of the device */
} fkl_device_description;

/* How many there are; 0 also without a driver, and then why. */
int32_t fkl_device_count(void);
const char* fkl_device_problem(void);
const char* fkl_device_message(int code);
int fkl_device_properties(int32_t device, fkl_device_description* found);

/* A block of device memory in the order of a stream; 0 and a code when refused. */
uintptr_t fkl_device_allocate(int32_t device, size_t nbytes, void* stream, int* code);
/* A block for memory of somebody else's, which owns nothing yet; 0 when memory is short. */
uintptr_t fkl_device_block(int32_t device, void* stream);
/* From here on it owns the producer's tensor, and deletes it when the device is done with it. */
void fkl_device_adopt(uintptr_t block, void* managed, int versioned);
uint64_t fkl_device_address(uintptr_t block);
/* What is done with the block on a stream from now on comes after what was done with it before. */
int fkl_device_use(uintptr_t block, void* stream);
/* Whether there are blocks that were used last on a stream, which must not be destroyed yet. */
int fkl_device_needs(void* stream);
/* Copies between any two places; `wait` until it is done. */
int fkl_device_copy(int32_t device, uint64_t to, uint64_t from, size_t nbytes, void* stream,
                    int wait);
/* Calls an entry that uses blocks on a stream; returns its code, or FKL_DEVICE_REFUSED and more. */
int fkl_device_launch(const fkl_kernel* kernel, const char* data, int32_t device, void* stream,
                      const uint64_t* blocks, int32_t count);
/* Gives the memory kept for reuse back to the device. */
int fkl_device_trim(int32_t device);

/* ---- capsule.c: what compiled callers in another extension use ---- */

typedef struct {
    int32_t abi; /* 2 */
    uintptr_t (*allocate)(size_t nbytes);
    uintptr_t (*device_allocate)(int32_t device, size_t nbytes, void* stream, int* code);
    uint64_t (*device_address)(uintptr_t block);
    int (*device_launch)(const fkl_kernel* kernel, const char* data, int32_t device, void* stream,
                         const uint64_t* blocks, int32_t count);
    int (*launch)(const fkl_kernel* kernel, const char* data, void* stream);
    void* (*export_tensor)(uintptr_t block, uintptr_t address, DLDevice device,
                           const int64_t* shape, int32_t ndim, int code, int bits, int versioned,
                           uint64_t flags);
    /* A new PyObject, or NULL with an exception; the GIL is held. */
    void* (*new_capsule)(void* managed, int versioned);
} fkl_functions;

const fkl_functions* fkl_functions_table(void);
