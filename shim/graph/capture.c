/*
 * Captures ops as a graph, and finds out which node stands for which op. exec.c calls it during a
 * build, under the lock of the graph's engine. It captures on a private stream in RELAXED mode, so
 * that it and captures of the program do not disturb each other (HAZARDS D2).
 */
#include "shim/graph/capture.h"

#include <string.h>

#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/graph/chain.h"
#include "shim/graph/edges.h"
#include "shim/graph/issue.h"

/* Places of ops: of none, and of one that is not asked about. */
#define NO_OP UINT32_MAX
#define ANY_OP (UINT32_MAX - 1)

/* ---- a row ----
 *
 * If other threads launch meanwhile, each driver call waits for the driver's lock. A build makes
 * one call for each node, and a few more. */

static bool begin_capture(const struct cus_driver *driver, CUstream stream, cus_exec_clock *clock,
                          struct cus_capture *to) {
    uint64_t since = clock ? clock() : 0;
    if (driver->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS)
        return false;
    to->waited_ns += clock ? clock() - since : 0;
    return true;
}

static bool end_capture(const struct cus_driver *driver, CUstream stream, struct cus_capture *to) {
    if (driver->cuStreamEndCapture(stream, &to->graph) != CUDA_SUCCESS)
        to->graph = NULL;
    return to->graph != NULL;
}

/* The node that the capture added last. */
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

/* How many nodes op `i` must wait for beside the one before it; these begin at `open` (see
 * capture_ops). */
static uint32_t n_open(const struct cus_exec_op *ops, uint32_t open, uint32_t i) {
    return CUS_HAZARD(A4) && !ops[i].kind->pdl && i > open + 1 ? i - 1 - open : 0;
}

/* A kernel behind a programmatic launch (PDL) is ordered only behind that launch, which may end
 * before its own predecessors do. So the next op without the attribute must wait for all of them
 * (HAZARDS A4). */
static bool capture_ops(const struct cus_driver *driver, CUstream stream,
                        const struct cus_exec_op *ops, uint32_t n, bool each,
                        struct cus_capture *to) {
    /* Nodes from here on may still run when the last one has ended. */
    uint32_t open = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t also = n_open(ops, open, i);
        if (also && driver->cuStreamUpdateCaptureDependencies_v2(
                        stream, &to->nodes[open], NULL, also, CU_STREAM_ADD_CAPTURE_DEPENDENCIES) !=
                        CUDA_SUCCESS)
            return false;
        if (!ops[i].kind->pdl)
            open = i;
        /* The edges tell the other nodes once all are captured. */
        bool wanted = each || i + 1 == n || ops[i + 1].kind->pdl;
        if (cus_issue_into_capture(driver, ops[i].kind, ops[i].values, stream) != CUDA_SUCCESS ||
            (wanted && !last_captured(driver, stream, &to->nodes[i])))
            return false;
    }
    return true;
}

/* `each`: ask the driver for each node directly after its capture. */
static bool capture(const struct cus_driver *driver, CUstream stream, const struct cus_exec_op *ops,
                    uint32_t n, bool each, cus_exec_clock *clock, struct cus_capture *to) {
    if (!begin_capture(driver, stream, clock, to))
        return false;
    bool captured = capture_ops(driver, stream, ops, n, each, to);
    return end_capture(driver, stream, to) && captured;
}

/* Number of edges that the capture makes: each op is behind the one before it, and some ops are
 * behind further ones. */
static uint32_t edges_expected(const struct cus_exec_op *ops, uint32_t n) {
    uint32_t expected = n - 1, open = 0;
    for (uint32_t i = 0; i < n; i++) {
        expected += n_open(ops, open, i);
        if (!ops[i].kind->pdl)
            open = i;
    }
    return expected;
}

static bool known_agree(const CUgraphNode *known, const CUgraphNode *order, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (known[i] && known[i] != order[i])
            return false;
    return true;
}

/* Finds out which node stands for which op: n ops made n nodes, each behind the one before. False:
 * the edges do not tell, or their number is wrong. */
static bool tell_nodes(const struct cus_driver *driver, const struct cus_exec_op *ops, uint32_t n,
                       struct cus_capture *to) {
    if (n == 1)
        return true;                                        /* the last node is known */
    size_t room = edges_expected(ops, n) + 1, found = room; /* shows one edge too many */
    struct {
        CUgraphNode *from, *to, *order;
        CUgraphEdgeData *data;
    } all;
    all.from =
        cus_mem_alloc(room * (2 * sizeof *all.from + sizeof *all.data) + n * sizeof *all.order);
    if (!all.from)
        return false;
    all.to = all.from + room;
    all.order = all.to + room;
    all.data = (CUgraphEdgeData *)(all.order + n);
    bool told =
        driver->cuGraphGetEdges_v2(to->graph, all.from, all.to, all.data, &found) == CUDA_SUCCESS &&
        found < room && cus_chain_order(all.from, all.to, (uint32_t)found, n, all.order) &&
        known_agree(to->nodes, all.order, n);
    if (told)
        memcpy(to->nodes, all.order, n * sizeof *all.order);
    cus_mem_free(all.from);
    return told;
}

static bool capture_nodes(const struct cus_driver *driver, CUstream stream,
                          const struct cus_exec_op *ops, uint32_t n, cus_exec_clock *clock,
                          struct cus_capture *to) {
    bool each = !driver->cuGraphGetEdges_v2;
    if (!capture(driver, stream, ops, n, each, clock, to))
        return false;
    if (each || tell_nodes(driver, ops, n, to))
        return true;
    CUS_LOG_ONCE(CUS_INFO, "graph",
                 "the edges of a captured graph do not tell its nodes apart: "
                 "they are asked for one by one");
    driver->cuGraphDestroy(to->graph);
    to->graph = NULL;
    return capture(driver, stream, ops, n, true, clock, to);
}

/* ---- branches ---- */

/* Sets behind which nodes the next one is captured. `last`: the op captured last, whose node it
 * would be. */
static bool come_behind(const struct cus_driver *driver, CUstream stream,
                        const struct cus_capture *to, const struct cus_edges *edges,
                        uint32_t last) {
    CUgraphNode nodes[CUS_EDGES_MAX];
    if (edges->n == (last != NO_OP) && (last == NO_OP || edges->of[0] == last))
        return true;
    for (uint32_t i = 0; i < edges->n; i++)
        nodes[i] = to->nodes[edges->of[i]];
    return driver->cuStreamUpdateCaptureDependencies_v2 &&
           driver->cuStreamUpdateCaptureDependencies_v2(
               stream, edges->n ? nodes : NULL, NULL, edges->n,
               CU_STREAM_SET_CAPTURE_DEPENDENCIES) == CUDA_SUCCESS;
}

/* A bit for each branch that has ops, and bit 0 if there are waits. */
static unsigned branches_of(const struct cus_exec_op *ops, uint32_t n) {
    unsigned branches = 0;
    for (uint32_t i = 0; i < n; i++)
        branches |= (unsigned)(ops[i].kind->branch || ops[i].kind->type == CUS_OP_WAIT)
                    << ops[i].kind->branch;
    return branches;
}

/* A node at the end of each branch, which records the branch's event. A branch without nodes ends
 * where the graph begins. */
static bool capture_ends(const struct cus_driver *driver, CUstream stream,
                         const struct cus_capture *to, const CUevent *events,
                         const struct cus_edges *ends, unsigned branches) {
    for (unsigned b = 1; b <= CUS_BRANCHES; b++)
        if (branches >> b & 1 &&
            (!events[b] || !come_behind(driver, stream, to, &ends[b], ANY_OP) ||
             driver->cuEventRecordWithFlags(events[b], stream, CU_EVENT_RECORD_EXTERNAL) !=
                 CUDA_SUCCESS))
            return false;
    return true;
}

static bool capture_edges(const struct cus_driver *driver, struct cus_exec_target target,
                          const struct cus_exec_op *ops, uint32_t n, const struct cus_edges *before,
                          const struct cus_edges *ends, struct cus_capture *to) {
    CUstream stream = target.capture_stream;
    uint32_t last = NO_OP;
    for (uint32_t i = 0; i < n; i++) {
        if (!cus_edges_has_node(&ops[i]))
            continue;
        if (!come_behind(driver, stream, to, &before[i], last) ||
            cus_issue_into_capture(driver, ops[i].kind, ops[i].values, stream) != CUDA_SUCCESS ||
            !last_captured(driver, stream, &to->nodes[i]))
            return false;
        last = i;
    }
    return capture_ends(driver, stream, to, target.ends, ends, branches_of(ops, n));
}

static bool capture_branches(const struct cus_driver *driver, struct cus_exec_target target,
                             const struct cus_exec_op *ops, uint32_t n, cus_exec_clock *clock,
                             struct cus_capture *to) {
    struct cus_edges ends[CUS_BRANCHES + 1], *before = cus_mem_alloc(n * sizeof *before);
    bool captured = before && cus_edges_find(ops, n, before, ends) &&
                    begin_capture(driver, target.capture_stream, clock, to);
    if (captured) {
        captured = capture_edges(driver, target, ops, n, before, ends, to);
        captured = end_capture(driver, target.capture_stream, to) && captured;
    }
    cus_mem_free(before);
    return captured;
}

/* The handles of the first nodes become those of the ops that are not absent. */
static void spread(const struct cus_exec_op *ops, uint32_t n, uint32_t n_present,
                   struct cus_capture *to) {
    for (uint32_t i = n; i-- > 0;)
        to->nodes[i] = ops[i].absent ? NULL : to->nodes[--n_present];
}

static bool capture_present(const struct cus_driver *driver, CUstream stream,
                            const struct cus_exec_op *ops, uint32_t n, cus_exec_clock *clock,
                            struct cus_capture *to) {
    uint32_t n_present = 0;
    for (uint32_t i = 0; i < n; i++)
        n_present += !ops[i].absent;
    if (n_present == n)
        return capture_nodes(driver, stream, ops, n, clock, to);
    struct cus_exec_op *present = cus_mem_alloc(n * sizeof *present);
    n_present = 0;
    for (uint32_t i = 0; present && i < n; i++)
        if (!ops[i].absent)
            present[n_present++] = ops[i];
    bool captured = present && capture_nodes(driver, stream, present, n_present, clock, to);
    cus_mem_free(present);
    if (captured)
        spread(ops, n, n_present, to);
    return captured;
}

bool cus_capture_ops(const struct cus_driver *driver, struct cus_exec_target target,
                     const struct cus_exec_op *ops, uint32_t n, cus_exec_clock *clock,
                     struct cus_capture *to) {
    return target.ends && branches_of(ops, n)
               ? capture_branches(driver, target, ops, n, clock, to)
               : capture_present(driver, target.capture_stream, ops, n, clock, to);
}
