/*
 * How wide what a verb prints may be. Help, tables and reports ask it. Any thread; no state.
 */
#ifndef CUSPLICE_TOOLS_CLI_WIDTH_H
#define CUSPLICE_TOOLS_CLI_WIDTH_H

/* Of stdout: the terminal's columns; where it is none, the number in COLUMNS, else 120. */
unsigned cli_width(void);
/* How wide the terminal is that this is; 0: it is none. */
unsigned cli_terminal_width(int fd);

#endif
