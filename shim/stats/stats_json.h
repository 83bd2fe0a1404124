/*
 * The stats file: the counters as one JSON object. The writer fills FILE.PID.partial and renames
 * it, so that a reader sees a whole file or none.
 *
 * Any thread; the caller ensures that no two threads of a process write at once. Allocates nothing;
 * keeps errno.
 */
#ifndef CUSPLICE_STATS_STATS_JSON_H
#define CUSPLICE_STATS_STATS_JSON_H

#include <stdbool.h>

#include "shim/stats/report.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cus_stats_facts {
    const char *mode;
    const char *exe;                    /* NULL: taken from /proc/self/exe */
    long pid;                           /* 0: this process */
    const char *segment_list_json;      /* a JSON array, inserted unchanged; NULL: left out */
    const struct cus_stats_step *steps; /* left out if there are none */
    unsigned n_steps;
    const struct cus_report *report; /* NULL: left out */
};

/*
 * Writes the file. `path` follows base/path.h. A path without the process id may serve several
 * processes. A process that saw no op leaves the file alone if it was written since that process
 * began; otherwise the last process to end wins. `api_name` names the row of a call that flushed;
 * NULL, or an answer of NULL: the row's number. False: the file was left alone, or could not be
 * written, which is logged once.
 */
bool cus_stats_json(const char *path, const struct cus_counters *counters,
                    const char *(*api_name)(unsigned row), const struct cus_stats_facts *facts);

#ifdef __cplusplus
}
#endif

#endif
