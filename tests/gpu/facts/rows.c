/*
 * Nodes of 2-D memsets: what a captured one says of itself, and what it may be given. Only the
 * thread of the trial runs it.
 */
#include "tests/gpu/facts/facts.h"

#include <string.h>

enum { WIDTH = 24, HEIGHT = 4, VALUE = 7, OTHER = 9, ROOM = 1024 };

struct rows {
    size_t pitch, height;
    CUDA_MEMSET_NODE_PARAMS node;
    CUgraphNode handle;
    CUgraphExec exec;
};

static void make(struct rows *rows) {
    CUgraph graph = NULL;
    size_t n = 1;
    CALL(cuStreamBeginCapture_v2, (lab.b, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuMemsetD2D8Async, (lab.memory, rows->pitch, VALUE, WIDTH, rows->height, lab.b));
    CALL(cuStreamEndCapture, (lab.b, &graph));
    CALL(cuGraphGetNodes, (graph, &rows->handle, &n));
    CALL(cuGraphMemsetNodeGetParams, (rows->handle, &rows->node));
    CALL(cuGraphInstantiateWithFlags, (&rows->exec, graph, 0));
}

static bool as_called(const struct rows *rows) {
    const CUDA_MEMSET_NODE_PARAMS *node = &rows->node;
    return node->dst == lab.memory && node->elementSize == 1 && node->width == WIDTH &&
           node->height == rows->height && (rows->height == 1 || node->pitch == rows->pitch) &&
           node->value == VALUE;
}

static CUresult set(const struct rows *rows, const CUDA_MEMSET_NODE_PARAMS *params) {
    fact_step("cuGraphExecMemsetNodeSetParams");
    return cu.cuGraphExecMemsetNodeSetParams(rows->exec, rows->handle, params, lab.context);
}

/* Does the launch write these rows with this value, and nothing else of the first ROOM bytes? */
static const char *writes(const struct rows *rows, size_t at, unsigned char value) {
    unsigned char have[ROOM], wanted[ROOM] = {0};
    CALL(cuMemsetD8Async, (lab.memory, 0, ROOM, lab.b));
    CALL(cuGraphLaunch, (rows->exec, lab.b));
    CALL(cuStreamSynchronize, (lab.b));
    CALL(cuMemcpyDtoH_v2, (have, lab.memory, ROOM));
    for (size_t row = 0; row < rows->height; row++)
        memset(wanted + at + row * rows->pitch, value, WIDTH);
    return memcmp(have, wanted, ROOM) == 0 ? "as asked" : "ELSE";
}

static void patched(int pitch_and_height) {
    enum { AT = 128 };
    struct rows rows = {.pitch = (size_t)pitch_and_height / 16,
                        .height = (size_t)pitch_and_height % 16};
    make(&rows);
    CUDA_MEMSET_NODE_PARAMS to = rows.node, wider = to, higher = to, apart = to;
    const char *same = fact_code(set(&rows, &to)), *first = writes(&rows, 0, VALUE);
    to.dst += AT;
    to.value = OTHER;
    const char *moved = fact_code(set(&rows, &to)), *then = writes(&rows, AT, OTHER);
    wider.width++;
    higher.height++;
    apart.pitch += 64;
    fact_say("the node is %s; the same params: %s, writes %s; another address and value: %s, "
             "writes %s",
             as_called(&rows) ? "as the call" : "ELSE", same, first, moved, then);
    fact_detail("%u bytes an element, %zu x %zu, pitch %zu; another width %s, height %s, pitch %s",
                rows.node.elementSize, rows.node.width, rows.node.height, rows.node.pitch,
                fact_code(set(&rows, &wider)), fact_code(set(&rows, &higher)),
                fact_code(set(&rows, &apart)));
}

const struct fact_trial fact_rows[] = {
    {"memset-rows/apart", patched, 64 * 16 + HEIGHT, 0},
    {"memset-rows/touching", patched, WIDTH * 16 + HEIGHT, 0},
    {"memset-rows/one", patched, 64 * 16 + 1, 0},
    {0},
};
