#include "tests/launcher/told.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "tests/export/query.h"

std::string Says(const Strings &arguments) {
    Result r = Cusplice(arguments);
    EXPECT_EQ(r.Exit(), 0) << arguments[0] << ": " << r.err;
    return r.out;
}

sim::Json Parse(const std::string &text) {
    sim::Json json = sim::ParseJson(text);
    EXPECT_TRUE(json.valid) << text.substr(0, 400);
    return json;
}

// ---- tables ----

// A share has six digits in JSON.
static double Printed(double share) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", share);
    return atof(text);
}

// Rows by what tells them apart: numbers and texts that are in both.
static std::string Line(const RawRow &row) {
    std::ostringstream line;
    for (const auto &[key, text] : row.text)
        line << key << "=" << text << " ";
    line.precision(12);
    for (const auto &[key, number] : row.number)
        if (std::isnan(number))
            line << key << "=? ";
        else
            line << key << "=" << (key == "share" ? Printed(number) : number) << " ";
    return line.str();
}

// The row `at` of a table, with the keys that `like` has.
static RawRow RowOf(const sim::Json &json, const std::string &at, const RawRow &like) {
    RawRow row;
    for (const auto &[key, number] : like.number) {
        bool unknown = json.text.count(at + key) && json.text.at(at + key) == "null";
        EXPECT_TRUE(unknown || json.number.count(at + key)) << at + key;
        row.number[key] = unknown ? NAN : json.Number(at + key);
    }
    for (const auto &[key, text] : like.text)
        row.text[key] = json.text.count(at + key) ? json.text.at(at + key) : "(none)";
    return row;
}

// Each of the rows once, in whatever order, and no other.
void ExpectRows(const sim::Json &json, const std::string &under, const RawRows &expected) {
    std::vector<std::string> want, got;
    for (const RawRow &row : expected)
        want.push_back(Line(row));
    for (size_t i = 0; !expected.empty(); i++) {
        std::string at = under + "rows." + std::to_string(i) + ".";
        if (!json.Has(at + expected[0].number.begin()->first))
            break;
        got.push_back(Line(RowOf(json, at, expected[0])));
    }
    std::sort(want.begin(), want.end());
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, want);
}

// The kernels' patched nodes: of each where the records tell it, in all in any case.
void ExpectKernels(const sim::Json &json, const std::string &under, const Raw &raw) {
    RawRows rows = raw.Kernels();
    double sum = 0;
    for (size_t i = 0; i < rows.size(); i++)
        sum += json.Number(under + "rows." + std::to_string(i) + ".patched");
    EXPECT_EQ(sum, raw.Patched());
    for (RawRow &row : rows)
        if (row.number["patched"] < 0)
            row.number.erase("patched");
    ExpectRows(json, under, rows);
}

// "eager:rule 12, flush:cuEventRecord 3": true, the most frequent first, three at most.
static void ExpectEnded(const sim::Json &json, const std::string &under, const Raw &raw) {
    auto ended = raw.Ended();
    std::map<std::string, std::map<std::string, size_t>> told;
    for (size_t i = 0; json.Has(under + "rows." + std::to_string(i) + ".ended"); i++) {
        std::string at = under + "rows." + std::to_string(i) + ".";
        const auto &truth = ended[json.text.at(at + "list")];
        std::istringstream parts(json.text.at(at + "ended"));
        size_t n = 0, last = SIZE_MAX;
        for (std::string part; std::getline(parts, part, ','); n++) {
            part.erase(0, part.find_first_not_of(' '));
            size_t blank = part.rfind(' '), count = std::stoul(part.substr(blank + 1));
            EXPECT_LE(count, last) << part;
            last = count;
            told[json.text.at(at + "list")][part.substr(0, blank)] += count;
        }
        EXPECT_LE(n, 3u);
        EXPECT_GE(n, std::min<size_t>(1, truth.size()));
    }
    for (const auto &[list, of] : told)
        for (const auto &[ender, count] : of)
            EXPECT_LE(count, ended[list][ender]) << list << ": " << ender;
}

static void ExpectAbout(const sim::Json &json, const std::string &at, const Raw &raw) {
    const std::pair<const char *, size_t> numbers[] = {
        {"ops", raw.ops.size()},       {"in_graphs", raw.Count("graph")},
        {"eager", raw.Count("eager")}, {"flushed", raw.Count("flushed")},
        {"steps", raw.steps.size()},   {"graph_launches", raw.launches.size()},
    };
    for (const auto &[key, number] : numbers)
        EXPECT_EQ(json.Number(at + key), static_cast<double>(number)) << at << key;
    EXPECT_EQ(json.Number(at + "open"), static_cast<double>(raw.Count("open")));
}

const Reported kReports[4] = {{"segments", &Raw::Segments},
                              {"cache", &Raw::Cache},
                              {"breaks", &Raw::Breaks},
                              {"coverage", &Raw::Coverage}};

static void ExpectReports(const std::string &path, const Raw &raw) {
    for (const Reported &report : kReports) {
        SCOPED_TRACE(report.name);
        sim::Json json =
            Parse(Says({"report", report.name, "--names", "mangled", "--format", "json", path}));
        ExpectAbout(json, "about.", raw);
        ExpectRows(json, "", (raw.*report.rows)());
    }
    sim::Json json =
        Parse(Says({"report", "kernels", "--names", "mangled", "--format", "json", path}));
    ExpectKernels(json, "", raw);
    ExpectEnded(Parse(Says({"report", "segments", "--names", "mangled", "--format", "json", path})),
                "", raw);
}

static void ExpectInfo(const std::string &path, const Raw &raw) {
    sim::Json json = Parse(Says({"info", "--json", path}));
    ExpectAbout(json, "", raw);
    EXPECT_EQ(json.Number("segments"), static_cast<double>(raw.segments));
    EXPECT_EQ(json.Number("calls"), static_cast<double>(raw.calls));
    EXPECT_EQ(json.Number("flushes"), static_cast<double>(raw.flushes));
    EXPECT_NEAR(json.Number("share"),
                100.0 * static_cast<double>(raw.Count("graph")) /
                    static_cast<double>(std::max<size_t>(1, raw.ops.size())),
                1e-3);
    EXPECT_EQ(json.Number("duration_ns"),
              static_cast<double>(raw.trace->end_ns - raw.trace->begin_ns));
    std::map<std::string, double> kinds;
    for (uint32_t i = 0; i < raw.trace->n_kinds; i++)
        if (const cst_kind *kind = raw.trace->kinds[i]) {
            static const char *const words[] = {"launch", "memset", "copy", "record", "wait"};
            kinds[words[kind->op]]++;
            kinds["opaque"] += kind->flags & CST_KIND_OPAQUE ? 1 : 0;
            kinds["cooperative"] += kind->flags & CST_KIND_COOPERATIVE ? 1 : 0;
        }
    for (const auto &[key, number] : kinds)
        EXPECT_EQ(json.Number("kinds." + key), number) << key;
    for (size_t i = 0; json.Has("streams." + std::to_string(i) + ".id"); i++) {
        std::string at = "streams." + std::to_string(i) + ".";
        uint32_t id = static_cast<uint32_t>(json.Number(at + "id"));
        size_t n = raw.streams.count(id) ? raw.streams.at(id).size() : 0;
        EXPECT_EQ(json.Number(at + "ops"), static_cast<double>(n));
        EXPECT_EQ(json.Number(at + "steps"),
                  static_cast<double>(
                      std::count_if(raw.steps.begin(), raw.steps.end(),
                                    [&](const Raw::Step &step) { return step.stream == id; })));
    }
}

// ---- the page ----

std::string Element(const std::string &page, const std::string &id) {
    size_t at = page.find(" id=\"" + id + "\">");
    EXPECT_NE(at, std::string::npos) << id;
    at = page.find('>', at) + 1;
    return page.substr(at, page.find("</script>", at) - at);
}

// The numbers of a packed column (html_data.c says how).
std::vector<double> Column(const std::string &page, const std::string &id) {
    static const std::string digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    unsigned bits = 0, n = 0;
    for (char c : Element(page, "c-" + id)) {
        if (c == '=')
            break;
        bits = bits << 6 | static_cast<unsigned>(digits.find(c));
        n += 6;
        if (n >= 8) {
            n -= 8;
            bytes += static_cast<char>(bits >> n & 255);
        }
    }
    std::vector<double> numbers;
    double value = 0, scale = 1;
    for (char c : bytes) {
        value += (c & 127) * scale;
        scale *= 128;
        if (!(c & 128)) {
            numbers.push_back(value);
            value = 0, scale = 1;
        }
    }
    return numbers;
}

static void ExpectPage(const std::string &path, const Raw &raw) {
    std::string out = path + ".html", page;
    unlink(out.c_str());
    Says({"report", "--html", out, "--names", "mangled", path});
    page = ReadFile(out);
    sim::Json totals = Parse(Element(page, "totals"));
    ExpectAbout(totals, "", raw);
    EXPECT_EQ(totals.Number("kernels"), static_cast<double>(raw.Kernels().size()));
    EXPECT_EQ(totals.Number("signatures"), static_cast<double>(raw.Cache().size()));
    EXPECT_EQ(totals.Number("duration_ns"),
              static_cast<double>(raw.trace->end_ns - raw.trace->begin_ns));
    for (const Reported &report : kReports)
        if (report.rows != &Raw::Coverage) {
            SCOPED_TRACE(report.name);
            sim::Json table = Parse(Element(page, std::string("table-") + report.name));
            ExpectRows(table, "report.", (raw.*report.rows)());
        }
    sim::Json kernels = Parse(Element(page, "table-kernels"));
    ExpectKernels(kernels, "report.", raw);
    for (const auto &[at, text] : kernels.text)
        EXPECT_FALSE(at.compare(0, 8, "columns.") == 0 && text.compare(0, 4, "gpu_") == 0)
            << "a column of what is not known: " << text;
    std::vector<double> host, build, patched, n, steps, times;
    for (size_t i = 0; i < raw.trace->n_events; i++) {
        const cst_record *record = raw.trace->events[i];
        auto *launch = reinterpret_cast<const cst_launch *>(record);
        auto *flush = reinterpret_cast<const cst_flush *>(record);
        if (record->type == CST_OP)
            host.push_back(reinterpret_cast<const cst_op *>(record)->host_ns);
        if (record->type != CST_LAUNCH && record->type != CST_FLUSH)
            continue;
        n.push_back(record->type == CST_LAUNCH ? launch->n : flush->n);
        patched.push_back(record->type == CST_LAUNCH ? launch->patched : 0);
        build.push_back(record->type == CST_LAUNCH ? launch->build_ns : 0);
    }
    for (const Raw::Step &step : raw.steps) {
        steps.push_back(static_cast<double>(step.ops.size()));
        times.push_back(static_cast<double>(step.end - step.begin));
    }
    EXPECT_EQ(Column(page, "op-host"), host);
    EXPECT_EQ(Column(page, "out-n"), n);
    EXPECT_EQ(Column(page, "out-patched"), patched);
    EXPECT_EQ(Column(page, "out-build"), build);
    EXPECT_EQ(Column(page, "step-n"), steps);
    EXPECT_EQ(Column(page, "step-time"), times);
    for (const char *of : {"out-segment", "out-variant", "out-how", "out-host"})
        EXPECT_EQ(Column(page, of).size(), n.size()) << of;
}

// ---- exports ----

static void ExpectOpLine(const sim::Json &line, const Raw &raw, size_t i) {
    const Raw::Op &op = raw.ops[i];
    EXPECT_EQ(line.Number("op"), static_cast<double>(i));
    EXPECT_EQ(line.Number("ns"), static_cast<double>(op.op->head.ns - raw.trace->begin_ns));
    EXPECT_EQ(line.Number("stream"), op.op->stream);
    EXPECT_EQ(line.Number("step"), raw.steps[op.step].number);
    EXPECT_EQ(line.Number("host_ns"), op.op->host_ns);
    EXPECT_EQ(line.text.at("outcome"), op.Outcome());
    if (op.launch) {
        EXPECT_EQ(line.Number("segment"), op.launch->segment);
        EXPECT_EQ(line.Number("place"), static_cast<double>(op.place));
    }
    if (raw.Kind(i)->op == CST_OP_LAUNCH) {
        EXPECT_EQ(line.Number("grid.0"), op.op->dims[0]);
        EXPECT_EQ(line.Number("block.0"), op.op->dims[3]);
    }
}

static void ExpectLines(const std::string &path, const Raw &raw) {
    std::string text = Says({"dump", path});
    EXPECT_EQ(Says({"export", "--jsonl", "-", path}), text);
    std::istringstream in(text);
    size_t ops = 0, launches = 0;
    std::map<std::string, size_t> types;
    for (std::string each; std::getline(in, each);) {
        sim::Json line = sim::ParseJson(each);
        ASSERT_TRUE(line.valid) << each;
        std::string type = line.text["type"];
        types[type]++;
        if (type == "op" && ops < raw.ops.size()) {
            ExpectOpLine(line, raw, ops++);
        } else if (type == "graph" && launches < raw.launches.size()) {
            const cst_launch *launch = raw.launches[launches++].record;
            EXPECT_EQ(line.Number("n"), launch->n);
            EXPECT_EQ(line.Number("patched"), launch->patched);
            EXPECT_EQ(line.Number("host_ns"), launch->host_ns);
            EXPECT_EQ(line.Number("build_ns"), launch->build_ns);
            EXPECT_EQ(line.Number("bytes"), launch->bytes);
        } else if (type == "header") {
            EXPECT_EQ(line.Number("ops"), static_cast<double>(raw.ops.size()));
        }
    }
    EXPECT_EQ(types["op"], raw.ops.size());
    EXPECT_EQ(types["graph"], raw.launches.size());
    EXPECT_EQ(types["flush"], raw.flushes);
    EXPECT_EQ(types["call"], raw.calls);
    EXPECT_EQ(types["segment"], raw.segments);
}

// Bytes of a memset or copy, elements and rows multiplied.
static double Bytes(const Raw &raw, size_t i) {
    const cst_op *op = raw.ops[i].op;
    const cst_kind *kind = raw.Kind(i);
    double n = op->dims[0] + op->dims[1] * 4294967296.0;
    uint32_t height = 1;
    if (kind->op == CST_OP_MEMSET && !(kind->flags & CST_KIND_OPAQUE))
        memcpy(&height, cst_op_params(op) + 20, sizeof height);
    return n * (kind->op == CST_OP_MEMSET ? kind->elem * std::max(height, 1u) : 1);
}

namespace {
struct Sums {
    double host = 0, launch_host = 0, patched = 0, build = 0, bytes = 0, in_launches = 0;
    double kernels = 0, grids = 0, copies = 0, copied = 0, memsets = 0, set = 0, records = 0;
    double step_time = 0, step_graphs = 0;
};
} // namespace

static Sums SumsOf(const Raw &raw) {
    Sums s;
    for (size_t i = 0; i < raw.ops.size(); i++) {
        const cst_op *op = raw.ops[i].op;
        s.host += op->host_ns;
        if (raw.ops[i].Outcome() == "open")
            continue; // it never ran
        uint32_t type = raw.Kind(i)->op;
        s.kernels += type == CST_OP_LAUNCH;
        s.grids += type == CST_OP_LAUNCH ? double(op->dims[0]) * op->dims[1] * op->dims[2] : 0;
        s.copies += type == CST_OP_COPY;
        s.copied += type == CST_OP_COPY ? Bytes(raw, i) : 0;
        s.memsets += type == CST_OP_MEMSET;
        s.set += type == CST_OP_MEMSET ? Bytes(raw, i) : 0;
        s.records += type == CST_OP_RECORD;
    }
    for (const Raw::Launch &launch : raw.launches) {
        s.launch_host += launch.record->host_ns;
        s.patched += launch.record->patched;
        s.build += launch.record->build_ns;
        s.bytes += launch.record->bytes;
        s.in_launches += launch.record->n;
    }
    for (const Raw::Step &step : raw.steps) {
        s.step_time += static_cast<double>(step.end - step.begin);
        s.step_graphs += static_cast<double>(step.graphs);
    }
    return s;
}

void ExpectDatabase(const std::string &path, const Raw &raw) {
    std::string out = path + ".sqlite";
    unlink(out.c_str());
    Says({"export", "--sqlite", out, path});
    Sums s = SumsOf(raw);
    auto is = [&](const std::string &sql, double expected) {
        EXPECT_EQ(atof(Query(out, "SELECT " + sql).c_str()), expected) << sql;
    };
    for (const char *outcome : {"graph", "eager", "flushed", "open"})
        is("count(*) FROM CUSPLICE_OP WHERE outcome = '" + std::string(outcome) + "'",
           static_cast<double>(raw.Count(outcome)));
    is("count(*) FROM CUSPLICE_LAUNCH", static_cast<double>(raw.launches.size()));
    is("sum(ops) FROM CUSPLICE_LAUNCH", s.in_launches);
    is("sum(patched) FROM CUSPLICE_LAUNCH", s.patched);
    is("sum(buildNs) FROM CUSPLICE_LAUNCH", s.build);
    is("sum(bytes) FROM CUSPLICE_LAUNCH", s.bytes);
    is("sum(end - start) FROM CUSPLICE_LAUNCH", s.launch_host);
    is("count(*) FROM CUSPLICE_FLUSH", static_cast<double>(raw.flushes));
    is("count(*) FROM CUSPLICE_CALL", static_cast<double>(raw.calls));
    is("count(*) FROM CUSPLICE_SEGMENT", static_cast<double>(raw.segments));
    is("count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL", s.kernels);
    is("sum(gridX * gridY * gridZ) FROM CUPTI_ACTIVITY_KIND_KERNEL", s.grids);
    is("count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY", s.copies);
    is("sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY", s.copied);
    is("count(*) FROM CUPTI_ACTIVITY_KIND_MEMSET", s.memsets);
    is("sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMSET", s.set);
    is("count(*) FROM CUSPLICE_RECORD", s.records);
    is("count(*) FROM CUSPLICE_STEP", static_cast<double>(raw.steps.size()));
    is("sum(end - start) FROM CUSPLICE_STEP", s.step_time);
    is("sum(graphs) FROM CUSPLICE_STEP", s.step_graphs);
    is("sum(inGraphs) FROM CUSPLICE_STEP", static_cast<double>(raw.Count("graph")));
    is("sum(end - start) FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN CUSPLICE_OP USING (correlationId)",
       s.host);
}

// Counts and sums of a viewer's file, a line each.
static const char kViewer[] = R"py(
import json, sys
d = json.load(open(sys.argv[1], encoding="utf-8"))
x = [e for e in d["traceEvents"] if e["ph"] == "X"]
def args(category, name=None):
    return [e["args"] for e in x if e["cat"] == category]
launches = [a for a in args("cusplice") if "choice" in a]
print(sum("outcome" in a for a in args("cuda_driver")))
for outcome in ("graph", "eager", "flushed", "open"):
    print(sum(a.get("outcome") == outcome for a in args("cuda_driver")))
print(len(launches), sum(a["ops"] for a in launches), sum(a["patched"] for a in launches))
print(sum(a.get("build_ns", 0) for a in launches))
print(len(args("kernel")), len(args("gpu_memset")), len(args("gpu_memcpy")), len(args("gpu_record")))
print(sum(a["bytes"] for a in args("gpu_memcpy")), sum(a["bytes"] for a in args("gpu_memset")))
print(d["otherData"]["ops"], d["otherData"]["graph_launches"], d["otherData"]["not_issued"])
)py";

void ExpectViewer(const std::string &path, const Raw &raw) {
    std::string out = path + ".json";
    unlink(out.c_str());
    Says({"export", "--perfetto", out, path});
    Result r = RunProgram({"/usr/bin/env", "-u", "LD_PRELOAD", "python3", "-c", kViewer, out});
    ASSERT_EQ(r.Exit(), 0) << r.err;
    Sums s = SumsOf(raw);
    std::ostringstream want;
    want.precision(15);
    want << raw.ops.size() << "\n";
    for (const char *outcome : {"graph", "eager", "flushed", "open"})
        want << raw.Count(outcome) << "\n";
    want << raw.launches.size() << " " << s.in_launches << " " << s.patched << "\n"
         << s.build << "\n"
         << s.kernels << " " << s.memsets << " " << s.copies << " " << s.records << "\n"
         << s.copied << " " << s.set << "\n"
         << raw.ops.size() << " " << raw.launches.size() << " " << raw.Count("open") << "\n";
    EXPECT_EQ(r.out, want.str());
}

void ExpectAll(const std::string &path) {
    Trace trace = OpenGood(path);
    ASSERT_TRUE(trace);
    ASSERT_EQ(trace->lost_records, 0u);
    Raw raw(trace.get());
    ExpectReports(path, raw);
    ExpectInfo(path, raw);
    ExpectPage(path, raw);
    ExpectLines(path, raw);
    ExpectDatabase(path, raw);
    ExpectViewer(path, raw);
}
