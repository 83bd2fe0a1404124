/*
 * Asks the C++ runtime for a name. A short name can stand for gigabytes or take for ever, so a
 * child with bounds demangles names with expressions or many references. names.c and kind_names.c
 * call it, on one thread. A name that fails stays mangled.
 */
#define _GNU_SOURCE
#include "tools/trace/demangle.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of the C++ runtime, which the tools are linked with. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *bytes, int *status);

enum {
    TAME = 8,          /* references at most: each doubles the length of a name at worst */
    TIME_US = 100000,  /* of a child, for a name */
    MEMORY = 32 << 20, /* of a child, more than the tool has */
    CHILDREN = 4,      /* that ended over a name, after which no more are started */
};

static struct {
    int socket;
    pid_t pid; /* 0: none */
    unsigned ended;
} child;

/* Without "_Z" a name is taken for a type: "f" would be "float". */
static char *ask_runtime(const char *mangled) {
    char *name = strncmp(mangled, "_Z", 2) == 0 ? __cxa_demangle(mangled, NULL, NULL, NULL) : NULL;
    if (!name || strlen(name) < DEMANGLE_TO)
        return name;
    free(name);
    return NULL;
}

/* An expression, or what looks like one: _Z3aadIXsraDsfD keeps the runtime busy for ever. */
static bool may_be_expression(const char *at) {
    return *at == 'X' || strncmp(at, "sr", 2) == 0 || strncmp(at, "Dt", 2) == 0 ||
           strncmp(at, "DT", 2) == 0;
}

/* References to what stood before are S_, S0_, ..., T_, T0_, ...; lists that are written out once
 * for each of their elements have a letter pair. */
static bool is_tame(const char *mangled) {
    unsigned references = 0;
    for (const char *at = mangled; *at; at++) {
        if (*at == 'S' || *at == 'T') {
            const char *end = at + 1 + strspn(at + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
            references += *end == '_';
        }
        if (strncmp(at, "Dp", 2) == 0 || strncmp(at, "sp", 2) == 0 || strncmp(at, "sZ", 2) == 0 ||
            (*at == 'f' && at[1] && strchr("lrLR", at[1])))
            references += TAME + 1;
        if (may_be_expression(at))
            return false;
    }
    return references <= TAME && strlen(mangled) <= 1024;
}

/* ---- the child ---- */

static void bound_memory(void) {
    struct rlimit limit;
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || getrlimit(RLIMIT_DATA, &limit) != 0)
        _exit(1);
    if (fscanf(file, "%*u %*u %*u %*u %*u %llu", &pages) != 1)
        _exit(1);
    fclose(file);
    rlim_t bound = pages * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY;
    limit.rlim_cur = bound < limit.rlim_max ? bound : limit.rlim_max;
    setrlimit(RLIMIT_DATA, &limit);
}

/* A name for each message; the answer is a 1 and the text, or a 0. */
static _Noreturn void serve(int from) {
    static char mangled[DEMANGLE_FROM + 1], answer[DEMANGLE_TO + 1];
    const struct itimerval bound = {{0, 0}, {0, TIME_US}}, none = {{0, 0}, {0, 0}};
    ssize_t n;
    signal(SIGPROF, SIG_DFL);
    bound_memory();
    while ((n = recv(from, mangled, DEMANGLE_FROM, 0)) > 0) {
        mangled[n] = 0;
        setitimer(ITIMER_PROF, &bound, NULL);
        char *name = ask_runtime(mangled);
        setitimer(ITIMER_PROF, &none, NULL);
        size_t bytes = name ? strlen(name) : 0;
        answer[0] = name != NULL;
        if (name)
            memcpy(answer + 1, name, bytes);
        free(name);
        if (send(from, answer, bytes + 1, MSG_NOSIGNAL) < 0)
            break;
    }
    _exit(0);
}

static bool start(void) {
    int ends[2];
    if (child.pid)
        return true;
    if (child.ended == CHILDREN || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    child.pid = fork();
    if (child.pid == 0) {
        close(ends[0]);
        serve(ends[1]);
    }
    close(ends[1]);
    child.socket = ends[0];
    if (child.pid > 0)
        return true;
    close(ends[0]);
    child.pid = 0;
    return false;
}

static void ended(void) {
    close(child.socket);
    while (waitpid(child.pid, NULL, 0) < 0 && errno == EINTR)
        ;
    child.pid = 0;
    child.ended++;
}

static char *ask_child(const char *mangled) {
    static char answer[DEMANGLE_TO + 1];
    if (!start())
        return NULL;
    ssize_t n = send(child.socket, mangled, strlen(mangled), MSG_NOSIGNAL);
    while (n > 0 && (n = recv(child.socket, answer, sizeof answer, 0)) < 0 && errno == EINTR)
        n = 1;
    if (n <= 0) {
        ended();
        return NULL;
    }
    return answer[0] ? strndup(answer + 1, (size_t)n - 1) : NULL;
}

char *demangle(const char *mangled) {
    size_t bytes = strlen(mangled);
    if (bytes < 3 || bytes > DEMANGLE_FROM || strncmp(mangled, "_Z", 2) != 0)
        return NULL;
    return is_tame(mangled) ? ask_runtime(mangled) : ask_child(mangled);
}
