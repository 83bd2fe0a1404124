/*
 * guest VERB PATH: a program that launches kernels and has its own file, a database. It prints the
 * file's descriptor and the memory at the end. Status 1 if a call fails. One thread.
 *
 *   database   opens PATH first, then launches
 *   closes     launches, closes all descriptors above 2 as daemons do, opens PATH under all of
 *              the numbers that were closed, and launches again
 *   late       launches, opens PATH, writes a word to descriptor 2 (perhaps closed), launches
 *   until      launches until the file PATH exists
 *   handshake  launches, removes the file that CUSPLICE_HANDSHAKE names, and ends
 */
#define _GNU_SOURCE
#include <cuda.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 256, STEPS = 24, EACH = 12, NUMBERS = 64 };

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int code_ = (int)(call);                                                                   \
        if (code_) {                                                                               \
            printf("guest: line %d: %s: %d\n", __LINE__, #call, code_);                            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct guest {
    CUdeviceptr x;
    CUfunction chain;
    CUstream stream;
};

/* On the simulator any image holds all of kernels/. */
static void begin(struct guest *g) {
    CUcontext context;
    CUmodule module;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, "an image that holds every kernel"));
    CHECK(cuModuleGetFunction(&g->chain, module, "chain"));
    CHECK(cuMemAlloc(&g->x, N * sizeof(int)));
    CHECK(cuMemsetD32(g->x, 1, N));
    CHECK(cuStreamCreate(&g->stream, CU_STREAM_NON_BLOCKING));
}

static void work(struct guest *g) {
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < EACH; i++) {
            unsigned a = 3, b = (unsigned)i;
            int n = N;
            void *params[] = {&g->x, &a, &b, &n};
            CHECK(cuLaunchKernel(g->chain, N / 64, 1, 1, 64, 1, 1, 0, g->stream, params, NULL));
        }
        CHECK(cuStreamSynchronize(g->stream));
    }
}

static void end(struct guest *g) {
    unsigned host[N], sum = 0;
    CHECK(cuMemcpyDtoH(host, g->x, sizeof host));
    for (int i = 0; i < N; i++)
        sum = sum * 31 + host[i];
    printf("%08x\n", sum);
}

static int open_database(const char *path) {
    int fd = open(path, O_RDWR);
    CHECK(fd < 0);
    return fd;
}

static void close_and_open(const char *path) {
    int fd = -1;
    for (int i = 3; i < 1024; i++)
        close(i);
    while (fd < NUMBERS)
        fd = open_database(path);
}

int main(int argc, char **argv) {
    struct guest g;
    int fd = -1;
    if (argc != 3)
        return 2;
    if (strcmp(argv[1], "database") == 0)
        fd = open_database(argv[2]);
    begin(&g);
    work(&g);
    while (strcmp(argv[1], "until") == 0 && access(argv[2], F_OK) != 0)
        work(&g);
    if (strcmp(argv[1], "closes") == 0)
        close_and_open(argv[2]);
    if (strcmp(argv[1], "late") == 0) {
        static const char word[] = "guest: a word for standard error\n";
        fd = open_database(argv[2]);
        if (write(2, word, sizeof word - 1) < 0)
            puts("standard error is closed");
    }
    if (strcmp(argv[1], "handshake") == 0)
        CHECK(unlink(getenv("CUSPLICE_HANDSHAKE")));
    work(&g);
    end(&g);
    printf("descriptor %d\n", fd);
    return 0;
}
