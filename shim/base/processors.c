/*
 * Reads /proc/self/cgroup, then the limits of these groups and of all groups above them. In a
 * container, /proc may name the host's path, and only the uppermost group may exist. Any thread, no
 * lock, no allocation.
 */
#include "shim/base/processors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/file.h"

enum { PATH = 4096 };

/* Reads the beginning of the file as a string. False: there is none. */
static bool read_text(const char *path, char *text, size_t bytes) {
    int fd = cus_file_open(path, O_RDONLY, 0);
    ssize_t got = fd < 0 ? -1 : read(fd, text, bytes - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

static unsigned share(long long quota, long long period) {
    return quota > 0 && period > 0 ? (unsigned)((quota + period - 1) / period) : 0;
}

/* cpu.max holds a quota and a period in us, or "max" and a period. */
static unsigned of_group(const char *folder) {
    char path[PATH + 32], text[64], *end;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (read_text(path, text, sizeof text)) {
        long long quota = strtoll(text, &end, 10);
        return share(quota, strtoll(end, NULL, 10));
    }
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_text(path, text, sizeof text))
        return 0;
    long long quota = strtoll(text, NULL, 10);
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    return read_text(path, text, sizeof text) ? share(quota, strtoll(text, NULL, 10)) : 0;
}

/* The least quota of the groups from `group` up to the uppermost one at `mounted`. */
static unsigned of_groups(const char *root, const char *mounted, const char *group) {
    char folder[PATH];
    int base = snprintf(folder, sizeof folder, "%s%s", root, mounted);
    int length =
        base < PATH ? snprintf(folder + base, sizeof folder - (size_t)base, "%s", group) : PATH;
    if (base >= PATH || length >= PATH - base)
        return 0;
    unsigned least = 0;
    for (;;) {
        unsigned here = of_group(folder);
        if (here && (!least || here < least))
            least = here;
        char *slash = strrchr(folder + base, '/');
        if (!slash)
            return least;
        *slash = 0;
    }
}

/* True: the comma-separated list contains `name`. */
static bool lists(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *at = list; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        if (length == n && strncmp(at, name, n) == 0)
            return true;
        at += length;
    }
    return false;
}

/* A line is NUMBER:CONTROLLERS:GROUP. No controllers: version 2. */
static unsigned of_line(const char *root, char *line) {
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : 0;
    if (!group)
        return 0;
    *group++ = 0;
    controllers++;
    return !*controllers               ? of_groups(root, "/sys/fs/cgroup", group)
           : lists(controllers, "cpu") ? of_groups(root, "/sys/fs/cgroup/cpu", group)
                                       : 0;
}

unsigned cus_processors_quota(const char *root) {
    char path[PATH], text[4096], *rest = NULL;
    int saved = errno;
    unsigned least = 0;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    read_text(path, text, sizeof text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        unsigned here = of_line(root, line);
        if (here && (!least || here < least))
            least = here;
    }
    errno = saved;
    return least;
}
