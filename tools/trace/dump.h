/*
 * What `cusplice dump` prints and `cusplice export --jsonl` writes. Both verbs call it. It never
 * opens a file.
 */
#ifndef CUSPLICE_TOOLS_TRACE_DUMP_H
#define CUSPLICE_TOOLS_TRACE_DUMP_H

#include <stdio.h>

#include "tools/trace/select.h"

/* A header object, then one object for each event, a line each. `stream` 0: of every stream. */
void dump_lines(const struct look *look, const struct selection *selection, uint32_t stream,
                FILE *to);

/* One step as a Graphviz digraph: graphs as clusters, ops in their order, those in no graph
 * marked. */
void dump_dot(const struct look *look, uint32_t step, FILE *to);

#endif
