/*
 * The reader of settings. Runs once per process for the options and once for the rules, on the
 * thread whose CUDA call needs them first. Holds no lock, allocates one buffer, reports problems
 * and never ends anything. inih parses the grammar (sections, comments, names). The packaged inih
 * cuts lines at 200 bytes, takes " ;" for a comment and an indented line for a continuation. So
 * this reader passes it shortened lines without indentation, and takes the value from its own copy
 * of the line.
 */
#define _GNU_SOURCE /* secure_getenv */
#include "shim/base/config.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "shim/base/config_files.h"
#include "shim/base/file.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/base/pays.h"

extern char **environ;

const char *cus_config_system_file = "/etc/cusplice.conf";

enum { LINE_BYTES = 4096, CHUNK_BYTES = 4096, SECTION_BYTES = 48 };

struct reader {
    const char *path;
    int fd;
    int line;
    size_t left;             /* bytes that may still be read: the file may grow meanwhile */
    size_t at, have;         /* in chunk */
    bool expecting;          /* inih has not turned the last line into a setting yet */
    bool dropping;           /* inside an invalid section; the problem was reported at its head */
    char *value;             /* of the last line, in text */
    cus_setting_fn *setting; /* may be NULL */
    cus_problem_fn *problem;
    cus_include_fn *include; /* may be NULL */
    void *context;
    char section[SECTION_BYTES];
    char text[LINE_BYTES];
    char chunk[CHUNK_BYTES];
};

static const char *const sections[] = {"rules", "step", NULL};

bool cus_config_secure(void) {
    return getauxval(AT_SECURE) != 0;
}

/* ---- problems ---- */

static void tell(cus_problem_fn *problem, void *context, const char *file, int line,
                 const char *nearest, const char *text) {
    struct cus_problem it = {file, line, text, nearest, false};
    if (problem)
        problem(context, &it);
}

void cus_problem_show(const struct cus_problem *problem, char *out, unsigned bytes) {
    char line[16] = "";
    if (problem->line)
        snprintf(line, sizeof line, ":%d", problem->line);
    snprintf(out, bytes, "%s%s: %s%s%s%s", problem->file, line, problem->text,
             problem->nearest ? " (nearest: " : "", problem->nearest ? problem->nearest : "",
             problem->nearest ? ")" : "");
}

void cus_problem_warn(void *context, const struct cus_problem *problem) {
    char text[900];
    (void)context;
    cus_problem_show(problem, text, sizeof text);
    cus_log(CUS_WARN, "config", "%s%s", text, problem->notice ? "" : "; ignored");
}

/* Levenshtein's distance with one row. The words are keys, hence short; only 63 characters
 * count. */
unsigned cus_distance(const char *a, const char *b) {
    unsigned row[64];
    size_t bytes_a = strnlen(a, 63), bytes_b = strnlen(b, 63);
    for (size_t j = 0; j <= bytes_b; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= bytes_a; i++) {
        unsigned corner = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= bytes_b; j++) {
            unsigned best = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[bytes_b];
}

const char *cus_nearest(const char *word, const char *const *list) {
    const char *nearest = NULL;
    unsigned best = UINT32_MAX;
    for (; *list; list++) {
        unsigned d = cus_distance(word, *list);
        if (d < best) {
            best = d;
            nearest = *list;
        }
    }
    return nearest;
}

/* Two letters that stand next to each other in `a` are swapped in `b`. */
static bool is_swapped(const char *a, const char *b) {
    size_t i = 0;
    while (a[i] && a[i] == b[i])
        i++;
    return a[i] && b[i] && a[i + 1] && a[i] == b[i + 1] && a[i + 1] == b[i] &&
           strcmp(a + i + 2, b + i + 2) == 0;
}

/* One letter in three may be wrong; or the word is a beginning. */
static bool is_near(const char *word, const char *known) {
    size_t bytes = strlen(word);
    unsigned wrong = bytes < 6 ? 1 : (unsigned)bytes / 3;
    return (bytes > 1 && cus_distance(word, known) <= wrong) || is_swapped(word, known) ||
           (bytes > 2 && strncmp(word, known, bytes) == 0);
}

const char *cus_near(const char *word, const char *const *list) {
    const char *near = NULL;
    unsigned best = UINT32_MAX;
    for (; *list; list++) {
        unsigned d = is_near(word, *list) ? cus_distance(word, *list) : UINT32_MAX;
        if (d < best) {
            best = d;
            near = *list;
        }
    }
    return near;
}

/* ---- files ---- */

static void tell_line(struct reader *reader, const char *nearest, const char *text) {
    tell(reader->problem, reader->context, reader->path, reader->line, nearest, text);
}

static int next_byte(struct reader *reader) {
    if (reader->at == reader->have) {
        ssize_t got;
        do
            got = reader->left < CHUNK_BYTES ? 0 : read(reader->fd, reader->chunk, CHUNK_BYTES);
        while (got < 0 && errno == EINTR);
        if (got < 0) {
            char text[160];
            snprintf(text, sizeof text, "cannot be read: %s", strerror(errno));
            tell(reader->problem, reader->context, reader->path, 0, NULL, text);
        }
        reader->at = 0;
        reader->have = got > 0 ? (size_t)got : 0;
        reader->left -= reader->have;
        if (got <= 0)
            return -1;
    }
    return (unsigned char)reader->chunk[reader->at++];
}

/* Reads the next line into reader->text, without indentation, trailing blanks and line end.
 * False: the end of the file. */
static bool next_line(struct reader *reader) {
    size_t used = 0;
    bool too_long = false, binary = false;
    int byte = next_byte(reader);
    if (byte < 0)
        return false;
    reader->line++;
    for (; byte >= 0 && byte != '\n'; byte = next_byte(reader)) {
        binary |= byte == 0;
        if (used == 0 && isspace(byte))
            continue;
        if (used + 1 < LINE_BYTES)
            reader->text[used++] = (char)byte;
        else
            too_long = true;
    }
    while (used && isspace((unsigned char)reader->text[used - 1]))
        used--;
    reader->text[used] = 0;
    if (reader->line == 1 && strncmp(reader->text, "\xef\xbb\xbf", 3) == 0)
        memmove(reader->text, reader->text + 3, used - 2);
    if (binary || too_long) {
        tell_line(reader, NULL, binary ? "not a line of text" : "this line is too long");
        reader->text[0] = 0;
    }
    return true;
}

static void check_expected(struct reader *reader) {
    if (reader->expecting)
        tell_line(reader, NULL, "neither 'key = value' nor '[section]' nor a comment");
    reader->expecting = false;
}

/* Splits the head into the section's word, which stays in reader->section, and the name that a
 * step may have. False: there is no such section. */
static bool split_head(struct reader *reader, const char **name) {
    char *text = reader->section;
    size_t word = strcspn(text, " \t");
    *name = "";
    if (strcmp(text, "rules") == 0)
        return true;
    if (word != 4 || strncmp(text, "step", 4) != 0)
        return false;
    *name = text + word + strspn(text + word, " \t");
    text[word] = 0;
    return true;
}

static void tell_head(struct reader *reader, const char *section, const char *name) {
    struct cus_setting head = {section, NULL, name, reader->path, reader->line};
    if (reader->setting)
        reader->setting(reader->context, &head);
}

static void tell_unknown(struct reader *reader) {
    char text[128];
    snprintf(text, sizeof text, "unknown section [%s]", reader->section);
    reader->section[strcspn(reader->section, " \t")] = 0;
    tell_line(reader, cus_nearest(reader->section, sections), text);
}

/* Handles a section's head. inih reads it too; problems are reported here, once, with the line. */
static void enter_section(struct reader *reader) {
    char *end = strchr(reader->text, ']');
    const char *name;
    int bytes;
    reader->dropping = true;
    if (!end) {
        tell_head(reader, "?", "");
        tell_line(reader, NULL, "this section's head has no ']'");
        reader->text[0] = 0; /* otherwise inih would continue the section before */
        return;
    }
    bytes = snprintf(reader->section, sizeof reader->section, "%.*s", (int)(end - reader->text - 1),
                     reader->text + 1);
    reader->dropping = !split_head(reader, &name) || bytes >= SECTION_BYTES;
    tell_head(reader, reader->dropping ? "?" : reader->section, reader->dropping ? "" : name);
    if (end[1] && end[1 + strspn(end + 1, " \t")] != '#' && end[1 + strspn(end + 1, " \t")] != ';')
        tell_line(reader, NULL, "something follows this section's head");
    if (bytes >= SECTION_BYTES)
        tell_line(reader, NULL, "this section's head is too long");
    else if (reader->dropping)
        tell_unknown(reader);
}

/* inih's reader: returns one line per call. */
static char *hand_out_line(char *out, int bytes, void *context) {
    struct reader *reader = context;
    check_expected(reader);
    if (!next_line(reader))
        return NULL;
    char first = reader->text[0];
    reader->value = NULL;
    if (first == '[') {
        enter_section(reader);
    } else if (first && first != '#' && first != ';') {
        char *split = strpbrk(reader->text, "=:");
        reader->expecting = true;
        reader->value = split ? split + 1 + strspn(split + 1, " \t") : NULL;
    }
    /* inih only needs the name, so the value may be cut. */
    snprintf(out, (size_t)bytes, "%.*s\n", bytes - 2, reader->text);
    return out;
}

/* inih's handler: called for each setting. */
static int take_setting(void *context, const char *section, const char *name, const char *value) {
    struct reader *reader = context;
    (void)section;
    (void)value;
    reader->expecting = false;
    if (!*reader->section && reader->value && strcmp(name, "include") == 0) {
        if (reader->include)
            reader->include(reader->context, reader->value, reader->line);
    } else if (!reader->dropping && reader->value && reader->setting) {
        struct cus_setting setting = {reader->section, name, reader->value, reader->path,
                                      reader->line};
        reader->setting(reader->context, &setting);
    }
    return 1;
}

void cus_config_parse(int fd, const char *path, cus_setting_fn *setting, cus_problem_fn *problem,
                      cus_include_fn *include, void *context) {
    struct reader *reader = cus_mem_alloc(sizeof *reader);
    if (!reader) {
        tell(problem, context, path, 0, NULL, "no memory to read it");
        return;
    }
    reader->path = path;
    reader->fd = fd;
    reader->left = CUS_FILE_SETTINGS_MAX;
    reader->setting = setting;
    reader->problem = problem;
    reader->include = include;
    reader->context = context;
    ini_parse_stream(hand_out_line, reader, take_setting, reader);
    cus_mem_free(reader);
}

void cus_config_read_file(const char *path, bool may_be_absent, cus_setting_fn *setting,
                          cus_problem_fn *problem, void *context) {
    const char *why;
    int fd = cus_file_open_settings(path, &why);
    if (fd >= 0) {
        cus_config_parse(fd, path, setting, problem, NULL, context);
        close(fd);
    } else {
        cus_config_tell_unopened(path, may_be_absent, why, problem, context);
    }
}

/* ---- the environment ---- */

/* Variables that belong to no option: the kill switch, the config file, the rules, the
 * launcher's hand-shake and cache folder; also the variables of tools/setup, which this library
 * ignores. */
static const char *const other_variables[] = {"CUSPLICE",         "CUSPLICE_CONFIG",
                                              "CUSPLICE_EAGER",   "CUSPLICE_HANDSHAKE",
                                              CUS_CACHE_OFFERED,  CUS_PRESETS_OFFERED,
                                              "CUSPLICE_CUDA",    "CUSPLICE_CACHE",
                                              "CUSPLICE_TOOLKIT", NULL};
enum { OTHERS = sizeof other_variables / sizeof *other_variables };

static void variable_of(const char *key, char *out, size_t bytes) {
    size_t used = (size_t)snprintf(out, bytes, "CUSPLICE_");
    for (; *key && used + 1 < bytes; key++)
        out[used++] = (char)toupper((unsigned char)*key);
    out[used] = 0;
}

/* CUSPLICE_EAGER: patterns, separated by ; or line ends. */
static void read_eager(const char *list, cus_setting_fn *setting, void *context) {
    while (*list) {
        size_t bytes = strcspn(list, ";\n");
        const char *from = list + strspn(list, " \t");
        const char *to = list + bytes;
        while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
            to--;
        char *pattern = to > from ? cus_mem_alloc((size_t)(to - from) + 1) : NULL;
        if (pattern) {
            memcpy(pattern, from, (size_t)(to - from));
            struct cus_setting it = {"rules", "eager", pattern, "CUSPLICE_EAGER", 0};
            setting(context, &it);
            cus_mem_free(pattern);
        }
        list += bytes + (list[bytes] != 0);
    }
}

static bool is_one_of(const char *word, const char *const *list) {
    for (; *list; list++)
        if (strcmp(word, *list) == 0)
            return true;
    return false;
}

/* Reports CUSPLICE_ variables that do not exist, which are most likely a slip. */
static void judge_variables(cus_problem_fn *problem, void *context) {
    enum { MAX = 64, BYTES = 40 };
    char twins[MAX][BYTES];
    const char *known[MAX + 1] = {NULL};
    unsigned n = 0;
    for (const struct cus_option_row *row; n < MAX - OTHERS && (row = cus_options_row(n)); n++) {
        variable_of(row->key, twins[n], BYTES);
        known[n] = twins[n];
    }
    const struct cus_option_old *old;
    for (unsigned i = 0; n < MAX - OTHERS && (old = cus_options_old(i)); i++, n++) {
        variable_of(old->old, twins[n], BYTES);
        known[n] = twins[n];
    }
    for (unsigned i = 0; other_variables[i]; i++)
        known[n++] = other_variables[i];
#ifdef CUS_ABLATE
    known[n++] = "CUSPLICE_WITHOUT";
#endif
    for (char **entry = environ; entry && *entry; entry++) {
        char name[64], text[128];
        size_t bytes = strcspn(*entry, "=");
        if (strncmp(*entry, "CUSPLICE_", 9) != 0 || bytes >= sizeof name)
            continue;
        memcpy(name, *entry, bytes);
        name[bytes] = 0;
        if (is_one_of(name, known))
            continue;
        snprintf(text, sizeof text, "no such variable");
        tell(problem, context, name, 0, cus_near(name, known), text);
    }
}

/* With a wrong name an ablation would measure nothing. */
static void judge_without(cus_problem_fn *problem, void *context) {
#ifdef CUS_ABLATE
    char text[96];
    const char *list = secure_getenv("CUSPLICE_WITHOUT"), *unknown = NULL;
    if (list)
        cus_pays_named(list, &unknown);
    if (!unknown)
        return;
    int bytes = (int)strcspn(unknown, ",");
    snprintf(text, sizeof text, "no mechanism is named \"%.*s\"", bytes, unknown);
    tell(problem, context, "CUSPLICE_WITHOUT", 0, NULL, text);
#else
    (void)problem;
    (void)context;
#endif
}

/* An empty variable is as none, unless the option may be empty (`may_be`). */
static void read_variable(const char *key, bool may_be, cus_setting_fn *setting, void *context) {
    char name[64];
    variable_of(key, name, sizeof name);
    const char *value = secure_getenv(name);
    if (value && (*value || may_be)) {
        struct cus_setting it = {"", key, value, name, 0};
        setting(context, &it);
    }
}

static void read_environment(cus_setting_fn *setting, cus_problem_fn *problem, void *context) {
    const struct cus_option_row *row;
    const struct cus_option_old *old;
    for (unsigned i = 0; (old = cus_options_old(i));
         i++) /* first, so that the present name overrides it */
        read_variable(old->old, false, setting, context);
    for (unsigned i = 0; (row = cus_options_row(i)); i++)
        read_variable(row->key, !*row->value, setting, context);
    const char *eager = secure_getenv("CUSPLICE_EAGER");
    if (eager)
        read_eager(eager, setting, context);
    judge_variables(problem, context);
    judge_without(problem, context);
    static const char *const off[] = {"off", "no", "0", "false", NULL};
    static const char *const on[] = {"on", "yes", "1", "true", "", NULL};
    const char *kill = secure_getenv("CUSPLICE");
    if (kill && is_one_of(kill, off)) {
        struct cus_setting it = {"", "mode", "off", "CUSPLICE", 0};
        setting(context, &it); /* last, so that it overrides everything */
    } else if (kill && !is_one_of(kill, on)) {
        tell(problem, context, "CUSPLICE", 0, cus_near(kill, off), "must be off or on");
    }
}

/* ---- sources ---- */

/* The weakest place, so that any other one can say what holds, or that nothing does. */
static void read_launcher(cus_setting_fn *setting, void *context) {
    const char *folder = secure_getenv(CUS_CACHE_OFFERED);
    if (folder && *folder == '/') {
        struct cus_setting it = {"", "cache_dir", folder, CUS_CACHE_OFFERED, 0};
        setting(context, &it);
    }
    const char *presets = secure_getenv(CUS_PRESETS_OFFERED);
    if (presets && strcmp(presets, "auto") == 0) {
        struct cus_setting it = {"", "presets", presets, CUS_PRESETS_OFFERED, 0};
        setting(context, &it);
    }
}

static void read_source(enum cus_source source, bool strongest_first, cus_setting_fn *setting,
                        cus_problem_fn *problem, void *context) {
    if (source == CUS_SOURCE_LAUNCHER)
        read_launcher(setting, context);
    else if (source == CUS_SOURCE_ENVIRONMENT)
        read_environment(setting, problem, context);
    else
        cus_config_read_files(cus_config_files_of(source, problem, context), strongest_first,
                              setting, problem, context);
}

void cus_config_read(enum cus_source source, cus_setting_fn *setting, cus_problem_fn *problem,
                     void *context) {
    read_source(source, false, setting, problem, context);
}

void cus_config_read_strongest(enum cus_source source, cus_setting_fn *setting,
                               cus_problem_fn *problem, void *context) {
    read_source(source, true, setting, problem, context);
}
