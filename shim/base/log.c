/*
 * One line per event. Runs on any thread, under whatever lock its caller holds, also in a signal
 * handler of the program that calls CUDA: no lock, no allocation, no stdio stream. vsnprintf only
 * fills our own buffer. A log file is opened for each line, since a descriptor that is kept could
 * be closed by the program and come back as one of its own files.
 *
 * State: the configuration, written once by cus_log_configure before `levels_max` is published; the
 * repeat counters are atomics.
 */
#include "shim/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/path.h"

enum { LINE_BYTES = 1024, DOMAINS = 16, DOMAIN_BYTES = 24, REPEATS = 10, SLOTS = 64 };

static const char *const level_names[CUS_LEVELS] = {"error", "warn", "info", "debug"};

static struct {
    int level; /* of domains without one of their own */
    unsigned n_domains;
    struct {
        char name[DOMAIN_BYTES];
        int level;
    } domains[DOMAINS];
    char file[4096]; /* "": stderr; a copy, for the caller's text may go */
} config = {.level = CUS_WARN};
static int level_max = CUS_WARN; /* the most talkative of all: the one load of the fast path */

static struct {
    const char *fmt;
    unsigned count;
} repeats[SLOTS];

/* ---- configuration ---- */

/* The level named by the `bytes` at `word`, or -1. */
static int level_of(const char *word, size_t bytes) {
    for (int i = 0; i < CUS_LEVELS; i++)
        if (strlen(level_names[i]) == bytes && memcmp(level_names[i], word, bytes) == 0)
            return i;
    return -1;
}

/* Takes the part of a spec at *at and steps behind it. False where it is malformed. */
static bool take_part(const char **at, const char **domain, size_t *domain_bytes, int *level) {
    const char *part = *at;
    size_t bytes = strcspn(part, ",");
    const char *colon = memchr(part, ':', bytes);
    *at = part + bytes + (part[bytes] == ',');
    *domain = part;
    *domain_bytes = colon ? (size_t)(colon - part) : 0;
    const char *word = colon ? colon + 1 : part;
    *level = level_of(word, (size_t)(part + bytes - word));
    return *level >= 0 && *domain_bytes < DOMAIN_BYTES && (!colon || colon > part);
}

const char *cus_log_spec_error(const char *spec) {
    for (const char *at = spec; *at;) {
        const char *domain, *part = at;
        size_t bytes;
        int level;
        if (!take_part(&at, &domain, &bytes, &level))
            return part;
    }
    return NULL;
}

void cus_log_configure(const char *spec, const char *file) {
    int most = CUS_WARN;
    config.level = CUS_WARN;
    config.n_domains = 0;
    size_t bytes_of_file = file ? strnlen(file, sizeof config.file) : 0;
    if (bytes_of_file == sizeof config.file)
        bytes_of_file = 0;
    if (bytes_of_file)
        memcpy(config.file, file, bytes_of_file);
    config.file[bytes_of_file] = 0;
    for (const char *at = spec ? spec : ""; *at;) {
        const char *domain;
        size_t bytes;
        int level;
        if (!take_part(&at, &domain, &bytes, &level))
            continue;
        if (!bytes) {
            config.level = level;
        } else if (config.n_domains < DOMAINS) {
            memcpy(config.domains[config.n_domains].name, domain, bytes);
            config.domains[config.n_domains].name[bytes] = 0;
            config.domains[config.n_domains++].level = level;
        }
    }
    most = config.level;
    for (unsigned i = 0; i < config.n_domains; i++)
        if (config.domains[i].level > most)
            most = config.domains[i].level;
    __atomic_store_n(&level_max, most, __ATOMIC_RELEASE);
}

bool cus_log_on(enum cus_level level, const char *domain) {
    if ((int)level > __atomic_load_n(&level_max, __ATOMIC_ACQUIRE))
        return false;
    for (unsigned i = 0; i < config.n_domains; i++)
        if (strcmp(config.domains[i].name, domain) == 0)
            return (int)level <= config.domains[i].level;
    return (int)level <= config.level;
}

/* ---- lines ---- */

/* How often a line of this format was asked for, this time included; 0 where the table has no room
 * to count it. */
static unsigned count_of(const char *fmt) {
    unsigned start = (unsigned)((uintptr_t)fmt * 2654435761u >> 8);
    for (unsigned i = 0; i < SLOTS; i++) {
        unsigned slot = (start + i) % SLOTS;
        const char *seen = __atomic_load_n(&repeats[slot].fmt, __ATOMIC_RELAXED);
        if (!seen && __atomic_compare_exchange_n(&repeats[slot].fmt, &seen, fmt, false,
                                                 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            seen = fmt;
        if (seen == fmt)
            return __atomic_add_fetch(&repeats[slot].count, 1, __ATOMIC_RELAXED);
    }
    return 0;
}

static void write_line(const char *line, size_t bytes, bool whole) {
    int fd = STDERR_FILENO;
    if (*config.file) {
        char path[4096];
        if (cus_path_expand(config.file, path, sizeof path, NULL))
            fd = cus_path_open(path, O_APPEND);
        if (fd < 0)
            fd = STDERR_FILENO;
    }
    /* One write per line: lines of several threads do not mix. What cannot be written is lost;
     * there is nobody to tell. */
    ssize_t written;
    do {
        written = cus_path_write(fd, line, bytes);
        line += written > 0 ? written : 0;
        bytes -= written > 0 ? (size_t)written : 0;
    } while (whole && bytes && (written > 0 || (written < 0 && errno == EINTR)));
    if (fd != STDERR_FILENO)
        close(fd);
}

void cus_log(enum cus_level level, const char *domain, const char *fmt, ...) {
    if (!cus_log_on(level, domain))
        return;
    int saved = errno;
    unsigned count = level <= CUS_WARN ? count_of(fmt) : 0;
    if (count <= REPEATS) {
        char line[LINE_BYTES];
        const size_t room = sizeof line - 1; /* for the line's end */
        int head = snprintf(line, room, "cusplice[%d:%d] %s %s: ", (int)getpid(),
                            (int)syscall(SYS_gettid), level_names[level], domain);
        size_t bytes = head < 0 ? 0 : (size_t)head < room ? (size_t)head : room - 1;
        va_list args;
        va_start(args, fmt);
        errno = saved; /* for %m */
        int body = vsnprintf(line + bytes, room - bytes, fmt, args);
        va_end(args);
        if (body > 0)
            bytes += (size_t)body < room - bytes ? (size_t)body : room - bytes - 1;
        if (count == REPEATS) {
            static const char last[] = " (said often enough: no more of this)";
            if (bytes > room - sizeof last)
                bytes = room - sizeof last;
            memcpy(line + bytes, last, sizeof last - 1);
            bytes += sizeof last - 1;
        }
        for (size_t i = 0; i < bytes; i++)
            if (line[i] == '\n')
                line[i] = ' ';
        line[bytes++] = '\n';
        write_line(line, bytes, false);
    }
    errno = saved;
}

void cus_log_text(const char *text, unsigned bytes) {
    int saved = errno;
    write_line(text, bytes, true);
    errno = saved;
}
