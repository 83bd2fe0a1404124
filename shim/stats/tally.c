/*
 * Tallies by name, and the texts of why.def. Runs on any thread, under any lock, and takes none: a
 * bucket is a list that only grows.
 */
#include "shim/stats/tally.h"

#include <stddef.h>
#include <string.h>

#include "shim/base/mem.h"
#include "shim/stats/stats.h"

enum { BUCKETS = 1024 };

static struct cus_tally *buckets[BUCKETS]; /* atomic */
static unsigned count;                     /* atomic */
static struct cus_tally others = {.name = "(others)", .kernel = true};
struct cus_tally cus_tally_none = {.name = ""};

static struct cus_tally *find(struct cus_tally *first, const char *name, bool kernel) {
    while (first && (first->kernel != kernel || strcmp(first->name, name) != 0))
        first = first->next;
    return first;
}

struct cus_tally *cus_tally_of(const char *name, bool kernel) {
    uint32_t hash = 2166136261u;
    for (const char *at = name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    struct cus_tally **bucket = &buckets[hash % BUCKETS];
    struct cus_tally *first = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
    struct cus_tally *found = find(first, name, kernel);
    if (found || __atomic_load_n(&count, __ATOMIC_RELAXED) >= CUS_TALLIES_MAX)
        return found ? found : &others;
    struct cus_tally *mine = cus_mem_alloc(sizeof *mine);
    char *copy = mine ? cus_mem_text(name) : NULL;
    if (!copy) {
        cus_mem_free(mine);
        return &others;
    }
    mine->name = copy;
    mine->kernel = kernel;
    do {
        found = find(first, name, kernel); /* another thread may have been faster */
        mine->next = first;
    } while (!found && !__atomic_compare_exchange_n(bucket, &first, mine, false, __ATOMIC_ACQ_REL,
                                                    __ATOMIC_ACQUIRE));
    if (found) {
        cus_mem_free(copy);
        cus_mem_free(mine);
        return found;
    }
    __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    return mine;
}

struct cus_tally *cus_tally_next(struct cus_tally *before, unsigned *at) {
    struct cus_tally *next = before ? before->next : NULL;
    while (!next && *at < BUCKETS)
        next = __atomic_load_n(&buckets[(*at)++], __ATOMIC_ACQUIRE);
    if (!next && *at == BUCKETS) {
        ++*at;
        return &others;
    }
    if (!next && *at == BUCKETS + 1) {
        ++*at;
        return &cus_tally_none;
    }
    return next;
}

void cus_tally_drop(void) {
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct cus_tally *next; buckets[i]; buckets[i] = next) {
            next = buckets[i]->next;
            cus_mem_free((void *)(uintptr_t)buckets[i]->name);
            cus_mem_free(buckets[i]);
        }
    count = 0;
    others = (struct cus_tally){.name = others.name, .kernel = true};
    cus_tally_none = (struct cus_tally){.name = cus_tally_none.name};
}

/* ---- texts ---- */

struct text {
    const char *key, *what, *advice;
};

static const struct text whys[CUS_WHYS] = {
#define CUS_WHY(id, key, what, advice) [CUS_WHY_##id] = {key, what, advice},
#include "shim/stats/why.def"
};

enum {
    CAUSES = CUS_CAUSES - CUS_API_ROWS_MAX,
#define CUS_CAUSE_WHY(id, what, advice) COUNT_##id,
#include "shim/stats/why.def"
    TEXTS
};
/* Each cause has exactly one text: two designators of one index are an error (-Woverride-init),
 * so equal numbers of rows and causes mean one row for each. */
_Static_assert(TEXTS - CAUSES - 1 == CAUSES, "why.def: one CUS_CAUSE_WHY for each CUS_CAUSE");
static const struct text causes[CAUSES] = {
#define CUS_CAUSE_WHY(id, what, advice) [CUS_CAUSE_##id - CUS_API_ROWS_MAX] = {NULL, what, advice},
#include "shim/stats/why.def"
};
static const char *const cause_keys[CAUSES] = {
#define CUS_CAUSE(id, key) [CUS_CAUSE_##id - CUS_API_ROWS_MAX] = key,
#include "shim/stats/reasons.def"
};

static const struct text calls[] = {
#define CUS_CALL_WHY(prefix, what, advice) {prefix, what, advice},
#include "shim/stats/why.def"
};

const char *cus_why_key(enum cus_why why) {
    return whys[why].key;
}

const char *cus_why_what(enum cus_why why) {
    return whys[why].what;
}

const char *cus_why_advice(enum cus_why why) {
    return whys[why].advice;
}

const char *cus_cause_key(unsigned index) {
    return cause_keys[index];
}

const char *cus_cause_what(unsigned index) {
    return causes[index].what;
}

const char *cus_cause_advice(unsigned index) {
    return causes[index].advice;
}

static const struct text *text_of_call(const char *api) {
    const struct text *text = calls;
    while (strncmp(api, text->key, strlen(text->key)) != 0)
        text++; /* the last row fits every name */
    return text;
}

const char *cus_call_what(const char *api) {
    return text_of_call(api)->what;
}

const char *cus_call_advice(const char *api) {
    return text_of_call(api)->advice;
}
