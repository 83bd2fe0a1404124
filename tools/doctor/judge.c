/*
 * Starts the self-test's program with the library, reads what it and the library said, and judges.
 * doctor_run gathers by it, once; the table calls its probes. It never calls the driver itself.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/base/options.h"
#include "tools/cli/temporary.h"
#include "tools/doctor/probe.h"
#include "tools/trace/settings.h"

enum { TEXT = 1 << 18 }; /* bytes that are read of each file */

/* Files that the program writes: memory, and one that the library finds by its name. */
struct files {
    int out, err;
    char handshake[PATH_MAX];
};

/* ---- in the child ---- */

/* The built-in settings, but what says whom the user trusts. */
static void set_settings(void) {
    struct cus_options options;
    cus_options_load(&options, false, NULL, NULL);
    bool driver = options.trust_driver, interposers = options.trust_interposers;
    cus_options_free(&options);
    settings_forget();
    settings_set("mode", "piecewise");
    settings_set("log", "warn");
    settings_set("cache_dir", "");
    settings_set("eager", "no_kernel_of_it"); /* else the log says that there is no rule */
    settings_set("demote", "no");             /* a noisy moment is no reason */
    settings_set("hold_us", "100000");
    settings_set("trust_driver", driver ? "yes" : "no");
    settings_set("trust_interposers", interposers ? "yes" : "no");
}

static void become(void *context) {
    const struct files *files = context;
    char *argv[] = {"cusplice", "doctor", DOCTOR_PART, NULL};
    set_settings();
    if (*files->handshake)
        setenv("CUSPLICE_HANDSHAKE", files->handshake, 1);
    setenv("LD_PRELOAD", doctor_facts->asked->preload, 1);
    dup2(files->out, STDOUT_FILENO);
    dup2(files->err, STDERR_FILENO);
    doctor_facts->test.ran = true;
    execv("/proc/self/exe", argv);
    doctor_facts->test.ran = false;
}

/* ---- what was said ---- */

static void take_line(struct doctor_test *test, const char *line) {
    const struct {
        const char *word;
        int *number;
    } numbers[] = {
        {"result", &test->result},
        {"library", &test->library},
        {"global", &test->routes[DOCTOR_GLOBAL]},
        {"dlsym", &test->routes[DOCTOR_DLSYM]},
        {"getproc", &test->routes[DOCTOR_GETPROC]},
    };
    char word[32];
    unsigned long long value = 0;
    if (sscanf(line, "stage %47s", test->stage) == 1 ||
        sscanf(line, "%31s %llu", word, &value) != 2)
        return;
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(word, numbers[i].word) == 0)
            *numbers[i].number = (int)value;
    if (strcmp(word, "ops") == 0)
        test->ops = value;
    else if (strcmp(word, "in") == 0)
        test->in = value;
    else if (strcmp(word, "launches") == 0)
        test->launches = (unsigned)value;
    else if (strcmp(word, "words") == 0)
        test->words = (unsigned)value;
    else if (strcmp(word, "finished") == 0)
        test->finished = true;
}

/* What the library tells a launcher (shim/hook/handshake.h). */
static void take_handshake(struct doctor_test *test, const char *line) {
    static const char *const words[] = {"front", "behind", "passes"};
    char *const to[] = {test->beside[0], test->beside[1], test->passes};
    char word[16];
    int text = 0;
    if (sscanf(line, "%*d %15s %n", word, &text) != 1 || !text)
        return;
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0)
            snprintf(to[i], sizeof test->passes, "%s", line + text);
}

static void take_lines(struct doctor_test *test, char *text,
                       void (*take)(struct doctor_test *test, const char *line)) {
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n")))
        if (*line)
            take(test, line);
}

/* A line of the log without its process: "warn stream: ...". */
static void take_said(struct doctor_test *test, const char *line) {
    const char *text = strncmp(line, "cusplice[", 9) == 0 ? strstr(line, "] ") : NULL;
    if (!*test->said)
        snprintf(test->said, sizeof test->said, "%s", text ? text + 2 : line);
}

static void take_file(struct doctor_test *test, int fd,
                      void (*take)(struct doctor_test *test, const char *line)) {
    char *text = malloc(TEXT);
    size_t used = 0;
    ssize_t got;
    while (text && used + 1 < TEXT &&
           (got = pread(fd, text + used, TEXT - 1 - used, (off_t)used)) > 0)
        used += (size_t)got;
    if (text) {
        text[used] = 0;
        take_lines(test, text, take);
    }
    free(text);
}

void doctor_gather_selftest(void) {
    struct doctor_test *test = &doctor_facts->test;
    struct files files = {memfd_create("stdout", MFD_CLOEXEC), memfd_create("stderr", MFD_CLOEXEC),
                          ""};
    if (!doctor_facts->asked->library || !doctor_facts->asked->preload ||
        !*doctor_facts->driver.path || doctor_facts->driver.end != DOCTOR_DONE)
        return;
    int fd = cli_temporary(files.handshake, sizeof files.handshake, "cusplice-XXXXXX")
                 ? mkostemp(files.handshake, O_CLOEXEC)
                 : -1;
    if (fd < 0)
        *files.handshake = 0;
    test->end = doctor_apart(become, &files, doctor_facts->asked->seconds, &test->signal);
    take_file(test, files.out, take_line);
    take_file(test, files.err, take_said);
    if (fd >= 0) {
        take_file(test, fd, take_handshake);
        unlink(files.handshake);
        close(fd);
    }
    close(files.out);
    close(files.err);
}

/* ---- the probes ---- */

/* True: there is nothing to judge, which was said. */
static bool did_not_run(struct doctor_answer *answer) {
    const struct doctor_test *test = &doctor_facts->test;
    if (test->ran)
        return false;
    doctor_find(answer, DOCTOR_UNKNOWN, "first see to the library and libcuda",
                "the self-test could not run: %s",
                !doctor_facts->asked->library ? "there is no library"
                : !*doctor_facts->driver.path ? "there is no libcuda"
                : doctor_facts->driver.end    ? "the driver did not answer"
                                              : "this command cannot be started again");
    return true;
}

void doctor_ask_routes(struct doctor_answer *answer) {
    static const char *const names[DOCTOR_ROUTES] = {"exported names", "dlsym", "cuGetProcAddress"};
    static const char *const words[] = {"not asked", "past the library", "to the library"};
    const struct doctor_test *test = &doctor_facts->test;
    if (did_not_run(answer))
        return;
    if (!test->library) {
        doctor_find(answer, DOCTOR_NOT_RIGHT,
                    "the dynamic loader refused the library, or another program than ld.so starts "
                    "programs here: what it says stands behind it",
                    "the library was not loaded: %s",
                    *test->said ? test->said : "nothing was said");
        return;
    }
    bool any = false;
    for (unsigned i = 0; i < DOCTOR_ROUTES; i++)
        any |= test->routes[i] != 0;
    if (!any) {
        doctor_find(answer, DOCTOR_UNKNOWN, "first see to libcuda and the self-test",
                    "the self-test did not come so far");
        return;
    }
    for (unsigned i = 0; i < DOCTOR_ROUTES; i++)
        doctor_find(answer,
                    test->routes[i] == 1   ? DOCTOR_NOT_RIGHT
                    : test->routes[i] == 2 ? DOCTOR_OK
                                           : DOCTOR_UNKNOWN,
                    NULL, "%s: %s", names[i], words[test->routes[i]]);
}

void doctor_ask_interposers(struct doctor_answer *answer) {
    const struct doctor_test *test = &doctor_facts->test;
    if (did_not_run(answer))
        return;
    for (unsigned i = 0; i < 2; i++)
        if (*test->beside[i])
            doctor_find(answer, DOCTOR_NOTE, NULL, "%s the library: %s",
                        i ? "behind" : "in front of", test->beside[i]);
    if (*test->passes)
        doctor_find(answer, DOCTOR_NOT_RIGHT, NULL, "nothing is deferred: %s", test->passes);
    if (!*answer->value)
        doctor_find(answer, DOCTOR_OK, NULL, "none");
}

/* Why the program did not come to its end. */
static void tell_failure(struct doctor_answer *answer) {
    const struct doctor_test *test = &doctor_facts->test;
    char text[128];
    doctor_end_text(test->end, test->signal, doctor_facts->asked->seconds, text, sizeof text);
    if (test->result && test->result == doctor_facts->driver.result)
        doctor_find(answer, DOCTOR_NOT_RIGHT, "first see to libcuda", "%s returned error %d",
                    test->stage, test->result);
    else if (test->result)
        doctor_find(answer, DOCTOR_NOT_RIGHT,
                    "try the same call without the library; the number is that of CUresult in "
                    "cuda.h",
                    "%s returned error %d", test->stage, test->result);
    else
        doctor_find(answer, DOCTOR_NOT_RIGHT, NULL, "%s: %s", *test->stage ? test->stage : "start",
                    text);
    if (*test->said)
        doctor_find(answer, DOCTOR_OK, NULL, "it said: %s", test->said);
}

void doctor_ask_selftest(struct doctor_answer *answer) {
    const struct doctor_test *test = &doctor_facts->test;
    if (did_not_run(answer))
        return;
    if (!test->finished) {
        tell_failure(answer);
        return;
    }
    if (test->words)
        doctor_find(answer, DOCTOR_NOT_RIGHT,
                    "results are wrong: set CUSPLICE=off, and send this report as a bug report",
                    "%u words differ after %u launches", test->words, test->launches);
    else
        doctor_find(answer, DOCTOR_OK, NULL, "%u launches, results equal", test->launches);
    if (test->in)
        doctor_find(answer, DOCTOR_OK, NULL, "%llu of them went into graphs", test->in);
    else
        doctor_find(answer, DOCTOR_NOT_RIGHT,
                    *test->passes || !test->library ? "see routes and interposers"
                    : *test->said                   ? "the library says why: see there"
                                                    : NULL,
                    "none of them went into graphs%s%s", *test->said ? ": " : "", test->said);
}
