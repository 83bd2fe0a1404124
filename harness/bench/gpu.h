/*
 * The CUDA calls that hostloop needs. gpu_runtime.cu implements them with the runtime (cudart
 * static or shared), gpu_driver.c with the driver.
 *
 * Each function makes the one call that its name says. If a call fails, the function prints the
 * error on stderr and ends the program with status 2. The program calls gpu_start first. After
 * gpu_start any thread may call the others; threads share only the kernels.
 */
#ifndef CUSPLICE_HARNESS_BENCH_GPU_H
#define CUSPLICE_HARNESS_BENCH_GPU_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KERNELS = 50, EAGER = KERNELS, BLOCK = 32, WORDS = 64 };

typedef void *gpu_stream; /* NULL: the legacy stream */
typedef void *gpu_event;
typedef void *gpu_graph;
typedef void *gpu_node;
typedef void *gpu_exec;

/* One launch of kernel 0..KERNELS-1, or EAGER, over the words of a buffer. */
struct gpu_launch {
    unsigned *state;
    unsigned kernel, grid, block, shared, scalar; /* shared: bytes of dynamic shared memory */
};

extern const char *const gpu_api; /* "runtime" or "driver" */

void gpu_start(void);   /* makes the context, and loads code if that is done by hand */
void gpu_thread(void);  /* called at the start of each further thread */
void gpu_wait(void);    /* waits for all submitted work */
void gpu_checked(void); /* checks for an error of an earlier launch */
size_t gpu_used(void);  /* bytes of device memory in use, by any process */

unsigned *gpu_buffer(void); /* WORDS words, every byte 1 */
void gpu_read(unsigned host[WORDS], const unsigned *state);

gpu_stream gpu_stream_new(int nonblocking);
void gpu_stream_wait(gpu_stream stream);

void gpu_launch(gpu_stream stream, const struct gpu_launch *launch);
void gpu_set(gpu_stream stream, void *to, int byte, size_t bytes);
void gpu_copy(gpu_stream stream, void *to, const void *from, size_t bytes);

void *gpu_memory(size_t bytes);
/* From pageable memory of the host. */
void gpu_upload(gpu_stream stream, void *to, const void *from, size_t bytes);

/* Stream-ordered memory of the device's default pool. */
void *gpu_alloc(gpu_stream stream, size_t bytes);
void gpu_free(gpu_stream stream, void *memory);
size_t gpu_pool_most(void); /* the most bytes that the pool ever had */

gpu_event gpu_event_new(int timed);
void gpu_event_record(gpu_event event, gpu_stream stream);
/* What the stream gets from now on runs behind the last record of the event. */
void gpu_event_wait(gpu_event event, gpu_stream stream);
double gpu_event_us(gpu_event from, gpu_event to); /* both events must have completed */

/* Graphs by hand: each new node follows one other node, or none (NULL). */
gpu_graph gpu_graph_new(void);
gpu_node gpu_graph_launch(gpu_graph graph, gpu_node behind, const struct gpu_launch *launch);
gpu_node gpu_graph_set(gpu_graph graph, gpu_node behind, void *to, int byte, size_t bytes);
gpu_node gpu_graph_copy(gpu_graph graph, gpu_node behind, void *to, const void *from, size_t bytes);
gpu_node gpu_graph_record(gpu_graph graph, gpu_node behind, gpu_event event);
void gpu_graph_edge(gpu_graph graph, gpu_node before, gpu_node node); /* one more */
/* Also uploads it, and waits for the stream. */
gpu_exec gpu_exec_new(gpu_graph graph, gpu_stream stream);
void gpu_exec_launch(gpu_exec exec, gpu_stream stream);
void gpu_exec_patch(gpu_exec exec, gpu_node node, const struct gpu_launch *launch);

#ifdef __cplusplus
}
#endif

#endif
