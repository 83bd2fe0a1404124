/* Writes when the ops of a profile ran, as records of a trace. import.c calls it. */
#ifndef CUSPLICE_TOOLS_TRACE_IMPORT_GPU_H
#define CUSPLICE_TOOLS_TRACE_IMPORT_GPU_H

#include "shim/trace/file.h"
#include "tools/trace/import.h"

/* The numbers by which the profile knows stream `id`. */
void import_gpu_stream(struct cst_sink *sink, uint32_t id, const struct import_stream *stream);
/* `ns`: when it began; `name`: string of a kernel, else 0. Nothing where its length is not known.
 */
void import_gpu(struct cst_sink *sink, const struct import_op *op, uint64_t ns, uint32_t thread,
                uint32_t name);

#endif
