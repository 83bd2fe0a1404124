/*
 * Checks the records of replayable traces, and loads their data blocks. reader.c and the player
 * call it. It never trusts a length or an id in the file.
 */
#include "tools/trace/reader_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#define XXH_INLINE_ALL
#include "xxhash.h"

/* ---- records ---- */

static bool adds_up(uint64_t a, uint64_t b) {
    return a + b >= a;
}

bool cst_arguments_sound(const struct cst_argument *arguments, uint32_t n, uint32_t param_bytes) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        bytes += arguments[i].bytes;
        if ((uint64_t)arguments[i].offset + arguments[i].bytes > param_bytes)
            return false;
    }
    return bytes <= param_bytes;
}

bool cst_replay_sound(const struct cst_record *record, size_t bytes) {
    if (record->type != CST_CODE)
        return true;
    const struct cst_code *code = (const struct cst_code *)record;
    uint64_t need = sizeof *code + (uint64_t)code->n_arguments * sizeof(struct cst_argument) +
                    (uint64_t)code->n_attributes * sizeof(struct cst_setting);
    return need <= bytes && code->param_bytes <= 65536 &&
           cst_arguments_sound(cst_code_arguments(code), code->n_arguments, code->param_bytes);
}

static bool known_module(const struct cst_replay *replay, uint32_t id) {
    return id == 0 || (id < replay->n_modules && replay->modules[id]);
}

static bool work_fits(const struct cst_trace *trace, const struct cst_work *work) {
    const struct cst_replay *replay = &trace->replay;
    uint32_t thread = work->head.thread;
    const struct cst_code *code =
        work->code && work->code < replay->n_codes ? replay->codes[work->code] : NULL;
    if (thread >= trace->n_threads || !trace->threads[thread] || (work->code && !code) ||
        (work->lane && (work->lane >= replay->n_lanes || !replay->lanes[work->lane])))
        return false;
    uint64_t need = sizeof *work + (uint64_t)work->n_attributes * sizeof(struct cst_attribute);
    if (work->head.flags == CST_WORK_LAUNCH) {
        if (!code)
            return false;
        need += code->param_bytes;
    }
    return need <= (uint64_t)work->head.words * 8;
}

bool cst_replay_fits(const struct cst_trace *trace, const struct cst_record *record) {
    switch (record->type) {
    case CST_MODULE: {
        const struct cst_module *module = (const struct cst_module *)record;
        return module->id && adds_up(module->offset, module->bytes);
    }
    case CST_CODE: {
        const struct cst_code *code = (const struct cst_code *)record;
        return code->id && known_module(&trace->replay, code->module);
    }
    case CST_SPAN: {
        const struct cst_span *span = (const struct cst_span *)record;
        return adds_up(span->address, span->bytes) && known_module(&trace->replay, span->module);
    }
    case CST_LANE:
        return ((const struct cst_lane *)record)->id != 0;
    case CST_WORK:
        return work_fits(trace, (const struct cst_work *)record);
    case CST_CHECK: {
        const struct cst_check *check = (const struct cst_check *)record;
        return adds_up(check->address, check->bytes);
    }
    default:
        return true;
    }
}

/* ---- data ---- */

enum { WINDOW_LOG = 26 }; /* 64 MiB, as long as a block may be (CST_BLOCK_MAX) */

/* A frame may ask for a window of any size. */
static ZSTD_DCtx *new_context(void) {
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (context)
        ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, WINDOW_LOG);
    return context;
}

static bool unpack(const struct cst_block *block, struct cst_data *head, void *to, size_t bytes) {
    ZSTD_DCtx *context = new_context();
    ZSTD_inBuffer in = {block + 1, block->bytes, 0};
    ZSTD_outBuffer first = {head, sizeof *head, 0}, rest = {to, bytes, 0};
    bool good = context != NULL;
    /* The frame ends where the output does: 0 is said at its end alone. */
    size_t left = 1;
    while (good && first.pos < first.size) {
        size_t was = in.pos + first.pos;
        left = ZSTD_decompressStream(context, &first, &in);
        good = !ZSTD_isError(left) && in.pos + first.pos > was;
    }
    while (good && to && left && rest.pos <= rest.size) {
        size_t was = in.pos + rest.pos;
        left = ZSTD_decompressStream(context, &rest, &in);
        good = !ZSTD_isError(left) && (!left || in.pos + rest.pos > was);
    }
    ZSTD_freeDCtx(context);
    return good && (!to || (rest.pos == bytes && left == 0));
}

bool cst_data_head(const struct cst_block *block, struct cst_part *part) {
    struct cst_data head;
    if (block->raw < sizeof head)
        return false;
    if (!(block->flags & CST_BLOCK_ZSTD))
        memcpy(&head, block + 1, sizeof head);
    else if (!unpack(block, &head, NULL, 0))
        return false;
    *part = (struct cst_part){head.of, head.id, head.offset, head.bytes, block};
    return head.bytes == block->raw - sizeof head && adds_up(head.offset, head.bytes);
}

bool cst_too_much(const struct cst_trace *trace, const char *what, char *error, size_t bytes) {
    snprintf(error, bytes,
             "%s: %s unpack to more than %" PRIu64 " MiB, and the file has %" PRIu64 " bytes%s%s",
             trace->path, what, trace->unpack_max >> 20, trace->file_bytes,
             trace->raise ? ": " : "", trace->raise ? trace->raise : "");
    return false;
}

bool cst_data_fits(const struct cst_trace *trace, char *error, size_t bytes) {
    uint64_t all = 0;
    for (size_t i = 0; i < trace->replay.n_parts; i++)
        if (trace->replay.parts[i].block->flags & CST_BLOCK_ZSTD)
            all += trace->replay.parts[i].bytes;
    return all <= trace->unpack_max ||
           cst_too_much(trace, "its blocks of code, memory and input", error, bytes);
}

static bool broken(const struct cst_trace *trace, const struct cst_part *part, const char *what,
                   char *error, size_t bytes) {
    snprintf(error, bytes, "%s: corrupt: a data block (%s, %" PRIu64 " bytes) %s", trace->path,
             part->of == CST_DATA_IMAGE    ? "code"
             : part->of == CST_DATA_MEMORY ? "memory"
                                           : "input",
             part->bytes, what);
    return false;
}

static bool is_as_written(const struct cst_block *block) {
    return XXH3_64bits_withSeed(block + 1, block->bytes,
                                block->type + ((uint64_t)block->flags << 32)) == block->check;
}

bool cst_data_load(const struct cst_trace *trace, const struct cst_part *part, void *to,
                   char *error, size_t bytes) {
    const struct cst_block *block = part->block;
    struct cst_data head;
    static char nothing[1];
    if (!is_as_written(block))
        return broken(trace, part, "does not match its checksum", error, bytes);
    if (!(block->flags & CST_BLOCK_ZSTD))
        memcpy(to, (const char *)(block + 1) + sizeof head, part->bytes);
    else if (!unpack(block, &head, part->bytes ? to : nothing, part->bytes))
        return broken(trace, part, "does not unpack", error, bytes);
    return true;
}

/* Does the frame end with the block, after as many bytes as it says? */
static bool unpacks(const struct cst_block *block) {
    static char scratch[128 << 10];
    ZSTD_DCtx *context = new_context();
    ZSTD_inBuffer in = {block + 1, block->bytes, 0};
    uint64_t all = 0;
    size_t left = context ? 1 : 0;
    bool good = context != NULL;
    while (good && left) {
        ZSTD_outBuffer out = {scratch, sizeof scratch, 0};
        size_t was = in.pos;
        left = ZSTD_decompressStream(context, &out, &in);
        all += out.pos;
        good = !ZSTD_isError(left) && all <= block->raw && (!left || in.pos > was || out.pos);
    }
    ZSTD_freeDCtx(context);
    return good && all == block->raw;
}

bool cst_data_sound(const struct cst_trace *trace, const struct cst_part *part, char *error,
                    size_t bytes) {
    if (!is_as_written(part->block))
        return broken(trace, part, "does not match its checksum", error, bytes);
    if (part->block->flags & CST_BLOCK_ZSTD && !unpacks(part->block))
        return broken(trace, part, "does not unpack", error, bytes);
    return true;
}

static int by_place(const void *a, const void *b) {
    const struct cst_part *x = a, *y = b;
    if (x->of != y->of)
        return x->of < y->of ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->block < y->block ? -1 : x->block > y->block; /* as they stand in the file */
}

void cst_data_sort(struct cst_replay *replay) {
    if (replay->n_parts)
        qsort(replay->parts, replay->n_parts, sizeof *replay->parts, by_place);
}

const struct cst_part *cst_data_of(const struct cst_trace *trace, enum cst_data_of of, uint32_t id,
                                   size_t *n) {
    const struct cst_replay *replay = &trace->replay;
    size_t low = 0, high = replay->n_parts;
    *n = 0;
    if (!high)
        return NULL;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct cst_part *part = &replay->parts[middle];
        if (part->of < (uint32_t)of || (part->of == (uint32_t)of && part->id < id))
            low = middle + 1;
        else
            high = middle;
    }
    while (low + *n < replay->n_parts && replay->parts[low + *n].of == (uint32_t)of &&
           replay->parts[low + *n].id == id)
        ++*n;
    return replay->parts + low;
}
