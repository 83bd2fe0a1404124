/*
 * Building, patching and launching executable graphs.
 *
 * Runs on the thread that completes a piece, under the lock of the engine that owns the piece.
 * Building happens on a private stream under RELAXED capture mode, so that it neither disturbs nor
 * is disturbed by captures of the program (HAZARDS D2). Never called while the program captures in
 * this context.
 */
#include "shim/graph/exec.h"

#include <string.h>

#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/graph/issue.h"
#include "shim/graph/relax.h"

/* Measured on an H200 with driver 580: 1.6 to 2.6 KB per kernel node (DESIGN.md, section 1). */
enum { NODE_BYTES = 2600, GRAPH_BYTES = 4096 };

struct node {
    CUgraphNode handle;
    bool odd; /* the captured node does not spell its size as the call did: the size is not patched
               */
    union {
        CUDA_KERNEL_NODE_PARAMS_v2 kernel;
        CUDA_MEMSET_NODE_PARAMS_v1 memset;
        CUDA_MEMCPY3D_v2 copy;
    } as;
};

struct cus_exec {
    CUgraph graph;
    CUgraphExec exec;
    struct cus_exec *next; /* of those whose destruction was put off */
    uint32_t n;
    struct node nodes[];
};

static uint64_t wide(const struct cus_held *held) {
    return held->dims[0] | (uint64_t)held->dims[1] << 32;
}

/* ---- building ---- */

/* The node that the capture appended last. */
static bool last_captured(const struct cus_driver *driver, CUstream stream, CUgraphNode *node) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUgraphNode *deps = NULL;
    const CUgraphEdgeData *edges = NULL;
    size_t n = 0;
    if (driver->cuStreamGetCaptureInfo_v3(stream, &status, NULL, NULL, &deps, &edges, &n) !=
            CUDA_SUCCESS ||
        status != CU_STREAM_CAPTURE_STATUS_ACTIVE || n != 1)
        return false;
    *node = deps[0];
    return true;
}

/* A kernel behind a programmatic one is ordered behind that one alone, which may end before its own
 * predecessors do: what comes next without that attribute waits for all of them (HAZARDS A4). */
static bool join_open(const struct cus_driver *driver, CUstream stream, struct cus_exec *exec,
                      uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++)
        if (driver->cuStreamUpdateCaptureDependencies_v2(stream, &exec->nodes[i].handle, NULL, 1,
                                                         CU_STREAM_ADD_CAPTURE_DEPENDENCIES) !=
            CUDA_SUCCESS)
            return false;
    return true;
}

static bool capture_ops(const struct cus_driver *driver, CUstream stream,
                        const struct cus_exec_op *ops, uint32_t n, struct cus_exec *exec) {
    uint32_t open =
        0; /* nodes from here up to the one before the last may still run when the last has ended */
    for (uint32_t i = 0; i < n; i++) {
        if (!ops[i].kind->pdl) {
            if (CUS_HAZARD(A4) && i > 0 && !join_open(driver, stream, exec, open, i - 1))
                return false;
            open = i;
        }
        if (cus_issue(driver, ops[i].kind, ops[i].held, stream) != CUDA_SUCCESS ||
            !last_captured(driver, stream, &exec->nodes[i].handle))
            return false;
    }
    return true;
}

/* A launch attribute that the node does not give back would be lost without a word (HAZARDS A8).
 * Programmatic serialization becomes an edge and is not asked for. */
static bool attributes_kept(const struct cus_driver *driver, CUgraphNode node,
                            const struct cus_kind *kind) {
    for (unsigned i = 0; i < kind->n_attrs; i++) {
        const struct cus_attr *attr = &kind->attrs[i];
        if (attr->id == CU_LAUNCH_ATTRIBUTE_IGNORE ||
            attr->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            continue;
        CUlaunchAttributeValue value;
        memset(&value, 0, sizeof value);
        if (CUS_HAZARD(A8) && (!driver->cuGraphKernelNodeGetAttribute ||
                               driver->cuGraphKernelNodeGetAttribute(
                                   node, (CUlaunchAttributeID)attr->id, &value) != CUDA_SUCCESS ||
                               memcmp(&value, attr->value, attr->bytes) != 0)) {
            CUS_LOG_ONCE(CUS_INFO, "graph", "launch attribute %u of %s does not survive capture",
                         attr->id, kind->name);
            return false;
        }
    }
    return true;
}

static bool read_kernel(const struct cus_driver *driver, struct node *node,
                        const struct cus_kind *kind) {
    return driver->cuGraphKernelNodeGetParams_v2 &&
           driver->cuGraphKernelNodeGetParams_v2(node->handle, &node->as.kernel) == CUDA_SUCCESS &&
           attributes_kept(driver, node->handle, kind);
}

static bool read_memset(const struct cus_driver *driver, struct node *node,
                        const struct cus_exec_op *op) {
    if (driver->cuGraphMemsetNodeGetParams(node->handle, &node->as.memset) != CUDA_SUCCESS)
        return false;
    const CUDA_MEMSET_NODE_PARAMS_v1 *have = &node->as.memset;
    struct cus_memset_params asked;
    memcpy(&asked, op->held->params, sizeof asked);
    node->odd = have->elementSize != op->kind->elem || have->height != 1 ||
                have->width != wide(op->held) || have->dst != asked.dst;
    return true;
}

/* Do the node's operands lie where patch_copy would put them? */
static bool at_asked(const CUDA_MEMCPY3D_v2 *have, const struct cus_held *held) {
    struct cus_copy_params asked;
    memcpy(&asked, held->params, sizeof asked);
    uint64_t src = have->srcMemoryType == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)have->srcHost
                                                             : have->srcDevice;
    uint64_t dst = have->dstMemoryType == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)have->dstHost
                                                             : have->dstDevice;
    return src == asked.src && dst == asked.dst;
}

static bool read_copy(const struct cus_driver *driver, struct node *node,
                      const struct cus_exec_op *op) {
    if (driver->cuGraphMemcpyNodeGetParams(node->handle, &node->as.copy) != CUDA_SUCCESS)
        return false;
    const CUDA_MEMCPY3D_v2 *have = &node->as.copy;
    node->odd = have->WidthInBytes != wide(op->held) || have->Height != 1 || have->Depth != 1 ||
                have->srcXInBytes || have->dstXInBytes || !at_asked(have, op->held);
    return have->srcMemoryType != CU_MEMORYTYPE_ARRAY && have->dstMemoryType != CU_MEMORYTYPE_ARRAY;
}

static bool read_back(const struct cus_driver *driver, struct node *node,
                      const struct cus_exec_op *op) {
    switch (op->kind->type) {
    case CUS_OP_MEMSET:
        return read_memset(driver, node, op);
    case CUS_OP_COPY:
        return read_copy(driver, node, op);
    default:
        return read_kernel(driver, node, op->kind);
    }
}

static bool build_captured(const struct cus_driver *driver, CUstream stream,
                           const struct cus_exec_op *ops, uint32_t n, struct cus_exec *exec,
                           enum cus_fallback *why) {
    *why = CUS_FALLBACK_CAPTURE;
    if (driver->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS)
        return false;
    bool captured = capture_ops(driver, stream, ops, n, exec);
    CUresult ended = driver->cuStreamEndCapture(stream, &exec->graph);
    if (ended != CUDA_SUCCESS)
        exec->graph = NULL;
    if (!captured || !exec->graph)
        return false;
    *why = CUS_FALLBACK_ATTRIBUTE;
    for (uint32_t i = 0; i < n; i++)
        if (!read_back(driver, &exec->nodes[i], &ops[i])) {
            ops[i].kind->deferrable = false;
            return false;
        }
    *why = CUS_FALLBACK_INSTANTIATE;
    return driver->cuGraphInstantiateWithFlags(&exec->exec, exec->graph, 0) == CUDA_SUCCESS;
}

bool cus_exec_build(const struct cus_driver *driver, CUstream capture_stream,
                    const struct cus_exec_op *ops, uint32_t n, struct cus_exec **out,
                    enum cus_fallback *why) {
    *out = NULL;
    *why = CUS_FALLBACK_NO_MEMORY;
    struct cus_exec *exec = cus_mem_alloc(sizeof *exec + n * sizeof exec->nodes[0]);
    if (!exec)
        return false;
    exec->n = n;
    struct cus_relaxed relaxed = cus_relax(driver);
    bool built = build_captured(driver, capture_stream, ops, n, exec, why);
    cus_relax_end(driver, relaxed);
    if (!built) {
        exec->exec = NULL;
        cus_exec_destroy(driver, exec);
        return false;
    }
    *out = exec;
    return true;
}

/* ---- patching ---- */

static CUresult patch_kernel(const struct cus_driver *driver, struct cus_exec *exec, uint32_t i,
                             const struct cus_kind *kind, const struct cus_held *held) {
    void *pointers[CUS_ISSUE_PARAMS_MAX];
    CUDA_KERNEL_NODE_PARAMS_v2 params = exec->nodes[i].as.kernel;
    params.gridDimX = held->dims[0];
    params.gridDimY = held->dims[1];
    params.gridDimZ = held->dims[2];
    params.blockDimX = held->dims[3];
    params.blockDimY = held->dims[4];
    params.blockDimZ = held->dims[5];
    params.sharedMemBytes = held->dims[6];
    params.kernelParams = cus_issue_params(kind, held, pointers);
    params.extra = NULL;
    return driver->cuGraphExecKernelNodeSetParams_v2(exec->exec, exec->nodes[i].handle, &params);
}

static CUresult patch_memset(const struct cus_driver *driver, CUcontext context,
                             struct cus_exec *exec, uint32_t i, const struct cus_held *held) {
    struct cus_memset_params asked;
    memcpy(&asked, held->params, sizeof asked);
    CUDA_MEMSET_NODE_PARAMS_v1 params = exec->nodes[i].as.memset;
    params.dst = asked.dst;
    params.value = params.elementSize == 1   ? (unsigned char)asked.value
                   : params.elementSize == 2 ? (unsigned short)asked.value
                                             : asked.value;
    params.width = wide(held);
    return driver->cuGraphExecMemsetNodeSetParams(exec->exec, exec->nodes[i].handle, &params,
                                                  context);
}

static CUresult patch_copy(const struct cus_driver *driver, CUcontext context,
                           struct cus_exec *exec, uint32_t i, const struct cus_held *held) {
    struct cus_copy_params asked;
    memcpy(&asked, held->params, sizeof asked);
    CUDA_MEMCPY3D_v2 params = exec->nodes[i].as.copy;
    if (params.srcMemoryType == CU_MEMORYTYPE_HOST)
        params.srcHost = (const void *)(uintptr_t)asked.src;
    else
        params.srcDevice = asked.src;
    if (params.dstMemoryType == CU_MEMORYTYPE_HOST)
        params.dstHost = (void *)(uintptr_t)asked.dst;
    else
        params.dstDevice = asked.dst;
    params.WidthInBytes = wide(held);
    return driver->cuGraphExecMemcpyNodeSetParams(exec->exec, exec->nodes[i].handle, &params,
                                                  context);
}

CUresult cus_exec_patch(const struct cus_driver *driver, CUcontext context, struct cus_exec *exec,
                        uint32_t i, const struct cus_kind *kind, const struct cus_held *held) {
    /* A node that spells its operation in its own way is not rewritten: the piece goes eager
     * instead. */
    if (exec->nodes[i].odd)
        return CUDA_ERROR_NOT_SUPPORTED;
    switch (kind->type) {
    case CUS_OP_MEMSET:
        return patch_memset(driver, context, exec, i, held);
    case CUS_OP_COPY:
        return patch_copy(driver, context, exec, i, held);
    default:
        return patch_kernel(driver, exec, i, kind, held);
    }
}

void cus_exec_swap(struct cus_exec *exec, uint32_t i) {
    struct node first = exec->nodes[i];
    exec->nodes[i] = exec->nodes[i + 1];
    exec->nodes[i + 1] = first;
}

bool cus_exec_enabled(const struct cus_driver *driver, const struct cus_exec *exec, uint32_t i) {
    unsigned on = 0;
    return driver->cuGraphNodeGetEnabled &&
           driver->cuGraphNodeGetEnabled(exec->exec, exec->nodes[i].handle, &on) == CUDA_SUCCESS &&
           on;
}

bool cus_exec_enable(const struct cus_driver *driver, struct cus_exec *exec, uint32_t i, bool on) {
    return driver->cuGraphNodeSetEnabled &&
           driver->cuGraphNodeSetEnabled(exec->exec, exec->nodes[i].handle, on) == CUDA_SUCCESS;
}

CUresult cus_exec_launch(const struct cus_driver *driver, struct cus_exec *exec, CUstream stream) {
    return driver->cuGraphLaunch(exec->exec, stream);
}

void cus_exec_destroy(const struct cus_driver *driver, struct cus_exec *exec) {
    if (driver) {
        struct cus_relaxed relaxed = cus_relax(driver);
        if (exec->exec)
            driver->cuGraphExecDestroy(exec->exec);
        if (exec->graph)
            driver->cuGraphDestroy(exec->graph);
        cus_relax_end(driver, relaxed);
    }
    cus_mem_free(exec);
}

void cus_exec_put_off(struct cus_exec **list, struct cus_exec *exec) {
    exec->next = *list;
    *list = exec;
}

void cus_exec_destroy_list(const struct cus_driver *driver, struct cus_exec **list) {
    while (*list) {
        struct cus_exec *exec = *list;
        *list = exec->next;
        cus_exec_destroy(driver, exec);
    }
}

uint64_t cus_exec_estimate(uint32_t n) {
    return GRAPH_BYTES + (uint64_t)n * NODE_BYTES;
}

uint64_t cus_exec_bytes(const struct cus_exec *exec) {
    return cus_exec_estimate(exec->n);
}
