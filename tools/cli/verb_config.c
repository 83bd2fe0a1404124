/*
 * cusplice config: what is set, whether a file is good, which rule a kernel meets.
 */
#include "tools/cli/verb.h"

#include <stdio.h>
#include <string.h>

#include "tools/cli/config.h"

static const char help[] =
    "      --list            every key with its value here and now and the place that it is from "
    "(a line of a file,\n"
    "                        a variable of the environment, or built-in); then the rules and the "
    "steps, each with\n"
    "                        its place, in the order in which they are asked\n"
    "      --check FILE      read a file strictly: 'FILE: ok', or each problem with its line and "
    "the nearest word\n"
    "                        that would be right, and exit status 1\n"
    "      --explain KERNEL  the names of a kernel (mangled or base name), the rule that decides "
    "on "
    "it, what would\n"
    "                        decide without that rule, and the step that it is the marker of; or "
    "lib:FILE, for\n"
    "                        all kernels of a library or program; or api:CALL, for a memset or "
    "copy\n"
    "      --lib FILE        behind --explain KERNEL: the library or program that the kernel is "
    "from\n"
    "      --json            behind one of these: the answer as JSON\n"
    "      --template        a config file with every key at its built-in value\n"
    "  -h, --help\n"
    "\n"
    "A file has settings, then rules, then steps:\n"
    "\n"
    "  mode = full_and_piecewise\n"
    "  [rules]\n"
    "  uniform = paged_attention*\n"
    "  eager = flash_fwd*\n"
    "  [step decode]\n"
    "  marker = embedding*\n"
    "  uniform = tokens <= 64\n"
    "  sizes = 1,2,4,8..64/8\n"
    "\n"
    "The keys of a step, and what holds without them:\n"
    "\n"
    "  marker       pattern of a kernel, early in each step, whose grid says what the step is; "
    "must "
    "be there\n"
    "  tokens       the grid dimension that is the number of tokens: x, y or z (x)\n"
    "  tokens_each  tokens for one block of it (1)\n"
    "  uniform      when every request has the same number of tokens: x, y, z or tokens compared "
    "with a number\n"
    "               by ==, !=, <=, >=, < or > (never)\n"
    "  single       the same, where that number is one (never)\n"
    "  sizes        numbers of tokens of steps that may be captured (all)\n"
    "\n"
    "config/README.md says more. Exit status: 0, 1 where the configuration has a problem (each is "
    "told on stderr),\n"
    "2 for a bad option.\n";

/* Takes --json out of the arguments. */
static bool take_json(int *argc, char **argv) {
    int kept = 1;
    for (int i = 1; i < *argc; i++)
        if (strcmp(argv[i], "--json") != 0)
            argv[kept++] = argv[i];
    bool taken = kept < *argc;
    *argc = kept;
    return taken;
}

/* Takes `option VALUE` out of the arguments; NULL: it is not there. */
static const char *take_value(int *argc, char **argv, const char *option) {
    const char *value = NULL;
    int kept = 1;
    for (int i = 1; i < *argc; i++) {
        if (i + 1 < *argc && strcmp(argv[i], option) == 0)
            value = argv[++i];
        else
            argv[kept++] = argv[i];
    }
    *argc = kept;
    return value;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    static const char *const names[] = {"--list", "--check",    "--explain", "--lib",
                                        "--json", "--template", "--help",    NULL};
    bool json = take_json(&argc, argv);
    const char *lib = take_value(&argc, argv, "--lib");
    const char *what = argc > 1 ? argv[1] : "--help";
    bool valued = strcmp(what, "--check") == 0 || strcmp(what, "--explain") == 0;
    bool shows = valued || strcmp(what, "--list") == 0;
    bool kernel = argc > 2 && strcmp(what, "--explain") == 0 && strncmp(argv[2], "lib:", 4) != 0 &&
                  strncmp(argv[2], "api:", 4) != 0;
    if (argc > (valued ? 3 : 2) || (valued && argc < 3) || (json && !shows) || (lib && !kernel)) {
        cli_say("usage: cusplice %s", self->synopsis);
        return 2;
    }
    if (strcmp(what, "--list") == 0)
        return cli_config_list(json);
    if (strcmp(what, "--check") == 0)
        return cli_config_check(argv[2], json);
    if (strcmp(what, "--explain") == 0)
        return cli_config_explain(argv[2], lib, json);
    if (strcmp(what, "--template") == 0) {
        cli_print_template();
        return 0;
    }
    if (strcmp(what, "--help") == 0) {
        cli_print_help(self);
        return argc > 1 ? 0 : 2;
    }
    cli_say("unknown option %s; the nearest is %s", what, cus_nearest(what, names));
    return 2;
}

const struct cli_verb cli_verb_config = {
    "config",
    "config --list | --check FILE | --explain KERNEL [--lib FILE] [--json] | --template",
    "show and check settings, rules and steps",
    help,
    run,
};
