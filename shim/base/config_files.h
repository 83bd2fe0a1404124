/*
 * Between config.c, which reads one file, and config_files.c, which finds the files. Nobody else
 * includes it. Any thread, no lock.
 */
#ifndef CUSPLICE_BASE_CONFIG_FILES_H
#define CUSPLICE_BASE_CONFIG_FILES_H

#include "shim/base/config.h"

/* ---- config.c ---- */

/* Called for `include = name`. */
typedef void cus_include_fn(void *context, const char *name, int line);
/* Reads an open file from where it stands, and leaves it open. Each function may be NULL. */
void cus_config_parse(int fd, const char *path, cus_setting_fn *setting, cus_problem_fn *problem,
                      cus_include_fn *include, void *context);

/* ---- config_files.c ---- */

struct cus_config_files; /* open files, weakest first */

/* The files of a source that has some, with those that they include. NULL: none, or no memory,
 * which was told. */
struct cus_config_files *cus_config_files_of(enum cus_source source, cus_problem_fn *problem,
                                             void *context);
/* Reads them all, and frees the list (may be NULL). */
void cus_config_read_files(struct cus_config_files *files, bool strongest_first,
                           cus_setting_fn *setting, cus_problem_fn *problem, void *context);
/* Tells that a file could not be opened; `why` and errno as in base/file.h. */
void cus_config_tell_unopened(const char *path, bool may_be_absent, const char *why,
                              cus_problem_fn *problem, void *context);

#endif
