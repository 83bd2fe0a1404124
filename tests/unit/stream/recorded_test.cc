// Promise: a recorded program leaves the same records whether its ops take the hot path or the slow
// path: the same kinds, streams, shapes, params, results and outcomes in the same order, among the
// same calls, flushes and graph launches.
#include "tests/unit/stream/program.h"

#include "tests/unit/trace/opened.h"

extern "C" {
#include "shim/trace/record.h"
}

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

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
        uint8_t buffer[12];
        size_t bytes = sizeof buffer;
        memcpy(buffer, &a, 8);
        memcpy(buffer + 8, &b, 4);
        void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
                         &bytes, CU_LAUNCH_PARAM_END};
        CUlaunchConfig config = {};
        fake::Call call(on ? on : stream, f, a, b, grid);
        cus_launch &launch = call.launch;
        launch.stream.abi = abi;
        if (packed) {
            launch.extra = extra;
            launch.params = nullptr;
        }
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
        cus_memset memset = fake::FillCall(stream, abi, kDevice);
        Do(recorded_memset, cus_engine_memset, memset);
    }
    void Memcpy() {
        cus_copy copy = {};
        copy.form = CUS_COPY_ANY;
        copy.stream = {stream, abi};
        copy.dst = kDevice;
        copy.src = kDevice + 512;
        copy.bytes = 96;
        copy.real = (void *)fake::Copy;
        Do(recorded_copy, cus_engine_copy, copy);
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
                fake::Sync(other, abi);
            }
            fake::Sync(stream, abi);
        }
    }
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
        t.cuMemcpyAsync = fake::Copy;
        t.cuMemsetD8Async = fake::Fill;
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
        t.cuLaunchKernelEx = fake::LaunchEx;
        program_.stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        program_.other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        program_.functions = fake::MakeFunctions(12);
        program_.eager = fake::MakeFunction("eager_one");
    }

    // In a process of its own.
    Trace Run(bool hot) {
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
        return OpenGood(path);
    }

    Program program_ = {};
};

TEST_P(Recorded, SameByTheHotPathAndByTheLongWay) {
    auto hot = Run(true), slow = Run(false);
    ASSERT_TRUE(hot);
    ASSERT_TRUE(slow);
    ASSERT_EQ(hot->n_kinds, slow->n_kinds);
    for (uint32_t i = 0; i < hot->n_kinds; i++) {
        const cst_kind *a = hot->kinds[i], *b = slow->kinds[i];
        ASSERT_EQ(!a, !b);
        if (a) {
            EXPECT_STREQ(cst_string(hot.get(), a->name), cst_string(slow.get(), b->name));
        }
    }
    ASSERT_EQ(hot->n_events, slow->n_events);
    std::set<std::pair<uint32_t, uint32_t>> begun; // by stream and number
    for (size_t i = 0; i < hot->n_events; i++) {
        const cst_record *a = hot->events[i], *b = slow->events[i];
        if (a->type == CST_SEGMENT) {
            auto *segment = (const cst_segment *)a;
            EXPECT_TRUE(begun.insert({segment->stream, segment->id}).second) << "said twice";
        } else if (a->type == CST_LAUNCH) {
            auto *launch = (const cst_launch *)a;
            EXPECT_TRUE(begun.count({launch->stream, launch->segment})) << "not said before";
        }
        ASSERT_EQ(a->type, b->type) << "event " << i;
        ASSERT_EQ(Timeless(a), Timeless(b)) << "event " << i << " of type " << (int)a->type;
        if (a->type == CST_OP) {
            EXPECT_GT(((const cst_op *)a)->host_ns, 0u);
            EXPECT_LT(((const cst_op *)a)->host_ns, 4000000000u);
        }
    }
    EXPECT_GT(begun.size(), 2u);
    EXPECT_EQ(hot->ops, slow->ops);
    EXPECT_EQ(hot->lost_records + slow->lost_records, 0u);
}

INSTANTIATE_TEST_SUITE_P(Moments, Recorded, ::testing::Bool(), [](const auto &given) {
    return given.param ? "AsTheMachineHasThem" : "Nanoseconds";
});

} // namespace
