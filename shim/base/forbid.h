/*
 * Names that a file on the hot path must not contain. Include this header last: a later header that
 * contains such a name does not compile, while macros defined before still work.
 *
 * stdio belongs to the program: its buffers, its locks, its stdout. malloc may be the program's own
 * and may call CUDA. The library must not end or change the process. Only base/file.h, which trusts
 * no path, opens files. Allowed in their place: base/log.h, base/mem.h, base/file.h, write(2).
 */
#ifndef CUSPLICE_BASE_FORBID_H
#define CUSPLICE_BASE_FORBID_H

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef assert
#undef stdin
#undef stdout
#undef stderr
#undef alloca

/* clang-format off */
#pragma GCC poison printf fprintf vprintf vfprintf dprintf vdprintf asprintf vasprintf sprintf vsprintf
#pragma GCC poison puts fputs putchar fputc putc fwrite fread fopen freopen fclose fflush getline stdin stdout stderr perror
#pragma GCC poison malloc calloc realloc reallocarray free strdup strndup posix_memalign aligned_alloc alloca
#pragma GCC poison abort exit _exit _Exit quick_exit assert raise
#pragma GCC poison openat creat mkstemp tmpfile opendir
#pragma GCC poison setenv putenv unsetenv clearenv getenv chdir fork vfork system popen
#pragma GCC poison signal sigaction sleep usleep strtok strerror rand srand
/* clang-format on */

#endif
