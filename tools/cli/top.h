/*
 * What the views of `cusplice top` share: the pages of this user's processes, and what two looks at
 * one say. verb_top.c (one process) and top_all.c (all of them) use it.
 */
#ifndef CUSPLICE_TOOLS_CLI_TOP_H
#define CUSPLICE_TOOLS_CLI_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/stats/page.h"

enum { CLI_TOP_PAGES = 256 };
#define CLI_TOP_SECOND ((uint64_t)1000000000)

/* ---- pages ---- */

struct cli_top_found {
    long pid;
    char path[CUS_PAGE_PATH];
};

/* The pages of processes that run; those of others are removed. `found` has room for
 * CLI_TOP_PAGES + 1. Returns how many. */
unsigned cli_top_list(struct cli_top_found *found);
/* Removes the page of a process, unless the process is still there. */
void cli_top_forget(long pid);
/* Opens a page and copies it. -1, and *why, where it is not sound. */
int cli_top_open(const char *path, struct cus_page *copy, const char **why);
/* Is the process that made the page still there? */
bool cli_top_is_alive(long pid, const struct cus_page *page);
/* Only what cus_page_open found to be a file of this user's is removed. */
void cli_top_remove(const char *path, int fd);

/* ---- rates ---- */

struct cli_top_rates {
    double seconds; /* 0: there is but one look */
    double ops, graphs, share, saved;
};

double cli_top_saved(const struct cus_page_facts *facts, uint64_t in_graphs, uint64_t launches);
double cli_top_share(uint64_t in_graphs, uint64_t ops); /* in percent */
/* How a share in percent looks (screen.h): most, some or few of the launches are in graphs. */
const char *cli_top_colour(double share);
/* Between two looks; `before` has at_ns 0 where there was none. */
struct cli_top_rates cli_top_rates(const struct cus_page_facts *now,
                                   const struct cus_page_facts *before);

/* ---- views ---- */

/* All processes in one table, until the last has ended; `once`: one table, after two looks. `json`:
 * one array. Returns the exit status. */
int cli_top_all(bool once, bool json, uint64_t interval);
struct cus_json;
/* What a look at one process found, as an object. */
void cli_top_put(struct cus_json *json, long pid, const struct cus_page *page,
                 const struct cus_page_facts *before);

#endif
