/*
 * The stream engine as shim/hook sees it. Every function here runs on a program thread, inside a
 * hook at depth 1 (hook/guard.h), and the caller holds no engine lock. None is called before
 * cus_engine_start or after cus_engine_drain and cus_engine_child: then the hook goes straight to
 * the real function. Streams are named as the program named them: by a handle, and by the ABI that
 * says what handle 0 means (HAZARDS B3).
 */
#ifndef CUSPLICE_STREAM_ENGINE_H
#define CUSPLICE_STREAM_ENGINE_H

#include <stdbool.h>

#include "shim/api/driver.h"
#include "shim/api/scope.h"
#include "shim/plan/op.h"
#include "shim/stats/report.h"

struct cus_stream_ref {
    CUstream handle;
    enum cus_abi abi;
};

/* ---- lifecycle ---- */

/* Called once, after the first successful cuInit. `driver` stays valid for ever. False: the engine
 * only counts ops, because the driver lacks an entry or the environment forbids deferral
 * (CUDA_LAUNCH_BLOCKING ...). */
bool cus_engine_start(const struct cus_driver *driver);
/* At exit: issues everything deferred and stops the watchdog. Nothing is deferred afterwards. */
void cus_engine_drain(void);
/* In a forked child, before anything else: forgets everything, without touching the driver or a
 * lock. */
void cus_engine_child(void);
/* For tests and tools; the library never calls it. Ends the engine: issues everything deferred,
 * ends the engine's threads, destroys its graphs, and sets its state, the settings, the log and
 * the counters back to those of a new process. cus_engine_start may be called again, and reads the
 * settings anew. No other thread is in the engine, and no trace was recorded; a trace's recorder
 * (shim/trace) serves one recording in a process. Not called in a child that was forked while an
 * engine ran. */
void cus_engine_end(void);
/* Switches deferral off for good, for the reason given, which is logged once. Flushes
 * everything. */
void cus_engine_defer_off(const char *why);
/* Objects are about to be opened that may launch past the hooks: flushes everything. The caller has
 * entered cus_process.opening, so nothing is deferred meanwhile. */
void cus_engine_opening(void);
/* A profiler begins or ends recording kernels (CUPTI): while `on`, ops are issued one by one.
 * Flushes everything first. */
void cus_engine_profiling(bool on);
/* A tool times the nodes of graphs by CUPTI from now on, or does so no more (graph/exec.h). */
void cus_engine_nodes_timed(bool on);
/* The sum over all engines, for the stats file. */
void cus_engine_counters(struct cus_counters *out);
/* Fills a report. `counters` must stay valid as long as the report. */
void cus_engine_report(struct cus_report *report, const struct cus_counters *counters,
                       const char *(*api_name)(unsigned row));
/* Calls `say` for each rule or group of rules that matched nothing, and for a mode whose steps no
 * marker told of. At exit; for a program that issued ops. What is true of this process alone
 * stands behind CUS_UNMET_OWN. */
#define CUS_UNMET_OWN "; "
void cus_engine_unmet(void (*say)(const char *text));
/* Writes the segment list of the last whole step that used graphs into `text`, with a final NUL.
 * The list is a JSON array of strings ("graph 7", "eager NAME"). False, and an empty list: there
 * was no such step. */
bool cus_engine_segment_list(char *text, size_t bytes);
/* Steps by step class, as of the last call of cus_engine_segment_list. Only classes that were seen.
 * Returns how many. */
unsigned cus_engine_steps(struct cus_stats_step steps[CUS_STATS_STEPS]);

/* ---- ops: each function does everything, including the real call, and returns the result for the
 * program ---- */

enum cus_launch_form { CUS_LAUNCH_PLAIN, CUS_LAUNCH_EX, CUS_LAUNCH_COOPERATIVE };

struct cus_launch {
    enum cus_launch_form form;
    struct cus_stream_ref stream;
    CUfunction f;
    uint32_t dims[7]; /* grid x y z, block x y z, dynamic shared memory bytes */
    uint32_t n_attrs; /* CUS_LAUNCH_EX only */
    const CUlaunchAttribute *attrs;
    void **params;
    void **extra;
    const CUlaunchConfig *config; /* CUS_LAUNCH_EX only: the program's own */
    void *real;                   /* the real function of the symbol that was called */
};
CUresult cus_engine_launch(const struct cus_launch *launch);

struct cus_memset {
    struct cus_stream_ref stream;
    CUdeviceptr dst;
    size_t pitch;         /* 2-D only, else 0 */
    uint32_t value;       /* as passed; its low bytes count */
    uint32_t elem;        /* 1, 2 or 4 bytes */
    size_t width, height; /* in elements; height is 1 for 1-D calls */
    bool two_d;
    void *real;
};
CUresult cus_engine_memset(const struct cus_memset *memset);

struct cus_copy {
    enum cus_copy_form form; /* plan/op.h: which of the four calls it was */
    struct cus_stream_ref stream;
    uint64_t dst, src; /* device or host address, as passed */
    size_t bytes;
    void *real;
};
CUresult cus_engine_copy(const struct cus_copy *copy);

/* A record of an event, without flags. */
struct cus_record {
    struct cus_stream_ref stream;
    CUevent event;
    bool with_flags; /* by cuEventRecordWithFlags */
    void *real;
    CUcontext context;   /* of the event; the fields from here on are cus_engine_record_begins's */
    uint64_t generation; /* tells events apart that had the same handle */
};
/* A wait of a stream for an event, without flags. */
struct cus_wait {
    struct cus_stream_ref stream;
    CUevent event;
    void *real;
    unsigned row;
};
/* True: the wait is an op, and `*result` is the answer. False: nothing was done: flush
 * (cus_engine_flush_event), see the event, make the call, and say so if it succeeded
 * (cus_engine_waited). */
bool cus_engine_wait(const struct cus_wait *wait, CUresult *result);
void cus_engine_waited(const struct cus_wait *wait);
/* True: calls pass for a while (rest.c), and the wait is noted. The caller makes the call and tells
 * nothing. */
bool cus_engine_wait_passes(const struct cus_wait *wait);
/* The event is about to be recorded, with these flags, by the API row. True: call
 * cus_engine_record. False: flush (cus_engine_flush_event), and make the call. */
bool cus_engine_record_begins(struct cus_record *record, unsigned flags, unsigned row);
CUresult cus_engine_record(const struct cus_record *record);
/* The event was recorded by the program's own call, after such a False. */
void cus_engine_recorded(const struct cus_record *record);

/* ---- calls that are not ops ---- */

/* Before any call whose class is not PASS: issues what `scope` covers. `row` is the API row, or a
 * value of enum cus_cause for a call without a row; it is counted as the cause. `stream` may be
 * NULL if the scope needs none. Scopes C and CT mean the current context. */
void cus_engine_flush(enum cus_scope scope, const struct cus_stream_ref *stream, unsigned row);
/* The same before a call that records this event on the stream, or makes the stream wait for it. */
void cus_engine_flush_event(const struct cus_stream_ref *stream, CUevent event, unsigned row);
/* Before a call of class GETTER, which may wait for a lock that a copy holds: issues what this
 * thread defers while some thread is in such a copy, and everything with a driver that nobody
 * measured. Else it does nothing (HAZARDS F13). */
void cus_engine_getter(unsigned row);
/* The calling thread is about to see, or has seen, the stream complete: ends the stream's step if
 * this thread owns the stream. NULL: the stream on which the thread worked last (event and context
 * synchronise). */
void cus_engine_step_end(const struct cus_stream_ref *stream);
/* The program asks to issue what the calling thread defers, and to begin a new segment with its
 * next op. */
void cus_engine_force_break(unsigned cause);
/* From a thread's first suspend to the matching resume, none of its ops is deferred. Ops that it
 * deferred before are not issued by this call. One resume too many is ignored. */
void cus_engine_suspend(bool on);
/* The calling thread begins or has ended a copy that may sleep in the driver. No other thread
 * builds meanwhile, because it would sleep too (HAZARDS A16; measured: tests/gpu/gate-*). A call of
 * class GETTER may sleep too (HAZARDS F13). */
void cus_engine_copying(bool begins);
/* The program is about to wait for the GPU, or launches a graph of its own, by a call of this row.
 * Its pace is measured by this (rest.c). True: calls pass for a while, so nothing need be done for
 * them. No lock held. */
bool cus_engine_tick(unsigned row);
/* The calling thread waited `ns` for this stream (NULL: as for cus_engine_step_end), after
 * cus_engine_step_end. */
void cus_engine_wait_took(const struct cus_stream_ref *stream, uint64_t ns);
/* Takes the error of an op of this stream that failed after its call returned success (NULL: of any
 * stream of this thread); CUDA_SUCCESS: none. A sync call that would itself succeed returns it
 * (HAZARDS E4). `row` is that call's. */
CUresult cus_engine_take_error(const struct cus_stream_ref *stream, unsigned row);
/* A call of the program's returned this error. Said once if the context is lost. */
void cus_engine_failed(CUresult result);

/* ---- lifetimes: called after the flush and before the real call ---- */
void cus_engine_stream_gone(const struct cus_stream_ref *stream);
void cus_engine_context_gone(void); /* any context may die: drops everything */
/* Then: this one is about to be destroyed. False: nothing was known of it. */
bool cus_engine_context_goes(CUcontext context);
/* It was not destroyed after all. Called after the real call. */
void cus_engine_context_stays(CUcontext context);
/* This context has died already: its objects are not touched. */
void cus_engine_context_ended(CUcontext context);
/* Any module or library may be unloaded: drops functions, graphs and trees. */
void cus_engine_code_gone(void);
/* Any range may be freed, unmapped or unregistered: forgets all ranges. */
void cus_engine_memory_gone(void);
/* ---- stream-ordered memory (pools.c) ---- */

/* The program is about to allocate on this stream from this pool; NULL: the device's current
 * one. */
enum cus_alloc {
    CUS_ALLOC_FLUSH, /* flush, then make the call */
    CUS_ALLOC_NOW,   /* the allocation may come before what is deferred: make the call */
    CUS_ALLOC_REUSED /* `*address` is memory of this size whose free was deferred: the call is done
                      */
};
enum cus_alloc cus_engine_alloc_begins(const struct cus_stream_ref *stream, CUmemoryPool pool,
                                       uint64_t bytes, uint64_t *address);
/* The same allocation succeeded. */
void cus_engine_alloc_made(const struct cus_stream_ref *stream, CUmemoryPool pool, uint64_t address,
                           uint64_t bytes);
/* Are frees deferred? */
bool cus_engine_frees(void);
/* The same allocation ran out of memory: no free is deferred from here on. True: frees were, before
 * the call (`deferred`) or now, and are made; try again. */
bool cus_engine_alloc_failed(unsigned row, bool deferred);
/* The program frees memory on this stream, in stream order. */
enum cus_free {
    CUS_FREE_DEFERRED, /* made later; the program's call has succeeded */
    CUS_FREE_NOW,      /* nothing is deferred that must come first: make the call */
    CUS_FREE_FLUSH     /* flush, then make the call */
};
enum cus_free cus_engine_free(const struct cus_stream_ref *stream, uint64_t address);
/* Before a call of class SHOWS: issues everything if a free is deferred. */
void cus_engine_shows(unsigned row);
/* The program looks at the numbers of allocations (BUFFER_ID): each has its own from here on. */
void cus_engine_pool_numbers(void);
/* Memory at this address is freed, not in stream order. */
void cus_engine_pool_memory_gone(uint64_t address);
/* A context goes, with its memory. */
void cus_engine_pool_gone(void);
/* The program made this pool; it is about to destroy it, whose memory may live on; another process
 * may use it from here on. */
void cus_engine_pool_made(CUmemoryPool pool, const CUmemPoolProps *props);
void cus_engine_pool_goes(CUmemoryPool pool);
void cus_engine_pool_shared(CUmemoryPool pool);
/* The wait of this number for a whole context has ended without an error
 * (cus_engine_wait_begins). */
void cus_engine_pool_waited(uint32_t number);
/* A device has another current pool. */
void cus_engine_pool_set(void);
/* The program looks at the most memory that a pool used (or sets that back). It must see what it
 * would see without deferred frees. */
void cus_engine_pool_watched(CUmemoryPool pool);

/* ---- events (events.c) ---- */

/* The program made this event in the current context. */
void cus_engine_event_made(CUevent event);
/* Before a call that can tell whether the event was recorded, or that work waits for it, or that
 * records it in another way: issues its record, if that is deferred. Any thread. */
void cus_engine_event_seen(CUevent event, unsigned row);
/* The same; graph nodes of the program or another process may use the event, so no record of it is
 * deferred from here on. */
void cus_engine_event_named(CUevent event, unsigned row);
/* The same; the program destroys the event. True: a node of a graph holds it, so the library
 * destroys it later, and the program's call has succeeded. */
bool cus_engine_event_goes(CUevent event, unsigned row);
/* Is the event's record deferred by another thread? Then a query need not wait for that thread: the
 * event is not ready. */
bool cus_engine_event_withheld(CUevent event);

/* For mode verify, which keeps a list of device memory: the program allocated memory at this
 * address, or is about to free it, or may be. Other modes do nothing. */
void cus_engine_memory_made(uint64_t address);
void cus_engine_memory_going(uint64_t address);
/* Mode verify, at exit: logs the results and writes the report. False in other modes. */
bool cus_engine_verify_end(uint64_t *verified, uint64_t *different);
/* Writes the signature cache, at exit or (`ends` false) while the program runs; nothing if no
 * folder is set. Except at exit, not called on a thread that launches. */
void cus_engine_cache_save(bool ends);
/* The program made a stream, or (`graph`) an executable graph of its own. */
void cus_engine_room_taken(bool graph);
/* The program is about to wait for a whole context; the wait has ended without an error. `number`
 * is what the first call returned. */
uint32_t cus_engine_wait_begins(void);
void cus_engine_wait_ended(uint32_t number);
/* Is an allocation of this size (0: unknown) far too large? The driver would then search the memory
 * that destroyed graphs left in its pools, behind a kernel that may never end (HAZARDS G6). If
 * true, the hook answers "out of memory", as the driver would without graphs. */
bool cus_engine_cannot_fit(uint64_t bytes);
/* An allocation of this size (0: unknown) ran out of memory: drops every graph. False: another try
 * is of no use. There is no graph, more memory is wanted, the program captures, or what runs does
 * not end within a second. */
bool cus_engine_give_memory_back(uint64_t bytes);
/* An attribute of this function really changes: drops the graphs that hold it. NULL: any
 * function. */
void cus_engine_function_changed(const void *handle);
/* Limits or pools of a context or device change: drops all graphs. */
void cus_engine_limits_changed(void);
/* Attributes of this stream really change: drops the stream's graphs. A node has the attributes of
 * the stream that its graph was captured on, so no stream is a branch from here on. */
void cus_engine_stream_changed(const struct cus_stream_ref *stream);
/* Launches of this function are never deferred from now on (old launch API, texture references).
 * NULL: launches of any function. */
void cus_engine_taint(const void *handle);

/* Captures of the program. begins, tried: before a begin-capture and after it, whatever it
 * returned; began: after one that succeeded; ended: after any end-capture returned. */
void cus_engine_capture_begins(void);
void cus_engine_capture_tried(void);
void cus_engine_capture_began(const struct cus_stream_ref *stream);
void cus_engine_capture_ended(const struct cus_stream_ref *stream);
/* After a call that is in no table: forgets all ranges. Each next segment asks for the capture
 * status anyway. */
void cus_engine_unknown_call(void);

/* What a handle is, known from the call that made it (HAZARDS E2). */
enum cus_handle { CUS_HANDLE_FUNCTION, CUS_HANDLE_KERNEL };
void cus_engine_note_handle(const void *handle, enum cus_handle kind);

/*
 * Where code is from: for rules by library and for the signature cache. Does one of them ask? If
 * not, the other functions need not be called, and keep nothing.
 */
bool cus_engine_asks_library(void);
/* Is a hash of the code wanted too? */
bool cus_engine_asks_code(void);
/* A module or library was loaded from a file of this name, without folders; NULL: from no file.
 * `hash`: of the code, equal in every process; 0: not known. */
void cus_engine_code_loaded(const void *code, const char *file, uint64_t hash);
/* A function, kernel or module was made from a module, library or kernel. */
void cus_engine_code_made(const void *made, const void *from);
/* A module or library is about to be unloaded. */
void cus_engine_code_unloaded(const void *code);

#endif
