/*
 * cusplice demo: runs the demo that packages bring along. main.c calls it. It becomes the
 * demo's own program (tools/demo.py), and starts nothing else.
 */
#include "tools/cli/options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/library.h"
#include "tools/trace/beside.h"

enum { EXIT_NONE = 1, EXIT_BAD = 2, TOKENS_MAX = 1000000 };

static const char help[] =
    "A small language model writes a text, once as its program is and once under cusplice. Both "
    "texts are compared, and a table says how many launches the driver saw. Where there is no GPU, "
    "or no CUDA 13, it runs on a simulator, and says so. It needs a python3.\n"
    "\n" CLI_OPTIONS;

static int become(char *script, const char *device, unsigned tokens, const char *output) {
    char number[16];
    char *argv[10] = {"python3", script}; /* with a NULL at its end in any case */
    int n = 2;
    if (device) {
        argv[n++] = "--device";
        argv[n++] = (char *)device;
    }
    if (tokens) {
        snprintf(number, sizeof number, "%u", tokens);
        argv[n++] = "--tokens";
        argv[n++] = number;
    }
    if (output) {
        argv[n++] = "--json";
        argv[n++] = (char *)output;
    }
    execvp(argv[0], argv);
    cli_say("python3, which the demo needs: %s", strerror(errno));
    return EXIT_NONE;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    bool sim = false, gpu = false, force = false;
    unsigned tokens = 0;
    const char *output = NULL;
    struct beside beside;
    const struct cli_option options[] = {
        CLI_FLAG("sim", &sim, "on the simulator, whatever is here"),
        CLI_FLAG("gpu", &gpu, "on the GPU, or not at all"),
        CLI_NUMBER("tokens", &tokens, 1, TOKENS_MAX, "N",
                   "characters to write (default 200; 1000 on a GPU)"),
        CLI_OUTPUT(cli_take_name, &output, ": all that is printed, as JSON"),
        CLI_FORCE(&force),
        {0}};
    const struct cli_option *const tables[] = {options, NULL};
    struct cli_words words;
    int status = cli_options_read(self, argc, argv, CLI_WORDS, tables, &words);
    if (status >= 0)
        return status;
    if (words.n || (sim && gpu)) {
        cli_say("'%s' is too much (see cusplice demo --help)", words.n ? words.at[0] : "--gpu");
        return EXIT_BAD;
    }
    char script[PATH_MAX];
    if (!cli_demo_find(script, sizeof script))
        return EXIT_NONE;
    int why = output ? beside_plan(&beside, output, force, NULL) : 0;
    if (why) {
        cli_say("%s: cannot be written: %s", output, beside_why(why));
        return EXIT_NONE;
    }
    return become(script, sim ? "sim" : gpu ? "gpu" : NULL, tokens, output);
}

const struct cli_verb cli_verb_demo = {
    .name = "demo",
    .synopsis = "demo [--sim | --gpu] [--tokens N] [-o FILE] [--force]",
    .summary = "a small language model, plain and preloaded, and a table of both",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "0; 1 where the texts differ or the demo cannot run; 2 for a bad option",
            .examples = "cusplice demo\tOn the GPU, else on the simulator; it says which.\n"
                        "cusplice demo --sim --tokens 60 -o demo.json\tA short text on the "
                        "simulator, and all figures as JSON.\n",
            .files = "PREFIX/lib/cusplice/demo\tProgram, weights and simulator, which packages "
                     "have. In the source tree tools/demo is the command.\n",
            .see = "run doctor",
            .takes = CLI_TAKES_NOTHING,
        },
};
