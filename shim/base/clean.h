/*
 * Text of others (names of kernels and files, settings, rows of a file), before it is shown: what a
 * terminal would obey, or a reader could not tell from another line, is replaced.
 *
 * Pure functions of their arguments.
 */
#ifndef CUSPLICE_BASE_CLEAN_H
#define CUSPLICE_BASE_CLEAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes (1 to 4) of the character that begins at `at`, of which `left` bytes are there at most, and
 * the character itself; 0, and *code untouched: it is not well-formed UTF-8 (RFC 3629). */
size_t cus_utf8(const char *at, size_t left, uint32_t *code);
/* Neither a control character (C0, DEL, C1), nor one that turns the direction of writing, ends a
 * line or has no width, nor none at all. */
bool cus_is_shown(uint32_t code);
/* The bytes of the character that begins at `at`, if it may be shown; else 0. */
size_t cus_shown(const char *at, size_t left);

/* Each byte of what may not be shown becomes '?', but a line's end in the midst a blank. Returns
 * `bytes`. */
size_t cus_clean(char *text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
