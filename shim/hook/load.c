/*
 * Loading of modules and libraries. Rules ask from which file code comes: the named file, or the
 * object whose mapping holds the image. Code that was compiled or unpacked in memory comes from no
 * file. The signature cache asks which code it is in any process: a hash of its build id and its
 * place in it, or of its bytes. Runs on the program's thread at depth 1, without a lock. The
 * callback under the loader's lock compares addresses and copies one name. The library loaders have
 * too many arguments for around.c.
 */
#define __CUDA_API_VERSION_INTERNAL
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "shim/base/fatbin.h"
#include "shim/base/file.h"
#include "shim/cache/cache.h"
#include "shim/hook/act.h"
#include "shim/hook/guard.h"
#include "shim/hook/lifecycle.h"
#include "shim/hook/load.h"
#include "shim/hook/real.h"
#include "shim/hook/resolve.h"
#include "shim/hook/slots.h"
#include "shim/hook/wrap.h"
#include "shim/keep/image.h"
#include "shim/stream/engine.h"

#include "shim/base/forbid.h"

enum { NAME_BYTES = 256, PATH_BYTES = 4096 };

struct look {
    uintptr_t address;
    bool found;
    char path[PATH_BYTES]; /* "": the program itself */
};

static int visit(struct dl_phdr_info *info, size_t bytes, void *context) {
    struct look *look = context;
    (void)bytes;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || look->address - start >= segment->p_memsz)
            continue;
        const char *path = info->dlpi_name ? info->dlpi_name : "";
        size_t length = strlen(path);
        look->found = length < sizeof look->path;
        if (look->found)
            memcpy(look->path, path, length + 1);
        return 1;
    }
    return 0;
}

static const char *without_folders(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* NULL: the address lies in no object's mapping. */
static const char *object_of(const void *address, struct look *look) {
    look->address = (uintptr_t)address;
    look->found = false;
    dl_iterate_phdr(visit, look);
    if (!look->found)
        return NULL;
    if (!*look->path) {
        ssize_t length = readlink("/proc/self/exe", look->path, sizeof look->path - 1);
        if (length <= 0)
            return NULL;
        look->path[length] = 0;
    }
    return without_folders(look->path);
}

/* The driver takes an image or nvcc's wrapper around one. The image or the wrapper may lie in an
 * object. */
static const char *file_of(const void *image, struct look *look) {
    struct cus_fatbin_wrapper wrapper;
    const char *file = object_of(image, look);
    if (file)
        return file;
    memcpy(&wrapper.magic, image, sizeof wrapper.magic);
    if (wrapper.magic != CUS_FATBIN_WRAPPER_MAGIC)
        return NULL;
    memcpy(&wrapper, image, sizeof wrapper);
    return object_of(wrapper.data, look);
}

/* ---- which code it is ---- */

enum {
    HASHED = 1 << 20,       /* bytes hashed of an image that was just made, or of a file */
    HASHED_MAPPED = 1 << 12 /* bytes hashed of an image in an object without a build id */
};

/* An image in the mapping of an object may be large and not yet in memory. If the object has a
 * build id, the function reads nothing of the image. */
static uint64_t hash_of_image(const void *given) {
    struct cus_keep_image image;
    if (!cus_keep_image_find(given, &image))
        return 0;
    const uint64_t where[] = {image.offset, image.bytes};
    uint64_t hash = cus_cache_hash(where, sizeof where, 0);
    if (*image.build_id)
        return cus_cache_hash(image.build_id, strlen(image.build_id), hash) | 1;
    size_t most = HASHED;
    if (*image.path) {
        const char *name = without_folders(image.path);
        hash = cus_cache_hash(name, strlen(name), hash);
        most = HASHED_MAPPED;
    }
    return cus_cache_hash(image.at, image.bytes < most ? image.bytes : most, hash) | 1;
}

static uint64_t hash_of_file(const char *path) {
    char part[4096];
    struct stat info;
    int fd = cus_file_open(path, O_RDONLY, 0);
    uint64_t hash = 0;
    if (fd < 0)
        return 0;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        hash = (uint64_t)info.st_size;
        for (off_t at = 0; at < HASHED;) {
            ssize_t n = pread(fd, part, sizeof part, at);
            if (n <= 0)
                break;
            hash = cus_cache_hash(part, (size_t)n, hash);
            at += n;
        }
        hash |= 1;
    }
    close(fd);
    return hash;
}

static uint64_t hash_of(const void *image, const char *path) {
    int saved = errno;
    uint64_t hash = 0;
    if (cus_engine_asks_code())
        hash = image ? hash_of_image(image) : hash_of_file(path);
    errno = saved;
    return hash;
}

void cus_load_begins(unsigned row) {
    cus_act_flush(row, NULL);
    const char *route = cus_slots_look(false);
    if (route)
        cus_lifecycle_defer_off(route);
}

void cus_load_ended(const void *code, const void *image, const char *path) {
    if (!cus_engine_asks_library())
        return;
    struct look look;
    const char *file = image ? file_of(image, &look) : without_folders(path);
    cus_engine_code_loaded(code, file && strlen(file) < NAME_BYTES ? file : NULL,
                           hash_of(image, path));
}

#define LOAD_LIBRARY(symbol, type, by_name)                                                        \
    CUS_WRAP(symbol,                                                                               \
             (CUlibrary * library_, type source_, CUjit_option * jit_, void **jit_values_,         \
              unsigned int n_jit_, CUlibraryOption *options_, void **values_, unsigned int n_)) {  \
        struct cus_guard guard;                                                                    \
        if (!cus_real_find())                                                                      \
            return cus_real_absent();                                                              \
        if (!cus_guard_enter(&guard))                                                              \
            return CUS_REAL(symbol)(library_, source_, jit_, jit_values_, n_jit_, options_,        \
                                    values_, n_);                                                  \
        cus_load_begins(CUS_ROW_##symbol);                                                         \
        CUresult result =                                                                          \
            CUS_REAL(symbol)(library_, source_, jit_, jit_values_, n_jit_, options_, values_, n_); \
        if (result == CUDA_SUCCESS)                                                                \
            cus_load_ended(*library_, by_name ? NULL : (const void *)source_,                      \
                           by_name ? (const char *)source_ : NULL);                                \
        cus_guard_leave(&guard);                                                                   \
        return result;                                                                             \
    }

LOAD_LIBRARY(cuLibraryLoadData, const void *, false)
LOAD_LIBRARY(cuLibraryLoadFromFile, const char *, true)
