#include "tests/export/make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const std::string &Gone(const std::string &path) {
    remove(path.c_str());
    return path;
}

Maker::Maker(const std::string &path) : synth_(Gone(path)) {
    if (synth_.out.error) {
        fprintf(stderr, "%s: %s\n", path.c_str(), strerror(synth_.out.error));
        abort();
    }
}

void Maker::Close(bool end_block) {
    if (!end_block)
        synth_.Tear();
    else if (synth_.Close() != 0)
        abort();
}

Synth &Maker::At(uint64_t ns, uint32_t thread) {
    synth_.now = ns;
    synth_.thread = thread;
    return synth_;
}

uint32_t Maker::Thread(uint32_t tid, const std::string &name) {
    return At(0, 0).Thread(tid, name);
}

uint32_t Maker::Stream(uint32_t kind, uint32_t context, uint32_t device, int32_t priority) {
    synth_.context = context;
    synth_.device = device;
    synth_.stream_flags = kind == CST_STREAM_CREATED;
    return At(0, 0).Stream(kind, 0, priority);
}

uint32_t Maker::Kernel(const std::string &mangled, uint32_t flags, uint32_t param_bytes) {
    return At(0, 0).Kernel(mangled, param_bytes, flags);
}

uint32_t Maker::Memset(const std::string &call, uint32_t elem) {
    return At(0, 0).Memset(elem, call);
}

uint32_t Maker::Copy(const std::string &call, uint32_t form) {
    return At(0, 0).Copy(form, call);
}

uint32_t Maker::Record() {
    return At(0, 0).Record();
}

uint32_t Maker::Wait() {
    return At(0, 0).Wait();
}

void Maker::Op(uint64_t ns, uint32_t thread, uint32_t stream, uint32_t kind, const Dims &dims,
               cst_outcome outcome, uint32_t host_ns, uint32_t param) {
    const uint64_t value[3] = {0, 0, param}; // the third one is a memset's
    Synth &synth = At(ns, thread);
    synth.param = param;
    cst_op *op = outcome == CST_EAGER ? synth.Eager(stream, kind, "rule", "never_defer")
                                      : synth.Op(stream, kind);
    op->head.flags = outcome;
    op->host_ns = host_ns;
    memcpy(op->dims, dims.data(), sizeof op->dims);
    if (synth.Params(kind) == sizeof value)
        memcpy(op + 1, value, sizeof value);
}

void Maker::Call(uint64_t ns, uint32_t thread, const std::string &name, cst_what what,
                 uint32_t stream, cst_scope scope, uint32_t host_ns) {
    At(ns, thread).Call(stream, what, name, static_cast<uint8_t>(scope))->host_ns = host_ns;
}

void Maker::Launch(uint64_t ns, uint32_t thread, uint32_t stream, uint32_t n, uint32_t segment,
                   uint32_t host_ns, cst_choice choice) {
    uint32_t patched = choice == CST_PATCHED ? 2 : 0;
    cst_launch *launch = At(ns, thread).Launch(stream, n, segment, choice, patched);
    launch->host_ns = host_ns;
    launch->build_ns = choice == CST_BUILT ? 5000 : 0;
}

void Maker::Branch(uint64_t ns, uint32_t thread, uint32_t stream, uint32_t n) {
    At(ns, thread).Branch(stream, n);
}

void Maker::Flush(uint64_t ns, uint32_t thread, uint32_t stream, uint32_t n,
                  const std::string &cause, const std::string &reason) {
    At(ns, thread).Flush(stream, n, cause, reason);
}

void Maker::Segment(uint64_t ns, uint32_t thread, uint32_t stream, uint32_t n, uint32_t id) {
    At(ns, thread).Segment(stream, id, n);
}

void Maker::Lost(uint64_t ns, uint32_t thread, uint64_t records, uint64_t ops) {
    At(ns, thread).Lost(records, ops);
}

void Maker::Gpu(uint64_t ns, uint64_t gpu_ns, uint32_t gpu_stream, cst_gpu_what what,
                const std::string &name, uint32_t grid, uint64_t node) {
    Synth &synth = At(ns, 1);
    synth.grid = grid;
    synth.Gpu(gpu_stream, what, name, gpu_ns)->node = node;
}

void Maker::GpuStream(uint32_t stream, uint32_t gpu_stream) {
    At(0, 0).GpuStream(stream, gpu_stream);
}
