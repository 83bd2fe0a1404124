// Promise: what a look-up gives out is the hook of the function that the driver found, a stub for
// one that no row has, and the function itself where a hook would be wrong.
#include <gtest/gtest.h>

#include <string>

extern "C" {
#include "shim/api/api.h"
#include "shim/base/options.h"
#include "shim/hook/resolve.h"
#include "tests/unit/hook/world.h"
}

namespace {

const char *const kFirst = cus_api_rows[0].name;

class Resolve : public testing::Test {
  protected:
    void SetUp() override { world_reset(); }
    void TearDown() override { Trust(false); }
    static void Trust(bool trust) {
        const_cast<struct cus_options *>(cus_options())->trust_interposers = trust;
    }
    static void *Driver(const char *name) { return world_driver + world_row(name); }
    static void *Interposer(const char *name) { return world_interposer + world_row(name); }
    // What the program gets where the real look-up finds `function`.
    static void *Look(const char *name, void *function, int version = 12000) {
        void *second = nullptr, *found = nullptr;
        world.function = function;
        EXPECT_EQ(world_look_second(name, &second, version), world.answer);
        EXPECT_EQ(world_look(name, &found, version), world.answer);
        EXPECT_EQ(found, second) << "both forms answer alike";
        return found;
    }
    // Neither the driver's nor the interposer's.
    char elsewhere[1];
    void *const unknown = world_driver + WORLD_FUNCTIONS - 1;
};

TEST_F(Resolve, AFunctionOfTheDriverIsItsHook) {
    EXPECT_EQ(Look("cuLaunchKernel", Driver("cuLaunchKernel")), world_hook);
    EXPECT_EQ(world.looks, 2u);
    ASSERT_EQ(world_row("cuGetErrorName"), world_passed);
    EXPECT_EQ(Look("cuGetErrorName", Driver("cuGetErrorName")), Driver("cuGetErrorName"))
        << "no hook is needed";
    EXPECT_EQ(Look(kFirst, Driver(kFirst)), world_hook);
    EXPECT_EQ(world.stub_kind, -1);
}

TEST_F(Resolve, AFunctionWithoutARowIsAStub) {
    for (const char *name : {"cuNewFunction", "cuA", "cuZ"})
        EXPECT_EQ(Look(name, unknown), world_stub) << name;
    EXPECT_EQ(world.stub_kind, CUS_SPARE_UNKNOWN);
    for (const char *name : {"cuGraphicsGLRegisterBuffer", "cuGLNew", "cuEventCreateFromEGLNew"}) {
        world.stub_kind = -1;
        EXPECT_EQ(Look(name, unknown), world_stub);
        EXPECT_EQ(world.stub_kind, CUS_SPARE_GRAPHICS) << name;
    }
    EXPECT_EQ(Look("cuGetProcAddress_v3", unknown), world_stub);
    EXPECT_EQ(world.stub_kind, CUS_SPARE_LOOK_UP);
}

TEST_F(Resolve, OtherNamesAreLeftAlone) {
    for (const char *name : {"dlsym", "cu", "cudaMalloc", "cu_x", "cu1", "clFlush"})
        EXPECT_EQ(Look(name, unknown), unknown) << name;
    EXPECT_EQ(Look("cuNewFunction", elsewhere), elsewhere) << "it is not the driver's";
    EXPECT_EQ(world.stub_kind, -1);
}

TEST_F(Resolve, WithoutAStubNothingIsDeferredAnyMore) {
    world.no_stub = true;
    EXPECT_EQ(Look("cuNewFunction", unknown), unknown);
    EXPECT_STREQ(world.no_more, "more entry points than the library can watch");
}

TEST_F(Resolve, TheVersionTellsTheTwoLookUpsApart) {
    void *first = Driver("cuGetProcAddress");
    EXPECT_EQ(Look("cuGetProcAddress", first, 11030), world_hook_first);
    EXPECT_EQ(Look("cuGetProcAddress", first, 12000), world_hook_second);
    EXPECT_EQ(cus_resolve(first, "cuGetProcAddress", 0), world_hook_first) << "dlsym has none";
    // At an address that no row has.
    EXPECT_EQ(Look("cuGetProcAddress", unknown, 11030), world_hook_first);
    EXPECT_EQ(Look("cuGetProcAddress", unknown, 12000), world_hook_second)
        << "the driver gives it as the second form";
    void *newer = world_driver + WORLD_FUNCTIONS - 2;
    EXPECT_EQ(Look("cuGetProcAddress", newer, 13000), world_stub) << "a form that nobody knows";
    EXPECT_EQ(world.stub_kind, CUS_SPARE_LOOK_UP);
    EXPECT_EQ(Look("cuGetProcAddress", newer, 11030), world_hook_first) << "no form is older";
    EXPECT_EQ(cus_resolve(unknown, "cuGetProcAddress", 0), world_stub) << "of no version";
    for (int version : {11030, 13000})
        EXPECT_EQ(Look("cuGetProcAddress", elsewhere, version), elsewhere);
    for (bool none : {true, false}) { // who cannot ask does not know the form
        world.no_own_look_up = none;
        world.own_answer = CUDA_ERROR_UNKNOWN;
        EXPECT_EQ(Look("cuGetProcAddress", unknown, 12000), world_stub) << none;
    }
}

TEST_F(Resolve, WhatWasNotFoundStaysAsItIs) {
    world.answer = CUDA_ERROR_NOT_FOUND;
    EXPECT_EQ(Look("cuLaunchKernel", Driver("cuLaunchKernel")), Driver("cuLaunchKernel"));
    world.answer = CUDA_SUCCESS;
    EXPECT_EQ(Look("cuLaunchKernel", nullptr), nullptr);
    world.function = Driver("cuLaunchKernel");
    EXPECT_EQ(world_look("cuLaunchKernel", nullptr, 12000), CUDA_SUCCESS);
    EXPECT_EQ(Look(nullptr, Driver("cuLaunchKernel")), Driver("cuLaunchKernel"));
    EXPECT_EQ(world.looks, 0u);
    world.no_driver = true;
    world.answer = CUDA_ERROR_NOT_INITIALIZED;
    EXPECT_EQ(Look("cuLaunchKernel", Driver("cuLaunchKernel")), nullptr) << "nobody was asked";
}

// ---- an interposer behind the library (HAZARDS G3) ----

TEST_F(Resolve, AFunctionOfAnInterposerIsFoundByWhatTheDriverAnswers) {
    world.chained = world_row("cuMemAlloc_v2");
    EXPECT_EQ(Look("cuMemAlloc_v2", Interposer("cuMemAlloc_v2")), world_hook)
        << "the hook calls the interposer";
    EXPECT_EQ(world.noted, nullptr);
}

TEST_F(Resolve, AFunctionThatAnInterposerDidNotShowIsWatched) {
    EXPECT_EQ(Look("cuLaunchKernel", Interposer("cuLaunchKernel")), world_stub);
    EXPECT_EQ(world.noted, Interposer("cuLaunchKernel"));
    EXPECT_EQ(world.stub_kind, CUS_SPARE_UNKNOWN);
    world.no_stub = true;
    EXPECT_EQ(Look("cuLaunchKernel", Interposer("cuLaunchKernel")), Interposer("cuLaunchKernel"));
    world_reset();
    // What the driver does not know, or what needs no hook, is not.
    void *own = world_interposer + WORLD_FUNCTIONS - 1;
    EXPECT_EQ(Look("cuOfTheInterposer", own), own);
    EXPECT_EQ(Look("cuGetErrorName", own), own);
    EXPECT_EQ(world.noted, nullptr);
    // Without the driver's own look-up its name is believed.
    for (bool none : {true, false}) {
        world_reset();
        world.no_own_look_up = none;
        world.own_answer = CUDA_ERROR_UNKNOWN;
        EXPECT_EQ(Look("cuLaunchKernel", Interposer("cuLaunchKernel")), world_stub) << none;
    }
}

// The program asks for a name and a version; the driver knows which symbol that is.
TEST_F(Resolve, AFunctionOfAnInterposerIsKnownByItsExactName) {
    world.own_function = Driver("cuMemAlloc_v2");
    EXPECT_EQ(Look("cuMemAlloc", Interposer("cuMemAlloc_v2")), world_stub);
    EXPECT_EQ(world.noted, Interposer("cuMemAlloc_v2"));
    EXPECT_EQ(world.noted_row, world_row("cuMemAlloc_v2"));
    EXPECT_NE(world.noted_row, world_row("cuMemAlloc"));
    world.own_function = Driver(kFirst);
    EXPECT_EQ(Look("cuNewName", Interposer(kFirst)), world_stub);
    EXPECT_EQ(world.noted, Interposer(kFirst));
}

TEST_F(Resolve, TheLookUpOfAnInterposerIsTheHookOfItsForm) {
    world.chained = world_row("cuGetProcAddress");
    EXPECT_EQ(Look("cuGetProcAddress", Interposer("cuGetProcAddress"), 11030), world_hook_first);
    EXPECT_EQ(Look("cuGetProcAddress", Interposer("cuGetProcAddress"), 12000), world_hook_second);
}

// The hook would call the interposer, which would call the hook, without end.
TEST_F(Resolve, AnInterposerGetsWhatItStandsBefore) {
    world.chained = world_row("cuMemAlloc_v2");
    void *function = Driver("cuMemAlloc_v2");
    world_look_by_interposer("cuMemAlloc_v2", &function, 12000);
    EXPECT_EQ(function, Driver("cuMemAlloc_v2"));
    function = Driver("cuLaunchKernel");
    world_look_by_interposer("cuLaunchKernel", &function, 12000);
    EXPECT_EQ(function, world_hook) << "it does not stand before this one";
    function = Interposer("cuMemAlloc_v2");
    world_look_by_interposer("cuMemAlloc_v2", &function, 12000);
    EXPECT_EQ(function, world_hook) << "its own, which is not the driver's";
    for (int row : {world.chained, -1}) {
        world.chained = row;
        function = unknown;
        world_look_by_interposer("cuNewFunction", &function, 12000);
        EXPECT_EQ(function, world_stub);
    }
    world.chained = world_row(kFirst);
    function = Driver(kFirst);
    world_look_by_interposer(kFirst, &function, 12000);
    EXPECT_EQ(function, Driver(kFirst));
}

// A look-up in libcuda does not find what is only exported. Where that stands before launches,
// nothing is deferred, and the hook is not needed.
TEST_F(Resolve, WhatIsOnlyExportedIsPassedBy) {
    void *own = Driver("cuMemAlloc_v2");
    world.chained = world_row("cuMemAlloc_v2");
    EXPECT_EQ(Look("cuMemAlloc_v2", own), world_hook) << "its look-up answers by itself";
    world.before_launches = true;
    EXPECT_EQ(Look("cuMemAlloc_v2", own), world_hook) << "it still does";
    world.before_launches = false;
    world.by_export = true;
    EXPECT_EQ(Look("cuMemAlloc_v2", own), world_hook) << "launches may be deferred";
    world.before_launches = true;
    EXPECT_EQ(Look("cuMemAlloc_v2", own), own);
    EXPECT_EQ(Look("cuMemAlloc_v2", Interposer("cuMemAlloc_v2")), world_hook)
        << "it was found itself";
    world.chained = world_row(kFirst);
    EXPECT_EQ(Look(kFirst, Driver(kFirst)), Driver(kFirst));
    world.chained = world_row("cuMemAlloc_v2");
    Trust(true);
    EXPECT_EQ(Look("cuMemAlloc_v2", own), world_hook) << "launches may be deferred all the same";
}

} // namespace
