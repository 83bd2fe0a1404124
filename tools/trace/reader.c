/*
 * Maps the file, walks its blocks, checks every record once, and sorts pointers to them. Packed
 * blocks are unpacked beside the map. Tools and the player call it, on one thread. It never calls
 * a driver.
 */
#define _GNU_SOURCE
#include "tools/trace/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#define XXH_INLINE_ALL
#include "xxhash.h"

#include "tools/trace/reader_inside.h"

bool cst_fail(struct reading *r, const char *format, ...) {
    int n = snprintf(r->error, r->error_bytes, "%s: ", r->trace->path);
    va_list arguments;
    va_start(arguments, format);
    if (n >= 0 && (size_t)n < r->error_bytes)
        vsnprintf(r->error + n, r->error_bytes - (size_t)n, format, arguments);
    va_end(arguments);
    return false;
}

bool cst_no_memory(struct reading *r) {
    r->refused = true;
    return cst_fail(r, "not enough memory to read it");
}

char *cst_keep(struct memory *memory, size_t bytes) {
    struct segment_of_memory *segment = malloc(sizeof *segment + bytes);
    if (!segment)
        return NULL;
    segment->next = memory->first;
    memory->first = segment;
    return segment->bytes;
}

bool cst_push(struct reading *r, struct list *list, const void *what) {
    if (list->n == list->room) {
        size_t room = list->room ? list->room * 2 : 1024;
        const void **at = realloc(list->at, room * sizeof *at);
        if (!at)
            return cst_no_memory(r);
        list->at = at;
        list->room = room;
    }
    list->at[list->n++] = what;
    return true;
}

/* ---- records ---- */

struct list *cst_list_of(struct reading *r, uint8_t type) {
    switch (type) {
    case CST_STRING:
        return &r->strings;
    case CST_THREAD:
        return &r->threads;
    case CST_STREAM:
        return &r->streams;
    case CST_KIND:
        return &r->kinds;
    case CST_RANGE:
        return &r->ranges;
    case CST_GPU:
        return &r->gpu;
    case CST_GPU_STREAM:
        return &r->gpu_streams;
    case CST_GPU_CONTEXT:
        return &r->gpu_contexts;
    case CST_OP:
    case CST_CALL:
    case CST_FLUSH:
    case CST_LAUNCH:
    case CST_SEGMENT:
    case CST_LOST:
    case CST_BRANCH:
        return &r->events;
    case CST_MODULE:
    case CST_CODE:
    case CST_SPAN:
    case CST_LANE:
    case CST_WORK:
    case CST_CHECK:
    case CST_OBSTACLE:
        return &r->replay[type - CST_MODULE];
    default:
        return NULL; /* of a newer version: left out */
    }
}

static bool read_records(struct reading *r, const char *payload, size_t bytes, uint64_t where) {
    for (size_t at = 0; at < bytes;) {
        const struct cst_record *record = (const struct cst_record *)(const void *)(payload + at);
        size_t length;
        if (!cst_record_sound(record, bytes - at, &length))
            return cst_fail(r,
                            "corrupt: the record at byte %zu of the block at byte %" PRIu64
                            " makes no sense (type %u, %zu bytes)",
                            at, where, bytes - at >= sizeof *record ? record->type : 0, length);
        struct list *list = cst_list_of(r, record->type);
        if (list && !cst_push(r, list, record))
            return false;
        at += length;
    }
    return true;
}

/* ---- blocks ---- */

static const char *unpack(struct reading *r, const struct cst_block *block, const char *payload,
                          uint64_t where) {
    struct cst_trace *trace = r->trace;
    trace->raw_bytes += block->raw;
    if (!(block->flags & CST_BLOCK_ZSTD))
        return payload;
    r->unpacked += block->raw;
    if (r->unpacked > trace->unpack_max) {
        r->refused = true;
        cst_too_much(trace, "its records", r->error, r->error_bytes);
        return NULL;
    }
    char *raw = cst_keep(r->memory, block->raw + 8);
    if (!raw) {
        cst_no_memory(r);
        return NULL;
    }
    size_t n = ZSTD_decompress(raw, block->raw, payload, block->bytes);
    if (ZSTD_isError(n) || n != block->raw) {
        cst_fail(r, "corrupt: the block at byte %" PRIu64 " does not unpack", where);
        return NULL;
    }
    return raw;
}

static bool read_facts(struct reading *r, const char *payload, size_t bytes) {
    char *text = cst_keep(r->memory, bytes + 1);
    if (!text)
        return cst_no_memory(r);
    memcpy(text, payload, bytes);
    text[bytes] = 0;
    r->trace->facts = text;
    return true;
}

/* What a data block holds is checked when it is wanted: there may be more of it than memory. */
static bool read_data(struct reading *r, const struct cst_block *block, uint64_t where) {
    struct cst_replay *replay = &r->trace->replay;
    struct cst_part part;
    if (!cst_data_head(block, &part))
        return cst_fail(r, "corrupt: the data block at byte %" PRIu64 " makes no sense", where);
    if (part.of < CST_DATA_IMAGE || part.of > CST_DATA_INPUT)
        return true; /* of a newer version: left out */
    if (replay->n_parts == r->parts_room) {
        size_t room = r->parts_room ? 2 * r->parts_room : 64;
        struct cst_part *parts = realloc(replay->parts, room * sizeof *parts);
        if (!parts)
            return cst_no_memory(r);
        replay->parts = parts;
        r->parts_room = room;
    }
    replay->parts[replay->n_parts++] = part;
    return true;
}

bool cst_block_matches(const struct cst_block *block, const char *payload) {
    return XXH3_64bits_withSeed(payload, block->bytes,
                                block->type + ((uint64_t)block->flags << 32)) == block->check;
}

bool cst_read_block(struct reading *r, const struct cst_block *block, const char *payload,
                    uint64_t where) {
    if (block->flags & ~(uint32_t)CST_BLOCK_ZSTD)
        return cst_fail(r,
                        "the block at byte %" PRIu64 " is packed in a way that this version of "
                        "cusplice does not know: read it with a newer one",
                        where);
    if (block->raw > CST_BLOCK_MAX ||
        (!(block->flags & CST_BLOCK_ZSTD) && block->raw != block->bytes))
        return cst_fail(r, "corrupt: the block at byte %" PRIu64 " has impossible lengths", where);
    if (block->type == CST_BLOCK_DATA)
        return read_data(r, block, where);
    if (!cst_block_matches(block, payload))
        return cst_fail(r, "corrupt: the block at byte %" PRIu64 " does not match its checksum",
                        where);
    if (block->type != CST_BLOCK_FACTS && block->type != CST_BLOCK_RECORDS)
        return true;
    const char *raw = unpack(r, block, payload, where);
    if (!raw)
        return false;
    return block->type == CST_BLOCK_FACTS ? read_facts(r, raw, block->raw)
                                          : read_records(r, raw, block->raw, where);
}

static bool read_blocks(struct reading *r, const char *file, uint64_t bytes) {
    struct cst_trace *trace = r->trace;
    uint64_t at = sizeof(struct cst_file);
    while (at < bytes && !trace->closed) {
        const struct cst_block *block = (const struct cst_block *)(const void *)(file + at);
        uint64_t left = bytes - at;
        if (left < sizeof *block || block->bytes > left - sizeof *block) {
            trace->torn = left;
            return true;
        }
        uint64_t whole = sizeof *block + ((block->bytes + 7) & ~(uint64_t)7);
        /* The tail of a file that was not closed may hold what never reached the disk. */
        bool last = whole >= left;
        char kept[256];
        snprintf(kept, sizeof kept, "%s", r->error);
        if (!cst_read_block(r, block, file + at + sizeof *block, at)) {
            if (!last || block->type == CST_BLOCK_END || r->refused)
                return false;
            snprintf(r->error, r->error_bytes, "%s", kept);
            trace->torn = left;
            return true;
        }
        trace->closed = block->type == CST_BLOCK_END;
        at += whole > left ? left : whole;
    }
    return true;
}

/* ---- what belongs together ---- */

static uint32_t id_of(const struct cst_record *record) {
    switch (record->type) {
    case CST_THREAD:
        return record->thread;
    case CST_STREAM:
        return ((const struct cst_stream *)record)->id;
    default:
        return ((const struct cst_kind *)record)->id;
    }
}

/* A table by id out of a list. */
static bool table(struct reading *r, const struct list *list, const char *what, const void ***out,
                  uint32_t *n) {
    uint32_t most = 0;
    for (size_t i = 0; i < list->n; i++) {
        uint32_t id = id_of(list->at[i]);
        if (id >= 4 * list->n + 1024 && r->salvage)
            continue;
        if (id >= 4 * list->n + 1024)
            return cst_fail(r, "corrupt: a %s has the number %u, though there are %zu", what, id,
                            list->n);
        if (id >= most)
            most = id + 1;
    }
    *out = calloc(most ? most : 1, sizeof **out);
    if (!*out)
        return cst_no_memory(r);
    *n = most;
    for (size_t i = 0; i < list->n; i++) {
        uint32_t id = id_of(list->at[i]);
        /* Behind the sound ones stand those out of damaged blocks. */
        if (id < most && !(r->salvage && (*out)[id]))
            (*out)[id] = list->at[i];
    }
    return true;
}

static bool texts(struct reading *r) {
    size_t bytes = 0;
    for (size_t i = 0; i < r->strings.n; i++)
        bytes += ((const struct cst_string *)r->strings.at[i])->bytes + (size_t)1;
    char *to = cst_keep(r->memory, bytes + 1);
    return (to && cst_texts(r->trace, (const struct cst_string *const *)r->strings.at, r->strings.n,
                            to)) ||
           cst_no_memory(r);
}

static bool known_stream(const struct cst_trace *trace, uint32_t id) {
    return id < trace->n_streams && trace->streams[id];
}

static uint32_t stream_of_out(const struct cst_record *record) {
    return record->type == CST_FLUSH    ? ((const struct cst_flush *)record)->stream
           : record->type == CST_LAUNCH ? ((const struct cst_launch *)record)->stream
           : record->type == CST_BRANCH ? ((const struct cst_branch *)record)->stream
                                        : ((const struct cst_segment *)record)->stream;
}

static bool check_event(struct reading *r, const struct cst_record *record) {
    struct cst_trace *trace = r->trace;
    bool fits = record->thread < trace->n_threads && trace->threads[record->thread];
    uint32_t stream = CST_NONE;
    switch (record->type) {
    case CST_OP: {
        const struct cst_op *op = (const struct cst_op *)record;
        const struct cst_kind *kind = op->kind < trace->n_kinds ? trace->kinds[op->kind] : NULL;
        fits &= kind && (uint64_t)record->words * 8 >=
                            sizeof *op + (kind->flags & CST_KIND_OPAQUE ? 0 : kind->param_bytes);
        stream = op->stream;
        trace->ops++;
        break;
    }
    case CST_CALL:
        stream = ((const struct cst_call *)record)->stream;
        break;
    case CST_FLUSH:
    case CST_LAUNCH:
    case CST_SEGMENT:
    case CST_BRANCH:
        stream = stream_of_out(record);
        break;
    case CST_LOST:
        trace->lost_records += ((const struct cst_lost *)record)->records;
        trace->lost_ops += ((const struct cst_lost *)record)->ops;
        break;
    }
    bool may_lack = record->type == CST_CALL || record->type == CST_LOST;
    return fits && ((stream == CST_NONE && may_lack) || known_stream(trace, stream));
}

static bool check_events(struct reading *r) {
    struct cst_trace *trace = r->trace;
    size_t kept = 0;
    uint64_t records = 0, ops = 0;
    for (size_t i = 0; i < r->events.n; i++) {
        const struct cst_record *record = r->events.at[i];
        if (check_event(r, record)) {
            r->events.at[kept++] = record;
        } else if (r->salvage) {
            bool lost = record->type == CST_LOST; /* it is counted already */
            bool op = record->type == CST_OP;
            trace->ops -= op;
            trace->damage.ops += op;
            trace->damage.records++;
            trace->lost_ops += op;
            trace->lost_records += !lost;
            records += lost ? ((const struct cst_lost *)record)->records : 1;
            ops += lost ? ((const struct cst_lost *)record)->ops : op;
        } else {
            return cst_fail(r,
                            "corrupt: a record of type %u at %" PRIu64
                            " ns refers to a thread, kind or stream that is not defined",
                            record->type, record->ns);
        }
    }
    r->events.n = kept;
    return cst_tell_lost(r, records, ops);
}

static bool sort(struct reading *r, struct list *list) {
    return cst_sort((const struct cst_record ***)&list->at, list->n) || cst_no_memory(r);
}

_Static_assert(offsetof(struct cst_gpu_stream, stream) ==
                       offsetof(struct cst_gpu_context, stream) &&
                   offsetof(struct cst_gpu_stream, gpu_stream) ==
                       offsetof(struct cst_gpu_context, context),
               "both are a stream, and CUPTI's number of it");

/* Both sorts of what CUPTI says of streams. */
static bool check_gpu(struct reading *r, struct list *list, const char *what) {
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct cst_gpu_stream *of = list->at[i];
        if (known_stream(r->trace, of->stream))
            list->at[kept++] = of;
        else if (!r->salvage)
            return cst_fail(r, "corrupt: %s %u is of a stream that is not defined", what,
                            of->gpu_stream);
    }
    list->n = kept;
    return true;
}

static bool assemble(struct reading *r) {
    struct cst_trace *trace = r->trace;
    if (!texts(r) ||
        !table(r, &r->threads, "thread", (const void ***)&trace->threads, &trace->n_threads) ||
        !table(r, &r->streams, "stream", (const void ***)&trace->streams, &trace->n_streams) ||
        !table(r, &r->kinds, "kind", (const void ***)&trace->kinds, &trace->n_kinds) ||
        !sort(r, &r->events) || !sort(r, &r->ranges) || !sort(r, &r->gpu))
        return false;
    if ((r->salvage && !cst_place_lost(r)) || !check_gpu(r, &r->gpu_streams, "CUPTI's stream") ||
        !check_gpu(r, &r->gpu_contexts, "CUPTI's context") || !check_events(r))
        return false;
    trace->events = (const struct cst_record **)r->events.at;
    trace->n_events = r->events.n;
    trace->ranges = (const struct cst_range **)r->ranges.at;
    trace->n_ranges = r->ranges.n;
    trace->gpu = (const struct cst_gpu **)r->gpu.at;
    trace->n_gpu = r->gpu.n;
    trace->gpu_streams = (const struct cst_gpu_stream **)r->gpu_streams.at;
    trace->n_gpu_streams = r->gpu_streams.n;
    trace->gpu_contexts = (const struct cst_gpu_context **)r->gpu_contexts.at;
    trace->n_gpu_contexts = r->gpu_contexts.n;
    r->events.at = r->ranges.at = r->gpu.at = r->gpu_streams.at = r->gpu_contexts.at = NULL;
    if (trace->n_events) {
        trace->begin_ns = trace->events[0]->ns;
        trace->end_ns = trace->events[trace->n_events - 1]->ns;
    }
    return true;
}

/* The list becomes the array of the trace. */
static size_t hand_over(struct list *list, const void ***to) {
    *to = list->at;
    list->at = NULL;
    return list->n;
}

static bool assemble_replay(struct reading *r) {
    struct cst_trace *trace = r->trace;
    struct cst_replay *replay = &trace->replay;
#define OF(type) (&r->replay[(type)-CST_MODULE])
    if (!table(r, OF(CST_MODULE), "module", (const void ***)&replay->modules, &replay->n_modules) ||
        !table(r, OF(CST_CODE), "function", (const void ***)&replay->codes, &replay->n_codes) ||
        !table(r, OF(CST_LANE), "lane", (const void ***)&replay->lanes, &replay->n_lanes) ||
        !sort(r, OF(CST_SPAN)) || !sort(r, OF(CST_WORK)) || !sort(r, OF(CST_OBSTACLE)))
        return false;
    for (unsigned i = 0; i < REPLAY; i++)
        for (size_t k = 0; k < r->replay[i].n; k++) {
            const struct cst_record *record = r->replay[i].at[k];
            if (!cst_replay_fits(trace, record))
                return cst_fail(r,
                                "corrupt: a record of type %u at %" PRIu64
                                " ns refers to what is not defined, or is too short for it",
                                record->type, record->ns);
        }
    replay->n_spans = hand_over(OF(CST_SPAN), (const void ***)&replay->spans);
    replay->n_works = hand_over(OF(CST_WORK), (const void ***)&replay->works);
    replay->n_checks = hand_over(OF(CST_CHECK), (const void ***)&replay->checks);
    replay->n_obstacles = hand_over(OF(CST_OBSTACLE), (const void ***)&replay->obstacles);
#undef OF
    cst_data_sort(replay);
    return true;
}

static bool salvage_file(struct reading *r) {
    struct cst_trace *trace = r->trace;
    const struct cst_file *head = r->memory->map;
    trace->version = CST_VERSION;
    trace->damage.head = memcmp(head->magic, CST_MAGIC, sizeof head->magic) != 0;
    if (!cst_salvage(r, r->memory->map, trace->file_bytes) || !assemble(r))
        return false;
    if (r->error_bytes)
        *r->error = 0; /* what was said of damaged blocks */
    if (!trace->damage.places && !trace->damage.records)
        return assemble_replay(r);
    trace->replay.n_parts = 0;
    return true;
}

static bool read_file(struct reading *r, uint64_t pipe_most) {
    struct cst_trace *trace = r->trace;
    if (!cst_map_file(r, pipe_most))
        return false;
    const struct cst_file *head = r->memory->map;
    if (memcmp(head->magic, CST_MAGIC, sizeof head->magic) != 0 && r->salvage &&
        cst_salvage_begins(r->memory->map, trace->file_bytes))
        return salvage_file(r);
    if (memcmp(head->magic, CST_MAGIC, sizeof head->magic) != 0)
        return cst_fail(
            r, "not a trace of cusplice (cusplice record makes them, cusplice import reads "
               "those of nsys)");
    if (head->mark != CST_MARK)
        return cst_fail(r, "made on a machine with another byte order");
    if (head->version > CST_VERSION)
        return cst_fail(r,
                        "of version %u, and this cusplice reads versions up to %d: use a newer one",
                        head->version, CST_VERSION);
    if (head->version == 0)
        return cst_fail(r, "corrupt: of version 0");
    if (r->salvage)
        return salvage_file(r);
    trace->version = head->version;
    return read_blocks(r, r->memory->map, trace->file_bytes) && assemble(r) && assemble_replay(r);
}

struct cst_trace *cst_open(const char *path, char *error, size_t bytes) {
    return cst_open_within(path, NULL, error, bytes);
}

struct cst_trace *cst_open_within(const char *path, const struct cst_bounds *bounds, char *error,
                                  size_t bytes) {
    struct cst_trace *trace = calloc(1, sizeof *trace);
    struct memory *memory = calloc(1, sizeof *memory);
    struct reading r = {.trace = trace, .memory = memory, .error = error, .error_bytes = bytes};
    if (bytes)
        *error = 0;
    if (!trace || !memory) {
        free(trace);
        free(memory);
        snprintf(error, bytes, "%s: not enough memory", path);
        return NULL;
    }
    trace->memory = memory;
    trace->facts = "{}";
    trace->unpack_max = bounds ? bounds->unpack_max : 0;
    trace->raise = bounds ? bounds->raise : NULL;
    char *name = cst_keep(memory, strlen(path) + 1);
    trace->path = name ? strcpy(name, path) : "";
    r.salvage = bounds && bounds->salvage;
    bool read = read_file(&r, bounds ? bounds->pipe_most : 0);
    struct list *lists[] = {&r.strings, &r.threads, &r.streams,     &r.kinds,       &r.ranges,
                            &r.events,  &r.gpu,     &r.gpu_streams, &r.gpu_contexts};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(lists[i]->at);
    for (size_t i = 0; i < REPLAY; i++)
        free(r.replay[i].at);
    if (read)
        return trace;
    cst_free(trace);
    return NULL;
}

void cst_free(struct cst_trace *trace) {
    if (!trace)
        return;
    struct memory *memory = trace->memory;
    while (memory->first) {
        struct segment_of_memory *next = memory->first->next;
        free(memory->first);
        memory->first = next;
    }
    if (memory->map)
        munmap(memory->map, memory->map_bytes);
    free(memory);
    free(trace->threads);
    free(trace->streams);
    free(trace->kinds);
    free(trace->events);
    free(trace->ranges);
    free(trace->gpu);
    free(trace->gpu_streams);
    free(trace->gpu_contexts);
    free(trace->texts);
    free(trace->replay.modules);
    free(trace->replay.codes);
    free(trace->replay.lanes);
    free(trace->replay.spans);
    free(trace->replay.works);
    free(trace->replay.checks);
    free(trace->replay.obstacles);
    free(trace->replay.parts);
    free(trace);
}
