/*
 * Executable graphs: building one from deferred ops, patching its nodes, launching, destroying. The
 * only caller of graph APIs.
 *
 * An exec belongs to one (context, stream) pair and is guarded by that stream's engine lock, or
 * belongs to who has it submitted (HAZARDS A1, A18). The context is current in every call. The
 * graph is kept beside the exec: patching needs its nodes.
 */
#ifndef CUSPLICE_GRAPH_EXEC_H
#define CUSPLICE_GRAPH_EXEC_H

#include "shim/api/driver.h"
#include "shim/plan/op.h"

struct cus_exec;

struct cus_exec_op {
    struct cus_kind *kind;
    const struct cus_values *values;
};

/* The caller's clock, in ns. NULL: it does not ask what took how long. */
typedef uint64_t cus_exec_clock(void);

/* Builds an exec of `n` ops in order, by capturing them on `capture_stream`: a private NON_BLOCKING
 * stream of the same context, with the priority and the attributes of the stream that the exec will
 * be launched into (HAZARDS D1, A6, A7). Nothing is executed. On failure nothing is left behind,
 * `*why` says what, and a kind that cannot be a node is marked not deferrable. */
bool cus_exec_build(const struct cus_driver *driver, CUstream capture_stream,
                    const struct cus_exec_op *ops, uint32_t n, cus_exec_clock *clock,
                    struct cus_exec **exec, enum cus_fallback *why);
/* Makes node `i` hold this op from the next launch on. A refusal leaves the node's content unknown.
 * Unless cus_exec_is_read, the driver is asked first what the node is: under RELAXED, as all that a
 * capture might forbid (HAZARDS D2). */
CUresult cus_exec_patch(const struct cus_driver *driver, CUcontext context, struct cus_exec *exec,
                        uint32_t i, const struct cus_kind *kind, const struct cus_values *values);
bool cus_exec_is_read(const struct cus_exec *exec, uint32_t i);
/* For a graph that was built from ops in another order: nodes `i` and `i + 1` change places. */
void cus_exec_swap(struct cus_exec *exec, uint32_t i);
/* Is node `i` carried out? A node that is not does nothing, and what comes behind it waits for what
 * comes before it. False also where the driver cannot say or do it. */
bool cus_exec_enabled(const struct cus_driver *driver, const struct cus_exec *exec, uint32_t i);
bool cus_exec_enable(const struct cus_driver *driver, struct cus_exec *exec, uint32_t i, bool on);
CUresult cus_exec_launch(const struct cus_driver *driver, struct cus_exec *exec, CUstream stream);
/* Legal while the exec is in flight. `driver` NULL: the context is dead, only the host side is
 * freed. */
void cus_exec_destroy(const struct cus_driver *driver, struct cus_exec *exec);
/* Puts it on a list of those to be destroyed later; destroys what is on one. */
void cus_exec_put_off(struct cus_exec **list, struct cus_exec *exec);
void cus_exec_destroy_list(const struct cus_driver *driver, struct cus_exec **list);
uint32_t cus_exec_nodes(const struct cus_exec *exec);
struct cus_exec *cus_exec_next(const struct cus_exec *exec);

/* How long the driver took to begin it, in ns: beside threads that launch it is waited for there,
 * whatever the size of the graph. */
uint64_t cus_exec_waited_ns(const struct cus_exec *exec);

/* Estimate of the device bytes that an exec of `n` nodes holds; those of this one. */
uint64_t cus_exec_estimate(uint32_t n);
uint64_t cus_exec_bytes(const struct cus_exec *exec);

#endif
