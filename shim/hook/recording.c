/*
 * Begins a trace and says in its head what is recorded. Once, on the thread that starts the
 * library, at depth 1.
 */
#define __CUDA_API_VERSION_INTERNAL
#define _GNU_SOURCE
#include "shim/hook/recording.h"

#include <cuda.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/base/path.h"
#include "shim/base/version.h"
#include "shim/hook/real.h"
#include "shim/plan/rules.h"
#include "shim/trace/record.h"

#include "shim/base/forbid.h"

enum { FACTS = 256 << 10, ARGUMENTS = 64 << 10, ENDS = 1024 /* kept for what closes */ };

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
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
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

/* The build id of the program itself, in hexadecimal digits. */
static int find_build_id(struct dl_phdr_info *info, size_t bytes, void *out) {
    (void)bytes;
    char *to = out;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(info->dlpi_addr + header->p_vaddr);
        const char *end = at + header->p_memsz;
        while (end - at >= (ssize_t)sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(const void *)at;
            const char *name = at + sizeof *note;
            const char *value = name + ((note->n_namesz + 3u) & ~3u);
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
                memcmp(name, "GNU", 4) == 0 && note->n_descsz <= 32) {
                for (unsigned k = 0; k < note->n_descsz; k++)
                    snprintf(to + 2 * k, 3, "%02x", (unsigned char)value[k]);
                return 1;
            }
            at = value + ((note->n_descsz + 3u) & ~3u);
        }
    }
    return 1; /* the first entry is the program; the others are its libraries */
}

static void put_program(struct text *t) {
    char exe[4096] = "", id[80] = "";
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
    put(&facts, "}");
    bool started = cus_record_start(path, facts.at, options->record_from, options->record_until);
    cus_mem_free(facts.at);
    gpu_times = started && options->record_gpu && cus_gpu_times_start();
    return started;
}

void cus_recording_end(void) {
    if (gpu_times)
        cus_gpu_times_end();
    cus_record_end();
}
