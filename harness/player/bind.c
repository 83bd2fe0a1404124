/*
 * Gives ops the objects that the driver made: functions, streams, events, host memory, addresses of
 * variables. After that the player issues the ops as they stand.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/player/player.h"

struct event {
    uint64_t handle;
    CUevent event;
};

struct events {
    struct event *at;
    size_t n;
};

static int by_handle(const void *a, const void *b) {
    uint64_t x = ((const struct event *)a)->handle, y = ((const struct event *)b)->handle;
    return x < y ? -1 : x > y;
}

/* Makes one event for each recorded handle. */
static struct events make_events(struct player *p) {
    struct events events = {player_need(calloc(p->n_ops + 1, sizeof(struct event))), 0};
    size_t n = 0;
    for (size_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].what == PLAYER_RECORD)
            events.at[n++].handle = p->ops[i].work->event;
    qsort(events.at, n, sizeof *events.at, by_handle);
    for (size_t i = 0; i < n; i++) {
        if (events.n && events.at[events.n - 1].handle == events.at[i].handle)
            continue;
        events.at[events.n] = events.at[i];
        player_check(player_cu.cuEventCreate(&events.at[events.n++].event, CU_EVENT_DISABLE_TIMING),
                     "cuEventCreate");
    }
    return events;
}

static void make_streams(struct player *p) {
    const struct cst_replay *replay = &p->trace->replay;
    p->streams = player_need(calloc(replay->n_lanes + (size_t)1, sizeof *p->streams));
    p->streams[0] = CU_STREAM_LEGACY;
    for (uint32_t i = 1; i < replay->n_lanes; i++) {
        const struct cst_lane *lane = replay->lanes[i];
        if (!lane || lane->kind == CST_STREAM_LEGACY)
            p->streams[i] = CU_STREAM_LEGACY;
        else
            player_check(player_cu.cuStreamCreateWithPriority(
                             &p->streams[i], lane->flags & CU_STREAM_NON_BLOCKING, lane->priority),
                         "cuStreamCreateWithPriority");
    }
}

/* Pinned if the program's memory was pinned, because this decides how a copy is done. */
static void *host_memory(uint64_t bytes, bool pinned) {
    void *memory;
    if (pinned) {
        player_check(player_cu.cuMemHostAlloc(&memory, bytes, 0), "cuMemHostAlloc");
        memset(memory, 0, bytes);
        return memory;
    }
    return player_need(calloc(1, bytes));
}

static void load_inputs(struct player *p) {
    char error[600];
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        size_t n;
        const struct cst_part *part = cst_data_of(p->trace, CST_DATA_INPUT, i, &n);
        if (!p->input_bytes[i])
            continue;
        p->inputs[i] = host_memory(p->input_bytes[i], p->input_pinned[i]);
        for (size_t k = 0; k < n; k++)
            if (part[k].offset + part[k].bytes <= p->input_bytes[i] &&
                !cst_data_load(p->trace, &part[k], (char *)p->inputs[i] + part[k].offset, error,
                               sizeof error))
                notes_add(&p->obstacles, "%s", error);
    }
}

static void put_addresses(struct player *p) {
    for (size_t i = 0; i < p->n_patches; i++) {
        const struct player_patch *patch = &p->patches[i];
        CUdeviceptr here = player_global_at(p, patch->span);
        uint64_t word;
        if (!here) {
            notes_add(&p->obstacles, "module %u has no variable %s", patch->span->module,
                      cst_string(p->trace, patch->span->name));
            continue;
        }
        memcpy(&word, patch->word, sizeof word);
        word += here - patch->span->address;
        memcpy(patch->word, &word, sizeof word);
    }
}

static void bind_op(struct player *p, struct player_op *op, const struct events *events) {
    const struct cst_work *work = op->work;
    struct event asked = {.handle = work->event}, *event;
    op->stream = p->streams[work->lane];
    switch (op->what) {
    case PLAYER_LAUNCH_EX:
        op->launch.config->hStream = op->stream;
        op->launch.function = p->functions[work->code];
        break;
    case PLAYER_LAUNCH:
    case PLAYER_LAUNCH_COOPERATIVE:
        op->launch.function = p->functions[work->code];
        break;
    case PLAYER_UPLOAD:
        op->copy.host = p->inputs[work->input];
        break;
    case PLAYER_DOWNLOAD: {
        const struct player_host *host = &p->hosts[(uintptr_t)op->copy.host];
        op->copy.host = (char *)host->here + (host->span ? work->to - host->from : 0);
        break;
    }
    case PLAYER_RECORD:
    case PLAYER_WAIT:
    case PLAYER_SYNC_EVENT:
        event = bsearch(&asked, events->at, events->n, sizeof asked, by_handle);
        op->event = event ? event->event : NULL;
        break;
    default:
        break;
    }
}

void player_bind(struct player *p) {
    struct events events = make_events(p);
    make_streams(p);
    load_inputs(p);
    put_addresses(p);
    for (size_t i = 0; i < p->n_hosts; i++)
        p->hosts[i].here = host_memory(p->hosts[i].to - p->hosts[i].from + 1, p->hosts[i].span);
    for (size_t i = 0; i < p->n_ops; i++) {
        if (p->ops[i].what == PLAYER_LAUNCH_EX && !player_cu.cuLaunchKernelEx)
            notes_add(&p->obstacles, "the driver has no cuLaunchKernelEx");
        bind_op(p, &p->ops[i], &events);
    }
    p->clocks = player_need(calloc(p->trace->n_threads + (size_t)1, sizeof *p->clocks));
    free(events.at);
}
