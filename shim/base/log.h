/*
 * The library's messages in the program's process: one line per event, to stderr or to a file,
 * never to stdout.
 *
 * Any thread, under any lock, also before the options are loaded (warnings then go to stderr).
 * Takes no lock, allocates nothing and keeps errno. A line reads `cusplice[pid:tid] level domain:
 * text`.
 */
#ifndef CUSPLICE_BASE_LOG_H
#define CUSPLICE_BASE_LOG_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cus_level { CUS_ERROR, CUS_WARN, CUS_INFO, CUS_DEBUG, CUS_LEVELS };

/* True: a line of this level and domain would be written. With the default setting it costs one
 * load and one compare. */
bool cus_log_on(enum cus_level level, const char *domain);

/* Writes one line, cut to 1000 bytes. The same error or warning (the same `fmt`) is written at
 * most 10 times. Of info and of debug at most 1,000 lines a second are written, and 20,000 in all;
 * such a line never waits for a reader. cus_log_end says how many were left out. */
void cus_log(enum cus_level level, const char *domain, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes one line at any level, as info: the answer to what the user asked for by a setting. */
void cus_log_asked(const char *domain, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Says how many lines of info and debug were left out, if some were. At the process's exit. */
void cus_log_end(void);

/* Writes a text of several lines unchanged, at any level: for reports that the user asked for. */
void cus_log_text(const char *text, unsigned bytes);
/* The same into `file` (base/path.h): anew where its name is this process's alone, else at the
 * end. Where that cannot be, and where `file` is "", the text goes into the log. */
void cus_log_text_in(const char *file, const char *text, unsigned bytes);

/* As cus_log, once per process for this place in the code. */
#define CUS_LOG_ONCE(level, domain, ...)                                                           \
    do {                                                                                           \
        static unsigned cus_said_;                                                                 \
        if (cus_log_on(level, domain) && cus_log_first(&cus_said_))                                \
            cus_log(level, domain, __VA_ARGS__);                                                   \
    } while (0)
/* Is this the first call with this word, which is 0 at first, since the last cus_log_drop? */
bool cus_log_first(unsigned *said);

/* ---- set-up; the loader of the options calls it once ---- */

/*
 * `spec` is `level[,domain:level]...`, for example `warn,graph:debug`. `file` is a path
 * (base/path.h), or NULL or "" for stderr. A part of `spec` that is malformed is skipped.
 */
void cus_log_configure(const char *spec, const char *file);

/* Forgets the set-up and what was said. For cus_engine_end. */
void cus_log_drop(void);

/* NULL: `spec` is well formed. Otherwise the part of `spec` that is malformed. */
const char *cus_log_spec_error(const char *spec);
/* The part of a well-formed `spec` whose domain has no lines; NULL: there is none. */
const char *cus_log_spec_unknown(const char *spec);
/* The domains of all lines; then NULL. */
extern const char *const cus_log_domains[];

#ifdef __cplusplus
}
#endif

#endif
