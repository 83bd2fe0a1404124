/*
 * Writes one line per event. Runs on any thread, under any lock of its caller, also in a signal
 * handler of the program: no lock, no allocation, no stdio stream. vsnprintf only fills this file's
 * own buffer. Each line opens the log file anew: the program could close a descriptor that stays
 * open, and receive its number for a file of its own. cus_log_configure writes the configuration
 * once, before it publishes `level_max`. The repeat counters are atomic.
 */
#include "shim/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/clean.h"
#include "shim/base/clock.h"
#include "shim/base/file.h"
#include "shim/base/path.h"

enum { LINE_BYTES = 1024, DOMAINS = 16, DOMAIN_BYTES = 24, REPEATS = 10, SLOTS = 64 };
enum { A_SECOND = 1000, IN_ALL = 20000 }; /* lines of info, and as many of debug */

static const char *const level_names[CUS_LEVELS] = {"error", "warn", "info", "debug"};

/* tests/docs/log_domains.py holds it against the calls of cus_log. */
const char *const cus_log_domains[] = {"cache",  "config",   "graph", "hook",   "keep",
                                       "log",    "rules",    "stats", "stream", "trace",
                                       "verify", "watchdog", NULL};

static struct {
    int level; /* for domains that have no level of their own */
    unsigned n_domains;
    struct {
        char name[DOMAIN_BYTES];
        int level;
    } domains[DOMAINS];
    char file[4096]; /* "": stderr. A copy, since the caller's text may go */
} config = {.level = CUS_WARN};
static int level_max = CUS_WARN; /* the highest level of all; the fast path loads only this */

static struct {
    const char *fmt;
    unsigned count;
} repeats[SLOTS];
static unsigned age = 1;     /* of what was said once; cus_log_drop moves it */
static bool stuck;           /* atomic: the pipe or terminal took nothing for a second */
static unsigned refused_log; /* as in CUS_LOG_ONCE: the log file is not used */

/* How many lines of info and of debug there were. Threads that race at the turn of a second may
 * write a few lines more. */
static struct { uint64_t second, said, all; } lines_of[CUS_LEVELS];
static uint64_t left_out;

/* ---- configuration ---- */

/* The level that the `bytes` bytes at `word` name, or -1. */
static int level_of(const char *word, size_t bytes) {
    for (int i = 0; i < CUS_LEVELS; i++)
        if (strlen(level_names[i]) == bytes && memcmp(level_names[i], word, bytes) == 0)
            return i;
    return -1;
}

/* Takes the part of a spec at *at and steps past it. False: it is malformed. */
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

const char *cus_log_spec_unknown(const char *spec) {
    for (const char *at = spec; *at;) {
        const char *domain, *part = at;
        size_t bytes;
        int level;
        bool known = !take_part(&at, &domain, &bytes, &level) || !bytes;
        for (unsigned i = 0; !known && cus_log_domains[i]; i++)
            known = strlen(cus_log_domains[i]) == bytes &&
                    memcmp(cus_log_domains[i], domain, bytes) == 0;
        if (!known)
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

bool cus_log_first(unsigned *said) {
    return __atomic_exchange_n(said, age, __ATOMIC_RELAXED) != age;
}

void cus_log_drop(void) {
    memset(&config, 0, sizeof config);
    memset(repeats, 0, sizeof repeats);
    memset(lines_of, 0, sizeof lines_of);
    left_out = 0;
    config.level = level_max = CUS_WARN;
    stuck = false;
    age++;
}

/* ---- lines ---- */

/* How often a line of this format was asked for, with this time. 0: the table has no room to
 * count it. */
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

/* Is there room for one more line of info or debug? *last: it is the last of all. */
static bool has_room(enum cus_level level, bool *last) {
    uint64_t now = cus_clock_ns() / 1000000000u;
    uint64_t second = __atomic_load_n(&lines_of[level].second, __ATOMIC_RELAXED);
    if (now != second && __atomic_compare_exchange_n(&lines_of[level].second, &second, now, false,
                                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        __atomic_store_n(&lines_of[level].said, 0, __ATOMIC_RELAXED);
    uint64_t said = __atomic_add_fetch(&lines_of[level].said, 1, __ATOMIC_RELAXED);
    uint64_t all =
        said <= A_SECOND ? __atomic_add_fetch(&lines_of[level].all, 1, __ATOMIC_RELAXED) : 0;
    *last = all == IN_ALL;
    return all && all <= IN_ALL;
}

/* If a pipe or terminal took nothing for a second, later lines do not wait for it until it takes
 * one again. A line of info or debug never waits: it may be one of many, under a lock for which
 * other threads wait. */
static bool write_to(int fd, enum cus_level level, const char *text, size_t bytes) {
    bool waits = level <= CUS_WARN && !__atomic_load_n(&stuck, __ATOMIC_RELAXED);
    bool written = cus_file_write(fd, text, bytes, waits ? CUS_FILE_PATIENCE_MS : 0);
    if (written || level <= CUS_WARN)
        __atomic_store_n(&stuck, !written && errno == EAGAIN, __ATOMIC_RELAXED);
    return written;
}

/* Writes once, to where the lines go instead, why the log file is not used. */
static void tell_refused(int fd, const char *path, const char *why) {
    char line[LINE_BYTES];
    if (!cus_log_first(&refused_log))
        return;
    why = cus_file_why(why);
    int bytes = snprintf(line, sizeof line, "cusplice[%d:%d] warn log: the log file %.800s: %s\n",
                         (int)getpid(), (int)syscall(SYS_gettid), path, why);
    write_to(fd, CUS_WARN, line, cus_clean(line, (size_t)bytes - 1) + 1);
}

/* One write per line, so that lines of several threads do not mix. A line that a full file does
 * not take goes to stderr. False: it is lost. */
static bool write_text(enum cus_level level, const char *text, size_t bytes) {
    char path[sizeof config.file];
    const char *why = "its name is too long";
    int fd = -1;
    if (*config.file && cus_path_expand(config.file, path, sizeof path, NULL))
        fd = cus_file_open_output(path, CUS_FILE_APPEND, &why);
    int error = errno;
    if (fd >= 0) {
        bool written = write_to(fd, level, text, bytes);
        error = errno;
        close(fd);
        if (written || error == EAGAIN)
            return written;
    }
    fd = cus_file_stderr();
    if (fd < 0)
        return false;
    errno = error;
    if (*config.file)
        tell_refused(fd, config.file, why);
    return write_to(fd, level, text, bytes);
}

/* Writes the line without asking for its level; errno is what %m shows. `last`: what follows it in
 * brackets; NULL: nothing. False: it is lost. */
static bool write_line(enum cus_level level, const char *domain, const char *last, const char *fmt,
                       va_list args) {
    int error = errno;
    char line[LINE_BYTES];
    const size_t room = sizeof line - 1; /* without the line end */
    int head = snprintf(line, room, "cusplice[%d:%d] %s %s: ", (int)getpid(),
                        (int)syscall(SYS_gettid), level_names[level], domain);
    size_t bytes = head < 0 ? 0 : (size_t)head < room ? (size_t)head : room - 1;
    errno = error;
    int body = vsnprintf(line + bytes, room - bytes, fmt, args);
    if (body > 0)
        bytes += (size_t)body < room - bytes ? (size_t)body : room - bytes - 1;
    if (last) {
        size_t more = strlen(last);
        if (bytes > room - more - 1)
            bytes = room - more - 1;
        memcpy(line + bytes, last, more);
        bytes += more;
    }
    bytes = cus_clean(line, bytes);
    line[bytes++] = '\n';
    return write_text(level, line, bytes);
}

void cus_log(enum cus_level level, const char *domain, const char *fmt, ...) {
    if (!cus_log_on(level, domain))
        return;
    int saved = errno;
    bool last = false, room = true;
    if (level <= CUS_WARN) {
        unsigned count = count_of(fmt);
        room = count <= REPEATS;
        last = count == REPEATS;
    } else {
        room = has_room(level, &last);
    }
    bool written = false;
    if (room) {
        va_list args;
        va_start(args, fmt);
        errno = saved;
        written = write_line(level, domain,
                             !last               ? NULL
                             : level <= CUS_WARN ? " (said often enough: no more of this)"
                                                 : " (so many lines are enough: no more of them)",
                             fmt, args);
        va_end(args);
    }
    if (!written && level > CUS_WARN)
        __atomic_add_fetch(&left_out, 1, __ATOMIC_RELAXED);
    errno = saved;
}

void cus_log_asked(const char *domain, const char *fmt, ...) {
    int saved = errno;
    va_list args;
    va_start(args, fmt);
    write_line(CUS_INFO, domain, NULL, fmt, args);
    va_end(args);
    errno = saved;
}

void cus_log_end(void) {
    uint64_t left = __atomic_exchange_n(&left_out, 0, __ATOMIC_RELAXED);
    if (left)
        cus_log_asked("log",
                      "%llu lines are left out: at most %d a second and %d in all are written of "
                      "info, and of debug, and none waits for a reader",
                      (unsigned long long)left, A_SECOND, IN_ALL);
}

static bool write_in(const char *file, const char *text, size_t bytes) {
    char path[sizeof config.file];
    const char *why;
    bool own;
    struct stat info;
    if (!*file || !cus_path_expand(file, path, sizeof path, &own))
        return false;
    int fd = cus_file_open_output(path, CUS_FILE_APPEND, &why);
    if (fd < 0)
        return false;
    bool emptied = !own || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || !ftruncate(fd, 0);
    bool done = emptied && cus_file_write(fd, text, bytes, CUS_FILE_PATIENCE_MS);
    close(fd);
    return done;
}

void cus_log_text_in(const char *file, const char *text, unsigned bytes) {
    int saved = errno;
    if (!write_in(file, text, bytes))
        write_text(CUS_WARN, text, bytes);
    errno = saved;
}

void cus_log_text(const char *text, unsigned bytes) {
    int saved = errno;
    write_text(CUS_WARN, text, bytes);
    errno = saved;
}
