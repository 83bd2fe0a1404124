/*
 * The signature cache of this process (advice.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_ADVICE_H
#define CUSPLICE_STREAM_ADVICE_H

#include "shim/stream/state.h"

/* Reads the cache file, if one is wanted. Called once, when the engine starts. */
void cus_advice_load(void);
bool cus_advice_on(void);
/* NULL: no advice of earlier runs. */
struct cus_advice *cus_advice_get(void);
/* The seed of the path signatures of a stream's plan. The context is current. */
uint64_t cus_advice_seed(struct cus_context *context, const struct cus_plan_limits *limits);
/* A graph was built because of advice. */
void cus_advice_built(void);
/* For reports. Leaves *out alone if there is no cache. */
void cus_advice_facts(struct cus_stats_cache *out);
/* Stores what this engine's segments say before they are dropped. Engine lock held. */
void cus_advice_keep(const struct cus_engine *engine);
/* Forgets what was read and what is kept; nothing is written. No plan has advice. For
 * cus_engine_end. */
void cus_advice_drop(void);

#endif
