// A recorded program written by hand: what a recording holds of it, without outcomes.
#ifndef TESTS_UNIT_WHATIF_PROGRAM_H
#define TESTS_UNIT_WHATIF_PROGRAM_H

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "shim/trace/file.h"
#include "tools/trace/reader.h"

namespace whatif {

class Program {
  public:
    Program() {
        const char *folder = getenv("TEST_TMPDIR");
        static int number;
        path_ = std::string(folder ? folder : "/tmp") + "/" + std::to_string(getpid()) + "-" +
                std::to_string(number++) + ".cst";
        EXPECT_EQ(cst_out_open(&out_, path_.c_str()), 0);
        buffer_.resize(CST_SINK);
        sink_ = {&out_, buffer_.data(), 0, 0};
    }
    ~Program() {
        cst_free(trace_);
        unlink(path_.c_str());
    }

    void Facts(const std::string &json) {
        cst_out_block(&out_, CST_BLOCK_FACTS, 0, json.data(), json.size(), json.size());
    }

    uint32_t String(const std::string &text) {
        if (text.empty())
            return 0;
        auto found = strings_.find(text);
        if (found != strings_.end())
            return found->second;
        uint32_t id = strings_.size() + 1;
        cst_sink_string(&sink_, id, text.c_str());
        return strings_[text] = id;
    }

    uint32_t Stream(cst_stream_kind kind = CST_STREAM_CREATED, uint32_t flags = 1,
                    uint32_t context = 1) {
        auto *stream = (cst_stream *)cst_sink_add(&sink_, CST_STREAM, sizeof(cst_stream));
        stream->id = ++n_streams_;
        stream->context = context;
        bool named = kind == CST_STREAM_CREATED || kind == CST_STREAM_UNKNOWN;
        stream->handle = named ? 0x5000 + 64 * n_streams_ : 0;
        stream->kind = kind;
        stream->flags = flags;
        return n_streams_;
    }

    // A kernel with a pointer and a number.
    uint32_t Kernel(const std::string &name, uint32_t flags = 0) {
        uint32_t text = String(name);
        bool opaque = flags & CST_KIND_OPAQUE;
        auto *kind = (cst_kind *)cst_sink_add(
            &sink_, CST_KIND, sizeof(cst_kind) + (opaque ? 0 : 2) * sizeof(cst_argument));
        kind->id = ++n_kinds_;
        kind->op = CST_OP_LAUNCH;
        kind->flags = flags;
        kind->name = text;
        kind->handle = 0x900000 + 16 * n_kinds_;
        kind->cluster[0] = kind->cluster[1] = kind->cluster[2] = 1;
        if (!opaque) {
            kind->param_bytes = 12;
            kind->n_arguments = 2;
            auto *arguments = (cst_argument *)(kind + 1);
            arguments[0] = {0, 8};
            arguments[1] = {8, 4};
        }
        return n_kinds_;
    }

    uint32_t Memset(const std::string &call, uint32_t elem) {
        uint32_t text = String(call);
        auto *kind = (cst_kind *)cst_sink_add(&sink_, CST_KIND, sizeof(cst_kind));
        kind->id = ++n_kinds_;
        kind->op = CST_OP_MEMSET;
        kind->name = text;
        kind->elem = elem;
        kind->param_bytes = 24;
        return n_kinds_;
    }

    uint32_t Copy(const std::string &call, uint32_t form) {
        uint32_t text = String(call);
        auto *kind = (cst_kind *)cst_sink_add(&sink_, CST_KIND, sizeof(cst_kind));
        kind->id = ++n_kinds_;
        kind->op = CST_OP_COPY;
        kind->name = text;
        kind->form = form;
        kind->param_bytes = 16;
        return n_kinds_;
    }

    uint32_t RecordOf(uint32_t flags = 0) {
        uint32_t text = String("cuEventRecord");
        auto *kind = (cst_kind *)cst_sink_add(&sink_, CST_KIND, sizeof(cst_kind));
        kind->id = ++n_kinds_;
        kind->op = CST_OP_RECORD;
        kind->flags = flags;
        kind->name = text;
        kind->param_bytes = flags & CST_KIND_OPAQUE ? 0 : 16;
        return n_kinds_;
    }

    void Range(uint64_t start, uint64_t size, uint32_t type, uint32_t own = 1, int32_t result = 0,
               uint64_t asked = 0) {
        auto *range = (cst_range *)cst_sink_add(&sink_, CST_RANGE, sizeof(cst_range));
        range->head.thread = thread_;
        range->head.ns = now_;
        range->context = 1;
        range->result = result;
        range->asked = asked ? asked : start;
        range->start = start;
        range->size = size;
        range->type = type;
        range->own = own;
    }

    // From now on another thread is at work.
    void Thread(uint32_t thread) {
        thread_ = thread;
        if (threads_.insert({thread, true}).second) {
            auto *record = (cst_thread *)cst_sink_add(&sink_, CST_THREAD, sizeof(cst_thread));
            record->head.thread = thread;
            record->tid = 100 + thread;
        }
    }
    void Wait(uint64_t ns) { now_ += ns; }

    cst_op *Op(uint32_t kind, uint32_t stream, size_t param_bytes) {
        if (!thread_)
            Thread(1);
        auto *op = (cst_op *)cst_sink_add(&sink_, CST_OP, sizeof(cst_op) + param_bytes);
        op->head.thread = thread_;
        op->head.ns = now_;
        op->head.flags = CST_EAGER;
        op->kind = kind;
        op->stream = stream;
        now_ += 1000;
        return op;
    }

    cst_op *Launch(uint32_t kind, uint32_t stream, uint64_t a = 0, uint32_t b = 0,
                   uint32_t grid = 1, uint32_t block = 32) {
        cst_op *op = Op(kind, stream, 16);
        const uint32_t dims[7] = {grid, 1, 1, block, 1, 1, 0};
        memcpy(op->dims, dims, sizeof dims);
        memcpy(op + 1, &a, 8);
        memcpy((char *)(op + 1) + 8, &b, 4);
        return op;
    }

    void Fill(uint32_t kind, uint32_t stream, uint64_t address, uint32_t n) {
        cst_op *op = Op(kind, stream, 24);
        const uint64_t params[3] = {address, 0, (uint64_t)1 << 32};
        op->dims[0] = n;
        memcpy(op + 1, params, sizeof params);
    }

    void Move(uint32_t kind, uint32_t stream, uint64_t to, uint64_t from, uint32_t bytes) {
        cst_op *op = Op(kind, stream, 16);
        const uint64_t params[2] = {to, from};
        op->dims[0] = bytes;
        memcpy(op + 1, params, sizeof params);
    }

    cst_op *Record(uint32_t kind, uint32_t stream, uint64_t event, uint64_t number = 1) {
        cst_op *op = Op(kind, stream, 16);
        const uint64_t params[2] = {event, number};
        memcpy(op + 1, params, sizeof params);
        return op;
    }

    cst_call *Call(cst_what what, uint32_t stream = CST_NONE, uint64_t value = 0,
                   const std::string &api = "", cst_scope scope = CST_SCOPE_NONE) {
        if (!thread_)
            Thread(1);
        uint32_t name = String(api);
        auto *call = (cst_call *)cst_sink_add(&sink_, CST_CALL, sizeof(cst_call));
        call->head.thread = thread_;
        call->head.ns = now_;
        call->name = name;
        call->stream = stream;
        call->what = what;
        call->scope = scope;
        call->value = value;
        now_ += 1000;
        return call;
    }

    void Sync(uint32_t stream) {
        Call(CST_CALL_FLUSH, stream, 0, "cuStreamSynchronize", CST_SCOPE_T);
        Call(CST_CALL_STEP_END, stream, 0, "cuStreamSynchronize");
    }

    void *Add(cst_type type, size_t bytes) {
        auto *head = (cst_record *)cst_sink_add(&sink_, type, bytes);
        head->thread = thread_;
        head->ns = now_;
        return head;
    }

    const std::string &Path() const { return path_; }
    void Close() {
        if (closed_)
            return;
        cst_sink_flush(&sink_);
        EXPECT_EQ(cst_out_close(&out_), 0);
        closed_ = true;
    }
    const cst_trace *Trace() {
        char error[512] = "";
        Close();
        if (!trace_)
            trace_ = cst_open(path_.c_str(), error, sizeof error);
        EXPECT_TRUE(trace_) << error;
        return trace_;
    }

  private:
    std::string path_;
    cst_out out_;
    std::vector<uint8_t> buffer_;
    cst_sink sink_;
    bool closed_ = false;
    cst_trace *trace_ = nullptr;
    uint32_t n_streams_ = 0, n_kinds_ = 0, thread_ = 0;
    std::map<uint32_t, bool> threads_;
    std::map<std::string, uint32_t> strings_;
    uint64_t now_ = 1000000000;
};

} // namespace whatif

#endif
