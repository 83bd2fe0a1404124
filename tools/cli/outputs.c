/*
 * Holds the outputs of a run against its inputs. The launcher's one thread; verb_run.c calls it. It
 * never opens a file.
 */
#include "tools/cli/outputs.h"

#include <limits.h>
#include <stddef.h>

#include "shim/base/config.h"
#include "shim/base/file.h"
#include "tools/cli/options.h"
#include "tools/cli/program.h"
#include "tools/trace/beside.h"

struct output {
    const char *key, *path;
    bool good;
};

static void compare(struct output *output, const char *input) {
    const char *const from[] = {input, NULL};
    if (!output->good || !beside_is_one_of(output->path, from))
        return;
    cli_say("%s = %s: %s", output->key, output->path, beside_why(BESIDE_INPUT));
    output->good = false;
}

static void take_file(void *context, const char *path, const char *by_file, int line) {
    (void)by_file;
    (void)line;
    compare(context, path);
}

bool cli_redirects_fit(const struct cus_options *options, const char *program) {
    struct output outputs[] = {{"stats", options->stats, true},
                               {"record", options->record, true},
                               {"why_file", options->why_file, true},
                               {"log_file", options->log_file, true}};
    enum { OUTPUTS = sizeof outputs / sizeof *outputs, WHOLE = 2 /* replace what is there */ };
    char path[PATH_MAX];
    bool found = cli_program_find(program, path, sizeof path), good = true;
    for (unsigned i = 0; i < OUTPUTS; i++) {
        struct output *one = &outputs[i];
        if (!*one->path || cus_file_is_device(one->path))
            continue;
        if (found)
            compare(one, path);
        for (int source = 0; source < CUS_SOURCES; source++)
            cus_config_list_files((enum cus_source)source, take_file, one);
        for (unsigned k = 0; k < i && k < WHOLE && one->good; k++)
            if (*outputs[k].path && beside_same(outputs[k].path, one->path)) {
                cli_say("%s = %s: %s names this file too", one->key, one->path, outputs[k].key);
                one->good = false;
            }
        good &= one->good;
    }
    return good;
}
