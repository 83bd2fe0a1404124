/*
 * Begins a trace and says in its head what is recorded. Once, on the thread that starts the
 * library, at depth 1.
 */
#define __CUDA_API_VERSION_INTERNAL
#define _GNU_SOURCE
#include "shim/hook/recording.h"

#include <cuda.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/build_id.h"
#include "shim/base/clock.h"
#include "shim/base/file.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/base/path.h"
#include "shim/base/version.h"
#include "shim/hook/guard.h"
#include "shim/hook/real.h"
#include "shim/keep/keep.h"
#include "shim/plan/rules.h"
#include "shim/plan/step_read.h"
#include "shim/trace/record.h"

#include "shim/base/forbid.h"

enum {
    FACTS = 256 << 10,
    ARGUMENTS = 64 << 10,
    ENDS = 1024 /* kept for what closes */,
    BUILD_ID = 80
};

static bool gpu_times; /* CUPTI was asked */

/* JSON on its way. An entry that may not fit is left out whole, and what closes always fits. */
struct text {
    char *at;
    size_t used;
};

/* So many bytes of text, each of which may become six, and some more. */
static bool fits(const struct text *t, size_t bytes) {
    return bytes < FACTS && t->used + 6 * bytes + 64 <= FACTS - ENDS;
}

static void put(struct text *t, const char *what) {
    size_t n = strlen(what);
    memcpy(t->at + t->used, what, n + 1);
    t->used += n;
}

static void put_escaped(struct text *t, const char *what) {
    char one[8] = {0};
    for (; *what; what++) {
        unsigned char c = (unsigned char)*what;
        if (c == '"' || c == '\\')
            snprintf(one, sizeof one, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            snprintf(one, sizeof one, "\\u%04x", c); /* bytes, whatever they encode */
        else
            snprintf(one, sizeof one, "%c", c);
        put(t, one);
    }
}

static void put_key(struct text *t, const char *key) {
    char last = t->at[t->used - 1];
    if (last != '{' && last != '[')
        put(t, ",");
    if (key) {
        put(t, "\"");
        put_escaped(t, key);
        put(t, "\":");
    }
}

static void put_text(struct text *t, const char *key, const char *value) {
    if (!fits(t, (key ? strlen(key) : 0) + strlen(value)))
        return;
    put_key(t, key);
    put(t, "\"");
    put_escaped(t, value);
    put(t, "\"");
}

static void put_number(struct text *t, const char *key, uint64_t value) {
    char digits[24];
    put_key(t, key);
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    put(t, digits);
}

static void put_arguments(struct text *t) {
    char *words = cus_mem_alloc(ARGUMENTS + 1);
    int fd = cus_file_open("/proc/self/cmdline", O_RDONLY, 0);
    ssize_t n = words && fd >= 0 ? read(fd, words, ARGUMENTS) : 0;
    if (fd >= 0)
        close(fd);
    put_key(t, "argv");
    put(t, "[");
    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(words + i) + 1)
        put_text(t, NULL, words + i);
    put(t, "]");
    cus_mem_free(words);
}

/* The first entry is the program; the others are its libraries. */
static int find_build_id(struct dl_phdr_info *info, size_t bytes, void *out) {
    (void)bytes;
    cus_build_id(info, out, BUILD_ID);
    return 1;
}

static void put_program(struct text *t) {
    char exe[4096] = "", id[BUILD_ID] = "";
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = 0;
    dl_iterate_phdr(find_build_id, id);
    put_arguments(t);
    put_text(t, "exe", exe);
    put_text(t, "build_id", id);
    put_number(t, "pid", (uint64_t)getpid());
}

static void put_device(struct text *t) {
    char name[256] = "";
    int version = 0, major = 0, minor = 0;
    if (CUS_REAL(cuDriverGetVersion)(&version) == CUDA_SUCCESS)
        put_number(t, "driver", (uint64_t)version);
    if (cus_real_has(CUS_ROW_cuDeviceGetName) &&
        CUS_REAL(cuDeviceGetName)(name, sizeof name, 0) == CUDA_SUCCESS)
        put_text(t, "gpu", name);
    if (cus_real_has(CUS_ROW_cuDeviceGetAttribute) &&
        CUS_REAL(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) ==
            CUDA_SUCCESS &&
        CUS_REAL(cuDeviceGetAttribute)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0) ==
            CUDA_SUCCESS)
        put_number(t, "compute_capability", (uint64_t)(10 * major + minor));
}

static void put_clock(struct text *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    put_key(t, "clock");
    put(t, "{");
    put_number(t, "monotonic_ns", cus_clock_ns());
    put_number(t, "realtime_ns", (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    put(t, "}");
}

/* The [step] sections, key by key. */
static void put_steps(struct text *t) {
    const struct cus_step_rule *rule;
    char value[CUS_STEP_SHOWN];
    put_key(t, "steps");
    put(t, "[");
    for (unsigned i = 0; (rule = cus_rules_step_get(cus_rules(), i)); i++) {
        if (!fits(t, sizeof value + 256))
            break;
        put_key(t, NULL);
        put(t, "{");
        put_text(t, "name", rule->name);
        for (unsigned k = 0; k < CUS_STEP_KEYS; k++)
            if (cus_step_show(rule, (enum cus_step_key)k, value, sizeof value))
                put_text(t, cus_step_keys[k], value);
        put(t, "}");
    }
    put(t, "]");
}

/* As they could be given to `--set`. */
static void put_settings(struct text *t) {
    const struct cus_option_row *row;
    char value[4096];
    put_key(t, "options");
    put(t, "{");
    for (unsigned i = 0; (row = cus_options_row(i)); i++) {
        cus_options_show(cus_options(), i, value, sizeof value);
        put_text(t, row->key, value);
    }
    put(t, "}");
    put_key(t, "rules");
    put(t, "[");
    const struct cus_rule *rule;
    for (unsigned i = 0; (rule = cus_rules_get(cus_rules(), i)); i++) {
        if (!fits(t, strlen(rule->pattern) + 32))
            break;
        put_key(t, NULL);
        put(t, "{");
        put_text(t, "policy", cus_policy_name(rule->policy));
        put_text(t, "pattern", rule->pattern);
        put(t, "}");
    }
    put(t, "]");
}

/* From here on the program's calls go through shim/keep. */
static void start_keeping(bool from_the_start) {
    for (unsigned i = 0; i < cus_keep_n_needs; i++)
        if (cus_real_has(cus_keep_needs[i].row))
            *cus_keep_needs[i].real = cus_real_functions[cus_keep_needs[i].row];
    for (unsigned i = 0; i < cus_keep_n_places; i++)
        if (cus_real_has(cus_keep_places[i].row))
            *cus_keep_places[i].real = cus_real_functions[cus_keep_places[i].row];
    if (!cus_keep_start(from_the_start))
        return;
    for (unsigned i = 0; i < cus_keep_n_places; i++)
        if (*cus_keep_places[i].real)
            __atomic_store_n(&cus_real_functions[cus_keep_places[i].row],
                             cus_keep_places[i].instead, __ATOMIC_RELEASE);
    if (!from_the_start)
        cus_record_hold();
    cus_record_on_op = cus_keep_op;
    cus_record_on_spent = cus_keep_spent;
}

bool cus_recording_start(void) {
    const struct cus_options *options = cus_options();
    if (!*options->record)
        return false;
    char path[4096];
    struct text facts = {cus_mem_alloc(FACTS), 0};
    if (!facts.at || !cus_path_expand(options->record, path, sizeof path, NULL)) {
        cus_log(CUS_WARN, "trace", "nothing is recorded: %s",
                facts.at ? "the name of the file is too long" : "no memory");
        cus_mem_free(facts.at);
        return false;
    }
    put(&facts, "{");
    put_text(&facts, "cusplice", CUSPLICE_VERSION);
    put_program(&facts);
    put_device(&facts);
    put_clock(&facts);
    put_settings(&facts);
    put_steps(&facts);
    put(&facts, "}");
    bool started = cus_record_start(path, facts.at, options->record_from, options->record_until);
    cus_mem_free(facts.at);
    if (started && options->record_replayable)
        start_keeping(options->record_from == 0);
    gpu_times = started && options->record_gpu && cus_gpu_times_start();
    return started;
}

void cus_recording_attend(void) {
    if (__builtin_expect(!cus_keeping(), 1))
        return;
    enum cus_record_due due = cus_record_due();
    if (due == CUS_RECORD_NOTHING)
        return;
    cus_engine_flush(CUS_SCOPE_P, NULL, CUS_CAUSE_EXIT);
    if (due == CUS_RECORD_BEGIN)
        cus_keep_begin();
    else
        cus_keep_finish();
    cus_record_turn();
}

void cus_recording_context_goes(void) {
    if (cus_keeping())
        cus_keep_end();
}

void cus_recording_end(void) {
    cus_keep_finish();
    if (gpu_times)
        cus_gpu_times_end();
    cus_record_end();
}
