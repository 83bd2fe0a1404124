/*
 * The stream engine as shim/hook sees it.
 *
 * Every function here runs on a program thread, inside a hook at depth 1 (hook/guard.h), with no
 * engine lock held by the caller. None of them is called before cus_engine_start or after
 * cus_engine_drain / cus_engine_child: the hook then goes straight to the real function.
 *
 * Streams are named as the program named them: a handle and the ABI that says what handle 0 means
 * (HAZARDS B3).
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

/* Once, after the first successful cuInit. `driver` stays valid for ever. False: an entry that the
 * engine needs is missing, or the environment forbids deferring (CUDA_LAUNCH_BLOCKING ...): ops
 * are then only counted. */
bool cus_engine_start(const struct cus_driver *driver);
/* At exit: issues everything deferred, stops the watchdog, after which nothing is ever deferred
 * again. */
void cus_engine_drain(void);
/* In a forked child, before anything else: forgets everything without touching the driver or any
 * lock. */
void cus_engine_child(void);
/* Nothing is deferred any more, for the reason given (said once). Flushes everything first. */
void cus_engine_defer_off(const char *why);
/* Objects are about to be opened, which may launch past the hooks: flushes everything. The caller
 * has entered cus_process.opening, so that nothing is deferred meanwhile. */
void cus_engine_opening(void);
/* A profiler records kernels (CUPTI enabled): ops go out one by one while on. Flushes everything
 * first. */
void cus_engine_profiling(bool on);
/* Sum over all engines, for the stats file. */
void cus_engine_counters(struct cus_counters *out);
/* What the reports say, beside `counters`, which must stay as long as the report does. */
void cus_engine_report(struct cus_report *report, const struct cus_counters *counters,
                       const char *(*api_name)(unsigned row));
/* The segment list of the last whole step that used graphs, as a JSON array of strings ("graph 7",
 * "eager NAME"), written into `text` with a final NUL. Returns false, and an empty list, where
 * there was no such step. */
bool cus_engine_segment_list(char *text, size_t bytes);
/* Steps by what their markers said of them, as of the last call of cus_engine_segment_list; classes
 * that were met alone. Returns how many there are. */
unsigned cus_engine_steps(struct cus_stats_step steps[CUS_STATS_STEPS]);

/* ---- ops: each does everything, the real call included, and returns what the program shall see
 * ---- */

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
    const CUlaunchConfig *config; /* CUS_LAUNCH_EX only: as the program gave it */
    void *real;                   /* the real function of the very symbol that was called */
};
CUresult cus_engine_launch(const struct cus_launch *launch);

struct cus_memset {
    struct cus_stream_ref stream;
    CUdeviceptr dst;
    size_t pitch;         /* 2-D only, else 0 */
    uint32_t value;       /* as passed, low bytes count */
    uint32_t elem;        /* 1, 2 or 4 bytes */
    size_t width, height; /* in elements; height is 1 for the 1-D calls */
    bool two_d;
    void *real;
};
CUresult cus_engine_memset(const struct cus_memset *memset);

struct cus_copy {
    enum cus_copy_form form; /* plan/op.h: which of the four calls was made */
    struct cus_stream_ref stream;
    uint64_t dst, src; /* device or host address, as passed */
    size_t bytes;
    void *real;
};
CUresult cus_engine_copy(const struct cus_copy *copy);

/* ---- everything that is not an op ---- */

/* Before any call that is not PASS: issues what `scope` covers. `row` is the API row, the cause
 * that is counted (a value of enum cus_cause for calls without a row). `stream` may be NULL where
 * the scope needs none; scopes C and CT mean the current context. */
void cus_engine_flush(enum cus_scope scope, const struct cus_stream_ref *stream, unsigned row);
/* The calling thread is about to see (or has seen) the stream complete: ends the step of that
 * stream if this thread owns it. NULL: of the stream on which this thread worked last (event and
 * context synchronise). */
void cus_engine_step_end(const struct cus_stream_ref *stream);
/* The program asks that what the calling thread defers be issued and its next op begin a new
 * segment. */
void cus_engine_force_break(unsigned cause);
/* From the first suspend of a thread to the resume that answers it, none of its ops is deferred.
 * What it has deferred before is not issued by this. A resume too many is ignored. */
void cus_engine_suspend(bool on);
/* The calling thread is about to make a copy that may sleep in the driver, or has made it: no other
 * thread builds meanwhile, since it would sleep as well (HAZARDS A16; measured: tests/gpu/gate-*).
 */
void cus_engine_copying(bool begins);
/* An error of an op that was issued later than it was asked for, if one waits for this stream
 * (NULL: for any stream of this thread); CUDA_SUCCESS if none. To be returned by a sync call that
 * would itself succeed (HAZARDS E4); `row` is that call's. */
CUresult cus_engine_take_error(const struct cus_stream_ref *stream, unsigned row);

/* Lifetimes. Called after the flush and before the real call. */
void cus_engine_stream_gone(const struct cus_stream_ref *stream);
void cus_engine_context_gone(void); /* any context may die: everything is dropped */
/* This one has died already: what it held is not touched. */
void cus_engine_context_ended(CUcontext context);
void cus_engine_code_gone(
    void); /* any module or library may be unloaded: functions, execs and trees are dropped */
void cus_engine_memory_gone(void); /* any range may be freed, unmapped, unregistered: what is known
                                      of ranges is forgotten */
/* Mode verify keeps a list of the device memory that there is: the program allocated, or is about
 * to free what begins at this address, or may be. Nothing in other modes. */
void cus_engine_memory_made(uint64_t address);
void cus_engine_memory_going(uint64_t address);
/* Mode verify, at exit: says what was found and writes the report. False in other modes. */
bool cus_engine_verify_end(uint64_t *verified, uint64_t *different);
/* The signature cache: writes what was learned, at exit or (`ends` false) while the program runs;
 * nothing where no folder is set. Not on a thread that launches, but at exit. */
void cus_engine_cache_save(bool ends);
/* The program made a stream, or an executable graph of its own. */
void cus_engine_room_taken(bool graph);
/* The program is about to wait for all of a context; it has, and nothing failed: with the number
 * that the first returned. */
uint32_t cus_engine_wait_begins(void);
void cus_engine_wait_ended(uint32_t number);
/* So many bytes (0: not known) do not fit, by far, and the driver would look for them in what
 * graphs that are gone have left in its pools, behind a kernel that may stay (HAZARDS G6): the
 * answer is out of memory, as it would be without them. */
bool cus_engine_cannot_fit(uint64_t bytes);
/* The program ran out of memory when it asked for so many bytes (0: not known): drops every graph.
 * False where there is no use in trying again: there is none, more is wanted, the program captures,
 * or something runs that does not end within a second. */
bool cus_engine_give_memory_back(uint64_t bytes);
/* An attribute of this function or kernel handle really changes: execs that hold it are dropped.
 * NULL: of any function. */
void cus_engine_function_changed(const void *handle);
/* Stream attributes really change (NULL reference: context-wide state): its execs are dropped. */
void cus_engine_stream_changed(const struct cus_stream_ref *stream);
/* A function whose launches are never deferred (old launch API, texture references). NULL: of every
 * function. */
void cus_engine_taint(const void *handle);

/* The program's own captures. began: after a begin-capture succeeded; ended: after any end-capture
 * returned. */
void cus_engine_capture_began(const struct cus_stream_ref *stream);
void cus_engine_capture_ended(const struct cus_stream_ref *stream);
/* After a call outside the table: the next segment of every stream asks for the capture status (it
 * always does) and the range cache is dropped. */
void cus_engine_unknown_call(void);

/* What a handle is, known from the call that made it (HAZARDS E2). */
enum cus_handle { CUS_HANDLE_FUNCTION, CUS_HANDLE_KERNEL };
void cus_engine_note_handle(const void *handle, enum cus_handle kind);

/*
 * Where code is from, for rules by library and for the signature cache. Does any of them ask? Where
 * none does the others need not be called, and keep nothing.
 */
bool cus_engine_asks_library(void);
/* Is a hash of the code asked for as well? */
bool cus_engine_asks_code(void);
/* A module or library was loaded out of a file of this name, without folders; NULL: out of none.
 * `hash`: of the code, the same in each process; 0: not known. */
void cus_engine_code_loaded(const void *code, const char *file, uint64_t hash);
/* A function, kernel or module was made from a module, library or kernel. */
void cus_engine_code_made(const void *made, const void *from);
/* A module or library is about to be unloaded. */
void cus_engine_code_unloaded(const void *code);

#endif
