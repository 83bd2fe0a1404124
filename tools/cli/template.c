/*
 * Writes config/cusplice.conf out of the table of settings, for the build and for `cusplice config
 * --template`. So no key is missing there, and none has another default. It never reads a
 * configuration.
 */
#include "tools/cli/verb.h"

#include <stdio.h>
#include <string.h>

#include "shim/base/options.h"

static void print_comment(const char *text) {
    while (*text) {
        int bytes = (int)strcspn(text, "\n");
        printf("# %.*s\n", bytes, text);
        text += bytes + (text[bytes] != 0);
    }
}

void cli_print_template(void) {
    const struct cus_option_row *row;
    char allowed[128];
    printf(
        "# Every setting of cusplice with its built-in value. Made by: cusplice config --template\n"
        "#\n"
        "# A later place wins: /etc/cusplice.conf, $XDG_CONFIG_HOME/cusplice/cusplice.conf, the "
        "files that\n"
        "# CUSPLICE_CONFIG (FILE:FILE, or cusplice run -c FILE -c FILE) names, the environment "
        "(CUSPLICE_<KEY>, or\n"
        "# cusplice run --set). A comment is a line that begins with # or ;, and nothing behind a "
        "value is one.\n"
        "#\n"
        "# include = NAME takes in another file, relative to this one, or a preset (vllm, nccl). "
        "This file is stronger\n"
        "# than those that it includes, and a later include is stronger than an earlier one; the "
        "rules of the stronger\n"
        "# file are asked first.\n"
        "#   include = vllm\n");
    for (unsigned i = 0; (row = cus_options_row(i)); i++) {
        cus_options_allowed(i, allowed, sizeof allowed);
        printf("\n");
        print_comment(row->text);
        printf("# (%s)\n", allowed);
        printf("#%s =%s%s\n", row->key, *row->value ? " " : "", row->value);
    }
    printf("\n"
           "# Rules say which kernels stay out of graphs. The first that matches decides; a kernel "
           "that none\n"
           "# matches may go into a graph.\n"
           "#   eager = PATTERN        launched by itself, exactly where the program launches it\n"
           "#   never_defer = PATTERN  the same, and nothing is deferred around it (a kernel that "
           "waits\n"
           "#                          for the host or for another GPU)\n"
           "#   graph = PATTERN        may go into a graph, whatever a rule below says\n"
           "#   uniform = PATTERN      may go into graphs of whole steps that are a uniform decode "
           "(see [step]);\n"
           "#                          launched by itself in all others\n"
           "#   uniform_single = PATTERN   the same, where each request has one token\n"
           "# PATTERN is a glob on the kernel's base name (without namespaces, template arguments "
           "and parameters),\n"
           "# re:REGEX (POSIX extended, on the base name or the name with its namespaces), or "
           "mangled:GLOB on the\n"
           "# name as the driver has it; lib:GLOB on the file name of the library or program that "
           "the kernel is\n"
           "# from; or api:GLOB on the driver's name of a memset, copy or record. What can match "
           "no name "
           "is refused:\n"
           "# comments behind a pattern, blanks, template arguments and namespaces in a glob.\n"
           "[rules]\n"
           "#eager = attention_decode\n"
           "#never_defer = lib:libnccl*\n"
           "#eager = api:cuMemcpyDtoDAsync\n"
           "#uniform = paged_attention*\n"
           "#uniform_single = masked_multihead_attention*\n"
           "\n"
           "# Steps describe themselves: a marker kernel, early in each step, whose grid says how "
           "many tokens the\n"
           "# step works on and whether it is a uniform decode. The first section whose marker "
           "matches decides.\n"
           "#   marker       PATTERN as above; the one key that must be there\n"
           "#   tokens       the grid dimension that is the number of tokens: x, y or z (without "
           "it: x)\n"
           "#   tokens_each  tokens for one block of that dimension (without it: 1)\n"
           "#   uniform      when every request of the step has the same number of tokens: x, y, z "
           "or tokens\n"
           "#                compared with a number by ==, !=, <=, >=, < or > (without it: never)\n"
           "#   single       the same, where that number is one (without it: never)\n"
           "#   sizes        token counts of steps that may be captured, first..last/stride for "
           "many; a step of\n"
           "#                any other size is launched op by op (without it: all)\n"
           "#[step decode]\n"
           "#marker = embedding*\n"
           "#tokens = x\n"
           "#tokens_each = 1\n"
           "#uniform = tokens <= 64\n"
           "#single = tokens <= 64\n"
           "#sizes = 1,2,4,8..64/8\n");
}
