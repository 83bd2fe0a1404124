/*
 * The token loop of an inference engine: small values go to the device from the stack, one comes
 * back and is part of the next step, and memory is allocated in stream order around it all.
 *
 * Main thread.
 */
#include "harness/scenario/sc.h"

enum { N = 128 };

/* A value of 1, 2 or 4 bytes; the source is used again at once. */
static void put(struct sc *sc, CUstream s, CUdeviceptr to, unsigned value, size_t bytes) {
    unsigned source = value;
    OK(sc->cu.MemcpyHtoDAsync(to, &source, bytes, s));
    source = 0xEEEEEEEE;
}

int sc_run_tokens(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), ids = sc_device(sc, "ids", 64);
    unsigned token = 1, odd = 0;
    unsigned short part = 0;
    uint64_t said = 0;
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 60); step++) {
        CUdeviceptr p;
        put(sc, s, ids, token, 4);
        sc_chain(sc, s, x, 3, step, N);
        put(sc, s, ids + 6, token >> 3, 2);
        put(sc, s, ids + 9, token >> 5, 1);
        sc_chain(sc, s, x, 5, step, N);
        OK(sc->cu.MemcpyDtoDAsync(x + 16, ids, 16, s));
        OK(sc->cu.MemAllocAsync(&p, 512, s));
        OK(sc->cu.MemcpyDtoDAsync(p, x, 512, s));
        sc_chain(sc, s, p, 7, step, N);
        OK(sc->cu.MemcpyDtoDAsync(x, p, 512, s));
        OK(sc->cu.MemFreeAsync(p, s));
        if (step % 16 == 15) { /* forms that are no memsets: three bytes, an odd place */
            put(sc, s, ids + 20, token, 3);
            put(sc, s, ids + 33, token, 4);
        }
        sc_chain(sc, s, x, 9, step, N);
        /* The host goes on when the value is there. */
        OK(sc->cu.MemcpyDtoHAsync(&token, x + 64, 4, s));
        OK(sc->cu.MemcpyDtoHAsync(&part, x + 70, 2, s));
        said = sc_hash(sc_hash(said, &token, 4), &part, 2);
        odd += token & 1;
    }
    sc_say(sc, "tokens: %016llx, %u odd", (unsigned long long)said, odd);
    sc_digest(sc);
    return 0;
}
