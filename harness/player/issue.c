/*
 * Issues one pass over the ops: waits until an op is due, then calls the driver, and does nothing
 * else. One thread issues the ops of all recorded threads; each recorded thread keeps its own pace.
 */
#include <time.h>

#include "harness/player/player.h"

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

#define DIMS(dims) dims[0], dims[1], dims[2], dims[3], dims[4], dims[5], dims[6]

static CUresult set_flat(const struct player_op *op) {
    CUdeviceptr to = op->memset.to;
    size_t n = op->memset.width;
    uint32_t value = op->memset.value;
    if (op->sync)
        return op->memset.elem == 4   ? player_cu.cuMemsetD32(to, value, n)
               : op->memset.elem == 2 ? player_cu.cuMemsetD16(to, (unsigned short)value, n)
                                      : player_cu.cuMemsetD8(to, (unsigned char)value, n);
    return op->memset.elem == 4 ? player_cu.cuMemsetD32Async(to, value, n, op->stream)
           : op->memset.elem == 2
               ? player_cu.cuMemsetD16Async(to, (unsigned short)value, n, op->stream)
               : player_cu.cuMemsetD8Async(to, (unsigned char)value, n, op->stream);
}

static CUresult set(const struct player_op *op) {
    CUdeviceptr to = op->memset.to;
    size_t pitch = op->memset.pitch, width = op->memset.width, height = op->memset.height;
    uint32_t value = op->memset.value;
    if (height <= 1)
        return set_flat(op);
    switch (op->memset.elem) {
    case 4:
        return op->sync ? player_cu.cuMemsetD2D32(to, pitch, value, width, height)
                        : player_cu.cuMemsetD2D32Async(to, pitch, value, width, height, op->stream);
    case 2:
        return op->sync ? player_cu.cuMemsetD2D16(to, pitch, (unsigned short)value, width, height)
                        : player_cu.cuMemsetD2D16Async(to, pitch, (unsigned short)value, width,
                                                       height, op->stream);
    default:
        return op->sync ? player_cu.cuMemsetD2D8(to, pitch, (unsigned char)value, width, height)
                        : player_cu.cuMemsetD2D8Async(to, pitch, (unsigned char)value, width,
                                                      height, op->stream);
    }
}

static CUresult issue(const struct player_op *op) {
    switch (op->what) {
    case PLAYER_LAUNCH:
        return player_cu.cuLaunchKernel(op->launch.function, DIMS(op->work->dims), op->stream,
                                        op->launch.params, NULL);
    case PLAYER_LAUNCH_EX:
        return player_cu.cuLaunchKernelEx(op->launch.config, op->launch.function, op->launch.params,
                                          NULL);
    case PLAYER_LAUNCH_COOPERATIVE:
        return player_cu.cuLaunchCooperativeKernel(op->launch.function, DIMS(op->work->dims),
                                                   op->stream, op->launch.params);
    case PLAYER_MEMSET:
        return set(op);
    case PLAYER_UPLOAD:
        return op->sync ? player_cu.cuMemcpyHtoD(op->copy.to, op->copy.host, op->copy.bytes)
                        : player_cu.cuMemcpyHtoDAsync(op->copy.to, op->copy.host, op->copy.bytes,
                                                      op->stream);
    case PLAYER_DOWNLOAD:
        return op->sync ? player_cu.cuMemcpyDtoH(op->copy.host, op->copy.from, op->copy.bytes)
                        : player_cu.cuMemcpyDtoHAsync(op->copy.host, op->copy.from, op->copy.bytes,
                                                      op->stream);
    case PLAYER_MOVE:
        return op->sync ? player_cu.cuMemcpyDtoD(op->copy.to, op->copy.from, op->copy.bytes)
                        : player_cu.cuMemcpyDtoDAsync(op->copy.to, op->copy.from, op->copy.bytes,
                                                      op->stream);
    case PLAYER_SET:
        return player_set(op->player, op->work->code);
    case PLAYER_RECORD:
        return player_cu.cuEventRecord(op->event, op->stream);
    case PLAYER_WAIT:
        return player_cu.cuStreamWaitEvent(op->stream, op->event, 0);
    case PLAYER_SYNC_STREAM:
        return player_cu.cuStreamSynchronize(op->stream);
    case PLAYER_SYNC_EVENT:
        return player_cu.cuEventSynchronize(op->event);
    case PLAYER_SYNC_ALL:
        return player_cu.cuCtxSynchronize();
    }
    return CUDA_ERROR_UNKNOWN;
}

static _Noreturn void refuse(const struct player *p, size_t i, CUresult result) {
    static const char *const names[] = {
        [PLAYER_LAUNCH] = "kernel",
        [PLAYER_LAUNCH_EX] = "kernel",
        [PLAYER_LAUNCH_COOPERATIVE] = "kernel",
        [PLAYER_MEMSET] = "memset",
        [PLAYER_UPLOAD] = "copy from the host",
        [PLAYER_DOWNLOAD] = "copy to the host",
        [PLAYER_MOVE] = "copy",
        [PLAYER_SET] = "settings of kernel",
        [PLAYER_RECORD] = "record of an event",
        [PLAYER_WAIT] = "wait for an event",
        [PLAYER_SYNC_STREAM] = "wait of the host",
        [PLAYER_SYNC_EVENT] = "wait of the host",
        [PLAYER_SYNC_ALL] = "wait of the host",
    };
    const struct player_op *op = &p->ops[i];
    bool launch = op->what <= PLAYER_LAUNCH_COOPERATIVE || op->what == PLAYER_SET;
    player_fail("op %zu of %zu (%s%s%s): %s", i, p->n_ops, names[op->what], launch ? " " : "",
                launch ? cst_string(p->trace, p->trace->replay.codes[op->work->code]->name) : "",
                player_api_error(result));
}

static void issue_all(struct player *p, uint64_t begin) {
    struct player_step *step = p->steps;
    for (size_t i = 0; i < p->n_ops; i++) {
        CUresult result = issue(&p->ops[i]);
        if (__builtin_expect(result != CUDA_SUCCESS, 0))
            refuse(p, i, result);
        if (p->ops[i].last) {
            uint64_t end = now();
            step++->ns = end - begin;
            begin = end;
        }
    }
}

/* The time of one reading of the clock. */
static uint64_t look_ns(void) {
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 64; i++) {
        uint64_t before = now(), ns = now() - before;
        least = ns < least ? ns : least;
    }
    return least;
}

static void wait_until_due(struct player_clock *clock, uint64_t gap_ns, uint64_t look) {
    uint64_t due = player_clock_due(clock, gap_ns, look), at;
    while ((at = now()) < due)
        ;
    player_clock_made(clock, gap_ns, look, at);
}

static void issue_paced(struct player *p, uint64_t begin) {
    struct player_step *step = p->steps;
    uint64_t look = look_ns();
    for (size_t i = 0; i < p->n_ops; i++) {
        const struct player_op *op = &p->ops[i];
        struct player_clock *clock = &p->clocks[op->thread];
        bool own = op->what == PLAYER_SET; /* the program did it in the time before its call */
        if (!op->first && !own)
            wait_until_due(clock, op->gap_ns, look);
        CUresult result = issue(op);
        if (!own)
            clock->ended = now();
        if (__builtin_expect(result != CUDA_SUCCESS, 0))
            refuse(p, i, result);
        if (op->last) {
            step++->ns = clock->ended - begin;
            begin = clock->ended;
        }
    }
}

uint64_t player_pass(struct player *p) {
    uint64_t begin = now();
    if (p->pace != PLAYER_UNPACED)
        issue_paced(p, begin);
    else
        issue_all(p, begin);
    CUresult result = player_cu.cuCtxSynchronize();
    if (result != CUDA_SUCCESS)
        player_fail("behind the last op: %s", player_api_error(result));
    uint64_t ns = now() - begin;
    player_curve(p);
    return ns;
}
