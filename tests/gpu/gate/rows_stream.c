/* Streams, launches, captures. Queries about a stream use the stream on which the gate spins. */
#include "tests/gpu/gate/gate.h"

#include <string.h>

ROW(cuStreamCreate) {
    GATE(cuStreamCreate, (OUT(CUstream, 0), CU_STREAM_NON_BLOCKING));
    TRY(cuStreamDestroy_v2, (*OUT(CUstream, 0)));
}
ROW(cuStreamCreateWithPriority) {
    GATE(cuStreamCreateWithPriority, (OUT(CUstream, 0), CU_STREAM_NON_BLOCKING, 0));
    TRY(cuStreamDestroy_v2, (*OUT(CUstream, 0)));
}
#define DESTROY(symbol)                                                                            \
    ROW(symbol) {                                                                                  \
        CUstream stream = gate_stream(g);                                                          \
        GATE_END(symbol, (stream));                                                                \
    }
DESTROY(cuStreamDestroy)
DESTROY(cuStreamDestroy_v2)

TWINS(cuStreamQuery, (g->busy))
TWINS(cuStreamSynchronize, (g->busy))
TWINS(cuStreamGetCtx, (g->busy, OUT(CUcontext, 0)))
TWINS(cuStreamGetCtx_v2, (g->busy, OUT(CUcontext, 0), OUT(CUgreenCtx, 1)))
TWINS(cuStreamGetDevice, (g->busy, OUT(CUdevice, 0)))
TWINS(cuStreamGetFlags, (g->busy, OUT(unsigned, 0)))
TWINS(cuStreamGetId, (g->busy, OUT(unsigned long long, 0)))
TWINS(cuStreamGetPriority, (g->busy, OUT(int, 0)))
SIMPLE(cuStreamGetGreenCtx, (g->busy, OUT(CUgreenCtx, 0)))
TWINS(cuStreamIsCapturing, (g->busy, OUT(CUstreamCaptureStatus, 0)))
TWINS(cuStreamGetAttribute,
      (g->busy, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, OUT(CUstreamAttrValue, 0)))
#define SET_ATTRIBUTE(symbol)                                                                      \
    ROW(symbol) {                                                                                  \
        TRY(cuStreamGetAttribute,                                                                  \
            (g->busy, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, OUT(CUstreamAttrValue, 0)));            \
        GATE(symbol, (g->busy, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, OUT(CUstreamAttrValue, 0)));   \
    }
SET_ATTRIBUTE(cuStreamSetAttribute)
SET_ATTRIBUTE(cuStreamSetAttribute_ptsz)
TWINS(cuStreamCopyAttributes, (g->side, g->busy))
TWINS(cuStreamGetCaptureInfo, (g->busy, OUT(CUstreamCaptureStatus, 0), OUT(cuuint64_t, 1)))
TWINS(cuStreamGetCaptureInfo_v2, (g->busy, OUT(CUstreamCaptureStatus, 0), OUT(cuuint64_t, 1),
                                  OUT(CUgraph, 2), OUT(const CUgraphNode *, 3), OUT(size_t, 4)))
TWINS(cuStreamGetCaptureInfo_v3,
      (g->busy, OUT(CUstreamCaptureStatus, 0), OUT(cuuint64_t, 1), OUT(CUgraph, 2),
       OUT(const CUgraphNode *, 3), OUT(const CUgraphEdgeData *, 4), OUT(size_t, 5)))

/* ---- captures of this thread ---- */

static CUstream capturing(struct gate *g) {
    CUstream stream = gate_stream(g);
    void *parameters[] = {&g->memory2};
    TRY(cuStreamBeginCapture_v2, (stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    TRY(cuLaunchKernel, (g->touch, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    return stream;
}
static void capture_over(struct gate *g, CUstream stream) {
    CUgraph graph = NULL;
    TRY(cuStreamEndCapture, (stream, &graph));
    TRY(cuGraphDestroy, (graph));
    TRY(cuStreamDestroy_v2, (stream));
}
#define BEGIN(symbol, arguments)                                                                   \
    ROW(symbol) {                                                                                  \
        CUstream stream = gate_stream(g);                                                          \
        GATE(symbol, arguments);                                                                   \
        capture_over(g, stream);                                                                   \
    }
BEGIN(cuStreamBeginCapture, (stream))
BEGIN(cuStreamBeginCapture_ptsz, (stream))
BEGIN(cuStreamBeginCapture_v2, (stream, CU_STREAM_CAPTURE_MODE_GLOBAL))
BEGIN(cuStreamBeginCapture_v2_ptsz, (stream, CU_STREAM_CAPTURE_MODE_GLOBAL))
#define BEGIN_TO(symbol)                                                                           \
    ROW(symbol) {                                                                                  \
        CUstream stream = gate_stream(g);                                                          \
        CUgraph graph = NULL, same = NULL;                                                         \
        TRY(cuGraphCreate, (&graph, 0));                                                           \
        GATE(symbol, (stream, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));               \
        TRY(cuStreamEndCapture, (stream, &same));                                                  \
        TRY(cuGraphDestroy, (graph));                                                              \
        TRY(cuStreamDestroy_v2, (stream));                                                         \
    }
BEGIN_TO(cuStreamBeginCaptureToGraph)
BEGIN_TO(cuStreamBeginCaptureToGraph_ptsz)
#define END(symbol)                                                                                \
    ROW(symbol) {                                                                                  \
        CUstream stream = capturing(g);                                                            \
        GATE(symbol, (stream, OUT(CUgraph, 0)));                                                   \
        TRY(cuGraphDestroy, (*OUT(CUgraph, 0)));                                                   \
        TRY(cuStreamDestroy_v2, (stream));                                                         \
    }
END(cuStreamEndCapture)
END(cuStreamEndCapture_ptsz)
#define UPDATE(symbol, arguments)                                                                  \
    ROW(symbol) {                                                                                  \
        CUstream stream = capturing(g);                                                            \
        GATE(symbol, arguments);                                                                   \
        capture_over(g, stream);                                                                   \
    }
UPDATE(cuStreamUpdateCaptureDependencies, (stream, NULL, 0, 0))
UPDATE(cuStreamUpdateCaptureDependencies_ptsz, (stream, NULL, 0, 0))
UPDATE(cuStreamUpdateCaptureDependencies_v2, (stream, NULL, NULL, 0, 0))
UPDATE(cuStreamUpdateCaptureDependencies_v2_ptsz, (stream, NULL, NULL, 0, 0))

/* ---- work on an idle stream ---- */

#define WAIT_EVENT(symbol)                                                                         \
    ROW(symbol) {                                                                                  \
        CUevent event = gate_event_behind(g);                                                      \
        GATE(symbol, (g->side, event, 0));                                                         \
        TRY(cuEventDestroy_v2, (event));                                                           \
    }
WAIT_EVENT(cuStreamWaitEvent)
WAIT_EVENT(cuStreamWaitEvent_ptsz)
static void called_back(CUstream stream, CUresult status, void *data) {
    (void)stream, (void)status, (void)data;
}
TWINS(cuStreamAddCallback, (g->side, called_back, NULL, 0))
TWINS(cuLaunchHostFunc, (g->side, gate_nothing, NULL))

/* memory holds zeros or small numbers: every value is at least 0. */
#define VALUES(version)                                                                            \
    TWINS(cuStreamWaitValue32##version, (g->side, g->memory, 0, CU_STREAM_WAIT_VALUE_GEQ))         \
    TWINS(cuStreamWaitValue64##version, (g->side, g->memory, 0, CU_STREAM_WAIT_VALUE_GEQ))         \
    TWINS(cuStreamWriteValue32##version, (g->side, g->memory, 1, 0))                               \
    TWINS(cuStreamWriteValue64##version, (g->side, g->memory, 1, 0))
VALUES()
VALUES(_v2)
#define BATCH(symbol)                                                                              \
    ROW(symbol) {                                                                                  \
        CUstreamBatchMemOpParams *one = OUT(CUstreamBatchMemOpParams, 0);                          \
        one->writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;                               \
        one->writeValue.address = g->memory;                                                       \
        one->writeValue.value = 1;                                                                 \
        GATE(symbol, (g->side, 1, one, 0));                                                        \
    }
BATCH(cuStreamBatchMemOp)
BATCH(cuStreamBatchMemOp_ptsz)
BATCH(cuStreamBatchMemOp_v2)
BATCH(cuStreamBatchMemOp_v2_ptsz)
#define ATTACH(symbol)                                                                             \
    ROW(symbol) {                                                                                  \
        CUdeviceptr managed = gate_managed(g);                                                     \
        GATE(symbol, (g->side, managed, 0, CU_MEM_ATTACH_GLOBAL));                                 \
        TRY(cuMemFree_v2, (managed));                                                              \
    }
ATTACH(cuStreamAttachMemAsync)
ATTACH(cuStreamAttachMemAsync_ptsz)

#define LAUNCH(symbol, arguments)                                                                  \
    ROW(symbol) {                                                                                  \
        void *parameters[] = {&g->memory2};                                                        \
        GATE(symbol, arguments);                                                                   \
    }
LAUNCH(cuLaunchKernel, (g->touch, 1, 1, 1, 1, 1, 1, 0, g->side, parameters, NULL))
LAUNCH(cuLaunchKernel_ptsz, (g->touch, 1, 1, 1, 1, 1, 1, 0, g->side, parameters, NULL))
LAUNCH(cuLaunchCooperativeKernel, (g->touch, 1, 1, 1, 1, 1, 1, 0, g->side, parameters))
LAUNCH(cuLaunchCooperativeKernel_ptsz, (g->touch, 1, 1, 1, 1, 1, 1, 0, g->side, parameters))
#define LAUNCH_EX(symbol)                                                                          \
    ROW(symbol) {                                                                                  \
        void *parameters[] = {&g->memory2};                                                        \
        CUlaunchConfig config = {.gridDimX = 1,                                                    \
                                 .gridDimY = 1,                                                    \
                                 .gridDimZ = 1,                                                    \
                                 .blockDimX = 1,                                                   \
                                 .blockDimY = 1,                                                   \
                                 .blockDimZ = 1,                                                   \
                                 .hStream = g->side};                                              \
        GATE(symbol, (&config, g->touch, parameters, NULL));                                       \
    }
LAUNCH_EX(cuLaunchKernelEx)
LAUNCH_EX(cuLaunchKernelEx_ptsz)
ROW(cuLaunchCooperativeKernelMultiDevice) {
    void *parameters[] = {&g->memory2};
    CUDA_LAUNCH_PARAMS launch = {.function = g->touch,
                                 .gridDimX = 1,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 1,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .hStream = g->side,
                                 .kernelParams = parameters};
    GATE(cuLaunchCooperativeKernelMultiDevice, (&launch, 1, 0));
}

/* ---- the old way to launch, which keeps its state in the function ---- */

#define OLD(symbol, arguments)                                                                     \
    ROW(symbol) {                                                                                  \
        CUmodule module;                                                                           \
        CUfunction function = gate_fresh_function(g, &module);                                     \
        TRY(cuFuncSetBlockShape, (function, 1, 1, 1));                                             \
        TRY(cuParamSetv, (function, 0, &g->memory2, sizeof g->memory2));                           \
        TRY(cuParamSetSize, (function, sizeof g->memory2));                                        \
        GATE(symbol, arguments);                                                                   \
        TRY(cuCtxSynchronize, ());                                                                 \
        TRY(cuModuleUnload, (module));                                                             \
    }
OLD(cuFuncSetBlockShape, (function, 1, 1, 1))
OLD(cuFuncSetSharedSize, (function, 0))
OLD(cuParamSetSize, (function, sizeof g->memory2))
OLD(cuParamSeti, (function, 0, 1))
OLD(cuParamSetf, (function, 0, 1.0f))
OLD(cuParamSetv, (function, 0, &g->memory2, sizeof g->memory2))
OLD(cuLaunch, (function))
OLD(cuLaunchGrid, (function, 1, 1))
OLD(cuLaunchGridAsync, (function, 1, 1, g->side))
