/*
 * Forks a child for a configuration, and reads its result through a pipe. verb_whatif.c calls it.
 * A child that dies is an error, and never ends the verb.
 */
#include "tools/whatif/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/base/options.h"
#include "shim/plan/rules.h"
#include "tools/trace/settings.h"

enum { BAD_CONFIG = 98, FAILED = 99 };

/* ---- in the child ---- */

/* What is recorded takes the place of the system's file: everything else is stronger. */
static bool put_recorded(const char *text) {
    static char path[64];
    int file = memfd_create("the options of the recording", 0);
    size_t bytes = strlen(text);
    /* Settings that others may write are not believed. */
    if (file < 0 || fchmod(file, 0600) != 0 || write(file, text, bytes) != (ssize_t)bytes)
        return false;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    cus_config_system_file = path;
    return true;
}

/* Those before the new ones of the environment hold as well. */
static void set_eager(const char *patterns) {
    const char *before = getenv("CUSPLICE_EAGER");
    size_t bytes = strlen(patterns) + (before ? strlen(before) : 0) + 2;
    char *list = malloc(bytes);
    if (!list)
        _Exit(WHATIF_NO_MEMORY);
    snprintf(list, bytes, "%s%s%s", patterns, before ? ";" : "", before ? before : "");
    setenv("CUSPLICE_EAGER", list, 1);
}

static bool configure(const struct whatif_setup *setup) {
    static const char *const quiet[][2] = {
        {"log", "error"}, {"why", "no"}, {"live", "no"}, {"stats_every", "0"}};
    if (setup->recorded) {
        settings_forget();
        if (!put_recorded(setup->recorded))
            return false;
    }
    /* Nothing may be deferred under those, which are about this process. */
    unsetenv("CUDA_LAUNCH_BLOCKING");
    unsetenv("CUDA_DEVICE_WAITS_ON_EXCEPTION");
    unsetenv("CUDA_ENABLE_COREDUMP_ON_EXCEPTION");
    unsetenv("CUSPLICE_STATS");
    unsetenv("CUSPLICE_LOG_FILE");
    for (unsigned i = 0; i < sizeof quiet / sizeof *quiet; i++)
        settings_set(quiet[i][0], quiet[i][1]);
    if (setup->config)
        setenv("CUSPLICE_CONFIG", setup->config, 1);
    for (unsigned i = 0; i < setup->n_settings; i++)
        settings_set(setup->names[i], setup->values[i]);
    if (setup->eager)
        set_eager(setup->eager);
    /* Strictly, as the launcher does; what plays reads them once more. */
    struct cus_options options;
    int problems = 0;
    cus_options_load(&options, false, settings_tell, &problems);
    bool verifies = options.mode == CUS_MODE_VERIFY;
    if (verifies)
        settings_set("mode", cus_mode_name(cus_options_graphs(&options)));
    cus_options_free(&options);
    cus_rules_any_name = true;
    cus_rules_free(cus_rules_load(false, settings_tell, &problems, NULL));
    return problems == 0;
}

static void play(const struct cst_trace *trace, const struct whatif_setup *setup, int to) {
    static struct whatif_played played;
    if (!configure(setup))
        _Exit(BAD_CONFIG);
    whatif_play(trace, setup->timing, &played);
    for (size_t sent = 0; sent < sizeof played;) {
        ssize_t n = write(to, (const char *)&played + sent, sizeof played - sent);
        if (n < 0 && errno != EINTR)
            _Exit(FAILED);
        sent += n > 0 ? (size_t)n : 0;
    }
    _Exit(0);
}

/* ---- in the parent ---- */

static const char *what_ended(int status, char *text, size_t bytes) {
    if (WIFSIGNALED(status)) {
        snprintf(text, bytes, "the process that plays the trace was ended by signal %d",
                 WTERMSIG(status));
        return text;
    }
    switch (WEXITSTATUS(status)) {
    case BAD_CONFIG:
        return "the configuration to play by has a problem";
    case WHATIF_NO_MEMORY:
        return "not enough memory to play the trace: trim it with 'cusplice trim --steps A-B'";
    default:
        snprintf(text, bytes, "the process that plays the trace ended with status %d",
                 WEXITSTATUS(status));
        return text;
    }
}

bool whatif_run(const struct cst_trace *trace, const struct whatif_setup *setup,
                struct whatif_played *out, char *error, size_t bytes) {
    int ends[2], status = 0;
    char text[128];
    if (pipe(ends) != 0) {
        snprintf(error, bytes, "no pipe to a process that plays the trace: %s", strerror(errno));
        return false;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        play(trace, setup, ends[1]);
    }
    close(ends[1]);
    size_t got = 0;
    while (child > 0 && got < sizeof *out) {
        ssize_t n = read(ends[0], (char *)out + got, sizeof *out - got);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        got += n > 0 ? (size_t)n : 0;
    }
    close(ends[0]);
    if (child < 0) {
        snprintf(error, bytes, "no process to play the trace: %s", strerror(errno));
        return false;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0 || got < sizeof *out)
        snprintf(error, bytes, "%s", what_ended(status, text, sizeof text));
    else if (*out->error)
        snprintf(error, bytes, "%s", out->error);
    else
        return true;
    return false;
}
