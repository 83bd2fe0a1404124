/*
 * Reads small files of /proc, /sys and /etc, below the root that tests set. Probes call it, in
 * their children. It never writes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/doctor/probe.h"

const char *doctor_path(char out[PATH_MAX], const char *path) {
    snprintf(out, PATH_MAX, "%s%s", doctor_facts->asked->root, path);
    return out;
}

bool doctor_read(const char *path, char *out, size_t bytes) {
    char whole[PATH_MAX];
    int fd = open(doctor_path(whole, path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t used = 0;
    ssize_t got = -1;
    while (fd >= 0 && used + 1 < bytes && (got = read(fd, out + used, bytes - 1 - used)) > 0)
        used += (size_t)got;
    if (fd >= 0)
        close(fd);
    out[used] = 0;
    return got >= 0;
}

void doctor_value_of(const char *text, const char *key, char *out, size_t bytes) {
    size_t length = strlen(key);
    *out = 0;
    for (const char *line = text; *line;) {
        size_t end = strcspn(line, "\n");
        if (end > length && strncmp(line, key, length) == 0 && strchr(":=", line[length])) {
            const char *value = line + length + 1;
            value += strspn(value, " \t\"");
            size_t used = (size_t)(line + end - value);
            while (used && strchr("\" \t", value[used - 1]))
                used--;
            snprintf(out, bytes, "%.*s", (int)used, value);
            return;
        }
        line += end + (line[end] == '\n');
    }
}
