/*
 * Measures what calls of the driver cost the host, and what the GPU does between two ops.
 * calibrate_run calls it in a process without the library. It never waits inside a measured series
 * of calls.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tools/calibrate/device.h"

static struct device device, *d = &device;

static void synchronize(void) {
    MUST(d->cuStreamSynchronize(d->stream));
}

/* ---- host: calls ---- */

static void launch(void) {
    device_chain(d, 7);
}

static void fill_memory(void) {
    device_memset(d);
}

static void copy_memory(void) {
    MUST(d->cuMemcpyDtoDAsync_v2(d->other, d->words, DEVICE_WORDS * 4, d->stream));
}

static CUevent untimed;

static void record(void) {
    MUST(d->cuEventRecord(untimed, d->stream));
}

/* While the stream captures: into a node. */
static void record_node(void) {
    MUST(d->cuEventRecordWithFlags(untimed, d->stream, CU_EVENT_RECORD_EXTERNAL));
}

/* Many in a row, as many as queues hold without a wait. */
static void measure_calls(const char *name, void (*call)(void)) {
    enum { TIMES = 60, BURST = 200 };
    struct series series = {.n = 0};
    for (int i = 0; i < TIMES; i++) {
        uint64_t begin = device_now();
        for (int k = 0; k < BURST; k++)
            call();
        uint64_t end = device_now();
        synchronize();
        if (i >= TIMES / 10)
            series_add(&series, (double)(end - begin) / BURST);
    }
    series_tell(name, &series);
}

static void measure_pageable_copy(void) {
    struct series series = {.n = 0};
    unsigned *to = malloc(DEVICE_WORDS * 4);
    for (int i = 0; i < 200 && to; i++) {
        uint64_t begin = device_now();
        MUST(d->cuMemcpyDtoHAsync_v2(to, d->words, 4, d->stream));
        synchronize();
        if (i >= 20)
            series_add(&series, (double)(device_now() - begin));
    }
    free(to);
    series_tell("host.pageable_copy", &series);
}

static void measure_idle_sync(void) {
    struct series series = {.n = 0};
    for (int i = 0; i < 400; i++) {
        uint64_t begin = device_now();
        synchronize();
        series_add(&series, (double)(device_now() - begin));
    }
    series_tell("host.idle_sync", &series);
}

/* ---- host: graphs ---- */

struct graph {
    CUgraph graph;
    CUgraphExec exec;
};

/* Of `n` nodes, every second of them made by `other`, if that is not NULL. */
static struct graph build(int n, void (*other)(void)) {
    struct graph it;
    MUST(d->cuStreamBeginCapture_v2(d->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (int i = 0; i < n; i++)
        if (other && i % 2)
            other();
        else
            device_chain(d, (unsigned)i);
    MUST(d->cuStreamEndCapture(d->stream, &it.graph));
    MUST(d->cuGraphInstantiateWithFlags(&it.exec, it.graph, 0));
    return it;
}

static void destroy(struct graph *it) {
    MUST(d->cuGraphExecDestroy(it->exec));
    MUST(d->cuGraphDestroy(it->graph));
}

static void start(const struct graph *it) {
    MUST(d->cuGraphLaunch(it->exec, d->stream));
}

static void measure_build(void) {
    enum { NODES = 64 };
    struct series series = {.n = 0};
    for (int i = 0; i < 20; i++) {
        uint64_t begin = device_now();
        struct graph it = build(NODES, NULL);
        if (i >= 4)
            series_add(&series, (double)(device_now() - begin) / NODES);
        destroy(&it);
    }
    series_tell("host.built_node", &series);
}

enum { GRAPHS = 4 };

/* A launch of each of a few graphs that are built so. */
static void time_launches(int nodes, void (*other)(void), struct series *series) {
    struct graph graphs[GRAPHS];
    for (int g = 0; g < GRAPHS; g++)
        graphs[g] = build(nodes, other);
    for (int i = 0; i < 60; i++) {
        uint64_t begin = device_now();
        for (int g = 0; g < GRAPHS; g++)
            start(&graphs[g]);
        uint64_t end = device_now();
        synchronize();
        if (i >= 10)
            series_add(series, (double)(end - begin) / GRAPHS);
    }
    for (int g = 0; g < GRAPHS; g++)
        destroy(&graphs[g]);
}

static void measure_graph_launch(void) {
    enum { FEW = 8, MANY = 136 };
    struct series few = {.n = 0}, many = {.n = 0}, memsets = {.n = 0}, records = {.n = 0};
    time_launches(FEW, NULL, &few);
    time_launches(MANY, NULL, &many);
    time_launches(MANY, fill_memory, &memsets);
    time_launches(MANY, record_node, &records);
    double node = (series_median(&many) - series_median(&few)) / (MANY - FEW);
    if (node < 0)
        node = 0;
    tell("host.graph_launch", series_median(&few) - FEW * node, series_apart(&few));
    tell("host.graph_node", node, (series_apart(&many) + series_apart(&few)) / (MANY - FEW));
    tell("host.graph_other", (series_median(&memsets) - series_median(&many)) / (MANY / 2.0),
         (series_apart(&memsets) + series_apart(&many)) / (MANY / 2.0));
    tell("host.graph_record", (series_median(&records) - series_median(&many)) / (MANY / 2.0),
         (series_apart(&records) + series_apart(&many)) / (MANY / 2.0));
}

static void measure_patch(void) {
    enum { NODES = 64, TIMES = 60 };
    struct series series = {.n = 0};
    struct graph it = build(NODES, NULL);
    CUgraphNode nodes[NODES];
    CUDA_KERNEL_NODE_PARAMS_v2 params[NODES];
    size_t n = NODES;
    unsigned a = 3, b = 0;
    int words = DEVICE_WORDS;
    void *arguments[] = {&d->words, &a, &b, &words};
    MUST(d->cuGraphGetNodes(it.graph, nodes, &n));
    for (size_t i = 0; i < n; i++) {
        MUST(d->cuGraphKernelNodeGetParams_v2(nodes[i], &params[i]));
        params[i].kernelParams = arguments;
    }
    for (int t = 0; t < TIMES; t++) {
        uint64_t begin = device_now();
        start(&it);
        uint64_t launched = device_now();
        synchronize();
        b++;
        uint64_t again = device_now();
        for (size_t i = 0; i < n; i++)
            MUST(d->cuGraphExecKernelNodeSetParams_v2(it.exec, nodes[i], &params[i]));
        start(&it);
        uint64_t end = device_now();
        synchronize();
        if (t >= TIMES / 10)
            series_add(&series, ((double)(end - again) - (double)(launched - begin)) / (double)n);
    }
    destroy(&it);
    series_tell("host.patched_node", &series);
}

/* ---- host and GPU: how work begins, and how its end is heard of ---- */

static void set_flag(unsigned value) {
    CUdeviceptr at = d->gate + 4;
    int n = 1;
    void *params[] = {&at, &value, &n};
    MUST(d->cuLaunchKernel(d->fill, 1, 1, 1, 32, 1, 1, 0, d->stream, params, NULL));
}

/* A kernel that tells the host by itself that it ran, and the same waited for. */
static void measure_start(double small) {
    struct series seen = {.n = 0}, waited = {.n = 0};
    unsigned value = 1;
    for (int i = 0; i < 300; i++, value++) {
        set_flag(value);
        uint64_t begin = device_now();
        if (i % 2) {
            while (d->flag[1] != value)
                ;
            uint64_t end = device_now();
            synchronize();
            series_add(&seen, (double)(end - begin));
        } else {
            synchronize();
            series_add(&waited, (double)(device_now() - begin));
        }
    }
    double apart = series_apart(&seen);
    tell("gpu.start", series_median(&seen) - small, apart);
    tell("host.wake_up", series_median(&waited) - series_median(&seen),
         series_apart(&waited) + apart);
}

/* ---- GPU: what is between two ops ---- */

static CUevent before, behind;

/* Everything is there before it begins: it stands behind a kernel that the host lets end. */
static void hold(void) {
    static unsigned value;
    unsigned long long rounds = 4000000;
    CUdeviceptr out = d->other;
    value++;
    void *params[] = {&d->gate, &value, &rounds, &out};
    d->flag[0] = value - 1;
    MUST(d->cuLaunchKernel(d->spin, 1, 1, 1, 1, 1, 1, 0, d->stream, params, NULL));
    MUST(d->cuEventRecord(before, d->stream));
}

static double let_go(void) {
    float ms = 0;
    MUST(d->cuEventRecord(behind, d->stream));
    d->flag[0]++;
    synchronize();
    MUST(d->cuEventElapsedTime(&ms, before, behind));
    return (double)ms * 1e6;
}

static double eager_chain(int n) {
    hold();
    for (int i = 0; i < n; i++)
        launch();
    return let_go();
}

static double graph_chain(const struct graph *graphs, int n) {
    hold();
    for (int i = 0; i < n; i++)
        start(&graphs[i]);
    return let_go();
}

enum { PASSES = 40 };

static void measure_eager_gap(void) {
    enum { SHORT = 100, LONG = 400 };
    struct series series = {.n = 0};
    for (int i = 0; i < PASSES; i++) {
        double few = eager_chain(SHORT), many = eager_chain(LONG);
        if (i >= PASSES / 10)
            series_add(&series, (many - few) / (LONG - SHORT));
    }
    series_tell("gpu.eager_kernel", &series);
}

/* The slope from a short graph to a long one, by op. */
static void time_nodes(void (*other)(void), struct series *series) {
    enum { SHORT = 128, LONG = 512 };
    struct graph shorter = build(SHORT, other), longer = build(LONG, other);
    for (int i = 0; i < PASSES; i++) {
        double few = graph_chain(&shorter, 1), many = graph_chain(&longer, 1);
        if (i >= PASSES / 10)
            series_add(series, (many - few) / (LONG - SHORT));
    }
    destroy(&shorter);
    destroy(&longer);
}

static double measure_graph_gaps(void) {
    enum { NODES = 16, SHORT = 4, LONG = 24 };
    struct series kernel = {.n = 0}, memsets = {.n = 0}, records = {.n = 0}, seam = {.n = 0};
    struct graph graphs[LONG];
    time_nodes(NULL, &kernel);
    time_nodes(fill_memory, &memsets);
    time_nodes(record_node, &records);
    series_tell("gpu.graph_kernel", &kernel);
    double one = series_median(&kernel);
    tell("raw.memset", 2 * series_median(&memsets) - one, series_apart(&memsets));
    tell("gpu.record", 2 * series_median(&records) - one, series_apart(&records));
    for (int g = 0; g < LONG; g++)
        graphs[g] = build(NODES, NULL);
    for (int i = 0; i < PASSES; i++) {
        double few = graph_chain(graphs, SHORT), many = graph_chain(graphs, LONG);
        if (i >= PASSES / 10)
            series_add(&seam, (many - few) / (LONG - SHORT) - NODES * one);
    }
    for (int g = 0; g < LONG; g++)
        destroy(&graphs[g]);
    series_tell("gpu.graph_seam", &seam);
    return one;
}

int driver_part(void) {
    char name[128] = "";
    int version = 0;
    device_start(d);
    MUST(d->cuDeviceGetName(name, sizeof name, d->device));
    MUST(d->cuDriverGetVersion(&version));
    printf("text gpu %s\ntext cuda %d.%d\n", name, version / 1000, version % 1000 / 10);
    MUST(d->cuEventCreate(&before, CU_EVENT_DEFAULT));
    MUST(d->cuEventCreate(&behind, CU_EVENT_DEFAULT));
    MUST(d->cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    measure_calls("host.eager_memset", fill_memory);
    measure_calls("host.eager_copy", copy_memory);
    measure_calls("host.eager_record", record);
    measure_pageable_copy();
    measure_idle_sync();
    measure_build();
    measure_graph_launch();
    measure_patch();
    measure_eager_gap();
    measure_start(measure_graph_gaps());
    return 0;
}
