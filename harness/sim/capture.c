/*
 * Stream capture: submitted work becomes nodes of a graph, and events carry the last nodes of one
 * stream to another.
 *
 * Any thread, under cusim.lock. If a capture makes a call unsafe, the simulator refuses the call
 * with a code from 900 to 908 and invalidates the capture that forbids the call, as CUDA does.
 */
#include "harness/sim/graph.h"

#include <stdlib.h>
#include <string.h>

struct cusim_capture *cusim_capture_live(const struct cusim_event *event) {
    for (struct cusim_capture *c = cusim.captures; c; c = c->next)
        if (c->id == event->capture_id)
            return c;
    return NULL;
}

void cusim_capture_invalidate(struct cusim_capture *capture) {
    capture->status = CUSIM_CAPTURE_INVALIDATED;
}

static bool has_stream_of(const struct cusim_capture *c, const struct cusim_ctx *ctx,
                          bool blocking) {
    for (struct cusim_stream *s = c->streams; s; s = s->next_captured)
        if (s->ctx == ctx && !(blocking && (s->flags & CU_STREAM_NON_BLOCKING)))
            return true;
    return false;
}

void cusim_capture_invalidate_blocking(struct cusim_ctx *ctx) {
    for (struct cusim_capture *c = cusim.captures; c; c = c->next)
        if (has_stream_of(c, ctx, true))
            cusim_capture_invalidate(c);
}

void cusim_capture_invalidate_ctx(struct cusim_ctx *ctx) {
    for (struct cusim_capture *c = cusim.captures; c; c = c->next)
        if (has_stream_of(c, ctx, false))
            cusim_capture_invalidate(c);
}

CUresult cusim_capture_state(struct cusim_stream *stream) {
    return stream->capture->status == CUSIM_CAPTURE_ACTIVE ? CUDA_SUCCESS
                                                           : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

CUresult cusim_capture_unsafe(void) {
    struct cusim_thread *self = cusim_thread_self();
    CUresult result = CUDA_SUCCESS;
    if (self->in_worker)
        return CUDA_ERROR_NOT_PERMITTED;
    if (!cusim.captures || self->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    for (struct cusim_capture *c = cusim.captures; c; c = c->next) {
        bool own = c->owner == self && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool global = self->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                      c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (own || global) {
            cusim_capture_invalidate(c);
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

CUresult cusim_capture_unsafe_sync(struct cusim_ctx *ctx) {
    CUresult result = CUDA_SUCCESS;
    for (struct cusim_capture *c = cusim.captures; c; c = c->next)
        if (has_stream_of(c, ctx, false)) {
            cusim_capture_invalidate(c);
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return result != CUDA_SUCCESS ? result : cusim_capture_unsafe();
}

/* ---- participants ---- */

static void join(struct cusim_capture *c, struct cusim_stream *s) {
    s->capture = c;
    s->n_frontier = 0;
    s->next_captured = c->streams;
    c->streams = s;
    if (!(s->flags & CU_STREAM_NON_BLOCKING))
        s->ctx->blocking_captures++;
}

static void leave(struct cusim_stream *s) {
    struct cusim_stream **at = &s->capture->streams;
    while (*at != s)
        at = &(*at)->next_captured;
    *at = s->next_captured;
    s->next_captured = NULL;
    s->capture = NULL;
    s->n_frontier = 0;
    if (!(s->flags & CU_STREAM_NON_BLOCKING))
        s->ctx->blocking_captures--;
}

/* Ends the capture; its graph was given away or is freed here. */
static void finish(struct cusim_capture *c, bool keep_graph) {
    while (c->streams)
        leave(c->streams);
    for (struct cusim_capture **at = &cusim.captures; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    c->graph->capture = NULL;
    if (!keep_graph && !c->graph_given)
        cusim_graph_free(c->graph);
    free(c);
}

struct cusim_capture *cusim_capture_of_ctx(struct cusim_ctx *ctx) {
    for (struct cusim_capture *c = cusim.captures; c; c = c->next)
        if (has_stream_of(c, ctx, false))
            return c;
    return NULL;
}

void cusim_capture_drop(struct cusim_capture *capture) {
    finish(capture, false);
}

void cusim_capture_stream_gone(struct cusim_stream *stream) {
    if (stream->capture->origin == stream) {
        finish(stream->capture, false);
    } else {
        cusim_capture_invalidate(stream->capture);
        leave(stream);
    }
}

static void frontier_add(struct cusim_stream *s, struct cusim_node *node) {
    for (unsigned i = 0; i < s->n_frontier; i++)
        if (s->frontier[i] == node)
            return;
    if (s->n_frontier == s->cap_frontier)
        s->frontier =
            realloc(s->frontier, (s->cap_frontier = s->cap_frontier * 2 + 4) * sizeof *s->frontier);
    s->frontier[s->n_frontier++] = node;
}

static void frontier_set(struct cusim_stream *s, struct cusim_node *node) {
    s->n_frontier = 0;
    frontier_add(s, node);
}

/* ---- captured calls ---- */

static const CUlaunchAttribute *attr_find(const struct cusim_work_kernel *k,
                                          CUlaunchAttributeID id) {
    for (unsigned i = 0; i < k->n_attrs; i++)
        if (k->attrs[i].id == id)
            return &k->attrs[i];
    return NULL;
}

/* A node inherits the attributes of the captured stream, unless the launch set them. */
static void inherit_attributes(struct cusim_work_kernel *k, const struct cusim_stream *s) {
    static const CUlaunchAttributeID inherited[] = {
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, CU_LAUNCH_ATTRIBUTE_PRIORITY,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN};
    for (size_t i = 0; i < sizeof inherited / sizeof inherited[0]; i++) {
        CUlaunchAttributeID id = inherited[i];
        bool set = id == CU_LAUNCH_ATTRIBUTE_PRIORITY ? s->priority != 0 : s->attr_set[id];
        if (!set || attr_find(k, id))
            continue;
        k->attrs = realloc(k->attrs, (k->n_attrs + 1) * sizeof *k->attrs);
        CUlaunchAttribute *a = &k->attrs[k->n_attrs++];
        memset(a, 0, sizeof *a);
        a->id = id;
        a->value = s->attrs[id];
        if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
            a->value.priority = s->priority;
    }
}

bool cusim_work_overlaps(const struct cusim_work *work) {
    if (work->type != CUSIM_WORK_KERNEL)
        return false;
    const CUlaunchAttribute *a =
        attr_find(&work->kernel, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
    return a && a->value.programmaticStreamSerializationAllowed;
}

bool cusim_work_tells_start(const struct cusim_work *work) {
    return work->type == CUSIM_WORK_KERNEL &&
           attr_find(&work->kernel, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
}

CUresult cusim_capture_work(struct cusim_stream *s, struct cusim_work *work) {
    bool pdl = cusim_work_overlaps(work);
    if (work->type == CUSIM_WORK_KERNEL)
        inherit_attributes(&work->kernel, s);
    struct cusim_node *node = cusim_node_new(s->capture->graph, cusim_node_type_of(work), work);
    for (unsigned i = 0; i < s->n_frontier; i++) {
        bool edge = pdl && s->frontier[i]->type == CU_GRAPH_NODE_TYPE_KERNEL;
        cusim_node_depend(node, s->frontier[i], edge ? &cusim_edge_programmatic : NULL);
    }
    frontier_set(s, node);
    return CUDA_SUCCESS;
}

/* A graph launched into a capturing stream becomes a child graph. */
CUresult cusim_capture_child(struct cusim_stream *s, const struct cusim_plan *plan) {
    CUresult result = cusim_capture_work(s, cusim_work_new(CUSIM_WORK_EMPTY, s->ctx));
    struct cusim_node *node = s->frontier[0];
    node->type = CU_GRAPH_NODE_TYPE_GRAPH;
    node->child = cusim_plan_to_graph(plan);
    node->child->owner = node;
    return result;
}

bool cusim_event_captured(const struct cusim_event *event) {
    return event->capture_id != 0;
}

void cusim_event_forget_capture(struct cusim_event *event) {
    event->capture_id = 0;
    free(event->frontier);
    event->frontier = NULL;
    event->n_frontier = 0;
}

CUresult cusim_capture_record(struct cusim_stream *s, struct cusim_event *event, unsigned flags) {
    if (flags & CU_EVENT_RECORD_EXTERNAL) {
        struct cusim_work *work;
        CUresult result = cusim_work_of_event(CUSIM_WORK_RECORD, (CUevent)event, &work);
        return result == CUDA_SUCCESS ? cusim_capture_work(s, work) : result;
    }
    cusim_event_forget_capture(event);
    event->capture_id = s->capture->id;
    event->n_frontier = s->n_frontier;
    event->frontier = malloc((s->n_frontier + 1) * sizeof *event->frontier);
    if (s->n_frontier > 0)
        memcpy(event->frontier, s->frontier, s->n_frontier * sizeof *event->frontier);
    return CUDA_SUCCESS;
}

CUresult cusim_capture_wait(struct cusim_stream *s, struct cusim_event *event, unsigned flags) {
    if (flags & CU_EVENT_WAIT_EXTERNAL) {
        struct cusim_work *work;
        if (!s->capture)
            return CUDA_ERROR_ILLEGAL_STATE;
        CUresult result = cusim_work_of_event(CUSIM_WORK_WAIT, (CUevent)event, &work);
        return result == CUDA_SUCCESS ? cusim_capture_work(s, work) : result;
    }
    if (!cusim_event_captured(event) && !event->last)
        return CUDA_SUCCESS;            /* never recorded: nothing to wait for */
    if (!cusim_event_captured(event)) { /* recorded outside: the graph cannot depend on it */
        cusim_capture_invalidate(s->capture);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    struct cusim_capture *c = cusim_capture_live(event);
    if (!c) /* recorded in a capture that has ended */
        return CUDA_ERROR_INVALID_VALUE;
    if (c->status != CUSIM_CAPTURE_ACTIVE)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (s->legacy) {
        cusim_capture_invalidate(c);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (s->capture && s->capture != c) {
        cusim_capture_invalidate(s->capture);
        cusim_capture_invalidate(c);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (!s->capture)
        join(c, s);
    for (unsigned i = 0; i < event->n_frontier; i++)
        frontier_add(s, event->frontier[i]);
    return CUDA_SUCCESS;
}

/* ---- begin and end ---- */

static CUresult begin(bool ptsz, CUstream handle, CUstreamCaptureMode mode,
                      struct cusim_graph *graph, struct cusim_stream **out) {
    struct cusim_stream *s;
    CUresult result = cusim_stream_get(handle, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (mode != CU_STREAM_CAPTURE_MODE_GLOBAL && mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
        mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct cusim_capture *c = calloc(1, sizeof *c);
    c->id = cusim_new_id();
    c->graph = graph ? graph : cusim_graph_new();
    c->graph_given = graph != NULL;
    c->graph->capture = c;
    c->mode = mode;
    c->owner = cusim_thread_self();
    c->origin = s;
    c->status = CUSIM_CAPTURE_ACTIVE;
    c->next = cusim.captures;
    cusim.captures = c;
    join(c, s);
    *out = s;
    return CUDA_SUCCESS;
}

CUSIM_TWIN_LOCKED(cuStreamBeginCapture, _ptsz, (CUstream stream), (stream)) {
    struct cusim_stream *s;
    return begin(ptsz, stream, CU_STREAM_CAPTURE_MODE_GLOBAL, NULL, &s);
}

CUSIM_TWIN_LOCKED(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode),
                  (stream, mode)) {
    struct cusim_stream *s;
    return begin(ptsz, stream, mode, NULL, &s);
}

/* Stands for a newer driver's call that changes the meaning of later calls; no table knows it. */
__attribute__((visibility("default"))) CUresult cuSimBeginCaptureX(CUstream, CUstreamCaptureMode);
__attribute__((visibility("default")))
CUresult cuSimBeginCaptureX_ptsz(CUstream, CUstreamCaptureMode);
CUSIM_TWIN_LOCKED(cuSimBeginCaptureX, _ptsz, (CUstream stream, CUstreamCaptureMode mode),
                  (stream, mode)) {
    struct cusim_stream *s;
    return begin(ptsz, stream, mode, NULL, &s);
}

CUSIM_TWIN_LOCKED(cuStreamBeginCaptureToGraph, _ptsz,
                  (CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                   const CUgraphEdgeData *data, size_t n, CUstreamCaptureMode mode),
                  (stream, graph, dependencies, data, n, mode)) {
    struct cusim_stream *s;
    (void)data;
    if (!cusim_handle_is(graph, CUSIM_GRAPH) || ((struct cusim_graph *)graph)->capture ||
        (n > 0 && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++)
        if (!cusim_handle_is(dependencies[i], CUSIM_NODE))
            return CUDA_ERROR_INVALID_VALUE;
    CUresult result = begin(ptsz, stream, mode, (struct cusim_graph *)graph, &s);
    for (size_t i = 0; result == CUDA_SUCCESS && i < n; i++)
        frontier_add(s, (struct cusim_node *)dependencies[i]);
    return result;
}

/* Marks all nodes that the origin's frontier depends on. */
static void mark_ancestors(struct cusim_node **nodes, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        struct cusim_node *node = nodes[i];
        if (node->place)
            continue;
        node->place = 1;
        struct cusim_node **deps = malloc((node->n_deps + 1) * sizeof *deps);
        for (unsigned d = 0; d < node->n_deps; d++)
            deps[d] = node->deps[d].from;
        unsigned n_deps = node->n_deps;
        while (n_deps == 1 && !deps[0]->place) { /* walks a chain without recursion */
            node = deps[0];
            node->place = 1;
            n_deps = node->n_deps;
            deps = realloc(deps, (n_deps + 1) * sizeof *deps);
            for (unsigned d = 0; d < n_deps; d++)
                deps[d] = node->deps[d].from;
        }
        mark_ancestors(deps, n_deps);
        free(deps);
    }
}

static bool unjoined(struct cusim_capture *c) {
    for (struct cusim_node *n = c->graph->first; n; n = n->next)
        n->place = 0;
    mark_ancestors(c->origin->frontier, c->origin->n_frontier);
    for (struct cusim_stream *s = c->streams; s; s = s->next_captured)
        for (unsigned i = 0; i < s->n_frontier; i++)
            if (!s->frontier[i]->place)
                return true;
    return false;
}

/* A failed end ends the capture all the same: a requested fault must not leave the stream
 * capturing. */
static CUresult failed_end(bool ptsz, CUstream handle, CUgraph *graph, CUresult fault) {
    struct cusim_stream *s;
    cusim_lock();
    if (cusim.initialized && cusim_stream_get(handle, ptsz, &s) == CUDA_SUCCESS && s->capture &&
        s->capture->origin == s)
        finish(s->capture, false);
    if (graph)
        *graph = NULL;
    cusim_unlock();
    return fault;
}

static CUresult end(bool ptsz, CUstream handle, CUgraph *graph) {
    struct cusim_stream *s;
    CUresult result = cusim_stream_get(handle, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = NULL;
    struct cusim_capture *c = s->capture;
    if (!c)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->origin != s) {
        cusim_capture_invalidate(c);
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->owner != cusim_thread_self())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (c->status != CUSIM_CAPTURE_ACTIVE)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (unjoined(c))
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (result == CUDA_SUCCESS)
        *graph = (CUgraph)c->graph;
    finish(c, result == CUDA_SUCCESS);
    return result;
}

static CUresult end_locked(enum cusim_api api, bool ptsz, CUstream handle, CUgraph *graph) {
    CUresult result = cusim_enter(api);
    if (result != CUDA_SUCCESS)
        return failed_end(ptsz, handle, graph, result);
    cusim_lock();
    result = end(ptsz, handle, graph);
    cusim_unlock();
    return result;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
    return end_locked(CUSIM_API_cuStreamEndCapture, false, handle, graph);
}

CUresult cuStreamEndCapture_ptsz(CUstream handle, CUgraph *graph) {
    return end_locked(CUSIM_API_cuStreamEndCapture_ptsz, true, handle, graph);
}

/* ---- queries ---- */

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    CUSIM_ENTER(cuThreadExchangeStreamCaptureMode);
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    struct cusim_thread *self = cusim_thread_self();
    CUstreamCaptureMode before = self->capture_mode;
    self->capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

static CUresult status_of(bool ptsz, CUstream handle, CUstreamCaptureStatus *status,
                          struct cusim_stream **s) {
    CUresult result = cusim_stream_get(handle, ptsz, s);
    if (result != CUDA_SUCCESS)
        return result;
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    if ((*s)->legacy && (*s)->ctx->blocking_captures > 0)
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = !(*s)->capture ? CU_STREAM_CAPTURE_STATUS_NONE
              : (*s)->capture->status == CUSIM_CAPTURE_ACTIVE
                  ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                  : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_SUCCESS;
}

CUSIM_TWIN_LOCKED(cuStreamIsCapturing, _ptsz, (CUstream stream, CUstreamCaptureStatus *status),
                  (stream, status)) {
    struct cusim_stream *s;
    return status_of(ptsz, stream, status, &s);
}

static CUresult info(bool ptsz, CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                     CUgraph *graph, const CUgraphNode **dependencies, const CUgraphEdgeData **data,
                     size_t *n) {
    static const CUgraphEdgeData zero[1024];
    struct cusim_stream *s;
    CUresult result = status_of(ptsz, stream, status, &s);
    if (result != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return result;
    if (data && !dependencies)
        return CUDA_ERROR_INVALID_VALUE;
    if (id)
        *id = s->capture->id;
    if (graph)
        *graph = (CUgraph)s->capture->graph;
    if (dependencies)
        *dependencies = (const CUgraphNode *)s->frontier;
    if (data)
        *data = s->n_frontier <= 1024 ? zero : NULL;
    if (n)
        *n = s->n_frontier;
    return CUDA_SUCCESS;
}

CUSIM_TWIN_LOCKED(cuStreamGetCaptureInfo, _ptsz,
                  (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id),
                  (stream, status, id)) {
    return info(ptsz, stream, status, id, NULL, NULL, NULL, NULL);
}

CUSIM_TWIN_LOCKED(cuStreamGetCaptureInfo_v2, _ptsz,
                  (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                   const CUgraphNode **dependencies, size_t *n),
                  (stream, status, id, graph, dependencies, n)) {
    return info(ptsz, stream, status, id, graph, dependencies, NULL, n);
}

CUSIM_TWIN_LOCKED(cuStreamGetCaptureInfo_v3, _ptsz,
                  (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                   const CUgraphNode **dependencies, const CUgraphEdgeData **data, size_t *n),
                  (stream, status, id, graph, dependencies, data, n)) {
    return info(ptsz, stream, status, id, graph, dependencies, data, n);
}

static CUresult update(bool ptsz, CUstream stream, CUgraphNode *dependencies, size_t n,
                       unsigned flags) {
    struct cusim_stream *s;
    CUresult result = cusim_stream_get(stream, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (!s->capture || (n > 0 && !dependencies) || flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        return s->capture ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_ILLEGAL_STATE;
    for (size_t i = 0; i < n; i++)
        if (!cusim_handle_is(dependencies[i], CUSIM_NODE) ||
            ((struct cusim_node *)dependencies[i])->graph != s->capture->graph)
            return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        s->n_frontier = 0;
    for (size_t i = 0; i < n; i++)
        frontier_add(s, (struct cusim_node *)dependencies[i]);
    return CUDA_SUCCESS;
}

CUSIM_TWIN_LOCKED(cuStreamUpdateCaptureDependencies, _ptsz,
                  (CUstream stream, CUgraphNode *dependencies, size_t n, unsigned flags),
                  (stream, dependencies, n, flags)) {
    return update(ptsz, stream, dependencies, n, flags);
}

CUSIM_TWIN_LOCKED(cuStreamUpdateCaptureDependencies_v2, _ptsz,
                  (CUstream stream, CUgraphNode *dependencies, const CUgraphEdgeData *data,
                   size_t n, unsigned flags),
                  (stream, dependencies, data, n, flags)) {
    (void)data;
    return update(ptsz, stream, dependencies, n, flags);
}
