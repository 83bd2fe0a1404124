/*
 * Executes an operation, and makes its line of the log.
 *
 * Work is counted, and immutable once it was submitted or put into a node: an executable graph, its
 * launches and its source share it. cusim_work_run and cusim_work_log run on workers without
 * cusim.lock; nothing here may call functions that submit work.
 */
#include "harness/sim/cusim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct cusim_work *cusim_work_new(enum cusim_work_type type, struct cusim_ctx *ctx) {
    struct cusim_work *work = calloc(1, sizeof *work);
    work->refs = 1;
    work->type = type;
    work->ctx = ctx;
    return work;
}

struct cusim_work *cusim_work_ref(struct cusim_work *work) {
    atomic_fetch_add_explicit(&work->refs, 1, memory_order_relaxed);
    return work;
}

void cusim_work_unref(struct cusim_work *work) {
    if (!work || atomic_fetch_sub_explicit(&work->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (work->type == CUSIM_WORK_KERNEL) {
        free(work->kernel.argv);
        free(work->kernel.attrs);
    } else if (work->type == CUSIM_WORK_MEMCPY) {
        free(work->memcpy.staged);
    }
    free(work);
}

static void run_memset(const struct cusim_work_memset *m) {
    for (size_t y = 0; y < m->height; y++) {
        unsigned char *row = (unsigned char *)(uintptr_t)m->dst + y * m->pitch;
        if (m->element == 1)
            memset(row, (int)(m->value & 0xff), m->width);
        else if (m->element == 2)
            for (size_t x = 0; x < m->width; x++)
                ((uint16_t *)row)[x] = (uint16_t)m->value;
        else
            for (size_t x = 0; x < m->width; x++)
                ((uint32_t *)row)[x] = m->value;
    }
}

static void run_memcpy(const struct cusim_work_memcpy *m) {
    const unsigned char *src = m->staged ? m->staged : m->src;
    for (size_t z = 0; z < m->depth; z++)
        for (size_t y = 0; y < m->height; y++)
            cusim_copy_row(m->dst + z * m->dst_slice + y * m->dst_pitch,
                           src + z * m->src_slice + y * m->src_pitch, m->width);
}

static bool value_there(const struct cusim_work *work) {
    uint64_t now, want = work->value.value;
    bool wide = work->value.bytes == 8;
    if (wide)
        now = __atomic_load_n((uint64_t *)(uintptr_t)work->value.address, __ATOMIC_ACQUIRE);
    else
        now = __atomic_load_n((uint32_t *)(uintptr_t)work->value.address, __ATOMIC_ACQUIRE);
    switch (work->value.flags & 3u) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return wide ? (int64_t)(now - want) >= 0 : (int32_t)((uint32_t)now - (uint32_t)want) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == want;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & want) != 0;
    default:
        return wide ? ~(now | want) != 0 : (uint32_t) ~(now | want) != 0;
    }
}

/* Another stream or the host writes the value. Sleeps between looks. */
static void run_wait_value(const struct cusim_work *work) {
    for (long ns = 1000; !value_there(work); ns = ns < 200000 ? ns * 2 : ns) {
        cusim_lock();
        bool stop = cusim.exiting;
        cusim_unlock();
        if (stop)
            return;
        nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
    }
}

static void run_write_value(const struct cusim_work *work) {
    if (work->value.bytes == 8)
        __atomic_store_n((uint64_t *)(uintptr_t)work->value.address, work->value.value,
                         __ATOMIC_SEQ_CST);
    else
        __atomic_store_n((uint32_t *)(uintptr_t)work->value.address, (uint32_t)work->value.value,
                         __ATOMIC_SEQ_CST);
}

CUresult cusim_work_run(const struct cusim_work *work, struct cusim_stream *stream,
                        CUresult state) {
    uint64_t began = cusim_activity_begin();
    if (work->type == CUSIM_WORK_CALLBACK) /* gets the error, and is never skipped */
        work->host.callback(work->host.stream, state, work->host.data);
    if (state != CUDA_SUCCESS)
        return CUDA_SUCCESS;
    switch (work->type) {
    case CUSIM_WORK_KERNEL: {
        const struct cusim_work_kernel *k = &work->kernel;
        k->kernel->run(k->grid, k->block, k->smem, k->argv);
        if (strncmp(k->kernel->name, "cus_trap", 8) == 0)
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        if (cusim_take_trap && cusim_take_trap())
            return CUDA_ERROR_LAUNCH_FAILED;
        CUresult fault = cusim_fault_kernel();
        if (fault != CUDA_SUCCESS)
            return fault;
        break;
    }
    case CUSIM_WORK_MEMSET:
        run_memset(&work->memset);
        break;
    case CUSIM_WORK_MEMCPY:
        run_memcpy(&work->memcpy);
        break;
    case CUSIM_WORK_HOST:
        work->host.fn(work->host.data);
        break;
    case CUSIM_WORK_WAIT_VALUE:
        run_wait_value(work);
        break;
    case CUSIM_WORK_WRITE_VALUE:
        run_write_value(work);
        break;
    default:
        break;
    }
    cusim_activity_end(work, stream, began);
    return CUDA_SUCCESS;
}

/* ---- the log ---- */

/* Addresses of the simulator's memory are the same in every run; those of other memory are not. */
static const char *address_text(uintptr_t address, char text[32]) {
    if (!cusim_mem_in_arena(address))
        return "host";
    snprintf(text, 32, "0x%" PRIxPTR, address);
    return text;
}

static void log_kernel(const struct cusim_work_kernel *k, uint64_t raw) {
    static const char digits[] = "0123456789abcdef";
    const struct cusim_kernel *kernel = k->kernel;
    size_t room = strlen(kernel->name) + 2 * (size_t)k->blob_bytes + 320, n;
    char *line = malloc(room);
    n = (size_t)snprintf(line, room, "S%" PRIu64 " kernel %s %u,%u,%u %u,%u,%u %u ", raw,
                         kernel->name, k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1],
                         k->block[2], k->smem);
    for (unsigned i = 0; i < kernel->n_params; i++)
        for (unsigned b = 0; b < kernel->size[i]; b++) {
            unsigned char byte = ((const unsigned char *)k->argv[i])[b];
            line[n++] = digits[byte >> 4];
            line[n++] = digits[byte & 15];
        }
    if (kernel->n_params == 0)
        line[n++] = '-';
    if (k->cooperative)
        n += (size_t)snprintf(line + n, room - n, " cooperative");
    for (unsigned i = 0; i < k->n_attrs; i++) {
        const CUlaunchAttribute *a = &k->attrs[i];
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            n += (size_t)snprintf(line + n, room - n, " cluster=%u,%u,%u", a->value.clusterDim.x,
                                  a->value.clusterDim.y, a->value.clusterDim.z);
        else if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
                 a->value.programmaticStreamSerializationAllowed)
            n += (size_t)snprintf(line + n, room - n, " pdl");
    }
    line[n++] = '\n';
    cusim_log_text(line, n);
    free(line);
}

void cusim_work_log(const struct cusim_work *work, uint64_t raw) {
    char dst[32], src[32];
    switch (work->type) {
    case CUSIM_WORK_KERNEL:
        log_kernel(&work->kernel, raw);
        break;
    case CUSIM_WORK_MEMSET: {
        const struct cusim_work_memset *m = &work->memset;
        if (m->height <= 1)
            cusim_log_line("S%" PRIu64 " memset %s %zu 0x%x %u\n", raw, address_text(m->dst, dst),
                           m->width * m->element, m->value, m->element);
        else
            cusim_log_line("S%" PRIu64 " memset2d %s %zu 0x%x %u %zu %zu\n", raw,
                           address_text(m->dst, dst), m->pitch, m->value, m->element, m->width,
                           m->height);
        break;
    }
    case CUSIM_WORK_MEMCPY: {
        const struct cusim_work_memcpy *m = &work->memcpy;
        const char *d = address_text((uintptr_t)m->dst, dst);
        const char *s = address_text((uintptr_t)m->src, src);
        uint32_t value = 0;
        bool small = m->staged && m->height == 1 && m->depth == 1 &&
                     (m->width == 1 || m->width == 2 || m->width == 4);
        if (small) {
            memcpy(&value, m->staged, m->width);
            cusim_log_line("S%" PRIu64 " memcpy %s %s %s %zu 0x%x\n", raw, m->kind, d, s, m->width,
                           value);
        } else if (m->height == 1 && m->depth == 1)
            cusim_log_line("S%" PRIu64 " memcpy %s %s %s %zu\n", raw, m->kind, d, s, m->width);
        else
            cusim_log_line("S%" PRIu64 " memcpy2d %s %s %zu %s %zu %zu %zu %zu\n", raw, m->kind, d,
                           m->dst_pitch, s, m->src_pitch, m->width, m->height, m->depth);
        break;
    }
    case CUSIM_WORK_RECORD:
        cusim_log_line("S%" PRIu64 " record E%" PRIu64 "\n", raw, work->event.id);
        break;
    case CUSIM_WORK_WAIT:
        cusim_log_line("S%" PRIu64 " wait E%" PRIu64 "\n", raw, work->event.id);
        break;
    case CUSIM_WORK_HOST:
    case CUSIM_WORK_CALLBACK:
        cusim_log_line("S%" PRIu64 " hostfn\n", raw);
        break;
    case CUSIM_WORK_WAIT_VALUE:
    case CUSIM_WORK_WRITE_VALUE:
        cusim_log_line("S%" PRIu64 " %s %s %u 0x%" PRIx64 " %u\n", raw,
                       work->type == CUSIM_WORK_WAIT_VALUE ? "waitvalue" : "writevalue",
                       address_text(work->value.address, dst), work->value.bytes, work->value.value,
                       work->value.flags);
        break;
    case CUSIM_WORK_ALLOC:
    case CUSIM_WORK_FREE:
        cusim_log_line("S%" PRIu64 " %s %s %zu\n", raw,
                       work->type == CUSIM_WORK_ALLOC ? "alloc" : "free",
                       address_text(work->alloc.address, dst), work->alloc.bytes);
        break;
    default:
        break;
    }
}
