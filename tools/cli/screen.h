/*
 * How wide what a verb prints may be. Help, tables and reports ask it. Any thread; no state.
 */
#ifndef CUSPLICE_TOOLS_CLI_SCREEN_H
#define CUSPLICE_TOOLS_CLI_SCREEN_H

/* Of stdout: the terminal's columns; where it is none, the number in COLUMNS, else 120. */
unsigned cli_screen_columns(void);

#endif
