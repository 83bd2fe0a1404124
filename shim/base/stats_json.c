/*
 * Writes the stats file. Runs on the thread that ends the process, or on the one that writes every
 * stats_every seconds; holds no lock; must not allocate (the process may be ending in any state)
 * nor use stdio streams.
 */
#include "shim/base/stats_json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/log.h"
#include "shim/base/path.h"
#include "shim/base/process.h"
#include "shim/base/version.h"

static const char *const eager_keys[] = {
#define CUS_EAGER(id, key) key,
#include "shim/base/reasons.def"
};
static const char *const break_keys[] = {
#define CUS_BREAK(id, key) key,
#include "shim/base/reasons.def"
};
static const char *const cause_keys[] = {
#define CUS_CAUSE(id, key) key,
#include "shim/base/reasons.def"
};
static const char *const fallback_keys[] = {
#define CUS_FALLBACK(id, key) key,
#include "shim/base/reasons.def"
};

/* ---- a writer of JSON: four levels of objects and arrays, a small buffer, an error that sticks
 * ---- */

struct writer {
    int fd;
    bool failed;
    bool first; /* nothing in the innermost object yet */
    int depth;
    size_t used;
    char buffer[2048];
};

static void drain(struct writer *w) {
    size_t done = 0;
    while (done < w->used && !w->failed) {
        ssize_t got = cus_path_write(w->fd, w->buffer + done, w->used - done);
        if (got > 0)
            done += (size_t)got;
        else if (got == 0 || errno != EINTR)
            w->failed = true;
    }
    w->used = 0;
}

static void put(struct writer *w, const char *text, size_t bytes) {
    while (bytes) {
        size_t room = sizeof w->buffer - w->used, part = bytes < room ? bytes : room;
        memcpy(w->buffer + w->used, text, part);
        w->used += part;
        text += part;
        bytes -= part;
        if (w->used == sizeof w->buffer)
            drain(w);
    }
}

static void put_text(struct writer *w, const char *text) {
    put(w, text, strlen(text));
}

/* Bytes above 0x7f go through as they are: file names are UTF-8 almost always. */
static void put_string(struct writer *w, const char *text) {
    put_text(w, "\"");
    for (; *text; text++) {
        char escaped[8];
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", byte);
        else if (byte < 0x20)
            snprintf(escaped, sizeof escaped, "\\u%04x", byte);
        else
            snprintf(escaped, sizeof escaped, "%c", byte);
        put_text(w, escaped);
    }
    put_text(w, "\"");
}

static void put_key(struct writer *w, const char *key) {
    put_text(w, w->first ? "\n" : ",\n");
    put(w, "        ", (size_t)w->depth * 2);
    w->first = false;
    put_string(w, key);
    put_text(w, ": ");
}

static void open_object(struct writer *w, const char *key) {
    if (key)
        put_key(w, key);
    put_text(w, "{");
    w->first = true;
    w->depth++;
}

static void close_object(struct writer *w) {
    w->depth--;
    if (!w->first) {
        put_text(w, "\n");
        put(w, "        ", (size_t)w->depth * 2);
    }
    put_text(w, "}");
    w->first = false;
}

static void put_number(struct writer *w, const char *key, uint64_t value) {
    char text[24];
    put_key(w, key);
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    put_text(w, text);
}

static void put_named(struct writer *w, const char *key, const char *value) {
    put_key(w, key);
    put_string(w, value);
}

static void put_reasons(struct writer *w, const char *key, const char *const *keys,
                        const uint64_t *values, size_t n) {
    open_object(w, key);
    for (size_t i = 0; i < n; i++)
        put_number(w, keys[i], values[i]);
    close_object(w);
}

/* Only what happened: there are hundreds of rows. */
static void put_flushes(struct writer *w, const uint64_t *flushes,
                        const char *(*api_name)(unsigned row)) {
    open_object(w, "flushes");
    for (unsigned i = 0; i < CUS_CAUSES; i++) {
        char number[24];
        const char *name = i >= CUS_API_ROWS_MAX ? cause_keys[i - CUS_API_ROWS_MAX] : NULL;
        if (!flushes[i])
            continue;
        if (!name && api_name)
            name = api_name(i);
        snprintf(number, sizeof number, "api_%u", i);
        put_number(w, name ? name : number, flushes[i]);
    }
    close_object(w);
}

static void put_steps(struct writer *w, const struct cus_stats_step *steps, unsigned n) {
    open_object(w, "step_classes");
    for (unsigned i = 0; i < n; i++) {
        open_object(w, steps[i].name);
        put_number(w, "steps", steps[i].steps);
        put_named(w, "mode", steps[i].runs_as);
        if (steps[i].kernel[0]) {
            put_named(w, "kernel", steps[i].kernel);
            put_named(w, "policy", steps[i].policy);
            put_named(w, "pattern", steps[i].pattern);
            put_named(w, "file", steps[i].file);
            put_number(w, "line", (uint64_t)steps[i].line);
        }
        close_object(w);
    }
    close_object(w);
}

static uint64_t sum(const uint64_t *values, size_t n) {
    uint64_t total = 0;
    while (n)
        total += values[--n];
    return total;
}

/* An array of objects. */
static void open_array(struct writer *w, const char *key) {
    put_key(w, key);
    put_text(w, "[");
    w->first = true;
    w->depth++;
}

static void next_object(struct writer *w) {
    put_text(w, w->first ? "{" : ", {");
    w->first = true;
    w->depth++;
}

static void close_array(struct writer *w) {
    w->depth--;
    put_text(w, "]");
    w->first = false;
}

static void put_report(struct writer *w, const struct cus_report *report) {
    open_array(w, "breaks_by_kernel");
    for (unsigned i = 0; i < report->n_breaks; i++) {
        const struct cus_report_break *one = &report->breaks[i];
        next_object(w);
        put_named(w, "name", one->name);
        put_named(w, "by", one->by);
        put_named(w, "reason", one->reason);
        put_number(w, "launches", one->launches);
        put_number(w, "runs", one->runs);
        close_object(w);
    }
    close_array(w);
    open_object(w, "breaks_beyond");
    put_number(w, "kinds", report->more_breaks);
    put_number(w, "launches", report->more_launches);
    put_number(w, "runs", report->more_runs);
    close_object(w);
    open_array(w, "rules_without_match");
    for (unsigned i = 0; i < report->n_rules; i++) {
        const struct cus_report_rule *rule = &report->rules[i];
        next_object(w);
        put_named(w, "policy", rule->policy);
        put_named(w, "pattern", rule->pattern);
        put_named(w, "file", rule->file);
        put_number(w, "line", (uint64_t)rule->line);
        put_named(w, "nearest", rule->nearest);
        close_object(w);
    }
    close_array(w);
    open_array(w, "changing_shapes");
    for (unsigned i = 0; i < report->n_shapes; i++) {
        next_object(w);
        put_named(w, "name", report->shapes[i].name);
        put_number(w, "launches", report->shapes[i].launches);
        put_number(w, "changed", report->shapes[i].changed);
        close_object(w);
    }
    close_array(w);
    open_object(w, "graph_memory");
    put_number(w, "segments", report->pieces);
    put_number(w, "ops", report->piece_ops);
    put_number(w, "bytes", report->piece_bytes);
    put_number(w, "gone_segments", report->gone);
    put_number(w, "gone_ops", report->gone_ops);
    put_number(w, "gone_bytes", report->gone_bytes);
    open_array(w, "largest");
    for (unsigned i = 0; i < report->n_pieces; i++) {
        const struct cus_report_piece *piece = &report->largest[i];
        next_object(w);
        put_number(w, "ops", piece->ops);
        put_number(w, "variants", piece->variants);
        put_number(w, "bytes", piece->bytes);
        put_number(w, "launches", piece->launches);
        put_number(w, "gone", piece->gone);
        put_named(w, "first", piece->first);
        put_named(w, "last", piece->last);
        close_object(w);
    }
    close_array(w);
    close_object(w);
}

static void put_all(struct writer *w, const struct cus_counters *c,
                    const char *(*api_name)(unsigned row), const struct cus_stats_facts *facts) {
    char exe[4096];
    ssize_t exe_bytes = facts->exe ? -1 : readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[exe_bytes > 0 ? exe_bytes : 0] = 0;
    open_object(w, NULL);
    put_named(w, "version", CUSPLICE_VERSION);
    put_number(w, "pid", (uint64_t)(facts->pid ? facts->pid : (long)getpid()));
    put_named(w, "exe", facts->exe ? facts->exe : exe);
    put_named(w, "mode", facts->mode ? facts->mode : "");
    open_object(w, "ops");
    put_number(w, "launches", c->ops[CUS_OP_LAUNCH]);
    put_number(w, "memsets", c->ops[CUS_OP_MEMSET]);
    put_number(w, "copies", c->ops[CUS_OP_COPY]);
    close_object(w);
    open_object(w, "issued");
    put_number(w, "in_graphs", c->in_graphs);
    put_number(w, "eager", sum(c->eager_by, CUS_EAGERS));
    close_object(w);
    put_reasons(w, "eager_by", eager_keys, c->eager_by, CUS_EAGERS);
    put_number(w, "graph_launches", c->graph_launches);
    put_number(w, "pieces", c->pieces);
    put_number(w, "built", c->built);
    put_number(w, "segments", c->segments);
    put_number(w, "steps", c->steps);
    open_object(w, "signatures");
    put_number(w, "exact", c->sig_exact);
    put_number(w, "patched", c->sig_patched);
    put_number(w, "missed", c->sig_missed);
    close_object(w);
    put_number(w, "patched_nodes", c->patched_nodes);
    put_flushes(w, c->flushes, api_name);
    put_reasons(w, "breaks", break_keys, c->breaks, CUS_BREAKS);
    put_number(w, "graph_bytes", c->graph_bytes);
    put_number(w, "build_us", c->build_ns / 1000);
    put_reasons(w, "fallbacks", fallback_keys, c->fallbacks, CUS_FALLBACKS);
    if (facts->n_steps)
        put_steps(w, facts->steps, facts->n_steps);
    if (facts->report)
        put_report(w, facts->report);
    if (facts->segment_list_json) {
        put_key(w, "segment_list");
        put_text(w, facts->segment_list_json);
    }
    close_object(w);
    put_text(w, "\n");
    drain(w);
}

/* ---- whose file it is ---- */

/* When this process began, in seconds of the wall clock; 0 where /proc does not tell. */
static time_t process_start(void) {
    uint64_t ticks = cus_process_start(0);
    if (!ticks)
        return 0;
    struct timespec boot, now;
    clock_gettime(CLOCK_BOOTTIME, &boot);
    clock_gettime(CLOCK_REALTIME, &now);
    long hz = sysconf(_SC_CLK_TCK);
    return now.tv_sec - boot.tv_sec + (time_t)(ticks / (uint64_t)(hz > 0 ? hz : 100));
}

/* Another process wrote the file while this one ran. */
static bool written_meanwhile(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
           info.st_mtime >= process_start();
}

/* /dev/stderr, a pipe: there is nothing to rename. A link is no such thing: it is replaced. */
static bool is_special(const char *path) {
    struct stat info;
    return cus_path_is_system(path) ||
           (lstat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode));
}

/* A file of this name may have been left by a process that had our number. */
static int open_partial(const char *path) {
    int fd = cus_path_open(path, O_EXCL);
    if (fd < 0 && errno == EEXIST && unlink(path) == 0)
        fd = cus_path_open(path, O_EXCL);
    return fd;
}

bool cus_stats_json(const char *path, const struct cus_counters *counters,
                    const char *(*api_name)(unsigned row), const struct cus_stats_facts *facts) {
    int saved = errno;
    char target[4096], partial[4096 + 40];
    bool own, done = false;
    struct writer w = {.fd = -1, .first = true};
    if (!cus_path_expand(path, target, sizeof target, &own)) {
        errno = ENAMETOOLONG;
    } else if (!own && sum(counters->ops, CUS_OP_TYPES) == 0 && written_meanwhile(target)) {
        errno = saved;
        return false;
    } else {
        bool special = is_special(target);
        if (special)
            snprintf(partial, sizeof partial, "%s", target);
        else
            snprintf(partial, sizeof partial, "%s.%ld.partial", target, (long)getpid());
        w.fd = special ? cus_path_open(partial, O_APPEND) : open_partial(partial);
        if (w.fd >= 0) {
            put_all(&w, counters, api_name, facts);
            bool closed = close(w.fd) == 0;
            done = closed && !w.failed && (special || rename(partial, target) == 0);
            if (!done && !special) {
                int why = errno;
                unlink(partial);
                errno = why;
            }
        }
    }
    if (!done)
        CUS_LOG_ONCE(CUS_WARN, "stats", "the stats file %s cannot be written: %m", path);
    errno = saved;
    return done;
}
