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

enum { REPLAY = CST_OBSTACLE - CST_MODULE + 1, UNPACK_LEAST = 64 << 20, UNPACK_TIMES = 100 };

/* Payloads that live beside the mapped file, and everything else that is freed with the trace. */
struct segment_of_memory {
    struct segment_of_memory *next;
    char bytes[];
};

struct memory {
    void *map;
    size_t map_bytes;
    struct segment_of_memory *first;
};

/* Pointers that are gathered; `n` of `room`. */
struct list {
    const void **at;
    size_t n, room;
};

struct reading {
    struct cst_trace *trace;
    struct memory *memory;
    struct list strings, threads, streams, kinds, ranges, events, gpu, gpu_streams, gpu_contexts;
    struct list replay[REPLAY]; /* by type, from CST_MODULE on */
    size_t parts_room;
    uint64_t unpacked; /* bytes, so far */
    bool refused;      /* not for what the file holds: a torn tail is no explanation */
    char *error;
    size_t error_bytes;
};

static bool fail(struct reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(struct reading *r, const char *format, ...) {
    int n = snprintf(r->error, r->error_bytes, "%s: ", r->trace->path);
    va_list arguments;
    va_start(arguments, format);
    if (n >= 0 && (size_t)n < r->error_bytes)
        vsnprintf(r->error + n, r->error_bytes - (size_t)n, format, arguments);
    va_end(arguments);
    return false;
}

static bool no_memory(struct reading *r) {
    r->refused = true;
    return fail(r, "not enough memory to read it");
}

static char *keep(struct memory *memory, size_t bytes) {
    struct segment_of_memory *segment = malloc(sizeof *segment + bytes);
    if (!segment)
        return NULL;
    segment->next = memory->first;
    memory->first = segment;
    return segment->bytes;
}

static bool push(struct reading *r, struct list *list, const void *what) {
    if (list->n == list->room) {
        size_t room = list->room ? list->room * 2 : 1024;
        const void **at = realloc(list->at, room * sizeof *at);
        if (!at)
            return no_memory(r);
        list->at = at;
        list->room = room;
    }
    list->at[list->n++] = what;
    return true;
}

/* ---- records ---- */

static size_t least_bytes(uint8_t type) {
    static const size_t least[] = {
        [CST_STRING] = sizeof(struct cst_string),
        [CST_THREAD] = sizeof(struct cst_thread),
        [CST_STREAM] = sizeof(struct cst_stream),
        [CST_KIND] = sizeof(struct cst_kind),
        [CST_RANGE] = sizeof(struct cst_range),
        [CST_OP] = sizeof(struct cst_op),
        [CST_CALL] = sizeof(struct cst_call),
        [CST_FLUSH] = sizeof(struct cst_flush),
        [CST_LAUNCH] = sizeof(struct cst_launch),
        [CST_SEGMENT] = sizeof(struct cst_segment),
        [CST_LOST] = sizeof(struct cst_lost),
        [CST_BRANCH] = sizeof(struct cst_branch),
        [CST_GPU] = sizeof(struct cst_gpu),
        [CST_GPU_STREAM] = sizeof(struct cst_gpu_stream),
        [CST_GPU_CONTEXT] = sizeof(struct cst_gpu_context),
        [CST_MODULE] = sizeof(struct cst_module),
        [CST_CODE] = sizeof(struct cst_code),
        [CST_SPAN] = sizeof(struct cst_span),
        [CST_LANE] = sizeof(struct cst_lane),
        [CST_WORK] = sizeof(struct cst_work),
        [CST_CHECK] = sizeof(struct cst_check),
        [CST_OBSTACLE] = sizeof(struct cst_obstacle),
    };
    size_t bytes = type < sizeof least / sizeof *least ? least[type] : 0;
    return bytes ? bytes : sizeof(struct cst_record);
}

static struct list *list_of(struct reading *r, uint8_t type) {
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

static bool sound_definition(const struct cst_record *record, size_t bytes) {
    if (record->type == CST_STRING)
        return ((const struct cst_string *)record)->bytes <= bytes - sizeof(struct cst_string);
    if (record->type == CST_KIND) {
        const struct cst_kind *kind = (const struct cst_kind *)record;
        uint64_t need = sizeof *kind + (uint64_t)kind->n_arguments * sizeof(struct cst_argument) +
                        (uint64_t)kind->n_attributes * sizeof(struct cst_attribute);
        if (need > bytes || kind->op >= CST_OP_TYPES || kind->param_bytes > 65536 ||
            !cst_arguments_sound(cst_kind_arguments(kind), kind->n_arguments, kind->param_bytes))
            return false;
    }
    return cst_replay_sound(record, bytes);
}

static bool read_records(struct reading *r, const char *payload, size_t bytes, uint64_t where) {
    for (size_t at = 0; at < bytes;) {
        const struct cst_record *record = (const struct cst_record *)(const void *)(payload + at);
        size_t length = bytes - at >= sizeof *record ? (size_t)record->words * 8 : 0;
        if (length < sizeof *record || length > bytes - at || length < least_bytes(record->type) ||
            !sound_definition(record, length))
            return fail(r,
                        "corrupt: the record at byte %zu of the block at byte %" PRIu64
                        " makes no sense (type %u, %zu bytes)",
                        at, where, bytes - at >= sizeof *record ? record->type : 0, length);
        struct list *list = list_of(r, record->type);
        if (list && !push(r, list, record))
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
    char *raw = keep(r->memory, block->raw + 8);
    if (!raw) {
        no_memory(r);
        return NULL;
    }
    size_t n = ZSTD_decompress(raw, block->raw, payload, block->bytes);
    if (ZSTD_isError(n) || n != block->raw) {
        fail(r, "corrupt: the block at byte %" PRIu64 " does not unpack", where);
        return NULL;
    }
    return raw;
}

static bool read_facts(struct reading *r, const char *payload, size_t bytes) {
    char *text = keep(r->memory, bytes + 1);
    if (!text)
        return no_memory(r);
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
        return fail(r, "corrupt: the data block at byte %" PRIu64 " makes no sense", where);
    if (part.of < CST_DATA_IMAGE || part.of > CST_DATA_INPUT)
        return true; /* of a newer version: left out */
    if (replay->n_parts == r->parts_room) {
        size_t room = r->parts_room ? 2 * r->parts_room : 64;
        struct cst_part *parts = realloc(replay->parts, room * sizeof *parts);
        if (!parts)
            return no_memory(r);
        replay->parts = parts;
        r->parts_room = room;
    }
    replay->parts[replay->n_parts++] = part;
    return true;
}

static bool read_block(struct reading *r, const struct cst_block *block, const char *payload,
                       uint64_t where) {
    if (block->flags & ~(uint32_t)CST_BLOCK_ZSTD)
        return fail(r,
                    "the block at byte %" PRIu64 " is packed in a way that this version of "
                    "cusplice does not know: read it with a newer one",
                    where);
    if (block->raw > CST_BLOCK_MAX ||
        (!(block->flags & CST_BLOCK_ZSTD) && block->raw != block->bytes))
        return fail(r, "corrupt: the block at byte %" PRIu64 " has impossible lengths", where);
    if (block->type == CST_BLOCK_DATA)
        return read_data(r, block, where);
    if (XXH3_64bits_withSeed(payload, block->bytes, block->type + ((uint64_t)block->flags << 32)) !=
        block->check)
        return fail(r, "corrupt: the block at byte %" PRIu64 " does not match its checksum", where);
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
        if (!read_block(r, block, file + at + sizeof *block, at)) {
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
        if (id >= 4 * list->n + 1024)
            return fail(r, "corrupt: a %s has the number %u, though there are %zu", what, id,
                        list->n);
        if (id >= most)
            most = id + 1;
    }
    *out = calloc(most ? most : 1, sizeof **out);
    if (!*out)
        return no_memory(r);
    *n = most;
    for (size_t i = 0; i < list->n; i++)
        (*out)[id_of(list->at[i])] = list->at[i];
    return true;
}

static bool texts(struct reading *r) {
    size_t bytes = 0;
    for (size_t i = 0; i < r->strings.n; i++)
        bytes += ((const struct cst_string *)r->strings.at[i])->bytes + (size_t)1;
    char *to = keep(r->memory, bytes + 1);
    return (to && cst_texts(r->trace, (const struct cst_string *const *)r->strings.at, r->strings.n,
                            to)) ||
           no_memory(r);
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
    fits &= (stream == CST_NONE && may_lack) || known_stream(trace, stream);
    return fits || fail(r,
                        "corrupt: a record of type %u at %" PRIu64
                        " ns refers to a thread, kind or stream that is not defined",
                        record->type, record->ns);
}

static bool sort(struct reading *r, struct list *list) {
    return cst_sort((const struct cst_record ***)&list->at, list->n) || no_memory(r);
}

static bool assemble(struct reading *r) {
    struct cst_trace *trace = r->trace;
    if (!texts(r) ||
        !table(r, &r->threads, "thread", (const void ***)&trace->threads, &trace->n_threads) ||
        !table(r, &r->streams, "stream", (const void ***)&trace->streams, &trace->n_streams) ||
        !table(r, &r->kinds, "kind", (const void ***)&trace->kinds, &trace->n_kinds) ||
        !sort(r, &r->events) || !sort(r, &r->ranges) || !sort(r, &r->gpu))
        return false;
    for (size_t i = 0; i < r->gpu_streams.n; i++) {
        const struct cst_gpu_stream *of = r->gpu_streams.at[i];
        if (!known_stream(trace, of->stream))
            return fail(r, "corrupt: CUPTI's stream %u is of a stream that is not defined",
                        of->gpu_stream);
    }
    for (size_t i = 0; i < r->gpu_contexts.n; i++) {
        const struct cst_gpu_context *of = r->gpu_contexts.at[i];
        if (!known_stream(trace, of->stream))
            return fail(r, "corrupt: CUPTI's context %u is of a stream that is not defined",
                        of->context);
    }
    for (size_t i = 0; i < r->events.n; i++)
        if (!check_event(r, r->events.at[i]))
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
                return fail(r,
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

/* The whole file, mapped. A pipe or a device is not waited for. */
static bool map_file(struct reading *r) {
    struct cst_trace *trace = r->trace;
    int fd = open(trace->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat is;
    if (fd < 0 || fstat(fd, &is) != 0) {
        fail(r, "%s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    trace->owner = is.st_uid;
    trace->mode = is.st_mode;
    bool file = S_ISREG(is.st_mode);
    uint64_t bytes = file ? (uint64_t)is.st_size : 0;
    int why = 0;
    if (bytes >= sizeof(struct cst_file)) {
        void *map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        why = map == MAP_FAILED ? errno : 0;
        r->memory->map = why ? NULL : map;
        r->memory->map_bytes = bytes;
    }
    close(fd);
    if (bytes < sizeof(struct cst_file))
        return fail(r, "not a trace of cusplice: %s",
                    bytes  ? "it is too short"
                    : file ? "it is empty"
                           : "it is no regular file");
    if (why)
        return fail(r, "cannot be mapped: %s", strerror(why));
    trace->file_bytes = bytes;
    if (!trace->unpack_max)
        trace->unpack_max = UNPACK_LEAST + UNPACK_TIMES * bytes;
    return true;
}

static bool read_file(struct reading *r) {
    struct cst_trace *trace = r->trace;
    if (!map_file(r))
        return false;
    const struct cst_file *head = r->memory->map;
    if (memcmp(head->magic, CST_MAGIC, sizeof head->magic) != 0)
        return fail(r, "not a trace of cusplice (cusplice record makes them, cusplice import reads "
                       "those of nsys)");
    if (head->mark != CST_MARK)
        return fail(r, "made on a machine with another byte order");
    if (head->version > CST_VERSION)
        return fail(r, "of version %u, and this cusplice reads versions up to %d: use a newer one",
                    head->version, CST_VERSION);
    if (head->version == 0)
        return fail(r, "corrupt: of version 0");
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
    char *name = keep(memory, strlen(path) + 1);
    trace->path = name ? strcpy(name, path) : "";
    bool read = read_file(&r);
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
