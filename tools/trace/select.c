/*
 * Finds the steps and the time of a selection. The verbs dump and trim call it. It never prints;
 * it fails with a sentence.
 */
#include "tools/trace/select.h"

#include <stdlib.h>
#include <string.h>

bool select_steps(const struct look *look, uint32_t stream, bool ranged, uint32_t from, uint32_t to,
                  struct selection *selection, char *error, size_t bytes) {
    const struct model *model = look->model;
    const char *path = look->trace->path;
    *selection = (struct selection){
        .stream = stream ? stream : look_busiest(look), .ranged = ranged, .end = UINT64_MAX};
    stream = selection->stream;
    if (stream >= look->trace->n_streams || !look->trace->streams[stream]) {
        if (stream)
            snprintf(error, bytes, "%s: there is no stream %u; cusplice info lists them", path,
                     stream);
        else
            snprintf(error, bytes, "%s: it has no ops, so there are no steps", path);
        return stream == 0 && !ranged;
    }
    const struct model_stream *s = &model->streams[stream];
    if (ranged && to >= s->n_steps) {
        if (s->n_steps)
            snprintf(error, bytes, "%s: there is no step %u: stream %u has steps 0 to %u", path,
                     from >= s->n_steps ? from : to, stream, s->n_steps - 1);
        else
            snprintf(error, bytes, "%s: stream %u has no steps", path, stream);
        return false;
    }
    selection->steps = malloc(model->n_steps + (size_t)1);
    if (!selection->steps) {
        snprintf(error, bytes, "%s: not enough memory", path);
        return false;
    }
    if (ranged) {
        selection->begin = model->steps[s->steps[from]].begin_ns;
        if (to + 1 < s->n_steps)
            selection->end = model->steps[s->steps[to + 1]].begin_ns;
    }
    for (uint32_t i = 0; i < model->n_steps; i++) {
        const struct model_step *step = &model->steps[i];
        selection->steps[i] =
            !ranged || (step->stream == stream ? step->number >= from && step->number <= to
                                               : step->begin_ns >= selection->begin &&
                                                     step->begin_ns < selection->end);
    }
    return true;
}

void select_free(struct selection *selection) {
    free(selection->steps);
    selection->steps = NULL;
}
