/*
 * A loop of launches that runs without the library, with it, and recorded. calibrate_run calls it;
 * verb_calibrate.c compares the runs. It never times a recorded run itself.
 */
#include <stdio.h>

#include "tools/calibrate/calibrate.h"
#include "tools/calibrate/device.h"

enum { STEPS = 40, TIMED = 20 };

static void op(struct device *d, int i) {
    if (i % CALIBRATE_MEMSETS == CALIBRATE_MEMSETS - 1)
        device_memset(d);
    else
        device_chain(d, (unsigned)i);
}

int loop_part(int timed) {
    static struct device device;
    static struct series clock, launch;
    struct device *d = &device;
    device_start(d);
    for (int step = 0; step < STEPS; step++) {
        uint64_t last = timed ? device_now() : 0;
        for (int i = 0; i < CALIBRATE_STEP; i++) {
            op(d, i);
            if (!timed)
                continue;
            uint64_t now = device_now();
            if (step >= STEPS - TIMED && i % 4 == 0)
                series_add(&launch, (double)(now - last));
            last = now;
        }
        MUST(d->cuStreamSynchronize(d->stream));
    }
    for (int i = 0; timed && i < 1000; i++) {
        uint64_t last = device_now();
        series_add(&clock, (double)(device_now() - last));
    }
    if (timed)
        tell("raw.loop_launch", series_median(&launch) - series_median(&clock),
             series_apart(&launch));
    return 0;
}
