/* A program that is linked to libcuda: the dynamic linker binds its calls. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "tests/seam/probe.h"

static void elf(void) {
    CHECK(cuInit(0) == CUDA_SUCCESS);
    errno = 5;
    CHECK(cuLaunchKernel((CUfunction)0xf1, 1, 2, 3, 4, 5, 6, 7, (CUstream)0x51, (void **)0x9,
                         (void **)0xa) == CUDA_SUCCESS);
    CHECK(errno == 5);
    CHECK(cuEventRecord((CUevent)0xe, (CUstream)0x51) == CUDA_SUCCESS);
    CHECK(errno == 5);
    CHECK(cuStreamSynchronize((CUstream)0x51) == CUDA_SUCCESS);
    CHECK(errno == 5);
    int count;
    CHECK(cuDeviceGetCount(&count) == CUDA_SUCCESS);
}

/* The kill switch: nothing of the library acts. */
static void off(void) {
    CHECK(cuInit(0) == CUDA_SUCCESS);
    CHECK(cuLaunchKernel((CUfunction)0xf1, 1, 2, 3, 4, 5, 6, 7, (CUstream)0x51, NULL, NULL) ==
          CUDA_SUCCESS);
    CHECK(cuStreamSynchronize((CUstream)0x51) == CUDA_SUCCESS);
    CHECK(cuMemFree(0x1000) == CUDA_SUCCESS);
    void *by_default = dlsym(RTLD_DEFAULT, "cuLaunchKernel");
    Dl_info info;
    CHECK(dladdr(by_default, &info) && strstr(info.dli_fname, "libcuda.so"));
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    if (strcmp(argv[1], "elf") == 0)
        elf();
    else if (strcmp(argv[1], "off") == 0)
        off();
    else
        CHECK(!"a known probe");
    return 0;
}
