/*
 * Reads /proc/PID/stat. Any thread, no lock, no allocation.
 */
#include "shim/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/file.h"

uint64_t cus_process_start(long pid) {
    char text[1024], path[40] = "/proc/self/stat";
    int saved = errno;
    if (pid)
        snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    int fd = cus_file_open(path, O_RDONLY, 0);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    errno = saved;
    text[got > 0 ? got : 0] = 0;
    /* Fields are counted after the program's name, which may contain anything and ends at the
     * last ')'. The 3rd field is the state, the 22nd the start. */
    const char *at = strrchr(text, ')');
    if (!at || !at[1] || at[2] == 'Z' || at[2] == 'X')
        return 0;
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    uint64_t ticks = 0;
    for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++)
        ticks = ticks * 10 + (uint64_t)(*at - '0');
    return ticks;
}

uint64_t cus_process_age_ms(void) {
    struct timespec now;
    uint64_t ticks = cus_process_start(0);
    long hz = sysconf(_SC_CLK_TCK);
    if (!ticks || clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        return 0;
    uint64_t start = ticks * 1000 / (uint64_t)(hz > 0 ? hz : 100);
    uint64_t at = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    return at > start ? at - start : 0;
}
