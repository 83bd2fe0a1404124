/*
 * What the library's threads leave for the trace: each thread a ring of its own, which a writer
 * thread empties into the file. No thread of the program ever waits: what finds no room is lost and
 * counted. Definitions (kinds, streams, strings) are never lost, or recording ends.
 *
 * Records of one thread may nest: what is begun and not ended yet keeps back what comes behind it.
 * All functions may be called by any thread, with any lock held but the innermost ones; none
 * touches the driver or errno's meaning for the caller (hooks put errno back).
 */
#ifndef CUSPLICE_TRACE_RECORD_H
#define CUSPLICE_TRACE_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/trace/format.h"

extern uint32_t cus_record_on; /* atomic: records are wanted now */

static inline bool cus_recording(void) {
    return __builtin_expect(__atomic_load_n(&cus_record_on, __ATOMIC_RELAXED) != 0, 0);
}

/* Makes the file and starts the writer. `facts` is a JSON object. Of the steps that the program
 * ends, those from `from` on are recorded, counted from 0 over all streams, up to `until`, which is
 * not; 0: all. False, having said why: nothing is recorded. */
bool cus_record_start(const char *path, const char *facts, uint64_t from, uint64_t until);
/* Writes what is there and closes the file. At exit; other threads may still record, in vain. */
void cus_record_end(void);
/* In a forked child, which records nothing. */
void cus_record_child(void);
/* Was that moment recorded? For what is heard of later. */
bool cus_record_covers(uint64_t ns);
/* A stream was given its number (as of cus_record_number); called by the thread that defines it. */
extern void (*cus_record_on_stream)(uint32_t number, void *context, void *handle, bool per_thread);
/* A step ended. */
void cus_record_step(void);
/* For who has something to do where recording begins and ends with a step: these wait for
 * cus_record_turn from now on, and cus_record_due says what is waited for. */
enum cus_record_due { CUS_RECORD_NOTHING, CUS_RECORD_BEGIN, CUS_RECORD_END };
void cus_record_hold(void);
enum cus_record_due cus_record_due(void);
void cus_record_turn(void);
/* An op that is told was answered so; the library has spent so long on a call that is none. NULL:
 * nobody asks. */
struct cus_call;
extern void (*cus_record_on_op)(const struct cus_call *call, int result);
extern void (*cus_record_on_spent)(uint64_t ns);

/* Room for a record of this type, zeroed but for its head, which is complete but for the flags;
 * NULL where there is none. cus_record_commit ends it. */
void *cus_record_begin(enum cst_type type, size_t bytes, uint64_t ns);
void cus_record_commit(void);
/* Writes down a definition, a whole record but for its thread and, where that is 0, its time. */
void cus_record_define(struct cst_record *definition);
/* Writes down part of something larger (CST_BLOCK_DATA). Copied; waits while much is not on disk
 * yet. */
void cus_record_data(enum cst_data_of of, uint32_t id, uint64_t offset, const void *at,
                     uint64_t bytes);
/* The id of a string, which is defined at its first use; 0 for "" and without memory. */
uint32_t cus_record_string(const char *text);
/* Nothing more is recorded, for a reason that is said. */
void cus_record_give_up(const char *why);
/* The calling thread's id; 0 without memory. */
uint32_t cus_record_thread(void);
/* A number that no other definition has: of streams (0), kinds (1). From 1 on. */
uint32_t cus_record_number(unsigned of);

#endif
