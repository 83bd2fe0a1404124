/*
 * Writes config/cusplice.conf out of the options table, so that no key is missing there and none
 * has another default.
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
        "file that\n"
        "# CUSPLICE_CONFIG (or cusplice run -c) names, the environment (CUSPLICE_<KEY>, or "
        "cusplice run --set).\n"
        "# A comment is a line that begins with # or ;.\n");
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
           "#   never_defer = PATTERN  the same, and nothing is withheld or built around it (a "
           "kernel that waits\n"
           "#                          for the host or for another GPU)\n"
           "#   graph = PATTERN        may go into a graph, whatever a rule below says\n"
           "# PATTERN is a glob on the kernel's base name (without namespaces, template arguments "
           "and parameters),\n"
           "# re:REGEX (POSIX extended, on the base name or the name with its namespaces), or "
           "mangled:GLOB on the\n"
           "# name as the driver has it.\n"
           "[rules]\n"
           "#eager = attention_decode\n"
           "#never_defer = re:^nccl.*Kernel\n");
}
