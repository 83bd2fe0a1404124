/*
 * A libcuda.so.1 that is not right: FAKE_DRIVER says whether cuInit hangs, crashes, exits, or
 * returns that number. Its devices are none.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cuDriverGetVersion(int *version);
int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuDeviceGet(void);
int cuDeviceGetName(void);
int cuDeviceTotalMem_v2(void);
int cuDeviceGetAttribute(void);

int cuDriverGetVersion(int *version) {
    *version = 13000;
    return 0;
}

int cuInit(unsigned flags) {
    const char *what = getenv("FAKE_DRIVER");
    (void)flags;
    if (what && strcmp(what, "hang") == 0)
        for (;;)
            pause();
    if (what && strcmp(what, "exit") == 0)
        _exit(3);
    if (what && strcmp(what, "crash") == 0)
        raise(SIGSEGV);
    return what ? atoi(what) : 0;
}

int cuDeviceGetCount(int *count) {
    return *count = 0;
}

int cuDeviceGet(void) {
    return 101;
}

int cuDeviceGetName(void) {
    return 101;
}

int cuDeviceTotalMem_v2(void) {
    return 101;
}

int cuDeviceGetAttribute(void) {
    return 101;
}
