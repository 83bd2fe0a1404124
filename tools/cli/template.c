/*
 * Writes config/cusplice.conf out of the table of settings, for the build and for `cusplice config
 * --template`. So no key is missing there, and none has another default. It never reads a
 * configuration.
 */
#include "tools/cli/verb.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/options.h"
#include "tools/cli/conf_text.h"

enum { WIDTH = 108 };

/* A comment that is filled to WIDTH; its lines begin with `head`, and from the second one on as far
 * in as `hang`. */
static void print_filled(const char *head, unsigned hang, const char *text) {
    unsigned at = (unsigned)printf("# %s", head);
    for (bool first = true; *text; first = false) {
        unsigned bytes = (unsigned)strcspn(text, " ");
        if (!first && at + 1 + bytes > WIDTH)
            at = (unsigned)printf("\n# %*s", (int)hang, "") - 1;
        else if (!first)
            at += (unsigned)printf(" ");
        at += (unsigned)printf("%.*s", (int)bytes, text);
        text += bytes + (text[bytes] != 0);
    }
    printf("\n");
}

static void print_comment(const char *text) {
    while (*text) {
        int bytes = (int)strcspn(text, "\n");
        printf("# %.*s\n", bytes, text);
        text += bytes + (text[bytes] != 0);
    }
}

/* Rows as "  WORD TAIL  text", the texts in one column. */
static void print_rows(const struct cli_conf_row *row, const char *tail, unsigned column) {
    for (; row->word; row++) {
        char head[64];
        unsigned used = (unsigned)snprintf(head, sizeof head, "  %s%s", row->word, tail);
        snprintf(head + used, sizeof head - used, "%*s", (int)(used < column ? column - used : 1),
                 "");
        print_filled(head, column, row->text);
    }
}

/* A section as it would stand there, commented out but for its head where `live`. */
static void print_section(const char *lines, bool live) {
    while (*lines) {
        int bytes = (int)strcspn(lines, "\n");
        printf("%s%.*s\n", live ? "" : "#", bytes, lines);
        lines += bytes + 1;
        live = false;
    }
}

static void print_settings(void) {
    const struct cus_option_row *row;
    char allowed[128];
    for (unsigned i = 0; (row = cus_options_row(i)); i++) {
        cus_options_allowed(i, allowed, sizeof allowed);
        printf("\n");
        print_comment(row->text);
        printf("# (%s)\n", allowed);
        printf("#%s =%s%s\n", row->key, *row->value ? " " : "", row->value);
    }
}

void cli_print_template(void) {
    puts(
        "# Every setting of cusplice with its built-in value. Made by: cusplice config --template\n"
        "#");
    print_filled("", 0, cli_conf_places);
    puts("#");
    print_filled("", 0, cli_conf_include);
    puts("#   include = vllm");
    print_settings();
    puts("");
    print_filled("", 0, cli_conf_deciding);
    print_rows(cli_conf_rules, " = PATTERN", 27);
    puts("# PATTERN is");
    print_rows(cli_conf_patterns, "", 16);
    print_filled("", 0, cli_conf_refused);
    print_section(cli_conf_rules_example, true);
    puts("");
    print_filled("", 0, cli_conf_marker);
    print_rows(cli_conf_steps, "", 15);
    print_section(cli_conf_step_example, false);
}
