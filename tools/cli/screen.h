/*
 * The terminal that `cusplice top` fills: frames that fit the window, colours, and the key q. The
 * views of top call it, on one thread. Where stdout is no terminal, or one that cannot move its
 * cursor (TERM=dumb), frames are plain text, one behind the other. It never bounds or colours
 * those.
 */
#ifndef CUSPLICE_TOOLS_CLI_SCREEN_H
#define CUSPLICE_TOOLS_CLI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* How the text behind it looks, within a line. No text of a page holds such bytes. */
#define CLI_PLAIN "\001"
#define CLI_BOLD "\002"
#define CLI_DIM "\003"
#define CLI_GREEN "\004"
#define CLI_YELLOW "\005"
#define CLI_RED "\006"
/* The rest of the line is shown on a screen alone. */
#define CLI_HINT "\007"

/* Takes the terminal, if there is one that can move its cursor, until cli_screen_end. */
void cli_screen_begin(void);
/* Gives it back as it was, and prints the last frame there: what was seen last stays. */
void cli_screen_end(void);
bool cli_screen_is_on(void);
/* Of the window; UINT_MAX without a screen. */
unsigned cli_screen_columns(void);

/* A frame is written to what cli_screen_frame returns, then shown. */
FILE *cli_screen_frame(void);
void cli_screen_show(void);

/* True: the user pressed q. Sooner than `ns` also where the window has another size now; the last
 * frame was then shown in it. */
bool cli_screen_wait(uint64_t ns);

#endif
