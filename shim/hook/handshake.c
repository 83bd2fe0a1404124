/*
 * Appends the lines of handshake.h. Any thread. Takes no lock, allocates nothing and uses no stdio.
 * Each line takes one open, one write and one close; a process writes three or four lines. Keeps
 * errno. Never called in a forked child.
 */
#define _GNU_SOURCE
#include "shim/hook/handshake.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/clean.h"
#include "shim/base/file.h"
#include "shim/base/process.h"
#include "shim/base/process_rank.h"
#include "shim/stats/gpus.h"
#include "shim/stats/report.h"

static char *put_text(char *at, const char *text) {
    size_t length = strlen(text);
    memcpy(at, text, length);
    return at + length;
}

static char *put_number(char *at, uint64_t number) {
    char digits[20];
    int count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    while (count)
        *at++ = digits[--count];
    return at;
}

/* `text` follows the numbers; NULL: none. False: nobody gets the line. */
static bool say(const char *state, const uint64_t *numbers, int count, const char *text) {
    const char *path = secure_getenv("CUSPLICE_HANDSHAKE");
    if (!path || !*path)
        return false;
    bool written = false;
    int error = errno;
    const char *why;
    int file = cus_file_open_output(path, CUS_FILE_THERE, &why);
    if (file >= 0) {
        char line[CUS_HANDSHAKE_LINE], *at = line;
        at = put_number(at, (uint64_t)getpid());
        *at++ = ' ';
        at = put_text(at, state);
        for (int i = 0; i < count; i++) {
            *at++ = ' ';
            at = put_number(at, numbers[i]);
        }
        for (const char *from = text ? text : ""; *from && at + 2 < line + sizeof line; from++) {
            if (from == text)
                *at++ = ' ';
            *at++ = *from == '\n' ? '?' : *from;
        }
        *at++ = '\n';
        /* If the write fails, the launcher misses the line. */
        written = cus_file_write(file, line, (size_t)(at - line), CUS_FILE_PATIENCE_MS);
        close(file);
    }
    errno = error;
    return written;
}

/* Runs before main, so that the launcher can tell a program without CUDA from a program into
 * which the library was never loaded. Only the first process writes: a process may start
 * thousands of others. */
__attribute__((constructor)) static void say_there(void) {
    const char *path = secure_getenv("CUSPLICE_HANDSHAKE");
    struct stat info;
    int error = errno;
    if (path && *path && stat(path, &info) == 0 && info.st_size == 0)
        say("there", NULL, 0, NULL);
    errno = error;
}

void cus_handshake_absent(void) {
    static bool told;
    if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
        say("absent", NULL, 0, NULL);
}

void cus_handshake_loaded(void) {
    say("loaded", NULL, 0, NULL);
}

void cus_handshake_on(void) {
    uint64_t rank = (uint64_t)(cus_process_rank() + 1);
    say("on", &rank, rank != 0, NULL);
}

void cus_handshake_off(void) {
    say("off", NULL, 0, NULL);
}

bool cus_handshake_verified(uint64_t launches, uint64_t different) {
    uint64_t numbers[2] = {launches, different};
    return say("verified", numbers, 2, NULL);
}

/* The name of the program's file; a tab in it would end it early. */
static size_t program_name(char *out, size_t bytes) {
    char exe[4096];
    ssize_t got = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[got > 0 ? got : 0] = 0;
    const char *slash = strrchr(exe, '/'), *name = slash ? slash + 1 : exe;
    size_t used = strnlen(name, bytes - 1);
    for (size_t i = 0; i < used; i++)
        out[i] = name[i];
    out[used] = 0;
    return cus_clean(out, used);
}

void cus_handshake_ran(uint64_t ops, uint64_t in_graphs, const struct cus_report *report) {
    char text[CUS_HANDSHAKE_LINE];
    uint64_t numbers[4] = {(uint64_t)(cus_process_rank() + 1), cus_process_age_ms(), ops,
                           in_graphs};
    const struct cus_report_break *top = report->n_breaks ? &report->breaks[0] : NULL;
    uint32_t gpus[CUS_GPUS];
    char *at = text + program_name(text, 128);
    *at++ = '\t';
    cus_gpu_show(gpus, cus_gpus(gpus), at);
    at += strlen(at);
    *at++ = '\t';
    *at = 0;
    if (top) {
        at = put_text(at, top->name); /* of CUS_REPORT_NAME bytes */
        at = put_text(at, *top->name ? ": " : "");
        size_t room = (size_t)(text + sizeof text - 1 - at), bytes = strnlen(top->what, room);
        memcpy(at, top->what, bytes);
        at[bytes] = 0;
    }
    say("ran", numbers, 4, text);
}

void cus_handshake_exit(uint64_t ops, uint64_t graphs) {
    uint64_t numbers[2] = {ops, graphs};
    say("exit", numbers, 2, NULL);
}

bool cus_handshake_unmet(const char *text) {
    return say("unmet", NULL, 0, text);
}

bool cus_handshake_steps(uint64_t had, uint64_t from) {
    uint64_t numbers[2] = {had, from};
    return say("steps", numbers, 2, NULL);
}

void cus_handshake_found(enum cus_found what, const char *text) {
    static const char *const states[] = {"front", "behind", "led", "passes", "presets"};
    say(states[what], NULL, 0, text);
}
