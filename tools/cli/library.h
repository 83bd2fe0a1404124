/*
 * Where libcusplice.so and the other programs of the installation are, and how the library gets
 * into a child. The verbs that start programs call it. It never changes this process's
 * environment.
 */
#ifndef CUSPLICE_TOOLS_CLI_LIBRARY_H
#define CUSPLICE_TOOLS_CLI_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* The absolute path of the library that belongs to this very binary: beside it as Bazel leaves it,
 * or as installed. False, after saying so: there is none, or its path cannot be written into
 * LD_PRELOAD. */
bool cli_library_find(char *out, size_t bytes);

/* The same, without a word. False: there is none. */
bool cli_library_look(char *out, size_t bytes);

/* The same for harness/player, the program that replays traces. */
bool cli_player_find(char *out, size_t bytes);
/* And for harness/scenario. */
bool cli_scenario_find(char *out, size_t bytes);
/* And for demo.py, which packages have, and a build has not. */
bool cli_demo_find(char *out, size_t bytes);

/* The LD_PRELOAD of the child: the library once, then the entries of `before` (may be NULL). A
 * sanitizer's runtime stays in front, as it insists on being the first. Allocated. */
char *cli_library_preload(const char *library, const char *before);

#endif
