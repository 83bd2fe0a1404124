/*
 * cusplice cache: lists or removes the signature cache of a folder. main.c calls it. It reads the
 * file as the library does, and never a file that others may have written.
 */
#include "tools/cli/options.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "shim/base/options.h"
#include "shim/cache/cache.h"
#include "tools/cli/cache_home.h"
#include "tools/cli/redirect.h"
#include "tools/cli/width.h"
#include "tools/trace/clean.h"
#include "tools/trace/table.h"

enum { EXIT_NONE = 1, EXIT_BAD = 2 };

static const char help[] =
    "What earlier runs left in the signature cache (the key cache_dir): which stretches of "
    "launches came again\n"
    "and paid as graphs. Without DIR: the folder that is set here and now; where no setting names "
    "one, the folder\n"
    "that cusplice run offers ($XDG_CACHE_HOME/cusplice, or ~/.cache/cusplice).\n"
    "\n" CLI_OPTIONS;

static const struct table_column columns[] = {
    {"path", TABLE_TEXT},      {"ops", TABLE_COUNT},  {"pace_ns", TABLE_NS},
    {"launches", TABLE_COUNT}, {"used", TABLE_COUNT},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void fill(const struct cus_cache *cache, struct table *table) {
    table_init(table, "cached_graphs", columns, COLUMNS, "launches");
    for (uint32_t i = 0; i < cache->n; i++) {
        const struct cus_cache_entry *entry = &cache->entries[i];
        char path[24];
        union table_value *row = table_row(table);
        if (!row)
            return;
        snprintf(path, sizeof path, "%016" PRIx64, entry->path);
        row[0].text = table_keep(table, path);
        row[1].number = entry->ops;
        row[2].number = entry->pace_ns;
        row[3].number = entry->launches;
        row[4].number = entry->used;
    }
}

/* What the file is: a sentence for people, and for programs a member each. */
static void tell(const struct cus_cache *cache, const char *file, enum table_format format,
                 struct table *table) {
    uint64_t ops = 0;
    size_t bytes = sizeof(struct cus_cache_head) + cache->n * sizeof *cache->entries;
    for (uint32_t i = 0; i < cache->n; i++)
        ops += cache->entries[i].ops;
    if (format == TABLE_TEXTUAL) {
        clean_print(stdout,
                    "%s: %" PRIu32 " graphs, %" PRIu64 " launches in them, %zu bytes, written "
                    "%" PRIu32 " times\n",
                    file, cache->n, ops, bytes, cache->generation);
        return;
    }
    table_note(table, "file", file);
    table_note_number(table, "graphs", cache->n);
    table_note_number(table, "ops", (int64_t)ops);
    table_note_number(table, "bytes", (int64_t)bytes);
    table_note_number(table, "written", cache->generation);
}

static int list(const char *folder, const struct table_view *view, struct cli_redirect *output) {
    struct cus_cache cache;
    struct table table = {0};
    char file[PATH_MAX + sizeof CUS_CACHE_FILE];
    const char *why, *const from[] = {file, NULL};
    snprintf(file, sizeof file, "%s/" CUS_CACHE_FILE, folder);
    enum cus_cache_state state = cus_cache_read(folder, &cache, &why);
    if (state != CUS_CACHE_GOOD) {
        cli_say("%s: %s", file, why ? why : "there is no such file");
        return EXIT_NONE;
    }
    bool whole = false;
    fill(&cache, &table);
    if (table.failed)
        cli_say("not enough memory");
    else if (cli_redirect_begin(output, from)) {
        tell(&cache, file, view->format, &table);
        if (cache.n || view->format != TABLE_TEXTUAL)
            table_print(&table, view, stdout);
        whole = cli_redirect_end(output, true);
    }
    table_free(&table);
    cus_cache_free(&cache);
    return whole ? 0 : EXIT_NONE;
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
    bool listing = false, clearing = false, wide = false;
    struct table_view view = {.format = TABLE_TEXTUAL};
    struct cli_redirect output = {.path = NULL};
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
        CLI_FORMAT(cli_take_word, &view.format, ". Of --list"),
        CLI_WIDE(&wide),
        CLI_OUTPUT(cli_take_name, &output.path, "; - is stdout, as without it"),
        CLI_FORCE(&output.force),
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
    if (clearing && (view.format || wide || output.path || output.force)) {
        cli_say("--format, --wide, --output and --force go with --list");
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
    view.width = wide || cli_redirect_is_file(&output) ? 0 : cli_width();
    return listing ? list(folder, &view, &output) : clear(folder);
}

const struct cli_verb cli_verb_cache = {
    .name = "cache",
    .synopsis =
        "cache [DIR] --list [--format table|json|csv|md] [--wide] [-o FILE] [--force] | --clear",
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
