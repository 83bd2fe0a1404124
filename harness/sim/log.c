/*
 * The log: one line for each executed operation, in the order in which each stream executed them.
 * Tests compare these logs.
 *
 * Workers write without cusim.lock, one line at a time under this file's lock. Streams and events
 * appear by number of creation. At exit (or when a log in memory is taken, CUSIM_LOG=memory:) the
 * numbers become dense and count only what executed something. So a stream that the library makes
 * for captures leaves no trace.
 */
#include "harness/sim/cusim.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;
static atomic_bool log_open;
static char log_name[4096];
static char buffer[1 << 16];
static size_t buffered;

/* CUSIM_LOG=memory: all lines since the log was last taken. */
static bool in_memory;
static char *whole;
static size_t n_whole, cap_whole;

void cusim_log_open(void) {
    const char *path = getenv("CUSIM_LOG");
    if (!path || !*path)
        return;
    if (strcmp(path, "memory:") == 0) {
        in_memory = true;
        atomic_store(&log_open, true);
        return;
    }
    cusim_expand_path(path, log_name, sizeof log_name);
    log_fd = open(log_name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (log_fd < 0)
        fprintf(stderr, "cusim: cannot write the log %s\n", log_name);
    atomic_store(&log_open, log_fd >= 0);
}

bool cusim_log_on(void) {
    return atomic_load_explicit(&log_open, memory_order_relaxed);
}

static void keep_locked(const char *text, size_t bytes) {
    if (cap_whole - n_whole < bytes) {
        cap_whole = cap_whole * 2 + bytes + 4096;
        whole = realloc(whole, cap_whole);
    }
    memcpy(whole + n_whole, text, bytes);
    n_whole += bytes;
}

static void flush_locked(void) {
    for (size_t at = 0; at < buffered;) {
        ssize_t n = write(log_fd, buffer + at, buffered - at);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    buffered = 0;
}

void cusim_log_text(const char *text, size_t bytes) {
    pthread_mutex_lock(&log_lock);
    if (in_memory) {
        keep_locked(text, bytes);
    } else if (log_fd >= 0) {
        while (bytes > 0) {
            if (buffered == sizeof buffer)
                flush_locked();
            size_t n = sizeof buffer - buffered < bytes ? sizeof buffer - buffered : bytes;
            memcpy(buffer + buffered, text, n);
            buffered += n;
            text += n;
            bytes -= n;
        }
    }
    pthread_mutex_unlock(&log_lock);
}

void cusim_log_line(const char *fmt, ...) {
    char line[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n > 0)
        cusim_log_text(line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

void cusim_log_flush(void) {
    if (!cusim_log_on())
        return;
    pthread_mutex_lock(&log_lock);
    if (log_fd >= 0)
        flush_locked();
    pthread_mutex_unlock(&log_lock);
}

/* ---- dense numbers ---- */

struct numbers {
    uint64_t *raw;
    size_t n, capacity;
};

static int compare_numbers(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void numbers_add(struct numbers *set, uint64_t raw) {
    if (set->n > 0 && set->raw[set->n - 1] == raw)
        return;
    if (set->n == set->capacity) {
        set->capacity = set->capacity ? set->capacity * 2 : 256;
        set->raw = realloc(set->raw, set->capacity * sizeof *set->raw);
    }
    set->raw[set->n++] = raw;
}

static void numbers_sort(struct numbers *set) {
    if (set->n == 0)
        return;
    qsort(set->raw, set->n, sizeof *set->raw, compare_numbers);
    size_t kept = 0;
    for (size_t i = 0; i < set->n; i++)
        if (kept == 0 || set->raw[kept - 1] != set->raw[i])
            set->raw[kept++] = set->raw[i];
    set->n = kept;
}

static size_t numbers_rank(const struct numbers *set, uint64_t raw) {
    const uint64_t *at =
        set->n == 0 ? NULL : bsearch(&raw, set->raw, set->n, sizeof raw, compare_numbers);
    return at ? (size_t)(at - set->raw) : SIZE_MAX;
}

/* Finds the event's number at the end of a record or wait line. */
static char *event_of(char *line) {
    char *word = strchr(line, ' ');
    if (!word || (strncmp(word, " record E", 9) != 0 && strncmp(word, " wait E", 7) != 0))
        return NULL;
    return strrchr(line, 'E') + 1;
}

static void rewrite(char *text, FILE *out) {
    struct numbers streams = {0}, events = {0};
    numbers_add(&streams, 0); /* the legacy stream of the first context is always S0 */
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        char *event = event_of(line);
        numbers_add(&streams, strtoull(line + 1, NULL, 10));
        if (event)
            numbers_add(&events, strtoull(event, NULL, 10));
        *end = '\n';
    }
    numbers_sort(&streams);
    numbers_sort(&events);
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        char *event = event_of(line), *rest = NULL;
        size_t stream = numbers_rank(&streams, strtoull(line + 1, &rest, 10));
        if (event)
            fprintf(out, "S%zu%.*s%zu\n", stream, (int)(event - rest), rest,
                    numbers_rank(&events, strtoull(event, NULL, 10)));
        else
            fprintf(out, "S%zu%s\n", stream, rest);
    }
    free(streams.raw);
    free(events.raw);
}

/* Writes by descriptor, because the working directory may have changed. */
static void rewrite_file(char *text) {
    FILE *out = NULL;
    if (ftruncate(log_fd, 0) == 0 && lseek(log_fd, 0, SEEK_SET) == 0)
        out = fdopen(dup(log_fd), "w");
    if (!out)
        return;
    rewrite(text, out);
    fclose(out);
}

/* Returns everything executed since the last call, with dense numbers; the caller frees it. For
 * a whole log the caller must first synchronise the context. */
__attribute__((visibility("default"))) CUresult cuSimLogTake(char **text, size_t *bytes);
CUresult cuSimLogTake(char **text, size_t *bytes) {
    CUSIM_ENTER_EARLY(cuSimLogTake);
    if (!text || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (!in_memory)
        return CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&log_lock);
    keep_locked("", 1);
    char *raw = whole;
    whole = NULL;
    n_whole = cap_whole = 0;
    pthread_mutex_unlock(&log_lock);
    FILE *out = open_memstream(text, bytes);
    if (out) {
        rewrite(raw, out);
        fclose(out);
    }
    free(raw);
    return out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void cusim_log_close(void) {
    pthread_mutex_lock(&log_lock);
    if (log_fd >= 0) {
        flush_locked();
        struct stat st;
        if (fstat(log_fd, &st) == 0 && S_ISREG(st.st_mode)) {
            char *text = malloc((size_t)st.st_size + 1);
            ssize_t n = text ? pread(log_fd, text, (size_t)st.st_size, 0) : -1;
            if (n >= 0) {
                text[n] = 0;
                rewrite_file(text);
            }
            free(text);
        }
        close(log_fd);
        log_fd = -1;
        atomic_store(&log_open, false);
    }
    pthread_mutex_unlock(&log_lock);
}
