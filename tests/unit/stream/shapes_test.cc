// Promise: a launch with a new block or shared-memory size is deferred where the function's
// attributes allow it, and is the program's own call where the driver might refuse it (HAZARDS
// A12).
#include "tests/unit/stream/calls.h"
#include "tests/unit/stream/engine.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

class Shapes : public Engine {
  public:
    void SetUp() override {
        Engine::SetUp();
        driver().shared_max = 1000;
    }

    void TearDown() override {
        Engine::TearDown();
        driver().shared_max = -1;
    }

    // One step of segments of four; the second op has this shape. How many ops were issued when
    // its call returned.
    size_t Step(unsigned block, unsigned shared) {
        driver().journal.clear();
        size_t issued = 0;
        for (int i = 0; i < 12; i++) {
            fake::Call call(stream_, functions_[i], 100 + i, 0, 1, i == 1 ? block : 32);
            call.launch.dims[6] = i == 1 ? shared : 0;
            EXPECT_EQ(fake::Issue(call.launch), CUDA_SUCCESS);
            if (i == 1)
                issued = driver().journal.size();
        }
        Sync();
        EXPECT_EQ(driver().journal.size(), 12u) << "nothing is lost";
        return issued;
    }

    void Learn() {
        for (int step = 0; step < 6; step++)
            Step(32, 0);
    }

    int Asked() { return driver().calls["cuFuncGetAttribute, shared"]; }
};

// A single op is the program's own call.
TEST_F(Shapes, EachDimensionIsTheLaunchs) {
    static std::vector<unsigned> seen;
    driver().table.cuLaunchKernel = [](CUfunction, unsigned gx, unsigned gy, unsigned gz,
                                       unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                       CUstream, void **, void **) {
        seen = {gx, gy, gz, bx, by, bz, shared};
        return CUDA_SUCCESS;
    };
    auto cooperative = [](CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, CUstream stream, void **p) {
        return driver().table.cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, p, nullptr);
    };
    for (cus_launch_form form : {CUS_LAUNCH_PLAIN, CUS_LAUNCH_COOPERATIVE}) {
        seen.clear();
        CUfunction f = fake::MakeFunction("of each size");
        for (int step = 0; step < 4; step++) {
            fake::Call call(stream_, f, 100);
            const std::vector<unsigned> dims = {11, 7, 5, 4, 3, 2, 8};
            std::copy(dims.begin(), dims.end(), call.launch.dims);
            call.launch.form = form;
            call.launch.real = form == CUS_LAUNCH_PLAIN
                                   ? (void *)driver().table.cuLaunchKernel
                                   : (void *)(CUresult(*)(CUfunction, unsigned, unsigned, unsigned,
                                                          unsigned, unsigned, unsigned, unsigned,
                                                          CUstream, void **))cooperative;
            ASSERT_EQ(cus_engine_launch(&call.launch), CUDA_SUCCESS);
            Sync();
            EXPECT_EQ(seen, dims) << form << " " << step;
        }
    }
}

TEST_F(Shapes, SharedMemoryThatGrowsIsDeferred) {
    Learn();
    int asked = Asked();
    cus_counters before = Counters();
    for (unsigned shared = 4; shared <= 1000; shared += 4)
        EXPECT_EQ(Step(32, shared), 0u) << shared;
    EXPECT_EQ(Counters().in_graphs - before.in_graphs, 12u * 250) << "every op was in a graph";
    EXPECT_EQ(Asked(), asked) << "no launch asks the driver";
    ExpectBalance();
}

// A driver that does not say whether the function has clusters might refuse the shape.
TEST_F(Shapes, WithoutAWordAboutClustersAShapeIsTheProgramsOwnCall) {
    static decltype(driver().table.cuFuncGetAttribute) real;
    real = driver().table.cuFuncGetAttribute;
    driver().table.cuFuncGetAttribute = [](int *value, CUfunction_attribute id, CUfunction f) {
        return id == CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET ? CUDA_ERROR_INVALID_VALUE
                                                                : real(value, id, f);
    };
    Learn();
    EXPECT_EQ(Step(32, 0), 0u) << "this one ran";
    EXPECT_EQ(Step(32, 4), 2u);
}

TEST_F(Shapes, LaunchBeyondTheLimitFailsAtItsOwnCall) {
    Learn();
    fake::Launch(stream_, functions_[0], 100);
    driver().journal.clear();
    driver().fail = [](const std::string &name) {
        return name == "cuLaunchKernel" && driver().journal.size() == 1 ? CUDA_ERROR_INVALID_VALUE
                                                                        : CUDA_SUCCESS;
    };
    fake::Call call(stream_, functions_[1], 101);
    call.launch.dims[6] = 1001;
    EXPECT_EQ(fake::Issue(call.launch), CUDA_ERROR_INVALID_VALUE);
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    for (int i = 2; i < 12; i++)
        fake::Launch(stream_, functions_[i], 100 + i);
    Sync();
    EXPECT_EQ(driver().journal.size(), 11u) << "all but the one that failed";
    ExpectBalance();
}

TEST_F(Shapes, LimitIsReadAgainBehindASetting) {
    Learn();
    int asked = Asked();
    driver().shared_max = 500;
    cus_engine_function_changed(functions_[7]); // perhaps another handle of the same function
    EXPECT_EQ(Step(32, 400), 0u) << "nothing is cut to ask again";
    EXPECT_EQ(Asked(), asked + 2) << "of k1, and of k7, whose shapes ran before the change";
    EXPECT_EQ(Step(32, 600), 2u);
    driver().shared_max = 2000;
    cus_engine_function_changed(nullptr);
    EXPECT_EQ(Step(32, 1500), 2u) << "no shape has run behind the change";
    Learn();
    EXPECT_EQ(Step(32, 1600), 0u);
    EXPECT_EQ(Step(32, 2001), 2u);
}

// A program may launch a kernel by its CUkernel, and set attributes of that one's function.
TEST_F(Shapes, ASettingOfTheFunctionIsOneOfItsKernel) {
    static CUfunction kernel, function;
    kernel = functions_[1];
    function = fake::MakeFunction("of the kernel");
    auto &t = driver().table;
    t.cuKernelGetName = [](const char **name, CUkernel handle) {
        auto f = reinterpret_cast<CUfunction>(handle);
        return f == kernel ? driver().table.cuFuncGetName(name, f) : CUDA_ERROR_INVALID_HANDLE;
    };
    t.cuKernelGetParamInfo = [](CUkernel handle, size_t i, size_t *offset, size_t *size) {
        return driver().table.cuFuncGetParamInfo(reinterpret_cast<CUfunction>(handle), i, offset,
                                                 size);
    };
    t.cuKernelGetFunction = [](CUfunction *of, CUkernel) {
        *of = function;
        return CUDA_SUCCESS;
    };
    Learn();
    driver().shared_max = 2000;
    cus_engine_function_changed(functions_[7]);
    EXPECT_EQ(Step(32, 1500), 0u) << "its shape has run";
    cus_engine_function_changed(function);
    EXPECT_EQ(Step(32, 1600), 2u) << "no shape has run behind the change";
}

TEST_F(Shapes, FunctionWithoutSharedMemoryHasALimitToo) {
    driver().shared_max = 0;
    Learn();
    EXPECT_EQ(Step(64, 0), 2u);
    Learn();
    EXPECT_EQ(Step(96, 0), 0u);
    EXPECT_EQ(Step(96, 1), 2u);
}

// The driver answers, and then the setting comes, before the answer is noted.
TEST_F(Shapes, LimitFromBeforeASettingIsNotKept) {
    Learn();
    cus_engine_function_changed(functions_[1]);
    static const auto query = driver().table.cuFuncGetAttribute;
    static bool changed;
    changed = false;
    driver().table.cuFuncGetAttribute = [](int *value, CUfunction_attribute attribute,
                                           CUfunction f) {
        CUresult result = query(value, attribute, f);
        if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && !changed) {
            changed = true;
            driver().shared_max = 500;
            CUcontext context; // a setting by another thread, which needs no lock of this stream
            driver().table.cuCtxGetCurrent(&context);
            launch_forget_shapes(context);
        }
        return result;
    };
    Step(32, 400);
    ASSERT_TRUE(changed);
    Learn();
    EXPECT_EQ(Step(32, 600), 2u) << "the limit is 500 by now";
    driver().table.cuFuncGetAttribute = query;
    ExpectBalance();
}

TEST_F(Shapes, NewBlockIsDeferredOnceTwoRan) {
    Learn();
    EXPECT_EQ(Step(64, 0), 2u);
    Learn();
    EXPECT_EQ(Step(96, 40), 0u);
    EXPECT_EQ(Step(512, 0), 0u);
    EXPECT_EQ(Step(513, 0), 2u) << "more threads than the function may have";
    ExpectBalance();
}

TEST_F(Shapes, FunctionThatDoesNotTellItsLimitRunsEagerlyInEachNewShape) {
    driver().shared_max = -1;
    Learn();
    EXPECT_EQ(Step(32, 8), 2u);
    Learn();
    EXPECT_EQ(Step(32, 8), 0u) << "it ran before";
    EXPECT_EQ(Step(32, 4), 2u);
}

// A launch with attributes, whether it may get another size of shared memory.
class ShapesOf : public Shapes, public testing::WithParamInterface<int> {
  public:
    CUresult With(int i, unsigned shared) {
        static CUlaunchAttribute attrs[2];
        attrs[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attrs[0].value.clusterDim.x = attrs[0].value.clusterDim.y = attrs[0].value.clusterDim.z = 1;
        attrs[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attrs[1].value.cooperative = 1;
        CUlaunchConfig config = {};
        config.gridDimX = config.gridDimY = config.gridDimZ = 1;
        config.blockDimX = 32;
        config.blockDimY = config.blockDimZ = 1;
        config.sharedMemBytes = shared;
        config.hStream = stream_;
        config.attrs = &attrs[GetParam()];
        config.numAttrs = 1;
        fake::Call call(stream_, functions_[i], 100 + i);
        call.launch.form = CUS_LAUNCH_EX;
        call.launch.dims[6] = shared;
        call.launch.n_attrs = 1;
        call.launch.attrs = config.attrs;
        call.launch.config = &config;
        call.launch.real = reinterpret_cast<void *>(driver().table.cuLaunchKernelEx);
        return fake::Issue(call.launch);
    }
};

TEST_P(ShapesOf, ClusterOrCooperativeLaunchRunsEagerlyFirst) {
    driver().table.cuLaunchKernelEx = fake::LaunchEx;
    driver().table.cuGraphKernelNodeGetAttribute = [](CUgraphNode, CUlaunchAttributeID id,
                                                      CUlaunchAttributeValue *value) {
        *value = {};
        if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            value->cooperative = 1;
        else
            value->clusterDim.x = value->clusterDim.y = value->clusterDim.z = 1;
        return CUDA_SUCCESS;
    };
    size_t at_last = 0;
    for (int step = 0; step < 8; step++) {
        driver().journal.clear();
        for (int i = 0; i < 4; i++) {
            EXPECT_EQ(With(i, step == 7 && i == 1 ? 8 : 0), CUDA_SUCCESS);
            if (step == 6 && i == 1) {
                EXPECT_EQ(driver().journal.size(), 0u) << "deferred in a shape that ran";
            }
            if (i == 1)
                at_last = driver().journal.size();
        }
        Sync();
    }
    EXPECT_EQ(at_last, 2u);
    ExpectBalance();
}
INSTANTIATE_TEST_SUITE_P(, ShapesOf, testing::Values(0, 1));

} // namespace
