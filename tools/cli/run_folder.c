/*
 * The folder of a run. The launcher's one thread. It never removes a file of a folder that the user
 * named: another run may fill the same one at this moment (mpirun cusplice run ...). Reads a report
 * only from a regular file of this user's.
 */
#include "tools/cli/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/file.h"
#include "shim/base/process_rank.h"
#include "shim/stats/report.h"
#include "tools/cli/run.h"
#include "tools/cli/run_table.h"
#include "tools/cli/temporary.h"
#include "tools/cli/width.h"
#include "tools/trace/clean.h"

static char taken[PATH_MAX];     /* an absolute path, by any option; "": none */
static char named[PATH_MAX];     /* by --stats; "": none */
static char temporary[PATH_MAX]; /* "": none */
static bool told;                /* `why` is in force, and an outer launcher does not tell */

/* ---- the user's folder ---- */

bool cli_folder_is_named(const char *path) {
    struct stat info;
    size_t bytes = strlen(path);
    return bytes && (path[bytes - 1] == '/' || (stat(path, &info) == 0 && S_ISDIR(info.st_mode)));
}

/* NULL: the folder is there, maybe since now, and the user's. */
static const char *prepare(const char *path) {
    struct stat info;
    static const char *const marks[] = {"{pid}", "%p", "{process}", "{host}"};
    for (unsigned i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(path, marks[i]))
            return "a folder is one for all processes: {pid}, {process}, {host} and %p stand in "
                   "names of files";
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return strerror(errno);
    if (stat(path, &info) != 0)
        return strerror(errno);
    if (!S_ISDIR(info.st_mode))
        return "it is no folder";
    if (info.st_uid != geteuid())
        return "it is another user's";
    return access(path, W_OK | X_OK) == 0 ? NULL : strerror(errno);
}

/* The folder without slashes at its end. False: what stands there is too long for a path. */
static bool trim(const char *path, char out[PATH_MAX]) {
    size_t bytes = strlen(path);
    while (bytes > 1 && path[bytes - 1] == '/')
        bytes--;
    snprintf(out, PATH_MAX, "%.*s", bytes < PATH_MAX ? (int)bytes : 0, path);
    return *out != 0;
}

static bool set_in(const char *folder, const char *key, const char *suffix) {
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/{process}%s", folder, suffix);
    return cli_run_set_path(key, path);
}

bool cli_folder_take(const char *option, const char *path, const char *key, const char *suffix) {
    char folder[PATH_MAX];
    const char *wrong = trim(path, folder) ? prepare(folder) : strerror(ENAMETOOLONG);
    if (wrong) {
        cli_say("%s %s: %s", option, path, wrong);
        return false;
    }
    if (!realpath(folder, taken))
        *taken = 0;
    return set_in(folder, key, suffix);
}

const char *cli_folder_shared(void) {
    struct stat info;
    bool ours = *taken && stat(taken, &info) == 0 && info.st_uid == geteuid() &&
                !(info.st_mode & (S_IWGRP | S_IWOTH));
    return ours ? taken : NULL;
}

bool cli_folder_take_stats(const char *path) {
    return cli_folder_take("--stats", path, "stats", ".json") && trim(path, named);
}

/* ---- before the program ---- */

struct said {
    bool log, log_file, why_file;
};

static void notice(void *context, const struct cus_setting *setting) {
    struct said *said = context;
    if (*setting->section)
        return;
    said->log |= strcmp(setting->key, "log") == 0;
    said->log_file |= strcmp(setting->key, "log_file") == 0 && *setting->value;
    said->why_file |= strcmp(setting->key, "why_file") == 0 && *setting->value;
}

/* Reports that nobody asked to keep are shown and go. */
static const char *make_temporary(void) {
    if (!cli_temporary(temporary, sizeof temporary, "cusplice-XXXXXX") || strchr(temporary, '{') ||
        strstr(temporary, "%p") || !mkdtemp(temporary))
        *temporary = 0;
    return temporary;
}

static struct said look(void) {
    struct said said = {false, false, false};
    for (int source = 0; source < CUS_SOURCES; source++)
        cus_config_read((enum cus_source)source, notice, NULL, &said);
    return said;
}

bool cli_folder_begin(bool why) {
    const struct said said = look();
    if (*named && said.log && !said.log_file && !set_in(named, "log_file", ".log"))
        return false;
    return !*named || !why || set_in(named, "why_file", ".why");
}

bool cli_folder_gather(bool why) {
    const struct said said = look();
    const char *gathered = getenv("CUSPLICE_WHY_FILE");
    bool inner = getenv("CUSPLICE_HANDSHAKE") && gathered && *gathered;
    told = why && (*named || !inner);
    if (!why || said.why_file || said.log_file || !*make_temporary())
        return true; /* reports go where they are led, or into the log */
    return set_in(temporary, "why_file", ".why");
}

/* ---- after it ---- */

/* Lines that a terminal has no room for end between words. */
static void put_lines(FILE *to, char *text, unsigned width) {
    char *line;
    while (text && (line = strsep(&text, "\n")) && (*line || text)) {
        size_t indent = strspn(line, " ");
        const char *gap = strstr(line + indent, "  "); /* behind the numbers of a break */
        size_t head = gap ? (size_t)(gap - line) + 2 : indent;
        if (clean_columns(line) <= width) {
            fprintf(to, "%s\n", line);
            continue;
        }
        fprintf(to, "%.*s", (int)head, line);
        clean_fold(to, line + head, head, indent + 2, width);
    }
}

/* Copies a report. It is a file of the program's, so it is cut where reports end. */
static void show_report(FILE *to, const char *folder, const struct cli_row *row) {
    static char text[CUS_REPORT_TEXT + 1];
    char path[PATH_MAX + 64], name[CUS_PROCESS_NAME];
    struct stat info;
    cus_process_name(row->rank, row->pid, name);
    snprintf(path, sizeof path, "%s/%s.why", folder, name);
    int fd = cus_file_open(path, O_RDONLY | O_NOFOLLOW, 0);
    if (fd < 0)
        return;
    ssize_t got = 0;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid())
        got = read(fd, text, sizeof text - 1);
    unsigned width = cli_terminal_width(STDERR_FILENO);
    text[got > 0 ? got : 0] = 0;
    if (got > 0 && width)
        put_lines(to, text, width);
    else if (got > 0)
        fwrite(text, 1, (size_t)got, to);
    close(fd);
}

static void show(FILE *to) {
    const struct cli_row *rows, *most = NULL;
    unsigned n = cli_table_rows(&rows);
    for (unsigned i = 0; i < n; i++)
        if (rows[i].ran && (!most || rows[i].ops > most->ops))
            most = &rows[i];
    if (n > 1)
        cli_table_print(to);
    const char *folder = *named ? named : temporary;
    if (!most || !*folder)
        return;
    if (n > 1 && *named) {
        fprintf(to, "cusplice: the report of each process is in %s\n", named);
        return;
    }
    if (n > 1)
        fprintf(to,
                "cusplice: the report of process %ld, which launched most, follows (--stats "
                "FOLDER/ keeps that of each)\n",
                most->pid);
    show_report(to, folder, most);
}

/* The folder is this run's own: all in it goes. */
static void remove_temporary(void) {
    char path[PATH_MAX + 256];
    DIR *folder = opendir(temporary);
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        snprintf(path, sizeof path, "%s/%s", temporary, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(path);
    }
    if (folder)
        closedir(folder);
    rmdir(temporary);
    *temporary = 0;
}

void cli_folder_end(void) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = told ? open_memstream(&text, &bytes) : NULL;
    if (to) {
        show(to);
        fclose(to);
        /* No pipe that nobody reads changes how the launcher ends, nor holds it up. */
        (void)cus_file_write(STDERR_FILENO, text, bytes, CUS_FILE_PATIENCE_MS);
        free(text);
    }
    if (*temporary)
        remove_temporary();
}
