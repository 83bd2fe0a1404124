/*
 * Begins the trace and writes into its head what is recorded. Called once, on the thread that
 * starts the library, at depth 1.
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
#include "shim/base/json.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/base/path.h"
#include "shim/base/process_rank.h"
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
    ENDS = 1024 /* bytes kept for the closing brackets */,
    BUILD_ID = 80
};

static bool gpu_times; /* CUPTI was asked */

/* The head while it is written. An entry that may not fit is left out as a whole. The closing
 * brackets always fit. */
struct text {
    struct cus_json json;
    char *at;
    size_t used;
};

static void put(void *to, const char *bytes, size_t n) {
    struct text *t = to;
    memcpy(t->at + t->used, bytes, n);
    t->used += n;
}

/* True: `bytes` of text fit. JSON may take six bytes for each, and some more for the entry. */
static bool fits(const struct text *t, size_t bytes) {
    return bytes < FACTS && t->used + 6 * bytes + 64 <= FACTS - ENDS;
}

static void put_text(struct text *t, const char *key, const char *value) {
    if (fits(t, (key ? strlen(key) : 0) + strlen(value)))
        cus_json_text(&t->json, key, value);
}

static void put_arguments(struct text *t) {
    char *words = cus_mem_alloc(ARGUMENTS + 1);
    int fd = cus_file_open("/proc/self/cmdline", O_RDONLY, 0);
    ssize_t n = words && fd >= 0 ? read(fd, words, ARGUMENTS) : 0;
    if (fd >= 0)
        close(fd);
    cus_json_open(&t->json, "argv", '[');
    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(words + i) + 1)
        put_text(t, NULL, words + i);
    cus_json_close(&t->json, ']');
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
    cus_json_number(&t->json, "pid", (uint64_t)getpid());
    if (cus_process_rank() >= 0)
        cus_json_number(&t->json, "rank", (uint64_t)cus_process_rank());
}

static void put_device(struct text *t) {
    char name[256] = "";
    int version = 0, major = 0, minor = 0;
    if (CUS_REAL(cuDriverGetVersion)(&version) == CUDA_SUCCESS)
        cus_json_number(&t->json, "driver", (uint64_t)version);
    if (cus_real_has(CUS_ROW_cuDeviceGetName) &&
        CUS_REAL(cuDeviceGetName)(name, sizeof name, 0) == CUDA_SUCCESS)
        put_text(t, "gpu", name);
    if (cus_real_has(CUS_ROW_cuDeviceGetAttribute) &&
        CUS_REAL(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) ==
            CUDA_SUCCESS &&
        CUS_REAL(cuDeviceGetAttribute)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0) ==
            CUDA_SUCCESS)
        cus_json_number(&t->json, "compute_capability", (uint64_t)(10 * major + minor));
}

static void put_clock(struct text *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    cus_json_open(&t->json, "clock", '{');
    cus_json_number(&t->json, "monotonic_ns", cus_clock_ns());
    cus_json_number(&t->json, "realtime_ns",
                    (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    cus_json_close(&t->json, '}');
}

/* The [step] sections, key by key. */
static void put_steps(struct text *t) {
    const struct cus_step_rule *rule;
    char value[CUS_STEP_SHOWN];
    cus_json_open(&t->json, "steps", '[');
    for (unsigned i = 0; (rule = cus_rules_step_get(cus_rules(), i)); i++) {
        if (!fits(t, sizeof value + 256))
            break;
        cus_json_open(&t->json, NULL, '{');
        put_text(t, "name", rule->name);
        for (unsigned k = 0; k < CUS_STEP_KEYS; k++)
            if (cus_step_show(rule, (enum cus_step_key)k, value, sizeof value))
                put_text(t, cus_step_keys[k], value);
        cus_json_close(&t->json, '}');
    }
    cus_json_close(&t->json, ']');
}

/* In the form that `--set` takes. */
static void put_settings(struct text *t) {
    const struct cus_option_row *row;
    char value[4096];
    cus_json_open(&t->json, "options", '{');
    for (unsigned i = 0; (row = cus_options_row(i)); i++) {
        cus_options_show(cus_options(), i, value, sizeof value);
        put_text(t, row->key, value);
    }
    cus_json_close(&t->json, '}');
    cus_json_open(&t->json, "rules", '[');
    const struct cus_rule *rule;
    for (unsigned i = 0; (rule = cus_rules_get(cus_rules(), i)); i++) {
        if (!fits(t, strlen(rule->pattern) + 32))
            break;
        cus_json_open(&t->json, NULL, '{');
        put_text(t, "policy", cus_policy_name(rule->policy));
        put_text(t, "pattern", rule->pattern);
        cus_json_close(&t->json, '}');
    }
    cus_json_close(&t->json, ']');
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
    struct text facts = {.at = cus_mem_alloc(FACTS)};
    facts.json = (struct cus_json){.put = put, .to = &facts, .form = CUS_JSON_TIGHT};
    if (!facts.at || !cus_path_expand(options->record, path, sizeof path, NULL)) {
        cus_log(CUS_WARN, "trace", "nothing is recorded: %s",
                facts.at ? "the name of the file is too long" : "no memory");
        cus_mem_free(facts.at);
        return false;
    }
    cus_json_open(&facts.json, NULL, '{');
    put_text(&facts, "cusplice", CUSPLICE_VERSION);
    put_program(&facts);
    put_device(&facts);
    put_clock(&facts);
    put_settings(&facts);
    put_steps(&facts);
    cus_json_close(&facts.json, '}');
    facts.at[facts.used] = 0;
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
