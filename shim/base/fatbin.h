/*
 * nvcc's fat binary: images of code for several GPUs behind one head, and the wrapper that points
 * to it. The wrapper is __fatBinC_Wrapper_t of the toolkit's fatbinary_section.h.
 */
#ifndef CUSPLICE_BASE_FATBIN_H
#define CUSPLICE_BASE_FATBIN_H

#include <stdint.h>

#define CUS_FATBIN_WRAPPER_MAGIC 0x466243b1u
#define CUS_FATBIN_MAGIC 0xba55ed50u

struct cus_fatbin_wrapper {
    uint32_t magic, version;
    const void *data; /* the fat binary */
    void *file;
};

struct cus_fatbin {
    uint32_t magic;
    uint16_t version, head_bytes;
    uint64_t bytes; /* after the head */
};

#endif
