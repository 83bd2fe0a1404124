/*
 * The signature cache on disk: which stretches of launches repeated in earlier runs. It is advice
 * only: an entry says "the path that ends with this hash was worth a graph of its last so many
 * launches". The plan (plan/advice.h) decides and matches every launch as ever, so a wrong or
 * hostile file only costs time. One file in a folder serves all programs and processes. It is
 * written under another name and renamed, under a lock that nobody waits for, and trusted only if
 * others may not write it. No op calls anything here.
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

/* As in the file, little-endian: after the head, ascending by `path`, each path once. */
struct cus_cache_entry {
    uint64_t path;     /* hash of the path up to its last launch: GPU, driver and version, kernels
                        * and their modules, order */
    uint32_t ops;      /* how many of its last launches one graph held */
    uint32_t pace_ns;  /* host time between launches that led to `ops`; 0: something else did */
    uint32_t used;     /* the file's generation when a process last used the entry */
    uint32_t launches; /* of that graph, in the run that last wrote the entry */
};

struct cus_cache_head {
    char magic[8];
    uint32_t version;
    uint32_t entry_bytes;
    uint64_t n;
    uint64_t check;      /* XXH3 of the entries, seeded with a hash of this head (check = 0) */
    uint32_t generation; /* counts how often the file was written */
    uint32_t zero;
};

struct cus_cache {
    struct cus_cache_entry *entries; /* from cus_mem_alloc; NULL: none */
    uint32_t n;
    uint32_t generation;
};

enum cus_cache_state {
    CUS_CACHE_GOOD,
    CUS_CACHE_NONE,    /* no such file or folder */
    CUS_CACHE_CORRUPT, /* it will be replaced */
    CUS_CACHE_NEWER,   /* from a later version of this library: left unchanged */
    CUS_CACHE_REFUSED, /* not this user's, or others may write it */
    CUS_CACHE_FAILED,  /* it could not be read or written */
    CUS_CACHE_BUSY,    /* another process writes it now */
};
/* One word for reports: "good", "none", "corrupt", ... */
const char *cus_cache_state_name(enum cus_cache_state state);

/* A hash that is the same in every process. */
uint64_t cus_cache_hash(const void *at, size_t bytes, uint64_t seed);

/* Parses a file's bytes. Only a GOOD file gives *out memory. *why says what is wrong; NULL:
 * nothing is. */
enum cus_cache_state cus_cache_parse(const void *bytes, size_t size, struct cus_cache *out,
                                     const char **why);
/* Reads the file of the folder. */
enum cus_cache_state cus_cache_read(const char *folder, struct cus_cache *out, const char **why);
void cus_cache_free(struct cus_cache *cache);

/* How many entries a file of so many bytes holds. */
uint32_t cus_cache_room(uint64_t bytes);

/* Sorts by path. Of entries with the same path, the last used stays. Returns how many stay. */
uint32_t cus_cache_sort(struct cus_cache_entry *entries, uint32_t n);
/* The index of this path among sorted entries; `n`: it is not there. */
uint32_t cus_cache_find(const struct cus_cache_entry *entries, uint32_t n, uint64_t path);

/*
 * Updates the file. `add` (sorted) comes in and replaces entries with the same path; `drop`
 * (sorted; only `path` counts) goes; beyond `room` entries, the least recently used go. Makes the
 * folder if it is missing. Writes nothing if that would change nothing of use. *n: entries in the
 * file afterwards; *wrote: whether the file was written. Waits for nobody: BUSY.
 */
enum cus_cache_state cus_cache_update(const char *folder, uint32_t room,
                                      const struct cus_cache_entry *add, uint32_t n_add,
                                      const struct cus_cache_entry *drop, uint32_t n_drop,
                                      uint32_t *n, bool *wrote, const char **why);
/* Removes the file. GOOD, or NONE if there was none. */
enum cus_cache_state cus_cache_clear(const char *folder, const char **why);

#ifdef __cplusplus
}
#endif

#endif
