// Where a build was held up by other threads' launches, the builds behind it have way: a thread
// that issues an op by itself waits for them, but never for long, whatever they wait for.
#include "tests/unit/stream/fake_driver.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

extern "C" {
#include "tests/unit/stream/held_locks.h"
}

namespace {

using fake::driver;
using Clock = std::chrono::steady_clock;

constexpr unsigned kOps = 64, kPiece = 16;
std::vector<CUfunction> functions;

void Launch(CUstream stream, unsigned place, uint64_t a) {
    EXPECT_EQ(fake::Launch(stream, functions[place % functions.size()], a), CUDA_SUCCESS);
}

void Step(CUstream stream, unsigned ops = kOps) {
    cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
    for (unsigned place = 0; place < ops; place++)
        Launch(stream, place, 100 + place);
    cus_engine_flush(CUS_SCOPE_T, &ref, 7);
    cus_engine_step_end(&ref);
}

struct Built {
    bool way;  // it had way
    double ms; // what an op of another thread took meanwhile
};
std::vector<Built> built;

TEST(Way, AHeldUpBuildIsNotHeldUpAgainAndHoldsNobodyForLong) {
    setenv("CUSPLICE_HOLD_US", "1000000", 1);
    setenv("CUSPLICE_PIECE_FIRST", "16", 1);
    setenv("CUSPLICE_PIECE_MAX", "16", 1);
    setenv("CUSPLICE_BUILD_US", "0", 1);
    fake::Reset();
    ASSERT_TRUE(cus_engine_start(&driver().table));
    for (int i = 0; i < 16; i++)
        functions.push_back(fake::MakeFunction("k" + std::to_string(i)));
    CUstream building = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    CUstream beside = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Step(beside, 3); // its functions are known
    // No build ends before another thread's op has been issued, as if that held a lock; the first
    // one takes long.
    driver().fail = [&](const std::string &name) {
        if (name != "cuGraphInstantiateWithFlags")
            return CUDA_SUCCESS;
        Built one = {build_has_way(), 0};
        std::thread other([&] {
            auto begin = Clock::now();
            Launch(beside, 0, built.size());
            one.ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
        });
        other.join();
        if (built.empty())
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        built.push_back(one);
        return CUDA_SUCCESS;
    };
    for (int step = 0; step < 40 && built.size() < 4; step++)
        Step(building);
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    ASSERT_EQ(built.size(), kOps / kPiece);
    EXPECT_FALSE(built[0].way) << "nothing was held up so far";
    for (size_t i = 1; i < built.size(); i++) {
        EXPECT_TRUE(built[i].way) << "the first one was held up";
        EXPECT_GE(built[i].ms, 0.9) << "the other thread did not wait";
    }
    EXPECT_FALSE(build_has_way()) << "nothing is built any more";
}

} // namespace
