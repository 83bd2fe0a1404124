/*
 * Builds, patches, launches and destroys executable graphs.
 * Runs on the thread that completes a segment, under the lock of the segment's engine. A submitted
 * segment is patched and launched on the thread that took it (stream/submit.h). Building captures
 * on a private stream in RELAXED mode, so that it and captures of the program do not disturb each
 * other (HAZARDS D2). Never called while the program captures in this context.
 */
#include "shim/graph/exec.h"

#include <string.h>

#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/graph/capture.h"
#include "shim/graph/held.h"
#include "shim/graph/issue.h"
#include "shim/graph/relax.h"

/* Measured on an H200 with driver 580: 1.6 to 2.6 KB for each kernel node. */
enum { NODE_BYTES = 2600, GRAPH_BYTES = 4096 };

/* What was captured as a node. */
struct requested {
    uint32_t dims[CUS_DIMS];
    uint64_t dst, src;      /* of a memset or copy */
    uint64_t pitch, height; /* of a memset */
};

/* A node's params are read from the driver at its first patch: most nodes are never patched. */
struct node {
    bool read;  /* `as` holds the driver's answer, not `requested` */
    bool holds; /* a record: the node holds `as.event` (held.h) */
    /* The node describes its operation in another way than the call did, so it is not patched. */
    bool odd;
    union {
        struct requested requested;
        CUDA_KERNEL_NODE_PARAMS_v2 kernel;
        CUDA_MEMSET_NODE_PARAMS_v1 memset;
        CUDA_MEMCPY3D_v2 copy;
        CUevent event; /* of a record */
    } as;
};

struct cus_exec {
    CUgraph graph;
    CUgraphExec exec;
    uint64_t built_at;     /* `gone` then */
    bool sets_memory;      /* has a memset node */
    struct cus_exec *next; /* in a list of graphs to be destroyed later */
    CUgraphNode *handles;  /* n of them, stored behind `nodes` */
    uint64_t waited_ns;    /* wait until the capture began */
    uint32_t n;
    struct node nodes[];
};

static uint32_t timed; /* atomic: tools that time nodes */
static uint64_t gone;  /* atomic: how often memory went while one did, and how often one began */

static uint64_t wide(const uint32_t *dims) {
    return dims[0] | (uint64_t)dims[1] << 32;
}

/* ---- building ---- */

/* If a node does not return a launch attribute, the attribute would be lost silently (HAZARDS A8).
 * So each kind is checked once. Programmatic serialization becomes an edge and is not checked. */
static bool attributes_kept(const struct cus_driver *driver, CUgraphNode node,
                            struct cus_kind *kind) {
    if (!kind->n_attrs || __atomic_load_n(&kind->attrs_kept, __ATOMIC_RELAXED))
        return true;
    for (unsigned i = 0; i < kind->n_attrs; i++) {
        const struct cus_attr *attr = &kind->attrs[i];
        if (attr->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
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
    __atomic_store_n(&kind->attrs_kept, true, __ATOMIC_RELAXED);
    return true;
}

/* False: no memory. */
static bool note_event(struct node *node, const struct cus_exec_op *op) {
    node->as.event = cus_issue_event(op->values);
    node->holds = cus_held_add(node->as.event);
    return node->holds;
}

static void note_requested(struct requested *requested, const struct cus_exec_op *op) {
    struct cus_memset_params memset;
    struct cus_copy_params copy;
    memcpy(requested->dims, op->values->dims, sizeof requested->dims);
    switch (op->kind->type) {
    case CUS_OP_MEMSET:
        memcpy(&memset, op->values->params, sizeof memset);
        requested->dst = memset.dst;
        requested->pitch = memset.pitch;
        requested->height = memset.height;
        break;
    case CUS_OP_COPY:
        memcpy(&copy, op->values->params, sizeof copy);
        requested->dst = copy.dst;
        requested->src = copy.src;
        break;
    default:
        break;
    }
}

static bool build_captured(const struct cus_driver *driver, struct cus_exec_target target,
                           const struct cus_exec_op *ops, uint32_t n, cus_exec_clock *clock,
                           struct cus_exec *exec, enum cus_fallback *why) {
    struct cus_capture made = {.nodes = exec->handles};
    bool captured = cus_capture_ops(driver, target, ops, n, clock, &made);
    exec->graph = made.graph;
    exec->waited_ns = made.waited_ns;
    *why = CUS_FALLBACK_CAPTURE;
    if (!captured)
        return false;
    *why = CUS_FALLBACK_ATTRIBUTE;
    for (uint32_t i = 0; i < n; i++) {
        if (!exec->handles[i])
            continue;
        if (!attributes_kept(driver, exec->handles[i], ops[i].kind)) {
            ops[i].kind->deferrable = false;
            return false;
        }
        exec->sets_memory |= ops[i].kind->type == CUS_OP_MEMSET;
        if (ops[i].kind->type != CUS_OP_RECORD) {
            note_requested(&exec->nodes[i].as.requested, &ops[i]);
        } else if (!note_event(&exec->nodes[i], &ops[i])) {
            *why = CUS_FALLBACK_NO_MEMORY;
            return false;
        }
    }
    *why = CUS_FALLBACK_INSTANTIATE;
    return driver->cuGraphInstantiateWithFlags(&exec->exec, exec->graph, 0) == CUDA_SUCCESS;
}

bool cus_exec_build(const struct cus_driver *driver, struct cus_exec_target target,
                    const struct cus_exec_op *ops, uint32_t n, cus_exec_clock *clock,
                    struct cus_exec **out, enum cus_fallback *why) {
    *out = NULL;
    *why = CUS_FALLBACK_NO_MEMORY;
    struct cus_exec *exec =
        cus_mem_grow(sizeof *exec + n * (sizeof exec->nodes[0] + sizeof *exec->handles));
    if (!exec)
        return false;
    exec->n = n;
    exec->built_at = __atomic_load_n(&gone, __ATOMIC_ACQUIRE);
    exec->handles = (CUgraphNode *)&exec->nodes[n];
    struct cus_relaxed relaxed = cus_relax(driver);
    bool built = build_captured(driver, target, ops, n, clock, exec, why);
    cus_relax_end(driver, relaxed);
    if (!built) {
        exec->exec = NULL;
        cus_exec_destroy(driver, exec);
        return false;
    }
    *out = exec;
    return true;
}

/* ---- reading a node ----
 *
 * Measured with driver 580: reading and patching return at once even while a thread sleeps in a
 * copy of pageable memory (tests/gpu/gate-*). During such a copy nothing is built. */

static bool read_kernel(const struct cus_driver *driver, CUgraphNode handle, struct node *node) {
    CUDA_KERNEL_NODE_PARAMS_v2 have;
    const uint32_t *requested = node->as.requested.dims;
    if (driver->cuGraphKernelNodeGetParams_v2(handle, &have) != CUDA_SUCCESS)
        return false;
    node->odd = have.gridDimX != requested[0] || have.gridDimY != requested[1] ||
                have.gridDimZ != requested[2] || have.blockDimX != requested[3] ||
                have.blockDimY != requested[4] || have.blockDimZ != requested[5];
    node->as.kernel = have;
    return true;
}

static bool read_memset(const struct cus_driver *driver, CUgraphNode handle, struct node *node,
                        const struct cus_kind *kind) {
    CUDA_MEMSET_NODE_PARAMS_v1 have;
    const struct requested *requested = &node->as.requested;
    if (driver->cuGraphMemsetNodeGetParams(handle, &have) != CUDA_SUCCESS)
        return false;
    /* The pitch of one row means nothing. */
    node->odd = have.elementSize != kind->elem || have.height != requested->height ||
                have.width != wide(requested->dims) || have.dst != requested->dst ||
                (have.height > 1 && have.pitch != requested->pitch);
    node->as.memset = have;
    return true;
}

/* Has the node the addresses where patch_copy would write them? */
static bool at_requested(const CUDA_MEMCPY3D_v2 *have, const struct requested *requested) {
    uint64_t src = have->srcMemoryType == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)have->srcHost
                                                             : have->srcDevice;
    uint64_t dst = have->dstMemoryType == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)have->dstHost
                                                             : have->dstDevice;
    return src == requested->src && dst == requested->dst;
}

static bool read_copy(const struct cus_driver *driver, CUgraphNode handle, struct node *node) {
    CUDA_MEMCPY3D_v2 have;
    const struct requested *requested = &node->as.requested;
    if (driver->cuGraphMemcpyNodeGetParams(handle, &have) != CUDA_SUCCESS)
        return false;
    node->odd = have.WidthInBytes != wide(requested->dims) || have.Height != 1 || have.Depth != 1 ||
                have.srcXInBytes || have.dstXInBytes || !at_requested(&have, requested) ||
                have.srcMemoryType == CU_MEMORYTYPE_ARRAY ||
                have.dstMemoryType == CU_MEMORYTYPE_ARRAY;
    node->as.copy = have;
    return true;
}

/* False: the driver did not say what the node holds. */
static bool read_node(const struct cus_driver *driver, struct cus_exec *exec, uint32_t i,
                      const struct cus_kind *kind) {
    struct node *node = &exec->nodes[i];
    if (node->read)
        return true;
    switch (kind->type) {
    case CUS_OP_MEMSET:
        node->read = read_memset(driver, exec->handles[i], node, kind);
        break;
    case CUS_OP_COPY:
        node->read = read_copy(driver, exec->handles[i], node);
        break;
    case CUS_OP_RECORD: /* the event is all that it has */
        node->read = true;
        break;
    default:
        node->read = read_kernel(driver, exec->handles[i], node);
        break;
    }
    return node->read;
}

bool cus_exec_has_node(const struct cus_exec *exec, uint32_t i) {
    return exec->handles[i] != NULL;
}

bool cus_exec_is_read(const struct cus_exec *exec, uint32_t i) {
    return exec->nodes[i].read || !exec->handles[i];
}

/* ---- patching ---- */

static CUresult patch_kernel(const struct cus_driver *driver, struct cus_exec *exec, uint32_t i,
                             const struct cus_kind *kind, const struct cus_values *values) {
    void *pointers[CUS_ISSUE_PARAMS_MAX];
    CUDA_KERNEL_NODE_PARAMS_v2 params = exec->nodes[i].as.kernel;
    params.gridDimX = values->dims[0];
    params.gridDimY = values->dims[1];
    params.gridDimZ = values->dims[2];
    params.blockDimX = values->dims[3];
    params.blockDimY = values->dims[4];
    params.blockDimZ = values->dims[5];
    params.sharedMemBytes = values->dims[6];
    params.kernelParams = cus_issue_params(kind, values, pointers);
    params.extra = NULL;
    return driver->cuGraphExecKernelNodeSetParams_v2(exec->exec, exec->handles[i], &params);
}

static CUresult patch_memset(const struct cus_driver *driver, CUcontext context,
                             struct cus_exec *exec, uint32_t i, const struct cus_values *values) {
    struct cus_memset_params requested;
    memcpy(&requested, values->params, sizeof requested);
    CUDA_MEMSET_NODE_PARAMS_v1 params = exec->nodes[i].as.memset;
    params.dst = requested.dst;
    params.value = params.elementSize == 1   ? (unsigned char)requested.value
                   : params.elementSize == 2 ? (unsigned short)requested.value
                                             : requested.value;
    params.width = wide(values->dims);
    return driver->cuGraphExecMemsetNodeSetParams(exec->exec, exec->handles[i], &params, context);
}

static CUresult patch_record(const struct cus_driver *driver, struct cus_exec *exec, uint32_t i,
                             const struct cus_values *values) {
    struct node *node = &exec->nodes[i];
    CUevent before = node->as.event, event = cus_issue_event(values);
    if (!cus_held_add(event))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result =
        driver->cuGraphExecEventRecordNodeSetEvent(exec->exec, exec->handles[i], event);
    bool set = result == CUDA_SUCCESS;
    cus_held_drop(set ? before : event);
    if (set)
        node->as.event = event;
    return result;
}

static CUresult patch_copy(const struct cus_driver *driver, CUcontext context,
                           struct cus_exec *exec, uint32_t i, const struct cus_values *values) {
    struct cus_copy_params requested;
    memcpy(&requested, values->params, sizeof requested);
    CUDA_MEMCPY3D_v2 params = exec->nodes[i].as.copy;
    if (params.srcMemoryType == CU_MEMORYTYPE_HOST)
        params.srcHost = (const void *)(uintptr_t)requested.src;
    else
        params.srcDevice = requested.src;
    if (params.dstMemoryType == CU_MEMORYTYPE_HOST)
        params.dstHost = (void *)(uintptr_t)requested.dst;
    else
        params.dstDevice = requested.dst;
    params.WidthInBytes = wide(values->dims);
    return driver->cuGraphExecMemcpyNodeSetParams(exec->exec, exec->handles[i], &params, context);
}

CUresult cus_exec_patch(const struct cus_driver *driver, CUcontext context, struct cus_exec *exec,
                        uint32_t i, const struct cus_kind *kind, const struct cus_values *values) {
    if (!exec->handles[i])
        return CUDA_SUCCESS;
    /* A node with another description of its operation cannot be rewritten; the segment is issued
     * eagerly. */
    if (!read_node(driver, exec, i, kind) || exec->nodes[i].odd)
        return CUDA_ERROR_NOT_SUPPORTED;
    switch (kind->type) {
    case CUS_OP_MEMSET:
        return patch_memset(driver, context, exec, i, values);
    case CUS_OP_COPY:
        return patch_copy(driver, context, exec, i, values);
    case CUS_OP_RECORD:
        return patch_record(driver, exec, i, values);
    default:
        return patch_kernel(driver, exec, i, kind, values);
    }
}

void cus_exec_swap(struct cus_exec *exec, uint32_t i) {
    struct node first = exec->nodes[i];
    exec->nodes[i] = exec->nodes[i + 1];
    exec->nodes[i + 1] = first;
    CUgraphNode handle = exec->handles[i];
    exec->handles[i] = exec->handles[i + 1];
    exec->handles[i + 1] = handle;
}

bool cus_exec_enabled(const struct cus_driver *driver, const struct cus_exec *exec, uint32_t i) {
    unsigned on = 0;
    return driver->cuGraphNodeGetEnabled && exec->handles[i] &&
           driver->cuGraphNodeGetEnabled(exec->exec, exec->handles[i], &on) == CUDA_SUCCESS && on;
}

bool cus_exec_enable(const struct cus_driver *driver, struct cus_exec *exec, uint32_t i, bool on) {
    return driver->cuGraphNodeSetEnabled && exec->handles[i] &&
           driver->cuGraphNodeSetEnabled(exec->exec, exec->handles[i], on) == CUDA_SUCCESS;
}

void cus_exec_set_timed(bool on) {
    if (on)
        __atomic_add_fetch(&timed, 1, __ATOMIC_SEQ_CST);
    else
        __atomic_sub_fetch(&timed, 1, __ATOMIC_SEQ_CST);
    /* What went before was not counted. Who sees this count sees `timed` as well. */
    __atomic_add_fetch(&gone, 1, __ATOMIC_SEQ_CST);
}

bool cus_exec_timed(void) {
    return __atomic_load_n(&timed, __ATOMIC_RELAXED) != 0;
}

void cus_exec_memory_goes(void) {
    if (cus_exec_timed())
        __atomic_add_fetch(&gone, 1, __ATOMIC_RELEASE);
}

bool cus_exec_is_stale(const struct cus_exec *exec) {
    return CUS_HAZARD(A32) && cus_exec_timed() && exec->sets_memory &&
           exec->built_at != __atomic_load_n(&gone, __ATOMIC_ACQUIRE);
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
    for (uint32_t i = 0; i < exec->n; i++)
        if (exec->nodes[i].holds)
            cus_held_drop(exec->nodes[i].as.event);
    cus_mem_shrink(exec);
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

uint64_t cus_exec_waited_ns(const struct cus_exec *exec) {
    return exec->waited_ns;
}

uint32_t cus_exec_nodes(const struct cus_exec *exec) {
    return exec->n;
}

struct cus_exec *cus_exec_next(const struct cus_exec *exec) {
    return exec->next;
}

uint64_t cus_exec_bytes(const struct cus_exec *exec) {
    return cus_exec_estimate(exec->n);
}
