#include "tests/launcher/raw.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace {

const char *const kOps[] = {"launch", "memset", "copy", "record", "wait"};

double Share(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

} // namespace

// ---- which op went where ----

Raw::Raw(const cst_trace *of) : trace(of) {
    for (size_t i = 0; i < trace->n_events; i++) {
        const cst_record *record = trace->events[i];
        if (record->type == CST_OP)
            TakeOp(reinterpret_cast<const cst_op *>(record));
        else if (record->type == CST_BRANCH)
            branches_[record->thread].push_back(reinterpret_cast<const cst_branch *>(record));
        else if (record->type == CST_CALL)
            TakeCall(reinterpret_cast<const cst_call *>(record));
        else if (record->type == CST_SEGMENT)
            segments++;
        if (record->type == CST_LAUNCH) {
            auto *launch = reinterpret_cast<const cst_launch *>(record);
            launches.push_back({launch, {}});
            TakeOut(record, launch->stream, launch->n);
        } else if (record->type == CST_FLUSH) {
            auto *flush = reinterpret_cast<const cst_flush *>(record);
            flushes++;
            TakeOut(record, flush->stream, flush->n);
        }
    }
}

void Raw::TakeOp(const cst_op *op) {
    if (!running_.count(op->stream)) {
        uint32_t number = 0;
        for (const Step &step : steps)
            number += step.stream == op->stream;
        running_[op->stream] = steps.size();
        steps.push_back({op->stream, number, {}, op->head.ns, 0});
    }
    Step &step = steps[running_[op->stream]];
    step.end = op->head.ns + op->host_ns;
    step.ops.push_back(ops.size());
    if (op->head.flags == CST_DEFERRED)
        deferred_[op->stream].push_back(ops.size());
    Op made = {op};
    made.step = running_[op->stream];
    made.in_stream = streams[op->stream].size();
    streams[op->stream].push_back(ops.size());
    ops.push_back(made);
    gpu_ns.push_back(NAN);
}

void Raw::TakeOut(const cst_record *out, uint32_t stream, uint32_t n) {
    std::vector<std::pair<uint32_t, uint32_t>> parts = {{stream, n}};
    for (const cst_branch *branch : branches_[out->thread]) {
        parts[0].second -= branch->n;
        parts.push_back({branch->stream, branch->n});
    }
    branches_[out->thread].clear();
    size_t place = 0;
    for (auto [from, count] : parts)
        for (; count; count--, place++) {
            Op &op = ops[deferred_[from].front()];
            op.place = place;
            if (out->type == CST_LAUNCH) {
                op.launch = reinterpret_cast<const cst_launch *>(out);
                launches.back().ops.push_back(deferred_[from].front());
                steps[op.step].graphs += place == 0;
            } else {
                op.flush = reinterpret_cast<const cst_flush *>(out);
            }
            deferred_[from].erase(deferred_[from].begin());
        }
}

void Raw::TakeCall(const cst_call *call) {
    calls++;
    bool ends = call->what == CST_CALL_STEP_END || call->what == CST_CALL_STREAM_GONE;
    if (!ends || !running_.count(call->stream))
        return;
    Step &step = steps[running_[call->stream]];
    step.end = call->head.ns + call->host_ns;
    step.ended = call;
    running_.erase(call->stream);
}

std::string Raw::Op::Outcome() const {
    return launch ? "graph" : flush ? "flushed" : op->head.flags == CST_DEFERRED ? "open" : "eager";
}

size_t Raw::Count(const std::string &outcome) const {
    return static_cast<size_t>(std::count_if(
        ops.begin(), ops.end(), [&](const Op &op) { return op.Outcome() == outcome; }));
}

std::string Raw::Name(size_t op) const {
    return cst_string(trace, Kind(op)->name);
}

bool Raw::EndsRun(size_t op) const {
    if (!ops[op].in_stream || ops[op].launch)
        return false;
    const Op &before = ops[streams.at(ops[op].op->stream)[ops[op].in_stream - 1]];
    return before.launch && before.step == ops[op].step;
}

// ---- the reports ----

std::string Raw::KindKey(size_t op) const {
    const cst_kind *kind = Kind(op);
    std::string key = Name(op);
    for (uint32_t number : {kind->op, kind->elem, kind->form, kind->flags & CST_KIND_COOPERATIVE,
                            kind->cluster[0], kind->cluster[1], kind->cluster[2]})
        key += " " + std::to_string(number);
    return key;
}

// As reports shorten it: "a, b x3, ... 7 more".
std::string Raw::List(const std::vector<size_t> &of) const {
    std::string text;
    size_t listed = 0;
    for (size_t i = 0, same; i < of.size(); i += same) {
        for (same = 1; i + same < of.size() && Name(of[i + same]) == Name(of[i]);)
            same++;
        text += i ? ", " : "";
        if (listed++ == 8)
            return text + "... " + std::to_string(of.size() - i) + " more";
        text += Name(of[i]) + (same > 1 ? " x" + std::to_string(same) : "");
    }
    return text;
}

// Of each launch, by place: does the op differ from the one that the node held?
std::map<const cst_launch *, std::vector<bool>> Raw::Differing() const {
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::vector<size_t>> held;
    std::map<const cst_launch *, std::vector<bool>> differing;
    for (const Launch &launch : launches) {
        auto &before =
            held[{launch.record->stream, launch.record->segment, launch.record->variant}];
        auto &differ = differing[launch.record];
        for (size_t i = 0; i < launch.ops.size(); i++) {
            const cst_op *now = ops[launch.ops[i]].op;
            const cst_op *then = i < before.size() ? ops[before[i]].op : now;
            uint32_t bytes =
                Kind(launch.ops[i])->flags & CST_KIND_OPAQUE ? 0 : Kind(launch.ops[i])->param_bytes;
            differ.push_back(now->kind != then->kind ||
                             memcmp(now->dims, then->dims, sizeof now->dims) != 0 ||
                             memcmp(cst_op_params(now), cst_op_params(then), bytes) != 0);
        }
        before = launch.ops;
    }
    return differing;
}

double Raw::Patched() const {
    double patched = 0;
    for (const Launch &launch : launches)
        patched += launch.record->head.flags == CST_BUILT ? 0 : launch.record->patched;
    return patched;
}

RawRows Raw::Kernels() const {
    struct Gathered {
        std::map<std::string, double> counts;
        std::vector<uint32_t> host;
        double gpu = 0, ran = 0;
    };
    std::map<std::pair<std::string, std::string>, Gathered> kernels;
    for (size_t i = 0; i < ops.size(); i++) {
        Gathered &of = kernels[{kOps[Kind(i)->op], Name(i)}];
        std::string outcome = ops[i].Outcome();
        of.counts["calls"]++;
        of.counts[outcome == "graph" ? "in_graphs" : outcome]++;
        of.counts["breaks"] += outcome == "eager" && EndsRun(i);
        of.host.push_back(ops[i].op->host_ns);
        of.gpu += std::isnan(gpu_ns[i]) ? 0 : gpu_ns[i];
        of.ran += !std::isnan(gpu_ns[i]);
    }
    bool told = true;
    for (const auto &[launch, differ] : Differing()) {
        auto n = std::count(differ.begin(), differ.end(), true);
        told &= launch->head.flags == CST_BUILT || n == static_cast<long>(launch->patched);
    }
    if (told) {
        auto differing = Differing();
        for (const Launch &launch : launches)
            for (size_t i = 0; i < launch.ops.size() && launch.record->head.flags != CST_BUILT; i++)
                kernels[{kOps[Kind(launch.ops[i])->op], Name(launch.ops[i])}].counts["patched"] +=
                    differing[launch.record][i];
    }
    RawRows rows;
    for (auto &[key, of] : kernels) {
        RawRow row;
        std::sort(of.host.begin(), of.host.end());
        double sum = 0, n = static_cast<double>(of.host.size());
        for (uint32_t ns : of.host)
            sum += ns;
        for (const char *column : {"calls", "in_graphs", "eager", "flushed", "open", "breaks"})
            row.number[column] = of.counts[column];
        row.number["patched"] = told ? of.counts["patched"] : -1;
        row.number["share"] = Share(of.counts["in_graphs"], n);
        row.number["host_ns"] = sum;
        row.number["host_avg_ns"] = floor(sum / n);
        row.number["host_p99_ns"] = of.host[static_cast<size_t>(ceil(0.99 * n - 1e-9)) - 1];
        row.number["gpu_ns"] = of.ran > 0 ? of.gpu : NAN;
        row.number["gpu_avg_ns"] = of.ran > 0 ? floor(of.gpu / of.ran) : NAN;
        row.text = {{"op", key.first}, {"name", key.second}};
        rows.push_back(row);
    }
    return rows;
}

RawRows Raw::Segments() const {
    std::map<std::string, RawRow> rows;
    std::map<std::string, std::map<std::vector<uint32_t>, uint32_t>> graphs; // bytes by graph
    for (const Launch &launch : launches) {
        const cst_launch *r = launch.record;
        std::string key;
        for (size_t op : launch.ops)
            key += KindKey(op) + "\n";
        auto &number = rows[key].number;
        double n = static_cast<double>(launch.ops.size());
        number["launches"]++;
        number["nodes"] = n;
        number["ops"] += n;
        number["exact"] += r->head.flags == CST_EXACT;
        number["patched"] += r->head.flags == CST_PATCHED;
        number["built"] += r->head.flags == CST_BUILT;
        number["patched_nodes"] += r->patched;
        number["host_ns"] += r->host_ns;
        number["build_ns"] += r->build_ns;
        rows[key].text["list"] = List(launch.ops);
        graphs[key][{r->stream, r->segment, r->variant}] = r->bytes;
    }
    RawRows all;
    for (auto &[key, row] : rows) {
        std::map<std::pair<uint32_t, uint32_t>, int> segments_of;
        row.number["bytes"] = 0;
        for (const auto &[graph, bytes] : graphs[key]) {
            segments_of[{graph[0], graph[1]}]++;
            row.number["bytes"] += bytes;
        }
        row.number["segments"] = static_cast<double>(segments_of.size());
        row.number["variants"] = static_cast<double>(graphs[key].size());
        row.number["share"] = Share(row.number["ops"], static_cast<double>(ops.size()));
        all.push_back(row);
    }
    return all;
}

std::map<std::string, std::map<std::string, size_t>> Raw::Ended() const {
    std::map<std::string, std::map<std::string, size_t>> ended;
    for (const Launch &launch : launches) {
        size_t last = launch.ops[0];
        for (size_t op : launch.ops)
            if (ops[op].op->stream == launch.record->stream)
                last = op;
        const auto &stream = streams.at(ops[last].op->stream);
        const Step &step = steps[ops[last].step];
        std::string how, name;
        if (step.ops.back() == last) {
            how = step.ended ? "call" : "end of trace";
            name = step.ended ? cst_string(trace, step.ended->name) : "";
        } else {
            const Op &next = ops[stream[ops[last].in_stream + 1]];
            std::string outcome = next.Outcome();
            how = outcome == "graph"     ? "next segment"
                  : outcome == "flushed" ? "flush"
                  : outcome == "eager"   ? "eager"
                                         : "end of trace";
            name = next.flush       ? cst_string(trace, next.flush->cause)
                   : how == "eager" ? cst_string(trace, next.op->why)
                                    : "";
        }
        ended[List(launch.ops)][how + (name.empty() ? "" : ":" + name)]++;
    }
    return ended;
}

std::string Raw::Signature(const Step &step) const {
    std::string signature;
    for (size_t op : step.ops) {
        if (Kind(op)->op == CST_OP_RECORD || Kind(op)->op == CST_OP_WAIT)
            continue;
        signature += KindKey(op);
        for (uint32_t dim : ops[op].op->dims)
            signature += "," + std::to_string(dim);
        signature += "\n";
    }
    return signature;
}

RawRows Raw::Cache() const {
    std::map<std::string, std::vector<const Step *>> alike;
    for (const Step &step : steps)
        alike[Signature(step)].push_back(&step);
    RawRows rows;
    for (const auto &[signature, of] : alike) {
        double in_graphs = 0, graphs = 0, all = 0, time = 0;
        for (const Step *step : of) {
            for (size_t op : step->ops)
                in_graphs += ops[op].launch != nullptr;
            graphs += static_cast<double>(step->graphs);
            all += static_cast<double>(step->ops.size());
            time += static_cast<double>(step->end - step->begin);
        }
        double n = static_cast<double>(of.size());
        RawRow row;
        row.number = {{"steps", n},
                      {"ops", static_cast<double>(of[0]->ops.size())},
                      {"in_graphs", in_graphs},
                      {"graphs", graphs},
                      {"share", Share(in_graphs, all)},
                      {"first_step", of[0]->number},
                      {"first_seen_ns", static_cast<double>(of[0]->begin - trace->begin_ns)},
                      {"time_avg_ns", floor(time / n)}};
        row.text = {{"list", List(of[0]->ops)}};
        rows.push_back(row);
    }
    return rows;
}

RawRows Raw::Breaks() const {
    std::map<std::vector<std::string>, RawRow> rows;
    for (size_t i = 0; i < ops.size(); i++) {
        const Op &op = ops[i];
        std::string outcome = op.Outcome();
        if (outcome == "graph")
            continue;
        std::vector<std::string> key = {"open", "", ""};
        if (outcome == "eager")
            key = {"eager", cst_string(trace, op.op->eager), cst_string(trace, op.op->why)};
        else if (op.flush)
            key = {"flush", cst_string(trace, op.flush->reason),
                   cst_string(trace, op.flush->cause)};
        auto &number = rows[key].number;
        number["ops"]++;
        number["count"] += !op.flush;
        number["runs"] += EndsRun(i);
    }
    for (size_t i = 0; i < trace->n_events; i++)
        if (trace->events[i]->type == CST_FLUSH) {
            auto *flush = reinterpret_cast<const cst_flush *>(trace->events[i]);
            auto &number =
                rows[{"flush", cst_string(trace, flush->reason), cst_string(trace, flush->cause)}]
                    .number;
            number["count"]++;
        }
    RawRows all;
    for (auto &[key, row] : rows) {
        row.number["share"] = Share(row.number["ops"], static_cast<double>(ops.size()));
        row.number["runs"] += 0;
        row.text = {{"how", key[0]}, {"reason", key[1]}, {"by", key[2]}};
        all.push_back(row);
    }
    return all;
}

RawRows Raw::Coverage() const {
    RawRows rows;
    for (const Step &step : steps) {
        RawRow row;
        for (const char *column : {"in_graphs", "eager", "flushed", "open"})
            row.number[column] = 0;
        for (size_t op : step.ops) {
            std::string outcome = ops[op].Outcome();
            row.number[outcome == "graph" ? "in_graphs" : outcome]++;
        }
        row.number["stream"] = step.stream;
        row.number["step"] = step.number;
        row.number["ops"] = static_cast<double>(step.ops.size());
        row.number["graphs"] = static_cast<double>(step.graphs);
        row.number["share"] = Share(row.number["in_graphs"], row.number["ops"]);
        row.number["time_ns"] = static_cast<double>(step.end - step.begin);
        row.text["ended"] = step.ended ? cst_string(trace, step.ended->name) : "";
        rows.push_back(row);
    }
    return rows;
}
