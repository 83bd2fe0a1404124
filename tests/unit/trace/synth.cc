#include "tests/unit/trace/synth.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include <fstream>

Synth::Synth(const std::string &path, bool packed) : buffer_(CST_SINK), packed_(packed) {
    cst_out_open(&out, path.c_str());
    sink = {&out, buffer_.data(), 0, 0};
}

Synth::~Synth() {
    if (open_)
        cst_out_abandon(&out);
}

void Synth::Block() {
    if (!packed_ || !sink.used) {
        cst_sink_flush(&sink);
        return;
    }
    std::string frame(ZSTD_compressBound(sink.used), 0);
    frame.resize(ZSTD_compress(frame.data(), frame.size(), sink.buffer, sink.used, 3));
    cst_out_block(&out, CST_BLOCK_RECORDS, CST_BLOCK_ZSTD, frame.data(), frame.size(), sink.used);
    sink.used = 0;
}

template <typename T> T *Synth::Add(cst_type type, size_t more) {
    size_t bytes = (sizeof(T) + more + 7) & ~size_t{7};
    if (sink.used + bytes > CST_SINK)
        Block();
    T *record = static_cast<T *>(cst_sink_add(&sink, type, bytes));
    record->head.thread = thread;
    record->head.ns = now;
    now += 1000;
    return record;
}

uint32_t Synth::String(const std::string &text) {
    if (text.empty())
        return 0;
    auto [at, fresh] = strings_.emplace(text, static_cast<uint32_t>(strings_.size() + 1));
    if (fresh) {
        if (sink.used + sizeof(cst_string) + text.size() + 8 > CST_SINK)
            Block();
        cst_sink_string(&sink, at->second, text.c_str());
    }
    return at->second;
}

uint32_t Synth::Thread(uint32_t tid, const std::string &name) {
    uint32_t text = String(name);
    cst_thread *record = Add<cst_thread>(CST_THREAD);
    record->head.thread = ++threads_;
    record->tid = tid;
    record->name = text;
    return threads_;
}

uint32_t Synth::Stream(uint32_t kind, uint64_t handle, int32_t priority) {
    cst_stream *record = Add<cst_stream>(CST_STREAM);
    record->id = ++streams_;
    record->context = context;
    record->device = device;
    record->flags = stream_flags;
    record->handle = handle;
    record->kind = kind;
    record->priority = priority;
    return streams_;
}

uint32_t Synth::Kind(uint32_t op, const std::string &name, uint32_t param_bytes, uint32_t flags,
                     uint32_t elem, uint32_t form) {
    uint32_t text = String(name);
    uint32_t arguments = op == CST_OP_LAUNCH ? param_bytes / 8 : 0;
    cst_kind *record = Add<cst_kind>(CST_KIND, arguments * sizeof(cst_argument));
    record->id = static_cast<uint32_t>(param_bytes_.size());
    record->op = op;
    record->flags = flags;
    record->name = text;
    record->elem = elem;
    record->form = form;
    record->param_bytes = param_bytes;
    for (uint32_t &size : record->cluster)
        size = 1;
    record->n_arguments = arguments;
    record->handle = 0x1000 + record->id;
    auto *argument = reinterpret_cast<cst_argument *>(record + 1);
    for (uint32_t i = 0; i < arguments; i++)
        argument[i] = {8 * i, 8};
    param_bytes_.push_back(param_bytes);
    op_of_.push_back(op);
    return record->id;
}

uint32_t Synth::Kernel(const std::string &mangled, uint32_t param_bytes, uint32_t flags) {
    return Kind(CST_OP_LAUNCH, mangled, param_bytes, flags, 0, 0);
}
uint32_t Synth::Memset(uint32_t elem, const std::string &call, uint32_t flags) {
    std::string usual = "cuMemsetD" + std::to_string(8 * elem) + "Async";
    return Kind(CST_OP_MEMSET, call.empty() ? usual : call, 24, flags, elem, 0);
}
uint32_t Synth::Copy(uint32_t form, const std::string &call) {
    std::string usual = form == 1 ? "cuMemcpyDtoDAsync" : "cuMemcpyAsync";
    return Kind(CST_OP_COPY, call.empty() ? usual : call, 16, 0, 0, form);
}

uint32_t Synth::Record() {
    return Kind(CST_OP_RECORD, "cuEventRecord", 16, 0, 0, 0);
}

uint32_t Synth::Wait() {
    return Kind(CST_OP_WAIT, "cuStreamWaitEvent", 16, 0, 0, 0);
}

cst_op *Synth::Op(uint32_t stream, uint32_t kind) {
    uint32_t bytes = param_bytes_[kind];
    cst_op *op = Add<cst_op>(CST_OP, bytes);
    op->head.flags = CST_DEFERRED;
    op->kind = kind;
    op->stream = stream;
    op->host_ns = host_ns;
    op->dims[0] = grid;
    if (op_of_[kind] == CST_OP_LAUNCH) {
        op->dims[1] = op->dims[2] = op->dims[4] = op->dims[5] = 1;
        op->dims[3] = block;
    }
    memcpy(op + 1, &param, bytes < sizeof param ? bytes : sizeof param);
    if (op_of_[kind] == CST_OP_RECORD || op_of_[kind] == CST_OP_WAIT) {
        const uint64_t params[2] = {param, op_of_[kind] == CST_OP_RECORD};
        memcpy(op + 1, params, sizeof params);
        op->dims[0] = 0;
    }
    return op;
}

cst_op *Synth::Eager(uint32_t stream, uint32_t kind, const std::string &eager,
                     const std::string &why) {
    uint32_t by = String(eager), reason = String(why);
    cst_op *op = Op(stream, kind);
    op->head.flags = CST_EAGER;
    op->eager = by;
    op->why = reason;
    return op;
}

cst_call *Synth::Call(uint32_t stream, cst_what what, const std::string &api, uint8_t scope) {
    uint32_t name = String(api);
    cst_call *call = Add<cst_call>(CST_CALL);
    call->name = name;
    call->stream = stream;
    call->what = static_cast<uint8_t>(what);
    call->scope = scope;
    call->host_ns = host_ns;
    return call;
}
cst_call *Synth::Sync(uint32_t stream) {
    return Call(stream, CST_CALL_STEP_END, "cuStreamSynchronize");
}

cst_flush *Synth::Flush(uint32_t stream, uint32_t n, const std::string &cause,
                        const std::string &reason) {
    uint32_t by = String(cause), why = String(reason);
    cst_flush *flush = Add<cst_flush>(CST_FLUSH);
    flush->stream = stream;
    flush->n = n;
    flush->cause = by;
    flush->reason = why;
    return flush;
}

cst_launch *Synth::Launch(uint32_t stream, uint32_t n, uint32_t segment, cst_choice choice,
                          uint32_t patched) {
    cst_launch *launch = Add<cst_launch>(CST_LAUNCH);
    launch->head.flags = static_cast<uint8_t>(choice);
    launch->stream = stream;
    launch->n = n;
    launch->segment = segment;
    launch->patched = patched;
    launch->host_ns = 2000;
    if (choice == CST_BUILT) {
        launch->build_ns = 50000;
        launch->bytes = 2048 * n;
    }
    return launch;
}

cst_branch *Synth::Branch(uint32_t stream, uint32_t n) {
    cst_branch *branch = Add<cst_branch>(CST_BRANCH);
    branch->stream = stream;
    branch->n = n;
    now = branch->head.ns;
    return branch;
}

cst_segment *Synth::Segment(uint32_t stream, uint32_t id, uint32_t n) {
    cst_segment *segment = Add<cst_segment>(CST_SEGMENT);
    segment->id = id;
    segment->stream = stream;
    segment->n = n;
    return segment;
}

cst_lost *Synth::Lost(uint64_t records, uint64_t ops) {
    cst_lost *lost = Add<cst_lost>(CST_LOST);
    lost->records = records;
    lost->ops = ops;
    return lost;
}

cst_range *Synth::Range(uint64_t start, uint64_t size) {
    cst_range *range = Add<cst_range>(CST_RANGE);
    range->context = 1;
    range->asked = range->start = start;
    range->size = size;
    range->type = 2;
    range->own = 1;
    return range;
}

cst_gpu *Synth::Gpu(uint32_t gpu_stream, cst_gpu_what what, const std::string &name,
                    uint64_t gpu_ns) {
    uint32_t text = String(name);
    cst_gpu *gpu = Add<cst_gpu>(CST_GPU);
    gpu->head.flags = static_cast<uint8_t>(what);
    gpu->gpu_ns = gpu_ns;
    gpu->gpu_stream = gpu_stream;
    gpu->name = text;
    if (what == CST_GPU_KERNEL) {
        gpu->grid[0] = grid;
        gpu->grid[1] = gpu->grid[2] = 1;
    }
    return gpu;
}

cst_gpu_stream *Synth::GpuStream(uint32_t stream, uint32_t gpu_stream) {
    cst_gpu_stream *of = Add<cst_gpu_stream>(CST_GPU_STREAM);
    of->stream = stream;
    of->gpu_stream = gpu_stream;
    return of;
}

cst_gpu_context *Synth::GpuContext(uint32_t stream, uint32_t context) {
    cst_gpu_context *of = Add<cst_gpu_context>(CST_GPU_CONTEXT);
    of->stream = stream;
    of->context = context;
    return of;
}

void Synth::Facts(const std::string &json) {
    Block();
    cst_out_block(&out, CST_BLOCK_FACTS, 0, json.data(), json.size(), json.size());
}

int Synth::Close() {
    Block();
    open_ = false;
    return cst_out_close(&out);
}

void Synth::Tear() {
    Block();
    open_ = false;
    close(out.fd);
    rename(out.partial, out.path);
}

void WriteAll(const std::string &path, const std::string &bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

std::string Fresh(const std::string &name) {
    const char *folder = getenv("TEST_TMPDIR");
    std::string path = std::string(folder ? folder : "/tmp") + "/" + name;
    unlink(path.c_str());
    unlink((path + ".partial").c_str());
    return path;
}
