/*
 * File names in settings: `{pid}` and `%p` stand for the process id, `{process}` for rank-R.pid-P,
 * or pid-P where no rank is known, `{host}` for the name of the machine (base/process_rank.h). And
 * how messages show them.
 */
#ifndef CUSPLICE_BASE_PATH_H
#define CUSPLICE_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the path with the process id into `out`. False: it does not fit. *own becomes true if
 * the path contained the id, so that no other process of this machine writes the same file. `own`
 * may be NULL. */
bool cus_path_expand(const char *path, char *out, size_t bytes, bool *own);

/* A path as a message shows it. One that does not fit into `out` loses its beginning, and "..."
 * stands there: its end says more. No character of UTF-8 is cut. Returns `out`; bytes > 3. */
const char *cus_path_shown(const char *path, char *out, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
