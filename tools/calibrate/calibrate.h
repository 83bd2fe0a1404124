/*
 * The measuring parts of `cusplice calibrate`, which starts this command again for each. A part
 * prints lines: a name, the median, and the distance of the quartiles, in ns; or `text NAME
 * WORDS...`. It never links to the driver: dlopen finds it.
 */
#ifndef CUSPLICE_TOOLS_CALIBRATE_CALIBRATE_H
#define CUSPLICE_TOOLS_CALIBRATE_CALIBRATE_H

enum calibrate_part {
    CALIBRATE_DRIVER, /* the driver alone */
    CALIBRATE_LOOP,   /* a loop whose launches are timed one by one, with the library or without */
    CALIBRATE_RECORDED, /* the same loop for a recording, not timed */
};

/* Ops in a step of the loop, every so many of them a memset; all others are this kernel. */
enum { CALIBRATE_STEP = 512, CALIBRATE_MEMSETS = 32 };
#define CALIBRATE_KERNEL "chain"
/* That kernel and two others, as text for any GPU since Maxwell. The self-test of `cusplice doctor`
 * loads it, too. */
extern const char calibrate_ptx[];

/* The exit status of the process. */
int calibrate_run(enum calibrate_part part);

#endif
