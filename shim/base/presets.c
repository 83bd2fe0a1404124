/*
 * Finds the folder of the presets from where this very code lies: in the library or, in a tool, in
 * its program. Any thread, no lock, no allocation. Whether a file of the folder is believed is
 * decided where the file is opened.
 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "shim/base/presets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/config.h"
#include "shim/base/file.h"

const char *cus_preset_folder;

/* From the folder of the library or program. The number: how many folders further up. */
static const struct {
    int up;
    const char *below;
} places[] = {
    {1, "config/built/presets"},   /* bazel-bin/shim/libcusplice.so, bazel-bin/tools/cusplice */
    {1, "share/cusplice/presets"}, /* PREFIX/bin/cusplice, PREFIX/lib/libcusplice.so */
    {2, "share/cusplice/presets"}, /* PREFIX/lib/cusplice/libcusplice.so */
    {0, "presets"},                /* all in one folder */
};

/* Is this the object with this very code? Then *context gets its path; the program's is "". */
static int find_object(struct dl_phdr_info *info, size_t bytes, void *context) {
    (void)bytes;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD ||
            (uintptr_t)places - (info->dlpi_addr + segment->p_vaddr) >= segment->p_memsz)
            continue;
        *(const char **)context = info->dlpi_name ? info->dlpi_name : "";
        return 1;
    }
    return 0;
}

/* The file that this code is from. Not by dladdr: that takes the lock that a thread holds while
 * the constructors of its dlopen run, and such a thread may wait for this one. */
static bool find_self(char *out, size_t bytes) {
    const char *path = NULL;
    ssize_t got = -1;
    dl_iterate_phdr(find_object, &path);
    if (!path)
        return false;
    if (*path)
        return (size_t)snprintf(out, bytes, "%s", path) < bytes;
    got = readlink("/proc/self/exe", out, bytes - 1);
    out[got > 0 ? got : 0] = 0;
    return got > 0;
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool find_folder(char *out, size_t bytes) {
    char self[PATH_MAX];
    if (cus_preset_folder)
        return (size_t)snprintf(out, bytes, "%s", cus_preset_folder) < bytes;
    if (!find_self(self, sizeof self))
        return false;
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        int used = (int)strlen(self);
        for (int up = -1; up < places[i].up && used >= 0; up++)
            do
                used--;
            while (used >= 0 && self[used] != '/');
        if (used >= 0 &&
            (size_t)snprintf(out, bytes, "%.*s/%s", used, self, places[i].below) < bytes &&
            is_folder(out))
            return true;
    }
    return false;
}

bool cus_preset_home(char *out, size_t bytes) {
    int saved = errno;
    bool found = find_folder(out, bytes) && is_folder(out);
    errno = saved;
    return found;
}

bool cus_preset_find(const char *name, char *out, size_t bytes) {
    char folder[PATH_MAX];
    int saved = errno;
    bool found = *name && !strchr(name, '/') && find_folder(folder, sizeof folder) &&
                 (size_t)snprintf(out, bytes, "%s/%s.conf", folder, name) < bytes &&
                 access(out, F_OK) == 0;
    errno = saved;
    return found;
}

bool cus_preset_is(const char *path) {
    char folder[PATH_MAX];
    int saved = errno;
    size_t used = find_folder(folder, sizeof folder) ? strlen(folder) : 0;
    errno = saved;
    return used && strncmp(path, folder, used) == 0 && path[used] == '/' &&
           !strchr(path + used + 1, '/');
}

struct entry { /* as in getdents64; opendir would allocate by the program's malloc */
    uint64_t number, offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

/* Takes a file's name, if it is nearer than what is there. */
static void take_nearer(const char *file, const char *name, unsigned *best, char *out,
                        size_t bytes) {
    char word[CUS_PRESET_BYTES];
    size_t used = strlen(file);
    if (used <= 5 || strcmp(file + used - 5, ".conf") != 0 || used - 5 >= sizeof word)
        return;
    snprintf(word, sizeof word, "%.*s", (int)(used - 5), file);
    unsigned distance = cus_distance(name, word);
    if (distance > *best || (distance == *best && strcmp(word, out) > 0))
        return; /* the order of a folder is any */
    *best = distance;
    snprintf(out, bytes, "%s", word);
}

void cus_preset_nearest(const char *name, char *out, size_t bytes) {
    _Alignas(struct entry) char list[4096];
    char folder[PATH_MAX];
    unsigned best = UINT_MAX;
    int saved = errno, fd = -1;
    *out = 0;
    if (find_folder(folder, sizeof folder))
        fd = cus_file_open(folder, O_RDONLY | O_DIRECTORY, 0);
    for (long got; fd >= 0 && (got = syscall(SYS_getdents64, fd, list, sizeof list)) > 0;)
        for (long at = 0; at < got; at += ((const struct entry *)&list[at])->length)
            take_nearer(((const struct entry *)&list[at])->name, name, &best, out, bytes);
    if (fd >= 0)
        close(fd);
    errno = saved;
}
