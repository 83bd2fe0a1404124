/*
 * Which dynamic shared memory and which block a kernel node of an exec can be given, what the
 * driver says beyond, and what such an exec launches then. Only the thread of the trial runs it.
 */
#include "tests/gpu/facts/facts.h"

#include <stdio.h>

/* Kernels that write what they were launched with: dynamic shared memory and the block. */
#define TELL(name, bound)                                                                          \
    ".visible .entry " name "(.param .u64 p)\n" bound "{\n"                                        \
    "  .reg .b64 %a;\n  .reg .b32 %v, %x, %y;\n"                                                   \
    "  ld.param.u64 %a, [p];\n"                                                                    \
    "  cvta.to.global.u64 %a, %a;\n"                                                               \
    "  mov.u32 %v, %dynamic_smem_size;\n"                                                          \
    "  st.global.u32 [%a], %v;\n"                                                                  \
    "  mov.u32 %x, %ntid.x;\n  mov.u32 %y, %ntid.y;\n"                                             \
    "  st.global.u32 [%a+4], %x;\n"                                                                \
    "  st.global.u32 [%a+8], %y;\n"                                                                \
    "  ret;\n}\n"
static const char tell_ptx[] = GATE_PTX_HEAD TELL("tell", "")
    TELL("tell_most", ".maxntid 128, 1, 1\n") TELL("tell_exact", ".reqntid 64, 1, 1\n");

enum { PLAIN, BY_FUNCTION, BY_KERNEL, BEFORE };

static struct {
    CUfunction function;
    CUkernel kernel;
    CUdeviceptr out;
    CUgraphNode node;
    CUgraphExec exec;
    bool tells;
    unsigned block_x;
} shape;

static CUresult shape_load(const char *name) {
    CUlibrary library = NULL;
    fact_step("cuLibraryLoadData");
    CUresult code = cu.cuLibraryLoadData(&library, tell_ptx, NULL, NULL, 0, NULL, NULL, 0);
    if (code == CUDA_SUCCESS)
        code = cu.cuLibraryGetKernel(&shape.kernel, library, name);
    if (code == CUDA_SUCCESS)
        code = cu.cuKernelGetFunction(&shape.function, shape.kernel);
    shape.tells = code == CUDA_SUCCESS;
    return code;
}

static CUDA_KERNEL_NODE_PARAMS shape_params(unsigned x, unsigned y, unsigned shared) {
    static void *parameters[] = {&shape.out};
    CUDA_KERNEL_NODE_PARAMS node = {.func = shape.function,
                                    .gridDimX = 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = x,
                                    .blockDimY = y,
                                    .blockDimZ = 1,
                                    .sharedMemBytes = shared,
                                    .kernelParams = parameters};
    return node;
}

static void shape_make(void) {
    struct fact_chain chain = fact_chain();
    CUDA_KERNEL_NODE_PARAMS node = shape_params(shape.block_x, 1, 0);
    shape.out = lab.memory + 16384;
    CALL(cuGraphAddKernelNode_v2, (&shape.node, chain.graph, NULL, 0, &node));
    shape.exec = fact_chain_exec(&chain);
}

static CUresult shape_set(unsigned x, unsigned y, unsigned shared) {
    CUDA_KERNEL_NODE_PARAMS node = shape_params(x, y, shared);
    fact_step("cuGraphExecKernelNodeSetParams_v2");
    return cu.cuGraphExecKernelNodeSetParams_v2(shape.exec, shape.node, &node);
}

/* What the exec launches now. */
static const char *shape_run(void) {
    static char texts[4][160];
    static unsigned next;
    char *text = texts[next++ % 4];
    unsigned seen[3] = {0, 0, 0};
    fact_step("cuGraphLaunch");
    CUresult code = cu.cuGraphLaunch(shape.exec, lab.a);
    if (code == CUDA_SUCCESS) {
        fact_step("cuStreamSynchronize");
        code = cu.cuStreamSynchronize(lab.a);
    }
    if (code == CUDA_SUCCESS)
        code = cu.cuMemcpyDtoH_v2(seen, shape.out, sizeof seen);
    if (code != CUDA_SUCCESS)
        snprintf(text, sizeof texts[0], "gives %s", fact_code(code));
    else
        snprintf(text, sizeof texts[0], "runs with %u bytes and a block of %u x %u", seen[0],
                 seen[1], seen[2]);
    return text;
}

/* A plain launch of the same. */
static CUresult shape_plain(unsigned x, unsigned y, unsigned shared) {
    void *parameters[] = {&shape.out};
    fact_step("cuLaunchKernel");
    return cu.cuLaunchKernel(shape.function, 1, 1, 1, x, y, 1, shared, lab.a, parameters, NULL);
}

static bool shape_open(const char *name, unsigned block_x) {
    CUresult code = shape_load(name);
    if (code != CUDA_SUCCESS) {
        fact_detail("the kernel %s: %s", name, fact_code(code));
        return false;
    }
    shape.block_x = block_x;
    return true;
}

/* The largest value that the node is given without an error, and the first error beyond. */
static unsigned shape_most(unsigned top, bool block, CUresult *beyond) {
    unsigned good = 0, bad = top;
    *beyond = CUDA_SUCCESS;
    while (bad - good > 1) {
        unsigned middle = good + (bad - good) / 2;
        CUresult code = block ? shape_set(middle, 1, 0) : shape_set(shape.block_x, 1, middle);
        if (code == CUDA_SUCCESS)
            good = middle;
        else
            bad = middle;
        if (code != CUDA_SUCCESS)
            *beyond = code;
    }
    return good;
}

/* ---- dynamic shared memory ---- */

static void shared_memory(int how) {
    int optin = 0, limit = 0;
    CUresult beyond, set = CUDA_SUCCESS;
    if (!shape_open("tell", 1))
        return;
    CALL(cuDeviceGetAttribute,
         (&optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, lab.device));
    if (how == BEFORE)
        set = cu.cuFuncSetAttribute(shape.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    optin);
    shape_make();
    if (how == BY_FUNCTION)
        set = cu.cuFuncSetAttribute(shape.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    optin);
    if (how == BY_KERNEL)
        set = cu.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, optin,
                                      shape.kernel, lab.device);
    if (set != CUDA_SUCCESS)
        fact_give_up("setting the attribute", set);
    CALL(cuFuncGetAttribute,
         (&limit, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shape.function));
    unsigned most = shape_most(1 << 20, false, &beyond);
    CUresult at = shape_set(1, 1, most);
    const char *there = shape_run();
    CUresult refused = shape_set(1, 1, most + 4);
    const char *then = shape_run();
    fact_say("accepted up to %u bytes (attribute %d), beyond %s", most, limit, fact_code(beyond));
    fact_detail("set to %u: %s, the launch %s; set to %u: %s, the launch %s; plain launches: %s, "
                "%s",
                most, fact_code(at), there, most + 4, fact_code(refused), then,
                fact_code(shape_plain(1, 1, most)), fact_code(shape_plain(1, 1, most + 4)));
}

/* The limit is lowered behind a patch that it allowed. */
static void lowered(int arg) {
    (void)arg;
    if (!shape_open("tell", 1))
        return;
    CALL(cuFuncSetAttribute,
         (shape.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536));
    shape_make();
    CUresult first = shape_set(1, 1, 65536);
    CUresult lower = cu.cuFuncSetAttribute(shape.function,
                                           CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024);
    const char *run = shape_run();
    CUresult second = shape_set(1, 1, 32768);
    fact_say("set to 65536: %s; the attribute lowered to 1024: %s, the launch %s", fact_code(first),
             fact_code(lower), run);
    fact_detail("then set to 32768: %s, plain %s", fact_code(second),
                fact_code(shape_plain(1, 1, 32768)));
}

/* ---- blocks ---- */

enum { ANY, AT_MOST, EXACT };

static void block(int kind) {
    static const char *const names[] = {"tell", "tell_most", "tell_exact"};
    CUresult beyond;
    int limit = 0;
    if (!shape_open(names[kind], kind == EXACT ? 64 : 32))
        return;
    shape_make();
    CALL(cuFuncGetAttribute, (&limit, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, shape.function));
    CUresult less = shape_set(16, 1, 0);
    const char *small = shape_run();
    shape_set(shape.block_x, 1, 0);
    unsigned most = shape_most(4096, true, &beyond);
    CUresult good = shape_set(most ? most : shape.block_x, 1, 0);
    CUresult two = shape_set(8, 4, 0);
    const char *square = shape_run();
    CUresult refused = shape_set((unsigned)limit + 32, 1, 0);
    const char *then = shape_run();
    CUresult product = shape_set(64, 64, 0);
    fact_say("accepted up to %u threads (attribute %d), beyond %s", most, limit, fact_code(beyond));
    fact_detail("16: %s, the launch %s; %u: %s; 8 x 4: %s, the launch %s; %d: %s, the launch %s; "
                "64 x 64: %s; plain 16: %s, %d: %s",
                fact_code(less), small, most, fact_code(good), fact_code(two), square, limit + 32,
                fact_code(refused), then, fact_code(product), fact_code(shape_plain(16, 1, 0)),
                limit + 32, fact_code(shape_plain((unsigned)limit + 32, 1, 0)));
}

const struct fact_trial fact_shape[] = {
    {"shared-default", shared_memory, PLAIN, 0},
    {"shared-function-before", shared_memory, BEFORE, 0},
    {"shared-function-after", shared_memory, BY_FUNCTION, 0},
    {"shared-kernel-after", shared_memory, BY_KERNEL, 0},
    {"shared-lowered", lowered, 0, 0},
    {"block-any", block, ANY, 0},
    {"block-maxntid", block, AT_MOST, 0},
    {"block-reqntid", block, EXACT, 0},
    {0},
};
