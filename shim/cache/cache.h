/*
 * The signature cache on disk: which stretches of launches came again and again in earlier runs.
 *
 * Advice only. An entry says "the path of launches that ends with this hash was worth a graph of so
 * many of its last launches"; what is made of that is up to the plan (plan/advice.h), which matches
 * every launch as ever. So a file that is wrong, old or made by an enemy costs time at most.
 *
 * One file in a folder, shared by programs and processes. Written whole to another name and
 * renamed, under a lock that nobody waits for. Read only where it is a plain file of this user's,
 * or root's, that others may not write. Nothing here is called on the path of a launch.
 */
#ifndef CUSPLICE_CACHE_CACHE_H
#define CUSPLICE_CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUS_CACHE_FILE "cusplice.cache"
#define CUS_CACHE_MAGIC "CUSCACHE" /* without the NUL */
enum { CUS_CACHE_VERSION = 1, CUS_CACHE_OPS_MIN = 2, CUS_CACHE_OPS_MAX = 1024 };

/* As in the file, little-endian: behind the head, ascending by `path`, each path once. */
struct cus_cache_entry {
    uint64_t path;    /* hash of the path up to its last launch: what GPU, driver and version, which
                         kernels of which modules, in which order */
    uint32_t ops;     /* launches of it that were one graph, the last ones */
    uint32_t pace_ns; /* host time between launches that set that number; 0: something else did */
    uint32_t used;    /* the file's generation when a process last had it in use */
    uint32_t launches; /* of that graph, in the run that wrote it last */
};

struct cus_cache_head {
    char magic[8];
    uint32_t version;
    uint32_t entry_bytes;
    uint64_t n;
    uint64_t check;      /* XXH3 of the entries, seeded with what stands before and behind this */
    uint32_t generation; /* counts how often the file was written */
    uint32_t zero;
};

struct cus_cache {
    struct cus_cache_entry *entries; /* of cus_mem_alloc; NULL where there are none */
    uint32_t n;
    uint32_t generation;
};

enum cus_cache_state {
    CUS_CACHE_GOOD,
    CUS_CACHE_NONE,    /* no such file or folder */
    CUS_CACHE_CORRUPT, /* it will be replaced */
    CUS_CACHE_NEWER,   /* of a later version of this library: left as it is */
    CUS_CACHE_REFUSED, /* not this user's, or others may write it */
    CUS_CACHE_FAILED,  /* it could not be read or written */
    CUS_CACHE_BUSY,    /* another process writes it just now */
};
/* One word for reports: "good", "none", "corrupt", ... */
const char *cus_cache_state_name(enum cus_cache_state state);

/* A hash that is the same in each process. */
uint64_t cus_cache_hash(const void *at, size_t bytes, uint64_t seed);

/* What a file's bytes hold. Pure but for the memory of *out, which only a GOOD one gets. *why: what
 * is wrong, NULL where nothing is. */
enum cus_cache_state cus_cache_parse(const void *bytes, size_t size, struct cus_cache *out,
                                     const char **why);
/* The file of that folder. */
enum cus_cache_state cus_cache_read(const char *folder, struct cus_cache *out, const char **why);
void cus_cache_free(struct cus_cache *cache);

/* Entries in a file of so many bytes. */
uint32_t cus_cache_room(uint64_t bytes);

/* Sorts by path; of entries with the same path the one used last stays. Returns how many stay. */
uint32_t cus_cache_sort(struct cus_cache_entry *entries, uint32_t n);
/* Of entries that are sorted, where this path is; `n` where it is not there. */
uint32_t cus_cache_find(const struct cus_cache_entry *entries, uint32_t n, uint64_t path);

/*
 * Brings the file up to date: `add` (sorted) comes in and takes the place of what has the same
 * path, `drop` (sorted; only `path` counts) goes, and beyond `room` entries what was used longest
 * ago. The folder is made where it is missing. Nothing is written where that would change nothing
 * of use. *n: entries in the file then; *wrote: whether it was written. Waits for nobody: BUSY.
 */
enum cus_cache_state cus_cache_update(const char *folder, uint32_t room,
                                      const struct cus_cache_entry *add, uint32_t n_add,
                                      const struct cus_cache_entry *drop, uint32_t n_drop,
                                      uint32_t *n, bool *wrote, const char **why);
/* Removes the file. GOOD, or NONE where there was none. */
enum cus_cache_state cus_cache_clear(const char *folder, const char **why);

#ifdef __cplusplus
}
#endif

#endif
