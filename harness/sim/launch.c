/*
 * Kernel launches: every error that CUDA reports at the call, and the copy of the arguments.
 *
 * Any thread, under cusim.lock. Launches and graph nodes both use cusim_kernel_make. An H100 with
 * driver 580 refuses both with INVALID_VALUE beyond each limit of block and shared memory.
 */
#include "harness/sim/cusim.h"
#include "harness/sim/cusim_next.h"

#include <stdlib.h>
#include <string.h>

static CUresult check_cluster(const unsigned grid[3], const unsigned cluster[3], bool nonportable) {
    uint64_t blocks = (uint64_t)cluster[0] * cluster[1] * cluster[2];
    if (blocks == 0 || blocks > (nonportable ? 16u : 8u))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    for (int i = 0; i < 3; i++)
        if (grid[i] % cluster[i] != 0)
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    return CUDA_SUCCESS;
}

static CUresult check_shape(const struct cusim_func *func, const struct cusim_launch *l) {
    const struct cusim_kernel *kernel = func->kernel;
    const unsigned *g = l->grid, *b = l->block, *cluster = kernel->cluster;
    bool cooperative = l->cooperative;
    if (g[0] == 0 || g[1] == 0 || g[2] == 0 || g[0] > 0x7fffffffu || g[1] > 65535 || g[2] > 65535)
        return CUDA_ERROR_INVALID_VALUE;
    if (b[0] == 0 || b[1] == 0 || b[2] == 0 || b[0] > 1024 || b[1] > 1024 || b[2] > 64 ||
        (uint64_t)b[0] * b[1] * b[2] > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    if (b[0] * b[1] * b[2] > cusim_kernel_max_threads(kernel))
        return CUDA_ERROR_INVALID_VALUE;
    if (kernel->block[0] && memcmp(b, kernel->block, sizeof kernel->block) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (l->smem > cusim_func_smem_limit(func))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < l->n_attrs; i++) {
        const CUlaunchAttribute *a = &l->attrs[i];
        if ((int)a->id < 0 || a->id >= CU_LAUNCH_ATTRIBUTE_MAX)
            return CUDA_ERROR_INVALID_VALUE;
        if (a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && a->value.cooperative)
            cooperative = true;
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            cluster = &a->value.clusterDim.x;
    }
    if (cluster[0] != 0 || cluster != kernel->cluster) {
        bool nonportable =
            func->cluster_nonportable > 0 || (func->kern && func->kern->cluster_nonportable > 0);
        CUresult result = check_cluster(g, cluster, nonportable);
        if (result != CUDA_SUCCESS)
            return result;
    }
    if (cooperative) {
        int per_sm = cusim_blocks_per_sm(kernel, (int)(b[0] * b[1] * b[2]), l->smem);
        if ((uint64_t)g[0] * g[1] * g[2] > (uint64_t)per_sm * 132)
            return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
    return CUDA_SUCCESS;
}

/* Finds the buffer of the `extra` form, or returns why there is none. */
static CUresult parse_extra(void **extra, const void **buffer, size_t *bytes) {
    *buffer = NULL;
    *bytes = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            *buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            *bytes = extra[1] ? *(size_t *)extra[1] : 0;
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult copy_arguments(struct cusim_work_kernel *k, const struct cusim_launch *l) {
    void **params = l->params, **extra = l->extra;
    const struct cusim_kernel *kernel = k->kernel;
    const void *buffer = NULL;
    size_t buffer_bytes = 0;
    if (params && extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (!params && !extra && kernel->n_params > 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (extra) {
        CUresult result = parse_extra(extra, &buffer, &buffer_bytes);
        if (result != CUDA_SUCCESS)
            return result;
    }
    k->blob_bytes = cusim_kernel_blob_bytes(kernel);
    if (extra && kernel->n_params > 0 && !buffer)
        return CUDA_ERROR_INVALID_VALUE;
    /* As seen on an H200: a size that includes the padding after the last argument is refused.
     * The codes of a launch and of a captured launch differ. */
    if (extra && buffer_bytes > k->blob_bytes)
        return l->at_once ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_ERROR_INVALID_VALUE;
    size_t pointers = (kernel->n_params + 1) * sizeof(void *);
    pointers = (pointers + 63) / 64 * 64;
    k->argv = aligned_alloc(64, (pointers + k->blob_bytes + 63) / 64 * 64);
    memset(k->argv, 0, pointers + k->blob_bytes);
    k->blob = (unsigned char *)k->argv + pointers;
    for (unsigned i = 0; i < kernel->n_params; i++) {
        k->argv[i] = k->blob + kernel->offset[i];
        if (buffer)
            continue;
        if (!params[i])
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(k->argv[i], params[i], kernel->size[i]);
    }
    if (buffer) /* a short buffer is accepted: missing bytes are zero here, anything on a GPU */
        memcpy(k->blob, buffer, buffer_bytes);
    return CUDA_SUCCESS;
}

CUresult cusim_kernel_make(const struct cusim_launch *l, struct cusim_ctx *ctx,
                           struct cusim_work **out) {
    struct cusim_func *func;
    CUresult result = cusim_func_get(l->func, ctx, &func);
    if (result != CUDA_SUCCESS)
        return result;
    if (func->ctx != ctx || func->ctx_id != ctx->id)
        return CUDA_ERROR_INVALID_HANDLE;
    result = check_shape(func, l);
    if (result != CUDA_SUCCESS)
        return result;
    struct cusim_work *work = cusim_work_new(CUSIM_WORK_KERNEL, ctx);
    struct cusim_work_kernel *k = &work->kernel;
    k->func = l->func;
    k->resolved = func;
    k->kernel = func->kernel;
    memcpy(k->grid, l->grid, sizeof k->grid);
    memcpy(k->block, l->block, sizeof k->block);
    k->smem = l->smem;
    k->cooperative = l->cooperative;
    if (l->n_attrs > 0) {
        k->n_attrs = l->n_attrs;
        k->attrs = malloc(l->n_attrs * sizeof *k->attrs);
        memcpy(k->attrs, l->attrs, l->n_attrs * sizeof *k->attrs);
        for (unsigned i = 0; i < l->n_attrs; i++)
            if (l->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
                k->cooperative = l->attrs[i].value.cooperative != 0;
    }
    result = copy_arguments(k, l);
    if (result != CUDA_SUCCESS) {
        cusim_work_unref(work);
        return result;
    }
    func->loaded = true;
    *out = work;
    return CUDA_SUCCESS;
}

static CUresult launch(bool ptsz, CUstream handle, struct cusim_launch *l) {
    struct cusim_stream *s;
    struct cusim_work *work;
    CUresult result = cusim_stream_get_for_work(handle, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    for (unsigned i = 0; i < l->n_attrs; i++)
        if (l->attrs[i].id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE && !s->capture &&
            l->attrs[i].value.deviceUpdatableKernelNode.deviceUpdatable)
            return CUDA_ERROR_NOT_SUPPORTED;
    l->at_once = !s->capture;
    result = cusim_kernel_make(l, s->ctx, &work);
    if (result == CUDA_SUCCESS)
        result = cusim_submit(s, work);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < l->n_attrs; i++) {
        CUevent event = NULL; /* fires at the latest when the kernel ends */
        enum cusim_fires fires = CUSIM_FIRES_AT_TRIGGER;
        if (l->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) {
            event = l->attrs[i].value.programmaticEvent.event;
        } else if (l->attrs[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
            event = l->attrs[i].value.launchCompletionEvent.event;
            fires = CUSIM_FIRES_AT_START;
        }
        if (event)
            result = cusim_event_record(event, s, fires);
    }
    return result;
}

CUSIM_TWIN_LOCKED(cuLaunchKernel, _ptsz,
                  (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned smem, CUstream stream, void **params, void **extra),
                  (f, gx, gy, gz, bx, by, bz, smem, stream, params, extra)) {
    struct cusim_launch l = {.func = f,
                             .grid = {gx, gy, gz},
                             .block = {bx, by, bz},
                             .smem = smem,
                             .params = params,
                             .extra = extra};
    return launch(ptsz, stream, &l);
}

CUSIM_TWIN_LOCKED(cuLaunchCooperativeKernel, _ptsz,
                  (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned smem, CUstream stream, void **params),
                  (f, gx, gy, gz, bx, by, bz, smem, stream, params)) {
    struct cusim_launch l = {.func = f,
                             .grid = {gx, gy, gz},
                             .block = {bx, by, bz},
                             .smem = smem,
                             .cooperative = true,
                             .params = params};
    return launch(ptsz, stream, &l);
}

CUSIM_TWIN_LOCKED(cuLaunchKernelEx, _ptsz,
                  (const CUlaunchConfig *config, CUfunction f, void **params, void **extra),
                  (config, f, params, extra)) {
    if (!config || (config->numAttrs > 0 && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    struct cusim_launch l = {.func = f,
                             .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                             .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                             .smem = config->sharedMemBytes,
                             .attrs = config->attrs,
                             .n_attrs = config->numAttrs,
                             .params = params,
                             .extra = extra};
    return launch(ptsz, config->hStream, &l);
}

__attribute__((visibility("default"))) CUresult cuLaunchKernel_v2(const struct cusim_next_launch *);
CUSIM_LOCKED(cuLaunchKernel_v2, (const struct cusim_next_launch *next), (next)) {
    struct cusim_launch l = {.func = next->function,
                             .grid = {next->grid, 1, 1},
                             .block = {next->block, 1, 1},
                             .params = next->params};
    return launch(false, next->stream, &l);
}
