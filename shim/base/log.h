/*
 * The library's own voice in somebody else's process: one line per event, to stderr or to a file,
 * never to stdout.
 *
 * Callable from any thread, under any lock, before the options are loaded (warnings then go to
 * stderr). Takes no lock, allocates nothing, keeps errno. A line reads `cusplice[pid:tid] level
 * domain: text`.
 */
#ifndef CUSPLICE_BASE_LOG_H
#define CUSPLICE_BASE_LOG_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cus_level { CUS_ERROR, CUS_WARN, CUS_INFO, CUS_DEBUG, CUS_LEVELS };

/* Would a line of this level and domain be written? One load and one compare where nothing beyond
 * the default is asked for. */
bool cus_log_on(enum cus_level level, const char *domain);

/* Writes one line, cut to 1000 bytes. The same error or warning (the same `fmt`) is written 10
 * times at most. */
void cus_log(enum cus_level level, const char *domain, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes a text of several lines as it is, whatever the level: for reports that were asked for. */
void cus_log_text(const char *text, unsigned bytes);

/* The same, once in the life of the process for this place in the code. */
#define CUS_LOG_ONCE(level, domain, ...)                                                           \
    do {                                                                                           \
        static char cus_said_;                                                                     \
        if (cus_log_on(level, domain) && !__atomic_exchange_n(&cus_said_, 1, __ATOMIC_RELAXED))    \
            cus_log(level, domain, __VA_ARGS__);                                                   \
    } while (0)

/* ---- set-up, called once by the options loader ---- */

/*
 * `spec` is `level[,domain:level]...`, for example `warn,graph:debug`; `file` a path (the path
 * rules of base/path.h) or NULL or "" for stderr. Both must live as long as the process. A part of
 * `spec` that does not parse is skipped.
 */
void cus_log_configure(const char *spec, const char *file);

/* NULL where `spec` is well formed, else the place in it where it stops to be. */
const char *cus_log_spec_error(const char *spec);

#ifdef __cplusplus
}
#endif

#endif
