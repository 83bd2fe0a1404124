/*
 * Which files hold the settings: those of a source, and those that they include. Each file is
 * opened once, judged as base/file.c judges settings, and read twice: for what it includes, then
 * for its settings. Runs where config.c runs. Holds no lock, and never more than FILES files open.
 */
#define _GNU_SOURCE /* secure_getenv */
#include "shim/base/config_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/file.h"
#include "shim/base/mem.h"
#include "shim/base/path.h"
#include "shim/base/presets.h"

enum { FILES = 64, DEPTH = 8, OPENED = 256 };

struct file {
    int fd;
    struct cus_file_id id;
    char *path, *by; /* by: the file that includes it, or NULL */
    int line;
};

/* A file whose includes are being read. */
struct level {
    char path[PATH_MAX];
    struct cus_file_id id;
};

struct cus_config_files {
    struct file file[FILES];
    unsigned n, opened;
    struct level level[DEPTH + 1]; /* the last one for a file that is refused */
    unsigned depth;
    cus_problem_fn *problem;
    void *context;
    /* The stack may be that of a small thread of the program. */
    char folder[PATH_MAX], name[PATH_MAX], joined[PATH_MAX], part[PATH_MAX];
};

/* ---- names ---- */

static bool is_file(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

/* May it be the name of a preset? */
static bool is_word(const char *name) {
    size_t bytes = strlen(name);
    return *name && !strchr(name, '/') && !(bytes > 5 && strcmp(name + bytes - 5, ".conf") == 0);
}

bool cus_config_find(const char *name, const char *folder, char *out, unsigned bytes,
                     char nearest[CUS_PRESET_BYTES]) {
    int saved = errno;
    bool beside = *name != '/' && *folder;
    bool fits = (unsigned)snprintf(out, bytes, "%s%s%s", beside ? folder : "", beside ? "/" : "",
                                   name) < bytes;
    *nearest = 0;
    /* A folder of the same name, such as a checkout of vllm, is not what is meant. */
    if (fits && is_word(name) && !is_file(out) && !cus_preset_find(name, out, bytes)) {
        cus_preset_nearest(name, nearest, CUS_PRESET_BYTES);
        fits = false;
    }
    errno = saved;
    return fits;
}

/* ---- problems ---- */

static void tell(const struct cus_config_files *files, const char *file, int line,
                 const char *nearest, bool notice, const char *text) {
    struct cus_problem it = {file, line, text, nearest && *nearest ? nearest : NULL, notice};
    if (files->problem)
        files->problem(files->context, &it);
}

void cus_config_tell_unopened(const char *path, bool may_be_absent, const char *why,
                              cus_problem_fn *problem, void *context) {
    char text[160];
    if (!why && may_be_absent && (errno == ENOENT || errno == ENOTDIR))
        return;
    snprintf(text, sizeof text, why ? "not believed: %s" : "cannot be opened: %s",
             cus_file_why(why));
    if (problem)
        problem(context, &(struct cus_problem){path, 0, text, NULL, false});
}

/* ---- the list ---- */

static void drop(struct file *file) {
    close(file->fd);
    cus_mem_free(file->path);
    cus_mem_free(file->by);
}

/* A file that comes twice counts where it is strongest; what it says there hides what it would say
 * elsewhere. */
static void drop_earlier(struct cus_config_files *files, const struct cus_file_id *id) {
    for (unsigned i = 0; i < files->n; i++)
        if (cus_file_is(files->file[i].fd, id)) {
            drop(&files->file[i]);
            files->n--;
            memmove(&files->file[i], &files->file[i + 1], (files->n - i) * sizeof *files->file);
            return;
        }
}

static void append(struct cus_config_files *files, int fd, const char *path, const char *by,
                   int line) {
    struct file it = {.fd = fd, .line = line};
    const char *text = NULL;
    it.path = cus_mem_text(path);
    it.by = by ? cus_mem_text(by) : NULL;
    if (!cus_file_identify(fd, &it.id) || lseek(fd, 0, SEEK_SET) != 0)
        text = "cannot be read";
    else
        drop_earlier(files, &it.id);
    if (!it.path || (by && !it.by))
        text = "no memory to read it";
    else if (files->n == FILES)
        text = "too many files of settings";
    if (text) {
        tell(files, path, 0, NULL, false, text);
        drop(&it);
        return;
    }
    files->file[files->n++] = it;
}

static void take_include(void *context, const char *name, int line);

/* Adds what a file includes, then the file, whose path stands in its level. Takes the
 * descriptor. */
static void add(struct cus_config_files *files, int fd, const char *by, int line) {
    struct level *level = &files->level[files->depth];
    if (cus_file_identify(fd, &level->id)) {
        files->depth++;
        cus_config_parse(fd, level->path, NULL, NULL, take_include, files);
        files->depth--;
    }
    append(files, fd, level->path, by, line);
}

/* ---- include = NAME ---- */

/* Why the file may not be included here. NULL: it may. */
static const char *obstacle(struct cus_config_files *files, int fd) {
    for (unsigned i = 0; i < files->depth; i++)
        if (cus_file_is(fd, &files->level[i].id))
            return "it includes itself";
    if (files->depth == DEPTH)
        return "files include each other more than 8 deep";
    return ++files->opened > OPENED ? "too many files are included" : NULL;
}

static void tell_include(struct cus_config_files *files, const char *name, int line,
                         const char *nearest, const char *what, const char *why) {
    char text[400], shown[200];
    snprintf(text, sizeof text, "include = %s: %s%s", cus_path_shown(name, shown, sizeof shown),
             what, why);
    tell(files, files->level[files->depth - 1].path, line, nearest, false, text);
}

static void take_include(void *context, const char *name, int line) {
    struct cus_config_files *files = context;
    const char *by = files->level[files->depth - 1].path, *why = NULL;
    char *path = files->level[files->depth].path, nearest[CUS_PRESET_BYTES];
    const char *slash = strrchr(by, '/');
    snprintf(files->folder, PATH_MAX, "%.*s", slash ? (int)(slash - by) + (slash == by) : 0, by);
    if (!*name) {
        tell_include(files, name, line, NULL, "the name of a file or preset is missing", "");
    } else if (!cus_config_find(name, files->folder, path, PATH_MAX, nearest)) {
        tell_include(files, name, line, nearest, "there is no such file and no such preset", "");
    } else {
        int fd = cus_file_open_settings(path, &why);
        const char *wrong = fd >= 0 ? obstacle(files, fd) : NULL;
        if (fd >= 0 && !wrong) {
            add(files, fd, by, line);
            return;
        }
        tell_include(files, name, line, NULL,
                     wrong ? ""
                     : why ? "not believed: "
                           : "cannot be opened: ",
                     wrong ? wrong : cus_file_why(why));
        if (fd >= 0)
            close(fd);
    }
}

/* ---- the files of a source ---- */

static struct cus_config_files *new_files(const char *what, cus_problem_fn *problem,
                                          void *context) {
    struct cus_config_files *files = cus_mem_alloc(sizeof *files);
    struct cus_problem none = {what, 0, "no memory to read it", NULL, false};
    if (files) {
        files->problem = problem;
        files->context = context;
    } else if (problem) {
        problem(context, &none);
    }
    return files;
}

/* A list of one file and what it includes; NULL: none. `fd`, `why` and errno: as it was opened. */
static struct cus_config_files *files_of(const char *path, int fd, bool may_be_absent,
                                         const char *why, cus_problem_fn *problem, void *context) {
    struct cus_config_files *files = NULL;
    if (fd < 0) {
        cus_config_tell_unopened(path, may_be_absent, why, problem, context);
    } else if (!(files = new_files(path, problem, context))) {
        close(fd);
    } else {
        snprintf(files->level->path, PATH_MAX, "%s", path);
        add(files, fd, NULL, 0);
    }
    return files;
}

static struct cus_config_files *files_of_path(const char *path, bool may_be_absent,
                                              cus_problem_fn *problem, void *context) {
    const char *why;
    int fd = cus_file_open_settings(path, &why);
    return files_of(path, fd, may_be_absent, why, problem, context);
}

static struct cus_config_files *files_of_user(cus_problem_fn *problem, void *context) {
    char path[PATH_MAX];
    const char *xdg = secure_getenv("XDG_CONFIG_HOME"), *why;
    bool own = xdg && *xdg;
    const char *folder = own ? xdg : secure_getenv("HOME");
    const char *below = own ? "cusplice" : ".config/cusplice";
    if (!folder || !*folder ||
        snprintf(path, PATH_MAX, "%s/%s/cusplice.conf", folder, below) >= PATH_MAX)
        return NULL;
    int fd = cus_file_open_own_settings(folder, below, "cusplice.conf", &why);
    return files_of(path, fd, true, why, problem, context);
}

static const char variable[] = "CUSPLICE_CONFIG";

static void add_named(struct cus_config_files *files) {
    char nearest[CUS_PRESET_BYTES], text[300], shown[200], *path = files->level->path;
    const char *why;
    if (!cus_config_find(files->name, "", path, PATH_MAX, nearest)) {
        snprintf(text, sizeof text, "%s: there is no such file and no such preset",
                 cus_path_shown(files->name, shown, sizeof shown));
        tell(files, variable, 0, nearest, false, text);
        return;
    }
    int fd = cus_file_open_settings(path, &why);
    if (fd >= 0)
        add(files, fd, NULL, 0);
    else
        cus_config_tell_unopened(path, false, why, files->problem, files->context);
}

/* Takes the text up to a ':' out of a list; in it, '\' takes away the meaning of ':' and '\'.
 * Returns the place behind that ':', or NULL at the end. */
static const char *take_part(const char *list, char *out, size_t bytes) {
    size_t used = 0;
    for (; *list && *list != ':'; list++) {
        if (*list == '\\' && (list[1] == ':' || list[1] == '\\'))
            list++;
        if (used + 1 < bytes)
            out[used++] = *list;
    }
    out[used] = 0;
    return *list ? list + 1 : NULL;
}

/* A list is one path where a file has that name: so it was before lists were. As many parts as
 * possible are taken together. */
static const char *take_joined(struct cus_config_files *files, const char *list) {
    char text[400], shown[200];
    const char *rest = take_part(list, files->name, PATH_MAX), *behind = rest;
    size_t used = (size_t)snprintf(files->joined, PATH_MAX, "%s", files->name);
    while (rest && used < PATH_MAX) {
        rest = take_part(rest, files->part, PATH_MAX);
        used += (size_t)snprintf(files->joined + used, PATH_MAX - used, ":%s", files->part);
        if (used >= PATH_MAX || !is_file(files->joined))
            continue;
        snprintf(files->name, PATH_MAX, "%s", files->joined);
        behind = rest;
        snprintf(text, sizeof text,
                 "':' separates files, and %s is taken as one: write its ':' as '\\:'",
                 cus_path_shown(files->joined, shown, sizeof shown));
        tell(files, variable, 0, NULL, true, text);
    }
    return behind;
}

static void add_list(struct cus_config_files *files, const char *list) {
    while (list && *list) {
        list = take_joined(files, list);
        if (*files->name)
            add_named(files);
    }
}

struct cus_config_files *cus_config_files_of(enum cus_source source, cus_problem_fn *problem,
                                             void *context) {
    const char *named = secure_getenv(variable);
    if (source == CUS_SOURCE_SYSTEM)
        return files_of_path(cus_config_system_file, true, problem, context);
    if (source == CUS_SOURCE_USER)
        return files_of_user(problem, context);
    if (source != CUS_SOURCE_NAMED || !named || !*named)
        return NULL;
    struct cus_config_files *files = new_files(variable, problem, context);
    if (files)
        add_list(files, named);
    return files;
}

/* ---- reading them ---- */

void cus_config_read_files(struct cus_config_files *files, bool strongest_first,
                           cus_setting_fn *setting, cus_problem_fn *problem, void *context) {
    for (unsigned i = 0; files && i < files->n; i++) {
        const struct file *file = &files->file[strongest_first ? files->n - 1 - i : i];
        cus_config_parse(file->fd, file->path, setting, problem, NULL, context);
    }
    for (unsigned i = 0; files && i < files->n; i++)
        drop(&files->file[i]);
    cus_mem_free(files);
}

void cus_config_read_named(const char *path, bool strongest_first, cus_setting_fn *setting,
                           cus_problem_fn *problem, void *context) {
    cus_config_read_files(files_of_path(path, false, problem, context), strongest_first, setting,
                          problem, context);
}

static void list(struct cus_config_files *files, cus_file_fn *file, void *context) {
    for (unsigned i = 0; files && i < files->n; i++)
        file(context, files->file[i].path, files->file[i].by, files->file[i].line);
    cus_config_read_files(files, false, NULL, NULL, NULL);
}

void cus_config_list_files(enum cus_source source, cus_file_fn *file, void *context) {
    list(cus_config_files_of(source, NULL, NULL), file, context);
}

void cus_config_list_named(const char *path, cus_file_fn *file, void *context) {
    list(files_of_path(path, true, NULL, NULL), file, context);
}
