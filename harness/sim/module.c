/*
 * Modules and libraries: every image holds every kernel that was compiled for the CPU.
 *
 * Any thread, under cusim.lock. CUfunction (of a context) and CUkernel (of a library) are different
 * objects with different handles. An unloaded object leaves the table of handles, but its memory is
 * never freed, because nodes and work in flight may still refer to it.
 */
#include "harness/sim/cusim.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cusim_kernel *registered; /* kernels of cuSimKernelRegister */
static struct cusim_kernel **kernel_list;
int (*cusim_take_trap)(void);

/* The library is in the same folder; without it only registered kernels exist. */
static struct cusim_kernel **library_head(void) {
    static bool tried;
    if (!tried) {
        tried = true;
        char path[PATH_MAX] = "";
        const char *given = getenv("CUSIM_KERNELS");
        Dl_info self;
        if (given && *given) {
            snprintf(path, sizeof path, "%s", given);
        } else if (dladdr((void *)&cusim, &self) && self.dli_fname) {
            const char *slash = strrchr(self.dli_fname, '/');
            int length = slash ? (int)(slash - self.dli_fname + 1) : 0;
            snprintf(path, sizeof path, "%.*slibcusim_kernels.so", length, self.dli_fname);
        }
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library) {
            kernel_list = (struct cusim_kernel **)dlsym(library, "cusim_kernel_head");
            cusim_take_trap = (int (*)(void))dlsym(library, "cusim_kernel_take_trap");
            const struct cusim_calls **calls = dlsym(library, "cusim_kernel_calls");
            if (calls && cusim_get_options()->weak)
                *calls = &cusim_calls_weak;
        } else if (given) {
            fprintf(stderr, "cusim: %s\n", dlerror());
        }
    }
    return kernel_list;
}

const struct cusim_kernel *cusim_kernel_at(unsigned index) {
    struct cusim_kernel **head = library_head();
    for (const struct cusim_kernel *k = registered; k; k = k->next)
        if (index-- == 0)
            return k;
    for (const struct cusim_kernel *k = head ? *head : NULL; k; k = k->next)
        if (index-- == 0)
            return k;
    return NULL;
}

unsigned cusim_kernel_total(void) {
    unsigned n = 0;
    while (cusim_kernel_at(n))
        n++;
    return n;
}

const struct cusim_kernel *cusim_kernel_find(const char *name) {
    const struct cusim_kernel *k;
    for (unsigned i = 0; (k = cusim_kernel_at(i)); i++)
        if (strcmp(k->name, name) == 0)
            return k;
    return NULL;
}

__attribute__((visibility("default"))) CUresult cuSimKernelRegister(struct cusim_kernel *kernel);
CUresult cuSimKernelRegister(struct cusim_kernel *kernel) {
    CUSIM_ENTER_EARLY(cuSimKernelRegister);
    cusim_lock();
    kernel->next = registered;
    registered = kernel;
    cusim_unlock();
    return CUDA_SUCCESS;
}

/* ---- modules ---- */

static struct cusim_module *module_new(struct cusim_ctx *ctx, struct cusim_library *library) {
    struct cusim_module *module = calloc(1, sizeof *module);
    module->ctx = ctx;
    module->library = library;
    module->next = ctx->modules;
    ctx->modules = module;
    cusim_handle_add(module, CUSIM_MODULE);
    return module;
}

static CUresult module_load(CUmodule *out, const void *image) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result == CUDA_SUCCESS && (!out || !image))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *out = (CUmodule)module_new(ctx, NULL);
    return result;
}

static CUresult file_there(const char *path) {
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (!file)
        return path ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
    fclose(file);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuModuleLoad, (CUmodule * out, const char *path), (out, path)) {
    CUresult result = file_there(path);
    return result == CUDA_SUCCESS ? module_load(out, path) : result;
}

CUSIM_LOCKED(cuModuleLoadData, (CUmodule * out, const void *image), (out, image)) {
    return module_load(out, image);
}

CUSIM_LOCKED(cuModuleLoadDataEx,
             (CUmodule * out, const void *image, unsigned n, CUjit_option *options, void **values),
             (out, image, n, options, values)) {
    (void)n, (void)options, (void)values;
    return module_load(out, image);
}

CUSIM_LOCKED(cuModuleLoadFatBinary, (CUmodule * out, const void *image), (out, image)) {
    return module_load(out, image);
}

static struct cusim_func *func_new(struct cusim_module *module, const struct cusim_kernel *kernel,
                                   struct cusim_kern *kern) {
    struct cusim_func *func = calloc(1, sizeof *func);
    func->ctx = module->ctx;
    func->ctx_id = module->ctx->id;
    func->module = module;
    func->kern = kern;
    func->kernel = kernel;
    func->max_dynamic_smem = func->carveout = func->cluster_nonportable = -1;
    func->next = module->funcs;
    module->funcs = func;
    cusim_handle_add(func, CUSIM_FUNC);
    return func;
}

static struct cusim_func *module_func(struct cusim_module *module,
                                      const struct cusim_kernel *kernel, struct cusim_kern *kern) {
    for (struct cusim_func *f = module->funcs; f; f = f->next)
        if (f->kernel == kernel)
            return f;
    return func_new(module, kernel, kern);
}

CUSIM_LOCKED(cuModuleGetFunction, (CUfunction * out, CUmodule handle, const char *name),
             (out, handle, name)) {
    if (!cusim_handle_is(handle, CUSIM_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    const struct cusim_kernel *kernel = cusim_kernel_find(name);
    if (!kernel)
        return CUDA_ERROR_NOT_FOUND;
    *out = (CUfunction)module_func((struct cusim_module *)handle, kernel, NULL);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuModuleGetFunctionCount, (unsigned *count, CUmodule handle), (count, handle)) {
    if (!cusim_handle_is(handle, CUSIM_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    *count = cusim_kernel_total();
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuModuleEnumerateFunctions, (CUfunction * functions, unsigned n, CUmodule handle),
             (functions, n, handle)) {
    if (!cusim_handle_is(handle, CUSIM_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    const struct cusim_kernel *kernel;
    for (unsigned i = 0; i < n && (kernel = cusim_kernel_at(i)); i++)
        functions[i] = (CUfunction)module_func((struct cusim_module *)handle, kernel, NULL);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuModuleGetGlobal_v2,
             (CUdeviceptr * address, size_t *bytes, CUmodule handle, const char *name),
             (address, bytes, handle, name)) {
    (void)address, (void)bytes, (void)name;
    return cusim_handle_is(handle, CUSIM_MODULE) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
    CUSIM_ENTER(cuModuleGetLoadingMode);
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

static struct cusim_func *dead_funcs; /* kept so that leak checkers find them */

static void module_end(struct cusim_module *module) {
    struct cusim_func *last = NULL;
    cusim_handle_remove(module);
    for (struct cusim_module **at = &module->ctx->modules; *at; at = &(*at)->next)
        if (*at == module) {
            *at = module->next;
            break;
        }
    for (struct cusim_func *f = module->funcs; f; f = f->next) {
        cusim_handle_remove(f);
        last = f;
    }
    if (last) {
        last->next = dead_funcs;
        dead_funcs = module->funcs;
    }
    free(module);
}

void cusim_ctx_modules_free(struct cusim_ctx *ctx) {
    while (ctx->modules)
        module_end(ctx->modules);
}

CUSIM_LOCKED(cuModuleUnload, (CUmodule handle), (handle)) {
    if (!cusim_handle_is(handle, CUSIM_MODULE) || ((struct cusim_module *)handle)->library)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = cusim_capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    cusim_ctx_wait(((struct cusim_module *)handle)->ctx);
    if (!cusim_handle_is(handle, CUSIM_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    module_end((struct cusim_module *)handle);
    return CUDA_SUCCESS;
}

/* ---- libraries ---- */

static CUresult library_load(CUlibrary *out, const void *code) {
    if (!out || !code)
        return CUDA_ERROR_INVALID_VALUE;
    struct cusim_library *library = calloc(1, sizeof *library);
    cusim_handle_add(library, CUSIM_LIBRARY);
    *out = (CUlibrary)library;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuLibraryLoadData,
             (CUlibrary * out, const void *code, CUjit_option *jit, void **jit_values,
              unsigned n_jit, CUlibraryOption *options, void **values, unsigned n),
             (out, code, jit, jit_values, n_jit, options, values, n)) {
    (void)jit, (void)jit_values, (void)n_jit, (void)options, (void)values, (void)n;
    return library_load(out, code);
}

CUSIM_LOCKED(cuLibraryLoadFromFile,
             (CUlibrary * out, const char *path, CUjit_option *jit, void **jit_values,
              unsigned n_jit, CUlibraryOption *options, void **values, unsigned n),
             (out, path, jit, jit_values, n_jit, options, values, n)) {
    (void)jit, (void)jit_values, (void)n_jit, (void)options, (void)values, (void)n;
    CUresult result = file_there(path);
    return result == CUDA_SUCCESS ? library_load(out, path) : result;
}

static struct cusim_kern *library_kern(struct cusim_library *library,
                                       const struct cusim_kernel *kernel) {
    for (struct cusim_kern *k = library->kerns; k; k = k->next)
        if (k->kernel == kernel)
            return k;
    struct cusim_kern *kern = calloc(1, sizeof *kern);
    kern->library = library;
    kern->kernel = kernel;
    kern->carveout = kern->cluster_nonportable = -1;
    for (int i = 0; i < CUSIM_DEVICES_MAX; i++)
        kern->max_dynamic_smem[i] = -1;
    kern->next = library->kerns;
    library->kerns = kern;
    cusim_handle_add(kern, CUSIM_KERNEL);
    return kern;
}

CUSIM_LOCKED(cuLibraryGetKernel, (CUkernel * out, CUlibrary handle, const char *name),
             (out, handle, name)) {
    if (!cusim_handle_is(handle, CUSIM_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    const struct cusim_kernel *kernel = cusim_kernel_find(name);
    if (!kernel)
        return CUDA_ERROR_NOT_FOUND;
    *out = (CUkernel)library_kern((struct cusim_library *)handle, kernel);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuLibraryGetKernelCount, (unsigned *count, CUlibrary handle), (count, handle)) {
    if (!cusim_handle_is(handle, CUSIM_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    *count = cusim_kernel_total();
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuLibraryEnumerateKernels, (CUkernel * kernels, unsigned n, CUlibrary handle),
             (kernels, n, handle)) {
    if (!cusim_handle_is(handle, CUSIM_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    const struct cusim_kernel *kernel;
    for (unsigned i = 0; i < n && (kernel = cusim_kernel_at(i)); i++)
        kernels[i] = (CUkernel)library_kern((struct cusim_library *)handle, kernel);
    return CUDA_SUCCESS;
}

static struct cusim_module *library_module(struct cusim_library *library, struct cusim_ctx *ctx) {
    for (struct cusim_module *m = ctx->modules; m; m = m->next)
        if (m->library == library)
            return m;
    return module_new(ctx, library);
}

CUSIM_LOCKED(cuLibraryGetModule, (CUmodule * out, CUlibrary handle), (out, handle)) {
    struct cusim_ctx *ctx;
    if (!cusim_handle_is(handle, CUSIM_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = cusim_ctx_current(&ctx);
    if (result == CUDA_SUCCESS)
        *out = (CUmodule)library_module((struct cusim_library *)handle, ctx);
    return result;
}

static CUresult nothing_named(CUlibrary handle) {
    return cusim_handle_is(handle, CUSIM_LIBRARY) ? CUDA_ERROR_NOT_FOUND
                                                  : CUDA_ERROR_INVALID_HANDLE;
}

CUSIM_LOCKED(cuLibraryGetGlobal,
             (CUdeviceptr * address, size_t *bytes, CUlibrary handle, const char *name),
             (address, bytes, handle, name)) {
    (void)address, (void)bytes, (void)name;
    return nothing_named(handle);
}

CUSIM_LOCKED(cuLibraryGetManaged,
             (CUdeviceptr * address, size_t *bytes, CUlibrary handle, const char *name),
             (address, bytes, handle, name)) {
    (void)address, (void)bytes, (void)name;
    return nothing_named(handle);
}

CUSIM_LOCKED(cuLibraryUnload, (CUlibrary handle), (handle)) {
    static struct cusim_library *dead;
    if (!cusim_handle_is(handle, CUSIM_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = cusim_capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    struct cusim_library *library = (struct cusim_library *)handle;
    cusim_handle_remove(library);
    cusim_all_wait();
    for (struct cusim_ctx *ctx = cusim.contexts; ctx; ctx = ctx->next)
        for (struct cusim_module *m = ctx->modules, *next; m; m = next) {
            next = m->next;
            if (m->library == library)
                module_end(m);
        }
    for (struct cusim_kern *k = library->kerns; k; k = k->next)
        cusim_handle_remove(k);
    library->next = dead;
    dead = library;
    return CUDA_SUCCESS;
}

/* ---- from one kind of handle to the other ---- */

CUresult cusim_func_get(CUfunction handle, struct cusim_ctx *ctx, struct cusim_func **out) {
    if (cusim_handle_is(handle, CUSIM_FUNC)) {
        *out = (struct cusim_func *)handle;
        return CUDA_SUCCESS;
    }
    if (!cusim_handle_is(handle, CUSIM_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    struct cusim_kern *kern = (struct cusim_kern *)handle;
    *out = module_func(library_module(kern->library, ctx), kern->kernel, kern);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuKernelGetFunction, (CUfunction * out, CUkernel handle), (out, handle)) {
    struct cusim_ctx *ctx;
    if (!cusim_handle_is(handle, CUSIM_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    struct cusim_func *func;
    CUresult result = cusim_ctx_current(&ctx);
    if (result != CUDA_SUCCESS)
        return result;
    result = cusim_func_get((CUfunction)handle, ctx, &func);
    if (result != CUDA_SUCCESS)
        return result;
    *out = (CUfunction)func;
    if (!func->given && cusim.options.measured_locks) {
        func->given = true;
        cusim_gate_hold(ctx);
        cusim_gate_lock(ctx);
    }
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuKernelGetLibrary, (CUlibrary * out, CUkernel handle), (out, handle)) {
    if (!cusim_handle_is(handle, CUSIM_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (CUlibrary)((struct cusim_kern *)handle)->library;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuFuncGetModule, (CUmodule * out, CUfunction handle), (out, handle)) {
    if (!cusim_handle_is(handle, CUSIM_FUNC))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (CUmodule)((struct cusim_func *)handle)->module;
    return CUDA_SUCCESS;
}
