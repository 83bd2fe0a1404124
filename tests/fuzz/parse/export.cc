// Target: everything made from a trace: the page, Perfetto's JSON, an SQLite database that import
// reads again, and trimmed and packed traces that the reader accepts again.
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/fuzz/parse/check.h"
#include "tests/fuzz/parse/forms.h"
#include "tests/fuzz/parse/traces.h"
extern "C" {
#include "tools/trace/budget.h"
#include "tools/trace/export.h"
#include "tools/trace/html.h"
#include "tools/trace/import.h"
#include "tools/trace/look.h"
#include "tools/trace/pack.h"
#include "tools/trace/trim.h"
}

namespace {

std::string Out() {
    return Folder() + "/out";
}

// What was written is looked at and removed.
std::string Taken(bool done, const char *error) {
    std::stringstream text;
    text << std::ifstream(Out(), std::ios::binary).rdbuf();
    CHECK((unlink(Out().c_str()) == 0) == done);
    CHECK(done == (*error == 0));
    CheckNothingElse();
    return text.str();
}

void Perfetto(export_job *job) {
    char error[1024] = "";
    bool done = export_perfetto(job, Out().c_str(), error, sizeof error);
    std::string text = Taken(done, error);
    CHECK(done && text.size() == job->bytes);
    CheckPlain(text);
    CheckJson(text);
}

// A trace that was written holds what it says.
uint64_t Ops(const std::string &path) {
    char error[1024];
    cst_trace *trace = cst_open(path.c_str(), error, sizeof error);
    if (!trace)
        fprintf(stderr, "%s\n", error);
    CHECK(trace && trace->closed && !trace->torn);
    uint64_t ops = trace->ops;
    CheckJson(trace->facts);
    cst_free(trace);
    return ops;
}

void Sqlite(export_job *job) {
    char error[1024] = "";
    std::string back = Folder() + "/back", from = Out();
    bool done = export_sqlite(job, Out().c_str(), error, sizeof error);
    if (!done)
        fprintf(stderr, "%s\n", error);
    CHECK(done);
    import_options options = {from.c_str(), back.c_str(), false, false, 0};
    import_counts counts;
    if (import_file(&options, &counts, error, sizeof error)) {
        CHECK(Ops(back) == counts.ops);
        CHECK(unlink(back.c_str()) == 0);
    }
    Taken(true, "");
}

void Export(const look *of) {
    const char *const from[] = {of->trace->path, nullptr};
    export_job job = {};
    job.trace = of->trace;
    job.from = from;
    job.model = of->model;
    job.flows = true;
    job.pid = export_pid(of->trace);
    if (!timeline_fits(of->trace))
        return;
    kind_name *names = kind_names_make(of->trace);
    timeline_span *spans = timeline_make(of->model);
    CHECK(names && spans);
    job.names = names;
    job.spans = spans;
    Perfetto(&job);
    Sqlite(&job);
    free(spans);
    kind_names_free(names, of->trace->n_kinds);
}

// Every page has the same elements: no text of a trace opens or ends one.
void Page(const look *of) {
    static long known = 0;
    char error[1024] = "";
    CHECK(trace_html(of, Out().c_str(), false, error, sizeof error) == 0);
    std::string text = Taken(true, "");
    long found = std::count(text.begin(), text.end(), '<');
    known = known ? known : found;
    CHECK(found == known);
}

void Trim(const look *of, trim_form form, uint64_t last) {
    selection steps;
    trim_result result;
    char error[1024] = "";
    if (select_steps(of, 0, last, 0, last, &steps, error, sizeof error) && steps.steps) {
        CHECK(trim_write(of, &steps, "{\"ops_before\": 1}", form, Out().c_str(), &result, error,
                         sizeof error));
        CHECK(Ops(Out()) == result.ops);
        CHECK(pack_file(Out().c_str(), error, sizeof error));
        CHECK(Ops(Out()) == result.ops);
        Taken(true, "");
    }
    select_free(&steps);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    budget_memory(0); // the fuzzer has bounds of its own, for each input
    budget_seconds(0);
    std::string path = OnDisk(TraceOf(data, size));
    char error[1024];
    look of;
    cst_trace *trace = cst_open(path.c_str(), error, sizeof error); // with its own bounds
    if (!trace)
        return 0;
    cst_free(trace);
    CHECK(look_open(&of, path.c_str(), NAMES_BASE, error, sizeof error));
    Export(&of);
    Page(&of);
    Trim(&of, {(size & 8) != 0, (size & 64) != 0}, size / 16 % 4);
    look_close(&of);
    return 0;
}
