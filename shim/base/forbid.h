/*
 * What a file on the target's hot path must not even name. Include it last: a header that names one
 * of these behind it does not compile, a macro that was defined before it still works.
 *
 * stdio belongs to the program (its buffers, its locks, its stdout); malloc may be the program's
 * own and may call CUDA; ending or reshaping the process is not ours to do; a file is opened by
 * base/file.h alone, which believes nobody. What is allowed instead: base/log.h, base/mem.h,
 * base/file.h, write(2).
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
