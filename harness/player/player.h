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
#include "tools/trace/reader.h"

/* ---- code (code.c, image.c) ---- */

struct player_image {
    void *bytes; /* NULL: not there */
    bool cubin;  /* machine code of one GPU alone */
    CUmodule module;
    CUlibrary library;
};

/* A variable of a module, at its address when it was recorded, and here. */
struct player_global {
    const struct cst_span *span; /* globals are sorted by it */
    CUdeviceptr here;            /* 0: the module has none of that name */
    void *contents;              /* as the module was loaded */
};

/* ---- memory (memory.c) ---- */

/* Device memory in one piece, mapped as one. */
struct player_run {
    uint64_t address, bytes;
    uint64_t *hashes; /* of its pieces, before a pass (restore.c) */
};

/* What a pass changes, and how it is put back. */
struct player_dirty {
    uint64_t address, bytes;
    void *contents; /* NULL: too much in all */
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
    PLAYER_SET, /* settings of a function, where the program changed them between launches */
    PLAYER_RECORD,
    PLAYER_WAIT,
    PLAYER_SYNC_STREAM,
    PLAYER_SYNC_EVENT,
    PLAYER_SYNC_ALL,
};

struct player_op {
    enum player_what what;
    bool sync;  /* memset, copy: by a call without Async */
    bool first; /* of its thread */
    bool last;  /* of its step: the host has waited then */
    uint32_t thread;
    uint64_t gap_ns;
    CUstream stream;
    const struct cst_work *work;
    union {
        struct {
            CUfunction function;
            void **params;
            CUlaunchConfig *config; /* with attributes */
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
                const struct cst_span *span; /* of a download, until player_hosts */
            };
            size_t bytes;
        } copy;
        CUevent event;
        const struct player *player; /* PLAYER_SET: of the function that the work names */
    };
};

/* A word that holds an address of a variable: in params or in an op. */
struct player_patch {
    void *word; /* perhaps not aligned */
    const struct cst_span *span;
};

/* Host memory on one side of copies, as the program had it. */
struct player_host {
    const struct cst_span *span; /* NULL: pageable memory */
    uint64_t from, to;           /* addresses of it that copies write; 0 on of pageable memory */
    void *here;
};

/* How long the host takes between calls of typical steps. */
enum player_pace {
    PLAYER_RECORDED, /* as it did */
    PLAYER_FASTEST,  /* as in the fastest of the steps that are alike */
    PLAYER_UNPACED,
};

/* What the host has done before it waits: calls, work among them, and how long they took in the
 * last pass. */
struct player_step {
    size_t n_ops;
    bool typical; /* there is more work in steps of so many calls than in others of one length */
    uint64_t ns;
};

/* Params, and what points to them: memory behind this, which is never moved. */
struct player_chunk {
    struct player_chunk *before;
    uint64_t reserved;
};

struct player {
    struct cst_trace *trace;
    struct notes obstacles, warnings;
    bool no_memory;           /* ... of the device, is an obstacle */
    uint64_t may_take, taken; /* bytes of the host's memory for code, inputs and copies */
    enum player_pace pace;

    CUdevice device;
    char gpu[256];
    int capability; /* 10 * major + minor */
    int driver;     /* 1000 * major + 10 * minor of its CUDA */

    struct player_image *images; /* by id of the module */
    CUfunction *functions;       /* by id of the code */
    bool *used;                  /* the same: a launch names it */
    struct player_global *globals;
    size_t n_globals;
    const struct player_global **places; /* those that are here, by address, one for each */
    size_t n_places;

    size_t granule;
    struct player_run *runs; /* by address; the union of all device memory */
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
    struct player_patch *patches;
    size_t n_patches;
    struct player_host *hosts;
    size_t n_hosts;
    struct player_chunk *chunks; /* the last one */
    void **inputs;               /* by id */
    uint64_t *input_bytes;
    uint8_t *input_pinned; /* wanted so */
    uint32_t n_inputs;
    struct player_clock *clocks; /* by thread */
};

enum {
    PLAYER_STAGING = 16 << 20,
    PLAYER_TAKE_MIB = 4096,  /* may_take, and 100 times the length of the trace; --max-memory */
    PLAYER_DIRTY_MIB = 2048, /* more than that of host memory is not kept to put it back */
};

/* ---- main.c; a test brings its own ---- */

/* Exits with a line on stdout where there is none. */
void *player_need(void *memory);
/* Says what failed, on stdout, and ends the process. */
void player_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* The same where `result` is an error. */
void player_check(CUresult result, const char *call);

/* ---- what can be done ---- */

/* look.c: all that the trace says, as far as no driver is needed; obstacles and warnings.
 * `granule`, `capability` and `gpu` must be there. */
void player_look(struct player *p);
/* For tests: frees what player_look made, but for the trace. */
void player_forget(struct player *p);
/* So much more of the host's memory is to be taken, for `what`. Obstacle: more than it may. */
bool player_take(struct player *p, uint64_t bytes, const char *what);

/* steps.c: which steps there are, and which of them are typical. */
void player_steps(struct player *p);
/* The median of the typical ones in the last pass, ns. */
uint64_t player_step_ns(const struct player *p);

/* image.c: finds the bytes of each module that a launch or a variable needs; obstacles. */
void player_images(struct player *p);

/* code.c */
void player_load(struct player *p);
/* Gives the function the settings that its record has. */
CUresult player_set(const struct player *p, uint32_t code);
/* The address here of what was at `address` in that variable; 0: it is not there. */
CUdeviceptr player_global_at(const struct player *p, const struct cst_span *span);

/* memory.c: what is mapped, from the spans alone; obstacles. */
void player_memory_plan(struct player *p);
bool player_memory_has(const struct player *p, uint64_t address, uint64_t bytes);
/* Takes the addresses, before a context takes any. Obstacle: they cannot be had. */
void player_memory_reserve(struct player *p);
/* Maps memory there. Obstacle: there is too little. */
void player_memory_map(struct player *p);
/* restore.c: contents as the recording began. */
void player_restore(struct player *p);
/* The same, behind a pass: what passes change alone. */
void player_restore_dirty(struct player *p);
/* Before and behind a first pass on restored memory: finds out what passes change. */
void player_watch(struct player *p);
void player_compare(struct player *p);
/* Holds the memory against the trace: how many differ; those that do into `wrong`. */
size_t player_checks(struct player *p, struct notes *wrong);

/* plan.c: the ops, as far as no driver is needed; obstacles. */
void player_plan(struct player *p);
/* hosts.c: the memory that downloads go to; each then names it by its number. Obstacle: too much.
 */
void player_hosts(struct player *p);
/* bind.c: functions, streams, events, host memory, variables. */
void player_bind(struct player *p);
/* issue.c: one pass; returns when the GPU is done. Nanoseconds. */
uint64_t player_pass(struct player *p);

#endif
