/*
 * A stream whose text stays in memory. Unlike open_memstream it tells where memory ran out: there
 * fclose says nothing, and the text is cut.
 */
#ifndef CUSPLICE_TOOLS_TRACE_TEXT_FILE_H
#define CUSPLICE_TOOLS_TRACE_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* *text and *bytes are valid once the stream is closed. NULL: no memory. */
FILE *text_file_open(char **text, size_t *bytes);
/* True: *text is whole, and ends with a NUL, which is not counted. The caller frees it. False: no
 * memory, and *text is NULL. */
bool text_file_close(FILE *file, char **text);

#endif
