/*
 * Shows frames on a terminal. The views of `cusplice top` call it, on one thread; signal handlers
 * touch only the terminal and flags.
 *
 * Why no terminal library: the ten sequences below are those of every terminal since the VT100.
 * ncurses draws nothing that top needs beyond them, and its shared library and its database of
 * terminals would have to be on each machine where the launcher runs. That is more to install than
 * this file has lines.
 */
#include "tools/cli/screen.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "tools/trace/clean.h"

/* The alternate screen, so that what was there before comes back; no cursor. */
#define ENTER "\033[?1049h\033[?25l\033[H\033[2J"
#define LEAVE "\033[0m\033[?25h\033[?1049l"

enum { SECOND = 1000000000 };

static struct {
    bool keys, coloured;
    struct termios before; /* if `keys` */
    FILE *frame;
    char *text; /* of the frame that is written, or was written last */
    size_t bytes;
    unsigned columns, rows; /* of the window when the last frame was shown */
    sigset_t mask;          /* of the program: SIGWINCH comes only while cli_screen_wait waits */
} here;
static volatile sig_atomic_t on, changed; /* changed: the window has another size */

/* ---- the terminal ---- */

static void put(const char *codes) {
    ssize_t done = write(STDOUT_FILENO, codes, strlen(codes));
    (void)done; /* a terminal that is gone shows nothing */
}

/* In the background, reading or changing a terminal stops a program. */
static bool is_in_front(void) {
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* Keys come at once and are not shown. */
static void take_terminal(void) {
    struct termios raw = here.before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    if (here.keys && is_in_front())
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    put(ENTER);
}

static void give_terminal(void) {
    put(LEAVE);
    if (here.keys && is_in_front())
        tcsetattr(STDIN_FILENO, TCSANOW, &here.before);
}

static void resized(int number) {
    (void)number;
    changed = 1;
}

/* The signal does what it does without this handler, on the terminal as it was before. */
static void leave(int number) {
    int saved = errno;
    sigset_t one;
    give_terminal();
    signal(number, SIG_DFL);
    raise(number);
    sigemptyset(&one);
    sigaddset(&one, number);
    sigprocmask(SIG_UNBLOCK, &one, NULL); /* a stop comes back here, everything else ends here */
    struct sigaction action = {.sa_handler = leave, .sa_flags = SA_RESTART};
    sigaction(number, &action, NULL);
    if (on)
        take_terminal();
    changed = 1;
    errno = saved;
}

static void handle(bool ours) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
    struct sigaction action = {.sa_handler = resized, .sa_flags = SA_RESTART}, old;
    sigset_t size;
    sigemptyset(&size);
    sigaddset(&size, SIGWINCH);
    sigaction(SIGWINCH, &action, NULL);
    sigprocmask(ours ? SIG_BLOCK : SIG_UNBLOCK, &size, ours ? &here.mask : NULL);
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        action.sa_handler = ours ? leave : SIG_DFL;
        sigaction(numbers[i], NULL, &old);
        if (old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

void cli_screen_begin(void) {
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    if (on || !isatty(STDOUT_FILENO) || !term || !*term || strcmp(term, "dumb") == 0)
        return;
    here.coloured = !no_color || !*no_color;
    here.keys = tcgetattr(STDIN_FILENO, &here.before) == 0;
    on = 1;
    handle(true);
    take_terminal();
}

void cli_screen_end(void) {
    if (!on)
        return;
    on = 0;
    handle(false);
    give_terminal();
    cli_screen_show(); /* plain now, and as a whole */
}

bool cli_screen_is_on(void) {
    return on;
}

/* A terminal that does not know its size says 0. */
static void measure(void) {
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    here.columns = known && size.ws_col ? size.ws_col : 80;
    here.rows = known && size.ws_row ? size.ws_row : 24;
}

unsigned cli_screen_columns(void) {
    if (!on)
        return UINT_MAX;
    measure();
    return here.columns;
}

/* ---- frames ---- */

FILE *cli_screen_frame(void) {
    if (here.frame)
        fclose(here.frame);
    free(here.text);
    here.text = NULL;
    here.frame = open_memstream(&here.text, &here.bytes);
    return here.frame ? here.frame : stdout;
}

/* The line at `at`, in at most so many columns. Returns what is behind the line. */
static const char *put_line(FILE *to, const char *at, unsigned columns, bool coloured) {
    static const char *const codes[] = {"0", "1", "2", "32", "33", "31", "2"};
    unsigned used = 0;
    bool cut = false;
    for (struct clean_character c; *at && *at != '\n'; at += c.bytes) {
        unsigned style = (unsigned char)*at - 1u;
        c = clean_next(at);
        if (style < sizeof codes / sizeof *codes) {
            cut |= *at == *CLI_HINT && !on;
            if (coloured)
                fprintf(to, "\033[%sm", codes[style]);
            continue;
        }
        cut |= used + c.columns > columns;
        if (cut)
            continue;
        used += c.columns;
        if (c.shown)
            fwrite(at, 1, c.bytes, to);
        else
            putc('?', to);
    }
    if (coloured)
        fputs("\033[0m", to);
    return at + (*at == '\n');
}

/* Each line of a frame ends. */
static unsigned count_lines(const char *text) {
    unsigned n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

/* Each line is placed by itself and erased before it is written. So nothing scrolls, and the last
 * column may be used. */
static void show_on_screen(const char *text) {
    measure();
    unsigned lines = count_lines(text), row = 1;
    bool cut = lines > here.rows && here.rows > 1; /* one row alone is for the head */
    unsigned whole = cut ? here.rows - 1 : lines < here.rows ? lines : here.rows;
    for (; row <= whole; row++) {
        fprintf(stdout, "\033[%u;1H\033[K", row);
        text = put_line(stdout, text, here.columns, here.coloured);
    }
    if (cut) {
        char more[64];
        snprintf(more, sizeof more, CLI_DIM "and %u lines more", lines - whole);
        fprintf(stdout, "\033[%u;1H\033[K", row);
        put_line(stdout, more, here.columns, here.coloured);
    } else if (row <= here.rows) {
        fprintf(stdout, "\033[%u;1H\033[J", row);
    }
}

void cli_screen_show(void) {
    if (here.frame)
        fflush(here.frame);
    if (!here.frame || !here.text)
        return;
    changed = 0;
    if (on)
        show_on_screen(here.text);
    else
        for (const char *at = here.text; *at; putc('\n', stdout))
            at = put_line(stdout, at, UINT_MAX, false);
    fflush(stdout);
}

/* ---- waiting ---- */

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* Reads what was typed. A terminal that is gone sends nothing any more. */
static bool is_quit(void) {
    char keys[64];
    ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
    if (n <= 0)
        here.keys = n < 0 && errno == EINTR;
    for (ssize_t i = 0; i < n; i++)
        if (keys[i] == 'q' || keys[i] == 'Q')
            return true;
    return false;
}

bool cli_screen_wait(uint64_t ns) {
    const uint64_t end = now_ns() + ns;
    for (uint64_t now; (now = now_ns()) < end;) {
        struct timespec rest = {(time_t)((end - now) / SECOND), (long)((end - now) % SECOND)};
        bool may_read = on && here.keys && is_in_front();
        struct pollfd keys = {.fd = may_read ? STDIN_FILENO : -1, .events = POLLIN};
        if (ppoll(&keys, 1, &rest, on ? &here.mask : NULL) > 0 && is_quit())
            return true;
        if (on && changed) {
            put("\033[2J");
            cli_screen_show();
        }
    }
    return false;
}
