// Promise: an op that is issued is the very call that the program asked for.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
#include "shim/graph/issue.h"
}

namespace {

// What the driver was asked, in words.
std::string asked;

template <typename... T> CUresult Note(const char *call, T... values) {
    asked = call;
    for (unsigned long long value : {(unsigned long long)values...})
        asked += " " + std::to_string(value);
    return CUDA_ERROR_NOT_READY; // the driver's answer is the caller's
}

cus_driver MakeDriver() {
    cus_driver t = {};
    t.cuLaunchKernel = [](CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
                          void **extra) {
        return Note("launch", f, gx, gy, gz, bx, by, bz, shared, stream,
                    params ? *static_cast<uint32_t *>(params[1]) : 0, extra);
    };
    t.cuLaunchCooperativeKernel = [](CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                                     unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                     CUstream stream, void **params) {
        return Note("cooperative", f, gx, gy, gz, bx, by, bz, shared, stream,
                    *static_cast<uint32_t *>(params[1]));
    };
    t.cuLaunchKernelEx = [](const CUlaunchConfig *c, CUfunction f, void **params, void **extra) {
        return Note("ex", f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
                    c->blockDimZ, c->sharedMemBytes, c->hStream,
                    *static_cast<uint32_t *>(params[1]), extra, c->numAttrs, c->attrs[0].id,
                    c->attrs[0].value.sharedMemCarveout);
    };
    t.cuMemsetD8Async = [](CUdeviceptr to, unsigned char value, size_t n, CUstream stream) {
        return Note("d8", to, value, n, stream);
    };
    t.cuMemsetD16Async = [](CUdeviceptr to, unsigned short value, size_t n, CUstream stream) {
        return Note("d16", to, value, n, stream);
    };
    t.cuMemsetD32Async = [](CUdeviceptr to, unsigned value, size_t n, CUstream stream) {
        return Note("d32", to, value, n, stream);
    };
    t.cuMemsetD2D8Async = [](CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                             size_t height, CUstream stream) {
        return Note("2d8", to, pitch, value, width, height, stream);
    };
    t.cuMemsetD2D16Async = [](CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                              size_t height, CUstream stream) {
        return Note("2d16", to, pitch, value, width, height, stream);
    };
    t.cuMemsetD2D32Async = [](CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                              size_t height, CUstream stream) {
        return Note("2d32", to, pitch, value, width, height, stream);
    };
    t.cuMemcpyDtoDAsync_v2 = [](CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream) {
        return Note("dtod", to, from, n, stream);
    };
    t.cuMemcpyHtoDAsync_v2 = [](CUdeviceptr to, const void *from, size_t n, CUstream stream) {
        return Note("htod", to, from, n, stream);
    };
    t.cuMemcpyDtoHAsync_v2 = [](void *to, CUdeviceptr from, size_t n, CUstream stream) {
        return Note("dtoh", to, from, n, stream);
    };
    t.cuMemcpyAsync = [](CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream) {
        return Note("copy", to, from, n, stream);
    };
    t.cuEventRecord = [](CUevent event, CUstream stream) { return Note("record", event, stream); };
    t.cuEventRecordWithFlags = [](CUevent event, CUstream stream, unsigned flags) {
        return Note("record", event, stream, flags);
    };
    t.cuStreamWaitEvent = [](CUstream stream, CUevent event, unsigned flags) {
        return Note("wait", stream, event, flags);
    };
    return t;
}

// An op of this kind on stream 99, with these params and shape.
struct Issued {
    cus_kind kind = {};
    std::vector<uint64_t> words = std::vector<uint64_t>(32);
    cus_driver driver = MakeDriver();

    explicit Issued(cus_op_type type) { kind.type = (uint8_t)type; }
    cus_values *values() { return reinterpret_cast<cus_values *>(words.data()); }
    template <typename T> void Params(const T &params) {
        memcpy(values()->params, &params, sizeof params);
    }
    std::string Asked(bool into_capture = false) {
        auto issue = into_capture ? cus_issue_into_capture : cus_issue;
        auto stream = reinterpret_cast<CUstream>(99);
        EXPECT_EQ(issue(&driver, &kind, values(), stream), CUDA_ERROR_NOT_READY);
        return asked;
    }
};

TEST(Issue, ALaunchHasItsShapeArgumentsAndAttributes) {
    Issued op(CUS_OP_LAUNCH);
    static const cus_argument arguments[2] = {{0, 8}, {8, 4}};
    cus_layout layout = {2, 12, arguments};
    op.kind.layout = &layout;
    op.kind.handle = reinterpret_cast<void *>(50);
    for (uint32_t i = 0; i < CUS_DIMS; i++)
        op.values()->dims[i] = i + 1;
    op.Params(std::array<uint32_t, 3>{1, 2, 33});
    EXPECT_EQ(op.Asked(), "launch 50 1 2 3 4 5 6 7 99 33 0");
    EXPECT_EQ(op.Asked(true), "launch 50 1 2 3 4 5 6 7 99 33 0");
    op.kind.cooperative = 1;
    EXPECT_EQ(op.Asked(), "cooperative 50 1 2 3 4 5 6 7 99 33");
    op.kind.n_attrs = 1;
    op.kind.attrs[0].id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    op.kind.attrs[0].bytes = 4;
    op.kind.attrs[0].value[0] = 25;
    EXPECT_EQ(op.Asked(), "ex 50 1 2 3 4 5 6 7 99 33 0 1 14 25");
    op.kind.n_attrs = op.kind.cooperative = 0;
    layout.n = 0;
    EXPECT_EQ(op.Asked(), "launch 50 1 2 3 4 5 6 7 99 0 0") << "no pointers";
}

TEST(Issue, AMemsetHasItsElementsAndRows) {
    Issued op(CUS_OP_MEMSET);
    cus_memset_params params = {};
    params.dst = 1000;
    params.value = 0x01020304;
    params.pitch = 64;
    params.height = 3;
    op.Params(params);
    op.values()->dims[0] = 5;
    op.values()->dims[1] = 2; // 2^33 and 5 elements
    const struct {
        uint8_t elem;
        std::string name, value;
    } cases[] = {{1, "d8", "4"}, {2, "d16", "772"}, {4, "d32", "16909060"}};
    for (const auto &c : cases) {
        op.kind.elem = c.elem;
        op.kind.copy_form = 0;
        EXPECT_EQ(op.Asked(), c.name + " 1000 " + c.value + " 8589934597 99");
        op.kind.copy_form = CUS_MEMSET_2D;
        EXPECT_EQ(op.Asked(), "2" + c.name + " 1000 64 " + c.value + " 8589934597 3 99");
    }
}

TEST(Issue, ACopyGoesTheWayThatItsCallNamed) {
    Issued op(CUS_OP_COPY);
    cus_copy_params params = {};
    params.dst = 1000;
    params.src = 2000;
    op.Params(params);
    op.values()->dims[0] = 5;
    op.values()->dims[1] = 2;
    const struct {
        cus_copy_form form;
        std::string name;
    } cases[] = {{CUS_COPY_DTOD, "dtod"},
                 {CUS_COPY_HTOD, "htod"},
                 {CUS_COPY_DTOH, "dtoh"},
                 {CUS_COPY_ANY, "copy"}};
    for (const auto &c : cases) {
        op.kind.copy_form = (uint8_t)c.form;
        EXPECT_EQ(op.Asked(), c.name + " 1000 2000 8589934597 99");
    }
}

TEST(Issue, ARecordInACaptureRecordsAtEachLaunchOfTheGraph) {
    cus_record_params params = {};
    params.event = 70;
    Issued record(CUS_OP_RECORD), wait(CUS_OP_WAIT);
    record.Params(params);
    wait.Params(params);
    EXPECT_EQ(record.Asked(), "record 70 99");
    EXPECT_EQ(record.Asked(true), "record 70 99 " + std::to_string(CU_EVENT_RECORD_EXTERNAL));
    EXPECT_EQ(wait.Asked(), "wait 99 70 0");
    EXPECT_EQ(wait.Asked(true), "wait 99 70 0");
}

} // namespace
