/* The launches of launch.cu, for a program built with nvcc --default-stream per-thread. */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#define SIMRT_PER_THREAD
#include "tests/unit/simrt/launch.cu"
