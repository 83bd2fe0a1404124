#include "tests/unit/stream/program.h"

#include <cstdlib>
#include <cstring>
#include <optional>

#include "shim/base/clock.h"
#include "shim/base/mem.h"

namespace fake {
namespace {

bool running;
std::vector<std::pair<std::string, std::optional<std::string>>> before; // the environment

} // namespace

bool StartEngine(const Settings &settings) {
    if (std::exchange(running, true)) {
        ADD_FAILURE() << "the engine before has not ended";
        return false;
    }
    for (const auto &[name, value] : settings) {
        const char *was = getenv(name.c_str());
        before.emplace_back(name, was ? std::optional<std::string>(was) : std::nullopt);
        setenv(name.c_str(), value.c_str(), 1);
    }
    return cus_engine_start(&driver().table);
}

void EndEngine(bool balanced) {
    if (!std::exchange(running, false))
        return;
    int cancel = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel);
    EXPECT_EQ(cancel, PTHREAD_CANCEL_ENABLE) << "a call left the program's thread changed";
    EXPECT_EQ(capture_mode, CU_STREAM_CAPTURE_MODE_GLOBAL) << "the same";
    Reset();
    cus_engine_flush(CUS_SCOPE_P, nullptr, 0);
    if (balanced)
        ExpectBalance();
    cus_engine_end();
    EXPECT_EQ(cus_mem_held(), 0u) << "host memory that grew with the program";
    EXPECT_EQ(LoseAll(), 0u) << "streams and graphs of the library";
    EXPECT_EQ(DestroyedWrongly(), 0) << "a stream or graph that was not there";
    cus_virtual = {};
    for (; !before.empty(); before.pop_back())
        if (before.back().second)
            setenv(before.back().first.c_str(), before.back().second->c_str(), 1);
        else
            unsetenv(before.back().first.c_str());
}

Call::Call(CUstream stream, CUfunction f, uint64_t a, uint32_t b, unsigned grid, unsigned block)
    : a_(a), b_(b) {
    const uint32_t dims[7] = {grid, 1, 1, block, 1, 1, 0};
    memcpy(launch.dims, dims, sizeof dims);
    launch.stream = {stream, CUS_ABI_LEGACY};
    launch.f = f;
    launch.params = params_;
    launch.real = (void *)driver().table.cuLaunchKernel;
}

CUresult Issue(const cus_launch &launch) {
    if (launch.form == CUS_LAUNCH_PLAIN) {
        if (hot_passes(launch.stream.handle, launch.stream.abi, launch.f))
            return driver().table.cuLaunchKernel(launch.f, launch.dims[0], launch.dims[1],
                                                 launch.dims[2], launch.dims[3], launch.dims[4],
                                                 launch.dims[5], launch.dims[6],
                                                 launch.stream.handle, launch.params, launch.extra);
        if (hot_launch(launch.f, launch.dims, launch.stream.handle, launch.stream.abi,
                       launch.params, launch.extra) ||
            (!launch.extra &&
             hot_branch(launch.f, launch.dims, launch.stream.handle, launch.params)))
            return CUDA_SUCCESS;
    }
    return cus_engine_launch(&launch);
}

CUresult Launch(CUstream stream, CUfunction f, uint64_t a, uint32_t b, unsigned grid, cus_abi abi) {
    Call call(stream, f, a, b, grid);
    call.launch.stream.abi = abi;
    return Issue(call.launch);
}

void Sync(CUstream stream, cus_abi abi) {
    cus_stream_ref ref = {stream, abi};
    cus_engine_flush(CUS_SCOPE_T, &ref, 7);
    cus_engine_step_end(&ref);
}

std::vector<CUfunction> MakeFunctions(unsigned n) {
    std::vector<CUfunction> made;
    for (unsigned i = 0; i < n; i++)
        made.push_back(MakeFunction("k" + std::to_string(i)));
    return made;
}

void Learn(CUstream stream, const std::vector<CUfunction> &functions) {
    for (int step = 0; step < 4; step++) {
        for (CUfunction f : functions)
            ASSERT_EQ(Launch(stream, f, 1, 2), CUDA_SUCCESS);
        Sync(stream);
    }
    ASSERT_GT(driver().calls["cuGraphLaunch"], 0);
}

void EndContext(CUcontext context) {
    LoseAll(context);
    cus_engine_context_ended(context);
}

CUcontext MakeOtherContext() {
    cus_driver &t = driver().table;
    CUcontext mine, other = reinterpret_cast<CUcontext>(0x3000);
    t.cuCtxGetCurrent(&mine);
    t.cuCtxPushCurrent_v2(other);
    Launch(MakeStream(CU_STREAM_NON_BLOCKING), MakeFunction("other"), 1);
    t.cuCtxPushCurrent_v2(mine);
    return other;
}

cus_counters Counters() {
    cus_counters counters;
    cus_engine_counters(&counters);
    return counters;
}

uint64_t ExpectBalance() {
    cus_counters counters = Counters();
    uint64_t ops = 0, issued = counters.in_graphs;
    for (uint64_t n : counters.ops)
        ops += n;
    for (uint64_t n : counters.eager_by)
        issued += n;
    EXPECT_EQ(ops, issued);
    return ops;
}

void ProgramTest::SetUp() {
    Reset();
    stream_ = MakeStream(CU_STREAM_NON_BLOCKING);
    functions_ = MakeFunctions(kOps);
}

void ProgramTest::TearDown() {
    cus_engine_flush(CUS_SCOPE_P, nullptr, 0);
    cus_engine_code_gone();
}

CUresult ProgramTest::Launch(int i, uint32_t b, unsigned grid) {
    return fake::Launch(stream_, functions_[i], 100 + i, b, grid);
}

std::string ProgramTest::Line(const std::string &name, uint64_t a, uint32_t b, unsigned grid) {
    return fake::Line(stream_, name, a, b, grid);
}

std::string ProgramTest::Line(int i, uint32_t b, unsigned grid) {
    return Line("k" + std::to_string(i), 100 + i, b, grid);
}

void ProgramTest::Step(uint32_t b, unsigned grid) {
    driver().journal.clear();
    std::vector<std::string> expected;
    for (int i = 0; i < kOps; i++) {
        ASSERT_EQ(Launch(i, b, grid), CUDA_SUCCESS);
        expected.push_back(Line(i, b, grid));
    }
    Sync();
    ASSERT_EQ(driver().journal, expected);
}

void ProgramTest::Steps(int steps, uint32_t grow, unsigned grid) {
    for (int step = 0; step < steps; step++) {
        SCOPED_TRACE("step " + std::to_string(step));
        ASSERT_NO_FATAL_FAILURE(Step(step * grow, grid));
    }
}

void ProgramTest::LeaveOthersAlone() const {
    static CUstream own;
    own = stream_;
    driver().table.cuStreamGetGreenCtx = [](CUstream stream, CUgreenCtx *context) {
        *context = stream == own ? nullptr : reinterpret_cast<CUgreenCtx>(0x3000);
        return CUDA_SUCCESS;
    };
}

} // namespace fake
