/*
 * Writes the ops, graph launches and steps of a page as columns of numbers. html.c calls it, and
 * page_data.js reads them. It never opens a file.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shim/stats/tally.h"
#include "tools/trace/html.h"
#include "tools/trace/json.h"
#include "tools/trace/report.h"
#include "tools/trace/text_file.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

/*
 * Each column is a script element with an id that begins with `c-`: numbers of seven bits a byte,
 * the lowest first, in base64. Times of ops are differences to the op before.
 *
 *   c-op-*    by op, in the order of the trace: time (ns), host (ns), shape, stream, thread,
 *             out (0: none, else 1 + the zigzag difference to the last out), alone (why it is in
 *             no graph, in the JSON `lists`; 0: see its out)
 *   c-out-*   by LAUNCH and FLUSH: host, build (ns), n, how (1 to 3: enum cst_choice, 0: FLUSH),
 *             segment, variant, patched; of a FLUSH segment and variant are its cause and reason,
 * by number in `texts` ([text, what it means, what to do]) c-shape-* by kind and dimensions that
 * came together: kind, d0 to d6 c-gpu-*   by op of which it is known when it ran: op (difference),
 * begin (zigzag, from its call on), time c-step-*  by step of the model: stream, n, signature, time
 */
struct column {
    uint8_t *at;
    size_t n, room;
};

enum { TIME, HOST, SHAPE, STREAM, THREAD, OUT, ALONE, OPS };
enum { OUTS = 7 };
enum { S_KIND, S_D0, S_D6 = S_D0 + 6, SHAPES };
enum { T_STREAM, T_N, T_SIGNATURE, T_TIME, STEPS };
enum { G_OP, G_BEGIN, G_TIME, GPUS };
enum { LISTS = 3 };

static const char *const op_ids[] = {"time", "host", "shape", "stream", "thread", "out", "alone"};
static const char *const out_ids[] = {"host", "build", "n", "how", "segment", "variant", "patched"};
static const char *const shape_ids[] = {"kind", "d0", "d1", "d2", "d3", "d4", "d5", "d6"};
static const char *const gpu_ids[] = {"op", "begin", "time"};
static const char *const step_ids[] = {"stream", "n", "signature", "time"};

/* What ops or calls have in common, numbered as they come. Keys are bytes. */
struct number_of {
    struct slot {
        uint64_t hash;
        const void *key;
        uint32_t number;
    } * slots;
    uint32_t n, room;
};

struct data {
    const struct look *look;
    struct column op[OPS], out[OUTS], shape[SHAPES], step[STEPS], gpu[GPUS];
    struct number_of shapes;
    struct report_rows alone, texts, signatures;
    struct cus_json lists_alone, lists_texts, lists_signatures;
    char *json[LISTS];
    size_t json_bytes[LISTS];
    struct where {
        const struct cst_record *out;
        uint32_t number;
    } * outs; /* by address */
    uint32_t n_outs;
    bool failed;
};

/* ---- columns ---- */

static void put(struct data *data, struct column *column, uint64_t value) {
    if (column->n + 10 > column->room) {
        size_t room = column->room ? 2 * column->room : 4096;
        uint8_t *larger = realloc(column->at, room);
        if (!larger) {
            data->failed = true;
            return;
        }
        column->at = larger;
        column->room = room;
    }
    for (; value >= 0x80; value >>= 7)
        column->at[column->n++] = (uint8_t)(value | 0x80);
    column->at[column->n++] = (uint8_t)value;
}

static uint64_t zigzag(int64_t value) {
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static void put_columns(FILE *to, const char *of, const char *const *ids, struct column *columns,
                        unsigned n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (unsigned c = 0; c < n; c++) {
        const struct column *column = &columns[c];
        fprintf(to, "<script type=\"text/plain\" id=\"c-%s-%s\">", of, ids[c]);
        for (size_t i = 0; i < column->n; i += 3) {
            size_t left = column->n - i;
            uint32_t three = (uint32_t)column->at[i] << 16 |
                             (uint32_t)(left > 1 ? column->at[i + 1] : 0) << 8 |
                             (left > 2 ? column->at[i + 2] : 0);
            putc(digits[three >> 18], to);
            putc(digits[three >> 12 & 63], to);
            putc(left > 1 ? digits[three >> 6 & 63] : '=', to);
            putc(left > 2 ? digits[three & 63] : '=', to);
        }
        fputs("</script>\n", to);
        free(column->at);
        columns[c] = (struct column){0};
    }
}

/* ---- numbering ---- */

struct shape_key {
    uint32_t kind, dims[7];
};

static bool grow(struct number_of *map) {
    uint32_t room = map->room ? 2 * map->room : 256;
    struct slot *slots = calloc(room, sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t i = 0; i < map->room; i++) {
        uint64_t at = map->slots[i].hash;
        if (!map->slots[i].key)
            continue;
        while (slots[at & (room - 1)].key)
            at++;
        slots[at & (room - 1)] = map->slots[i];
    }
    free(map->slots);
    map->slots = slots;
    map->room = room;
    return true;
}

/* The number of an op's kind and dimensions; new ones go into their columns. */
static uint32_t shape_of(struct data *data, const struct cst_op *op) {
    struct number_of *map = &data->shapes;
    if (2 * map->n >= map->room && !grow(map)) {
        data->failed = true;
        return 0;
    }
    uint64_t hash = XXH3_64bits_withSeed(op->dims, sizeof op->dims, op->kind), at = hash;
    for (;; at++) {
        struct slot *slot = &map->slots[at & (map->room - 1)];
        const struct cst_op *other = slot->key;
        if (!other) {
            *slot = (struct slot){hash, op, map->n++};
            put(data, &data->shape[S_KIND], op->kind);
            for (unsigned i = 0; i < 7; i++)
                put(data, &data->shape[S_D0 + i], op->dims[i]);
            return slot->number;
        }
        if (other->kind == op->kind && memcmp(other->dims, op->dims, sizeof op->dims) == 0)
            return slot->number;
    }
}

/* What a cause of flushes means, and what to do about it. */
static void put_meaning(struct cus_json *list, const char *text) {
    static const char *const keys[] = {
#define CUS_CAUSE(id, key) key,
#include "shim/stats/reasons.def"
    };
    for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], text) == 0) {
            cus_json_text(list, NULL, cus_cause_what(i));
            cus_json_text(list, NULL, cus_cause_advice(i));
            return;
        }
    cus_json_text(list, NULL, strncmp(text, "cu", 2) == 0 ? cus_call_what(text) : "");
    cus_json_text(list, NULL, strncmp(text, "cu", 2) == 0 ? cus_call_advice(text) : "");
}

/* The number of a text of the trace among those of a list, which it is added to. By its id: this is
 * asked again and again, and texts may be long. */
static uint32_t text_of(struct data *data, struct report_rows *rows, struct cus_json *list,
                        uint32_t id) {
    const char *text = cst_string(data->look->trace, id);
    uint32_t known = rows->n, number = report_row(rows, id, "");
    if (number == CST_NONE) {
        data->failed = true;
        return 0;
    }
    if (number == known) {
        cus_json_open(list, NULL, '[');
        cus_json_text(list, NULL, text);
        put_meaning(list, text);
        cus_json_close(list, ']');
    }
    return number;
}

/* ---- the pass ---- */

static int by_address(const void *a, const void *b) {
    const struct where *x = a, *y = b;
    return (x->out > y->out) - (x->out < y->out);
}

/* One and all of an op's answers to "why is it in no graph", from 1 on. */
static uint32_t alone_of(struct data *data, const struct cst_op *op) {
    const struct cst_trace *trace = data->look->trace;
    if (op->head.flags == CST_DEFERRED && !op->result)
        return 0;
    const char *eager = cst_string(trace, op->eager);
    uint32_t known = data->alone.n;
    const uint32_t key[] = {(uint32_t)op->result, op->why, op->eager, op->head.flags};
    uint32_t number = report_row(&data->alone, XXH3_64bits(key, sizeof key), "");
    if (number == CST_NONE) {
        data->failed = true;
        return 0;
    }
    if (number == known) {
        cus_json_open(&data->lists_alone, NULL, '[');
        cus_json_bool(&data->lists_alone, NULL, op->head.flags == CST_EAGER);
        cus_json_text(&data->lists_alone, NULL, eager);
        cus_json_text(&data->lists_alone, NULL, cst_string(trace, op->why));
        cus_json_integer(&data->lists_alone, NULL, op->result);
        cus_json_close(&data->lists_alone, ']');
    }
    return number + 1;
}

static void take_ops(struct data *data) {
    const struct model *model = data->look->model;
    uint64_t before = data->look->trace->begin_ns;
    int64_t last = 0;
    const struct where *found = NULL;
    uint32_t ran = 0;
    for (uint32_t i = 0; i < model->n_ops && !data->failed; i++) {
        const struct model_op *m = &model->ops[i];
        const struct cst_op *op = m->op;
        put(data, &data->op[TIME], op->head.ns - before);
        put(data, &data->op[HOST], op->host_ns);
        put(data, &data->op[SHAPE], shape_of(data, op));
        put(data, &data->op[STREAM], op->stream);
        put(data, &data->op[THREAD], op->head.thread);
        put(data, &data->op[ALONE], alone_of(data, op));
        before = op->head.ns;
        struct where wanted = {.out = m->out};
        if (m->out && (!found || found->out != m->out))
            found = bsearch(&wanted, data->outs, data->n_outs, sizeof wanted, by_address);
        put(data, &data->op[OUT], m->out ? 1 + zigzag((int64_t)found->number - last) : 0);
        if (m->out)
            last = found->number;
        if (m->gpu) {
            put(data, &data->gpu[G_OP], i - ran);
            put(data, &data->gpu[G_BEGIN], zigzag((int64_t)(m->gpu->head.ns - op->head.ns)));
            put(data, &data->gpu[G_TIME], m->gpu->gpu_ns);
            ran = i;
        }
    }
}

static void put_out(struct data *data, const uint64_t values[OUTS]) {
    for (unsigned i = 0; i < OUTS; i++)
        put(data, &data->out[i], values[i]);
}

/* The values stand in the order of out_ids. */
static void take_out(struct data *data, const struct cst_record *record) {
    if (record->type == CST_LAUNCH) {
        const struct cst_launch *launch = (const struct cst_launch *)record;
        put_out(data, (uint64_t[OUTS]){launch->host_ns, launch->build_ns, launch->n, record->flags,
                                       launch->segment, launch->variant, launch->patched});
    } else {
        const struct cst_flush *flush = (const struct cst_flush *)record;
        uint32_t cause = text_of(data, &data->texts, &data->lists_texts, flush->cause);
        uint32_t reason = text_of(data, &data->texts, &data->lists_texts, flush->reason);
        put_out(data, (uint64_t[OUTS]){0, 0, flush->n, 0, cause, reason, 0});
    }
    data->outs[data->n_outs] = (struct where){record, data->n_outs};
    data->n_outs++;
}

static void take_events(struct data *data) {
    const struct cst_trace *trace = data->look->trace;
    for (size_t i = 0; i < trace->n_events && !data->failed; i++)
        if (trace->events[i]->type == CST_LAUNCH || trace->events[i]->type == CST_FLUSH)
            take_out(data, trace->events[i]);
}

static void take_steps(struct data *data) {
    const struct model *model = data->look->model;
    for (uint32_t i = 0; i < model->n_steps && !data->failed; i++) {
        const struct model_step *step = &model->steps[i];
        uint32_t known = data->signatures.n;
        uint32_t number = report_row(&data->signatures, data->look->signatures[i], "");
        if (number == CST_NONE) {
            data->failed = true;
            return;
        }
        if (number == known) {
            char text[20];
            snprintf(text, sizeof text, "%016" PRIx64, data->look->signatures[i]);
            cus_json_text(&data->lists_signatures, NULL, text);
        }
        put(data, &data->step[T_STREAM], step->stream);
        put(data, &data->step[T_N], step->n_ops);
        put(data, &data->step[T_SIGNATURE], number);
        put(data, &data->step[T_TIME], step->end_ns - step->begin_ns);
    }
}

/* ---- the lists ---- */

/* A name in a page has no more bytes: a trace may have thousands that are long. */
enum { NAME_MOST = 4096 };

static void put_name(struct cus_json *json, const char *key, const char *name) {
    size_t bytes = strlen(name);
    if (bytes <= NAME_MOST) {
        cus_json_text(json, key, name);
        return;
    }
    char text[NAME_MOST + 4];
    snprintf(text, sizeof text, "%.*s...", NAME_MOST, name);
    cus_json_text(json, key, text);
}

static void put_kinds(struct cus_json *json, const struct look *look) {
    const struct cst_trace *trace = look->trace;
    cus_json_open(json, "kinds", '[');
    for (uint32_t i = 0; i < trace->n_kinds; i++) {
        const struct cst_kind *kind = trace->kinds[i];
        if (!kind) {
            cus_json_raw(json, NULL, "null");
            continue;
        }
        cus_json_open(json, NULL, '{');
        cus_json_integer(json, "op", kind->op);
        put_name(json, "name", names_of(look->names, i));
        if (strcmp(names_of(look->names, i), cst_string(trace, kind->name)) != 0)
            put_name(json, "symbol", cst_string(trace, kind->name));
        cus_json_text(json, "file", cst_string(trace, kind->file));
        cus_json_integer(json, "elem", kind->elem);
        cus_json_integer(json, "form", kind->form);
        cus_json_close(json, '}');
    }
    cus_json_close(json, ']');
}

static bool put_lists(FILE *to, const struct look *look, const void *context) {
    const struct data *data = context;
    const struct cst_trace *trace = look->trace;
    struct cus_json json = json_to(to, CUS_JSON_SPACED);
    static const char *const keys[LISTS] = {"alone", "texts", "signatures"};
    cus_json_open(&json, NULL, '{');
    cus_json_integer(&json, "ops", look->model->n_ops);
    cus_json_integer(&json, "outs", data->n_outs);
    cus_json_integer(&json, "shapes", data->shapes.n);
    cus_json_integer(&json, "steps", look->model->n_steps);
    cus_json_integer(&json, "gpu", (int64_t)look->model->gpu_known);
    put_kinds(&json, look);
    cus_json_integer(&json, "streams", trace->n_streams);
    cus_json_open(&json, "threads", '[');
    for (uint32_t i = 0; i < trace->n_threads; i++) {
        const struct cst_thread *thread = trace->threads[i];
        cus_json_open(&json, NULL, '[');
        cus_json_integer(&json, NULL, thread ? thread->tid : 0);
        cus_json_text(&json, NULL, thread ? cst_string(trace, thread->name) : "");
        cus_json_close(&json, ']');
    }
    cus_json_close(&json, ']');
    for (unsigned i = 0; i < LISTS; i++)
        cus_json_raw(&json, keys[i], data->json[i]);
    cus_json_close(&json, '}');
    return true;
}

bool html_data(FILE *to, const struct look *look) {
    struct data data = {.look = look};
    struct cus_json *lists[LISTS] = {&data.lists_alone, &data.lists_texts, &data.lists_signatures};
    data.outs = malloc((look->trace->n_events + 1) * sizeof *data.outs);
    data.failed = !data.outs;
    for (unsigned i = 0; i < LISTS; i++) {
        *lists[i] = json_to(text_file_open(&data.json[i], &data.json_bytes[i]), CUS_JSON_SPACED);
        if (lists[i]->to)
            cus_json_open(lists[i], NULL, '[');
        data.failed |= !lists[i]->to;
    }
    if (!data.failed) {
        take_events(&data);
        qsort(data.outs, data.n_outs, sizeof *data.outs, by_address);
        take_ops(&data);
        take_steps(&data);
    }
    for (unsigned i = 0; i < LISTS; i++) {
        if (!lists[i]->to)
            continue;
        cus_json_close(lists[i], ']');
        data.failed |= !text_file_close(lists[i]->to, &data.json[i]);
    }
    data.failed = data.failed || !html_json(to, "lists", put_lists, look, &data);
    put_columns(to, "op", op_ids, data.op, OPS);
    put_columns(to, "out", out_ids, data.out, OUTS);
    put_columns(to, "shape", shape_ids, data.shape, SHAPES);
    put_columns(to, "step", step_ids, data.step, STEPS);
    put_columns(to, "gpu", gpu_ids, data.gpu, GPUS);
    for (unsigned i = 0; i < LISTS; i++)
        free(data.json[i]);
    report_rows_free(&data.alone);
    report_rows_free(&data.texts);
    report_rows_free(&data.signatures);
    free(data.shapes.slots);
    free(data.outs);
    return !data.failed;
}
