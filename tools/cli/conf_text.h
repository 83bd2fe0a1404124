/*
 * What may stand in a configuration file besides settings: rules, patterns, keys of steps. One
 * table each, from which config/cusplice.conf (template.c) and cusplice.conf(5) (man_conf.c) are
 * made. No state.
 */
#ifndef CUSPLICE_TOOLS_CLI_CONF_TEXT_H
#define CUSPLICE_TOOLS_CLI_CONF_TEXT_H

struct cli_conf_row {
    const char *word, *text; /* NULL: the table ends here */
};

extern const struct cli_conf_row cli_conf_rules[], cli_conf_patterns[], cli_conf_steps[];
/* Files that are read by themselves, weakest first. */
extern const struct cli_conf_row cli_conf_files[];

/* Paragraphs: which place wins, and what include does. */
extern const char cli_conf_places[], cli_conf_include[], cli_conf_deciding[], cli_conf_refused[],
    cli_conf_marker[];
/* Lines: sections as they stand in a file. */
extern const char cli_conf_rules_example[], cli_conf_step_example[];

#endif
