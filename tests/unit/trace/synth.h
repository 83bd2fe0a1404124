// Makes traces whose contents are all known, with the writer of shim/trace/file.h. Each record is
// 1000 ns later than the last unless a test sets its time.
#ifndef CUSPLICE_TESTS_UNIT_TRACE_SYNTH_H
#define CUSPLICE_TESTS_UNIT_TRACE_SYNTH_H

#include <map>
#include <string>
#include <vector>

#include "shim/trace/file.h"
#include "tests/text.h"

class Synth {
  public:
    // Into a file that must not be there. `packed`: blocks of records are zstd frames.
    explicit Synth(const std::string &path, bool packed = false);
    ~Synth(); // what was not closed is removed

    uint32_t String(const std::string &text); // defined when it is named first
    uint32_t Thread(uint32_t tid, const std::string &name);
    uint32_t Stream(uint32_t kind, uint64_t handle, int32_t priority = 0);
    uint32_t Kernel(const std::string &mangled, uint32_t param_bytes = 8, uint32_t flags = 0);
    // By the driver's name for it, where a test says no other call.
    uint32_t Memset(uint32_t elem, const std::string &call = "", uint32_t flags = 0);
    uint32_t Copy(uint32_t form, const std::string &call = "");
    uint32_t Record(); // of events; params: the event, 1
    uint32_t Wait();   // for events; params: the event, 0
    uint32_t Params(uint32_t kind) const { return param_bytes_[kind]; } // bytes

    // What the next records say, until it is changed.
    uint32_t thread = 1;
    uint64_t now = 1000000;
    uint32_t host_ns = 100;
    uint32_t grid = 1, block = 32; // of launches; elements and bytes of memsets and copies: grid
    uint64_t param = 0;            // first 8 bytes of the params
    uint32_t context = 1, device = 0, stream_flags = 0; // of streams

    cst_op *Op(uint32_t stream, uint32_t kind); // deferred
    cst_op *Eager(uint32_t stream, uint32_t kind, const std::string &eager, const std::string &why);
    cst_call *Call(uint32_t stream, cst_what what, const std::string &api, uint8_t scope = 0);
    cst_call *Sync(uint32_t stream); // ends a step
    cst_flush *Flush(uint32_t stream, uint32_t n, const std::string &cause,
                     const std::string &reason);
    cst_launch *Launch(uint32_t stream, uint32_t n, uint32_t segment, cst_choice choice,
                       uint32_t patched = 0);
    cst_branch *Branch(uint32_t stream, uint32_t n); // at the time of the next record
    cst_segment *Segment(uint32_t stream, uint32_t id, uint32_t n);
    cst_lost *Lost(uint64_t records, uint64_t ops);
    cst_range *Range(uint64_t start, uint64_t size);
    // What the GPU did, with the grid that ops have now; `name`: of kernels.
    cst_gpu *Gpu(uint32_t gpu_stream, cst_gpu_what what, const std::string &name = "",
                 uint64_t gpu_ns = 500);
    cst_gpu_stream *GpuStream(uint32_t stream, uint32_t gpu_stream);
    cst_gpu_context *GpuContext(uint32_t stream, uint32_t context);

    void Facts(const std::string &json);
    void Block(); // ends the block of records that is gathered
    int Close();  // 0 or an errno
    void Tear();  // leaves the file without its end, under its final name

    cst_sink sink;
    cst_out out;

  private:
    template <typename T> T *Add(cst_type type, size_t more = 0);
    uint32_t Kind(uint32_t op, const std::string &name, uint32_t param_bytes, uint32_t flags,
                  uint32_t elem, uint32_t form);
    std::map<std::string, uint32_t> strings_;
    std::vector<uint32_t> param_bytes_{0}; // by kind
    std::vector<uint32_t> op_of_{0};
    uint32_t threads_ = 0, streams_ = 0;
    std::vector<uint8_t> buffer_;
    bool packed_, open_ = true;
};

void WriteAll(const std::string &path, const std::string &bytes);
// A path in the test's folder at which there is nothing.
std::string Fresh(const std::string &name);

#endif
