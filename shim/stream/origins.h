/*
 * Which file code is from (origins.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_ORIGINS_H
#define CUSPLICE_STREAM_ORIGINS_H

#include "shim/stream/state.h"

enum { CUS_FILE_NAME = 256 }; /* longest file name without folders, with its final NUL */

/* Notes that code was loaded from this file (NULL: from none) with this hash (0: none), or that
 * `made` was made from `from`. False: no memory for the note. */
bool cus_origins_loaded(const void *code, const char *file, uint64_t hash);
bool cus_origins_made(const void *made, const void *from);
void cus_origins_gone(const void *code);
/* Forgets all of them. For cus_engine_end. */
void cus_origins_drop(void);
/* Writes the name of the file that this function or kernel is from. NULL: none is known. */
const char *cus_origins_file(const void *handle, char name[CUS_FILE_NAME]);

/* A hash of the code that the function or kernel is from, equal in every process; 0: not known. */
uint64_t cus_origins_code(const void *handle);

#endif
