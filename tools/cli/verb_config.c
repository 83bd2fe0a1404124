/*
 * cusplice config: what is set, whether a file is good, which rule decides on a kernel. main.c
 * calls it. It never changes a file.
 */
#include "tools/cli/options.h"

#include <stdio.h>
#include <string.h>

#include "tools/cli/config.h"
#include "tools/cli/config_name.h"
#include "tools/cli/redirect.h"

enum { EXIT_BAD = 2 };

static const char help[] =
    CLI_OPTIONS "\n"
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
                "  marker       pattern of a kernel, early in each step, whose grid says what the "
                "step is; must be there\n"
                "  tokens       the grid dimension that is the number of tokens: x, y or z (x)\n"
                "  tokens_each  tokens for one block of it (1)\n"
                "  uniform      when every request has the same number of tokens: x, y, z or "
                "tokens compared with a number\n"
                "               by ==, !=, <=, >=, < or > (never)\n"
                "  single       the same, where that number is one (never)\n"
                "  sizes        numbers of tokens of steps that may be captured (all)\n"
                "\n"
                "config/README.md says more.\n";

/* May `--lib` go with it? */
static bool is_kernel(const char *asked) {
    return asked && strncmp(asked, "lib:", 4) != 0 && strncmp(asked, "api:", 4) != 0;
}

/* Was the next option taken for the value that is missing? */
static bool is_missing(const char *value) {
    return value && strcmp(value, "--json") == 0;
}

/* The file, and those that follow; as JSON one object each. */
static int check_all(const char *first, char **more, bool json) {
    int status = cli_config_check(first, json);
    for (; *more; more++)
        status |= cli_config_check(*more, json);
    return status;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    bool list = false, template = false, json = false;
    const char *check = NULL, *explain = NULL, *lib = NULL;
    struct cli_redirect output = {.path = NULL};
    const struct cli_option options[] = {
        CLI_FLAG("list", &list,
                 "every key with its value here and now and the place that it is from (a line of a "
                 "file, a variable of the environment, or built-in); then the rules and the steps, "
                 "each with its place, in the order in which they are asked"),
        CLI_TEXT("check", 0, &check, "FILE",
                 "read a file, or more that follow, strictly: 'FILE: ok', or each problem with its "
                 "line and the word that may be meant, and exit status 1"),
        CLI_TEXT(
            "explain", 0, &explain, "KERNEL",
            "the names of a kernel (mangled or base name), the rule that decides on it, what "
            "would decide without that rule, and the step that it is the marker of; or "
            "lib:FILE, for all kernels of a library or program; or api:CALL, for a memset, copy "
            "or record"),
        CLI_FLAG("template", &template, "a config file with every key at its built-in value"),
        CLI_CONFIG(". Behind --list or --explain"),
        CLI_TEXT("lib", 0, &lib, "FILE",
                 "behind --explain KERNEL: the library or program that the kernel is from"),
        CLI_TABLE_OR_JSON(&json),
        CLI_OLD_FLAG("json", cli_take_flag, &json),
        CLI_OUTPUT(cli_take_name, &output.path, "; - is stdout, as without it"),
        CLI_FORCE(&output.force),
        {0}};
    const struct cli_option *const tables[] = {options, NULL};
    struct cli_words words;
    if (argc == 1) {
        cli_print_help(self, tables);
        return EXIT_BAD;
    }
    int status = cli_options_read(self, argc, argv, CLI_WORDS, tables, &words);
    if (status >= 0)
        return status;
    if (is_missing(check) || is_missing(explain) || (words.n && !check) ||
        list + template + !!check + !!explain != 1 || (json && template) ||
        (cli_config_given() && !list && !explain) || (lib && !is_kernel(explain))) {
        cli_say("usage: cusplice %s", self->synopsis);
        return EXIT_BAD;
    }
    if (!cli_config_use())
        return EXIT_BAD;
    if (!cli_redirect_begin(&output, NULL))
        return 1;
    if (list)
        status = cli_config_list(json);
    else if (check)
        status = check_all(check, words.at, json);
    else if (explain)
        status = cli_config_explain(explain, lib, json);
    else
        cli_print_template();
    status = status < 0 ? 0 : status;
    return cli_redirect_end(&output, true) ? status : 1;
}

const struct cli_verb cli_verb_config = {
    .name = "config",
    .synopsis = "config --list | --check FILE... | --explain KERNEL [--lib FILE] [-c FILE]... | "
                "--template [--format table|json] [-o FILE]",
    .summary = "show and check settings, rules and steps",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "0, 1 where the configuration has a problem (each is told on stderr), 2 for a "
                     "bad option",
            .examples = "cusplice config --list\tWhat is set here and now, and where.\n"
                        "cusplice config --check mine.conf\tIs this file right?\n"
                        "cusplice config --explain attention_decode -c mine.conf\tWhich rule "
                        "decides on a kernel.\n",
            .files = "cusplice.conf\tSettings and rules, see cusplice.conf(5).\n",
            .see = "run cache",
            .takes = CLI_TAKES_CONF,
        },
};
