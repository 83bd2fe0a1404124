/*
 * The table of entry points, and the macros that define them. Part of cusim.h, which includes it.
 *
 * Any thread. CUSIM_LOCKED and CUSIM_TWIN_LOCKED hold cusim.lock while a body runs.
 */
#ifndef CUSIM_ENTRY_H
#define CUSIM_ENTRY_H

enum cusim_api {
#define CUSIM_API(symbol, base, version, pt) CUSIM_API_##symbol,
#include "harness/sim/api.def"
#undef CUSIM_API
    CUSIM_API_COUNT
};

struct cusim_row {
    const char *symbol;
    const char *base;
    int version;
    int pt;
    void *address;
};
extern const struct cusim_row cusim_rows[CUSIM_API_COUNT];

/* Counts the call, injects a fault, and refuses calls before cuInit and after fork. Each
 * exported function calls it first. */
CUresult cusim_enter(enum cusim_api api);
CUresult
cusim_enter_early(enum cusim_api api); /* the same for calls that are legal before cuInit */

#define CUSIM_ENTER(symbol)                                                                        \
    do {                                                                                           \
        CUresult enter_result_ = cusim_enter(CUSIM_API_##symbol);                                  \
        if (enter_result_ != CUDA_SUCCESS)                                                         \
            return enter_result_;                                                                  \
    } while (0)
#define CUSIM_ENTER_EARLY(symbol)                                                                  \
    do {                                                                                           \
        CUresult enter_result_ = cusim_enter_early(CUSIM_API_##symbol);                            \
        if (enter_result_ != CUDA_SUCCESS)                                                         \
            return enter_result_;                                                                  \
    } while (0)

/* Defines an entry point and its per-thread twin with one body, which has `bool ptsz` before its
 * parameters: CUSIM_TWIN(cuStreamQuery, _ptsz, (CUstream stream), (stream)) { ... } */
#define CUSIM_UNPACK(...) __VA_ARGS__
#define CUSIM_TWIN(symbol, suffix, params, args)                                                   \
    static CUresult symbol##_body(bool ptsz, CUSIM_UNPACK params);                                 \
    CUresult symbol params {                                                                       \
        CUSIM_ENTER(symbol);                                                                       \
        return symbol##_body(false, CUSIM_UNPACK args);                                            \
    }                                                                                              \
    CUresult symbol##suffix params {                                                               \
        CUSIM_ENTER(symbol##suffix);                                                               \
        return symbol##_body(true, CUSIM_UNPACK args);                                             \
    }                                                                                              \
    static CUresult symbol##_body(bool ptsz, CUSIM_UNPACK params)

/* Defines an entry point without a twin; its body runs with the lock held. */
#define CUSIM_LOCKED(symbol, params, args)                                                         \
    static CUresult symbol##_body params;                                                          \
    CUresult symbol params {                                                                       \
        CUSIM_ENTER(symbol);                                                                       \
        cusim_lock();                                                                              \
        CUresult locked_result_ = symbol##_body args;                                              \
        cusim_unlock();                                                                            \
        return locked_result_;                                                                     \
    }                                                                                              \
    static CUresult symbol##_body params

/* Defines an entry point with a twin; its body runs with the lock held. */
#define CUSIM_TWIN_LOCKED(symbol, suffix, params, args)                                            \
    static CUresult symbol##_body(bool ptsz, CUSIM_UNPACK params);                                 \
    CUresult symbol params {                                                                       \
        CUSIM_ENTER(symbol);                                                                       \
        cusim_lock();                                                                              \
        CUresult locked_result_ = symbol##_body(false, CUSIM_UNPACK args);                         \
        cusim_unlock();                                                                            \
        return locked_result_;                                                                     \
    }                                                                                              \
    CUresult symbol##suffix params {                                                               \
        CUSIM_ENTER(symbol##suffix);                                                               \
        cusim_lock();                                                                              \
        CUresult locked_result_ = symbol##_body(true, CUSIM_UNPACK args);                          \
        cusim_unlock();                                                                            \
        return locked_result_;                                                                     \
    }                                                                                              \
    static CUresult symbol##_body(bool ptsz, CUSIM_UNPACK params)

/* The driver version whose entry points this library exports (version.c). */
extern const int cusim_driver_version;

#endif
