/*
 * Leads stdout into a file and back. Verbs call it, on one thread. It never replaces a file unless
 * told to, and its inputs never.
 */
#include "tools/cli/redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/verb.h"

bool cli_redirect_is_file(const struct cli_redirect *output) {
    return output->path && strcmp(output->path, "-") != 0;
}

static bool refuse(const struct cli_redirect *output, int error) {
    cli_say("%s: cannot be written: %s", output->path, beside_why(error));
    return false;
}

bool cli_redirect_begin(struct cli_redirect *output, const char *const *from) {
    output->aside = false;
    if (!cli_redirect_is_file(output))
        return true;
    signal(SIGXFSZ, SIG_IGN); /* a limit on files is an error like others */
    int fd = beside_open(&output->beside, output->path, output->force, from);
    if (fd < 0)
        return refuse(output, errno);
    fflush(stdout);
    output->stdout_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    output->aside = dup2(fd, STDOUT_FILENO) >= 0;
    int error = errno;
    close(fd);
    if (output->aside)
        return true;
    beside_remove(&output->beside);
    return refuse(output, error);
}

static int end_aside(struct cli_redirect *output, bool whole, int error) {
    if (output->stdout_fd >= 0)
        dup2(output->stdout_fd, STDOUT_FILENO);
    else
        close(STDOUT_FILENO); /* as it was */
    if (output->stdout_fd >= 0)
        close(output->stdout_fd);
    if (whole && !error)
        return beside_name(&output->beside);
    beside_remove(&output->beside);
    return error;
}

bool cli_redirect_end(struct cli_redirect *output, bool whole) {
    errno = 0;
    int error = fflush(stdout) == 0 && !ferror(stdout) ? 0 : errno ? errno : EIO;
    if (output->aside)
        error = end_aside(output, whole, error);
    if (error && !cli_redirect_is_file(output) && error != EPIPE)
        cli_say("stdout: cannot be written: %s", strerror(error));
    else if (error && cli_redirect_is_file(output))
        refuse(output, error);
    return !error;
}
