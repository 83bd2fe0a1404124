/*
 * Makes GPU records and the numbers of their streams. import.c calls it for each op. It never
 * writes a record whose length is unknown.
 */
#include "tools/trace/import_gpu.h"

#include <string.h>

void import_gpu_stream(struct cst_sink *sink, uint32_t id, const struct import_stream *stream) {
    struct cst_gpu_stream *number = cst_sink_add(sink, CST_GPU_STREAM, sizeof *number);
    number->stream = id;
    number->gpu_stream = stream->stream;
    struct cst_gpu_context *context = cst_sink_add(sink, CST_GPU_CONTEXT, sizeof *context);
    context->stream = id;
    context->context = stream->context;
}

void import_gpu(struct cst_sink *sink, const struct import_op *op, uint64_t ns, uint32_t thread,
                uint32_t name) {
    static const uint8_t what[] = {[CST_OP_LAUNCH] = CST_GPU_KERNEL,
                                   [CST_OP_MEMSET] = CST_GPU_MEMSET,
                                   [CST_OP_COPY] = CST_GPU_MEMCPY};
    if (op->end <= op->start || op->type == CST_OP_RECORD || op->type == CST_OP_WAIT)
        return;
    struct cst_gpu *record = cst_sink_add(sink, CST_GPU, sizeof *record);
    record->head.thread = thread;
    record->head.flags = what[op->type];
    record->head.ns = ns;
    record->gpu_ns = (uint64_t)(op->end - op->start);
    record->device = op->device;
    record->context = op->context;
    record->gpu_stream = op->stream;
    record->correlation = op->correlation < 0 ? 0 : (uint32_t)op->correlation;
    record->name = name;
    if (op->type == CST_OP_LAUNCH)
        memcpy(record->grid, op->dims, sizeof record->grid);
    record->bytes = op->bytes;
    record->node = op->in_graph;
}
