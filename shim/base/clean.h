/*
 * Cleans text from outside (names of kernels and files, settings, rows of a file) before it is
 * shown. Replaces what a terminal would obey, and what a reader could take for another line.
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

/* The length (1 to 4 bytes) of the character at `at`, and the character in *code. `left` is how
 * many bytes are there. 0, with *code unchanged: no well-formed UTF-8 (RFC 3629). */
size_t cus_utf8(const char *at, size_t left, uint32_t *code);
/* True: the character may be shown. It is no control character (C0, DEL, C1), changes no
 * direction of writing, ends no line, has a width, and exists in Unicode. */
bool cus_is_shown(uint32_t code);
/* The length of the character at `at` if it may be shown; else 0. */
size_t cus_shown(const char *at, size_t left);

/* Replaces each byte that may not be shown by '?', and each line end by a blank. Returns
 * `bytes`. */
size_t cus_clean(char *text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
