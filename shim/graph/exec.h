/*
 * Executable graphs: building one from deferred ops, patching its nodes, launching, destroying. No
 * other file calls graph APIs.
 * A graph belongs to one stream of one context. That stream's engine lock guards it, or the thread
 * to which it was submitted owns it (HAZARDS A1, A18). The context is current in every call. The
 * captured graph is kept beside the executable one, since patching needs its nodes.
 */
#ifndef CUSPLICE_GRAPH_EXEC_H
#define CUSPLICE_GRAPH_EXEC_H

#include "shim/api/driver.h"
#include "shim/plan/op.h"

struct cus_exec;

struct cus_exec_op {
    struct cus_kind *kind;
    const struct cus_values *values;
    bool absent; /* the graph gets no node for it */
};

/* What else a graph is built of: a private NON_BLOCKING stream to capture on, of the same context,
 * with the priority and attributes of the stream that the graph is launched into (HAZARDS D1, A6,
 * A7); and events that the graph records at the end of each branch but branch 0 (plan/branches.h),
 * NULL where there is none. `ends` NULL: the nodes are in one row, whatever their branches. */
struct cus_exec_target {
    CUstream capture_stream;
    const CUevent *ends;
};

/* The caller's clock, in ns. NULL: no times are wanted. */
typedef uint64_t cus_exec_clock(void);

/* Builds a graph of `n` ops, in order on each branch, by capture. Nothing is executed. On failure
 * nothing is left behind, `*why` has the reason, and a kind that cannot be a node is marked as not
 * deferrable. */
bool cus_exec_build(const struct cus_driver *driver, struct cus_exec_target target,
                    const struct cus_exec_op *ops, uint32_t n, cus_exec_clock *clock,
                    struct cus_exec **exec, enum cus_fallback *why);
/* Patches node `i` to hold this op from the next launch on. If the driver refuses, the node's
 * content is unknown. Unless cus_exec_is_read, the driver is first asked what the node is. The
 * caller then relaxes the capture mode, as for all calls that a capture may forbid (HAZARDS D2). */
CUresult cus_exec_patch(const struct cus_driver *driver, CUcontext context, struct cus_exec *exec,
                        uint32_t i, const struct cus_kind *kind, const struct cus_values *values);
/* For an op without a node both do nothing, and say that all is well. */
bool cus_exec_is_read(const struct cus_exec *exec, uint32_t i);
bool cus_exec_has_node(const struct cus_exec *exec, uint32_t i);
/* For a graph that was built from ops in another order: swaps nodes `i` and `i + 1`. */
void cus_exec_swap(struct cus_exec *exec, uint32_t i);
/* Is node `i` executed? A disabled node does nothing, but keeps the order of its neighbours. Both
 * functions return false if the driver cannot do it, or the graph has no such node. */
bool cus_exec_enabled(const struct cus_driver *driver, const struct cus_exec *exec, uint32_t i);
bool cus_exec_enable(const struct cus_driver *driver, struct cus_exec *exec, uint32_t i, bool on);
CUresult cus_exec_launch(const struct cus_driver *driver, struct cus_exec *exec, CUstream stream);
/* A tool times the nodes of graphs by CUPTI, or does so no more: each `true` has its `false`. Any
 * thread. */
void cus_exec_set_timed(bool on);
bool cus_exec_timed(void);
/* Before memory is freed. Any thread. */
void cus_exec_memory_goes(void);
/* May the graph not be launched, since a tool that times nodes would look, for its memsets, at
 * memory that may have gone (HAZARDS A32)? A free by another thread between this and the launch is
 * not seen. */
bool cus_exec_is_stale(const struct cus_exec *exec);
/* Legal while the graph runs. `driver` NULL: the context is dead, and only host memory is freed. */
void cus_exec_destroy(const struct cus_driver *driver, struct cus_exec *exec);
/* Puts the graph on a list, to be destroyed later. Below: destroys all graphs on a list. */
void cus_exec_put_off(struct cus_exec **list, struct cus_exec *exec);
void cus_exec_destroy_list(const struct cus_driver *driver, struct cus_exec **list);
uint32_t cus_exec_nodes(const struct cus_exec *exec);
struct cus_exec *cus_exec_next(const struct cus_exec *exec);

/* How long the driver took to begin the capture, in ns. If other threads launch meanwhile, this
 * wait is long, whatever the graph's size. */
uint64_t cus_exec_waited_ns(const struct cus_exec *exec);

/* Estimate of the device bytes of a graph with `n` nodes. Below: of this graph. */
uint64_t cus_exec_estimate(uint32_t n);
uint64_t cus_exec_bytes(const struct cus_exec *exec);

#endif
