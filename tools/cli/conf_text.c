/*
 * What may stand in a configuration file besides settings. See conf_text.h.
 */
#include "tools/cli/conf_text.h"

const char cli_conf_places[] =
    "A later place wins: /etc/cusplice.conf, $XDG_CONFIG_HOME/cusplice/cusplice.conf, the files "
    "that CUSPLICE_CONFIG (FILE:FILE, or cusplice run -c FILE -c FILE) names, the environment "
    "(CUSPLICE_<KEY>, or cusplice run --set). A comment is a line that begins with # or ;, and "
    "nothing behind a value is one.";

const char cli_conf_include[] =
    "include = NAME takes in another file, relative to this one, or a preset (vllm, nccl). This "
    "file is stronger than those that it includes, and a later include is stronger than an earlier "
    "one; the rules of the stronger file are asked first.";

const char cli_conf_deciding[] =
    "Rules say which kernels stay out of graphs. The first that matches decides; a kernel that "
    "none matches may go into a graph.";

const char cli_conf_refused[] =
    "What can match no name is refused: comments behind a pattern, blanks, template arguments and "
    "namespaces in a glob.";

const char cli_conf_marker[] =
    "Steps describe themselves: a marker kernel, early in each step, whose grid says how many "
    "tokens the step works on and whether it is a uniform decode. The first section whose marker "
    "matches decides.";

const struct cli_conf_row cli_conf_files[] = {
    {"/etc/cusplice.conf", "Settings and rules of the machine."},
    {"$XDG_CONFIG_HOME/cusplice/cusplice.conf",
     "Those of the user; ~/.config/cusplice/cusplice.conf without that variable."},
    {0},
};

const struct cli_conf_row cli_conf_rules[] = {
    {"eager", "launched by itself, exactly where the program launches it"},
    {"never_defer", "the same, and nothing is deferred around it (a kernel that waits for the host "
                    "or for another GPU)"},
    {"graph", "may go into a graph, whatever a rule below says"},
    {"uniform", "may go into graphs of whole steps that are a uniform decode (see [step]); "
                "launched by itself in all others"},
    {"uniform_single", "the same, where each request has one token"},
    {0},
};

const struct cli_conf_row cli_conf_patterns[] = {
    {"GLOB", "the kernel's base name, without namespaces, template arguments and parameters"},
    {"re:REGEX", "POSIX extended, on the base name or the name with its namespaces"},
    {"mangled:GLOB", "the name as the driver has it"},
    {"lib:GLOB", "the file name of the library or program that the kernel is from"},
    {"api:GLOB", "the driver's name of a memset, copy or record"},
    {0},
};

const struct cli_conf_row cli_conf_steps[] = {
    {"marker", "PATTERN as above; the one key that must be there"},
    {"tokens", "the grid dimension that is the number of tokens: x, y or z (without it: x)"},
    {"tokens_each", "tokens for one block of that dimension (without it: 1)"},
    {"uniform", "when every request of the step has the same number of tokens: x, y, z or tokens "
                "compared with a number by ==, !=, <=, >=, < or > (without it: never)"},
    {"single", "the same, where that number is one (without it: never)"},
    {"sizes", "token counts of steps that may be captured, first..last/stride for many; a step of "
              "any other size is launched op by op (without it: all)"},
    {0},
};

const char cli_conf_rules_example[] = "[rules]\n"
                                      "eager = attention_decode\n"
                                      "never_defer = lib:libnccl*\n"
                                      "eager = api:cuMemcpyDtoDAsync\n"
                                      "uniform = paged_attention*\n"
                                      "uniform_single = masked_multihead_attention*\n";

const char cli_conf_step_example[] = "[step decode]\n"
                                     "marker = embedding*\n"
                                     "tokens = x\n"
                                     "tokens_each = 1\n"
                                     "uniform = tokens <= 64\n"
                                     "single = tokens <= 64\n"
                                     "sizes = 1,2,4,8..64/8\n";
