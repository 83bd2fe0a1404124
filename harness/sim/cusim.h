/*
 * The simulated driver's state, its lock, and what its files offer each other.
 *
 * One lock, cusim.lock, guards all state here unless a field says otherwise. Exported functions
 * take the lock and call inner functions that expect it held. A worker (one thread per stream)
 * holds it to fetch and to finish an operation, never while it executes one. A wait is on a
 * timeline, which gives the lock back. No file calls exported cu* functions, because a preloaded
 * library may stand in front of them.
 */
#ifndef CUSIM_H
#define CUSIM_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#undef cuGetProcAddress_v2

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/sim/cusim_kernel.h"

/* What headers of CUDA 12 lack. */
#if CUDA_VERSION < 12080
#define CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT ((CUlaunchAttributeID)14)
#define CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE ((CUpointer_attribute)21)
#endif
#if CUDA_VERSION < 12050
typedef struct {
    CUexecAffinityParam *execAffinityParams;
    int numExecAffinityParams;
    struct CUctxCigParam_st *cigParams;
} CUctxCreateParams;
#endif

#include "harness/sim/entry.h"

/* ---- faults, and the caller of a call ---- */

/* A preloaded library under test may mark its own calls (cuSimCaller), so that they are counted
 * and made to fail apart from the program's. */
enum cusim_caller { CUSIM_CALLER_PROGRAM, CUSIM_CALLER_OWN, CUSIM_CALLERS };
enum cusim_caller cusim_caller(void); /* whose call it is, on the calling thread */

/* Replaces the list. Returns false and keeps the old list if the text cannot be understood.
 * README.md has the grammar. */
bool cusim_faults_set(const char *text);
/* Counts the call and applies its fault. Any result but CUDA_SUCCESS is the call's result. */
CUresult cusim_fault(enum cusim_api api);
/* Counts a kernel that ran, on a worker. Any result but CUDA_SUCCESS ends its context. */
CUresult cusim_fault_kernel(void);
/* The error by which the work being queued shall end its context, or CUDA_SUCCESS. */
CUresult cusim_take_late(void);

/* CUSIM_UNKNOWN: cuGetProcAddress returns addresses that no symbol has for these base names,
 * separated by commas. Returns false if a name does not exist or there are too many. */
bool cusim_unknown_set(const char *names);

/* ---- process ---- */

enum { CUSIM_DEVICES_MAX = 8, CUSIM_STACK_MAX = 64, CUSIM_CONNECTIONS_MAX = 32 };

struct cusim_options {
    uint64_t seed;
    _Atomic unsigned delay_us;
    unsigned queue_depth; /* pending operations of a stream until a call waits */
    unsigned connections; /* hardware queues of a context; 0: one for each stream */
    int driver_version;   /* the played version */
    int devices;
    uint64_t device_bytes;
    unsigned exit_wait_ms;
    bool measured_rules; /* executable graphs refuse what driver 580 refuses, not everything
                            documented */
    bool mixed_nodes;    /* a graph's nodes and edges are listed in random order */
    bool measured_locks; /* gate.c */
    bool weak;           /* what CUDA does not promise does not hold (overlap.c) */
};

struct cusim_process {
    pthread_mutex_t lock;
    bool initialized;
    bool exiting;                 /* workers start no further operation */
    struct cusim_options options; /* written once, before initialized */
    struct cusim_device *devices;
    struct cusim_ctx *contexts; /* all live contexts */
    struct cusim_ctx
        *dead; /* destroyed contexts of the program, kept so that their handles are found dead */
    uint64_t next_id; /* for contexts, streams, captures, buffers; never used twice */
    uint64_t calls;   /* calls that put work into a stream */
    unsigned n_busy;  /* streams with work */
    struct cusim_capture *captures;
};
extern struct cusim_process cusim;

void cusim_lock(void);
void cusim_unlock(void);
uint64_t cusim_new_id(void);
uint64_t cusim_now_ns(void);
uint64_t cusim_random(uint64_t *state); /* splitmix64 */
const struct cusim_options *cusim_get_options(void);

/* ---- live handles: any thread, under the lock ---- */

enum cusim_kind {
    CUSIM_CTX = 1,
    CUSIM_STREAM,
    CUSIM_EVENT,
    CUSIM_MODULE,
    CUSIM_LIBRARY,
    CUSIM_FUNC,
    CUSIM_KERNEL,
    CUSIM_GRAPH,
    CUSIM_NODE,
    CUSIM_EXEC,
    CUSIM_POOL,
    CUSIM_PHYSICAL,
};

void cusim_handle_add(const void *handle, enum cusim_kind kind);
void cusim_handle_remove(const void *handle);
bool cusim_handle_is(const void *handle, enum cusim_kind kind);

/* ---- timelines: a counter that grows, and its waiters ---- */

struct cusim_waiter {
    struct cusim_waiter *next;
    uint64_t target;
    pthread_cond_t *cond;
};

struct cusim_timeline {
    unsigned refs;
    uint64_t done;
    struct cusim_waiter *waiters;
};

struct cusim_timeline *cusim_timeline_new(void);
struct cusim_timeline *cusim_timeline_ref(struct cusim_timeline *tl);
void cusim_timeline_unref(struct cusim_timeline *tl);
void cusim_timeline_advance(struct cusim_timeline *tl, uint64_t done);
void cusim_timeline_wait(struct cusim_timeline *tl,
                         uint64_t target); /* gives the lock back while it waits */

/* One recording of an event. */
struct cusim_mark {
    unsigned refs;
    struct cusim_timeline *tl;
    uint64_t target;
    uint64_t time_ns; /* set when the recording executed */
};

struct cusim_mark *cusim_mark_new(struct cusim_timeline *tl, uint64_t target);
struct cusim_mark *cusim_mark_ref(struct cusim_mark *mark);
void cusim_mark_unref(struct cusim_mark *mark);

/* ---- threads ---- */

/* The per-thread default stream of one thread in one context. The context is found by id,
 * because it may die first. */
struct cusim_default {
    struct cusim_default *next;
    uint64_t ctx_id;
    struct cusim_stream *stream;
};

struct cusim_thread {
    struct cusim_ctx *stack[CUSIM_STACK_MAX];
    int depth;
    CUstreamCaptureMode capture_mode;
    bool in_worker; /* the thread runs a host function or callback: CUDA calls are refused */
    pthread_cond_t cond;
    struct cusim_default *defaults;
    uint64_t random;  /* of delays and choices; only the thread itself uses it */
    uint64_t late_us; /* delays that it has not slept yet */
};

struct cusim_thread *cusim_thread_self(void);

/* ---- devices and contexts ---- */

struct cusim_device {
    int ordinal;
    struct cusim_ctx *primary;
    unsigned primary_refs;
    unsigned primary_flags;
    struct cusim_pool *default_pool, *current_pool;
};

/* Streams take turns in it. An operation begins when all that were put into it before have begun.
 */
struct cusim_connection {
    uint64_t submitted;
    struct cusim_timeline *begun;
};

struct cusim_ctx {
    struct cusim_ctx *next;
    uint64_t id;
    struct cusim_device *device;
    unsigned flags;
    bool primary;
    bool alive;
    CUresult error;               /* sticky */
    struct cusim_stream *streams; /* all that may still have work, also destroyed ones */
    struct cusim_stream *legacy;
    unsigned blocking_captures; /* open captures with a blocking stream */
    size_t limits[CU_LIMIT_MAX];
    CUfunc_cache cache_config;
    struct cusim_module *modules;
    struct cusim_stock {
        size_t used, room;
    } objects, nodes; /* streams and executable graphs; the graphs' nodes */
    struct cusim_connection connections[CUSIM_CONNECTIONS_MAX];
    unsigned connected; /* streams that have one */
    unsigned locked;    /* threads that wait for its work and lock out all that submit */
    unsigned copiers;   /* threads that sleep in a copy to pageable memory */
};

/* Takes one more stream (no nodes) or executable graph from the stock. If the stock must grow,
 * waits for all work of the context, as driver 580 does. */
void cusim_stock_take(struct cusim_ctx *ctx, size_t nodes);
void cusim_stock_give(struct cusim_ctx *ctx, size_t nodes);

CUresult cusim_ctx_current(struct cusim_ctx **ctx); /* the thread's, or why there is none */
CUresult cusim_ctx_check(struct cusim_ctx *ctx);    /* fails if dead or with a sticky error */
struct cusim_ctx *cusim_ctx_by_id(uint64_t id);     /* NULL if the context is dead */
struct cusim_device *cusim_device_get(CUdevice device);
void cusim_ctx_wait(
    struct cusim_ctx *ctx); /* waits for all work that was submitted to all its streams before */
void cusim_all_wait(void);

/* ---- the driver's locks (gate.c) ---- */

/* At the beginning of a call, without the lock. */
void cusim_gate_enter(enum cusim_api api);
/* Waits for all work of the context; as measured, nothing can be submitted meanwhile. */
void cusim_gate_lock(struct cusim_ctx *ctx);
/* Waits while the context is locked; while a thread sleeps in a copy to pageable memory. */
void cusim_gate_wait(const struct cusim_ctx *ctx);
void cusim_gate_hold(const struct cusim_ctx *ctx);
/* Waits for a copy to pageable memory. */
void cusim_gate_copy(struct cusim_ctx *ctx, struct cusim_timeline *tl, uint64_t target);

/* ---- work: a stream operation or a graph node as immutable data ---- */

/* When the event of a record fires; with CUSIM_ORDER=weak alone before the kernel ahead has ended.
 */
enum cusim_fires {
    CUSIM_FIRES_BEHIND,     /* behind all that is ahead */
    CUSIM_FIRES_AT_TRIGGER, /* once the kernel ahead has triggered */
    CUSIM_FIRES_AT_START    /* once its last block has begun */
};

enum cusim_work_type {
    CUSIM_WORK_KERNEL,
    CUSIM_WORK_MEMSET,
    CUSIM_WORK_MEMCPY,
    CUSIM_WORK_HOST,
    CUSIM_WORK_CALLBACK,
    CUSIM_WORK_RECORD,
    CUSIM_WORK_WAIT,
    CUSIM_WORK_EMPTY,
    CUSIM_WORK_WAIT_VALUE,
    CUSIM_WORK_WRITE_VALUE,
    CUSIM_WORK_ALLOC,
    CUSIM_WORK_FREE,
    CUSIM_WORK_GRAPH,
};

struct cusim_work_kernel {
    CUfunction func; /* as given: CUfunction or CUkernel */
    struct cusim_func *resolved;
    const struct cusim_kernel *kernel;
    unsigned grid[3], block[3], smem;
    bool cooperative;
    unsigned n_attrs;
    CUlaunchAttribute *attrs;
    unsigned blob_bytes;
    void **argv; /* n_params + 1 pointers into the blob; both follow the struct */
    unsigned char *blob;
};

/* The kind of memory that an operand lies in, as it was when the operation was given: a graph's
 * node keeps it when that memory is gone. */
struct cusim_operand {
    int kind, device; /* enum cusim_mem_kind */
    uint64_t ctx_id;
};

struct cusim_work_memset {
    CUdeviceptr dst;
    struct cusim_operand in;
    size_t pitch, width, height; /* width in elements */
    unsigned value, element;
};

struct cusim_work_memcpy {
    CUDA_MEMCPY3D params; /* as given, or as GetParams returns them */
    unsigned char *dst;
    const unsigned char *src;
    struct cusim_operand dst_in, src_in;
    size_t width, height, depth;
    size_t dst_pitch, src_pitch, dst_slice, src_slice;
    const char *kind; /* HtoD, DtoH, DtoD, HtoH */
    unsigned char *staged;
};

struct cusim_work {
    _Atomic unsigned refs;
    enum cusim_work_type type;
    struct cusim_ctx *ctx;
    union {
        struct cusim_work_kernel kernel;
        struct cusim_work_memset memset;
        struct cusim_work_memcpy memcpy;
        struct {
            CUhostFn fn;
            CUstreamCallback callback;
            CUstream stream;
            void *data;
        } host;
        struct {
            struct cusim_event *event; /* for graph nodes: looked up again at each launch */
            uint64_t id;
            unsigned flags;
            enum cusim_fires fires;
        } event;
        struct {
            CUdeviceptr address;
            uint64_t value;
            unsigned flags;
            unsigned bytes;
        } value;
        struct {
            CUdeviceptr address;
            size_t bytes;
            struct cusim_pool *pool;
        } alloc;
    };
};

struct cusim_work *cusim_work_new(enum cusim_work_type type, struct cusim_ctx *ctx);
struct cusim_work *cusim_work_ref(struct cusim_work *work);
void cusim_work_unref(struct cusim_work *work);
/* Executes the work without the lock. Returns the error that ends the context, or CUDA_SUCCESS. */
CUresult cusim_work_run(const struct cusim_work *work, struct cusim_stream *stream, CUresult state);
void cusim_work_log(const struct cusim_work *work, uint64_t stream_raw); /* no lock held */

/* ---- reports of work that ran (activity.c) ---- */

/* The calling thread's next work belongs to this call and this node (from 1 on; 0: no graph). */
void cusim_activity_call(uint64_t correlation);
void cusim_activity_node(uint64_t node);
uint64_t cusim_activity_begin(void); /* 0: no one listens */
void cusim_activity_end(const struct cusim_work *work, const struct cusim_stream *stream,
                        uint64_t began);

/* ---- kernels that may overlap (overlap.c) ---- */

/* One execution of a kernel that programmatic order may let overlap with others. */
struct cusim_grid {
    pthread_cond_t *changed; /* broadcast when a grid ends or waits */
    unsigned *passed;        /* counts grids that began early, when they end or wait */
    unsigned behind;         /* how many grids that it depends on have not ended */
    bool early;              /* it began early, and neither ended nor waited */
    bool tells_start;        /* somebody wants to know when its last block begins */
    bool started;            /* it has begun */
    bool triggered;
    bool (*trigger)(struct cusim_grid *); /* with the lock: lets dependents begin, if any */
};

/* The calling thread runs this grid until the next call; NULL: none that could overlap. */
void cusim_grid_enter(struct cusim_grid *grid);
/* The grid ended, or waits for those before it. With the lock. */
void cusim_grid_passed(struct cusim_grid *grid);
extern const struct cusim_calls cusim_calls_weak;
/* Copies whole, or with weak order in parts: 64 bytes or more at a time, in a random order. */
void cusim_copy_row(unsigned char *dst, const unsigned char *src, size_t bytes);

/* ---- streams ---- */

struct cusim_dep {
    struct cusim_timeline *tl;
    uint64_t target;
};

struct cusim_op {
    struct cusim_op *next;
    uint64_t seq;
    uint64_t ticket;      /* place in the stream's connection */
    uint64_t correlation; /* number of the call, over all streams */
    struct cusim_work *work;
    struct cusim_mark *mark;     /* of a record */
    struct cusim_graph_run *run; /* of a graph launch */
    CUresult late;               /* a fault: the error that ends the context after this operation */
    bool overlaps;               /* may begin before the kernel before it has ended */
    bool finished;               /* also while an operation before it is not */
    struct cusim_grid grid;
    unsigned n_deps, cap_deps;
    struct cusim_dep *deps;
    struct cusim_dep inline_deps[3];
};

enum { CUSIM_STREAM_ATTRS = 32, CUSIM_WAITS = 16, CUSIM_WORKERS = 4 };

struct cusim_stream {
    struct cusim_stream *next, *prev; /* of the context */
    struct cusim_ctx *ctx;
    uint64_t id;
    uint64_t raw;    /* number by creation, for the log */
    uint64_t random; /* seed of its workers */
    unsigned flags;  /* CU_STREAM_NON_BLOCKING */
    int priority;
    bool legacy, per_thread;
    bool closing;                        /* destroyed: removed when its work is done */
    struct cusim_connection *connection; /* since its first operation; NULL: of its own */
    unsigned n_workers, n_idle;          /* more than one worker if kernels overlap */
    pthread_cond_t work_cond;            /* there is work, or some may begin */
    struct cusim_timeline *tl;
    uint64_t submitted;
    struct cusim_op *head, *tail;
    struct cusim_op *fresh;  /* the first that did not begin */
    struct cusim_op *before; /* the one before it, if that is in the queue */
    unsigned passed;         /* see struct cusim_grid */
    bool attr_set[CUSIM_STREAM_ATTRS];
    CUlaunchAttributeValue attrs[CUSIM_STREAM_ATTRS];
    struct cusim_capture *capture;
    struct cusim_node **frontier; /* the dependencies of the next captured node */
    unsigned n_frontier, cap_frontier;
    struct cusim_stream *next_captured;
    struct cusim_dep waits[CUSIM_WAITS]; /* for which it waits by events, the last ones */
    unsigned n_waits;                    /* since its birth */
};

/* Finds the stream that a handle means for the calling thread, or returns why it cannot be used. */
CUresult cusim_stream_get(CUstream handle, bool ptsz, struct cusim_stream **out);
/* The same for a call that submits work: checks capture and sticky errors, and waits for room in
 * the queue. */
CUresult cusim_stream_get_for_work(CUstream handle, bool ptsz, struct cusim_stream **out);
struct cusim_stream *cusim_stream_new(struct cusim_ctx *ctx, unsigned flags, int priority);
void cusim_stream_close(struct cusim_stream *stream);
void cusim_stream_wait(
    struct cusim_stream *stream); /* for a legacy stream: all streams that it is ordered behind */
bool cusim_stream_done(struct cusim_stream *stream);
/* The stream waits by an event; does it wait, by one of its last ones, for that operation? */
void cusim_stream_note_wait(struct cusim_stream *stream, struct cusim_timeline *tl,
                            uint64_t target);
bool cusim_stream_waits_for(const struct cusim_stream *stream, const struct cusim_timeline *tl,
                            uint64_t target);
void cusim_thread_streams_close(struct cusim_thread *thread);

/* Takes over the reference to work, and captures or queues it. */
CUresult cusim_submit(struct cusim_stream *stream, struct cusim_work *work);
/* Queues work and never captures it. The caller may add dependencies and marks before it gives
 * the lock back. */
struct cusim_op *cusim_enqueue(struct cusim_stream *stream, struct cusim_work *work);
void cusim_delay(void); /* without the lock; on threads that execute */
void cusim_stop_if_exiting(void);
/* Starts a detached thread that handles none of the program's signals, or aborts. */
void cusim_thread_start(void *(*run)(void *), void *argument);
void cusim_op_depend(struct cusim_op *op, struct cusim_timeline *tl, uint64_t target);

/* ---- events ---- */

struct cusim_event {
    uint64_t raw; /* number by creation, for the log */
    struct cusim_ctx *ctx;
    uint64_t ctx_id;
    unsigned flags;
    struct cusim_mark *last;
    uint64_t capture_id; /* of the capture that last recorded it, or 0 */
    struct cusim_node **frontier;
    unsigned n_frontier;
};

CUresult cusim_event_record(CUevent handle, struct cusim_stream *stream, enum cusim_fires fires);

/* ---- modules, libraries, functions ---- */

struct cusim_func { /* CUfunction */
    struct cusim_func *next;
    struct cusim_ctx *ctx;
    uint64_t ctx_id;
    struct cusim_module *module;
    struct cusim_kern *kern; /* if it came from a library */
    const struct cusim_kernel *kernel;
    int max_dynamic_smem, carveout, cluster_nonportable;
    bool loaded;
    bool given; /* by cuKernelGetFunction, which waits the first time */
};

struct cusim_kern { /* CUkernel */
    struct cusim_kern *next;
    struct cusim_library *library;
    const struct cusim_kernel *kernel;
    int max_dynamic_smem[CUSIM_DEVICES_MAX], carveout, cluster_nonportable;
};

struct cusim_module {
    struct cusim_module *next;
    struct cusim_ctx *ctx;
    struct cusim_library *library; /* the library's module of this context */
    struct cusim_func *funcs;
};

struct cusim_library {
    struct cusim_library *next;
    struct cusim_kern *kerns;
};

const struct cusim_kernel *cusim_kernel_find(const char *name);
unsigned cusim_kernel_total(void);
const struct cusim_kernel *cusim_kernel_at(unsigned index);
/* Resolves a handle of either kind, as a launch takes it; a CUkernel runs in ctx. */
CUresult cusim_func_get(CUfunction handle, struct cusim_ctx *ctx, struct cusim_func **out);
extern int (*cusim_take_trap)(
    void); /* NULL, or tells whether the kernel that just ran on this thread trapped */
unsigned cusim_func_smem_limit(const struct cusim_func *func);
unsigned cusim_kernel_max_threads(const struct cusim_kernel *kernel);
int cusim_blocks_per_sm(const struct cusim_kernel *kernel, int threads, size_t smem);

/* A launch or kernel node as the program describes it. */
struct cusim_launch {
    CUfunction func;
    unsigned grid[3], block[3], smem;
    bool cooperative;
    bool at_once; /* goes to a stream, not into a graph */
    const CUlaunchAttribute *attrs;
    unsigned n_attrs;
    void **params, **extra;
};
CUresult cusim_kernel_make(const struct cusim_launch *l, struct cusim_ctx *ctx,
                           struct cusim_work **out);
unsigned cusim_kernel_blob_bytes(const struct cusim_kernel *kernel);
void cusim_ctx_modules_free(struct cusim_ctx *ctx);

#include "harness/sim/memory.h"

/* ---- captures ---- */

enum cusim_capture_status { CUSIM_CAPTURE_ACTIVE = 1, CUSIM_CAPTURE_INVALIDATED };

/* Refuses a call that a capture makes unsafe, and invalidates that capture. */
CUresult cusim_capture_unsafe(void);
CUresult
cusim_capture_unsafe_sync(struct cusim_ctx *ctx); /* the same for a wait for a whole context */
struct cusim_capture *cusim_capture_of_ctx(struct cusim_ctx *ctx);
void cusim_capture_drop(struct cusim_capture *capture); /* the capture's context dies */
void cusim_capture_invalidate(struct cusim_capture *capture);
void cusim_capture_invalidate_ctx(struct cusim_ctx *ctx);      /* all that involve the context */
void cusim_capture_invalidate_blocking(struct cusim_ctx *ctx); /* the legacy stream was used */
CUresult cusim_capture_state(struct cusim_stream *stream);     /* 901 when invalidated */
CUresult cusim_capture_work(struct cusim_stream *stream, struct cusim_work *work);
/* Is it a kernel with programmatic stream serialisation? */
bool cusim_work_overlaps(const struct cusim_work *work);
/* Is it a kernel with an event that fires once its last block has begun? */
bool cusim_work_tells_start(const struct cusim_work *work);
CUresult cusim_capture_record(struct cusim_stream *stream, struct cusim_event *event,
                              unsigned flags);
CUresult cusim_capture_wait(struct cusim_stream *stream, struct cusim_event *event, unsigned flags);
bool cusim_event_captured(const struct cusim_event *event);
struct cusim_capture *cusim_capture_live(const struct cusim_event *event); /* NULL: ended */
void cusim_event_forget_capture(struct cusim_event *event);
void cusim_capture_stream_gone(struct cusim_stream *stream);

struct cusim_plan;
CUresult cusim_capture_child(struct cusim_stream *stream, const struct cusim_plan *plan);

/* ---- graphs at execution ---- */

struct cusim_graph_run;
void cusim_graph_run_execute(struct cusim_graph_run *run, struct cusim_stream *stream,
                             uint64_t correlation); /* no lock held */
void cusim_graph_run_free(struct cusim_graph_run *run);

/* ---- log and statistics ---- */

void cusim_log_open(void);
bool cusim_log_on(void);
void cusim_log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cusim_log_flush(void);
void cusim_log_close(void); /* replaces raw numbers by dense ones */
void cusim_log_text(const char *text, size_t bytes);
void cusim_expand_path(const char *path, char *out, size_t bytes);

#endif
