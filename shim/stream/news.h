/*
 * Lines of the log about graphs. At level info: graphs that are built and dropped, streams that are
 * let pass, and each break the first time that it ends a run of graphs. At level debug: every
 * break. Any thread, mostly with the engine's lock held: no line waits for a reader, and their
 * number has a bound (base/log.h). Never called for an op that is deferred.
 */
#ifndef CUSPLICE_STREAM_NEWS_H
#define CUSPLICE_STREAM_NEWS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/stats/tally.h"

struct cus_engine;
struct cus_exec;

/* A graph was built of the deferred ops, in so many ns. Engine lock held. */
void cus_news_built(const struct cus_engine *engine, const struct cus_exec *exec, uint64_t ns);
/* engine->dropping says why. Engine lock held. */
void cus_news_dropped(const struct cus_engine *engine, const struct cus_exec *exec);
/* A run ended at an op; of it `ops` were still deferred. `tally` as in cus_tally_cut, which was
 * told before. */
void cus_news_cut(const struct cus_tally *tally, enum cus_why why, uint32_t ops);
/* A run ended by a call or another cause, `n` times by now. */
void cus_news_ended(unsigned cause, uint64_t n, uint32_t ops);
/* The stream is let pass for so many ops. Engine lock held. */
void cus_news_passes(const struct cus_engine *engine, uint64_t ops);
/* Why that ended early. Engine lock held. */
void cus_news_again(const struct cus_engine *engine, const char *why);
/* Forgets what was told. For cus_engine_end. */
void cus_news_drop(void);

#endif
