/*
 * Questions to a driver. The same program runs on a GPU (//tests/unit/sim/answers:answers; h200.txt
 * has the answers) and as a unit test on the simulator.
 *
 * Each ask_* function prints a line for each question, without addresses or times. The simulator
 * must answer as the GPU did. With CUSIM_GRAPH_RULES=documented it may differ where documented.txt
 * says so, with reasons.
 */
#ifndef TESTS_UNIT_SIM_ANSWERS_ANSWERS_H
#define TESTS_UNIT_SIM_ANSWERS_ANSWERS_H

#include <cuda.h>

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What all questions use; made by answers_open. */
struct answers {
    FILE *out;
    CUcontext ctx;
    CUmodule module;
    CUfunction touch;            /* (pointer): does nothing */
    CUdeviceptr buffer;          /* 4096 bytes */
    CUdeviceptr second;          /* 4096 bytes */
    CUdeviceptr managed, pooled; /* 256 bytes each */
    unsigned *pinned;            /* 4096 bytes */
    CUstream stream, other;      /* non-blocking */
    CUstream blocking;
    CUevent event, event2; /* event was recorded outside of captures */
};
extern struct answers answers;

/* PTX with `touch (u64)` and `pair (u64, u32)`, neither of which does anything. */
extern const char answers_image[];

#define ASK(call) fprintf(answers.out, "%s = %d\n", #call, (int)(call))
#define NOTE(...) fprintf(answers.out, __VA_ARGS__)
/* Must succeed: a line appears only where it does not. */
#define DO(call)                                                                                   \
    do {                                                                                           \
        CUresult do_result_ = (call);                                                              \
        if (do_result_ != CUDA_SUCCESS)                                                            \
            fprintf(answers.out, "UNEXPECTED %s = %d\n", #call, (int)do_result_);                  \
    } while (0)

CUresult answers_launch(CUfunction function, CUstream stream);
CUresult answers_end(CUstream stream); /* ends a capture and destroys its graph */

void answers_open(FILE *out);
void answers_close(void);
void ask_resolver(void);
void ask_launch(void);
void ask_function(void);
void ask_context(void);
void ask_pointer(void);
void ask_memory(void);
void ask_event(void);
void ask_capture(void);
void ask_unsafe(void);
void ask_node(void);
void ask_exec(void);
void ask_end(void); /* resets the primary context: last */
void ask_all(FILE *out);

#ifdef __cplusplus
}
#endif

#endif
