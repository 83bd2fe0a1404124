/*
 * Sets the bounds, and ends the process when one is reached: it says so, removes partial files and
 * exits with 1. The verbs and the readers of files call it. Without budget_begin it never bounds
 * anything.
 */
#define _GNU_SOURCE
#include "tools/trace/budget.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MEMORY_TIMES = 16, SECONDS_LEAST = 30, PARTIALS = 8, PATH = 4200 };
static const uint64_t MEMORY_LEAST = 256 << 20;

/* A sanitizer's own memory is more than any bound. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { BOUNDS_MEMORY = 0 };
#else
enum { BOUNDS_MEMORY = 1 };
#endif

static struct {
    bool memory_given, seconds_given;
    uint64_t mib, seconds;   /* as given */
    uint64_t read, more;     /* bytes */
    uint64_t files;          /* bytes that are looked at, and not unpacked */
    struct rlimit data, cpu; /* as they were */
    bool begun, bound;
    char hint[128], late[160];
    char partial[PARTIALS][PATH]; /* "": free */
} here;

void budget_memory(uint64_t mib) {
    here.memory_given = true;
    here.mib = mib;
}

void budget_seconds(uint64_t seconds) {
    here.seconds_given = true;
    here.seconds = seconds;
}

bool budget_memory_given(uint64_t *mib) {
    *mib = here.mib;
    return here.memory_given;
}

/* ---- what ends the process ---- */

static void say(const char *text) {
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n;
}

/* In a signal handler: nothing here may wait or allocate. */
static void stop(int signal) {
    say(signal == SIGXCPU ? here.late
                          : "cusplice: a file that it reads was cut short meanwhile (SIGBUS)\n");
    for (unsigned i = 0; i < PARTIALS; i++)
        if (here.partial[i][0])
            unlink(here.partial[i]);
    _exit(1);
}

void budget_partial(const char *path) {
    for (unsigned i = 0; i < PARTIALS; i++)
        if (!here.partial[i][0] && strlen(path) < PATH) {
            memcpy(here.partial[i] + 1, path + 1, strlen(path));
            here.partial[i][0] = path[0]; /* whole before it counts */
            return;
        }
}

void budget_whole(const char *path) {
    for (unsigned i = 0; i < PARTIALS; i++)
        if (strcmp(here.partial[i], path) == 0)
            here.partial[i][0] = 0;
}

/* ---- bounds ---- */

void budget_begin(void) {
    here.begun = true;
}

static void watch(void) {
    struct sigaction action = {.sa_handler = stop};
    if (here.bound || !here.begun)
        return;
    getrlimit(RLIMIT_DATA, &here.data);
    getrlimit(RLIMIT_CPU, &here.cpu);
    sigaction(SIGXCPU, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    here.bound = true;
}

/* Never above what the process was started with. */
static void set(int which, const struct rlimit *before, uint64_t bound) {
    struct rlimit limit = *before;
    if (bound && bound < limit.rlim_cur)
        limit.rlim_cur = bound;
    setrlimit(which, &limit);
}

static void apply(void) {
    uint64_t memory =
        here.memory_given ? here.mib << 20 : MEMORY_LEAST + MEMORY_TIMES * here.read + here.more;
    uint64_t seconds =
        here.seconds_given ? here.seconds : SECONDS_LEAST + ((here.read + here.files) >> 20);
    watch();
    if (!here.bound)
        return;
    here.hint[0] = 0;
    memory = BOUNDS_MEMORY ? memory : 0;
    if (memory)
        snprintf(here.hint, sizeof here.hint,
                 ": it may use %" PRIu64 " MiB; --max-memory MIB sets another bound", memory >> 20);
    snprintf(here.late, sizeof here.late,
             "cusplice: stopped after %" PRIu64
             " s of processor time; --max-seconds S sets another bound, 0 none\n",
             seconds);
    set(RLIMIT_DATA, &here.data, memory);
    set(RLIMIT_CPU, &here.cpu, seconds);
}

void budget_read(uint64_t bytes) {
    here.read += bytes;
    apply();
}

void budget_more(uint64_t bytes) {
    here.more += bytes;
    apply();
}

void budget_lift(void) {
    if (!here.bound)
        return;
    here.hint[0] = 0;
    setrlimit(RLIMIT_DATA, &here.data);
    setrlimit(RLIMIT_CPU, &here.cpu);
    signal(SIGXCPU, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    here.bound = here.begun = false;
}

const char *budget_hint(void) {
    return here.hint;
}

static struct cst_trace *open_by(struct cst_bounds *bounds, const char *path, char *error,
                                 size_t bytes) {
    bounds->raise = "--max-memory MIB sets another bound, 0 none";
    if (here.memory_given)
        bounds->unpack_max = here.mib ? here.mib << 20 : UINT64_MAX;
    watch();
    struct cst_trace *trace = cst_open_within(path, bounds, error, bytes);
    if (trace) {
        here.files += trace->file_bytes;
        budget_read(trace->raw_bytes);
    }
    return trace;
}

struct cst_trace *budget_open(const char *path, char *error, size_t bytes) {
    struct cst_bounds bounds = {.unpack_max = 0};
    return open_by(&bounds, path, error, bytes);
}

struct cst_trace *budget_open_once(const char *path, bool salvage, char *error, size_t bytes) {
    struct cst_bounds bounds = {.pipe_most = MEMORY_LEAST, .salvage = salvage};
    if (here.memory_given)
        bounds.pipe_most = here.mib ? here.mib << 20 : UINT64_MAX;
    struct cst_trace *trace = open_by(&bounds, path, error, bytes);
    size_t used = strlen(error), behind = strlen(path);
    if (!trace && used > behind && strncmp(error + behind, ": corrupt: ", 11) == 0)
        snprintf(error + used, bytes - used, " (cusplice repair keeps what can be read of it)");
    return trace;
}

FILE *budget_file(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat is;
    if (fd < 0)
        return NULL;
    int why = fstat(fd, &is) != 0 ? errno : S_ISREG(is.st_mode) ? 0 : EINVAL;
    FILE *file = why ? NULL : fdopen(fd, "r");
    if (file)
        return file;
    why = why ? why : errno;
    close(fd);
    errno = why;
    return NULL;
}
