/*
 * Collects what verifying found. cus_report_end runs on the thread that ends the process.
 */
#include "shim/verify/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/file.h"
#include "shim/base/json_file.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/base/path.h"
#include "shim/base/version.h"

enum { DIFFERENCES = 64, UNSTABLES = 256, SHOWN_BYTES = 64 };

static const char *const skip_keys[] = {
#define CUS_UNVERIFIED(id, key, text) key,
#include "shim/verify/unverified.def"
};
static const char *const skip_texts[] = {
#define CUS_UNVERIFIED(id, key, text) text,
#include "shim/verify/unverified.def"
};

/* An argument whose value in the node differed from the requested one. */
struct argument {
    uint32_t index, bytes;
    uint8_t requested[SHOWN_BYTES], node[SHOWN_BYTES]; /* its first bytes */
};

struct kept {
    struct cus_difference shown; /* the fields below hold its op's texts and images */
    uint64_t times;
    char *kernel; /* NULL: the op is unknown */
    uint32_t requested[CUS_DIMS], node[CUS_DIMS];
    uint32_t n_arguments; /* number of arguments that differ */
    struct argument arguments[8];
    bool node_known;
};

static struct cus_lock lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
static struct cus_verify_counts counts; /* guarded by lock, as is all below */
static struct kept *kept[DIFFERENCES];
static uint32_t n_kept;
static char *unstable[UNSTABLES];
static uint32_t n_unstable;
/* A context that was lost; `first` NULL: none was. */
static struct {
    CUresult error;
    uint64_t stream;
    uint32_t ops;
    int op;
    char *first, *last;
} lost;

/* ---- counts ---- */

void cus_report_count(const struct cus_verify_counts *more) {
    const uint64_t *from = (const uint64_t *)more;
    uint64_t *to = (uint64_t *)&counts;
    cus_lock_take(&lock);
    for (size_t i = 0; i < sizeof counts / sizeof *to; i++)
        to[i] += from[i];
    cus_lock_give(&lock);
}
_Static_assert(sizeof(struct cus_verify_counts) % sizeof(uint64_t) == 0, "counts are words");

void cus_report_skip(enum cus_unverified why) {
    cus_lock_take(&lock);
    counts.skipped[why]++;
    cus_lock_give(&lock);
}

void cus_report_get(struct cus_verify_counts *out) {
    cus_lock_take(&lock);
    *out = counts;
    cus_lock_give(&lock);
}

/* ---- what differs ---- */

static void keep_arguments(struct kept *one, const struct cus_verify_op *op) {
    const struct cus_layout *layout = op->kind->layout;
    if (op->kind->type != CUS_OP_LAUNCH || !layout)
        return;
    for (uint32_t i = 0; i < layout->n; i++) {
        uint32_t at = layout->arguments[i].offset, bytes = layout->arguments[i].size;
        uint32_t shown = bytes < SHOWN_BYTES ? bytes : SHOWN_BYTES;
        if (memcmp(op->requested->params + at, op->node->params + at, bytes) == 0)
            continue;
        if (one->n_arguments < sizeof one->arguments / sizeof *one->arguments) {
            struct argument *argument = &one->arguments[one->n_arguments];
            argument->index = i;
            argument->bytes = shown;
            memcpy(argument->requested, op->requested->params + at, shown);
            memcpy(argument->node, op->node->params + at, shown);
        }
        one->n_arguments++;
    }
}

static const char *op_name(const struct cus_kind *kind) {
    return kind->type == CUS_OP_MEMSET ? "memset" : kind->type == CUS_OP_COPY ? "copy" : kind->name;
}

static struct kept *keep(const struct cus_difference *difference) {
    struct kept *one = cus_mem_alloc(sizeof *one);
    if (!one)
        return NULL;
    one->shown = *difference;
    one->times = 1;
    if (difference->op >= 0) {
        const struct cus_verify_op *op = &difference->what;
        one->kernel = cus_mem_text(op_name(op->kind));
        memcpy(one->requested, op->requested->dims, sizeof one->requested);
        memcpy(one->node, op->node->dims, sizeof one->node);
        one->node_known = !op->node->unknown;
        if (one->node_known)
            keep_arguments(one, op);
    }
    return one;
}

/* The entry for the same kernel at the same place of a graph of the same length on the same
 * stream. Lock held. */
static struct kept *find(const struct cus_difference *difference) {
    const char *kernel = difference->op >= 0 ? op_name(difference->what.kind) : "";
    for (uint32_t i = 0; i < n_kept; i++)
        if (kept[i]->shown.op == difference->op && kept[i]->shown.ops == difference->ops &&
            kept[i]->shown.stream == difference->stream &&
            strcmp(kept[i]->kernel ? kept[i]->kernel : "", kernel) == 0)
            return kept[i];
    return NULL;
}

void cus_report_difference(const struct cus_difference *difference) {
    cus_lock_take(&lock);
    struct kept *one = find(difference);
    if (one)
        one->times++;
    else if (n_kept < DIFFERENCES && (kept[n_kept] = keep(difference)))
        n_kept++;
    cus_lock_give(&lock);
    if (difference->op >= 0)
        CUS_LOG_ONCE(CUS_WARN, "verify",
                     "a graph differs from its launches: first at op %d of %u, %s",
                     difference->op + 1, difference->ops, op_name(difference->what.kind));
    else
        CUS_LOG_ONCE(CUS_WARN, "verify", "a graph of %u ops differs from its launches",
                     difference->ops);
}

void cus_report_unstable(const char *kernel) {
    cus_lock_take(&lock);
    if (n_unstable < UNSTABLES && (unstable[n_unstable] = cus_mem_text(kernel)))
        n_unstable++;
    cus_lock_give(&lock);
}

bool cus_report_is_unstable(const char *kernel) {
    bool found = false;
    cus_lock_take(&lock);
    for (uint32_t i = 0; i < n_unstable && !found; i++)
        found = kernel && strcmp(unstable[i], kernel) == 0;
    cus_lock_give(&lock);
    return found;
}

static void say_lost(const char *before) {
    if (lost.op >= 0)
        cus_log(CUS_WARN, "verify",
                "%sthe context was lost with error %d at op %d of %u, %s, on stream %llu. It was "
                "issued by itself: no graph is at fault",
                before, (int)lost.error, lost.op + 1, lost.ops, lost.first,
                (unsigned long long)lost.stream);
    else
        cus_log(CUS_WARN, "verify",
                "%sthe context was lost with error %d in a graph of %u ops, %s to %s, on stream "
                "%llu. Which of them failed is not known. Issued one by one, none did",
                before, (int)lost.error, lost.ops, lost.first, lost.last,
                (unsigned long long)lost.stream);
}

void cus_report_lost(const struct cus_loss *loss) {
    char *first = cus_mem_text(op_name(loss->first)), *last = cus_mem_text(op_name(loss->last));
    cus_lock_take(&lock);
    bool keeps = first && last && !lost.first;
    if (keeps) {
        lost.error = loss->error;
        lost.stream = loss->stream;
        lost.ops = loss->ops;
        lost.op = loss->op;
        lost.first = first;
        lost.last = last;
        say_lost("");
    }
    cus_lock_give(&lock);
    if (!keeps) {
        cus_mem_free(first);
        cus_mem_free(last);
    }
}

bool cus_report_has_lost(void) {
    cus_lock_take(&lock);
    bool has = lost.first != NULL;
    cus_lock_give(&lock);
    return has;
}

/* ---- the end: no thread adds anything any more ---- */

static void dims_text(const uint32_t *d, char *out, size_t bytes) {
    snprintf(out, bytes, "<<<(%u,%u,%u), (%u,%u,%u), %u>>>", d[0], d[1], d[2], d[3], d[4], d[5],
             d[6]);
}

/* Writes up to 8 bytes as a number, highest byte first; more bytes in their order. */
static void bytes_text(const uint8_t *data, uint32_t n, char *out) {
    out += sprintf(out, "0x");
    for (uint32_t i = n; i-- > 0;)
        out += sprintf(out, "%02x", data[n <= 8 ? i : n - 1 - i]);
}

static void say_difference(const struct kept *one) {
    char requested[96], node[96], a[2 * SHOWN_BYTES + 4], b[2 * SHOWN_BYTES + 4];
    const struct cus_difference *d = &one->shown;
    if (!one->kernel) {
        cus_log(CUS_WARN, "verify",
                "  a graph of %u ops (%s), %llu times; the driver cannot cut it", d->ops, d->made,
                (unsigned long long)one->times);
        return;
    }
    dims_text(one->requested, requested, sizeof requested);
    dims_text(one->node, node, sizeof node);
    cus_log(CUS_WARN, "verify", "  op %d of %u, %s %s, graph %s, %llu times", d->op + 1, d->ops,
            one->kernel, requested, d->made, (unsigned long long)one->times);
    if (!one->node_known)
        cus_log(CUS_WARN, "verify", "    what its node held before is not known");
    else if (strcmp(requested, node) != 0)
        cus_log(CUS_WARN, "verify", "    its node held %s before", node);
    for (uint32_t i = 0; i < one->n_arguments && i < 8; i++) {
        const struct argument *argument = &one->arguments[i];
        bytes_text(argument->requested, argument->bytes, a);
        bytes_text(argument->node, argument->bytes, b);
        cus_log(CUS_WARN, "verify", "    argument %u: asked for %s, its node held %s before",
                argument->index, a, b);
    }
}

/* Was each graph launch verified, and equal? */
static bool all_equal(const struct cus_verify_counts *c) {
    return c->launches && c->same == c->launches && !c->unjudged;
}

static void say_all(void) {
    const struct cus_verify_counts *c = &counts;
    cus_log(
        all_equal(c) ? CUS_INFO : CUS_WARN, "verify",
        "%llu of %llu graph launches verified (%llu ops): %llu equal, %llu differ, %llu not the "
        "same twice; %.1f s, %llu MB saved",
        (unsigned long long)c->checked, (unsigned long long)c->launches, (unsigned long long)c->ops,
        (unsigned long long)c->same, (unsigned long long)c->differing,
        (unsigned long long)c->unstable, (double)c->ns / 1e9, (unsigned long long)(c->bytes >> 20));
    for (unsigned i = 0; i < CUS_UNVERIFIEDS; i++)
        if (c->skipped[i])
            cus_log(CUS_WARN, "verify", "  %llu not verified: %s",
                    (unsigned long long)c->skipped[i], skip_texts[i]);
    if (c->unjudged)
        cus_log(CUS_WARN, "verify", "  %llu disturbed by other threads",
                (unsigned long long)c->unjudged);
    if (cus_options()->verify_plant != CUS_PLANT_NONE)
        cus_log(CUS_WARN, "verify", "  %llu had a fault planted", (unsigned long long)c->planted);
    for (uint32_t i = 0; i < n_unstable; i++)
        cus_log(CUS_WARN, "verify", "  not the same twice: %s", unstable[i]);
    for (uint32_t i = 0; i < n_kept; i++)
        say_difference(kept[i]);
    if (lost.first)
        say_lost("  ");
}

static void put_dims(struct cus_json *w, const uint32_t *d) {
    char text[64];
    snprintf(text, sizeof text, "[%u, %u, %u]", d[0], d[1], d[2]);
    cus_json_raw(w, "grid", text);
    snprintf(text, sizeof text, "[%u, %u, %u]", d[3], d[4], d[5]);
    cus_json_raw(w, "block", text);
    cus_json_number(w, "shared_bytes", d[6]);
}

static void put_difference(struct cus_json *w, const struct kept *one) {
    char text[2 * SHOWN_BYTES + 4];
    const struct cus_difference *d = &one->shown;
    cus_json_open(w, NULL, '{');
    cus_json_text(w, "kernel", one->kernel);
    if (d->op >= 0)
        cus_json_number(w, "op", (uint64_t)d->op);
    cus_json_number(w, "ops", d->ops);
    cus_json_number(w, "stream", d->stream);
    cus_json_text(w, "graph", d->made);
    cus_json_number(w, "times", one->times);
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)d->range.start);
    cus_json_text(w, "memory", text);
    cus_json_number(w, "memory_bytes", d->range.bytes);
    if (one->kernel) {
        put_dims(w, one->requested);
        if (one->node_known) {
            cus_json_open(w, "node_before", '{');
            put_dims(w, one->node);
            cus_json_close(w, '}');
        }
        cus_json_open(w, "arguments", '[');
        for (uint32_t i = 0; i < one->n_arguments && i < 8; i++) {
            const struct argument *argument = &one->arguments[i];
            cus_json_open(w, NULL, '{');
            cus_json_number(w, "index", argument->index);
            bytes_text(argument->requested, argument->bytes, text);
            cus_json_text(w, "asked", text);
            bytes_text(argument->node, argument->bytes, text);
            cus_json_text(w, "node_before", text);
            cus_json_close(w, '}');
        }
        cus_json_close(w, ']');
    }
    cus_json_close(w, '}');
}

static void put_lost(struct cus_json *w) {
    cus_json_open(w, "context_lost", '{');
    cus_json_number(w, "error", (uint64_t)lost.error);
    cus_json_number(w, "stream", lost.stream);
    cus_json_number(w, "ops", lost.ops);
    if (lost.op >= 0) {
        cus_json_number(w, "op", (uint64_t)lost.op);
        cus_json_text(w, "kernel", lost.first);
    } else {
        cus_json_text(w, "first", lost.first);
        cus_json_text(w, "last", lost.last);
    }
    cus_json_close(w, '}');
}

static void put_all(struct cus_json *w) {
    const struct cus_options *options = cus_options();
    const struct cus_verify_counts *c = &counts;
    char exe[4096];
    ssize_t bytes = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[bytes > 0 ? bytes : 0] = 0;
    cus_json_open(w, NULL, '{');
    cus_json_text(w, "version", CUSPLICE_VERSION);
    cus_json_number(w, "pid", (uint64_t)getpid());
    cus_json_text(w, "exe", exe);
    cus_json_text(w, "mode", cus_mode_name(cus_options_graphs(options)));
    cus_json_number(w, "every", options->verify_every);
    cus_json_number(w, "graph_launches", c->launches);
    cus_json_number(w, "verified", c->checked);
    cus_json_number(w, "equal", c->same);
    cus_json_number(w, "different", c->differing);
    cus_json_number(w, "not_the_same_twice", c->unstable);
    cus_json_number(w, "disturbed", c->unjudged);
    cus_json_number(w, "planted", c->planted);
    cus_json_number(w, "ops", c->ops);
    cus_json_number(w, "with_all_memory", c->all_memory);
    cus_json_number(w, "with_memory_of_pointers", c->by_pointers);
    cus_json_number(w, "saved_bytes", c->bytes);
    cus_json_number(w, "spent_us", c->ns / 1000);
    cus_json_open(w, "not_verified", '{');
    for (unsigned i = 0; i < CUS_UNVERIFIEDS; i++)
        cus_json_number(w, skip_keys[i], c->skipped[i]);
    cus_json_close(w, '}');
    cus_json_open(w, "kernels_not_the_same_twice", '[');
    for (uint32_t i = 0; i < n_unstable; i++)
        cus_json_text(w, NULL, unstable[i]);
    cus_json_close(w, ']');
    cus_json_open(w, "differences", '[');
    for (uint32_t i = 0; i < n_kept; i++)
        put_difference(w, kept[i]);
    cus_json_close(w, ']');
    if (lost.first)
        put_lost(w);
    cus_json_close(w, '}');
}

void cus_report_end(const char *path) {
    char target[4096];
    struct cus_json_file w = {.why = NULL};
    int saved = errno;
    say_all();
    if (*path) {
        bool done =
            cus_path_expand(path, target, sizeof target, NULL) && cus_json_file_begin(&w, target);
        if (done) {
            put_all(&w.json);
            done = cus_json_file_end(&w);
        }
        if (!done)
            cus_log(CUS_WARN, "verify", "the report %s cannot be written: %s", path,
                    cus_file_why(w.why));
    }
    errno = saved;
}

void cus_report_drop(void) {
    for (; n_kept; n_kept--) {
        cus_mem_free(kept[n_kept - 1]->kernel);
        cus_mem_free(kept[n_kept - 1]);
    }
    for (; n_unstable; n_unstable--)
        cus_mem_free(unstable[n_unstable - 1]);
    cus_mem_free(lost.first);
    cus_mem_free(lost.last);
    lost.first = lost.last = NULL;
    counts = (struct cus_verify_counts){0};
}
