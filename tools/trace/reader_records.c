/*
 * Is a record what its type says? reader.c and reader_salvage.c ask before they believe one. It
 * looks at one record alone: what it refers to is checked when all of the file has been read.
 */
#include "tools/trace/reader_inside.h"

static size_t least_bytes(uint8_t type) {
    static const size_t least[] = {
        [CST_STRING] = sizeof(struct cst_string),
        [CST_THREAD] = sizeof(struct cst_thread),
        [CST_STREAM] = sizeof(struct cst_stream),
        [CST_KIND] = sizeof(struct cst_kind),
        [CST_RANGE] = sizeof(struct cst_range),
        [CST_OP] = sizeof(struct cst_op),
        [CST_CALL] = sizeof(struct cst_call),
        [CST_FLUSH] = sizeof(struct cst_flush),
        [CST_LAUNCH] = sizeof(struct cst_launch),
        [CST_SEGMENT] = sizeof(struct cst_segment),
        [CST_LOST] = sizeof(struct cst_lost),
        [CST_BRANCH] = sizeof(struct cst_branch),
        [CST_GPU] = sizeof(struct cst_gpu),
        [CST_GPU_STREAM] = sizeof(struct cst_gpu_stream),
        [CST_GPU_CONTEXT] = sizeof(struct cst_gpu_context),
        [CST_MODULE] = sizeof(struct cst_module),
        [CST_CODE] = sizeof(struct cst_code),
        [CST_SPAN] = sizeof(struct cst_span),
        [CST_LANE] = sizeof(struct cst_lane),
        [CST_WORK] = sizeof(struct cst_work),
        [CST_CHECK] = sizeof(struct cst_check),
        [CST_OBSTACLE] = sizeof(struct cst_obstacle),
    };
    size_t bytes = type < sizeof least / sizeof *least ? least[type] : 0;
    return bytes ? bytes : sizeof(struct cst_record);
}

static bool sound_definition(const struct cst_record *record, size_t bytes) {
    if (record->type == CST_STRING)
        return ((const struct cst_string *)record)->bytes <= bytes - sizeof(struct cst_string);
    if (record->type == CST_KIND) {
        const struct cst_kind *kind = (const struct cst_kind *)record;
        uint64_t need = sizeof *kind + (uint64_t)kind->n_arguments * sizeof(struct cst_argument) +
                        (uint64_t)kind->n_attributes * sizeof(struct cst_attribute);
        if (need > bytes || kind->op >= CST_OP_TYPES || kind->param_bytes > 65536 ||
            !cst_arguments_sound(cst_kind_arguments(kind), kind->n_arguments, kind->param_bytes))
            return false;
    }
    return cst_replay_sound(record, bytes);
}

bool cst_record_sound(const struct cst_record *record, size_t left, size_t *length) {
    *length = left >= sizeof *record ? (size_t)record->words * 8 : 0;
    return *length >= sizeof *record && *length <= left && *length >= least_bytes(record->type) &&
           sound_definition(record, *length);
}
