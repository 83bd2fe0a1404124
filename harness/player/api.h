/*
 * The driver's functions, found at run time. The player is linked to no driver, and builds without
 * one.
 */
#ifndef CUSPLICE_PLAYER_API_H
#define CUSPLICE_PLAYER_API_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

struct player_api {
#define PLAYER_API(name, version) __typeof__(name) *name;
#define PLAYER_NEWER(name, version) __typeof__(name) *name; /* may be NULL */
#include "harness/player/api.def"
#undef PLAYER_API
#undef PLAYER_NEWER
};

extern struct player_api player_cu;

/* Returns false with a sentence in `error` if there is no driver, or if it is too old. */
bool player_api_fill(char *error, size_t bytes);
/* "CUDA_ERROR_..." */
const char *player_api_error(CUresult result);

#endif
