// Writes traces record by record, as the library's recorder does.
#ifndef CUSPLICE_TESTS_EXPORT_MAKE_H
#define CUSPLICE_TESTS_EXPORT_MAKE_H

#include <array>
#include <string>

#include "tests/unit/trace/synth.h"

class Maker {
  public:
    explicit Maker(const std::string &path);
    // Closes in good order.
    void Close(bool end_block = true);

    uint32_t Thread(uint32_t tid, const std::string &name = "");
    uint32_t Stream(uint32_t kind = CST_STREAM_CREATED, uint32_t context = 1, uint32_t device = 0,
                    int32_t priority = 0);
    uint32_t Kernel(const std::string &mangled, uint32_t flags = 0, uint32_t param_bytes = 8);
    uint32_t Memset(const std::string &call, uint32_t elem);
    uint32_t Copy(const std::string &call, uint32_t form);
    uint32_t Record();
    uint32_t Wait();
    void Facts(const std::string &json) { synth_.Facts(json); }

    using Dims = std::array<uint32_t, 7>;
    void Op(uint64_t ns, uint32_t thread, uint32_t stream, uint32_t kind, const Dims &dims,
            cst_outcome outcome, uint32_t host_ns = 100, uint32_t param = 0);
    void Call(uint64_t ns, uint32_t thread, const std::string &name, cst_what what,
              uint32_t stream = CST_NONE, cst_scope scope = CST_SCOPE_NONE, uint32_t host_ns = 50);
    void Launch(uint64_t ns, uint32_t thread, uint32_t stream, uint32_t n, uint32_t segment,
                uint32_t host_ns = 60, cst_choice choice = CST_EXACT);
    void Branch(uint64_t ns, uint32_t thread, uint32_t stream, uint32_t n);
    void Flush(uint64_t ns, uint32_t thread, uint32_t stream, uint32_t n, const std::string &cause,
               const std::string &reason);
    void Segment(uint64_t ns, uint32_t thread, uint32_t stream, uint32_t n, uint32_t id);
    void Lost(uint64_t ns, uint32_t thread, uint64_t records, uint64_t ops);
    // What the GPU did; `name`: of kernels, with that grid.
    void Gpu(uint64_t ns, uint64_t gpu_ns, uint32_t gpu_stream, cst_gpu_what what,
             const std::string &name = "", uint32_t grid = 0, uint64_t node = 0);
    void GpuStream(uint32_t stream, uint32_t gpu_stream);

  private:
    Synth &At(uint64_t ns, uint32_t thread);

    Synth synth_;
};

#endif
