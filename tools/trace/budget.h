/*
 * How much memory and processor time a verb may use to read a stranger's file, by the file's
 * length. The readers have bounds of their own; this one is for what they overlook. The verbs set
 * it, once a process, on one thread. It never bounds the library.
 */
#ifndef CUSPLICE_TOOLS_TRACE_BUDGET_H
#define CUSPLICE_TOOLS_TRACE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/trace/reader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The options --max-memory and --max-seconds; 0: no bound. Before anything is read. Without them
 * 256 MiB and 16 times what is read (a trace unpacked), 30 s and 1 s for each MiB of it. */
void budget_memory(uint64_t mib);
void budget_seconds(uint64_t seconds);
/* As they were given, for a process that reads the same; false: it was not. */
bool budget_memory_given(uint64_t *mib);

/* This process is a command of its own, which may be bound. Where it is not called (in tests, say)
 * the functions below bind nothing. */
void budget_begin(void);

/* A file of so many bytes is read; more than one add up. Bounds the process from now on: memory
 * runs out earlier, and where time does, or the file is cut short while it is mapped, the process
 * says so, removes what budget_partial named and exits with 1. */
void budget_read(uint64_t bytes);
/* So much more memory is needed, whatever the files' lengths. */
void budget_more(uint64_t bytes);
/* The process is bound no more: its children are not to be. */
void budget_lift(void);

/* A trace, within the budget. As cst_open. */
struct cst_trace *budget_open(const char *path, char *error, size_t bytes);

/* The same for verbs that read the trace once: pipes too, up to --max-memory MIB or 256 MiB. Where
 * it is damaged, the sentence names cusplice repair; `salvage`: what can be read of it is read. */
struct cst_trace *budget_open_once(const char *path, bool salvage, char *error, size_t bytes);

/* What to add to a message that there is not enough memory; "" where that is not bound. */
const char *budget_hint(void);

/* An output that is not whole yet; budget_whole: it has got its name, or is gone. */
void budget_partial(const char *path);
void budget_whole(const char *path);

/* A file that is opened for reading and is a regular one: a pipe or a device is not waited for.
 * NULL and `errno`, EINVAL where it is none. */
FILE *budget_file(const char *path);

#ifdef __cplusplus
}
#endif

#endif
