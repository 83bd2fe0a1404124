/*
 * How wide stdout is. A file or pipe is 120 columns wide, so that a table in a log can be read:
 * csv and json, and tables with --wide, have all of it. Any thread.
 */
#include "tools/cli/width.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LEAST = 20, USUAL = 120, MOST = 10000 };

unsigned cli_terminal_width(int fd) {
    struct winsize size;
    return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

unsigned cli_width(void) {
    const char *columns = getenv("COLUMNS");
    int n = columns ? atoi(columns) : 0;
    unsigned terminal = cli_terminal_width(STDOUT_FILENO);
    if (terminal)
        n = (int)terminal;
    if (n <= 0 || n > MOST)
        return USUAL;
    return n < LEAST ? LEAST : (unsigned)n;
}
