/*
 * A program that uses shim/include/cusplice.h: it tells cusplice about itself if the library is
 * loaded, and does the same work without it.
 */
#include "harness/scenario/sc.h"
#include "shim/include/cusplice.h"

/* The program marks its steps and never synchronises before the end. cusplice is suspended for a
 * part of each step. The program reads its counters, which count launches alone. */
int sc_run_app_marks(struct sc *sc) {
    struct cusplice_counters before = {0}, after = {0};
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", 64);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    unsigned steps = sc_steps(sc, 40);
    for (unsigned step = 0; step < steps; step++) {
        for (unsigned i = 0; i < 20; i++)
            sc_chain(sc, s, x, 3 + i, i, 64);
        cusplice_suspend();
        for (unsigned i = 0; i < 3; i++)
            sc_chain(sc, s, x, 5, step, 64);
        cusplice_resume();
        for (unsigned i = 0; i < 10; i++)
            sc_chain(sc, s, x, 7, i, 64);
        cusplice_force_break();
        sc_chain(sc, s, x, 9, 1, 64);
        cusplice_mark_step();
        if (step == steps / 2)
            cusplice_read_counters(&before, sizeof before);
    }
    size_t known = cusplice_read_counters(&after, sizeof after);
    if (!cusplice_interface() != !known || after.launches < before.launches ||
        after.in_graphs + after.eager > after.launches)
        sc_fail("counters of cusplice");
    OK(sc->cu.StreamSynchronize(s));
    sc_digest(sc);
    return 0;
}
