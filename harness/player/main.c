/*
 * player [--pace recorded|fastest|none] TRACE: replays a trace in this process by commands on
 * stdin.
 *
 * The player first prints a line of JSON: what the trace has, or why it cannot be replayed. It
 * answers each line of stdin (`check`, `sums`, `run N`, `curve`, `quit`) by one line; README.md
 * describes them. Exit status: 0; 1 if something failed; 2 for a bad option; 3 if the trace cannot
 * be replayed.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/player/player.h"
#include "shim/include/cusplice.h"
#include "tools/trace/json.h"

enum { CANNOT = 3, PASSES = 100000 };

/* Begins an answer: an object on a line. */
static struct cus_json begin(void) {
    struct cus_json json = json_to(stdout, CUS_JSON_TIGHT);
    cus_json_open(&json, NULL, '{');
    return json;
}

static void end(struct cus_json *json) {
    cus_json_close(json, '}');
    cus_json_end(json);
}

void player_fail(const char *format, ...) {
    char text[1200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct cus_json json = begin();
    cus_json_text(&json, "error", text);
    end(&json);
    fflush(stdout);
    _Exit(1); /* the driver may be in any state */
}

void *player_need(void *memory) {
    if (!memory)
        player_fail("not enough memory");
    return memory;
}

void player_check(CUresult result, const char *call) {
    if (result != CUDA_SUCCESS)
        player_fail("%s: %s", call, player_api_error(result));
}

/* ---- the GPU ---- */

static void say_ready(struct player *p) {
    bool ready = !p->obstacles.n;
    struct cus_json json = begin();
    cus_json_bool(&json, "ready", ready);
    cus_json_text(&json, "gpu", p->gpu);
    cus_json_integer(&json, "driver", p->driver);
    cus_json_number(&json, "ops", p->n_ops);
    cus_json_number(&json, "launches", p->n_launches);
    cus_json_number(&json, "steps", p->n_steps);
    cus_json_number(&json, "memory_bytes", p->memory_bytes);
    cus_json_number(&json, "checks", p->trace->replay.n_checks);
    cus_json_integer(&json, "interface", cusplice_interface());
    if (!ready) {
        cus_json_bool(&json, "no_memory", p->no_memory);
        notes_put(&p->obstacles, &json, "obstacles");
    }
    notes_put(&p->warnings, &json, "warnings");
    end(&json);
    fflush(stdout);
}

/* What is in the way of any replay is told before what this machine lacks. */
static _Noreturn void fail_without_gpu(struct player *p, const char *why) {
    enum { GRANULE = 2 << 20 };
    p->granule = GRANULE;
    player_look_alone(p);
    if (!p->obstacles.n)
        player_fail("%s", why);
    say_ready(p);
    _Exit(CANNOT); /* as player_fail */
}

static void find_gpu(struct player *p) {
    char error[600];
    int major = 0, minor = 0;
    CUmemAllocationProp kind = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                .location.id = 0};
    if (!player_api_fill(error, sizeof error))
        fail_without_gpu(p, error);
    CUresult began = player_cu.cuInit(0);
    if (began != CUDA_SUCCESS) {
        snprintf(error, sizeof error, "cuInit: %s", player_api_error(began));
        fail_without_gpu(p, error);
    }
    player_check(player_cu.cuDeviceGet(&p->device, 0), "cuDeviceGet");
    player_check(player_cu.cuDeviceGetName(p->gpu, sizeof p->gpu, p->device), "cuDeviceGetName");
    player_check(player_cu.cuDeviceGetAttribute(
                     &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, p->device),
                 "cuDeviceGetAttribute");
    player_check(player_cu.cuDeviceGetAttribute(
                     &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, p->device),
                 "cuDeviceGetAttribute");
    p->capability = 10 * major + minor;
    player_check(player_cu.cuDriverGetVersion(&p->driver), "cuDriverGetVersion");
    kind.location.id = p->device;
    player_check(player_cu.cuMemGetAllocationGranularity(&p->granule, &kind,
                                                         CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                 "cuMemGetAllocationGranularity");
    if (!p->granule)
        player_fail("cuMemGetAllocationGranularity says 0");
}

/* ---- getting ready ---- */

static void prepare(struct player *p) {
    CUcontext context;
    player_memory_reserve(p);
    if (p->obstacles.n)
        return;
    player_check(player_cu.cuDevicePrimaryCtxRetain(&context, p->device),
                 "cuDevicePrimaryCtxRetain");
    player_check(player_cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    player_memory_map(p);
    if (!p->no_memory)
        player_load(p);
    if (!p->obstacles.n)
        player_bind(p);
}

/* ---- requests ---- */

/* Answers for the memory as it is now. */
static void sums(struct player *p) {
    struct notes wrong = {.n = 0};
    size_t n = player_checks(p, &wrong);
    struct cus_json json = begin();
    cus_json_number(&json, "checks", p->trace->replay.n_checks);
    cus_json_number(&json, "wrong", n);
    notes_put(&wrong, &json, "where");
    end(&json);
    notes_clear(&wrong);
}

static void check(struct player *p) {
    player_restore(p);
    player_watch(p);
    player_pass(p);
    sums(p);
    player_compare(p);
}

static void run(struct player *p, unsigned long passes) {
    struct cusplice_counters before = {0}, after = {0};
    uint64_t in_graphs = 0, issued = 0, graph_launches = 0;
    uint64_t *steps = player_need(calloc(passes, sizeof *steps));
    if (!p->dirty_known) {
        player_restore(p);
        player_watch(p);
        player_pass(p);
        player_compare(p);
    }
    struct cus_json json = begin();
    cus_json_open(&json, "ns", '[');
    for (unsigned long i = 0; i < passes; i++) {
        player_restore_dirty(p);
        cusplice_read_counters(&before, sizeof before);
        uint64_t ns = player_pass(p);
        cusplice_read_counters(&after, sizeof after);
        in_graphs += after.in_graphs - before.in_graphs;
        issued += after.in_graphs + after.eager - before.in_graphs - before.eager;
        graph_launches += after.graph_launches - before.graph_launches;
        cus_json_number(&json, NULL, ns);
        steps[i] = player_step_ns(p);
    }
    cus_json_close(&json, ']');
    cus_json_open(&json, "step_ns", '[');
    for (unsigned long i = 0; i < passes; i++)
        cus_json_number(&json, NULL, steps[i]);
    free(steps);
    cus_json_close(&json, ']');
    cus_json_number(&json, "steps", p->n_steps);
    cus_json_number(&json, "in_graphs", in_graphs);
    cus_json_number(&json, "issued", issued);
    cus_json_number(&json, "graph_launches", graph_launches);
    end(&json);
}

/* Answers how long the first typical steps took. */
static void curve(const struct player *p) {
    struct cus_json json = begin();
    cus_json_open(&json, "ns", '[');
    for (uint32_t i = 0; i < p->n_curve; i++)
        cus_json_number(&json, NULL, p->curve[i]);
    cus_json_close(&json, ']');
    end(&json);
}

static int serve(struct player *p) {
    char line[128];
    while (fgets(line, sizeof line, stdin)) {
        unsigned long passes;
        line[strcspn(line, "\n")] = 0;
        if (strcmp(line, "quit") == 0)
            return 0;
        if (strcmp(line, "check") == 0)
            check(p);
        else if (strcmp(line, "sums") == 0)
            sums(p);
        else if (strcmp(line, "curve") == 0)
            curve(p);
        else if (sscanf(line, "run %lu", &passes) == 1 && passes && passes <= PASSES)
            run(p, passes);
        else
            player_fail("'%s' is none of: check, sums, run N, curve, quit", line);
        fflush(stdout);
    }
    return 0;
}

static int usage(void) {
    fputs("usage: player [--trust] [--pace recorded|fastest|none] [--max-memory MIB] TRACE\n",
          stderr);
    return 2;
}

/* --max-memory: host memory for code, inputs, copies and unpacked data; 0: no bound. */
static bool take_bound(struct cst_bounds *bounds, const char *text) {
    char *end;
    unsigned long long mib = strtoull(text, &end, 10);
    bounds->unpack_max = mib && mib < UINT64_MAX >> 20 ? (uint64_t)mib << 20 : UINT64_MAX;
    return *text >= '0' && *text <= '9' && !*end;
}

int main(int argc, char **argv) {
    static const char *const paces[] = {
        [PLAYER_RECORDED] = "recorded", [PLAYER_FASTEST] = "fastest", [PLAYER_UNPACED] = "none"};
    static struct player player;
    struct player *p = &player;
    char error[1200];
    struct cst_bounds bounds = {.raise = "--max-memory MIB raises that"};
    bool trusted = argc > 1 && strcmp(argv[1], "--trust") == 0;
    int at = trusted ? 2 : 1;
    for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
        if (strcmp(argv[at], "--max-memory") == 0) {
            if (!take_bound(&bounds, argv[at + 1]))
                return usage();
            continue;
        }
        if (strcmp(argv[at], "--pace") != 0)
            return usage();
        for (p->pace = 0; strcmp(argv[at + 1], paces[p->pace]) != 0; p->pace++)
            if (p->pace == PLAYER_UNPACED)
                return usage();
    }
    if (at + 1 != argc)
        return usage();
    p->trace = cst_open_within(argv[at], &bounds, error, sizeof error);
    if (!p->trace)
        player_fail("%s", error);
    /* The verbs check this too, but the file may be another one by now. */
    const char *why = trusted ? NULL : cst_distrust(p->trace);
    if (why)
        player_fail("%s: %s, and a replay runs the code in it (--trust)", argv[at], why);
    p->may_take = bounds.unpack_max
                      ? bounds.unpack_max
                      : ((uint64_t)PLAYER_TAKE_MIB << 20) + 100 * p->trace->file_bytes;
    find_gpu(p);
    player_look(p);
    if (!p->obstacles.n)
        prepare(p);
    say_ready(p);
    return p->obstacles.n ? CANNOT : serve(p);
}
