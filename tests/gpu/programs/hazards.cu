/*
 * Launches whose behaviour as graph nodes only a GPU can show (HAZARDS A22, A26, A7): kernels that
 * print, parameters larger than 4 KiB, streams with attributes. tests/gpu/cases.py runs it plain
 * and preloaded; it knows nothing of cusplice. Prints one JSON line after the kernels' output.
 */
#include <cuda_runtime.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "tests/gpu/programs/hazard_kernels.h"

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t status_ = (call);                                                              \
        if (status_ != cudaSuccess) {                                                              \
            fprintf(stderr, "hazards: %s: %s (line %d)\n", #call, cudaGetErrorString(status_),     \
                    __LINE__);                                                                     \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

static uint64_t hash_of(const void *data, size_t bytes) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return hash;
}

/* Launches that print, a synchronisation behind every `sync_every` of them (0: one at the end). The
 * buffer is as large as it is when nothing is said. */
static int print(unsigned launches, unsigned sync_every) {
    cudaStream_t stream;
    size_t fifo = 0;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaDeviceGetLimit(&fifo, cudaLimitPrintfFifoSize);
    for (unsigned i = 0; i < launches; i++) {
        hazard_print<<<1, PRINT_THREADS, 0, stream>>>(i);
        if (sync_every && i % sync_every == sync_every - 1)
            CHECK(cudaStreamSynchronize(stream));
    }
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    printf("{\"program\": \"hazards\", \"mode\": \"print\", \"launches\": %u, \"lines\": %u, "
           "\"fifo\": %zu}\n",
           launches, launches * PRINT_THREADS, fifo);
    return 0;
}

/* One launch with a parameter of N bytes that nothing else has, and what it has to sum up to. */
template <unsigned N>
static void launch_bytes(void (*kernel)(const hazard_bytes<N>), cudaStream_t stream,
                         unsigned long long *out, unsigned seed,
                         std::vector<unsigned long long> *wanted) {
    static hazard_bytes<N> bytes; /* overwritten behind the call */
    unsigned long long sum = 0;
    uint32_t random = seed * 2654435761u + 1;
    memcpy(bytes.byte, &out, sizeof out);
    for (unsigned i = sizeof out; i < N; i++) {
        random = random * 1664525u + 1013904223u;
        bytes.byte[i] = (unsigned char)(random >> 24);
        sum += hazard_byte(bytes.byte[i], i);
    }
    wanted->push_back(sum);
    kernel<<<1, 128, 0, stream>>>(bytes);
}

/* Four launches of each size a step, with other bytes each time. */
static int params(unsigned steps) {
    const unsigned each = 4, results = steps * each * 3;
    cudaStream_t stream;
    unsigned long long *out;
    std::vector<unsigned long long> wanted, found(results);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&out, results * sizeof *out));
    CHECK(cudaMemset(out, 0, results * sizeof *out));
    CHECK(cudaDeviceSynchronize());
    for (unsigned step = 0, n = 0; step < steps; step++) {
        for (unsigned i = 0; i < each; i++) {
            launch_bytes<4096>(hazard_params_4096, stream, out + n, n, &wanted);
            n++;
            launch_bytes<4097>(hazard_params_4097, stream, out + n, n, &wanted);
            n++;
            launch_bytes<32764>(hazard_params_32764, stream, out + n, n, &wanted);
            n++;
        }
        CHECK(cudaGetLastError());
        CHECK(cudaStreamSynchronize(stream));
    }
    CHECK(cudaMemcpy(found.data(), out, results * sizeof *out, cudaMemcpyDeviceToHost));
    unsigned wrong = 0;
    for (unsigned i = 0; i < results; i++)
        wrong += found[i] != wanted[i];
    printf("{\"program\": \"hazards\", \"mode\": \"params\", \"launches\": %u, \"wrong\": %u, "
           "\"hash\": \"%016llx\"}\n",
           results, wrong, (unsigned long long)hash_of(found.data(), results * sizeof found[0]));
    return 0;
}

/* The access policy window of a stream, and what the stream says it is. */
static void set_window(cudaStream_t stream, void *base, size_t bytes, float ratio) {
    cudaStreamAttrValue value = {};
    value.accessPolicyWindow.base_ptr = base;
    value.accessPolicyWindow.num_bytes = bytes;
    value.accessPolicyWindow.hitRatio = ratio;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    CHECK(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
}

/* A stream of the highest priority with a window; both stay for half of the steps, then the window
 * is another one. A second stream of ordinary priority, without one, does the same steps. */
static int attributes(unsigned steps) {
    enum { WORDS = 1 << 14, LAUNCHES = 24, STREAMS = 2 };
    cudaStream_t stream[STREAMS];
    unsigned *x[STREAMS];
    int least = 0, greatest = 0, priority = 0, window = 0;
    std::vector<unsigned> found(WORDS * STREAMS);
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaDeviceGetAttribute(&window, cudaDevAttrMaxAccessPolicyWindowSize, 0));
    for (unsigned s = 0; s < STREAMS; s++) {
        CHECK(
            cudaStreamCreateWithPriority(&stream[s], cudaStreamNonBlocking, s ? least : greatest));
        CHECK(cudaMalloc(&x[s], WORDS * sizeof **x));
        CHECK(cudaMemset(x[s], 1, WORDS * sizeof **x));
    }
    CHECK(cudaDeviceSynchronize());
    size_t bytes = WORDS * sizeof **x;
    if (window > 0 && (size_t)window < bytes)
        bytes = (size_t)window;
    set_window(stream[0], x[0], bytes, 1.0f);
    for (unsigned step = 0; step < steps; step++) {
        if (step == steps / 2)
            set_window(stream[0], x[0], bytes / 2, 0.5f);
        for (unsigned s = 0; s < STREAMS; s++) {
            for (unsigned i = 0; i < LAUNCHES; i++)
                hazard_chain<<<WORDS / 256, 256, 0, stream[s]>>>(x[s], 2 * i + 3, step + i, WORDS);
            CHECK(cudaStreamSynchronize(stream[s]));
        }
    }
    CHECK(cudaGetLastError());
    cudaStreamAttrValue value = {};
    CHECK(cudaStreamGetAttribute(stream[0], cudaStreamAttributeAccessPolicyWindow, &value));
    CHECK(cudaStreamGetPriority(stream[0], &priority));
    for (unsigned s = 0; s < STREAMS; s++)
        CHECK(cudaMemcpy(&found[s * WORDS], x[s], WORDS * sizeof **x, cudaMemcpyDeviceToHost));
    printf("{\"program\": \"hazards\", \"mode\": \"attributes\", \"launches\": %u, "
           "\"priority\": %d, \"window\": %zu, \"ratio\": %.2f, \"hash\": \"%016llx\"}\n",
           steps * LAUNCHES * STREAMS, priority, value.accessPolicyWindow.num_bytes,
           value.accessPolicyWindow.hitRatio,
           (unsigned long long)hash_of(found.data(), found.size() * sizeof found[0]));
    return 0;
}

static void usage(FILE *to) {
    fputs("usage: hazards --print [--launches N] [--sync-every N]\n"
          "       hazards --params [--steps N]\n"
          "       hazards --attributes [--steps N]\n",
          to);
}

int main(int argc, char **argv) {
    static const struct option names[] = {{"print", 0, NULL, 'p'},      {"params", 0, NULL, 'b'},
                                          {"attributes", 0, NULL, 'a'}, {"launches", 1, NULL, 'l'},
                                          {"sync-every", 1, NULL, 'y'}, {"steps", 1, NULL, 's'},
                                          {"help", 0, NULL, 'h'},       {NULL, 0, NULL, 0}};
    unsigned launches = 10000, sync_every = 0, steps = 20;
    int mode = 0;
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (c) {
        case 'l':
            launches = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'y':
            sync_every = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 's':
            steps = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'p':
        case 'b':
        case 'a':
            mode = c;
            break;
        case 'h':
            usage(stdout);
            return 0;
        default:
            usage(stderr);
            return 2;
        }
    }
    if (optind != argc || !mode || !launches || !steps) {
        usage(stderr);
        return 2;
    }
    return mode == 'p'   ? print(launches, sync_every)
           : mode == 'b' ? params(steps)
                         : attributes(steps);
}
