/*
 * Writes one step as a digraph for Graphviz. verb_dump.c calls it. It never reads the trace file,
 * only the model.
 */
#include <inttypes.h>

#include "tools/trace/clean.h"
#include "tools/trace/dump.h"

static void node(const struct look *look, const struct model_op *op, uint32_t i, FILE *to) {
    static const char *const styles[] = {
        "",
        ", style=filled, fillcolor=\"#f4b6a6\", shape=octagon",
        ", style=\"filled,dashed\", fillcolor=\"#f6e3a8\"",
        ", style=dashed",
    };
    const struct cst_trace *trace = look->trace;
    enum look_outcome outcome = look_outcome(op);
    fprintf(to, "    op%u [label=\"", i);
    clean_dot(to, names_of(look->names, op->op->kind));
    if (outcome == LOOK_EAGER) {
        fputs("\\neager: ", to);
        clean_dot(to, cst_string(trace, op->op->why));
    } else if (outcome == LOOK_FLUSHED) {
        fputs("\\nflushed: ", to);
        clean_dot(to, cst_string(trace, ((const struct cst_flush *)op->out)->cause));
    } else if (outcome == LOOK_OPEN) {
        fputs("\\nopen", to);
    }
    fprintf(to, "\"%s];\n", styles[outcome]);
}

void dump_dot(const struct look *look, uint32_t number, FILE *to) {
    static const char *const choices[] = {"?", "exact", "patched", "built"};
    const struct model_step *step = &look->model->steps[number];
    const struct cst_record *open = NULL;
    fprintf(to, "digraph step {\n    label=\"");
    clean_dot(to, look->trace->path);
    fprintf(to,
            ": stream %u, step %u, %u ops, %u of them in %u graphs\";\n    labelloc=t;\n"
            "    node [shape=box, fontname=\"sans-serif\"];\n",
            step->stream, step->number, step->n_ops, step->in_graphs, step->graphs);
    for (uint32_t i = 0; i < step->n_ops; i++) {
        const struct model_op *op = look_op(look, step->stream, step->first + i);
        const struct cst_record *graph = model_in_graph(op) ? op->out : NULL;
        if (graph != open && open)
            fputs("    }\n", to);
        if (graph != open && graph) {
            const struct cst_launch *launch = (const struct cst_launch *)graph;
            fprintf(to,
                    "    subgraph cluster_%u {\n    label=\"segment %u, %s, %u patched\";\n"
                    "    style=filled;\n    color=\"#dfe9f5\";\n",
                    i, launch->segment,
                    choices[launch->head.flags <= CST_BUILT ? launch->head.flags : 0],
                    launch->patched);
        }
        open = graph;
        node(look, op, i, to);
    }
    if (open)
        fputs("    }\n", to);
    for (uint32_t i = 0; i + 1 < step->n_ops; i++)
        fprintf(to, "    op%u -> op%u;\n", i, i + 1);
    fputs("}\n", to);
}
