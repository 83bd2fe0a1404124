/*
 * The stats file: the counters as one JSON object, written to FILE.PID.partial and renamed, so that
 * a reader sees a whole file or none.
 *
 * Any thread; the caller sees to it that two threads of one process do not write at once. No
 * allocation, errno is kept.
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
    const char *exe;                    /* NULL: asked of /proc/self/exe */
    long pid;                           /* 0: this process */
    const char *segment_list_json;      /* a JSON array, put in as it is; NULL: left out */
    const struct cus_stats_step *steps; /* left out where there are none */
    unsigned n_steps;
    const struct cus_report *report; /* NULL: left out */
};

/*
 * `path` follows base/path.h. A plain path may be meant for several processes (a program and its
 * children): one that saw no op leaves the file alone if it was written since that process began;
 * otherwise the last to end wins. `api_name` gives the name of an API row that flushed (NULL, or an
 * answer of NULL: the row's number). False: the file could not be written (or was left alone: false
 * as well, without a word); a failure is logged once.
 */
bool cus_stats_json(const char *path, const struct cus_counters *counters,
                    const char *(*api_name)(unsigned row), const struct cus_stats_facts *facts);

#ifdef __cplusplus
}
#endif

#endif
