/*
 * What capture.c, graph.c, node.c, plan.c, run.c and exec.c share: graphs, executable graphs and
 * captures.
 *
 * Everything is under cusim.lock, except what cusim_graph_run_execute reads: a plan does not change
 * while a run refers to it.
 */
#ifndef CUSIM_GRAPH_H
#define CUSIM_GRAPH_H

#include "harness/sim/cusim.h"

struct cusim_edge {
    struct cusim_node *from;
    CUgraphEdgeData data;
};

struct cusim_node {
    struct cusim_node *next, *prev; /* of the graph, in the order of their creation */
    struct cusim_graph *graph;
    CUgraphNodeType type;
    uint64_t id; /* never used twice */
    uint64_t cloned_from;
    struct cusim_work *work;
    struct cusim_graph *child;
    struct cusim_edge *deps;
    unsigned n_deps, cap_deps;
    unsigned place; /* scratch memory of walks */
};

struct cusim_graph {
    struct cusim_node *first, *last;
    size_t n_nodes;
    struct cusim_capture *capture; /* the capture that records into this graph */
    struct cusim_node *owner;      /* the child graph node that owns this graph */
    uint64_t id;
};

struct cusim_capture {
    struct cusim_capture *next;
    uint64_t id;
    struct cusim_graph *graph;
    CUstreamCaptureMode mode;
    struct cusim_thread *owner;
    struct cusim_stream *origin;
    struct cusim_stream *streams; /* all participating streams, by next_captured */
    enum cusim_capture_status status;
    bool graph_given; /* begun by cuStreamBeginCaptureToGraph: the graph is the program's */
};

/* What an executable graph runs: its nodes in an order that its edges allow, with child graphs
 * flattened. The executable graph and its launches share it. If a launch still refers to it, a
 * change copies it first. */
struct cusim_topology {
    unsigned refs, n;
    unsigned *indegree;
    unsigned *successors_at; /* n + 1 offsets in successors */
    unsigned *successors;
    bool *programmatic; /* for each of the successors */
    bool linear;        /* each node waits for the one before it to end */
};

struct cusim_plan {
    unsigned refs;
    struct cusim_topology *topology;
    struct cusim_work **work;
    bool *enabled;
};

/* Where a node of the source graph is in the plan. */
struct cusim_entry {
    struct cusim_node *node;
    uint64_t node_id;
    CUgraphNodeType type;
    unsigned index;
    /* Of a memset, at instantiation: bytes, where they were, and in which memory; 0: none. */
    size_t fits;
    uintptr_t at;
    uint64_t memory;
};

struct cusim_exec {
    struct cusim_plan *plan;
    struct cusim_entry *entries; /* by address of the node */
    unsigned n_entries;
    cuuint64_t flags;
    size_t bytes;
    struct cusim_ctx *ctx;          /* the context whose pools hold it; NULL: none was current */
    struct cusim_timeline *last_tl; /* of the latest launch: launches of one exec are serial */
    uint64_t last_target;
};

struct cusim_graph_run {
    struct cusim_plan *plan;
    struct cusim_mark *
        *marks; /* for each node: what a record node completes or a wait node waits for; or NULL */
};

struct cusim_graph *cusim_graph_new(void);
void cusim_graph_free(struct cusim_graph *graph);
struct cusim_graph *cusim_graph_clone(const struct cusim_graph *graph);
/* Takes over the reference to work. */
struct cusim_node *cusim_node_new(struct cusim_graph *graph, CUgraphNodeType type,
                                  struct cusim_work *work);
void cusim_node_depend(struct cusim_node *node, struct cusim_node *from,
                       const CUgraphEdgeData *data);
/* The edge of a captured launch with programmatic stream serialisation. */
extern const CUgraphEdgeData cusim_edge_programmatic;
CUgraphNodeType cusim_node_type_of(const struct cusim_work *work);
/* Checks the arguments of all Add calls, and makes the node. */
CUresult cusim_graph_add(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                         const CUgraphEdgeData *data, size_t n, CUgraphNodeType type,
                         struct cusim_work *work, struct cusim_node **node);

CUresult cusim_work_of_kernel(const CUDA_KERNEL_NODE_PARAMS *p, const struct cusim_work *old,
                              struct cusim_work **out);
CUresult cusim_work_of_memcpy(const CUDA_MEMCPY3D *p, CUcontext ctx, struct cusim_work **out);
CUresult cusim_work_of_memset(const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx,
                              struct cusim_work **out);
CUresult cusim_work_of_host(const CUDA_HOST_NODE_PARAMS *p, struct cusim_work **out);
CUresult cusim_work_of_event(enum cusim_work_type type, CUevent event, struct cusim_work **out);
/* Makes work from the tagged union of cuGraphAddNode and cuGraph(Exec)NodeSetParams. */
CUresult cusim_work_of_params(const CUgraphNodeParams *p, const struct cusim_work *old,
                              struct cusim_work **out);

/* Returns NULL and sets *result if the graph has a cycle; entries may be NULL. */
struct cusim_plan *cusim_plan_new(const struct cusim_graph *graph, struct cusim_entry **entries,
                                  unsigned *n_entries, CUresult *result);
struct cusim_plan *
cusim_plan_own(struct cusim_plan *plan); /* returns a copy if anybody else refers to the plan */
void cusim_plan_unref(struct cusim_plan *plan);
struct cusim_graph *cusim_plan_to_graph(const struct cusim_plan *plan);
struct cusim_graph_run *cusim_graph_run_new(struct cusim_plan *plan);
/* Is this change of a node to be lost on purpose (CUSIM_GRAPH_ERROR)? */
bool cusim_patch_is_lost(void);

#endif
