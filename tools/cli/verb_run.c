/*
 * cusplice run: checks the configuration, preloads the library for the child alone, and ends as
 * the child ends. main.c calls it, and run.h offers its parts to other verbs. It never sets
 * LD_PRELOAD for itself.
 */
#include "tools/cli/run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/base/options.h"
#include "shim/plan/rules.h"
#include "tools/cli/cache_home.h"
#include "tools/cli/child.h"
#include "tools/cli/config_name.h"
#include "tools/cli/environment.h"
#include "tools/cli/handshake.h"
#include "tools/cli/library.h"
#include "tools/cli/outputs.h"
#include "tools/cli/run_folder.h"
#include "tools/cli/run_left.h"
#include "tools/cli/temporary.h"

static const char help[] =
    "Runs PROGRAM with libcusplice.so preloaded, for it and what it starts, and ends with its exit "
    "status (by\n"
    "the same signal, if one ended it). Says on stderr afterwards if the library never came up or "
    "saw no launch,\n"
    "what other interposers there were, what was led to it, and why nothing was deferred.\n"
    "ASAN_OPTIONS gets verify_asan_link_order=0, so that programs with the address sanitizer "
    "start.\n"
    "What repeats is kept in $XDG_CACHE_HOME/cusplice (or ~/.cache/cusplice), so that another run "
    "has graphs from its\n"
    "second step on. A cache_dir that is set wins; --set cache_dir= switches it off.\n"
    "Where the program loads a library that has a preset (vLLM, SGLang, NCCL), its rules hold, "
    "behind all others; --set presets=off switches that off.\n"
    "\n" CLI_OPTIONS "\n"
    "CUSPLICE=off in the environment runs PROGRAM as it is.\n";

/* ---- options ---- */

bool cli_run_set(const char *key, const char *value) {
    char name[64] = "CUSPLICE_";
    size_t used = strlen(name);
    for (key = cus_options_key(key); *key && used + 1 < sizeof name; key++)
        name[used++] = *key >= 'a' && *key <= 'z' ? (char)(*key - 'a' + 'A') : *key;
    name[used] = 0;
    return setenv(name, value, 1) == 0;
}

/* Patterns keep the order in which they are given, in front of those of the environment. */
static bool add_eager(const char *pattern) {
    static unsigned given;
    const char *before = getenv("CUSPLICE_EAGER");
    size_t bytes = strlen(pattern) + (before ? strlen(before) : 0) + 3;
    char *list = malloc(bytes), *old = strdup(before ? before : "");
    size_t keep = 0;
    if (!list || !old)
        return false;
    for (unsigned i = 0; i < given; i++) {
        keep += strcspn(old + keep, ";");
        keep += old[keep] != 0;
    }
    bool apart = !keep || old[keep - 1] == ';';
    snprintf(list, bytes, "%.*s%s%s%s%s", (int)keep, old, apart ? "" : ";", pattern,
             old[keep] ? ";" : "", old + keep);
    given++;
    bool done = setenv("CUSPLICE_EAGER", list, 1) == 0;
    free(old);
    free(list);
    return done;
}

static bool add_one(const char *option, const char *text, const char *pattern) {
    if (*pattern && !strchr(pattern, ';'))
        return add_eager(pattern);
    cli_say("%s %s: one pattern at a time", option, text);
    return false;
}

/* --set KEY=VALUE: checked by itself, then handed on as the environment variable that it is short
 * for. */
static bool take_set(const struct cli_option *self, const char *text) {
    char key[64];
    const char *equals = strchr(text, '=');
    (void)self;
    if (!equals || equals == text || (size_t)(equals - text) >= sizeof key) {
        cli_say("--set %s: KEY=VALUE is expected", text);
        return false;
    }
    snprintf(key, sizeof key, "%.*s", (int)(equals - text), text);
    if (strcmp(key, "eager") != 0)
        return cli_setting_fits("--set", key, equals + 1) && cli_run_set(key, equals + 1);
    return add_one("--set", text, equals + 1);
}

static bool take_eager(const struct cli_option *self, const char *pattern) {
    (void)self;
    return add_one("--eager", pattern, pattern);
}

static const char *stats_path; /* of --stats */
static bool prints;            /* --print-env, which `run` alone has */

bool cli_run_set_path(const char *key, const char *path) {
    char absolute[2 * PATH_MAX], here[PATH_MAX];
    if (*path == '/' || !getcwd(here, sizeof here))
        return cli_run_set(key, path);
    snprintf(absolute, sizeof absolute, "%s/%s", here, path);
    return cli_run_set(key, absolute);
}

/* What an earlier run left must not be taken for this one's. */
static bool remove_stats(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || unlink(path) == 0)
        return true;
    cli_say("--stats %s: the old file cannot be removed: %s", path, strerror(errno));
    return false;
}

/* --stats -: the library writes a file of a folder of its own, since the program's stdout may be
 * closed or a pipe; this process copies it. */
static char stats_folder[PATH_MAX];

static bool offer_stdout(void) {
    static char path[PATH_MAX + 16];
    if (!cli_temporary(stats_folder, sizeof stats_folder, "cusplice-stats-XXXXXX") ||
        !mkdtemp(stats_folder)) {
        cli_say("--stats -: no temporary folder: %s", strerror(errno));
        *stats_folder = 0;
        return false;
    }
    snprintf(path, sizeof path, "%s/stats.json", stats_folder);
    stats_path = path;
    return cli_run_set_path("stats", path);
}

static void show_stats(void) {
    char chunk[4096];
    size_t bytes;
    if (!*stats_folder)
        return;
    FILE *file = fopen(stats_path, "re");
    while (file && (bytes = fread(chunk, 1, sizeof chunk, file)) > 0)
        fwrite(chunk, 1, bytes, stdout);
    if (file)
        fclose(file);
    unlink(stats_path);
    rmdir(stats_folder);
    if (fflush(stdout) != 0 && errno != EPIPE)
        cli_say("--stats -: stdout cannot be written: %s", strerror(errno));
}

/* A folder that is not there is better found out now than at the program's end. */
static bool take_stats(const struct cli_option *self, const char *path) {
    (void)self;
    if (strcmp(path, "-") == 0)
        return offer_stdout();
    if (cli_folder_is_named(path))
        return cli_folder_take_stats(path);
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 1,
             slash ? path : ".");
    if (!*path || access(folder, W_OK) != 0) {
        cli_say("--stats %s: %s", path, *path ? strerror(errno) : "a file name is expected");
        return false;
    }
    stats_path = path;
    return cli_run_set_path("stats", path);
}

bool cli_run_take(const struct cli_option *self, const char *value) {
    char option[32];
    snprintf(option, sizeof option, "--%s", self->name);
    value = value ? value : "yes";
    return cli_setting_fits(option, self->to, value) && cli_run_set(self->to, value);
}

bool cli_run_take_path(const struct cli_option *self, const char *value) {
    return cli_run_set_path(self->to, value);
}

static const struct cli_option run_options[] = {
    CLI_CONFIG(""),
    CLI_SET(take_set, NULL, ""),
    CLI_EAGER(take_eager, NULL, ""),
    CLI_OPTION("stats", 0, take_stats, NULL, "FILE",
               "write the counters there at exit, as JSON ({pid} or %p: the process id; - is "
               "stdout).\nFOLDER/: the same for each process that uses CUDA: rank-R.pid-P.json, or "
               "pid-P.json without a rank; also its report (.why) with --why, and its log (.log) "
               "where log is set"),
    {.name = "why",
     .take = cli_run_take,
     .to = "why",
     .help = "say at exit what share went into graphs, what broke the runs of launches and what to "
             "do about it (on stderr, or where why_file or log_file says). Several processes: one "
             "table"},
    {0},
};

int cli_run_read(const struct cli_verb *self, int argc, char **argv, const struct cli_option *own,
                 char ***program) {
    const struct cli_option *const tables[] = {run_options, own, NULL};
    struct cli_words words;
    int status = cli_options_read(self, argc, argv, CLI_PROGRAM, tables, &words);
    if (status >= 0)
        return status;
    if (!cli_config_use())
        return CLI_EXIT_REFUSED;
    *program = words.at;
    if (prints && words.n) {
        cli_say("--print-env runs no program: %s is more than is expected", words.at[0]);
        return CLI_EXIT_REFUSED;
    }
    if (prints || words.n)
        return -1;
    cli_say("a program is missing: cusplice %.*s", (int)strcspn(self->synopsis, "\n"),
            self->synopsis);
    return CLI_EXIT_REFUSED;
}

/* ---- the run ---- */

static void notice_live(void *said, const struct cus_setting *setting) {
    if (!*setting->section && strcmp(setting->key, "live") == 0)
        *(bool *)said = true;
}

/* A program that is run by this command may be looked at by `cusplice top`, unless the user has
 * said otherwise. */
static bool let_look(void) {
    bool said = false;
    for (int source = 0; source < CUS_SOURCES; source++)
        cus_config_read((enum cus_source)source, notice_live, NULL, &said);
    return said || cli_run_set("live", "yes");
}

struct asked {
    bool mode_off, why;
    bool caches; /* graphs are made, and the program is neither recorded nor verified */
    char record[2 * PATH_MAX];
};

/* Everything that the child will read, read strictly, and what it will write. `program` "": it is
 * not known. */
static bool check_configuration(struct asked *asked, const char *program) {
    struct cus_options options;
    int problems = 0;
    cus_options_load(&options, false, cli_problem, &problems);
    asked->mode_off = options.mode == CUS_MODE_OFF;
    asked->why = options.why;
    asked->caches =
        options.mode >= CUS_MODE_PIECEWISE && options.mode != CUS_MODE_VERIFY && !*options.record;
    snprintf(asked->record, sizeof asked->record, "%s", options.record);
    cus_rules_free(cus_rules_load(false, cli_problem, &problems, NULL));
    if (problems)
        cli_say(prints ? "%d problem%s in the configuration: nothing is printed"
                       : "%d problem%s in the configuration: the program was not started",
                problems, problems == 1 ? "" : "s");
    bool fit = problems == 0 && cli_redirects_fit(&options, program);
    cus_options_free(&options);
    return fit;
}

/* What processes left that were ended from outside. */
static void say_left(const struct asked *asked, const struct cli_verified *verified) {
    cli_left_pages();
    if (*asked->record)
        cli_left_traces(asked->record);
    if (stats_path)
        cli_left_stats(stats_path, verified->exits);
}

/* What the program's environment gets, but for what ends with this run. Returns the LD_PRELOAD of
 * the program, allocated; NULL, after saying so: it cannot be run like this. */
static char *prepare(struct asked *asked, const char *program) {
    char library[PATH_MAX];
    if (!check_configuration(asked, program) || !let_look() ||
        !cli_library_find(library, sizeof library))
        return NULL;
    cli_cache_offer(asked->caches, asked->why);
    setenv(CUS_PRESETS_OFFERED, "auto", 1);
    return cli_folder_begin(asked->why) ? cli_library_preload(library, getenv("LD_PRELOAD")) : NULL;
}

int cli_run_start(char **argv, cli_run_then *then, cli_run_judge *judge) {
    struct asked asked;
    int status = 0;
    char *preload = prepare(&asked, argv[0]);
    if (!preload || (stats_path && !remove_stats(stats_path)) || !cli_folder_gather(asked.why)) {
        free(preload);
        return CLI_EXIT_REFUSED;
    }
    if (!cli_handshake_begin(cli_folder_shared()))
        cli_say("no temporary file: whether the library comes up cannot be told");
    int why = cli_child_run(argv, preload, &status);
    free(preload);
    if (why) {
        show_stats();
        cli_handshake_drop();
        cli_folder_end();
        cli_say("%s: %s", argv[0], strerror(why));
        return why == ENOENT ? CLI_EXIT_NOT_FOUND : CLI_EXIT_CANNOT_RUN;
    }
    if (then)
        then();
    show_stats();
    struct cli_verified verified;
    bool seen = cli_handshake_report(argv[0], asked.mode_off, &verified);
    say_left(&asked, &verified);
    cli_folder_end();
    if (judge && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return judge(seen, &verified);
    cli_child_end_like(status);
}

/* --print-env: what programs that others start need, so that they run as with this command. */
static int print_environment(const struct cli_environment *before) {
    struct asked asked;
    if (*stats_folder) {
        rmdir(stats_folder);
        cli_say("--stats -: with --print-env a file or folder is expected");
        return CLI_EXIT_REFUSED;
    }
    char *preload = prepare(&asked, "");
    bool done = preload && cli_child_preload(preload) && cli_environment_print(before);
    free(preload);
    return done ? 0 : CLI_EXIT_REFUSED;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    char **program;
    static const struct cli_option own[] = {
        CLI_MODE(cli_run_take, "mode", ""),
        CLI_FLAG("print-env", &prints,
                 "run nothing: print what the environment of a program needs, for whoever starts "
                 "it, as commands for a shell (eval). Nothing is told or removed at the "
                 "program's end"),
        {0}};
    struct cli_environment before = cli_environment_keep();
    int status = cli_run_read(self, argc, argv, own, &program);
    if (status < 0)
        status = prints ? print_environment(&before) : cli_run_start(program, NULL, NULL);
    free(before.entries);
    return status;
}

const struct cli_verb cli_verb_run = {
    .name = "run",
    .synopsis = "run [-c FILE]... [--set KEY=VALUE]... [--eager PATTERN]... [--mode MODE] [--stats "
                "FILE] [--why] -- PROGRAM ARGS...\n"
                "cusplice run [OPTION]... --print-env",
    .summary = "run a program with the library preloaded",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "that of PROGRAM; 125 for a bad option or configuration, 126 where PROGRAM "
                     "cannot be run, 127 where it is not found",
            .examples = "cusplice run --why -- ./your-program\tSays at exit what share of the "
                        "launches went into graphs, and what ended the runs.\n"
                        "cusplice run -c pytorch --stats stats.json -- ./your-program\tUses the "
                        "preset for PyTorch, and writes the counters as JSON.\n"
                        "cusplice run --eager 'attention*' -- ./your-program\tKeeps the kernels of "
                        "this name out of graphs.\n"
                        "eval \"$(cusplice run -c pytorch --print-env)\"; ./your-program\tThe same "
                        "for what a shell, a job or a service starts.\n",
            .files = "~/.cache/cusplice\tWhat repeated in earlier runs: the signature cache. "
                     "cusplice cache lists and clears it.\n"
                     "cusplice.conf\tSettings and rules, see cusplice.conf(5).\n"
                     "$XDG_RUNTIME_DIR/cusplice-UID-PID\tThe page for cusplice top, while the "
                     "program runs; in /dev/shm without that variable.\n",
            .see = "record verify top config cache",
            .takes = CLI_TAKES_PROGRAM,
        },
};
