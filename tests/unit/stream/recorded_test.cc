// Promise: a recorded program leaves the same records whether its ops take the hot path or the slow
// path: the same kinds, streams, shapes, params, results and outcomes in the same order, among the
// same calls, flushes and graph launches.
#include "tests/unit/stream/fake_driver.h"

#include "tools/trace/reader.h"

extern "C" {
#include "shim/trace/record.h"
}

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace {

using fake::driver;

const uint64_t kDevice = 0x10000;

CUresult PointerGetAttributes(unsigned n, CUpointer_attribute *ids, void **values, CUdeviceptr) {
    for (unsigned i = 0; i < n; i++) {
        if (ids[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
            *(CUmemorytype *)values[i] = CU_MEMORYTYPE_DEVICE;
        if (ids[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)values[i] = 0;
        if (ids[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
            *(CUdeviceptr *)values[i] = kDevice;
        if (ids[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
            *(size_t *)values[i] = 0x1000;
        if (ids[i] == CU_POINTER_ATTRIBUTE_CONTEXT)
            *(CUcontext *)values[i] = (CUcontext)0x1000;
    }
    return CUDA_SUCCESS;
}

// The driver of the tests knows pointers to arguments alone.
decltype(cus_driver::cuLaunchKernel) launch_by_pointers;
CUresult LaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, CUstream stream, void **params, void **extra) {
    void *in_buffer[2];
    if (extra) {
        in_buffer[0] = extra[1];
        in_buffer[1] = (uint8_t *)extra[1] + 8;
        params = in_buffer;
    }
    return launch_by_pointers(f, gx, gy, gz, bx, by, bz, shared, stream, params, nullptr);
}

CUfunction copy_function, fill_function;
CUresult AsLaunch(CUfunction f, size_t size, uint64_t a, uint32_t b, CUstream stream) {
    void *params[2] = {&a, &b};
    return driver().table.cuLaunchKernel(f, (unsigned)size, 1, 1, 1, 1, 1, 0, stream, params,
                                         nullptr);
}
CUresult Copy(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    return AsLaunch(copy_function, bytes, dst, (uint32_t)src, stream);
}
CUresult Fill(CUdeviceptr dst, unsigned char value, size_t width, CUstream stream) {
    return AsLaunch(fill_function, width, dst, value, stream);
}

// One way of going on.
struct Program {
    bool hot;
    cus_abi abi;
    CUstream stream, other;
    std::vector<CUfunction> functions;
    CUfunction eager;
    int values = 0, asked = 0, reshaped = 0; // reshaped: held in another shape than the node's

    template <typename Op>
    void Do(bool (*hot_way)(const Op *), CUresult (*way)(const Op *), Op op) {
        asked++;
        if (hot && hot_way(&op))
            values++;
        else
            EXPECT_EQ(way(&op), CUDA_SUCCESS);
    }
    void Launch(CUfunction f, uint64_t a, uint32_t b, unsigned grid = 1, bool packed = false,
                bool ex = false, CUstream on = nullptr) {
        void *params[2] = {&a, &b};
        uint8_t buffer[12];
        size_t bytes = sizeof buffer;
        memcpy(buffer, &a, 8);
        memcpy(buffer + 8, &b, 4);
        void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
                         &bytes, CU_LAUNCH_PARAM_END};
        CUlaunchConfig config = {};
        cus_launch launch = {};
        launch.stream = {on ? on : stream, abi};
        launch.f = f;
        const uint32_t dims[7] = {grid, 1, 1, 32, 1, 1, 0};
        memcpy(launch.dims, dims, sizeof dims);
        if (packed)
            launch.extra = extra;
        else
            launch.params = params;
        launch.real = (void *)driver().table.cuLaunchKernel;
        if (ex) {
            config.gridDimX = grid;
            config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
            config.blockDimX = 32;
            config.hStream = launch.stream.handle;
            launch.form = CUS_LAUNCH_EX;
            launch.config = &config;
            launch.real = (void *)driver().table.cuLaunchKernelEx;
        }
        Do(recorded_launch, cus_engine_launch, launch);
    }
    void Memset() {
        cus_memset memset = {};
        memset.stream = {stream, abi};
        memset.dst = kDevice;
        memset.value = 7;
        memset.elem = 1;
        memset.width = 64;
        memset.height = 1;
        memset.real = (void *)Fill;
        Do(recorded_memset, cus_engine_memset, memset);
    }
    void Memcpy() {
        cus_copy copy = {};
        copy.form = CUS_COPY_ANY;
        copy.stream = {stream, abi};
        copy.dst = kDevice;
        copy.src = kDevice + 512;
        copy.bytes = 96;
        copy.real = (void *)Copy;
        Do(recorded_copy, cus_engine_copy, copy);
    }
    void Sync(CUstream on) {
        cus_stream_ref ref = {on, abi};
        cus_engine_flush(CUS_SCOPE_T, &ref, 7);
        cus_engine_step_end(&ref);
    }
    void Run() {
        for (unsigned step = 0; step < 24; step++) {
            for (unsigned i = 0; i < 12; i++) {
                int before = values;
                Launch(functions[i], 100 + i, i == 5 ? step : 0, i == 6 ? 1 + step / 8 : 1, i == 7,
                       i == 9);
                reshaped += i == 6 && step && step % 8 == 0 && values > before;
            }
            Launch(eager, 9, step);
            for (unsigned i = 0; i < 8; i++) {
                Launch(functions[i], i, step / 2);
                Memset();
                Memcpy();
            }
            if (step % 5 == 4)
                Launch(functions[step % 3], 1, 1); // what is deferred goes out by itself
            if (step % 7 == 6) {
                cus_engine_memory_gone();
                Launch(functions[0], 1, 1, 1, false, false, other);
                Sync(other);
            }
            Sync(stream);
        }
    }
};

struct Read {
    explicit Read(const std::string &path) : trace(cst_open(path.c_str(), error, sizeof error)) {}
    ~Read() { cst_free(trace); }
    char error[512];
    cst_trace *trace;
};

// Everything but when it was.
std::string Timeless(const cst_record *record) {
    std::string bytes((const char *)record, record->words * 8u);
    auto zero = [&](size_t at, size_t n) { memset(&bytes[at], 0, n); };
    zero(offsetof(cst_record, ns), 8);
    if (record->type == CST_OP)
        zero(offsetof(cst_op, host_ns), 4);
    if (record->type == CST_CALL)
        zero(offsetof(cst_call, host_ns), 4);
    if (record->type == CST_LAUNCH) {
        zero(offsetof(cst_launch, host_ns), 4);
        zero(offsetof(cst_launch, build_ns), 4);
    }
    return bytes;
}

class Recorded : public ::testing::TestWithParam<bool> {
  protected:
    void SetUp() override {
        setenv("CUSPLICE_HOLD_US", "1000000", 1);
        setenv("CUSPLICE_SEGMENT_MAX", "4", 1); // the same segments at any pace of the host
        setenv("CUSPLICE_EAGER", "eager_*", 1);
        fake::Reset();
        cus_driver &t = driver().table;
        launch_by_pointers = t.cuLaunchKernel;
        t.cuLaunchKernel = LaunchKernel;
        t.cuPointerGetAttributes = PointerGetAttributes;
        t.cuMemcpyAsync = Copy;
        t.cuMemsetD8Async = Fill;
        // No graph can be changed: where memory went, ops go out one by one.
        t.cuGraphMemcpyNodeGetParams = [](CUgraphNode, CUDA_MEMCPY3D *) {
            return CUDA_ERROR_NOT_SUPPORTED;
        };
        t.cuGraphMemsetNodeGetParams = [](CUgraphNode, CUDA_MEMSET_NODE_PARAMS *) {
            return CUDA_ERROR_NOT_SUPPORTED;
        };
        t.cuCtxGetDevice = [](CUdevice *device) {
            *device = 0;
            return CUDA_SUCCESS;
        };
        t.cuLaunchKernelEx = [](const CUlaunchConfig *c, CUfunction f, void **params,
                                void **extra) {
            return driver().table.cuLaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ,
                                                 c->blockDimX, c->blockDimY, c->blockDimZ,
                                                 c->sharedMemBytes, c->hStream, params, extra);
        };
        copy_function = fake::MakeFunction("copy");
        fill_function = fake::MakeFunction("fill");
        program_.stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        program_.other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        for (int i = 0; i < 12; i++)
            program_.functions.push_back(fake::MakeFunction("k" + std::to_string(i)));
        program_.eager = fake::MakeFunction("eager_one");
    }

    // In a process of its own.
    std::unique_ptr<Read> Run(bool hot) {
        std::string path = testing::TempDir() + "recorded" + std::to_string(getpid()) +
                           (hot ? "hot" : "long") + ".cst";
        unlink(path.c_str());
        unlink((path + ".partial").c_str());
        pid_t child = fork();
        if (child == 0) {
            EXPECT_TRUE(cus_engine_start(&driver().table));
            if (!GetParam())
                cus_ticks_source = "/no/such/file";
            EXPECT_TRUE(cus_record_start(path.c_str(), "{}", 0, 0));
            EXPECT_TRUE(GetParam() || !cus_ticks_on);
            program_.hot = hot;
            program_.abi = GetParam() ? CUS_ABI_PTSZ : CUS_ABI_LEGACY;
            program_.Run();
            if (hot) {
                EXPECT_GT(program_.values, program_.asked / 5) << "two of each segment of four";
                EXPECT_EQ(program_.reshaped, 2);
            }
            cus_record_end();
            _exit(HasFailure());
        }
        int status = 1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        return std::make_unique<Read>(path);
    }

    Program program_ = {};
};

TEST_P(Recorded, SameByTheHotPathAndByTheLongWay) {
    auto hot = Run(true), slow = Run(false);
    ASSERT_TRUE(hot->trace) << hot->error;
    ASSERT_TRUE(slow->trace) << slow->error;
    ASSERT_EQ(hot->trace->n_kinds, slow->trace->n_kinds);
    for (uint32_t i = 0; i < hot->trace->n_kinds; i++) {
        const cst_kind *a = hot->trace->kinds[i], *b = slow->trace->kinds[i];
        ASSERT_EQ(!a, !b);
        if (a) {
            EXPECT_STREQ(cst_string(hot->trace, a->name), cst_string(slow->trace, b->name));
        }
    }
    ASSERT_EQ(hot->trace->n_events, slow->trace->n_events);
    for (size_t i = 0; i < hot->trace->n_events; i++) {
        const cst_record *a = hot->trace->events[i], *b = slow->trace->events[i];
        ASSERT_EQ(a->type, b->type) << "event " << i;
        ASSERT_EQ(Timeless(a), Timeless(b)) << "event " << i << " of type " << (int)a->type;
        if (a->type == CST_OP) {
            EXPECT_GT(((const cst_op *)a)->host_ns, 0u);
            EXPECT_LT(((const cst_op *)a)->host_ns, 4000000000u);
        }
    }
    EXPECT_EQ(hot->trace->ops, slow->trace->ops);
    EXPECT_EQ(hot->trace->lost_records + slow->trace->lost_records, 0u);
}

INSTANTIATE_TEST_SUITE_P(Moments, Recorded, ::testing::Bool(), [](const auto &given) {
    return given.param ? "AsTheMachineHasThem" : "Nanoseconds";
});

} // namespace
