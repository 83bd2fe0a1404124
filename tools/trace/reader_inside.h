/* What the files of the reader share. No other file includes it. */
#ifndef CUSPLICE_TOOLS_TRACE_READER_INSIDE_H
#define CUSPLICE_TOOLS_TRACE_READER_INSIDE_H

#include "tools/trace/reader.h"

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
