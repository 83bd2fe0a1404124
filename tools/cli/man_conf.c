/*
 * cusplice.conf(5), for `cusplice help --man cusplice.conf`: out of the table of settings
 * (base/options.def) and those of conf_text.c. man.c calls it, on one thread. It adds no fact of
 * its own.
 */
#include <stdio.h>
#include <string.h>

#include "shim/base/options.h"
#include "tools/cli/conf_text.h"
#include "tools/cli/pages.h"
#include "tools/cli/roff.h"

static void put_setting(unsigned index, const struct cus_option_row *row) {
    char allowed[128];
    cus_options_allowed(index, allowed, sizeof allowed);
    roff_item();
    roff_font('B', row->key);
    roff_words("=");
    roff_words(*row->value ? row->value : "(empty)");
    roff_item_text();
    for (const char *line = row->text; *line;) {
        size_t bytes = strcspn(line, "\n");
        roff_text(line, bytes);
        line += bytes + (line[bytes] == '\n');
    }
    roff_break();
    roff_words("Values:");
    roff_words(allowed);
    roff_mark('.');
}

static void put_settings(void) {
    const struct cus_option_row *row;
    const struct cus_option_old *old;
    roff_section("SETTINGS");
    roff_words("Each key stands with its built-in value.");
    for (unsigned i = 0; (row = cus_options_row(i)); i++)
        put_setting(i, row);
    roff_paragraph();
    roff_words("Old names, which work in this version with a warning:");
    for (unsigned i = 0; (old = cus_options_old(i)); i++) {
        roff_font('B', old->old);
        roff_words("for");
        roff_font('B', old->key);
        if (cus_options_old(i + 1))
            roff_mark(',');
    }
    roff_mark('.');
}

static void put_rows(const struct cli_conf_row *row, const char *tail) {
    for (; row->word; row++) {
        roff_item();
        roff_font('B', row->word);
        if (*tail)
            roff_words("="), roff_font('I', tail);
        roff_item_text();
        roff_words(row->text);
        if (row->text[strlen(row->text) - 1] != '.')
            roff_mark('.');
    }
}

static void put_paragraph(const char *text) {
    roff_paragraph();
    roff_words(text);
}

void cli_man_conf(void) {
    roff_head("cusplice.conf", 5, "settings and rules of cusplice");
    roff_section("DESCRIPTION");
    roff_words("A file has settings, then rules, then steps.");
    put_paragraph(cli_conf_places);
    put_paragraph(cli_conf_include);
    put_settings();
    roff_section("RULES");
    roff_words(cli_conf_deciding);
    put_rows(cli_conf_rules, "PATTERN");
    put_paragraph("PATTERN is");
    put_rows(cli_conf_patterns, "");
    put_paragraph(cli_conf_refused);
    roff_section("STEPS");
    roff_words(cli_conf_marker);
    put_rows(cli_conf_steps, "");
    roff_section("FILES");
    put_rows(cli_conf_files, "");
    roff_section("EXAMPLES");
    roff_words("Rules:");
    roff_lines(cli_conf_rules_example, strlen(cli_conf_rules_example));
    roff_paragraph();
    roff_words("A step:");
    roff_lines(cli_conf_step_example, strlen(cli_conf_step_example));
    roff_section("SEE ALSO");
    roff_see("cusplice", 1, false);
    roff_see("cusplice-config", 1, false);
    roff_see("cusplice-run", 1, true);
    roff_end();
}
