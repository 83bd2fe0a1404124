/*
 * How wide stdout is. A file or pipe is 120 columns wide, so that a table in a log can be read:
 * csv and json, and tables with --wide, have all of it. Any thread.
 */
#include "tools/cli/width.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LEAST = 20, USUAL = 120, MOST = 10000 };

unsigned cli_width(void) {
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int n = columns ? atoi(columns) : 0;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
        n = size.ws_col;
    if (n <= 0 || n > MOST)
        return USUAL;
    return n < LEAST ? LEAST : (unsigned)n;
}
