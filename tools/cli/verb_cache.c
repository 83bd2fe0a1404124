/*
 * cusplice cache: lists or removes the signature cache of a folder. main.c calls it. It reads the
 * file as the library does, and never a file that others may have written.
 */
#include "tools/cli/options.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim/base/options.h"
#include "shim/cache/cache.h"
#include "tools/cli/cache_home.h"
#include "tools/trace/clean.h"

enum { EXIT_NONE = 1, EXIT_BAD = 2 };

static const char help[] =
    "What earlier runs left in the signature cache (the key cache_dir): which stretches of "
    "launches came again\n"
    "and paid as graphs. Without DIR: the folder that is set here and now; where no setting names "
    "one, the folder\n"
    "that cusplice run offers ($XDG_CACHE_HOME/cusplice, or ~/.cache/cusplice).\n"
    "\n" CLI_OPTIONS;

static int by_launches(const void *a, const void *b) {
    const struct cus_cache_entry *x = a, *y = b;
    if (x->launches != y->launches)
        return x->launches > y->launches ? -1 : 1;
    return x->path < y->path ? -1 : x->path > y->path;
}

static int list(const char *folder) {
    struct cus_cache cache;
    const char *why;
    enum cus_cache_state state = cus_cache_read(folder, &cache, &why);
    if (state != CUS_CACHE_GOOD) {
        cli_say("%s/" CUS_CACHE_FILE ": %s", folder, why ? why : "there is no such file");
        return EXIT_NONE;
    }
    uint64_t ops = 0;
    for (uint32_t i = 0; i < cache.n; i++)
        ops += cache.entries[i].ops;
    clean_print(stdout,
                "%s/" CUS_CACHE_FILE ": %" PRIu32 " graphs, %" PRIu64
                " launches in them, %zu bytes, "
                "written %" PRIu32 " times\n",
                folder, cache.n, ops,
                sizeof(struct cus_cache_head) + cache.n * sizeof *cache.entries, cache.generation);
    if (cache.n) {
        qsort(cache.entries, cache.n, sizeof *cache.entries, by_launches);
        printf("%-16s %5s %10s %10s %6s\n", "path", "ops", "pace_ns", "launches", "used");
    }
    for (uint32_t i = 0; i < cache.n; i++) {
        const struct cus_cache_entry *entry = &cache.entries[i];
        printf("%016" PRIx64 " %5" PRIu32 " %10" PRIu32 " %10" PRIu32 " %6" PRIu32 "\n",
               entry->path, entry->ops, entry->pace_ns, entry->launches, entry->used);
    }
    cus_cache_free(&cache);
    return 0;
}

static int clear(const char *folder) {
    const char *why = NULL;
    enum cus_cache_state state = cus_cache_clear(folder, &why);
    if (state == CUS_CACHE_GOOD)
        return 0;
    cli_say("%s/" CUS_CACHE_FILE ": %s", folder,
            why                       ? why
            : state == CUS_CACHE_BUSY ? "a program writes it just now; try again"
                                      : "there is no such file");
    return EXIT_NONE;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    bool listing = false, clearing = false;
    const struct cli_option options[] = {
        CLI_FLAG(
            "list", &listing,
            "the file, and a line for each graph, those launched most first:\n"
            "path: hash of the launches up to its end, from the step's first one on, with their "
            "modules, the GPU, the driver, the version and the settings of sizes\n"
            "ops: launches in it\n"
            "pace_ns: host time between launches that set this number; 0: something else did\n"
            "launches: of the graph, in the run that wrote the line last\n"
            "used: which writing of the file that was"),
        CLI_FLAG("clear", &clearing,
                 "remove the file; programs that run go on with what they have read"),
        {0}};
    const struct cli_option *const tables[] = {options, NULL};
    struct cli_words words;
    int status = cli_options_read(self, argc, argv, CLI_WORDS, tables, &words);
    if (status >= 0)
        return status;
    if (words.n > 1 || (listing && clearing)) {
        cli_say("'%s' is too much (see cusplice cache --help)",
                words.n > 1 ? words.at[1] : "--clear");
        return EXIT_BAD;
    }
    if (!listing && !clearing) {
        cli_say("--list or --clear is missing (see cusplice cache --help)");
        return EXIT_BAD;
    }
    char home[PATH_MAX];
    const char *folder = words.at[0];
    if (!folder)
        folder = cli_cache_home(home, sizeof home) ? home : cus_options()->cache_dir;
    if (!*folder) {
        cli_say("no folder is named, and cache_dir is not set");
        return EXIT_BAD;
    }
    return listing ? list(folder) : clear(folder);
}

const struct cli_verb cli_verb_cache = {
    .name = "cache",
    .synopsis = "cache [DIR] --list | --clear",
    .summary = "what earlier runs left for later ones",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "0; 1 where there is no such file, or none that is used; 2 for a bad option "
                     "or no folder",
            .examples = "cusplice cache --list\tWhat earlier runs left, a line for each graph.\n"
                        "cusplice cache --clear\tRemoves it.\n",
            .files = "~/.cache/cusplice\tThe folder of the signature cache, where XDG_CACHE_HOME "
                     "names no other and no setting does.\n",
            .see = "run config",
            .takes = CLI_TAKES_FOLDER,
        },
};
