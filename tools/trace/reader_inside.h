/* What the files of the reader share. No other file includes it. */
#ifndef CUSPLICE_TOOLS_TRACE_READER_INSIDE_H
#define CUSPLICE_TOOLS_TRACE_READER_INSIDE_H

#include "tools/trace/reader.h"

enum { REPLAY = CST_OBSTACLE - CST_MODULE + 1 };

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
    bool salvage;      /* what is damaged is left out, and counted in the trace */
    char *error;
    size_t error_bytes;
};

/* False, with a sentence that begins with the file's path. */
bool cst_fail(struct reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool cst_no_memory(struct reading *r);
/* Room that is freed with the trace; NULL: there is none. */
char *cst_keep(struct memory *memory, size_t bytes);
bool cst_push(struct reading *r, struct list *list, const void *what);
/* Where records of a type are gathered; NULL: they are left out. */
struct list *cst_list_of(struct reading *r, uint8_t type);

/* Maps all of the file. Of a pipe it reads so much as the bounds allow. */
bool cst_map_file(struct reading *r, uint64_t pipe_most);
/* Is it as long as it says, and as its type wants it? `length`: what it says. */
bool cst_record_sound(const struct cst_record *record, size_t left, size_t *length);
/* One block, and what is in it. False with a sentence. */
bool cst_read_block(struct reading *r, const struct cst_block *block, const char *payload,
                    uint64_t where);
bool cst_block_matches(const struct cst_block *block, const char *payload);
/* All blocks that can be read, of a file that may be damaged. False: memory ran out, or a bound
 * was met. */
bool cst_salvage(struct reading *r, const char *file, uint64_t bytes);
/* Is there a sound block behind the head of the file, whatever that says? */
bool cst_salvage_begins(const char *file, uint64_t bytes);
/* A cst_lost in front of all other events has no thread and no time: it gets the next one's. */
bool cst_place_lost(struct reading *r);
/* Behind all events stands how many were left out, so that a trace that is written of them says so,
 * too. Nothing where no event is left. */
bool cst_tell_lost(struct reading *r, uint64_t records, uint64_t ops);

struct cst_text {
    uint32_t id, bytes;
    const char *text; /* ends with a NUL */
};

/* Fills in the texts of the trace; `to`: room for all of them, each with a NUL. False without
 * memory. */
bool cst_texts(struct cst_trace *trace, const struct cst_string *const *strings, size_t n,
               char *to);

/* Sorts by time; false without memory. The array may be another one afterwards. */
bool cst_sort(const struct cst_record ***list, size_t n);

/* Do the arguments lie within the params, together no longer than those? Else each launch would
 * be looked at for n times its length. */
bool cst_arguments_sound(const struct cst_argument *arguments, uint32_t n, uint32_t param_bytes);
/* Is what a record says of its own length true? Any record. */
bool cst_replay_sound(const struct cst_record *record, size_t bytes);
/* Does all that the record refers to exist? The tables of the trace are there. */
bool cst_replay_fits(const struct cst_trace *trace, const struct cst_record *record);

/* Says that `what` unpacks to more than the trace's bound; false. */
bool cst_too_much(const struct cst_trace *trace, const char *what, char *error, size_t bytes);

/* What a data block is, of which nothing is checked but its lengths. False: it makes no sense. */
bool cst_data_head(const struct cst_block *block, struct cst_part *part);
void cst_data_sort(struct cst_replay *replay);

#endif
