/*
 * Reads settings: INI files through inih, and the environment. The library and the launcher share
 * this reader. On a problem the library warns and goes on; the launcher refuses.
 *
 * A file has settings at its top, rules in order below `[rules]`, and any number of `[step]` and
 * `[step NAME]` sections. A line that begins with # or ; is a comment; nothing after a value is
 * one. A line has at most 4000 bytes, a file less than 1 MiB. A file counts only if nobody but its
 * user and root can have written it (cus_file_open_settings).
 *
 * `include = NAME` at the top of a file names another file, or a preset (cus_config_find). A file
 * is stronger than those that it includes; of two that it includes, the later one is stronger. The
 * same holds for the files of CUSPLICE_CONFIG, which ':' separates.
 */
#ifndef CUSPLICE_BASE_CONFIG_H
#define CUSPLICE_BASE_CONFIG_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The sources of settings, weakest first. */
enum cus_source {
    CUS_SOURCE_LAUNCHER, /* what `cusplice run` offers: a cache folder, presets by library */
    CUS_SOURCE_SYSTEM,
    CUS_SOURCE_USER,
    CUS_SOURCE_NAMED,
    CUS_SOURCE_ENVIRONMENT,
    CUS_SOURCES
};

/* The variables of CUS_SOURCE_LAUNCHER: values of `cache_dir` and `presets`. */
#define CUS_CACHE_OFFERED "CUSPLICE_CACHE_OFFERED"
#define CUS_PRESETS_OFFERED "CUSPLICE_PRESETS_OFFERED"

struct cus_setting {
    const char *section; /* "", "rules" or "step"; for a head never "", but "?" if unknown */
    const char *key;     /* NULL: this is the head of a section and no setting */
    const char *value;   /* for a head: the name after the section's word, or "" */
    const char *file;    /* a path, or the name of the environment variable */
    int line;            /* 0: the environment */
};

/* All pointers are valid until the callback returns. */
struct cus_problem {
    const char *file;    /* a path, or the name of the environment variable */
    int line;            /* 0: the file as a whole, or the environment */
    const char *text;    /* what is wrong, without file, line and nearest */
    const char *nearest; /* the valid word that is nearest to the written one, or NULL */
    bool notice;         /* the setting counts: tools say this and go on */
};
typedef void cus_problem_fn(void *context, const struct cus_problem *problem);

/* Writes `file:line: text (nearest: ...)`, cut to `bytes`. */
void cus_problem_show(const struct cus_problem *problem, char *out, unsigned bytes);
/* The problem function of the library: logs one warning of the domain "config". */
void cus_problem_warn(void *context, const struct cus_problem *problem);

/*
 * Calls `setting` for each setting and each section head of a source, in order: of several files
 * the weakest one first. Settings below an invalid head are left out. Calls `problem` (may be
 * NULL) for each problem of the reading itself: an unreadable file, an invalid line, an unknown
 * section, an unknown CUSPLICE_ variable. An empty variable counts for paths alone, whose value
 * may be empty. A problem follows the head of its section; those of `include` come first. The
 * system's and the user's file may be absent; a file that CUSPLICE_CONFIG or another file names
 * may not.
 */
typedef void cus_setting_fn(void *context, const struct cus_setting *setting);
void cus_config_read(enum cus_source source, cus_setting_fn *setting, cus_problem_fn *problem,
                     void *context);
/* The same, but the strongest file first: for what is asked in turn until one answers. */
void cus_config_read_strongest(enum cus_source source, cus_setting_fn *setting,
                               cus_problem_fn *problem, void *context);
/* The same for one file that the user names, with those that it includes. */
void cus_config_read_named(const char *path, bool strongest_first, cus_setting_fn *setting,
                           cus_problem_fn *problem, void *context);
/* The same for one file alone: nothing is included. */
void cus_config_read_file(const char *path, bool may_be_absent, cus_setting_fn *setting,
                          cus_problem_fn *problem, void *context);

/* Calls `file` for each file that a source has, weakest first, without a word of problems.
 * `by_file` and `line` are where it is included; NULL and 0: it is none that was included. */
typedef void cus_file_fn(void *context, const char *path, const char *by_file, int line);
void cus_config_list_files(enum cus_source source, cus_file_fn *file, void *context);

/* The same for one file that the user names. */
void cus_config_list_named(const char *path, cus_file_fn *file, void *context);

/* The file that a name stands for: a path, relative to `folder` ("": the working directory); or,
 * for a name without '/' and ".conf" that is no file there, the preset of that name. False: there
 * is neither; `nearest` (CUS_PRESET_BYTES, "" if there is none) gets the nearest preset. */
enum { CUS_PRESET_BYTES = 64 };
bool cus_config_find(const char *name, const char *folder, char *out, unsigned bytes,
                     char nearest[CUS_PRESET_BYTES]);

/* The edit distance of two words. Only the first 63 bytes count. */
unsigned cus_distance(const char *a, const char *b);
/* The word of the NULL-terminated list with the least edit distance from `word`. NULL only for
 * an empty list. */
const char *cus_nearest(const char *word, const char *const *list);
/* The same, where the word may well be meant: a slip of the keyboard or a beginning. NULL: none is
 * that near. What people read names no other word. */
const char *cus_near(const char *word, const char *const *list);

/* True: the process has privileges that its user does not have. The environment is then ignored. */
bool cus_config_secure(void);

/* /etc/cusplice.conf. Tests set another one. */
extern const char *cus_config_system_file;

#ifdef __cplusplus
}
#endif

#endif
