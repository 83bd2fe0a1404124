#include "tests/export/make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Maker::Maker(const std::string &path) : buffer_(CST_SINK), param_bytes_(1) {
    remove(path.c_str());
    if (cst_out_open(&out_, path.c_str()) != 0) {
        fprintf(stderr, "%s: %s\n", path.c_str(), strerror(out_.error));
        abort();
    }
    sink_ = {&out_, buffer_.data(), 0};
}

void Maker::Close(bool end_block) {
    cst_sink_flush(&sink_);
    if (end_block && cst_out_close(&out_) == 0)
        return;
    if (end_block || rename(out_.partial, out_.path) != 0)
        abort();
}

template <class T> T *Maker::Add(cst_type type, uint64_t ns, uint32_t thread, size_t more) {
    T *record = static_cast<T *>(cst_sink_add(&sink_, type, sizeof(T) + more));
    record->head.ns = ns;
    record->head.thread = thread;
    return record;
}

uint32_t Maker::String(const std::string &text) {
    if (text.empty())
        return 0;
    auto [at, made] = strings_.try_emplace(text, strings_.size() + 1);
    if (made)
        cst_sink_string(&sink_, at->second, text.c_str());
    return at->second;
}

uint32_t Maker::Thread(uint32_t tid, const std::string &name) {
    uint32_t string = String(name);
    cst_thread *thread = Add<cst_thread>(CST_THREAD, 0, ++threads_);
    thread->tid = tid;
    thread->name = string;
    return threads_;
}

uint32_t Maker::Stream(uint32_t kind, uint32_t context, uint32_t device, int32_t priority) {
    cst_stream *stream = Add<cst_stream>(CST_STREAM, 0, 0);
    stream->id = ++streams_;
    stream->context = context;
    stream->kind = kind;
    stream->flags = kind == CST_STREAM_CREATED;
    stream->device = device;
    stream->priority = priority;
    return streams_;
}

uint32_t Maker::Kind(uint32_t op, const std::string &name, uint32_t flags, uint32_t param_bytes,
                     uint32_t elem, uint32_t form) {
    uint32_t string = String(name);
    cst_kind *kind = Add<cst_kind>(CST_KIND, 0, 0);
    kind->id = static_cast<uint32_t>(param_bytes_.size());
    kind->op = op;
    kind->flags = flags;
    kind->name = string;
    kind->elem = elem;
    kind->form = form;
    kind->param_bytes = param_bytes;
    for (uint32_t &cluster : kind->cluster)
        cluster = 1;
    param_bytes_.push_back(param_bytes);
    return kind->id;
}

uint32_t Maker::Kernel(const std::string &mangled, uint32_t flags, uint32_t param_bytes) {
    return Kind(CST_OP_LAUNCH, mangled, flags, param_bytes, 0, 0);
}

uint32_t Maker::Memset(const std::string &call, uint32_t elem) {
    return Kind(CST_OP_MEMSET, call, 0, 24, elem, 0);
}

uint32_t Maker::Copy(const std::string &call, uint32_t form) {
    return Kind(CST_OP_COPY, call, 0, 16, 0, form);
}

void Maker::Facts(const std::string &json) {
    cst_sink_flush(&sink_);
    cst_out_block(&out_, CST_BLOCK_FACTS, 0, json.data(), json.size(), json.size());
}

void Maker::Op(uint64_t ns, uint32_t thread, uint32_t stream, uint32_t kind, const Dims &dims,
               cst_outcome outcome, uint32_t host_ns, uint32_t param) {
    uint32_t eager = outcome == CST_EAGER ? String("rule") : 0;
    uint32_t why = outcome == CST_EAGER ? String("never_defer") : 0;
    cst_op *op = Add<cst_op>(CST_OP, ns, thread, param_bytes_[kind]);
    op->head.flags = outcome;
    op->kind = kind;
    op->stream = stream;
    op->host_ns = host_ns;
    op->eager = eager;
    op->why = why;
    memcpy(op->dims, dims.data(), sizeof op->dims);
    if (param_bytes_[kind] == 24)
        memcpy(reinterpret_cast<uint8_t *>(op + 1) + 16, &param, sizeof param);
}

void Maker::Call(uint64_t ns, uint32_t thread, const std::string &name, cst_what what,
                 uint32_t stream, cst_scope scope, uint32_t host_ns) {
    uint32_t string = String(name);
    cst_call *call = Add<cst_call>(CST_CALL, ns, thread);
    call->name = string;
    call->stream = stream;
    call->what = static_cast<uint8_t>(what);
    call->scope = static_cast<uint8_t>(scope);
    call->host_ns = host_ns;
}

void Maker::Launch(uint64_t ns, uint32_t thread, uint32_t stream, uint32_t n, uint32_t segment,
                   uint32_t host_ns, cst_choice choice) {
    cst_launch *launch = Add<cst_launch>(CST_LAUNCH, ns, thread);
    launch->head.flags = choice;
    launch->stream = stream;
    launch->n = n;
    launch->segment = segment;
    launch->host_ns = host_ns;
    launch->patched = choice == CST_PATCHED ? 2 : 0;
    launch->build_ns = choice == CST_BUILT ? 5000 : 0;
}

void Maker::Flush(uint64_t ns, uint32_t thread, uint32_t stream, uint32_t n,
                  const std::string &cause, const std::string &reason) {
    uint32_t strings[] = {String(cause), String(reason)};
    cst_flush *flush = Add<cst_flush>(CST_FLUSH, ns, thread);
    flush->stream = stream;
    flush->n = n;
    flush->cause = strings[0];
    flush->reason = strings[1];
}

void Maker::Segment(uint64_t ns, uint32_t thread, uint32_t stream, uint32_t n, uint32_t id) {
    cst_segment *segment = Add<cst_segment>(CST_SEGMENT, ns, thread);
    segment->id = id;
    segment->stream = stream;
    segment->n = n;
}

void Maker::Lost(uint64_t ns, uint32_t thread, uint64_t records, uint64_t ops) {
    cst_lost *lost = Add<cst_lost>(CST_LOST, ns, thread);
    lost->records = records;
    lost->ops = ops;
}

void Maker::Gpu(uint64_t ns, uint64_t gpu_ns, uint32_t gpu_stream, cst_gpu_what what,
                const std::string &name, uint32_t grid) {
    uint32_t string = String(name);
    cst_gpu *gpu = Add<cst_gpu>(CST_GPU, ns, 1);
    gpu->head.flags = static_cast<uint8_t>(what);
    gpu->gpu_ns = gpu_ns;
    gpu->gpu_stream = gpu_stream;
    gpu->name = string;
    if (what != CST_GPU_KERNEL)
        return;
    gpu->grid[0] = grid;
    gpu->grid[1] = gpu->grid[2] = 1;
}

void Maker::GpuStream(uint32_t stream, uint32_t gpu_stream) {
    cst_gpu_stream *of = Add<cst_gpu_stream>(CST_GPU_STREAM, 0, 0);
    of->stream = stream;
    of->gpu_stream = gpu_stream;
}
