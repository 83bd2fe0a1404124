/*
 * Modules and their functions. Every image that the program loads is remembered. An image goes into
 * the trace when one of its functions is first launched, since a program launches little of most
 * libraries. If an image is not part of a mapped file, the program may free it after the load, so
 * it is copied.
 */
#define __CUDA_API_VERSION_INTERNAL
#include "shim/keep/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "shim/base/file.h"
#include "shim/base/uthash.h"
#include "shim/keep/image.h"
#include "shim/trace/file.h"

#include "shim/base/forbid.h"

enum {
    SMALL = 1 << 20, /* an image of a mapped file that is no longer than this is copied too */
    ARGUMENTS = 4096,
    SETTINGS = 4,
};

struct module {
    const void *handle; /* CUmodule or CUlibrary; NULL: unloaded */
    bool library;
    uint32_t id; /* 0: not in the trace yet */
    struct cus_keep_image image;
    uint8_t *copy; /* of the image, if the image may go */
    struct module *next;
};

struct function {
    const void *handle;        /* as the program launches it */
    const void *kernel_handle; /* the kernel from which the function was made; or the function
                                * itself */
    uint32_t epoch;            /* when its settings were asked for */
    uint32_t module;           /* id */
    bool kernel;
    char *name;
    struct cst_setting settings[SETTINGS];
    struct cus_keep_code code;
    UT_hash_handle hh;
};

/* A CUfunction that was made from a CUkernel. */
struct made {
    const void *handle, *kernel;
    UT_hash_handle hh;
};

static struct module *modules;      /* guarded by lock; entries stay */
static struct function *functions;  /* guarded by lock. Entries leave the table when code is
                                     * unloaded, but stay in memory: others may use them */
static struct made *made_of;        /* guarded by lock */
static uint32_t n_modules, n_codes; /* guarded by lock */
static uint32_t epoch = 1;          /* atomic: moves when the program changes a setting of a
                                     * function */

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)

/* ---- modules ---- */

static void loaded(const void *handle, bool library, const void *given) {
    struct module *module = cus_mem_alloc(sizeof *module);
    if (!module || !cus_keep_image_find(given, &module->image)) {
        cus_mem_free(module);
        cus_keep_cannot("cuModuleLoad", "code was loaded of which the form is not known");
        return;
    }
    module->handle = handle;
    module->library = library;
    if (!*module->image.path || module->image.bytes <= SMALL) {
        if ((module->copy = cus_mem_alloc(module->image.bytes)))
            memcpy(module->copy, module->image.at, module->image.bytes);
        else
            cus_keep_cannot("cuModuleLoad", "no memory to keep code in");
        *module->image.path = 0;
        module->image.at = module->copy;
    }
    cus_lock_take(&cus_keep_lock);
    module->next = modules;
    modules = module;
    cus_lock_give(&cus_keep_lock);
}

/* Reads a file and appends a NUL, in memory of `room` bytes. The file is not mapped: if somebody
 * cut it short, a load would end the process. */
static void *read_file(const char *path, size_t *room) {
    struct stat is;
    int fd = cus_file_open(path, O_RDONLY, 0);
    void *bytes = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &is) == 0 && S_ISREG(is.st_mode) && is.st_size > 0) {
        *room = (size_t)is.st_size + 1;
        bytes = mmap(NULL, *room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    for (size_t done = 0; bytes != MAP_FAILED && done + 1 < *room;) {
        ssize_t n = pread(fd, (char *)bytes + done, *room - 1 - done, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            munmap(bytes, *room);
            bytes = MAP_FAILED;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        close(fd);
    return bytes == MAP_FAILED ? NULL : bytes;
}

/* The file may go: Triton and others load what they have just written. */
static void loaded_file(const void *handle, bool library, const char *path) {
    size_t room;
    void *bytes = read_file(path, &room);
    if (!bytes) {
        cus_keep_cannot("cuModuleLoad", "a file of code could not be read");
        return;
    }
    loaded(handle, library, bytes);
    munmap(bytes, room);
}

/* Forgets what is known of functions, since the driver may give their handles out again. */
static void unloaded(const void *handle) {
    struct function *function, *next;
    struct made *made, *next_made;
    cus_lock_take(&cus_keep_lock);
    for (struct module *module = modules; module; module = module->next)
        if (module->handle == handle)
            module->handle = NULL;
    HASH_ITER(hh, functions, function, next) {
        HASH_DEL(functions, function);
    }
    HASH_ITER(hh, made_of, made, next_made) {
        HASH_DEL(made_of, made);
        cus_mem_free(made);
    }
    cus_lock_give(&cus_keep_lock);
}

static void tell_module(struct module *module, uint32_t id) {
    const struct cus_keep_image *image = &module->image;
    struct cst_module record = {
        .head = {.type = CST_MODULE, .words = sizeof record / 8},
        .id = id,
        .form = *image->path ? CST_MODULE_FILE : CST_MODULE_IMAGE,
        .library = module->library,
        .file = cus_record_string(image->path),
        .build_id = cus_record_string(image->build_id),
        .offset = *image->path ? image->offset : 0,
        .bytes = image->bytes,
        .check = cst_checksum(image->at, image->bytes),
    };
    cus_record_define(&record.head);
    if (!*image->path)
        cus_record_data(CST_DATA_IMAGE, id, 0, image->at, image->bytes);
}

/* The id of a module or library, by its handle; 0: unknown. */
static uint32_t module_id(const void *handle) {
    uint32_t id = 0;
    bool fresh = false;
    cus_lock_take(&cus_keep_lock);
    struct module *module = modules;
    while (module && module->handle != handle)
        module = module->next;
    if (module && module->image.at) {
        if ((fresh = !module->id))
            module->id = ++n_modules;
        id = module->id;
    }
    cus_lock_give(&cus_keep_lock);
    if (fresh)
        tell_module(module, id);
    return id;
}

/* ---- functions ---- */

/* The kernel from which a function was made; or the function itself. */
static const void *kernel_of(const void *handle) {
    struct made *made;
    cus_lock_take(&cus_keep_lock);
    HASH_FIND_PTR(made_of, &handle, made);
    const void *kernel = made ? made->kernel : handle;
    cus_lock_give(&cus_keep_lock);
    return kernel;
}

static bool param_info(const struct function *f, size_t i, size_t *offset, size_t *bytes) {
    const struct cus_keep_real *real = &cus_keep_real;
    return (f->kernel ? real->cuKernelGetParamInfo((CUkernel)(uintptr_t)f->kernel_handle, i, offset,
                                                   bytes)
                      : real->cuFuncGetParamInfo((CUfunction)(uintptr_t)f->handle, i, offset,
                                                 bytes)) == CUDA_SUCCESS;
}

static bool ask_layout(struct function *f) {
    size_t offset, bytes;
    while (f->code.n < ARGUMENTS && param_info(f, f->code.n, &offset, &bytes))
        f->code.n++;
    struct cst_argument *arguments = cus_mem_alloc((f->code.n + 1) * sizeof *arguments);
    for (uint32_t i = 0; arguments && i < f->code.n; i++) {
        param_info(f, i, &offset, &bytes);
        arguments[i] = (struct cst_argument){(uint32_t)offset, (uint32_t)bytes};
        if (offset + bytes > f->code.param_bytes)
            f->code.param_bytes = (uint32_t)(offset + bytes);
    }
    f->code.arguments = arguments;
    return arguments != NULL;
}

static void ask_settings(const struct function *f, struct cst_setting settings[SETTINGS]) {
    static const CUfunction_attribute asked[SETTINGS] = {
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
        CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    };
    const struct cus_keep_real *real = &cus_keep_real;
    CUdevice device = 0;
    real->cuCtxGetDevice(&device);
    for (unsigned i = 0; i < SETTINGS; i++) {
        int value = 0;
        CUresult result =
            f->kernel && f->handle == f->kernel_handle
                ? real->cuKernelGetAttribute(&value, asked[i], (CUkernel)(uintptr_t)f->handle,
                                             device)
                : real->cuFuncGetAttribute(&value, asked[i], (CUfunction)(uintptr_t)f->handle);
        /* -1: the driver has no value, so there is nothing to set. */
        settings[i] = (struct cst_setting){asked[i], result == CUDA_SUCCESS ? value : -1};
    }
}

static void tell_code(struct function *f) {
    size_t bytes = sizeof(struct cst_code) + f->code.n * sizeof(struct cst_argument) +
                   SETTINGS * sizeof(struct cst_setting);
    struct cst_code *record = cus_mem_alloc(bytes);
    if (!record) {
        cus_record_give_up("no memory");
        return;
    }
    record->head.type = CST_CODE;
    record->head.words = (uint16_t)(bytes / 8);
    record->id = f->code.id;
    record->module = f->module;
    record->name = cus_record_string(f->name);
    record->kernel = f->kernel;
    record->n_arguments = f->code.n;
    record->param_bytes = f->code.param_bytes;
    struct cst_argument *argument = (struct cst_argument *)(void *)(record + 1);
    memcpy(argument, f->code.arguments, f->code.n * sizeof *argument);
    struct cst_setting *setting = (struct cst_setting *)(void *)(argument + f->code.n);
    for (unsigned i = 0; i < SETTINGS; i++)
        if (f->settings[i].value >= 0)
            setting[record->n_attributes++] = f->settings[i];
    record->head.words =
        (uint16_t)((bytes - (SETTINGS - record->n_attributes) * sizeof *setting) / 8);
    cus_record_define(&record->head);
    cus_mem_free(record);
}

/* Asks the driver about a function. No lock held. */
static struct function *meet(const void *handle) {
    const struct cus_keep_real *real = &cus_keep_real;
    struct function *f = cus_mem_alloc(sizeof *f);
    const char *name = NULL;
    CUlibrary library = NULL;
    CUmodule module = NULL;
    if (!f)
        return NULL;
    f->handle = handle;
    handle = f->kernel_handle = kernel_of(handle);
    f->epoch = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE);
    f->kernel = real->cuKernelGetLibrary(&library, (CUkernel)(uintptr_t)handle) == CUDA_SUCCESS;
    bool known =
        f->kernel ? real->cuKernelGetName(&name, (CUkernel)(uintptr_t)handle) == CUDA_SUCCESS
                  : real->cuFuncGetModule(&module, (CUfunction)(uintptr_t)handle) == CUDA_SUCCESS &&
                        real->cuFuncGetName(&name, (CUfunction)(uintptr_t)handle) == CUDA_SUCCESS;
    if (!known || !(f->name = cus_mem_text(name)) || !ask_layout(f)) {
        cus_mem_free(f->name);
        cus_mem_free(f);
        return NULL;
    }
    f->module = module_id(f->kernel ? (const void *)library : (const void *)module);
    return f;
}

bool cus_keep_code_of(const void *handle, struct cus_keep_code *code) {
    struct function *f, *before;
    bool added = true;
    uint32_t now = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE);
    cus_lock_take(&cus_keep_lock);
    HASH_FIND_PTR(functions, &handle, f);
    bool fresh = f && f->epoch == now;
    cus_lock_give(&cus_keep_lock);
    if (fresh) {
        *code = f->code;
        return true;
    }
    struct cst_setting settings[SETTINGS];
    if (!f && !(f = meet(handle)))
        return false;
    ask_settings(f, settings);
    cus_lock_take(&cus_keep_lock);
    HASH_FIND_PTR(functions, &handle, before);
    if (!before)
        HASH_ADD_PTR(functions, handle, f);
    else
        f = before; /* another thread was faster; its entry is as good */
    f->epoch = now;
    fresh = !f->code.id || memcmp(settings, f->settings, sizeof settings) != 0;
    if (fresh) {
        memcpy(f->settings, settings, sizeof settings);
        f->code.id = ++n_codes;
    }
    *code = f->code;
    cus_lock_give(&cus_keep_lock);
    if (fresh && added)
        tell_code(f);
    return added;
}

/* ---- replacements of the driver's functions ---- */

#define LOADED(library_, symbol, parameters, arguments, handle, given)                             \
    CUresult cus_keep_##symbol parameters {                                                        \
        CUresult result = cus_keep_real.symbol arguments;                                          \
        if (result == CUDA_SUCCESS && cus_keeping())                                               \
            given(*handle, library_, source);                                                      \
        return result;                                                                             \
    }
LOADED(false, cuModuleLoad, (CUmodule * module, const char *source), (module, source), module,
       loaded_file)
LOADED(false, cuModuleLoadData, (CUmodule * module, const void *source), (module, source), module,
       loaded)
LOADED(false, cuModuleLoadDataEx,
       (CUmodule * module, const void *source, unsigned n, CUjit_option *options, void **values),
       (module, source, n, options, values), module, loaded)
LOADED(false, cuModuleLoadFatBinary, (CUmodule * module, const void *source), (module, source),
       module, loaded)
LOADED(true, cuLibraryLoadData,
       (CUlibrary * library, const void *source, CUjit_option *jit, void **jit_values,
        unsigned n_jit, CUlibraryOption *options, void **values, unsigned n),
       (library, source, jit, jit_values, n_jit, options, values, n), library, loaded)
LOADED(true, cuLibraryLoadFromFile,
       (CUlibrary * library, const char *source, CUjit_option *jit, void **jit_values,
        unsigned n_jit, CUlibraryOption *options, void **values, unsigned n),
       (library, source, jit, jit_values, n_jit, options, values, n), library, loaded_file)

CUresult cus_keep_cuModuleUnload(CUmodule module) {
    CUresult result = cus_keep_real.cuModuleUnload(module);
    if (result == CUDA_SUCCESS)
        unloaded(module);
    return result;
}

CUresult cus_keep_cuLibraryUnload(CUlibrary library) {
    CUresult result = cus_keep_real.cuLibraryUnload(library);
    if (result == CUDA_SUCCESS)
        unloaded(library);
    return result;
}

static CUresult global(CUresult result, const CUdeviceptr *address, const size_t *bytes,
                       const void *handle, const char *name) {
    size_t size = bytes ? *bytes : 0;
    uint32_t module =
        result == CUDA_SUCCESS && address && size && cus_keeping() ? module_id(handle) : 0;
    if (module)
        cus_keep_span(CST_SPAN_GLOBAL, *address, size, module, name);
    return result;
}

/* Asks for the size even if the program does not. */
CUresult cus_keep_cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module,
                                       const char *name) {
    size_t size = 0;
    size_t *where = bytes ? bytes : &size;
    return global(cus_keep_real.cuModuleGetGlobal_v2(address, where, module, name), address, where,
                  module, name);
}

CUresult cus_keep_cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                                     const char *name) {
    size_t size = 0;
    size_t *where = bytes ? bytes : &size;
    return global(cus_keep_real.cuLibraryGetGlobal(address, where, library, name), address, where,
                  library, name);
}

CUresult cus_keep_cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
    struct made *made = NULL;
    bool added = true;
    CUresult result = cus_keep_real.cuKernelGetFunction(function, kernel);
    if (result != CUDA_SUCCESS || !cus_keeping())
        return result;
    const void *handle = *function;
    cus_lock_take(&cus_keep_lock);
    HASH_FIND_PTR(made_of, &handle, made);
    if (!made && (made = cus_mem_alloc(sizeof *made))) {
        made->handle = handle;
        HASH_ADD_PTR(made_of, handle, made);
        if (!added) {
            cus_mem_free(made);
            made = NULL;
        }
    }
    if (made)
        made->kernel = kernel;
    cus_lock_give(&cus_keep_lock);
    return result;
}

CUresult cus_keep_cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                     int value) {
    CUresult result = cus_keep_real.cuFuncSetAttribute(function, attribute, value);
    __atomic_add_fetch(&epoch, 1, __ATOMIC_ACQ_REL);
    return result;
}

CUresult cus_keep_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                       CUdevice device) {
    CUresult result = cus_keep_real.cuKernelSetAttribute(attribute, value, kernel, device);
    __atomic_add_fetch(&epoch, 1, __ATOMIC_ACQ_REL);
    return result;
}
