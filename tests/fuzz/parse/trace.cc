// The reader of trace files, the model of what it read, and the verbs that show it: any file, with
// its checksums made right (or else all that is behind them would never be reached), and any
// records in a sound file.
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#define XXH_INLINE_ALL
#include "shim/trace/reader.h"
#include "tests/fuzz/parse/check.h"
extern "C" {
#include "tools/trace/dump.h"
#include "tools/trace/html.h"
#include "tools/trace/report.h"
}
#include "xxhash.h"

namespace {

void Append(std::string *file, const void *bytes, size_t n) {
    file->append(static_cast<const char *>(bytes), n);
}

void Sum(cst_block *block, const char *payload) {
    block->check = XXH3_64bits_withSeed(payload, block->bytes,
                                        block->type + (static_cast<uint64_t>(block->flags) << 32));
}

// Each block that is whole gets its checksum.
void MakeRight(std::string *file) {
    size_t at = sizeof(cst_file);
    while (at + sizeof(cst_block) <= file->size()) {
        cst_block block;
        memcpy(&block, &(*file)[at], sizeof block);
        if (block.bytes > file->size() - at - sizeof block)
            return;
        Sum(&block, &(*file)[at + sizeof block]);
        memcpy(&(*file)[at], &block, sizeof block);
        at += sizeof block + ((block.bytes + 7) & ~uint64_t{7});
    }
}

// What the bytes are as the records of a file's only block.
std::string Wrap(const uint8_t *data, size_t size) {
    std::string file, payload(reinterpret_cast<const char *>(data), size);
    payload.resize((size + 7) / 8 * 8);
    cst_file head = {};
    memcpy(head.magic, CST_MAGIC, sizeof head.magic);
    head.version = CST_VERSION;
    head.mark = CST_MARK;
    cst_block block = {CST_BLOCK_RECORDS, 0, payload.size(), payload.size(), 0};
    Sum(&block, payload.data());
    cst_block end = {CST_BLOCK_END, 0, 0, 0, 0};
    Sum(&end, "");
    Append(&file, &head, sizeof head);
    Append(&file, &block, sizeof block);
    file += payload;
    Append(&file, &end, sizeof end);
    return file;
}

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

void Print(void (*fill)(const look *, const look *, table *), const look *of, FILE *nowhere) {
    for (table_format format : {TABLE_TEXTUAL, TABLE_JSON}) {
        table t = {};
        table_view view = {};
        view.format = format;
        char error[200];
        fill(of, of, &t);
        CHECK(!t.failed && table_check(&t, &view, error, sizeof error));
        table_print(&t, &view, nowhere);
        table_free(&t);
    }
}

// Everything that the verbs print, of a trace that the reader took.
void Show(const char *path) {
    static FILE *nowhere = fopen("/dev/null", "w");
    look of;
    char error[300];
    CHECK(look_open(&of, path, NAMES_DEMANGLED, error, sizeof error));
    Print([](const look *a, const look *, table *t) { report_kernels(a, t); }, &of, nowhere);
    Print([](const look *a, const look *, table *t) { report_segments(a, t); }, &of, nowhere);
    Print([](const look *a, const look *, table *t) { report_cache(a, t); }, &of, nowhere);
    Print([](const look *a, const look *, table *t) { report_breaks(a, t); }, &of, nowhere);
    Print([](const look *a, const look *, table *t) { report_coverage(a, t); }, &of, nowhere);
    CHECK(html_data(nowhere, &of));
    Print(diff_kernels, &of, nowhere);
    Print(diff_steps, &of, nowhere);
    selection all;
    if (select_steps(&of, 0, false, 0, 0, &all, error, sizeof error))
        dump_lines(&of, &all, 0, nowhere);
    select_free(&all);
    for (uint32_t i = 0; i < of.model->n_steps; i++)
        dump_dot(&of, i, nowhere);
    look_close(&of);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int fd = memfd_create("trace", MFD_CLOEXEC);
    bool whole = size >= 8 && memcmp(data, CST_MAGIC, 8) == 0;
    std::string file;
    if (whole) {
        file.assign(reinterpret_cast<const char *>(data), size);
        MakeRight(&file);
    } else {
        file = Wrap(data, size);
    }
    CHECK(fd >= 0 && ftruncate(fd, 0) == 0 &&
          pwrite(fd, file.data(), file.size(), 0) == static_cast<ssize_t>(file.size()));
    std::string path = "/proc/self/fd/" + std::to_string(fd);
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
