/*
 * The folder of the signature cache that `cusplice run` offers to programs where no setting says
 * anything of one. The verbs run and cache call it. It reads no cache.
 */
#ifndef CUSPLICE_TOOLS_CLI_CACHE_HOME_H
#define CUSPLICE_TOOLS_CLI_CACHE_HOME_H

#include <stdbool.h>
#include <stddef.h>

/* $XDG_CACHE_HOME/cusplice, or ~/.cache/cusplice (XDG base directory specification): whether it is
 * there or not. False: the environment names none, or a setting says where the cache is, or that
 * there is none. */
bool cli_cache_home(char *out, size_t bytes);

/* Takes back what an outer `cusplice run` offered. If `wanted`, offers that folder to the child,
 * and makes the one above it if that is missing. Where there is none, or the one above it cannot be
 * used, the child gets none; `why`: say so. */
void cli_cache_offer(bool wanted, bool why);

#endif
