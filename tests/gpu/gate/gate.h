/*
 * The gate table: which driver calls wait for the GPU, and which spoil a capture. In a trial a gate
 * kernel spins on one stream and a row calls its function on its own thread. The controller sees
 * whether the function returns, then opens the gate.
 *
 * main.c is the parent, child.c one child, trial.c one trial; fixtures.c makes arguments. The
 * rows_*.c files have a weak function for each entry point of shim/api/cuda_api.def (not_called.def
 * has reasons for missing ones); rows_own.c has the library's own calls.
 */
#ifndef CUSPLICE_TESTS_GPU_GATE_H
#define CUSPLICE_TESTS_GPU_GATE_H

#include "tests/gpu/gate/driver.h"

/* ---- what a row sees ---- */

enum { GATE_SLOTS = 16, GATE_SLOT_BYTES = 1024, GATE_BYTES = 1 << 16 };

struct gate {
    /* Of the child; made once. */
    CUdevice device;
    CUdevice peer; /* another device, or the same one */
    CUcontext context;
    CUmodule module;
    CUfunction touch;    /* (unsigned *), run before */
    CUfunction set_flag; /* (unsigned *, unsigned) */
    CUfunction spin;     /* (flag, value, rounds, out) */
    CUstream busy;       /* non-blocking; the gate kernel spins here */
    CUstream side;       /* non-blocking, idle */
    CUstream other;      /* the same, for third threads */
    CUdeviceptr memory;  /* GATE_BYTES each */
    CUdeviceptr memory2;
    void *pinned;
    CUdeviceptr pinned_device;
    void *pageable;
    char file[128]; /* a file that holds the PTX text */
    char temporary[128];
    /* Of the trial. */
    char unfit[160]; /* why this row cannot be called; empty: it can */
    bool called;     /* F was called */
    bool refused;    /* F gave an error */
    _Alignas(64) unsigned char out[GATE_SLOTS][GATE_SLOT_BYTES];
};

/* Scratch space for results and descriptors, zero at the start of a trial. */
#define OUT(type, slot) ((type *)(void *)g->out[slot])

/* A step of preparing: the row is unfit if it fails, and then nothing more is called. Behind F it
 * is a step of cleaning up, which may fail where F was refused. */
#define TRY(symbol, arguments)                                                                     \
    do {                                                                                           \
        CUresult try_ = g->unfit[0] ? CUDA_SUCCESS : cu.symbol arguments;                          \
        if (try_ != CUDA_SUCCESS && !g->called)                                                    \
            gate_unfit(g, #symbol, try_);                                                          \
    } while (0)

/* The call that is measured. What stands behind it runs when the gate is open and the GPU idle. */
#define GATE(symbol, arguments)                                                                    \
    do {                                                                                           \
        if (!gate_enter(g, #symbol))                                                               \
            return;                                                                                \
        gate_leave(g, cu.symbol arguments, -1);                                                    \
    } while (0)
/* The same where F ends the life of something: done again if a capture forbade it. */
#define GATE_END(symbol, arguments)                                                                \
    do {                                                                                           \
        GATE(symbol, arguments);                                                                   \
        if (g->refused)                                                                            \
            TRY(symbol, arguments);                                                                \
    } while (0)
/* The same where one error is a legal answer. */
#define GATE_OR(symbol, arguments, code)                                                           \
    do {                                                                                           \
        if (!gate_enter(g, #symbol))                                                               \
            return;                                                                                \
        gate_leave(g, cu.symbol arguments, code);                                                  \
    } while (0)

#define ROW(symbol) void gate_row_##symbol(struct gate *g)
#define SIMPLE(symbol, arguments)                                                                  \
    ROW(symbol) {                                                                                  \
        GATE(symbol, arguments);                                                                   \
    }
#define TWINS(symbol, arguments)                                                                   \
    SIMPLE(symbol, arguments)                                                                      \
    SIMPLE(symbol##_ptsz, arguments)

void gate_unfit(struct gate *g, const char *what, CUresult code);
/* Called by the row's thread. now: the gate kernel spins from here on, so that work can be queued
 * behind it; enter: the next call is F; leave: F came back; returns when the gate was opened. */
void gate_now(struct gate *g);
bool gate_enter(struct gate *g, const char *symbol);
void gate_leave(struct gate *g, CUresult code, int legal);

#define CUS_API(symbol, class, scope, arg, abi, act, reason)                                       \
    void gate_row_##symbol(struct gate *g) __attribute__((weak));
#define CUS_API_NEWER(...)
#include "shim/api/cuda_api.def"

/* ---- rows ---- */

enum { GATE_PLAIN, GATE_PAGEABLE, GATE_CAPTURE, GATE_LAUNCH, GATE_COLUMNS };

struct gate_row {
    const char *name;
    const char *class;
    void (*run)(struct gate *g); /* NULL: not called */
    const char *reason;          /* then: why */
    bool alone;                  /* ruins the process */
};

unsigned gate_row_count(void);
struct gate_row gate_row_at(unsigned index);

extern const struct gate_row gate_own_rows[]; /* ends with a row without a name */

/* ---- one trial ---- */

struct gate_result {
    bool called;  /* else unfit says why not */
    bool waited;  /* not back within the limit */
    bool hung;    /* not back when the gate had been open for long: the process is lost */
    bool refused; /* capture: F itself failed with a capture error */
    bool spoilt;  /* capture: the capture was invalidated */
    bool locked;  /* launch: a launch of another thread did not return while F slept */
    bool ruined;  /* the GPU does not answer any more */
    int code;     /* of F */
    char unfit[160];
};

bool gate_lab_open(struct gate *g);
void gate_trial(struct gate *g, const struct gate_row *row, int column, int limit_ms,
                struct gate_result *result);
int gate_child(unsigned from, int out, int limit_ms, int short_ms);

/* ---- what F is called with; they say unfit and return NULL where they fail ---- */

extern const char gate_ptx_extra[];
CUevent gate_event(struct gate *g, unsigned flags);
CUevent gate_event_behind(struct gate *g); /* recorded behind the gate */
CUstream gate_stream(struct gate *g);
CUmodule gate_module(struct gate *g);
CUfunction gate_fresh_function(struct gate *g, CUmodule *module);
CUlibrary gate_library(struct gate *g);
CUkernel gate_kernel(struct gate *g, CUlibrary library);
CUdeviceptr gate_memory(struct gate *g, size_t bytes);
CUdeviceptr gate_managed(struct gate *g);
CUarray gate_array(struct gate *g);
CUarray gate_array_1d(struct gate *g);
CUmipmappedArray gate_mipmapped(struct gate *g);
CUcontext gate_context(struct gate *g); /* not current */
CUmemoryPool gate_pool(struct gate *g);
CUmemAllocationProp gate_prop(struct gate *g);
size_t gate_granularity(struct gate *g);
CUmemGenericAllocationHandle gate_physical(struct gate *g);
CUdeviceptr gate_mapped(struct gate *g, CUmemGenericAllocationHandle *physical);
void gate_unmap(struct gate *g, CUdeviceptr address, CUmemGenericAllocationHandle physical);
CUtexObject gate_texture(struct gate *g);
CUsurfObject gate_surface(struct gate *g, CUarray *array);
CUtexref gate_texref(struct gate *g);
CUgreenCtx gate_green(struct gate *g);
CUlinkState gate_link(struct gate *g);
CUmemLocation gate_location(struct gate *g);
/* A chain of n launches of touch; the last node through *node. */
CUgraph gate_graph(struct gate *g, unsigned n, CUgraphNode *node);
CUgraphExec gate_exec(struct gate *g, CUgraph graph);
CUDA_KERNEL_NODE_PARAMS gate_kernel_params(struct gate *g);
CUDA_MEMSET_NODE_PARAMS gate_memset_params(struct gate *g);
CUDA_MEMCPY3D gate_memcpy_params(struct gate *g);
void gate_nothing(void *data); /* a host function */

#endif
