/*
 * Turns the recorded works into ops in one walk in the order of time, and gathers what cannot be
 * replayed. Never calls the driver.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/player/player.h"
#include "harness/player/spans.h"

enum { CHUNK = 1 << 20 };

struct planning {
    struct player *p;
    struct spans spans;
    char *chunk; /* params and data that they point to */
    size_t left;
    size_t patches_room;
    uint64_t *events; /* handles of the recorded events, sorted */
    size_t n_events;
    bool *recorded; /* for each: recorded so far */
    bool *thread_seen;
    uint32_t *same;    /* by code: the first code of the same function; 0: it is the only one */
    uint32_t *current; /* by such a first code: the code whose settings hold now */
    bool worked;       /* there was work since the step began */
};

static void *arena(struct planning *plan, size_t bytes) {
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes > plan->left) {
        size_t room = bytes > CHUNK ? bytes : CHUNK;
        struct player_chunk *chunk = player_need(calloc(1, sizeof *chunk + room));
        chunk->before = plan->p->chunks;
        plan->p->chunks = chunk;
        plan->chunk = (char *)(chunk + 1);
        plan->left = room;
    }
    void *at = plan->chunk;
    plan->chunk += bytes;
    plan->left -= bytes;
    return at;
}

static const char *name_of(const struct player *p, const struct cst_work *work) {
    return cst_string(p->trace, p->trace->replay.codes[work->code]->name);
}

/* ---- addresses ---- */

static void patch(struct planning *plan, void *word, const struct cst_span *span) {
    struct player *p = plan->p;
    if (p->n_patches == plan->patches_room) {
        plan->patches_room = plan->patches_room ? 2 * plan->patches_room : 256;
        p->patches = player_need(realloc(p->patches, plan->patches_room * sizeof *p->patches));
    }
    p->patches[p->n_patches++] = (struct player_patch){word, span};
}

/* A device address of a work, at *word. */
static void device_address(struct planning *plan, CUdeviceptr *word, uint64_t bytes,
                           const char *of) {
    struct player *p = plan->p;
    if (player_memory_has(p, *word, bytes))
        return;
    const struct cst_span *span = spans_find(&plan->spans, *word);
    const char *call = span ? cst_string(p->trace, span->name) : "";
    if (!span)
        notes_add(&p->obstacles, "%s: 0x%" PRIx64 " (%" PRIu64 " bytes) is no memory of the trace",
                  of, (uint64_t)*word, bytes);
    else if (span->what == CST_SPAN_GLOBAL && bytes <= span->bytes - (*word - span->address))
        patch(plan, word, span);
    else if (span->what == CST_SPAN_GLOBAL)
        notes_add(&p->obstacles, "%s: goes beyond the variable %s", of, call);
    else if (span->what == CST_SPAN_HOST)
        notes_add(&p->obstacles,
                  "%s: host memory at 0x%" PRIx64 " (%s) whose contents were not recorded", of,
                  span->address, call);
    else
        notes_add(&p->obstacles, "%s: memory at 0x%" PRIx64 " (%s), which a replay cannot make", of,
                  span->address, call);
}

/* A word of a kernel's params: usually a device address, or no address. */
static void param(struct planning *plan, const struct cst_work *work, uint8_t *at) {
    struct player *p = plan->p;
    uint64_t word;
    memcpy(&word, at, sizeof word);
    if (word < 4096 || player_memory_has(p, word, 1))
        return;
    const struct cst_span *span = spans_find(&plan->spans, word);
    if (!span)
        return;
    const char *call = cst_string(p->trace, span->name);
    if (span->what == CST_SPAN_GLOBAL)
        patch(plan, at, span);
    else if (span->what == CST_SPAN_HOST)
        notes_add(&p->obstacles,
                  "kernel %s: reads or writes host memory (an argument is in that at 0x%" PRIx64
                  ", %s)",
                  name_of(p, work), span->address, call);
    else
        notes_add(&p->obstacles,
                  "kernel %s: an argument is in memory that a replay cannot make (0x%" PRIx64
                  ", %s)",
                  name_of(p, work), span->address, call);
}

/* ---- launches ---- */

static int by_function(const void *a, const void *b) {
    const struct cst_code *x = *(const struct cst_code *const *)a,
                          *y = *(const struct cst_code *const *)b;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    if (x->kernel != y->kernel)
        return x->kernel < y->kernel ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool is_same(const struct cst_code *a, const struct cst_code *b) {
    return a->name == b->name && a->module == b->module && a->kernel == b->kernel;
}

/* A function has a record for each set of settings with which it was launched. */
static void find_same(struct planning *plan) {
    const struct cst_replay *replay = &plan->p->trace->replay;
    const struct cst_code **codes = player_need(calloc(replay->n_codes + (size_t)1, sizeof *codes));
    size_t n = 0;
    plan->same = player_need(calloc(replay->n_codes + (size_t)1, sizeof *plan->same));
    plan->current = player_need(calloc(replay->n_codes + (size_t)1, sizeof *plan->current));
    for (uint32_t i = 1; i < replay->n_codes; i++)
        if (replay->codes[i])
            codes[n++] = replay->codes[i];
    qsort(codes, n, sizeof *codes, by_function);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && is_same(codes[i], codes[end]);)
            end++;
        for (size_t k = i; k < end && end > i + 1; k++)
            plan->same[codes[k]->id] = codes[i]->id;
    }
    free(codes);
}

/* Tells whether the settings may differ from those of the function's last launch. */
static bool settings_change(struct planning *plan, const struct cst_work *work) {
    uint32_t function = work->head.flags == CST_WORK_LAUNCH ? plan->same[work->code] : 0;
    if (!function || plan->current[function] == work->code)
        return false;
    plan->current[function] = work->code;
    return true;
}

static CUlaunchConfig *config_of(struct planning *plan, const struct cst_work *work) {
    CUlaunchConfig *config = arena(plan, sizeof *config);
    CUlaunchAttribute *attributes = arena(plan, work->n_attributes * sizeof *attributes);
    for (uint32_t i = 0; i < work->n_attributes; i++) {
        const struct cst_attribute *from = &cst_work_attributes(work)[i];
        memcpy(&attributes[i].id, &from->id, sizeof from->id);
        memcpy(&attributes[i].value, from->value, sizeof attributes[i].value);
        if (from->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT || from->id == 12)
            notes_add(&plan->p->obstacles,
                      "kernel %s: was launched with an event as an attribute (%u)",
                      name_of(plan->p, work), from->id);
    }
    *config = (CUlaunchConfig){.gridDimX = work->dims[0],
                               .gridDimY = work->dims[1],
                               .gridDimZ = work->dims[2],
                               .blockDimX = work->dims[3],
                               .blockDimY = work->dims[4],
                               .blockDimZ = work->dims[5],
                               .sharedMemBytes = work->dims[6],
                               .attrs = attributes,
                               .numAttrs = work->n_attributes};
    return config;
}

static void launch(struct planning *plan, struct player_op *op) {
    const struct cst_work *work = op->work;
    const struct cst_code *code = plan->p->trace->replay.codes[work->code];
    const struct cst_argument *arguments = cst_code_arguments(code);
    uint8_t *params = arena(plan, code->param_bytes + (size_t)8);
    plan->p->used[work->code] = true;
    plan->p->n_launches++;
    memcpy(params, cst_work_params(work), code->param_bytes);
    op->launch.params = arena(plan, (code->n_arguments + (size_t)1) * sizeof(void *));
    for (uint32_t i = 0; i < code->n_arguments; i++) {
        op->launch.params[i] = params + arguments[i].offset;
        for (uint32_t k = 0; k + 8 <= arguments[i].bytes; k += 8)
            param(plan, work, params + arguments[i].offset + k);
    }
    op->what = work->cooperative    ? PLAYER_LAUNCH_COOPERATIVE
               : work->n_attributes ? PLAYER_LAUNCH_EX
                                    : PLAYER_LAUNCH;
    if (op->what == PLAYER_LAUNCH_EX)
        op->launch.config = config_of(plan, work);
}

/* ---- memsets and copies ---- */

static void set(struct planning *plan, struct player_op *op) {
    const struct cst_work *work = op->work;
    uint64_t rows = work->height > 1 ? work->height - 1 : 0, bytes, gaps;
    bool fits = !__builtin_mul_overflow(work->width, (uint64_t)work->elem, &bytes) &&
                !__builtin_mul_overflow(rows, work->pitch, &gaps) &&
                !__builtin_add_overflow(bytes, gaps, &bytes);
    op->what = PLAYER_MEMSET;
    op->memset.to = work->to;
    op->memset.width = work->width;
    op->memset.height = work->height;
    op->memset.pitch = work->pitch;
    op->memset.elem = work->elem;
    op->memset.value = work->value;
    if (work->elem != 1 && work->elem != 2 && work->elem != 4)
        notes_add(&plan->p->obstacles, "a memset has elements of %u bytes", work->elem);
    else if (!fits)
        notes_add(&plan->p->obstacles, "a memset of more bytes than there can be");
    else if (bytes)
        device_address(plan, &op->memset.to, bytes, "memset");
}

/* The program's memory that a copy to the host writes; NULL: pageable memory. */
static const struct cst_span *host_of(struct planning *plan, uint64_t address, uint64_t bytes) {
    const struct cst_span *span = spans_find(&plan->spans, address);
    if (span && (span->what != CST_SPAN_HOST || bytes > span->bytes - (address - span->address)))
        span = NULL;
    return span;
}

static void upload(struct planning *plan, struct player_op *op) {
    const struct cst_work *work = op->work;
    struct player *p = plan->p;
    uint64_t there = work->input < p->n_inputs ? p->input_bytes[work->input] : 0;
    op->what = PLAYER_UPLOAD;
    if (there < op->copy.bytes || !there)
        notes_add(&p->obstacles,
                  "a copy of %zu bytes from the host: %" PRIu64 " bytes of it are in the trace",
                  op->copy.bytes, there);
    else if (spans_find(&plan->spans, work->from))
        p->input_pinned[work->input] = 1;
}

static void copy(struct planning *plan, struct player_op *op) {
    const struct cst_work *work = op->work;
    uint64_t rows = work->height > 1 ? work->height : 1;
    bool fits = !__builtin_mul_overflow(work->width, rows, &op->copy.bytes);
    op->copy.to = work->to;
    op->copy.from = work->from;
    op->what = PLAYER_MOVE;
    if (rows > 1 && work->pitch && work->pitch != work->width) {
        notes_add(&plan->p->obstacles, "a copy of %" PRIu64 " rows with gaps between", rows);
        return;
    }
    if (!fits) {
        notes_add(&plan->p->obstacles, "a copy of more bytes than there can be");
        return;
    }
    if (work->input && work->to_host) {
        notes_add(&plan->p->obstacles, "a copy from the host to the host");
        return;
    }
    if (!op->copy.bytes)
        return;
    if (work->input) {
        upload(plan, op);
    } else {
        device_address(plan, &op->copy.from, op->copy.bytes, "a copy reads");
    }
    if (work->to_host) {
        op->what = PLAYER_DOWNLOAD;
        op->copy.span = host_of(plan, work->to, op->copy.bytes);
    } else {
        device_address(plan, &op->copy.to, op->copy.bytes, "a copy writes");
    }
}

/* ---- order ---- */

static int by_handle(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Finds all handles that are ever recorded, each once. */
static void find_events(struct planning *plan) {
    const struct cst_replay *replay = &plan->p->trace->replay;
    size_t n = 0;
    plan->events = player_need(calloc(replay->n_works + 1, sizeof *plan->events));
    for (size_t i = 0; i < replay->n_works; i++)
        if (replay->works[i]->head.flags == CST_WORK_RECORD)
            plan->events[n++] = replay->works[i]->event;
    qsort(plan->events, n, sizeof *plan->events, by_handle);
    for (size_t i = 0; i < n; i++)
        if (!i || plan->events[i] != plan->events[plan->n_events - 1])
            plan->events[plan->n_events++] = plan->events[i];
    plan->recorded = player_need(calloc(plan->n_events + 1, sizeof *plan->recorded));
}

/* Returns whether the event has been recorded so far; NULL if it never is. */
static bool *recorded(const struct planning *plan, uint64_t handle) {
    const uint64_t *found =
        bsearch(&handle, plan->events, plan->n_events, sizeof handle, by_handle);
    return found ? &plan->recorded[found - plan->events] : NULL;
}

static bool was_recorded(const struct planning *plan, uint64_t handle) {
    const bool *it = recorded(plan, handle);
    return it && *it;
}

/* Returns false if the op never has an effect. */
static bool order(struct planning *plan, struct player_op *op) {
    const struct cst_work *work = op->work;
    switch (work->head.flags) {
    case CST_WORK_RECORD:
        op->what = PLAYER_RECORD;
        *recorded(plan, work->event) = true;
        return true;
    case CST_WORK_WAIT:
        op->what = PLAYER_WAIT;
        return was_recorded(plan, work->event);
    default:
        op->what = work->event  ? PLAYER_SYNC_EVENT
                   : work->lane ? PLAYER_SYNC_STREAM
                                : PLAYER_SYNC_ALL;
        return !work->event || was_recorded(plan, work->event);
    }
}

/* The host waits, so a step ends if it had work. Asking about an event is no wait. */
static void end_step(struct planning *plan, struct player_op *op) {
    bool waits = op->sync && (op->what >= PLAYER_SYNC_STREAM || op->what == PLAYER_DOWNLOAD ||
                              op->what == PLAYER_UPLOAD);
    plan->worked |= op->what <= PLAYER_MOVE;
    if (waits && plan->worked) {
        op->last = true;
        plan->worked = false;
    }
}

/* ---- all ops ---- */

static bool take(struct planning *plan, const struct cst_work *work, struct player_op *op) {
    *op = (struct player_op){.thread = work->head.thread,
                             .gap_ns = work->gap_ns,
                             .sync = work->sync,
                             .first = !plan->thread_seen[work->head.thread],
                             .work = work};
    spans_move(&plan->spans, work->head.ns);
    bool kept = true;
    switch (work->head.flags) {
    case CST_WORK_LAUNCH:
        launch(plan, op);
        break;
    case CST_WORK_MEMSET:
        set(plan, op);
        break;
    case CST_WORK_COPY:
        copy(plan, op);
        break;
    case CST_WORK_RECORD:
    case CST_WORK_WAIT:
    case CST_WORK_SYNC:
        kept = order(plan, op);
        break;
    default:
        notes_add(&plan->p->obstacles, "work of a sort that this player does not know (%u)",
                  work->head.flags);
        kept = false;
    }
    if (kept) {
        plan->thread_seen[work->head.thread] = true;
        end_step(plan, op);
    }
    return kept;
}

static void find_inputs(struct player *p) {
    const struct cst_replay *replay = &p->trace->replay;
    uint32_t most = 0;
    for (size_t i = 0; i < replay->n_parts; i++) {
        const struct cst_part *part = &replay->parts[i];
        if (part->of == CST_DATA_INPUT && part->id >= most && part->id < 4 * replay->n_parts + 1024)
            most = part->id + 1;
    }
    p->n_inputs = most;
    p->input_bytes = player_need(calloc(most + (size_t)1, sizeof *p->input_bytes));
    p->input_pinned = player_need(calloc(most + (size_t)1, 1));
    p->inputs = player_need(calloc(most + (size_t)1, sizeof *p->inputs));
    for (size_t i = 0; i < replay->n_parts; i++) {
        const struct cst_part *part = &replay->parts[i];
        if (part->of == CST_DATA_INPUT && part->id < most &&
            part->offset == p->input_bytes[part->id])
            p->input_bytes[part->id] += part->bytes;
    }
    for (uint32_t i = 0; i < most; i++)
        if (!player_take(p, p->input_bytes[i], "inputs"))
            return;
}

static int by_span(const void *a, const void *b) {
    const struct cst_span *x = ((const struct player_patch *)a)->span,
                          *y = ((const struct player_patch *)b)->span;
    return x < y ? -1 : x > y;
}

static int by_global(const void *a, const void *b) {
    const struct cst_span *x = ((const struct player_global *)a)->span,
                          *y = ((const struct player_global *)b)->span;
    return x < y ? -1 : x > y;
}

/* Finds the variables that a launch or a copy names, and all variables of launched code, which
 * may use them itself. Sorted by their records' addresses, as patches are. */
static void find_globals(struct player *p) {
    const struct cst_replay *replay = &p->trace->replay;
    bool *launched = player_need(calloc(replay->n_modules + (size_t)1, sizeof *launched));
    for (uint32_t i = 0; i < replay->n_codes; i++)
        if (p->used[i])
            launched[replay->codes[i]->module] = true;
    p->globals = player_need(calloc(replay->n_spans + (size_t)1, sizeof *p->globals));
    if (p->n_patches)
        qsort(p->patches, p->n_patches, sizeof *p->patches, by_span);
    for (size_t i = 0; i < replay->n_spans; i++) {
        struct player_patch asked = {NULL, replay->spans[i]};
        const struct cst_span *span = asked.span;
        if (span->what == CST_SPAN_GLOBAL && !span->gone && span->module &&
            (launched[span->module] ||
             (p->n_patches && bsearch(&asked, p->patches, p->n_patches, sizeof asked, by_span))))
            p->globals[p->n_globals++].span = span;
    }
    qsort(p->globals, p->n_globals, sizeof *p->globals, by_global);
    free(launched);
}

static void add_obstacle(void *player, const char *sentence) {
    notes_add(&((struct player *)player)->obstacles, "%s", sentence);
}

static void find_general_obstacles(struct player *p) {
    const struct cst_trace *trace = p->trace;
    cst_replay_whole(trace, false, add_obstacle, p);
    for (size_t i = 0; i < trace->replay.n_obstacles; i++)
        notes_add(&p->obstacles, "the program called %s: %s",
                  cst_string(trace, trace->replay.obstacles[i]->call),
                  cst_string(trace, trace->replay.obstacles[i]->why));
}

void player_plan(struct player *p) {
    const struct cst_replay *replay = &p->trace->replay;
    struct planning plan = {.p = p};
    find_general_obstacles(p);
    find_inputs(p);
    find_events(&plan);
    p->ops = player_need(calloc(2 * replay->n_works + 1, sizeof *p->ops));
    p->used = player_need(calloc(replay->n_codes + (size_t)1, sizeof *p->used));
    plan.thread_seen = player_need(calloc(p->trace->n_threads + (size_t)1, 1));
    player_need(spans_begin(&plan.spans, p->trace) ? p : NULL);
    find_same(&plan);
    for (size_t i = 0; i < replay->n_works; i++) {
        if (settings_change(&plan, replay->works[i]))
            p->ops[p->n_ops++] =
                (struct player_op){.what = PLAYER_SET, .work = replay->works[i], .player = p};
        p->n_ops += take(&plan, replay->works[i], &p->ops[p->n_ops]);
    }
    if (plan.worked)
        p->ops[p->n_ops - 1].last = true;
    if (plan.spans.too_many)
        notes_add(&p->obstacles,
                  "it has more than %d pieces of host memory and variables at a time", SPANS_MAX);
    player_steps(p);
    find_globals(p);
    player_hosts(p);
    spans_end(&plan.spans);
    free(plan.events);
    free(plan.recorded);
    free(plan.thread_seen);
    free(plan.same);
    free(plan.current);
}
