// What a trace says, worked out anew from its records in the plainest way: queues of deferred ops,
// and sums over them. Tests hold the numbers of reports, pages and exports against it. Nothing of
// tools/trace but the reader of records is used.
#ifndef CUSPLICE_TESTS_LAUNCHER_RAW_H
#define CUSPLICE_TESTS_LAUNCHER_RAW_H

#include <map>
#include <string>
#include <vector>

#include "tests/unit/trace/opened.h"

// One row of a report: numbers and texts by the column's key.
struct RawRow {
    std::map<std::string, double> number; // NAN: not known
    std::map<std::string, std::string> text;
};
using RawRows = std::vector<RawRow>;

class Raw {
  public:
    explicit Raw(const cst_trace *trace);

    struct Op {
        const cst_op *op;
        const cst_launch *launch = nullptr; // that it went out with
        const cst_flush *flush = nullptr;
        size_t step = 0, place = 0;
        size_t in_stream = 0; // how many came before it there
        std::string Outcome() const;
    };
    struct Step {
        uint32_t stream, number;
        std::vector<size_t> ops;
        uint64_t begin, end;
        const cst_call *ended = nullptr;
        size_t graphs = 0; // whose first op is in it
    };
    struct Launch {
        const cst_launch *record;
        std::vector<size_t> ops; // by place
    };
    std::vector<Op> ops;
    std::vector<Step> steps;
    std::vector<Launch> launches;
    std::map<uint32_t, std::vector<size_t>> streams; // ops by stream
    size_t flushes = 0, calls = 0, segments = 0;
    std::vector<double> gpu_ns; // by op: how long it ran; NAN unless a test says it
    const cst_trace *trace;

    size_t Count(const std::string &outcome) const;
    std::string Name(size_t op) const;
    const cst_kind *Kind(size_t op) const { return trace->kinds[ops[op].op->kind]; }
    bool EndsRun(size_t op) const;

    // The reports; patched of kernels: -1 where the records do not tell it of each.
    RawRows Kernels() const, Segments() const, Cache() const, Breaks() const, Coverage() const;
    double Patched() const; // nodes, by all launches of graphs that were there
    // What came behind launches, by the `list` of the row of Segments.
    std::map<std::string, std::map<std::string, size_t>> Ended() const;

  private:
    void TakeOp(const cst_op *op);
    void TakeOut(const cst_record *out, uint32_t stream, uint32_t n);
    void TakeCall(const cst_call *call);
    std::string KindKey(size_t op) const;
    std::string List(const std::vector<size_t> &of) const;
    std::string Signature(const Step &step) const;
    std::map<const cst_launch *, std::vector<bool>> Differing() const;

    std::map<uint32_t, std::vector<size_t>> deferred_;
    std::map<uint32_t, size_t> running_; // step by stream
    std::map<uint32_t, std::vector<const cst_branch *>> branches_;
};

#endif
