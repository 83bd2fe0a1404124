/* Kernels that do not do the same twice, and device state that the host cannot see. */
#include "harness/scenario/sc.h"

enum { N = 64, CHAINS = 6 };

/* A time stamp among ops that are the same each time. The digest leaves the stamp's memory out.
 * Main thread. */
int sc_run_unsteady(struct sc *sc) {
    CUstream s;
    CUdeviceptr when;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.MemAlloc(&when, 8));
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 30); step++) {
        for (unsigned i = 0; i < CHAINS; i++)
            sc_chain(sc, s, x, 3 + i, i, N);
        OK(sc_launch(sc, sc->fn[SC_stamp], 1, 1, 0, s, (void *[]){&when}));
        for (unsigned i = 0; i < CHAINS; i++)
            sc_chain(sc, s, x, 5, 100 * step + i, N);
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}
