/*
 * The calls that the library makes when it builds, patches and launches graphs: with capture mode
 * RELAXED and a non-blocking private stream. shim/api/own.def says which row stands for which call.
 *
 *   OWN    builds rely on these calls
 *   FIRST  the first use of a function, for which the library flushes everything
 *   DEEP   calls when the driver runs out of something; they are known to wait
 */
#include "tests/gpu/gate/gate.h"

#include <string.h>

enum { NODES = 100, MANY = 1000 };
/* Of the rows about room: FIRST_GRAPHS graphs of FIRST_NODES; AGAIN of NODES and one large one;
 * MOST graphs. */
enum { FIRST_GRAPHS = 24, FIRST_NODES = 150, AGAIN = 40, AGAIN_LARGE = 3000, MOST = 60 };

/* Between the two brackets several calls are measured as one: the first failure ends them. */
#define MEASURE(steps)                                                                             \
    do {                                                                                           \
        if (!gate_enter(g, "own"))                                                                 \
            return;                                                                                \
        CUresult code_ = CUDA_SUCCESS;                                                             \
        steps;                                                                                     \
        gate_leave(g, code_, -1);                                                                  \
    } while (0)
#define STEP(symbol, arguments)                                                                    \
    do {                                                                                           \
        if (code_ == CUDA_SUCCESS)                                                                 \
            code_ = cu.symbol arguments;                                                           \
    } while (0)
#define STEP_LAUNCH(stream)                                                                        \
    STEP(cuLaunchKernel, (g->touch, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL))

static void relaxed(struct gate *g) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    TRY(cuThreadExchangeStreamCaptureMode, (&mode));
}

static void stream_create(struct gate *g) {
    relaxed(g);
    MEASURE(STEP(cuStreamCreateWithPriority, (OUT(CUstream, 0), CU_STREAM_NON_BLOCKING, 0));
            STEP(cuStreamCopyAttributes, (*OUT(CUstream, 0), g->busy)));
    TRY(cuStreamDestroy_v2, (*OUT(CUstream, 0)));
}

static void stream_destroy(struct gate *g) {
    relaxed(g);
    CUstream stream = gate_stream(g);
    MEASURE(STEP(cuStreamDestroy_v2, (stream)));
}

static void capture(struct gate *g) {
    relaxed(g);
    CUstream stream = gate_stream(g);
    void *parameters[] = {&g->memory2};
    MEASURE(STEP(cuStreamBeginCapture_v2, (stream, CU_STREAM_CAPTURE_MODE_RELAXED));
            for (int i = 0; i < NODES; i++) STEP_LAUNCH(stream);
            STEP(cuStreamEndCapture, (stream, OUT(CUgraph, 0))));
    TRY(cuGraphDestroy, (*OUT(CUgraph, 0)));
    TRY(cuStreamDestroy_v2, (stream));
}

static void capture_questions(struct gate *g) {
    relaxed(g);
    CUstream stream = gate_stream(g);
    CUgraphNode *nodes = OUT(CUgraphNode, 6);
    size_t n = 0;
    void *parameters[] = {&g->memory2};
    MEASURE(STEP(cuStreamBeginCapture_v2, (stream, CU_STREAM_CAPTURE_MODE_RELAXED));
            STEP_LAUNCH(stream);
            STEP(cuStreamGetCaptureInfo_v3,
                 (stream, OUT(CUstreamCaptureStatus, 0), OUT(cuuint64_t, 1), OUT(CUgraph, 2),
                  OUT(const CUgraphNode *, 3), OUT(const CUgraphEdgeData *, 4), &n));
            if (code_ == CUDA_SUCCESS && n) nodes[0] = (*OUT(const CUgraphNode *, 3))[0];
            STEP(cuStreamUpdateCaptureDependencies_v2,
                 (stream, nodes, NULL, n, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
            STEP(cuStreamEndCapture, (stream, OUT(CUgraph, 5))));
    TRY(cuGraphDestroy, (*OUT(CUgraph, 5)));
    TRY(cuStreamDestroy_v2, (stream));
}

static void instantiate_of(struct gate *g, unsigned n) {
    relaxed(g);
    CUgraph graph = gate_graph(g, n, NULL);
    MEASURE(STEP(cuGraphInstantiateWithFlags, (OUT(CUgraphExec, 0), graph, 0)));
    TRY(cuGraphExecDestroy, (*OUT(CUgraphExec, 0)));
    TRY(cuGraphDestroy, (graph));
}
static void instantiate(struct gate *g) {
    instantiate_of(g, NODES);
}
static void instantiate_large(struct gate *g) {
    instantiate_of(g, MANY);
}
static void instantiate_often(struct gate *g) {
    relaxed(g);
    CUgraph graph = gate_graph(g, MANY, NULL);
    CUgraphExec *execs = OUT(CUgraphExec, 0);
    MEASURE(for (int i = 0; i < 20; i++) STEP(cuGraphInstantiateWithFlags, (&execs[i], graph, 0)));
    for (int i = 0; i < 20; i++)
        TRY(cuGraphExecDestroy, (execs[i]));
    TRY(cuGraphDestroy, (graph));
}

/* ---- room for graphs (stream/room.c) ---- */

/* Makes them all behind the gate; again: all were made and destroyed before it shut. */
static void room(struct gate *g, const unsigned sizes[], unsigned n, bool again) {
    relaxed(g);
    CUgraph graphs[MOST] = {NULL};
    CUgraphExec execs[MOST] = {NULL};
    for (unsigned i = 0; i < n; i++)
        graphs[i] = gate_graph(g, sizes[i], NULL);
    for (unsigned i = 0; again && i < n; i++)
        execs[i] = gate_exec(g, graphs[i]);
    for (unsigned i = 0; again && i < n; i++)
        TRY(cuGraphExecDestroy, (execs[i]));
    MEASURE(for (unsigned i = 0; i < n; i++)
                STEP(cuGraphInstantiateWithFlags, (&execs[i], graphs[i], 0)));
    for (unsigned i = 0; i < n; i++) {
        TRY(cuGraphExecDestroy, (execs[i]));
        TRY(cuGraphDestroy, (graphs[i]));
    }
}

/* What room.c takes a new context to have, in a process of its own. */
static void first_room(struct gate *g) {
    unsigned sizes[FIRST_GRAPHS];
    for (unsigned i = 0; i < FIRST_GRAPHS; i++)
        sizes[i] = FIRST_NODES;
    room(g, sizes, FIRST_GRAPHS, false);
}

/* What was destroyed has left its room. */
static void room_again(struct gate *g) {
    unsigned sizes[AGAIN + 1];
    for (unsigned i = 0; i < AGAIN; i++)
        sizes[i] = NODES;
    sizes[AGAIN] = AGAIN_LARGE;
    room(g, sizes, AGAIN + 1, true);
}

/* More graphs than there is room for, in a process of its own. */
static void growth(struct gate *g) {
    unsigned sizes[MOST];
    for (unsigned i = 0; i < MOST; i++)
        sizes[i] = 10;
    room(g, sizes, MOST, false);
}

/* On an exec that is idle, or in flight behind the gate. */
static void set_params(struct gate *g, bool in_flight) {
    relaxed(g);
    CUgraphNode node = NULL, fill = NULL, copy = NULL;
    CUgraph graph = gate_graph(g, NODES, &node);
    CUDA_KERNEL_NODE_PARAMS kernel = gate_kernel_params(g);
    CUDA_MEMSET_NODE_PARAMS memset = gate_memset_params(g);
    CUDA_MEMCPY3D memcpy = gate_memcpy_params(g);
    TRY(cuGraphAddMemsetNode, (&fill, graph, &node, 1, &memset, g->context));
    TRY(cuGraphAddMemcpyNode, (&copy, graph, &fill, 1, &memcpy, g->context));
    CUgraphExec exec = gate_exec(g, graph);
    if (in_flight) {
        gate_now(g);
        TRY(cuGraphLaunch, (exec, g->busy));
    }
    kernel.gridDimX = 2;
    memset.value = 2;
    memcpy.dstDevice += 1024;
    MEASURE(STEP(cuGraphExecKernelNodeSetParams_v2, (exec, node, &kernel));
            STEP(cuGraphExecMemsetNodeSetParams, (exec, fill, &memset, g->context));
            STEP(cuGraphExecMemcpyNodeSetParams, (exec, copy, &memcpy, g->context)));
    TRY(cuCtxSynchronize, ());
    TRY(cuGraphExecDestroy, (exec));
    TRY(cuGraphDestroy, (graph));
}
static void set_params_idle(struct gate *g) {
    set_params(g, false);
}
static void set_params_in_flight(struct gate *g) {
    set_params(g, true);
}

/* A node that records an event is captured. */
static void record_node(struct gate *g) {
    relaxed(g);
    CUevent event = gate_event(g, CU_EVENT_DEFAULT);
    CUstream stream = gate_stream(g);
    void *parameters[] = {&g->memory2};
    MEASURE(STEP(cuStreamBeginCapture_v2, (stream, CU_STREAM_CAPTURE_MODE_RELAXED));
            STEP_LAUNCH(stream);
            STEP(cuEventRecordWithFlags, (event, stream, CU_EVENT_RECORD_EXTERNAL));
            STEP(cuStreamEndCapture, (stream, OUT(CUgraph, 0))));
    TRY(cuGraphDestroy, (*OUT(CUgraph, 0)));
    TRY(cuStreamDestroy_v2, (stream));
}

/* The event of a branch's last node. */
static void event_create(struct gate *g) {
    relaxed(g);
    MEASURE(STEP(cuEventCreate, (OUT(CUevent, 0), CU_EVENT_DISABLE_TIMING)));
    TRY(cuEventDestroy_v2, (*OUT(CUevent, 0)));
}

/* A stream waits for an event that a node of a graph behind the gate records, and for one that a
 * stream does. */
static void stream_wait(struct gate *g) {
    relaxed(g);
    CUgraphNode node = NULL, record = NULL;
    CUgraph graph = gate_graph(g, NODES, &node);
    CUevent left = gate_event(g, CU_EVENT_DISABLE_TIMING);
    TRY(cuGraphAddEventRecordNode, (&record, graph, &node, 1, left));
    CUgraphExec exec = gate_exec(g, graph);
    CUevent event = gate_event_behind(g);
    TRY(cuGraphLaunch, (exec, g->busy));
    MEASURE(STEP(cuStreamWaitEvent, (g->side, left, 0));
            STEP(cuStreamWaitEvent, (g->side, event, 0)));
    TRY(cuCtxSynchronize, ());
    TRY(cuGraphExecDestroy, (exec));
    TRY(cuGraphDestroy, (graph));
    TRY(cuEventDestroy_v2, (left));
    TRY(cuEventDestroy_v2, (event));
}

/* The node of record_node is given another event while its exec is in flight. */
static void set_event(struct gate *g) {
    relaxed(g);
    CUgraphNode node = NULL, record = NULL;
    CUgraph graph = gate_graph(g, NODES, &node);
    CUevent event = gate_event(g, CU_EVENT_DEFAULT), other = gate_event(g, CU_EVENT_DEFAULT);
    TRY(cuGraphAddEventRecordNode, (&record, graph, &node, 1, event));
    CUgraphExec exec = gate_exec(g, graph);
    gate_now(g);
    TRY(cuGraphLaunch, (exec, g->busy));
    MEASURE(STEP(cuGraphExecEventRecordNodeSetEvent, (exec, record, other)));
    TRY(cuCtxSynchronize, ());
    TRY(cuGraphExecDestroy, (exec));
    TRY(cuGraphDestroy, (graph));
}

/* kinds: with a memset and a copy between the kernels, too. */
static void launch_of(struct gate *g, bool before, bool kinds) {
    relaxed(g);
    CUgraphNode node = NULL, fill = NULL, copy = NULL;
    CUgraph graph = gate_graph(g, NODES, &node);
    CUDA_MEMSET_NODE_PARAMS memset = gate_memset_params(g);
    CUDA_MEMCPY3D memcpy = gate_memcpy_params(g);
    if (kinds) {
        TRY(cuGraphAddMemsetNode, (&fill, graph, &node, 1, &memset, g->context));
        TRY(cuGraphAddMemcpyNode, (&copy, graph, &fill, 1, &memcpy, g->context));
    }
    CUgraphExec exec = gate_exec(g, graph);
    if (before) {
        TRY(cuGraphUpload, (exec, g->side));
        TRY(cuGraphLaunch, (exec, g->side));
        TRY(cuStreamSynchronize, (g->side));
    }
    MEASURE(STEP(cuGraphLaunch, (exec, g->side)));
    TRY(cuCtxSynchronize, ());
    TRY(cuGraphExecDestroy, (exec));
    TRY(cuGraphDestroy, (graph));
}
static void launch(struct gate *g) {
    launch_of(g, true, false);
}
static void launch_first(struct gate *g) {
    launch_of(g, false, false);
}
static void launch_kinds(struct gate *g) {
    launch_of(g, true, true);
}
static void launch_kinds_first(struct gate *g) {
    launch_of(g, false, true);
}

/* A steady program: patched and launched again and again behind the gate. */
static void relaunch_times(struct gate *g, int times, CUstream stream) {
    relaxed(g);
    CUgraphNode node = NULL;
    CUgraph graph = gate_graph(g, 10, &node);
    CUgraphExec exec = gate_exec(g, graph);
    CUDA_KERNEL_NODE_PARAMS kernel = gate_kernel_params(g);
    TRY(cuGraphLaunch, (exec, g->busy));
    TRY(cuCtxSynchronize, ());
    MEASURE(for (int i = 0; i < times; i++) {
        kernel.gridDimX = 1 + (unsigned)(i % 2);
        STEP(cuGraphExecKernelNodeSetParams_v2, (exec, node, &kernel));
        STEP(cuGraphLaunch, (exec, stream));
    });
    TRY(cuCtxSynchronize, ());
    TRY(cuGraphExecDestroy, (exec));
    TRY(cuGraphDestroy, (graph));
}
static void relaunch(struct gate *g) {
    relaunch_times(g, 200, g->busy);
}
static void relaunch_side(struct gate *g) {
    relaunch_times(g, 200, g->side);
}
static void relaunch_deep(struct gate *g) {
    relaunch_times(g, 2000, g->busy);
}

static void launches_times(struct gate *g, int times) {
    relaxed(g);
    void *parameters[] = {&g->memory2};
    MEASURE(for (int i = 0; i < times; i++) STEP_LAUNCH(g->busy));
    TRY(cuCtxSynchronize, ());
}
static void launches(struct gate *g) {
    launches_times(g, 500);
}
static void launches_deep(struct gate *g) {
    launches_times(g, 2000);
}

/* Pending ops that are issued without a graph, on an idle stream. */
static void eager(struct gate *g) {
    relaxed(g);
    void *parameters[] = {&g->memory2};
    CUlaunchConfig one = {.gridDimX = 1,
                          .gridDimY = 1,
                          .gridDimZ = 1,
                          .blockDimX = 1,
                          .blockDimY = 1,
                          .blockDimZ = 1,
                          .hStream = g->side};
    MEASURE(STEP_LAUNCH(g->side); STEP(cuLaunchKernelEx, (&one, g->touch, parameters, NULL));
            STEP(cuLaunchCooperativeKernel, (g->touch, 1, 1, 1, 1, 1, 1, 0, g->side, parameters));
            STEP(cuMemsetD8Async, (g->memory, 1, 64, g->side));
            STEP(cuMemsetD16Async, (g->memory, 1, 64, g->side));
            STEP(cuMemsetD32Async, (g->memory, 1, 64, g->side));
            STEP(cuMemcpyAsync, (g->memory2 + 4096, g->memory, 64, g->side));
            STEP(cuMemcpyDtoDAsync_v2, (g->memory2 + 4096, g->memory, 64, g->side));
            STEP(cuMemcpyHtoDAsync_v2, (g->memory, g->pinned, 64, g->side));
            STEP(cuMemcpyDtoHAsync_v2, (g->pinned, g->memory, 64, g->side)));
}

static void exec_destroy(struct gate *g, bool in_flight) {
    relaxed(g);
    CUgraph graph = gate_graph(g, NODES, NULL);
    CUgraphExec exec = gate_exec(g, graph);
    TRY(cuGraphLaunch, (exec, g->side));
    TRY(cuCtxSynchronize, ());
    if (in_flight) {
        gate_now(g);
        TRY(cuGraphLaunch, (exec, g->busy));
    }
    MEASURE(STEP(cuGraphExecDestroy, (exec)); STEP(cuGraphDestroy, (graph)));
}
static void exec_destroy_idle(struct gate *g) {
    exec_destroy(g, false);
}
static void exec_destroy_in_flight(struct gate *g) {
    exec_destroy(g, true);
}

static void node_questions(struct gate *g) {
    relaxed(g);
    CUgraphNode node = NULL, fill = NULL, copy = NULL;
    CUgraph graph = gate_graph(g, NODES, &node);
    CUDA_MEMSET_NODE_PARAMS memset = gate_memset_params(g);
    CUDA_MEMCPY3D memcpy = gate_memcpy_params(g);
    TRY(cuGraphAddMemsetNode, (&fill, graph, &node, 1, &memset, g->context));
    TRY(cuGraphAddMemcpyNode, (&copy, graph, &fill, 1, &memcpy, g->context));
    MEASURE(STEP(cuGraphKernelNodeGetParams_v2, (node, OUT(CUDA_KERNEL_NODE_PARAMS, 0)));
            STEP(cuGraphKernelNodeGetAttribute,
                 (node, CU_LAUNCH_ATTRIBUTE_PRIORITY, OUT(CUkernelNodeAttrValue, 1)));
            STEP(cuGraphMemsetNodeGetParams, (fill, OUT(CUDA_MEMSET_NODE_PARAMS, 2)));
            STEP(cuGraphMemcpyNodeGetParams, (copy, OUT(CUDA_MEMCPY3D, 3)));
            STEP(cuGraphGetEdges_v2, (graph, NULL, NULL, NULL, OUT(size_t, 4))));
    TRY(cuGraphDestroy, (graph));
}

static void function_questions(struct gate *g) {
    relaxed(g);
    MEASURE(STEP(cuFuncGetName, (OUT(const char *, 0), g->touch));
            STEP(cuFuncGetParamInfo, (g->touch, 0, OUT(size_t, 1), OUT(size_t, 2)));
            STEP(cuFuncGetModule, (OUT(CUmodule, 3), g->touch));
            STEP(cuFuncGetAttribute, (OUT(int, 4), CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, g->touch)));
}

static void kernel_questions(struct gate *g) {
    relaxed(g);
    CUlibrary library = gate_library(g);
    CUkernel kernel = gate_kernel(g, library);
    TRY(cuKernelGetFunction, (OUT(CUfunction, 0), kernel));
    MEASURE(STEP(cuKernelGetName, (OUT(const char *, 1), kernel));
            STEP(cuKernelGetParamInfo, (kernel, 0, OUT(size_t, 2), OUT(size_t, 3)));
            STEP(cuKernelGetFunction, (OUT(CUfunction, 0), kernel)));
    TRY(cuLibraryUnload, (library));
}

/* Work is behind the gate: that is what it shall say. */
static CUresult query(CUstream stream) {
    CUresult code = cu.cuStreamQuery(stream);
    return code == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : code;
}

static void stream_questions(struct gate *g) {
    relaxed(g);
    MEASURE(STEP(cuStreamGetFlags, (g->busy, OUT(unsigned, 0)));
            STEP(cuStreamGetPriority, (g->busy, OUT(int, 1)));
            STEP(cuStreamIsCapturing, (g->busy, OUT(CUstreamCaptureStatus, 2)));
            STEP(cuStreamGetId, (g->busy, OUT(unsigned long long, 3)));
            STEP(cuStreamGetCtx, (g->busy, OUT(CUcontext, 4)));
            STEP(cuStreamGetGreenCtx, (g->busy, OUT(CUgreenCtx, 5)));
            if (code_ == CUDA_SUCCESS) code_ = query(g->busy));
}

static void context_questions(struct gate *g) {
    relaxed(g);
    MEASURE(STEP(cuCtxGetCurrent, (OUT(CUcontext, 0))); STEP(cuCtxGetDevice, (OUT(CUdevice, 1)));
            STEP(cuCtxPushCurrent_v2, (g->context)); STEP(cuCtxPopCurrent_v2, (OUT(CUcontext, 2)));
            STEP(cuDeviceGetAttribute,
                 (OUT(int, 3), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, g->device));
            STEP(cuDeviceGetName, (OUT(char, 4), GATE_SLOT_BYTES, g->device));
            STEP(cuDriverGetVersion, (OUT(int, 5)));
            STEP(cuDevicePrimaryCtxGetState, (g->device, OUT(unsigned, 6), OUT(int, 7))));
}

static void memory_questions(struct gate *g) {
    relaxed(g);
    CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                  CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void *answers[] = {g->out[0], g->out[1], g->out[2], g->out[3]};
    MEASURE(STEP(cuPointerGetAttributes, (4, what, answers, g->memory));
            STEP(cuPointerGetAttributes, (4, what, answers, (CUdeviceptr)g->pinned));
            STEP(cuPointerGetAttributes, (4, what, answers, (CUdeviceptr)g->pageable)));
}

/* ---- first touches ---- */

#define FIRST(name, symbol, arguments)                                                             \
    static void name(struct gate *g) {                                                             \
        CUmodule module;                                                                           \
        CUfunction function = gate_fresh_function(g, &module);                                     \
        void *parameters[] = {&g->memory2};                                                        \
        (void)parameters;                                                                          \
        GATE(symbol, arguments);                                                                   \
        TRY(cuCtxSynchronize, ());                                                                 \
        TRY(cuModuleUnload, (module));                                                             \
    }
FIRST(first_attribute, cuFuncGetAttribute, (OUT(int, 0), CU_FUNC_ATTRIBUTE_NUM_REGS, function))
FIRST(first_name, cuFuncGetName, (OUT(const char *, 0), function))
FIRST(first_launch, cuLaunchKernel, (function, 1, 1, 1, 1, 1, 1, 0, g->side, parameters, NULL))
static void first_function(struct gate *g) {
    CUlibrary library = gate_library(g);
    CUkernel kernel = gate_kernel(g, library);
    GATE(cuKernelGetFunction, (OUT(CUfunction, 0), kernel));
    TRY(cuLibraryUnload, (library));
}

const struct gate_row gate_own_rows[] = {
    {"own:stream-create", "OWN", stream_create, NULL, false},
    {"own:stream-destroy", "OWN", stream_destroy, NULL, false},
    {"own:capture-100", "OWN", capture, NULL, false},
    {"own:capture-questions", "OWN", capture_questions, NULL, false},
    {"own:instantiate-100", "OWN", instantiate, NULL, false},
    {"own:instantiate-1000", "OWN", instantiate_large, NULL, false},
    {"own:first-room", "OWN", first_room, NULL, true},
    {"own:room-again", "OWN", room_again, NULL, false},
    {"own:growth", "DEEP", growth, NULL, true},
    {"own:set-params-idle", "OWN", set_params_idle, NULL, false},
    {"own:set-params-in-flight", "OWN", set_params_in_flight, NULL, false},
    {"own:record-node", "OWN", record_node, NULL, false},
    {"own:set-event", "OWN", set_event, NULL, false},
    {"own:event-create", "OWN", event_create, NULL, false},
    {"own:stream-wait", "OWN", stream_wait, NULL, false},
    {"own:launch", "OWN", launch, NULL, false},
    {"own:launch-first", "OWN", launch_first, NULL, false},
    {"own:launch-kinds", "OWN", launch_kinds, NULL, false},
    {"own:launch-kinds-first", "OWN", launch_kinds_first, NULL, false},
    {"own:patched-relaunch-200", "OWN", relaunch, NULL, false},
    {"own:patched-relaunch-200-side", "OWN", relaunch_side, NULL, false},
    {"own:launches-500", "OWN", launches, NULL, false},
    {"own:eager", "OWN", eager, NULL, false},
    {"own:exec-destroy-idle", "OWN", exec_destroy_idle, NULL, false},
    {"own:exec-destroy-in-flight", "OWN", exec_destroy_in_flight, NULL, false},
    {"own:node-questions", "OWN", node_questions, NULL, false},
    {"own:function-questions", "OWN", function_questions, NULL, false},
    {"own:kernel-questions", "OWN", kernel_questions, NULL, false},
    {"own:stream-questions", "OWN", stream_questions, NULL, false},
    {"own:context-questions", "OWN", context_questions, NULL, false},
    {"own:memory-questions", "OWN", memory_questions, NULL, false},
    {"first:cuFuncGetAttribute", "FIRST", first_attribute, NULL, false},
    {"first:cuFuncGetName", "FIRST", first_name, NULL, false},
    {"first:cuKernelGetFunction", "FIRST", first_function, NULL, false},
    {"first:cuLaunchKernel", "FIRST", first_launch, NULL, false},
    {"deep:instantiate-1000-times-20", "DEEP", instantiate_often, NULL, false},
    {"deep:patched-relaunch-2000", "DEEP", relaunch_deep, NULL, false},
    {"deep:launches-2000", "DEEP", launches_deep, NULL, false},
    {NULL, NULL, NULL, NULL, false},
};
