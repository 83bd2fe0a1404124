/* Copies and memsets, on the idle stream or the legacy stream. */
#include "tests/gpu/gate/gate.h"

enum { BYTES = 1024 };

/* Both forms of a call without a stream, and of one with. */
#define DEFAULTS(symbol, arguments)                                                                \
    SIMPLE(symbol, arguments)                                                                      \
    SIMPLE(symbol##_ptds, arguments)

DEFAULTS(cuMemcpy, (g->memory2 + 4096, g->memory, BYTES))
TWINS(cuMemcpyAsync, (g->memory2 + 4096, g->memory, BYTES, g->side))
DEFAULTS(cuMemcpyDtoD_v2, (g->memory2 + 4096, g->memory, BYTES))
TWINS(cuMemcpyDtoDAsync_v2, (g->memory2 + 4096, g->memory, BYTES, g->side))
DEFAULTS(cuMemcpyDtoH_v2, (g->pageable, g->memory, BYTES))
TWINS(cuMemcpyDtoHAsync_v2, (g->pinned, g->memory, BYTES, g->side))
DEFAULTS(cuMemcpyHtoD_v2, (g->memory, g->pageable, BYTES))
TWINS(cuMemcpyHtoDAsync_v2, (g->memory, g->pinned, BYTES, g->side))
DEFAULTS(cuMemcpyPeer, (g->memory2 + 4096, g->context, g->memory, g->context, BYTES))
TWINS(cuMemcpyPeerAsync, (g->memory2 + 4096, g->context, g->memory, g->context, BYTES, g->side))

/* ---- arrays ---- */

#define ARRAYS(symbol, arguments)                                                                  \
    ROW(symbol) {                                                                                  \
        CUarray array = gate_array_1d(g), other = gate_array_1d(g);                                \
        GATE(symbol, arguments);                                                                   \
        TRY(cuCtxSynchronize, ());                                                                 \
        TRY(cuArrayDestroy, (array));                                                              \
        TRY(cuArrayDestroy, (other));                                                              \
    }
#define ARRAYS_DEFAULTS(symbol, arguments)                                                         \
    ARRAYS(symbol, arguments)                                                                      \
    ARRAYS(symbol##_ptds, arguments)
#define ARRAYS_TWINS(symbol, arguments)                                                            \
    ARRAYS(symbol, arguments)                                                                      \
    ARRAYS(symbol##_ptsz, arguments)
ARRAYS_DEFAULTS(cuMemcpyAtoA_v2, (array, 0, other, 0, BYTES))
ARRAYS_DEFAULTS(cuMemcpyAtoD_v2, (g->memory, array, 0, BYTES))
ARRAYS_DEFAULTS(cuMemcpyDtoA_v2, (array, 0, g->memory, BYTES))
ARRAYS_DEFAULTS(cuMemcpyAtoH_v2, (g->pageable, array, 0, BYTES))
ARRAYS_DEFAULTS(cuMemcpyHtoA_v2, (array, 0, g->pageable, BYTES))
ARRAYS_TWINS(cuMemcpyAtoHAsync_v2, (g->pinned, array, 0, BYTES, g->side))
ARRAYS_TWINS(cuMemcpyHtoAAsync_v2, (array, 0, g->pinned, BYTES, g->side))
ARRAYS(cuMemcpyAtoA, (array, 0, other, 0, BYTES))
ARRAYS(cuMemcpyAtoH, (g->pageable, array, 0, BYTES))
ARRAYS(cuMemcpyHtoA, (array, 0, g->pageable, BYTES))
ARRAYS(cuMemcpyAtoHAsync, (g->pinned, array, 0, BYTES, g->side))
ARRAYS(cuMemcpyHtoAAsync, (array, 0, g->pinned, BYTES, g->side))

/* ---- two and three dimensions ---- */

static CUDA_MEMCPY2D *copy_2d(struct gate *g) {
    CUDA_MEMCPY2D *copy = OUT(CUDA_MEMCPY2D, 0);
    *copy = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = g->memory,
                            .srcPitch = 256,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstDevice = g->memory2 + 4096,
                            .dstPitch = 512,
                            .WidthInBytes = 100,
                            .Height = 10};
    return copy;
}
static CUDA_MEMCPY3D *copy_3d(struct gate *g) {
    CUDA_MEMCPY3D *copy = OUT(CUDA_MEMCPY3D, 0);
    *copy = gate_memcpy_params(g);
    return copy;
}
static CUDA_MEMCPY3D_PEER *copy_3d_peer(struct gate *g) {
    CUDA_MEMCPY3D_PEER *copy = OUT(CUDA_MEMCPY3D_PEER, 0);
    *copy = (CUDA_MEMCPY3D_PEER){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .srcDevice = g->memory,
                                 .srcContext = g->context,
                                 .srcPitch = 256,
                                 .srcHeight = 1,
                                 .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .dstDevice = g->memory2 + 4096,
                                 .dstContext = g->context,
                                 .dstPitch = 256,
                                 .dstHeight = 1,
                                 .WidthInBytes = 256,
                                 .Height = 1,
                                 .Depth = 1};
    return copy;
}
DEFAULTS(cuMemcpy2D_v2, (copy_2d(g)))
DEFAULTS(cuMemcpy2DUnaligned_v2, (copy_2d(g)))
TWINS(cuMemcpy2DAsync_v2, (copy_2d(g), g->side))
DEFAULTS(cuMemcpy3D_v2, (copy_3d(g)))
TWINS(cuMemcpy3DAsync_v2, (copy_3d(g), g->side))
DEFAULTS(cuMemcpy3DPeer, (copy_3d_peer(g)))
TWINS(cuMemcpy3DPeerAsync, (copy_3d_peer(g), g->side))

/* ---- batches ---- */

#define BATCH(symbol, arguments)                                                                   \
    ROW(symbol) {                                                                                  \
        CUdeviceptr to = g->memory2 + 4096, from = g->memory;                                      \
        CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};            \
        size_t bytes = BYTES, index = 0;                                                           \
        GATE(symbol, arguments);                                                                   \
    }
BATCH(cuMemcpyBatchAsync, (&to, &from, &bytes, 1, &how, &index, 1, OUT(size_t, 0), g->side))
BATCH(cuMemcpyBatchAsync_ptsz, (&to, &from, &bytes, 1, &how, &index, 1, OUT(size_t, 0), g->side))
BATCH(cuMemcpyBatchAsync_v2, (&to, &from, &bytes, 1, &how, &index, 1, g->side))
BATCH(cuMemcpyBatchAsync_v2_ptsz, (&to, &from, &bytes, 1, &how, &index, 1, g->side))
static CUDA_MEMCPY3D_BATCH_OP *batch_3d(struct gate *g) {
    CUDA_MEMCPY3D_BATCH_OP *copy = OUT(CUDA_MEMCPY3D_BATCH_OP, 1);
    copy->src.type = copy->dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    copy->src.op.ptr.ptr = g->memory;
    copy->dst.op.ptr.ptr = g->memory2 + 4096;
    copy->src.op.ptr.locHint = copy->dst.op.ptr.locHint = gate_location(g);
    copy->extent.width = BYTES;
    copy->extent.height = copy->extent.depth = 1;
    copy->srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    return copy;
}
TWINS(cuMemcpy3DBatchAsync, (1, batch_3d(g), OUT(size_t, 0), 0, g->side))
TWINS(cuMemcpy3DBatchAsync_v2, (1, batch_3d(g), 0, g->side))

/* ---- memsets ---- */

DEFAULTS(cuMemsetD8_v2, (g->memory, 1, BYTES))
DEFAULTS(cuMemsetD16_v2, (g->memory, 1, BYTES))
DEFAULTS(cuMemsetD32_v2, (g->memory, 1, BYTES))
DEFAULTS(cuMemsetD2D8_v2, (g->memory, 512, 1, 64, 8))
DEFAULTS(cuMemsetD2D16_v2, (g->memory, 512, 1, 64, 8))
DEFAULTS(cuMemsetD2D32_v2, (g->memory, 512, 1, 64, 8))
TWINS(cuMemsetD8Async, (g->memory, 1, BYTES, g->side))
TWINS(cuMemsetD16Async, (g->memory, 1, BYTES, g->side))
TWINS(cuMemsetD32Async, (g->memory, 1, BYTES, g->side))
TWINS(cuMemsetD2D8Async, (g->memory, 512, 1, 64, 8, g->side))
TWINS(cuMemsetD2D16Async, (g->memory, 512, 1, 64, 8, g->side))
TWINS(cuMemsetD2D32Async, (g->memory, 512, 1, 64, 8, g->side))
