/*
 * Stands in for libcusplice.so in the launcher's tests: writes what FAKE_SAYS lists
 * ("loaded,on,exit 3 0") into the handshake file, and sets an environment variable that shows the
 * preload.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void come_up(void) {
    const char *file = getenv("CUSPLICE_HANDSHAKE"), *says = getenv("FAKE_SAYS");
    setenv("FAKE_WAS_HERE", "yes", 1);
    if (!file || !says)
        return;
    int fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
    while (fd >= 0 && *says) {
        int bytes = (int)strcspn(says, ",");
        dprintf(fd, "%d %.*s\n", (int)getpid(), bytes, says);
        says += bytes + (says[bytes] == ',');
    }
    if (fd >= 0)
        close(fd);
}
