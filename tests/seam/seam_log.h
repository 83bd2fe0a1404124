/*
 * One log of the fake driver, the fake engine and the programs under test, in the order of events:
 * each line is appended to the file SEAM_LOG by one write(2).
 */
#ifndef CUSPLICE_TESTS_SEAM_LOG_H
#define CUSPLICE_TESTS_SEAM_LOG_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((format(printf, 1, 2))) static inline void seam_log(const char *format, ...) {
    const char *path = getenv("SEAM_LOG");
    if (!path)
        return;
    int error = errno;
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (file >= 0) {
        if (write(file, line, (size_t)length) != length)
            abort();
        close(file);
    }
    errno = error;
}

#endif
