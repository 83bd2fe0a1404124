/*
 * Reads and writes the file of the signature cache. Any thread, but never under a lock that
 * launches take; the caller ensures that no two threads of a process update at once. Keeps errno
 * and raises no signal. The file is not synchronised with the disk: after a power failure the
 * checksum shows damage.
 */
#include "shim/cache/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include "xxhash.h"

#include "shim/base/file.h"
#include "shim/base/mem.h"

#include "shim/base/forbid.h"

#define TEMPORARY CUS_CACHE_FILE ".new"
#define LOCK CUS_CACHE_FILE ".lock"

_Static_assert(sizeof(struct cus_cache_entry) == 24, "as in the file");
_Static_assert(sizeof(struct cus_cache_head) == 40, "as in the file");

enum { READ_MAX = 1 << 28 }; /* the options allow no larger file */

const char *cus_cache_state_name(enum cus_cache_state state) {
    static const char *const names[] = {"good",    "none",   "corrupt", "newer",
                                        "refused", "failed", "busy"};
    return names[state];
}

uint64_t cus_cache_hash(const void *at, size_t bytes, uint64_t seed) {
    return XXH3_64bits_withSeed(at, bytes, seed);
}

uint32_t cus_cache_room(uint64_t bytes) {
    const uint64_t head = sizeof(struct cus_cache_head);
    if (bytes > READ_MAX)
        bytes = READ_MAX;
    return bytes < head ? 0 : (uint32_t)((bytes - head) / sizeof(struct cus_cache_entry));
}

void cus_cache_free(struct cus_cache *cache) {
    cus_mem_free(cache->entries);
    *cache = (struct cus_cache){0};
}

/* ---- what a file's bytes mean ---- */

static uint64_t checksum(const struct cus_cache_head *head, const void *entries, size_t bytes) {
    struct cus_cache_head without = *head;
    without.check = 0;
    return cus_cache_hash(entries, bytes, cus_cache_hash(&without, sizeof without, 0));
}

static const char *wrong_entry(const struct cus_cache_entry *entries, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        if (i && entries[i].path <= entries[i - 1].path)
            return "its entries are in no order";
        if (entries[i].ops < CUS_CACHE_OPS_MIN || entries[i].ops > CUS_CACHE_OPS_MAX)
            return "an entry has no sense";
    }
    return NULL;
}

enum cus_cache_state cus_cache_parse(const void *bytes, size_t size, struct cus_cache *out,
                                     const char **why) {
    struct cus_cache_head head;
    *out = (struct cus_cache){0};
    *why = "it is no cache of this library's";
    if (size < sizeof head)
        return CUS_CACHE_CORRUPT;
    memcpy(&head, bytes, sizeof head);
    if (memcmp(head.magic, CUS_CACHE_MAGIC, sizeof head.magic) != 0 || head.version == 0)
        return CUS_CACHE_CORRUPT;
    *why = "a later version of the library wrote it";
    if (head.version > CUS_CACHE_VERSION)
        return CUS_CACHE_NEWER;
    *why = "its size is not what it says";
    const size_t rest = size - sizeof head;
    if (head.entry_bytes != sizeof(struct cus_cache_entry) || head.n > READ_MAX ||
        rest != head.n * sizeof(struct cus_cache_entry))
        return CUS_CACHE_CORRUPT;
    const char *at = (const char *)bytes + sizeof head;
    *why = "its checksum is another one";
    if (checksum(&head, at, rest) != head.check || head.zero)
        return CUS_CACHE_CORRUPT;
    out->generation = head.generation;
    *why = NULL;
    if (!head.n)
        return CUS_CACHE_GOOD;
    *why = "there is no memory for it";
    if (!(out->entries = cus_mem_alloc(rest)))
        return CUS_CACHE_FAILED;
    memcpy(out->entries, at, rest);
    if ((*why = wrong_entry(out->entries, head.n))) {
        cus_cache_free(out);
        return CUS_CACHE_CORRUPT;
    }
    out->n = (uint32_t)head.n;
    return CUS_CACHE_GOOD;
}

/* ---- files ---- */

/* -1: *state and *why say why not. */
static int open_folder(const char *folder, bool make, enum cus_cache_state *state,
                       const char **why) {
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
    struct stat info;
    int fd = cus_file_open(folder, flags, 0);
    if (fd < 0 && errno == ENOENT && make && mkdir(folder, 0700) == 0)
        fd = cus_file_open(folder, flags, 0);
    if (fd < 0) {
        *state = errno == ENOENT && !make             ? CUS_CACHE_NONE
                 : errno == ELOOP || errno == ENOTDIR ? CUS_CACHE_REFUSED
                                                      : CUS_CACHE_FAILED;
        *why = *state == CUS_CACHE_NONE      ? NULL
               : *state == CUS_CACHE_REFUSED ? "it is no folder"
               : make                        ? "the folder cannot be made or opened"
                                             : "the folder cannot be opened";
        return -1;
    }
    if (fstat(fd, &info) == 0 && cus_file_is_trusted(&info))
        return fd;
    close(fd);
    *state = CUS_CACHE_REFUSED;
    *why = "the folder is another user's, or others may write there";
    return -1;
}

static bool read_all(int fd, char *to, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(fd, to + done, bytes - done, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* The file is not mapped: if somebody cut it short, a load would end the process. */
static enum cus_cache_state read_file(int folder, struct cus_cache *out, const char **why) {
    struct stat info;
    *out = (struct cus_cache){0};
    int fd = cus_file_open_at(folder, CUS_CACHE_FILE, O_RDONLY | O_NOFOLLOW, 0);
    *why = NULL;
    if (fd < 0 && errno == ENOENT)
        return CUS_CACHE_NONE;
    enum cus_cache_state state = CUS_CACHE_REFUSED;
    *why = "it is no plain file of this user's that others may not write";
    if (fd < 0 && errno != ELOOP) {
        state = CUS_CACHE_FAILED;
        *why = "it cannot be opened";
    }
    if (fd < 0)
        return state;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && cus_file_is_trusted(&info)) {
        state = CUS_CACHE_CORRUPT;
        *why = "it is too large";
        if (info.st_size <= READ_MAX) {
            size_t bytes = (size_t)info.st_size;
            char *copy = cus_mem_alloc(bytes + 1);
            state = CUS_CACHE_FAILED;
            *why = "it cannot be read";
            if (copy && read_all(fd, copy, bytes))
                state = cus_cache_parse(copy, bytes, out, why);
            cus_mem_free(copy);
        }
    }
    close(fd);
    return state;
}

enum cus_cache_state cus_cache_read(const char *folder, struct cus_cache *out, const char **why) {
    int saved = errno;
    enum cus_cache_state state;
    *out = (struct cus_cache){0};
    int fd = open_folder(folder, false, &state, why);
    if (fd >= 0) {
        state = read_file(fd, out, why);
        close(fd);
    }
    errno = saved;
    return state;
}

static bool write_all(int fd, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes) {
        ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* True: the write stays within the process's limit. A write beyond it would raise a signal that
 * the program does not expect. */
static bool may_be_so_large(size_t bytes) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
           (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur);
}

/* The cache's lock is held, so nobody else uses the temporary file. An existing one comes from a
 * process that was killed. */
static bool write_file(int folder, const struct cus_cache *cache) {
    struct cus_cache_head head = {.version = CUS_CACHE_VERSION,
                                  .entry_bytes = sizeof(struct cus_cache_entry),
                                  .n = cache->n,
                                  .generation = cache->generation};
    size_t bytes = cache->n * sizeof *cache->entries;
    memcpy(head.magic, CUS_CACHE_MAGIC, sizeof head.magic);
    head.check = checksum(&head, cache->entries, bytes);
    if (!may_be_so_large(sizeof head + bytes))
        return false;
    unlinkat(folder, TEMPORARY, 0);
    int fd = cus_file_open_at(folder, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0)
        return false;
    /* Some umasks remove the user's own rights. */
    bool good = fchmod(fd, 0600) == 0 && write_all(fd, &head, sizeof head) &&
                write_all(fd, cache->entries, bytes);
    good &= close(fd) == 0;
    good = good && renameat(folder, TEMPORARY, folder, CUS_CACHE_FILE) == 0;
    if (!good)
        unlinkat(folder, TEMPORARY, 0);
    return good;
}

/* Takes the cache's lock. Returns a descriptor; closing it, or the end of the process, gives the
 * lock back. -1: *state says why. */
static int take_lock(int folder, enum cus_cache_state *state, const char **why) {
    struct stat info;
    int fd = cus_file_open_at(folder, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    *state = CUS_CACHE_FAILED;
    *why = "nothing can be written there";
    if (fd < 0)
        return -1;
    errno = 0;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (errno == EWOULDBLOCK) {
        *state = CUS_CACHE_BUSY;
        *why = NULL;
    }
    close(fd);
    return -1;
}

/* ---- entries ---- */

typedef bool order_fn(const struct cus_cache_entry *a, const struct cus_cache_entry *b);

static bool by_path(const struct cus_cache_entry *a, const struct cus_cache_entry *b) {
    return a->path != b->path ? a->path < b->path : a->used > b->used;
}
static bool by_use(const struct cus_cache_entry *a, const struct cus_cache_entry *b) {
    return a->used != b->used ? a->used > b->used : a->path < b->path;
}

static void sink(struct cus_cache_entry *entries, uint32_t at, uint32_t n, order_fn *before) {
    struct cus_cache_entry entry = entries[at];
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(&entries[child], &entries[child + 1]))
            child++;
        if (!before(&entry, &entries[child]))
            break;
        entries[at] = entries[child];
    }
    entries[at] = entry;
}

/* Sorts in place, in any order; qsort of the C library may allocate. */
static void sort(struct cus_cache_entry *entries, uint32_t n, order_fn *before) {
    for (uint32_t at = n / 2; at-- > 0;)
        sink(entries, at, n, before);
    for (uint32_t end = n; end > 1;) {
        struct cus_cache_entry last = entries[--end];
        entries[end] = entries[0];
        entries[0] = last;
        sink(entries, 0, end, before);
    }
}

uint32_t cus_cache_sort(struct cus_cache_entry *entries, uint32_t n) {
    uint32_t kept = 0;
    sort(entries, n, by_path);
    for (uint32_t i = 0; i < n; i++)
        if (!kept || entries[kept - 1].path != entries[i].path)
            entries[kept++] = entries[i];
    return kept;
}

/* Paths are hashes, so a path's value nearly tells its place. The search goes on from there in
 * growing steps, then by halves. */
uint32_t cus_cache_find(const struct cus_cache_entry *entries, uint32_t n, uint64_t path) {
    uint32_t low = 0, high = n, guess = (uint32_t)((path >> 32) * n >> 32);
    if (!n)
        return 0;
    if (entries[guess].path <= path) {
        low = guess;
        for (uint32_t step = 1; step < n - low; step *= 2) {
            if (entries[low + step].path > path) {
                high = low + step;
                break;
            }
            low += step;
        }
    } else {
        high = guess;
        for (uint32_t step = 1; step < high; step *= 2) {
            if (entries[high - step].path <= path) {
                low = high - step;
                break;
            }
            high -= step;
        }
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (entries[middle].path == path)
            return middle;
        if (entries[middle].path < path)
            low = middle + 1;
        else
            high = middle;
    }
    return n;
}

/* True: the update would change the file. In a file that is more than half full, entries in use are
 * marked as used last, so that they can be told from others; nobody marks them again before another
 * process has written. */
static bool would_change(const struct cus_cache *file, uint32_t room,
                         const struct cus_cache_entry *add, uint32_t n_add,
                         const struct cus_cache_entry *drop, uint32_t n_drop) {
    bool unmarked = false;
    for (uint32_t i = 0; i < n_drop; i++)
        if (cus_cache_find(file->entries, file->n, drop[i].path) < file->n &&
            cus_cache_find(add, n_add, drop[i].path) == n_add)
            return true;
    for (uint32_t i = 0; i < n_add; i++) {
        uint32_t at = cus_cache_find(file->entries, file->n, add[i].path);
        if (at == file->n || file->entries[at].ops != add[i].ops)
            return true;
        unmarked |= file->entries[at].used != file->generation;
    }
    return file->n > room || (unmarked && file->n > room / 2);
}

static bool merge(struct cus_cache *file, uint32_t room, const struct cus_cache_entry *add,
                  uint32_t n_add, const struct cus_cache_entry *drop, uint32_t n_drop) {
    struct cus_cache_entry *all = cus_mem_alloc(((size_t)file->n + n_add + 1) * sizeof *all);
    uint32_t n = 0;
    if (!all)
        return false;
    file->generation++;
    for (uint32_t i = 0; i < n_add; i++) {
        all[n] = add[i];
        all[n++].used = file->generation;
    }
    for (uint32_t i = 0; i < file->n; i++) {
        uint64_t path = file->entries[i].path;
        if (cus_cache_find(drop, n_drop, path) == n_drop &&
            cus_cache_find(add, n_add, path) == n_add)
            all[n++] = file->entries[i];
    }
    if (n > room) {
        sort(all, n, by_use);
        n = room;
    }
    n = cus_cache_sort(all, n);
    cus_mem_free(file->entries);
    file->entries = all;
    file->n = n;
    return true;
}

enum cus_cache_state cus_cache_update(const char *folder, uint32_t room,
                                      const struct cus_cache_entry *add, uint32_t n_add,
                                      const struct cus_cache_entry *drop, uint32_t n_drop,
                                      uint32_t *n, bool *wrote, const char **why) {
    int saved = errno, lock = -1;
    enum cus_cache_state state;
    struct cus_cache file = {0};
    *wrote = false;
    *n = 0;
    int fd = open_folder(folder, true, &state, why);
    if (fd >= 0 && (lock = take_lock(fd, &state, why)) >= 0) {
        state = read_file(fd, &file, why);
        bool replace = state == CUS_CACHE_NONE || state == CUS_CACHE_CORRUPT;
        if (replace ||
            (state == CUS_CACHE_GOOD && would_change(&file, room, add, n_add, drop, n_drop))) {
            state = CUS_CACHE_FAILED;
            *why = "it cannot be written";
            if (merge(&file, room, add, n_add, drop, n_drop) && (*wrote = write_file(fd, &file))) {
                state = CUS_CACHE_GOOD;
                *why = NULL;
            }
        }
        *n = file.n;
        cus_cache_free(&file);
    }
    if (lock >= 0)
        close(lock);
    if (fd >= 0)
        close(fd);
    errno = saved;
    return state;
}

enum cus_cache_state cus_cache_clear(const char *folder, const char **why) {
    int saved = errno;
    enum cus_cache_state state;
    int fd = open_folder(folder, false, &state, why);
    if (fd >= 0) {
        int lock = take_lock(fd, &state, why);
        if (lock >= 0) {
            state = CUS_CACHE_GOOD;
            if (unlinkat(fd, CUS_CACHE_FILE, 0) != 0) {
                state = errno == ENOENT ? CUS_CACHE_NONE : CUS_CACHE_FAILED;
                *why = errno == ENOENT ? NULL : "it cannot be removed";
            }
            close(lock);
        }
        close(fd);
    }
    errno = saved;
    return state;
}
