// Target: the reader of trace files, its model, and the verbs that show it. Inputs are files with
// corrected checksums (a wrong one stops the reader), or any records in a sound file.
#include <stdint.h>
#include <string.h>

#include <string>

#include "tests/fuzz/parse/check.h"
#include "tests/fuzz/parse/forms.h"
#include "tests/fuzz/parse/traces.h"
#include "tools/trace/reader.h"
extern "C" {
#include "tools/trace/budget.h"
#include "tools/trace/dump.h"
#include "tools/trace/html.h"
#include "tools/trace/report.h"
}

namespace {

// All that the reader promises of records and data of a replayable trace.
uint64_t LookReplay(const cst_trace *trace) {
    const cst_replay &replay = trace->replay;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < replay.n_codes; i++) {
        const cst_code *code = replay.codes[i];
        for (uint32_t k = 0; code && k < code->n_attributes; k++)
            sum += cst_code_settings(code)[k].attribute;
        CHECK(!code || !code->module || replay.modules[code->module]);
    }
    for (size_t i = 0; i < replay.n_works; i++) {
        const cst_work *work = replay.works[i];
        CHECK(i == 0 || replay.works[i - 1]->head.ns <= work->head.ns);
        CHECK(!work->lane || replay.lanes[work->lane]);
        for (uint32_t k = 0; k < work->n_attributes; k++)
            sum += cst_work_attributes(work)[k].value[7];
        if (work->head.flags != CST_WORK_LAUNCH)
            continue;
        const cst_code *code = replay.codes[work->code];
        CHECK(code);
        for (uint32_t k = 0; k < code->param_bytes; k++)
            sum += cst_work_params(work)[k];
    }
    for (size_t i = 0; i < replay.n_spans; i++)
        CHECK(replay.spans[i]->address + replay.spans[i]->bytes >= replay.spans[i]->address);
    for (size_t i = 0; i < replay.n_obstacles; i++)
        sum += strlen(cst_string(trace, replay.obstacles[i]->why));
    for (size_t i = 0; i < replay.n_parts; i++) {
        const cst_part &part = replay.parts[i];
        char error[300] = "";
        size_t n;
        std::string bytes(part.bytes, 0);
        CHECK(part.bytes <= CST_BLOCK_MAX);
        CHECK(cst_data_load(trace, &part, bytes.data(), error, sizeof error) == (*error == 0));
        const cst_part *first =
            cst_data_of(trace, static_cast<enum cst_data_of>(part.of), part.id, &n);
        CHECK(n && first <= &part && &part < first + n);
    }
    return sum;
}

uint64_t Look(const cst_trace *trace) {
    uint64_t sum = strlen(trace->facts);
    for (size_t i = 0; i < trace->n_events; i++) {
        CHECK(i == 0 || trace->events[i - 1]->ns <= trace->events[i]->ns);
        const uint8_t *bytes = reinterpret_cast<const uint8_t *>(trace->events[i]);
        for (size_t b = 0; b < trace->events[i]->words * 8u; b++)
            sum += bytes[b];
    }
    for (uint32_t i = 0; i < trace->n_kinds; i++) {
        const cst_kind *kind = trace->kinds[i];
        for (uint32_t a = 0; kind && a < kind->n_attributes; a++)
            sum += cst_kind_attributes(kind)[a].id;
        sum += kind ? strlen(cst_string(trace, kind->name)) : 0;
    }
    return sum + LookReplay(trace);
}

void Print(void (*fill)(const look *, const look *, table *), const look *of) {
    for (table_format format : {TABLE_TEXTUAL, TABLE_CSV, TABLE_JSON, TABLE_MD}) {
        table t = {};
        table_view view = {};
        view.format = format;
        char error[200];
        fill(of, of, &t);
        CHECK(!t.failed && table_check(&t, &view, error, sizeof error));
        std::string text = Printed([&](FILE *to) { table_print(&t, &view, to); });
        CheckPlain(text);
        if (format == TABLE_JSON)
            CheckJson(text);
        table_free(&t);
    }
}

// Everything that the verbs print, of a trace that the reader took.
void Show(const char *path) {
    look of;
    char error[300];
    CHECK(look_open(&of, path, NAMES_DEMANGLED, error, sizeof error));
    Print([](const look *a, const look *, table *t) { report_kernels(a, t); }, &of);
    Print([](const look *a, const look *, table *t) { report_segments(a, t); }, &of);
    Print([](const look *a, const look *, table *t) { report_cache(a, t); }, &of);
    Print([](const look *a, const look *, table *t) { report_breaks(a, t); }, &of);
    Print([](const look *a, const look *, table *t) { report_coverage(a, t); }, &of);
    CheckScripts(Printed([&](FILE *to) { CHECK(html_data(to, &of)); }));
    Print(diff_kernels, &of);
    Print(diff_steps, &of);
    selection all;
    if (select_steps(&of, 0, false, 0, 0, &all, error, sizeof error))
        for (const std::string &line :
             Lines(Printed([&](FILE *to) { dump_lines(&of, &all, 0, to); })))
            CheckJson(line);
    select_free(&all);
    for (uint32_t i = 0; i < of.model->n_steps; i++)
        CheckDot(Printed([&](FILE *to) { dump_dot(&of, i, to); }));
    look_close(&of);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    budget_memory(0); // the fuzzer has bounds of its own, for each input
    budget_seconds(0);
    std::string path = InMemory(0, TraceOf(data, size));
    char error[300];
    cst_trace *trace = cst_open(path.c_str(), error, sizeof error);
    if (!trace) {
        CHECK(strncmp(error, path.c_str(), path.size()) == 0 && strlen(error) > path.size() + 2);
        return 0;
    }
    CHECK(Look(trace) + 1 != 0);
    model *m = model_make(trace);
    CHECK(m && m->n_ops == trace->ops);
    CHECK(m->in_graphs + m->flushed + m->eager + m->open == m->n_ops);
    uint64_t ops = 0;
    for (uint32_t i = 0; i < m->n_steps; i++) {
        ops += m->steps[i].n_ops;
        CHECK(m->steps[i].in_graphs <= m->steps[i].n_ops);
    }
    CHECK(ops == m->n_ops);
    model_free(m);
    cst_free(trace);
    Show(path.c_str());
    return 0;
}
