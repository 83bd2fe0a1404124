/*
 * What the parts of the player share. One thread; one device, its primary context.
 *
 * The player first checks everything and gathers what cannot be replayed as obstacles. Only if
 * there is none, it maps memory, loads code, binds ops to both, and issues the ops.
 */
#ifndef CUSPLICE_PLAYER_PLAYER_H
#define CUSPLICE_PLAYER_PLAYER_H

#include "harness/player/api.h"
#include "harness/player/clock.h"
#include "harness/player/notes.h"
#include "shim/base/curve.h"
#include "tools/trace/reader.h"

/* ---- code (code.c, image.c, whole.c) ---- */

struct player_image {
    void *bytes; /* NULL: missing */
    bool cubin;  /* machine code for one kind of GPU */
    CUmodule module;
    CUlibrary library;
};

/* A variable of a module: its recorded address, and its address here. */
struct player_global {
    const struct cst_span *span; /* globals are sorted by it */
    CUdeviceptr here;            /* 0: the module has no variable of that name */
    void *contents;              /* its contents when the module was loaded */
};

/* ---- memory (memory.c) ---- */

/* A contiguous piece of device memory, mapped as one. */
struct player_run {
    uint64_t address, bytes;
    uint64_t *hashes; /* hashes of its parts before a pass (restore.c) */
};

/* Memory that a pass changes, and its original contents. */
struct player_dirty {
    uint64_t address, bytes;
    void *contents; /* NULL: too much to keep */
};

/* ---- ops (plan.c, bind.c, issue.c) ---- */

enum player_what {
    PLAYER_LAUNCH,
    PLAYER_LAUNCH_EX,
    PLAYER_LAUNCH_COOPERATIVE,
    PLAYER_MEMSET,
    PLAYER_UPLOAD,
    PLAYER_DOWNLOAD,
    PLAYER_MOVE,
    PLAYER_SET, /* sets a function's settings, if the program changed them between launches */
    PLAYER_RECORD,
    PLAYER_WAIT,
    PLAYER_SYNC_STREAM,
    PLAYER_SYNC_EVENT,
    PLAYER_SYNC_ALL,
};

struct player_op {
    enum player_what what;
    bool sync;  /* memset or copy by a call without Async */
    bool first; /* the first op of its thread */
    bool last;  /* the last op of its step: the host has waited then */
    uint32_t thread;
    uint64_t gap_ns;
    CUstream stream;
    const struct cst_work *work;
    union {
        struct {
            CUfunction function;
            void **params;
            CUlaunchConfig *config; /* for a launch with attributes */
        } launch;
        struct {
            CUdeviceptr to;
            size_t width, height, pitch;
            uint32_t elem, value;
        } memset;
        struct {
            CUdeviceptr to, from;
            union {
                void *host;
                const struct cst_span *span; /* of a download, until player_hosts runs */
            };
            size_t bytes;
        } copy;
        CUevent event;
        const struct player *player; /* PLAYER_SET: for the function that the work names */
    };
};

/* A word in params or in an op that holds a variable's address. */
struct player_patch {
    void *word; /* may be unaligned */
    const struct cst_span *span;
};

/* Host memory of copies, as the program had it. */
struct player_host {
    const struct cst_span *span; /* NULL: pageable memory */
    uint64_t from, to;           /* its part that copies write; from 0 on for pageable memory */
    void *here;
};

/* The time between calls of typical steps. */
enum player_pace {
    PLAYER_RECORDED, /* as recorded */
    PLAYER_FASTEST,  /* as in the fastest of equal steps */
    PLAYER_UNPACED,
};

/* A step: its calls until the host waits, the work among them, and its time in the last pass. */
struct player_step {
    size_t n_ops;
    bool typical; /* the steps with this number of calls hold more work than those with any other
                     number */
    uint64_t ns;
};

/* Memory for params and what they point to, after this header; it never moves. */
struct player_chunk {
    struct player_chunk *before;
    uint64_t reserved;
};

struct player {
    struct cst_trace *trace;
    struct notes obstacles, warnings;
    bool no_memory;           /* an obstacle: too little device memory */
    uint64_t may_take, taken; /* bytes of the host for code, inputs, copies: bound, and used */
    enum player_pace pace;

    CUdevice device;
    char gpu[256];
    int capability; /* 10 * major + minor */
    int driver;     /* 1000 * major + 10 * minor of its CUDA */

    struct player_image *images; /* by id of the module */
    CUfunction *functions;       /* by id of the code */
    bool *used;                  /* by id of the code: a launch names it */
    struct player_global *globals;
    size_t n_globals;
    const struct player_global **places; /* variables here, one for each recorded address */
    size_t n_places;

    size_t granule;
    struct player_run *runs; /* by address; together all device memory */
    size_t n_runs;
    uint64_t memory_bytes;
    void *staging;
    struct player_dirty *dirty;
    size_t n_dirty;
    uint64_t dirty_bytes;
    bool dirty_known;

    CUstream *streams; /* by lane */
    struct player_op *ops;
    size_t n_ops, n_steps, n_launches;
    struct player_step *steps;
    uint64_t curve[CUS_CURVE_MAX]; /* ns of the typical steps that were played first of all */
    uint32_t n_curve;
    struct player_patch *patches;
    size_t n_patches;
    struct player_host *hosts;
    size_t n_hosts;
    struct player_chunk *chunks; /* the newest chunk */
    void **inputs;               /* by id */
    uint64_t *input_bytes;
    uint8_t *input_pinned; /* the program's memory was pinned */
    uint32_t n_inputs;
    struct player_clock *clocks; /* by thread */
};

enum {
    PLAYER_STAGING = 16 << 20,
    PLAYER_TAKE_MIB = 4096,  /* MiB for may_take, beside 100 times the length of the trace;
                                --max-memory changes it */
    PLAYER_DIRTY_MIB = 2048, /* MiB of host memory to keep changed contents; more is not kept */
};

/* ---- main.c; a test brings its own ---- */

/* Prints a line on stdout and exits if `memory` is NULL. */
void *player_need(void *memory);
/* Prints on stdout what failed, and ends the process. */
void player_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* The same if `result` is an error. */
void player_check(CUresult result, const char *call);

/* ---- the parts, in order ---- */

/* look.c: checks the trace as far as possible without a driver; makes obstacles and warnings.
 * `granule`, `capability` and `gpu` must be set. */
void player_look(struct player *p);
/* The same without what is compared with this GPU. */
void player_look_alone(struct player *p);
/* For tests: frees everything that player_look made, but not the trace. */
void player_forget(struct player *p);
/* Counts more host memory for `what`. Makes an obstacle if it is more than the bound. */
bool player_take(struct player *p, uint64_t bytes, const char *what);

/* steps.c: finds the steps, and which of them are typical. */
void player_steps(struct player *p);
/* The median time of the typical steps in the last pass, ns. */
uint64_t player_step_ns(const struct player *p);
/* After each pass: adds its typical steps to the curve, while there is room. */
void player_curve(struct player *p);

/* image.c: finds the bytes of each module that a launch or a variable needs; makes obstacles. */
void player_images(struct player *p);
/* whole.c: a fat binary, a cubin or the text of PTX that ends within its `n` bytes. */
bool player_image_is_whole(const uint8_t *bytes, uint64_t n);

/* code.c */
void player_load(struct player *p);
/* Gives the function the settings of its record. */
CUresult player_set(const struct player *p, uint32_t code);
/* The address here of `address` in that variable; 0: the variable is missing. */
CUdeviceptr player_global_at(const struct player *p, const struct cst_span *span);

/* memory.c: decides from the spans alone what to map; makes obstacles. */
void player_memory_plan(struct player *p);
bool player_memory_has(const struct player *p, uint64_t address, uint64_t bytes);
/* Reserves the addresses before a context takes any. Makes an obstacle if they are taken. */
void player_memory_reserve(struct player *p);
/* Maps memory there. Makes an obstacle if there is too little. */
void player_memory_map(struct player *p);
/* restore.c: sets all contents as at the begin of the recording. */
void player_restore(struct player *p);
/* The same after a pass, for memory that passes change. */
void player_restore_dirty(struct player *p);
/* player_watch before a first pass on restored memory, player_compare after it: find out what
 * passes change. */
void player_watch(struct player *p);
void player_compare(struct player *p);
/* Compares memory with the trace: returns the number of differences, and describes them in
 * `wrong`. */
size_t player_checks(struct player *p, struct notes *wrong);

/* plan.c: makes the ops as far as possible without a driver; makes obstacles. */
void player_plan(struct player *p);
/* hosts.c: makes the memory of downloads, which then name it by number. Makes an obstacle if it
 * is too much. */
void player_hosts(struct player *p);
/* bind.c: functions, streams, events, host memory, variables. */
void player_bind(struct player *p);
/* issue.c: one pass; returns when the GPU is done. Nanoseconds. */
uint64_t player_pass(struct player *p);

#endif
