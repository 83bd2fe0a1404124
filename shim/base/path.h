/*
 * File names in settings: `{pid}` and `%p` stand for the process id, `{process}` for rank-R.pid-P,
 * or pid-P where no rank is known, `{host}` for the name of the machine (base/process_rank.h).
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

#ifdef __cplusplus
}
#endif

#endif
