/*
 * Writes the stats file. Runs on the thread that ends the process, or on the one that writes every
 * stats_every seconds. Holds no lock. Must neither allocate, since the process may be ending in any
 * state, nor use stdio streams.
 */
#include "shim/stats/stats_json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/file.h"
#include "shim/base/json_file.h"
#include "shim/base/log.h"
#include "shim/base/path.h"
#include "shim/base/process.h"
#include "shim/base/process_rank.h"
#include "shim/base/version.h"
#include "shim/stats/gpus.h"

static const char *const cause_keys[] = {
#define CUS_CAUSE(id, key) key,
#include "shim/stats/reasons.def"
};
static const char *const fallback_keys[] = {
#define CUS_FALLBACK(id, key) key,
#include "shim/stats/reasons.def"
};

static void put_reasons(struct cus_json *w, const char *key, const char *const *keys,
                        const uint64_t *values, size_t n) {
    cus_json_open(w, key, '{');
    for (size_t i = 0; i < n; i++)
        cus_json_number(w, keys[i], values[i]);
    cus_json_close(w, '}');
}

/* Keys that were renamed: the old ones stay for one version beside the new ones. `segments` was
 * the old key of `runs`; elsewhere it counts segments. */
static void put_old_keys(struct cus_json *w, const struct cus_counters *c, const char *off) {
    const struct {
        const char *old, *key;
        uint64_t value;
    } keys[] = {
        {"met_before_runtime", "answered_before_runtime", c->runtime},
        {"pieces", "segments_formed", c->segments},
        {"handed", "submitted", c->submitted},
        {"segments", "runs", c->runs},
    };
    for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
        cus_json_number(w, keys[i].old, keys[i].value);
    if (off)
        cus_json_text(w, "withholding_off_by", off);
    cus_json_open(w, "renamed", '{');
    for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
        cus_json_text(w, keys[i].old, keys[i].key);
    cus_json_text(w, "fallbacks.withholding_off", "fallbacks.deferring_off");
    cus_json_text(w, "withholding_off_by", "deferring_off_by");
    cus_json_text(w, "breaks_by_kernel.reason = dormant", "breaks_by_kernel.reason = demoted");
    cus_json_text(w, "until", "the next version");
    cus_json_close(w, '}');
}

/* Only rows with a flush, since the table has hundreds of rows. */
static void put_flushes(struct cus_json *w, const uint64_t *flushes,
                        const char *(*api_name)(unsigned row)) {
    cus_json_open(w, "flushes", '{');
    for (unsigned i = 0; i < CUS_CAUSES; i++) {
        char number[24];
        const char *name = i >= CUS_API_ROWS_MAX ? cause_keys[i - CUS_API_ROWS_MAX] : NULL;
        if (!flushes[i])
            continue;
        if (!name && api_name)
            name = api_name(i);
        snprintf(number, sizeof number, "api_%u", i);
        cus_json_number(w, name ? name : number, flushes[i]);
    }
    cus_json_close(w, '}');
}

static void put_steps(struct cus_json *w, const struct cus_stats_step *steps, unsigned n) {
    cus_json_open(w, "step_classes", '{');
    for (unsigned i = 0; i < n; i++) {
        cus_json_open(w, steps[i].name, '{');
        cus_json_number(w, "steps", steps[i].steps);
        cus_json_text(w, "mode", steps[i].runs_as);
        if (steps[i].kernel[0]) {
            cus_json_text(w, "kernel", steps[i].kernel);
            cus_json_text(w, "policy", steps[i].policy);
            cus_json_text(w, "pattern", steps[i].pattern);
            cus_json_text(w, "file", steps[i].file);
            cus_json_number(w, "line", (uint64_t)steps[i].line);
        }
        cus_json_close(w, '}');
    }
    cus_json_close(w, '}');
}

static uint64_t sum(const uint64_t *values, size_t n) {
    uint64_t total = 0;
    while (n)
        total += values[--n];
    return total;
}

static void put_cache(struct cus_json *w, const struct cus_stats_cache *cache) {
    cus_json_open(w, "cache", '{');
    cus_json_text(w, "state", cache->state);
    cus_json_number(w, "entries", cache->entries);
    cus_json_number(w, "met", cache->met);
    cus_json_number(w, "used", cache->used);
    cus_json_number(w, "built", cache->built);
    cus_json_number(w, "written", cache->written);
    cus_json_number(w, "in_file", cache->in_file);
    cus_json_close(w, '}');
}

static void put_learned(struct cus_json *w, const struct cus_learned *learned) {
    cus_json_open(w, "learning", '{');
    cus_json_number(w, "steps", learned->steps);
    cus_json_number(w, "first_ten_us", learned->first_ten_ns / 1000);
    cus_json_number(w, "plain_step_us", learned->plain_ns / 1000);
    cus_json_bool(w, "plain_seen", learned->plain_seen);
    cus_json_number(w, "first_ten_percent_of_plain", learned->percent);
    cus_json_number(w, "late_step_us", learned->late_ns / 1000);
    cus_json_number(w, "gain_at_step", learned->gain_at);
    cus_json_open(w, "first_steps", '[');
    for (uint32_t i = 0; i < learned->n_first; i++) {
        cus_json_open(w, NULL, '{');
        cus_json_number(w, "us", learned->first[i].ns / 1000);
        cus_json_number(w, "ops", learned->first[i].ops);
        cus_json_number(w, "in_graphs", learned->first[i].in_graphs);
        cus_json_close(w, '}');
    }
    cus_json_close(w, ']');
    cus_json_close(w, '}');
}

static void put_report(struct cus_json *w, const struct cus_report *report) {
    cus_json_open(w, "breaks_by_kernel", '[');
    for (unsigned i = 0; i < report->n_breaks; i++) {
        const struct cus_report_break *one = &report->breaks[i];
        cus_json_open(w, NULL, '{');
        cus_json_text(w, "name", one->name);
        cus_json_text(w, "by", one->by);
        cus_json_text(w, "reason", one->reason);
        cus_json_number(w, "launches", one->launches);
        cus_json_number(w, "runs", one->runs);
        cus_json_close(w, '}');
    }
    cus_json_close(w, ']');
    cus_json_open(w, "breaks_beyond", '{');
    cus_json_number(w, "kinds", report->more_breaks);
    cus_json_number(w, "launches", report->more_launches);
    cus_json_number(w, "runs", report->more_runs);
    cus_json_close(w, '}');
    cus_json_open(w, "rules_without_match", '[');
    for (unsigned i = 0; i < report->n_rules; i++) {
        const struct cus_report_rule *rule = &report->rules[i];
        cus_json_open(w, NULL, '{');
        cus_json_text(w, "policy", rule->policy);
        cus_json_text(w, "pattern", rule->pattern);
        cus_json_text(w, "file", rule->file);
        cus_json_number(w, "line", (uint64_t)rule->line);
        cus_json_text(w, "nearest", rule->nearest);
        cus_json_close(w, '}');
    }
    cus_json_close(w, ']');
    if (report->off)
        cus_json_text(w, "deferring_off_by", report->off);
    cus_json_open(w, "changing_shapes", '[');
    for (unsigned i = 0; i < report->n_shapes; i++) {
        cus_json_open(w, NULL, '{');
        cus_json_text(w, "name", report->shapes[i].name);
        cus_json_number(w, "launches", report->shapes[i].launches);
        cus_json_number(w, "changed", report->shapes[i].changed);
        cus_json_close(w, '}');
    }
    cus_json_close(w, ']');
    cus_json_open(w, "graph_memory", '{');
    cus_json_number(w, "segments", report->segments);
    cus_json_number(w, "ops", report->segment_ops);
    cus_json_number(w, "bytes", report->segment_bytes);
    cus_json_number(w, "gone_segments", report->gone);
    cus_json_number(w, "gone_ops", report->gone_ops);
    cus_json_number(w, "gone_bytes", report->gone_bytes);
    cus_json_number(w, "bytes_per_op",
                    report->segment_ops ? report->segment_bytes / report->segment_ops : 0);
    cus_json_open(w, "largest", '[');
    for (unsigned i = 0; i < report->n_segments; i++) {
        const struct cus_report_segment *segment = &report->largest[i];
        cus_json_open(w, NULL, '{');
        cus_json_number(w, "ops", segment->ops);
        cus_json_number(w, "variants", segment->variants);
        cus_json_number(w, "bytes", segment->bytes);
        cus_json_number(w, "launches", segment->launches);
        cus_json_number(w, "gone", segment->gone);
        cus_json_text(w, "first", segment->first);
        cus_json_text(w, "last", segment->last);
        cus_json_close(w, '}');
    }
    cus_json_close(w, ']');
    cus_json_close(w, '}');
    cus_json_open(w, "host_memory", '{');
    cus_json_number(w, "nodes", report->nodes);
    cus_json_number(w, "bytes", report->host_bytes);
    cus_json_number(w, "bytes_most", report->host_bytes_most);
    cus_json_number(w, "bytes_per_node", report->nodes ? report->host_bytes / report->nodes : 0);
    cus_json_number(w, "refused", report->host_refused);
    cus_json_close(w, '}');
    cus_json_number(w, "first_step_in_graphs", report->first_step_in_graphs);
    put_learned(w, &report->learned);
    if (report->cache.state)
        put_cache(w, &report->cache);
}

static void put_gpus(struct cus_json *w) {
    uint32_t gpus[CUS_GPUS];
    char text[CUS_GPU_TEXT];
    unsigned n = cus_gpus(gpus);
    cus_json_open(w, "gpus", '[');
    for (unsigned i = 0; i < n; i++) {
        cus_gpu_show(&gpus[i], 1, text);
        cus_json_text(w, NULL, text);
    }
    cus_json_close(w, ']');
}

static void put_all(struct cus_json *w, const struct cus_counters *c,
                    const char *(*api_name)(unsigned row), const struct cus_stats_facts *facts) {
    char exe[4096];
    ssize_t exe_bytes = facts->exe ? -1 : readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[exe_bytes > 0 ? exe_bytes : 0] = 0;
    cus_json_open(w, NULL, '{');
    cus_json_text(w, "version", CUSPLICE_VERSION);
    cus_json_number(w, "pid", (uint64_t)(facts->pid ? facts->pid : (long)getpid()));
    if (cus_process_rank() >= 0)
        cus_json_number(w, "rank", (uint64_t)cus_process_rank());
    put_gpus(w);
    cus_json_number(w, "ran_ms", cus_process_age_ms());
    cus_json_text(w, "exe", facts->exe ? facts->exe : exe);
    cus_json_text(w, "mode", facts->mode ? facts->mode : "");
    cus_json_open(w, "ops", '{');
    for (unsigned i = 0; i < CUS_OP_TYPES; i++)
        cus_json_number(w, cus_op_keys[i], c->ops[i]);
    cus_json_close(w, '}');
    cus_json_open(w, "issued", '{');
    cus_json_number(w, "in_graphs", c->in_graphs);
    cus_json_number(w, "eager", sum(c->eager_by, CUS_EAGERS));
    cus_json_close(w, '}');
    cus_json_number(w, "answered_before_runtime", c->runtime);
    put_reasons(w, "eager_by", cus_eager_keys, c->eager_by, CUS_EAGERS);
    cus_json_number(w, "graph_launches", c->graph_launches);
    cus_json_number(w, "segments_formed", c->segments);
    cus_json_number(w, "built", c->built);
    cus_json_number(w, "submitted", c->submitted);
    cus_json_number(w, "deferred_frees", c->frees);
    cus_json_number(w, "reused_frees", c->frees_reused);
    cus_json_number(w, "runs", c->runs);
    cus_json_number(w, "steps", c->steps);
    cus_json_open(w, "signatures", '{');
    cus_json_number(w, "exact", c->sig_exact);
    cus_json_number(w, "patched", c->sig_patched);
    cus_json_number(w, "missed", c->sig_missed);
    cus_json_close(w, '}');
    cus_json_number(w, "patched_nodes", c->patched_nodes);
    put_flushes(w, c->flushes, api_name);
    put_reasons(w, "breaks", cus_break_keys, c->breaks, CUS_BREAKS);
    cus_json_number(w, "graph_bytes", c->graph_bytes);
    cus_json_number(w, "build_us", c->build_ns / 1000);
    cus_json_open(w, "fallbacks", '{');
    for (unsigned i = 0; i < CUS_FALLBACKS; i++)
        cus_json_number(w, fallback_keys[i], c->fallbacks[i]);
    cus_json_number(w, "withholding_off", c->fallbacks[CUS_FALLBACK_OFF]); /* put_old_keys */
    cus_json_close(w, '}');
    put_old_keys(w, c, facts->report ? facts->report->off : NULL);
    if (facts->n_steps)
        put_steps(w, facts->steps, facts->n_steps);
    if (facts->report)
        put_report(w, facts->report);
    if (facts->segment_list_json)
        cus_json_raw(w, "segment_list", facts->segment_list_json);
    cus_json_close(w, '}');
}

/* ---- which process the file belongs to ---- */

/* The start of this process in seconds of the wall clock; 0: /proc does not tell. */
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

/* True: another process wrote the file while this one ran. */
static bool written_meanwhile(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
           info.st_mtime >= process_start();
}

bool cus_stats_json(const char *path, const struct cus_counters *counters,
                    const char *(*api_name)(unsigned row), const struct cus_stats_facts *facts) {
    int saved = errno;
    char target[4096];
    bool own, done = false;
    struct cus_json_file w = {.why = NULL};
    if (!cus_path_expand(path, target, sizeof target, &own)) {
        errno = ENAMETOOLONG;
    } else if (!own && sum(counters->ops, CUS_OP_TYPES) == 0 && written_meanwhile(target)) {
        errno = saved;
        return false;
    } else if (cus_json_file_begin(&w, target)) {
        put_all(&w.json, counters, api_name, facts);
        done = cus_json_file_end(&w);
    }
    if (!done)
        CUS_LOG_ONCE(CUS_WARN, "stats", "the stats file %s cannot be written: %s", path,
                     cus_file_why(w.why));
    errno = saved;
    return done;
}
