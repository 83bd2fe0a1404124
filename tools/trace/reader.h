/*
 * Reads a whole trace file: definitions by id, events in the order of time. Tools, the player and
 * tests call it; the library does not contain it. A damaged file is refused, with place and
 * reason. A torn tail (a killed program) is no damage.
 */
#ifndef CUSPLICE_TOOLS_TRACE_READER_H
#define CUSPLICE_TOOLS_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/trace/format.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A block of CST_BLOCK_DATA: where it is, not what is in it (cst_data_load). */
struct cst_part {
    uint32_t of; /* enum cst_data_of */
    uint32_t id;
    uint64_t offset, bytes;        /* of what it is a part of */
    const struct cst_block *block; /* private */
};

/* What a replayable trace has beyond the others. */
struct cst_replay {
    /* By id; NULL where there is none of that id. Dense as below. */
    const struct cst_module **modules;
    const struct cst_code **codes;
    const struct cst_lane **lanes;
    uint32_t n_modules, n_codes, n_lanes; /* length of the tables */
    /* First by time, then as they stand in the file. */
    const struct cst_span **spans;
    const struct cst_work **works;
    const struct cst_check **checks;
    const struct cst_obstacle **obstacles;
    size_t n_spans, n_works, n_checks, n_obstacles;
    struct cst_part *parts; /* by what they are of, by id, by offset */
    size_t n_parts;
};

/* What a file lacks that was read by cst_bounds.salvage. */
struct cst_damage {
    uint64_t places, bytes; /* of the file, that do not match their checksums, or are no blocks */
    uint64_t records, ops;  /* left out, as far as they can be told: at least these */
    uint64_t unchecked;     /* records that stood there and were taken: definitions */
    bool head;              /* the file's first bytes are not those of a trace */
};

struct cst_trace {
    const char *path;
    uint32_t version;
    const char *facts; /* JSON object; "{}" where there is none */
    bool closed;       /* the recording ended in good order */
    uint64_t torn;     /* bytes at the end that are no whole block, left out */

    /* By id; NULL where there is none of that id. Ids of a trace are dense: below 4 n + 1024. */
    const struct cst_thread **threads;
    const struct cst_stream **streams;
    const struct cst_kind **kinds;
    uint32_t n_threads, n_streams, n_kinds; /* length of the tables, not the number of entries */

    /* Everything but definitions: first by time, what has one time as it stands in the file. What a
     * call set off (FLUSH, LAUNCH) stands behind it. */
    const struct cst_record **events;
    size_t n_events;
    const struct cst_range **ranges; /* in the order of time */
    size_t n_ranges;
    const struct cst_gpu **gpu; /* in the order in which it began */
    size_t n_gpu;
    const struct cst_gpu_stream **gpu_streams; /* in no order */
    size_t n_gpu_streams;
    const struct cst_gpu_context **gpu_contexts; /* in no order */
    size_t n_gpu_contexts;
    struct cst_replay replay; /* all empty in a trace that is not replayable */
    uint64_t ops, lost_records, lost_ops;
    uint64_t begin_ns, end_ns; /* of the first and last event; 0 where there is none */
    uint32_t owner, mode;      /* of the file that was read: user, and bits as stat(2) has them */
    uint64_t file_bytes;       /* length of the file */
    uint64_t raw_bytes;        /* facts and records, unpacked */
    uint64_t unpack_max;       /* bound of what packed data blocks hold together (cst_data_fits) */
    const char *raise;         /* what raises that bound, for messages */
    struct cst_damage damage;  /* all 0: nothing, or it was not asked for */
    struct cst_text *texts;    /* private */
    uint32_t n_texts;
    void *memory; /* private */
};

/* What a file may make of the reader. */
struct cst_bounds {
    /* Bytes that packed blocks may unpack to: those of facts and records in all, those of data
     * likewise. 0: 64 MiB and 100 times the length of the file. */
    uint64_t unpack_max;
    const char *raise;  /* what the user does to raise it, as a message ends; NULL: nothing */
    uint64_t pipe_most; /* a pipe is read up to so many bytes; 0: it is refused */
    /* What is damaged is left out, and counted in cst_trace.damage; in its place stands a cst_lost.
     * A file that lacks something has no replay. */
    bool salvage;
};

/* Returns NULL and a sentence in `error` (path, where, what is wrong, what to do) where the file
 * cannot be read. Every id in a record of the result refers to something that is there (or is 0 or
 * CST_NONE where format.h allows that), and every record is as long as its type says. Time and
 * memory grow with the length of the file and with what its packed blocks unpack to, which
 * `bounds` (NULL: the default) bounds. */
struct cst_trace *cst_open_within(const char *path, const struct cst_bounds *bounds, char *error,
                                  size_t bytes);
struct cst_trace *cst_open(const char *path, char *error, size_t bytes);
void cst_free(struct cst_trace *trace);

/* Why nothing that is in it may be run without asking: somebody but this user and root can have
 * written it. NULL: nobody can. */
const char *cst_distrust(const struct cst_trace *trace);

/* The string of that id; "" for 0 and for ids that are not defined. */
const char *cst_string(const struct cst_trace *trace, uint32_t id);
/* A number below n_texts for each id that is defined, n_texts for all others. So what is made of a
 * text is made once, however many records name it. */
uint32_t cst_text_number(const struct cst_trace *trace, uint32_t id);

/* Unpacks what is in a part, part->bytes, to `to`. False and a sentence in `error` where the file
 * does not hold what it says: it is looked at here first. */
bool cst_data_load(const struct cst_trace *trace, const struct cst_part *part, void *to,
                   char *error, size_t bytes);
/* Would cst_data_load find what the part says? Needs no memory for it. */
bool cst_data_sound(const struct cst_trace *trace, const struct cst_part *part, char *error,
                    size_t bytes);
/* Do packed data blocks hold no more than the trace's bound, together? False with a sentence. */
bool cst_data_fits(const struct cst_trace *trace, char *error, size_t bytes);
/* The parts of one thing: the first, and how many. NULL in a trace without parts. */
const struct cst_part *cst_data_of(const struct cst_trace *trace, enum cst_data_of of, uint32_t id,
                                   size_t *n);

/* Is all of what was recorded for a replay there? Tells a sentence (without the path) for each
 * thing that is not; true: none. The parts of one module or input follow each other without gaps,
 * those of memory do not overlap. `contents`: checksums too, and what packed blocks unpack to,
 * which reads the whole file. Needs no driver. */
typedef void cst_tell(void *context, const char *sentence);
bool cst_replay_whole(const struct cst_trace *trace, bool contents, cst_tell *tell, void *context);

static inline const uint8_t *cst_op_params(const struct cst_op *op) {
    return (const uint8_t *)(op + 1);
}
static inline const struct cst_argument *cst_kind_arguments(const struct cst_kind *kind) {
    return (const struct cst_argument *)(const void *)(kind + 1);
}
static inline const struct cst_attribute *cst_kind_attributes(const struct cst_kind *kind) {
    return (const struct cst_attribute *)(const void *)(cst_kind_arguments(kind) +
                                                        kind->n_arguments);
}
static inline const struct cst_argument *cst_code_arguments(const struct cst_code *code) {
    return (const struct cst_argument *)(const void *)(code + 1);
}
static inline const struct cst_setting *cst_code_settings(const struct cst_code *code) {
    return (const struct cst_setting *)(const void *)(cst_code_arguments(code) + code->n_arguments);
}
static inline const struct cst_attribute *cst_work_attributes(const struct cst_work *work) {
    return (const struct cst_attribute *)(const void *)(work + 1);
}
static inline const uint8_t *cst_work_params(const struct cst_work *work) {
    return (const uint8_t *)(cst_work_attributes(work) + work->n_attributes);
}

#ifdef __cplusplus
}
#endif

#endif
