/*
 * Finds where an image of code lies and how long it is.
 */
#ifndef CUSPLICE_KEEP_IMAGE_H
#define CUSPLICE_KEEP_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cus_keep_image {
    const uint8_t *at;
    size_t bytes;
    char path[4096]; /* of the object in whose mapping it lies; "": in none */
    char build_id[80];
    uint64_t offset; /* in that file */
};

/* `given` is what the program gave the driver to load: a fat binary, nvcc's wrapper around one,
 * a cubin or the text of PTX. False: none of these. */
bool cus_keep_image_find(const void *given, struct cus_keep_image *image);

#endif
