/*
 * Reading settings: INI files through inih, and the environment. One reader for the target and for
 * the launcher; they differ only in what they do with a problem (warn and go on; refuse).
 *
 * A file has settings at its top, below `[rules]` rules in order, and any number of `[step]` and
 * `[step NAME]` sections. A comment is a line that begins with # or ; (nothing that follows a value
 * is a comment). Lines may have 4000 bytes, a file less than 1 MiB. Only a file that nobody but its
 * user and root can have written is believed (cus_file_open_settings).
 */
#ifndef CUSPLICE_BASE_CONFIG_H
#define CUSPLICE_BASE_CONFIG_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where settings come from, weakest first. */
enum cus_source {
    CUS_SOURCE_SYSTEM,
    CUS_SOURCE_USER,
    CUS_SOURCE_NAMED,
    CUS_SOURCE_ENVIRONMENT,
    CUS_SOURCES
};

struct cus_setting {
    const char *section; /* "", "rules" or "step"; of a head never "", but "?" for an unknown one */
    const char *key;     /* NULL: not a setting but the head of a section */
    const char *value;   /* of a head: the name behind the section's word, or "" */
    const char *file;    /* a path, or the name of the environment variable */
    int line;            /* 0: the environment */
};

/* Everything points to memory that lives until the callback returns. */
struct cus_problem {
    const char *file;    /* a path, or the name of the environment variable */
    int line;            /* 0: the file as a whole, or the environment */
    const char *text;    /* what is wrong, without file, line and nearest */
    const char *nearest; /* the valid word that is nearest to what was written, or NULL */
};
typedef void cus_problem_fn(void *context, const struct cus_problem *problem);

/* `file:line: text (nearest: ...)`, cut to `bytes`. */
void cus_problem_show(const struct cus_problem *problem, char *out, unsigned bytes);
/* The problem function of the target's process: one warning of the domain "config". */
void cus_problem_warn(void *context, const struct cus_problem *problem);

/*
 * Tells `setting` every setting of a source and every head of a section, in order; settings below a
 * head that is no section are left out. Problems of the reading itself (a file that cannot be read,
 * a line that is none, an unknown section, an unknown CUSPLICE_ variable) go to `problem`, which
 * may be NULL, each behind the head that it stands below. The system's and the user's file may be
 * absent; the named one may not.
 */
typedef void cus_setting_fn(void *context, const struct cus_setting *setting);
void cus_config_read(enum cus_source source, cus_setting_fn *setting, cus_problem_fn *problem,
                     void *context);
/* The same for one file, named by the user. */
void cus_config_read_file(const char *path, bool may_be_absent, cus_setting_fn *setting,
                          cus_problem_fn *problem, void *context);

/* The edit distance of two words, of which the first 63 bytes are looked at. */
unsigned cus_distance(const char *a, const char *b);
/* The word of the NULL-terminated list that is nearest to `word` by edit distance. NULL only for an
 * empty list. */
const char *cus_nearest(const char *word, const char *const *list);

/* True where the process runs with privileges that its user does not have: nothing of the
 * environment is believed. */
bool cus_config_secure(void);

/* /etc/cusplice.conf; a variable for the tests' sake. */
extern const char *cus_config_system_file;

#ifdef __cplusplus
}
#endif

#endif
