/*
 * Starts players and talks to them. run.c calls it, on the tool's one thread. Between fork and
 * exec the child reads its configuration as strictly as `cusplice run` does. A player that fails
 * is reported, and never restarted.
 */
#include "tools/replay/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/base/options.h"
#include "shim/plan/rules.h"
#include "tools/trace/budget.h"
#include "tools/trace/clean.h"
#include "tools/trace/facts.h"
#include "tools/trace/settings.h"

enum { BAD_CONFIG = 98, NO_START = 99 };

/* ---- the environment of the child, in the child ---- */

/* Kept open across exec, and read by its name there. */
static bool set_config(const char *text) {
    char path[64];
    int file = memfd_create("the options of the recording", 0);
    size_t bytes = strlen(text);
    /* Settings that others may write are not believed. */
    if (file < 0 || fchmod(file, 0600) != 0 || write(file, text, bytes) != (ssize_t)bytes)
        return false;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return setenv("CUSPLICE_CONFIG", path, 1) == 0;
}

static bool set_eager(const char *patterns) {
    const char *before = getenv("CUSPLICE_EAGER");
    char *list;
    if (asprintf(&list, "%s%s%s", patterns, before ? ";" : "", before ? before : "") < 0)
        return false;
    setenv("CUSPLICE_EAGER", list, 1);
    free(list);
    return true;
}

/* False: there are problems, which were told. */
static bool configure(const struct replay_strategy *strategy) {
    static const char *const quiet[][2] = {
        {"log", "error"}, {"why", "no"}, {"live", "no"}, {"stats_every", "0"}};
    static const char *const no[] = {"CUSPLICE",        "CUSPLICE_STATS",  "CUSPLICE_LOG_FILE",
                                     "CUSPLICE_RECORD", CUS_CACHE_OFFERED, CUS_PRESETS_OFFERED};
    if (strategy->config) {
        settings_forget();
        if (!set_config(strategy->config))
            return false;
    }
    for (unsigned i = 0; i < sizeof no / sizeof *no; i++)
        unsetenv(no[i]);
    for (unsigned i = 0; i < sizeof quiet / sizeof *quiet; i++)
        settings_set(quiet[i][0], quiet[i][1]);
    if (strategy->mode)
        settings_set("mode", strategy->mode);
    for (unsigned i = 0; i < strategy->n_settings; i++)
        settings_set(strategy->names[i], strategy->values[i]);
    if (strategy->eager && !set_eager(strategy->eager))
        return false;
    struct cus_options options;
    int problems = 0;
    cus_options_load(&options, false, settings_tell, &problems);
    cus_options_free(&options);
    cus_rules_any_name = true; /* an earlier version may have taken a rule that matched nothing */
    cus_rules_free(cus_rules_load(false, settings_tell, &problems, NULL));
    return problems == 0;
}

static _Noreturn void become(const struct replay_setup *setup,
                             const struct replay_strategy *strategy, pid_t parent) {
    const char *words[9] = {setup->player};
    char memory[24];
    unsigned n = 1;
    uint64_t mib;
    if (setup->trusted)
        words[n++] = "--trust";
    words[n++] = "--pace";
    words[n++] = replay_paces[setup->pace];
    if (budget_memory_given(&mib)) {
        snprintf(memory, sizeof memory, "%" PRIu64, mib);
        words[n++] = "--max-memory";
        words[n++] = memory;
    }
    words[n] = setup->trace;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _Exit(NO_START);
    signal(SIGPIPE, SIG_DFL);
    if (strategy->preload) {
        if (!configure(strategy))
            _Exit(BAD_CONFIG);
        setenv("LD_PRELOAD", strategy->preload, 1);
    }
    execv(words[0], (char *const *)(uintptr_t)words);
    clean_print(stderr, "cusplice: %s: %s\n", words[0], strerror(errno));
    _Exit(NO_START);
}

/* ---- one player ---- */

bool replay_begin(struct replay_process *process, const struct replay_setup *setup,
                  const struct replay_strategy *strategy, char *error, size_t bytes) {
    int in[2], out[2];
    pid_t parent = getpid();
    *process = (struct replay_process){.to = -1, .from = -1};
    if (pipe2(in, O_CLOEXEC) != 0) {
        snprintf(error, bytes, "no pipe to a player: %s", strerror(errno));
        return false;
    }
    if (pipe2(out, O_CLOEXEC) != 0) {
        snprintf(error, bytes, "no pipe to a player: %s", strerror(errno));
        close(in[0]), close(in[1]);
        return false;
    }
    signal(SIGPIPE, SIG_IGN); /* a player that is no more is told of by its end */
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        become(setup, strategy, parent);
    }
    close(in[0]);
    close(out[1]);
    process->to = in[1];
    process->from = out[0];
    process->pid = pid > 0 ? pid : 0;
    if (pid < 0) {
        snprintf(error, bytes, "no process for a player: %s", strerror(errno));
        replay_end(process);
    }
    return pid > 0;
}

/* How it ended, where it said nothing itself. */
static void explain_end(struct replay_process *process, char *error, size_t bytes) {
    int status = 0;
    while (process->pid && waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
        ;
    process->pid = 0;
    if (WIFSIGNALED(status))
        snprintf(error, bytes, "the player was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) == BAD_CONFIG)
        snprintf(error, bytes, "the configuration to play by has a problem");
    else
        snprintf(error, bytes, "the player ended with status %d", WEXITSTATUS(status));
}

/* The next line; NULL at the end. */
static char *read_line(struct replay_process *process) {
    for (;;) {
        char *end = process->used ? memchr(process->text, '\n', process->used) : NULL;
        if (end) {
            size_t line = (size_t)(end - process->text);
            char *copy = strndup(process->text, line);
            process->used -= line + 1;
            memmove(process->text, end + 1, process->used);
            return copy;
        }
        if (process->used == process->room) {
            size_t room = process->room ? 2 * process->room : 4096;
            char *text = realloc(process->text, room);
            if (!text)
                return NULL;
            process->text = text;
            process->room = room;
        }
        ssize_t n =
            read(process->from, process->text + process->used, process->room - process->used);
        if (n == 0 || (n < 0 && errno != EINTR))
            return NULL;
        process->used += n > 0 ? (size_t)n : 0;
    }
}

bool replay_ask(struct replay_process *process, const char *line, char *error, size_t bytes) {
    size_t length = line ? strlen(line) : 0, sent = 0;
    while (sent < length) {
        ssize_t n = write(process->to, line + sent, length - sent);
        if (n < 0 && errno != EINTR)
            break; /* its end says why */
        sent += n > 0 ? (size_t)n : 0;
    }
    char *answer = read_line(process);
    free(process->answer);
    process->answer = answer ? facts_line(answer) : NULL;
    free(answer);
    if (!process->answer) {
        explain_end(process, error, bytes);
        return false;
    }
    return !replay_text(process, "error", 0, error, bytes);
}

void replay_end(struct replay_process *process) {
    if (process->to >= 0)
        close(process->to);
    if (process->from >= 0)
        close(process->from);
    process->to = process->from = -1;
    while (process->pid && waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    process->pid = 0;
    free(process->answer);
    free(process->text);
    process->answer = process->text = NULL;
    process->used = process->room = 0;
}

/* ---- its answers ---- */

struct member {
    const char *key, *value;
    size_t bytes;
};

static void compare(void *context, const char *key, size_t key_bytes, const char *value,
                    size_t bytes) {
    struct member *member = context;
    if (key_bytes == strlen(member->key) + 2 && memcmp(key + 1, member->key, key_bytes - 2) == 0) {
        member->value = value;
        member->bytes = bytes;
    }
}

/* The JSON of a member, up to its end and beyond. */
static const char *member_of(const struct replay_process *process, const char *key) {
    struct member member = {.key = key};
    if (process->answer)
        facts_each(process->answer, compare, &member);
    return member.value;
}

uint64_t replay_number(const struct replay_process *process, const char *key) {
    const char *value = member_of(process, key);
    return value ? strtoull(value, NULL, 10) : 0;
}

bool replay_true(const struct replay_process *process, const char *key) {
    const char *value = member_of(process, key);
    return value && *value == 't';
}

/* Copies the string at `at`; returns what is behind it. */
static const char *take_string(const char *at, char *out, size_t bytes) {
    size_t used = 0;
    for (at++; *at && *at != '"'; at++) {
        char c = *at;
        if (c == '\\') {
            c = *++at;
            if (c == 'u') { /* bytes, whatever they encode */
                char digits[5] = {at[1], at[2], at[3], at[4], 0};
                c = (char)strtoul(digits, NULL, 16);
                at += 4;
            }
        }
        if (used + 1 < bytes)
            out[used++] = c;
    }
    out[used] = 0;
    return at + 1;
}

bool replay_text(const struct replay_process *process, const char *key, unsigned i, char *out,
                 size_t bytes) {
    const char *at = member_of(process, key);
    if (at && *at == '[')
        at++;
    for (; at && *at == '"'; i--) {
        at = take_string(at, out, bytes);
        if (i == 0)
            return true;
        at += *at == ',';
    }
    return false;
}

size_t replay_numbers(const struct replay_process *process, const char *key, uint64_t *out,
                      size_t room) {
    const char *at = member_of(process, key);
    size_t n = 0;
    while (at && (*at == '[' || *at == ',') && at[1] >= '0' && at[1] <= '9') {
        char *end;
        uint64_t number = strtoull(at + 1, &end, 10);
        if (n < room)
            out[n] = number;
        n++;
        at = end;
    }
    return n;
}
