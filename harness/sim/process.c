/*
 * The process: options, cuInit, the count of each call, fork and exit.
 *
 * Any thread. All state is under cusim.lock or written before cuInit returns. The exit handler
 * waits a bounded time for the streams, and never joins a worker.
 */
#include "harness/sim/cusim.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct cusim_process cusim = {.lock = PTHREAD_MUTEX_INITIALIZER, .next_id = 1};

static _Atomic uint64_t call_counts[CUSIM_CALLERS][CUSIM_API_COUNT];
static pthread_once_t options_once = PTHREAD_ONCE_INIT;
static pid_t owner_pid;
static atomic_bool initialized, forked;

extern void __tsan_init(void) __attribute__((weak));

void cusim_lock(void) {
    pthread_mutex_lock(&cusim.lock);
}

void cusim_unlock(void) {
    pthread_mutex_unlock(&cusim.lock);
}

uint64_t cusim_new_id(void) {
    return cusim.next_id++;
}

uint64_t cusim_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t cusim_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t env_number(const char *name, uint64_t standard) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : standard;
}

/* Ends the program: with a fault that is not understood a test would prove nothing. */
static void refuse(const char *name) {
    fprintf(stderr, "cusim: %s: not understood: %s\n", name, getenv(name));
    _exit(2);
}

static void load_options(void) {
    struct cusim_options *o = &cusim.options;
    o->seed = env_number("CUSIM_SEED", 1);
    o->delay_us = (unsigned)env_number("CUSIM_DELAY_US", 20);
    o->queue_depth = (unsigned)env_number("CUSIM_QUEUE_DEPTH", 1024);
    o->connections = (unsigned)env_number("CUDA_DEVICE_MAX_CONNECTIONS", 0);
    if (o->connections > CUSIM_CONNECTIONS_MAX)
        o->connections = CUSIM_CONNECTIONS_MAX;
    o->driver_version = (int)env_number("CUSIM_DRIVER_VERSION", (uint64_t)cusim_driver_version);
    o->devices = (int)env_number("CUSIM_DEVICES", 1);
    if (o->devices < 0 || o->devices > CUSIM_DEVICES_MAX)
        o->devices = CUSIM_DEVICES_MAX;
    uint64_t most_mb = __tsan_init ? 8192 : 143771; /* under ThreadSanitizer addresses are scarce */
    o->device_bytes = env_number("CUSIM_MEM_MB", most_mb) << 20;
    const char *rules = getenv("CUSIM_GRAPH_RULES");
    o->measured_rules = rules && strcmp(rules, "measured") == 0;
    const char *order = getenv("CUSIM_NODE_ORDER");
    o->mixed_nodes = order && strcmp(order, "mixed") == 0;
    const char *locks = getenv("CUSIM_LOCKS");
    o->measured_locks = locks && strcmp(locks, "measured") == 0;
    const char *weak = getenv("CUSIM_ORDER");
    o->weak = weak && strcmp(weak, "weak") == 0;
    o->exit_wait_ms = (unsigned)env_number("CUSIM_EXIT_WAIT_MS", 2000);
    if (!cusim_faults_set(getenv("CUSIM_FAULT")))
        refuse("CUSIM_FAULT");
    if (!cusim_unknown_set(getenv("CUSIM_UNKNOWN")))
        refuse("CUSIM_UNKNOWN");
    owner_pid = getpid();
}

const struct cusim_options *cusim_get_options(void) {
    pthread_once(&options_once, load_options);
    return &cusim.options;
}

CUresult cusim_enter_early(enum cusim_api api) {
    cusim_get_options();
    atomic_fetch_add_explicit(&call_counts[cusim_caller()][api], 1, memory_order_relaxed);
    return cusim_fault(api);
}

CUresult cusim_enter(enum cusim_api api) {
    CUresult result = cusim_enter_early(api);
    if (result != CUDA_SUCCESS)
        return result;
    if (!atomic_load_explicit(&initialized, memory_order_acquire) ||
        atomic_load_explicit(&forked, memory_order_relaxed))
        return CUDA_ERROR_NOT_INITIALIZED;
    if (cusim.options.measured_locks)
        cusim_gate_enter(api);
    return CUDA_SUCCESS;
}

/* A child of fork has no workers: every call returns NOT_INITIALIZED, as in CUDA. */
static void in_child(void) {
    atomic_store(&forked, true);
}

static void make_devices(void) {
    int n = cusim.options.devices;
    cusim.devices = calloc((size_t)n + 1, sizeof *cusim.devices);
    for (int i = 0; i < n; i++)
        cusim.devices[i].ordinal = i;
}

CUresult cuInit(unsigned int flags) {
    CUSIM_ENTER_EARLY(cuInit);
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load(&forked))
        return CUDA_ERROR_NOT_INITIALIZED;
    cusim_lock();
    CUresult result = CUDA_SUCCESS;
    if (!cusim.initialized) {
        if (cusim.options.devices == 0) {
            result = CUDA_ERROR_NO_DEVICE;
        } else {
            owner_pid = getpid();
            make_devices();
            cusim_log_open();
            pthread_atfork(NULL, NULL, in_child);
            cusim.initialized = true;
            atomic_store_explicit(&initialized, true, memory_order_release);
        }
    }
    cusim_unlock();
    return result;
}

CUresult cuDriverGetVersion(int *version) {
    CUSIM_ENTER_EARLY(cuDriverGetVersion);
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = cusim.options.driver_version;
    return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) CUresult cuSimSetDelay(unsigned max_us);
CUresult cuSimSetDelay(unsigned max_us) {
    CUSIM_ENTER_EARLY(cuSimSetDelay);
    cusim_lock();
    cusim.options.delay_us = max_us;
    cusim_unlock();
    return CUDA_SUCCESS;
}

/* Sets the seed of streams that are made later. */
__attribute__((visibility("default"))) CUresult cuSimSetSeed(unsigned long long seed);
CUresult cuSimSetSeed(unsigned long long seed) {
    CUSIM_ENTER_EARLY(cuSimSetSeed);
    cusim_lock();
    cusim.options.seed = seed;
    cusim_unlock();
    return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) CUresult cuSimSetFault(const char *text);
CUresult cuSimSetFault(const char *text) {
    CUSIM_ENTER_EARLY(cuSimSetFault);
    return cusim_faults_set(text) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Replaces %p in a file name by the process id. */
void cusim_expand_path(const char *path, char *out, size_t bytes) {
    const char *mark = strstr(path, "%p");
    if (mark)
        snprintf(out, bytes, "%.*s%d%s", (int)(mark - path), path, (int)getpid(), mark + 2);
    else
        snprintf(out, bytes, "%s", path);
}

static uint64_t calls_of(int api, bool own_only) {
    uint64_t n = atomic_load_explicit(&call_counts[CUSIM_CALLER_OWN][api], memory_order_relaxed);
    if (!own_only)
        n += atomic_load_explicit(&call_counts[CUSIM_CALLER_PROGRAM][api], memory_order_relaxed);
    return n;
}

static void write_counts(FILE *file, bool own_only, const char *indent) {
    const char *comma = "";
    for (int i = 0; i < CUSIM_API_COUNT; i++) {
        uint64_t n = calls_of(i, own_only);
        if (n) {
            fprintf(file, "%s\n%s\"%s\": %llu", comma, indent, cusim_rows[i].symbol,
                    (unsigned long long)n);
            comma = ",";
        }
    }
}

/* Writes the calls by symbol; "own" counts those that a preloaded library marked as its own. */
static void write_stats(void) {
    const char *path = getenv("CUSIM_STATS");
    if (!path || !*path)
        return;
    char name[4096];
    cusim_expand_path(path, name, sizeof name);
    FILE *file = fopen(name, "w");
    if (!file)
        return;
    bool any_own = false;
    for (int i = 0; i < CUSIM_API_COUNT; i++)
        any_own |= calls_of(i, true) > 0;
    fputs("{", file);
    write_counts(file, false, "  ");
    if (any_own) {
        fputs(",\n  \"own\": {", file);
        write_counts(file, true, "    ");
        fputs("\n  }", file);
    }
    fputs("\n}\n", file);
    fclose(file);
}

/* A program may end with pending work, or with a kernel that spins for ever. Streams get a
 * bounded time to finish, so the log is whole if possible. Then the workers are left, and die
 * with the process. */
__attribute__((destructor)) static void at_exit(void) {
    if (owner_pid != getpid())
        return;
    if (atomic_load(&initialized)) {
        uint64_t end = cusim_now_ns() + cusim.options.exit_wait_ms * 1000000ull;
        cusim_lock();
        while (cusim.n_busy > 0 && cusim_now_ns() < end) {
            cusim_unlock();
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
            cusim_lock();
        }
        cusim.exiting = true;
        cusim_unlock();
        cusim_log_close();
    }
    write_stats();
}
