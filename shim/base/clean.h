/*
 * Text of others (names of kernels and files, settings, rows of a file), before it is shown: what a
 * terminal would obey, or a reader could not tell from another line, is replaced.
 *
 * Pure functions of their arguments.
 */
#ifndef CUSPLICE_BASE_CLEAN_H
#define CUSPLICE_BASE_CLEAN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes (1 to 4) of the character that begins at `at`, of which `left` bytes are there, if it is
 * well-formed UTF-8 (RFC 3629) and may be shown. 0: a control character (C0, DEL, C1), a mark that
 * turns the direction of writing, a line or paragraph separator, or not UTF-8. */
size_t cus_shown(const char *at, size_t left);

/* Each byte of what may not be shown becomes '?', but a line's end in the midst a blank. Returns
 * `bytes`. */
size_t cus_clean(char *text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
